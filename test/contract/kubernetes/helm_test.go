package kubernetes_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// TestHelmLife sees a CNF of the package's chart through all operations, as a Deployment and as a StatefulSet with claims, for an
// account of one namespace.
func TestHelmLife(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := helmWorld(t, longWait)
			vim, ns := w.tenant(t)
			v := w.create(t, w.chartPackage(t), vim, ns)
			values := []string{"kind=" + kind, "setting=two"}
			v.completes(v.start("steps", fromPackage(ns, "life", values...)))
			v.consistsOf("VDU1", 1)
			if got := v.now.Metadata["namespace"]; got != ns {
				t.Errorf("the namespace is %v", got)
			}
			config, err := w.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "life-settings", metav1.GetOptions{})
			must(t, err)
			if config.Data["setting"] != "two" {
				t.Errorf("the setting is %v", config.Data)
			}
			v.drifts()
			v.scales("SCALE_OUT", 2, 5, 2)
			v.scales("SCALE_IN", 1, 3, 1)
			if got := w.releaseOf(t, ns, "life"); got != "1 superseded, 2 superseded, 3 deployed" {
				t.Errorf("the release is %s", got)
			}
			ids := slices.Sorted(maps.Keys(v.members("VDU1")))
			v.heals(ids[:1]...)
			v.completes(v.task("operate", doc{"changeStateTo": "STOPPED", "stopType": "FORCEFUL"}))
			if pods := v.podsIn(t, ns); len(pods) > 0 || v.now.InstantiatedVnfInfo.VnfState != sol003.VnfOperationalStateStopped {
				t.Errorf("the stopped VNF is %s and has %v", v.now.InstantiatedVnfInfo.VnfState, pods)
			}
			v.completes(v.task("operate", doc{"changeStateTo": "STARTED"}))
			v.consistsOf("VDU1", 3)
			v.scales("SCALE_OUT", 1, 5, 2) // the number is as well ours as helm's by now
			v.completes(v.task("heal", doc{}))
			v.consistsOf("VDU1", 5)
			v.drifts()
			v.terminates("GRACEFUL")
			v.nothingLeft()
		})
	}
}

// TestHelmRepository makes CNFs of a repository's chart: in the highest version, which stays though the repository gets another, and in
// the one that is asked for. Without helm_replica_values the workload is scaled itself.
func TestHelmRepository(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, longWait)
	vim, ns := w.tenant(t)
	repo := repository(t, "1.2.0", "1.10.0", "2.0.0-rc1", "0.9.0")
	image := func() string {
		t.Helper()
		d, err := w.Client.AppsV1().Deployments(ns).Get(t.Context(), "vdu1", metav1.GetOptions{})
		must(t, err)
		return fmt.Sprintf("%s %d", d.Spec.Template.Spec.Containers[0].Image, *d.Spec.Replicas)
	}
	id := w.chartPackage(t)
	for version, want := range map[string]string{"": "web:1.10.0", "1.2.0": "web:1.2.0"} {
		item := doc{
			"exthelmchart": true, "helmchartname": "web", "helmrepositoryname": "mine", "exthelmrepo_url": repo.URL + "/charts/",
			"helmreleasename": "repo", "helmparameter": []any{},
		}
		if version != "" {
			item["helmchartversion"] = version
		}
		v := w.create(t, id, vim, ns)
		v.completes(v.start("simple", doc{"use_helm": true, "namespace": ns, "using_helm_install_param": []any{item}}))
		v.scales("SCALE_OUT", 1, 2, 1)
		if got := image(); got != want+" 2" {
			t.Errorf("version %q: %s", version, got)
		}
		if got := w.releaseOf(t, ns, "repo"); got != "1 deployed" {
			t.Errorf("the release is %s", got)
		}
		v.terminates("FORCEFUL")
		v.nothingLeft()
	}
}

// TestHelmLevelAndNames: the instantiation level that a request names is a value of the chart; a release without a name gets one; a
// VDU is found by the mapping; two charts make one VNF.
func TestHelmLevelAndNames(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, longWait)
	vim, ns := w.tenant(t)
	v := w.create(t, w.chartPackage(t), vim, ns)
	params := fromPackage(ns, "", "name=front")
	first := params["using_helm_install_param"].([]any)[0].(doc)
	delete(first, "helmreleasename")
	second := maps.Clone(first)
	second["helmparameter"] = []any{"name=back"}
	params["using_helm_install_param"] = []any{first, second}
	params["vdu_mapping"] = doc{
		"VDU1": doc{"kind": "Deployment", "name": "front", "helmreleasename": "vnf-" + v.id},
		"VDU2": doc{"kind": "Deployment", "name": "back", "helmreleasename": "vnf-" + v.id + "-2"},
	}
	request := v.request("simple", params)
	request["instantiationLevelId"] = "large"
	v.completes(v.task("instantiate", request))
	v.counts("VDU1", 3)
	if back := v.members("VDU2"); len(back) != 1 {
		t.Errorf("VDU2 is %v", back)
	}
	v.resizes("SCALE_IN", 1, 2)
	for name, want := range map[string]string{"vnf-" + v.id: "1 superseded, 2 deployed", "vnf-" + v.id + "-2": "1 deployed"} {
		if got := w.releaseOf(t, ns, name); got != want {
			t.Errorf("release %s is %s, not %s", name, got, want)
		}
	}
	v.terminates("FORCEFUL")
	v.nothingLeft()
}

// TestHelmChangedPackage gives a CNF a package with another chart: a scale before it is healed is refused, and the heal upgrades it.
func TestHelmChangedPackage(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, longWait)
	vim, ns := w.tenant(t)
	v := w.create(t, w.chartPackage(t), vim, ns)
	v.completes(v.start("simple", fromPackage(ns, "changes", "alone=vdu2", "keep=true")))
	v.resizes("SCALE_OUT", 1, 2)

	// A pod that nothing makes anew but helm.
	uid := v.uids()["vdu2"]
	for id := range v.members("VDU2") {
		v.completes(v.task("heal", doc{"vnfcInstanceId": []any{id}}))
	}
	if now := v.uids()["vdu2"]; now == uid || now == "" {
		t.Errorf("pod vdu2 was %s and is %s", uid, now)
	}

	op, err := w.api.Modify(t.Context(), v.id, doc{"vnfdId": w.chartPackage(t, "image: web:1", "image: web:2", "extra: true", "extra: false")})
	must(t, err)
	v.completes(op)
	failed := v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"})
	v.fails(failed, "heal it first")
	v.givesUp(failed)
	ids := slices.Sorted(maps.Keys(v.members("VDU1")))
	v.completes(v.task("heal", doc{"vnfcInstanceId": ids[:1]}))
	v.counts("VDU1", 2)
	d, err := w.Client.AppsV1().Deployments(ns).Get(t.Context(), "vdu1", metav1.GetOptions{})
	must(t, err)
	if got := d.Spec.Template.Spec.Containers[0].Image; got != "web:2" || *d.Spec.Replicas != 2 {
		t.Errorf("image %s, %d replicas", got, *d.Spec.Replicas)
	}
	left := w.left(t, ns)
	if slices.Contains(left, "ConfigMap/changes-extra") || !slices.Contains(left, "ConfigMap/changes-kept") {
		t.Errorf("there are %v", left)
	}
	v.drifts()
	v.resizes("SCALE_OUT", 1, 3)
	v.terminates("GRACEFUL")
	if left := w.left(t, ns); !slices.Equal(left, []string{"ConfigMap/changes-kept"}) {
		t.Errorf("left behind: %v", left)
	}
}

// givesUp ends a failed operation.
func (v *vnf) givesUp(op string) {
	v.t.Helper()
	must(v.t, v.api.OpOccTask(v.t.Context(), op, "fail", nil))
	v.ends(op, sol003.LcmOperationStateFailed)
}

// TestHelmRollback undoes an instantiation whose pods never become ready, and a scale; and cancels an installation that waits for a hook.
func TestHelmRollback(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, shortWait)
	vim, ns := w.tenant(t)
	id := w.chartPackage(t)
	v := w.create(t, id, vim, ns)
	crashes := `annotations.vnfm\.lab/crash=CrashLoopBackOff`
	op := v.start("simple", fromPackage(ns, "back", crashes, "hook.at=pre-install", "password=verysecret"))
	o := v.fails(op, "Deployment "+ns+"/vdu1 is not ready", "CrashLoopBackOff")
	if strings.Contains(o.Error.Detail, "verysecret") {
		t.Errorf("a secret is shown: %s", o.Error.Detail)
	}
	v.rollsBack(op)
	v.nothingLeft()

	// A repeated try goes on with what there is.
	v = w.create(t, id, vim, ns)
	op = v.start("simple", fromPackage(ns, "back", crashes))
	v.fails(op)
	must(t, w.healPods(t, ns))
	must(t, v.api.OpOccTask(t.Context(), op, "retry", nil))
	v.completes(op)
	if got := w.releaseOf(t, ns, "back"); got != "1 deployed" {
		t.Errorf("the release is %s", got)
	}

	// What is scaled out crashes as well, and goes again.
	op = v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"})
	v.fails(op, "CNF Scale Wait Failed")
	// What somebody has made of it meanwhile does not count, though helm has done its part.
	_, err := w.Client.AppsV1().Deployments(ns).Patch(t.Context(), "vdu1", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, v.api.OpOccTask(t.Context(), op, "retry", nil))
	must(t, eventually(t, func(ctx context.Context) (bool, error) {
		d, err := w.Client.AppsV1().Deployments(ns).Get(ctx, "vdu1", metav1.GetOptions{})
		return err == nil && *d.Spec.Replicas == 2, err
	}))
	v.fails(op, "CNF Scale Wait Failed")
	v.rollsBack(op)
	v.consistsOf("VDU1", 1)
	if got := w.releaseOf(t, ns, "back"); !strings.HasSuffix(got, "4 deployed") {
		t.Errorf("the release is %s", got)
	}
	v.terminates("FORCEFUL")
	v.nothingLeft()
}

// healPods has the pods of a namespace come to themselves.
func (w *world) healPods(t *testing.T, ns string) error {
	t.Helper()
	for _, pod := range w.podsIn(t, ns) {
		patch := []byte(`{"metadata":{"annotations":{"` + lab.Crash + `":null}}}`)
		if _, err := w.Client.CoreV1().Pods(ns).Patch(t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}
