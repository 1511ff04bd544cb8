package openstack_test

import (
	"os"
	"testing"
)

// onReal tells whether the target is an OpenStack.
func onReal() bool { return os.Getenv("VNFM_OPENSTACK_AUTH_URL") != "" }

// way is how the whole life of a VNF goes.
type way struct {
	name   string
	of     func(t *testing.T, c *target) *vnf // nil: a package from outside that is not there
	aspect string                             // scaled out by out steps, in by one; "" for none
	out    int
	vdu    string // of which each step is one VNFC
	heal   string // the VDU of which one is healed
}

// TestLives drives VNFs through whole lives. After every step each of an instance's handles is held against what the target's
// own services say, and in the end there is nothing left.
func TestLives(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	own := func(of func(t *testing.T, c *target) vnf) func(t *testing.T, c *target) *vnf {
		return func(t *testing.T, c *target) *vnf { p := of(t, c); return &p }
	}
	cluster := func(t *testing.T, c *target) vnf { return ourCluster(t, c, "complex", 3) }
	functional := func(t *testing.T, c *target) *vnf { return outsideFunctional(t, c, "functional") }
	outside := func(flavour string, masters int) func(t *testing.T, c *target) *vnf {
		return func(t *testing.T, c *target) *vnf { return outsideCluster(t, c, flavour, masters) }
	}
	apart := func(t *testing.T, c *target) *vnf {
		p := outsideCluster(t, c, "podaffinity", 3)
		if p != nil {
			p.shape.spread = []string{"masterNode", "workerNode"}
		}
		return p
	}
	for _, w := range []way{
		{"our complex cluster", own(cluster), "worker_instance", 2, "workerNode", "masterNode"},
		{"our gateway", own(ourGateway), "gateway_group", 2, "gateway", "gateway"},
		{"our edge", own(edge), "workers", 2, "worker", "gate"},
		{"functional", functional, "worker_instance", 2, "VDU1", "VDU1"},
		{"functional2", func(t *testing.T, c *target) *vnf {
			p := outsideFunctional(t, c, "functional2")
			if p != nil {
				const other = "cirros-0.5.2-x86_64-disk2"
				c.bringImage(t, other)
				p.shape.images["VDU2"] = other
			}
			return p
		}, "worker_instance", 2, "VDU1", "VDU2"},
		{"vnflcm1", func(t *testing.T, _ *target) *vnf { return outsideScaling(t) }, "worker_instance", 2, "VDU1", "VDU1"},
		{"vnflcm3", outsideExternal, "", 0, "", "VDU1"},
		{"kubernetes_vnf_package simple", outside("simple", 1), "worker_instance", 2, "workerNode", "workerNode"},
		{"kubernetes_vnf_package complex", outside("complex", 3), "master_instance", 2, "masterNode", "masterNode"},
		{"kubernetes_vnf_package podaffinity", apart, "worker_instance", 1, "workerNode", "workerNode"},
	} {
		t.Run(w.name, func(t *testing.T) {
			each(t, func(t *testing.T, c *target) {
				p := w.of(t, c)
				if p == nil {
					return
				}
				v := m.create(t, c, p.zip, p.vnfdID, p.shape)
				v.instantiates(t)
				if w.aspect != "" {
					v.scales(t, w.aspect, w.out, map[string]int{w.vdu: w.out})
					v.scales(t, w.aspect, -1, map[string]int{w.vdu: -1})
				}
				v.heals(t, w.heal)
				v.healsAll(t)
				if len(v.shape.external) > 0 {
					v.moves(t, v.elsewhere(t))
				}
				v.ending(t, "FORCEFUL")
			})
		})
	}
}
