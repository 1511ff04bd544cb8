package crash

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// takeoverLimit is how long a dead node's work may lie there.
const takeoverLimit = 15 * time.Second

// lanesEach is how many clusters of each arrangement run at the same time.
const lanesEach = 2

// essential are points that must be among those found: when one of them has another name, this suite is to be looked at.
var essential = []string{
	"INSTANTIATE/accept/before", "INSTANTIATE/accept/after", "INSTANTIATE/grant/before", "INSTANTIATE/start/after",
	"INSTANTIATE/infra:images/before", "INSTANTIATE/infra:images/after", "INSTANTIATE/infra:images/recorded",
	"INSTANTIATE/infra:user-data/before", "INSTANTIATE/infra:stack-create/before", "INSTANTIATE/infra:stack-create/after",
	"INSTANTIATE/infra:stack-create/recorded", "INSTANTIATE/infra:stack-wait/after", "INSTANTIATE/infra:inventory/after",
	"INSTANTIATE/finish/before", "INSTANTIATE/finish/recorded",
	"TERMINATE/accept/before", "TERMINATE/accept/after", "TERMINATE/infra:stack-delete/before",
	"TERMINATE/infra:stack-delete/after", "TERMINATE/infra:stack-delete/recorded", "TERMINATE/infra:images-delete/before",
	"TERMINATE/infra:images-delete/after", "TERMINATE/infra:images-delete/recorded", "TERMINATE/finish/before", "TERMINATE/finish/recorded",
	"onboard:download:before", "onboard:download:after", "onboard:open:before", "onboard:verify:after", "onboard:vnfd:after",
	"onboard:onboard:before", "onboard:onboard:after",
}

// job is one run, or the two of an instance's life.
type job struct {
	by                         string // how a package is uploaded; empty for a life
	point                      string
	atInstantiate, atTerminate string
}

func (j job) name() string {
	if j.by != "" {
		return j.by + "," + j.point
	}
	return strings.ReplaceAll(strings.Trim(j.atInstantiate+","+j.atTerminate, ","), "/", " ") // a slash is a subtest's
}

// TestCrash finds out every point of onboarding, INSTANTIATE and TERMINATE, and has a node die at each, the only one
// and one of three.
func TestCrash(t *testing.T) {
	ref, jobs := discover(t)
	var mu sync.Mutex
	var outs []outcome
	var wg sync.WaitGroup
	began := time.Now()
	for _, nodes := range []int{1, 3} {
		for n := range lanesEach {
			wg.Go(func() {
				t.Run(fmt.Sprintf("%s,lane %d", arrangement(nodes), n), func(t *testing.T) {
					var mine []job
					for i := n; i < len(jobs); i += lanesEach {
						mine = append(mine, jobs[i])
					}
					got := runLane(t, ref, nodes, mine)
					mu.Lock()
					defer mu.Unlock()
					outs = append(outs, got...)
				})
			})
		}
	}
	wg.Wait()
	report(t, outs, time.Since(began))
}

// runLane does jobs on clusters of that many nodes: on one, until a run fails, which may have spoilt it.
func runLane(t *testing.T, ref *reference, nodes int, jobs []job) (outs []outcome) {
	var l *lane
	defer func() {
		if l != nil {
			l.close()
		}
	}()
	for _, j := range jobs {
		if l == nil {
			var err error
			if l, err = newLane(t.Context(), t.TempDir(), nodes, false); err != nil {
				t.Fatalf("set up a cluster of %d: %v", nodes, err)
			}
		}
		ok := t.Run(j.name(), func(t *testing.T) {
			got, err := l.do(t.Context(), ref, j)
			if err != nil {
				failRun(t, l, "%v", err)
				return
			}
			outs = append(outs, got...)
		})
		if !ok {
			l.close()
			l = nil
		}
	}
	return outs
}

func (l *lane) do(ctx context.Context, ref *reference, j job) ([]outcome, error) {
	if j.by == "" {
		return l.life(ctx, ref, j.atInstantiate, j.atTerminate)
	}
	out, err := l.onboarding(ctx, j.by, j.point)
	return []outcome{out}, err
}

// discover goes through everything once without a death, and returns what that looks like and the runs to do.
func discover(t *testing.T) (*reference, []job) {
	t.Helper()
	ctx := t.Context()
	l, err := newLane(ctx, t.TempDir(), 1, true)
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
	take := func() []string {
		p, err := l.points()
		must(err)
		return p
	}
	take() // of the set-up
	_, err = l.onboarding(ctx, byPUT, "")
	must(err)
	put := take()
	_, err = l.onboarding(ctx, byURI, "")
	must(err)
	uri := take()

	ref := &reference{steps: map[string][]string{}}
	since := l.mark()
	vnf, err := l.api().CreateInstance(ctx, l.vnfd)
	must(err)
	_, err = l.operation(ctx, vnf.Id, instantiate, "")
	must(err)
	up := take()
	ref.vim, ref.images = l.counts(), l.requests(since, "glance", http.MethodPost, "/images")
	if ref.vim["servers"] != 5 || ref.vim["stacks"] != 1 || ref.images == 0 {
		t.Fatalf("an instance has in the VIM %v with %d images, want 5 servers in a stack", ref.vim, ref.images)
	}
	_, err = l.operation(ctx, vnf.Id, terminate, "")
	must(err)
	down := take()
	ops, err := l.api().OpOccs(ctx, vnf.Id)
	must(err)
	for _, o := range ops {
		lines, err := l.journal(ctx, o.Id)
		must(err)
		for _, line := range lines {
			ref.steps[string(o.Operation)] = append(ref.steps[string(o.Operation)], line.Name)
		}
	}
	must(l.judgeInstance(ctx, ref, vnf.Id, since, instantiate, terminate))

	all := slices.Concat(put, uri, up, down)
	for _, p := range essential {
		if !slices.Contains(all, p) {
			t.Errorf("the point %s is not passed any more", p)
		}
	}
	t.Logf("points: %d of onboarding by PUT, %d by URI, %d of INSTANTIATE, %d of TERMINATE", len(put)+1, len(uri)+1, len(up), len(down))
	var jobs []job
	for i := range max(len(up), len(down)) {
		j := job{}
		if i < len(up) {
			j.atInstantiate = up[i]
		}
		if i < len(down) {
			j.atTerminate = down[i]
		}
		jobs = append(jobs, j)
	}
	for _, p := range append(put, receiving) {
		jobs = append(jobs, job{by: byPUT, point: p})
	}
	for _, p := range append(uri, receiving) {
		jobs = append(jobs, job{by: byURI, point: p})
	}
	return ref, jobs
}

func arrangement(nodes int) string {
	if nodes == 1 {
		return "one node"
	}
	return fmt.Sprintf("one of %d", nodes)
}

// report prints what was measured, and fails when a takeover by a living node took too long.
func report(t *testing.T, outs []outcome, elapsed time.Duration) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "point\tone node: takeover s\tended s\tone of 3: takeover s\tended s\t\n")
	type key struct{ scenario, point string }
	byPoint := map[key]map[int]outcome{}
	var keys []key
	for _, o := range outs {
		k := key{o.scenario, o.point}
		if byPoint[k] == nil {
			byPoint[k] = map[int]outcome{}
			keys = append(keys, k)
		}
		byPoint[k][o.nodes] = o
	}
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.scenario, b.scenario), cmp.Compare(a.point, b.point)) })
	for _, k := range keys {
		name := k.point
		if strings.HasPrefix(k.scenario, "onboarding") {
			name = k.scenario + ": " + k.point
		}
		fmt.Fprintf(w, "%s\t", name)
		for _, nodes := range []int{1, 3} {
			o, ok := byPoint[k][nodes]
			switch {
			case !ok:
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
	scenarios := []string{"onboarding by " + byPUT, "onboarding by " + byURI, instantiate, terminate, ""}
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
	t.Logf("%d deaths in %.0f s; takeover is from the death (one node: from the start of the new process) to the first change by another process\n%s",
		len(outs), elapsed.Seconds(), b.String())
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
