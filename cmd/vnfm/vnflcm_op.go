package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/client"
)

func opCommand(o *clientOptions) *cobra.Command {
	return group("op", "Lifecycle operation occurrences", "  vnfm vnflcm op list\n  vnfm vnflcm op watch ID",
		opList(o), opShow(o), opWatch(o),
		opTask(o, "rollback", "Roll a failed operation back", "Rollback request for LCM operation %s has been accepted", "ROLLED_BACK"),
		opTask(o, "retry", "Retry a failed operation", "Retry request for LCM operation %s has been accepted", "COMPLETED"),
		opFail(o), opCancel(o))
}

func opList(o *clientOptions) *cobra.Command {
	var q client.OpOccQuery
	cmd := &cobra.Command{Use: "list", Short: "List operation occurrences", Example: "  vnfm vnflcm op list --filter '(eq,operationState,FAILED_TEMP)'", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&q.Filter, "filter", "", "attribute-based filter")
	cmd.Flags().StringVar(&q.Fields, "fields", "", "complex attributes to include")
	cmd.Flags().StringVar(&q.ExcludeFields, "exclude-fields", "", "complex attributes, or columns by their label, to leave out")
	cmd.MarkFlagsMutuallyExclusive("fields", "exclude-fields")
	out := addOutput(cmd, false)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) error {
		list, err := c.OpOccs(ctx, q)
		if err != nil {
			return err
		}
		return out.write(cmd, client.ListTable(list, client.OpOccList(strings.Split(q.ExcludeFields, ","))))
	})
	return cmd
}

func opShow(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "show <vnf-lcm-op-occ-id>", Short: "Show an operation occurrence", Example: "  vnfm vnflcm op show ID -c 'Operation State' -c Error", Args: cobra.ExactArgs(1)}
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		op, err := c.OpOcc(ctx, args[0])
		if err != nil {
			return err
		}
		return out.write(cmd, client.ShowTable(op, client.OpOccShown()))
	})
	return cmd
}

func opWatch(o *clientOptions) *cobra.Command {
	w := &waiting{wait: true}
	cmd := &cobra.Command{
		Use:   "watch <vnf-lcm-op-occ-id>",
		Short: "Watch an operation until it rests",
		Long: `Watch an operation until it rests. On a terminal one line is kept up to date, elsewhere each
change is a line, on standard error. The exit code is 0 when the operation is COMPLETED or
ROLLED_BACK, and 1 when it is FAILED_TEMP or FAILED.`,
		Example: "  vnfm vnflcm op watch ID",
		Args:    cobra.ExactArgs(1),
		RunE: o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
			ctx, cancel := w.bound(ctx)
			defer cancel()
			return watchOp(ctx, c, cmd, args[0], "ROLLED_BACK")
		}),
	}
	cmd.Flags().DurationVar(&w.timeout, "wait-timeout", 0, "longest wait, such as 15m (0: no limit)")
	return cmd
}

func opTask(o *clientOptions, task, short, accepted, want string) *cobra.Command {
	cmd := &cobra.Command{Use: task + " <vnf-lcm-op-occ-id>", Short: short, Example: "  vnfm vnflcm op " + task + " ID --wait", Args: cobra.ExactArgs(1)}
	w := addWait(cmd, "the operation rests")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		if err := c.OpTask(ctx, args[0], task); err != nil {
			return err
		}
		if err := say(cmd, accepted, args[0]); err != nil {
			return err
		}
		return w.watch(ctx, c, cmd, client.Accepted{OpOccID: args[0]}, want)
	})
	return cmd
}

func opFail(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "fail <vnf-lcm-op-occ-id>", Short: "Mark a failed operation as finally failed", Example: "  vnfm vnflcm op fail ID", Args: cobra.ExactArgs(1)}
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		op, err := c.FailOp(ctx, args[0])
		if err != nil {
			return err
		}
		return out.write(cmd, client.ShowTable(op, client.OpOccFailed()))
	})
	return cmd
}

func opCancel(o *clientOptions) *cobra.Command {
	var mode string
	cmd := &cobra.Command{
		Use: "cancel <vnf-lcm-op-occ-id>", Short: "Cancel a running operation", Example: "  vnfm vnflcm op cancel ID --cancel-mode FORCEFUL --wait", Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return oneOf("--cancel-mode", mode, "GRACEFUL", "FORCEFUL") },
	}
	cmd.Flags().StringVar(&mode, "cancel-mode", "GRACEFUL", "GRACEFUL or FORCEFUL")
	w := addWait(cmd, "the operation rests")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		if err := c.CancelOp(ctx, args[0], mode); err != nil {
			return err
		}
		if err := say(cmd, "Cancel request for LCM operation %s has been accepted", args[0]); err != nil {
			return err
		}
		// A canceled operation rests as FAILED_TEMP, or as ROLLED_BACK from STARTING.
		return w.watch(ctx, c, cmd, client.Accepted{OpOccID: args[0]}, "FAILED_TEMP", "ROLLED_BACK", "FAILED")
	})
	return cmd
}

func subscCommand(o *clientOptions) *cobra.Command {
	create := &cobra.Command{Use: "create <param-file>", Short: "Subscribe to notifications", Example: "  vnfm vnflcm subsc create subscription.json", Args: cobra.ExactArgs(1)}
	createOut := addOutput(create, true)
	create.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		body, err := client.ReadParamFile(args[0])
		if err != nil {
			return err
		}
		s, err := c.CreateSubscription(ctx, body)
		if err != nil {
			return err
		}
		return createOut.write(cmd, client.ShowTable(s, client.SubscriptionShown()))
	})

	var filter string
	list := &cobra.Command{Use: "list", Short: "List subscriptions", Example: "  vnfm vnflcm subsc list", Args: cobra.NoArgs}
	list.Flags().StringVar(&filter, "filter", "", "attribute-based filter")
	listOut := addOutput(list, false)
	list.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) error {
		all, err := c.Subscriptions(ctx, filter)
		if err != nil {
			return err
		}
		return listOut.write(cmd, client.ListTable(all, client.SubscriptionList()))
	})

	show := &cobra.Command{Use: "show <subscription-id>", Short: "Show a subscription", Example: "  vnfm vnflcm subsc show ID", Args: cobra.ExactArgs(1)}
	showOut := addOutput(show, true)
	show.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		s, err := c.Subscription(ctx, args[0])
		if err != nil {
			return err
		}
		return showOut.write(cmd, client.ShowTable(s, client.SubscriptionShown()))
	})

	del := &cobra.Command{
		Use: "delete <subscription-id>...", Short: "End subscriptions", Example: "  vnfm vnflcm subsc delete ID", Args: cobra.MinimumNArgs(1),
		RunE: o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
			return deleteEach(cmd, args, "Lccn Subscription", "Lccn Subscriptions", "Lccn Subscription '%s' is deleted successfully",
				"All specified Lccn Subscriptions are deleted successfully", func(id string) error { return c.DeleteSubscription(ctx, id) })
		}),
	}
	return group("subsc", "Subscriptions to notifications of lifecycle operations", "  vnfm vnflcm subsc list", create, list, show, del)
}
