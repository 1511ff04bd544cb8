package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestManifestsAreFetchedFromAllowedHosts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good.yaml":
			_, _ = w.Write([]byte("kind: Pod\n"))
		case "/large.yaml":
			_, _ = w.Write(make([]byte, 5000))
		case "/broken.yaml":
			w.WriteHeader(http.StatusBadGateway)
		case "/away.yaml":
			http.Redirect(w, r, "http://elsewhere.example.com/x.yaml", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	m, err := newManifests(config.Kubernetes{
		URIHosts: []string{"127.0.0.1"}, URIAllow: []string{"127.0.0.1"}, URISize: 4096, URITimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]lcm.Kind{
		server.URL + "/good.yaml": "", server.URL + "/large.yaml": lcm.KindTerminal, server.URL + "/broken.yaml": lcm.KindRetryable,
		server.URL + "/none.yaml": lcm.KindTerminal, server.URL + "/away.yaml": lcm.KindTerminal,
		"http://elsewhere.example.com/x.yaml": lcm.KindTerminal, "file:///etc/passwd": lcm.KindTerminal,
		strings.Replace(server.URL, "://", "://user:secret@", 1) + "/good.yaml": lcm.KindTerminal,
	} {
		raw, err := m.Fetch(t.Context(), path)
		switch {
		case want == "" && (err != nil || string(raw) != "kind: Pod\n"):
			t.Errorf("%s: %q, %v", path, raw, err)
		case want != "" && !lcm.Is(err, want):
			t.Errorf("%s: %v, want %s", path, err, want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("the error shows the password: %v", err)
		}
	}
	none, err := newManifests(config.Kubernetes{URIHosts: []string{"127.0.0.1"}, URISize: 4096, URITimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Fetch(t.Context(), server.URL+"/good.yaml"); !lcm.Is(err, lcm.KindTerminal) {
		t.Errorf("loopback: %v", err)
	}
}
