package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// verifyKey is the second key of the advisory lock that the node holds whose turn it is to verify; nodes' own are greater than 0.
const verifyKey int32 = -1

// shownVerifications is verifications as the API shows them: of instances that are there to be verified.
const shownVerifications = `(SELECT r.*, json_strip_nulls(json_build_object('vnfInstanceId', r.id, 'vnfInstanceName', r.name, 'vimId', r.vim_id,
		'result', r.result, 'verifiedAt', to_char(r.verified_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
		'changedSince', CASE WHEN r.changed THEN true END,
		'differsSince', to_char(r.differs_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
		'differenceCount', json_array_length(r.differences), 'differences', r.differences, 'problem', r.problem)) AS body
	FROM (SELECT v.vnf_instance_id AS id, i.project_id, i.name, coalesce(v.vim_id, i.vim_id) AS vim_id, v.verified_at, v.differs_since, v.differences, v.problem,
			v.instance_version <> i.version AS changed,
			CASE WHEN v.problem IS NOT NULL THEN 'UNVERIFIED' WHEN v.differs_since IS NOT NULL THEN 'DIFFERS' ELSE 'SAME' END AS result
		FROM verifications v JOIN vnf_instances i ON i.id = v.vnf_instance_id
		WHERE i.instantiation_state = 'INSTANTIATED') AS r) AS t`

// verificationColumn are the attributes of a Verification that stand in columns.
var verificationColumn = columns{
	"vnfInstanceId": {name: "t.id", kind: uuidColumn}, "vimId": {name: "t.vim_id", kind: uuidColumn},
	"vnfInstanceName": {name: "t.name"}, "result": {name: "t.result", kind: enumColumn},
}

// Verifications streams what was last seen of the scope's instances as the API shows it, in the order of the instances' creation.
func (s *Store) Verifications(ctx context.Context, sc lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return s.bodies(ctx, shownVerifications, "0::bigint", "t.body", verificationColumn, sc, q)
}

// VerificationBody returns what was last seen of an instance as the API shows it. Not found: also when nobody has looked.
func (s *Store) VerificationBody(ctx context.Context, sc lcm.Scope, instanceID string) (lcm.Body, error) {
	if !validID(instanceID) {
		return lcm.Body{}, noInstance(instanceID)
	}
	b := lcm.Body{ID: instanceID}
	err := s.Pool.QueryRow(ctx, `SELECT t.body FROM `+shownVerifications+` WHERE t.id = $1 AND ($2 OR t.project_id = $3)`,
		instanceID, sc.Admin, sc.ProjectID).Scan(&b.JSON)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		if _, err := s.InstanceBody(ctx, sc, instanceID); err != nil {
			return lcm.Body{}, err
		}
		return lcm.Body{}, lcm.Errorf(lcm.KindNotFound, "Vnf instance %s has not been verified.", instanceID)
	case err != nil:
		return lcm.Body{}, fmt.Errorf("read the verification of VNF instance %s: %w", instanceID, err)
	}
	return b, nil
}

// Settled implements lcm.Verifications.
func (s *Store) Settled(ctx context.Context, instanceID string) error {
	var id, operation, state string
	err := s.Pool.QueryRow(ctx, `SELECT id::text, operation, operation_state FROM vnf_lcm_op_occs
		WHERE vnf_instance_id = $1 AND active`, instanceID).Scan(&id, &operation, &state)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for the operation of VNF instance %s: %w", instanceID, err)
	}
	return lcm.Errorf(lcm.KindConflict, "Vnf instance %s has LCM operation occurrence %s: %s in %s. What it consists of is not settled while that is not finished.",
		instanceID, id, operation, state)
}

// RecordVerification implements lcm.Verifications.
func (s *Store) RecordVerification(ctx context.Context, v *lcm.Verification) ([]lcm.Difference, error) {
	differences := v.Differences
	if differences == nil {
		differences = []lcm.Difference{}
	}
	raw, err := json.Marshal(differences)
	if err != nil {
		return nil, fmt.Errorf("encode the verification of VNF instance %s: %w", v.InstanceID, err)
	}
	var since *time.Time
	var last []byte
	err = s.Pool.QueryRow(ctx, `
		WITH i AS (
			SELECT id, version FROM vnf_instances WHERE id = $1 AND version = $2 AND instantiation_state = 'INSTANTIATED'
			AND NOT EXISTS (SELECT 1 FROM vnf_lcm_op_occs WHERE vnf_instance_id = $1 AND active) FOR KEY SHARE),
		last AS (SELECT differences FROM verifications WHERE vnf_instance_id = $1),
		now AS (
			INSERT INTO verifications (vnf_instance_id, instance_version, tried_at, verified_at, vim_id, differs_since, differences)
			SELECT i.id, i.version, $3::timestamptz, $3, $4::uuid, CASE WHEN $5 THEN $3 END, $6 FROM i
			ON CONFLICT (vnf_instance_id) DO UPDATE SET instance_version = excluded.instance_version, tried_at = $3, problem = NULL,
				verified_at = $3, vim_id = $4, differs_since = CASE WHEN $5 THEN coalesce(verifications.differs_since, $3) END, differences = $6
			RETURNING differs_since)
		SELECT now.differs_since, coalesce(last.differences, '[]') FROM now LEFT JOIN last ON true`,
		v.InstanceID, v.Version, v.At, nullable(v.VimID), len(v.Differences) > 0, withoutNUL(raw)).Scan(&since, &last)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		if err := s.Settled(ctx, v.InstanceID); err != nil {
			return nil, err
		}
		return nil, lcm.Errorf(lcm.KindConflict, "Vnf instance %s has been changed while it was verified. Verify it again.", v.InstanceID)
	case err != nil:
		return nil, fmt.Errorf("record the verification of VNF instance %s: %w", v.InstanceID, err)
	}
	if since != nil {
		v.Since = since.UTC()
	}
	var before []lcm.Difference
	if err := json.Unmarshal(last, &before); err != nil {
		return nil, fmt.Errorf("decode the last verification of VNF instance %s: %w", v.InstanceID, err)
	}
	return before, nil
}

// RecordUnverified implements lcm.Verifications.
func (s *Store) RecordUnverified(ctx context.Context, instanceID string, at time.Time, reason string) error {
	_, err := s.Pool.Exec(ctx, `INSERT INTO verifications (vnf_instance_id, instance_version, tried_at, problem)
		SELECT id, version, $2, $3 FROM vnf_instances WHERE id = $1 FOR KEY SHARE
		ON CONFLICT (vnf_instance_id) DO UPDATE SET tried_at = $2, problem = $3`,
		instanceID, at, string(withoutNUL([]byte(reason))))
	if err != nil {
		return fmt.Errorf("record why VNF instance %s is not verified: %w", instanceID, err)
	}
	return nil
}

// Differing implements lcm.Verifications. VIMs none of whose instances differ are there with 0.
func (s *Store) Differing(ctx context.Context) (map[string]int, error) {
	rows, err := s.Pool.Query(ctx, `SELECT m.id::text, (SELECT count(*) FROM verifications v JOIN vnf_instances i ON i.id = v.vnf_instance_id
		WHERE v.vim_id = m.id AND v.differs_since IS NOT NULL AND i.instantiation_state = 'INSTANTIATED') FROM vims m`)
	if err != nil {
		return nil, fmt.Errorf("count the VNF instances that differ: %w", err)
	}
	counts := map[string]int{}
	var vim string
	var count int
	if _, err := pgx.ForEachRow(rows, []any{&vim, &count}, func() error {
		counts[vim] = count
		return nil
	}); err != nil {
		return nil, fmt.Errorf("count the VNF instances that differ: %w", err)
	}
	return counts, nil
}

// verifyTurn is the session that holds the lock: whoever loses it loses the turn.
type verifyTurn struct {
	mu   sync.Mutex // a session does one thing at a time
	conn *pgxpool.Conn
}

// VerifyTurn implements lcm.Verifications. The turn holds one connection, and ends with it.
func (s *Store) VerifyTurn(ctx context.Context) (lcm.VerifyTurn, error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("take the turn to verify: %w", err)
	}
	var mine bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, lockClass, verifyKey).Scan(&mine); err != nil {
		conn.Release()
		return nil, fmt.Errorf("take the turn to verify: %w", err)
	}
	if !mine {
		conn.Release()
		return nil, nil //nolint:nilnil // somebody else's turn is no error
	}
	return &verifyTurn{conn: conn}, nil
}

// What is due ($1: the time before which it was looked at). The first reads what was looked at before that time, and no more:
// mostly nothing. The other one reads all instances, by a VIM's index.
const (
	dueByTime = ` FROM verifications v JOIN vnf_instances i ON i.id = v.vnf_instance_id
		WHERE v.tried_at <= $1` + toBeVerified
	dueAll = ` FROM vnf_instances i LEFT JOIN verifications v ON v.vnf_instance_id = i.id
		WHERE (v.tried_at IS NULL OR v.tried_at <= $1 OR v.problem IS NULL AND v.instance_version <> i.version)` + toBeVerified
	toBeVerified = ` AND i.instantiation_state = 'INSTANTIATED' AND i.vim_id IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM vnf_lcm_op_occs o WHERE o.vnf_instance_id = i.id AND o.active)`
)

// VIMs implements lcm.VerifyTurn.
func (t *verifyTurn) VIMs(ctx context.Context, due lcm.Due) ([]string, error) {
	query := `SELECT DISTINCT i.vim_id::text` + dueByTime
	if due.Changed {
		query = `SELECT DISTINCT i.vim_id::text` + dueAll
	}
	return t.list(ctx, query, due.Before)
}

// Due implements lcm.VerifyTurn.
func (t *verifyTurn) Due(ctx context.Context, due lcm.Due, vimID, after string, limit int) ([]string, error) {
	const next = ` AND i.vim_id = $2::uuid AND i.id > coalesce(nullif($3, ''), '00000000-0000-0000-0000-000000000000')::uuid ORDER BY i.id LIMIT $4`
	query := `SELECT i.id::text` + dueByTime + next
	if due.Changed {
		query = `SELECT i.id::text` + dueAll + next
	}
	return t.list(ctx, query, due.Before, vimID, after, limit)
}

// list asks for ids.
func (t *verifyTurn) list(ctx context.Context, query string, args ...any) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows, err := t.conn.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("look for VNF instances to verify: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for VNF instances to verify: %w", err)
	}
	return ids, nil
}

// End implements lcm.VerifyTurn.
func (t *verifyTurn) End() {
	ctx, cancel := context.WithTimeout(context.Background(), refusalsEnd)
	defer cancel()
	if _, err := t.conn.Exec(ctx, `SELECT pg_advisory_unlock($1, $2)`, lockClass, verifyKey); err != nil {
		_ = t.conn.Conn().Close(ctx) // the lock goes with the session
	}
	t.conn.Release()
}

var _ lcm.Verifications = (*Store)(nil)
