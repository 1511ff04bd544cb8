package kubernetes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

func TestAssign(t *testing.T) {
	flavour := &vnfd.Flavour{ID: "simple", VDUs: []vnfd.VDU{{Name: "VDU1", PropName: "vdu1"}, {Name: "VDU2", PropName: "vdu2"}}}
	workload := func(kind, name string) item {
		return item{object: object{Group: "apps", Kind: kind, Name: name}}
	}
	config := item{object: object{Kind: "ConfigMap", Name: "vdu1"}}
	for _, tt := range []struct {
		name    string
		items   []item
		mapping map[string]mapped
		want    []string
		err     string
	}{
		{name: "by name", items: []item{workload("Deployment", "vdu1"), workload("StatefulSet", "vdu2"), workload("Deployment", "other"), config}, want: []string{"VDU1", "VDU2", "", ""}},
		{
			name: "by mapping", items: []item{workload("Deployment", "web"), workload("StatefulSet", "db"), config},
			mapping: map[string]mapped{"VDU1": {Kind: "Deployment", Name: "web"}, "VDU2": {Kind: "StatefulSet", Name: "db"}}, want: []string{"VDU1", "VDU2", ""},
		},
		{
			name: "a VDU is missing", items: []item{workload("Deployment", "web")},
			mapping: map[string]mapped{"VDU1": {Kind: "Deployment", Name: "web"}}, err: "Parameter input values missing 'vdu_id={VDU2}' in vdu_mapping",
		},
		{
			name: "a workload is missing", items: []item{workload("Deployment", "web"), workload("DaemonSet", "log"), workload("StatefulSet", "db")},
			mapping: map[string]mapped{"VDU1": {Kind: "Deployment", Name: "web"}, "VDU2": {Kind: "StatefulSet", Name: "db"}},
			err:     "Parameter input values missing resource info 'DaemonSet:log' in vdu_mapping",
		},
		{
			name: "the mapped workload is not there", items: []item{workload("Deployment", "web")},
			mapping: map[string]mapped{"VDU1": {Kind: "Deployment", Name: "web"}, "VDU2": {Kind: "StatefulSet", Name: "db"}},
			err:     "vdu_mapping: there is no workload 'StatefulSet:db' for VDU VDU2 in the manifests",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := assign(tt.items, flavour, tt.mapping)
			if tt.err != "" {
				if !lcm.Is(err, lcm.KindTerminal) || err.Error() != tt.err {
					t.Errorf("assign: %v", err)
				}
				return
			}
			var got []string
			for _, i := range tt.items {
				got = append(got, i.VDU)
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestKindIn(t *testing.T) {
	list := []metav1.APIResource{
		{Name: "pods/binding", Kind: "Binding", Verbs: []string{"create"}, Namespaced: true},
		{Name: "bindings", Kind: "Binding", Verbs: []string{"create"}, Namespaced: true},
		{Name: "deployments", Kind: "Deployment", Verbs: []string{"create", "get"}, Namespaced: true},
		{Name: "deployments/scale", Kind: "Scale"}, {Name: "deployments/status", Kind: "Deployment"},
	}
	if k, ok := kindIn(list, "Binding"); !ok || k != (kind{resource: "bindings", namespaced: true, once: true}) {
		t.Errorf("Binding: %+v", k)
	}
	if k, ok := kindIn(list, "Deployment"); !ok || k != (kind{resource: "deployments", namespaced: true, scale: true, status: true}) {
		t.Errorf("Deployment: %+v", k)
	}
	if _, ok := kindIn(list, "Scale"); ok {
		t.Error("Scale is a kind of its own")
	}
}

func TestDefinitions(t *testing.T) {
	crd := doc(t, false, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, subresources: {status: {}, scale: {specReplicasPath: .spec.size}}}
  - {name: v2}
`)
	got := definitions([]manifest{crd.manifest})
	want := map[schema.GroupVersionKind]kind{
		{Group: "example.org", Version: "v1", Kind: "Widget"}: {resource: "widgets", namespaced: true, scale: true, status: true},
		{Group: "example.org", Version: "v2", Kind: "Widget"}: {resource: "widgets", namespaced: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(kind{})); diff != "" {
		t.Error(diff)
	}
}

func TestDesired(t *testing.T) {
	five := 5
	i := doc(t, true, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {app: a}}, spec: {replicas: 2, template: {}}}")
	x := &lcm.Execution{
		Op: &lcm.OpOcc{ID: "op-1"}, Instance: &lcm.Instance{ID: "vnf-1", Info: &sol003.InstantiatedVnfInfo{}, Request: &sol003.InstantiateVnfRequest{}},
	}
	o := i.object
	o.Replicas, o.Config = &five, "op-0"
	want := doc(t, true, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: ns-a, labels: {app: a, vnfm/instance: vnf-1}, annotations: {vnfm/op-occ: op-1}}
spec: {replicas: 5, template: {metadata: {annotations: {vnfm/config: op-0}}}}
`)
	got := desired(x, &i, &o, &infra{Namespace: "ns-a"}, nil)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
	x.Instance.Info.VnfState = sol003.VnfOperationalStateStopped
	got = desired(x, &i, &o, &infra{Namespace: "ns-a"}, nil)
	if n := got.Object["spec"].(map[string]any)["replicas"]; n != int64(0) {
		t.Errorf("a stopped VNF has %v replicas", n)
	}
	if n := i.Object["spec"].(map[string]any)["replicas"]; n != int64(2) {
		t.Errorf("the manifest has been changed: %v", n)
	}
}
