package kubernetes

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// door is an API server that lets in who carries what it wants, and writes down who came.
type door struct {
	mu     sync.Mutex
	wanted string
	came   []string
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.came = append(d.came, r.Header.Get("Authorization"))
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != d.wanted {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
		return
	}
	_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["get","create"]}]}`)
}

func newDriver(t *testing.T, cfg Config) *Driver {
	t.Helper()
	d := New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(d.Close)
	return d
}

func certificateOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func look(t *testing.T, d *Driver, target *lcm.VimTarget) error {
	t.Helper()
	c, err := d.connect(target)
	if err != nil {
		return err
	}
	_, err = c.kindOf(t.Context(), pods.gvk())
	return err
}

func TestLogins(t *testing.T) {
	api := &door{}
	server := httptest.NewUnstartedServer(api)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are refused, as they are to be
	server.StartTLS()
	defer server.Close()
	for _, tt := range []struct {
		name   string
		auth   map[string]any
		wanted string
		kind   lcm.Kind // "" when it is let in
		err    string
	}{
		{name: "bearer token", auth: map[string]any{"bearer_token": "t0ken"}, wanted: "Bearer t0ken"},
		{name: "name and password", auth: map[string]any{"username": "u", "password": "p"}, wanted: "Basic dTpw"},
		{name: "refused, but only just", auth: map[string]any{"bearer_token": "old"}, wanted: "Bearer new", kind: lcm.KindRetryable, err: "the credentials are refused"},
		{name: "nothing", auth: map[string]any{}, kind: lcm.KindTerminal, err: "has no credentials"},
		{name: "half a certificate", auth: map[string]any{"client_cert": "x"}, kind: lcm.KindTerminal, err: "client_cert and client_key"},
		{name: "a CA that is none", auth: map[string]any{"bearer_token": "t0ken", "ssl_ca_cert": "x"}, kind: lcm.KindTerminal, err: "ssl_ca_cert"},
		{name: "a server that nobody vouches for", auth: map[string]any{"bearer_token": "t0ken", "ssl_ca_cert": nil}, wanted: "Bearer t0ken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api.wanted = tt.wanted
			if _, ok := tt.auth["ssl_ca_cert"]; !ok {
				tt.auth["ssl_ca_cert"] = certificateOf(server)
			}
			err := look(t, newDriver(t, Config{}), &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: tt.auth}})
			if tt.kind == "" && err != nil || tt.kind != "" && (!lcm.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%v, want %s %q", err, tt.kind, tt.err)
			}
		})
	}
	t.Run("an unknown authority", func(t *testing.T) {
		err := look(t, newDriver(t, Config{}), &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{"bearer_token": "t0ken"}}})
		if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%v", err)
		}
	})
	t.Run("refused for long", func(t *testing.T) {
		api.wanted = "nobody"
		d := newDriver(t, Config{LoginGrace: time.Nanosecond})
		target := &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{"bearer_token": "t", "ssl_ca_cert": certificateOf(server)}}}
		_ = look(t, d, target)
		if err := look(t, d, target); !lcm.Is(err, lcm.KindTerminal) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a token that is replaced", func(t *testing.T) {
		api.wanted = "Bearer new"
		d := newDriver(t, Config{})
		target := &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", Version: 1, AuthURL: server.URL, Auth: map[string]any{"bearer_token": "old", "ssl_ca_cert": certificateOf(server)}}}
		if err := look(t, d, target); !lcm.Is(err, lcm.KindRetryable) {
			t.Fatalf("the old token: %v", err)
		}
		target.Version, target.Auth["bearer_token"] = 2, "new"
		if err := look(t, d, target); err != nil {
			t.Errorf("the new token: %v", err)
		}
	})
}

// TestOpenIDConnect: tokens come from the issuer, by password or by the client's own credentials, are kept while they are good,
// and are got anew when they are refused.
func TestOpenIDConnect(t *testing.T) {
	var mu sync.Mutex
	var forms []string
	status, life, count := http.StatusOK, 3600, 0
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = r.ParseForm()
		forms = append(forms, fmt.Sprintf("%s %s %s", r.Form.Get("grant_type"), r.Form.Get("client_id"), r.Form.Get("username")))
		count++
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"id_token": fmt.Sprintf("id-%d", count), "expires_in": life})
	}))
	defer issuer.Close()
	api := &door{}
	server := httptest.NewServer(api)
	defer server.Close()
	target := func(auth map[string]any) *lcm.VimTarget {
		auth["oidc_token_url"] = issuer.URL
		return &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: auth}}
	}
	d := newDriver(t, Config{})
	vim := target(map[string]any{"username": "u", "password": "p", "client_id": "c", "client_secret": "s"})
	api.wanted = "Bearer id-2" // the first is not good any more when it comes
	if err := look(t, d, vim); err != nil {
		t.Fatal(err)
	}
	if err := look(t, d, vim); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"password c u", "password c u"}, forms); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Bearer id-1", "Bearer id-2"}, api.came); diff != "" {
		t.Error(diff)
	}

	forms, count, api.wanted = nil, 0, "Bearer id-1"
	if err := look(t, newDriver(t, Config{}), target(map[string]any{"client_id": "c", "client_secret": "s"})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"client_credentials c "}, forms); diff != "" {
		t.Error(diff)
	}

	for code, kind := range map[int]lcm.Kind{http.StatusUnauthorized: lcm.KindTerminal, http.StatusBadGateway: lcm.KindRetryable} {
		status = code
		if err := look(t, newDriver(t, Config{}), target(map[string]any{"client_id": "c"})); !lcm.Is(err, kind) {
			t.Errorf("an issuer that answers %d: %v", code, err)
		}
	}

	// An issuer that has refused is left alone for a while.
	status, count = http.StatusUnauthorized, 0
	d = newDriver(t, Config{})
	vim = target(map[string]any{"client_id": "c"})
	for range 3 {
		if err := look(t, d, vim); !lcm.Is(err, lcm.KindTerminal) {
			t.Errorf("refused: %v", err)
		}
	}
	if count != 1 {
		t.Errorf("an issuer that refuses was asked %d times", count)
	}

	// A token that has come to its end is got anew before anybody refuses it.
	status, life = http.StatusOK, 1
	i := &issuerOf{t: t, vim: target(map[string]any{"client_id": "c"})}
	first, second := i.token(0), i.token(2*time.Second)
	if first == second {
		t.Error("a token that has ended is used again")
	}
}

// TestIssuerIsChecked: that a VIM need not be checked, and what the VIM knows us by, is nothing to the issuer.
func TestIssuerIsChecked(t *testing.T) {
	issuer := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			t.Error("the issuer is shown the VIM's certificate")
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "t"})
	}))
	issuer.Config.ErrorLog = log.New(io.Discard, "", 0)
	issuer.StartTLS()
	defer issuer.Close()
	server := httptest.NewServer(&door{wanted: "Bearer t"})
	defer server.Close()
	for ca, kind := range map[any]lcm.Kind{"None": lcm.KindTerminal, certificateOf(issuer): ""} {
		err := look(t, newDriver(t, Config{}), &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", AuthURL: server.URL, Auth: map[string]any{
			"oidc_token_url": issuer.URL, "client_id": "c", "ssl_ca_cert": ca,
		}}})
		if kind == "" && err != nil || kind != "" && !lcm.Is(err, kind) {
			t.Errorf("with ssl_ca_cert %.20v: %v", ca, err)
		}
	}
}

// issuerOf gets tokens as the driver does, when time has passed.
type issuerOf struct {
	t   *testing.T
	vim *lcm.VimTarget
	is  *issuer
}

func (i *issuerOf) token(later time.Duration) string {
	i.t.Helper()
	if i.is == nil {
		i.is = &issuer{vim: i.vim, http: http.DefaultClient}
	}
	i.is.until = i.is.until.Add(-later)
	token, err := i.is.token(context.Background())
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}
