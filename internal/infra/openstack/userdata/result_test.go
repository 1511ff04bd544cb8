package userdata

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseResult(t *testing.T) {
	for raw, want := range map[string]string{
		``:                               "ended without a result",
		`nonsense`:                       "cannot be read",
		`{}`:                             "not in dict format",
		`{"result": null}`:               "not in dict format",
		`{"result": []}`:                 "not in dict format",
		`{"result": {}} {}`:              "cannot be read",
		`{"result": 1, "error": {}}`:     "failed without a message",
		`{"error": {"stage": "class"}}`:  badClass,
		`{"error": {"stage": "import"}}`: badPath,
		`{"error": {"stage": "run", "message": "why", "type": "E", "where": "a.py:1"}}`:  "why (E at a.py:1)",
		`{"result": {"a": ` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`: "nested too deeply",
	} {
		_, err := ParseResult([]byte(raw))
		var own *Error
		if !errors.As(err, &own) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", raw, err)
		}
	}
	got, err := ParseResult([]byte(`{"result": {"n": 9007199254740993, "f": 1.0}}`))
	if err != nil || got["n"] != json.Number("9007199254740993") || got["f"] != json.Number("1.0") {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzResult holds ParseResult to its word on whatever a script leaves: parameters that can be sent on, or an error of
// the package's that can be shown.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"result": {"nfv": {"VDU": {"VDU1": {"flavor": "m1.tiny", "image": null}}}}}`,
		`{"error": {"stage": "run", "type": "ValueError", "message": "no", "where": "UserData/x.py:1"}}`,
		`{"result": [1]}`, ``, `{`, "\xff\xfe", `{"result": {"a": "\ud800"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		params, err := ParseResult(raw)
		if err != nil {
			var own *Error
			if !errors.As(err, &own) || own.Message == "" || !utf8.ValidString(err.Error()) {
				t.Errorf("error %#v", err)
			}
			return
		}
		if params == nil {
			t.Fatal("neither parameters nor an error")
		}
		sent, err := json.Marshal(params)
		if err != nil {
			t.Fatalf("parameters that cannot be sent: %v", err)
		}
		if _, err := ParseResult([]byte(`{"result": ` + string(sent) + `}`)); err != nil {
			t.Errorf("parameters that cannot be read again: %v", err)
		}
	})
}
