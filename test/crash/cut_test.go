package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
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

// cutLane is a lane of two nodes, over a database server of its own when env names one.
func cutLane(t *testing.T, env ...string) *lane {
	t.Helper()
	l, err := newLane(t.Context(), t.TempDir(), stacks, 2, cluster, false, env...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.tails())
		}
	})
	return l
}

// databaseLane is a cutLane over a database server of its own, which may lose what it was told a moment ago.
func databaseLane(t *testing.T) (*lane, *postgres) {
	t.Helper()
	pg := startPostgres(t)
	l := cutLane(t, "VNFM_DATABASE_URL="+pg.server.URL())
	l.forgetful = true
	return l, pg
}

// cutAt are the acts in which something is cut, with the steps that wait then.
var cutAt = []struct{ act, step string }{{instantiate, "infra:stack-wait"}, {scaleOut, "infra:scale-"}, {healOne, "infra:stack-wait"}}

// referenceOf takes an instance through acts, undisturbed.
func (l *lane) referenceOf(ctx context.Context, names ...string) (reference, error) {
	ref := reference{}
	s, err := l.create(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		a := l.act(name)
		if err := l.bring(ctx, s, a.from); err != nil {
			return nil, err
		}
		if _, err := l.perform(ctx, s, a, ""); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if ref[name], err = l.expect(ctx, s, a); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return ref, l.remove(ctx, s)
}

// cutDuringWaits cuts something while acts of an instance wait for the VIM, and judges what comes of it.
func (l *lane) cutDuringWaits(t *testing.T, cut func(t *testing.T)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	names := []string{terminate}
	for _, c := range cutAt {
		names = append(names, c.act)
	}
	ref, err := l.referenceOf(ctx, names...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cutAt {
		a := l.act(c.act)
		if err := l.bring(ctx, s, a.from); err != nil {
			t.Fatal(err)
		}
		l.slowly(waitingStack)
		if err := l.cutDuring(ctx, t, s, a, c.step, cut); err != nil {
			t.Fatalf("%s: %s: %v", a.name, s, err)
		}
		l.slowly(serverLatency)
		if err := l.judge(ctx, ref, s, a); err != nil {
			t.Fatalf("after %s: %s: %v", a.name, s, err)
		}
	}
	a := l.act(terminate)
	if err := l.bring(ctx, s, a.from); err != nil {
		t.Fatal(err)
	}
	if _, err := l.perform(ctx, s, a, ""); err != nil {
		t.Fatal(err)
	}
	if err := l.judge(ctx, ref, s, a); err != nil {
		t.Errorf("after %s: %s: %v", a.name, s, err)
	}
}

// cutDuring cuts something while an act waits in a step, and waits until the act has ended as it should.
func (l *lane) cutDuring(ctx context.Context, t *testing.T, s *subject, a *act, step string, cut func(t *testing.T)) error {
	t.Helper()
	if _, err := l.begin(ctx, s, a, ""); err != nil {
		return err
	}
	if err := l.awaitStep(ctx, s.op, step); err != nil {
		return err
	}
	began := time.Now()
	cut(t)
	over := time.Now()
	_ = l.conn.Close(ctx)
	var err error
	if l.conn, err = pgx.Connect(ctx, l.DatabaseURL); err != nil {
		return err
	}
	// Not through the API: a request that meets a connection which has just been cut may fail.
	if err := harness.Await(ctx, "the operation has ended", func(ctx context.Context) (bool, error) { return l.ended(ctx, s.op) }); err != nil {
		return err
	}
	t.Logf("%s: cut for %.1f s; ended %.1f s after the cut was over", a.name, over.Sub(began).Seconds(), time.Since(over).Seconds())
	for _, n := range l.Nodes {
		if err := n.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return l.finish(ctx, s, a)
}

// TestDatabaseCut takes the database away from two nodes while an instance is made, scaled and healed.
func TestDatabaseCut(t *testing.T) {
	const away = 3 * time.Second
	t.Run("restarted", func(t *testing.T) {
		t.Parallel()
		l, pg := databaseLane(t)
		l.cutDuringWaits(t, func(t *testing.T) {
			if err := pg.server.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			pause(t, away)
			pg.start(t)
		})
	})
	t.Run("crashed", func(t *testing.T) {
		t.Parallel()
		l, pg := databaseLane(t)
		l.cutDuringWaits(t, func(t *testing.T) {
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
		t.Parallel()
		l, _ := databaseLane(t)
		l.cutDuringWaits(t, func(t *testing.T) {
			var n int
			if err := l.conn.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n); err != nil || n == 0 {
				t.Fatalf("%d sessions were ended (error: %v)", n, err)
			}
		})
	})
}

// TestVIMCut takes the VIM away for five seconds while an instance is made, scaled and healed.
func TestVIMCut(t *testing.T) {
	for _, effect := range []string{vimsim.EffectReset, vimsim.EffectHTTP} {
		t.Run(effect, func(t *testing.T) {
			t.Parallel()
			l := cutLane(t)
			l.cutDuringWaits(t, func(t *testing.T) {
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
