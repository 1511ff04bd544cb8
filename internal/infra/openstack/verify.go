package openstack

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// stackType is the type of the resource that an instance's stack is.
const stackType = "OS::Heat::Stack"

var _ lcm.Verifier = (*Driver)(nil)

// Verify implements lcm.Verifier: what Heat says of the stack and of all that is nested in it, Nova of the servers, Neutron
// of the ports and networks, and Cinder of the volumes. While Heat is at the stack, or when it is gone, nothing more is looked at.
func (d *Driver) Verify(ctx context.Context, in *lcm.Inspection) ([]lcm.Difference, error) {
	target, err := settled(in.Instance, in.Target)
	if err != nil {
		return nil, err
	}
	c, err := d.connect(ctx, target)
	if err != nil {
		return nil, err
	}
	s, err := loadInfra(in.Instance)
	if err != nil {
		return nil, err
	}
	name := stackName(in.Instance.ID)
	var found *stack
	if s.StackID != "" {
		if found, err = c.stack(ctx, name, s.StackID); err != nil {
			return nil, err
		}
	}
	v := &comparison{vim: in.Target.ID, infra: s, info: in.Instance.Info, stack: found}
	if whole := v.ofStack(name); whole != nil {
		return []lcm.Difference{*whole}, nil
	}
	list, err := c.resources(ctx, name, s.StackID)
	if err != nil {
		return nil, err
	}
	if busy := v.busy(list); busy != nil {
		return []lcm.Difference{*busy}, nil
	}
	v.tree = newTree(s.StackID, list)
	v.heat = make(map[string]*resource, len(list))
	for n := range list {
		v.heat[list[n].ID] = &list[n]
	}
	if err := v.read(ctx, c); err != nil {
		return nil, err
	}
	for n := range v.info.VnfcResourceInfo {
		if err := v.vnfc(ctx, c, n); err != nil {
			return nil, err
		}
	}
	v.links()
	v.strangers(in, list)
	v.failedStack()
	return v.out, nil
}

// comparison is one verification under way.
type comparison struct {
	vim   string
	infra *infra
	info  *sol003.InstantiatedVnfInfo
	stack *stack
	tree  *tree
	heat  map[string]*resource // of the stack and those nested in it, by the ids of what they are

	servers  map[string]*server
	ports    map[string]*port
	volumes  map[string]*volume
	networks map[string]bool // by id or name
	records  recorded

	out []lcm.Difference
}

// recorded is the instance's record by ids.
type recorded struct {
	servers  map[string]bool
	ports    map[string]*sol003.VnfLinkPortInfo            // by id of the link port
	storages map[string]*sol003.VirtualStorageResourceInfo // by id of the storage
}

func (v *comparison) add(d lcm.Difference) { v.out = append(v.out, d) }

// ofStack returns the difference that leaves nothing else to be compared, nil for none.
func (v *comparison) ofStack(name string) *lcm.Difference {
	d := &lcm.Difference{
		Part: lcm.PartVNF, Recorded: "stack " + name, Mend: lcm.HealOf(),
		Resource: &sol003.ResourceHandle{VimConnectionId: v.vim, ResourceId: v.infra.StackID, VimLevelResourceType: stackType},
	}
	switch {
	case v.stack == nil:
		d.Kind, d.Found = lcm.DifferenceMissing, "no such stack"
	case strings.HasSuffix(v.stack.Status, "_IN_PROGRESS"):
		d.Kind, d.Found = lcm.DifferenceBusy, "the stack is "+v.stack.Status
		d.Mend = lcm.Mend{First: "wait until Heat is done with the stack, and verify again"}
	case v.stack.Status == "DELETE_COMPLETE":
		d.Kind, d.Found = lcm.DifferenceMissing, "the stack has been deleted"
	case strings.HasPrefix(v.stack.Status, "DELETE_"):
		d.Kind, d.Found = lcm.DifferenceFailed, "the stack is "+v.stack.Status+": "+cut(v.stack.Reason)
	case strings.HasPrefix(v.stack.Status, "SUSPEND_"):
		d.Kind, d.Found = lcm.DifferenceState, "the stack is "+v.stack.Status
		d.Mend = lcm.Mend{First: "resume the stack"}
	default:
		return nil
	}
	return d
}

// busy returns the difference that Heat is at something within the stack, as after a signal, which the stack itself does not
// show; nil for none.
func (v *comparison) busy(list []resource) *lcm.Difference {
	n := slices.IndexFunc(list, func(r resource) bool { return strings.HasSuffix(r.Status, "_IN_PROGRESS") })
	if n < 0 {
		return nil
	}
	return &lcm.Difference{
		Kind: lcm.DifferenceBusy, Part: lcm.PartVNF, Recorded: "stack " + v.stack.Name, Found: "resource " + list[n].Name + " is " + list[n].Status,
		Resource: &sol003.ResourceHandle{VimConnectionId: v.vim, ResourceId: cmp.Or(list[n].ID, v.stack.ID), VimLevelResourceType: list[n].Type},
		Mend:     lcm.Mend{First: "wait until Heat is done with the stack, and verify again"},
	}
}

// failedStack adds that Heat's last action on the stack has failed. An update, which any heal is, brings it right; those VNFCs
// are named that are to be healed anyway. As long as what is found needs no heal, none is named: the whole VNF's would be left.
func (v *comparison) failedStack() {
	if !strings.HasSuffix(v.stack.Status, "_FAILED") {
		return
	}
	mend, whole := lcm.HealOf(), false
	if updatable(v.stack) {
		heals := 0
		for _, d := range v.out {
			switch {
			case d.Mend.Operation == "":
				continue
			case d.Mend.Operation != sol003.LcmOperationTypeHeal || len(d.Mend.VnfcInstanceIDs) == 0:
				whole = true
			}
			heals++
			mend.VnfcInstanceIDs = append(mend.VnfcInstanceIDs, d.Mend.VnfcInstanceIDs...)
		}
		slices.Sort(mend.VnfcInstanceIDs)
		mend.VnfcInstanceIDs = slices.Compact(mend.VnfcInstanceIDs)
		switch {
		case whole:
			mend.VnfcInstanceIDs = nil
		case heals == 0 && len(v.out) > 0:
			mend = lcm.Mend{First: "end the other differences, and verify again"}
		}
	}
	v.out = slices.Insert(v.out, 0, lcm.Difference{
		Kind: lcm.DifferenceFailed, Part: lcm.PartVNF, Recorded: "stack " + v.stack.Name, Mend: mend,
		Resource: &sol003.ResourceHandle{VimConnectionId: v.vim, ResourceId: v.stack.ID, VimLevelResourceType: stackType},
		Found:    "the stack is " + v.stack.Status + ": " + cut(v.stack.Reason),
	})
}

// read reads all that is recorded from the VIM.
func (v *comparison) read(ctx context.Context, c *cloud) (err error) {
	v.records = recorded{map[string]bool{}, map[string]*sol003.VnfLinkPortInfo{}, map[string]*sol003.VirtualStorageResourceInfo{}}
	var servers, ports, volumes, networks []string
	want := func(list *[]string, h sol003.ResourceHandle) {
		if h.ResourceId != "" && !slices.Contains(*list, h.ResourceId) {
			*list = append(*list, h.ResourceId)
		}
	}
	for n := range v.info.VnfcResourceInfo {
		if h := v.info.VnfcResourceInfo[n].ComputeResource; h.ResourceId != "" {
			v.records.servers[h.ResourceId] = true
			servers = append(servers, h.ResourceId)
		}
	}
	for n := range v.info.VirtualStorageResourceInfo {
		s := &v.info.VirtualStorageResourceInfo[n]
		v.records.storages[s.Id] = s
		if s.StorageResource.ResourceId != "" {
			volumes = append(volumes, s.StorageResource.ResourceId)
		}
	}
	for n := range v.info.VnfVirtualLinkResourceInfo {
		vl := &v.info.VnfVirtualLinkResourceInfo[n]
		want(&networks, vl.NetworkResource)
		for m := range vl.VnfLinkPorts {
			p := &vl.VnfLinkPorts[m]
			v.records.ports[p.Id] = p
			if p.ResourceHandle.ResourceId != "" {
				ports = append(ports, p.ResourceHandle.ResourceId)
			}
		}
	}
	if v.servers, err = c.serversOf(ctx, servers); err != nil {
		return err
	}
	if v.volumes, err = c.volumesOf(ctx, volumes); err != nil {
		return err
	}
	if v.ports, err = c.portsOf(ctx, ports); err != nil {
		return err
	}
	v.networks, err = c.networksOf(ctx, networks)
	return err
}

// instead returns what a VNFC's stack has of a name and type when it is another resource than the recorded one; nil when it is
// that one, is another VNFC's, or there is none. It may be one that could not be made, and have no id.
func (v *comparison) instead(vnfc *sol003.VnfcResourceInfo, name, kind, id string) *resource {
	b := v.tree.byID[text(vnfc.Metadata, homeKey)]
	if b == nil {
		return nil
	}
	r := b.resources[name]
	if r == nil || r.Type != kind || r.ID == id || r.ID == "" && !r.failed() || kind == serverType && v.records.servers[r.ID] {
		return nil
	}
	return r
}

// substitute says how a resource in place of the recorded one differs from that.
func substitute(by *resource, what string) (kind lcm.DifferenceKind, found string) {
	if said := grievance(by); said != "" {
		return lcm.DifferenceFailed, said
	}
	return lcm.DifferenceChanged, what + " " + by.ID
}

// grievance says what Heat holds against a resource, "" for nothing.
func grievance(r *resource) string {
	if r == nil || !r.failed() {
		return ""
	}
	return "Heat has it as " + r.Status + ": " + cut(r.Reason)
}

// stateOf returns the state that a VNFC is recorded in: vnfcInfo is in the order of vnfcResourceInfo.
func (v *comparison) stateOf(n int) sol003.VnfOperationalState {
	if len(v.info.VnfcInfo) == len(v.info.VnfcResourceInfo) && v.info.VnfcInfo[n].VduId == v.info.VnfcResourceInfo[n].VduId && v.info.VnfcInfo[n].VnfcState != "" {
		return v.info.VnfcInfo[n].VnfcState
	}
	return cmp.Or(v.info.VnfState, sol003.VnfOperationalStateStarted)
}

// vnfc compares a VNFC: its server, and what belongs to it.
func (v *comparison) vnfc(ctx context.Context, c *cloud, n int) error {
	vnfc := &v.info.VnfcResourceInfo[n]
	h := vnfc.ComputeResource
	d := lcm.Difference{
		Part: lcm.PartVNFC, ID: vnfc.Id, Name: vnfc.VduId, Resource: &h, Recorded: "server " + cmp.Or(h.ResourceId, "of no id"), Mend: lcm.HealOf(vnfc.Id),
	}
	s, r := v.servers[h.ResourceId], v.heat[h.ResourceId]
	is := "" // the server that what belongs to the VNFC is to be at; "" when it is not the recorded one
	if other := v.instead(vnfc, vnfc.VduId, serverType, h.ResourceId); other != nil {
		d.Kind, d.Found = substitute(other, "server")
		if other.ID != "" {
			v.records.servers[other.ID] = true
		}
	} else if s == nil {
		d.Kind, d.Found = lcm.DifferenceMissing, "no such server"
	} else if r == nil {
		d.Kind, d.Found = lcm.DifferenceChanged, "the server is in no stack any more"
		d.Mend.First = "delete server " + s.ID
	} else {
		is = s.ID
		switch d.Kind, d.Found = v.condition(s, r, v.stateOf(n)); d.Kind {
		case lcm.DifferenceState: // nothing is lost, and a heal would make the server anew
			d.Recorded += " " + string(v.stateOf(n))
			d.Mend = lcm.Mend{First: wayBack(s.Status, v.stateOf(n)) + " server " + s.ID}
		case lcm.DifferenceBusy: // what it is attached to may be on its way
			is, d.Mend = "", lcm.Mend{First: "wait until Nova is done with the server, and verify again"}
		}
	}
	if d.Kind != "" {
		v.add(d)
	}
	for _, id := range vnfc.StorageResourceIds {
		if storage := v.records.storages[id]; storage != nil {
			v.storage(vnfc, storage, is)
		}
	}
	for k := range vnfc.VnfcCpInfo {
		if p := v.records.ports[vnfc.VnfcCpInfo[k].VnfLinkPortId]; p != nil {
			if err := v.port(ctx, c, vnfc, &vnfc.VnfcCpInfo[k], p, is); err != nil {
				return err
			}
		}
	}
	return nil
}

// condition compares how a server that is there is with the state that it is recorded in.
func (v *comparison) condition(s *server, r *resource, want sol003.VnfOperationalState) (kind lcm.DifferenceKind, found string) {
	right := serverActive
	if want == sol003.VnfOperationalStateStopped {
		right = serverOff
	}
	switch {
	case s.Status == serverError:
		return lcm.DifferenceFailed, strings.TrimSuffix("the server is ERROR: "+cut(s.Fault.Message), ": ")
	case grievance(r) != "":
		return lcm.DifferenceFailed, grievance(r)
	case s.Status == right && s.Task == "":
		return "", ""
	case s.Task != "":
		return lcm.DifferenceBusy, "the server is " + s.Status + ", and " + s.Task
	default:
		return lcm.DifferenceState, "the server is " + s.Status
	}
}

// wayBack says what brings a server from a status into the state that it is recorded in.
func wayBack(status string, want sol003.VnfOperationalState) string {
	back := map[string]string{
		serverOff: "start", "PAUSED": "unpause", "SUSPENDED": "resume", "SHELVED": "unshelve", "SHELVED_OFFLOADED": "unshelve",
		"RESCUE": "unrescue", "SOFT_DELETED": "restore", "VERIFY_RESIZE": "confirm or revert the resize of",
	}[status]
	switch {
	case want != sol003.VnfOperationalStateStopped:
		return cmp.Or(back, "bring to ACTIVE")
	case back != "":
		return back + " and stop"
	default:
		return "stop"
	}
}

// storage compares a VNFC's volume. is is the server that it is to be attached to, "" when there is no telling.
func (v *comparison) storage(vnfc *sol003.VnfcResourceInfo, s *sol003.VirtualStorageResourceInfo, is string) {
	h := s.StorageResource
	if h.ResourceId == "" {
		return // nothing is claimed of it
	}
	d := lcm.Difference{
		Part: lcm.PartStorage, ID: s.Id, Name: s.VirtualStorageDescId, Resource: &h, Recorded: "volume " + h.ResourceId, Mend: lcm.HealOf(vnfc.Id),
	}
	there, r := v.volumes[h.ResourceId], v.heat[h.ResourceId]
	if other := v.instead(vnfc, s.VirtualStorageDescId, volumeType, h.ResourceId); other != nil {
		d.Kind, d.Found = substitute(other, "volume")
	} else if there == nil {
		d.Kind, d.Found = lcm.DifferenceMissing, "no such volume"
	} else if strings.HasPrefix(there.Status, "error") {
		d.Kind, d.Found = lcm.DifferenceFailed, "the volume is "+there.Status
	} else if said := grievance(r); said != "" {
		d.Kind, d.Found = lcm.DifferenceFailed, said
	} else if at := there.servers(); is != "" && !slices.Contains(at, is) {
		d.Kind, d.Recorded, d.Found = lcm.DifferenceChanged, d.Recorded+" at server "+is, "the volume is at "+listed(at, "no server")
		if len(at) > 0 {
			d.Mend.First = "detach volume " + h.ResourceId + " from server " + listed(at, "")
		}
	}
	if d.Kind != "" {
		v.add(d)
	}
}

// port compares a VNFC's port. is is the server that it is to be at, "" when there is no telling.
func (v *comparison) port(ctx context.Context, c *cloud, vnfc *sol003.VnfcResourceInfo, cp *sol003.VnfcCpInfo, p *sol003.VnfLinkPortInfo, is string) error {
	h := p.ResourceHandle
	if h.ResourceId == "" {
		return nil
	}
	d := lcm.Difference{Part: lcm.PartPort, ID: p.Id, Name: cp.CpdId, Resource: &h, Recorded: "port " + h.ResourceId, Mend: lcm.HealOf(vnfc.Id)}
	given := h.VimConnectionId != v.vim // by the request: the stack only uses it
	there, r := v.ports[h.ResourceId], v.heat[h.ResourceId]
	if other := v.instead(vnfc, cp.CpdId, portType, h.ResourceId); other != nil && !given {
		d.Kind, d.Found = substitute(other, "port")
	} else if there == nil {
		d.Kind, d.Found = lcm.DifferenceMissing, "no such port"
		if given {
			d.Mend = lcm.Mend{Operation: sol003.LcmOperationTypeChangeExtConn}
		}
	} else if said := grievance(r); said != "" {
		d.Kind, d.Found = lcm.DifferenceFailed, said
	} else if is != "" && there.Server != is {
		d.Kind, d.Recorded, d.Found = lcm.DifferenceChanged, d.Recorded+" at server "+is, "the port is at "+cmp.Or(there.Server, "no server")
		if there.Server != "" {
			d.Mend.First = "detach port " + h.ResourceId + " from " + there.Server
		}
	} else if lost, err := c.lost(ctx, cp, there, r); err != nil {
		return err
	} else if len(lost) > 0 {
		d.Kind, d.Recorded, d.Found = lcm.DifferenceChanged, "address "+listed(lost, ""), "the port has "+listed(append(there.addresses(), there.MAC), "")
	}
	if d.Kind != "" {
		v.add(d)
	}
	return nil
}

// lost returns the addresses of a connection point that its port does not have. Those that the stack does not give it, as
// packages may pass over addresses that are asked for, do not count. r is the port in the stack, nil when it is not the stack's.
func (c *cloud) lost(ctx context.Context, cp *sol003.VnfcCpInfo, p *port, r *resource) ([]string, error) {
	var ips, macs []string
	for _, info := range cp.CpProtocolInfo {
		eth := info.IpOverEthernet
		if eth == nil {
			continue
		}
		if eth.MacAddress != "" && !strings.EqualFold(eth.MacAddress, p.MAC) {
			macs = append(macs, eth.MacAddress)
		}
		for _, ip := range eth.IpAddresses {
			if ip.IsDynamic {
				continue
			}
			for _, a := range ip.Addresses {
				if !p.has(a) {
					ips = append(ips, a)
				}
			}
		}
	}
	if r == nil || len(ips)+len(macs) == 0 {
		return nil, nil
	}
	properties, err := c.properties(ctx, r)
	if err != nil {
		return nil, err
	}
	var out []string
	if properties["mac_address"] != nil {
		out = append(out, macs...)
	}
	if properties["fixed_ips"] != nil {
		out = append(out, ips...)
	}
	return out, nil
}

// links compares the networks.
func (v *comparison) links() {
	for n := range v.info.VnfVirtualLinkResourceInfo {
		vl := &v.info.VnfVirtualLinkResourceInfo[n]
		h := vl.NetworkResource
		if h.ResourceId == "" || v.networks[h.ResourceId] {
			continue
		}
		mend := lcm.HealOf()
		switch desc := vl.VnfVirtualLinkDescId; {
		case slices.ContainsFunc(v.info.ExtVirtualLinkInfo, func(e sol003.ExtVirtualLinkInfo) bool { return e.Id == desc }):
			mend = lcm.Mend{Operation: sol003.LcmOperationTypeChangeExtConn}
		case slices.ContainsFunc(v.info.ExtManagedVirtualLinkInfo, func(e sol003.ExtManagedVirtualLinkInfo) bool { return e.VnfVirtualLinkDescId == desc }):
			mend = lcm.Mend{First: "terminate and instantiate the VNF with another network for the externally managed virtual link"}
		}
		v.add(lcm.Difference{
			Kind: lcm.DifferenceMissing, Part: lcm.PartLink, ID: vl.Id, Name: vl.VnfVirtualLinkDescId, Resource: &h,
			Recorded: "network " + h.ResourceId, Found: "no such network", Mend: mend,
		})
	}
}

// strangers adds the VNFCs that the stack has and the record has not: somebody else has scaled a group out.
func (v *comparison) strangers(in *lcm.Inspection, list []resource) {
	for n := range list {
		r := &list[n]
		if r.Type != serverType || r.ID == "" || v.records.servers[r.ID] || strings.HasPrefix(r.Status, "DELETE_") {
			continue
		}
		if _, ok := in.Flavour.VDU(r.Name); !ok {
			continue // no VNFC: the template has it for itself
		}
		v.add(lcm.Difference{
			Kind: lcm.DifferenceUnrecorded, Part: lcm.PartVNFC, Name: r.Name, Found: "server " + r.ID, Mend: lcm.HealOf(),
			Resource: &sol003.ResourceHandle{VimConnectionId: v.vim, ResourceId: r.ID, VimLevelResourceType: r.Type},
		})
	}
}
