package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// TestBadRequests sends what breaks a rule, and reads what is answered: the right status, and a problem that names the
// thing.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{Env: []string{"VNFM_LIMITS_BODY=64KiB", "VNFM_VNF_PACKAGE_SIZE_CAP=1MiB"}})
	vim, err := l.api.RegisterVIM(ctx, "VIM0", l.Sim.AuthURL)
	must(t, err)
	raw, _ := variant(t, "multi-port", nil)
	pkg, err := l.api.Onboard(ctx, raw)
	must(t, err)
	empty, err := l.api.CreatePackage(ctx)
	must(t, err)
	vnf, err := l.api.CreateInstance(ctx, pkg.VnfdId)
	must(t, err)

	const (
		asJSON = "application/json"
		asZip  = "application/zip"
	)
	packages, instances := "/vnfpkgm/v1/vnf_packages", "/vnflcm/v1/vnf_instances"
	this, thisPkg := instances+"/"+vnf.Id, packages+"/"+pkg.Id
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	big := `{"vnfdId":"` + strings.Repeat("x", 100<<10) + `"}`
	for _, c := range []struct {
		name, method, path, contentType, body string
		status                                int
		says                                  string // part of the detail
	}{
		{"malformed JSON", "POST", instances, asJSON, `{"vnfdId": `, 400, "line 1"},
		{"two JSON values", "POST", instances, asJSON, `{} {}`, 400, "follows"},
		{"not UTF-8", "POST", instances, asJSON, "{\"vnfdId\": \"\xff\xfe\"}", 400, "UTF-8"},
		{"a text with NUL", "POST", instances, asJSON, `{"vnfdId": "a\u0000"}`, 400, "U+0000"},
		{"nested too deeply", "POST", instances, asJSON, deep, 400, "nested"},
		{"no body", "POST", instances, asJSON, ``, 400, "empty"},
		{"an array", "POST", instances, asJSON, `[]`, 400, "object"},
		{"a missing attribute", "POST", instances, asJSON, `{}`, 400, "vnfdId"},
		{"a wrong type", "POST", instances, asJSON, `{"vnfdId": 7}`, 400, "vnfdId"},
		{"an unknown VNFD", "POST", instances, asJSON, `{"vnfdId": "` + nobody + `"}`, 422, nobody},
		{"a wrong content type", "POST", instances, "text/plain", `{}`, 415, "text/plain"},
		{"a body over the limit", "POST", instances, asJSON, big, 413, "65536"},
		{"a package over the limit", "PUT", packages + "/" + empty.Id + "/package_content", asZip, strings.Repeat("x", 2<<20), 413, "1048576"},
		{"a package as JSON", "PUT", packages + "/" + empty.Id + "/package_content", asJSON, `{}`, 415, asJSON},
		{"upload to an onboarded package", "PUT", thisPkg + "/package_content", asZip, "x", 409, pkg.Id},
		{"upload to an unknown package", "PUT", packages + "/" + nobody + "/package_content", asZip, "x", 404, nobody},
		{"upload from a strange scheme", "POST", packages + "/" + empty.Id + "/package_content/upload_from_uri", asJSON, `{"addressInformation": "gopher://host/x"}`, 400, "gopher"},
		{"upload from no URI", "POST", packages + "/" + empty.Id + "/package_content/upload_from_uri", asJSON, `{"addressInformation": "not a uri"}`, 400, "not a uri"},
		{"content of a package without", "GET", packages + "/" + empty.Id + "/package_content", "", ``, 409, empty.Id},
		{"VNFD of a package without", "GET", packages + "/" + empty.Id + "/vnfd", "", ``, 409, empty.Id},
		{"an unknown package", "GET", packages + "/" + nobody, "", ``, 404, nobody},
		{"an id that is none", "GET", packages + "/no-such-id", "", ``, 404, "no-such-id"},
		{"nothing to change", "PATCH", thisPkg, asJSON, `{}`, 400, "not valid"},
		{"a state that is none", "PATCH", thisPkg, asJSON, `{"operationalState": "SLEEPING"}`, 400, "SLEEPING"},
		{"deletion of a package in use", "DELETE", thisPkg, "", ``, 409, "IN_USE"},
		{"a range outside", "GET", thisPkg + "/artifacts/none", "", ``, 404, "Artifact"},
		{"an artifact outside", "GET", thisPkg + "/artifacts/../../../etc/passwd", "", ``, 404, ""},
		{"a filter that is none", "GET", packages + "?filter=(eq,", "", ``, 400, "filter"},
		{"a filter by what is not there", "GET", "/vnflcm/v1/vnf_lcm_op_occs?filter=(zz,id,1)", "", ``, 400, "zz"},
		{"an unknown instance", "GET", instances + "/" + nobody, "", ``, 404, nobody},
		{"an unknown instance to instantiate", "POST", instances + "/" + nobody + "/instantiate", asJSON, `{"flavourId": "default"}`, 404, nobody},
		{"an unknown instance to terminate", "POST", instances + "/" + nobody + "/terminate", asJSON, `{"terminationType": "FORCEFUL"}`, 404, nobody},
		{"an unknown op occ", "GET", "/vnflcm/v1/vnf_lcm_op_occs/" + nobody, "", ``, 404, nobody},
		{"no flavour", "POST", this + "/instantiate", asJSON, `{}`, 400, "flavourId"},
		{"an unknown flavour", "POST", this + "/instantiate", asJSON, `{"flavourId": "huge"}`, 400, "huge"},
		{"an unknown level", "POST", this + "/instantiate", asJSON, `{"flavourId": "default", "instantiationLevelId": "top"}`, 400, "top"},
		{"an unknown VIM", "POST", this + "/instantiate", asJSON, `{"flavourId": "default", "vimConnectionInfo": [{"id": "a", "vimId": "` + nobody + `", "vimType": "openstack"}]}`, 400, nobody},
		{"no VIM, and no default one", "POST", this + "/instantiate", asJSON, `{"flavourId": "default"}`, 400, "VIM"},
		{"termination of what is not instantiated", "POST", this + "/terminate", asJSON, `{"terminationType": "FORCEFUL"}`, 409, vnf.Id},
		{"a termination of no kind", "POST", this + "/terminate", asJSON, `{"terminationType": "GENTLE"}`, 400, "GENTLE"},
		{"an unknown VIM to show", "GET", "/v1.0/vims/" + nobody + ".json", "", ``, 404, nobody},
		{"a VIM of an unknown type", "POST", "/v1.0/vims.json", asJSON, `{"vim": {"type": "cloudy", "auth_url": "http://127.0.0.1:1", "auth_cred": {"username": "u"}, "vim_project": {"name": "p"}, "name": "n"}}`, 400, "cloudy"},
		{"a VIM that nobody answers for", "POST", "/v1.0/vims.json", asJSON, `{"vim": {"type": "openstack", "auth_url": "http://127.0.0.1:1/identity", "auth_cred": {"username": "u", "password": "` + wrongSecret + `"}, "vim_project": {"name": "p"}, "name": "n"}}`, 0, "127.0.0.1:1"},
		{"a VIM with an unknown attribute", "POST", "/v1.0/vims.json", asJSON, `{"vim": {"colour": "red"}}`, 400, "colour"},
		{"an unknown path", "GET", "/vnflcm/v1/nothing", "", ``, 404, ""},
		{"a method that there is not", "PUT", instances, asJSON, `{}`, 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := l.api.Send(ctx, c.method, c.path, c.contentType, []byte(c.body))
			must(t, err)
			if c.status != 0 && r.Status != c.status || r.Status < 400 {
				t.Errorf("status %d, want %d: %s", r.Status, c.status, r.Body)
			}
			if got := harness.Detail(r.Body); !strings.Contains(got, c.says) {
				t.Errorf("the detail is %q, want it to name %q", got, c.says)
			}
			checkProblem(t, c.path, r)
		})
	}
	// None of it has changed anything.
	if got := l.state(ctx, t, empty.Id); got.OnboardingState != "CREATED" {
		t.Errorf("the empty package is %s", got.OnboardingState)
	}
	if ops, err := l.api.OpOccs(ctx, vnf.Id); err != nil || len(ops) > 0 {
		t.Errorf("requests that were refused have left operations: %v (error: %v)", ops, err)
	}
	if _, err := l.api.Instantiate(ctx, vnf.Id, vim, nil); err == nil {
		t.Error("an instantiation without a flavour is accepted")
	}
	must(t, l.api.DeleteInstance(ctx, vnf.Id))
	must(t, l.api.DeletePackage(ctx, pkg.Id))
	l.checkNothingLeft(t)
	l.checkNoSecrets(t)
}

// checkProblem checks that an error's body is one that clients can read: ProblemDetails, or the VIM API's.
func checkProblem(t *testing.T, path string, r *harness.Response) {
	t.Helper()
	if strings.HasPrefix(path, "/v1.0/") {
		var legacy struct {
			TackerError *struct{ Type, Message, Detail *string }
		}
		if err := json.Unmarshal(r.Body, &legacy); err != nil || legacy.TackerError == nil || legacy.TackerError.Message == nil || legacy.TackerError.Type == nil || legacy.TackerError.Detail == nil {
			t.Errorf("the body is no TackerError (error: %v): %s", err, r.Body)
		}
		return
	}
	var p struct {
		Status int
		Detail string
	}
	if err := json.Unmarshal(r.Body, &p); err != nil || p.Status != r.Status || p.Detail == "" {
		t.Errorf("the body is no problem with status %d and a detail (error: %v): %s", r.Status, err, r.Body)
	}
	if got := r.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/problem+json") && !strings.HasPrefix(got, asProblemToo) {
		t.Errorf("the problem's content type is %q", got)
	}
}

const asProblemToo = "application/json"

// TestBadPackages uploads what is no VNF package, or a hostile one: each goes back to CREATED with the reason, and can be
// deleted.
func TestBadPackages(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newLab(t, harness.Options{Env: []string{"VNFM_VNF_PACKAGE_MAX_ENTRIES=1000", "VNFM_VNF_PACKAGE_UNPACKED_CAP=16MiB"}})
	good, _ := variant(t, "kubernetes-cluster", nil)
	kept, err := l.api.Onboard(ctx, good)
	must(t, err)
	with := func(overlay map[string][]byte) []byte {
		raw, _ := variant(t, "kubernetes-cluster", overlay)
		return raw
	}
	many := map[string][]byte{}
	for n := range 1100 {
		many["Files/many/"+strings.Repeat("x", n/100+1)+string(rune('a'+n%26))+strings.Repeat("y", n%100)] = []byte("x")
	}
	twice, _ := variantOf(t, "kubernetes-cluster", kept.VnfdId)
	for _, c := range []struct {
		name string
		zip  []byte
		says string
	}{
		{"no zip", []byte("no zip"), "zip"},
		{"nothing", nil, "zip"},
		{"a zip cut short", good[:len(good)/2], "zip"},
		{"traversal", hostile(t, "../../../../tmp/escaped", 0), "escaped"},
		{"an absolute path", hostile(t, "/etc/escaped", 0), "escaped"},
		{"a link", hostile(t, "Files/link", modeLink), "Files/link"},
		{"a bomb", with(map[string][]byte{"Files/bomb": bytes.Repeat([]byte{0}, 12<<20)}), "bomb"},
		{"too much of it", with(map[string][]byte{"Files/images/a": bytes.Repeat([]byte("0123456789abcdef\n"), 2<<20)}), ""},
		{"too many files", with(many), "1000"},
		{"no TOSCA.meta", with(map[string][]byte{"TOSCA-Metadata/TOSCA.meta": nil}), "TOSCA.meta"},
		{"an entry that is missing", with(map[string][]byte{"Definitions/cluster_top.vnfd.yaml": nil}), "Definitions/cluster_top.vnfd.yaml"},
		{"an artifact that is missing", with(map[string][]byte{"Scripts/kubernetes_mgmt.py": nil}), "Scripts/kubernetes_mgmt.py"},
		{"an artifact that was changed", changed(t, "Scripts/kubernetes_mgmt.py"), "Scripts/kubernetes_mgmt.py"},
		{"YAML that is none", with(map[string][]byte{"Definitions/cluster_df_simple.yaml": []byte("a: [b\nc: d")}), "Definitions/cluster_df_simple.yaml"},
		{"an import that is missing", with(map[string][]byte{"Definitions/sol001_types.yaml": nil}), "sol001_types.yaml"},
		{"a flavour without levels", without(t, "default_level: instantiation_level_1", "default_level: nosuchlevel"), "nosuchlevel"},
		{"a VNFD that is there already", twice, kept.VnfdId},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := l.api.CreatePackage(ctx)
			must(t, err)
			if err := l.api.Upload(ctx, p.Id, c.zip); err == nil {
				if _, err := l.api.AwaitOnboarded(ctx, p.Id); err == nil {
					t.Fatal("it is onboarded")
				}
			}
			got := l.state(ctx, t, p.Id)
			d := got.OnboardingFailureDetails
			if got.OnboardingState != "CREATED" || got.OperationalState != "DISABLED" || d == nil || d.Status == 0 {
				t.Fatalf("the package is %s, %s: %+v", got.OnboardingState, got.OperationalState, d)
			}
			if !strings.Contains(d.Detail, c.says) {
				t.Errorf("the reason is %q, want it to name %q", d.Detail, c.says)
			}
			if _, err := l.api.Call(ctx, http.MethodDelete, "/vnfpkgm/v1/vnf_packages/"+p.Id, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	must(t, l.api.DeletePackage(ctx, kept.Id))
	l.checkNoContent(ctx, t)
	l.checkNothingLeft(t)
}
