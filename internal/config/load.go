package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// envPrefix begins the name of every environment variable that is a key.
const envPrefix = "VNFM_"

// Error is everything that is wrong with a configuration, one line a problem.
type Error struct {
	// Problems are the lines; each names the place (file:line, or the variable) and the key.
	Problems []string
}

// Error implements error.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "configuration: " + e.Problems[0]
	}
	return "configuration:\n  " + strings.Join(e.Problems, "\n  ")
}

// Load reads the file (none when path is empty), lays the environment (as os.Environ gives it) over it, fills in what
// depends on other keys, and validates the whole. A wrong configuration is an *[Error] with all its problems; a file
// that cannot be read is another error.
func Load(path string, environ []string) (*Config, error) {
	cfg := Default()
	l := &loader{places: map[string]string{}}
	if path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		l.file(path, text, cfg)
	}
	l.environ(environ, cfg)
	if len(l.problems) == 0 {
		cfg.complete()
		l.problems = append(l.problems, cfg.problems(l.places)...)
	}
	if len(l.problems) > 0 {
		return nil, &Error{Problems: l.problems}
	}
	return cfg, nil
}

type loader struct {
	problems []string
	places   map[string]string // key → where it was set
}

func (l *loader) fail(place, key, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if key != "" {
		msg = key + ": " + msg
	}
	l.problems = append(l.problems, place+": "+msg)
}

// file decodes a YAML document into cfg.
func (l *loader) file(path string, text []byte, cfg *Config) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		l.fail(path, "", "%s", strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: "))
		return
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return // empty, or comments only
	}
	if !isNull(doc.Content[0]) {
		l.section(path, "", doc.Content[0], reflect.ValueOf(cfg).Elem())
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func (l *loader) section(path, prefix string, node *yaml.Node, into reflect.Value) {
	node = deref(node)
	at := func(n *yaml.Node) string { return fmt.Sprintf("%s:%d", path, n.Line) }
	if node.Kind != yaml.MappingNode {
		l.fail(at(node), strings.TrimSuffix(prefix, "."), "keys and values are wanted here, not a %s", kindName(node))
		return
	}
	fields := map[string]reflect.StructField{}
	var names []string
	for _, f := range structFields(into.Type()) {
		fields[f.Tag.Get("yaml")] = f
		names = append(names, f.Tag.Get("yaml"))
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := node.Content[i], deref(node.Content[i+1])
		key := prefix + k.Value
		f, ok := fields[k.Value]
		if !ok {
			l.fail(at(k), key, "unknown key%s", suggest(k.Value, names, prefix))
			continue
		}
		if line, dup := seen[k.Value]; dup {
			l.fail(at(k), key, "given a second time (first in line %d)", line)
			continue
		}
		seen[k.Value] = k.Line
		if isNull(v) {
			continue // "key:" with nothing behind it leaves the default
		}
		fv := into.FieldByIndex(f.Index)
		if isSection(f.Type) {
			l.section(path, key+".", v, fv)
			continue
		}
		l.places[key] = at(v)
		if err := setNode(fv, v); err != nil {
			l.fail(at(v), key, "%s", err)
		}
	}
}

func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "map"
	case yaml.SequenceNode:
		return "list"
	}
	return "single value"
}

// setNode sets a value that is not a section from its YAML node. Errors do not repeat the value of a secret.
func setNode(into reflect.Value, n *yaml.Node) error {
	switch into.Kind() {
	case reflect.Slice:
		list := []string{}
		switch n.Kind {
		case yaml.ScalarNode: // one element may stand alone
			list = append(list, n.Value)
		case yaml.SequenceNode:
			for _, e := range n.Content {
				if e = deref(e); e.Kind != yaml.ScalarNode {
					return errors.New("a list of single values is wanted")
				}
				list = append(list, e.Value)
			}
		default:
			return fmt.Errorf("a list is wanted, not a %s", kindName(n))
		}
		into.Set(reflect.ValueOf(list))
		return nil
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("a map is wanted, not a %s", kindName(n))
		}
		m := reflect.MakeMap(into.Type())
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], deref(n.Content[i+1])
			if v.Kind != yaml.ScalarNode {
				return fmt.Errorf("the value of %q is to be a single one", k.Value)
			}
			m.SetMapIndex(reflect.ValueOf(k.Value), reflect.ValueOf(v.Value).Convert(into.Type().Elem()))
		}
		into.Set(m)
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("a single value is wanted, not a %s", kindName(n))
	}
	return setText(into, n.Value)
}

// setText sets a value from its text form.
func setText(into reflect.Value, text string) error {
	switch into.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%q is not a duration (such as 10s or 5m)", text)
		}
		into.SetInt(int64(d))
		return nil
	case Bytes:
		b, err := ParseBytes(text)
		if err != nil {
			return err
		}
		into.SetInt(int64(b))
		return nil
	}
	switch into.Kind() {
	case reflect.String:
		into.SetString(text)
	case reflect.Bool:
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1":
			into.SetBool(true)
		case "false", "no", "off", "0":
			into.SetBool(false)
		default:
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case reflect.Int:
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		into.SetInt(int64(n))
	case reflect.Float64:
		n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || n != n {
			return fmt.Errorf("%q is not a number", text)
		}
		into.SetFloat(n)
	case reflect.Slice:
		list := []string{}
		for _, e := range strings.Split(text, ",") {
			if e = strings.TrimSpace(e); e != "" {
				list = append(list, e)
			}
		}
		into.Set(reflect.ValueOf(list))
	case reflect.Map:
		m := reflect.MakeMap(into.Type())
		for _, e := range strings.Split(text, ",") {
			if strings.TrimSpace(e) == "" {
				continue
			}
			k, v, ok := strings.Cut(e, "=")
			if !ok {
				return errors.New("a map is written as k=v,k2=v2")
			}
			m.SetMapIndex(reflect.ValueOf(strings.TrimSpace(k)), reflect.ValueOf(v).Convert(into.Type().Elem()))
		}
		into.Set(m)
	default:
		return fmt.Errorf("a %s cannot be set from text", into.Type())
	}
	return nil
}

// environ lays VNFM_… variables over cfg. Variables that are no key are left alone: Kubernetes, for one, sets some
// beginning with the name of a service, and a service may well be called vnfm.
func (l *loader) environ(environ []string, cfg *Config) {
	values := map[string]string{}
	for _, e := range environ {
		if name, v, ok := strings.Cut(e, "="); ok && strings.HasPrefix(name, envPrefix) {
			values[name] = v
		}
	}
	walk(reflect.ValueOf(cfg).Elem(), "", func(key string, _ reflect.StructField, v reflect.Value) {
		name := EnvName(key)
		text, ok := values[name]
		if !ok {
			return
		}
		l.places[key] = name
		if err := setText(v, text); err != nil {
			l.fail(name, key, "%s", err)
		}
	})
}

// EnvName returns the environment variable of a key: VNFM_LOG_LEVEL of log.level.
func EnvName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// isSection tells whether a field's type holds keys of its own.
func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct }

func structFields(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("yaml") != "" {
			out = append(out, f)
		}
	}
	return out
}

// walk visits every key that is no section, in the order of the structs.
func walk(v reflect.Value, prefix string, visit func(key string, f reflect.StructField, v reflect.Value)) {
	for _, f := range structFields(v.Type()) {
		key, fv := prefix+f.Tag.Get("yaml"), v.FieldByIndex(f.Index)
		if isSection(f.Type) {
			walk(fv, key+".", visit)
			continue
		}
		visit(key, f, fv)
	}
}

// suggest offers the known key that is closest to an unknown one.
func suggest(key string, names []string, prefix string) string {
	best, bestDist := "", 4
	sort.Strings(names)
	for _, n := range names {
		if d := distance(key, n); d < bestDist {
			best, bestDist = n, d
		}
	}
	if best == "" {
		where := "at the top are "
		if prefix != "" {
			where = "in " + strings.TrimSuffix(prefix, ".") + " are "
		}
		return "; known " + where + strings.Join(names, ", ")
	}
	return "; did you mean " + prefix + best + "?"
}

// distance is the number of single-letter edits between two words.
func distance(a, b string) int {
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
		}
		prev = cur
	}
	return prev[len(b)]
}
