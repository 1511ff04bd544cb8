package kubernetes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fleet is a kind of somebody's with a scale subresource, and one of it that is VDU1.
const fleet = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: fleets, singular: fleet, kind: Fleet}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.crew.size, statusReplicasPath: .status.crew}
---
apiVersion: example.org/v1
kind: Fleet
metadata: {name: vdu1}
spec: {crew: {size: 1}}
`

// sail is the controller of the fleet in a namespace, until the test ends.
func (w *world) sail(t *testing.T, ns string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	over := make(chan struct{})
	t.Cleanup(func() { cancel(); <-over })
	go func() {
		defer close(over)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				w.reconcile(ctx, ns) // what fails is tried again
			}
		}
	}()
}

// reconcile does once what the controller does: there are to be the pods vdu1-0, vdu1-1, …
func (w *world) reconcile(ctx context.Context, ns string) {
	fleets := w.objects.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "fleets"}).Namespace(ns)
	u, err := fleets.Get(ctx, "vdu1", metav1.GetOptions{})
	if err != nil || u.GetDeletionTimestamp() != nil {
		return
	}
	size, _, _ := unstructured.NestedInt64(u.Object, "spec", "crew", "size")
	isController, zero, ready := true, int64(0), int64(0)
	pods := w.Client.CoreV1().Pods(ns)
	for n := range size {
		name := fmt.Sprintf("vdu1-%d", n)
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			_, _ = pods.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "example.org/v1", Kind: "Fleet", Name: "vdu1", UID: u.GetUID(), Controller: &isController},
				}},
				Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{Name: "a", Image: "a:1"}}},
			}, metav1.CreateOptions{})
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				ready++
			}
		}
	}
	if pods.Delete(ctx, fmt.Sprintf("vdu1-%d", size), metav1.DeleteOptions{}) == nil {
		return
	}
	u.Object["status"] = map[string]any{
		"crew": ready, "observedGeneration": u.GetGeneration(),
		"conditions": []any{map[string]any{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[ready == size], "reason": "Counted", "message": fmt.Sprintf("%d of %d", ready, size)}},
	}
	_, _ = fleets.UpdateStatus(ctx, u, metav1.UpdateOptions{})
}

// TestCustomScale: what has a scale subresource is scaled by it, healed and ended, whatever its kind.
func TestCustomScale(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	ns := w.Namespace(t, "fleet")
	w.sail(t, ns)
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": fleet}), w.administrator(t), ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
	v.consistsOf("VDU1", 1)
	v.holds(fleet)
	v.scales("SCALE_OUT", 1, 2, 1)
	v.scales("SCALE_IN", 1, 1, 0)
	v.holds(fleet)
	for id := range v.members("VDU1") {
		uids := v.uids()
		v.completes(v.task("heal", doc{"vnfcInstanceId": []string{id}}))
		v.consistsOf("VDU1", 1)
		if pod := v.members("VDU1")[id]; pod != "vdu1-0" || v.uids()[pod] == uids[pod] {
			t.Errorf("VNFC %s is pod %s as before: %v, now %v", id, pod, uids, v.uids())
		}
	}
	v.terminates("FORCEFUL")
	v.gone(objectOnly(fleet))
	if left := w.podsIn(t, ns); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
