package openstack_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// address is a port's first fixed address.
func (c *target) address(t *testing.T, port string) string {
	t.Helper()
	l := list(c.neutron.get(t, "ports/"+port).doc, "port", "fixed_ips")
	if len(l) == 0 {
		t.Fatalf("port %s has no address", port)
	}
	return text(l[0], "ip_address")
}

// portOf is the only port of a server.
func (c *target) portOf(t *testing.T, server string) doc {
	t.Helper()
	return one(t, c.neutron.get(t, "ports?device_id="+server), "ports")
}

// server reads a server.
func (c *target) server(t *testing.T, id string) doc {
	t.Helper()
	d, _ := at(c.nova.get(t, "servers/"+id).doc, "server").(doc)
	return d
}

// attached are the ids of a server's volumes.
func attached(server doc) []string {
	var out []string
	for _, v := range list(server, "os-extended-volumes:volumes_attached") {
		out = append(out, text(v, "id"))
	}
	return out
}

// TestHeal: what is marked is made again by the next update; what is not marked stays, and is used by the new one where it can.
func TestHeal(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(withVolume))
		port, storage, first := s.physical(t, "cp"), s.physical(t, "storage"), s.physical(t, "vdu")
		ip := c.address(t, port)
		is := func(when, server, volume string) {
			t.Helper()
			d := c.server(t, server)
			same(t, when+": the server", text(d, "status"), "ACTIVE")
			if got := attached(d); !slices.Equal(got, []string{volume}) {
				t.Errorf("%s: volumes of the server: %v, want %s", when, got, volume)
			}
			p := c.portOf(t, server)
			same(t, when+": the server's port", text(p, "id"), port)
			same(t, when+": its address", c.address(t, port), ip)
			v, _ := at(c.cinder.get(t, "volumes/"+volume).doc, "volume").(doc)
			same(t, when+": the volume", text(v, "status"), "in-use")
			if l := list(v, "attachments"); len(l) != 1 || text(l[0], "server_id") != server {
				t.Errorf("%s: the volume's attachments: %v", when, l)
			}
		}
		is("at first", first, storage)

		s.mark(t, "vdu").is(t, http.StatusOK)
		s.mark(t, "storage").is(t, http.StatusOK)
		same(t, "the stack's state after marks", s.status(t), "CREATE_COMPLETE")
		same(t, "the server's state after its mark", text(s.resource(t, "vdu"), "resource_status"), "CHECK_FAILED")
		s.mark(t, "none").is(t, http.StatusNotFound)
		s.update(t, hot(withVolume))
		second, other := s.physical(t, "vdu"), s.physical(t, "storage")
		if second == first || other == storage {
			t.Fatalf("server %s %s, volume %s %s", first, second, storage, other)
		}
		c.nova.do(t, http.MethodGet, "servers/"+first, nil).is(t, http.StatusNotFound)
		c.cinder.do(t, http.MethodGet, "volumes/"+storage, nil).is(t, http.StatusNotFound)
		is("after both marks", second, other)

		// A server alone cannot be made again: the volume is in use by the one that is to go, which goes last.
		s.mark(t, "vdu").is(t, http.StatusOK)
		reason := text(s.update(t, hot(withVolume), "UPDATE_FAILED"), "stack_status_reason")
		t.Logf("reason: %s", reason)
		if !strings.HasPrefix(reason, "Resource CREATE failed: BadRequest: resources.vdu: Invalid volume: ") ||
			!strings.Contains(reason, "status must be available or downloading to reserve, but the current status is in-use. (HTTP 400)") {
			t.Errorf("reason %q", reason)
		}
		// With the volume it can, from there too.
		s.mark(t, "storage").is(t, http.StatusOK)
		s.update(t, hot(withVolume))
		third := s.physical(t, "vdu")
		storage, other = other, s.physical(t, "storage")
		if third == second || other == storage {
			t.Fatalf("server %s %s, volume %s %s", second, third, storage, other)
		}
		c.nova.do(t, http.MethodGet, "servers/"+second, nil).is(t, http.StatusNotFound)
		is("after a failure", third, other)

		// One that somebody has deleted is not missed by an update, until it is marked.
		c.nova.do(t, http.MethodDelete, "servers/"+third, nil).is(t, http.StatusNoContent)
		c.eventually(t, "the server is gone", func() bool { return c.nova.do(t, http.MethodGet, "servers/"+third, nil).status == http.StatusNotFound }, func() any { return third })
		s.update(t, hot(withVolume))
		same(t, "the server that is gone, after an update", s.physical(t, "vdu"), third)
		s.mark(t, "vdu").is(t, http.StatusOK)
		s.update(t, hot(withVolume))
		is("after it was deleted", s.physical(t, "vdu"), other)
	})
}

// TestHealMember: what is marked inside a member of a group is made again in its place; the member, the others and its port
// stay.
func TestHealMember(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		request := hot(group(0, 3, "2", "{type: vnfc.yaml}"), "files", doc{"vnfc.yaml": vnfcFile})
		s := c.made(t, request)
		type vnfc struct{ member, server, port string }
		look := func() []vnfc {
			all := s.resources(t)
			var out []vnfc
			for _, m := range s.members(t, "g") {
				v := vnfc{member: text(m, "resource_name")}
				for _, r := range all {
					if _, id := link(r, "stack"); id == text(m, "physical_resource_id") {
						switch text(r, "resource_name") {
						case "vdu":
							v.server = text(r, "physical_resource_id")
						case "cp":
							v.port = text(r, "physical_resource_id")
						}
					}
				}
				out = append(out, v)
			}
			return out
		}
		before := look()
		if len(before) != 2 {
			t.Fatalf("members %v", before)
		}
		sick := s.nested(t, "g").nested(t, before[0].member)
		ip := c.address(t, before[0].port)
		sick.mark(t, "vdu").is(t, http.StatusOK)
		same(t, "the member's state after the mark", sick.status(t), "CREATE_COMPLETE")
		s.update(t, request)
		after := look()
		if len(after) != 2 || after[0].member != before[0].member || after[0].port != before[0].port || after[0].server == before[0].server || after[1] != before[1] {
			t.Errorf("before %v, after %v", before, after)
		}
		same(t, "the port's device", text(c.neutron.get(t, "ports/"+after[0].port).doc, "port", "device_id"), after[0].server)
		same(t, "the port's address", c.address(t, after[0].port), ip)
		// By the physical id it can be marked as well.
		sick.mark(t, after[0].server).is(t, http.StatusOK)
		s.update(t, request)
		if now := look(); now[0].server == after[0].server {
			t.Error("what was marked by its physical id is what it was")
		}
	})
}

// TestConnectivityChanges: a port that is to be in another network is made again, and one that is to have another address gets
// it; the server stays and is connected to what there is then.
func TestConnectivityChanges(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(plugged))
		port, server := s.physical(t, "cp"), s.physical(t, "vdu")
		s.update(t, hot(plugged, "parameters", doc{"network": net1}))
		other := s.physical(t, "cp")
		if other == port {
			t.Error("the port is what it was")
		}
		same(t, "the server", s.physical(t, "vdu"), server)
		same(t, "the server's state", text(c.server(t, server), "status"), "ACTIVE")
		p := c.portOf(t, server)
		same(t, "the server's port", text(p, "id"), other)
		network := one(t, c.neutron.get(t, "networks?name="+net1), "networks")
		same(t, "the port's network", text(p, "network_id"), text(network, "id"))
		c.neutron.do(t, http.MethodGet, "ports/"+port, nil).is(t, http.StatusNotFound)

		// An address of its own, on a network of its own.
		own := func(address string) doc {
			return hot(`
resources:
  net: {type: OS::Neutron::Net}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.97.0.0/24}}
  cp: {type: OS::Neutron::Port, properties: {network: {get_resource: net}, fixed_ips: [{subnet: {get_resource: sub}, ip_address: ` + address + `}]}}
`)
		}
		s = c.made(t, own("10.97.0.20"))
		port = s.physical(t, "cp")
		same(t, "the address", c.address(t, port), "10.97.0.20")
		s.update(t, own("10.97.0.30"))
		same(t, "the port", s.physical(t, "cp"), port)
		same(t, "the address", c.address(t, port), "10.97.0.30")
		// One outside the subnet.
		d := s.update(t, own("10.96.0.30"), "UPDATE_FAILED")
		t.Logf("reason: %s", text(d, "stack_status_reason"))
		s.update(t, own("10.97.0.31"))
		same(t, "the address", c.address(t, s.physical(t, "cp")), "10.97.0.31")
	})
}

// TestFlavorChanges: a server that is to have another flavor is resized and stays; with another image it is rebuilt.
func TestFlavorChanges(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(plugged))
		server := s.physical(t, "vdu")
		was := text(c.server(t, server), "flavor", "id")
		s.update(t, hot(plugged, "parameters", doc{"flavor": small}))
		same(t, "the server", s.physical(t, "vdu"), server)
		d := c.server(t, server)
		same(t, "its state", text(d, "status"), "ACTIVE")
		if text(d, "flavor", "id") == was {
			t.Error("the flavor is what it was")
		}
		first := text(d, "image", "id")
		s.update(t, hot(plugged, "parameters", doc{"flavor": small, "image": "ubuntu-20.04"}))
		same(t, "the server", s.physical(t, "vdu"), server)
		d = c.server(t, server)
		same(t, "its state", text(d, "status"), "ACTIVE")
		if text(d, "image", "id") == first {
			t.Error("the image is what it was")
		}
	})
}
