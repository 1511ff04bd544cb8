package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// failing lets the step wait fail while broken is set.
func failing(broken *atomic.Bool) func(string, *lcm.Execution) (lcm.Progress, error) {
	return func(step string, _ *lcm.Execution) (lcm.Progress, error) {
		if step == "wait" && broken.Load() {
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "the VIM says no")
		}
		return lcm.Done(), nil
	}
}

func TestRetry(t *testing.T) {
	b := newBench(t)
	var broken atomic.Bool
	var tries atomic.Int64
	broken.Store(true)
	b.vim.hook = func(step string, x *lcm.Execution) (lcm.Progress, error) {
		if step == "create" {
			tries.Add(1)
		}
		return failing(&broken)(step, x)
	}
	b.serve(t)
	ctx := context.Background()
	id := b.create(t)
	op := b.instantiate(t, id)
	b.await(t, op, sol003.LcmOperationStateFailedTemp)
	// It fails again, then the cause is mended.
	if err := b.svc.Retry(ctx, scope, op); err != nil {
		t.Fatal(err)
	}
	b.await(t, op, sol003.LcmOperationStateFailedTemp)
	broken.Store(false)
	if err := b.svc.Retry(ctx, scope, op); err != nil {
		t.Fatal(err)
	}
	done := b.await(t, op, sol003.LcmOperationStateCompleted)
	if done.Error != nil {
		t.Errorf("error %+v", done.Error)
	}
	// The wait only looks: each retry goes on at the step that acts, which finds what is there.
	if n, m := tries.Load(), b.vim.creates.Load(); n != 3 || m != 1 {
		t.Errorf("create ran %d times and created %d", n, m)
	}
	if got := fmt.Sprint(b.notifications(t, op)); got != "[STARTING PROCESSING FAILED_TEMP PROCESSING FAILED_TEMP PROCESSING COMPLETED]" {
		t.Errorf("notifications %s", got)
	}
	for name, act := range map[string]func(context.Context, lcm.Scope, string) error{"retry": b.svc.Retry, "rollback": b.svc.Rollback, "fail": b.svc.Fail} {
		if err := act(ctx, scope, op); !lcm.Is(err, lcm.KindConflict) {
			t.Errorf("%s of a completed operation: %v", name, err)
		}
		if err := act(ctx, lcm.Scope{ProjectID: "other"}, op); !lcm.Is(err, lcm.KindNotFound) {
			t.Errorf("%s of another project's operation: %v", name, err)
		}
	}
}

// failedInstantiation leaves an op occ in FAILED_TEMP; it fails for as long as broken is set.
func failedInstantiation(t *testing.T) (b *bench, broken *atomic.Bool, instance, op string) {
	t.Helper()
	b, broken = newBench(t), new(atomic.Bool)
	broken.Store(true)
	b.vim.hook = failing(broken)
	b.serve(t)
	instance = b.create(t)
	op = b.instantiate(t, instance)
	b.await(t, op, sol003.LcmOperationStateFailedTemp)
	return b, broken, instance, op
}

func TestRollback(t *testing.T) {
	b, broken, id, op := failedInstantiation(t)
	ctx := context.Background()
	if len(b.vim.stacks) != 1 {
		t.Fatalf("stacks %v", b.vim.stacks)
	}
	if err := b.svc.Rollback(ctx, scope, op); err != nil {
		t.Fatal(err)
	}
	done := b.await(t, op, sol003.LcmOperationStateRolledBack)
	if done.Error == nil {
		t.Error("the error of the failed try is gone")
	}
	if len(b.vim.stacks) != 0 {
		t.Errorf("left behind: %v", b.vim.stacks)
	}
	if got := fmt.Sprint(b.notifications(t, op)); got != "[STARTING PROCESSING FAILED_TEMP ROLLING_BACK ROLLED_BACK]" {
		t.Errorf("notifications %s", got)
	}
	// The instance is as new.
	broken.Store(false)
	b.await(t, b.instantiate(t, id), sol003.LcmOperationStateCompleted)
}

func TestFail(t *testing.T) {
	b, _, id, op := failedInstantiation(t)
	ctx := context.Background()
	if err := b.svc.Fail(ctx, scope, op); err != nil {
		t.Fatal(err)
	}
	if failed := b.await(t, op, sol003.LcmOperationStateFailed); failed.Error == nil {
		t.Error("FAILED without an error")
	}
	if got := fmt.Sprint(b.notifications(t, op)); got != "[STARTING PROCESSING FAILED_TEMP FAILED]" {
		t.Errorf("notifications %s", got)
	}
	if err := b.svc.Delete(ctx, scope, id, 0); err != nil {
		t.Errorf("delete after fail: %v", err)
	}
}

// TestRollbackAfterAFailedRollback: what a rollback that failed half-way has deleted, and a retry has made again, is
// deleted by the next rollback.
func TestRollbackAfterAFailedRollback(t *testing.T) {
	b := newBench(t)
	var tidy atomic.Bool
	b.vim.hook = func(step string, _ *lcm.Execution) (lcm.Progress, error) {
		if step == "wait" || step == "tidy" && !tidy.Load() {
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "the VIM says no")
		}
		return lcm.Done(), nil
	}
	b.serve(t)
	ctx := context.Background()
	op := b.instantiate(t, b.create(t))
	b.await(t, op, sol003.LcmOperationStateFailedTemp)
	for n, act := range []func(context.Context, lcm.Scope, string) error{b.svc.Rollback, b.svc.Retry} {
		if err := act(ctx, scope, op); err != nil {
			t.Fatal(err)
		}
		b.await(t, op, sol003.LcmOperationStateFailedTemp)
		if len(b.vim.stacks) != n {
			t.Fatalf("after try %d: %v", n, b.vim.stacks)
		}
	}
	tidy.Store(true)
	if err := b.svc.Rollback(ctx, scope, op); err != nil {
		t.Fatal(err)
	}
	b.await(t, op, sol003.LcmOperationStateRolledBack)
	if len(b.vim.stacks) != 0 {
		t.Errorf("left behind: %v", b.vim.stacks)
	}
}

// TestDatabaseAway: a database that is away for a moment fails no operation.
func TestDatabaseAway(t *testing.T) {
	b := newBench(t)
	op := b.instantiate(t, b.create(t))
	b.away.Store(2)
	b.serve(t)
	b.await(t, op, sol003.LcmOperationStateCompleted)
	if got := fmt.Sprint(b.notifications(t, op)); got != "[STARTING PROCESSING COMPLETED]" {
		t.Errorf("notifications %s", got)
	}
}

// TestSecretsOfTheRequestStayOutOfErrors: a script may print its parameters.
func TestSecretsOfTheRequestStayOutOfErrors(t *testing.T) {
	b := newBench(t)
	b.vim.hook = func(step string, _ *lcm.Execution) (lcm.Progress, error) {
		if step == "wait" {
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "the script said: {'password': 'tell-nobody'} \x00 and http://u:pw@h/")
		}
		return lcm.Done(), nil
	}
	b.serve(t)
	op := b.instantiate(t, b.create(t))
	failed := b.await(t, op, sol003.LcmOperationStateFailedTemp)
	if containsSecret(failed.Error.Detail) || strings.Contains(failed.Error.Detail, ":pw@") {
		t.Errorf("a secret is shown: %s", failed.Error.Detail)
	}
	// A NUL in the text breaks no filter.
	for _, err := range b.st.OpOccs(context.Background(), scope, lcm.Query{Filter: []lcm.Condition{{Op: "cont", Path: []string{"error", "detail"}, Values: []string{"script"}}}}) {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestStepThatHangs: a step's run ends with its timeout, whatever it waits for.
func TestStepThatHangs(t *testing.T) {
	b := newBench(t)
	b.vim.timeout = time.Nanosecond // and the least time that a run is given
	b.vim.hang = true
	b.serve(t)
	op := b.instantiate(t, b.create(t))
	failed := b.await(t, op, sol003.LcmOperationStateFailedTemp)
	if !strings.Contains(failed.Error.Detail, "not completed within") {
		t.Error(failed.Error.Detail)
	}
}
