package main

import (
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
)

func secretsCommand() *cobra.Command {
	return group("secrets", "Keys that credentials are sealed under", `  vnfm secrets generate --id 1 > /etc/vnfm/secrets.key
  vnfm secrets rotate --config /etc/vnfm/vnfm.yaml`, secretsGenerate(), secretsRotate())
}

func secretsGenerate() *cobra.Command {
	var id uint32
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Print a fresh key as a line of a key file",
		Long: `Print a fresh key as a line of a key file (secrets.key_file). The file's last line is the
key that new credentials are sealed under; the others still open what they have sealed.
Every node needs the same file. Keep it readable for the server alone (chmod 600).`,
		Example: `  (umask 077; vnfm secrets generate --id 1 > /etc/vnfm/secrets.key)
  vnfm secrets generate --id 2 >> /etc/vnfm/secrets.key   # then restart the nodes, then: vnfm secrets rotate`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			line, err := config.NewKeyLine(id, rand.Reader)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), line)
			return err
		},
	}
	cmd.Flags().Uint32Var(&id, "id", 1, "the key's id: one that the file does not have yet")
	return cmd
}

func secretsRotate() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Seal everything under the current key, so that older keys can be removed",
		Long: `Open everything that is sealed in the database and seal it again under the key file's last
key. Nodes may go on working; they must have been started with the new file. When this has
ended, the older lines can be taken out of the file.`,
		Example: "  vnfm secrets rotate --config /etc/vnfm/vnfm.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := load(file)
			if err != nil {
				return err
			}
			s, err := newServer(cmd.Context(), cfg, log)
			if err != nil {
				return err
			}
			defer s.close()
			return s.store.Rotate(cmd.Context(), func(p store.RotateProgress) {
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%-18s %d of %d sealed anew\n", p.Table, p.Done, p.Total)
			})
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML)")
	return cmd
}
