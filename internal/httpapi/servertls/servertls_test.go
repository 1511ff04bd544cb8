package servertls

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/servertls/servertlstest"
)

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// fixture is a listener with its files.
type fixture struct {
	Config
	files   *Files
	address string
	ca      *servertlstest.Authority
}

func serve(t *testing.T, clients ClientCertificates, clientCA []byte) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{ca: servertlstest.New(t, "server CA"), Config: Config{
		Cert: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key"), Clients: clients, Log: slog.New(slog.DiscardHandler),
	}}
	cert, key := f.ca.Issue(t, "one")
	write(t, f.Cert, cert)
	write(t, f.Key, key)
	if clients != NotAsked {
		f.ClientCA = filepath.Join(dir, "ca")
		write(t, f.ClientCA, clientCA)
	}
	var err error
	if f.files, err = New(f.Config); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = ln.Addr().String()
	srv := &http.Server{TLSConfig: f.files.TLS(), ErrorLog: log(io.Discard), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.VerifiedChains) > 0 {
			name = r.TLS.VerifiedChains[0][0].Subject.CommonName
		}
		_, _ = io.WriteString(w, r.Proto+" "+name)
	})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.ServeTLS(ln, "", "") })
	t.Cleanup(func() { _ = srv.Close(); wg.Wait() })
	return f
}

func log(w io.Writer) *stdlog.Logger {
	return slog.NewLogLogger(slog.NewTextHandler(w, nil), slog.LevelError)
}

// get asks over a connection of its own, and returns the server's certificate's name and its answer.
func (f *fixture) get(t *testing.T, change func(*tls.Config)) (name, answer string, err error) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(f.ca.Cert)
	cfg := &tls.Config{RootCAs: pool}
	if change != nil {
		change(cfg)
	}
	tr := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr, Timeout: 2 * time.Minute}).Get("https://" + f.address)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	return res.TLS.PeerCertificates[0].Subject.CommonName, string(raw), err
}

func TestReload(t *testing.T) {
	f := serve(t, NotAsked, nil)
	check := func(what, want string) {
		t.Helper()
		if name, answer, err := f.get(t, nil); name != want || answer != "HTTP/2.0 nobody" || err != nil {
			t.Errorf("%s: %q, %q, %v", what, name, answer, err)
		}
	}
	check("at first", "one")
	if _, _, err := f.get(t, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	cert, key := f.ca.Issue(t, "two")
	write(t, f.Cert, cert)
	if changed, err := f.files.Reload(); changed || err == nil {
		t.Errorf("a certificate with another's key: %t, %v", changed, err)
	}
	check("half of a change", "one")
	write(t, f.Key, key)
	if changed, err := f.files.Reload(); !changed || err != nil {
		t.Errorf("both: %t, %v", changed, err)
	}
	check("a change", "two")
	if changed, err := f.files.Reload(); changed || err != nil {
		t.Errorf("no change: %t, %v", changed, err)
	}
	if err := os.Remove(f.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := f.files.Reload(); err == nil {
		t.Error("no key, no error")
	}
	check("without a key", "two")
}

// The loop sees changes by itself, and complains once about each that is of no use.
func TestWatch(t *testing.T) {
	f := serve(t, NotAsked, nil)
	var said safe
	f.files.cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.files.Watch(ctx, 5*time.Millisecond) })
	await := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: never; log: %s", what, said.String())
			}
		}
	}
	write(t, f.Cert, []byte("nonsense"))
	await("a complaint", func() bool { return strings.Contains(said.String(), "cannot be used") })
	cert, key := f.ca.Issue(t, "two")
	write(t, f.Key, key)
	write(t, f.Cert, cert)
	await("the new certificate", func() bool { name, _, err := f.get(t, nil); return err == nil && name == "two" })
	await("word of it", func() bool { return strings.Contains(said.String(), "are in use") })
	cancel()
	wg.Wait()
	if n := strings.Count(said.String(), "cannot be used"); n > 2 { // of the one file alone, and of the two that did not fit
		t.Errorf("%d complaints: %s", n, said.String())
	}
}

// safe is a buffer for several goroutines.
type safe struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func TestClientCertificates(t *testing.T) {
	trusted, stranger := servertlstest.New(t, "clients"), servertlstest.New(t, "strangers")
	with := func(a *servertlstest.Authority) func(*tls.Config) {
		cert, key := a.Issue(t, "nfvo")
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		// Shown whether or not the server says that it takes it.
		return func(c *tls.Config) {
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
	}
	ours, theirs := with(trusted), with(stranger)
	for _, clients := range []ClientCertificates{IfGiven, Required} {
		f := serve(t, clients, trusted.PEM)
		if _, answer, err := f.get(t, ours); answer != "HTTP/2.0 nfvo" || err != nil {
			t.Errorf("%d, ours: %q, %v", clients, answer, err)
		}
		if _, answer, err := f.get(t, theirs); err == nil {
			t.Errorf("%d, a stranger's: %q", clients, answer)
		}
		if _, answer, err := f.get(t, nil); (err == nil) != (clients == IfGiven) {
			t.Errorf("%d, none: %q, %v", clients, answer, err)
		}
		// The CA is exchanged; sessions of before are not resumed.
		cache := tls.NewLRUClientSessionCache(8)
		resuming := func(c *tls.Config) { ours(c); c.ClientSessionCache = cache }
		for range 2 {
			if _, _, err := f.get(t, resuming); err != nil {
				t.Errorf("%d, with sessions: %v", clients, err)
			}
		}
		write(t, f.ClientCA, stranger.PEM)
		if changed, err := f.files.Reload(); !changed || err != nil {
			t.Fatal(changed, err)
		}
		if _, answer, err := f.get(t, resuming); err == nil {
			t.Errorf("%d, by a CA that is gone: %q", clients, answer)
		}
		if _, answer, err := f.get(t, theirs); answer != "HTTP/2.0 nfvo" || err != nil {
			t.Errorf("%d, by the new CA: %q, %v", clients, answer, err)
		}
		write(t, f.ClientCA, []byte("nothing"))
		if _, err := f.files.Reload(); err == nil {
			t.Error("a CA file without a certificate is taken")
		}
	}
}

func TestBadFiles(t *testing.T) {
	if _, err := New(Config{Cert: filepath.Join(t.TempDir(), "none"), Key: "none"}); err == nil {
		t.Error("files that are not there")
	}
}
