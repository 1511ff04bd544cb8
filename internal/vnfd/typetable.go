package vnfd

import "strings"

// The node, policy and artifact types of SOL001 v2.6.1 §6 that carry meaning
// here. Company types derive from them.
const (
	typeVNF           = "tosca.nodes.nfv.VNF"
	typeCompute       = "tosca.nodes.nfv.Vdu.Compute"
	typeBlockStorage  = "tosca.nodes.nfv.Vdu.VirtualBlockStorage"
	typeObjectStorage = "tosca.nodes.nfv.Vdu.VirtualObjectStorage"
	typeFileStorage   = "tosca.nodes.nfv.Vdu.VirtualFileStorage"
	typeVduCp         = "tosca.nodes.nfv.VduCp"
	typeVirtualLink   = "tosca.nodes.nfv.VnfVirtualLink"

	typeSwImage = "tosca.artifacts.nfv.SwImage"

	policyLevels        = "tosca.policies.nfv.InstantiationLevels"
	policyVduLevels     = "tosca.policies.nfv.VduInstantiationLevels"
	policyVlLevels      = "tosca.policies.nfv.VirtualLinkInstantiationLevels"
	policyAspects       = "tosca.policies.nfv.ScalingAspects"
	policyVduDeltas     = "tosca.policies.nfv.VduScalingAspectDeltas"
	policyInitialDelta  = "tosca.policies.nfv.VduInitialDelta"
	policyAffinity      = "tosca.policies.nfv.AffinityRule"
	policyAntiAffinity  = "tosca.policies.nfv.AntiAffinityRule"
	standardTypesPrefix = "tosca."
)

// typeSections are the keys of a service template that define types. Type
// names are unique across them, and templates exist that define data types
// under node_types, so that all share one table.
var typeSections = []string{
	"node_types", "data_types", "policy_types", "capability_types",
	"artifact_types", "group_types", "interface_types", "relationship_types",
}

// maxDerivation bounds the length of a chain of derived_from.
const maxDerivation = 50

type typeDef struct {
	parent string
	body   *node
}

// propDef is a property of a type with the definition nearest to the type.
type propDef struct {
	name string
	def  *node
}

type typeTable struct {
	defs  map[string]typeDef
	props map[string][]propDef
}

// collectTypes fills the table from all files. When two files define a type,
// the one nearer to the entry definitions counts.
func (r *reader) collectTypes() {
	r.types = typeTable{defs: map[string]typeDef{}, props: map[string][]propDef{}}
	for _, d := range r.order {
		for _, section := range typeSections {
			s := d.root.get(section)
			if !s.isNull() && !s.isMap() {
				r.add(s.pos, RuleSyntax, "%s is not a mapping", section)
			}
			for _, e := range s.entries() {
				if _, has := r.types.defs[e.key]; has {
					continue
				}
				if !e.val.isNull() && !e.val.isMap() {
					r.add(e.at, RuleSyntax, "the definition of type %q is not a mapping", e.key)
				}
				r.types.defs[e.key] = typeDef{parent: e.val.get("derived_from").string(), body: e.val}
			}
		}
	}
}

// chain returns the type and all it derives from, nearest first. ok is false
// when a link is undefined or the chain is circular.
func (t *typeTable) chain(name string) (chain []string, ok bool) {
	for name != "" {
		if len(chain) == maxDerivation {
			return chain, false
		}
		chain = append(chain, name)
		def, defined := t.defs[name]
		if !defined {
			// The standard's own types may stay undefined: their meaning is
			// known by name.
			return chain, strings.HasPrefix(name, standardTypesPrefix)
		}
		name = def.parent
	}
	return chain, true
}

// isA tells whether name is base or derives from it.
func (t *typeTable) isA(name, base string) bool {
	chain, _ := t.chain(name)
	for _, n := range chain {
		if n == base {
			return true
		}
	}
	return false
}

// properties returns the properties of a type, inherited ones first.
func (t *typeTable) properties(name string) []propDef {
	if p, ok := t.props[name]; ok {
		return p
	}
	chain, _ := t.chain(name)
	var out []propDef
	at := map[string]int{}
	for i := len(chain) - 1; i >= 0; i-- {
		for _, e := range t.defs[chain[i]].body.get("properties").entries() {
			if j, has := at[e.key]; has {
				out[j].def = e.val
				continue
			}
			at[e.key] = len(out)
			out = append(out, propDef{e.key, e.val})
		}
	}
	t.props[name] = out
	return out
}

// checkType reports a type that is neither defined nor one of the standard's.
func (r *reader) checkType(n *node, what string) {
	name, ok := n.str()
	if !ok || name == "" {
		return
	}
	if chain, ok := r.types.chain(name); !ok && !r.remote {
		switch {
		case len(chain) == maxDerivation:
			r.add(n.pos, RuleType, "the type %q of %s has a circular derived_from", name, what)
		case len(chain) > 1:
			r.add(n.pos, RuleType, "the type %q of %s derives from the undefined type %q", name, what, chain[len(chain)-1])
		default:
			r.add(n.pos, RuleType, "the type %q of %s is not defined", name, what)
		}
	}
}
