package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// AttributeDigests lets tests compare with what the database makes.
var AttributeDigests = attributeDigests

// Explain runs EXPLAIN (FORMAT JSON, …options) on what a list of VNF instances or of op occs would ask, as it would ask it.
func (s *Store) Explain(ctx context.Context, opOccs bool, scope lcm.Scope, q lcm.Query, options string) (plan []byte, err error) {
	l := instanceList
	if opOccs {
		l = opOccList
	}
	query, args, ok := l.query(scope, q)
	if !ok {
		return nil, nil
	}
	if len(q.Filter) == 0 {
		return plan, s.Pool.QueryRow(ctx, "EXPLAIN (FORMAT JSON"+options+") "+query, args...).Scan(&plan)
	}
	err = s.budgeted(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "EXPLAIN (FORMAT JSON"+options+") "+query, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&plan)
	})
	return plan, err
}
