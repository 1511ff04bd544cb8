package kubernetes

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// healSteps returns the steps of HEAL for VNFCs: their pods are removed, and made anew by what owns them. When the instance has
// been given another VNFD since its objects were made, these are brought to what the manifests of its package are now, first.
func (d *Driver) healSteps() []lcm.Step {
	return []lcm.Step{
		{Name: "pods-look", Timeout: d.cfg.ReadyTimeout, Run: d.healLook},
		{Name: "access", Timeout: d.cfg.ReadyTimeout, Run: d.updating(d.access)},
		{Name: "apply", Effect: true, Timeout: d.cfg.ReadyTimeout + slack, Run: d.updating(d.applyAll)},
		{Name: "prune", Effect: true, Timeout: d.cfg.DeleteTimeout + slack, Run: d.updating(d.prune)},
		{Name: "pods-delete", Effect: true, Timeout: d.cfg.ReadyTimeout + slack, Run: d.podsDelete},
		{Name: "pods-wait", Timeout: d.cfg.ReadyTimeout + slack, RetryFrom: "pods-look", Run: d.readyWait(healed)},
		{Name: "inventory", Timeout: d.cfg.ReadyTimeout, RetryFrom: "pods-look", Run: d.inventory},
	}
}

// updating has a step do something only when the manifests have changed.
func (d *Driver) updating(run runFunc) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		w, err := loadWork(x)
		if err != nil {
			return lcm.Progress{}, err
		}
		if !w.Updating {
			return lcm.Done(), nil
		}
		return run(ctx, x)
	}
}

// healLook is the step that finds out which pods are to go, and what the manifests have changed to.
func (d *Driver) healLook(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, _, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	w := &work{Updating: s.VnfdID != "" && s.VnfdID != x.Instance.VnfdID}
	by, err := c.podsBy(ctx, s)
	if err != nil {
		return lcm.Progress{}, err
	}
	uids := map[string]string{}
	for _, list := range by {
		for _, pod := range list {
			uids[pod.GetName()] = string(pod.GetUID())
		}
	}
	for _, id := range x.Plan.Heals {
		n := slices.IndexFunc(x.Instance.Info.VnfcResourceInfo, vnfcIs(id))
		if n < 0 {
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "VNF instance %s has no VNFC %s", x.Instance.ID, id)
		}
		pod := x.Instance.Info.VnfcResourceInfo[n].ComputeResource.ResourceId
		w.Victims = append(w.Victims, victim{VNFC: id, Pod: pod, UID: uids[pod]})
	}
	if w.Updating {
		if err := d.plan(ctx, x, c, s, w, by); err != nil {
			return lcm.Progress{}, err
		}
	} else {
		w.Had = had(s, by)
	}
	return keep(x, s, w, lcm.Done())
}

// had counts the pods of the objects of kinds that only their own controllers know: what these say right after a pod has gone may
// be from before.
func had(s *infra, by map[string][]*unstructured.Unstructured) map[string]int {
	out := map[string]int{}
	for n := range s.Objects {
		if o := &s.Objects[n]; o.Replicas != nil && !builtIn(o) && o.UID != "" {
			out[o.UID] = len(living(by[o.UID]))
		}
	}
	return out
}

// plan settles what the VNF's objects are to be by the manifests as they are now.
func (d *Driver) plan(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, by map[string][]*unstructured.Unstructured) error {
	items, p, err := d.items(ctx, x, c)
	if err != nil {
		return err
	}
	w.Digest = p.digest
	var changed map[reference]bool
	if !p.helm { // a chart rolls its pods itself
		if changed, err = c.changedConfig(ctx, s, items); err != nil {
			return err
		}
	}
	// VnfdID is set once all is as the manifests say: until then, the next try begins here.
	after := infra{Namespace: s.Namespace, VnfdID: s.VnfdID}
	had := s.all()
	for n := range items {
		i := &items[n]
		o := i.object
		was := had.find(&o)
		if was != nil {
			o.UID, o.Config = was.UID, was.Config
			if o.Replicas != nil && was.Replicas != nil {
				o.Replicas = was.Replicas
			}
			if !p.helm {
				if err := c.roll(ctx, x, i, &o, s.Namespace, changed, w, by); err != nil {
					return err
				}
			}
		}
		after.Objects = append(after.Objects, o)
	}
	for n := range had.Objects {
		if o := had.Objects[n]; !o.Once && after.find(&o) == nil {
			after.Going = append(after.Going, o)
		}
	}
	after.of(p, s)
	*s = after
	return nil
}

// changedConfig returns the ConfigMaps and Secrets whose content is not what the manifests say now.
func (c *cluster) changedConfig(ctx context.Context, s *infra, items []item) (map[reference]bool, error) {
	out := map[reference]bool{}
	for n := range items {
		i := &items[n]
		if i.groupKind() != "ConfigMap" && i.groupKind() != "Secret" || s.find(&i.object) == nil {
			continue
		}
		live, err := c.get(ctx, &i.object, s.Namespace)
		if err != nil {
			return nil, err
		}
		if live != nil && !sameData(i.Unstructured, live) {
			out[reference{kind: i.Kind, name: i.Name}] = true
		}
	}
	return out, nil
}

// roll notes how the pods of a workload come to use what has changed. Deployments and their like roll by themselves when their
// template changes; ReplicaSets keep their pods, so that these are removed; a pod that is alone is made anew.
func (c *cluster) roll(ctx context.Context, x *lcm.Execution, i *item, o *object, ns string, changed map[reference]bool, w *work, by map[string][]*unstructured.Unstructured) error {
	alone := o.groupKind() == "Pod"
	spec := []string{"spec", "template", "spec"}
	if alone {
		spec = []string{"spec"}
	}
	uses := usesAny(i.Unstructured, changed, spec...)
	switch o.groupKind() {
	case "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet":
		if uses {
			o.Config = x.Op.ID
		}
		return nil
	case "apps/ReplicaSet", "Pod":
	default:
		return nil
	}
	if !uses && !alone {
		live, err := c.get(ctx, o, ns)
		if err != nil {
			return err
		}
		uses = live != nil && !sameImages(i.Unstructured, live, spec...)
	}
	if uses {
		for _, pod := range by[o.UID] {
			v := victim{Pod: pod.GetName(), UID: string(pod.GetUID())}
			if !slices.ContainsFunc(w.Victims, func(o victim) bool { return o.UID == v.UID }) {
				w.Victims = append(w.Victims, v)
			}
		}
	}
	return nil
}

// prune is the step that removes what the VNF had and is not to have any more.
func (d *Driver) prune(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, w, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	going := &infra{Namespace: s.Namespace, Objects: s.Going}
	left, err := d.removeWaves(ctx, x, c, going, s, w, ending{})
	if err != nil {
		return lcm.Progress{}, err
	}
	if len(left) == 0 {
		s.Going, s.VnfdID = nil, x.Instance.VnfdID
		return keep(x, s, w, lcm.Done())
	}
	return keep(x, s, w, lcm.Wait(d.pause(x), "%s is being deleted", left[0].title(s.Namespace)))
}

// podsDelete is the step that removes the pods which are to be made anew. Those that nothing else makes anew, it does.
func (d *Driver) podsDelete(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, w, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	for _, v := range w.Victims {
		if v.UID == "" {
			continue
		}
		target := pods
		target.Name = v.Pod
		if _, err := c.delete(ctx, &target, s.Namespace, deletion{uid: v.UID}); err != nil {
			return lcm.Progress{}, &lcm.Error{Kind: lcm.KindOf(err), Err: err, Detail: "Failed the request to delete a Pod. namespace: " + s.Namespace +
				", pod_name: " + v.Pod + ", Reason: " + reason(err)}
		}
	}
	alone := slices.ContainsFunc(s.Objects, func(o object) bool { return o.groupKind() == "Pod" && affected(&o, w) })
	if !alone {
		return lcm.Done(), nil
	}
	if len(s.Releases) > 0 {
		return d.podsOfReleases(ctx, x, c, s, w)
	}
	items, _, err := d.items(ctx, x, c)
	if err != nil {
		return lcm.Progress{}, err
	}
	if err := unchanged(items, s); err != nil {
		return lcm.Progress{}, err
	}
	moved := references(items)
	for n := range s.Objects {
		o := &s.Objects[n]
		if o.groupKind() != "Pod" || !affected(o, w) {
			continue
		}
		live, err := c.look(ctx, o, s.Namespace, "")
		if err != nil {
			return lcm.Progress{}, err
		}
		if live != nil && slices.ContainsFunc(w.Victims, func(v victim) bool { return v.UID == string(live.GetUID()) }) {
			if x.Now().Sub(x.Begun) >= d.cfg.ReadyTimeout {
				return lcm.Progress{}, d.tooLate(x, healed, "pod "+o.Name+" is still there")
			}
			return lcm.Wait(d.pause(x), "pod %s is being deleted", o.Name), nil
		}
		if wait, err := d.applyOne(ctx, x, c, s, w, &items[n], o, desired(x, &items[n], o, s, moved)); err != nil || wait != "" {
			return d.applied(x, s, w, wait, err)
		}
	}
	return keep(x, s, w, lcm.Done())
}

// affected tells whether a pod that is alone is one that the heal makes anew.
func affected(o *object, w *work) bool {
	return slices.ContainsFunc(w.Victims, func(v victim) bool { return v.Pod == o.Name })
}
