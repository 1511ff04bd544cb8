package crash

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

func decoded(text string) string {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return text
	}
	return string(raw)
}

// agrees implements cloud: each VNFC is a pod that is there, and there is no other; what is the instance's is marked so.
func (p *plane) agrees(l *lane, s *subject, now *sight, vnf *sol003.VnfInstance) error {
	all := now.all
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if vnf.Metadata["namespace"] != p.ns {
		bad("the instance's namespace is %v, not %s", vnf.Metadata["namespace"], p.ns)
	}
	var there, known []string
	for _, u := range all[pods.Resource] {
		there = append(there, u.GetName())
		if ready := conditionOf(u, "Ready"); ready != "True" {
			bad("pod %s is not ready: %s", u.GetName(), ready)
		}
	}
	for _, v := range vnf.InstantiatedVnfInfo.VnfcResourceInfo {
		if name := v.ComputeResource.ResourceId; name != "" {
			known = append(known, name)
		}
	}
	slices.Sort(there)
	slices.Sort(known)
	if d := gocmp.Diff(there, known); d != "" {
		bad("the instance has other pods than the cluster (-cluster +instance):\n%s", d)
	}
	want, _ := l.membersIn(s.shape)
	for _, kind := range []string{deployments.Resource, statefulsets.Resource} {
		for _, u := range all[kind] {
			replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
			if int(replicas) != want/2 {
				bad("%s %s has %d replicas, want %d", u.GetKind(), u.GetName(), replicas, want/2)
			}
		}
	}
	for kind, list := range all {
		for _, u := range list {
			if !p.marked(kind, u, s) {
				bad("%s %s is not marked as the instance's: %v", u.GetKind(), u.GetName(), u.GetLabels())
			}
		}
	}
	return errors.Join(errs...)
}

// marked tells whether an object is marked as the instance's, if it is one that is to be.
func (p *plane) marked(kind string, u *unstructured.Unstructured, s *subject) bool {
	switch {
	case kind == pods.Resource, kind == replicasets.Resource, p.charted && kind == claims.Resource: // the cluster makes them
		return true
	case p.charted && kind != releases:
		return u.GetAnnotations()["meta.helm.sh/release-name"] == released
	}
	return u.GetLabels()[instanceLabel] == s.id
}

func conditionOf(u *unstructured.Unstructured, kind string) any {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == kind {
			return c["status"]
		}
	}
	return nil
}

// The StatefulSet that the CNF is to have, as another's.
const taken = "db"

func takenName(ns string) string { return statefulsets.Resource + " " + ns + "/" + taken }

// takeName makes it, and remembers it among what is others'.
func (p *plane) takeName(ctx context.Context) error {
	err := p.apply(ctx, p.ns, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 0
  serviceName: others
  selector: {matchLabels: {app: others-db}}
  template:
    metadata: {labels: {app: others-db}}
    spec: {containers: [{name: a, image: 'a:1'}]}
`)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, fmt.Errorf("not within %s", settleTime))
	defer cancel()
	last := ""
	var since time.Time
	return harness.Await(ctx, "the other's StatefulSet has settled", func(ctx context.Context) (bool, error) {
		u, err := p.objects.Resource(statefulsets).Namespace(p.ns).Get(ctx, taken, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if now := version(u); now != last || !calm(u) {
			last, since = now, time.Now()
			return false, nil
		}
		if time.Since(since) < 300*time.Millisecond {
			return false, nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.there[takenName(p.ns)] = last
		return true, nil
	})
}

// freeName removes it after a look whether anything that is others' has been touched.
func (p *plane) freeName(ctx context.Context) error {
	u, err := p.objects.Resource(statefulsets).Namespace(p.ns).Get(ctx, taken, metav1.GetOptions{})
	if err != nil {
		return err
	}
	p.mu.Lock()
	was := p.there[takenName(p.ns)]
	delete(p.there, takenName(p.ns))
	p.mu.Unlock()
	if now := version(u); now != was {
		return fmt.Errorf("the other's StatefulSet was %s and is %s", was, now)
	}
	return p.remove(ctx, statefulsets, taken)
}

// removeClaim removes a claim, which must be there.
func (p *plane) removeClaim(ctx context.Context, name string) error {
	return p.remove(ctx, claims, name)
}

// remove deletes an object and waits until it is gone.
func (p *plane) remove(ctx context.Context, kind schema.GroupVersionResource, name string) error {
	r := p.objects.Resource(kind).Namespace(p.ns)
	if err := r.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return harness.Await(ctx, kind.Resource+" "+name+" is gone", func(ctx context.Context) (bool, error) {
		_, err := r.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// mark has the StatefulSet be marked as an instance's, or as nobody's.
func (p *plane) mark(ctx context.Context, instance string) error {
	label := "null"
	if instance != "" {
		label = fmt.Sprintf("%q", instance)
	}
	_, err := p.objects.Resource(statefulsets).Namespace(p.ns).Patch(ctx, taken, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, instanceLabel, label), metav1.PatchOptions{FieldManager: fieldManager})
	return err
}
