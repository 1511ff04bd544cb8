package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// dataType is the type of an attribute, as the rules of filters distinguish it.
type dataType string

const (
	typeUUID     dataType = "uuid"
	typeString   dataType = "string"
	typeNumber   dataType = "number"
	typeEnum     dataType = "enum"
	typeBoolean  dataType = "boolean"
	typeDatetime dataType = "datetime"
	typeFree     dataType = "key_value_pair" // anything beneath a map of strings to any value
)

// operators maps each operator to the types that it compares, and tells which take several values.
var operators = map[string]struct {
	types []dataType
	multi bool
}{
	"eq":    {[]dataType{typeUUID, typeString, typeNumber, typeEnum, typeBoolean, typeDatetime, typeFree}, false},
	"neq":   {[]dataType{typeUUID, typeString, typeNumber, typeEnum, typeBoolean, typeDatetime, typeFree}, false},
	"gt":    {[]dataType{typeUUID, typeString, typeNumber, typeDatetime, typeFree}, false},
	"gte":   {[]dataType{typeUUID, typeString, typeNumber, typeDatetime, typeFree}, false},
	"lt":    {[]dataType{typeUUID, typeString, typeNumber, typeDatetime, typeFree}, false},
	"lte":   {[]dataType{typeUUID, typeString, typeNumber, typeDatetime, typeFree}, false},
	"in":    {[]dataType{typeUUID, typeString, typeNumber, typeEnum, typeFree}, true},
	"nin":   {[]dataType{typeUUID, typeString, typeNumber, typeEnum, typeFree}, true},
	"cont":  {[]dataType{typeUUID, typeString, typeFree}, true},
	"ncont": {[]dataType{typeUUID, typeString, typeFree}, true},
}

const (
	maxFilter     = 16 << 10 // bytes
	maxConditions = 64
	maxValues     = 256
	maxPath       = 16
)

func invalidFilter(format string, args ...any) error {
	return lcm.Errorf(lcm.KindInvalid, format, args...)
}

// parseFilter reads an attribute filter (SOL013 v2.6.1 §5.2), unescaped from the URI: expressions
// (op,attribute,value[,value…]) joined by ";" for "and". The attributes are those of the resource's schema. Values come
// out as the representation writes them: booleans in lower case, times in UTC by RFC 3339.
func parseFilter(text string, resource *schema) ([]lcm.Condition, error) {
	if len(text) > maxFilter {
		return nil, invalidFilter("The filter is longer than %d bytes.", maxFilter)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, invalidFilter("The filter holds the character U+0000.")
	}
	if !utf8.ValidString(text) {
		return nil, invalidFilter("The filter is not UTF-8.")
	}
	var conditions []lcm.Condition
	for rest := strings.TrimSpace(text); rest != ""; {
		rule, after, err := cutExpression(rest)
		if err != nil {
			return nil, err
		}
		c, err := parseRule(rule, resource)
		if err != nil {
			return nil, err
		}
		if conditions = append(conditions, c); len(conditions) > maxConditions {
			return nil, invalidFilter("The filter has more than %d expressions.", maxConditions)
		}
		rest = after
	}
	return conditions, nil
}

// cutExpression cuts the first "(…)" off, without its brackets. A bracket in quotes does not end it.
func cutExpression(s string) (rule, rest string, err error) {
	if s[0] != '(' {
		return "", "", invalidFilter("Failed to understand filter %s", clip(s))
	}
	quoted := false
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\'':
			quoted = !quoted
		case s[i] == ')' && !quoted:
			rule, rest = s[1:i], strings.TrimSpace(s[i+1:])
			if rest == "" {
				return rule, "", nil
			}
			if rest[0] == ';' {
				return rule, strings.TrimSpace(rest[1:]), nil
			}
			// As in (eq,a,b)c): the value holds a bracket outside of quotes.
			return "", "", invalidFilter("Rule '%s' value must be enclosed in single quotes when it contains either of comma, single quote, closing bracket",
				clip(strings.TrimSuffix(s[1:], ")")))
		}
	}
	if quoted {
		return "", "", invalidFilter("Rule '%s' value doesn't have single quotes in pairs", clip(strings.TrimSuffix(s[1:], ")")))
	}
	return "", "", invalidFilter("Failed to understand filter %s", clip(s[1:]))
}

func parseRule(rule string, resource *schema) (lcm.Condition, error) {
	misunderstood := invalidFilter("Failed to understand filter %s", clip(rule))
	op, rest, ok := strings.Cut(rule, ",")
	if !ok {
		return lcm.Condition{}, misunderstood
	}
	name, rest, ok := strings.Cut(rest, ",")
	operator, known := operators[op]
	if !ok || !known || name == "" || rest == "" {
		return lcm.Condition{}, misunderstood
	}
	values, err := splitValues(rule, rest)
	if err != nil {
		return lcm.Condition{}, err
	}
	if len(values) > 1 && !operator.multi {
		return lcm.Condition{}, invalidFilter("Rule '%s' contains operator '%s' which supports only one value, but multiple values '%s' are provided",
			clip(rule), op, clip(rest))
	}
	if len(values) > maxValues {
		return lcm.Condition{}, invalidFilter("Rule '%s' has more than %d values", clip(rule), maxValues)
	}
	path, keys, attribute := attributeAt(name, resource)
	if attribute == nil {
		return lcm.Condition{}, invalidFilter("Rule '%s' contains invalid attribute name '%s'", clip(rule), clip(name))
	}
	t := typeString
	if !keys {
		t = typeOf(path, attribute)
	}
	if !slices.Contains(operator.types, t) {
		return lcm.Condition{}, invalidFilter("Rule '%s' contains operator '%s' which doesn't support data type '%s' for attribute '%s'",
			clip(rule), op, t, clip(name))
	}
	for i, v := range values {
		if values[i], ok = valueOf(v, t, attribute); ok {
			continue
		}
		if t == typeEnum {
			return lcm.Condition{}, invalidFilter("Rule '%s' contains data type 'enum' with invalid value. It should be one of %s",
				clip(rule), strings.Join(attribute.Enum, ","))
		}
		return lcm.Condition{}, invalidFilter("Rule '%s' contains invalid data type for value '%s'. The data type should be '%s'",
			clip(rule), clip(v), t)
	}
	return lcm.Condition{Op: op, Path: path, Keys: keys, Values: values}, nil
}

// splitValues splits values at commas outside of quotes and takes the quotes off.
func splitValues(rule, s string) ([]string, error) {
	var values []string
	for {
		value, rest, more, err := nextValue(rule, s)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
		if !more {
			return values, nil
		}
		s = rest
	}
}

func nextValue(rule, s string) (value, rest string, more bool, err error) {
	if !strings.HasPrefix(s, "'") {
		value, rest, more = strings.Cut(s, ",")
		if strings.Contains(value, "'") {
			return "", "", false, invalidFilter("Rule '%s' value must be enclosed in single quotes when it contains either of comma, single quote, closing bracket", clip(rule))
		}
		if value == "" {
			return "", "", false, invalidFilter("Failed to understand filter %s", clip(rule))
		}
		return value, rest, more, nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '\'':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case i+1 == len(s):
			return b.String(), "", false, nil
		case s[i+1] == ',':
			return b.String(), s[i+2:], true, nil
		default:
			return "", "", false, invalidFilter("Rule '%s' value doesn't have single quotes in pairs", clip(rule))
		}
	}
	return "", "", false, invalidFilter("Rule '%s' value doesn't have single quotes in pairs", clip(rule))
}

var nameEscapes = strings.NewReplacer("~0", "~", "~1", "/", "~a", ",", "~b", "@")

// keyName is the last name of what means the names of a map instead of its values (SOL013 v2.6.1 §5.2.2).
const keyName = "@key"

// attributeAt finds the attribute that a name with slashes means; nil when the resource has none that can be compared.
func attributeAt(name string, resource *schema) (path []string, keys bool, attribute *schema) {
	path = strings.Split(name, "/")
	if len(path) > 1 && path[len(path)-1] == keyName {
		path, keys = path[:len(path)-1], true
	}
	if len(path) > maxPath || path[0] == "_links" {
		return nil, false, nil
	}
	for i, p := range path {
		if p == "" || strings.HasPrefix(p, "@") {
			return nil, false, nil
		}
		path[i] = nameEscapes.Replace(p)
	}
	s := resource.at(path)
	switch {
	case s == nil:
		return nil, false, nil
	case keys && (s.freeForm || s.Type == "" && len(s.Properties) == 0):
		return path, true, &schema{Type: "string"}
	case keys || s.freeForm || len(s.Properties) > 0:
		return nil, false, nil
	}
	return path, false, s
}

func typeOf(path []string, s *schema) dataType {
	switch {
	case len(path) == 1 && (path[0] == "id" || path[0] == "vnfdId" || path[0] == "vnfPkgId"):
		return typeUUID
	case s.Type == "":
		return typeFree
	case s.Type == "boolean":
		return typeBoolean
	case s.Type == "integer" || s.Type == "number":
		return typeNumber
	case s.Format == "date-time":
		return typeDatetime
	case len(s.Enum) > 0:
		return typeEnum
	default:
		return typeString
	}
}

// valueOf checks a value against its type and returns it as the representation would write it.
func valueOf(v string, t dataType, s *schema) (string, bool) {
	switch t {
	case typeUUID:
		return strings.ToLower(v), uuidPattern.MatchString(v)
	case typeNumber:
		var n json.Number
		if err := json.Unmarshal([]byte(v), &n); err != nil || strings.HasPrefix(v, `"`) {
			return v, false
		}
		return v, n != ""
	case typeEnum:
		for _, e := range s.Enum {
			if strings.EqualFold(e, v) {
				return e, true
			}
		}
		return v, false
	case typeBoolean:
		b := strings.ToLower(v)
		return b, b == "true" || b == "false"
	case typeDatetime:
		return parseTime(v)
	default:
		return v, true
	}
}

// parseTime reads a time by ISO 8601, a blank instead of the T allowed, UTC without a zone.
func parseTime(v string) (string, bool) {
	if len(v) > 10 && v[10] == ' ' {
		v = v[:10] + "T" + v[11:]
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.Parse(layout, v); err == nil {
			return at.UTC().Format(time.RFC3339Nano), true
		}
	}
	return v, false
}
