package config

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Print writes the effective configuration as YAML that can be read back, with a comment on each key and every secret
// redacted.
func (c *Config) Print(w io.Writer) error {
	var buf bytes.Buffer
	buf.WriteString("# The configuration of vnfm. Each key is also a variable of the environment: log.level is VNFM_LOG_LEVEL.\n")
	if err := printSection(&buf, reflect.ValueOf(c).Elem(), 0); err != nil {
		return err
	}
	if _, err := w.Write(buf.Bytes()); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

func printSection(buf *bytes.Buffer, v reflect.Value, depth int) error {
	indent := strings.Repeat("  ", depth)
	for _, f := range structFields(v.Type()) {
		name, fv := f.Tag.Get("yaml"), v.FieldByIndex(f.Index)
		if isSection(f.Type) && depth == 0 {
			buf.WriteString("\n")
		}
		fmt.Fprintf(buf, "%s# %s\n", indent, comment(f))
		if isSection(f.Type) {
			fmt.Fprintf(buf, "%s%s:\n", indent, name)
			if err := printSection(buf, fv, depth+1); err != nil {
				return err
			}
			continue
		}
		if fv.Kind() == reflect.Map && fv.Len() > 0 {
			fmt.Fprintf(buf, "%s%s:\n", indent, name)
			iter := map[string]string{}
			for _, k := range fv.MapKeys() {
				iter[k.String()] = fmt.Sprint(fv.MapIndex(k).Interface())
			}
			for _, k := range sortedKeys(iter) {
				ks, err := scalar(k)
				if err != nil {
					return err
				}
				vs, err := scalar(iter[k])
				if err != nil {
					return err
				}
				fmt.Fprintf(buf, "%s  %s: %s\n", indent, ks, vs)
			}
			continue
		}
		text, err := valueText(fv)
		if err != nil {
			return err
		}
		fmt.Fprintf(buf, "%s%s: %s\n", indent, name, text)
	}
	return nil
}

// comment is a key's documentation with the rule that its value must obey.
func comment(f reflect.StructField) string {
	doc := f.Tag.Get("doc")
	if one := f.Tag.Get("oneof"); one != "" {
		doc += " One of " + strings.ReplaceAll(one, ",", ", ") + "."
	}
	return doc
}

func valueText(v reflect.Value) (string, error) {
	switch x := v.Interface().(type) {
	case time.Duration:
		return durationText(x), nil
	case Bytes:
		return x.String(), nil
	case Secret:
		return scalar(x.String())
	}
	switch v.Kind() {
	case reflect.String:
		return scalar(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.Int:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64), nil
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			s, err := scalar(v.Index(i).String())
			if err != nil {
				return "", err
			}
			parts[i] = s
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case reflect.Map: // an empty one; others take lines of their own
		return "{}", nil
	}
	return "", fmt.Errorf("a %s cannot be printed", v.Type())
}

// durationText drops the zero units that time.Duration prints: 10m, not 10m0s. Whole minutes up to an hour stay
// seconds when the reference counts them so.
func durationText(d time.Duration) string {
	if d != 0 && d%time.Second == 0 && d <= time.Hour {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// scalar writes a text so that YAML reads the same text back, also inside of [] and {}.
func scalar(s string) (string, error) {
	node := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if s == "" || strings.ContainsAny(s, "[]{},#:&*!|>'\"%@`\n") {
		node.Style = yaml.DoubleQuotedStyle
		if !strings.ContainsAny(s, "[]{},#&*!|>'\"%@`\n") && !strings.Contains(s, ": ") && !strings.HasSuffix(s, ":") && s != "" {
			node.Style = 0 // a colon inside of a word is plain: 127.0.0.1:9890
		}
	}
	out, err := yaml.Marshal(&node)
	if err != nil {
		return "", fmt.Errorf("write %q: %w", s, err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
