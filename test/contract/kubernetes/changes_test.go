package kubernetes_test

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestChangedPackage gives a CNF another package: nothing happens before it is healed, and then images, configuration and
// objects are those of the new package, and the number of pods is what it was.
func TestChangedPackage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim, ns := w.tenant(t)
	web := strings.Replace(workload("Deployment"), "image: 'web:1'", "image: 'web:1', envFrom: [{configMapRef: {name: settings}}]", 1)
	alone := "apiVersion: v1\nkind: Pod\nmetadata: {name: vdu2}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: a, image: 'a:1'}]}\n"
	old := strings.Replace(settings, "settings", "old", 1)
	first := map[string]string{"Files/a.yaml": web, "Files/b.yaml": settings + "---\n" + old, "Files/c.yaml": alone}
	files := []any{"Files/a.yaml", "Files/b.yaml", "Files/c.yaml"}
	v := w.create(t, w.ourPackage(t, first), vim, ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": files, "namespace": ns}))
	v.completes(v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"}))
	pods := v.members("VDU1")

	change := func(to map[string]string, heal string) {
		t.Helper()
		id := w.ourPackage(t, to)
		before := v.uids()
		op, err := w.api.Modify(t.Context(), v.id, doc{"vnfdId": id})
		must(t, err)
		v.completes(op)
		if after := v.uids(); !maps.Equal(before, after) {
			t.Errorf("the change alone has changed pods: %v, now %v", before, after)
		}
		v.completes(v.task("heal", doc{"vnfcInstanceId": []any{heal}}))
	}
	one := func(vdu string) string {
		for id := range v.members(vdu) {
			return id
		}
		return ""
	}
	check := func(image, setting string) {
		t.Helper()
		deployment, err := w.Client.AppsV1().Deployments(ns).Get(t.Context(), "vdu1", metav1.GetOptions{})
		must(t, err)
		config, err := w.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "settings", metav1.GetOptions{})
		must(t, err)
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != image || config.Data["a"] != setting || *deployment.Spec.Replicas != 2 {
			t.Errorf("image %s, setting %s, %d replicas", got, config.Data["a"], *deployment.Spec.Replicas)
		}
		now := v.members("VDU1")
		if len(now) != 2 {
			t.Errorf("VDU1 is %v", now)
		}
		there := v.uids()
		for id, pod := range now {
			if pods[id] == pod || there[pod] == "" {
				t.Errorf("VNFC %s is pod %s, and was %s", id, pod, pods[id])
			}
		}
		pods = now
	}

	second := maps.Clone(first)
	second["Files/a.yaml"] = strings.Replace(web, "web:1", "web:2", 1)
	second["Files/b.yaml"] = settings // "old" is not there any more
	change(second, one("VDU1"))
	check("web:2", "one")
	v.gone(old)

	third := maps.Clone(second)
	third["Files/b.yaml"] = strings.Replace(settings, "one", "two", 1)
	third["Files/c.yaml"] = strings.Replace(alone, "a:1", "a:2", 1)
	change(third, one("VDU1"))
	check("web:2", "two")
	pod, err := w.Client.CoreV1().Pods(ns).Get(t.Context(), "vdu2", metav1.GetOptions{})
	must(t, err)
	if pod.Spec.Containers[0].Image != "a:2" {
		t.Errorf("the pod has image %s", pod.Spec.Containers[0].Image)
	}

	// Another heal changes nothing more than it is asked to.
	deployment, err := w.Client.AppsV1().Deployments(ns).Get(t.Context(), "vdu1", metav1.GetOptions{})
	must(t, err)
	v.completes(v.task("heal", doc{"vnfcInstanceId": []any{one("VDU2")}}))
	again, err := w.Client.AppsV1().Deployments(ns).Get(t.Context(), "vdu1", metav1.GetOptions{})
	must(t, err)
	if deployment.Generation != again.Generation {
		t.Error("a heal of another VNFC has changed the Deployment")
	}
	v.terminates("FORCEFUL")
	v.gone(third["Files/a.yaml"] + "\n---\n" + third["Files/b.yaml"] + "\n---\n" + third["Files/c.yaml"])
}
