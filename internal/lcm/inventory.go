package lcm

import (
	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// VIM-level resource types of a Heat-based VIM, as resource handles name them.
const (
	netType  = "OS::Neutron::Net"
	portType = "OS::Neutron::Port"
)

// NewInstantiatedInfo lays out what an instance will consist of before the VIM is touched (SOL003 v2.6.1 §5.5.2.2,
// instantiatedVnfInfo), at the request's instantiation level: see [NewInstantiatedInfoAt].
func NewInstantiatedInfo(f *vnfd.Flavour, req *sol003.InstantiateVnfRequest, newID func() string) (*sol003.InstantiatedVnfInfo, error) {
	return NewInstantiatedInfoAt(f, req, levelsOf(f, req.InstantiationLevelId), newID)
}

// levelsOf returns the scale level of each aspect at an instantiation level, "" being the default one.
func levelsOf(f *vnfd.Flavour, levelID string) map[string]int {
	levels := map[string]int{}
	if level, ok := f.Level(levelID); ok {
		for _, at := range level.ScaleInfo {
			levels[at.Aspect] = at.Level
		}
	}
	return levels
}

// NewInstantiatedInfoAt lays out an instance at scale levels: a VnfcResourceInfo for every instance of every VDU of the
// flavour, its connection points and storages, the virtual links with their ports, and what the request says about
// external connectivity. The ids come from newID and last; the drivers fill in the resource handles.
func NewInstantiatedInfoAt(f *vnfd.Flavour, req *sol003.InstantiateVnfRequest, levels map[string]int, newID func() string) (*sol003.InstantiatedVnfInfo, error) {
	l := layout{flavour: f, req: req, newID: newID, info: &sol003.InstantiatedVnfInfo{
		FlavourId: f.ID, InstantiationLevelId: req.InstantiationLevelId, VnfState: sol003.VnfOperationalStateStarted,
		ExtCpInfo: []sol003.VnfExtCpInfo{}, AdditionalParams: req.AdditionalParams,
	}}
	for _, vdu := range f.VDUs {
		count, err := f.InstanceCountAt(vdu.Name, levels)
		if err != nil {
			return nil, Errorf(KindInvalid, "%w", err)
		}
		for range count {
			l.vnfc(&vdu)
		}
	}
	l.virtualLinks()
	l.external()
	for _, aspect := range f.Aspects {
		l.info.ScaleStatus = append(l.info.ScaleStatus, sol003.ScaleInfo{AspectId: aspect.ID, ScaleLevel: levels[aspect.ID]})
	}
	return l.info, nil
}

// layout lays out an InstantiatedVnfInfo.
type layout struct {
	flavour *vnfd.Flavour
	req     *sol003.InstantiateVnfRequest
	newID   func() string
	info    *sol003.InstantiatedVnfInfo
	fresh   int // the first of info's VNFCs that is new
}

// extCp returns the request's data of an external connection point.
func (l *layout) extCp(cpdID string) (sol003.VnfExtCpData, bool) {
	for _, vl := range l.req.ExtVirtualLinks {
		for _, cp := range vl.ExtCps {
			if cp.CpdId == cpdID {
				return cp, true
			}
		}
	}
	return sol003.VnfExtCpData{}, false
}

// vnfc adds a VNFC of the VDU with its connection points and storages.
func (l *layout) vnfc(vdu *vnfd.VDU) {
	vnfc := sol003.VnfcResourceInfo{Id: l.newID(), VduId: vdu.Name, StorageResourceIds: []string{}}
	for _, cp := range l.flavour.CPs {
		if cp.VDU != vdu.Name {
			continue
		}
		ci := sol003.VnfcCpInfo{Id: l.newID(), CpdId: cp.Name}
		if ext, ok := l.extCp(cp.Name); ok {
			ci.CpProtocolInfo = protocolInfo(ext)
			ci.VnfExtCpId = linkPortOf(ext)
		}
		vnfc.VnfcCpInfo = append(vnfc.VnfcCpInfo, ci)
	}
	for _, storage := range vdu.Storages {
		s := sol003.VirtualStorageResourceInfo{Id: l.newID(), VirtualStorageDescId: storage}
		l.info.VirtualStorageResourceInfo = append(l.info.VirtualStorageResourceInfo, s)
		vnfc.StorageResourceIds = append(vnfc.StorageResourceIds, s.Id)
	}
	l.info.VnfcResourceInfo = append(l.info.VnfcResourceInfo, vnfc)
}

// virtualLinks adds the VNFD's virtual links and one for every external link of the request, each with a port for every
// connection point on it.
func (l *layout) virtualLinks() {
	for _, vl := range l.flavour.VirtualLinks {
		res := sol003.VnfVirtualLinkResourceInfo{Id: l.newID(), VnfVirtualLinkDescId: vl.Name}
		for _, m := range l.req.ExtManagedVirtualLinks {
			if managedDesc(m) == vl.Name {
				res.NetworkResource = managedNetwork(m)
			}
		}
		for _, cp := range l.flavour.CPs {
			if _, outside := l.extCp(cp.Name); cp.VirtualLink == vl.Name && !outside {
				l.ports(&res, cp.Name, "")
			}
		}
		l.info.VnfVirtualLinkResourceInfo = append(l.info.VnfVirtualLinkResourceInfo, res)
		for _, m := range l.req.ExtManagedVirtualLinks {
			if managedDesc(m) == vl.Name {
				l.info.ExtManagedVirtualLinkInfo = append(l.info.ExtManagedVirtualLinkInfo, sol003.ExtManagedVirtualLinkInfo{
					Id: m.Id, VnfVirtualLinkDescId: vl.Name, NetworkResource: res.NetworkResource,
					VnfLinkPorts: append([]sol003.VnfLinkPortInfo(nil), res.VnfLinkPorts...),
				})
			}
		}
	}
	for _, ext := range l.req.ExtVirtualLinks {
		res := sol003.VnfVirtualLinkResourceInfo{Id: l.newID(), VnfVirtualLinkDescId: ext.Id, NetworkResource: externalNetwork(ext)}
		for _, cp := range ext.ExtCps {
			l.ports(&res, cp.CpdId, linkPortOf(cp))
		}
		l.info.VnfVirtualLinkResourceInfo = append(l.info.VnfVirtualLinkResourceInfo, res)
	}
}

// externalNetwork is the network of an external virtual link.
func externalNetwork(ext sol003.ExtVirtualLinkData) sol003.ResourceHandle {
	return sol003.ResourceHandle{ResourceId: ext.ResourceId, VimConnectionId: ext.VimConnectionId, VimLevelResourceType: netType}
}

// managedNetwork is the network of an externally managed virtual link.
func managedNetwork(m sol003.ExtManagedVirtualLinkData) sol003.ResourceHandle {
	return sol003.ResourceHandle{ResourceId: m.ResourceId, VimConnectionId: m.VimConnectionId, VimLevelResourceType: netType}
}

// linkPortOf is the id of the link port that a connection point is to use, "" when it is to get one.
func linkPortOf(cp sol003.VnfExtCpData) string {
	if len(cp.CpConfig) == 0 {
		return ""
	}
	return cp.CpConfig[0].LinkPortId
}

// ports adds a link port for every connection point of a new VNFC that is made from the descriptor.
func (l *layout) ports(res *sol003.VnfVirtualLinkResourceInfo, cpdID, linkPort string) {
	for n := l.fresh; n < len(l.info.VnfcResourceInfo); n++ {
		cps := l.info.VnfcResourceInfo[n].VnfcCpInfo
		for m := range cps {
			if cps[m].CpdId != cpdID {
				continue
			}
			port := sol003.VnfLinkPortInfo{Id: l.newID(), CpInstanceId: cps[m].Id}
			if linkPort != "" {
				port.ResourceHandle = sol003.ResourceHandle{ResourceId: linkPort, VimLevelResourceType: portType}
			}
			cps[m].VnfLinkPortId = port.Id
			res.VnfLinkPorts = append(res.VnfLinkPorts, port)
		}
	}
}

// external adds extCpInfo and extVirtualLinkInfo from the request.
func (l *layout) external() {
	for _, ext := range l.req.ExtVirtualLinks {
		vl := sol003.ExtVirtualLinkInfo{
			Id:             ext.Id,
			ResourceHandle: sol003.ResourceHandle{ResourceId: ext.ResourceId, VimConnectionId: ext.VimConnectionId},
		}
		byLinkPort := map[string]string{} // linkPortId → extCpInfo.id
		last := ""
		for _, cp := range ext.ExtCps {
			info := sol003.VnfExtCpInfo{Id: l.newID(), CpdId: cp.CpdId, CpProtocolInfo: protocolInfo(cp)}
			if len(info.CpProtocolInfo) == 0 {
				info.CpProtocolInfo = []sol003.CpProtocolInfo{{LayerProtocol: sol003.LayerProtocolIPOverEthernet}}
			}
			for _, cfg := range cp.CpConfig {
				if cfg.LinkPortId != "" {
					info.ExtLinkPortId = cfg.LinkPortId
					byLinkPort[cfg.LinkPortId] = info.Id
				}
			}
			info.AssociatedVnfcCpId = l.vnfcWith(cp.CpdId)
			last = info.Id
			l.info.ExtCpInfo = append(l.info.ExtCpInfo, info)
		}
		for _, lp := range ext.ExtLinkPorts {
			cp := byLinkPort[lp.Id]
			if cp == "" {
				cp = last
			}
			vl.ExtLinkPorts = append(vl.ExtLinkPorts, sol003.ExtLinkPortInfo{Id: lp.Id, ResourceHandle: lp.ResourceHandle, CpInstanceId: cp})
		}
		l.info.ExtVirtualLinkInfo = append(l.info.ExtVirtualLinkInfo, vl)
	}
}

// vnfcWith returns the id of the first VNFC that has a connection point made from the descriptor, as Tacker's users
// find it in associatedVnfcCpId.
func (l *layout) vnfcWith(cpdID string) string {
	for _, vnfc := range l.info.VnfcResourceInfo {
		for _, cp := range vnfc.VnfcCpInfo {
			if cp.CpdId == cpdID {
				return vnfc.Id
			}
		}
	}
	return ""
}

func managedDesc(m sol003.ExtManagedVirtualLinkData) string {
	if m.VnfVirtualLinkDescId != "" {
		return m.VnfVirtualLinkDescId
	}
	return m.VirtualLinkDescId
}

func protocolInfo(cp sol003.VnfExtCpData) []sol003.CpProtocolInfo {
	var out []sol003.CpProtocolInfo
	for _, cfg := range cp.CpConfig {
		for _, data := range cfg.CpProtocolData {
			info := sol003.CpProtocolInfo{LayerProtocol: data.LayerProtocol}
			if eth := data.IpOverEthernet; eth != nil {
				info.IpOverEthernet = &sol003.IpOverEthernetAddressInfo{MacAddress: eth.MacAddress}
				for _, ip := range eth.IpAddresses {
					info.IpOverEthernet.IpAddresses = append(info.IpOverEthernet.IpAddresses, sol003.IpAddressInfo{
						Type: ip.Type, Addresses: ip.FixedAddresses, IsDynamic: ip.NumDynamicAddresses > 0, SubnetId: ip.SubnetId,
					})
				}
			}
			out = append(out, info)
		}
	}
	return out
}
