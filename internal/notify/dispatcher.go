package notify

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Queue is where what is to be delivered stands. Lines of one instance are delivered in the order of their Seq.
type Queue interface {
	// OpenDeliveries opens a session that delivers.
	OpenDeliveries(ctx context.Context) (lcm.DeliverySession, error)
	// Subscription reads a subscription with its authentication. Not found.
	Subscription(ctx context.Context, id string) (*lcm.Subscription, error)
	// Deliveries returns the first lines of a subscription, at most limit, that are not of the instances passed over.
	Deliveries(ctx context.Context, subscriptionID string, pass []string, limit int) ([]lcm.Delivery, error)
	// Delivered strikes lines out, and tells how many there still were.
	Delivered(ctx context.Context, subscriptionID string, seqs []int64) (int64, error)
	// Postpone records a failed attempt, and when the next is due.
	Postpone(ctx context.Context, subscriptionID string, seq int64, attempts int, next time.Time) error
	// Resume makes all lines due.
	Resume(ctx context.Context, subscriptionID string) error
	// DropOld strikes out the first lines whose notifications are from before the time, and tells how many.
	DropOld(ctx context.Context, subscriptionID string, before time.Time) (int64, error)
	// Prune deletes notifications from before the time that nobody has still to be told.
	Prune(ctx context.Context, before time.Time) (int64, error)
}

// Clock is the time by which failed deliveries are tried again and given up.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Outcome is what became of an attempt at a delivery.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"   // it is tried again
	GivenUp   Outcome = "given_up" // it is not
)

// Options are what a Dispatcher needs besides its Config; zero values mean the defaults.
type Options struct {
	Clock  Clock          // default the system's
	Jitter func() float64 // [0, 1), by which pauses are made shorter; default random
	Log    *slog.Logger
	// Observe, if set, is told of n attempts; age is the time since the notification's event.
	Observe func(o Outcome, n int, age time.Duration)
	// Probe, if set, is called at points at which tests kill the program: "notify/deliver/before", "/after".
	Probe func(point string)
}

// Dispatcher delivers notifications to the subscriptions that no other node serves.
type Dispatcher struct {
	cfg    Config
	caller *caller
	queue  Queue
	Options
}

// NewDispatcher makes a Dispatcher. It fails when the files of the TLS configuration cannot be used.
func NewDispatcher(cfg Config, queue Queue, o Options) (*Dispatcher, error) {
	cfg = cfg.withDefaults()
	caller, err := newCaller(cfg)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Observe == nil {
		o.Observe = func(Outcome, int, time.Duration) {}
	}
	if o.Probe == nil {
		o.Probe = func(string) {}
	}
	return &Dispatcher{cfg: cfg, caller: caller, queue: queue, Options: o}, nil
}

// How long to wait after a failure of the database, and how often old notifications are pruned.
const (
	databasePause = time.Second
	pruneEvery    = time.Hour
)

// Run delivers until ctx ends; then it ends what is under way and returns.
func (d *Dispatcher) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { d.prune(ctx) })
	defer wg.Wait()
	for {
		err := d.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		d.Log.WarnContext(ctx, "the session that delivers notifications is lost; another is opened", "error", err)
		if !pause(ctx, databasePause) {
			return
		}
	}
}

// pause waits and tells whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

var errSessionLost = errors.New("the session that delivers notifications is lost")

// serve delivers for the life of one session.
func (d *Dispatcher) serve(ctx context.Context) error {
	session, err := d.queue.OpenDeliveries(ctx)
	if err != nil {
		return err
	}
	defer session.Close(context.WithoutCancel(ctx))
	run, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(errSessionLost)
	runners := map[string]*runner{}
	for {
		ids, err := session.Pending(ctx, d.cfg.Poll)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if r := runners[id]; r != nil && !r.finished() {
				r.kick()
				continue
			}
			r := newRunner(d, id)
			runners[id] = r
			wg.Go(func() { r.run(run) })
		}
		for id, r := range runners {
			if !r.finished() {
				continue
			}
			delete(runners, id)
			if err := session.Release(ctx, id); err != nil {
				return err
			}
		}
	}
}

// prune deletes old notifications every now and then until ctx ends.
func (d *Dispatcher) prune(ctx context.Context) {
	for {
		n, err := d.queue.Prune(ctx, d.Clock.Now().Add(-d.cfg.Retention))
		switch {
		case err != nil && ctx.Err() == nil:
			d.Log.WarnContext(ctx, "old notifications could not be pruned", "error", err)
		case n > 0:
			d.Log.InfoContext(ctx, "old notifications are pruned", "notifications", n)
		}
		if !pause(ctx, pruneEvery) {
			return
		}
	}
}

// backoff returns the pause after the attempt, the first being 1.
func (d *Dispatcher) backoff(attempt int) time.Duration {
	pause := d.cfg.RetryMin
	for range attempt - 1 {
		if pause *= 2; pause >= d.cfg.RetryMax {
			pause = d.cfg.RetryMax
			break
		}
	}
	return pause - time.Duration(d.Jitter()*0.2*float64(pause))
}
