package vimsim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

// What an update of each type does in place is marked with ~; all else makes a
// new resource. A server's flavor is resized and its image rebuilt in place
// unless the update policies say REPLACE; changed user data replaces it; its
// ports are plugged and unplugged.
func novaTypes() []*rtype {
	return []*rtype{
		{
			name: "OS::Nova::Server", service: "nova", selfWait: true,
			props: props(`name~ image~:image flavor!~:flavor networks~ block_device_mapping_v2 block_device_mapping availability_zone
				scheduler_hints user_data~ user_data_format user_data_update_policy~ metadata~ key_name:keypair security_groups
				config_drive flavor_update_policy~ image_update_policy~ software_config_transport~ admin_pass~ diskConfig
				personality tags~ reservation_id deployment_swift_data~`),
			attrs: []string{
				"name", "addresses", "networks", "first_address", "instance_name", "accessIPv4", "accessIPv6", "console_urls", "tags",
				"os_collect_config", "status", "OS-EXT-SRV-ATTR:host", "server_groups",
			},
			create: createServer, update: updateServer, remove: removeServer, show: showServer, replaceIf: serverReplaced, keepFailed: serverUsable,
			release: func(c *Cloud, r *resource) {
				if s := c.nova.servers[r.phys]; s != nil {
					for _, p := range slices.Clone(s.ports) {
						if !s.ownPorts[p] {
							c.unplug(s, p)
						}
					}
				}
			},
			validate: validateServer,
		},
		{
			name: "OS::Nova::ServerGroup", service: "nova", props: props("name policies rules"), attrs: []string{"name", "policies", "policy", "members"},
			create: func(e *exec, r *resource, p doc) error {
				policy := "anti-affinity"
				if l, _ := p["policies"].([]any); len(l) > 0 {
					policy = hot.String(l[0])
				}
				r.phys = e.c.newGroup(r.stack.project, orText(str(p, "name"), r.physicalName()), policy).id
				return nil
			},
			remove: func(e *exec, r *resource) error { delete(e.c.nova.groups, r.phys); return nil },
			show: func(c *Cloud, r *resource) doc {
				if g := c.nova.groups[r.phys]; g != nil {
					return g.doc()
				}
				return doc{}
			},
		},
		{
			name: "OS::Nova::Flavor", service: "nova",
			props: props("name flavorid ram! vcpus! disk swap ephemeral rxtx_factor extra_specs~ is_public tenants~ description"),
			attrs: []string{"is_public", "extra_specs"},
			create: func(e *exec, r *resource, p doc) error {
				d, err := e.c.newFlavor(with(p, "name", orText(str(p, "name"), r.physicalName()), "id", orElse(p["flavorid"], "auto"),
					"ram", toInt(p["ram"]), "vcpus", toInt(p["vcpus"]), "disk", toInt(p["disk"])))
				if err != nil {
					return clientFailure("nova", err)
				}
				r.phys = str(d, "id")
				return nil
			},
			update: func(e *exec, r *resource, p doc) error {
				if d, found := e.c.nova.flavors.get(r.phys); found {
					e.c.nova.flavors.put(r.phys, with(d, "extra_specs", orElse(p["extra_specs"], doc{})))
				}
				return nil
			},
			remove: func(e *exec, r *resource) error { e.c.nova.flavors.del(r.phys); return nil },
			show:   func(c *Cloud, r *resource) doc { d, _ := c.nova.flavors.get(r.phys); return with(d) },
		},
		{
			name: "OS::Nova::KeyPair", service: "nova", props: props("name! save_private_key public_key type user"), attrs: []string{"public_key", "private_key"},
			create: func(e *exec, r *resource, p doc) error {
				d, err := e.c.newKey(str(p, "name"), orText(str(p, "public_key"), "ssh-ed25519 "+shortID()+" simulated"))
				if err != nil {
					return clientFailure("nova", err)
				}
				r.phys = str(d, "name")
				return nil
			},
			remove: func(e *exec, r *resource) error { e.c.nova.keys.del(r.phys); return nil },
			show: func(c *Cloud, r *resource) doc {
				d, _ := c.nova.keys.get(r.phys)
				return with(d, "private_key", "")
			},
		},
	}
}

func toInt(v any) int64 {
	switch t := v.(type) {
	case int64:
		return t
	case float64:
		return int64(t)
	case string:
		var n int64
		if _, err := fmt.Sscan(t, &n); err == nil {
			return n
		}
	}
	return 0
}

func validateServer(_ *Cloud, _ *stack, name string, p doc) error {
	at := []string{"resources", name, "properties"}
	bad := func(format string, args ...any) error { return hot.Invalid(at, format, args...) }
	if p["image"] == nil && p["block_device_mapping"] == nil && p["block_device_mapping_v2"] == nil {
		return &hot.Error{Kind: "StackValidationFailed", Msg: "Neither image nor bootable volume is specified for instance " + name}
	}
	nets, isList := p["networks"].([]any)
	if p["networks"] != nil && !isList {
		return bad(`"%s" is not a list`, hot.String(p["networks"]))
	}
	for _, n := range nets {
		m, isMap := n.(map[string]any)
		if !isMap {
			return bad(`"%s" is not a map`, hot.String(n))
		}
		given := 0
		for k, v := range m {
			switch k {
			case "port", "network", "uuid", "fixed_ip", "subnet", "floating_ip", "port_extra_properties", "allocate_network", "tag":
			default:
				return bad("Unknown Property %s", k)
			}
			if v != nil {
				given++
			}
		}
		switch whole := hot.String(m["allocate_network"]); {
		case m["allocate_network"] == nil:
		case whole != "none" && whole != "auto":
			return bad(`"%s" is not an allowed value [none, auto]`, whole)
		case given > 1:
			return &hot.Error{Kind: "StackValidationFailed", Msg: `Can not specify "allocate_network" with other keys of networks at the same time.`}
		}
	}
	return nil
}

// networksOf turns a server's networks property into Nova's request.
func (c *Cloud) networksOf(project string, p doc) ([]doc, error) {
	var out []doc
	l, _ := p["networks"].([]any)
	for _, n := range l {
		m, _ := n.(map[string]any)
		if str(m, "allocate_network") == "none" {
			continue // the server has no interface
		}
		if pid := str(m, "port"); pid != "" {
			d, err := c.findNet("port", pid, project)
			if err != nil {
				return nil, &failure{class: "NotFound", msg: err.Error()}
			}
			out = append(out, doc{"port": d["id"]})
			continue
		}
		name := str(m, "network")
		if name == "" {
			name = str(m, "uuid")
		}
		if name == "" {
			if s, err := c.findNet("subnet", str(m, "subnet"), project); err == nil {
				name = str(s, "network_id")
			}
		}
		d, err := c.findNet("network", name, project)
		if err != nil {
			return nil, &failure{class: "NotFound", msg: err.Error()}
		}
		out = append(out, doc{"uuid": d["id"], "fixed_ip": m["fixed_ip"]})
	}
	return out, nil
}

func createServer(e *exec, r *resource, p doc) error {
	c := e.c
	if e.inject != nil && e.inject.Effect == EffectQuota {
		return e.injected()
	}
	f, found := c.findFlavor(str(p, "flavor"))
	if !found {
		return &failure{class: "NotFound", msg: "No Flavor matching {'name': '" + str(p, "flavor") + "'}. (HTTP 404)"}
	}
	q := serverReq{
		name: orText(str(p, "name"), reduced(r.physicalName(), 53)), project: r.stack.project, user: r.stack.user, flavor: f,
		zone: str(p, "availability_zone"), keyName: str(p, "key_name"), userData: hot.String(p["user_data"]), configDrive: p["config_drive"] == true,
	}
	if n := str(p, "image"); n != "" {
		d, err := c.findImage(q.project, n)
		if err != nil {
			return &failure{class: "EntityMatchNotFound", msg: err.Error()}
		}
		q.image = str(d, "id")
	}
	if m, _ := p["metadata"].(map[string]any); m != nil {
		q.metadata = doc{}
		for k, v := range m {
			q.metadata[k] = hot.String(v)
		}
	}
	hints, _ := p["scheduler_hints"].(map[string]any)
	q.group = hot.String(hints["group"])
	if g := c.nova.groups[q.group]; g == nil && q.group != "" {
		for _, id := range slices.Sorted(maps.Keys(c.nova.groups)) {
			if c.nova.groups[id].name == q.group && c.nova.groups[id].project == q.project {
				q.group = id
			}
		}
	}
	var err error
	if q.networks, err = c.networksOf(q.project, p); err != nil {
		return err
	}
	for _, key := range []string{"block_device_mapping_v2", "block_device_mapping"} {
		l, _ := p[key].([]any)
		for _, b := range l {
			m, _ := b.(map[string]any)
			if str(m, "volume_id") != "" {
				q.volumes = append(q.volumes, m)
			} else if n := orText(str(m, "image"), str(m, "image_id")); n != "" {
				d, err := c.findImage(q.project, n)
				if err != nil {
					return &failure{class: "EntityMatchNotFound", msg: err.Error()}
				}
				v, err := c.newVolume(q.project, q.user, doc{"size": max(toInt(m["volume_size"]), 1), "imageRef": d["id"]})
				if err != nil {
					return clientFailure("nova", err)
				}
				c.setVolume(str(v, "id"), "status", "available")
				q.volumes = append(q.volumes, doc{"volume_id": v["id"], "delete_on_termination": orElse(m["delete_on_termination"], true)})
			}
		}
	}
	s, err := c.newServer(q)
	if err != nil {
		return clientFailure("nova", err)
	}
	r.phys = s.id
	if s.status == "BUILD" {
		specs, _ := f["extra_specs"].(map[string]any)
		e.delay += time.Duration(toInt(specs[specDelay])) * time.Second
		if err := e.wait(); err != nil {
			return err
		}
		if specs[specFail] == "1" {
			c.breakServer(s, 500, "Build of instance "+s.id+" aborted: the flavor asks for a failure.")
		} else if e.inject != nil && e.inject.Effect == EffectFail {
			c.breakServer(s, 500, orText(e.inject.Reason, "An injected fault."))
		} else {
			c.activate(s)
		}
	}
	switch {
	case c.nova.servers[s.id] == nil:
		return &failure{class: "NotFound", msg: "Instance " + s.id + " could not be found. (HTTP 404)"}
	case s.status == "ERROR":
		return &failure{class: "ResourceInError", msg: fmt.Sprintf(`Went to status ERROR due to "Message: %s, Code: %d"`, str(s.fault, "message"), s.fault["code"])}
	}
	return nil
}

func serverUsable(c *Cloud, r *resource) bool {
	s := c.nova.servers[r.phys]
	return s != nil && s.status != "ERROR"
}

func serverReplaced(_ *Cloud, r *resource, p doc) bool {
	changed := diff(r.props, p)
	return slices.Contains(changed, "flavor") && p["flavor_update_policy"] == "REPLACE" ||
		slices.Contains(changed, "image") && p["image_update_policy"] == "REPLACE" ||
		slices.Contains(changed, "user_data") && p["user_data_update_policy"] != "IGNORE"
}

func updateServer(e *exec, r *resource, p doc) error {
	c := e.c
	s := c.nova.servers[r.phys]
	if s == nil {
		return &failure{class: "NotFound", msg: "Instance " + r.phys + " could not be found. (HTTP 404)"}
	}
	for _, k := range diff(e.old, p) {
		switch k {
		case "name":
			s.name = orText(str(p, "name"), s.name)
		case "flavor":
			f, found := c.findFlavor(str(p, "flavor"))
			if !found {
				return &failure{class: "NotFound", msg: "No Flavor matching {'name': '" + str(p, "flavor") + "'}. (HTTP 404)"}
			}
			s.flavor = f
		case "image":
			d, err := c.findImage(s.project, str(p, "image"))
			if err != nil {
				return &failure{class: "EntityMatchNotFound", msg: err.Error()}
			}
			s.image = str(d, "id")
		case "metadata":
			m, _ := p["metadata"].(map[string]any)
			s.metadata = with(m)
		case "networks":
			if err := c.replug(s, p); err != nil {
				return err
			}
		}
	}
	s.updated = c.clk.Now().UTC().Format(novaTime)
	return nil
}

// replug makes a server's interfaces what its networks property says.
func (c *Cloud) replug(s *server, p doc) error {
	want, err := c.networksOf(s.project, p)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, w := range want {
		keep[str(w, "port")] = true
	}
	for _, pid := range slices.Clone(s.ports) {
		if !keep[pid] {
			c.unplug(s, pid)
		}
	}
	for _, w := range want {
		pid := str(w, "port")
		if pid != "" && slices.Contains(s.ports, pid) {
			continue
		}
		if d, _ := c.net.ports.get(pid); pid != "" && str(d, "device_id") != "" {
			return clientFailure("nova", fail(409, "", "Port "+pid+" is still in use."))
		}
		if err := c.plug(s, w); err != nil {
			return clientFailure("neutron", err)
		}
	}
	return nil
}

func removeServer(e *exec, r *resource) error {
	if s := e.c.nova.servers[r.phys]; s != nil {
		e.c.dropServer(s)
	}
	return nil
}

func showServer(c *Cloud, r *resource) doc {
	s := c.nova.servers[r.phys]
	if s == nil {
		return doc{}
	}
	d := c.serverDoc(s)
	nets := doc{}
	first := ""
	for n, l := range d["addresses"].(doc) {
		ips := []any{}
		list, _ := l.([]any)
		for _, a := range list {
			ips = append(ips, a.(doc)["addr"])
		}
		nets[n] = ips
	}
	for _, pid := range s.ports {
		p, _ := c.net.ports.get(pid)
		if ips, _ := p["fixed_ips"].([]any); len(ips) > 0 && first == "" {
			first = str(ips[0].(map[string]any), "ip_address")
		}
	}
	d["networks"], d["first_address"], d["instance_name"], d["os_collect_config"] = nets, first, s.instanceName, doc{}
	d["console_urls"] = doc{}
	return d
}
