package openstack

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/openstack/toscahot"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// extConnSteps returns the steps of CHANGE_EXT_CONN (SOL003 v2.6.1 §5.4.11).
func (d *Driver) extConnSteps() []lcm.Step {
	return []lcm.Step{
		{Name: "parameters", Timeout: d.cfg.StackTimeout, Run: d.extConnParameters},
		{Name: "stack-update", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.updateStep(opTag, d.reparametrised)},
		{Name: "stack-wait", Timeout: d.cfg.StackTimeout + slack, RetryFrom: "stack-update", Run: d.stackWait},
		{Name: "inventory", Timeout: d.cfg.StackTimeout, Run: d.inventory},
		{Name: "record", Timeout: d.cfg.StackTimeout, Run: d.keep},
	}
}

// flavourSteps returns the steps of CHANGE_FLAVOUR (SOL003 v2.6.1 §5.4.7): the stack becomes what the new flavour's Base
// HOT and the script say, or what the new flavour is translated to.
func (d *Driver) flavourSteps() []lcm.Step {
	return []lcm.Step{
		{Name: imagesStep, Effect: true, Timeout: d.cfg.UploadTimeout, Run: d.images},
		{Name: "images-active", Timeout: d.cfg.ImageTimeout + slack, RetryFrom: imagesStep, Run: d.imagesActive},
		{Name: "user-data", Timeout: d.cfg.StackTimeout, Run: d.parameters},
		{Name: "stack-update", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.updateStep(opTag, d.flavoured)},
		{Name: "stack-wait", Timeout: d.cfg.StackTimeout + slack, RetryFrom: "stack-update", Run: d.stackWait},
		{Name: "inventory", Timeout: d.cfg.StackTimeout, Run: d.inventory},
		{Name: "images-tidy", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.imagesTidy},
	}
}

// flavoured is the stack that a change of flavour asks for.
func (d *Driver) flavoured(_ context.Context, x *lcm.Execution, _ *cloud, w *work) (*wish, error) {
	members := membersOf(x.Flavour, x.Instance.Request, x.Instance.Info, plan(x).Leaves...)
	return &wish{flavour: x.Flavour, params: w.Parameters, capacities: members, anew: true}, nil
}

// extConnParameters is the step that puts the networks and addresses of the request into the stack's parameters, or sees that
// the templates which the VNFD is translated to can have them.
func (d *Driver) extConnParameters(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
	w, err := loadWork(x)
	if err != nil {
		return lcm.Progress{}, err
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		return lcm.Progress{}, err
	}
	params, err := s.parameters()
	if err != nil {
		return lcm.Progress{}, err
	}
	var req sol003.ChangeExtVnfConnectivityRequest
	if err := x.Params(&req); err != nil {
		return lcm.Progress{}, err
	}
	if x.Instance.Request != nil && translated(x.Instance.Request) { // the templates have them; here is seen that they can
		var out *toscahot.Output
		if _, out, err = d.translate(ctx, x, toscahot.Input{Flavour: x.Flavour, Request: x.Instance.Request, Parameters: params}); err == nil {
			warn(x, out)
		}
	} else {
		err = reconnect(params, req.ExtVirtualLinks)
	}
	if err != nil {
		return lcm.Progress{}, err
	}
	if w.Parameters, err = json.Marshal(params); err != nil {
		return lcm.Progress{}, fmt.Errorf("encode the parameters of the stack: %w", err)
	}
	return lcm.Done(), saveWork(x, w)
}

// reconnect puts external connection points where links say: nfv.CP.<cpd>.network and .fixed_ips. Addresses of a network
// that is left go with it. Terminal: a connection point is not among the parameters, so its template cannot be told.
func reconnect(params map[string]any, links []sol003.ExtVirtualLinkData) error {
	cps := section(params, "CP")
	for _, vl := range links {
		for _, ext := range vl.ExtCps {
			cp, ok := cps[ext.CpdId].(map[string]any)
			if !ok {
				return lcm.Errorf(lcm.KindTerminal, "VNF ChangeExtConn connection point %s is not among the parameters of the stack (nfv.CP): its network cannot be changed", ext.CpdId)
			}
			moved := cp["network"] != vl.ResourceId
			cp["network"] = vl.ResourceId
			ips, given := fixedIPs(ext)
			if _, has := cp["fixed_ips"]; given || has && moved {
				cp["fixed_ips"] = ips
			}
		}
	}
	return nil
}

// fixedIPs returns a connection point's addresses as Heat's ports have them; given is false when the request says nothing of
// them.
func fixedIPs(cp sol003.VnfExtCpData) (ips []any, given bool) {
	ips = []any{}
	for _, config := range cp.CpConfig {
		for _, data := range config.CpProtocolData {
			if data.IpOverEthernet == nil {
				continue
			}
			for _, a := range data.IpOverEthernet.IpAddresses {
				subnet := map[string]any{}
				if a.SubnetId != "" {
					subnet["subnet"] = a.SubnetId
				}
				for _, fixed := range a.FixedAddresses {
					ip := map[string]any{"ip_address": fixed}
					if a.SubnetId != "" {
						ip["subnet"] = a.SubnetId
					}
					ips = append(ips, ip)
				}
				if len(a.FixedAddresses) == 0 && len(subnet) > 0 {
					ips = append(ips, subnet)
				}
			}
		}
	}
	return ips, len(ips) > 0
}
