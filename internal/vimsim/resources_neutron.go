package vimsim

import (
	"fmt"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

// findNet resolves the name or id of a network object as Heat does; the error
// has the network client's wording. mu is held.
func (c *Cloud) findNet(kind, name, project string) (doc, error) {
	t := map[string]*table{
		"network": c.net.networks, "subnet": c.net.subnets, "port": c.net.ports, "router": c.net.routers, "floatingip": c.net.floatingips,
		"security_group": c.net.secgroups, "qos_policy": c.net.qos,
	}[kind]
	if t == nil {
		return nil, fmt.Errorf("no such kind of object: %s", kind)
	}
	label := map[string]string{"qos_policy": "policy"}[kind]
	if label == "" {
		label = kind
	}
	l := t.find(name, func(d doc) bool {
		return str(d, "project_id") == project || d["shared"] == true || d["router:external"] == true || kind == "subnet"
	})
	switch len(l) {
	case 0:
		return nil, fmt.Errorf("Unable to find %s with name or id '%s'", label, name)
	case 1:
		return l[0], nil
	}
	return nil, fmt.Errorf("Multiple %s matches found for name '%s', use an ID to be more specific.", label, name)
}

// netID resolves to an id, as a failure of class NotFound if it cannot.
func (c *Cloud) netID(kind string, v any, project string) (any, error) {
	name, _ := v.(string)
	if name == "" {
		return nil, nil
	}
	d, err := c.findNet(kind, name, project)
	if err != nil {
		return nil, &failure{class: "NotFound", msg: err.Error()}
	}
	return d["id"], nil
}

// netIDs resolves several properties of a map: property → kind, request key.
func (c *Cloud) netIDs(p, q doc, project string, keys ...[3]string) error {
	for _, k := range keys {
		v, err := c.netID(k[1], p[k[0]], project)
		if err != nil {
			return err
		}
		if v != nil {
			q[k[2]] = v
		}
	}
	return nil
}

func copyProps(p doc, names ...string) doc {
	q := doc{}
	for _, n := range names {
		if p[n] != nil {
			q[n] = p[n]
		}
	}
	return q
}

func (c *Cloud) portRequest(p doc, project string) (doc, error) {
	q := copyProps(p, "name", "mac_address", "admin_state_up", "allowed_address_pairs", "binding:vnic_type", "port_security_enabled", "device_id", "device_owner")
	if m, _ := p["value_specs"].(map[string]any); m != nil {
		for k, v := range m {
			q[k] = v
		}
	}
	err := c.netIDs(p, q, project, [3]string{"network", "network", "network_id"}, [3]string{"network_id", "network", "network_id"}, [3]string{"qos_policy", "qos_policy", "qos_policy_id"})
	if err != nil {
		return nil, err
	}
	if l, isList := p["fixed_ips"].([]any); isList && len(l) > 0 {
		ips := make([]any, 0, len(l))
		for _, f := range l {
			m, _ := f.(map[string]any)
			ip := copyProps(m, "ip_address")
			if err := c.netIDs(m, ip, project, [3]string{"subnet", "subnet", "subnet_id"}, [3]string{"subnet_id", "subnet", "subnet_id"}); err != nil {
				return nil, err
			}
			ips = append(ips, ip)
		}
		q["fixed_ips"] = ips
	} else if p["no_fixed_ips"] == true {
		q["fixed_ips"] = []any{}
	}
	if l, isList := p["security_groups"].([]any); isList {
		ids := make([]any, 0, len(l))
		for _, g := range l {
			id, err := c.netID("security_group", g, project)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		q["security_groups"] = ids
	}
	return q, nil
}

// simpleNet makes the type of an object that is a plain document.
func simpleNet(name, list string, attrs []string, table func(*Cloud) *table, create func(c *Cloud, r *resource, p doc) (doc, error), remove func(c *Cloud, id string) error) *rtype {
	return &rtype{
		name: name, service: "neutron", props: props(list), attrs: attrs,
		create: func(e *exec, r *resource, p doc) error {
			d, err := create(e.c, r, p)
			if err != nil {
				return clientFailure("neutron", err)
			}
			r.phys = str(d, "id")
			return nil
		},
		update: func(e *exec, r *resource, p doc) error {
			d, found := table(e.c).get(r.phys)
			if !found {
				return &failure{class: "NotFound", msg: name + " " + r.phys + " could not be found."}
			}
			q := doc{}
			for _, k := range diff(e.old, p) {
				if _, member := d[k]; member {
					q[k] = p[k]
				}
			}
			if err := e.c.netIDs(p, q, r.stack.project, [3]string{"qos_policy", "qos_policy", "qos_policy_id"}); err != nil {
				return err
			}
			table(e.c).put(r.phys, with(with(d, flat(q)...), "updated_at", e.c.now()))
			return nil
		},
		remove: func(e *exec, r *resource) error {
			if _, found := table(e.c).get(r.phys); !found {
				return nil
			}
			return clientErr("neutron", remove(e.c, r.phys))
		},
		show: func(c *Cloud, r *resource) doc { d, _ := table(c).get(r.phys); return public(d) },
	}
}

func clientErr(service string, err error) error {
	if err == nil {
		return nil
	}
	return clientFailure(service, err)
}

func neutronTypes() []*rtype {
	networks := func(c *Cloud) *table { return c.net.networks }
	named := func(r *resource, q doc) doc { return with(q, "name", orText(str(q, "name"), r.physicalName())) }
	qosTable := func(c *Cloud) *table { return c.net.qos }
	groups := func(c *Cloud) *table { return c.net.secgroups }
	port := simpleNet("OS::Neutron::Port", `network:network network_id:network name~ fixed_ips~ mac_address admin_state_up~ allowed_address_pairs~
		security_groups~ binding:vnic_type~ port_security_enabled~ qos_policy~:qos_policy value_specs~ device_id~ device_owner~
		replacement_policy~ tags~ dns_name~ no_fixed_ips~ propagate_uplink_status~`,
		[]string{
			"admin_state_up", "device_id", "device_owner", "fixed_ips", "mac_address", "name", "network_id", "security_groups", "status", "tenant_id",
			"allowed_address_pairs", "subnets", "port_security_enabled", "qos_policy_id", "dns_assignment", "network", "propagate_uplink_status",
		},
		func(c *Cloud) *table { return c.net.ports },
		func(c *Cloud, r *resource, p doc) (doc, error) {
			q, err := c.portRequest(p, r.stack.project)
			if err != nil {
				return nil, err
			}
			return c.newPort(r.stack.project, named(r, q))
		}, (*Cloud).deletePort)
	// The vnic type's name holds a colon, which the property list cannot say.
	delete(port.props, "binding")
	port.props["binding:vnic_type"] = prop{update: true}
	port.update = func(e *exec, r *resource, p doc) error {
		q, err := e.c.portRequest(p, r.stack.project)
		if err != nil {
			return err
		}
		delete(q, "network_id")
		change := doc{}
		for _, k := range diff(e.old, p) {
			switch k {
			case "qos_policy":
				change["qos_policy_id"] = q["qos_policy_id"]
			case "fixed_ips", "name", "admin_state_up", "allowed_address_pairs", "security_groups", "binding:vnic_type", "port_security_enabled":
				if v, given := q[k]; given {
					change[k] = v
				}
			}
		}
		_, err = e.c.updatePort(r.phys, change)
		return clientErr("neutron", err)
	}
	port.release = func(c *Cloud, r *resource) {
		// As Heat: the replacement may take the old port's addresses.
		if _, found := c.net.ports.get(r.phys); found {
			_, _ = c.updatePort(r.phys, doc{"fixed_ips": []any{}}) // giving up addresses cannot fail
		}
	}
	port.validate = func(_ *Cloud, _ *stack, name string, p doc) error {
		if p["network"] == nil && p["network_id"] == nil {
			return &hot.Error{Kind: "StackValidationFailed", Label: "Property error", Path: []string{"resources", name, "properties"}, Msg: "Property network not assigned"}
		}
		return nil
	}
	baseShow := port.show
	port.show = func(c *Cloud, r *resource) doc {
		d := baseShow(c, r)
		n, _ := c.net.networks.get(str(d, "network_id"))
		subs := []any{}
		ips, _ := d["fixed_ips"].([]any)
		for _, f := range ips {
			if s, found := c.net.subnets.get(str(f.(map[string]any), "subnet_id")); found {
				subs = append(subs, s)
			}
		}
		d["subnets"], d["network"], d["dns_assignment"] = subs, n, nil
		return d
	}
	return []*rtype{
		port,
		simpleNet("OS::Neutron::Net", "name~ admin_state_up~ shared~ port_security_enabled~ qos_policy~:qos_policy dhcp_agent_ids~ tenant_id value_specs~ dns_domain~ tags~ availability_zone_hints",
			[]string{"status", "name", "subnets", "admin_state_up", "tenant_id", "port_security_enabled", "mtu", "qos_policy_id", "l2_adjacency", "segments"}, networks,
			func(c *Cloud, r *resource, p doc) (doc, error) {
				q := copyProps(p, "name", "admin_state_up", "shared", "port_security_enabled")
				if m, _ := p["value_specs"].(map[string]any); m != nil {
					q = with(q, flat(m)...)
				}
				if err := c.netIDs(p, q, r.stack.project, [3]string{"qos_policy", "qos_policy", "qos_policy_id"}); err != nil {
					return nil, err
				}
				if lim := c.quota(r.stack.project).Networks; lim > 0 && c.net.networks.count(r.stack.project) >= lim {
					return nil, fail(409, "OverQuota", "Quota exceeded for resources: ['network'].")
				}
				return c.newNetwork(r.stack.project, named(r, q)), nil
			}, (*Cloud).deleteNetwork),
		simpleNet("OS::Neutron::Subnet", "network:network network_id:network cidr name~ gateway_ip~ ip_version enable_dhcp~ allocation_pools~ dns_nameservers~ host_routes~ tenant_id ipv6_ra_mode ipv6_address_mode subnetpool prefixlen segment value_specs~ tags~",
			[]string{"name", "network_id", "tenant_id", "allocation_pools", "gateway_ip", "host_routes", "ip_version", "cidr", "dns_nameservers", "enable_dhcp"},
			func(c *Cloud) *table { return c.net.subnets },
			func(c *Cloud, r *resource, p doc) (doc, error) {
				q := copyProps(p, "name", "cidr", "enable_dhcp", "allocation_pools", "dns_nameservers", "host_routes", "ipv6_ra_mode", "ipv6_address_mode")
				if g, given := p["gateway_ip"]; given {
					q["gateway_ip"] = nilIfEmpty(hot.String(g))
				}
				if err := c.netIDs(p, q, r.stack.project, [3]string{"network", "network", "network_id"}, [3]string{"network_id", "network", "network_id"}); err != nil {
					return nil, err
				}
				return c.newSubnet(r.stack.project, named(r, q))
			}, (*Cloud).deleteSubnet),
		simpleNet("OS::Neutron::QoSPolicy", "name description~ shared~ tenant_id", []string{"rules"}, qosTable,
			func(c *Cloud, r *resource, p doc) (doc, error) {
				return c.newQoS(r.stack.project, named(r, copyProps(p, "name", "description", "shared"))), nil
			}, removeFrom(qosTable)),
		qosRule("OS::Neutron::QoSBandwidthLimitRule", "bandwidth_limit", "policy!:qos_policy max_kbps!~ max_burst_kbps~ direction~ tenant_id", "max_kbps", "max_burst_kbps", "direction"),
		qosRule("OS::Neutron::QoSDscpMarkingRule", "dscp_marking", "policy!:qos_policy dscp_mark!~ tenant_id", "dscp_mark"),
		qosRule("OS::Neutron::QoSMinimumBandwidthRule", "minimum_bandwidth", "policy!:qos_policy min_kbps!~ direction~ tenant_id", "min_kbps", "direction"),
		simpleNet("OS::Neutron::SecurityGroup", "name~ description~ rules~", []string{"name", "rules"}, groups,
			func(c *Cloud, r *resource, p doc) (doc, error) {
				return c.newSecGroup(r.stack.project, named(r, copyProps(p, "name", "description", "rules"))), nil
			}, removeFrom(groups)),
		simpleNet("OS::Neutron::Router", "name~ external_gateway_info~ admin_state_up~ value_specs~ l3_agent_id~ l3_agent_ids~ distributed ha tags~ availability_zone_hints",
			[]string{"status", "external_gateway_info", "name", "admin_state_up", "tenant_id"}, func(c *Cloud) *table { return c.net.routers },
			func(c *Cloud, r *resource, p doc) (doc, error) {
				q := copyProps(p, "name", "admin_state_up")
				if m, _ := p["external_gateway_info"].(map[string]any); m != nil {
					id, err := c.netID("network", m["network"], r.stack.project)
					if err != nil {
						return nil, err
					}
					q["external_gateway_info"] = doc{"network_id": id}
				}
				return c.newRouter(r.stack.project, named(r, q))
			}, (*Cloud).deleteRouter),
		{
			name: "OS::Neutron::RouterInterface", service: "neutron", props: props("router:router router_id:router subnet:subnet subnet_id:subnet port:port port_id:port"),
			create: func(e *exec, r *resource, p doc) error {
				q := doc{}
				err := e.c.netIDs(p, q, r.stack.project, [3]string{"router", "router", "r"}, [3]string{"router_id", "router", "r"}, [3]string{"subnet", "subnet", "s"},
					[3]string{"subnet_id", "subnet", "s"}, [3]string{"port", "port", "p"}, [3]string{"port_id", "port", "p"})
				if err != nil {
					return err
				}
				d, err := e.c.addInterface(str(q, "r"), str(q, "s"), str(q, "p"))
				if err != nil {
					return clientFailure("neutron", err)
				}
				r.phys = str(q, "r") + ":subnet_id=" + str(q, "s")
				r.data["port"] = d["id"]
				return nil
			},
			remove: func(e *exec, r *resource) error {
				id, _ := r.data["port"].(string)
				if _, found := e.c.net.ports.get(id); !found {
					return nil
				}
				return clientErr("neutron", e.c.deletePort(id))
			},
		},
		simpleNet("OS::Neutron::FloatingIP", "floating_network!:network floating_network_id:network port_id~:port fixed_ip_address~ value_specs~ dns_name~ floating_ip_address floating_subnet tags~",
			[]string{"router_id", "tenant_id", "floating_network_id", "fixed_ip_address", "floating_ip_address", "port_id"},
			func(c *Cloud) *table { return c.net.floatingips },
			func(c *Cloud, r *resource, p doc) (doc, error) {
				q := doc{}
				if err := c.netIDs(p, q, r.stack.project, [3]string{"floating_network", "network", "floating_network_id"}, [3]string{"port_id", "port", "port_id"}); err != nil {
					return nil, err
				}
				return c.newFloatingIP(r.stack.project, q)
			}, (*Cloud).deleteFloatingIP),
		{
			name: "OS::Neutron::FloatingIPAssociation", service: "neutron", props: props("floatingip_id!~:floatingip port_id~:port fixed_ip_address~"),
			create: func(e *exec, r *resource, p doc) error {
				_, err := e.c.associate(str(p, "floatingip_id"), str(p, "port_id"))
				if err != nil {
					return clientFailure("neutron", err)
				}
				r.phys = str(p, "floatingip_id") + ":" + str(p, "port_id")
				return nil
			},
			update: func(e *exec, r *resource, p doc) error {
				if old := str(e.old, "floatingip_id"); old != str(p, "floatingip_id") {
					_, _ = e.c.associate(old, "") // it may be gone already
				}
				_, err := e.c.associate(str(p, "floatingip_id"), str(p, "port_id"))
				r.phys = str(p, "floatingip_id") + ":" + str(p, "port_id")
				return clientErr("neutron", err)
			},
			remove: func(e *exec, r *resource) error {
				_, _ = e.c.associate(str(r.props, "floatingip_id"), "") // it may be gone already
				return nil
			},
		},
	}
}

// qosRule makes a type whose objects are rules inside a QoS policy.
func qosRule(name, kind, list string, fields ...string) *rtype {
	set := func(c *Cloud, policy string, id string, rule doc) error {
		d, found := c.net.qos.get(policy)
		if !found {
			if rule == nil {
				return nil
			}
			return &failure{class: "NotFound", msg: "QoS policy " + policy + " could not be found."}
		}
		rules, _ := d["rules"].([]any)
		rules = slices.DeleteFunc(slices.Clone(rules), func(x any) bool { return str(x.(doc), "id") == id })
		if rule != nil {
			rules = append(rules, with(rule, "id", id, "qos_policy_id", policy, "type", kind))
		}
		c.net.qos.put(policy, with(d, "rules", rules))
		return nil
	}
	apply := func(e *exec, r *resource, p doc) error {
		id, err := e.c.netID("qos_policy", p["policy"], r.stack.project)
		if err != nil {
			return err
		}
		if r.phys == "" {
			r.phys = newID()
		}
		r.data["policy"] = id
		return set(e.c, hot.String(id), r.phys, copyProps(p, fields...))
	}
	return &rtype{
		name: name, service: "neutron", props: props(list), create: apply, update: apply,
		remove: func(e *exec, r *resource) error { return set(e.c, hot.String(r.data["policy"]), r.phys, nil) },
	}
}
