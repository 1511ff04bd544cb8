package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// shape is what an instance of a flavour is to consist of.
type shape struct {
	flavour string
	request map[string]any      // an InstantiateVnfRequest without vimConnectionInfo
	vnfcs   map[string]int      // by VDU
	cps     map[string][]string // by VDU
	// external are the CPs that the request connects, by the id of the external link; networks where each leads.
	external map[string][]string
	networks map[string]string
	aspects  []string
	volumes  map[string]int // by VDU, of each of its VNFCs
	links    []string       // virtual links of the VNFD
	levels   map[string]int // scale levels by aspect, where they are not 0
}

func (s *shape) count() int {
	n := 0
	for _, c := range s.vnfcs {
		n += c
	}
	return n
}

// life has the client create, instantiate, show, terminate and delete an instance. With deleteToo the termination
// deletes.
func (l *lab) life(ctx context.Context, t *testing.T, pkg, vnfd, vim string, c candidate, s shape, deleteToo bool) {
	t.Helper()
	id := l.createInstance(ctx, t, vnfd, c)
	l.says(ctx, t, "Instantiate request for VNF Instance "+id+" has been accepted.",
		"vnflcm", "instantiate", id, l.jsonFile(t, "request.json", harness.OnVIM(s.request, vim)))
	op := l.ended(ctx, t, id, sol003.LcmOperationTypeInstantiate)
	rows := l.list(ctx, t, []string{"ID", "Operation State", "VNF Instance ID", "Operation"}, "vnflcm", "op", "list", "--filter", "(eq,vnfInstanceId,"+id+")")
	want := []map[string]string{{"ID": op, "Operation State": "COMPLETED", "VNF Instance ID": id, "Operation": "INSTANTIATE"}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("vnflcm op list (- want, + got):\n%s", diff)
	}
	l.showOp(ctx, t, id, op, s)
	f := l.show(ctx, t, "vnflcm", "show", id)
	f.want(t, "vnflcm show", map[string]string{
		"ID": id, "Instantiated Vnf Info": anything, "Instantiation State": "INSTANTIATED", "Links": anything, "VIM Connection Info": anything,
		"VNF Configurable Properties": "", "VNF Instance Description": "made by a test", "VNF Instance Name": "e2e " + c.product,
		"VNF Product Name": c.product, "VNF Provider": c.provider, "VNF Software Version": c.software, "VNFD ID": vnfd, "VNFD Version": "1.0", "vnfPkgId": "",
	})
	checkLinks(t, f, id, "self", "terminate")
	var connections []map[string]any
	f.json(t, "VIM Connection Info", &connections)
	if len(connections) != 1 || connections[0]["vimId"] != vim || connections[0]["vimType"] != "openstack" {
		t.Errorf("the VIM connections are %v, want one to %s", connections, vim)
	}
	l.checkInfo(t, f, id, vim, s)
	if got := l.state(ctx, t, pkg).UsageState; got != sol003.PackageUsageStateTypeInUse {
		t.Errorf("the usage state of a package with an instance is %s", got)
	}
	l.terminate(ctx, t, id, deleteToo)
}

func (l *lab) createInstance(ctx context.Context, t *testing.T, vnfd string, c candidate) string {
	t.Helper()
	f := l.show(ctx, t, "vnflcm", "create", vnfd, "--name", "e2e "+c.product, "--description", "made by a test")
	f.want(t, "vnflcm create", map[string]string{
		"ID": anything, "Instantiation State": "NOT_INSTANTIATED", "Links": anything, "VNF Configurable Properties": "",
		"VNF Instance Description": "made by a test", "VNF Instance Name": "e2e " + c.product, "VNF Product Name": c.product,
		"VNF Provider": c.provider, "VNF Software Version": c.software, "VNFD ID": vnfd, "VNFD Version": "1.0",
		"vnfPkgId": "", // this client prints attributes that it does not know without their values
	})
	checkLinks(t, f, f.values["ID"], "self", "instantiate")
	return f.values["ID"]
}

// checkLinks checks where the links of an instance lead.
func checkLinks(t *testing.T, f fields, id string, names ...string) {
	t.Helper()
	var links map[string]struct{ Href string }
	f.json(t, "Links", &links)
	for _, name := range names {
		want := "/vnflcm/v1/vnf_instances/" + id
		if name != "self" {
			want += "/" + name
		}
		if got := links[name].Href; !strings.HasSuffix(got, want) {
			t.Errorf("link %s of the instance leads to %q, want %q", name, got, want)
		}
	}
}

// ended waits until the instance's latest operation has completed and returns its id.
func (l *lab) ended(ctx context.Context, t *testing.T, id string, operation sol003.LcmOperationType) string {
	t.Helper()
	ops, err := l.api.OpOccs(ctx, id)
	must(t, err)
	n := slices.IndexFunc(ops, func(o sol003.VnfLcmOpOcc) bool { return o.Operation == operation })
	if n < 0 {
		t.Fatalf("instance %s has no %s", id, operation)
	}
	op, err := l.api.AwaitOpOcc(ctx, ops[n].Id)
	must(t, err)
	if op.OperationState != sol003.LcmOperationStateCompleted {
		t.Fatalf("%s of instance %s is %s: %+v", operation, id, op.OperationState, op.Error)
	}
	return op.Id
}

func (l *lab) showOp(ctx context.Context, t *testing.T, id, op string, s shape) {
	t.Helper()
	f := l.show(ctx, t, "vnflcm", "op", "show", op)
	f.want(t, "vnflcm op show", map[string]string{
		"Cancel Mode": "", "Changed External Connectivity": anything, "Changed Info": "", "Error": "", "Grant ID": anything, "ID": op,
		"Is Automatic Invocation": "False", "Is Cancel Pending": "False", "Links": anything, "Operation": "INSTANTIATE",
		"Operation Parameters": anything, "Operation State": "COMPLETED", "Resource Changes": anything, "Start Time": anything,
		"State Entered Time": anything, "VNF Instance ID": id,
	})
	var changes sol003.ResourceChanges
	f.json(t, "Resource Changes", &changes)
	if len(changes.AffectedVnfcs) != s.count() {
		t.Errorf("%d VNFCs are affected by the instantiation, want %d", len(changes.AffectedVnfcs), s.count())
	}
	for _, v := range changes.AffectedVnfcs {
		if v.ChangeType != "ADDED" {
			t.Errorf("VNFC %s is %s by the instantiation", v.Id, v.ChangeType)
		}
	}
	var params map[string]any
	f.json(t, "Operation Parameters", &params)
	if params["flavourId"] != s.flavour {
		t.Errorf("the operation's parameters name flavour %v", params["flavourId"])
	}
}

// checkInfo holds instantiatedVnfInfo against the shape and against what there is in the cloud.
func (l *lab) checkInfo(t *testing.T, f fields, id, vim string, s shape) {
	t.Helper()
	var attributes map[string]json.RawMessage
	f.json(t, "Instantiated Vnf Info", &attributes)
	for a, has := range map[string]bool{
		"flavourId": true, "vnfState": true, "extCpInfo": true, "vnfcResourceInfo": true, "vnfVirtualLinkResourceInfo": true, "vnfcInfo": true,
		"scaleStatus": len(s.aspects) > 0, "extVirtualLinkInfo": len(s.external) > 0, "additionalParams": s.request["additionalParams"] != nil,
	} {
		if has && (len(attributes[a]) == 0 || string(attributes[a]) == "null") {
			t.Errorf("instantiatedVnfInfo has no %s", a)
		}
	}
	var info sol003.InstantiatedVnfInfo
	f.json(t, "Instantiated Vnf Info", &info)
	if info.FlavourId != s.flavour || info.VnfState != sol003.VnfOperationalStateStarted {
		t.Errorf("flavour %s, state %s", info.FlavourId, info.VnfState)
	}
	var aspects []string
	for _, a := range info.ScaleStatus {
		aspects = append(aspects, a.AspectId)
		if a.ScaleLevel != s.levels[a.AspectId] {
			t.Errorf("aspect %s is at level %d, want %d", a.AspectId, a.ScaleLevel, s.levels[a.AspectId])
		}
	}
	if diff := cmp.Diff(s.aspects, aspects); diff != "" {
		t.Errorf("scaleStatus (- want, + got):\n%s", diff)
	}
	cloud := l.Sim.Cloud.State()
	stack := l.Find(id)
	if stack == nil || !strings.HasSuffix(stack.Status, "_COMPLETE") {
		t.Fatalf("the stack of instance %s: %+v", id, stack)
	}
	if n := serversIn(stack); n != s.count() {
		t.Errorf("the stack has %d servers, want %d", n, s.count())
	}
	checkVnfcs(t, &info, &cloud, vim, s)
	checkExternal(t, &info, s)
	var names []string
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		names = append(names, vl.VnfVirtualLinkDescId)
	}
	want := slices.Clone(s.links)
	for id := range s.external {
		want = append(want, id)
	}
	if diff := cmp.Diff(sorted(want), sorted(names)); diff != "" {
		t.Errorf("vnfVirtualLinkResourceInfo (- want, + got):\n%s", diff)
	}
}

// serversIn counts the servers of a stack and of those within it.
func serversIn(stack *vimsim.StackState) int {
	n := 0
	for _, r := range stack.Resources {
		if r.Type == "OS::Nova::Server" {
			n++
		}
		if r.Nested != nil {
			n += serversIn(r.Nested)
		}
	}
	return n
}

func checkVnfcs(t *testing.T, info *sol003.InstantiatedVnfInfo, cloud *vimsim.State, vim string, s shape) {
	t.Helper()
	ports := map[string]sol003.VnfLinkPortInfo{}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		for _, p := range vl.VnfLinkPorts {
			ports[p.Id] = p
		}
	}
	storages := map[string]sol003.ResourceHandle{}
	for _, v := range info.VirtualStorageResourceInfo {
		storages[v.Id] = v.StorageResource
	}
	counts, seen := map[string]int{}, map[string]bool{}
	handle := func(what string, h sol003.ResourceHandle, kind string, there []map[string]any) map[string]any {
		t.Helper()
		n := slices.IndexFunc(there, func(d map[string]any) bool { return d["id"] == h.ResourceId })
		if n < 0 || seen[h.ResourceId] || h.VimConnectionId != vim || h.VimLevelResourceType != kind {
			t.Errorf("%s: the handle %+v leads to no %s of its own in VIM %s", what, h, kind, vim)
			return nil
		}
		seen[h.ResourceId] = true
		return there[n]
	}
	for _, v := range info.VnfcResourceInfo {
		counts[v.VduId]++
		what := "VNFC " + v.Id + " of " + v.VduId
		handle(what, v.ComputeResource, "OS::Nova::Server", cloud.Servers)
		var cps []string
		for _, cp := range v.VnfcCpInfo {
			cps = append(cps, cp.CpdId)
			p, ok := ports[cp.VnfLinkPortId]
			if !ok || p.CpInstanceId != cp.Id {
				t.Errorf("%s: CP %s and link port %q do not lead to one another", what, cp.CpdId, cp.VnfLinkPortId)
				continue
			}
			if port := handle(what+", CP "+cp.CpdId, p.ResourceHandle, "OS::Neutron::Port", cloud.Ports); port != nil && port["device_id"] != v.ComputeResource.ResourceId {
				t.Errorf("%s: the port of %s is on server %v, not on %s", what, cp.CpdId, port["device_id"], v.ComputeResource.ResourceId)
			}
		}
		if diff := cmp.Diff(s.cps[v.VduId], cps); diff != "" {
			t.Errorf("%s: its CPs (- want, + got):\n%s", what, diff)
		}
		if len(v.StorageResourceIds) != s.volumes[v.VduId] {
			t.Errorf("%s has %d storages, want %d", what, len(v.StorageResourceIds), s.volumes[v.VduId])
		}
		for _, id := range v.StorageResourceIds {
			handle(what, storages[id], "OS::Cinder::Volume", cloud.Volumes)
		}
	}
	if diff := cmp.Diff(s.vnfcs, counts); diff != "" {
		t.Errorf("VNFCs by VDU (- want, + got):\n%s", diff)
	}
	counts = map[string]int{}
	for _, v := range info.VnfcInfo {
		counts[v.VduId]++
		if v.VnfcState != sol003.VnfOperationalStateStarted {
			t.Errorf("VNFC %s is %s", v.Id, v.VnfcState)
		}
	}
	if diff := cmp.Diff(s.vnfcs, counts); diff != "" {
		t.Errorf("vnfcInfo by VDU (- want, + got):\n%s", diff)
	}
}

func checkExternal(t *testing.T, info *sol003.InstantiatedVnfInfo, s shape) {
	t.Helper()
	var want, got []string
	for _, cps := range s.external {
		want = append(want, cps...)
	}
	for _, cp := range info.ExtCpInfo {
		got = append(got, cp.CpdId)
		n := slices.IndexFunc(info.VnfcResourceInfo, func(v sol003.VnfcResourceInfo) bool {
			return v.Id == cp.AssociatedVnfcCpId && slices.ContainsFunc(v.VnfcCpInfo, func(c sol003.VnfcCpInfo) bool { return c.CpdId == cp.CpdId })
		})
		if n < 0 || len(cp.CpProtocolInfo) != 1 || cp.CpProtocolInfo[0].LayerProtocol != sol003.LayerProtocolIPOverEthernet {
			t.Errorf("external CP %s: %+v", cp.CpdId, cp)
		}
	}
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("extCpInfo (- want, + got):\n%s", diff)
	}
	networks := map[string]string{}
	for _, vl := range info.ExtVirtualLinkInfo {
		networks[vl.Id] = vl.ResourceHandle.ResourceId
	}
	if diff := cmp.Diff(s.networks, networks, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("extVirtualLinkInfo (- want, + got):\n%s", diff)
	}
}

// terminate has the client terminate the instance and delete it, and looks for what is left of it in the cloud.
func (l *lab) terminate(ctx context.Context, t *testing.T, id string, deleteToo bool) {
	t.Helper()
	accepted := "Terminate request for VNF Instance '" + id + "' has been accepted."
	deleted := "successfully"
	if deleteToo {
		out := l.ok(ctx, t, "vnflcm", "terminate", id, "--termination-type", "FORCEFUL", "--D")
		for _, line := range []string{accepted, "Waiting for vnf instance to be terminated before deleting", "VNF Instance '" + id + "' is deleted " + deleted} {
			if !strings.Contains(out, line) {
				t.Errorf("vnflcm terminate --D prints %q, without %q", out, line)
			}
		}
	} else {
		l.says(ctx, t, accepted, "vnflcm", "terminate", id, "--graceful-termination-timeout", "1")
		l.ended(ctx, t, id, sol003.LcmOperationTypeTerminate)
		f := l.show(ctx, t, "vnflcm", "show", id)
		f.want(t, "vnflcm show after the termination", map[string]string{
			"ID": id, "Instantiation State": "NOT_INSTANTIATED", "Links": anything, "VIM Connection Info": "", "VNF Configurable Properties": "",
			"VNF Instance Description": anything, "VNF Instance Name": anything, "VNF Product Name": anything, "VNF Provider": anything,
			"VNF Software Version": anything, "VNFD ID": anything, "VNFD Version": anything, "vnfPkgId": "",
		})
		checkLinks(t, f, id, "self", "instantiate")
		l.says(ctx, t, "Vnf instance '"+id+"' is deleted "+deleted, "vnflcm", "delete", id)
	}
	if stack := l.Find(id); stack != nil {
		t.Errorf("stack %s is left in %s", stack.Name, stack.Status)
	}
	if _, err := l.api.Instance(ctx, id); err == nil {
		t.Errorf("instance %s is still there after its deletion", id)
	}
}
