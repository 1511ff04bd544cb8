package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
)

func configCommand() *cobra.Command {
	return group("config", "Look at the configuration", "  vnfm config print", configPrintCommand())
}

func configPrintCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print every effective value with a comment on each, secrets redacted",
		Long: `Print the configuration as it takes effect: defaults, the file over them, the environment over
both. What is printed can be used as a file, but for the secrets.`,
		Example: `  vnfm config print
  vnfm config print --config /etc/vnfm/vnfm.yaml
  VNFM_LOG_LEVEL=debug vnfm config print`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			return cfg.Print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML)")
	return cmd
}
