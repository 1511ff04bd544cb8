package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Authenticator tells on whose behalf a request is made. An *Unauthorized error is answered with its challenges; any
// other error by its kind.
type Authenticator interface {
	Authenticate(r *http.Request) (lcm.Scope, error)
}

// Unauthorized says that the caller is not known (RFC 9110 §15.5.2) or, with another Kind, that the credentials
// themselves are at fault (RFC 6750 §3.1).
type Unauthorized struct {
	Challenges []string // values of WWW-Authenticate
	Detail     string   // what the caller is told
	Absent     bool     // the request brings no credentials of this kind: another way of authentication may know the caller
	Kind       lcm.Kind // lcm.KindUnauthorized when empty
	Cause      error    // for logs
}

// Error returns the detail.
func (u *Unauthorized) Error() string { return u.Detail }

// Unwrap returns the cause.
func (u *Unauthorized) Unwrap() error { return u.Cause }

// As makes an Unauthorized a classed error.
func (u *Unauthorized) As(target any) bool {
	e, ok := target.(**lcm.Error)
	if ok {
		kind := u.Kind
		if kind == "" {
			kind = lcm.KindUnauthorized
		}
		*e = &lcm.Error{Kind: kind, Detail: u.Detail}
	}
	return ok
}

// None lets every request be the administrator's of one project, whatever token it brings.
type None struct {
	ProjectID string // "default" when empty
}

// anonymous is the user of a server without authentication.
const anonymous = "anonymous"

// Authenticate implements Authenticator.
func (n None) Authenticate(*http.Request) (lcm.Scope, error) {
	if n.ProjectID == "" {
		n.ProjectID = "default"
	}
	return granted(lcm.Scope{ProjectID: n.ProjectID, User: anonymous}, lcm.RoleAdmin), nil
}

// granted returns the scope with a role; administrators see every project.
func granted(s lcm.Scope, role lcm.Role) lcm.Scope {
	s.Role, s.Admin = role, role == lcm.RoleAdmin
	return s
}

// Any knows callers in any of several ways. The credentials that a request brings decide which is asked; when it brings
// none, the answer lists the challenges of all ways.
type Any []Authenticator

// Authenticate implements Authenticator.
func (a Any) Authenticate(r *http.Request) (lcm.Scope, error) {
	var refusal *Unauthorized
	var challenges []string
	for _, way := range a {
		if _, connection := way.(MutualTLS); connection && refusal != nil && !refusal.Absent {
			continue // what the request itself has named is refused: the connection's certificate does not stand in
		}
		scope, err := way.Authenticate(r)
		if err == nil {
			return scope, nil
		}
		var u *Unauthorized
		if !errors.As(err, &u) {
			return lcm.Scope{}, err
		}
		if u.Kind != "" && u.Kind != lcm.KindUnauthorized {
			return lcm.Scope{}, err
		}
		challenges = append(challenges, u.Challenges...)
		if refusal == nil || refusal.Absent && !u.Absent {
			refusal = u
		}
	}
	if refusal == nil {
		return lcm.Scope{}, &Unauthorized{Detail: needsAuthentication}
	}
	all := *refusal
	all.Challenges = challenges
	return lcm.Scope{}, &all
}

const needsAuthentication = "The request you have made requires authentication."

// credentials returns the credentials of an Authorization header of the scheme (RFC 9110 §11.6.2), compared without
// case; ok is false when the header is of another scheme or not there.
func credentials(r *http.Request, scheme string) (value string, ok bool) {
	for _, header := range r.Header.Values("Authorization") {
		given, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
		if strings.EqualFold(given, scheme) {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}
