package kubernetes

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestForeigner: what the cluster puts into every namespace, and what is made of what is the VNF's or gone, is nobody's.
func TestForeigner(t *testing.T) {
	s := &infra{Namespace: "ns", Objects: []object{{Group: "example.org", Version: "v1", Kind: "Widget", Name: "one", UID: "ours"}}}
	one := func(kind, name string, owners ...metav1.OwnerReference) resident {
		return resident{&object{Kind: kind}, metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(kind + "/" + name), OwnerReferences: owners}}
	}
	token := one("Secret", "default-token-abcde")
	token.Annotations = map[string]string{"kubernetes.io/service-account.name": "default"}
	for _, tt := range []struct {
		name  string
		found []resident
		some  bool // there may be others
		want  string
	}{
		{name: "nothing"},
		{name: "the cluster's", found: []resident{one("ServiceAccount", "default"), one("ConfigMap", "kube-root-ca.crt"), token}},
		{name: "an account of somebody", found: []resident{one("ServiceAccount", "default"), one("ServiceAccount", "theirs")}, want: "theirs"},
		{name: "a secret that is only named so", found: []resident{one("Secret", "default-token-abcde")}, want: "default-token-abcde"},
		{name: "made of ours", found: []resident{one("ConfigMap", "a", metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Widget", Name: "one", UID: "ours"})}},
		{name: "made of what is gone", found: []resident{one("Pod", "a", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "gone"})}},
		{
			name: "made of what is elsewhere", some: true, want: "a",
			found: []resident{one("Widget", "a", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "theirs", UID: "theirs"})},
		},
		{name: "made of who knows what", found: []resident{one("ConfigMap", "a", metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Other", Name: "a", UID: "other"})}, want: "a"},
		{
			name: "made of somebody's", want: "theirs",
			found: []resident{one("Pod", "a", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "theirs", UID: "ReplicaSet/theirs"}), one("ReplicaSet", "theirs")},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if r := foreigner(tt.found, s, !tt.some); r != nil {
				got = r.Name
			}
			if got != tt.want {
				t.Errorf("it is %q", got)
			}
		})
	}
}
