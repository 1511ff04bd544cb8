package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// removal returns the step that removes all that an instance has in the cluster, and waits until it is gone.
func (d *Driver) removal(x *lcm.Execution, prefix string) []lcm.Step {
	return []lcm.Step{{Name: prefix + "delete", Effect: true, Timeout: d.cfg.DeleteTimeout + x.Grace() + slack, Run: d.removeAll}}
}

// removeAll is the step that deletes the VNF's objects, wave by wave, those that use others first. What is not the VNF's is
// left alone.
func (d *Driver) removeAll(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, w, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	// helm goes first: it runs the hooks, and asks for all that it has made to go.
	if wait, err := d.uninstall(ctx, x, c, s, w); err != nil || wait != "" {
		if err != nil {
			return lcm.Progress{}, err
		}
		return keep(x, s, w, lcm.Wait(d.cfg.PollMin, "%s", wait))
	}
	left, err := d.removeWaves(ctx, x, c, s.whole(), s, w, endOf(x))
	if err != nil {
		return lcm.Progress{}, err
	}
	if len(left) > 0 {
		return keep(x, s, w, lcm.Wait(d.pause(x), "%s and %d more are being deleted", left[0].title(s.Namespace), len(left)-1))
	}
	for name := range w.Unhelmed {
		if err := c.deleteRevisions(ctx, s.Namespace, name, x.Instance.ID); err != nil {
			return lcm.Progress{}, err
		}
	}
	if x.Op.Operation != sol003.LcmOperationTypeHeal {
		show(x.Instance, namespaceKey, "")
		show(x.Instance, staysKey, worded(w.Stays))
		x.Instance.Infra = nil
		return lcm.Done(), saveWork(x, &work{})
	}
	s.Going = nil
	for n := range s.Objects { // what is made anew is another
		s.Objects[n].UID = ""
	}
	for n := range s.Releases {
		s.Releases[n].Since = ""
		s.unnote(s.Releases[n].Name)
	}
	s.date()
	return keep(x, s, &work{}, lcm.Done())
}

// removeWaves deletes the objects of list wave by wave and returns those of a wave that are not gone yet. What stays keeps the
// claims that it names. Terminal: it takes too long.
func (d *Driver) removeWaves(ctx context.Context, x *lcm.Execution, c *cluster, list, stays *infra, w *work, end ending) ([]object, error) {
	all := waves(list.Objects)
	for w.Wave < len(all) {
		wave := all[w.Wave]
		if w.Wave == waveClaims {
			var err error
			if wave, err = c.claims(ctx, x.Instance.ID, list, stays); err != nil {
				return nil, err
			}
		}
		left, err := d.removeSome(ctx, x, c, list, w, wave, end)
		if err != nil {
			return nil, err
		}
		if len(left) > 0 {
			if limit := d.cfg.DeleteTimeout + x.Grace(); x.Now().Sub(x.Begun) >= limit {
				return nil, d.stays(ctx, c, list, left, limit)
			}
			return left, nil
		}
		w.Wave++
		w.Gone = nil
	}
	return nil, nil
}

// removeSome deletes objects and returns those that are not gone yet.
func (d *Driver) removeSome(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, list []object, end ending) ([]object, error) {
	var left []object
	for n := range list {
		o := &list[n]
		if w.Gone[o.key()] {
			continue
		}
		gone, err := d.remove(ctx, x, c, s, w, o, end)
		if err != nil {
			return nil, err
		}
		if gone {
			w.Gone = with(w.Gone, o.key())
		} else {
			left = append(left, *o)
		}
	}
	if len(left) > 0 && w.Wave <= waveWorkload {
		of := func(o *object) bool { return slices.ContainsFunc(left, func(l object) bool { return l.same(o) }) }
		if err := c.hasten(ctx, s, w, end, x.Now(), of); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// remove deletes one object, if it is the VNF's, and tells whether it is gone. It is read before: between its label and its
// deletion nobody else's hand comes.
func (d *Driver) remove(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, o *object, end ending) (bool, error) {
	key := o.key()
	u, err := d.removing(ctx, c, s, w, o, key)
	switch {
	case err != nil:
		return false, err
	case u == nil:
		return true, nil
	case o.UID != "" && string(u.GetUID()) != o.UID, !o.mine(u, s.Namespace, x.Instance.ID), o.kept(u):
		if u.GetDeletionTimestamp() == nil {
			x.Log.Info("an object is not this VNF instance's and stays", "object", o.title(s.Namespace))
		}
		return true, nil
	case u.GetDeletionTimestamp() != nil:
		return false, nil
	case w.Asked[key]: // what the watch tells may be from before: it has been asked for
		if u, err = c.get(ctx, o, s.Namespace); err != nil || u == nil {
			return u == nil && err == nil, err
		}
		if u.GetDeletionTimestamp() != nil {
			return false, nil
		}
	}
	switch why, err := d.alone(ctx, x, c, s, o, u); {
	case err != nil:
		return false, err
	case why != "":
		x.Log.Warn("an object that this VNF instance has brought stays", "object", o.title(s.Namespace), "why", why)
		if w.Stays == nil {
			w.Stays = map[string]string{}
		}
		w.Stays[o.title(s.Namespace)] = why
		return true, nil
	}
	del := deletion{uid: string(u.GetUID()), version: u.GetResourceVersion(), owner: ownsOthers(o)}
	if o.groupKind() == "Pod" { // to others it means nothing
		del.grace = end.most
	}
	gone, err := c.delete(ctx, o, s.Namespace, del)
	if statusOf(err) == http.StatusConflict { // it has just changed: another look decides
		return false, nil
	}
	if err == nil && !gone {
		w.Asked = with(w.Asked, key)
	}
	return gone, err
}

// removing reads an object that is being removed.
func (d *Driver) removing(ctx context.Context, c *cluster, s *infra, w *work, o *object, key string) (*unstructured.Unstructured, error) {
	k, err := c.kindOf(ctx, o.gvk())
	switch {
	case isGone(err): // and with the kind, all its objects
		return nil, nil //nolint:nilnil // that it is not there is no error
	case err != nil:
		return nil, err
	}
	o.Resource = k.resource
	if !w.Asked[key] {
		return c.get(ctx, o, s.Namespace)
	}
	if c.watching(ctx, o.gvr(), o.in(s.Namespace)).left(o.UID) {
		return nil, nil //nolint:nilnil // as said
	}
	return c.look(ctx, o, s.Namespace, "")
}

func with(set map[string]bool, key string) map[string]bool {
	out := maps.Clone(set)
	if out == nil {
		out = map[string]bool{}
	}
	out[key] = true
	return out
}

// claims returns the claims that StatefulSets among the objects have made of their templates: they carry the instance's label and
// are named after the template, the set and the ordinal. Those that the VNF names itself are not among them.
func (c *cluster) claims(ctx context.Context, instanceID string, list, stays *infra) ([]object, error) {
	if !slices.ContainsFunc(list.Objects, func(o object) bool { return len(o.Claims) > 0 }) {
		return nil, nil
	}
	claim := object{Version: "v1", Kind: "PersistentVolumeClaim", Resource: "persistentvolumeclaims", Namespaced: true}
	ctx, cancel := c.call(ctx)
	defer cancel()
	options := metav1.ListOptions{LabelSelector: instanceLabel + "=" + instanceID}
	if slices.ContainsFunc(list.Objects, func(o object) bool { return o.Release != "" }) {
		options.LabelSelector = "" // charts' claims have the labels of their set's pods alone
	}
	found, err := c.resource(&claim, list.Namespace).List(ctx, options)
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.wrap("list the claims in namespace "+list.Namespace, err)
	}
	var out []object
	for n := range found.Items {
		u := &found.Items[n]
		claim.Name, claim.UID = u.GetName(), string(u.GetUID())
		of := slices.IndexFunc(list.Objects, func(o object) bool { return o.claimed(claim.Name) })
		if of < 0 {
			continue
		}
		set := &list.Objects[of]
		claim.Release, claim.Since, claim.Selector, claim.Claim = set.Release, set.Since, set.Selector, set.Release != ""
		if claim.mine(u, list.Namespace, instanceID) && list.find(&claim) == nil && stays.find(&claim) == nil {
			out = append(out, claim)
		}
	}
	return out, nil
}

// claimed tells whether a claim is named as those are that a StatefulSet makes.
func (o *object) claimed(name string) bool {
	at := strings.LastIndexByte(name, '-')
	if at < 0 {
		return false
	}
	if _, err := strconv.ParseUint(name[at+1:], 10, 32); err != nil {
		return false
	}
	return slices.ContainsFunc(o.Claims, func(claim string) bool { return name[:at] == claim+"-"+o.Name })
}

// stays words that objects are not gone in time, and what they wait for.
func (d *Driver) stays(ctx context.Context, c *cluster, s *infra, left []object, limit time.Duration) error {
	o := &left[0]
	why := ""
	if u, err := c.get(ctx, o, s.Namespace); err == nil && u != nil {
		if f := u.GetFinalizers(); len(f) > 0 {
			why = fmt.Sprintf(", it waits for %v", f)
		}
		if o.Kind == "Namespace" {
			why += ", condition " + told(u, "NamespaceContentRemaining")
		}
		if event := c.lastEvent(ctx, s.Namespace, u); event != "" {
			why += "; last event: " + event
		}
	}
	return lcm.Errorf(lcm.KindTerminal, "CNF Delete Failed with reason: %s is not deleted within %g seconds%s; %d objects are left",
		o.title(s.Namespace), limit.Seconds(), why, len(left))
}
