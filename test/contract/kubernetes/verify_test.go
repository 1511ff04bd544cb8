package kubernetes_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// drift is how what there is differs from what is recorded, as "KIND PART".
type drift struct {
	list []string
	heal []any // the VNFCs that the mends name
}

func (v *vnf) verify() drift {
	v.t.Helper()
	var out struct {
		Differences []struct {
			Kind, Part string
			Mend       struct {
				Operation      string
				VnfcInstanceID []any
			}
		}
	}
	_, err := v.api.Call(v.t.Context(), http.MethodGet, "/vnfm/v1/vnf_instances/"+v.id+"/verify", nil, &out)
	must(v.t, err)
	d := drift{list: []string{}}
	for _, x := range out.Differences {
		d.list = append(d.list, x.Kind+" "+x.Part)
		d.heal = append(d.heal, x.Mend.VnfcInstanceID...)
	}
	return d
}

func (v *vnf) drifts(want ...string) drift {
	v.t.Helper()
	var last drift
	err := eventually(v.t, func(context.Context) (bool, error) {
		last = v.verify()
		return slices.Equal(last.list, append([]string{}, want...)), nil
	})
	if err != nil {
		v.t.Fatalf("the differences are %v, not %v", last.list, want)
	}
	return last
}

// TestVerify has somebody else change what there is: it is seen, and what the differences name mends it.
func TestVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longWait)
	vim, ns := w.tenant(t)
	v := w.create(t, w.ourPackage(t, map[string]string{"Files/a.yaml": workload("Deployment") + "---\n" + settings}), vim, ns)
	v.completes(v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns}))
	v.completes(v.task("scale", doc{"type": "SCALE_OUT", "aspectId": "vdu1_aspect"}))
	v.drifts()

	// Kubernetes makes a pod anew that somebody removes: it is another one.
	now := int64(0)
	must(t, w.Client.CoreV1().Pods(ns).Delete(t.Context(), w.podsIn(t, ns)[0], metav1.DeleteOptions{GracePeriodSeconds: &now}))
	d := v.drifts("CHANGED VNFC")
	before := v.uids()
	v.completes(v.task("heal", doc{"vnfcInstanceId": d.heal}))
	v.consistsOf("VDU1", 2)
	v.drifts()
	if after := v.uids(); len(after) != len(before) {
		t.Errorf("there were %v, and are %v", before, after)
	}

	resize := func(n int32) {
		t.Helper()
		w.resize(t, ns, n)
	}
	resize(3)
	v.drifts("CHANGED VNF", "UNRECORDED VNFC")
	resize(1)
	v.drifts("CHANGED VNF", "MISSING VNFC")
	resize(2)
	v.completes(v.task("heal", doc{"vnfcInstanceId": v.drifts("CHANGED VNFC").heal}))
	v.drifts()

	must(t, w.Client.CoreV1().ConfigMaps(ns).Delete(t.Context(), "settings", metav1.DeleteOptions{}))
	v.drifts("MISSING VNF")
	v.completes(v.task("heal", doc{}))
	v.drifts()
	v.holds(settings)

	v.completes(v.task("operate", doc{"changeStateTo": "STOPPED"}))
	v.drifts()
	resize(1)
	v.drifts("CHANGED VNF", "STATE VNFC")
	resize(0)
	v.drifts()
	v.terminates("FORCEFUL")
}
