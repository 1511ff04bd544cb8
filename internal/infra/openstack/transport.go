package openstack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-f1a0ccf1/vnfm/internal/infra/crew"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// throttle keeps the calls to one VIM within their rate and number.
type throttle struct {
	version int64 // of the VIM that its limits are of
	limits  lcm.VimLimits
	bucket  *rate.Limiter
	slots   chan struct{}
	uploads chan struct{} // of images, which take long: they have slots of their own
}

// mostUploads is how many images one VIM is given at the same time; no more than a quarter of the workers do so.
const mostUploads = 4

// upload takes an upload's turn, if one is free; done ends it.
func (t *throttle) upload() (done func(), ok bool) {
	select {
	case t.uploads <- struct{}{}:
		return func() { <-t.uploads }, true
	default:
		return nil, false
	}
}

// turn waits for a call's turn; done ends it.
func (t *throttle) turn(ctx context.Context) (done func(), err error) {
	if err := t.bucket.Wait(ctx); err != nil {
		return nil, fmt.Errorf("wait for a turn to call the VIM: %w", err)
	}
	if uploadOf(ctx) != nil {
		return func() {}, nil
	}
	select {
	case t.slots <- struct{}{}:
		return func() { <-t.slots }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a turn to call the VIM: %w", ctx.Err())
	}
}

// throttleOf returns the throttle of a VIM, the same for all its clients. What the VIM's registration says of its limits
// goes before the configuration; a VIM that has changed gets new ones.
func (d *Driver) throttleOf(t *lcm.VimTarget) (*throttle, error) {
	limits, err := t.Limits()
	if err != nil {
		return nil, &lcm.Error{Kind: lcm.KindTerminal, Detail: "VIM " + nameOf(t) + ": " + detail(err), Err: err}
	}
	burst := d.cfg.Burst
	if limits.RequestsPerSecond > 0 {
		burst = max(1, int(math.Ceil(limits.RequestsPerSecond)))
	} else {
		limits.RequestsPerSecond = d.cfg.RequestsPerSecond
	}
	if limits.MaxConcurrent == 0 {
		limits.MaxConcurrent = d.cfg.MaxConcurrent
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now, ok := d.throats[t.ID]
	if ok && (now.version >= t.Version || now.limits == limits) {
		return now, nil
	}
	now = &throttle{
		version: t.Version, limits: limits,
		bucket: rate.NewLimiter(rate.Limit(limits.RequestsPerSecond), burst), slots: make(chan struct{}, limits.MaxConcurrent),
		uploads: make(chan struct{}, max(1, min(mostUploads, d.cfg.Crew.Workers()/4))),
	}
	d.throats[t.ID] = now
	return now, nil
}

// uploadKey is under which the context of an upload has what is to be called when its turn has come.
type uploadKey struct{}

// uploadOf returns what is to be called when the turn of the upload has come that ctx is of; nil when it is of another call.
func uploadOf(ctx context.Context) func() {
	begin, _ := ctx.Value(uploadKey{}).(func())
	return begin
}

// guarded is a transport of calls to one service of a VIM: they take turns, and are not made while the service does not
// answer.
type guarded struct {
	*throttle
	circuit  *circuit
	crew     *crew.Crew
	observer Observer
	timeout  time.Duration // of the wait for the turn, and then of a call that is no upload
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	asked := time.Now()
	queueing, cancel := context.WithTimeout(req.Context(), g.timeout)
	report, done, err := g.enter(queueing)
	cancel()
	if err != nil {
		discard(req)
		return nil, err
	}
	defer done()
	begun := time.Now()
	resp, err := g.call(req)
	report(req.Context(), resp, err)
	if err == nil && resp.StatusCode < http.StatusInternalServerError {
		g.crew.Answered(g.circuit.key.vim)
	}
	if g.observer != nil {
		status := 0
		if err == nil {
			status = resp.StatusCode
		}
		g.observer.Call(g.circuit.key.vim, req.URL.Host, req.Method, status, begun.Sub(asked), time.Since(begun))
	}
	return resp, err
}

// call makes the call whose turn has come. Its time ends with the answer's body.
func (g guarded) call(req *http.Request) (*http.Response, error) {
	if begin := uploadOf(req.Context()); begin != nil {
		begin()
		return g.next.RoundTrip(req)
	}
	ctx, cancel := context.WithTimeout(req.Context(), g.timeout)
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = timedBody{resp.Body, cancel}
	return resp, nil
}

// timedBody is an answer's body with which the time of a call ends.
type timedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b timedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// enter waits for the call's turn, if the service answers; done ends it.
func (g guarded) enter(ctx context.Context) (report func(context.Context, *http.Response, error), done func(), err error) {
	if err := g.circuit.check(); err != nil {
		return nil, nil, err
	}
	if done, err = g.turn(ctx); err != nil {
		return nil, nil, err
	}
	if report, err = g.circuit.begin(); err != nil { //nolint:bodyclose // none has come; it has opened while the call queued
		done()
		return nil, nil, err
	}
	return report, done, nil
}

// CloseIdleConnections lets the HTTP client's method of that name reach the connections.
func (g guarded) CloseIdleConnections() { closeIdle(g.next) }

func closeIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// discard closes the body of a request that is not sent, as a RoundTripper must.
func discard(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// authorized is a transport whose calls carry the token of an account. A token that is refused is replaced, once, and the
// call made again if its body can be sent again.
type authorized struct {
	account *account
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := a.account.token(req.Context())
	if err != nil {
		discard(req)
		return nil, err
	}
	resp, err := a.next.RoundTrip(carrying(req, token))
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !a.account.reject(token) || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxSaid))
	_ = resp.Body.Close()
	if token, err = a.account.token(req.Context()); err != nil {
		return nil, err
	}
	again := carrying(req, token)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return a.next.RoundTrip(again)
}

// CloseIdleConnections lets the HTTP client's method of that name reach the connections.
func (a authorized) CloseIdleConnections() { closeIdle(a.next) }

// carrying is a copy of a request with a token.
func carrying(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("X-Auth-Token", token)
	return req
}

// errRedirect refuses to carry a token to another host.
var errRedirect = errors.New("the VIM redirects to another host")

// clientOf makes an HTTP client of a transport: redirects stay on the host.
func clientOf(t http.RoundTripper) http.Client {
	return http.Client{
		Transport: t,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) >= 5 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return errRedirect
			}
			return nil
		},
	}
}

// wire makes the transport to a VIM, by its own CA.
func (d *Driver) wire(t *lcm.VimTarget, concurrent int) (http.RoundTripper, error) {
	if d.cfg.Transport != nil {
		return d.cfg.Transport, nil
	}
	tlsConfig, err := tlsOf(t)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: d.cfg.DialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: d.cfg.DialTimeout,
		MaxIdleConnsPerHost: concurrent,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}, nil
}

// tlsOf reads how a VIM's certificates are to be checked: cert_verify "False" is the operator's explicit choice for this
// VIM not to; ssl_ca_cert is a PEM bundle to trust besides the system's.
func tlsOf(t *lcm.VimTarget) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	switch v := t.Auth["cert_verify"].(type) {
	case bool:
		c.InsecureSkipVerify = !v //nolint:gosec // the operator's choice for this VIM
	case string:
		c.InsecureSkipVerify = strings.EqualFold(v, "false") //nolint:gosec // the operator's choice for this VIM
	}
	if pem := text(t.Auth, "ssl_ca_cert"); pem != "" && pem != "None" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM([]byte(pem)) {
			return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s: ssl_ca_cert holds no certificate", nameOf(t))
		}
		c.RootCAs = pool
	}
	if cert, key := text(t.Auth, "client_cert"), text(t.Auth, "client_key"); cert != "" || key != "" {
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s: client_cert and client_key are not a PEM certificate and its key", nameOf(t))
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
