package kubernetes_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// graces collects how many seconds the pods of a namespace are given to end, until they have gone, for which the function that it
// returns waits: by the pod's name up to the first dash, in the order in which they were said.
func (w *world) graces(t *testing.T, ns string) (end func() map[string][]string) {
	t.Helper()
	list, err := w.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	there := map[types.UID]bool{}
	for _, pod := range list.Items {
		there[pod.UID] = true
	}
	watch, err := w.Client.CoreV1().Pods(ns).Watch(context.Background(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	must(t, err)
	out := map[string][]string{}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for e := range watch.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if ok && e.Type == apiwatch.Deleted {
				if delete(there, pod.UID); len(there) == 0 {
					return
				}
			}
			if !ok || e.Type != apiwatch.Modified || pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds == 0 {
				continue // nothing is what a node says in the end, too
			}
			name, _, _ := strings.Cut(pod.Name, "-")
			if said := fmt.Sprint(*pod.DeletionGracePeriodSeconds); !slices.Contains(out[name], said) {
				out[name] = append(out[name], said)
			}
		}
	}()
	return func() map[string][]string {
		select { // what has been said may be heard late
		case <-over:
		case <-time.After(patience):
			t.Error("the watch does not tell that the pods have gone")
		}
		watch.Stop()
		<-over
		return out
	}
}

// TestGrace: pods that are shut down gracefully are told to end at once, and have the time that the request gives; without one,
// what they themselves ask for; FORCEFUL, none.
func TestGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	for _, tt := range []struct {
		name      string
		goneAfter string // how long they take
		task      string
		body      doc
		made      []string // what a Deployment's pod is given, one after the other
		alone     []string // and one on its own
	}{
		{name: "less than they ask for", goneAfter: "20s", task: "terminate", body: doc{"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 120}, made: []string{"300", "120"}, alone: []string{"120"}},
		{name: "more than they need", goneAfter: "4s", task: "terminate", body: doc{"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 3600}, made: []string{"300"}, alone: []string{"3600"}},
		{name: "as they ask", goneAfter: "4s", task: "terminate", body: doc{"terminationType": "GRACEFUL"}, made: []string{"300"}, alone: []string{"300"}},
		{name: "on a node that does not say that they have ended", goneAfter: "1h", task: "terminate", body: doc{"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 20}, made: []string{"300", "20"}, alone: []string{"20"}},
		{name: "by force", goneAfter: "1h", task: "terminate", body: doc{"terminationType": "FORCEFUL"}, made: []string{"300"}},
		{name: "stopped within a time", goneAfter: "20s", task: "operate", body: doc{"changeStateTo": "STOPPED", "stopType": "GRACEFUL", "gracefulStopTimeout": 120}, made: []string{"300", "120"}},
		{name: "stopped by force", goneAfter: "1h", task: "operate", body: doc{"changeStateTo": "STOPPED", "stopType": "FORCEFUL"}, made: []string{"300"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			vim, ns := w.tenant(t)
			manifest := strings.Replace(with(lab.GoneAfter, tt.goneAfter, workload("Deployment")), "PeriodSeconds: 0", "PeriodSeconds: 300", 1)
			if tt.task == "terminate" {
				manifest += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: vdu2, annotations: {" + lab.GoneAfter + ": " + tt.goneAfter +
					"}}\nspec: {terminationGracePeriodSeconds: 300, containers: [{name: a, image: 'a:1'}]}\n"
			}
			v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": manifest}), vim, ns)
			v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
			end := w.graces(t, ns)
			v.completes(v.task(tt.task, tt.body))
			got := end()
			if !slices.Equal(got["vdu1"], tt.made) || !slices.Equal(got["vdu2"], tt.alone) {
				t.Errorf("the Deployment's pod was given %v, not %v, and the other %v, not %v", got["vdu1"], tt.made, got["vdu2"], tt.alone)
			}
			if pods := w.podsIn(t, ns); len(pods) > 0 {
				t.Errorf("there are still %v", pods)
			}
			if tt.task == "operate" {
				v.terminates("FORCEFUL")
			}
		})
	}
}
