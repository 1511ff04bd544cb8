package kubernetes_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// claimsIn returns the claims of a namespace with their uids, those that are going left out.
func (w *world) claimsIn(t *testing.T, ns string) map[string]types.UID {
	t.Helper()
	list, err := w.Client.CoreV1().PersistentVolumeClaims(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	out := map[string]types.UID{}
	for _, c := range list.Items {
		if c.DeletionTimestamp == nil {
			out[c.Name] = c.UID
		}
	}
	return out
}

// relabel has an object of a manifest be another instance's.
func (w *world) relabel(t *testing.T, ns, manifest, instance string) {
	t.Helper()
	u := unstructuredOf(t, manifest)
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"vnfm/instance":%q}}}`, instance)
	_, err := w.of(u, ns).Patch(t.Context(), u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}

// TestClaimsOfAnother: a CNF that may not have its StatefulSet, since there is another's of the name, leaves the other's data alone;
// its own go with it.
func TestClaimsOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim, ns := w.tenant(t)
	id := w.ourPackage(t, map[string]string{"Files/a.yaml": workload("StatefulSet")})
	params := doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}
	first := w.create(t, id, vim, ns)
	first.completes(first.start("simple", params))
	before := w.claimsIn(t, ns)
	if len(before) != 1 {
		t.Fatalf("the claims are %v", before)
	}
	second := w.create(t, id, vim, ns)
	op := second.start("simple", params)
	second.fails(op, "is not of this VNF instance")
	second.rollsBack(op)
	if after := w.claimsIn(t, ns); !maps.Equal(before, after) {
		t.Errorf("the claims were %v and are %v", before, after)
	}
	first.terminates("FORCEFUL")
	if after := w.claimsIn(t, ns); len(after) > 0 {
		t.Errorf("after the termination there are the claims %v", after)
	}
}

// TestBothAtOnce: of two CNFs that are made at once and want the same objects, one has them, and the rollback of the other takes
// nothing away.
func TestBothAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim, ns := w.tenant(t)
	manifest := settings + "---\n" + workload("Deployment")
	id := w.ourPackage(t, map[string]string{"Files/a.yaml": manifest})
	params := doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}
	both := [2]*vnf{w.create(t, id, vim, ns), w.create(t, id, vim, ns)}
	for range 3 {
		var ops [2]string
		for n, v := range both {
			ops[n] = v.start("simple", params)
		}
		winner := -1
		for n, v := range both {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			o, err := v.api.AwaitOpOcc(ctx, ops[n])
			cancel()
			must(t, err)
			if o.OperationState == sol003.LcmOperationStateCompleted {
				if winner >= 0 {
					t.Fatal("both have the same objects")
				}
				winner = n
				continue
			}
			v.fails(ops[n], "is not of this VNF instance")
			v.rollsBack(ops[n])
		}
		if winner < 0 {
			t.Fatal("neither has its objects")
		}
		both[winner].holds(manifest)
		both[winner].completes(both[winner].task("terminate", doc{"terminationType": "FORCEFUL"}))
		both[winner].gone(manifest)
	}
}

// TestTakenOver: what has been given to another instance is neither scaled nor removed.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim, ns := w.tenant(t)
	manifest := settings + "---\n" + workload("Deployment")
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest}), vim, ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
	w.relabel(t, ns, workload("Deployment"), "another")
	w.relabel(t, ns, settings, "another")
	op := v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"})
	v.fails(op, "Deployment "+ns+"/vdu1 is not this VNF instance's any more")
	must(t, w.api.OpOccTask(t.Context(), op, "fail", nil))
	deployment, err := w.Client.AppsV1().Deployments(ns).Get(t.Context(), "vdu1", metav1.GetOptions{})
	must(t, err)
	if *deployment.Spec.Replicas != 1 {
		t.Errorf("it has %d replicas", *deployment.Spec.Replicas)
	}
	w.relabel(t, ns, workload("Deployment"), v.id)
	v.scales("SCALE_OUT", 1, 2, 1)
	v.terminates("FORCEFUL")
	v.gone(workload("Deployment"))
	theirs := unstructuredOf(t, settings)
	_, err = w.of(theirs, ns).Get(t.Context(), "settings", metav1.GetOptions{})
	must(t, err)
}

// TestGivenUp: what an operation has made or was to remove that was given up is not forgotten.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim, ns := w.tenant(t)
	theirs := unstructuredOf(t, strings.Replace(settings, "settings", "theirs", 1))
	_, err := w.of(theirs, ns).Create(t.Context(), theirs, metav1.CreateOptions{})
	must(t, err)
	foreign := strings.Replace(settings, "settings", "theirs", 1)
	files := []any{"Files/a.yaml", "Files/b.yaml"}

	t.Run("heal", func(t *testing.T) {
		v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment"), "Files/b.yaml": settings}), vim, ns)
		v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": files, "namespace": ns}))
		id := w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment"), "Files/b.yaml": foreign})
		op, err := w.api.Modify(t.Context(), v.id, doc{"vnfdId": id})
		must(t, err)
		v.completes(op)
		for id := range v.members("VDU1") {
			op = v.task("heal", doc{"vnfcInstanceId": []any{id}})
		}
		v.fails(op, "ConfigMap "+ns+"/theirs", "is not of this VNF instance")
		must(t, w.api.OpOccTask(t.Context(), op, "fail", nil))
		v.holds(settings)
		v.terminates("FORCEFUL")
		v.gone(settings + "---\n" + workload("Deployment"))
	})
	t.Run("instantiate", func(t *testing.T) {
		admin := w.administrator(t)
		elsewhere := w.Namespace(t, "instead")
		v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": settings, "Files/b.yaml": foreign}), admin, ns)
		op := v.start("simple", doc{"lcm-kubernetes-def-files": files, "namespace": ns})
		v.fails(op, "is not of this VNF instance")
		must(t, w.api.OpOccTask(t.Context(), op, "fail", nil))
		v.holds(settings)

		v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": files, "namespace": elsewhere}))
		v.gone(settings)
		v.ns = elsewhere
		v.holds(settings + "---\n" + foreign)
		v.terminates("FORCEFUL")
	})
	if _, err := w.of(theirs, ns).Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("the other's object: %v", err)
	}
}

// TestHealOfTheImpossible: a CNF that could not be made anew is not removed to be healed.
func TestHealOfTheImpossible(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim, ns := w.tenant(t)
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment"), "Files/b.yaml": settings}), vim, ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml", "Files/b.yaml"}, "namespace": ns}))
	before := v.uids()
	for _, tt := range []struct{ manifest, text string }{
		{"apiVersion: example.org/v1\nkind: NoSuch\nmetadata: {name: a}\n", "knows no kind NoSuch"},
		{"apiVersion: v1\nkind: Namespace\nmetadata: {name: not-theirs-to-make}\n", "the account lacks the right to create namespaces in the cluster"},
	} {
		op, err := w.api.Modify(t.Context(), v.id, doc{"vnfdId": w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment"), "Files/b.yaml": tt.manifest})})
		must(t, err)
		v.completes(op)
		op = v.task("heal", doc{})
		v.fails(op, tt.text)
		must(t, w.api.OpOccTask(t.Context(), op, "fail", nil))
		if after := v.uids(); !maps.Equal(before, after) {
			t.Errorf("the pods were %v and are %v", before, after)
		}
		v.holds(settings)
	}
	v.terminates("FORCEFUL")
}
