package vnfd

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"
)

// scope is a service template in which functions are resolved.
type scope struct {
	r   *reader
	doc *document
}

// maxGetInput bounds a chain of inputs whose defaults are inputs again.
const maxGetInput = 10

// functionOf returns the name of the TOSCA function that a value calls, or "".
func functionOf(n *node) string {
	if !n.isMap() || len(n.keys) != 1 {
		return ""
	}
	switch k := n.keys[0].key; k {
	case "get_input", "get_property", "get_attribute", "get_operation_output",
		"get_nodes_of_type", "get_artifact", "concat", "token", "join":
		return k
	}
	return ""
}

// resolve replaces get_input by the input's default. It returns nil for a
// value that is known only later.
func (s scope) resolve(n *node) *node {
	for range maxGetInput {
		switch functionOf(n) {
		case "":
			return n
		case "get_input":
			name, ok := n.keys[0].val.str()
			if !ok {
				return nil
			}
			n = s.doc.topology().get("inputs", name, "default")
			if n == nil {
				return nil
			}
		default:
			return nil
		}
	}
	return nil
}

// checkProperties checks a properties section against a type: required ones
// are there, values fit and constraints hold (TOSCA Simple Profile 1.2 §3.6).
func (s scope) checkProperties(at pos, what, typeName string, given *node) {
	if !given.isNull() && !given.isMap() {
		s.r.add(given.pos, RuleSyntax, "the properties of %s are not a mapping", what)
		return
	}
	for _, p := range s.r.types.properties(typeName) {
		if !s.r.spend(1) {
			return
		}
		v := given.get(p.name)
		if v.isNull() {
			if p.required() {
				s.r.add(at, RuleRequired, "%s lacks the required property %q", what, p.name)
			}
			continue
		}
		s.checkValue(v, p.def, fmt.Sprintf("property %q of %s", p.name, what), 0)
	}
}

// required tells whether a value has to be given (the keyword's default is
// true, and a default value makes up for it).
func (p propDef) required() bool {
	if !p.def.isMap() {
		return false
	}
	if req := p.def.get("required"); req != nil && req.value == false {
		return false
	}
	return p.def.get("default") == nil
}

// checkValue checks v against a property definition or an entry_schema.
func (s scope) checkValue(v, def *node, what string, depth int) {
	v = s.resolve(v)
	if v.isNull() || !def.isMap() || depth > maxYAMLDepth || !s.r.spend(1) {
		return
	}
	typeName := def.get("type").string()
	if !s.fits(v, typeName, what) {
		return
	}
	entryDef := def.get("entry_schema")
	if t, ok := entryDef.str(); ok {
		entryDef = &node{pos: entryDef.pos, kind: mapping, at: map[string]int{"type": 0},
			keys: []entry{{"type", entryDef.pos, &node{kind: scalar, value: t, text: t}}}}
	}
	switch typeName {
	case "list":
		for i, item := range v.elems() {
			s.checkValue(item, entryDef, fmt.Sprintf("%s, item %d", what, i+1), depth+1)
		}
	case "map":
		for _, e := range v.entries() {
			s.checkValue(e.val, entryDef, fmt.Sprintf("%s, key %q", what, e.key), depth+1)
		}
	default:
		s.checkData(v, typeName, what, depth)
	}
	for _, c := range def.get("constraints").elems() {
		for _, e := range c.entries() {
			if !s.r.spend(1 + cost(v, e.val)) {
				return
			}
			if why := violation(v, typeName, e.key, e.val); why != "" {
				s.r.add(v.pos, RuleConstraint, "%s %s", what, why)
			}
		}
	}
}

// checkData checks the fields of a value of a complex data type.
func (s scope) checkData(v *node, typeName, what string, depth int) {
	for _, p := range s.r.types.properties(typeName) {
		if !s.r.spend(1) {
			return
		}
		field := v.get(p.name)
		if field.isNull() {
			if p.required() {
				s.r.add(v.pos, RuleRequired, "%s lacks the required field %q", what, p.name)
			}
			continue
		}
		s.checkValue(field, p.def, fmt.Sprintf("%s, field %q", what, p.name), depth+1)
	}
}

// fits reports a value that is not of the type. Types without a definition
// fit everything.
func (s scope) fits(v *node, typeName, what string) bool {
	ok, want := true, typeName
	number, isNumber := v.value.(json.Number)
	text, isText := v.str()
	switch typeName {
	case "string":
		_, ok = v.value.(string)
		ok = ok && v.kind == scalar
	case "integer":
		if isText && !isNumber {
			number = json.Number(text)
		}
		_, ok = new(big.Int).SetString(string(number), 10)
		ok = ok && v.kind == scalar
	case "float":
		_, err := number.Float64()
		ok = isNumber && err == nil
	case "boolean":
		_, ok = v.value.(bool)
		ok = ok || strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
	case "list", "range":
		ok = v.isList()
	case "map":
		ok = v.isMap()
	case "version", "timestamp":
		ok = v.kind == scalar
	case "scalar-unit.size":
		if _, err := sizeInBytes(text); err != nil {
			s.r.add(v.pos, RuleSize, "%s: %v", what, err)
			return false
		}
	case "scalar-unit.time", "scalar-unit.frequency", "scalar-unit.bitrate":
		_, ok = quantity(v, typeName)
	default:
		if _, defined := s.r.types.defs[typeName]; defined && len(s.r.types.properties(typeName)) > 0 {
			ok = v.isMap()
		}
	}
	if !ok {
		s.r.add(v.pos, RuleValue, "%s is not of type %s", what, want)
	}
	return ok
}

var unitTables = map[string]map[string]string{
	"scalar-unit.time": {"d": "86400", "h": "3600", "m": "60", "s": "1", "ms": "1/1000", "us": "1/1000000", "ns": "1/1000000000"},
	"scalar-unit.frequency": {
		"hz": "1", "khz": "1000", "mhz": "1000000", "ghz": "1000000000"},
	"scalar-unit.bitrate": {
		"bps": "1", "kbps": "1000", "kibps": "1024", "mbps": "1000000", "mibps": "1048576",
		"gbps": "1000000000", "gibps": "1073741824", "tbps": "1000000000000", "tibps": "1099511627776"},
}

// quantity returns a scalar as a number in its type's base unit.
func quantity(v *node, typeName string) (*big.Rat, bool) {
	text, ok := v.str()
	if !ok || len(text) > maxNumeral {
		return nil, false
	}
	switch typeName {
	case "scalar-unit.size":
		n, err := sizeInBytes(text)
		return n, err == nil
	case "scalar-unit.time", "scalar-unit.frequency", "scalar-unit.bitrate":
		n, unit, err := splitScalar(text)
		if err != nil {
			return nil, false
		}
		factor, ok := new(big.Rat).SetString(unitTables[typeName][unit])
		if !ok {
			return nil, false
		}
		return n.Mul(n, factor), true
	}
	if number, isNumber := v.value.(json.Number); isNumber {
		text = string(number)
	}
	return plainNumber(text)
}

// plainNumber parses a number but refuses exponents that would make exact
// arithmetic expensive.
func plainNumber(s string) (*big.Rat, bool) {
	if _, exp, has := strings.Cut(strings.ToLower(s), "e"); has && len(strings.TrimLeft(exp, "+-0")) > 3 {
		return nil, false
	}
	if strings.ContainsAny(s, "/_xXbBoOpP") {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// cost estimates the work of checking a constraint: the list to search, or the
// pattern to compile and the text to match.
func cost(v, arg *node) int {
	return len(arg.elems()) + len(arg.string())/8 + len(v.string())/8
}

// violation returns how v breaks a constraint clause (TOSCA Simple Profile 1.2
// §3.6.3), or "".
func violation(v *node, typeName, op string, arg *node) string {
	switch op {
	case "equal":
		if !equal(v, arg, typeName) {
			return fmt.Sprintf("is not %q", clip(arg.string()))
		}
	case "valid_values":
		for _, a := range arg.elems() {
			if equal(v, a, typeName) {
				return ""
			}
		}
		if arg.isList() {
			return fmt.Sprintf("has the value %q, which is not one of [%s]", clip(v.string()), clip(strings.Join(arg.strings(), ", ")))
		}
	case "greater_than", "greater_or_equal", "less_than", "less_or_equal":
		got, ok1 := quantity(v, typeName)
		bound, ok2 := quantity(arg, typeName)
		if !ok1 || !ok2 {
			return ""
		}
		c := got.Cmp(bound)
		if op == "greater_than" && c <= 0 || op == "greater_or_equal" && c < 0 ||
			op == "less_than" && c >= 0 || op == "less_or_equal" && c > 0 {
			return fmt.Sprintf("has the value %q, which is not %s %q", clip(v.string()), strings.ReplaceAll(op, "_", " "), clip(arg.string()))
		}
	case "in_range":
		bounds := arg.elems()
		got, ok := quantity(v, typeName)
		if len(bounds) != 2 || !ok {
			return ""
		}
		low, okLow := quantity(bounds[0], typeName)
		high, okHigh := quantity(bounds[1], typeName)
		if okLow && got.Cmp(low) < 0 || okHigh && got.Cmp(high) > 0 {
			return fmt.Sprintf("has the value %q, which is not in the range [%s]", clip(v.string()), strings.Join(arg.strings(), ", "))
		}
	case "length", "min_length", "max_length":
		bound, ok := quantity(arg, "integer")
		if !ok {
			return ""
		}
		c := new(big.Rat).SetInt64(int64(length(v))).Cmp(bound)
		if op == "length" && c != 0 || op == "min_length" && c < 0 || op == "max_length" && c > 0 {
			return fmt.Sprintf("has the length %d, which breaks %s %s", length(v), op, arg.string())
		}
	case "pattern":
		// A pattern outside Go's syntax cannot be judged and is let pass.
		text, _ := v.str()
		re, err := regexp.Compile(`^(?:` + arg.string() + `)$`)
		if err == nil && v.kind == scalar && !re.MatchString(text) {
			return fmt.Sprintf("has the value %q, which does not match the pattern %s", clip(text), clip(arg.string()))
		}
	}
	return ""
}

func length(v *node) int {
	switch v.kind {
	case list:
		return len(v.items)
	case mapping:
		return len(v.keys)
	}
	return utf8.RuneCountInString(v.string())
}

// equal compares scalars: as quantities where the type is numeric, as text
// for versions, else by value, so that '1.0' is not 1.0.
func equal(a, b *node, typeName string) bool {
	if a == nil || b == nil || a.kind != scalar || b.kind != scalar {
		return false
	}
	switch typeName {
	case "integer", "float", "scalar-unit.size", "scalar-unit.time", "scalar-unit.frequency", "scalar-unit.bitrate":
		x, ok1 := quantity(a, typeName)
		y, ok2 := quantity(b, typeName)
		return ok1 && ok2 && x.Cmp(y) == 0
	case "version":
		return a.string() == b.string()
	}
	return a.value == b.value
}
