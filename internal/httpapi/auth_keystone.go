package httpapi

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/keystoneauth"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// TokenValidator asks who holds a Keystone token. An *lcm.Error of kind unauthorized: nobody.
type TokenValidator interface {
	Validate(ctx context.Context, token string) (keystoneauth.Identity, error)
}

// maxTokenAge is how long a token's validation may be believed.
const maxTokenAge = time.Minute

// maxTokens limits the validations that are kept.
const maxTokens = 10000

// KeystoneConfig says how Keystone's tokens are read.
type KeystoneConfig struct {
	// AuthURL is what an unknown caller is told to turn to.
	AuthURL string
	// Roles maps Keystone's roles to ours; of several the highest counts. By default admin is RoleAdmin, member RoleOperator
	// and reader RoleReader.
	Roles map[string]lcm.Role
	// Bearer lets a token come as "Authorization: Bearer" too (SOL013 v2.6.1 §8.3.4).
	Bearer bool
	// Now tells the time; time.Now by default.
	Now func() time.Time
}

// Keystone knows callers by a Keystone token in X-Auth-Token. A validation is believed for up to a minute, and not
// beyond the token's expiry. Make one with NewKeystone.
type Keystone struct {
	cfg        KeystoneConfig
	validator  TokenValidator
	challenges []string

	flights singleflight.Group
	mu      sync.Mutex
	known   map[[sha256.Size]byte]knownToken
}

type knownToken struct {
	scope lcm.Scope
	until time.Time
}

// NewKeystone makes an Authenticator that has tokens validated by v.
func NewKeystone(v TokenValidator, cfg KeystoneConfig) *Keystone {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Roles == nil {
		cfg.Roles = map[string]lcm.Role{"admin": lcm.RoleAdmin, "member": lcm.RoleOperator, "reader": lcm.RoleReader}
	}
	k := &Keystone{
		cfg: cfg, validator: v, challenges: []string{`Keystone uri="` + cfg.AuthURL + `"`},
		known: make(map[[sha256.Size]byte]knownToken),
	}
	if cfg.Bearer {
		k.challenges = append(k.challenges, bearerChallenge)
	}
	return k
}

// token returns the token that a request brings, "" for none.
func (k *Keystone) token(r *http.Request) string {
	if token := r.Header.Get("X-Auth-Token"); token != "" || !k.cfg.Bearer {
		return token
	}
	token, _ := credentials(r, "Bearer")
	return token
}

// Authenticate implements Authenticator.
func (k *Keystone) Authenticate(r *http.Request) (lcm.Scope, error) {
	token := k.token(r)
	refused := &Unauthorized{Challenges: k.challenges, Detail: needsAuthentication, Absent: token == ""}
	if token == "" || len(token) > 8192 {
		return lcm.Scope{}, refused
	}
	key := sha256.Sum256([]byte(token))
	now := k.cfg.Now()
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
		refused.Cause = err
		return lcm.Scope{}, refused
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
	now := k.cfg.Now()
	if !id.ExpiresAt.IsZero() && !now.Before(id.ExpiresAt) {
		return lcm.Scope{}, lcm.Errorf(lcm.KindUnauthorized, "the token has expired")
	}
	role, ok := highest(id.Roles, k.cfg.Roles)
	if !ok {
		return lcm.Scope{}, lcm.Errorf(lcm.KindForbidden, "The token gives no role that this server knows.")
	}
	scope := granted(lcm.Scope{ProjectID: id.ProjectID, User: id.UserName}, role)
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

// highest returns the highest role that the names stand for; ok is false when they stand for none.
func highest(names []string, roles map[string]lcm.Role) (best lcm.Role, ok bool) {
	for _, name := range names {
		if role, known := roles[name]; known {
			best, ok = max(best, role), true
		}
	}
	return best, ok
}
