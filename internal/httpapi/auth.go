package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/keystoneauth"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Authenticator tells on whose behalf a request is made. An *Unauthorized error is answered 401 with its challenge; any
// other error by its kind.
type Authenticator interface {
	Authenticate(r *http.Request) (lcm.Scope, error)
}

// Unauthorized says that the caller is not known (RFC 9110 §15.5.2).
type Unauthorized struct {
	Challenge string // the WWW-Authenticate header's value
	Detail    string // what the caller is told
}

// Error returns the detail.
func (u *Unauthorized) Error() string { return u.Detail }

// As makes an Unauthorized a classed error.
func (u *Unauthorized) As(target any) bool {
	e, ok := target.(**lcm.Error)
	if ok {
		*e = &lcm.Error{Kind: lcm.KindUnauthorized, Detail: u.Detail}
	}
	return ok
}

// None lets every request be the administrator's of one project, whatever token it brings.
type None struct {
	ProjectID string // "default" when empty
}

// Authenticate implements Authenticator.
func (n None) Authenticate(*http.Request) (lcm.Scope, error) {
	if n.ProjectID == "" {
		n.ProjectID = "default"
	}
	return lcm.Scope{ProjectID: n.ProjectID, Admin: true, User: "anonymous"}, nil
}

// BasicUser is a caller who is known by name and password.
type BasicUser struct {
	Password  lcm.Secret
	ProjectID string
	Admin     bool
}

// Basic knows callers by HTTP basic authentication (RFC 7617).
type Basic struct {
	Users map[string]BasicUser
}

// Authenticate implements Authenticator. It takes the same time for an unknown user as for a wrong password.
func (b Basic) Authenticate(r *http.Request) (lcm.Scope, error) {
	name, password, ok := r.BasicAuth()
	user, known := b.Users[name]
	given, want := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(user.Password.Reveal()))
	if same := subtle.ConstantTimeCompare(given[:], want[:]) == 1; !ok || !known || !same || user.Password.Reveal() == "" {
		return lcm.Scope{}, &Unauthorized{Challenge: `Basic realm="vnfm", charset="UTF-8"`, Detail: "The user or the password is wrong."}
	}
	return lcm.Scope{ProjectID: user.ProjectID, Admin: user.Admin, User: name}, nil
}

// TokenValidator asks who holds a Keystone token. An *lcm.Error of kind unauthorized: nobody.
type TokenValidator interface {
	Validate(ctx context.Context, token string) (keystoneauth.Identity, error)
}

// maxTokenAge is how long a token's validation may be believed.
const maxTokenAge = time.Minute

// maxTokens limits the validations that are kept.
const maxTokens = 10000

// Keystone knows callers by a Keystone token in X-Auth-Token. A validation is believed for up to a minute, and not
// beyond the token's expiry. Make one with NewKeystone.
type Keystone struct {
	validator TokenValidator
	challenge string
	adminRole string
	now       func() time.Time

	flights singleflight.Group
	mu      sync.Mutex
	known   map[[sha256.Size]byte]knownToken
}

type knownToken struct {
	scope lcm.Scope
	until time.Time
}

// NewKeystone makes an Authenticator that has tokens validated by v. authURL is what an unknown caller is told to turn
// to; the role admin makes a caller see every project.
func NewKeystone(v TokenValidator, authURL string, now func() time.Time) *Keystone {
	if now == nil {
		now = time.Now
	}
	return &Keystone{validator: v, challenge: `Keystone uri="` + authURL + `"`, adminRole: "admin", now: now,
		known: make(map[[sha256.Size]byte]knownToken)}
}

// Authenticate implements Authenticator.
func (k *Keystone) Authenticate(r *http.Request) (lcm.Scope, error) {
	token := r.Header.Get("X-Auth-Token")
	if token == "" || len(token) > 8192 {
		return lcm.Scope{}, &Unauthorized{Challenge: k.challenge, Detail: "The request you have made requires authentication."}
	}
	key := sha256.Sum256([]byte(token))
	now := k.now()
	k.mu.Lock()
	hit, ok := k.known[key]
	k.mu.Unlock()
	if ok && now.Before(hit.until) {
		return hit.scope, nil
	}
	v, err, _ := k.flights.Do(string(key[:]), func() (any, error) {
		// Several callers may wait for this one validation: it ends by its own time, not by the first caller's.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 20*time.Second)
		defer cancel()
		return k.validate(ctx, key, token)
	})
	if lcm.Is(err, lcm.KindUnauthorized) {
		return lcm.Scope{}, &Unauthorized{Challenge: k.challenge, Detail: "The request you have made requires authentication."}
	}
	if err != nil {
		return lcm.Scope{}, err
	}
	return v.(lcm.Scope), nil //nolint:forcetypeassert // validate returns nothing else
}

func (k *Keystone) validate(ctx context.Context, key [sha256.Size]byte, token string) (lcm.Scope, error) {
	id, err := k.validator.Validate(ctx, token)
	if err != nil {
		return lcm.Scope{}, err
	}
	now := k.now()
	if !id.ExpiresAt.IsZero() && !now.Before(id.ExpiresAt) {
		return lcm.Scope{}, lcm.Errorf(lcm.KindUnauthorized, "the token has expired")
	}
	scope := lcm.Scope{ProjectID: id.ProjectID, User: id.UserName, Admin: slices.Contains(id.Roles, k.adminRole)}
	if scope.User == "" {
		scope.User = id.UserID
	}
	if scope.ProjectID == "" && !scope.Admin {
		return lcm.Scope{}, lcm.Errorf(lcm.KindForbidden, "The token is not scoped to a project.")
	}
	until := now.Add(maxTokenAge)
	if !id.ExpiresAt.IsZero() && id.ExpiresAt.Before(until) {
		until = id.ExpiresAt
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxTokens {
		for old, t := range k.known {
			if !now.Before(t.until) {
				delete(k.known, old)
			}
		}
		for old := range k.known { // all are fresh: make room, whichever goes
			if len(k.known) < maxTokens {
				break
			}
			delete(k.known, old)
		}
	}
	k.known[key] = knownToken{scope, until}
	return scope, nil
}
