// Plane is the control plane of the Kubernetes lab in one program: etcd, the API server, the controller manager, the
// scheduler, KWOK in the place of nodes, and kubectl. The first argument says which of them it is to be; the rest are
// that program's own arguments.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlerrors "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"

	_ "time/tzdata" // CronJobs name time zones, and the machine may have no list of them

	_ "k8s.io/client-go/plugin/pkg/client/auth"           // kubectl logs in by every way there is
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // /metrics counts the daemons' own requests
	_ "k8s.io/component-base/metrics/prometheus/version"  // /metrics tells the version
)

// A part is one of the programs in this one. It returns the exit status, when it returns.
type part struct {
	name string
	run  func() int
}

var parts = []part{
	{"etcd", func() int { etcdmain.Main(os.Args); return 0 }},
	{"kube-apiserver", command(apiserver.NewAPIServerCommand)},
	{"kube-controller-manager", command(controllers.NewControllerManagerCommand)},
	{"kube-scheduler", command(func() *cobra.Command { return scheduler.NewSchedulerCommand() })},
	{"kwok", runKwok},
	{"kubectl", runKubectl},
}

func command(make func() *cobra.Command) func() int {
	return func() int { return cli.Run(make()) }
}

func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlerrors.CheckErr(err) // prints it as kubectl does, and exits
	}
	return 0
}

func runKwok() int {
	// Linked together with Kubernetes, the global flags hold a --version that KWOK's own would collide with.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	early := pflag.NewFlagSet("kwok", pflag.ContinueOnError) // those that must be read before the command is made
	early.ParseErrorsAllowlist.UnknownFlags = true
	early.Usage = func() {}
	ctx, _ = kwoklog.InitFlags(ctx, early)
	ctx, err := kwokconfig.InitFlags(ctx, early)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok: read its configuration:", err)
		return 1
	}
	cmd := kwok.NewCommand(ctx)
	cmd.PersistentFlags().AddFlagSet(early)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		return 1
	}
	return 0
}

func main() {
	if len(os.Args) > 1 {
		if i := slices.IndexFunc(parts, func(p part) bool { return p.name == os.Args[1] }); i >= 0 {
			os.Args = os.Args[1:] // each reads its arguments as if it were alone
			os.Exit(parts[i].run())
		}
	}
	names := make([]string, 0, len(parts))
	for _, p := range parts {
		names = append(names, p.name)
	}
	fmt.Fprintf(os.Stderr, "usage: plane %s ARGUMENTS\n", strings.Join(names, "|"))
	os.Exit(2)
}
