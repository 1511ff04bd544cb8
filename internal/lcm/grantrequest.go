package lcm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// NewGrantRequest asks for what an operation is to do (SOL003 v2.6.1 §9.5.2.2), by its plan, by what the instance consists
// of and by what it is laid out to consist of. The ids of the resource definitions are those of the instance's
// VnfcResourceInfos, virtual links, link ports and storages, so that the same Execution always asks for the same. What
// others have brought along (external and externally managed links, given ports) is not asked for; what has no resource in
// the VIM is not there to be removed or changed. The request's secrets stay out. _links is empty: who sends the request
// knows where we are to be found. Internal: the operation is none that a grant is asked for.
func NewGrantRequest(x *Execution) (*sol003.GrantRequest, error) {
	params, err := grantParams(x.Op)
	if err != nil {
		return nil, err
	}
	req := &sol003.GrantRequest{
		VnfInstanceId: x.Instance.ID, VnfLcmOpOccId: x.Op.ID, VnfdId: x.Instance.VnfdID, FlavourId: x.Flavour.ID,
		Operation: sol003.GrantedLcmOperationType(x.Op.Operation), IsAutomaticInvocation: x.Op.Auto,
		InstantiationLevelId: params.InstantiationLevelID, AdditionalParams: withoutSecrets(params.AdditionalParams),
		UnderscoreLinks: map[string]sol003.Link{},
	}
	d, err := demandOf(x, params)
	if err != nil {
		return nil, err
	}
	req.AddResources, req.RemoveResources, req.UpdateResources = d.adds.new(), d.removes.existing(), d.updates.existing()
	req.PlacementConstraints = d.constraints(x)
	return req, nil
}

// grantedParams is what a grant request repeats of the operation's.
type grantedParams struct {
	InstantiationLevelID string                      `json:"instantiationLevelId"`
	AdditionalParams     map[string]any              `json:"additionalParams"`
	ExtVirtualLinks      []sol003.ExtVirtualLinkData `json:"extVirtualLinks"`
}

func grantParams(op *OpOcc) (p grantedParams, err error) {
	if len(op.Params) == 0 {
		return p, nil
	}
	dec := json.NewDecoder(bytes.NewReader(op.Params))
	dec.UseNumber() // numbers go on as they came
	if err := dec.Decode(&p); err != nil {
		return p, fmt.Errorf("read the parameters of op occ %s: %w", op.ID, err)
	}
	return p, nil
}

// withoutSecrets is RedactMap, but what is secret is not there at all.
func withoutSecrets(m map[string]any) map[string]any {
	var clean func(v any) any
	clean = func(v any) any {
		switch t := v.(type) {
		case map[string]any:
			out := make(map[string]any, len(t))
			for k, e := range t {
				if !SecretKey(k) {
					out[k] = clean(e)
				}
			}
			return out
		case []any:
			out := make([]any, len(t))
			for n, e := range t {
				out[n] = clean(e)
			}
			return out
		default:
			return Redact(v)
		}
	}
	if len(m) == 0 {
		return nil
	}
	out, _ := clean(m).(map[string]any)
	return out
}

// resource is a resource of an instance, with its handle when it is in the VIM, and the VNFC that it belongs to.
type resource struct {
	sol003.ResourceDefinition
	vnfc string // "" for a virtual link
}

type resources []resource

// resourcesOf lists what an instance consists of in the VIM, without what others have brought along.
func resourcesOf(info *sol003.InstantiatedVnfInfo) resources {
	if info == nil {
		return nil
	}
	var out resources
	add := func(kind sol003.ResourceDefinitionType, id, template, vdu, vnfc string, h sol003.ResourceHandle) {
		r := resource{sol003.ResourceDefinition{Id: id, Type: kind, ResourceTemplateId: template, VduId: vdu}, vnfc}
		if h.ResourceId != "" {
			r.Resource = &h
		}
		out = append(out, r)
	}
	links, ports := broughtAlong(info)
	cps, storages := map[string]member{}, map[string]member{} // by the ids of link ports and of storages
	for _, v := range info.VnfcResourceInfo {
		add(sol003.ResourceDefinitionTypeCompute, v.Id, v.VduId, v.VduId, v.Id, v.ComputeResource)
		for _, cp := range v.VnfcCpInfo {
			cps[cp.VnfLinkPortId] = member{v.Id, v.VduId, cp.CpdId}
		}
		for _, s := range v.StorageResourceIds {
			storages[s] = member{vnfc: v.Id, vdu: v.VduId}
		}
	}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		if !links[vl.VnfVirtualLinkDescId] {
			add(sol003.ResourceDefinitionTypeVL, vl.Id, vl.VnfVirtualLinkDescId, "", "", vl.NetworkResource)
		}
	}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		for _, p := range vl.VnfLinkPorts {
			if cp, ok := cps[p.Id]; ok && !ports[p.ResourceHandle.ResourceId] {
				add(sol003.ResourceDefinitionTypeLinkPort, p.Id, cp.cpd, cp.vdu, cp.vnfc, p.ResourceHandle)
			}
		}
	}
	for _, s := range info.VirtualStorageResourceInfo {
		of := storages[s.Id]
		add(sol003.ResourceDefinitionTypeStorage, s.Id, s.VirtualStorageDescId, of.vdu, of.vnfc, s.StorageResource)
	}
	return out
}

// member tells whose a link port or a storage is.
type member struct{ vnfc, vdu, cpd string }

// broughtAlong returns the virtual links, by their descriptors' ids, and the ports, by their ids in the VIM or those of the
// request, that are not the VNF's own.
func broughtAlong(info *sol003.InstantiatedVnfInfo) (links, ports map[string]bool) {
	links, ports = map[string]bool{}, map[string]bool{}
	for _, ext := range info.ExtVirtualLinkInfo {
		links[ext.Id] = true
		for _, p := range ext.ExtLinkPorts {
			ports[p.ResourceHandle.ResourceId] = true
		}
	}
	for _, m := range info.ExtManagedVirtualLinkInfo {
		links[m.VnfVirtualLinkDescId] = true
	}
	for _, v := range info.VnfcResourceInfo {
		for _, cp := range v.VnfcCpInfo {
			ports[cp.VnfExtCpId] = true
		}
	}
	delete(ports, "")
	return links, ports
}

func (rs resources) ids() map[string]bool {
	out := make(map[string]bool, len(rs))
	for _, r := range rs {
		out[r.Id] = true
	}
	return out
}

func (rs resources) where(keep func(resource) bool) resources {
	return slices.DeleteFunc(slices.Clone(rs), func(r resource) bool { return !keep(r) })
}

// of returns the resources of VNFCs, of the given kinds if any.
func (rs resources) of(vnfcs []string, kinds ...sol003.ResourceDefinitionType) resources {
	return rs.where(func(r resource) bool {
		return r.vnfc != "" && slices.Contains(vnfcs, r.vnfc) && (len(kinds) == 0 || slices.Contains(kinds, r.Type))
	})
}

// new are the definitions of resources that are to be made.
func (rs resources) new() []sol003.ResourceDefinition {
	var out []sol003.ResourceDefinition
	for _, r := range rs {
		r.Resource = nil
		out = append(out, r.ResourceDefinition)
	}
	return out
}

// existing are the definitions of resources that are there.
func (rs resources) existing() []sol003.ResourceDefinition {
	var out []sol003.ResourceDefinition
	for _, r := range rs {
		if r.Resource != nil {
			out = append(out, r.ResourceDefinition)
		}
	}
	return out
}

// demand is what an operation does with resources; stays is what is there now and will be there after it.
type demand struct {
	adds, removes, updates, stays resources
}

func demandOf(x *Execution, params grantedParams) (d demand, err error) {
	plan := x.Plan
	if plan == nil {
		plan = &Plan{}
	}
	var was resources
	if x.Before != nil {
		was = resourcesOf(x.Before.Info)
	}
	will := resourcesOf(x.Instance.Info).where(func(r resource) bool { return r.vnfc == "" || !slices.Contains(plan.Leaves, r.vnfc) })
	renewed := was.of(plan.Heals, sol003.ResourceDefinitionTypeCompute, sol003.ResourceDefinitionTypeStorage)
	before, after := was.ids(), will.ids()
	fresh := will.where(func(r resource) bool { return !before[r.Id] })
	switch x.Op.Operation {
	case sol003.LcmOperationTypeInstantiate:
		d.adds = will
	case sol003.LcmOperationTypeScale, sol003.LcmOperationTypeScaleToLevel, sol003.LcmOperationTypeChangeFlavour:
		d.adds, d.removes, d.updates = fresh, was.where(func(r resource) bool { return !after[r.Id] }), renewed
	case sol003.LcmOperationTypeHeal:
		if plan.Whole {
			d.adds, d.removes = will, was
			break
		}
		d.updates = renewed
	case sol003.LcmOperationTypeTerminate:
		d.removes = was
	case sol003.LcmOperationTypeOperate:
		d.updates = was.where(func(r resource) bool { return r.Type == sol003.ResourceDefinitionTypeCompute })
	case sol003.LcmOperationTypeChangeExtConn:
		named := map[string]bool{} // by descriptor
		for _, vl := range params.ExtVirtualLinks {
			for _, cp := range vl.ExtCps {
				named[cp.CpdId] = true
			}
		}
		isNamed := func(r resource) bool {
			return r.Type == sol003.ResourceDefinitionTypeLinkPort && named[r.ResourceTemplateId]
		}
		d.adds, d.updates = fresh.where(isNamed), was.where(isNamed)
	default:
		return d, Errorf(KindInternal, "no grant is asked for %s", x.Op.Operation)
	}
	removed := d.removes.ids()
	d.stays = was.where(func(r resource) bool { return after[r.Id] && !removed[r.Id] })
	return d, nil
}

// constraints says which of the resources that are made must, and which must not, be near one another or near what stays
// (SOL003 v2.6.1 §9.5.3.6), by the VNFD's affinity rules. A rule that nothing new or renewed falls under, or but one
// resource, constrains nothing.
func (d demand) constraints(x *Execution) []sol003.PlacementConstraint {
	var out []sol003.PlacementConstraint
	renewed := d.updates.ids()
	for _, rule := range x.Flavour.Affinity {
		var refs []sol003.ConstraintResourceRef
		under := func(r resource) bool {
			return (r.Type == sol003.ResourceDefinitionTypeCompute || r.Type == sol003.ResourceDefinitionTypeVL) &&
				slices.Contains(rule.Targets, r.ResourceTemplateId)
		}
		for _, r := range d.adds.where(under) {
			refs = append(refs, sol003.ConstraintResourceRef{IdType: sol003.ConstraintResourceRefIdTypeGrant, ResourceId: r.Id})
		}
		placed := len(refs) > 0
		for _, r := range d.stays.where(under) {
			if r.Resource == nil {
				continue
			}
			refs = append(refs, sol003.ConstraintResourceRef{
				IdType: sol003.ConstraintResourceRefIdTypeResMgmt, ResourceId: r.Resource.ResourceId,
				VimConnectionId: r.Resource.VimConnectionId, ResourceProviderId: r.Resource.ResourceProviderId,
			})
			placed = placed || renewed[r.Id] && x.Op.Operation != sol003.LcmOperationTypeOperate
		}
		if !placed || len(refs) < 2 {
			continue
		}
		c := sol003.PlacementConstraint{
			AffinityOrAntiAffinity: sol003.PlacementConstraintAffinityOrAntiAffinityAffinity, Scope: constraintScope(rule),
			FallbackBestEffort: true, Resource: refs,
		}
		if rule.Anti {
			c.AffinityOrAntiAffinity = sol003.PlacementConstraintAffinityOrAntiAffinityAntiAffinity
		}
		out = append(out, c)
	}
	return out
}

// constraintScope maps the VNFD's scope (SOL001 v2.6.1 §6.10.11); a rule without one that is known is about zones.
func constraintScope(rule vnfd.AffinityRule) sol003.PlacementConstraintScope {
	switch rule.Scope {
	case "nfvi_node":
		return sol003.PlacementConstraintScopeNFVINode
	case "zone_group":
		return sol003.PlacementConstraintScopeZoneGroup
	case "nfvi_pop":
		return sol003.PlacementConstraintScopeNFVIPoP
	default:
		return sol003.PlacementConstraintScopeZone
	}
}
