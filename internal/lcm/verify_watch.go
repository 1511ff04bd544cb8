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
	Parallel  int           // instances of one VIM that are looked at at a time, at most
	PerSecond float64       // instances that are begun in a second, at most
}

const (
	watchBatch   = 100              // instances read at a time
	watchLeast   = 10 * time.Second // the shortest pause between looks for what is due
	watchMost    = 30 * time.Second // the longest
	watchChanged = 5 * time.Minute  // the longest time until what has changed is due
	watchTurn    = 5 * time.Minute  // how long a turn goes on beginning looks: it holds a connection of the store
)

// Watch verifies all instances, each when its time has come, until ctx ends. Any number of nodes may do so: one of them has the
// turn at a time, and when it dies another takes over.
func (n *Inspector) Watch(ctx context.Context, w Watch) {
	tick := time.NewTicker(max(watchLeast, min(w.Interval, watchMost)))
	defer tick.Stop()
	p := &patrols{Inspector: n, watch: w, from: map[string]string{}}
	for {
		if err := p.sweep(ctx); err != nil && ctx.Err() == nil {
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

// patrols are the sweeps of one Watch.
type patrols struct {
	*Inspector
	watch   Watch
	changed time.Time // when those that have changed were last looked for

	mu   sync.Mutex
	from map[string]string // by VIM: the instance after which a sweep has to go on, where the last one was not done
}

// sweep looks once at every instance that is due, when it is this node's turn: VIM beside VIM, so that none waits for another.
func (p *patrols) sweep(ctx context.Context) error {
	turn, err := p.Records.VerifyTurn(ctx)
	if turn == nil || err != nil {
		return err
	}
	defer turn.End()
	now := p.Now()
	due := Due{Before: now.Add(-p.watch.Interval), Changed: now.Sub(p.changed) >= min(p.watch.Interval, watchChanged)}
	vims, err := turn.VIMs(ctx, due)
	if err != nil {
		return err
	}
	if due.Changed {
		p.changed = now
	}
	begins, over := context.WithTimeout(ctx, watchTurn)
	defer over()
	pace := time.NewTicker(max(time.Duration(float64(time.Second)/p.watch.PerSecond), time.Microsecond))
	defer pace.Stop()
	failures := make([]error, len(vims))
	var wait sync.WaitGroup
	for k, vim := range vims {
		wait.Go(func() { failures[k] = p.round(ctx, begins, turn, due, vim, pace.C) })
	}
	wait.Wait()
	if begins.Err() != nil {
		p.changed = time.Time{} // there may be more of them
	}
	return errors.Join(failures...)
}

// round looks at the instances of one VIM that are due, until begins ends or the VIM does not answer: it is then left alone
// until the next sweep, which goes on with the next instance.
func (p *patrols) round(ctx, begins context.Context, turn VerifyTurn, due Due, vim string, pace <-chan time.Time) error {
	begins, stop := context.WithCancel(begins)
	defer stop()
	slots := make(chan struct{}, max(p.watch.Parallel, 1))
	var wait sync.WaitGroup
	defer wait.Wait()
	for after := p.at(vim); ; {
		ids, err := turn.Due(ctx, due, vim, after, watchBatch)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if !comes(begins, slots, pace) {
				p.goOn(vim, after)
				return nil
			}
			after = id
			wait.Go(func() {
				defer func() { <-slots }()
				if !p.patrol(ctx, id) {
					stop()
				}
			})
		}
		if len(ids) < watchBatch {
			p.goOn(vim, "")
			return nil
		}
	}
}

// comes waits until there is a slot and it is time for the next look, and tells whether that is before ctx ends.
func comes(ctx context.Context, slots chan<- struct{}, pace <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case slots <- struct{}{}:
	}
	select {
	case <-ctx.Done():
		return false
	case <-pace:
		return ctx.Err() == nil
	}
}

func (p *patrols) at(vim string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.from[vim]
}

func (p *patrols) goOn(vim, after string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.from[vim] = after; after == "" {
		delete(p.from, vim)
	}
}

// patrol verifies one instance on nobody's behalf. That it cannot be is kept with it. It tells whether its VIM answers.
func (n *Inspector) patrol(ctx context.Context, id string) bool {
	at := n.Now()
	_, err := n.flights.share(ctx, id, func(ctx context.Context) (*Verification, error) { return n.verify(ctx, id) })
	// What has been terminated or is being changed meanwhile is no more than not due.
	if err == nil || ctx.Err() != nil || Is(err, KindConflict) || Is(err, KindNotFound) {
		return true
	}
	n.Log.DebugContext(ctx, "a VNF instance cannot be verified", "vnfInstance", id, "error", err)
	answers, reason := !Is(err, KindRetryable), "The VNF instance could not be verified."
	if known := (*Error)(nil); errors.As(err, &known) {
		reason = known.Detail
	}
	if err := n.Records.RecordUnverified(ctx, id, at, reason); err != nil && ctx.Err() == nil {
		n.Log.WarnContext(ctx, "it cannot be stored that a VNF instance could not be verified", "vnfInstance", id, "error", err)
	}
	return answers
}
