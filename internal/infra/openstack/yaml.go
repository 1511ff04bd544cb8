package openstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Limits of a template: nesting, and values once aliases are expanded.
const (
	maxYAMLDepth  = 100
	maxYAMLValues = 500_000
)

// The forms of plain scalars in YAML 1.1, which Heat and Python read by. Timestamps stay strings, as in Heat.
var (
	yamlBool  = regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	yamlNull  = regexp.MustCompile(`^(?:~|null|Null|NULL|)$`)
	yamlInt   = regexp.MustCompile(`^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$`)
	yamlBase  = regexp.MustCompile(`^[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+$`)
	yamlFloat = regexp.MustCompile(`^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)$`)
)

// parseYAML reads one YAML document as Python's safe loader would, but for timestamps, which stay strings: maps with
// string keys, lists, strings, bools, nil, and json.Number for numbers.
func parseYAML(raw []byte) (any, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	if doc.Kind == 0 {
		return nil, nil
	}
	r := yamlReader{left: maxYAMLValues}
	return r.value(root(&doc), maxYAMLDepth)
}

type yamlReader struct{ left int }

func (r *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	if r.left--; r.left < 0 {
		return nil, errors.New("too many values")
	}
	if depth == 0 {
		return nil, fmt.Errorf("line %d: nested too deeply", n.Line)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias, depth-1)
	case yaml.ScalarNode:
		return scalar(n), nil
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := r.value(c, depth-1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		return r.mapping(n, depth)
	}
	return nil, fmt.Errorf("line %d: not a value", n.Line)
}

func (r *yamlReader) mapping(n *yaml.Node, depth int) (any, error) {
	out := make(map[string]any, len(n.Content)/2)
	var merged []map[string]any
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key is not a scalar", k.Line)
		}
		value, err := r.value(v, depth-1)
		if err != nil {
			return nil, err
		}
		if k.Value == "<<" && plain(k) {
			switch t := value.(type) {
			case map[string]any:
				merged = append(merged, t)
			case []any:
				for _, e := range t {
					if m, ok := e.(map[string]any); ok {
						merged = append(merged, m)
					}
				}
			}
			continue
		}
		out[k.Value] = value
	}
	for _, m := range merged {
		for k, v := range m {
			if _, own := out[k]; !own {
				out[k] = v
			}
		}
	}
	return out, nil
}

// plain tells a scalar without quotes and without a tag of its own.
func plain(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
}

func scalar(n *yaml.Node) any {
	if !plain(n) {
		return n.Value
	}
	v := n.Value
	switch {
	case yamlNull.MatchString(v):
		return nil
	case yamlBool.MatchString(v):
		switch strings.ToLower(v) {
		case "yes", "true", "on":
			return true
		}
		return false
	case yamlInt.MatchString(v):
		if i, ok := new(big.Int).SetString(intText(v), 0); ok {
			return json.Number(i.String())
		}
	case yamlBase.MatchString(v):
		return json.Number(sexagesimal(v))
	case yamlFloat.MatchString(v):
		f, err := strconv.ParseFloat(strings.ReplaceAll(v, "_", ""), 64)
		if err == nil && !math.IsInf(f, 0) {
			s := strconv.FormatFloat(f, 'g', -1, 64)
			if !strings.ContainsAny(s, ".e") {
				s += ".0" // it stays a float for the reader
			}
			return json.Number(s)
		}
	}
	return v
}

// intText is a YAML 1.1 integer as big.Int reads it.
func intText(v string) string {
	return strings.TrimPrefix(strings.ReplaceAll(v, "_", ""), "+")
}

func sexagesimal(v string) string {
	v = strings.ReplaceAll(v, "_", "")
	negative := strings.HasPrefix(v, "-")
	total := new(big.Int)
	for _, part := range strings.Split(strings.TrimLeft(v, "+-"), ":") {
		p, _ := new(big.Int).SetString(part, 10)
		total.Mul(total, big.NewInt(60))
		total.Add(total, p)
	}
	if negative {
		total.Neg(total)
	}
	return total.String()
}
