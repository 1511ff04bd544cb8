package kubernetes

import (
	"context"
	"maps"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// instantiation returns the steps that make a VNF.
func (d *Driver) instantiation() []lcm.Step {
	return []lcm.Step{
		{Name: "manifests", Timeout: d.cfg.ReadyTimeout, Run: d.manifests},
		{Name: "access", Timeout: d.cfg.ReadyTimeout, Run: d.access},
		{Name: "apply", Effect: true, Timeout: d.cfg.ReadyTimeout + slack, Run: d.applyAll},
		{Name: "ready", Timeout: d.cfg.ReadyTimeout + slack, RetryFrom: "apply", Run: d.readyWait(created)},
		{Name: "inventory", Timeout: d.cfg.ReadyTimeout, RetryFrom: "apply", Run: d.inventory},
	}
}

// begin gives a step what it goes on with: what is kept about the instance, the operation's work so far, and the VIM.
func (d *Driver) begin(x *lcm.Execution) (*infra, *work, *cluster, error) {
	s, err := loadInfra(x.Instance)
	if err != nil {
		return nil, nil, nil, err
	}
	w, err := loadWork(x)
	if err != nil {
		return nil, nil, nil, err
	}
	c, err := d.connect(x.Target)
	return s, w, c, err
}

// leftovers is the step that removes what an earlier instantiation has left that was given up, in the same VIM: in another the
// instance cannot be instantiated.
func (d *Driver) leftovers(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	if len(s.Objects)+len(s.Going)+len(s.Releases) == 0 {
		return lcm.Done(), nil
	}
	return d.removeAll(ctx, x)
}

// check is the step that finds out whether a VNF can be made anew, before what there is of it is removed.
func (d *Driver) check(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, _, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	items, p, err := d.items(ctx, x, c)
	if err != nil {
		return lcm.Progress{}, err
	}
	after, err := settled(x, s, items, p)
	if err != nil {
		return lcm.Progress{}, err
	}
	if err := c.review(ctx, append(rightsForReleases(after), rightsFor(after.Objects, after.Namespace)...)); err != nil {
		return lcm.Progress{}, err
	}
	return lcm.Done(), c.foretell(ctx, x, after)
}

// manifests is the step that settles what the VNF consists of, and where: nothing has been made yet.
func (d *Driver) manifests(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, w, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	items, p, err := d.items(ctx, x, c)
	if err != nil {
		return lcm.Progress{}, err
	}
	if s, err = settled(x, s, items, p); err != nil {
		return lcm.Progress{}, err
	}
	show(x.Instance, namespaceKey, s.Namespace)
	show(x.Instance, staysKey, "")
	*w = work{Digest: p.digest}
	return keep(x, s, w, lcm.Done())
}

// settled returns what the VNF is to consist of, and where, by its manifests, and what it was before.
func settled(x *lcm.Execution, before *infra, items []item, p *params) (*infra, error) {
	s := &infra{Namespace: before.Namespace, VnfdID: x.Instance.VnfdID}
	if x.Op.Operation == sol003.LcmOperationTypeInstantiate || s.Namespace == "" {
		var err error
		if s.Namespace, err = namespaceOf(p.Namespace, namespaces(items)); err != nil {
			return nil, err
		}
	}
	for _, i := range items {
		o := i.object
		if err := replicasAt(x, &o); err != nil {
			return nil, err
		}
		if was := before.find(&o); was != nil && x.Op.Operation == sol003.LcmOperationTypeHeal {
			o.Replicas, o.Config = was.Replicas, was.Config
		}
		s.Objects = append(s.Objects, o)
	}
	s.of(p, before)
	return s, nil
}

// show puts a text where the API shows it, or takes away what is there when it is "".
func show(i *lcm.Instance, key, text string) {
	if text == "" && i.Metadata[key] == nil {
		return
	}
	metadata := maps.Clone(i.Metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	if metadata[key] = text; text == "" {
		delete(metadata, key)
	}
	i.Metadata = metadata
}

// replicasAt gives an object as many replicas as its VDU has at the instantiation level that the request names. When it names
// none, the manifest counts.
func replicasAt(x *lcm.Execution, o *object) error {
	req := requestOf(x)
	if o.VDU == "" || o.Replicas == nil || req.InstantiationLevelId == "" || x.Flavour == nil {
		return nil
	}
	n, err := x.Flavour.InstanceCount(o.VDU, req.InstantiationLevelId)
	if err != nil {
		return lcm.Errorf(lcm.KindTerminal, "%w", err)
	}
	o.Replicas = &n
	return nil
}

// access is the step that finds out whether the account may do what is to be done, before anything is.
func (d *Driver) access(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, _, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	if err := c.review(ctx, append(rightsForReleases(s), rightsFor(s.Objects, s.Namespace)...)); err != nil {
		return lcm.Progress{}, err
	}
	return lcm.Done(), c.foretell(ctx, x, s)
}

// applyAll is the step that makes the VNF's objects, or brings those that are there to what they are to be.
func (d *Driver) applyAll(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, w, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	if len(s.Releases) > 0 {
		p, err := paramsOf(x)
		if err != nil {
			return lcm.Progress{}, err
		}
		return d.deploy(ctx, x, c, s, w, p)
	}
	// What is waited for is looked at before the files are read once more.
	if wait, err := d.needed(ctx, x, c, s, w); err != nil || wait != "" {
		return d.applied(x, s, w, wait, err)
	}
	if wait, err := c.held(ctx, s, w); err != nil || wait != "" {
		return d.applied(x, s, w, wait, err)
	}
	items, p, err := d.items(ctx, x, c)
	if err != nil {
		return lcm.Progress{}, err
	}
	if err := unchanged(items, s); err != nil {
		return lcm.Progress{}, err
	}
	if w.Digest != "" && w.Digest != p.digest {
		return lcm.Progress{}, errChanged
	}
	moved := references(items)
	for first := true; w.Applied < len(items); first = false {
		n := w.Applied
		o := &s.Objects[n]
		if !first {
			if wait, err := d.needed(ctx, x, c, s, w); err != nil || wait != "" {
				return d.applied(x, s, w, wait, err)
			}
		}
		wait, err := d.applyOne(ctx, x, c, s, w, &items[n], o, desired(x, &items[n], o, s, moved))
		if w.Held = wait != ""; err != nil || w.Held {
			return d.applied(x, s, w, wait, err)
		}
		w.Applied++
	}
	return keep(x, s, w, lcm.Done())
}

// held tells which object the last run has waited for that is still being deleted, "" for none.
func (c *cluster) held(ctx context.Context, s *infra, w *work) (string, error) {
	if !w.Held || w.Applied >= len(s.Objects) {
		return "", nil
	}
	o := &s.Objects[w.Applied]
	live, err := c.look(ctx, o, s.Namespace, "")
	if err != nil || live == nil || live.GetDeletionTimestamp() == nil {
		return "", err
	}
	return o.title(s.Namespace) + " is being deleted", nil
}

// applied ends a run of the step that applies, with what it waits for: what has been applied so far is kept.
func (d *Driver) applied(x *lcm.Execution, s *infra, w *work, wait string, err error) (lcm.Progress, error) {
	if err != nil {
		return lcm.Progress{}, err
	}
	if waited := x.Now().Sub(x.Begun); waited >= d.cfg.ReadyTimeout {
		return lcm.Progress{}, d.tooLate(x, created, wait)
	}
	return keep(x, s, w, lcm.Wait(d.pause(x), "%s", wait))
}

// unchanged tells whether the manifests are still those that were settled: files at an address may have changed.
func unchanged(items []item, s *infra) error {
	same := len(items) == len(s.Objects)
	for n := 0; same && n < len(items); n++ {
		same = items[n].gvk() == s.Objects[n].gvk() && items[n].Name == s.Objects[n].Name
	}
	if !same {
		return errChanged
	}
	return nil
}

var errChanged = lcm.Errorf(lcm.KindTerminal, "the CNF definition files are not what they were when the operation began")

// needed tells what the next object needs that is not ready yet, "" when nothing is: what it takes to make sense of the rest must
// be there first.
func (d *Driver) needed(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work) (string, error) {
	n := w.Applied
	if n == 0 || n >= len(s.Objects) {
		return "", nil
	}
	before := rank(&s.Objects[n-1])
	if before > rankWaits || rank(&s.Objects[n]) <= before {
		return "", nil
	}
	return d.rankReady(ctx, x, c, s, w, before)
}

// rankReady tells what of a rank is not ready yet, "" when all is.
func (d *Driver) rankReady(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, of int) (string, error) {
	for n := range s.Objects[:w.Applied] {
		o := &s.Objects[n]
		if rank(o) != of {
			continue
		}
		u, err := c.look(ctx, o, s.Namespace, w.Written[o.UID])
		if err != nil {
			return "", err
		}
		st := d.readiness(ctx, span{x.Begun, x.Now()}, c, o, s, u)
		switch st.state {
		case failed:
			return "", lcm.Errorf(lcm.KindTerminal, "%s: %s", o.title(s.Namespace), st.message)
		case pending:
			return o.title(s.Namespace) + ": " + st.message, nil
		}
	}
	return "", nil
}

// applyOne applies one object. It returns what must be waited for before it can be.
func (d *Driver) applyOne(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, i *item, o *object, u *unstructured.Unstructured) (string, error) {
	if o.Once {
		return "", d.postOne(ctx, c, s, i, o, u)
	}
	live, err := c.get(ctx, o, s.Namespace)
	switch {
	case err != nil:
		return "", err
	case live == nil:
	case !ours(live, x.Instance.ID):
		return "", foreign(x, c, s, i)
	case live.GetDeletionTimestamp() != nil:
		return o.title(s.Namespace) + " of an earlier try is being deleted", nil
	case ended(o, live):
		gone, err := c.delete(ctx, o, s.Namespace, deletion{uid: string(live.GetUID()), owner: ownsOthers(o)})
		if err != nil || !gone {
			return o.title(s.Namespace) + " has ended and is deleted to be made anew", err
		}
		live = nil
	}
	done, err := c.apply(ctx, o, s.Namespace, x.Instance.ID, u, live)
	if statusOf(err) == http.StatusConflict { // it has come, or gone, between
		again, e := c.get(ctx, o, s.Namespace)
		switch {
		case e != nil:
			return "", e
		case again != nil && !ours(again, x.Instance.ID):
			return "", foreign(x, c, s, i)
		case again == nil || live == nil || again.GetUID() != live.GetUID():
			return o.title(s.Namespace) + " is being changed by somebody else", nil
		}
	}
	if live != nil && w.Updating && statusOf(err) == http.StatusUnprocessableEntity && (o.groupKind() == "Pod" || o.groupKind() == "batch/Job") {
		// It cannot be changed: it is made anew.
		_, err := c.delete(ctx, o, s.Namespace, deletion{uid: string(live.GetUID()), owner: ownsOthers(o)})
		return o.title(s.Namespace) + " is deleted to be made anew", err
	}
	if err != nil {
		return "", d.refusal(c, s, i, err)
	}
	o.UID = string(done.GetUID())
	w.wrote(o.UID, done.GetResourceVersion())
	return "", nil
}

// foreign words that an object is somebody else's.
func foreign(x *lcm.Execution, c *cluster, s *infra, i *item) error {
	return lcm.Errorf(lcm.KindTerminal, "%s exists in VIM %s and is not of this VNF instance: it has no label %s=%s",
		i.asked(s.Namespace), c.name, instanceLabel, x.Instance.ID)
}

// postOne posts what leaves nothing behind. A pod that is bound as it is to be has been bound before.
func (d *Driver) postOne(ctx context.Context, c *cluster, s *infra, i *item, o *object, u *unstructured.Unstructured) error {
	_, err := c.post(ctx, o, s.Namespace, u)
	if statusOf(err) == http.StatusConflict && o.groupKind() == "Binding" {
		pod := pods
		pod.Name = o.Name
		live, e := c.get(ctx, &pod, s.Namespace)
		node, _, _ := unstructured.NestedString(u.Object, "target", "name")
		if e == nil && live != nil {
			if is, _, _ := unstructured.NestedString(live.Object, "spec", "nodeName"); is == node {
				return nil
			}
			return lcm.Errorf(lcm.KindTerminal, "Failed to create resource. %s: %s", i.asked(s.Namespace), reason(err))
		}
	}
	if err != nil {
		return d.refusal(c, s, i, err)
	}
	return nil
}

// refusal words that an object cannot be made.
func (d *Driver) refusal(c *cluster, s *infra, i *item, err error) error {
	err = discreet(i, err)
	wrapped := c.wrap("apply "+i.title(s.Namespace), err)
	kind := lcm.KindOf(wrapped)
	if terminating(err) {
		kind = lcm.KindTerminal
	}
	if kind == lcm.KindCanceled {
		return wrapped
	}
	if isGone(err) && i.Namespaced {
		c.forget(i.gvk()) // the kind may be gone
	}
	return &lcm.Error{Kind: kind, Err: err, Detail: "Failed to create resource. namespace: " + i.in(s.Namespace) + ", name: " + i.Name +
		", kind: " + i.Kind + " (" + i.at + "), Reason: " + reason(err)}
}

// ended tells whether an object has come to an end that applying it again does not change.
func ended(o *object, live *unstructured.Unstructured) bool {
	switch o.groupKind() {
	case "Pod":
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		return phase == "Failed"
	case "batch/Job":
		return condition(live, "Failed") == "True"
	}
	return false
}
