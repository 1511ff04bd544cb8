package openstack

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// states notes what an observer is told of circuits.
type states struct {
	observed
	mu      sync.Mutex
	seen    []string
	refused map[string]int
}

func (s *states) Circuit(vim, region, service, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, strings.Join([]string{vim, region, service, state}, " "))
}

func (s *states) Refused(_, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[string]int{}
	}
	s.refused[why]++
}

func faulty(status int, header ...string) func(req *http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) { return answered(req, status, `{}`, header...), nil }
}

// opened is the error of a circuit that is open.
func opened(t *testing.T, err error, why string) time.Duration {
	t.Helper()
	var e *lcm.Error
	if !errors.As(err, &e) || e.Kind != lcm.KindRetryable || !strings.Contains(e.Detail, " service has not answered since ") || !strings.Contains(e.Detail, why) {
		t.Fatalf("%v", err)
	}
	return e.Again
}

func TestCircuitOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen := newWires(), &states{}
		d := w.driver(Config{Observer: seen})
		defer d.Close()
		two := wired()
		two.Region = "Two"
		allGood(t, all(t.Context(), 1, d, wired()))
		w.set(of("heat-one", faulty(http.StatusBadGateway)))
		before := w.called("heat-one")
		for range 5 {
			if err := call(t.Context(), d, wired()); !lcm.Is(err, lcm.KindRetryable) || strings.Contains(err.Error(), "since") {
				t.Fatalf("%v", err)
			}
			time.Sleep(time.Second)
		}
		for _, err := range all(t.Context(), 100, d, wired()) {
			if again := opened(t, err, "HTTP status 502"); again != 9*time.Second {
				t.Fatalf("to be tried again after %s", again)
			}
			if !strings.HasPrefix(err.Error(), "VIM VIM0: cannot look for stack some: the orchestration (One) service has not answered since ") {
				t.Fatalf("%v", err)
			}
		}
		allGood(t, all(t.Context(), 10, d, two)) // the other region goes on
		if n := w.called("heat-one") - before; n != 5 {
			t.Errorf("%d calls", n)
		}
		time.Sleep(9*time.Second + time.Millisecond)
		for _, err := range all(t.Context(), 10, d, wired()) { // one is let through, and fails
			if err == nil {
				t.Fatal("answered")
			}
		}
		if n := w.called("heat-one") - before; n != 6 {
			t.Errorf("%d calls", n)
		}
		w.set(nil)
		time.Sleep(10*time.Second + time.Millisecond)
		allGood(t, all(t.Context(), 1, d, wired()))
		allGood(t, all(t.Context(), 20, d, wired()))
		want := []string{
			"vim One orchestration open", "vim One orchestration half-open", "vim One orchestration open",
			"vim One orchestration half-open", "vim One orchestration closed",
		}
		if diff := cmp.Diff(want, seen.seen); diff != "" {
			t.Errorf("states (- want, + got):\n%s", diff)
		}
		if n := seen.refused["open circuit"]; n != 109 {
			t.Errorf("%d calls were refused", n)
		}
	})
}

// TestCircuitOfSilence has a service take calls and never answer: the first timeout is enough, unless others are answered.
func TestCircuitOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		allGood(t, all(t.Context(), 1, d, wired()))
		w.set(of("heat-one", hang))
		begun := time.Now()
		for _, err := range all(t.Context(), 50, d, wired()) {
			if !lcm.Is(err, lcm.KindRetryable) {
				t.Fatalf("%v", err)
			}
		}
		if took := time.Since(begun); took != 60*time.Second {
			t.Errorf("took %s", took)
		}
		begun = time.Now()
		for _, err := range all(t.Context(), 50, d, wired()) {
			opened(t, err, "no answer in time (1m0s)")
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("took %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		allGood(t, all(t.Context(), 1, d, wired()))
		slow := true
		w.set(of("heat-one", func(req *http.Request) (*http.Response, error) {
			if slow {
				slow = false
				return hang(req)
			}
			return nil, nil
		}))
		done := make(chan error)
		go func() { done <- call(t.Context(), d, wired()) }()
		synctest.Wait()
		time.Sleep(30 * time.Second)
		allGood(t, all(t.Context(), 10, d, wired()))
		if err := <-done; !lcm.Is(err, lcm.KindRetryable) {
			t.Errorf("%v", err)
		}
		allGood(t, all(t.Context(), 10, d, wired()))
	})
}

// TestCanceledProbe has the call that is let through to see be cut off by its caller: the next one is let through.
func TestCanceledProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{BreakerFailures: 1})
		defer d.Close()
		allGood(t, all(t.Context(), 1, d, wired()))
		w.set(of("heat-one", faulty(http.StatusInternalServerError)))
		_ = call(t.Context(), d, wired())
		opened(t, call(t.Context(), d, wired()), "500")
		time.Sleep(11 * time.Second)
		w.set(of("heat-one", hang))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- call(ctx, d, wired()) }()
		synctest.Wait()
		opened(t, call(t.Context(), d, wired()), "500")
		cancel()
		<-done
		w.set(nil)
		allGood(t, all(t.Context(), 1, d, wired()))
	})
}

// TestCircuitEmptiesTheQueue has calls queue for their turn behind one that hangs: they fail with it.
func TestCircuitEmptiesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{MaxConcurrent: 1, CallTimeout: 20 * time.Second})
		defer d.Close()
		allGood(t, all(t.Context(), 1, d, wired()))
		time.Sleep(time.Second)
		w.set(of("heat-one", func(req *http.Request) (*http.Response, error) {
			time.Sleep(15 * time.Second)
			return nil, fmt.Errorf("reset: %w", &timeoutError{})
		}))
		begun := time.Now()
		all(t.Context(), 30, d, wired())
		if took := time.Since(begun); took != 15*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// endless is image data that goes on coming, slowly.
type endless struct{ chunks int }

func (e *endless) Read(p []byte) (int, error) {
	if e.chunks--; e.chunks < 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Minute)
	return copy(p, "data"), nil
}

// TestStalledUpload has image data be taken slowly, which is fine, and then not at all.
func TestStalledUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		c, err := d.connect(t.Context(), wired())
		if err != nil {
			t.Fatal(err)
		}
		w.set(func(req *http.Request) (*http.Response, error) {
			switch {
			case req.URL.Host == "keystone":
				return nil, nil
			case req.Method == http.MethodGet:
				return answered(req, http.StatusOK, `{"versions": [{"id": "v2.16", "status": "CURRENT", "links": []}]}`), nil
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return nil, err
			}
			if strings.Contains(req.URL.Path, "stalled") {
				return hang(req)
			}
			return answered(req, http.StatusNoContent, ""), nil
		})
		if err := c.uploadImage(t.Context(), "slow", &endless{20}); err != nil {
			t.Errorf("%v", err)
		}
		begun := time.Now()
		err = c.uploadImage(t.Context(), "stalled", &endless{3})
		if !lcm.Is(err, lcm.KindRetryable) || err.Error() != "VIM VIM0: cannot upload image stalled: no progress for 1m40s" {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took != 3*time.Minute+100*time.Second {
			t.Errorf("took %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if err := c.uploadImage(ctx, "stalled", &endless{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// TestUploadsLeaveTheCalls has uploads go on for long: they hold none of the VIM's calls, and their time runs from when they
// are made.
func TestUploadsLeaveTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{MaxConcurrent: 1})
		defer d.Close()
		c, err := d.connect(t.Context(), wired())
		if err != nil {
			t.Fatal(err)
		}
		w.set(func(req *http.Request) (*http.Response, error) {
			switch {
			case req.URL.Host != "glance":
				return nil, nil
			case req.Method == http.MethodGet:
				return answered(req, http.StatusOK, `{"versions": [{"id": "v2.16", "status": "CURRENT", "links": []}]}`), nil
			}
			_, err := io.Copy(io.Discard, req.Body)
			return answered(req, http.StatusNoContent, ""), err
		})
		var uploads sync.WaitGroup
		for range 3 {
			uploads.Go(func() {
				if err := c.uploadImage(t.Context(), "slow", &endless{5}); err != nil {
					t.Errorf("%v", err)
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		allGood(t, all(t.Context(), 10, d, wired()))
		if took := time.Since(begun); took > time.Second {
			t.Errorf("calls waited for %s", took)
		}
		uploads.Wait()
		if took := time.Since(begun); took > 6*time.Minute {
			t.Errorf("the uploads took %s", took)
		}
		// One that has to wait for the VIM's rate does not stand still meanwhile.
		c.account.throttle.bucket.SetLimit(rate.Every(50 * time.Second))
		c.account.throttle.bucket.SetBurst(1)
		c.account.throttle.bucket.ReserveN(time.Now(), 1)
		if err := c.uploadImage(t.Context(), "slow", &endless{1}); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// TestCallersOwnDeadline has callers run out of time before a call does: that opens no circuit for the others, if a
// connection could not even have been made, and only by and by if it could.
func TestCallersOwnDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		patience time.Duration
		opens    int // after how many calls, 0: never
	}{
		"hardly any time":     {2 * time.Second, 0},
		"less than a dial":    {9 * time.Second, 0},
		"a part of a call's":  {15 * time.Second, 5},
		"as long as the call": {time.Minute, 1},
		"longer":              {2 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWires()
				d := w.driver(Config{BreakerOpenFor: time.Hour})
				defer d.Close()
				allGood(t, all(t.Context(), 1, d, wired()))
				time.Sleep(time.Second)
				w.set(of("heat-one", hang))
				for n := 1; n <= 8; n++ {
					before := w.called("heat-one")
					ctx, cancel := context.WithTimeout(t.Context(), tt.patience)
					_ = call(ctx, d, wired())
					cancel()
					if called := w.called("heat-one") > before; called != (tt.opens == 0 || n <= tt.opens) {
						t.Fatalf("call %d: made %t", n, called)
					}
				}
			})
		})
	}
}

// TestCallsOwnTime has a call wait for its turn: its time runs from then.
func TestCallsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{MaxConcurrent: 1, CallTimeout: 20 * time.Second})
		defer d.Close()
		allGood(t, all(t.Context(), 1, d, wired()))
		w.set(of("heat-one", func(*http.Request) (*http.Response, error) {
			time.Sleep(15 * time.Second)
			return nil, nil
		}))
		allGood(t, all(t.Context(), 2, d, wired()))
	})
}

type timeoutError struct{}

func (*timeoutError) Error() string   { return "dial tcp: i/o timeout" }
func (*timeoutError) Timeout() bool   { return true }
func (*timeoutError) Temporary() bool { return true }

func TestRetryAfter(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		header func() string
		want   time.Duration
	}{
		"seconds":       {http.StatusTooManyRequests, func() string { return "7" }, 7 * time.Second},
		"a date":        {http.StatusServiceUnavailable, func() string { return time.Now().UTC().Add(40 * time.Second).Format(http.TimeFormat) }, 40 * time.Second},
		"far too long":  {http.StatusServiceUnavailable, func() string { return "99999999" }, mostHeld},
		"the past":      {http.StatusTooManyRequests, func() string { return "Thu, 01 Jan 1970 00:00:00 GMT" }, 0},
		"nonsense":      {http.StatusTooManyRequests, func() string { return "soon" }, 0},
		"none":          {http.StatusTooManyRequests, func() string { return "" }, 0},
		"negative":      {http.StatusTooManyRequests, func() string { return "-5" }, 0},
		"no time at it": {http.StatusTooManyRequests, func() string { return "0" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWires()
				d := w.driver(Config{})
				defer d.Close()
				two := wired()
				two.Region = "Two"
				allGood(t, all(t.Context(), 1, d, wired()))
				w.set(of("heat-one", faulty(tt.status, "Retry-After", tt.header())))
				err := call(t.Context(), d, wired())
				var e *lcm.Error
				if !errors.As(err, &e) || e.Kind != lcm.KindRetryable || e.Again != tt.want {
					t.Fatalf("%v, again after %s", err, e.Again)
				}
				w.set(nil)
				before := w.called("heat-one")
				if tt.want > 0 {
					time.Sleep(tt.want - time.Second)
					if err := call(t.Context(), d, wired()); !errors.As(err, &e) || e.Again != time.Second || !strings.Contains(e.Detail, "Retry-After") {
						t.Errorf("%v, again after %s", err, e.Again)
					}
					if w.called("heat-one") != before {
						t.Error("it was called")
					}
					allGood(t, all(t.Context(), 1, d, two))
					time.Sleep(time.Second)
				}
				allGood(t, all(t.Context(), 1, d, wired()))
			})
		})
	}
}

// TestCertificates has a Keystone whose certificate is of a CA of its own.
func TestCertificates(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	srv.Config.ErrorLog = log.New(t.Output(), "", 0)
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	defer srv.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	for name, tt := range map[string]struct {
		auth map[string]any
		want string
	}{
		"not trusted":            {map[string]any{}, "VIM VIM0: cannot log in: "},
		"trusted":                {map[string]any{"ssl_ca_cert": ca}, "Keystone refuses"},
		"not to be looked at":    {map[string]any{"cert_verify": "False"}, "Keystone refuses"},
		"to be looked at":        {map[string]any{"cert_verify": "True"}, "certificate signed by unknown authority"},
		"a CA that is none":      {map[string]any{"ssl_ca_cert": "abc"}, "VIM VIM0: ssl_ca_cert holds no certificate"},
		"a client without a key": {map[string]any{"client_cert": ca}, "VIM VIM0: client_cert and client_key are not"},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(Config{}, slog.New(slog.DiscardHandler))
			defer d.Close()
			v := wired()
			v.AuthURL = srv.URL
			v.Auth = tt.auth
			v.Auth["username"], v.Auth["password"] = "u", "p"
			err := call(t.Context(), d, v)
			if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", lcm.KindOf(err), err)
			}
		})
	}
}
