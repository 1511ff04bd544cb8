package kubernetes

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func named(list []object) []string {
	out := []string{}
	for _, o := range list {
		out = append(out, o.Name)
	}
	return out
}

func TestSorted(t *testing.T) {
	list := []object{
		{Group: "example.org", Kind: "Widget", Name: "cr"}, {Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Name: "hpa"},
		{Group: "apps", Kind: "Deployment", Name: "d1"}, {Group: "apps", Kind: "Deployment", Name: "d2"}, {Group: "apps", Kind: "Deployment", Name: "d3"},
		{Kind: "ConfigMap", Name: "c1"}, {Kind: "Secret", Name: "c2"}, {Kind: "Service", Name: "s1"},
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding", Name: "rb"}, {Group: "rbac.authorization.k8s.io", Kind: "Role", Name: "r1"},
		{Kind: "ServiceAccount", Name: "sa"}, {Kind: "PersistentVolumeClaim", Name: "pvc"}, {Kind: "PersistentVolume", Name: "pv"},
		{Group: "storage.k8s.io", Kind: "StorageClass", Name: "sc"}, {Kind: "ResourceQuota", Name: "rq"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "crd"}, {Kind: "Namespace", Name: "ns"},
		{Group: "example.org", Kind: "Service", Name: "not of the core"},
	}
	sorted(list, func(o object) *object { return &o })
	want := []string{"ns", "crd", "rq", "sa", "r1", "rb", "c1", "c2", "sc", "pv", "pvc", "s1", "d1", "d2", "d3", "cr", "hpa", "not of the core"}
	if diff := cmp.Diff(want, named(list)); diff != "" {
		t.Error(diff)
	}
}

func TestWaves(t *testing.T) {
	list := []object{
		{Kind: "Namespace", Name: "ns"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "crd"},
		{Kind: "ConfigMap", Name: "cm"}, {Kind: "Service", Name: "svc"}, {Group: "apps", Kind: "Deployment", Name: "dep"}, {Kind: "Pod", Name: "pod"},
		{Group: "example.org", Kind: "Widget", Name: "cr"}, {Kind: "Binding", Name: "once", Once: true},
	}
	var got [][]string
	for _, w := range waves(list) {
		got = append(got, named(w))
	}
	want := [][]string{{"cr"}, {"dep", "pod"}, {}, {"cm", "svc"}, {"crd"}, {"ns"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, o := range list {
		if want := o.Name == "dep" || o.Name == "cr" || o.Once; ownsOthers(&o) != want {
			t.Errorf("ownsOthers(%s) = %t", o.Name, !want)
		}
	}
}

func TestClaimed(t *testing.T) {
	set := &object{Group: "apps", Kind: "StatefulSet", Name: "db", Claims: []string{"data", "log-1"}}
	for name, want := range map[string]bool{"data-db-0": true, "log-1-db-12": true, "data-db": false, "data-db-x": false, "data-db-0-copy": false, "other-db-0": false, "data-web-0": false, "": false} {
		if got := set.claimed(name); got != want {
			t.Errorf("claimed(%q) = %t", name, got)
		}
	}
}

func TestRightsFor(t *testing.T) {
	one := 1
	var got []string
	for _, r := range rightsFor([]object{
		{Group: "apps", Kind: "StatefulSet", Resource: "statefulsets", Namespaced: true, Claims: []string{"data"}, Replicas: &one},
	}, "ns") {
		got = append(got, r.String())
	}
	for _, want := range []string{"list pods in namespace ns", "list persistentvolumeclaims in namespace ns", "delete persistentvolumeclaims in namespace ns", "delete statefulsets.apps in namespace ns"} {
		if !slices.Contains(got, want) {
			t.Errorf("the right to %s is not among %v", want, got)
		}
	}
	if ns := rightsFor([]object{{Version: "v1", Kind: "Namespace", Resource: "namespaces", Name: "own"}}, "ns"); !slices.ContainsFunc(ns, func(r right) bool { return r.String() == "list statefulsets.apps in namespace own" }) {
		t.Errorf("what a namespace takes with it cannot be found out: %v", ns)
	}
}
