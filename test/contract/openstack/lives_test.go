package openstack_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// livesTime is how long all lives may take together.
const livesTime = 55 * time.Minute

// manager is the built program that manages VNFs on the targets.
type manager struct {
	*harness.Cluster
	api *harness.Client
	ctx context.Context //nolint:containedctx // ends with the test
}

// newManager starts the program; env are settings of it.
func newManager(t *testing.T, env ...string) *manager {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), livesTime)
	t.Cleanup(cancel)
	if onReal() { // a lab on a small machine has much to do
		env = append([]string{"VNFM_OPENSTACK_STACK_TIMEOUT=20m"}, env...)
	} else {
		env = append([]string{
			"VNFM_OPENSTACK_POLL_MIN=10ms", "VNFM_OPENSTACK_POLL_MAX=60ms", "VNFM_OPENSTACK_REQUESTS_PER_SECOND=0",
			"VNFM_OPENSTACK_SETTLE=2s",
		}, env...)
	}
	c := harness.New(t, harness.Options{OpenStack: &harness.OpenStack{}, Env: env})
	return &manager{Cluster: c, api: c.API(0), ctx: ctx}
}

// shape is what an instance is to consist of.
type shape struct {
	flavour string
	request doc                 // an InstantiateVnfRequest without vimConnectionInfo
	vnfcs   map[string]int      // by VDU
	cps     map[string][]string // by VDU
	volumes map[string][]string // storages by VDU, of each of its VNFCs
	// external are the networks of the external links by the links' ids; cps connected to them are in externalCPs.
	external    map[string]string
	externalCPs map[string][]string
	managed     map[string]string // networks of externally managed links, by the link's descriptor
	links       []string          // the VNFD's virtual links
	levels      map[string]int    // by aspect
	images      map[string]string // names of the images that servers have, by VDU
	addresses   map[string]string // fixed addresses, by CP
	stopped     bool              // servers are shut off
	spread      []string          // VDUs whose servers are on hosts of their own
	together    []string          // VDUs whose servers are all on one host
}

func (s *shape) clone() shape {
	c := *s
	c.vnfcs, c.external, c.levels, c.images = maps.Clone(s.vnfcs), maps.Clone(s.external), maps.Clone(s.levels), maps.Clone(s.images)
	c.addresses = maps.Clone(s.addresses)
	return c
}

func (s *shape) count() int {
	n := 0
	for _, c := range s.vnfcs {
		n += c
	}
	return n
}

// life is an instance in the course of its life on a target.
type life struct {
	*manager
	*target
	id, vim string
	shape   shape
	now     *sol003.VnfInstance
	last    string   // the latest operation's op occ
	brought []string // what the test has brought to the project
}

// register registers a target's project as a VIM.
func (m *manager) register(t *testing.T, c *target) string {
	t.Helper()
	id, err := m.api.Register(m.ctx, c.tenant.project+"-"+unique(), harness.OpenStack{
		AuthURL: c.authURL, Region: c.region, User: c.tenant.user, Password: c.tenant.password, Project: c.tenant.project,
	})
	must(t, err)
	return id
}

// onboard onboards a package.
func (m *manager) onboard(t *testing.T, zip []byte) *sol003.VnfPkgInfo {
	t.Helper()
	p, err := m.api.Onboard(m.ctx, zip)
	must(t, err)
	return p
}

// create onboards a package and creates an instance of it on a target.
func (m *manager) create(t *testing.T, c *target, zip []byte, vnfdID string, s shape) *life {
	t.Helper()
	m.onboard(t, zip)
	return m.createOf(t, c, vnfdID, s)
}

// createOf creates an instance of a package that is onboarded.
func (m *manager) createOf(t *testing.T, c *target, vnfdID string, s shape) *life {
	t.Helper()
	v := &life{manager: m, target: c, vim: m.register(t, c), shape: s.clone(), brought: c.left(t)}
	i, err := m.api.CreateInstance(m.ctx, vnfdID)
	must(t, err)
	v.id = i.Id
	t.Cleanup(func() {
		if t.Failed() {
			v.abandon(t)
		}
	})
	return v
}

// abandon brings an instance to an end whose life has gone wrong, so that it leaves nothing on the target.
func (v *life) abandon(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), v.limit)
	defer cancel()
	if ops, err := v.api.OpOccs(ctx, v.id); err == nil && len(ops) > 0 {
		for _, o := range ops {
			if o.OperationState != sol003.LcmOperationStateCompleted {
				_ = v.api.OpOccTask(ctx, o.Id, "cancel", doc{"cancelMode": "FORCEFUL"})
				_, _ = v.api.AwaitOpOcc(ctx, o.Id)
				_ = v.api.OpOccTask(ctx, o.Id, "fail", nil)
			}
		}
	}
	if op, err := v.api.Terminate(ctx, v.id); err == nil {
		_, _ = v.api.AwaitOpOcc(ctx, op)
	}
	for _, s := range list(v.heat.get(t, "stacks?name=vnflcm_"+v.id).doc, "stacks") {
		v.heat.do(t, http.MethodDelete, "stacks/"+text(s, "stack_name")+"/"+text(s, "id"), nil)
	}
	for _, i := range list(v.glance.get(t, "images").doc, "images") {
		if text(i, "owner") == v.target.project {
			v.glance.do(t, http.MethodDelete, "images/"+text(i, "id"), nil)
		}
	}
}

// ends waits until the operation has ended in a state, and returns it.
func (v *life) ends(t *testing.T, op string, state sol003.LcmOperationState) *sol003.VnfLcmOpOcc {
	t.Helper()
	var got *sol003.VnfLcmOpOcc
	pause := 15 * time.Millisecond
	if v.real() {
		pause = 400 * time.Millisecond
	}
	for {
		var err error
		got, err = v.api.OpOcc(v.ctx, op)
		must(t, err)
		switch got.OperationState {
		case sol003.LcmOperationStateStarting, sol003.LcmOperationStateProcessing, sol003.LcmOperationStateRollingBack:
			time.Sleep(pause)
			continue
		}
		break
	}
	if got.OperationState != state {
		detail := ""
		if got.Error != nil {
			detail = got.Error.Detail
		}
		t.Fatalf("%s of %s is %s, want %s: %s", got.Operation, v.id, got.OperationState, state, detail)
	}
	return got
}

// starts asks for a task and returns its op occ's id.
func (v *life) starts(t *testing.T, task string, body doc) string {
	t.Helper()
	op, err := v.api.Task(v.ctx, v.id, task, body)
	must(t, err)
	v.last = op
	return op
}

// does carries a task out, which must complete and change so many VNFCs in each way, and looks at what is there then.
func (v *life) does(t *testing.T, task string, body doc, changes map[string]int) {
	t.Helper()
	v.completes(t, task, v.starts(t, task, body), changes)
}

// completes waits until an operation has completed, which must have changed so many VNFCs in each way, and looks at what is
// there then.
func (v *life) completes(t *testing.T, what, id string, changes map[string]int) {
	t.Helper()
	begun := time.Now()
	op := v.ends(t, id, sol003.LcmOperationStateCompleted)
	got := map[string]int{}
	if op.ResourceChanges != nil {
		for _, c := range op.ResourceChanges.AffectedVnfcs {
			got[string(c.ChangeType)]++
		}
	}
	if diff := cmp.Diff(changes, got); diff != "" {
		t.Errorf("%s affects VNFCs (- want, + got):\n%s", what, diff)
	}
	t.Logf("%s took %.1f s", what, time.Since(begun).Seconds())
	v.check(t, what)
}

// instantiates instantiates the instance.
func (v *life) instantiates(t *testing.T) {
	t.Helper()
	v.does(t, "instantiate", harness.OnVIM(v.shape.request, v.vim), map[string]int{"ADDED": v.shape.count()})
}

// scales scales an aspect by so many steps, which is so many VNFCs of each VDU: in when negative. VNFCs that stay keep their
// servers.
func (v *life) scales(t *testing.T, aspect string, steps int, by map[string]int) {
	t.Helper()
	kind, change, n := "SCALE_OUT", "ADDED", steps
	if steps < 0 {
		kind, change, n = "SCALE_IN", "REMOVED", -steps
	}
	v.resizes(t, map[string]int{aspect: steps}, by, change, "scale", doc{"type": kind, "aspectId": aspect, "numberOfSteps": n})
}

// resizes carries out a task that brings aspects other levels, and VDUs other numbers of VNFCs.
func (v *life) resizes(t *testing.T, levels, by map[string]int, change, task string, body doc) {
	t.Helper()
	before := v.servers()
	changed := 0
	for aspect, n := range levels {
		v.shape.levels[aspect] += n
	}
	for vdu, n := range by {
		if v.shape.vnfcs[vdu] += n; v.shape.vnfcs[vdu] == 0 {
			delete(v.shape.vnfcs, vdu)
		}
		changed += max(n, -n)
	}
	v.does(t, task, body, map[string]int{change: changed})
	after := v.servers()
	gone := 0
	for vnfc, server := range before {
		switch after[vnfc] {
		case server:
		case "":
			gone++
		default:
			t.Errorf("%s has given VNFC %s server %s in place of %s", task, vnfc, after[vnfc], server)
		}
	}
	if change == "REMOVED" && gone != changed || change == "ADDED" && gone != 0 {
		t.Errorf("%s: %d of the VNFCs before have gone, %d are %s", task, gone, changed, change)
	}
}

// servers are the servers of the VNFCs.
func (v *life) servers(vdus ...string) map[string]string {
	out := map[string]string{}
	for _, c := range v.now.InstantiatedVnfInfo.VnfcResourceInfo {
		if len(vdus) == 0 || slices.Contains(vdus, c.VduId) {
			out[c.Id] = c.ComputeResource.ResourceId
		}
	}
	return out
}

// heals heals one VNFC of a VDU: it gets another server and other volumes, keeps its ports, and the others keep what they have.
func (v *life) heals(t *testing.T, vdu string) {
	t.Helper()
	before, ports, volumes := v.servers(), v.portsOf(), v.volumesOf()
	of := slices.Sorted(maps.Keys(v.servers(vdu)))
	sick := of[len(of)-1]
	v.does(t, "heal", doc{"vnfcInstanceId": []string{sick}, "cause": "it looks ill"}, map[string]int{"MODIFIED": 1})
	after := v.servers()
	for vnfc, server := range before {
		if now := after[vnfc]; now == "" || (now == server) == (vnfc == sick) {
			t.Errorf("VNFC %s had server %s and has %q; healed was %s", vnfc, server, now, sick)
		}
	}
	if diff := cmp.Diff(ports, v.portsOf()); diff != "" {
		t.Errorf("the heal has changed ports:\n%s", diff)
	}
	for vnfc, had := range volumes {
		if has := v.volumesOf()[vnfc]; len(had) > 0 && slices.Equal(had, has) == (vnfc == sick) {
			t.Errorf("VNFC %s had volumes %s and has %s; healed was %s", vnfc, had, has, sick)
		}
	}
}

// healsAll heals the whole VNF: nothing of it is what it was, and it has the size that it had.
func (v *life) healsAll(t *testing.T) {
	t.Helper()
	before := v.servers()
	v.does(t, "heal", doc{"cause": "all of it looks ill"}, map[string]int{"REMOVED": v.shape.count(), "ADDED": v.shape.count()})
	after := v.servers()
	for vnfc, server := range before {
		if after[vnfc] != "" || slices.Contains(slices.Collect(maps.Values(after)), server) {
			t.Errorf("VNFC %s with server %s is still there after the whole VNF was healed", vnfc, server)
		}
	}
}

// moves connects the CPs of external links to other networks: servers stay.
func (v *life) moves(t *testing.T, to map[string]string) {
	t.Helper()
	var links []any
	for _, id := range slices.Sorted(maps.Keys(to)) {
		cps := v.shape.externalCPs[id]
		link := extLink(id, to[id], cps...)
		if v.shape.addresses[cps[0]] != "" {
			address, subnet := v.freeAddress(t, to[id])
			link, v.shape.addresses[cps[0]] = addressed(link, address, subnet), address
		}
		links = append(links, link)
	}
	maps.Copy(v.shape.external, to)
	before := v.servers()
	v.does(t, "change_ext_conn", doc{"extVirtualLinks": links}, map[string]int{})
	if diff := cmp.Diff(before, v.servers()); diff != "" {
		t.Errorf("the change of the external connectivity has changed servers:\n%s", diff)
	}
	op, err := v.api.OpOcc(v.ctx, v.last)
	must(t, err)
	changed := map[string]string{}
	for _, l := range op.ChangedExtConnectivity {
		changed[l.Id] = l.ResourceHandle.ResourceId
	}
	if diff := cmp.Diff(to, changed); diff != "" {
		t.Errorf("changedExtConnectivity (- want, + got):\n%s", diff)
	}
}

// ending terminates the instance and deletes it.
func (v *life) ending(t *testing.T, kind string) {
	t.Helper()
	body := doc{"terminationType": kind}
	if kind == "GRACEFUL" {
		body["gracefulTerminationTimeout"] = 1
	}
	begun := time.Now()
	v.ends(t, v.starts(t, "terminate", body), sol003.LcmOperationStateCompleted)
	t.Logf("terminate took %.1f s", time.Since(begun).Seconds())
	must(t, v.api.DeleteInstance(v.ctx, v.id))
	v.checkGone(t)
}

// networkID is the id of a network of the target.
func (c *target) networkID(t *testing.T, name string) string {
	t.Helper()
	return text(one(t, c.neutron.get(t, "networks?name="+name), "networks"), "id")
}

// must fails the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// extLink is an ExtVirtualLinkData that connects CPs to a network, which gives them addresses.
func extLink(id, network string, cpds ...string) doc {
	var cps []any
	for _, cpd := range cpds {
		cps = append(cps, doc{"cpdId": cpd, "cpConfig": []any{doc{"cpProtocolData": []any{doc{"layerProtocol": "IP_OVER_ETHERNET"}}}}})
	}
	return doc{"id": id, "resourceId": network, "extCps": cps}
}

// numbered are names that differ in their numbers, from 1.
func numbered(format string, n int) []string {
	var out []string
	for k := range n {
		out = append(out, fmt.Sprintf(format, k+1))
	}
	return out
}

// bringImage has the project have an image of a name, until the test ends.
func (c *target) bringImage(t *testing.T, name string) {
	t.Helper()
	image := doc{"name": name, "container_format": "bare", "disk_format": "raw"}
	id := text(c.glance.do(t, http.MethodPost, "images", image).is(t, http.StatusCreated).doc, "id")
	c.glance.do(t, http.MethodPut, "images/"+id+"/file", []byte("an image")).is(t, http.StatusNoContent)
	t.Cleanup(func() { c.glance.do(t, http.MethodDelete, "images/"+id, nil) })
}
