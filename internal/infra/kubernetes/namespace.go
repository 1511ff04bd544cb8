package kubernetes

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// defaultNamespace is the namespace of VNFs for which nobody names one.
const defaultNamespace = "default"

// namespaceOf decides in which namespace a VNF is: that of additionalParams, else the one that the manifests name, else
// "default". given are the namespaces that the objects of namespaced kinds name, "" where one names none. Terminal: they do
// not agree, or what they name is no name of a namespace.
func namespaceOf(param string, given []string) (string, error) {
	ns, err := chosen(param, given)
	if err != nil {
		return "", err
	}
	if said := validation.IsDNS1123Label(ns); len(said) > 0 {
		return "", lcm.Errorf(lcm.KindTerminal, "%q is no name of a namespace: %s", ns, strings.Join(said, "; "))
	}
	return ns, nil
}

func chosen(param string, given []string) (string, error) {
	if param != "" {
		return param, nil
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(given)))
	switch {
	case len(distinct) > 1:
		return "", lcm.Errorf(lcm.KindTerminal, "There are multiple namespaces in the manifest file for Kubernetes. Only one namespace can be used in one VNF.")
	case len(distinct) == 1 && distinct[0] != "":
		return distinct[0], nil
	}
	return defaultNamespace, nil
}

// place puts an object into the VNF's namespace, and with it what it says of others of the VNF that go there too: the
// ServiceAccounts that a binding names, the Services that the API server is to call. moved are these, by kind and the name and
// namespace that the manifests give.
func place(u *unstructured.Unstructured, o *object, ns string, moved map[reference]bool) {
	if o.Namespaced {
		u.SetNamespace(ns)
	} else {
		u.SetNamespace("")
	}
	switch o.groupKind() {
	case "rbac.authorization.k8s.io/RoleBinding", "rbac.authorization.k8s.io/ClusterRoleBinding":
		each(u, func(subject map[string]any) {
			if subject["kind"] == "ServiceAccount" {
				move(subject, "ServiceAccount", ns, moved)
			}
		}, "subjects")
	case "apiregistration.k8s.io/APIService":
		if service, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "service"); ok {
			move(service, "Service", ns, moved)
		}
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		each(u, func(hook map[string]any) {
			if service, ok, _ := unstructured.NestedFieldNoCopy(hook, "clientConfig", "service"); ok {
				move(service, "Service", ns, moved)
			}
		}, "webhooks")
	case "authorization.k8s.io/LocalSubjectAccessReview":
		if _, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "resourceAttributes", "namespace"); ok {
			_ = unstructured.SetNestedField(u.Object, ns, "spec", "resourceAttributes", "namespace") // it must be its own
		}
	}
}

// reference names an object as manifests do.
type reference struct{ kind, namespace, name string }

func move(to any, kind, ns string, moved map[reference]bool) {
	ref, ok := to.(map[string]any)
	if !ok {
		return
	}
	name, _ := ref["name"].(string)
	was, _ := ref["namespace"].(string)
	if moved[reference{kind, was, name}] {
		ref["namespace"] = ns
	}
}

// each calls f with every map of a list.
func each(u *unstructured.Unstructured, f func(map[string]any), fields ...string) {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, fields...)
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			f(m)
		}
	}
}
