package vimsim

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackevents"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/gophercloud/gophercloud/v2/pagination"
)

var region = gophercloud.EndpointOpts{Region: "RegionOne"}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func pages(t *testing.T, p pagination.Pager) pagination.Page {
	t.Helper()
	return must[pagination.Page](t)(p.AllPages(t.Context()))
}

func TestGophercloudHeat(t *testing.T) {
	l := boot(t, Config{})
	p := provider(t, l)
	ctx := t.Context()
	h := must[*gophercloud.ServiceClient](t)(openstack.NewOrchestrationV1(p, region))
	abs := must[string](t)(filepath.Abs("testdata/cluster.yaml"))
	tm := &stacks.Template{TE: stacks.TE{URL: "file://" + abs}}
	off := true
	made := must[*stacks.CreatedStack](t)(stacks.Create(ctx, h, stacks.CreateOpts{
		Name: "g", TemplateOpts: tm, DisableRollback: &off, Parameters: cluster(t)["parameters"].(doc), Tags: []string{"a", "b"},
	}).Extract())
	l.await("g", made.ID, "CREATE_COMPLETE")
	s := must[*stacks.RetrievedStack](t)(stacks.Find(ctx, h, made.ID).Extract())
	if s.Name != "g" || s.Status != "CREATE_COMPLETE" || len(s.Tags) != 2 || s.CreationTime.IsZero() {
		t.Errorf("%+v", s)
	}
	list := must[[]stacks.ListedStack](t)(stacks.ExtractStacks(pages(t, stacks.List(h, stacks.ListOpts{Name: "g"}))))
	if len(list) != 1 || list[0].ID != made.ID {
		t.Errorf("%+v", list)
	}
	rs := must[[]stackresources.Resource](t)(stackresources.ExtractResources(pages(t, stackresources.List(h, "g", made.ID, stackresources.ListOpts{Depth: 4}))))
	n := 0
	for _, r := range rs {
		if r.Type == "OS::Nova::Server" {
			n++
		}
	}
	if n != 5 {
		t.Errorf("%d servers in %d resources", n, len(rs))
	}
	if err := stackresources.MarkUnhealthy(ctx, h, "g", made.ID, "vip_CP", stackresources.MarkUnhealthyOpts{MarkUnhealthy: true, ResourceStatusReason: "x"}).ExtractErr(); err != nil {
		t.Error(err)
	}
	if r := must[*stackresources.Resource](t)(stackresources.Get(ctx, h, "g", made.ID, "vip_CP").Extract()); r.Status != "CHECK_FAILED" || r.StatusReason != "x" {
		t.Errorf("%+v", r)
	}
	ev := must[[]stackevents.Event](t)(stackevents.ExtractResourceEvents(pages(t, stackevents.ListResourceEvents(h, "g", made.ID, "vip_CP", nil))))
	if len(ev) != 3 || ev[2].ResourceStatus != "CHECK_FAILED" {
		t.Errorf("%+v", ev)
	}
	if err := stacks.UpdatePatch(ctx, h, "g", made.ID, stacks.UpdateOpts{TemplateOpts: tm, Parameters: cluster(t)["parameters"].(doc)}).ExtractErr(); err != nil {
		t.Fatal(err)
	}
	l.await("g", made.ID, "UPDATE_COMPLETE")
	if _, err := stacks.Get(ctx, h, "nope", newID()).Extract(); !gophercloud.ResponseCodeIs(err, 404) {
		t.Errorf("%v", err)
	}
	// An expired token is renewed by the client.
	l.srv.Cloud.ExpireTokens()
	if err := stacks.Delete(ctx, h, "g", made.ID).ExtractErr(); err != nil {
		t.Fatal(err)
	}
	l.login()
	l.await("g", made.ID, "DELETE_COMPLETE")
	l.empty()
}

func TestGophercloudOthers(t *testing.T) {
	l := boot(t, Config{NFVOrchestrationURL: "http://127.0.0.1:9890"})
	p := provider(t, l)
	ctx := t.Context()
	id := l.create("v", doc{"template": file(t, "volumes.yaml")})
	l.await("v", id, "CREATE_COMPLETE")

	comp := must[*gophercloud.ServiceClient](t)(openstack.NewComputeV2(p, region))
	sv := must[[]servers.Server](t)(servers.ExtractServers(pages(t, servers.List(comp, servers.ListOpts{}))))
	if len(sv) != 1 || sv[0].Status != "ACTIVE" || len(sv[0].AttachedVolumes) != 2 || sv[0].Host == "" || len(sv[0].Addresses) != 2 {
		t.Errorf("%+v", sv)
	}
	fl := must[[]flavors.Flavor](t)(flavors.ExtractFlavors(pages(t, flavors.ListDetail(comp, nil))))
	if !slices.ContainsFunc(fl, func(f flavors.Flavor) bool { return f.Name == "m1.medium" && f.RAM == 4096 }) {
		t.Errorf("%+v", fl)
	}
	nw := must[*gophercloud.ServiceClient](t)(openstack.NewNetworkV2(p, region))
	ns := must[[]networks.Network](t)(networks.ExtractNetworks(pages(t, networks.List(nw, networks.ListOpts{Name: "net0"}))))
	ps := must[[]ports.Port](t)(ports.ExtractPorts(pages(t, ports.List(nw, ports.ListOpts{DeviceID: sv[0].ID}))))
	if len(ns) != 1 || len(ps) != 2 || ps[0].Status != "ACTIVE" {
		t.Errorf("%+v %+v", ns, ps)
	}
	ip := ports.CreateOpts{NetworkID: ns[0].ID, FixedIPs: []ports.IP{{IPAddress: "10.10.5.5"}}}
	must[*ports.Port](t)(ports.Create(ctx, nw, ip).Extract())
	if _, err := ports.Create(ctx, nw, ip).Extract(); !gophercloud.ResponseCodeIs(err, 409) {
		t.Errorf("address twice: %v", err)
	}
	bs := must[*gophercloud.ServiceClient](t)(openstack.NewBlockStorageV3(p, region))
	vs := must[[]volumes.Volume](t)(volumes.ExtractVolumes(pages(t, volumes.List(bs, nil))))
	if len(vs) != 2 || vs[0].Attachments[0].ServerID != sv[0].ID {
		t.Errorf("%+v", vs)
	}

	idc := must[*gophercloud.ServiceClient](t)(openstack.NewIdentityV3(p, region))
	res := tokens.Get(ctx, idc, p.Token())
	roles := must[[]tokens.Role](t)(res.ExtractRoles())
	cat := must[*tokens.ServiceCatalog](t)(res.ExtractServiceCatalog())
	if len(roles) != 2 || !slices.ContainsFunc(cat.Entries, func(e tokens.CatalogEntry) bool { return e.Type == "nfv-orchestration" }) {
		t.Errorf("%+v %+v", roles, cat)
	}
	for _, bad := range []gophercloud.AuthOptions{
		{IdentityEndpoint: l.srv.AuthURL, Username: "nfv_user", Password: "wrong", DomainName: "Default", TenantName: "nfv"},
		{IdentityEndpoint: l.srv.AuthURL, Username: "nfv_user", Password: "devstack", DomainName: "Default", TenantName: "other"},
	} {
		q, err := openstack.NewClient(l.srv.AuthURL)
		if err != nil {
			t.Fatal(err)
		}
		q.HTTPClient = http.Client{Transport: l.http.Transport}
		if err := openstack.Authenticate(ctx, q, bad); !gophercloud.ResponseCodeIs(err, 401) {
			t.Errorf("%v", err)
		}
	}
}

func TestImages(t *testing.T) {
	l := boot(t, Config{})
	p := provider(t, l)
	ctx := t.Context()
	g := must[*gophercloud.ServiceClient](t)(openstack.NewImageV2(p, region))
	private := images.ImageVisibilityPrivate
	opts := images.CreateOpts{Name: "img", ContainerFormat: "bare", DiskFormat: "qcow2", Visibility: &private, MinDisk: 1, Tags: []string{"t"}, Properties: map[string]string{"p": "v"}}
	a := must[*images.Image](t)(images.Create(ctx, g, opts).Extract())
	b := must[*images.Image](t)(images.Create(ctx, g, opts).Extract())
	if a.Status != images.ImageStatusQueued || a.ID == b.ID || a.Properties["p"] != "v" {
		t.Errorf("%+v", a)
	}
	data := []byte(strings.Repeat("x", 100_000))
	if err := imagedata.Upload(ctx, g, a.ID, bytes.NewReader(data)).ExtractErr(); err != nil {
		t.Fatal(err)
	}
	got := must[*images.Image](t)(images.Get(ctx, g, a.ID).Extract())
	sum := sha512.Sum512(data)
	if got.Status != images.ImageStatusActive || got.SizeBytes != 100_000 || got.Properties["os_hash_value"] != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v", got)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
	defer web.Close()
	if res, out := l.raw("POST", "/image/v2/images/"+b.ID+"/import", doc{"method": doc{"name": "web-download", "uri": web.URL}}); res.StatusCode != 202 {
		t.Fatalf("import: %d %v", res.StatusCode, out)
	}
	l.until("imported", func() bool {
		i, err := images.Get(ctx, g, b.ID).Extract()
		return err == nil && i.Status == images.ImageStatusActive
	})
	list := must[[]images.Image](t)(images.ExtractImages(pages(t, images.List(g, images.ListOpts{Name: "img", Tags: []string{"t"}, Limit: 1}))))
	if len(list) != 2 {
		t.Errorf("%d images over pages of one", len(list))
	}
	up := must[*images.Image](t)(images.Update(ctx, g, a.ID, images.UpdateOpts{images.ReplaceImageName{NewName: "other"}, images.UpdateImageProperty{Op: images.RemoveOp, Name: "p"}}).Extract())
	if up.Name != "other" || up.Properties["p"] != nil {
		t.Errorf("%+v", up)
	}
	for _, want := range []int{204, 404} {
		if res, _ := l.raw("DELETE", "/image/v2/images/"+a.ID, nil); res.StatusCode != want {
			t.Errorf("delete: %d, want %d", res.StatusCode, want)
		}
	}
}

func TestTokens(t *testing.T) {
	l := boot(t, Config{Users: []User{{Name: "u", Password: "p", Projects: map[string][]string{"p1": {"admin"}, "p2": {"member"}}}}})
	if res, _ := l.raw("GET", "/identity", nil); res.StatusCode != 300 {
		t.Errorf("versions: %d", res.StatusCode)
	}
	id := l.create("mine", text("resources: {r: {type: OS::Heat::None}}\n"))
	l.await("mine", id, "CREATE_COMPLETE")
	own, ownProject := l.token, l.project
	res, body := l.raw("POST", "/identity/v3/auth/tokens", doc{"auth": doc{
		"identity": doc{"methods": []string{"password"}, "password": doc{"user": doc{"name": "u", "domain": doc{"id": "default"}, "password": "p"}}}, "scope": doc{"project": doc{"name": "p2", "domain": doc{"id": "default"}}},
	}})
	l.token, l.project = res.Header.Get("X-Subject-Token"), str(sub(body, "token", "project"), "id")
	if _, out := l.heat("GET", "/stacks", nil); len(out["stacks"].([]any)) != 0 {
		t.Error("another project's stack is visible")
	}
	if res, _ := l.raw("GET", "/orchestration/v1/"+ownProject+"/stacks", nil); res.StatusCode != 403 {
		t.Errorf("another project's URL: %d", res.StatusCode)
	}
	if _, out := l.raw("GET", "/identity/v3/auth/projects", nil); len(out["projects"].([]any)) != 2 {
		t.Errorf("%v", out)
	}
	l.token = own
	l.srv.Cloud.ExpireTokens()
	res, out := l.raw("GET", "/orchestration/v1/"+ownProject+"/stacks", nil)
	if res.StatusCode != 401 || str(sub(out, "error"), "title") != "Unauthorized" {
		t.Errorf("expired: %d %v", res.StatusCode, out)
	}
}

func TestFaults(t *testing.T) {
	l := boot(t, Config{})
	id := l.create("f", text("resources: {r: {type: OS::Heat::TestResource, properties: {value: 1}}}\n"))
	l.await("f", id, "CREATE_COMPLETE")
	path := "/orchestration/v1/" + l.project + "/stacks/f/" + id
	add := func(f Fault) {
		t.Helper()
		if res, out := l.raw("POST", "/vimsim/faults", f); res.StatusCode != 201 {
			t.Fatalf("%d %v", res.StatusCode, out)
		}
	}
	add(Fault{ResourceType: "stack", Name: "f", Action: "get", Effect: EffectHTTP, Status: 503, Times: 1})
	if res, _ := l.raw("GET", path, nil); res.StatusCode != 503 {
		t.Errorf("http: %d", res.StatusCode)
	}
	for _, e := range []string{EffectReset, EffectTruncate} {
		add(Fault{ResourceType: "heat", Effect: e, Times: 1})
		// Not a GET: the client would quietly send that again.
		if _, _, err := l.try("POST", path+"/actions", doc{}); err == nil {
			t.Errorf("%s: no error", e)
		}
	}
	add(Fault{ResourceType: "keystone", Effect: EffectSlow, Delay: Duration(time.Millisecond), Times: 1})
	l.login()
	if n := len(l.srv.Cloud.Faults()); n != 0 {
		t.Errorf("%d faults are left", n)
	}
	add(Fault{ResourceType: "stack", Name: "f", Action: "update", Effect: EffectFail, Reason: "no update", Times: 1})
	l.heat("PATCH", "/stacks/f/"+id, doc{"existing": true})
	l.until("update failed", func() bool {
		s := l.show("f", id)
		return s["stack_status"] == "UPDATE_FAILED" && s["stack_status_reason"] == "no update"
	})
	add(Fault{ResourceType: "OS::Heat::TestResource", Action: "delete", Effect: EffectFail, Reason: "stuck", Times: 1})
	l.heat("DELETE", "/stacks/f/"+id, nil)
	l.until("delete failed", func() bool { return l.show("f", id)["stack_status"] == "DELETE_FAILED" })
	l.heat("DELETE", "/stacks/f/"+id, nil)
	l.await("f", id, "DELETE_COMPLETE")
	if res, _ := l.raw("POST", "/vimsim/faults", doc{"effect": "nonsense", "resource_type": "x"}); res.StatusCode != 400 {
		t.Errorf("bad fault: %d", res.StatusCode)
	}
	add(Fault{ResourceType: "OS::Neutron::Port", Effect: EffectQuota})
	id = l.create("q", text("resources: {p: {type: OS::Neutron::Port, properties: {network: net0}}}\n"))
	l.until("failed", func() bool { return l.show("q", id)["stack_status"] == "CREATE_FAILED" })
	if r := str(l.show("q", id), "stack_status_reason"); !strings.HasPrefix(r, "Resource CREATE failed: OverQuotaClient: resources.p: Quota exceeded") {
		t.Error(r)
	}
	n := 0
	for _, e := range l.srv.Cloud.Journal() {
		if e.Method == "POST" && e.Name == "f" && e.Service == "heat" && e.Status == 201 {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the journal has %d creates", n)
	}
	if res, _ := l.raw("POST", "/vimsim/reset", nil); res.StatusCode != 204 {
		t.Errorf("reset: %d", res.StatusCode)
	}
	l.empty()
	if l.srv.Cloud.State().Counts["networks"] != 4 {
		t.Error("the predefined networks are gone")
	}
}

func TestUpdateReplaces(t *testing.T) {
	l := boot(t, Config{})
	tmpl := func(net, ips string, more string) doc {
		return text("resources:\n  port: {type: OS::Neutron::Port, properties: {network: " + net + ips + "}}\n  VDU1: {type: OS::Nova::Server, properties: {name: v, flavor: m1.tiny, image: " + cirros + ", networks: [{port: {get_resource: port}}]}}\n" + more)
	}
	id := l.create("u", tmpl("net0", "", "  old: {type: OS::Cinder::Volume, properties: {size: 1}}\n"))
	l.await("u", id, "CREATE_COMPLETE")
	phys := func(n string) string {
		_, out := l.heat("GET", "/stacks/u/"+id+"/resources/"+n, nil)
		return str(sub(out, "resource"), "physical_resource_id")
	}
	put := func(d doc) {
		t.Helper()
		if code, out := l.heat("PUT", "/stacks/u/"+id, d); code != 202 {
			t.Fatalf("put: %d %v", code, out)
		}
		l.await("u", id, "UPDATE_COMPLETE")
	}
	port, vdu := phys("port"), phys("VDU1")
	put(tmpl("net0", ", fixed_ips: [{ip_address: 10.10.0.77}]", ""))
	if phys("port") != port || phys("VDU1") != vdu {
		t.Error("fixed_ips are not updated in place")
	}
	if n := l.srv.Cloud.State().Counts["volumes"]; n != 0 {
		t.Errorf("the removed volume is there: %d", n)
	}
	put(tmpl("net1", ", fixed_ips: [{ip_address: 10.10.0.77}]", ""))
	if phys("port") == port || phys("VDU1") != vdu {
		t.Error("a port on another network must be a new port of the same server")
	}
	if s := l.srv.Cloud.State().Servers[0]; s["addresses"].(doc)["net1"] == nil {
		t.Errorf("%v", s["addresses"])
	}
	// A failed update with rollback goes back.
	l.srv.Cloud.AddFault(Fault{ResourceType: "OS::Cinder::Volume", Action: "create", Effect: EffectFail})
	if code, _ := l.heat("PATCH", "/stacks/u/"+id, with(tmpl("net1", ", fixed_ips: [{ip_address: 10.10.0.77}]", "  x: {type: OS::Cinder::Volume, properties: {size: 1}}\n"), "disable_rollback", false)); code != 202 {
		t.Fatal(code)
	}
	l.awaitThrough("u", id, "ROLLBACK_COMPLETE")
	l.heat("DELETE", "/stacks/u/"+id, nil)
	l.await("u", id, "DELETE_COMPLETE")
	l.empty()
}

// awaitThrough waits through failed states.
func (l *lab) awaitThrough(name, id, want string) {
	l.t.Helper()
	l.until(want, func() bool { return l.show(name, id)["stack_status"] == want })
}

func TestTimeout(t *testing.T) {
	clk := &stepClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	l := boot(t, Config{Clock: clk})
	l.srv.Cloud.AddFault(Fault{ResourceType: "OS::Heat::TestResource", Action: "create", Effect: EffectHang})
	id := l.create("t", with(text("resources: {r: {type: OS::Heat::TestResource}}\n"), "timeout_mins", 10))
	l.until("timer", clk.waiting)
	clk.advance(10 * time.Minute)
	l.until("timed out", func() bool {
		s := l.show("t", id)
		return s["stack_status"] == "CREATE_FAILED" && s["stack_status_reason"] == "Timed out"
	})
}
