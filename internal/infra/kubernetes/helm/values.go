package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// values returns the arguments by which helm gets a release's values. Every process of the machine may read a command line, so they
// are in a file in dir. Only whole numbers are not, with their names: from a file helm takes them for floating-point numbers, and a
// chart would have 1e+06 of 1000000.
func values(dir string, set map[string]any) ([]string, error) {
	var numbers []string
	rest, ok := apart(set, "", func(path string, n int64) { numbers = append(numbers, fmt.Sprintf("--set=%s=%d", path, n)) })
	if !ok {
		return numbers, nil
	}
	content, err := document(rest)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, valuesFile), content, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the values for helm: %w", err)
	}
	return append([]string{"--values=" + valuesFile}, numbers...), nil
}

// parse returns the values that helm makes of what is given to --set one after the other. An error does not tell
// what it is that cannot be read: it may be a part of a secret with a comma.
func parse(set []string) (map[string]any, error) {
	out := map[string]any{}
	room := maxPlaces
	for n, s := range set {
		if err := assignments(s, out, &room); err != nil {
			return nil, fmt.Errorf(`its value %d cannot be read: %w (in a value, \ goes before a comma)`, n+1, err)
		}
	}
	return out, nil
}

// apart returns values without the whole numbers, with which found is called, and how --set names them. not ok: there are no others.
func apart(v any, path string, found func(path string, n int64)) (rest any, ok bool) {
	switch v := v.(type) {
	case int64:
		found(path, v)
		return nil, false
	case []any:
		out := make([]any, len(v)) // a number's place is kept
		for n, item := range v {
			out[n], _ = apart(item, path+"["+strconv.Itoa(n)+"]", found)
		}
		return out, true
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := escapes.Replace(name)
			if path != "" {
				at = path + "." + at
			}
			if kept, ok := apart(v[name], at, found); ok {
				out[name] = kept
			}
		}
		return out, len(out) > 0 || len(v) == 0 && path != ""
	}
	return v, true
}

var escapes = strings.NewReplacer(`\`, `\\`, `=`, `\=`, `[`, `\[`, `,`, `\,`, `.`, `\.`)

// document words values as YAML in one line: as JSON, but with all that YAML may not have, or may take for something else, escaped.
func document(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, r := range string(raw) {
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = fmt.Appendf(out, `\U%08x`, r)
		}
	}
	return append(out, '\n'), nil
}

// secrets returns the values whose names say that they are secrets, as texts.
func secrets(v any, told bool) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			out = append(out, secrets(item, telling.MatchString(name))...)
		}
	case []any:
		for _, item := range v {
			out = append(out, secrets(item, told)...)
		}
	case string, int64:
		if told {
			out = append(out, fmt.Sprint(v))
		}
	}
	return out
}
