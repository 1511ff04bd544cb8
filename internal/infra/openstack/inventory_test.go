package openstack

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// in makes a resource of a stack.
func in(stackID, name, kind, id, created string) resource {
	return resource{Name: name, Type: kind, ID: id, Creation: created, Links: []gophercloud.Link{
		{Rel: "self", Href: "http://heat/v1/p/stacks/n/" + stackID + "/resources/" + name},
		{Rel: "stack", Href: "http://heat/v1/p/stacks/n/" + stackID},
	}}
}

// clusterResources are the resources of the cluster package's stack: masters m1… and workers w1….
func clusterResources(masters, workers int) []resource {
	list := []resource{
		in("top", "master_instance", groupType, "masters", "1"), in("top", "worker_instance", groupType, "workers", "1"),
		in("top", "vip_CP", portType, "vip", "1"), in("top", "master_instance_scale_out", "OS::Heat::ScalingPolicy", "p", "1"),
	}
	for n := range masters {
		id := fmt.Sprintf("m%d", n+1)
		list = append(list, in("masters", id+"name", "master.yaml", id, "2"),
			in(id, "masterNode", serverType, id+"server", "3"), in(id, "masterNode_CP1", portType, id+"port", "3"))
	}
	for n := range workers {
		id := fmt.Sprintf("w%d", n+1)
		list = append(list, in("workers", id+"name", "worker.yaml", id, "2"),
			in(id, "workerNode_CP2", portType, id+"port", "3"), in(id, "workerNode", serverType, id+"server", "3"))
	}
	return list
}

func clusterRequest(levelID string) *sol003.InstantiateVnfRequest {
	vl := func(id, network, cpd string) sol003.ExtVirtualLinkData {
		return sol003.ExtVirtualLinkData{Id: id, ResourceId: network, ExtCps: []sol003.VnfExtCpData{{
			CpdId: cpd, CpConfig: []sol003.VnfExtCpConfig{{CpProtocolData: []sol003.CpProtocolData{{LayerProtocol: "IP_OVER_ETHERNET"}}}},
		}}}
	}
	return &sol003.InstantiateVnfRequest{
		FlavourId: "complex", InstantiationLevelId: levelID,
		ExtVirtualLinks: []sol003.ExtVirtualLinkData{vl("net0_master", "net0", "masterNode_CP1"), vl("net0_worker", "net0", "workerNode_CP2")},
		AdditionalParams: map[string]any{
			"lcm-operation-user-data": "./UserData/cluster_user_data.py", "lcm-operation-user-data-class": "ClusterUserData",
		},
	}
}

func TestInventoryOfCluster(t *testing.T) {
	_, f := testPackage(t, "cluster", "complex")
	info, err := lcm.NewInstantiatedInfo(f, clusterRequest(""), uuid.NewString)
	if err != nil {
		t.Fatal(err)
	}
	if missing := newTree("top", clusterResources(3, 2)).fill(info, "vim"); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
	type row struct{ VDU, Server, Stack string }
	var got []row
	for _, v := range info.VnfcResourceInfo {
		got = append(got, row{v.VduId, v.ComputeResource.ResourceId, v.Metadata["stack_id"].(string)})
		if v.ComputeResource.VimConnectionId != "vim" || v.ComputeResource.VimLevelResourceType != serverType {
			t.Errorf("handle %+v", v.ComputeResource)
		}
	}
	want := []row{
		{"masterNode", "m1server", "m1"}, {"masterNode", "m2server", "m2"}, {"masterNode", "m3server", "m3"},
		{"workerNode", "w1server", "w1"}, {"workerNode", "w2server", "w2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	links := map[string][]string{}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		if vl.NetworkResource.ResourceId != "net0" || vl.NetworkResource.VimLevelResourceType != netType {
			t.Errorf("network %+v", vl.NetworkResource)
		}
		for _, p := range vl.VnfLinkPorts {
			links[vl.VnfVirtualLinkDescId] = append(links[vl.VnfVirtualLinkDescId], p.ResourceHandle.ResourceId)
		}
	}
	if diff := cmp.Diff(map[string][]string{"net0_master": {"m1port", "m2port", "m3port"}, "net0_worker": {"w1port", "w2port"}}, links); diff != "" {
		t.Error(diff)
	}
}

// TestInventoryAcrossStacks has the networks in the top stack and the servers, ports and volumes in nested ones.
func TestInventoryAcrossStacks(t *testing.T) {
	_, f := testPackage(t, "functional", "simple")
	req := &sol003.InstantiateVnfRequest{
		FlavourId:              "simple",
		ExtManagedVirtualLinks: []sol003.ExtManagedVirtualLinkData{{Id: "managed", VnfVirtualLinkDescId: "internalVL1", ResourceId: "given"}},
	}
	info, err := lcm.NewInstantiatedInfo(f, req, uuid.NewString)
	if err != nil {
		t.Fatal(err)
	}
	list := []resource{in("top", "VDU1", groupType, "g1", "1"), in("top", "VDU2", groupType, "g2", "1")}
	for n := 1; n <= 3; n++ {
		list = append(list, in("top", fmt.Sprintf("internalVL%d", n), netType, fmt.Sprintf("net%d", n), "1"))
	}
	for _, m := range []struct{ vdu, group, id string }{{"VDU1", "g1", "a"}, {"VDU2", "g2", "b"}, {"VDU2", "g2", "c"}} {
		list = append(list, in(m.group, m.id, m.vdu+".yaml", m.id, "2"), in(m.id, m.vdu, serverType, m.id+"-server", "2"),
			in(m.id, "VirtualStorage", volumeType, m.id+"-volume", "2"))
		for n := 1; n <= 5; n++ {
			list = append(list, in(m.id, fmt.Sprintf("%s_CP%d", m.vdu, n), portType, fmt.Sprintf("%s-port%d", m.id, n), "2"))
		}
	}
	if missing := newTree("top", list).fill(info, "vim"); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
	if s := info.VirtualStorageResourceInfo; len(s) != 1 || s[0].StorageResource.ResourceId != "a-volume" {
		t.Errorf("storages %+v", s)
	}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		want := map[string]string{"internalVL1": "given", "internalVL2": "net2", "internalVL3": "net3"}[vl.VnfVirtualLinkDescId]
		if vl.NetworkResource.ResourceId != want {
			t.Errorf("%s is %+v, not %s", vl.VnfVirtualLinkDescId, vl.NetworkResource, want)
		}
		for _, p := range vl.VnfLinkPorts {
			if p.ResourceHandle.ResourceId == "" {
				t.Errorf("a port of %s has no handle", vl.VnfVirtualLinkDescId)
			}
		}
	}
	for _, p := range info.ExtManagedVirtualLinkInfo[0].VnfLinkPorts {
		if p.ResourceHandle.ResourceId == "" {
			t.Error("a port of the managed link has no handle")
		}
	}
}

// TestInventoryAnyTree has any number of members in any order of creation: no resource is used twice, what there is too
// little of stays without a handle, and the result does not depend on chance.
func TestInventoryAnyTree(t *testing.T) {
	_, f := testPackage(t, "cluster", "complex")
	rapid.Check(t, func(t *rapid.T) {
		masters, workers := rapid.IntRange(0, 6).Draw(t, "masters"), rapid.IntRange(0, 6).Draw(t, "workers")
		list := rapid.Permutation(clusterResources(masters, workers)).Draw(t, "list")
		for n := range list {
			list[n].Creation = rapid.SampledFrom([]string{"", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"}).Draw(t, "created")
		}
		next := 0
		info, err := lcm.NewInstantiatedInfo(f, clusterRequest(""), func() string { next++; return fmt.Sprint(next) })
		if err != nil {
			t.Fatal(err)
		}
		twice := *info
		twice.VnfcResourceInfo = append([]sol003.VnfcResourceInfo(nil), info.VnfcResourceInfo...)
		newTree("top", list).fill(info, "vim")
		newTree("top", list).fill(&twice, "vim")
		if diff := cmp.Diff(info.VnfcResourceInfo, twice.VnfcResourceInfo); diff != "" {
			t.Error(diff)
		}
		seen, found := map[string]bool{}, 0
		for _, v := range info.VnfcResourceInfo {
			if id := v.ComputeResource.ResourceId; id != "" {
				found++
				if seen[id] {
					t.Errorf("server %s is used twice", id)
				}
				seen[id] = true
			}
		}
		if want := min(masters, 3) + min(workers, 2); found != want {
			t.Errorf("%d VNFCs have a server, not %d", found, want)
		}
	})
}
