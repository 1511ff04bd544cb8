package vimsim

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// netKind is one collection of the network API.
type netKind struct {
	path, one, many, class string
	table                  func(*Cloud) *table
	create                 func(c *Cloud, project string, q doc) (doc, error)
	update                 func(c *Cloud, id string, q doc) (doc, error)
	remove                 func(c *Cloud, id string) error
}

func replaceIn(t func(*Cloud) *table) func(*Cloud, string, doc) (doc, error) {
	return func(c *Cloud, id string, q doc) (doc, error) {
		old, _ := t(c).get(id)
		d := with(with(old, flat(q)...), "updated_at", c.now())
		t(c).put(id, d)
		return d, nil
	}
}

func removeFrom(t func(*Cloud) *table) func(*Cloud, string) error {
	return func(c *Cloud, id string) error { t(c).del(id); return nil }
}

func netKinds() []netKind {
	networks := func(c *Cloud) *table { return c.net.networks }
	subnets := func(c *Cloud) *table { return c.net.subnets }
	ports := func(c *Cloud) *table { return c.net.ports }
	fips := func(c *Cloud) *table { return c.net.floatingips }
	routers := func(c *Cloud) *table { return c.net.routers }
	groups := func(c *Cloud) *table { return c.net.secgroups }
	qos := func(c *Cloud) *table { return c.net.qos }
	return []netKind{
		{"networks", "network", "networks", "Network", networks, func(c *Cloud, p string, q doc) (doc, error) {
			if lim := c.quota(p).Networks; lim > 0 && c.net.networks.count(p) >= lim {
				return nil, fail(409, "OverQuota", "Quota exceeded for resources: ['network'].")
			}
			return c.newNetwork(p, q), nil
		}, replaceIn(networks), (*Cloud).deleteNetwork},
		{"subnets", "subnet", "subnets", "Subnet", subnets, (*Cloud).newSubnet, replaceIn(subnets), (*Cloud).deleteSubnet},
		{"ports", "port", "ports", "Port", ports, (*Cloud).newPort, (*Cloud).updatePort, (*Cloud).deletePort},
		{"floatingips", "floatingip", "floatingips", "Floating IP", fips, (*Cloud).newFloatingIP, func(c *Cloud, id string, q doc) (doc, error) {
			return c.associate(id, str(q, "port_id"))
		}, (*Cloud).deleteFloatingIP},
		{"routers", "router", "routers", "Router", routers, (*Cloud).newRouter, replaceIn(routers), (*Cloud).deleteRouter},
		{"security-groups", "security_group", "security_groups", "Security group", groups, func(c *Cloud, p string, q doc) (doc, error) {
			return c.newSecGroup(p, q), nil
		}, replaceIn(groups), removeFrom(groups)},
		{"qos/policies", "policy", "policies", "QoS policy", qos, func(c *Cloud, p string, q doc) (doc, error) {
			return c.newQoS(p, q), nil
		}, replaceIn(qos), removeFrom(qos)},
	}
}

func (c *Cloud) routeNeutron(r chi.Router) {
	open := func(f handlerFunc) http.HandlerFunc { return c.handle(neutronShape, true, f) }
	authed := func(f handlerFunc) http.HandlerFunc {
		return c.handle(neutronShape, false, func(r *request) (reply, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return f(r)
		})
	}
	r.Get("/network", open(func(r *request) (reply, error) {
		return ok(doc{"versions": []doc{{"id": "v2.0", "status": "CURRENT", "links": []doc{{"rel": "self", "href": r.root + "/network/v2.0/"}}}}})
	}))
	r.Get("/network/v2.0", open(func(r *request) (reply, error) { return ok(doc{"resources": []doc{}}) }))
	r.Get("/network/v2.0/extensions", authed(func(*request) (reply, error) {
		l := []doc{}
		for _, a := range []string{"router", "external-net", "security-group", "qos", "allowed-address-pairs", "binding", "port-security", "quotas", "standard-attr-tag"} {
			l = append(l, doc{"alias": a, "name": a, "description": "", "updated": "2022-01-01T00:00:00-00:00", "links": []any{}})
		}
		return ok(doc{"extensions": l})
	}))
	for _, k := range netKinds() {
		c.routeNetKind(r, k, authed)
	}
	plug := func(path string, f func(r *request, q doc) (reply, error)) {
		r.Put("/network/v2.0/routers/{id}/"+path, c.handle(neutronShape, false, func(r *request) (reply, error) {
			q, err := r.json()
			if err != nil {
				return reply{}, err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			return f(r, q)
		}))
	}
	plug("add_router_interface", func(r *request, q doc) (reply, error) {
		p, err := c.addInterface(r.arg("id"), str(q, "subnet_id"), str(q, "port_id"))
		if err != nil {
			return reply{}, err
		}
		return ok(doc{"id": r.arg("id"), "port_id": p["id"], "subnet_id": q["subnet_id"], "network_id": p["network_id"], "tenant_id": p["tenant_id"]})
	})
	plug("remove_router_interface", func(r *request, q doc) (reply, error) {
		for pid := range c.net.byDevice[r.arg("id")] {
			p, _ := c.net.ports.get(pid)
			if pid == str(q, "port_id") || hasIP(p, str(q, "subnet_id"), "") && str(q, "subnet_id") != "" {
				if err := c.deletePort(pid); err != nil {
					return reply{}, err
				}
				return ok(doc{"id": r.arg("id"), "port_id": pid})
			}
		}
		return reply{}, fail(404, "RouterInterfaceNotFound", "Router "+r.arg("id")+" has no such interface.")
	})
}

func (c *Cloud) routeNetKind(r chi.Router, k netKind, authed func(handlerFunc) http.HandlerFunc) {
	base := "/network/v2.0/" + k.path
	visible := func(r *request) func(doc) bool {
		return func(d doc) bool {
			return str(d, "project_id") == r.s.project.id || d["shared"] == true || d["router:external"] == true || r.s.admin()
		}
	}
	get := func(r *request) (doc, error) {
		d, found := k.table(c).get(r.arg("id"))
		if !found || !visible(r)(d) {
			return nil, fail(404, k.one+"NotFound", k.class+" "+r.arg("id")+" could not be found.")
		}
		return d, nil
	}
	r.Get(base, authed(func(r *request) (reply, error) {
		q := r.URL.Query()
		l := filter(k.table(c).list(visible(r)), q, "fixed_ips")
		for _, f := range q["fixed_ips"] {
			l = filterIP(l, f)
		}
		l, more, err := page(l, q, "id")
		if err != nil {
			return reply{}, err
		}
		out := make([]doc, len(l))
		for i, d := range l {
			out[i] = selected(public(d), q["fields"])
		}
		body := doc{k.many: out}
		if more {
			n := r.URL.Query()
			n.Set("marker", str(l[len(l)-1], "id"))
			body[k.many+"_links"] = []doc{{"rel": "next", "href": r.root + r.URL.Path + "?" + n.Encode()}}
		}
		return ok(body)
	}))
	r.Get(base+"/{id}", authed(func(r *request) (reply, error) {
		d, err := get(r)
		if err != nil {
			return reply{}, err
		}
		return ok(doc{k.one: public(d)})
	}))
	r.Post(base, c.handle(neutronShape, false, func(r *request) (reply, error) {
		q, err := r.object(k.one)
		if err != nil {
			return reply{}, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		d, err := k.create(c, r.s.project.id, q)
		if err != nil {
			return reply{}, err
		}
		return status(201, doc{k.one: public(d)})
	}))
	r.Put(base+"/{id}", c.handle(neutronShape, false, func(r *request) (reply, error) {
		q, err := r.object(k.one)
		if err != nil {
			return reply{}, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, err := get(r); err != nil {
			return reply{}, err
		}
		d, err := k.update(c, r.arg("id"), q)
		if err != nil {
			return reply{}, err
		}
		return ok(doc{k.one: public(d)})
	}))
	r.Delete(base+"/{id}", authed(func(r *request) (reply, error) {
		if _, err := get(r); err != nil {
			return reply{}, err
		}
		if err := k.remove(c, r.arg("id")); err != nil {
			return reply{}, err
		}
		return status(204, nil)
	}))
}

// selected keeps the members of a document that are asked for, all when none is.
func selected(d doc, fields []string) doc {
	if len(fields) == 0 {
		return d
	}
	some := doc{}
	for _, k := range fields {
		if v, known := d[k]; known {
			some[k] = v
		}
	}
	return some
}

func filterIP(l []doc, f string) []doc {
	out := l[:0:0]
	for _, d := range l {
		if v, found := cutPrefix(f, "ip_address="); found && hasIP(d, "", v) {
			out = append(out, d)
		} else if v, found := cutPrefix(f, "subnet_id="); found && hasIP(d, v, "") {
			out = append(out, d)
		}
	}
	return out
}

func cutPrefix(s, p string) (string, bool) {
	if len(s) > len(p) && s[:len(p)] == p {
		return s[len(p):], true
	}
	return "", false
}
