package lcm

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Watch says how all instances are verified from time to time.
type Watch struct {
	Interval  time.Duration // how long after a look the next one at the same instance is due
	Parallel  int           // instances that are looked at at a time, at most
	PerSecond float64       // instances that are begun in a second, at most
}

const (
	watchBatch = 100              // instances read at a time
	watchTick  = 30 * time.Second // the longest pause between looks for what is due
)

// Watch verifies all instances, each when its time has come, until ctx ends. Any number of nodes may do so: one of them has the
// turn at a time, and when it dies another takes over where it was.
func (n *Inspector) Watch(ctx context.Context, w Watch) {
	tick := time.NewTicker(min(w.Interval, watchTick))
	defer tick.Stop()
	for {
		if err := n.sweep(ctx, w); err != nil && ctx.Err() == nil {
			n.Log.WarnContext(ctx, "the VNF instances cannot be verified now", "error", err)
		}
		n.tell(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tell tells the observer how many instances differ. All nodes do so, whoever has verified them.
func (n *Inspector) tell(ctx context.Context) {
	if n.ObserveDiffering == nil {
		return
	}
	if counts, err := n.Records.Differing(ctx); err == nil {
		n.ObserveDiffering(counts)
	}
}

// sweep looks once at every instance that is due, when it is this node's turn.
func (n *Inspector) sweep(ctx context.Context, w Watch) error {
	turn, err := n.Records.VerifyTurn(ctx)
	if turn == nil || err != nil {
		return err
	}
	defer turn.End()
	pace := time.NewTicker(max(time.Duration(float64(time.Second)/w.PerSecond), time.Microsecond))
	defer pace.Stop()
	var wait sync.WaitGroup
	defer wait.Wait()
	slots := make(chan struct{}, max(w.Parallel, 1))
	for after := ""; ; {
		due, err := turn.Due(ctx, n.Now().Add(-w.Interval), after, watchBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, id := range due {
			select {
			case <-ctx.Done():
				return nil
			case <-pace.C:
			}
			select {
			case <-ctx.Done():
				return nil
			case slots <- struct{}{}:
			}
			wait.Go(func() {
				defer func() { <-slots }()
				n.patrol(ctx, id)
			})
		}
		after = due[len(due)-1]
	}
}

// patrol verifies one instance on nobody's behalf. That it cannot be is kept with it.
func (n *Inspector) patrol(ctx context.Context, id string) {
	at := n.Now()
	_, err := n.Verify(ctx, Scope{Admin: true}, id)
	// What has been terminated or is being changed meanwhile is no more than not due.
	if err == nil || ctx.Err() != nil || Is(err, KindConflict) || Is(err, KindNotFound) {
		return
	}
	n.Log.DebugContext(ctx, "a VNF instance cannot be verified", "vnfInstance", id, "error", err)
	reason := "The VNF instance could not be verified."
	if known := (*Error)(nil); errors.As(err, &known) {
		reason = known.Detail
	}
	if err := n.Records.RecordUnverified(ctx, id, at, reason); err != nil && ctx.Err() == nil {
		n.Log.WarnContext(ctx, "it cannot be stored that a VNF instance could not be verified", "vnfInstance", id, "error", err)
	}
}
