package openstack_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestCreationFails: what a creation that fails says and leaves, and that an update goes on from there.
func TestCreationFails(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.create(t, hot(plugged, "parameters", doc{"flavor": "lab.fail"}))
		d := s.await(t, "CREATE_FAILED")
		reason := text(d, "stack_status_reason")
		t.Logf("reason: %s", reason)
		const begins = "Resource CREATE failed: ResourceInError: resources.vdu: Went to status ERROR due to \"Message: "
		if !strings.HasPrefix(reason, begins) || !strings.Contains(reason, "Code: 500") {
			t.Errorf("reason %q, want it to begin with %q and to have the code", reason, begins)
		}
		vdu := s.resource(t, "vdu")
		same(t, "the server's state", text(vdu, "resource_status"), "CREATE_FAILED")
		// Heat has tried some times: the stack tells of the first server, the resource of the last, which is the only one left.
		if last := text(vdu, "resource_status_reason"); !strings.HasPrefix(last, strings.TrimPrefix(begins, "Resource CREATE failed: ")) {
			t.Errorf("the server's reason %q", last)
		}
		same(t, "servers", len(list(c.nova.get(t, "servers").doc, "servers")), 1)
		same(t, "the port's state", text(s.resource(t, "cp"), "resource_status"), "CREATE_COMPLETE")
		failed, port := s.physical(t, "vdu"), s.physical(t, "cp")
		// The server is still there, in ERROR.
		same(t, "the server in Nova", text(c.nova.get(t, "servers/"+failed).doc, "server", "status"), "ERROR")
		if text(c.nova.get(t, "servers/"+failed).doc, "server", "fault", "message") == "" {
			t.Error("the server has no fault")
		}
		// The name is taken by a failed stack too.
		c.heat.do(t, http.MethodPost, "stacks", hot(plugged, "stack_name", s.name)).is(t, http.StatusConflict)
		// An update replaces what has failed and keeps the rest.
		s.update(t, hot(plugged))
		same(t, "the port after the update", s.physical(t, "cp"), port)
		made := s.physical(t, "vdu")
		if made == failed {
			t.Error("the failed server is still the stack's")
		}
		c.nova.do(t, http.MethodGet, "servers/"+failed, nil).is(t, http.StatusNotFound)
		same(t, "the new server", text(c.nova.get(t, "servers/"+made).doc, "server", "status"), "ACTIVE")
		same(t, "the port's device", text(c.neutron.get(t, "ports/"+port).doc, "port", "device_id"), made)
	})
}

// TestNestedFailure: the reasons of a failure inside nested stacks name the place, at every level.
func TestNestedFailure(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.create(t, hot(group(0, 3, "1", "{type: vnfc.yaml, properties: {flavor: lab.fail}}"), "files", doc{"vnfc.yaml": vnfcFile}))
		d := s.await(t, "CREATE_FAILED")
		reason := text(d, "stack_status_reason")
		t.Logf("reason: %s", reason)
		var member string
		for _, r := range s.resources(t) {
			if text(r, "resource_type") == "vnfc.yaml" {
				member = text(r, "resource_name")
			}
		}
		want := "Resource CREATE failed: ResourceInError: resources.g.resources." + member + ".resources.vdu: Went to status ERROR due to \"Message: "
		if member == "" || !strings.HasPrefix(reason, want) {
			t.Errorf("reason %q, want it to begin with %q", reason, want)
		}
		for _, r := range s.resources(t) {
			status := map[string]string{"g": "CREATE_FAILED", member: "CREATE_FAILED", "vdu": "CREATE_FAILED", "cp": "CREATE_COMPLETE"}[text(r, "resource_name")]
			if status != "" {
				same(t, "state of "+text(r, "resource_name"), text(r, "resource_status"), status)
			}
		}
		// With what is right it becomes whole: the member that has failed is made again.
		s.update(t, hot(group(0, 3, "1", "{type: vnfc.yaml}"), "files", doc{"vnfc.yaml": vnfcFile}))
		servers := ofType(s.resources(t), "OS::Nova::Server")
		if len(servers) != 1 || text(servers[0], "resource_status") == "CREATE_FAILED" {
			t.Errorf("servers after the update: %v", servers)
		}
	})
}

// TestUpdateFails: an update that fails leaves what it has not touched; the next one goes on.
func TestUpdateFails(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		template := func(value string, fail bool, more string) string {
			f := "false"
			if fail {
				f = "true"
			}
			return `
resources:
  a: {type: OS::Heat::Value, properties: {value: kept}}
  t: {type: OS::Heat::TestResource, properties: {value: ` + value + `, fail: ` + f + `}}
` + more
		}
		s := c.made(t, hot(template("one", false, "")))
		a, first := s.physical(t, "a"), s.physical(t, "t")
		d := s.update(t, hot(template("two", true, "  n: {type: OS::Heat::Value, depends_on: t, properties: {value: x}}\n")), "UPDATE_FAILED")
		reason := text(d, "stack_status_reason")
		t.Logf("reason: %s", reason)
		if !strings.HasPrefix(reason, "ValueError: resources.t: Test Resource failed t") && !strings.HasPrefix(reason, "Resource UPDATE failed: ValueError: resources.t: Test Resource failed t") {
			t.Errorf("reason %q", reason)
		}
		same(t, "what the update has not touched", s.physical(t, "a"), a)
		r := s.resource(t, "t")
		same(t, "state of what has failed", text(r, "resource_status"), "UPDATE_FAILED")
		same(t, "reason of what has failed", text(r, "resource_status_reason"), "ValueError: resources.t: Test Resource failed t")
		if n := s.resource(t, "n"); text(n, "physical_resource_id") != "" || text(n, "resource_status") != "INIT_COMPLETE" {
			t.Errorf("what needed the failed one: %v", n)
		}
		s.update(t, hot(template("three", false, "")))
		same(t, "a after the next update", s.physical(t, "a"), a)
		if s.physical(t, "t") == first {
			t.Error("a resource whose update has failed is used on")
		}
	})
}

// TestTimeout: an action that lasts longer than the stack's timeout fails with these words.
func TestTimeout(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.create(t, with(hot(slow(900, "x")), "timeout_mins", 1))
		d := s.await(t, "CREATE_FAILED")
		same(t, "reason", text(d, "stack_status_reason"), "Timed out")
		r := s.resource(t, "t")
		t.Logf("the resource is %s (%s)", text(r, "resource_status"), text(r, "resource_status_reason"))
	})
}

// TestWhileInProgress: what may be asked of a stack in the middle of an action.
func TestWhileInProgress(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.create(t, hot(slow(c.seconds(3), "one")))
		same(t, "state at once", s.status(t), "CREATE_IN_PROGRESS")
		same(t, "reason", text(s.show(t), "stack_status_reason"), "Stack CREATE started")
		c.heat.do(t, http.MethodPost, "stacks", hot(value, "stack_name", s.name)).is(t, http.StatusConflict)
		// An update takes over: it does not wait, nor is it refused.
		c.heat.do(t, http.MethodPut, s.path(), hot(slow(1, "two"))).is(t, http.StatusAccepted)
		same(t, "state after an update in the middle of the creation", s.status(t), "UPDATE_IN_PROGRESS")
		s.await(t, "UPDATE_COMPLETE")
		same(t, "value", text(s.resource(t, "t"), "attributes", "output"), "two")
		// As does another update.
		s.update(t, hot(slow(c.seconds(3), "three")), "UPDATE_IN_PROGRESS")
		c.eventually(t, "the update works on the resource", func() bool { return text(s.resource(t, "t"), "resource_status") == "UPDATE_IN_PROGRESS" },
			func() any { return s.resource(t, "t") })
		// What is being worked on cannot be marked.
		s.mark(t, "t").says(t, http.StatusConflict, `"ActionInProgress"`, "Stack "+s.name+" already has an action (UPDATE) in progress.")
		c.heat.do(t, http.MethodPut, s.path(), hot(slow(1, "four"))).is(t, http.StatusAccepted)
		s.await(t, "UPDATE_COMPLETE")
		same(t, "value", text(s.resource(t, "t"), "attributes", "output"), "four")
		// And a deletion ends whatever runs.
		long := 30
		if c.sim != nil {
			long = 120 // a deletion on a slow machine is not one that has waited
		}
		s.update(t, hot(slow(long, "five")), "UPDATE_IN_PROGRESS")
		begun := time.Now()
		s.delete(t)
		if took := time.Since(begun); c.sim != nil && took > time.Duration(long-20)*time.Second {
			t.Errorf("the deletion has waited for the update: %s", took)
		}
	})
}

// TestDeletedWhileCreated: a deletion in the middle of a creation leaves nothing, and asking for it twice does no harm.
func TestDeletedWhileCreated(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.create(t, hot(strings.ReplaceAll(plugged, "default: m1.tiny", "default: lab.slow")+"  t: {type: OS::Heat::TestResource, properties: {action_wait_secs: {delete: 2}}}\n"))
		c.eventually(t, "the server is being built", func() bool {
			return len(list(c.nova.get(t, "servers").doc, "servers")) == 1
		}, func() any { return s.resources(t) })
		c.heat.do(t, http.MethodDelete, s.path(), nil).is(t, http.StatusNoContent)
		same(t, "state", s.status(t), "DELETE_IN_PROGRESS")
		c.heat.do(t, http.MethodDelete, s.path(), nil).is(t, http.StatusNoContent)
		// Nothing else may be asked of it.
		c.heat.do(t, http.MethodPut, s.path(), hot(value)).says(t, http.StatusBadRequest, "Updating a stack when it is deleting is not supported.")
		s.await(t, "DELETE_COMPLETE")
	})
}

// TestCancel: cancel_without_rollback ends the creation or the update, and the next update goes on.
func TestCancel(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		cancel := func(s *stack) *answer {
			return c.heat.do(t, http.MethodPost, s.path("actions"), doc{"cancel_without_rollback": nil})
		}
		s := c.create(t, hot(slow(c.seconds(3), "one")+"  n: {type: OS::Heat::Value, depends_on: t, properties: {value: x}}\n"))
		c.eventually(t, "the resource is being created", func() bool { return text(s.resource(t, "t"), "resource_status") == "CREATE_IN_PROGRESS" },
			func() any { return s.resources(t) })
		cancel(s).is(t, http.StatusOK)
		d := s.await(t, "CREATE_FAILED")
		same(t, "reason", text(d, "stack_status_reason"), "Stack CREATE cancelled")
		// A stack at rest has nothing to cancel.
		cancel(s).says(t, http.StatusBadRequest, "Cancelling update when stack is CREATE_FAILED is not supported.")
		// What was being created ends by itself; what needs it is not begun.
		c.eventually(t, "the resource comes to its end", func() bool { return text(s.resource(t, "t"), "resource_status") == "CREATE_COMPLETE" },
			func() any { return s.resources(t) })
		same(t, "what needed it", text(s.resource(t, "n"), "resource_status"), "INIT_COMPLETE")
		s.update(t, hot(slow(1, "one")))
		s.update(t, hot(slow(c.seconds(3), "two")), "UPDATE_IN_PROGRESS")
		cancel(s).is(t, http.StatusOK)
		d = s.await(t, "UPDATE_FAILED")
		same(t, "reason", text(d, "stack_status_reason"), "Stack UPDATE cancelled")
		s.update(t, hot(slow(1, "three")))
		same(t, "value", text(s.resource(t, "t"), "attributes", "output"), "three")
		cancel(s).is(t, http.StatusBadRequest)
		s.delete(t)
		cancel(s).is(t, http.StatusBadRequest, http.StatusNotFound)
	})
}

// TestDeletionFails: what somebody else uses cannot be deleted; the stack says so, and the next deletion goes on.
func TestDeletionFails(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		s := c.made(t, hot(`
resources:
  net: {type: OS::Neutron::Net}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.99.0.0/24}}
  v: {type: OS::Heat::Value, properties: {value: x}}
`))
		network := s.physical(t, "net")
		port := text(c.neutron.do(t, http.MethodPost, "ports", doc{"port": doc{"network_id": network, "name": "foreign"}}).is(t, http.StatusCreated).doc, "port", "id")
		t.Cleanup(func() { c.neutron.do(t, http.MethodDelete, "ports/"+port, nil) })
		c.heat.do(t, http.MethodDelete, s.path(), nil).is(t, http.StatusNoContent)
		d := s.await(t, "DELETE_FAILED")
		reason := text(d, "stack_status_reason")
		t.Logf("reason: %s", reason)
		if !strings.HasPrefix(reason, "Resource DELETE failed: Conflict: resources.sub: Unable to complete operation on subnet ") ||
			!strings.Contains(reason, "One or more ports have an IP allocation from this subnet.") {
			t.Errorf("reason %q", reason)
		}
		same(t, "the subnet's state", text(s.resource(t, "sub"), "resource_status"), "DELETE_FAILED")
		// It still has its name, and is not updated any more.
		c.heat.do(t, http.MethodPost, "stacks", hot(value, "stack_name", s.name)).is(t, http.StatusConflict)
		c.heat.do(t, http.MethodPut, s.path(), hot(value)).is(t, http.StatusBadRequest)
		c.neutron.do(t, http.MethodDelete, "ports/"+port, nil).is(t, http.StatusNoContent)
		s.delete(t)
	})
}
