package lcm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// addVnfcs lays out more VNFCs in an instance, as many of each VDU as counts says, with link ports on the links that are
// there. It returns the ids of the new VnfcResourceInfos.
func addVnfcs(info *sol003.InstantiatedVnfInfo, f *vnfd.Flavour, req *sol003.InstantiateVnfRequest, counts map[string]int, newID func() string) []string {
	l := layout{flavour: f, req: req, newID: newID, info: info, fresh: len(info.VnfcResourceInfo)}
	for _, vdu := range f.VDUs {
		for range counts[vdu.Name] {
			l.vnfc(&vdu)
		}
	}
	for n := range info.VnfVirtualLinkResourceInfo {
		res := &info.VnfVirtualLinkResourceInfo[n]
		for _, cp := range f.CPs {
			if _, outside := l.extCp(cp.Name); cp.VirtualLink == res.VnfVirtualLinkDescId && !outside {
				l.ports(res, cp.Name, "")
			}
		}
		for _, ext := range req.ExtVirtualLinks {
			if ext.Id != res.VnfVirtualLinkDescId {
				continue
			}
			for _, cp := range ext.ExtCps { // a given port is the first member's
				l.ports(res, cp.CpdId, "")
			}
		}
	}
	shareManagedPorts(info)
	var ids []string
	for _, vnfc := range info.VnfcResourceInfo[l.fresh:] {
		ids = append(ids, vnfc.Id)
	}
	return ids
}

// shareManagedPorts gives externally managed links the ports of the virtual links that they are.
func shareManagedPorts(info *sol003.InstantiatedVnfInfo) {
	for n := range info.ExtManagedVirtualLinkInfo {
		managed := &info.ExtManagedVirtualLinkInfo[n]
		for _, vl := range info.VnfVirtualLinkResourceInfo {
			if vl.VnfVirtualLinkDescId == managed.VnfVirtualLinkDescId {
				managed.VnfLinkPorts = slices.Clone(vl.VnfLinkPorts)
			}
		}
	}
}

// manageLink has a virtual link be one that somebody else manages.
func manageLink(info *sol003.InstantiatedVnfInfo, m sol003.ExtManagedVirtualLinkData) {
	desc := managedDesc(m)
	network := managedNetwork(m)
	for n := range info.VnfVirtualLinkResourceInfo {
		if vl := &info.VnfVirtualLinkResourceInfo[n]; vl.VnfVirtualLinkDescId == desc {
			vl.NetworkResource = network
		}
	}
	info.ExtManagedVirtualLinkInfo = slices.DeleteFunc(info.ExtManagedVirtualLinkInfo,
		func(was sol003.ExtManagedVirtualLinkInfo) bool { return was.VnfVirtualLinkDescId == desc })
	info.ExtManagedVirtualLinkInfo = append(info.ExtManagedVirtualLinkInfo,
		sol003.ExtManagedVirtualLinkInfo{Id: m.Id, VnfVirtualLinkDescId: desc, NetworkResource: network})
	shareManagedPorts(info)
}

// dropVnfcs takes VNFCs out of an instance, with their storages and link ports.
func dropVnfcs(info *sol003.InstantiatedVnfInfo, ids []string) {
	gone, ports, storages := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, vnfc := range info.VnfcResourceInfo {
		if !slices.Contains(ids, vnfc.Id) {
			continue
		}
		gone[vnfc.Id] = true
		for _, s := range vnfc.StorageResourceIds {
			storages[s] = true
		}
		for _, cp := range vnfc.VnfcCpInfo {
			ports[cp.VnfLinkPortId] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	info.VnfcResourceInfo = slices.DeleteFunc(info.VnfcResourceInfo, func(v sol003.VnfcResourceInfo) bool { return gone[v.Id] })
	info.VirtualStorageResourceInfo = slices.DeleteFunc(info.VirtualStorageResourceInfo, func(s sol003.VirtualStorageResourceInfo) bool { return storages[s.Id] })
	for n := range info.VnfVirtualLinkResourceInfo {
		vl := &info.VnfVirtualLinkResourceInfo[n]
		vl.VnfLinkPorts = slices.DeleteFunc(vl.VnfLinkPorts, func(p sol003.VnfLinkPortInfo) bool { return ports[p.Id] })
	}
	shareManagedPorts(info)
	l := layout{info: info}
	for n := range info.ExtCpInfo {
		if cp := &info.ExtCpInfo[n]; gone[cp.AssociatedVnfcCpId] {
			cp.AssociatedVnfcCpId = l.vnfcWith(cp.CpdId)
		}
	}
}

// alignVnfcInfo makes vnfcInfo have an entry for every VNFC: those there stay with the VNFCs of their VDU, in order.
func alignVnfcInfo(info *sol003.InstantiatedVnfInfo, newID func() string) {
	had := map[string][]sol003.VnfcInfo{}
	for _, v := range info.VnfcInfo {
		had[v.VduId] = append(had[v.VduId], v)
	}
	info.VnfcInfo = make([]sol003.VnfcInfo, 0, len(info.VnfcResourceInfo))
	for _, vnfc := range info.VnfcResourceInfo {
		if of := had[vnfc.VduId]; len(of) > 0 {
			info.VnfcInfo, had[vnfc.VduId] = append(info.VnfcInfo, of[0]), of[1:]
			continue
		}
		info.VnfcInfo = append(info.VnfcInfo, sol003.VnfcInfo{Id: newID(), VduId: vnfc.VduId, VnfcState: info.VnfState})
	}
}

// mergeExtLinks returns the external links of an instance after a change: a connection point that the change names goes
// to where the change has it, and links that lose all of theirs go.
func mergeExtLinks(before, change []sol003.ExtVirtualLinkData) []sol003.ExtVirtualLinkData {
	moved := map[string]bool{}
	for _, ext := range change {
		for _, cp := range ext.ExtCps {
			moved[cp.CpdId] = true
		}
	}
	var out []sol003.ExtVirtualLinkData
	for _, ext := range before {
		ext.ExtCps = slices.DeleteFunc(slices.Clone(ext.ExtCps), func(cp sol003.VnfExtCpData) bool { return moved[cp.CpdId] })
		if n := slices.IndexFunc(change, func(c sol003.ExtVirtualLinkData) bool { return c.Id == ext.Id }); n >= 0 {
			c := change[n]
			c.ExtCps = append(ext.ExtCps, c.ExtCps...)
			if len(c.ExtLinkPorts) == 0 {
				c.ExtLinkPorts = ext.ExtLinkPorts
			}
			out = append(out, c)
			continue
		}
		if len(ext.ExtCps) > 0 {
			out = append(out, ext)
		}
	}
	for _, c := range change {
		if !slices.ContainsFunc(before, func(b sol003.ExtVirtualLinkData) bool { return b.Id == c.Id }) {
			out = append(out, c)
		}
	}
	return out
}

// relink lays the external connectivity of an instance out anew by its request; what stays keeps its ids and its ports'
// resources until the driver has looked.
func relink(info *sol003.InstantiatedVnfInfo, f *vnfd.Flavour, req *sol003.InstantiateVnfRequest, newID func() string) {
	own := map[string]bool{}
	for _, vl := range f.VirtualLinks {
		own[vl.Name] = true
	}
	links, ports, cps := map[string]string{}, map[string]sol003.VnfLinkPortInfo{}, map[string]string{}
	l := layout{flavour: f, req: req, newID: newID, info: info}
	outside := map[string]bool{} // the connection points that the request connects outside
	for _, vnfc := range info.VnfcResourceInfo {
		for _, cp := range vnfc.VnfcCpInfo {
			_, outside[cp.Id] = l.extCp(cp.CpdId)
		}
	}
	kept := info.VnfVirtualLinkResourceInfo[:0:0]
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		if own[vl.VnfVirtualLinkDescId] {
			vl.VnfLinkPorts = slices.DeleteFunc(slices.Clone(vl.VnfLinkPorts), func(p sol003.VnfLinkPortInfo) bool {
				if outside[p.CpInstanceId] {
					ports[p.CpInstanceId] = p
				}
				return outside[p.CpInstanceId]
			})
			kept = append(kept, vl)
			continue
		}
		links[vl.VnfVirtualLinkDescId] = vl.Id
		for _, p := range vl.VnfLinkPorts {
			ports[p.CpInstanceId] = p
		}
	}
	for _, cp := range info.ExtCpInfo {
		cps[cp.CpdId] = cp.Id
	}
	info.VnfVirtualLinkResourceInfo, info.ExtCpInfo, info.ExtVirtualLinkInfo = kept, []sol003.VnfExtCpInfo{}, nil

	for n := range info.VnfcResourceInfo {
		for m := range info.VnfcResourceInfo[n].VnfcCpInfo {
			cp := &info.VnfcResourceInfo[n].VnfcCpInfo[m]
			if ext, ok := l.extCp(cp.CpdId); ok {
				cp.CpProtocolInfo, cp.VnfExtCpId = protocolInfo(ext), linkPortOf(ext)
			}
		}
	}
	for _, ext := range req.ExtVirtualLinks {
		res := sol003.VnfVirtualLinkResourceInfo{Id: links[ext.Id], VnfVirtualLinkDescId: ext.Id, NetworkResource: externalNetwork(ext)}
		if res.Id == "" {
			res.Id = newID()
		}
		for _, cp := range ext.ExtCps {
			l.ports(&res, cp.CpdId, linkPortOf(cp))
		}
		for p := range res.VnfLinkPorts {
			port := &res.VnfLinkPorts[p]
			if old, ok := ports[port.CpInstanceId]; ok {
				l.renamePort(port, old.Id)
				if port.ResourceHandle.ResourceId == "" {
					port.ResourceHandle = old.ResourceHandle
				}
			}
		}
		info.VnfVirtualLinkResourceInfo = append(info.VnfVirtualLinkResourceInfo, res)
	}
	l.external()
	for n := range info.ExtCpInfo {
		cp := &info.ExtCpInfo[n]
		old, ok := cps[cp.CpdId]
		if !ok {
			continue
		}
		for _, vl := range info.ExtVirtualLinkInfo {
			for p := range vl.ExtLinkPorts {
				if vl.ExtLinkPorts[p].CpInstanceId == cp.Id {
					vl.ExtLinkPorts[p].CpInstanceId = old
				}
			}
		}
		cp.Id = old
	}
}

// renamePort gives a link port the id that it had, and its connection point too.
func (l *layout) renamePort(port *sol003.VnfLinkPortInfo, id string) {
	for n := range l.info.VnfcResourceInfo {
		cps := l.info.VnfcResourceInfo[n].VnfcCpInfo
		for m := range cps {
			if cps[m].VnfLinkPortId == port.Id {
				cps[m].VnfLinkPortId = id
			}
		}
	}
	port.Id = id
}

// keepIDs gives what is laid out anew the ids of what was there of the same kind, in order: VNFCs and their connection
// points, storages, links, external connection points.
func keepIDs(info, before *sol003.InstantiatedVnfInfo) *sol003.InstantiatedVnfInfo {
	ids := map[string]string{}
	pairUp(ids, info.VnfcResourceInfo, before.VnfcResourceInfo, func(v sol003.VnfcResourceInfo) (string, string) { return v.VduId, v.Id },
		func(now, was sol003.VnfcResourceInfo) { pairPoints(ids, now, was) })
	pairUp(ids, info.VirtualStorageResourceInfo, before.VirtualStorageResourceInfo,
		func(s sol003.VirtualStorageResourceInfo) (string, string) { return s.VirtualStorageDescId, s.Id }, nil)
	pairUp(ids, info.VnfVirtualLinkResourceInfo, before.VnfVirtualLinkResourceInfo,
		func(v sol003.VnfVirtualLinkResourceInfo) (string, string) { return v.VnfVirtualLinkDescId, v.Id }, nil)
	pairUp(ids, info.ExtCpInfo, before.ExtCpInfo, func(c sol003.VnfExtCpInfo) (string, string) { return c.CpdId, c.Id }, nil)
	rename(info, ids)
	return info
}

// pairPoints notes the ids of a VNFC's connection points and of their link ports.
func pairPoints(ids map[string]string, now, was sol003.VnfcResourceInfo) {
	pairUp(ids, now.VnfcCpInfo, was.VnfcCpInfo, func(c sol003.VnfcCpInfo) (string, string) { return c.CpdId, c.Id }, nil)
	pairUp(ids, now.VnfcCpInfo, was.VnfcCpInfo, func(c sol003.VnfcCpInfo) (string, string) { return c.CpdId, c.VnfLinkPortId }, nil)
}

// followServers gives the VNFCs of a VDU that are in a server of before the ids that the VNFC in it had: which of them stay
// when there are to be fewer is for the VIM to say.
func followServers(info, before *sol003.InstantiatedVnfInfo) {
	in := map[string]sol003.VnfcResourceInfo{}
	for _, v := range before.VnfcResourceInfo {
		if id := v.ComputeResource.ResourceId; id != "" {
			in[id] = v
		}
	}
	there := map[string]sol003.VnfcResourceInfo{}
	for _, v := range info.VnfcResourceInfo {
		there[v.Id] = v
	}
	descs := map[string]string{}
	for _, of := range [][]sol003.VirtualStorageResourceInfo{before.VirtualStorageResourceInfo, info.VirtualStorageResourceInfo} {
		for _, s := range of {
			descs[s.Id] = s.VirtualStorageDescId
		}
	}
	ids := map[string]string{}
	pair := func(now, was sol003.VnfcResourceInfo) {
		ids[now.Id] = was.Id
		pairPoints(ids, now, was)
		pairUp(ids, now.StorageResourceIds, was.StorageResourceIds, func(id string) (string, string) { return descs[id], id }, nil)
	}
	taken := map[string]bool{} // the ids that go to another VNFC
	var freed []sol003.VnfcResourceInfo
	for _, now := range info.VnfcResourceInfo {
		if was, ok := in[now.ComputeResource.ResourceId]; ok && was.VduId == now.VduId && was.Id != now.Id {
			pair(now, was)
			taken[was.Id] = true
			freed = append(freed, now)
		}
	}
	// Who had such an id and is in no server of before has one that has become free.
	freed = slices.DeleteFunc(freed, func(v sol003.VnfcResourceInfo) bool { return taken[v.Id] })
	for _, id := range slices.Sorted(maps.Keys(taken)) {
		now, ok := there[id]
		if _, moves := ids[id]; !ok || moves {
			continue
		}
		if n := slices.IndexFunc(freed, func(f sol003.VnfcResourceInfo) bool { return f.VduId == now.VduId }); n >= 0 {
			pair(now, freed[n])
			freed = slices.Delete(freed, n, n+1)
		}
	}
	rename(info, ids)
}

// rename gives what ids names another id, wherever the instance speaks of it.
func rename(info *sol003.InstantiatedVnfInfo, ids map[string]string) {
	set := func(id *string) {
		if was, ok := ids[*id]; ok {
			*id = was
		}
	}
	for n := range info.VnfcResourceInfo {
		v := &info.VnfcResourceInfo[n]
		set(&v.Id)
		for s := range v.StorageResourceIds {
			set(&v.StorageResourceIds[s])
		}
		for c := range v.VnfcCpInfo {
			set(&v.VnfcCpInfo[c].Id)
			set(&v.VnfcCpInfo[c].VnfLinkPortId)
		}
	}
	for n := range info.VirtualStorageResourceInfo {
		set(&info.VirtualStorageResourceInfo[n].Id)
	}
	for n := range info.VnfVirtualLinkResourceInfo {
		vl := &info.VnfVirtualLinkResourceInfo[n]
		set(&vl.Id)
		for p := range vl.VnfLinkPorts {
			set(&vl.VnfLinkPorts[p].Id)
			set(&vl.VnfLinkPorts[p].CpInstanceId)
		}
	}
	shareManagedPorts(info)
	for n := range info.ExtCpInfo {
		set(&info.ExtCpInfo[n].Id)
		set(&info.ExtCpInfo[n].AssociatedVnfcCpId)
	}
	for n := range info.ExtVirtualLinkInfo {
		for p := range info.ExtVirtualLinkInfo[n].ExtLinkPorts {
			set(&info.ExtVirtualLinkInfo[n].ExtLinkPorts[p].CpInstanceId)
		}
	}
}

// pairUp notes for the id of every item the id of the item before it of the same kind at the same place.
func pairUp[T any](ids map[string]string, now, was []T, key func(T) (kind, id string), also func(now, was T)) {
	old := map[string][]T{}
	for _, w := range was {
		kind, _ := key(w)
		old[kind] = append(old[kind], w)
	}
	for _, n := range now {
		kind, id := key(n)
		of := old[kind]
		if len(of) == 0 {
			continue
		}
		if _, before := key(of[0]); id != "" && before != "" {
			ids[id] = before
		}
		if also != nil {
			also(n, of[0])
		}
		old[kind] = of[1:]
	}
}

// sameLayout tells whether two instances consist of the same, whatever resources that is made of.
func sameLayout(a, b *sol003.InstantiatedVnfInfo) bool {
	return a != nil && b != nil && bytes.Equal(outline(a), outline(b))
}

// outline encodes an instance without its resources and what follows from them.
func outline(info *sol003.InstantiatedVnfInfo) []byte {
	i := (&Instance{Info: info}).Clone().Info
	i.VnfcInfo, i.VnfState = nil, ""
	for n := range i.VnfcResourceInfo {
		v := &i.VnfcResourceInfo[n]
		v.ComputeResource, v.Metadata = sol003.ResourceHandle{}, nil
	}
	for n := range i.VirtualStorageResourceInfo {
		i.VirtualStorageResourceInfo[n].StorageResource = sol003.ResourceHandle{}
	}
	links := func(ports []sol003.VnfLinkPortInfo) {
		for p := range ports {
			ports[p].ResourceHandle = sol003.ResourceHandle{}
		}
	}
	for n := range i.VnfVirtualLinkResourceInfo {
		i.VnfVirtualLinkResourceInfo[n].NetworkResource = sol003.ResourceHandle{}
		links(i.VnfVirtualLinkResourceInfo[n].VnfLinkPorts)
	}
	for n := range i.ExtManagedVirtualLinkInfo {
		i.ExtManagedVirtualLinkInfo[n].NetworkResource = sol003.ResourceHandle{}
		links(i.ExtManagedVirtualLinkInfo[n].VnfLinkPorts)
	}
	raw, err := json.Marshal(i)
	if err != nil {
		panic("lcm: an InstantiatedVnfInfo always marshals: " + err.Error())
	}
	return raw
}
