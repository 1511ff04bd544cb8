package httpapi

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/keystoneauth"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestBasic(t *testing.T) {
	f := newFake()
	h := f.handler(Config{Auth: NewBasic(map[string]BasicUser{"u": {Password: "p", ProjectID: "x"}, "nobody": {}})})
	for _, c := range []struct {
		user, password string
		status         int
	}{{"u", "p", 200}, {"u", "q", 401}, {"v", "p", 401}, {"", "", 401}, {"nobody", "", 401}} {
		r := httptest.NewRequest("GET", vi+"/"+known, nil)
		if c.user != "" {
			r.SetBasicAuth(c.user, c.password)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || (c.status == 401) != (w.Header().Get("WWW-Authenticate") == `Basic realm="vnfm", charset="UTF-8"`) {
			t.Errorf("%+v: %d %v", c, w.Code, w.Header())
		}
		if c.status == 401 {
			detail(t, w.Result())
		}
	}
	if f.scope.ProjectID != "x" || f.scope.Admin || f.scope.User != "u" {
		t.Errorf("scope %+v", f.scope)
	}
	if res := ask(t, h, "GET", "/", ""); res.StatusCode != 200 {
		t.Errorf("the versions: %d", res.StatusCode)
	}
	if res := ask(t, h, "GET", vm, ""); res.StatusCode != 401 || detail(t, res) == "" {
		t.Errorf("VIMs: %d", res.StatusCode)
	}
	if res := ask(t, h, "GET", "/healthz", ""); res.StatusCode != 200 {
		t.Errorf("health: %d", res.StatusCode)
	}
}

type validator struct {
	mu    sync.Mutex
	calls int
	id    keystoneauth.Identity
	err   error
	wait  chan struct{}
}

func (v *validator) Validate(context.Context, string) (keystoneauth.Identity, error) {
	v.mu.Lock()
	v.calls++
	v.mu.Unlock()
	if v.wait != nil {
		<-v.wait
	}
	return v.id, v.err
}

func TestKeystone(t *testing.T) {
	now := time.Unix(1000, 0)
	v := &validator{id: keystoneauth.Identity{UserName: "u", ProjectID: "p", Roles: []string{"member"}}}
	k := NewKeystone(v, KeystoneConfig{AuthURL: "http://k/v3", Now: func() time.Time { return now }})
	f := newFake()
	h := f.handler(Config{Auth: k})
	get := func(token string) int {
		t.Helper()
		var headers []string
		if token != "" {
			headers = []string{"X-Auth-Token: " + token}
		}
		res := ask(t, h, "GET", vi+"/"+known, "", headers...)
		if (res.StatusCode == 401) != (res.Header.Get("WWW-Authenticate") == `Keystone uri="http://k/v3"`) {
			t.Errorf("%d with %v", res.StatusCode, res.Header)
		}
		return res.StatusCode
	}
	if get("") != 401 || v.calls != 0 {
		t.Error("no token")
	}
	if first, again := get("t"), get("t"); first != 200 || again != 200 || v.calls != 1 || f.scope.ProjectID != "p" || f.scope.Admin {
		t.Errorf("cached: %d, %+v", v.calls, f.scope)
	}
	now = now.Add(61 * time.Second)
	v.id.Roles = []string{"admin"}
	if get("t") != 200 || v.calls != 2 || !f.scope.Admin {
		t.Errorf("a minute later: %d, %+v", v.calls, f.scope)
	}
	v.id.ExpiresAt = now.Add(time.Second)
	if get("short") != 200 || v.calls != 3 {
		t.Error("a token about to expire")
	}
	now = now.Add(time.Second)
	if get("short") != 401 || v.calls != 4 {
		t.Error("an expired token")
	}
	v.err = lcm.Errorf(lcm.KindUnauthorized, "no")
	if get("bad") != 401 {
		t.Error("an unknown token")
	}
	v.err = lcm.Errorf(lcm.KindUnavailable, "Keystone is away")
	if get("other") != 503 {
		t.Error("Keystone is away")
	}
	v.err, v.id = nil, keystoneauth.Identity{UserID: "u", Roles: []string{"member"}}
	if get("unscoped") != 403 {
		t.Error("a token without a project")
	}
	v.id = keystoneauth.Identity{UserID: "u", ProjectID: "p", Roles: []string{"dancer"}}
	if get("roleless") != 403 {
		t.Error("a token without a role")
	}
}

// Many requests with one new token ask Keystone once.
func TestKeystoneTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &validator{id: keystoneauth.Identity{ProjectID: "p", Roles: []string{"member"}}, wait: make(chan struct{})}
		k := NewKeystone(v, KeystoneConfig{AuthURL: "http://k"})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				r := httptest.NewRequest("GET", "/", nil)
				r.Header.Set("X-Auth-Token", "t")
				if s, err := k.Authenticate(r); err != nil || s.ProjectID != "p" {
					t.Errorf("%+v, %v", s, err)
				}
			})
		}
		synctest.Wait()
		close(v.wait)
		wg.Wait()
		if v.calls != 1 {
			t.Errorf("%d calls", v.calls)
		}
	})
}

func TestMaxInFlight(t *testing.T) {
	v := &validator{id: keystoneauth.Identity{ProjectID: "p", Roles: []string{"member"}}, wait: make(chan struct{})}
	h := newFake().handler(Config{MaxInFlight: 1, Auth: NewKeystone(v, KeystoneConfig{AuthURL: "http://k"})})
	synctest.Test(t, func(t *testing.T) {
		v.wait = make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if res := ask(t, h, "GET", vi, "", "X-Auth-Token: t"); res.StatusCode != 200 {
				t.Errorf("the first: %d", res.StatusCode)
			}
		})
		synctest.Wait()
		res := ask(t, h, "GET", vi, "", "X-Auth-Token: t")
		if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
			t.Errorf("the second: %d", res.StatusCode)
		}
		if res := ask(t, h, "GET", "/healthz", ""); res.StatusCode != 200 {
			t.Errorf("health: %d", res.StatusCode)
		}
		close(v.wait)
		wg.Wait()
	})
}
