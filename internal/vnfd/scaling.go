package vnfd

import (
	"fmt"
	"slices"
)

// Level returns the instantiation level of that id; "" stands for the default
// level. It is false when there is no such level.
func (f *Flavour) Level(id string) (*InstantiationLevel, bool) {
	if id == "" {
		id = f.DefaultLevel
	}
	for i := range f.Levels {
		if f.Levels[i].ID == id {
			return &f.Levels[i], true
		}
	}
	return nil, false
}

// Aspect returns the scaling aspect of that id.
func (f *Flavour) Aspect(id string) (*ScalingAspect, bool) {
	for i := range f.Aspects {
		if f.Aspects[i].ID == id {
			return &f.Aspects[i], true
		}
	}
	return nil, false
}

// VDU returns the VDU of that node name.
func (f *Flavour) VDU(name string) (*VDU, bool) {
	for i := range f.VDUs {
		if f.VDUs[i].Name == name {
			return &f.VDUs[i], true
		}
	}
	return nil, false
}

// InstanceCount returns how many instances of the VDU the instantiation level
// asks for; levelID "" stands for the default level. A VDU without
// VduInitialDelta has one. The others have their initial delta plus, for each
// aspect that scales them, the deltas of as many steps as the aspect's scale
// level says (SOL001 v2.6.1 §6.10). It is an error when the VDU, a given
// level, or a needed delta does not exist.
func (f *Flavour) InstanceCount(vdu, levelID string) (int, error) {
	v, ok := f.VDU(vdu)
	if !ok {
		return 0, fmt.Errorf("flavour %q has no VDU %q", f.ID, vdu)
	}
	level, ok := f.Level(levelID)
	if !ok && levelID != "" {
		return 0, fmt.Errorf("flavour %q has no instantiation level %q", f.ID, levelID)
	}
	levels := map[string]int{}
	if level != nil {
		for _, info := range level.ScaleInfo {
			if _, ok := f.Aspect(info.Aspect); !ok {
				return 0, fmt.Errorf("instantiation level %q of flavour %q: no scaling aspect %q", level.ID, f.ID, info.Aspect)
			}
			levels[info.Aspect] = info.Level
		}
	}
	count, err := f.countAt(v, levels)
	if err != nil && level != nil {
		return 0, fmt.Errorf("instantiation level %q of flavour %q: %w", level.ID, f.ID, err)
	}
	return count, err
}

// InstanceCountAt returns how many instances of the VDU there are when each aspect is at its scale level; an aspect that
// levels does not name is at 0. It is an error when the VDU or a needed delta does not exist.
func (f *Flavour) InstanceCountAt(vdu string, levels map[string]int) (int, error) {
	v, ok := f.VDU(vdu)
	if !ok {
		return 0, fmt.Errorf("flavour %q has no VDU %q", f.ID, vdu)
	}
	return f.countAt(v, levels)
}

func (f *Flavour) countAt(v *VDU, levels map[string]int) (int, error) {
	if v.InitialInstances == nil {
		return 1, nil
	}
	count := *v.InitialInstances
	for i := range f.Aspects {
		n, err := f.Aspects[i].Added(v.Name, levels[f.Aspects[i].ID])
		if err != nil {
			return 0, err
		}
		count += n
	}
	return count, nil
}

// Scales tells whether the aspect has deltas for the VDU.
func (a *ScalingAspect) Scales(vdu string) bool {
	return slices.ContainsFunc(a.VDUs, func(d VDUDeltas) bool { return d.VDU == vdu })
}

// Added returns how many instances of the VDU the aspect adds at a scale level
// to the initial ones: the sum of the first level steps' deltas. A step past
// the end of StepDeltas repeats the last. It is 0 for a VDU that the aspect
// does not scale.
func (a *ScalingAspect) Added(vdu string, level int) (int, error) {
	i := slices.IndexFunc(a.VDUs, func(d VDUDeltas) bool { return d.VDU == vdu })
	if i < 0 || level <= 0 {
		return 0, nil
	}
	return a.sum(a.VDUs[i], level)
}

func (a *ScalingAspect) sum(v VDUDeltas, level int) (int, error) {
	total := 0
	for step, id := range a.StepDeltas {
		if step == level {
			break
		}
		n, err := a.step(v, id)
		if err != nil {
			return 0, err
		}
		times := 1
		if step == len(a.StepDeltas)-1 {
			times = level - step
		}
		total += n * times
	}
	if len(a.StepDeltas) == 0 {
		n, err := a.step(v, "")
		if err != nil {
			return 0, err
		}
		total = n * level
	}
	return total, nil
}

// step returns the instances of the named delta. Packages exist whose only
// delta has another name than the aspect's step; it is meant then.
func (a *ScalingAspect) step(v VDUDeltas, id string) (int, error) {
	for _, d := range v.Deltas {
		if d.ID == id {
			return d.Instances, nil
		}
	}
	if len(v.Deltas) == 1 {
		return v.Deltas[0].Instances, nil
	}
	return 0, fmt.Errorf("scaling aspect %q has no delta %q for VDU %q", a.ID, id, v.VDU)
}

// StepDelta returns how many instances of the VDU the step from level-1 to
// level (1 being the first) adds, 0 for a VDU that the aspect does not scale.
func (a *ScalingAspect) StepDelta(vdu string, level int) (int, error) {
	upper, err := a.Added(vdu, level)
	if err != nil {
		return 0, err
	}
	lower, err := a.Added(vdu, level-1)
	return upper - lower, err
}

// ScaleGroup describes an aspect to templates and scripts that scale by
// changing the capacity of a group.
type ScaleGroup struct {
	// VDU lists the VDUs of the aspect.
	VDU []string `json:"vdu"`
	// Num is the last delta's number of instances.
	Num int `json:"num"`
	// MaxLevel is the aspect's max_scale_level.
	MaxLevel int `json:"maxLevel"`
	// InitialNum is the initial delta of the aspect's VDUs.
	InitialNum int `json:"initialNum"`
	// InitialLevel is the aspect's scale level in the instantiation level.
	InitialLevel int `json:"initialLevel"`
	// Default is the number of instances at InitialLevel.
	Default int `json:"default"`
}

// ScaleGroups returns a group for every aspect that scales VDUs, keyed by the
// aspect's id; levelID "" stands for the default level, and an unknown level
// counts as scale level 0.
func (f *Flavour) ScaleGroups(levelID string) map[string]ScaleGroup {
	out := map[string]ScaleGroup{}
	level, _ := f.Level(levelID)
	for i := range f.Aspects {
		a := &f.Aspects[i]
		if len(a.VDUs) == 0 {
			continue
		}
		g := ScaleGroup{MaxLevel: a.MaxLevel}
		last := a.VDUs[len(a.VDUs)-1]
		if n := len(last.Deltas); n > 0 {
			g.Num = last.Deltas[n-1].Instances
		}
		for _, d := range a.VDUs {
			g.VDU = append(g.VDU, d.VDU)
			if v, ok := f.VDU(d.VDU); ok && v.InitialInstances != nil {
				g.InitialNum = *v.InitialInstances
			}
		}
		if level != nil {
			for _, info := range level.ScaleInfo {
				if info.Aspect == a.ID {
					g.InitialLevel = info.Level
				}
			}
		}
		added, err := a.Added(last.VDU, g.InitialLevel)
		if err != nil {
			// The deltas' names contradict; count as if there were one.
			added = g.Num * g.InitialLevel
		}
		g.Default = g.InitialNum + added
		out[a.ID] = g
	}
	return out
}
