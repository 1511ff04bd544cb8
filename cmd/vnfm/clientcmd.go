package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/seed-f1a0ccf1/vnfm/internal/client"
)

// clientOptions are the options that all client commands have: where the API is and who we are.
type clientOptions struct {
	auth client.Auth
}

// connection lists the options, each with its variable of the environment.
func (o *clientOptions) connection() []struct {
	flag, env, help string
	into            *string
} {
	a := &o.auth
	return []struct {
		flag, env, help string
		into            *string
	}{
		{"os-auth-type", "OS_AUTH_TYPE", "none, password, http_basic or admin_token (password when --os-auth-url is given, else none)", &a.Type},
		{"os-endpoint", "OS_ENDPOINT", "base URL of the API (" + client.DefaultEndpoint + " with type none)", &a.Endpoint},
		{"os-token", "OS_TOKEN", "token for type admin_token", &a.Token},
		{"os-auth-url", "OS_AUTH_URL", "Keystone's URL", &a.AuthURL},
		{"os-username", "OS_USERNAME", "user name", &a.Username},
		{"os-user-id", "OS_USER_ID", "user id", &a.UserID},
		{"os-password", "OS_PASSWORD", "password", &a.Password},
		{"os-project-name", "OS_PROJECT_NAME", "project name", &a.ProjectName},
		{"os-project-id", "OS_PROJECT_ID", "project id", &a.ProjectID},
		{"os-user-domain-name", "OS_USER_DOMAIN_NAME", "domain of the user", &a.UserDomainName},
		{"os-user-domain-id", "OS_USER_DOMAIN_ID", "id of the user's domain", &a.UserDomainID},
		{"os-project-domain-name", "OS_PROJECT_DOMAIN_NAME", "domain of the project", &a.ProjectDomainName},
		{"os-project-domain-id", "OS_PROJECT_DOMAIN_ID", "id of the project's domain", &a.ProjectDomainID},
		{"os-default-domain", "OS_DEFAULT_DOMAIN", "id of the domain where none is given (default)", &a.DefaultDomain},
		{"os-region-name", "OS_REGION_NAME", "region of the endpoint in the catalog", &a.Region},
		{"os-interface", "OS_INTERFACE", "public, internal or admin endpoint (public)", &a.Interface},
		{"os-cacert", "OS_CACERT", "PEM file of CAs to trust", &a.CACert},
		{"os-cert", "OS_CERT", "PEM file of our certificate", &a.Cert},
		{"os-key", "OS_KEY", "PEM file of its key", &a.Key},
		{"os-tacker-api-version", "OS_TACKER_API_VERSION", "major version of the vnflcm API, 1 or 2 (1)", &a.APIVersion},
	}
}

// addConnection adds the options to a command and all below it. On the root they are hidden: they may stand before the
// command's name, and they are none of the server's business.
func (o *clientOptions) addConnection(cmd *cobra.Command, hidden bool) {
	fs := cmd.PersistentFlags()
	for _, c := range o.connection() {
		fs.StringVar(c.into, c.flag, "", c.help+" [env "+c.env+"]")
	}
	fs.BoolVar(&o.auth.Insecure, "insecure", false, "do not check the server's certificate")
	if hidden {
		fs.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	}
}

// connect makes the client. What no option gives comes from the environment.
func (o *clientOptions) connect() (*client.Client, error) {
	for _, c := range o.connection() {
		if *c.into == "" {
			*c.into = os.Getenv(c.env)
		}
	}
	c, err := client.New(o.auth)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// call is what a client command does.
type call func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error

// runs makes the RunE of a client command: it connects, and ends the call on Ctrl-C.
func (o *clientOptions) runs(f call) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := o.connect()
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return f(ctx, c, cmd, args)
	}
}

// output are the format options of one command.
type output struct {
	client.FormatOptions
	asc bool
}

// addOutput adds the format options of a list, or of the show of a single resource.
func addOutput(cmd *cobra.Command, single bool) *output {
	o := &output{}
	fs := cmd.Flags()
	fs.StringVarP(&o.Format, "format", "f", "table", "output format: "+strings.Join(client.Formats(single), ", "))
	fs.StringArrayVarP(&o.Columns, "column", "c", nil, "column to show, by its label (may be repeated)")
	fs.IntVar(&o.MaxWidth, "max-width", 0, "width of a table at most [env CLIFF_MAX_TERM_WIDTH]")
	fs.BoolVar(&o.FitWidth, "fit-width", false, "fit a table to the terminal [env CLIFF_FIT_WIDTH=1]")
	fs.BoolVar(&o.PrintEmpty, "print-empty", false, "print the header of an empty list")
	fs.BoolVar(&o.NoIndent, "noindent", false, "json in one line")
	if single {
		fs.StringVar(&o.Prefix, "prefix", "", "prefix of shell variables")
	} else {
		fs.StringVar(&o.Quote, "quote", "nonnumeric", "what csv quotes: all, minimal, none, nonnumeric")
		fs.StringArrayVar(&o.SortColumns, "sort-column", nil, "column to sort by (may be repeated)")
		fs.BoolVar(&o.asc, "sort-ascending", false, "sort in ascending order")
		fs.BoolVar(&o.SortDescending, "sort-descending", false, "sort in descending order")
		cmd.MarkFlagsMutuallyExclusive("sort-ascending", "sort-descending")
	}
	inner := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := oneOf("-f/--format", o.Format, client.Formats(single)...); err != nil {
			return err
		}
		if !single {
			if err := oneOf("--quote", o.Quote, "all", "minimal", "none", "nonnumeric"); err != nil {
				return err
			}
		}
		if inner != nil {
			return inner(cmd, args)
		}
		return nil
	}
	return o
}

// write writes a table to the command's output.
func (o *output) write(cmd *cobra.Command, t client.Table) error {
	opts := o.FormatOptions
	if n, err := strconv.Atoi(os.Getenv("CLIFF_MAX_TERM_WIDTH")); err == nil && opts.MaxWidth == 0 {
		opts.MaxWidth = n
	}
	if os.Getenv("CLIFF_FIT_WIDTH") == "1" {
		opts.FitWidth = true
	}
	opts.TermWidth = terminalWidth(cmd.OutOrStdout())
	return client.Format(cmd.OutOrStdout(), t, opts)
}

// oneOf refuses a value that is none of the choices.
func oneOf(name, value string, choices ...string) error {
	for _, c := range choices {
		if c == value {
			return nil
		}
	}
	return fmt.Errorf("argument %s: invalid choice: %q (choose from %s): %w", name, value, strings.Join(choices, ", "), client.ErrUsage)
}

// terminalWidth returns the width of the terminal that w is, 0 when it is none.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(ws.Col)
}

// waiting are the options of commands that can wait for what they started.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func addWait(cmd *cobra.Command, what string) *waiting {
	w := &waiting{}
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until "+what+", showing its progress")
	cmd.Flags().DurationVar(&w.timeout, "wait-timeout", 0, "longest wait, such as 15m (0: no limit)")
	return w
}

// bound limits a context to the longest wait.
func (w *waiting) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, w.timeout, fmt.Errorf("not done after %s", w.timeout))
}

func progress(cmd *cobra.Command) client.Progress {
	w := cmd.ErrOrStderr()
	return client.NewProgress(w, isTerminal(w) && os.Getenv("TERM") != "dumb", terminalWidth(w))
}

// watch waits for an accepted operation when that is wanted. Success is COMPLETED or a state in want.
func (w *waiting) watch(ctx context.Context, c *client.Client, cmd *cobra.Command, a client.Accepted, want ...string) error {
	if !w.wait {
		return nil
	}
	ctx, cancel := w.bound(ctx)
	defer cancel()
	id, err := c.FindOpOcc(ctx, a)
	if err != nil {
		return err
	}
	return watchOp(ctx, c, cmd, id, want...)
}

// watchOp waits for an operation occurrence and says how it ended.
func watchOp(ctx context.Context, c *client.Client, cmd *cobra.Command, id string, want ...string) error {
	o, err := c.WaitOpOcc(ctx, id, progress(cmd), want...)
	if err != nil {
		return err
	}
	return say(cmd, "LCM operation %s is %s", id, o.Text("operationState"))
}

func say(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// keyValues reads k=v pairs into an object; nil when there are none.
func keyValues(pairs []string) (*client.Object, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	o := client.NewObject()
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("Expected 'key=value' type, but got: %s: %w", p, client.ErrUsage)
		}
		o.Set(k, v)
	}
	return o, nil
}

// deleteEach deletes resources one by one, goes on after a failure, and reports in the way of `vnflcm delete`.
func deleteEach(cmd *cobra.Command, ids []string, kind, plural, one, all string, del func(id string) error) error {
	failed := 0
	for _, id := range ids {
		if err := del(id); err != nil {
			if errors.Is(err, context.Canceled) {
				return err
			}
			failed++
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "Failed to delete %s with ID '%s': %v\n", kind, id, err)
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("Failed to delete %d of %d %s.", failed, len(ids), plural)
	case len(ids) > 1:
		return say(cmd, "%s", all)
	}
	return say(cmd, one, ids[0])
}

// deleteAll does so in the way of `vim delete`: one message for all.
func deleteAll(cmd *cobra.Command, ids []string, kind, quoted string, del func(id string) error) error {
	var done []string
	failures := ""
	for _, id := range ids {
		if err := del(id); err != nil {
			if errors.Is(err, context.Canceled) {
				return err
			}
			failures += fmt.Sprintf("\n Cannot delete %s: %v", id, err)
			continue
		}
		done = append(done, id)
	}
	if failures == "" {
		return say(cmd, "All specified %s(s) deleted successfully", kind)
	}
	msg := ""
	if len(done) > 0 {
		msg = fmt.Sprintf("Successfully deleted %s(s): %s", kind, strings.Join(done, ", "))
	}
	return errors.New(msg + fmt.Sprintf("\n\nUnable to delete the below %s(s):", quoted) + failures)
}
