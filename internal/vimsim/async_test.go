package vimsim

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestLatency(t *testing.T) {
	clk := &stepClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	l := boot(t, Config{Clock: clk, TokenTTL: 24 * time.Hour, Latency: map[string]time.Duration{"OS::Nova::Server": time.Minute}})
	id := l.create("slow", cluster(t))
	l.until("building", func() bool { return l.srv.Cloud.State().Counts["servers"] == 5 })
	for _, s := range l.srv.Cloud.State().Servers {
		if s["status"] != "BUILD" {
			t.Errorf("server is %v", s["status"])
		}
	}
	if st := l.show("slow", id)["stack_status"]; st != "CREATE_IN_PROGRESS" {
		t.Errorf("stack is %v", st)
	}
	// All five build side by side: one minute is enough.
	l.until("timers", func() bool { clk.mu.Lock(); defer clk.mu.Unlock(); return len(clk.timers) >= 6 })
	clk.advance(time.Minute)
	l.await("slow", id, "CREATE_COMPLETE")
	if res, _ := l.raw("PUT", "/vimsim/latency", map[string]string{"*": "0s"}); res.StatusCode != 204 {
		t.Errorf("latency: %d", res.StatusCode)
	}
	l.heat("DELETE", "/stacks/slow/"+id, nil)
	l.await("slow", id, "DELETE_COMPLETE")
	l.empty()
}

func TestCooldown(t *testing.T) {
	clk := &stepClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	l := boot(t, Config{Clock: clk, TokenTTL: 24 * time.Hour})
	id := l.create("c", text(`resources:
  g:
    type: OS::Heat::AutoScalingGroup
    properties: {min_size: 1, max_size: 9, desired_capacity: 1, resource: {type: OS::Heat::TestResource, properties: {value: x}}}
  out: {type: OS::Heat::ScalingPolicy, properties: {scaling_adjustment: 1, cooldown: 60, auto_scaling_group_id: {get_resource: g}, adjustment_type: change_in_capacity}}
  half: {type: OS::Heat::ScalingPolicy, properties: {scaling_adjustment: -50, auto_scaling_group_id: {get_resource: g}, adjustment_type: percent_change_in_capacity}}
  five: {type: OS::Heat::ScalingPolicy, properties: {scaling_adjustment: 5, auto_scaling_group_id: {get_resource: g}, adjustment_type: exact_capacity}}
outputs: {n: {value: {get_attr: [g, current_size]}}, all: {value: {get_attr: [g, outputs_list, output]}}}
`))
	l.await("c", id, "CREATE_COMPLETE")
	size := func() int { return len(l.ofType("c", id, "OS::Heat::TestResource")) }
	idle := func() bool {
		_, out := l.heat("GET", "/stacks/c/"+id+"/resources/g/metadata", nil)
		return sub(out, "metadata")["scaling_in_progress"] == false
	}
	signal := func(p string) { l.heat("POST", "/stacks/c/"+id+"/resources/"+p+"/signal", nil); l.until("idle", idle) }
	for _, step := range []struct {
		policy string
		wait   time.Duration
		want   int
	}{{"out", 0, 2}, {"out", 0, 2}, {"out", 61 * time.Second, 3}, {"five", 61 * time.Second, 5}, {"half", 61 * time.Second, 3}} {
		clk.advance(step.wait)
		signal(step.policy)
		if n := size(); n != step.want {
			t.Errorf("%s after %s: %d members, want %d", step.policy, step.wait, n, step.want)
		}
	}
	if code, out := l.heat("POST", "/stacks/c/"+id+"/resources/g/signal", nil); code != 400 {
		t.Errorf("signal to a group: %d %v", code, out)
	}
}

func TestMemberMarkedUnhealthy(t *testing.T) {
	l := boot(t, Config{})
	id := l.create("m", cluster(t))
	l.await("m", id, "CREATE_COMPLETE")
	_, out := l.heat("GET", "/stacks/m/"+id+"/resources/masters", nil)
	group := str(sub(out, "resource"), "physical_resource_id")
	res, _ := l.raw("GET", "/orchestration/v1/"+l.project+"/stacks/"+group+"/resources", nil)
	loc := res.Header.Get("Location")
	_, out = l.raw("GET", loc, nil)
	member := out["resources"].([]any)[1].(doc)
	l.raw("PATCH", loc+"/"+str(member, "resource_name"), doc{"mark_unhealthy": true})
	l.heat("PATCH", "/stacks/m/"+id, doc{"existing": true})
	l.await("m", id, "UPDATE_COMPLETE")
	_, out = l.raw("GET", loc, nil)
	left := out["resources"].([]any)
	if len(left) != 3 {
		t.Errorf("%d members", len(left))
	}
	for _, x := range left {
		if x.(doc)["physical_resource_id"] == member["physical_resource_id"] {
			t.Error("the unhealthy member's stack is still there")
		}
	}
}

func TestForgetsOldStacks(t *testing.T) {
	l := boot(t, Config{DeletedStacks: 1})
	var first string
	for i := range 2 {
		id := l.create("x", text("resources: {r: {type: OS::Heat::None}}\n"))
		l.await("x", id, "CREATE_COMPLETE")
		l.heat("DELETE", "/stacks/x/"+id, nil)
		l.await("x", id, "DELETE_COMPLETE")
		if i == 0 {
			first = id
		}
	}
	if code, _ := l.heat("GET", "/stacks/x/"+first, nil); code != 404 {
		t.Errorf("the older deleted stack: %d", code)
	}
}

func TestControlsAreLocal(t *testing.T) {
	c := New(Config{}, nil)
	defer c.Close()
	w := httptest.NewRecorder()
	// httptest's default remote address is not a loopback one.
	c.Handler(func() string { return "http://x" }).ServeHTTP(w, httptest.NewRequest("GET", "/vimsim/state", nil))
	if w.Code != 403 {
		t.Errorf("%d", w.Code)
	}
}

// The ports live in nested stacks, so nothing in the top template says that
// the subnet must outlive them.
func TestNestedPortsOnOwnNetwork(t *testing.T) {
	l := boot(t, Config{})
	def := with(text(`resources:
  inner: {type: OS::Neutron::Net}
  a_subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: inner}, cidr: 192.168.3.0/24, ip_version: 4}}
  a_group:
    type: OS::Heat::AutoScalingGroup
    depends_on: a_subnet
    properties: {min_size: 1, max_size: 3, desired_capacity: 2, resource: {type: node.yaml, properties: {flavor: m1.tiny, image: `+cirros+`, net: {get_resource: inner}}}}
`), "files", doc{"node.yaml": file(t, "node.yaml")})
	id := l.create("n", def)
	l.await("n", id, "CREATE_COMPLETE")
	for _, p := range l.srv.Cloud.State().Ports {
		if len(p["fixed_ips"].([]any)) != 1 {
			t.Errorf("port without an address: %v", p["fixed_ips"])
		}
	}
	// A foreign port keeps the subnet: the delete fails and can be repeated.
	_, out := l.raw("GET", "/network/v2.0/ports", nil)
	net := out["ports"].([]any)[0].(doc)["network_id"]
	_, out = l.raw("POST", "/network/v2.0/ports", doc{"port": doc{"network_id": net}})
	l.heat("DELETE", "/stacks/n/"+id, nil)
	l.awaitThrough("n", id, "DELETE_FAILED")
	if r := str(l.show("n", id), "stack_status_reason"); !strings.HasPrefix(r, "Resource DELETE failed: ") || !strings.Contains(r, "Conflict: resources.") {
		t.Error(r)
	}
	l.raw("DELETE", "/network/v2.0/ports/"+str(sub(out, "port"), "id"), nil)
	l.heat("DELETE", "/stacks/n/"+id, nil)
	l.awaitThrough("n", id, "DELETE_COMPLETE")
	l.empty()
}
