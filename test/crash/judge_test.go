package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// trace is what an act leaves behind.
type trace struct {
	VIM      map[string]int    // how many things of each kind the VIM holds
	Stack    string            // the status of the whole
	Things   map[string]string // what has become of each of those that are looked at one by one
	Steps    []string          // the journal's lines
	Requests map[string]int    // what came to the VIM, of the kinds that must not come twice
	Kept     int               // servers or pods from before it
}

// reference is what acts leave behind when nobody dies, by name.
type reference map[string]*trace

// trace looks at what the newest act has left behind.
func (l *lane) trace(ctx context.Context, s *subject, a *act) (*trace, *sight, error) {
	lines, err := l.journal(ctx, s.op)
	if err != nil {
		return nil, nil, err
	}
	now, err := l.vim.look(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	t := &trace{Requests: now.newcomers(s.before)}
	delete(t.Requests, a.free)
	for _, line := range lines {
		t.Steps = append(t.Steps, line.Name)
	}
	if _, stable := l.vnfcsIn(a.to); !stable {
		return t, now, nil
	}
	t.VIM, t.Stack, t.Things = now.counts, now.status, now.since(s.before)
	if a.kept != nil || a.spares {
		for _, id := range now.members {
			if slices.Contains(s.before.members, id) {
				t.Kept++
			}
		}
	}
	return t, now, nil
}

// expect looks at what an act without a death has left behind, and sees that it is what it should be.
func (l *lane) expect(ctx context.Context, s *subject, a *act) (*trace, error) {
	t, now, err := l.trace(ctx, s, a)
	if err != nil {
		return nil, err
	}
	want, stable := l.membersIn(a.to)
	if !stable {
		return t, nil
	}
	have := len(s.before.members)
	switch {
	case len(now.members) != want:
		return nil, fmt.Errorf("there are %d servers or pods, want %d", len(now.members), want)
	case a.kept != nil && t.Kept != a.kept(have):
		return nil, fmt.Errorf("of %d servers or pods %d are still there, want %d", have, t.Kept, a.kept(have))
	case a.spares && t.Kept != min(have, want):
		return nil, fmt.Errorf("of %d servers or pods %d are still there, want %d", have, t.Kept, min(have, want))
	case a.to == nothing && !cmp.Equal(t.VIM, l.empty):
		return nil, fmt.Errorf("something is left in the VIM (-want +got):\n%s", cmp.Diff(l.empty, t.VIM))
	}
	return t, nil
}

// judge sees that an act has left behind what the reference has, and that what is known of the instance is so.
func (l *lane) judge(ctx context.Context, ref reference, s *subject, a *act) error {
	got, now, err := l.trace(ctx, s, a)
	if err != nil {
		return err
	}
	var errs []error
	if d := cmp.Diff(ref[a.name], got); d != "" {
		errs = append(errs, fmt.Errorf("something else than without a death is left behind (-want +got):\n%s", d))
	}
	if a.restores && !slices.Equal(s.settled, now.members) {
		errs = append(errs, fmt.Errorf("the servers or pods are %v, and were %v before what is undone", now.members, s.settled))
	}
	return errors.Join(append(errs, l.vim.strangers(s), l.judgeOpOcc(ctx, s, a), l.judgeInstance(ctx, s, now), l.judgeNotifications(ctx, s))...)
}

// judgeOpOcc looks at an act's op occ: its journal, its fence, its triggers.
func (l *lane) judgeOpOcc(ctx context.Context, s *subject, a *act) error {
	var fence int64
	if err := l.conn.QueryRow(ctx, `SELECT fence FROM vnf_lcm_op_occs WHERE id = $1::uuid`, s.op).Scan(&fence); err != nil {
		return err
	}
	if fence > s.fence+1 {
		return fmt.Errorf("the op occ ended under fence %d, and was accepted under %d: it was taken over more often than nodes died", fence, s.fence)
	}
	if a.until != "" {
		return nil
	}
	last := a.states[len(a.states)-1]
	return l.judgeJournal(ctx, s.op, fence, last == sol003.LcmOperationStateCompleted || last == sol003.LcmOperationStateRolledBack)
}

// judgeInstance compares what the API says of an instance with what the VIM holds.
func (l *lane) judgeInstance(ctx context.Context, s *subject, now *sight) error {
	size, stable := l.vnfcsIn(s.shape)
	if !stable {
		return nil
	}
	vnf, err := l.api().Instance(ctx, s.id)
	if err != nil {
		return err
	}
	info := vnf.InstantiatedVnfInfo
	switch {
	case s.shape == nothing && vnf.InstantiationState == sol003.InstantiationStateNotInstantiated && info == nil:
		return nil
	case s.shape == nothing || vnf.InstantiationState != sol003.InstantiationStateInstantiated || info == nil:
		return fmt.Errorf("the instance, which is %s, is shown as %s with %+v", s.shape, vnf.InstantiationState, info)
	case s.description != "" && vnf.VnfInstanceDescription != s.description:
		return fmt.Errorf("the description is %q, want %q", vnf.VnfInstanceDescription, s.description)
	}
	errs := []error{l.vim.agrees(l, s, now, vnf)}
	running, flavour := sol003.VnfOperationalStateStarted, l.flavour
	if s.shape == stopped {
		running = sol003.VnfOperationalStateStopped
	}
	if s.shape == other {
		flavour = l.other
	}
	if info.FlavourId != flavour {
		errs = append(errs, fmt.Errorf("the VNF is of flavour %s, want %s", info.FlavourId, flavour))
	}
	if info.VnfState != running || len(info.VnfcInfo) != size || len(info.VnfcResourceInfo) != size {
		errs = append(errs, fmt.Errorf("the VNF is %s with %d VNFCs of %d resources, want %s with %d",
			info.VnfState, len(info.VnfcInfo), len(info.VnfcResourceInfo), running, size))
	}
	for _, v := range info.VnfcInfo {
		if v.VnfcState != running {
			errs = append(errs, fmt.Errorf("VNFC %s is %s, want %s", v.Id, v.VnfcState, running))
		}
	}
	for _, a := range info.ScaleStatus {
		if want := l.levelIn(s.shape, a.AspectId); a.ScaleLevel != want {
			errs = append(errs, fmt.Errorf("the level of aspect %s is %d, want %d", a.AspectId, a.ScaleLevel, want))
		}
	}
	return errors.Join(errs...)
}

// judgeJournal sees that an op occ's steps are in order, each once and, of one that has succeeded, done, and that no trigger
// of it waits.
func (l *lane) judgeJournal(ctx context.Context, opOcc string, fence int64, done bool) error {
	steps, err := l.journal(ctx, opOcc)
	if err != nil {
		return err
	}
	var errs []error
	for i, s := range steps {
		if done && !s.Done || s.Seq != i+1 || s.Fence > fence {
			errs = append(errs, fmt.Errorf("line %d of the journal: %+v under fence %d", i, s, fence))
		}
	}
	var left int
	if err := l.conn.QueryRow(ctx, `SELECT count(*) FROM river_job WHERE kind = 'lcm_operation' AND args ->> 'opOcc' = $1
		AND state IN ('available', 'pending', 'retryable', 'scheduled')`, opOcc).Scan(&left); err != nil {
		return err
	}
	if left > 0 {
		errs = append(errs, fmt.Errorf("%d triggers still wait", left))
	}
	return errors.Join(errs...)
}

type journalLine struct {
	Seq   int
	Name  string
	Done  bool
	Fence int64
}

func (l *lane) journal(ctx context.Context, opOcc string) ([]journalLine, error) {
	rows, err := l.conn.Query(ctx, `SELECT seq, name, done_at IS NOT NULL, fence FROM lcm_op_steps WHERE op_occ_id = $1::uuid ORDER BY seq`, opOcc)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[journalLine])
}

// judgePackage sees that an onboarded package is whole and there once, and that no content is stored twice. garbage is
// how many unfinished contents a broken transfer may have left for the collector.
func (l *lane) judgePackage(ctx context.Context, id string, garbage int) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	var state, digest string
	var fence int64
	var described, sealed bool
	if err := l.conn.QueryRow(ctx, `SELECT p.onboarding_state, p.fence, p.descriptor IS NOT NULL, p.sealed IS NOT NULL, encode(c.sha256, 'hex')
		FROM vnf_packages p JOIN contents c ON c.id = p.content_id WHERE p.id = $1::uuid`, id).Scan(&state, &fence, &described, &sealed, &digest); err != nil {
		return fmt.Errorf("read package %s: %w", id, err)
	}
	if state != "ONBOARDED" || !described || sealed || digest == "" {
		bad("the package is %s (descriptor %v, credentials kept %v)", state, described, sealed)
	}
	var packages, whole, unfinished, damaged, waiting int
	if err := l.conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM vnf_packages),
		(SELECT count(*) FROM contents WHERE sha256 IS NOT NULL),
		(SELECT count(*) FROM contents c WHERE sha256 IS NULL AND NOT EXISTS (SELECT FROM vnf_packages p WHERE p.content_id = c.id)),
		(SELECT count(*) FROM contents c WHERE sha256 IS NOT NULL AND
			size <> (SELECT coalesce(sum(length(data)), 0) FROM content_chunks k WHERE k.content_id = c.id)),
		(SELECT count(*) FROM river_job WHERE kind = 'onboard_package' AND state IN ('available', 'pending', 'retryable', 'scheduled'))`).
		Scan(&packages, &whole, &unfinished, &damaged, &waiting); err != nil {
		return err
	}
	if packages != 2 || whole != 2 || damaged != 0 {
		bad("%d packages with %d contents, %d of them damaged; want 2, 2 and 0", packages, whole, damaged)
	}
	if unfinished > garbage {
		bad("%d contents are unfinished, want %d at most", unfinished, garbage)
	}
	if waiting > 0 {
		bad("%d triggers still wait", waiting)
	}
	return errors.Join(errs...)
}
