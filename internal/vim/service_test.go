package vim_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
	"github.com/seed-f1a0ccf1/vnfm/internal/vim"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	user  = lcm.Scope{ProjectID: "p1"}
	other = lcm.Scope{ProjectID: "p2"}
	admin = lcm.Scope{ProjectID: "adm", Admin: true}
)

const nobody = "00000000-0000-4000-8000-000000000000"

// cloud is a Prober that knows one password.
type cloud struct {
	mu       sync.Mutex
	password string
	down     bool
	anything bool // any credentials will do
	probes   int
	regions  []string
}

func (c *cloud) Probe(_ context.Context, v lcm.VIM) (vim.ProbeResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probes++
	if c.down {
		return vim.ProbeResult{}, lcm.Errorf(lcm.KindUnavailable, "down")
	}
	if v.Auth["password"] != c.password && !c.anything {
		return vim.ProbeResult{}, lcm.Errorf(lcm.KindInvalid, "wrong password")
	}
	return vim.ProbeResult{Regions: c.regions, ProjectID: "kp"}, nil
}

func (c *cloud) set(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func newService(t *testing.T, cfg vim.Config) (*vim.Service, *store.Store, *cloud) {
	t.Helper()
	st, c := storetest.Open(t), &cloud{password: "geheim", regions: []string{"RegionOne", "RegionTwo"}}
	return vim.New(cfg, st, map[string]vim.Prober{lcm.VimOpenStack: c, lcm.VimKubernetes: c}, storetest.Log()), st, c
}

func openstack(name string, isDefault bool) lcm.VIM {
	return lcm.VIM{
		Name: name, Type: lcm.VimOpenStack, AuthURL: "http://keystone/identity", Default: isDefault,
		Auth:    map[string]any{"username": "nfv_user", "password": "geheim", "user_domain_name": "Default", "cert_verify": "False"},
		Project: map[string]any{"name": "nfv", "project_domain_name": "Default"},
	}
}

func refused(t *testing.T, err error, kind lcm.Kind, detail string) {
	t.Helper()
	var e *lcm.Error
	if !lcm.Is(err, kind) {
		t.Fatalf("error %v is of the kind %q, want %q", err, lcm.KindOf(err), kind)
	}
	if detail != "" && (!errors.As(err, &e) || e.Detail != detail) {
		t.Fatalf("error says\n%s\nwant\n%s", err, detail)
	}
}

func register(t *testing.T, s *vim.Service, sc lcm.Scope, v lcm.VIM) *lcm.VIM {
	t.Helper()
	got, err := s.Register(context.Background(), sc, v)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRegister(t *testing.T) {
	ctx := context.Background()
	s, st, _ := newService(t, vim.Config{})
	got := register(t, s, user, openstack("VIM0", true))
	want := &lcm.VIM{
		ID: got.ID, ProjectID: "p1", Name: "VIM0", Type: "openstack", AuthURL: "http://keystone/identity/v3", Default: true,
		Auth: map[string]any{"username": "nfv_user", "password": "***", "user_domain_name": "Default", "cert_verify": "False",
			"project_name": "nfv", "project_domain_name": "Default", "auth_url": "http://keystone/identity/v3", "key_type": "fernet_key", "project_id": "kp"},
		Project: map[string]any{"name": "nfv", "project_domain_name": "Default"}, Regions: []string{"RegionOne", "RegionTwo"},
		Status: lcm.VimPending, Created: got.Created, Version: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("registered (-want +got):\n%s", diff)
	}
	want.Status = lcm.VimReachable // right after
	read, err := s.Get(ctx, user, got.ID)
	if diff := cmp.Diff(want, read); err != nil || diff != "" {
		t.Errorf("%v; read (-want +got):\n%s", err, diff)
	}
	list, err := s.List(ctx, user)
	if diff := cmp.Diff([]lcm.VIM{*want}, list); err != nil || diff != "" {
		t.Errorf("%v; listed (-want +got):\n%s", err, diff)
	}
	if list, err := s.List(ctx, other); err != nil || len(list) != 0 {
		t.Errorf("somebody else sees %v %v", list, err)
	}
	if list, err := s.List(ctx, admin); err != nil || len(list) != 1 {
		t.Errorf("an administrator sees %v %v", list, err)
	}
	var row string
	if err := st.Pool.QueryRow(ctx, `SELECT v::text FROM vims v`).Scan(&row); err != nil || strings.Contains(row, "geheim") {
		t.Errorf("the row tells the password: %v", err)
	}

	_, err = s.Register(ctx, user, openstack("VIM1", true))
	refused(t, err, lcm.KindConflict, "Default VIM already exists "+got.ID+".")
	_, err = s.Register(ctx, user, openstack("VIM0", true)) // the default goes before the name
	refused(t, err, lcm.KindConflict, "Default VIM already exists "+got.ID+".")
	_, err = s.Register(ctx, user, openstack("VIM0", false))
	refused(t, err, lcm.KindConflict, "vim already exist with given ['tenant_id', 'name', 'deleted_at']")
	register(t, s, other, openstack("VIM0", true)) // another project has its own

	for name, change := range map[string]func(*lcm.VIM){
		"type":     func(v *lcm.VIM) { v.Type = "vmware" },
		"fake":     func(v *lcm.VIM) { v.Type = lcm.VimFake },
		"NUL":      func(v *lcm.VIM) { v.Name = "a\x00" },
		"no url":   func(v *lcm.VIM) { v.AuthURL = "" },
		"scheme":   func(v *lcm.VIM) { v.AuthURL = "ftp://keystone" },
		"userinfo": func(v *lcm.VIM) { v.AuthURL = "http://u:p@keystone" },
		"password": func(v *lcm.VIM) { v.Auth = map[string]any{"password": "wrong"} },
	} {
		v := openstack("bad "+name, false)
		change(&v)
		_, err := s.Register(ctx, user, v)
		refused(t, err, lcm.KindInvalid, "")
	}
	if list, _ := s.List(ctx, user); len(list) != 1 {
		t.Errorf("refused VIMs were stored: %v", list)
	}
	for in, want := range map[string]string{"http://k/v3": "http://k/v3", "http://k/v2.0": "http://k/v2.0", "http://k/identity/": "http://k/identity/v3", "https://k:5000/v3/": "https://k:5000/v3"} {
		v := openstack("url "+in, false)
		v.AuthURL = in
		if got := register(t, s, user, v); got.AuthURL != want {
			t.Errorf("auth_url %s became %s", in, got.AuthURL)
		}
	}
}

func TestKubernetesIsShown(t *testing.T) {
	s, _, _ := newService(t, vim.Config{})
	got := register(t, s, user, lcm.VIM{
		Name: "k8s", Type: lcm.VimKubernetes, AuthURL: "https://1.2.3.4:6443",
		Auth:    map[string]any{"bearer_token": "t0ken", "ssl_ca_cert": "None", "username": "None", "password": "geheim", "client_key": "KEY"},
		Project: map[string]any{"name": "default"},
		Extra:   map[string]any{"helm_info": map[string]any{"masternode_ip": []any{"1.2.3.4"}, "masternode_password": "pw"}},
	})
	if diff := cmp.Diff(map[string]any{"bearer_token": "***", "ssl_ca_cert": "None", "username": "None", "password": "***", "client_key": "***",
		"auth_url": "https://1.2.3.4:6443", "key_type": "barbican_key", "secret_uuid": "***"}, got.Auth); diff != "" {
		t.Errorf("auth_cred (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"helm_info": map[string]any{"masternode_ip": []any{"1.2.3.4"}, "masternode_password": "***"}}, got.Extra); diff != "" {
		t.Errorf("extra (-want +got):\n%s", diff)
	}
}

func TestUpdate(t *testing.T) {
	ctx := context.Background()
	s, _, c := newService(t, vim.Config{})
	text, yes := func(s string) *string { return &s }, true
	first, second := register(t, s, user, openstack("VIM0", true)), register(t, s, user, openstack("VIM1", false))
	probes := c.probes

	got, err := s.Update(ctx, user, second.ID, lcm.VIMChange{Name: text("new"), Desc: text("words"), Extra: map[string]any{"area": "x", "api_key": "k"}})
	if err != nil || got.Name != "new" || got.Desc != "words" || got.Version != 2 || got.Updated.IsZero() || got.Extra["api_key"] != "***" || got.Auth["project_id"] != "kp" {
		t.Errorf("%+v %v", got, err)
	}
	if c.probes != probes {
		t.Error("a change of the name logged in")
	}
	c.mu.Lock()
	c.password, c.regions = "neu", []string{"RegionThree"}
	c.mu.Unlock()
	_, err = s.Update(ctx, user, second.ID, lcm.VIMChange{Auth: map[string]any{"password": "falsch"}})
	refused(t, err, lcm.KindInvalid, "wrong password")
	got, err = s.Update(ctx, user, second.ID, lcm.VIMChange{Auth: map[string]any{"password": "neu"}, Project: map[string]any{"name": "nfv2"}, Extra: map[string]any{"api_key": "***"}})
	if err != nil || got.Auth["password"] != "***" || got.Auth["username"] != "nfv_user" || got.Auth["project_name"] != "nfv2" || !cmp.Equal(got.Regions, []string{"RegionThree"}) {
		t.Errorf("%+v %v", got, err)
	}
	// What was masked comes back as it was.
	if _, err := s.Update(ctx, user, second.ID, lcm.VIMChange{Auth: map[string]any{"password": "***"}}); err != nil {
		t.Error(err)
	}
	target, err := s.Resolve(ctx, user, []sol003.VimConnectionInfo{{Id: "c", VimId: second.ID}})
	if err != nil || target.Auth["password"] != "neu" || target.Extra["api_key"] != "k" || target.Extra["area"] != "x" {
		t.Errorf("%+v %v", target, err)
	}
	_, err = s.Update(ctx, user, second.ID, lcm.VIMChange{Default: &yes})
	refused(t, err, lcm.KindConflict, "Default VIM already exists "+first.ID+".")
	_, err = s.Update(ctx, user, second.ID, lcm.VIMChange{Name: text("VIM0")})
	refused(t, err, lcm.KindConflict, "vim already exist with given ['tenant_id', 'name', 'deleted_at']")
	if _, err := s.Update(ctx, user, first.ID, lcm.VIMChange{Default: &yes}); err != nil {
		t.Error(err)
	}
	for _, id := range []string{nobody, "nonsense"} {
		_, err = s.Update(ctx, user, id, lcm.VIMChange{Name: text("x")})
		refused(t, err, lcm.KindNotFound, "Specified VIM id "+id+" is invalid. Please verify and pass a valid VIM id")
	}
	_, err = s.Update(ctx, other, first.ID, lcm.VIMChange{Name: text("x")})
	refused(t, err, lcm.KindNotFound, "")

	// Updates at once are all kept.
	var wg sync.WaitGroup
	keys := []string{"a", "b", "c", "d"}
	for _, k := range keys {
		wg.Go(func() {
			for {
				_, err := s.Update(ctx, user, second.ID, lcm.VIMChange{Extra: map[string]any{k: "1"}})
				if !lcm.Is(err, lcm.KindPrecondition) {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	wg.Wait()
	got, err = s.Get(ctx, user, second.ID)
	for _, k := range keys {
		if err != nil || got.Extra[k] != "1" {
			t.Errorf("%s is lost: %v %v", k, got.Extra, err)
		}
	}
}

func TestTokenAndPasswordExclude(t *testing.T) {
	ctx := context.Background()
	s, _, c := newService(t, vim.Config{})
	c.password = "pw"
	v := register(t, s, user, lcm.VIM{Name: "k", Type: lcm.VimKubernetes, AuthURL: "https://k", Auth: map[string]any{"username": "u", "password": "pw"}, Project: map[string]any{"name": "default"}})
	check := func(change, want map[string]any, ok bool) {
		t.Helper()
		if _, err := s.Update(ctx, user, v.ID, lcm.VIMChange{Auth: change}); (err == nil) != ok {
			t.Fatal(err)
		}
		target, err := s.Resolve(ctx, user, []sol003.VimConnectionInfo{{VimId: v.ID}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, target.Auth); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	check(map[string]any{"bearer_token": "t"}, map[string]any{"username": "u", "password": "pw"}, false) // this cluster wants a password
	c.mu.Lock()
	c.anything = true
	c.mu.Unlock()
	check(map[string]any{"bearer_token": "t"}, map[string]any{"bearer_token": "t"}, true)
	check(map[string]any{"username": "v", "password": "pw2"}, map[string]any{"username": "v", "password": "pw2"}, true)
	check(map[string]any{"username": "w", "password": "***"}, map[string]any{"username": "w", "password": "pw2"}, true)
}

func TestDelete(t *testing.T) {
	ctx := context.Background()
	s, st, _ := newService(t, vim.Config{})
	v := register(t, s, user, openstack("VIM0", true))
	refused(t, s.Delete(ctx, other, v.ID), lcm.KindNotFound, "")
	refused(t, s.Delete(ctx, user, "x"), lcm.KindNotFound, "Specified VIM id x is invalid. Please verify and pass a valid VIM id")
	if _, err := st.Pool.Exec(ctx, `WITH p AS (INSERT INTO vnf_packages (id, project_id, onboarding_state, operational_state, body, created_at)
		VALUES (gen_random_uuid(), 'p1', 'ONBOARDED', 'ENABLED', '{}', now()) RETURNING id)
		INSERT INTO vnf_instances (id, project_id, name, vnfd_id, vnf_pkg_id, instantiation_state, vim_id, body, created_at)
		SELECT gen_random_uuid(), 'p1', 'i', 'v', p.id, 'INSTANTIATED', $1, '{}', now() FROM p`, v.ID); err != nil {
		t.Fatal(err)
	}
	refused(t, s.Delete(ctx, user, v.ID), lcm.KindConflict, "VIM "+v.ID+" is still in use by VNF")
	if _, err := st.Pool.Exec(ctx, `UPDATE vnf_instances SET vim_id = NULL`); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, user, v.ID); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(ctx, user, v.ID)
	refused(t, err, lcm.KindNotFound, "")
	register(t, s, user, openstack("VIM0", true)) // name and default are free again
}

func TestResolve(t *testing.T) {
	ctx := context.Background()
	s, _, _ := newService(t, vim.Config{})
	_, err := s.Resolve(ctx, user, nil)
	refused(t, err, lcm.KindInvalid, "Default VIM is not defined.")
	def, named := register(t, s, user, openstack("VIM0", true)), register(t, s, user, openstack("VIM1", false))
	foreign := register(t, s, other, openstack("VIM0", true))
	type conn = sol003.VimConnectionInfo
	inline := map[string]any{"username": "nfv_user", "password": "devstack", "region": "RegionOne"}
	for _, c := range []struct {
		name   string
		conns  []conn
		id     string
		region string
		detail string
	}{
		{name: "none", id: def.ID},
		{name: "empty", conns: []conn{}, id: def.ID},
		{name: "inline credentials", conns: []conn{{Id: "x", VimType: "ETSINFV.OPENSTACK_KEYSTONE.v_2", AccessInfo: inline}}, id: def.ID, region: "RegionOne"},
		{name: "named", conns: []conn{{Id: "x", VimId: named.ID, VimType: "kubernetes"}}, id: named.ID},
		{name: "region", conns: []conn{{VimId: named.ID, AccessInfo: map[string]any{"region": "RegionTwo"}}}, id: named.ID, region: "RegionTwo"},
		{name: "no region", conns: []conn{{VimId: named.ID, AccessInfo: map[string]any{"region": "Mars"}}}, detail: "Region not found for the VimConnection: " + named.ID},
		{name: "unknown", conns: []conn{{VimId: nobody}}, detail: "VimConnection id is not found: " + nobody},
		{name: "no id", conns: []conn{{VimId: "zz"}}, detail: "VimConnection id is not found: zz"},
		{name: "foreign", conns: []conn{{VimId: foreign.ID}}, detail: "VimConnection id is not found: " + foreign.ID},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.Resolve(ctx, user, c.conns)
			if c.detail != "" {
				refused(t, err, lcm.KindInvalid, c.detail)
				return
			}
			if err != nil || got.ID != c.id || got.Region != c.region || got.Auth["password"] != "geheim" || got.Type != lcm.VimOpenStack {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
	got, err := s.Resolve(ctx, user, []conn{{Id: "c1", Extra: map[string]any{"k": "v"}}})
	if err != nil || got.ConnectionID != "c1" || !maps.Equal(got.Extra, map[string]any{"k": "v"}) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestMonitor(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	s, st, c := newService(t, vim.Config{MonitorInterval: time.Millisecond, MonitorParallel: 1, AllowFake: true})
	a := register(t, s, user, openstack("VIM0", true))
	fake := register(t, s, user, lcm.VIM{Name: "f", Type: lcm.VimFake, AuthURL: "fake", Auth: map[string]any{}, Project: map[string]any{}})
	done := make(chan struct{})
	go func() { defer close(done); s.Monitor(ctx) }()
	await := func(id, status string) {
		t.Helper()
		for ctx.Err() == nil {
			if v, err := s.Get(ctx, user, id); err == nil && v.Status == status {
				return
			}
		}
		t.Fatalf("the VIM does not become %s", status)
	}
	await(a.ID, lcm.VimReachable)
	c.set(true)
	await(a.ID, lcm.VimUnreachable)
	await(fake.ID, lcm.VimReachable)
	if _, err := s.Resolve(ctx, user, nil); err != nil {
		t.Error("an operation depends on the status:", err)
	}
	c.set(false)
	await(a.ID, lcm.VimReachable)
	if v, err := s.Get(ctx, user, a.ID); err != nil || v.Version != 1 {
		t.Errorf("the status made a new version: %+v %v", v, err)
	}
	if ok, err := st.SetVIMStatus(ctx, a.ID, 1, lcm.VimPending, lcm.VimUnreachable); ok || err != nil {
		t.Errorf("a status that has moved on was changed: %v %v", ok, err)
	}
	cancel()
	<-done
}
