package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/privatepg"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// postgres is a durable database server of a test's own, which can be taken away and brought back.
type postgres struct {
	dir    string
	server *privatepg.Server
}

func startPostgres(t *testing.T) *postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "vnfm-cut-")
	if err != nil {
		t.Fatal(err)
	}
	p := &postgres{dir: dir}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if p.server != nil {
			if err := p.server.Stop(ctx); err != nil {
				t.Errorf("stop PostgreSQL: %v", err)
			}
		}
		_ = os.RemoveAll(dir)
	})
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the database's user must pass through it
		t.Fatal(err)
	}
	p.start(t)
	return p
}

func (p *postgres) start(t *testing.T) {
	t.Helper()
	s, err := privatepg.Start(t.Context(), privatepg.Options{Dir: filepath.Join(p.dir, "pg"), MaxConnections: 150})
	if err != nil {
		t.Fatal(err)
	}
	p.server = s
}

// waitingStack is how long a simulated server takes in these tests: a stack's creation is cut in its midst.
const waitingStack = 4 * time.Second

// cutLane is a lane of two nodes over a database server of its own.
func cutLane(t *testing.T) (*lane, *postgres) {
	t.Helper()
	pg := startPostgres(t)
	l, err := newLane(t.Context(), t.TempDir(), 2, false, "VNFM_DATABASE_URL="+pg.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.tails())
		}
	})
	return l, pg
}

// referenceOf makes an instance and removes it, undisturbed.
func (l *lane) referenceOf(ctx context.Context) (*reference, error) {
	ref := &reference{steps: map[string][]string{}}
	since := l.mark()
	vnf, err := l.api().CreateInstance(ctx, l.vnfd)
	if err != nil {
		return nil, err
	}
	if _, err = l.operation(ctx, vnf.Id, instantiate, ""); err != nil {
		return nil, err
	}
	ref.vim, ref.images = l.counts(), l.requests(since, "glance", "POST", "/images")
	if _, err = l.operation(ctx, vnf.Id, terminate, ""); err != nil {
		return nil, err
	}
	return ref, l.api().DeleteInstance(ctx, vnf.Id)
}

// cutDuringWait has an instance made, cuts something while its stack is waited for, and judges what comes of it.
func (l *lane) cutDuringWait(t *testing.T, cut func(t *testing.T)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ref, err := l.referenceOf(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l.Sim.Cloud.SetLatency(map[string]time.Duration{"OS::Nova::Server": waitingStack})
	since := l.mark()
	vnf, err := l.api().CreateInstance(ctx, l.vnfd)
	if err != nil {
		t.Fatal(err)
	}
	op, err := l.api().Instantiate(ctx, vnf.Id, l.vim, deploy.InstantiateRequest(clusterPackage, flavour))
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.Await(ctx, "the stack is waited for", func(ctx context.Context) (bool, error) {
		lines, err := l.journal(ctx, op)
		return slices.ContainsFunc(lines, func(line journalLine) bool { return line.Name == "infra:stack-wait" }), err
	}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	cut(t)
	over := time.Now()
	_ = l.conn.Close(ctx)
	if l.conn, err = pgx.Connect(ctx, l.DatabaseURL); err != nil {
		t.Fatal(err)
	}
	// Not through the API: a request that meets a connection which has just been cut may fail.
	if err := harness.Await(ctx, "the operation has ended", func(ctx context.Context) (bool, error) {
		var live bool
		err := l.conn.QueryRow(ctx, `SELECT operation_state IN ('STARTING', 'PROCESSING', 'ROLLING_BACK') FROM vnf_lcm_op_occs WHERE id = $1::uuid`, op).Scan(&live)
		return !live, err
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("cut for %.1f s; completed %.1f s after the cut was over", over.Sub(began).Seconds(), time.Since(over).Seconds())
	if err := l.judgeInstance(ctx, ref, vnf.Id, since, instantiate); err != nil {
		t.Errorf("after %s: %v", instantiate, err)
	}
	l.Sim.Cloud.SetLatency(nil)
	for _, n := range l.Nodes {
		if err := n.AwaitReady(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := l.awaitCompleted(ctx, op); err != nil {
		t.Fatal(err)
	}
	if _, err := l.operation(ctx, vnf.Id, terminate, ""); err != nil {
		t.Fatal(err)
	}
	if err := l.judgeInstance(ctx, ref, vnf.Id, since, instantiate, terminate); err != nil {
		t.Errorf("after %s: %v", terminate, err)
	}
}

// TestDatabaseCut takes the database away from two nodes while a stack is waited for.
func TestDatabaseCut(t *testing.T) {
	const away = 3 * time.Second
	t.Run("restarted", func(t *testing.T) {
		l, pg := cutLane(t)
		l.cutDuringWait(t, func(t *testing.T) {
			if err := pg.server.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			pause(t, away)
			pg.start(t)
		})
	})
	t.Run("crashed", func(t *testing.T) {
		l, pg := cutLane(t)
		l.cutDuringWait(t, func(t *testing.T) {
			now, cancel := context.WithCancel(t.Context())
			cancel() // no time to write anything out: what was committed must come back from the log
			if err := pg.server.Stop(now); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			pause(t, away)
			pg.start(t)
		})
	})
	t.Run("sessions ended", func(t *testing.T) {
		l, _ := cutLane(t)
		l.cutDuringWait(t, func(t *testing.T) {
			var n int
			if err := l.conn.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n); err != nil || n == 0 {
				t.Fatalf("%d sessions were ended (error: %v)", n, err)
			}
		})
	})
}

// TestVIMCut takes the VIM away for five seconds while a stack is waited for: every connection breaks.
func TestVIMCut(t *testing.T) {
	for _, effect := range []string{vimsim.EffectReset, vimsim.EffectHTTP} {
		t.Run(effect, func(t *testing.T) {
			l, err := newLane(t.Context(), t.TempDir(), 2, false)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.close)
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(l.tails())
				}
			})
			l.cutDuringWait(t, func(t *testing.T) {
				id := l.Sim.Cloud.AddFault(vimsim.Fault{ResourceType: "*", Effect: effect, Status: 503})
				pause(t, 5*time.Second)
				if !l.Sim.Cloud.RemoveFault(id) {
					t.Error("the fault was gone")
				}
			})
		})
	}
}

// pause is how long something is away: there is nothing to wait for but time.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(fmt.Errorf("paused: %w", context.Cause(t.Context())))
	}
}
