package httpapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// neededRole returns the role that an action takes: readers read, operators change. Who did what is for those who are
// answerable for it; a VIM is put to work, as by a verification now, by operators.
func neededRole(method, route string) lcm.Role {
	switch {
	case route == auditEvents.path || route == verifyPath:
		return lcm.RoleOperator
	case method == http.MethodGet || method == http.MethodHead:
		return lcm.RoleReader
	default:
		return lcm.RoleOperator
	}
}

// authorized refuses what the caller's role does not allow: the one place where roles are looked at. Whose resources a
// caller may see is decided by the store's queries.
func (s *server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := chi.RouteContext(r.Context()).RoutePattern()
		role, needed := callOf(r.Context()).scope.Role, neededRole(r.Method, route)
		if role >= needed {
			next.ServeHTTP(w, r)
			return
		}
		err := lcm.Errorf(lcm.KindForbidden, "The role %s may not %s %s; it takes the role %s.", role, r.Method, route, needed)
		if _, bearer := credentials(r, "Bearer"); bearer {
			challenges := bearerError("insufficient_scope", err.Detail)
			s.fail(w, r, &Unauthorized{Challenges: challenges, Detail: err.Detail, Kind: lcm.KindForbidden})
			return
		}
		s.fail(w, r, err)
	})
}
