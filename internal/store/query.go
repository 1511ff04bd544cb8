package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// listing is a relation whose rows the API lists.
type listing struct {
	from          string // the relation, called t
	version, body string // expressions over t
	columns       columns
	digests       bool // t has the digests of its bodies' attributes
	ends          bool // t has op occs, whose indexes tell the active and the ended ones apart
}

// defaultQueryBudget bounds what one query of a filtered list may take. An index finds the rows of eq and in on any attribute of
// instances and op occs, of gt, gte, lt and lte on an op occ's times, and of other operators beneath metadata and the like,
// where the name itself is looked for. All else (cont, ncont, neq, nin, orders of other attributes) is tried row by row,
// in the order of ids, until a page is full: what finds too little within the budget is refused.
const defaultQueryBudget = 5 * time.Second

var instanceList = &listing{
	from: "vnf_instances t", version: "t.version", body: "t.body", digests: true,
	columns: columns{
		"id": {name: "t.id", kind: uuidColumn}, "vnfPkgId": {name: "t.vnf_pkg_id", kind: uuidColumn},
		"instantiationState": {name: "t.instantiation_state", kind: enumColumn, digest: true},
		"vnfInstanceName":    {name: "t.name", digest: true}, "vnfdId": {name: "t.vnfd_id", digest: true},
	},
}

var opOccList = &listing{
	from: "vnf_lcm_op_occs t", version: "t.seq", body: "t.body", digests: true, ends: true,
	columns: columns{
		"id": {name: "t.id", kind: uuidColumn}, "vnfInstanceId": {name: "t.vnf_instance_id", kind: uuidColumn},
		"operation":        {name: "t.operation", kind: enumColumn, digest: true},
		"operationState":   {name: "t.operation_state", kind: enumColumn, digest: true},
		"startTime":        {name: "t.start_time", kind: timeColumn},
		"stateEnteredTime": {name: "t.state_entered_time", kind: timeColumn, ended: "t.ended_at"},
	},
}

// Lists of any length are read in parts, so that a slow reader holds no connection.
const (
	firstPart = 128
	wholePart = 1024      // rows at most
	partBytes = 512 << 10 // of bodies, after which the next part is no longer than this one
)

// bodies streams the rows of a list: from one relation called t, its public bodies, filtered, in the order of ids, which is
// that of creation. Invalid: the filter is too expensive.
func (s *Store) bodies(ctx context.Context, from, version, body string, cols columns, scope lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return s.list(ctx, &listing{from: from, version: version, body: body, columns: cols}, scope, q)
}

// list is bodies of a listing.
func (s *Store) list(ctx context.Context, l *listing, scope lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return func(yield func(lcm.Body, error) bool) {
		if q.Limit > 0 {
			s.page(ctx, l, scope, q, yield)
			return
		}
		size := firstPart
		var part []lcm.Body
		for {
			q.Limit, part = size, part[:0]
			var bytes int
			var failed error
			s.page(ctx, l, scope, q, func(b lcm.Body, err error) bool {
				if failed = err; err == nil {
					part = append(part, b)
					bytes += len(b.JSON)
				}
				return err == nil
			})
			for i := range part {
				if !yield(part[i], nil) {
					return
				}
				part[i].JSON = nil
			}
			if failed != nil {
				yield(lcm.Body{}, failed)
				return
			}
			if len(part) < size {
				return
			}
			q.After = part[len(part)-1].ID
			if bytes < partBytes {
				size = min(2*size, wholePart)
			} else {
				size = max(size/2, 1)
			}
		}
	}
}

// page reads at most q.Limit rows.
func (s *Store) page(ctx context.Context, l *listing, scope lcm.Scope, q lcm.Query, yield func(lcm.Body, error) bool) {
	query, args, ok := l.query(scope, q)
	if !ok {
		return
	}
	fail := func(err error) {
		var pe *pgconn.PgError
		if errors.As(err, &pe) && pe.Code == queryCanceled && ctx.Err() == nil {
			yield(lcm.Body{}, lcm.Errorf(lcm.KindInvalid, "The filter is too expensive: in %s it has not found enough. Narrow it, with eq or in on some attribute.", s.queryBudget))
			return
		}
		yield(lcm.Body{}, fmt.Errorf("list %s: %w", strings.Fields(l.from)[0], err))
	}
	scan := func(rows pgx.Rows) {
		defer rows.Close()
		for rows.Next() {
			var b lcm.Body
			if err := rows.Scan(&b.ID, &b.Version, &b.JSON); err != nil {
				fail(err)
				return
			}
			if !yield(b, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			fail(err)
		}
	}
	if len(q.Filter) == 0 {
		rows, err := s.Pool.Query(ctx, query, args...)
		if err != nil {
			fail(err)
			return
		}
		scan(rows)
		return
	}
	if err := s.budgeted(ctx, func(conn *pgx.Conn) error {
		// Planned for these values, as the best way depends on them, and forgotten: there are more filters than a cache of
		// statements is good for.
		rows, err := conn.Query(ctx, query, append([]any{pgx.QueryExecModeExec}, args...)...)
		if err == nil {
			scan(rows)
		}
		return err
	}); err != nil {
		fail(err)
	}
}

const queryCanceled = "57014"

// budgeted runs f in a transaction that reads, and whose statements may take so long. They never read all of a table or an
// index to pick out the few rows that a page has, whatever the planner's estimate.
func (s *Store) budgeted(ctx context.Context, f func(conn *pgx.Conn) error) error {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	begin := "BEGIN READ ONLY; SET LOCAL enable_seqscan = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_hashjoin = off; " +
		"SET LOCAL statement_timeout = " + strconv.FormatInt(s.queryBudget.Milliseconds(), 10)
	if _, err := conn.Exec(ctx, begin, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	err = f(conn.Conn())
	// A connection on which this fails is closed by its pool.
	_, _ = conn.Exec(context.WithoutCancel(ctx), "ROLLBACK", pgx.QueryExecModeSimpleProtocol)
	return err
}

// query writes the statement of a list. ok is false when nothing can match.
func (l *listing) query(scope lcm.Scope, q lcm.Query) (sql string, args []any, ok bool) {
	c := &compiler{list: l}
	if !scope.Admin {
		c.require("t.project_id = " + c.arg(scope.ProjectID, "text"))
	}
	if q.After != "" {
		if !validID(q.After) {
			return "", nil, false
		}
		c.require("t.id > " + c.arg(q.After, "uuid"))
	}
	for _, cond := range q.Filter {
		if c.add(cond); c.out.none {
			return "", nil, false
		}
	}
	limit := " LIMIT " + strconv.Itoa(q.Limit)
	columns := "SELECT t.id::text, " + l.version + ", " + l.body + " FROM "
	branches := c.out.branches()
	if len(branches) == 1 {
		return columns + l.from + where(branches[0].conds) + " ORDER BY t.id" + limit, c.args, true
	}
	parts := make([]string, len(branches))
	// Each branch gives the first of its rows by an index of its own; bodies are read of those that are first of all.
	for i, b := range branches {
		from := l.from
		if len(b.few) > 0 { // found whole, and not by a walk along the ids
			from = "(SELECT t.* FROM " + from + where(b.few) + " OFFSET 0) AS t"
		}
		parts[i] = "(SELECT t.id FROM " + from + where(b.conds) + " ORDER BY t.id" + limit + ")"
	}
	return columns + "(SELECT k.id FROM (" + strings.Join(parts, " UNION ") + ") AS k ORDER BY k.id" + limit + ") AS k JOIN " +
		l.from + " ON t.id = k.id ORDER BY t.id", c.args, true
}

// branch is a set of conditions; those of few hold of few rows, under an index of just those.
type branch struct{ few, conds []string }

// branches returns the sets of conditions whose rows, together, are those that are selected.
func (s *selected) branches() []branch {
	var plain, ended, times, rest []string
	for _, r := range s.all {
		late := cmp.Or(r.ended, r.sql)
		plain, ended = append(plain, r.sql), append(ended, late)
		if r.timed {
			times = append(times, late)
		} else {
			rest = append(rest, late)
		}
	}
	if !s.split {
		return []branch{{conds: plain}}
	}
	out := []branch{
		{few: []string{"t.active"}, conds: plain},
		{conds: slices.Concat([]string{"NOT t.active"}, ended, s.ended, s.window)},
	}
	for _, odd := range s.odd {
		out = append(out, branch{few: append([]string{odd}, times...), conds: slices.Concat(rest, s.ended)})
	}
	return out
}

func where(conds []string) string {
	if len(conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conds, " AND ")
}
