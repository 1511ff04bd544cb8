package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

const opOccsTable = "vnf_lcm_op_occs"

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

// Accept implements lcm.Store.
func (s *Store) Accept(ctx context.Context, scope lcm.Scope, op *lcm.OpOcc, want sol003.InstantiationState) error {
	body, sealed, err := s.encodeOpOcc(op)
	if err != nil {
		return err
	}
	note, err := json.Marshal(op.Notification())
	if err != nil {
		return fmt.Errorf("encode the notification of op occ %s: %w", op.ID, err)
	}
	err = inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		queueReference(b, op.VimID)
		b.Queue(`
			WITH i AS (
				SELECT id, project_id FROM vnf_instances
				WHERE id = $1 AND instantiation_state = $2 AND ($3 OR project_id = $4)
				AND EXISTS (SELECT 1 FROM vims WHERE id = $16) FOR UPDATE),
			o AS (
				INSERT INTO vnf_lcm_op_occs (id, vnf_instance_id, project_id, vim_id, operation, operation_state, start_time, state_entered_time, body, sealed, fence, seq)
				SELECT $5, i.id, i.project_id, $16, $6, $7, $8, $8, $9, $10, $11, $12 FROM i
				RETURNING id, vnf_instance_id, project_id)
			INSERT INTO notifications (id, type, vnf_instance_id, project_id, op_occ_id, seq, body, created_at)
			SELECT $13, $14, o.vnf_instance_id, o.project_id, o.id, $12, $15, $8 FROM o`,
			op.InstanceID, string(want), scope.Admin, scope.ProjectID,
			op.ID, string(op.Operation), string(op.State), op.StartTime, body, sealed, op.Fence, op.Seq,
			newID(), string(sol003.NotificationTypeVnfLcmOperationOccurrence), note, op.VimID)
		results := tx.SendBatch(ctx, b)
		_, err := results.Exec()
		var tag pgconn.CommandTag
		if err == nil {
			tag, err = results.Exec()
		}
		if err = errors.Join(err, results.Close()); err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return lcm.Errorf(lcm.KindConflict, "Vnf instance %s is no longer %s, or VIM %s has been deleted. Cannot start %s now.", op.InstanceID, want, op.VimID, op.Operation)
		}
		return s.enqueueOperation(ctx, tx, op.ID, op.Fence)
	})
	if err == nil {
		s.voice.announce(lcmQueue)
	}
	if breaks(err, "vnf_lcm_op_occs_one_active") {
		return s.busy(ctx, op)
	}
	return err
}

// busy words the conflict with the op occ that is in the way.
func (s *Store) busy(ctx context.Context, op *lcm.OpOcc) error {
	var id, operation, state string
	err := s.Pool.QueryRow(ctx, `SELECT id::text, operation, operation_state FROM vnf_lcm_op_occs
		WHERE vnf_instance_id = $1 AND active`, op.InstanceID).Scan(&id, &operation, &state)
	if err != nil {
		return lcm.Errorf(lcm.KindConflict, "Vnf instance %s has another LCM operation. Cannot start %s now.", op.InstanceID, op.Operation)
	}
	return lcm.Errorf(lcm.KindConflict, "Vnf instance %s has LCM operation occurrence %s: %s in %s. Cannot start %s while it is not finished.", op.InstanceID, id, operation, state, op.Operation)
}

// Move implements lcm.Store.
func (s *Store) Move(ctx context.Context, scope lcm.Scope, opOccID string, decide func(*lcm.OpOcc) (lcm.StateEntered, error)) error {
	if !validID(opOccID) {
		return noOpOcc(opOccID)
	}
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		var sealed []byte
		var row opOccRow
		err := tx.QueryRow(ctx, `SELECT sealed, fence, seq, step, cancel_pending, operation_state FROM vnf_lcm_op_occs
			WHERE id = $1 AND ($2 OR project_id = $3) FOR UPDATE`, opOccID, scope.Admin, scope.ProjectID).
			Scan(&sealed, &row.fence, &row.seq, &row.step, &row.cancel, &row.state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return noOpOcc(opOccID)
		case err != nil:
			return fmt.Errorf("read op occ %s: %w", opOccID, err)
		}
		op, err := s.decodeOpOcc(opOccID, sealed, row)
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
		b.Queue(`UPDATE vnf_lcm_op_occs SET operation_state = $2, state_entered_time = $3, body = $4, sealed = $5, seq = $6, fence = $7, active = $8, owner = NULL WHERE id = $1`,
			op.ID, string(op.State), op.StateEnteredTime, body, sealed, op.Seq, op.Fence, lcm.Active(op.State))
		b.Queue(`DELETE FROM lcm_op_steps WHERE op_occ_id = $1 AND ($2 OR done_at IS NULL)`, op.ID, op.Afresh)
		queueNotification(b, op, entered, note)
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
	}
	return err
}

// opOccRow are the columns that decide over what the sealed op occ says.
type opOccRow struct {
	fence, seq  int64
	step, state string
	cancel      bool
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
	op.Fence, op.Seq, op.Step, op.CancelPending, op.State = row.fence, row.seq, row.step, row.cancel, sol003.LcmOperationState(row.state)
	return op, nil
}

func queueNotification(b *pgx.Batch, op *lcm.OpOcc, e lcm.StateEntered, note []byte) {
	b.Queue(`INSERT INTO notifications (id, type, vnf_instance_id, project_id, op_occ_id, seq, body, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		e.ID, string(sol003.NotificationTypeVnfLcmOperationOccurrence), op.InstanceID, op.ProjectID, op.ID, e.Seq, withoutNUL(note), e.At)
}

// Claim implements lcm.Store.
func (s *Store) Claim(ctx context.Context, opOccID string, fence int64, node string) (*lcm.Claimed, error) {
	var opSealed, instSealed []byte
	row := opOccRow{fence: fence}
	var version int64
	var instID string
	var journal []stepRow
	err := s.Pool.QueryRow(ctx, `
		SELECT o.sealed, o.seq, o.step, o.cancel_pending, o.operation_state, i.id::text, i.sealed, i.version,
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
	}
	query := commitOperation
	if i := t.Instance; i != nil {
		body, sealed, err := s.encodeInstance(i)
		if err != nil {
			return err
		}
		args = append(args, i.Name, i.VnfdID, i.PackageID, string(i.State), nullable(i.VimID), body, sealed)
		query = commitWithInstance
	}
	var held bool
	if err := s.Pool.QueryRow(ctx, query, args...).Scan(&held); err != nil {
		return err
	}
	if !held {
		return lcm.ErrStale
	}
	return nil
}

// The statements of a transition: all parts hang on the op occ's row under the fence, so without it nothing changes.
const (
	commitParts = `WITH held AS (
			UPDATE vnf_lcm_op_occs SET operation_state = $3, state_entered_time = $4, body = $5, sealed = $6, seq = $7, step = $8, owner = $9, active = $10
			WHERE id = $1 AND fence = $2 RETURNING id),
		journal AS (
			INSERT INTO lcm_op_steps (op_occ_id, node, fence, seq, name, tries, begun_at, done_at)
			SELECT held.id, $9, $2, s.* FROM held, unnest($11::integer[], $12::text[], $13::integer[], $14::timestamptz[], $15::timestamptz[]) AS s
			ON CONFLICT (op_occ_id, seq) DO UPDATE SET tries = excluded.tries, node = excluded.node, fence = excluded.fence, done_at = excluded.done_at),
		outbox AS (
			INSERT INTO notifications (id, type, vnf_instance_id, project_id, op_occ_id, seq, body, created_at)
			SELECT n.id, $20, $21, $22, held.id, n.seq, n.body, n.at FROM held, unnest($16::uuid[], $17::bigint[], $18::json[], $19::timestamptz[]) AS n (id, seq, body, at))`
	commitOperation    = commitParts + ` SELECT EXISTS (SELECT 1 FROM held)`
	commitWithInstance = commitParts + `,
		instance AS (
			UPDATE vnf_instances i SET name = $23, vnfd_id = $24, vnf_pkg_id = $25, instantiation_state = $26, vim_id = $27, body = $28, sealed = $29, version = version + 1
			FROM held WHERE i.id = $21)
		SELECT EXISTS (SELECT 1 FROM held)`
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
	err := s.Pool.QueryRow(ctx, `SELECT seq, body FROM vnf_lcm_op_occs WHERE id = $1 AND ($2 OR project_id = $3)`,
		id, scope.Admin, scope.ProjectID).Scan(&b.Version, &b.JSON)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lcm.Body{}, noOpOcc(id)
	case err != nil:
		return lcm.Body{}, fmt.Errorf("read op occ %s: %w", id, err)
	}
	return b, nil
}

var opOccColumns = columns{
	"id": {name: "t.id", kind: uuidColumn}, "vnfInstanceId": {name: "t.vnf_instance_id", kind: uuidColumn},
	"operationState": {name: "t.operation_state", kind: enumColumn}, "operation": {name: "t.operation", kind: enumColumn},
}

// OpOccs streams op occs as the API shows them, in the order of their start.
func (s *Store) OpOccs(ctx context.Context, scope lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return s.bodies(ctx, "vnf_lcm_op_occs t", "t.seq", "t.body", opOccColumns, scope, q)
}
