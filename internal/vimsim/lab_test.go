package vimsim

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const cirros = "cirros-0.5.2-x86_64-disk"

// lab is a served cloud with a raw JSON client.
type lab struct {
	t       *testing.T
	srv     *Server
	http    *http.Client
	token   string
	project string
}

func boot(t *testing.T, cfg Config) *lab {
	t.Helper()
	srv, err := Serve(t.Context(), "127.0.0.1:0", cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	l := &lab{t: t, srv: srv, http: &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	t.Cleanup(func() { tr.CloseIdleConnections(); srv.Close() })
	l.login()
	return l
}

func (l *lab) login() {
	l.t.Helper()
	res, body := l.raw("POST", "/identity/v3/auth/tokens", doc{"auth": doc{
		"identity": doc{"methods": []string{"password"}, "password": doc{"user": doc{"name": "nfv_user", "domain": doc{"name": "Default"}, "password": "devstack"}}},
		"scope":    doc{"project": doc{"name": "nfv", "domain": doc{"id": "default"}}},
	}})
	if res.StatusCode != 201 {
		l.t.Fatalf("login: %d %v", res.StatusCode, body)
	}
	l.token = res.Header.Get("X-Subject-Token")
	l.project = str(sub(body, "token", "project"), "id")
}

func (l *lab) raw(method, path string, body any) (*http.Response, doc) {
	l.t.Helper()
	res, out, err := l.try(method, path, body)
	if err != nil {
		l.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res, out
}

func (l *lab) try(method, path string, body any) (*http.Response, doc, error) {
	var rd io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, nil, err
		}
		rd = bytes.NewReader(b)
	}
	if !strings.HasPrefix(path, "http") {
		path = l.srv.URL + path
	}
	q, err := http.NewRequestWithContext(context.Background(), method, path, rd)
	if err != nil {
		return nil, nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	if l.token != "" {
		q.Header.Set("X-Auth-Token", l.token)
	}
	res, err := l.http.Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return res, nil, err
	}
	var out doc
	_ = json.Unmarshal(b, &out)
	return res, out, nil
}

// heat calls Heat below the project's path.
func (l *lab) heat(method, path string, body any) (int, doc) {
	l.t.Helper()
	res, out := l.raw(method, "/orchestration/v1/"+l.project+path, body)
	return res.StatusCode, out
}

func (l *lab) create(name string, def doc) string {
	l.t.Helper()
	code, out := l.heat("POST", "/stacks", with(def, "stack_name", name))
	if code != 201 {
		l.t.Fatalf("create %s: %d %v", name, code, out)
	}
	return str(sub(out, "stack"), "id")
}

func (l *lab) show(name, id string) doc {
	l.t.Helper()
	_, out := l.heat("GET", "/stacks/"+name+"/"+id, nil)
	return sub(out, "stack")
}

func (l *lab) await(name, id, want string) doc {
	l.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		s := l.show(name, id)
		st := str(s, "stack_status")
		if st == want {
			return s
		}
		if time.Now().After(deadline) || strings.HasSuffix(st, "FAILED") {
			l.t.Fatalf("%s: %s (%s), want %s", name, st, str(s, "stack_status_reason"), want)
		}
		time.Sleep(time.Millisecond)
	}
}

func (l *lab) until(what string, f func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("never: %s", what)
		}
	}
}

func (l *lab) resources(name, id string) []doc {
	l.t.Helper()
	code, out := l.heat("GET", "/stacks/"+name+"/"+id+"/resources?nested_depth=4", nil)
	if code != 200 {
		l.t.Fatalf("resources: %d %v", code, out)
	}
	var r []doc
	for _, x := range out["resources"].([]any) {
		r = append(r, x.(doc))
	}
	return r
}

func (l *lab) ofType(name, id, typ string) []doc {
	l.t.Helper()
	var r []doc
	for _, x := range l.resources(name, id) {
		if str(x, "resource_type") == typ {
			r = append(r, x)
		}
	}
	return r
}

func ids(l []doc) map[string]bool {
	m := map[string]bool{}
	for _, d := range l {
		m[str(d, "physical_resource_id")] = true
	}
	return m
}

func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func cluster(t *testing.T) doc {
	return doc{
		"template": file(t, "cluster.yaml"), "files": doc{"node.yaml": file(t, "node.yaml")}, "timeout_mins": 10, "disable_rollback": true,
		"parameters": doc{"nfv": doc{"VDU": doc{"node": doc{"flavor": "m1.medium", "image": cirros}}, "CP": doc{"node_CP": doc{"network": "net0"}}}},
	}
}

func text(s string) doc { return doc{"template": "heat_template_version: 2016-10-14\n" + s} }

func provider(t *testing.T, l *lab) *gophercloud.ProviderClient {
	t.Helper()
	p, err := openstack.NewClient(l.srv.AuthURL)
	if err != nil {
		t.Fatal(err)
	}
	p.HTTPClient = http.Client{Transport: l.http.Transport}
	if err := openstack.Authenticate(t.Context(), p, gophercloud.AuthOptions{
		IdentityEndpoint: l.srv.AuthURL, Username: "nfv_user", Password: "devstack", DomainName: "Default", TenantName: "nfv", AllowReauth: true,
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

// empty fails if stacks left anything behind.
func (l *lab) empty() {
	l.t.Helper()
	c := l.srv.Cloud.State().Counts
	for _, k := range []string{"stacks", "nested_stacks", "servers", "ports", "volumes", "server_groups", "routers", "floatingips", "keypairs", "qos_policies"} {
		if c[k] != 0 {
			l.t.Errorf("%d %s are left", c[k], k)
		}
	}
}
