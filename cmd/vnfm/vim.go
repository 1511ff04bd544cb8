package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/client"
)

func vimCommand(o *clientOptions) *cobra.Command {
	cmd := group("vim", "Registered VIMs", "  vnfm vim list", vimRegister(o), vimList(o), vimShow(o), vimSet(o), vimDelete(o))
	o.addConnection(cmd, false)
	return cmd
}

func vimRegister(o *clientOptions) *cobra.Command {
	var ch client.VIMChange
	var isDefault bool
	cmd := &cobra.Command{
		Use: "register <name>", Short: "Register a VIM", Args: cobra.ExactArgs(1),
		Long: `Register a VIM. The configuration file is YAML with auth_url, type (openstack or kubernetes),
project_name, and the credentials: username, password, user_domain_name, project_domain_name
and cert_verify for OpenStack; for Kubernetes one of bearer_token, username and password,
oidc_token_url with client_id, client_secret, username and password, and client_cert with
client_key; and ssl_ca_cert.

A cluster may be registered by a kubeconfig, by --kubeconfig or by kubeconfig and context in the
configuration file: one of its contexts says where the cluster is, how it is verified, how it is
logged in to, and which namespace it is about. What the context says is read once, files that it
names included; after a change do "vim set --kubeconfig". A configuration file beside it says
what differs: bearer_token where the kubeconfig's user logs in by a program, auth_url where the
VNF manager reaches the cluster at another address.`,
		Example: `  vnfm vim register openstack-1 --config-file vim.yaml --is-default
  vnfm vim register cluster-1 --kubeconfig ~/.kube/config --context admin@cluster-1
  vnfm vim register tenant-1 --kubeconfig tenant.kubeconfig --namespace tenant-1`,
	}
	cmd.Flags().StringVar(&ch.TenantID, "tenant-id", "", "project that owns the VIM")
	cmd.Flags().StringVar(&ch.ConfigFile, "config-file", "", "YAML file that describes the VIM")
	cmd.Flags().StringVar(&ch.Description, "description", "", "description")
	cmd.Flags().BoolVar(&isDefault, "is-default", false, "make it the default VIM")
	addKubeconfig(cmd, &ch)
	cmd.MarkFlagsOneRequired("config-file", "kubeconfig")
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		ch.Name, ch.IsDefault = args[0], &isDefault
		vim, err := c.RegisterVIM(ctx, ch)
		if err != nil {
			return err
		}
		return out.write(cmd, client.ShowTable(vim, client.VIMShown()))
	})
	return cmd
}

// addKubeconfig adds the options that import a kubeconfig.
func addKubeconfig(cmd *cobra.Command, ch *client.VIMChange) {
	fs := cmd.Flags()
	fs.StringVar(&ch.Kubeconfig, "kubeconfig", "", "kubeconfig file of a cluster")
	fs.StringVar(&ch.Context, "context", "", "context of the kubeconfig (its current one)")
	fs.StringVar(&ch.Namespace, "namespace", "", "namespace that the VIM is about, in place of the context's")
	fs.BoolVar(&ch.SkipVerify, "insecure-skip-tls-verify", false, "do not verify the certificate of the kubeconfig's cluster")
}

func vimList(o *clientOptions) *cobra.Command {
	var long bool
	cmd := &cobra.Command{Use: "list", Short: "List VIMs", Example: "  vnfm vim list --long", Args: cobra.NoArgs}
	cmd.Flags().BoolVar(&long, "long", false, "with the placement")
	out := addOutput(cmd, false)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) error {
		list, err := c.VIMs(ctx)
		if err != nil {
			return err
		}
		return out.write(cmd, client.ListTable(list, client.VIMList(long)))
	})
	return cmd
}

func vimShow(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "show <vim>", Short: "Show a VIM, by name or id", Example: "  vnfm vim show openstack-1", Args: cobra.ExactArgs(1)}
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		vim, err := c.VIM(ctx, args[0])
		if err != nil {
			return err
		}
		return out.write(cmd, client.ShowTable(vim, client.VIMShown()))
	})
	return cmd
}

func vimSet(o *clientOptions) *cobra.Command {
	var ch client.VIMChange
	var isDefault string
	cmd := &cobra.Command{
		Use: "set <vim>", Short: "Change a VIM, by name or id", Args: cobra.ExactArgs(1),
		Example: "  vnfm vim set openstack-1 --is-default True\n  vnfm vim set cluster-1 --kubeconfig ~/.kube/config",
	}
	cmd.Flags().StringVar(&ch.ConfigFile, "config-file", "", "YAML file that describes the VIM")
	cmd.Flags().StringVar(&ch.Name, "name", "", "new name")
	cmd.Flags().StringVar(&ch.Description, "description", "", "new description")
	addKubeconfig(cmd, &ch)
	cmd.Flags().StringVar(&isDefault, "is-default", "", "True or False: whether it is the default VIM")
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("is-default") {
			b := client.ParseBool(isDefault)
			ch.IsDefault = &b
		}
		vim, err := c.SetVIM(ctx, args[0], ch)
		if err != nil {
			return err
		}
		return out.write(cmd, client.ShowTable(vim, client.VIMShown()))
	})
	return cmd
}

func vimDelete(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "delete <vim>...", Short: "Delete VIMs, by name or id", Example: "  vnfm vim delete openstack-1", Args: cobra.MinimumNArgs(1),
		RunE: o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
			return deleteAll(cmd, args, "vim", "vim", func(id string) error { return c.DeleteVIM(ctx, id) })
		}),
	}
}
