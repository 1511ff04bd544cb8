package outbound_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func client(t *testing.T, cfg outbound.Config) *outbound.Client {
	t.Helper()
	c, err := outbound.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func get(t *testing.T, c *outbound.Client, address string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

func TestGuardCheck(t *testing.T) {
	for _, c := range []struct {
		guard outbound.Guard
		url   string
		ok    bool
	}{
		{outbound.Guard{}, "http://example.com/x", true},
		{outbound.Guard{}, "HTTPS://example.com", true},
		{outbound.Guard{}, "ftp://example.com/x", false},
		{outbound.Guard{}, "file:///etc/passwd", false},
		{outbound.Guard{}, "/relative", false},
		{outbound.Guard{}, "http://:80/x", false},
		{outbound.Guard{}, "http://joe:geheim@example.com/x", false},
		{outbound.Guard{Schemes: []string{"https"}}, "http://example.com", false},
		{outbound.Guard{Hosts: []string{"nfvo.example.com"}}, "http://NFVO.example.com.:80/x", true},
		{outbound.Guard{Hosts: []string{"nfvo.example.com"}}, "http://nfvo.example.com.evil.org/x", false},
		{outbound.Guard{Hosts: []string{".example.com"}}, "http://a.b.example.com/x", true},
		{outbound.Guard{Hosts: []string{".example.com"}}, "http://badexample.com/x", false},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		err = c.guard.Check(u)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, outbound.ErrDenied) {
			t.Errorf("%+v %s: %v", c.guard, c.url, err)
		}
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v tells a secret", err)
		}
	}
}

func TestGuardMayDial(t *testing.T) {
	prefix := netip.MustParsePrefix
	for _, c := range []struct {
		guard outbound.Guard
		addr  string
		ok    bool
	}{
		{outbound.Guard{}, "127.0.0.1", false},
		{outbound.Guard{}, "127.9.9.9", false},
		{outbound.Guard{}, "::1", false},
		{outbound.Guard{}, "::ffff:127.0.0.1", false},
		{outbound.Guard{}, "0.0.0.0", false},
		{outbound.Guard{}, "::", false},
		{outbound.Guard{}, "169.254.169.254", false},
		{outbound.Guard{}, "fe80::1%eth0", false},
		{outbound.Guard{}, "64:ff9b::7f00:1", false},
		{outbound.Guard{}, "224.0.0.1", false},
		{outbound.Guard{}, "10.1.2.3", true},
		{outbound.Guard{}, "2001:db8::1", true},
		{outbound.Anywhere(), "169.254.169.254", true},
		{outbound.Guard{Allow: loopback}, "127.0.0.1", true},
		{outbound.Guard{Allow: loopback}, "169.254.169.254", false},
		{outbound.Guard{Only: []netip.Prefix{prefix("10.0.0.0/8")}}, "10.0.0.1", true},
		{outbound.Guard{Only: []netip.Prefix{prefix("10.0.0.0/8")}}, "192.0.2.1", false},
		{outbound.Guard{Only: loopback}, "127.0.0.1", false},
		{outbound.Guard{Only: loopback, Allow: loopback}, "127.0.0.1", true},
	} {
		if got := c.guard.MayDial(netip.MustParseAddr(c.addr)); got != c.ok {
			t.Errorf("%+v: MayDial(%s) = %v", c.guard, c.addr, got)
		}
	}
}

// TestDialled: what counts is the address that is dialled, however it is named.
func TestDialled(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	port := srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1.2.3"} {
		_, err := get(t, client(t, outbound.Config{}), "http://"+host+port+"/?token=geheim")
		if !errors.Is(err, outbound.ErrDenied) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if asked.Load() != 0 {
		t.Error("it was called")
	}
	if _, err := get(t, client(t, outbound.Config{Guard: outbound.Guard{Allow: loopback}}), srv.URL); err != nil {
		t.Error(err)
	}
}

// TestRebinding: a name that is resolved to an allowed address first and to loopback then does not get there.
func TestRebinding(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	port := srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	dns := newDNS(t, netip.MustParseAddr("127.0.0.1"))
	c := client(t, outbound.Config{Guard: outbound.Guard{Resolver: dns}})
	if _, err := get(t, c, "http://callback.example.com"+port); !errors.Is(err, outbound.ErrDenied) {
		t.Errorf("%v", err)
	}
	if asked.Load() != 0 {
		t.Error("it was called")
	}
}

func TestBodyLimit(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("n"), &n)
		_, _ = w.Write(bytes.Repeat([]byte("x"), n))
	}))
	defer srv.Close()
	guard := outbound.Guard{Allow: loopback}
	for _, c := range []struct {
		max  int64
		n    int
		fits bool
	}{{10, 0, true}, {10, 10, true}, {10, 11, false}, {0, 64 << 10, true}, {0, 64<<10 + 1, false}, {-1, 1 << 20, true}} {
		resp, err := get(t, client(t, outbound.Config{Guard: guard, MaxBody: c.max}), fmt.Sprintf("%s/?n=%d", srv.URL, c.n))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		switch {
		case c.fits && (err != nil || len(body) != c.n):
			t.Errorf("%d of %d: %d bytes, %v", c.n, c.max, len(body), err)
		case !c.fits && (!errors.Is(err, outbound.ErrTooLarge) || int64(len(body)) > max(c.max, 64<<10)):
			t.Errorf("%d of %d: %d bytes, %v", c.n, c.max, len(body), err)
		}
	}
}

func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
	})
	mux.HandleFunc("/meta", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/echo", http.StatusFound) })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Header.Get("Authorization")) })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	guard := outbound.Guard{Allow: loopback}
	basic := outbound.Auth{Basic: &outbound.Basic{UserName: "joe", Password: "geheim"}}

	resp, err := get(t, client(t, outbound.Config{Guard: guard, Auth: basic}), srv.URL+"/away")
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Errorf("not to be followed: %v %v", resp, err)
	}
	follow := client(t, outbound.Config{Guard: guard, Auth: basic, Redirects: 3})
	for path, want := range map[string]string{"/away": "", "/here": "Basic am9lOmdlaGVpbQ=="} {
		resp, err := get(t, follow, srv.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(resp.Body); string(body) != want {
			t.Errorf("%s: authorization %q", path, body)
		}
	}
	if _, err := get(t, follow, srv.URL+"/meta"); !errors.Is(err, outbound.ErrDenied) {
		t.Error(err)
	}
	if _, err := get(t, follow, srv.URL+"/loop"); err == nil || !strings.Contains(err.Error(), "more than 3 redirects") {
		t.Error(err)
	}
}

// tokens is a token endpoint and a server that knows its tokens.
type tokens struct {
	*httptest.Server
	fetched atomic.Int64
	mu      sync.Mutex
	valid   string
	expires int
	refuse  string // the error that the endpoint answers
	bodies  []string
}

func newTokens(t *testing.T) *tokens {
	s := &tokens{expires: 3600}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		n := s.fetched.Add(1)
		id, secret, _ := r.BasicAuth()
		if r.FormValue("grant_type") != "client_credentials" || id != "vnfm" || secret != "geheim" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if s.refuse != "" {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": s.refuse, "error_description": "you sent " + secret})
			return
		}
		s.valid = fmt.Sprint("token-", n)
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": s.valid, "token_type": "Bearer", "expires_in": s.expires})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+s.valid || s.valid == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		s.bodies = append(s.bodies, string(body))
		w.WriteHeader(http.StatusNoContent)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *tokens) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.valid = "revoked"
}

func post(c *outbound.Client, address, body string) (int, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}

func TestOAuth2(t *testing.T) {
	srv := newTokens(t)
	now := time.Now()
	var mu sync.Mutex
	c := client(t, outbound.Config{
		Guard: outbound.Guard{Allow: loopback},
		Auth:  outbound.Auth{OAuth2: &outbound.ClientCredentials{ClientID: "vnfm", ClientSecret: "geheim", TokenEndpoint: srv.URL + "/token"}},
		Now:   func() time.Time { mu.Lock(); defer mu.Unlock(); return now },
	})
	ok := func(body string, fetched int64) {
		t.Helper()
		if code, err := post(c, srv.URL+"/callback", body); code != http.StatusNoContent || err != nil {
			t.Errorf("%s: %d %v", body, code, err)
		}
		if n := srv.fetched.Load(); n != fetched {
			t.Errorf("%s: %d tokens fetched, not %d", body, n, fetched)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if code, err := post(c, srv.URL+"/callback", "many"); code != http.StatusNoContent || err != nil {
				t.Errorf("%d %v", code, err)
			}
		})
	}
	wg.Wait()
	ok("kept", 1)
	srv.revoke()
	ok("revoked", 2)
	ok("kept again", 2)
	mu.Lock()
	now = now.Add(time.Hour)
	mu.Unlock()
	ok("expired", 3)
	if last := srv.bodies[len(srv.bodies)-3:]; strings.Join(last, ",") != "revoked,kept again,expired" {
		t.Errorf("bodies %q", last)
	}
	// What stays refused is an answer, not an endless fetching of tokens.
	mu.Lock()
	now = time.Now()
	mu.Unlock()
	srv.mu.Lock()
	srv.refuse = "invalid_client"
	srv.mu.Unlock()
	srv.revoke()
	if code, err := post(c, srv.URL+"/callback", "x"); code != http.StatusUnauthorized || err != nil {
		t.Errorf("%d %v", code, err)
	}
}

func TestOAuth2Errors(t *testing.T) {
	srv := newTokens(t)
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("geheim {")) }))
	defer garbage.Close()
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, srv.URL+"/token", http.StatusTemporaryRedirect)
	}))
	defer moved.Close()
	srv.refuse = "invalid_client"
	for _, c := range []struct {
		endpoint, secret, want string
		guard                  outbound.Guard
	}{
		{srv.URL + "/token?x=geheim", "geheim", "invalid_client", outbound.Guard{Allow: loopback}},
		{srv.URL + "/token", "wrong", "401", outbound.Guard{Allow: loopback}},
		{garbage.URL, "geheim", "no token", outbound.Guard{Allow: loopback}},
		{moved.URL, "geheim", "307", outbound.Guard{Allow: loopback}},
		{"http://169.254.169.254/token", "geheim", "not allowed", outbound.Guard{Allow: loopback}},
		{"http://127.0.0.1:1/token", "geheim", "refused", outbound.Guard{Allow: loopback}},
	} {
		cl := client(t, outbound.Config{Guard: c.guard, Auth: outbound.Auth{OAuth2: &outbound.ClientCredentials{
			ClientID: "vnfm", ClientSecret: "geheim", TokenEndpoint: c.endpoint,
		}}})
		if c.secret == "wrong" {
			cl = client(t, outbound.Config{Guard: c.guard, Auth: outbound.Auth{OAuth2: &outbound.ClientCredentials{
				ClientID: "vnfm", ClientSecret: "falsch", TokenEndpoint: c.endpoint,
			}}})
		}
		_, err := post(cl, srv.URL+"/callback", "x")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "falsch") {
			t.Errorf("%s: %v", c.endpoint, err)
		}
	}
	if _, err := outbound.New(outbound.Config{Auth: outbound.Auth{OAuth2: &outbound.ClientCredentials{TokenEndpoint: "token"}}}); err == nil {
		t.Error("an endpoint that is no URL passed")
	}
	if _, err := outbound.New(outbound.Config{Auth: outbound.Auth{Basic: &outbound.Basic{}, OAuth2: &outbound.ClientCredentials{}}}); err == nil {
		t.Error("two ways passed")
	}
}

// authority signs certificates for servers on loopback and for clients.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{dir: t.TempDir(), key: key}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *authority) issue(t *testing.T, name string, serial int64) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".pem", "CERTIFICATE", der)
	a.write(t, name+".key", "PRIVATE KEY", raw)
	pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestTLS(t *testing.T) {
	a := newAuthority(t)
	server := a.issue(t, "server", 2)
	a.issue(t, "vnfm", 3)
	pool := x509.NewCertPool()
	raw, err := os.ReadFile(a.file("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(raw)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.TLS.PeerCertificates[0].SerialNumber)
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	defer srv.Close()
	guard := outbound.Guard{Allow: loopback}
	files := outbound.TLS{CAFile: a.file("ca.pem"), CertFile: a.file("vnfm.pem"), KeyFile: a.file("vnfm.key")}

	if _, err := get(t, client(t, outbound.Config{Guard: guard}), srv.URL); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("unknown authority: %v", err)
	}
	if _, err := get(t, client(t, outbound.Config{Guard: guard, TLS: outbound.TLS{CAFile: files.CAFile}}), srv.URL); err == nil {
		t.Error("without a certificate of our own")
	}
	serial := func(c *outbound.Client) string {
		t.Helper()
		resp, err := get(t, c, srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		c.CloseIdleConnections()
		return string(body)
	}
	c := client(t, outbound.Config{Guard: guard, TLS: files})
	if got := serial(c); got != "3" {
		t.Errorf("shown certificate %s", got)
	}
	a.issue(t, "vnfm", 4)
	if got := serial(c); got != "4" {
		t.Errorf("after its replacement the shown certificate is %s", got)
	}
	if err := os.WriteFile(files.CertFile, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(c); got != "4" {
		t.Errorf("after a broken replacement the shown certificate is %s", got)
	}
	for _, bad := range []outbound.TLS{
		{CAFile: a.file("none.pem")}, {CAFile: a.file("server.key")}, {CertFile: a.file("server.pem")}, {CertFile: a.file("server.pem"), KeyFile: a.file("none.key")},
	} {
		if _, err := outbound.New(outbound.Config{TLS: bad}); err == nil {
			t.Errorf("%+v passed", bad)
		}
	}
}

func TestTimeout(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer srv.Close()
	_, err := get(t, client(t, outbound.Config{Guard: outbound.Guard{Allow: loopback}, Timeout: 50 * time.Millisecond}), srv.URL+"/?x=geheim")
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
}

func TestShown(t *testing.T) {
	for in, want := range map[string]string{
		"http://u:p@host:80/a/b?token=x#f": "http://host:80/a/b", "https://host": "https://host", "nonsense?x": "nonsense",
		"http://u:p@host": "http://host",
	} {
		if got := outbound.Shown(in); got != want {
			t.Errorf("Shown(%s) = %s", in, got)
		}
	}
}

// newDNS returns a resolver whose server answers every question for an IPv4 address with addr.
func newDNS(t *testing.T, addr netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			q := bytes.Clone(buf[:n])
			end := 12
			for end < len(q) && q[end] != 0 {
				end += int(q[end]) + 1
			}
			question := q[12 : end+5]
			kind := q[end+2]
			answers := byte(0)
			if kind == 1 {
				answers = 1
			}
			out := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0}, question...)
			if kind == 1 {
				a := addr.As4()
				out = append(append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), a[:]...)
			}
			_, _ = conn.WriteTo(out, from)
		}
	})
	t.Cleanup(func() { _ = conn.Close(); wg.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}
