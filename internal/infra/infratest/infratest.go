// Package infratest runs the steps of InfraDrivers as the engine does, for tests: results are kept only when a step
// returns without an error, retryable errors are tried again, and waits pass on a clock of the test's choice.
package infratest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// Clock is a clock that only moves when told to.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows now.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Runner runs the steps of one operation.
type Runner struct {
	Driver lcm.InfraDriver
	// Clock, when set, passes waits at once; without one they pass in real time.
	Clock *Clock
	// LoseFirst runs every step with an effect once more before, and loses what that run returned, as a crash between
	// the effect and its record does.
	LoseFirst bool
	// Before, when set, is called before every run of a step.
	Before func(step string)
	// Seen lists the steps that have been begun, in order.
	Seen []string
	// Notes lists what was waited for, the last note of each step.
	Notes map[string]string
}

// Run runs all steps of the operation until they are done or one fails, and leaves the result in x.Op and x.Instance.
// The error is what the engine would fail the operation with, wrapped with the step's name.
func (r *Runner) Run(ctx context.Context, x *lcm.Execution) error {
	if x.Now = time.Now; r.Clock != nil {
		x.Now = r.Clock.Now
	}
	if r.Notes == nil {
		r.Notes = map[string]string{}
	}
	steps, err := r.Driver.Steps(x)
	if err != nil {
		return err
	}
	for n, s := range steps {
		// What a driver returns now must be what it returned before: names are the journal's keys.
		again, err := r.Driver.Steps(x)
		if err != nil || len(again) != len(steps) || again[n].Name != s.Name {
			return fmt.Errorf("the driver's steps have changed at %s: %w", s.Name, err)
		}
		r.Seen = append(r.Seen, s.Name)
		if err := r.step(ctx, s, x); err != nil {
			return fmt.Errorf("step %s: %w", s.Name, err)
		}
	}
	return nil
}

func (r *Runner) step(ctx context.Context, s lcm.Step, x *lcm.Execution) error {
	x.Begun = x.Now()
	if r.LoseFirst && s.Effect {
		_, _, _ = r.once(ctx, s, *x)
	}
	for {
		p, after, err := r.once(ctx, s, *x)
		limit := s.Timeout
		if limit == 0 {
			limit = 10 * time.Minute
		}
		waited := x.Now().Sub(x.Begun)
		pause := p.After()
		switch {
		case err != nil && (!lcm.Is(err, lcm.KindRetryable) || waited >= limit || ctx.Err() != nil):
			return err
		case err != nil:
			r.Notes[s.Name] = err.Error()
			pause = time.Second
			if r.Clock == nil {
				pause = 20 * time.Millisecond
			}
		case p.Finished():
			x.Op, x.Instance = after.Op, after.Instance
			return nil
		case s.Timeout > 0 && waited >= s.Timeout:
			return lcm.Errorf(lcm.KindTerminal, "not completed within %s: %s", s.Timeout, p.Note)
		default:
			r.Notes[s.Name] = p.Note
			x.Op, x.Instance = after.Op, after.Instance
		}
		if err := r.pass(ctx, pause); err != nil {
			return err
		}
	}
}

// once runs a step on copies.
func (r *Runner) once(ctx context.Context, s lcm.Step, x lcm.Execution) (lcm.Progress, *lcm.Execution, error) {
	if r.Before != nil {
		r.Before(s.Name)
	}
	op := *x.Op
	op.Work = maps.Clone(x.Op.Work)
	x.Op, x.Instance = &op, x.Instance.Clone()
	p, err := s.Run(ctx, &x)
	return p, &x, err
}

// pass lets d pass.
func (r *Runner) pass(ctx context.Context, d time.Duration) error {
	real := d
	if r.Clock != nil {
		r.Clock.Advance(d)
		real = time.Millisecond // what the step waits for goes on in real time
	}
	timer := time.NewTimer(real)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Execution returns an Execution of an operation on an instance, with request as its parameters and, for INSTANTIATE,
// the instance's plan laid out as the engine does before the drivers' steps.
func Execution(t testing.TB, op sol003.LcmOperationType, i *lcm.Instance, target *lcm.VimTarget, f *vnfd.Flavour, request any,
	files func(ctx context.Context) (lcm.PackageFS, error),
) *lcm.Execution {
	t.Helper()
	params, err := json.Marshal(request)
	if err != nil {
		t.Fatalf("encode the request: %v", err)
	}
	if req, ok := request.(*sol003.InstantiateVnfRequest); ok {
		if i.Info, err = lcm.NewInstantiatedInfo(f, req, uuid.NewString); err != nil {
			t.Fatalf("lay out the instance: %v", err)
		}
		i.VimID = target.ID
	}
	x := lcm.Execution{
		Op:       &lcm.OpOcc{ID: uuid.NewString(), InstanceID: i.ID, Operation: op, State: sol003.LcmOperationStateProcessing, Params: params},
		Instance: i, Before: i.Clone(), Target: target, Flavour: f, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now: time.Now, NewID: uuid.NewString, Plan: &lcm.Plan{},
	}
	return x.WithFiles(files)
}
