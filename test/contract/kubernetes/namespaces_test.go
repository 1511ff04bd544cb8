package kubernetes_test

import (
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// in puts a manifest's object into a namespace.
func in(ns, manifest string) string {
	return strings.Replace(manifest, "metadata: {name: ", "metadata: {namespace: "+ns+", name: ", 1)
}

const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: one}\n"

// TestNamespaces sees CNFs through their lives whose namespace is given by parameter, by the manifests, by both, by neither and
// by several, for accounts of the cluster and of one namespace, beside another tenant's CNF, which nobody touches.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	admin := w.administrator(t)

	otherVIM, otherNS := w.tenant(t)
	other := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment")}), otherVIM, otherNS)
	other.completes(other.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": otherNS}))
	before := w.versions(t.Context(), t, otherNS)

	userVIM, own := w.tenant(t)
	elsewhere := w.Namespace(t, "elsewhere")
	for _, tt := range []struct {
		name, vim string
		manifests []string // the Deployment's first
		param     string
		want      string // the namespace, "" when it cannot be done
		err       string
	}{
		{name: "the administrator's, by parameter", vim: admin, manifests: []string{workload("Deployment"), settings}, param: elsewhere, want: elsewhere},
		{name: "the administrator's, by manifest", vim: admin, manifests: []string{in(elsewhere, workload("Deployment")), in(elsewhere, settings)}, want: elsewhere},
		{name: "the administrator's, by neither", vim: admin, manifests: []string{workload("Deployment"), settings}, want: "default"},
		{name: "the user's, by parameter over another", vim: userVIM, manifests: []string{in(elsewhere, workload("Deployment")), settings}, param: own, want: own},
		{name: "the user's, by manifest", vim: userVIM, manifests: []string{in(own, workload("Deployment")), in(own, settings)}, want: own},
		{
			name: "several", vim: admin, manifests: []string{in(elsewhere, workload("Deployment")), in(own, settings)},
			err: "There are multiple namespaces in the manifest file for Kubernetes. Only one namespace can be used in one VNF.",
		},
		{
			name: "one with, one without", vim: admin, manifests: []string{in(elsewhere, workload("Deployment")), settings},
			err: "There are multiple namespaces in the manifest file for Kubernetes. Only one namespace can be used in one VNF.",
		},
		{
			name: "the user's, elsewhere", vim: userVIM, manifests: []string{workload("Deployment"), settings}, param: elsewhere,
			err: "the account lacks the right to create configmaps in namespace " + elsewhere,
		},
		{
			name: "the user's, by neither", vim: userVIM, manifests: []string{workload("Deployment"), settings},
			err: "the account lacks the right to create configmaps in namespace default",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"Files/a.yaml": tt.manifests[0], "Files/b.yaml": tt.manifests[1]}
			v := w.create(t, w.ourPackage(t, files), tt.vim, tt.want)
			params := doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml", "Files/b.yaml"}}
			if tt.param != "" {
				params["namespace"] = tt.param
			}
			op := v.start("simple", params)
			if tt.want == "" {
				v.fails(op, tt.err)
				v.rollsBack(op)
				for _, ns := range []string{elsewhere, own, "default"} {
					v.ns = ns
					v.gone(workload("Deployment") + "\n---\n" + settings)
				}
				must(t, w.api.DeleteInstance(t.Context(), v.id))
				return
			}
			v.completes(op)
			if got := v.now.Metadata["namespace"]; got != tt.want {
				t.Errorf("metadata.namespace is %v", got)
			}
			v.holds(workload("Deployment") + "\n---\n" + settings)
			v.scales("SCALE_OUT", 1, 2, 1)
			v.scales("SCALE_IN", 1, 1, 0)
			for id := range v.members("VDU1") {
				v.heals(id)
			}
			v.completes(v.task("heal", doc{}))
			v.consistsOf("VDU1", 1)
			v.terminates("FORCEFUL")
			v.gone(workload("Deployment") + "\n---\n" + settings)
		})
	}
	if after := w.versions(t.Context(), t, otherNS); !maps.Equal(before, after) {
		t.Errorf("another tenant's objects were %v and are %v", before, after)
	}
	other.consistsOf("VDU1", 1)
	other.terminates("FORCEFUL")
}

// TestOthersObjects: an object of somebody else stays as it is, whatever a CNF does that wants one of its name.
func TestOthersObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim, ns := w.tenant(t)
	theirs := unstructuredOf(t, settings)
	theirs.Object["data"] = doc{"a": "theirs"}
	_, err := w.of(theirs, ns).Create(t.Context(), theirs, metav1.CreateOptions{})
	must(t, err)
	before := w.versions(t.Context(), t, ns)

	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment"), "Files/b.yaml": settings,
		"Files/c.yaml": strings.Replace(settings, "settings", "more", 1)}), vim, ns)
	op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml", "Files/c.yaml", "Files/b.yaml"}, "namespace": ns})
	v.fails(op, "ConfigMap "+ns+"/settings (Files/b.yaml:1) exists in VIM", "is not of this VNF instance")
	must(t, w.api.OpOccTask(t.Context(), op, "retry", nil))
	v.fails(op, "is not of this VNF instance")
	v.rollsBack(op)
	if after := w.versions(t.Context(), t, ns); !maps.Equal(before, after) {
		t.Errorf("there was %v, and is %v", before, after)
	}
	must(t, w.of(theirs, ns).Delete(t.Context(), "settings", metav1.DeleteOptions{}))
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml", "Files/c.yaml", "Files/b.yaml"}, "namespace": ns}))
	v.terminates("FORCEFUL")
}

// TestRights: what an account lacks is told before anything is done; what it need not have, it does without.
func TestRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	id := w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment"), "Files/b.yaml": settings})
	files := []any{"Files/a.yaml", "Files/b.yaml"}
	account := func(t *testing.T, rules ...rbacv1.PolicyRule) (string, string) {
		ns := w.Namespace(t, "narrow")
		a, err := w.Tenant(t.Context(), ns, "narrow", rules...)
		must(t, err)
		token, err := w.Token(t.Context(), a)
		must(t, err)
		return w.register(t, token, ns), ns
	}
	work := []string{"get", "create", "patch", "delete"}
	t.Run("too few", func(t *testing.T) {
		vim, ns := account(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: work},
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "create", "patch"}})
		v := w.create(t, id, vim, ns)
		op := v.start("simple", doc{"lcm-kubernetes-def-files": files, "namespace": ns})
		v.fails(op, "the account lacks the right to delete deployments.apps in namespace "+ns+"; to list pods in namespace "+ns+"; nothing has been done")
		v.gone(workload("Deployment") + "\n---\n" + settings)
		v.rollsBack(op)
	})
	t.Run("no more than needed", func(t *testing.T) {
		vim, ns := account(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: work},
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: work},
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"patch"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "delete"}})
		v := w.create(t, id, vim, ns)
		v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": files, "namespace": ns}))
		v.consistsOf("VDU1", 1)
		v.completes(v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect", "numberOfSteps": 2}))
		v.consistsOf("VDU1", 3)
		op := v.completes(v.task("scale", doc{"type": "SCALE_IN", "aspectId": "vdu1_aspect"}))
		v.consistsOf("VDU1", 2) // whichever the cluster has taken
		if n := len(op.ResourceChanges.AffectedVnfcs); n != 1 {
			t.Errorf("%d VNFCs are affected: %+v", n, op.ResourceChanges.AffectedVnfcs)
		}
		for id := range v.members("VDU1") {
			v.heals(id)
			break
		}
		v.terminates("FORCEFUL")
		v.gone(workload("Deployment") + "\n---\n" + settings)
	})
	t.Run("not to scale", func(t *testing.T) {
		vim, ns := account(t, rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "deployments", "pods", "replicasets"}, Verbs: []string{"*"}})
		v := w.create(t, id, vim, ns)
		v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": files, "namespace": ns}))
		op := v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"})
		v.fails(op, "the account lacks the right to patch deployments.apps/scale in namespace "+ns)
		must(t, w.api.OpOccTask(t.Context(), op, "fail", nil))
		v.consistsOf("VDU1", 1)
		v.terminates("FORCEFUL")
	})
}
