// Package fake is an InfraDriver for a VIM that is not there: everything exists at once, or as late and as badly as
// asked for. It serves tests and benchmarks of everything above the drivers.
//
// What exists is what the instance's Infra says, so that any number of processes may share one database. The driver's
// own memory only counts, for tests.
package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Config sets the faults and delays of all instances; a request's additionalParams.fake goes over it.
type Config struct {
	Knobs
}

// Knobs are the faults and delays of one operation, as additionalParams["fake"] gives them:
// {"failStep": "create", "waitSeconds": 1.5, "failTimes": 1}. Those of the operation's own request come first, then
// those that the instance was instantiated with, then the driver's.
type Knobs struct {
	// FailStep names the step that fails: create, update, wait, inventory, delete or delete-wait.
	FailStep string `json:"failStep,omitempty"`
	// FailTimes is how often it fails in one process, per operation; 0 means always.
	FailTimes int `json:"failTimes,omitempty"`
	// FailKind is the kind of the failure, "terminal" if empty; "retryable" makes the engine try again by itself.
	FailKind lcm.Kind `json:"failKind,omitempty"`
	// FailAfterEffect lets create and delete take effect before they fail, as a crash or a lost answer would.
	FailAfterEffect bool `json:"failAfterEffect,omitempty"`
	// WaitSeconds is how long creating and deleting take.
	WaitSeconds float64 `json:"waitSeconds,omitempty"`
	// HangStep names a wait step that never ends.
	HangStep string `json:"hangStep,omitempty"`
	// Drift is in which way each server that has not been healed differs from its record when the VNF is verified, "" for
	// none: MISSING, FAILED, ….
	Drift lcm.DifferenceKind `json:"drift,omitempty"`
}

// Driver is the InfraDriver for VIMs of type fake.
type Driver struct {
	cfg Config

	mu      sync.Mutex
	made    map[string]int // creations by instance
	updates map[string]int // by op occ
	exists  map[string]bool
	failed  map[string]int // failures by op occ and step
}

var _ lcm.InfraDriver = (*Driver)(nil)

// New returns a driver.
func New(cfg Config) *Driver {
	return &Driver{cfg: cfg, made: map[string]int{}, updates: map[string]int{}, exists: map[string]bool{}, failed: map[string]int{}}
}

// Type returns "fake".
func (d *Driver) Type() string { return lcm.VimFake }

// Can implements lcm.InfraDriver.
func (d *Driver) Can(operation sol003.LcmOperationType, undo bool) bool {
	return !undo || operation != sol003.LcmOperationTypeTerminate && operation != sol003.LcmOperationTypeHeal
}

// Leaving implements lcm.InfraDriver: the domain's choice will do.
func (d *Driver) Leaving(*lcm.Execution) ([]lcm.Step, error) { return nil, nil }

// Created returns how many times this process has created the instance's resources.
func (d *Driver) Created(instanceID string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.made[instanceID]
}

// Existing returns the instances whose resources this process has created and not deleted, sorted.
func (d *Driver) Existing() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.exists))
}

// infra is what the driver keeps about an instance: the name of what exists.
type infra struct {
	V         int    `json:"v"`
	Name      string `json:"name"`
	UpdatedBy string `json:"updatedBy,omitempty"` // the last op occ that has changed it
}

// Steps returns create, wait, inventory for INSTANTIATE; delete, delete-wait for TERMINATE and for the rollback of
// INSTANTIATE; all of these for the heal of a whole VNF; update, wait, inventory for everything else, and update, wait for
// its rollback.
func (d *Driver) Steps(x *lcm.Execution) ([]lcm.Step, error) {
	k, err := d.knobs(x)
	if err != nil {
		return nil, err
	}
	remove := []lcm.Step{
		{Name: "delete", Effect: true, Run: d.step("delete", k, d.remove)},
		{Name: "delete-wait", Run: d.step("delete-wait", k, d.wait("delete-wait", k))},
	}
	create := []lcm.Step{
		{Name: "create", Effect: true, Run: d.step("create", k, d.create)},
		{Name: "wait", Run: d.step("wait", k, d.wait("wait", k))},
		{Name: "inventory", Run: d.step("inventory", k, inventory)},
	}
	undo := x.Op.State == sol003.LcmOperationStateRollingBack
	switch {
	case x.Op.Operation == sol003.LcmOperationTypeTerminate, undo && x.Op.Operation == sol003.LcmOperationTypeInstantiate:
		return remove, nil
	case x.Op.Operation == sol003.LcmOperationTypeInstantiate:
		return create, nil
	case x.Plan.Whole:
		return append(remove, create...), nil
	}
	steps := []lcm.Step{
		{Name: "update", Effect: true, Run: d.step("update", k, d.update)},
		{Name: "wait", RetryFrom: "update", Run: d.step("wait", k, d.wait("wait", k))},
	}
	if !undo {
		steps = append(steps, lcm.Step{Name: "inventory", Run: d.step("inventory", k, inventory)})
	}
	return steps, nil
}

// knobs finds the knobs of an operation.
func (d *Driver) knobs(x *lcm.Execution) (Knobs, error) {
	var req struct {
		AdditionalParams map[string]any `json:"additionalParams"`
	}
	if len(x.Op.Params) > 0 {
		if err := x.Params(&req); err != nil {
			return Knobs{}, err
		}
	}
	given, ok := req.AdditionalParams["fake"]
	if !ok && x.Instance.Info != nil {
		given = x.Instance.Info.AdditionalParams["fake"]
	}
	return d.given(given)
}

// given reads the knobs of additionalParams.fake over the driver's; nil says nothing.
func (d *Driver) given(given any) (Knobs, error) {
	k := d.cfg.Knobs
	if given == nil {
		return k, nil
	}
	raw, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(raw, &k)
	}
	if err != nil {
		return Knobs{}, lcm.Errorf(lcm.KindTerminal, "additionalParams.fake: %w", err)
	}
	return k, nil
}

type runFunc = func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error)

// step puts the fault of a step around its work.
func (d *Driver) step(name string, k Knobs, run runFunc) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		if err := ctx.Err(); err != nil {
			return lcm.Progress{}, err
		}
		if !d.fails(x.Op.ID, name, k) {
			return run(ctx, x)
		}
		if k.FailAfterEffect {
			if p, err := run(ctx, x); err != nil {
				return p, err
			}
		}
		kind := k.FailKind
		if kind == "" {
			kind = lcm.KindTerminal
		}
		return lcm.Progress{}, lcm.Errorf(kind, "the fake VIM fails step %s of VNF instance %s, as asked", name, x.Instance.ID)
	}
}

func (d *Driver) fails(opID, name string, k Knobs) bool {
	if k.FailStep != name {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := opID + "/" + name
	if k.FailTimes > 0 && d.failed[key] >= k.FailTimes {
		delete(d.failed, key)
		return false
	}
	if k.FailTimes > 0 {
		d.failed[key]++
	}
	return true
}

func (d *Driver) create(_ context.Context, x *lcm.Execution) (lcm.Progress, error) {
	name := "fake-" + x.Instance.ID
	var have infra
	if len(x.Instance.Infra) > 0 {
		if err := json.Unmarshal(x.Instance.Infra, &have); err != nil {
			return lcm.Progress{}, fmt.Errorf("read what is kept about VNF instance %s: %w", x.Instance.ID, err)
		}
	}
	if have.Name == name {
		return lcm.Done(), nil
	}
	raw, err := json.Marshal(infra{V: 1, Name: name})
	if err != nil {
		return lcm.Progress{}, err
	}
	d.mu.Lock()
	if !d.exists[x.Instance.ID] {
		d.exists[x.Instance.ID] = true
		d.made[x.Instance.ID]++
	}
	d.mu.Unlock()
	x.Instance.Infra = raw
	return lcm.Done(), nil
}

func (d *Driver) remove(_ context.Context, x *lcm.Execution) (lcm.Progress, error) {
	d.mu.Lock()
	delete(d.exists, x.Instance.ID)
	d.mu.Unlock()
	x.Instance.Infra = nil
	return lcm.Done(), nil
}

// update has the VNF be what its plan says. What is healed gets other resources.
func (d *Driver) update(_ context.Context, x *lcm.Execution) (lcm.Progress, error) {
	var have infra
	if len(x.Instance.Infra) > 0 {
		if err := json.Unmarshal(x.Instance.Infra, &have); err != nil {
			return lcm.Progress{}, fmt.Errorf("read what is kept about VNF instance %s: %w", x.Instance.ID, err)
		}
	}
	if have.Name == "" {
		return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "VNF instance %s is not there", x.Instance.ID)
	}
	if have.UpdatedBy == x.Op.ID && x.Op.State != sol003.LcmOperationStateRollingBack {
		return lcm.Done(), nil
	}
	d.mu.Lock()
	d.updates[x.Op.ID]++
	d.mu.Unlock()
	have.V, have.UpdatedBy = 1, x.Op.ID
	raw, err := json.Marshal(have)
	if err != nil {
		return lcm.Progress{}, err
	}
	x.Instance.Infra = raw
	for n := range x.Instance.Info.VnfcResourceInfo {
		v := &x.Instance.Info.VnfcResourceInfo[n]
		if slices.Contains(x.Plan.Heals, v.Id) {
			v.ComputeResource = handle(x, "server", v.Id+"-"+x.Op.ID)
		}
	}
	return lcm.Done(), nil
}

// Updates returns how many times this process has carried out the update of an op occ.
func (d *Driver) Updates(opOccID string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.updates[opOccID]
}

func (d *Driver) wait(name string, k Knobs) runFunc {
	return func(_ context.Context, x *lcm.Execution) (lcm.Progress, error) {
		if k.HangStep == name {
			return lcm.Wait(time.Second, "nothing, for ever"), nil
		}
		if left := time.Duration(k.WaitSeconds*float64(time.Second)) - x.Now().Sub(x.Begun); left > 0 && k.WaitSeconds > 0 {
			return lcm.Wait(left, "the fake VIM"), nil
		}
		return lcm.Done(), nil
	}
}

func handle(x *lcm.Execution, kind, id string) sol003.ResourceHandle {
	return sol003.ResourceHandle{VimConnectionId: x.Target.ID, ResourceId: kind + "-" + id, VimLevelResourceType: "fake:" + kind}
}

// inventory points every handle of the plan to a resource whose id follows from the plan's own ids.
func inventory(_ context.Context, x *lcm.Execution) (lcm.Progress, error) {
	info := x.Instance.Info
	if info == nil {
		return lcm.Progress{}, lcm.Errorf(lcm.KindInternal, "VNF instance %s has no plan to fill in", x.Instance.ID)
	}
	fill := func(h *sol003.ResourceHandle, kind, id string) {
		if h.ResourceId == "" {
			*h = handle(x, kind, id)
		}
	}
	for n := range info.VnfcResourceInfo {
		v := &info.VnfcResourceInfo[n]
		fill(&v.ComputeResource, "server", v.Id)
	}
	for n := range info.VirtualStorageResourceInfo {
		s := &info.VirtualStorageResourceInfo[n]
		fill(&s.StorageResource, "volume", s.Id)
	}
	for n := range info.VnfVirtualLinkResourceInfo {
		vl := &info.VnfVirtualLinkResourceInfo[n]
		fill(&vl.NetworkResource, "network", vl.Id)
		for p := range vl.VnfLinkPorts {
			fill(&vl.VnfLinkPorts[p].ResourceHandle, "port", vl.VnfLinkPorts[p].Id)
		}
	}
	return lcm.Done(), nil
}
