package vimsim

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

func (c *Cloud) routeNova(r chi.Router) {
	open := func(f handlerFunc) http.HandlerFunc { return c.handle(novaShape, true, f) }
	// locked handlers do not read the body.
	locked := func(f handlerFunc) http.HandlerFunc {
		return c.handle(novaShape, false, func(r *request) (reply, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return f(r)
		})
	}
	body := func(name string, f func(r *request, q doc) (reply, error)) http.HandlerFunc {
		return c.handle(novaShape, false, func(r *request) (reply, error) {
			q, err := r.json()
			if err != nil {
				return reply{}, err
			}
			if name != "" {
				var isMap bool
				if q, isMap = q[name].(map[string]any); !isMap {
					return reply{}, fail(400, "", "Invalid input for field/attribute "+name+".")
				}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			return f(r, q)
		})
	}
	version := func(r *request) doc {
		return doc{"id": "v2.1", "status": "CURRENT", "version": "2.93", "min_version": "2.1", "updated": "2013-07-23T11:33:21Z", "links": []doc{{"rel": "self", "href": r.root + "/compute/v2.1/"}}}
	}
	r.Get("/compute", open(func(r *request) (reply, error) { return ok(doc{"versions": []doc{version(r)}}) }))
	r.Get("/compute/v2.1", open(func(r *request) (reply, error) { return ok(doc{"version": version(r)}) }))

	const base = "/compute/v2.1"
	r.Get(base+"/servers", locked(func(r *request) (reply, error) { return c.listServers(r, false) }))
	r.Get(base+"/servers/detail", locked(func(r *request) (reply, error) { return c.listServers(r, true) }))
	r.Post(base+"/servers", body("server", c.createServer))
	r.Get(base+"/servers/{id}", locked(func(r *request) (reply, error) {
		s, err := c.ownServer(r)
		if err != nil {
			return reply{}, err
		}
		return ok(doc{"server": c.serverDoc(s)})
	}))
	r.Delete(base+"/servers/{id}", locked(func(r *request) (reply, error) {
		s, err := c.ownServer(r)
		if err != nil {
			return reply{}, err
		}
		c.dropServer(s)
		return status(204, nil)
	}))
	r.Post(base+"/servers/{id}/action", body("", c.serverAction))
	r.Get(base+"/servers/{id}/os-interface", locked(func(r *request) (reply, error) {
		s, err := c.ownServer(r)
		if err != nil {
			return reply{}, err
		}
		l := []doc{}
		for _, pid := range s.ports {
			if p, found := c.net.ports.get(pid); found {
				l = append(l, doc{"port_id": pid, "net_id": p["network_id"], "mac_addr": p["mac_address"], "port_state": p["status"], "fixed_ips": p["fixed_ips"]})
			}
		}
		return ok(doc{"interfaceAttachments": l})
	}))
	r.Get(base+"/servers/{id}/os-volume_attachments", locked(func(r *request) (reply, error) {
		s, err := c.ownServer(r)
		if err != nil {
			return reply{}, err
		}
		l := []doc{}
		for i, v := range s.volumes {
			l = append(l, doc{"id": v, "volumeId": v, "serverId": s.id, "device": "/dev/" + device("", i)})
		}
		return ok(doc{"volumeAttachments": l})
	}))
	c.routeFlavors(r, locked, body)
	c.routeQuotas(r, base, "instances", func(q *Quotas) *int { return &q.Instances })
	c.routeGroups(r, locked, body)
	r.Get(base+"/os-availability-zone", locked(c.zones))
	r.Get(base+"/os-availability-zone/detail", locked(c.zones))
	r.Get(base+"/os-hypervisors", locked(func(r *request) (reply, error) { return c.hypervisors(false) }))
	r.Get(base+"/os-hypervisors/detail", locked(func(r *request) (reply, error) { return c.hypervisors(true) }))
	r.Get(base+"/os-keypairs", locked(func(*request) (reply, error) {
		l := []doc{}
		for _, k := range c.nova.keys.list(nil) {
			l = append(l, doc{"keypair": k})
		}
		return ok(doc{"keypairs": l})
	}))
	r.Get(base+"/os-keypairs/{id}", locked(func(r *request) (reply, error) {
		k, found := c.nova.keys.get(r.arg("id"))
		if !found {
			return reply{}, fail(404, "", "Keypair "+r.arg("id")+" not found for user "+r.s.user.id)
		}
		return ok(doc{"keypair": k})
	}))
	r.Get(base+"/limits", locked(func(r *request) (reply, error) {
		n := 0
		for _, s := range c.nova.servers {
			if s.project == r.s.project.id {
				n++
			}
		}
		lim := c.quota(r.s.project.id).Instances
		if lim == 0 {
			lim = -1
		}
		return ok(doc{"limits": doc{"rate": []any{}, "absolute": doc{"maxTotalInstances": lim, "totalInstancesUsed": n}}})
	}))
}

func (c *Cloud) ownServer(r *request) (*server, error) {
	s := c.nova.servers[r.arg("id")]
	if s == nil || s.project != r.s.project.id && !r.s.admin() {
		return nil, fail(404, "", "Instance "+r.arg("id")+" could not be found.")
	}
	return s, nil
}

func (c *Cloud) listServers(r *request, detail bool) (reply, error) {
	q := r.URL.Query()
	all := q.Get("all_tenants") != "" && r.s.admin()
	var l []*server
	for _, s := range c.nova.servers {
		if (all || s.project == r.s.project.id) &&
			(q.Get("name") == "" || strings.Contains(s.name, q.Get("name"))) &&
			(q.Get("status") == "" || strings.EqualFold(s.status, q.Get("status"))) &&
			(q.Get("host") == "" || s.host == q.Get("host")) &&
			(q.Get("uuid") == "" || s.id == q.Get("uuid")) &&
			(q.Get("flavor") == "" || hot.String(s.flavor["id"]) == q.Get("flavor")) &&
			(q.Get("image") == "" || s.image == q.Get("image")) {
			l = append(l, s)
		}
	}
	// Nova lists the newest first.
	slices.SortFunc(l, func(a, b *server) int { return int(b.seq - a.seq) })
	docs := make([]doc, len(l))
	for i, s := range l {
		if detail {
			docs[i] = c.serverDoc(s)
		} else {
			docs[i] = doc{"id": s.id, "name": s.name, "links": []any{}}
		}
	}
	docs, more, err := page(docs, q, "id")
	if err != nil {
		return reply{}, err
	}
	out := doc{"servers": docs}
	if more {
		q.Set("marker", str(docs[len(docs)-1], "id"))
		out["servers_links"] = []doc{{"rel": "next", "href": r.root + r.URL.Path + "?" + q.Encode()}}
	}
	return ok(out)
}

func (c *Cloud) createServer(r *request, q doc) (reply, error) {
	f, found := c.findFlavor(hot.String(q["flavorRef"]))
	if !found {
		return reply{}, fail(400, "", "Flavor "+hot.String(q["flavorRef"])+" could not be found.")
	}
	req := serverReq{
		name: str(q, "name"), project: r.s.project.id, user: r.s.user.id, flavor: f, image: str(q, "imageRef"), zone: str(q, "availability_zone"),
		keyName: str(q, "key_name"), userData: str(q, "user_data"), configDrive: q["config_drive"] == true,
	}
	if req.image != "" {
		if _, found := c.images.get(req.image); !found {
			return reply{}, fail(400, "", "Can not find requested image")
		}
	}
	req.metadata, _ = q["metadata"].(map[string]any)
	if nets, isList := q["networks"].([]any); isList {
		for _, n := range nets {
			m, _ := n.(map[string]any)
			if id := str(m, "uuid"); id != "" {
				if _, found := c.net.networks.get(id); !found {
					return reply{}, fail(400, "", "Network "+id+" could not be found.")
				}
			}
			req.networks = append(req.networks, m)
		}
	}
	bdm, _ := q["block_device_mapping_v2"].([]any)
	for _, b := range bdm {
		m, _ := b.(map[string]any)
		if str(m, "source_type") == "volume" {
			req.volumes = append(req.volumes, with(m, "volume_id", m["uuid"]))
		}
	}
	s, err := c.newServer(req)
	if err != nil {
		return reply{}, err
	}
	if s.status == "BUILD" {
		lat := c.serverLatency()
		if lat <= 0 {
			c.activate(s)
		} else {
			c.goFunc(func() {
				if c.sleep(c.ctx, lat) == nil {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.activate(s)
				}
			})
		}
	}
	d := doc{"id": s.id, "links": []doc{{"rel": "self", "href": r.root + "/compute/v2.1/servers/" + s.id}}, "OS-DCF:diskConfig": "MANUAL", "security_groups": []doc{{"name": "default"}}, "adminPass": shortID()}
	return reply{status: 202, body: doc{"server": d}, header: http.Header{"Location": {r.root + "/compute/v2.1/servers/" + s.id}}}, nil
}

func (c *Cloud) serverAction(r *request, q doc) (reply, error) {
	s, err := c.ownServer(r)
	if err != nil {
		return reply{}, err
	}
	conflict := func(act string) error {
		is := "vm_state " + s.vmState()
		if s.task != "" {
			is = "task_state " + s.task
		}
		return fail(409, "", "Cannot '"+act+"' instance "+s.id+" while it is in "+is)
	}
	for act, arg := range q {
		switch act {
		case "os-start":
			if s.status != "SHUTOFF" || s.task != "" {
				return reply{}, conflict("start")
			}
			c.power(s, "start", "powering-on", "ACTIVE", 1)
		case "os-stop":
			if s.status != "ACTIVE" && s.status != "ERROR" || s.task != "" {
				return reply{}, conflict("stop")
			}
			c.power(s, "stop", "powering-off", "SHUTOFF", 4)
		case "reboot":
			m, _ := arg.(map[string]any)
			how, task := "REBOOT", "rebooting"
			if strings.EqualFold(str(m, "type"), "HARD") {
				how, task = "HARD_REBOOT", "rebooting_hard"
			}
			if s.task != "" || how == "REBOOT" && s.status != "ACTIVE" {
				return reply{}, conflict("reboot")
			}
			was := s.status
			if c.power(s, "reboot", task, "ACTIVE", 1); s.task == task {
				if s.status = how; was == "ERROR" {
					s.fault = nil
				}
			}
		case "os-resetState":
			m, _ := arg.(map[string]any)
			switch str(m, "state") {
			case "active":
				s.status, s.fault = "ACTIVE", nil
			case "error":
				s.status = "ERROR"
			default:
				return reply{}, fail(400, "", "Invalid input for field/attribute state.")
			}
		default:
			return reply{}, fail(400, "", "There is no such action: "+act)
		}
	}
	s.updated = c.clk.Now().UTC().Format(novaTime)
	return status(202, nil)
}

func (c *Cloud) serverLatency() time.Duration {
	if lat, known := c.latency["OS::Nova::Server"]; known {
		return lat
	}
	return c.latency["*"]
}

// power brings a server to a power state, at once or after a server's latency,
// in which its task shows. Faults of OS::Nova::Server with the action start or
// stop hit it: one that fails leaves it in ERROR.
func (c *Cloud) power(s *server, action, task, status string, power int64) {
	f := c.engineFault("OS::Nova::Server", action, s.name)
	settle := func() {
		if s.task, s.updated = "", c.now(); f != nil && (f.Effect == EffectFail || f.Effect == EffectQuota) {
			c.breakServer(s, 500, orText(f.Reason, "An injected fault."))
			return
		}
		s.status, s.power, s.fault = status, power, nil
	}
	lat := c.serverLatency()
	hang := false
	if f != nil && (f.Effect == EffectSlow || f.Effect == EffectHang) {
		lat += time.Duration(f.Delay)
		hang = f.Effect == EffectHang && f.Delay == 0
	}
	if lat <= 0 && !hang {
		settle()
		return
	}
	s.task = task
	c.goFunc(func() {
		if hang {
			select {
			case <-f.gone:
			case <-c.ctx.Done():
			}
		}
		if c.sleep(c.ctx, lat) == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			if s.task == task {
				settle()
			}
		}
	})
}

func (c *Cloud) routeFlavors(r chi.Router, locked func(handlerFunc) http.HandlerFunc, body func(string, func(*request, doc) (reply, error)) http.HandlerFunc) {
	const base = "/compute/v2.1/flavors"
	list := func(detail bool) handlerFunc {
		return func(r *request) (reply, error) {
			l, _, err := page(c.nova.flavors.list(nil), r.URL.Query(), "id")
			if err != nil {
				return reply{}, err
			}
			out := make([]doc, len(l))
			for i, d := range l {
				if out[i] = d; !detail {
					out[i] = doc{"id": d["id"], "name": d["name"], "description": nil, "links": []any{}}
				}
			}
			return ok(doc{"flavors": out})
		}
	}
	r.Get(base, locked(list(false)))
	r.Get(base+"/detail", locked(list(true)))
	get := func(r *request) (doc, error) {
		d, found := c.nova.flavors.get(r.arg("id"))
		if !found {
			return nil, fail(404, "", "Flavor "+r.arg("id")+" could not be found.")
		}
		return d, nil
	}
	r.Get(base+"/{id}", locked(func(r *request) (reply, error) {
		d, err := get(r)
		return reply{status: 200, body: doc{"flavor": d}}, err
	}))
	r.Get(base+"/{id}/os-extra_specs", locked(func(r *request) (reply, error) {
		d, err := get(r)
		return reply{status: 200, body: doc{"extra_specs": d["extra_specs"]}}, err
	}))
	r.Delete(base+"/{id}", locked(func(r *request) (reply, error) {
		if _, err := get(r); err != nil {
			return reply{}, err
		}
		c.nova.flavors.del(r.arg("id"))
		return status(202, nil)
	}))
	r.Post(base, body("flavor", func(_ *request, q doc) (reply, error) {
		d, err := c.newFlavor(q)
		return reply{status: 200, body: doc{"flavor": d}}, err
	}))
}

func (c *Cloud) routeGroups(r chi.Router, locked func(handlerFunc) http.HandlerFunc, body func(string, func(*request, doc) (reply, error)) http.HandlerFunc) {
	const base = "/compute/v2.1/os-server-groups"
	r.Get(base, locked(func(r *request) (reply, error) {
		l := make([]*group, 0, len(c.nova.groups))
		for _, g := range c.nova.groups {
			if g.project == r.s.project.id {
				l = append(l, g)
			}
		}
		slices.SortFunc(l, func(a, b *group) int { return int(a.seq - b.seq) })
		out := make([]doc, len(l))
		for i, g := range l {
			out[i] = g.doc()
		}
		return ok(doc{"server_groups": out})
	}))
	get := func(r *request) (*group, error) {
		g := c.nova.groups[r.arg("id")]
		if g == nil || g.project != r.s.project.id {
			return nil, fail(404, "", "Instance group "+r.arg("id")+" could not be found.")
		}
		return g, nil
	}
	r.Get(base+"/{id}", locked(func(r *request) (reply, error) {
		g, err := get(r)
		if err != nil {
			return reply{}, err
		}
		return ok(doc{"server_group": g.doc()})
	}))
	r.Delete(base+"/{id}", locked(func(r *request) (reply, error) {
		g, err := get(r)
		if err != nil {
			return reply{}, err
		}
		delete(c.nova.groups, g.id)
		return status(204, nil)
	}))
	r.Post(base, body("server_group", func(r *request, q doc) (reply, error) {
		policy := str(q, "policy")
		if l, isList := q["policies"].([]any); isList && len(l) > 0 {
			policy = hot.String(l[0])
		}
		return ok(doc{"server_group": c.newGroup(r.s.project.id, str(q, "name"), policy).doc()})
	}))
}

func (c *Cloud) zones(*request) (reply, error) {
	byZone := map[string]doc{}
	var names []string
	for _, h := range c.nova.hosts {
		if byZone[h.zone] == nil {
			byZone[h.zone] = doc{}
			names = append(names, h.zone)
		}
		byZone[h.zone][h.name] = doc{"nova-compute": doc{"available": true, "active": true, "updated_at": c.now()}}
	}
	l := []doc{}
	for _, n := range names {
		l = append(l, doc{"zoneName": n, "zoneState": doc{"available": true}, "hosts": byZone[n]})
	}
	return ok(doc{"availabilityZoneInfo": l})
}

func (c *Cloud) hypervisors(detail bool) (reply, error) {
	l := []doc{}
	for i, h := range c.nova.hosts {
		d := doc{"id": i + 1, "hypervisor_hostname": h.name, "state": "up", "status": "enabled"}
		if detail {
			d["running_vms"], d["vcpus"], d["memory_mb"], d["local_gb"] = c.nova.load[h.name], 1000, 1<<20, 1<<20
			d["hypervisor_type"], d["hypervisor_version"], d["host_ip"] = "fake", 1000, "127.0.0.1"
			d["service"] = doc{"id": i + 1, "host": h.name, "disabled_reason": nil}
		}
		l = append(l, d)
	}
	return ok(doc{"hypervisors": l})
}
