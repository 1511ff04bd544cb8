package vimsim

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// quota is what a project may hold. mu is held.
func (c *Cloud) quota(project string) Quotas {
	if q, own := c.quotas[project]; own {
		return q
	}
	return c.cfg.Quotas
}

// routeQuotas serves a service's quota sets below base: one limit of each project, -1 for none.
func (c *Cloud) routeQuotas(r chi.Router, base, name string, limit func(*Quotas) *int) {
	path := base + "/os-quota-sets/{of}"
	show := func(project string) (reply, error) {
		q := c.quota(project)
		n := *limit(&q)
		if n == 0 {
			n = -1
		}
		return ok(doc{"quota_set": doc{"id": project, name: n}})
	}
	admin := func(f handlerFunc) http.HandlerFunc {
		return c.handle(novaShape, false, func(r *request) (reply, error) {
			if !r.s.admin() {
				return reply{}, fail(403, "", "Policy doesn't allow the quotas to be changed.")
			}
			return f(r)
		})
	}
	r.Get(path, admin(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return show(r.arg("of"))
	}))
	r.Put(path, admin(func(r *request) (reply, error) {
		set, err := r.object("quota_set")
		if err != nil {
			return reply{}, err
		}
		n, given := set[name].(int64)
		if !given || n == 0 || n < -1 {
			return reply{}, fail(400, "", "Invalid input for field/attribute "+name+".")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		q := c.quota(r.arg("of"))
		*limit(&q) = int(max(n, 0))
		c.quotas[r.arg("of")] = q
		return show(r.arg("of"))
	}))
	r.Delete(path, admin(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		q := c.quota(r.arg("of"))
		*limit(&q) = *limit(&c.cfg.Quotas)
		c.quotas[r.arg("of")] = q
		return status(202, nil)
	}))
}
