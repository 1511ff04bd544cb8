package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// healSteps returns the steps of a HEAL of some VNFCs (SOL003 v2.6.1 §5.4.9): their servers and volumes are marked, and the
// stack is updated, by the templates that the instance's VNFD has now. Ports stay, and so do addresses.
func (d *Driver) healSteps() []lcm.Step {
	return []lcm.Step{
		{Name: imagesStep, Effect: true, Timeout: d.cfg.UploadTimeout, Run: d.images},
		{Name: "images-active", Timeout: d.cfg.ImageTimeout + slack, RetryFrom: imagesStep, Run: d.imagesActive},
		{Name: "parameters", Timeout: d.cfg.StackTimeout, Run: d.healParameters},
		{Name: "mark", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.healMark},
		{Name: "stack-update", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.updateStep(opTag, d.reparametrised)},
		{Name: "stack-wait", Timeout: d.cfg.StackTimeout + slack, RetryFrom: "mark", Run: d.stackWait},
		{Name: "inventory", Timeout: d.cfg.StackTimeout, Run: d.inventory},
		{Name: "images-tidy", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.imagesTidy},
	}
}

// whole tells whether an operation is the HEAL of the whole VNF, by its request: the plan is laid out later.
func whole(x *lcm.Execution) bool {
	var req sol003.HealVnfRequest
	return x.Op.Operation == sol003.LcmOperationTypeHeal && x.Params(&req) == nil && len(req.VnfcInstanceId) == 0
}

// patients returns the VNFCs that are healed.
func patients(x *lcm.Execution) []sol003.VnfcResourceInfo {
	var out []sol003.VnfcResourceInfo
	for _, v := range x.Instance.Info.VnfcResourceInfo {
		if slices.Contains(plan(x).Heals, v.Id) {
			out = append(out, v)
		}
	}
	return out
}

// sickNodes returns the nodes of the VNFD that the VNFCs which are healed are made of: their VDUs and storages.
func sickNodes(x *lcm.Execution) map[string]bool {
	nodes := map[string]bool{}
	for _, v := range patients(x) {
		nodes[v.VduId] = true
		if vdu, ok := x.Flavour.VDU(v.VduId); ok {
			for _, storage := range vdu.Storages {
				nodes[storage] = true
			}
		}
	}
	return nodes
}

// healParameters is the step that makes the parameters of the healed stack: the script's, where it has a method for it;
// else those that there are, with the flavors and images that the VNFD names for what is healed when it is another than
// they were made by.
func (d *Driver) healParameters(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	params, err := d.rescript(ctx, x, "heal", s.Parameters, patients(x))
	if err != nil {
		return lcm.Progress{}, err
	}
	switch {
	case !anew(x, s):
	case x.Instance.Request != nil && translated(x.Instance.Request):
		if params, err = d.rechosen(ctx, x, w, params, sickNodes(x)); err != nil {
			return lcm.Progress{}, err
		}
	default:
		renew(x, params, sickNodes(x))
	}
	if err := d.pinImages(ctx, x, w, params); err != nil {
		return lcm.Progress{}, err
	}
	applyGrant(granted(x, sickNodes(x)), params)
	if said := unheeded(x, sickNodes(x), params); len(said) > 0 {
		x.Log.Warn("what is granted is not followed: other servers would have to move", "granted", said)
	}
	if w.Parameters, err = json.Marshal(params); err != nil {
		return lcm.Progress{}, fmt.Errorf("encode the parameters of the stack: %w", err)
	}
	return lcm.Done(), saveWork(x, w)
}

// renew gives nodes the flavors and images that the VNFD names, where the parameters name any.
func renew(x *lcm.Execution, params map[string]any, nodes map[string]bool) {
	vdus := section(params, "VDU")
	for name := range nodes {
		node, _ := vdus[name].(map[string]any)
		if node == nil {
			continue
		}
		if vdu, ok := x.Flavour.VDU(name); ok && vdu.FlavorName != "" {
			if _, plain := node["flavor"].(string); plain {
				node["flavor"] = vdu.FlavorName
			}
		}
		for _, i := range x.Flavour.SoftwareImages {
			if _, plain := node["image"].(string); plain && i.ID == name && i.Name != "" {
				node["image"] = i.Name
			}
		}
	}
}

// updatable tells whether Heat may be asked to update a stack for a heal: also after a check, whatever it has found, and after
// an update that has failed, which the one that comes brings right too.
func updatable(s *stack) bool {
	switch s.Status {
	case "CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_FAILED", "CHECK_COMPLETE", "CHECK_FAILED":
		return true
	}
	return false
}

// lostPorts returns the ports of the VNFCs to heal that are to be made again, by the ids of the VNFCs' connection points: those
// that are gone, or do not have their addresses any more. The others stay, and so do addresses.
func (c *cloud) lostPorts(ctx context.Context, x *lcm.Execution, list []resource) (map[string]string, error) {
	ports := map[string]string{} // by link port
	for _, vl := range x.Instance.Info.VnfVirtualLinkResourceInfo {
		for _, p := range vl.VnfLinkPorts {
			if p.ResourceHandle.VimConnectionId == x.Target.ID {
				ports[p.Id] = p.ResourceHandle.ResourceId
			}
		}
	}
	lost, ids := map[string]string{}, []string{}
	for _, v := range patients(x) {
		for _, cp := range v.VnfcCpInfo {
			if id := ports[cp.VnfLinkPortId]; id != "" {
				lost[cp.Id] = id
				ids = append(ids, id)
			}
		}
	}
	there, err := c.portsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, v := range patients(x) {
		for n := range v.VnfcCpInfo {
			cp := &v.VnfcCpInfo[n]
			p := there[lost[cp.Id]]
			if p == nil {
				continue
			}
			var r *resource
			if at := slices.IndexFunc(list, func(r resource) bool { return r.ID == p.ID }); at >= 0 {
				r = &list[at]
			}
			addresses, err := c.lost(ctx, cp, p, r)
			if err != nil {
				return nil, err
			}
			if len(addresses) == 0 {
				delete(lost, cp.Id)
			}
		}
	}
	return lost, nil
}

// healMark is the step that marks the servers and volumes of the VNFCs to heal, and ports of theirs that are lost. Those that an
// earlier try has replaced already are gone, and stay so.
func (d *Driver) healMark(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	_, c, err := d.begin(ctx, x)
	if err != nil {
		return lcm.Progress{}, err
	}
	found, _, err := d.own(ctx, x, c)
	if err != nil {
		return lcm.Progress{}, err
	}
	switch {
	case updatable(found):
	case ofOperation(found, x.Op.ID) && strings.HasSuffix(found.Status, "_IN_PROGRESS"):
		return lcm.Wait(d.pause(x), "stack %s (%s) is %s", found.Name, found.ID, found.Status), nil
	default:
		return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal,
			"Healing of vnf instance %s is possible only when stack %s status is CREATE_COMPLETE,UPDATE_COMPLETE, current stack status is %s",
			x.Instance.ID, found.ID, found.Status)
	}
	list, err := c.resources(ctx, found.Name, found.ID)
	if err != nil {
		return lcm.Progress{}, err
	}
	var req sol003.HealVnfRequest
	if err := x.Params(&req); err != nil {
		return lcm.Progress{}, err
	}
	why := cmp.Or(req.Cause, "Healing")
	storages := map[string]sol003.VirtualStorageResourceInfo{}
	for _, s := range x.Instance.Info.VirtualStorageResourceInfo {
		storages[s.Id] = s
	}
	lost, err := c.lostPorts(ctx, x, list)
	if err != nil {
		return lcm.Progress{}, err
	}
	for _, v := range patients(x) {
		marks := map[string]string{v.ComputeResource.ResourceId: v.VduId}
		for _, cp := range v.VnfcCpInfo {
			if id := lost[cp.Id]; id != "" {
				marks[id] = cp.CpdId
			}
		}
		for _, id := range v.StorageResourceIds {
			marks[storages[id].StorageResource.ResourceId] = storages[id].VirtualStorageDescId
		}
		marked := 0
		for n := range list {
			r := &list[n]
			if name, ok := marks[r.ID]; !ok || r.ID == "" || name != r.Name {
				continue
			}
			if err := c.markUnhealthy(ctx, r, why); err != nil {
				return lcm.Progress{}, err
			}
			marked++
		}
		x.Log.Info("a VNFC is marked to be healed", "vnfc", v.Id, "vdu", v.VduId, "server", v.ComputeResource.ResourceId, "resources", marked)
	}
	return lcm.Done(), nil
}

// reparametrised is the stack with the operation's parameters. Groups that have lost members get them again.
func (d *Driver) reparametrised(_ context.Context, x *lcm.Execution, _ *cloud, w *work) (*wish, error) {
	return &wish{flavour: x.Flavour, params: w.Parameters, atLeast: membersOf(x.Flavour, x.Instance.Request, x.Instance.Info)}, nil
}
