package kubernetes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// doc is a manifest's object, as the cluster would have it identified.
func doc(t *testing.T, namespaced bool, text string) item {
	t.Helper()
	found, err := fresh().parse("f.yaml", []byte(text))
	if err != nil || len(found) != 1 {
		t.Fatalf("parse %q: %v", text, err)
	}
	gvk := found[0].GroupVersionKind()
	return item{
		manifest: found[0], given: found[0].GetNamespace(),
		object: object{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: found[0].GetName(), Namespaced: namespaced},
	}
}

// TestNamespaceOf is the table by which a VNF's namespace is decided.
func TestNamespaceOf(t *testing.T) {
	inNS := func(ns string) item {
		return doc(t, true, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: '"+ns+"'}}")
	}
	without := doc(t, true, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	ofCluster := doc(t, false, "{apiVersion: v1, kind: Namespace, metadata: {name: ns-z}}")
	const several = "There are multiple namespaces in the manifest file for Kubernetes. Only one namespace can be used in one VNF."
	for _, tt := range []struct {
		name, param string
		docs        []item
		want, err   string
	}{
		{name: "the parameter", param: "ns-a", docs: []item{inNS("ns-b")}, want: "ns-a"},
		{name: "the parameter over several", param: "ns-a", docs: []item{inNS("ns-b"), inNS("ns-c"), without}, want: "ns-a"},
		{name: "a parameter that is no name", param: "a/../b", docs: []item{without}, err: `"a/../b" is no name of a namespace: `},
		{name: "a manifest's that is no name", docs: []item{inNS("Ns_A")}, err: `"Ns_A" is no name of a namespace: `},
		{name: "the parameter, none in the manifests", param: "ns-a", docs: []item{without}, want: "ns-a"},
		{name: "the manifests'", docs: []item{inNS("ns-b"), inNS("ns-b")}, want: "ns-b"},
		{name: "the manifests', with objects of the cluster", docs: []item{ofCluster, inNS("ns-b")}, want: "ns-b"},
		{name: "none anywhere", docs: []item{without, without}, want: "default"},
		{name: "several", docs: []item{inNS("ns-b"), inNS("ns-c")}, err: several},
		{name: "one with, one without", docs: []item{inNS("ns-b"), without}, err: several},
		{name: "only objects of the cluster", docs: []item{ofCluster}, want: "default"},
		{name: "no objects", want: "default"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := namespaceOf(tt.param, namespaces(tt.docs))
			if tt.err != "" {
				if !lcm.Is(err, lcm.KindTerminal) || !strings.HasPrefix(err.Error(), tt.err) {
					t.Errorf("namespaceOf: %v", err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("namespaceOf = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	account := doc(t, true, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: default}}")
	service := doc(t, true, "{apiVersion: v1, kind: Service, metadata: {name: hook}}")
	moved := references([]item{account, service})
	for _, tt := range []struct {
		name       string
		namespaced bool
		text, want string
	}{
		{
			name: "an object", namespaced: true,
			text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}",
			want: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns-a}}",
		},
		{
			name: "an object of the cluster",
			text: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a, namespace: default}}",
			want: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}",
		},
		{
			name: "a binding of the VNF's account, and of another", namespaced: true,
			text: "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, subjects: [{kind: ServiceAccount, name: sa, namespace: default}, {kind: ServiceAccount, name: sa, namespace: other}, {kind: User, name: sa}]}",
			want: "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: ns-a}, subjects: [{kind: ServiceAccount, name: sa, namespace: ns-a}, {kind: ServiceAccount, name: sa, namespace: other}, {kind: User, name: sa}]}",
		},
		{
			name: "a webhook of the VNF's service",
			text: "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: x, clientConfig: {service: {name: hook, namespace: default}}}, {name: y, clientConfig: {service: {name: other, namespace: default}}}]}",
			want: "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: x, clientConfig: {service: {name: hook, namespace: ns-a}}}, {name: y, clientConfig: {service: {name: other, namespace: default}}}]}",
		},
		{
			name: "a review of what is allowed in its namespace", namespaced: true,
			text: "{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {namespace: default}, spec: {user: a, resourceAttributes: {verb: get, namespace: default}}}",
			want: "{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {namespace: ns-a}, spec: {user: a, resourceAttributes: {verb: get, namespace: ns-a}}}",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, want := doc(t, tt.namespaced, tt.text), doc(t, tt.namespaced, tt.want)
			place(got.Unstructured, &got.object, "ns-a", moved)
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}
