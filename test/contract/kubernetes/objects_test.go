package kubernetes_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// clusterWide are the kinds of the tests' manifests that are not in a namespace.
var clusterWide = []string{"Namespace", "PersistentVolume", "StorageClass", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "CustomResourceDefinition"}

// plural returns a kind's name in paths.
func plural(kind string) string {
	k := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(k, "class"), strings.HasSuffix(k, "ress"):
		return k + "es"
	case strings.HasSuffix(k, "policy"):
		return strings.TrimSuffix(k, "y") + "ies"
	}
	return k + "s"
}

// objectsIn returns the objects of a manifest that stay, reviews and bindings left out.
func objectsIn(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, text := range strings.Split("\n"+manifest, "\n---") {
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(text), &u.Object))
		if len(u.Object) == 0 || strings.HasSuffix(u.GetKind(), "Review") || u.GetKind() == "Binding" {
			continue
		}
		out = append(out, u)
	}
	return out
}

func unstructuredOf(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	return objectsIn(t, manifest)[0]
}

// of is how an object is reached when the VNF is in a namespace.
func (w *world) of(u *unstructured.Unstructured, ns string) dynamic.ResourceInterface {
	gvk := u.GroupVersionKind()
	r := w.objects.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural(gvk.Kind)})
	if slices.Contains(clusterWide, gvk.Kind) {
		return r
	}
	return r.Namespace(ns)
}

// holds checks that all objects of a manifest are there, the VNF's and as the manifest has them.
func (v *vnf) holds(manifest string) {
	v.t.Helper()
	v.holdsWith(manifest, nil)
}

// holdsWith does so for workloads that have another number of replicas by now.
func (v *vnf) holdsWith(manifest string, replicas *int) {
	v.t.Helper()
	for _, want := range objectsIn(v.t, manifest) {
		if _, given, _ := unstructured.NestedFieldNoCopy(want.Object, "spec", "replicas"); given && replicas != nil {
			must(v.t, unstructured.SetNestedField(want.Object, int64(*replicas), "spec", "replicas"))
		}
		live, err := v.of(want, v.ns).Get(v.t.Context(), want.GetName(), metav1.GetOptions{})
		if err != nil {
			v.t.Errorf("%s %s: %v", want.GetKind(), want.GetName(), err)
			continue
		}
		if live.GetLabels()["vnfm/instance"] != v.id {
			v.t.Errorf("%s %s has the labels %v", want.GetKind(), want.GetName(), live.GetLabels())
		}
		unstructured.RemoveNestedField(want.Object, "metadata", "namespace")
		unstructured.RemoveNestedField(want.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(want.Object, "spec", "template", "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(want.Object, "status")
		if what := differs(want.Object, live.Object, ""); what != "" {
			v.t.Errorf("%s %s is not as its manifest: %s", want.GetKind(), want.GetName(), what)
		}
	}
}

// gone checks that none of a manifest's objects is there.
func (v *vnf) gone(manifest string) {
	v.t.Helper()
	for _, u := range objectsIn(v.t, manifest) {
		live, err := v.of(u, v.ns).Get(v.t.Context(), u.GetName(), metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			v.t.Errorf("%s %s is still there: %v %v", u.GetKind(), u.GetName(), live, err)
		}
	}
}

// differs tells where live lacks what want has, "" when it lacks nothing.
func differs(want, live any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok && len(w) > 0 {
			return fmt.Sprintf("%s: %v is not a map", at, live)
		}
		for key, v := range w {
			if key == "subjects" || key == "stringData" { // they go where the VNF is; it is kept as data
				continue
			}
			if what := differs(v, l[key], at+"."+key); what != "" {
				return what
			}
		}
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return fmt.Sprintf("%s: %v instead of %v", at, live, want)
		}
		for n := range w {
			if what := differs(w[n], l[n], fmt.Sprintf("%s[%d]", at, n)); what != "" {
				return what
			}
		}
	default:
		a, b := fmt.Sprint(want), fmt.Sprint(live)
		if a == b || want == nil || live == nil && (a == "" || a == "false" || a == "0") { // what is nothing is left out
			return ""
		}
		if p, err := resource.ParseQuantity(a); err == nil {
			if q, err := resource.ParseQuantity(b); err == nil && p.Cmp(q) == 0 {
				return ""
			}
		}
		return fmt.Sprintf("%s: %s instead of %s", at, b, a)
	}
	return ""
}

// podsIn returns the names of the pods in a namespace that are not going, sorted.
func (w *world) podsIn(t *testing.T, ns string) []string {
	t.Helper()
	list, err := w.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	out := []string{}
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// consistsOf checks that the instance's VNFCs of a VDU are so many, and are the pods that there are in its namespace.
func (v *vnf) consistsOf(vdu string, n int) {
	v.t.Helper()
	var have []string
	for _, pod := range v.members(vdu) {
		have = append(have, pod)
	}
	slices.Sort(have)
	if there := v.podsIn(v.t, v.ns); len(have) != n || !slices.Equal(have, there) {
		v.t.Errorf("%s is %v, and there are %v; it is to be %d", vdu, have, there, n)
	}
}

// versions returns the resource versions of all that there is of a few kinds in a namespace.
func (w *world) versions(ctx context.Context, t *testing.T, ns string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "secrets"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "replicasets"},
		{Version: "v1", Resource: "serviceaccounts"}, {Version: "v1", Resource: "persistentvolumeclaims"},
	} {
		list, err := w.objects.Resource(r).Namespace(ns).List(ctx, metav1.ListOptions{})
		must(t, err)
		for _, u := range list.Items {
			if u.GetName() == "kube-root-ca.crt" { // every namespace gets it, sooner or later
				continue
			}
			out[r.Resource+"/"+u.GetName()] = u.GetResourceVersion()
		}
	}
	return out
}
