package vnfd

import (
	"math"
	"slices"
	"strings"
)

// nodes reads the VDUs, storages, connection points and links of a flavour.
func (s scope) nodes(t *node, f *Flavour) {
	templates := t.get("node_templates")
	for _, e := range templates.entries() {
		typeName := e.val.get("type").string()
		is := func(base string) bool { return s.r.types.isA(typeName, base) }
		switch {
		case is(typeCompute):
			f.VDUs = append(f.VDUs, s.vdu(e, templates))
		case is(typeBlockStorage), is(typeObjectStorage), is(typeFileStorage):
			f.Storages = append(f.Storages, s.storage(e, typeName))
		case is(typeVduCp):
			f.CPs = append(f.CPs, s.cp(e, templates))
		case is(typeVirtualLink):
			f.VirtualLinks = append(f.VirtualLinks, s.virtualLink(e))
		default:
			continue
		}
		if img := s.image(e); img != nil {
			f.SoftwareImages = append(f.SoftwareImages, *img)
		}
	}
}

func (s scope) vdu(e entry, templates *node) VDU {
	n := e.val
	v := VDU{
		Name:          e.key,
		Type:          n.get("type").string(),
		PropName:      s.property(n, "name").string(),
		Description:   s.property(n, "description").string(),
		SoftwareImage: s.image(e),
	}
	profile := s.property(n, "vdu_profile")
	v.MinInstances = s.count(profile.get("min_number_of_instances"), "min_number_of_instances of VDU "+quote(e.key))
	v.MaxInstances = s.count(profile.get("max_number_of_instances"), "max_number_of_instances of VDU "+quote(e.key))

	compute := n.get("capabilities", "virtual_compute", "properties")
	v.VCPUs = s.count(compute.get("virtual_cpu", "num_virtual_cpu"), "num_virtual_cpu of VDU "+quote(e.key))
	v.RAM = s.bytes(compute.get("virtual_memory", "virtual_mem_size"), "virtual_mem_size of VDU "+quote(e.key))
	if disks := s.resolve(compute.get("virtual_local_storage")).elems(); len(disks) > 0 {
		v.Disk = s.bytes(disks[0].get("size_of_storage"), "size_of_storage of VDU "+quote(e.key))
	}
	v.FlavorName = s.flavorName(compute.get("requested_additional_capabilities"))
	for _, x := range compute.get("compute_requirements", "nova_extra_specs").entries() {
		if text, ok := s.resolve(x.val).str(); ok {
			if v.NovaExtraSpecs == nil {
				v.NovaExtraSpecs = map[string]string{}
			}
			v.NovaExtraSpecs[x.key] = text
		}
	}
	for _, req := range s.requirements(e, templates) {
		if req.name == "virtual_storage" {
			v.Storages = append(v.Storages, req.node)
		}
	}
	return v
}

// flavorName looks into requested_additional_capabilities, a map of which
// packages use the key "properties"; else the first entry that has a name.
func (s scope) flavorName(caps *node) string {
	const key = "requested_additional_capability_name"
	if name := s.text(caps.get("properties", key)); name != "" {
		return name
	}
	for _, e := range caps.entries() {
		if name := s.text(e.val.get(key)); name != "" {
			return name
		}
	}
	return ""
}

func (s scope) storage(e entry, typeName string) VirtualStorage {
	v := VirtualStorage{Name: e.key, Type: typeName, SoftwareImage: s.image(e)}
	size := s.property(e.val, "virtual_block_storage_data").get("size_of_storage")
	switch {
	case s.r.types.isA(typeName, typeObjectStorage):
		size = s.property(e.val, "virtual_object_storage_data").get("max_size_of_storage")
	case s.r.types.isA(typeName, typeFileStorage):
		size = s.property(e.val, "virtual_file_storage_data").get("size_of_storage")
	}
	v.Size = s.bytes(size, "the size of storage "+quote(e.key))
	return v
}

func (s scope) cp(e entry, templates *node) CP {
	n := e.val
	c := CP{
		Name:               e.key,
		Order:              s.count(s.property(n, "order"), "order of "+quote(e.key)),
		LayerProtocols:     s.property(n, "layer_protocols").strings(),
		VnicType:           s.property(n, "vnic_type").string(),
		Description:        s.property(n, "description").string(),
		BitrateRequirement: s.integer(s.property(n, "bitrate_requirement"), "bitrate_requirement of "+quote(e.key), math.MaxInt64),
	}
	for _, req := range s.requirements(e, templates) {
		switch req.name {
		case "virtual_binding":
			c.VDU = req.node
		case "virtual_link":
			c.VirtualLink = req.node
		}
	}
	return c
}

func (s scope) virtualLink(e entry) VirtualLink {
	n := e.val
	connectivity := s.property(n, "connectivity_type")
	profile := s.property(n, "vl_profile")
	v := VirtualLink{
		Name:           e.key,
		Description:    s.property(n, "description").string(),
		LayerProtocols: s.resolve(connectivity.get("layer_protocols")).strings(),
		FlowPattern:    s.text(connectivity.get("flow_pattern")),
	}
	bitrate := func(of, which string) int64 {
		return s.integer(profile.get(of, which), of+" of "+quote(e.key), math.MaxInt64)
	}
	v.MaxLeafBitrate = bitrate("max_bitrate_requirements", "leaf")
	v.MaxRootBitrate = bitrate("max_bitrate_requirements", "root")
	v.MinLeafBitrate = bitrate("min_bitrate_requirements", "leaf")
	v.MinRootBitrate = bitrate("min_bitrate_requirements", "root")
	for _, item := range s.resolve(profile.get("virtual_link_protocol_data")).elems() {
		l3 := item.get("l3_protocol_data")
		if !l3.isMap() {
			continue
		}
		v.CIDR = s.text(l3.get("cidr"))
		v.IPVersion = s.text(l3.get("ip_version"))
		v.Gateway = s.text(l3.get("gateway_ip"))
		if dhcp := s.resolve(l3.get("dhcp_enabled")); dhcp != nil {
			if b, ok := dhcp.value.(bool); ok {
				v.DHCP = &b
			}
		}
		break
	}
	return v
}

// requirement is one of a node's requirements with a node as its target.
type requirement struct{ name, node string }

// requirements reads `- name: node` and `- name: {node: node}` and reports
// targets that do not exist. A requirement without a target is left for the
// outer template to meet.
func (s scope) requirements(e entry, templates *node) []requirement {
	section := e.val.get("requirements")
	pairs := slices.Clone(section.entries())
	for _, item := range section.elems() {
		pairs = append(pairs, item.entries()...)
	}
	var out []requirement
	for _, p := range pairs {
		target := p.val
		if target.isMap() {
			target = target.get("node")
		}
		name, ok := target.str()
		if !ok || name == "" {
			continue
		}
		if templates.get(name) == nil {
			if _, isType := s.r.types.defs[name]; !isType && !strings.HasPrefix(name, standardTypesPrefix) {
				s.r.add(target.pos, RuleReference, "the requirement %q of node %q names the unknown node %q", p.key, e.key, name)
			}
			continue
		}
		out = append(out, requirement{p.key, name})
	}
	return out
}

// image reads sw_image_data of a node and its image artifact, or returns nil
// for a node without them.
func (s scope) image(e entry) *SoftwareImage {
	n := e.val
	artifact, at := s.imageArtifact(e)
	data := s.property(n, "sw_image_data")
	if !data.isMap() {
		if artifact != nil || !data.isNull() {
			if data != nil {
				at = data.pos
			}
			s.r.add(at, RuleImage, `Node property "sw_image_data" is missing for %q`, e.key)
		}
		return nil
	}
	img := &SoftwareImage{
		ID:              e.key,
		Name:            s.text(data.get("name")),
		Version:         s.text(data.get("version")),
		Provider:        s.text(data.get("provider")),
		ContainerFormat: s.text(data.get("container_format")),
		DiskFormat:      s.text(data.get("disk_format")),
		OperatingSystem: s.text(data.get("operating_system")),

		SupportedVirtualisationEnvironments: s.resolve(data.get("supported_virtualisation_environments")).strings(),
	}
	checksum := s.resolve(data.get("checksum"))
	if checksum.isMap() {
		img.Checksum = Checksum{s.text(checksum.get("algorithm")), s.text(checksum.get("hash"))}
	} else if checksum != nil {
		img.Checksum.Hash = checksum.string()
	}
	if !knownAlgorithm(img.Checksum.Algorithm) {
		p := data.pos
		if a := checksum.get("algorithm"); a != nil {
			p = a.pos
		}
		s.r.add(p, RuleImage, "the checksum algorithm %q of the software image of %q is not one of sha-224, sha-256, sha-384, sha-512", img.Checksum.Algorithm, e.key)
	}
	what := "of the software image of " + quote(e.key)
	img.MinDisk = s.bytes(data.get("min_disk"), "min_disk "+what)
	img.MinRAM = s.bytes(data.get("min_ram"), "min_ram "+what)
	img.Size = s.bytes(data.get("size"), "size "+what)
	if ref, ok := artifactFile(artifact); ok {
		if isRemote(ref.text) {
			img.File, img.Remote = ref.text, true
		} else {
			img.File, _ = s.r.locate(s.doc.path, ref.text)
		}
	}
	return img
}

// imageArtifact returns the artifact that is the node's image: of type
// SwImage, or the first one when it is in the short notation.
func (s scope) imageArtifact(e entry) (*node, pos) {
	var found *node
	at := e.at
	for i, a := range e.val.get("artifacts").entries() {
		_, short := a.val.str()
		if !(i == 0 && short) && !s.r.types.isA(a.val.get("type").string(), typeSwImage) {
			continue
		}
		if found != nil {
			s.r.add(a.at, RuleImage, "node %q may have only one artifact of type %s", e.key, typeSwImage)
			continue
		}
		found, at = a.val, a.at
	}
	return found, at
}

func knownAlgorithm(name string) bool {
	switch strings.ToLower(name) {
	case "sha-224", "sha-256", "sha-384", "sha-512":
		return true
	}
	return false
}
