package toscahot

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// computeFlavors settles the flavor of every VDU: the one granted, the one that it has, the VIM's of the name that the VNFD
// asks for, else one of its own (SOL001 v2.6.1 §6.3.6, virtual_compute).
func (t *translation) computeFlavors() error {
	for n := range t.Flavour.VDUs {
		v := &t.Flavour.VDUs[n]
		_, known := t.had[v.Name]
		params := t.node(v.Name)
		if id := t.Grant.Flavours[v.Name]; id != "" {
			params["flavor"] = id
		} else if id := t.Flavors[v.FlavorName]; id != "" && v.FlavorName != "" && !known {
			params["flavor"] = id
		}
		if params["flavor"] != nil {
			t.flavors[v.Name] = function("get_param", nfv, "VDU", v.Name, "flavor")
			continue
		}
		properties, err := t.ownFlavor(v)
		if err != nil {
			return err
		}
		name := t.top.unique(v.Name + "_flavor")
		t.top.add(name, resource{kind: "OS::Nova::Flavor", properties: properties})
		t.flavors[v.Name] = function("get_resource", name)
	}
	return nil
}

// ownFlavor is a flavor made for a VDU: RAM in MiB, disk in GiB, both rounded down.
func (t *translation) ownFlavor(v *vnfd.VDU) (map[string]any, error) {
	what := "VDU " + v.Name
	compute := []string{"capabilities", "virtual_compute", "properties"}
	cpus, err := t.number(v.Name, int64(v.VCPUs), slices.Concat(compute, []string{"virtual_cpu", "num_virtual_cpu"})...)
	if err != nil {
		return nil, t.fail(lcm.KindTerminal, what, "num_virtual_cpu: %v", err)
	}
	ram, err := t.size(v.Name, v.RAM, "MiB", slices.Concat(compute, []string{"virtual_memory", "virtual_mem_size"})...)
	if err != nil {
		return nil, t.fail(lcm.KindTerminal, what, "virtual_mem_size: %v", err)
	}
	disk, err := t.size(v.Name, v.Disk, "GiB", slices.Concat(compute, []string{"virtual_local_storage", "0", "size_of_storage"})...)
	if err != nil {
		return nil, t.fail(lcm.KindTerminal, what, "size_of_storage: %v", err)
	}
	for _, need := range []struct {
		property string
		value    int64
	}{{"virtual_cpu: num_virtual_cpu", cpus}, {"virtual_memory: virtual_mem_size (MiB)", ram}} {
		if need.value < 1 {
			return nil, t.fail(lcm.KindTerminal, what,
				"capability virtual_compute: %s is %d, and neither the grant nor the VIM has a flavor for it",
				need.property, need.value)
		}
	}
	properties := map[string]any{"vcpus": cpus, "ram": ram, "disk": disk}
	if len(v.NovaExtraSpecs) > 0 {
		specs := map[string]any{}
		for name, value := range v.NovaExtraSpecs {
			specs[name] = value
		}
		properties["extra_specs"] = specs
	}
	return properties, nil
}

// unscaled puts the VDUs' instances that are in no group into the top template.
func (t *translation) unscaled() error {
	for _, cp := range t.Flavour.CPs {
		if _, ok := t.Flavour.VDU(cp.VDU); !ok {
			t.warn("connection point %s is bound to no VDU: it has no port", cp.Name)
		}
	}
	for _, link := range t.Request.ExtVirtualLinks {
		for _, cp := range link.ExtCps {
			if !slices.ContainsFunc(t.Flavour.CPs, func(c vnfd.CP) bool { return c.Name == cp.CpdId }) {
				t.warn("extVirtualLinks %s: extCps %s is no connection point of the flavour's VDUs", link.Id, cp.CpdId)
			}
		}
	}
	for n := range t.Flavour.VDUs {
		v := &t.Flavour.VDUs[n]
		if err := t.place(t.top, v, t.fixed[v.Name], ""); err != nil {
			return err
		}
	}
	return nil
}

// place puts instances of a VDU into a template: a single one beside what is there, unless that has one of its names;
// else each in a nested stack of its own.
func (t *translation) place(in *template, v *vnfd.VDU, count int, prefix string) error {
	if count == 1 && !slices.ContainsFunc(t.namesOf(v), func(name string) bool { return in.taken[name] }) {
		return t.instance(in, v, 0)
	}
	for n := range count {
		name := in.unique(v.Name + "_" + strconv.Itoa(n+1))
		own := newTemplate(in)
		for _, node := range t.vduNodes() {
			own.avoid(node)
		}
		if err := t.instance(own, v, n); err != nil {
			return err
		}
		file, err := t.nest(prefix+name, own, "An instance of VDU "+v.Name)
		if err != nil {
			return err
		}
		in.add(name, own.stack(file))
	}
	return nil
}

// namesOf lists the nodes that an instance of a VDU consists of.
func (t *translation) namesOf(v *vnfd.VDU) []string {
	out := append([]string{v.Name}, v.Storages...)
	for _, cp := range t.cpsOf(v) {
		out = append(out, cp.Name)
	}
	return out
}

// cpsOf returns a VDU's connection points in the order of its interfaces.
func (t *translation) cpsOf(v *vnfd.VDU) []*vnfd.CP {
	var out []*vnfd.CP
	for n := range t.Flavour.CPs {
		if cp := &t.Flavour.CPs[n]; cp.VDU == v.Name {
			out = append(out, cp)
		}
	}
	slices.SortStableFunc(out, func(a, b *vnfd.CP) int { return cmp.Compare(a.Order, b.Order) })
	return out
}

// instance puts the server of instance n of a VDU into a template, with its ports and volumes.
func (t *translation) instance(in *template, v *vnfd.VDU, n int) error {
	what := "VDU " + v.Name
	server := map[string]any{"flavor": in.outer(v.Name+"_flavor", "string", t.flavors[v.Name])}
	if v.PropName != "" {
		server["name"] = v.PropName
	}
	image, err := t.image(in, v.Name, v.SoftwareImage)
	if err != nil {
		return err
	}
	if image != nil {
		server["image"] = image
	}
	devices, err := t.volumes(in, v, image == nil)
	if err != nil {
		return err
	}
	if len(devices) > 0 {
		server["block_device_mapping_v2"] = devices
	}
	var interfaces []any
	for _, cp := range t.cpsOf(v) {
		port, err := t.port(in, cp, n)
		if err != nil {
			return err
		}
		interfaces = append(interfaces, map[string]any{"port": port})
	}
	if len(interfaces) == 0 { // Nova would choose a network itself
		interfaces = []any{map[string]any{"allocate_network": "none"}}
	}
	server["networks"] = interfaces
	zone, err := t.zone(v.Name)
	if err != nil {
		return err
	}
	if zone != "" {
		server["availability_zone"] = t.nodeParam(in, v.Name, "zone")
	}
	if group := t.hostGroups[v.Name]; group != "" {
		server["scheduler_hints"] = map[string]any{"group": in.outer(group+"_id", "string", function("get_resource", group))}
	}
	data, err := t.bootData(v.Name)
	if err != nil {
		return t.fail(lcm.KindTerminal, what, "boot_data: %v", err)
	}
	if data != "" {
		server["user_data"], server["user_data_format"] = data, "RAW"
	}
	in.add(v.Name, resource{kind: "OS::Nova::Server", properties: server})
	return nil
}

// zone is the availability zone of a VDU's servers, "" for any.
func (t *translation) zone(vdu string) (string, error) {
	params := t.node(vdu)
	zone, _ := params["zone"].(string)
	if granted := t.Grant.VDUZones[vdu]; zone == "" && granted != "" {
		if len(t.Zones) > 0 && !slices.Contains(t.Zones, granted) {
			return "", t.fail(lcm.KindTerminal, "VDU "+vdu, "it is granted availability zone %q, which the VIM does not have",
				granted)
		}
		zone = granted
		params["zone"] = zone
	}
	return zone, nil
}

// image is the value of the image of a node that has one: granted, made for it, the one that it has, or the VIM's of that
// name. nil for none.
func (t *translation) image(in *template, node string, data *vnfd.SoftwareImage) (any, error) {
	granted := t.Grant.Images[node]
	if had, _ := t.had[node]["image"].(string); data == nil && granted == "" && had == "" {
		return nil, nil
	}
	params := t.node(node)
	switch made := t.Images[node]; {
	case granted != "":
		params["image"] = granted
	case made != "":
		params["image"] = made
	case params["image"] != nil:
	case data.Name != "":
		params["image"] = data.Name
	default:
		return nil, t.fail(lcm.KindTerminal, "node "+node, "sw_image_data has no name")
	}
	return t.nodeParam(in, node, "image"), nil
}

// storage types that are no volumes.
var noVolumes = []string{"tosca.nodes.nfv.Vdu.VirtualObjectStorage", "tosca.nodes.nfv.Vdu.VirtualFileStorage"}

// volumes puts the volumes of a VDU's instance into a template and returns the server's block devices, first the one that
// the server boots from when it has to.
func (t *translation) volumes(in *template, v *vnfd.VDU, boot bool) ([]any, error) {
	what := "VDU " + v.Name
	var devices []any
	for n, name := range v.Storages {
		at := slices.IndexFunc(t.Flavour.Storages, func(s vnfd.VirtualStorage) bool { return s.Name == name })
		switch {
		case at < 0:
			return nil, t.fail(lcm.KindTerminal, what, "requirement virtual_storage: node %s is no storage", name)
		case slices.Contains(v.Storages[:n], name):
			return nil, t.fail(lcm.KindUnsupported, what, "requirement virtual_storage: it names %s twice", name)
		case slices.Contains(noVolumes, t.Flavour.Storages[at].Type):
			t.warn("storage %s of VDU %s is no block storage: it is not made", name, v.Name)
			continue
		}
		s := &t.Flavour.Storages[at]
		size, err := t.size(name, s.Size, "GiB", "properties", "virtual_block_storage_data", "size_of_storage")
		if err != nil {
			return nil, t.fail(lcm.KindTerminal, "storage "+name, "size_of_storage: %v", err)
		}
		if size == 0 && s.Size == 0 {
			return nil, t.fail(lcm.KindTerminal, "storage "+name, "size_of_storage is missing")
		}
		volume := map[string]any{"size": max(size, 1)}
		image, err := t.image(in, name, s.SoftwareImage)
		if err != nil {
			return nil, err
		}
		device := map[string]any{"volume_id": function("get_resource", name), "boot_index": -1}
		if image != nil {
			volume["image"] = image
		}
		in.add(name, resource{kind: "OS::Cinder::Volume", properties: volume})
		if boot && image != nil {
			boot = false
			device["boot_index"] = 0
			devices = slices.Insert(devices, 0, any(device))
			continue
		}
		devices = append(devices, device)
	}
	if boot {
		return nil, t.fail(lcm.KindTerminal, what,
			"it has nothing to boot from: neither sw_image_data nor a virtual_storage that has")
	}
	return devices, nil
}

// serverGroups makes a server group of every rule about single hosts (SOL001 v2.6.1 §6.10.10, §6.10.11).
func (t *translation) serverGroups() error {
	for _, rule := range t.Flavour.Affinity {
		what := "policy " + rule.Name
		if rule.Scope != "nfvi_node" {
			t.warn("%s: scope %q is not translated, only nfvi_node is", what, rule.Scope)
			continue
		}
		var vdus []string
		for _, target := range rule.Targets {
			if _, ok := t.Flavour.VDU(target); ok {
				vdus = append(vdus, target)
			} else {
				t.warn("%s: target %s is no VDU: it is left out", what, target)
			}
		}
		if len(vdus) == 0 {
			continue
		}
		name := t.top.unique(rule.Name + "_group")
		if err := t.checkName(name, what); err != nil {
			return err
		}
		policy := "affinity"
		if rule.Anti {
			policy = "anti-affinity"
		}
		for _, vdu := range vdus {
			if t.hostGroups[vdu] != "" {
				return t.fail(lcm.KindUnsupported, what,
					"VDU %s is the target of another rule of scope nfvi_node too: a server can be in one server group",
					vdu)
			}
			t.hostGroups[vdu] = name
		}
		t.top.add(name, resource{kind: "OS::Nova::ServerGroup", properties: map[string]any{"name": rule.Name + "_group", "policies": []any{policy}}})
	}
	return nil
}
