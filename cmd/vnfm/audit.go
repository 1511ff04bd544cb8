package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/client"
)

func auditCommand(o *clientOptions) *cobra.Command {
	cmd := group("audit", "Who did what, and to what", "  vnfm audit list\n  vnfm audit list --filter '(eq,vnfInstanceId,ID)'", auditList(o))
	o.addConnection(cmd, false)
	return cmd
}

func auditList(o *clientOptions) *cobra.Command {
	var filter string
	cmd := &cobra.Command{
		Use: "list", Short: "List the audit trail",
		Long: `List every request that changed something, and every one that was to and was refused, oldest
first. Administrators see all, operators what was done in their project.`,
		Example: "  vnfm audit list --filter '(eq,vnfInstanceId,ID);(gte,time,2026-01-31T00:00:00Z)' -f json",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&filter, "filter", "", "attribute-based filter")
	out := addOutput(cmd, false)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) error {
		list, err := c.AuditEvents(ctx, filter)
		if err != nil {
			return err
		}
		return out.write(cmd, client.ListTable(list, client.AuditList()))
	})
	return cmd
}
