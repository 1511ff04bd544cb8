package store

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/riverqueue/river/riverdriver"
)

// announcer tells the workers of all nodes that there are new triggers in a queue. River would say so inside the
// transaction that inserts one, and PostgreSQL lets only one transaction with a notification commit at a time: accepting
// requests would be serialised. So it is said after the commit, from one place, and once for all that came meanwhile. A
// word that is lost costs no more than the workers' poll interval.
type announcer struct {
	store *Store
	kick  map[string]chan struct{}
	stop  context.CancelFunc
	wg    sync.WaitGroup

	tellKick chan struct{}
	mu       sync.Mutex
	told     map[string]bool // subscriptions that have something to be told, not announced yet
}

// announceGap is the shortest time between two announcements of a queue.
const announceGap = time.Millisecond

// insertTopic is the channel on which River's workers listen for new triggers.
const insertTopic = "river_insert"

func newAnnouncer(ctx context.Context, s *Store) *announcer {
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	a := &announcer{store: s, kick: map[string]chan struct{}{}, stop: stop, tellKick: make(chan struct{}, 1), told: map[string]bool{}}
	a.wg.Go(func() { a.runTelling(run) })
	for _, queue := range []string{lcmQueue, onboardQueue} {
		kick := make(chan struct{}, 1)
		a.kick[queue] = kick
		a.wg.Go(func() { a.run(run, queue, kick) })
	}
	return a
}

// announce says, soon, that there is something new in the queue. It does not wait.
func (a *announcer) announce(queue string) {
	select {
	case a.kick[queue] <- struct{}{}:
	default: // it is about to be said
	}
}

func (a *announcer) run(ctx context.Context, queue string, kick <-chan struct{}) {
	payload, err := json.Marshal(map[string]string{"queue": queue})
	if err != nil {
		panic("store: a map of strings always marshals: " + err.Error())
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-kick:
		}
		err := a.store.River.Driver().GetExecutor().NotifyMany(ctx, &riverdriver.NotifyManyParams{Payload: []string{string(payload)}, Topic: insertTopic})
		if err != nil && ctx.Err() == nil {
			a.store.Log.Warn("workers could not be told of new work; they look for it by themselves", "queue", queue, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(announceGap):
		}
	}
}

func (a *announcer) close() {
	a.stop()
	a.wg.Wait()
}
