package store_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// TestTurn has steps queue for longer than they may take: they have not begun, so that their time does not run, nothing is
// recorded of them and a graceful cancellation ends them; when their turn comes, each gives it back.
func TestTurn(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	var open atomic.Bool
	var asked, held atomic.Int64
	b.vim.timeout = time.Second
	b.vim.turn = func(context.Context, *lcm.Execution) (func(), lcm.Progress) {
		asked.Add(1)
		if !open.Load() {
			return nil, lcm.Wait(10*time.Millisecond, "a turn")
		}
		held.Add(1)
		return func() { held.Add(-1) }, lcm.Progress{}
	}
	b.serve(t)
	ids := []string{b.create(t), b.create(t)}
	ops := []string{b.instantiate(t, ids[0]), b.instantiate(t, ids[1])}
	for begun := time.Now(); asked.Load() < 10 || time.Since(begun) < 2*b.vim.timeout; {
		if time.Since(begun) > 5*time.Minute {
			t.Fatal("nobody asks")
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, op := range ops {
		var lines int
		if err := b.st.Pool.QueryRow(ctx, `SELECT count(*) FROM lcm_op_steps WHERE op_occ_id = $1 AND name LIKE 'infra:%'`, op).Scan(&lines); err != nil || lines != 0 {
			t.Errorf("%d steps have begun: %v", lines, err)
		}
	}
	if err := b.svc.Cancel(ctx, scope, ops[1], sol003.CancelModeTypeGraceful); err != nil {
		t.Fatal(err)
	}
	o := b.await(t, ops[1], sol003.LcmOperationStateFailedTemp, sol003.LcmOperationStateRolledBack)
	if o.Error == nil || !strings.Contains(o.Error.Detail, "canceled (GRACEFUL)") {
		t.Errorf("%+v", o.Error)
	}
	open.Store(true)
	b.await(t, ops[0], sol003.LcmOperationStateCompleted)
	if n := b.vim.creates.Load(); n != 1 || held.Load() != 0 {
		t.Errorf("%d stacks created, %d turns held", n, held.Load())
	}
}

// TestCancelAtTheEndOfAWait asks for a graceful cancellation while the last look of a wait is under way: what is waited for comes, and
// the next step does not begin.
func TestCancelAtTheEndOfAWait(t *testing.T) {
	b := newBench(t)
	var looks atomic.Int64
	b.vim.hook = func(step string, x *lcm.Execution) (lcm.Progress, error) {
		switch {
		case step == "inventory":
			t.Error("the next step has begun")
		case step == "wait" && looks.Add(1) == 1:
			return lcm.Wait(time.Millisecond, "the servers"), nil
		case step == "wait":
			return lcm.Done(), b.svc.Cancel(context.Background(), scope, x.Op.ID, sol003.CancelModeTypeGraceful)
		}
		return lcm.Done(), nil
	}
	b.serve(t)
	op := b.instantiate(t, b.create(t))
	o := b.await(t, op, sol003.LcmOperationStateFailedTemp, sol003.LcmOperationStateCompleted)
	if o.OperationState != sol003.LcmOperationStateFailedTemp || !strings.Contains(o.Error.Detail, "canceled (GRACEFUL)") {
		t.Errorf("%s: %+v", o.OperationState, o.Error)
	}
}
