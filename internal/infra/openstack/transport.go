package openstack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// throttle keeps the calls to one VIM within their rate and number.
type throttle struct {
	vimID    string
	bucket   *rate.Limiter
	slots    chan struct{}
	observer Observer
}

// turn waits for a call's turn; done ends it.
func (t *throttle) turn(ctx context.Context) (done func(), err error) {
	if err := t.bucket.Wait(ctx); err != nil {
		return nil, fmt.Errorf("wait for a turn to call the VIM: %w", err)
	}
	select {
	case t.slots <- struct{}{}:
		return func() { <-t.slots }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a turn to call the VIM: %w", ctx.Err())
	}
}

// throttled is a transport whose calls take turns.
type throttled struct {
	*throttle
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t throttled) RoundTrip(req *http.Request) (*http.Response, error) {
	asked := time.Now()
	done, err := t.turn(req.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	begun := time.Now()
	resp, err := t.next.RoundTrip(req)
	if t.observer != nil {
		status := 0
		if err == nil {
			status = resp.StatusCode
		}
		t.observer.Call(t.vimID, req.URL.Host, req.Method, status, begun.Sub(asked), time.Since(begun))
	}
	return resp, err
}

// CloseIdleConnections lets the HTTP client's method of that name reach the connections.
func (t throttled) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// throttleOf returns the throttle of a VIM, the same for all its clients.
func (d *Driver) throttleOf(vimID string) *throttle {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, ok := d.throats[vimID]
	if !ok {
		t = &throttle{
			vimID: vimID, bucket: rate.NewLimiter(rate.Limit(d.cfg.RequestsPerSecond), d.cfg.Burst),
			slots: make(chan struct{}, d.cfg.MaxConcurrent), observer: d.cfg.Observer,
		}
		d.throats[vimID] = t
	}
	return t
}

// errRedirect refuses to carry a token to another host.
var errRedirect = errors.New("the VIM redirects to another host")

// httpClient makes the HTTP client of a VIM: its CA, its throttle; redirects stay on the host.
func (d *Driver) httpClient(t *lcm.VimTarget) (http.Client, error) {
	next := d.cfg.Transport
	if next == nil {
		tlsConfig, err := tlsOf(t)
		if err != nil {
			return http.Client{}, err
		}
		next = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: d.cfg.DialTimeout, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:     tlsConfig,
			TLSHandshakeTimeout: d.cfg.DialTimeout,
			MaxIdleConnsPerHost: d.cfg.MaxConcurrent,
			IdleConnTimeout:     90 * time.Second,
			ForceAttemptHTTP2:   true,
		}
	}
	return http.Client{
		Transport: throttled{d.throttleOf(t.ID), next},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) >= 5 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return errRedirect
			}
			return nil
		},
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
			return nil, lcm.Errorf(lcm.KindTerminal, "ssl_ca_cert of VIM %s holds no certificate", t.ID)
		}
		c.RootCAs = pool
	}
	if cert, key := text(t.Auth, "client_cert"), text(t.Auth, "client_key"); cert != "" || key != "" {
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			return nil, lcm.Errorf(lcm.KindTerminal, "client_cert and client_key of VIM %s are not a PEM certificate and its key", t.ID)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
