package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// planNode is a node of what EXPLAIN (FORMAT JSON) answers.
type planNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Plans    []planNode `json:"Plans"`
}

func (n planNode) walk(visit func(planNode)) {
	visit(n)
	for _, sub := range n.Plans {
		sub.walk(visit)
	}
}

// explain fails for every list query that reads a whole table.
func (c *crowd) explain(t *testing.T) {
	ctx := context.Background()
	asked, indexes := 0, map[string]int{}
	markers := map[bool][]string{false: {"", c.after(false)}, true: {"", c.after(true)}}
	for _, cl := range c.classes() {
		filters := [][]lcm.Condition{cl.filter(12345 % c.instances)}
		if len(filters[0]) == 1 && !filters[0][0].Keys { // of each attribute, with all operators
			for _, op := range allOperators {
				f := slices.Clone(filters[0])
				f[0].Op = op
				filters = append(filters, f)
			}
		}
		for _, f := range filters {
			for _, scope := range []string{"all", "big", "small"} {
				for _, after := range markers[cl.opOccs] {
					raw, err := c.st.Explain(ctx, cl.opOccs, crowdScopes[scope], lcm.Query{Filter: f, After: after, Limit: 101}, "")
					if err != nil {
						t.Fatalf("%s %+v: %v", cl.name, f, err)
					}
					if raw == nil {
						continue
					}
					var plans []struct{ Plan planNode }
					if err := json.Unmarshal(raw, &plans); err != nil {
						t.Fatal(err)
					}
					asked++
					plans[0].Plan.walk(func(n planNode) {
						if n.Type == "Seq Scan" {
							t.Errorf("%s %+v of %s after %q reads all of %s:\n%s", cl.name, f, scope, after, n.Relation, raw)
						}
						if n.Index != "" {
							indexes[n.Index]++
						}
					})
				}
			}
		}
	}
	t.Logf("%d queries go by %s", asked, fmt.Sprint(indexes))
}
