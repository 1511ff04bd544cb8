package kubernetes

import (
	"net/http"
	"strings"
)

// probing tells of the calls that change something in a VIM, before and after each.
type probing struct {
	next  http.RoundTripper
	probe func(point string)
}

// probed has a transport tell the driver's Probe, when there is one.
func (d *Driver) probed(next http.RoundTripper) http.RoundTripper {
	if d.cfg.Probe == nil {
		return next
	}
	return &probing{next, d.cfg.Probe}
}

// RoundTrip implements http.RoundTripper.
func (p *probing) RoundTrip(req *http.Request) (*http.Response, error) {
	point := pointOf(req)
	if point == "" {
		return p.next.RoundTrip(req)
	}
	p.probe(point + "/before")
	resp, err := p.next.RoundTrip(req)
	p.probe(point + "/after")
	return resp, err
}

// CloseIdleConnections lets the HTTP client's method of that name reach the connections.
func (p *probing) CloseIdleConnections() { closeIdle(p.next) }

// pointOf names a call that changes something, "" of one that does not: "call:PATCH:deployments:web". Pods are not named, for
// most are called by chance.
func pointOf(req *http.Request) string {
	if req.Method == http.MethodGet || req.Method == http.MethodHead || strings.HasPrefix(req.URL.Path, "/apis/authorization.k8s.io/") {
		return ""
	}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch { // /api/VERSION/… or /apis/GROUP/VERSION/…
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return ""
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if parts[0] == pods.Resource {
		parts = parts[:1]
	}
	return "call:" + req.Method + ":" + strings.Join(parts, ":")
}
