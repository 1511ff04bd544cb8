package e2e

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

const userData = "UserData/multi_port_user_data.py"

// script is a user data script whose class does what body says.
func script(body string) map[string][]byte {
	return map[string][]byte{userData: []byte("import time\n\n\nclass MultiPortUserData:\n\n    @staticmethod\n    def instantiate(base_hot, vnfd, request, grant):\n        " + body + "\n")}
}

// template is an overlay that replaces a text of our top template.
func template(t *testing.T, old, text string) map[string][]byte {
	t.Helper()
	return edited(t, "multi-port", "BaseHOT/default/multi_port_top.yaml", old, text)
}

// definition is an overlay that replaces a text of one of the cluster's definitions.
func definition(t *testing.T, file, old, text string) map[string][]byte {
	t.Helper()
	return edited(t, "kubernetes-cluster", "Definitions/"+file, old, text)
}

func edited(t *testing.T, pkg, name, old, text string) map[string][]byte {
	t.Helper()
	files, err := deploy.Files(pkg)
	must(t, err)
	if !strings.Contains(string(files[name]), old) {
		t.Fatalf("%s has no %q", name, old)
	}
	return map[string][]byte{name: []byte(strings.ReplaceAll(string(files[name]), old, text))}
}

// TestFailingInstantiations lets instantiations fail in every way: each ends in FAILED_TEMP, or in ROLLED_BACK when
// nothing had been begun, within its time and with words that name what failed. Rolled back, none leaves anything.
func TestFailingInstantiations(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{Env: []string{
		// Long enough for scripts and stacks that are as they should be, on a slow machine too.
		"VNFM_OPENSTACK_USER_DATA_TIMEOUT=15s", "VNFM_OPENSTACK_STACK_TIMEOUT=45s",
	}})
	vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
	must(t, err)
	t.Run("group", func(t *testing.T) { l.failing(ctx, t, vim) })
	l.checkNothingLeft(t)
	l.checkNoSecrets(t)
}

// failing runs the cases of TestFailingInstantiations beside one another.
func (l *lab) failing(ctx context.Context, t *testing.T, vim string) {
	t.Helper()
	params := func(kv ...string) map[string]any {
		out := map[string]any{}
		for n := 0; n < len(kv); n += 2 {
			out[kv[n]] = kv[n+1]
		}
		return out
	}
	const path, class = "lcm-operation-user-data", "lcm-operation-user-data-class"
	const failedTemp, rolledBack = sol003.LcmOperationStateFailedTemp, sol003.LcmOperationStateRolledBack
	for _, c := range []struct {
		name    string
		pkg     string // multi-port when empty
		overlay map[string][]byte
		params  map[string]any // instead of the request's additionalParams
		fault   *vimsim.Fault  // of the instance's stack
		state   sol003.LcmOperationState
		says    []string
	}{
		{name: "a script that fails", overlay: script(`raise ValueError("the words of the script")`), state: failedTemp,
			says: []string{"the words of the script", "ValueError", userData + ":8"}},
		{name: "a script that hangs", overlay: script(`time.sleep(1000)`), state: failedTemp, says: []string{"user data", "timeout[sec]: 15"}},
		{name: "a script that never rests", overlay: script("while True: pass"), state: failedTemp, says: []string{"user data", "timeout[sec]: 15"}},
		{name: "a script that returns no dict", overlay: script(`return [1]`), state: failedTemp, says: []string{"not in dict format"}},
		{name: "a script that is no Python", overlay: map[string][]byte{userData: []byte("class (")}, state: failedTemp, says: []string{"SyntaxError", "multi_port_user_data.py, line 1"}},
		{name: "a script that exits", overlay: script(`import os; os._exit(3)`), state: failedTemp, says: []string{"without a result", "3"}},
		{name: "a script that is missing", params: params(path, "UserData/none.py", class, "X"), state: failedTemp, says: []string{"UserData/none.py"}},
		{name: "a script outside the package", params: params(path, "../../../etc/passwd.py", class, "X"), state: failedTemp, says: []string{"failed to get UserData path"}},
		{name: "a class that is missing", params: params(path, userData, class, "Nothing"), state: failedTemp, says: []string{"failed to get UserData class"}},
		{name: "a script without a class", params: params(path, userData), state: failedTemp, says: []string{path, class}},
		{name: "no Base HOT", overlay: map[string][]byte{"BaseHOT/default/multi_port_top.yaml": nil}, state: failedTemp, says: []string{"Base HOT"}},
		{name: "a Base HOT that is no YAML", overlay: map[string][]byte{"BaseHOT/default/multi_port_top.yaml": []byte("a: [")}, state: failedTemp, says: []string{"BaseHOT/default/multi_port_top.yaml"}},
		{name: "a template that Heat refuses", overlay: template(t, "OS::Nova::ServerGroup", "OS::Nova::Nonsense"), state: failedTemp, says: []string{"OS::Nova::Nonsense"}},
		{name: "a nested template that is missing", overlay: map[string][]byte{"BaseHOT/default/nested/worker.yaml": nil}, state: failedTemp, says: []string{"worker.yaml"}},
		{name: "a network that there is not", overlay: template(t, "{ get_param: [ nfv, CP, worker_CP1, network ] }", "nosuchnet"), state: failedTemp, says: []string{"nosuchnet"}},
		{name: "a server that Nova cannot make", fault: &vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectFail, Reason: "No valid host was found."},
			state: failedTemp, says: []string{"No valid host was found.", "vnflcm_"}},
		{name: "a quota", fault: &vimsim.Fault{ResourceType: "OS::Neutron::Port", Action: "create", Effect: vimsim.EffectQuota, Reason: "Quota exceeded for resources: ['port']."},
			state: failedTemp, says: []string{"Quota exceeded"}},
		{name: "a server that hangs", fault: &vimsim.Fault{ResourceType: "OS::Nova::Server", Action: "create", Effect: vimsim.EffectHang},
			state: failedTemp, says: []string{"not completed within 45 seconds", "stack"}},
		{name: "a Heat that is gone for good", fault: &vimsim.Fault{ResourceType: "heat", Effect: vimsim.EffectReset}, state: failedTemp, says: []string{"VIM", "the connection was reset"}},
		{name: "an image that is another", pkg: "kubernetes-cluster", overlay: map[string][]byte{"Files/images/node.img": []byte("another")}, state: failedTemp,
			says: []string{"checksum verification failed"}},
		{name: "a management driver that there is not", pkg: "kubernetes-cluster", overlay: definition(t, "cluster_df_simple.yaml", "mgmt-drivers-kubernetes", "mgmt-drivers-unknown"),
			state: rolledBack, says: []string{"mgmt-drivers-unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name, flavour := "multi-port", "default"
			if c.pkg != "" {
				name, flavour = c.pkg, "simple"
			}
			raw, vnfd := variant(t, name, c.overlay)
			_, err := l.api.Onboard(ctx, raw)
			must(t, err)
			vnf, err := l.api.CreateInstance(ctx, vnfd)
			must(t, err)
			repair := func() {}
			if c.fault != nil {
				f := *c.fault
				f.Name = "vnflcm_" + vnf.Id
				fault := l.Sim.Cloud.AddFault(f)
				repair = func() { l.Sim.Cloud.RemoveFault(fault) }
			}
			request := maps.Clone(deploy.InstantiateRequest(name, flavour))
			if c.params != nil {
				request["additionalParams"] = c.params
			}
			op := l.failed(ctx, t, vnf.Id, vim, request, c.state)
			for _, part := range append(c.says, vnf.Id) {
				if !strings.Contains(op.Error.Detail, part) {
					t.Errorf("the error is %q, want it to name %q", op.Error.Detail, part)
				}
			}
			l.checkFailed(ctx, t, vnf.Id, vim, op, request)
			repair()
			l.rollBack(ctx, t, vnf.Id, op)
		})
	}
}

// failed instantiates, which must end in the state with an error.
func (l *lab) failed(ctx context.Context, t *testing.T, id, vim string, request map[string]any, state sol003.LcmOperationState) *sol003.VnfLcmOpOcc {
	t.Helper()
	opID, err := l.api.Instantiate(ctx, id, vim, request)
	must(t, err)
	op, err := l.api.AwaitOpOcc(ctx, opID)
	must(t, err)
	if op.OperationState != state || op.Error == nil || op.Error.Status != 500 {
		t.Fatalf("the instantiation is %s: %+v, want %s", op.OperationState, op.Error, state)
	}
	return op
}

// checkFailed checks what a failed instantiation leaves: an instance that is not instantiated, one notification for each
// state, and, while the operation may be retried, no room for another.
func (l *lab) checkFailed(ctx context.Context, t *testing.T, id, vim string, op *sol003.VnfLcmOpOcc, request map[string]any) {
	t.Helper()
	vnf, err := l.api.Instance(ctx, id)
	must(t, err)
	if vnf.InstantiationState != sol003.InstantiationStateNotInstantiated || vnf.InstantiatedVnfInfo != nil {
		t.Errorf("after the failure the instance is %s, with %+v", vnf.InstantiationState, vnf.InstantiatedVnfInfo)
	}
	rows, err := l.Notifications(ctx, id)
	must(t, err)
	states := map[string]int{}
	for _, r := range rows {
		if r.OpOccID == op.Id {
			for _, s := range []string{"STARTING", "PROCESSING", "FAILED_TEMP", "ROLLED_BACK"} {
				if strings.Contains(string(r.Body), `"operationState":"`+s+`"`) {
					states[s]++
				}
			}
		}
	}
	want := map[string]int{"STARTING": 1, "PROCESSING": 1, string(op.OperationState): 1}
	if op.OperationState == sol003.LcmOperationStateRolledBack {
		delete(want, "PROCESSING")
	}
	if !maps.Equal(states, want) {
		t.Errorf("the notifications of the operation are of %v, want %v", states, want)
	}
	if op.OperationState != sol003.LcmOperationStateFailedTemp {
		return
	}
	if _, err := l.api.Instantiate(ctx, id, vim, request); err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("a second instantiation while the first is FAILED_TEMP: %v", err)
	}
	if err := l.api.DeleteInstance(ctx, id); err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("the deletion of an instance whose instantiation is FAILED_TEMP: %v", err)
	}
}

// act posts one of the tasks of an op occ (SOL003 v2.6.1 §5.4.14 and following) and waits until it has come to the state.
func (l *lab) act(ctx context.Context, t *testing.T, op, task string, want sol003.LcmOperationState) {
	t.Helper()
	_, err := l.api.Call(ctx, "POST", "/vnflcm/v1/vnf_lcm_op_occs/"+op+"/"+task, nil, nil)
	must(t, err)
	got, err := l.api.AwaitOpOcc(ctx, op)
	must(t, err)
	if got.OperationState != want {
		t.Fatalf("after %s the operation is %s, want %s: %+v", task, got.OperationState, want, got.Error)
	}
}

// rollBack rolls a failed instantiation back, unless it is already, and deletes the instance.
func (l *lab) rollBack(ctx context.Context, t *testing.T, id string, op *sol003.VnfLcmOpOcc) {
	t.Helper()
	if op.OperationState == sol003.LcmOperationStateFailedTemp {
		l.act(ctx, t, op.Id, "rollback", sol003.LcmOperationStateRolledBack)
	}
	if s := l.Find(id); s != nil {
		t.Errorf("after the rollback there is stack %s in %s", s.Name, s.Status)
	}
	must(t, l.api.DeleteInstance(ctx, id))
}

// TestCloudGoesAwayAndComesBack cuts the cloud off in the middle of operations: they wait for it, and complete.
func TestCloudGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{VIM: vimsim.Config{Latency: map[string]time.Duration{"OS::Nova::Server": 5 * time.Second}}})
	vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
	must(t, err)
	raw, vnfd := variant(t, "multi-port", nil)
	pkg, err := l.api.Onboard(ctx, raw)
	must(t, err)
	vnf, err := l.api.CreateInstance(ctx, vnfd)
	must(t, err)
	met := func() int { return strings.Count(l.Logs(), "a step failed and is tried again") }
	outage := func(effect string) {
		t.Helper()
		must(t, harness.Await(ctx, "the operation has come to the cloud", func(context.Context) (bool, error) {
			s := l.Find(vnf.Id)
			return s != nil && strings.HasSuffix(s.Status, "IN_PROGRESS"), nil
		}))
		before := met()
		fault := l.Sim.Cloud.AddFault(vimsim.Fault{ResourceType: "*", Effect: effect, Status: 503})
		must(t, harness.Await(ctx, "the node has met the outage", func(context.Context) (bool, error) {
			return met() > before, nil
		}))
		l.Sim.Cloud.RemoveFault(fault)
	}
	_, err = l.api.Instantiate(ctx, vnf.Id, vim, deploy.InstantiateRequest("multi-port", "default"))
	must(t, err)
	outage(vimsim.EffectReset)
	l.ended(ctx, t, vnf.Id, sol003.LcmOperationTypeInstantiate)
	if s := l.Find(vnf.Id); s == nil || s.Status != "CREATE_COMPLETE" {
		t.Errorf("after the outage the stack is %+v", s)
	}
	creates := 0
	for _, e := range l.Sim.Cloud.Journal() {
		if e.Service == "heat" && e.Method == "POST" && e.Name == "vnflcm_"+vnf.Id {
			creates++
		}
	}
	if creates != 1 {
		t.Errorf("Heat was asked for the stack %d times", creates)
	}
	_, err = l.api.Terminate(ctx, vnf.Id)
	must(t, err)
	outage(vimsim.EffectHTTP)
	l.ended(ctx, t, vnf.Id, sol003.LcmOperationTypeTerminate)
	must(t, l.api.DeleteInstance(ctx, vnf.Id))
	must(t, l.api.DeletePackage(ctx, pkg.Id))
	l.checkNothingLeft(t)
	l.checkNoSecrets(t)
}

// TestFailingTermination lets Heat fail to delete: the operation is FAILED_TEMP and names the resource, and the instance
// is still what it was. Once Heat can, a retry completes.
func TestFailingTermination(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{})
	vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
	must(t, err)
	raw, vnfd := variant(t, "multi-port", nil)
	_, err = l.api.Onboard(ctx, raw)
	must(t, err)
	vnf, err := l.api.CreateInstance(ctx, vnfd)
	must(t, err)
	_, err = l.api.Instantiate(ctx, vnf.Id, vim, deploy.InstantiateRequest("multi-port", "default"))
	must(t, err)
	l.ended(ctx, t, vnf.Id, sol003.LcmOperationTypeInstantiate)
	fault := l.Sim.Cloud.AddFault(vimsim.Fault{ResourceType: "OS::Nova::Server", Name: "worker", Action: "delete", Effect: vimsim.EffectFail, Reason: "the hypervisor does not let go"})
	id, err := l.api.Terminate(ctx, vnf.Id)
	must(t, err)
	op, err := l.api.AwaitOpOcc(ctx, id)
	must(t, err)
	if op.OperationState != sol003.LcmOperationStateFailedTemp || op.Error == nil {
		t.Fatalf("the termination is %s: %+v", op.OperationState, op.Error)
	}
	for _, part := range []string{"the hypervisor does not let go", "worker", "vnflcm_" + vnf.Id} {
		if !strings.Contains(op.Error.Detail, part) {
			t.Errorf("the error is %q, want it to name %q", op.Error.Detail, part)
		}
	}
	got, err := l.api.Instance(ctx, vnf.Id)
	must(t, err)
	if got.InstantiationState != sol003.InstantiationStateInstantiated || got.InstantiatedVnfInfo == nil {
		t.Errorf("after the failed termination the instance is %s", got.InstantiationState)
	}
	l.Sim.Cloud.RemoveFault(fault)
	l.act(ctx, t, id, "retry", sol003.LcmOperationStateCompleted)
	must(t, l.api.DeleteInstance(ctx, vnf.Id))
	l.checkNothingLeft(t)
}
