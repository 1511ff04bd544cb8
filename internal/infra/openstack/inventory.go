package openstack

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// The types of the resources that resource handles point to.
const (
	serverType = "OS::Nova::Server"
	portType   = "OS::Neutron::Port"
	netType    = "OS::Neutron::Net"
	volumeType = "OS::Cinder::Volume"
)

// inventory is the step that points the instance's resource handles (SOL003 v2.6.1 §5.5.3.2 and following) to what the
// stack consists of now. What has been made again keeps its place: a VNFC stays in the stack that it is in.
func (d *Driver) inventory(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, c, err := d.begin(ctx, x)
	if err != nil {
		return lcm.Progress{}, err
	}
	if x.Instance.Info == nil {
		return lcm.Progress{}, lcm.Errorf(lcm.KindInternal, "VNF instance %s has no plan to fill in", x.Instance.ID)
	}
	if w.StackID == "" {
		s, err := loadInfra(x.Instance)
		if err != nil {
			return lcm.Progress{}, err
		}
		w.StackID = s.StackID
	}
	list, err := c.resources(ctx, stackName(x.Instance.ID), w.StackID)
	if err != nil {
		return lcm.Progress{}, err
	}
	remember(x)
	t := newTree(w.StackID, list)
	missing := t.fill(x.Instance.Info, x.Target.ID, plan(x).Leaves...)
	without, err := c.leadLinks(ctx, x.Instance.Info, t, x.Target.ID)
	if err != nil {
		return lcm.Progress{}, err
	}
	for _, what := range append(missing, without...) {
		x.Log.Warn("the stack has no such resource", "stack", w.StackID, "missing", what)
	}
	resolveLinkPorts(x)
	alignStates(x)
	params, err := decodeParameters(w.Parameters)
	if err != nil {
		return lcm.Progress{}, err
	}
	return lcm.Done(), c.noteUnheeded(ctx, x, params)
}

// resolveLinkPorts points handles that are laid out with the id of a link's port, as the request calls it (linkPortId, SOL003
// v2.6.1 §4.4.1.10a), to the port of the VIM.
func resolveLinkPorts(x *lcm.Execution) {
	if x.Instance.Request == nil {
		return
	}
	brought := map[string]sol003.ResourceHandle{}
	for _, link := range x.Instance.Request.ExtVirtualLinks {
		for _, p := range link.ExtLinkPorts {
			brought[p.Id] = p.ResourceHandle
		}
	}
	for n := range x.Instance.Info.VnfVirtualLinkResourceInfo {
		ports := x.Instance.Info.VnfVirtualLinkResourceInfo[n].VnfLinkPorts
		for m := range ports {
			h := &ports[m].ResourceHandle
			if given := brought[h.ResourceId]; given.ResourceId != "" && h.VimConnectionId == "" {
				h.ResourceId, h.VimConnectionId = given.ResourceId, given.VimConnectionId
			}
		}
	}
}

// remember has the VNFCs that a change of flavour keeps, laid out anew by their old ids, be where they were.
func remember(x *lcm.Execution) {
	if x.Op.Operation != sol003.LcmOperationTypeChangeFlavour || x.Before.Info == nil {
		return
	}
	was := map[string]*sol003.VnfcResourceInfo{}
	for n := range x.Before.Info.VnfcResourceInfo {
		was[x.Before.Info.VnfcResourceInfo[n].Id] = &x.Before.Info.VnfcResourceInfo[n]
	}
	for n := range x.Instance.Info.VnfcResourceInfo {
		v := &x.Instance.Info.VnfcResourceInfo[n]
		if old := was[v.Id]; old != nil && old.VduId == v.VduId && v.ComputeResource.ResourceId == "" {
			v.ComputeResource, v.Metadata = old.ComputeResource, old.Metadata
		}
	}
}

// alignStates makes vnfcInfo have an entry for every VNFC, in their order: those there stay with the VNFCs of their VDU;
// what is new, and what has been healed, runs.
func alignStates(x *lcm.Execution) {
	info := x.Instance.Info
	had := map[string][]sol003.VnfcInfo{}
	for _, v := range info.VnfcInfo {
		had[v.VduId] = append(had[v.VduId], v)
	}
	info.VnfcInfo = make([]sol003.VnfcInfo, 0, len(info.VnfcResourceInfo))
	for _, vnfc := range info.VnfcResourceInfo {
		next := sol003.VnfcInfo{VduId: vnfc.VduId, VnfcState: sol003.VnfOperationalStateStarted}
		if of := had[vnfc.VduId]; len(of) > 0 {
			next, had[vnfc.VduId] = of[0], of[1:]
			if slices.Contains(plan(x).Heals, vnfc.Id) {
				next.VnfcState = sol003.VnfOperationalStateStarted
			}
		} else {
			next.Id = x.NewID()
		}
		info.VnfcInfo = append(info.VnfcInfo, next)
	}
}

// plan returns the operation's plan, an empty one when there is none.
func plan(x *lcm.Execution) *lcm.Plan {
	if x.Plan == nil {
		return &lcm.Plan{}
	}
	return x.Plan
}

// branch is one stack of a tree with those of its resources that nothing points to yet.
type branch struct {
	id        string
	parent    string
	since     string
	resources map[string]*resource
}

// tree is a stack with all nested in it.
type tree struct {
	branches []*branch // the top first, then as they were created
	byID     map[string]*branch
}

// newTree sorts a list of resources by the stacks that they are in.
func newTree(top string, list []resource) *tree {
	t := &tree{byID: map[string]*branch{}}
	at := func(id string) *branch {
		b := t.byID[id]
		if b == nil {
			b = &branch{id: id, resources: map[string]*resource{}}
			t.byID[id] = b
			t.branches = append(t.branches, b)
		}
		return b
	}
	at(top)
	for n := range list {
		r := &list[n]
		id := r.stack()
		if id == "" {
			id = top
		}
		b := at(id)
		b.resources[r.Name] = r
		if b.since == "" || r.Creation < b.since {
			b.since = r.Creation
		}
	}
	for _, b := range t.branches {
		for _, r := range b.resources {
			if nested := t.byID[r.ID]; nested != nil && nested != b {
				nested.parent = b.id
			}
		}
	}
	// Members of one group that came in the same second keep Heat's order.
	slices.SortStableFunc(t.branches[1:], func(a, b *branch) int { return strings.Compare(a.since, b.since) })
	return t
}

// take returns the branch's resource of that name and type and takes it out, nil when there is none.
func (b *branch) take(name, kind string) *resource {
	r := b.resources[name]
	if r == nil || r.Type != kind || r.ID == "" {
		return nil
	}
	delete(b.resources, name)
	return r
}

// network finds the network of a virtual link: in the branch, in those above it, or anywhere.
func (t *tree) network(name string, from *branch) *resource {
	is := func(b *branch) *resource {
		if r := b.resources[name]; r != nil && r.Type == netType && r.ID != "" {
			return r
		}
		return nil
	}
	for b, steps := from, 0; b != nil && steps <= len(t.branches); b, steps = t.byID[b.parent], steps+1 {
		if r := is(b); r != nil {
			return r
		}
	}
	for _, b := range t.branches {
		if r := is(b); r != nil {
			return r
		}
	}
	return nil
}

// homes finds the branch of every VNFC, with its server, which is taken: where its server is still; else in the stack
// that it was in; else the first server left that is named like its VDU.
func (t *tree) homes(info *sol003.InstantiatedVnfInfo, gone []string) map[string]home {
	out := map[string]home{}
	pass := func(find func(v *sol003.VnfcResourceInfo) *branch) {
		for n := range info.VnfcResourceInfo {
			v := &info.VnfcResourceInfo[n]
			if _, done := out[v.Id]; done || slices.Contains(gone, v.Id) {
				continue
			}
			if b := find(v); b != nil {
				out[v.Id] = home{b, b.take(v.VduId, serverType)}
			}
		}
	}
	has := func(b *branch, name string) bool {
		r := b.resources[name]
		return r != nil && r.Type == serverType && r.ID != ""
	}
	pass(func(v *sol003.VnfcResourceInfo) *branch {
		for _, b := range t.branches {
			if id := v.ComputeResource.ResourceId; id != "" && has(b, v.VduId) && b.resources[v.VduId].ID == id {
				return b
			}
		}
		return nil
	})
	pass(func(v *sol003.VnfcResourceInfo) *branch {
		if b := t.byID[text(v.Metadata, homeKey)]; b != nil && has(b, v.VduId) {
			return b
		}
		return nil
	})
	pass(func(v *sol003.VnfcResourceInfo) *branch {
		for _, b := range t.branches {
			if has(b, v.VduId) {
				return b
			}
		}
		return nil
	})
	return out
}

// home is where a VNFC lives: its stack, and its server.
type home struct {
	*branch
	server *resource
}

// homeKey is the key of a VNFC's metadata that tells the stack that it lives in.
const homeKey = "stack_id"

// fill points the handles of info to the tree's resources and returns the names of the servers, volumes and ports that it
// does not have. Each VNFC has its storages and ports from the stack that its server is in. Handles that the request gave
// stay: they name another VIM connection than vimID, or none. The VNFCs that have gone are passed over.
func (t *tree) fill(info *sol003.InstantiatedVnfInfo, vimID string, gone ...string) (missing []string) {
	handle := func(r *resource) sol003.ResourceHandle {
		return sol003.ResourceHandle{VimConnectionId: vimID, ResourceId: r.ID, VimLevelResourceType: r.Type}
	}
	ours := func(h sol003.ResourceHandle) bool { return h.ResourceId == "" || h.VimConnectionId == vimID }
	ports := map[string]*sol003.VnfLinkPortInfo{}
	links := map[string]*sol003.VnfVirtualLinkResourceInfo{}
	for n := range info.VnfVirtualLinkResourceInfo {
		vl := &info.VnfVirtualLinkResourceInfo[n]
		for p := range vl.VnfLinkPorts {
			ports[vl.VnfLinkPorts[p].Id] = &vl.VnfLinkPorts[p]
			links[vl.VnfLinkPorts[p].Id] = vl
		}
	}
	storages := map[string]*sol003.VirtualStorageResourceInfo{}
	for n := range info.VirtualStorageResourceInfo {
		storages[info.VirtualStorageResourceInfo[n].Id] = &info.VirtualStorageResourceInfo[n]
	}
	homes := t.homes(info, gone)
	led := map[string]bool{} // links that a port has led to
	for n := range info.VnfcResourceInfo {
		vnfc := &info.VnfcResourceInfo[n]
		if slices.Contains(gone, vnfc.Id) {
			continue
		}
		home, found := homes[vnfc.Id]
		if !found {
			missing = append(missing, "server "+vnfc.VduId)
			continue
		}
		vnfc.ComputeResource = handle(home.server)
		metadata := sol003.KeyValuePairs{}
		for k, v := range vnfc.Metadata {
			metadata[k] = v
		}
		metadata[homeKey] = home.id
		vnfc.Metadata = metadata
		for _, id := range vnfc.StorageResourceIds {
			s := storages[id]
			if s == nil {
				continue
			}
			if r := home.take(s.VirtualStorageDescId, volumeType); r != nil {
				s.StorageResource = handle(r)
			} else {
				missing = append(missing, "volume "+s.VirtualStorageDescId)
			}
		}
		for _, cp := range vnfc.VnfcCpInfo {
			port := ports[cp.VnfLinkPortId]
			r := home.take(cp.CpdId, portType)
			if r == nil {
				if port == nil || ours(port.ResourceHandle) {
					missing = append(missing, "port "+cp.CpdId)
				}
				continue
			}
			if port == nil {
				continue
			}
			if ours(port.ResourceHandle) {
				port.ResourceHandle = handle(r)
			}
			if vl := links[port.Id]; ours(vl.NetworkResource) && !led[vl.Id] {
				if r := t.network(vl.VnfVirtualLinkDescId, home.branch); r != nil {
					vl.NetworkResource, led[vl.Id] = handle(r), true
				}
			}
		}
	}
	for n := range info.VnfVirtualLinkResourceInfo { // links that no port has led to
		vl := &info.VnfVirtualLinkResourceInfo[n]
		if led[vl.Id] || !ours(vl.NetworkResource) {
			continue
		}
		if r := t.network(vl.VnfVirtualLinkDescId, nil); r != nil {
			vl.NetworkResource = handle(r)
		}
	}
	for n := range info.ExtManagedVirtualLinkInfo {
		managed := info.ExtManagedVirtualLinkInfo[n].VnfLinkPorts
		for p := range managed {
			if port := ports[managed[p].Id]; port != nil {
				managed[p].ResourceHandle = port.ResourceHandle
			}
		}
	}
	return missing
}
