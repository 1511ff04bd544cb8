package lcm

import (
	"context"
	"fmt"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// steps lays out the operation: grant, start, the hook before, the VIM's steps, the hook after, finish.
func (r *run) steps() ([]Step, error) {
	if r.op.State == sol003.LcmOperationStateRollingBack {
		return r.rollbackSteps()
	}
	steps := []Step{{Name: "grant", own: true, Run: r.grant}, {Name: "start", own: true, Run: r.start}}
	var before, after string
	var end Step
	switch r.op.Operation {
	case sol003.LcmOperationTypeInstantiate:
		before, after = "instantiate_start", "instantiate_end"
		end = Step{Name: "finish", own: true, Run: r.instantiated}
	case sol003.LcmOperationTypeTerminate:
		before, after = "terminate_start", "terminate_end"
		end = Step{Name: "finish", own: true, Run: r.terminated}
	default:
		return nil, Errorf(KindUnsupported, "operation %s is not supported", r.op.Operation)
	}
	hook, err := r.hook(before)
	if err != nil {
		return nil, err
	}
	steps = append(steps, hook...)
	infra, err := r.infra()
	if err != nil {
		return nil, err
	}
	steps = append(steps, infra...)
	if hook, err = r.hook(after); err != nil {
		return nil, err
	}
	return append(append(steps, hook...), end), nil
}

// infra returns the steps of the VIM's driver.
func (r *run) infra() ([]Step, error) {
	driver, err := r.engine.Infra.Driver(r.x.Target.Type)
	if err != nil {
		return nil, fmt.Errorf("VIM %s: %w", r.x.Target.ID, err)
	}
	steps, err := driver.Steps(r.x)
	if err != nil {
		return nil, err
	}
	return prefixed("infra:", steps), nil
}

// hook returns the steps of the management driver that the VNFD names for the hook; none when it names none.
func (r *run) hook(name string) ([]Step, error) {
	driver := r.x.Flavour.Hooks[name]
	if driver == "" {
		return nil, nil
	}
	m, ok := r.engine.Mgmt[driver]
	if !ok {
		return nil, Errorf(KindTerminal, "The %s specified in the VNFD is inconsistent with the MgmtDriver in the configuration file.", driver)
	}
	steps, err := m.Steps(name, r.x)
	if err != nil {
		return nil, err
	}
	return prefixed("hook:"+name+":", steps), nil
}

// prefixed puts a driver's steps into their place among the operation's.
func prefixed(prefix string, steps []Step) []Step {
	for n := range steps {
		steps[n].Name = prefix + steps[n].Name
		if steps[n].RetryFrom != "" {
			steps[n].RetryFrom = prefix + steps[n].RetryFrom
		}
	}
	return steps
}

// grant asks for the grant; while there is none the op occ stays in STARTING.
func (r *run) grant(ctx context.Context, x *Execution) (Progress, error) {
	g, progress, err := r.engine.Granter.Grant(ctx, x)
	if err != nil || !progress.Finished() {
		return progress, err
	}
	x.Grant = g
	r.op.GrantID = g.ID
	return Done(), x.SetWork(grantOwner, g)
}

// start enters PROCESSING and lays out what the operation is to make.
func (r *run) start(_ context.Context, x *Execution) (Progress, error) {
	if r.op.State == sol003.LcmOperationStateStarting {
		r.enter(sol003.LcmOperationStateProcessing)
	}
	if r.op.Operation != sol003.LcmOperationTypeInstantiate {
		return Done(), nil
	}
	var req sol003.InstantiateVnfRequest
	if err := x.Params(&req); err != nil {
		return Progress{}, err
	}
	info, err := NewInstantiatedInfo(x.Flavour, &req, x.NewID)
	if err != nil {
		return Progress{}, err
	}
	x.Instance.Info = info
	x.Instance.VimID = x.Target.ID
	x.Instance.VimConnections = req.VimConnectionInfo
	if len(x.Instance.VimConnections) == 0 {
		x.Instance.VimConnections = []sol003.VimConnectionInfo{{Id: x.NewID(), VimId: x.Target.ID, VimType: x.Target.Type}}
	}
	return Done(), nil
}

// instantiated ends INSTANTIATE.
func (r *run) instantiated(ctx context.Context, x *Execution) (Progress, error) {
	x.Instance.State = sol003.InstantiationStateInstantiated
	r.op.Changes = ResourceChanges(nil, x.Instance.Info)
	r.op.Error = nil
	return r.end(ctx, "finish", sol003.LcmOperationStateCompleted)
}

// terminated ends TERMINATE: the instance consists of nothing any more.
func (r *run) terminated(ctx context.Context, x *Execution) (Progress, error) {
	r.op.Changes = ResourceChanges(x.Instance.Info, nil)
	clearInstance(x.Instance)
	r.op.Error = nil
	return r.end(ctx, "finish", sol003.LcmOperationStateCompleted)
}

// end enters the operation's last state and commits all that is pending.
func (r *run) end(ctx context.Context, step string, state sol003.LcmOperationState) (Progress, error) {
	rec := r.record(step)
	rec.Done, rec.DoneAt = true, r.engine.Now()
	r.enter(state)
	if err := r.commit(ctx, rec); err != nil {
		return Progress{}, err
	}
	r.engine.probe(string(r.op.Operation) + "/" + step + "/recorded")
	return Done(), nil
}
