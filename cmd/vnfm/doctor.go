package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/privatepg"
)

func doctorCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything the server needs, and say what to fix",
		Long: `Look at the configuration, the database, the keys, Python, helm, the API and the registered VIMs,
one line each: what was found, and for what is wrong, what to do. It changes nothing, except
that with a private PostgreSQL it must start it (stop the server first).`,
		Example: "  vnfm doctor --config /etc/vnfm/vnfm.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{out: cmd.OutOrStdout()}
			d.examine(cmd.Context(), file)
			if d.ill > 0 {
				return fmt.Errorf("%d of %d checks failed", d.ill, d.checks)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML)")
	return cmd
}

type doctor struct {
	out         io.Writer
	checks, ill int
}

// check shows one finding; advice says what to do when err is not nil.
func (d *doctor) check(what, found string, err error, advice string) bool {
	d.checks++
	if err == nil {
		_, _ = fmt.Fprintf(d.out, "ok    %-14s %s\n", what, found)
		return true
	}
	d.ill++
	_, _ = fmt.Fprintf(d.out, "FAIL  %-14s %v\n      %-14s -> %s\n", what, err, "", advice)
	return false
}

func (d *doctor) examine(ctx context.Context, file string) {
	cfg, log, err := load(file)
	if !d.check("configuration", "read and valid", err, "correct the keys named; vnfm config print shows them all") {
		return
	}
	if cfg.Database.Private() {
		bin, err := privatepg.Find(ctx, 0)
		d.check("PostgreSQL", fmt.Sprintf("private, %d.%d from %s", bin.Major, bin.Minor, bin.Dir), err, "apt-get install postgresql, or set database.url")
	}
	d.python(ctx, cfg)
	if os.Geteuid() == 0 {
		d.check("user data", "scripts run as "+cfg.Openstack.UserDataUser, nil, "")
	} else {
		_, _ = fmt.Fprintf(d.out, "note  %-14s the server is not root: scripts of packages run as its own user and can read its keys; onboard only packages that you trust\n", "user data")
	}
	d.helm(ctx, cfg, log)
	d.api(ctx, cfg)
	s, err := newServer(ctx, cfg, log)
	if !d.check("database", "answers; the schema is up to date; the keys are read", err, "see the message; the server may be running with the same private PostgreSQL: then stop it first") {
		return
	}
	defer s.close()
	d.clock(ctx, s)
	d.vims(ctx, s)
}

func (d *doctor) python(ctx context.Context, cfg *config.Config) {
	python := cfg.Openstack.Python
	if python == "" {
		python = "/usr/bin/python3"
		if _, err := exec.LookPath(python); err != nil {
			python = "python3"
		}
	}
	ask, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ask, python, "-I", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3]); sys.exit(sys.version_info < (3, 8))").Output()
	d.check("Python", python+" "+strings.TrimSpace(string(out)), err, "apt-get install python3 (3.8 or newer), or set openstack.python")
}

// helm looks for helm, which not everybody needs: without a path in the configuration, that there is none is no failure.
func (d *doctor) helm(ctx context.Context, cfg *config.Config, log *slog.Logger) {
	path, version, err := charts(cfg.Kubernetes, log).Version(ctx)
	if err != nil && cfg.Kubernetes.Helm.Binary == "" {
		_, _ = fmt.Fprintf(d.out, "note  %-14s %v\n", "helm", err)
		return
	}
	d.check("helm", path+" "+version, err, "install helm, or correct kubernetes.helm.binary; it is for CNFs that are made of charts")
}

func (d *doctor) api(ctx context.Context, cfg *config.Config) {
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ask, http.MethodGet, cfg.EndpointURL+"/readyz", nil)
	if err != nil {
		d.check("API", "", err, "set endpoint_url to the URL that clients use")
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		_, _ = fmt.Fprintf(d.out, "note  %-14s nothing answers at %s: the server is not running, or endpoint_url is not reachable from here\n", "API", cfg.EndpointURL)
		return
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s/readyz answers %s", cfg.EndpointURL, resp.Status)
	}
	d.check("API", cfg.EndpointURL+" is ready", err, "look into the server's log")
}

// clock compares this machine's time with the database's: leases and timestamps suffer from seconds of difference.
func (d *doctor) clock(ctx context.Context, s *server) {
	var there time.Time
	before := time.Now()
	err := s.store.Pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&there)
	off := there.Sub(before.Add(time.Since(before) / 2)).Round(time.Millisecond)
	if err == nil && off.Abs() > 2*time.Second {
		err = fmt.Errorf("the database's clock is off by %s", off)
	}
	d.check("clock", fmt.Sprintf("off the database's by %s", off), err, "synchronise the clocks (chrony, systemd-timesyncd)")
}

func (d *doctor) vims(ctx context.Context, s *server) {
	list, err := s.vims.List(ctx, lcm.Scope{Admin: true})
	if !d.check("VIMs", fmt.Sprintf("%d registered", len(list)), err, "see the message") {
		return
	}
	for _, v := range list {
		var err error
		if v.Status == lcm.VimUnreachable {
			err = errors.New(v.Name + " at " + v.AuthURL + " was not reachable when it was last looked at")
		}
		d.check("VIM", fmt.Sprintf("%s (%s) at %s: %s", v.Name, v.Type, v.AuthURL, v.Status), err, "look at the VIM, the network, and its credentials (vnfm vim set)")
	}
}
