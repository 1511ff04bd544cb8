package openstack

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/infratest"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// lab is a driver before a simulated VIM.
type lab struct {
	*testing.T
	sim    *vimsim.Server
	driver *Driver
	target *lcm.VimTarget
	clock  *infratest.Clock
}

func newLab(t *testing.T, sim vimsim.Config, cfg Config) *lab {
	t.Helper()
	srv, err := vimsim.Serve(t.Context(), "127.0.0.1:0", sim, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	if cfg.PollMin == 0 {
		cfg.PollMin, cfg.PollMax = time.Millisecond, 5*time.Millisecond
		if cfg.StackTimeout == 0 { // a wait without an end is to be told
			cfg.StackTimeout = 10 * time.Minute
		}
	}
	if cfg.BreakerOpenFor == 0 { // waits pass on a clock of the test's, this one does not
		cfg.BreakerOpenFor = time.Millisecond
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg.Transport, cfg.RequestsPerSecond, cfg.Burst = transport, 1e5, 1e5
	l := &lab{T: t, sim: srv, driver: New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))}
	l.target = &lcm.VimTarget{VIM: lcm.VIM{
		ID: "3e2f1a70-4a43-4b8a-8c55-e1ad1f5f9f01", Name: "VIM0", Type: lcm.VimOpenStack, AuthURL: srv.AuthURL, Version: 1,
		Auth:    map[string]any{"username": "nfv_user", "password": "devstack", "user_domain_name": "Default", "cert_verify": "False"},
		Project: map[string]any{"name": "nfv", "project_domain_name": "Default"}, Regions: []string{"RegionOne"},
	}}
	return l
}

func (l *lab) runner() *infratest.Runner { return &infratest.Runner{Driver: l.driver, Clock: l.clock} }

func (l *lab) instantiate(i *lcm.Instance, f *vnfd.Flavour, fsys fs.FS, req *sol003.InstantiateVnfRequest) *lcm.Execution {
	return infratest.Execution(l.T, sol003.LcmOperationTypeInstantiate, i, l.target, f, req, opener(fsys))
}

func (l *lab) terminate(i *lcm.Instance, f *vnfd.Flavour, req *sol003.TerminateVnfRequest) *lcm.Execution {
	if req == nil {
		req = &sol003.TerminateVnfRequest{TerminationType: sol003.TerminateVnfRequestTerminationTypeForceful}
	}
	return infratest.Execution(l.T, sol003.LcmOperationTypeTerminate, i, l.target, f, req, nil)
}

// requests counts the changing requests to a service, by method and the path's end.
func (l *lab) requests(service, method, suffix string) (n int) {
	for _, e := range l.sim.Cloud.Journal() {
		if e.Service == service && e.Method == method && strings.HasSuffix(e.Path, suffix) {
			n++
		}
	}
	return n
}

// left returns what there is of an instance in the VIM.
func (l *lab) left(instanceID string) (found []string) {
	l.Helper()
	c, err := l.driver.connect(context.WithoutCancel(l.Context()), l.target)
	if err != nil {
		l.Fatal(err)
	}
	s, err := c.findStack(l.Context(), stackName(instanceID))
	if err != nil {
		l.Fatal(err)
	}
	if s != nil {
		found = append(found, s.Name+" "+s.Status)
	}
	images, err := c.imagesOf(l.Context(), instanceID)
	if err != nil {
		l.Fatal(err)
	}
	for _, i := range images {
		found = append(found, "image of "+i.Node+" "+i.Status)
	}
	return found
}

func functionalRequest() *sol003.InstantiateVnfRequest {
	var links []sol003.ExtVirtualLinkData
	for _, cp := range []string{"VDU1_CP1", "VDU1_CP2", "VDU2_CP1", "VDU2_CP2"} {
		links = append(links, sol003.ExtVirtualLinkData{
			Id: "link-" + cp, ResourceId: "net0", ExtCps: []sol003.VnfExtCpData{{CpdId: cp, CpConfig: []sol003.VnfExtCpConfig{{}}}},
		})
	}
	return &sol003.InstantiateVnfRequest{FlavourId: "simple", ExtVirtualLinks: links, AdditionalParams: map[string]any{
		"lcm-operation-user-data": "./UserData/lcm_user_data.py", "lcm-operation-user-data-class": "SampleUserData",
	}}
}

func levelled(req *sol003.InstantiateVnfRequest, id string) *sol003.InstantiateVnfRequest {
	req.InstantiationLevelId = id
	return req
}

func TestLifecycle(t *testing.T) {
	for name, tt := range map[string]struct {
		pkg, flavour           string
		req                    *sol003.InstantiateVnfRequest
		servers, images, ports int
	}{
		"cluster":             {"cluster", "complex", clusterRequest(""), 5, 2, 5},
		"cluster, largest":    {"cluster", "complex", clusterRequest("level_2"), 9, 2, 9},
		"functional":          {"functional", "simple", functionalRequest(), 3, 0, 15},
		"functional, largest": {"functional", "simple", levelled(functionalRequest(), "instantiation_level_2"), 5, 0, 25},
	} {
		for _, lose := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, results lost %t", name, lose), func(t *testing.T) {
				t.Parallel()
				l := newLab(t, vimsim.Config{}, Config{})
				fsys, f := testPackage(t, tt.pkg, tt.flavour)
				i := newInstance()
				x := l.instantiate(i, f, fsys, tt.req)
				r := l.runner()
				r.LoseFirst = lose
				if err := r.Run(t.Context(), x); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"images", "images-active", "user-data", "stack-create", "stack-wait", "inventory"}, r.Seen); diff != "" {
					t.Error(diff)
				}
				if n := l.requests("heat", http.MethodPost, "/stacks"); n != 1 {
					t.Errorf("%d stacks were created", n)
				}
				if n := l.requests("glance", http.MethodPost, "/images"); n != tt.images {
					t.Errorf("%d images were created, not %d", n, tt.images)
				}
				checkInventory(t, x, tt.servers, tt.ports)
				s, err := loadInfra(x.Instance)
				if err != nil || s.StackID == "" || s.StackName != "vnflcm_"+i.ID || len(s.Images) != tt.images || !json.Valid(s.Parameters) {
					t.Errorf("kept: %+v %v", s, err)
				}
				x = l.terminate(x.Instance, f, nil)
				r = l.runner()
				r.LoseFirst = lose
				if err := r.Run(t.Context(), x); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"stack-delete", "stack-delete-wait", "images-delete"}, r.Seen); diff != "" {
					t.Error(diff)
				}
				if left := l.left(i.ID); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	}
}

func checkInventory(t *testing.T, x *lcm.Execution, servers, ports int) {
	t.Helper()
	info := x.Instance.Info
	seen := map[string]bool{}
	handle := func(what string, h sol003.ResourceHandle) {
		if h.ResourceId == "" || h.VimConnectionId == "" && !strings.HasPrefix(what, "network") {
			t.Errorf("%s has handle %+v", what, h)
		}
		if seen[h.ResourceId] && !strings.HasPrefix(what, "network") {
			t.Errorf("%s is used twice: %s", h.ResourceId, what)
		}
		seen[h.ResourceId] = true
	}
	if len(info.VnfcResourceInfo) != servers || len(info.VnfcInfo) != servers {
		t.Errorf("%d VNFCs and %d vnfcInfo, not %d", len(info.VnfcResourceInfo), len(info.VnfcInfo), servers)
	}
	for _, v := range info.VnfcResourceInfo {
		handle("VNFC "+v.VduId, v.ComputeResource)
		if v.Metadata["stack_id"] == "" {
			t.Errorf("VNFC %s has no stack", v.VduId)
		}
	}
	for _, s := range info.VirtualStorageResourceInfo {
		handle("storage", s.StorageResource)
	}
	n := 0
	for _, vl := range info.VnfVirtualLinkResourceInfo {
		handle("network "+vl.VnfVirtualLinkDescId, vl.NetworkResource)
		for _, p := range vl.VnfLinkPorts {
			handle("port of "+vl.VnfVirtualLinkDescId, p.ResourceHandle)
			n++
		}
	}
	if n != ports {
		t.Errorf("%d ports, not %d", n, ports)
	}
}

// TestFaults breaks the VIM in the middle of an instantiation.
func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		fault vimsim.Fault
		want  []string // of the error; none: it succeeds
		cfg   Config
	}{
		"create refused": {
			fault: vimsim.Fault{ResourceType: "stack", Action: "create", Effect: vimsim.EffectHTTP, Status: 400, Reason: "The Parameter (x) was not provided."},
			want:  []string{"The Parameter (x) was not provided."},
		},
		"a resource fails": {
			fault: vimsim.Fault{ResourceType: "OS::Nova::Server", Name: "workerNode", Effect: vimsim.EffectFail, Action: "create", Reason: "No valid host was found. "},
			want:  []string{"VNF Create ", "vnflcm_", "CREATE_FAILED", "workerNode (OS::Nova::Server)", "No valid host was found"},
		},
		"hangs": {
			fault: vimsim.Fault{ResourceType: "OS::Nova::Server", Effect: vimsim.EffectHang, Action: "create"},
			want:  []string{"VNF Create action is not completed within 600 seconds on stack "},
			cfg:   Config{PollMin: time.Second, PollMax: 20 * time.Second},
		},
		"connections are reset during the wait": {fault: vimsim.Fault{ResourceType: "stack", Action: "get", Effect: vimsim.EffectReset, Times: 3}},
		"answers are cut":                       {fault: vimsim.Fault{ResourceType: "stack", Action: "get", Effect: vimsim.EffectTruncate, Times: 3}},
		"the answer to the creation is lost":    {fault: vimsim.Fault{ResourceType: "stack", Action: "create", Effect: vimsim.EffectTruncate, Times: 1}},
		"unavailable for a while":               {fault: vimsim.Fault{ResourceType: "heat", Effect: vimsim.EffectHTTP, Status: 503, Times: 4}},
		"unauthorized once":                     {fault: vimsim.Fault{ResourceType: "heat", Effect: vimsim.EffectHTTP, Status: 401, Times: 1}},
		"unauthorized for a while":              {fault: vimsim.Fault{ResourceType: "heat", Effect: vimsim.EffectHTTP, Status: 401, Times: 6}},
		"unavailable for ever": {
			fault: vimsim.Fault{ResourceType: "heat", Effect: vimsim.EffectHTTP, Status: 503},
			want:  []string{"VIM VIM0: cannot look for stack vnflcm_"},
		},
		"Glance is broken for a while": {fault: vimsim.Fault{ResourceType: "glance", Effect: vimsim.EffectReset, Times: 5}},
		"Glance refuses": {
			fault: vimsim.Fault{ResourceType: "glance", Action: "create", Effect: vimsim.EffectHTTP, Status: 413, Reason: "Quota exceeded"},
			want:  []string{"failed during pre-instantiation due to error: ", "Quota exceeded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, vimsim.Config{}, tt.cfg)
			l.clock = infratest.NewClock(time.Now())
			fsys, f := testPackage(t, "cluster", "complex")
			i := newInstance()
			x := l.instantiate(i, f, fsys, clusterRequest(""))
			id := l.sim.Cloud.AddFault(tt.fault)
			err := l.runner().Run(t.Context(), x)
			l.sim.Cloud.RemoveFault(id)
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("%v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if err == nil {
				if n := l.requests("heat", http.MethodPost, "/stacks"); n < 1 {
					t.Error("no stack was created")
				}
			} else if k := lcm.KindOf(err); k != lcm.KindTerminal && tt.fault.Status != 503 {
				t.Errorf("the error is %s", k)
			}
			// Whatever has happened, a termination leaves nothing; the record of the stack may have been lost.
			if err := l.runner().Run(t.Context(), l.terminate(x.Instance, f, nil)); err != nil {
				t.Fatal(err)
			}
			if left := l.left(i.ID); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestRetry has an instantiation fail and tries it again: the failed stack is updated, the images are made again.
func TestRetry(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{Settle: time.Hour})
	fsys, f := testPackage(t, "cluster", "complex")
	i := newInstance()
	x := l.instantiate(i, f, fsys, clusterRequest(""))
	id := l.sim.Cloud.AddFault(vimsim.Fault{ResourceType: "OS::Nova::Server", Effect: vimsim.EffectFail, Action: "create"})
	if err := l.runner().Run(t.Context(), x); err == nil {
		t.Fatal("it did not fail")
	}
	l.sim.Cloud.RemoveFault(id)
	r := l.runner()
	r.LoseFirst = true
	if err := r.Run(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if n := l.requests("heat", http.MethodPost, "/stacks"); n != 1 {
		t.Errorf("%d stacks were created", n)
	}
	checkInventory(t, x, 5, 5)
	x.Op.State = sol003.LcmOperationStateRollingBack
	if err := r.Run(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if left := l.left(i.ID); len(left) > 0 {
		t.Errorf("left after rollback: %v", left)
	}
}

// TestStackOfAnEarlierOperation: an operation that was given up has left its stack; the next one's is not what it asked
// for until Heat has updated it.
func TestStackOfAnEarlierOperation(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	fsys, f := testPackage(t, "cluster", "complex")
	i := newInstance()
	first := l.instantiate(i, f, fsys, clusterRequest(""))
	if err := l.runner().Run(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	checkInventory(t, first, 5, 5)
	second := l.instantiate(&lcm.Instance{ID: i.ID, Name: i.Name, Infra: first.Instance.Infra}, f, fsys, clusterRequest("level_2"))
	if first.Op.ID == second.Op.ID {
		t.Fatal("one operation")
	}
	if err := l.runner().Run(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	checkInventory(t, second, 9, 9)
	if n := l.requests("heat", http.MethodPost, "/stacks"); n != 1 {
		t.Errorf("%d stacks were created", n)
	}
	if err := l.runner().Run(t.Context(), l.terminate(second.Instance, f, nil)); err != nil {
		t.Fatal(err)
	}
	if left := l.left(i.ID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTokensExpireInTheMiddle(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	fsys, f := testPackage(t, "cluster", "complex")
	r := l.runner()
	r.Before = func(string) { l.sim.Cloud.ExpireTokens() }
	x := l.instantiate(newInstance(), f, fsys, clusterRequest(""))
	if err := r.Run(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), l.terminate(x.Instance, f, nil)); err != nil {
		t.Fatal(err)
	}
}

func TestStackOfSomebodyElse(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	fsys, f := testPackage(t, "cluster", "complex")
	i := newInstance()
	c, err := l.driver.connect(t.Context(), l.target)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.createStack(t.Context(), &stackRequest{
		Name: stackName(i.ID), Template: "heat_template_version: 2013-05-23\nresources: {r: {type: OS::Heat::None}}", Parameters: json.RawMessage("{}"),
		Files: map[string]string{}, TimeoutMins: 1, Tags: "theirs",
	}); err != nil {
		t.Fatal(err)
	}
	x := l.instantiate(i, f, fsys, clusterRequest(""))
	if err := l.runner().Run(t.Context(), x); !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "is not of this VNF instance") {
		t.Errorf("%v", err)
	}
	if err := l.runner().Run(t.Context(), l.terminate(x.Instance, f, nil)); err != nil {
		t.Fatal(err)
	}
	if s, err := c.findStack(t.Context(), stackName(i.ID)); err != nil || s == nil {
		t.Errorf("the other's stack is gone: %v", err)
	}
}

func TestAmbiguousImage(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	fsys, f := testPackage(t, "functional", "simple")
	c, err := l.driver.connect(t.Context(), l.target)
	if err != nil {
		t.Fatal(err)
	}
	const name = "cirros-0.5.2-x86_64-disk"
	made, err := c.createImage(t.Context(), &imageRequest{
		Name: name, Visibility: "private", ContainerFormat: "bare", DiskFormat: "raw", Tags: []string{"x"}, Instance: "other", Node: "VDU2",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.uploadImage(t.Context(), made.ID, strings.NewReader("data")); err != nil {
		t.Fatal(err)
	}
	all, err := c.imagesNamed(t.Context(), name)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v %v", all, err)
	}
	x := l.instantiate(newInstance(), f, fsys, functionalRequest())
	if err := l.runner().Run(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		t.Fatal(err)
	}
	var params map[string]any
	if err := json.Unmarshal(s.Parameters, &params); err != nil {
		t.Fatal(err)
	}
	got := section(params, "VDU")["VDU2"].(map[string]any)["image"]
	if got == made.ID || got == name {
		t.Errorf("image %v", got)
	}
}

// overlay is a package with some of its files replaced.
func overlay(t *testing.T, base fs.FS, files map[string]string) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(base, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(base, name)
		out[name] = &fstest.MapFile{Data: raw}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestPackageFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		files  map[string]string
		change func(*sol003.InstantiateVnfRequest)
		want   string
	}{
		"wrong checksum by Glance's algorithm": {
			files: map[string]string{"Files/images/node.img": "something else"},
			want:  "checksum verification failed. Glance calculated checksum is sha512:",
		},
		"script fails":    {files: map[string]string{"UserData/cluster_user_data.py": "raise RuntimeError('no')"}, want: "LCM user data failed to get UserData path"},
		"two tops":        {files: map[string]string{"BaseHOT/complex/other.yaml": "resources: {}"}, want: "other.yaml, top.yaml"},
		"template broken": {files: map[string]string{"BaseHOT/complex/nested/master.yaml": "heat_template_version: 2013-05-23\nresources: {masterNode: {type: 'OS::No::Such'}}"}, want: "Unknown Property flavor"},
		"only the script": {
			change: func(r *sol003.InstantiateVnfRequest) { delete(r.AdditionalParams, classKey) },
			want:   "LCM user data failed to get lcm-operation-user-data or lcm-operation-user-data-class from additionalParams.",
		},
		"no script, and what cannot be translated": {
			change: func(r *sol003.InstantiateVnfRequest) { r.AdditionalParams, r.ExtVirtualLinks = nil, nil },
			want:   "it has no virtual_link in the VNFD, and extVirtualLinks of the request say nothing of it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, vimsim.Config{}, Config{})
			fsys, f := testPackage(t, "cluster", "complex")
			req := clusterRequest("")
			req.AdditionalParams = maps.Clone(req.AdditionalParams)
			if tt.change != nil {
				tt.change(req)
			}
			i := newInstance()
			x := l.instantiate(i, f, overlay(t, fsys, tt.files), req)
			err := l.runner().Run(t.Context(), x)
			if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
			if err := l.runner().Run(t.Context(), l.terminate(x.Instance, f, nil)); err != nil {
				t.Fatal(err)
			}
			if left := l.left(i.ID); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestChecksumByOtherAlgorithm has only the image whose algorithm Glance does not use differ.
func TestChecksumByOtherAlgorithm(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	fsys, f := testPackage(t, "cluster", "complex")
	n := slices.IndexFunc(f.SoftwareImages, func(i vnfd.SoftwareImage) bool { return i.Checksum.Algorithm == "sha-256" })
	f.SoftwareImages[n].Checksum.Hash = strings.Repeat("0", 64)
	i := newInstance()
	err := l.runner().Run(t.Context(), l.instantiate(i, f, fsys, clusterRequest("")))
	if err == nil || !strings.Contains(err.Error(), "Calculated checksum is sha-256:") {
		t.Errorf("%v", err)
	}
	if left := l.left(i.ID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestImageFromURL(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	fsys, f := testPackage(t, "cluster", "complex")
	files := &http.Server{Handler: http.FileServerFS(fsys), ReadHeaderTimeout: time.Minute}
	address := serve(t, files)
	for n := range f.SoftwareImages {
		f.SoftwareImages[n].File, f.SoftwareImages[n].Remote = address+"/"+f.SoftwareImages[n].File, true
	}
	r := l.runner()
	r.LoseFirst = true
	x := l.instantiate(newInstance(), f, fsys, clusterRequest(""))
	if err := r.Run(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if n := l.requests("glance", http.MethodPost, "/images"); n != 2 {
		t.Errorf("%d images were created", n)
	}
}

func TestDeleteFails(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	l.clock = infratest.NewClock(time.Now())
	fsys, f := testPackage(t, "cluster", "complex")
	i := newInstance()
	x := l.instantiate(i, f, fsys, clusterRequest(""))
	if err := l.runner().Run(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	id := l.sim.Cloud.AddFault(vimsim.Fault{ResourceType: "OS::Neutron::Port", Action: "delete", Effect: vimsim.EffectFail, Reason: "port in use"})
	for range 2 { // the second time the stack is DELETE_FAILED from the start
		err := l.runner().Run(t.Context(), l.terminate(x.Instance, f, nil))
		if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "VNF Delete ") || !strings.Contains(err.Error(), "port in use") {
			t.Errorf("%v", err)
		}
	}
	l.sim.Cloud.RemoveFault(id)
	if err := l.runner().Run(t.Context(), l.terminate(x.Instance, f, nil)); err != nil {
		t.Fatal(err)
	}
	if left := l.left(i.ID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestLogin(t *testing.T) {
	fsys, f := testPackage(t, "cluster", "complex")
	for name, tt := range map[string]struct {
		change func(*lcm.VimTarget)
		kind   lcm.Kind
		want   string
	}{
		"wrong password": {func(v *lcm.VimTarget) { v.Auth["password"] = "hunter2" }, lcm.KindTerminal, "VIM VIM0: Keystone refuses the credentials of user nfv_user"},
		"no such region": {func(v *lcm.VimTarget) { v.Region = "Elsewhere" }, lcm.KindTerminal, `in region "Elsewhere"`},
		"nobody there": {func(v *lcm.VimTarget) {
			u, _ := url.Parse(v.AuthURL)
			u.Host = "127.0.0.1:1"
			v.AuthURL = u.String()
		}, lcm.KindTerminal, "VIM VIM0: cannot log in"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, vimsim.Config{}, Config{})
			l.clock = infratest.NewClock(time.Now())
			l.target.Auth = maps.Clone(l.target.Auth)
			tt.change(l.target)
			err := l.runner().Run(t.Context(), l.instantiate(newInstance(), f, fsys, clusterRequest("")))
			if !lcm.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", lcm.KindOf(err), err)
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Error("the password shows")
			}
		})
	}
}

// TestManyAtOnce has many instances share one client.
func TestManyAtOnce(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{})
	l.driver.cfg.MaxConcurrent = 8
	fsys, f := testPackage(t, "functional", "simple")
	t.Cleanup(func() {
		l.driver.Close()
		if n := l.requests("keystone", http.MethodPost, "/auth/tokens"); n > 1 {
			t.Errorf("logged in %d times", n)
		}
	})
	for n := range 6 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			mine := *l
			mine.T = t
			x := mine.instantiate(newInstance(), f, fsys, functionalRequest())
			if err := mine.runner().Run(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			if err := mine.runner().Run(t.Context(), mine.terminate(x.Instance, f, nil)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestUntrustedCertificate has a VIM whose certificate nobody vouches for: refused at once, unless that is the
// operator's choice or the CA is given.
func TestUntrustedCertificate(t *testing.T) {
	keystone := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	keystone.Config.ErrorLog = log.New(io.Discard, "", 0)
	keystone.StartTLS()
	defer keystone.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: keystone.Certificate().Raw}))
	d := New(Config{}, slog.New(slog.DiscardHandler))
	for name, tt := range map[string]struct {
		auth map[string]any
		want string
	}{
		"unknown":   {map[string]any{}, "certificate"},
		"any":       {map[string]any{"cert_verify": "False"}, "HTTP status 404 Not Found"},
		"given":     {map[string]any{"ssl_ca_cert": ca}, "HTTP status 404 Not Found"},
		"not a PEM": {map[string]any{"ssl_ca_cert": "x"}, "holds no certificate"},
	} {
		tt.auth["username"], tt.auth["password"] = "u", "p"
		_, err := d.connect(t.Context(), &lcm.VimTarget{VIM: lcm.VIM{ID: name, AuthURL: keystone.URL, Auth: tt.auth, Project: map[string]any{"name": "p"}}})
		if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestZonesOfAnotherFlavour: VDUs that have servers stay where they are when the flavour changes, whoever makes the parameters.
func TestZonesOfAnotherFlavour(t *testing.T) {
	zones := func(of ...string) map[string]any { // VDU, zone, VDU, zone
		vdus := map[string]any{}
		for n := 0; n < len(of); n += 2 {
			vdus[of[n]] = map[string]any{"zone": of[n+1]}
		}
		return map[string]any{"nfv": map[string]any{"VDU": vdus}}
	}
	x := &lcm.Execution{
		Op:      &lcm.OpOcc{Operation: sol003.LcmOperationTypeChangeFlavour},
		Flavour: &vnfd.Flavour{VDUs: []vnfd.VDU{{Name: "a"}, {Name: "b"}, {Name: "fresh"}}},
		Before: &lcm.Instance{Info: &sol003.InstantiatedVnfInfo{VnfcResourceInfo: []sol003.VnfcResourceInfo{
			{Id: "1", VduId: "a"}, {Id: "2", VduId: "b"}, {Id: "3", VduId: "gone"},
		}}},
		Instance: &lcm.Instance{},
		Grant:    &lcm.Grant{VDUZones: map[string]string{"a": "far", "b": "far", "fresh": "far"}},
	}
	was, err := json.Marshal(zones("a", "near", "b", "near", "gone", "near"))
	if err != nil {
		t.Fatal(err)
	}
	if err := saveInfra(x.Instance, &infra{Parameters: was}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		params, want map[string]any
		all          bool
	}{
		"a script says nothing of zones": {map[string]any{}, zones("a", "near", "b", "near", "fresh", "far"), false},
		"a script says some":             {zones("a", "chosen"), zones("a", "chosen", "b", "near", "fresh", "far"), false},
		"translated":                     {zones("a", "chosen", "fresh", ""), zones("a", "near", "fresh", ""), true},
	} {
		if err := keepZones(x, tt.params, tt.all); err != nil {
			t.Fatal(err)
		}
		if !tt.all { // of those that are translated the translation sees to it
			applyGrant(granted(x, nil), tt.params)
		}
		if diff := cmp.Diff(tt.want, tt.params); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestGrant(t *testing.T) {
	x := &lcm.Execution{
		Op: &lcm.OpOcc{Operation: sol003.LcmOperationTypeInstantiate},
		Instance: &lcm.Instance{Info: &sol003.InstantiatedVnfInfo{VnfcResourceInfo: []sol003.VnfcResourceInfo{
			{Id: "a", VduId: "VDU1"}, {Id: "b", VduId: "VDU1"}, {Id: "c", VduId: "VDU2"}, {Id: "d", VduId: "VDU3"},
		}}},
		Grant: &lcm.Grant{
			Zones: map[string]string{"a": "az1", "b": "az2", "c": "az3"}, Flavours: map[string]string{"VDU1": "big"}, Images: map[string]string{"VDU2": "glance"},
		},
	}
	params := map[string]any{"nfv": map[string]any{"VDU": map[string]any{"VDU1": map[string]any{"flavor": "small", "image": "i"}, "VDU2": map[string]any{"zone": "mine"}}}}
	applyGrant(granted(x, nil), params)
	want := map[string]any{"nfv": map[string]any{"VDU": map[string]any{
		"VDU1": map[string]any{"flavor": "big", "image": "i", "zone": "az1"}, "VDU2": map[string]any{"zone": "mine", "image": "glance"},
	}}}
	if diff := cmp.Diff(want, params); diff != "" {
		t.Error(diff)
	}
	params = map[string]any{}
	applyGrant(granted(x, nil), params)
	if section(params, "VDU")["VDU2"].(map[string]any)["zone"] != "az3" {
		t.Errorf("%v", params)
	}
}
