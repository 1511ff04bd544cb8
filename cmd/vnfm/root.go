package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/client"
)

// Exit codes: the first three as python-openstackclient has them.
const (
	exitOK      = 0
	exitError   = 1
	exitUsage   = 2
	exitDiffers = 3 // of a comparison that has found differences
)

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	began := false
	markBegin(root, &began)
	root.SetArgs(expandArgs(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if !began || errors.Is(err, client.ErrUsage) {
		_, _ = fmt.Fprintf(stderr, "%s: error: %s\nSee: %s --help\n", cmd.CommandPath(), strings.TrimSuffix(err.Error(), ": "+client.ErrUsage.Error()), cmd.CommandPath())
		return exitUsage
	}
	if errors.Is(err, errDiffers) {
		return exitDiffers
	}
	if !errors.Is(err, errSaid) {
		_, _ = fmt.Fprintln(stderr, err)
	}
	return exitError
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "vnfm",
		Short: "ETSI SOL003 VNF manager",
		Long: `vnfm manages the life of virtual network functions over OpenStack and Kubernetes, with the
REST interfaces of ETSI GS NFV-SOL 003. One program is the server, its administration and
its client; the client's commands are those of python-tackerclient.`,
		Example: `  vnfm quickstart
  vnfm serve --config /etc/vnfm/vnfm.yaml
  vnfm vnflcm list`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          groupRun,
	}
	opts := &clientOptions{}
	opts.addConnection(root, true)
	root.AddCommand(
		serveCommand(),
		quickstartCommand(),
		vimsimCommand(),
		sampleCommand(),
		migrateCommand(),
		configCommand(),
		secretsCommand(),
		doctorCommand(),
		versionCommand(),
		vnflcmCommand(opts),
		vnfCommand(opts),
		vimCommand(opts),
		auditCommand(opts),
	)
	return root
}

// group makes a command that only holds others.
func group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: groupRun}
	cmd.AddCommand(subs...)
	return cmd
}

func groupRun(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return fmt.Errorf("%q is no command%s: %w", args[0], hint, client.ErrUsage)
}

// markBegin has every command note that it was reached: errors before that are about how it was called.
func markBegin(cmd *cobra.Command, began *bool) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			*began = true
			return inner(c, args)
		}
	}
	for _, sub := range cmd.Commands() {
		markBegin(sub, began)
	}
}

// manyValues are the options that take all values up to the next option.
var manyValues = map[string]bool{"--vnfc-instance": true}

// expandArgs repeats such an option before each of its values.
func expandArgs(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if !manyValues[args[i]] {
			out = append(out, args[i])
			continue
		}
		opt := args[i]
		if i+1 >= len(args) || strings.HasPrefix(args[i+1], "-") {
			out = append(out, opt)
		}
		for i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			out = append(out, opt, args[i])
		}
	}
	return out
}
