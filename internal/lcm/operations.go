package lcm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// course is how an operation goes beside what the VIM's driver does.
type course struct {
	before, after string // the hooks around the VIM's steps
	// hasBefore and hasAfter tell whether the hooks are due; nil: always.
	hasBefore, hasAfter func(*Plan) bool
	plan                func(*run, *Execution) error // lays the operation out; nil: nothing to lay out
	settle              func(*run, *Execution) error // what becomes of the instance once the VIM's steps are done
}

var courses = map[sol003.LcmOperationType]course{
	sol003.LcmOperationTypeInstantiate: {
		before: "instantiate_start", after: "instantiate_end", plan: (*run).planInstantiation, settle: (*run).remade,
	},
	sol003.LcmOperationTypeTerminate: {before: "terminate_start", after: "terminate_end"},
	sol003.LcmOperationTypeScale: {
		before: "scale_start", after: "scale_end", hasBefore: leaves, hasAfter: adds,
		plan: (*run).planScaling, settle: (*run).scaled,
	},
	sol003.LcmOperationTypeScaleToLevel: {
		before: "scale_start", after: "scale_end", hasBefore: leaves, hasAfter: adds,
		plan: (*run).planScaling, settle: (*run).scaled,
	},
	sol003.LcmOperationTypeHeal: {before: "heal_start", after: "heal_end", plan: (*run).planHealing, settle: (*run).remade},
	sol003.LcmOperationTypeOperate: {
		before: "operate_start", after: "operate_end", settle: (*run).operated,
	},
	sol003.LcmOperationTypeChangeExtConn: {
		before: "change_external_connectivity_start", after: "change_external_connectivity_end", plan: (*run).planExtConn,
	},
	sol003.LcmOperationTypeChangeFlavour: {
		before: "change_flavour_start", after: "change_flavour_end", plan: (*run).planFlavour, settle: (*run).reflavoured,
	},
	sol003.LcmOperationTypeModifyInfo: {before: "modify_information_start", after: "modify_information_end"},
}

func leaves(p *Plan) bool { return len(p.Leaves) > 0 }
func adds(p *Plan) bool   { return len(p.Adds) > 0 }

// steps lays out the operation: what is to be done is settled and the grant asked for; once that is so, the hook before, the
// VIM's steps, the hook after, and the end.
func (r *run) steps() ([]Step, error) {
	if r.op.State == sol003.LcmOperationStateRollingBack {
		return r.rollbackSteps()
	}
	c, ok := courses[r.op.Operation]
	if !ok {
		return nil, Errorf(KindUnsupported, "operation %s is not supported", r.op.Operation)
	}
	var steps []Step
	if r.op.Operation != sol003.LcmOperationTypeModifyInfo {
		leaving, err := r.leaving()
		if err != nil {
			return nil, err
		}
		steps = append(leaving,
			Step{Name: "plan", own: true, Run: r.plan(c)},
			Step{Name: "grant", own: true, Effect: r.engine.Granter.Asks(), Run: r.grant},
			Step{Name: startStep, own: true, Run: r.start})
		if !r.done(startStep) { // what comes after depends on what is planned
			return steps, nil
		}
		if wait := r.grace(); wait != nil {
			steps = append(steps, *wait)
		}
	}
	hook, err := r.hook(c.before, c.hasBefore)
	if err != nil {
		return nil, err
	}
	steps = append(steps, hook...)
	if r.op.Operation != sol003.LcmOperationTypeModifyInfo {
		infra, err := r.infra()
		if err != nil {
			return nil, err
		}
		steps = append(steps, infra...)
		if c.settle != nil {
			steps = append(steps, Step{Name: settleStep, own: true, Run: func(_ context.Context, x *Execution) (Progress, error) {
				return Done(), c.settle(r, x)
			}})
		}
	}
	if hook, err = r.hook(c.after, c.hasAfter); err != nil {
		return nil, err
	}
	return append(append(steps, hook...), Step{Name: "finish", own: true, last: true, Run: r.finish}), nil
}

// startStep is the step with which the operation begins to have effects.
const startStep = "start"

// settleStep is the step with which what the instance consists of is as the VIM has it.
const settleStep = "settle"

// leaving returns the driver's steps that find out which VNFCs the operation takes away.
func (r *run) leaving() ([]Step, error) {
	if r.op.Operation != sol003.LcmOperationTypeScale && r.op.Operation != sol003.LcmOperationTypeScaleToLevel {
		return nil, nil
	}
	driver, err := r.driver()
	if err != nil {
		return nil, err
	}
	if !r.x.Plan.Laid {
		if r.x.Plan.Aspects, err = aspectChanges(r.x); err != nil {
			return nil, err
		}
	}
	in := false
	for _, a := range r.x.Plan.Aspects {
		in = in || !a.Out()
	}
	if !in {
		return nil, nil
	}
	steps, err := driver.Leaving(r.x)
	if err != nil {
		return nil, err
	}
	return prefixed("leaving:", steps), nil
}

// driver returns the driver of the operation's VIM.
func (r *run) driver() (InfraDriver, error) {
	driver, err := r.engine.Infra.Driver(r.x.Target.Type)
	if err != nil {
		return nil, fmt.Errorf("VIM %s: %w", r.x.Target.ID, err)
	}
	return driver, nil
}

// infra returns the steps of the VIM's driver.
func (r *run) infra() ([]Step, error) {
	driver, err := r.driver()
	if err != nil {
		return nil, err
	}
	steps, err := driver.Steps(r.x)
	if err != nil {
		return nil, err
	}
	return prefixed("infra:", steps), nil
}

// hook returns the steps of the management driver that the VNFD names for the hook; none when it names none. Those of a hook
// that turns out not to be due do nothing.
func (r *run) hook(name string, due func(*Plan) bool) ([]Step, error) {
	if r.x.Flavour == nil {
		return nil, nil
	}
	m, err := r.mgmtDriver(name)
	if m == nil || err != nil {
		return nil, err
	}
	steps, err := m.Steps(name, r.x)
	if err != nil {
		return nil, err
	}
	if due != nil {
		for n := range steps {
			run := steps[n].Run
			steps[n].Run = func(ctx context.Context, x *Execution) (Progress, error) {
				if !due(x.Plan) {
					return Done(), nil
				}
				return run(ctx, x)
			}
		}
	}
	return prefixed("hook:"+name+":", steps), nil
}

// mgmtDriver returns the management driver that the VNFD names for the hook, nil when it names none. Terminal: there is no
// such driver.
func (r *run) mgmtDriver(hook string) (MgmtDriver, error) {
	driver := r.x.Flavour.Hooks[hook]
	if driver == "" {
		return nil, nil //nolint:nilnil // no hook is no error
	}
	m, ok := r.engine.Mgmt[driver]
	if !ok {
		return nil, Errorf(KindTerminal, "The %s specified in the VNFD is inconsistent with the MgmtDriver in the configuration file.", driver)
	}
	return m, nil
}

// hooksKnown tells that there are the drivers of the operation's hooks.
func (r *run) hooksKnown(c course) error {
	for _, hook := range []string{c.before, c.after} {
		if _, err := r.mgmtDriver(hook); err != nil {
			return err
		}
	}
	return nil
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

// plan lays the operation out, once: what it added to the instance stays through retries.
func (r *run) plan(c course) func(context.Context, *Execution) (Progress, error) {
	return func(_ context.Context, x *Execution) (Progress, error) {
		if x.Plan.Laid {
			return Done(), nil
		}
		if err := r.hooksKnown(c); err != nil { // while there is nothing to roll back
			return Progress{}, err
		}
		if c.plan != nil {
			if err := c.plan(r, x); err != nil {
				return Progress{}, err
			}
		}
		x.Plan.Laid = true
		return Done(), nil
	}
}

// grant asks for the grant; while there is none the op occ stays in STARTING. What has been granted stays so through
// retries.
func (r *run) grant(ctx context.Context, x *Execution) (Progress, error) {
	if x.Grant != nil {
		return Done(), nil
	}
	g, progress, err := r.engine.Granter.Grant(ctx, x)
	if err != nil || !progress.Finished() {
		return progress, err
	}
	x.Grant = g
	r.op.GrantID = g.ID
	if err := r.retarget(ctx, x); err != nil {
		return Progress{}, err
	}
	return Done(), x.SetWork(grantOwner, g)
}

// retarget goes to the VIM that the grant names (SOL003 v2.6.1 §9.5.2.3, vimConnections): only an instantiation can.
func (r *run) retarget(ctx context.Context, x *Execution) error {
	if len(x.Grant.Connections) == 0 || r.op.Operation != sol003.LcmOperationTypeInstantiate {
		return nil
	}
	target, err := r.engine.VIMs.Resolve(ctx, Scope{ProjectID: r.instance.ProjectID, Admin: true}, x.Grant.Connections[:1])
	if err != nil {
		return fmt.Errorf("find the VIM that the grant names: %w", err)
	}
	x.Target, r.op.VimID = target, target.ID
	x.Instance.VimID = target.ID
	x.Instance.VimConnections = x.Grant.Connections
	var c choice
	if err := x.Work(choiceOwner, &c); err != nil {
		return err
	}
	c.VimID, c.VimType, c.Region, c.ConnectionID = target.ID, target.Type, target.Region, target.ConnectionID
	return x.SetWork(choiceOwner, c)
}

// start enters PROCESSING; the links that the grant names go over the request's.
func (r *run) start(_ context.Context, x *Execution) (Progress, error) {
	if r.op.State != sol003.LcmOperationStateStarting {
		return Done(), nil
	}
	r.enter(sol003.LcmOperationStateProcessing)
	if x.Grant == nil || x.Instance.Info == nil || x.Instance.Request == nil {
		return Done(), nil
	}
	if len(x.Grant.ExtLinks) > 0 {
		x.Instance.Request.ExtVirtualLinks = mergeExtLinks(x.Instance.Request.ExtVirtualLinks, x.Grant.ExtLinks)
		relink(x.Instance.Info, x.Flavour, x.Instance.Request, x.NewID)
	}
	for _, m := range x.Grant.ExtManagedLinks {
		x.Instance.Request.ExtManagedVirtualLinks = slices.DeleteFunc(x.Instance.Request.ExtManagedVirtualLinks,
			func(was sol003.ExtManagedVirtualLinkData) bool { return managedDesc(was) == managedDesc(m) })
		x.Instance.Request.ExtManagedVirtualLinks = append(x.Instance.Request.ExtManagedVirtualLinks, m)
		manageLink(x.Instance.Info, m)
	}
	return Done(), nil
}

// longestGrace is the longest graceful timeout that is kept to, in seconds: ten years.
const longestGrace = 10 * 365 * 24 * 3600

// Grace returns for how long the VNF may take to end, at most, when the operation shuts it down gracefully
// (gracefulTerminationTimeout, gracefulStopTimeout: SOL003 v2.6.1 §5.5.2.8, §5.5.2.10); 0 when it does not, or no time is given.
func (x *Execution) Grace() time.Duration {
	var seconds int
	switch x.Op.Operation {
	case sol003.LcmOperationTypeTerminate:
		var req sol003.TerminateVnfRequest
		if x.Params(&req) == nil && req.TerminationType == sol003.TerminateVnfRequestTerminationTypeGraceful {
			seconds = req.GracefulTerminationTimeout
		}
	case sol003.LcmOperationTypeOperate:
		var req sol003.OperateVnfRequest
		if x.Params(&req) == nil && req.ChangeStateTo == sol003.VnfOperationalStateStopped && req.StopType == sol003.OperateVnfRequestStopTypeGraceful {
			seconds = req.GracefulStopTimeout
		}
	default:
	}
	return time.Duration(max(0, min(seconds, longestGrace))) * time.Second
}

// grace returns the wait that an operation which shuts the VNF down gracefully begins with, nil for none.
func (r *run) grace() *Step {
	grace := r.x.Grace()
	if grace == 0 {
		return nil
	}
	if driver, err := r.driver(); err == nil { // what is wrong with it, its steps tell
		if d, ok := driver.(Graceful); ok && d.ShutsDown(r.op.Operation) {
			return nil
		}
	}
	return &Step{Name: "graceful-wait", own: true, Idle: true, Run: func(_ context.Context, x *Execution) (Progress, error) {
		if left := grace - x.Now().Sub(x.Begun); left > 0 {
			return Wait(left, "the graceful timeout of %s", grace), nil
		}
		return Done(), nil
	}}
}

// finish ends the operation: the instance is what it has become, and what has changed is told.
func (r *run) finish(ctx context.Context, x *Execution) (Progress, error) {
	before := x.Before.Info
	r.op.Error = nil
	switch r.op.Operation {
	case sol003.LcmOperationTypeTerminate:
		r.op.Changes = ResourceChanges(before, nil)
		clearInstance(x.Instance)
		return r.end(ctx, "finish", sol003.LcmOperationStateCompleted)
	case sol003.LcmOperationTypeModifyInfo:
		if err := r.modify(ctx, x); err != nil {
			return Progress{}, err
		}
		return r.end(ctx, "finish", sol003.LcmOperationStateCompleted)
	case sol003.LcmOperationTypeInstantiate:
		x.Instance.State = sol003.InstantiationStateInstantiated
		before = nil
	case sol003.LcmOperationTypeChangeExtConn:
		r.op.ChangedExt = changedLinks(before, x.Instance.Info)
	default:
	}
	r.op.Changes = remade(ResourceChanges(before, x.Instance.Info), x.Instance.Info, x.Plan.Heals)
	return r.end(ctx, "finish", sol003.LcmOperationStateCompleted)
}

// modify changes what is known about the instance (SOL003 v2.6.1 §5.4.3.3.4).
func (r *run) modify(ctx context.Context, x *Execution) error {
	var c choice
	if err := x.Work(choiceOwner, &c); err != nil {
		return err
	}
	var to *Package
	if c.PackageID != "" {
		var err error
		if to, err = r.engine.Packages.Onboarded(ctx, c.PackageID); err != nil {
			return fmt.Errorf("find VNF package %s: %w", c.PackageID, oursIfUnclassed(err))
		}
	}
	m, err := parseModification(x.Op.Params)
	if err != nil {
		return err
	}
	changed := m.apply(x.Instance, to)
	changed.Metadata, changed.Extensions = RedactMap(changed.Metadata), RedactMap(changed.Extensions)
	changed.VnfConfigurableProperties = RedactMap(changed.VnfConfigurableProperties)
	if changed.VimConnectionInfo != nil {
		changed.VimConnectionInfo = RedactConnections(changed.VimConnectionInfo)
	}
	r.op.ChangedInfo = changed
	return nil
}

// targetLevels are the scale levels that a ScaleVnfToLevelRequest asks for.
func targetLevels(f *vnfd.Flavour, req *sol003.ScaleVnfToLevelRequest) map[string]int {
	if req.InstantiationLevelId != "" {
		return levelsOf(f, req.InstantiationLevelId)
	}
	levels := map[string]int{}
	for _, s := range req.ScaleInfo {
		levels[s.AspectId] = s.ScaleLevel
	}
	return levels
}

// end enters the operation's last state and commits all that is pending.
func (r *run) end(ctx context.Context, step string, state sol003.LcmOperationState) (Progress, error) {
	rec := r.record(step)
	rec.Done, rec.DoneAt = true, r.engine.Now()
	r.enter(state)
	if err := r.commit(ctx, rec); err != nil {
		return Progress{}, err
	}
	r.engine.probe(r.point() + "/" + step + "/recorded")
	return Done(), nil
}

// point begins the names of the points of this run.
func (r *run) point() string {
	if r.op.State == sol003.LcmOperationStateRollingBack || r.op.State == sol003.LcmOperationStateRolledBack {
		return "ROLLBACK-" + string(r.op.Operation)
	}
	return string(r.op.Operation)
}

// requestOf returns what the instance was instantiated with.
func requestOf(i *Instance) *sol003.InstantiateVnfRequest {
	if i.Request != nil {
		return i.Request
	}
	return &sol003.InstantiateVnfRequest{
		FlavourId: i.Info.FlavourId, InstantiationLevelId: i.Info.InstantiationLevelId, AdditionalParams: i.Info.AdditionalParams,
		VimConnectionInfo: i.VimConnections,
	}
}

func (r *run) planInstantiation(x *Execution) error {
	var req sol003.InstantiateVnfRequest
	if err := x.Params(&req); err != nil {
		return err
	}
	info, err := NewInstantiatedInfo(x.Flavour, &req, x.NewID)
	if err != nil {
		return err
	}
	x.Instance.Info, x.Instance.Request = info, &req
	x.Instance.VimID = x.Target.ID
	x.Instance.VimConnections = req.VimConnectionInfo
	if len(x.Instance.VimConnections) == 0 {
		x.Instance.VimConnections = []sol003.VimConnectionInfo{{Id: x.NewID(), VimId: x.Target.ID, VimType: x.Target.Type}}
	}
	for name, given := range map[*map[string]any]map[string]any{&x.Instance.Extensions: req.Extensions, &x.Instance.Configurable: req.VnfConfigurableProperties} {
		if len(given) > 0 {
			*name = merge(*name, given)
		}
	}
	return nil
}

// planScaling lays the new members out, and names those that go where the driver has not.
func (r *run) planScaling(x *Execution) error {
	changes, err := aspectChanges(x)
	if err != nil {
		return err
	}
	x.Plan.Aspects = changes
	x.Instance.Request = requestOf(x.Instance)
	chosen := len(x.Plan.Leaves) > 0
	counts := map[string]int{}
	for _, c := range changes {
		a, ok := x.Flavour.Aspect(c.ID)
		if !ok {
			return Errorf(KindTerminal, "flavour '%s' has no scaling aspect '%s'", x.Flavour.ID, c.ID)
		}
		for _, vdu := range x.Flavour.VDUs {
			from, err := a.Added(vdu.Name, c.From)
			if err != nil {
				return Errorf(KindTerminal, "%w", err)
			}
			to, err := a.Added(vdu.Name, c.To)
			if err != nil {
				return Errorf(KindTerminal, "%w", err)
			}
			switch {
			case to > from:
				counts[vdu.Name] += to - from
			case to < from && !chosen:
				x.Plan.Leaves = append(x.Plan.Leaves, lastOf(x.Instance.Info, vdu.Name, from-to)...)
			}
		}
	}
	x.Plan.Adds = addVnfcs(x.Instance.Info, x.Flavour, x.Instance.Request, counts, x.NewID)
	return nil
}

// lastOf returns the ids of the last n VNFCs of a VDU.
func lastOf(info *sol003.InstantiatedVnfInfo, vdu string, n int) []string {
	var ids []string
	for i := len(info.VnfcResourceInfo) - 1; i >= 0 && len(ids) < n; i-- {
		if v := info.VnfcResourceInfo[i]; v.VduId == vdu {
			ids = append(ids, v.Id)
		}
	}
	return ids
}

// aspectChanges tells from what to what level the operation takes which aspects.
func aspectChanges(x *Execution) ([]AspectChange, error) {
	levels := scaleLevels(x.Before.Info)
	if x.Op.Operation == sol003.LcmOperationTypeScale {
		var req sol003.ScaleVnfRequest
		if err := x.Params(&req); err != nil {
			return nil, err
		}
		c := AspectChange{ID: req.AspectId, From: levels[req.AspectId], To: levels[req.AspectId] + cmp.Or(req.NumberOfSteps, 1)}
		if req.Type == sol003.ScaleVnfRequestTypeIn {
			c.To = c.From - cmp.Or(req.NumberOfSteps, 1)
		}
		return []AspectChange{c}, withinLevels(x.Flavour, c)
	}
	var req sol003.ScaleVnfToLevelRequest
	if err := x.Params(&req); err != nil {
		return nil, err
	}
	to := targetLevels(x.Flavour, &req)
	var out []AspectChange
	for _, s := range x.Before.Info.ScaleStatus {
		if level, ok := to[s.AspectId]; ok && level != s.ScaleLevel {
			c := AspectChange{ID: s.AspectId, From: s.ScaleLevel, To: level}
			if err := withinLevels(x.Flavour, c); err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// withinLevels refuses a change beyond the aspect's levels, whatever was checked before.
func withinLevels(f *vnfd.Flavour, c AspectChange) error {
	a, ok := f.Aspect(c.ID)
	if !ok {
		return Errorf(KindTerminal, "flavour '%s' has no scaling aspect '%s'", f.ID, c.ID)
	}
	if c.To < 0 || c.To > a.MaxLevel {
		return Errorf(KindTerminal, "aspect '%s' cannot go from level %d to %d: it has the levels 0 to %d", c.ID, c.From, c.To, a.MaxLevel)
	}
	return nil
}

func scaleLevels(info *sol003.InstantiatedVnfInfo) map[string]int {
	levels := map[string]int{}
	for _, s := range info.ScaleStatus {
		levels[s.AspectId] = s.ScaleLevel
	}
	return levels
}

// scaled settles SCALE and SCALE_TO_LEVEL.
func (r *run) scaled(x *Execution) error {
	dropVnfcs(x.Instance.Info, x.Plan.Leaves)
	for _, c := range x.Plan.Aspects {
		for n := range x.Instance.Info.ScaleStatus {
			if s := &x.Instance.Info.ScaleStatus[n]; s.AspectId == c.ID {
				s.ScaleLevel = c.To
			}
		}
	}
	alignVnfcInfo(x.Instance.Info, x.NewID)
	return nil
}

// planHealing names the VNFCs to be made again, or lays the whole VNF out anew at the scale levels that it has.
func (r *run) planHealing(x *Execution) error {
	var req sol003.HealVnfRequest
	if err := x.Params(&req); err != nil {
		return err
	}
	x.Instance.Request = requestOf(x.Instance)
	x.Plan.Heals = req.VnfcInstanceId
	if len(req.VnfcInstanceId) > 0 {
		return nil
	}
	x.Plan.Whole = true
	info, err := NewInstantiatedInfoAt(x.Flavour, x.Instance.Request, scaleLevels(x.Instance.Info), x.NewID)
	if err != nil {
		return err
	}
	x.Instance.Info = info // what is made anew runs
	return nil
}

// remade settles an operation that has made VNFCs anew.
func (r *run) remade(x *Execution) error {
	alignVnfcInfo(x.Instance.Info, x.NewID)
	return nil
}

// reflavoured settles CHANGE_FLAVOUR.
func (r *run) reflavoured(x *Execution) error {
	followServers(x.Instance.Info, x.Before.Info)
	return r.remade(x)
}

// operated settles OPERATE.
func (r *run) operated(x *Execution) error {
	var req sol003.OperateVnfRequest
	if err := x.Params(&req); err != nil {
		return err
	}
	x.Instance.Info.VnfState = req.ChangeStateTo
	alignVnfcInfo(x.Instance.Info, x.NewID)
	for n := range x.Instance.Info.VnfcInfo {
		x.Instance.Info.VnfcInfo[n].VnfcState = req.ChangeStateTo
	}
	return nil
}

// planExtConn lays the external connectivity out as it is to be.
func (r *run) planExtConn(x *Execution) error {
	var req sol003.ChangeExtVnfConnectivityRequest
	if err := x.Params(&req); err != nil {
		return err
	}
	merged := *requestOf(x.Instance)
	merged.ExtVirtualLinks = mergeExtLinks(merged.ExtVirtualLinks, req.ExtVirtualLinks)
	x.Instance.Request = &merged
	relink(x.Instance.Info, x.Flavour, &merged, x.NewID)
	return nil
}

// planFlavour lays the instance out by its new flavour; what is of the same kind as before keeps its ids.
func (r *run) planFlavour(x *Execution) error {
	var req sol003.ChangeVnfFlavourRequest
	if err := x.Params(&req); err != nil {
		return err
	}
	merged := *requestOf(x.Instance)
	merged.FlavourId, merged.InstantiationLevelId = req.NewFlavourId, req.InstantiationLevelId
	merged.ExtVirtualLinks = mergeExtLinks(merged.ExtVirtualLinks, req.ExtVirtualLinks)
	if len(req.ExtManagedVirtualLinks) > 0 {
		merged.ExtManagedVirtualLinks = req.ExtManagedVirtualLinks
	}
	if len(req.AdditionalParams) > 0 {
		merged.AdditionalParams = req.AdditionalParams
	}
	info, err := NewInstantiatedInfo(x.Flavour, &merged, x.NewID)
	if err != nil {
		return err
	}
	info.VnfState = x.Instance.Info.VnfState
	x.Instance.Request = &merged
	x.Instance.Info = keepIDs(info, x.Instance.Info)
	return nil
}
