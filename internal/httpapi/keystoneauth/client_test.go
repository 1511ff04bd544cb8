package keystoneauth

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// keystone is an Identity API that gives out the tokens own1, own2, … and takes the last only.
type keystone struct {
	logins, asks int
	status       int // answered to questions when set
	body         string
	refuse       bool
}

func (k *keystone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last := "own" + string(rune('0'+k.logins))
	switch {
	case r.URL.Path != "/identity/v3/auth/tokens":
		w.WriteHeader(http.StatusTeapot)
	case r.Method == http.MethodPost:
		var login struct {
			Auth struct {
				Identity struct {
					Password struct {
						User struct{ Name, Password string }
					}
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&login); err != nil || k.refuse || login.Auth.Identity.Password.User.Password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		k.logins++
		w.Header().Set("X-Subject-Token", "own"+string(rune('0'+k.logins)))
		w.WriteHeader(http.StatusCreated)
	case r.Header.Get("X-Auth-Token") != last:
		w.WriteHeader(http.StatusUnauthorized)
	case k.status != 0:
		w.WriteHeader(k.status)
	default:
		k.asks++
		if r.Header.Get("X-Subject-Token") != "good" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(k.body))
	}
}

func TestValidate(t *testing.T) {
	k := &keystone{body: `{"token":{"expires_at":"2026-11-20T17:00:00.000000Z","user":{"id":"u1","name":"u"},"project":{"id":"p1"},"roles":[{"id":"1","name":"admin"},{"name":"member"}]}}`}
	srv := httptest.NewServer(k)
	defer srv.Close()
	c := New(Config{AuthURL: srv.URL + "/identity/", Username: "vnfm", Password: "secret", ProjectName: "service"})
	ctx := t.Context()
	got, err := c.Validate(ctx, "good")
	want := Identity{UserID: "u1", UserName: "u", ProjectID: "p1", Roles: []string{"admin", "member"}, ExpiresAt: time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, token := range []string{"bad", "two\nlines"} {
		if _, err := c.Validate(ctx, token); !lcm.Is(err, lcm.KindUnauthorized) {
			t.Errorf("%q: %v", token, err)
		}
	}
	if k.logins != 1 {
		t.Errorf("%d log-ins", k.logins)
	}
	k.logins++ // our token is gone
	if _, err := c.Validate(ctx, "good"); err != nil || k.logins != 3 {
		t.Errorf("after our token is gone: %v, %d log-ins", err, k.logins)
	}
	k.status = http.StatusInternalServerError
	if _, err := c.Validate(ctx, "good"); !lcm.Is(err, lcm.KindUnavailable) {
		t.Errorf("500: %v", err)
	}
	k.status = http.StatusUnauthorized
	if _, err := c.Validate(ctx, "good"); !lcm.Is(err, lcm.KindUnavailable) {
		t.Errorf("401 for ever: %v", err)
	}
	k.status, k.body = 0, "<html>"
	if _, err := c.Validate(ctx, "good"); !lcm.Is(err, lcm.KindUnavailable) {
		t.Errorf("no JSON: %v", err)
	}
	k.refuse = true
	c = New(Config{AuthURL: srv.URL + "/identity/v3", Username: "vnfm", Password: "wrong"})
	if _, err := c.Validate(ctx, "good"); !lcm.Is(err, lcm.KindUnavailable) {
		t.Errorf("refused: %v", err)
	}
	srv.Close()
	if _, err := c.Validate(ctx, "good"); !lcm.Is(err, lcm.KindUnavailable) {
		t.Errorf("away: %v", err)
	}
}
