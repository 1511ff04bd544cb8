package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// bench is an engine on a real database with a VIM made of a map.
type bench struct {
	st     *store.Store
	svc    *lcm.Service
	engine *lcm.Engine
	vim    *memoryVIM
	pkg    *lcm.Package
	target *lcm.VimTarget
	away   atomic.Int64 // how often the database is still to be away when the VIM is looked up
}

// memoryVIM is an InfraDriver whose cloud is a map; hooks let a test interfere with any step.
type memoryVIM struct {
	mu      sync.Mutex
	stacks  map[string]int // instance → how often it was created
	creates atomic.Int64
	hook    func(step string, x *lcm.Execution) (lcm.Progress, error)
	hang    bool          // creating never returns
	timeout time.Duration // of creating
	turn    func(ctx context.Context, x *lcm.Execution) (func(), lcm.Progress)
}

// Driver lets the VIM be the only one of a registry.
func (m *memoryVIM) Driver(string) (lcm.InfraDriver, error) { return m, nil }

func (m *memoryVIM) Type() string { return lcm.VimFake }

func (m *memoryVIM) Can(sol003.LcmOperationType, bool) bool { return true }

func (m *memoryVIM) Leaving(*lcm.Execution) ([]lcm.Step, error) { return nil, nil }

func (m *memoryVIM) step(name string, effect bool, f func(x *lcm.Execution)) lcm.Step {
	return lcm.Step{Name: name, Effect: effect, Turn: m.turn, Run: func(_ context.Context, x *lcm.Execution) (lcm.Progress, error) {
		if m.hook != nil {
			if p, err := m.hook(name, x); err != nil || !p.Finished() {
				return p, err
			}
		}
		f(x)
		return lcm.Done(), nil
	}}
}

func (m *memoryVIM) Steps(x *lcm.Execution) ([]lcm.Step, error) {
	create := m.step("create", true, func(x *lcm.Execution) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.stacks[x.Instance.ID] == 0 {
			m.stacks[x.Instance.ID]++
			m.creates.Add(1)
		}
	})
	create.Timeout = m.timeout
	if m.hang {
		create.Run = func(ctx context.Context, _ *lcm.Execution) (lcm.Progress, error) {
			<-ctx.Done()
			return lcm.Progress{}, fmt.Errorf("upload: %w", ctx.Err())
		}
	}
	wait := m.step("wait", false, func(*lcm.Execution) {})
	wait.RetryFrom = "create"
	if x.Op.Operation == sol003.LcmOperationTypeInstantiate && x.Op.State != sol003.LcmOperationStateRollingBack {
		return []lcm.Step{
			create,
			wait,
			m.step("inventory", false, func(x *lcm.Execution) {
				for n := range x.Instance.Info.VnfcResourceInfo {
					x.Instance.Info.VnfcResourceInfo[n].ComputeResource.ResourceId = fmt.Sprintf("server-%d", n)
				}
			}),
		}, nil
	}
	return []lcm.Step{
		m.step("delete", true, func(x *lcm.Execution) {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.stacks, x.Instance.ID)
		}),
		m.step("tidy", true, func(*lcm.Execution) {}),
	}, nil
}

// one serves the only package and the only VIM of a bench.
type one struct{ b *bench }

func (o one) PackageByVnfd(_ context.Context, _ lcm.Scope, id string, _ bool) (*lcm.Package, error) {
	if id != o.b.pkg.Descriptor.ID {
		return nil, lcm.Errorf(lcm.KindNotFound, "no VNFD %s", id)
	}
	return o.b.pkg, nil
}
func (o one) Onboarded(context.Context, string) (*lcm.Package, error) { return o.b.pkg, nil }
func (o one) Open(context.Context, string) (lcm.PackageFS, error)     { return nil, errors.ErrUnsupported }
func (o one) Resolve(context.Context, lcm.Scope, []sol003.VimConnectionInfo) (*lcm.VimTarget, error) {
	if o.b.away.Add(-1) >= 0 {
		return nil, errors.New("unexpected EOF")
	}
	return o.b.target, nil
}

func newBench(t *testing.T) *bench {
	t.Helper()
	st := storetest.Open(t)
	return benchOn(t, st)
}

func benchOn(t *testing.T, st *store.Store) *bench {
	t.Helper()
	b := &bench{st: st, vim: &memoryVIM{stacks: map[string]int{}}}
	ctx := context.Background()
	b.pkg = &lcm.Package{
		ID: uuid.NewString(), ProjectID: "p", OnboardingState: sol003.PackageOnboardingStateTypeOnboarded,
		OperationalState: sol003.PackageOperationalStateTypeEnabled,
		Descriptor: &vnfd.Descriptor{
			ID: uuid.NewString(), Provider: "Company", ProductName: "VNF", SoftwareVersion: "1.0", Version: "1.0",
			Flavours: []vnfd.Flavour{{ID: "simple", VDUs: []vnfd.VDU{{Name: "VDU1"}, {Name: "VDU2"}}}},
		},
	}
	if _, err := st.Pool.Exec(ctx, `INSERT INTO vnf_packages (id, project_id, onboarding_state, operational_state, vnfd_id, body, created_at)
		VALUES ($1, 'p', 'ONBOARDED', 'ENABLED', $2, '{}', now())`, b.pkg.ID, b.pkg.Descriptor.ID); err != nil {
		t.Fatal(err)
	}
	b.target = &lcm.VimTarget{VIM: lcm.VIM{ID: uuid.NewString(), Type: lcm.VimFake}}
	if _, err := st.Pool.Exec(ctx, `INSERT INTO vims (id, project_id, name, type, status, auth_url, body, sealed, created_at)
		VALUES ($1, 'p', 'v', 'fake', 'REACHABLE', '', '{}', '', now())`, b.target.ID); err != nil {
		t.Fatal(err)
	}
	id := func() string { return uuid.Must(uuid.NewV7()).String() }
	b.svc = &lcm.Service{Store: st, Packages: one{b}, VIMs: one{b}, Infra: b.vim, Now: st.Now, NewID: id}
	b.engine = &lcm.Engine{
		Store: st, Packages: one{b}, VIMs: one{b}, Infra: b.vim,
		Granter: lcm.AllowAll{}, Now: st.Now, NewID: id, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	return b
}

var scope = lcm.Scope{ProjectID: "p"}

func (b *bench) create(t *testing.T) string {
	t.Helper()
	i, err := b.svc.Create(context.Background(), scope, sol003.CreateVnfRequest{VnfdId: b.pkg.Descriptor.ID})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return i.ID
}

func (b *bench) instantiate(t *testing.T, id string) string {
	t.Helper()
	raw := json.RawMessage(`{"flavourId":"simple","additionalParams":{"password":"tell-nobody"}}`)
	var req sol003.InstantiateVnfRequest
	if err := json.Unmarshal(raw, &req); err != nil {
		t.Fatal(err)
	}
	op, err := b.svc.Instantiate(context.Background(), scope, id, req, raw)
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	return op
}

// serve runs a node until the test ends or stop is called.
func (b *bench) serve(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.st.Serve(ctx, store.WorkConfig{
			RunOperation: b.engine.Run, RunOnboarding: func(context.Context, string, int64) error { return nil },
			Operations: 20, Onboardings: 2, FetchCooldown: 5 * time.Millisecond, FetchPoll: 20 * time.Millisecond,
			Retention: time.Hour, Watch: 100 * time.Millisecond,
		}, nil); err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done }) }
	t.Cleanup(stop)
	return stop
}

// await polls the op occ until it is in one of the states.
func (b *bench) await(t *testing.T, opOcc string, want ...sol003.LcmOperationState) *sol003.VnfLcmOpOcc {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		body, err := b.st.OpOccBody(context.Background(), scope, opOcc)
		if err != nil {
			t.Fatal(err)
		}
		var op sol003.VnfLcmOpOcc
		if err := json.Unmarshal(body.JSON, &op); err != nil {
			t.Fatal(err)
		}
		for _, s := range want {
			if op.OperationState == s {
				return &op
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("op occ %s is in %s, not in %v: %+v", opOcc, op.OperationState, want, op.Error)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (b *bench) notifications(t *testing.T, opOcc string) (states []string) {
	t.Helper()
	rows, err := b.st.Pool.Query(context.Background(), `SELECT body->>'operationState' FROM notifications WHERE op_occ_id = $1 ORDER BY seq`, opOcc)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		states = append(states, s)
	}
	return states
}

func TestLifecycle(t *testing.T) {
	b := newBench(t)
	b.serve(t)
	ctx := context.Background()
	id := b.create(t)
	op := b.await(t, b.instantiate(t, id), sol003.LcmOperationStateCompleted)
	if got := len(op.ResourceChanges.AffectedVnfcs); got != 2 {
		t.Errorf("affectedVnfcs = %d, want 2", got)
	}
	if got := fmt.Sprint(b.notifications(t, op.Id)); got != "[STARTING PROCESSING COMPLETED]" {
		t.Errorf("notifications %s", got)
	}
	i, err := b.st.Instance(ctx, scope, id)
	if err != nil {
		t.Fatal(err)
	}
	if i.State != sol003.InstantiationStateInstantiated || i.Info.AdditionalParams["password"] != "tell-nobody" {
		t.Errorf("instance %+v", i)
	}
	body, err := b.st.InstanceBody(ctx, scope, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{body.JSON, mustBody(t, b, op.Id)} {
		if s := string(raw); containsSecret(s) {
			t.Errorf("a secret is shown: %s", s)
		}
	}
	if err := b.svc.Delete(ctx, scope, id, 0); !lcm.Is(err, lcm.KindConflict) {
		t.Errorf("delete of an instantiated VNF: %v", err)
	}
	raw := json.RawMessage(`{"terminationType":"FORCEFUL"}`)
	tid, err := b.svc.Terminate(ctx, scope, id, sol003.TerminateVnfRequest{}, raw)
	if err != nil {
		t.Fatal(err)
	}
	b.await(t, tid, sol003.LcmOperationStateCompleted)
	if len(b.vim.stacks) != 0 {
		t.Errorf("left behind: %v", b.vim.stacks)
	}
	if err := b.svc.Delete(ctx, scope, id, 0); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := b.st.Instance(ctx, scope, id); !lcm.Is(err, lcm.KindNotFound) {
		t.Errorf("after delete: %v", err)
	}
}

func containsSecret(s string) bool { return strings.Contains(s, "tell-nobody") }

func mustBody(t *testing.T, b *bench, opOcc string) []byte {
	t.Helper()
	body, err := b.st.OpOccBody(context.Background(), scope, opOcc)
	if err != nil {
		t.Fatal(err)
	}
	return body.JSON
}

func TestFailureOfAStep(t *testing.T) {
	b := newBench(t)
	b.vim.hook = func(step string, _ *lcm.Execution) (lcm.Progress, error) {
		if step == "wait" {
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "VNF Create Resource CREATE failed: no valid host")
		}
		return lcm.Done(), nil
	}
	b.serve(t)
	id := b.create(t)
	op := b.await(t, b.instantiate(t, id), sol003.LcmOperationStateFailedTemp)
	if want := "Vnf instantiation failed for vnf " + id + " at step infra:wait, error: VNF Create Resource CREATE failed: no valid host"; op.Error.Detail != want {
		t.Errorf("detail %q, want %q", op.Error.Detail, want)
	}
	if got := fmt.Sprint(b.notifications(t, op.Id)); got != "[STARTING PROCESSING FAILED_TEMP]" {
		t.Errorf("notifications %s", got)
	}
	_, err := b.svc.Instantiate(context.Background(), scope, id, sol003.InstantiateVnfRequest{FlavourId: "simple"}, json.RawMessage(`{"flavourId":"simple"}`))
	if !lcm.Is(err, lcm.KindConflict) {
		t.Errorf("a second operation in FAILED_TEMP: %v", err)
	}
}

func TestOneActiveOperation(t *testing.T) {
	b := newBench(t) // no node works: the first stays in STARTING
	id := b.create(t)
	var accepted, refused atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := b.svc.Instantiate(context.Background(), scope, id, sol003.InstantiateVnfRequest{FlavourId: "simple"}, json.RawMessage(`{"flavourId":"simple"}`))
			switch {
			case err == nil:
				accepted.Add(1)
			case lcm.Is(err, lcm.KindConflict):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if accepted.Load() != 1 || refused.Load() != 19 {
		t.Errorf("accepted %d, refused %d", accepted.Load(), refused.Load())
	}
}

// TestWaitHoldsNoWorker: forty operations wait with twenty workers, and all go on.
func TestWaitHoldsNoWorker(t *testing.T) {
	b := newBench(t)
	open := make(chan struct{})
	b.vim.hook = func(step string, _ *lcm.Execution) (lcm.Progress, error) {
		select {
		case <-open:
		default:
			if step == "wait" {
				return lcm.Wait(20*time.Millisecond, "the gate"), nil
			}
		}
		return lcm.Done(), nil
	}
	b.serve(t)
	var ops []string
	for range 40 {
		ops = append(ops, b.instantiate(t, b.create(t)))
	}
	deadline := time.Now().Add(5 * time.Minute)
	for b.vim.creates.Load() != 40 {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of 40 have come to the wait", b.vim.creates.Load())
		}
		time.Sleep(5 * time.Millisecond)
	}
	close(open)
	for _, op := range ops {
		b.await(t, op, sol003.LcmOperationStateCompleted)
	}
}

// TestFence: once the work is taken over, the first owner's commit changes nothing.
func TestFence(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	op := b.instantiate(t, b.create(t))
	c, err := b.st.Claim(ctx, op, 1, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.st.Pool.Exec(ctx, `UPDATE vnf_lcm_op_occs SET fence = 2 WHERE id = $1`, op); err != nil {
		t.Fatal(err)
	}
	c.Op.State = sol003.LcmOperationStateCompleted
	if err := b.st.Commit(ctx, &lcm.Transition{Op: c.Op, Node: "n1", Entered: []lcm.StateEntered{{ID: uuid.NewString(), Seq: 2, At: time.Now(), Notification: c.Op.Notification()}}}); !lcm.Is(err, lcm.KindStale) {
		t.Errorf("commit under a stale fence: %v", err)
	}
	if _, err := b.st.Claim(ctx, op, 1, "n1"); !lcm.Is(err, lcm.KindStale) {
		t.Errorf("claim under a stale fence: %v", err)
	}
	if got := fmt.Sprint(b.notifications(t, op)); got != "[STARTING]" {
		t.Errorf("notifications %s", got)
	}
}

// TestTakeover: a node that claimed an operation and died without a word; another goes on.
func TestTakeover(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	dead, err := b.st.Join(ctx, "dead")
	if err != nil {
		t.Fatal(err)
	}
	op := b.instantiate(t, b.create(t))
	if _, err := b.st.Claim(ctx, op, 1, dead.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.st.Pool.Exec(ctx, `UPDATE river_job SET state = 'running', attempted_at = now(), attempted_by = ARRAY['dead'] WHERE kind = 'lcm_operation'`); err != nil {
		t.Fatal(err)
	}
	if a, err := b.st.Adopt(ctx); err != nil || a.Operations != 0 || len(a.Nodes) != 0 {
		t.Fatalf("adopted from the living: %+v %v", a, err)
	}
	dead.Kill()
	b.serve(t)
	b.await(t, op, sol003.LcmOperationStateCompleted)
	if n := b.vim.creates.Load(); n != 1 {
		t.Errorf("created %d times", n)
	}
}

// TestShutdownHandsOver: a node that stops in the middle of a wait loses nothing.
func TestShutdownHandsOver(t *testing.T) {
	b := newBench(t)
	reached := make(chan struct{}, 100)
	var open atomic.Bool
	b.vim.hook = func(step string, _ *lcm.Execution) (lcm.Progress, error) {
		if step == "wait" && !open.Load() {
			reached <- struct{}{}
			return lcm.Wait(10*time.Millisecond, "the gate"), nil
		}
		return lcm.Done(), nil
	}
	stop := b.serve(t)
	op := b.instantiate(t, b.create(t))
	<-reached
	stop()
	open.Store(true)
	b.serve(t)
	b.await(t, op, sol003.LcmOperationStateCompleted)
	if n := b.vim.creates.Load(); n != 1 {
		t.Errorf("created %d times", n)
	}
}
