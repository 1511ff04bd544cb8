package vimsim

import (
	"testing"
	"time"
)

// first is the server that was made first.
func (l *lab) first() doc { return l.srv.Cloud.State().Servers[0] }

// TestPower starts and stops a server: at once, with a latency, with faults.
func TestPower(t *testing.T) {
	l := boot(t, Config{})
	id := l.create("p", cluster(t))
	l.await("p", id, "CREATE_COMPLETE")
	sid := str(l.first(), "id")
	act := func(action string, want int) {
		t.Helper()
		if res, out := l.raw("POST", "/compute/v2.1/servers/"+sid+"/action", doc{action: nil}); res.StatusCode != want {
			t.Errorf("%s: %d %v", action, res.StatusCode, out)
		}
	}
	is := func(status string) func() bool { return func() bool { return str(l.first(), "status") == status } }
	act("os-start", 409)
	act("os-stop", 202)
	l.until("stopped", is("SHUTOFF"))
	act("os-stop", 409)

	l.srv.Cloud.SetLatency(map[string]time.Duration{"OS::Nova::Server": 2 * time.Second})
	act("os-start", 202)
	if s := l.first(); s["OS-EXT-STS:task_state"] != "powering-on" || s["status"] != "SHUTOFF" {
		t.Errorf("%v is %v", s["OS-EXT-STS:task_state"], s["status"])
	}
	act("os-start", 409)
	l.until("started", is("ACTIVE"))

	l.srv.Cloud.AddFault(Fault{ResourceType: "OS::Nova::Server", Action: "stop", Effect: EffectFail, Reason: "no power", Times: 1})
	act("os-stop", 202)
	l.until("broken", is("ERROR"))
	if f, _ := l.first()["fault"].(doc); f["message"] != "no power" {
		t.Errorf("fault %v", f)
	}
	if res, _ := l.raw("POST", "/compute/v2.1/servers/"+sid+"/action", doc{"reboot": doc{"type": "HARD"}}); res.StatusCode != 202 {
		t.Errorf("reboot: %d", res.StatusCode)
	}
	l.until("rebooted", is("ACTIVE"))
	l.srv.Cloud.AddFault(Fault{ResourceType: "OS::Nova::Server", Action: "stop", Effect: EffectHang, Times: 1})
	act("os-stop", 202)
	if s := l.first(); s["OS-EXT-STS:task_state"] != "powering-off" {
		t.Errorf("%v", s["OS-EXT-STS:task_state"])
	}
	l.heat("DELETE", "/stacks/p/"+id, nil)
	l.await("p", id, "DELETE_COMPLETE")
	l.empty()
}

// TestWhoGoesFirst takes members of one second away by name, and those that have failed before all others.
func TestWhoGoesFirst(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := func(name string, after time.Duration, status string) *resource {
		return &resource{name: name, status: status, created: now.Add(after)}
	}
	g := &resource{nested: &stack{res: map[string]*resource{}}}
	for n, r := range []*resource{
		m("b", 0, stComplete), m("a", 900*time.Millisecond, stComplete), m("c", 2*time.Second, stFailed), m("0", time.Second, stComplete),
	} {
		r.seq = int64(n)
		g.nested.res[r.name] = r
	}
	var got string
	for _, r := range sortedMembers(g) {
		got += r.name
	}
	if got != "cab0" {
		t.Errorf("they go in the order %s", got)
	}
}
