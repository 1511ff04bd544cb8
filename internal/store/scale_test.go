package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

// crowd is a database full of instances and op occs, whose numbers tell all that there is of them.
type crowd struct {
	st                *store.Store
	instances, opOccs int
}

// The instance with the number n, and the op occ: mostly alike, some attributes common, some rare, some of its own.
const (
	crowdIDs = `
		CREATE FUNCTION pg_temp.id_of(ms bigint, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
			SELECT (lpad(to_hex(ms >> 16), 8, '0') || '-' || lpad(to_hex(ms & 65535), 4, '0') || '-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid
		$$;
		CREATE FUNCTION pg_temp.digest(path text, value text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
			SELECT hashtextextended(path || lower(value COLLATE "C"), 0)
		$$;`
	crowdInstances = crowdIDs + `
		INSERT INTO vnf_instances (id, project_id, name, vnfd_id, vnf_pkg_id, instantiation_state, created_at, body, attributes)
		SELECT x.id, x.project, x.name, x.vnfd, pg_temp.id_of(1, n % 20), 'INSTANTIATED', x.at, replace(replace(replace(replace(replace(replace(f.body, '{id}', x.id::text), '{name}', x.name), '{vnfd}', x.vnfd), '{site}', x.site), '{flavour}', x.flavour), '{n}', n::text)::json,
			f.digests || ARRAY[pg_temp.digest('/vnfInstanceName=', x.name), pg_temp.digest('/vnfdId=', x.vnfd), pg_temp.digest('/metadata/site=', x.site),
				pg_temp.digest('/metadata/rank:', n::text), pg_temp.digest('/instantiatedVnfInfo/flavourId=', x.flavour),
				pg_temp.digest('/instantiatedVnfInfo/vnfcResourceInfo/computeResource/resourceId=', 'server-' || n || '-1'), pg_temp.digest('/instantiatedVnfInfo/vnfcResourceInfo/computeResource/resourceId=', 'server-' || n || '-2')]
		FROM generate_series(0::bigint, $1::bigint - 1) AS n,
			LATERAL (SELECT pg_temp.id_of(1767225600000 + n * 26000, n) AS id, timestamptz '2026-01-01 00:00:00Z' + n * interval '26 seconds' AS at,
				CASE WHEN n % 10 < 9 THEN 'big' ELSE 'small-' || n % 70 END AS project, 'vnf-' || lpad(n::text, 6, '0') AS name, pg_temp.id_of(2, n % 20)::text AS vnfd,
				'Site-' || n % 1000 AS site, CASE WHEN n % 100 = 7 THEN 'rare' ELSE 'simple' END AS flavour) AS x,
			(SELECT $2::text AS body, ARRAY(SELECT DISTINCT unnest(attribute_digests($3::jsonb))) AS digests OFFSET 0) AS f`
	crowdOpOccs = crowdIDs + `
		INSERT INTO vnf_lcm_op_occs (id, vnf_instance_id, project_id, operation, operation_state, start_time, state_entered_time, active, sealed, body, attributes)
		SELECT x.id, x.instance, x.project, x.operation, x.state, x.at, x.at + interval '2 seconds' * (1 + n % 5), x.active, '\x00', replace(replace(replace(replace(replace(replace(replace(replace(f.body, '{id}', x.id::text), '{instance}', x.instance::text), '{op}', x.operation), '{state}', x.state), '{auto}', x.auto::text), '{site}', x.site), '{at}', x.written), '{n}', n::text)::json,
			CASE WHEN x.active THEN NULL ELSE f.digests || ARRAY[pg_temp.digest('/operation=', x.operation), pg_temp.digest('/operationState=', x.state), pg_temp.digest('/isAutomaticInvocation=', x.auto::text), pg_temp.digest('/operationParams/additionalParams/site=', x.site), pg_temp.digest('/grantId=', 'grant-' || n),
				pg_temp.digest('/resourceChanges/affectedVnfcs/computeResource/resourceId=', 'server-' || n)] END
		FROM generate_series(0::bigint, $1::bigint - 1) AS n,
			LATERAL (SELECT *, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS written FROM (
				SELECT pg_temp.id_of(1767225600000 + n * 2600, n) AS id, pg_temp.id_of(1767225600000 + (n % $2::bigint) * 26000, n % $2::bigint) AS instance, timestamptz '2026-01-01 00:00:00Z' + n * interval '2.6 seconds' AS at,
				CASE WHEN n % 10 < 9 THEN 'big' ELSE 'small-' || n % 70 END AS project,
				CASE WHEN n % 1000 = 3 THEN 'OPERATE' WHEN n % 100 < 5 THEN 'HEAL' WHEN n % 2 = 0 THEN 'INSTANTIATE' ELSE 'TERMINATE' END AS operation,
				CASE WHEN n >= $1::bigint - 300 THEN 'PROCESSING' WHEN n >= $1::bigint - 500 THEN 'FAILED_TEMP' WHEN n % 5000 = 11 THEN 'ROLLED_BACK' WHEN n % 100 = 17 THEN 'FAILED' ELSE 'COMPLETED' END AS state,
				n >= $1::bigint - 500 AS active, n % 2000 = 19 AS auto, 'Site-' || n % 1000 AS site) AS y) AS x,
			(SELECT $3::text AS body, ARRAY(SELECT DISTINCT unnest(attribute_digests($4::jsonb))) AS digests OFFSET 0) AS f`
)

// newCrowd fills a database as fast as may be: without indexes, which are made again over all that is there.
func newCrowd(t *testing.T) *crowd {
	c := &crowd{instances: 100_000, opOccs: 1_000_000}
	if testing.Short() {
		c.instances, c.opOccs = c.instances/20, c.opOccs/20
	}
	c.st = storetest.Open(t)
	var vnfcs []any
	for i := range 2 {
		vnfcs = append(vnfcs, map[string]any{"id": fmt.Sprint("vnfc", i), "vduId": fmt.Sprint("VDU", i), "storageResourceIds": []string{"s1"},
			"computeResource": map[string]any{"vimConnectionId": "c1", "resourceId": fmt.Sprintf("server-{n}-%d", i+1), "vimLevelResourceType": "OS::Nova::Server"},
			"vnfcCpInfo":      []any{map[string]any{"id": "cp1", "cpdId": "VDU_CP1"}, map[string]any{"id": "cp2", "cpdId": "VDU_CP2"}}})
	}
	instance := map[string]any{
		"id": "{id}", "vnfInstanceName": "{name}", "vnfInstanceDescription": "One of many", "vnfdId": "{vnfd}", "vnfProvider": "Company", "vnfProductName": "Sample VNF",
		"vnfSoftwareVersion": "1.0", "vnfdVersion": "1.0", "instantiationState": "INSTANTIATED", "metadata": map[string]any{"site": "{site}", "rank": "{n}", "tier": "gold"},
		"instantiatedVnfInfo": map[string]any{"flavourId": "{flavour}", "vnfState": "STARTED", "scaleStatus": []any{map[string]any{"aspectId": "a", "scaleLevel": 1}}, "vnfcResourceInfo": vnfcs},
	}
	opOcc := map[string]any{
		"id": "{id}", "vnfInstanceId": "{instance}", "operation": "{op}", "operationState": "{state}", "startTime": "{at}", "stateEnteredTime": "{at}", "grantId": "grant-{n}",
		"isAutomaticInvocation": "{auto}", "isCancelPending": false, "operationParams": map[string]any{"flavourId": "simple", "additionalParams": map[string]any{"site": "{site}", "lcm-operation-user-data": "./UserData/lcm_user_data.py"}},
		"resourceChanges": map[string]any{"affectedVnfcs": []any{map[string]any{"id": "a", "vduId": "VDU1", "changeType": "ADDED", "computeResource": map[string]any{"vimConnectionId": "c1", "resourceId": "server-{n}"}}}},
	}
	// What differs from row to row has its digest made with the row.
	common := func(doc map[string]any) string {
		raw := string(encoded(doc))
		for _, v := range []string{"{id}", "{name}", "{vnfd}", "{site}", "{flavour}", "{n}", "{instance}", "{op}", "{state}", "{at}", "{auto}", "grant-{n}", "server-{n}", "server-{n}-1", "server-{n}-2"} {
			raw = strings.ReplaceAll(raw, `"`+v+`"`, "null")
		}
		return raw
	}
	unquoted := func(doc map[string]any) string {
		return strings.NewReplacer(`"{auto}"`, "{auto}", `"rank":"{n}"`, `"rank":{n}`).Replace(string(encoded(doc)))
	}
	began := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, 2)
	wg.Go(func() {
		errs[0] = c.fill("vnf_instances", crowdInstances, c.instances, unquoted(instance), common(instance))
	})
	wg.Go(func() {
		errs[1] = c.fill("vnf_lcm_op_occs", crowdOpOccs, c.opOccs, c.instances, unquoted(opOcc), common(opOcc))
	})
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d instances and %d op occs in %.0f s", c.instances, c.opOccs, time.Since(began).Seconds())
	for _, table := range []string{"vnf_instances", "vnf_lcm_op_occs"} {
		var wrong int
		if err := c.st.Pool.QueryRow(context.Background(), `SELECT count(*) FROM (SELECT * FROM `+table+` ORDER BY id LIMIT 300) t
			WHERE ARRAY(SELECT DISTINCT unnest(attributes) AS d ORDER BY d) <> ARRAY(SELECT DISTINCT unnest(attribute_digests(body::jsonb)) AS d ORDER BY d)`).Scan(&wrong); err != nil || wrong > 0 {
			t.Fatalf("%s: %d rows have other digests than their bodies, %v", table, wrong, err)
		}
	}
	return c
}

func (c *crowd) fill(table, insert string, args ...any) error {
	ctx := context.Background()
	return pgx.BeginFunc(ctx, c.st.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = $1::text::regclass AND NOT indisprimary`, table)
		if err != nil {
			return err
		}
		indexes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Name, SQL string }])
		if err != nil {
			return err
		}
		var after []string
		for _, i := range indexes {
			if _, err := tx.Exec(ctx, "DROP INDEX "+pgx.Identifier{i.Name}.Sanitize()); err != nil {
				return err
			}
			after = append(after, i.SQL)
		}
		for _, sql := range []string{"SET LOCAL maintenance_work_mem = '256MB'", "ALTER TABLE " + table + " SET UNLOGGED", "ALTER TABLE " + table + " SET (fillfactor = 100)"} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		helpers, statement, _ := strings.Cut(insert, "\n\t\tINSERT")
		if _, err := tx.Exec(ctx, helpers); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT"+statement, args...); err != nil {
			return fmt.Errorf("fill %s: %w", table, err)
		}
		for _, sql := range append(after, "ANALYZE "+table) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// class is a kind of list queries.
type class struct {
	name   string
	opOccs bool
	target int // ms for 99 of 100 pages; 0: bounded by the budget only
	filter func(n int) []lcm.Condition
}

func filter(cs ...lcm.Condition) func(int) []lcm.Condition {
	return func(int) []lcm.Condition { return cs }
}

func cond(op, path string, values ...string) lcm.Condition {
	return lcm.Condition{Op: op, Path: strings.Split(path, "/"), Values: values}
}

func numbered(op, path, format string) func(int) []lcm.Condition {
	return func(n int) []lcm.Condition {
		return []lcm.Condition{cond(op, path, fmt.Sprintf(format, n))}
	}
}

func moment(n, of int) string {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n%of) * 26 * time.Second / 10).Format(time.RFC3339Nano)
}

func (c *crowd) classes() []class {
	at := func(op, path string) func(int) []lcm.Condition {
		return func(n int) []lcm.Condition { return []lcm.Condition{cond(op, path, moment(n*9, c.opOccs))} }
	}
	vnfd := func(n int) string { return fmt.Sprintf("00000000-0002-7000-8000-%012x", n%20) }
	instance := func(n int) string {
		ms := 1767225600000 + int64(n%c.instances)*26000
		return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&65535, n%c.instances)
	}
	return []class{
		{"no filter", false, 20, filter()},
		{"id", false, 20, func(n int) []lcm.Condition { return []lcm.Condition{cond("eq", "id", instance(n))} }},
		{"vnfInstanceName", false, 20, numbered("eq", "vnfInstanceName", "VNF-%06d")},
		{"vnfInstanceName, none", false, 20, numbered("eq", "vnfInstanceName", "none-%d")},
		{"vnfInstanceName in 3", false, 20, func(n int) []lcm.Condition {
			return []lcm.Condition{cond("in", "vnfInstanceName", fmt.Sprintf("vnf-%06d", n), fmt.Sprintf("vnf-%06d", n/2), "none")}
		}},
		{"vnfdId", false, 20, func(n int) []lcm.Condition { return []lcm.Condition{cond("eq", "vnfdId", vnfd(n))} }},
		{"vnfPkgId", false, 20, func(n int) []lcm.Condition {
			return []lcm.Condition{cond("eq", "vnfPkgId", fmt.Sprintf("00000000-0001-7000-8000-%012x", n%20))}
		}},
		{"instantiationState, all", false, 20, filter(cond("eq", "instantiationState", "INSTANTIATED"))},
		{"instantiationState, none", false, 20, filter(cond("eq", "instantiationState", "NOT_INSTANTIATED"))},
		{"vnfProvider, all", false, 20, filter(cond("eq", "vnfProvider", "company"))},
		{"vnfProductName, none", false, 20, numbered("eq", "vnfProductName", "none %d")},
		{"vnfSoftwareVersion and vnfdVersion", false, 20, filter(cond("eq", "vnfSoftwareVersion", "1.0"), cond("in", "vnfdVersion", "1.0", "2.0"))},
		{"neq instantiationState, most", false, 20, filter(cond("neq", "instantiationState", "NOT_INSTANTIATED"))},
		{"cont vnfInstanceName, some", false, 50, filter(cond("cont", "vnfInstanceName", "-00"))},
		{"cont vnfInstanceName, none", false, 0, filter(cond("cont", "vnfInstanceName", "nowhere"))},
		{"metadata, 1 of 1000", false, 50, numbered("eq", "metadata/site", "site-%d")},
		{"metadata, one", false, 50, numbered("eq", "metadata/rank", "%d")},
		{"metadata, all", false, 50, filter(cond("eq", "metadata/tier", "GOLD"))},
		{"metadata, no such name", false, 50, filter(cond("cont", "metadata/owner", "x"))},
		{"metadata gt, few", false, 0, func(int) []lcm.Condition {
			return []lcm.Condition{cond("gt", "metadata/rank", fmt.Sprint(c.instances-50))}
		}},
		{"metadata/@key, all", false, 50, filter(lcm.Condition{Op: "eq", Path: []string{"metadata"}, Keys: true, Values: []string{"tier"}})},
		{"metadata/@key, none", false, 50, filter(lcm.Condition{Op: "eq", Path: []string{"metadata"}, Keys: true, Values: []string{"owner"}})},
		{"instantiatedVnfInfo, 1 of 100", false, 50, filter(cond("eq", "instantiatedVnfInfo/flavourId", "rare"))},
		{"resource, one", false, 50, numbered("eq", "instantiatedVnfInfo/vnfcResourceInfo/computeResource/resourceId", "server-%d-2")},
		{"metadata and vnfdId", false, 50, func(n int) []lcm.Condition {
			return []lcm.Condition{cond("eq", "metadata/site", fmt.Sprint("site-", n%1000)), cond("eq", "vnfdId", vnfd(n))}
		}},
		{"neq metadata, most", false, 50, numbered("neq", "metadata/site", "site-%d")},
		{"nin resource, most", false, 50, numbered("nin", "instantiatedVnfInfo/vnfcResourceInfo/computeResource/resourceId", "server-%d-2")},

		{"no filter", true, 20, filter()},
		{"vnfInstanceId", true, 20, func(n int) []lcm.Condition { return []lcm.Condition{cond("eq", "vnfInstanceId", instance(n))} }},
		{"vnfInstanceId in 2, operation", true, 20, func(n int) []lcm.Condition {
			return []lcm.Condition{cond("in", "vnfInstanceId", instance(n), instance(n/2)), cond("eq", "operation", "HEAL")}
		}},
		{"operation, common", true, 20, filter(cond("eq", "operation", "TERMINATE"))},
		{"operation, 1 of 1000", true, 20, filter(cond("eq", "operation", "OPERATE"))},
		{"operation, none", true, 20, filter(cond("eq", "operation", "CHANGE_FLAVOUR"))},
		{"operation in 2, none", true, 20, filter(cond("in", "operation", "CHANGE_FLAVOUR", "MODIFY_INFO"))},
		{"operationState, most", true, 20, filter(cond("eq", "operationState", "COMPLETED"))},
		{"operationState, 1 of 100", true, 20, filter(cond("eq", "operationState", "FAILED"))},
		{"operationState, few", true, 20, filter(cond("eq", "operationState", "ROLLED_BACK"))},
		{"operationState, active", true, 20, filter(cond("in", "operationState", "PROCESSING", "STARTING", "FAILED_TEMP"))},
		{"operationState, none", true, 20, filter(cond("eq", "operationState", "ROLLING_BACK"))},
		{"operation and operationState, none", true, 20, filter(cond("eq", "operation", "OPERATE"), cond("eq", "operationState", "FAILED"))},
		{"startTime gt", true, 20, at("gt", "startTime")},
		{"startTime eq", true, 20, at("eq", "startTime")},
		{"startTime lte", true, 20, at("lte", "startTime")},
		{"startTime gte, none", true, 20, filter(cond("gte", "startTime", "2027-01-01T00:00:00Z"))},
		{"startTime between", true, 20, func(n int) []lcm.Condition {
			return []lcm.Condition{cond("gt", "startTime", moment(n*9, c.opOccs)), cond("lt", "startTime", moment(n*9+500, c.opOccs))}
		}},
		{"stateEnteredTime gte", true, 20, at("gte", "stateEnteredTime")},
		{"stateEnteredTime lt, operationState", true, 20, func(n int) []lcm.Condition {
			return []lcm.Condition{cond("lt", "stateEnteredTime", moment(n*9, c.opOccs)), cond("eq", "operationState", "FAILED")}
		}},
		{"isAutomaticInvocation, few", true, 20, filter(cond("eq", "isAutomaticInvocation", "true"))},
		{"isCancelPending, none", true, 20, filter(cond("eq", "isCancelPending", "true"))},
		{"grantId", true, 20, numbered("eq", "grantId", "Grant-%d")},
		{"operationParams, 1 of 1000", true, 50, numbered("eq", "operationParams/additionalParams/site", "Site-%d")},
		{"operationParams, all", true, 50, filter(cond("eq", "operationParams/flavourId", "simple"))},
		{"resourceChanges, one", true, 50, numbered("eq", "resourceChanges/affectedVnfcs/computeResource/resourceId", "server-%d")},
		{"error, none", true, 50, filter(cond("eq", "error/status", "500"))},
		{"operationParams/@key, none", true, 50, filter(lcm.Condition{Op: "in", Path: []string{"operationParams"}, Keys: true, Values: []string{"x", "y"}})},
		{"neq operationState, most", true, 20, filter(cond("neq", "operationState", "FAILED"))},
		{"cont error/detail, none", true, 0, filter(cond("cont", "error/detail", "quota"))},
	}
}

var crowdScopes = map[string]lcm.Scope{"all": {Admin: true}, "big": {ProjectID: "big"}, "small": {ProjectID: "small-9"}}

// after is a marker amid a list.
func (c *crowd) after(opOccs bool) string {
	id := ""
	table := map[bool]string{false: "vnf_instances", true: "vnf_lcm_op_occs"}[opOccs]
	_ = c.st.Pool.QueryRow(context.Background(), "SELECT id::text FROM "+table+" ORDER BY id OFFSET 1000 LIMIT 1").Scan(&id)
	return id
}

// TestScale asks every kind of list query of 100,000 instances and 1,000,000 op occs. Every one must go by indexes; how
// long it takes is printed beside its target:
//
//	go test -run TestScale -v ./internal/store
func TestScale(t *testing.T) {
	c := newCrowd(t)
	t.Run("explain", c.explain)
	t.Run("figures", c.figures)
	t.Run("everything", c.everything)
}

func (c *crowd) ask(cl class, scope lcm.Scope, q lcm.Query) (rows int, took time.Duration, err error) {
	ctx := context.Background()
	began := time.Now()
	list := c.st.Instances(ctx, scope, q)
	if cl.opOccs {
		list = c.st.OpOccs(ctx, scope, q)
	}
	for _, e := range list {
		if err = e; err == nil {
			rows++
		}
	}
	return rows, time.Since(began), err
}

func (c *crowd) figures(t *testing.T) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "list\tfilter\tscope\trows\tp50 ms\tp99 ms\ttarget\t")
	r := rand.New(rand.NewPCG(1, 2))
	missed := 0
	for _, cl := range c.classes() {
		for _, scope := range []string{"all", "big", "small"} {
			var times []time.Duration
			most := 0
			for began := time.Now(); len(times) < 100 && (len(times) < 3 || time.Since(began) < time.Second); {
				rows, took, err := c.ask(cl, crowdScopes[scope], lcm.Query{Filter: cl.filter(r.IntN(c.instances)), Limit: 101})
				if err != nil && !lcm.Is(err, lcm.KindInvalid) {
					t.Fatalf("%s: %v", cl.name, err)
				}
				most = max(most, rows)
				times = append(times, took)
			}
			slices.Sort(times)
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			p99 := times[(len(times)*99+99)/100-1]
			target, mark := "-", ""
			if cl.target > 0 {
				if target = fmt.Sprint(cl.target); ms(p99) > float64(cl.target) {
					mark = "missed"
					missed++
				}
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.2f\t%.2f\t%s\t%s\n", map[bool]string{false: "instances", true: "op occs"}[cl.opOccs], cl.name, scope, most, ms(times[len(times)/2]), ms(p99), target, mark)
		}
	}
	_ = w.Flush()
	t.Logf("%d targets missed\n%s", missed, out.String())
}

// everything reads all instances as all_records does, with constant memory.
func (c *crowd) everything(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, cl := range []class{{"all", false, 0, filter()}, {"all of a flavour", false, 0, filter(cond("eq", "instantiatedVnfInfo/flavourId", "simple"))}} {
		before := heap()
		var most uint64
		rows, bytes, last := 0, 0, ""
		began := time.Now()
		for b, err := range c.st.Instances(context.Background(), lcm.Scope{Admin: true}, lcm.Query{Filter: cl.filter(0)}) {
			if err != nil {
				t.Fatal(err)
			}
			if b.ID <= last {
				t.Fatalf("%s comes after %s", b.ID, last)
			}
			last = b.ID
			bytes += len(b.JSON)
			if rows++; rows%5000 == 0 {
				most = max(most, heap())
			}
		}
		t.Logf("%s: %d instances, %d MB, in %.1f s, over a heap that grew by %d kB at most", cl.name, rows, bytes>>20, time.Since(began).Seconds(), (max(most, before)-before)>>10)
		if rows < c.instances*9/10 || most > before+8<<20 {
			t.Errorf("%s: %d of %d instances, with a heap of %d bytes after %d", cl.name, rows, c.instances, most, before)
		}
	}
}
