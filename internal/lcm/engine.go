package lcm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// Engine runs accepted operations step by step. It keeps nothing between runs: any node goes on where another stopped.
type Engine struct {
	Store    Store
	Packages Packages
	VIMs     VIMs
	Infra    InfraDrivers
	Mgmt     map[string]MgmtDriver // by the name that VNFDs give as a hook's implementation
	Granter  Granter
	Now      func() time.Time
	NewID    func() string
	Log      *slog.Logger
	// Probe, when set, is called at each point where a crash matters: "<operation>/<step>/before" when a step is about to
	// run (the intent of one with an effect is committed), "…/after" when it has run and nothing is recorded yet,
	// "…/recorded" when the result of one with an effect, or the operation's end, is. A step that waits passes again.
	Probe func(point string)
	// Observe, when set, is told of an op occ whenever it has entered a state.
	Observe func(op *OpOcc)

	mu      sync.Mutex
	running map[string]*interrupt // by op occ
}

// interrupt is how a request to cancel reaches an operation that is being run in this process.
type interrupt struct {
	stop context.CancelCauseFunc
	seen bool
}

// ErrShutdown is the cause with which a node that stops cancels what it runs; the work is handed over.
var ErrShutdown = errors.New("this node is shutting down")

// errInterrupted is the cause with which a forceful cancellation cuts a step off.
var errInterrupted = errors.New("the operation is being canceled")

// Interrupt makes this process look at once at the request to cancel that an op occ has, if it runs it: with FORCEFUL the step
// under way is cut off.
func (e *Engine) Interrupt(opOccID string, mode sol003.CancelModeType) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := e.running[opOccID]
	if i == nil {
		return
	}
	i.seen = true
	if mode == sol003.CancelModeTypeForceful {
		i.stop(errInterrupted)
	}
}

// begin notes that the op occ is being run here; the function that it returns takes the note off and tells whether a
// request to cancel has come meanwhile.
func (e *Engine) begin(ctx context.Context, opOccID string) (steps context.Context, end func() bool) {
	steps, stop := context.WithCancelCause(ctx)
	i := &interrupt{stop: stop}
	e.mu.Lock()
	if e.running == nil {
		e.running = map[string]*interrupt{}
	}
	e.running[opOccID] = i
	e.mu.Unlock()
	return steps, func() bool {
		stop(nil)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.running[opOccID] == i {
			delete(e.running, opOccID)
		}
		return i.seen
	}
}

// leastRun is the least time that a run of a step is given, however late it is.
const leastRun = 5 * time.Second

// retryFor is how long a step without a timeout of its own goes on after errors that may pass.
const retryFor = 10 * time.Minute

// Run works as node on a live op occ under the fence that its trigger carries until it has nothing to do now. It returns how
// long to wait before it is to be run again, or finished when the trigger has done its duty: the operation has ended,
// or the fence has moved on. An error means that the run itself failed (the database cannot be reached); it is to be
// tried again with the same fence.
func (e *Engine) Run(ctx context.Context, node, opOccID string, fence int64) (again time.Duration, finished bool, err error) {
	steps, end := e.begin(ctx, opOccID)
	defer func() {
		if end() {
			again = 0
		}
	}()
	claimed, err := e.Store.Claim(ctx, opOccID, fence, node)
	switch {
	case Is(err, KindStale):
		return 0, true, nil
	case err != nil:
		return 0, false, fmt.Errorf("claim op occ %s: %w", opOccID, err)
	}
	r := &run{engine: e, node: node, op: claimed.Op, instance: claimed.Instance, journal: claimed.Steps, work: claimed.Op.Work, stored: map[string]bool{}, interruptible: steps, asked: claimed.Op.CancelMode}
	for _, s := range claimed.Steps {
		r.stored[s.Name] = true
	}
	r.log = e.Log.With("opOcc", r.op.ID, "vnfInstance", r.instance.ID, "operation", string(r.op.Operation))
	again, finished, err = r.run(ctx)
	switch {
	case Is(err, KindStale):
		r.log.Info("the operation has been taken over by another node", "fence", fence)
		return 0, true, nil
	case err != nil && errors.Is(context.Cause(ctx), ErrShutdown):
		return 0, false, nil
	default:
		return again, finished, err
	}
}

// run is one run of one op occ.
type run struct {
	engine   *Engine
	node     string
	op       *OpOcc    // as stored, or as the pending transition will store it
	instance *Instance // as stored: as it was before the operation
	saved    []byte    // the working copy as last committed
	before   []byte    // the working copy before the step that runs; nil: not laid down
	journal  []StepRecord
	stored   map[string]bool // the steps whose lines are in the stored journal
	work     Work            // as stored
	pending  Transition      // what has been reached but not committed: it goes with the next commit
	x        *Execution
	log      *slog.Logger

	interruptible context.Context       //nolint:containedctx // what steps run in: ends before the run's own with a forceful cancellation
	asked         sol003.CancelModeType // the request to cancel that the stored op occ has
}

func (r *run) run(ctx context.Context) (time.Duration, bool, error) {
	if err := r.prepare(ctx); err != nil {
		return r.failed(ctx, Step{Name: "prepare"}, err)
	}
	for {
		steps, err := r.steps()
		if err != nil {
			return r.failed(ctx, Step{Name: "plan"}, err)
		}
		for _, step := range steps {
			if r.done(step.Name) {
				continue
			}
			if r.canceled(step) {
				return r.failed(ctx, step, Errorf(KindCanceled, "canceled (%s) as requested", r.op.CancelMode))
			}
			wait, finished, err := r.step(ctx, step)
			if err != nil {
				return r.failed(ctx, step, err)
			}
			if !finished {
				return wait, false, nil
			}
			if step.last {
				return 0, true, nil
			}
		}
	}
}

// prepare fills the Execution from what was settled when the operation was accepted.
func (r *run) prepare(ctx context.Context) error {
	e := r.engine
	r.x = &Execution{Op: r.op, Instance: r.instance.Clone(), Before: r.instance, Log: r.log, Now: e.Now, NewID: e.NewID}
	x := r.x
	// Between its beginning and its end the operation's working copy of the instance is part of its work; so is, once it has
	// failed, what the instance was before.
	if raw, ok := x.Op.Work[instanceOwner]; ok {
		x.Instance = new(Instance)
		if err := json.Unmarshal(raw, x.Instance); err != nil {
			return fmt.Errorf("read the working copy of VNF instance %s: %w", r.instance.ID, err)
		}
	}
	if raw, ok := x.Op.Work[beforeOwner]; ok {
		x.Before = new(Instance)
		if err := json.Unmarshal(raw, x.Before); err != nil {
			return fmt.Errorf("read what VNF instance %s was: %w", r.instance.ID, err)
		}
	}
	r.saved = encode(x.Instance)
	x.files = func(ctx context.Context) (PackageFS, error) {
		files, err := e.Packages.Open(ctx, r.instance.PackageID)
		return files, oursIfUnclassed(err)
	}
	if err := r.readPlan(); err != nil {
		return err
	}
	if err := x.Work(grantOwner, &x.Grant); err != nil {
		return err
	}
	if err := r.target(ctx); err != nil {
		return err
	}
	var err error
	if x.Package, err = e.Packages.Onboarded(ctx, r.instance.PackageID); err != nil {
		return fmt.Errorf("find VNF package %s: %w", r.instance.PackageID, oursIfUnclassed(err))
	}
	flavourID, err := flavourOf(x)
	if err != nil || flavourID == "" {
		return err
	}
	f, ok := x.Package.Descriptor.Flavour(flavourID)
	if !ok {
		return Errorf(KindTerminal, "VNF package %s has no flavour '%s'", x.Package.ID, flavourID)
	}
	x.Flavour = f
	return nil
}

// target finds the VIM that was settled when the operation was accepted; a modification of an instance that is not
// instantiated has none.
func (r *run) target(ctx context.Context) error {
	var c choice
	if err := r.x.Work(choiceOwner, &c); err != nil || c.VimID == "" {
		return err
	}
	target, err := r.engine.VIMs.Resolve(ctx, Scope{ProjectID: r.instance.ProjectID, Admin: true}, c.connections())
	if err != nil {
		return fmt.Errorf("find VIM %s: %w", c.VimID, oursIfUnclassed(err))
	}
	r.x.Target = target
	return nil
}

// flavourOf returns the id of the flavour that the instance has or, by the operation, is to have; "" when it has none.
func flavourOf(x *Execution) (string, error) {
	switch {
	case x.Op.Operation == sol003.LcmOperationTypeInstantiate:
		var req sol003.InstantiateVnfRequest
		err := x.Params(&req)
		return req.FlavourId, err
	case x.Op.Operation == sol003.LcmOperationTypeChangeFlavour:
		var req sol003.ChangeVnfFlavourRequest
		err := x.Params(&req)
		return req.NewFlavourId, err
	case x.Before.Info != nil:
		return x.Before.Info.FlavourId, nil
	default:
		return "", nil
	}
}

// planOwner is under whom an operation's plan is kept among its work.
const planOwner = "plan"

// readPlan makes the plan what is kept of it.
func (r *run) readPlan() error {
	r.x.Plan = &Plan{}
	return r.x.Work(planOwner, r.x.Plan)
}

// keepPlan keeps the plan if it has changed; what a rollback makes of it is the rollback's.
func (r *run) keepPlan() error {
	if r.op.State == sol003.LcmOperationStateRollingBack {
		return nil
	}
	raw, err := json.Marshal(r.x.Plan)
	if err != nil {
		return fmt.Errorf("keep the plan of op occ %s: %w", r.op.ID, err)
	}
	if string(raw) != "{}" && !bytes.Equal(raw, r.op.Work[planOwner]) {
		r.op.Work = r.op.Work.with(planOwner, raw)
	}
	return nil
}

// canceled tells whether the operation is to stop before the step, or in the midst of it, since that has been asked for
// (SOL003 v2.6.1 §5.4.17): GRACEFUL lets a step end that has been begun and has something under way, FORCEFUL does not. An
// operation that has nothing left to do but to end, ends.
func (r *run) canceled(step Step) bool {
	switch {
	case !r.op.CancelPending || step.last:
		return false
	case r.op.CancelMode == sol003.CancelModeTypeForceful || step.Idle:
		return true
	default:
		rec := r.find(step.Name)
		return rec == nil || rec.BegunAt.IsZero()
	}
}

// find returns the step's line in the journal, nil when there is none yet.
func (r *run) find(name string) *StepRecord {
	for n := range r.journal {
		if r.journal[n].Name == name {
			return &r.journal[n]
		}
	}
	return nil
}

// done tells whether the step has been done.
func (r *run) done(name string) bool {
	rec := r.find(name)
	return rec != nil && rec.Done
}

// record returns the step's line in the journal; it is a new one, not begun, when there is none yet.
func (r *run) record(name string) *StepRecord {
	if rec := r.find(name); rec != nil {
		return rec
	}
	r.journal = append(r.journal, StepRecord{Seq: len(r.journal) + 1, Name: name})
	return &r.journal[len(r.journal)-1]
}

// step runs one step. It returns finished when the next step may follow, or how long to wait.
func (r *run) step(ctx context.Context, step Step) (time.Duration, bool, error) {
	e := r.engine
	rec := r.record(step.Name)
	if step.Turn != nil {
		leave, wait := step.Turn(r.interruptible, r.x)
		if leave == nil {
			return r.queue(ctx, step, wait)
		}
		defer leave()
	}
	if rec.BegunAt.IsZero() {
		rec.BegunAt, rec.Tries = e.Now(), 1
		r.op.Step = step.Name
		if step.Effect { // intent before
			if err := r.commit(ctx, rec); err != nil {
				return 0, false, err
			}
		}
	}
	point := r.point() + "/" + step.Name
	e.probe(point + "/before")
	r.x.Begun = rec.BegunAt
	limit := cmp.Or(step.Timeout, retryFor)
	work, grant := r.op.Work, r.op.GrantID
	if r.before == nil && !step.own {
		r.before = encode(r.x.Instance)
	}
	waited := r.stored[step.Name]
	progress, err := r.bounded(r.interruptible, step, rec.BegunAt)
	e.probe(point + "/after")
	if err == nil {
		err = r.keepPlan()
	}
	if err != nil { // as if never done
		r.op.Work, r.op.GrantID = work, grant
		if err := r.readPlan(); err != nil {
			return 0, false, err
		}
		if r.before != nil {
			if err := r.restore(r.before); err != nil {
				return 0, false, err
			}
		}
		if errors.Is(context.Cause(r.interruptible), errInterrupted) {
			midst := "in the midst of it"
			if !errors.Is(err, context.Canceled) {
				midst = "in the midst of: " + said(err)
			}
			return 0, false, &Error{Kind: KindCanceled, Detail: fmt.Sprintf("canceled (%s) as requested, %s", sol003.CancelModeTypeForceful, midst), Err: err}
		}
		if KindOf(err) != KindRetryable || e.Now().Sub(rec.BegunAt) >= limit || ctx.Err() != nil {
			return 0, false, err
		}
		rec.Tries++
		r.log.Warn("a step failed and is tried again", "step", step.Name, "error", r.scrub(err.Error()))
		progress = Wait(backoff(err, limit-e.Now().Sub(rec.BegunAt)), "%s", said(err))
	}
	if !progress.Finished() {
		if step.Timeout > 0 && e.Now().Sub(rec.BegunAt) >= step.Timeout {
			return 0, false, Errorf(KindTerminal, "not completed within %s: %s", step.Timeout, progress.Note)
		}
		// The first wait stores from when it is measured, on whichever node it goes on.
		if !r.stored[step.Name] || r.changed() {
			if err := r.commit(ctx, rec); err != nil {
				return 0, false, err
			}
		}
		if r.log.Enabled(ctx, slog.LevelDebug) {
			r.log.Debug("waiting", "step", step.Name, "for", r.scrub(progress.Note), "again", progress.After())
		}
		return progress.After(), false, nil
	}
	rec.Done, rec.DoneAt = true, e.Now()
	r.before = nil
	if !step.Effect && (!waited || step.last) {
		r.pending.Steps = append(r.pending.Steps, *rec)
		return 0, true, nil
	}
	// Result after. The end of a wait is stored, too: who has asked meanwhile to cancel gracefully is heard before the next step.
	if err := r.commit(ctx, rec); err != nil {
		return 0, false, err
	}
	if step.Effect {
		e.probe(point + "/recorded")
	}
	return 0, true, nil
}

// queue has a step wait for its turn: what the steps before it have done is committed, of itself there is nothing.
func (r *run) queue(ctx context.Context, step Step, wait Progress) (time.Duration, bool, error) {
	if len(r.pending.Steps)+len(r.pending.Entered) > 0 || r.changed() {
		if err := r.commit(ctx, nil); err != nil {
			return 0, false, err
		}
	}
	if r.log.Enabled(ctx, slog.LevelDebug) {
		r.log.Debug("queueing", "step", step.Name, "for", r.scrub(wait.Note), "again", wait.After())
	}
	return wait.After(), false, nil
}

// changed tells whether the working copy or the operation's work is not as it is stored.
func (r *run) changed() bool {
	return !bytes.Equal(encode(r.x.Instance), r.saved) || !maps.EqualFunc(r.work, r.op.Work, sameJSON)
}

// backoff is how long to wait before a step that has failed is tried again: what the error asks for, a second at least, and
// up to a second or a fifth of it on top, lest all that have failed together try together; but no longer than what is left
// of the step's time, when it says so, so that it fails by its own words then.
func backoff(err error, left time.Duration) time.Duration {
	again := time.Second
	var e *Error
	if errors.As(err, &e) {
		again = max(again, e.Again)
	}
	return max(min(again+rand.N(max(time.Second, again/5)), left), 0)
}

// bounded runs a step for no longer than what is left of its timeout.
func (r *run) bounded(ctx context.Context, step Step, begun time.Time) (Progress, error) {
	if step.Timeout == 0 {
		return step.Run(ctx, r.x)
	}
	inTime, cancel := context.WithTimeout(ctx, max(step.Timeout-r.engine.Now().Sub(begun), leastRun))
	defer cancel()
	progress, err := step.Run(inTime, r.x)
	if err != nil && ctx.Err() == nil && errors.Is(inTime.Err(), context.DeadlineExceeded) {
		return progress, &Error{Kind: KindTerminal, Detail: fmt.Sprintf("not completed within %s: %s", step.Timeout, said(err)), Err: err}
	}
	return progress, err
}

// instanceOwner is under whom the working copy of the instance is kept among an operation's work.
const instanceOwner = "instance"

// beforeOwner is under whom an operation that has failed keeps what the instance was before it.
const beforeOwner = "before"

func encode(i *Instance) []byte {
	raw, err := json.Marshal(i)
	if err != nil {
		panic("lcm: an Instance always marshals: " + err.Error())
	}
	return raw
}

// restore makes the working copy of the instance what it was.
func (r *run) restore(raw []byte) error {
	r.x.Instance = new(Instance)
	if err := json.Unmarshal(raw, r.x.Instance); err != nil {
		return fmt.Errorf("restore VNF instance %s: %w", r.instance.ID, err)
	}
	return nil
}

// commit stores what is pending together with a step's line, nil for none, while the fence holds. The instance itself is
// written when the operation ends, and when it fails: as far as it is known then.
func (r *run) commit(ctx context.Context, rec *StepRecord) error {
	t := r.pending
	t.Op, t.Node = r.op, r.node
	if rec != nil {
		t.Steps = append(t.Steps, *rec)
	}
	raw := encode(r.x.Instance)
	switch {
	case !Active(r.op.State):
		t.Instance, r.op.Work = r.x.Instance, nil
	case !Live(r.op.State):
		if _, ok := r.op.Work[beforeOwner]; !ok {
			r.op.Work = r.op.Work.with(beforeOwner, encode(r.instance))
		}
		r.op.Work = r.op.Work.with(instanceOwner, raw)
		t.Instance = r.known()
	case !bytes.Equal(raw, r.saved):
		r.op.Work = r.op.Work.with(instanceOwner, raw)
	}
	if err := r.store(ctx, &t); err != nil {
		if Is(err, KindStale) {
			return ErrStale
		}
		return &ownError{fmt.Errorf("record op occ %s at step %s: %w", r.op.ID, r.op.Step, err)}
	}
	for _, s := range t.Steps {
		r.stored[s.Name] = true
	}
	r.saved, r.before, r.work, r.pending = raw, raw, r.op.Work, Transition{}
	if len(t.Entered) > 0 && r.engine.Observe != nil {
		r.engine.Observe(r.op)
	}
	return nil
}

// store commits a transition; a request to cancel that has come meanwhile is taken note of with it.
func (r *run) store(ctx context.Context, t *Transition) error {
	for {
		t.Asked = r.asked
		err := r.engine.Store.Commit(ctx, t)
		var asked *CancelRequestedError
		if !errors.As(err, &asked) {
			if err == nil {
				r.asked = r.op.CancelMode
			}
			return err
		}
		r.asked = asked.Mode
		if Live(r.op.State) { // else it has come too late
			r.op.CancelPending, r.op.CancelMode = true, asked.Mode
		}
	}
}

// known is the instance as far as it is known when an operation has failed: as before, with what the driver keeps about it;
// as it has become when the VIM's steps were done.
func (r *run) known() *Instance {
	if r.op.Operation == sol003.LcmOperationTypeInstantiate || r.done(settleStep) {
		return r.x.Instance
	}
	i := r.x.Before.Clone()
	i.Infra = r.x.Instance.Infra
	return i
}

// enter moves the op occ into a state; it is stored, with its notification, by the next commit.
func (r *run) enter(s sol003.LcmOperationState) {
	if s != sol003.LcmOperationStateProcessing { // between STARTING and PROCESSING a request to cancel stays
		r.op.CancelPending, r.op.CancelMode = false, ""
	}
	r.op.State, r.op.StateEnteredTime = s, r.engine.Now()
	r.op.Seq++
	r.pending.Entered = append(r.pending.Entered, StateEntered{
		ID: r.engine.NewID(), Seq: r.op.Seq, At: r.op.StateEnteredTime, Notification: r.op.Notification(),
	})
}

// ownError marks a failure of ours (to read or to record), which is the run's failure and not the operation's: the run is
// tried again.
type ownError struct{ err error }

func (o *ownError) Error() string { return o.err.Error() }
func (o *ownError) Unwrap() error { return o.err }

// oursIfUnclassed marks an error that nobody has classed as ours: the database was away.
func oursIfUnclassed(err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &ownError{err}
}

// failed ends the operation's run after an error of a step: FAILED_TEMP, or ROLLED_BACK when nothing had been started
// (SOL003 v2.6.1 §5.6.2.2). Errors that are not the operation's own are returned.
func (r *run) failed(ctx context.Context, step Step, err error) (time.Duration, bool, error) {
	var own *ownError
	if errors.As(err, &own) || Is(err, KindStale) || ctx.Err() != nil {
		return 0, false, err
	}
	state := sol003.LcmOperationStateFailedTemp
	if r.op.State == sol003.LcmOperationStateStarting {
		state = sol003.LcmOperationStateRolledBack
	}
	why := r.failure(step.Name, err)
	r.log.Error("the operation failed", "step", step.Name, "state", string(state), "error", why)
	// What the failed step put into its working copies is as if never done; what earlier steps recorded stands.
	affected := r.x.Instance.Info
	saved := r.saved
	if state == sol003.LcmOperationStateRolledBack { // nothing has begun: the instance is what it was
		saved = encode(r.instance)
	}
	if err := r.restore(saved); err != nil {
		return 0, false, err
	}
	r.op.Work = r.work
	r.op.Error = &sol003.ProblemDetails{Title: "LCM operation failed", Status: 500, Detail: why}
	if Is(err, KindForbidden) {
		r.op.Error.Title, r.op.Error.Status = "Grant refused", 403
	}
	if r.op.State == sol003.LcmOperationStateProcessing && r.op.Operation != sol003.LcmOperationTypeTerminate {
		r.op.Changes = ResourceChanges(r.x.Before.Info, affected)
	}
	if r.op.State != sol003.LcmOperationStateRollingBack {
		r.op.FailedStep = step.Name
	}
	r.pending.Steps = r.undo(step.RetryFrom)
	r.enter(state)
	if err := r.commit(ctx, nil); err != nil {
		return 0, false, err
	}
	return 0, true, nil
}

// undo takes back the results of the step that a retry is to go on at and of those after it.
func (r *run) undo(from string) []StepRecord {
	var out []StepRecord
	for n := range r.journal {
		if rec := &r.journal[n]; rec.Name == from && rec.Done || len(out) > 0 && rec.Done {
			rec.Done = false
			out = append(out, *rec)
		}
	}
	return out
}

// said is what may be told of an error: a classed one's detail without its cause, else its text.
func said(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return err.Error()
}

// failure words why an operation failed as Tacker's users know it, with the step that said it.
func (r *run) failure(step string, err error) string {
	op, detail := r.op, r.scrub(said(err))
	switch op.Operation {
	case sol003.LcmOperationTypeInstantiate:
		return fmt.Sprintf("Vnf instantiation failed for vnf %s at step %s, error: %s", op.InstanceID, step, detail)
	case sol003.LcmOperationTypeHeal:
		return fmt.Sprintf("Heal Vnf failed for vnf %s at step %s, error: %s", op.InstanceID, step, detail)
	case sol003.LcmOperationTypeChangeExtConn:
		return fmt.Sprintf("Change external connectivity failed for vnf %s at step %s, error: %s", op.InstanceID, step, detail)
	case sol003.LcmOperationTypeTerminate:
		return fmt.Sprintf("Vnf termination failed for vnf %s at step %s, error: %s", op.InstanceID, step, detail)
	default:
		return fmt.Sprintf("%s failed for vnf %s at step %s, error: %s", op.Operation, op.InstanceID, step, detail)
	}
}

// scrub takes the secrets that the operation goes by out of a text that others than us have had a hand in: a script may print
// its parameters, a VIM may repeat them.
func (r *run) scrub(text string) string {
	sources := []json.RawMessage{r.op.Params}
	if x := r.x; x != nil {
		for _, v := range []any{x.Grant, x.Instance.Request, x.Instance.VimConnections, x.Before.Request} {
			if raw, err := json.Marshal(v); err == nil {
				sources = append(sources, raw)
			}
		}
		sources = append(sources, x.Instance.Infra, x.Before.Infra)
		if x.Target != nil {
			for _, s := range Secrets(x.Target.Auth) {
				text = strings.ReplaceAll(text, s, Redacted)
			}
		}
	}
	for owner, raw := range r.op.Work {
		if owner != instanceOwner && owner != beforeOwner { // those are the instance
			sources = append(sources, raw)
		}
	}
	for _, raw := range sources {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			continue
		}
		for _, s := range Secrets(v) {
			text = strings.ReplaceAll(text, s, Redacted)
		}
	}
	return RedactText(text)
}

func (e *Engine) probe(point string) {
	if e.Probe != nil {
		e.Probe(point)
	}
}

func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
