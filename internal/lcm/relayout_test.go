package lcm

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

func extLinks(t testing.TB, text string) (links []sol003.ExtVirtualLinkData) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &links); err != nil {
		t.Fatal(err)
	}
	return links
}

func TestMergeExtLinks(t *testing.T) {
	before := extLinks(t, `[
		{"id":"a","resourceId":"A","extCps":[{"cpdId":"CP1"},{"cpdId":"CP2"}],"extLinkPorts":[{"id":"p","resourceHandle":{"resourceId":"P"}}]},
		{"id":"b","resourceId":"B","extCps":[{"cpdId":"CP3"}]}]`)
	for _, c := range []struct{ name, change, want string }{
		{"nothing", `[]`, `a:A[CP1 CP2] b:B[CP3]`},
		{"to a new link", `[{"id":"c","resourceId":"C","extCps":[{"cpdId":"CP2"}]}]`, `a:A[CP1] b:B[CP3] c:C[CP2]`},
		{"the last of a link", `[{"id":"a","resourceId":"A","extCps":[{"cpdId":"CP3"}]}]`, `a:A[CP1 CP2 CP3]`},
		{"another network", `[{"id":"b","resourceId":"B2","extCps":[{"cpdId":"CP3"}]}]`, `a:A[CP1 CP2] b:B2[CP3]`},
		{"a new connection point", `[{"id":"b","resourceId":"B","extCps":[{"cpdId":"CP4"}]}]`, `a:A[CP1 CP2] b:B[CP3 CP4]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			for n, link := range mergeExtLinks(before, extLinks(t, c.change)) {
				cps := []string{}
				for _, cp := range link.ExtCps {
					cps = append(cps, cp.CpdId)
				}
				if n > 0 {
					got += " "
				}
				got += fmt.Sprintf("%s:%s%v", link.Id, link.ResourceId, cps)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	if len(before[0].ExtCps) != 2 || len(before[0].ExtLinkPorts) != 1 {
		t.Error("what was before has been changed")
	}
}

// TestRelink: what is laid out by a request and relinked to another is as if laid out by the other, but for the ids that
// stay.
func TestRelink(t *testing.T) {
	first := &sol003.InstantiateVnfRequest{FlavourId: "simple", ExtVirtualLinks: extLinks(t, `[{"id":"net0","resourceId":"NET","extCps":[{"cpdId":"CP1","cpConfig":[{}]}]}]`)}
	second := &sol003.InstantiateVnfRequest{FlavourId: "simple", ExtVirtualLinks: extLinks(t, `[{"id":"net1","resourceId":"OTHER","extCps":[
		{"cpdId":"CP1","cpConfig":[{"linkPortId":"lp","cpProtocolData":[{"layerProtocol":"IP_OVER_ETHERNET","ipOverEthernet":{"ipAddresses":[{"type":"IPV4","fixedAddresses":["10.0.0.9"]}]}}]}]}],
		"extLinkPorts":[{"id":"lp","resourceHandle":{"resourceId":"PORT"}}]}]`)}
	newID := counter()
	info, err := NewInstantiatedInfo(twoVDUs(), first, newID)
	if err != nil {
		t.Fatal(err)
	}
	var before sol003.InstantiatedVnfInfo
	raw, _ := json.Marshal(info)
	if err := json.Unmarshal(raw, &before); err != nil {
		t.Fatal(err)
	}
	relink(info, twoVDUs(), second, newID)
	if len(info.ExtVirtualLinkInfo) != 1 || info.ExtVirtualLinkInfo[0].Id != "net1" || info.ExtCpInfo[0].Id != before.ExtCpInfo[0].Id ||
		info.ExtVirtualLinkInfo[0].ExtLinkPorts[0].CpInstanceId != before.ExtCpInfo[0].Id {
		t.Errorf("external links %+v %+v", info.ExtVirtualLinkInfo, info.ExtCpInfo)
	}
	cp, was := info.VnfcResourceInfo[0].VnfcCpInfo[0], before.VnfcResourceInfo[0].VnfcCpInfo[0]
	if cp.Id != was.Id || cp.VnfLinkPortId != was.VnfLinkPortId || cp.VnfExtCpId != "lp" || cp.CpProtocolInfo[0].IpOverEthernet.IpAddresses[0].Addresses[0] != "10.0.0.9" {
		t.Errorf("connection point %+v, was %+v", cp, was)
	}
	link := info.VnfVirtualLinkResourceInfo[1]
	if link.NetworkResource.ResourceId != "OTHER" || link.VnfLinkPorts[0].Id != was.VnfLinkPortId || link.VnfLinkPorts[0].ResourceHandle.ResourceId != "lp" {
		t.Errorf("link %+v", link)
	}
	if got := changedLinks(&before, info); len(got) != 1 || got[0].Id != "net1" {
		t.Errorf("changed links %+v", got)
	}
	if got := changedLinks(info, info); got != nil {
		t.Errorf("nothing has changed, but %+v", got)
	}
	// Back again: as it was.
	relink(info, twoVDUs(), first, newID)
	if info.VnfVirtualLinkResourceInfo[1].NetworkResource.ResourceId != "NET" || len(info.ExtVirtualLinkInfo[0].ExtLinkPorts) != 0 {
		t.Errorf("back: %+v", info.VnfVirtualLinkResourceInfo[1])
	}
}

// TestAddThenDrop: VNFCs that are added and dropped again leave nothing behind, whichever there are.
func TestAddThenDrop(t *testing.T) {
	req := &sol003.InstantiateVnfRequest{FlavourId: "simple",
		ExtVirtualLinks:        extLinks(t, `[{"id":"net0","resourceId":"NET","extCps":[{"cpdId":"CP1","cpConfig":[{}]}]}]`),
		ExtManagedVirtualLinks: []sol003.ExtManagedVirtualLinkData{{Id: "m", VnfVirtualLinkDescId: "internalVL", ResourceId: "M"}}}
	rapid.Check(t, func(t *rapid.T) {
		newID := counter()
		info, err := NewInstantiatedInfo(twoVDUs(), req, newID)
		if err != nil {
			t.Fatal(err)
		}
		alignVnfcInfo(info, newID)
		before, _ := json.Marshal(info)
		counts := map[string]int{"VDU1": rapid.IntRange(0, 3).Draw(t, "VDU1"), "VDU2": rapid.IntRange(0, 3).Draw(t, "VDU2")}
		ids := addVnfcs(info, twoVDUs(), req, counts, newID)
		alignVnfcInfo(info, newID)
		if len(ids) != counts["VDU1"]+counts["VDU2"] || len(info.VnfcResourceInfo) != 2+len(ids) || len(info.VnfcInfo) != 2+len(ids) {
			t.Fatalf("%d VNFCs, %d vnfcInfo after adding %v", len(info.VnfcResourceInfo), len(info.VnfcInfo), ids)
		}
		ports := map[string]bool{}
		for _, vl := range info.VnfVirtualLinkResourceInfo {
			for _, p := range vl.VnfLinkPorts {
				ports[p.Id] = true
			}
		}
		for _, v := range info.VnfcResourceInfo {
			for _, cp := range v.VnfcCpInfo {
				if !ports[cp.VnfLinkPortId] {
					t.Errorf("connection point %+v has no port", cp)
				}
			}
		}
		dropVnfcs(info, ids)
		alignVnfcInfo(info, newID)
		after, _ := json.Marshal(info)
		if diff := cmp.Diff(string(before), string(after)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestKeepIDs(t *testing.T) {
	newID := counter()
	req := &sol003.InstantiateVnfRequest{FlavourId: "simple", ExtVirtualLinks: extLinks(t, `[{"id":"net0","resourceId":"NET","extCps":[{"cpdId":"CP1","cpConfig":[{}]}]}]`)}
	before, err := NewInstantiatedInfo(twoVDUs(), req, newID)
	if err != nil {
		t.Fatal(err)
	}
	again, err := NewInstantiatedInfo(twoVDUs(), req, newID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, keepIDs(again, before)); diff != "" {
		t.Error(diff)
	}
}

// TestFollowServers has VNFCs be in servers that others of their VDU were in before: those have their ids.
func TestFollowServers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newID := counter()
		info := func(count int) *sol003.InstantiatedVnfInfo {
			f := twoVDUs()
			i := &sol003.InstantiatedVnfInfo{VnfVirtualLinkResourceInfo: []sol003.VnfVirtualLinkResourceInfo{{Id: newID(), VnfVirtualLinkDescId: "internalVL"}}}
			counts := map[string]int{}
			for _, vdu := range f.VDUs {
				counts[vdu.Name] = count
			}
			addVnfcs(i, f, &sol003.InstantiateVnfRequest{FlavourId: f.ID}, counts, newID)
			return i
		}
		before := info(rapid.IntRange(1, 4).Draw(t, "before"))
		for n := range before.VnfcResourceInfo {
			before.VnfcResourceInfo[n].ComputeResource.ResourceId = fmt.Sprintf("server %d", n)
		}
		after := keepIDs(info(rapid.IntRange(1, 4).Draw(t, "after")), before)
		servers := map[string][]string{} // that there may be, by VDU
		was := map[string]sol003.VnfcResourceInfo{}
		for _, v := range before.VnfcResourceInfo {
			servers[v.VduId] = append(servers[v.VduId], v.ComputeResource.ResourceId)
			was[v.ComputeResource.ResourceId] = v
		}
		for n := range after.VnfcResourceInfo {
			v := &after.VnfcResourceInfo[n]
			servers[v.VduId] = append(servers[v.VduId], fmt.Sprintf("new server %d", n))
			of := servers[v.VduId]
			at := rapid.IntRange(0, len(of)-1).Draw(t, "server")
			v.ComputeResource.ResourceId = of[at]
			servers[v.VduId] = slices.Delete(of, at, at+1)
		}
		plain := (&Instance{Info: after}).Clone().Info
		followServers(after, before)
		ids, points := map[string]bool{}, map[string]string{}
		for n, v := range after.VnfcResourceInfo {
			if ids[v.Id] {
				t.Fatalf("two VNFCs are %s", v.Id)
			}
			ids[v.Id] = true
			if v.ComputeResource != plain.VnfcResourceInfo[n].ComputeResource || v.VduId != plain.VnfcResourceInfo[n].VduId {
				t.Fatalf("VNFC %d was %+v, is %+v", n, plain.VnfcResourceInfo[n], v)
			}
			if old, ok := was[v.ComputeResource.ResourceId]; ok && v.Id != old.Id {
				t.Fatalf("the VNFC in %s was %s, is %s", v.ComputeResource.ResourceId, old.Id, v.Id)
			}
			for m, cp := range v.VnfcCpInfo {
				if old, ok := was[v.ComputeResource.ResourceId]; ok && cp.Id != old.VnfcCpInfo[m].Id {
					t.Fatalf("connection point %+v was %+v", cp, old.VnfcCpInfo[m])
				}
				if points[cp.Id] != "" {
					t.Fatalf("two connection points are %s", cp.Id)
				}
				points[cp.Id] = cp.VnfLinkPortId
			}
		}
		for _, vl := range after.VnfVirtualLinkResourceInfo {
			for _, p := range vl.VnfLinkPorts {
				if points[p.CpInstanceId] != p.Id {
					t.Fatalf("port %+v is not that of its connection point %q", p, points[p.CpInstanceId])
				}
			}
		}
	})
}
