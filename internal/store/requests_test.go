package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

// caller makes the context of a request of user u in project p.
func caller(action, key string, fingerprint string) context.Context {
	return lcm.WithRequest(context.Background(), &lcm.Request{
		ID: "req-1", Action: action, Address: "10.0.0.1", Key: key, Fingerprint: []byte(fingerprint),
		Caller: lcm.Scope{ProjectID: "p", User: "u", Role: lcm.RoleOperator},
	})
}

// event is an AuditEvent without its id and time.
type event struct {
	User, ProjectID, Role, Action, Address, RequestID string
	VnfInstanceID, VnfLcmOpOccID, ResourceID          string
	Status                                            int
}

func audit(t *testing.T, st *store.Store, scope lcm.Scope, q lcm.Query) []event {
	t.Helper()
	events := []event{}
	for b, err := range st.AuditEvents(t.Context(), scope, q) {
		if err != nil {
			t.Fatal(err)
		}
		var e event
		var known struct {
			ID   string
			Time time.Time
		}
		if err := errors.Join(json.Unmarshal(b.JSON, &e), json.Unmarshal(b.JSON, &known)); err != nil {
			t.Fatal(err)
		}
		if known.ID != b.ID || known.Time.IsZero() {
			t.Errorf("event %s", b.JSON)
		}
		events = append(events, e)
	}
	return events
}

var admin = lcm.Scope{Admin: true, Role: lcm.RoleAdmin}

func newPackage(ctx context.Context, t *testing.T, st *store.Store) *lcm.Package {
	t.Helper()
	p := &lcm.Package{ID: uuid.Must(uuid.NewV7()).String(), ProjectID: "p", OnboardingState: sol003.PackageOnboardingStateTypeCreated,
		OperationalState: sol003.PackageOperationalStateTypeEnabled, UsageState: sol003.PackageUsageStateTypeNotInUse, Created: st.Now()}
	if err := st.CreatePackage(ctx, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func instanceOf(p *lcm.Package) *lcm.Instance {
	id := uuid.Must(uuid.NewV7()).String()
	return &lcm.Instance{ID: id, ProjectID: "p", Name: "n", VnfdID: "d", PackageID: p.ID, State: sol003.InstantiationStateNotInstantiated, Version: 1,
		Created: time.Now().UTC().Truncate(time.Microsecond)}
}

func opOf(i *lcm.Instance) *lcm.OpOcc {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &lcm.OpOcc{ID: uuid.Must(uuid.NewV7()).String(), InstanceID: i.ID, ProjectID: "p", Operation: sol003.LcmOperationTypeInstantiate,
		State: sol003.LcmOperationStateStarting, StartTime: now, StateEnteredTime: now, Params: json.RawMessage(`{}`), Fence: 1, Seq: 1}
}

// Everything that a request brings about is in the audit trail, and nothing that it does not.
func TestAuditTrail(t *testing.T) {
	st := storetest.Open(t)
	quiet := context.Background()
	scope := lcm.Scope{ProjectID: "p", User: "u", Role: lcm.RoleOperator}
	want := []event{}
	did := func(action, instance, op, resource string, status int) {
		want = append(want, event{"u", "p", "operator", action, "10.0.0.1", "req-1", instance, op, resource, status})
	}
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if d := cmp.Diff(want, audit(t, st, admin, lcm.Query{})); d != "" {
			t.Fatalf("%s: %s", what, d)
		}
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Fatalf("%s is let", what)
		}
		check(what, nil)
	}
	newPackage(quiet, t, st)
	check("nobody's package", nil)
	p := newPackage(caller("POST packages", "", ""), t, st)
	did("POST packages", "", "", p.ID, 201)
	check("a package", nil)
	_, err := st.ChangePackage(caller("PATCH package", "", ""), scope, p.ID, func(*lcm.Package) error { return nil })
	did("PATCH package", "", "", p.ID, 200)
	check("a package changed", err)
	_, err = st.ChangePackage(caller("PATCH package", "", ""), scope, p.ID, func(*lcm.Package) error { return errors.New("no") })
	refused("a change that is refused", err)

	i := instanceOf(p)
	err = st.CreateInstance(caller("POST instances", "", ""), i)
	did("POST instances", i.ID, "", i.ID, 201)
	check("an instance", err)
	refused("an instance of no package", st.CreateInstance(caller("POST instances", "", ""), instanceOf(&lcm.Package{ID: uuid.NewString()})))
	op := opOf(i)
	err = st.Accept(caller("POST instantiate", "", ""), scope, op, i.State, 0)
	did("POST instantiate", i.ID, op.ID, op.ID, 202)
	check("an operation", err)
	refused("another operation", st.Accept(caller("POST instantiate", "", ""), scope, opOf(i), i.State, 0))
	refused("an operation of another project's", st.Accept(caller("POST instantiate", "", ""), lcm.Scope{ProjectID: "q"}, opOf(i), i.State, 0))
	move := func(to sol003.LcmOperationState) func(op *lcm.OpOcc) (lcm.StateEntered, error) {
		return func(op *lcm.OpOcc) (lcm.StateEntered, error) {
			op.State, op.Seq = to, op.Seq+1
			return lcm.StateEntered{ID: uuid.Must(uuid.NewV7()).String(), Seq: op.Seq, At: st.Now(), Notification: op.Notification()}, nil
		}
	}
	err = st.Move(caller("POST retry", "", ""), scope, op.ID, move(sol003.LcmOperationStateProcessing))
	did("POST retry", i.ID, op.ID, op.ID, 202)
	check("a retry", err)
	err = st.RequestCancel(caller("POST cancel", "", ""), scope, op.ID, sol003.CancelModeTypeGraceful, func(*lcm.OpOcc) error { return nil })
	did("POST cancel", i.ID, op.ID, op.ID, 202)
	check("a cancel", err)
	refused("a deletion", st.DeleteInstance(caller("DELETE instance", "", ""), scope, i.ID, 0))
	err = st.Move(caller("POST fail", "", ""), scope, op.ID, move(sol003.LcmOperationStateFailed))
	did("POST fail", i.ID, op.ID, op.ID, 200)
	check("a fail", err)
	err = st.DeleteInstance(caller("DELETE instance", "", ""), scope, i.ID, 0)
	did("DELETE instance", i.ID, "", i.ID, 204)
	check("a deletion", err)

	v := &lcm.VIM{ID: uuid.Must(uuid.NewV7()).String(), ProjectID: "p", Name: "v", Type: "openstack", Status: lcm.VimPending, Created: st.Now(),
		Auth: map[string]any{"password": "topsecret"}}
	err = st.CreateVIM(caller("POST vims", "", ""), v, v)
	did("POST vims", "", "", v.ID, 201)
	check("a VIM", err)
	err = st.UpdateVIM(caller("PUT vim", "", ""), v, v)
	did("PUT vim", "", "", v.ID, 200)
	check("a VIM changed", err)
	refused("a VIM of the same name", st.CreateVIM(caller("POST vims", "", ""), &lcm.VIM{ID: uuid.NewString(), ProjectID: "p", Name: "v", Created: st.Now()}, v))
	err = st.DeleteVIM(caller("DELETE vim", "", ""), scope, v.ID)
	did("DELETE vim", "", "", v.ID, 204)
	check("a VIM deleted", err)

	// Of another project nothing is seen; filters and pages are those of every list.
	if got := audit(t, st, lcm.Scope{ProjectID: "q"}, lcm.Query{}); len(got) != 0 {
		t.Errorf("another project sees %+v", got)
	}
	if got := audit(t, st, scope, lcm.Query{}); cmp.Diff(want, got) != "" {
		t.Errorf("the project sees %+v", got)
	}
	of := func(op, path string, values ...string) []event {
		return audit(t, st, scope, lcm.Query{Filter: []lcm.Condition{{Op: op, Path: []string{path}, Values: values}}})
	}
	if got := of("eq", "vnfInstanceId", i.ID); len(got) != 6 {
		t.Errorf("of the instance: %+v", got)
	}
	if got := of("eq", "vnfLcmOpOccId", op.ID); len(got) != 4 {
		t.Errorf("of the op occ: %+v", got)
	}
	if got := of("in", "status", "204"); len(got) != 2 {
		t.Errorf("by status: %+v", got)
	}
	if got := of("cont", "action", "retry"); len(got) != 1 {
		t.Errorf("by action: %+v", got)
	}
	if got := of("gt", "time", st.Now().Add(time.Minute).Format(time.RFC3339)); len(got) != 0 {
		t.Errorf("of the future: %+v", got)
	}
	if got := of("lt", "time", st.Now().Add(time.Minute).Format(time.RFC3339)); len(got) != len(want) {
		t.Errorf("of the past: %+v", got)
	}
	if got := audit(t, st, scope, lcm.Query{Limit: 2}); cmp.Diff(want[:2], got) != "" {
		t.Errorf("a page: %+v", got)
	}
}

// A key has its effect once, whatever comes at the same time, and is known by project and user.
func TestIdempotencyKeys(t *testing.T) {
	st := storetest.Open(t)
	p := newPackage(context.Background(), t, st)
	count := func(table string) (n int) {
		t.Helper()
		if err := st.Pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var mu sync.Mutex
	made, repeated := map[string]bool{}, map[string]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			i := instanceOf(p)
			err := st.CreateInstance(caller("POST instances", "k", "same"), i)
			mu.Lock()
			defer mu.Unlock()
			var first *lcm.RepeatedError
			switch {
			case err == nil:
				made[i.ID] = true
			case errors.As(err, &first) && first.Version == 1 && bytes.Contains(first.Body, []byte(first.ResourceID)):
				repeated[first.ResourceID]++
			default:
				t.Errorf("create: %v", err)
			}
		})
	}
	wg.Wait()
	if len(made) != 1 || len(repeated) != 1 || count("vnf_instances") != 1 || count("audit_events") != 1 || count("notifications") != 1 {
		t.Fatalf("made %v, repeated %v", made, repeated)
	}
	for id := range made {
		if repeated[id] != 19 {
			t.Errorf("made %v, repeated %v", made, repeated)
		}
	}
	var e *lcm.Error
	err := st.CreateInstance(caller("POST instances", "k", "other"), instanceOf(p))
	if !errors.As(err, &e) || e.Kind != lcm.KindInvalid || e.Status != 422 {
		t.Errorf("the key for another request: %v", err)
	}
	other := caller("POST instances", "k", "same")
	lcm.RequestOf(other).Caller.User = "other"
	if err := st.CreateInstance(other, instanceOf(p)); err != nil {
		t.Errorf("another's key: %v", err)
	}
	if err := st.CreateInstance(caller("POST instances", "k2", "same"), instanceOf(&lcm.Package{ID: uuid.NewString()})); !lcm.Is(err, lcm.KindConflict) {
		t.Errorf("no package: %v", err)
	}
	if err := st.Repeated(t.Context(), lcm.RequestOf(caller("", "k2", "same"))); err != nil {
		t.Errorf("what has had no effect is kept: %v", err)
	}

	i := instanceOf(p)
	if err := st.CreateInstance(context.Background(), i); err != nil {
		t.Fatal(err)
	}
	scope := lcm.Scope{ProjectID: "p"}
	op := opOf(i)
	if err := st.Accept(caller("POST instantiate", "a", "x"), scope, op, i.State, 0); err != nil {
		t.Fatal(err)
	}
	var first *lcm.RepeatedError
	if err := st.Repeated(t.Context(), lcm.RequestOf(caller("", "a", "x"))); !errors.As(err, &first) || first.ResourceID != op.ID || first.Body != nil {
		t.Errorf("of an operation: %v", err)
	}
	j := instanceOf(p)
	if err := st.CreateInstance(context.Background(), j); err != nil {
		t.Fatal(err)
	}
	if err := st.Accept(caller("POST instantiate", "a", "x"), scope, opOf(j), j.State, 0); !errors.As(err, &first) || first.ResourceID != op.ID {
		t.Errorf("the same key: %v", err)
	}
	if count("vnf_lcm_op_occs") != 1 || count("river_job") != 1 {
		t.Error("a repetition has had an effect")
	}
	for _, make := range []func(ctx context.Context) error{
		func(ctx context.Context) error {
			return st.CreatePackage(ctx, &lcm.Package{ID: uuid.NewString(), ProjectID: "p", Created: st.Now()})
		},
		func(ctx context.Context) error {
			v := &lcm.VIM{ID: uuid.NewString(), ProjectID: "p", Name: uuid.NewString(), Created: st.Now()}
			return st.CreateVIM(ctx, v, v)
		},
	} {
		key := uuid.NewString()
		if err := make(caller("POST", key, "x")); err != nil {
			t.Error(err)
		}
		if err := make(caller("POST", key, "x")); !errors.As(err, &first) {
			t.Errorf("again: %v", err)
		}
	}
}

func TestPruneRequests(t *testing.T) {
	st := storetest.Open(t)
	real, ahead := st.Now, time.Duration(0)
	st.Now = func() time.Time { return real().Add(ahead) }
	newPackage(caller("POST packages", "k", "x"), t, st)
	known := func() bool { return st.Repeated(t.Context(), lcm.RequestOf(caller("", "k", "x"))) != nil }
	prune := func() {
		t.Helper()
		if err := st.PruneRequests(t.Context(), 24*time.Hour, 48*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if prune(); !known() || len(audit(t, st, admin, lcm.Query{})) != 1 {
		t.Error("pruned at once")
	}
	ahead = 25 * time.Hour
	if prune(); known() || len(audit(t, st, admin, lcm.Query{})) != 1 {
		t.Error("after a day")
	}
	ahead = 49 * time.Hour
	if err := st.PruneRequests(t.Context(), 0, 0); err != nil || len(audit(t, st, admin, lcm.Query{})) != 1 {
		t.Error("0 does not keep", err)
	}
	if prune(); len(audit(t, st, admin, lcm.Query{})) != 0 {
		t.Error("after two")
	}
	// More than are deleted at a time, some of them young.
	if _, err := st.Pool.Exec(t.Context(), `INSERT INTO audit_events (id, at, user_name, project_id, role, action, address, request_id, outcome)
		SELECT (lpad(to_hex(n), 8, '0') || '-0000-7000-8000-000000000000')::uuid, $1::timestamptz + n * interval '1 second', '', '', '', '', '', '', 200
		FROM generate_series(1, 12000) AS n`, st.Now().Add(-48*time.Hour-10000*time.Second)); err != nil {
		t.Fatal(err)
	}
	prune()
	if n := len(audit(t, st, admin, lcm.Query{})); n < 1990 || n > 2000 {
		t.Errorf("%d are left", n)
	}
}

// Refused requests are written down by and by, and when too many come, it is said how many are lost.
func TestRefusals(t *testing.T) {
	st := storetest.Open(t)
	var said bytes.Buffer
	st.Log = slog.New(slog.NewTextHandler(&said, nil))
	log := st.NewRequestLog()
	const all = 6000
	for n := range all {
		r := *lcm.RequestOf(caller("DELETE instance", "", ""))
		r.ID = fmt.Sprint(n)
		if n == 0 {
			r.Caller = lcm.Scope{} // nobody who is known
		}
		log.Refused(&r, 403)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what is there is written nevertheless
	log.Run(ctx)
	got := audit(t, st, admin, lcm.Query{})
	if len(got) == 0 || len(got) >= all {
		t.Fatalf("%d are written", len(got))
	}
	if d := cmp.Diff(event{Action: "DELETE instance", Address: "10.0.0.1", RequestID: "0", Status: 403}, got[0]); d != "" {
		t.Error(d)
	}
	if !bytes.Contains(said.Bytes(), []byte(fmt.Sprintf("lost=%d", all-len(got)))) {
		t.Errorf("%d written, log %s", len(got), said.String())
	}
}
