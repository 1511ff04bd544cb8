package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// TestFiftyAtOnce has fifty instances made at once, and removed at once, by three nodes.
func TestFiftyAtOnce(t *testing.T) {
	const many = 50
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	l, err := newLane(ctx, t.TempDir(), stacks, 3, cluster, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	defer func() {
		if t.Failed() {
			t.Log(l.tails())
		}
	}()
	ref, err := l.referenceOf(ctx, instantiate, terminate)
	if err != nil {
		t.Fatal(err)
	}
	var data string
	if err := l.conn.QueryRow(ctx, `SHOW data_directory`).Scan(&data); err != nil {
		t.Fatal(err)
	}
	pgLog := filepath.Join(filepath.Dir(data), "postgres.log")
	logged := fileSize(t, pgLog)

	vim := &simulated{l.Cluster}
	up, down := l.act(instantiate), l.act(terminate)
	subjects := make([]*subject, many)
	for i := range subjects {
		if subjects[i], err = l.create(ctx); err != nil {
			t.Fatal(err)
		}
	}
	since := vim.mark()
	took := l.allAtOnce(ctx, t, subjects, up)
	t.Logf("%d INSTANTIATEs of flavour %s by 3 nodes: %.1f s, %.0f a minute", many, l.flavour, took.Seconds(), many/took.Minutes())

	want := map[string]int{}
	for kind, n := range ref[instantiate].VIM {
		want[kind] = l.empty[kind] + many*(n-l.empty[kind])
	}
	if d := cmp.Diff(want, vim.counts()); d != "" {
		t.Errorf("the VIM does not hold %d instances (-want +got):\n%s", many, d)
	}
	if want["stacks"] != many || want["servers"] != 5*many {
		t.Errorf("the reference is not what it should be: %v", want)
	}
	var names []string
	for _, s := range l.Sim.Cloud.State().Stacks {
		if s.Status != "DELETE_COMPLETE" {
			names = append(names, s.Name)
			if s.Status != "CREATE_COMPLETE" {
				t.Errorf("stack %s is %s", s.Name, s.Status)
			}
		}
	}
	var wantNames []string
	for _, s := range subjects {
		wantNames = append(wantNames, "vnflcm_"+s.id)
	}
	slices.Sort(names)
	slices.Sort(wantNames)
	if d := cmp.Diff(wantNames, names); d != "" {
		t.Errorf("there is not one stack an instance (-want +got):\n%s", d)
	}
	for kind, n := range ref[instantiate].Requests {
		if got := vim.requests(since)[kind]; got != many*n {
			t.Errorf("%d requests %s succeeded, want %d", got, kind, many*n)
		}
	}
	judge := func(a *act) {
		for _, s := range subjects {
			lines, err := l.journal(ctx, s.op)
			if err != nil {
				t.Fatal(err)
			}
			var steps []string
			for _, line := range lines {
				steps = append(steps, line.Name)
			}
			if d := cmp.Diff(ref[a.name].Steps, steps); d != "" {
				t.Errorf("%s: the journal has other steps (-want +got):\n%s", s, d)
			}
			if err := errors.Join(l.judgeOpOcc(ctx, s, a), l.judgeNotifications(ctx, s)); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
	}
	judge(up)
	took = l.allAtOnce(ctx, t, subjects, down)
	t.Logf("%d TERMINATEs by 3 nodes: %.1f s, %.0f a minute", many, took.Seconds(), many/took.Minutes())
	judge(down)
	if d := cmp.Diff(l.empty, vim.counts()); d != "" {
		t.Errorf("something is left in the VIM (-want +got):\n%s", d)
	}
	for _, s := range subjects {
		if err := l.remove(ctx, s); err != nil {
			t.Error(err)
		}
	}
	var fences, deadlocks int
	if err := l.conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM vnf_lcm_op_occs WHERE fence <> 1),
		(SELECT deadlocks FROM pg_stat_database WHERE datname = current_database())`).Scan(&fences, &deadlocks); err != nil {
		t.Fatal(err)
	}
	if fences > 0 {
		t.Errorf("%d operations were taken over though nobody died", fences)
	}
	if deadlocks > 0 {
		t.Errorf("PostgreSQL counts %d deadlocks", deadlocks)
	}
	raw, err := os.ReadFile(pgLog)
	if err != nil {
		t.Fatal(err)
	}
	for name, log := range map[string][]byte{"PostgreSQL": raw[min(logged, len(raw)):], "the nodes": []byte(l.Logs())} {
		for _, word := range []string{"deadlock detected", "40P01"} {
			if i := bytes.Index(log, []byte(word)); i >= 0 {
				t.Errorf("the log of %s has: …%s…", name, log[max(0, i-200):min(len(log), i+400)])
			}
		}
	}
}

// allAtOnce asks for an act on every instance at the same moment, through all nodes, waits until all have ended as they
// should, and returns how long that took.
func (l *lane) allAtOnce(ctx context.Context, t *testing.T, subjects []*subject, a *act) time.Duration {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(subjects))
	began := time.Now()
	for i, s := range subjects {
		on := *l // asks node after node
		on.runs, s.fence = i, 1
		wg.Go(func() {
			if s.op, errs[i] = a.ask(ctx, &on, s); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", s, errs[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	// One look at all of them, so that the waiting does not load what is measured.
	err := harness.Await(ctx, "all operations have ended", func(ctx context.Context) (bool, error) {
		var live int
		err := l.conn.QueryRow(ctx, `SELECT count(*) FROM vnf_lcm_op_occs WHERE operation_state IN ('STARTING', 'PROCESSING', 'ROLLING_BACK')`).Scan(&live)
		return live == 0, err
	})
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		for n, state := range a.states {
			s.history = append(s.history, fmt.Sprintf("%s %s %d %s", a.operation, s.op, n+1, state))
		}
		if err := l.finish(ctx, s, a); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return took
}

func fileSize(t *testing.T, path string) int {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(st.Size())
}
