package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// lane is a cluster with a database and a VIM of its own, on which one run follows the other.
type lane struct {
	*harness.Cluster
	*stage
	sample
	arm   string // VNFM_CRASH_FILE
	seen  string // VNFM_CRASH_POINTS, empty when points are not listed
	read  int    // how much of that has been read
	conn  *pgx.Conn
	vim   cloud
	vimID string // the registered VIM's
	vnfd  string // of the sample, onboarded
	told  *subscriber
	empty map[string]int // what the VIM holds of itself
	runs  int

	forgetful bool // its database may lose what it was told a moment ago
}

// newLane sets up a cluster, registers its VIM, onboards the sample and subscribes to all notifications. It must be closed.
func newLane(ctx context.Context, dir string, on *stage, nodes int, p sample, list bool, env ...string) (_ *lane, err error) {
	l := &lane{stage: on, arm: filepath.Join(dir, "die-at"), sample: p, told: newSubscriber()}
	env = append(slices.Concat(on.options.Env, env), "VNFM_CRASH_FILE="+l.arm, "VNFM_VNF_PACKAGE_URI_ALLOW=127.0.0.1", "VNFM_NOTIFY_ALLOW=127.0.0.1")
	if list {
		l.seen = filepath.Join(dir, "points")
		env = append(env, "VNFM_CRASH_POINTS="+l.seen)
	}
	options := on.options
	options.Nodes, options.Tags, options.Env = nodes, []string{"crashpoint"}, env
	l.Cluster, err = harness.Start(ctx, options)
	if err != nil {
		l.told.Close()
		return nil, err
	}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	for _, e := range env {
		if url, ok := strings.CutPrefix(e, "VNFM_DATABASE_URL="); ok {
			l.DatabaseURL = url
		}
	}
	if l.conn, err = pgx.Connect(ctx, l.DatabaseURL); err != nil {
		return nil, err
	}
	api := l.API(0)
	if l.vim, err = on.open(ctx, l); err != nil {
		return nil, err
	}
	if l.vimID, err = l.vim.register(ctx, api); err != nil {
		return nil, err
	}
	if _, err = api.Subscribe(ctx, l.told.URL); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	zip, err := p.pack(p.name)
	if err != nil {
		return nil, err
	}
	pkg, err := api.Onboard(ctx, zip)
	if err != nil {
		return nil, err
	}
	l.vnfd = pkg.VnfdId
	now, err := l.vim.look(ctx, nil)
	if err != nil {
		return nil, err
	}
	l.empty = now.counts
	return l, nil
}

func (l *lane) close() {
	if l.conn != nil {
		_ = l.conn.Close(context.Background())
	}
	l.Close()
	if l.vim != nil {
		l.vim.close()
	}
	l.told.Close()
}

// living returns a node that runs, other ones for other runs.
func (l *lane) living() *harness.Node {
	for i := range l.Nodes {
		if n := l.Nodes[(i+l.runs)%len(l.Nodes)]; n.Running() {
			return n
		}
	}
	return l.Nodes[0]
}

// api returns a client of a node that runs.
func (l *lane) api() *harness.Client { return harness.NewClient(l.living().URL) }

// revive starts the nodes that do not run.
func (l *lane) revive(ctx context.Context) error {
	for _, n := range l.Nodes {
		if !n.Running() {
			if err := n.Start(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// armAt has the first node that passes the point die.
func (l *lane) armAt(point string) error {
	if err := os.WriteFile(l.arm+".new", []byte(point), 0o600); err != nil {
		return err
	}
	return os.Rename(l.arm+".new", l.arm)
}

// death is the end of a process.
type death struct {
	node *harness.Node
	pid  int
	at   time.Time
}

// awaitDeath waits until a node has died; one must, of those that run now.
func (l *lane) awaitDeath(ctx context.Context) (death, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	died := make(chan death, len(l.Nodes))
	for _, n := range l.Nodes {
		pid, done := n.PID(), n.Done()
		go func() {
			select {
			case <-done:
				died <- death{n, pid, time.Now()}
			case <-ctx.Done():
			}
		}()
	}
	select {
	case d := <-died:
		return d, nil
	case <-ctx.Done():
		return death{}, errors.New("no node has come to the point and died")
	}
}

// tails are the ends of the nodes' logs.
func (l *lane) tails() string {
	var b strings.Builder
	for _, n := range l.Nodes {
		fmt.Fprintf(&b, "the end of the log of node %d:\n%s\n", n.Number, n.LogTail(40))
	}
	return b.String()
}

// points returns what the nodes have passed since the last call, each point once, in order: at least until one that ends
// so.
func (l *lane) points(ctx context.Context, last string) (out []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	err = harness.Await(ctx, "point "+last+" is passed", func(context.Context) (bool, error) {
		raw, err := os.ReadFile(l.seen)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
		out = nil
		for p := range strings.FieldsSeq(string(raw[min(l.read, len(raw)):])) {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
		done := last == "" || slices.ContainsFunc(out, func(p string) bool { return strings.HasSuffix(p, last) })
		if done {
			l.read = len(raw)
		}
		return done, nil
	})
	return out, err
}

// change is a state of some work that another has seen.
type change struct {
	at    time.Time
	fence int64
	owner string
	state string
}

// watch looks at the row that query gives (fence, owner, state; no row yet is fine) every 20 ms on a connection of its
// own; stop ends it and returns what changed when.
func (l *lane) watch(ctx context.Context, query string, args ...any) (stop func() []change, err error) {
	conn, err := pgx.Connect(ctx, l.DatabaseURL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var changes []change
	look := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // the last look is after ctx
		defer cancel()
		var c change
		if conn.QueryRow(ctx, query, args...).Scan(&c.fence, &c.owner, &c.state) != nil {
			return
		}
		c.at = time.Now()
		if n := len(changes); n == 0 || changes[n-1].fence != c.fence || changes[n-1].owner != c.owner || changes[n-1].state != c.state {
			changes = append(changes, c)
		}
	}
	go func() {
		defer close(done)
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done(): // what is there at the end is seen in any case
				look()
				return
			case <-tick.C:
				look()
			}
		}
	}()
	return func() []change {
		cancel()
		<-done
		return changes
	}, nil
}

const packageWatch = `SELECT fence, coalesce(owner, ''), onboarding_state FROM vnf_packages WHERE id = $1::uuid`

// takeover returns how long after from somebody else than the dead process made the first change: a fence above base,
// or another owner. It is false when nobody had to.
func takeover(changes []change, d death, from time.Time, base int64) (time.Duration, bool) {
	mine := "-" + strconv.Itoa(d.pid) + "-"
	for _, c := range changes {
		if c.fence > base || c.at.After(d.at) && c.owner != "" && !strings.Contains(c.owner, mine) {
			return max(0, c.at.Sub(from)), true
		}
	}
	return 0, false
}

// leavesWork tells whether a death at the point leaves anything to be taken over.
func leavesWork(point string) bool {
	for _, done := range []string{
		"/accept/before", "FAILED/accept/after", "/finish/recorded", "/finish/after", "/rolled-back/recorded", "/rolled-back/after", "onboard:onboard:after",
	} {
		if strings.HasSuffix(point, done) {
			return false
		}
	}
	return true
}

// failRun reports a run's failure.
func failRun(t *testing.T, l *lane, format string, args ...any) {
	t.Helper()
	t.Errorf(format, args...)
	t.Log(l.tails())
}
