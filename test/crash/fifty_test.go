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

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// TestFiftyAtOnce has fifty instances made at once, and removed at once, by three nodes.
func TestFiftyAtOnce(t *testing.T) {
	const many = 50
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	l, err := newLane(ctx, t.TempDir(), 3, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	defer func() {
		if t.Failed() {
			t.Log(l.tails())
		}
	}()
	ref, err := l.referenceOf(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var data string
	if err := l.conn.QueryRow(ctx, `SHOW data_directory`).Scan(&data); err != nil {
		t.Fatal(err)
	}
	pgLog := filepath.Join(filepath.Dir(data), "postgres.log")
	logged := fileSize(t, pgLog)

	instances := make([]string, many)
	for i := range instances {
		vnf, err := l.API(i%3).CreateInstance(ctx, l.vnfd)
		if err != nil {
			t.Fatal(err)
		}
		instances[i] = vnf.Id
	}
	since := l.mark()
	up := l.allAtOnce(ctx, t, instances, func(api *harness.Client, id string) (string, error) {
		return api.Instantiate(ctx, id, l.vim, deploy.InstantiateRequest(clusterPackage, flavour))
	})
	t.Logf("%d INSTANTIATEs of flavour %s by 3 nodes: %.1f s, %.0f a minute", many, flavour, up.Seconds(), many/up.Minutes())

	want := map[string]int{}
	for kind, n := range ref.vim {
		want[kind] = l.empty[kind] + many*(n-l.empty[kind])
	}
	if d := cmp.Diff(want, l.counts()); d != "" {
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
	for _, id := range instances {
		wantNames = append(wantNames, "vnflcm_"+id)
	}
	slices.Sort(names)
	slices.Sort(wantNames)
	if d := cmp.Diff(wantNames, names); d != "" {
		t.Errorf("there is not one stack an instance (-want +got):\n%s", d)
	}
	if n := l.requests(since, "heat", "POST", "/stacks"); n != many {
		t.Errorf("%d stacks were created, want %d", n, many)
	}
	if n := l.requests(since, "glance", "POST", "/images"); n != many*ref.images {
		t.Errorf("%d images were created, want %d", n, many*ref.images)
	}

	down := l.allAtOnce(ctx, t, instances, func(api *harness.Client, id string) (string, error) { return api.Terminate(ctx, id) })
	t.Logf("%d TERMINATEs by 3 nodes: %.1f s, %.0f a minute", many, down.Seconds(), many/down.Minutes())
	for _, id := range instances {
		if err := l.judgeInstance(ctx, ref, id, since, instantiate, terminate); err != nil {
			// Of the whole cloud there are others' stacks too, all of them deleted.
			t.Errorf("instance %s: %v", id, err)
		}
		if err := l.api().DeleteInstance(ctx, id); err != nil {
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

// allAtOnce asks for an operation on every instance at the same moment, through all nodes, waits until all are
// COMPLETED, and returns how long that took.
func (l *lane) allAtOnce(ctx context.Context, t *testing.T, instances []string, ask func(api *harness.Client, id string) (string, error)) time.Duration {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(instances))
	clients := make([]*harness.Client, len(l.Nodes))
	for n := range clients {
		clients[n] = l.API(n)
	}
	ops := make([]string, len(instances))
	began := time.Now()
	for i, id := range instances {
		wg.Go(func() {
			if ops[i], errs[i] = ask(clients[i%len(clients)], id); errs[i] != nil {
				errs[i] = fmt.Errorf("instance %s: %w", id, errs[i])
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
	for _, op := range ops {
		if err := l.awaitCompleted(ctx, op); err != nil {
			t.Error(err)
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
