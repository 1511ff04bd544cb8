package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// wires is a cloud of two regions as a transport: no network, so that time may be the test's.
type wires struct {
	mu       sync.Mutex
	password string
	life     time.Duration // of tokens
	skew     time.Duration // of Keystone's clock
	valid    map[string]bool
	logins   int
	refusals int // of tokens
	calls    map[string]int
	// answer, when set, answers a call before the cloud does; nil and nil go on.
	answer func(req *http.Request) (*http.Response, error)
}

func newWires() *wires {
	return &wires{password: "secret", life: time.Hour, valid: map[string]bool{}, calls: map[string]int{}}
}

func answered(req *http.Request, status int, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for n := 0; n+1 < len(header); n += 2 {
		h.Set(header[n], header[n+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: req}
}

// RoundTrip implements http.RoundTripper.
func (w *wires) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.calls[req.URL.Host]++
	answer := w.answer
	w.mu.Unlock()
	if answer != nil {
		if resp, err := answer(req); resp != nil || err != nil {
			return resp, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if req.URL.Host == "keystone" {
		return w.issue(req)
	}
	if strings.Trim(req.URL.Path, "/") == "v1" { // what versions there are
		return answered(req, http.StatusOK, `{"versions": [{"id": "v1.0", "status": "CURRENT", "links": []}]}`), nil
	}
	if !w.valid[req.Header.Get("X-Auth-Token")] {
		w.refusals++
		return answered(req, http.StatusUnauthorized, `{"error": {"message": "Authentication required"}}`), nil
	}
	return answered(req, http.StatusOK, `{"stacks": []}`), nil
}

func (w *wires) issue(req *http.Request) (*http.Response, error) {
	var in struct {
		Auth struct {
			Identity struct {
				Password struct{ User struct{ Password string } }
				Cred     struct{ Secret string } `json:"application_credential"`
			}
		}
	}
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		return nil, err
	}
	w.logins++
	if in.Auth.Identity.Password.User.Password+in.Auth.Identity.Cred.Secret != w.password {
		return answered(req, http.StatusUnauthorized, `{"error": {"message": "The request you have made requires authentication."}}`), nil
	}
	id := fmt.Sprintf("token-%d", w.logins)
	w.valid[id] = true
	now := time.Now().Add(w.skew).UTC()
	time.AfterFunc(w.life, func() { w.revoke(id) })
	endpoints := make([]map[string]any, 0, 2)
	for _, region := range []string{"One", "Two"} {
		endpoints = append(endpoints, map[string]any{"interface": "public", "region": region, "region_id": region, "url": "http://heat-" + strings.ToLower(region) + "/v1/p"})
	}
	body, err := json.Marshal(map[string]any{"token": map[string]any{
		"issued_at": now.Format("2006-01-02T15:04:05.000000Z"), "expires_at": now.Add(w.life).Format("2006-01-02T15:04:05.000000Z"),
		"catalog": []any{
			map[string]any{"type": "orchestration", "name": "heat", "endpoints": endpoints},
			map[string]any{"type": "image", "name": "glance", "endpoints": []any{
				map[string]any{"interface": "public", "region": "One", "region_id": "One", "url": "http://glance"},
			}},
		},
	}})
	return answered(req, http.StatusCreated, string(body), "X-Subject-Token", id), err
}

func (w *wires) revoke(ids ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		delete(w.valid, id)
	}
	if len(ids) == 0 {
		clear(w.valid)
	}
}

func (w *wires) set(answer func(req *http.Request) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

func (w *wires) count() (logins, refusals int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logins, w.refusals
}

func (w *wires) called(host string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[host]
}

// of answers the calls to a host in a way.
func of(host string, answer func(req *http.Request) (*http.Response, error)) func(req *http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		if req.URL.Host != host {
			return nil, nil
		}
		return answer(req)
	}
}

func hang(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func (w *wires) driver(cfg Config) *Driver {
	cfg.Transport, cfg.RequestsPerSecond = w, 1e6
	return New(cfg, slog.New(slog.DiscardHandler))
}

func wired() *lcm.VimTarget {
	return &lcm.VimTarget{VIM: lcm.VIM{
		ID: "vim", Name: "VIM0", Type: lcm.VimOpenStack, AuthURL: "http://keystone/v3", Version: 1, Regions: []string{"One", "Two"},
		Auth: map[string]any{"username": "nfv_user", "password": "secret"}, Project: map[string]any{"name": "nfv"},
	}}
}

// call looks for a stack, as a step does.
func call(ctx context.Context, d *Driver, t *lcm.VimTarget) error {
	c, err := d.connect(ctx, t)
	if err != nil {
		return err
	}
	_, err = c.findStack(ctx, "some")
	return err
}

// all calls n times at once and returns the errors.
func all(ctx context.Context, n int, d *Driver, t *lcm.VimTarget) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = call(ctx, d, t) })
	}
	wg.Wait()
	return errs
}

func allGood(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func logins(t *testing.T, w *wires, want int) {
	t.Helper()
	if n, _ := w.count(); n != want {
		t.Fatalf("%d logins, want %d", n, want)
	}
}

func TestTokenRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		allGood(t, all(t.Context(), 100, d, wired()))
		logins(t, w, 1)
		time.Sleep(time.Minute)
		w.revoke()
		allGood(t, all(t.Context(), 100, d, wired()))
		logins(t, w, 2)
	})
}

func TestTokenIsRenewedInTime(t *testing.T) {
	for name, skew := range map[string]time.Duration{"same clock": 0, "Keystone is behind": -3 * time.Hour, "Keystone is ahead": 3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWires()
				w.skew = skew
				d := w.driver(Config{})
				defer d.Close()
				for range 3 * 60 * 4 { // three hours
					allGood(t, all(t.Context(), 3, d, wired()))
					time.Sleep(15 * time.Second)
				}
				if n, refused := w.count(); n != 4 || refused > 0 {
					t.Errorf("%d logins, %d refused tokens", n, refused)
				}
			})
		})
	}
}

func TestTokenOutlivesKeystone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		allGood(t, all(t.Context(), 1, d, wired()))
		w.set(of("keystone", hang))
		time.Sleep(59*time.Minute + 30*time.Second)
		begun := time.Now()
		allGood(t, all(t.Context(), 10, d, wired())) // it is still good
		if took := time.Since(begun); took > 0 {
			t.Errorf("waited for %s", took)
		}
		time.Sleep(30 * time.Second)
		for _, err := range all(t.Context(), 10, d, wired()) {
			if !lcm.Is(err, lcm.KindRetryable) || !strings.Contains(err.Error(), "VIM VIM0: cannot log in") {
				t.Errorf("%v", err)
			}
		}
		w.set(nil)
		time.Sleep(2 * time.Minute)
		allGood(t, all(t.Context(), 10, d, wired()))
	})
}

// TestLoginIsNobodys has the one who has begun a login go away, and nobody wait for one that hangs.
func TestLoginIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		release := make(chan struct{})
		w.set(of("keystone", func(*http.Request) (*http.Response, error) {
			<-release
			return nil, nil
		}))
		gone, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- call(gone, d, wired()) }()
		synctest.Wait()
		go func() { second <- call(t.Context(), d, wired()) }()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("who went away: %v", err)
		}
		begun := time.Now()
		for _, err := range all(t.Context(), 100, d, wired()) {
			if !lcm.Is(err, lcm.KindRetryable) {
				t.Errorf("%v", err)
			}
		}
		if err := <-second; !lcm.Is(err, lcm.KindRetryable) {
			t.Errorf("%v", err)
		}
		if held := time.Since(begun); held > loginPatience {
			t.Errorf("waited for %s", held)
		}
		close(release)
		synctest.Wait()
		allGood(t, all(t.Context(), 100, d, wired()))
		logins(t, w, 1)
	})
}

func TestRefusedLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{LoginPause: time.Minute})
		defer d.Close()
		w.password = "changed"
		for range 3 {
			for _, err := range all(t.Context(), 50, d, wired()) {
				if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "VIM VIM0: Keystone refuses the credentials of user nfv_user") {
					t.Fatalf("%v", err)
				}
			}
		}
		logins(t, w, 1)
		time.Sleep(time.Minute)
		if err := call(t.Context(), d, wired()); !lcm.Is(err, lcm.KindTerminal) {
			t.Errorf("%v", err)
		}
		logins(t, w, 2)
		changed := wired()
		changed.Auth, changed.Version = map[string]any{"username": "nfv_user", "password": "changed"}, 2
		allGood(t, all(t.Context(), 50, d, changed))
		logins(t, w, 3)
	})
}

// TestPasswordChanged has a password change, at the cloud first and then in the registration: what is under way in between
// is told to try again, once.
func TestPasswordChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		allGood(t, all(t.Context(), 1, d, wired()))
		w.revoke()
		w.mu.Lock()
		w.password = "changed"
		w.mu.Unlock()
		for _, err := range all(t.Context(), 5, d, wired()) {
			if !lcm.Is(err, lcm.KindRetryable) {
				t.Errorf("at first: %v", err)
			}
		}
		time.Sleep(inDoubt)
		if err := call(t.Context(), d, wired()); !lcm.Is(err, lcm.KindTerminal) {
			t.Errorf("then: %v", err)
		}
		logins(t, w, 2)
		changed := wired()
		changed.Auth, changed.Version = map[string]any{"username": "nfv_user", "password": "changed"}, 2
		allGood(t, all(t.Context(), 5, d, changed))
		logins(t, w, 3)
		if len(d.accounts) != 1 {
			t.Errorf("%d accounts are kept", len(d.accounts))
		}
	})
}

// TestChangedWhileLoggingIn has a VIM be changed while Keystone is slow to answer by the old registration.
func TestChangedWhileLoggingIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		w.set(of("keystone", hang))
		done := make(chan error)
		go func() { done <- call(t.Context(), d, wired()) }()
		synctest.Wait()
		w.set(nil)
		changed := wired()
		changed.Version = 2
		allGood(t, all(t.Context(), 5, d, changed))
		if err := <-done; !lcm.Is(err, lcm.KindRetryable) || !strings.Contains(err.Error(), "has just been changed") {
			t.Errorf("%v", err)
		}
	})
}

// TestRefusedForEver has a service refuse every token: that is no reason to log in again and again.
func TestRefusedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		w.set(of("heat-one", func(req *http.Request) (*http.Response, error) {
			return answered(req, http.StatusUnauthorized, `{}`), nil
		}))
		for range 60 {
			for _, err := range all(t.Context(), 20, d, wired()) {
				if !lcm.Is(err, lcm.KindRetryable) {
					t.Fatalf("%v", err)
				}
			}
			time.Sleep(time.Second)
		}
		if n, _ := w.count(); n > 1+rejectionsAtOnce+12+1 {
			t.Errorf("%d logins in a minute", n)
		}
	})
}

// TestTokenOfTheAttempt has a token be refused between the end of the login and its use: who has waited gets what the login has
// brought, and rejecting nothing costs nothing.
func TestTokenOfTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		a, err := d.accountOf(wired())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				id, err := a.token(t.Context())
				if err != nil || id == "" {
					t.Errorf("token %q, %v", id, err)
				}
				a.reject(id)
			})
		}
		wg.Wait()
		a.mu.Lock()
		a.id = ""
		a.mu.Unlock()
		time.Sleep(time.Hour)
		for range 2 * rejectionsAtOnce {
			if !a.reject("") {
				t.Fatal("nothing is refused")
			}
		}
		if a.rejections.Tokens() < rejectionsAtOnce {
			t.Errorf("%g rejections are left", a.rejections.Tokens())
		}
	})
}

// TestChangedVIM has a VIM be registered anew while its service does not answer: what is known of the old one's services is not
// held against the new one, and who has read the old registration does not bring it back.
func TestChangedVIM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen := newWires(), &states{}
		d := w.driver(Config{Observer: seen, BreakerFailures: 1, BreakerOpenFor: time.Hour})
		defer d.Close()
		allGood(t, all(t.Context(), 1, d, wired()))
		w.set(of("heat-one", faulty(http.StatusServiceUnavailable, "Retry-After", "300")))
		_ = call(t.Context(), d, wired())
		w.set(of("keystone", faulty(http.StatusInternalServerError)))
		w.revoke()
		two := wired()
		two.Region = "Two"
		_ = call(t.Context(), d, two)
		w.set(nil)
		opened(t, call(t.Context(), d, two), "HTTP status 500")
		changed := wired()
		changed.Version = 2
		allGood(t, all(t.Context(), 3, d, changed))
		seen.mu.Lock()
		if last := seen.seen[len(seen.seen)-1]; last != "vim  identity closed" {
			t.Errorf("%q", seen.seen)
		}
		seen.mu.Unlock()
		before, _ := w.count()
		for _, err := range all(t.Context(), 3, d, wired()) {
			if !lcm.Is(err, lcm.KindRetryable) || err.Error() != "VIM VIM0: its registration has just been changed" {
				t.Errorf("%v", err)
			}
		}
		logins(t, w, before)
		if len(d.accounts) != 1 {
			t.Errorf("%d accounts are kept", len(d.accounts))
		}
	})
}

// forgetful notes what it is to forget.
type forgetful struct {
	observed
	forgotten []string
}

func (f *forgetful) Forget(vim string) { f.forgotten = append(f.forgotten, vim) }

// TestUnusedVIM has one VIM not be used for long, beside one that is.
func TestUnusedVIM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen := newWires(), &forgetful{}
		d := w.driver(Config{Observer: seen})
		defer d.Close()
		other := wired()
		other.ID = "other"
		allGood(t, all(t.Context(), 1, d, other))
		for range 70 {
			allGood(t, all(t.Context(), 1, d, wired()))
			time.Sleep(time.Minute)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.accounts) != 1 || len(d.throats) != 1 || len(d.newest) != 1 || len(d.circuits) != 2 {
			t.Errorf("%v %v %v %v", d.accounts, d.throats, d.newest, d.circuits)
		}
		if !slices.Equal(seen.forgotten, []string{"other"}) {
			t.Errorf("forgotten: %q", seen.forgotten)
		}
	})
}

func TestApplicationCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		v := wired()
		v.Auth = map[string]any{"application_credential_id": "abc", "application_credential_secret": "secret"}
		allGood(t, all(t.Context(), 1, d, v))
		v.Version, v.Auth = 2, map[string]any{"application_credential_name": "abc", "username": "u", "application_credential_secret": "wrong"}
		err := call(t.Context(), d, v)
		if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "application credential abc") {
			t.Errorf("%v", err)
		}
	})
}

// TestRegions has two regions of one VIM: one login, each its own services.
func TestRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		d := w.driver(Config{})
		defer d.Close()
		two := wired()
		two.Region = "Two"
		allGood(t, all(t.Context(), 3, d, wired()))
		first := w.called("heat-one")
		allGood(t, all(t.Context(), 3, d, two))
		if w.called("heat-one") != first || w.called("heat-two") == 0 {
			t.Errorf("calls: %v", w.calls)
		}
		logins(t, w, 1)
		nowhere := wired()
		nowhere.Region = "Three"
		if err := call(t.Context(), d, nowhere); !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), `region "Three"`) {
			t.Errorf("%v", err)
		}
	})
}

func TestSettled(t *testing.T) {
	i := newInstance()
	v := wired()
	if got, err := settled(i, v); err != nil || got != v {
		t.Errorf("a new instance: %v %v", got, err)
	}
	if err := saveInfra(i, &infra{StackID: "s", Region: "One"}); err != nil {
		t.Fatal(err)
	}
	v.Regions = []string{"Another", "One", "Two"} // one has come before the one that was first
	if got, err := settled(i, v); err != nil || got.Region != "One" || v.Region != "" {
		t.Errorf("%+v %v", got, err)
	}
	v.Region = "Two"
	if got, err := settled(i, v); err != nil || got.Region != "Two" {
		t.Errorf("%+v %v", got, err)
	}
}
