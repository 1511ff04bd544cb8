package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/client"
)

func vnfCommand(o *clientOptions) *cobra.Command {
	cmd := group("vnf", "VNF packages", "  vnfm vnf package list",
		group("package", "VNF packages", "  vnfm vnf package create\n  vnfm vnf package upload ID --path sample.zip --wait",
			pkgCreate(o), pkgList(o), pkgShow(o), pkgUpload(o), pkgUpdate(o), pkgDelete(o), pkgDownload(o),
			group("artifact", "Files in a VNF package", "  vnfm vnf package artifact download ID Scripts/install.sh", pkgArtifact(o))))
	o.addConnection(cmd, false)
	return cmd
}

const userDataHelp = "user defined data as key=value (may be repeated)"

func pkgCreate(o *clientOptions) *cobra.Command {
	var data []string
	cmd := &cobra.Command{Use: "create", Short: "Create a VNF package", Example: "  vnfm vnf package create --user-data site=lab", Args: cobra.NoArgs}
	cmd.Flags().StringArrayVar(&data, "user-data", nil, userDataHelp)
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) error {
		user, err := keyValues(data)
		if err != nil {
			return err
		}
		pkg, err := c.CreatePackage(ctx, user)
		if err != nil {
			return err
		}
		return out.write(cmd, client.ShowTable(pkg, client.PackageShown(pkg)))
	})
	return cmd
}

func pkgList(o *clientOptions) *cobra.Command {
	var q client.PackageQuery
	cmd := &cobra.Command{Use: "list", Short: "List VNF packages", Example: "  vnfm vnf package list --filter '(eq,onboardingState,ONBOARDED)' -f json", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&q.Filter, "filter", "", "attribute-based filter")
	cmd.Flags().BoolVar(&q.AllFields, "all_fields", false, "include all complex attributes")
	cmd.Flags().StringVar(&q.Fields, "fields", "", "complex attributes to include")
	cmd.Flags().StringVar(&q.ExcludeFields, "exclude_fields", "", "complex attributes to leave out")
	cmd.Flags().BoolVar(&q.ExcludeDefault, "exclude_default", false, "leave out all complex attributes; alone, or with --fields and --filter")
	cmd.MarkFlagsMutuallyExclusive("all_fields", "fields", "exclude_fields")
	out := addOutput(cmd, false)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) error {
		list, err := c.Packages(ctx, q)
		if err != nil {
			return err
		}
		return out.write(cmd, client.ListTable(list, client.PackageList(q)))
	})
	return cmd
}

func pkgShow(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "show <vnf-package>", Short: "Show a VNF package", Example: "  vnfm vnf package show ID", Args: cobra.ExactArgs(1)}
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		pkg, err := c.Package(ctx, args[0])
		if err != nil {
			return err
		}
		return out.write(cmd, client.ShowTable(pkg, client.PackageShown(pkg)))
	})
	return cmd
}

func pkgUpload(o *clientOptions) *cobra.Command {
	var path, uri, user, password string
	cmd := &cobra.Command{
		Use: "upload <vnf-package>", Short: "Upload the content of a VNF package",
		Example: "  vnfm vnf package upload ID --path sample.zip --wait\n  vnfm vnf package upload ID --url https://repo/sample.zip", Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&path, "path", "", "CSAR file")
	cmd.Flags().StringVar(&uri, "url", "", "URI that the server fetches it from")
	cmd.Flags().StringVar(&user, "user-name", "", "user name for that URI")
	cmd.Flags().StringVar(&password, "password", "", "password for that URI")
	cmd.MarkFlagsMutuallyExclusive("path", "url")
	cmd.MarkFlagsOneRequired("path", "url")
	w := addWait(cmd, "the package is onboarded")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		id := args[0]
		var err error
		if path != "" {
			err = c.UploadPackage(ctx, id, path)
		} else {
			err = c.UploadFromURI(ctx, id, uri, user, password)
		}
		if err != nil {
			return err
		}
		if err := say(cmd, "Upload request for VNF package %s has been accepted.", id); err != nil || !w.wait {
			return err
		}
		ctx, cancel := w.bound(ctx)
		defer cancel()
		if err := c.WaitOnboarded(ctx, id, progress(cmd)); err != nil {
			return err
		}
		return say(cmd, "VNF package %s is ONBOARDED", id)
	})
	return cmd
}

func pkgUpdate(o *clientOptions) *cobra.Command {
	var state string
	var data []string
	cmd := &cobra.Command{
		Use: "update <vnf-package>", Short: "Change a VNF package's operational state and user data", Example: "  vnfm vnf package update ID --operational-state DISABLED", Args: cobra.ExactArgs(1),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("operational-state") {
				return nil
			}
			return oneOf("--operational-state", state, "ENABLED", "DISABLED")
		},
	}
	cmd.Flags().StringVar(&state, "operational-state", "", "ENABLED or DISABLED")
	cmd.Flags().StringArrayVar(&data, "user-data", nil, userDataHelp)
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		user, err := keyValues(data)
		if err != nil {
			return err
		}
		if user == nil && state == "" {
			return errors.Join(say(cmd, `Provide at least one of the argument from "--user-data" or "--operational-state"`), errSaid)
		}
		pkg, err := c.UpdatePackage(ctx, args[0], state, user)
		if err != nil {
			return err
		}
		return out.write(cmd, client.ShowTable(pkg, client.PackageUpdated(pkg)))
	})
	return cmd
}

// errSaid is a failure that has been told already.
var errSaid = errors.New("")

func pkgDelete(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "delete <vnf-package>...", Short: "Delete VNF packages", Example: "  vnfm vnf package delete ID1 ID2", Args: cobra.MinimumNArgs(1),
		RunE: o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
			return deleteAll(cmd, args, "vnf-package", "'vnf_package'", func(id string) error { return c.DeletePackage(ctx, id) })
		}),
	}
}

const noFile = "No redirection or local file specified for downloaded vnf package data. Please specify a local file with --file to save downloaded vnf package or use redirection"

func pkgDownload(o *clientOptions) *cobra.Command {
	var file, accept string
	var vnfd bool
	cmd := &cobra.Command{
		Use: "download <vnf-package>", Short: "Download a VNF package, or its VNFD", Example: "  vnfm vnf package download ID --file sample.zip\n  vnfm vnf package download ID --vnfd --type text/plain", Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			return oneOf("--type", accept, "text/plain", "application/zip", "both")
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file to save it to (standard output otherwise)")
	cmd.Flags().BoolVar(&vnfd, "vnfd", false, "the VNFD only")
	cmd.Flags().StringVar(&accept, "type", "application/zip", "of the VNFD: text/plain, application/zip or both")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		return save(cmd, file, func(w io.Writer) error {
			if vnfd {
				return c.DownloadVNFD(ctx, args[0], accept, w)
			}
			return c.DownloadPackage(ctx, args[0], w)
		})
	})
	return cmd
}

// save runs a download into a file or the output, but does not throw a package at a terminal.
func save(cmd *cobra.Command, file string, download func(io.Writer) error) error {
	if file == "" && isTerminal(cmd.OutOrStdout()) {
		return errors.Join(say(cmd, noFile), errSaid)
	}
	return client.SaveFile(file, cmd.OutOrStdout(), download)
}

func pkgArtifact(o *clientOptions) *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "download <vnf-package> <artifact-path>", Short: "Download a file of a VNF package", Example: "  vnfm vnf package artifact download ID Scripts/install.sh --file install.sh", Args: cobra.ExactArgs(2)}
	cmd.Flags().StringVar(&file, "file", "", "file to save it to (standard output otherwise)")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		return save(cmd, file, func(w io.Writer) error { return c.DownloadArtifact(ctx, args[0], args[1], w) })
	})
	return cmd
}
