package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// reference is what a life without deaths looks like.
type reference struct {
	vim    map[string]int      // what an instance has in the VIM
	images int                 // how many images are created for it
	steps  map[string][]string // the journal's lines, by operation
}

// judgeInstance compares an instance's trace after its operations (in order) with the reference.
func (l *lane) judgeInstance(ctx context.Context, ref *reference, instance string, since int64, ops ...string) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	terminated := len(ops) == 2

	// The VIM.
	name := "vnflcm_" + instance
	want := l.empty
	if !terminated {
		want = ref.vim
	}
	if d := cmp.Diff(want, l.counts()); d != "" {
		bad("the VIM holds other things than it should (-want +got):\n%s", d)
	}
	stacks := 0
	for _, s := range l.Sim.Cloud.State().Stacks {
		if s.Name != name {
			if s.Status != "DELETE_COMPLETE" {
				bad("there is another stack, %s in %s", s.Name, s.Status)
			}
			continue
		}
		stacks++
		if state := map[bool]string{false: "CREATE_COMPLETE", true: "DELETE_COMPLETE"}[terminated]; s.Status != state {
			bad("the stack is %s (%s), want %s", s.Status, s.Reason, state)
		}
	}
	if stacks != 1 {
		bad("%d stacks have been made for the instance, want 1", stacks)
	}
	if !terminated {
		if n := l.requests(since, "heat", http.MethodPost, "/stacks"); n != 1 {
			bad("%d stacks were created, want 1", n)
		}
		if n := l.requests(since, "glance", http.MethodPost, "/images"); n != ref.images {
			bad("%d images were created, want %d", n, ref.images)
		}
	}

	// The operations, their journals and triggers.
	wantNotes := []string{string(sol003.NotificationTypeVnfIdentifierCreation)}
	rows, err := l.conn.Query(ctx, `SELECT id::text, operation, operation_state, fence FROM vnf_lcm_op_occs WHERE vnf_instance_id = $1::uuid ORDER BY id`, instance)
	if err != nil {
		return err
	}
	type opOcc struct {
		ID, Operation, State string
		Fence                int64
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[opOcc])
	if err != nil {
		return err
	}
	if len(got) != len(ops) {
		bad("there are %d op occs, want %d: %+v", len(got), len(ops), got)
	}
	for i, op := range got {
		if i >= len(ops) {
			break
		}
		if op.Operation != ops[i] || op.State != "COMPLETED" {
			bad("op occ %d is %s in %s, want %s in COMPLETED", i, op.Operation, op.State, ops[i])
		}
		if op.Fence > 2 {
			bad("%s ended under fence %d: it was taken over more often than nodes died", op.Operation, op.Fence)
		}
		if err := l.judgeJournal(ctx, op.ID, op.Fence, ref.steps[op.Operation]); err != nil {
			bad("%s: %w", op.Operation, err)
		}
		for seq, state := range []string{"STARTING", "PROCESSING", "COMPLETED"} {
			wantNotes = append(wantNotes, fmt.Sprintf("%s %d %s", op.Operation, seq+1, state))
		}
	}
	names := map[string]string{}
	for _, op := range got {
		names[op.ID] = op.Operation
	}
	notes, err := l.Notifications(ctx, instance)
	if err != nil {
		return err
	}
	var gotNotes []string
	for _, n := range notes {
		if n.OpOccID == "" {
			gotNotes = append(gotNotes, n.Type)
			continue
		}
		var body sol003.VnfLcmOperationOccurrenceNotification
		if err := json.Unmarshal(n.Body, &body); err != nil {
			return fmt.Errorf("notification %s: %w", n.ID, err)
		}
		gotNotes = append(gotNotes, fmt.Sprintf("%s %d %s", names[n.OpOccID], n.Seq, body.OperationState))
	}
	slices.Sort(wantNotes)
	slices.Sort(gotNotes)
	if d := cmp.Diff(wantNotes, gotNotes); d != "" {
		bad("the notifications are not those of each state once (-want +got):\n%s", d)
	}
	return errors.Join(errs...)
}

// judgeJournal sees that an ended operation's steps are those of the reference, each once and done, and that no trigger
// of it waits.
func (l *lane) judgeJournal(ctx context.Context, opOcc string, fence int64, want []string) error {
	steps, err := l.journal(ctx, opOcc)
	if err != nil {
		return err
	}
	var errs []error
	var names []string
	for i, s := range steps {
		names = append(names, s.Name)
		if !s.Done || s.Seq != i+1 || s.Fence > fence {
			errs = append(errs, fmt.Errorf("line %d of the journal: %+v under fence %d", i, s, fence))
		}
	}
	if want != nil {
		if d := cmp.Diff(want, names); d != "" {
			errs = append(errs, fmt.Errorf("the journal has other steps (-want +got):\n%s", d))
		}
	}
	var waiting int
	err = l.conn.QueryRow(ctx, `SELECT count(*) FROM river_job WHERE kind = 'lcm_operation' AND args ->> 'opOcc' = $1
		AND state IN ('available', 'pending', 'retryable', 'scheduled')`, opOcc).Scan(&waiting)
	if err != nil {
		return err
	}
	if waiting > 0 {
		errs = append(errs, fmt.Errorf("%d triggers still wait", waiting))
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

// requests counts the VIM's successful requests since a mark to paths that end so.
func (l *lane) requests(since int64, service, method, suffix string) int {
	n := 0
	for _, e := range l.Sim.Cloud.Journal() {
		if e.Seq > since && e.Service == service && e.Method == method && strings.HasSuffix(e.Path, suffix) && e.Status < 300 {
			n++
		}
	}
	return n
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

// stackOf returns the state of the instance's stack, for messages.
func stackOf(s *vimsim.StackState) string {
	if s == nil {
		return "no stack"
	}
	return s.Name + " in " + s.Status
}
