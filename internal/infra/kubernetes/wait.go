package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// purpose is what is waited for.
type purpose int

const (
	created purpose = iota
	scaled
	healed
	operated
)

// readyWait returns the Run of the step that waits until all of the VNF's objects are ready, with as many pods as they are to
// have.
func (d *Driver) readyWait(why purpose) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		s, w, c, err := d.begin(x)
		if err != nil {
			return lcm.Progress{}, err
		}
		var late []trouble
		for n := range s.Objects {
			o := &s.Objects[n]
			if o.Once || instant[o.groupKind()] || !concerns(why, o) {
				continue
			}
			u, err := c.look(ctx, o, s.Namespace, w.Written[o.UID])
			if err != nil {
				return lcm.Progress{}, err
			}
			v := d.readiness(ctx, span{x.Begun, x.Now()}, c, o, s, u)
			switch v.state {
			case failed:
				said := c.explain(ctx, s, trouble{o, v.message, u})
				return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "%s%s", d.prefix(why), said)
			case pending:
				late = append(late, trouble{o, v.message, u})
			}
		}
		if len(late) == 0 {
			if late, err = d.podsLate(ctx, c, s, w, why); err != nil {
				return lcm.Progress{}, err
			}
		}
		if len(late) == 0 {
			return lcm.Done(), nil
		}
		if x.Now().Sub(x.Begun) >= d.cfg.ReadyTimeout+x.Grace() {
			return lcm.Progress{}, d.tooLate(x, why, c.explainAll(ctx, s, late))
		}
		return lcm.Wait(d.pause(x), "%s: %s", late[0].object.title(s.Namespace), late[0].message), nil
	}
}

// concerns tells whether a wait is for an object, too.
func concerns(why purpose, o *object) bool { return why == created || runsPods(o) }

// trouble is an object that is not what it is to be, and why.
type trouble struct {
	object  *object
	message string
	live    *unstructured.Unstructured
}

// podsLate tells which workloads do not have the pods that they are to have: gone ones are still there, or new ones are not
// yet.
func (d *Driver) podsLate(ctx context.Context, c *cluster, s *infra, w *work, why purpose) ([]trouble, error) {
	if !slices.ContainsFunc(s.Objects, func(o object) bool { return o.VDU != "" || o.Replicas != nil && builtIn(&o) }) {
		return nil, nil
	}
	by, err := c.podsBy(ctx, s)
	if err != nil {
		return nil, err
	}
	var late []trouble
	for n := range s.Objects {
		o := &s.Objects[n]
		if !runsPods(o) || o.Once {
			continue
		}
		u, err := c.look(ctx, o, s.Namespace, w.Written[o.UID])
		if err != nil {
			return nil, err
		}
		if message := podsMissing(o, u, by[o.UID], w, why); message != "" {
			late = append(late, trouble{o, message, u})
		}
	}
	return late, nil
}

// podsMissing tells in what a workload's pods are not as they are to be, "" when they are.
func podsMissing(o *object, u *unstructured.Unstructured, list []*unstructured.Unstructured, w *work, why purpose) string {
	for _, pod := range list {
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		switch {
		case slices.ContainsFunc(w.Victims, func(v victim) bool { return v.UID == string(pod.GetUID()) }):
			return "pod " + pod.GetName() + " is still there"
		case phase == "Unknown" && why == scaled:
			return "CNF Scale failed caused by the Pod status is Unknown"
		case phase == "Unknown":
			return "Pod status is found Unknown"
		}
	}
	wanted, known := expected(o, u)
	if had, ok := w.Had[o.UID]; ok && !known {
		wanted, known = had, why == healed
	}
	if !known {
		return ""
	}
	var has []*unstructured.Unstructured
	if why == created || why == healed { // what is going does not count; when something is taken away it is to be gone
		has = living(list)
	} else { // what has come to an end, as evicted pods have, stays until somebody clears it away
		has = slices.DeleteFunc(slices.Clone(list), func(pod *unstructured.Unstructured) bool {
			return pod.GetDeletionTimestamp() == nil && len(living([]*unstructured.Unstructured{pod})) == 0
		})
	}
	if len(has) != wanted {
		return fmt.Sprintf("it has %d pods, not %d", len(has), wanted)
	}
	for _, pod := range living(has) { // the workload's own status may be from before
		if said := podTrouble(pod); said != "" {
			return "pod " + pod.GetName() + ": " + said
		}
	}
	return ""
}

// expected tells how many pods an object is to have, as its spec says now.
func expected(o *object, u *unstructured.Unstructured) (n int, known bool) {
	if u == nil {
		return 0, false
	}
	field := func(fields ...string) (int, bool) {
		n, found, err := unstructured.NestedInt64(u.Object, fields...)
		return int(n), found && err == nil
	}
	switch {
	case o.groupKind() == "apps/DaemonSet":
		return field("status", "desiredNumberScheduled")
	case o.groupKind() == "Pod":
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return 1, phase != "Succeeded"
	case o.Replicas != nil && builtIn(o):
		if n, ok := field("spec", "replicas"); ok {
			return n, true
		}
		return 1, true
	}
	return 0, false
}

// prefix begins what is said of a wait that has failed.
func (d *Driver) prefix(why purpose) string {
	switch why {
	case scaled:
		return "CNF Scale Wait Failed with reason: "
	case healed:
		return "CNF Heal Failed with reason: "
	case operated:
		return "CNF Operate Failed with reason: "
	default:
		return "CNF Create Failed with reason: "
	}
}

// tooLate words that a wait has been too long.
func (d *Driver) tooLate(x *lcm.Execution, why purpose, said string) error {
	seconds := (d.cfg.ReadyTimeout + x.Grace()).Seconds()
	var what string
	switch why {
	case created:
		what = fmt.Sprintf("Resource creation is not completed within %g seconds as creation of stack %s is not completed", seconds, x.Instance.ID)
	case scaled:
		var aspects []string
		for _, a := range x.Plan.Aspects {
			aspects = append(aspects, a.ID)
		}
		what = fmt.Sprintf("CNF Scale failed to complete within %g seconds while waiting for the aspect_id %s to be scaled", seconds, strings.Join(aspects, ", "))
	case healed:
		what = fmt.Sprintf("Resource healing is not completed within %g seconds", seconds)
	default:
		what = fmt.Sprintf("it is not completed within %g seconds", seconds)
	}
	return lcm.Errorf(lcm.KindTerminal, "%s%s: %s", d.prefix(why), what, said)
}

// mostTroubles bounds how many objects an error tells about.
const mostTroubles = 3

// explainAll words what is the matter with objects.
func (c *cluster) explainAll(ctx context.Context, s *infra, list []trouble) string {
	var out []string
	for n, t := range list {
		if n == mostTroubles {
			out = append(out, fmt.Sprintf("and %d more", len(list)-n))
			break
		}
		out = append(out, c.explain(ctx, s, t))
	}
	return strings.Join(out, "; ")
}

// explain words what is the matter with an object: its condition, its pods' and the last event of them. What cannot be read is
// left out.
func (c *cluster) explain(ctx context.Context, s *infra, t trouble) string {
	out := t.object.title(s.Namespace) + " is not ready: " + t.message
	about := []*unstructured.Unstructured{}
	if t.live != nil {
		about = append(about, t.live)
		if condition(t.live, "ReplicaFailure") == "True" {
			out += "; condition " + told(t.live, "ReplicaFailure")
		}
	}
	if runsPods(t.object) || t.object.groupKind() == "batch/Job" {
		if by, err := c.podsBy(ctx, s); err == nil {
			for _, pod := range by[t.object.UID] {
				if said := podTrouble(pod); said != "" {
					if t.object.groupKind() != "Pod" {
						out += "; pod " + pod.GetName() + ": " + said
						about = append([]*unstructured.Unstructured{pod}, about...)
					} else {
						out += "; " + said
					}
					break
				}
			}
		}
	}
	for _, u := range about {
		if event := c.lastEvent(ctx, s.Namespace, u); event != "" {
			return out + "; last event of " + u.GetKind() + " " + u.GetName() + ": " + event
		}
	}
	return out
}

// lastEvent returns what was said last about an object, a warning before anything else.
func (c *cluster) lastEvent(ctx context.Context, ns string, u *unstructured.Unstructured) string {
	ctx, cancel := c.call(ctx)
	defer cancel()
	if u.GetNamespace() == "" {
		ns = defaultNamespace // where events of objects of the cluster are
	}
	events := object{Version: "v1", Kind: "Event", Resource: "events", Namespaced: true}
	list, err := c.resource(&events, ns).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(u.GetUID())).String(), Limit: 500,
	})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	text := func(e *unstructured.Unstructured, key string) string {
		v, _, _ := unstructured.NestedString(e.Object, key)
		return v
	}
	warning := func(e *unstructured.Unstructured) int {
		if text(e, "type") == "Warning" {
			return 1
		}
		return 0
	}
	when := func(e *unstructured.Unstructured) string {
		return cmp.Or(text(e, "lastTimestamp"), text(e, "eventTime"), e.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z"))
	}
	last := slices.MaxFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(warning(&a), warning(&b)), cmp.Compare(when(&a), when(&b)))
	})
	return text(&last, "reason") + ": " + cut(text(&last, "message"))
}
