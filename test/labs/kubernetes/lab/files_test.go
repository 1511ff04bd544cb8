package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestStampKnowsEverySource(t *testing.T) {
	stamp := func(goVersion string, files ...string) string {
		sources := fstest.MapFS{}
		for i := 0; i < len(files); i += 2 {
			sources[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
		}
		s, err := stampOf(sources, []byte(goVersion))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := stamp("go1", "go.mod", "m", "main.go", "a")
	if again := stamp("go1", "main.go", "a", "go.mod", "m"); again != first {
		t.Errorf("the same sources: %s, then %s", first, again)
	}
	for name, other := range map[string]string{
		"another Go":     stamp("go2", "go.mod", "m", "main.go", "a"),
		"another line":   stamp("go1", "go.mod", "m", "main.go", "b"),
		"another module": stamp("go1", "go.mod", "n", "main.go", "a"),
		"another file":   stamp("go1", "go.mod", "m", "main.go", "a", "more.go", ""),
		"another name":   stamp("go1", "go.mod", "m", "other.go", "a"),
	} {
		if other == first {
			t.Errorf("%s gives the same stamp", name)
		}
	}
}

func TestOlderProgramsAreDropped(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for i, name := range []string{"plane-a", "plane-b", "plane-c", "plane-d", "lock"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if err := dropOlder(dir, "plane-", "plane-b"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"lock", "plane-b", "plane-d"}, left); diff != "" {
		t.Error(diff)
	}
}

func TestVersionGoesIntoTheProgram(t *testing.T) {
	dir := t.TempDir()
	if _, err := kubernetesVersion(dir); err == nil {
		t.Error("a folder without go.mod has a version")
	}
	mod := "module x\n\nrequire (\n\tk8s.io/kubectl v0.36.3\n\tk8s.io/kubernetes v1.36.3\n)\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600); err != nil {
		t.Fatal(err)
	}
	version, err := kubernetesVersion(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := linkerFlags(version)
	for _, want := range []string{"version.gitVersion=v1.36.3", "gitMajor=1 ", "gitMinor=36 "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestPortsAreFreeAndDifferent(t *testing.T) {
	p, err := pickPorts(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(map[int]bool{p.API: true, p.Etcd: true, p.Peer: true, p.Kwok: true}); n != 4 {
		t.Errorf("%+v are %d ports", p, n)
	}
	again, err := pickPorts(t.Context(), p.API)
	if err != nil {
		t.Fatal(err)
	}
	if again.API != p.API {
		t.Errorf("asked for %d, got %d", p.API, again.API)
	}
}

func TestAuditLinesAreJoinedByRequest(t *testing.T) {
	const log = `{"stage":"ResponseComplete","auditID":"0","requestURI":"/api","verb":"get","user":{"username":"before"},"responseStatus":{"code":200}}
{"stage":"RequestReceived","auditID":"1","requestURI":"/api/v1/namespaces/n/pods","verb":"create","user":{"username":"u"},"userAgent":"a/1","objectRef":{"resource":"pods","namespace":"n","apiVersion":"v1"}}
{"stage":"RequestReceived","auditID":"2","requestURI":"/api/v1/pods?watch=1","verb":"watch","user":{"username":"w"},"objectRef":{"resource":"pods","apiVersion":"v1"}}
{"stage":"ResponseStarted","auditID":"2","requestURI":"/api/v1/pods?watch=1","verb":"watch","user":{"username":"w"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","auditID":"1","requestURI":"/api/v1/namespaces/n/pods","verb":"create","user":{"username":"u"},"objectRef":{"resource":"pods","namespace":"n","name":"p","apiVersion":"v1"},"responseStatus":{"code":201}}
{"stage":"RequestReceived","auditID":"3","requestURI":"/version","verb":"get","user":{"username":"u"}}
{"stage":"RequestReceived","auditID":"4"`
	got, err := readAudit(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	want := []Request{
		{
			User: "u", UserAgent: "a/1", Verb: "create", URI: "/api/v1/namespaces/n/pods",
			Version: "v1", Resource: "pods", Namespace: "n", Name: "p", Code: 201,
		},
		{User: "w", Verb: "watch", URI: "/api/v1/pods?watch=1", Version: "v1", Resource: "pods", Code: 200},
		{User: "u", Verb: "get", URI: "/version"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Request{}, "At")); diff != "" {
		t.Error(diff)
	}
	if _, err := readAudit(strings.NewReader("not JSON\n")); err == nil {
		t.Error("a line that is not JSON is taken")
	}
}

func TestUpLeavesAFullFolderAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Up(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v", err)
	}
	if err := Down(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
		t.Error(err)
	}
}
