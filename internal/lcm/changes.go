package lcm

import "github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"

// ResourceChanges tells what an operation changed in the VIM, from what the instance consisted of before and consists
// of after it (SOL003 v2.6.1 §5.5.2.13): resources only after are ADDED, only before REMOVED, with another resource id
// MODIFIED. Resources without an id in the VIM do not count. It is nil when nothing changed.
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
			out.AffectedVnfcs = append(out.AffectedVnfcs, a)
		})
	diff(before.VnfVirtualLinkResourceInfo, after.VnfVirtualLinkResourceInfo,
		func(v sol003.VnfVirtualLinkResourceInfo) (string, string) { return v.Id, v.NetworkResource.ResourceId },
		func(v sol003.VnfVirtualLinkResourceInfo, c sol003.ChangeType) {
			out.AffectedVirtualLinks = append(out.AffectedVirtualLinks, sol003.AffectedVirtualLink{
				Id: v.Id, VnfVirtualLinkDescId: v.VnfVirtualLinkDescId, VirtualLinkDescId: v.VnfVirtualLinkDescId,
				ChangeType: c, NetworkResource: v.NetworkResource,
			})
		})
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
