package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

const (
	instancesPath     = "/vnflcm/v1/vnf_instances"
	opOccsPath        = "/vnflcm/v1/vnf_lcm_op_occs"
	subscriptionsPath = "/vnflcm/v1/subscriptions"
)

// TestEveryCommand has the real client, and ours, run every command of vnflcm, with what each prints written out: when it
// succeeds and when it is refused. The pages of lists are small, so that both follow links.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"openstack", "vnfm"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			l := newLab(t, harness.Options{Env: []string{"VNFM_PAGING_PAGE_SIZE=2", loopbackCallbacks}})
			if client == "vnfm" {
				l = l.ours(ctx, t)
			}
			vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
			must(t, err)
			raw, vnfd := variant(t, "multi-port", nil)
			pkg, err := l.api.Onboard(ctx, raw)
			must(t, err)
			c := &commander{lab: l, vim: vim, vnfd: vnfd}
			ok := t.Run("with", func(t *testing.T) {
				t.Run("subscriptions", func(t *testing.T) { t.Parallel(); c.subscriptions(ctx, t) })
				t.Run("operations", func(t *testing.T) { t.Parallel(); c.operations(ctx, t) })
			})
			if !ok {
				return
			}
			c.instances(ctx, t) // the lists are whole only when nobody else makes any
			c.versions(ctx, t)
			must(t, l.api.DeletePackage(ctx, pkg.Id))
			l.checkNothingLeft(t)
			l.checkNoSecrets(t)
		})
	}
}

// commander is a lab with a package that its commands are about.
type commander struct {
	*lab
	vim, vnfd string
}

func (c *commander) request(t *testing.T) string {
	t.Helper()
	return c.jsonFile(t, "instantiate.json", harness.OnVIM(deploy.InstantiateRequest("multi-port", "default"), c.vim))
}

// shows runs a command that shows a resource, in each of the formats that show all of it.
func (c *commander) shows(ctx context.Context, t *testing.T, y layout, path string, args ...string) {
	t.Helper()
	raw := c.get(ctx, t, path)
	c.prints(ctx, t, y.table(t, raw), args...)
	c.prints(ctx, t, y.json(t, raw), append(args, "-f", "json")...)
}

// instances runs the commands about VNF instances that start no operation.
func (c *commander) instances(ctx context.Context, t *testing.T) {
	t.Helper()
	c.prints(ctx, t, "\n", "vnflcm", "list")
	c.prints(ctx, t, "[]\n", "vnflcm", "list", "-f", "json")
	var ids []string
	for _, args := range [][]string{{}, {"--name", "the second"}, {"--name", "n", "--description", "more than \"one\" line:\nthis"}} {
		r := c.openstack(ctx, t, append([]string{"vnflcm", "create", c.vnfd}, args...)...)
		all := c.read(ctx, t, instancesPath)
		n := slices.IndexFunc(all, func(i map[string]any) bool { return !slices.Contains(ids, fmt.Sprint(i["id"])) })
		if n < 0 {
			t.Fatalf("vnflcm create has made nothing: %s%s", r.out, r.err)
		}
		ids = append(ids, fmt.Sprint(all[n]["id"]))
		if diff := difference(createdInstance.table(t, c.get(ctx, t, instancesPath+"/"+ids[len(ids)-1])), r.out); diff != "" || r.err != "" {
			t.Errorf("vnflcm create %q says %q and prints %s", args, r.err, diff)
		}
	}
	c.refuses(ctx, t, "Can not find requested vnf package vnfd: "+nobody, "vnflcm", "create", nobody)

	list := listed{instanceColumns, c.read(ctx, t, instancesPath)}
	c.prints(ctx, t, list.table(), "vnflcm", "list")
	c.prints(ctx, t, list.json(t), "vnflcm", "list", "-f", "json")
	c.prints(ctx, t, list.csv(), "vnflcm", "list", "-f", "csv")
	c.prints(ctx, t, list.value(), "vnflcm", "list", "-f", "value")
	few := listed{[]column{{"id", "ID"}, {"vnfInstanceName", "VNF Instance Name"}}, list.objects}
	c.prints(ctx, t, few.value(), "vnflcm", "list", "-f", "value", "-c", "ID", "-c", "VNF Instance Name")
	c.prints(ctx, t, few.table(), "vnflcm", "list", "-c", "ID", "-c", "VNF Instance Name")
	c.shows(ctx, t, shownInstance, instancesPath+"/"+ids[2], "vnflcm", "show", ids[2])
	c.prints(ctx, t, "NOT_INSTANTIATED\n", "vnflcm", "show", ids[0], "-f", "value", "-c", "Instantiation State")
	c.refuses(ctx, t, "Can not find requested vnf instance: "+nobody, "vnflcm", "show", nobody)

	c.prints(ctx, t, "Vnf instance '"+ids[0]+"' is deleted successfully\n", "vnflcm", "delete", ids[0])
	c.prints(ctx, t, "All specified vnf instances are deleted successfully\n", "vnflcm", "delete", ids[1], ids[2])
	c.refuses(ctx, t, "Failed to delete vnf instance with ID '"+ids[0]+"': Can not find requested vnf instance: "+ids[0]+
		"\nFailed to delete 1 of 1 vnf instances.", "vnflcm", "delete", ids[0])
}

// operations runs the commands that start operations, and those about op occs.
func (c *commander) operations(ctx context.Context, t *testing.T) {
	t.Helper()
	made := c.openstack(ctx, t, "vnflcm", "create", c.vnfd, "--I", c.request(t))
	id := fmt.Sprint(c.read(ctx, t, instancesPath)[0]["id"])
	line := "VNF Instance " + id + " is created and instantiation request has been accepted.\n"
	if f, ok := strings.CutPrefix(made.out, line); !ok || parseFields(t, f).values["ID"] != id || made.err != "" {
		t.Errorf("vnflcm create --I prints %q %q, want it to begin with %q", made.out, made.err, line)
	}
	c.awaitOp(ctx, t, c.latest(ctx, t, id), sol003.LcmOperationStateCompleted)
	c.shows(ctx, t, liveInstance, instancesPath+"/"+id, "vnflcm", "show", id)

	// What cannot be done in this state, or at all.
	params := c.jsonFile(t, "params.json", map[string]any{"additionalParams": map[string]any{"key": "value"}})
	c.refuses(ctx, t, "Vnf instance "+id+" in instantiation_state INSTANTIATED. Cannot instantiate while the vnf instance is in this state.",
		"vnflcm", "instantiate", id, c.request(t))
	c.refuses(ctx, t, "Failed to delete vnf instance with ID '"+id+"': Vnf instance "+id+" in instantiation_state INSTANTIATED. Cannot delete while "+
		"the vnf instance is in this state.\nFailed to delete 1 of 1 vnf instances.", "vnflcm", "delete", id)
	c.refuses(ctx, t, "aspectId not in ScaleStatus", "vnflcm", "scale", id, "--type", "SCALE_OUT", "--aspect-id", "none")
	c.refuses(ctx, t, "can not scale_in", "vnflcm", "scale", id, "--type", "SCALE_IN", "--aspect-id", "gateway_group")
	c.refuses(ctx, t, "can not scale_out", "vnflcm", "scale", id, "--type", "SCALE_OUT", "--aspect-id", "gateway_group", "--number-of-steps", "3")
	c.refuses(ctx, t, "Vnfc id "+nobody+" not present in vnf instance "+id, "vnflcm", "heal", id, "--vnfc-instance", nobody)

	// What can. Each is known by its line, and by the parameters that its op occ has kept.
	vnfcs := c.vnfcs(ctx, t, id, "worker")
	moved := map[string]any{"extVirtualLinks": []any{map[string]any{"id": "access", "resourceId": "net_mgmt", "extCps": []any{map[string]any{
		"cpdId": "gateway_CP1", "cpConfig": []any{map[string]any{"cpProtocolData": []any{map[string]any{"layerProtocol": "IP_OVER_ETHERNET"}}}},
	}}}}}
	heal := "Heal request for VNF Instance " + id + " has been accepted.\n"
	scale := "Scale request for VNF Instance " + id + " has been accepted.\n"
	for _, o := range []struct {
		operation sol003.LcmOperationType
		says      string
		params    map[string]any
		args      []string
	}{
		{sol003.LcmOperationTypeScale, scale, map[string]any{"type": "SCALE_OUT", "aspectId": "gateway_group", "numberOfSteps": 2},
			[]string{"scale", id, "--type", "SCALE_OUT", "--aspect-id", "gateway_group", "--number-of-steps", "2"}},
		{sol003.LcmOperationTypeScale, scale, map[string]any{"type": "SCALE_IN", "aspectId": "gateway_group", "additionalParams": map[string]any{"key": "value"}},
			[]string{"scale", id, "--type", "SCALE_IN", "--aspect-id", "gateway_group", "--additional-param-file", params}},
		{sol003.LcmOperationTypeHeal, heal, map[string]any{"cause": "a test", "vnfcInstanceId": []any{vnfcs[0], vnfcs[1]}},
			[]string{"heal", id, "--cause", "a test", "--vnfc-instance", vnfcs[0], vnfcs[1]}},
		{sol003.LcmOperationTypeHeal, heal, map[string]any{"vnfcInstanceId": []any{vnfcs[0]}, "additionalParams": map[string]any{"key": "value"}},
			[]string{"heal", id, "--vnfc-instance", vnfcs[0], "--additional-param-file", params}},
		{sol003.LcmOperationTypeHeal, heal, map[string]any{}, []string{"heal", id}},
		{sol003.LcmOperationTypeModifyInfo, "Update vnf:" + id + " \n",
			map[string]any{"vnfInstanceName": "renamed", "vnfInstanceDescription": "described", "metadata": map[string]any{"key": "value"}},
			[]string{"update", id, "--I", c.jsonFile(t, "update.json", map[string]any{
				"vnfInstanceName": "renamed", "vnfInstanceDescription": "described", "metadata": map[string]any{"key": "value"},
			})}},
		{sol003.LcmOperationTypeChangeExtConn, "Change External VNF Connectivity for VNF Instance " + id + " has been accepted.\n", moved,
			[]string{"change-ext-conn", id, c.jsonFile(t, "moved.json", moved)}},
		{sol003.LcmOperationTypeTerminate, "Terminate request for VNF Instance '" + id + "' has been accepted.\n",
			map[string]any{"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1},
			[]string{"terminate", id, "--termination-type", "GRACEFUL", "--graceful-termination-timeout", "1"}},
	} {
		c.prints(ctx, t, o.says, append([]string{"vnflcm"}, o.args...)...)
		op := c.latest(ctx, t, id)
		got := c.awaitOp(ctx, t, op, sol003.LcmOperationStateCompleted)
		want, err := json.Marshal(o.params)
		must(t, err)
		kept := members(t, c.get(ctx, t, opOccsPath+"/"+op))["operationParams"]
		if len(kept) == 0 { // of an empty body nothing is kept
			kept = json.RawMessage(`{}`)
		}
		if got.Operation != o.operation || !sameJSON(t, want, kept) {
			t.Errorf("%q has made %s with %s, want %s with %s", o.args, got.Operation, kept, o.operation, want)
		}
		c.prints(ctx, t, shownOp.table(t, c.get(ctx, t, opOccsPath+"/"+op)), "vnflcm", "op", "show", op)
		if o.operation == sol003.LcmOperationTypeModifyInfo {
			c.shows(ctx, t, liveInstance, instancesPath+"/"+id, "vnflcm", "show", id)
		}
	}
	c.prints(ctx, t, "", "vnflcm", "update", id) // of nothing: no request at all

	for _, args := range [][]string{
		{"terminate", id}, {"heal", id}, {"scale", id, "--type", "SCALE_OUT", "--aspect-id", "gateway_group"}, {"change-ext-conn", id, c.jsonFile(t, "moved.json", moved)},
	} {
		words := map[string]string{
			"terminate": "Vnf instance " + id + " in instantiation_state NOT_INSTANTIATED. Cannot terminate while the vnf instance is in this state.",
			"heal":      "Vnf instance " + id + " in instantiation_state NOT_INSTANTIATED. Cannot heal while the vnf instance is in this state.",
			"scale":     "VNF IS NOT ACTIVE", "change-ext-conn": "VNF is not instantiated",
		}
		c.refuses(ctx, t, words[args[0]], append([]string{"vnflcm"}, args...)...)
	}
	for _, args := range [][]string{
		{"terminate", nobody}, {"heal", nobody}, {"scale", nobody, "--type", "SCALE_OUT", "--aspect-id", "gateway_group"}, {"instantiate", nobody, c.request(t)},
		{"change-ext-conn", nobody, c.jsonFile(t, "moved.json", moved)}, {"update", nobody, "--I", params},
	} {
		words := "Can not find requested vnf: " + nobody
		if args[0] == "update" {
			words = "Can not find requested vnf data: " + nobody
		}
		c.refuses(ctx, t, words, append([]string{"vnflcm"}, args...)...)
	}
	c.failures(ctx, t, id)
	c.opLists(ctx, t, id)
	c.prints(ctx, t, "Vnf instance '"+id+"' is deleted successfully\n", "vnflcm", "delete", id)
}

// opLists runs the commands that list op occs.
func (c *commander) opLists(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	list := listed{opColumns, c.read(ctx, t, opOccsPath)}
	if len(list.objects) < 5 {
		t.Fatalf("there are %d op occs only", len(list.objects))
	}
	c.prints(ctx, t, list.table(), "vnflcm", "op", "list")
	c.prints(ctx, t, list.json(t), "vnflcm", "op", "list", "-f", "json", "--fields", "operationParams,error")
	c.prints(ctx, t, list.value(), "vnflcm", "op", "list", "-f", "value", "--exclude-fields", "resourceChanges")
	few := listed{opColumns[:3], list.objects}
	c.prints(ctx, t, few.csv(), "vnflcm", "op", "list", "-f", "csv", "--exclude-fields", "Operation")
	for _, filter := range []string{"(eq,operation,HEAL);(eq,vnfInstanceId," + id + ")", "(in,operationState,ROLLED_BACK,FAILED)", "(eq,operation,OPERATE)"} {
		some := listed{opColumns, c.read(ctx, t, opOccsPath+"?filter="+filter)}
		c.prints(ctx, t, some.table(), "vnflcm", "op", "list", "--filter", filter)
	}
	r := c.openstack(ctx, t, "vnflcm", "op", "list", "--filter", "(eq,nothing,x)")
	if r.code != 1 || !strings.Contains(r.err, "nothing") || strings.Contains(r.err, "tackerFault") {
		t.Errorf("a filter by an attribute that there is not: exit code %d, %s", r.code, r.err)
	}
}

// failures runs the commands about operations that failed, on an instance that is not instantiated, and leaves it so.
func (c *commander) failures(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	const reason = "No valid host was found."
	fault := vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectFail, Reason: reason}
	failing := func(of vimsim.Fault, args ...string) (op string, repair func()) {
		t.Helper()
		f := c.Sim.Cloud.AddFault(of)
		c.ok(ctx, t, append([]string{"vnflcm"}, args...)...)
		op = c.latest(ctx, t, id)
		got := c.awaitOp(ctx, t, op, sol003.LcmOperationStateFailedTemp)
		if got.Error == nil || !strings.Contains(got.Error.Detail, of.Reason) {
			t.Errorf("the error of %q is %+v, want it to name %q", args, got.Error, of.Reason)
		}
		return op, func() { c.Sim.Cloud.RemoveFault(f) }
	}
	show := func(op string, y layout, args ...string) {
		t.Helper()
		out := c.ok(ctx, t, args...)
		if diff := difference(y.table(t, c.get(ctx, t, opOccsPath+"/"+op)), out); diff != "" {
			t.Errorf("%q prints %s", args, diff)
		}
	}
	accepted := func(what, op string) string {
		return what + " request for LCM operation " + op + " has been accepted\n"
	}

	// An instantiation is rolled back; another is retried.
	op, repair := failing(fault, "instantiate", id, c.request(t))
	show(op, shownOp, "vnflcm", "op", "show", op)
	if f := c.show(ctx, t, "vnflcm", "op", "show", op); !strings.Contains(f.values["Error"], reason) {
		t.Errorf("vnflcm op show shows the error %s", f.values["Error"])
	}
	repair()
	c.prints(ctx, t, accepted("Rollback", op), "vnflcm", "op", "rollback", op)
	c.awaitOp(ctx, t, op, sol003.LcmOperationStateRolledBack)
	for _, task := range []string{"rollback", "retry", "fail"} {
		words := map[string]string{
			"rollback": "OperationState IS NOT FAILED_TEMP", "retry": "Cannot proceed with operation_state ROLLED_BACK", "fail": "State is not FAILED_TEMP",
		}
		c.refuses(ctx, t, words[task], "vnflcm", "op", task, op)
		c.refuses(ctx, t, "Can not find requested vnf lcm operation occurrence: "+nobody, "vnflcm", "op", task, nobody)
	}
	c.refuses(ctx, t, "Can not find requested vnf lcm operation occurrence: "+nobody, "vnflcm", "op", "show", nobody)
	op, repair = failing(fault, "instantiate", id, c.request(t))
	repair()
	c.prints(ctx, t, accepted("Retry", op), "vnflcm", "op", "retry", op)
	c.awaitOp(ctx, t, op, sol003.LcmOperationStateCompleted)

	// Scaling out is rolled back; another is given up.
	out := []string{"scale", id, "--type", "SCALE_OUT", "--aspect-id", "gateway_group"}
	op, repair = failing(fault, out...)
	repair()
	c.refuses(ctx, t, "Vnf instance "+id+" has LCM operation occurrence "+op+": SCALE in FAILED_TEMP. Cannot start HEAL while it is not finished.",
		"vnflcm", "heal", id)
	c.prints(ctx, t, accepted("Rollback", op), "vnflcm", "op", "rollback", op)
	c.awaitOp(ctx, t, op, sol003.LcmOperationStateRolledBack)
	vnf, err := c.api.Instance(ctx, id)
	must(t, err)
	if stack, n := c.Find(id), len(vnf.InstantiatedVnfInfo.VnfcResourceInfo); stack == nil || n != 3 || serversIn(stack) != n {
		t.Errorf("after the rollback the instance has %d VNFCs, want 3; the stack is %+v", n, stack)
	}
	op, repair = failing(fault, out...)
	repair()
	show(op, failedOp, "vnflcm", "op", "fail", op)
	c.awaitOp(ctx, t, op, sol003.LcmOperationStateFailed)

	// A healing cannot be rolled back, but retried.
	worker := c.vnfcs(ctx, t, id, "worker")[0]
	op, repair = failing(fault, "heal", id, "--vnfc-instance", worker)
	repair()
	r := c.openstack(ctx, t, "vnflcm", "op", "rollback", op)
	if r.code != 1 || !strings.Contains(r.err, "cannot be rolled back") {
		t.Errorf("the rollback of a healing: exit code %d, %s%s", r.code, r.out, r.err)
	}
	c.prints(ctx, t, accepted("Retry", op), "vnflcm", "op", "retry", op)
	c.awaitOp(ctx, t, op, sol003.LcmOperationStateCompleted)

	// Operations are canceled: one that waits for nothing, and one that the cloud does not let go.
	hang := c.Sim.Cloud.AddFault(vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectHang})
	for _, o := range []struct {
		mode string
		args []string
	}{
		{"GRACEFUL", []string{"terminate", id, "--graceful-termination-timeout", "3600"}},
		{"FORCEFUL", []string{"heal", id, "--vnfc-instance", worker}},
	} {
		c.ok(ctx, t, append([]string{"vnflcm"}, o.args...)...)
		op := c.latest(ctx, t, id)
		must(t, harness.Await(ctx, "the operation waits", func(ctx context.Context) (bool, error) {
			now, err := c.api.OpOcc(ctx, op)
			stack := c.Find(id)
			return err == nil && now.OperationState == sol003.LcmOperationStateProcessing && stack != nil &&
				(o.mode == "GRACEFUL" || stack.Status == "UPDATE_IN_PROGRESS"), err
		}))
		c.cancels(ctx, t, op, o.mode)
		c.awaitOp(ctx, t, op, sol003.LcmOperationStateFailedTemp)
		c.refuses(ctx, t, "Cancel operation in state FAILED_TEMP is not allowed", cancelArgs(op, o.mode)...)
		c.ok(ctx, t, "vnflcm", "op", "fail", op)
	}
	c.Sim.Cloud.RemoveFault(hang)
	c.prints(ctx, t, "Terminate request for VNF Instance '"+id+"' has been accepted.\n", "vnflcm", "terminate", id, "--termination-type", "FORCEFUL")
	c.awaitOp(ctx, t, c.latest(ctx, t, id), sol003.LcmOperationStateCompleted)
}

func cancelArgs(op, mode string) []string {
	return []string{"vnflcm", "op", "cancel", op, "--cancel-mode", mode}
}

// cancels cancels an operation. The real client stumbles over its own answer once the server has accepted: it has nothing
// to show and looks for columns.
func (c *commander) cancels(ctx context.Context, t *testing.T, op, mode string) {
	t.Helper()
	r := c.openstack(ctx, t, cancelArgs(op, mode)...)
	code, says := 0, ""
	if c.client == "" {
		code, says = 1, "cannot unpack non-iterable NoneType object\n"
	}
	if want := "Cancel request for LCM operation " + op + " has been accepted\n"; r.out != want || r.code != code || r.err != says {
		t.Errorf("vnflcm op cancel: exit code %d, prints %q and says %q", r.code, r.out, r.err)
	}
}

// subscriptions runs the commands about subscriptions.
func (c *commander) subscriptions(ctx context.Context, t *testing.T) {
	t.Helper()
	s := newSubscriber(t)
	c.prints(ctx, t, "\n", "vnflcm", "subsc", "list")
	var ids []string
	for n, filter := range []map[string]any{
		nil,
		{"notificationTypes": []any{"VnfLcmOperationOccurrenceNotification"}, "operationTypes": []any{"SCALE", "HEAL"}, "operationStates": []any{"COMPLETED"}},
		{"vnfInstanceSubscriptionFilter": map[string]any{"vnfdIds": []any{c.vnfd}}},
	} {
		request := map[string]any{
			"callbackUri":    fmt.Sprintf("%s/%d", s.URL, n),
			"authentication": map[string]any{"authType": []any{"BASIC"}, "paramsBasic": map[string]any{"userName": "u", "password": wrongSecret}},
		}
		if filter != nil {
			request["filter"] = filter
		}
		file := c.jsonFile(t, "subscription.json", request)
		r := c.openstack(ctx, t, "vnflcm", "subsc", "create", file)
		all := c.read(ctx, t, subscriptionsPath)
		made := slices.IndexFunc(all, func(i map[string]any) bool { return !slices.Contains(ids, fmt.Sprint(i["id"])) })
		if made < 0 {
			t.Fatalf("vnflcm subsc create has made nothing: %s%s", r.out, r.err)
		}
		id := fmt.Sprint(all[made]["id"])
		ids = append(ids, id)
		raw := c.get(ctx, t, subscriptionsPath+"/"+id)
		if diff := difference(shownSubscription.table(t, raw), r.out); diff != "" || r.err != "" {
			t.Errorf("vnflcm subsc create says %q and prints %s", r.err, diff)
		}
		if filter != nil {
			want, err := json.Marshal(filter)
			must(t, err)
			if got := members(t, raw)["filter"]; !sameJSON(t, want, got) {
				t.Errorf("the subscription has the filter %s, want %s", got, want)
			}
		}
	}
	// The same once more is the one that is there, to which the answer leads. The real client follows with another POST.
	again := c.jsonFile(t, "subscription.json", map[string]any{"callbackUri": s.URL + "/0"})
	if c.client == "" {
		c.refuses(ctx, t, "The resource has no method POST; it has DELETE, GET.", "vnflcm", "subsc", "create", again)
	} else {
		c.prints(ctx, t, shownSubscription.table(t, c.get(ctx, t, subscriptionsPath+"/"+ids[0])), "vnflcm", "subsc", "create", again)
	}

	list := listed{subscriptionColumns, c.read(ctx, t, subscriptionsPath)}
	if len(list.objects) != len(ids) {
		t.Errorf("there are %d subscriptions, want %d", len(list.objects), len(ids))
	}
	c.prints(ctx, t, list.table(), "vnflcm", "subsc", "list")
	c.prints(ctx, t, list.json(t), "vnflcm", "subsc", "list", "-f", "json")
	one := listed{subscriptionColumns, []map[string]any{{"id": ids[1], "callbackUri": s.URL + "/1"}}}
	c.prints(ctx, t, one.table(), "vnflcm", "subsc", "list", "--filter", "(eq,callbackUri,"+s.URL+"/1)")
	c.prints(ctx, t, one.value(), "vnflcm", "subsc", "list", "--filter", "(eq,operationTypes,SCALE)", "-f", "value")
	c.shows(ctx, t, shownSubscription, subscriptionsPath+"/"+ids[1], "vnflcm", "subsc", "show", ids[1])

	c.refuses(ctx, t, "Can not find requested vnf lcm subscriptions: "+nobody, "vnflcm", "subsc", "show", nobody)
	gone := newSubscriber(t)
	gone.Close()
	c.refuses(ctx, t, "Failed to Test Notification", "vnflcm", "subsc", "create", c.jsonFile(t, "gone.json", map[string]any{"callbackUri": gone.URL}))
	c.prints(ctx, t, "Lccn Subscription '"+ids[0]+"' is deleted successfully\n", "vnflcm", "subsc", "delete", ids[0])
	c.refuses(ctx, t, "Failed to delete Lccn Subscription with ID '"+ids[0]+"': Can not find requested vnf lcm subscription: "+ids[0]+
		"\nFailed to delete 1 of 1 Lccn Subscriptions.", "vnflcm", "subsc", "delete", ids[0])
	c.prints(ctx, t, "All specified Lccn Subscriptions are deleted successfully\n", "vnflcm", "subsc", "delete", ids[1], ids[2])
	c.prints(ctx, t, "\n", "vnflcm", "subsc", "list")
}

// versions asks for the versions of the API, of each major one that the client knows.
func (c *commander) versions(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, v := range []struct {
		args         []string
		path, prefix string
	}{
		{nil, "/vnflcm/api_versions", "/vnflcm"}, {[]string{"--major-version", "1"}, "/vnflcm/v1/api_versions", "/vnflcm/v1"},
	} {
		want := drawn([]string{"Field", "Value"}, [][]string{{"uriPrefix", v.prefix}, {"apiVersions", "[{'version': '1.3.0', 'isDeprecated': False}]"}})
		c.prints(ctx, t, want, append([]string{"vnflcm", "versions"}, v.args...)...)
		var raw strings.Builder
		raw.WriteString("{\n  \"uriPrefix\": \"" + v.prefix + "\",\n  \"apiVersions\": [\n    {\n      \"version\": \"1.3.0\",\n      \"isDeprecated\": false\n    }\n  ]\n}\n")
		c.prints(ctx, t, raw.String(), append([]string{"vnflcm", "versions", "-f", "json"}, v.args...)...)
	}
	c.refuses(ctx, t, "The resource could not be found.", "vnflcm", "versions", "--major-version", "2") // which is not served
	c.refuses(ctx, t, "Invalid input: Major version 3 is not supported", "vnflcm", "versions", "--major-version", "3")
}

// latest is the id of an instance's youngest op occ.
func (l *lab) latest(ctx context.Context, t *testing.T, id string) string {
	t.Helper()
	ops := l.read(ctx, t, opOccsPath+"?filter=(eq,vnfInstanceId,"+id+")")
	if len(ops) == 0 {
		t.Fatalf("instance %s has no op occ", id)
	}
	last := slices.MaxFunc(ops, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["startTime"]), fmt.Sprint(b["startTime"]))
	})
	return fmt.Sprint(last["id"])
}

// awaitOp waits until an operation rests, which must be in the state.
func (l *lab) awaitOp(ctx context.Context, t *testing.T, op string, want sol003.LcmOperationState) *sol003.VnfLcmOpOcc {
	t.Helper()
	got, err := l.api.AwaitOpOcc(ctx, op)
	must(t, err)
	if got.OperationState != want {
		t.Fatalf("%s %s is %s, want %s: %+v", got.Operation, op, got.OperationState, want, got.Error)
	}
	return got
}

// vnfcs are the ids of an instance's VNFCs of a VDU.
func (l *lab) vnfcs(ctx context.Context, t *testing.T, id, vdu string) []string {
	t.Helper()
	vnf, err := l.api.Instance(ctx, id)
	must(t, err)
	return slices.Sorted(maps.Keys(serversOf(vnf.InstantiatedVnfInfo, vdu)))
}

// serversOf are the servers of a VDU's VNFCs, by VNFC.
func serversOf(info *sol003.InstantiatedVnfInfo, vdu string) map[string]string {
	out := map[string]string{}
	if info == nil {
		return out
	}
	for _, v := range info.VnfcResourceInfo {
		if v.VduId == vdu {
			out[v.Id] = v.ComputeResource.ResourceId
		}
	}
	return out
}

// sameJSON tells whether two texts are the same JSON.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	normal := func(raw []byte) string {
		var v any
		must(t, json.Unmarshal(raw, &v))
		out, err := json.Marshal(v)
		must(t, err)
		return string(out)
	}
	return normal(a) == normal(b)
}
