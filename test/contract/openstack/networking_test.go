package openstack_test

import (
	"net/http"
	"slices"
	"testing"
)

// TestPorts: ports are listed by several ids at once, with the fields that are asked for; an address is given once.
func TestPorts(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(`
resources:
  net: {type: OS::Neutron::Net}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.95.0.0/24}}
  a: {type: OS::Neutron::Port, properties: {network: {get_resource: net}, fixed_ips: [{ip_address: 10.95.0.9}]}, depends_on: sub}
  b: {type: OS::Neutron::Port, properties: {network: {get_resource: net}, mac_address: 'fa:16:3e:00:00:0b'}, depends_on: sub}
`))
		network, a, b := s.physical(t, "net"), s.physical(t, "a"), s.physical(t, "b")
		l := list(c.neutron.get(t, "ports?id="+a+"&id="+b+"&id="+network+"&fields=id&fields=fixed_ips&fields=mac_address&fields=device_id").doc, "ports")
		var ids []string
		for _, p := range l {
			ids = append(ids, text(p, "id"))
			if _, given := p["network_id"]; given || len(list(p, "fixed_ips")) != 1 || text(p, "mac_address") == "" {
				t.Errorf("port with four fields: %v", p)
			}
			same(t, "device of a port that nobody uses", text(p, "device_id"), "")
		}
		slices.Sort(ids)
		if want := slices.Sorted(slices.Values([]string{a, b})); !slices.Equal(ids, want) {
			t.Errorf("ports %v, want %v", ids, want)
		}
		same(t, "address", c.address(t, a), "10.95.0.9")
		same(t, "MAC address", text(c.neutron.get(t, "ports/"+b).doc, "port", "mac_address"), "fa:16:3e:00:00:0b")
		one(t, c.neutron.get(t, "networks?id="+network+"&fields=id&fields=name"), "networks")
		same(t, "a network by its name", text(one(t, c.neutron.get(t, "networks?name="+net0), "networks"), "name"), net0)
		for _, none := range []string{"networks?name=none-such", "networks?id=none-such", "ports?id=" + network} {
			if l := list(c.neutron.get(t, none).doc, none[:max(0, slices.Index([]byte(none), '?'))]); len(l) > 0 {
				t.Errorf("%s finds %v", none, l)
			}
		}
		port := func(more ...any) *answer {
			r := c.neutron.do(t, http.MethodPost, "ports", doc{"port": with(doc{"network_id": network}, more...)})
			if r.status == http.StatusCreated {
				t.Cleanup(func() { c.neutron.do(t, http.MethodDelete, "ports/"+text(r.doc, "port", "id"), nil) })
			}
			return r
		}
		port("fixed_ips", []doc{{"ip_address": "10.95.0.9"}}).says(t, http.StatusConflict, `"IpAddressAlreadyAllocated"`, "IP address 10.95.0.9 already allocated in subnet "+s.physical(t, "sub"))
		port("fixed_ips", []doc{{"ip_address": "10.94.0.9"}}).says(t, http.StatusBadRequest, `"InvalidIpForNetwork"`, "IP address 10.94.0.9 is not a valid IP for any of the subnets on the specified network.")
		port("mac_address", "fa:16:3e:00:00:0b").says(t, http.StatusConflict, `"MacAddressInUse"`)
		c.neutron.do(t, http.MethodPost, "ports", doc{"port": doc{"network_id": a}}).says(t, http.StatusNotFound, `"NetworkNotFound"`, "Network "+a+" could not be found.")
		c.neutron.do(t, http.MethodGet, "ports/"+network, nil).says(t, http.StatusNotFound, "Port "+network+" could not be found.")
		c.neutron.do(t, http.MethodDelete, "networks/"+network, nil).says(t, http.StatusConflict, `"NetworkInUse"`)
	})
}

// TestServersListed: servers and volumes are listed in pages that lead on, with what they are connected to; a volume that is in
// use cannot be deleted.
func TestServersListed(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(withVolume+"  other: {type: OS::Nova::Server, properties: {flavor: m1.tiny, image: "+cirros+", networks: [{network: net1}]}}\n  spare: {type: OS::Cinder::Volume, properties: {size: 1}}\n"))
		for _, x := range []struct {
			service *api
			kind    string
			want    []string
		}{
			{c.nova, "servers", []string{s.physical(t, "vdu"), s.physical(t, "other")}},
			{c.cinder, "volumes", []string{s.physical(t, "storage"), s.physical(t, "spare")}},
		} {
			var seen []string
			for query := "?limit=1"; query != ""; {
				r := x.service.get(t, x.kind+"/detail"+query)
				query = ""
				for _, d := range list(r.doc, x.kind) {
					seen = append(seen, text(d, "id"))
					query = "?limit=1&marker=" + text(d, "id")
				}
				if query != "" && len(seen) < len(x.want) && len(list(r.doc, x.kind+"_links")) == 0 {
					t.Errorf("a page of %s that is not the last does not lead on", x.kind)
				}
			}
			slices.Sort(seen)
			if !slices.Equal(seen, slices.Sorted(slices.Values(x.want))) {
				t.Errorf("%s %v, want %v", x.kind, seen, x.want)
			}
		}
		volume, _ := at(c.cinder.get(t, "volumes/"+s.physical(t, "storage")).doc, "volume").(doc)
		same(t, "the volume's size", at(volume, "size"), any(1.0))
		same(t, "the device", text(list(volume, "attachments")[0], "device"), "/dev/vdb")
		c.cinder.do(t, http.MethodDelete, "volumes/"+text(volume, "id"), nil).says(t, http.StatusBadRequest, "Invalid volume: Volume status must be available or error or ")
		spare, _ := at(c.cinder.get(t, "volumes/"+s.physical(t, "spare")).doc, "volume").(doc)
		same(t, "the spare volume", text(spare, "status"), "available")
		c.cinder.do(t, http.MethodGet, "volumes/"+s.physical(t, "vdu"), nil).is(t, http.StatusNotFound)
		// A port that Nova has made for a server goes with it, and is listed by its device.
		own := c.portOf(t, s.physical(t, "other"))
		same(t, "owner of a server's port", text(own, "device_owner"), "compute:nova")
		// The template of a stack is an object.
		tm := c.heat.get(t, s.path("template")).doc
		same(t, "a property in the template", at(tm, "resources", "spare", "properties", "size"), any(1.0))
	})
}
