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
// stack consists of.
func (d *Driver) inventory(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, c, err := d.begin(ctx, x)
	if err != nil {
		return lcm.Progress{}, err
	}
	list, err := c.resources(ctx, stackName(x.Instance.ID), w.StackID)
	if err != nil {
		return lcm.Progress{}, err
	}
	if x.Instance.Info == nil {
		return lcm.Progress{}, lcm.Errorf(lcm.KindInternal, "VNF instance %s has no plan to fill in", x.Instance.ID)
	}
	t := newTree(w.StackID, list)
	for _, missing := range t.fill(x.Instance.Info, x.Target.ID) {
		x.Log.Warn("the stack has no such resource", "stack", w.StackID, "missing", missing)
	}
	info := x.Instance.Info
	info.VnfcInfo = nil
	for _, vnfc := range info.VnfcResourceInfo {
		info.VnfcInfo = append(info.VnfcInfo, sol003.VnfcInfo{Id: x.NewID(), VduId: vnfc.VduId, VnfcState: sol003.VnfOperationalStateStarted})
	}
	return lcm.Done(), nil
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

// fill points the handles of info to the tree's resources and returns the names of those that it does not have. Each
// VNFC takes the first server left that is named like its VDU, and its storages and ports from the same stack.
func (t *tree) fill(info *sol003.InstantiatedVnfInfo, vimID string) (missing []string) {
	handle := func(r *resource) sol003.ResourceHandle {
		return sol003.ResourceHandle{VimConnectionId: vimID, ResourceId: r.ID, VimLevelResourceType: r.Type}
	}
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
	for n := range info.VnfcResourceInfo {
		vnfc := &info.VnfcResourceInfo[n]
		home, server := t.server(vnfc.VduId)
		if server == nil {
			missing = append(missing, "server "+vnfc.VduId)
			continue
		}
		vnfc.ComputeResource = handle(server)
		metadata := sol003.KeyValuePairs{}
		for k, v := range vnfc.Metadata {
			metadata[k] = v
		}
		metadata["stack_id"] = home.id
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
				missing = append(missing, "port "+cp.CpdId)
				continue
			}
			if port == nil {
				continue
			}
			if port.ResourceHandle.ResourceId == "" {
				port.ResourceHandle = handle(r)
			}
			if vl := links[port.Id]; vl.NetworkResource.ResourceId == "" {
				if r := t.network(vl.VnfVirtualLinkDescId, home); r != nil {
					vl.NetworkResource = handle(r)
				}
			}
		}
	}
	for n := range info.VnfVirtualLinkResourceInfo { // links that no port has led to
		vl := &info.VnfVirtualLinkResourceInfo[n]
		if vl.NetworkResource.ResourceId != "" {
			continue
		}
		if r := t.network(vl.VnfVirtualLinkDescId, nil); r != nil {
			vl.NetworkResource = handle(r)
		} else {
			missing = append(missing, "network "+vl.VnfVirtualLinkDescId)
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

// server takes the first server left of that name, with the branch that it is in.
func (t *tree) server(name string) (*branch, *resource) {
	for _, b := range t.branches {
		if r := b.take(name, serverType); r != nil {
			return b, r
		}
	}
	return nil, nil
}
