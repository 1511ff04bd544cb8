package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
)

// shownVerification is a Verification as the API shows it.
type shownVerification struct {
	VnfInstanceID   string           `json:"vnfInstanceId"`
	VimID           string           `json:"vimId"`
	Result          string           `json:"result"`
	VerifiedAt      time.Time        `json:"verifiedAt"`
	DiffersSince    time.Time        `json:"differsSince"`
	ChangedSince    bool             `json:"changedSince"`
	DifferenceCount int              `json:"differenceCount"`
	Differences     []lcm.Difference `json:"differences"`
	Problem         string           `json:"problem"`
}

func (b *bench) verified(t *testing.T, id string) (v shownVerification) {
	t.Helper()
	body, err := b.st.VerificationBody(context.Background(), scope, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body.JSON, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// listedAs returns the instances of which a filter selects the verifications.
func (b *bench) listedAs(t *testing.T, s lcm.Scope, filter ...lcm.Condition) []string {
	t.Helper()
	ids := []string{}
	for body, err := range b.st.Verifications(context.Background(), s, lcm.Query{Filter: filter, Limit: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, body.ID)
	}
	return ids
}

// inspector returns one with the bench's parts, that logs to log.
func (b *bench) inspector(log *bytes.Buffer) *lcm.Inspector {
	var mu sync.Mutex
	return &lcm.Inspector{Instances: b.st, Packages: one{b}, VIMs: one{b}, Infra: b.svc.Infra, Records: b.st, Now: b.st.Now,
		Log: slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return log.Write(p)
		}), nil))}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// drifting makes an instance whose servers differ from their record until they are healed.
func (b *bench) drifting(t *testing.T, kind lcm.DifferenceKind) string {
	t.Helper()
	id := b.create(t)
	b.done(t, id, sol003.LcmOperationTypeInstantiate, fmt.Sprintf(`{"flavourId":"simple","additionalParams":{"fake":{"drift":%q}}}`, kind))
	return id
}

// TestVerification takes an instance from its first difference to the end of the last.
func TestVerification(t *testing.T) {
	b, _ := newTaskBench(t)
	b.serve(t)
	ctx := context.Background()
	var log bytes.Buffer
	n := b.inspector(&log)
	outcomes := map[string]int{}
	n.Observe = func(outcome string) { outcomes[outcome]++ }

	id := b.create(t)
	if _, err := n.Verify(ctx, scope, id); !lcm.Is(err, lcm.KindConflict) || !strings.Contains(err.Error(), "NOT_INSTANTIATED. Cannot verify") {
		t.Errorf("not instantiated: %v", err)
	}
	if _, err := n.Verify(ctx, scope, uuid.NewString()); !lcm.Is(err, lcm.KindNotFound) {
		t.Errorf("no such instance: %v", err)
	}
	if _, err := n.Verify(ctx, lcm.Scope{ProjectID: "other"}, id); !lcm.Is(err, lcm.KindNotFound) {
		t.Errorf("another project's: %v", err)
	}
	if _, err := b.st.VerificationBody(ctx, scope, id); !lcm.Is(err, lcm.KindNotFound) {
		t.Errorf("never verified: %v", err)
	}
	b.done(t, id, sol003.LcmOperationTypeInstantiate, `{"flavourId":"simple","additionalParams":{"fake":{"drift":"MISSING"}}}`)

	first, err := n.Verify(ctx, scope, id)
	if err != nil || len(first.Differences) != 3 || !first.Since.Equal(first.At) || first.VimID != b.target.ID {
		t.Fatalf("%+v %v", first, err)
	}
	if got := strings.Count(log.String(), "a VNF instance is not what is recorded of it"); got != 3 {
		t.Errorf("%d lines of 3 differences: %s", got, log.String())
	}
	log.Reset()
	second, err := n.Verify(ctx, scope, id)
	if err != nil || !second.Since.Equal(first.Since) || !second.At.After(first.At) {
		t.Fatalf("%+v %v", second, err)
	}
	if log.Len() > 0 {
		t.Errorf("what is known is told again: %s", log.String())
	}
	got := b.verified(t, id)
	want := shownVerification{VnfInstanceID: id, VimID: b.target.ID, Result: "DIFFERS", VerifiedAt: second.At, DiffersSince: first.At, DifferenceCount: 3, Differences: second.Differences}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	sick := second.Differences[0].Mend.VnfcInstanceIDs
	b.done(t, id, sol003.LcmOperationTypeHeal, fmt.Sprintf(`{"vnfcInstanceId":[%q]}`, sick[0]))
	if got := b.verified(t, id); !got.ChangedSince || got.DifferenceCount != 3 {
		t.Errorf("after an operation: %+v", got)
	}
	third, err := n.Verify(ctx, scope, id)
	if err != nil || len(third.Differences) != 2 || !third.Since.Equal(first.Since) {
		t.Fatalf("%+v %v", third, err)
	}
	if got := strings.Count(log.String(), "is over"); got != 1 || strings.Contains(log.String(), "is not what") {
		t.Errorf("one difference is over: %s", log.String())
	}
	b.done(t, id, sol003.LcmOperationTypeHeal, `{}`)
	last, err := n.Verify(ctx, scope, id)
	if err != nil || len(last.Differences) != 3 { // made anew, with the same knob
		t.Fatalf("%+v %v", last, err)
	}
	all := []string{}
	for _, d := range last.Differences {
		all = append(all, d.Mend.VnfcInstanceIDs...)
	}
	raw, _ := json.Marshal(map[string]any{"vnfcInstanceId": all})
	b.done(t, id, sol003.LcmOperationTypeHeal, string(raw))
	clean, err := n.Verify(ctx, scope, id)
	if err != nil || len(clean.Differences) != 0 || !clean.Since.IsZero() {
		t.Fatalf("%+v %v", clean, err)
	}
	want = shownVerification{VnfInstanceID: id, VimID: b.target.ID, Result: "SAME", VerifiedAt: clean.At, Differences: []lcm.Difference{}}
	if d := cmp.Diff(want, b.verified(t, id)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]int{"differs": 4, "same": 1}, outcomes); d != "" {
		t.Error(d)
	}
	if ids := b.listedAs(t, lcm.Scope{ProjectID: "other"}); len(ids) > 0 {
		t.Errorf("another project sees %v", ids)
	}

	b.done(t, id, sol003.LcmOperationTypeTerminate, `{"terminationType":"FORCEFUL"}`)
	if ids := b.listedAs(t, scope); len(ids) > 0 {
		t.Errorf("a terminated instance is listed: %v", ids)
	}
	if err := b.svc.Delete(ctx, scope, id, 0); err != nil {
		t.Errorf("delete: %v", err)
	}
	var left int
	if err := b.st.Pool.QueryRow(ctx, `SELECT count(*) FROM verifications`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d verifications of no instance are left, %v", left, err)
	}
}

// TestVerifyWhileBusy refuses while an operation is under way, is failed and not ended, or begins meanwhile.
func TestVerifyWhileBusy(t *testing.T) {
	b, _ := newTaskBench(t)
	b.serve(t)
	ctx := context.Background()
	n := b.inspector(new(bytes.Buffer))
	id := b.drifting(t, "")
	i := b.instance(t, id)
	op, err := b.task(t, id, sol003.LcmOperationTypeHeal, `{"additionalParams":{"fake":{"hangStep":"wait"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	b.await(t, op, sol003.LcmOperationStateProcessing)
	if _, err := n.Verify(ctx, scope, id); !lcm.Is(err, lcm.KindConflict) || !strings.Contains(err.Error(), op) || !strings.Contains(err.Error(), "HEAL in PROCESSING") {
		t.Errorf("%v", err)
	}
	// The look was begun before the operation.
	if _, err := b.st.RecordVerification(ctx, &lcm.Verification{InstanceID: id, VimID: b.target.ID, Version: i.Version, At: b.st.Now()}); !lcm.Is(err, lcm.KindConflict) || !strings.Contains(err.Error(), op) {
		t.Errorf("%v", err)
	}
	if err := b.svc.Cancel(ctx, scope, op, sol003.CancelModeTypeForceful); err != nil {
		t.Fatal(err)
	}
	b.await(t, op, sol003.LcmOperationStateFailedTemp)
	if _, err := n.Verify(ctx, scope, id); !lcm.Is(err, lcm.KindConflict) || !strings.Contains(err.Error(), "HEAL in FAILED_TEMP") {
		t.Errorf("%v", err)
	}
	if err := b.svc.Fail(ctx, scope, op); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Verify(ctx, scope, id); err != nil {
		t.Errorf("%v", err)
	}
	b.done(t, id, sol003.LcmOperationTypeHeal, `{}`)
	if _, err := b.st.RecordVerification(ctx, &lcm.Verification{InstanceID: id, VimID: b.target.ID, Version: i.Version, At: b.st.Now()}); !lcm.Is(err, lcm.KindConflict) || !strings.Contains(err.Error(), "has been changed while it was verified") {
		t.Errorf("%v", err)
	}
}

// unable is a driver that cannot verify; slow one whose VIM does not answer; refusing one that is refused.
type (
	unable struct{ lcm.InfraDriver }
	slow   struct{ unable }
	refuse struct{ unable }
)

func (slow) Verify(ctx context.Context, _ *lcm.Inspection) ([]lcm.Difference, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (refuse) Verify(context.Context, *lcm.Inspection) ([]lcm.Difference, error) {
	return nil, lcm.Errorf(lcm.KindTerminal, "Keystone refuses the credentials")
}

// TestVerifyCannot has drivers that cannot tell.
func TestVerifyCannot(t *testing.T) {
	b, d := newTaskBench(t)
	b.serve(t)
	ctx := context.Background()
	id := b.drifting(t, "FAILED")
	n := b.inspector(new(bytes.Buffer))
	if _, err := n.Verify(ctx, scope, id); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		driver lcm.InfraDriver
		kind   lcm.Kind
		status int
		says   string
	}{
		"unable": {unable{d}, lcm.KindUnsupported, 404, "cannot be compared"},
		"slow":   {slow{unable{d}}, lcm.KindRetryable, 0, "has not told within 1ms"},
		"refuse": {refuse{unable{d}}, lcm.KindTerminal, 502, "Keystone refuses the credentials"},
	} {
		n.Infra, n.Timeout = only{tt.driver}, time.Hour
		if name == "slow" {
			n.Timeout = time.Millisecond
		}
		_, err := n.Verify(ctx, scope, id)
		var known *lcm.Error
		if !lcm.Is(err, tt.kind) || !asError(err, &known) || known.Status != tt.status || !strings.Contains(known.Detail, tt.says) {
			t.Errorf("%s: %+v", name, err)
		}
	}
	// A sweep keeps why, and what was last seen.
	n.Timeout = time.Hour
	n.Infra = only{refuse{unable{d}}}
	n.Now = func() time.Time { return b.st.Now().Add(time.Hour) }
	run, stop := context.WithCancel(ctx)
	n.Observe = func(string) { stop() }
	n.Watch(run, lcm.Watch{Interval: time.Minute, Parallel: 1, PerSecond: 1000})
	if err := b.st.RecordUnverified(ctx, id, n.Now(), "Keystone refuses the credentials"); err != nil {
		t.Fatal(err)
	}
	got := b.verified(t, id)
	if got.Result != "UNVERIFIED" || got.Problem != "Keystone refuses the credentials" || got.DifferenceCount != 3 || got.ChangedSince {
		t.Errorf("%+v", got)
	}
	n.Infra, n.Observe = b.svc.Infra, nil
	if _, err := n.Verify(ctx, scope, id); err != nil {
		t.Fatal(err)
	}
	if got := b.verified(t, id); got.Result != "DIFFERS" || got.Problem != "" {
		t.Errorf("%+v", got)
	}
}

func asError(err error, into **lcm.Error) bool {
	e, ok := err.(*lcm.Error) //nolint:errorlint // what the API is to answer with
	*into = e
	return ok
}

// TestWatch verifies all instances, by one of several nodes at a time, each again when it is due or has changed.
func TestWatch(t *testing.T) {
	b, _ := newTaskBench(t)
	stop := b.serve(t)
	ctx := context.Background()
	var drifting, clean []string
	for k := range 6 {
		if k%2 == 0 {
			drifting = append(drifting, b.drifting(t, "MISSING"))
		} else {
			clean = append(clean, b.drifting(t, ""))
		}
	}
	stop()
	notYet := b.create(t)

	turn, err := b.st.VerifyTurn(ctx)
	if err != nil || turn == nil {
		t.Fatalf("%v %v", turn, err)
	}
	if other, err := b.st.VerifyTurn(ctx); other != nil || err != nil {
		t.Errorf("two have the turn: %v %v", other, err)
	}
	all := slices.Concat(drifting, clean)
	slices.Sort(all)
	first := lcm.Due{Before: b.st.Now(), Changed: true}
	if vims, err := turn.VIMs(ctx, first); err != nil || !slices.Equal(vims, []string{b.target.ID}) {
		t.Errorf("VIMs with instances that are due: %v %v", vims, err)
	}
	if vims, err := turn.VIMs(ctx, lcm.Due{Before: b.st.Now()}); err != nil || len(vims) > 0 {
		t.Errorf("VIMs with instances that are due by time, none having been looked at: %v %v", vims, err)
	}
	if due, err := turn.Due(ctx, first, uuid.NewString(), "", 4); err != nil || len(due) > 0 {
		t.Errorf("of another VIM: %v %v", due, err)
	}
	for after, got := "", []string{}; ; {
		due, err := turn.Due(ctx, first, b.target.ID, after, 4)
		if err != nil {
			t.Fatal(err)
		}
		if len(due) == 0 {
			if d := cmp.Diff(all, got); d != "" {
				t.Errorf("due: %s", d)
			}
			break
		}
		got = append(got, due...)
		after = due[len(due)-1]
	}
	turn.End()

	var looks atomic.Int64
	ended := make(chan struct{})
	var gauge sync.Map
	nodes := make([]*lcm.Inspector, 3)
	run, end := context.WithCancel(ctx)
	defer end()
	var wait sync.WaitGroup
	for k := range nodes {
		n := b.inspector(new(bytes.Buffer))
		n.Observe = func(string) {
			if looks.Add(1) == int64(len(all)) {
				close(ended)
			}
		}
		n.ObserveDiffering = func(counts map[string]int) { gauge.Store(k, counts[b.target.ID]) }
		nodes[k] = n
		wait.Go(func() { n.Watch(run, lcm.Watch{Interval: time.Hour, Parallel: 2, PerSecond: 1000}) })
	}
	<-ended
	end()
	wait.Wait()
	if n := looks.Load(); n != int64(len(all)) {
		t.Errorf("%d looks at %d instances", n, len(all))
	}
	differ := lcm.Condition{Op: "eq", Path: []string{"result"}, Values: []string{"DIFFERS"}}
	slices.Sort(drifting)
	if d := cmp.Diff(drifting, b.listedAs(t, scope, differ)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(drifting, b.listedAs(t, admin, lcm.Condition{Op: "gte", Path: []string{"differenceCount"}, Values: []string{"1"}})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(drifting, b.listedAs(t, scope, lcm.Condition{Op: "eq", Path: []string{"differences", "kind"}, Values: []string{"MISSING"}})); d != "" {
		t.Error(d)
	}
	if ids := b.listedAs(t, scope, lcm.Condition{Op: "eq", Path: []string{"vnfInstanceId"}, Values: []string{notYet}}); len(ids) > 0 {
		t.Errorf("what is not instantiated has been verified")
	}
	if counts, err := b.st.Differing(ctx); err != nil || counts[b.target.ID] != 3 {
		t.Errorf("%v %v", counts, err)
	}

	// Nothing is due now but what has changed, until the interval is over.
	b.serve(t)
	b.done(t, drifting[0], sol003.LcmOperationTypeModifyInfo, `{"vnfInstanceName":"another"}`)
	if turn, err = b.st.VerifyTurn(ctx); err != nil || turn == nil {
		t.Fatalf("the turn is not free: %v %v", turn, err)
	}
	defer turn.End()
	earlier, later := b.st.Now().Add(-time.Hour), b.st.Now().Add(time.Hour)
	if due, err := turn.Due(ctx, lcm.Due{Before: earlier, Changed: true}, b.target.ID, "", 100); err != nil || !slices.Equal(due, drifting[:1]) {
		t.Errorf("due are %v (%v), not %s, which has changed", due, err, drifting[0])
	}
	if due, err := turn.Due(ctx, lcm.Due{Before: earlier}, b.target.ID, "", 100); err != nil || len(due) > 0 {
		t.Errorf("due by time are %v (%v), not none", due, err)
	}
	for _, changed := range []bool{false, true} {
		if due, err := turn.Due(ctx, lcm.Due{Before: later, Changed: changed}, b.target.ID, "", 100); err != nil || len(due) != len(all) {
			t.Errorf("due are %v (%v), not all", due, err)
		}
	}
}

// TestDueByIndex has an index for either question for what is due: that which is mostly answered by nothing reads no instance.
func TestDueByIndex(t *testing.T) {
	b, _ := newTaskBench(t)
	ctx := context.Background()
	for _, fill := range []string{
		`INSERT INTO vnf_instances (id, project_id, name, vnfd_id, vnf_pkg_id, instantiation_state, vim_id, body, attributes, created_at)
			SELECT gen_random_uuid(), 'p', 'n', 'd', gen_random_uuid(), 'INSTANTIATED', vim, '{}', '{}', now()
			FROM (SELECT gen_random_uuid() AS vim FROM generate_series(1, 50)) AS v, generate_series(1, 100)`,
		`INSERT INTO verifications (vnf_instance_id, tried_at, instance_version) SELECT id, now(), 1 FROM vnf_instances`,
		`ANALYZE vnf_instances`, `ANALYZE verifications`,
	} {
		if _, err := b.st.Pool.Exec(ctx, fill); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{store.DueByTime: "verifications_tried", store.DueAll: "vnf_instances_vim"} {
		rows, err := b.st.Pool.Query(ctx, `EXPLAIN `+query, b.st.Now().Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if text := strings.Join(plan, "\n"); err != nil || !strings.Contains(text, want) || strings.Contains(text, "Seq Scan on vnf_instances") {
			t.Errorf("%s does not use %s (%v):\n%s", query, want, err, text)
		}
	}
}
