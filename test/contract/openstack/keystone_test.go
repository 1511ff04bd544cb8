package openstack_test

import (
	"net/http"
	"testing"
	"time"
)

// TestLogin: what a login tells, and how a wrong one is refused.
func TestLogin(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		request := func(a account, scope any) doc {
			d := doc{"auth": doc{"identity": doc{"methods": []string{"password"}, "password": doc{"user": doc{
				"name": a.user, "password": a.password, "domain": doc{"name": "Default"},
			}}}}}
			if scope != nil {
				d["auth"].(doc)["scope"] = scope
			}
			return d
		}
		project := doc{"project": doc{"name": c.tenant.project, "domain": doc{"name": "Default"}}}
		login := func(a account, scope any) *answer {
			return c.keystone.do(t, http.MethodPost, "auth/tokens", request(a, scope))
		}
		r := login(c.tenant, project).is(t, http.StatusCreated)
		if r.header.Get("X-Subject-Token") == "" {
			t.Error("no token in the header")
		}
		same(t, "project", text(r.doc, "token", "project", "id"), c.project)
		until, err := time.Parse("2006-01-02T15:04:05.000000Z", text(r.doc, "token", "expires_at"))
		if err != nil || time.Until(until) < 10*time.Minute {
			t.Errorf("the token ends at %s (%v)", text(r.doc, "token", "expires_at"), err)
		}
		byID := login(c.tenant, doc{"project": doc{"id": c.project}}).is(t, http.StatusCreated)
		same(t, "project by id", text(byID.doc, "token", "project", "name"), c.tenant.project)

		kinds := map[string]bool{}
		for _, s := range list(r.doc, "token", "catalog") {
			for _, e := range list(s, "endpoints") {
				if text(e, "interface") == "public" && (c.region == "" || text(e, "region_id") == c.region) {
					kinds[text(s, "type")] = true
				}
			}
		}
		for _, kind := range []string{"identity", "orchestration", "compute", "network", "image", "volumev3"} {
			if !kinds[kind] {
				t.Errorf("the catalogue has no public endpoint of %s: %v", kind, kinds)
			}
		}

		const refused = "The request you have made requires authentication."
		wrong := c.tenant
		wrong.password = "wrong"
		login(wrong, project).says(t, http.StatusUnauthorized, refused)
		nobody := c.tenant
		nobody.user = "nobody-" + unique()
		login(nobody, project).says(t, http.StatusUnauthorized, refused)
		login(c.tenant, doc{"project": doc{"name": "none-" + unique(), "domain": doc{"name": "Default"}}}).says(t, http.StatusUnauthorized, refused)
		login(c.tenant, doc{"project": doc{"name": c.tenant.project, "domain": doc{"name": "none"}}}).says(t, http.StatusUnauthorized, refused)
	})
}

// TestRevokedToken: a token that is no more is 401 everywhere, with the header that tells where to log in; a new login helps.
// Services remember for minutes that a token is good, so here they see it for the first time.
func TestRevokedToken(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		p := c.login(t, c.tenant)
		token := p.Token()
		c.keystone.do(t, http.MethodDelete, "auth/tokens", nil, "X-Subject-Token", token).is(t, http.StatusNoContent)
		services := map[string]string{"heat": "stacks", "nova": "servers", "glance": "images", "neutron": "networks", "cinder": "volumes"}
		for name, path := range services {
			r := c.service(t, name, p).do(t, http.MethodGet, path, nil).is(t, http.StatusUnauthorized)
			if r.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s does not say where to log in: %v", name, r.header)
			}
		}
		c.keystone.do(t, http.MethodGet, "auth/tokens", nil, "X-Subject-Token", token).is(t, http.StatusNotFound)
		if err := p.Reauthenticate(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		for name, path := range services {
			c.service(t, name, p).get(t, path)
			c.service(t, name, p).do(t, http.MethodGet, path, nil, "X-Auth-Token", "").is(t, http.StatusUnauthorized)
		}
	})
}
