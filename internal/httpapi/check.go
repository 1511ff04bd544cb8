package httpapi

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// violation is a rule that a body breaks: where, and what the rule says.
type violation struct {
	path  []any // names and indexes from the top
	value any   // what stands there
	rule  string
}

// err words the violation for the caller.
func (v *violation) err() error {
	if len(v.path) == 0 {
		return lcm.Errorf(lcm.KindInvalid, "%s", v.rule)
	}
	return lcm.Errorf(lcm.KindInvalid, "Invalid input for field/attribute %v. Value: %s. %s",
		v.path[len(v.path)-1], plainText(v.value, secretPath(v.path)), v.rule)
}

// secretPath tells whether a value at the path may be a secret.
func secretPath(path []any) bool {
	return slices.ContainsFunc(path, func(p any) bool {
		name, ok := p.(string)
		return ok && lcm.SecretKey(name)
	})
}

var (
	uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	// The keys of a free-form map, and how long they and the texts right beneath them may be.
	keyPattern = regexp.MustCompile(`^[a-zA-Z0-9\-_:. /]*$`)
)

const (
	maxKey  = 1024
	maxText = 1024
	keyRule = "^[a-zA-Z0-9-_:. /]{1,1024}$"
)

// longTexts are free-form maps whose values may be certificates, keys and tokens of any length.
var longTexts = map[string]bool{"accessInfo": true, "interfaceInfo": true, "extra": true}

// check finds the first rule of the schema that v, decoded with json.Number, breaks.
func (s *schema) check(v any, path []any) *violation {
	fault := func(format string, args ...any) *violation {
		return &violation{path: slices.Clone(path), value: v, rule: fmt.Sprintf(format, args...)}
	}
	show := func() string { return repr(v, secretPath(path)) }
	if s.Type != "" && !isType(v, s.Type) {
		return fault("%s is not of type '%s'", show(), s.Type)
	}
	if len(s.Enum) > 0 {
		if text, _ := v.(string); !slices.Contains(s.Enum, text) {
			return fault("%s is not one of ['%s']", show(), strings.Join(s.Enum, "', '"))
		}
	}
	switch t := v.(type) {
	case string:
		if n := utf8.RuneCountInString(t); s.MinLength != nil && n < *s.MinLength {
			return fault("%s is too short", show())
		} else if s.MaxLength != nil && n > *s.MaxLength {
			return fault("%s is too long", show())
		}
		if s.pattern != nil && !s.pattern.MatchString(t) {
			return fault("%s does not match '%s'", show(), s.Pattern)
		}
		if s.Format == "uuid" && !uuidPattern.MatchString(t) {
			return fault("%s is not a 'uuid'", show())
		}
	case json.Number:
		if n, err := t.Int64(); s.Type == "integer" && err != nil {
			return fault("%s is not of type 'integer'", show())
		} else if s.Minimum != nil && err == nil && n < *s.Minimum {
			return fault("%s is less than the minimum of %d", show(), *s.Minimum)
		}
	case []any:
		if s.MinItems != nil && len(t) < *s.MinItems {
			return fault("%s is too short", show())
		}
		if s.MaxItems != nil && len(t) > *s.MaxItems {
			return fault("%s is too long", show())
		}
		if s.Items != nil {
			for i, item := range t {
				if f := s.Items.check(item, append(path, i)); f != nil {
					return f
				}
			}
		}
	case map[string]any:
		return s.checkObject(t, path, fault)
	}
	return nil
}

func (s *schema) checkObject(m map[string]any, path []any, fault func(string, ...any) *violation) *violation {
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			return fault("'%s' is a required property", name)
		}
	}
	for _, name := range s.names {
		if v, ok := m[name]; ok && (v != nil || !slices.Contains(s.null, name)) {
			if f := s.Properties[name].check(v, append(path, name)); f != nil {
				return f
			}
		}
	}
	if !s.freeForm {
		return nil // other attributes are ignored
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	long := false
	if len(path) > 0 {
		name, _ := path[len(path)-1].(string)
		long = longTexts[name]
	}
	for _, k := range keys {
		if k == "" || len(k) > maxKey || !keyPattern.MatchString(k) {
			return fault("%s does not match any of the regexes: '%s'", repr(k, false), keyRule)
		}
		if text, ok := m[k].(string); ok && !long && utf8.RuneCountInString(text) > maxText {
			at := append(slices.Clone(path), k)
			return &violation{path: at, value: text, rule: repr(text, secretPath(at)) + " is too long"}
		}
	}
	return nil
}

func isType(v any, want string) bool {
	switch t := v.(type) {
	case map[string]any:
		return want == "object"
	case []any:
		return want == "array"
	case string:
		return want == "string"
	case bool:
		return want == "boolean"
	case json.Number:
		return want == "number" || want == "integer" && !strings.ContainsAny(t.String(), ".eE")
	default:
		return false
	}
}

// isURI tells whether s is an absolute URI.
func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != ""
}

// maxShown is how much of a value an error message shows, in bytes.
const maxShown = 300

// repr words a JSON value as the clients know it: as a Python literal.
func repr(v any, secret bool) string {
	if secret {
		return "'" + lcm.Redacted + "'"
	}
	var b strings.Builder
	writeRepr(&b, lcm.Redact(v))
	return clip(b.String())
}

// plainText is repr, but a text stands without its quotes.
func plainText(v any, secret bool) string {
	if s, ok := v.(string); ok && !secret {
		return clip(s)
	}
	if secret {
		return lcm.Redacted
	}
	return repr(v, false)
}

func clip(s string) string {
	if len(s) <= maxShown {
		return s
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func writeRepr(b *strings.Builder, v any) {
	if b.Len() > maxShown {
		return
	}
	switch t := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if t {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case json.Number:
		b.WriteString(t.String())
	case string:
		quote := "'"
		if strings.Contains(t, "'") && !strings.Contains(t, `"`) {
			quote = `"`
		}
		r := strings.NewReplacer(`\`, `\\`, quote, `\`+quote, "\n", `\n`, "\r", `\r`, "\t", `\t`)
		b.WriteString(quote + r.Replace(t) + quote)
	case []any:
		b.WriteByte('[')
		for i, e := range t {
			if i > 0 {
				b.WriteString(", ")
			}
			writeRepr(b, e)
		}
		b.WriteByte(']')
	case map[string]any:
		keys := make([]string, 0, len(t))
		for k := range t {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteString(", ")
			}
			writeRepr(b, k)
			b.WriteString(": ")
			writeRepr(b, t[k])
		}
		b.WriteByte('}')
	default:
		fmt.Fprint(b, t)
	}
}

// wholeNumber returns the number that a text of digits says.
func wholeNumber(v any) (json.Number, bool) {
	text, ok := v.(string)
	if !ok || text == "" || len(text) > 18 || strings.Trim(text, "0123456789") != "" {
		return "", false
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return "", false
	}
	return json.Number(strconv.FormatInt(n.Int64(), 10)), true
}
