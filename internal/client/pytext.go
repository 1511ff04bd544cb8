package client

import (
	"encoding/json"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// The Python client prints values as Python's str, repr and json.dumps write them; these do the same.

// pyStr is str(v). An object prints as "k=v, k2=v2" in sorted order when it is a model (an attribute of a resource
// shown alone), and like repr otherwise.
func pyStr(v any, model bool) string {
	switch t := v.(type) {
	case string:
		return t
	case *Object:
		if !model {
			return pyRepr(v)
		}
		pairs := make([]string, 0, len(t.Keys))
		for _, k := range t.Keys {
			pairs = append(pairs, k+"="+pyStr(t.Values[k], true))
		}
		sort.Strings(pairs)
		return strings.Join(pairs, ", ")
	}
	return pyRepr(v)
}

// pyRepr is repr(v).
func pyRepr(v any) string {
	switch t := v.(type) {
	case nil:
		return "None"
	case bool:
		if t {
			return "True"
		}
		return "False"
	case json.Number:
		return pyNumber(t)
	case string:
		return pyQuote(t)
	case []string:
		parts := make([]string, len(t))
		for i, e := range t {
			parts[i] = pyQuote(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []any:
		parts := make([]string, len(t))
		for i, e := range t {
			parts[i] = pyRepr(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *Object:
		parts := make([]string, len(t.Keys))
		for i, k := range t.Keys {
			parts[i] = pyQuote(k) + ": " + pyRepr(t.Values[k])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return ""
}

// isFloat tells whether Python's json reads a number as a float.
func isFloat(n json.Number) bool { return strings.ContainsAny(string(n), ".eE") }

func pyNumber(n json.Number) string {
	if !isFloat(n) {
		if n == "-0" {
			return "0"
		}
		return string(n)
	}
	f, err := n.Float64()
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case err != nil:
		return string(n)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exp, _ := strings.Cut(s, "e")
	if e, err := strconv.Atoi(exp); err == nil && (e < -4 || e >= 16) {
		return mantissa + "e" + exp
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func pyQuote(s string) string {
	quote := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + hex(r, 2))
		case r < 0x10000:
			b.WriteString(`\u` + hex(r, 4))
		default:
			b.WriteString(`\U` + hex(r, 8))
		}
	}
	b.WriteRune(quote)
	return b.String()
}

func hex(r rune, width int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// pyJSON is json.dumps(v, indent=indent), ASCII only; an indent of 0 or less writes one line.
func pyJSON(v any, indent int) string {
	var b strings.Builder
	dump(&b, v, indent, 0)
	return b.String()
}

func dump(b *strings.Builder, v any, indent, depth int) {
	open := func(c byte, n int, each func(int)) {
		b.WriteByte(c)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
				if indent <= 0 {
					b.WriteByte(' ')
				}
			}
			newline(b, indent, depth+1)
			each(i)
		}
		if n > 0 {
			newline(b, indent, depth)
		}
		b.WriteByte(c + 2) // the closing bracket stands two behind the opening one in ASCII
	}
	switch t := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(t))
	case int:
		b.WriteString(strconv.Itoa(t))
	case json.Number:
		switch s := pyNumber(t); s {
		case "inf":
			b.WriteString("Infinity")
		case "-inf":
			b.WriteString("-Infinity")
		default:
			b.WriteString(s)
		}
	case string:
		dumpString(b, t)
	case []any:
		open('[', len(t), func(i int) { dump(b, t[i], indent, depth+1) })
	case []string:
		open('[', len(t), func(i int) { dumpString(b, t[i]) })
	case *Object:
		open('{', len(t.Keys), func(i int) {
			dumpString(b, t.Keys[i])
			b.WriteString(": ")
			dump(b, t.Values[t.Keys[i]], indent, depth+1)
		})
	}
}

func newline(b *strings.Builder, indent, depth int) {
	if indent > 0 {
		b.WriteByte('\n')
		b.WriteString(strings.Repeat(" ", indent*depth))
	}
}

func dumpString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r >= ' ' && r < 0x7f || r == 0x7f:
			b.WriteRune(r)
		case r < 0x10000:
			b.WriteString(`\u` + hex(r, 4))
		default:
			hi, lo := utf16.EncodeRune(r)
			b.WriteString(`\u` + hex(hi, 4) + `\u` + hex(lo, 4))
		}
	}
	b.WriteByte('"')
}
