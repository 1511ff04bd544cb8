package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/crew"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes/helm"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

// clusters makes the driver of Kubernetes VIMs.
func clusters(k config.Kubernetes, workers *crew.Crew, observer kubernetes.Observer, log *slog.Logger) (*kubernetes.Driver, error) {
	cfg := kubernetes.Config{
		ReadyTimeout: k.ReadyTimeout, DeleteTimeout: k.DeleteTimeout, PollMin: k.PollMin, PollMax: k.PollMax,
		CallTimeout: k.RequestTimeout, DialTimeout: k.ConnectTimeout, MaxConcurrent: k.MaxConcurrent, WatchIdle: k.WatchIdle,
		Crew: workers, Helm: charts(k, log), Observer: observer, Probe: crashPoint,
	}
	if len(k.URIHosts) > 0 {
		fetch, err := newManifests(k)
		if err != nil {
			return nil, fmt.Errorf("kubernetes: %w", err)
		}
		cfg.Fetch = fetch
	}
	return kubernetes.New(cfg, log), nil
}

// charts makes what deploys Helm charts; that there is no helm is told when one is to be deployed, and by vnfm doctor.
func charts(k config.Kubernetes, log *slog.Logger) *helm.Runner {
	return helm.New(helm.Config{Binary: k.Helm.Binary, Timeout: k.Helm.Timeout, MaxConcurrent: k.Helm.MaxConcurrent}, log)
}

// manifestRedirects is how many redirects are followed to a manifest.
const manifestRedirects = 5

// manifests fetches manifests from the hosts that the operator allows.
type manifests struct {
	client  *outbound.Client
	timeout time.Duration
}

func newManifests(k config.Kubernetes) (*manifests, error) {
	client, err := outbound.New(outbound.Config{
		Guard:   outbound.Guard{Hosts: k.URIHosts, Allow: k.AllowPrefixes()},
		MaxBody: int64(k.URISize), Redirects: manifestRedirects,
	})
	if err != nil {
		return nil, err
	}
	return &manifests{client, k.URITimeout}, nil
}

// Fetch implements kubernetes.Fetcher.
func (m *manifests) Fetch(ctx context.Context, address string) ([]byte, error) {
	shown := outbound.Shown(address)
	u, err := url.Parse(address)
	if err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "CNF definition file %s: it is no URL", shown)
	}
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "CNF definition file %s: it is no URL", shown)
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, unfetched(shown, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusOK:
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusTooManyRequests:
		return nil, lcm.Errorf(lcm.KindRetryable, "CNF definition file %s: the server answered %s", shown, resp.Status)
	default:
		return nil, lcm.Errorf(lcm.KindTerminal, "CNF definition file %s: the server answered %s", shown, resp.Status)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, unfetched(shown, err)
	}
	return raw, nil
}

// unfetched classes why a manifest cannot be fetched.
func unfetched(shown string, err error) error {
	kind := lcm.KindRetryable
	if errors.Is(err, outbound.ErrDenied) || errors.Is(err, outbound.ErrTooLarge) {
		kind = lcm.KindTerminal
	}
	return &lcm.Error{Kind: kind, Detail: fmt.Sprintf("CNF definition file %s cannot be fetched: %v", shown, err), Err: err}
}
