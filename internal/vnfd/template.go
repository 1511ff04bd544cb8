package vnfd

import (
	"encoding/json"
	"io/fs"
	"math/big"
	"slices"
	"strings"
	"unicode"
)

// maxInstances bounds every number of instances and scale levels, so that
// arithmetic on them cannot overflow.
const maxInstances = 1_000_000

// descriptor reads the entry definitions and the flavours they import.
func (r *reader) descriptor(top *document) *Descriptor {
	r.collectTypes()
	d := &Descriptor{}
	for _, doc := range r.order {
		d.Files = append(d.Files, doc.path)
		r.checkTemplate(doc)
	}
	if r.overLimit() {
		return nil
	}
	r.vnf(top, d)
	r.flavours(top, d)
	return d
}

// overLimit tells whether going on could take unreasonably long.
func (r *reader) overLimit() bool {
	return slices.ContainsFunc(r.list, func(d Diagnostic) bool { return d.Rule == RuleLimit })
}

// checkTemplate checks the nodes of a file against their types, and that the
// files of their artifacts exist.
func (r *reader) checkTemplate(doc *document) {
	s := scope{r, doc}
	t := doc.topology()
	if !t.isNull() && !t.isMap() {
		r.add(t.pos, RuleSyntax, "topology_template is not a mapping")
		return
	}
	for _, section := range []string{"node_templates", "inputs", "substitution_mappings"} {
		if n := t.get(section); !n.isNull() && !n.isMap() {
			r.add(n.pos, RuleSyntax, "%s is not a mapping", section)
		}
	}
	if n := len(t.get("node_templates").entries()); n > maxTemplates {
		r.add(t.get("node_templates").pos, RuleLimit, "the template has more than %d nodes", maxTemplates)
		return
	}
	for _, e := range t.get("node_templates").entries() {
		what := "node " + quote(e.key)
		typeNode := e.val.get("type")
		typeName, ok := typeNode.str()
		if !ok || typeName == "" {
			r.add(e.at, RuleSyntax, "%s has no type", what)
			continue
		}
		r.checkType(typeNode, what)
		s.checkProperties(e.at, what, typeName, e.val.get("properties"))
		r.checkArtifacts(doc, e)
	}
}

func (r *reader) checkArtifacts(doc *document, nodeEntry entry) {
	section := nodeEntry.val.get("artifacts")
	if !section.isNull() && !section.isMap() {
		r.add(section.pos, RuleSyntax, "the artifacts of node %q are not a mapping", nodeEntry.key)
	}
	for _, a := range section.entries() {
		ref, ok := artifactFile(a.val)
		if !ok {
			r.add(a.at, RuleArtifact, "the artifact %q of node %q names no file", a.key, nodeEntry.key)
			continue
		}
		if isRemote(ref.text) {
			continue
		}
		if _, found := r.locate(doc.path, ref.text); !found {
			r.add(ref.pos, RuleArtifact, "the artifact file %q of node %q does not exist in the package", ref.text, nodeEntry.key)
		}
	}
}

// artifactFile returns the file of an artifact in its long or short notation.
func artifactFile(a *node) (*node, bool) {
	f := a
	if a.isMap() {
		f = a.get("file")
	}
	if s, ok := f.str(); !ok || s == "" {
		return nil, false
	}
	return f, true
}

// vnfNodes returns the nodes of a file whose type derives from the VNF type.
func (r *reader) vnfNodes(doc *document) []entry {
	var out []entry
	for _, e := range doc.topology().get("node_templates").entries() {
		if r.types.isA(e.val.get("type").string(), typeVNF) {
			out = append(out, e)
		}
	}
	return out
}

// property returns a node's property with its type's default behind it.
func (s scope) property(n *node, name string) *node {
	if v := n.get("properties", name); !v.isNull() {
		return s.resolve(v)
	}
	for _, p := range s.r.types.properties(n.get("type").string()) {
		if p.name == name {
			return s.resolve(p.def.get("default"))
		}
	}
	return nil
}

// vnf reads the one VNF node of the entry definitions (SOL001 v2.6.1 §6.8.1).
func (r *reader) vnf(top *document, d *Descriptor) {
	nodes := r.vnfNodes(top)
	at := pos{file: top.path}
	if t := top.topology(); t != nil {
		at = t.pos
	}
	if len(nodes) != 1 {
		r.add(at, RuleVNF, "the entry definitions need exactly one node derived from %s, but have %d", typeVNF, len(nodes))
		return
	}
	s, n := scope{r, top}, nodes[0].val
	for _, f := range []struct {
		name string
		to   *string
	}{
		{"descriptor_id", &d.ID},
		{"provider", &d.Provider},
		{"product_name", &d.ProductName},
		{"software_version", &d.SoftwareVersion},
		{"descriptor_version", &d.Version},
	} {
		v, _ := s.property(n, f.name).str()
		if v == "" {
			r.add(pos{nodes[0].at.file, nodes[0].at.line, nodes[0].at.col}, RuleVNF, "VNF properties are mandatory: node %q lacks %q", nodes[0].key, f.name)
			continue
		}
		if strings.ContainsFunc(v, unicode.IsControl) || len(v) > 255 {
			r.add(pos{nodes[0].at.file, nodes[0].at.line, nodes[0].at.col}, RuleVNF, "property %q of node %q is longer than 255 bytes or holds control characters", f.name, nodes[0].key)
			continue
		}
		*f.to = v
	}
	d.VnfmInfo = s.property(n, "vnfm_info").strings()
}

// flavours reads the imported service templates that stand for the VNF, or
// the entry definitions themselves when they are all in one.
func (r *reader) flavours(top *document, d *Descriptor) {
	ids := map[string]bool{}
	add := func(doc *document) {
		f := r.flavour(top, doc)
		if f.ID == "" {
			return
		}
		if ids[f.ID] {
			r.add(doc.topology().pos, RuleDuplicate, "the flavour %q is defined twice", f.ID)
			return
		}
		if len(d.Flavours) == maxFlavours {
			r.add(pos{file: top.path}, RuleLimit, "the descriptor has more than %d flavours", maxFlavours)
			return
		}
		ids[f.ID] = true
		d.Flavours = append(d.Flavours, f)
	}
	for _, doc := range r.order {
		if doc == top {
			if r.isFlavour(top) {
				add(doc)
			}
		} else if doc.topology().get("substitution_mappings").isMap() {
			add(doc)
		}
	}
	if len(d.Flavours) == 0 {
		r.add(pos{file: top.path}, RuleFlavour, "No VNF flavours are available")
	}
}

// isFlavour tells whether the entry definitions are a flavour of their own:
// they say which one, in substitution_mappings or at the VNF node.
func (r *reader) isFlavour(top *document) bool {
	if !top.topology().get("substitution_mappings", "properties", "flavour_id").isNull() {
		return true
	}
	s := scope{r, top}
	for _, e := range r.vnfNodes(top) {
		if id, ok := s.resolve(e.val.get("properties", "flavour_id")).str(); ok && id != "" {
			return true
		}
	}
	return false
}

func (r *reader) flavour(top, doc *document) Flavour {
	s, t := scope{r, doc}, doc.topology()
	sm := t.get("substitution_mappings")
	f := Flavour{File: doc.path, SubstitutionNodeType: sm.get("node_type").string()}

	nodes := r.vnfNodes(doc)
	var vnf entry
	if len(nodes) > 1 {
		r.add(nodes[1].at, RuleVNF, "the flavour has more than one node derived from %s", typeVNF)
	}
	if len(nodes) > 0 {
		vnf = nodes[0]
	}
	for _, e := range nodes {
		if e.val.get("type").string() == f.SubstitutionNodeType {
			vnf = e
		}
	}
	if f.SubstitutionNodeType == "" {
		f.SubstitutionNodeType = vnf.val.get("type").string()
	} else {
		r.checkType(sm.get("node_type"), "substitution_mappings")
	}

	id := sm.get("properties", "flavour_id")
	at := t.pos
	if id.isNull() {
		id = vnf.val.get("properties", "flavour_id")
	}
	if id != nil {
		at = id.pos
	}
	f.ID = s.resolve(id).string()
	if f.ID == "" {
		given := "nothing"
		if !id.isNull() {
			b, _ := json.Marshal(id.plain())
			given = clip(string(b))
		}
		r.add(at, RuleFlavour, "flavour_id should be string and given %s", given)
		return f
	}
	s.checkFlavourID(f, id, vnf)
	f.Description = s.property(vnf.val, "flavour_description").string()
	f.Properties = s.mergedProperties(f.SubstitutionNodeType, vnf.val)
	s.hooks(vnf, &f)
	s.nodes(t, &f)
	s.externalCPs(sm, &f)
	s.policies(t, &f)
	f.Dict = dict(top, t, nodes)
	return f
}

// checkFlavourID checks the id that substitution_mappings gives against the
// type, as properties of nodes are.
func (s scope) checkFlavourID(f Flavour, id *node, vnf entry) {
	for _, p := range s.r.types.properties(f.SubstitutionNodeType) {
		if p.name == "flavour_id" {
			s.checkValue(id, p.def, `property "flavour_id" of substitution_mappings`, 0)
		}
	}
}

// mergedProperties lays a node's properties over the defaults of its type.
func (s scope) mergedProperties(typeName string, n *node) Tree {
	out := Tree{}
	for _, p := range s.r.types.properties(typeName) {
		if v := p.def.get("default"); v != nil {
			out[p.name] = v.plain()
		}
	}
	for _, e := range n.get("properties").entries() {
		out[e.key] = e.val.plain()
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// hooks reads the Vnflcm interface (SOL001 v2.6.1 §6.7): operations whose
// implementation is a name or has a primary one. Everything else is absent.
func (s scope) hooks(vnf entry, f *Flavour) {
	vnflcm := vnf.val.get("interfaces", "Vnflcm")
	ops := vnflcm.entries()
	if nested := vnflcm.get("operations"); nested.isMap() {
		ops = append(slices.Clone(ops), nested.entries()...)
	}
	for _, op := range ops {
		switch op.key {
		case "type", "inputs", "operations", "notifications":
			continue
		}
		impl := op.val
		if impl.isMap() {
			impl = impl.get("implementation")
		}
		if impl.isMap() {
			impl = impl.get("primary")
			if impl.isMap() {
				impl = impl.get("file")
			}
		}
		driver, ok := impl.str()
		if !ok || driver == "" {
			continue
		}
		if f.Hooks == nil {
			f.Hooks = map[string]string{}
		}
		f.Hooks[op.key] = driver
		ref, ok := artifactFile(vnf.val.get("artifacts", driver))
		if !ok {
			continue
		}
		file := ref.text
		if !isRemote(file) {
			file, ok = s.locateFromRoot(file)
			if !ok {
				continue
			}
		}
		if f.HookArtifacts == nil {
			f.HookArtifacts = map[string]string{}
		}
		f.HookArtifacts[driver] = file
	}
}

// locateFromRoot is locate with the package's root taking precedence, which
// is how drivers' files are named.
func (s scope) locateFromRoot(ref string) (string, bool) {
	if fs.ValidPath(ref) {
		if info, err := fs.Stat(s.r.fsys, ref); err == nil && info.Mode().IsRegular() {
			return ref, true
		}
	}
	return s.r.locate(s.doc.path, ref)
}

// externalCPs reads substitution_mappings.requirements: a mapping, or a list
// of mappings, of a requirement to [node, requirement]. Odd shapes are passed
// over because published packages have them.
func (s scope) externalCPs(sm *node, f *Flavour) {
	reqs := sm.get("requirements")
	pairs := slices.Clone(reqs.entries())
	for _, item := range reqs.elems() {
		pairs = append(pairs, item.entries()...)
	}
	for _, e := range pairs {
		target := e.val.strings()
		if e.val.isMap() {
			target = e.val.get("mapping").strings()
		}
		if len(target) == 0 || target[0] == "" {
			continue
		}
		x := ExternalCP{Requirement: e.key, Node: target[0]}
		if len(target) > 1 {
			x.NodeRequirement = target[1]
		}
		f.ExternalCPs = append(f.ExternalCPs, x)
	}
}

// hiddenInputs are the inputs that scripts do not get to see. descriptor_version
// and provider look as if they belonged here, but scripts do see them.
var hiddenInputs = map[string]bool{
	"descriptor_id": true, "product_name": true, "software_version": true,
	"vnfm_info": true, "flavour_id": true, "flavour_description": true,
}

// dict builds what user data scripts receive.
func dict(top *document, t *node, vnf []entry) Tree {
	out := Tree{}
	for _, k := range []string{"tosca_definitions_version", "description", "metadata"} {
		if v := top.root.get(k); v != nil {
			out[k] = v.plain()
		}
	}
	topology := map[string]any{}
	for _, k := range []string{"groups", "policies"} {
		if v := t.get(k); !v.isNull() {
			topology[k] = v.plain()
		}
	}
	templates := map[string]any{}
	for _, e := range t.get("node_templates").entries() {
		isVNF := e.key == "VNF" || slices.ContainsFunc(vnf, func(v entry) bool { return v.key == e.key })
		if !isVNF {
			templates[e.key] = e.val.plain()
		}
	}
	topology["node_templates"] = templates
	inputs := map[string]any{}
	for _, e := range t.get("inputs").entries() {
		if !hiddenInputs[e.key] {
			inputs[e.key] = e.val.plain()
		}
	}
	if len(inputs) > 0 {
		topology["inputs"] = inputs
	}
	out["topology_template"] = topology
	return out
}

// integer reads an integer between 0 and most; absent is 0.
func (s scope) integer(n *node, what string, most int64) int64 {
	n = s.resolve(n)
	if n.isNull() {
		return 0
	}
	text := n.string()
	if v, ok := n.value.(json.Number); ok {
		text = string(v)
	}
	i, ok := new(big.Int).SetString(strings.TrimSpace(text), 10)
	if !ok || n.kind != scalar || len(text) > maxNumeral {
		s.r.add(n.pos, RuleValue, "%s is not an integer", what)
		return 0
	}
	if i.Sign() < 0 || i.Cmp(big.NewInt(most)) > 0 {
		s.r.add(n.pos, RuleValue, "%s is not between 0 and %d", what, most)
		return 0
	}
	return i.Int64()
}

// count reads a number of instances or a level.
func (s scope) count(n *node, what string) int { return int(s.integer(n, what, maxInstances)) }

// bytes reads a scalar-unit.size; absent is 0.
func (s scope) bytes(n *node, what string) int64 {
	n = s.resolve(n)
	if n.isNull() {
		return 0
	}
	v, err := ScalarBytes(n.string())
	if err != nil {
		s.r.add(n.pos, RuleSize, "%s: %v", what, err)
	}
	return v
}

func (s scope) text(n *node) string { return s.resolve(n).string() }

func quote(s string) string { return `"` + clip(s) + `"` }
