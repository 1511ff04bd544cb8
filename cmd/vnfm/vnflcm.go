package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-f1a0ccf1/vnfm/internal/client"
)

func vnflcmCommand(o *clientOptions) *cobra.Command {
	cmd := group("vnflcm", "VNF instances and their lifecycle operations", "  vnfm vnflcm list\n  vnfm vnflcm instantiate ID params.json --wait",
		lcmCreate(o), lcmList(o), lcmShow(o), lcmInstantiate(o), lcmTerminate(o), lcmHeal(o), lcmScale(o), lcmUpdate(o),
		lcmFileTask(o, "change-ext-conn", "change_ext_conn", "Change the external connectivity of a VNF instance", "Change External VNF Connectivity for VNF Instance %s has been accepted."),
		lcmFileTask(o, "change-vnfpkg", "change_vnfpkg", "Change the VNF package of a VNF instance (API version 2)", "Change Current VNF Package for VNF Instance %s has been accepted."),
		lcmVerify(o), lcmDelete(o), lcmVersions(o), opCommand(o), subscCommand(o))
	o.addConnection(cmd, false)
	return cmd
}

func lcmCreate(o *clientOptions) *cobra.Command {
	var name, description, file string
	cmd := &cobra.Command{
		Use:     "create <vnfd-id>",
		Short:   "Create a VNF instance",
		Example: "  vnfm vnflcm create b1bb0ce7-ebca-4fa7-95ed-4840d70a1177 --name edge-1\n  vnfm vnflcm create b1bb0ce7-ebca-4fa7-95ed-4840d70a1177 --I params.json --wait",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the VNF instance")
	cmd.Flags().StringVar(&description, "description", "", "description of the VNF instance")
	cmd.Flags().StringVar(&file, "I", "", "instantiate it too, with the parameters in this JSON file")
	out := addOutput(cmd, true)
	w := addWait(cmd, "the instantiation is done (with --I)")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		var params *client.Object
		if file != "" {
			var err error
			if params, err = client.ReadParamFile(file); err != nil {
				return err
			}
		}
		vnf, err := c.CreateInstance(ctx, args[0], name, description)
		if err != nil {
			return err
		}
		if params == nil {
			return out.write(cmd, client.ShowTable(vnf, client.InstanceCreated()))
		}
		id := vnf.Text("id")
		acc, err := c.Task(ctx, id, "instantiate", params)
		if err != nil {
			return err
		}
		if !acc.Silent {
			if err := say(cmd, "VNF Instance %s is created and instantiation request has been accepted.", id); err != nil {
				return err
			}
		}
		if err := out.write(cmd, client.ShowTable(vnf, client.InstanceCreated())); err != nil {
			return err
		}
		return w.watch(ctx, c, cmd, acc)
	})
	return cmd
}

func lcmList(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List VNF instances", Example: "  vnfm vnflcm list\n  vnfm vnflcm list -f json -c ID -c 'Instantiation State'", Args: cobra.NoArgs}
	out := addOutput(cmd, false)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) error {
		list, err := c.Instances(ctx)
		if err != nil {
			return err
		}
		return out.write(cmd, client.ListTable(list, client.InstanceList()))
	})
	return cmd
}

func lcmShow(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "show <vnf-instance>", Short: "Show a VNF instance", Example: "  vnfm vnflcm show ID\n  vnfm vnflcm show ID -f value -c 'Instantiation State'", Args: cobra.ExactArgs(1)}
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		vnf, err := c.Instance(ctx, args[0])
		if err != nil {
			return err
		}
		return out.write(cmd, client.ShowTable(vnf, client.InstanceShown(vnf)))
	})
	return cmd
}

func lcmInstantiate(o *clientOptions) *cobra.Command {
	return lcmFileTask(o, "instantiate", "instantiate", "Instantiate a VNF instance", "Instantiate request for VNF Instance %s has been accepted.")
}

// lcmFileTask makes a command that starts an operation with the parameters in a file.
func lcmFileTask(o *clientOptions, name, task, short, accepted string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name + " <vnf-instance> <param-file>",
		Short:   short,
		Example: "  vnfm vnflcm " + name + " ID params.json\n  vnfm vnflcm " + name + " ID params.json --wait --wait-timeout 30m",
		Args:    cobra.ExactArgs(2),
	}
	w := addWait(cmd, "the operation is done")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		params, err := client.ReadParamFile(args[1])
		if err != nil {
			return err
		}
		return start(ctx, c, cmd, w, args[0], task, params, accepted)
	})
	return cmd
}

// start sends an operation, says that it was accepted, and waits when that is wanted.
func start(ctx context.Context, c *client.Client, cmd *cobra.Command, w *waiting, id, task string, body *client.Object, accepted string) error {
	acc, err := c.Task(ctx, id, task, body)
	if err != nil {
		return err
	}
	if !acc.Silent {
		if err := say(cmd, accepted, id); err != nil {
			return err
		}
	}
	return w.watch(ctx, c, cmd, acc)
}

func lcmTerminate(o *clientOptions) *cobra.Command {
	var kind string
	var timeout int
	var remove bool
	cmd := &cobra.Command{
		Use:     "terminate <vnf-instance>",
		Short:   "Terminate a VNF instance",
		Example: "  vnfm vnflcm terminate ID --wait\n  vnfm vnflcm terminate ID --termination-type FORCEFUL --D",
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			return oneOf("--termination-type", kind, "GRACEFUL", "FORCEFUL")
		},
	}
	cmd.Flags().StringVar(&kind, "termination-type", "GRACEFUL", "GRACEFUL or FORCEFUL")
	cmd.Flags().IntVar(&timeout, "graceful-termination-timeout", 0, "seconds that the VNF is given to be taken out of service")
	cmd.Flags().BoolVar(&remove, "D", false, "delete the VNF instance when it is terminated")
	w := addWait(cmd, "the VNF instance is terminated")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		id := args[0]
		body := client.NewObject().Set("terminationType", kind)
		limit := 300 * time.Second
		if cmd.Flags().Changed("graceful-termination-timeout") {
			body.Set("gracefulTerminationTimeout", number(timeout))
			limit = time.Duration(timeout+10) * time.Second
		}
		if err := start(ctx, c, cmd, w, id, "terminate", body, "Terminate request for VNF Instance '%s' has been accepted."); err != nil || !remove {
			return err
		}
		if err := say(cmd, "Waiting for vnf instance to be terminated before deleting"); err != nil {
			return err
		}
		if err := c.WaitTerminated(ctx, id, limit); err != nil {
			return err
		}
		if err := c.DeleteInstance(ctx, id); err != nil {
			return err
		}
		return say(cmd, "VNF Instance '%s' is deleted successfully", id)
	})
	return cmd
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

func lcmHeal(o *clientOptions) *cobra.Command {
	var cause, file string
	var vnfcs []string
	cmd := &cobra.Command{
		Use:     "heal <vnf-instance>",
		Short:   "Heal a VNF instance",
		Example: "  vnfm vnflcm heal ID --cause 'worker is gone' --vnfc-instance VNFC1 VNFC2 --wait",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&cause, "cause", "", "why healing is needed")
	cmd.Flags().StringArrayVar(&vnfcs, "vnfc-instance", nil, "VNFC instances to heal; all values up to the next option")
	cmd.Flags().StringVar(&file, "additional-param-file", "", "JSON file with further parameters")
	w := addWait(cmd, "the operation is done")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		body := client.NewObject()
		if cause != "" {
			body.Set("cause", cause)
		}
		if len(vnfcs) > 0 {
			body.Set("vnfcInstanceId", vnfcs)
		}
		if err := mergeFile(body, file); err != nil {
			return err
		}
		return start(ctx, c, cmd, w, args[0], "heal", body, "Heal request for VNF Instance %s has been accepted.")
	})
	return cmd
}

func mergeFile(body *client.Object, file string) error {
	if file == "" {
		return nil
	}
	more, err := client.ReadParamFile(file)
	if err != nil {
		return err
	}
	body.Merge(more)
	return nil
}

func lcmScale(o *clientOptions) *cobra.Command {
	var kind, aspect, file string
	var steps int
	cmd := &cobra.Command{
		Use:     "scale <vnf-instance>",
		Short:   "Scale a VNF instance",
		Example: "  vnfm vnflcm scale ID --type SCALE_OUT --aspect-id workers --number-of-steps 2 --wait",
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return oneOf("--type", kind, "SCALE_OUT", "SCALE_IN") },
	}
	cmd.Flags().StringVar(&kind, "type", "", "SCALE_OUT or SCALE_IN")
	cmd.Flags().StringVar(&aspect, "aspect-id", "", "scaling aspect")
	cmd.Flags().IntVar(&steps, "number-of-steps", 0, "number of scaling steps")
	cmd.Flags().StringVar(&file, "additional-param-file", "", "JSON file with further parameters")
	required(cmd, "type", "aspect-id")
	w := addWait(cmd, "the operation is done")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		body := client.NewObject().Set("type", kind).Set("aspectId", aspect)
		if cmd.Flags().Changed("number-of-steps") {
			body.Set("numberOfSteps", number(steps))
		}
		if err := mergeFile(body, file); err != nil {
			return err
		}
		return start(ctx, c, cmd, w, args[0], "scale", body, "Scale request for VNF Instance %s has been accepted.")
	})
	return cmd
}

// required marks options of a command that is being built; a name that does not exist is a mistake in its code.
func required(cmd *cobra.Command, names ...string) {
	for _, n := range names {
		if err := cmd.MarkFlagRequired(n); err != nil {
			panic(err)
		}
	}
}

func lcmUpdate(o *clientOptions) *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "update <vnf-instance>", Short: "Change the information of a VNF instance", Example: "  vnfm vnflcm update ID --I changes.json --wait", Args: cobra.ExactArgs(1)}
	cmd.Flags().StringVar(&file, "I", "", "JSON file with the changes")
	w := addWait(cmd, "the operation is done")
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		if file == "" {
			return nil
		}
		body, err := client.ReadParamFile(file)
		if err != nil {
			return err
		}
		acc, err := c.ModifyInstance(ctx, args[0], body)
		if err != nil {
			return err
		}
		if !acc.Silent {
			if err := say(cmd, "Update vnf:%s ", args[0]); err != nil {
				return err
			}
		}
		return w.watch(ctx, c, cmd, acc)
	})
	return cmd
}

func lcmDelete(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "delete <vnf-instance>...", Short: "Delete VNF instances", Example: "  vnfm vnflcm delete ID1 ID2", Args: cobra.MinimumNArgs(1),
		RunE: o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
			return deleteEach(cmd, args, "vnf instance", "vnf instances", "Vnf instance '%s' is deleted successfully",
				"All specified vnf instances are deleted successfully", func(id string) error { return c.DeleteInstance(ctx, id) })
		}),
	}
}

func lcmVersions(o *clientOptions) *cobra.Command {
	var major int
	cmd := &cobra.Command{Use: "versions", Short: "Show the versions of the API", Example: "  vnfm vnflcm versions --major-version 1", Args: cobra.NoArgs}
	cmd.Flags().IntVar(&major, "major-version", 0, "of this major version only")
	out := addOutput(cmd, true)
	cmd.RunE = o.runs(func(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("major-version") && major == 0 {
			major = -1 // asked for, and not supported
		}
		v, err := c.Versions(ctx, major)
		if err != nil {
			return err
		}
		return out.write(cmd, client.RawTable(v))
	})
	return cmd
}
