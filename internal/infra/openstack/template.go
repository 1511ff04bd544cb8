package openstack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// baseHOT is a flavour's Base HOT: the top template and the nested ones, as text (what Heat gets) and parsed (what the
// user data script and we look at).
type baseHOT struct {
	topFile string
	top     []byte
	parsed  map[string]any
	nested  map[string]hotFile // by file name
}

type hotFile struct {
	text   []byte
	parsed map[string]any
}

const (
	groupType    = "OS::Heat::AutoScalingGroup"
	policyType   = "OS::Heat::ScalingPolicy"
	maxHOTBytes  = 4 << 20
	maxHOTFiles  = 200
	capacityName = "desired_capacity"
)

// loadBaseHOT reads BaseHOT/<flavour>/ of a package: exactly one YAML file directly in it, which is the top template,
// and those of its nested/ folder.
func loadBaseHOT(fsys fs.FS, flavourID string) (*baseHOT, error) {
	missing := lcm.Errorf(lcm.KindTerminal, "LCM user data failed to get Base HOT.")
	dir := path.Join("BaseHOT", flavourID)
	if !fs.ValidPath(dir) || path.Dir(dir) != "BaseHOT" {
		return nil, missing
	}
	tops, err := yamlFiles(fsys, dir)
	if err != nil {
		return nil, err
	}
	if len(tops) == 0 {
		return nil, missing
	}
	if len(tops) > 1 {
		return nil, lcm.Errorf(lcm.KindTerminal, "LCM user data failed to get Base HOT. %s holds several templates, which of them is the top one is not said: %s", dir, strings.Join(tops, ", "))
	}
	h := &baseHOT{topFile: path.Join(dir, tops[0]), nested: map[string]hotFile{}}
	top, err := readHOT(fsys, h.topFile)
	if err != nil {
		return nil, err
	}
	h.top, h.parsed = top.text, top.parsed
	nested, err := yamlFiles(fsys, path.Join(dir, "nested"))
	if err != nil {
		return nil, err
	}
	if len(nested) > maxHOTFiles {
		return nil, lcm.Errorf(lcm.KindTerminal, "%s/nested holds more than %d templates", dir, maxHOTFiles)
	}
	for _, name := range nested {
		if h.nested[name], err = readHOT(fsys, path.Join(dir, "nested", name)); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// yamlFiles lists the YAML files directly in a folder; none when there is no such folder.
func yamlFiles(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, lcm.Errorf(lcm.KindRetryable, "read folder %s of the VNF package: %w", dir, err)
	}
	var out []string
	for _, e := range entries {
		if ext := path.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

func readHOT(fsys fs.FS, name string) (hotFile, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return hotFile{}, fmt.Errorf("read Heat template %s: %w", name, err)
	}
	if info.Size() > maxHOTBytes {
		return hotFile{}, lcm.Errorf(lcm.KindTerminal, "Heat template %s is larger than %d bytes", name, maxHOTBytes)
	}
	raw, err := fs.ReadFile(fsys, name)
	if err != nil {
		return hotFile{}, fmt.Errorf("read Heat template %s: %w", name, err)
	}
	return parsedHOT(name, raw)
}

// parsedHOT parses the text of a template.
func parsedHOT(name string, raw []byte) (hotFile, error) {
	v, err := parseYAML(raw)
	if err != nil {
		return hotFile{}, lcm.Errorf(lcm.KindTerminal, "Heat template %s: %w", name, err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return hotFile{}, lcm.Errorf(lcm.KindTerminal, "Heat template %s is not a mapping", name)
	}
	return hotFile{text: raw, parsed: m}, nil
}

// forScript is the Base HOT as user data scripts get it.
func (h *baseHOT) forScript() map[string]any {
	out := map[string]any{"heat_template": h.parsed}
	for name, f := range h.nested {
		out[name] = f.parsed
	}
	return out
}

// files are the nested templates as Heat gets them: the package's own text.
func (h *baseHOT) files() map[string]string {
	out := make(map[string]string, len(h.nested))
	for name, f := range h.nested {
		out[name] = string(f.text)
	}
	return out
}

// declares tells whether the top template declares a parameter.
func (h *baseHOT) declares(parameter string) bool {
	parameters, _ := h.parsed["parameters"].(map[string]any)
	_, ok := parameters[parameter]
	return ok
}

// group returns the properties of the AutoScalingGroup of that name in the top template.
func (h *baseHOT) group(name string) (map[string]any, bool) {
	resources, _ := h.parsed["resources"].(map[string]any)
	r, _ := resources[name].(map[string]any)
	if r["type"] != groupType {
		return nil, false
	}
	p, _ := r["properties"].(map[string]any)
	return p, true
}

// groups lists the AutoScalingGroups of the top template, sorted.
func (h *baseHOT) groups() []string {
	var out []string
	resources, _ := h.parsed["resources"].(map[string]any)
	for name := range resources {
		if _, ok := h.group(name); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// groupOf returns the name of the AutoScalingGroup of the top template that a scaling aspect scales: the one that is named
// like the aspect, else the only one whose members have a server that is named like a VDU of the aspect. "" for none.
func (h *baseHOT) groupOf(aspect *vnfd.ScalingAspect) string {
	if _, ok := h.group(aspect.ID); ok {
		return aspect.ID
	}
	found := ""
	for _, name := range h.groups() {
		p, _ := h.group(name)
		member, _ := p["resource"].(map[string]any)
		file, _ := member["type"].(string)
		resources, _ := h.nested[file].parsed["resources"].(map[string]any)
		for _, v := range aspect.VDUs {
			if r, _ := resources[v.VDU].(map[string]any); r["type"] != serverType || found == name {
				continue
			}
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// byGroup makes numbers by aspect numbers by group.
func (h *baseHOT) byGroup(f *vnfd.Flavour, byAspect map[string]int) map[string]int {
	out := map[string]int{}
	for n := range f.Aspects {
		if count, ok := byAspect[f.Aspects[n].ID]; ok {
			if name := h.groupOf(&f.Aspects[n]); name != "" {
				out[name] = count
			}
		}
	}
	return out
}

// scaled tells whether an aspect of the flavour scales the AutoScalingGroup of that name.
func (h *baseHOT) scaled(f *vnfd.Flavour, group string) bool {
	return slices.ContainsFunc(f.Aspects, func(a vnfd.ScalingAspect) bool { return h.groupOf(&a) == group })
}

// policy is a scaling policy of the top template: the number of members that a signal adds. It is not known when it is not
// a plain change of the capacity; there is none when the template has no such resource.
func (h *baseHOT) policy(name string) (adds int, known, there bool) {
	resources, _ := h.parsed["resources"].(map[string]any)
	r, _ := resources[name].(map[string]any)
	if r["type"] != policyType {
		return 0, false, false
	}
	p, _ := r["properties"].(map[string]any)
	adds, known = wholeNumber(p["scaling_adjustment"])
	return adds, known && p["adjustment_type"] == "change_in_capacity", true
}

// hasSize tells whether a group's properties say by themselves that it has so many members.
func hasSize(properties map[string]any, size int) bool {
	n, ok := literalCapacity(properties)
	return ok && n == size
}

// wholeNumber reads a whole number of a template.
func wholeNumber(v any) (int, bool) {
	var s string
	switch t := v.(type) {
	case json.Number:
		s = t.String()
	case string:
		s = t
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// literalCapacity returns how many members the template itself gives a group, false when a parameter or a function
// decides it.
func literalCapacity(properties map[string]any) (int, bool) {
	v, ok := properties[capacityName]
	if !ok {
		v = properties["min_size"]
	}
	return wholeNumber(v)
}

// withCapacities returns the top template's text with the desired_capacity of the groups set; the package's own text
// when there are none. Everything else reads as before.
func (h *baseHOT) withCapacities(capacities map[string]int) ([]byte, error) {
	return h.rewritten(capacities, "")
}

// rewritten returns the top template's text with the desired_capacity of the groups set and, with a stamp, another description
// of all groups' members; the package's own text when there is nothing to set. Everything else reads as before.
func (h *baseHOT) rewritten(capacities map[string]int, stamp string) ([]byte, error) {
	if len(capacities) == 0 && stamp == "" {
		return h.top, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(h.top, &doc); err != nil {
		return nil, fmt.Errorf("read Heat template %s: %w", h.topFile, err)
	}
	read, err := parseYAML(h.top)
	if err != nil {
		return nil, fmt.Errorf("read Heat template %s: %w", h.topFile, err)
	}
	want, _ := read.(map[string]any)
	resources, _ := want["resources"].(map[string]any)
	properties := func(group string) (*yaml.Node, map[string]any, error) {
		node := child(child(child(root(&doc), "resources"), group), "properties")
		if node == nil || node.Kind != yaml.MappingNode {
			return nil, nil, lcm.Errorf(lcm.KindTerminal, "Heat template %s: group %s has no properties", h.topFile, group)
		}
		g, _ := resources[group].(map[string]any)
		p, _ := g["properties"].(map[string]any)
		return node, p, nil
	}
	for name, count := range capacities {
		node, wanted, err := properties(name)
		if err != nil {
			return nil, err
		}
		set(node, capacityName, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(count)})
		wanted[capacityName] = json.Number(strconv.Itoa(count))
	}
	if stamp != "" {
		for _, name := range h.groups() {
			node, wanted, err := properties(name)
			if err != nil {
				return nil, err
			}
			member, _ := wanted["resource"].(map[string]any)
			if member == nil {
				continue
			}
			set(child(node, "resource"), "description", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: stamp})
			member["description"] = stamp
		}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, fmt.Errorf("write Heat template %s: %w", h.topFile, err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write Heat template %s: %w", h.topFile, err)
	}
	// Heat is to read the same values but for these; an anchor shared by two groups, say, would break that.
	if got, err := parseYAML(out.Bytes()); err != nil || !reflect.DeepEqual(got, read) {
		return nil, lcm.Errorf(lcm.KindTerminal, "Heat template %s: the desired_capacity of its groups cannot be changed by itself", h.topFile)
	}
	return out.Bytes(), nil
}

// set sets a key of a mapping.
func set(m *yaml.Node, key string, value *yaml.Node) {
	if n := index(m, key); n >= 0 {
		m.Content[n+1] = value
		return
	}
	m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

func root(doc *yaml.Node) *yaml.Node {
	if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
		return doc.Content[0]
	}
	return doc
}

func index(m *yaml.Node, key string) int {
	if m == nil || m.Kind != yaml.MappingNode {
		return -1
	}
	for n := 0; n+1 < len(m.Content); n += 2 {
		if m.Content[n].Value == key {
			return n
		}
	}
	return -1
}

func child(m *yaml.Node, key string) *yaml.Node {
	n := index(m, key)
	if n < 0 {
		return nil
	}
	if c := m.Content[n+1]; c.Kind == yaml.AliasNode {
		return c.Alias
	}
	return m.Content[n+1]
}
