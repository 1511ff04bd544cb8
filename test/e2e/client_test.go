package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// TestWithoutAuthentication drives everything with `openstack --os-auth-type none`.
func TestWithoutAuthentication(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{})
	vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
	must(t, err)
	network, err := l.NetworkID(ctx, "net0")
	must(t, err)
	t.Run("with", func(t *testing.T) {
		t.Run("our cluster package", func(t *testing.T) {
			t.Parallel()
			c := ourCluster(t)
			pkg := l.createPackage(ctx, t)
			vnfd := l.onboard(ctx, t, pkg, c)
			l.listPackages(ctx, t, pkg, c.product, "NOT_IN_USE")
			l.download(ctx, t, pkg, "Scripts/kubernetes_mgmt.py", c)
			l.life(ctx, t, pkg, vnfd, vim, c, clusterShape(t, "simple", network, 1), false)
			l.life(ctx, t, pkg, vnfd, vim, c, clusterShape(t, "complex", network, 3), true)
			l.removePackage(ctx, t, pkg)
		})
		t.Run("our package with many ports", func(t *testing.T) {
			t.Parallel()
			c, s := ourMultiPort(t)
			pkg := l.createPackage(ctx, t)
			vnfd := l.onboard(ctx, t, pkg, c)
			l.life(ctx, t, pkg, vnfd, vim, c, s, true)
			l.removePackage(ctx, t, pkg)
		})
		t.Run("the cluster package from outside", func(t *testing.T) {
			t.Parallel()
			c, ok := outsideCluster(t)
			if !ok {
				return
			}
			pkg := l.createPackage(ctx, t)
			vnfd := l.onboard(ctx, t, pkg, c)
			l.life(ctx, t, pkg, vnfd, vim, c, clusterShape(t, "simple", network, 1), true)
			l.life(ctx, t, pkg, vnfd, vim, c, clusterShape(t, "complex", network, 3), false)
			l.removePackage(ctx, t, pkg)
		})
		t.Run("the functional package from outside", func(t *testing.T) {
			t.Parallel()
			c, s, ok := outsideFunctional(t, network)
			if !ok {
				return
			}
			pkg := l.createPackage(ctx, t)
			vnfd := l.onboard(ctx, t, pkg, c)
			l.life(ctx, t, pkg, vnfd, vim, c, s, false)
			l.removePackage(ctx, t, pkg)
		})
		t.Run("VIMs", func(t *testing.T) {
			t.Parallel()
			l.vims(ctx, t, "default")
		})
		t.Run("refusals", func(t *testing.T) {
			t.Parallel()
			l.refusals(ctx, t)
		})
	})
	l.versions(ctx, t)
	l.checkNothingLeft(t)
	l.checkNoSecrets(t)
}

// TestWithKeystone drives the main path as a user of OpenStack does: who they are, and where the VNF manager is, is
// Keystone's business.
func TestWithKeystone(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{Keystone: true, VIM: vimsim.Config{Users: []vimsim.User{
		{Name: "stranger", Password: wrongSecret, Projects: map[string][]string{"elsewhere": {"member"}}},
	}}})
	var err error
	l.api.Token, err = l.Token(ctx)
	must(t, err)
	vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
	must(t, err)
	c := ourCluster(t)
	pkg := l.createPackage(ctx, t)
	vnfd := l.onboard(ctx, t, pkg, c)
	t.Run("with", func(t *testing.T) {
		t.Run("our cluster package", func(t *testing.T) {
			t.Parallel()
			network, err := l.NetworkID(ctx, "net0")
			must(t, err)
			l.download(ctx, t, pkg, "Scripts/install_k8s_cluster.sh", c)
			l.life(ctx, t, pkg, vnfd, vim, c, clusterShape(t, "complex", network, 3), true)
		})
		t.Run("VIMs", func(t *testing.T) {
			t.Parallel()
			l.vims(ctx, t, "")
		})
		t.Run("others", func(t *testing.T) {
			t.Parallel()
			r := l.openstackAs(ctx, t, append(slices.Clone(l.osEnv), "OS_PASSWORD="+wrongSecret), "vnflcm", "list")
			if r.code != 1 || !strings.Contains(r.err, "requires authentication") {
				t.Errorf("with a wrong password: exit code %d\n%s%s", r.code, r.out, r.err)
			}
			stranger := append(slices.Clone(l.osEnv), "OS_USERNAME=stranger", "OS_PASSWORD="+wrongSecret, "OS_PROJECT_NAME=elsewhere")
			if r := l.openstackAs(ctx, t, stranger, "vnf", "package", "list"); r.code != 0 || strings.Contains(r.out, pkg) {
				t.Errorf("a user of another project: exit code %d\n%s%s", r.code, r.out, r.err)
			}
			r = l.openstackAs(ctx, t, stranger, "vnf", "package", "show", pkg)
			if r.code != 1 || !strings.Contains(r.err, pkg) || strings.Contains(r.out, pkg) {
				t.Errorf("a user of another project asks for our package: exit code %d\n%s%s", r.code, r.out, r.err)
			}
			r = l.openstackAs(ctx, t, []string{"OS_AUTH_TYPE=admin_token", "OS_ENDPOINT=" + l.Nodes[0].URL, "OS_TOKEN=invented"}, "vnflcm", "list")
			if r.code != 1 || !strings.Contains(r.err, "requires authentication") {
				t.Errorf("with an invented token: exit code %d\n%s%s", r.code, r.out, r.err)
			}
		})
	})
	l.removePackage(ctx, t, pkg)
	l.checkNothingLeft(t)
	l.checkNoSecrets(t)
}

// vims has the client register, list, show, set and delete a VIM. project is the one that it is to belong to, if known.
func (l *lab) vims(ctx context.Context, t *testing.T, project string) {
	t.Helper()
	config := func(password string) string {
		return l.file(t, "vim.yaml", []byte("auth_url: "+l.Sim.URL+"/identity\nusername: "+harness.User+"\npassword: "+password+
			"\nproject_name: "+harness.Project+"\nproject_domain_name: Default\nuser_domain_name: Default\ncert_verify: 'True'\n"))
	}
	l.refused(ctx, t, []string{"VIM 'second'", l.Sim.AuthURL, "Unauthorized"}, "vim", "register", "--config-file", config(wrongSecret), "second")
	want := map[string]string{
		"auth_cred": anything, "auth_url": l.Sim.AuthURL, "created_at": anything, "description": "of a test", "extra": "", "id": anything,
		"is_default": "False", "name": "second", "placement_attr": anything, "project_id": anything, "status": anything, "type": "openstack",
		"updated_at": "None", "vim_project": anything,
	}
	f := l.show(ctx, t, "vim", "register", "--config-file", config(harness.Password), "--description", "of a test", "second")
	f.want(t, "vim register", want)
	id := f.values["id"]
	if project != "" && f.values["project_id"] != project {
		t.Errorf("the VIM belongs to project %s, want %s", f.values["project_id"], project)
	}
	var shown struct {
		Username, Password string
		Regions            []string
	}
	f.json(t, "auth_cred", &shown)
	f.json(t, "placement_attr", &shown)
	if shown.Username != harness.User || shown.Password != "***" || !slices.Equal(shown.Regions, []string{"RegionOne"}) {
		t.Errorf("the VIM is shown with %+v", shown)
	}
	l.refused(ctx, t, []string{"vim already exist with given"}, "vim", "register", "--config-file", config(harness.Password), "second")
	rows := l.list(ctx, t, []string{"ID", "Name", "Tenant_id", "Type", "Is Default", "Status"}, "vim", "list")
	n := slices.IndexFunc(rows, func(r map[string]string) bool { return r["ID"] == id })
	if len(rows) != 2 || n < 0 || rows[n]["Name"] != "second" || rows[n]["Type"] != "openstack" || rows[n]["Is Default"] != "False" || rows[n]["Status"] != "REACHABLE" {
		t.Errorf("vim list: %v", rows)
	}
	want["id"], want["status"] = id, "REACHABLE"
	l.show(ctx, t, "vim", "show", id).want(t, "vim show", want)
	want["name"], want["description"], want["updated_at"] = "third", "changed", anything
	l.show(ctx, t, "vim", "set", "second", "--name", "third", "--description", "changed").want(t, "vim set", want)
	l.says(ctx, t, "All specified vim(s) deleted successfully", "vim", "delete", "third")
	l.refused(ctx, t, []string{"Unable to find vim with name 'third'"}, "vim", "show", "third")
}

// versions asks for the versions of the vnflcm API; this client prints the attributes as they come.
func (l *lab) versions(ctx context.Context, t *testing.T) {
	t.Helper()
	if f := l.show(ctx, t, "vnflcm", "versions"); len(f.labels) != 2 || f.values["uriPrefix"] != "/vnflcm" || !strings.Contains(f.values["apiVersions"], "'version': '1.3.0'") {
		t.Errorf("vnflcm versions shows %v", f.values)
	}
	f := l.show(ctx, t, "vnflcm", "versions", "--major-version", "1")
	if len(f.labels) != 2 || f.values["uriPrefix"] != "/vnflcm/v1" {
		t.Errorf("vnflcm versions --major-version 1 shows %v", f.values)
	}
	if got := f.values["apiVersions"]; !strings.Contains(got, "'version': '1.3.0'") || !strings.Contains(got, "'isDeprecated': False") {
		t.Errorf("the versions are %s", got)
	}
}

// nobody is an id that nothing has.
const nobody = "0badc0de-0000-4000-8000-000000000000"

// refusals has the client ask for what must be refused, with words that say why.
func (l *lab) refusals(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"vnf", "package", "show", nobody}, {"vnf", "package", "delete", nobody}, {"vnflcm", "show", nobody}, {"vnflcm", "delete", nobody},
		{"vnflcm", "terminate", nobody}, {"vnflcm", "op", "show", nobody}, {"vnflcm", "create", nobody}, {"vim", "show", nobody},
	} {
		l.refused(ctx, t, []string{nobody}, args...)
	}

	// A package that is none.
	pkg := l.createPackage(ctx, t)
	l.refused(ctx, t, []string{pkg, "onboarding state is not ONBOARDED"}, "vnf", "package", "download", pkg, "--file", l.file(t, "out", nil))
	l.ok(ctx, t, "vnf", "package", "upload", "--path", l.file(t, "broken.zip", []byte("no zip at all")), pkg)
	if _, err := l.api.AwaitOnboarded(ctx, pkg); err == nil || !strings.Contains(err.Error(), "zip") {
		t.Errorf("a broken zip: %v", err)
	}
	f := l.show(ctx, t, "vnf", "package", "show", pkg)
	if _, ok := f.values["onboardingFailureDetails"]; !ok || f.values["Onboarding State"] != "CREATED" {
		t.Errorf("a package whose onboarding failed is shown as %v", f.values)
	}
	if d := l.state(ctx, t, pkg).OnboardingFailureDetails; d == nil || !strings.Contains(d.Detail, "zip") {
		t.Errorf("onboardingFailureDetails of a broken zip: %+v", d)
	}

	// It may be uploaded again; then what is wrong with using it.
	c, s := ourMultiPort(t)
	vnfd := l.onboardRenamed(ctx, t, pkg)
	l.refused(ctx, t, []string{pkg, "CREATED"}, "vnf", "package", "upload", "--path", l.file(t, "again.zip", c.zip), pkg)
	l.refused(ctx, t, []string{pkg, "ENABLED"}, "vnf", "package", "delete", pkg)
	l.refused(ctx, t, []string{"Not Found Artifact File"}, "vnf", "package", "artifact", "download", pkg, "Scripts/none.sh", "--file", l.file(t, "out", nil))
	id := l.createInstance(ctx, t, vnfd, c)
	l.refused(ctx, t, []string{"'nosuchflavour'"}, "vnflcm", "instantiate", id, l.jsonFile(t, "r.json", map[string]any{"flavourId": "nosuchflavour"}))
	l.refused(ctx, t, []string{"flavourId"}, "vnflcm", "instantiate", id, l.jsonFile(t, "r.json", map[string]any{"instantiationLevelId": "x"}))
	l.refused(ctx, t, []string{nobody}, "vnflcm", "instantiate", id, l.jsonFile(t, "r.json", harness.OnVIM(s.request, nobody)))
	l.refused(ctx, t, []string{id, "NOT_INSTANTIATED"}, "vnflcm", "terminate", id)
	l.refused(ctx, t, []string{pkg, "IN_USE"}, "vnf", "package", "delete", pkg)
	l.says(ctx, t, "Vnf instance '"+id+"' is deleted successfully", "vnflcm", "delete", id)
	must(t, l.api.DeletePackage(ctx, pkg))
}
