package userdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// outcome is what the runner writes. A script shares the runner's process, so nothing in it is certain.
type outcome struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Stage   string `json:"stage"`
		Type    string `json:"type"`
		Message string `json:"message"`
		Where   string `json:"where"`
	} `json:"error"`
}

// maxDepth bounds the nesting of a result; Heat parameters are far flatter.
const maxDepth = 100

// ParseResult reads what a run left on its result descriptor: the parameters as plain data (numbers as json.Number), or
// an [*Error] that says why there are none, or [ErrNoMethod].
func ParseResult(raw []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, &Error{Message: prefix + "script ended without a result."}
	}
	var o outcome
	if err := decode(raw, &o); err != nil {
		return nil, &Error{Message: prefix + "script left a result that cannot be read."}
	}
	if e := o.Error; e != nil {
		if e.Stage == "method" {
			return nil, ErrNoMethod
		}
		return nil, failure(e.Stage, clip(e.Type, 128), clip(e.Message, 8192), clip(e.Where, 512))
	}
	if t := bytes.TrimSpace(o.Result); len(t) == 0 || t[0] != '{' {
		return nil, &Error{Message: notDict}
	}
	var params map[string]any
	if err := decode(o.Result, &params); err != nil {
		return nil, &Error{Message: prefix + "script left a result that cannot be read."}
	}
	if tooDeep(params, maxDepth) {
		return nil, &Error{Message: prefix + "return value as HOT parameter from UserData is nested too deeply."}
	}
	return params, nil
}

func failure(stage, kind, message, where string) *Error {
	switch stage {
	case "import":
		if message == "" {
			return &Error{Message: badPath, Type: kind, Where: where}
		}
		return &Error{Message: badPath + " " + message, Type: kind, Where: where}
	case "class":
		return &Error{Message: badClass}
	case "type":
		return &Error{Message: notDict, Type: kind}
	case "json":
		return &Error{Message: notDict + " " + message, Type: kind}
	}
	if strings.TrimSpace(message) == "" {
		message = prefix + "script failed without a message."
	}
	return &Error{Message: message, Type: kind, Where: where}
}

// decode reads exactly one JSON value.
func decode(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

func tooDeep(v any, left int) bool {
	if left == 0 {
		return true
	}
	switch t := v.(type) {
	case map[string]any:
		for _, e := range t {
			if tooDeep(e, left-1) {
				return true
			}
		}
	case []any:
		for _, e := range t {
			if tooDeep(e, left-1) {
				return true
			}
		}
	}
	return false
}

// clip makes a script's text fit to be shown: valid UTF-8, at most n bytes.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
