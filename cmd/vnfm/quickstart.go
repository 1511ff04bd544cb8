package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/quickstart"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

func quickstartCommand() *cobra.Command {
	var keep bool
	var dir string
	cmd := &cobra.Command{
		Use:   "quickstart",
		Short: "See a VNF live and die: private PostgreSQL, simulated OpenStack, server, one whole lifecycle",
		Long: `Start a private PostgreSQL, a simulated OpenStack and the server, and drive a sample VNF
(a Kubernetes cluster of 3 masters and 2 workers) through its life over the REST API.
Nothing is left behind, unless --keep leaves all of it running for you to play with.`,
		Example: `  vnfm quickstart
  vnfm quickstart --keep`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runQuickstart(ctx, cmd.OutOrStdout(), dir, keep)
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "instantiate and leave everything running until Ctrl-C")
	cmd.Flags().StringVar(&dir, "dir", "", "folder for the private PostgreSQL (default: a temporary one, removed at the end)")
	return cmd
}

func runQuickstart(ctx context.Context, out io.Writer, dir string, keep bool) error {
	begun := time.Now()
	screen := &quickstart.Screen{Out: out, Live: isTerminal(out), Width: 39}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	_, _ = fmt.Fprintln(out, "vnfm quickstart: one VNF, from its package to its end")

	screen.Begin("start PostgreSQL, OpenStack, the server")
	q, err := startQuickstart(ctx, dir, keep, log)
	if err != nil {
		screen.Fail(err)
		return err
	}
	defer q.close()
	screen.Done(fmt.Sprintf("API on %s, OpenStack on %s", q.api, q.sim.AuthURL))

	zip, err := deploy.Package("kubernetes-cluster")
	if err != nil {
		return err
	}
	result, err := quickstart.Run(ctx, quickstart.Options{
		API: q.api, Package: zip, Keep: keep, Screen: screen, Left: q.left,
		VIM: map[string]any{
			"name": "VIM0", "type": "openstack", "is_default": true, "auth_url": q.sim.AuthURL,
			"vim_project": map[string]any{"name": "nfv", "project_domain_name": "Default"},
			"auth_cred":   map[string]any{"username": "nfv_user", "password": "devstack", "user_domain_name": "Default", "cert_verify": "True"},
		},
		Request: deploy.InstantiateRequest("kubernetes-cluster", "complex"),
	})
	if err != nil {
		return err
	}
	if !keep {
		_, _ = fmt.Fprintf(out, "Done: a package onboarded, a VNF of %d VMs instantiated, shown, terminated and deleted in %.1f seconds.\n", result.Vnfcs, time.Since(begun).Seconds())
		return nil
	}
	_, _ = fmt.Fprintf(out, `Instantiated in %.1f seconds. All of it runs on until Ctrl-C. Talk to it:
  export OS_AUTH_TYPE=none OS_ENDPOINT=%[2]s
  openstack vnflcm show %[3]s         (or: vnfm vnflcm show %[3]s)
  openstack vnflcm terminate %[3]s --termination-type FORCEFUL
  curl %[2]s/vnflcm/v1/vnf_lcm_op_occs
`, time.Since(begun).Seconds(), q.api, result.InstanceID)
	select {
	case <-ctx.Done():
		return nil
	case err := <-q.ended:
		return err
	}
}

// sandbox is what a quickstart runs.
type sandbox struct {
	api    string
	sim    *vimsim.Server
	before map[string]int // what the cloud held at the beginning
	server *server
	cancel context.CancelFunc
	ended  chan error
	remove string // a temporary folder
}

func startQuickstart(ctx context.Context, dir string, keep bool, log *slog.Logger) (_ *sandbox, err error) {
	q := &sandbox{ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			q.close()
		}
	}()
	if dir == "" {
		if dir, err = os.MkdirTemp("", "vnfm-quickstart-"); err != nil {
			return nil, err
		}
		q.remove = dir
		if err = os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the database's user must pass through it
			return nil, err
		}
	}
	cfg, err := config.Load("", append(os.Environ(),
		"VNFM_DATABASE_PRIVATE_DIR="+filepath.Join(dir, "postgres"), "VNFM_SECRETS_KEY_FILE="+filepath.Join(dir, "keys"), "VNFM_ENDPOINT_URL="))
	if err != nil {
		return nil, err
	}
	if !keep && os.Getenv("VNFM_LISTEN") == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen) // find the port, so that links are right
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", cfg.Listen, err)
	}
	cfg.Listen = ln.Addr().String()
	_ = ln.Close()
	q.api = "http://" + cfg.Listen
	cfg.EndpointURL = q.api
	// Five VMs on a real cloud take a while; a little latency lets a person watch.
	q.sim, err = vimsim.Serve(ctx, "127.0.0.1:0", vimsim.Config{
		NFVOrchestrationURL: q.api, Latency: map[string]time.Duration{"OS::Nova::Server": 400 * time.Millisecond, "OS::Neutron::Port": 50 * time.Millisecond},
	}, log)
	if err != nil {
		return nil, err
	}
	q.before = q.sim.Cloud.State().Counts
	if q.server, err = newServer(ctx, cfg, log); err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	q.cancel = cancel
	up := make(chan struct{})
	go func() { q.ended <- q.server.run(run, func(net.Addr) { close(up) }) }()
	select {
	case <-up:
		return q, nil
	case err := <-q.ended:
		q.cancel = nil
		return nil, fmt.Errorf("the server does not start: %w", err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// left words what there is in the simulated cloud that was not there at the beginning.
func (q *sandbox) left() string {
	var more []string
	for typ, n := range q.sim.Cloud.State().Counts {
		if n > q.before[typ] && typ != "tokens" && typ != "deleted_stacks" {
			more = append(more, fmt.Sprintf("%d %s", n-q.before[typ], typ))
		}
	}
	slices.Sort(more)
	return strings.Join(more, ", ")
}

func (q *sandbox) close() {
	if q.cancel != nil {
		q.cancel()
		<-q.ended //nolint:errcheck // the drive has said what went wrong
	}
	if q.server != nil {
		q.server.close()
	}
	if q.sim != nil {
		q.sim.Close()
	}
	if q.remove != "" {
		_ = os.RemoveAll(q.remove)
	}
}

// isTerminal tells whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
