package openstack_test

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// belongings are the ids of what the services themselves say a target's project has.
type belongings struct {
	servers, ports, volumes, networks map[string]doc
}

// seen reads what is in the project.
func (c *target) seen(t *testing.T) belongings {
	t.Helper()
	byID := func(l []doc) map[string]doc {
		out := map[string]doc{}
		for _, d := range l {
			out[text(d, "id")] = d
		}
		return out
	}
	return belongings{
		servers:  byID(list(c.nova.get(t, "servers/detail", "X-OpenStack-Nova-API-Version", "2.1").doc, "servers")),
		ports:    byID(list(c.neutron.get(t, "ports?project_id="+c.project).doc, "ports")),
		volumes:  byID(list(c.cinder.get(t, "volumes/detail").doc, "volumes")),
		networks: byID(list(c.neutron.get(t, "networks").doc, "networks")),
	}
}

// check holds what the instance says of itself against its shape, and against what the target's services say: every handle
// leads to what it is to lead to, and there is nothing else.
func (v *life) check(t *testing.T, after string) {
	t.Helper()
	i, err := v.api.Instance(v.ctx, v.id)
	must(t, err)
	v.now = i
	if i.InstantiationState != sol003.InstantiationStateInstantiated || i.InstantiatedVnfInfo == nil {
		t.Fatalf("after %s the instance is %s", after, i.InstantiationState)
	}
	t.Run("after "+after, func(t *testing.T) {
		there := v.seen(t)
		v.checkStack(t)
		v.checkVnfcs(t, there)
		v.checkLinks(t, there)
		v.checkExternal(t)
		v.checkHosts(t, there)
		v.checkScale(t)
	})
}

// checkStack checks that the instance has one stack, which is complete.
func (v *life) checkStack(t *testing.T) {
	t.Helper()
	// An administrator is shown those of other projects too.
	l := slices.DeleteFunc(list(v.heat.get(t, "stacks").doc, "stacks"), func(s doc) bool {
		links := list(s, "links")
		return len(links) == 0 || !strings.Contains(text(links[0], "href"), v.target.project)
	})
	if len(l) != 1 || text(l[0], "stack_name") != "vnflcm_"+v.id || !strings.HasSuffix(text(l[0], "stack_status"), "_COMPLETE") {
		t.Errorf("the project's stacks are %v", l)
	}
}

// handle checks that a handle is of a type and of our VIM, and leads to something; it returns that, and takes it away.
func (v *life) handle(t *testing.T, what string, h sol003.ResourceHandle, kind string, there map[string]doc) doc {
	t.Helper()
	d := there[h.ResourceId]
	if d == nil || h.VimConnectionId != v.vim || h.VimLevelResourceType != kind {
		t.Errorf("%s: the handle %+v leads to no %s of its own in VIM %s", what, h, kind, v.vim)
		return nil
	}
	delete(there, h.ResourceId)
	return d
}

// checkVnfcs checks servers, their ports and their volumes.
func (v *life) checkVnfcs(t *testing.T, there belongings) {
	t.Helper()
	info := v.now.InstantiatedVnfInfo
	links := map[string]sol003.VnfLinkPortInfo{}
	networkOf := map[string]string{}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		for _, p := range vl.VnfLinkPorts {
			links[p.Id], networkOf[p.Id] = p, vl.NetworkResource.ResourceId
		}
	}
	storages := map[string]sol003.VirtualStorageResourceInfo{}
	for _, s := range info.VirtualStorageResourceInfo {
		storages[s.Id] = s
	}
	counts := map[string]int{}
	left := belongings{servers: maps.Clone(there.servers), ports: maps.Clone(there.ports), volumes: maps.Clone(there.volumes)}
	status := "ACTIVE"
	if v.shape.stopped {
		status = "SHUTOFF"
	}
	for _, c := range info.VnfcResourceInfo {
		counts[c.VduId]++
		what := "VNFC " + c.Id + " of " + c.VduId
		id := c.ComputeResource.ResourceId
		server := v.handle(t, what, c.ComputeResource, "OS::Nova::Server", left.servers)
		if text(server, "status") != status {
			t.Errorf("%s: its server is %s: %s", what, text(server, "status"), text(server, "fault", "message"))
		}
		if want := v.shape.images[c.VduId]; want != "" {
			v.checkImage(t, what, server, want)
		}
		var cps []string
		for _, cp := range c.VnfcCpInfo {
			cps = append(cps, cp.CpdId)
			p, ok := links[cp.VnfLinkPortId]
			if !ok || p.CpInstanceId != cp.Id {
				t.Errorf("%s: CP %s and link port %q do not lead to one another", what, cp.CpdId, cp.VnfLinkPortId)
				continue
			}
			delete(links, cp.VnfLinkPortId)
			port := v.handle(t, what+", CP "+cp.CpdId, p.ResourceHandle, "OS::Neutron::Port", left.ports)
			if text(port, "device_id") != id || text(port, "network_id") != networkOf[p.Id] {
				t.Errorf("%s: the port of %s is on server %q in network %q, not on %s in %s",
					what, cp.CpdId, text(port, "device_id"), text(port, "network_id"), id, networkOf[p.Id])
			}
			v.checkAddress(t, what, cp.CpdId, port)
		}
		if diff := cmp.Diff(v.shape.cps[c.VduId], cps, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: its CPs (- want, + got):\n%s", what, diff)
		}
		var names, volumes []string
		for _, s := range c.StorageResourceIds {
			names = append(names, storages[s].VirtualStorageDescId)
			volumes = append(volumes, storages[s].StorageResource.ResourceId)
			volume := v.handle(t, what+", storage "+storages[s].VirtualStorageDescId, storages[s].StorageResource,
				"OS::Cinder::Volume", left.volumes)
			at := list(volume, "attachments")
			if text(volume, "status") != "in-use" || len(at) != 1 || text(at[0], "server_id") != id {
				t.Errorf("%s: volume %s is %s, attached to %v", what, storages[s].StorageResource.ResourceId, text(volume, "status"), at)
			}
		}
		if diff := cmp.Diff(v.shape.volumes[c.VduId], names, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: its storages (- want, + got):\n%s", what, diff)
		}
		var attached []string
		for _, a := range list(server, "os-extended-volumes:volumes_attached") {
			attached = append(attached, text(a, "id"))
		}
		slices.Sort(volumes)
		slices.Sort(attached)
		if diff := cmp.Diff(volumes, attached, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: volumes that Nova has attached (- recorded, + attached):\n%s", what, diff)
		}
	}
	if diff := cmp.Diff(v.shape.vnfcs, counts); diff != "" {
		t.Errorf("VNFCs by VDU (- want, + got):\n%s", diff)
	}
	for _, p := range links {
		t.Errorf("link port %s (%s) is of no VNFC", p.Id, p.ResourceHandle.ResourceId)
	}
	for id, p := range left.ports { // ports of the network's own, and addresses that no server has
		if text(p, "device_owner") == "" || strings.HasPrefix(text(p, "device_owner"), "network:") {
			delete(left.ports, id)
		}
	}
	for kind, rest := range map[string]map[string]doc{"servers": left.servers, "ports": left.ports, "volumes": left.volumes} {
		if len(rest) > 0 {
			t.Errorf("the project has %s that the instance does not name: %v", kind, slices.Collect(maps.Values(rest)))
		}
	}
	if len(info.VirtualStorageResourceInfo) != len(there.volumes) {
		t.Errorf("there are %d virtualStorageResourceInfo, and %d volumes", len(info.VirtualStorageResourceInfo), len(there.volumes))
	}
	states := map[string]int{}
	for _, c := range info.VnfcInfo {
		states[c.VduId]++
		want := sol003.VnfOperationalStateStarted
		if v.shape.stopped {
			want = sol003.VnfOperationalStateStopped
		}
		if c.VnfcState != want {
			t.Errorf("vnfcInfo %s is %s", c.Id, c.VnfcState)
		}
	}
	if diff := cmp.Diff(v.shape.vnfcs, states); diff != "" {
		t.Errorf("vnfcInfo by VDU (- want, + got):\n%s", diff)
	}
}

// checkImage checks the image of a server, or of the volume that it has booted from, by name.
func (v *life) checkImage(t *testing.T, what string, server doc, want string) {
	t.Helper()
	id := text(server, "image", "id")
	if id == "" {
		for _, a := range list(server, "os-extended-volumes:volumes_attached") {
			volume := v.cinder.get(t, "volumes/"+text(a, "id"))
			if id = text(volume.doc, "volume", "volume_image_metadata", "image_id"); id != "" {
				break
			}
		}
	}
	r := v.glance.do(t, http.MethodGet, "images/"+id, nil)
	if r.status != http.StatusOK || text(r.doc, "name") != want {
		t.Errorf("%s: its image is %s (%q), want %q", what, id, text(r.doc, "name"), want)
	}
}

// checkAddress checks the address that a CP is to have.
func (v *life) checkAddress(t *testing.T, what, cpd string, port doc) {
	t.Helper()
	ips := list(port, "fixed_ips")
	want := v.shape.addresses[cpd]
	if want == "" {
		if len(ips) == 0 && port != nil {
			t.Errorf("%s: CP %s has no address", what, cpd)
		}
		return
	}
	if !slices.ContainsFunc(ips, func(ip doc) bool { return text(ip, "ip_address") == want }) {
		t.Errorf("%s: CP %s has the addresses %v, want %s", what, cpd, ips, want)
	}
}

// checkLinks checks the virtual links' networks.
func (v *life) checkLinks(t *testing.T, there belongings) {
	t.Helper()
	info := v.now.InstantiatedVnfInfo
	var names []string
	own := map[string]doc{}
	for id, n := range there.networks {
		if text(n, "project_id") == v.target.project && n["shared"] != true && n["router:external"] != true {
			own[id] = n
		}
	}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		name := vl.VnfVirtualLinkDescId
		names = append(names, name)
		id := vl.NetworkResource.ResourceId
		switch {
		case v.shape.external[name] != "":
			same(t, "the network of external link "+name, id, v.shape.external[name])
		case v.shape.managed[name] != "":
			same(t, "the network of externally managed link "+name, id, v.shape.managed[name])
			delete(own, id)
		default:
			v.handle(t, "virtual link "+name, vl.NetworkResource, "OS::Neutron::Net", own)
		}
	}
	want := slices.AppendSeq(slices.Clone(v.shape.links), maps.Keys(v.shape.external))
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(names))); diff != "" {
		t.Errorf("vnfVirtualLinkResourceInfo (- want, + got):\n%s", diff)
	}
	if len(own) > 0 {
		t.Errorf("the project has networks that the instance does not name: %v", slices.Collect(maps.Values(own)))
	}
	managed := map[string]string{}
	for _, m := range info.ExtManagedVirtualLinkInfo {
		managed[m.VnfVirtualLinkDescId] = m.NetworkResource.ResourceId
		for _, p := range m.VnfLinkPorts {
			if there.ports[p.ResourceHandle.ResourceId] == nil {
				t.Errorf("port %s of externally managed link %s is not there: %q", p.Id, m.VnfVirtualLinkDescId, p.ResourceHandle.ResourceId)
			}
		}
	}
	if diff := cmp.Diff(v.shape.managed, managed, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("extManagedVirtualLinkInfo (- want, + got):\n%s", diff)
	}
}

// checkExternal checks the external CPs and links.
func (v *life) checkExternal(t *testing.T) {
	t.Helper()
	info := v.now.InstantiatedVnfInfo
	var want, got []string
	for _, cps := range v.shape.externalCPs {
		want = append(want, cps...)
	}
	for _, cp := range info.ExtCpInfo {
		got = append(got, cp.CpdId)
		if !slices.ContainsFunc(info.VnfcResourceInfo, func(c sol003.VnfcResourceInfo) bool {
			has := func(i sol003.VnfcCpInfo) bool { return i.CpdId == cp.CpdId }
			return c.Id == cp.AssociatedVnfcCpId && slices.ContainsFunc(c.VnfcCpInfo, has)
		}) {
			t.Errorf("external CP %s is associated with no VNFC that has it: %q", cp.CpdId, cp.AssociatedVnfcCpId)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("extCpInfo (- want, + got):\n%s", diff)
	}
	networks := map[string]string{}
	for _, vl := range info.ExtVirtualLinkInfo {
		networks[vl.Id] = vl.ResourceHandle.ResourceId
	}
	if diff := cmp.Diff(v.shape.external, networks, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("extVirtualLinkInfo (- want, + got):\n%s", diff)
	}
	for cpd, address := range v.shape.addresses {
		if _, err := netip.ParseAddr(address); err != nil {
			t.Errorf("the address %q of %s: %v", address, cpd, err)
		}
	}
}

// checkHosts checks that servers are on hosts of their own, or on one, as the VNFD's rules have it.
func (v *life) checkHosts(t *testing.T, there belongings) {
	t.Helper()
	hosts := func(vdu string) map[string]int {
		out := map[string]int{}
		for _, id := range v.servers(vdu) {
			out[text(there.servers[id], "OS-EXT-SRV-ATTR:host")]++
		}
		return out
	}
	for _, vdu := range v.shape.spread {
		for host, n := range hosts(vdu) {
			if n > 1 || host == "" {
				t.Errorf("host %q has %d servers of VDU %s, which are to be apart", host, n, vdu)
			}
		}
	}
	together := map[string]int{}
	for _, vdu := range v.shape.together {
		maps.Copy(together, hosts(vdu))
	}
	if len(together) > 1 || together[""] > 0 {
		t.Errorf("the servers of VDUs %v are to be together, and are on hosts %v", v.shape.together, together)
	}
}

// checkScale checks the scale levels.
func (v *life) checkScale(t *testing.T) {
	t.Helper()
	levels := map[string]int{}
	for _, s := range v.now.InstantiatedVnfInfo.ScaleStatus {
		levels[s.AspectId] = s.ScaleLevel
	}
	if diff := cmp.Diff(v.shape.levels, levels, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("scaleStatus (- want, + got):\n%s", diff)
	}
}

// portsOf are the ports of every VNFC by CP.
func (v *life) portsOf() map[string]map[string]string {
	handles := map[string]string{}
	for _, vl := range v.now.InstantiatedVnfInfo.VnfVirtualLinkResourceInfo {
		for _, p := range vl.VnfLinkPorts {
			handles[p.Id] = p.ResourceHandle.ResourceId
		}
	}
	out := map[string]map[string]string{}
	for _, c := range v.now.InstantiatedVnfInfo.VnfcResourceInfo {
		out[c.Id] = map[string]string{}
		for _, cp := range c.VnfcCpInfo {
			out[c.Id][cp.CpdId] = handles[cp.VnfLinkPortId]
		}
	}
	return out
}

// volumesOf are the volumes of every VNFC.
func (v *life) volumesOf() map[string][]string {
	handles := map[string]string{}
	for _, s := range v.now.InstantiatedVnfInfo.VirtualStorageResourceInfo {
		handles[s.Id] = s.StorageResource.ResourceId
	}
	out := map[string][]string{}
	for _, c := range v.now.InstantiatedVnfInfo.VnfcResourceInfo {
		for _, id := range c.StorageResourceIds {
			out[c.Id] = append(out[c.Id], handles[id])
		}
	}
	return out
}

// checkGone checks that nothing of the instance is left: what the project has, and flavors and volume types, which belong to no
// project.
func (v *life) checkGone(t *testing.T) {
	t.Helper()
	var left []string
	v.eventually(t, "nothing is left of the instance", func() bool {
		left = slices.DeleteFunc(v.left(t), func(what string) bool { return slices.Contains(v.brought, what) })
		return len(left) == 0
	}, func() any { return left })
	for _, f := range list(v.adminNova.get(t, "flavors?is_public=None").doc, "flavors") {
		if strings.Contains(text(f, "name"), v.id) {
			t.Errorf("flavor %s is left", text(f, "name"))
		}
	}
}
