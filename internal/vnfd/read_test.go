package vnfd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// testPackage returns the package in testdata/pkg with files in place of, or
// besides, its own.
func testPackage(t testing.TB, overlay map[string]string) fstest.MapFS {
	t.Helper()
	m := fstest.MapFS{}
	for name, text := range overlay {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	addDir(t, m, "testdata/pkg", "")
	return m
}

func read(t testing.TB, overlay map[string]string, entry string) *Descriptor {
	t.Helper()
	d, err := Read(testPackage(t, overlay), entry)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func diff(t testing.TB, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestDescriptor(t *testing.T) {
	d := read(t, nil, "Definitions/top.yaml")
	diff(t, "identity", []string{"7d5bd7a8-0000-4000-8000-000000000001", "Example", "Router", "2.0", "1.0"},
		[]string{d.ID, d.Provider, d.ProductName, d.SoftwareVersion, d.Version})
	diff(t, "vnfm_info", []string{"vnfm"}, d.VnfmInfo)
	diff(t, "files", []string{"Definitions/top.yaml", "Definitions/types.yaml", "Definitions/small.yaml", "Definitions/large.yaml"}, d.Files)
	if len(d.Flavours) != 2 || d.Flavours[0].ID != "small" || d.Flavours[1].ID != "large" {
		t.Fatalf("flavours %+v", d.Flavours)
	}
	if _, ok := d.Flavour("medium"); ok {
		t.Error("there is no such flavour")
	}
	roundTrip(t, d)
}

func TestFlavour(t *testing.T) {
	d := read(t, nil, "Definitions/top.yaml")
	f, _ := d.Flavour("small")
	one, two, no := 1, 2, false
	img := SoftwareImage{ID: "router", Name: "router image", Version: "1.0", Checksum: Checksum{"sha-256", "aa"},
		ContainerFormat: "bare", DiskFormat: "qcow2", MinDisk: 1 << 30, MinRAM: 1500, Size: 2e9, File: "Files/images/disk.img"}
	diff(t, "description", "Small", f.Description)
	diff(t, "file", "Definitions/small.yaml", f.File)
	diff(t, "node type", "example.VNF", f.SubstitutionNodeType)
	diff(t, "VDUs", []VDU{
		{Name: "router", Type: "example.Vdu", PropName: "router1", Description: "forwards", MinInstances: 1, MaxInstances: 9,
			InitialInstances: &one, VCPUs: 2, RAM: 512 << 20, Disk: 10e9, FlavorName: "m1.small",
			NovaExtraSpecs: map[string]string{"hw:cpu_policy": "dedicated", "hw:x": "1"}, Storages: []string{"disk"}, SoftwareImage: &img},
		{Name: "helper", Type: typeCompute, PropName: "helper", Description: "helps", MinInstances: 2, MaxInstances: 2, InitialInstances: &two},
		{Name: "lonely", Type: typeCompute, PropName: "lonely", Description: "has no initial delta", MinInstances: 3, MaxInstances: 3},
	}, f.VDUs)
	diff(t, "images", []SoftwareImage{img}, f.SoftwareImages)
	diff(t, "storages", []VirtualStorage{{Name: "disk", Type: typeBlockStorage, Size: 3 << 30}}, f.Storages)
	diff(t, "CPs", []CP{
		{Name: "port1", VDU: "router", LayerProtocols: []string{"ipv4"}},
		{Name: "port2", VDU: "router", VirtualLink: "inner", Order: 1, LayerProtocols: []string{"ipv4", "ipv6"}, VnicType: "virtio", BitrateRequirement: 1000},
	}, f.CPs)
	diff(t, "links", []VirtualLink{{Name: "inner", LayerProtocols: []string{"ipv6"}, FlowPattern: "mesh", CIDR: "fd00::/64",
		IPVersion: "ipv6", Gateway: "fd00::1", DHCP: &no, MaxLeafBitrate: 1000, MaxRootBitrate: 2000}}, f.VirtualLinks)
	diff(t, "affinity", []AffinityRule{
		{Name: "apart", Anti: true, Scope: "nfvi_node", Targets: []string{"router", "helper", "lonely"}, Groups: []string{"pair"}},
		{Name: "together", Scope: "zone", Targets: []string{"router"}},
	}, f.Affinity)
	diff(t, "hooks", map[string]string{"instantiate_end": "example-driver", "scale_start": "example-driver", "heal_end": "remote-driver"}, f.Hooks)
	diff(t, "hook artifacts", map[string]string{"example-driver": "Scripts/driver.py", "remote-driver": "https://example.com/driver.py"}, f.HookArtifacts)
	diff(t, "external CPs", []ExternalCP{{"external", "port1", "virtual_link"}}, f.ExternalCPs)
	diff(t, "properties", Tree{
		"descriptor_id": "7d5bd7a8-0000-4000-8000-000000000001", "descriptor_version": "1.0", "provider": "Example",
		"product_name": "Router", "software_version": "2.0", "vnfm_info": []any{"vnfm"}, "flavour_id": "small",
		"flavour_description": "Small", "ports": map[string]any{"get_input": "ports"}, "ratio": json.Number("1.0"),
	}, f.Properties)
	l, _ := d.Flavour("large")
	diff(t, "large's ports", json.Number("8"), l.Properties["ports"].(json.Number))
}

func TestDict(t *testing.T) {
	f := &read(t, nil, "Definitions/top.yaml").Flavours[0]
	if got := slices.Sorted(func(yield func(string) bool) {
		for k := range f.Dict {
			if !yield(k) {
				return
			}
		}
	}); strings.Join(got, " ") != "description metadata topology_template tosca_definitions_version" {
		t.Errorf("keys %v", got)
	}
	diff(t, "description", "A router in two sizes", f.Dict["description"].(string))
	diff(t, "metadata", map[string]any{"template_version": json.Number("1.0")}, f.Dict["metadata"].(map[string]any))
	topology := f.Dict["topology_template"].(map[string]any)
	templates := topology["node_templates"].(map[string]any)
	if _, has := templates["VNF"]; has || len(templates) != 7 {
		t.Errorf("node templates %v", templates)
	}
	var inputs []string
	for k := range topology["inputs"].(map[string]any) {
		inputs = append(inputs, k)
	}
	slices.Sort(inputs)
	diff(t, "inputs", []string{"descriptor_version", "memory", "provider"}, inputs)
	if len(topology["policies"].([]any)) != 9 || len(topology["groups"].(map[string]any)) != 1 {
		t.Error("policies or groups are missing")
	}
}

func TestSingleTemplate(t *testing.T) {
	d := read(t, nil, "single.yaml")
	if len(d.Flavours) != 1 || d.Flavours[0].ID != "tiny" || d.Flavours[0].Description != "the only one" || d.Version != "1.0" {
		t.Fatalf("%+v", d)
	}
	if len(d.Flavours[0].VDUs) != 1 || d.Flavours[0].SubstitutionNodeType != typeVNF {
		t.Errorf("%+v", d.Flavours[0])
	}
	roundTrip(t, d)
}

// edit returns a file of the test package with the first old replaced.
func edit(t testing.TB, name, old, new string) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/pkg/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not contain %q", name, old)
	}
	return map[string]string{name: strings.Replace(string(data), old, new, 1)}
}

func TestDiagnostics(t *testing.T) {
	const top, small, types = "Definitions/top.yaml", "Definitions/small.yaml", "Definitions/types.yaml"
	for _, c := range []struct {
		name, file, old, new string
		rule, text           string
		in                   string // file of the finding, when not the edited one
		line                 int    // 0: not checked
	}{
		{"import absent", top, "types.yaml", "nowhere.yaml", RuleImport, `"nowhere.yaml" does not exist`, "", 6},
		{"import of nothing", top, "- types.yaml", "- {x: }", RuleImport, "names no file", "", 6},
		{"imports not a list", small, "imports: [types.yaml]", "imports: types.yaml", RuleImport, "not a list", "", 3},
		{"import outside", top, "- types.yaml", "- ../../x.yaml", RuleImport, "does not exist", "", 6},
		{"import cycle", small, "[types.yaml]", "[types.yaml, top.yaml]", RuleImport, "circular", "", 3},
		{"not YAML", small, "description: The", "description: [The", RuleYAML, "invalid YAML", "", 0},
		{"two documents", small, "description:", "---\ndescription:", RuleYAML, "more than one document", "", 0},
		{"list and mapping mixed", small, "tosca_definitions_version: tosca_simple_yaml_1_2\ndescription: The small size\nimports: [types.yaml]\n", "- x\n", RuleYAML, "", "", 0},
		{"duplicate key", small, "description: The", "description: a\ndescription: The", RuleDuplicate, `"description" is given twice`, "", 3},
		{"alias bomb", small, "description: The small size", bomb(), RuleLimit, "aliases are expanded", "", 0},
		{"alias of itself", small, "description: The small size", "description: &a [*a]", RuleYAML, "contains itself", "", 2},
		{"deep nesting", small, "description: The small size", "description: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), RuleYAML, "depth", "", 0},
		{"custom tag", small, "description: The", "description: !python/object The", RuleYAML, "unknown tag", "", 2},
		{"required", small, "        name: router1\n", "", RuleRequired, `lacks the required property "name"`, "", 0},
		{"required field", small, "          name: router image\n", "", RuleRequired, `lacks the required field "name"`, "", 0},
		{"valid_values", small, "container_format: bare", "container_format: box", RuleConstraint, `not one of [bare, docker]`, "", 45},
		{"valid_values in a list", small, "{layer_protocols: [ipv4]}", "{layer_protocols: [ipv5]}", RuleConstraint, "item 1", "", 0},
		{"flavour_id not valid", small, "flavour_id: small", "flavour_id: giant", RuleConstraint, `"giant"`, "", 0},
		{"min_length", top, "provider: Example", "provider: E", RuleConstraint, "min_length", "", 18},
		{"max_length", top, "provider: Example", "provider: " + strings.Repeat("E", 21), RuleConstraint, "max_length", "", 18},
		{"pattern", top, "provider: Example", "product_name: router", RuleConstraint, "pattern", "", 18},
		{"in_range", small, "ports: {get_input: ports}", "ports: 9", RuleConstraint, "range [1, 8]", "", 0},
		{"less_than", top, "provider: Example", "ratio: 2.0", RuleConstraint, "less than", "", 18},
		{"greater_than", top, "provider: Example", "ratio: 0.0", RuleConstraint, "greater than", "", 18},
		{"greater_or_equal", small, "order: 1", "order: -1", RuleConstraint, "greater or equal", "", 0},
		{"default of input checked", small, "ports: {get_input: ports}", "ports: {get_input: memory}", RuleValue, "integer", "", 10},
		{"string", top, "provider: Example", "provider: 1.0", RuleValue, "not of type string", "", 18},
		{"list", top, "provider: Example", "vnfm_info: x", RuleValue, "not of type list", "", 18},
		{"float", top, "provider: Example", "ratio: many", RuleValue, "not of type float", "", 18},
		{"complex type", small, "vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 9}", "vdu_profile: 3", RuleValue, "VduProfile", "", 0},
		{"size without unit", small, "size: 2 GB", "size: 2", RuleSize, "not a number and a unit", "", 49},
		{"size with a wrong unit", small, "10 GB", "10 GX", RuleSize, "no unit of size", "", 0},
		{"artifact absent", small, "../Files/images/disk.img", "../Files/images/gone.img", RuleArtifact, "gone.img", "", 51},
		{"driver absent", small, "Scripts/driver.py", "Scripts/gone.py", RuleArtifact, "gone.py", "", 0},
		{"artifact without a file", small, "file: Scripts/driver.py", "fil: Scripts/driver.py", RuleArtifact, "names no file", "", 0},
		{"artifact on the host", small, "Scripts/driver.py", "/etc/passwd", RuleArtifact, "/etc/passwd", "", 0},
		{"image data missing", small, "sw_image_data:\n          name: router image", "x_image_data:\n          name: router image", RuleImage, `Node property "sw_image_data" is missing for "router"`, "", 51},
		{"two images", small, "        sw_image: {type", "        other: {type: tosca.artifacts.nfv.SwImage, file: ../Files/images/disk.img}\n        sw_image: {type", RuleImage, "only one artifact", "", 52},
		{"unknown requirement target", small, "- virtual_binding: router\n", "- virtual_binding: nobody\n", RuleReference, `"nobody"`, "", 0},
		{"unknown policy target", small, "targets: [pair, lonely]", "targets: [pair, nobody]", RuleReference, `"nobody"`, "", 0},
		{"policy without type", small, "        type: example.AntiAffinity\n", "", RuleSyntax, "no type", "", 0},
		{"unknown level", small, "{levels: {low:", "{levels: {lowest:", RuleLevel, "Level(s) lowest not found in defined levels low,mid,high", "", 0},
		{"unknown default level", small, "default_level: low", "default_level: base", RuleLevel, "Level base not found in defined levels low,mid,high", "", 0},
		{"levels undefined", small, "type: tosca.policies.nfv.InstantiationLevels", "type: tosca.policies.nfv.Other", RuleLevel, `Policy of type "tosca.policies.nfv.InstantiationLevels" is not defined.`, "", 0},
		{"aspect unknown to a level", small, "scale_info: {flat: {scale_level: 0}", "scale_info: {flap: {scale_level: 0}", RuleLevel, `"flap"`, "", 0},
		{"aspect unknown to deltas", small, "aspect: flat,", "aspect: flap,", RuleLevel, `"flap"`, "", 0},
		{"level too high", small, "flat: {scale_level: 3}", "flat: {scale_level: 4}", RuleLevel, "max_scale_level 3", "", 0},
		{"absurd count", small, "{number_of_instances: 100}", "{number_of_instances: 99999999999999999999}", RuleValue, "between 0 and", "", 0},
		{"no VNF node", top, "type: example.VNF", "type: tosca.nodes.Root", RuleVNF, "exactly one node", "", 0},
		{"two VNF nodes", top, "    VNF:\n", "    VNF2: {type: example.VNF}\n    VNF:\n", RuleVNF, "have 2", "", 0},
		{"mandatory property", types, "software_version: {type: string, default: '2.0'}", "software_version: {type: string, required: false}", RuleVNF, "VNF properties are mandatory", top, 0},
		{"two VNF nodes in a flavour", small, "    router:\n      type", "    VNF2: {type: example.VNF}\n    router:\n      type", RuleVNF, "more than one", "", 0},
		{"flavour twice", small, "{flavour_id: small}", "{flavour_id: large}", RuleDuplicate, `"large" is defined twice`, "Definitions/large.yaml", 0},
		{"flavour_id not a string", small, "{flavour_id: small}", "{flavour_id: {get_input: x}}", RuleFlavour, `flavour_id should be string and given {"get_input":"x"}`, "", 13},
		{"node templates not a mapping", small, "  groups:", "  inputs: []\n  groups:", RuleDuplicate, "inputs", "", 0},
		{"topology not a mapping", "Definitions/large.yaml", "topology_template:", "topology_template: []\nx:", RuleSyntax, "not a mapping", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(testPackage(t, edit(t, c.file, c.old, c.new)), top)
			in := c.in
			if in == "" {
				in = c.file
			}
			wantDiagnostic(t, err, in, c.rule, c.text, c.line)
		})
	}
}

// wantDiagnostic checks that err has the finding; every other finding has to
// name a file as well.
func wantDiagnostic(t testing.TB, err error, file, rule, text string, line int) {
	t.Helper()
	var list Diagnostics
	if !errors.As(err, &list) || len(list) == 0 {
		t.Fatalf("error %v (%T), want Diagnostics", err, err)
	}
	for _, d := range list {
		if d.File == "" || d.Rule == "" || d.Message == "" {
			t.Errorf("incomplete finding %+v", d)
		}
		if d.File == file && d.Rule == rule && strings.Contains(d.Message, text) && (line == 0 || d.Line == line) {
			return
		}
	}
	t.Errorf("no finding of rule %q with %q at %s:%d among:\n%s", rule, text, file, line, strings.ReplaceAll(list.Error(), "; ", "\n"))
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return b.String()
}

// Undefined types can be told only when no import is a URL.
func TestTypeDiagnostics(t *testing.T) {
	const top, small, types = "Definitions/top.yaml", "Definitions/small.yaml", "Definitions/types.yaml"
	local := edit(t, top, "  - https://example.com/more_types.yaml\n", "")
	for _, c := range []struct{ name, file, old, new, rule, text string }{
		{"undefined", small, "type: example.Vdu", "type: example.Gone", RuleType, `"example.Gone" of node "router" is not defined`},
		{"parent undefined", types, "derived_from: example.BaseVdu", "derived_from: example.Gone", RuleType, `derives from the undefined type "example.Gone"`},
		{"circular", types, "  example.BaseVdu:\n    derived_from: tosca.nodes.nfv.Vdu.Compute", "  example.BaseVdu:\n    derived_from: example.Vdu", RuleType, "circular"},
		{"policy type", small, "type: example.AntiAffinity", "type: example.Gone", RuleType, `policy "apart"`},
		{"substitution", small, "node_type: example.VNF", "node_type: example.Gone", RuleType, "substitution_mappings"},
		{"algorithm without a constraint", types, "algorithm: {type: string, constraints: [valid_values: [sha-224, sha-256, sha-384, sha-512]]}", "algorithm: {type: string}", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			overlay := edit(t, c.file, c.old, c.new)
			overlay[top] = local[top]
			if c.rule == "" {
				for name, text := range edit(t, small, "algorithm: sha-256", "algorithm: md5") {
					overlay[name] = text
				}
				_, err := Read(testPackage(t, overlay), top)
				wantDiagnostic(t, err, small, RuleImage, `"md5"`, 44)
				return
			}
			_, err := Read(testPackage(t, overlay), top)
			wantDiagnostic(t, err, small, c.rule, c.text, 0)
		})
	}
}

func TestEntryProblems(t *testing.T) {
	for _, c := range []struct{ name, entry, text, rule string }{
		{"absent", "gone.yaml", "", RuleFile},
		{"outside", "../x.yaml", "", RuleFile},
		{"folder", "Definitions", "", RuleFile},
		{"empty", "e.yaml", "\n", RuleSyntax},
		{"comment only", "e.yaml", "# nothing\n", RuleSyntax},
		{"scalar", "e.yaml", "hello", RuleSyntax},
		{"binary", "e.yaml", "\x00\x01\xff", RuleYAML},
		{"no topology", "e.yaml", "a: b", RuleVNF},
		{"too large", "e.yaml", "a: " + strings.Repeat("x", maxFileBytes), RuleFile},
		{"no flavour", "e.yaml", "imports: [Definitions/types.yaml]\ntopology_template: {node_templates: {VNF: {type: example.VNF, properties: {flavour_id: {get_input: x}}}}}", RuleFlavour},
	} {
		t.Run(c.name, func(t *testing.T) {
			overlay := map[string]string{}
			if c.text != "" {
				overlay[c.entry] = c.text
			}
			_, err := Read(testPackage(t, overlay), c.entry)
			wantDiagnostic(t, err, c.entry, c.rule, "", 0)
		})
	}
}

func TestImportDepth(t *testing.T) {
	overlay := map[string]string{}
	for i := range maxImportDepth + 5 {
		overlay[fmt.Sprintf("f%d.yaml", i)] = fmt.Sprintf("imports: [f%d.yaml]", i+1)
	}
	_, err := Read(testPackage(t, overlay), "f0.yaml")
	wantDiagnostic(t, err, fmt.Sprintf("f%d.yaml", maxImportDepth), RuleLimit, "nested deeper", 1)
}

func TestDiagnosticsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("topology_template:\n  node_templates:\n")
	for i := range 3 * maxDiagnostics {
		fmt.Fprintf(&b, "    n%d: {}\n", i)
	}
	_, err := Read(testPackage(t, map[string]string{"e.yaml": b.String()}), "e.yaml")
	var list Diagnostics
	if !errors.As(err, &list) || len(list) != maxDiagnostics || !strings.HasSuffix(err.Error(), "and 90 more") {
		t.Errorf("%d findings: %v", len(list), err)
	}
}

// Small files that ask for large products are given up, not worked off.
func TestComplexityIsBounded(t *testing.T) {
	repeat := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"nodes": "topology_template:\n  node_templates:\n" + repeat(maxTemplates+1, "    n%d: {type: tosca.x}\n"),
		"nodes times properties": "node_types:\n  t:\n    properties:\n" + repeat(20_000, "      p%d: {required: false}\n") +
			"topology_template:\n  node_templates:\n" + repeat(maxTemplates, "    n%d: {type: t}\n"),
		"values times valid values": "node_types:\n  t:\n    properties:\n      p: {type: list, entry_schema: {type: string, constraints: [valid_values: [" +
			repeat(50_000, "v%d, ") + "x]]}}\ntopology_template:\n  node_templates:\n    n:\n      type: t\n      properties: {p: [" +
			strings.Repeat("x, ", 50_000) + "x]}\n",
		"policies times group members": "topology_template:\n  substitution_mappings: {properties: {flavour_id: f}}\n" +
			"  node_templates:\n    VNF: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: a, provider: a, product_name: a, software_version: a, descriptor_version: a}}\n" +
			"  groups: {g: {members: [" + repeat(50_000, "m%d, ") + "x]}}\n  policies:\n" +
			repeat(5_000, "    - p%d: {type: tosca.policies.nfv.AffinityRule, targets: [g]}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(testPackage(t, map[string]string{"e.yaml": text}), "e.yaml")
			wantDiagnostic(t, err, "e.yaml", RuleLimit, "", 0)
		})
	}
}

func TestFurtherConstraints(t *testing.T) {
	const types = `
data_types:
  unit: {properties: {speed: {type: scalar-unit.bitrate}}}
node_types:
  t:
    derived_from: tosca.nodes.Root
    properties:
      size: {type: scalar-unit.size, required: false, constraints: [valid_values: [1 GiB, 2 GiB], less_or_equal: 1 TiB]}
      time: {type: scalar-unit.time, required: false, constraints: [greater_than: 0 s, in_range: [1 ms, UNBOUNDED]]}
      rate: {type: unit, required: false}
      count: {type: integer, required: false, constraints: [valid_values: [1, 2], equal: 2]}
      version: {type: version, required: false, constraints: [valid_values: ['1.0']]}
      code: {type: string, required: false, constraints: [length: 3]}
      flag: {type: boolean, required: false}
      names: {type: map, required: false, entry_schema: {type: integer}, constraints: [max_length: 2]}
      clever: {type: string, required: false, constraints: [pattern: '(?=x)x']}
      later: {type: string, required: false, constraints: [min_length: 5]}
topology_template:
  inputs: {loop: {default: {get_input: loop}}, short: {default: abc}}
  node_templates:
    VNF: {type: tosca.nodes.nfv.VNF, properties: {descriptor_id: a, provider: a, product_name: a, software_version: a, descriptor_version: a, flavour_id: f}}
    n: {type: t, properties: {%s}}
`
	for props, rule := range map[string]string{
		"size: 1024 MiB, time: 1 s, rate: {speed: 10 Mbps}, count: 2, version: 1.0, code: äöü, flag: 'true', names: {a: '1', b: 2}": "",
		"clever: y, later: {get_input: loop}": "",
		"later: {get_attribute: [n, x]}":      "",
		"later: {concat: [a, b]}":             "",
		"later: {get_input: short}":           RuleConstraint,
		"size: 3 GiB":                         RuleConstraint,
		"time: 0 s":                           RuleConstraint,
		"time: 10 us":                         RuleConstraint,
		"time: 5 parsec":                      RuleValue,
		"rate: {speed: fast}":                 RuleValue,
		"rate: {}":                            RuleRequired,
		"count: 1":                            RuleConstraint,
		"count: 1.5":                          RuleValue,
		"version: 1.1":                        RuleConstraint,
		"version: [1]":                        RuleValue,
		"code: abcd":                          RuleConstraint,
		"flag: 3":                             RuleValue,
		"names: {a: x}":                       RuleValue,
		"names: [1]":                          RuleValue,
		"names: {a: 1, b: 2, c: 3}":           RuleConstraint,
	} {
		_, err := Read(testPackage(t, map[string]string{"e.yaml": fmt.Sprintf(types, props)}), "e.yaml")
		if rule == "" {
			if err != nil {
				t.Errorf("%s: %v", props, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: accepted, want a finding of rule %s", props, rule)
			continue
		}
		wantDiagnostic(t, err, "e.yaml", rule, "", 0)
	}
}
