package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// trace is what an act leaves behind.
type trace struct {
	VIM      map[string]int // how many things of each kind the VIM holds
	Stack    string         // the stack's status, whatever it was that came to it
	Steps    []string       // the journal's lines
	Requests map[string]int // to the VIM, of the kinds that must not come twice
	Kept     int            // servers from before it
}

// reference is what acts leave behind when nobody dies, by name.
type reference map[string]*trace

// trace looks at what the newest act has left behind.
func (l *lane) trace(ctx context.Context, s *subject, a *act) (*trace, error) {
	t := &trace{Requests: l.requests(s.mark)}
	if a.anew {
		delete(t.Requests, "heat update")
	}
	lines, err := l.journal(ctx, s.op)
	for _, line := range lines {
		t.Steps = append(t.Steps, line.Name)
	}
	if _, stable := l.serversIn(a.to); !stable {
		return t, err
	}
	t.VIM = l.counts()
	if s := l.Find(s.id); s != nil {
		_, t.Stack, _ = strings.Cut(s.Status, "_")
	}
	if a.kept != nil {
		for _, id := range l.servers() {
			if slices.Contains(s.servers, id) {
				t.Kept++
			}
		}
	}
	return t, err
}

// expect sees that what an act without a death has left behind is what it should be.
func (l *lane) expect(s *subject, a *act, t *trace) error {
	want, stable := l.serversIn(a.to)
	switch {
	case !stable:
		return nil
	case t.VIM["servers"] != want:
		return fmt.Errorf("there are %d servers, want %d", t.VIM["servers"], want)
	case a.kept != nil && t.Kept != a.kept(len(s.servers)):
		return fmt.Errorf("of %d servers %d are still there, want %d", len(s.servers), t.Kept, a.kept(len(s.servers)))
	case a.to == nothing && !cmp.Equal(t.VIM, l.empty):
		return fmt.Errorf("something is left in the VIM (-want +got):\n%s", cmp.Diff(l.empty, t.VIM))
	}
	return nil
}

// judge sees that an act has left behind what the reference has, and that what is known of the instance is so.
func (l *lane) judge(ctx context.Context, ref reference, s *subject, a *act) error {
	got, err := l.trace(ctx, s, a)
	if err != nil {
		return err
	}
	var errs []error
	if d := cmp.Diff(ref[a.name], got); d != "" {
		errs = append(errs, fmt.Errorf("something else than without a death is left behind (-want +got):\n%s", d))
	}
	for _, stack := range l.Sim.Cloud.State().Stacks {
		if stack.Name != "vnflcm_"+s.id && stack.Status != "DELETE_COMPLETE" {
			errs = append(errs, fmt.Errorf("there is another stack, %s in %s", stack.Name, stack.Status))
		}
	}
	return errors.Join(append(errs, l.judgeOpOcc(ctx, s, a), l.judgeInstance(ctx, s), l.judgeNotifications(ctx, s))...)
}

// judgeOpOcc looks at an act's op occ: its journal, its fence, its triggers.
func (l *lane) judgeOpOcc(ctx context.Context, s *subject, a *act) error {
	var fence int64
	if err := l.conn.QueryRow(ctx, `SELECT fence FROM vnf_lcm_op_occs WHERE id = $1::uuid`, s.op).Scan(&fence); err != nil {
		return err
	}
	if fence > s.fence+1 {
		return fmt.Errorf("the op occ ended under fence %d, and was accepted under %d: it was taken over more often than nodes died", fence, s.fence)
	}
	if a.until != "" {
		return nil
	}
	last := a.states[len(a.states)-1]
	return l.judgeJournal(ctx, s.op, fence, last == sol003.LcmOperationStateCompleted || last == sol003.LcmOperationStateRolledBack)
}

// judgeInstance compares what the API says of an instance with what the VIM holds.
func (l *lane) judgeInstance(ctx context.Context, s *subject) error {
	if _, stable := l.serversIn(s.shape); !stable {
		return nil
	}
	vnf, err := l.api().Instance(ctx, s.id)
	if err != nil {
		return err
	}
	info := vnf.InstantiatedVnfInfo
	switch {
	case s.shape == nothing && vnf.InstantiationState == sol003.InstantiationStateNotInstantiated && info == nil:
		return nil
	case s.shape == nothing || vnf.InstantiationState != sol003.InstantiationStateInstantiated || info == nil:
		return fmt.Errorf("the instance, which is %s, is shown as %s with %+v", s.shape, vnf.InstantiationState, info)
	case s.description != "" && vnf.VnfInstanceDescription != s.description:
		return fmt.Errorf("the description is %q, want %q", vnf.VnfInstanceDescription, s.description)
	}
	state := l.Sim.Cloud.State()
	var errs []error
	same := func(what string, want, got []string) {
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			errs = append(errs, fmt.Errorf("the instance has other %s than the VIM (-VIM +instance):\n%s", what, d))
		}
	}
	var servers, volumes []string
	links := map[string]string{} // resource by id of the link port
	for _, v := range info.VnfcResourceInfo {
		servers = append(servers, v.ComputeResource.ResourceId)
	}
	for _, v := range info.VirtualStorageResourceInfo {
		volumes = append(volumes, v.StorageResource.ResourceId)
	}
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		for _, p := range vl.VnfLinkPorts {
			links[p.Id] = p.ResourceHandle.ResourceId
		}
	}
	same("servers", texts(state.Servers, "id"), servers)
	same("volumes", texts(state.Volumes, "id"), volumes)
	networks := map[string]string{} // name by id of the port
	names := map[string]string{}
	for _, n := range state.Networks {
		names[fmt.Sprint(n["id"])] = fmt.Sprint(n["name"])
	}
	for _, p := range state.Ports {
		networks[fmt.Sprint(p["id"])] = names[fmt.Sprint(p["network_id"])]
	}
	ports := 0
	for _, v := range info.VnfcResourceInfo {
		for _, cp := range v.VnfcCpInfo {
			if cp.VnfLinkPortId == "" {
				continue
			}
			ports++
			network, there := networks[links[cp.VnfLinkPortId]]
			if !there {
				errs = append(errs, fmt.Errorf("connection point %s of VNFC %s has port %q, which the VIM does not have", cp.CpdId, v.Id, links[cp.VnfLinkPortId]))
			}
			if cp.CpdId == l.cp && s.network != "" && network != s.network {
				errs = append(errs, fmt.Errorf("the port of connection point %s of VNFC %s is in network %s, not %s", cp.CpdId, v.Id, network, s.network))
			}
		}
	}
	if ports != len(links) {
		errs = append(errs, fmt.Errorf("%d link ports belong to connection points of VNFCs, of %d", ports, len(links)))
	}
	running, status, level := sol003.VnfOperationalStateStarted, "ACTIVE", 0
	if s.shape == stopped {
		running, status = sol003.VnfOperationalStateStopped, "SHUTOFF"
	}
	if s.shape == larger {
		level = 1
	}
	for _, server := range state.Servers {
		if server["status"] != status {
			errs = append(errs, fmt.Errorf("server %v is %v, want %s", server["id"], server["status"], status))
		}
	}
	if info.VnfState != running || len(info.VnfcInfo) != len(servers) {
		errs = append(errs, fmt.Errorf("the VNF is %s with %d VNFCs, want %s with %d", info.VnfState, len(info.VnfcInfo), running, len(servers)))
	}
	for _, v := range info.VnfcInfo {
		if v.VnfcState != running {
			errs = append(errs, fmt.Errorf("VNFC %s is %s, want %s", v.Id, v.VnfcState, running))
		}
	}
	for _, a := range info.ScaleStatus {
		if want := map[bool]int{true: level}[a.AspectId == l.aspect]; a.ScaleLevel != want {
			errs = append(errs, fmt.Errorf("the level of aspect %s is %d, want %d", a.AspectId, a.ScaleLevel, want))
		}
	}
	return errors.Join(errs...)
}

// texts returns an attribute of all documents.
func texts(docs []map[string]any, key string) []string {
	var out []string
	for _, d := range docs {
		out = append(out, fmt.Sprint(d[key]))
	}
	return out
}

// judgeJournal sees that an op occ's steps are in order, each once and, of one that has succeeded, done, and that no trigger
// of it waits.
func (l *lane) judgeJournal(ctx context.Context, opOcc string, fence int64, done bool) error {
	steps, err := l.journal(ctx, opOcc)
	if err != nil {
		return err
	}
	var errs []error
	for i, s := range steps {
		if done && !s.Done || s.Seq != i+1 || s.Fence > fence {
			errs = append(errs, fmt.Errorf("line %d of the journal: %+v under fence %d", i, s, fence))
		}
	}
	var left int
	if err := l.conn.QueryRow(ctx, `SELECT count(*) FROM river_job WHERE kind = 'lcm_operation' AND args ->> 'opOcc' = $1
		AND state IN ('available', 'pending', 'retryable', 'scheduled')`, opOcc).Scan(&left); err != nil {
		return err
	}
	if left > 0 {
		errs = append(errs, fmt.Errorf("%d triggers still wait", left))
	}
	return errors.Join(errs...)
}

type journalLine struct {
	Seq   int
	Name  string
	Done  bool
	Fence int64
}

func (l *lane) journal(ctx context.Context, opOcc string) ([]journalLine, error) {
	rows, err := l.conn.Query(ctx, `SELECT seq, name, done_at IS NOT NULL, fence FROM lcm_op_steps WHERE op_occ_id = $1::uuid ORDER BY seq`, opOcc)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[journalLine])
}

// requests counts the VIM's successful requests since a mark, of the kinds that must not come twice.
func (l *lane) requests(since int64) map[string]int {
	n := map[string]int{}
	for _, e := range l.Sim.Cloud.Journal() {
		if e.Seq <= since || e.Status >= 300 || e.Status == 0 {
			continue
		}
		parts := strings.Split(e.Path, "/")
		switch last := parts[len(parts)-1]; {
		case e.Service == "heat" && (e.Method == http.MethodPut || e.Method == http.MethodPatch) && len(parts) > 3 && parts[len(parts)-3] == "stacks":
			n["heat update"]++
		case e.Service == "heat" && e.Method == http.MethodPost && (last == "stacks" || last == "signal"),
			e.Service == "glance" && e.Method == http.MethodPost && last == "images",
			e.Service == "nova" && e.Method == http.MethodPost && last == "action":
			n[e.Service+" "+last]++
		}
	}
	return n
}

// judgePackage sees that an onboarded package is whole and there once, and that no content is stored twice. garbage is
// how many unfinished contents a broken transfer may have left for the collector.
func (l *lane) judgePackage(ctx context.Context, id string, garbage int) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	var state, digest string
	var fence int64
	var described, sealed bool
	if err := l.conn.QueryRow(ctx, `SELECT p.onboarding_state, p.fence, p.descriptor IS NOT NULL, p.sealed IS NOT NULL, encode(c.sha256, 'hex')
		FROM vnf_packages p JOIN contents c ON c.id = p.content_id WHERE p.id = $1::uuid`, id).Scan(&state, &fence, &described, &sealed, &digest); err != nil {
		return fmt.Errorf("read package %s: %w", id, err)
	}
	if state != "ONBOARDED" || !described || sealed || digest == "" {
		bad("the package is %s (descriptor %v, credentials kept %v)", state, described, sealed)
	}
	var packages, whole, unfinished, damaged, waiting int
	if err := l.conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM vnf_packages),
		(SELECT count(*) FROM contents WHERE sha256 IS NOT NULL),
		(SELECT count(*) FROM contents c WHERE sha256 IS NULL AND NOT EXISTS (SELECT FROM vnf_packages p WHERE p.content_id = c.id)),
		(SELECT count(*) FROM contents c WHERE sha256 IS NOT NULL AND
			size <> (SELECT coalesce(sum(length(data)), 0) FROM content_chunks k WHERE k.content_id = c.id)),
		(SELECT count(*) FROM river_job WHERE kind = 'onboard_package' AND state IN ('available', 'pending', 'retryable', 'scheduled'))`).
		Scan(&packages, &whole, &unfinished, &damaged, &waiting); err != nil {
		return err
	}
	if packages != 2 || whole != 2 || damaged != 0 {
		bad("%d packages with %d contents, %d of them damaged; want 2, 2 and 0", packages, whole, damaged)
	}
	if unfinished > garbage {
		bad("%d contents are unfinished, want %d at most", unfinished, garbage)
	}
	if waiting > 0 {
		bad("%d triggers still wait", waiting)
	}
	return errors.Join(errs...)
}
