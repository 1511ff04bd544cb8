// Package nfvotest is an NFVO for tests: it grants (SOL003 v2.6.1 §9) and has VNF packages (SOL003 v2.6.1 §10), well and
// badly, and holds what it is asked against the OpenAPI documents.
package nfvotest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// NFVO is a running NFVO on loopback. Its methods are safe for concurrent use.
type NFVO struct {
	t   testing.TB
	srv *httptest.Server

	mu       sync.Mutex
	admit    func(*http.Request) bool
	manner   Manner
	failures int // answers 500 that are still to be given
	requests []sol003.GrantRequest
	grants   map[string]*pending // by id
	looks    int
	packages []*pkg
	listings int
}

// Start runs an NFVO that grants everything at once and has no packages. It stops when the test ends. A request that does
// not keep to the OpenAPI documents fails the test.
func Start(t testing.TB) *NFVO {
	t.Helper()
	n := &NFVO{t: t, grants: map[string]*pending{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /grant/v1/grants", n.postGrant)
	mux.HandleFunc("GET /grant/v1/grants/{id}", n.getGrant)
	mux.HandleFunc("GET /vnfpkgm/v1/vnf_packages", n.listPackages)
	mux.HandleFunc("GET /vnfpkgm/v1/vnf_packages/{id}", n.getPackage)
	mux.HandleFunc("GET /vnfpkgm/v1/vnf_packages/{id}/package_content", n.getContent)
	n.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		admit := n.admit
		n.mu.Unlock()
		if admit != nil && !admit(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="nfvo"`)
			problem(w, http.StatusUnauthorized, "who are you?")
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(n.srv.Close)
	return n
}

// URL is the NFVO's root.
func (n *NFVO) URL() string { return n.srv.URL }

// GrantURL is the base of the grant API.
func (n *NFVO) GrantURL() string { return n.srv.URL + "/grant/v1" }

// PackagesURL is the base of the package management API.
func (n *NFVO) PackagesURL() string { return n.srv.URL + "/vnfpkgm/v1" }

// Admit has requests answered 401 that the function does not let pass.
func (n *NFVO) Admit(admit func(*http.Request) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.admit = admit
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(sol003.ProblemDetails{Status: status, Title: http.StatusText(status), Detail: detail})
}
