package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// activity counts what PostgreSQL's sessions were found at, looked at again and again: where its share of an operation
// goes, which a profile of the server cannot tell.
type activity struct {
	looks   int
	queries map[string]int // by statement
	running map[string]int // by statement, those that wait for nothing
	waits   map[string]int // by wait event, onCPU when for nothing
}

const onCPU = "CPU"

// activityPause lies between two looks.
const activityPause = 5 * time.Millisecond

// activitySQL finds the sessions of this database that work on a statement, the one that asks left out.
const activitySQL = `SELECT left(regexp_replace(query, '\s+', ' ', 'g'), 110), coalesce(wait_event_type || ':' || wait_event, 'CPU')
	FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()`

// watchActivity looks until ctx ends.
func watchActivity(ctx context.Context, url string) (*activity, error) {
	open := context.WithoutCancel(ctx) // a look that has begun is ended
	conn, err := pgx.Connect(open, url)
	if err != nil {
		return nil, fmt.Errorf("look at what PostgreSQL does: %w", err)
	}
	defer func() { _ = conn.Close(open) }()
	a := &activity{queries: map[string]int{}, running: map[string]int{}, waits: map[string]int{}}
	tick := time.NewTicker(activityPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return a, nil
		case <-tick.C:
		}
		rows, err := conn.Query(open, activitySQL)
		if err != nil {
			return nil, fmt.Errorf("look at what PostgreSQL does: %w", err)
		}
		var query, wait string
		if _, err := pgx.ForEachRow(rows, []any{&query, &wait}, func() error {
			a.queries[query]++
			a.waits[wait]++
			if wait == onCPU {
				a.running[query]++
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("look at what PostgreSQL does: %w", err)
		}
		a.looks++
	}
}

// print writes the commonest statements and waits, with how many sessions were at each on average.
func (a *activity) print(w io.Writer) {
	if a.looks == 0 {
		return
	}
	top := func(counts map[string]int, most int) []string {
		names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
			return cmp.Or(cmp.Compare(counts[y], counts[x]), strings.Compare(x, y))
		})
		return names[:min(len(names), most)]
	}
	mean := func(n int) float64 { return float64(n) / float64(a.looks) }
	_, _ = fmt.Fprintf(w, "    PostgreSQL: sessions at a statement, on average of %d looks\n       all  on CPU  (a statement that ends a transaction waits for the disk with it)\n", a.looks)
	for _, q := range top(a.queries, 8) {
		_, _ = fmt.Fprintf(w, "     %5.2f   %5.2f  %s\n", mean(a.queries[q]), mean(a.running[q]), q)
	}
	var waits []string
	for _, e := range top(a.waits, 6) {
		waits = append(waits, fmt.Sprintf("%s %.2f", e, mean(a.waits[e])))
	}
	_, _ = fmt.Fprintf(w, "     by what they wait for: %s\n", strings.Join(waits, ", "))
}
