package lcm

import (
	"encoding/json"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// ResourceChanges tells what an operation changed in the VIM, from what the instance consisted of before and consists
// of after it (SOL003 v2.6.1 §5.5.2.13): resources only after are ADDED, only before REMOVED, with another resource id
// MODIFIED; links whose ports came or went LINK_PORT_ADDED, LINK_PORT_REMOVED. Resources without an id in the VIM do not
// count. It is nil when nothing changed.
func ResourceChanges(before, after *sol003.InstantiatedVnfInfo) *sol003.ResourceChanges {
	if before == nil {
		before = &sol003.InstantiatedVnfInfo{}
	}
	if after == nil {
		after = &sol003.InstantiatedVnfInfo{}
	}
	out := &sol003.ResourceChanges{}
	diff(before.VnfcResourceInfo, after.VnfcResourceInfo,
		func(v sol003.VnfcResourceInfo) (string, string) { return v.Id, v.ComputeResource.ResourceId },
		func(v sol003.VnfcResourceInfo, c sol003.ChangeType) {
			out.AffectedVnfcs = append(out.AffectedVnfcs, affectedVnfc(v, c))
		})
	report := func(v sol003.VnfVirtualLinkResourceInfo, c sol003.ChangeType) {
		out.AffectedVirtualLinks = append(out.AffectedVirtualLinks, sol003.AffectedVirtualLink{
			Id: v.Id, VnfVirtualLinkDescId: v.VnfVirtualLinkDescId, VirtualLinkDescId: v.VnfVirtualLinkDescId,
			ChangeType: c, NetworkResource: v.NetworkResource,
		})
	}
	diff(before.VnfVirtualLinkResourceInfo, after.VnfVirtualLinkResourceInfo,
		func(v sol003.VnfVirtualLinkResourceInfo) (string, string) { return v.Id, v.NetworkResource.ResourceId }, report)
	for _, now := range after.VnfVirtualLinkResourceInfo {
		n := slices.IndexFunc(before.VnfVirtualLinkResourceInfo, func(v sol003.VnfVirtualLinkResourceInfo) bool { return v.Id == now.Id })
		if n < 0 || before.VnfVirtualLinkResourceInfo[n].NetworkResource.ResourceId != now.NetworkResource.ResourceId {
			continue // reported already
		}
		came, went := portChanges(before.VnfVirtualLinkResourceInfo[n].VnfLinkPorts, now.VnfLinkPorts)
		if came {
			report(now, sol003.ChangeTypeLinkPortAdded)
		}
		if went {
			report(now, sol003.ChangeTypeLinkPortRemoved)
		}
	}
	diff(before.VirtualStorageResourceInfo, after.VirtualStorageResourceInfo,
		func(v sol003.VirtualStorageResourceInfo) (string, string) { return v.Id, v.StorageResource.ResourceId },
		func(v sol003.VirtualStorageResourceInfo, c sol003.ChangeType) {
			out.AffectedVirtualStorages = append(out.AffectedVirtualStorages, sol003.AffectedVirtualStorage{
				Id: v.Id, VirtualStorageDescId: v.VirtualStorageDescId, ChangeType: c, StorageResource: v.StorageResource,
			})
		})
	if out.AffectedVnfcs == nil && out.AffectedVirtualLinks == nil && out.AffectedVirtualStorages == nil {
		return nil
	}
	return out
}

func affectedVnfc(v sol003.VnfcResourceInfo, c sol003.ChangeType) sol003.AffectedVnfc {
	a := sol003.AffectedVnfc{Id: v.Id, VduId: v.VduId, ChangeType: c, ComputeResource: v.ComputeResource, Metadata: v.Metadata}
	for _, cp := range v.VnfcCpInfo {
		a.AffectedVnfcCpIds = append(a.AffectedVnfcCpIds, cp.Id)
	}
	switch c {
	case sol003.ChangeTypeAdded:
		a.AddedStorageResourceIds = v.StorageResourceIds
	case sol003.ChangeTypeRemoved:
		a.RemovedStorageResourceIds = v.StorageResourceIds
	default:
	}
	return a
}

// remade adds to changes, as MODIFIED, the VNFCs that have been made again: what a VIM makes again may have the id that it
// had, as a pod of a StatefulSet has its name.
func remade(changes *sol003.ResourceChanges, now *sol003.InstantiatedVnfInfo, ids []string) *sol003.ResourceChanges {
	if now == nil {
		return changes
	}
	for _, v := range now.VnfcResourceInfo {
		if !slices.Contains(ids, v.Id) || v.ComputeResource.ResourceId == "" {
			continue
		}
		if changes == nil {
			changes = &sol003.ResourceChanges{}
		}
		if !slices.ContainsFunc(changes.AffectedVnfcs, func(a sol003.AffectedVnfc) bool { return a.Id == v.Id }) {
			changes.AffectedVnfcs = append(changes.AffectedVnfcs, affectedVnfc(v, sol003.ChangeTypeModified))
		}
	}
	return changes
}

// portChanges tells whether a link has ports in the VIM that it did not have, and whether it has lost some.
func portChanges(before, after []sol003.VnfLinkPortInfo) (came, went bool) {
	lacks := func(in []sol003.VnfLinkPortInfo, id string) bool {
		return id != "" && !slices.ContainsFunc(in, func(p sol003.VnfLinkPortInfo) bool { return p.ResourceHandle.ResourceId == id })
	}
	for _, p := range after {
		came = came || lacks(before, p.ResourceHandle.ResourceId)
	}
	for _, p := range before {
		went = went || lacks(after, p.ResourceHandle.ResourceId)
	}
	return came, went
}

// changedLinks returns the external links of after that are not as they were before.
func changedLinks(before, after *sol003.InstantiatedVnfInfo) []sol003.ExtVirtualLinkInfo {
	var out []sol003.ExtVirtualLinkInfo
	cps := func(info *sol003.InstantiatedVnfInfo) map[string]sol003.VnfExtCpInfo {
		m := map[string]sol003.VnfExtCpInfo{}
		for _, cp := range info.ExtCpInfo {
			m[cp.Id] = cp
		}
		return m
	}
	// A link's connectivity is its own, its ports', and that of the connection points which the network's link has.
	whole := func(info *sol003.InstantiatedVnfInfo, link sol003.ExtVirtualLinkInfo) string {
		type port struct {
			Resource string
			Cp       sol003.VnfExtCpInfo
		}
		of := struct {
			Link  sol003.ExtVirtualLinkInfo
			Ports []port
			CPs   []sol003.VnfcCpInfo
		}{Link: link}
		known := cps(info)
		for _, p := range link.ExtLinkPorts {
			of.Ports = append(of.Ports, port{p.ResourceHandle.ResourceId, known[p.CpInstanceId]})
		}
		for _, vl := range info.VnfVirtualLinkResourceInfo {
			if vl.VnfVirtualLinkDescId != link.Id {
				continue
			}
			for _, p := range vl.VnfLinkPorts {
				of.Ports = append(of.Ports, port{Resource: p.ResourceHandle.ResourceId})
				for _, vnfc := range info.VnfcResourceInfo {
					for _, cp := range vnfc.VnfcCpInfo {
						if cp.Id == p.CpInstanceId {
							of.CPs = append(of.CPs, cp)
						}
					}
				}
			}
		}
		raw, err := json.Marshal(of)
		if err != nil {
			panic("lcm: external links always marshal: " + err.Error())
		}
		return string(raw)
	}
	was := map[string]string{}
	for _, link := range before.ExtVirtualLinkInfo {
		was[link.Id] = whole(before, link)
	}
	for _, link := range after.ExtVirtualLinkInfo {
		if whole(after, link) != was[link.Id] {
			out = append(out, link)
		}
	}
	return out
}

// diff reports, in the order of after and then of before, the items that came, went or have another resource.
func diff[T any](before, after []T, ids func(T) (id, resource string), report func(T, sol003.ChangeType)) {
	old := make(map[string]string, len(before))
	for _, v := range before {
		id, res := ids(v)
		old[id] = res
	}
	kept := make(map[string]bool, len(after))
	for _, v := range after {
		id, res := ids(v)
		was, existed := old[id]
		kept[id] = res != ""
		switch {
		case res == "":
		case !existed || was == "":
			report(v, sol003.ChangeTypeAdded)
		case was != res:
			report(v, sol003.ChangeTypeModified)
		}
	}
	for _, v := range before {
		if id, res := ids(v); res != "" && !kept[id] {
			report(v, sol003.ChangeTypeRemoved)
		}
	}
}
