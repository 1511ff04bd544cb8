package fake_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/fake"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/infratest"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

const instanceID = "8a6f5a0c-8f2d-4d0e-8f6e-0d3f1f0e9b01"

var (
	target  = &lcm.VimTarget{VIM: lcm.VIM{ID: "vim-1", Type: lcm.VimFake}}
	initial = 2
	flavour = &vnfd.Flavour{
		ID:           "simple",
		VDUs:         []vnfd.VDU{{Name: "VDU1", InitialInstances: &initial, Storages: []string{"Storage"}}, {Name: "VDU2"}},
		Storages:     []vnfd.VirtualStorage{{Name: "Storage"}},
		CPs:          []vnfd.CP{{Name: "CP1", VDU: "VDU1", VirtualLink: "VL1"}},
		VirtualLinks: []vnfd.VirtualLink{{Name: "VL1"}},
	}
)

func instantiate(t *testing.T, i *lcm.Instance, knobs any) *lcm.Execution {
	req := &sol003.InstantiateVnfRequest{FlavourId: "simple"}
	if knobs != nil {
		req.AdditionalParams = map[string]any{"fake": knobs}
	}
	return infratest.Execution(t, sol003.LcmOperationTypeInstantiate, i, target, flavour, req, nil)
}

func terminate(t *testing.T, i *lcm.Instance) *lcm.Execution {
	return infratest.Execution(t, sol003.LcmOperationTypeTerminate, i, target, flavour,
		&sol003.TerminateVnfRequest{TerminationType: sol003.TerminateVnfRequestTerminationTypeForceful}, nil)
}

func TestLifecycle(t *testing.T) {
	d := fake.New(fake.Config{})
	r := &infratest.Runner{Driver: d, LoseFirst: true}
	x := instantiate(t, &lcm.Instance{ID: instanceID}, nil)
	if err := r.Run(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create", "wait", "inventory"}, r.Seen); diff != "" {
		t.Error(diff)
	}
	if d.Created(instanceID) != 1 || !cmp.Equal(d.Existing(), []string{instanceID}) {
		t.Errorf("created %d times, existing %v", d.Created(instanceID), d.Existing())
	}
	info := x.Instance.Info
	if len(info.VnfcResourceInfo) != 3 || len(info.VirtualStorageResourceInfo) != 2 {
		t.Fatalf("%d VNFCs, %d storages", len(info.VnfcResourceInfo), len(info.VirtualStorageResourceInfo))
	}
	seen := map[string]bool{}
	check := func(h sol003.ResourceHandle) {
		if h.ResourceId == "" || h.VimConnectionId != "vim-1" || seen[h.ResourceId] {
			t.Errorf("handle %+v", h)
		}
		seen[h.ResourceId] = true
	}
	for _, v := range info.VnfcResourceInfo {
		check(v.ComputeResource)
	}
	for _, s := range info.VirtualStorageResourceInfo {
		check(s.StorageResource)
	}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		check(vl.NetworkResource)
		for _, p := range vl.VnfLinkPorts {
			check(p.ResourceHandle)
		}
	}
	// Another process knows nothing but what the instance says.
	other := fake.New(fake.Config{})
	if err := (&infratest.Runner{Driver: other, LoseFirst: true}).Run(t.Context(), terminate(t, x.Instance)); err != nil {
		t.Fatal(err)
	}
	r = &infratest.Runner{Driver: d}
	x = terminate(t, x.Instance)
	if err := r.Run(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if s := string(x.Instance.Infra); s != "" && s != "null" || len(d.Existing()) != 0 || !cmp.Equal(r.Seen, []string{"delete", "delete-wait"}) {
		t.Errorf("left: %s %v after %v", x.Instance.Infra, d.Existing(), r.Seen)
	}
}

func TestKnobs(t *testing.T) {
	clock := infratest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	t.Run("fails once", func(t *testing.T) {
		r := &infratest.Runner{Driver: fake.New(fake.Config{}), Clock: clock}
		x := instantiate(t, &lcm.Instance{ID: instanceID}, map[string]any{"failStep": "create", "failTimes": 1})
		if err := r.Run(t.Context(), x); !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "step create") {
			t.Fatalf("%v", err)
		}
		if err := r.Run(t.Context(), x); err != nil {
			t.Errorf("the second time: %v", err)
		}
	})
	t.Run("retryable after its effect", func(t *testing.T) {
		d := fake.New(fake.Config{})
		r := &infratest.Runner{Driver: d, Clock: clock}
		x := instantiate(t, &lcm.Instance{ID: instanceID}, map[string]any{"failStep": "create", "failTimes": 3, "failKind": "retryable", "failAfterEffect": true})
		if err := r.Run(t.Context(), x); err != nil || d.Created(instanceID) != 1 {
			t.Errorf("created %d times: %v", d.Created(instanceID), err)
		}
	})
	t.Run("waits", func(t *testing.T) {
		r := &infratest.Runner{Driver: fake.New(fake.Config{}), Clock: clock}
		before := clock.Now()
		if err := r.Run(t.Context(), instantiate(t, &lcm.Instance{ID: instanceID}, map[string]any{"waitSeconds": 1.5})); err != nil {
			t.Fatal(err)
		}
		if took := clock.Now().Sub(before); took != 1500*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
	t.Run("of the driver, and of the instance when it is terminated", func(t *testing.T) {
		d := fake.New(fake.Config{Knobs: fake.Knobs{FailStep: "wait"}})
		r := &infratest.Runner{Driver: d, Clock: clock}
		if err := r.Run(t.Context(), instantiate(t, &lcm.Instance{ID: instanceID}, nil)); err == nil {
			t.Error("the driver's knob is ignored")
		}
		x := instantiate(t, &lcm.Instance{ID: instanceID}, map[string]any{"failStep": "delete"})
		if err := r.Run(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context(), terminate(t, x.Instance)); err == nil {
			t.Error("the instance's knob is ignored")
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		x := instantiate(t, &lcm.Instance{ID: instanceID}, map[string]any{"waitSeconds": "long"})
		if _, err := fake.New(fake.Config{}).Steps(x); !lcm.Is(err, lcm.KindTerminal) {
			t.Errorf("%v", err)
		}
	})
}

func TestOtherOperations(t *testing.T) {
	d := fake.New(fake.Config{})
	x := instantiate(t, &lcm.Instance{ID: instanceID}, nil)
	x.Op.State = sol003.LcmOperationStateRollingBack
	steps, err := d.Steps(x)
	if err != nil || len(steps) != 2 || steps[0].Name != "delete" {
		t.Errorf("rollback: %v %v", steps, err)
	}
	x.Op.State, x.Op.Operation = sol003.LcmOperationStateProcessing, sol003.LcmOperationTypeOperate
	if steps, err = d.Steps(x); err != nil || len(steps) != 3 || steps[0].Name != "update" {
		t.Errorf("operate: %v %v", steps, err)
	}
	if d.Can(sol003.LcmOperationTypeTerminate, true) || !d.Can(sol003.LcmOperationTypeScale, true) {
		t.Error("what can be undone")
	}
	x.Op.Operation, x.Op.Params = sol003.LcmOperationTypeInstantiate, json.RawMessage("{")
	if _, err := d.Steps(x); err == nil {
		t.Error("broken parameters are taken")
	}
}
