package kubernetes

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// member is a pod that is a VNFC.
type member struct {
	pod   *unstructured.Unstructured
	owner *object
	live  *unstructured.Unstructured // the owner, nil when it could not be read
}

// inventory is the step that records which pods the VNFCs are.
func (d *Driver) inventory(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, w, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	for n := range s.Objects {
		if o := &s.Objects[n]; o.Replicas != nil && *o.Replicas == unread {
			if err := c.readReplicas(ctx, o, s.Namespace); err != nil {
				return lcm.Progress{}, err
			}
		}
	}
	members, err := c.members(ctx, s, w)
	if err != nil {
		return lcm.Progress{}, err
	}
	left := fill(x, x.Instance.Info, members)
	if len(x.Plan.Aspects) > 0 && x.Op.State != sol003.LcmOperationStateRollingBack {
		x.Plan.Leaves = left // the domain takes them out
	} else {
		drop(x.Instance.Info, left)
	}
	return keep(x, s, w, lcm.Done())
}

// readReplicas finds out how many replicas the cluster gives an object that does not say itself.
func (c *cluster) readReplicas(ctx context.Context, o *object, ns string) error {
	ctx, cancel := c.call(ctx)
	defer cancel()
	scale, err := c.resource(o, ns).Get(ctx, o.Name, metav1.GetOptions{}, "scale")
	if err != nil {
		return c.wrap("read the scale of "+o.title(ns), err)
	}
	n, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	replicas := int(n)
	o.Replicas = &replicas
	return nil
}

// members returns the pods of every VDU, in order; nil when no workload is a VDU.
func (c *cluster) members(ctx context.Context, s *infra, w *work) (map[string][]member, error) {
	if !slices.ContainsFunc(s.Objects, func(o object) bool { return o.VDU != "" }) {
		return nil, nil //nolint:nilnil // as said
	}
	out := map[string][]member{}
	by, err := c.podsBy(ctx, s)
	if err != nil {
		return nil, err
	}
	for n := range s.Objects {
		o := &s.Objects[n]
		list := living(by[o.UID])
		if o.VDU == "" || len(list) == 0 {
			continue
		}
		live, err := c.look(ctx, o, s.Namespace, w.Written[o.UID])
		if err != nil {
			return nil, err
		}
		for _, pod := range list {
			out[o.VDU] = append(out[o.VDU], member{pod, o, live})
		}
	}
	return out, nil
}

// fill gives the VNFCs the pods that there are: those whose pod is still there keep it, and the others get those that are
// nobody's yet. Pods that are left over become VNFCs. It returns the ids of the VNFCs that are left without a pod; none when
// members is nil, or the VNF is stopped.
func fill(x *lcm.Execution, info *sol003.InstantiatedVnfInfo, members map[string][]member) (left []string) {
	if stopped(x.Instance) || members == nil {
		for n := range info.VnfcResourceInfo {
			v := &info.VnfcResourceInfo[n]
			v.ComputeResource, v.Metadata = sol003.ResourceHandle{}, nil
		}
		return nil
	}
	free := map[string][]member{}
	taken := map[string]bool{} // VNFCs that keep their pod
	for vdu, list := range members {
		for _, m := range list {
			n := slices.IndexFunc(info.VnfcResourceInfo, func(v sol003.VnfcResourceInfo) bool {
				return v.VduId == vdu && v.ComputeResource.ResourceId == m.pod.GetName() && !taken[v.Id]
			})
			if n < 0 {
				free[vdu] = append(free[vdu], m)
				continue
			}
			taken[info.VnfcResourceInfo[n].Id] = true
			m.record(x, &info.VnfcResourceInfo[n])
		}
	}
	// Those that were to go come last.
	for _, going := range []bool{false, true} {
		for n := range info.VnfcResourceInfo {
			v := &info.VnfcResourceInfo[n]
			if taken[v.Id] || slices.Contains(x.Plan.Leaves, v.Id) != going {
				continue
			}
			if of := free[v.VduId]; len(of) > 0 {
				of[0].record(x, v)
				free[v.VduId] = of[1:]
				taken[v.Id] = true
				continue
			}
			v.ComputeResource, v.Metadata = sol003.ResourceHandle{}, nil
			left = append(left, v.Id)
		}
	}
	for _, vdu := range x.Flavour.VDUs {
		for _, m := range free[vdu.Name] {
			v := sol003.VnfcResourceInfo{Id: x.NewID(), VduId: vdu.Name, StorageResourceIds: []string{}}
			m.record(x, &v)
			info.VnfcResourceInfo = append(info.VnfcResourceInfo, v)
		}
	}
	return left
}

// record makes a VNFC this pod.
func (m member) record(x *lcm.Execution, v *sol003.VnfcResourceInfo) {
	v.ComputeResource = sol003.ResourceHandle{
		VimConnectionId: x.Target.ID, ResourceId: m.pod.GetName(), VimLevelResourceType: m.owner.Kind,
	}
	v.Metadata = sol003.KeyValuePairs{}
	if m.owner.groupKind() == "Pod" {
		v.Metadata["Pod"] = metadataOf(m.pod.Object)
		return
	}
	if m.live == nil {
		return
	}
	v.Metadata[m.owner.Kind] = metadataOf(m.live.Object)
	if template, ok, _ := unstructured.NestedMap(m.live.Object, "spec", "template"); ok {
		v.Metadata["Pod"] = metadataOf(template)
	}
}

// metadataOf returns what an object is called by, as a JSON text.
func metadataOf(content map[string]any) string {
	given, _, _ := unstructured.NestedMap(content, "metadata")
	out := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels"} {
		if v, ok := given[key]; ok {
			out[key] = v
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return "{}"
	}
	return string(raw)
}

// drop takes VNFCs out of an instance, with their storages and link ports.
func drop(info *sol003.InstantiatedVnfInfo, ids []string) {
	if len(ids) == 0 {
		return
	}
	gone := func(id string) bool { return slices.Contains(ids, id) }
	storages, ports := map[string]bool{}, map[string]bool{}
	for _, v := range info.VnfcResourceInfo {
		if !gone(v.Id) {
			continue
		}
		for _, id := range v.StorageResourceIds {
			storages[id] = true
		}
		for _, cp := range v.VnfcCpInfo {
			ports[cp.VnfLinkPortId] = true
		}
	}
	info.VnfcResourceInfo = slices.DeleteFunc(info.VnfcResourceInfo, func(v sol003.VnfcResourceInfo) bool { return gone(v.Id) })
	info.VirtualStorageResourceInfo = slices.DeleteFunc(info.VirtualStorageResourceInfo, func(v sol003.VirtualStorageResourceInfo) bool { return storages[v.Id] })
	for n := range info.VnfVirtualLinkResourceInfo {
		link := &info.VnfVirtualLinkResourceInfo[n]
		link.VnfLinkPorts = slices.DeleteFunc(link.VnfLinkPorts, func(p sol003.VnfLinkPortInfo) bool { return ports[p.Id] })
	}
}

// stopped tells whether the VNF is stopped: it has no pods then.
func stopped(i *lcm.Instance) bool {
	return i.Info != nil && i.Info.VnfState == sol003.VnfOperationalStateStopped
}
