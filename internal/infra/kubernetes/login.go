package kubernetes

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// transport returns how the API server of a VIM is called: TLS, the credentials of its auth_cred, the number of calls at a
// time. Terminal: the credentials make no sense.
func (d *Driver) transport(t *lcm.VimTarget) (http.RoundTripper, error) {
	config, err := tlsOf(t)
	if err != nil {
		return nil, err
	}
	base := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: d.cfg.DialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    d.cfg.DialTimeout,
		MaxIdleConnsPerHost:    d.cfg.MaxConcurrent,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 256 << 10,
		// A connection that has gone silent is noticed: watches hold theirs for long.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	limits, err := t.Limits()
	if err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s: %w", t.ID, err)
	}
	var next http.RoundTripper = &gate{
		next: base, vimID: t.ID, observer: d.cfg.Observer, bucket: rate.NewLimiter(rate.Inf, 0),
		slots: make(chan struct{}, cmp.Or(limits.MaxConcurrent, d.cfg.MaxConcurrent)),
	}
	if l := limits.RequestsPerSecond; l > 0 {
		next.(*gate).bucket = rate.NewLimiter(rate.Limit(l), int(max(2*l, 1)))
	}
	token, user, password := text(t.Auth, "bearer_token"), text(t.Auth, "username"), text(t.Auth, "password")
	switch {
	case text(t.Auth, "oidc_token_url") != "":
		apart, err := issuerTLS(t)
		if err != nil {
			return nil, err
		}
		outside := base.Clone()
		outside.TLSClientConfig = apart
		client := &http.Client{Transport: outside, Timeout: d.cfg.CallTimeout, CheckRedirect: noRedirects}
		return &bearing{next: next, tokens: &issuer{vim: t, http: client, grace: refusalPause}}, nil
	case token != "":
		return &bearing{next: next, tokens: fixed(token)}, nil
	case user != "" && password != "":
		return &basic{next: next, user: user, password: lcm.Secret(password)}, nil
	case len(config.Certificates) > 0:
		return next, nil
	}
	return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s has no credentials: auth_cred needs bearer_token, username and password, oidc_token_url, or client_cert and client_key", t.ID)
}

func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// text returns a string of a free-form map; "" when it is absent or something else.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// tlsOf reads how a VIM's certificate is to be checked: by ssl_ca_cert, by the system's authorities when there is none. A
// cert_verify of "False", or an ssl_ca_cert that is there and empty or "None" without a cert_verify of "True", are the
// operator's explicit choice for this VIM not to.
func tlsOf(t *lcm.VimTarget) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	verify, insisted := true, false
	switch v := t.Auth["cert_verify"].(type) {
	case bool:
		verify, insisted = v, v
	case string:
		verify, insisted = !strings.EqualFold(v, "false"), strings.EqualFold(v, "true")
	}
	if given, ok := t.Auth["ssl_ca_cert"]; ok {
		pem, _ := given.(string)
		if pem == "" || pem == "None" {
			verify = insisted
		} else {
			c.RootCAs = x509.NewCertPool()
			if !c.RootCAs.AppendCertsFromPEM([]byte(pem)) {
				return nil, lcm.Errorf(lcm.KindTerminal, "ssl_ca_cert of VIM %s holds no certificate", t.ID)
			}
		}
	}
	c.InsecureSkipVerify = !verify //nolint:gosec // the operator's choice for this VIM
	if cert, key := text(t.Auth, "client_cert"), text(t.Auth, "client_key"); cert != "" || key != "" {
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			return nil, lcm.Errorf(lcm.KindTerminal, "client_cert and client_key of VIM %s are not a PEM certificate and its key", t.ID)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// issuerTLS is how the issuer's certificate is checked: always, by the system's authorities and the VIM's. What the VIM knows
// us by, and that the VIM need not be checked, is nothing to the issuer, which is given a password.
func issuerTLS(t *lcm.VimTarget) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	pem := text(t.Auth, "ssl_ca_cert")
	if pem == "" || pem == "None" {
		return c, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(pem)) {
		return nil, lcm.Errorf(lcm.KindTerminal, "ssl_ca_cert of VIM %s holds no certificate", t.ID)
	}
	c.RootCAs = pool
	return c, nil
}

// gate lets so many calls through at a time, and in a second. Watches are not counted among the former: they stay.
type gate struct {
	next     http.RoundTripper
	vimID    string
	bucket   *rate.Limiter
	slots    chan struct{}
	observer Observer
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	asked := time.Now()
	if err := g.bucket.Wait(req.Context()); err != nil {
		return nil, fmt.Errorf("wait for a turn to call the VIM: %w", err)
	}
	if req.URL.Query().Get("watch") == "" {
		select {
		case g.slots <- struct{}{}:
			defer func() { <-g.slots }()
		case <-req.Context().Done():
			return nil, fmt.Errorf("wait for a turn to call the VIM: %w", req.Context().Err())
		}
	}
	begun := time.Now()
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", fieldManager)
	resp, err := g.next.RoundTrip(req)
	if g.observer != nil {
		status := 0
		if err == nil {
			status = resp.StatusCode
		}
		g.observer.Call(g.vimID, req.URL.Host, req.Method, status, begun.Sub(asked), time.Since(begun))
	}
	return resp, err
}

// CloseIdleConnections lets the HTTP client's method of that name reach the connections.
func (g *gate) CloseIdleConnections() { closeIdle(g.next) }

func closeIdle(rt http.RoundTripper) {
	if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// basic logs in by name and password.
type basic struct {
	next     http.RoundTripper
	user     string
	password lcm.Secret
}

// RoundTrip implements http.RoundTripper.
func (b *basic) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.SetBasicAuth(b.user, b.password.Reveal())
	return b.next.RoundTrip(req)
}

// CloseIdleConnections lets the HTTP client's method of that name reach the connections.
func (b *basic) CloseIdleConnections() { closeIdle(b.next) }

// tokens is where a bearer token comes from.
type tokens interface {
	// token returns a token that is good as far as is known.
	token(ctx context.Context) (string, error)
	// refused says that a token is not good any more; it tells whether there may be another.
	refused(token string) bool
}

// fixed is the token that a VIM was registered with. Another comes with a change of the VIM.
type fixed lcm.Secret

func (f fixed) token(context.Context) (string, error) { return string(f), nil }
func (f fixed) refused(string) bool                   { return false }

// bearing is a transport that carries a bearer token; a refused one is renewed once for each request.
type bearing struct {
	next   http.RoundTripper
	tokens tokens
}

// RoundTrip implements http.RoundTripper.
func (b *bearing) RoundTrip(req *http.Request) (*http.Response, error) {
	for again := false; ; again = true {
		token, err := b.tokens.token(req.Context())
		if err != nil {
			return nil, err
		}
		out := req.Clone(req.Context())
		if again && req.Body != nil {
			if out.Body, err = req.GetBody(); err != nil {
				return nil, fmt.Errorf("repeat a request: %w", err)
			}
		}
		out.Header.Set("Authorization", "Bearer "+token)
		resp, err := b.next.RoundTrip(out)
		repeatable := req.Body == nil || req.GetBody != nil
		if err != nil || resp.StatusCode != http.StatusUnauthorized || !b.tokens.refused(token) || again || !repeatable {
			return resp, err
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxSaid))
		_ = resp.Body.Close()
	}
}

// CloseIdleConnections lets the HTTP client's method of that name reach the connections.
func (b *bearing) CloseIdleConnections() {
	closeIdle(b.next)
	if i, ok := b.tokens.(*issuer); ok {
		i.http.CloseIdleConnections()
	}
}

// issuer gets tokens from an OpenID Connect issuer, by password when a user is named, else by the client's own credentials
// (RFC 6749 §4.3, §4.4), and keeps them until shortly before they expire.
type issuer struct {
	vim   *lcm.VimTarget
	http  *http.Client
	grace time.Duration // how long nobody asks again after a refusal

	mu      sync.Mutex
	held    lcm.Secret
	until   time.Time // zero: not known
	refusal error     // the last, while there has been no token since
	said    time.Time // when that was
}

// refusalPause is how long an issuer that has refused the credentials is not asked again: it may lock the account.
const refusalPause = 30 * time.Second

// early is how long before its end a token is renewed.
const early = 10 * time.Second

func (i *issuer) token(ctx context.Context) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held != "" && (i.until.IsZero() || time.Now().Before(i.until)) {
		return i.held.Reveal(), nil
	}
	if i.refusal != nil && time.Since(i.said) < i.grace {
		return "", i.refusal
	}
	token, life, err := i.ask(ctx)
	if lcm.Is(err, lcm.KindTerminal) {
		i.refusal, i.said = err, time.Now()
	}
	if err != nil {
		return "", err
	}
	i.refusal = nil
	i.held, i.until = lcm.Secret(token), time.Time{}
	if life > 0 {
		i.until = time.Now().Add(max(life-early, life/2))
	}
	return token, nil
}

func (i *issuer) refused(token string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held.Reveal() == token {
		i.held = ""
	}
	return true
}

func (i *issuer) ask(ctx context.Context) (string, time.Duration, error) {
	auth := i.vim.Auth
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"openid"}, "client_id": {text(auth, "client_id")}}
	if user := text(auth, "username"); user != "" {
		form.Set("grant_type", "password")
		form.Set("username", user)
		form.Set("password", text(auth, "password"))
	}
	if s := text(auth, "client_secret"); s != "" {
		form.Set("client_secret", s)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, text(auth, "oidc_token_url"), strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, lcm.Errorf(lcm.KindTerminal, "VIM %s: oidc_token_url is not a URL", i.vim.ID)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := i.http.Do(req)
	if err != nil {
		kind := lcm.KindRetryable
		var untrusted *tls.CertificateVerificationError
		if errors.As(err, &untrusted) {
			kind = lcm.KindTerminal
		}
		return "", 0, &lcm.Error{Kind: kind, Detail: fmt.Sprintf("VIM %s: the OpenID Connect issuer does not answer", i.vim.ID), Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusOK:
	case resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusRequestTimeout:
		return "", 0, lcm.Errorf(lcm.KindTerminal, "VIM %s: the OpenID Connect issuer refuses the credentials (%s)", i.vim.ID, resp.Status)
	default:
		return "", 0, lcm.Errorf(lcm.KindRetryable, "VIM %s: the OpenID Connect issuer answered %s", i.vim.ID, resp.Status)
	}
	var answer struct {
		IDToken     string  `json:"id_token"`
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer)
	token := answer.IDToken
	if token == "" {
		token = answer.AccessToken
	}
	if err != nil || token == "" {
		return "", 0, lcm.Errorf(lcm.KindRetryable, "VIM %s: the OpenID Connect issuer's answer has neither id_token nor access_token", i.vim.ID)
	}
	return token, time.Duration(answer.ExpiresIn * float64(time.Second)), nil
}
