package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// lockClass is the first key of all our advisory locks ("vnfm" in ASCII); the second is 0 for migrations, else a
// node's own.
const lockClass int32 = 0x766e666d

// Node is this process among the living: while it is Alive it holds a session advisory lock that the server frees when
// the process or its connection dies, kill -9 included.
type Node struct {
	ID   string
	conn *pgx.Conn
	done chan struct{} // closed when the lock may be lost
	stop context.CancelFunc
	wg   sync.WaitGroup
	log  *slog.Logger
	st   *Store

	interrupt atomic.Pointer[func(opOccID string, mode sol003.CancelModeType)]
}

// keepalive is how often a node proves to itself that its session lives.
const keepalive = 2 * time.Second

// Join makes this process a node: others see it, and take over its work when it is gone. The Node must be left.
func (s *Store) Join(ctx context.Context, id string) (*Node, error) {
	cfg := s.Pool.Config().ConnConfig.Copy()
	// A node that vanishes without a word (power, network) is noticed by the server within about 10 s.
	for k, v := range map[string]string{"tcp_keepalives_idle": "3", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "application_name": "vnfm node " + id} {
		cfg.RuntimeParams[k] = v
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("join as node %s: %w", id, err)
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1, k) FROM nextval('node_lock_key') AS n, LATERAL (SELECT n::integer AS k) AS key,
		LATERAL (SELECT set_config('vnfm.lock_key', k::text, false)) AS keep`, lockClass); err == nil {
		_, err = conn.Exec(ctx, `INSERT INTO nodes (id, lock_key) VALUES ($1, current_setting('vnfm.lock_key')::integer)`, id)
		if err != nil {
			_ = conn.Close(ctx)
			return nil, fmt.Errorf("join as node %s: %w", id, err)
		}
	} else {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("join as node %s: %w", id, err)
	}
	if _, err := conn.Exec(ctx, "LISTEN "+cancelTopic); err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("join as node %s: %w", id, err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &Node{ID: id, conn: conn, done: make(chan struct{}), stop: stop, log: s.Log, st: s}
	n.wg.Go(func() { n.watchSelf(run) })
	return n, nil
}

// Lost is closed when the node's session has ended: others may have taken over its work, so it must stop.
func (n *Node) Lost() <-chan struct{} { return n.done }

// watchSelf listens to what the nodes are told, and asks the session every now and then whether it is still there.
func (n *Node) watchSelf(ctx context.Context) {
	defer close(n.done)
	for ctx.Err() == nil {
		listen, stop := context.WithTimeout(ctx, keepalive)
		word, err := n.conn.WaitForNotification(listen)
		stop()
		if err == nil {
			n.hear(word)
			continue
		}
		ask, cancel := context.WithTimeout(ctx, 2*keepalive)
		_, err = n.conn.Exec(ask, "SELECT 1")
		cancel()
		if err != nil && ctx.Err() == nil {
			n.log.Error("this node's session with the database is lost", "node", n.ID, "error", err)
			return
		}
	}
}

// hear passes on what the nodes are told.
func (n *Node) hear(word *pgconn.Notification) {
	mode, opOcc, ok := strings.Cut(word.Payload, " ")
	if interrupt := n.interrupt.Load(); ok && word.Channel == cancelTopic && interrupt != nil {
		(*interrupt)(opOcc, sol003.CancelModeType(mode))
	}
}

// OnCancel has f told of every request to cancel an op occ, on whichever node it is run.
func (n *Node) OnCancel(f func(opOccID string, mode sol003.CancelModeType)) { n.interrupt.Store(&f) }

// Leave takes the node off the list. Its work must have been handed over.
func (n *Node) Leave(ctx context.Context) error {
	n.stop()
	n.wg.Wait()
	_, err := n.st.Pool.Exec(ctx, `DELETE FROM nodes WHERE id = $1`, n.ID)
	return errors.Join(err, n.conn.Close(ctx))
}

// Adopted tells what a look for orphaned work found.
type Adopted struct {
	Nodes      []string // nodes found dead
	Operations int      // op occs triggered anew
	Packages   int      // packages triggered anew
}

// Adopt looks for nodes that have died, and for live work that nobody will come back to (its node is dead, its trigger
// is gone), and triggers that work anew under a higher fence, all in one transaction.
func (s *Store) Adopt(ctx context.Context) (Adopted, error) {
	var a Adopted
	err := inTx(ctx, s.Pool, func(tx pgx.Tx) error {
		var err error
		a, err = s.adopt(ctx, tx)
		return err
	})
	if err != nil {
		return Adopted{}, fmt.Errorf("look for orphaned work: %w", err)
	}
	if a.Operations > 0 {
		s.voice.announce(lcmQueue)
	}
	if a.Packages > 0 {
		s.voice.announce(onboardQueue)
	}
	return a, nil
}

func (s *Store) adopt(ctx context.Context, tx pgx.Tx) (a Adopted, err error) {
	// A lock that we can take was freed by its node's death. We keep it until the transaction ends, so of several
	// watchers one does the work.
	rows, err := tx.Query(ctx, `SELECT id, pg_try_advisory_xact_lock($1, lock_key) FROM nodes`, lockClass)
	if err != nil {
		return a, err
	}
	var id string
	var dead bool
	if _, err = pgx.ForEachRow(rows, []any{&id, &dead}, func() error {
		if dead {
			a.Nodes = append(a.Nodes, id)
		}
		return nil
	}); err != nil {
		return a, err
	}
	if len(a.Nodes) > 0 {
		if _, err := tx.Exec(ctx, `DELETE FROM nodes WHERE id = ANY($1)`, a.Nodes); err != nil {
			return a, err
		}
	}
	// Orphans: no trigger of this fence is queued, and none is being run by a living node.
	rows, err = tx.Query(ctx, `
		UPDATE vnf_lcm_op_occs o SET fence = o.fence + 1, owner = NULL
		WHERE o.id IN (
			SELECT c.id FROM vnf_lcm_op_occs c
			WHERE c.active AND c.operation_state IN ('STARTING', 'PROCESSING', 'ROLLING_BACK')
			AND (c.id::text, c.fence) NOT IN (
				SELECT j.args ->> 'opOcc', (j.args ->> 'fence')::bigint FROM river_job j
				WHERE j.kind = $1 AND j.args ->> 'opOcc' IS NOT NULL AND j.args ->> 'fence' IS NOT NULL
				AND (j.state IN ('available', 'pending', 'retryable', 'scheduled')
				     OR j.state = 'running' AND j.attempted_by[cardinality(j.attempted_by)] IN (SELECT n.id FROM nodes n)))
			FOR UPDATE SKIP LOCKED)
		RETURNING o.id::text, o.fence`, operationArgs{}.Kind())
	if err != nil {
		return a, err
	}
	type orphan struct {
		id    string
		fence int64
	}
	orphans, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o orphan, err error) {
		err = row.Scan(&o.id, &o.fence)
		return o, err
	})
	if err != nil {
		return a, err
	}
	for _, o := range orphans {
		if err := s.enqueueOperation(ctx, tx, o.id, o.fence); err != nil {
			return a, err
		}
	}
	a.Operations = len(orphans)
	if err := s.hastenCanceled(ctx, tx); err != nil {
		return a, err
	}
	a.Packages, err = s.adoptPackages(ctx, tx)
	return a, err
}

// hastenCanceled makes the triggers due that went to wait at the moment at which their operation was asked to be canceled.
func (s *Store) hastenCanceled(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT id::text FROM vnf_lcm_op_occs WHERE cancel_mode IS NOT NULL`)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.hasten(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends the node's session as a crash would: nothing is handed over. For tests.
func (n *Node) Kill() {
	n.stop()
	n.wg.Wait()
	_ = n.conn.Close(context.Background())
}
