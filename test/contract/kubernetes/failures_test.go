package kubernetes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// with puts an annotation on the pods of a workload.
func with(key, value, manifest string) string {
	return strings.Replace(manifest, "metadata: {labels: {app: vdu1}}", fmt.Sprintf("metadata: {labels: {app: vdu1}, annotations: {%q: %q}}", key, value), 1)
}

// TestFailures: what cannot become of a CNF is told with the object, its condition and what was said of it last; a rollback
// leaves nothing.
func TestFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shortWait)
	for _, tt := range []struct {
		name, manifest string
		texts          []string
		stays          bool // something has been made
	}{
		{
			name: "pods that crash", manifest: with(lab.Crash, "true", workload("Deployment")), stays: true,
			texts: []string{"Resource creation is not completed " + tooLong, "Deployment NS/vdu1 is not ready: ", "pod vdu1-", "container web is waiting: CrashLoopBackOff"},
		},
		{
			name: "an image that is not there", manifest: with(lab.Pull, "true", workload("StatefulSet")), stays: true,
			texts: []string{"StatefulSet NS/vdu1 is not ready: Ready: 0/1", "pod vdu1-0: container web is waiting: ImagePullBackOff"},
		},
		{
			name: "a pod that nothing can run", stays: true,
			manifest: "apiVersion: v1\nkind: Pod\nmetadata: {name: vdu1}\nspec: {nodeSelector: {no: such}, containers: [{name: a, image: 'a:1'}]}\n",
			texts:    []string{"Pod NS/vdu1 is not ready", "condition PodScheduled is False: Unschedulable", "last event of Pod vdu1: FailedScheduling: "},
		},
		{
			name: "a job that fails", stays: true,
			manifest: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {backoffLimit: 0, template: {metadata: {annotations: {vnfm.lab/exit-code: '1'}}, spec: {restartPolicy: Never, containers: [{name: a, image: 'a:1'}]}}}\n",
			texts:    []string{"Job NS/once is not ready: condition Failed is True: BackoffLimitExceeded"},
		},
		{
			name: "a claim that nobody fills", stays: true,
			manifest: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: none-such, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n",
			texts:    []string{`PersistentVolumeClaim NS/data is not ready: its phase is "Pending"`, "last event of PersistentVolumeClaim data: ProvisioningFailed: "},
		},
		{
			name: "more than the quota", stays: true,
			manifest: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: '0'}}\n---\n" + workload("ReplicaSet"),
			texts:    []string{"ReplicaSet NS/vdu1 is not ready", "last event of ReplicaSet vdu1: FailedCreate: ", "exceeded quota: few"},
		},
		{name: "a kind that there is not", manifest: "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\n", texts: []string{"Files/a.yaml:1: ", "knows no kind Widget of apiVersion example.org/v1"}},
		{name: "bad YAML", manifest: settings + "---\nkind: [\n", texts: []string{"Files/a.yaml: line 6"}},
		{name: "no name", manifest: settings + "---\napiVersion: v1\nkind: ConfigMap\n", texts: []string{"Files/a.yaml:6: the ConfigMap has no metadata.name"}},
		{name: "twice the same", manifest: settings + "---\n" + settings, texts: []string{"Files/a.yaml:6: ConfigMap settings is there already, at Files/a.yaml:1"}},
		{name: "a field that there is not", manifest: strings.Replace(workload("Deployment"), "replicas: 1", "replicaz: 1", 1), texts: []string{"Failed to create resource. namespace: NS, name: vdu1, kind: Deployment (Files/a.yaml:2), Reason: ", ".spec.replicaz"}},
		{
			name: "a name that is too long", manifest: strings.Replace(settings, "settings", strings.Repeat("a", 260), 1),
			texts: []string{"Failed to create resource.", "must be no more than 253 "},
		},
		{name: "half of it wrong", manifest: settings + "---\n" + strings.Replace(workload("Deployment"), "app: vdu1}}\n  template", "app: other}}\n  template", 1), texts: []string{"`selector` does not match template `labels`"}, stays: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			vim, ns := w.tenant(t)
			before := w.versions(t.Context(), t, ns)
			v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": tt.manifest}), vim, ns)
			op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
			for n, text := range tt.texts {
				tt.texts[n] = strings.ReplaceAll(text, "NS", ns)
			}
			v.fails(op, tt.texts...)
			if made := len(w.versions(t.Context(), t, ns)) > len(before); made != tt.stays && tt.name != "more than the quota" {
				t.Errorf("something has been made: %t", made)
			}
			v.rollsBack(op)
			if pods := w.podsIn(t, ns); len(pods) > 0 {
				t.Errorf("after the rollback there are %v", pods)
			}
			if after := w.versions(t.Context(), t, ns); len(after) != len(before) {
				t.Errorf("after the rollback there is %v, and was %v", after, before)
			}
			must(t, w.api.DeleteInstance(t.Context(), v.id))
		})
	}
}

// TestScaleFails: a scale-out that comes to nothing is rolled back to what was there.
func TestScaleFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shortWait)
	vim, ns := w.tenant(t)
	quota := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: '2'}}\n"
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment"), "Files/q.yaml": quota}), vim, ns)
	v.completes(v.start("steps", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml", "Files/q.yaml"}, "namespace": ns}))
	v.consistsOf("VDU1", 1)
	first := v.members("VDU1")
	op := v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"})
	v.fails(op, "CNF Scale failed to complete "+tooLong+" while waiting for the aspect_id vdu1_aspect to be scaled", "Deployment "+ns+"/vdu1 is not ready", "exceeded quota")
	v.rollsBack(op)
	v.consistsOf("VDU1", 1)
	for id, pod := range v.members("VDU1") {
		if first[id] != pod {
			t.Errorf("the VNFC %s is pod %s, and was %v", id, pod, first)
		}
	}
	if v.level() != 0 {
		t.Errorf("the level is %d", v.level())
	}
	v.terminates("FORCEFUL")
}

// TestRetry: what has failed goes on once the reason is gone.
func TestRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shortWait)
	vim, ns := w.tenant(t)
	none := unstructuredOf(t, "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none}\nspec: {hard: {pods: '0'}}\n")
	_, err := w.of(none, ns).Create(t.Context(), none, metav1.CreateOptions{})
	must(t, err)
	alone := "apiVersion: v1\nkind: Pod\nmetadata: {name: vdu1}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: a, image: 'a:1'}]}\n"
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": settings + "---\n" + alone}), vim, ns)
	op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
	v.fails(op, "exceeded quota: none")
	must(t, w.api.OpOccTask(t.Context(), op, "retry", nil))
	v.fails(op, "exceeded quota: none")
	must(t, w.of(none, ns).Delete(t.Context(), "none", metav1.DeleteOptions{}))
	must(t, w.api.OpOccTask(t.Context(), op, "retry", nil))
	v.completes(op)
	v.consistsOf("VDU1", 1)
	v.holds(settings + "---\n" + alone)
	v.terminates("GRACEFUL")
	v.gone(settings + "---\n" + alone)
}

func eventually(t *testing.T, done func(ctx context.Context) (bool, error)) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return harness.Await(ctx, "it is so", done)
}

// TestCancel: a wait is cut off, and what was begun is rolled back.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim, ns := w.tenant(t)
	manifest := with(lab.Pull, "true", workload("Deployment"))
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest}), vim, ns)
	op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
	must(t, eventually(t, func(context.Context) (bool, error) { return len(w.podsIn(t, ns)) == 1, nil }))
	must(t, w.api.OpOccTask(t.Context(), op, "cancel", doc{"cancelMode": "FORCEFUL"}))
	v.fails(op, "canceled (FORCEFUL) as requested")
	v.rollsBack(op)
	v.gone(manifest)
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: PLURAL, singular: SINGULAR, kind: KIND}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {status: {}}
---
apiVersion: example.org/v1
kind: KIND
metadata: {name: one}
spec: {size: 3}
`

// TestCustomResources: a kind that a CNF brings itself is ready when its controller says so, and fails with what it says.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shortWait)
	vim := w.administrator(t)
	for name, of := range map[string]struct {
		status doc
		texts  []string
	}{
		"ready":   {status: doc{"observedGeneration": 1, "conditions": []any{doc{"type": "Ready", "status": "True"}}}},
		"stalled": {status: doc{"conditions": []any{doc{"type": "Stalled", "status": "True", "reason": "Broken", "message": "no such part"}}}, texts: []string{"/one is not ready", "no such part"}},
		"late":    {status: doc{"conditions": []any{doc{"type": "Ready", "status": "False", "reason": "Filling", "message": "half full"}}}, texts: []string{"not completed " + tooLong, "half full"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := w.Namespace(t, "custom")
			kind := "Widget" + strings.ToUpper(name[:1]) + name[1:]
			manifest := strings.NewReplacer("PLURAL", strings.ToLower(kind)+"s", "SINGULAR", strings.ToLower(kind), "KIND", kind).Replace(widgets)
			v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest}), vim, ns)
			op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
			r := w.objects.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: strings.ToLower(kind) + "s"}).Namespace(ns)
			must(t, eventually(t, func(ctx context.Context) (bool, error) { // its controller
				u, err := r.Get(ctx, "one", metav1.GetOptions{})
				if err != nil {
					return false, nil // not yet
				}
				u.Object["status"] = of.status
				_, err = r.UpdateStatus(ctx, u, metav1.UpdateOptions{})
				return err == nil, nil
			}))
			if of.texts != nil {
				v.fails(op, of.texts...)
				v.rollsBack(op)
			} else {
				v.completes(op)
				v.holds(manifest)
				v.terminates("FORCEFUL")
			}
			v.gone(objectOnly(manifest))
		})
	}
}

// objectOnly returns the definition's part of a manifest: when it is gone, its objects are.
func objectOnly(manifest string) string {
	definition, _, _ := strings.Cut(manifest, "\n---")
	return definition
}

// TestNamespaceOfItsOwn: a CNF may bring its namespace.
func TestNamespaceOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	ns := fmt.Sprintf("own-%d", time.Now().UnixNano())
	manifest := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + ns + "}\n---\n" + workload("Deployment") + "\n---\n" +
		"apiVersion: v1\nkind: Pod\nmetadata: {name: vdu2}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: a, image: 'a:1'}]}\n"
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest}), w.administrator(t), ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
	v.holds(manifest)
	v.terminates("FORCEFUL")
	v.gone(manifest)
}
