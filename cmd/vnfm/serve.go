package main

import (
	"context"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	var file, roles string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the VNF manager: the API, the workers, or both",
		Long: `Run the VNF manager. As many as you like may run against the same database; what a node
that dies was doing is taken over by the others within seconds.

Without database.url a private PostgreSQL is run, made from the server binaries that the
machine has. SIGTERM and SIGINT end the server: running work is handed over first.`,
		Example: `  vnfm serve
  vnfm serve --config /etc/vnfm/vnfm.yaml
  VNFM_DATABASE_URL=postgres://vnfm@db/vnfm vnfm serve --roles worker`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := load(file)
			if err != nil {
				return err
			}
			if roles != "" {
				cfg.Roles = strings.Split(roles, ",")
				if err := cfg.Validate(); err != nil {
					return err
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			s, err := newServer(ctx, cfg, log)
			if err != nil {
				return err
			}
			defer s.close()
			context.AfterFunc(ctx, func() { log.Info("stopping: running work is handed over") })
			return s.run(ctx, nil)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML); every key also as VNFM_… in the environment")
	cmd.Flags().StringVar(&roles, "roles", "", "what this process does: api, worker or api,worker")
	return cmd
}
