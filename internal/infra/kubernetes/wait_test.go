package kubernetes

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestPodsMissing(t *testing.T) {
	two := 2
	deployment := &object{Group: "apps", Kind: "Deployment", Name: "vdu1", Replicas: &two}
	live := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
	pod := func(name, phase, ready string) *unstructured.Unstructured {
		u := podNamed(name)
		u.SetUID(types.UID("uid-of-" + name))
		u.Object["status"] = map[string]any{"phase": phase, "conditions": []any{map[string]any{"type": "Ready", "status": ready}}}
		return u
	}
	going := pod("going", "Running", "True")
	_ = unstructured.SetNestedField(going.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	goingEnded := pod("ended", "Failed", "False")
	_ = unstructured.SetNestedField(goingEnded.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	victimPod := pod("victim", "Running", "True")
	victimPod.SetUID("v")
	for _, tt := range []struct {
		name string
		list []*unstructured.Unstructured
		why  purpose
		want string
	}{
		{"all", []*unstructured.Unstructured{pod("a", "Running", "True"), pod("b", "Running", "True")}, created, ""},
		{"too few", []*unstructured.Unstructured{pod("a", "Running", "True")}, created, "it has 1 pods, not 2"},
		{"one goes, after a creation", []*unstructured.Unstructured{pod("a", "Running", "True"), pod("b", "Running", "True"), going}, created, ""},
		{"one was evicted, after a scale", []*unstructured.Unstructured{pod("a", "Running", "True"), pod("b", "Running", "True"), pod("c", "Failed", "False")}, scaled, ""},
		{"one has ended, after a stop", []*unstructured.Unstructured{pod("a", "Running", "True"), pod("b", "Running", "True"), pod("c", "Succeeded", "False")}, operated, ""},
		{"one goes that has ended", []*unstructured.Unstructured{pod("a", "Running", "True"), pod("b", "Running", "True"), goingEnded}, scaled, "it has 3 pods, not 2"},
		{"one goes, after a scale", []*unstructured.Unstructured{pod("a", "Running", "True"), pod("b", "Running", "True"), going}, scaled, "it has 3 pods, not 2"},
		{"one is not ready", []*unstructured.Unstructured{pod("a", "Running", "True"), pod("b", "Pending", "False")}, healed, "pod b: its phase is Pending, condition Ready is False"},
		{"the healed one is there", []*unstructured.Unstructured{pod("a", "Running", "True"), victimPod}, healed, "pod victim is still there"},
		{"unknown, after a scale", []*unstructured.Unstructured{pod("a", "Running", "True"), pod("b", "Unknown", "")}, scaled, "CNF Scale failed caused by the Pod status is Unknown"},
		{"unknown", []*unstructured.Unstructured{pod("a", "Running", "True"), pod("b", "Unknown", "")}, healed, "Pod status is found Unknown"},
	} {
		if got := podsMissing(deployment, live, tt.list, &work{Victims: []victim{{UID: "v"}}}, tt.why); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
