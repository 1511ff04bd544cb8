package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/nfvo"
	"github.com/seed-f1a0ccf1/vnfm/internal/notify"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
)

// notifyConfig is how subscribers are called.
func notifyConfig(c *config.Config) notify.Config {
	n := c.Notify
	return notify.Config{
		EndpointURL: c.EndpointURL, Guard: outbound.Guard{Hosts: n.Hosts, Only: n.Only(), Allow: n.AllowPrefixes()},
		TLS:          outbound.TLS{CAFile: n.CAFile, CertFile: n.ClientCert, KeyFile: n.ClientKey},
		TestCallback: n.TestCallback, Timeout: n.Timeout, RetryMin: n.RetryMin, RetryMax: n.RetryMax, MaxAge: n.MaxAge,
		Concurrency: n.Concurrency, Retention: n.Retention,
	}
}

// notifications makes what keeps subscriptions and what delivers to them.
func (s *server) notifications(newID func() string) error {
	cfg := notifyConfig(s.cfg)
	var err error
	if s.subscriptions, err = notify.NewService(cfg, s.store, s.store.Now, newID, s.log); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	s.dispatcher, err = notify.NewDispatcher(cfg, s.store, notify.Options{
		Log: s.log, Probe: crashPoint,
		Observe: func(o notify.Outcome, n int, age time.Duration) { s.metrics.Delivery(string(o), n, age) },
	})
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}

// login is how this manager makes itself known to the NFVO.
func login(c config.NFVO) outbound.Config {
	out := outbound.Config{TLS: outbound.TLS{CAFile: c.TLS.CAFile, CertFile: c.TLS.Cert, KeyFile: c.TLS.Key}}
	switch a := c.Auth; {
	case a.User != "":
		out.Auth.Basic = &outbound.Basic{UserName: a.User, Password: lcm.Secret(a.Password.Reveal())}
	case a.ClientID != "":
		out.Auth.OAuth2 = &outbound.ClientCredentials{
			ClientID: a.ClientID, ClientSecret: lcm.Secret(a.ClientSecret.Reveal()), TokenEndpoint: a.TokenEndpoint, Scopes: a.Scopes,
		}
	}
	return out
}

// granter returns who grants operations: the NFVO that is configured, else nobody is asked.
func granter(c *config.Config) (lcm.Granter, error) {
	g := c.NFVO.Grant
	if g.BaseURL == "" {
		return lcm.AllowAll{}, nil
	}
	asks, err := nfvo.NewGranter(nfvo.GrantConfig{
		BaseURL: g.BaseURL, Endpoint: c.EndpointURL, Login: login(c.NFVO), Version: g.Version,
		Timeout: g.Timeout, Retries: g.Retries, RetryWait: g.RetryWait, Poll: g.Poll, Decision: g.Decision,
	})
	if err != nil {
		return nil, fmt.Errorf("nfvo.grant: %w", err)
	}
	return asks, nil
}

// fetching returns the packages onboarded here and, when one is configured, those of the NFVO; the latter are to be closed.
func fetching(c config.NFVO, here *pkgm.Service, log *slog.Logger) (lcm.Packages, *nfvo.Packages, error) {
	p := c.Packages
	if p.BaseURL == "" {
		return here, nil, nil
	}
	there, err := nfvo.NewPackages(nfvo.PackagesConfig{
		BaseURL: p.BaseURL, Login: login(c), Version: p.Version, Timeout: p.Timeout, Retries: p.Retries, RetryWait: p.RetryWait,
		Wait: p.Wait, AtOnce: p.AtOnce,
	}, here, log)
	if err != nil {
		return nil, nil, fmt.Errorf("nfvo.packages: %w", err)
	}
	return there, there, nil
}
