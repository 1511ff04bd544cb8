package lcm

import (
	"encoding/json"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// merge applies a merge patch (RFC 7396) to a free-form map: null removes, maps are merged, everything else replaces.
func merge(target, patch map[string]any) map[string]any {
	out := make(map[string]any, len(target)+len(patch))
	for k, v := range target {
		out[k] = v
	}
	for k, v := range patch {
		switch p := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			was, _ := out[k].(map[string]any)
			out[k] = merge(was, p)
		default:
			out[k] = v
		}
	}
	return out
}

// modification is a VnfInfoModificationRequest (SOL003 v2.6.1 §5.5.2.12) in which an attribute that is null can be told
// from one that is absent.
type modification struct {
	patch map[string]json.RawMessage
}

func parseModification(raw json.RawMessage) (modification, error) {
	var m modification
	if err := json.Unmarshal(raw, &m.patch); err != nil {
		return m, Errorf(KindInvalid, "Malformed request body: %w", err)
	}
	return m, nil
}

// text returns the text of an attribute, "" for null; given tells whether it is in the patch.
func (m modification) text(name string) (value string, given bool) {
	raw, given := m.patch[name]
	if given {
		_ = json.Unmarshal(raw, &value) // of the schema's type: checked at the API
	}
	return value, given
}

// pairs applies the patch of a free-form map; changed is nil when it is not in the patch.
func (m modification) pairs(name string, to *map[string]any) (changed map[string]any) {
	raw, given := m.patch[name]
	if !given {
		return nil
	}
	var p map[string]any
	_ = json.Unmarshal(raw, &p) // as above
	if p == nil {
		*to = nil
		return map[string]any{}
	}
	*to = merge(*to, p)
	return withoutNulls(p)
}

// withoutNulls returns a copy of a merge patch without what it removes.
func withoutNulls(p map[string]any) map[string]any { return merge(nil, p) }

// apply changes the instance and returns what has changed (SOL003 v2.6.1 §5.5.2.12a). to is the package that the instance is
// to have, nil for the one it has.
func (m modification) apply(i *Instance, to *Package) *sol003.VnfInfoModifications {
	out := &sol003.VnfInfoModifications{}
	if name, ok := m.text("vnfInstanceName"); ok {
		i.Name, out.VnfInstanceName = name, name
	}
	if desc, ok := m.text("vnfInstanceDescription"); ok {
		i.Desc, out.VnfInstanceDescription = desc, desc
	}
	out.Metadata = m.pairs("metadata", &i.Metadata)
	out.Extensions = m.pairs("extensions", &i.Extensions)
	out.VnfConfigurableProperties = m.pairs("vnfConfigurableProperties", &i.Configurable)
	if raw, ok := m.patch["vimConnectionInfo"]; ok {
		out.VimConnectionInfo = mergeConnections(i, raw)
	}
	if to != nil {
		d := to.Descriptor
		i.PackageID, i.VnfdID, i.Provider, i.ProductName = to.ID, d.ID, d.Provider, d.ProductName
		i.SoftwareVersion, i.VnfdVersion = d.SoftwareVersion, d.Version
		out.VnfPkgId, out.VnfdId, out.VnfProvider, out.VnfProductName = to.ID, d.ID, d.Provider, d.ProductName
		out.VnfSoftwareVersion, out.VnfdVersion = d.SoftwareVersion, d.Version
	}
	return out
}

// mergeConnections merges entries of vimConnectionInfo by their id: one that is there is patched, another is added. It
// returns the entries that were given, as they are now.
func mergeConnections(i *Instance, raw json.RawMessage) []sol003.VimConnectionInfo {
	var patches []map[string]any
	_ = json.Unmarshal(raw, &patches) // checked at the API
	var given []sol003.VimConnectionInfo
	for _, p := range patches {
		id, _ := p["id"].(string)
		n := slices.IndexFunc(i.VimConnections, func(c sol003.VimConnectionInfo) bool { return c.Id == id })
		var was map[string]any
		if n >= 0 {
			whole, _ := json.Marshal(i.VimConnections[n])
			_ = json.Unmarshal(whole, &was)
		}
		whole, _ := json.Marshal(merge(was, p))
		var c sol003.VimConnectionInfo
		if json.Unmarshal(whole, &c) != nil {
			continue
		}
		if n >= 0 {
			i.VimConnections[n] = c
		} else {
			i.VimConnections = append(i.VimConnections, c)
		}
		given = append(given, c)
	}
	return given
}
