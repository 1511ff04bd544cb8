package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/deploy"
	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// house is the whole server on a real database, with users of two projects.
type house struct {
	t   *testing.T
	url string
}

func open(t *testing.T) *house {
	t.Helper()
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.EndpointURL = "http://vnfm.example"
	cfg.Database.URL = config.Secret(storetest.URL(t))
	cfg.Secrets.KeyFile = filepath.Join(t.TempDir(), "keys")
	cfg.VIM.AllowFake = true
	cfg.Auth.Modes = []string{"basic"}
	cfg.Auth.Basic.Users = map[string]config.Secret{"alice": "pw", "bob": "pw", "rita": "pw", "root": "pw"}
	cfg.Auth.Roles = map[string]string{"alice": "operator", "bob": "operator", "root": "admin"}
	cfg.Auth.Projects = map[string]string{"alice": "one", "rita": "one", "bob": "two"}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	line, err := config.NewKeyLine(1, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.Secrets.KeyFile, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := newServer(ctx, cfg, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		t.Fatal(err)
	}
	listening := make(chan net.Addr, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer s.close()
		if err := s.run(ctx, func(a net.Addr) { listening <- a }); err != nil {
			t.Errorf("run: %v", err)
			cancel()
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	select {
	case a := <-listening:
		return &house{t, "http://" + a.String()}
	case <-ctx.Done():
		t.Fatal("the server does not listen")
		return nil
	}
}

// answer is what a test compares of an answer.
type answer struct {
	Status               int
	Location, ETag, Body string
}

func (h *house) ask(user, method, path, body string, headers ...string) answer {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if user != "" {
		req.SetBasicAuth(user, "pw")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header.Get("Location"), res.Header.Get("ETag"), string(raw)}
}

// made asks for something that must succeed, and returns the id of what was made.
func (h *house) made(user, method, path, body string, headers ...string) string {
	h.t.Helper()
	a := h.ask(user, method, path, body, headers...)
	if a.Status/100 != 2 {
		h.t.Fatalf("%s %s: %+v", method, path, a)
	}
	var o struct {
		ID  string
		Vim struct{ ID string }
	}
	if a.Location != "" {
		return a.Location[strings.LastIndex(a.Location, "/")+1:]
	}
	_ = json.Unmarshal([]byte(a.Body), &o) // not every answer has a body
	return o.ID + o.Vim.ID
}

// await reads until the body holds the text.
func (h *house) await(user, path, text string) {
	h.t.Helper()
	var last answer
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if last = h.ask(user, "GET", path, ""); strings.Contains(last.Body, text) {
			return
		}
	}
	h.t.Fatalf("%s has no %s: %+v", path, text, last)
}

// TestAccess leads a VNF through a life in one project, and has the other project, a reader, an administrator and nobody
// at all look at everything that there is.
func TestAccess(t *testing.T) {
	h := open(t)
	const vims, packages, instances, opOccs = "/v1.0/vims", "/vnfpkgm/v1/vnf_packages", "/vnflcm/v1/vnf_instances", "/vnflcm/v1/vnf_lcm_op_occs"
	zip, err := deploy.Package("multi-port")
	if err != nil {
		t.Fatal(err)
	}
	vim := h.made("alice", "POST", vims, `{"vim":{"type":"fake","auth_url":"http://fake","auth_cred":{"username":"u","password":"topsecret"},
		"vim_project":{"name":"p"},"name":"v","is_default":true}}`)
	pkg := h.made("alice", "POST", packages, `{}`)
	h.made("alice", "PUT", packages+"/"+pkg+"/package_content", string(zip), "Content-Type: application/zip")
	h.await("alice", packages+"/"+pkg, `"ONBOARDED"`)
	var shown struct{ VnfdID string }
	if err := json.Unmarshal([]byte(h.ask("alice", "GET", packages+"/"+pkg, "").Body), &shown); err != nil {
		t.Fatal(err)
	}

	// A key has its effect once, and its answer stays the first one's whatever has happened since.
	twice := func(path, body, key string) string {
		t.Helper()
		first, again := h.ask("alice", "POST", path, body, "Idempotency-Key: "+key), h.ask("alice", "POST", path, body, "Idempotency-Key: "+key)
		if first.Status/100 != 2 || cmp.Diff(first, again) != "" {
			t.Fatalf("%s: %+v, then %+v", path, first, again)
		}
		return first.Location[strings.LastIndex(first.Location, "/")+1:]
	}
	create := `{"vnfdId":"` + shown.VnfdID + `","vnfInstanceName":"x"}`
	instance := twice(instances, create, "create")
	request, err := json.Marshal(deploy.InstantiateRequest("multi-port", "default"))
	if err != nil {
		t.Fatal(err)
	}
	op := twice(instances+"/"+instance+"/instantiate", string(request), "instantiate")
	h.await("alice", opOccs+"/"+op, `"COMPLETED"`)
	if again := twice(instances+"/"+instance+"/instantiate", string(request), "instantiate"); again != op {
		t.Errorf("when it is done: %s, not %s", again, op)
	}
	if a := h.ask("alice", "POST", instances, `{"vnfdId":"`+shown.VnfdID+`"}`, "Idempotency-Key: create"); a.Status != 422 {
		t.Errorf("the key with another body: %+v", a)
	}
	if a := h.ask("alice", "GET", instances, ""); strings.Count(a.Body, `"vnfInstanceName"`) != 1 {
		t.Errorf("instances: %s", a.Body)
	}

	// Everything of one project, by route. What others may not see is not there.
	for _, c := range []struct{ method, path, body string }{
		{"GET", instances + "/" + instance, ""},
		{"GET", opOccs + "/" + op, ""},
		{"GET", packages + "/" + pkg, ""},
		{"GET", packages + "/" + pkg + "/package_content", ""},
		{"GET", packages + "/" + pkg + "/vnfd", ""},
		{"GET", packages + "/" + pkg + "/artifacts/UserData/multi_port_user_data.py", ""},
		{"GET", vims + "/" + vim, ""},
		{"DELETE", instances + "/" + instance, ""},
		{"PATCH", instances + "/" + instance, `{"vnfInstanceName":"stolen"}`},
		{"POST", instances + "/" + instance + "/instantiate", string(request)},
		{"POST", instances + "/" + instance + "/terminate", `{"terminationType":"FORCEFUL"}`},
		{"POST", instances + "/" + instance + "/scale", `{"type":"SCALE_OUT","aspectId":"worker"}`},
		{"POST", instances + "/" + instance + "/heal", `{"cause":"x"}`},
		{"POST", instances + "/" + instance + "/operate", `{"changeStateTo":"STOPPED"}`},
		{"POST", opOccs + "/" + op + "/retry", ""},
		{"POST", opOccs + "/" + op + "/rollback", ""},
		{"POST", opOccs + "/" + op + "/fail", ""},
		{"POST", opOccs + "/" + op + "/cancel", `{"cancelMode":"FORCEFUL"}`},
		{"PATCH", packages + "/" + pkg, `{"operationalState":"DISABLED"}`},
		{"PUT", packages + "/" + pkg + "/package_content", "zip"},
		{"POST", packages + "/" + pkg + "/package_content/upload_from_uri", `{"addressInformation":"http://h/p.zip"}`},
		{"DELETE", packages + "/" + pkg, ""},
		{"PUT", vims + "/" + vim, `{"vim":{"description":"stolen"}}`},
		{"DELETE", vims + "/" + vim, ""},
	} {
		if a := h.ask("bob", c.method, c.path, c.body); a.Status != 404 {
			t.Errorf("another project, %s %s: %+v", c.method, c.path, a)
		}
		if a := h.ask("", c.method, c.path, c.body); a.Status != 401 {
			t.Errorf("nobody, %s %s: %+v", c.method, c.path, a)
		}
		a := h.ask("rita", c.method, c.path, c.body)
		if want := map[bool]int{true: 200, false: 403}[c.method == "GET"]; a.Status != want {
			t.Errorf("a reader, %s %s: %+v", c.method, c.path, a)
		}
		if c.method == "GET" {
			if a := h.ask("root", c.method, c.path, c.body); a.Status != 200 {
				t.Errorf("an administrator, %s %s: %+v", c.method, c.path, a)
			}
		}
	}
	for _, list := range []string{instances, opOccs, packages, vims} {
		has := func(user string) bool {
			return strings.Contains(h.ask(user, "GET", list, "").Body, `"id"`)
		}
		if has("bob") || !has("rita") || !has("root") || !has("alice") {
			t.Errorf("%s: another project %t, a reader %t, an administrator %t", list, has("bob"), has("rita"), has("root"))
		}
	}
	if a := h.ask("bob", "POST", instances, create); a.Status/100 != 4 {
		t.Errorf("another project's package: %+v", a)
	}

	h.trail(instance, op)
}

// trail looks at what the audit trail says of TestAccess.
func (h *house) trail(instance, op string) {
	t := h.t
	t.Helper()
	const path = "/vnfm/v1/audit_events"
	if a := h.ask("rita", "GET", path, ""); a.Status != 403 {
		t.Errorf("a reader reads the audit trail: %+v", a)
	}
	type event struct {
		User, ProjectID, Role, Action, VnfInstanceID, VnfLcmOpOccID string
		Status                                                      int
	}
	list := func(user, query string) (events []event) {
		t.Helper()
		a := h.ask(user, "GET", path+"?all_records=yes"+query, "")
		if err := json.Unmarshal([]byte(a.Body), &events); err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		if strings.Contains(a.Body, "topsecret") || strings.Contains(a.Body, `"pw"`) {
			t.Error("a secret in the audit trail")
		}
		return events
	}
	want := []event{
		{"alice", "one", "operator", "POST /vnflcm/v1/vnf_instances", instance, "", 201},
		{"alice", "one", "operator", "POST /vnflcm/v1/vnf_instances/{vnfInstanceId}/instantiate", instance, op, 202},
	}
	if d := cmp.Diff(want, list("alice", "&filter=(eq,vnfInstanceId,"+instance+")")); d != "" {
		t.Error(d)
	}
	for _, e := range list("bob", "") {
		if e.ProjectID != "two" {
			t.Errorf("another project sees %+v", e)
		}
	}
	// Refusals come a moment later.
	refused := func(user string, status int) bool {
		for _, e := range list("root", "") {
			if e.User == user && e.Status == status {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(5 * time.Minute); !refused("bob", 404) || !refused("rita", 403); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("refusals are not recorded: %+v", list("root", ""))
		}
	}
	if refused("", 401) {
		t.Error("requests of nobody fill the audit trail")
	}
	h.command("audit", "list", "--filter", "(eq,vnfInstanceId,"+instance+")", "-c", "User", "-c", "Status", "-f", "value")
}

// command runs the client as alice.
func (h *house) command(args ...string) {
	h.t.Helper()
	var out, errs bytes.Buffer
	args = append(args, "--os-auth-type", "http_basic", "--os-username", "alice", "--os-password", "pw", "--os-endpoint", h.url)
	if code := run(h.t.Context(), args, &out, &errs); code != 0 || out.String() != "alice 201\nalice 202\n" {
		h.t.Errorf("vnfm %s: %d, %s%s", strings.Join(args, " "), code, out.String(), errs.String())
	}
}

func TestRolesOfUsers(t *testing.T) {
	a := config.Auth{}
	if role(a.RoleOf("x")) != lcm.RoleAdmin || a.ProjectOf("x") != "default" {
		t.Error("with no roles everybody is an administrator")
	}
	a.Roles = map[string]string{"y": "operator"}
	if role(a.RoleOf("x")) != lcm.RoleReader || role(a.RoleOf("y")) != lcm.RoleOperator {
		t.Error("with some, who has none is a reader")
	}
}
