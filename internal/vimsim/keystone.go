package vimsim

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

const isoMicro = "2006-01-02T15:04:05.000000Z"

type project struct{ id, name string }

type account struct {
	id, name, password, domain string
	roles                      map[string][]string // by project id
}

type session struct {
	id      string
	user    *account
	project *project
	issued  time.Time
	expires time.Time
	roles   []string
}

type keystone struct {
	projects map[string]*project // by id
	users    []*account
	tokens   map[string]*session
	roleIDs  map[string]string
	svcIDs   map[string]string
}

func (k *keystone) projectID(name string) string {
	for _, id := range slices.Sorted(maps.Keys(k.projects)) {
		if p := k.projects[id]; p.name == name {
			return p.id
		}
	}
	p := &project{id: hexID(), name: name}
	k.projects[p.id] = p
	return p.id
}

func hexID() string { return strings.ReplaceAll(newID(), "-", "") }

func (c *Cloud) initKeystone() {
	// Users keep their ids and tokens over a reset of the other services.
	if c.keys.projects != nil {
		return
	}
	c.keys = keystone{
		projects: map[string]*project{}, tokens: map[string]*session{},
		roleIDs: map[string]string{"admin": hexID(), "member": hexID(), "reader": hexID()}, svcIDs: map[string]string{},
	}
	add := func(u User) {
		a := &account{id: hexID(), name: u.Name, password: u.Password, domain: u.Domain, roles: map[string][]string{}}
		if a.domain == "" {
			a.domain = c.cfg.Domain
		}
		for _, p := range slices.Sorted(maps.Keys(u.Projects)) {
			a.roles[c.keys.projectID(p)] = u.Projects[p]
			for _, role := range u.Projects[p] {
				if c.keys.roleIDs[role] == "" {
					c.keys.roleIDs[role] = hexID()
				}
			}
		}
		c.keys.users = append(c.keys.users, a)
	}
	add(User{Name: c.cfg.User, Password: c.cfg.Password, Projects: map[string][]string{c.cfg.Project: {"admin", "member"}}})
	for _, u := range c.cfg.Users {
		add(u)
	}
}

func (c *Cloud) domainID(name string) string {
	if name == "Default" {
		return "default"
	}
	return strings.ToLower(name)
}

func (c *Cloud) domain(name string) doc { return doc{"id": c.domainID(name), "name": name} }

// session finds a live token.
func (c *Cloud) session(token string) (*session, bool) {
	if token == "" {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.keys.tokens[token]
	if s == nil || !c.clk.Now().Before(s.expires) {
		return nil, false
	}
	return s, true
}

// ExpireTokens ends every token at once.
func (c *Cloud) ExpireTokens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys.tokens = map[string]*session{}
}

// SetPassword changes a user's password; tokens stay good.
func (c *Cloud) SetPassword(user, password string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.keys.users {
		if a.name == user {
			a.password = password
		}
	}
}

func (c *Cloud) routeKeystone(r chi.Router) {
	open := func(f handlerFunc) http.HandlerFunc { return c.handle(keystoneShape, true, f) }
	authed := func(f handlerFunc) http.HandlerFunc {
		return c.handle(keystoneShape, true, func(r *request) (reply, error) {
			s, found := c.session(r.Header.Get("X-Auth-Token"))
			if !found {
				return reply{}, fail(401, "", "The request you have made requires authentication.")
			}
			r.s = s
			return f(r)
		})
	}
	r.Get("/", open(func(r *request) (reply, error) { return status(300, c.versions(r)) }))
	r.Get("/identity", open(func(r *request) (reply, error) { return status(300, c.versions(r)) }))
	r.Get("/identity/v3", open(func(r *request) (reply, error) {
		return ok(doc{"version": c.v3(r)})
	}))
	r.Post("/identity/v3/auth/tokens", open(c.issueToken))
	r.Get("/identity/v3/auth/tokens", authed(c.showToken))
	r.Head("/identity/v3/auth/tokens", authed(func(r *request) (reply, error) {
		rep, err := c.showToken(r)
		rep.body = nil
		return rep, err
	}))
	r.Delete("/identity/v3/auth/tokens", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		t := r.Header.Get("X-Subject-Token")
		if c.keys.tokens[t] == nil {
			return reply{}, fail(404, "", "Could not find token.")
		}
		delete(c.keys.tokens, t)
		return status(204, nil)
	}))
	r.Get("/identity/v3/auth/catalog", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.s.project == nil {
			return reply{}, fail(403, "", "The token is not scoped to a project.")
		}
		return ok(doc{"catalog": c.catalog(r.root, r.s.project), "links": doc{"self": r.root + "/identity/v3/auth/catalog"}})
	}))
	r.Get("/identity/v3/auth/projects", authed(c.ownProjects))
	r.Get("/identity/v3/users/{user}/projects", authed(c.ownProjects))
	r.Get("/identity/v3/projects", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		var l []doc
		for _, id := range slices.Sorted(maps.Keys(c.keys.projects)) {
			if n := r.URL.Query().Get("name"); n == "" || n == c.keys.projects[id].name {
				l = append(l, c.projectDoc(c.keys.projects[id], r.root))
			}
		}
		return ok(doc{"projects": orEmpty(l), "links": doc{"self": r.root + "/identity/v3/projects", "next": nil, "previous": nil}})
	}))
	r.Get("/identity/v3/projects/{id}", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		p := c.keys.projects[r.arg("id")]
		if p == nil {
			return reply{}, fail(404, "", "Could not find project: "+r.arg("id")+".")
		}
		return ok(doc{"project": c.projectDoc(p, r.root)})
	}))
	r.Get("/identity/v3/regions", authed(func(r *request) (reply, error) {
		regions := make([]doc, 0, 1+len(c.cfg.Regions))
		for _, region := range c.regions() {
			regions = append(regions, regionDoc(r.root, region))
		}
		return ok(doc{"regions": regions, "links": doc{"self": r.root + "/identity/v3/regions", "next": nil, "previous": nil}})
	}))
	r.Get("/identity/v3/regions/{id}", authed(func(r *request) (reply, error) {
		if !slices.Contains(c.regions(), r.arg("id")) {
			return reply{}, fail(404, "", "Could not find region: "+r.arg("id")+".")
		}
		return ok(doc{"region": regionDoc(r.root, r.arg("id"))})
	}))
}

func orEmpty(l []doc) []doc {
	if l == nil {
		return []doc{}
	}
	return l
}

// regions are the names of all regions, the cloud's own first.
func (c *Cloud) regions() []string { return append([]string{c.cfg.Region}, c.cfg.Regions...) }

func regionDoc(root, region string) doc {
	return doc{"id": region, "description": "", "parent_region_id": nil, "links": doc{"self": root + "/identity/v3/regions/" + region}}
}

func (c *Cloud) projectDoc(p *project, root string) doc {
	return doc{
		"id": p.id, "name": p.name, "domain_id": c.domainID(c.cfg.Domain), "enabled": true, "is_domain": false,
		"description": "", "parent_id": c.domainID(c.cfg.Domain), "tags": []string{}, "options": doc{},
		"links": doc{"self": root + "/identity/v3/projects/" + p.id},
	}
}

func (c *Cloud) ownProjects(r *request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var l []doc
	for _, id := range slices.Sorted(maps.Keys(r.s.user.roles)) {
		l = append(l, c.projectDoc(c.keys.projects[id], r.root))
	}
	return ok(doc{"projects": orEmpty(l), "links": doc{"self": r.root + r.URL.Path, "next": nil, "previous": nil}})
}

func (c *Cloud) v3(r *request) doc {
	return doc{
		"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links":       []doc{{"rel": "self", "href": r.root + "/identity/v3/"}},
		"media-types": []doc{{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}},
	}
}

func (c *Cloud) versions(r *request) doc {
	return doc{"versions": doc{"values": []doc{c.v3(r)}}}
}

func sub(d doc, path ...string) doc {
	for _, p := range path {
		d, _ = d[p].(map[string]any)
	}
	return d
}

func (c *Cloud) issueToken(r *request) (reply, error) {
	auth, err := r.object("auth")
	if err != nil {
		return reply{}, err
	}
	unauth := fail(401, "", "The request you have made requires authentication.")
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clk.Now()
	var u *account
	methods := []any{"password"}
	ident := sub(auth, "identity")
	if m, isList := ident["methods"].([]any); !isList || len(m) == 0 {
		return reply{}, fail(400, "", "Expecting to find methods in identity. The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error.")
	} else if m[0] == "token" {
		s := c.keys.tokens[str(sub(ident, "token"), "id")]
		if s == nil || !now.Before(s.expires) {
			return reply{}, unauth
		}
		u, methods = s.user, []any{"token"}
	} else {
		ud := sub(ident, "password", "user")
		for _, a := range c.keys.users {
			byName := a.name == str(ud, "name") && c.sameDomain(sub(ud, "domain"), a.domain)
			if (byName || a.id == str(ud, "id") && a.id != "") && a.password == str(ud, "password") {
				u = a
				break
			}
		}
	}
	if u == nil {
		return reply{}, unauth
	}
	s := &session{id: "gAAAAAB" + hexID() + hexID(), user: u, issued: now, expires: now.Add(c.cfg.TokenTTL)}
	scope, scoped := auth["scope"].(map[string]any)
	if _, uns := auth["scope"].(string); !scoped && !uns && len(u.roles) > 0 {
		// Without a word about scope Keystone uses the default project.
		ids := slices.Collect(maps.Keys(u.roles))
		slices.SortFunc(ids, func(a, b string) int {
			return strings.Compare(c.keys.projects[a].name, c.keys.projects[b].name)
		})
		s.project = c.keys.projects[ids[0]]
	}
	if scoped {
		pd := sub(scope, "project")
		for id := range u.roles {
			p := c.keys.projects[id]
			if p.id == str(pd, "id") || p.name == str(pd, "name") && c.sameDomain(sub(pd, "domain"), c.cfg.Domain) {
				s.project = p
			}
		}
		if s.project == nil {
			return reply{}, unauth
		}
	}
	if s.project != nil {
		s.roles = u.roles[s.project.id]
	}
	c.keys.tokens[s.id] = s
	if len(c.keys.tokens)%1024 == 0 {
		maps.DeleteFunc(c.keys.tokens, func(_ string, t *session) bool { return !now.Before(t.expires) })
	}
	body := c.tokenDoc(s, r.root, true)
	body["methods"] = methods
	return reply{status: 201, body: doc{"token": body}, header: http.Header{"X-Subject-Token": {s.id}, "Vary": {"X-Auth-Token"}}}, nil
}

func (c *Cloud) sameDomain(d doc, name string) bool {
	if len(d) == 0 {
		return true
	}
	return str(d, "name") == name || str(d, "id") == c.domainID(name)
}

func (c *Cloud) tokenDoc(s *session, root string, catalog bool) doc {
	roles := []doc{}
	for _, n := range s.roles {
		roles = append(roles, doc{"id": c.keys.roleIDs[n], "name": n})
	}
	d := doc{
		"methods": []string{"password"}, "audit_ids": []string{s.id[7:29]},
		"user":      doc{"id": s.user.id, "name": s.user.name, "domain": c.domain(s.user.domain), "password_expires_at": nil},
		"issued_at": s.issued.UTC().Format(isoMicro), "expires_at": s.expires.UTC().Format(isoMicro),
	}
	if s.project != nil {
		d["project"] = doc{"id": s.project.id, "name": s.project.name, "domain": c.domain(c.cfg.Domain)}
		d["is_domain"] = false
		d["roles"] = roles
		if catalog {
			d["catalog"] = c.catalog(root, s.project)
		}
	}
	return d
}

func (c *Cloud) showToken(r *request) (reply, error) {
	t := r.Header.Get("X-Subject-Token")
	s, found := c.session(t)
	if !found {
		return reply{}, fail(404, "", "Could not find token.")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, nocat := r.URL.Query()["nocatalog"]
	return reply{status: 200, body: doc{"token": c.tokenDoc(s, r.root, !nocat)}, header: http.Header{"X-Subject-Token": {t}}}, nil
}

func (c *Cloud) catalog(root string, p *project) []doc {
	type svc struct{ typ, name, url string }
	list := []svc{
		{"identity", "keystone", root + "/identity/v3"},
		{"image", "glance", root + "/image"},
		{"compute", "nova", root + "/compute/v2.1"},
		{"placement", "placement", root + "/placement"},
		{"network", "neutron", root + "/network"},
		{"volumev3", "cinderv3", root + "/volume/v3/" + p.id},
		{"block-storage", "cinder", root + "/volume/v3/" + p.id},
		{"orchestration", "heat", root + "/orchestration/v1/" + p.id},
		{"cloudformation", "heat-cfn", root + "/orchestration/cfn/v1"},
	}
	if c.cfg.NFVOrchestrationURL != "" {
		list = append(list, svc{"nfv-orchestration", "tacker", c.cfg.NFVOrchestrationURL})
	}
	out := make([]doc, 0, len(list))
	for _, s := range list {
		eps := make([]doc, 0, 3)
		for n, region := range c.regions() {
			id := s.name
			if n > 0 {
				id += "/" + region
			}
			for _, i := range []string{"public", "internal", "admin"} {
				eps = append(eps, doc{"id": c.serviceID(id + "/" + i), "interface": i, "region": region, "region_id": region, "url": s.url})
			}
		}
		out = append(out, doc{"id": c.serviceID(s.name), "type": s.typ, "name": s.name, "endpoints": eps})
	}
	return out
}

func (c *Cloud) serviceID(name string) string {
	if c.keys.svcIDs[name] == "" {
		c.keys.svcIDs[name] = hexID()
	}
	return c.keys.svcIDs[name]
}

// admin reports whether the token has the admin role.
func (s *session) admin() bool { return slices.Contains(s.roles, "admin") }
