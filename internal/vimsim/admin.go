package vimsim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
)

// State is a picture of a cloud.
type State struct {
	// Counts by type: stacks, servers, ports, volumes, images, …; deleted and
	// predefined objects included only as far as they exist.
	Counts map[string]int `json:"counts"`
	// Stacks are the top-level stacks, deleted ones included, oldest first.
	Stacks  []StackState     `json:"stacks"`
	Servers []map[string]any `json:"servers"`
	Ports   []map[string]any `json:"ports"`
	Volumes []map[string]any `json:"volumes"`
	Images  []map[string]any `json:"images"`
	Flavors []map[string]any `json:"flavors"`
	// Networks include the predefined ones.
	Networks []map[string]any `json:"networks"`
	// Journal lists the changing requests received.
	Journal []Entry `json:"journal"`
}

// StackState is one stack with its resources and what is nested in them.
type StackState struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Project   string          `json:"project"`
	Status    string          `json:"status"`
	Reason    string          `json:"reason"`
	Resources []ResourceState `json:"resources"`
}

// ResourceState is one resource of a StackState.
type ResourceState struct {
	Name       string      `json:"name"`
	Type       string      `json:"type"`
	PhysicalID string      `json:"physical_id"`
	Status     string      `json:"status"`
	Reason     string      `json:"reason"`
	Nested     *StackState `json:"nested,omitempty"`
}

// State gives a picture of the whole cloud.
func (c *Cloud) State() State {
	c.mu.Lock()
	st := State{
		Ports: c.net.ports.list(nil), Volumes: c.cinder.volumes.list(nil), Images: c.images.list(nil), Flavors: c.nova.flavors.list(nil),
		Networks: c.net.networks.list(nil),
		Servers:  []map[string]any{}, Stacks: []StackState{},
	}
	var roots []*stack
	live, nested := 0, 0
	for _, s := range c.heat.byID {
		switch {
		case s.parent != nil:
			nested++
		default:
			roots = append(roots, s)
			if s.deleted.IsZero() {
				live++
			}
		}
	}
	slices.SortFunc(roots, func(a, b *stack) int { return cmp.Compare(a.seq, b.seq) })
	for _, s := range roots {
		st.Stacks = append(st.Stacks, stackState(s))
	}
	var servers []*server
	for _, s := range c.nova.servers {
		servers = append(servers, s)
	}
	slices.SortFunc(servers, func(a, b *server) int { return cmp.Compare(a.seq, b.seq) })
	for _, s := range servers {
		st.Servers = append(st.Servers, c.serverDoc(s))
	}
	st.Counts = map[string]int{
		"stacks": live, "nested_stacks": nested, "deleted_stacks": len(c.heat.deleted), "servers": len(servers), "ports": c.net.ports.len(),
		"volumes": c.cinder.volumes.len(), "volume_types": c.cinder.types.len(), "images": c.images.len(), "flavors": c.nova.flavors.len(),
		"networks": c.net.networks.len(), "subnets": c.net.subnets.len(), "server_groups": len(c.nova.groups), "routers": c.net.routers.len(),
		"floatingips": c.net.floatingips.len(), "keypairs": c.nova.keys.len(), "qos_policies": c.net.qos.len(), "tokens": len(c.keys.tokens),
	}
	c.mu.Unlock()
	for _, l := range [][]map[string]any{st.Ports, st.Volumes, st.Images, st.Flavors, st.Networks} {
		for i, d := range l {
			l[i] = public(d)
		}
	}
	st.Journal = c.Journal()
	return st
}

func stackState(s *stack) StackState {
	o := StackState{ID: s.id, Name: s.name, Project: s.project, Status: s.state(), Reason: s.reason, Resources: []ResourceState{}}
	var l []*resource
	for _, r := range s.res {
		l = append(l, r)
	}
	slices.SortFunc(l, func(a, b *resource) int { return cmp.Compare(a.seq, b.seq) })
	for _, r := range l {
		rs := ResourceState{Name: r.name, Type: r.typ, PhysicalID: r.phys, Status: r.state(), Reason: r.reason}
		if r.nested != nil {
			n := stackState(r.nested)
			rs.Nested = &n
		}
		o.Resources = append(o.Resources, rs)
	}
	return o
}

// Reset ends what runs and brings back the predefined state: no stacks, no
// servers, the faults, latencies of the configuration. Accounts and tokens stay.
func (c *Cloud) Reset() {
	c.mu.Lock()
	var ops []*operation
	if !c.closed {
		for _, s := range c.heat.byID {
			if s.op != nil {
				s.op.cancel(errSuperseded)
				ops = append(ops, s.op)
			}
		}
	}
	c.mu.Unlock()
	for _, o := range ops {
		<-o.done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.init()
}

func (c *Cloud) routeAdmin(r chi.Router) {
	h := func(f handlerFunc) http.HandlerFunc {
		return c.handle(keystoneShape, true, func(r *request) (reply, error) {
			// There is no password here, so only this machine may come in.
			if a, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !a.Addr().Unmap().IsLoopback() {
				return reply{}, fail(403, "", "The simulator's controls are open to loopback only.")
			}
			return f(r)
		})
	}
	r.Get("/vimsim/state", h(func(*request) (reply, error) { return ok(c.State()) }))
	r.Get("/vimsim/journal", h(func(*request) (reply, error) { return ok(map[string]any{"journal": c.Journal()}) }))
	r.Get("/vimsim/faults", h(func(*request) (reply, error) { return ok(map[string]any{"faults": c.Faults()}) }))
	r.Post("/vimsim/faults", h(func(r *request) (reply, error) {
		var f Fault
		if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<20)).Decode(&f); err != nil {
			return reply{}, fail(400, "", "The fault could not be read: "+err.Error())
		}
		if err := CheckFault(f); err != nil {
			return reply{}, fail(400, "", err.Error())
		}
		return status(201, doc{"id": c.AddFault(f)})
	}))
	r.Delete("/vimsim/faults", h(func(*request) (reply, error) {
		c.RemoveFault("")
		return status(204, nil)
	}))
	r.Delete("/vimsim/faults/{id}", h(func(r *request) (reply, error) {
		if !c.RemoveFault(r.arg("id")) {
			return reply{}, fail(404, "", "There is no fault "+r.arg("id")+".")
		}
		return status(204, nil)
	}))
	r.Post("/vimsim/tokens/expire", h(func(*request) (reply, error) {
		c.ExpireTokens()
		return status(204, nil)
	}))
	r.Post("/vimsim/reset", h(func(*request) (reply, error) {
		c.Reset()
		return status(204, nil)
	}))
	r.Put("/vimsim/latency", h(func(r *request) (reply, error) {
		var l map[string]Duration
		if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<20)).Decode(&l); err != nil {
			return reply{}, fail(400, "", "The latencies could not be read: "+err.Error())
		}
		m := map[string]time.Duration{}
		for k, v := range l {
			m[k] = time.Duration(v)
		}
		c.SetLatency(m)
		return status(204, nil)
	}))
}
