package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// call is what is known of a request while it is served.
type call struct {
	id      string
	scope   lcm.Scope
	req     *http.Request // as routed
	header  http.Header   // of the response
	control *http.ResponseController
	raw     json.RawMessage // the JSON body, normalised
	tree    any             // the JSON body, decoded with json.Number
	request *lcm.Request    // of a request that may change something, else nil
}

type callKey struct{}

// callOf returns the request's call. It is there in every handler of this package.
func callOf(ctx context.Context) *call {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		panic("httpapi: a handler runs outside of its middleware")
	}
	return c
}

// recorder notes what is answered and sees to it that every response has a Content-Type.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	set    func(time.Time) error // the deadline of writes
	stall  time.Duration
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	// Piece by piece: whoever takes something has time again, whoever takes nothing must not keep us.
	written := 0
	for {
		piece := p[written:min(len(p), written+writePiece)]
		extend(w.set, w.stall)
		n, err := w.ResponseWriter.Write(piece)
		written += n
		w.bytes += int64(n)
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// writePiece is how much of an answer is written at a time.
const writePiece = 256 << 10

// Unwrap serves http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// track gives the request its id and its call, and logs and observes its end.
func (s *server) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		begun := s.cfg.Now()
		c := &call{id: "req-" + s.cfg.NewID()}
		w := &recorder{ResponseWriter: rw, set: http.NewResponseController(rw).SetWriteDeadline, stall: s.cfg.Stall}
		_ = w.set(time.Time{}) // what is left of the connection's last answer
		w.Header().Set("X-Openstack-Request-Id", c.id)
		routes := chi.NewRouteContext()
		ctx := context.WithValue(r.Context(), callKey{}, c)
		r = r.WithContext(context.WithValue(ctx, chi.RouteCtxKey, routes))
		c.req = r
		defer func() {
			elapsed := s.cfg.Now().Sub(begun)
			if w.status == 0 {
				w.status = http.StatusOK
			}
			if s.cfg.Log.Enabled(r.Context(), slog.LevelInfo) {
				s.cfg.Log.LogAttrs(r.Context(), slog.LevelInfo, "request",
					append(requestAttrs(r, w.status, nil), slog.Int64("bytes", w.bytes), slog.Duration("took", elapsed))...)
			}
			if s.cfg.Observe != nil {
				s.cfg.Observe(Observation{Method: r.Method, Route: routes.RoutePattern(), Status: w.status, Bytes: w.bytes, Duration: elapsed})
			}
		}()
		s.recovered(w, r, next)
	})
}

// recovered serves the request; a panic is answered 500 or, when the answer has begun, cuts the connection.
func (s *server) recovered(w *recorder, r *http.Request, next http.Handler) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler { //nolint:errorlint // net/http panics with this very value
			panic(v)
		}
		s.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "panic", append(requestAttrs(r, http.StatusInternalServerError, fmt.Errorf("panic: %v", v)),
			slog.String("stack", string(debug.Stack())))...)
		if w.status != 0 {
			w.status = http.StatusInternalServerError
			panic(http.ErrAbortHandler)
		}
		writeProblem(w, r, problemOf(nil))
	}()
	next.ServeHTTP(w, r)
}

func requestAttrs(r *http.Request, status int, err error) []slog.Attr {
	attrs := []slog.Attr{slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", status)}
	if c, ok := r.Context().Value(callKey{}).(*call); ok {
		attrs = append(attrs, slog.String("request", c.id), slog.Any("caller", c.scope))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	return attrs
}

func errorLevel(status int) slog.Level {
	if status == http.StatusServiceUnavailable {
		return slog.LevelWarn
	}
	return slog.LevelError
}

// limited serves at most MaxInFlight requests at a time.
func (s *server) limited(next http.Handler) http.Handler {
	if s.cfg.MaxInFlight <= 0 {
		return next
	}
	slots := make(chan struct{}, s.cfg.MaxInFlight)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			s.fail(w, r, lcm.Errorf(lcm.KindUnavailable, "The server is serving as many requests as it may; try again later."))
		}
	})
}

// timely gives a JSON body a time to come in, however slowly it trickles. Uploads of packages take as long as something
// comes.
func (s *server) timely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := callOf(r.Context()); r.ContentLength != 0 && chi.RouteContext(r.Context()).RoutePattern() != contentRoute {
			extend(c.control.SetReadDeadline, s.cfg.BodyTimeout)
		}
		next.ServeHTTP(w, r)
	})
}

const contentRoute = "/vnfpkgm/v1/vnf_packages/{vnfPkgId}/package_content"

// complete lets a request whose body is there take as long as it takes: after the body's deadline net/http would take
// the caller for gone. A body that nobody has read keeps its deadline.
func (s *server) complete(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := callOf(r.Context()); c.raw != nil {
			_ = c.control.SetReadDeadline(time.Time{}) // as extend
		}
		next.ServeHTTP(w, r)
	})
}

// withoutSuffix routes /v1.0/….json as /v1.0/….
func withoutSuffix(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if legacy(r) && strings.HasSuffix(r.URL.Path, ".json") {
			u := *r.URL
			u.Path, u.RawPath = strings.TrimSuffix(u.Path, ".json"), strings.TrimSuffix(u.RawPath, ".json")
			copied := *r
			copied.URL = &u
			r = &copied
		}
		next.ServeHTTP(w, r)
	})
}

var knownMethods = []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut}

// notAllowed answers a known path with another method than it has.
func (s *server) notAllowed(router chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.RawPath
		if path == "" {
			path = r.URL.Path
		}
		allowed := make([]string, 0, len(knownMethods))
		for _, m := range knownMethods {
			if router.Match(chi.NewRouteContext(), m, path) {
				allowed = append(allowed, m)
			}
		}
		slices.Sort(allowed)
		w.Header().Set("Allow", strings.Join(allowed, ","))
		e := lcm.Errorf(lcm.KindInvalid, "The resource has no method %s; it has %s.", r.Method, strings.Join(allowed, ", "))
		e.Status = http.StatusMethodNotAllowed
		s.fail(w, r, e)
	}
}

func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, lcm.Errorf(lcm.KindNotFound, "The resource could not be found."))
}

func randomUUID() string { return uuid.NewString() }

func randomKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return key
}

// extend puts off the time after which a connection that stands still is given up. A connection that cannot do this, as
// in some tests, has no such time.
func extend(set func(time.Time) error, by time.Duration) { _ = set(time.Now().Add(by)) }
