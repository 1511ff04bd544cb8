package notify

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

// Config says how subscribers are called. Zero values mean the defaults.
type Config struct {
	// EndpointURL is where this server is reached, without a slash at its end: the links in notifications begin with it.
	EndpointURL string
	Guard       outbound.Guard // which callbacks and token endpoints may be called
	TLS         outbound.TLS   // the certificate is shown to callbacks whose authentication is TLS_CERT, and to no others

	TestCallback bool          // whether a callback is tested when it is subscribed
	Timeout      time.Duration // of one call, default 10 s
	RetryMin     time.Duration // the pause after a first failure, default 1 s; it doubles with every further one
	RetryMax     time.Duration // the longest pause, default 1 h
	MaxAge       time.Duration // how old a notification may become before it is given up; default 7 days
	Concurrency  int           // calls to one subscription at the same time, for different instances; default 8
	Poll         time.Duration // how often it is looked for notifications without being told; default 1 s
	Retention    time.Duration // how long notifications are kept that nobody has still to be told; default 7 days
	Idle         time.Duration // how long a subscription without notifications stays this node's; default 1 min
}

// drain is how much of an answer is read, for the connection's sake.
const drain = 64 << 10

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = max(cmp.Or(c.RetryMax, time.Hour), c.RetryMin)
	c.MaxAge = cmp.Or(c.MaxAge, 7*24*time.Hour)
	c.Concurrency = cmp.Or(c.Concurrency, 8)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Retention = cmp.Or(c.Retention, 7*24*time.Hour)
	c.Idle = cmp.Or(c.Idle, time.Minute)
	return c
}

// caller makes the clients that subscribers are called with. Those without an authentication of their own share one.
type caller struct {
	cfg   Config
	plain *outbound.Client
}

func newCaller(cfg Config) (*caller, error) {
	if _, err := outbound.New(outbound.Config{TLS: cfg.TLS}); err != nil {
		return nil, err
	}
	c := &caller{cfg: cfg}
	var err error
	c.plain, err = c.make(outbound.Auth{}, false)
	return c, err
}

func (c *caller) make(auth outbound.Auth, certificate bool) (*outbound.Client, error) {
	files := c.cfg.TLS
	if !certificate {
		files.CertFile, files.KeyFile = "", ""
	}
	return outbound.New(outbound.Config{
		Guard: c.cfg.Guard, Auth: auth, TLS: files, Timeout: c.cfg.Timeout, Connect: c.cfg.Timeout,
		MaxBody: drain, MaxIdle: c.cfg.Concurrency,
	})
}

// client returns the client for a subscription's callback. Of several types of authentication it takes the first that is
// possible here: a certificate, a token, a password. Invalid: none is.
func (c *caller) client(sub *lcm.Subscription) (*outbound.Client, error) {
	a := sub.Auth
	if a == nil {
		return c.plain, nil
	}
	has := func(t sol003.SubscriptionAuthType) bool { return slices.Contains(a.AuthType, t) }
	oauth, basic := a.ParamsOauth2ClientCredentials, a.ParamsBasic
	var client *outbound.Client
	var err error
	switch {
	case has(sol003.SubscriptionAuthTypeTLSCert) && c.cfg.TLS.CertFile != "":
		client, err = c.make(outbound.Auth{}, true)
	case has(sol003.SubscriptionAuthTypeOAuth2ClientCredentials) && oauth.TokenEndpoint != "" && oauth.ClientId != "":
		client, err = c.make(outbound.Auth{OAuth2: &outbound.ClientCredentials{
			ClientID: oauth.ClientId, ClientSecret: lcm.Secret(oauth.ClientPassword), TokenEndpoint: oauth.TokenEndpoint,
		}}, false)
	case has(sol003.SubscriptionAuthTypeBasic) && basic.UserName != "":
		client, err = c.make(outbound.Auth{Basic: &outbound.Basic{UserName: basic.UserName, Password: lcm.Secret(basic.Password)}}, false)
	default:
		return nil, lcm.Errorf(lcm.KindInvalid, "none of the types of authentication %v is possible: paramsBasic needs a userName, "+
			"paramsOauth2ClientCredentials a clientId and a tokenEndpoint, TLS_CERT a client certificate of this server", a.AuthType)
	}
	if err != nil {
		return nil, lcm.Errorf(lcm.KindInvalid, "the authentication of the callback cannot be used: %w", err)
	}
	return client, nil
}

// forget closes what a client of one subscription keeps open.
func (c *caller) forget(client *outbound.Client) {
	if client != c.plain {
		client.CloseIdleConnections()
	}
}

// shown is a subscription's callback as logs have it.
func shown(sub *lcm.Subscription) string { return outbound.Shown(sub.CallbackURI) }
