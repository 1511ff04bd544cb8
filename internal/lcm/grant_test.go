package lcm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// asking is an Execution of an operation that asks for a grant.
func asking(t testing.TB, op sol003.LcmOperationType, params string, before, after *sol003.InstantiatedVnfInfo, plan *Plan) *Execution {
	t.Helper()
	return &Execution{
		Op:       &OpOcc{ID: "op", InstanceID: "vnf", Operation: op, Params: json.RawMessage(params)},
		Instance: &Instance{ID: "vnf", VnfdID: "vnfd", Info: after},
		Before:   &Instance{ID: "vnf", VnfdID: "vnfd", Info: before},
		Flavour:  twoVDUs(), Plan: plan,
	}
}

func grantRequestOf(t testing.TB, x *Execution) *sol003.GrantRequest {
	t.Helper()
	r, err := NewGrantRequest(x)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// laidOut is twoVDUs with an external link for CP1, before the VIM is touched.
func laidOut(t testing.TB, newID func() string) *sol003.InstantiatedVnfInfo {
	t.Helper()
	info, err := NewInstantiatedInfo(twoVDUs(), &sol003.InstantiateVnfRequest{FlavourId: "simple", ExtVirtualLinks: []sol003.ExtVirtualLinkData{
		{Id: "ext", ResourceId: "NET", ExtCps: []sol003.VnfExtCpData{{CpdId: "CP1"}}},
	}}, newID)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func clone[T any](t testing.TB, v *T) *T {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// made gives everything a resource in the VIM that is named after its id.
func made(t testing.TB, info *sol003.InstantiatedVnfInfo) *sol003.InstantiatedVnfInfo {
	t.Helper()
	info = clone(t, info)
	fill := func(h *sol003.ResourceHandle, id string) {
		if h.ResourceId == "" {
			*h = sol003.ResourceHandle{ResourceId: "vim-" + id, VimConnectionId: "VIM", VimLevelResourceType: "thing"}
		}
	}
	for n := range info.VnfcResourceInfo {
		fill(&info.VnfcResourceInfo[n].ComputeResource, info.VnfcResourceInfo[n].Id)
	}
	for n := range info.VnfVirtualLinkResourceInfo {
		vl := &info.VnfVirtualLinkResourceInfo[n]
		fill(&vl.NetworkResource, vl.Id)
		for p := range vl.VnfLinkPorts {
			fill(&vl.VnfLinkPorts[p].ResourceHandle, vl.VnfLinkPorts[p].Id)
		}
	}
	for n := range info.VirtualStorageResourceInfo {
		fill(&info.VirtualStorageResourceInfo[n].StorageResource, info.VirtualStorageResourceInfo[n].Id)
	}
	return info
}

// short writes definitions as "TYPE template@vdu[=resource]", sorted.
func short(ds []sol003.ResourceDefinition) []string {
	var out []string
	for _, d := range ds {
		s := fmt.Sprintf("%s %s@%s", d.Type, d.ResourceTemplateId, d.VduId)
		if d.Resource != nil {
			s += "=" + d.Resource.ResourceId[:4]
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func TestNewGrantRequest(t *testing.T) {
	ids := counter()
	fresh := laidOut(t, ids)
	there := made(t, fresh)
	vdu1, vdu2 := there.VnfcResourceInfo[0], there.VnfcResourceInfo[1]
	grown := clone(t, there)
	added := addVnfcs(grown, twoVDUs(), &sol003.InstantiateVnfRequest{ExtVirtualLinks: []sol003.ExtVirtualLinkData{
		{Id: "ext", ResourceId: "NET", ExtCps: []sol003.VnfExtCpData{{CpdId: "CP1"}}}}}, map[string]int{"VDU1": 1}, ids)
	given := clone(t, there)
	given.VnfcResourceInfo[0].VnfcCpInfo[0].VnfExtCpId = "PORT" // CP1 has a port that was brought along
	for n := range given.VnfVirtualLinkResourceInfo {
		for p := range given.VnfVirtualLinkResourceInfo[n].VnfLinkPorts {
			if port := &given.VnfVirtualLinkResourceInfo[n].VnfLinkPorts[p]; port.Id == given.VnfcResourceInfo[0].VnfcCpInfo[0].VnfLinkPortId {
				port.ResourceHandle.ResourceId = "PORT"
			}
		}
	}
	half := clone(t, there)
	half.VnfcResourceInfo[0].ComputeResource = sol003.ResourceHandle{}

	all := []string{"COMPUTE VDU1@VDU1", "COMPUTE VDU2@VDU2", "LINKPORT CP1@VDU1", "LINKPORT CP2@VDU1", "LINKPORT CP3@VDU2", "STORAGE Disk@VDU1", "VL internalVL@"}
	inVIM := func(list ...string) (out []string) {
		for _, s := range list {
			out = append(out, s+"=vim-")
		}
		return out
	}
	vdu1Parts := []string{"COMPUTE VDU1@VDU1", "LINKPORT CP1@VDU1", "LINKPORT CP2@VDU1", "STORAGE Disk@VDU1"}
	for name, c := range map[string]struct {
		op                     sol003.LcmOperationType
		params                 string
		before, after          *sol003.InstantiatedVnfInfo
		plan                   *Plan
		adds, removes, updates []string
	}{
		"instantiate":                    {op: "INSTANTIATE", after: fresh, adds: all},
		"scale out":                      {op: "SCALE", before: there, after: grown, plan: &Plan{Adds: added}, adds: vdu1Parts},
		"scale in":                       {op: "SCALE", before: grown, after: grown, plan: &Plan{Leaves: []string{vdu2.Id}}, removes: inVIM("COMPUTE VDU2@VDU2", "LINKPORT CP3@VDU2")},
		"scale in, taken out already":    {op: "SCALE", before: made(t, grown), after: there, plan: &Plan{Leaves: added}, removes: inVIM(vdu1Parts...)},
		"to level":                       {op: "SCALE_TO_LEVEL", before: there, after: grown, plan: &Plan{Adds: added, Leaves: []string{vdu2.Id}}, adds: vdu1Parts, removes: inVIM("COMPUTE VDU2@VDU2", "LINKPORT CP3@VDU2")},
		"flavour":                        {op: "CHANGE_FLAVOUR", before: there, after: grown, plan: &Plan{Adds: added, Heals: []string{vdu2.Id}}, adds: vdu1Parts, updates: inVIM("COMPUTE VDU2@VDU2")},
		"heal some":                      {op: "HEAL", before: there, after: there, plan: &Plan{Heals: []string{vdu1.Id}}, updates: inVIM("COMPUTE VDU1@VDU1", "STORAGE Disk@VDU1")},
		"heal whole":                     {op: "HEAL", before: there, after: laidOut(t, ids), plan: &Plan{Whole: true}, adds: all, removes: inVIM(all...)},
		"terminate":                      {op: "TERMINATE", before: there, after: there, removes: inVIM(all...)},
		"terminate, a port is given":     {op: "TERMINATE", before: given, after: given, removes: inVIM(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "LINKPORT CP1@VDU1" })...)},
		"terminate, a server is missing": {op: "TERMINATE", before: half, after: half, removes: inVIM(all[1:]...)},
		"operate":                        {op: "OPERATE", before: there, after: there, plan: &Plan{}, updates: inVIM("COMPUTE VDU1@VDU1", "COMPUTE VDU2@VDU2")},
		"connectivity": {op: "CHANGE_EXT_CONN", before: there, after: there, params: `{"extVirtualLinks":[{"id":"n","resourceId":"N","extCps":[{"cpdId":"CP1"}]}]}`,
			updates: inVIM("LINKPORT CP1@VDU1")},
	} {
		t.Run(name, func(t *testing.T) {
			r := grantRequestOf(t, asking(t, c.op, c.params, c.before, c.after, c.plan))
			if d := cmp.Diff([][]string{c.adds, c.removes, c.updates}, [][]string{short(r.AddResources), short(r.RemoveResources), short(r.UpdateResources)}); d != "" {
				t.Errorf("want add, remove, update, got:\n%s", d)
			}
			if r.VnfInstanceId != "vnf" || r.VnfLcmOpOccId != "op" || r.VnfdId != "vnfd" || r.FlavourId != "simple" || string(r.Operation) != string(c.op) {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("no grant is asked for", func(t *testing.T) {
		if _, err := NewGrantRequest(asking(t, "MODIFY_INFO", `{}`, there, there, nil)); !Is(err, KindInternal) {
			t.Error(err)
		}
	})
	t.Run("ids", func(t *testing.T) {
		r := grantRequestOf(t, asking(t, "TERMINATE", "", there, there, nil))
		if r.RemoveResources[0].Id != vdu1.Id || *r.RemoveResources[0].Resource != vdu1.ComputeResource {
			t.Errorf("%+v", r.RemoveResources[0])
		}
	})
}

func TestGrantRequestParameters(t *testing.T) {
	x := asking(t, "INSTANTIATE", `{"flavourId":"simple","instantiationLevelId":"big","additionalParams":{"n":12345678901234567890,"list":[{"password":"geheim","user":"u"}],
		"admin_password":"geheim","url":"http://u:geheim@h/","ssh":{"private_key":"geheim"}}}`, nil, laidOut(t, counter()), nil)
	x.Op.Auto = true
	raw, err := json.Marshal(grantRequestOf(t, x))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	if strings.Contains(text, "geheim") || strings.Contains(text, "admin_password") || strings.Contains(text, "private_key") {
		t.Errorf("a secret is sent: %s", text)
	}
	for _, want := range []string{`"n":12345678901234567890`, `"user":"u"`, `"instantiationLevelId":"big"`, `"isAutomaticInvocation":true`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	x.Op.Params = json.RawMessage(`{`)
	if _, err := NewGrantRequest(x); err == nil {
		t.Error("unreadable parameters pass")
	}
}

func TestPlacementConstraints(t *testing.T) {
	ids := counter()
	fresh := laidOut(t, ids)
	there := made(t, fresh)
	grown := clone(t, there)
	added := addVnfcs(grown, twoVDUs(), &sol003.InstantiateVnfRequest{}, map[string]int{"VDU1": 1}, ids)
	rule := func(scope string, anti bool, targets ...string) vnfd.AffinityRule {
		return vnfd.AffinityRule{Name: "r", Scope: scope, Anti: anti, Targets: targets}
	}
	v1, v2 := fresh.VnfcResourceInfo[0].Id, fresh.VnfcResourceInfo[1].Id
	newRef := func(id string) sol003.ConstraintResourceRef {
		return sol003.ConstraintResourceRef{IdType: "GRANT", ResourceId: id}
	}
	oldRef := func(id string) sol003.ConstraintResourceRef {
		return sol003.ConstraintResourceRef{IdType: "RES_MGMT", ResourceId: "vim-" + id, VimConnectionId: "VIM"}
	}
	constraint := func(kind, scope string, refs ...sol003.ConstraintResourceRef) []sol003.PlacementConstraint {
		return []sol003.PlacementConstraint{{AffinityOrAntiAffinity: sol003.PlacementConstraintAffinityOrAntiAffinity(kind),
			Scope: sol003.PlacementConstraintScope(scope), FallbackBestEffort: true, Resource: refs}}
	}
	for name, c := range map[string]struct {
		op            sol003.LcmOperationType
		before, after *sol003.InstantiatedVnfInfo
		plan          *Plan
		rule          vnfd.AffinityRule
		want          []sol003.PlacementConstraint
	}{
		"node":                 {"INSTANTIATE", nil, fresh, nil, rule("nfvi_node", true, "VDU1", "VDU2"), constraint("ANTI_AFFINITY", "NFVI_NODE", newRef(v1), newRef(v2))},
		"zone":                 {"INSTANTIATE", nil, fresh, nil, rule("zone", false, "VDU1", "VDU2"), constraint("AFFINITY", "ZONE", newRef(v1), newRef(v2))},
		"group":                {"INSTANTIATE", nil, fresh, nil, rule("zone_group", false, "VDU1", "VDU2"), constraint("AFFINITY", "ZONE_GROUP", newRef(v1), newRef(v2))},
		"pop":                  {"INSTANTIATE", nil, fresh, nil, rule("nfvi_pop", false, "VDU1", "VDU2"), constraint("AFFINITY", "NFVI_POP", newRef(v1), newRef(v2))},
		"unknown scope":        {"INSTANTIATE", nil, fresh, nil, rule("", false, "VDU1", "VDU2"), constraint("AFFINITY", "ZONE", newRef(v1), newRef(v2))},
		"one resource":         {"INSTANTIATE", nil, fresh, nil, rule("zone", true, "VDU1"), nil},
		"unknown target":       {"INSTANTIATE", nil, fresh, nil, rule("zone", true, "VDU3"), nil},
		"beside what is there": {"SCALE", there, grown, &Plan{Adds: added}, rule("zone", true, "VDU1"), constraint("ANTI_AFFINITY", "ZONE", newRef(added[0]), oldRef(v1))},
		"other VDU":            {"SCALE", there, grown, &Plan{Adds: added}, rule("zone", true, "VDU2"), nil},
		"renewed":              {"HEAL", there, there, &Plan{Heals: []string{v1}}, rule("zone", true, "VDU1", "VDU2"), constraint("ANTI_AFFINITY", "ZONE", oldRef(v1), oldRef(v2))},
		"whole":                {"HEAL", there, grown, &Plan{Whole: true, Leaves: []string{v1, v2}}, rule("zone", true, "VDU1", "VDU2"), nil},
		"leaving":              {"SCALE", there, there, &Plan{Leaves: []string{v1}}, rule("zone", true, "VDU1", "VDU2"), nil},
		"terminate":            {"TERMINATE", there, there, nil, rule("zone", true, "VDU1", "VDU2"), nil},
		"operate":              {"OPERATE", there, there, nil, rule("zone", true, "VDU1", "VDU2"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := asking(t, c.op, "", c.before, c.after, c.plan)
			x.Flavour.Affinity = []vnfd.AffinityRule{c.rule}
			if d := cmp.Diff(c.want, grantRequestOf(t, x).PlacementConstraints); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNewGrant(t *testing.T) {
	request := &sol003.GrantRequest{VnfInstanceId: "vnf", VnfLcmOpOccId: "op",
		AddResources:    []sol003.ResourceDefinition{{Id: "a", Type: "COMPUTE", VduId: "VDU1"}, {Id: "b", Type: "COMPUTE", VduId: "VDU1"}, {Id: "p", Type: "LINKPORT", VduId: "VDU2"}},
		RemoveResources: []sol003.ResourceDefinition{{Id: "r", Type: "COMPUTE"}}, UpdateResources: []sol003.ResourceDefinition{{Id: "u", Type: "COMPUTE", VduId: "VDU3"}}}
	const whole = `{"id":"g","vnfInstanceId":"vnf","vnfLcmOpOccId":"op","zones":[{"id":"z1","zoneId":"az1"},{"id":"z2","zoneId":"az2"},{"id":"z3","zoneId":""}],
		"addResources":[{"resourceDefinitionId":"a","zoneId":"z1","vimConnectionId":"c1"},{"resourceDefinitionId":"b","zoneId":"z2"},{"resourceDefinitionId":"p","zoneId":"z3"}],
		"removeResources":[{"resourceDefinitionId":"r"}],"updateResources":[{"resourceDefinitionId":"u","zoneId":"z2"}],
		"vimConnections":[{"id":"c1","vimId":"V","vimType":"openstack"}],
		"vimAssets":{"computeResourceFlavours":[{"vnfdVirtualComputeDescId":"VDU1","vimFlavourId":"m1"}],"softwareImages":[{"vnfdSoftwareImageId":"VDU1","vimSoftwareImageId":"img"}]},
		"extVirtualLinks":[{"id":"e","resourceId":"E","extCps":[]}],"extManagedVirtualLinks":[{"id":"m","virtualLinkDescId":"vl","resourceId":"M"}],
		"additionalParams":{"k":"v"}}`
	parse := func(t *testing.T, text string) *sol003.Grant {
		t.Helper()
		g := new(sol003.Grant)
		if err := json.Unmarshal([]byte(text), g); err != nil {
			t.Fatal(err)
		}
		return g
	}
	t.Run("applied", func(t *testing.T) {
		got, err := NewGrant(parse(t, whole), request)
		if err != nil {
			t.Fatal(err)
		}
		want := &Grant{
			ID: "g", Zones: map[string]string{"a": "az1", "b": "az2", "u": "az2"}, VDUZones: map[string]string{"VDU1": "az1", "VDU3": "az2"},
			ResourceConnections: map[string]string{"a": "c1"}, Flavours: map[string]string{"VDU1": "m1"}, Images: map[string]string{"VDU1": "img"},
			Connections:      []sol003.VimConnectionInfo{{Id: "c1", VimId: "V", VimType: "openstack"}},
			ExtLinks:         []sol003.ExtVirtualLinkData{{Id: "e", ResourceId: "E", ExtCps: []sol003.VnfExtCpData{}}},
			ExtManagedLinks:  []sol003.ExtManagedVirtualLinkData{{Id: "m", VirtualLinkDescId: "vl", ResourceId: "M"}},
			AdditionalParams: map[string]any{"k": "v"},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
	for name, c := range map[string]struct{ old, new, says string }{
		"no id":               {`"id":"g",`, ``, "grant error: the grant has no id"},
		"another instance's":  {`"vnfInstanceId":"vnf"`, `"vnfInstanceId":"x"`, "grant error: grant g is for VNF instance x"},
		"another op occ's":    {`"vnfLcmOpOccId":"op"`, `"vnfLcmOpOccId":"x"`, "grant error: grant g is for op occ x"},
		"add missing":         {`{"resourceDefinitionId":"b","zoneId":"z2"},`, ``, "grant add resource error: not answered: b"},
		"add strange":         {`"resourceDefinitionId":"b"`, `"resourceDefinitionId":"c"`, "grant add resource error: not answered: b; not asked for: c"},
		"add twice":           {`"resourceDefinitionId":"b"`, `"resourceDefinitionId":"a"`, "grant add resource error: not answered: b; answered more than once: a"},
		"remove missing":      {`"removeResources":[{"resourceDefinitionId":"r"}],`, ``, "grant remove resource error: not answered: r"},
		"update missing":      {`"updateResources":[{"resourceDefinitionId":"u","zoneId":"z2"}],`, ``, "grant update resource error: not answered: u"},
		"a zone without name": {`"zoneId":"z1","vimC`, `"zoneId":"z9","vimC`, "grant error: resource a is to be in zone z9, which grant g does not describe"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(whole, c.old, c.new, 1)
			if text == whole {
				t.Fatal("nothing replaced")
			}
			got, err := NewGrant(parse(t, text), request)
			var e *Error
			if got != nil || !Is(err, KindTerminal) || !errors.As(err, &e) || e.Detail != c.says {
				t.Errorf("%v, %v; want %q", got, err, c.says)
			}
		})
	}
	t.Run("ids are optional", func(t *testing.T) {
		if _, err := NewGrant(parse(t, strings.Replace(whole, `"vnfInstanceId":"vnf","vnfLcmOpOccId":"op",`, ``, 1)), request); err != nil {
			t.Error(err)
		}
	})
}

// TestGrantProperties: whatever the sizes, each resource is asked for once, at least two are in a constraint, and an NFVO
// that answers what it is asked is understood; one that forgets anything is not.
func TestGrantProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ids := counter()
		f := twoVDUs()
		n := rapid.IntRange(1, 4).Draw(rt, "initial")
		f.VDUs[0].InitialInstances = &n
		f.Affinity = []vnfd.AffinityRule{{Anti: true, Targets: []string{"VDU1"}}}
		info, err := NewInstantiatedInfo(f, &sol003.InstantiateVnfRequest{}, ids)
		if err != nil {
			rt.Fatal(err)
		}
		before := made(t, info)
		after := clone(t, before)
		added := addVnfcs(after, f, &sol003.InstantiateVnfRequest{}, map[string]int{"VDU1": rapid.IntRange(0, 3).Draw(rt, "more")}, ids)
		var leaves []string
		for _, v := range before.VnfcResourceInfo {
			if rapid.Bool().Draw(rt, "leaves") {
				leaves = append(leaves, v.Id)
			}
		}
		x := asking(t, "SCALE_TO_LEVEL", "", before, after, &Plan{Adds: added, Leaves: leaves})
		x.Flavour = f
		r := grantRequestOf(t, x)
		if d := cmp.Diff(r, grantRequestOf(t, x)); d != "" {
			rt.Fatalf("asked again it is another request: %s", d)
		}
		seen := map[string]bool{}
		answer := &sol003.Grant{Id: "g"}
		for _, d := range r.AddResources {
			if seen[d.Id] || d.Resource != nil {
				rt.Fatalf("added: %+v", d)
			}
			seen[d.Id] = true
			answer.AddResources = append(answer.AddResources, sol003.GrantInfo{ResourceDefinitionId: d.Id})
		}
		for _, d := range r.RemoveResources {
			if seen[d.Id] || d.Resource == nil {
				rt.Fatalf("removed: %+v", d)
			}
			seen[d.Id] = true
			answer.RemoveResources = append(answer.RemoveResources, sol003.GrantInfo{ResourceDefinitionId: d.Id})
		}
		for _, id := range added {
			if !seen[id] {
				rt.Fatalf("VNFC %s is not asked for", id)
			}
		}
		for _, c := range r.PlacementConstraints {
			if len(c.Resource) < 2 {
				rt.Fatalf("constraint of one: %+v", c)
			}
		}
		if _, err := NewGrant(answer, r); err != nil {
			rt.Fatal(err)
		}
		if len(answer.AddResources) > 0 {
			k := rapid.IntRange(0, len(answer.AddResources)-1).Draw(rt, "forgotten")
			answer.AddResources = slices.Delete(answer.AddResources, k, k+1)
			if _, err := NewGrant(answer, r); !Is(err, KindTerminal) {
				rt.Fatalf("a forgotten resource passes: %v", err)
			}
		}
	})
}
