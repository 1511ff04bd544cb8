package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

// The meaning of filters in plain Go, on decoded JSON: what the SQL must come to.

func valuesAt(v any, path []string, keys bool) []any {
	switch t := v.(type) {
	case []any:
		var out []any
		for _, e := range t {
			out = append(out, valuesAt(e, path, keys)...)
		}
		return out
	case map[string]any:
		switch {
		case len(path) > 0:
			if member, ok := t[path[0]]; ok {
				return valuesAt(member, path[1:], keys)
			}
		case keys:
			var out []any
			for k := range t {
				out = append(out, k)
			}
			return out
		}
		return nil
	case nil:
		return nil
	default:
		if len(path) > 0 || keys {
			return nil
		}
		return []any{t}
	}
}

func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func numberIn(s string) (float64, bool) {
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) && strings.Trim(s, "0123456789.-+eE") == "" && !strings.HasPrefix(s, "+")
}

func textOf(v any) string {
	switch t := v.(type) {
	case float64:
		return strconv.FormatFloat(t, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(t)
	default:
		return v.(string)
	}
}

func meets(op string, v any, value string, timed bool) bool {
	number, numeric := numberIn(value)
	at, timeErr := time.Parse(time.RFC3339Nano, value)
	if timed {
		is, err := time.Parse(time.RFC3339Nano, v.(string))
		return err == nil && timeErr == nil && ordered(op, is.Compare(at))
	}
	switch op {
	case "eq":
		if n, ok := v.(float64); ok {
			return numeric && n == number
		}
		return asciiLower(textOf(v)) == asciiLower(value)
	case "cont":
		return strings.Contains(asciiLower(textOf(v)), asciiLower(value))
	}
	switch t := v.(type) {
	case float64:
		return numeric && ordered(op, int(math.Copysign(1, t-number))*map[bool]int{true: 0, false: 1}[t == number])
	case string:
		if is, ok := numberIn(t); ok && numeric {
			return meets(op, is, value, false)
		}
		if is, err := time.Parse(time.RFC3339Nano, t); err == nil && timeErr == nil && !numeric {
			return ordered(op, is.Compare(at))
		}
		return ordered(op, strings.Compare(asciiLower(t), asciiLower(value)))
	}
	return false
}

func ordered(op string, c int) bool {
	switch op {
	case "eq":
		return c == 0
	case "gt":
		return c > 0
	case "gte":
		return c >= 0
	case "lt":
		return c < 0
	default:
		return c <= 0
	}
}

func holds(c lcm.Condition, doc map[string]any) bool {
	timed := !c.Keys && len(c.Path) == 1 && (c.Path[0] == "startTime" || c.Path[0] == "stateEnteredTime")
	op, negated := map[string]string{"in": "eq", "neq": "eq", "nin": "eq", "ncont": "cont"}[c.Op], strings.HasPrefix(c.Op, "n")
	if op == "" {
		op = c.Op
	}
	values := valuesAt(doc, c.Path, c.Keys)
	met := slices.ContainsFunc(values, func(v any) bool {
		return slices.ContainsFunc(c.Values, func(value string) bool { return meets(op, v, value, timed) })
	})
	if negated {
		return len(values) > 0 && !met
	}
	return met
}

// What documents and filters are drawn from: few, so that they meet.
var (
	texts = rapid.SampledFrom([]string{"", "a", "A", "ab", "B", "é", "É", "true", "1", "1.0", "10", "9", "-2", "1e1", "01", "x'y\\%_\"", "null",
		"2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00", "2026-01-02T03:04:05.5Z", "2026-02-30T00:00:00Z", "2026-01-02", "<&>\u2028", "😀"})
	names   = rapid.SampledFrom([]string{"a", "A", "b", "a/b", "@key", "k\"'é"})
	scalars = rapid.OneOf(rapid.Map(texts, func(s string) any { return s }), rapid.SampledFrom([]any{true, false, nil, 1.0, 10.0, 1.5, -2.0, 0.0, 1e21, 1e-7, 9.0}))
)

func documents(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return scalars
	}
	inner := rapid.Deferred(func() *rapid.Generator[any] { return documents(depth - 1) })
	return rapid.OneOf(scalars,
		rapid.Map(rapid.MapOfN(names, inner, 0, 3), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(inner, 0, 3), func(s []any) any { return s }))
}

var (
	allOperators = []string{"eq", "neq", "in", "nin", "gt", "gte", "lt", "lte", "cont", "ncont"}
	someStates   = []string{"STARTING", "PROCESSING", "COMPLETED", "FAILED_TEMP", "FAILED"}
	someKinds    = []string{"INSTANTIATE", "HEAL"}
	someTimes    = []time.Time{
		time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC), time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
		time.Date(2026, 1, 2, 3, 12, 0, 0, time.UTC), time.Date(2026, 1, 2, 3, 30, 0, 0, time.UTC), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
	}
)

func conditions(columns map[string][]string) *rapid.Generator[lcm.Condition] {
	return rapid.Custom(func(t *rapid.T) lcm.Condition {
		c := lcm.Condition{Op: rapid.SampledFrom(allOperators).Draw(t, "op")}
		value := texts
		if rapid.IntRange(0, 2).Draw(t, "where") == 0 {
			name := rapid.SampledFrom(slices.Sorted(func(yield func(string) bool) {
				for n := range columns {
					if !yield(n) {
						return
					}
				}
			})).Draw(t, "column")
			c.Path, value = []string{name}, rapid.SampledFrom(columns[name])
			if strings.HasSuffix(name, "Time") {
				c.Op = rapid.SampledFrom(allOperators[:8]).Draw(t, "op of times")
			}
		} else {
			c.Path = append([]string{rapid.SampledFrom([]string{"metadata", "operationParams", "info", "list"}).Draw(t, "top")},
				rapid.SliceOfN(names, 0, 3).Draw(t, "path")...)
			if c.Keys = rapid.IntRange(0, 3).Draw(t, "keys") == 0; c.Keys {
				value = rapid.OneOf(names, texts)
			}
		}
		most := 1
		if strings.HasSuffix(c.Op, "in") || strings.HasSuffix(c.Op, "cont") {
			most = 3
		}
		c.Values = rapid.SliceOfN(value, 1, most).Draw(t, "values")
		return c
	})
}

// idAt is an id that was made then.
func idAt(t *rapid.T, at time.Time) string {
	id := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id.String()
}

type someRow struct {
	id, project string
	doc         map[string]any
}

func drawDocument(t *rapid.T, id string) map[string]any {
	doc := map[string]any{"id": id}
	for _, top := range []string{"metadata", "operationParams", "info", "list"} {
		if v := documents(3).Draw(t, top); v != nil {
			doc[top] = v
		}
	}
	return doc
}

func expected(rows []someRow, scope lcm.Scope, q lcm.Query) []string {
	out := []string{}
	for _, r := range rows {
		if (scope.Admin || r.project == scope.ProjectID) && !slices.ContainsFunc(q.Filter, func(c lcm.Condition) bool { return !holds(c, r.doc) }) && r.id > q.After {
			out = append(out, r.id)
		}
	}
	slices.Sort(out)
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[:q.Limit]
	}
	return out
}

func idsOf(t interface{ Fatalf(string, ...any) }, list func(func(lcm.Body, error) bool), q lcm.Query) []string {
	out := []string{}
	for b, err := range list {
		if err != nil {
			t.Fatalf("%+v: %v", q.Filter, err)
		}
		out = append(out, b.ID)
	}
	return out
}

// What the SQL selects is what plain Go selects, of any documents, by any filter, for whomever.
func TestFiltersAreTheirMeaning(t *testing.T) {
	ctx := context.Background()
	st := storetest.Open(t)
	const known = "11111111-1111-4111-8111-111111111111"
	pkgs := []string{known, "22222222-2222-4222-8222-222222222222"}
	rapid.Check(t, func(t *rapid.T) {
		b := &pgx.Batch{}
		b.Queue("TRUNCATE vnf_instances, vnf_lcm_op_occs")
		var instances, opOccs []someRow
		var ids []string
		opIDs := []string{known}
		taken := map[string]bool{}
		for n := range rapid.IntRange(1, 6).Draw(t, "rows") {
			id := idAt(t, someTimes[0])
			if taken[id] {
				continue
			}
			taken[id] = true
			ids = append(ids, id)
			r := someRow{id, rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"), drawDocument(t, id)}
			name, vnfd, pkg := texts.Draw(t, "name"), texts.Draw(t, "vnfdId"), pkgs[n%2]
			state := rapid.SampledFrom([]string{"INSTANTIATED", "NOT_INSTANTIATED"}).Draw(t, "state")
			for k, v := range map[string]string{"vnfInstanceName": name, "vnfdId": vnfd} {
				if v != "" {
					r.doc[k] = v
				}
			}
			r.doc["vnfPkgId"], r.doc["instantiationState"] = pkg, state
			instances = append(instances, r)
			b.Queue(`INSERT INTO vnf_instances (id, project_id, name, vnfd_id, vnf_pkg_id, instantiation_state, body, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, now())`,
				id, r.project, name, vnfd, pkg, state, encoded(r.doc))

			start, entered := rapid.SampledFrom(someTimes).Draw(t, "start"), rapid.SampledFrom(someTimes).Draw(t, "entered")
			id = idAt(t, rapid.SampledFrom(append([]time.Time{start}, someTimes...)).Draw(t, "made"))
			if taken[id] {
				continue
			}
			taken[id] = true
			op := someRow{id, r.project, drawDocument(t, id)}
			kind, opState := rapid.SampledFrom(someKinds).Draw(t, "operation"), rapid.SampledFrom(someStates).Draw(t, "op state")
			op.doc["operation"], op.doc["operationState"], op.doc["vnfInstanceId"] = kind, opState, r.id
			op.doc["startTime"], op.doc["stateEnteredTime"] = start.Format(time.RFC3339Nano), entered.Format(time.RFC3339Nano)
			opOccs = append(opOccs, op)
			opIDs = append(opIDs, id)
			b.Queue(`INSERT INTO vnf_lcm_op_occs (id, vnf_instance_id, project_id, operation, operation_state, start_time, state_entered_time, body, sealed, active)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', $9)`, id, r.id, r.project, kind, opState, start, entered, encoded(op.doc), opState != "COMPLETED" && opState != "FAILED")
		}
		if err := st.Pool.SendBatch(ctx, b).Close(); err != nil {
			t.Fatalf("insert: %v", err)
		}
		var times []string
		for _, at := range someTimes {
			times = append(times, at.Format(time.RFC3339Nano))
		}
		words := []string{"a", "A", "é", "1", "1.0", "true", "x'y\\%_\""}
		ofInstances := conditions(map[string][]string{"id": ids, "vnfInstanceName": words, "vnfdId": words, "vnfPkgId": pkgs, "instantiationState": {"INSTANTIATED", "not_instantiated", "x"}})
		ofOpOccs := conditions(map[string][]string{"id": opIDs, "vnfInstanceId": ids, "operation": {"instantiate", "HEAL"}, "operationState": append(someStates, "failed"),
			"startTime": times, "stateEnteredTime": times})
		for range 6 {
			scope := lcm.Scope{ProjectID: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "caller"), Admin: rapid.Bool().Draw(t, "admin")}
			q := lcm.Query{Filter: rapid.SliceOfN(ofInstances, 0, 3).Draw(t, "filter"), Limit: rapid.IntRange(0, 4).Draw(t, "limit"), After: rapid.SampledFrom(append(ids, "")).Draw(t, "after")}
			if diff := cmp.Diff(expected(instances, scope, q), idsOf(t, st.Instances(ctx, scope, q), q)); diff != "" {
				t.Fatalf("instances by %+v: %s", q, diff)
			}
			q.Filter = rapid.SliceOfN(ofOpOccs, 0, 3).Draw(t, "filter of op occs")
			if diff := cmp.Diff(expected(opOccs, scope, q), idsOf(t, st.OpOccs(ctx, scope, q), q)); diff != "" {
				t.Fatalf("op occs by %+v: %s", q, diff)
			}
		}
	})
}

func encoded(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// The program and the database make the same digests of a body, whoever writes it.
func TestDigests(t *testing.T) {
	ctx := context.Background()
	st := storetest.Open(t)
	rapid.Check(t, func(t *rapid.T) {
		doc := drawDocument(t, "x")
		doc["more"] = rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }).Draw(t, "more")
		doc["number"] = rapid.Float64().Draw(t, "number")
		raw := encoded(doc)
		var want []int64
		if err := st.Pool.QueryRow(ctx, "SELECT ARRAY(SELECT DISTINCT d FROM unnest(attribute_digests($1::jsonb)) AS d ORDER BY d)", raw).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, store.AttributeDigests(raw)); diff != "" {
			t.Fatalf("%s: %s", raw, diff)
		}
	})
	if got := store.AttributeDigests([]byte("{")); got != nil {
		t.Errorf("half a body has digests: %v", got)
	}
}

// Filters that no parser would let pass select nothing and are no errors.
func TestOddFilters(t *testing.T) {
	ctx := context.Background()
	st := storetest.Open(t)
	admin := lcm.Scope{Admin: true}
	for _, c := range []lcm.Condition{
		{}, {Op: "eq"}, {Op: "eq", Path: []string{"id"}}, {Op: "like", Path: []string{"id"}, Values: []string{"x"}},
		{Op: "eq", Path: []string{"a\x00"}, Values: []string{"x"}}, {Op: "eq", Path: []string{"a"}, Values: []string{"\xff"}},
		{Op: "gt", Path: []string{"startTime"}, Values: []string{"yesterday"}}, {Op: "in", Path: []string{"startTime"}, Values: []string{"9999999-01-01"}},
		{Op: "gt", Path: []string{"startTime"}, Values: []string{"0000-01-01T00:00:00Z"}}, {Op: "lt", Path: []string{"startTime"}, Values: []string{"9999-12-31T23:59:59Z"}},
		{Op: "cont", Path: []string{"startTime"}, Values: []string{"2026-01-01T00:00:00Z"}}, {Op: "gt", Path: []string{"metadata", "n"}, Values: []string{"1e999999999"}},
		{Op: "eq", Path: []string{"metadata", "n"}, Values: []string{strings.Repeat("9", 10000)}}, {Op: "gt", Path: []string{"id"}, Values: []string{"x"}},
		{Op: "eq", Path: []string{"metadata", "'); DROP TABLE vims; --", `\"`, "$"}, Values: []string{"'); DROP TABLE vims; --"}},
	} {
		for _, list := range []func(func(lcm.Body, error) bool){st.Instances(ctx, admin, lcm.Query{Filter: []lcm.Condition{c}}), st.OpOccs(ctx, admin, lcm.Query{Filter: []lcm.Condition{c}, Limit: 3})} {
			for b, err := range list {
				t.Errorf("%+v: %v, %v", c, b, err)
			}
		}
	}
}

// A filter that takes too long is the caller's to narrow.
func TestBudget(t *testing.T) {
	ctx := context.Background()
	st, err := store.Open(ctx, store.Config{URL: storetest.URL(t), Sealer: storetest.Sealer(t), Log: storetest.Log(), QueryBudget: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Pool.Exec(ctx, `INSERT INTO vnf_instances (id, project_id, name, vnfd_id, vnf_pkg_id, instantiation_state, body, created_at)
		SELECT gen_random_uuid(), 'p', 'n', 'v', gen_random_uuid(), 'NOT_INSTANTIATED', '{"vnfProvider":"Company"}', now() FROM generate_series(1, 3000)`); err != nil {
		t.Fatal(err)
	}
	slow := lcm.Query{Filter: []lcm.Condition{{Op: "cont", Path: []string{"vnfProvider"}, Values: []string{"nowhere"}}}}
	var failed error
	for _, err := range st.Instances(ctx, lcm.Scope{Admin: true}, slow) {
		failed = err
	}
	if !lcm.Is(failed, lcm.KindInvalid) || !strings.Contains(fmt.Sprint(failed), "too expensive") {
		t.Errorf("a filter over its budget: %v", failed)
	}
	// The connections are as they were, and a caller who has gone away is not told about budgets.
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range st.Instances(gone, lcm.Scope{Admin: true}, slow) {
		if lcm.Is(err, lcm.KindInvalid) {
			t.Errorf("canceled: %v", err)
		}
	}
	var timeout string
	if err := st.Pool.QueryRow(ctx, "SHOW statement_timeout").Scan(&timeout); err != nil || timeout != "0" {
		t.Errorf("statement_timeout = %s, %v", timeout, err)
	}
}
