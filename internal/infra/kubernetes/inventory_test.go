package kubernetes

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

func podNamed(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	u.SetName(name)
	return u
}

// TestFill: whatever pods there are, each is one VNFC; VNFCs whose pod is there keep it; those that were to go are left without
// one before any other.
func TestFill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vnfcs := rapid.IntRange(0, 6).Draw(t, "vnfcs")
		here := rapid.SliceOfDistinct(rapid.IntRange(0, 9), func(n int) int { return n }).Draw(t, "pods")
		leaving := rapid.SliceOfDistinct(rapid.IntRange(0, 5), func(n int) int { return n }).Draw(t, "leaving")
		info := &sol003.InstantiatedVnfInfo{}
		for n := range vnfcs {
			v := sol003.VnfcResourceInfo{Id: strconv.Itoa(n), VduId: "VDU1"}
			if rapid.Bool().Draw(t, "has a pod") {
				v.ComputeResource.ResourceId = fmt.Sprintf("pod-%d", n)
			}
			info.VnfcResourceInfo = append(info.VnfcResourceInfo, v)
		}
		had := map[string]string{}
		for _, v := range info.VnfcResourceInfo {
			had[v.Id] = v.ComputeResource.ResourceId
		}
		owner := &object{Group: "apps", Kind: "ReplicaSet", Name: "vdu1", VDU: "VDU1"}
		members := map[string][]member{}
		for _, n := range here {
			members["VDU1"] = append(members["VDU1"], member{pod: podNamed(fmt.Sprintf("pod-%d", n)), owner: owner})
		}
		next := 100
		x := &lcm.Execution{
			Instance: &lcm.Instance{Info: info}, Target: &lcm.VimTarget{VIM: lcm.VIM{ID: "vim"}}, Plan: &lcm.Plan{},
			Flavour: &vnfd.Flavour{VDUs: []vnfd.VDU{{Name: "VDU1"}}},
			NewID:   func() string { next++; return strconv.Itoa(next) },
		}
		for _, n := range leaving {
			x.Plan.Leaves = append(x.Plan.Leaves, strconv.Itoa(n))
		}
		left := fill(x, info, members)
		drop(info, left)
		seen := map[string]bool{}
		for _, v := range info.VnfcResourceInfo {
			pod := v.ComputeResource.ResourceId
			if pod == "" || seen[pod] || v.ComputeResource.VimConnectionId != "vim" || v.ComputeResource.VimLevelResourceType != "ReplicaSet" {
				t.Fatalf("VNFC %s has pod %q", v.Id, pod)
			}
			seen[pod] = true
		}
		if len(seen) != len(here) {
			t.Fatalf("%d of %d pods are VNFCs", len(seen), len(here))
		}
		for id, pod := range had {
			n := slices.IndexFunc(info.VnfcResourceInfo, vnfcIs(id))
			there := slices.ContainsFunc(members["VDU1"], func(m member) bool { return m.pod.GetName() == pod })
			if there && (n < 0 || info.VnfcResourceInfo[n].ComputeResource.ResourceId != pod) {
				t.Fatalf("VNFC %s has lost its pod %s", id, pod)
			}
			if n >= 0 && !there && slices.Contains(x.Plan.Leaves, id) {
				for _, l := range left {
					if !slices.Contains(x.Plan.Leaves, l) {
						t.Fatalf("VNFC %s stays, which was to go, and %s goes", id, l)
					}
				}
			}
		}
	})
}

func TestFillWithoutPods(t *testing.T) {
	info := &sol003.InstantiatedVnfInfo{VnfcResourceInfo: []sol003.VnfcResourceInfo{{Id: "a", VduId: "VDU1", ComputeResource: sol003.ResourceHandle{ResourceId: "pod"}}}}
	x := &lcm.Execution{Instance: &lcm.Instance{Info: info}, Plan: &lcm.Plan{}, Flavour: &vnfd.Flavour{}}
	if left := fill(x, info, nil); left != nil || len(info.VnfcResourceInfo) != 1 || info.VnfcResourceInfo[0].ComputeResource.ResourceId != "" {
		t.Errorf("no workload is a VDU: left %v, %+v", left, info.VnfcResourceInfo)
	}
}
