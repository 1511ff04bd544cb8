package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// effect is what a request has brought about: a line of the audit trail and, with an Idempotency-Key, what a repetition
// is answered with.
type effect struct {
	instanceID string // of the VNF instance concerned, "" for none
	opOccID    string // of the op occ concerned, "" for none
	resourceID string // what was made, changed or deleted
	status     int    // of the answer
	body       []byte // what was answered, without _links; nil for nothing
	version    int64  // of body
}

// The statements of a request; who uses insertAudit and insertKey as they are has had the effect or fails.
const (
	auditInto = `INSERT INTO audit_events (id, at, user_name, project_id, role, action, address, request_id,
			vnf_instance_id, op_occ_id, resource_id, outcome) `
	insertAudit = auditInto + `SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12`
	insertKey   = `INSERT INTO idempotency_keys (created_at, user_name, project_id, key, fingerprint, resource_id, body, version)
		SELECT $1, $2, $3, $4, $5, $6::text, $7, $8`
	guardKey = ` WHERE EXISTS (SELECT 1 FROM vnf_instances WHERE id = $6::text::uuid)`
)

// queueRequest makes a batch record the context's request with its effect; nothing when what runs is nobody's request.
// What has the effect fails when it has none, and the batch's error goes through repeated.
func (s *Store) queueRequest(ctx context.Context, b *pgx.Batch, e effect) {
	if r := lcm.RequestOf(ctx); r != nil {
		s.queueKey(ctx, b, e, "")
		b.Queue(insertAudit, auditColumns(newID(), s.Now(), r, e)...)
	}
}

// queueKey makes a batch record the Idempotency-Key of the context's request, if it has one, with its effect; with guardKey
// only if the instance is there that its main statement may not have inserted.
func (s *Store) queueKey(ctx context.Context, b *pgx.Batch, e effect, guard string) {
	if r := lcm.RequestOf(ctx); r != nil && r.Key != "" {
		b.Queue(insertKey+guard, s.Now(), r.Caller.User, r.Caller.ProjectID, r.Key, r.Fingerprint, e.resourceID, e.body, e.version)
	}
}

// auditPart is a part of a statement, with its comma, that records the context's request for each row of another part; its
// values are added to args. It is empty when what runs is nobody's request.
func (s *Store) auditPart(ctx context.Context, args *[]any, from string, e effect) string {
	r := lcm.RequestOf(ctx)
	if r == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("audit AS (" + auditInto + "SELECT ")
	for n, v := range auditColumns(newID(), s.Now(), r, e) {
		*args = append(*args, v)
		if n > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(len(*args)))
	}
	b.WriteString(" FROM " + from + "),\n")
	return b.String()
}

func auditColumns(id string, at time.Time, r *lcm.Request, e effect) []any {
	return []any{id, at, r.Caller.User, r.Caller.ProjectID, r.Caller.Role.String(), r.Action, r.Address, r.ID,
		nullable(e.instanceID), nullable(e.opOccID), nullable(e.resourceID), e.status}
}

// recordRequest is queueRequest for a transaction without a batch.
func (s *Store) recordRequest(ctx context.Context, tx pgx.Tx, e effect) error {
	if lcm.RequestOf(ctx) == nil {
		return nil
	}
	b := &pgx.Batch{}
	s.queueRequest(ctx, b, e)
	return tx.SendBatch(ctx, b).Close()
}

// repeated turns the error of a transaction in which a request with an Idempotency-Key was recorded, but another had been
// before, into a *lcm.RepeatedError, or invalid with status 422 when that was another request's. Other errors it returns
// as they are.
func (s *Store) repeated(ctx context.Context, err error) error {
	if !breaks(err, "idempotency_keys_once") {
		return err
	}
	if found := s.Repeated(ctx, lcm.RequestOf(ctx)); found != nil {
		return found
	}
	return lcm.Errorf(lcm.KindUnavailable, "The Idempotency-Key has just expired. Try again.")
}

// Repeated looks whether the request's Idempotency-Key has had its effect already: a *lcm.RepeatedError if so, invalid
// with status 422 when another request has used it, nil when none has.
func (s *Store) Repeated(ctx context.Context, r *lcm.Request) error {
	if r == nil || r.Key == "" {
		return nil
	}
	var digest []byte
	first := &lcm.RepeatedError{}
	err := s.Pool.QueryRow(ctx, `SELECT fingerprint, resource_id, body, version FROM idempotency_keys
		WHERE project_id = $1 AND user_name = $2 AND key = $3`, r.Caller.ProjectID, r.Caller.User, r.Key).
		Scan(&digest, &first.ResourceID, &first.Body, &first.Version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for an Idempotency-Key: %w", err)
	case !bytes.Equal(digest, r.Fingerprint):
		return &lcm.Error{Kind: lcm.KindInvalid, Status: http.StatusUnprocessableEntity,
			Detail: "The Idempotency-Key has been used for another request."}
	default:
		return first
	}
}

// pruneBatch is how many rows are deleted at a time.
const pruneBatch = 5000

// prune deletes the rows of a table that are older than before, a few at a time so that nobody waits for it.
func (s *Store) prune(ctx context.Context, statement string, before time.Time) error {
	for {
		tag, err := s.Pool.Exec(ctx, statement, before, pruneBatch)
		if err != nil {
			return err
		}
		if tag.RowsAffected() < pruneBatch {
			return nil
		}
	}
}

// PruneRequests deletes Idempotency-Keys that are older than keys, and lines of the audit trail that are older than
// audit; 0 keeps them.
func (s *Store) PruneRequests(ctx context.Context, keys, audit time.Duration) error {
	now := s.Now()
	if keys > 0 {
		if err := s.prune(ctx, `DELETE FROM idempotency_keys WHERE (project_id, user_name, key) IN (
			SELECT project_id, user_name, key FROM idempotency_keys WHERE created_at < $1
			ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, now.Add(-keys)); err != nil {
			return fmt.Errorf("prune the Idempotency-Keys: %w", err)
		}
	}
	if audit > 0 {
		// Ids begin with the time at which they were made, so the key finds the oldest.
		if err := s.prune(ctx, `DELETE FROM audit_events WHERE id IN (
			SELECT id FROM (SELECT id, at FROM audit_events ORDER BY id LIMIT $2) AS oldest WHERE at < $1)`, now.Add(-audit)); err != nil {
			return fmt.Errorf("prune the audit trail: %w", err)
		}
	}
	return nil
}

// KeepRequests prunes every now and then until ctx ends.
func (s *Store) KeepRequests(ctx context.Context, every, keys, audit time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := s.PruneRequests(ctx, keys, audit); err != nil && ctx.Err() == nil {
			s.Log.Warn("the record of requests could not be pruned", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
