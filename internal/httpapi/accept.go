package httpapi

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// maxURI is how long a request's URI may be, in bytes: half of what the whole header may be by default.
const maxURI = 32 << 10

// short refuses requests whose URI is too long (SOL013 v2.6.1 §6.4: 414).
func (s *server) short(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.RequestURI) > maxURI {
			e := lcm.Errorf(lcm.KindInvalid, "The URI is longer than %d bytes.", maxURI)
			e.Status = http.StatusRequestURITooLong
			s.fail(w, r, e)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// jsonOnly are the content types of what an API of JSON answers.
var jsonOnly = []string{"application/json", "application/problem+json"}

// acceptable refuses requests whose caller does not accept what there is to answer: JSON (SOL013 v2.6.1 §6.4: 406).
func (s *server) acceptable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if given := strings.Join(r.Header.Values("Accept"), ","); !accepts(given, jsonOnly) {
			s.fail(w, r, lcm.Errorf(lcm.KindNotAccepted, "Accept header %s is invalid, it should be one of these values: application/json", clip(given)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// acceptablePackages is acceptable for the resources of the package API that are JSON. The files of a package have their
// own content types, and the clients name those of a package with other requests too.
func (s *server) acceptablePackages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch chi.RouteContext(r.Context()).RoutePattern() {
		case packages.path, packages.path + "/{vnfPkgId}":
			given := strings.Join(r.Header.Values("Accept"), ",")
			if !accepts(given, append([]string{"application/zip", "text/plain"}, jsonOnly...)) {
				s.fail(w, r, lcm.Errorf(lcm.KindNotAccepted, "Accept header %s is invalid, it should be one of these values: application/json", clip(given)))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// accepts tells whether an Accept header (RFC 9110 §12.5.1) lets one of the content types pass. None lets all pass, and so
// does one that cannot be read.
func accepts(header string, types []string) bool {
	understood := false
	for part := range strings.SplitSeq(header, ",") {
		t, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		understood = true
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q <= 0 {
			continue
		}
		whole, _, _ := strings.Cut(t, "/")
		if t == "*/*" || t == whole+"/*" && slices.ContainsFunc(types, func(known string) bool { return strings.HasPrefix(known, whole+"/") }) ||
			slices.Contains(types, t) {
			return true
		}
	}
	return !understood
}
