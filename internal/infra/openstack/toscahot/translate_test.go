package toscahot

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

var update = flag.Bool("update", false, "write the golden files anew")

// setup is the script that a VNFD of testdata names.
const setup = "#!/bin/sh\nexit 0\n"

// sample reads a VNFD of testdata with its request.
func sample(t testing.TB, name string) Input {
	t.Helper()
	read := func(file string) []byte {
		raw, err := os.ReadFile(filepath.Join("testdata", "vnfds", file))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	pkg := fstest.MapFS{"Definitions/" + name + ".yaml": {Data: read(name + ".yaml")}, "Files/setup.sh": {Data: []byte(setup)}}
	in := Input{Flavour: flavour(t, pkg, "Definitions/"+name+".yaml"), Request: new(sol003.InstantiateVnfRequest), Package: pkg}
	if err := json.Unmarshal(read(name+".json"), in.Request); err != nil {
		t.Fatal(err)
	}
	return in
}

func flavour(t testing.TB, pkg fstest.MapFS, entry string) *vnfd.Flavour {
	t.Helper()
	d, err := vnfd.Read(pkg, entry)
	if err != nil {
		t.Fatal(err)
	}
	return &d.Flavours[0]
}

func translate(t testing.TB, in Input) *Output {
	t.Helper()
	out, err := Translate(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// written is an output as one text.
func (o *Output) written() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- top --\n%s", o.Top)
	for _, name := range sorted(o.Files) {
		fmt.Fprintf(&b, "-- %s --\n%s", name, o.Files[name])
	}
	params, _ := json.MarshalIndent(o.Parameters, "", "  ")
	fmt.Fprintf(&b, "-- parameters --\n%s\n-- warnings --\n%s\n", params, strings.Join(o.Warnings, "\n"))
	return b.String()
}

// samples are the VNFDs of testdata, with what goes with them.
var samples = []struct {
	name   string
	change func(in *Input)
}{
	{"router", nil},
	{"workers", func(in *Input) {
		in.Images = map[string]string{"disk": "cirros-0.5.2-x86_64-disk"}
		in.Cooldown = 90 * time.Second
	}},
	{"cells", nil},
	{"pair", nil},
	{"inputs", nil},
	{"granted", func(in *Input) {
		in.Grant = &lcm.Grant{
			Flavours: map[string]string{"a": "1"}, VDUZones: map[string]string{"a": "nova", "b": "nova"}, Images: map[string]string{"a": "ubuntu-20.04"},
		}
		in.Flavors, in.Zones = map[string]string{"m1.small": "2", "m1.tiny": "1"}, []string{"nova"}
	}},
}

func TestGolden(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			in := sample(t, s.name)
			if s.change != nil {
				s.change(&in)
			}
			got := translate(t, in).written()
			file := filepath.Join("testdata", s.name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			again := in
			again.Parameters = roundTrip(t, translate(t, in).Parameters)
			again.Grant, again.Flavors, again.Images = nil, map[string]string{"node": "other"}, nil
			if diff := cmp.Diff(got, translate(t, again).written()); diff != "" {
				t.Errorf("with its own parameters, what was granted is not what it was:\n%s", diff)
			}
		})
	}
}

// roundTrip is parameters as they come back from where they were kept.
func roundTrip(t testing.TB, params map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSizes holds the conversions of sizes and bit rates that users of the reference know.
func TestSizes(t *testing.T) {
	top, err := hot.ParseText(translate(t, sample(t, "workers")).Top)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]any{
		"worker_flavor":   {"vcpus": int64(1), "ram": int64(488), "disk": int64(2)},
		"mesh_subnet":     {"ip_version": int64(4), "cidr": "33.33.0.0/24", "network": map[string]any{"get_resource": "mesh"}},
		"mesh_bandwidth":  {"max_kbps": int64(1024), "policy": map[string]any{"get_resource": "mesh_qospolicy"}},
		"mesh":            {"qos_policy": map[string]any{"get_resource": "mesh_qospolicy"}},
		"worker_instance": nil,
	} {
		r := top.Resources[name]
		if r == nil {
			t.Errorf("there is no %s", name)
		} else if diff := cmp.Diff(want, r.Properties); want != nil && diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	group := top.Resources["worker_instance"].Properties
	for key, want := range map[string]int64{"min_size": 1, "max_size": 5, "desired_capacity": 3} {
		if group[key] != want {
			t.Errorf("%s is %v, want %d", key, group[key], want)
		}
	}
}

// TestMembers sees that the sizes of groups can be given, and only those that the aspect has.
func TestMembers(t *testing.T) {
	in := sample(t, "cells")
	in.Members = map[string]int{"cell": 6}
	out := translate(t, in)
	want := []Group{
		{Aspect: "cell", Members: 6, Min: 1, Max: 6, PerMember: map[string]int{"front": 1, "back": 2}},
		{Aspect: "watch", Members: 1, Min: 1, Max: 2, PerMember: map[string]int{"watch": 1}},
	}
	if diff := cmp.Diff(want, out.Groups); diff != "" {
		t.Error(diff)
	}
	in.Members["cell"] = 7
	if _, err := Translate(in); !lcm.Is(err, lcm.KindTerminal) {
		t.Errorf("more members than the aspect has: %v", err)
	}
}

// TestNewImage sees that images made for another VNFD take the place of the old ones.
func TestNewImage(t *testing.T) {
	in := sample(t, "workers")
	in.Images = map[string]string{"disk": "old"}
	in.Parameters = translate(t, in).Parameters
	in.Images = map[string]string{"disk": "new"}
	if got := nodesOf(translate(t, in).Parameters)["disk"]["image"]; got != "new" {
		t.Errorf("the image is %v", got)
	}
}

// TestWarnings sees that what is left out is said.
func TestWarnings(t *testing.T) {
	in := sample(t, "router")
	in.Request.ExtVirtualLinks = append(in.Request.ExtVirtualLinks, sol003.ExtVirtualLinkData{
		Id: "other", ResourceId: "net1", ExtCps: []sol003.VnfExtCpData{{CpdId: "none"}},
	})
	in.Flavour.CPs = append(in.Flavour.CPs, vnfd.CP{Name: "loose"})
	in.Flavour.Aspects = []vnfd.ScalingAspect{{ID: "links", MaxLevel: 1}}
	in.Flavour.Affinity = []vnfd.AffinityRule{{Name: "rule", Scope: "nfvi_node", Targets: []string{"lan"}}}
	in.Flavour.VirtualLinks = append(in.Flavour.VirtualLinks, vnfd.VirtualLink{Name: "plain"})
	got := strings.Join(translate(t, in).Warnings, "\n")
	for _, want := range []string{"extCps none", "connection point loose", "aspect links", "target lan", "virtual link plain"} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing is said of %q in:\n%s", want, got)
		}
	}
}

// TestLinkPort sees that a port that is there is used as it is, and that the only instance has all that is said of it.
func TestLinkPort(t *testing.T) {
	in := sample(t, "router")
	in.Request.ExtVirtualLinks[0].ExtLinkPorts = []sol003.ExtLinkPortData{{Id: "lp", ResourceHandle: sol003.ResourceHandle{ResourceId: "PORT"}}}
	configs := &in.Request.ExtVirtualLinks[0].ExtCps[0].CpConfig
	*configs = append(*configs, sol003.VnfExtCpConfig{LinkPortId: "lp"})
	out := translate(t, in)
	top, err := hot.ParseText(out.Top)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"port": "PORT"}, map[string]any{"port": map[string]any{"get_resource": "inside"}}}
	if diff := cmp.Diff(any(want), top.Resources["router"].Properties["networks"]); diff != "" || top.Resources["outside"] != nil {
		t.Errorf("the port is not used, or another is made: %s", diff)
	}
	if len(out.Warnings) != 1 {
		t.Errorf("of the addresses that come to nothing is said: %q", out.Warnings)
	}
}

// TestNoPorts sees that a server without connection points gets no network by chance.
func TestNoPorts(t *testing.T) {
	in := sample(t, "router")
	in.Flavour.CPs, in.Request.ExtVirtualLinks = nil, nil
	if top := translate(t, in).Top; !strings.Contains(top, "- allocate_network: none") {
		t.Error(top)
	}
}

func TestErrors(t *testing.T) {
	cps := func(links ...sol003.ExtVirtualLinkData) func(*Input) {
		return func(in *Input) { in.Request.ExtVirtualLinks = links }
	}
	eth := func(e sol003.IpOverEthernetAddressData) []sol003.VnfExtCpConfig {
		return []sol003.VnfExtCpConfig{{CpProtocolData: []sol003.CpProtocolData{{IpOverEthernet: &e}}}}
	}
	link := func(cp string, config []sol003.VnfExtCpConfig) sol003.ExtVirtualLinkData {
		return sol003.ExtVirtualLinkData{Id: "ext", ResourceId: "net0", ExtCps: []sol003.VnfExtCpData{{CpdId: cp, CpConfig: config}}}
	}
	vdu := func(change func(v *vnfd.VDU)) func(*Input) { return func(in *Input) { change(&in.Flavour.VDUs[0]) } }
	fixed := sol003.IpOverEthernetAddressData{IpAddresses: []sol003.IpAddressData{{FixedAddresses: []string{"10.0.0.1"}}}}
	for _, tt := range []struct {
		name, of string
		change   func(*Input)
		kind     lcm.Kind
		want     []string
	}{
		{"no link", "router", cps(), lcm.KindTerminal, []string{"Definitions/router.yaml", "connection point outside", "extVirtualLinks"}},
		{"scaled fixed address", "workers", cps(link("worker_CP2", eth(fixed))), lcm.KindTerminal,
			[]string{"worker_CP2", "Scaling resource cannot be set to fixed ip_address or mac_address."}},
		{"scaled mac", "workers", cps(link("worker_CP2", eth(sol003.IpOverEthernetAddressData{MacAddress: "00:00:00:00:00:01"}))), lcm.KindTerminal,
			[]string{"worker_CP2", "Scaling resource cannot be set to fixed ip_address or mac_address."}},
		{"shared address", "pair", cps(link("port", eth(fixed))), lcm.KindTerminal, []string{"extCps port", "a cpConfig of its own"}},
		{"bad address", "router", cps(link("outside", eth(sol003.IpOverEthernetAddressData{IpAddresses: []sol003.IpAddressData{{FixedAddresses: []string{"ten"}}}}))),
			lcm.KindTerminal, []string{"extVirtualLinks ext", "outside", `"ten"`}},
		{"address range", "router", cps(link("outside", eth(sol003.IpOverEthernetAddressData{IpAddresses: []sol003.IpAddressData{{
			AddressRange: sol003.IpAddressRange{MinAddress: "10.0.0.1", MaxAddress: "10.0.0.9"}}}}))), lcm.KindTerminal, []string{"addressRange"}},
		{"too many addresses", "router", cps(link("outside", eth(sol003.IpOverEthernetAddressData{IpAddresses: []sol003.IpAddressData{{
			NumDynamicAddresses: 1 << 30, SubnetId: "s"}}}))), lcm.KindTerminal, []string{"outside", "101 addresses"}},
		{"two macs", "router", cps(link("outside", append(eth(sol003.IpOverEthernetAddressData{MacAddress: "00:00:00:00:00:01"}),
			eth(sol003.IpOverEthernetAddressData{MacAddress: "00:00:00:00:00:02"})...))), lcm.KindTerminal, []string{"two macAddresses"}},
		{"unknown link port", "router", cps(link("outside", []sol003.VnfExtCpConfig{{LinkPortId: "lp"}})), lcm.KindTerminal, []string{"outside", "linkPortId", `"lp"`}},
		{"no network", "router", cps(sol003.ExtVirtualLinkData{Id: "ext", ExtCps: []sol003.VnfExtCpData{{CpdId: "outside"}}}), lcm.KindTerminal, []string{"resourceId", "outside"}},
		{"unknown managed link", "pair", func(in *Input) { in.Request.ExtManagedVirtualLinks[0].VnfVirtualLinkDescId = "other" }, lcm.KindTerminal,
			[]string{"extManagedVirtualLinks m", `"other"`}},
		{"unknown level", "workers", func(in *Input) { in.Request.InstantiationLevelId = "huge" }, lcm.KindTerminal, []string{"instantiationLevelId", `"huge"`}},
		{"no memory", "router", vdu(func(v *vnfd.VDU) { v.RAM = 0 }), lcm.KindTerminal, []string{"VDU router", "virtual_mem_size"}},
		{"no cpu", "router", vdu(func(v *vnfd.VDU) { v.VCPUs = 0 }), lcm.KindTerminal, []string{"VDU router", "num_virtual_cpu"}},
		{"nothing to boot", "router", vdu(func(v *vnfd.VDU) { v.SoftwareImage = nil }), lcm.KindTerminal, []string{"VDU router", "boot from"}},
		{"unnamed image", "router", vdu(func(v *vnfd.VDU) { v.SoftwareImage.Name = "" }), lcm.KindTerminal, []string{"node router", "sw_image_data"}},
		{"storage twice", "router", vdu(func(v *vnfd.VDU) { v.Storages = append(v.Storages, "state") }), lcm.KindUnsupported, []string{"VDU router", "state twice"}},
		{"no storage", "router", vdu(func(v *vnfd.VDU) { v.Storages = []string{"outside"} }), lcm.KindTerminal, []string{"virtual_storage", "outside"}},
		{"no size", "router", func(in *Input) { in.Flavour.Storages[0].Size = 0 }, lcm.KindTerminal, []string{"storage state", "size_of_storage"}},
		{"bad input", "inputs", func(in *Input) { in.Request.AdditionalParams["memory"] = "much" }, lcm.KindTerminal, []string{"VDU node", "virtual_mem_size", "much"}},
		{"bad count", "inputs", func(in *Input) { in.Request.AdditionalParams["cpus"] = 1.5 }, lcm.KindTerminal, []string{"VDU node", "num_virtual_cpu", "1.5"}},
		{"bad range", "inputs", func(in *Input) { in.Request.AdditionalParams["range"] = "all" }, lcm.KindTerminal, []string{"virtual link link", "cidr", `"all"`}},
		{"wrong version", "inputs", func(in *Input) { in.Request.AdditionalParams["range"] = "fd00::/64" }, lcm.KindTerminal, []string{"virtual link link", "ip_version"}},
		{"gateway outside", "router", func(in *Input) { in.Flavour.Dict = nil; in.Flavour.VirtualLinks[0].Gateway = "10.0.0.1" }, lcm.KindTerminal, []string{"lan", "gateway_ip"}},
		{"boot data too large", "inputs", func(in *Input) {
			in.Package = fstest.MapFS{"Files/setup.sh": {Data: []byte(strings.Repeat("x", 70000))}}
		}, lcm.KindTerminal, []string{"VDU node", "boot_data", "larger"}},
		{"boot data no text", "inputs", func(in *Input) { in.Package = fstest.MapFS{"Files/setup.sh": {Data: []byte{0xff}}} }, lcm.KindTerminal, []string{"boot_data", "UTF-8"}},
		{"unknown zone", "granted", func(in *Input) {
			in.Grant, in.Zones = &lcm.Grant{VDUZones: map[string]string{"a": "moon"}}, []string{"nova"}
		}, lcm.KindTerminal, []string{"VDU a", `"moon"`}},
		{"uneven steps", "cells", func(in *Input) { in.Flavour.Aspects[0].VDUs[1].Deltas[1].Instances = 3 }, lcm.KindUnsupported, []string{"scaling aspect cell", "ratio"}},
		{"too few initially", "cells", vduOf("back", func(v *vnfd.VDU) { v.InitialInstances = new(int) }), lcm.KindUnsupported, []string{"scaling aspect cell", "back"}},
		{"no initial delta", "cells", vduOf("back", func(v *vnfd.VDU) { v.InitialInstances = nil }), lcm.KindUnsupported, []string{"cell", "back"}},
		{"missing delta", "cells", func(in *Input) { in.Flavour.Aspects[0].VDUs[0].Deltas[1].ID = "three" }, lcm.KindTerminal, []string{"scaling aspect", `"two"`}},
		{"unknown VDU", "cells", func(in *Input) { in.Flavour.Aspects[0].VDUs[0].VDU = "none" }, lcm.KindTerminal, []string{"scaling aspect cell", "none"}},
		{"two server groups", "cells", func(in *Input) {
			in.Flavour.Affinity = append(in.Flavour.Affinity, vnfd.AffinityRule{Name: "more", Anti: true, Scope: "nfvi_node", Targets: []string{"back"}})
		}, lcm.KindUnsupported, []string{"policy more", "VDU back"}},
		{"aspect named like a link", "cells", func(in *Input) { in.Flavour.VirtualLinks[0].Name = "cell" }, lcm.KindTerminal, []string{"virtual link cell", "scaling aspect cell"}},
		{"name with a slash", "cells", vdu(func(v *vnfd.VDU) { v.Name = "a/b" }), lcm.KindTerminal, nil},
		{"too many", "pair", vdu(func(v *vnfd.VDU) { *v.InitialInstances = 1000 }), lcm.KindUnsupported, []string{"Definitions/pair.yaml", "200"}},
		{"no link node", "inputs", func(in *Input) { in.Flavour.CPs[0].VirtualLink = "data" }, lcm.KindTerminal, []string{"connection point port", "data"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := sample(t, tt.of)
			tt.change(&in)
			_, err := Translate(in)
			if !lcm.Is(err, tt.kind) {
				t.Fatalf("%v (%s), want %s", err, lcm.KindOf(err), tt.kind)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not name %q", err, want)
				}
			}
		})
	}
	if _, err := Translate(Input{}); !lcm.Is(err, lcm.KindInternal) {
		t.Errorf("no flavour: %v", err)
	}
}

func vduOf(name string, change func(v *vnfd.VDU)) func(*Input) {
	return func(in *Input) {
		change(&in.Flavour.VDUs[slices.IndexFunc(in.Flavour.VDUs, func(v vnfd.VDU) bool { return v.Name == name })])
	}
}
