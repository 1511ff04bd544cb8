package vimsim

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim/hot"
)

// neutron holds the network service's objects.
type neutron struct {
	networks, subnets, ports, floatingips, routers, secgroups, qos *table
	pools                                                          map[string]*pool           // by subnet id
	byDevice                                                       map[string]map[string]bool // port ids by device id
}

// pool hands out the addresses of one subnet.
type pool struct {
	prefix netip.Prefix
	first  netip.Addr
	last   netip.Addr
	next   netip.Addr
	used   map[netip.Addr]bool
}

func newNeutron() neutron {
	return neutron{
		networks: newTable(), subnets: newTable(), ports: newTable(), floatingips: newTable(), routers: newTable(),
		secgroups: newTable(), qos: newTable(), pools: map[string]*pool{}, byDevice: map[string]map[string]bool{},
	}
}

func (p *pool) take() (netip.Addr, bool) {
	start := p.next
	for {
		a := p.next
		if p.next = a.Next(); !p.next.IsValid() || p.next.Compare(p.last) > 0 {
			p.next = p.first
		}
		if !p.used[a] {
			p.used[a] = true
			return a, true
		}
		if p.next == start {
			return netip.Addr{}, false
		}
	}
}

func (c *Cloud) stamp(d doc, project string) doc {
	now := c.now()
	d["project_id"], d["tenant_id"], d["created_at"], d["updated_at"] = project, project, now, now
	d["revision_number"] = int64(1)
	if d["description"] == nil {
		d["description"] = ""
	}
	if d["tags"] == nil {
		d["tags"] = []any{}
	}
	return d
}

func orElse(v, d any) any {
	if v == nil {
		return d
	}
	return v
}

// newNetwork makes a network from the members of a create request. Callers of
// all new…, update… and delete… functions hold mu.
func (c *Cloud) newNetwork(project string, q doc) doc {
	id := newID()
	d := c.stamp(doc{
		"id": id, "name": orElse(q["name"], ""), "admin_state_up": orElse(q["admin_state_up"], true), "status": "ACTIVE",
		"shared": orElse(q["shared"], false), "router:external": orElse(q["router:external"], false), "subnets": []any{},
		"mtu": int64(1450), "port_security_enabled": orElse(q["port_security_enabled"], true), "availability_zone_hints": []any{},
		"availability_zones": []any{}, "ipv4_address_scope": nil, "ipv6_address_scope": nil, "is_default": false,
		"qos_policy_id": q["qos_policy_id"], "l2_adjacency": true, "description": q["description"],
		"provider:network_type": orElse(q["provider:network_type"], "vxlan"), "provider:physical_network": q["provider:physical_network"],
		"provider:segmentation_id": orElse(q["provider:segmentation_id"], c.net.networks.next+1),
		"dns_domain":               "", "vlan_transparent": nil,
	}, project)
	c.net.networks.put(id, d)
	return d
}

func (c *Cloud) newSubnet(project string, q doc) (doc, error) {
	nid := str(q, "network_id")
	n, found := c.net.networks.get(nid)
	if !found {
		return nil, fail(404, "NetworkNotFound", "Network "+nid+" could not be found.")
	}
	pre, err := netip.ParsePrefix(str(q, "cidr"))
	if err != nil {
		return nil, fail(400, "HTTPBadRequest", fmt.Sprintf("Invalid input for cidr. Reason: '%s' is not a valid IP subnet.", hot.String(q["cidr"])))
	}
	pre = pre.Masked()
	first := pre.Addr().Next()
	p := &pool{prefix: pre, used: map[netip.Addr]bool{}, last: lastAddr(pre)}
	gw := any(nil)
	if g, given := q["gateway_ip"]; !given {
		gw = first.String()
		p.used[first] = true
		p.first = first.Next()
	} else {
		gw = g
		p.first = first
		if a, err := netip.ParseAddr(hot.String(g)); err == nil {
			p.used[a] = true
		}
	}
	pools := []any{doc{"start": p.first.String(), "end": p.last.String()}}
	if l, isList := q["allocation_pools"].([]any); isList && len(l) > 0 {
		pools = l
		m, _ := l[0].(map[string]any)
		a, err1 := netip.ParseAddr(str(m, "start"))
		b, err2 := netip.ParseAddr(str(m, "end"))
		if err1 != nil || err2 != nil || !pre.Contains(a) || !pre.Contains(b) {
			return nil, fail(409, "OutOfBoundsAllocationPool", fmt.Sprintf("The allocation pool %s-%s spans beyond the subnet cidr %s.", str(m, "start"), str(m, "end"), pre))
		}
		p.first, p.last = a, b
	}
	p.next = p.first
	ver := int64(4)
	if pre.Addr().Is6() {
		ver = 6
	}
	id := newID()
	d := c.stamp(doc{
		"id": id, "name": orElse(q["name"], ""), "network_id": nid, "cidr": pre.String(), "ip_version": ver, "gateway_ip": gw,
		"enable_dhcp": orElse(q["enable_dhcp"], true), "allocation_pools": pools, "dns_nameservers": orElse(q["dns_nameservers"], []any{}),
		"host_routes": orElse(q["host_routes"], []any{}), "ipv6_address_mode": q["ipv6_address_mode"], "ipv6_ra_mode": q["ipv6_ra_mode"],
		"subnetpool_id": nil, "service_types": []any{}, "segment_id": nil,
	}, project)
	c.net.subnets.put(id, d)
	c.net.pools[id] = p
	subs, _ := n["subnets"].([]any)
	c.net.networks.put(nid, with(n, "subnets", append(slices.Clone(subs), id)))
	return d, nil
}

func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	if p.Addr().Is4() && p.Bits() < 31 {
		return a.Prev()
	}
	return a
}

// allocate picks the addresses of a port: want is its fixed_ips request, nil
// for one address of the first subnet of each IP version.
func (c *Cloud) allocate(netID string, want []any) ([]any, error) {
	n, _ := c.net.networks.get(netID)
	subs, _ := n["subnets"].([]any)
	var got []any
	undo := func() { c.release(got) }
	one := func(sid string, ip string) error {
		p := c.net.pools[sid]
		if p == nil {
			return fail(404, "SubnetNotFound", "Subnet "+sid+" could not be found.")
		}
		if s, _ := c.net.subnets.get(sid); str(s, "network_id") != netID {
			return fail(400, "InvalidInput", fmt.Sprintf("Invalid input for operation: Failed to create port on network %s, because fixed_ips included invalid subnet %s.", netID, sid))
		}
		var a netip.Addr
		if ip == "" {
			var free bool
			if a, free = p.take(); !free {
				return fail(409, "IpAddressGenerationFailure", "No more IP addresses available on network "+netID+".")
			}
		} else {
			var err error
			if a, err = netip.ParseAddr(ip); err != nil {
				return fail(400, "HTTPBadRequest", "Invalid input for fixed_ips. Reason: '"+ip+"' is not a valid IP address.")
			}
			if !p.prefix.Contains(a) {
				return fail(400, "InvalidIpForSubnet", fmt.Sprintf("IP address %s is not a valid IP for the specified subnet.", ip))
			}
			if p.used[a] {
				return fail(409, "IpAddressAlreadyAllocated", fmt.Sprintf("IP address %s already allocated in subnet %s", ip, sid))
			}
			p.used[a] = true
		}
		got = append(got, doc{"subnet_id": sid, "ip_address": a.String()})
		return nil
	}
	if want == nil {
		have := map[bool]bool{}
		for _, s := range subs {
			sid := hot.String(s)
			if p := c.net.pools[sid]; p != nil && !have[p.prefix.Addr().Is4()] {
				have[p.prefix.Addr().Is4()] = true
				if err := one(sid, ""); err != nil {
					undo()
					return nil, err
				}
			}
		}
	}
	for _, w := range want {
		m, _ := w.(map[string]any)
		sid, ip := str(m, "subnet_id"), str(m, "ip_address")
		if sid == "" {
			for _, s := range subs {
				p := c.net.pools[hot.String(s)]
				a, err := netip.ParseAddr(ip)
				if p != nil && (ip == "" || err == nil && p.prefix.Contains(a)) {
					sid = hot.String(s)
					break
				}
			}
			if sid == "" {
				undo()
				return nil, fail(400, "InvalidIpForNetwork", fmt.Sprintf("IP address %s is not a valid IP for any of the subnets on the specified network.", ip))
			}
		}
		if err := one(sid, ip); err != nil {
			undo()
			return nil, err
		}
	}
	if got == nil {
		got = []any{}
	}
	return got, nil
}

func (c *Cloud) release(ips []any) {
	for _, f := range ips {
		m, _ := f.(map[string]any)
		if p := c.net.pools[str(m, "subnet_id")]; p != nil {
			if a, err := netip.ParseAddr(str(m, "ip_address")); err == nil {
				delete(p.used, a)
			}
		}
	}
}

func newMAC() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", b[0], b[1], b[2])
}

func (c *Cloud) newPort(project string, q doc) (doc, error) {
	nid := str(q, "network_id")
	n, found := c.net.networks.get(nid)
	if !found {
		return nil, fail(404, "NetworkNotFound", "Network "+nid+" could not be found.")
	}
	if lim := c.quota(project).Ports; lim > 0 && c.net.ports.count(project) >= lim {
		return nil, fail(409, "OverQuota", "Quota exceeded for resources: ['port'].")
	}
	if mac := str(q, "mac_address"); mac != "" {
		taken := func(d doc) bool { return str(d, "network_id") == nid && str(d, "mac_address") == mac }
		if len(c.net.ports.list(taken)) > 0 {
			return nil, fail(409, "MacAddressInUse", "Unable to complete operation for network "+nid+". The mac address "+mac+" is in use.")
		}
	}
	want, _ := q["fixed_ips"].([]any)
	ips, err := c.allocate(nid, want)
	if err != nil {
		return nil, err
	}
	id := newID()
	sgs := q["security_groups"]
	if sgs == nil {
		sgs = []any{c.defaultGroup(project)}
	}
	d := c.stamp(doc{
		"id": id, "name": orElse(q["name"], ""), "network_id": nid, "mac_address": orElse(q["mac_address"], newMAC()),
		"admin_state_up": orElse(q["admin_state_up"], true), "status": "DOWN", "device_id": "", "device_owner": orElse(q["device_owner"], ""),
		"fixed_ips": ips, "security_groups": sgs, "allowed_address_pairs": c.pairs(q["allowed_address_pairs"]),
		"binding:vnic_type": orElse(q["binding:vnic_type"], "normal"), "binding:host_id": "", "binding:vif_type": "unbound",
		"binding:vif_details": doc{}, "binding:profile": orElse(q["binding:profile"], doc{}), "extra_dhcp_opts": []any{},
		"port_security_enabled": orElse(q["port_security_enabled"], orElse(n["port_security_enabled"], true)),
		"qos_policy_id":         q["qos_policy_id"], "qos_network_policy_id": n["qos_policy_id"], "resource_request": nil,
		"ip_allocation": "immediate", "propagate_uplink_status": true,
	}, project)
	c.storePort(id, d)
	if dev := str(q, "device_id"); dev != "" {
		d = c.bindPort(id, dev, str(d, "device_owner"), "")
	}
	return d, nil
}

func (c *Cloud) pairs(v any) any {
	l, _ := v.([]any)
	out := []any{}
	for _, x := range l {
		m, _ := x.(map[string]any)
		if m["mac_address"] == nil {
			m = with(m, "mac_address", newMAC())
		}
		out = append(out, m)
	}
	return out
}

func (c *Cloud) storePort(id string, d doc) {
	if old, had := c.net.ports.get(id); had {
		if dev := str(old, "device_id"); dev != "" {
			delete(c.net.byDevice[dev], id)
			if len(c.net.byDevice[dev]) == 0 {
				delete(c.net.byDevice, dev)
			}
		}
	}
	if d == nil {
		c.net.ports.del(id)
		return
	}
	c.net.ports.put(id, d)
	if dev := str(d, "device_id"); dev != "" {
		if c.net.byDevice[dev] == nil {
			c.net.byDevice[dev] = map[string]bool{}
		}
		c.net.byDevice[dev][id] = true
	}
}

// bindPort gives a port to a device on a host, or frees it if device is empty.
func (c *Cloud) bindPort(id, device, owner, host string) doc {
	p, found := c.net.ports.get(id)
	if !found {
		return nil
	}
	st, vif := "DOWN", "unbound"
	if device != "" {
		st = "ACTIVE"
		if host != "" {
			vif = "ovs"
		}
	}
	p = with(p, "device_id", device, "device_owner", owner, "status", st, "binding:host_id", host, "binding:vif_type", vif, "updated_at", c.now())
	c.storePort(id, p)
	return p
}

func (c *Cloud) updatePort(id string, q doc) (doc, error) {
	p, found := c.net.ports.get(id)
	if !found {
		return nil, fail(404, "PortNotFound", "Port "+id+" could not be found.")
	}
	n := with(p, "updated_at", c.now())
	for k, v := range q {
		switch k {
		case "fixed_ips":
			want, _ := v.([]any)
			old, _ := p["fixed_ips"].([]any)
			c.release(old)
			ips, err := c.allocate(str(p, "network_id"), want)
			if err != nil {
				for _, f := range old {
					m, _ := f.(map[string]any)
					if pl := c.net.pools[str(m, "subnet_id")]; pl != nil {
						if a, e := netip.ParseAddr(str(m, "ip_address")); e == nil {
							pl.used[a] = true
						}
					}
				}
				return nil, err
			}
			n[k] = ips
		case "allowed_address_pairs":
			n[k] = c.pairs(v)
		case "id", "network_id", "project_id", "tenant_id", "status":
			return nil, fail(400, "HTTPBadRequest", "Cannot update read-only attribute "+k)
		default:
			n[k] = v
		}
	}
	c.storePort(id, n)
	return n, nil
}

func (c *Cloud) deletePort(id string) error {
	p, found := c.net.ports.get(id)
	if !found {
		return fail(404, "PortNotFound", "Port "+id+" could not be found.")
	}
	ips, _ := p["fixed_ips"].([]any)
	c.release(ips)
	c.storePort(id, nil)
	for _, f := range c.net.floatingips.list(func(d doc) bool { return str(d, "port_id") == id }) {
		c.net.floatingips.put(str(f, "id"), with(f, "port_id", nil, "fixed_ip_address", nil, "status", "DOWN"))
	}
	return nil
}

func (c *Cloud) defaultGroup(project string) string {
	l := c.net.secgroups.list(func(d doc) bool { return str(d, "project_id") == project && str(d, "name") == "default" })
	if len(l) > 0 {
		return str(l[0], "id")
	}
	return str(c.newSecGroup(project, doc{"name": "default", "description": "Default security group"}), "id")
}

func (c *Cloud) newSecGroup(project string, q doc) doc {
	id := newID()
	rules := []any{}
	rule := func(m doc) {
		rules = append(rules, with(doc{
			"id": newID(), "security_group_id": id, "direction": "ingress", "ethertype": "IPv4", "protocol": nil, "port_range_min": nil,
			"port_range_max": nil, "remote_ip_prefix": nil, "remote_group_id": nil, "project_id": project, "tenant_id": project, "description": "",
		}, flat(m)...))
	}
	rule(doc{"direction": "egress"})
	rule(doc{"direction": "egress", "ethertype": "IPv6"})
	l, _ := q["rules"].([]any)
	for _, r := range l {
		m, _ := r.(map[string]any)
		rule(m)
	}
	d := c.stamp(doc{"id": id, "name": orElse(q["name"], ""), "description": q["description"], "security_group_rules": rules, "stateful": true}, project)
	c.net.secgroups.put(id, d)
	return d
}

func flat(m doc) []any {
	out := make([]any, 0, 2*len(m))
	for k, v := range m {
		out = append(out, k, v)
	}
	return out
}

func (c *Cloud) newQoS(project string, q doc) doc {
	id := newID()
	d := c.stamp(doc{"id": id, "name": orElse(q["name"], ""), "description": q["description"], "shared": orElse(q["shared"], false), "is_default": false, "rules": []any{}}, project)
	c.net.qos.put(id, d)
	return d
}

func (c *Cloud) newRouter(project string, q doc) (doc, error) {
	id := newID()
	gw := q["external_gateway_info"]
	if m, isMap := gw.(map[string]any); isMap {
		nid := str(m, "network_id")
		if _, found := c.net.networks.get(nid); !found {
			return nil, fail(404, "NetworkNotFound", "Network "+nid+" could not be found.")
		}
		p, err := c.newPort(project, doc{"network_id": nid, "device_owner": "network:router_gateway", "device_id": id, "security_groups": []any{}})
		if err != nil {
			return nil, err
		}
		gw = with(m, "external_fixed_ips", p["fixed_ips"], "enable_snat", true)
	}
	d := c.stamp(doc{
		"id": id, "name": orElse(q["name"], ""), "admin_state_up": orElse(q["admin_state_up"], true), "status": "ACTIVE", "external_gateway_info": gw,
		"routes": []any{}, "distributed": false, "ha": false, "availability_zones": []any{}, "availability_zone_hints": []any{}, "flavor_id": nil,
	}, project)
	c.net.routers.put(id, d)
	return d, nil
}

func (c *Cloud) deleteRouter(id string) error {
	if _, found := c.net.routers.get(id); !found {
		return fail(404, "RouterNotFound", "Router "+id+" could not be found")
	}
	for pid := range c.net.byDevice[id] {
		if p, _ := c.net.ports.get(pid); str(p, "device_owner") == "network:router_interface" {
			return fail(409, "RouterInUse", "Router "+id+" still has ports")
		}
	}
	for pid := range c.net.byDevice[id] {
		if err := c.deletePort(pid); err != nil {
			return err
		}
	}
	c.net.routers.del(id)
	return nil
}

// addInterface plugs a router into a subnet by its gateway address.
func (c *Cloud) addInterface(router, subnet, port string) (doc, error) {
	rt, found := c.net.routers.get(router)
	if !found {
		return nil, fail(404, "RouterNotFound", "Router "+router+" could not be found")
	}
	if port != "" {
		p, found := c.net.ports.get(port)
		if !found {
			return nil, fail(404, "PortNotFound", "Port "+port+" could not be found.")
		}
		return c.bindPort(str(p, "id"), router, "network:router_interface", ""), nil
	}
	s, found := c.net.subnets.get(subnet)
	if !found {
		return nil, fail(404, "SubnetNotFound", "Subnet "+subnet+" could not be found.")
	}
	gw := str(s, "gateway_ip")
	if a, err := netip.ParseAddr(gw); err == nil {
		if c.net.pools[subnet].used[a] && len(c.net.ports.list(func(d doc) bool { return hasIP(d, subnet, gw) })) > 0 {
			return nil, fail(400, "BadRequest", "Bad router request: Router already has a port on subnet "+subnet+".")
		}
		delete(c.net.pools[subnet].used, a)
	}
	return c.newPort(str(rt, "project_id"), doc{
		"network_id": s["network_id"], "fixed_ips": []any{doc{"subnet_id": subnet, "ip_address": gw}}, "security_groups": []any{},
		"device_id": router, "device_owner": "network:router_interface",
	})
}

func hasIP(p doc, subnet, ip string) bool {
	l, _ := p["fixed_ips"].([]any)
	for _, f := range l {
		m, _ := f.(map[string]any)
		if (subnet == "" || str(m, "subnet_id") == subnet) && (ip == "" || str(m, "ip_address") == ip) {
			return true
		}
	}
	return false
}

func (c *Cloud) newFloatingIP(project string, q doc) (doc, error) {
	nid := str(q, "floating_network_id")
	n, found := c.net.networks.get(nid)
	if !found {
		return nil, fail(404, "NetworkNotFound", "Network "+nid+" could not be found.")
	}
	if n["router:external"] != true {
		return nil, fail(400, "BadRequest", "Bad floatingip request: Network "+nid+" is not a valid external network.")
	}
	ips, err := c.allocate(nid, nil)
	if err != nil {
		return nil, err
	}
	addr := ""
	if len(ips) > 0 {
		addr = str(ips[0].(map[string]any), "ip_address")
	}
	id := newID()
	d := c.stamp(doc{
		"id": id, "floating_network_id": nid, "floating_ip_address": addr, "port_id": nil, "fixed_ip_address": nil, "router_id": nil,
		"status": "DOWN", "port_details": nil, "port_forwardings": []any{}, "qos_policy_id": nil, "_ips": ips,
	}, project)
	c.net.floatingips.put(id, d)
	if pid := str(q, "port_id"); pid != "" {
		return c.associate(id, pid)
	}
	return d, nil
}

// associate points a floating IP at a port, or at none if port is empty.
func (c *Cloud) associate(id, port string) (doc, error) {
	f, found := c.net.floatingips.get(id)
	if !found {
		return nil, fail(404, "FloatingIPNotFound", "Floating IP "+id+" could not be found")
	}
	if port == "" {
		f = with(f, "port_id", nil, "fixed_ip_address", nil, "status", "DOWN", "router_id", nil)
	} else {
		p, found := c.net.ports.get(port)
		if !found {
			return nil, fail(404, "PortNotFound", "Port "+port+" could not be found.")
		}
		ip := any(nil)
		if l, _ := p["fixed_ips"].([]any); len(l) > 0 {
			ip = l[0].(map[string]any)["ip_address"]
		}
		f = with(f, "port_id", port, "fixed_ip_address", ip, "status", "ACTIVE")
	}
	c.net.floatingips.put(id, f)
	return f, nil
}

func (c *Cloud) deleteFloatingIP(id string) error {
	f, found := c.net.floatingips.get(id)
	if !found {
		return fail(404, "FloatingIPNotFound", "Floating IP "+id+" could not be found")
	}
	ips, _ := f["_ips"].([]any)
	c.release(ips)
	c.net.floatingips.del(id)
	return nil
}

func (c *Cloud) deleteSubnet(id string) error {
	s, found := c.net.subnets.get(id)
	if !found {
		return fail(404, "SubnetNotFound", "Subnet "+id+" could not be found.")
	}
	if len(c.net.ports.list(func(d doc) bool { return hasIP(d, id, "") })) > 0 {
		return fail(409, "SubnetInUse", "Unable to complete operation on subnet "+id+": One or more ports have an IP allocation from this subnet.")
	}
	c.net.subnets.del(id)
	delete(c.net.pools, id)
	nid := str(s, "network_id")
	if n, found := c.net.networks.get(nid); found {
		subs, _ := n["subnets"].([]any)
		c.net.networks.put(nid, with(n, "subnets", slices.DeleteFunc(slices.Clone(subs), func(x any) bool { return x == id })))
	}
	return nil
}

func (c *Cloud) deleteNetwork(id string) error {
	if _, found := c.net.networks.get(id); !found {
		return fail(404, "NetworkNotFound", "Network "+id+" could not be found.")
	}
	if len(c.net.ports.list(func(d doc) bool { return str(d, "network_id") == id })) > 0 {
		return fail(409, "NetworkInUse", "Unable to complete operation on network "+id+". There are one or more ports in use on the network.")
	}
	for _, s := range c.net.subnets.list(func(d doc) bool { return str(d, "network_id") == id }) {
		c.net.subnets.del(str(s, "id"))
		delete(c.net.pools, str(s, "id"))
	}
	c.net.networks.del(id)
	return nil
}
