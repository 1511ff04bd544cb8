package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

// TestParse: what --set makes of texts; test/contract/kubernetes has helm itself say so.
func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		set  []string
		want object
	}{
		"none":                {nil, object{}},
		"texts":               {[]string{"a.b=c", "d=1.5", "e=007", "f=1e3", "g=", "h=yes", "i= true", "j=x=y"}, object{"a": object{"b": "c"}, "d": "1.5", "e": "007", "f": "1e3", "g": "", "h": "yes", "i": " true", "j": "x=y"}},
		"numbers":             {[]string{"a=1", "b=-1", "c=0", "d=9223372036854775807", "e=+5"}, object{"a": int64(1), "b": int64(-1), "c": int64(0), "d": int64(9223372036854775807), "e": int64(5)}},
		"too large":           {[]string{"a=9223372036854775808"}, object{"a": "9223372036854775808"}},
		"others":              {[]string{"a=true", "b=False", "c=null", "d=NULL"}, object{"a": true, "b": false, "c": nil, "d": nil}},
		"several":             {[]string{"a=1,b=x", "c=y,"}, object{"a": int64(1), "b": "x", "c": "y"}},
		"the last counts":     {[]string{"a=x", "a=1", "b.c=x", "b.d=y", "b.c=z"}, object{"a": int64(1), "b": object{"c": "z", "d": "y"}}},
		"a list":              {[]string{"a={1,x,true,null}", "b={}", "c={x}", "d={x,},e=y"}, object{"a": []any{int64(1), "x", true, nil}, "b": []any{""}, "c": []any{"x"}, "d": []any{"x", ""}, "e": "y"}},
		"after a list":        {[]string{"a={x},b=y", "c={x}d=y"}, object{"a": []any{"x"}, "b": "y", "c": []any{"x"}, "d": "y"}},
		"an index":            {[]string{"a[1]=x", "b[0].c=y", "b[0].d=1", "e[0][1]=z"}, object{"a": []any{nil, "x"}, "b": []any{object{"c": "y", "d": int64(1)}}, "e": []any{[]any{nil, "z"}}}},
		"of a list":           {[]string{"a={x,y}", "a[1]=1", "a[2]=z"}, object{"a": []any{"x", int64(1), "z"}}},
		"a map for an item":   {[]string{"a={x}", "a[0].b=y"}, object{"a": []any{object{"b": "y"}}}},
		"escapes":             {[]string{`a\.b=x\,y`, `c={x\,y,\{z\}}`, `d=\\`, `e=\1`, `f\[0\]\=\,=x`, `g=x\`, `h=\t`}, object{"a.b": "x,y", "c": []any{"x,y", "{z}"}, "d": `\`, "e": int64(1), "f[0]=,": "x", "g": "x", "h": "t"}},
		"a brace in a text":   {[]string{"a=x{y}", "b=x[0]", "c=[]", "d=[x"}, object{"a": "x{y}", "b": "x[0]", "c": "[]", "d": "[x"}},
		"no name":             {[]string{"=x", ".a=y", "[0]=z", "b=1"}, object{"b": int64(1)}},
		"an end that is none": {[]string{"a=1,b.", "c=1,d[0", "e=1,f[0]", "g[0].h="}, object{"a": int64(1), "c": int64(1), "e": int64(1), "f": []any{}, "g": []any{}}},
		"nothing at the end":  {[]string{"a[0]=", "b.c="}, object{"a": []any{""}, "b": object{"c": ""}}},
		"other characters":    {[]string{"ä.ö=ü\n\"'☃😀"}, object{"ä": object{"ö": "ü\n\"'☃😀"}}},
	} {
		got, err := parse(tt.set)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	for name, set := range map[string][]string{
		"no value":         {"a=secret,more"},
		"no value between": {"a=secret,more,b=1"},
		"no end of a list": {"a={secret,"},
		"no number":        {"a[secret]=1"},
		"less than none":   {"a[-1]=1"},
		"too many":         {"a[65537]=1"},
		"too much":         {"a[65536]" + strings.Repeat("[65536]", 20) + "=1"},
		"after an index":   {"a[0]secret=1"},
		"was a text":       {"a=secret", "a.b=1"},
		"was null":         {"a=null", "a[0]=1"},
		"was a list":       {"a={secret}", "a.b=1"},
		"was a map":        {"a.b=1", "a[0]=1"},
		"an item's item":   {"a={secret}", "a[0][0]=1"},
		"nothing in a map": {"a.=1"},
		"too deep":         {strings.Repeat("a.", 31) + "b=1"},
	} {
		if got, err := parse(set); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

// TestApart: the whole numbers are in arguments, and everything else is in the file.
func TestApart(t *testing.T) {
	for name, tt := range map[string]struct {
		set, args []string
		file      string
	}{
		"nothing":      {},
		"numbers":      {set: []string{"a=1", "b.c=2"}, args: []string{"--set=a=1", "--set=b.c=2"}},
		"the rest":     {set: []string{"a=x,b.c=null"}, args: []string{"--values=values.yaml"}, file: `{"a":"x","b":{"c":null}}`},
		"both":         {set: []string{"a=x", "b.c=2", "b.d=true"}, args: []string{"--values=values.yaml", "--set=b.c=2"}, file: `{"a":"x","b":{"d":true}}`},
		"in a list":    {set: []string{"a={x,1}", "b[0].c=1", "b[0].d[1][0]=2"}, args: []string{"--values=values.yaml", "--set=a[1]=1", "--set=b[0].c=1", "--set=b[0].d[1][0]=2"}, file: `{"a":["x",null],"b":[{"d":[null,[null]]}]}`},
		"escaped":      {set: []string{`a\.b.c\[\]\,\=\\=1`}, args: []string{`--set=a\.b.c\[]\,\=\\=1`}},
		"no map":       {set: []string{"a[0].=x"}, args: []string{"--values=values.yaml"}, file: `{"a":[{}]}`},
		"no plain one": {set: []string{"a=\x7f\u0085\ufeff☃😀\u2028<\t"}, args: []string{"--values=values.yaml"}, file: `{"a":"\u007f\u0085\ufeff\u2603\U0001f600\u2028\u003c\t"}`},
	} {
		dir := t.TempDir()
		set, err := parse(tt.set)
		if err != nil {
			t.Fatal(err)
		}
		args, err := values(dir, set)
		if diff := cmp.Diff(tt.args, args); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		raw, _ := os.ReadFile(filepath.Join(dir, valuesFile)) //nolint:gosec // the test's own
		if got := strings.TrimSuffix(string(raw), "\n"); got != tt.file {
			t.Errorf("%s: the file has %s", name, got)
		}
	}
}

// TestApartIsWhole: what is in the file and what is in the arguments is together what was given, as helm puts it together.
func TestApartIsWhole(t *testing.T) {
	dir := t.TempDir()
	name := rapid.StringOfN(rapid.SampledFrom([]rune(`ab.,=[]\{ä"`)), 1, 4, -1)
	value := rapid.OneOf(rapid.SampledFrom([]string{"1", "0", "true", "null", "", "{1,x}", "{}", "-7"}), rapid.StringN(0, 5, -1))
	rapid.Check(t, func(t *rapid.T) {
		var set []string
		for range rapid.IntRange(0, 6).Draw(t, "values") {
			path := escapes.Replace(name.Draw(t, "name"))
			for range rapid.IntRange(0, 3).Draw(t, "names in it") {
				if rapid.Bool().Draw(t, "index") {
					path += fmt.Sprintf("[%d]", rapid.IntRange(0, 2).Draw(t, "at"))
				} else {
					path += "." + escapes.Replace(name.Draw(t, "name"))
				}
			}
			set = append(set, path+"="+value.Draw(t, "value"))
		}
		want, err := parse(set)
		if err != nil {
			return
		}
		if err := os.RemoveAll(filepath.Join(dir, valuesFile)); err != nil {
			t.Fatal(err)
		}
		args, err := values(dir, want)
		if err != nil {
			t.Fatal(err)
		}
		got := object{}
		if len(args) > 0 && args[0] == "--values="+valuesFile {
			raw, err := os.ReadFile(filepath.Join(dir, valuesFile)) //nolint:gosec // the test's own
			if err == nil {
				err = yaml.Unmarshal(raw, &got)
			}
			if err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			args = args[1:]
		}
		room := maxPlaces
		for _, a := range args {
			if err := assignments(strings.TrimPrefix(a, "--set="), got, &room); err != nil {
				t.Fatalf("%s: %v", a, err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: %s", set, diff)
		}
	})
}

// FuzzParse: whatever is given ends, and what is read of it can be written and has no more than its limits.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a=1,b={x,2}", `a\.b[1].c=x`, "a[0", "a={", "a.b.", "a[0].b=", `\`, "a[65536][65536]=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parse([]string{s})
		if err != nil {
			return
		}
		raw, err := document(got)
		if err != nil {
			t.Fatal(err)
		}
		var back object
		if err := yaml.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		plain, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var want object
		if err := json.Unmarshal(plain, &want); err != nil || !reflect.DeepEqual(want, back) {
			t.Errorf("%q: %v, and by YAML %v (%v)", s, want, back, err)
		}
	})
}

func TestSecrets(t *testing.T) {
	set, err := parse([]string{`db.adminPassword=a\,b`, "tokens={x,12}", "secret.name=y", `keys[0].private\.key=z`, "pin=3", "passthrough=true"})
	if err != nil {
		t.Fatal(err)
	}
	got := secrets(set, false)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"12", "a,b", "x", "z"}, got); diff != "" {
		t.Error(diff)
	}
}
