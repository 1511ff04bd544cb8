package helm

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// fake writes a program that says it is helm of a version, and for all else runs a script, in whose directory it is.
func fake(t *testing.T, version, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helm")
	text := "#!/bin/sh\nif [ \"$1\" = version ]; then printf '%s' '" + version + "'; exit 0; fi\n" + script + "\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return path
}

// newRunner returns a runner whose directories must all be gone at the end of the test.
func newRunner(t *testing.T, cfg Config) *Runner {
	t.Helper()
	cfg.TempDir = t.TempDir()
	t.Cleanup(func() {
		if left, err := os.ReadDir(cfg.TempDir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
	return New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func access() *Access {
	return &Access{
		Server: "https://cluster:6443", CA: []byte("authority"), Token: "the-token", RequestsPerSecond: 2.5,
		Username: "somebody", Password: "the-password", Certificate: []byte("certificate"), Key: "the-key",
	}
}

func TestVersion(t *testing.T) {
	for name, tt := range map[string]struct{ version, says string }{
		"supported": {version: "v4.3.1"},
		"short":     {version: "v4.3"},
		"older":     {version: "v3.22.0", says: "is helm v3.22.0, and only helm 4 is supported"},
		"newer":     {version: "v40.0.0", says: "is helm v40.0.0"},
		"no helm":   {version: "editor 1.0", says: "does not say which version"},
	} {
		t.Run(name, func(t *testing.T) {
			path := fake(t, tt.version, "")
			got, version, err := newRunner(t, Config{Binary: path}).Version(t.Context())
			if tt.says == "" {
				if err != nil || got != path || version != tt.version {
					t.Errorf("%s %s %v", got, version, err)
				}
				return
			}
			if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "kubernetes.helm.binary") {
				t.Errorf("%v", err)
			}
		})
	}
	_, _, err := newRunner(t, Config{Binary: "/nowhere/helm"}).Version(t.Context())
	if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "there is no program /nowhere/helm") {
		t.Errorf("%v", err)
	}
}

// TestVersionIsAskedAnew: a program that has been replaced is another.
func TestVersionIsAskedAnew(t *testing.T) {
	path := fake(t, "v4.0.0", "")
	r := newRunner(t, Config{Binary: path})
	if _, version, err := r.Version(t.Context()); err != nil || version != "v4.0.0" {
		t.Fatalf("%s %v", version, err)
	}
	if err := os.Rename(fake(t, "v5.0.0-alpha", ""), path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Version(t.Context()); err == nil || !strings.Contains(err.Error(), "v5.0.0-alpha") {
		t.Errorf("%v", err)
	}
}

// TestWhatHelmSees: the arguments, the environment, the files and who may read them.
func TestWhatHelmSees(t *testing.T) {
	t.Setenv("HELM_KUBETOKEN", "of the one who runs the server")
	t.Setenv("KUBECONFIG", "/home/somebody/.kube/config")
	seen := t.TempDir()
	r := newRunner(t, Config{Binary: fake(t, "v4.1.0", `
for a; do printf '%s\n' "$a" >> `+seen+`/args; done
env > `+seen+`/env
cp kubeconfig chart.tgz values.yaml `+seen+`
stat -c '%a %n' . kubeconfig chart.tgz values.yaml > `+seen+`/modes
pwd > `+seen+`/dir`)})
	err := r.Install(t.Context(), access(), Release{
		Name: "web", Namespace: "ns", Chart: []byte("the chart"), Set: []string{"a=b; rm -rf /", "--post-renderer=x=y,on=true", "replicas=3"},
		Labels: map[string]string{"vnfm/instance": "id", "vnfm/op-occ": "op"},
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join(seen, name)) //nolint:gosec // the test's own
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	dir := strings.TrimSpace(read("dir"))
	want := []string{
		"install", "web", "chart.tgz", "--server-side=true", "--namespace=ns", "--hide-notes", "--disable-openapi-validation", "--timeout=1m48s",
		"--labels=vnfm/instance=id,vnfm/op-occ=op", "--kubeconfig=" + dir + "/kubeconfig", "--qps=2.5", "--burst-limit=5",
		"--values=values.yaml", "--set=replicas=3",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(read("args")), "\n")); diff != "" {
		t.Error(diff)
	}
	if got := read("modes"); got != "700 .\n600 kubeconfig\n600 chart.tgz\n600 values.yaml\n" {
		t.Errorf("the modes are %s", got)
	}
	if got := read("values.yaml"); got != `{"--post-renderer":"x=y","a":"b; rm -rf /","on":true}`+"\n" {
		t.Errorf("the values are %q", got)
	}
	if got := read("chart.tgz"); got != "the chart" {
		t.Errorf("the chart is %q", got)
	}
	for _, line := range strings.Split(read("env"), "\n") {
		name, value, _ := strings.Cut(line, "=")
		switch name {
		case "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS":
			if !strings.HasPrefix(value, dir+"/") {
				t.Errorf("%s", line)
			}
		case "KUBECONFIG", "HELM_KUBETOKEN":
			t.Errorf("helm sees %s", line)
		}
	}
	for _, secret := range []string{"the-token", "the-password", "the-key"} {
		if strings.Contains(read("args")+read("env"), secret) {
			t.Errorf("%s is in the arguments or the environment", secret)
		}
	}
	var config struct {
		Clusters []struct {
			Cluster map[string]any `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User map[string]string `json:"user"`
		} `json:"users"`
	}
	if err := json.Unmarshal([]byte(read("kubeconfig")), &config); err != nil {
		t.Fatal(err)
	}
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	if diff := cmp.Diff(map[string]any{"server": "https://cluster:6443", "certificate-authority-data": encoded("authority")}, config.Clusters[0].Cluster); diff != "" {
		t.Error(diff)
	}
	user := map[string]string{
		"token": "the-token", "username": "somebody", "password": "the-password",
		"client-certificate-data": encoded("certificate"), "client-key-data": encoded("the-key"),
	}
	if diff := cmp.Diff(user, config.Users[0].User); diff != "" {
		t.Error(diff)
	}
}

func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		cfg    Config
		set    []string
		kind   lcm.Kind
		says   []string
		not    []string
	}{
		"a chart's fault": {
			script: "echo 'level=WARN msg=\"deprecated\"' >&2; echo 'Error: INSTALLATION FAILED: no way' >&2; exit 1",
			kind:   lcm.KindTerminal, says: []string{"cannot install release web in namespace ns: INSTALLATION FAILED: no way"}, not: []string{"deprecated"},
		},
		"no connection": {
			script: "echo 'Error: INSTALLATION FAILED: Kubernetes cluster unreachable: dial tcp: connect: connection refused' >&2; exit 1", kind: lcm.KindRetryable,
		},
		"secrets": {
			script: "echo 'Error: token the-token, password the-password, value hunter2 and " + base64.StdEncoding.EncodeToString([]byte("hunter2")) + ", image web:1' >&2; exit 1",
			kind:   lcm.KindTerminal, says: []string{"token ***, password ***, value *** and ***, image web:1"},
		},
		"a value":      {script: "exit 0", set: []string{"password=hunter2,hunter2"}, kind: lcm.KindTerminal, says: []string{"cannot install release web in namespace ns: its value 1 cannot be read: a name has no value"}},
		"says nothing": {script: "exit 3", kind: lcm.KindTerminal, says: []string{"exit status 3"}},
		"too long":     {script: "sleep 60", cfg: Config{Timeout: 300 * time.Millisecond}, kind: lcm.KindRetryable, says: []string{"has not come to an end within 300ms"}},
		"renders much": {script: "yes", cfg: Config{MaxOutput: 2 << 20}, kind: lcm.KindTerminal, says: []string{"more than 2 MiB"}},
		"says much":    {script: "yes 'no way' | head -n 300000 >&2; exit 1", kind: lcm.KindTerminal, says: []string{"no way"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.cfg.Binary = fake(t, "v4.1.0", tt.script)
			err := newRunner(t, tt.cfg).Install(t.Context(), access(), Release{
				Name: "web", Namespace: "ns", Chart: []byte("x"), Set: append(tt.set, "db.adminPassword=hunter2", "image=web:1"),
			})
			if !lcm.Is(err, tt.kind) {
				t.Fatalf("%v (%s)", err, lcm.KindOf(err))
			}
			for _, text := range tt.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v does not say %q", err, text)
				}
			}
			for _, text := range append(tt.not, "the-token", "the-password", "hunter2") {
				if strings.Contains(err.Error(), text) {
					t.Errorf("%v says %q", err, text)
				}
			}
			if len(err.Error()) > 2*maxSaid {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// TestCanceled: helm is asked to end with its caller, and has time to say so to the cluster.
func TestCanceled(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	r := newRunner(t, Config{Binary: fake(t, "v4.1.0", "trap 'echo asked >> "+mark+"; exit 1' TERM\necho begun > "+mark+"\nwhile :; do sleep 0.05; done"), MaxConcurrent: 1})
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("somebody has had enough")
	ended := make(chan error, 1)
	go func() { ended <- r.Uninstall(ctx, access(), "ns", "web", true) }()
	said := func() string { raw, _ := os.ReadFile(mark); return string(raw) } //nolint:gosec // the test's own
	for said() == "" {
		time.Sleep(10 * time.Millisecond)
	}
	// Whoever waits for a turn meanwhile gives up with its own context.
	other, give := context.WithCancel(t.Context())
	give()
	if _, err := r.Manifest(other, access(), "ns", "web"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	cancel(stop)
	if err := <-ended; !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if got := said(); got != "begun\nasked\n" {
		t.Errorf("helm was told %q", got)
	}
}

// TestSweep: what runs have left that were killed with their server goes, whatever its age; what a run has stays.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{"vnfm-helm-left", "other"} {
		if err := os.Mkdir(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(parent, "other"), filepath.Join(parent, "vnfm-helm-link")); err != nil {
		t.Fatal(err)
	}
	found := func() []string {
		t.Helper()
		left, err := filepath.Glob(filepath.Join(parent, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	r := New(Config{TempDir: parent}, slog.New(slog.DiscardHandler))
	want := []string{filepath.Join(parent, "other"), filepath.Join(parent, "vnfm-helm-link")}
	if diff := cmp.Diff(want, found()); diff != "" {
		t.Error(diff)
	}
	dir, leave, err := r.enter()
	if err != nil {
		t.Fatal(err)
	}
	New(Config{TempDir: parent}, slog.New(slog.DiscardHandler))
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("what is in use: %v", err)
	}
	leave()
	if diff := cmp.Diff(want, found()); diff != "" {
		t.Error(diff)
	}
	r.swept = time.Time{} // a run looks again when it is time
	if err := os.Mkdir(filepath.Join(parent, "vnfm-helm-later"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.sweep()
	if diff := cmp.Diff(want, found()); diff != "" {
		t.Error(diff)
	}
}

func TestKindOf(t *testing.T) {
	for name, tt := range map[string]struct {
		said   string
		access *Access
		want   lcm.Kind
	}{
		"no connection":            {"Get: unexpected EOF", access(), lcm.KindRetryable},
		"a template":               {"parse error at (web/templates/x.yaml:1): unexpected EOF", access(), lcm.KindTerminal},
		"a template, rendered":     {"template: web:1: unexpected EOF", nil, lcm.KindTerminal},
		"a kind that is not there": {"failed to delete release: web", access(), lcm.KindRetryable},
	} {
		if got := (job{access: tt.access}).kindOf(tt.said); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestRelativeBinary: where the server runs counts, and not where helm does.
func TestRelativeBinary(t *testing.T) {
	path := fake(t, "v4.1.0", "")
	t.Chdir(filepath.Dir(path))
	if err := newRunner(t, Config{Binary: "./helm"}).Install(t.Context(), access(), Release{Name: "web", Namespace: "ns", Chart: []byte("x")}); err != nil {
		t.Error(err)
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"web": true, "web-1.2": true, "a": true, "": false, "Web": false, "-web": false, "web-": false, "a b": false, "--set": false,
		strings.Repeat("a", 53): true, strings.Repeat("a", 54): false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
