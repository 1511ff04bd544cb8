package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/vimsapi"
	"github.com/seed-f1a0ccf1/vnfm/api/openapi/vnflcmapi"
	"github.com/seed-f1a0ccf1/vnfm/api/openapi/vnfpkgmapi"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

type server struct {
	cfg      Config
	deps     Deps
	endpoint origin // the Config's EndpointURL and GrantsURL
	callers  *callers
}

// New makes the handler of all APIs. It panics if a Dep is missing.
func New(cfg Config, deps Deps) http.Handler {
	if deps.LCM == nil || deps.Reader == nil || deps.Packages == nil || deps.VIMs == nil || deps.Subscriptions == nil {
		panic("httpapi: New needs all of its Deps")
	}
	s := &server{cfg: cfg.withDefaults(), deps: deps}
	s.callers = newCallers(s.cfg.RequestsPerSecond, s.cfg.Burst)
	s.endpoint = origin{here: quoted(s.cfg.EndpointURL), grants: quoted(s.cfg.GrantsURL)}
	schemas() // read now, not with the first request

	router := chi.NewRouter()
	router.NotFound(s.notFound)
	router.MethodNotAllowed(s.notAllowed(router))
	s.routes(router)

	api := s.limited(s.short(withoutSuffix(router)))
	return s.track(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			s.operational(w, r, s.cfg.Live)
		case "/readyz":
			s.operational(w, r, s.cfg.Ready)
		case "/metrics":
			s.operational(w, r, s.cfg.Metrics)
		default:
			api.ServeHTTP(w, r)
		}
	}))
}

// quoted is a text as it stands inside a JSON string.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic("httpapi: a string always marshals: " + err.Error())
	}
	return string(raw[1 : len(raw)-1])
}

// operational serves what the operator's tools ask: it needs neither a caller nor a free slot.
func (s *server) operational(w http.ResponseWriter, r *http.Request, h http.Handler) {
	switch {
	case h == nil:
		s.notFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET,HEAD")
		e := lcm.Errorf(lcm.KindInvalid, "The resource has no method %s; it has GET, HEAD.", r.Method)
		e.Status = http.StatusMethodNotAllowed
		s.fail(w, r, e)
	default:
		h.ServeHTTP(w, r)
	}
}

func (s *server) routes(router chi.Router) {
	// What the generated code cannot read is the caller's fault.
	refuse := func(w http.ResponseWriter, r *http.Request, err error) {
		var classed *lcm.Error
		if !errors.As(err, &classed) && !lcm.Is(err, lcm.KindCanceled) {
			err = lcm.Errorf(lcm.KindInvalid, "Malformed request: %w", err)
		}
		s.fail(w, r, err)
	}
	// What every request of a known caller passes.
	admitted := []func(http.Handler) http.Handler{s.authorized, s.timely, s.prepared, s.complete, s.keyed}
	router.Group(func(r chi.Router) {
		r.Use(s.versioned(vnflcmVersion), s.noted, s.audited, s.authenticated, s.acceptable)
		r.Use(admitted...)
		strict := vnflcmapi.NewStrictHandlerWithOptions(vnflcm{s}, nil,
			vnflcmapi.StrictHTTPServerOptions{RequestErrorHandlerFunc: refuse, ResponseErrorHandlerFunc: s.fail})
		vnflcmapi.HandlerWithOptions(strict, vnflcmapi.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: refuse})
	})
	router.Group(func(r chi.Router) {
		r.Use(s.versioned(vnfpkgmVersion), s.noted, s.audited, s.authenticated, s.acceptablePackages)
		r.Use(admitted...)
		strict := vnfpkgmapi.NewStrictHandlerWithOptions(vnfpkgm{s}, nil,
			vnfpkgmapi.StrictHTTPServerOptions{RequestErrorHandlerFunc: refuse, ResponseErrorHandlerFunc: s.fail})
		vnfpkgmapi.HandlerWithOptions(strict, vnfpkgmapi.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: refuse})
		// OpenAPI has no path parameter that spans slashes.
		r.Get(packages.path+"/{vnfPkgId}/artifacts/*", func(w http.ResponseWriter, req *http.Request) {
			path, err := chi.URLParam(req, "*"), error(nil)
			if req.URL.RawPath != "" {
				path, err = url.PathUnescape(path)
			}
			if err != nil {
				refuse(w, req, err)
				return
			}
			strict.GetArtifact(w, req, chi.URLParam(req, "vnfPkgId"), path, vnfpkgmapi.GetArtifactParams{Range: req.Header.Get("Range")})
		})
	})
	router.Group(func(r chi.Router) {
		r.Use(s.noted, s.authenticated, s.authorized)
		s.auditRoutes(r)
		s.verifyRoutes(r)
	})
	legacyAPI := vims{s}
	strict := vimsapi.NewStrictHandlerWithOptions(legacyAPI, nil,
		vimsapi.StrictHTTPServerOptions{RequestErrorHandlerFunc: refuse, ResponseErrorHandlerFunc: s.fail})
	router.Group(func(r chi.Router) {
		r.Use(s.noted, s.audited, legacyAPI.authenticatedButVersions)
		r.Use(admitted...)
		vimsapi.HandlerWithOptions(strict, vimsapi.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: refuse})
	})
}

// noted keeps the request as the routes see it for what the generated code does not pass on.
func (s *server) noted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		c.req, c.header, c.control = r, w.Header(), http.NewResponseController(w)
		next.ServeHTTP(w, r)
	})
}
