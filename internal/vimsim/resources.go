package vimsim

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

// prop is one property of a resource type.
type prop struct {
	required bool
	// update is whether a change is made in place; else the resource is replaced.
	update bool
	// check names what the value must exist as: image, flavor, network, …
	check string
}

// rtype is a resource type. Its functions run with Cloud.mu held; those that
// wait give it up through exec.
type rtype struct {
	name    string
	service string // nova, neutron, cinder; empty for Heat's own
	props   map[string]prop
	attrs   []string
	// open accepts properties that are not listed.
	open bool
	// nests is whether the resource is a nested stack.
	nests bool
	// selfWait is whether create waits by itself, in the middle of its work.
	selfWait bool
	create   func(e *exec, r *resource, p doc) error
	update   func(e *exec, r *resource, p doc) error
	remove   func(e *exec, r *resource) error
	// show gives all attributes.
	show func(c *Cloud, r *resource) doc
	// ref gives the reference id; the physical id if nil.
	ref func(c *Cloud, r *resource) any
	// replaceIf turns an in-place update into a replacement.
	replaceIf func(c *Cloud, r *resource, p doc) bool
	// keepFailed says that a failed resource can be used on.
	keepFailed func(c *Cloud, r *resource) bool
	// release frees what a replacement needs before the old resource goes.
	release func(c *Cloud, r *resource)
	// validate checks the properties of a definition in a template.
	validate func(c *Cloud, s *stack, name string, p doc) error
}

func (t *rtype) quota(reason string) error {
	switch t.service {
	case "neutron":
		return clientFailure("neutron", fail(409, "OverQuota", orText(reason, "Quota exceeded for resources.")))
	case "cinder":
		return clientFailure("cinder", fail(413, "", orText(reason, "Quota exceeded.")))
	}
	return clientFailure("nova", fail(403, "", orText(reason, "Quota exceeded for instances.")))
}

// props reads a compact property list: "name~ image~:image flavor!~:flavor"
// where ! is required, ~ updated in place, and :x what must exist.
func props(list string) map[string]prop {
	m := map[string]prop{}
	for _, f := range strings.Fields(list) {
		name, check, _ := strings.Cut(f, ":")
		p := prop{check: check}
		if strings.HasSuffix(name, "~") {
			p.update, name = true, strings.TrimSuffix(name, "~")
		}
		if strings.HasSuffix(name, "!") {
			p.required, name = true, strings.TrimSuffix(name, "!")
		}
		m[name] = p
	}
	return m
}

var registry map[string]*rtype

func init() {
	registry = map[string]*rtype{}
	for _, l := range [][]*rtype{novaTypes(), neutronTypes(), cinderTypes(), heatTypes()} {
		for _, t := range l {
			registry[t.name] = t
		}
	}
}

// typeOf finds a resource type: a built-in one or a template among the files.
// Callers hold mu.
func (c *Cloud) typeOf(name string, files map[string]string) (*rtype, error) {
	if t := registry[name]; t != nil {
		return t, nil
	}
	text, have := files[name]
	if !have {
		if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".template") {
			return nil, hot.Invalid(nil, `Could not fetch remote template "%s": Invalid URL scheme `, name)
		}
		return nil, hot.Invalid(nil, "The Resource Type (%s) could not be found.", name)
	}
	tm, err := c.parse(text)
	if err != nil {
		return nil, err
	}
	return c.templateType(name, tm), nil
}

// parse reads a template text; equal texts are read once.
func (c *Cloud) parse(text string) (*hot.Template, error) {
	if t := c.heat.parsed[text]; t != nil {
		return t, nil
	}
	t, err := hot.ParseText(text)
	if err == nil {
		err = t.CheckRefs()
	}
	if err != nil {
		return nil, err
	}
	if len(c.heat.parsed) >= 256 {
		clear(c.heat.parsed)
	}
	c.heat.parsed[text] = t
	return t, nil
}

// checkProps verifies resolved properties. unresolved lists properties whose
// value is not known yet. Errors carry the path resources, name, properties, …
func (c *Cloud) checkProps(t *rtype, s *stack, name string, p doc, unresolved map[string]bool) error {
	at := []string{"resources", name, "properties"}
	bad := func(path []string, msg string) error {
		return &hot.Error{Kind: "StackValidationFailed", Label: "Property error", Path: path, Msg: msg}
	}
	for _, k := range slices.Sorted(maps.Keys(p)) {
		sp, known := t.props[k]
		if !known {
			if t.open {
				continue
			}
			return bad(at, "Unknown Property "+k)
		}
		if unresolved[k] || sp.check == "" {
			continue
		}
		if msg := c.checkValue(sp.check, p[k], s); msg != "" {
			return bad(append(at[:3:3], k), msg)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.props)) {
		if t.props[k].required && p[k] == nil && !unresolved[k] {
			return bad(at, "Property "+k+" not assigned")
		}
	}
	return nil
}

func (c *Cloud) checkValue(kind string, v any, s *stack) string {
	name, isText := v.(string)
	if !isText || name == "" {
		return ""
	}
	msg := ""
	switch kind {
	case "image":
		if _, err := c.findImage(s.project, name); err != nil {
			msg = err.Error()
		}
	case "flavor":
		if _, found := c.findFlavor(name); !found {
			msg = "No Flavor matching {'name': '" + name + "'}. (HTTP 404)"
		}
	case "keypair":
		if _, found := c.nova.keys.get(name); !found {
			msg = "The Key (" + name + ") could not be found."
		}
	case "volumetype":
		if len(c.cinder.types.find(name, nil)) == 0 {
			msg = "The VolumeType (" + name + ") could not be found."
		}
	case "volume":
		if _, found := c.cinder.volumes.get(name); !found {
			msg = "The Volume (" + name + ") could not be found."
		}
	default:
		if _, err := c.findNet(kind, name, s.project); err != nil {
			msg = err.Error()
		}
	}
	if msg == "" {
		return ""
	}
	return "Error validating value '" + name + "': " + msg
}

// reference is what get_resource gives; mu is held.
func (c *Cloud) reference(r *resource) any {
	if t, err := c.typeOf(r.typ, r.stack.files); err == nil && t.ref != nil {
		return t.ref(c, r)
	}
	if r.phys == "" {
		return r.name
	}
	return r.phys
}

// attribute is what get_attr gives; mu is held.
func (c *Cloud) attribute(r *resource, attr string, path []any) (any, error) {
	t, err := c.typeOf(r.typ, r.stack.files)
	if err != nil {
		return nil, err
	}
	if t.name == "OS::Heat::AutoScalingGroup" || t.name == "OS::Heat::ResourceGroup" {
		return c.groupAttribute(r, attr, path)
	}
	if t.nests && strings.HasPrefix(attr, "resource.") {
		return c.nestedAttribute(r, attr, path)
	}
	all := doc{}
	if t.show != nil {
		all = t.show(c, r)
	}
	if attr == "" {
		return all, nil
	}
	if attr == "show" {
		v, _ := hot.Select(all, path)
		return v, nil
	}
	v, found := all[attr]
	if !found && !slices.Contains(t.attrs, attr) {
		return nil, &hot.Error{Kind: "InvalidTemplateAttribute", Msg: "The Referenced Attribute (" + r.name + " " + attr + ") is incorrect."}
	}
	got, found := hot.Select(plain(v), path)
	if !found {
		return nil, nil
	}
	return got, nil
}

// plain turns the slices that services hold into []any for path selection.
func plain(v any) any {
	switch t := v.(type) {
	case []string:
		l := make([]any, len(t))
		for i, x := range t {
			l[i] = x
		}
		return l
	case []doc:
		l := make([]any, len(t))
		for i, x := range t {
			l[i] = x
		}
		return l
	}
	return v
}

// validate checks a whole definition as Heat does on POST and PUT: references,
// types, properties; values too where strict. mu is held.
func (c *Cloud) validate(s *stack, strict bool, depth int) error {
	if depth > 5 {
		return hot.Invalid(nil, "Recursion depth exceeds 5.")
	}
	if err := s.tmpl.CheckRefs(); err != nil {
		return err
	}
	order, err := s.tmpl.Order()
	if err != nil {
		return err
	}
	res := c.resolver(s)
	for _, name := range order {
		def := s.tmpl.Resources[name]
		on, err := res.Condition(def.Condition)
		if err != nil {
			return err
		}
		if !on {
			continue
		}
		t, err := c.typeOf(def.Type, s.files)
		if err != nil {
			return err
		}
		if err := c.checkAttrs(s, def); err != nil {
			return err
		}
		unresolved := map[string]bool{}
		for k, v := range def.Properties {
			if refs := hot.Refs(v); len(refs) > 0 || !strict {
				unresolved[k] = true
			}
		}
		p, err := res.Properties(def.Properties)
		if err != nil {
			return err
		}
		if err := c.checkProps(t, s, name, p, unresolved); err != nil {
			return err
		}
		if t.validate != nil {
			if err := t.validate(c, s, name, p); err != nil {
				return err
			}
		}
		if err := c.validateNested(t, s, name, p, depth); err != nil {
			return err
		}
	}
	for _, o := range s.tmpl.Outputs {
		for _, ref := range hot.Refs(o.Value) {
			if err := c.checkAttr(s, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cloud) checkAttrs(s *stack, def *hot.Resource) error {
	for _, ref := range hot.Refs(def.Properties) {
		if err := c.checkAttr(s, ref); err != nil {
			return err
		}
	}
	return nil
}

// checkAttr refuses an attribute that the type cannot have.
func (c *Cloud) checkAttr(s *stack, ref hot.Ref) error {
	d := s.tmpl.Resources[ref.Resource]
	if !ref.GetAttr || ref.Attr == "" || d == nil {
		return nil
	}
	t, err := c.typeOf(d.Type, s.files)
	if err != nil {
		return err
	}
	if slices.Contains(t.attrs, ref.Attr) || ref.Attr == "show" || t.name == "OS::Heat::ResourceGroup" || t.nests && strings.HasPrefix(ref.Attr, "resource.") {
		return nil
	}
	return &hot.Error{Kind: "InvalidTemplateAttribute", Msg: "The Referenced Attribute (" + ref.Resource + " " + ref.Attr + ") is incorrect."}
}
