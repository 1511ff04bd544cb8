package openstack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestPower: servers are stopped and started by Nova, and refuse what they are not in the state for.
func TestPower(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(plugged))
		id := s.physical(t, "vdu")
		act := func(action string, arg any) *answer {
			return c.nova.do(t, http.MethodPost, "servers/"+id+"/action", doc{action: arg})
		}
		is := func(status string) {
			t.Helper()
			c.eventually(t, "the server is "+status, func() bool {
				d := c.server(t, id)
				return text(d, "status") == status && at(d, "OS-EXT-STS:task_state") == nil
			}, func() any { return c.server(t, id) })
		}
		is("ACTIVE")
		same(t, "power state", at(c.server(t, id), "OS-EXT-STS:power_state"), any(1.0))
		act("os-start", nil).says(t, http.StatusConflict, "Cannot 'start' instance "+id+" while it is in vm_state active")
		act("os-stop", nil).is(t, http.StatusAccepted)
		is("SHUTOFF")
		same(t, "power state", at(c.server(t, id), "OS-EXT-STS:power_state"), any(4.0))
		same(t, "vm state", text(c.server(t, id), "OS-EXT-STS:vm_state"), "stopped")
		act("os-stop", nil).says(t, http.StatusConflict, "Cannot 'stop' instance "+id+" while it is in vm_state stopped")
		// Heat does not look.
		same(t, "the stack", s.status(t), "CREATE_COMPLETE")
		act("os-start", nil).is(t, http.StatusAccepted)
		is("ACTIVE")
		act("reboot", doc{"type": "HARD"}).is(t, http.StatusAccepted)
		is("ACTIVE")
		// One in ERROR is brought back by a hard reboot.
		act("os-resetState", doc{"state": "error"}).is(t, http.StatusAccepted)
		is("ERROR")
		act("os-start", nil).is(t, http.StatusConflict)
		act("reboot", doc{"type": "HARD"}).is(t, http.StatusAccepted)
		is("ACTIVE")
		c.nova.do(t, http.MethodPost, "servers/0e7f1a3c-5a55-4b5e-9b8e-1f3f5d0a9a01/action", doc{"os-stop": nil}).is(t, http.StatusNotFound)
		c.nova.do(t, http.MethodGet, "servers/0e7f1a3c-5a55-4b5e-9b8e-1f3f5d0a9a01", nil).is(t, http.StatusNotFound)
	})
}

// grouped is some servers in one server group.
func grouped(policy string, count int) string {
	out := "\nresources:\n  sg: {type: OS::Nova::ServerGroup, properties: {policies: [" + policy + "]}}\n"
	for n := range count {
		out += fmt.Sprintf("  s%d: {type: OS::Nova::Server, properties: {flavor: m1.tiny, image: %s, networks: [{network: net0}], scheduler_hints: {group: {get_resource: sg}}}}\n", n, cirros)
	}
	return out
}

// TestServerGroups: servers of an anti-affinity group are on hosts of their own, those of an affinity group on one; a server
// that there is no host for fails with Nova's reason.
func TestServerGroups(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		hosts := func(s *stack, count int) map[string]int {
			on := map[string]int{}
			for n := range count {
				d, _ := at(c.adminNova.get(t, "servers/"+s.physical(t, fmt.Sprint("s", n))).doc, "server").(doc)
				on[text(d, "OS-EXT-SRV-ATTR:host")]++
			}
			return on
		}
		s := c.made(t, hot(grouped("anti-affinity", 3)))
		if on := hosts(s, 3); len(on) != 3 || on[""] > 0 {
			t.Errorf("servers that are not to be together are on %v", on)
		}
		g := one(t, c.nova.get(t, "os-server-groups"), "server_groups")
		same(t, "members of the group", len(words(g, "members")), 3)
		d := s.update(t, hot(grouped("anti-affinity", 4)), "UPDATE_FAILED")
		reason := text(d, "stack_status_reason")
		t.Logf("reason: %s", reason)
		if !strings.HasPrefix(reason, `Resource CREATE failed: ResourceInError: resources.s3: Went to status ERROR due to "Message: No valid host was found. `) ||
			!strings.HasSuffix(reason, `, Code: 500"`) {
			t.Errorf("reason %q", reason)
		}
		s.update(t, hot(grouped("anti-affinity", 3)))
		same(t, "hosts afterwards", len(hosts(s, 3)), 3)
		together := c.made(t, hot(grouped("affinity", 2)))
		if on := hosts(together, 2); len(on) != 1 {
			t.Errorf("servers that are to be together are on %v", on)
		}
	})
}

// TestZones: a server goes where its zone says; a zone that does not exist is refused by Nova.
func TestZones(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		in := func(zone string) doc {
			return hot("\nresources:\n  vdu: {type: OS::Nova::Server, properties: {flavor: m1.tiny, image: " + cirros + ", networks: [{network: net0}], availability_zone: " + zone + "}}\n")
		}
		s := c.made(t, in("nova"))
		same(t, "zone", text(c.server(t, s.physical(t, "vdu")), "OS-EXT-AZ:availability_zone"), "nova")
		s = c.create(t, in("nowhere"))
		reason := text(s.await(t, "CREATE_FAILED"), "stack_status_reason")
		t.Logf("reason: %s", reason)
		if !strings.HasPrefix(reason, "Resource CREATE failed: BadRequest: resources.vdu: The requested availability zone is not available (HTTP 400)") {
			t.Errorf("reason %q", reason)
		}
	})
}

// TestQuota: what is beyond a quota fails with the service's words, and goes on when there is room.
func TestQuota(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		c.adminNova.do(t, http.MethodPut, "os-quota-sets/"+c.project, doc{"quota_set": doc{"instances": 1}}).is(t, http.StatusOK)
		t.Cleanup(func() {
			c.adminNova.do(t, http.MethodDelete, "os-quota-sets/"+c.project, nil).is(t, http.StatusAccepted)
		})
		two := grouped("soft-anti-affinity", 2)
		s := c.create(t, hot(two))
		reason := text(s.await(t, "CREATE_FAILED"), "stack_status_reason")
		t.Logf("reason: %s", reason)
		if !strings.HasPrefix(reason, "Resource CREATE failed: Forbidden: resources.s") || !strings.Contains(reason, ": Quota exceeded for instances: Requested 1, but already used 1 of 1 instances (HTTP 403)") {
			t.Errorf("reason %q", reason)
		}
		c.adminNova.do(t, http.MethodPut, "os-quota-sets/"+c.project, doc{"quota_set": doc{"instances": 2}}).is(t, http.StatusOK)
		s.update(t, hot(two))
	})
}

// TestNamesTaken: flavors and volume types have names that only one can have.
func TestNamesTaken(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		for name, x := range map[string][2]string{
			"flavor":      {"OS::Nova::Flavor, properties: {ram: 64, vcpus: 1, disk: 1, name: %s}", "Conflict: resources.r: Flavor with name %s already exists. (HTTP 409)"},
			"volume type": {"OS::Cinder::VolumeType, properties: {name: %s}", "ClientException: resources.r: Volume Type %s already exists. (HTTP 409)"},
		} {
			taken := "contract-" + unique()
			template := "\nresources: {r: {type: " + fmt.Sprintf(x[0], taken) + "}}\n"
			c.made(t, hot(template))
			s := c.create(t, hot(template))
			reason := text(s.await(t, "CREATE_FAILED"), "stack_status_reason")
			t.Logf("%s: %s", name, reason)
			if want := "Resource CREATE failed: " + fmt.Sprintf(x[1], taken); !strings.HasPrefix(reason, want) {
				t.Errorf("%s: reason %q, want %q", name, reason, want)
			}
		}
	})
}
