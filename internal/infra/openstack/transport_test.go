package openstack

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

type observed struct {
	mu    sync.Mutex
	calls []string
}

func (o *observed) Call(vimID, _, method string, status int, _, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, vimID+" "+method+" "+http.StatusText(status))
}

func (*observed) Refused(string, string)                 {}
func (*observed) Circuit(string, string, string, string) {}
func (*observed) Login(string, string)                   {}

// client is a client of a VIM's service.
func client(t *testing.T, d *Driver, target *lcm.VimTarget) *http.Client {
	t.Helper()
	a, err := d.newAccount(target)
	if err != nil {
		t.Fatal(err)
	}
	c := clientOf(a.guard("", "test"))
	return &c
}

func get(t *testing.T, c *http.Client, ctx context.Context, url string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func TestThrottle(t *testing.T) {
	var now, most atomic.Int32
	release := make(chan struct{})
	url := serve(t, &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		<-release
		now.Add(-1)
		w.WriteHeader(http.StatusTeapot)
	})})
	seen := &observed{}
	d := New(Config{MaxConcurrent: 2, RequestsPerSecond: 1e6, Burst: 1e6, Observer: seen}, slog.New(slog.DiscardHandler))
	target := &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: url}}
	var wg sync.WaitGroup
	for range 3 { // three clients of one VIM share its limits
		c := client(t, d, target)
		defer c.CloseIdleConnections()
		for range 3 {
			wg.Go(func() {
				if err := get(t, c, t.Context(), url); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for now.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := client(t, d, target)
	cancel()
	if err := get(t, c, ctx, url); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled call waits for its turn: %v", err)
	}
	close(release)
	wg.Wait()
	if most.Load() != 2 {
		t.Errorf("%d calls at a time", most.Load())
	}
	if len(seen.calls) != 9 || seen.calls[0] != "vim GET I'm a teapot" {
		t.Errorf("observed %q", seen.calls)
	}
}

func TestRedirects(t *testing.T) {
	other := serve(t, &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the token went to another host")
	})})
	here := serve(t, &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other, http.StatusFound)
		case "/around":
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	})})
	d := New(Config{}, slog.New(slog.DiscardHandler))
	c := client(t, d, &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: here}})
	defer c.CloseIdleConnections()
	if err := get(t, c, t.Context(), here+"/around"); err != nil {
		t.Error(err)
	}
	if err := get(t, c, t.Context(), here+"/away"); !errors.Is(err, errRedirect) {
		t.Errorf("%v", err)
	}
}

func TestTLS(t *testing.T) {
	for name, tt := range map[string]struct {
		auth     map[string]any
		insecure bool
		fails    bool
	}{
		"default":      {map[string]any{}, false, false},
		"asked for":    {map[string]any{"cert_verify": "True"}, false, false},
		"not wanted":   {map[string]any{"cert_verify": "False"}, true, false},
		"as a boolean": {map[string]any{"cert_verify": false}, true, false},
		"none":         {map[string]any{"ssl_ca_cert": "None"}, false, false},
		"no CA":        {map[string]any{"ssl_ca_cert": "nonsense"}, false, true},
	} {
		c, err := tlsOf(&lcm.VimTarget{VIM: lcm.VIM{ID: "vim", Auth: tt.auth}})
		if (err != nil) != tt.fails || err == nil && c.InsecureSkipVerify != tt.insecure {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCredentials(t *testing.T) {
	o := credentials(&lcm.VimTarget{VIM: lcm.VIM{
		Auth:    map[string]any{"username": "u", "password": "p", "user_domain_name": "UD"},
		Project: map[string]any{"name": "proj", "project_domain_name": "PD"},
	}})
	if o.Username != "u" || o.DomainName != "UD" || o.Scope.ProjectName != "proj" || o.Scope.DomainName != "PD" {
		t.Errorf("%+v %+v", o, o.Scope)
	}
	o = credentials(&lcm.VimTarget{VIM: lcm.VIM{Auth: map[string]any{"user_id": "id", "username": "u", "project_id": "pid"}}})
	if o.UserID != "id" || o.Username != "" || o.DomainName != "" || o.Scope.ProjectID != "pid" || o.Scope.DomainName != "" {
		t.Errorf("%+v %+v", o, o.Scope)
	}
}

func TestLimitsOfTheVIM(t *testing.T) {
	d := New(Config{MaxConcurrent: 32, RequestsPerSecond: 50}, slog.New(slog.DiscardHandler))
	v := &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", Name: "VIM0", Version: 1}}
	for _, tt := range []struct {
		version int64
		extra   map[string]any
		slots   int
		rate    float64
		burst   int
	}{
		{1, nil, 32, 50, 100},
		{2, map[string]any{"max_concurrent_requests": 2.0}, 2, 50, 100},
		{3, map[string]any{"max_concurrent_requests": "None", "requests_per_second": 1.0}, 32, 1, 1},
		{2, nil, 32, 1, 1}, // as somebody still knows it who has read it before
		{4, map[string]any{"requests_per_second": "2.5"}, 32, 2.5, 3},
	} {
		v.Version, v.Extra = tt.version, tt.extra
		got, err := d.throttleOf(v)
		if err != nil || cap(got.slots) != tt.slots || float64(got.bucket.Limit()) != tt.rate || got.bucket.Burst() != tt.burst {
			t.Errorf("%d: %+v %v", tt.version, got, err)
		}
		if again, err := d.throttleOf(v); err != nil || again != got {
			t.Errorf("%d: another one: %v", tt.version, err)
		}
	}
	v.Version, v.Extra = 5, map[string]any{"max_concurrent_requests": -1.0}
	if _, err := d.connect(t.Context(), v); !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "VIM VIM0: Invalid input for extra.") {
		t.Errorf("%v", err)
	}
}
