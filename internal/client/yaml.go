package client

import (
	"encoding/json"
	"regexp"
	"sort"
	"strings"
	"unicode/utf16"
)

// formatYAML writes block style with sorted keys, quoting texts only where YAML 1.1 would read something else.
func formatYAML(b *strings.Builder, t Table) {
	if t.Single {
		for i, c := range t.Columns {
			yamlMap(b, NewObject().Set(c, t.Rows[0][i].Value), 0)
		}
		return
	}
	if len(t.Rows) == 0 {
		b.WriteString("[]\n")
		return
	}
	list := make([]any, len(t.Rows))
	for i, r := range t.Rows {
		list[i] = object(t.Columns, r)
	}
	yamlList(b, list, 0)
}

func yamlMap(b *strings.Builder, o *Object, depth int) {
	keys := append([]string(nil), o.Keys...)
	sort.Strings(keys)
	for i, k := range keys {
		if i > 0 {
			b.WriteString(strings.Repeat("  ", depth))
		}
		b.WriteString(yamlScalar(k, depth) + ":")
		switch v := o.Values[k].(type) {
		case *Object:
			if len(v.Keys) > 0 {
				b.WriteString("\n" + strings.Repeat("  ", depth+1))
				yamlMap(b, v, depth+1)
				continue
			}
		case []any:
			if len(v) > 0 {
				b.WriteString("\n" + strings.Repeat("  ", depth))
				yamlList(b, v, depth)
				continue
			}
		}
		b.WriteString(" " + yamlScalar(o.Values[k], depth+1) + "\n")
	}
}

// yamlList writes the first dash where it stands and the others at the depth.
func yamlList(b *strings.Builder, list []any, depth int) {
	for i, e := range list {
		if i > 0 {
			b.WriteString(strings.Repeat("  ", depth))
		}
		b.WriteString("- ")
		switch v := e.(type) {
		case *Object:
			if len(v.Keys) > 0 {
				yamlMap(b, v, depth+1)
				continue
			}
		case []any:
			if len(v) > 0 {
				yamlList(b, v, depth+1)
				continue
			}
		}
		b.WriteString(yamlScalar(e, depth+1) + "\n")
	}
}

var (
	// yamlTyped are plain texts that YAML 1.1 reads as something else than a text.
	yamlTyped = regexp.MustCompile(`^(?i:~|null|yes|no|true|false|on|off|y|n|<<|=|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])*(\.[0-9_]*)?|[-+]?([0-9][0-9_]*)?\.[0-9_]+([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*\.[0-9_]*[eE][-+][0-9]+|[-+]?0x[0-9a-f_]+|[-+]?0b[01_]+|[-+]?\.inf|\.nan|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?([Tt \t].*)?)$`)
	yamlPlain = regexp.MustCompile(`^[^\s\-?:,\[\]{}#&*!|>'"%@` + "`" + `]|^[-?:][^\s]`)
)

func yamlScalar(v any, depth int) string {
	switch t := v.(type) {
	case nil:
		return "null"
	case bool:
		if t {
			return "true"
		}
		return "false"
	case json.Number:
		return pyNumber(t)
	case *Object:
		return "{}"
	case []any:
		return "[]"
	case string:
		return yamlText(t, depth)
	}
	return ""
}

func yamlText(s string, depth int) string {
	if s == "" {
		return "''"
	}
	double, breaks := false, false
	for _, r := range s {
		if r == '\n' {
			breaks = true
		} else if r < ' ' || r > '~' {
			double = true
		}
	}
	switch {
	case double || breaks && (strings.HasPrefix(s, " ") || strings.Contains(s, " \n") || strings.Contains(s, "\n ")):
		return yamlDouble(s)
	case breaks:
		// Inside of single quotes one more line break stands for each.
		text := regexp.MustCompile(`\n+`).ReplaceAllStringFunc(strings.ReplaceAll(s, "'", "''"), func(nl string) string {
			return nl + "\n" + strings.Repeat("  ", depth)
		})
		return "'" + text + "'"
	case yamlTyped.MatchString(s), !yamlPlain.MatchString(s), strings.Contains(s, ": "), strings.HasSuffix(s, ":"),
		strings.Contains(s, " #"), strings.HasPrefix(s, " "), strings.HasSuffix(s, " "), s == "-", s == "---", s == "...":
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return s
}

var yamlEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\t': `\t`, '\r': `\r`, 0: `\0`, 0x1b: `\e`, 0x85: `\N`, 0xa0: `\_`}

func yamlDouble(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch esc, ok := yamlEscapes[r]; {
		case ok:
			b.WriteString(esc)
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + strings.ToUpper(hex(r, 2)))
		case utf16.IsSurrogate(r) || r < 0x10000:
			b.WriteString(`\u` + strings.ToUpper(hex(r, 4)))
		default:
			b.WriteString(`\U` + strings.ToUpper(hex(r, 8)))
		}
	}
	b.WriteByte('"')
	return b.String()
}
