package vimsim

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
)

type cinder struct{ volumes, types *table }

func newCinder() cinder {
	n := cinder{newTable(), newTable()}
	id := newID()
	n.types.put(id, doc{"id": id, "name": "__DEFAULT__", "description": "Default Volume Type", "is_public": true, "os-volume-type-access:is_public": true, "extra_specs": doc{}, "qos_specs_id": nil})
	return n
}

const cinderTime = "2006-01-02T15:04:05.000000"

// newVolume makes a volume in status creating; callers hold mu.
func (c *Cloud) newVolume(project, user string, q doc) (doc, error) {
	size, isInt := q["size"].(int64)
	if !isInt || size < 1 {
		return nil, fail(400, "", fmt.Sprintf("Invalid input received: Invalid volume size provided for create request: %v (size argument must be an integer (or string representation of an integer) and greater than zero).", q["size"]))
	}
	if lim := c.quota(project).Volumes; lim > 0 && c.cinder.volumes.count(project) >= lim {
		return nil, fail(413, "VolumeLimitExceeded", fmt.Sprintf("VolumeLimitExceeded: Maximum number of volumes allowed (%d) exceeded for quota 'volumes'.", lim))
	}
	typ := "__DEFAULT__"
	multi := q["multiattach"] == true
	if t := str(q, "volume_type"); t != "" {
		l := c.cinder.types.find(t, nil)
		if len(l) == 0 {
			return nil, fail(404, "", "Volume type "+t+" could not be found.")
		}
		typ = str(l[0], "name")
		specs, _ := l[0]["extra_specs"].(map[string]any)
		multi = multi || specs["multiattach"] == "<is> True"
	}
	id := newID()
	d := doc{
		"id": id, "name": orElse(q["name"], ""), "description": q["description"], "size": size, "status": "creating", "volume_type": typ,
		"availability_zone": orElse(q["availability_zone"], "nova"), "bootable": "false", "encrypted": false, "multiattach": multi,
		"attachments": []any{}, "metadata": orElse(q["metadata"], doc{}), "created_at": c.clk.Now().UTC().Format(cinderTime), "updated_at": nil,
		"snapshot_id": q["snapshot_id"], "source_volid": q["source_volid"], "consistencygroup_id": nil, "replication_status": nil,
		"user_id": user, "os-vol-tenant-attr:tenant_id": project, "links": []any{}, "project_id": project,
	}
	if img := str(q, "imageRef"); img != "" {
		i, found := c.images.get(img)
		if !found {
			return nil, fail(404, "", "Image "+img+" could not be found.")
		}
		d["bootable"] = "true"
		d["volume_image_metadata"] = doc{
			"image_id": img, "image_name": i["name"], "disk_format": i["disk_format"], "container_format": i["container_format"],
			"min_disk": fmt.Sprint(i["min_disk"]), "min_ram": fmt.Sprint(i["min_ram"]), "size": fmt.Sprint(i["size"]), "checksum": i["checksum"],
		}
	}
	c.cinder.volumes.put(id, d)
	return d, nil
}

func (c *Cloud) setVolume(id string, kv ...any) {
	if d, found := c.cinder.volumes.get(id); found {
		c.cinder.volumes.put(id, with(with(d, kv...), "updated_at", c.clk.Now().UTC().Format(cinderTime)))
	}
}

// attach connects a volume to a server as device.
func (c *Cloud) attach(volume, server, host, device string) error {
	v, found := c.cinder.volumes.get(volume)
	if !found {
		return fail(404, "", "Volume "+volume+" could not be found.")
	}
	at, _ := v["attachments"].([]any)
	if st := str(v, "status"); st != "available" && (v["multiattach"] != true || st != "in-use") {
		return fail(400, "", fmt.Sprintf("Invalid volume: Volume %s status must be available or downloading to reserve, but the current status is %s.", volume, st))
	}
	at = append(at[:len(at):len(at)], doc{
		"id": volume, "volume_id": volume, "server_id": server, "attachment_id": newID(), "host_name": host, "device": "/dev/" + device,
		"attached_at": c.clk.Now().UTC().Format(cinderTime),
	})
	c.setVolume(volume, "attachments", at, "status", "in-use")
	return nil
}

func (c *Cloud) detach(volume, server string) {
	v, found := c.cinder.volumes.get(volume)
	if !found {
		return
	}
	at, _ := v["attachments"].([]any)
	left := []any{}
	for _, a := range at {
		if m, _ := a.(map[string]any); str(m, "server_id") != server {
			left = append(left, a)
		}
	}
	st := "available"
	if len(left) > 0 {
		st = "in-use"
	}
	c.setVolume(volume, "attachments", left, "status", st)
}

func (c *Cloud) deleteVolume(id string) error {
	v, found := c.cinder.volumes.get(id)
	if !found {
		return fail(404, "", "Volume "+id+" could not be found.")
	}
	switch str(v, "status") {
	case "in-use", "attaching", "detaching":
		return fail(400, "", "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots or be disassociated from snapshots after volume transfer.")
	}
	c.cinder.volumes.del(id)
	return nil
}

func (c *Cloud) newVolumeType(q doc) (doc, error) {
	name := str(q, "name")
	if len(c.cinder.types.find(name, nil)) > 0 {
		return nil, fail(409, "", "Volume Type "+name+" already exists.")
	}
	id := newID()
	d := doc{
		"id": id, "name": name, "description": q["description"], "is_public": orElse(q["is_public"], true),
		"os-volume-type-access:is_public": orElse(q["is_public"], true), "extra_specs": orElse(q["extra_specs"], doc{}), "qos_specs_id": nil,
	}
	c.cinder.types.put(id, d)
	return d, nil
}

func (c *Cloud) routeCinder(r chi.Router) {
	open := func(f handlerFunc) http.HandlerFunc { return c.handle(novaShape, true, f) }
	authed := func(f handlerFunc) http.HandlerFunc {
		return c.handle(novaShape, false, func(r *request) (reply, error) {
			if p := r.arg("project"); p != r.s.project.id {
				return reply{}, fail(400, "", "Malformed request url")
			}
			return f(r)
		})
	}
	version := func(r *request) doc {
		return doc{"id": "v3.0", "status": "CURRENT", "version": "3.70", "min_version": "3.0", "updated": "2018-07-17T00:00:00Z", "links": []doc{{"rel": "self", "href": r.root + "/volume/v3/"}}}
	}
	r.Get("/volume", open(func(r *request) (reply, error) { return status(300, doc{"versions": []doc{version(r)}}) }))
	r.Get("/volume/v3", open(func(r *request) (reply, error) { return ok(doc{"versions": []doc{version(r)}}) }))
	base := "/volume/v3/{project}"
	c.routeQuotas(r, base, "volumes", func(q *Quotas) *int { return &q.Volumes })
	list := func(detail bool) handlerFunc {
		return func(r *request) (reply, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			all := c.cinder.volumes.list(func(d doc) bool {
				return str(d, "project_id") == r.s.project.id || r.s.admin() && r.URL.Query().Get("all_tenants") != ""
			})
			l, more, err := page(filter(all, r.URL.Query(), "all_tenants", "sort", "offset"), r.URL.Query(), "id")
			if err != nil {
				return reply{}, err
			}
			out := make([]doc, len(l))
			for i, d := range l {
				if out[i] = public(d); !detail {
					out[i] = doc{"id": d["id"], "name": d["name"], "links": []any{}}
				}
			}
			body := doc{"volumes": out}
			if more {
				n := r.URL.Query()
				n.Set("marker", str(l[len(l)-1], "id"))
				body["volumes_links"] = []doc{{"rel": "next", "href": r.root + r.URL.Path + "?" + n.Encode()}}
			}
			return ok(body)
		}
	}
	r.Get(base+"/volumes", authed(list(false)))
	r.Get(base+"/volumes/detail", authed(list(true)))
	r.Post(base+"/volumes", authed(func(r *request) (reply, error) {
		q, err := r.object("volume")
		if err != nil {
			return reply{}, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		d, err := c.newVolume(r.s.project.id, r.s.user.id, q)
		if err != nil {
			return reply{}, err
		}
		id := str(d, "id")
		lat := c.latency["OS::Cinder::Volume"]
		c.goFunc(func() {
			if c.sleep(c.ctx, lat) == nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.setVolume(id, "status", "available")
			}
		})
		return status(202, doc{"volume": public(d)})
	}))
	r.Get(base+"/volumes/{id}", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		d, found := c.cinder.volumes.get(r.arg("id"))
		if !found {
			return reply{}, fail(404, "", "Volume "+r.arg("id")+" could not be found.")
		}
		return ok(doc{"volume": public(d)})
	}))
	r.Delete(base+"/volumes/{id}", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.deleteVolume(r.arg("id")); err != nil {
			return reply{}, err
		}
		return status(202, nil)
	}))
	r.Get(base+"/types", authed(func(*request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return ok(doc{"volume_types": c.cinder.types.list(nil)})
	}))
	r.Get(base+"/types/{id}", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		d, found := c.cinder.types.get(r.arg("id"))
		if !found {
			return reply{}, fail(404, "", "Volume type "+r.arg("id")+" could not be found.")
		}
		return ok(doc{"volume_type": d})
	}))
	r.Get(base+"/attachments", authed(func(r *request) (reply, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		out := []doc{}
		for _, v := range c.cinder.volumes.list(func(d doc) bool { return str(d, "project_id") == r.s.project.id }) {
			at, _ := v["attachments"].([]any)
			for _, a := range at {
				m, _ := a.(map[string]any)
				out = append(out, doc{"id": m["attachment_id"], "volume_id": v["id"], "instance": m["server_id"], "status": "attached"})
			}
		}
		return ok(doc{"attachments": out})
	}))
}
