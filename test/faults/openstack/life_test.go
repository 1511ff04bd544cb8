package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// life is the life of one VNF instance in a simulated cloud of its own.
type life struct {
	*testing.T
	ctx        context.Context
	house      *house
	api        *harness.Client
	sim        *vimsim.Server
	vim, vimID string // the VIM's name and id
	id         string // the instance's
	empty      map[string]int
	was        shape
	broken     string              // a server that somebody has put into ERROR, and that no operation is to bring right
	failed     string              // the op occ that is rolled back
	owed       map[string][]string // states that are to be told next, by op occ
	heard      map[string]int      // how many have been told of before
	turn       bool                // whether it has a turn
}

// lives counts the lives, to name their VIMs.
var lives atomic.Int64

// longest is how long a life may take, turns that it waits for included.
const longest = 20 * time.Minute

func born(t *testing.T, h *house) *life {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), longest, fmt.Errorf("the life has taken longer than %s", longest))
	t.Cleanup(cancel)
	sim, err := vimsim.Serve(context.WithoutCancel(ctx), "127.0.0.1:0", vimsim.Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	l := &life{
		T: t, ctx: ctx, house: h, api: h.API(0), sim: sim, vim: fmt.Sprintf("vim-%d", lives.Add(1)),
		owed: map[string][]string{}, heard: map[string]int{},
	}
	l.empty = l.census()
	l.vimID, err = l.api.RegisterVIM(ctx, l.vim, sim.AuthURL)
	l.ok(err)
	made, err := l.api.CreateInstance(ctx, h.vnfd.first)
	l.ok(err)
	l.id = made.Id
	return l
}

func (l *life) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// census counts what there is in the cloud.
func (l *life) census() map[string]int {
	counts := l.sim.Cloud.State().Counts
	maps.DeleteFunc(counts, func(of string, _ int) bool { return of == "tokens" || of == "deleted_stacks" })
	return counts
}

// endsInVain is ends for an operation that only waits until it fails, which takes no turn.
func (l *life) endsInVain(op, state string) *sol003.VnfLcmOpOcc {
	l.Helper()
	l.rests()
	defer l.takesTurn()
	return l.ends(op, state)
}

// takesTurn waits for a turn.
func (l *life) takesTurn() {
	l.Helper()
	select {
	case turns <- struct{}{}:
		l.turn = true
	case <-l.ctx.Done():
		l.Errorf("waiting for a turn: %v", context.Cause(l.ctx))
	}
}

// rests gives the turn back, if it has one.
func (l *life) rests() {
	if l.turn {
		l.turn = false
		<-turns
	}
}

func (l *life) task(task string, body any) string {
	l.Helper()
	op, err := l.api.Task(l.ctx, l.id, task, body)
	l.ok(err)
	l.owed[op] = []string{"STARTING", "PROCESSING"}
	return op
}

func (l *life) modify(patch any) string {
	l.Helper()
	op, err := l.api.Modify(l.ctx, l.id, patch)
	l.ok(err)
	l.owed[op] = []string{"PROCESSING"} // it needs no grant
	return op
}

// recover asks for a retry, a rollback or the end of a failed operation.
func (l *life) recover(op, way string) {
	l.Helper()
	l.ok(l.api.OpOccTask(l.ctx, op, way, nil))
	l.owed[op] = map[string][]string{"retry": {"PROCESSING"}, "rollback": {"ROLLING_BACK"}}[way]
}

// ends waits until the operation has come to a state, of which the subscriber must have been told, and of those before it, in
// order.
func (l *life) ends(op, state string) *sol003.VnfLcmOpOcc {
	l.Helper()
	var told []string
	for {
		all, more := l.house.told.states(op)
		told = all[l.heard[op]:]
		if n := len(told); n > 0 && !slices.Contains([]string{"STARTING", "PROCESSING", "ROLLING_BACK"}, told[n-1]) {
			l.heard[op] += n
			break
		}
		select {
		case <-more:
		case <-l.ctx.Done():
			o, err := l.api.OpOcc(context.WithoutCancel(l.ctx), op)
			l.Fatalf("%v: waiting for %s after %v: %+v %v", context.Cause(l.ctx), state, told, o, err)
		}
	}
	o, err := l.api.OpOcc(l.ctx, op)
	l.ok(err)
	if string(o.OperationState) != state {
		l.Fatalf("%s is %s, not %s: %s", o.Operation, o.OperationState, state, detailOf(o))
	}
	want := append(slices.Clone(l.owed[op]), state)
	if state == "ROLLED_BACK" && len(want) == 3 { // what fails before it has begun ends so
		want = []string{"STARTING", "ROLLED_BACK"}
	}
	if d := cmp.Diff(want, told); d != "" {
		l.Errorf("the notifications of %s (-want +got):\n%s", o.Operation, d)
	}
	l.owed[op] = nil
	return o
}

func detailOf(o *sol003.VnfLcmOpOcc) string {
	if o.Error == nil {
		return "no error"
	}
	return o.Error.Detail
}

func (l *life) does(op string) {
	l.Helper()
	l.ends(op, "COMPLETED")
}

func (l *life) instance() *sol003.VnfInstance {
	l.Helper()
	i, err := l.api.Instance(l.ctx, l.id)
	l.ok(err)
	return i
}

// vnfc returns the id of the first VNFC of a VDU.
func (l *life) vnfc(vdu string) string {
	l.Helper()
	for _, v := range l.instance().InstantiatedVnfInfo.VnfcResourceInfo {
		if v.VduId == vdu {
			return v.Id
		}
	}
	l.Fatalf("there is no VNFC of %s", vdu)
	return ""
}

// shown returns the VNFCs that the instance shows, by id, with their servers.
func (l *life) shown() map[string]string {
	l.Helper()
	out := map[string]string{}
	if info := l.instance().InstantiatedVnfInfo; info != nil {
		for _, v := range info.VnfcResourceInfo {
			out[v.Id] = v.ComputeResource.ResourceId
		}
	}
	return out
}

// is compares the instance, and what there is in the cloud, with what they are to be like.
func (l *life) is(want shape, when string) {
	l.Helper()
	i := l.instance()
	if want.gone {
		if i.InstantiationState != "NOT_INSTANTIATED" || i.InstantiatedVnfInfo != nil {
			l.Errorf("%s: the instance is %s: %+v", when, i.InstantiationState, i.InstantiatedVnfInfo)
		}
		if d := cmp.Diff(l.empty, l.census()); d != "" {
			l.Errorf("%s: left behind in the cloud (-want +got):\n%s", when, d)
		}
		return
	}
	info := i.InstantiatedVnfInfo
	if i.InstantiationState != "INSTANTIATED" || info == nil {
		l.Errorf("%s: the instance is %s", when, i.InstantiationState)
		return
	}
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	st := l.sim.Cloud.State()
	if s := l.stack(st); s == nil || s.Status != "CREATE_COMPLETE" && s.Status != "UPDATE_COMPLETE" {
		say("the stack is %+v", s)
	}
	if info.FlavourId != want.flavour || len(info.ScaleStatus) != 1 || info.ScaleStatus[0].ScaleLevel != want.members-1 {
		say("the flavour is %s, the scale status %+v", info.FlavourId, info.ScaleStatus)
	}
	state, power := sol003.VnfOperationalStateStarted, "ACTIVE"
	if want.off {
		state, power = sol003.VnfOperationalStateStopped, "SHUTOFF"
	}
	if info.VnfState != state {
		say("the VNF is %s, not %s", info.VnfState, state)
	}
	servers := map[string]map[string]any{}
	for _, s := range st.Servers {
		servers[s["id"].(string)] = s
		if s["status"] != power && s["id"] != l.broken {
			say("server %v (%v) is %v, not %s: %v", s["name"], s["id"], s["status"], power, s["fault"])
		}
	}
	count := map[string]int{}
	for _, v := range info.VnfcResourceInfo {
		count[v.VduId]++
		if servers[v.ComputeResource.ResourceId] == nil {
			say("VNFC %s of %s has a server %q that is not there", v.Id, v.VduId, v.ComputeResource.ResourceId)
		}
		delete(servers, v.ComputeResource.ResourceId)
		if v.VduId == "VDU2" {
			l.single(st, v, want, say)
		}
	}
	if len(servers) > 0 || count["VDU1"] != want.members || count["VDU2"] != 1 {
		say("there are VNFCs %v and %d servers of nobody; %d members are wanted", count, len(servers), want.members)
	}
	volumes := map[string]bool{}
	for _, v := range st.Volumes {
		volumes[v["id"].(string)] = true
	}
	for _, s := range info.VirtualStorageResourceInfo {
		if !volumes[s.StorageResource.ResourceId] {
			say("storage %s has a volume %q that is not there", s.VirtualStorageDescId, s.StorageResource.ResourceId)
		}
	}
	counts := l.census()
	for of, n := range map[string]int{
		"stacks": 1, "servers": want.members + 1, "volumes": want.members + 1, "ports": 2 * (want.members + 1),
		"images": 1, "flavors": 1, "server_groups": 1, "volume_types": 1, "networks": 1, "subnets": 1,
	} {
		if got := counts[of] - l.empty[of]; got != n {
			say("there are %d %s, not %d", got, of, n)
		}
	}
	if len(wrong) > 0 {
		l.Errorf("%s:\n  %s", when, strings.Join(wrong, "\n  "))
	}
}

// single compares the server of VDU2.
func (l *life) single(st vimsim.State, v sol003.VnfcResourceInfo, want shape, say func(string, ...any)) {
	for _, s := range st.Servers {
		if s["id"] != v.ComputeResource.ResourceId {
			continue
		}
		image, _ := s["image"].(map[string]any)
		for _, i := range st.Images {
			if i["id"] == image["id"] && i["name"] != want.image {
				say("VDU2 has the image %v, not %s", i["name"], want.image)
			}
		}
		flavor, _ := s["flavor"].(map[string]any)
		if id := map[string]string{"small": "1", "large": "2"}[want.flavour]; flavor["id"] != id {
			say("VDU2 has the flavor %v, not %s", flavor["id"], id)
		}
	}
	raw, _ := json.Marshal(st.Ports)
	if !strings.Contains(string(raw), `"`+want.address+`"`) {
		say("no port has the address %s: %s", want.address, raw)
	}
}

// stack returns the instance's stack, nil when there is none.
func (l *life) stack(st vimsim.State) *vimsim.StackState {
	for n := range st.Stacks {
		if s := &st.Stacks[n]; s.Name == "vnflcm_"+l.id && s.Status != "DELETE_COMPLETE" {
			return s
		}
	}
	return nil
}

// refuses sees that a task of the op occ is answered 409.
func (l *life) refuses(op, task string) {
	l.Helper()
	err := l.api.OpOccTask(l.ctx, op, task, nil)
	var status *harness.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusConflict || status.Detail == "" {
		l.Errorf("%s is answered %v, not 409 with a reason", task, err)
	}
}

// dies terminates what is still there, and sees that nothing is left.
func (l *life) dies() {
	l.Helper()
	if l.instance().InstantiationState == "INSTANTIATED" {
		l.does(terminate(map[string]any{"terminationType": "FORCEFUL"})(l))
	}
	l.is(shape{gone: true}, "at the end")
	l.ok(l.api.DeleteInstance(l.ctx, l.id))
}
