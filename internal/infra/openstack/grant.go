package openstack

import (
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// granted returns what an operation follows of its grant (SOL003 v2.6.1 §9.5.2.3), by nodes of the VNFD: flavours, images, and
// zones of VDUs whose servers do not have to move for it. With nodes, what is granted for others is left out.
func granted(x *lcm.Execution, nodes map[string]bool) *lcm.Grant {
	g := &lcm.Grant{VDUZones: map[string]string{}, Flavours: map[string]string{}, Images: map[string]string{}}
	if x.Grant == nil {
		return g
	}
	meant := func(node string) bool { return nodes == nil || nodes[node] }
	place := func(vdu, zone string) {
		if zone != "" && g.VDUZones[vdu] == "" && meant(vdu) && !stays(x, vdu) {
			g.VDUZones[vdu] = zone
		}
	}
	for vdu, zone := range x.Grant.VDUZones {
		place(vdu, zone)
	}
	if x.Instance.Info != nil {
		for _, v := range x.Instance.Info.VnfcResourceInfo {
			place(v.VduId, x.Grant.Zones[v.Id])
		}
	}
	for node, flavour := range x.Grant.Flavours {
		if meant(node) {
			g.Flavours[node] = flavour
		}
	}
	for node, image := range x.Grant.Images {
		if meant(node) {
			g.Images[node] = image
		}
	}
	return g
}

// stays tells whether servers of a VDU live on through an operation that makes others of it anew: a zone would make them move.
func stays(x *lcm.Execution, vdu string) bool {
	switch {
	case x.Op.Operation == sol003.LcmOperationTypeHeal && !whole(x):
	case x.Op.Operation == sol003.LcmOperationTypeChangeFlavour && x.Instance.Request != nil && translated(x.Instance.Request):
	default:
		return false
	}
	return x.Before.Info != nil && slices.ContainsFunc(x.Before.Info.VnfcResourceInfo, func(v sol003.VnfcResourceInfo) bool {
		return v.VduId == vdu && !slices.Contains(plan(x).Heals, v.Id)
	})
}

// applyGrant merges what is granted into nfv.VDU: zones where none is set, flavours and images. These are a VDU's: all servers
// of it get them, those that there are too.
func applyGrant(g *lcm.Grant, params map[string]any) {
	within := func(of map[string]any, name string) map[string]any {
		m, ok := of[name].(map[string]any)
		if !ok {
			m = map[string]any{}
			of[name] = m
		}
		return m
	}
	node := func(name string) map[string]any { return within(within(within(params, "nfv"), "VDU"), name) }
	for vdu, zone := range g.VDUZones {
		if n := node(vdu); n["zone"] == nil {
			n["zone"] = zone
		}
	}
	for id, flavour := range g.Flavours {
		node(id)["flavor"] = flavour
	}
	for id, image := range g.Images {
		node(id)["image"] = image
	}
}

// scaledNodes returns the nodes of the VNFD that the members of an aspect's group are made of.
func scaledNodes(f *vnfd.Flavour, aspect *vnfd.ScalingAspect) map[string]bool {
	nodes := map[string]bool{}
	for _, scaled := range aspect.VDUs {
		nodes[scaled.VDU] = true
		if vdu, ok := f.VDU(scaled.VDU); ok {
			for _, storage := range vdu.Storages {
				nodes[storage] = true
			}
		}
	}
	return nodes
}

// untouched tells whether there was nothing of an aspect's nodes before the operation: what is granted for them touches nobody
// else then.
func untouched(x *lcm.Execution, aspect *vnfd.ScalingAspect) bool {
	if x.Before.Info == nil {
		return true
	}
	nodes := scaledNodes(x.Flavour, aspect)
	return !slices.ContainsFunc(x.Before.Info.VnfcResourceInfo, func(v sol003.VnfcResourceInfo) bool { return nodes[v.VduId] }) &&
		!slices.ContainsFunc(x.Before.Info.VirtualStorageResourceInfo, func(s sol003.VirtualStorageResourceInfo) bool {
			return nodes[s.VirtualStorageDescId]
		})
}

// unheeded names what is granted for nodes and differs from the stack's parameters.
func unheeded(x *lcm.Execution, nodes map[string]bool, params map[string]any) []string {
	g, vdus := granted(x, nodes), section(params, "VDU")
	if x.Grant != nil { // those that would make others move
		for vdu, zone := range x.Grant.VDUZones {
			if nodes[vdu] {
				g.VDUZones[vdu] = zone
			}
		}
	}
	var out []string
	for what, given := range map[string]map[string]string{"flavor": g.Flavours, "image": g.Images, "zone": g.VDUZones} {
		for name, value := range given {
			if node, _ := vdus[name].(map[string]any); text(node, what) != value {
				out = append(out, what+" "+value+" of "+name)
			}
		}
	}
	slices.Sort(out)
	return out
}
