package vimsim

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

func heatTypes() []*rtype {
	value := func(key string) func(*Cloud, *resource) doc {
		return func(_ *Cloud, r *resource) doc { return doc{key: r.data[key]} }
	}
	policy := func(e *exec, r *resource, _ doc) error {
		if r.phys == "" {
			r.phys = hexID()
		}
		return nil
	}
	none := func(_ *exec, r *resource, _ doc) error {
		r.phys = r.physicalName()
		return nil
	}
	return append(groupTypes(),
		&rtype{
			name: "OS::Heat::ScalingPolicy", props: props("scaling_adjustment!~ adjustment_type!~ auto_scaling_group_id! cooldown~ min_adjustment_step~"),
			attrs: []string{"alarm_url", "signal_url"}, create: policy, update: policy,
			show: func(_ *Cloud, r *resource) doc {
				u := "/orchestration/v1/" + r.stack.project + "/stacks/" + r.stack.name + "/" + r.stack.id + "/resources/" + r.name + "/signal"
				return doc{"alarm_url": u, "signal_url": u}
			},
			validate: func(_ *Cloud, _ *stack, name string, p doc) error {
				if t := str(p, "adjustment_type"); t != "" && !slices.Contains([]string{"change_in_capacity", "exact_capacity", "percent_change_in_capacity"}, t) {
					return &hot.Error{Kind: "StackValidationFailed", Label: "Property error", Path: []string{"resources", name, "properties", "adjustment_type"}, Msg: `"` + t + `" is not an allowed value ['change_in_capacity', 'exact_capacity', 'percent_change_in_capacity']`}
				}
				return nil
			},
		},
		&rtype{
			name: "OS::Heat::RandomString", props: props("length character_classes character_sequences salt"), attrs: []string{"value"},
			create: func(_ *exec, r *resource, p doc) error {
				n := toInt(p["length"])
				if n <= 0 || n > 512 {
					n = 32
				}
				const set = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				b := make([]byte, n)
				_, _ = rand.Read(b) // never fails
				for i := range b {
					b[i] = set[int(b[i])%len(set)]
				}
				r.data["value"] = string(b)
				r.phys = r.physicalName()
				return nil
			},
			show: value("value"), ref: func(_ *Cloud, r *resource) any { return orElse(r.data["value"], r.name) },
		},
		&rtype{
			name: "OS::Heat::TestResource", props: props("value~ fail~ update_replace~ update_replace_value wait_secs~ action_wait_secs~ attr_wait_secs~ client_name~ entity_name~ constraint_prop_secs~"),
			attrs: []string{"output"}, create: createTest, update: updateTest, show: value("output"),
			remove:    func(e *exec, r *resource) error { return effort(e, "delete", r.props) },
			replaceIf: func(_ *Cloud, _ *resource, p doc) bool { return p["update_replace"] == true },
		},
		&rtype{name: "OS::Heat::None", open: true, create: none, update: none},
		&rtype{
			name: "OS::Heat::Value", props: props("value!~ type~"), attrs: []string{"value"}, show: value("value"),
			create: func(_ *exec, r *resource, p doc) error {
				r.phys, r.data["value"] = r.physicalName(), p["value"]
				return nil
			},
			update: func(_ *exec, r *resource, p doc) error { r.data["value"] = p["value"]; return nil },
		},
	)
}

// effort lets the time pass that a TestResource takes for an action.
func effort(e *exec, action string, p doc) error {
	w := p["wait_secs"]
	if m, _ := p["action_wait_secs"].(map[string]any); m[action] != nil {
		w = m[action]
	}
	d := time.Duration(toInt(w)) * time.Second
	if d <= 0 {
		return nil
	}
	return e.unlocked(func() error { return e.c.sleep(e.ctx, d) })
}

func fails(p doc) bool { return p["fail"] == true || strings.EqualFold(hot.String(p["fail"]), "true") }

func createTest(e *exec, r *resource, p doc) error {
	if !fails(p) {
		r.phys, r.data["output"] = r.physicalName(), orElse(p["value"], "test_string")
	}
	if err := effort(e, "create", p); err != nil {
		return err
	}
	if fails(p) {
		return &failure{class: "ValueError", msg: "Test Resource failed " + r.name}
	}
	return nil
}

func updateTest(e *exec, r *resource, p doc) error {
	if slices.Contains(diff(e.old, p), "value") {
		if !fails(p) {
			r.data["output"] = orElse(p["value"], "test_string")
		}
		if err := effort(e, "update", p); err != nil {
			return err
		}
	}
	if fails(p) {
		return &failure{class: "ValueError", msg: "Test Resource failed " + r.name}
	}
	return nil
}

// templateType is the type that a template among the files makes; tm is nil
// where only deleting is needed.
func (c *Cloud) templateType(name string, tm *hot.Template) *rtype {
	t := &rtype{
		name: name, nests: true, props: map[string]prop{}, remove: removeNested,
		ref: func(_ *Cloud, r *resource) any {
			if r.nested == nil {
				return r.name
			}
			if o := r.nested.tmpl.Outputs["OS::stack_id"]; o != nil {
				if v, err := c.resolver(r.nested).Resolve(o.Value); err == nil && v != nil {
					return v
				}
			}
			return "arn:openstack:heat::" + r.stack.project + ":stacks/" + r.nested.name + "/" + r.nested.id
		},
		show: func(c *Cloud, r *resource) doc {
			d := doc{}
			if r.nested != nil {
				for n, o := range r.nested.tmpl.Outputs {
					if v, err := c.resolver(r.nested).Resolve(o.Value); err == nil {
						d[n] = v
					}
				}
			}
			return d
		},
	}
	if tm == nil {
		return t
	}
	for n, p := range tm.Params {
		t.props[n] = prop{required: !p.HasDefault, update: true}
	}
	for n := range tm.Outputs {
		t.attrs = append(t.attrs, n)
	}
	t.create = func(e *exec, r *resource, p doc) error { return spawn(e, r, tm, p) }
	t.update = func(e *exec, r *resource, p doc) error { return respawn(e, r, tm, p) }
	return t
}

// spawn makes a resource's nested stack and runs its creation.
func spawn(e *exec, r *resource, tm *hot.Template, params map[string]any) error {
	c := e.c
	child := &stack{
		id: newID(), name: r.physicalName(), project: r.stack.project, user: r.stack.user, userName: r.stack.userName, parent: r.stack,
		parentRes: r.name, tmpl: tm, files: r.stack.files, params: params, env: doc{}, disableRollback: true,
	}
	vals, err := tm.Values(params, pseudo(child))
	if err != nil {
		return err
	}
	child.values = vals
	c.newStack(child)
	r.nested, r.phys = child, child.id
	return e.unlocked(func() error {
		return c.nestedOp(e.ctx, child, actCreate, nil, func(ctx context.Context) error { return c.converge(ctx, child, actCreate) })
	})
}

// respawn updates a resource's nested stack.
func respawn(e *exec, r *resource, tm *hot.Template, params map[string]any) error {
	c, child := e.c, r.nested
	if child == nil {
		return spawn(e, r, tm, params)
	}
	vals, err := tm.Values(params, pseudo(child))
	if err != nil {
		return err
	}
	return e.unlocked(func() error {
		return c.nestedOp(e.ctx, child, actUpdate, func() {
			child.tmpl, child.files, child.params, child.values = tm, r.stack.files, params, vals
		}, func(ctx context.Context) error { return c.converge(ctx, child, actUpdate) })
	})
}

func removeNested(e *exec, r *resource) error {
	c, child := e.c, r.nested
	if child == nil {
		return nil
	}
	err := e.unlocked(func() error {
		return c.nestedOp(e.ctx, child, actDelete, nil, func(ctx context.Context) error { return c.destroy(ctx, child) })
	})
	if err == nil {
		c.forget(child)
	}
	return err
}

// validateNested checks the templates below a resource, without their values.
func (c *Cloud) validateNested(t *rtype, s *stack, name string, p doc, depth int) error {
	if !t.nests {
		return nil
	}
	var tm *hot.Template
	var err error
	params := p
	switch t.name {
	case "OS::Heat::AutoScalingGroup", "OS::Heat::ResourceGroup":
		key := "resource"
		if t.name == "OS::Heat::ResourceGroup" {
			key = "resource_def"
		}
		def, isMap := p[key].(map[string]any)
		if !isMap {
			return nil
		}
		params = doc{}
		tm, err = groupTemplate(map[string]any{shortID(): def})
	default:
		tm, err = c.parse(s.files[t.name])
	}
	if err == nil {
		child := &stack{id: newID(), name: s.name + "-" + name, project: s.project, parent: s, tmpl: tm, files: s.files, params: params}
		// Values that are not known yet are placeholders here.
		child.values = pseudo(child)
		for n, ps := range tm.Params {
			if v, given := params[n]; given && v != nil {
				child.values[n] = v
			} else {
				child.values[n] = ps.Default
			}
		}
		err = c.validate(child, false, depth+1)
	}
	if err == nil {
		return nil
	}
	if h, isHot := err.(*hot.Error); isHot { //nolint:errorlint // hot returns it unwrapped
		place := name + "<nested_stack>"
		if _, file := s.files[t.name]; file {
			place = name + "<" + t.name + ">"
		}
		return &hot.Error{Kind: "StackValidationFailed", Label: h.Label, Path: append([]string{"resources", place}, h.Path...), Msg: h.Msg}
	}
	return err
}

// groupTemplate is the template of a group's own stack.
func groupTemplate(members map[string]any) (*hot.Template, error) {
	return hot.Parse(map[string]any{"heat_template_version": "2015-04-30", "resources": members})
}

// sortedMembers lists a group's members in the order in which they go: failed
// ones first, then by age, in the whole seconds that Heat's database keeps, and
// then by name.
func sortedMembers(r *resource) []*resource {
	if r.nested == nil {
		return nil
	}
	l := slices.Collect(maps.Values(r.nested.res))
	slices.SortFunc(l, func(a, b *resource) int {
		if fa, fb := a.status == stFailed, b.status == stFailed; fa != fb {
			if fa {
				return -1
			}
			return 1
		}
		if n := a.created.Truncate(time.Second).Compare(b.created.Truncate(time.Second)); n != 0 {
			return n
		}
		return strings.Compare(a.name, b.name)
	})
	return l
}

func healthy(l []*resource) int64 {
	var n int64
	for _, m := range l {
		if m.status != stFailed {
			n++
		}
	}
	return n
}
