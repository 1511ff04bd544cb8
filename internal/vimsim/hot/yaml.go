package hot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	yaml "go.yaml.in/yaml/v4"
)

// maxNodes bounds how many values one document may expand to, aliases included.
const maxNodes = 1 << 20

// Decode reads a YAML or JSON document into plain values: map[string]any,
// []any, string, int64, float64, bool and nil. Dates stay strings, as in Heat.
func Decode(text []byte) (any, error) {
	if t := bytes.TrimLeft(text, " \t\r\n"); len(t) > 0 && t[0] == '{' {
		if v, err := decodeJSON(text); err == nil {
			return v, nil
		}
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	budget := maxNodes
	return fromNode(&n, &budget, 0)
}

func decodeJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return Normalize(v), nil
}

// Normalize turns the numbers of decoded JSON into int64 or float64 and map
// types into map[string]any, so that values compare with reflect.DeepEqual.
func Normalize(v any) any {
	switch t := v.(type) {
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i
		}
		f, _ := t.Float64()
		return f
	case int:
		return int64(t)
	case float64:
		if t == math.Trunc(t) && math.Abs(t) < 1<<53 {
			return int64(t)
		}
		return t
	case map[string]any:
		m := make(map[string]any, len(t))
		for k, x := range t {
			m[k] = Normalize(x)
		}
		return m
	case []any:
		l := make([]any, len(t))
		for i, x := range t {
			l[i] = Normalize(x)
		}
		return l
	}
	return v
}

func fromNode(n *yaml.Node, budget *int, depth int) (any, error) {
	*budget--
	if *budget < 0 || depth > 200 {
		return nil, errors.New("the document is too large or too deep")
	}
	switch n.Kind {
	case 0:
		return nil, nil
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return fromNode(n.Content[0], budget, depth+1)
	case yaml.AliasNode:
		return fromNode(n.Alias, budget, depth+1)
	case yaml.SequenceNode:
		l := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := fromNode(c, budget, depth+1)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		return l, nil
	case yaml.MappingNode:
		return mapNode(n, budget, depth)
	}
	return scalar(n), nil
}

func mapNode(n *yaml.Node, budget *int, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		v, err := fromNode(c, budget, depth+1)
		if err != nil {
			return nil, err
		}
		if k.Tag == "!!merge" {
			if mm, ok := v.(map[string]any); ok {
				for mk, mv := range mm {
					if _, have := m[mk]; !have {
						m[mk] = mv
					}
				}
			}
			continue
		}
		m[k.Value] = v
	}
	return m, nil
}

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i
		}
	case "!!float":
		var f float64
		if n.Decode(&f) == nil {
			return f
		}
	}
	return n.Value
}

// String renders a plain value the way Heat shows it in text: booleans as
// True/False, maps and lists as JSON, nil as the empty string.
func String(v any) string {
	switch t := v.(type) {
	case nil:
		return ""
	case string:
		return t
	case bool:
		if t {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(t, 10)
	case float64:
		return strconv.FormatFloat(t, 'g', -1, 64)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
