package toscahot

import (
	"errors"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// The names of a group's policies are its own with these.
const (
	scaleOut = "_scale_out"
	scaleIn  = "_scale_in"
)

// aspect is a scaling aspect with what its group is like. Members are counted by the first of its VDUs, of which one has
// one; the instances of the others follow.
type aspect struct {
	*vnfd.ScalingAspect
	min, max, members int
	step              int            // members that the first step adds
	per               map[string]int // instances a member, by VDU
}

// scaling settles how many instances of which VDU are in which group, and how many in none. A VDU that several aspects scale
// has its initial instances in the first of their groups.
func (t *translation) scaling() error {
	level, ok := t.Flavour.Level(t.Request.InstantiationLevelId)
	if !ok && t.Request.InstantiationLevelId != "" {
		return lcm.Errorf(lcm.KindTerminal, "VNFD %s, flavour %s: instantiationLevelId: there is no level %q",
			t.Flavour.File, t.Flavour.ID, t.Request.InstantiationLevelId)
	}
	levels := map[string]int{}
	if level != nil {
		for _, at := range level.ScaleInfo {
			levels[at.Aspect] = at.Level
		}
	}
	grouped := map[string]bool{}
	for n := range t.Flavour.Aspects {
		def := &t.Flavour.Aspects[n]
		if len(def.VDUs) == 0 {
			t.warn("scaling aspect %s scales no VDU: it has no group", def.ID)
			continue
		}
		a, err := t.group(def, levels[def.ID], grouped)
		if err != nil {
			return err
		}
		t.aspects = append(t.aspects, a)
	}
	given := false // then the numbers are those of another time than the level's
	for _, a := range t.aspects {
		if _, ok := t.Members[a.ID]; ok {
			given = true
		}
	}
	for n := range t.Flavour.VDUs {
		v := &t.Flavour.VDUs[n]
		if !grouped[v.Name] {
			t.fixed[v.Name] = initial(v)
		}
		count := t.fixed[v.Name]
		t.most[v.Name] = count
		for _, a := range t.aspects {
			count += a.per[v.Name] * a.members
			t.most[v.Name] += a.per[v.Name] * a.max
		}
		want, err := t.Flavour.InstanceCountAt(v.Name, levels)
		if err != nil {
			return t.fail(lcm.KindTerminal, "VDU "+v.Name, "%v", err)
		}
		if count != want && !given {
			return t.fail(lcm.KindUnsupported, "VDU "+v.Name,
				"its aspects' groups would have %d instances of it where the instantiation level asks for %d; a VDU that scales needs a VduInitialDelta",
				count, want)
		}
	}
	return nil
}

// initial is the number of a VDU's instances when no aspect has been scaled.
func initial(v *vnfd.VDU) int {
	if v.InitialInstances == nil {
		return 1
	}
	return *v.InitialInstances
}

// group works out an aspect's group; its VDUs become grouped.
func (t *translation) group(def *vnfd.ScalingAspect, level int, grouped map[string]bool) (aspect, error) {
	what := "scaling aspect " + def.ID
	base, first := map[string]int{}, (*vnfd.VDU)(nil)
	for _, d := range def.VDUs {
		v, ok := t.Flavour.VDU(d.VDU)
		if !ok {
			return aspect{}, t.fail(lcm.KindTerminal, what, "there is no VDU %s", d.VDU)
		}
		if first == nil {
			first = v
		}
		if !grouped[v.Name] {
			base[v.Name] = initial(v)
		}
		grouped[v.Name] = true
	}
	added := func(level int) (int, error) {
		n, err := def.Added(first.Name, level)
		if err != nil {
			return 0, t.fail(lcm.KindTerminal, what, "%v", err)
		}
		return n, nil
	}
	a := aspect{ScalingAspect: def, min: base[first.Name], per: map[string]int{first.Name: 1}}
	most, err := added(def.MaxLevel)
	if err != nil {
		return aspect{}, err
	}
	if a.step, err = added(min(1, def.MaxLevel)); err != nil {
		return aspect{}, err
	}
	a.max, a.members = a.min+most, a.min
	if members, ok := t.Members[def.ID]; ok {
		a.members = members
	} else if first.InitialInstances != nil { // else its instances are one at any level
		now, err := added(level)
		if err != nil {
			return aspect{}, err
		}
		a.members += now
	}
	if a.members < a.min || a.members > a.max {
		return aspect{}, t.fail(lcm.KindTerminal, what, "its group cannot have %d members: it has %d at level 0 and %d at level %d",
			a.members, a.min, a.max, def.MaxLevel)
	}
	for _, d := range def.VDUs {
		if d.VDU == first.Name {
			continue
		}
		per, err := ratio(def, first.Name, d.VDU)
		if err != nil {
			return aspect{}, t.fail(lcm.KindUnsupported, what, "%v", err)
		}
		if per < 0 { // neither ever scales
			per = min(1, a.min)
			if base[d.VDU] < a.min {
				per = 0
			}
		}
		rest := base[d.VDU] - per*a.min
		if rest < 0 {
			return aspect{}, t.fail(lcm.KindUnsupported, what,
				"at level 0 there are %d instances of VDU %s and %d of %s, but each step adds %d for one: one group cannot hold them",
				base[d.VDU], d.VDU, a.min, first.Name, per)
		}
		a.per[d.VDU] = per
		t.fixed[d.VDU] += rest
	}
	return a, nil
}

// errUneven says that VDUs do not scale side by side.
var errUneven = errors.New("a step adds instances of VDUs in another ratio than an earlier one, or none of the first VDU: one group cannot hold them")

// ratio is how many instances of a VDU every step adds for one of the first; -1 when no step adds any.
func ratio(a *vnfd.ScalingAspect, first, vdu string) (int, error) {
	per := -1
	for level := 1; level <= min(a.MaxLevel, len(a.StepDeltas)+1); level++ { // the last delta repeats
		one, err := a.StepDelta(first, level)
		if err != nil {
			return 0, err
		}
		many, err := a.StepDelta(vdu, level)
		if err != nil {
			return 0, err
		}
		switch {
		case one == 0 && many == 0:
			continue
		case one == 0, many%one != 0, per >= 0 && per != many/one:
			return 0, errUneven
		}
		per = many / one
	}
	return per, nil
}

// groups puts the aspects' groups with their policies into the top template, and makes their nested templates.
func (t *translation) groups() error {
	// The files of aspects have the names that others look for, so they come before those of VDUs.
	for _, a := range t.aspects {
		t.out.Files[a.ID+".hot.yaml"] = ""
	}
	for _, a := range t.aspects {
		member := newTemplate(t.top)
		for _, name := range t.vduNodes() {
			member.avoid(name)
		}
		for _, d := range a.VDUs {
			v, _ := t.Flavour.VDU(d.VDU)
			if err := t.place(member, v, a.per[d.VDU], a.ID+"."); err != nil {
				return err
			}
		}
		file := a.ID + ".hot.yaml"
		delete(t.out.Files, file)
		if _, err := t.nest(a.ID, member, "A member of scaling aspect "+a.ID); err != nil {
			return err
		}
		inner := member.stack(file)
		def := map[string]any{"type": inner.kind}
		if len(inner.properties) > 0 {
			def["properties"] = inner.properties
		}
		t.top.add(a.ID, resource{kind: "OS::Heat::AutoScalingGroup", dependsOn: inner.dependsOn, properties: map[string]any{
			"min_size": a.min, "max_size": a.max, "desired_capacity": a.members, "resource": def,
		}})
		for suffix, by := range map[string]int{scaleOut: a.step, scaleIn: -a.step} {
			policy := map[string]any{
				"adjustment_type": "change_in_capacity", "auto_scaling_group_id": function("get_resource", a.ID), "scaling_adjustment": by,
			}
			if s := int(t.Cooldown.Seconds()); s > 0 {
				policy["cooldown"] = s
			}
			t.top.add(a.ID+suffix, resource{kind: "OS::Heat::ScalingPolicy", properties: policy})
		}
		t.out.Groups = append(t.out.Groups, Group{Aspect: a.ID, Members: a.members, Min: a.min, Max: a.max, PerMember: a.per})
	}
	return nil
}
