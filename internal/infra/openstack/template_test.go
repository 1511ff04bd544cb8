package openstack

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/openstack/userdata"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

func TestParseYAML(t *testing.T) {
	got, err := parseYAML([]byte(`
date: 2013-05-23
quoted: '1'
tagged: !!str 1
int: 1
plus: +7
octal: 010
hex: 0xff
binary: 0b11
under: 1_000
sexagesimal: 1:30
float: 1.0
exponent: 1.5e+3
noexponent: 1e3
yes: yes
off: off
empty:
tilde: ~
version: 1.2.3
inf: .inf
base: &b {a: 1, b: 2}
merged: {<<: *b, b: 3}
list: [*b, x]
`))
	if err != nil {
		t.Fatal(err)
	}
	n := func(s string) json.Number { return json.Number(s) }
	base := map[string]any{"a": n("1"), "b": n("2")}
	want := map[string]any{
		"date": "2013-05-23", "quoted": "1", "tagged": "1", "int": n("1"), "plus": n("7"), "octal": n("8"), "hex": n("255"),
		"binary": n("3"), "under": n("1000"), "sexagesimal": n("90"), "float": n("1.0"), "exponent": n("1500.0"),
		"noexponent": "1e3", "yes": true, "off": false, "empty": nil, "tilde": nil, "version": "1.2.3", "inf": ".inf",
		"base": base, "merged": map[string]any{"a": n("1"), "b": n("3")}, "list": []any{base, "x"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseYAMLHostile(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		prev, this := string(rune('0'+i-1)), string(rune('0'+i))
		bomb.WriteString("a" + this + ": &a" + this + " [" + strings.Repeat("*a"+prev+",", 9) + "*a" + prev + "]\n")
	}
	for name, text := range map[string]string{
		"aliases":   bomb.String(),
		"depth":     strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"recursive": "a: &a [*a]",
		"key":       "? [a]\n: b",
	} {
		if _, err := parseYAML([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLoadBaseHOT(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	fsys := fstest.MapFS{
		"BaseHOT/good/any_name.yml":       file("resources: {}"),
		"BaseHOT/good/readme.txt":         file("x"),
		"BaseHOT/good/nested/a.yaml":      file("description: a"),
		"BaseHOT/two/a.yaml":              file("{}"),
		"BaseHOT/two/b.yaml":              file("{}"),
		"BaseHOT/list/a.yaml":             file("[]"),
		"BaseHOT/bad/a.yaml":              file("a: [\n"),
		"BaseHOT/onlynested/nested/a.yml": file("{}"),
		"BaseHOT/top.yaml":                file("{}"),
	}
	hot, err := loadBaseHOT(fsys, "good")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"heat_template": map[string]any{"resources": map[string]any{}}, "a.yaml": map[string]any{"description": "a"}}
	if diff := cmp.Diff(want, hot.forScript()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a.yaml": "description: a"}, hot.files()); diff != "" {
		t.Error(diff)
	}
	for flavour, want := range map[string]string{
		"none": "LCM user data failed to get Base HOT.", "onlynested": "LCM user data failed to get Base HOT.",
		"..": "LCM user data failed to get Base HOT.", "": "LCM user data failed to get Base HOT.", "a/b": "LCM user data failed to get Base HOT.",
		"two": "a.yaml, b.yaml", "list": "is not a mapping", "bad": "BaseHOT/bad/a.yaml",
	} {
		if _, err := loadBaseHOT(fsys, flavour); !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), want) {
			t.Errorf("flavour %q: %v", flavour, err)
		}
	}
}

// atLevel returns the sizes of the groups at an instantiation level.
func atLevel(t *testing.T, f *vnfd.Flavour, level string) map[string]int {
	t.Helper()
	info, err := lcm.NewInstantiatedInfo(f, &sol003.InstantiateVnfRequest{InstantiationLevelId: level}, func() string { return "x" })
	if err != nil {
		t.Fatal(err)
	}
	return membersOf(f, nil, info)
}

func TestCapacities(t *testing.T) {
	fsys, f := testPackage(t, "cluster", "complex")
	hot, err := loadBaseHOT(fsys, "complex")
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]any{}
	got := capacities(f, atLevel(t, f, ""), hot, params, false)
	if len(got) != 0 || len(params) != 0 {
		t.Errorf("default level: %v %v", got, params)
	}
	if same, err := hot.withCapacities(got); err != nil || string(same) != string(hot.top) {
		t.Errorf("the template is not sent as it is: %v", err)
	}
	got = capacities(f, atLevel(t, f, "level_2"), hot, params, false)
	if diff := cmp.Diff(map[string]int{"master_instance": 5, "worker_instance": 4}, got); diff != "" {
		t.Error(diff)
	}
	text, err := hot.withCapacities(got)
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	changed := baseHOT{parsed: again.(map[string]any)}
	for group, count := range got {
		p, _ := changed.group(group)
		if n, ok := literalCapacity(p); !ok || n != count {
			t.Errorf("%s has %d members, not %d", group, n, count)
		}
	}
	if !strings.Contains(string(text), "heat_template_version: 2013-05-23\n") {
		t.Errorf("the version is written differently:\n%s", text)
	}
}

func TestCapacitiesForms(t *testing.T) {
	_, f := testPackage(t, "cluster", "complex")
	for name, tt := range map[string]struct {
		hot    string
		want   map[string]int
		params map[string]any
		broken bool
		always bool
	}{
		"parameter by convention": {
			hot:    "parameters: {master_instance_desired_capacity: {type: number}}\nresources: {master_instance: {type: 'OS::Heat::AutoScalingGroup', properties: {desired_capacity: {get_param: master_instance_desired_capacity}}}}",
			params: map[string]any{"master_instance_desired_capacity": 5},
		},
		"a function decides": {hot: "resources: {master_instance: {type: 'OS::Heat::AutoScalingGroup', properties: {desired_capacity: {get_param: [nfv, n]}}}}"},
		"a function is overruled": {
			hot:    "resources: {master_instance: {type: 'OS::Heat::AutoScalingGroup', properties: {desired_capacity: {get_param: [nfv, n]}}}}",
			want:   map[string]int{"master_instance": 5},
			always: true,
		},
		"only min_size": {
			hot:  "resources: {master_instance: {type: 'OS::Heat::AutoScalingGroup', properties: {min_size: 3, max_size: 9}}}",
			want: map[string]int{"master_instance": 5},
		},
		"not a group":   {hot: "resources: {master_instance: {type: 'OS::Nova::Server', properties: {desired_capacity: 1}}}"},
		"equal already": {hot: "resources: {master_instance: {type: 'OS::Heat::AutoScalingGroup', properties: {desired_capacity: '5'}}}"},
		"shared by an anchor": {
			hot:    "resources: {master_instance: {type: 'OS::Heat::AutoScalingGroup', properties: &p {desired_capacity: 1}}, other: {type: 'OS::Heat::AutoScalingGroup', properties: *p}}",
			want:   map[string]int{"master_instance": 5},
			broken: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := parseYAML([]byte(tt.hot))
			if err != nil {
				t.Fatal(err)
			}
			hot := &baseHOT{top: []byte(tt.hot), parsed: v.(map[string]any)}
			params := map[string]any{}
			got := capacities(f, atLevel(t, f, "level_2"), hot, params, tt.always)
			if tt.want == nil {
				tt.want = map[string]int{}
			}
			if tt.params == nil {
				tt.params = map[string]any{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.params, params); diff != "" {
				t.Error(diff)
			}
			if _, err := hot.withCapacities(got); (err != nil) != tt.broken {
				t.Errorf("withCapacities: %v", err)
			}
		})
	}
}

// TestGolden holds the helper functions to what the reference's return (but for its defects).
func TestGolden(t *testing.T) {
	runner := userdata.New(userdata.Config{}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	cps := func(ethernet bool, names ...string) map[string]any {
		var links []any
		for _, n := range names {
			protocol := map[string]any{"layerProtocol": "IP_OVER_ETHERNET"}
			if ethernet {
				protocol["ipOverEthernet"] = map[string]any{"ipAddresses": []any{map[string]any{
					"type": "IPV4", "subnetId": "SUB-" + n, "fixedAddresses": []any{"22.22.0.10"},
				}}}
			}
			links = append(links, map[string]any{"id": n, "resourceId": "NET-" + n, "extCps": []any{map[string]any{
				"cpdId": n, "cpConfig": []any{map[string]any{"cpProtocolData": []any{protocol}}},
			}}})
		}
		return map[string]any{"flavourId": "simple", "extVirtualLinks": links, "additionalParams": map[string]any{}}
	}
	full := func(cp string) string {
		return `"` + cp + `":{"network":"NET-` + cp + `","fixed_ips":[{"subnet":"SUB-` + cp + `","ip_address":"22.22.0.10"}]}`
	}
	const image = `"cirros-0.5.2-x86_64-disk"`
	vdus := `"VDU":{"VDU1":{"flavor":"m1.tiny","image":null},"VDU2":{"flavor":"m1.tiny","image":` + image + `},"VirtualStorage":{"flavor":null,"image":` + image + `}}`
	all := []string{"VDU1_CP1", "VDU1_CP2", "VDU2_CP1", "VDU2_CP2"}
	size := `"flavor":{"vcpus":1,"ram":488,"disk":2}`
	for name, tt := range map[string]struct {
		pkg, flavour, path, class string
		request                   any
		images                    map[string][]userdata.Image
		want                      string
	}{
		"initial parameters": {
			"functional", "simple", "UserData/old_chain.py", "Initial", cps(false), nil,
			`{"nfv":{"VDU":{"VDU1":{},"VirtualStorage":{},"VDU2":{}},"CP":{"VDU1_CP1":{},"VDU1_CP2":{},"VDU2_CP1":{},"VDU2_CP2":{}}}}`,
		},
		"final parameters": {
			"functional", "simple", "./UserData/lcm_user_data.py", "SampleUserData", cps(true, all...), nil,
			`{"nfv":{` + vdus + `,"CP":{` + full(all[0]) + `,` + full(all[1]) + `,` + full(all[2]) + `,` + full(all[3]) + `}}}`,
		},
		"a connection point that the request does not name stays": {
			"functional", "simple", "/UserData/lcm_user_data.py", "SampleUserData", cps(true, all[0], all[1], all[2]), nil,
			`{"nfv":{` + vdus + `,"CP":{` + full(all[0]) + `,` + full(all[1]) + `,` + full(all[2]) + `,"VDU2_CP2":{}}}}`,
		},
		"without ipOverEthernet there are no addresses": {
			"functional", "simple", "UserData/lcm_user_data", "SampleUserData", cps(false, all[0]), nil,
			`{"nfv":{` + vdus + `,"CP":{"VDU1_CP1":{"network":"NET-VDU1_CP1","fixed_ips":[]},"VDU1_CP2":{},"VDU2_CP1":{},"VDU2_CP2":{}}}}`,
		},
		"old chain, with the networks that the reference loses": {
			"functional", "simple", "UserData/old_chain.py", "OldChain", cps(true, all...),
			map[string][]userdata.Image{"VDU2": {{ID: "glance-1"}}, "VirtualStorage": {{ID: "glance-0"}, {ID: "glance-2"}}},
			`{"nfv":{"VDU":{"VDU1":{` + size + `,"image":null},"VDU2":{` + size + `,"image":"glance-1"},"VirtualStorage":{"flavor":null,"image":"glance-2"}},` +
				`"CP":{"VDU1_CP1":{"network":"NET-VDU1_CP1"},"VDU1_CP2":{"network":"NET-VDU1_CP2"},"VDU2_CP1":{"network":"NET-VDU2_CP1"},"VDU2_CP2":{"network":"NET-VDU2_CP2"}}}}`,
		},
		"cluster": {
			"cluster", "complex", "./UserData/cluster_user_data.py", "ClusterUserData", cps(true, "masterNode_CP1", "workerNode_CP2"), nil,
			`{"nfv":{"VDU":{"masterNode":{"flavor":"m1.medium","image":"Image of a node"},"workerNode":{"flavor":"m1.medium","image":"Image of a node"}},"CP":{` +
				full("masterNode_CP1") + `,` + full("workerNode_CP2") + `}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, f := testPackage(t, tt.pkg, tt.flavour)
			hot, err := loadBaseHOT(fsys, tt.flavour)
			if err != nil {
				t.Fatal(err)
			}
			params, err := runner.Run(t.Context(), userdata.Request{
				PackageFS: fsys, Path: tt.path, Class: tt.class, BaseHOT: hot.forScript(), VNFD: f.Dict,
				Instantiate: tt.request, Images: tt.images,
			})
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			dec := json.NewDecoder(strings.NewReader(tt.want))
			dec.UseNumber()
			if err := dec.Decode(&want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, params); diff != "" {
				t.Error(diff)
			}
		})
	}
}
