package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set when a release is built (-ldflags "-X main.version=…").
var version = ""

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the program and of the interfaces that it speaks",
		Example: "  vnfm version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := version
			if v == "" {
				v = "development"
				if info, ok := debug.ReadBuildInfo(); ok {
					for _, s := range info.Settings {
						if s.Key == "vcs.revision" {
							v += " " + s.Value[:min(12, len(s.Value))]
						}
					}
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "vnfm %s (%s %s/%s)\nvnflcm 1.3.0 (ETSI GS NFV-SOL 003 v2.6.1)\nvnfpkgm 1.3.0 (ETSI GS NFV-SOL 005 v2.6.1)\nvims v1.0\n",
				v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
