package store

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// shownAudit is audit_events as the API shows it.
const shownAudit = `(SELECT a.id, a.project_id, a.vnf_instance_id, a.op_occ_id, a.resource_id, a.user_name, a.role, a.request_id, a.at,
		json_strip_nulls(json_build_object('id', a.id, 'time', to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
			'user', nullif(a.user_name, ''), 'projectId', nullif(a.project_id, ''),
			'role', CASE WHEN a.user_name <> '' THEN a.role END, 'action', a.action, 'address', nullif(a.address, ''),
			'requestId', nullif(a.request_id, ''), 'vnfInstanceId', a.vnf_instance_id, 'vnfLcmOpOccId', a.op_occ_id,
			'resourceId', a.resource_id, 'status', a.outcome)) AS body
	FROM audit_events a) AS t`

// auditColumn are the attributes of an AuditEvent that stand in columns.
var auditColumn = columns{
	"id": {name: "t.id", kind: uuidColumn}, "vnfInstanceId": {name: "t.vnf_instance_id", kind: uuidColumn},
	"vnfLcmOpOccId": {name: "t.op_occ_id", kind: uuidColumn}, "projectId": {name: "t.project_id"},
}

// AuditEvents streams the audit trail as the API shows it, in the order of time: for administrators of every project.
// The body's bytes are good until the next one is asked for.
func (s *Store) AuditEvents(ctx context.Context, sc lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return s.bodies(ctx, shownAudit, "0::bigint", "t.body", auditColumn, sc, q)
}

// refusal is a request that was refused.
type refusal struct {
	at     time.Time
	r      lcm.Request
	status int
}

// RequestLog is the record of requests as the API uses it. Refused requests are written by Run, off the way of answers:
// when they come faster than they can be written, some are lost, and that is logged. Make one with NewRequestLog.
type RequestLog struct {
	*Store
	queue chan refusal
	lost  atomic.Int64
}

// NewRequestLog makes a RequestLog of which Run is to be called.
func (s *Store) NewRequestLog() *RequestLog {
	return &RequestLog{Store: s, queue: make(chan refusal, 4096)}
}

// Refused records that a request was refused with the HTTP status. It returns at once.
func (l *RequestLog) Refused(r *lcm.Request, status int) {
	select {
	case l.queue <- refusal{at: l.Now(), r: *r, status: status}:
	default:
		l.lost.Add(1)
	}
}

const (
	refusalsAtOnce = 256
	// refusalsGap is the shortest time between two writes.
	refusalsGap = 50 * time.Millisecond
	// refusalsEnd is how long a write may take, the end of the program or not.
	refusalsEnd = 3 * time.Second
)

// Run writes refused requests down until ctx ends, then those that are left.
func (l *RequestLog) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			for l.write(ctx, l.take(nil)) {
			}
			return
		case first := <-l.queue:
			l.write(ctx, l.take([]refusal{first}))
		}
		select {
		case <-ctx.Done():
		case <-time.After(refusalsGap):
		}
	}
}

// take returns what waits, without waiting itself.
func (l *RequestLog) take(some []refusal) []refusal {
	for len(some) < refusalsAtOnce {
		select {
		case next := <-l.queue:
			some = append(some, next)
		default:
			return some
		}
	}
	return some
}

// write writes refusals down, and tells whether it did any. What fails is lost: refusals are no reason to fill memory.
func (l *RequestLog) write(ctx context.Context, some []refusal) bool {
	if n := l.lost.Swap(0); n > 0 {
		l.Log.Warn("refused requests came faster than they could be recorded in the audit trail", "lost", n)
	}
	if len(some) == 0 {
		return false
	}
	rows := make([][]any, len(some))
	for n := range some {
		rows[n] = auditColumns(newID(), some[n].at, &some[n].r, effect{status: some[n].status})
	}
	b := &pgx.Batch{}
	for _, row := range rows {
		b.Queue(insertAudit, row...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusalsEnd)
	defer cancel()
	if err := l.Pool.SendBatch(ctx, b).Close(); err != nil {
		l.Log.Warn("refused requests could not be recorded in the audit trail", "lost", len(some), "error", err)
		return false
	}
	return true
}
