package kubernetes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// stays looks for what the manager says of an object that it has left where it is: in the instance's metadata, and in its log.
func (v *vnf) stays(texts ...string) {
	v.t.Helper()
	v.tells(texts...)
	v.logs(texts...)
}

// logs looks for it in the log alone: after a rollback the instance's metadata are those of before.
func (v *vnf) logs(texts ...string) {
	v.t.Helper()
	log := v.cluster.Nodes[0].LogTail(2000)
	for line := range strings.Lines(log) {
		found := strings.Contains(line, "an object that this VNF instance has brought stays") && strings.Contains(line, v.id)
		for _, text := range texts {
			found = found && strings.Contains(line, text)
		}
		if found {
			return
		}
	}
	v.t.Errorf("the log does not tell that %v stays", texts)
}

// tells looks for what the instance's metadata say of what stays, or will stay, when the CNF is terminated.
func (v *vnf) tells(texts ...string) {
	v.t.Helper()
	got, _ := v.now.Metadata["stays"].(string)
	for _, text := range texts {
		if !strings.Contains(got, text) {
			v.t.Errorf("metadata.stays is %q, and does not say %q", got, text)
		}
	}
	if len(texts) == 0 && got != "" {
		v.t.Errorf("metadata.stays is %q", got)
	}
}

// ownNamespace names a namespace that a CNF brings, which is removed when the test has ended.
func (w *world) ownNamespace(t *testing.T) (ns, manifest string) {
	t.Helper()
	ns = fmt.Sprintf("shared-%d", time.Now().UnixNano())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Log(err)
		}
	})
	return ns, "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + ns + "}\n---\n"
}

// TestNamespaceStays: a namespace that a CNF has brought stays as long as it holds something of others, whatever it is, and none of
// that is touched. What is the CNF's goes; and the namespace goes with the next termination after the others have left.
func TestNamespaceStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim := w.administrator(t)
	notes := strings.NewReplacer("PLURAL", "notes", "SINGULAR", "note", "KIND", "Note").Replace(widgets)
	definition := unstructuredOf(t, objectOnly(notes))
	_, err := w.of(definition, "").Create(t.Context(), definition, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		_ = w.of(definition, "").Delete(context.Background(), definition.GetName(), metav1.DeleteOptions{})
	})
	for name, theirs := range map[string]string{
		"a ConfigMap":       strings.Replace(settings, "settings", "theirs", 1),
		"a Secret":          "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs}\nstringData: {a: one}\n",
		"a claim":           "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: theirs}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n",
		"a custom resource": "apiVersion: example.org/v1\nkind: Note\nmetadata: {name: theirs}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, manifest := w.ownNamespace(t)
			ours := workload("Deployment") + "---\n" + settings
			v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest + ours}), vim, ns)
			params := doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}
			v.completes(v.start("simple", params))
			v.tells() // all of it can be seen
			u := unstructuredOf(t, theirs)
			var made string
			must(t, eventually(t, func(ctx context.Context) (bool, error) { // a definition takes a moment
				live, err := w.of(u, ns).Create(ctx, u, metav1.CreateOptions{})
				if err == nil {
					made = string(live.GetUID())
				}
				return err == nil, nil
			}))
			v.completes(v.task("terminate", doc{"terminationType": "FORCEFUL"}))
			v.gone(ours)
			live, err := w.of(u, ns).Get(t.Context(), "theirs", metav1.GetOptions{})
			must(t, err)
			if string(live.GetUID()) != made || live.GetDeletionTimestamp() != nil {
				t.Errorf("what is another's has been touched: %v", live)
			}
			v.stays("Namespace "+ns, u.GetKind()+" "+ns+"/theirs would go with it, which is not of this VNF instance")

			must(t, w.of(u, ns).Delete(t.Context(), "theirs", metav1.DeleteOptions{}))
			must(t, eventually(t, func(ctx context.Context) (bool, error) {
				_, err := w.of(u, ns).Get(ctx, "theirs", metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			}))
			v.completes(v.start("simple", params))
			v.terminates("FORCEFUL")
			v.tells()
			v.gone(manifest + ours)
		})
	}
}

// TestRollbackKeepsNamespace: nor does the rollback of an instantiation take along what is another's.
func TestRollbackKeepsNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shortWait)
	ns, manifest := w.ownNamespace(t)
	ours := with(lab.Crash, "true", workload("Deployment"))
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest + ours}), w.administrator(t), ns)
	op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
	theirs := unstructuredOf(t, settings)
	must(t, eventually(t, func(ctx context.Context) (bool, error) {
		_, err := w.of(theirs, ns).Create(ctx, theirs, metav1.CreateOptions{})
		return err == nil, nil
	}))
	v.fails(op, "Deployment "+ns+"/vdu1 is not ready")
	v.rollsBack(op)
	v.gone(ours)
	_, err := w.of(theirs, ns).Get(t.Context(), "settings", metav1.GetOptions{})
	must(t, err)
	v.logs("Namespace "+ns, "ConfigMap "+ns+"/settings would go with it")
}

// TestUnseenNamespaceStays: a namespace stays when the account may not see all that is in it, which is told when the CNF is made.
func TestUnseenNamespaceStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	all := []string{"*"}
	account, err := w.Administrator(t.Context(), w.Namespace(t, "accounts"), "narrow",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "pods", "services", "persistentvolumeclaims", "replicationcontrollers"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{"apps", "batch"}, Resources: all, Verbs: all})
	must(t, err)
	t.Cleanup(func() { _ = w.Dismiss(context.Background(), account) })
	token, err := w.Token(t.Context(), account)
	must(t, err)
	ns, manifest := w.ownNamespace(t)
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest + workload("Deployment")}), w.register(t, token, ns), ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
	v.tells("Namespace "+ns+": it will stay when the VNF is terminated", "it lacks the right to list ", " in namespace "+ns)
	v.terminates("FORCEFUL")
	v.gone(workload("Deployment"))
	live, err := w.Client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	must(t, err)
	if live.DeletionTimestamp != nil {
		t.Error("the namespace is going")
	}
	v.stays("Namespace "+ns, "it cannot be told whether something of others would go with it")
}

// TestDefinitionStays: a definition that a CNF has brought stays while others have objects of the kind.
func TestDefinitionStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	ns, elsewhere := w.Namespace(t, "defines"), w.Namespace(t, "uses")
	manifest := strings.NewReplacer("PLURAL", "gadgets", "SINGULAR", "gadget", "KIND", "Gadget").Replace(widgets)
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest}), w.administrator(t), ns)
	params := doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}
	v.completes(v.start("simple", params))
	theirs := unstructuredOf(t, "apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: theirs}\n")
	r := w.objects.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "gadgets"})
	_, err := r.Namespace(elsewhere).Create(t.Context(), theirs, metav1.CreateOptions{})
	must(t, err)
	v.completes(v.task("terminate", doc{"terminationType": "FORCEFUL"}))
	v.stays("CustomResourceDefinition gadgets.example.org", "Gadget "+elsewhere+"/theirs would go with it")
	list, err := r.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].GetName() != "theirs" {
		t.Errorf("there are %v", list.Items)
	}
	must(t, r.Namespace(elsewhere).Delete(t.Context(), "theirs", metav1.DeleteOptions{}))
	v.completes(v.start("simple", params))
	v.terminates("FORCEFUL")
	v.gone(objectOnly(manifest))
}
