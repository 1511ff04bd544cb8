package kubernetes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// workload is a manifest of a scalable workload that is VDU1.
func workload(kind string) string {
	more := ""
	if kind == "StatefulSet" {
		more = `
  serviceName: vdu1
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}`
	}
	return `
apiVersion: apps/v1
kind: ` + kind + `
metadata: {name: vdu1}
spec:
  replicas: 1
  selector: {matchLabels: {app: vdu1}}
  template:
    metadata: {labels: {app: vdu1}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: 'web:1'}]` + more + "\n"
}

// level returns the instance's level of the aspect.
func (v *vnf) level() int {
	for _, s := range v.now.InstantiatedVnfInfo.ScaleStatus {
		if s.AspectId == "vdu1_aspect" {
			return s.ScaleLevel
		}
	}
	return -1
}

func (v *vnf) scales(kind string, steps, pods, level int) *sol003.VnfLcmOpOcc {
	v.t.Helper()
	before := v.members("VDU1")
	op := v.completes(v.task("scale", doc{"type": kind, "aspectId": "vdu1_aspect", "numberOfSteps": steps}))
	v.consistsOf("VDU1", pods)
	if v.level() != level {
		v.t.Errorf("the level is %d, not %d", v.level(), level)
	}
	stayed := 0
	for id, pod := range v.members("VDU1") {
		if before[id] == pod {
			stayed++
		}
	}
	if stayed != min(pods, len(before)) {
		v.t.Errorf("%d of %d VNFCs are as before: %v, now %v", stayed, len(before), before, v.members("VDU1"))
	}
	change := sol003.ChangeTypeAdded
	if kind == "SCALE_IN" {
		change = sol003.ChangeTypeRemoved
	}
	n := 0
	for _, c := range op.ResourceChanges.AffectedVnfcs {
		if c.ChangeType == change {
			n++
		}
	}
	if diff := pods - len(before); n != diff && n != -diff {
		v.t.Errorf("%d VNFCs are reported %s, not %d: %+v", n, change, diff, op.ResourceChanges.AffectedVnfcs)
	}
	return op
}

// heals has VNFCs healed: they keep their ids and get other pods.
func (v *vnf) heals(ids ...string) {
	v.t.Helper()
	uids := v.uids()
	before := v.members("VDU1")
	v.completes(v.task("heal", doc{"vnfcInstanceId": ids}))
	v.consistsOf("VDU1", len(before))
	after, now := v.members("VDU1"), v.uids()
	for id, pod := range before {
		healed := slices.Contains(ids, id)
		if _, there := after[id]; !there {
			v.t.Errorf("VNFC %s is gone", id)
		}
		if same := uids[pod] == now[after[id]]; same == healed {
			v.t.Errorf("VNFC %s (healed: %t) had pod %s (%s), and has %s (%s)", id, healed, pod, uids[pod], after[id], now[after[id]])
		}
	}
}

// uids returns the uids of the pods in the VNF's namespace.
func (v *vnf) uids() map[string]string {
	v.t.Helper()
	list, err := v.Client.CoreV1().Pods(v.ns).List(v.t.Context(), metav1.ListOptions{})
	must(v.t, err)
	out := map[string]string{}
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			out[p.Name] = string(p.UID)
		}
	}
	return out
}

// life sees a scalable CNF through all operations.
func (v *vnf) life(flavour string, delta int, params doc, manifest string) {
	v.t.Helper()
	has := func(replicas int) { v.t.Helper(); v.holdsWith(manifest, &replicas) }
	v.completes(v.start(flavour, params))
	v.consistsOf("VDU1", 1)
	v.holds(manifest)
	v.scales("SCALE_OUT", 2, 1+2*delta, 2)
	has(1 + 2*delta)
	v.scales("SCALE_IN", 1, 1+delta, 1)
	has(1 + delta)
	ids := slices.Sorted(maps.Keys(v.members("VDU1")))
	v.heals(ids[:1]...)
	v.heals(ids...)
	has(1 + delta)

	v.completes(v.task("operate", doc{"changeStateTo": "STOPPED", "stopType": "FORCEFUL"}))
	if pods := v.podsIn(v.t, v.ns); len(pods) > 0 || v.now.InstantiatedVnfInfo.VnfState != sol003.VnfOperationalStateStopped {
		v.t.Errorf("the stopped VNF is %s and has %v", v.now.InstantiatedVnfInfo.VnfState, pods)
	}
	has(0)
	v.completes(v.task("operate", doc{"changeStateTo": "STARTED"}))
	v.consistsOf("VDU1", 1+delta)
	if got := slices.Sorted(maps.Keys(v.members("VDU1"))); !slices.Equal(got, ids) {
		v.t.Errorf("the VNFCs are %v after a stop and a start, not %v", got, ids)
	}
	has(1 + delta)

	v.completes(v.task("heal", doc{}))
	v.consistsOf("VDU1", 1+delta)
	has(1 + delta)
	if v.level() != 1 {
		v.t.Errorf("the level is %d after the whole VNF has been healed", v.level())
	}
	for id := range v.members("VDU1") {
		if slices.Contains(ids, id) {
			v.t.Errorf("VNFC %s is the one before the whole VNF was healed", id)
		}
	}
	v.terminates("FORCEFUL")
	v.gone(manifest)
	claims, err := v.Client.CoreV1().PersistentVolumeClaims(v.ns).List(v.t.Context(), metav1.ListOptions{})
	must(v.t, err)
	if pods := v.podsIn(v.t, v.ns); len(pods) > 0 || len(claims.Items) > 0 {
		v.t.Errorf("%v and %d claims are left", pods, len(claims.Items))
	}
}

// TestLives sees each scalable kind through all operations, by a tenant's account.
func TestLives(t *testing.T) {
	w := newWorld(t, longWait)
	manifests := map[string]string{}
	for _, kind := range []string{"Deployment", "StatefulSet", "ReplicaSet"} {
		manifests["Files/kubernetes/"+strings.ToLower(kind)+".yaml"] = workload(kind)
	}
	id := w.ourPackage(t, manifests)
	for flavour, delta := range map[string]int{"simple": 1, "steps": 2} {
		for file, manifest := range manifests {
			t.Run(flavour+" "+file, func(t *testing.T) {
				t.Parallel()
				vim, ns := w.tenant(t)
				w.create(t, id, vim, ns).life(flavour, delta, doc{"lcm-kubernetes-def-files": []any{file}, "namespace": ns}, manifest)
			})
		}
	}
}

// TestOutsideLives sees the scalable CNF from outside through all operations.
func TestOutsideLives(t *testing.T) {
	w := newWorld(t, longWait)
	id, manifests := w.outside(t, "cnf_scale")
	if id == "" {
		return
	}
	vim := w.administrator(t)
	for _, of := range []struct {
		flavour string
		delta   int
	}{{"simple", 1}, {"scalingsteps", 2}} {
		for _, file := range slices.Sorted(maps.Keys(manifests)) {
			t.Run(of.flavour+" "+file, func(t *testing.T) {
				ns := w.Namespace(t, "outside")
				w.create(t, id, vim, ns).life(of.flavour, of.delta, doc{"lcm-kubernetes-def-files": []any{file}, "namespace": ns}, manifests[file])
			})
		}
	}
}

// TestLevels instantiates at a level and scales to another.
func TestLevels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	id := w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment")})
	vim, ns := w.tenant(t)
	v := w.create(t, id, vim, ns)
	request := v.request("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
	request["instantiationLevelId"] = "large"
	v.completes(v.task("instantiate", request))
	v.consistsOf("VDU1", 3)
	v.completes(v.task("scale_to_level", doc{"instantiationLevelId": "small"}))
	v.consistsOf("VDU1", 1)
	v.completes(v.task("scale_to_level", doc{"scaleInfo": []any{doc{"aspectId": "vdu1_aspect", "scaleLevel": 1}}}))
	v.consistsOf("VDU1", 2)

	// What somebody else makes of it does not count: the level does.
	for _, n := range []int32{5, 1} {
		w.resize(t, ns, n)
		v.completes(v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"}))
		v.consistsOf("VDU1", 3)
		v.completes(v.task("scale", doc{"type": "SCALE_IN", "aspectId": "vdu1_aspect"}))
		v.consistsOf("VDU1", 2)
	}
	v.terminates("FORCEFUL")
}

// resize has somebody else scale the Deployment.
func (w *world) resize(t *testing.T, ns string, n int32) {
	t.Helper()
	_, err := w.Client.AppsV1().Deployments(ns).Patch(t.Context(), "vdu1", "application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{}, "scale")
	must(t, err)
}

// TestUnscalable: an aspect whose VDU is no workload with replicas is refused, and nothing happens.
func TestUnscalable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	manifest := strings.NewReplacer("kind: Deployment", "kind: DaemonSet", "replicas: 1", "minReadySeconds: 0").Replace(workload("Deployment"))
	id := w.ourPackage(t, map[string]string{"Files/a.yaml": manifest})
	vim, ns := w.tenant(t)
	v := w.create(t, id, vim, ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
	v.consistsOf("VDU1", 2) // the lab's nodes
	op := v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"})
	v.fails(op, "Target VnfResource for aspectId vdu1_aspect is not found in DB")
	v.rollsBack(op)
	v.consistsOf("VDU1", 2)
	op = v.task("operate", doc{"changeStateTo": "STOPPED"})
	v.fails(op, fmt.Sprintf("DaemonSet %s/vdu1 cannot be stopped or started", ns))
	v.rollsBack(op)
	v.consistsOf("VDU1", 2)
	v.terminates("FORCEFUL")
	v.gone(manifest)
}
