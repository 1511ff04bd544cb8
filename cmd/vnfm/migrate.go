package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/privatepg"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
)

func migrateCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date and exit",
		Long: `Bring the schema of the configured database up to date. The server does so by itself unless
database.migrate is off. Several may run at once: one works, the others wait for it.`,
		Example: `  vnfm migrate --config /etc/vnfm/vnfm.yaml
  VNFM_DATABASE_URL=postgres://vnfm@db/vnfm VNFM_SECRETS_KEY_FILE=/etc/vnfm/keys vnfm migrate`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, log, err := load(file)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			url := cfg.Database.URL.Reveal()
			if cfg.Database.Private() {
				pg, err := privatepg.Start(ctx, privatepg.Options{Dir: cfg.Database.PrivateDir, Log: log})
				if err != nil {
					return err
				}
				defer func() {
					end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
					defer cancel()
					err = errors.Join(err, pg.Stop(end))
				}()
				url = pg.URL()
			}
			if err := store.Migrate(ctx, url, log); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "The schema is up to date.")
			return err
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML)")
	return cmd
}
