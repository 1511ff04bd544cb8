package notify_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/notify"
)

// TestDelivery: what arrives, how, and how soon.
func TestDelivery(t *testing.T) {
	w := newWorld(t)
	s := newSubscriber(t, nil)
	sub := w.subscribe(s.URL + "/callback?x=1")
	w.dispatch(notify.Config{Poll: time.Second}, nil, notify.Options{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			i := w.instance()
			for range 5 {
				w.operation(i)
			}
		})
	}
	wg.Wait()
	w.drained()
	all := s.received()
	if len(all) != 20*16 {
		t.Errorf("%d notifications", len(all))
	}
	inOrder(t, all, 5)
	printLatency(t, "all at once", all)
	for _, g := range all {
		if g.Subscription != sub.ID || g.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("%+v", g)
		}
		want := map[string]string{"vnfInstance": "/vnflcm/v1/vnf_instances/" + g.Instance, "subscription": "/vnflcm/v1/subscriptions/" + sub.ID}
		if g.OpOcc != "" {
			want["vnfLcmOpOcc"] = "/vnflcm/v1/vnf_lcm_op_occs/" + g.OpOcc
		} else if len(g.Tackers) != 2 || g.Tackers["vnfInstance"] != g.Links["vnfInstance"] {
			t.Errorf("links %v", g.Tackers)
		}
		if len(g.Links) != len(want) {
			t.Fatalf("%v", g.Links)
		}
		for name, path := range want {
			if g.Links[name].Href != endpoint+path {
				t.Fatalf("%s: %v", name, g.Links)
			}
		}
	}
	i := w.instance()
	for n := range 30 {
		w.operation(i)
		w.until("it is told", func() bool { return len(s.received()) == len(all)+4+3*n })
	}
	printLatency(t, "one after the other", s.received()[len(all):])
}

// printLatency tells how long after their events notifications have arrived: for people, nothing is asserted.
func printLatency(t *testing.T, load string, all []got) {
	late := make([]time.Duration, 0, len(all))
	for _, g := range all {
		late = append(late, g.Arrived.Sub(g.Stamp))
	}
	slices.Sort(late)
	t.Logf("%s: from event to arrival p50 %v, p99 %v", load, late[len(late)/2], late[len(late)*99/100])
}

// TestDownForAnHour: a subscriber that answers 500 for an hour gets everything then, in order, and has been asked less
// and less often.
func TestDownForAnHour(t *testing.T) {
	w := newWorld(t)
	c := newClock()
	begin := c.Now()
	s := newSubscriber(t, func(rw http.ResponseWriter, _ *http.Request, _ got) {
		if c.Now().Sub(begin) < time.Hour {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	w.subscribe(s.URL)
	w.dispatch(notify.Config{RetryMax: 10 * time.Minute}, nil, notify.Options{Clock: c})
	i := w.instance()
	for range 10 {
		w.operation(i)
	}
	asked := 0
	w.until("the hour is over", func() bool {
		if n := len(s.received()); n > asked {
			asked = n
			w.until("the failure is recorded", func() bool {
				var attempts int
				err := w.Pool.QueryRow(w.ctx, `SELECT coalesce(max(attempts), 0) FROM deliveries`).Scan(&attempts)
				return err == nil && (attempts >= asked || c.Now().Sub(begin) >= time.Hour)
			})
		}
		c.next()
		return c.Now().Sub(begin) >= time.Hour
	})
	if asked < 8 || asked > 20 {
		t.Errorf("asked %d times within the hour", asked)
	}
	w.until("everything is delivered", func() bool { c.next(); return w.left() == 0 })
	all := s.received()
	if first := all[0].ID; all[1].ID != first || all[asked-1].ID != first {
		t.Error("a retransmission has another id")
	}
	inOrder(t, all, 10)
}

// TestRestartKeepsBackOff: another node that takes over does not ask sooner than was put down.
func TestRestartKeepsBackOff(t *testing.T) {
	w := newWorld(t)
	c := newClock()
	s := newSubscriber(t, status(http.StatusServiceUnavailable))
	w.subscribe(s.URL)
	stop := w.dispatch(notify.Config{}, nil, notify.Options{Clock: c})
	w.instance()
	var next *time.Time
	failed := func() bool {
		err := w.Pool.QueryRow(w.ctx, `SELECT next_at FROM deliveries`).Scan(&next)
		return err == nil && next != nil
	}
	w.until("it has failed once", failed)
	stop()
	if d := next.Sub(c.Now()); d < 800*time.Millisecond || d > time.Second {
		t.Errorf("the pause is %v", d)
	}
	asked := len(s.received())
	var looked atomic.Int64
	w.dispatch(notify.Config{}, counting{w.Store, &looked}, notify.Options{Clock: c})
	w.until("the other node has looked", func() bool { return looked.Load() >= 3 })
	if n := len(s.received()); n != asked {
		t.Errorf("asked %d times more, too early", n-asked)
	}
	c.add(time.Second)
	w.until("it is asked again", func() bool { return len(s.received()) > asked })
}

// counting counts the looks into the queue.
type counting struct {
	notify.Queue
	looks *atomic.Int64
}

func (q counting) Deliveries(ctx context.Context, id string, pass []string, limit int) ([]lcm.Delivery, error) {
	defer q.looks.Add(1)
	return q.Queue.Deliveries(ctx, id, pass, limit)
}

// TestRecovery: a subscriber that was dead for long gets what waits for all instances at once when it answers one.
func TestRecovery(t *testing.T) {
	w := newWorld(t)
	c := newClock()
	s := newSubscriber(t, status(http.StatusBadGateway))
	w.subscribe(s.URL)
	for range 30 {
		w.operation(w.instance())
	}
	w.dispatch(notify.Config{Concurrency: 4}, nil, notify.Options{Clock: c})
	w.until("all have failed a few times", func() bool {
		c.next()
		var least int
		err := w.Pool.QueryRow(w.ctx, `SELECT min(a) FROM (SELECT max(attempts) AS a FROM deliveries GROUP BY vnf_instance_id) AS x`).Scan(&least)
		return err == nil && least >= 5
	})
	s.accept()
	asked := len(s.received())
	w.until("one is asked", func() bool { c.next(); return len(s.received()) > asked })
	w.drained() // the clock stands still
	inOrder(t, s.received(), 1)
}

// TestPoisonedInstance: a subscriber that never takes what concerns one instance gets the rest, without delay.
func TestPoisonedInstance(t *testing.T) {
	w := newWorld(t)
	c := newClock()
	bad := w.instance()
	s := newSubscriber(t, func(rw http.ResponseWriter, _ *http.Request, g got) {
		if g.Instance == bad.ID {
			rw.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	w.subscribe(s.URL)
	w.dispatch(notify.Config{}, nil, notify.Options{Clock: c})
	for range 3 {
		w.operation(bad)
	}
	for range 10 {
		w.operation(w.instance())
	}
	w.until("the others are told", func() bool { return w.left() == 9 })
	tried := 0
	for _, g := range s.received() {
		if g.Instance == bad.ID {
			tried++
		}
	}
	if tried > 3 {
		t.Errorf("it was tried %d times while the clock stood still", tried)
	}
}

// TestBadSubscribers: those that hang, refuse, redirect, answer garbage or without end cost the others nothing.
func TestBadSubscribers(t *testing.T) {
	w := newWorld(t)
	var elsewhere, written atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	endless := bytes.Repeat([]byte("x"), 64<<10)
	hanging := newSubscriber(t, func(_ http.ResponseWriter, r *http.Request, _ got) { <-r.Context().Done() })
	redirecting := newSubscriber(t, func(rw http.ResponseWriter, r *http.Request, _ got) {
		http.Redirect(rw, r, other.URL, http.StatusTemporaryRedirect)
	})
	large := newSubscriber(t, func(rw http.ResponseWriter, r *http.Request, _ got) {
		for n := 0; n < 1<<30; n += len(endless) {
			if _, err := rw.Write(endless); err != nil {
				return
			}
			written.Add(int64(len(endless)))
		}
	})
	garbage := newSubscriber(t, func(rw http.ResponseWriter, _ *http.Request, _ got) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("\x00\xff garbage\r\n\r\n"))
			_ = conn.Close()
		}
	})
	good := newSubscriber(t, nil)
	for _, url := range []string{hanging.URL, redirecting.URL, large.URL, garbage.URL, "http://127.0.0.1:1/", "http://169.254.169.254/", "http://no.such.host.invalid/", good.URL} {
		w.subscribe(url)
	}
	stop := w.dispatch(notify.Config{Timeout: 5 * time.Second, RetryMin: 50 * time.Millisecond}, nil, notify.Options{})
	var instances []*lcm.Instance
	for range 5 {
		instances = append(instances, w.instance())
	}
	for range 4 {
		for _, i := range instances {
			w.operation(i)
		}
	}
	w.until("the good one has everything", func() bool { return len(good.received()) == 5*13 })
	inOrder(t, good.received(), 4)
	w.until("the large one has everything", func() bool { return len(large.received()) >= 5*13 })
	w.until("the others have been tried again", func() bool {
		return len(hanging.received()) > 3 && len(redirecting.received()) > 3 && len(garbage.received()) > 3
	})
	stop()
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
	if mb := written.Load() >> 20; mb > 1024 {
		t.Errorf("%d MiB of answers were taken", mb)
	}
	ids := map[string]bool{}
	for _, g := range hanging.received() {
		ids[g.ID] = true
	}
	if len(ids) > 5 {
		t.Errorf("%d different notifications before any was taken", len(ids))
	}
}

// TestConcurrency: several instances at the same time, never more than configured, never two of one instance.
func TestConcurrency(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	now, most := map[string]int{}, 0
	three := make(chan struct{}) // closed when there have been as many as there may be
	s := newSubscriber(t, func(rw http.ResponseWriter, _ *http.Request, g got) {
		mu.Lock()
		now[g.Instance]++
		if now[g.Instance] > 1 {
			t.Errorf("two of instance %s at the same time", g.Instance)
		}
		sum := 0
		for _, n := range now {
			sum += n
		}
		if sum == 3 && most < 3 {
			close(three)
		}
		most = max(most, sum)
		mu.Unlock()
		select {
		case <-three:
		case <-w.ctx.Done():
		}
		time.Sleep(5 * time.Millisecond) // a slow subscriber
		mu.Lock()
		now[g.Instance]--
		mu.Unlock()
		rw.WriteHeader(http.StatusNoContent)
	})
	w.subscribe(s.URL)
	for range 12 {
		w.operation(w.instance())
	}
	w.dispatch(notify.Config{Concurrency: 3, Timeout: 5 * time.Minute}, nil, notify.Options{})
	w.drained()
	if most != 3 {
		t.Errorf("at most %d at the same time", most)
	}
	inOrder(t, s.received(), 1)
}

// stuck is the queue of a node that dies after a delivery, before it is recorded.
type stuck struct {
	notify.Queue
	reached chan struct{}
	once    *sync.Once
}

func (q stuck) Delivered(ctx context.Context, _ string, _ []int64) (int64, error) {
	q.once.Do(func() { close(q.reached) })
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestDiesBeforeRecording: what was delivered and not recorded is delivered again, by another node, with the same id.
func TestDiesBeforeRecording(t *testing.T) {
	w := newWorld(t)
	s := newSubscriber(t, nil)
	w.subscribe(s.URL)
	q := stuck{w.Store, make(chan struct{}), new(sync.Once)}
	w.dispatch(notify.Config{}, q, notify.Options{})
	w.operation(w.instance())
	<-q.reached
	if n := len(s.received()); n != 1 {
		t.Errorf("%d deliveries before the first is recorded", n)
	}
	// The node's session ends, as it does when it is killed; it may not get another.
	w.endSessions(1)
	w.dispatch(notify.Config{}, nil, notify.Options{})
	w.drainedBut(q)
	all := s.received()
	if all[0].ID != all[1].ID {
		t.Error("the retransmission has another id")
	}
	inOrder(t, all, 1)
}

// endSessions ends so many sessions that deliver, as the death of their nodes does.
func (w *world) endSessions(n int) {
	w.t.Helper()
	w.until("a session ends", func() bool {
		var ended int
		err := w.Pool.QueryRow(w.ctx, `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) AS ok FROM pg_stat_activity
			WHERE application_name = 'vnfm notifications' AND datname = current_database() LIMIT $1) AS x WHERE ok`, n).Scan(&ended)
		return err == nil && ended == n
	})
}

// drainedBut waits until there is nothing left, ending the stuck node's session whenever it gets one.
func (w *world) drainedBut(stuck) {
	w.t.Helper()
	w.until("everything is delivered", func() bool {
		if w.left() == 0 {
			return true
		}
		_, _ = w.Pool.Exec(w.ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'vnfm notifications' AND datname = current_database() AND random() < 0.01`)
		return false
	})
}

// TestTakeover: three nodes, whose sessions are cut at random while operations go on; everything arrives, in order.
func TestTakeover(t *testing.T) {
	w := newWorld(t)
	var subscribers []*subscriber
	for range 3 {
		s := newSubscriber(t, func(rw http.ResponseWriter, _ *http.Request, _ got) {
			if rand.IntN(10) == 0 {
				rw.WriteHeader(http.StatusInternalServerError)
				return
			}
			rw.WriteHeader(http.StatusNoContent)
		})
		subscribers = append(subscribers, s)
		w.subscribe(s.URL)
	}
	for range 3 {
		w.dispatch(notify.Config{RetryMin: 5 * time.Millisecond}, nil, notify.Options{})
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			i := w.instance()
			for range 10 {
				w.operation(i)
			}
		})
	}
	for range 5 {
		w.endSessions(1)
		time.Sleep(20 * time.Millisecond) // so that something happens between
	}
	wg.Wait()
	w.drained()
	for _, s := range subscribers {
		inOrder(t, s.received(), 10)
	}
}

// TestGivenUp: what is too old and fails once more is dropped, and what came after it is told.
func TestGivenUp(t *testing.T) {
	w := newWorld(t)
	c := newClock()
	s := newSubscriber(t, status(http.StatusInternalServerError))
	w.subscribe(s.URL)
	var given atomic.Int64
	w.dispatch(notify.Config{MaxAge: 24 * time.Hour}, nil, notify.Options{Clock: c, Observe: func(o notify.Outcome, n int, _ time.Duration) {
		if o == notify.GivenUp {
			given.Add(int64(n))
		}
	}})
	for range 4 {
		w.operation(w.instance())
	}
	w.until("it is given up", func() bool { c.next(); return w.left() == 0 })
	if given.Load() != 16 {
		t.Errorf("%d given up", given.Load())
	}
	if age := time.Until(c.Now()); age < 23*time.Hour || age > 27*time.Hour {
		t.Errorf("given up after %v", age)
	}
}

// TestUnsubscribed: nothing is told to a subscription that is gone.
func TestUnsubscribed(t *testing.T) {
	w := newWorld(t)
	held := make(chan struct{})
	s := newSubscriber(t, func(rw http.ResponseWriter, r *http.Request, _ got) {
		select {
		case <-held:
		case <-r.Context().Done():
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	sub := w.subscribe(s.URL)
	w.dispatch(notify.Config{Idle: 10 * time.Millisecond}, nil, notify.Options{})
	i := w.instance()
	for range 3 {
		w.operation(i)
	}
	w.until("the first is on its way", func() bool { return len(s.received()) == 1 })
	if err := w.DeleteSubscription(w.ctx, lcm.Scope{ProjectID: "p"}, sub.ID); err != nil {
		t.Fatal(err)
	}
	close(held)
	w.operation(i)
	again := w.subscribe(s.URL)
	w.operation(i)
	w.until("the new subscription is told", func() bool { return w.left() == 0 })
	all := s.received()
	if len(all) != 4 || all[0].Subscription != sub.ID || all[3].Subscription != again.ID {
		t.Errorf("%+v", all)
	}
}

func TestAuthentication(t *testing.T) {
	w := newWorld(t)
	basic := newSubscriber(t, func(rw http.ResponseWriter, r *http.Request, _ got) {
		if u, p, _ := r.BasicAuth(); u != "joe" || p != "geheim" {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	var tokens atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if id, secret, _ := r.BasicAuth(); id != "id" || secret != "geheim" {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"access_token": "t%d", "token_type": "Bearer", "expires_in": 3600}`, tokens.Add(1))
	}))
	defer endpoint.Close()
	bearer := newSubscriber(t, func(rw http.ResponseWriter, r *http.Request, g got) {
		if r.Header.Get("Authorization") != "Bearer t2" { // the first has been revoked
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	with := func(f func(a *sol003.SubscriptionAuthentication), types ...sol003.SubscriptionAuthType) func(*lcm.Subscription) {
		return func(s *lcm.Subscription) {
			s.Auth = &sol003.SubscriptionAuthentication{AuthType: types}
			f(s.Auth)
		}
	}
	w.subscribe(basic.URL, with(func(a *sol003.SubscriptionAuthentication) {
		a.ParamsBasic.UserName, a.ParamsBasic.Password = "joe", "geheim"
	}, sol003.SubscriptionAuthTypeTLSCert, sol003.SubscriptionAuthTypeBasic))
	w.subscribe(bearer.URL, with(func(a *sol003.SubscriptionAuthentication) {
		o := &a.ParamsOauth2ClientCredentials
		o.ClientId, o.ClientPassword, o.TokenEndpoint = "id", "geheim", endpoint.URL
	}, sol003.SubscriptionAuthTypeBasic, sol003.SubscriptionAuthTypeOAuth2ClientCredentials))
	w.dispatch(notify.Config{}, nil, notify.Options{})
	for range 3 {
		w.operation(w.instance())
	}
	w.drained()
	for _, s := range []*subscriber{basic, bearer} {
		if all := s.received(); len(all) < 12 {
			t.Errorf("%d", len(all))
		} else {
			inOrder(t, all, 1)
		}
	}
	if n := tokens.Load(); n != 2 {
		t.Errorf("%d tokens were fetched", n)
	}
}

// TestSubscribe is the life of a subscription request.
func TestSubscribe(t *testing.T) {
	w := newWorld(t)
	var asked atomic.Int64
	callback := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("%s", r.Method)
		case r.URL.Path == "/basic":
			if u, p, _ := r.BasicAuth(); u != "joe" || p != "geheim" {
				rw.WriteHeader(http.StatusUnauthorized)
				return
			}
			rw.WriteHeader(http.StatusNoContent)
		case r.URL.Path == "/hang":
			<-r.Context().Done()
		case r.URL.Path == "/moved":
			http.Redirect(rw, r, "/ok", http.StatusFound)
		case r.URL.Path == "/200":
		default:
			rw.WriteHeader(http.StatusNoContent)
		}
	}))
	defer callback.Close()
	scope := lcm.Scope{ProjectID: "p"}
	service := func(cfg notify.Config) *notify.Service {
		cfg.Guard, cfg.Timeout = guard, cmp.Or(cfg.Timeout, time.Minute)
		s, err := notify.NewService(cfg, w.Store, w.Now, newID, w.Log)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := service(notify.Config{TestCallback: true})
	hasty := service(notify.Config{TestCallback: true, Timeout: 200 * time.Millisecond})
	subscribe := func(s *notify.Service, raw string) (*lcm.Subscription, error) {
		t.Helper()
		var req sol003.LccnSubscriptionRequest
		if err := json.Unmarshal([]byte(raw), &req); err != nil {
			t.Fatal(err)
		}
		return s.Subscribe(w.ctx, scope, req, []byte(raw))
	}
	one, err := subscribe(s, fmt.Sprintf(`{"callbackUri": "%s/ok", "filter": {"notificationTypes": ["VnfIdentifierCreationNotification"]}}`, callback.URL))
	if err != nil || asked.Load() != 1 {
		t.Fatalf("%v, %d tests", err, asked.Load())
	}
	var there *lcm.SubscribedError
	if _, err := subscribe(s, fmt.Sprintf(`{"callbackUri": "%s/ok", "filter": {"notificationTypes": ["VnfIdentifierCreationNotification"]}}`, callback.URL)); !errors.As(err, &there) || there.ID != one.ID {
		t.Errorf("%v", err)
	}
	const params = `"paramsBasic": {"userName": "joe", "password": "geheim"}`
	for _, c := range []struct{ name, raw, want string }{
		{"authentication", `{"callbackUri": "URL/basic", "authentication": {"authType": ["BASIC"], ` + params + `}}`, ""},
		{"Tacker's name", `{"callbackUri": "URL/basic?x", "subscriptionAuthentication": {"authType": ["BASIC"], ` + params + `}}`, ""},
		{"no authentication", `{"callbackUri": "URL/basic?y"}`, "Failed to Test Notification"},
		{"impossible", `{"callbackUri": "URL/basic?y", "authentication": {"authType": ["TLS_CERT"]}}`, "none of the types of authentication"},
		{"incomplete", `{"callbackUri": "URL/basic?y", "authentication": {"authType": ["BASIC", "OAUTH2_CLIENT_CREDENTIALS"]}}`, "none of the types of authentication"},
		{"bad endpoint", `{"callbackUri": "URL/x", "authentication": {"authType": ["OAUTH2_CLIENT_CREDENTIALS"], "paramsOauth2ClientCredentials": {"clientId": "a", "clientPassword": "geheim", "tokenEndpoint": "zz"}}}`, "token endpoint"},
		{"odd authentication", `{"callbackUri": "URL/x", "subscriptionAuthentication": {"authType": "BASIC"}}`, "subscriptionAuthentication"},
		{"200", `{"callbackUri": "URL/200"}`, "Failed to Test Notification"},
		{"redirect", `{"callbackUri": "URL/moved"}`, "Failed to Test Notification"},
		{"hang", `{"callbackUri": "URL/hang"}`, "Failed to Test Notification"},
		{"refused", `{"callbackUri": "http://127.0.0.1:1/"}`, "Failed to Test Notification"},
		{"metadata", `{"callbackUri": "http://169.254.169.254/latest"}`, "Failed to Test Notification"},
		{"scheme", `{"callbackUri": "ftp://example.com/"}`, "may not be called"},
		{"password", `{"callbackUri": "http://joe:geheim@example.com/"}`, "may not be called"},
		{"no URI", `{"callbackUri": "http://[zz"}`, "not a URI"},
	} {
		asked := s
		if c.name == "hang" {
			asked = hasty
		}
		_, err := subscribe(asked, strings.ReplaceAll(c.raw, "URL", callback.URL))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!lcm.Is(err, lcm.KindInvalid) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.name, err)
		}
		var shown *lcm.Error
		if errors.As(err, &shown) && (strings.Contains(shown.Detail, "geheim") || c.want == "Failed to Test Notification" && shown.Detail != c.want) {
			t.Errorf("%s: %s", c.name, shown.Detail)
		}
	}
	if _, err := subscribe(service(notify.Config{}), `{"callbackUri": "http://127.0.0.1:1/untested"}`); err != nil {
		t.Error(err)
	}
	if err := s.Unsubscribe(w.ctx, scope, one.ID); err != nil {
		t.Error(err)
	}
	if err := s.Unsubscribe(w.ctx, scope, one.ID); !lcm.Is(err, lcm.KindNotFound) {
		t.Error(err)
	}
}
