package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(harness.Cleanup(), lab.Cleanup()); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// takeoverLimit is how long a dead node's work may lie there.
const takeoverLimit = 15 * time.Second

// job is one run of onboarding, or one instance's life.
type job struct {
	by, point string // how a package is uploaded, and where a node dies; empty for a life
	deaths    []dying
}

// dying is an act with the point at which a node dies.
type dying struct {
	act   string
	point string
}

func (d dying) name() string { return d.act + ", " + strings.ReplaceAll(d.point, "/", " ") } // a slash is a subtest's

// TestCrash finds out every point of onboarding and of every act on OpenStack, and has a node die at each: one of three at
// all of them, the only one at those of requests and of steps with an effect, and at all of INSTANTIATE, TERMINATE and
// onboarding. Before a call that changes the VIM the only node dies, and after it one of three does.
func TestCrash(t *testing.T) { everyPoint(t, stacks) }

// everyPoint finds out every point of a stage's acts, has nodes die at them, and reports what that has shown.
func everyPoint(t *testing.T, on *stage) {
	t.Helper()
	began := time.Now()
	refs, jobs := map[int]reference{}, map[int][]job{}
	var mu sync.Mutex
	parallel := func(run func(nodes, lane int)) {
		var wg sync.WaitGroup
		for nodes := range on.samples {
			for n := range on.lanes[nodes] {
				wg.Go(func() { run(nodes, n) })
			}
		}
		wg.Wait()
	}
	parallel(func(nodes, n int) {
		if n > 0 {
			return
		}
		t.Run("points of "+on.samples[nodes].name, func(t *testing.T) {
			ref, list := discover(t, on, nodes)
			mu.Lock()
			defer mu.Unlock()
			refs[nodes], jobs[nodes] = ref, list
		})
	})
	if t.Failed() {
		return
	}
	var outs []outcome
	parallel(func(nodes, n int) {
		t.Run(fmt.Sprintf("%s,lane %d", arrangement(nodes), n), func(t *testing.T) {
			var mine []job
			for i := n; i < len(jobs[nodes]); i += on.lanes[nodes] {
				mine = append(mine, jobs[nodes][i])
			}
			got := runLane(t, on, refs[nodes], nodes, mine)
			mu.Lock()
			defer mu.Unlock()
			outs = append(outs, got...)
		})
	})
	report(t, on, jobs, outs, time.Since(began))
}

// runLane does jobs on clusters of that many nodes: on one, until a run fails, which may have spoilt it.
func runLane(t *testing.T, on *stage, ref reference, nodes int, jobs []job) (outs []outcome) {
	var l *lane
	defer func() {
		if l != nil {
			l.close()
		}
	}()
	for n, j := range jobs {
		if l == nil {
			var err error
			if l, err = newLane(t.Context(), t.TempDir(), on, nodes, on.samples[nodes], false); err != nil {
				t.Fatalf("set up a cluster of %d: %v", nodes, err)
			}
		}
		name := j.by + "," + j.point
		if j.by == "" {
			name = fmt.Sprintf("life %d", n)
		}
		ok := t.Run(name, func(t *testing.T) { outs = append(outs, l.do(t, ref, j)...) })
		if !ok {
			l.close()
			l = nil
		}
	}
	return outs
}

// do does a job and returns what its runs without a failure have measured.
func (l *lane) do(t *testing.T, ref reference, j job) (outs []outcome) {
	ctx := t.Context()
	if j.by != "" {
		out, err := l.onboarding(ctx, j.by, j.point)
		if err != nil {
			failRun(t, l, "%v", err)
			return nil
		}
		return []outcome{out}
	}
	s, err := l.create(ctx)
	if err != nil {
		failRun(t, l, "%v", err)
		return nil
	}
	for _, d := range j.deaths {
		ok := t.Run(d.name(), func(t *testing.T) {
			out, err := l.die(ctx, ref, s, d)
			if err != nil {
				failRun(t, l, "%s: %v", s, err)
				return
			}
			outs = append(outs, out)
		})
		if !ok {
			return outs
		}
	}
	if err := l.remove(ctx, s); err != nil {
		failRun(t, l, "%s: %v", s, err)
	}
	return outs
}

// die brings an instance into the shape that an act begins in, has a node die in the act, and judges what comes of it.
func (l *lane) die(ctx context.Context, ref reference, s *subject, d dying) (outcome, error) {
	a := l.act(d.act)
	if err := l.bring(ctx, s, a.from); err != nil {
		return outcome{}, fmt.Errorf("before: %w", err)
	}
	out, err := l.perform(ctx, s, a, d.point)
	if err != nil {
		return out, err
	}
	if err := l.judge(ctx, ref, s, a); err != nil {
		return out, fmt.Errorf("afterwards: %w", err)
	}
	return out, l.revive(ctx)
}

// delivery are the points of the delivery of a notification.
var delivery = []string{"notify/deliver/before", "notify/deliver/after"}

// lastPoint is how the last point of an act ends, which is passed when its end has been seen already; "" when there is none.
func lastPoint(a *act) string {
	return map[sol003.LcmOperationState]string{
		sol003.LcmOperationStateCompleted: "/finish/after", sol003.LcmOperationStateRolledBack: "/rolled-back/after",
	}[a.states[len(a.states)-1]]
}

// discover goes through everything once without a death, and returns what that leaves behind and the jobs to do.
func discover(t *testing.T, on *stage, nodes int) (reference, []job) {
	t.Helper()
	alone := nodes == 1
	ctx := t.Context()
	l, err := newLane(ctx, t.TempDir(), on, 1, on.samples[nodes], true)
	if err != nil {
		t.Fatalf("set up a cluster: %v", err)
	}
	defer l.close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\n%s", err, l.tails())
		}
	}
	take := func(last string) []string {
		p, err := l.points(ctx, last)
		must(err)
		// Who is told of a notification when is a matter of chance.
		return slices.DeleteFunc(p, func(p string) bool { return strings.HasPrefix(p, "notify/") })
	}
	take("") // of the set-up
	var put, uri []string
	if l.upload != "" {
		_, err = l.onboarding(ctx, byPUT, "")
		must(err)
		put = take("onboard:onboard:after")
		_, err = l.onboarding(ctx, byURI, "")
		must(err)
		uri = take("onboard:onboard:after")
	}

	ref, points := reference{}, map[string][]string{}
	s, err := l.create(ctx)
	must(err)
	passed := slices.Concat(put, uri)
	acts := on.acts
	for n := range acts {
		a := &acts[n]
		for _, b := range l.way(s.shape, a.from) {
			_, err := l.perform(ctx, s, b, "")
			must(err)
			take(lastPoint(b))
		}
		_, err := l.perform(ctx, s, a, "")
		must(err)
		got := slices.DeleteFunc(take(lastPoint(a)), func(p string) bool { return a.chance != "" && strings.HasPrefix(p, a.chance) })
		passed = append(passed, got...)
		ref[a.name], err = l.expect(ctx, s, a)
		must(err)
		if err := l.judge(ctx, ref, s, a); err != nil {
			must(fmt.Errorf("%s: %w", a.name, err))
		}
		switch {
		case a.plain:
		case a.points != nil:
			for _, p := range a.points {
				points[a.name] = append(points[a.name], strings.ReplaceAll(p, "ASPECT", l.aspect))
			}
		default:
			points[a.name] = got
		}
	}
	must(l.remove(ctx, s))
	for _, p := range on.essential {
		if !slices.Contains(passed, p) {
			t.Errorf("the point %s is not passed any more", p)
		}
	}
	for _, a := range []string{instantiate, modify, terminate} {
		points[a] = append(points[a], delivery...)
	}
	var orderly, troubled []*act // that make a life
	for n := range acts {
		a := &acts[n]
		all := len(points[a.name])
		if a.points == nil && a.name != instantiate && a.name != terminate {
			points[a.name] = some(points[a.name], alone, a.like)
		}
		if !a.plain {
			t.Logf("points: %d of %s, %d of them are died at", all, a.name, len(points[a.name]))
		}
		if slices.ContainsFunc(acts[:n], func(a act) bool { return a.name == terminate }) {
			troubled = append(troubled, a)
		} else {
			orderly = append(orderly, a)
		}
	}
	jobs := append(lives(orderly, points), lives(troubled, points)...)
	if l.upload == "" {
		return ref, jobs
	}
	t.Logf("points: %d of onboarding by PUT, %d by URI", len(put)+1, len(uri)+1)
	for _, p := range append(put, receiving) {
		jobs = append(jobs, job{by: byPUT, point: p})
	}
	for _, p := range append(uri, receiving) {
		jobs = append(jobs, job{by: byURI, point: p})
	}
	return ref, jobs
}

// lives makes lives of acts: in the first each dies at its first point, in the next at its second, as far as there are any.
func lives(acts []*act, points map[string][]string) []job {
	var jobs []job
	for n := 0; ; n++ {
		var j job
		for _, a := range acts {
			if n < len(points[a.name]) {
				j.deaths = append(j.deaths, dying{a.name, points[a.name][n]})
			}
		}
		if len(j.deaths) == 0 {
			return jobs
		}
		jobs = append(jobs, j)
	}
}

func arrangement(nodes int) string {
	if nodes == 1 {
		return "one node"
	}
	return fmt.Sprintf("one of %d", nodes)
}

// report prints what was measured, and fails when a takeover by a living node took too long.
func report(t *testing.T, on *stage, jobs map[int][]job, outs []outcome, elapsed time.Duration) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "point\tone node: takeover s\tended s\tone of 3: takeover s\tended s\t\n")
	type key struct{ scenario, point string }
	byPoint := map[key]map[int]*outcome{} // nil: the run failed
	var keys []key
	plan := func(nodes int, k key) {
		if byPoint[k] == nil {
			byPoint[k] = map[int]*outcome{}
			keys = append(keys, k)
		}
		byPoint[k][nodes] = nil
	}
	for nodes, list := range jobs {
		for _, j := range list {
			if j.by != "" {
				plan(nodes, key{"onboarding by " + j.by, j.point})
			}
			for _, d := range j.deaths {
				plan(nodes, key{d.act, d.point})
			}
		}
	}
	for n, o := range outs {
		byPoint[key{o.scenario, o.point}][o.nodes] = &outs[n]
	}
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.scenario, b.scenario), cmp.Compare(a.point, b.point)) })
	for _, k := range keys {
		fmt.Fprintf(w, "%s: %s\t", k.scenario, k.point)
		for _, nodes := range []int{1, 3} {
			o, planned := byPoint[k][nodes]
			switch {
			case !planned:
				fmt.Fprint(w, "\t\t")
			case o == nil:
				fmt.Fprint(w, "failed\t\t")
			case !o.taken:
				fmt.Fprintf(w, "nothing left\t%.2f\t", o.ended.Seconds())
			default:
				fmt.Fprintf(w, "%.2f\t%.2f\t", o.takeover.Seconds(), o.ended.Seconds())
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "scenario\tarrangement\truns\ttakeovers\tp50 s\tp95 s\tp100 s\tended p100 s\t\n")
	var scenarios []string
	if slices.ContainsFunc(outs, func(o outcome) bool { return strings.HasPrefix(o.scenario, "onboarding ") }) {
		scenarios = append(scenarios, "onboarding by "+byPUT, "onboarding by "+byURI)
	}
	for _, a := range on.acts {
		if !a.plain {
			scenarios = append(scenarios, a.name)
		}
	}
	scenarios = append(scenarios, "")
	worst := map[int]time.Duration{}
	for _, scenario := range scenarios {
		for _, nodes := range []int{1, 3} {
			runs := 0
			var took, ended []time.Duration
			for _, o := range outs {
				if o.nodes != nodes || scenario != "" && o.scenario != scenario {
					continue
				}
				runs++
				ended = append(ended, o.ended)
				if o.taken {
					took = append(took, o.takeover)
				}
			}
			name := cmp.Or(scenario, "all")
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t\n", name, arrangement(nodes), runs, len(took),
				percentile(took, 50).Seconds(), percentile(took, 95).Seconds(), percentile(took, 100).Seconds(), percentile(ended, 100).Seconds())
			worst[nodes] = max(worst[nodes], percentile(took, 100))
		}
	}
	_ = w.Flush()
	t.Logf("%d points, %d deaths in %.0f s; takeover is from the death (one node: from the start of the new process) to the first change by another process\n%s",
		len(keys), len(outs), elapsed.Seconds(), b.String())
	if worst[3] > takeoverLimit {
		t.Errorf("a takeover by a living node took %s, want %s at most", worst[3], takeoverLimit)
	}
	if worst[1] > takeoverLimit {
		t.Errorf("a new process resumed after %s, want %s at most", worst[1], takeoverLimit)
	}
}

// percentile returns the smallest value that p per cent of the values do not exceed; 0 of none.
func percentile(values []time.Duration, p int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}
