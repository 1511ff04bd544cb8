package toscahot

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// network is what a virtual link has become: the value that names it in the top template, and its subnets' resources.
type network struct {
	id      any
	subnets []string
}

// bitsPerKilobit is how bit rates become Neutron's kilobits.
const bitsPerKilobit = 1024

// links makes a network of every virtual link of the VNFD that the request does not bring one for
// (extManagedVirtualLinks, SOL003 v2.6.1 §4.4.1.12).
func (t *translation) links() error {
	managed := map[string]string{}
	for _, m := range t.Request.ExtManagedVirtualLinks {
		name := m.VnfVirtualLinkDescId
		if name == "" {
			name = m.VirtualLinkDescId
		}
		if _, ours := t.exact[name]; !ours || m.ResourceId == "" {
			return lcm.Errorf(lcm.KindTerminal,
				"extManagedVirtualLinks %s: it needs a resourceId, and a virtual link of flavour %s of VNFD %s: %q",
				m.Id, t.Flavour.ID, t.Flavour.File, name)
		}
		managed[name] = m.ResourceId
	}
	for n := range t.Flavour.VirtualLinks {
		vl := &t.Flavour.VirtualLinks[n]
		// The names are taken either way: they must not depend on the request.
		qos, bandwidth := t.top.unique(vl.Name+"_qospolicy"), t.top.unique(vl.Name+"_bandwidth")
		subnet := t.top.unique(vl.Name + "_subnet")
		if id, ok := managed[vl.Name]; ok {
			t.networks[vl.Name] = network{id: id}
			continue
		}
		made := network{id: function("get_resource", vl.Name)}
		net := resource{kind: "OS::Neutron::Net", properties: map[string]any{}}
		if vl.MaxLeafBitrate > 0 {
			net.properties["qos_policy"] = function("get_resource", qos)
			t.top.add(qos, resource{kind: "OS::Neutron::QoSPolicy"})
			t.top.add(bandwidth, resource{kind: "OS::Neutron::QoSBandwidthLimitRule", properties: map[string]any{
				"policy": function("get_resource", qos), "max_kbps": max(vl.MaxLeafBitrate/bitsPerKilobit, 1),
			}})
		}
		t.top.add(vl.Name, net)
		ranges, err := t.addressRanges(vl)
		if err != nil {
			return err
		}
		for n, properties := range ranges {
			name := subnet
			if n > 0 {
				name = t.top.unique(subnet + "_" + strconv.Itoa(n+1))
			}
			properties["network"] = made.id
			t.top.add(name, resource{kind: "OS::Neutron::Subnet", properties: properties})
			made.subnets = append(made.subnets, name)
		}
		if len(ranges) == 0 {
			t.warn("virtual link %s has no l3_protocol_data: its network has no subnet", vl.Name)
		}
		t.networks[vl.Name] = made
	}
	return nil
}

// addressRanges returns the properties of a virtual link's subnets (SOL001 v2.6.1 §6.2.26, L3ProtocolData).
func (t *translation) addressRanges(vl *vnfd.VirtualLink) ([]map[string]any, error) {
	var out []map[string]any
	for _, l3 := range t.protocols(vl) {
		what := "virtual link " + vl.Name
		prefix, err := netip.ParsePrefix(l3.cidr)
		if err != nil {
			return nil, t.fail(lcm.KindTerminal, what, "l3_protocol_data: cidr %q is no range of addresses", l3.cidr)
		}
		version := 4
		if prefix.Addr().Is6() {
			version = 6
		}
		if l3.version != "" && l3.version != "ipv"+strconv.Itoa(version) {
			return nil, t.fail(lcm.KindTerminal, what, "l3_protocol_data: cidr %s is not of ip_version %s", l3.cidr, l3.version)
		}
		subnet := map[string]any{"ip_version": version, "cidr": prefix.Masked().String()}
		inside := func(property, address string) error {
			if a, err := netip.ParseAddr(address); err != nil || !prefix.Masked().Contains(a) {
				return t.fail(lcm.KindTerminal, what, "l3_protocol_data: %s %q is no address of %s", property, address, prefix.Masked())
			}
			return nil
		}
		if l3.gateway != "" {
			if err := inside("gateway_ip", l3.gateway); err != nil {
				return nil, err
			}
			subnet["gateway_ip"] = l3.gateway
		}
		if l3.dhcp != nil {
			subnet["enable_dhcp"] = *l3.dhcp
		}
		var pools []any
		for _, pool := range l3.pools {
			for _, address := range pool {
				if err := inside("ip_allocation_pools", address); err != nil {
					return nil, err
				}
			}
			pools = append(pools, map[string]any{"start": pool[0], "end": pool[1]})
		}
		if len(pools) > 0 {
			subnet["allocation_pools"] = pools
		}
		if l3.mode6 != "" && version == 6 {
			subnet["ipv6_address_mode"], subnet["ipv6_ra_mode"] = l3.mode6, l3.mode6
		}
		out = append(out, subnet)
	}
	return out, nil
}

// external finds what the request says about an external connection point (extVirtualLinks, SOL003 v2.6.1 §4.4.1.11).
func (t *translation) external(cpdID string) (*sol003.ExtVirtualLinkData, *sol003.VnfExtCpData) {
	for n := range t.Request.ExtVirtualLinks {
		link := &t.Request.ExtVirtualLinks[n]
		for m := range link.ExtCps {
			if link.ExtCps[m].CpdId == cpdID {
				return link, &link.ExtCps[m]
			}
		}
	}
	return nil, nil
}

// port is the port of a connection point of instance n of its VDU: put into the template, or the one that the request
// brings.
func (t *translation) port(in *template, cp *vnfd.CP, n int) (any, error) {
	link, ext := t.external(cp.Name)
	what := "connection point " + cp.Name
	var e endpoint
	port := resource{kind: "OS::Neutron::Port", properties: map[string]any{}}
	switch {
	case ext != nil:
		var err error
		if e, err = t.endpoint(link, ext, cp, n); err != nil {
			return nil, err
		}
		if e.port != "" {
			return in.outer(cp.Name+"_port", "string", e.port), nil
		}
		if link.ResourceId == "" {
			return nil, lcm.Errorf(lcm.KindTerminal, "extVirtualLinks %s: it has no resourceId for %s", link.Id, what)
		}
		port.properties["network"] = in.outer(cp.Name+"_network", "string", link.ResourceId)
	case cp.VirtualLink != "":
		net, ok := t.networks[cp.VirtualLink]
		if !ok {
			return nil, t.fail(lcm.KindTerminal, what, "requirement virtual_link: node %s is no virtual link", cp.VirtualLink)
		}
		port.properties["network"] = in.outer(cp.VirtualLink+"_id", "string", net.id)
		in.after(&port, net.subnets)
	default:
		return nil, t.fail(lcm.KindTerminal, what,
			"it has no virtual_link in the VNFD, and extVirtualLinks of the request say nothing of it")
	}
	if e.mac != "" {
		port.properties["mac_address"] = in.outer(cp.Name+"_mac", "string", e.mac)
	}
	if len(e.addresses) > 0 {
		port.properties["fixed_ips"] = in.outer(cp.Name+"_fixed_ips", "json", e.addresses)
	}
	if cp.VnicType != "" {
		port.properties["binding:vnic_type"] = cp.VnicType
	}
	in.add(cp.Name, port)
	return function("get_resource", cp.Name), nil
}

// endpoint is how a port meets an external link: by a port that is there, or with addresses of its own.
type endpoint struct {
	port      string
	mac       string
	addresses []any // as a port's fixed_ips
}

// maxAddresses bounds the addresses of a port.
const maxAddresses = 100

// endpoint reads the request's data for a connection point of instance n of its VDU. The only instance there is has all of
// it; of several, each has the cpConfig of its place; those that come and go with scaling share what they can.
func (t *translation) endpoint(link *sol003.ExtVirtualLinkData, ext *sol003.VnfExtCpData, cp *vnfd.CP, n int) (endpoint, error) {
	configs := ext.CpConfig
	grows, alone := t.fixed[cp.VDU] < t.most[cp.VDU], t.most[cp.VDU] <= 1
	shared := !alone && (grows || len(configs) == 1)
	switch {
	case alone:
	case !shared && n < len(configs):
		configs = configs[n : n+1]
	case !shared:
		configs = nil
	default:
		configs = configs[:min(1, len(configs))]
	}
	var e endpoint
	bad := func(format string, args ...any) (endpoint, error) {
		return endpoint{}, lcm.Errorf(lcm.KindTerminal, "extVirtualLinks %s: extCps %s: %s",
			link.Id, ext.CpdId, fmt.Sprintf(format, args...))
	}
	fixed := false
	for _, config := range configs {
		if config.LinkPortId != "" && e.port == "" {
			for _, p := range link.ExtLinkPorts {
				if p.Id == config.LinkPortId {
					e.port = p.ResourceHandle.ResourceId
				}
			}
			if e.port == "" {
				return bad("linkPortId %q is none of the link's extLinkPorts that has a resourceId", config.LinkPortId)
			}
			fixed = true
		}
		for _, data := range config.CpProtocolData {
			eth := data.IpOverEthernet
			if eth == nil {
				continue
			}
			if eth.MacAddress != "" {
				if e.mac != "" && e.mac != eth.MacAddress {
					return bad("a port cannot have two macAddresses, %s and %s", e.mac, eth.MacAddress)
				}
				e.mac, fixed = eth.MacAddress, true
			}
			for _, a := range eth.IpAddresses {
				ips, err := addresses(a)
				if err != nil {
					return bad("%v", err)
				}
				e.addresses = append(e.addresses, ips...)
				fixed = fixed || len(a.FixedAddresses) > 0
			}
		}
	}
	switch {
	case fixed && shared && grows:
		return bad(
			"Scaling resource cannot be set to fixed ip_address or mac_address. There can be %d instances of VDU %s; the same goes for a linkPortId",
			t.most[cp.VDU], cp.VDU)
	case fixed && shared:
		return bad(
			"the %d instances of VDU %s cannot share a fixed address, macAddress or linkPortId: each needs a cpConfig of its own",
			t.most[cp.VDU], cp.VDU)
	case len(e.addresses) > maxAddresses:
		return bad("a port cannot have %d addresses", len(e.addresses))
	}
	if e.port != "" && (e.mac != "" || len(e.addresses) > 0) {
		t.warn("connection point %s uses port %s as it is, whatever addresses the request names for it", cp.Name, e.port)
	}
	return e, nil
}

// addresses are a port's fixed_ips by one entry of ipAddresses (SOL003 v2.6.1 §4.4.1.10c).
func addresses(a sol003.IpAddressData) ([]any, error) {
	in := func(entry map[string]any) any {
		if a.SubnetId != "" {
			entry["subnet"] = a.SubnetId
		}
		return entry
	}
	var out []any
	for _, fixed := range a.FixedAddresses {
		if _, err := netip.ParseAddr(fixed); err != nil {
			return nil, fmt.Errorf("fixedAddresses: %q is no address", fixed)
		}
		out = append(out, in(map[string]any{"ip_address": fixed}))
	}
	if len(out) > 0 {
		return out, nil
	}
	if a.AddressRange != (sol003.IpAddressRange{}) && a.NumDynamicAddresses == 0 {
		return nil, errors.New("an addressRange cannot be asked for of Heat: name fixedAddresses or a subnetId")
	}
	if a.SubnetId == "" {
		return nil, nil // Neutron gives one of the network's
	}
	for range min(max(a.NumDynamicAddresses, 1), maxAddresses+1) {
		out = append(out, in(map[string]any{}))
	}
	return out, nil
}
