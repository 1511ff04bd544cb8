package kubernetes_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// everything is a CNF of many kinds, in several files.
var everything = map[string]string{
	"Files/kubernetes/config.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: one}
---
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {a: one}
---
`,
	"Files/kubernetes/rights.yaml": `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads}
subjects: [{kind: ServiceAccount, name: worker, namespace: default}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: worker}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reads}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`,
	"Files/kubernetes/work.yaml": `
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: vdu1}
  spec:
    replicas: 1
    selector: {matchLabels: {app: vdu1}}
    template:
      metadata: {labels: {app: vdu1}}
      spec:
        serviceAccountName: worker
        terminationGracePeriodSeconds: 0
        containers: [{name: web, image: 'web:1', envFrom: [{configMapRef: {name: settings}}]}]
- apiVersion: v1
  kind: Service
  metadata: {name: web}
  spec: {clusterIP: None, selector: {app: vdu1}, ports: [{port: 80}]}
- apiVersion: batch/v1
  kind: CronJob
  metadata: {name: nightly}
  spec:
    schedule: "0 0 * * *"
    jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'a:1'}]}}}}
- apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata: {name: some}
  spec: {maxUnavailable: 1, selector: {matchLabels: {app: vdu1}}}
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata: {name: web}
  spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
`,
}

func filesOf(manifests map[string]string, names ...string) (list []any, all string) {
	if len(names) == 0 {
		for name := range manifests {
			names = append(names, name)
		}
	}
	for _, name := range names {
		list = append(list, name)
		all += "\n---\n" + manifests[name]
	}
	return list, all
}

// withoutLists takes lists apart, for the comparison.
func withoutLists(manifest string) string {
	if !strings.Contains(manifest, "kind: List") {
		return manifest
	}
	var out strings.Builder
	for _, line := range strings.Split(manifest, "\n") {
		if strings.HasPrefix(line, "- ") {
			out.WriteString("---\n")
		}
		if line = strings.TrimPrefix(strings.TrimPrefix(line, "- "), "  "); line != "items:" && line != "kind: List" {
			out.WriteString(line + "\n")
		}
	}
	return strings.ReplaceAll(out.String(), "apiVersion: v1\n---", "---")
}

// TestOurManifests sees a CNF of many kinds through its life, in the namespace that its account may use and no other.
func TestOurManifests(t *testing.T) {
	w := newWorld(t, longWait)
	id := w.ourPackage(t, everything)
	vim, ns := w.tenant(t)
	v := w.create(t, id, vim, ns)
	list, all := filesOf(everything)
	all = withoutLists(all)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": list, "namespace": ns}))
	if got := v.now.Metadata["namespace"]; got != ns {
		t.Errorf("metadata.namespace is %v", got)
	}
	v.consistsOf("VDU1", 1)
	v.holds(all)
	binding, err := w.Client.RbacV1().RoleBindings(ns).Get(t.Context(), "reads", metav1.GetOptions{})
	must(t, err)
	if s := binding.Subjects[0]; s.Namespace != ns {
		t.Errorf("the binding is of an account in %s", s.Namespace)
	}
	v.terminates("GRACEFUL")
	v.gone(all)
	if pods := w.podsIn(t, ns); len(pods) > 0 {
		t.Errorf("there are still %v", pods)
	}
}

// TestOutsideManifests instantiates a CNF from each manifest from outside, and terminates it.
func TestOutsideManifests(t *testing.T) {
	w := newWorld(t, longWait)
	id, manifests := w.outside(t, "cnf_resources")
	if id == "" {
		return
	}
	admin := w.administrator(t)
	const dir = "Files/kubernetes/"
	// What a manifest needs besides itself.
	needs := map[string][]string{
		"statefulset.yaml": {"storage-class.yaml", "persistent-volume-0.yaml", "persistent-volume-1.yaml"},
	}
	vnfcs := map[string]struct {
		vdu string
		n   int
	}{"pod.yaml": {"VDU1", 1}, "daemon-set.yaml": {"VDU1", 2}, "deployment.yaml": {"VDU2", 1}, "replicaset_service_secret.yaml": {"VDU2", 2}, "statefulset.yaml": {"VDU2", 2}}
	for name := range manifests {
		short := strings.TrimPrefix(name, dir)
		if strings.HasSuffix(short, "_scale.yaml") || short == "statefulset_fail.yaml" {
			continue
		}
		t.Run(short, func(t *testing.T) {
			ns := w.Namespace(t, "outside")
			if short == "bindings.yaml" {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "curry-endpoint-test001"}, Spec: corev1.PodSpec{
					SchedulerName: "nobody", Containers: []corev1.Container{{Name: "a", Image: "a:1"}},
				}}
				_, err := w.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
				must(t, err)
			}
			v := w.create(t, id, admin, ns)
			names := []string{name}
			for _, n := range needs[short] {
				names = append(names, dir+n)
			}
			list, all := filesOf(manifests, names...)
			v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": list, "namespace": ns}))
			v.holds(all)
			if of, ok := vnfcs[short]; ok {
				v.consistsOf(of.vdu, of.n)
			}
			if short == "bindings.yaml" {
				pod, err := w.Client.CoreV1().Pods(ns).Get(t.Context(), "curry-endpoint-test001", metav1.GetOptions{})
				must(t, err)
				if pod.Spec.NodeName != "k8-worker2" {
					t.Errorf("the pod is bound to %q", pod.Spec.NodeName)
				}
			}
			v.terminates("FORCEFUL")
			v.gone(all)
			claims, err := w.Client.CoreV1().PersistentVolumeClaims(ns).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			if len(claims.Items) > 0 {
				t.Errorf("%d claims are left", len(claims.Items))
			}
		})
	}
}

// TestOutsideFailure: a StatefulSet whose volumes nobody makes fails, says why, and leaves nothing behind.
func TestOutsideFailure(t *testing.T) {
	w := newWorld(t, shortWait)
	id, manifests := w.outside(t, "cnf_resources")
	if id == "" {
		return
	}
	ns := w.Namespace(t, "outside")
	v := w.create(t, id, w.administrator(t), ns)
	list, all := filesOf(manifests, "Files/kubernetes/statefulset_fail.yaml")
	op := v.start("simple", doc{"lcm-kubernetes-def-files": list, "namespace": ns})
	v.fails(op, "Resource creation is not completed "+tooLong, "StatefulSet "+ns+"/vdu2-fail is not ready", "pod vdu2-fail-0")
	v.holds(all)
	v.rollsBack(op)
	v.gone(all)
	if pods := w.podsIn(t, ns); len(pods) > 0 {
		t.Errorf("there are still %v", pods)
	}
}
