package harness

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// Options say what to set up.
type Options struct {
	// Nodes is how many server processes there are; one when 0.
	Nodes int
	// Tags are build tags of the binary.
	Tags []string
	// Durable leaves the database's fsync on.
	Durable bool
	// Keystone has the API ask for tokens of the simulated Keystone; else it asks for nothing.
	Keystone bool
	// VIM configures the simulated OpenStack. NFVOrchestrationURL is filled in.
	VIM vimsim.Config
	// OpenStack, when set, is a real one: none is simulated.
	OpenStack *OpenStack
	// Env are variables ("VNFM_…=…") of all nodes, over those of the harness.
	Env []string
}

// OpenStack is an account of an OpenStack, in the domain Default.
type OpenStack struct {
	AuthURL, Region         string
	User, Password, Project string
}

// Cluster is a set of nodes over one database, beside one OpenStack.
type Cluster struct {
	Sim         *vimsim.Server // nil beside a real OpenStack
	VIM         OpenStack      // the account that VIMs are registered with
	Nodes       []*Node
	DatabaseURL string
	Dir         string // a temporary folder of the cluster's own
}

// New is [Start] for a test: what cannot be set up fails it, all of it is taken down when it ends, and when it has
// failed the ends of the nodes' logs are shown.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // the binary may have to be built, with all that it needs
	defer cancel()
	c, err := Start(ctx, o)
	if err != nil {
		t.Fatalf("set up the cluster: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.Nodes {
				t.Logf("the end of the log of node %d:\n%s", n.Number, n.LogTail(200))
			}
		}
		c.Close()
	})
	return c
}

// Start sets up a cluster and returns when all nodes are ready. It must be closed.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	binary, err := Binary(ctx, o.Tags...)
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if c.DatabaseURL, err = database(ctx, o.Durable); err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	shared.mu.Lock()
	parent := shared.dir
	shared.mu.Unlock()
	if c.Dir, err = os.MkdirTemp(parent, "cluster-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(c.Dir, 0o711); err != nil { //nolint:gosec // the scripts' unprivileged user must pass through it
		return nil, err
	}
	if err := errors.Join(os.Mkdir(c.Temp(), 0o700), os.Chmod(c.Temp(), 0o777|os.ModeSticky)); err != nil { //nolint:gosec // as /tmp is
		return nil, err
	}
	keys := filepath.Join(c.Dir, "keys")
	if err := os.WriteFile(keys, []byte(newKey()), 0o600); err != nil {
		return nil, err
	}
	for n := range max(1, o.Nodes) {
		node, err := newNode(n, binary, c.Dir)
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, node)
	}
	env := []string{
		"TMPDIR=" + c.Temp(), "VNFM_DATABASE_URL=" + c.DatabaseURL, "VNFM_SECRETS_KEY_FILE=" + keys,
		// A python3 in somebody's home, first in the PATH, cannot be run by the unprivileged user of scripts.
		"VNFM_OPENSTACK_PYTHON=/usr/bin/python3",
		// Simulated servers have no SSH to install a cluster through.
		"VNFM_MGMT_DRIVERS=vnflcm_noop=noop,mgmt-drivers-kubernetes=noop",
	}
	if o.OpenStack != nil {
		c.VIM = *o.OpenStack
	} else {
		if err := c.simulate(ctx, o.VIM); err != nil {
			return nil, err
		}
		env = append(env, "VNFM_OPENSTACK_POLL_MIN=20ms", "VNFM_OPENSTACK_POLL_MAX=100ms", "VNFM_OPENSTACK_REQUESTS_PER_SECOND=0")
	}
	if o.Keystone {
		env = append(env, "VNFM_AUTH_MODE=keystone", "VNFM_AUTH_KEYSTONE_AUTH_URL="+c.VIM.AuthURL, "VNFM_AUTH_KEYSTONE_USERNAME="+c.VIM.User,
			"VNFM_AUTH_KEYSTONE_PASSWORD="+c.VIM.Password, "VNFM_AUTH_KEYSTONE_PROJECT_NAME="+c.VIM.Project)
	}
	for _, n := range c.Nodes {
		n.env = append(append(n.env, env...), o.Env...)
		n.env = append(n.env, "VNFM_ENDPOINT_URL="+n.URL)
		if err := n.Start(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// simulate serves a simulated OpenStack, which outlives the context of its start.
func (c *Cluster) simulate(ctx context.Context, config vimsim.Config) (err error) {
	config.NFVOrchestrationURL = c.Nodes[0].URL
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if c.Sim, err = vimsim.Serve(context.WithoutCancel(ctx), "127.0.0.1:0", config, log); err != nil {
		return err
	}
	c.VIM = OpenStack{AuthURL: c.Sim.AuthURL, Region: "RegionOne", User: User, Password: Password, Project: Project}
	return nil
}

// The account of the simulated OpenStack that VIMs are registered with.
const (
	User     = "nfv_user"
	Password = "devstack"
	Project  = "nfv"
)

func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return "1:" + base64.StdEncoding.EncodeToString(key) + "\n"
}

// Close kills the nodes and takes the cloud and the folder down. The database goes with [Cleanup].
func (c *Cluster) Close() {
	for _, n := range c.Nodes {
		n.Kill()
	}
	if c.Sim != nil {
		c.Sim.Close()
	}
	if c.Dir != "" {
		_ = os.RemoveAll(c.Dir)
	}
}

// Temp is the folder in which the nodes make their temporary files: when they are idle it is empty.
func (c *Cluster) Temp() string { return filepath.Join(c.Dir, "tmp") }

// API returns a client of node n.
func (c *Cluster) API(n int) *Client { return NewClient(c.Nodes[n].URL) }

// Logs are the logs of all nodes.
func (c *Cluster) Logs() string {
	var b strings.Builder
	for _, n := range c.Nodes {
		raw, err := os.ReadFile(n.LogPath)
		if err == nil {
			b.Write(raw)
		}
	}
	return b.String()
}

// Notification is a row of the outbox.
type Notification struct {
	ID, Type string
	OpOccID  string // empty for one about an instance
	Seq      int64
	Body     json.RawMessage
}

// Notifications reads an instance's notifications from the database, in the order in which they were made.
func (c *Cluster) Notifications(ctx context.Context, instanceID string) ([]Notification, error) {
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster's database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `SELECT id::text, type, coalesce(op_occ_id::text, ''), seq, body FROM notifications
		WHERE vnf_instance_id = $1::uuid ORDER BY created_at, op_occ_id, seq`, instanceID)
	if err != nil {
		return nil, fmt.Errorf("list the notifications of instance %s: %w", instanceID, err)
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (Notification, error) {
		var n Notification
		return n, r.Scan(&n.ID, &n.Type, &n.OpOccID, &n.Seq, &n.Body)
	})
}

// Await calls ready until it tells true, or an error, or ctx ends.
func Await(ctx context.Context, what string, ready func(ctx context.Context) (bool, error)) error {
	begun := time.Now()
	for {
		ok, err := ready(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("wait until %s: %w", what, err)
		case ok:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		case <-time.After(min(max(time.Since(begun)/20, 20*time.Millisecond), 500*time.Millisecond)): // a long wait is no load
		}
	}
}
