package kubernetes_test

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHelmAloneRetried heals a chart's pod that nothing but helm makes anew, and fails: once since helm may not make it, and once since
// what is made does not become ready. What is tried again ends well once the reason is gone, with a pod that is none of those before.
func TestHelmAloneRetried(t *testing.T) {
	t.Parallel()
	w := helmWorld(t, shortWait)
	vim, ns := w.tenant(t)
	v := w.create(t, w.chartPackage(t), vim, ns)
	v.completes(v.start("simple", fromPackage(ns, "alone", "alone=vdu2", "sick=sick")))
	seen := map[string]bool{v.uids()["vdu2"]: true}
	others := v.members("VDU1")
	heal := func() string {
		t.Helper()
		for id := range v.members("VDU2") {
			return v.task("heal", doc{"vnfcInstanceId": []any{id}})
		}
		t.Fatal("VDU2 has no VNFC")
		return ""
	}
	retried := func(op string) {
		t.Helper()
		must(t, v.api.OpOccTask(t.Context(), op, "retry", nil))
		v.completes(op)
		v.counts("VDU2", 1)
		pod, err := w.Client.CoreV1().Pods(ns).Get(t.Context(), "vdu2", metav1.GetOptions{})
		must(t, err)
		if seen[string(pod.UID)] || pod.Annotations["made-while"] != "well" {
			t.Errorf("pod vdu2 is %s, made while %s; there were %v", pod.UID, pod.Annotations["made-while"], seen)
		}
		seen[string(pod.UID)] = true
		if now := v.members("VDU1"); !maps.Equal(now, others) {
			t.Errorf("VDU1 was %v and is %v", others, now)
		}
		v.drifts()
	}

	// What a quota says counts a moment after it has been made, or has gone.
	allowed := func(want bool) {
		t.Helper()
		one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "another"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1"}}}}
		must(t, eventually(t, func(ctx context.Context) (bool, error) {
			_, err := w.Client.CoreV1().Pods(ns).Create(ctx, one, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && !apierrors.IsForbidden(err) {
				return false, err
			}
			return (err == nil) == want, nil
		}))
	}
	quotas := w.Client.CoreV1().ResourceQuotas(ns)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	must(t, err)
	allowed(false)
	op := heal()
	v.fails(op, "upgrade release alone", "exceeded quota: none")
	must(t, v.api.OpOccTask(t.Context(), op, "retry", nil)) // nothing has changed
	v.fails(op, "exceeded quota: none")
	must(t, quotas.Delete(t.Context(), "none", metav1.DeleteOptions{}))
	allowed(true)
	retried(op)

	configs := w.Client.CoreV1().ConfigMaps(ns)
	_, err = configs.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "sick"}}, metav1.CreateOptions{})
	must(t, err)
	op = heal()
	v.fails(op, "Pod "+ns+"/vdu2 is not ready", "CrashLoopBackOff")
	pod, err := w.Client.CoreV1().Pods(ns).Get(t.Context(), "vdu2", metav1.GetOptions{})
	must(t, err)
	seen[string(pod.UID)] = true
	must(t, configs.Delete(t.Context(), "sick", metav1.DeleteOptions{}))
	retried(op)

	v.terminates("GRACEFUL")
	v.nothingLeft()
}
