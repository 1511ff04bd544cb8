package vim_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vim"
)

// keystone is a Keystone v3 with one user and one project; listing is what /regions answers.
func keystone(t *testing.T, listing int) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /identity/v3/auth/tokens", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Auth struct {
				Identity struct {
					Password struct {
						User struct {
							Name, Password string
							Domain         struct{ Name string }
						}
					}
				}
				Scope struct {
					Project struct {
						Name   string
						Domain struct{ Name string }
					}
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		u, p := req.Auth.Identity.Password.User, req.Auth.Scope.Project
		w.Header().Set("Content-Type", "application/json")
		if u.Name != "nfv_user" || u.Password != "geheim" || u.Domain.Name != "Default" || p.Name != "nfv" || p.Domain.Name != "Default" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":{"code":401,"title":"Unauthorized","message":"no"}}`))
			return
		}
		w.Header().Set("X-Subject-Token", "tok")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"token":{"expires_at":"2040-01-01T00:00:00.000000Z","project":{"id":"kp","name":"nfv","domain":{"id":"default","name":"Default"}},
			"catalog":[{"type":"compute","name":"nova","endpoints":[{"region":"RegionB","region_id":"RegionB","interface":"public","url":"http://n"},{"region":"RegionA","interface":"public","url":"http://n"},{"region":"RegionB","region_id":"RegionB","interface":"internal","url":"http://n"}]}]}}`))
	})
	mux.HandleFunc("GET /identity/v3/regions", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Auth-Token") != "tok" {
			t.Error("regions are asked for without the token")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(listing)
		if listing == http.StatusOK {
			_, _ = w.Write([]byte(`{"regions":[{"id":"Zwei"},{"id":"Eins"}],"links":{}}`))
		}
	})
	return mux
}

func TestOpenStackProbe(t *testing.T) {
	plain := httptest.NewServer(keystone(t, http.StatusOK))
	defer plain.Close()
	closed := httptest.NewServer(keystone(t, http.StatusForbidden))
	defer closed.Close()
	encrypted := httptest.NewTLSServer(keystone(t, http.StatusOK))
	defer encrypted.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer broken.Close()
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.Path, http.StatusPermanentRedirect)
	}))
	defer moved.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encrypted.Certificate().Raw}))
	for _, c := range []struct {
		name, url string
		auth      map[string]any
		regions   []string
		kind      lcm.Kind
		says      string
	}{
		{name: "regions", url: plain.URL, regions: []string{"Eins", "Zwei"}},
		{name: "catalogue", url: closed.URL, regions: []string{"RegionA", "RegionB"}},
		{name: "wrong password", url: plain.URL, auth: map[string]any{"password": "falsch"}, kind: lcm.KindInvalid, says: "Authentication to VIM 'V' at " + plain.URL + "/identity/v3 failed: Keystone answered Unauthorized"},
		{name: "no password", url: plain.URL, auth: map[string]any{"password": "None"}, kind: lcm.KindInvalid, says: "needs username and password"},
		{name: "verified", url: encrypted.URL, kind: lcm.KindUnavailable, says: "certificate"},
		{name: "not verified", url: encrypted.URL, auth: map[string]any{"cert_verify": "False"}, regions: []string{"Eins", "Zwei"}},
		{name: "own authority", url: encrypted.URL, auth: map[string]any{"ssl_ca_cert": ca}, regions: []string{"Eins", "Zwei"}},
		{name: "bad authority", url: encrypted.URL, auth: map[string]any{"ssl_ca_cert": "x"}, kind: lcm.KindInvalid, says: "ssl_ca_cert"},
		{name: "broken", url: broken.URL, kind: lcm.KindUnavailable, says: "Bad Gateway"},
		{name: "redirect", url: moved.URL, kind: lcm.KindUnavailable, says: "redirect"},
		{name: "gone", url: gone.URL, kind: lcm.KindUnavailable, says: "Connection to VIM 'V' at " + gone.URL},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := openstack("V", false)
			v.AuthURL = c.url + "/identity/v3"
			v.Auth["cert_verify"] = "True"
			for k, a := range c.auth {
				v.Auth[k] = a
			}
			got, err := vim.OpenStack{}.Probe(context.Background(), v)
			check(t, err, c.kind, c.says)
			if err == nil && (cmp.Diff(c.regions, got.Regions) != "" || got.ProjectID != "kp") {
				t.Errorf("%+v", got)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	v := openstack("V", false)
	v.AuthURL = plain.URL + "/identity/v3"
	if _, err := (vim.OpenStack{}).Probe(ctx, v); err == nil {
		t.Error("a canceled probe succeeded")
	}
}

func check(t *testing.T, err error, kind lcm.Kind, says string) {
	t.Helper()
	if kind == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if !lcm.Is(err, kind) || !strings.Contains(fmt.Sprint(err), says) {
		t.Errorf("%q error %v, want %q with %q", lcm.KindOf(err), err, kind, says)
	}
	if strings.Contains(fmt.Sprint(err), "geheim") || strings.Contains(fmt.Sprint(err), "falsch") {
		t.Errorf("%v tells a secret", err)
	}
}

// apiServer is a Kubernetes API server that takes a token, a password, or a client's certificate.
func apiServer(t *testing.T) *httptest.Server {
	known := func(r *http.Request) (user string) {
		switch u, p, _ := r.BasicAuth(); {
		case r.Header.Get("Authorization") == "Bearer t0ken", r.Header.Get("Authorization") == "Bearer idt0ken", u == "u" && p == "geheim":
			return "admin"
		case r.Header.Get("Authorization") == "Bearer small":
			return "small"
		case len(r.TLS.PeerCertificates) > 0:
			return r.TLS.PeerCertificates[0].SerialNumber.String()
		}
		return ""
	}
	mux := http.NewServeMux()
	answer := func(path string, f func(w http.ResponseWriter, r *http.Request, user string)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			user := known(r)
			if user == "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			f(w, r, user)
		})
	}
	answer("GET /api/", func(w http.ResponseWriter, _ *http.Request, _ string) {
		_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
	})
	answer("GET /api/v1/namespaces", func(w http.ResponseWriter, r *http.Request, user string) {
		switch {
		case user == "small":
			w.WriteHeader(http.StatusForbidden)
		case r.FormValue("continue") == "":
			_, _ = w.Write([]byte(`{"metadata":{"continue":"more+1"},"items":[{"metadata":{"name":"default"}}]}`))
		case r.FormValue("continue") == "more+1":
			_, _ = w.Write([]byte(`{"metadata":{},"items":[{"metadata":{"name":"kube-system"}}]}`))
		default:
			w.WriteHeader(http.StatusGone)
		}
	})
	mux.HandleFunc("POST /oidc/token", func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			t.Error("the issuer is shown the VIM's certificate")
		}
		if r.FormValue("grant_type") == "client_credentials" && r.FormValue("client_id") == "c" && r.FormValue("client_secret") == "cs" {
			_, _ = w.Write([]byte(`{"access_token":"idt0ken"}`))
			return
		}
		if r.FormValue("grant_type") != "password" || r.FormValue("username") != "u" || r.FormValue("password") != "geheim" || r.FormValue("client_id") != "c" || r.FormValue("client_secret") != "cs" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"id_token":"idt0ken"}`))
	})
	srv := httptest.NewUnstartedServer(mux)
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func TestKubernetesProbe(t *testing.T) {
	srv := apiServer(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer web.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	cert, key := clientCert(t)
	all := []string{"default", "kube-system"}
	for _, c := range []struct {
		name, url string
		auth      map[string]any
		regions   []string
		kind      lcm.Kind
		says      string
	}{
		{name: "token", auth: map[string]any{"bearer_token": "t0ken", "ssl_ca_cert": "None", "username": "None", "password": "None"}, regions: all},
		{name: "token, verified", auth: map[string]any{"bearer_token": "t0ken", "ssl_ca_cert": ca}, regions: all},
		{name: "authority on one line", auth: map[string]any{"bearer_token": "t0ken", "ssl_ca_cert": strings.ReplaceAll(ca, "\n", " ")}, regions: all},
		{name: "system's authorities", auth: map[string]any{"bearer_token": "t0ken"}, kind: lcm.KindUnavailable, says: "certificate"},
		{name: "explicitly not verified", auth: map[string]any{"bearer_token": "t0ken", "cert_verify": "False"}, regions: all},
		{name: "explicitly verified, without authorities", auth: map[string]any{"bearer_token": "t0ken", "cert_verify": "True", "ssl_ca_cert": "None"}, kind: lcm.KindUnavailable, says: "certificate"},
		{name: "nulls", auth: map[string]any{"bearer_token": nil, "username": nil, "password": nil, "client_cert": cert, "client_key": key, "ssl_ca_cert": ca}, regions: all},
		{name: "password", auth: map[string]any{"username": "u", "password": "geheim", "bearer_token": "None", "ssl_ca_cert": "None"}, regions: all},
		{name: "certificate", auth: map[string]any{"client_cert": cert, "client_key": key, "ssl_ca_cert": ca}, regions: all},
		{name: "half a certificate", auth: map[string]any{"client_cert": cert, "ssl_ca_cert": ca}, kind: lcm.KindInvalid, says: "client_cert and client_key"},
		{name: "OpenID Connect", auth: map[string]any{"username": "u", "password": "geheim", "oidc_token_url": srv.URL + "/oidc/token", "client_id": "c", "client_secret": "cs", "ssl_ca_cert": ca}, regions: all},
		{name: "OpenID Connect, of the client", auth: map[string]any{"oidc_token_url": srv.URL + "/oidc/token", "client_id": "c", "client_secret": "cs", "ssl_ca_cert": ca}, regions: all},
		{name: "OpenID Connect beside a certificate", auth: map[string]any{"oidc_token_url": srv.URL + "/oidc/token", "client_id": "c", "client_secret": "cs", "ssl_ca_cert": ca, "client_cert": cert, "client_key": key}, regions: all},
		{name: "OpenID Connect, nobody vouches for the issuer", auth: map[string]any{"oidc_token_url": srv.URL + "/oidc/token", "client_id": "c", "client_secret": "cs", "ssl_ca_cert": "None"}, kind: lcm.KindUnavailable, says: "certificate"},
		{name: "OpenID Connect refused", auth: map[string]any{"username": "u", "password": "falsch", "oidc_token_url": srv.URL + "/oidc/token", "client_id": "c", "ssl_ca_cert": ca}, kind: lcm.KindInvalid, says: "401"},
		{name: "may not list", auth: map[string]any{"bearer_token": "small", "ssl_ca_cert": ca}, regions: []string{"own"}},
		{name: "wrong token", auth: map[string]any{"bearer_token": "falsch", "ssl_ca_cert": ca}, kind: lcm.KindInvalid, says: "/api/ answered 401 Unauthorized"},
		{name: "nothing", auth: map[string]any{"ssl_ca_cert": ca}, kind: lcm.KindInvalid, says: "Authentication to VIM 'K' at " + srv.URL},
		{name: "no API server", url: web.URL, auth: map[string]any{"bearer_token": "t0ken"}, kind: lcm.KindUnavailable, says: "not JSON"},
		{name: "gone", url: gone.URL, auth: map[string]any{"bearer_token": "t0ken"}, kind: lcm.KindUnavailable, says: "Connection to VIM 'K'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.url == "" {
				c.url = srv.URL
			}
			got, err := vim.Kubernetes{}.Probe(context.Background(), lcm.VIM{Name: "K", Type: lcm.VimKubernetes, AuthURL: c.url, Auth: c.auth, Project: map[string]any{"name": "own"}})
			check(t, err, c.kind, c.says)
			if err == nil && cmp.Diff(c.regions, got.Regions) != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// clientCert makes a self-signed certificate, as PEM texts on one line each.
func clientCert(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(7), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	line := func(kind string, der []byte) string {
		return strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})), "\n", " ")
	}
	return line("CERTIFICATE", der), line("PRIVATE KEY", raw)
}
