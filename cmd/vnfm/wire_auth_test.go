package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/servertls/servertlstest"
)

// Client certificates on a listener with the configuration's own TLS: alone they are asked of everybody, beside another
// way they may be left out.
func TestMutualTLS(t *testing.T) {
	ca := servertlstest.New(t, "CA")
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	cfg := config.Default()
	cert, key := ca.Issue(t, "server")
	cfg.TLS.Cert, cfg.TLS.Key, cfg.TLS.ClientCA = file("crt", cert), file("key", key), file("ca", ca.PEM)
	cfg.Auth.MTLS.Users = map[string]string{"dns:nfvo.example": "nfvo"}
	cfg.Auth.Basic.Users = map[string]config.Secret{"alice": "pw"}
	cfg.Auth.Roles = map[string]string{"nfvo": "operator", "alice": "admin"}
	cfg.Auth.Projects = map[string]string{"nfvo": "one"}

	for _, c := range []struct {
		modes                                 []string
		nfvo, stranger, basic, nobody, nfvoAs string // answers, "" for no connection
	}{
		{[]string{"mtls"}, "nfvo one operator", "refused", "", "", "nfvo one operator"},
		{[]string{"mtls", "basic"}, "nfvo one operator", "refused", "alice default admin", "refused", "alice default admin"},
	} {
		cfg.Auth.Modes = c.modes
		url := serveScopes(t, cfg)
		ask := func(name, user string) string {
			t.Helper()
			return askAs(t, url, ca, name, user)
		}
		for what, got := range map[string][2]string{
			"the NFVO": {ask("nfvo.example", ""), c.nfvo}, "a stranger": {ask("other.example", ""), c.stranger},
			"a password": {ask("", "alice"), c.basic}, "nobody": {ask("", ""), c.nobody},
			"the NFVO with a password": {ask("nfvo.example", "alice"), c.nfvoAs},
		} {
			if got[0] != got[1] {
				t.Errorf("%v, %s: %q, want %q", c.modes, what, got[0], got[1])
			}
		}
	}
}

// serveScopes serves what the configuration's authentication makes of a request.
func serveScopes(t *testing.T, cfg *config.Config) string {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	auth, err := authenticator(cfg.Auth)
	if err != nil {
		t.Fatal(err)
	}
	files, err := tlsFiles(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{TLSConfig: files.TLS(), ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := auth.Authenticate(r)
		if err != nil {
			_, _ = io.WriteString(w, "refused")
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s %s", s.User, s.ProjectID, s.Role)
	})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.ServeTLS(ln, "", "") })
	t.Cleanup(func() { _ = srv.Close(); wg.Wait() })
	return "https://" + ln.Addr().String()
}

// askAs asks with a certificate of the name and as a user with a password; "" for either does without.
func askAs(t *testing.T, url string, ca *servertlstest.Authority, name, user string) string {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	tlsConfig := &tls.Config{RootCAs: roots}
	if name != "" {
		pair, err := tls.X509KeyPair(ca.Issue(t, name))
		if err != nil {
			t.Fatal(err)
		}
		tlsConfig.Certificates = []tls.Certificate{pair}
	}
	tr := &http.Transport{TLSClientConfig: tlsConfig}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		req.SetBasicAuth(user, "pw")
	}
	res, err := (&http.Client{Transport: tr, Timeout: 2 * time.Minute}).Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
