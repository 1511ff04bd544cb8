package hot

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ParamSchema is a declared parameter.
type ParamSchema struct {
	Name        string
	Type        string // string, number, json, comma_delimited_list or boolean
	Label       string
	Description string
	Default     any
	HasDefault  bool
	Hidden      bool
	Immutable   bool
	Constraints []Constraint
}

// Constraint is one parameter constraint; only one kind is set.
type Constraint struct {
	Allowed     []any
	Pattern     *regexp.Regexp
	Range       *Bounds
	Length      *Bounds
	Custom      string
	Description string
}

// Bounds are optional limits, both inclusive.
type Bounds struct{ Min, Max *float64 }

var paramKeys = []string{
	"type", "label", "description", "default", "hidden", "immutable", "constraints", "tags",
}

var paramTypes = []string{"string", "number", "comma_delimited_list", "json", "boolean"}

func parseParam(name string, v any) (*ParamSchema, error) {
	d, ok := v.(map[string]any)
	if !ok {
		return nil, errf("InvalidSchemaError", "Invalid parameter %s, expected a mapping", name)
	}
	for k := range d {
		if !slices.Contains(paramKeys, k) {
			return nil, errf("InvalidSchemaError", "Invalid key '%s' for parameter (%s)", k, name)
		}
	}
	p := &ParamSchema{Name: name}
	if p.Type, ok = d["type"].(string); !ok {
		return nil, errf("InvalidSchemaError", "Missing parameter type for parameter: %s", name)
	}
	p.Type = strings.ToLower(p.Type)
	if !slices.Contains(paramTypes, p.Type) {
		return nil, errf("InvalidSchemaError", "Invalid type (%s)", d["type"])
	}
	p.Label, _ = d["label"].(string)
	p.Description, _ = d["description"].(string)
	p.Hidden = truthy(d["hidden"])
	p.Immutable = truthy(d["immutable"])
	p.Default, p.HasDefault = d["default"]
	if p.Default == nil {
		p.HasDefault = false
	}
	cs, _ := d["constraints"].([]any)
	for _, c := range cs {
		cc, err := parseConstraint(name, c)
		if err != nil {
			return nil, err
		}
		p.Constraints = append(p.Constraints, cc)
	}
	if p.HasDefault {
		if _, err := p.Value(p.Default); err != nil {
			return nil, errf("InvalidSchemaError", "Parameter '%s' is invalid: Invalid default %s (%s)", name, String(p.Default), inner(err))
		}
	}
	return p, nil
}

func inner(err error) string {
	if e, ok := err.(*Error); ok { //nolint:errorlint // made just before, never wrapped
		return e.Msg
	}
	return err.Error()
}

func parseConstraint(name string, v any) (Constraint, error) {
	var c Constraint
	d, ok := v.(map[string]any)
	if !ok {
		return c, errf("InvalidSchemaError", "Invalid parameter constraints for parameter %s, expected a mapping", name)
	}
	c.Description, _ = d["description"].(string)
	for k, x := range d {
		switch k {
		case "description":
		case "allowed_values":
			if c.Allowed, ok = x.([]any); !ok {
				return c, errf("InvalidSchemaError", "AllowedValues must be a list")
			}
		case "allowed_pattern":
			re, err := regexp.Compile("^(?:" + String(x) + ")$")
			if err != nil {
				return c, errf("InvalidSchemaError", "Invalid allowed_pattern of parameter %s: %v", name, err)
			}
			c.Pattern = re
		case "range":
			c.Range = bounds(x)
		case "length":
			c.Length = bounds(x)
		case "custom_constraint":
			c.Custom = String(x)
		case "modulo":
		default:
			return c, errf("InvalidSchemaError", "Invalid key '%s' for parameter constraints", k)
		}
	}
	return c, nil
}

func bounds(v any) *Bounds {
	m, _ := v.(map[string]any)
	b := &Bounds{}
	if f, ok := number(m["min"]); ok {
		b.Min = &f
	}
	if f, ok := number(m["max"]); ok {
		b.Max = &f
	}
	return b
}

func (b *Bounds) holds(f float64) bool {
	return (b.Min == nil || f >= *b.Min) && (b.Max == nil || f <= *b.Max)
}

func (b *Bounds) String() string {
	show := func(f *float64) string {
		if f == nil {
			return "None"
		}
		return strconv.FormatFloat(*f, 'g', -1, 64)
	}
	return "(min: " + show(b.Min) + ", max: " + show(b.Max) + ")"
}

func number(v any) (float64, bool) {
	switch t := v.(type) {
	case int64:
		return float64(t), true
	case float64:
		return t, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
		return f, err == nil
	}
	return 0, false
}

func truthy(v any) bool {
	switch t := v.(type) {
	case bool:
		return t
	case string:
		switch strings.ToLower(t) {
		case "t", "true", "on", "y", "yes", "1":
			return true
		}
	case int64:
		return t != 0
	}
	return false
}

// Value converts a raw value to the parameter's type and checks the
// constraints. The error has Heat's wording: Parameter 'x' is invalid: …
func (p *ParamSchema) Value(raw any) (any, error) {
	v, err := p.convert(raw)
	if err != nil {
		return nil, p.invalid(err.Error())
	}
	for _, c := range p.Constraints {
		if msg := c.check(v); msg != "" {
			if c.Description != "" {
				msg = c.Description
			}
			return nil, p.invalid(msg)
		}
	}
	return v, nil
}

func (p *ParamSchema) invalid(msg string) error {
	return &Error{Kind: "StackValidationFailed", Msg: fmt.Sprintf("Parameter '%s' is invalid: %s", p.Name, msg)}
}

func (p *ParamSchema) convert(raw any) (any, error) {
	switch p.Type {
	case "string":
		switch raw.(type) {
		case map[string]any, []any:
			return String(raw), nil
		}
		return String(raw), nil
	case "number":
		f, ok := number(raw)
		if !ok {
			return nil, fmt.Errorf("could not convert string to float: '%s'", String(raw))
		}
		return Normalize(f), nil
	case "boolean":
		switch strings.ToLower(String(raw)) {
		case "t", "true", "on", "y", "yes", "1":
			return true, nil
		case "f", "false", "off", "n", "no", "0":
			return false, nil
		}
		return nil, fmt.Errorf("Unrecognized value '%s', acceptable values are: '0', '1', 'f', 'false', 'n', 'no', 'off', 'on', 't', 'true', 'y', 'yes'", String(raw))
	case "comma_delimited_list":
		switch t := raw.(type) {
		case []any:
			return t, nil
		case string:
			out := []any{}
			if t == "" {
				return out, nil
			}
			for _, s := range strings.Split(t, ",") {
				out = append(out, strings.TrimSpace(s))
			}
			return out, nil
		}
		return nil, fmt.Errorf("Value must be a comma-delimited list string: %s", String(raw))
	default: // json
		switch t := raw.(type) {
		case map[string]any, []any:
			return t, nil
		case nil:
			return map[string]any{}, nil
		case string:
			if t == "" {
				return map[string]any{}, nil
			}
			v, err := decodeJSON([]byte(t))
			if err == nil {
				switch v.(type) {
				case map[string]any, []any:
					return v, nil
				}
			}
		}
		return nil, fmt.Errorf("Value must be valid JSON: %s", String(raw))
	}
}

func (c Constraint) check(v any) string {
	switch {
	case c.Allowed != nil:
		one := func(x any) bool {
			return slices.ContainsFunc(c.Allowed, func(a any) bool { return String(a) == String(x) })
		}
		ok := true
		if l, isList := v.([]any); isList {
			for _, x := range l {
				ok = ok && one(x)
			}
		} else {
			ok = one(v)
		}
		if !ok {
			return fmt.Sprintf("%s is not an allowed value %s", quoted(v), pyList(c.Allowed))
		}
	case c.Pattern != nil:
		if !c.Pattern.MatchString(String(v)) {
			return fmt.Sprintf(`"%s" does not match pattern "%s"`, String(v), strings.TrimSuffix(strings.TrimPrefix(c.Pattern.String(), "^(?:"), ")$"))
		}
	case c.Range != nil:
		f, ok := number(v)
		if !ok || !c.Range.holds(f) {
			return fmt.Sprintf("%s is out of range %s", String(v), c.Range)
		}
	case c.Length != nil:
		n := 0
		switch t := v.(type) {
		case []any:
			n = len(t)
		case map[string]any:
			n = len(t)
		default:
			n = len([]rune(String(v)))
		}
		if !c.Length.holds(float64(n)) {
			return fmt.Sprintf("length (%d) is out of range %s", n, c.Length)
		}
	}
	return ""
}

func quoted(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return String(v)
}

func pyList(l []any) string {
	s := make([]string, len(l))
	for i, x := range l {
		if str, ok := x.(string); ok {
			s[i] = "'" + str + "'"
		} else {
			s[i] = String(x)
		}
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// Values types all parameters: what the user gave, else the default. An
// undeclared one is UnknownUserParameter, a missing one UserParameterMissing.
// The pseudo parameters of ps (such as OS::stack_name) are added as they are.
func (t *Template) Values(user, ps map[string]any) (map[string]any, error) {
	for k := range user {
		if t.Params[k] == nil {
			return nil, errf("UnknownUserParameter", "The Parameter (%s) was not defined in template.", k)
		}
	}
	out := make(map[string]any, len(t.Params)+len(ps))
	for k, v := range ps {
		out[k] = v
	}
	names := make([]string, 0, len(t.Params))
	for n := range t.Params {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		p := t.Params[n]
		raw, given := user[n]
		switch {
		case given && raw != nil:
		case p.HasDefault:
			raw = p.Default
		default:
			return nil, errf("UserParameterMissing", "The Parameter (%s) was not provided.", n)
		}
		v, err := p.Value(raw)
		if err != nil {
			return nil, err
		}
		out[n] = v
	}
	return out, nil
}

// Show renders a parameter value as Heat shows it in a stack: as text, JSON
// for json, hidden ones masked.
func (p *ParamSchema) Show(v any) string {
	if p.Hidden {
		return "******"
	}
	if l, ok := v.([]any); ok && p.Type == "comma_delimited_list" {
		s := make([]string, len(l))
		for i, x := range l {
			s[i] = String(x)
		}
		return strings.Join(s, ",")
	}
	if p.Type == "json" {
		b, err := json.Marshal(v)
		if err == nil {
			return string(b)
		}
	}
	return String(v)
}
