package openstack

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

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
	case x.Op.Operation == sol003.LcmOperationTypeChangeFlavour:
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

// within returns the map of that name in another one, made when there is none.
func within(of map[string]any, name string) map[string]any {
	m, ok := of[name].(map[string]any)
	if !ok {
		m = map[string]any{}
		of[name] = m
	}
	return m
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

// unheededKey is the key of a VNFC's metadata that tells what was granted for it and is not so. The metadata is part of the
// instance, of the op occ's resourceChanges and of the notification (SOL003 v2.6.1 §5.5.3.2, §5.5.3.13).
const unheededKey = "grant_not_followed"

// noteUnheeded has each VNFC that the operation makes, or makes again, say what was granted for it and is not so: servers of one
// VDU share what they are made by, and who goes on living is not moved, resized or rebuilt for others.
func (c *cloud) noteUnheeded(ctx context.Context, x *lcm.Execution, params map[string]any) error {
	fresh := slices.Concat(plan(x).Adds, plan(x).Heals)
	anew := x.Op.Operation == sol003.LcmOperationTypeInstantiate || whole(x)
	info := x.Instance.Info
	for n := range info.VnfcResourceInfo {
		v := &info.VnfcResourceInfo[n]
		if !anew && !slices.Contains(fresh, v.Id) {
			continue
		}
		said, err := c.slighted(ctx, x, v, section(params, "VDU"))
		if err != nil {
			return err
		}
		if said == text(v.Metadata, unheededKey) {
			continue
		}
		metadata := sol003.KeyValuePairs{} // a map of its own: others have the old one
		maps.Copy(metadata, v.Metadata)
		if delete(metadata, unheededKey); said != "" {
			metadata[unheededKey] = said
		}
		v.Metadata = metadata
	}
	return nil
}

// slighted words what was granted for a VNFC and neither the parameters of its VDU nor, where there is one, its server has.
func (c *cloud) slighted(ctx context.Context, x *lcm.Execution, v *sol003.VnfcResourceInfo, vdus map[string]any) (string, error) {
	if x.Grant == nil {
		return "", nil
	}
	type grant struct{ what, node, value string }
	var differs []grant
	differ := func(what, node, value string) {
		if params, _ := vdus[node].(map[string]any); value != "" && text(params, what) != value {
			differs = append(differs, grant{what, node, value})
		}
	}
	differ("zone", v.VduId, cmp.Or(x.Grant.Zones[v.Id], x.Grant.VDUZones[v.VduId]))
	differ("flavor", v.VduId, x.Grant.Flavours[v.VduId])
	differ("image", v.VduId, x.Grant.Images[v.VduId])
	if vdu, ok := x.Flavour.VDU(v.VduId); ok {
		for _, storage := range vdu.Storages {
			differ("image", storage, x.Grant.Images[storage])
		}
	}
	if len(differs) == 0 {
		return "", nil
	}
	var s *server
	if id := v.ComputeResource.ResourceId; id != "" {
		var err error
		if s, err = c.server(ctx, id); err != nil {
			return "", err
		}
	}
	var said []string
	for _, g := range differs {
		if s == nil || !s.has(g.what, g.value) {
			said = append(said, g.what+" "+g.value+" of "+g.node)
		}
	}
	return strings.Join(said, ", "), nil
}
