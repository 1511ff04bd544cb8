package openstack

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/infratest"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// change is an operation on a running instance.
type change struct {
	run func(v *vnf) error
	// undo tells that it can be rolled back.
	undo bool
}

func firstOf(v *vnf, vdu string) string { return slices.Sorted(maps.Keys(v.servers(vdu)))[0] }

// changes are the operations, on the package functional, whose group VDU1 is at level 1 of 2.
var changes = map[string]change{
	"scale out":      {func(v *vnf) error { return v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil) }, true},
	"scale in":       {func(v *vnf) error { return v.scale(sol003.ScaleVnfRequestTypeIn, "VDU1", 1, nil) }, false},
	"scale to level": {func(v *vnf) error { return v.scaleTo(map[string]int{"VDU1": 2}) }, true},
	"scale in, the newest": {func(v *vnf) error {
		return v.scale(sol003.ScaleVnfRequestTypeIn, "VDU1", 1, map[string]any{"is_reverse": "True"})
	}, false},
	"heal one":        {func(v *vnf) error { return v.heal(firstOf(v, "VDU1")) }, false},
	"heal all":        {func(v *vnf) error { return v.heal() }, false},
	"change ext conn": {func(v *vnf) error { return v.changeExtConn("net_mgmt") }, true},
	"stop":            {func(v *vnf) error { return v.operate(sol003.VnfOperationalStateStopped) }, true},
}

// modes are the two ways in which the package functional becomes templates.
var modes = map[string]func() *sol003.InstantiateVnfRequest{
	"Base HOT": functionalRequest,
	"translated": func() *sol003.InstantiateVnfRequest {
		return unscripted("simple", "VDU1_CP1", "VDU1_CP2", "VDU2_CP1", "VDU2_CP2")
	},
}

// running returns an instance of the package functional with two members in group VDU1.
func running(t *testing.T, cfg Config) *vnf {
	t.Helper()
	return runningAs(t, cfg, functionalRequest())
}

func runningAs(t *testing.T, cfg Config, req *sol003.InstantiateVnfRequest) *vnf {
	t.Helper()
	l := newLab(t, vimsim.Config{}, cfg)
	fsys := os.DirFS("testdata/packages/functional")
	v := newVNF(l, fsys, ownPackage(t, fsys, "Definitions/top.yaml"), req)
	v.ok(v.instantiate())
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil))
	v.same("made")
	return v
}

// changeIn is a change of an instance in one of the modes.
type changeIn struct {
	change
	name string
	req  func() *sol003.InstantiateVnfRequest
}

// inBothModes are the changes in each mode.
func inBothModes() map[string]changeIn {
	out := map[string]changeIn{}
	for name, op := range changes {
		for mode, req := range modes {
			out[name+", "+mode] = changeIn{op, name, req}
		}
	}
	return out
}

// TestEveryStepFailsOnce has each step of each operation fail, before and after it has taken effect, and tries again.
func TestEveryStepFailsOnce(t *testing.T) {
	for name, op := range inBothModes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := runningAs(t, Config{}, op.req())
			steps := []string{""}
			for n := 0; n < len(steps); n++ {
				for _, after := range []bool{false, true} {
					if steps[n] == "" && after {
						continue
					}
					v.fail, v.failAfter = steps[n], after
					what := fmt.Sprintf("%s fails at %q (after its effect: %t)", name, steps[n], after)
					if err := op.run(v); (err == nil) != (steps[n] == "") {
						t.Fatalf("%s: %v", what, err)
					}
					if steps[n] != "" {
						v.ok(v.retry())
					} else {
						steps = append(steps, v.steps.names...)
					}
					if !strings.HasPrefix(op.name, "stop") {
						v.same(what)
					}
					v.restore()
				}
			}
			v.terminateAll()
		})
	}
}

// restore brings an instance back to two members in group VDU1, on net0, started.
func (v *vnf) restore() {
	v.Helper()
	switch level := v.levels()["VDU1"]; {
	case level > 1:
		v.ok(v.scale(sol003.ScaleVnfRequestTypeIn, "VDU1", level-1, nil))
	case level < 1:
		v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil))
	}
	if v.now.Request.ExtVirtualLinks[0].ResourceId != "net0" {
		v.ok(v.changeExtConn("net0"))
	}
	if v.now.Info.VnfState == sol003.VnfOperationalStateStopped {
		v.ok(v.operate(sol003.VnfOperationalStateStarted))
	}
	v.same("restored")
}

// TestRollback rolls back each operation that can be, from each of its steps.
func TestRollback(t *testing.T) {
	for name, op := range inBothModes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := runningAs(t, Config{}, op.req())
			if !op.undo {
				v.fail = "inventory"
				if err := op.run(v); err == nil {
					t.Fatal("it did not fail")
				}
				if err := v.rollback(); !lcm.Is(err, lcm.KindUnsupported) {
					t.Errorf("%v", err)
				}
				return
			}
			steps := []string{"first"}
			for n := 0; n < len(steps); n++ {
				for _, lose := range []bool{false, true} {
					v.fail, v.failAfter = steps[n], true
					if n == 0 {
						v.fail = map[string]string{"change ext conn": "parameters", "stop": "servers"}[op.name]
						if v.fail == "" {
							v.fail = "groups"
						}
					}
					servers := v.servers("VDU1")
					if err := op.run(v); err == nil {
						t.Fatalf("it did not fail at %s", v.fail)
					}
					if n == 0 && len(steps) == 1 {
						steps = append(steps, v.steps.names...)
					}
					v.lose = lose
					v.ok(v.rollback())
					v.lose = false
					v.same("rolled back from " + steps[n])
					if !maps.Equal(servers, v.servers("VDU1")) {
						t.Errorf("rolled back from %s: the servers were %v and are %v", steps[n], servers, v.servers("VDU1"))
					}
					v.states(t, "ACTIVE", sol003.VnfOperationalStateStarted)
				}
			}
			v.terminateAll()
		})
	}
}

// TestOperationFaults breaks the VIM in the middle of every operation: what passes is waited for, what does not fails the
// operation with Heat's reason; then it is tried again, or rolled back, and nothing is left at the end.
func TestOperationFaults(t *testing.T) {
	creates := []string{"scale out", "scale to level", "heal one", "heal all"}
	updates := []string{"heal one", "change ext conn", "scale in, the newest"}
	for name, tt := range map[string]struct {
		fault vimsim.Fault
		ops   []string // those that it hits; nil: all
		want  []string // of the error; none: it succeeds
		clock bool
	}{
		"connections are reset":      {fault: vimsim.Fault{ResourceType: "heat", Effect: vimsim.EffectReset, Times: 4}},
		"answers are cut":            {fault: vimsim.Fault{ResourceType: "heat", Effect: vimsim.EffectTruncate, Times: 4}},
		"answers to reads are cut":   {fault: vimsim.Fault{ResourceType: "heat", Action: "get", Effect: vimsim.EffectTruncate, Times: 4}},
		"unavailable for a while":    {fault: vimsim.Fault{ResourceType: "*", Effect: vimsim.EffectHTTP, Status: 503, Times: 5}},
		"unauthorized for a while":   {fault: vimsim.Fault{ResourceType: "heat", Effect: vimsim.EffectHTTP, Status: 401, Times: 4}},
		"signals and posts are cut":  {fault: vimsim.Fault{ResourceType: "heat", Action: "create", Effect: vimsim.EffectTruncate, Times: 1}},
		"updates are cut":            {fault: vimsim.Fault{ResourceType: "heat", Action: "update", Effect: vimsim.EffectTruncate, Times: 2}},
		"Nova is broken for a while": {fault: vimsim.Fault{ResourceType: "nova", Effect: vimsim.EffectReset, Times: 3}},
		"a server cannot be placed": {
			fault: vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectFail, Reason: "No valid host was found. "},
			ops:   creates, want: []string{"No valid host was found", "OS::Nova::Server", "vnflcm_"},
		},
		"the quota is reached": {
			fault: vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectQuota},
			ops:   creates, want: []string{"Quota exceeded", "vnflcm_"},
		},
		"a port fails": {
			fault: vimsim.Fault{ResourceType: "OS::Neutron::Port", Action: "create", Effect: vimsim.EffectFail, Reason: "no more addresses"},
			ops:   []string{"scale out", "scale to level", "heal all", "change ext conn"}, want: []string{"no more addresses", "OS::Neutron::Port"},
		},
		"a volume fails": {
			fault: vimsim.Fault{ResourceType: "OS::Cinder::Volume", Action: "create", Effect: vimsim.EffectFail, Reason: "no space"},
			ops:   creates, want: []string{"no space", "OS::Cinder::Volume"},
		},
		"Heat refuses the update": {
			fault: vimsim.Fault{ResourceType: "heat", Action: "update", Effect: vimsim.EffectHTTP, Status: 400, Reason: "The template is bad."},
			ops:   updates, want: []string{"The template is bad."},
		},
		"a server hangs": {
			fault: vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectHang},
			ops:   creates, want: []string{"within 600 seconds"}, clock: true,
		},
		"a server does not go": {
			fault: vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "delete", Effect: vimsim.EffectFail, Reason: "the host is away"},
			ops:   []string{"scale in", "scale in, the newest", "heal one", "heal all"}, want: []string{"the host is away"},
		},
		"a server does not stop": {
			fault: vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "stop", Effect: vimsim.EffectFail, Reason: "no power"},
			ops:   []string{"stop"}, want: []string{"no power", "ERROR"}, clock: true,
		},
		"a server hangs when stopped": {
			fault: vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "stop", Effect: vimsim.EffectHang, Delay: vimsim.Duration(15 * time.Second)},
			ops:   []string{"stop"}, want: []string{"after 600 seconds"}, clock: true,
		},
	} {
		for opName, op := range inBothModes() {
			if tt.ops != nil && !slices.Contains(tt.ops, op.name) {
				continue
			}
			t.Run(name+" in "+opName, func(t *testing.T) {
				t.Parallel()
				for _, back := range []bool{false, true} {
					if back && (!op.undo || len(tt.want) == 0) {
						continue
					}
					cfg := Config{}
					if tt.clock {
						cfg = Config{PollMin: time.Second, PollMax: 20 * time.Second}
					}
					v := runningAs(t, cfg, op.req())
					if tt.clock {
						v.clock = infratest.NewClock(time.Now())
					}
					servers := v.servers("VDU1")
					id := v.sim.Cloud.AddFault(tt.fault)
					err := op.run(v)
					v.sim.Cloud.RemoveFault(id)
					if (err == nil) != (len(tt.want) == 0) {
						t.Fatalf("%v", err)
					}
					for _, want := range tt.want {
						if !strings.Contains(err.Error(), want) {
							t.Errorf("%q does not say %q", err, want)
						}
					}
					if err != nil && !lcm.Is(err, lcm.KindTerminal) {
						t.Errorf("the error is %s: %v", lcm.KindOf(err), err)
					}
					v.idle()
					switch {
					case err == nil:
					case back:
						v.ok(v.rollback())
						if op.name != "change ext conn" && !maps.Equal(servers, v.servers("VDU1")) {
							t.Errorf("the servers were %v and are %v", servers, v.servers("VDU1"))
						}
					default:
						v.ok(v.retry())
					}
					if op.name != "stop" || back {
						v.same(fmt.Sprintf("%s, rolled back %t", name, back))
					}
					v.terminateAll()
				}
			})
		}
	}
}

// idle waits until Nova does nothing any more.
func (v *vnf) idle() {
	for busy := true; busy && v.Context().Err() == nil; {
		busy = false
		for _, s := range v.sim.Cloud.State().Servers {
			busy = busy || s["OS-EXT-STS:task_state"] == "powering-off"
		}
	}
}

// TestScaledOnce counts the signals: none is sent twice, whatever is lost.
func TestScaledOnce(t *testing.T) {
	v := running(t, Config{})
	v.lose = true
	v.ok(v.scale(sol003.ScaleVnfRequestTypeOut, "VDU1", 1, nil))
	v.ok(v.scale(sol003.ScaleVnfRequestTypeIn, "VDU1", 2, nil))
	if out, in := v.requests("heat", http.MethodPost, "VDU1_scale_out/signal"), v.requests("heat", http.MethodPost, "VDU1_scale_in/signal"); out != 2 || in != 2 {
		t.Errorf("%d signals to scale out and %d to scale in", out, in)
	}
	if n := v.requests("heat", http.MethodPut, stackName(v.now.ID)); n != 0 {
		t.Errorf("%d updates", n)
	}
	v.same("scaled")
}
