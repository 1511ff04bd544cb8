package main

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

func vimsimCommand() *cobra.Command {
	var listen, nfvo string
	var latency map[string]string
	cmd := &cobra.Command{
		Use:   "vimsim",
		Short: "Run the OpenStack simulator alone, for integration tests of VNF packages without a cloud",
		Long: `Run a simulated OpenStack (Keystone, Glance, Heat, Nova, Neutron, Cinder) on a loopback
address. What it holds can be seen and asserted on at /vimsim/state; faults are set at
/vimsim/faults, latencies by resource type with --latency or at /vimsim/latency.`,
		Example: `  vnfm vimsim --listen 127.0.0.1:5000
  vnfm vimsim --latency OS::Nova::Server=2s --latency '*=100ms'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg := vimsim.Config{NFVOrchestrationURL: nfvo, Latency: map[string]time.Duration{}}
			for typ, text := range latency {
				d, err := time.ParseDuration(text)
				if err != nil {
					return fmt.Errorf("--latency %s=%s: %w", typ, text, err)
				}
				cfg.Latency[typ] = d
			}
			_, log, err := load("")
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			s, err := vimsim.Serve(ctx, listen, cfg, log)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), `The simulated OpenStack answers at %s
  export OS_AUTH_TYPE=password OS_AUTH_URL=%s OS_USERNAME=nfv_user OS_PASSWORD=devstack OS_PROJECT_NAME=nfv OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default
What it holds: %s/vimsim/state
`, s.AuthURL, s.AuthURL, s.URL)
			defer s.Close()
			select {
			case <-ctx.Done():
				return nil
			case <-s.Done():
				return errors.New("the simulator has ended by itself; its log says why")
			}
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:5000", "loopback address and port")
	cmd.Flags().StringVar(&nfvo, "nfv-orchestration-url", "", "URL of a VNF manager, put into Keystone's catalogue for python-tackerclient")
	cmd.Flags().StringToStringVar(&latency, "latency", nil, "how long a resource of a type takes to be made, such as OS::Nova::Server=2s; '*' for all")
	return cmd
}
