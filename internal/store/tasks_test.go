package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/fake"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// only is a registry of one driver.
type only struct{ lcm.InfraDriver }

func (o only) Driver(string) (lcm.InfraDriver, error) { return o.InfraDriver, nil }

// newTaskBench is a bench whose VIM is the fake one and whose VNF scales, has two flavours and an external connection point.
func newTaskBench(t *testing.T) (*bench, *fake.Driver) {
	t.Helper()
	b := newBench(t)
	two := 2
	simple := vnfd.Flavour{
		ID: "simple",
		VDUs: []vnfd.VDU{
			{Name: "master", Storages: []string{"disk"}},
			{Name: "worker", InitialInstances: &two},
		},
		Storages: []vnfd.VirtualStorage{{Name: "disk"}},
		CPs: []vnfd.CP{
			{Name: "masterCP", VDU: "master"}, {Name: "workerCP", VDU: "worker"}, {Name: "workerInner", VDU: "worker", VirtualLink: "inner"},
		},
		VirtualLinks: []vnfd.VirtualLink{{Name: "inner"}},
		Aspects: []vnfd.ScalingAspect{{ID: "workers", MaxLevel: 3, StepDeltas: []string{"d"},
			VDUs: []vnfd.VDUDeltas{{VDU: "worker", Deltas: []vnfd.Delta{{ID: "d", Instances: 2}}}}}},
		Levels: []vnfd.InstantiationLevel{
			{ID: "small", ScaleInfo: []vnfd.ScaleInfo{{Aspect: "workers", Level: 0}}},
			{ID: "large", ScaleInfo: []vnfd.ScaleInfo{{Aspect: "workers", Level: 2}}},
		},
		DefaultLevel: "small",
	}
	big := simple
	big.ID = "big"
	big.VDUs = append(slices.Clone(simple.VDUs), vnfd.VDU{Name: "extra"})
	b.pkg.Descriptor.Flavours = []vnfd.Flavour{simple, big}
	d := fake.New(fake.Config{})
	b.engine.Infra, b.svc.Infra = only{d}, only{d}
	return b, d
}

// task asks for an operation by its body.
func (b *bench) task(t testing.TB, instance string, operation sol003.LcmOperationType, body string) (string, error) {
	t.Helper()
	ctx, raw := context.Background(), json.RawMessage(body)
	switch operation {
	case sol003.LcmOperationTypeInstantiate:
		return b.svc.Instantiate(ctx, scope, instance, parse[sol003.InstantiateVnfRequest](t, raw), raw)
	case sol003.LcmOperationTypeScale:
		return b.svc.Scale(ctx, scope, instance, parse[sol003.ScaleVnfRequest](t, raw), raw)
	case sol003.LcmOperationTypeScaleToLevel:
		return b.svc.ScaleToLevel(ctx, scope, instance, parse[sol003.ScaleVnfToLevelRequest](t, raw), raw)
	case sol003.LcmOperationTypeChangeFlavour:
		return b.svc.ChangeFlavour(ctx, scope, instance, parse[sol003.ChangeVnfFlavourRequest](t, raw), raw)
	case sol003.LcmOperationTypeHeal:
		return b.svc.Heal(ctx, scope, instance, parse[sol003.HealVnfRequest](t, raw), raw)
	case sol003.LcmOperationTypeOperate:
		return b.svc.Operate(ctx, scope, instance, parse[sol003.OperateVnfRequest](t, raw), raw)
	case sol003.LcmOperationTypeChangeExtConn:
		return b.svc.ChangeExtConn(ctx, scope, instance, parse[sol003.ChangeExtVnfConnectivityRequest](t, raw), raw)
	case sol003.LcmOperationTypeModifyInfo:
		return b.svc.Modify(ctx, scope, instance, raw, 0)
	default:
		return b.svc.Terminate(ctx, scope, instance, parse[sol003.TerminateVnfRequest](t, raw), raw)
	}
}

func parse[T any](t testing.TB, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// done asks for an operation and awaits its success.
func (b *bench) done(t *testing.T, instance string, operation sol003.LcmOperationType, body string) *sol003.VnfLcmOpOcc {
	t.Helper()
	op, err := b.task(t, instance, operation, body)
	if err != nil {
		t.Fatalf("%s: %v", operation, err)
	}
	return b.await(t, op, sol003.LcmOperationStateCompleted)
}

func (b *bench) instance(t testing.TB, id string) *lcm.Instance {
	t.Helper()
	i, err := b.st.Instance(context.Background(), scope, id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// vnfcs returns the ids and resources of an instance's VNFCs of a VDU.
func vnfcs(i *lcm.Instance, vdu string) (ids, resources []string) {
	for _, v := range i.Info.VnfcResourceInfo {
		if v.VduId == vdu {
			ids, resources = append(ids, v.Id), append(resources, v.ComputeResource.ResourceId)
		}
	}
	return ids, resources
}

// changes counts an op occ's affected VNFCs and links by change type.
func changes(op *sol003.VnfLcmOpOcc) string {
	n := map[string]int{}
	if c := op.ResourceChanges; c != nil {
		for _, v := range c.AffectedVnfcs {
			n["vnfc "+string(v.ChangeType)]++
		}
		for _, v := range c.AffectedVirtualLinks {
			n["vl "+string(v.ChangeType)]++
		}
		for _, v := range c.AffectedVirtualStorages {
			n["storage "+string(v.ChangeType)]++
		}
	}
	return strings.TrimPrefix(fmt.Sprint(n), "map")
}

const withLinks = `{"flavourId":"simple","extVirtualLinks":[{"id":"net0","resourceId":"NET","extCps":[
	{"cpdId":"masterCP","cpConfig":[{"cpProtocolData":[{"layerProtocol":"IP_OVER_ETHERNET"}]}]},
	{"cpdId":"workerCP","cpConfig":[{"cpProtocolData":[{"layerProtocol":"IP_OVER_ETHERNET"}]}]}]}]}`

func TestEveryOperation(t *testing.T) {
	b, _ := newTaskBench(t)
	b.serve(t)
	id := b.create(t)
	check := func(op *sol003.VnfLcmOpOcc, want string, masters, workers, level int) *lcm.Instance {
		t.Helper()
		if got := changes(op); got != want {
			t.Errorf("%s changed %s, want %s", op.Operation, got, want)
		}
		i := b.instance(t, id)
		m, _ := vnfcs(i, "master")
		w, handles := vnfcs(i, "worker")
		if len(m) != masters || len(w) != workers || slices.Contains(handles, "") {
			t.Errorf("after %s: masters %v, workers %v of %v", op.Operation, m, w, handles)
		}
		if len(i.Info.VnfcInfo) != len(i.Info.VnfcResourceInfo) {
			t.Errorf("after %s: %d vnfcInfo for %d VNFCs", op.Operation, len(i.Info.VnfcInfo), len(i.Info.VnfcResourceInfo))
		}
		if got := i.Info.ScaleStatus[0].ScaleLevel; got != level {
			t.Errorf("after %s: level %d, want %d", op.Operation, got, level)
		}
		ports := 0
		for _, vl := range i.Info.VnfVirtualLinkResourceInfo {
			ports += len(vl.VnfLinkPorts)
		}
		if ports != masters+2*workers {
			t.Errorf("after %s: %d link ports for %d masters and %d workers", op.Operation, ports, masters, workers)
		}
		return i
	}
	check(b.done(t, id, sol003.LcmOperationTypeInstantiate, withLinks), "[storage ADDED:1 vl ADDED:2 vnfc ADDED:3]", 1, 2, 0)
	check(b.done(t, id, sol003.LcmOperationTypeScale, `{"type":"SCALE_OUT","aspectId":"workers","numberOfSteps":2}`),
		"[vl LINK_PORT_ADDED:2 vnfc ADDED:4]", 1, 6, 2)
	check(b.done(t, id, sol003.LcmOperationTypeScale, `{"type":"SCALE_IN","aspectId":"workers"}`),
		"[vl LINK_PORT_REMOVED:2 vnfc REMOVED:2]", 1, 4, 1)
	check(b.done(t, id, sol003.LcmOperationTypeScaleToLevel, `{"scaleInfo":[{"aspectId":"workers","scaleLevel":3}]}`),
		"[vl LINK_PORT_ADDED:2 vnfc ADDED:4]", 1, 8, 3)
	check(b.done(t, id, sol003.LcmOperationTypeScaleToLevel, `{"instantiationLevelId":"small"}`),
		"[vl LINK_PORT_REMOVED:2 vnfc REMOVED:6]", 1, 2, 0)
	i := check(b.done(t, id, sol003.LcmOperationTypeScale, `{"type":"SCALE_OUT","aspectId":"workers"}`),
		"[vl LINK_PORT_ADDED:2 vnfc ADDED:2]", 1, 4, 1)
	workers, before := vnfcs(i, "worker")
	i = check(b.done(t, id, sol003.LcmOperationTypeHeal, `{"vnfcInstanceId":["`+workers[1]+`"],"cause":"broken"}`), "[vnfc MODIFIED:1]", 1, 4, 1)
	if ids, after := vnfcs(i, "worker"); !cmp.Equal(ids, workers) || after[1] == before[1] || after[0] != before[0] {
		t.Errorf("healed %v %v into %v %v", workers, before, ids, after)
	}
	// The whole is made anew at the levels that it has, not at those it began with.
	i = check(b.done(t, id, sol003.LcmOperationTypeHeal, `{}`),
		"[storage ADDED:1 storage REMOVED:1 vl ADDED:2 vl REMOVED:2 vnfc ADDED:5 vnfc REMOVED:5]", 1, 4, 1)
	if ids, _ := vnfcs(i, "worker"); slices.Contains(workers, ids[0]) {
		t.Errorf("ids %v of %v", ids, workers)
	}
	i = check(b.done(t, id, sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED","stopType":"GRACEFUL","gracefulStopTimeout":1}`), "[]", 1, 4, 1)
	if i.Info.VnfState != sol003.VnfOperationalStateStopped || i.Info.VnfcInfo[0].VnfcState != sol003.VnfOperationalStateStopped {
		t.Errorf("stopped: %s", i.Info.VnfState)
	}
	if _, err := b.task(t, id, sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED"}`); !lcm.Is(err, lcm.KindConflict) {
		t.Errorf("stopped twice: %v", err)
	}
	check(b.done(t, id, sol003.LcmOperationTypeOperate, `{"changeStateTo":"STARTED"}`), "[]", 1, 4, 1)
	op := b.done(t, id, sol003.LcmOperationTypeChangeExtConn, `{"extVirtualLinks":[{"id":"net1","resourceId":"OTHER","extCps":[{"cpdId":"workerCP","cpConfig":[{}]}]}]}`)
	i = check(op, "[vl ADDED:1 vl LINK_PORT_REMOVED:1]", 1, 4, 1)
	if len(op.ChangedExtConnectivity) != 2 || len(i.Info.ExtVirtualLinkInfo) != 2 || len(i.Info.ExtCpInfo) != 2 {
		t.Errorf("changedExtConnectivity %+v; %+v", op.ChangedExtConnectivity, i.Info.ExtVirtualLinkInfo)
	}
	check(b.done(t, id, sol003.LcmOperationTypeChangeFlavour, `{"newFlavourId":"big","instantiationLevelId":"large"}`),
		"[vl LINK_PORT_ADDED:2 vnfc ADDED:3]", 1, 6, 2)
	if _, err := b.task(t, id, sol003.LcmOperationTypeChangeFlavour, `{"newFlavourId":"big"}`); !lcm.Is(err, lcm.KindConflict) {
		t.Errorf("the flavour that it has: %v", err)
	}
	op = b.done(t, id, sol003.LcmOperationTypeModifyInfo, `{"vnfInstanceName":"new","metadata":{"a":"1","password":"tell-nobody"}}`)
	if op.ChangedInfo.VnfInstanceName != "new" || op.ChangedInfo.Metadata["password"] == "tell-nobody" {
		t.Errorf("changedInfo %+v", op.ChangedInfo)
	}
	b.done(t, id, sol003.LcmOperationTypeModifyInfo, `{"metadata":{"a":null,"b":"2"},"vimConnectionInfo":[{"id":"v2","vimType":"fake","vimId":"x"}]}`)
	if i = b.instance(t, id); i.Name != "new" || i.Metadata["b"] != "2" || i.Metadata["a"] != nil || len(i.VimConnections) != 2 {
		t.Errorf("modified: %q %v %v", i.Name, i.Metadata, i.VimConnections)
	}
	if got := fmt.Sprint(b.notifications(t, op.Id)); got != "[PROCESSING COMPLETED]" {
		t.Errorf("notifications of a modification: %s", got)
	}
	op = b.done(t, id, sol003.LcmOperationTypeTerminate, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":1}`)
	if took := op.StateEnteredTime.Sub(op.StartTime); took < time.Second {
		t.Errorf("terminated after %s", took)
	}
	if i = b.instance(t, id); i.Info != nil || i.Request != nil {
		t.Errorf("terminated: %+v", i)
	}
}

func TestRefusedTasks(t *testing.T) {
	b, _ := newTaskBench(t)
	b.serve(t)
	id, idle := b.create(t), b.create(t)
	b.done(t, id, sol003.LcmOperationTypeInstantiate, withLinks)
	for _, c := range []struct {
		instance  string
		operation sol003.LcmOperationType
		body      string
		kind      lcm.Kind
		detail    string
	}{
		{idle, sol003.LcmOperationTypeScale, `{"type":"SCALE_OUT","aspectId":"workers"}`, lcm.KindConflict, "VNF IS NOT ACTIVE"},
		{idle, sol003.LcmOperationTypeHeal, `{}`, lcm.KindConflict, "Cannot heal while"},
		{idle, sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED"}`, lcm.KindConflict, "Cannot operate while"},
		{idle, sol003.LcmOperationTypeChangeExtConn, `{"extVirtualLinks":[]}`, lcm.KindConflict, "VNF is not instantiated"},
		{idle, sol003.LcmOperationTypeModifyInfo, `{"vimConnectionInfo":[]}`, lcm.KindInvalid, "vimConnectionInfo"},
		{id, sol003.LcmOperationTypeScale, `{"type":"SCALE_OUT","aspectId":"none"}`, lcm.KindInvalid, "aspectId not in ScaleStatus"},
		{id, sol003.LcmOperationTypeScale, `{"type":"SCALE_IN","aspectId":"workers"}`, lcm.KindInvalid, "can not scale_in"},
		{id, sol003.LcmOperationTypeScale, `{"type":"SCALE_OUT","aspectId":"workers","numberOfSteps":4}`, lcm.KindInvalid, "can not scale_out"},
		{id, sol003.LcmOperationTypeScale, `{"type":"SCALE_OUT","aspectId":"workers","numberOfSteps":9223372036854775807}`, lcm.KindInvalid, "can not scale_out"},
		{id, sol003.LcmOperationTypeScaleToLevel, `{"instantiationLevelId":"none"}`, lcm.KindInvalid, "No instantiation level"},
		{id, sol003.LcmOperationTypeScaleToLevel, `{"scaleInfo":[{"aspectId":"workers","scaleLevel":9}]}`, lcm.KindInvalid, "between 0 and 3"},
		{id, sol003.LcmOperationTypeHeal, `{"vnfcInstanceId":["none"]}`, lcm.KindInvalid, "Vnfc id none not present"},
		{id, sol003.LcmOperationTypeChangeFlavour, `{"newFlavourId":"none"}`, lcm.KindInvalid, "No flavour with id 'none'."},
		{id, sol003.LcmOperationTypeChangeExtConn, `{"extVirtualLinks":[{"id":"n","resourceId":"r","extCps":[{"cpdId":"none"}]}]}`, lcm.KindInvalid, "no connection point 'none'"},
		{id, sol003.LcmOperationTypeModifyInfo, `{"vnfdId":"` + uuid.NewString() + `"}`, lcm.KindInvalid, "Can not find requested vnf package vnfd"},
		{uuid.NewString(), sol003.LcmOperationTypeHeal, `{}`, lcm.KindNotFound, "Can not find requested vnf"},
	} {
		_, err := b.task(t, c.instance, c.operation, c.body)
		if !lcm.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.detail) {
			t.Errorf("%s %s: %v", c.operation, c.body, err)
		}
	}
	version := b.instance(t, id).Version
	if _, err := b.svc.Modify(context.Background(), scope, id, json.RawMessage(`{"vnfInstanceName":"x"}`), version+1); !lcm.Is(err, lcm.KindPrecondition) {
		t.Errorf("another version: %v", err)
	}
	if _, err := b.svc.Modify(context.Background(), scope, id, json.RawMessage(`{"vnfInstanceName":"x"}`), version); err != nil {
		t.Errorf("its version: %v", err)
	}
}

// TestFailedTasks has every operation fail at each of its VIM steps; then it is retried or rolled back.
func TestFailedTasks(t *testing.T) {
	b, _ := newTaskBench(t)
	b.serve(t)
	ctx := context.Background()
	for _, c := range []struct {
		operation sol003.LcmOperationType
		body      string
		steps     []string
		undo      bool
	}{
		{sol003.LcmOperationTypeScale, `{"type":"SCALE_OUT","aspectId":"workers"%s}`, []string{"update", "wait", "inventory"}, true},
		{sol003.LcmOperationTypeScale, `{"type":"SCALE_IN","aspectId":"workers"%s}`, []string{"update", "wait", "inventory"}, false},
		{sol003.LcmOperationTypeHeal, `{"cause":"x"%s}`, []string{"delete", "delete-wait", "create", "wait", "inventory"}, false},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED"%s}`, []string{"update", "wait"}, true},
		{sol003.LcmOperationTypeChangeFlavour, `{"newFlavourId":"big"%s}`, []string{"update", "wait", "inventory"}, true},
		{sol003.LcmOperationTypeChangeExtConn, `{"extVirtualLinks":[{"id":"net1","resourceId":"OTHER","extCps":[{"cpdId":"workerCP"}]}]%s}`, []string{"update", "wait", "inventory"}, true},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"FORCEFUL"%s}`, []string{"delete", "delete-wait"}, false},
	} {
		for _, step := range c.steps {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/after=%v", c.operation, step, after), func(t *testing.T) {
					id := b.create(t)
					b.done(t, id, sol003.LcmOperationTypeInstantiate, strings.Replace(withLinks, "{", `{"instantiationLevelId":"large",`, 1))
					was := b.instance(t, id)
					knobs := fmt.Sprintf(`,"additionalParams":{"fake":{"failStep":"%s","failTimes":1,"failAfterEffect":%v}}`, step, after)
					op, err := b.task(t, id, c.operation, fmt.Sprintf(c.body, knobs))
					if err != nil {
						t.Fatal(err)
					}
					failed := b.await(t, op, sol003.LcmOperationStateFailedTemp)
					if failed.Error == nil || !strings.Contains(failed.Error.Detail, "fake VIM fails step "+step) {
						t.Errorf("error %+v", failed.Error)
					}
					if now := b.instance(t, id); !cmp.Equal(now.Info, was.Info) || now.State != was.State {
						t.Errorf("the instance has changed: %s", cmp.Diff(was.Info, now.Info))
					}
					err = b.svc.Rollback(ctx, scope, op)
					if !c.undo {
						if !lcm.Is(err, lcm.KindConflict) {
							t.Errorf("rollback: %v", err)
						}
						if err := b.svc.Retry(ctx, scope, op); err != nil {
							t.Fatal(err)
						}
						b.await(t, op, sol003.LcmOperationStateCompleted)
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					b.await(t, op, sol003.LcmOperationStateRolledBack)
					now := b.instance(t, id)
					if !cmp.Equal(now.Info, was.Info) || now.Request.FlavourId != was.Request.FlavourId {
						t.Errorf("rolled back: %s", cmp.Diff(was.Info, now.Info))
					}
					// It may be done again.
					b.done(t, id, c.operation, fmt.Sprintf(c.body, ""))
				})
			}
		}
	}
}

// slowGranter decides when it is told to.
type slowGranter struct{ decided atomic.Bool }

func (g *slowGranter) Asks() bool { return true }

func (g *slowGranter) Grant(context.Context, *lcm.Execution) (*lcm.Grant, lcm.Progress, error) {
	if !g.decided.Load() {
		return nil, lcm.Wait(10*time.Millisecond, "the NFVO"), nil
	}
	return &lcm.Grant{ID: "g1"}, lcm.Done(), nil
}

func TestCancel(t *testing.T) {
	ctx := context.Background()
	cancel := func(t *testing.T, b *bench, op string, mode sol003.CancelModeType) {
		t.Helper()
		if err := b.svc.Cancel(ctx, scope, op, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []sol003.CancelModeType{sol003.CancelModeTypeForceful, sol003.CancelModeTypeGraceful} {
		t.Run("STARTING/"+string(mode), func(t *testing.T) {
			b, _ := newTaskBench(t)
			g := &slowGranter{}
			b.engine.Granter = g
			b.serve(t)
			id := b.create(t)
			op, err := b.task(t, id, sol003.LcmOperationTypeInstantiate, withLinks)
			if err != nil {
				t.Fatal(err)
			}
			cancel(t, b, op, mode)
			if mode == sol003.CancelModeTypeGraceful {
				if o := b.await(t, op, sol003.LcmOperationStateStarting, sol003.LcmOperationStateRolledBack); o.OperationState == sol003.LcmOperationStateStarting && (!o.IsCancelPending || o.CancelMode != mode) {
					t.Errorf("not pending: %+v", o)
				}
				g.decided.Store(true)
			}
			o := b.await(t, op, sol003.LcmOperationStateRolledBack)
			if o.IsCancelPending || o.CancelMode != "" || o.Error == nil {
				t.Errorf("%+v", o)
			}
			if i := b.instance(t, id); i.Info != nil || i.VimID != "" {
				t.Errorf("something was begun: %+v", i)
			}
		})
		t.Run("PROCESSING/"+string(mode), func(t *testing.T) {
			b, d := newTaskBench(t)
			b.serve(t)
			id := b.create(t)
			seconds := map[sol003.CancelModeType]int{sol003.CancelModeTypeGraceful: 2, sol003.CancelModeTypeForceful: 10}[mode]
			op, err := b.task(t, id, sol003.LcmOperationTypeInstantiate, fmt.Sprintf(`{"flavourId":"simple","additionalParams":{"fake":{"waitSeconds":%d}}}`, seconds))
			if err != nil {
				t.Fatal(err)
			}
			for d.Created(id) == 0 {
				time.Sleep(time.Millisecond)
			}
			begun := time.Now()
			cancel(t, b, op, mode)
			if err := b.svc.Cancel(ctx, scope, op, mode); !lcm.Is(err, lcm.KindConflict) {
				t.Errorf("canceled twice: %v", err)
			}
			o := b.await(t, op, sol003.LcmOperationStateFailedTemp)
			if took := time.Since(begun); mode == sol003.CancelModeTypeForceful && took > time.Duration(seconds-1)*time.Second {
				t.Errorf("FORCEFUL waited %s", took)
			}
			if o.IsCancelPending || !strings.Contains(o.Error.Detail, string(mode)) {
				t.Errorf("%+v %+v", o, o.Error)
			}
			if err := b.svc.Rollback(ctx, scope, op); err != nil {
				t.Fatal(err)
			}
			cancel(t, b, op, mode)
			o = b.await(t, op, sol003.LcmOperationStateFailedTemp, sol003.LcmOperationStateRolledBack)
			if o.OperationState == sol003.LcmOperationStateFailedTemp {
				if err := b.svc.Rollback(ctx, scope, op); err != nil {
					t.Fatal(err)
				}
			}
			b.await(t, op, sol003.LcmOperationStateRolledBack)
			if len(d.Existing()) != 0 {
				t.Errorf("left behind: %v", d.Existing())
			}
			if err := b.svc.Cancel(ctx, scope, op, mode); !lcm.Is(err, lcm.KindConflict) {
				t.Errorf("canceled in ROLLED_BACK: %v", err)
			}
		})
	}
	t.Run("a long wait", func(t *testing.T) {
		b, _ := newTaskBench(t)
		b.serve(t)
		id := b.create(t)
		b.done(t, id, sol003.LcmOperationTypeInstantiate, withLinks)
		op, err := b.task(t, id, sol003.LcmOperationTypeTerminate, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":3600}`)
		if err != nil {
			t.Fatal(err)
		}
		b.await(t, op, sol003.LcmOperationStateProcessing)
		cancel(t, b, op, sol003.CancelModeTypeGraceful)
		b.await(t, op, sol003.LcmOperationStateFailedTemp)
	})
}

// TestOneOperationAtATime sends mixed requests to one instance at once, over and over (SOL003 v2.6.1 §5.6.2): each is accepted
// or a conflict, and the history is one of operations that follow one another.
func TestOneOperationAtATime(t *testing.T) {
	b, _ := newTaskBench(t)
	b.serve(t)
	requests := []struct {
		operation sol003.LcmOperationType
		body      string
	}{
		{sol003.LcmOperationTypeInstantiate, withLinks},
		{sol003.LcmOperationTypeInstantiate, `{"flavourId":"simple","additionalParams":{"fake":{"failStep":"wait","failTimes":1}}}`},
		{sol003.LcmOperationTypeScale, `{"type":"SCALE_OUT","aspectId":"workers"}`},
		{sol003.LcmOperationTypeScale, `{"type":"SCALE_IN","aspectId":"workers"}`},
		{sol003.LcmOperationTypeHeal, `{}`},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STOPPED"}`},
		{sol003.LcmOperationTypeOperate, `{"changeStateTo":"STARTED"}`},
		{sol003.LcmOperationTypeChangeFlavour, `{"newFlavourId":"big"}`},
		{sol003.LcmOperationTypeChangeExtConn, `{"extVirtualLinks":[{"id":"net1","resourceId":"O","extCps":[{"cpdId":"workerCP"}]}]}`},
		{sol003.LcmOperationTypeModifyInfo, `{"vnfInstanceName":"n"}`},
		{sol003.LcmOperationTypeTerminate, `{"terminationType":"FORCEFUL"}`},
	}
	const burst = 200
	rapid.Check(t, func(rt *rapid.T) {
		id := b.create(t)
		picks := rapid.SliceOfN(rapid.IntRange(0, len(requests)+3), burst, burst).Draw(rt, "requests")
		var wg sync.WaitGroup
		var accepted atomic.Int64
		for _, pick := range picks {
			wg.Go(func() {
				var err error
				if pick < len(requests) {
					_, err = b.task(t, id, requests[pick].operation, requests[pick].body)
				} else {
					err = b.actOnLast(id, pick-len(requests))
				}
				switch {
				case err == nil:
					accepted.Add(1)
				case lcm.Is(err, lcm.KindConflict), lcm.Is(err, lcm.KindInvalid), lcm.Is(err, lcm.KindNotFound):
				default:
					t.Errorf("request %d: %v", pick, err)
				}
			})
		}
		wg.Wait()
		if accepted.Load() == 0 {
			t.Error("nothing was accepted")
		}
		b.history(t, id)
	})
}

// actOnLast retries, rolls back, fails or cancels the instance's latest op occ.
func (b *bench) actOnLast(id string, action int) error {
	ctx := context.Background()
	var op string
	if err := b.st.Pool.QueryRow(ctx, `SELECT coalesce((SELECT id::text FROM vnf_lcm_op_occs WHERE vnf_instance_id = $1 ORDER BY id DESC LIMIT 1), '')`, id).Scan(&op); err != nil {
		return err
	}
	switch action {
	case 0:
		return b.svc.Retry(ctx, scope, op)
	case 1:
		return b.svc.Rollback(ctx, scope, op)
	case 2:
		return b.svc.Fail(ctx, scope, op)
	default:
		return b.svc.Cancel(ctx, scope, op, sol003.CancelModeTypeForceful)
	}
}

// transitions are those of SOL003 v2.6.1 §5.6.2.2.
var transitions = map[string][]string{
	"":             {"STARTING", "PROCESSING"},
	"STARTING":     {"PROCESSING", "ROLLED_BACK"},
	"PROCESSING":   {"COMPLETED", "FAILED_TEMP", "FAILED"},
	"FAILED_TEMP":  {"PROCESSING", "ROLLING_BACK", "FAILED"},
	"ROLLING_BACK": {"ROLLED_BACK", "FAILED_TEMP"},
}

// history waits until an instance's operations have come to rest and checks that none overlapped another and that each went
// through the states as the standard has it, each told once.
func (b *bench) history(t testing.TB, id string) {
	t.Helper()
	ctx := context.Background()
	deadline := time.Now().Add(5 * time.Minute)
	for live := 1; live > 0; {
		if err := b.st.Pool.QueryRow(ctx, `SELECT count(*) FROM vnf_lcm_op_occs WHERE vnf_instance_id = $1 AND operation_state IN ('STARTING','PROCESSING','ROLLING_BACK')`, id).Scan(&live); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d operations of %s do not end", live, id)
		}
		time.Sleep(2 * time.Millisecond)
	}
	rows, err := b.st.Pool.Query(ctx, `SELECT op_occ_id::text, seq, body->>'operationState', created_at FROM notifications
		WHERE vnf_instance_id = $1 AND op_occ_id IS NOT NULL ORDER BY op_occ_id, seq`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	op, state, next := "", "", int64(1)
	for rows.Next() {
		var of, entered string
		var seq int64
		var at time.Time
		if err := rows.Scan(&of, &seq, &entered, &at); err != nil {
			t.Fatal(err)
		}
		if of != op {
			if lcm.Active(sol003.LcmOperationState(state)) && state != "" {
				t.Errorf("op occ %s was in %s when %s began", op, state, of)
			}
			op, state, next = of, "", 1
		}
		if seq != next || !slices.Contains(transitions[state], entered) {
			t.Errorf("op occ %s: %q → %q as number %d, not %d", op, state, entered, seq, next)
		}
		state, next = entered, next+1
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestSecretsOfEarlierRequests: what an instance was instantiated with is in no later operation's error.
func TestSecretsOfEarlierRequests(t *testing.T) {
	b := newBench(t)
	var broken atomic.Bool
	b.vim.hook = func(string, *lcm.Execution) (lcm.Progress, error) {
		if broken.Load() {
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "the script raised: password=tell-nobody")
		}
		return lcm.Done(), nil
	}
	b.serve(t)
	id := b.create(t)
	b.await(t, b.instantiate(t, id), sol003.LcmOperationStateCompleted)
	broken.Store(true)
	op, err := b.task(t, id, sol003.LcmOperationTypeHeal, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	failed := b.await(t, op, sol003.LcmOperationStateFailedTemp)
	if containsSecret(failed.Error.Detail) || !strings.Contains(failed.Error.Detail, "the script raised") {
		t.Errorf("error %q", failed.Error.Detail)
	}
	var told string
	if err := b.st.Pool.QueryRow(context.Background(), `SELECT string_agg(body::text, ' ') FROM notifications WHERE op_occ_id = $1`, op).Scan(&told); err != nil {
		t.Fatal(err)
	}
	if containsSecret(told) {
		t.Errorf("notifications %s", told)
	}
}

// TestStaleRequest: what was checked on an instance that another operation has changed since is a conflict.
func TestStaleRequest(t *testing.T) {
	b, _ := newTaskBench(t)
	b.serve(t)
	id := b.create(t)
	b.done(t, id, sol003.LcmOperationTypeInstantiate, strings.Replace(withLinks, "{", `{"instantiationLevelId":"large",`, 1))
	var asked atomic.Bool
	b.svc.Probe = func(point string) {
		if point == "SCALE/accept/before" && asked.CompareAndSwap(false, true) { // another comes through after the first's check
			b.done(t, id, sol003.LcmOperationTypeScale, `{"type":"SCALE_IN","aspectId":"workers","numberOfSteps":2}`)
		}
	}
	if _, err := b.task(t, id, sol003.LcmOperationTypeScale, `{"type":"SCALE_IN","aspectId":"workers"}`); !lcm.Is(err, lcm.KindConflict) {
		t.Errorf("a stale request: %v", err)
	}
	if got := b.instance(t, id).Info.ScaleStatus[0].ScaleLevel; got != 0 {
		t.Errorf("level %d", got)
	}
}
