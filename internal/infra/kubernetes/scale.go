package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// scaleSteps returns the steps of SCALE and SCALE_TO_LEVEL.
func (d *Driver) scaleSteps() []lcm.Step {
	return []lcm.Step{
		{Name: "scale", Effect: true, Timeout: d.cfg.ReadyTimeout, Run: d.scale},
		{Name: "scale-wait", Timeout: d.cfg.ReadyTimeout + slack, RetryFrom: "scale", Run: d.readyWait(scaled)},
		{Name: "inventory", Timeout: d.cfg.ReadyTimeout, RetryFrom: "scale", Run: d.inventory},
	}
}

// unscaleSteps returns the steps that undo SCALE and SCALE_TO_LEVEL.
func (d *Driver) unscaleSteps() []lcm.Step {
	return []lcm.Step{
		{Name: "rollback-scale", Effect: true, Timeout: d.cfg.ReadyTimeout, Run: d.unscale},
		{Name: "rollback-scale-wait", Timeout: d.cfg.ReadyTimeout + slack, RetryFrom: "rollback-scale", Run: d.readyWait(scaled)},
		{Name: "rollback-inventory", Timeout: d.cfg.ReadyTimeout, RetryFrom: "rollback-scale", Run: d.inventoryBefore},
	}
}

// scale is the step that gives the workloads of the aspects as many replicas as the levels mean. What they had is what is
// recorded, whatever somebody else has made of it.
func (d *Driver) scale(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, w, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	before, err := loadInfra(x.Before)
	if err != nil {
		return lcm.Progress{}, err
	}
	if err := targets(x, before, s); err != nil {
		return lcm.Progress{}, err
	}
	if !stopped(x.Instance) {
		if err := d.resize(ctx, x, c, s, w, before, x.Plan.Leaves); err != nil {
			return lcm.Progress{}, err
		}
	}
	return keep(x, s, w, lcm.Done())
}

// targets sets the numbers of replicas that the plan's levels mean. Terminal: an aspect scales nothing, or a number is out of
// the VDU's range.
func targets(x *lcm.Execution, before, s *infra) error {
	deltas := map[string]int{}
	for _, a := range x.Plan.Aspects {
		aspect, ok := x.Flavour.Aspect(a.ID)
		if !ok {
			return lcm.Errorf(lcm.KindTerminal, "flavour '%s' has no scaling aspect '%s'", x.Flavour.ID, a.ID)
		}
		found := false
		for _, of := range aspect.VDUs {
			from, err := aspect.Added(of.VDU, a.From)
			if err != nil {
				return lcm.Errorf(lcm.KindTerminal, "%w", err)
			}
			to, err := aspect.Added(of.VDU, a.To)
			if err != nil {
				return lcm.Errorf(lcm.KindTerminal, "%w", err)
			}
			deltas[of.VDU] += to - from
			found = found || slices.ContainsFunc(s.Objects, func(o object) bool { return o.VDU == of.VDU && o.Replicas != nil })
		}
		if !found {
			return lcm.Errorf(lcm.KindTerminal, "CNF Scale Failed with reason: Target VnfResource for aspectId %s is not found in DB", a.ID)
		}
	}
	for n := range s.Objects {
		o := &s.Objects[n]
		was := before.find(o)
		if o.VDU == "" || was == nil || was.Replicas == nil || deltas[o.VDU] == 0 {
			continue
		}
		to := *was.Replicas + deltas[o.VDU]
		if vdu, ok := x.Flavour.VDU(o.VDU); to < 0 || ok && (to < vdu.MinInstances || vdu.MaxInstances > 0 && to > vdu.MaxInstances) {
			return lcm.Errorf(lcm.KindTerminal, "CNF Scale Failed with reason: The number of target replicas after scaling [%d] is out of range", to)
		}
		o.Replicas = &to
	}
	return nil
}

// resize has the cluster give the workloads the replicas that s says, where that is not what before says. Of what goes, the
// pods of leaving go first where the cluster lets us say so.
func (d *Driver) resize(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, before *infra, leaving []string) error {
	var rights []right
	var change []*object
	for n := range s.Objects {
		o := &s.Objects[n]
		if o.Replicas == nil {
			continue
		}
		if was := before.find(o); was != nil && was.Replicas != nil && *was.Replicas == *o.Replicas {
			continue
		}
		change = append(change, o)
		rights = append(rights, rightsToScale(o, s.Namespace)...)
	}
	if err := c.review(ctx, rights); err != nil {
		return err
	}
	c.choose(ctx, x, s, leaving)
	change, err := d.byValues(ctx, x, c, s, w, change)
	if err != nil {
		return err
	}
	for _, o := range change {
		if err := c.setReplicas(ctx, x.Instance.ID, o, s.Namespace, *o.Replicas, w); err != nil {
			return err
		}
	}
	return nil
}

// rightsToScale are the rights that another number of replicas takes.
func rightsToScale(o *object, ns string) []right {
	return []right{{"get", o.Group, o.Resource, "", o.in(ns)}, {"patch", o.Group, o.Resource, "scale", o.in(ns)}}
}

// conflicts is how often a change is tried that others' changes come before.
const conflicts = 5

// setReplicas gives an object so many replicas, if it is the instance's: nobody else's hand comes between the look at it and the
// change. Terminal: it is not.
func (c *cluster) setReplicas(ctx context.Context, instanceID string, o *object, ns string, n int, w *work) error {
	failed := func(err error) error {
		wrapped := c.wrap("scale", err)
		if lcm.Is(wrapped, lcm.KindCanceled) {
			return wrapped
		}
		return &lcm.Error{Kind: lcm.KindOf(wrapped), Err: err, Detail: fmt.Sprintf(
			"CNF Scale Failed with reason: Failed the request to update a scale information. namespace: %s, name: %s, kind: %s, Reason: %s",
			ns, o.Name, o.Kind, reason(err))}
	}
	for again := 1; ; again++ {
		live, err := c.get(ctx, o, ns)
		switch {
		case err != nil:
			return failed(err)
		case live == nil:
			return failed(lcm.Errorf(lcm.KindTerminal, "%s is not there", o.title(ns)))
		case o.UID != "" && string(live.GetUID()) != o.UID, !o.mine(live, ns, instanceID):
			return failed(lcm.Errorf(lcm.KindTerminal, "%s is not this VNF instance's any more", o.title(ns)))
		}
		done, err := c.patchScale(ctx, o, ns, live.GetResourceVersion(), n)
		if statusOf(err) == http.StatusConflict && again < conflicts {
			continue
		}
		if err != nil {
			return failed(err)
		}
		w.wrote(string(live.GetUID()), done.GetResourceVersion())
		return nil
	}
}

func (c *cluster) patchScale(ctx context.Context, o *object, ns, version string, n int) (*unstructured.Unstructured, error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, version, n)
	return c.resource(o, ns).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "scale")
}

// deletionCost tells the controllers of ReplicaSets which pods to take first.
const deletionCost = "controller.kubernetes.io/pod-deletion-cost"

// choose marks the pods of VNFCs as those that are to go first. Where we may not, others go, and that is recorded.
func (c *cluster) choose(ctx context.Context, x *lcm.Execution, s *infra, leaving []string) {
	if len(leaving) == 0 {
		return
	}
	by, err := c.podsBy(ctx, s)
	if err != nil {
		x.Log.Debug("the pods that are to go cannot be chosen", "error", err)
		return
	}
	uids := map[string]types.UID{}
	for _, list := range by {
		for _, pod := range list {
			uids[pod.GetName()] = pod.GetUID()
		}
	}
	for _, v := range x.Instance.Info.VnfcResourceInfo {
		name, kind := v.ComputeResource.ResourceId, v.ComputeResource.VimLevelResourceType
		uid, known := uids[name]
		if !known || !slices.Contains(leaving, v.Id) || kind == "StatefulSet" || kind == "Pod" {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:"-1000"}}}`, uid, deletionCost)
		if _, err := c.patchPod(ctx, s.Namespace, name, patch); err != nil {
			x.Log.Debug("a pod cannot be chosen to go", "pod", name, "error", err)
			if isForbidden(err) {
				return
			}
		}
	}
}

func (c *cluster) patchPod(ctx context.Context, ns, name string, patch []byte) (*unstructured.Unstructured, error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	return c.resource(&pods, ns).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
}

// unscale is the step that gives the workloads as many replicas as they had before the operation.
func (d *Driver) unscale(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, w, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	before, err := loadInfra(x.Before)
	if err != nil {
		return lcm.Progress{}, err
	}
	now := infra{Objects: slices.Clone(s.Objects)}
	for n := range s.Objects {
		if was := before.find(&s.Objects[n]); was != nil {
			s.Objects[n].Replicas = was.Replicas
		}
	}
	// What was scaled is what the plan's VDUs are: a try may have come to nothing before it was recorded.
	for n := range now.Objects {
		if scales(x, now.Objects[n].VDU) {
			now.Objects[n].Replicas = nil
		}
	}
	if !stopped(x.Before) {
		if err := d.resize(ctx, x, c, s, w, &now, newcomers(ctx, x, c, s)); err != nil {
			return lcm.Progress{}, err
		}
	}
	return keep(x, s, w, lcm.Done())
}

// scales tells whether the plan scales the VDU.
func scales(x *lcm.Execution, vdu string) bool {
	for _, a := range x.Plan.Aspects {
		if aspect, ok := x.Flavour.Aspect(a.ID); ok && aspect.Scales(vdu) {
			return true
		}
	}
	return false
}

// newcomers records the pods that there are in the instance, and returns the VNFCs that there were not before.
func newcomers(ctx context.Context, x *lcm.Execution, c *cluster, s *infra) []string {
	members, err := c.members(ctx, s, &work{})
	if err != nil {
		x.Log.Debug("the pods that a rollback removes cannot be chosen", "error", err)
		return nil
	}
	info := x.Before.Clone().Info
	fill(x, info, members)
	var out []string
	for _, v := range info.VnfcResourceInfo {
		if !slices.ContainsFunc(x.Before.Info.VnfcResourceInfo, func(b sol003.VnfcResourceInfo) bool { return b.Id == v.Id }) {
			out = append(out, v.Id)
		}
	}
	x.Instance.Info = info
	return out
}

// inventoryBefore is the step that records which pods the VNFCs are that there were before the operation.
func (d *Driver) inventoryBefore(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	x.Instance.Info = x.Before.Clone().Info
	return d.inventory(ctx, x)
}
