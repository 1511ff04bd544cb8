package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// fanOut returns the part of a statement that gives each subscription that matches a line for each notification which
// the part named outbox has inserted. outbox must return outboxColumns; instance is an expression for the body of the VNF
// instance, or storedInstance. The part is named told and holds one row: the ids of the subscriptions, between commas,
// NULL for none, to be announced after the commit.
//
// Lines of one instance are in the order of their seq as they were committed: whoever inserts one holds a lock (of the
// instance, the op occ, or the index of active op occs) that the one before has let go of.
func fanOut(instance string) string {
	return `told AS (SELECT CASE WHEN EXISTS (SELECT 1 FROM subscriptions) THEN
			(SELECT string_agg(fan_out(n.id, n.type, n.vnf_instance_id, n.project_id, n.op_occ_id IS NOT NULL, n.body, ` + instance + `), ',') FROM outbox n)
			END AS subscriptions)`
}

const (
	// outboxColumns is what a part named outbox must return.
	outboxColumns = `id, type, vnf_instance_id, project_id, op_occ_id, body`
	// storedInstance leaves it to fan_out to read the instance, if it must.
	storedInstance = `NULL`
)

// deliveryClass is the first key of the advisory locks by which a session serves a subscription ("vnfs" in ASCII); the
// second is a hash of its id. Two with one hash are served by one session.
const deliveryClass int32 = 0x766e6673

// deliverySession is a session of its own: it listens, and holds the locks of what it serves.
type deliverySession struct {
	conn  *pgx.Conn
	ours  map[string]bool
	tried map[string]bool // what others served when it was last looked
	look  time.Time       // when everything is to be looked at next
}

// OpenDeliveries opens a session that delivers. It must be closed.
func (s *Store) OpenDeliveries(ctx context.Context) (lcm.DeliverySession, error) {
	cfg := s.Pool.Config().ConnConfig.Copy()
	// A node that vanishes without a word is noticed by the server within about 10 s.
	for k, v := range map[string]string{"tcp_keepalives_idle": "3", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "application_name": "vnfm notifications"} {
		cfg.RuntimeParams[k] = v
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open a session for notifications: %w", err)
	}
	if _, err := conn.Exec(ctx, "LISTEN "+deliveriesTopic); err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("listen for notifications: %w", err)
	}
	return &deliverySession{conn: conn, ours: map[string]bool{}, tried: map[string]bool{}}, nil
}

// answerWithin is how long the session's connection may take to answer: less than the server takes to see it dead.
const answerWithin = 4 * time.Second

// Pending implements lcm.DeliverySession.
func (d *deliverySession) Pending(ctx context.Context, wait time.Duration) ([]string, error) {
	if now := time.Now(); now.Before(d.look) {
		until, cancel := context.WithDeadline(ctx, d.look)
		word, err := d.conn.WaitForNotification(until)
		timeout := until.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && word.Payload != "":
			return d.claim(ctx, strings.Split(word.Payload, ","))
		case err != nil && !timeout:
			return nil, fmt.Errorf("listen for notifications: %w", err)
		}
	}
	ids, err := d.lookAtAll(ctx)
	d.look = time.Now().Add(wait)
	return ids, err
}

// claim returns those of the ids that are this session's, or become so.
func (d *deliverySession) claim(ctx context.Context, ids []string) (mine []string, err error) {
	var free []string
	for _, id := range ids {
		switch {
		case d.ours[id]:
			mine = append(mine, id)
		case !d.tried[id] && validID(id):
			free = append(free, id)
			d.tried[id] = true
		}
	}
	if len(free) == 0 {
		return mine, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	rows, err := d.conn.Query(ctx, `SELECT id FROM unnest($1::text[]) AS id WHERE pg_try_advisory_lock($2, hashtext(id))`, free, deliveryClass)
	if err != nil {
		return nil, fmt.Errorf("claim subscriptions: %w", err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("claim subscriptions: %w", err)
	}
	for _, id := range got {
		d.ours[id] = true
	}
	return append(mine, got...), nil
}

// lookAtAll returns all subscriptions that have something to be told and are this session's, or become so.
func (d *deliverySession) lookAtAll(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	clear(d.tried)
	rows, err := d.conn.Query(ctx, `SELECT s.id::text FROM subscriptions s
		WHERE EXISTS (SELECT 1 FROM deliveries d WHERE d.subscription_id = s.id)`)
	if err != nil {
		return nil, fmt.Errorf("look for notifications to deliver: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for notifications to deliver: %w", err)
	}
	return d.claim(ctx, ids)
}

// Release implements lcm.DeliverySession.
func (d *deliverySession) Release(ctx context.Context, id string) error {
	delete(d.ours, id)
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if _, err := d.conn.Exec(ctx, `SELECT pg_advisory_unlock($1, hashtext($2))`, deliveryClass, id); err != nil {
		return fmt.Errorf("release subscription %s: %w", id, err)
	}
	return nil
}

// Close implements lcm.DeliverySession.
func (d *deliverySession) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	_ = d.conn.Close(ctx)
}

// Deliveries returns the first lines of a subscription, at most limit, that are not of the instances passed over.
func (s *Store) Deliveries(ctx context.Context, subscriptionID string, pass []string, limit int) ([]lcm.Delivery, error) {
	rows, err := s.Pool.Query(ctx, `
		SELECT d.seq, d.vnf_instance_id::text, d.attempts, d.next_at, n.id::text, coalesce(n.op_occ_id::text, ''), n.created_at, n.body
		FROM (SELECT * FROM deliveries WHERE subscription_id = $1 AND vnf_instance_id <> ALL ($2::uuid[]) ORDER BY seq LIMIT $3) AS d
		JOIN notifications n ON n.id = d.notification_id
		WHERE EXISTS (SELECT 1 FROM subscriptions WHERE id = $1) ORDER BY d.seq`, subscriptionID, pass, limit)
	if err != nil {
		return nil, fmt.Errorf("read what subscription %s is to be told: %w", subscriptionID, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d lcm.Delivery, err error) {
		var next *time.Time
		var body json.RawMessage
		err = row.Scan(&d.Seq, &d.InstanceID, &d.Attempts, &next, &d.NotificationID, &d.OpOccID, &d.At, &body)
		if next != nil {
			d.NextAt = *next
		}
		d.Body = body
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("read what subscription %s is to be told: %w", subscriptionID, err)
	}
	return list, nil
}

// Delivered strikes lines out and tells how many there still were. It does not wait for the disk: what is forgotten in a
// crash is told again.
func (s *Store) Delivered(ctx context.Context, subscriptionID string, seqs []int64) (int64, error) {
	tag, err := s.Pool.Exec(ctx, `WITH soon AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
		DELETE FROM deliveries USING soon WHERE subscription_id = $1 AND seq = ANY ($2)`, subscriptionID, seqs)
	if err != nil {
		return 0, fmt.Errorf("record what subscription %s has been told: %w", subscriptionID, err)
	}
	return tag.RowsAffected(), nil
}

// Postpone records a failed attempt at a line, and when it is to be tried next.
func (s *Store) Postpone(ctx context.Context, subscriptionID string, seq int64, attempts int, next time.Time) error {
	_, err := s.Pool.Exec(ctx, `UPDATE deliveries SET attempts = $3, next_at = $4 WHERE subscription_id = $1 AND seq = $2`,
		subscriptionID, seq, attempts, next)
	if err != nil {
		return fmt.Errorf("record what subscription %s could not be told: %w", subscriptionID, err)
	}
	return nil
}

// Resume has all lines of a subscription tried at once.
func (s *Store) Resume(ctx context.Context, subscriptionID string) error {
	_, err := s.Pool.Exec(ctx, `UPDATE deliveries SET next_at = NULL WHERE subscription_id = $1 AND next_at IS NOT NULL`, subscriptionID)
	if err != nil {
		return fmt.Errorf("resume what subscription %s is to be told: %w", subscriptionID, err)
	}
	return nil
}

// dropAtOnce bounds how many lines one statement strikes out.
const dropAtOnce = 1000

// DropOld strikes out the first lines of a subscription whose notifications are from before the time, at most 1000, and
// tells how many.
func (s *Store) DropOld(ctx context.Context, subscriptionID string, before time.Time) (int64, error) {
	tag, err := s.Pool.Exec(ctx, `
		WITH first AS (SELECT seq, notification_id FROM deliveries WHERE subscription_id = $1 ORDER BY seq LIMIT $3)
		DELETE FROM deliveries d USING first, notifications n
		WHERE d.subscription_id = $1 AND d.seq = first.seq AND n.id = first.notification_id AND n.created_at < $2`,
		subscriptionID, before, dropAtOnce)
	if err != nil {
		return 0, fmt.Errorf("give up what subscription %s could not be told: %w", subscriptionID, err)
	}
	return tag.RowsAffected(), nil
}

// Prune strikes out lines of subscriptions that are gone, and notifications from before the time that nobody has still
// to be told. Those of an op occ that is not finished stay: their index says which of its states have been told.
func (s *Store) Prune(ctx context.Context, before time.Time) (int64, error) {
	_, err := s.Pool.Exec(ctx, `DELETE FROM deliveries d WHERE NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.id = d.subscription_id)`)
	if err != nil {
		return 0, fmt.Errorf("strike out what deleted subscriptions were to be told: %w", err)
	}
	// Ids of notifications sort by time: the key finds the old ones.
	var below uuid.UUID
	binary.BigEndian.PutUint64(below[:8], uint64(max(before.UnixMilli(), 0))<<16|0x7000) //nolint:gosec // not negative
	var all int64
	for {
		tag, err := s.Pool.Exec(ctx, `
			DELETE FROM notifications WHERE id IN (
				SELECT n.id FROM notifications n
				WHERE n.created_at < $1 AND n.id < $3
				AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.notification_id = n.id)
				AND NOT EXISTS (SELECT 1 FROM vnf_lcm_op_occs o WHERE o.id = n.op_occ_id AND o.active)
				ORDER BY n.id LIMIT $2 FOR UPDATE OF n SKIP LOCKED)`, before, pruneAtOnce, below)
		if err != nil {
			return all, fmt.Errorf("prune notifications: %w", err)
		}
		all += tag.RowsAffected()
		if tag.RowsAffected() < pruneAtOnce {
			return all, nil
		}
	}
}

// pruneAtOnce bounds how many notifications one statement prunes.
const pruneAtOnce = 5000

// deliveriesTopic is the channel on which sessions that deliver are told of new lines: the ids of subscriptions, between
// commas, or nothing when there are too many to name.
const deliveriesTopic = "vnfm_deliveries"

// What one announcement holds, and the shortest time between two.
const (
	namedAtMost = 150
	tellGap     = 5 * time.Millisecond
)

// tell announces, soon, that subscriptions (ids between commas, nil for none) have something to be told. It does not
// wait; what is lost costs no more than the sessions' own look.
func (a *announcer) tell(subscriptions *string) {
	if subscriptions == nil {
		return
	}
	a.mu.Lock()
	for id := range strings.SplitSeq(*subscriptions, ",") {
		a.told[id] = true
	}
	a.mu.Unlock()
	select {
	case a.tellKick <- struct{}{}:
	default:
	}
}

// runTelling makes the announcements that tell asks for, many in one.
func (a *announcer) runTelling(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.tellKick:
		}
		a.mu.Lock()
		payload := ""
		if len(a.told) <= namedAtMost {
			var b strings.Builder
			for id := range a.told {
				if b.Len() > 0 {
					b.WriteByte(',')
				}
				b.WriteString(id)
			}
			payload = b.String()
		}
		clear(a.told)
		a.mu.Unlock()
		_, err := a.store.Pool.Exec(ctx, `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`, deliveriesTopic, payload)
		if err != nil && !errors.Is(err, context.Canceled) {
			a.store.Log.Warn("nobody could be told of new notifications; they are looked for", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tellGap):
		}
	}
}

// tellInto reads the part told of a statement whose rows are those of its outbox, one or none: there tells which.
func tellInto(told **string, there *bool) func(pgx.Row) error {
	return func(row pgx.Row) error {
		err := row.Scan(told)
		if there != nil {
			*there = err == nil
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
		}
		return err
	}
}
