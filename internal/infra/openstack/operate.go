package openstack

import (
	"context"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// operateSteps returns the steps of OPERATE (SOL003 v2.6.1 §5.4.10), or of its rollback: Nova is asked to start or stop the
// servers, and waited for.
func (d *Driver) operateSteps(x *lcm.Execution) ([]lcm.Step, error) {
	var req sol003.OperateVnfRequest
	if err := x.Params(&req); err != nil {
		return nil, err
	}
	all := func(state sol003.VnfOperationalState) statesFunc {
		return func(x *lcm.Execution) []sol003.VnfOperationalState {
			out := make([]sol003.VnfOperationalState, len(x.Instance.Info.VnfcResourceInfo))
			for n := range out {
				out[n] = state
			}
			return out
		}
	}
	prefix, states := "", all(req.ChangeStateTo)
	if x.Op.State == sol003.LcmOperationStateRollingBack {
		prefix, states = "rollback-", statesBefore
	}
	return []lcm.Step{
		{Name: prefix + "servers", Effect: true, Timeout: d.cfg.StackTimeout, Run: d.operate(states)},
		{Name: prefix + "servers-wait", Timeout: d.cfg.StackTimeout + slack, RetryFrom: prefix + "servers", Run: d.operateWait(states)},
	}, nil
}

// statesFunc tells the states that the VNFCs of the instance are to have, in their order.
type statesFunc func(x *lcm.Execution) []sol003.VnfOperationalState

// statesBefore are the states that the VNFCs had before the operation.
func statesBefore(x *lcm.Execution) []sol003.VnfOperationalState {
	had := map[string][]sol003.VnfOperationalState{}
	for _, v := range x.Before.Info.VnfcInfo {
		had[v.VduId] = append(had[v.VduId], v.VnfcState)
	}
	out := make([]sol003.VnfOperationalState, 0, len(x.Instance.Info.VnfcResourceInfo))
	for _, v := range x.Instance.Info.VnfcResourceInfo {
		state := x.Before.Info.VnfState
		if of := had[v.VduId]; len(of) > 0 {
			state, had[v.VduId] = of[0], of[1:]
		}
		out = append(out, state)
	}
	return out
}

// operate returns the Run of the step that asks Nova to bring every server to its state. One that is there stays.
func (d *Driver) operate(states statesFunc) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		c, err := d.connect(ctx, x.Target)
		if err != nil {
			return lcm.Progress{}, err
		}
		for n, want := range states(x) {
			v := x.Instance.Info.VnfcResourceInfo[n]
			s, err := c.serverOf(ctx, v)
			if err != nil {
				return lcm.Progress{}, err
			}
			action := ""
			switch {
			case s.Task != "":
				return lcm.Wait(d.pause(x), "server %s of VDU %s is %s", s.ID, v.VduId, s.Task), nil
			case want == sol003.VnfOperationalStateStopped && s.Status != serverOff:
				action = "os-stop"
			case want == sol003.VnfOperationalStateStarted && s.Status == serverOff:
				action = "os-start"
			case want == sol003.VnfOperationalStateStarted && s.Status == serverError:
				action = "reboot" // the only way out that keeps the server
			}
			if action == "" {
				continue
			}
			if err := c.serverAction(ctx, s.ID, action); err != nil {
				return lcm.Progress{}, err
			}
		}
		return lcm.Done(), nil
	}
}

// serverOf reads a VNFC's server. Terminal: it is gone, or was never there.
func (c *cloud) serverOf(ctx context.Context, v sol003.VnfcResourceInfo) (*server, error) {
	id := v.ComputeResource.ResourceId
	if id == "" {
		return nil, lcm.Errorf(lcm.KindTerminal, "VNFC %s of VDU %s has no server", v.Id, v.VduId)
	}
	s, err := c.server(ctx, id)
	if err == nil && s == nil {
		err = lcm.Errorf(lcm.KindTerminal, "server %s of VDU %s is gone from VIM %s", id, v.VduId, c.name)
	}
	return s, err
}

// operateWait returns the Run of the step that waits until every server is in its state, and records it.
func (d *Driver) operateWait(states statesFunc) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		c, err := d.connect(ctx, x.Target)
		if err != nil {
			return lcm.Progress{}, err
		}
		waited := x.Now().Sub(x.Begun)
		wanted := states(x)
		alignStates(x)
		for n, want := range wanted {
			v := x.Instance.Info.VnfcResourceInfo[n]
			s, err := c.serverOf(ctx, v)
			if err != nil {
				return lcm.Progress{}, err
			}
			status := map[sol003.VnfOperationalState]string{sol003.VnfOperationalStateStarted: serverActive, sol003.VnfOperationalStateStopped: serverOff}[want]
			switch {
			case s.Status == status && s.Task == "":
				x.Instance.Info.VnfcInfo[n].VnfcState = want
				continue
			case s.Status == serverError && s.Task == "" && waited >= d.cfg.Settle:
				return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "server %s (%s) of VDU %s in VIM %s is ERROR, not %s: %s", s.ID, s.Name, v.VduId, c.name, status, cut(s.Fault.Message))
			case waited >= d.cfg.StackTimeout:
				return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "server %s (%s) of VDU %s in VIM %s is %s, not %s, after %g seconds%s", s.ID, s.Name, v.VduId, c.name, s.Status, status,
					d.cfg.StackTimeout.Seconds(), s.trouble())
			}
			return lcm.Wait(d.pause(x), "server %s of VDU %s is %s", s.ID, v.VduId, s.Status), nil
		}
		return lcm.Done(), nil
	}
}
