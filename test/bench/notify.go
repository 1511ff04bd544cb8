package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

const (
	subscriptionsPath = "/vnflcm/v1/subscriptions"
	targetNotified    = 50 * time.Millisecond
	// notifyOperations is how many operations the notifications are told of under load: three each.
	notifyOperations = 1000
	// targetDelay is the ratio of the operations' own durations with subscribers to those without, the worst of them
	// included: some of it is the work of telling.
	targetDelay = 1.25
)

// Notified is how long it takes from the change of a state until its notification comes in at the subscriber, and what
// subscribers cost the operations.
type Notified struct {
	Quiet Latency `json:"oneByOne"` // operations one after the other
	Busy  Latency `json:"underLoad"`
	// Without and With are the operations' own durations without subscribers, and with one that answers and one that never does.
	Without Latency `json:"withoutSubscribers"`
	With    Latency `json:"withOneThatNeverAnswers"`
	Ratio   float64 `json:"p50Ratio"`
}

// subscriber takes notifications and notes how late they come.
type subscriber struct {
	http   *http.Server
	ln     net.Listener
	hang   chan struct{} // nil: it answers
	served chan error

	mu   sync.Mutex
	late []time.Duration
}

func listen(ctx context.Context, hangs bool) (*subscriber, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for notifications: %w", err)
	}
	s := &subscriber{ln: ln, served: make(chan error, 1)}
	if hangs {
		s.hang = make(chan struct{})
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { s.served <- s.http.Serve(ln) }()
	return s, nil
}

// ServeHTTP takes a notification; the GET that tests the callback is answered in any case.
func (s *subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	if r.Method == http.MethodPost {
		raw, err := io.ReadAll(r.Body)
		var n sol003.VnfLcmOperationOccurrenceNotification
		if err != nil || json.Unmarshal(raw, &n) != nil || n.TimeStamp.IsZero() {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if s.hang != nil {
			select {
			case <-s.hang:
			case <-r.Context().Done():
			}
			return
		}
		s.mu.Lock()
		s.late = append(s.late, at.Sub(n.TimeStamp))
		s.mu.Unlock()
	}
	w.WriteHeader(http.StatusNoContent)
}

// take waits for count notifications and returns how late they came.
func (s *subscriber) take(ctx context.Context, count int) ([]time.Duration, error) {
	err := poll(ctx, drainTimeout, 5*time.Millisecond, func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.late) >= count, nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = nil
	if err != nil {
		return nil, fmt.Errorf("%d of %d notifications came: %w", len(late), count, err)
	}
	return late, nil
}

func (s *subscriber) close() error {
	if s.hang != nil {
		close(s.hang)
	}
	err := s.http.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// subscribe has the server tell a subscriber of every operation; the function that it returns ends that.
func (b *bench) subscribe(s *subscriber) (unsubscribe func() error, err error) {
	body, err := json.Marshal(map[string]any{
		"callbackUri": "http://" + s.ln.Addr().String() + "/notify",
		"filter":      map[string]any{"notificationTypes": []string{"VnfLcmOperationOccurrenceNotification"}},
	})
	if err != nil {
		return nil, err
	}
	c := newConn(b.server.addr)
	defer c.close()
	var made sol003.LccnSubscription
	if _, err := c.want(201, "POST", subscriptionsPath, jsonType, body, &made); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	return func() error {
		c := newConn(b.server.addr)
		defer c.close()
		_, err := c.want(204, "DELETE", subscriptionsPath+"/"+made.Id, "", nil, nil)
		return err
	}, nil
}

// notifications measures how late notifications come, and whether a subscriber that never answers delays operations.
func (b *bench) notifications(ctx context.Context) (err error) {
	b.note("notifications")
	without, err := b.singles(ctx, oneByOneCount)
	if err != nil {
		return fmt.Errorf("operations without subscribers: %w", err)
	}
	live, err := listen(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.close()) }()
	dead, err := listen(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dead.close()) }()
	for _, s := range []*subscriber{live, dead} {
		unsubscribe, subErr := b.subscribe(s)
		if subErr != nil {
			return subErr
		}
		defer func() { err = errors.Join(unsubscribe(), err) }()
	}
	with, err := b.singles(ctx, oneByOneCount)
	if err != nil {
		return fmt.Errorf("operations with subscribers: %w", err)
	}
	const each = 3 // STARTING, PROCESSING, COMPLETED
	late, err := live.take(ctx, each*(with.Server.Count+warmUps))
	if err != nil {
		return err
	}
	n := &Notified{Quiet: latencyOf(late), Without: without.Server, With: with.Server}
	n.Ratio = float64(with.Server.P50) / float64(without.Server.P50)
	if _, err := b.wholes(ctx, targetClients, notifyOperations); err != nil {
		return fmt.Errorf("operations with subscribers: %w", err)
	}
	if late, err = live.take(ctx, each*notifyOperations); err != nil {
		return err
	}
	n.Busy = latencyOf(late)
	b.report.Notified = n
	row := func(name string, l Latency) []string {
		return []string{name, fmt.Sprint(l.Count), ms(l.P50), ms(l.P99), ms(l.Max)}
	}
	b.printf("\nnotifications: from the state's time to the subscriber's door; beside it stands a subscriber that never answers\n")
	table(b.out, []string{"", "count", "p50", "p99", "max"}, [][]string{
		row("operations one at a time", n.Quiet), row(fmt.Sprintf("%d operations of %d clients", notifyOperations, targetClients), n.Busy),
		row("the operations themselves, without subscribers", n.Without), row("… with both subscribers", n.With),
	})
	b.verdict(atMost("state → notification, one at a time, p99", n.Quiet.P99, targetNotified, again{}).beside(with.Others))
	b.verdict(Verdict{Figure: "operations with a dead subscriber ÷ without, p50", Measured: ratio(n.Ratio), Target: "≤ " + ratio(targetDelay), Met: n.Ratio <= targetDelay}.beside(with.Others))
	return nil
}
