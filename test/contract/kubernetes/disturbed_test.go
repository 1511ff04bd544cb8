package kubernetes_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// TestAPIServerDies: an instantiation during which the API server dies and comes back completes, and so does a termination.
func TestAPIServerDies(t *testing.T) {
	t.Parallel()
	shared := newWorld(t, longWait)
	plane := lab.StartOwn(t, lab.Options{})
	w := &world{Plane: plane, api: shared.api, cluster: shared.cluster, objects: shared.objects}
	ns, err := plane.CreateNamespace(t.Context(), "dies")
	must(t, err)
	account, err := plane.Tenant(t.Context(), ns, "user")
	must(t, err)
	token, err := plane.Token(t.Context(), account)
	must(t, err)
	vim := w.register(t, token, ns)
	manifest := with(lab.ReadyAfter, "4s", workload("Deployment"))
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest}), vim, ns)
	op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
	must(t, eventually(t, func(context.Context) (bool, error) { return len(w.podsIn(t, ns)) == 1, nil }))
	must(t, plane.Kill(t.Context(), "kube-apiserver"))
	must(t, plane.Start(t.Context(), "kube-apiserver"))
	v.completes(op)
	v.consistsOf("VDU1", 1)
	op = v.task("terminate", doc{"terminationType": "FORCEFUL"})
	must(t, plane.Restart(t.Context(), "kube-apiserver"))
	v.completes(op)
	if pods := w.podsIn(t, ns); len(pods) > 0 {
		t.Errorf("there are still %v", pods)
	}
}

// TestTokenIsReplaced: the token of an account ends while an operation waits; the operation goes on when the VIM is given
// another.
func TestTokenIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	ns := w.Namespace(t, "token")
	account, err := w.Tenant(t.Context(), ns, "user")
	must(t, err)
	short, secret, err := w.LastingToken(t.Context(), account)
	must(t, err)
	vim := w.register(t, short, ns)
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": with(lab.Pull, "true", workload("Deployment"))}), vim, ns)
	op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
	must(t, eventually(t, func(context.Context) (bool, error) { return len(w.podsIn(t, ns)) == 1, nil }))
	must(t, w.Client.CoreV1().Secrets(ns).Delete(t.Context(), secret, metav1.DeleteOptions{}))
	old, err := kubernetes.NewForConfig(w.ConfigOf(lab.Credential{Token: short}))
	must(t, err)
	must(t, eventually(t, func(ctx context.Context) (bool, error) {
		_, err := old.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		return apierrors.IsUnauthorized(err), nil
	}))
	pod := w.podsIn(t, ns)[0]
	_, err = w.Client.CoreV1().Pods(ns).Patch(t.Context(), pod, "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+lab.Pull+`":null}}}`), metav1.PatchOptions{})
	must(t, err)
	token, err := w.Token(t.Context(), account)
	must(t, err)
	_, err = w.api.Call(t.Context(), http.MethodPut, "/v1.0/vims/"+vim, doc{"vim": doc{"auth_cred": doc{"bearer_token": token}}}, nil)
	must(t, err)
	v.completes(op)
	v.terminates("FORCEFUL")
}

// TestNamespaceGoes: a namespace that is being deleted takes nothing more, and a VNF whose namespace has gone is terminated.
func TestNamespaceGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	admin := w.administrator(t)
	ns, err := w.CreateNamespace(t.Context(), "goes")
	must(t, err)
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment") + "---\n" + settings}), admin, ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
	must(t, w.RemoveNamespace(t.Context(), ns))
	v.terminates("FORCEFUL")

	if ns, err = w.CreateNamespace(t.Context(), "going"); err != nil {
		t.Fatal(err)
	}
	held := unstructuredOf(t, strings.Replace(settings, "{name: settings}", "{name: settings, finalizers: [example.org/held]}", 1))
	_, err = w.of(held, ns).Create(t.Context(), held, metav1.CreateOptions{})
	must(t, err)
	must(t, w.Client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	v = w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment")}), admin, ns)
	op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
	v.fails(op, "Failed to create resource.", "is being terminated")
	v.rollsBack(op)
	_, err = w.of(held, ns).Patch(t.Context(), "settings", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
}
