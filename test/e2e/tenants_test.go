package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// TestTenants lets users of two projects of Keystone work beside one another: neither sees anything of the other's. Who may
// only read does not change anything, and an administrator sees all.
func TestTenants(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	user := func(name, project, role string) vimsim.User {
		return vimsim.User{Name: name, Password: wrongSecret, Projects: map[string][]string{project: {role}}}
	}
	base := newLab(t, harness.Options{Keystone: true, Env: []string{loopbackCallbacks}, VIM: vimsim.Config{Users: []vimsim.User{
		user("blue", "blues", "member"), user("green", "greens", "member"), user("watcher", "blues", "reader"),
	}}})
	// The client is ours: what it prints is what openstack does, and it takes a tenth of the time.
	as := func(name, project string) *lab {
		l := base.ours(ctx, t)
		l.osEnv = append(slices.Clone(base.osEnv), "OS_USERNAME="+name, "OS_PASSWORD="+wrongSecret, "OS_PROJECT_NAME="+project)
		l.api = base.API(0)
		var err error
		l.api.Token, err = base.TokenOf(ctx, name, wrongSecret, project)
		must(t, err)
		return l
	}
	blue, green, watcher := as("blue", "blues"), as("green", "greens"), as("watcher", "blues")
	admin := base.ours(ctx, t)
	var err error
	admin.api.Token, err = base.Token(ctx)
	must(t, err)

	// Each has a package, an instance, an op occ and a subscription.
	mine := newTenant(ctx, t, blue)
	others := newTenant(ctx, t, green)
	for _, who := range []struct {
		*lab
		own, foreign *tenant
	}{{blue, mine, others}, {green, others, mine}, {watcher, mine, others}} {
		who.own.seenBy(ctx, t, who.lab, true)
		who.foreign.seenBy(ctx, t, who.lab, false)
	}
	mine.seenBy(ctx, t, admin, true)
	others.seenBy(ctx, t, admin, true)

	// The other's cannot be changed either: it is as if it were not there.
	notFound := "Can not find requested vnf"
	update := blue.jsonFile(t, "update.json", map[string]any{"vnfInstanceName": "taken"})
	for _, args := range [][]string{
		{"vnflcm", "delete", others.instance}, {"vnflcm", "update", others.instance, "--I", update}, {"vnflcm", "heal", others.instance},
		{"vnflcm", "terminate", others.instance}, {"vnflcm", "scale", others.instance, "--type", "SCALE_OUT", "--aspect-id", "a"},
		{"vnflcm", "op", "retry", others.op}, {"vnflcm", "op", "rollback", others.op}, {"vnflcm", "op", "fail", others.op},
		{"vnflcm", "op", "cancel", others.op}, {"vnflcm", "subsc", "delete", others.subscription}, {"vnf", "package", "delete", others.pkg},
		{"vnf", "package", "update", others.pkg, "--operational-state", "DISABLED"},
	} {
		blue.refused(ctx, t, []string{notFound}, args...)
	}
	blue.refused(ctx, t, []string{notFound, others.vnfd}, "vnflcm", "create", others.vnfd)

	// Who reads may not write.
	forbidden := func(method, route string) []string {
		return []string{"The role reader may not " + method + " " + route}
	}
	instance, op := instancesPath+"/{vnfInstanceId}", opOccsPath+"/{vnfLcmOpOccId}"
	subscription := blue.jsonFile(t, "subscription.json", map[string]any{"callbackUri": mine.callback.URL + "/watcher"})
	for _, c := range []struct {
		says []string
		args []string
	}{
		{forbidden("POST", instancesPath), []string{"vnflcm", "create", mine.vnfd}},
		{forbidden("DELETE", instance), []string{"vnflcm", "delete", mine.instance}},
		{forbidden("PATCH", instance), []string{"vnflcm", "update", mine.instance, "--I", update}},
		{forbidden("POST", instance+"/heal"), []string{"vnflcm", "heal", mine.instance}},
		{forbidden("POST", instance+"/terminate"), []string{"vnflcm", "terminate", mine.instance}},
		{forbidden("POST", op+"/retry"), []string{"vnflcm", "op", "retry", mine.op}},
		{forbidden("POST", op+"/fail"), []string{"vnflcm", "op", "fail", mine.op}},
		{forbidden("POST", subscriptionsPath), []string{"vnflcm", "subsc", "create", subscription}},
		{forbidden("DELETE", subscriptionsPath), []string{"vnflcm", "subsc", "delete", mine.subscription}},
		{forbidden("POST", "/vnfpkgm/v1/vnf_packages"), []string{"vnf", "package", "create"}},
	} {
		watcher.refused(ctx, t, c.says, c.args...)
	}
	// The real client says the same of a refusal.
	real := *watcher
	real.client = ""
	real.refused(ctx, t, forbidden("POST", instancesPath), "vnflcm", "create", mine.vnfd)

	// Nobody is told of the other's.
	mine.checkTold(ctx, t, others)
	others.checkTold(ctx, t, mine)
	for _, of := range []struct {
		*lab
		*tenant
	}{{blue, mine}, {green, others}} {
		of.prints(ctx, t, "Lccn Subscription '"+of.subscription+"' is deleted successfully\n", "vnflcm", "subsc", "delete", of.subscription)
		of.prints(ctx, t, "Vnf instance '"+of.instance+"' is deleted successfully\n", "vnflcm", "delete", of.instance)
		must(t, of.api.DeletePackage(ctx, of.pkg))
	}
	base.checkNoSecrets(t)
}

// tenant is what a project has.
type tenant struct {
	pkg, vnfd, instance, op, subscription string
	callback                              *subscriber
}

func newTenant(ctx context.Context, t *testing.T, l *lab) *tenant {
	t.Helper()
	n := &tenant{callback: newSubscriber(t)}
	n.subscription = l.show(ctx, t, "vnflcm", "subsc", "create", l.jsonFile(t, "subscription.json", map[string]any{"callbackUri": n.callback.URL})).values["ID"]
	raw, vnfd := variant(t, "multi-port", nil)
	p, err := l.api.Onboard(ctx, raw)
	must(t, err)
	n.pkg, n.vnfd = p.Id, vnfd
	n.instance = l.show(ctx, t, "vnflcm", "create", vnfd).values["ID"]
	l.ok(ctx, t, "vnflcm", "update", n.instance, "--I", l.jsonFile(t, "update.json", map[string]any{"vnfInstanceName": "of " + n.pkg}))
	n.op = l.latest(ctx, t, n.instance)
	l.awaitOp(ctx, t, n.op, sol003.LcmOperationStateCompleted)
	return n
}

// seenBy checks that a user sees all of it, in lists and one by one, or nothing.
func (n *tenant) seenBy(ctx context.Context, t *testing.T, l *lab, sees bool) {
	t.Helper()
	for id, what := range map[string][]string{
		n.pkg: {"vnf", "package"}, n.instance: {"vnflcm"}, n.op: {"vnflcm", "op"}, n.subscription: {"vnflcm", "subsc"},
	} {
		if out := l.ok(ctx, t, append(slices.Clone(what), "list")...); strings.Contains(out, id) != sees {
			t.Errorf("%s list as %v: is %s to be there: %t\n%s", strings.Join(what, " "), l.osEnv[len(l.osEnv)-1], id, sees, out)
		}
		args := append(slices.Clone(what), "show", id)
		if sees {
			l.ok(ctx, t, args...)
		} else {
			l.refused(ctx, t, []string{"Can not find requested vnf", id}, args...)
		}
	}
	// Filters do not reach further than lists.
	out := l.ok(ctx, t, "vnflcm", "op", "list", "--filter", "(eq,vnfInstanceId,"+n.instance+")", "-f", "value", "-c", "ID")
	want := ""
	if sees {
		want = n.op + "\n"
	}
	if out != want {
		t.Errorf("vnflcm op list with a filter prints %q, want %q", out, want)
	}
}

// checkTold checks that a tenant's subscriber was told of its own instance, and of no other.
func (n *tenant) checkTold(ctx context.Context, t *testing.T, other *tenant) {
	t.Helper()
	want := []string{"VnfIdentifierCreationNotification", "MODIFY_INFO PROCESSING", "MODIFY_INFO COMPLETED"}
	if got := n.callback.lines(ctx, t, n.instance, want[len(want)-1]); !slices.Equal(got, want) {
		t.Errorf("the subscriber is told %q, want %q", got, want)
	}
	if got := n.callback.about(other.instance); len(got) > 0 {
		t.Errorf("the subscriber is told of another project's instance: %s", fmt.Sprint(got[0].line()))
	}
}
