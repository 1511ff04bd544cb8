package kubernetes

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // kind/name@at
		err        string
	}{
		{name: "one", text: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", want: []string{"Pod/a@f.yaml:1"}},
		{
			name: "several, with empty documents and a trailing separator",
			text: "---\n# only a comment\n---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n---\n---\n# about b\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n---\n",
			want: []string{"Pod/a@f.yaml:4", "Service/b@f.yaml:11"},
		},
		{name: "carriage returns and a byte order mark", text: "\xef\xbb\xbfapiVersion: v1\r\nkind: Pod\r\nmetadata: {name: a}\r\n---\r\n", want: []string{"Pod/a@f.yaml:1"}},
		{name: "end of document", text: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n...\n", want: []string{"Pod/a@f.yaml:1"}},
		{name: "JSON", text: `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}`, want: []string{"Pod/a@f.yaml:1"}},
		{
			name: "list", text: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
			want: []string{"Pod/a@f.yaml:1", "Pod/b@f.yaml:1"},
		},
		{name: "a separator within a text", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    y\n", want: []string{"ConfigMap/a@f.yaml:1"}},
		{name: "nothing", text: "---\n---\n"},
		{name: "not YAML", text: "apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: [\nmetadata: {name: a}\n", err: "f.yaml: line "},
		{name: "a tab", text: "apiVersion: v1\nkind: Pod\n---\nmetadata:\n\tname: a\n", err: "f.yaml: line 5: found character that cannot start any token"},
		{name: "a key twice", text: "---\napiVersion: v1\nkind: Pod\nkind: Service\n", err: `f.yaml: line 4: key "kind" already set in map`},
		{name: "a text", text: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nhello\n", err: "f.yaml:5: the document is not an object of Kubernetes"},
		{name: "no kind", text: "apiVersion: v1\n", err: "f.yaml:1: the object has no kind"},
		{name: "no apiVersion", text: "\nkind: Pod\n", err: "f.yaml:2: the object has no apiVersion"},
		{name: "kind is a number", text: "apiVersion: v1\nkind: 5\n", err: "f.yaml:1: the object has no kind"},
		{name: "metadata is a text", text: "apiVersion: v1\nkind: Pod\nmetadata: a\n", err: "f.yaml:1: metadata is not a map"},
		{name: "name is a number", text: "apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n", err: "f.yaml:1: metadata.name is not a text"},
		{name: "an item without kind", text: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1}\n", err: "f.yaml:1: the object has no kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := fresh().parse("f.yaml", []byte(tt.text))
			if tt.err != "" {
				if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("parse: %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range found {
				got = append(got, m.GetKind()+"/"+m.GetName()+"@"+m.at)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseReadsAsKubectlDoes(t *testing.T) {
	found, err := fresh().parse("f.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  creationTimestamp: null\n  uid: x\n"+
		"data: {a: yes, b: 0644, c: 1.5, d: \"yes\"}\nstatus: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
		"data": map[string]any{"a": true, "b": int64(420), "c": 1.5, "d": "yes"},
	}
	if diff := cmp.Diff(want, found[0].Object); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n...\n--- x\n"))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]\n"))
	f.Add([]byte("a: &a [x]\nb: [*a, *a]\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var all []byte
		for _, d := range documents(raw) {
			all = append(all, d.text...)
		}
		if rest := bytes.ReplaceAll(all, []byte("..."), nil); len(rest) > len(raw) {
			t.Errorf("the documents hold more than the file: %q", all)
		}
		found, err := fresh().parse("f.yaml", raw)
		if err == nil {
			for _, m := range found {
				if m.GetKind() == "" || m.GetAPIVersion() == "" {
					t.Errorf("an object without kind: %v", m.Object)
				}
			}
		} else if !lcm.Is(err, lcm.KindTerminal) {
			t.Errorf("not terminal: %v", err)
		}
	})
}

// TestParseBounds: what aliases stand for counts, and so does what other files hold.
func TestParseBounds(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: &x " + strings.Repeat("a", 1<<20) + "\ndata:\n")
	for n := range 100 {
		fmt.Fprintf(&bomb, "  k%d: *x\n", n)
	}
	if _, err := fresh().parse("f.yaml", []byte(bomb.String())); !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "f.yaml:1: the definition files hold more than 64 MiB") {
		t.Errorf("aliases of a long text: %v", err)
	}
	if found, err := fresh().parse("f.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: &x abc\ndata: {a: *x, b: *x}\n")); err != nil || len(found) != 1 {
		t.Errorf("a few aliases: %v", err)
	}
	left := fresh()
	one := []byte("apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n", maxObjects/2))
	for n := range 3 {
		if _, err := left.parse("f.yaml", one); (err != nil) != (n == 2) {
			t.Errorf("file %d: %v", n, err)
		}
	}
	left = &allowance{objects: 10, size: 100}
	if _, err := left.parse("f.yaml", []byte("# "+strings.Repeat("a", 60)+"\n")); err != nil {
		t.Error(err)
	}
	if _, err := left.parse("g.yaml", []byte("# "+strings.Repeat("a", 60)+"\n")); err == nil {
		t.Error("the second file is not counted with the first")
	}
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{
		"Files/a.yaml": "Files/a.yaml", "Files/a?b.yaml": "Files/a?b.yaml",
		"https://user:secret@host/a.yaml?signature=secret#b": "https://host/a.yaml",
	} {
		if got := label(name); got != want {
			t.Errorf("label(%s) = %s", name, got)
		}
	}
}
