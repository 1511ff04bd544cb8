package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// removal returns the step that removes all that an instance has in the cluster, and waits until it is gone.
func (d *Driver) removal(prefix string) []lcm.Step {
	return []lcm.Step{{Name: prefix + "delete", Effect: true, Timeout: d.cfg.DeleteTimeout + slack, Run: d.removeAll}}
}

// removeAll is the step that deletes the VNF's objects, wave by wave, those that use others first. What is not the VNF's is
// left alone.
func (d *Driver) removeAll(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	s, w, c, err := d.begin(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	force := false
	if x.Op.Operation == sol003.LcmOperationTypeTerminate {
		var req sol003.TerminateVnfRequest
		if err := x.Params(&req); err != nil {
			return lcm.Progress{}, err
		}
		force = req.TerminationType == sol003.TerminateVnfRequestTerminationTypeForceful
	}
	all := waves(s.Objects)
	for w.Wave < len(all) {
		list := all[w.Wave]
		if w.Wave == waveClaims {
			if list, err = c.claims(ctx, s); err != nil {
				return lcm.Progress{}, err
			}
		}
		left, err := d.removeSome(ctx, x, c, s, w, list, force)
		if err != nil {
			return lcm.Progress{}, err
		}
		if len(left) == 0 {
			w.Wave++
			w.Gone = nil
			continue
		}
		if x.Now().Sub(x.Begun) >= d.cfg.DeleteTimeout {
			return lcm.Progress{}, d.stays(ctx, c, s, left)
		}
		return keep(x, s, w, lcm.Wait(d.pause(x), "%s and %d more are being deleted", left[0].title(s.Namespace), len(left)-1))
	}
	if x.Op.Operation != sol003.LcmOperationTypeHeal {
		metadata := maps.Clone(x.Instance.Metadata)
		delete(metadata, namespaceKey)
		x.Instance.Metadata = metadata
		x.Instance.Infra = nil
		return lcm.Done(), saveWork(x, &work{})
	}
	for n := range s.Objects { // what is made anew is another
		s.Objects[n].UID = ""
	}
	return keep(x, s, &work{}, lcm.Done())
}

// removeSome deletes objects and returns those that are not gone yet.
func (d *Driver) removeSome(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, list []object, force bool) ([]object, error) {
	var left []object
	for n := range list {
		o := &list[n]
		if w.Gone[o.key()] {
			continue
		}
		gone, err := d.remove(ctx, x, c, s, w, o)
		if err != nil {
			return nil, err
		}
		if gone {
			w.Gone = with(w.Gone, o.key())
		} else {
			left = append(left, *o)
		}
	}
	if force && len(left) > 0 && w.Wave <= waveWorkload {
		if err := c.kill(ctx, s, func(o *object) bool {
			return slices.ContainsFunc(left, func(l object) bool { return l.same(o) })
		}); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// remove deletes one object, if it is the VNF's, and tells whether it is gone.
func (d *Driver) remove(ctx context.Context, x *lcm.Execution, c *cluster, s *infra, w *work, o *object) (bool, error) {
	key := o.key()
	del := deletion{uid: o.UID, owner: ownsOthers(o)}
	if !w.Asked[key] && o.UID != "" {
		gone, err := c.delete(ctx, o, s.Namespace, del)
		if err != nil || gone {
			return gone && err == nil, err
		}
		w.Asked = with(w.Asked, key)
		return false, nil
	}
	// Either it has been asked for, and the watch tells, or an earlier try may have made it without getting to say so.
	u, err := d.removing(ctx, c, s, w, o, key)
	switch {
	case err != nil:
		return false, err
	case u == nil:
		return true, nil
	case o.UID != "" && string(u.GetUID()) != o.UID, o.UID == "" && !ours(u, x.Instance.ID):
		if u.GetDeletionTimestamp() == nil {
			x.Log.Info("an object is not this VNF instance's and stays", "object", o.title(s.Namespace))
		}
		return true, nil
	case u.GetDeletionTimestamp() != nil:
		return false, nil
	}
	del.uid = string(u.GetUID())
	gone, err := c.delete(ctx, o, s.Namespace, del)
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

// claims returns the claims that StatefulSets have made of their templates: they carry the set's labels and are named after the
// template, the set and the ordinal.
func (c *cluster) claims(ctx context.Context, s *infra) ([]object, error) {
	var out []object
	for n := range s.Objects {
		o := &s.Objects[n]
		if len(o.Claims) == 0 {
			continue
		}
		names := make([]string, len(o.Claims))
		for i, claim := range o.Claims {
			names[i] = regexp.QuoteMeta(claim)
		}
		ofSet, err := regexp.Compile(fmt.Sprintf("^(%s)-%s-[0-9]+$", joined(names), regexp.QuoteMeta(o.Name)))
		if err != nil {
			return nil, fmt.Errorf("find the claims of %s: %w", o.title(s.Namespace), err)
		}
		claim := object{Version: "v1", Kind: "PersistentVolumeClaim", Resource: "persistentvolumeclaims", Namespaced: true}
		bounded, cancel := c.call(ctx)
		list, err := c.resource(&claim, s.Namespace).List(bounded, metav1.ListOptions{LabelSelector: labels.Set(o.Selector).String()})
		cancel()
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, c.wrap("list the claims of "+o.title(s.Namespace), err)
		}
		for _, u := range list.Items {
			if ofSet.MatchString(u.GetName()) && s.find(&object{Kind: claim.Kind, Name: u.GetName()}) == nil {
				claim.Name, claim.UID = u.GetName(), string(u.GetUID())
				out = append(out, claim)
			}
		}
	}
	return out, nil
}

func joined(names []string) string {
	out := ""
	for n, name := range names {
		if n > 0 {
			out += "|"
		}
		out += name
	}
	return out
}

// stays words that objects are not gone in time, and what they wait for.
func (d *Driver) stays(ctx context.Context, c *cluster, s *infra, left []object) error {
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
		o.title(s.Namespace), d.cfg.DeleteTimeout.Seconds(), why, len(left))
}
