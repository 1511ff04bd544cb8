package vimsim

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

func groupTypes() []*rtype {
	ref := func(_ *Cloud, r *resource) any {
		if r.nested == nil {
			return r.name
		}
		return r.physicalName()
	}
	return []*rtype{
		{
			name: "OS::Heat::AutoScalingGroup", nests: true, ref: ref, remove: removeNested,
			props: props("resource!~ max_size!~ min_size!~ cooldown~ desired_capacity~ rolling_updates~"),
			attrs: []string{"outputs", "outputs_list", "current_size", "refs", "refs_map"},
			create: func(e *exec, r *resource, p doc) error {
				n := toInt(p["desired_capacity"])
				if n == 0 {
					n = toInt(p["min_size"])
				}
				tm, err := memberTemplate(nil, nil, p["resource"], n, false)
				if err != nil {
					return err
				}
				if err = spawn(e, r, tm, doc{}); err == nil {
					e.c.endScaling(r, toInt(p["cooldown"]), "ExactCapacity : "+strconv.FormatInt(n, 10), true)
				}
				return err
			},
			update: updateASG, validate: validateASG,
		},
		{
			name: "OS::Heat::ResourceGroup", nests: true, ref: ref, remove: removeNested,
			props: props("count~ index_var resource_def!~ removal_policies~ removal_policies_mode~"),
			attrs: []string{"refs", "refs_map", "attributes", "removed_rsrc_list"},
			create: func(e *exec, r *resource, p doc) error {
				tm, err := indexedTemplate(r, p)
				if err != nil {
					return err
				}
				return spawn(e, r, tm, doc{})
			},
			update: func(e *exec, r *resource, p doc) error {
				tm, err := indexedTemplate(r, p)
				if err != nil {
					return err
				}
				return respawn(e, r, tm, doc{})
			},
		},
	}
}

func validateASG(_ *Cloud, _ *stack, name string, p doc) error {
	at := []string{"resources", name}
	if _, isMap := p["resource"].(map[string]any); p["resource"] != nil && !isMap {
		return hot.Invalid(at, `"%s" is not a map`, hot.String(p["resource"]))
	}
	lo, hi := toInt(p["min_size"]), toInt(p["max_size"])
	switch {
	case p["min_size"] == nil || p["max_size"] == nil:
	case hi < lo:
		return hot.Invalid(nil, "MinSize can not be greater than MaxSize")
	case p["desired_capacity"] != nil && (toInt(p["desired_capacity"]) < lo || toInt(p["desired_capacity"]) > hi):
		return hot.Invalid(nil, "DesiredCapacity must be between MinSize and MaxSize")
	}
	return nil
}

// memberTemplate is a group's template with size members: the last of the old
// ones stay, with their definitions unless renew, new ones get def.
func memberTemplate(old []*resource, defs map[string]any, def any, size int64, renew bool) (*hot.Template, error) {
	if over := int64(len(old)) - size; over > 0 {
		old = old[over:]
	}
	m := make(map[string]any, size)
	for _, r := range old {
		m[r.name] = def
		if d, have := defs[r.name]; have && !renew {
			m[r.name] = d
		}
	}
	for int64(len(m)) < size {
		m[shortID()] = def
	}
	return groupTemplate(m)
}

func memberDefs(r *resource) map[string]any {
	if r.nested == nil || r.nested.tmpl == nil {
		return nil
	}
	m, _ := r.nested.tmpl.Raw["resources"].(map[string]any)
	return m
}

// updateASG resizes to the literal desired_capacity, or else to the number of
// healthy members; failed members go first, then the oldest.
func updateASG(e *exec, r *resource, p doc) error {
	members := sortedMembers(r)
	size := toInt(p["desired_capacity"])
	if size == 0 {
		size = healthy(members)
	}
	size = min(max(size, toInt(p["min_size"])), toInt(p["max_size"]))
	renew := slices.Contains(diff(e.old, p), "resource")
	tm, err := memberTemplate(members, memberDefs(r), p["resource"], size, renew)
	if err != nil {
		return err
	}
	if err := respawn(e, r, tm, doc{}); err != nil {
		r.metadata = with(r.metadata, "scaling_in_progress", false)
		return err
	}
	e.c.endScaling(r, toInt(p["cooldown"]), "ExactCapacity : "+strconv.FormatInt(size, 10), true)
	return nil
}

// endScaling writes the group's cooldown into its metadata.
func (c *Cloud) endScaling(r *resource, cooldown int64, reason string, changed bool) {
	m := with(r.metadata, "scaling_in_progress", false)
	if changed {
		end := c.clk.Now().UTC().Add(time.Duration(max(cooldown, 0)) * time.Second).Format("2006-01-02T15:04:05.000000")
		if old, isMap := m["cooldown_end"].(map[string]any); isMap {
			for k := range old {
				end = max(end, k)
			}
		}
		m["cooldown_end"] = doc{end: reason}
	}
	r.metadata = m
}

// inCooldown reports whether the group may not be scaled yet.
func (c *Cloud) inCooldown(r *resource) bool {
	end, _ := r.metadata["cooldown_end"].(map[string]any)
	now := c.clk.Now().UTC().Format("2006-01-02T15:04:05.000000")
	for k := range end {
		if now < k {
			return true
		}
	}
	return false
}

func indexedTemplate(r *resource, p doc) (*hot.Template, error) {
	count := int64(1)
	if p["count"] != nil {
		count = toInt(p["count"])
	}
	skip := map[string]bool{}
	if old, isMap := r.data["removed"].(map[string]bool); isMap && str(p, "removal_policies_mode") != "update" {
		skip = old
	}
	policies, _ := p["removal_policies"].([]any)
	for _, x := range policies {
		m, _ := x.(map[string]any)
		l, _ := m["resource_list"].([]any)
		for _, n := range l {
			name := hot.String(n)
			if r.nested != nil {
				for _, mem := range r.nested.res {
					if mem.phys == name {
						name = mem.name
					}
				}
			}
			skip[name] = true
		}
	}
	r.data["removed"] = skip
	members := map[string]any{}
	for i := 0; int64(len(members)) < count; i++ {
		n := strconv.Itoa(i)
		if !skip[n] {
			members[n] = hot.Substitute(p["resource_def"], orText(str(p, "index_var"), "%index%"), n)
		}
	}
	return groupTemplate(members)
}

// signal acts on a resource as POST …/signal does. mu is held.
func (c *Cloud) signal(s *stack, r *resource) error {
	if r.action == actDelete || r.action == actSuspend {
		return fail(400, "NotSupported", "Signal resource during "+r.action+" is not supported.")
	}
	if r.phys == "" {
		return fail(404, "ResourceNotAvailable", "The Resource ("+r.name+") is not available.")
	}
	if r.typ != "OS::Heat::ScalingPolicy" {
		return fail(400, "ResourceActionNotSupported", "signal is not supported for resource.")
	}
	want := hot.String(r.props["auto_scaling_group_id"])
	var g *resource
	for _, x := range s.res {
		if x.typ == "OS::Heat::AutoScalingGroup" && (hot.String(c.reference(x)) == want || x.phys == want || x.name == want) {
			g = x
		}
	}
	if g == nil || g.nested == nil {
		c.log.Info("a scaling policy's group is missing", "stack", s.name, "policy", r.name, "group", want)
		return nil
	}
	c.adjust(r, g)
	return nil
}

// adjust resizes a group for a policy, or does nothing where Heat does nothing.
func (c *Cloud) adjust(policy, g *resource) {
	busy := g.metadata["scaling_in_progress"] == true || g.nested.status == stRunning
	if g.status != stComplete || busy || c.inCooldown(g) {
		return
	}
	members := sortedMembers(g)
	have := healthy(members)
	by, how := toInt(policy.props["scaling_adjustment"]), str(policy.props, "adjustment_type")
	size := have
	switch how {
	case "exact_capacity":
		size = by
	case "percent_change_in_capacity":
		size += percent(have, by, toInt(policy.props["min_adjustment_step"]))
	default:
		size += by
	}
	size = min(max(size, toInt(g.props["min_size"])), toInt(g.props["max_size"]))
	if size == have {
		return
	}
	tm, err := memberTemplate(members, memberDefs(g), g.props["resource"], size, false)
	if err != nil {
		c.log.Warn("scaling failed", "group", g.name, "err", err)
		return
	}
	cooldown := toInt(g.props["cooldown"])
	if policy.props["cooldown"] != nil {
		cooldown = toInt(policy.props["cooldown"])
	}
	g.metadata = with(g.metadata, "scaling_in_progress", true)
	child := g.nested
	c.begin(child, actUpdate, func() { child.tmpl, child.values = tm, pseudo(child) }, func(ctx context.Context) error {
		err := c.converge(ctx, child, actUpdate)
		if ended(ctx) != nil { // cancelled or superseded: nothing else tells the group
			c.mu.Lock()
			defer c.mu.Unlock()
			c.endScaling(g, cooldown, "", false)
		}
		return err
	}, func(err error) {
		child.updated = c.clk.Now()
		c.finish(child, actUpdate, err, nil)
		c.endScaling(g, cooldown, how+" : "+strconv.FormatInt(by, 10), err == nil)
		if err == nil {
			c.event(policy.stack, policy.name, policy.typ, policy.phys, "SIGNAL_COMPLETE", "No signal details provided")
		}
	})
}

func percent(have, by, step int64) int64 {
	d := have * by
	n := d / 100
	if n == 0 && d != 0 {
		n = 1
		if d < 0 {
			n = -1
		}
	}
	if step > 0 && step > max(n, -n) {
		if n > 0 {
			return step
		}
		return -step
	}
	return n
}

// groupAttribute resolves get_attr on a group. mu is held.
func (c *Cloud) groupAttribute(r *resource, attr string, path []any) (any, error) {
	members := sortedMembers(r)
	members = slices.DeleteFunc(members, func(m *resource) bool { return m.status == stFailed })
	if r.typ == "OS::Heat::ResourceGroup" {
		slices.SortFunc(members, func(a, b *resource) int { return int(toInt(a.name) - toInt(b.name)) })
	}
	refs := func() []any {
		l := []any{}
		for _, m := range members {
			l = append(l, c.reference(m))
		}
		return l
	}
	each := func(f func(*resource, any)) error {
		if len(path) == 0 {
			return nil
		}
		for _, m := range members {
			v, err := c.attribute(m, hot.String(path[0]), path[1:])
			if err != nil {
				return err
			}
			f(m, v)
		}
		return nil
	}
	switch attr {
	case "":
		return doc{"refs": refs(), "current_size": int64(len(members))}, nil
	case "current_size":
		return int64(len(members)), nil
	case "refs":
		v, _ := hot.Select(refs(), path)
		return v, nil
	case "refs_map":
		m := doc{}
		for _, x := range members {
			m[x.name] = c.reference(x)
		}
		v, _ := hot.Select(m, path)
		return v, nil
	case "removed_rsrc_list":
		return []any{}, nil
	case "outputs", "attributes":
		m := doc{}
		err := each(func(x *resource, v any) { m[x.name] = v })
		return m, err
	case "outputs_list":
		l := []any{}
		err := each(func(_ *resource, v any) { l = append(l, v) })
		return l, err
	}
	if strings.HasPrefix(attr, "resource.") {
		return c.nestedAttribute(r, attr, path)
	}
	if r.typ == "OS::Heat::ResourceGroup" {
		path = append([]any{attr}, path...)
		l := []any{}
		err := each(func(_ *resource, v any) { l = append(l, v) })
		return l, err
	}
	return nil, &hot.Error{Kind: "InvalidTemplateAttribute", Msg: "The Referenced Attribute (" + r.name + " " + attr + ") is incorrect."}
}

// nestedAttribute resolves resource.<name>[.<attribute>] inside a nested stack.
func (c *Cloud) nestedAttribute(r *resource, attr string, path []any) (any, error) {
	if r.nested == nil {
		return nil, nil
	}
	parts := strings.SplitN(attr, ".", 3)
	m := r.nested.res[parts[1]]
	if m == nil {
		return nil, &hot.Error{Kind: "NotFound", Msg: "Member '" + parts[1] + "' not found in group resource '" + r.name + "'."}
	}
	if len(parts) == 3 {
		path = append([]any{parts[2]}, path...)
	}
	if len(path) == 0 {
		return c.reference(m), nil
	}
	return c.attribute(m, hot.String(path[0]), path[1:])
}
