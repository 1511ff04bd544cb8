package openstack

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
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
	url := serve(t, &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		<-release
		now.Add(-1)
		w.WriteHeader(http.StatusTeapot)
	})})
	seen := &observed{}
	d := New(Config{MaxConcurrent: 2, RequestsPerSecond: 1e6, Burst: 1e6, Observer: seen}, slog.New(slog.DiscardHandler))
	target := &lcm.VimTarget{VIM: lcm.VIM{ID: "vim"}}
	var wg sync.WaitGroup
	for range 3 { // three clients of one VIM share its limits
		c, err := d.httpClient(target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdleConnections()
		for range 3 {
			wg.Go(func() {
				if err := get(t, &c, t.Context(), url); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for now.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, err := d.httpClient(target)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := get(t, &c, ctx, url); !errors.Is(err, context.Canceled) {
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
	other := serve(t, &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the token went to another host")
	})})
	here := serve(t, &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other, http.StatusFound)
		case "/around":
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	})})
	d := New(Config{}, slog.New(slog.DiscardHandler))
	c, err := d.httpClient(&lcm.VimTarget{VIM: lcm.VIM{ID: "vim"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if err := get(t, &c, t.Context(), here+"/around"); err != nil {
		t.Error(err)
	}
	if err := get(t, &c, t.Context(), here+"/away"); !errors.Is(err, errRedirect) {
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
	if o.Username != "u" || o.DomainName != "UD" || o.Scope.ProjectName != "proj" || o.Scope.DomainName != "PD" || !o.AllowReauth {
		t.Errorf("%+v %+v", o, o.Scope)
	}
	o = credentials(&lcm.VimTarget{VIM: lcm.VIM{Auth: map[string]any{"user_id": "id", "username": "u", "project_id": "pid"}}})
	if o.UserID != "id" || o.Username != "" || o.DomainName != "" || o.Scope.ProjectID != "pid" || o.Scope.DomainName != "" {
		t.Errorf("%+v %+v", o, o.Scope)
	}
}
