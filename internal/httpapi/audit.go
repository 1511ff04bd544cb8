package httpapi

import (
	"context"
	"iter"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Requests is the record of requests: the audit trail and the Idempotency-Keys. What a request has brought about is
// recorded by the store itself, from the lcm.Request in the context, in the transaction that brings it about.
type Requests interface {
	// AuditEvents lists AuditEvents: of every project for administrators, else of the scope's.
	AuditEvents(ctx context.Context, s lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error]
	// Refused records that a request was refused with the HTTP status. It returns at once.
	Refused(r *lcm.Request, status int)
	// Repeated looks whether the request's key has had its effect already: a *lcm.RepeatedError if so, invalid with status
	// 422 if another request had it, nil if none had.
	Repeated(ctx context.Context, r *lcm.Request) error
}

// auditEvents are the entries of the audit trail; of single ones there is no resource.
var auditEvents = &resource{path: "/vnfm/v1/audit_events", schema: "AuditEvent", strict: true}

// audited makes known to whoever stores a request's effect whose request it is.
func (s *server) audited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			c := callOf(r.Context())
			c.request = &lcm.Request{ID: c.id, Action: r.Method + " " + chi.RouteContext(r.Context()).RoutePattern(), Address: s.address(r)}
			r = r.WithContext(lcm.WithRequest(r.Context(), c.request))
			c.req = r
		}
		next.ServeHTTP(w, r)
	})
}

// refused records a request that was to change something and was not let.
func (s *server) refused(r *http.Request, status int) {
	if status == http.StatusUnauthorized || status == http.StatusTooManyRequests {
		return // nobody in particular, and as often as they like: the log and the metrics tell of it
	}
	c, ok := r.Context().Value(callKey{}).(*call)
	if ok && c.request != nil && s.cfg.Requests != nil {
		s.cfg.Requests.Refused(c.request, status)
	}
}

// auditRoutes are those of the audit trail, described by vnfm.yaml.
func (s *server) auditRoutes(r chi.Router) {
	if s.cfg.Requests == nil {
		return
	}
	r.Get(auditEvents.path, func(w http.ResponseWriter, r *http.Request) {
		answer, err := s.list(r.Context(), auditEvents, s.cfg.Requests.AuditEvents)
		if err == nil {
			err = answer.write(w)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}
