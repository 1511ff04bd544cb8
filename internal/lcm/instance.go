package lcm

import (
	"encoding/json"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// Instance is a VNF instance (SOL003 v2.6.1 §5.5.2.2) with what the manager needs beside its representation.
type Instance struct {
	ID        string
	ProjectID string
	Name      string
	Desc      string

	VnfdID          string
	PackageID       string
	Provider        string
	ProductName     string
	SoftwareVersion string
	VnfdVersion     string

	State          sol003.InstantiationState
	Info           *sol003.InstantiatedVnfInfo // nil while NOT_INSTANTIATED
	VimConnections []sol003.VimConnectionInfo  // as requested, secrets in clear: sealed at rest, redacted on output
	Metadata       map[string]any
	Extensions     map[string]any
	Configurable   map[string]any

	// Request is what the instance was instantiated with, as the operations since have changed it: what makes it anew when it
	// is healed. Secrets in clear: sealed at rest, never shown. Nil while NOT_INSTANTIATED.
	Request *sol003.InstantiateVnfRequest `json:",omitempty"`

	// Infra is what the instance's InfraDriver keeps about it (stack id, images, parameters): opaque, versioned by the
	// driver, sealed at rest.
	Infra json.RawMessage `json:",omitempty"`

	VimID   string // the registered VIM that the instance lives in; empty while NOT_INSTANTIATED
	Version int64  // grows with every change: the ETag
	Created time.Time
}

// Representation returns the instance as the API shows it, without _links, secrets redacted.
func (i *Instance) Representation() *sol003.VnfInstance {
	r := &sol003.VnfInstance{
		Id: i.ID, VnfInstanceName: i.Name, VnfInstanceDescription: i.Desc,
		VnfdId: i.VnfdID, VnfPkgId: i.PackageID, VnfProvider: i.Provider, VnfProductName: i.ProductName,
		VnfSoftwareVersion: i.SoftwareVersion, VnfdVersion: i.VnfdVersion,
		InstantiationState: i.State, Metadata: RedactMap(i.Metadata), Extensions: RedactMap(i.Extensions),
		VnfConfigurableProperties: RedactMap(i.Configurable),
	}
	if len(r.Metadata) == 0 {
		r.Metadata = nil
	}
	if i.State == sol003.InstantiationStateInstantiated && i.Info != nil {
		info := *i.Info
		info.AdditionalParams = RedactMap(info.AdditionalParams)
		r.InstantiatedVnfInfo = &info
		r.VimConnectionInfo = RedactConnections(i.VimConnections)
	}
	return r
}

// RedactConnections returns a copy of VIM connections without their secrets.
func RedactConnections(in []sol003.VimConnectionInfo) []sol003.VimConnectionInfo {
	out := make([]sol003.VimConnectionInfo, len(in))
	for n, c := range in {
		c.AccessInfo, c.InterfaceInfo, c.Extra = RedactMap(c.AccessInfo), RedactMap(c.InterfaceInfo), RedactMap(c.Extra)
		out[n] = c
	}
	return out
}

// Clone returns a deep copy, so that a step may change its working copy and be run again from the stored one.
func (i *Instance) Clone() *Instance {
	out := new(Instance)
	if err := json.Unmarshal(encode(i), out); err != nil {
		panic("lcm: an Instance always unmarshals: " + err.Error())
	}
	return out
}
