package openstack

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/gophercloud/gophercloud/v2"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// verify compares the instance with the VIM.
func (v *vnf) verify() []lcm.Difference {
	v.Helper()
	f, ok := v.d.Flavour(v.now.Info.FlavourId)
	if !ok {
		v.Fatalf("no flavour %s", v.now.Info.FlavourId)
	}
	before := v.now.Clone()
	out, err := v.driver.Verify(v.Context(), &lcm.Inspection{Instance: v.now, Target: v.target, Flavour: f})
	v.ok(err)
	if d := cmp.Diff(before, v.now, cmpopts.EquateEmpty()); d != "" {
		v.Errorf("a verification has changed the instance: %s", d)
	}
	return out
}

// unchanged fails the test when the instance is not what is recorded of it.
func (v *vnf) unchanged(what string) {
	v.Helper()
	for _, d := range v.verify() {
		v.Errorf("%s: %s of %s %s: recorded %s, found %s; mended by %s", what, d.Kind, d.Part, d.Name, d.Recorded, d.Found, d.Mend)
	}
}

// short is what a difference comes to, by kind, part and name.
func short(list []lcm.Difference) []string {
	out := make([]string, len(list))
	for n, d := range list {
		out[n] = string(d.Kind) + " " + string(d.Part)
		if d.Name != "" {
			out[n] += " " + d.Name
		}
	}
	return out
}

// mend does what the differences name.
func (v *vnf) mend(list []lcm.Difference) {
	v.Helper()
	var ids []string
	for _, d := range list {
		if d.Mend.Operation != sol003.LcmOperationTypeHeal {
			v.Fatalf("%s %s is not mended by a heal: %s", d.Kind, d.Part, d.Mend)
		}
		if len(d.Mend.VnfcInstanceIDs) == 0 {
			v.ok(v.heal())
			return
		}
		ids = append(ids, d.Mend.VnfcInstanceIDs...)
	}
	slices.Sort(ids)
	v.ok(v.heal(slices.Compact(ids)...))
}

// handles returns a VNFC's volume and the port of one of its connection points.
func (v *vnf) handles(vnfcID, cpd string) (volume, port string) {
	v.Helper()
	for _, c := range v.now.Info.VnfcResourceInfo {
		if c.Id != vnfcID {
			continue
		}
		for _, s := range v.now.Info.VirtualStorageResourceInfo {
			if slices.Contains(c.StorageResourceIds, s.Id) {
				volume = s.StorageResource.ResourceId
			}
		}
		for _, cp := range c.VnfcCpInfo {
			for _, vl := range v.now.Info.VnfVirtualLinkResourceInfo {
				for _, p := range vl.VnfLinkPorts {
					if cp.CpdId == cpd && p.Id == cp.VnfLinkPortId {
						port = p.ResourceHandle.ResourceId
					}
				}
			}
		}
	}
	return volume, port
}

// outOfBand is somebody else at the VIM.
type outOfBand struct {
	*vnf
	c *cloud
}

func somebodyElse(v *vnf) outOfBand {
	v.Helper()
	c, err := v.driver.connect(v.Context(), v.target)
	v.ok(err)
	return outOfBand{v, c}
}

// to makes a call to nova, neutron, cinder or heat.
func (o outOfBand) to(service, method string, body any, path ...string) {
	o.Helper()
	open, ok := map[string]func(context.Context) (*gophercloud.ServiceClient, error){"nova": o.c.nova, "neutron": o.c.neutron, "cinder": o.c.cinder, "heat": o.c.heat}[service]
	if !ok {
		o.Fatalf("no service %s", service)
	}
	client, err := open(o.Context())
	o.ok(err)
	_, err = o.c.exchange(o.Context(), client, method, method, body, nil, []int{200, 201, 202, 204}, path)
	o.ok(err)
}

// settled waits until Heat has done what it was asked for.
func (o outOfBand) settled() {
	o.Helper()
	for {
		s, err := o.c.stack(o.Context(), stackName(o.now.ID), o.stackID())
		o.ok(err)
		if s == nil || !strings.HasSuffix(s.Status, "_IN_PROGRESS") {
			return
		}
		select {
		case <-o.Context().Done():
			o.Fatal("Heat does not come to an end")
		case <-time.After(time.Millisecond):
		}
	}
}

// sized has the template that Heat has tell how many members there are: somebody else's updates go by it.
func (o outOfBand) sized() {
	o.Helper()
	o.ok(o.heal(firstOf(o.vnf, "VDU2")))
}

// replace has Heat make a server of VDU2 anew.
func (o outOfBand) replace() {
	o.Helper()
	o.ok(o.c.markUnhealthy(o.Context(), o.inHeat(o.servers("VDU2")[firstOf(o.vnf, "VDU2")]), "an alarm"))
	o.to("heat", http.MethodPatch, map[string]any{"existing": true}, "stacks", stackName(o.now.ID), o.stackID())
	o.settled()
}

// seen returns the differences once there are some and nobody is at anything.
func (o outOfBand) seen() []lcm.Difference {
	o.Helper()
	for {
		found := o.verify()
		if len(found) > 0 && found[0].Kind != lcm.DifferenceBusy {
			return found
		}
		select {
		case <-o.Context().Done():
			o.Fatalf("nothing is seen: %+v", found)
		case <-time.After(time.Millisecond):
		}
	}
}

// inHeat returns the resource that Heat has of something.
func (o outOfBand) inHeat(id string) *resource {
	o.Helper()
	list, err := o.c.resources(o.Context(), stackName(o.now.ID), o.stackID())
	o.ok(err)
	for n := range list {
		if list[n].ID == id {
			return &list[n]
		}
	}
	o.Fatalf("Heat has no %s", id)
	return nil
}

// drifts are what somebody else does to an instance of the package functional, what is seen of it, and what is done before
// the heal that mends it.
var drifts = map[string]struct {
	do    func(o outOfBand, sick string) // to a VNFC of VDU1
	want  []string
	found string // in the first difference
	first func(o outOfBand, sick string)
}{
	"a server is deleted": {
		func(o outOfBand, sick string) {
			o.to("nova", http.MethodDelete, nil, "servers", o.servers("VDU1")[sick])
		},
		[]string{"MISSING VNFC VDU1"}, "no such server", nil,
	},
	"a server is stopped": {
		func(o outOfBand, sick string) {
			o.to("nova", http.MethodPost, map[string]any{"os-stop": nil}, "servers", o.servers("VDU1")[sick], "action")
		},
		[]string{"STATE VNFC VDU1"}, "the server is SHUTOFF", nil,
	},
	"a server breaks": {
		func(o outOfBand, sick string) {
			o.to("nova", http.MethodPost, map[string]any{"os-resetState": map[string]any{"state": "error"}}, "servers", o.servers("VDU1")[sick], "action")
		},
		[]string{"FAILED VNFC VDU1"}, "the server is ERROR", nil,
	},
	"a server is marked as unhealthy": {
		func(o outOfBand, sick string) {
			o.ok(o.c.markUnhealthy(o.Context(), o.inHeat(o.servers("VDU1")[sick]), "an alarm"))
		},
		[]string{"FAILED VNFC VDU1"}, "Heat has it as CHECK_FAILED: an alarm", nil,
	},
	"a server is replaced": {
		func(o outOfBand, _ string) {
			o.sized()
			o.replace()
		},
		[]string{"CHANGED VNFC VDU2"}, "server ", nil,
	},
	"a port is deleted": {
		func(o outOfBand, sick string) {
			_, port := o.handles(sick, "VDU1_CP1")
			o.to("neutron", http.MethodDelete, nil, "ports", port)
		},
		[]string{"MISSING PORT VDU1_CP1"}, "no such port", nil,
	},
	"a port is detached": {
		func(o outOfBand, sick string) {
			_, port := o.handles(sick, "VDU1_CP1")
			o.to("neutron", http.MethodPut, map[string]any{"port": map[string]any{"device_id": ""}}, "ports", port)
		},
		[]string{"CHANGED PORT VDU1_CP1"}, "the port is at no server", nil,
	},
	"a port is at another server": {
		func(o outOfBand, sick string) {
			_, port := o.handles(sick, "VDU1_CP1")
			o.to("neutron", http.MethodPut, map[string]any{"port": map[string]any{"device_id": o.servers("VDU2")[firstOf(o.vnf, "VDU2")]}}, "ports", port)
		},
		[]string{"CHANGED PORT VDU1_CP1"}, "the port is at ",
		func(o outOfBand, sick string) {
			_, port := o.handles(sick, "VDU1_CP1")
			o.to("neutron", http.MethodPut, map[string]any{"port": map[string]any{"device_id": ""}}, "ports", port)
		},
	},
	"a server and its volume are deleted": {
		func(o outOfBand, sick string) {
			volume, _ := o.handles(sick, "")
			o.to("nova", http.MethodDelete, nil, "servers", o.servers("VDU1")[sick])
			o.to("cinder", http.MethodDelete, nil, "volumes", volume)
		},
		[]string{"MISSING VNFC VDU1", "MISSING STORAGE VirtualStorage"}, "no such server", nil,
	},
	"a member goes": {
		func(o outOfBand, _ string) {
			top, err := o.c.stack(o.Context(), stackName(o.now.ID), o.stackID())
			o.ok(err)
			o.ok(o.c.signal(o.Context(), top, "VDU1_scale_in"))
			o.settled()
		},
		[]string{
			"MISSING VNFC VDU1", "MISSING STORAGE VirtualStorage", "MISSING PORT VDU1_CP1", "MISSING PORT VDU1_CP2", "MISSING PORT VDU1_CP3",
			"MISSING PORT VDU1_CP4", "MISSING PORT VDU1_CP5",
		}, "no such server", nil,
	},
	"a member comes": {
		func(o outOfBand, _ string) {
			top, err := o.c.stack(o.Context(), stackName(o.now.ID), o.stackID())
			o.ok(err)
			o.ok(o.c.signal(o.Context(), top, "VDU1_scale_out"))
			o.settled()
		},
		[]string{"UNRECORDED VNFC VDU1"}, "server ", nil,
	},
	"an update fails": {
		func(o outOfBand, _ string) {
			o.sized()
			id := o.sim.Cloud.AddFault(vimsim.Fault{ResourceType: serverType, Action: "create", Effect: vimsim.EffectFail})
			o.replace()
			o.sim.Cloud.RemoveFault(id)
		},
		[]string{"FAILED VNF", "FAILED VNFC VDU2"}, "the stack is UPDATE_FAILED", nil,
	},
	"a check finds a server gone": {
		func(o outOfBand, sick string) {
			o.to("nova", http.MethodDelete, nil, "servers", o.servers("VDU1")[sick])
			o.to("heat", http.MethodPost, map[string]any{"check": nil}, "stacks", stackName(o.now.ID), o.stackID(), "actions")
			o.settled()
		},
		[]string{"FAILED VNF", "MISSING VNFC VDU1"}, "the stack is CHECK_FAILED", nil,
	},
	"the stack is suspended": {
		func(o outOfBand, _ string) {
			o.to("heat", http.MethodPost, map[string]any{"suspend": nil}, "stacks", stackName(o.now.ID), o.stackID(), "actions")
			o.settled()
		},
		[]string{"STATE VNF"}, "the stack is SUSPEND_COMPLETE", nil,
	},
	"the stack is deleted": {
		func(o outOfBand, _ string) {
			o.to("heat", http.MethodDelete, nil, "stacks", stackName(o.now.ID), o.stackID())
			o.settled()
		},
		[]string{"MISSING VNF"}, "the stack has been deleted", nil,
	},
}

// TestVerify has somebody else change what there is: it is seen, and what the differences name mends it.
func TestVerify(t *testing.T) {
	for mode, request := range modes {
		for name, drift := range drifts {
			t.Run(mode+", "+name, func(t *testing.T) {
				t.Parallel()
				v := runningAs(t, Config{}, request())
				o := somebodyElse(v)
				sick := firstOf(v, "VDU1")
				drift.do(o, sick)
				found := o.seen()
				if diff := cmp.Diff(drift.want, short(found)); diff != "" {
					t.Fatalf("%s\n%+v", diff, found)
				}
				if !strings.Contains(found[0].Found, drift.found) {
					t.Errorf("found %q, not %q", found[0].Found, drift.found)
				}
				for _, d := range found {
					if d.Resource == nil || d.Resource.ResourceId == "" || d.Resource.VimLevelResourceType == "" || d.Mend.String() == "" {
						t.Errorf("%+v", d)
					}
				}
				if name == "a server is stopped" {
					if want := "start server " + o.servers("VDU1")[sick]; found[0].Mend.String() != want {
						t.Errorf("mended by %q, not %q", found[0].Mend, want)
					}
					o.to("nova", http.MethodPost, map[string]any{"os-start": nil}, "servers", o.servers("VDU1")[sick], "action")
					v.unchanged("started")
					return
				}
				if found[0].Mend.Operation == "" { // the stack is to be resumed
					o.to("heat", http.MethodPost, map[string]any{"resume": nil}, "stacks", stackName(v.now.ID), v.stackID(), "actions")
					o.settled()
					v.unchanged("resumed")
					return
				}
				if (found[0].Mend.First != "") != (drift.first != nil) {
					t.Errorf("what is to be done first: %q", found[0].Mend.First)
				}
				if drift.first != nil {
					drift.first(o, sick)
				}
				v.mend(found)
				v.same("mended")
				v.terminateAll()
			})
		}
	}
}

// TestVerifyState compares what runs with what is recorded to be stopped.
func TestVerifyState(t *testing.T) {
	v := running(t, Config{})
	v.ok(v.operate(sol003.VnfOperationalStateStopped))
	v.unchanged("stopped")
	o := somebodyElse(v)
	sick := firstOf(v, "VDU2")
	o.to("nova", http.MethodPost, map[string]any{"os-start": nil}, "servers", v.servers("VDU2")[sick], "action")
	found := v.verify()
	if len(found) != 1 || found[0].Kind != lcm.DifferenceState || found[0].ID != sick || !strings.HasSuffix(found[0].Recorded, "STOPPED") {
		t.Fatalf("%+v", found)
	}
	if want := "stop server " + v.servers("VDU2")[sick]; found[0].Mend.String() != want {
		t.Errorf("mended by %q, not %q", found[0].Mend, want)
	}
	o.to("nova", http.MethodPost, map[string]any{"os-stop": nil}, "servers", v.servers("VDU2")[sick], "action")
	v.unchanged("stopped again")
}

// TestWayBack names for every status what brings a server back, and never anything that loses it.
func TestWayBack(t *testing.T) {
	for status, want := range map[string][2]string{ // recorded as STARTED, as STOPPED
		"SHUTOFF": {"start", "stop"}, "ACTIVE": {"bring to ACTIVE", "stop"}, "PAUSED": {"unpause", "unpause and stop"},
		"SUSPENDED": {"resume", "resume and stop"}, "SHELVED": {"unshelve", "unshelve and stop"}, "SHELVED_OFFLOADED": {"unshelve", "unshelve and stop"},
		"RESCUE": {"unrescue", "unrescue and stop"}, "UNKNOWN": {"bring to ACTIVE", "stop"},
	} {
		if started := wayBack(status, sol003.VnfOperationalStateStarted); started != want[0] {
			t.Errorf("%s, recorded as STARTED: %s", status, started)
		}
		if stopped := wayBack(status, sol003.VnfOperationalStateStopped); stopped != want[1] && status != serverOff {
			t.Errorf("%s, recorded as STOPPED: %s", status, stopped)
		}
	}
}

// TestFailedStackNames has a failed stack be mended by the heals that there are anyway, and by no heal of the whole VNF while
// something else is all that is wanted.
func TestFailedStackNames(t *testing.T) {
	started := lcm.Difference{Kind: lcm.DifferenceState, Mend: lcm.Mend{First: "start server s"}}
	for name, tt := range map[string]struct {
		others []lcm.Difference
		want   string
	}{
		"nothing else":     {nil, "heal (the whole VNF)"},
		"a stopped server": {[]lcm.Difference{started}, "end the other differences, and verify again"},
		"both":             {[]lcm.Difference{started, {Mend: lcm.HealOf("a")}}, "heal vnfcInstanceId a"},
		"the whole":        {[]lcm.Difference{{Mend: lcm.HealOf()}, {Mend: lcm.HealOf("a")}}, "heal (the whole VNF)"},
	} {
		v := &comparison{infra: &infra{}, stack: &stack{Status: "UPDATE_FAILED"}, out: tt.others}
		if v.failedStack(); v.out[0].Mend.String() != tt.want {
			t.Errorf("%s: %q, not %q", name, v.out[0].Mend, tt.want)
		}
	}
}

// TestVerifyMeanwhile looks while Heat and Nova are at something.
func TestVerifyMeanwhile(t *testing.T) {
	v := running(t, Config{})
	o := somebodyElse(v)
	sick := firstOf(v, "VDU1")
	id := v.sim.Cloud.AddFault(vimsim.Fault{ResourceType: serverType, Action: "stop", Effect: vimsim.EffectHang})
	o.to("nova", http.MethodPost, map[string]any{"os-stop": nil}, "servers", v.servers("VDU1")[sick], "action")
	if found := v.verify(); len(found) != 1 || found[0].Kind != lcm.DifferenceBusy || found[0].ID != sick || found[0].Mend.Operation != "" || found[0].Mend.First == "" {
		t.Errorf("%+v", found)
	}
	v.sim.Cloud.RemoveFault(id)
	v = running(t, Config{})
	o = somebodyElse(v)
	o.sized()
	v.ok(o.c.markUnhealthy(t.Context(), o.inHeat(v.servers("VDU2")[firstOf(v, "VDU2")]), "an alarm"))
	v.sim.Cloud.AddFault(vimsim.Fault{ResourceType: serverType, Action: "create", Effect: vimsim.EffectHang})
	o.to("heat", http.MethodPatch, map[string]any{"existing": true}, "stacks", stackName(v.now.ID), v.stackID())
	found := v.verify()
	if len(found) != 1 || found[0].Kind != lcm.DifferenceBusy || found[0].Part != lcm.PartVNF || found[0].Found != "the stack is UPDATE_IN_PROGRESS" {
		t.Errorf("%+v", found)
	}
}

// withAddress gives a connection point of a request an address.
func withAddress(req *sol003.InstantiateVnfRequest, cpd, address string) *sol003.InstantiateVnfRequest {
	eth := &sol003.IpOverEthernetAddressData{IpAddresses: []sol003.IpAddressData{{Type: "IPV4", FixedAddresses: []string{address}}}}
	for n := range req.ExtVirtualLinks {
		for m := range req.ExtVirtualLinks[n].ExtCps {
			if cp := &req.ExtVirtualLinks[n].ExtCps[m]; cp.CpdId == cpd {
				cp.CpConfig = []sol003.VnfExtCpConfig{{CpProtocolData: []sol003.CpProtocolData{{LayerProtocol: "IP_OVER_ETHERNET", IpOverEthernet: eth}}}}
			}
		}
	}
	return req
}

// TestVerifyAddresses has a port get another address than the one that was asked for.
func TestVerifyAddresses(t *testing.T) {
	const asked, other = "10.10.0.77", "10.10.0.78"
	l := newLab(t, vimsim.Config{}, Config{})
	fsys := filesOf(t, "toscahot/testdata/vnfds", "Definitions")
	v := newVNF(l, fsys, ownPackage(t, fsys, "Definitions/router.yaml"), withAddress(unscripted("simple", "outside"), "outside", asked))
	l.bring(v.flavour)
	v.ok(v.instantiate())
	v.same("made")
	sick := firstOf(v, "router")
	_, port := v.handles(sick, "outside")
	if at := v.addressesOf(port); !slices.Contains(at, asked) {
		t.Fatalf("the port has %v", at)
	}
	somebodyElse(v).to("neutron", http.MethodPut, map[string]any{"port": map[string]any{"fixed_ips": []any{map[string]any{"ip_address": other}}}}, "ports", port)
	found := v.verify()
	if len(found) != 1 || found[0].Kind != lcm.DifferenceChanged || found[0].Part != lcm.PartPort || found[0].Recorded != "address "+asked ||
		!strings.HasPrefix(found[0].Found, "the port has "+other+", ") {
		t.Fatalf("%+v", found)
	}
	v.mend(found)
	v.same("healed")
	if _, port = v.handles(sick, "outside"); !slices.Contains(v.addressesOf(port), asked) {
		t.Errorf("the healed port has %v", v.addressesOf(port))
	}

	// A package that passes an address over makes no difference by that.
	v = runningAs(t, Config{}, withAddress(functionalRequest(), "VDU1_CP1", asked))
	v.unchanged("of a template that gives no addresses")
}

// TestVerifyNetworks has networks go.
func TestVerifyNetworks(t *testing.T) {
	v := running(t, Config{})
	want := map[string]string{}
	for n := range v.now.Info.VnfVirtualLinkResourceInfo {
		vl := &v.now.Info.VnfVirtualLinkResourceInfo[n]
		vl.NetworkResource.ResourceId = "gone-" + strconv.Itoa(n)
		want[vl.Id] = "heal (the whole VNF)"
		if slices.ContainsFunc(v.now.Info.ExtVirtualLinkInfo, func(e sol003.ExtVirtualLinkInfo) bool { return e.Id == vl.VnfVirtualLinkDescId }) {
			want[vl.Id] = "change_ext_conn"
		}
	}
	got := map[string]string{}
	for _, d := range v.verify() {
		if d.Kind != lcm.DifferenceMissing || d.Part != lcm.PartLink {
			t.Errorf("%+v", d)
		}
		got[d.ID] = d.Mend.String()
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 5 {
		t.Error(diff)
	}
}

func (v *vnf) addressesOf(portID string) []string {
	var out []string
	ips, _ := byID(v.sim.Cloud.State().Ports)[portID]["fixed_ips"].([]any)
	for _, ip := range ips {
		m, _ := ip.(map[string]any)
		out = append(out, fmt.Sprint(m["ip_address"]))
	}
	return out
}

// counted counts calls.
type counted struct {
	http.RoundTripper
	calls atomic.Int64
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// TestVerifyCalls has many servers, ports and volumes cost few calls.
func TestVerifyCalls(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	count := &counted{RoundTripper: l.driver.cfg.Transport}
	l.driver.cfg.Transport = count
	c, err := l.driver.connect(t.Context(), l.target)
	if err != nil {
		t.Fatal(err)
	}
	var ports, networks []string
	for n := range 250 {
		networks = append(networks, "n"+strconv.Itoa(n))
		ports = append(ports, "p"+strconv.Itoa(n))
	}
	if found, err := c.serversOf(t.Context(), ports); err != nil || len(found) != 0 {
		t.Errorf("%v %v", found, err)
	}
	if found, err := c.volumesOf(t.Context(), ports); err != nil || len(found) != 0 {
		t.Errorf("%v %v", found, err)
	}
	if n := count.calls.Load(); n > 5 { // with logging in
		t.Errorf("250 servers and 250 volumes take %d calls", n)
	}
	if _, err := c.portsOf(t.Context(), ports[:1]); err != nil { // Neutron is looked for once
		t.Fatal(err)
	}
	count.calls.Store(0)
	if found, err := c.portsOf(t.Context(), ports); err != nil || len(found) != 0 {
		t.Errorf("%v %v", found, err)
	}
	if n := count.calls.Load(); n != 3 {
		t.Errorf("250 ports take %d calls", n)
	}
	count.calls.Store(0)
	if there, err := c.networksOf(t.Context(), append(networks, "net0")); err != nil || !there["net0"] || there["n1"] {
		t.Errorf("%v %v", there, err)
	}
	if n := count.calls.Load(); n != 6 {
		t.Errorf("251 networks take %d calls", n)
	}
}

// TestPager finds exactly what is there, by as few calls as lists allow.
func TestPager(t *testing.T) {
	type thing struct{ ID string }
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(rapid.IntRange(0, 99), 0, 60, rapid.ID[int]).Draw(t, "there")
		wanted := rapid.SliceOfNDistinct(rapid.IntRange(0, 99), 0, 60, rapid.ID[int]).Draw(t, "wanted")
		size := rapid.IntRange(1, 70).Draw(t, "page")
		lists, singles := 0, 0
		p := pager[thing]{
			id: func(t *thing) string { return t.ID },
			page: func(_ context.Context, query string) (out []thing, more bool, err error) {
				lists++
				from := 0
				if _, marker, ok := strings.Cut(query, "marker="); ok {
					n, _ := strconv.Atoi(marker)
					from = slices.Index(all, n) + 1
				}
				for _, n := range all[from:min(from+size, len(all))] {
					out = append(out, thing{strconv.Itoa(n)})
				}
				return out, from+size < len(all), nil
			},
			one: func(_ context.Context, id string) (*thing, error) {
				singles++
				if n, _ := strconv.Atoi(id); slices.Contains(all, n) {
					return &thing{id}, nil
				}
				return nil, nil
			},
		}
		var ids []string
		want := map[string]*thing{}
		for _, n := range wanted {
			id := strconv.Itoa(n)
			ids = append(ids, id)
			if slices.Contains(all, n) {
				want[id] = &thing{id}
			}
		}
		got, err := p.find(context.Background(), ids)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%s %v", diff, err)
		}
		if singles > fewLeft || lists > (len(all)+size-1)/size+1 {
			t.Fatalf("%d lists and %d single calls for %d of %d, a page having %d", lists, singles, len(wanted), len(all), size)
		}
	})
}
