// Kubernetes is the command line of the Kubernetes lab; README.md beside it tells what for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

const usage = `usage: go run ./test/labs/kubernetes COMMAND

  build                      build the control plane and helm, unless they are built already
  up [-port N] [-nodes N] [-apiserver FLAG]...
                             start it, unless it is up already; prints its kubeconfig's path
  down                       end it and remove its state
  status                     tell which daemons run; exit status 1 unless all do
  kubectl ARGUMENTS          kubectl, as the administrator
  helm ARGUMENTS             helm, as the administrator
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab-kubernetes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("what is to be done?\n" + usage)
	}
	home, err := lab.Home()
	if err != nil {
		return err
	}
	dir := filepath.Join(home, lab.Running)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	switch args[0] {
	case "build":
		if _, err := lab.Binary(ctx, log); err != nil {
			return err
		}
		_, err := lab.Helm(ctx, log)
		return err
	case "helm":
		return helm(ctx, dir, log, args[1:])
	case "up":
		return up(ctx, dir, log, args[1:])
	case "down":
		return lab.Down(ctx, dir)
	case "status":
		return status(dir)
	case "kubectl":
		return kubectl(ctx, dir, log, args[1:])
	}
	return fmt.Errorf("%s: no such command\n%s", args[0], usage)
}

// list is a flag that may be given several times.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, " ") }

// Set implements flag.Value.
func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}

func up(ctx context.Context, dir string, log *slog.Logger, args []string) error {
	o := lab.Options{Dir: dir, Stay: true, Log: log}
	var more list
	set := flag.NewFlagSet("up", flag.ContinueOnError)
	set.IntVar(&o.Port, "port", 0, "the API server's `port`; any free one when 0")
	set.IntVar(&o.Nodes, "nodes", 2, "how many nodes are simulated")
	set.Var(&more, "apiserver", "a `flag` of kube-apiserver besides the lab's; may be given several times")
	if err := set.Parse(args); err != nil {
		return err
	}
	o.APIServer = more
	p, err := lab.Join(ctx, dir)
	if err == nil {
		log.Info("it is up already", "url", p.URL)
		fmt.Println(p.Kubeconfig)
		return nil
	}
	if !errors.Is(err, lab.ErrNotUp) {
		return err
	}
	if err := lab.Down(ctx, dir); err != nil { // what is left of one that died in part
		return err
	}
	if p, err = lab.Up(ctx, o); err != nil {
		return err
	}
	fmt.Println(p.Kubeconfig)
	return nil
}

func status(dir string) error {
	all, err := lab.Statuses(dir)
	if err != nil {
		return err
	}
	dead := 0
	for _, s := range all {
		said := "runs"
		if !s.Running {
			said = "DEAD"
			dead++
		}
		fmt.Printf("%-24s %s  pid %-8d %s\n", s.Name, said, s.PID, s.Log)
	}
	if dead > 0 {
		return fmt.Errorf("%d of %d daemons do not run; their logs say why, and up starts anew", dead, len(all))
	}
	return nil
}

// helm becomes helm.
func helm(ctx context.Context, dir string, log *slog.Logger, args []string) error {
	p, err := lab.Join(ctx, dir)
	if err != nil {
		return err
	}
	binary, err := lab.Helm(ctx, log)
	if err != nil {
		return err
	}
	return syscall.Exec(binary, append([]string{binary}, args...), append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)) //nolint:gosec // ours
}

// kubectl becomes kubectl.
func kubectl(ctx context.Context, dir string, log *slog.Logger, args []string) error {
	p, err := lab.Join(ctx, dir)
	if err != nil {
		return err
	}
	binary, err := lab.Binary(ctx, log)
	if err != nil {
		return err
	}
	env := append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
	return syscall.Exec(binary, append([]string{binary, "kubectl"}, args...), env) //nolint:gosec // ours
}
