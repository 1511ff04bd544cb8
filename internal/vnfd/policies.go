package vnfd

import (
	"slices"
	"strings"
)

// policy is an entry of the policies section.
type policy struct {
	entry
	typeName string
}

func (p policy) props() *node { return p.val.get("properties") }

// policies reads scaling, levels and affinity (SOL001 v2.6.1 §6.10).
func (s scope) policies(t *node, f *Flavour) {
	all := s.listPolicies(t)
	of := func(base string) []policy {
		var out []policy
		for _, p := range all {
			if s.r.types.isA(p.typeName, base) {
				out = append(out, p)
			}
		}
		return out
	}
	groups := groupMembers(t)
	for _, p := range all {
		s.checkTargets(p, t, groups)
	}
	if !s.r.spend(0) {
		return
	}
	for _, p := range of(policyAspects) {
		s.aspects(p, f)
	}
	for _, p := range of(policyInitialDelta) {
		s.initialDelta(p, f, groups)
	}
	for _, p := range of(policyVduDeltas) {
		s.vduDeltas(p, f, groups)
	}
	levels := of(policyLevels)
	for _, p := range levels {
		s.levels(p, f)
	}
	s.defaultLevel(levels, f)
	for _, base := range []string{policyVduLevels, policyVlLevels} {
		for _, p := range of(base) {
			s.checkLevelNames(p, len(levels) > 0, f)
		}
	}
	for _, p := range all {
		anti := s.r.types.isA(p.typeName, policyAntiAffinity)
		if anti || s.r.types.isA(p.typeName, policyAffinity) {
			s.affinity(p, anti, f, groups)
		}
	}
}

// listPolicies returns the policies in file order; the section is a list of
// mappings, or a mapping.
func (s scope) listPolicies(t *node) []policy {
	section := t.get("policies")
	pairs := slices.Clone(section.entries())
	for _, item := range section.elems() {
		pairs = append(pairs, item.entries()...)
	}
	var out []policy
	for _, e := range pairs {
		// Policies are looked through several times, each target against the
		// flavour's VDUs and aspects.
		if !s.r.spend(50 + len(e.val.get("targets").elems())*(10+len(t.get("node_templates").entries())/10)) {
			return nil
		}
		typeNode := e.val.get("type")
		name, ok := typeNode.str()
		if !ok || name == "" {
			s.r.add(e.at, RuleSyntax, "the policy %q has no type", e.key)
			continue
		}
		what := "policy " + quote(e.key)
		s.r.checkType(typeNode, what)
		s.checkProperties(e.at, what, name, e.val.get("properties"))
		out = append(out, policy{e, name})
	}
	return out
}

// groupMembers returns the members of each group of the topology.
func groupMembers(t *node) map[string][]string {
	section := t.get("groups")
	pairs := slices.Clone(section.entries())
	for _, item := range section.elems() {
		pairs = append(pairs, item.entries()...)
	}
	out := map[string][]string{}
	for _, e := range pairs {
		out[e.key] = e.val.get("members").strings()
	}
	return out
}

func (s scope) checkTargets(p policy, t *node, groups map[string][]string) {
	for _, item := range p.val.get("targets").elems() {
		name, ok := item.str()
		if !ok {
			s.r.add(item.pos, RuleReference, "a target of policy %q is not a name", p.key)
			continue
		}
		members, isGroup := groups[name]
		if !s.r.spend(10 * len(members)) {
			return
		}
		if !isGroup && t.get("node_templates", name) == nil {
			s.r.add(item.pos, RuleReference, "the policy %q names the unknown target %q", p.key, name)
		}
	}
}

// targets returns a policy's targets with groups replaced by their members.
func (p policy) targets(groups map[string][]string) (nodes, named []string) {
	seen := map[string]bool{}
	add := func(n string) {
		if !seen[n] {
			seen[n] = true
			nodes = append(nodes, n)
		}
	}
	for _, name := range p.val.get("targets").strings() {
		members, isGroup := groups[name]
		if !isGroup {
			add(name)
			continue
		}
		named = append(named, name)
		for _, m := range members {
			add(m)
		}
	}
	return nodes, named
}

func (s scope) aspects(p policy, f *Flavour) {
	for _, e := range s.resolve(p.props().get("aspects")).entries() {
		if !s.r.spend(1 + len(f.Aspects)) {
			return
		}
		if _, dup := f.Aspect(e.key); dup {
			s.r.add(e.at, RuleDuplicate, "the scaling aspect %q is defined twice", e.key)
			continue
		}
		f.Aspects = append(f.Aspects, ScalingAspect{
			ID:          e.key,
			Name:        s.text(e.val.get("name")),
			Description: s.text(e.val.get("description")),
			MaxLevel:    s.count(e.val.get("max_scale_level"), "max_scale_level of aspect "+quote(e.key)),
			StepDeltas:  s.resolve(e.val.get("step_deltas")).strings(),
		})
	}
}

func (s scope) initialDelta(p policy, f *Flavour, groups map[string][]string) {
	n := p.props().get("initial_delta", "number_of_instances")
	if n.isNull() {
		return
	}
	count := s.count(n, "number_of_instances of policy "+quote(p.key))
	nodes, _ := p.targets(groups)
	for _, name := range nodes {
		if !s.r.spend(1 + len(f.VDUs)) {
			return
		}
		if v, ok := f.VDU(name); ok {
			v.InitialInstances = &count
		}
	}
}

func (s scope) vduDeltas(p policy, f *Flavour, groups map[string][]string) {
	id := s.resolve(p.props().get("aspect"))
	if id.isNull() {
		return
	}
	a, ok := f.Aspect(id.string())
	if !ok {
		s.r.add(id.pos, RuleLevel, "the policy %q names the unknown scaling aspect %q", p.key, id.string())
		return
	}
	var deltas []Delta
	for _, e := range s.resolve(p.props().get("deltas")).entries() {
		deltas = append(deltas, Delta{e.key, s.count(e.val.get("number_of_instances"), "number_of_instances of delta "+quote(e.key))})
	}
	nodes, _ := p.targets(groups)
	for _, name := range nodes {
		if !s.r.spend(1 + len(a.VDUs) + len(f.VDUs)) {
			return
		}
		if _, isVDU := f.VDU(name); !isVDU {
			continue
		}
		// A later policy about the same VDU takes the place of an earlier one.
		a.VDUs = slices.DeleteFunc(a.VDUs, func(d VDUDeltas) bool { return d.VDU == name })
		a.VDUs = append(a.VDUs, VDUDeltas{VDU: name, Deltas: deltas})
	}
}

func (s scope) levels(p policy, f *Flavour) {
	for _, e := range s.resolve(p.props().get("levels")).entries() {
		level := InstantiationLevel{ID: e.key, Description: s.text(e.val.get("description"))}
		if !s.r.spend(1 + len(f.Levels)) {
			return
		}
		for _, info := range s.resolve(e.val.get("scale_info")).entries() {
			if !s.r.spend(1 + len(f.Aspects)) {
				return
			}
			n := info.val
			if n.isMap() {
				n = n.get("scale_level")
			}
			at := s.count(n, "scale_level of aspect "+quote(info.key))
			a, ok := f.Aspect(info.key)
			if !ok {
				s.r.add(info.at, RuleLevel, "the instantiation level %q names the unknown scaling aspect %q", e.key, info.key)
				continue
			}
			if at > a.MaxLevel {
				s.r.add(info.at, RuleLevel, "the instantiation level %q puts aspect %q at scale level %d, above its max_scale_level %d", e.key, info.key, at, a.MaxLevel)
			}
			level.ScaleInfo = append(level.ScaleInfo, ScaleInfo{Aspect: info.key, Level: at})
		}
		if slices.ContainsFunc(f.Levels, func(l InstantiationLevel) bool { return l.ID == level.ID }) {
			s.r.add(e.at, RuleDuplicate, "the instantiation level %q is defined twice", e.key)
			continue
		}
		f.Levels = append(f.Levels, level)
	}
}

func (s scope) defaultLevel(levels []policy, f *Flavour) {
	for _, p := range levels {
		n := s.resolve(p.props().get("default_level"))
		if n.isNull() {
			continue
		}
		name := n.string()
		if !hasLevel(f, name) {
			s.r.add(n.pos, RuleLevel, "Level %s not found in defined levels %s", name, levelIDs(f))
			continue
		}
		f.DefaultLevel = name
	}
	if f.DefaultLevel == "" && len(f.Levels) == 1 {
		f.DefaultLevel = f.Levels[0].ID
	}
}

// checkLevelNames checks that a policy about levels speaks of defined ones.
func (s scope) checkLevelNames(p policy, defined bool, f *Flavour) {
	if !defined {
		s.r.add(p.at, RuleLevel, "Policy of type %q is not defined.", policyLevels)
		return
	}
	var unknown []string
	for _, e := range s.resolve(p.props().get("levels")).entries() {
		if !s.r.spend(1 + len(f.Levels)) {
			return
		}
		if !hasLevel(f, e.key) {
			unknown = append(unknown, e.key)
		}
	}
	if len(unknown) > 0 {
		s.r.add(p.at, RuleLevel, "Level(s) %s not found in defined levels %s", strings.Join(unknown, ","), levelIDs(f))
	}
}

func hasLevel(f *Flavour, id string) bool {
	return slices.ContainsFunc(f.Levels, func(l InstantiationLevel) bool { return l.ID == id })
}

func levelIDs(f *Flavour) string {
	ids := make([]string, len(f.Levels))
	for i, l := range f.Levels {
		ids[i] = l.ID
	}
	return strings.Join(ids, ",")
}

func (s scope) affinity(p policy, anti bool, f *Flavour, groups map[string][]string) {
	rule := AffinityRule{Name: p.key, Anti: anti, Scope: s.text(p.props().get("scope"))}
	rule.Targets, rule.Groups = p.targets(groups)
	f.Affinity = append(f.Affinity, rule)
}
