package toscahot

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// template is a template in the making.
type template struct {
	parent    *template
	params    map[string]string // types by name
	args      map[string]any    // what the parent gives for the parameters
	known     map[string]string // parameters by what they stand for
	resources map[string]resource
	taken     map[string]bool // names of resources and parameters
	avoided   map[string]bool // names that generated ones keep clear of
	needs     map[string]bool // resources of the top that must be there before
}

// resource is a resource's definition.
type resource struct {
	kind       string
	dependsOn  []string
	properties map[string]any
}

func newTemplate(parent *template) *template {
	return &template{
		parent: parent, params: map[string]string{}, args: map[string]any{}, known: map[string]string{}, resources: map[string]resource{},
		taken: map[string]bool{}, avoided: map[string]bool{}, needs: map[string]bool{},
	}
}

// function is a call of one of HOT's functions.
func function(name string, args ...any) any {
	if len(args) == 1 {
		return map[string]any{name: args[0]}
	}
	return map[string]any{name: args}
}

func (t *template) take(name string)          { t.taken[name] = true }
func (t *template) avoid(name string)         { t.avoided[name] = true }
func (t *template) declare(name, kind string) { t.params[name] = kind }

// unique takes a name that is or begins like the one wanted and that nothing else has.
func (t *template) unique(name string) string {
	for t.taken[name] || t.avoided[name] {
		name += "_"
	}
	t.take(name)
	return name
}

// add puts a resource in.
func (t *template) add(name string, r resource) {
	t.take(name)
	t.resources[name] = r
}

// outer is a value of the top template as this one sees it: handed down by parameters that are called like what it is.
func (t *template) outer(what, kind string, value any) any {
	if t.parent == nil {
		return value
	}
	key := what + fmt.Sprint(value)
	name, ok := t.known[key]
	if !ok {
		name = t.unique(what)
		t.known[key] = name
		t.declare(name, kind)
		t.args[name] = t.parent.outer(what, kind, value)
	}
	return function("get_param", name)
}

// after has a resource be made after some of the top template's: by itself, or with all that is nested with it.
func (t *template) after(r *resource, names []string) {
	if t.parent == nil {
		r.dependsOn = append(r.dependsOn, names...)
		return
	}
	for _, n := range names {
		t.needs[n] = true
	}
}

// stack is a nested stack as a resource of the parent.
func (t *template) stack(file string) resource {
	r := resource{kind: file, properties: t.args}
	t.parent.after(&r, sorted(t.needs))
	return r
}

// text writes the template: the same for the same content.
func (t *template) text(description string) (string, error) {
	doc := fields{{"heat_template_version", templateVersion}, {"description", description}}
	if len(t.params) > 0 {
		params := map[string]any{}
		for name, kind := range t.params {
			params[name] = map[string]any{"type": kind}
		}
		doc = append(doc, field{"parameters", params})
	}
	resources := map[string]any{}
	for name, r := range t.resources {
		def := fields{{"type", r.kind}}
		if len(r.dependsOn) > 0 {
			def = append(def, field{"depends_on", r.dependsOn})
		}
		if len(r.properties) > 0 {
			def = append(def, field{"properties", r.properties})
		}
		resources[name] = def
	}
	doc = append(doc, field{"resources", resources})
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(yamlNode(doc)); err != nil {
		return "", fmt.Errorf("write a Heat template: %w", err)
	}
	if err := enc.Close(); err != nil {
		return "", fmt.Errorf("write a Heat template: %w", err)
	}
	return out.String(), nil
}

// field is an entry of a mapping whose order counts for who reads it.
type field struct {
	key   string
	value any
}

type fields []field

// plainText is a string that no reader of YAML 1.1 or 1.2 takes for anything else; plainWords are those that some do.
var (
	plainText  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*(?:::?[A-Za-z0-9_./-]+)*$`)
	plainWords = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
	// blockText is text that a literal block keeps as it is.
	blockText = regexp.MustCompile(`^[!-~](?:[ -~]*[!-~])?(?:\n(?:[ -~]*[!-~])?)*\n?$`)
)

// yamlNode writes values so that Heat, which reads YAML 1.1, and everybody else read the same.
func yamlNode(v any) *yaml.Node {
	scalar := func(tag, value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value} }
	switch v := v.(type) {
	case fields:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, f := range v {
			n.Content = append(n.Content, yamlNode(f.key), yamlNode(f.value))
		}
		return n
	case map[string]any:
		all := make(fields, 0, len(v))
		for _, key := range sorted(v) {
			all = append(all, field{key, v[key]})
		}
		n := yamlNode(all)
		if _, call := v["get_param"]; call || v["get_resource"] != nil {
			n.Style = yaml.FlowStyle
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, e := range v {
			n.Content = append(n.Content, yamlNode(e))
		}
		return n
	case []string:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for _, e := range v {
			n.Content = append(n.Content, yamlNode(e))
		}
		return n
	case string:
		n := scalar("!!str", v)
		switch {
		case plainText.MatchString(v) && !plainWords.MatchString(v):
		case strings.Contains(v, "\n") && blockText.MatchString(v):
			n.Style = yaml.LiteralStyle
		default:
			n.Style = yaml.DoubleQuotedStyle
		}
		return n
	case bool:
		return scalar("!!bool", strconv.FormatBool(v))
	case int:
		return scalar("!!int", strconv.Itoa(v))
	case int64:
		return scalar("!!int", strconv.FormatInt(v, 10))
	}
	panic(fmt.Sprintf("toscahot: a template holds no %T", v))
}
