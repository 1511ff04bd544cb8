package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// Config says how a Client calls. Zero values mean the defaults.
type Config struct {
	Guard Guard
	Auth  Auth
	TLS   TLS

	Timeout   time.Duration // of a whole exchange, the answer's body included; default none but the request's context
	Connect   time.Duration // to connect and for the TLS handshake; default 10 s
	Header    time.Duration // for the answer's header; default none
	MaxBody   int64         // bytes of an answer's body that may be read; default 64 KiB; -1: any number
	Redirects int           // how many are followed; default none: the redirect is the answer
	MaxIdle   int           // idle connections kept to a host; default 2

	// MayFollow, if set, is asked about every redirect before the Guard: its error ends the request.
	MayFollow func(to *url.URL) error
	// Transport is used in place of the guarded one when set; for tests.
	Transport http.RoundTripper
	Now       func() time.Time // for the expiry of tokens; default time.Now
}

// TLS names the files of a Client's TLS. Certificates of servers are always verified.
type TLS struct {
	CAFile string // certificates that servers are verified against, in PEM; "" for the system's
	// CertFile and KeyFile are our own certificate and its key, in PEM, shown to servers that ask for one; read anew for
	// every connection, so that they can be replaced.
	CertFile, KeyFile string
}

// The defaults.
const (
	defaultMaxBody = 64 << 10
	defaultConnect = 10 * time.Second
	maxHeader      = 64 << 10
)

// Client calls addresses that others name. It is safe for use by many at once.
type Client struct {
	http http.Client
	idle func()
}

// New makes a Client. It fails when a file of the TLS configuration cannot be used.
func New(cfg Config) (*Client, error) {
	if cfg.Connect <= 0 {
		cfg.Connect = defaultConnect
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = defaultMaxBody
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	conf, err := cfg.TLS.config()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext: cfg.Guard.dialer(cfg.Connect), TLSClientConfig: conf, TLSHandshakeTimeout: cfg.Connect,
		ResponseHeaderTimeout: cfg.Header, MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: cfg.MaxIdle, IdleConnTimeout: 90 * time.Second,
		DisableCompression: true, // what is read is what came: no small answer unpacks into a large one
		// No proxy from the environment: behind one, the address dialled is the proxy's and says nothing.
	}
	c := &Client{idle: transport.CloseIdleConnections}
	var rt http.RoundTripper = &limited{next: transport, guard: cfg.Guard, max: cfg.MaxBody}
	if cfg.Transport != nil {
		rt = &limited{next: cfg.Transport, guard: cfg.Guard, max: cfg.MaxBody}
	}
	if rt, err = cfg.Auth.wrap(rt, cfg.Now); err != nil {
		return nil, err
	}
	c.http = http.Client{Transport: rt, Timeout: cfg.Timeout, CheckRedirect: cfg.follow}
	return c, nil
}

// follow keeps redirects to the rules.
func (cfg *Config) follow(req *http.Request, via []*http.Request) error {
	if cfg.Redirects <= 0 {
		return http.ErrUseLastResponse
	}
	if len(via) > cfg.Redirects {
		return fmt.Errorf("more than %d redirects", cfg.Redirects)
	}
	if cfg.MayFollow != nil {
		if err := cfg.MayFollow(req.URL); err != nil {
			return err
		}
	}
	if err := cfg.Guard.Check(req.URL); err != nil {
		return fmt.Errorf("redirected: %w", err)
	}
	if req.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
		req.Header.Del("Authorization") // never in clear what was to be sent encrypted
	}
	return nil
}

// Do sends a request and returns its answer, whose body the caller closes. Errors hold no secret and do not name the
// address, which the caller does with Shown; ErrDenied is in the chain when the Guard has refused it. Reading more of the
// body than MaxBody returns ErrTooLarge.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, bare(err)
	}
	return resp, nil
}

// CloseIdleConnections closes connections that are not in use.
func (c *Client) CloseIdleConnections() { c.idle() }

// bare returns an error of net/http without the URL that it repeats whole.
func bare(err error) error {
	var verbose *url.Error
	for errors.As(err, &verbose) {
		err = verbose.Err
	}
	return err
}

// ErrTooLarge is returned by reading more of an answer's body than may be read.
var ErrTooLarge = errors.New("the answer is too large")

// limited checks every request, redirected ones too, and limits the bodies of answers.
type limited struct {
	next  http.RoundTripper
	guard Guard
	max   int64
}

// RoundTrip implements http.RoundTripper.
func (l *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := l.guard.Check(req.URL); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := l.next.RoundTrip(req)
	if err == nil && l.max >= 0 {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: l.max}
	}
	return resp, err
}

type limitedBody struct {
	io.ReadCloser
	left int64 // how many bytes may still be read
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more tells the end from too much
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

// config returns the TLS configuration of a transport.
func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificates of authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", t.CAFile)
		}
	}
	if t.CertFile == "" && t.KeyFile == "" {
		return c, nil
	}
	own := &ownCertificate{files: t}
	if _, err := own.get(nil); err != nil {
		return nil, err
	}
	c.GetClientCertificate = own.get
	return c, nil
}

// ownCertificate is the certificate that we show; a pair of files that does not fit keeps the last one that did.
type ownCertificate struct {
	files TLS
	mu    sync.Mutex
	last  *tls.Certificate
}

func (o *ownCertificate) get(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(o.files.CertFile, o.files.KeyFile)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.last = &pair
	case o.last == nil:
		return nil, fmt.Errorf("read the client certificate %s and its key: %w", o.files.CertFile, err)
	}
	return o.last, nil
}
