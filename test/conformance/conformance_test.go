package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// trial is one case: it shows a duty, in one of the ways in which it can be shown.
type trial struct {
	duty
	name string // what is special about it
	run  func(x *exam) *answer
}

// caseTime is how long a case may take.
const caseTime = 10 * time.Minute

// all are the cases of all tables.
func all() []trial {
	return slices.Concat(commonCases(), versionCases(), instanceCases(), listCases(), taskCases(), opOccCases(), subscriptionCases(),
		notificationCases(), grantCases(), authCases())
}

// TestListed holds the tables of cases against the list, without running any.
func TestListed(t *testing.T) {
	want, have := duties(t), map[duty]int{}
	names := map[string]bool{}
	for _, k := range all() {
		if have[k.duty]++; !want[k.duty] {
			t.Errorf("%s: it is not on the list", k)
		}
		if names[k.String()] {
			t.Errorf("%s: there are two of the name", k)
		}
		names[k.String()] = true
	}
	for d := range want {
		if have[d] == 0 {
			t.Errorf("%s: there is no case", d)
		}
	}
}

// String names the case.
func (k trial) String() string {
	route := strings.TrimPrefix(k.route, "/vnflcm/v1/")
	return fmt.Sprintf("%s %s %d %s", strings.ReplaceAll(route, "/", "∕"), k.method, k.status, k.name)
}

func TestConformance(t *testing.T) {
	l := newLab(t)
	cases, shown := all(), map[duty]bool{}
	ran := 0
	for _, k := range cases {
		t.Run(k.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), caseTime)
			defer cancel()
			ran++
			x := &exam{lab: l, t: t, ctx: ctx}
			if a := k.run(x); a != nil && a.status != k.status {
				t.Fatalf("%d %s, want %d", a.status, a.body, k.status)
			}
			shown[k.duty] = shown[k.duty] || !t.Failed()
		})
	}
	duties := duties(t)
	t.Logf("%d of %d cases of SOL003 v2.6.1 §5 run; they show %d of %d (resource, method, status)", ran, len(cases), len(shown), len(duties))
	if ran == len(cases) && !t.Failed() && len(shown) != len(duties) {
		t.Errorf("%d of the listed are not shown", len(duties)-len(shown))
	}
}

// asks makes a case of one request.
func asks(route, method string, status int, name string, q func(x *exam) request) trial {
	return trial{duty{route, method, status}, name, func(x *exam) *answer { return x.ask(method, q(x)) }}
}

// sends makes a case of one request that is the same every time, to a resource that need not be there.
func sends(route, method string, status int, name, body string, headers ...string) trial {
	return asks(route, method, status, name, func(*exam) request {
		return request{path: at(route, absent), body: body, headers: headers}
	})
}
