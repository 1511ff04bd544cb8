package vnfd

import (
	"bytes"
	"encoding/json"
)

// Descriptor is what a VNFM needs to know from a VNFD (SOL001 v2.6.1 §6). It
// is immutable by convention and round-trips through encoding/json.
type Descriptor struct {
	// ID is descriptor_id, which SOL003 calls vnfdId.
	ID string `json:"id"`
	// Provider is the VNF's and the VNFD's provider.
	Provider string `json:"provider"`
	// ProductName is product_name.
	ProductName string `json:"productName"`
	// SoftwareVersion is software_version.
	SoftwareVersion string `json:"softwareVersion"`
	// Version is descriptor_version.
	Version string `json:"version"`
	// VnfmInfo names the VNF managers the VNF is compatible with.
	VnfmInfo []string `json:"vnfmInfo,omitempty"`
	// Flavours are the deployment flavours in import order.
	Flavours []Flavour `json:"flavours"`
	// Files are the package paths of the entry definitions and of all YAML
	// files that it imports, directly or not, the entry first.
	Files []string `json:"files"`
}

// Flavour returns the deployment flavour of that id.
func (d *Descriptor) Flavour(id string) (*Flavour, bool) {
	for i := range d.Flavours {
		if d.Flavours[i].ID == id {
			return &d.Flavours[i], true
		}
	}
	return nil, false
}

// Flavour is a deployment flavour (SOL001 v2.6.1 §6.11). Lists follow the order
// in which the file names the nodes.
type Flavour struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	// File is the package path of the service template the flavour is in.
	File string `json:"file"`

	VDUs           []VDU            `json:"vdus,omitempty"`
	Storages       []VirtualStorage `json:"storages,omitempty"`
	CPs            []CP             `json:"cps,omitempty"`
	VirtualLinks   []VirtualLink    `json:"virtualLinks,omitempty"`
	SoftwareImages []SoftwareImage  `json:"softwareImages,omitempty"`

	Aspects []ScalingAspect      `json:"aspects,omitempty"`
	Levels  []InstantiationLevel `json:"levels,omitempty"`
	// DefaultLevel is default_level, or the only level's id.
	DefaultLevel string         `json:"defaultLevel,omitempty"`
	Affinity     []AffinityRule `json:"affinity,omitempty"`

	// Hooks maps an operation of the Vnflcm interface, e.g. instantiate_end,
	// to the name of the management driver that implements it.
	Hooks map[string]string `json:"hooks,omitempty"`
	// HookArtifacts maps the drivers of Hooks to the package path of their
	// artifact; a driver without an artifact is absent.
	HookArtifacts map[string]string `json:"hookArtifacts,omitempty"`

	// SubstitutionNodeType is the node type the flavour stands for.
	SubstitutionNodeType string `json:"substitutionNodeType,omitempty"`
	// ExternalCPs are the connection points that substitution_mappings expose.
	ExternalCPs []ExternalCP `json:"externalCps,omitempty"`

	// Dict is the descriptor as user data scripts see it: the keys
	// tosca_definitions_version, description and metadata of the entry
	// definitions and topology_template of the flavour, without the VNF node
	// and without the well-known inputs.
	Dict Tree `json:"dict"`
	// Properties are the VNF node's properties over its type's defaults;
	// functions such as get_input are left as they are.
	Properties Tree `json:"properties,omitempty"`
}

// Tree is a YAML mapping as plain data: nested map[string]any, []any, string,
// bool, nil and json.Number, which keeps 1 and 1.0 apart when it travels as
// JSON. Scalars are typed by YAML 1.1's rules, timestamps staying strings.
type Tree map[string]any

// UnmarshalJSON reads a tree with its numbers as they are written.
func (t *Tree) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return err
	}
	*t = m
	return nil
}

// VDU is a node derived from tosca.nodes.nfv.Vdu.Compute (SOL001 v2.6.1 §6.8.3).
type VDU struct {
	// Name is the node's name, the vduId of SOL003.
	Name string `json:"name"`
	// Type is the node's type as written.
	Type string `json:"type"`
	// PropName is the property name: a display name, or the name of the
	// workload that realises the VDU on Kubernetes.
	PropName    string `json:"propName,omitempty"`
	Description string `json:"description,omitempty"`
	// MinInstances and MaxInstances come from vdu_profile.
	MinInstances int `json:"minInstances"`
	MaxInstances int `json:"maxInstances"`
	// InitialInstances is the VduInitialDelta's number of instances.
	InitialInstances *int `json:"initialInstances,omitempty"`
	// VCPUs, RAM and Disk (bytes) come from the virtual_compute capability;
	// Disk is the first local storage.
	VCPUs int   `json:"vcpus,omitempty"`
	RAM   int64 `json:"ram,omitempty"`
	Disk  int64 `json:"disk,omitempty"`
	// FlavorName is requested_additional_capability_name, by convention the
	// name of a compute flavor of the VIM.
	FlavorName string `json:"flavorName,omitempty"`
	// NovaExtraSpecs are compute_requirements.nova_extra_specs.
	NovaExtraSpecs map[string]string `json:"novaExtraSpecs,omitempty"`
	// Storages are the node names of the virtual_storage requirements.
	Storages []string `json:"storages,omitempty"`
	// SoftwareImage is set when the node has sw_image_data.
	SoftwareImage *SoftwareImage `json:"softwareImage,omitempty"`
}

// VirtualStorage is a node derived from one of the virtual storage types of
// SOL001 v2.6.1 §6.8.4 to §6.8.6.
type VirtualStorage struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Size is in bytes.
	Size          int64          `json:"size"`
	SoftwareImage *SoftwareImage `json:"softwareImage,omitempty"`
}

// SoftwareImage is sw_image_data with its artifact (SOL001 v2.6.1 §6.2.37).
type SoftwareImage struct {
	// ID is the name of the node that carries the image.
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Version         string   `json:"version,omitempty"`
	Provider        string   `json:"provider,omitempty"`
	Checksum        Checksum `json:"checksum"`
	ContainerFormat string   `json:"containerFormat,omitempty"`
	DiskFormat      string   `json:"diskFormat,omitempty"`
	// MinDisk, MinRAM and Size are in bytes.
	MinDisk                             int64    `json:"minDisk"`
	MinRAM                              int64    `json:"minRam"`
	Size                                int64    `json:"size"`
	OperatingSystem                     string   `json:"operatingSystem,omitempty"`
	SupportedVirtualisationEnvironments []string `json:"supportedVirtualisationEnvironments,omitempty"`
	// File is the image's path in the package or, when Remote is set, its
	// URL; "" when the node has no image artifact.
	File   string `json:"file,omitempty"`
	Remote bool   `json:"remote,omitempty"`
}

// Checksum is a digest in hexadecimal with its algorithm, sha-224 to sha-512.
type Checksum struct {
	Algorithm string `json:"algorithm"`
	Hash      string `json:"hash"`
}

// CP is a node derived from tosca.nodes.nfv.VduCp (SOL001 v2.6.1 §6.8.8).
type CP struct {
	Name string `json:"name"`
	// VDU and VirtualLink are node names; VirtualLink is "" for a connection
	// point that meets an external link.
	VDU            string   `json:"vdu,omitempty"`
	VirtualLink    string   `json:"virtualLink,omitempty"`
	Order          int      `json:"order"`
	LayerProtocols []string `json:"layerProtocols,omitempty"`
	VnicType       string   `json:"vnicType,omitempty"`
	Description    string   `json:"description,omitempty"`
	// BitrateRequirement is in bits per second, 0 when absent.
	BitrateRequirement int64 `json:"bitrateRequirement,omitempty"`
}

// VirtualLink is a node derived from tosca.nodes.nfv.VnfVirtualLink (SOL001
// v2.6.1 §6.8.9). Bit rates are in bits per second, 0 when absent.
type VirtualLink struct {
	Name           string   `json:"name"`
	Description    string   `json:"description,omitempty"`
	LayerProtocols []string `json:"layerProtocols,omitempty"`
	FlowPattern    string   `json:"flowPattern,omitempty"`
	// CIDR, IPVersion ("ipv4", "ipv6"), Gateway and DHCP come from the first
	// l3_protocol_data.
	CIDR           string `json:"cidr,omitempty"`
	IPVersion      string `json:"ipVersion,omitempty"`
	Gateway        string `json:"gateway,omitempty"`
	DHCP           *bool  `json:"dhcp,omitempty"`
	MaxLeafBitrate int64  `json:"maxLeafBitrate,omitempty"`
	MaxRootBitrate int64  `json:"maxRootBitrate,omitempty"`
	MinLeafBitrate int64  `json:"minLeafBitrate,omitempty"`
	MinRootBitrate int64  `json:"minRootBitrate,omitempty"`
}

// ExternalCP is one entry of substitution_mappings.requirements.
type ExternalCP struct {
	// Requirement is the VNF node type's requirement.
	Requirement string `json:"requirement"`
	// Node is the connection point that meets it, NodeRequirement the
	// requirement of that node.
	Node            string `json:"node"`
	NodeRequirement string `json:"nodeRequirement,omitempty"`
}

// AffinityRule is an AffinityRule or AntiAffinityRule policy (SOL001 v2.6.1
// §6.10.10, §6.10.11).
type AffinityRule struct {
	// Name is the policy's name.
	Name string `json:"name"`
	// Anti tells an anti-affinity rule.
	Anti bool `json:"anti"`
	// Scope is nfvi_node, zone, zone_group or nfvi_pop.
	Scope string `json:"scope"`
	// Targets are node names, those of placement groups included.
	Targets []string `json:"targets,omitempty"`
	// Groups are the placement groups among the policy's targets.
	Groups []string `json:"groups,omitempty"`
}

// ScalingAspect is an aspect of the ScalingAspects policy (SOL001 v2.6.1
// §6.10.5) with the VDUs that it scales.
type ScalingAspect struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	MaxLevel    int    `json:"maxLevel"`
	// StepDeltas names the delta of each step; a single one is for all steps.
	StepDeltas []string `json:"stepDeltas,omitempty"`
	// VDUs lists the targets of the aspect's VduScalingAspectDeltas policies.
	VDUs []VDUDeltas `json:"vdus,omitempty"`
}

// VDUDeltas are the deltas of one VDU in an aspect (SOL001 v2.6.1 §6.10.6).
type VDUDeltas struct {
	VDU    string  `json:"vdu"`
	Deltas []Delta `json:"deltas"`
}

// Delta is a number of instances that a step adds or removes.
type Delta struct {
	ID        string `json:"id"`
	Instances int    `json:"instances"`
}

// InstantiationLevel is a level of the InstantiationLevels policy (SOL001
// v2.6.1 §6.10.2).
type InstantiationLevel struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	// ScaleInfo gives the scale level of each aspect.
	ScaleInfo []ScaleInfo `json:"scaleInfo,omitempty"`
}

// ScaleInfo is an aspect at a scale level.
type ScaleInfo struct {
	Aspect string `json:"aspect"`
	Level  int    `json:"level"`
}
