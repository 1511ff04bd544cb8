package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

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
	return body, sealed, err
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
		tag, err := tx.Exec(ctx, `
			WITH i AS (
				SELECT id, project_id FROM vnf_instances
				WHERE id = $1 AND instantiation_state = $2 AND ($3 OR project_id = $4) FOR UPDATE),
			o AS (
				INSERT INTO vnf_lcm_op_occs (id, vnf_instance_id, project_id, operation, operation_state, start_time, state_entered_time, body, sealed, fence, seq)
				SELECT $5, i.id, i.project_id, $6, $7, $8, $8, $9, $10, $11, $12 FROM i
				RETURNING id, vnf_instance_id, project_id)
			INSERT INTO notifications (id, type, vnf_instance_id, project_id, op_occ_id, seq, body, created_at)
			SELECT $13, $14, o.vnf_instance_id, o.project_id, o.id, $12, $15, $8 FROM o`,
			op.InstanceID, string(want), scope.Admin, scope.ProjectID,
			op.ID, string(op.Operation), string(op.State), op.StartTime, body, sealed, op.Fence, op.Seq,
			newID(), string(sol003.NotificationTypeVnfLcmOperationOccurrence), note)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return lcm.Errorf(lcm.KindConflict, "Vnf instance %s is no longer %s. Cannot start %s while the vnf instance is in this state.", op.InstanceID, want, op.Operation)
		}
		return s.enqueueOperation(ctx, tx, op.ID, op.Fence)
	})
	if name, ok := violates(err, uniqueViolation); ok && name == "vnf_lcm_op_occs_one_active" {
		return s.busy(ctx, op)
	}
	return err
}

// busy words the conflict with the op occ that is in the way.
func (s *Store) busy(ctx context.Context, op *lcm.OpOcc) error {
	var id, operation, state string
	err := s.Pool.QueryRow(ctx, `SELECT id::text, operation, operation_state FROM vnf_lcm_op_occs
		WHERE vnf_instance_id = $1 AND operation_state IN ('STARTING', 'PROCESSING', 'ROLLING_BACK', 'FAILED_TEMP')`, op.InstanceID).Scan(&id, &operation, &state)
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
	return inTx(ctx, s.Pool, func(tx pgx.Tx) error {
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
		b.Queue(`UPDATE vnf_lcm_op_occs SET operation_state = $2, state_entered_time = $3, body = $4, sealed = $5, seq = $6, fence = $7, owner = NULL WHERE id = $1`,
			op.ID, string(op.State), op.StateEnteredTime, body, sealed, op.Seq, op.Fence)
		b.Queue(`DELETE FROM lcm_op_steps WHERE op_occ_id = $1 AND done_at IS NULL`, op.ID)
		queueNotification(b, op, entered, note)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if !lcm.Live(op.State) {
			return nil
		}
		return s.enqueueOperation(ctx, tx, op.ID, op.Fence)
	})
}

// opOccRow are the columns that decide over what the sealed op occ says.
type opOccRow struct {
	fence, seq  int64
	step, state string
	cancel      bool
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
		e.ID, string(sol003.NotificationTypeVnfLcmOperationOccurrence), op.InstanceID, op.ProjectID, op.ID, e.Seq, note, e.At)
}

// Claim implements lcm.Store.
func (s *Store) Claim(ctx context.Context, opOccID string, fence int64, node string) (*lcm.Claimed, error) {
	b := &pgx.Batch{}
	// Losing this line in a crash of the server loses nothing: the fence stands, and nothing has been done yet.
	b.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
	b.Queue(`UPDATE vnf_lcm_op_occs SET owner = $3 WHERE id = $1 AND fence = $2 AND owner IS DISTINCT FROM $3
		AND operation_state IN ('STARTING', 'PROCESSING', 'ROLLING_BACK')`, opOccID, fence, node)
	b.Queue(`SELECT o.sealed, o.seq, o.step, o.cancel_pending, o.operation_state, i.id::text, i.sealed, i.version
		FROM vnf_lcm_op_occs o JOIN vnf_instances i ON i.id = o.vnf_instance_id
		WHERE o.id = $1 AND o.fence = $2 AND o.operation_state IN ('STARTING', 'PROCESSING', 'ROLLING_BACK')`, opOccID, fence)
	b.Queue(`SELECT seq, name, done_at IS NOT NULL, tries, begun_at, coalesce(done_at, begun_at) FROM lcm_op_steps WHERE op_occ_id = $1 ORDER BY seq`, opOccID)
	results := s.Pool.SendBatch(ctx, b)
	defer results.Close()
	for range 2 {
		if _, err := results.Exec(); err != nil {
			return nil, fmt.Errorf("claim op occ %s: %w", opOccID, err)
		}
	}
	var opSealed, instSealed []byte
	row := opOccRow{fence: fence}
	var version int64
	var instID string
	err := results.QueryRow().Scan(&opSealed, &row.seq, &row.step, &row.cancel, &row.state, &instID, &instSealed, &version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, lcm.ErrStale
	case err != nil:
		return nil, fmt.Errorf("claim op occ %s: %w", opOccID, err)
	}
	rows, err := results.Query()
	if err != nil {
		return nil, fmt.Errorf("read the journal of op occ %s: %w", opOccID, err)
	}
	steps, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r lcm.StepRecord, err error) {
		err = row.Scan(&r.Seq, &r.Name, &r.Done, &r.Tries, &r.BegunAt, &r.DoneAt)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the journal of op occ %s: %w", opOccID, err)
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
	b := &pgx.Batch{}
	b.Queue(`SELECT require_fence($1, $2)`, op.ID, op.Fence)
	b.Queue(`UPDATE vnf_lcm_op_occs SET operation_state = $2, state_entered_time = $3, body = $4, sealed = $5, seq = $6, step = $7 WHERE id = $1`,
		op.ID, string(op.State), op.StateEnteredTime, body, sealed, op.Seq, op.Step)
	for _, r := range t.Steps {
		var done any
		if r.Done {
			done = r.DoneAt
		}
		b.Queue(`INSERT INTO lcm_op_steps (op_occ_id, seq, name, tries, node, fence, begun_at, done_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (op_occ_id, seq) DO UPDATE SET tries = excluded.tries, node = excluded.node, fence = excluded.fence, done_at = excluded.done_at`,
			op.ID, r.Seq, r.Name, r.Tries, t.Node, op.Fence, r.BegunAt, done)
	}
	if i := t.Instance; i != nil {
		body, sealed, err := s.encodeInstance(i)
		if err != nil {
			return err
		}
		b.Queue(`UPDATE vnf_instances SET name = $2, vnfd_id = $3, vnf_pkg_id = $4, instantiation_state = $5, vim_id = $6, body = $7, sealed = $8, version = version + 1 WHERE id = $1`,
			i.ID, i.Name, i.VnfdID, i.PackageID, string(i.State), nullable(i.VimID), body, sealed)
	}
	for _, e := range t.Entered {
		note, err := json.Marshal(e.Notification)
		if err != nil {
			return fmt.Errorf("encode the notification of op occ %s: %w", op.ID, err)
		}
		queueNotification(b, op, e, note)
	}
	err = s.Pool.SendBatch(ctx, b).Close()
	if _, ok := violates(err, fenceViolation); ok {
		return lcm.ErrStale
	}
	return err
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
