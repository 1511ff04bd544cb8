package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// scaling is how far the scaling of one aspect has come.
type scaling struct {
	Group   string   `json:"group"`             // the name of the AutoScalingGroup, known once seen
	Name    string   `json:"name,omitempty"`    // the name of the group's own stack
	StackID string   `json:"stackId,omitempty"` // and its id
	Seen    bool     `json:"seen,omitempty"`    // Members and Targets are known
	Members []leaver `json:"members,omitempty"` // those before the operation, in the order in which they go
	Targets []int    `json:"targets,omitempty"` // the number of members after each step
	Asked   asked    `json:"asked,omitzero"`
	// Refused is why the VIM did not take the last request.
	Refused string `json:"refused,omitempty"`
}

// leaver is a member of a group with the VNFCs that go when it goes.
type leaver struct {
	Name  string   `json:"name"`
	VNFCs []string `json:"vnfcs,omitempty"`
}

// asked is what a step has asked Heat for, so that it does not ask twice.
type asked struct {
	Step   string    `json:"step"`
	Try    time.Time `json:"try"`              // when the step's try was begun: a later try asks again
	At     time.Time `json:"at"`               // a signal is recorded before it is sent
	Update bool      `json:"update,omitempty"` // a stack update; else a signal
	Before string    `json:"before,omitempty"` // the stack's state that the update met
	// Members is how many members the group had.
	Members int `json:"members,omitempty"`
}

// mendSuffix ends the name of a step, and the tag, under which a rollback brings failed members right.
const mendSuffix = "-mend"

// by tells whether a step has asked in its present try.
func (a asked) by(step string, x *lcm.Execution) bool { return a.Step == step && a.Try.Equal(x.Begun) }

// leaving returns the steps that find out which VNFCs a scaling in will take away.
func (d *Driver) leaving(x *lcm.Execution) []lcm.Step {
	if !slices.ContainsFunc(plan(x).Aspects, func(a lcm.AspectChange) bool { return !a.Out() }) {
		return nil
	}
	return []lcm.Step{{Name: "leaving", Timeout: d.cfg.StackTimeout, Run: d.chooseLeaving}}
}

// scaleSteps returns the steps of SCALE (SOL003 v2.6.1 §5.4.5) and SCALE_TO_LEVEL (§5.4.6): one for every scaling step. New
// members of a group are like those that there are: zones, flavours and images that the grant names for them (§9.5.2.3) count
// where there is none, and are logged otherwise, and told in the new VNFCs' metadata.
func (d *Driver) scaleSteps(x *lcm.Execution) []lcm.Step {
	steps := []lcm.Step{{Name: "groups", Timeout: d.cfg.StackTimeout, Run: d.lookAtGroups}}
	for n, a := range plan(x).Aspects {
		for k := range max(a.To-a.From, a.From-a.To) {
			name := "scale-" + a.ID + "-" + strconv.Itoa(k+1)
			steps = append(steps, lcm.Step{Name: name, Effect: true, Timeout: d.cfg.StackTimeout + slack, Run: d.scaleStep(name, n, k)})
		}
	}
	return append(steps, lcm.Step{Name: "inventory", Timeout: d.cfg.StackTimeout, Run: d.scaleInventory})
}

// unscaleSteps returns the steps that take away again what a failed scaling out has added.
func (d *Driver) unscaleSteps(x *lcm.Execution) ([]lcm.Step, error) {
	var steps []lcm.Step
	for n, a := range plan(x).Aspects {
		if !a.Out() {
			return nil, lcm.Errorf(lcm.KindUnsupported, "a scaling in (of aspect %s) cannot be rolled back", a.ID)
		}
		name := "rollback-" + a.ID
		steps = append(steps, lcm.Step{Name: name, Effect: true, Timeout: d.cfg.StackTimeout + slack, Run: d.unscale(name, n)})
	}
	return append(steps, d.backStep()), nil
}

// group is an AutoScalingGroup of a stack, with its members in the order in which Heat takes them away: those that have
// failed first (and those that never came, which are marked so before), then the oldest; of one second, by name.
type group struct {
	name      string
	stackName string // its own stack's
	stackID   string
	status    string
	members   []*resource
}

// findGroup returns the group of that name in the stack, nil when there is none.
func findGroup(stackID string, list []resource, name string) *group {
	var g *group
	for n := range list {
		if r := &list[n]; r.Name == name && r.Type == groupType && (r.stack() == stackID || r.stack() == "") && r.ID != "" {
			g = &group{name: name, stackID: r.ID, status: r.Status}
			g.stackName, _ = r.link("nested")
		}
	}
	if g == nil {
		return nil
	}
	for n := range list {
		if r := &list[n]; r.stack() == g.stackID && r.Status != "DELETE_COMPLETE" {
			g.members = append(g.members, r)
			if g.stackName == "" {
				g.stackName, _ = r.link("stack")
			}
		}
	}
	slices.SortFunc(g.members, func(a, b *resource) int {
		first := func(m *resource) bool { return m.failed() || m.unbegun() }
		switch {
		case first(a) != first(b):
			if first(a) {
				return -1
			}
			return 1
		case a.Creation != b.Creation:
			return strings.Compare(a.Creation, b.Creation)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return g
}

// has tells whether the group has a member of that name.
func (g *group) has(name string) bool {
	return slices.ContainsFunc(g.members, func(m *resource) bool { return m.Name == name })
}

// below returns the ids of a member's stack and of all nested in it.
func below(list []resource, m *resource) map[string]bool {
	in := map[string]bool{m.ID: true}
	for grown := true; grown; {
		grown = false
		for n := range list {
			if _, id := list[n].link("nested"); in[list[n].stack()] && id != "" && !in[id] {
				in[id], grown = true, true
			}
		}
	}
	return in
}

// scalings returns the work on the plan's aspects, made when there is none yet.
func (w *work) scalings(x *lcm.Execution) []scaling {
	if len(w.Scales) == 0 {
		w.Scales = make([]scaling, len(plan(x).Aspects))
	}
	return w.Scales
}

// see records what an aspect's group consists of before it is scaled, and how many members it is to have after each step.
func (d *Driver) see(ctx context.Context, x *lcm.Execution, c *cloud, w *work) error {
	found, s, err := d.own(ctx, x, c)
	if err != nil {
		return err
	}
	scales := w.scalings(x)
	if !slices.ContainsFunc(scales, func(s scaling) bool { return !s.Seen }) {
		return nil
	}
	list, err := c.resources(ctx, found.Name, found.ID)
	if err != nil {
		return err
	}
	hot, err := d.template(ctx, x, wish{flavour: x.Flavour, params: s.Parameters})
	if err != nil {
		return err
	}
	for n, a := range plan(x).Aspects {
		s := &scales[n]
		if s.Seen {
			continue
		}
		if aspect, ok := x.Flavour.Aspect(a.ID); ok {
			s.Group = hot.groupOf(aspect)
		}
		g := findGroup(found.ID, list, s.Group)
		if g == nil {
			return lcm.Errorf(lcm.KindTerminal, "stack %s (%s) has no AutoScalingGroup for aspect %s, which cannot be scaled so", found.Name, found.ID, a.ID)
		}
		for _, m := range g.members {
			in := below(list, m)
			l := leaver{Name: m.Name}
			for _, v := range x.Before.Info.VnfcResourceInfo {
				if in[text(v.Metadata, homeKey)] {
					l.VNFCs = append(l.VNFCs, v.Id)
				}
			}
			s.Members = append(s.Members, l)
		}
		if s.Targets, err = targets(x, a, len(g.members)); err != nil {
			return err
		}
		s.Name, s.StackID, s.Seen = g.stackName, g.stackID, true
	}
	return nil
}

// targets returns how many members a group that has so many is to have after each step of the aspect's way.
func targets(x *lcm.Execution, a lcm.AspectChange, have int) ([]int, error) {
	aspect, ok := x.Flavour.Aspect(a.ID)
	if !ok || len(aspect.VDUs) == 0 {
		return nil, lcm.Errorf(lcm.KindTerminal, "flavour %s has no scaling aspect %s that scales a VDU", x.Flavour.ID, a.ID)
	}
	var out []int
	for level := a.From; level != a.To; {
		by := 0
		var err error
		if a.Out() {
			level++
			by, err = aspect.StepDelta(aspect.VDUs[0].VDU, level)
		} else {
			by, err = aspect.StepDelta(aspect.VDUs[0].VDU, level)
			by, level = -by, level-1
		}
		if err != nil {
			return nil, lcm.Errorf(lcm.KindTerminal, "%w", err)
		}
		have = max(have+by, 0)
		out = append(out, have)
	}
	return out, nil
}

// last is the number of members after all steps.
func (s *scaling) last() int {
	if len(s.Targets) == 0 {
		return len(s.Members)
	}
	return s.Targets[len(s.Targets)-1]
}

// going returns the members that are to go until so many are left: those that Heat would take, or the newest.
func (s *scaling) going(left int, reverse bool) []leaver {
	count := max(len(s.Members)-left, 0)
	if reverse {
		return s.Members[len(s.Members)-count:]
	}
	return s.Members[:count]
}

// reversed tells whether a SCALE request asks for the newest members to go first.
func reversed(x *lcm.Execution) bool {
	var req sol003.ScaleVnfRequest
	if x.Op.Operation != sol003.LcmOperationTypeScale || json.Unmarshal(x.Op.Params, &req) != nil {
		return false
	}
	v := req.AdditionalParams["is_reverse"]
	return v == true || strings.EqualFold(text(req.AdditionalParams, "is_reverse"), "true")
}

// chooseLeaving is the step that says which VNFCs will go.
func (d *Driver) chooseLeaving(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, c, err := d.begin(ctx, x)
	if err != nil {
		return lcm.Progress{}, err
	}
	if err := d.see(ctx, x, c, w); err != nil {
		return lcm.Progress{}, err
	}
	x.Plan.Leaves = nil
	for n, a := range x.Plan.Aspects {
		if a.Out() {
			continue
		}
		for _, m := range w.Scales[n].going(w.Scales[n].last(), reversed(x)) {
			x.Plan.Leaves = append(x.Plan.Leaves, m.VNFCs...)
		}
	}
	return lcm.Done(), saveWork(x, w)
}

// lookAtGroups is the step that records the groups as they are before anything is scaled. It warns of what is granted and
// cannot be followed.
func (d *Driver) lookAtGroups(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, c, err := d.begin(ctx, x)
	if err != nil {
		return lcm.Progress{}, err
	}
	if err := d.see(ctx, x, c, w); err != nil {
		return lcm.Progress{}, err
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	w.StackID, w.Parameters = s.StackID, s.Parameters
	params, err := s.parameters()
	if err != nil {
		return lcm.Progress{}, err
	}
	for n, a := range plan(x).Aspects {
		aspect, ok := x.Flavour.Aspect(a.ID)
		if !ok || !a.Out() || untouched(x, aspect) {
			continue
		}
		if said := unheeded(x, scaledNodes(x.Flavour, aspect), params); len(said) > 0 {
			x.Log.Warn("what is granted for new members is not followed: they are made like those that the group has",
				"group", w.Scales[n].Group, "granted", said)
		}
	}
	return lcm.Done(), saveWork(x, w)
}

// sight is what a step sees of a group that it works on.
type sight struct {
	top  *stack
	list []resource
	*group
	busy string // what Heat is doing there; "" when nothing
	bad  []*resource
}

// look reads a group's present state. While Heat is seen at work the members are read only when they are asked for: to list what
// is nested is what costs Heat most.
func (d *Driver) look(ctx context.Context, x *lcm.Execution, c *cloud, s *scaling, members bool) (*sight, error) {
	top, _, err := d.own(ctx, x, c)
	if err != nil {
		return nil, err
	}
	v := &sight{top: top, group: &group{name: s.Group, stackName: s.Name, stackID: s.StackID}}
	if strings.HasSuffix(top.Status, "_IN_PROGRESS") {
		v.busy = "stack " + top.Name + " is " + top.Status
	} else if s.Name != "" {
		own, err := c.stack(ctx, s.Name, s.StackID)
		if err != nil {
			return nil, err
		}
		if own != nil && strings.HasSuffix(own.Status, "_IN_PROGRESS") {
			v.busy = "group " + s.Group + " is " + own.Status
		}
	}
	if v.busy != "" && s.Name != "" && !members {
		return v, nil
	}
	// The members are read after the group is seen at rest, so that none is missed that has come meanwhile.
	if v.list, err = c.resources(ctx, top.Name, top.ID); err != nil {
		return nil, err
	}
	if v.group = findGroup(top.ID, v.list, s.Group); v.group == nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "stack %s (%s) has no AutoScalingGroup %s", top.Name, top.ID, s.Group)
	}
	if v.stackName != "" && v.stackID != s.StackID { // it was not known, or is another one now
		s.Name, s.StackID = v.stackName, v.stackID
		return d.look(ctx, x, c, s, members)
	}
	begun := x.Begun
	if s.Asked.At.After(begun) {
		begun = s.Asked.At
	}
	resting := v.busy == "" && x.Now().Sub(begun) >= d.cfg.Settle // what has not begun by now is not going to
	for _, m := range v.members {
		switch {
		case m.failed(), m.unbegun() && resting:
			v.bad = append(v.bad, m)
		case m.working(), m.unbegun():
			v.busy = "member " + m.Name + " of group " + s.Group + " is " + m.Status
		}
	}
	return v, nil
}

// scaleFailed words the failure of a group's scaling: the members' statuses and reasons.
func (v *sight) scaleFailed(vim string) error {
	var said []string
	for _, m := range v.bad {
		said = append(said, fmt.Sprintf("%s of %s: %s", m.Status, m.Name, cut(m.Reason)))
	}
	status := "FAILED"
	if len(v.bad) > 0 {
		status = v.bad[0].Status
	}
	for n := range v.list { // what has failed inside the members says more
		r := &v.list[n]
		if _, nested := r.link("nested"); r.failed() && nested == "" && len(said) < 5 {
			said = append(said, r.Name+" ("+r.Type+"): "+cut(r.Reason))
		}
	}
	return lcm.Errorf(lcm.KindTerminal, "VNF scaling failed for stack %s with error VNF scaling failed for stack %s with status %s (group %s of stack %s in VIM %s); failed: %s",
		v.top.ID, v.stackID, status, v.name, v.top.Name, vim, strings.Join(said, "; "))
}

// scaleStep returns the Run of step k of the plan's aspect n. It signals the policy when the group has not the size yet that
// the step is to bring, and waits for it. Where a signal would not bring it (there is no policy for it, members have
// failed, the group is empty, the newest are to go), the stack is updated with the size instead.
func (d *Driver) scaleStep(name string, n, k int) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		w, c, err := d.begin(ctx, x)
		if err != nil {
			return lcm.Progress{}, err
		}
		if n >= len(w.Scales) || !w.Scales[n].Seen {
			return lcm.Progress{}, lcm.Errorf(lcm.KindInternal, "group %s has not been looked at", plan(x).Aspects[n].ID)
		}
		s, a := &w.Scales[n], plan(x).Aspects[n]
		target := s.Targets[k]
		v, err := d.look(ctx, x, c, s, x.Now().Sub(x.Begun) >= d.cfg.StackTimeout)
		if err != nil {
			return lcm.Progress{}, err
		}
		mine := s.Asked.by(name, x) && !d.signals.meant(x.Op.ID, s.Asked.At) // what is only meant has not been asked for
		reached := a.Out() && len(v.members) >= target || !a.Out() && len(v.members) <= target
		idle := mine && v.idle(&s.Asked)
		failed := strings.HasSuffix(v.top.Status, "_FAILED")
		switch {
		case v.busy != "":
		case mine && s.Asked.Update && failed && !idle:
			return lcm.Progress{}, c.stackError(ctx, "VNF scaling failed for stack "+v.top.ID+" with error", v.top)
		case mine && !s.Asked.Update && len(v.bad) > 0:
			return lcm.Progress{}, v.scaleFailed(c.name)
		case reached && len(v.bad) == 0 && !failed && !(idle && s.Asked.Update):
			if len(v.members) != target {
				x.Log.Warn("a group has another number of members than it should", "group", s.Group, "members", len(v.members), "target", target)
			}
			return lcm.Done(), saveWork(x, w)
		case x.Now().Sub(x.Begun) >= d.cfg.StackTimeout:
		case mine && (!idle || x.Now().Sub(s.Asked.At) < d.cfg.Settle): // Heat has not begun, or is about to end
		default:
			p, err := d.askToScale(ctx, x, c, w, name, n, k, v)
			if lcm.Is(err, lcm.KindRetryable) { // it is kept for when the time is over
				s.Refused = detail(err)
				return lcm.Wait(d.until(x, max(againOf(err), time.Second)), "%s", s.Refused), saveWork(x, w)
			}
			if err != nil || !p.Finished() {
				return p, err
			}
			s.Refused = ""
			s.Asked.Step, s.Asked.Try, s.Asked.At, s.Asked.Members = name, x.Begun, x.Now(), len(v.members)
			return lcm.Wait(d.pause(x), "group %s is to have %d members", s.Group, target), saveWork(x, w)
		}
		if x.Now().Sub(x.Begun) >= d.cfg.StackTimeout {
			c.giveUp(ctx, x, v.top.Name, v.top.ID)
			c.giveUp(ctx, x, v.stackName, v.stackID)
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal,
				"VNF scaling failed to complete within %g seconds while waiting for the stack %s to be scaled: group %s of stack %s in VIM %s is to have %d members and has %d%s",
				d.cfg.StackTimeout.Seconds(), v.top.ID, s.Group, v.top.Name, c.name, target, len(v.members), because(v.busy, s.Refused))
		}
		return lcm.Wait(d.pause(x), "group %s is to have %d members: %s", s.Group, target, v.busy), nil
	}
}

// because ends a sentence with the first reason that there is.
func because(reasons ...string) string {
	if why := cmp.Or(reasons...); why != "" {
		return ": " + why
	}
	return ""
}

// idle tells whether what was asked for shows nowhere: Heat has not begun, or has ignored it.
func (v *sight) idle(a *asked) bool {
	if a.Update {
		return v.top.state() == a.Before
	}
	return len(v.members) == a.Members
}

// policySuffix ends the names of a group's policies, by direction.
var policySuffix = map[bool]string{true: "_scale_out", false: "_scale_in"}

// askToScale asks Heat to bring a group nearer to the size that step k is to bring. A wait says that it must cool down first,
// that a signal is meant and is sent by the next run, or that nobody knows whether one has come to Heat.
func (d *Driver) askToScale(ctx context.Context, x *lcm.Execution, c *cloud, w *work, name string, n, k int, v *sight) (lcm.Progress, error) {
	s, a := &w.Scales[n], plan(x).Aspects[n]
	target := s.Targets[k]
	hot, err := d.template(ctx, x, wish{flavour: x.Flavour, params: w.Parameters})
	if err != nil {
		return lcm.Progress{}, err
	}
	if p, ok := hot.group(s.Group); ok {
		lo, hasLo := wholeNumber(p["min_size"])
		hi, hasHi := wholeNumber(p["max_size"])
		if hasLo && target < lo || hasHi && target > hi {
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "VNF scaling failed for stack %s with error group %s cannot have %d members: its min_size is %v, its max_size %v",
				v.top.ID, s.Group, target, p["min_size"], p["max_size"])
		}
	}
	policy := a.ID + policySuffix[a.Out()]
	adds, known, there := hot.policy(policy)
	if !there {
		policy = s.Group + policySuffix[a.Out()]
		adds, known, there = hot.policy(policy)
	}
	there = there && slices.ContainsFunc(v.list, func(r resource) bool { return r.Name == policy && r.Type == policyType && r.stack() == v.top.ID })
	by := target - len(v.members)
	signal := there && known && adds == by && len(v.bad) == 0 && len(v.members) > 0 && !reversed(x) && !strings.HasSuffix(v.top.Status, "_FAILED")
	if signal {
		left, blocked, err := c.cooling(ctx, x, v)
		if err != nil {
			return lcm.Progress{}, err
		}
		// A group that says for ever that it is being scaled has been left so by an engine that died.
		if signal = !blocked || x.Now().Sub(x.Begun) < 3*d.cfg.Settle; signal && blocked {
			left = max(left, d.cfg.PollMin)
		}
		if signal && left > 0 {
			return lcm.Wait(min(left, d.cfg.PollMax), "group %s cools down", s.Group), nil
		}
	}
	if signal {
		return d.signalOnce(ctx, x, c, w, s, name, policy, v)
	}
	for _, m := range v.bad { // Heat makes it anew, or has it go first
		if m.unbegun() {
			if err := c.retire(ctx, v, m.Name); err != nil {
				return lcm.Progress{}, err
			}
		}
	}
	if !a.Out() {
		for _, m := range s.going(target, reversed(x)) {
			if err := c.retire(ctx, v, m.Name); err != nil {
				return lcm.Progress{}, err
			}
		}
	}
	params, err := d.rescript(ctx, x, "scale", w.Parameters, target)
	if err != nil {
		return lcm.Progress{}, err
	}
	if aspect, ok := x.Flavour.Aspect(a.ID); ok && len(v.members) == 0 && untouched(x, aspect) {
		applyGrant(granted(x, scaledNodes(x.Flavour, aspect)), params)
	}
	if w.Parameters, err = json.Marshal(params); err != nil {
		return lcm.Progress{}, fmt.Errorf("encode the parameters of the stack: %w", err)
	}
	s.Asked.Update, s.Asked.Before = true, v.top.state()
	return lcm.Done(), d.update(ctx, x, c, v.top, wish{
		flavour: x.Flavour, params: w.Parameters, capacities: map[string]int{a.ID: target}, tag: fmt.Sprintf("%s-%d.%d", opTag(x), n+1, k+1),
	})
}

// retire has Heat take a member away before others when the group shrinks.
func (c *cloud) retire(ctx context.Context, v *sight, name string) error {
	for _, m := range v.members {
		if m.Name == name && !m.failed() {
			return c.markUnhealthy(ctx, m, "Scale")
		}
	}
	return nil
}

// cooling returns how long Heat ignores signals to a group, by its metadata; blocked: until what it is doing has ended.
func (c *cloud) cooling(ctx context.Context, x *lcm.Execution, v *sight) (left time.Duration, blocked bool, err error) {
	var m struct {
		End        map[string]any `json:"cooldown_end"`
		InProgress bool           `json:"scaling_in_progress"`
	}
	if err := c.metadata(ctx, v.top, v.name, &m); err != nil {
		return 0, false, err
	}
	for at := range m.End {
		if t, err := time.Parse("2006-01-02T15:04:05.999999", at); err == nil {
			left = max(left, t.Sub(x.Now()))
		}
	}
	return left, m.InProgress, nil
}

// unscale returns the Run of the step that takes away the members that the failed scaling of the plan's aspect n has added.
func (d *Driver) unscale(name string, n int) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		w, c, err := d.begin(ctx, x)
		if err != nil {
			return lcm.Progress{}, err
		}
		if n >= len(w.Scales) || !w.Scales[n].Seen {
			return lcm.Done(), nil // nothing had been begun
		}
		s, a := &w.Scales[n], plan(x).Aspects[n]
		v, err := d.look(ctx, x, c, s, false)
		if err != nil {
			return lcm.Progress{}, err
		}
		var extra []*resource
		for _, m := range v.members {
			if !slices.ContainsFunc(s.Members, func(l leaver) bool { return l.Name == m.Name }) {
				extra = append(extra, m)
			}
		}
		// Of failed members Heat takes the oldest away first: those that are to stay are brought right before any is to go.
		mend := len(extra) > 0 && slices.ContainsFunc(v.bad, func(m *resource) bool { return !slices.Contains(extra, m) })
		mine, mending := s.Asked.by(name, x), s.Asked.by(name+mendSuffix, x)
		asking := mine || mending
		failed := strings.HasSuffix(v.top.Status, "_FAILED")
		late := x.Now().Sub(x.Begun) >= d.cfg.StackTimeout
		tag := fmt.Sprintf("%s-%d", backTag(x), n+1)
		known := asking || (tagged(v.top, tag) || tagged(v.top, tag+mendSuffix)) && strings.HasSuffix(v.top.Status, "_IN_PROGRESS")
		switch {
		case late && v.busy != "":
			c.giveUp(ctx, x, v.top.Name, v.top.ID)
			c.giveUp(ctx, x, v.stackName, v.stackID)
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "VNF Update action is not completed within %g seconds on stack %s (in VIM %s): %s",
				d.cfg.StackTimeout.Seconds(), v.top.ID, c.name, v.busy)
		case asking && s.Asked.Update && v.idle(&s.Asked) && x.Now().Sub(s.Asked.At) < d.cfg.Settle: // Heat has not begun yet
		case v.busy != "" && known:
			// It is being done, perhaps for an earlier run, on whichever node. (The tag of an update that has ended says nothing
			// of what goes on in the group since.)
		case v.busy != "":
			// What is still being made would be the last to go. Ended, it has failed, and goes first.
			if err := errorsOf(c.cancel(ctx, v.top.Name, v.top.ID), c.cancel(ctx, v.stackName, v.stackID)); err != nil {
				return lcm.Progress{}, err
			}
			s.Asked = asked{Step: name, Try: x.Begun, At: x.Now()}
			return lcm.Wait(d.pause(x), "%s; it is cancelled", v.busy), saveWork(x, w)
		case mine && s.Asked.Update && failed, mending && mend:
			return lcm.Progress{}, c.stackError(ctx, "VNF Update", v.top)
		case len(extra) == 0 && len(v.bad) == 0 && !failed && len(v.members) >= len(s.Members):
			return lcm.Done(), nil
		case mine && s.Asked.Update:
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "group %s of stack %s (%s) in VIM %s still has %d members that were to go",
				a.ID, v.top.Name, v.top.ID, c.name, len(extra))
		default:
			step, size := name, len(s.Members)
			if mend {
				step, size, tag = name+mendSuffix, len(v.members), tag+mendSuffix
			} else {
				for _, m := range extra {
					if err := c.retire(ctx, v, m.Name); err != nil {
						return lcm.Progress{}, err
					}
				}
			}
			was, err := loadInfra(x.Before)
			if err != nil {
				return lcm.Progress{}, err
			}
			before := v.top.state()
			if err := d.update(ctx, x, c, v.top, wish{
				flavour: x.Flavour, request: x.Before.Request, params: was.Parameters, capacities: map[string]int{a.ID: size}, tag: tag,
			}); err != nil {
				return lcm.Progress{}, err
			}
			s.Asked = asked{Step: step, Try: x.Begun, At: x.Now(), Update: true, Before: before}
			return lcm.Wait(d.pause(x), "group %s is to have %d members", a.ID, size), saveWork(x, w)
		}
		return lcm.Wait(d.pause(x), "group %s is to have %d members again: %s", a.ID, len(s.Members), v.busy), nil
	}
}

// errorsOf returns the first error.
func errorsOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// scaleInventory is the step that points the new VNFCs' handles to what has been made, and says which VNFCs have gone.
func (d *Driver) scaleInventory(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, c, err := d.begin(ctx, x)
	if err != nil {
		return lcm.Progress{}, err
	}
	found, _, err := d.own(ctx, x, c)
	if err != nil {
		return lcm.Progress{}, err
	}
	list, err := c.resources(ctx, found.Name, found.ID)
	if err != nil {
		return lcm.Progress{}, err
	}
	var gone []string
	for n, a := range plan(x).Aspects {
		if a.Out() {
			continue
		}
		g := findGroup(found.ID, list, w.Scales[n].Group)
		for _, m := range w.Scales[n].Members {
			if g == nil || !g.has(m.Name) {
				gone = append(gone, m.VNFCs...)
			}
		}
	}
	if same := func(a, b []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	}; !same(gone, plan(x).Leaves) {
		x.Log.Warn("Heat has taken other members away than were announced", "announced", plan(x).Leaves, "gone", gone)
	}
	if x.Plan != nil {
		x.Plan.Leaves = gone
	}
	p, err := d.inventory(ctx, x)
	if err != nil || !p.Finished() {
		return p, err
	}
	for _, v := range x.Instance.Info.VnfcResourceInfo {
		if slices.Contains(plan(x).Adds, v.Id) && v.ComputeResource.ResourceId == "" {
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "VNF scaling failed for stack %s with error the group has no server for the new VNFC of VDU %s", found.ID, v.VduId)
		}
	}
	return d.keep(ctx, x)
}
