package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// shape is how an instance is between two acts.
type shape string

const (
	nothing   shape = "not instantiated"
	whole     shape = "instantiated"
	larger    shape = "scaled out"
	leveled   shape = "scaled to levels"
	other     shape = "of the other flavour"
	stopped   shape = "stopped"
	waiting   shape = "waiting for the VIM"
	canceled  shape = "canceled"
	failedUp  shape = "INSTANTIATE failed"
	failedOut shape = "SCALE out failed"
	coming    shape = "being made"
	growing   shape = "being scaled out"
	cutShort  shape = "SCALE out canceled"
	failedAlt shape = "CHANGE_FLAVOUR failed"
	left      shape = "given up"
	given     shape = "given another package"
)

// act is something that is asked of an instance in one shape and leaves it in another.
type act struct {
	name      string
	from, to  shape
	operation sol003.LcmOperationType
	again     bool                       // it is asked of the newest op occ; else it makes one
	states    []sol003.LcmOperationState // that the op occ enters
	prepare   func(ctx context.Context, l *lane, s *subject) error
	ask       func(ctx context.Context, l *lane, s *subject) (string, error)
	over      func(ctx context.Context, l *lane) error               // puts right again what prepare has done
	armed     func(ctx context.Context, l *lane, point string) error // has the ask be what a point is passed after
	goOn      func(ctx context.Context, l *lane, s *subject) error   // has the VIM go on with what waits, once it is asked for
	says      string                                                 // what the op occ's error says at the end
	until     string                                                 // the step to wait for, instead of the end
	points    []string                                               // at which a node dies; nil: all that are passed
	chance    string                                                 // which points are passed by chance, by how they begin
	plain     bool                                                   // no node dies
	kept      func(have int) int                                     // how many of its members stay; nil: not to be foreseen
	spares    bool                                                   // as many of its members stay as there is room for
	restores  bool                                                   // its members are those of before what has failed or was canceled
	free      string                                                 // of what must not come twice, the kind that here may
	like      bool                                                   // it is like another act, and nodes die at what has an effect only
	short     bool                                                   // it may have ended, or be run by another, when whoever has accepted it dies
}

// The states that an op occ goes through.
var (
	toCompleted  = []sol003.LcmOperationState{sol003.LcmOperationStateStarting, sol003.LcmOperationStateProcessing, sol003.LcmOperationStateCompleted}
	toFailedTemp = []sol003.LcmOperationState{sol003.LcmOperationStateStarting, sol003.LcmOperationStateProcessing, sol003.LcmOperationStateFailedTemp}
	toRolledBack = []sol003.LcmOperationState{sol003.LcmOperationStateRollingBack, sol003.LcmOperationStateRolledBack}
	again        = []sol003.LcmOperationState{sol003.LcmOperationStateProcessing, sol003.LcmOperationStateCompleted}
)

const (
	instantiate = "INSTANTIATE"
	scaleOut    = "SCALE out"
	scaleIn     = "SCALE in"
	healOne     = "HEAL of a VNFC"
	modify      = "MODIFY_INFO"
	terminate   = "TERMINATE"
)

// asks makes an ask of a task of the instance.
func asks(task string, body func(l *lane, s *subject) any) func(context.Context, *lane, *subject) (string, error) {
	return func(ctx context.Context, l *lane, s *subject) (string, error) {
		return l.api().Task(ctx, s.id, task, body(l, s))
	}
}

// recovers makes an ask of a task of the instance's newest op occ.
func recovers(task string, body any) func(context.Context, *lane, *subject) (string, error) {
	return func(ctx context.Context, l *lane, s *subject) (string, error) {
		return s.op, l.api().OpOccTask(ctx, s.op, task, body)
	}
}

func askScale(kind sol003.ScaleVnfRequestType) func(context.Context, *lane, *subject) (string, error) {
	return asks("scale", func(l *lane, _ *subject) any {
		return sol003.ScaleVnfRequest{Type: kind, AspectId: l.sample.aspect, NumberOfSteps: 1}
	})
}

func askOperate(state sol003.VnfOperationalState) func(context.Context, *lane, *subject) (string, error) {
	return asks("operate", func(*lane, *subject) any { return sol003.OperateVnfRequest{ChangeStateTo: state} })
}

// pick chooses the VNFC to heal, and keeps it when the request is to be made again.
func pick(ctx context.Context, l *lane, s *subject) error {
	vnf, err := l.api().Instance(ctx, s.id)
	if err != nil {
		return err
	}
	for _, v := range vnf.InstantiatedVnfInfo.VnfcResourceInfo {
		if v.VduId == l.sample.vdu {
			s.patient = v.Id
			return nil
		}
	}
	return fmt.Errorf("there is no VNFC of VDU %s", l.sample.vdu)
}

func all(have int) int  { return have }
func none(int) int      { return 0 }
func less(have int) int { return have - 1 }

// subject is an instance that acts are done to.
type subject struct {
	id      string
	shape   shape
	op      string   // the newest op occ
	history []string // what the notifications about it are, in order
	seq     int      // of the newest op occ's last notification

	fence int64 // under which the newest act was accepted

	before  *sight   // of the VIM, before the newest act
	settled []string // its members when last it was in a shape that is no matter of time

	patient, network, description string

	content string // what the VNF's package has the VNF be, of those that there are
}

// String says where an instance stands, for messages.
func (s *subject) String() string {
	return fmt.Sprintf("instance %s, %s, newest op occ %s", s.id, s.shape, s.op)
}

// create makes an instance.
func (l *lane) create(ctx context.Context) (*subject, error) {
	vnf, err := l.api().CreateInstance(ctx, l.vnfd)
	if err != nil {
		return nil, err
	}
	return &subject{id: vnf.Id, shape: nothing, content: l.content, history: []string{string(sol003.NotificationTypeVnfIdentifierCreation)}}, nil
}

// bring has an instance come into a shape without deaths.
func (l *lane) bring(ctx context.Context, s *subject, to shape) error {
	for _, a := range l.way(s.shape, to) {
		if _, err := l.perform(ctx, s, a, ""); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// remove has an instance terminated and deleted.
func (l *lane) remove(ctx context.Context, s *subject) error {
	if err := l.bring(ctx, s, nothing); err != nil {
		return err
	}
	if err := l.api().DeleteInstance(ctx, s.id); err != nil {
		return err
	}
	s.history = append(s.history, string(sol003.NotificationTypeVnfIdentifierDeletion))
	return l.judgeNotifications(ctx, s)
}

// perform has an act done with a node dying at the point, none when it is empty, and sees that it ends as it should.
func (l *lane) perform(ctx context.Context, s *subject, a *act, point string) (outcome, error) {
	out := outcome{scenario: a.name, point: point, nodes: len(l.Nodes)}
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	end, err := l.begin(ctx, s, a, point)
	if end != nil {
		defer end.changes()
	}
	if err != nil {
		return out, err
	}
	if err := l.finish(ctx, s, a); err != nil || end == nil {
		return out, err
	}
	return out, l.judgeDeath(ctx, s, a, end, &out)
}

// begin asks for an act, a node dying at the point when it is not empty: then there is an ending, whose changes are to be
// called.
func (l *lane) begin(ctx context.Context, s *subject, a *act, point string) (end *ending, err error) {
	l.runs++
	if a.prepare != nil {
		if err := a.prepare(ctx, l, s); err != nil {
			return nil, err
		}
	}
	if s.fence, err = l.fence(ctx, s, a); err != nil {
		return nil, err
	}
	if s.before, err = l.vim.look(ctx, s); err != nil {
		return nil, err
	}
	if _, stable := l.vnfcsIn(s.shape); stable {
		s.settled = s.before.members
	}
	var op string
	if point == "" {
		op, err = a.ask(ctx, l, s)
	} else if end, err = l.dieAt(ctx, s, a, point); end != nil {
		op = end.op
	}
	if err == nil && (op == s.op) != a.again {
		err = fmt.Errorf("the op occ is %s, and that before was %s", op, s.op)
	}
	if err != nil {
		return end, err
	}
	if !a.again {
		s.op, s.seq = op, 0
	}
	for _, state := range a.states {
		s.seq++
		s.history = append(s.history, fmt.Sprintf("%s %s %d %s", a.operation, s.op, s.seq, state))
	}
	if a.goOn != nil && !ofGoing(point) {
		return end, a.goOn(ctx, l, s)
	}
	return end, nil
}

// ofWaiting tells whether a point is passed again and again while a step waits, ofGoing whether one is passed only when what is
// waited for has come.
func ofWaiting(point string) bool {
	return strings.Contains(point, "/infra:") && strings.HasSuffix(point, "/after")
}
func ofGoing(point string) bool {
	return strings.Contains(point, "/infra:") && strings.HasSuffix(point, "/recorded")
}

// finish waits until an act that was begun has ended as it should.
func (l *lane) finish(ctx context.Context, s *subject, a *act) error {
	if err := l.awaitEnd(ctx, a, s.op); err != nil {
		return err
	}
	if s.shape = a.to; s.shape == nothing {
		s.network = ""
	}
	if a.over != nil {
		return a.over(ctx, l)
	}
	return nil
}

// fence is the fence that the op occ of an act has once the act is accepted and nobody has died.
func (l *lane) fence(ctx context.Context, s *subject, a *act) (int64, error) {
	if !a.again {
		return 1, nil
	}
	var fence int64
	err := l.conn.QueryRow(ctx, `SELECT fence FROM vnf_lcm_op_occs WHERE id = $1::uuid`, s.op).Scan(&fence)
	if a.states[0] != sol003.LcmOperationStateFailedTemp { // cancel lets it go on as it goes
		fence++
	}
	return fence, err
}

const (
	newOpOcc = `SELECT fence, coalesce(owner, ''), operation_state FROM vnf_lcm_op_occs WHERE vnf_instance_id = $1::uuid AND id <> ALL ($2::uuid[])`
	oldOpOcc = `SELECT fence, coalesce(owner, ''), operation_state FROM vnf_lcm_op_occs WHERE vnf_instance_id = $1::uuid AND id = ANY ($2::uuid[])`
)

// ending is what is known of a death during an act.
type ending struct {
	death
	from    time.Time       // from when a takeover counts
	op      string          // the op occ that has been accepted, if need be on a second demand
	changes func() []change // of the op occ
}

// dieAt asks for an act while a node dies at the point. The ending's changes are to be called when it is not nil.
func (l *lane) dieAt(ctx context.Context, s *subject, a *act, point string) (*ending, error) {
	known, err := l.opOccs(ctx, s)
	if err != nil {
		return nil, err
	}
	query, watched := newOpOcc, known
	if a.again {
		query, watched = oldOpOcc, []string{s.op}
	}
	e := &ending{}
	if e.changes, err = l.watch(ctx, query, s.id, watched); err != nil {
		return nil, err
	}
	if a.armed != nil {
		if err := a.armed(ctx, l, point); err != nil {
			return e, err
		}
	}
	if strings.HasPrefix(point, "notify/") { // what came before is not to pass the point
		if err := harness.Await(ctx, "nothing is left to tell", func(ctx context.Context) (bool, error) {
			var some bool
			err := l.conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM deliveries)`).Scan(&some)
			return !some, err
		}); err != nil {
			return e, err
		}
	}
	late := a.goOn != nil && ofWaiting(point) // whoever is to die does so with the request known
	if !late {
		if err := l.armAt(point); err != nil {
			return e, err
		}
	}
	op, askErr := a.ask(ctx, l, s)
	switch {
	case askErr == nil && late:
		err = l.armAt(point)
	case askErr == nil && a.goOn != nil && ofGoing(point):
		err = a.goOn(ctx, l, s)
	}
	if err != nil {
		return e, err
	}
	if e.death, err = l.awaitDeath(ctx); err != nil {
		return e, errors.Join(err, askErr)
	}
	if e.from, err = l.afterDeath(ctx, e.death); err != nil {
		return e, err
	}
	var status *harness.StatusError
	if errors.As(askErr, &status) {
		return e, askErr
	}
	now, err := l.opOccs(ctx, s)
	if err != nil {
		return e, err
	}
	fresh := slices.DeleteFunc(now, func(id string) bool { return slices.Contains(known, id) })
	accepted := !strings.HasSuffix(point, "/accept/before")
	switch {
	case !accepted && (askErr == nil || len(fresh) > 0):
		return e, fmt.Errorf("nothing was to be accepted, but there are op occs %v, and the answer was %q (error: %w)", fresh, op, askErr)
	case !accepted:
		if e.op, err = a.ask(ctx, l, s); err != nil {
			return e, fmt.Errorf("ask again: %w", err)
		}
		return e, nil
	case a.again && len(fresh) > 0:
		return e, fmt.Errorf("there are new op occs %v", fresh)
	case a.again:
		e.op = s.op
		return e, nil
	case len(fresh) != 1 || askErr == nil && fresh[0] != op:
		return e, fmt.Errorf("one op occ was to be accepted, but there are %v, and the answer was %q (error: %w)", fresh, op, askErr)
	}
	e.op = fresh[0]
	return e, nil
}

// opOccs lists the ids of an instance's op occs.
func (l *lane) opOccs(ctx context.Context, s *subject) ([]string, error) {
	list, err := l.api().OpOccs(ctx, s.id)
	ids := make([]string, 0, len(list))
	for _, o := range list {
		ids = append(ids, o.Id)
	}
	return ids, err
}

// awaitEnd waits until an act's op occ is in the state in which the act leaves it.
func (l *lane) awaitEnd(ctx context.Context, a *act, op string) error {
	if a.until != "" {
		return l.awaitStep(ctx, op, a.until)
	}
	// Not through the API at first: the waiting is not to load what is measured.
	if err := harness.Await(ctx, "the operation has ended", func(ctx context.Context) (bool, error) { return l.ended(ctx, op) }); err != nil {
		return err
	}
	o, err := l.api().AwaitOpOcc(ctx, op)
	if err != nil {
		return err
	}
	if want := a.states[len(a.states)-1]; o.OperationState != want || (o.Error == nil) != (want == sol003.LcmOperationStateCompleted) {
		return fmt.Errorf("%s %s ended in %s, want %s: %+v", o.Operation, op, o.OperationState, want, o.Error)
	}
	if o.IsCancelPending || o.CancelMode != "" || a.says != "" && !strings.Contains(o.Error.Detail, a.says) {
		return fmt.Errorf("%s %s ended with %+v (cancel pending: %v %s), want it to say %q", o.Operation, op, o.Error, o.IsCancelPending, o.CancelMode, a.says)
	}
	return nil
}

// ended tells whether nothing goes on in an op occ any more.
func (l *lane) ended(ctx context.Context, op string) (bool, error) {
	var live bool
	err := l.conn.QueryRow(ctx, `SELECT operation_state IN ('STARTING', 'PROCESSING', 'ROLLING_BACK') FROM vnf_lcm_op_occs WHERE id = $1::uuid`, op).Scan(&live)
	return !live, err
}

// awaitStep waits until a step that begins so is under way.
func (l *lane) awaitStep(ctx context.Context, op, prefix string) error {
	return harness.Await(ctx, "step "+prefix+" is under way", func(ctx context.Context) (bool, error) {
		lines, err := l.journal(ctx, op)
		return slices.ContainsFunc(lines, func(line journalLine) bool { return strings.HasPrefix(line.Name, prefix) }), err
	})
}

// judgeDeath sees that somebody has taken over what a death has left, and how long that took.
func (l *lane) judgeDeath(ctx context.Context, s *subject, a *act, end *ending, out *outcome) error {
	if _, err := os.Stat(l.arm); err == nil {
		return errors.New("the point is still armed")
	}
	if strings.HasPrefix(out.point, "notify/") {
		if err := l.judgeNotifications(ctx, s); err != nil {
			return err
		}
		out.ended = time.Since(end.at)
		first, ok := l.told.after(s.id, end.at)
		if !ok {
			return errors.New("nobody has taken over the notifications")
		}
		out.takeover, out.taken = max(0, first.Sub(end.from)), true
		return nil
	}
	out.ended = time.Since(end.at)
	if !strings.HasSuffix(out.point, "/accept/before") {
		out.takeover, out.taken = takeover(end.changes(), end.death, end.from, s.fence)
	}
	answered := a.short && strings.HasSuffix(out.point, "/accept/after")
	if want := leavesWork(out.point); out.taken != want && !answered {
		return fmt.Errorf("taken over: %v, want %v", out.taken, want)
	}
	return nil
}

// some are those of the points at which nodes die: of calls that change the VIM before each when the only node dies, and after
// each when one of several does. Of the others, one of several dies at all, and the only node, or one in an act that is like
// another, at those that a request passes and a step with an effect; the only node in an act that is like another at none.
func some(points []string, alone, like bool) []string {
	recorded := map[string]bool{}
	for _, p := range points {
		if step, ok := strings.CutSuffix(p, "/recorded"); ok {
			recorded[step] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(points), func(p string) bool {
		at := strings.LastIndexByte(p, '/')
		step, side := p[:at], p[at+1:]
		switch {
		case strings.HasPrefix(p, "notify/"):
			return false
		case strings.HasPrefix(p, "call:"):
			return alone != (side == "before")
		case alone && like:
			return true
		case alone || like:
			return !strings.HasSuffix(step, "/accept") && !recorded[step]
		}
		return false
	})
}
