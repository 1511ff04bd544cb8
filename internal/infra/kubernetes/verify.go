package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

var _ lcm.Verifier = (*Driver)(nil)

// Verify implements lcm.Verifier: the VNF's objects are there, are those that were made, and are well; its VNFCs are the pods
// that there are.
func (d *Driver) Verify(ctx context.Context, in *lcm.Inspection) ([]lcm.Difference, error) {
	s, err := loadInfra(in.Instance)
	if err != nil {
		return nil, err
	}
	c, err := d.connect(in.Target)
	if err != nil {
		return nil, err
	}
	v := &comparison{Inspection: in, driver: d, cluster: c, infra: s, live: map[string]*unstructured.Unstructured{}}
	for n := range s.Objects {
		if o := &s.Objects[n]; !o.Once {
			if err := v.object(ctx, o); err != nil {
				return nil, err
			}
		}
	}
	if err := v.releases(ctx); err != nil {
		return nil, err
	}
	return v.out, v.vnfcs(ctx)
}

// comparison is one verification under way.
type comparison struct {
	*lcm.Inspection
	driver  *Driver
	cluster *cluster
	infra   *infra
	live    map[string]*unstructured.Unstructured // the objects that are there, by their uids
	out     []lcm.Difference
}

// object compares one object.
func (v *comparison) object(ctx context.Context, o *object) error {
	u, err := v.cluster.get(ctx, o, v.infra.Namespace)
	if err != nil {
		return err
	}
	title := o.title(v.infra.Namespace)
	diff := lcm.Difference{
		Part: lcm.PartVNF, Name: o.VDU, Recorded: title, Mend: lcm.HealOf(),
		Resource: &sol003.ResourceHandle{VimConnectionId: v.Target.ID, ResourceId: o.Name, VimLevelResourceType: o.Kind},
	}
	switch {
	case u == nil:
		diff.Kind, diff.Found = lcm.DifferenceMissing, "no such object"
	case string(u.GetUID()) != o.UID || !o.mine(u, v.infra.Namespace, v.Instance.ID):
		diff.Kind, diff.Found = lcm.DifferenceChanged, "another object of that name"
		diff.Mend.First = "remove " + title
	case u.GetDeletionTimestamp() != nil:
		diff.Kind, diff.Found = lcm.DifferenceBusy, "it is being deleted"
		diff.Mend = lcm.Mend{First: "wait until it is gone, and verify again"}
	default:
		v.live[o.UID] = u
		if is := v.driver.readiness(ctx, span{to: time.Now()}, v.cluster, o, v.infra, u); is.state == failed {
			diff.Kind, diff.Found = lcm.DifferenceFailed, is.message
			break
		}
		wanted, counted := v.replicas(o)
		has, known := expected(o, u)
		if !counted || !known || has == wanted {
			return nil
		}
		diff.Kind = lcm.DifferenceChanged
		diff.Recorded, diff.Found = fmt.Sprintf("%s has %d replicas", title, wanted), fmt.Sprintf("it has %d", has)
		diff.Mend = lcm.Mend{First: fmt.Sprintf("scale %s to %d replicas", title, wanted)}
	}
	v.out = append(v.out, diff)
	return nil
}

// replicas tells how many replicas an object is recorded with.
func (v *comparison) replicas(o *object) (int, bool) {
	switch {
	case o.Replicas == nil || *o.Replicas == unread:
		return 0, false
	case stopped(v.Instance):
		return 0, true
	}
	return *o.Replicas, true
}

// vnfcs compares the VNFCs with the pods that there are.
func (v *comparison) vnfcs(ctx context.Context) error {
	info := v.Instance.Info
	if info == nil || !slices.ContainsFunc(v.infra.Objects, func(o object) bool { return o.VDU != "" }) {
		return nil
	}
	by, err := v.cluster.podsBy(ctx, v.infra)
	if err != nil {
		return err
	}
	strangers := map[string][]member{} // by VDU
	there := map[string]*unstructured.Unstructured{}
	for n := range v.infra.Objects {
		o := &v.infra.Objects[n]
		if o.VDU == "" {
			continue
		}
		for _, pod := range by[o.UID] {
			recorded := slices.ContainsFunc(info.VnfcResourceInfo, func(c sol003.VnfcResourceInfo) bool {
				return c.VduId == o.VDU && c.ComputeResource.ResourceId == pod.GetName()
			})
			if there[pod.GetName()] = pod; !recorded && len(living([]*unstructured.Unstructured{pod})) > 0 {
				strangers[o.VDU] = append(strangers[o.VDU], member{pod: pod, owner: o})
			}
		}
	}
	if stopped(v.Instance) {
		v.running(strangers)
		return nil
	}
	for n := range info.VnfcResourceInfo {
		v.vnfc(&info.VnfcResourceInfo[n], there, strangers)
	}
	for _, vdu := range v.Flavour.VDUs {
		for _, m := range strangers[vdu.Name] {
			v.out = append(v.out, lcm.Difference{
				Kind: lcm.DifferenceUnrecorded, Part: lcm.PartVNFC, Name: vdu.Name, Resource: v.handle(m), Found: "pod " + m.pod.GetName(),
				Mend: lcm.Mend{First: "scale " + m.owner.title(v.infra.Namespace) + " to what is recorded"},
			})
		}
	}
	return nil
}

// vnfc compares one VNFC. A pod that is nobody's takes the place of one that is gone.
func (v *comparison) vnfc(c *sol003.VnfcResourceInfo, there map[string]*unstructured.Unstructured, strangers map[string][]member) {
	recorded := c.ComputeResource
	diff := lcm.Difference{
		Part: lcm.PartVNFC, ID: c.Id, Name: c.VduId, Resource: &recorded,
		Recorded: "pod " + c.ComputeResource.ResourceId, Mend: lcm.HealOf(c.Id),
	}
	pod := there[c.ComputeResource.ResourceId]
	switch {
	case pod == nil && len(strangers[c.VduId]) > 0:
		diff.Kind, diff.Found = lcm.DifferenceChanged, "pod "+strangers[c.VduId][0].pod.GetName()
		strangers[c.VduId] = strangers[c.VduId][1:]
	case pod == nil:
		diff.Kind, diff.Found = lcm.DifferenceMissing, "no such pod"
	case pod.GetDeletionTimestamp() != nil:
		diff.Kind, diff.Found = lcm.DifferenceBusy, "it is being deleted"
		diff.Mend = lcm.Mend{First: "wait until it is gone, and verify again"}
	default:
		trouble := podTrouble(pod)
		if trouble == "" || time.Since(pod.GetCreationTimestamp().Time) < v.driver.cfg.Settle {
			return
		}
		diff.Kind, diff.Found = lcm.DifferenceFailed, trouble
	}
	v.out = append(v.out, diff)
}

// running adds that a stopped VNF has pods.
func (v *comparison) running(strangers map[string][]member) {
	for _, vdu := range v.Flavour.VDUs {
		for _, m := range strangers[vdu.Name] {
			v.out = append(v.out, lcm.Difference{
				Kind: lcm.DifferenceState, Part: lcm.PartVNFC, Name: vdu.Name, Resource: v.handle(m), Recorded: "STOPPED", Found: "pod " + m.pod.GetName(),
				Mend: lcm.Mend{First: "scale " + m.owner.title(v.infra.Namespace) + " to 0 replicas"},
			})
		}
	}
}

func (v *comparison) handle(m member) *sol003.ResourceHandle {
	return &sol003.ResourceHandle{VimConnectionId: v.Target.ID, ResourceId: m.pod.GetName(), VimLevelResourceType: m.owner.Kind}
}
