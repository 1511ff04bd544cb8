package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// oneServer is a VNFD of one VDU, which becomes a stack of one server without a user data script.
const oneServer = `tosca_definitions_version: tosca_simple_yaml_1_2
description: one server
topology_template:
  inputs:
    selected_flavour: { type: string, default: simple }
  node_templates:
    VNF:
      type: tosca.nodes.nfv.VNF
      properties:
        descriptor_id: %s
        descriptor_version: '1.0'
        provider: vnfm
        product_name: One server
        software_version: '1.0'
        vnfm_info: [ vnfm ]
        flavour_id: simple
        flavour_description: one server
    VDU1:
      type: tosca.nodes.nfv.Vdu.Compute
      properties:
        name: VDU1
        description: the only one
        vdu_profile: { min_number_of_instances: 1, max_number_of_instances: 1 }
        sw_image_data: { name: cirros-0.5.2-x86_64-disk, version: '0.5.2', checksum: { algorithm: sha-256, hash: ab }, container_format: bare, disk_format: qcow2, min_disk: 0 GB, size: 0 GB }
      capabilities:
        virtual_compute:
          properties:
            requested_additional_capabilities: { properties: { requested_additional_capability_name: m1.tiny, support_mandatory: true, target_performance_parameters: { entry_schema: test } } }
            virtual_memory: { virtual_mem_size: 512 MB }
            virtual_cpu: { num_virtual_cpu: 1 }
`

// gate stands before a cloud: closed, it takes requests and never answers them.
type gate struct {
	next http.Handler

	mu     sync.Mutex
	closed chan struct{} // nil: open; closed when it opens again
	held   int
	left   int // of those held, how many have gone away
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

func (g *gate) met() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

// givenUp is how many calls have ended without an answer.
func (g *gate) givenUp() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	shut := g.closed
	if shut != nil {
		g.held++
	}
	g.mu.Unlock()
	if shut != nil {
		select {
		case <-shut:
		case <-r.Context().Done():
			g.mu.Lock()
			g.left++
			g.mu.Unlock()
		}
		panic(http.ErrAbortHandler)
	}
	g.next.ServeHTTP(w, r)
}

// gatedCloud serves a second cloud, behind a gate.
func gatedCloud(t *testing.T) (*gate, string) {
	t.Helper()
	cloud := vimsim.New(vimsim.Config{}, slog.New(slog.DiscardHandler))
	t.Cleanup(cloud.Close)
	var url string
	g := &gate{next: cloud.Handler(func() string { return url })}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	t.Cleanup(g.open)
	url = srv.URL
	return g, url + "/identity/v3"
}

// instantiated has n instances be instantiated on a VIM at once, and returns the op occs' ids.
func (l *lab) instantiated(ctx context.Context, t *testing.T, vnfd, vim string, n int) []string {
	t.Helper()
	ops := make([]string, n)
	errs := make(chan error, n)
	slots := make(chan struct{}, 8)
	for i := range n {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			vnf, err := l.api.CreateInstance(ctx, vnfd)
			if err == nil {
				ops[i], err = l.api.Instantiate(ctx, vnf.Id, vim, map[string]any{"flavourId": "simple"})
			}
			errs <- err
		}()
	}
	for range n {
		must(t, <-errs)
	}
	return ops
}

// durations waits for operations to complete and returns how long they took, sorted.
func (l *lab) durations(ctx context.Context, t *testing.T, ops []string) []time.Duration {
	t.Helper()
	var out []time.Duration
	for _, id := range ops {
		op, err := l.api.AwaitOpOcc(ctx, id)
		must(t, err)
		if op.OperationState != sol003.LcmOperationStateCompleted {
			t.Fatalf("operation %s is %s: %+v", id, op.OperationState, op.Error)
		}
		out = append(out, op.StateEnteredTime.Sub(op.StartTime))
	}
	slices.Sort(out)
	return out
}

// metric reads the values of a metric of the node that are of the VIM.
func (l *lab) metric(ctx context.Context, t *testing.T, name, vim string) (values []string) {
	t.Helper()
	r, err := l.api.Send(ctx, http.MethodGet, "/metrics", "", nil)
	must(t, err)
	for _, m := range regexp.MustCompile(`(?m)^`+name+`\{.*vim="`+vim+`".*\} (\S+)$`).FindAllStringSubmatch(string(r.Body), -1) {
		values = append(values, m[1])
	}
	return values
}

// silence is how long a call to a dead VIM lasts.
const silence = 20 * time.Second

// TestDeadVIM has a VIM take requests and not answer, with ten times as many operations on it as there are workers: those on
// another VIM do not wait for it, and when it is back all go on.
func TestDeadVIM(t *testing.T) {
	ctx := testContext(t)
	l := newLab(t, harness.Options{Env: []string{
		"VNFM_ENGINE_MAX_WORKERS=20", "VNFM_OPENSTACK_REQUEST_TIMEOUT=" + silence.String(), "VNFM_OPENSTACK_BREAKER_OPEN_FOR=5s", "VNFM_VIM_PROBE_INTERVAL=5s",
	}})
	shut, authURL := gatedCloud(t)
	living, err := l.api.RegisterVIM(ctx, "living", l.Sim.AuthURL)
	must(t, err)
	dead, err := l.api.RegisterVIM(ctx, "dead", authURL)
	must(t, err)
	vnfd := uuid.NewString()
	_, err = l.api.Onboard(ctx, csartest.Zip(t, map[string][]byte{"vnfd.yaml": fmt.Appendf(nil, oneServer, vnfd)}))
	must(t, err)

	l.durations(ctx, t, l.instantiated(ctx, t, vnfd, dead, 1)) // it has been logged in to
	before := l.durations(ctx, t, l.instantiated(ctx, t, vnfd, living, 20))
	shut.close()
	waiting := l.instantiated(ctx, t, vnfd, dead, 200)
	must(t, harness.Await(ctx, "the node has met the silence", func(context.Context) (bool, error) { return shut.met() > 0, nil }))
	during := l.durations(ctx, t, l.instantiated(ctx, t, vnfd, living, 20))
	ended := shut.givenUp()
	ratio := func(at int) float64 { return float64(during[at]) / float64(before[at]) }
	t.Logf("20 operations beside 200 on a dead VIM: median %s instead of %s (× %.2f), longest %s instead of %s (× %.2f)",
		during[10], before[10], ratio(10), during[19], before[19], ratio(19))
	// As long as none of the dead one's calls has ended, nothing can have waited for that; a machine may be slow.
	if limit := 5*before[19] + time.Second; during[19] > limit && ended > 0 {
		t.Errorf("beside a dead VIM, of whose calls %d have ended, an operation took %s, more than %s: it has waited for them", ended, during[19], limit)
	}
	must(t, harness.Await(ctx, "the circuit is open", func(ctx context.Context) (bool, error) {
		return slices.Contains(l.metric(ctx, t, "vnfm_vim_circuit_state", dead), "2"), nil
	}))
	again := l.durations(ctx, t, l.instantiated(ctx, t, vnfd, living, 20))
	t.Logf("with the circuit open: median %s, longest %s", again[10], again[19])
	if values := l.metric(ctx, t, "vnfm_vim_circuit_state", living); slices.Contains(values, "2") {
		t.Errorf("the living VIM's circuits are %v", values)
	}
	for _, id := range waiting {
		op, err := l.api.OpOcc(ctx, id)
		must(t, err)
		if s := op.OperationState; s != sol003.LcmOperationStateStarting && s != sol003.LcmOperationStateProcessing {
			t.Fatalf("operation %s on the dead VIM is %s: %+v", id, s, op.Error)
		}
	}
	met := shut.met()
	shut.open()
	back := time.Now()
	l.durations(ctx, t, waiting)
	t.Logf("the dead VIM was asked %d times; %s after it was back all 200 operations were completed", met, time.Since(back).Round(time.Millisecond))
	if logs := l.Logs(); !strings.Contains(logs, "service has not answered since ") {
		t.Error("the log does not say that the VIM does not answer")
	}
	l.checkNoSecrets(t)
}

// TestWrongPassword has a VIM's password change behind our back: operations fail and say so, Keystone is not asked again and
// again, and with the new password they go on.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	const changed = "another-devstack"
	l := newLab(t, harness.Options{VIM: vimsim.Config{Users: []vimsim.User{{Name: "tenant", Password: harness.Password, Projects: map[string][]string{"nfv": {"member"}}}}}})
	vim, err := l.api.Register(ctx, "VIM0", harness.OpenStack{AuthURL: l.Sim.AuthURL, User: "tenant", Password: harness.Password, Project: harness.Project})
	must(t, err)
	vnfd := uuid.NewString()
	_, err = l.api.Onboard(ctx, csartest.Zip(t, map[string][]byte{"vnfd.yaml": fmt.Appendf(nil, oneServer, vnfd)}))
	must(t, err)
	l.durations(ctx, t, l.instantiated(ctx, t, vnfd, vim, 1))
	l.Sim.Cloud.SetPassword("tenant", changed)
	l.Sim.Cloud.ExpireTokens()
	ops := l.instantiated(ctx, t, vnfd, vim, 10)
	for _, id := range ops {
		op, err := l.api.AwaitOpOcc(ctx, id)
		must(t, err)
		if op.OperationState != sol003.LcmOperationStateFailedTemp || op.Error == nil || !strings.Contains(op.Error.Detail, "VIM VIM0: Keystone refuses the credentials of user tenant") {
			t.Fatalf("operation %s is %s: %+v", id, op.OperationState, op.Error)
		}
	}
	if refused := l.metric(ctx, t, "vnfm_vim_logins_total", vim); !slices.Contains(refused, "1") || len(refused) != 2 {
		t.Errorf("logins by outcome: %v", refused)
	}
	_, err = l.api.Call(ctx, http.MethodPut, "/v1.0/vims/"+vim+".json", map[string]any{"vim": map[string]any{"auth_cred": map[string]any{"password": changed}}}, nil)
	must(t, err)
	for _, id := range ops {
		must(t, l.api.OpOccTask(ctx, id, "retry", nil))
	}
	l.durations(ctx, t, ops)
}

// TestRegionsAndLimits has a VIM of two regions: the request chooses, and the registration says how hard the VIM may be
// pressed.
func TestRegionsAndLimits(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{VIM: vimsim.Config{Regions: []string{"RegionTwo"}}})
	register := func(name string, extra map[string]any) (out struct {
		Vim struct {
			ID            string `json:"id"`
			PlacementAttr struct {
				Regions []string `json:"regions"`
			} `json:"placement_attr"`
		} `json:"vim"`
	}, err error) {
		_, err = l.api.Call(ctx, http.MethodPost, "/v1.0/vims.json", map[string]any{"vim": map[string]any{
			"auth_url": l.Sim.AuthURL, "type": "openstack", "name": name, "is_default": false, "extra": extra,
			"vim_project": map[string]any{"name": harness.Project, "project_domain_name": "Default"},
			"auth_cred":   map[string]any{"username": harness.User, "password": harness.Password, "user_domain_name": "Default"},
		}}, &out)
		return out, err
	}
	_, err := register("greedy", map[string]any{"max_concurrent_requests": 0})
	var refused *harness.StatusError
	if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || !strings.Contains(refused.Detail, "max_concurrent_requests must be a whole number") {
		t.Errorf("%v", err)
	}
	vim, err := register("VIM0", map[string]any{"max_concurrent_requests": 2, "requests_per_second": 200})
	must(t, err)
	if diff := cmp.Diff([]string{"RegionOne", "RegionTwo"}, vim.Vim.PlacementAttr.Regions); diff != "" {
		t.Errorf("regions (- want, + got):\n%s", diff)
	}
	vnfd := uuid.NewString()
	_, err = l.api.Onboard(ctx, csartest.Zip(t, map[string][]byte{"vnfd.yaml": fmt.Appendf(nil, oneServer, vnfd)}))
	must(t, err)
	in := func(region string) (string, error) {
		vnf, err := l.api.CreateInstance(ctx, vnfd)
		must(t, err)
		return l.api.Task(ctx, vnf.Id, "instantiate", map[string]any{"flavourId": "simple", "vimConnectionInfo": []any{map[string]any{
			"id": "c", "vimId": vim.Vim.ID, "vimType": "openstack", "accessInfo": map[string]any{"region": region},
		}}})
	}
	if _, err := in("RegionThree"); !errors.As(err, &refused) || !strings.Contains(refused.Detail, "Region not found for the VimConnection: "+vim.Vim.ID) {
		t.Errorf("%v", err)
	}
	var ops []string
	for _, region := range []string{"RegionOne", "RegionTwo", "RegionTwo"} {
		op, err := in(region)
		must(t, err)
		ops = append(ops, op)
	}
	l.durations(ctx, t, ops)
}
