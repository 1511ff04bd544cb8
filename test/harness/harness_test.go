package harness

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
)

func TestMain(m *testing.M) { Main(m) }

// TestLife sees one VNF through its life, over a node's death.
func TestLife(t *testing.T) {
	c := New(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	api := c.API(0)
	zip, err := deploy.Package("kubernetes-cluster")
	if err != nil {
		t.Fatal(err)
	}
	vim, err := api.RegisterVIM(ctx, "VIM0", c.Sim.AuthURL)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := api.Onboard(ctx, zip)
	if err != nil {
		t.Fatal(err)
	}
	vnf, err := api.CreateInstance(ctx, pkg.VnfdId)
	if err != nil {
		t.Fatal(err)
	}
	op, err := api.Instantiate(ctx, vnf.Id, vim, deploy.InstantiateRequest("kubernetes-cluster", "complex"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes[0].Restart(ctx); err != nil {
		t.Fatal(err)
	}
	completed(ctx, t, api, op)
	if s := c.Find(vnf.Id); s == nil || s.Status != "CREATE_COMPLETE" {
		t.Errorf("the stack of the instance: %+v", s)
	}
	rows, err := c.Notifications(ctx, vnf.Id)
	if err != nil || len(rows) < 3 {
		t.Errorf("%d notifications (error: %v), want at least those of the instance's creation and of two states", len(rows), err)
	}
	if op, err = api.Terminate(ctx, vnf.Id); err != nil {
		t.Fatal(err)
	}
	completed(ctx, t, api, op)
	if s := c.Find(vnf.Id); s != nil {
		t.Errorf("after the termination there is stack %s in %s", s.Name, s.Status)
	}
	if err := api.DeleteInstance(ctx, vnf.Id); err != nil {
		t.Error(err)
	}
	if err := api.DeletePackage(ctx, pkg.Id); err != nil {
		t.Error(err)
	}
	if err := c.Nodes[0].Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	if strings.Contains(c.Logs(), Password) {
		t.Error("the log holds the VIM's password")
	}
}

func completed(ctx context.Context, t *testing.T, api *Client, id string) {
	t.Helper()
	op, err := api.AwaitOpOcc(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if op.OperationState != sol003.LcmOperationStateCompleted {
		t.Fatalf("%s is %s: %+v", op.Operation, op.OperationState, op.Error)
	}
}

func TestSamplePackage(t *testing.T) {
	for _, name := range []string{"kubernetes_vnf_package", "functional"} {
		if s := SamplePackage(t, name); s != nil && (len(s.Zip) == 0 || s.VnfdID == "") {
			t.Errorf("sample %s is empty", name)
		}
	}
}
