package e2e

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// verification is what the API shows of a verification.
type verification struct {
	Result          string
	DifferenceCount int
	Problem         string
	Differences     []struct{ Kind, Part, ID, Name, Found string }
}

// kinds lists kind, part and name of the differences, sorted.
func (v *verification) kinds() []string {
	out := []string{}
	for _, d := range v.Differences {
		out = append(out, strings.TrimSpace(d.Kind+" "+d.Part+" "+d.Name))
	}
	return sorted(out)
}

// drifter is an instance that somebody else changes in the VIM.
type drifter struct {
	*lab
	cli   *lab // with our own client
	nova  *harness.Client
	id    string
	vimID string
}

func (l *lab) drifter(ctx context.Context, t *testing.T) *drifter {
	t.Helper()
	vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
	must(t, err)
	c, s := ourMultiPort(t)
	pkg, err := l.api.Onboard(ctx, c.zip)
	must(t, err)
	i, err := l.api.CreateInstance(ctx, pkg.VnfdId)
	must(t, err)
	op, err := l.api.Instantiate(ctx, i.Id, vim, s.request)
	must(t, err)
	l.awaitOp(ctx, t, op, sol003.LcmOperationStateCompleted)
	d := &drifter{lab: l, cli: l.ours(ctx, t), nova: harness.NewClient(l.Sim.URL), id: i.Id, vimID: vim}
	d.nova.Token, err = l.Token(ctx)
	must(t, err)
	return d
}

// server returns the id of the first server of a VDU, and its VNFC's.
func (d *drifter) server(ctx context.Context, t *testing.T, vdu string) (server, vnfc string) {
	t.Helper()
	i, err := d.api.Instance(ctx, d.id)
	must(t, err)
	for _, v := range i.InstantiatedVnfInfo.VnfcResourceInfo {
		if v.VduId == vdu {
			return v.ComputeResource.ResourceId, v.Id
		}
	}
	t.Fatalf("there is no VNFC of %s", vdu)
	return "", ""
}

// recorded reads what was last seen, once it is so.
func (d *drifter) recorded(ctx context.Context, t *testing.T, so func(v *verification) bool) *verification {
	t.Helper()
	var v *verification
	must(t, harness.Await(ctx, "it is seen", func(ctx context.Context) (bool, error) {
		got := new(verification)
		r, err := d.api.Call(ctx, http.MethodGet, "/vnfm/v1/verifications/"+d.id, nil, got)
		if r != nil && r.Status == http.StatusNotFound {
			return false, nil
		}
		v = got
		return err == nil && so(got), err
	}))
	return v
}

// verify runs our command, which must end with the exit status, and returns what it says beside its list.
func (d *drifter) verify(ctx context.Context, t *testing.T, code int, args ...string) result {
	t.Helper()
	r := d.cli.openstack(ctx, t, append([]string{"vnflcm", "verify"}, args...)...)
	if r.code != code {
		t.Fatalf("verify %s: exit status %d, not %d\n%s%s", strings.Join(args, " "), r.code, code, r.out, r.err)
	}
	return r
}

// mend runs the heal that a verification has named.
func (d *drifter) mend(ctx context.Context, t *testing.T, r result) {
	t.Helper()
	_, named, ok := strings.Cut(r.err, "To mend it: vnfm ")
	if !ok {
		t.Fatalf("nothing is named that mends it: %q", r.err)
	}
	named, _, _ = strings.Cut(named, "\n")
	if healed := d.cli.openstack(ctx, t, append(strings.Fields(named), "--wait")...); healed.code != 0 {
		t.Fatalf("%s: exit status %d\n%s%s", named, healed.code, healed.out, healed.err)
	}
}

// TestVerify has somebody change in the VIM what an instance consists of: two nodes see it by themselves, our client tells of it
// and names what mends it, and after that there is no difference.
func TestVerify(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{Nodes: 2, Env: []string{"VNFM_VERIFY_INTERVAL=1s", "VNFM_VERIFY_PER_SECOND=1000"}})
	d := l.drifter(ctx, t)
	same := func(v *verification) bool { return v.Result == "SAME" }
	differs := func(v *verification) bool { return v.Result == "DIFFERS" }

	d.recorded(ctx, t, same)
	if r := d.verify(ctx, t, 0, d.id, "-f", "json"); strings.TrimSpace(r.out) != "[]" {
		t.Errorf("of what is as it is recorded: %s", r.out)
	}
	d.verify(ctx, t, 0, "--all")

	server, vnfc := d.server(ctx, t, "worker")
	_, err := d.nova.Call(ctx, http.MethodDelete, "/compute/v2.1/servers/"+server, nil, nil)
	must(t, err)
	v := d.recorded(ctx, t, differs)
	if want := []string{"MISSING VNFC worker"}; !slices.Equal(v.kinds(), want) || v.Differences[0].ID != vnfc {
		t.Fatalf("a deleted server: %+v", v)
	}
	if r := d.verify(ctx, t, 3, d.id, "-f", "value", "-c", "Kind", "-c", "ID", "-c", "Resource ID", "-c", "Mend"); strings.TrimSpace(r.out) !=
		strings.Join([]string{"MISSING", vnfc, server, "heal vnfcInstanceId", vnfc}, " ") {
		t.Errorf("it prints %q", r.out)
	}
	if r := d.verify(ctx, t, 3, "--all", "-f", "value", "-c", "VNF Instance ID", "-c", "Differences"); strings.TrimSpace(r.out) != d.id+" 1" {
		t.Errorf("all that differ: %q", r.out)
	}
	if r := d.verify(ctx, t, 3, d.id, "--recorded"); !strings.Contains(r.out, server) {
		t.Errorf("what is recorded: %q", r.out)
	}
	d.gauge(ctx, t, "1")
	d.mend(ctx, t, d.verify(ctx, t, 3, d.id))
	d.verify(ctx, t, 0, d.id)
	d.recorded(ctx, t, same)
	d.gauge(ctx, t, "0")

	// While the VIM does not answer, what was seen stays, and why it may be old stands beside it.
	fault := d.Sim.Cloud.AddFault(vimsim.Fault{ResourceType: "nova", Effect: vimsim.EffectHTTP, Status: 503, Reason: "Nova is away"})
	if r := d.verify(ctx, t, 1, d.id); strings.Contains(r.err, "tackerFault") || !strings.Contains(r.err, "VIM VIM0") {
		t.Errorf("without Nova: %q", r.err)
	}
	if v := d.recorded(ctx, t, func(v *verification) bool { return v.Result == "UNVERIFIED" }); !strings.Contains(v.Problem, "VIM VIM0") {
		t.Errorf("without Nova: %+v", v)
	}
	d.verify(ctx, t, 1, d.id, "--recorded")
	d.Sim.Cloud.RemoveFault(fault)
	d.recorded(ctx, t, same)

	// The whole stack is gone: so is what is left to be compared, and a heal of the whole VNF brings it back.
	stack := d.Find(d.id)
	_, err = d.nova.Call(ctx, http.MethodDelete, "/orchestration/v1/"+stack.Project+"/stacks/"+stack.Name+"/"+stack.ID, nil, nil)
	must(t, err)
	v = d.recorded(ctx, t, func(v *verification) bool { return differs(v) && v.Differences[0].Kind == "MISSING" })
	if want := []string{"MISSING VNF"}; !slices.Equal(v.kinds(), want) {
		t.Errorf("a deleted stack: %+v", v)
	}
	d.mend(ctx, t, d.verify(ctx, t, 3, d.id))
	d.verify(ctx, t, 0, d.id)

	op, err := l.api.Terminate(ctx, d.id)
	must(t, err)
	l.awaitOp(ctx, t, op, sol003.LcmOperationStateCompleted)
	if r := d.verify(ctx, t, 1, d.id); !strings.Contains(r.err, "NOT_INSTANTIATED") {
		t.Errorf("what is terminated: %q", r.err)
	}
	d.verify(ctx, t, 0, "--all")
	must(t, l.api.DeleteInstance(ctx, d.id))
	l.checkNothingLeft(t)
	l.checkNoSecrets(t)
	for what, want := range map[string]string{
		"the first sight of a difference": "a VNF instance is not what is recorded of it", "its end": "a difference between a VNF instance and its record is over",
	} {
		if n := strings.Count(l.Logs(), want); n == 0 || n > 6 {
			t.Errorf("the log tells %d times of %s", n, what)
		}
	}
}

// gauge waits until both nodes' metrics tell how many instances of the VIM differ.
func (d *drifter) gauge(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	for _, n := range d.Nodes {
		must(t, harness.Await(ctx, "the metrics tell of "+want, func(ctx context.Context) (bool, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL+"/metrics", nil)
			if err != nil {
				return false, err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return false, err
			}
			defer func() { _ = resp.Body.Close() }()
			text, err := io.ReadAll(resp.Body)
			return strings.Contains(string(text), `vnfm_instance_drift{vim="`+d.vimID+`"} `+want+"\n"), err
		}))
	}
}
