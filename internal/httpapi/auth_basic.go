package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/crypto/bcrypt"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// BasicUser is a caller who is known by name and password.
type BasicUser struct {
	Password  lcm.Secret // in clear, or a bcrypt hash ("$2b$…"); with none the user is nobody
	ProjectID string
	Role      lcm.Role
}

// Basic knows callers by HTTP basic authentication (RFC 7617). Make one with NewBasic.
type Basic struct {
	users map[string]BasicUser
	dummy []byte        // a hash that is compared for users that there are none of
	slots chan struct{} // bcrypt at a time
	key   []byte        // of the digests in seen

	mu   sync.Mutex
	seen map[string][sha256.Size]byte // by user: the password that was last found to meet the hash, digested
}

const basicChallenge = `Basic realm="vnfm", charset="UTF-8"`

// NewBasic makes an Authenticator of the users by name.
func NewBasic(users map[string]BasicUser) *Basic {
	b := &Basic{users: users, slots: make(chan struct{}, runtime.GOMAXPROCS(0)), key: randomKey(), seen: make(map[string][sha256.Size]byte)}
	cost := 0
	for _, u := range users {
		if c, err := bcrypt.Cost([]byte(u.Password.Reveal())); err == nil {
			cost = max(cost, c)
		}
	}
	if cost > 0 {
		if hash, err := bcrypt.GenerateFromPassword(b.key, cost); err == nil {
			b.dummy = hash
		}
	}
	return b
}

// Authenticate implements Authenticator. It takes the same time for an unknown user as for a wrong password.
func (b *Basic) Authenticate(r *http.Request) (lcm.Scope, error) {
	refused := &Unauthorized{Challenges: []string{basicChallenge}, Detail: "The user or the password is wrong."}
	if _, given := credentials(r, "Basic"); !given {
		refused.Absent, refused.Detail = true, needsAuthentication
		return lcm.Scope{}, refused
	}
	name, password, ok := r.BasicAuth()
	user, known := b.users[name]
	if same, err := b.same(r, name, user, password); err != nil {
		return lcm.Scope{}, err
	} else if !ok || !known || !same || user.Password == "" {
		return lcm.Scope{}, refused
	}
	return granted(lcm.Scope{ProjectID: user.ProjectID, User: name}, user.Role), nil
}

// same tells whether the password is the user's.
func (b *Basic) same(r *http.Request, name string, user BasicUser, password string) (bool, error) {
	want := user.Password.Reveal()
	hash := []byte(want)
	if !strings.HasPrefix(want, "$2") {
		given, wanted := b.digest(password), b.digest(want)
		if same := subtle.ConstantTimeCompare(given[:], wanted[:]) == 1; same || b.dummy == nil || want != "" {
			return same, nil
		}
		hash = b.dummy // nobody's: as slow as somebody's
	}
	digest := b.digest(name + "\x00" + password)
	b.mu.Lock()
	last, seen := b.seen[name]
	b.mu.Unlock()
	if seen && subtle.ConstantTimeCompare(last[:], digest[:]) == 1 {
		return true, nil
	}
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-r.Context().Done():
		return false, r.Context().Err()
	}
	err := bcrypt.CompareHashAndPassword(hash, []byte(password))
	switch {
	case errors.Is(err, bcrypt.ErrMismatchedHashAndPassword):
		return false, nil
	case err != nil:
		return false, lcm.Errorf(lcm.KindInternal, "the password hash of user %s cannot be read: %w", name, err)
	case want == "":
		return false, nil
	}
	b.mu.Lock()
	b.seen[name] = digest
	b.mu.Unlock()
	return true, nil
}

// digest hides a password's length and content from whoever times the comparison or reads the memory.
func (b *Basic) digest(text string) (out [sha256.Size]byte) {
	mac := hmac.New(sha256.New, b.key)
	_, _ = mac.Write([]byte(text)) // never fails (hash.Hash)
	copy(out[:], mac.Sum(nil))
	return out
}
