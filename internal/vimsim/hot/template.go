// Package hot reads Heat Orchestration Templates and evaluates their intrinsic
// functions, conditions and parameters. It knows nothing of resource types: a
// Resolver gets references and attributes from whoever runs the template.
package hot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Template is a parsed HOT document.
type Template struct {
	// Version is heat_template_version as written.
	Version string
	// Description is the template's description, "No description" if absent.
	Description string
	// Params are the declared parameters by name.
	Params map[string]*ParamSchema
	// Resources are the resource definitions by name.
	Resources map[string]*Resource
	// Outputs are the output definitions by name.
	Outputs map[string]*Output
	// Conditions are the named conditions, unevaluated.
	Conditions map[string]any
	// Raw is the document as plain values; it must not be changed.
	Raw map[string]any
}

// Resource is one resource definition.
type Resource struct {
	Name       string
	Type       string
	Properties map[string]any
	Metadata   map[string]any
	DependsOn  []string
	// Condition is a condition name, a boolean or a condition function; nil if always.
	Condition any
	// DeletionPolicy is "delete" or "retain", lower case; empty if not given.
	DeletionPolicy string
	// ExternalID names an existing resource to adopt without managing it.
	ExternalID any
	// Description as written.
	Description string
}

// Output is one output definition.
type Output struct {
	Name        string
	Description string
	Value       any
	Condition   any
}

var versions = []string{
	"2013-05-23", "2014-10-16", "2015-04-30", "2015-10-15", "2016-04-08", "2016-10-14", "newton",
	"2017-02-24", "ocata", "2017-09-01", "pike", "2018-03-02", "queens", "2018-08-31", "rocky",
	"2021-04-16", "wallaby",
}

var sections = []string{
	"heat_template_version", "description", "parameter_groups", "parameters", "resources", "outputs", "conditions",
}

// ParseText reads a YAML or JSON template.
func ParseText(text string) (*Template, error) {
	v, err := Decode([]byte(text))
	if err != nil {
		return nil, errf("HTTPBadRequest", "Template not in valid format: Error parsing template [root stack] %v", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errf("HTTPBadRequest", "The template is not a JSON object or YAML mapping.")
	}
	return Parse(m)
}

// Parse reads a template from plain values as Decode makes them. Errors are
// *Error with Heat's wording.
func Parse(m map[string]any) (*Template, error) {
	ver, ok := m["heat_template_version"]
	if !ok {
		return nil, errf("HTTPBadRequest", "Template not in valid format: Template format version not found.")
	}
	t := &Template{
		Version: String(ver), Description: "No description", Raw: m,
		Params: map[string]*ParamSchema{}, Resources: map[string]*Resource{}, Outputs: map[string]*Output{},
	}
	if !slices.Contains(versions, t.Version) {
		return nil, errf("InvalidTemplateVersion",
			`The template version is invalid: "heat_template_version: %s". "heat_template_version" should be one of: %s`,
			t.Version, strings.Join(slices.Sorted(slices.Values(versions)), ", "))
	}
	for k := range m {
		if !slices.Contains(sections, k) {
			return nil, errf("InvalidTemplateSection", "The template section is invalid: %s", k)
		}
	}
	if d, ok := m["description"].(string); ok {
		t.Description = d
	}
	params, err := section(m, "parameters")
	if err != nil {
		return nil, err
	}
	for name, v := range params {
		p, err := parseParam(name, v)
		if err != nil {
			return nil, err
		}
		t.Params[name] = p
	}
	if t.Conditions, err = section(m, "conditions"); err != nil {
		return nil, err
	}
	if err := t.parseResources(m); err != nil {
		return nil, err
	}
	if err := t.parseOutputs(m); err != nil {
		return nil, err
	}
	for name := range t.Params {
		if _, dup := t.Resources[name]; dup {
			return nil, Invalid(nil, "Duplicate names {'%s'}", name)
		}
	}
	return t, nil
}

func section(m map[string]any, name string) (map[string]any, error) {
	v, ok := m[name]
	if !ok || v == nil {
		return nil, nil
	}
	s, ok := v.(map[string]any)
	if !ok {
		return nil, Invalid(nil, `"%s" must contain a map of %s maps. Found a [%s] instead`, name, name, pyType(v))
	}
	return s, nil
}

func pyType(v any) string {
	switch v.(type) {
	case string:
		return "str"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case []any:
		return "list"
	case nil:
		return "NoneType"
	}
	return "dict"
}

var resourceKeys = []string{
	"type", "properties", "metadata", "depends_on", "deletion_policy", "update_policy", "description",
	"condition", "external_id",
}

func (t *Template) parseResources(m map[string]any) error {
	rs, err := section(m, "resources")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(rs)) {
		r, err := ParseResource(name, rs[name])
		if err != nil {
			return err
		}
		t.Resources[name] = r
	}
	return nil
}

// ParseResource reads one resource definition; groups use it for their members.
func ParseResource(name string, v any) (*Resource, error) {
	d, ok := v.(map[string]any)
	if !ok {
		return nil, Invalid(nil, `"resources" must contain a map of resource maps. Found a [%s] instead`, pyType(v))
	}
	if strings.Contains(name, "/") {
		return nil, Invalid(nil, `Resource name may not contain "/"`)
	}
	for k := range d {
		if !slices.Contains(resourceKeys, k) {
			return nil, Invalid(nil, `"%s" is not a valid keyword inside a resource definition`, k)
		}
	}
	r := &Resource{Name: name, Condition: d["condition"], ExternalID: d["external_id"]}
	if r.Type, ok = d["type"].(string); !ok || r.Type == "" {
		return nil, Invalid(nil, "Each resource must contain a type key.")
	}
	r.Description, _ = d["description"].(string)
	if p := d["properties"]; p != nil {
		if r.Properties, ok = p.(map[string]any); !ok {
			return nil, Invalid([]string{"resources", name, "properties"}, "%s properties: should be a map, found %s", name, pyType(p))
		}
	}
	r.Metadata, _ = d["metadata"].(map[string]any)
	switch dep := d["depends_on"].(type) {
	case nil:
	case string:
		r.DependsOn = []string{dep}
	case []any:
		for _, x := range dep {
			r.DependsOn = append(r.DependsOn, String(x))
		}
	default:
		return nil, Invalid(nil, "Resource %s depends_on must be a list of strings", name)
	}
	r.DeletionPolicy = strings.ToLower(String(d["deletion_policy"]))
	switch r.DeletionPolicy {
	case "", "delete", "retain", "snapshot":
	default:
		return nil, Invalid([]string{"resources", name}, `Invalid deletion policy "%s"`, r.DeletionPolicy)
	}
	return r, nil
}

func (t *Template) parseOutputs(m map[string]any) error {
	outs, err := section(m, "outputs")
	if err != nil {
		return err
	}
	for name, v := range outs {
		d, ok := v.(map[string]any)
		if !ok {
			return Invalid(nil, `"outputs" must contain a map of output maps. Found a [%s] instead`, pyType(v))
		}
		val, ok := d["value"]
		if !ok {
			return Invalid(nil, `Each output must contain a value key.`)
		}
		o := &Output{Name: name, Value: val, Condition: d["condition"]}
		o.Description = "No description given"
		if s, ok := d["description"].(string); ok {
			o.Description = s
		}
		t.Outputs[name] = o
	}
	return nil
}

// CheckRefs verifies that every reference names a resource of the template
// (InvalidTemplateReference) and that there is no cycle.
func (t *Template) CheckRefs() error {
	for _, name := range slices.Sorted(maps.Keys(t.Resources)) {
		r := t.Resources[name]
		for _, d := range r.DependsOn {
			if t.Resources[d] == nil {
				return badRef(d, name+".depends_on")
			}
		}
		if err := t.checkRefs(r.Properties, name+".Properties"); err != nil {
			return err
		}
		if err := t.checkRefs(r.Metadata, name+".Metadata"); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Outputs)) {
		if err := t.checkRefs(t.Outputs[name].Value, name+".Value"); err != nil {
			return err
		}
	}
	_, err := t.Order()
	return err
}

func badRef(ref, key string) error {
	return errf("InvalidTemplateReference", `The specified reference "%s" (in %s) is incorrect.`, ref, key)
}

func (t *Template) checkRefs(v any, path string) error {
	var err error
	walkRefs(v, path, func(r Ref, path string) {
		if err == nil && t.Resources[r.Resource] == nil {
			err = badRef(r.Resource, path)
		}
	})
	return err
}

// Ref is a use of another resource: GetAttr is false for get_resource.
type Ref struct {
	Resource string
	GetAttr  bool
	// Attr is the attribute name of a get_attr; empty for all attributes.
	Attr string
}

// Refs lists the resources that a value refers to, in document order.
func Refs(v any) []Ref {
	var refs []Ref
	walkRefs(v, "", func(r Ref, _ string) { refs = append(refs, r) })
	return refs
}

func walkRefs(v any, path string, f func(Ref, string)) {
	switch t := v.(type) {
	case map[string]any:
		if len(t) == 1 {
			if s, ok := t["get_resource"].(string); ok {
				f(Ref{Resource: s}, path)
				return
			}
			if l, ok := t["get_attr"].([]any); ok && len(l) > 0 {
				if s, ok := l[0].(string); ok {
					r := Ref{Resource: s, GetAttr: true}
					if len(l) > 1 {
						r.Attr = String(l[1])
					}
					f(r, path)
				}
				walkRefs(l[1:], path, f)
				return
			}
		}
		for _, k := range slices.Sorted(maps.Keys(t)) {
			walkRefs(t[k], path+"."+k, f)
		}
	case []any:
		for i, x := range t {
			walkRefs(x, fmt.Sprintf("%s[%d]", path, i), f)
		}
	}
}

// Deps returns the names of the resources that r needs before itself, sorted.
func (r *Resource) Deps() []string {
	set := map[string]bool{}
	for _, d := range r.DependsOn {
		set[d] = true
	}
	for _, ref := range Refs(r.Properties) {
		set[ref.Resource] = true
	}
	for _, ref := range Refs(r.Metadata) {
		set[ref.Resource] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// Order returns the resource names so that each comes after what it needs, or
// a CircularDependencyException error.
func (t *Template) Order() ([]string, error) {
	const doing, done = 1, 2
	state := map[string]int{}
	var order, trail []string
	var visit func(string) error
	visit = func(n string) error {
		switch state[n] {
		case done:
			return nil
		case doing:
			i := slices.Index(trail, n)
			return errf("CircularDependencyException", "Circular Dependency Found: {%s}", cycle(trail[i:]))
		}
		state[n] = doing
		trail = append(trail, n)
		for _, d := range t.Resources[n].Deps() {
			if t.Resources[d] == nil {
				continue
			}
			if err := visit(d); err != nil {
				return err
			}
		}
		trail = trail[:len(trail)-1]
		state[n] = done
		order = append(order, n)
		return nil
	}
	for _, n := range slices.Sorted(maps.Keys(t.Resources)) {
		if err := visit(n); err != nil {
			return nil, err
		}
	}
	return order, nil
}

func cycle(names []string) string {
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = fmt.Sprintf("'%s': ['%s']", n, names[(i+1)%len(names)])
	}
	return strings.Join(parts, ", ")
}
