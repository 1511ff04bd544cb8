package openstack_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
)

const ubuntu = "ubuntu-20.04"

// slowServers give a test the time to do something while Heat is at work on the simulator.
var slowServers = map[string]time.Duration{"*": 20 * time.Millisecond, "OS::Nova::Server": 2 * time.Second}

// TestBecomesAnother gives instances another VNFD that names other images: nothing happens to them before they are healed, and
// then they have the new image.
func TestBecomesAnother(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	for _, of := range []struct {
		name string
		vdu  string // of which the images differ
		make func(t *testing.T, c *target) (before, after *vnf)
	}{
		{"our gateway", "worker", func(t *testing.T, c *target) (*vnf, *vnf) {
			first, second := ourGateway(t, c), ourGateway(t, c)
			second.shape.images = map[string]string{"worker": ubuntu}
			files, err := deploy.Files("multi-port")
			must(t, err)
			const name = "Definitions/multi_port_df_default.yaml"
			at := strings.Index(string(files[name]), "\n    worker:\n")
			text := string(files[name][:at]) + strings.Replace(string(files[name][at:]), "name: "+cirros, "name: "+ubuntu, 1)
			second.zip, second.vnfdID = ours(t, "multi-port", map[string][]byte{name: []byte(text)})
			return &first, &second
		}},
		{"functional to functional2", "VDU2", func(t *testing.T, c *target) (*vnf, *vnf) {
			first, second := outsideFunctional(t, c, "functional"), outsideFunctional(t, c, "functional2")
			if first == nil {
				return nil, nil
			}
			const other = "cirros-0.5.2-x86_64-disk2"
			c.bringImage(t, other)
			second.shape.images = map[string]string{"VDU2": other}
			return first, second
		}},
	} {
		t.Run(of.name, func(t *testing.T) {
			each(t, func(t *testing.T, c *target) {
				before, after := of.make(t, c)
				if before == nil {
					return
				}
				v := m.create(t, c, before.zip, before.vnfdID, before.shape)
				v.instantiates(t)
				m.onboard(t, after.zip)
				op, err := v.api.Modify(v.ctx, v.id, doc{"vnfdId": after.vnfdID})
				must(t, err)
				v.completes(t, "update", op, map[string]int{})
				same(t, "the instance's VNFD", v.now.VnfdId, after.vnfdID)

				// Servers of one VDU have one image: Heat rebuilds in place those that are not healed.
				maps.Copy(v.shape.images, after.shape.images)
				v.heals(t, of.vdu)
				v.healsAll(t)
				v.ending(t, "GRACEFUL")
			})
		})
	}
}

// TestBeyondTheHosts scales groups whose members are to be apart until there is no host left: Nova's reason is told, and the
// rollback leaves what was there before.
func TestBeyondTheHosts(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	for _, of := range []struct {
		name, aspect, vdu string
		make              func(t *testing.T, c *target) *vnf
		fits              int
	}{
		{"our edge", "workers", "worker", func(t *testing.T, c *target) *vnf {
			p := edge(t, c)
			p.big()
			return &p
		}, 0},
		{"kubernetes_vnf_package podaffinity", "worker_instance", "workerNode", func(t *testing.T, c *target) *vnf {
			p := outsideCluster(t, c, "podaffinity", 3)
			if p != nil {
				p.shape.spread = []string{"masterNode", "workerNode"}
			}
			return p
		}, 1},
	} {
		t.Run(of.name, func(t *testing.T) {
			each(t, func(t *testing.T, c *target) {
				p := of.make(t, c)
				if p == nil {
					return
				}
				v := m.create(t, c, p.zip, p.vnfdID, p.shape)
				v.instantiates(t)
				if of.fits > 0 {
					v.scales(t, of.aspect, of.fits, map[string]int{of.vdu: of.fits})
				}
				before := v.servers()
				id := v.starts(t, "scale", doc{"type": "SCALE_OUT", "aspectId": of.aspect, "numberOfSteps": 1})
				op := v.ends(t, id, sol003.LcmOperationStateFailedTemp)
				for _, part := range []string{"No valid host was found", v.id, of.vdu} {
					if op.Error == nil || !strings.Contains(op.Error.Detail, part) {
						t.Errorf("the error does not name %q: %+v", part, op.Error)
					}
				}
				v.rollsBack(t, id)
				if !maps.Equal(before, v.servers()) {
					t.Errorf("the rollback has changed servers: before %v, after %v", before, v.servers())
				}
				v.ending(t, "FORCEFUL")
			})
		})
	}
}

// rollsBack rolls an operation back that has failed, and looks at what is there then.
func (v *life) rollsBack(t *testing.T, id string) {
	t.Helper()
	must(t, v.api.OpOccTask(v.ctx, id, "rollback", nil))
	v.ends(t, id, sol003.LcmOperationStateRolledBack)
	v.check(t, "rollback")
}

// TestSizes scales by levels and by several steps at once, to nothing and from nothing.
func TestSizes(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		m := newManager(t)
		p := edge(t, c)
		p.big()
		v := m.create(t, c, p.zip, p.vnfdID, p.shape)
		v.instantiates(t)
		toLevel := func(level string, levels, by map[string]int, change string) {
			t.Helper()
			v.resizes(t, levels, by, change, "scale_to_level", doc{"instantiationLevelId": level})
		}
		v.scales(t, "spares", -1, map[string]int{"spare": -1})
		v.scales(t, "spares", 2, map[string]int{"spare": 2})
		v.scales(t, "spares", -2, map[string]int{"spare": -2})
		toLevel("small", map[string]int{"workers": -2}, map[string]int{"worker": -2}, "REMOVED")
		toLevel("big", map[string]int{"workers": 2, "spares": 1}, map[string]int{"worker": 2, "spare": 1}, "ADDED")
		v.heals(t, "spare")
		v.ending(t, "FORCEFUL")
	})
}

// TestPowerAndFlavours stops and starts servers, and changes the flavour.
func TestPowerAndFlavours(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		m := newManager(t)
		p := ourCluster(t, c, "simple", 1)
		v := m.create(t, c, p.zip, p.vnfdID, p.shape)
		v.instantiates(t)
		before := v.servers()
		v.shape.stopped = true
		v.does(t, "operate", doc{"changeStateTo": "STOPPED", "stopType": "FORCEFUL"}, map[string]int{})
		v.shape.stopped = false
		v.does(t, "operate", doc{"changeStateTo": "STARTED"}, map[string]int{})
		if !maps.Equal(before, v.servers()) {
			t.Errorf("stopping and starting has changed servers: before %v, after %v", before, v.servers())
		}
		v.scales(t, "worker_instance", 1, map[string]int{"workerNode": 1})
		complete := clusterShape(t, c, "complex", 3)
		v.shape.flavour, v.shape.vnfcs = "complex", complete.vnfcs
		v.shape.levels["worker_instance"] = 0
		body := maps.Clone(complete.request)
		delete(body, "flavourId")
		body["newFlavourId"] = "complex"
		v.does(t, "change_flavour", body, map[string]int{"ADDED": 2, "REMOVED": 1})
		v.ending(t, "FORCEFUL")
	})
}

// TestCancelled cancels operations while Heat is at work for them, in both modes: what is left can be finished, or undone.
func TestCancelled(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	for _, mode := range []string{"GRACEFUL", "FORCEFUL"} {
		t.Run(mode, func(t *testing.T) {
			each(t, func(t *testing.T, c *target) {
				if c.sim != nil { // there must be time to cancel
					c.sim.Cloud.SetLatency(slowServers)
				}
				p := ourCluster(t, c, "simple", 1)
				v := m.create(t, c, p.zip, p.vnfdID, p.shape)
				begin := func() string { return v.instantiation(t) }
				v.cancels(t, begin(), "CREATE_IN_PROGRESS", mode)
				must(t, v.api.OpOccTask(v.ctx, v.last, "rollback", nil))
				v.ends(t, v.last, sol003.LcmOperationStateRolledBack)
				v.checkGoneFrom(t)
				v.cancels(t, begin(), "CREATE_IN_PROGRESS", mode)
				v.retries(t, map[string]int{"ADDED": v.shape.count()})

				out := doc{"type": "SCALE_OUT", "aspectId": "worker_instance", "numberOfSteps": 1}
				v.cancels(t, v.starts(t, "scale", out), "_IN_PROGRESS", mode)
				v.rollsBack(t, v.last)
				v.cancels(t, v.starts(t, "scale", out), "_IN_PROGRESS", mode)
				v.shape.vnfcs["workerNode"]++
				v.shape.levels["worker_instance"]++
				v.retries(t, map[string]int{"ADDED": 1})

				sick := slices.Sorted(maps.Keys(v.servers("workerNode")))[:1]
				v.cancels(t, v.starts(t, "heal", doc{"vnfcInstanceId": sick}), "UPDATE_IN_PROGRESS", mode)
				v.retries(t, map[string]int{"MODIFIED": 1})

				v.cancels(t, v.starts(t, "terminate", doc{"terminationType": "FORCEFUL"}), "DELETE_IN_PROGRESS", mode)
				must(t, v.api.OpOccTask(v.ctx, v.last, "retry", nil))
				v.ends(t, v.last, sol003.LcmOperationStateCompleted)
				must(t, v.api.DeleteInstance(v.ctx, v.id))
				v.checkGone(t)
			})
		})
	}
}

// instantiation asks for the instantiation and returns its op occ's id.
func (v *life) instantiation(t *testing.T) string {
	t.Helper()
	op, err := v.api.Instantiate(v.ctx, v.id, v.vim, v.shape.request)
	must(t, err)
	v.last = op
	return op
}

// cancels cancels an operation once a stack of the instance is in a state that ends so: it fails, and says why.
func (v *life) cancels(t *testing.T, op, state, mode string) {
	t.Helper()
	v.eventually(t, "Heat is at work: "+state, func() bool {
		for _, s := range list(v.heat.get(t, "stacks?show_nested=true").doc, "stacks") {
			if strings.HasPrefix(text(s, "stack_name"), "vnflcm_"+v.id) && strings.HasSuffix(text(s, "stack_status"), state) {
				return true
			}
		}
		o, err := v.api.OpOcc(v.ctx, op)
		must(t, err)
		if o.OperationState != sol003.LcmOperationStateProcessing && o.OperationState != sol003.LcmOperationStateStarting {
			t.Fatalf("%s is %s before Heat is seen at work", o.Operation, o.OperationState)
		}
		return false
	}, func() any { return v.heat.get(t, "stacks").text })
	must(t, v.api.OpOccTask(v.ctx, op, "cancel", doc{"cancelMode": mode}))
	got := v.ends(t, op, sol003.LcmOperationStateFailedTemp)
	if got.Error == nil || !strings.Contains(got.Error.Detail, "canceled ("+mode+")") {
		t.Errorf("the cancelled %s says %+v", got.Operation, got.Error)
	}
}

// retries retries the latest operation, which must complete.
func (v *life) retries(t *testing.T, changes map[string]int) {
	t.Helper()
	must(t, v.api.OpOccTask(v.ctx, v.last, "retry", nil))
	v.completes(t, "retry", v.last, changes)
}

// checkGoneFrom checks that a rolled back instantiation has left nothing.
func (v *life) checkGoneFrom(t *testing.T) {
	t.Helper()
	i, err := v.api.Instance(v.ctx, v.id)
	must(t, err)
	same(t, "the state after the rollback", i.InstantiationState, sol003.InstantiationStateNotInstantiated)
	v.checkGone(t)
}

// TestForgottenHalfway terminates what a cancelled instantiation has left, without retrying it or rolling it back.
func TestForgottenHalfway(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		m := newManager(t)
		if c.sim != nil {
			c.sim.Cloud.SetLatency(slowServers)
		}
		p := ourCluster(t, c, "simple", 1)
		v := m.create(t, c, p.zip, p.vnfdID, p.shape)
		v.cancels(t, v.instantiation(t), "CREATE_IN_PROGRESS", "FORCEFUL")
		if _, err := v.api.Call(v.ctx, http.MethodPost, "/vnflcm/v1/vnf_lcm_op_occs/"+v.last+"/fail", nil, nil); err != nil {
			t.Fatal(err)
		}
		v.ends(t, v.last, sol003.LcmOperationStateFailed)
		v.instantiates(t) // takes over what is there
		v.ending(t, "GRACEFUL")
	})
}

// TestScriptSays scales and heals what its script says the parameters of.
func TestScriptSays(t *testing.T) {
	each(t, func(t *testing.T, c *target) {
		m := newManager(t)
		p := scripted(t, c)
		v := m.create(t, c, p.zip, p.vnfdID, p.shape)
		told := func(want string) {
			t.Helper()
			for _, s := range list(c.heat.get(t, "stacks?name=vnflcm_"+v.id).doc, "stacks") {
				one := c.heat.get(t, "stacks/"+text(s, "stack_name")+"/"+text(s, "id"))
				if nfv := text(one.doc, "stack", "parameters", "nfv"); !strings.Contains(nfv, want) {
					t.Errorf("the parameters of the stack do not have %q: %s", want, nfv)
				}
			}
		}
		v.instantiates(t)
		v.scales(t, "gateway_group", 1, map[string]int{"gateway": 1})
		told("to scale")
		v.heals(t, "worker")
		told("to heal 1")
		v.scales(t, "gateway_group", -1, map[string]int{"gateway": -1})
		v.ending(t, "FORCEFUL")
	})
}
