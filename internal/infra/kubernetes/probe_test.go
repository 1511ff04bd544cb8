package kubernetes

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPoints sees which calls are points, and what they are called.
func TestPoints(t *testing.T) {
	for _, c := range []struct{ method, path, want string }{
		{http.MethodPatch, "/apis/apps/v1/namespaces/ns/deployments/web", "call:PATCH:deployments:web"},
		{http.MethodPatch, "/apis/apps/v1/namespaces/ns/deployments/web/scale", "call:PATCH:deployments:web:scale"},
		{http.MethodPatch, "/api/v1/namespaces/ns", "call:PATCH:namespaces:ns"},
		{http.MethodDelete, "/api/v1/namespaces/ns/pods/web-1234", "call:DELETE:pods"},
		{http.MethodDelete, "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader", "call:DELETE:clusterroles:reader"},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", ""},
		{http.MethodGet, "/api/v1/namespaces/ns/pods/web-1234", ""},
		{http.MethodPost, "/token", ""},
	} {
		if got := pointOf(httptest.NewRequest(c.method, c.path, http.NoBody)); got != c.want {
			t.Errorf("%s %s is %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

// TestProbe sees that a call which changes something is told of before it and after it.
func TestProbe(t *testing.T) {
	var told []string
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told = append(told, "called") }))
	defer server.Close()
	d := New(Config{Probe: func(point string) { told = append(told, point) }}, nil)
	defer d.Close()
	client := &http.Client{Transport: d.probed(http.DefaultTransport)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, server.URL+"/api/v1/namespaces/ns/services/web", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if d := cmp.Diff([]string{"call:DELETE:services:web/before", "called", "call:DELETE:services:web/after"}, told); d != "" {
		t.Errorf("what was told (-want +got):\n%s", d)
	}
	if next := New(Config{}, nil).probed(http.DefaultTransport); next != http.DefaultTransport {
		t.Error("without a probe there is something between")
	}
}
