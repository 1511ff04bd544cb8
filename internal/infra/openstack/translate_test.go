package openstack

import (
	"bytes"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// translatedVNF is an instance of the package translated.
func translatedVNF(l *lab) *vnf {
	l.Helper()
	fsys := os.DirFS("testdata/packages/translated")
	return newVNF(l, fsys, ownPackage(l.T, fsys, "Definitions/vnfd.yaml"), unscripted("simple", "gate_CP1"))
}

// kept returns what the stack's parameters say of the nodes.
func (v *vnf) kept() map[string]any {
	v.Helper()
	s, err := loadInfra(v.now)
	v.ok(err)
	params, err := s.parameters()
	v.ok(err)
	return section(params, "VDU")
}

// flavors returns the flavors of a VDU's servers, each once.
func (v *vnf) flavors(vdu string) map[string]bool {
	out, servers := map[string]bool{}, byID(v.sim.Cloud.State().Servers)
	for _, id := range v.servers(vdu) {
		out[text(servers[id]["flavor"].(map[string]any), "id")] = true
	}
	return out
}

// TestTranslatedChoices sees what is chosen for a new stack: the VIM's flavors that the VNFD names, flavors of its own, images
// that the package brings, and what is granted; and that it stays so through what does not choose anew.
func TestTranslatedChoices(t *testing.T) {
	l := newLab(t, vimsim.Config{Hosts: []string{"a@nova", "b@far"}}, Config{})
	v := translatedVNF(l)
	v.grant = &lcm.Grant{Flavours: map[string]string{"gate": "3"}, VDUZones: map[string]string{"gate": "far"}}
	v.ok(v.instantiate())
	v.same("instantiated")
	image := func(node string) string {
		s, err := loadInfra(v.now)
		v.ok(err)
		for _, i := range s.Images {
			if i.Node == node {
				return i.ID
			}
		}
		return "none"
	}
	want := func() map[string]any {
		return map[string]any{
			"gate": map[string]any{"flavor": "3", "zone": "far"}, "worker": map[string]any{"flavor": "1", "image": image("worker")},
			"silent": map[string]any{"image": image("silent")}, "disk": map[string]any{"image": image("disk")},
		}
	}
	if diff := cmp.Diff(want(), v.kept()); diff != "" {
		t.Error(diff)
	}
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "night", 1, nil))
	v.ok(v.heal(firstOf(v, "gate")))
	v.ok(v.changeExtConn("net1"))
	v.same("changed")
	if diff := cmp.Diff(want(), v.kept()); diff != "" {
		t.Errorf("what was chosen has changed: %s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"3": true}, v.flavors("gate")); diff != "" {
		t.Error(diff)
	}
	for _, s := range l.sim.Cloud.State().Servers {
		if s["name"] == "gate" && s["OS-EXT-AZ:availability_zone"] != "far" {
			t.Errorf("a gate is in zone %v", s["OS-EXT-AZ:availability_zone"])
		}
	}
	v.grant = &lcm.Grant{Flavours: map[string]string{"gate": "2"}}
	v.ok(v.heal())
	v.same("healed")
	if diff := cmp.Diff(map[string]bool{"2": true}, v.flavors("gate")); diff != "" {
		t.Error(diff)
	}
	if n := v.counts()["worker"]; n != 5 {
		t.Errorf("%d workers after the heal, of two aspects", n)
	}
	v.terminateAll()
}

// TestGrantOfScaling: new members where there are none follow the grant, those beside others do not, and that is said.
func TestGrantOfScaling(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	v := translatedVNF(l)
	v.ok(v.instantiate())
	var said bytes.Buffer
	grant := func(flavor string) {
		v.grant = &lcm.Grant{
			Flavours: map[string]string{"silent": flavor, "worker": flavor},
			VDUZones: map[string]string{"worker": "nova"}, Images: map[string]string{"worker": "other"},
		}
		v.log = slog.New(slog.NewTextHandler(&said, nil))
	}
	grant("2")
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "watch", 1, nil))
	if diff := cmp.Diff(map[string]bool{"2": true}, v.flavors("silent")); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(said.String(), "not followed") {
		t.Errorf("said: %s", said.String())
	}
	grant("3")
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "watch", 1, nil))
	if diff := cmp.Diff(map[string]bool{"2": true}, v.flavors("silent")); diff != "" {
		t.Error(diff)
	}
	note := func(vdu string, want map[any]int) { // how many VNFCs of a VDU say what of their grant
		t.Helper()
		got := map[any]int{}
		for _, vnfc := range v.now.Info.VnfcResourceInfo {
			if vnfc.VduId == vdu {
				got[vnfc.Metadata[unheededKey]]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what VNFCs of VDU %s say of their grant (-want +got):\n%s", vdu, diff)
		}
	}
	note("silent", map[any]int{nil: 1, "flavor 3 of silent": 1})
	if got := said.String(); !strings.Contains(got, "is not followed") || !strings.Contains(got, "flavor 3 of silent") || strings.Contains(got, "worker") {
		t.Errorf("said: %s", said.String())
	}
	said.Reset()
	grant("3")
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "day", 1, nil))
	for _, what := range []string{"flavor 3 of worker", "image other of worker", "zone nova of worker"} {
		if !strings.Contains(said.String(), what) {
			t.Errorf("%q is not in: %s", what, said.String())
		}
	}
	if v.flavors("worker")["3"] {
		t.Error("a worker follows the grant")
	}
	note("worker", map[any]int{nil: len(v.servers("worker")) - 1, "flavor 3 of worker, image other of worker": 1}) // it is in the zone
	v.same("scaled")
}

// TestGrantNoted: what a new member is not made by is told of it until it is made again as granted.
func TestGrantNoted(t *testing.T) {
	l := newLab(t, vimsim.Config{Hosts: []string{"a@near", "b@near", "c@near", "d@far"}}, Config{})
	v := translatedVNF(l)
	v.grant = &lcm.Grant{VDUZones: map[string]string{"worker": "near"}}
	v.ok(v.instantiate())
	noted := func(want string) (of string) {
		t.Helper()
		for _, vnfc := range v.now.Info.VnfcResourceInfo {
			if said := vnfc.Metadata[unheededKey]; said != nil {
				if of != "" || said != want {
					t.Errorf("VNFC %s says of its grant %v, want %q of one only", vnfc.Id, said, want)
				}
				of = vnfc.Id
			}
		}
		if (of == "") != (want == "") {
			t.Errorf("VNFC %q says what of its grant is not followed, want it to be %q", of, want)
		}
		return of
	}
	noted("")
	before := v.servers("worker")
	v.grant = &lcm.Grant{VDUZones: map[string]string{"worker": "far"}}
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "day", 1, nil))
	fresh := noted("zone far of worker")
	if now := v.servers("worker"); len(now) != len(before)+1 {
		t.Errorf("there were %d workers, and are %d", len(before), len(now))
	}
	servers := byID(v.sim.Cloud.State().Servers)
	for vnfc, id := range before {
		if v.servers("worker")[vnfc] != id || servers[id]["OS-EXT-AZ:availability_zone"] != "near" {
			t.Errorf("server %s of VNFC %s has changed", id, vnfc)
		}
	}
	v.grant = &lcm.Grant{VDUZones: map[string]string{"worker": "near"}}
	v.ok(v.heal(fresh))
	noted("")
	v.same("healed")
	v.terminateAll()
}

// TestGrantBesideOthers: a group is empty and another has servers of its VDU, which a grant must not change.
func TestGrantBesideOthers(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	v := translatedVNF(l)
	v.ok(v.instantiate())
	v.ok(v.scale(sol003.ScaleVnfRequestTypeIn, "night", 1, nil))
	v.same("scaled in")
	before := v.servers("worker")
	v.grant = &lcm.Grant{Flavours: map[string]string{"worker": "3"}}
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "night", 1, nil))
	v.same("scaled out")
	now := v.servers("worker")
	maps.DeleteFunc(now, func(id, _ string) bool { return before[id] == "" })
	if diff := cmp.Diff(before, now); diff != "" || v.flavors("worker")["3"] {
		t.Errorf("the flavors are %v, the servers: %s", v.flavors("worker"), diff)
	}
}

// TestLinkPort connects a server to a port that somebody else has made, and back to one of the network.
func TestLinkPort(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	c, err := l.driver.connect(t.Context(), l.target)
	if err != nil {
		t.Fatal(err)
	}
	neutron, err := c.service(t.Context(), "network", openstack.NewNetworkV2)
	if err != nil {
		t.Fatal(err)
	}
	var nets struct{ Networks []struct{ ID string } }
	var made struct{ Port struct{ ID string } }
	_, err = c.exchange(t.Context(), neutron, "list", http.MethodGet, nil, &nets, []int{200}, []string{"networks?name=net1"})
	if err != nil || len(nets.Networks) != 1 {
		t.Fatalf("%v %v", nets, err)
	}
	body := map[string]any{"port": map[string]any{"network_id": nets.Networks[0].ID}}
	if _, err := c.exchange(t.Context(), neutron, "create", http.MethodPost, body, &made, []int{201}, []string{"ports"}); err != nil {
		t.Fatal(err)
	}
	fsys := filesOf(t, "toscahot/testdata/vnfds", "Definitions")
	req := unscripted("simple", "outside")
	req.ExtVirtualLinks[0].ResourceId = "net1"
	handle := sol003.ResourceHandle{ResourceId: made.Port.ID, VimConnectionId: l.target.ID}
	req.ExtVirtualLinks[0].ExtLinkPorts = []sol003.ExtLinkPortData{{Id: "theirs", ResourceHandle: handle}}
	req.ExtVirtualLinks[0].ExtCps[0].CpConfig[0].LinkPortId = "theirs"
	v := newVNF(l, fsys, ownPackage(t, fsys, "Definitions/router.yaml"), req)
	l.bring(v.flavour)
	v.ok(v.instantiate())
	v.same("instantiated")
	v.ok(v.heal(firstOf(v, "router")))
	v.same("one healed")
	if device := byID(l.sim.Cloud.State().Ports)[made.Port.ID]["device_id"]; device != v.servers("router")[firstOf(v, "router")] {
		t.Errorf("the port is at %v", device)
	}
	v.terminateAll()
	if byID(l.sim.Cloud.State().Ports)[made.Port.ID] == nil {
		t.Error("the port of somebody else is gone")
	}
}

// TestFlavorsNamed reads the flavors page by page.
func TestFlavorsNamed(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	c, err := l.driver.connect(t.Context(), l.target)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 2, flavorsPage} {
		got, err := c.flavorsNamed(t.Context(), map[string]bool{"m1.tiny": true, "m1.medium": true, "no such": true}, limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"m1.tiny": "1", "m1.medium": "3"}, got); diff != "" {
			t.Errorf("%d at a time: %s", limit, diff)
		}
	}
}

// TestRollbackTakenOver has the record of the rollback's request lost: the update that is under way is gone on with.
func TestRollbackTakenOver(t *testing.T) {
	for name, req := range modes {
		t.Run(name, func(t *testing.T) {
			v := runningAs(t, Config{}, req())
			v.fail, v.failAfter = "inventory", false // the group is at rest by then
			if err := v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil); err == nil {
				t.Fatal("it did not fail")
			}
			id := v.sim.Cloud.AddFault(vimsim.Fault{
				ResourceType: "OS::Nova::Server", Action: "delete", Effect: vimsim.EffectHang, Delay: vimsim.Duration(200 * time.Millisecond),
			})
			v.lose = true
			v.ok(v.rollback())
			v.sim.Cloud.RemoveFault(id)
			v.same("rolled back")
			updates, cancels := v.requests("heat", http.MethodPut, v.stackID()), v.requests("heat", http.MethodPost, "/actions")
			if updates != 1 || cancels != 0 {
				t.Errorf("%d updates, %d cancelled", updates, cancels)
			}
		})
	}
}

// TestHealedFlavor heals by VNFDs that name other flavors: one that the VIM has, and one that it has not.
func TestHealedFlavor(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	v := translatedVNF(l)
	v.grant = &lcm.Grant{VDUZones: map[string]string{"worker": "nova"}}
	v.ok(v.instantiate())
	fsys := os.DirFS("testdata/packages/translated")
	raw, err := fs.ReadFile(fsys, "Definitions/vnfd.yaml")
	v.ok(err)
	for _, tt := range []struct {
		name string
		want any
	}{{"m1.small", "2"}, {"made to measure", nil}, {"m1.tiny", "1"}} {
		v.fsys = overlay(t, fsys, map[string]string{"Definitions/vnfd.yaml": strings.Replace(string(raw), "m1.tiny", tt.name, 1)})
		v.d, v.now.VnfdID = ownPackage(t, v.fsys, "Definitions/vnfd.yaml"), tt.name
		v.flavour, _ = v.d.Flavour("simple")
		gates := v.servers("gate")
		v.grant = &lcm.Grant{Flavours: map[string]string{"gate": "3"}}
		v.ok(v.heal(firstOf(v, "worker")))
		v.same("healed by " + tt.name)
		worker, _ := v.kept()["worker"].(map[string]any)
		if worker["flavor"] != tt.want || worker["zone"] != "nova" {
			t.Errorf("%s: %v", tt.name, worker)
		}
		if diff := cmp.Diff(gates, v.servers("gate")); diff != "" || v.flavors("gate")["3"] {
			t.Errorf("%s: the gates have changed: %s", tt.name, diff)
		}
		if got := v.flavors("worker"); len(got) != 1 || tt.want != nil && !got[tt.want.(string)] {
			t.Errorf("%s: the workers have %v", tt.name, got)
		}
	}
	v.terminateAll()
}
