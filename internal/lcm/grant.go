package lcm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// AllowAll is the Granter of a manager that has no NFVO to ask: it grants everything at once.
type AllowAll struct{}

// Asks implements Granter.
func (AllowAll) Asks() bool { return false }

// Grant implements Granter.
func (AllowAll) Grant(context.Context, *Execution) (*Grant, Progress, error) {
	return &Grant{}, Done(), nil
}

// grantOwner is under whom an operation's grant is kept among its work.
const grantOwner = "grant"

// Grant is what the NFVO granted, as the domain and its drivers use it (SOL003 v2.6.1 §9.5.2.3). What it names takes the
// place of what the operation's request named.
type Grant struct {
	ID string
	// Zones are the VIM's zones of the resources that are made or changed, by their definitions' ids: those of
	// VnfcResourceInfos, virtual links, link ports and storages.
	Zones map[string]string
	// VDUZones are the zones of VDUs, by their names: for each the first that one of its VNFCs was given.
	VDUZones map[string]string
	// ResourceConnections are the ids of the VIM connections that resources are to be made by, by their definitions' ids.
	ResourceConnections map[string]string
	Flavours            map[string]string // vnfdVirtualComputeDescId → VIM flavour id
	Images              map[string]string // vnfdSoftwareImageId → VIM image id
	Connections         []sol003.VimConnectionInfo
	ExtLinks            []sol003.ExtVirtualLinkData
	ExtManagedLinks     []sol003.ExtManagedVirtualLinkData
	AdditionalParams    map[string]any
}

// NewGrant makes of the NFVO's answer to a request what the operation goes by, after it has seen that the answer is about this
// operation and grants each resource of the request once, and nothing else. Terminal: it is not so.
func NewGrant(answer *sol003.Grant, request *sol003.GrantRequest) (*Grant, error) {
	switch {
	case answer.Id == "":
		return nil, Errorf(KindTerminal, "grant error: the grant has no id")
	case answer.VnfInstanceId != "" && answer.VnfInstanceId != request.VnfInstanceId:
		return nil, Errorf(KindTerminal, "grant error: grant %s is for VNF instance %s", answer.Id, answer.VnfInstanceId)
	case answer.VnfLcmOpOccId != "" && answer.VnfLcmOpOccId != request.VnfLcmOpOccId:
		return nil, Errorf(KindTerminal, "grant error: grant %s is for op occ %s", answer.Id, answer.VnfLcmOpOccId)
	}
	for _, list := range []struct {
		name  string
		asked []sol003.ResourceDefinition
		given []sol003.GrantInfo
	}{
		{"add", request.AddResources, answer.AddResources},
		{"remove", request.RemoveResources, answer.RemoveResources},
		{"update", request.UpdateResources, answer.UpdateResources},
	} {
		if wrong := mismatch(list.asked, list.given); wrong != "" {
			return nil, Errorf(KindTerminal, "grant %s resource error: %s", list.name, wrong)
		}
	}
	g := &Grant{
		ID: answer.Id, Zones: map[string]string{}, VDUZones: map[string]string{}, ResourceConnections: map[string]string{},
		Flavours: map[string]string{}, Images: map[string]string{}, Connections: answer.VimConnections,
		ExtLinks: answer.ExtVirtualLinks, ExtManagedLinks: answer.ExtManagedVirtualLinks, AdditionalParams: answer.AdditionalParams,
	}
	if assets := answer.VimAssets; assets != nil {
		for _, f := range assets.ComputeResourceFlavours {
			g.Flavours[f.VnfdVirtualComputeDescId] = f.VimFlavourId
		}
		for _, i := range assets.SoftwareImages {
			g.Images[i.VnfdSoftwareImageId] = i.VimSoftwareImageId
		}
	}
	if err := g.place(answer, request); err != nil {
		return nil, err
	}
	return g, nil
}

// mismatch says how the answer's list differs from the resources asked for; "" when it does not.
func mismatch(asked []sol003.ResourceDefinition, given []sol003.GrantInfo) string {
	answered := make(map[string]int, len(given))
	for _, i := range given {
		answered[i.ResourceDefinitionId]++
	}
	var missing, twice, strange []string
	for _, d := range asked {
		switch answered[d.Id] {
		case 0:
			missing = append(missing, d.Id)
		case 1:
		default:
			twice = append(twice, d.Id)
		}
		delete(answered, d.Id)
	}
	for id := range answered {
		strange = append(strange, id)
	}
	slices.Sort(strange)
	var wrong []string
	for _, w := range []struct {
		how string
		ids []string
	}{{"not answered", missing}, {"answered more than once", twice}, {"not asked for", strange}} {
		if len(w.ids) > 0 {
			wrong = append(wrong, w.how+": "+someOf(w.ids))
		}
	}
	return strings.Join(wrong, "; ")
}

// someOf names the first few of ids.
func someOf(ids []string) string {
	const most = 5
	if len(ids) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
	}
	return strings.Join(ids, ", ")
}

// place resolves the zones and connections of resources. Terminal: a zone that the grant does not describe.
func (g *Grant) place(answer *sol003.Grant, request *sol003.GrantRequest) error {
	zones := make(map[string]string, len(answer.Zones))
	for _, z := range answer.Zones {
		zones[z.Id] = z.ZoneId
	}
	vdus := map[string]string{} // of computes, by definition
	for _, d := range slices.Concat(request.AddResources, request.UpdateResources) {
		if d.Type == sol003.ResourceDefinitionTypeCompute {
			vdus[d.Id] = d.VduId
		}
	}
	for _, i := range slices.Concat(answer.AddResources, answer.UpdateResources) {
		if i.VimConnectionId != "" {
			g.ResourceConnections[i.ResourceDefinitionId] = i.VimConnectionId
		}
		if i.ZoneId == "" {
			continue
		}
		zone, ok := zones[i.ZoneId]
		if !ok {
			return Errorf(KindTerminal, "grant error: resource %s is to be in zone %s, which grant %s does not describe",
				i.ResourceDefinitionId, i.ZoneId, g.ID)
		}
		if zone == "" {
			continue
		}
		g.Zones[i.ResourceDefinitionId] = zone
		if vdu := vdus[i.ResourceDefinitionId]; vdu != "" && g.VDUZones[vdu] == "" {
			g.VDUZones[vdu] = zone
		}
	}
	return nil
}
