package hot

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const head = "heat_template_version: 2018-08-31\n"

func parsed(t *testing.T, text string) *Template {
	t.Helper()
	tm, err := ParseText(head + text)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

func list(v ...any) []any { return v }

func TestFunctions(t *testing.T) {
	tm := parsed(t, "conditions:\n  big: {equals: [{get_param: size}, large]}\n  both: {and: [big, {not: {equals: [a, b]}}]}\n  any: {or: [{equals: [1, 2]}, big]}\nresources: {}\n")
	r := &Resolver{
		Template: tm,
		Params: map[string]any{
			"size": "large", "list": list("a", "b", "c"), "nested": map[string]any{"k": list(map[string]any{"x": "deep"})}, "n": int64(3),
		},
		Files:       map[string]string{"f.sh": "text"},
		GetResource: func(n string) (any, error) { return "id-" + n, nil },
		GetAttr: func(n, a string, path []any) (any, error) {
			v, _ := Select(map[string]any{"ips": list(map[string]any{"ip": "10.0.0.1"})}[a], path)
			return v, nil
		},
	}
	tests := []struct {
		in   string
		want any
		fail string
	}{
		{in: "{get_param: n}", want: int64(3)},
		{in: "{get_param: [nested, k, 0, x]}", want: "deep"},
		{in: "{get_param: [list, 1]}", want: "b"},
		{in: "{get_param: [list, -1]}", want: "c"},
		{in: "{get_param: [nested, missing, x]}", want: ""},
		{in: "{get_param: nope}", fail: "The Parameter (nope) was not provided."},
		{in: "{get_resource: r}", want: "id-r"},
		{in: "{get_attr: [r, ips, 0, ip]}", want: "10.0.0.1"},
		{in: "{get_attr: [r, ips, {get_param: [nested, none]}, ip]}", want: nil},
		{in: "{get_file: f.sh}", want: "text"},
		{in: "{get_file: g.sh}", fail: `No content found in the "files" section for get_file path: g.sh`},
		{in: "{str_replace: {template: 'a $x $xy', params: {$x: 1, $xy: [2]}}}", want: "a 1 [2]"},
		{in: "{str_replace_strict: {template: 'a $x', params: {$x: 1, $y: 2}}}", fail: "The following params were not found in the template: $y"},
		{in: "{repeat: {template: {p: '<%i%>'}, for_each: {'%i%': {get_param: list}}}}", want: list(map[string]any{"p": "<a>"}, map[string]any{"p": "<b>"}, map[string]any{"p": "<c>"})},
		{in: "{repeat: {template: 'A-B', for_each: {A: [1, 2], B: [3, 4]}}}", want: list("1-3", "1-4", "2-3", "2-4")},
		{in: "{repeat: {template: 'A-B', permutations: false, for_each: {A: [1, 2], B: [3, 4]}}}", want: list("1-3", "2-4")},
		{in: "{repeat: {template: x, for_each: 3}}", fail: "must contain a map"},
		{in: "{list_join: [', ', {get_param: list}, [z]]}", want: "a, b, c, z"},
		{in: "{list_join: [', ']}", fail: "list_join"},
		{in: "{str_split: [',', 'a,b', 1]}", want: "b"},
		{in: "{str_split: [',', 'a,b']}", want: list("a", "b")},
		{in: "{map_merge: [{a: 1, b: 2}, {b: 3}]}", want: map[string]any{"a": int64(1), "b": int64(3)}},
		{in: "{map_merge: [1]}", fail: "Items to merge must be maps."},
		{in: "{map_replace: [{k1: v1, k2: v2}, {keys: {k1: K1}, values: {v2: V2}}]}", want: map[string]any{"K1": "v1", "k2": "V2"}},
		{in: "{map_replace: [{k1: v1, k2: v2}, {keys: {k1: k2}}]}", fail: "collides"},
		{in: "{digest: [sha1, abc]}", want: "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{in: "{digest: [md5, abc]}", want: "900150983cd24fb0d6963f7d28e17f72"},
		{in: "{digest: [crc, abc]}", fail: "Algorithm must be one of"},
		{in: "{list_concat: [[1], [2]]}", want: list(int64(1), int64(2))},
		{in: "{list_concat_unique: [[1, 2], [2]]}", want: list(int64(1), int64(2))},
		{in: "{filter: [[a], {get_param: list}]}", want: list("b", "c")},
		{in: "{contains: [b, {get_param: list}]}", want: true},
		{in: "{if: [big, yes_, no_]}", want: "yes_"},
		{in: "{if: [both, 1, 2]}", want: int64(1)},
		{in: "{if: [any, 1, 2]}", want: int64(1)},
		{in: "{if: [{not: big}, 1, 2]}", want: int64(2)},
		{in: "[1, {if: [{not: big}, 2]}]", want: list(int64(1))},
		{in: "{if: [nope, 1, 2]}", fail: `Invalid condition "nope"`},
		{in: "{yaql: {expression: x}}", fail: "not supported"},
		{in: "2013-05-23", want: "2013-05-23"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			v, err := Decode([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Resolve(v)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Fatalf("got %v, %v; want error %q", got, err, tt.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	tests := []struct {
		schema string
		in     any
		want   any
		show   string
		fail   string
	}{
		{schema: "{type: string}", in: int64(5), want: "5", show: "5"},
		{schema: "{type: string, hidden: true}", in: "s", want: "s", show: "******"},
		{schema: "{type: string, default: d}", in: nil, want: "d", show: "d"},
		{schema: "{type: number}", in: "1.5", want: 1.5, show: "1.5"},
		{schema: "{type: number}", in: "x", fail: "Parameter 'p' is invalid: could not convert string to float: 'x'"},
		{schema: "{type: json}", in: `{"a": [1]}`, want: map[string]any{"a": list(int64(1))}, show: `{"a":[1]}`},
		{schema: "{type: json}", in: map[string]any{"a": true}, want: map[string]any{"a": true}, show: `{"a":true}`},
		{schema: "{type: json}", in: "nope", fail: "Value must be valid JSON"},
		{schema: "{type: comma_delimited_list}", in: "a, b", want: list("a", "b"), show: "a,b"},
		{schema: "{type: boolean}", in: "yes", want: true, show: "True"},
		{schema: "{type: boolean}", in: "maybe", fail: "Unrecognized value 'maybe'"},
		{schema: "{type: string, constraints: [{allowed_values: [a, b]}]}", in: "c", fail: "c is not an allowed value ['a', 'b']"},
		{schema: "{type: string, constraints: [{allowed_pattern: '[a-z]+'}]}", in: "a1", fail: `"a1" does not match pattern "[a-z]+"`},
		{schema: "{type: string, constraints: [{length: {max: 2}}]}", in: "abc", fail: "length (3) is out of range (min: None, max: 2)"},
		{schema: "{type: number, constraints: [{range: {min: 1, max: 5}}]}", in: int64(6), fail: "6 is out of range (min: 1, max: 5)"},
		{schema: "{type: number, constraints: [{range: {min: 1}, description: too small}]}", in: int64(0), fail: "Parameter 'p' is invalid: too small"},
	}
	for _, tt := range tests {
		t.Run(tt.schema, func(t *testing.T) {
			tm := parsed(t, "parameters: {p: "+tt.schema+"}\n")
			got, err := tm.Values(map[string]any{"p": tt.in}, nil)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Fatalf("got %v, %v; want %q", got, err, tt.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got["p"]); d != "" {
				t.Error(d)
			}
			if s := tm.Params["p"].Show(got["p"]); s != tt.show {
				t.Errorf("shown as %q, want %q", s, tt.show)
			}
		})
	}
}

func TestBadTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "The template is not a JSON object or YAML mapping.",
		"resources: {}":             "Template format version not found.",
		head + "foo: 1":             "The template section is invalid: foo",
		head + "resources: []":      `"resources" must contain a map`,
		head + "resources: {a: {}}": "Each resource must contain a type key.",
		head + "resources: {a: {type: T, bad: 1}}":                          `"bad" is not a valid keyword inside a resource definition`,
		head + "parameters: {a: {}}":                                        "Missing parameter type for parameter: a",
		head + "parameters: {a: {type: number, default: x}}":                "Invalid default x",
		head + "outputs: {a: {}}":                                           "Each output must contain a value key.",
		head + "parameters: {a: {type: string}}\nresources: {a: {type: T}}": "Duplicate names {'a'}",
	} {
		_, err := ParseText(text)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestOrder(t *testing.T) {
	tm := parsed(t, "resources:\n  a: {type: T, properties: {x: {get_resource: c}}}\n  b: {type: T, depends_on: a}\n  c: {type: T}\n")
	got, err := tm.Order()
	if d := cmp.Diff([]string{"c", "a", "b"}, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head + "parameters: {p: {type: json}}\nresources: {a: {type: T, properties: {x: {get_param: [p, 0]}}}}\n")
	f.Add(`{"heat_template_version": "2013-05-23", "resources": {"a": {"type": "T", "depends_on": ["a"]}}}`)
	f.Add(head + "a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		tm, err := ParseText(text)
		if err != nil {
			return
		}
		if tm.CheckRefs() != nil {
			return
		}
		vals, err := tm.Values(nil, nil)
		if err != nil {
			return
		}
		r := &Resolver{Template: tm, Params: vals, GetResource: func(string) (any, error) { return "", nil }, GetAttr: func(string, string, []any) (any, error) { return nil, nil }}
		for _, res := range tm.Resources {
			_, _ = r.Properties(res.Properties)
			_, _ = r.Condition(res.Condition)
		}
	})
}
