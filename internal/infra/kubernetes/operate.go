package kubernetes

import (
	"context"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// operateSteps returns the steps of OPERATE (SOL003 v2.6.1 §5.4.10), or of its rollback: what is stopped has no pods, and what
// is started has as many as are recorded.
func (d *Driver) operateSteps(x *lcm.Execution) ([]lcm.Step, error) {
	var req sol003.OperateVnfRequest
	if err := x.Params(&req); err != nil {
		return nil, err
	}
	prefix, to := "", req.ChangeStateTo
	if x.Op.State == sol003.LcmOperationStateRollingBack {
		prefix, to = "rollback-", sol003.VnfOperationalStateStarted
		if x.Before.Info != nil {
			to = x.Before.Info.VnfState
		}
	}
	return []lcm.Step{
		{Name: prefix + "operate", Effect: true, Timeout: d.cfg.ReadyTimeout, Run: d.operate(to)},
		{Name: prefix + "operate-wait", Timeout: d.cfg.ReadyTimeout + x.Grace() + slack, RetryFrom: prefix + "operate", Run: d.emptied(to)},
		{Name: prefix + "inventory", Timeout: d.cfg.ReadyTimeout, RetryFrom: prefix + "operate", Run: d.operated(to)},
	}, nil
}

// operate returns the Run of the step that has the workloads have pods or none. Terminal: one of them cannot be scaled.
func (d *Driver) operate(to sol003.VnfOperationalState) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		s, w, c, err := d.begin(x)
		if err != nil {
			return lcm.Progress{}, err
		}
		var rights []right
		var fixed []string
		for n := range s.Objects {
			o := &s.Objects[n]
			switch {
			case o.Replicas != nil:
				rights = append(rights, rightsToScale(o, s.Namespace)...)
			case o.VDU != "":
				fixed = append(fixed, o.title(s.Namespace))
			}
		}
		if len(fixed) > 0 && x.Op.State != sol003.LcmOperationStateRollingBack {
			return lcm.Progress{}, lcm.Errorf(lcm.KindTerminal, "%s cannot be stopped or started: it has no number of replicas", strings.Join(fixed, ", "))
		}
		if err := c.review(ctx, rights); err != nil {
			return lcm.Progress{}, err
		}
		for n := range s.Objects {
			o := &s.Objects[n]
			if o.Replicas == nil {
				continue
			}
			replicas := *o.Replicas
			if to == sol003.VnfOperationalStateStopped {
				replicas = 0
			}
			if err := c.setReplicas(ctx, x.Instance.ID, o, s.Namespace, replicas, w); err != nil {
				return lcm.Progress{}, err
			}
		}
		return keep(x, s, w, lcm.Done())
	}
}

// emptied returns the Run of the step that waits until the workloads have the pods that they are to have: those of a VNF that is
// stopped end in time.
func (d *Driver) emptied(to sol003.VnfOperationalState) runFunc {
	wait := d.readyWait(operated)
	if to != sol003.VnfOperationalStateStopped {
		return wait
	}
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		s, w, c, err := d.begin(x)
		if err != nil {
			return lcm.Progress{}, err
		}
		if err := c.hasten(ctx, s, w, endOf(x), x.Now(), func(o *object) bool { return o.Replicas != nil }); err != nil {
			return lcm.Progress{}, err
		}
		if err := saveWork(x, w); err != nil {
			return lcm.Progress{}, err
		}
		return wait(ctx, x)
	}
}

// operated returns the Run of the step that records which pods the VNFCs are; the domain records the state after it.
func (d *Driver) operated(to sol003.VnfOperationalState) runFunc {
	return func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
		x.Instance.Info.VnfState = to
		if to != sol003.VnfOperationalStateStopped {
			return d.inventory(ctx, x)
		}
		fill(x, x.Instance.Info, nil)
		return lcm.Done(), nil
	}
}
