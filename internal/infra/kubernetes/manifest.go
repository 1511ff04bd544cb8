package kubernetes

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yaml2 "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// manifest is one object of a definition file.
type manifest struct {
	*unstructured.Unstructured
	at string // file and line
}

// How much the definition files of a VNF may hold in all.
const (
	maxObjects = 10000
	maxSize    = 64 << 20 // once aliases stand for what they are of
)

// allowance is how much more the definition files may hold.
type allowance struct{ objects, size int }

func fresh() *allowance { return &allowance{objects: maxObjects, size: maxSize} }

// take counts a document that has been read.
func (l *allowance) take(file string, line int, doc []byte) error {
	size := len(doc)
	if bytes.IndexByte(doc, '&') >= 0 && bytes.IndexByte(doc, '*') >= 0 { // as text it may be many times as long
		var value any
		if err := yaml2.Unmarshal(doc, &value); err == nil { // else it is told with the rest
			size = max(size, expanded(value, l.size))
		}
	}
	if l.size -= size; l.size < 0 {
		return lcm.Errorf(lcm.KindTerminal, "%s:%d: the definition files hold more than %d MiB, with what aliases stand for", file, line, maxSize>>20)
	}
	return nil
}

// expanded tells how long a value is, no further than what is beyond most.
func expanded(v any, most int) int {
	size := 1
	switch t := v.(type) {
	case string:
		size += len(t)
	case []any:
		for _, e := range t {
			if size += expanded(e, most-size); size > most {
				break
			}
		}
	case map[any]any:
		for key, e := range t {
			size += expanded(key, most-size)
			if size += expanded(e, most-size); size > most {
				break
			}
		}
	}
	return size
}

// parse reads the objects of a definition file: YAML or JSON, any number of documents, those that are empty left out, lists
// taken apart. Terminal, naming file and line: it is not YAML, or a document is no object.
func (l *allowance) parse(file string, raw []byte) ([]manifest, error) {
	var out []manifest
	for _, doc := range documents(raw) {
		if err := l.take(file, doc.line, doc.text); err != nil {
			return nil, err
		}
		content, err := yaml.YAMLToJSONStrict(doc.text)
		if err != nil {
			return nil, lcm.Errorf(lcm.KindTerminal, "%s: %s", file, moved(err.Error(), doc.line-1))
		}
		var value any
		if err := json.Unmarshal(content, &value); err != nil {
			return nil, lcm.Errorf(lcm.KindTerminal, "%s:%d: %w", file, doc.line, err)
		}
		if value == nil {
			continue
		}
		found, err := objectsIn(value, fmt.Sprintf("%s:%d", file, doc.begin()))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
		if l.objects -= len(found); l.objects < 0 {
			return nil, lcm.Errorf(lcm.KindTerminal, "%s: there are more than %d objects", file, maxObjects)
		}
	}
	return out, nil
}

// objectsIn returns the object that a document is, or those of the list that it is.
func objectsIn(value any, at string) ([]manifest, error) {
	bad := func(format string, args ...any) error {
		return lcm.Errorf(lcm.KindTerminal, "%s: %s", at, fmt.Sprintf(format, args...))
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, bad("the document is not an object of Kubernetes")
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if s, ok := content[key].(string); !ok || s == "" {
			return nil, bad("the object has no %s", key)
		}
	}
	if items, ok := content["items"].([]any); ok && strings.HasSuffix(content["kind"].(string), "List") {
		var out []manifest
		for n, item := range items {
			found, err := objectsIn(item, at)
			if err != nil {
				return nil, fmt.Errorf("item %d of the list: %w", n, err)
			}
			out = append(out, found...)
		}
		return out, nil
	}
	for _, key := range []string{"metadata", "spec"} {
		if v, ok := content[key]; ok && v != nil {
			if _, ok := v.(map[string]any); !ok && key == "metadata" {
				return nil, bad("%s is not a map", key)
			}
		}
	}
	for _, key := range []string{"name", "namespace"} {
		v, found, _ := unstructured.NestedFieldNoCopy(content, "metadata", key)
		if _, ok := v.(string); found && v != nil && !ok {
			return nil, bad("metadata.%s is not a text", key)
		}
	}
	u := &unstructured.Unstructured{Object: content}
	clean(u)
	return []manifest{{u, at}}, nil
}

// clean drops what only the API server says of an object.
func clean(u *unstructured.Unstructured) {
	delete(u.Object, "status")
	for _, key := range []string{"creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(u.Object, "metadata", key)
	}
	unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
}

// document is a part of a file between separators.
type document struct {
	text []byte
	line int // of its first line, from 1
}

// begin returns the line on which the document says something first.
func (d document) begin() int {
	line := d.line
	for l := range bytes.Lines(d.text) {
		if t := bytes.TrimSpace(l); len(t) > 0 && t[0] != '#' && !bytes.HasPrefix(t, []byte("---")) {
			break
		}
		line++
	}
	return line
}

// documents takes a file apart at the lines that begin with "---", and at "...".
func documents(raw []byte) []document {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	var out []document
	now := document{line: 1}
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		switch text := bytes.TrimRight(line, " \t\r\n"); {
		case separates(text, "---"):
			out = append(out, now)
			now = document{line: n, text: append([]byte(nil), line...)}
		case separates(text, "..."):
			out = append(out, now)
			now = document{line: n + 1}
		default:
			now.text = append(now.text, line...)
		}
	}
	return append(out, now)
}

func separates(line []byte, mark string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t')
}

var lineNumber = regexp.MustCompile(`\bline (\d+)\b`)

// moved adds to the line numbers in a message of the YAML library.
func moved(message string, by int) string {
	message = strings.TrimPrefix(message, "error converting YAML to JSON: ")
	message = strings.TrimPrefix(message, "yaml: ")
	if many, ok := strings.CutPrefix(message, "unmarshal errors:"); ok {
		message = strings.Join(strings.FieldsFunc(many, func(r rune) bool { return r == '\n' }), ";")
	}
	message = strings.TrimSpace(message)
	return lineNumber.ReplaceAllStringFunc(message, func(s string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "line "))
		if err != nil {
			return s
		}
		return "line " + strconv.Itoa(n+by)
	})
}
