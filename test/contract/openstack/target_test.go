package openstack_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// What both targets have.
const (
	cirros = "cirros-0.5.2-x86_64-disk"
	tiny   = "m1.tiny"
	small  = "m1.small"
	net0   = "net0"
	net1   = "net1"
)

// inParallel is how many cases run on an OpenStack at once.
const inParallel = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", inParallel); err != nil {
			panic(err)
		}
	}
	harness.Main(m)
}

// account is who logs in, and to which project.
type account struct{ user, password, project string }

// target is what a case runs on: a cloud with a project that nobody else uses.
type target struct {
	name    string // vimsim or openstack
	authURL string
	region  string
	tenant  account // the case's project; its user has the roles member and admin there
	admin   account
	project string         // the project's id
	sim     *vimsim.Server // nil on an OpenStack
	limit   time.Duration  // of any wait
	pause   time.Duration  // between looks

	provider, adminProvider                        *gophercloud.ProviderClient
	keystone, heat, nova, neutron, cinder, glance  *api
	adminKeystone, adminNova, adminNeutron, adminC *api
	before                                         map[string]bool // what was there at first
}

// real tells whether the target is an OpenStack.
func (c *target) real() bool { return c.sim == nil }

// seconds is how long something is to take so that a case sees it going on: longer where answers are slow, and on the simulator
// long enough for a slow machine.
func (c *target) seconds(n int) int {
	if c.real() {
		return 5 * n
	}
	return 3 * n
}

// each runs a case on the target that the environment chooses, beside other cases. When it has ended nothing may be left in
// its project.
func each(t *testing.T, f func(t *testing.T, c *target)) {
	t.Helper()
	t.Parallel()
	if os.Getenv("VNFM_OPENSTACK_AUTH_URL") == "" {
		t.Run("vimsim", func(t *testing.T) { f(t, simulated(t, vimsim.Config{})) })
		return
	}
	t.Run("openstack", func(t *testing.T) { f(t, onOpenStack(t)) })
}

// latency is how long the simulator's resources take.
const latency = 20 * time.Millisecond

// simulated makes a simulated cloud for one case. What cfg does not say is as in the lab.
func simulated(t *testing.T, cfg vimsim.Config) *target {
	t.Helper()
	c := &target{
		name: "vimsim", region: "RegionOne", limit: 3 * time.Minute, pause: 3 * time.Millisecond,
		tenant: account{"nfv_user", "devstack", "nfv"}, admin: account{"admin", "devstack", "admin"},
	}
	cfg.Users = append(cfg.Users, vimsim.User{Name: "admin", Password: "devstack", Projects: map[string][]string{"admin": {"admin"}}})
	if cfg.Minute == 0 {
		cfg.Minute = 2 * time.Second
	}
	if cfg.Retries == 0 {
		cfg.Retries = 2
	}
	if cfg.Latency == nil {
		cfg.Latency = map[string]time.Duration{"*": latency}
	}
	if cfg.Hosts == nil {
		cfg.Hosts = []string{"compute-1", "compute-2", "compute-3"}
	}
	sim, err := vimsim.Serve(context.Background(), "127.0.0.1:0", cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	c.sim, c.authURL = sim, sim.AuthURL
	c.adminProvider = c.login(t, c.admin)
	c.open(t)
	return c
}

// onOpenStack makes a project for one case on the OpenStack that the environment names.
func onOpenStack(t *testing.T) *target {
	t.Helper()
	env := func(name string) string {
		v := os.Getenv("VNFM_OPENSTACK_" + name)
		if v == "" && name != "REGION" {
			t.Fatalf("VNFM_OPENSTACK_%s is not set", name)
		}
		return v
	}
	c := &target{
		name: "openstack", authURL: env("AUTH_URL"), region: env("REGION"), limit: 10 * time.Minute, pause: 400 * time.Millisecond,
		tenant: account{env("USERNAME"), env("PASSWORD"), env("PROJECT")},
		admin:  account{env("ADMIN_USERNAME"), env("ADMIN_PASSWORD"), env("ADMIN_PROJECT")},
	}
	c.adminProvider = c.login(t, c.admin)
	c.makeProject(t)
	c.open(t)
	return c
}

// makeProject makes a project in which the tenant's user has the roles that it has in its own.
func (c *target) makeProject(t *testing.T) {
	t.Helper()
	keystone := c.service(t, "keystone", c.adminProvider)
	home := one(t, keystone.get(t, "projects?name="+c.tenant.project), "projects")
	user := one(t, keystone.get(t, "users?name="+c.tenant.user), "users")
	roles := list(keystone.get(t, "projects/"+text(home, "id")+"/users/"+text(user, "id")+"/roles").doc, "roles")
	c.tenant.project = "contract-" + unique()
	made := keystone.do(t, http.MethodPost, "projects", doc{"project": doc{
		"name": c.tenant.project, "domain_id": home["domain_id"], "description": "a case of the contract suite",
	}}).is(t, http.StatusCreated)
	id := text(made.doc, "project", "id")
	for _, r := range roles {
		keystone.do(t, http.MethodPut, "projects/"+id+"/users/"+text(user, "id")+"/roles/"+text(r, "id"), nil).is(t, http.StatusNoContent)
	}
	t.Cleanup(func() {
		neutron := c.service(t, "neutron", c.adminProvider)
		for _, g := range list(neutron.get(t, "security-groups?project_id="+id).doc, "security_groups") {
			neutron.do(t, http.MethodDelete, "security-groups/"+text(g, "id"), nil)
		}
		keystone.do(t, http.MethodDelete, "projects/"+id, nil).is(t, http.StatusNoContent)
	})
}

// open logs in to the project and sees to it that the case leaves nothing there.
func (c *target) open(t *testing.T) {
	t.Helper()
	c.provider = c.login(t, c.tenant)
	for name, at := range map[string]**api{
		"keystone": &c.keystone, "heat": &c.heat, "nova": &c.nova, "neutron": &c.neutron, "cinder": &c.cinder, "glance": &c.glance,
	} {
		*at = c.service(t, name, c.provider)
	}
	for name, at := range map[string]**api{
		"keystone": &c.adminKeystone, "nova": &c.adminNova, "neutron": &c.adminNeutron, "cinder": &c.adminC,
	} {
		*at = c.service(t, name, c.adminProvider)
	}
	c.project = projectOf(t, c.provider)
	c.before = map[string]bool{}
	for _, what := range c.left(t) {
		c.before[what] = true
	}
	t.Cleanup(func() { // runs after the case's own
		var left []string
		c.eventually(t, "nothing is left in the project", func() bool { left = c.left(t); return len(left) == 0 }, func() any { return left })
	})
}

// projectOf is the id of the project that a client has logged in to.
func projectOf(t *testing.T, p *gophercloud.ProviderClient) string {
	t.Helper()
	made, ok := p.GetAuthResult().(interface {
		ExtractInto(v any) error
	})
	if !ok {
		t.Fatalf("the login's result is %T", p.GetAuthResult())
	}
	var token struct {
		Project struct {
			ID string `json:"id"`
		} `json:"project"`
	}
	if err := made.ExtractInto(&token); err != nil || token.Project.ID == "" {
		t.Fatalf("the token has no project: %v", err)
	}
	return token.Project.ID
}

// options are what an account logs in with.
func (c *target) options(a account) gophercloud.AuthOptions {
	return gophercloud.AuthOptions{
		IdentityEndpoint: c.authURL, Username: a.user, Password: a.password, DomainName: "Default", AllowReauth: true,
		Scope: &gophercloud.AuthScope{ProjectName: a.project, DomainName: "Default"},
	}
}

// login logs in as the driver does.
func (c *target) login(t *testing.T, a account) *gophercloud.ProviderClient {
	t.Helper()
	p, err := openstack.NewClient(c.authURL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	p.HTTPClient = http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	o := c.options(a)
	if err := openstack.AuthenticateV3(context.Background(), p, &o, gophercloud.EndpointOpts{}); err != nil {
		t.Fatalf("log in to %s as %s for project %s: %v", c.authURL, a.user, a.project, err)
	}
	return p
}

// service finds a service in the catalogue.
func (c *target) service(t *testing.T, name string, p *gophercloud.ProviderClient) *api {
	t.Helper()
	opener := map[string]func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error){
		"keystone": openstack.NewIdentityV3, "heat": openstack.NewOrchestrationV1, "nova": openstack.NewComputeV2,
		"neutron": openstack.NewNetworkV2, "cinder": openstack.NewBlockStorageV3, "glance": openstack.NewImageV2,
	}[name]
	s, err := opener(p, gophercloud.EndpointOpts{Region: c.region})
	if err != nil {
		t.Fatalf("find %s: %v", name, err)
	}
	return &api{name: name, client: s}
}

// eventually waits until a condition holds; seen says what was seen instead. It may be used in clean-ups.
func (c *target) eventually(t *testing.T, what string, holds func() bool, seen func() any) {
	t.Helper()
	pause := c.pause
	for deadline := time.Now().Add(c.limit); !holds(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s; there is: %v", c.limit, what, seen())
		}
		pause = min(pause*5/4, 5*c.pause)
	}
}

// left lists all that exists in the project and was not there at first.
func (c *target) left(t *testing.T) []string {
	t.Helper()
	var out []string
	add := func(kind string, l []doc, label string) {
		for _, d := range l {
			what := kind + " " + text(d, "id") + " (" + text(d, label) + ", " + text(d, "status") + text(d, "stack_status") + ")"
			if kind == "server" { // only what is there counts, not its state
				what = kind + " " + text(d, "id") + " (" + text(d, label) + ")"
			}
			if !c.before[what] {
				out = append(out, what)
			}
		}
	}
	// Who has the role admin is shown everybody's stacks.
	stacks := list(c.heat.get(t, "stacks?show_nested=true").doc, "stacks")
	add("stack", slices.DeleteFunc(stacks, func(d doc) bool { return text(d, "project") != c.project }), "stack_name")
	add("server", list(c.nova.get(t, "servers").doc, "servers"), "name")
	add("server group", list(c.nova.get(t, "os-server-groups").doc, "server_groups"), "name")
	add("volume", list(c.cinder.get(t, "volumes/detail").doc, "volumes"), "name")
	for kind, path := range map[string]string{
		"port": "ports", "network": "networks", "subnet": "subnets", "router": "routers", "floating IP": "floatingips", "QoS policy": "qos/policies",
	} {
		name := path[strings.IndexByte(path, '/')+1:]
		add(kind, list(c.neutron.get(t, path+"?project_id="+c.project).doc, name), "name")
	}
	mine := slices.DeleteFunc(list(c.glance.get(t, "images").doc, "images"), func(d doc) bool { return text(d, "owner") != c.project })
	add("image", mine, "name")
	slices.Sort(out)
	return out
}

// unique is a name that nothing else has.
func unique() string {
	raw := make([]byte, 5)
	if _, err := rand.Read(raw); err != nil {
		panic(fmt.Sprintf("no randomness: %v", err))
	}
	return hex.EncodeToString(raw)
}
