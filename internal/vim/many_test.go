package vim_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
	"github.com/seed-f1a0ccf1/vnfm/internal/vim"
)

func TestLimitsOfAVIM(t *testing.T) {
	ctx := context.Background()
	s, _, c := newService(t, vim.Config{})
	bad := openstack("VIM0", false)
	bad.Extra = map[string]any{"max_concurrent_requests": 0.0}
	_, err := s.Register(ctx, user, bad)
	refused(t, err, lcm.KindInvalid, "Invalid input for extra. Reason: max_concurrent_requests must be a whole number from 1 to 10000, not 0.")
	if c.probes != 0 {
		t.Error("it was logged in to")
	}
	good := openstack("VIM0", false)
	good.Extra = map[string]any{"max_concurrent_requests": 4.0, "requests_per_second": "2.5", "area": "x"}
	v := register(t, s, user, good)
	_, err = s.Update(ctx, user, v.ID, lcm.VIMChange{Extra: map[string]any{"requests_per_second": "fast"}})
	refused(t, err, lcm.KindInvalid, `Invalid input for extra. Reason: requests_per_second must be a number from 1 to 1000000, not "fast".`)

	// What a request brings along is not for it to say.
	target, err := s.Resolve(ctx, user, []sol003.VimConnectionInfo{{Id: "c", VimId: v.ID, Extra: map[string]any{
		"max_concurrent_requests": 1000, "requests_per_second": 1000, "area": "y",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := target.Limits()
	if err != nil || limits != (lcm.VimLimits{MaxConcurrent: 4, RequestsPerSecond: 2.5}) || target.Extra["area"] != "y" {
		t.Errorf("%+v %v %v", limits, target.Extra, err)
	}
}

// counted is a Prober that counts, by the VIM's name, and knows one password.
type counted struct {
	mu       sync.Mutex
	password string
	probes   map[string]int
}

func (c *counted) Probe(_ context.Context, v lcm.VIM) (vim.ProbeResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probes[v.Name]++
	if v.Auth["password"] != c.password {
		return vim.ProbeResult{}, lcm.Errorf(lcm.KindInvalid, "wrong password")
	}
	return vim.ProbeResult{Regions: []string{"RegionOne"}}, nil
}

func (c *counted) seen() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.probes)
}

// TestMonitorSparesAccounts has a VIM refuse what it is registered with: it is probed ever more seldom, and again at once
// when it has been changed.
func TestMonitorSparesAccounts(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	c := &counted{password: "geheim", probes: map[string]int{}}
	s := vim.New(vim.Config{MonitorInterval: time.Millisecond, MonitorParallel: 1, Now: clock}, storetest.Open(t),
		map[string]vim.Prober{lcm.VimOpenStack: c}, storetest.Log())
	good := register(t, s, user, openstack("good", false))
	bad := register(t, s, user, openstack("bad", false))
	c.mu.Lock()
	c.password = "changed"
	c.mu.Unlock()
	if _, err := s.Update(ctx, user, good.ID, lcm.VIMChange{Auth: map[string]any{"password": "changed"}}); err != nil {
		t.Fatal(err)
	}
	first := c.seen()
	done := make(chan struct{})
	go func() { defer close(done); s.Monitor(ctx) }()
	// rounds waits until the monitor has come by some more times.
	rounds := func(n int) {
		t.Helper()
		for from := c.seen()["good"]; c.seen()["good"] < from+n; {
			if ctx.Err() != nil {
				t.Fatal("the monitor does not come by")
			}
			time.Sleep(time.Millisecond)
		}
	}
	asked := func(want int) {
		t.Helper()
		if n := c.seen()["bad"] - first["bad"]; n != want {
			t.Errorf("asked %d times, want %d", n, want)
		}
	}
	rounds(10)
	asked(1)
	for n, after := range []time.Duration{4 * time.Millisecond, 16 * time.Millisecond, 64 * time.Millisecond} {
		mu.Lock()
		now = now.Add(after)
		mu.Unlock()
		rounds(10)
		asked(n + 2)
	}
	if v, err := s.Get(ctx, user, bad.ID); err != nil || v.Status != lcm.VimUnreachable {
		t.Errorf("%+v %v", v, err)
	}
	if _, err := s.Update(ctx, user, bad.ID, lcm.VIMChange{Auth: map[string]any{"password": "changed"}}); err != nil {
		t.Fatal(err)
	}
	rounds(10)
	if v, err := s.Get(ctx, user, bad.ID); err != nil || v.Status != lcm.VimReachable {
		t.Errorf("%+v %v", v, err)
	}
	cancel()
	<-done
}

func TestApplicationCredentialProbe(t *testing.T) {
	var got map[string]any
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		got = nil
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Subject-Token", "tok")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"token":{"expires_at":"2040-01-01T00:00:00.000000Z","project":{"id":"kp"},"catalog":[]}}`))
	}))
	defer srv.Close()
	for name, tt := range map[string]struct {
		auth map[string]any
		says string
	}{
		"by id":     {auth: map[string]any{"application_credential_id": "i", "application_credential_secret": "s"}},
		"by name":   {auth: map[string]any{"application_credential_name": "n", "application_credential_secret": "s", "username": "u", "user_domain_name": "D"}},
		"by itself": {map[string]any{"application_credential_secret": "s"}, "needs application_credential_id or application_credential_name with"},
		"nobody's":  {map[string]any{"application_credential_name": "n", "application_credential_secret": "s"}, "needs username"},
	} {
		t.Run(name, func(t *testing.T) {
			v := openstack("V", false)
			v.AuthURL, v.Auth = srv.URL+"/v3", tt.auth
			found, err := vim.OpenStack{}.Probe(t.Context(), v)
			if tt.says != "" {
				check(t, err, lcm.KindInvalid, tt.says)
				return
			}
			auth, _ := got["auth"].(map[string]any)
			if err != nil || found.ProjectID != "kp" || auth["scope"] != nil {
				t.Errorf("%+v %v; sent %v", found, err, got)
			}
		})
	}
}
