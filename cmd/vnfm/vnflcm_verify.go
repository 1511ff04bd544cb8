package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/client"
)

// errDiffers ends a command that has found differences, and said so.
var errDiffers = errors.New("there are differences")

func lcmVerify(o *clientOptions) *cobra.Command {
	var recorded, all bool
	cmd := &cobra.Command{
		Use: "verify [<vnf-instance>]", Short: "Compare VNF instances with what their VIMs have of them",
		Long: `Compare what is recorded of a VNF instance with what its VIM has of it, now, and list the
differences, each with what mends it. Nothing is changed.

With --recorded, what was seen when it was last verified: by this command or, where the
server's verify.interval is set, from time to time. With --all instead of an instance, the
instances that were last seen to differ, or could not be verified.

The exit status is 0 when there is no difference, 3 when there is one, 1 when it could not be
told, and 2 for a wrong command line. With --all it is 3 when at least one instance differs, and
1 when none does and at least one could not be verified.`,
		Example: `  vnfm vnflcm verify ID
  vnfm vnflcm verify ID -f json
  vnfm vnflcm verify ID -f value -c Kind -c ID
  vnfm vnflcm verify ID --recorded
  vnfm vnflcm verify --all`,
		Args: cobra.MaximumNArgs(1),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return fmt.Errorf("either a VNF instance or --all is wanted: %w", client.ErrUsage)
			}
			if all && recorded {
				return fmt.Errorf("--recorded is for one VNF instance: --all lists nothing else: %w", client.ErrUsage)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&recorded, "recorded", false, "what was last seen, without asking the VIM")
	cmd.Flags().BoolVar(&all, "all", false, "list the instances that were last seen to differ, or could not be verified")
	out := addOutput(cmd, false)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		if all {
			list, err := c.Drifting(ctx)
			if err == nil {
				err = out.write(cmd, client.ListTable(list, client.DriftingList()))
			}
			if err != nil {
				return err
			}
			return concludeAll(list)
		}
		look := c.Verify
		if recorded {
			look = c.Verified
		}
		v, err := look(ctx, args[0])
		if err != nil {
			return err
		}
		if err := out.write(cmd, client.ListTable(client.Differences(v), client.DifferenceList())); err != nil {
			return err
		}
		return conclude(cmd, v)
	})
	return cmd
}

// concludeAll tells of the instances that are not known to be what is recorded of them whether one differs.
func concludeAll(list []*client.Object) error {
	switch {
	case len(list) == 0:
		return nil
	case slices.ContainsFunc(list, func(v *client.Object) bool { return v.Text("result") == "DIFFERS" }):
		return errDiffers
	default:
		return fmt.Errorf("%d VNF instances could not be verified", len(list))
	}
}

// conclude says beside the list what came of a verification.
func conclude(cmd *cobra.Command, v *client.Object) error {
	aside := func(format string, args ...any) {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
	}
	id, at := v.Text("vnfInstanceId"), v.Text("verifiedAt")
	if v.Values["changedSince"] == true {
		aside("VNF instance %s has been changed since it was verified (%s).", id, at)
	}
	switch v.Text("result") {
	case "SAME":
		aside("VNF instance %s is what is recorded of it (%s).", id, at)
		return nil
	case "UNVERIFIED":
		return fmt.Errorf("VNF instance %s could not be verified: %s", id, v.Text("problem"))
	}
	if since := v.Text("differsSince"); since != "" {
		aside("VNF instance %s is not what is recorded of it, as was first seen at %s.", id, since)
	}
	if heal := client.HealArguments(v); heal != nil {
		aside("To mend it: vnfm vnflcm heal %s", strings.Join(heal, " "))
	}
	return errDiffers
}
