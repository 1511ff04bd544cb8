package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
)

func sampleCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "sample [package]", Short: "Write a sample VNF package, ready to upload, and the requests that instantiate it",
		Long: `Write a sample VNF package as a zip file, with the digests of its artifacts, and for each of its flavours
a request that instantiates it on the default VIM. Without a name the packages are listed.`,
		Example: "  vnfm sample\n  vnfm sample web-cnf --dir /tmp",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return say(cmd, "%s", strings.Join(deploy.Names(), "\n"))
			}
			return writeSample(cmd, args[0], dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "folder to write to")
	return cmd
}

// writeSample writes a package and its requests, and says which files these are.
func writeSample(cmd *cobra.Command, name, dir string) error {
	zip, err := deploy.Package(name)
	if err != nil {
		return err
	}
	files := map[string][]byte{name + ".zip": zip}
	order := []string{name + ".zip"}
	for _, flavour := range deploy.Flavours(name) {
		raw, err := json.MarshalIndent(deploy.InstantiateRequest(name, flavour), "", "  ")
		if err != nil {
			return fmt.Errorf("write the request for flavour %s of %s: %w", flavour, name, err)
		}
		file := name + "-" + flavour + ".json"
		files[file] = append(raw, '\n')
		order = append(order, file)
	}
	for _, file := range order {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, files[file], 0o644); err != nil { //nolint:gosec // there is nothing secret in it
			return err
		}
		if err := say(cmd, "%s", path); err != nil {
			return err
		}
	}
	return nil
}
