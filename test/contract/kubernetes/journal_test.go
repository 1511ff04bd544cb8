package kubernetes_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/infratest"
	driver "github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// content is a package's content.
type content struct{ fstest.MapFS }

func (content) Close() error { return nil }

// TestEveryStepTwice loses the result of the first run of every step that changes something, as a crash does: there is one of
// each object, each operation does what it is to do once, and nothing is left.
func TestEveryStepTwice(t *testing.T) {
	t.Parallel()
	plane := lab.Start(t)
	ns := plane.Namespace(t, "twice")
	account, err := plane.Tenant(t.Context(), ns, "user")
	must(t, err)
	token, err := plane.Token(t.Context(), account)
	must(t, err)
	target := &lcm.VimTarget{VIM: lcm.VIM{ID: uuid.NewString(), Type: "kubernetes", AuthURL: plane.URL, Auth: map[string]any{
		"bearer_token": token, "ssl_ca_cert": string(plane.CA),
	}}}
	d := driver.New(driver.Config{}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	defer d.Close()

	alone := "apiVersion: v1\nkind: Pod\nmetadata: {name: vdu2}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: a, image: 'a:1'}]}\n"
	files := content{fstest.MapFS{"a.yaml": {Data: []byte(workload("StatefulSet") + "---\n" + settings + "---\n" + alone)}}}
	one := 1
	flavour := &vnfd.Flavour{
		ID: "simple",
		VDUs: []vnfd.VDU{
			{Name: "VDU1", PropName: "vdu1", MinInstances: 1, MaxInstances: 5, InitialInstances: &one},
			{Name: "VDU2", PropName: "vdu2", MinInstances: 1, MaxInstances: 1},
		},
		Aspects: []vnfd.ScalingAspect{{
			ID: "a", MaxLevel: 3, StepDeltas: []string{"d"},
			VDUs: []vnfd.VDUDeltas{{VDU: "VDU1", Deltas: []vnfd.Delta{{ID: "d", Instances: 1}}}},
		}},
	}
	instance := &lcm.Instance{ID: uuid.NewString()}
	run := func(op sol003.LcmOperationType, request any, plan lcm.Plan, prepare func(x *lcm.Execution)) *infratest.Runner {
		t.Helper()
		x := infratest.Execution(t, op, instance, target, flavour, request, func(context.Context) (lcm.PackageFS, error) { return files, nil })
		if req, ok := request.(*sol003.InstantiateVnfRequest); ok {
			x.Instance.Request = req
		}
		x.Plan = &plan
		if prepare != nil {
			prepare(x)
		}
		r := &infratest.Runner{Driver: d, LoseFirst: true}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := r.Run(ctx, x); err != nil {
			t.Fatalf("%s: %v; waited for %v", op, err, r.Notes)
		}
		instance = x.Instance
		return r
	}
	uids := func() map[string]string {
		t.Helper()
		list, err := plane.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		out := map[string]string{}
		for _, p := range list.Items {
			out[p.Name] = string(p.UID)
		}
		return out
	}
	vnfcs := func() map[string]string {
		out := map[string]string{}
		for _, v := range instance.Info.VnfcResourceInfo {
			out[v.ComputeResource.ResourceId] = v.Id
		}
		return out
	}
	same := func(what string, before, after map[string]string, but ...string) {
		t.Helper()
		changed := map[string]bool{}
		for _, name := range but {
			changed[name] = true
		}
		for name, uid := range before {
			if (after[name] == uid) == changed[name] {
				t.Errorf("%s: pod %s was %s and is %s", what, name, uid, after[name])
			}
		}
	}

	run(sol003.LcmOperationTypeInstantiate, &sol003.InstantiateVnfRequest{FlavourId: "simple", AdditionalParams: map[string]any{
		"lcm-kubernetes-def-files": []any{"a.yaml"}, "namespace": ns,
	}}, lcm.Plan{}, nil)
	first := uids()
	if len(first) != 2 || len(vnfcs()) != 2 || vnfcs()["vdu1-0"] == "" || vnfcs()["vdu2"] == "" {
		t.Fatalf("pods %v, VNFCs %v", first, vnfcs())
	}

	run(sol003.LcmOperationTypeScale, &sol003.ScaleVnfRequest{Type: sol003.ScaleVnfRequestTypeOut, AspectId: "a", NumberOfSteps: 2},
		lcm.Plan{Aspects: []lcm.AspectChange{{ID: "a", From: 0, To: 2}}}, func(x *lcm.Execution) {
			for n := range 2 {
				x.Instance.Info.VnfcResourceInfo = append(x.Instance.Info.VnfcResourceInfo, sol003.VnfcResourceInfo{Id: fmt.Sprintf("new-%d", n), VduId: "VDU1"})
			}
		})
	if now := uids(); len(now) != 4 || vnfcs()["vdu1-1"] != "new-0" || vnfcs()["vdu1-2"] != "new-1" {
		t.Fatalf("after the scale: pods %v, VNFCs %v", now, vnfcs())
	}
	same("scale", first, uids())

	before := uids()
	run(sol003.LcmOperationTypeHeal, &sol003.HealVnfRequest{}, lcm.Plan{Heals: []string{vnfcs()["vdu1-1"], vnfcs()["vdu2"]}}, nil)
	same("heal", before, uids(), "vdu1-1", "vdu2")
	if len(uids()) != 4 || len(vnfcs()) != 4 {
		t.Errorf("after the heal: pods %v, VNFCs %v", uids(), vnfcs())
	}

	run(sol003.LcmOperationTypeScale, &sol003.ScaleVnfRequest{Type: sol003.ScaleVnfRequestTypeIn, AspectId: "a"},
		lcm.Plan{Aspects: []lcm.AspectChange{{ID: "a", From: 2, To: 1}}, Leaves: []string{"new-1"}}, nil)
	if now := uids(); len(now) != 3 || now["vdu1-2"] != "" {
		t.Errorf("after the scale in: pods %v", now)
	}

	before = uids()
	instance.Info.VnfcResourceInfo = instance.Info.VnfcResourceInfo[:0]
	run(sol003.LcmOperationTypeHeal, &sol003.HealVnfRequest{}, lcm.Plan{Whole: true}, nil)
	same("heal of the whole", before, uids(), "vdu1-0", "vdu1-1", "vdu2")
	if len(uids()) != 3 || len(vnfcs()) != 3 {
		t.Errorf("after the heal of the whole: pods %v, VNFCs %v", uids(), vnfcs())
	}

	run(sol003.LcmOperationTypeTerminate, &sol003.TerminateVnfRequest{TerminationType: sol003.TerminateVnfRequestTerminationTypeGraceful}, lcm.Plan{}, nil)
	claims, err := plane.Client.CoreV1().PersistentVolumeClaims(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(uids()) != 0 || len(claims.Items) != 0 || instance.Infra != nil || instance.Metadata["namespace"] != nil {
		t.Errorf("after the termination: pods %v, %d claims, %s, %v", uids(), len(claims.Items), instance.Infra, instance.Metadata)
	}
}
