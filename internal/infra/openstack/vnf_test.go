package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/infratest"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// vnf is an instance in a lab, whose operations are laid out as the domain does.
type vnf struct {
	*lab
	fsys    fs.FS
	d       *vnfd.Descriptor
	flavour *vnfd.Flavour
	now     *lcm.Instance
	lose    bool              // the first result of every step with an effect
	before  func(step string) // called before every run of a step
	grant   *lcm.Grant        // of the next operation
	log     *slog.Logger      // of the next operation, when it is read
	failed  *lcm.Execution    // the last operation that failed
	steps   *journaled
	// fail names a step of the next operation that fails once; failAfter lets it take effect before.
	fail      string
	failAfter bool
	crash     string              // a step of the next operation whose second run is lost with its process
	runners   []*infratest.Runner // of all operations
}

func newVNF(l *lab, fsys fs.FS, d *vnfd.Descriptor, req *sol003.InstantiateVnfRequest) *vnf {
	l.Helper()
	f, ok := d.Flavour(req.FlavourId)
	if !ok {
		l.Fatalf("no flavour %s", req.FlavourId)
	}
	return &vnf{lab: l, fsys: fsys, d: d, flavour: f, now: &lcm.Instance{ID: uuid.NewString(), Name: "vnf", VnfdID: d.ID, Request: req}}
}

// onlyLeaving makes the steps that the driver finds the leaving VNFCs by those that are run.
type onlyLeaving struct{ *Driver }

func (o onlyLeaving) Steps(x *lcm.Execution) ([]lcm.Step, error) { return o.Leaving(x) }

func (v *vnf) execution(op sol003.LcmOperationType, request any) *lcm.Execution {
	v.Helper()
	params, err := json.Marshal(request)
	if err != nil {
		v.Fatal(err)
	}
	x := infratest.Execution(v.T, op, v.now.Clone(), v.target, v.flavour, json.RawMessage(params), opener(v.fsys))
	x.Before, x.Plan, x.Grant = v.now, &lcm.Plan{}, v.grant
	x.Package = &lcm.Package{ID: "package", Descriptor: v.d}
	if v.log != nil {
		x.Log = v.log
	}
	v.grant, v.log = nil, nil
	return x
}

// run runs an operation's steps, or its retry or rollback.
func (v *vnf) run(x *lcm.Execution, driver lcm.InfraDriver) error {
	r := v.runner()
	if driver == lcm.InfraDriver(v.driver) {
		v.steps = newJournaled(v.driver)
		v.steps.fail, v.steps.after = v.fail, v.failAfter
		v.steps.crash = v.crash
		v.fail, v.crash, driver = "", "", v.steps
	}
	r.Driver, r.LoseFirst, r.Before = driver, v.lose, v.before
	v.runners = append(v.runners, r)
	return r.Run(v.Context(), x)
}

// done ends an operation: what it has become is the instance.
func (v *vnf) done(x *lcm.Execution, err error, settle func(info *sol003.InstantiatedVnfInfo)) error {
	if err != nil {
		v.failed = x
		return err
	}
	if settle != nil {
		settle(x.Instance.Info)
	}
	x.Instance.State = sol003.InstantiationStateInstantiated
	v.now = x.Instance
	return nil
}

func (v *vnf) instantiate() error {
	v.Helper()
	x := v.execution(sol003.LcmOperationTypeInstantiate, v.now.Request)
	var err error
	if x.Instance.Info, err = lcm.NewInstantiatedInfo(v.flavour, v.now.Request, uuid.NewString); err != nil {
		v.Fatal(err)
	}
	return v.done(x, v.run(x, v.driver), nil)
}

// levels are the scale levels.
func (v *vnf) levels() map[string]int {
	out := map[string]int{}
	for _, s := range v.now.Info.ScaleStatus {
		out[s.AspectId] = s.ScaleLevel
	}
	return out
}

func (v *vnf) scale(kind sol003.ScaleVnfRequestType, aspect string, steps int, params map[string]any) error {
	v.Helper()
	from := v.levels()[aspect]
	to := from + steps
	if kind == sol003.ScaleVnfRequestTypeIn {
		to = from - steps
	}
	x := v.execution(sol003.LcmOperationTypeScale, &sol003.ScaleVnfRequest{Type: kind, AspectId: aspect, NumberOfSteps: steps, AdditionalParams: params})
	return v.scaleBy(x, lcm.AspectChange{ID: aspect, From: from, To: to})
}

func (v *vnf) scaleTo(levels map[string]int) error {
	v.Helper()
	req := &sol003.ScaleVnfToLevelRequest{}
	var changes []lcm.AspectChange
	for _, s := range v.now.Info.ScaleStatus {
		if to, ok := levels[s.AspectId]; ok && to != s.ScaleLevel {
			changes = append(changes, lcm.AspectChange{ID: s.AspectId, From: s.ScaleLevel, To: to})
			req.ScaleInfo = append(req.ScaleInfo, sol003.ScaleInfo{AspectId: s.AspectId, ScaleLevel: to})
		}
	}
	return v.scaleBy(v.execution(sol003.LcmOperationTypeScaleToLevel, req), changes...)
}

func (v *vnf) scaleBy(x *lcm.Execution, changes ...lcm.AspectChange) error {
	v.Helper()
	x.Plan.Aspects = changes
	if err := v.run(x, onlyLeaving{v.driver}); err != nil {
		return err
	}
	levels := v.levels()
	for _, c := range changes {
		levels[c.ID] = max(c.From, c.To)
	}
	x.Plan.Adds = v.grow(x.Instance.Info, levels)
	return v.done(x, v.run(x, v.driver), func(info *sol003.InstantiatedVnfInfo) { settleScale(info, x.Plan) })
}

// settleScale is what the domain does after the driver's steps.
func settleScale(info *sol003.InstantiatedVnfInfo, p *lcm.Plan) {
	ports, storages := map[string]bool{}, map[string]bool{}
	info.VnfcResourceInfo = slices.DeleteFunc(info.VnfcResourceInfo, func(v sol003.VnfcResourceInfo) bool {
		if !slices.Contains(p.Leaves, v.Id) {
			return false
		}
		for _, cp := range v.VnfcCpInfo {
			ports[cp.VnfLinkPortId] = true
		}
		for _, s := range v.StorageResourceIds {
			storages[s] = true
		}
		return true
	})
	info.VirtualStorageResourceInfo = slices.DeleteFunc(info.VirtualStorageResourceInfo, func(s sol003.VirtualStorageResourceInfo) bool { return storages[s.Id] })
	for n := range info.VnfVirtualLinkResourceInfo {
		vl := &info.VnfVirtualLinkResourceInfo[n]
		vl.VnfLinkPorts = slices.DeleteFunc(vl.VnfLinkPorts, func(p sol003.VnfLinkPortInfo) bool { return ports[p.Id] })
	}
	for _, c := range p.Aspects {
		for n := range info.ScaleStatus {
			if s := &info.ScaleStatus[n]; s.AspectId == c.ID {
				s.ScaleLevel = c.To
			}
		}
	}
	left := map[string]int{}
	for _, v := range info.VnfcResourceInfo {
		left[v.VduId]++
	}
	info.VnfcInfo = slices.DeleteFunc(info.VnfcInfo, func(v sol003.VnfcInfo) bool { left[v.VduId]--; return left[v.VduId] < 0 })
}

// grow lays out the VNFCs that are there at scale levels and not in info yet, and returns their ids.
func (v *vnf) grow(info *sol003.InstantiatedVnfInfo, levels map[string]int) []string {
	v.Helper()
	full, err := lcm.NewInstantiatedInfoAt(v.flavour, v.now.Request, levels, uuid.NewString)
	if err != nil {
		v.Fatal(err)
	}
	have := map[string]int{}
	for _, c := range info.VnfcResourceInfo {
		have[c.VduId]++
	}
	var ids []string
	for _, c := range full.VnfcResourceInfo {
		if have[c.VduId]--; have[c.VduId] >= 0 {
			continue
		}
		ids = append(ids, c.Id)
		info.VnfcResourceInfo = append(info.VnfcResourceInfo, c)
		for _, s := range full.VirtualStorageResourceInfo {
			if slices.Contains(c.StorageResourceIds, s.Id) {
				info.VirtualStorageResourceInfo = append(info.VirtualStorageResourceInfo, s)
			}
		}
		for n, vl := range full.VnfVirtualLinkResourceInfo {
			for _, p := range vl.VnfLinkPorts {
				if slices.ContainsFunc(c.VnfcCpInfo, func(cp sol003.VnfcCpInfo) bool { return cp.VnfLinkPortId == p.Id }) {
					info.VnfVirtualLinkResourceInfo[n].VnfLinkPorts = append(info.VnfVirtualLinkResourceInfo[n].VnfLinkPorts, p)
				}
			}
		}
	}
	return ids
}

func (v *vnf) heal(ids ...string) error {
	v.Helper()
	x := v.execution(sol003.LcmOperationTypeHeal, &sol003.HealVnfRequest{VnfcInstanceId: ids, Cause: "a test"})
	x.Plan.Heals, x.Plan.Whole = ids, len(ids) == 0
	if len(ids) == 0 {
		var err error
		if x.Instance.Info, err = lcm.NewInstantiatedInfoAt(v.flavour, v.now.Request, v.levels(), uuid.NewString); err != nil {
			v.Fatal(err)
		}
	}
	return v.done(x, v.run(x, v.driver), nil)
}

// changeExtConn moves all external connection points to a network.
func (v *vnf) changeExtConn(network string) error {
	v.Helper()
	req := &sol003.ChangeExtVnfConnectivityRequest{}
	for _, vl := range v.now.Request.ExtVirtualLinks {
		vl.ResourceId = network
		req.ExtVirtualLinks = append(req.ExtVirtualLinks, vl)
	}
	x := v.execution(sol003.LcmOperationTypeChangeExtConn, req)
	x.Instance.Request.ExtVirtualLinks = req.ExtVirtualLinks
	for n := range x.Instance.Info.VnfVirtualLinkResourceInfo {
		vl := &x.Instance.Info.VnfVirtualLinkResourceInfo[n]
		for _, ext := range req.ExtVirtualLinks {
			if ext.Id == vl.VnfVirtualLinkDescId {
				vl.NetworkResource.ResourceId = network
			}
		}
	}
	return v.done(x, v.run(x, v.driver), nil)
}

func (v *vnf) operate(state sol003.VnfOperationalState) error {
	v.Helper()
	x := v.execution(sol003.LcmOperationTypeOperate, &sol003.OperateVnfRequest{ChangeStateTo: state})
	return v.done(x, v.run(x, v.driver), func(info *sol003.InstantiatedVnfInfo) { info.VnfState = state })
}

// retry runs the failed operation again; rollback takes it back.
func (v *vnf) retry() error {
	v.Helper()
	x := v.failed
	v.steps.resume()
	return v.done(x, v.run(x, v.steps), func(info *sol003.InstantiatedVnfInfo) {
		if len(x.Plan.Aspects) > 0 {
			settleScale(info, x.Plan)
		}
	})
}

func (v *vnf) rollback() error {
	v.Helper()
	x := v.failed
	x.Op.State = sol003.LcmOperationStateRollingBack
	if err := v.run(x, v.driver); err != nil {
		return err
	}
	v.now = x.Instance
	return nil
}

func (v *vnf) terminateAll() {
	v.Helper()
	x := v.execution(sol003.LcmOperationTypeTerminate, &sol003.TerminateVnfRequest{TerminationType: sol003.TerminateVnfRequestTerminationTypeForceful})
	v.ok(v.run(x, v.driver))
	if left := v.left(v.now.ID); len(left) > 0 {
		v.Errorf("left: %v", left)
	}
}

// ok fails the test on an error.
func (v *vnf) ok(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// counts returns the number of the instance's VNFCs, by VDU.
func (v *vnf) counts() map[string]int {
	out := map[string]int{}
	for _, c := range v.now.Info.VnfcResourceInfo {
		out[c.VduId]++
	}
	return out
}

// servers returns the server ids of the VDU's VNFCs, by VNFC id.
func (v *vnf) servers(vdu string) map[string]string {
	out := map[string]string{}
	for _, c := range v.now.Info.VnfcResourceInfo {
		if c.VduId == vdu {
			out[c.Id] = c.ComputeResource.ResourceId
		}
	}
	return out
}

// same tells whether the instance consists of exactly what the VIM has of it: every server, port and volume of the stack has
// one handle, and they belong together.
func (v *vnf) same(what string) {
	v.Helper()
	c, err := v.driver.connect(context.WithoutCancel(v.Context()), v.target)
	v.ok(err)
	s, err := loadInfra(v.now)
	v.ok(err)
	list, err := c.resources(v.Context(), stackName(v.now.ID), s.StackID)
	v.ok(err)
	have := map[string]string{} // servers and volumes of the stack
	stacks := map[string]string{}
	for n := range list {
		r := &list[n]
		if r.Status == "CHECK_FAILED" || r.Status == "CREATE_FAILED" || r.Status == "UPDATE_FAILED" {
			v.Errorf("%s: resource %s is %s: %s", what, r.Name, r.Status, r.Reason)
		}
		if r.Type == serverType || r.Type == volumeType {
			have[r.ID], stacks[r.ID] = r.Name, r.stack()
		}
	}
	info := v.now.Info
	state := v.sim.Cloud.State()
	servers, ports := byID(state.Servers), byID(state.Ports)
	used := map[string]bool{}
	one := func(kind string, h sol003.ResourceHandle) {
		if h.ResourceId == "" || used[h.ResourceId] || h.VimConnectionId != v.target.ID {
			v.Errorf("%s: %s has handle %+v (used already: %t)", what, kind, h, used[h.ResourceId])
		}
		used[h.ResourceId] = true
	}
	linkPorts := map[string]sol003.VnfLinkPortInfo{}
	networks := map[string]string{}
	connected := map[string]bool{} // a connection point that is moved to an external link leaves a port of its own link behind
	for _, vnfc := range info.VnfcResourceInfo {
		for _, cp := range vnfc.VnfcCpInfo {
			connected[cp.VnfLinkPortId] = true
		}
	}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		for _, p := range vl.VnfLinkPorts {
			if !connected[p.Id] && p.ResourceHandle.ResourceId == "" {
				continue
			}
			linkPorts[p.Id], networks[p.Id] = p, vl.NetworkResource.ResourceId
			one("port of "+vl.VnfVirtualLinkDescId, p.ResourceHandle)
		}
	}
	storages := map[string]sol003.VirtualStorageResourceInfo{}
	for _, st := range info.VirtualStorageResourceInfo {
		storages[st.Id] = st
		one("storage", st.StorageResource)
	}
	for _, vnfc := range info.VnfcResourceInfo {
		id := vnfc.ComputeResource.ResourceId
		one("VNFC "+vnfc.VduId, vnfc.ComputeResource)
		server := servers[id]
		if server == nil || have[id] != vnfc.VduId || stacks[id] != vnfc.Metadata[homeKey] {
			v.Errorf("%s: VNFC %s has server %s, which is not the stack's (%s in %s)", what, vnfc.VduId, id, have[id], stacks[id])
			continue
		}
		delete(have, id)
		for _, cp := range vnfc.VnfcCpInfo {
			p, ok := linkPorts[cp.VnfLinkPortId]
			if !ok {
				continue // not on a link
			}
			if port := ports[p.ResourceHandle.ResourceId]; port == nil || port["device_id"] != id {
				v.Errorf("%s: port %s of %s is not at server %s", what, p.ResourceHandle.ResourceId, cp.CpdId, id)
			} else if n := networks[p.Id]; n != "" && port["network_id"] != n && v.network(port["network_id"]) != n {
				v.Errorf("%s: port of %s is on network %v (%s), not %s", what, cp.CpdId, port["network_id"], v.network(port["network_id"]), n)
			}
		}
		attached, _ := json.Marshal(server["os-extended-volumes:volumes_attached"])
		for _, st := range vnfc.StorageResourceIds {
			volume := storages[st].StorageResource.ResourceId
			if !slices.Contains(volumesIn(attached), volume) || have[volume] == "" {
				v.Errorf("%s: volume %s is not at server %s: %s", what, volume, id, attached)
			}
			delete(have, volume)
		}
	}
	if len(have) > 0 {
		v.Errorf("%s: the stack has what no VNFC has: %v", what, have)
	}
	perVDU := map[string]int{}
	for _, n := range info.VnfcInfo {
		perVDU[n.VduId]++
	}
	if got := v.counts(); !maps.Equal(perVDU, got) {
		v.Errorf("%s: vnfcInfo has %v, vnfcResourceInfo %v", what, perVDU, got)
	}
	for aspect, level := range v.levels() {
		a, _ := v.flavour.Aspect(aspect)
		for _, vdu := range a.VDUs {
			want, err := v.flavour.InstanceCountAt(vdu.VDU, v.levels())
			v.ok(err)
			if got := v.counts()[vdu.VDU]; got != want {
				v.Errorf("%s: %d VNFCs of %s at level %d of %s, not %d", what, got, vdu.VDU, level, aspect, want)
			}
		}
	}
	v.unchanged(what)
}

// network returns the name of a network.
func (v *vnf) network(id any) string {
	for _, n := range v.sim.Cloud.State().Networks {
		if n["id"] == id {
			return fmt.Sprint(n["name"])
		}
	}
	return ""
}

func byID(list []map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, d := range list {
		out[fmt.Sprint(d["id"])] = d
	}
	return out
}

func volumesIn(raw []byte) (ids []string) {
	var list []struct{ ID string }
	_ = json.Unmarshal(raw, &list)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

// ownPackage reads a package of a folder.
func ownPackage(t testing.TB, fsys fs.FS, entry string) *vnfd.Descriptor {
	t.Helper()
	d, err := vnfd.Read(fsys, entry)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
