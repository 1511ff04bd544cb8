package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// columnKind says how a filter's value is compared with a column.
type columnKind int

const (
	textColumn columnKind = iota
	uuidColumn            // values that are no UUID match nothing
	enumColumn            // upper case in the database
)

// column is where an attribute stands that has a column of its own.
type column struct {
	name string
	kind columnKind
}

type columns map[string]column

// bodies streams the rows of a list: from one relation called t, its public bodies, filtered, in the order of ids, which is that of
// creation. Every value of the query is a parameter.
func (s *Store) bodies(ctx context.Context, from, version, body string, cols columns, scope lcm.Scope, q lcm.Query) iter.Seq2[lcm.Body, error] {
	return func(yield func(lcm.Body, error) bool) {
		args := []any{}
		where := []string{}
		if !scope.Admin {
			args = append(args, scope.ProjectID)
			where = append(where, "t.project_id = $1")
		}
		if cond, ok := compile(q.Filter, cols, "t.body", &args); !ok {
			return
		} else if cond != "" {
			where = append(where, cond)
		}
		if q.After != "" {
			if !validID(q.After) {
				return
			}
			args = append(args, q.After)
			where = append(where, "t.id > $"+strconv.Itoa(len(args))+"::uuid")
		}
		query := "SELECT t.id::text, " + version + ", " + body + " FROM " + from
		if len(where) > 0 {
			query += " WHERE " + strings.Join(where, " AND ")
		}
		query += " ORDER BY t.id"
		if q.Limit > 0 {
			query += " LIMIT " + strconv.Itoa(q.Limit)
		}
		rows, err := s.Pool.Query(ctx, query, args...)
		if err != nil {
			yield(lcm.Body{}, fmt.Errorf("list %s: %w", strings.Fields(from)[0], err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var b lcm.Body
			if err := rows.Scan(&b.ID, &b.Version, &b.JSON); err != nil {
				yield(lcm.Body{}, fmt.Errorf("list %s: %w", strings.Fields(from)[0], err))
				return
			}
			if !yield(b, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(lcm.Body{}, fmt.Errorf("list %s: %w", strings.Fields(from)[0], err))
		}
	}
}

// compile turns a filter's conditions into SQL over t's columns and body; values become parameters. ok is false when
// nothing can match.
func compile(conds []lcm.Condition, cols columns, body string, args *[]any) (sql string, ok bool) {
	var parts []string
	for _, c := range conds {
		if col, direct := cols[strings.Join(c.Path, "/")]; direct && (c.Op == "eq" || c.Op == "in") {
			values := make([]string, 0, len(c.Values))
			for _, v := range c.Values {
				switch col.kind {
				case uuidColumn:
					if !validID(v) {
						continue
					}
				case enumColumn:
					v = strings.ToUpper(v)
				case textColumn:
				}
				values = append(values, v)
			}
			if len(values) == 0 {
				return "", false
			}
			*args = append(*args, values)
			cast := "text[]"
			if col.kind == uuidColumn {
				cast = "uuid[]"
			}
			parts = append(parts, fmt.Sprintf("%s = ANY($%d::%s)", col.name, len(*args), cast))
			continue
		}
		part := compileNested(c, body, args)
		if part == "" {
			return "", false
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " AND "), true
}

// compileNested compares the values at a path inside the body (SOL013 v2.6.1 §5.2): a condition holds when any value
// meets it, a negative one when a value is there and none meets the positive one. Texts compare without case. An
// operator that there is not compiles to nothing.
func compileNested(c lcm.Condition, body string, args *[]any) string {
	order, ordered := map[string]string{"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}[c.Op]
	if !ordered && !slices.Contains([]string{"eq", "in", "neq", "nin", "cont", "ncont"}, c.Op) {
		return ""
	}
	*args = append(*args, c.Path)
	values := fmt.Sprintf("attribute_values(%s::jsonb, $%d::text[]) AS v", body, len(*args))
	*args = append(*args, c.Values)
	p := fmt.Sprintf("$%d::text[]", len(*args))
	any := func(test string) string { return "EXISTS (SELECT 1 FROM " + values + " WHERE " + test + ")" }
	const equal = "EXISTS (SELECT 1 FROM unnest(%s) AS w WHERE lower(v) = lower(w))"
	const contains = "EXISTS (SELECT 1 FROM unnest(%s) AS w WHERE strpos(lower(v), lower(w)) > 0)"
	switch c.Op {
	case "eq", "in":
		return any(fmt.Sprintf(equal, p))
	case "neq", "nin":
		return any("true") + " AND NOT " + any(fmt.Sprintf(equal, p))
	case "cont":
		return any(fmt.Sprintf(contains, p))
	case "ncont":
		return any("true") + " AND NOT " + any(fmt.Sprintf(contains, p))
	default: // gt gte lt lte: numbers as numbers, everything else (times in RFC 3339) as text
		const number = `'^-?[0-9]+(\.[0-9]+)?$'`
		return any(fmt.Sprintf("CASE WHEN v ~ %[1]s AND (%[2]s)[1] ~ %[1]s THEN v::numeric %[3]s (%[2]s)[1]::numeric ELSE v COLLATE \"C\" %[3]s (%[2]s)[1] END", number, p, order))
	}
}
