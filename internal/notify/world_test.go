package notify_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/notify"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var guard = outbound.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

const endpoint = "http://vnfm.example.com:9890"

// world is a store in which instances have operations that notifications tell of.
type world struct {
	*store.Store
	t   *testing.T
	ctx context.Context
	pkg string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{Store: storetest.Open(t), t: t, ctx: ctx, pkg: uuid.NewString()}
	if _, err := w.Pool.Exec(ctx, `INSERT INTO vnf_packages (id, project_id, onboarding_state, operational_state, vnfd_id, body, created_at)
		VALUES ($1, 'p', 'ONBOARDED', 'ENABLED', $2, '{}', now())`, w.pkg, w.pkg); err != nil {
		t.Fatal(err)
	}
	return w
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func (w *world) instance() *lcm.Instance {
	w.t.Helper()
	i := &lcm.Instance{ID: newID(), ProjectID: "p", Name: "vnf", VnfdID: w.pkg, PackageID: w.pkg, State: sol003.InstantiationStateNotInstantiated, Version: 1, Created: w.Now()}
	if err := w.CreateInstance(w.ctx, i); err != nil {
		w.t.Fatal(err)
	}
	return i
}

// operation takes an operation to its end: three notifications.
func (w *world) operation(i *lcm.Instance) {
	w.t.Helper()
	op := &lcm.OpOcc{
		ID: newID(), InstanceID: i.ID, ProjectID: "p", Operation: sol003.LcmOperationTypeScale, State: sol003.LcmOperationStateStarting,
		StartTime: w.Now(), StateEnteredTime: w.Now(), Params: []byte(`{}`), Fence: 1, Seq: 1,
	}
	if err := w.Accept(w.ctx, lcm.Scope{Admin: true}, op, i.State, 0); err != nil {
		w.t.Fatal(err)
	}
	for _, s := range []sol003.LcmOperationState{sol003.LcmOperationStateProcessing, sol003.LcmOperationStateCompleted} {
		op.State, op.StateEnteredTime = s, w.Now()
		op.Seq++
		if err := w.Commit(w.ctx, &lcm.Transition{Op: op, Node: "n", Entered: []lcm.StateEntered{{ID: newID(), Seq: op.Seq, At: op.StateEnteredTime, Notification: op.Notification()}}}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) subscribe(callback string, change ...func(*lcm.Subscription)) *lcm.Subscription {
	w.t.Helper()
	sub := &lcm.Subscription{ID: newID(), ProjectID: "p", CallbackURI: callback, Created: w.Now()}
	for _, f := range change {
		f(sub)
	}
	if err := w.CreateSubscription(w.ctx, sub); err != nil {
		w.t.Fatal(err)
	}
	return sub
}

// dispatch runs a Dispatcher until the function that it returns is called.
func (w *world) dispatch(cfg notify.Config, queue notify.Queue, o notify.Options) (stop func()) {
	w.t.Helper()
	cfg.EndpointURL, cfg.Guard, cfg.Poll = endpoint, guard, cmp.Or(cfg.Poll, 50*time.Millisecond)
	if queue == nil {
		queue = w.Store
	}
	o.Log = storetest.Log()
	d, err := notify.NewDispatcher(cfg, queue, o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(stop)
	return stop
}

// left is how many lines are still to be delivered.
func (w *world) left() (n int) {
	w.t.Helper()
	if err := w.Pool.QueryRow(w.ctx, `SELECT count(*) FROM deliveries`).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// drained waits until there is nothing left to deliver.
func (w *world) drained() {
	w.t.Helper()
	w.until("everything is delivered", func() bool { return w.left() == 0 })
}

// until waits for a condition.
func (w *world) until(what string, f func() bool) {
	w.t.Helper()
	for !f() {
		if w.ctx.Err() != nil {
			w.t.Fatalf("in time it did not come to: %s", what)
		}
		time.Sleep(2 * time.Millisecond) // polled
	}
}

// got is a notification that a subscriber has received.
type got struct {
	ID, Type, State, Instance, OpOcc, Subscription string
	Stamp                                          time.Time
	Links, Tackers                                 map[string]sol003.Link
	Arrived                                        time.Time
	Header                                         http.Header
}

// subscriber is an HTTP server that keeps what it is told.
type subscriber struct {
	*httptest.Server
	mu     sync.Mutex
	all    []got
	answer func(w http.ResponseWriter, r *http.Request, g got) // nil: 204
}

func newSubscriber(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, g got)) *subscriber {
	s := &subscriber{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *subscriber) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var n struct {
		sol003.VnfLcmOperationOccurrenceNotification
		Tackers map[string]sol003.Link `json:"links"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &n)
	}
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	g := got{
		ID: n.Id, Type: string(n.NotificationType), State: string(n.OperationState), Instance: n.VnfInstanceId, OpOcc: n.VnfLcmOpOccId,
		Subscription: n.SubscriptionId, Stamp: n.TimeStamp, Links: n.UnderscoreLinks, Tackers: n.Tackers, Arrived: time.Now(), Header: r.Header,
	}
	s.mu.Lock()
	s.all = append(s.all, g)
	answer := s.answer
	s.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, r, g)
}

func (s *subscriber) received() []got {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]got(nil), s.all...)
}

// accept has the subscriber answer 204 from now on.
func (s *subscriber) accept() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = nil
}

// status answers everything with one status.
func status(code int) func(http.ResponseWriter, *http.Request, got) {
	return func(w http.ResponseWriter, _ *http.Request, _ got) { w.WriteHeader(code) }
}

// inOrder checks that what was received first of each notification is, by instance, what happened and in that order: the
// creation and then operations' three states.
func inOrder(t *testing.T, all []got, operations int) {
	t.Helper()
	seen, states, stamps := map[string]bool{}, map[string][]string{}, map[string]time.Time{}
	for _, g := range all {
		if seen[g.ID] {
			continue
		}
		seen[g.ID] = true
		states[g.Instance] = append(states[g.Instance], g.State)
		if g.Stamp.Before(stamps[g.Instance]) {
			t.Errorf("instance %s: %s is told after what happened later", g.Instance, g.ID)
		}
		stamps[g.Instance] = g.Stamp
	}
	for instance, list := range states {
		if len(list) != 1+3*operations {
			t.Errorf("instance %s: %d notifications", instance, len(list))
		}
		for n, s := range list {
			if want := []string{"COMPLETED", "STARTING", "PROCESSING"}[n%3]; s != want && n > 0 || n == 0 && s != "" {
				t.Errorf("instance %s: %v", instance, list)
				break
			}
		}
	}
}

// clock is a Clock that only goes on when it is told to.
type clock struct {
	mu      sync.Mutex
	now     time.Time
	waiting []alarm
}

type alarm struct {
	at time.Time
	ch chan time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan time.Time, 1)
	if d <= 0 {
		ch <- c.now
		return ch
	}
	c.waiting = append(c.waiting, alarm{c.now.Add(d), ch})
	return ch
}

// next goes on to the first alarm, if there is one.
func (c *clock) next() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return
	}
	first := c.waiting[0].at
	for _, a := range c.waiting {
		if a.at.Before(first) {
			first = a.at
		}
	}
	c.to(first)
}

// add goes on by d.
func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to(c.now.Add(d))
}

func (c *clock) to(now time.Time) {
	c.now = now
	var rest []alarm
	for _, a := range c.waiting {
		if a.at.After(now) {
			rest = append(rest, a)
			continue
		}
		a.ch <- now
	}
	c.waiting = rest
}
