package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

const opOccsTable = "vnf_lcm_op_occs"

// opOccVersion is the version of an op occ's representation: it changes with the state, with a request to cancel, and with the
// grant.
const opOccVersion = `t.seq * 8 + CASE t.cancel_mode WHEN 'GRACEFUL' THEN 1 WHEN 'FORCEFUL' THEN 2 ELSE 0 END * 2 + (t.body ->> 'grantId' IS NOT NULL)::int`

func noOpOcc(id string) error {
	return lcm.Titled(lcm.KindNotFound, "VnfLcmOpOcc NOT FOUND", "Can not find requested vnf lcm operation occurrence: %s", id)
}

func (s *Store) encodeOpOcc(op *lcm.OpOcc) (body, sealed []byte, err error) {
	if body, err = json.Marshal(op.Representation()); err != nil {
		return nil, nil, fmt.Errorf("encode op occ %s: %w", op.ID, err)
	}
	whole, err := json.Marshal(op)
	if err != nil {
		return nil, nil, fmt.Errorf("encode op occ %s: %w", op.ID, err)
	}
	sealed, err = s.seal(opOccsTable, op.ID, "sealed", whole)
	return withoutNUL(body), sealed, err
}

// endedDigests returns the digests of an op occ's body, nil while it is active: as long, no index holds them.
func endedDigests(op *lcm.OpOcc, body []byte) []int64 {
	if lcm.Active(op.State) {
		return nil
	}
	return attributeDigests(body)
}

// Accept implements lcm.Store.
func (s *Store) Accept(ctx context.Context, scope lcm.Scope, op *lcm.OpOcc, want sol003.InstantiationState, ifMatch int64) error {
	body, sealed, err := s.encodeOpOcc(op)
	if err != nil {
		return err
	}
	note, err := json.Marshal(op.Notification())
	if err != nil {
		return fmt.Errorf("encode the notification of op occ %s: %w", op.ID, err)
	}
	var told *string
	accepted := false
	err = inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		// The instance is locked before what else there is of it is looked at: who waits for the end of an operation while it
		// holds the instance would wait for ever, since that end writes the instance.
		b.Queue(`WITH i AS (SELECT id FROM vnf_instances WHERE id = $1 FOR UPDATE)
			SELECT (SELECT id FROM i), pg_advisory_xact_lock_shared($2, hashtext($3))`, op.InstanceID, referenceClass, op.VimID)
		if op.PackageID != "" {
			queueReference(b, op.PackageID)
		}
		taken := effect{instanceID: op.InstanceID, opOccID: op.ID, resourceID: op.ID, status: http.StatusAccepted}
		args := []any{
			op.InstanceID, string(want), scope.Admin, scope.ProjectID,
			op.ID, string(op.Operation), string(op.State), op.StartTime, body, sealed, op.Fence, op.Seq,
			newID(), string(sol003.NotificationTypeVnfLcmOperationOccurrence), note,
			nullable(op.VimID), nullable(op.PackageID), ifMatch,
		}
		b.Queue(`
			WITH i AS (
				SELECT id, project_id FROM vnf_instances
				WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM vnf_lcm_op_occs WHERE vnf_instance_id = $1 AND active)
				AND ($2 = '' OR instantiation_state = $2) AND ($3 OR project_id = $4) AND ($18::bigint = 0 OR version = $18)
				AND ($16::uuid IS NULL OR EXISTS (SELECT 1 FROM vims WHERE id = $16))
				AND ($17::uuid IS NULL OR EXISTS (SELECT 1 FROM vnf_packages WHERE id = $17)) FOR UPDATE),
			o AS (
				INSERT INTO vnf_lcm_op_occs (id, vnf_instance_id, project_id, vim_id, vnf_pkg_id, operation, operation_state, start_time, state_entered_time, body, sealed, fence, seq)
				SELECT $5, i.id, i.project_id, $16, $17, $6, $7, $8, $8, $9, $10, $11, $12 FROM i
				RETURNING id, vnf_instance_id, project_id),
			`+s.auditPart(ctx, &args, "o", taken)+`outbox AS (
				INSERT INTO notifications (id, type, vnf_instance_id, project_id, op_occ_id, seq, body, created_at)
				SELECT $13, $14, o.vnf_instance_id, o.project_id, o.id, $12, $15, $8 FROM o
				RETURNING `+outboxColumns+`),
			`+fanOut(storedInstance)+`
			SELECT told.subscriptions FROM outbox CROSS JOIN told`, args...).QueryRow(tellInto(&told, &accepted))
		s.queueKey(ctx, b, taken, "")
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if !accepted {
			return s.refused(ctx, tx, op, want, ifMatch)
		}
		return s.enqueueOperation(ctx, tx, op.ID, op.Fence)
	})
	if err == nil {
		s.voice.announce(lcmQueue)
		s.voice.tell(told)
	}
	if breaks(err, "vnf_lcm_op_occs_one_active") {
		return s.busy(ctx, s.Pool, op)
	}
	return s.repeated(ctx, err)
}

// refused tells why there was nothing to accept an operation on.
func (s *Store) refused(ctx context.Context, tx pgx.Tx, op *lcm.OpOcc, want sol003.InstantiationState, ifMatch int64) error {
	var version int64
	err := tx.QueryRow(ctx, `SELECT version FROM vnf_instances WHERE id = $1`, op.InstanceID).Scan(&version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return noInstance(op.InstanceID)
	case err != nil:
		return err
	case ifMatch != 0 && ifMatch != version:
		return errVersion(op.InstanceID)
	}
	var active bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM vnf_lcm_op_occs WHERE vnf_instance_id = $1 AND active)`, op.InstanceID).Scan(&active); err != nil {
		return err
	}
	if active {
		return s.busy(ctx, tx, op)
	}
	what := fmt.Sprintf("Vnf instance %s is no longer %s", op.InstanceID, want)
	if op.VimID != "" {
		what += fmt.Sprintf(", or VIM %s has been deleted", op.VimID)
	}
	if op.PackageID != "" {
		what += fmt.Sprintf(", or VNF package %s has been deleted", op.PackageID)
	}
	return lcm.Errorf(lcm.KindConflict, "%s. Cannot start %s now.", what, op.Operation)
}

// busy words the conflict with the op occ that is in the way.
func (s *Store) busy(ctx context.Context, from rowReader, op *lcm.OpOcc) error {
	var id, operation, state string
	err := from.QueryRow(ctx, `SELECT id::text, operation, operation_state FROM vnf_lcm_op_occs
		WHERE vnf_instance_id = $1 AND active`, op.InstanceID).Scan(&id, &operation, &state)
	if err != nil {
		return lcm.Errorf(lcm.KindConflict, "Vnf instance %s has another LCM operation. Cannot start %s now.", op.InstanceID, op.Operation)
	}
	return lcm.Errorf(lcm.KindConflict, "Vnf instance %s has LCM operation occurrence %s: %s in %s. Cannot start %s while it is not finished.", op.InstanceID, id, operation, state, op.Operation)
}

// rowReader reads one row: a pool or a transaction.
type rowReader interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Move implements lcm.Store.
func (s *Store) Move(ctx context.Context, scope lcm.Scope, opOccID string, decide func(*lcm.OpOcc) (lcm.StateEntered, error)) error {
	if !validID(opOccID) {
		return noOpOcc(opOccID)
	}
	var told *string
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		op, err := s.lockOpOcc(ctx, tx, scope, opOccID)
		if err != nil {
			return err
		}
		entered, err := decide(op)
		if err != nil {
			return err
		}
		body, sealed, err := s.encodeOpOcc(op)
		if err != nil {
			return err
		}
		note, err := json.Marshal(entered.Notification)
		if err != nil {
			return fmt.Errorf("encode the notification of op occ %s: %w", op.ID, err)
		}
		b := &pgx.Batch{}
		b.Queue(`UPDATE vnf_lcm_op_occs SET operation_state = $2, state_entered_time = $3, body = $4, sealed = $5, seq = $6, fence = $7, active = $8, owner = NULL, cancel_mode = NULL, attributes = $9 WHERE id = $1`,
			op.ID, string(op.State), op.StateEnteredTime, body, sealed, op.Seq, op.Fence, lcm.Active(op.State), endedDigests(op, body))
		b.Queue(`DELETE FROM lcm_op_steps WHERE op_occ_id = $1 AND ($2 OR done_at IS NULL)`, op.ID, op.Afresh)
		queueNotification(b, op, entered, note, &told)
		status := http.StatusAccepted
		if op.State == sol003.LcmOperationStateFailed { // fail answers at once, with the op occ
			status = http.StatusOK
		}
		s.queueRequest(ctx, b, effect{instanceID: op.InstanceID, opOccID: op.ID, resourceID: op.ID, status: status, body: body, version: op.Seq})
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if !lcm.Live(op.State) {
			return nil
		}
		return s.enqueueOperation(ctx, tx, op.ID, op.Fence)
	})
	if err == nil {
		s.voice.announce(lcmQueue)
		s.voice.tell(told)
	}
	return s.repeated(ctx, err)
}

// lockOpOcc reads an op occ that nobody else may change until the transaction ends.
func (s *Store) lockOpOcc(ctx context.Context, tx pgx.Tx, scope lcm.Scope, id string) (*lcm.OpOcc, error) {
	var sealed []byte
	var row opOccRow
	err := tx.QueryRow(ctx, `SELECT sealed, fence, seq, step, coalesce(cancel_mode, ''), operation_state FROM vnf_lcm_op_occs
		WHERE id = $1 AND ($2 OR project_id = $3) FOR UPDATE`, id, scope.Admin, scope.ProjectID).
		Scan(&sealed, &row.fence, &row.seq, &row.step, &row.cancel, &row.state)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, noOpOcc(id)
	case err != nil:
		return nil, fmt.Errorf("read op occ %s: %w", id, err)
	}
	return s.decodeOpOcc(id, sealed, row)
}

// RequestCancel implements lcm.Store.
func (s *Store) RequestCancel(ctx context.Context, scope lcm.Scope, opOccID string, mode sol003.CancelModeType, decide func(*lcm.OpOcc) error) error {
	if !validID(opOccID) {
		return noOpOcc(opOccID)
	}
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		op, err := s.lockOpOcc(ctx, tx, scope, opOccID)
		if err != nil {
			return err
		}
		if err := decide(op); err != nil {
			return err
		}
		op.CancelPending, op.CancelMode = true, mode
		body, sealed, err := s.encodeOpOcc(op)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE vnf_lcm_op_occs SET body = $2, sealed = $3, cancel_mode = $4 WHERE id = $1`,
			op.ID, body, sealed, string(mode)); err != nil {
			return err
		}
		// Whoever runs it now is told; a run that waits for its turn is due now.
		if _, err := tx.Exec(ctx, `SELECT pg_notify($1, $2)`, cancelTopic, string(mode)+" "+op.ID); err != nil {
			return err
		}
		if err := s.recordRequest(ctx, tx, effect{instanceID: op.InstanceID, opOccID: op.ID, resourceID: op.ID, status: http.StatusAccepted}); err != nil {
			return err
		}
		return s.hasten(ctx, tx, op.ID)
	})
	if err == nil {
		s.voice.announce(lcmQueue)
	}
	return s.repeated(ctx, err)
}

// cancelTopic is the channel on which nodes hear of requests to cancel: the mode, a blank, the op occ.
const cancelTopic = "vnfm_cancel"

// hasten makes the waiting trigger of an op occ due.
func (s *Store) hasten(ctx context.Context, tx pgx.Tx, opOccID string) error {
	rows, err := tx.Query(ctx, `SELECT id FROM river_job WHERE kind = $1 AND args @> jsonb_build_object('opOcc', $2::text)
		AND state IN ('scheduled', 'retryable', 'available') AND scheduled_at > now()`, operationArgs{}.Kind(), opOccID)
	if err != nil {
		return fmt.Errorf("find the trigger of op occ %s: %w", opOccID, err)
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("find the trigger of op occ %s: %w", opOccID, err)
	}
	for _, id := range jobs {
		if _, err := s.River.JobRetryTx(ctx, tx, id); err != nil {
			return fmt.Errorf("hasten the trigger of op occ %s: %w", opOccID, err)
		}
	}
	return nil
}

// opOccRow are the columns that decide over what the sealed op occ says.
type opOccRow struct {
	fence, seq  int64
	step, state string
	cancel      string // the mode that has been asked for, "" for none
}

// stepRow is a line of the journal as Claim reads it.
type stepRow struct {
	Seq, Tries int
	Name       string
	BegunAt    time.Time
	DoneAt     *time.Time
}

func (s *Store) decodeOpOcc(id string, sealed []byte, row opOccRow) (*lcm.OpOcc, error) {
	whole, err := s.unseal(opOccsTable, id, "sealed", sealed)
	if err != nil {
		return nil, err
	}
	op := new(lcm.OpOcc)
	if err := json.Unmarshal(whole, op); err != nil {
		return nil, fmt.Errorf("decode op occ %s: %w", id, err)
	}
	op.Fence, op.Seq, op.Step, op.State = row.fence, row.seq, row.step, sol003.LcmOperationState(row.state)
	op.CancelPending, op.CancelMode = row.cancel != "", sol003.CancelModeType(row.cancel)
	return op, nil
}

func queueNotification(b *pgx.Batch, op *lcm.OpOcc, e lcm.StateEntered, note []byte, told **string) {
	b.Queue(`WITH outbox AS (
			INSERT INTO notifications (id, type, vnf_instance_id, project_id, op_occ_id, seq, body, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING `+outboxColumns+`),
		`+fanOut(storedInstance)+`
		SELECT told.subscriptions FROM told`,
		e.ID, string(sol003.NotificationTypeVnfLcmOperationOccurrence), op.InstanceID, op.ProjectID, op.ID, e.Seq, withoutNUL(note), e.At).QueryRow(tellInto(told, nil))
}

// Claim implements lcm.Store.
func (s *Store) Claim(ctx context.Context, opOccID string, fence int64, node string) (*lcm.Claimed, error) {
	var opSealed, instSealed []byte
	row := opOccRow{fence: fence}
	var version int64
	var instID string
	var journal []stepRow
	err := s.Pool.QueryRow(ctx, `
		SELECT o.sealed, o.seq, o.step, coalesce(o.cancel_mode, ''), o.operation_state, i.id::text, i.sealed, i.version,
			(SELECT coalesce(json_agg(json_build_object('Seq', s.seq, 'Name', s.name, 'Tries', s.tries, 'BegunAt', s.begun_at, 'DoneAt', s.done_at) ORDER BY s.seq), '[]')
			 FROM lcm_op_steps s WHERE s.op_occ_id = o.id)
		FROM vnf_lcm_op_occs o JOIN vnf_instances i ON i.id = o.vnf_instance_id
		WHERE o.id = $1 AND o.fence = $2 AND o.operation_state IN ('STARTING', 'PROCESSING', 'ROLLING_BACK')`, opOccID, fence).
		Scan(&opSealed, &row.seq, &row.step, &row.cancel, &row.state, &instID, &instSealed, &version, &journal)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, lcm.ErrStale
	case err != nil:
		return nil, fmt.Errorf("claim op occ %s: %w", opOccID, err)
	}
	steps := make([]lcm.StepRecord, len(journal))
	for n, r := range journal {
		steps[n] = lcm.StepRecord{Seq: r.Seq, Name: r.Name, Tries: r.Tries, BegunAt: r.BegunAt}
		if r.DoneAt != nil {
			steps[n].Done, steps[n].DoneAt = true, *r.DoneAt
		}
	}
	op, err := s.decodeOpOcc(opOccID, opSealed, row)
	if err != nil {
		return nil, err
	}
	op.Owner = node
	i, err := s.decodeInstance(instID, instSealed, version)
	if err != nil {
		return nil, err
	}
	return &lcm.Claimed{Op: op, Instance: i, Steps: steps}, nil
}

// Commit implements lcm.Store: one round trip, one transaction.
func (s *Store) Commit(ctx context.Context, t *lcm.Transition) error {
	op := t.Op
	body, sealed, err := s.encodeOpOcc(op)
	if err != nil {
		return err
	}
	steps := journalColumns(t)
	notes, err := notificationColumns(t)
	if err != nil {
		return err
	}
	args := []any{
		op.ID, op.Fence, string(op.State), op.StateEnteredTime, body, sealed, op.Seq, op.Step, nullable(t.Node), lcm.Active(op.State),
		steps.seq, steps.name, steps.tries, steps.begun, steps.done,
		notes.id, notes.seq, notes.body, notes.at, string(sol003.NotificationTypeVnfLcmOperationOccurrence), op.InstanceID, op.ProjectID,
		nullable(string(t.Asked)), nullable(string(op.CancelMode)), nullable(op.VimID), endedDigests(op, body),
	}
	query := commitOperation
	if i := t.Instance; i != nil {
		body, sealed, err := s.encodeInstance(i)
		if err != nil {
			return err
		}
		args = append(args, i.Name, i.VnfdID, i.PackageID, string(i.State), nullable(i.VimID), body, sealed, attributeDigests(body))
		query = commitWithInstance
	}
	var held bool
	var asked *string
	var told *string
	if err := s.Pool.QueryRow(ctx, query, args...).Scan(&held, &asked, &told); err != nil {
		return err
	}
	switch {
	case held:
		s.voice.tell(told)
		return nil
	case asked != nil && *asked != string(t.Asked):
		return &lcm.CancelRequestedError{Mode: sol003.CancelModeType(*asked)}
	}
	// The statement may have waited for a request to cancel that it saw only when it came to the row: look at it anew.
	err = s.Pool.QueryRow(ctx, `SELECT coalesce(cancel_mode, '') FROM vnf_lcm_op_occs WHERE id = $1 AND fence = $2`, op.ID, op.Fence).Scan(&asked)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lcm.ErrStale
	case err != nil:
		return err
	case asked != nil && *asked != "" && *asked != string(t.Asked):
		return &lcm.CancelRequestedError{Mode: sol003.CancelModeType(*asked)}
	default:
		return lcm.ErrStale
	}
}

// The statements of a transition: all parts hang on the op occ's row under the fence, so without it nothing changes.
var (
	commitParts = `WITH held AS (
			UPDATE vnf_lcm_op_occs SET operation_state = $3, state_entered_time = $4, body = $5, sealed = $6, seq = $7, step = $8, owner = $9, active = $10, cancel_mode = $24, vim_id = $25, attributes = $26
			WHERE id = $1 AND fence = $2 AND cancel_mode IS NOT DISTINCT FROM $23 RETURNING id),
		journal AS (
			INSERT INTO lcm_op_steps (op_occ_id, node, fence, seq, name, tries, begun_at, done_at)
			SELECT held.id, $9, $2, s.* FROM held, unnest($11::integer[], $12::text[], $13::integer[], $14::timestamptz[], $15::timestamptz[]) AS s
			ON CONFLICT (op_occ_id, seq) DO UPDATE SET tries = excluded.tries, node = excluded.node, fence = excluded.fence, done_at = excluded.done_at),
		outbox AS (
			INSERT INTO notifications (id, type, vnf_instance_id, project_id, op_occ_id, seq, body, created_at)
			SELECT n.id, $20, $21, $22, held.id, n.seq, n.body, n.at FROM held, unnest($16::uuid[], $17::bigint[], $18::json[], $19::timestamptz[]) AS n (id, seq, body, at)
			RETURNING ` + outboxColumns + `)`
	commitResult = ` SELECT EXISTS (SELECT 1 FROM held),
		CASE WHEN NOT EXISTS (SELECT 1 FROM held) THEN (SELECT cancel_mode FROM vnf_lcm_op_occs WHERE id = $1 AND fence = $2) END,
		(SELECT told.subscriptions FROM told)`
	commitOperation = commitParts + `,
		` + fanOut(storedInstance) + commitResult
	commitWithInstance = commitParts + `,
		instance AS (
			UPDATE vnf_instances i SET name = $27, vnfd_id = $28, vnf_pkg_id = $29, instantiation_state = $30, vim_id = $31, body = $32, sealed = $33, attributes = $34, version = version + 1
			FROM held WHERE i.id = $21 RETURNING i.body),
		` + fanOut("(SELECT instance.body FROM instance)") + commitResult
)

type stepColumns struct {
	seq, tries []int32
	name       []string
	begun      []time.Time
	done       []*time.Time
}

// journalColumns lays out the journal's lines that are new or have changed.
func journalColumns(t *lcm.Transition) stepColumns {
	n := len(t.Steps)
	c := stepColumns{make([]int32, n), make([]int32, n), make([]string, n), make([]time.Time, n), make([]*time.Time, n)}
	for i := range t.Steps {
		r := &t.Steps[i]
		c.seq[i], c.name[i], c.tries[i], c.begun[i] = int32(r.Seq), r.Name, int32(r.Tries), r.BegunAt //nolint:gosec // a few, both
		if r.Done {
			c.done[i] = &r.DoneAt
		}
	}
	return c
}

type noteColumns struct {
	id   []string
	seq  []int64
	body []string
	at   []time.Time
}

// notificationColumns lays out the notifications of the states that were entered.
func notificationColumns(t *lcm.Transition) (noteColumns, error) {
	n := len(t.Entered)
	c := noteColumns{make([]string, n), make([]int64, n), make([]string, n), make([]time.Time, n)}
	for i, e := range t.Entered {
		raw, err := json.Marshal(e.Notification)
		if err != nil {
			return c, fmt.Errorf("encode the notification of op occ %s: %w", t.Op.ID, err)
		}
		c.id[i], c.seq[i], c.body[i], c.at[i] = e.ID, e.Seq, string(withoutNUL(raw)), e.At
	}
	return c, nil
}

// OpOccBody returns an op occ as the API shows it.
func (s *Store) OpOccBody(ctx context.Context, scope lcm.Scope, id string) (lcm.Body, error) {
	if !validID(id) {
		return lcm.Body{}, noOpOcc(id)
	}
	b := lcm.Body{ID: id}
	err := s.Pool.QueryRow(ctx, `SELECT `+opOccVersion+`, body FROM vnf_lcm_op_occs t WHERE id = $1 AND ($2 OR project_id = $3)`,
		id, scope.Admin, scope.ProjectID).Scan(&b.Version, &b.JSON)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lcm.Body{}, noOpOcc(id)
	case err != nil:
		return lcm.Body{}, fmt.Errorf("read op occ %s: %w", id, err)
	}
	return b, nil
}

// OpOccs streams op occs as the API shows them, in the order of their start.
func (s *Store) OpOccs(ctx context.Context, scope lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return s.list(ctx, opOccList, scope, q)
}
