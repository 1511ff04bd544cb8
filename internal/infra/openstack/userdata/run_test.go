package userdata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const header = `
import os, sys, time
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData
class Script(AbstractUserData):
    @staticmethod
    def instantiate(hot, vnfd, req, images):
`

// script makes a package whose script has the given body.
func script(body string) fstest.MapFS {
	var b strings.Builder
	b.WriteString(header)
	for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
		b.WriteString("        " + line + "\n")
	}
	return fstest.MapFS{
		"UserData/__init__.py":    {},
		"UserData/script.py":      {Data: []byte(b.String())},
		"UserData/values.json":    {Data: []byte(`{"from": "the package"}`)},
		"Files/images/disk.qcow2": {Data: []byte("large")},
		"Files/big.bin":           {Data: make([]byte, fileBytes+1)},
		"Files/small.txt":         {Data: []byte("small")},
	}
}

// newRunner returns a runner whose directories must all be gone at the end of the test.
func newRunner(t *testing.T, cfg Config) *Runner {
	t.Helper()
	dir, err := os.MkdirTemp("", "vnfm-userdata-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // scripts run as another user
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
		_ = os.RemoveAll(dir)
	})
	cfg.TempDir = dir
	return New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// alone configures scripts that fork, and are to be able to: as root they are of a user that has nothing else, since the system
// counts all processes of a user. Others' tests have scripts and servers of nobody's at the same time.
func alone(cfg Config) Config {
	if os.Geteuid() == 0 {
		cfg.User = strconv.Itoa(60001 + os.Getpid()%5000)
	} else {
		cfg.Limits.Processes = 4096
	}
	return cfg
}

func run(t *testing.T, r *Runner, body string, change func(*Request)) (map[string]any, error) {
	t.Helper()
	req := Request{
		PackageFS: script(body), Path: "./UserData/script.py", Class: "Script",
		BaseHOT: map[string]any{"heat_template": map[string]any{"heat_template_version": "2013-05-23"}},
		VNFD:    map[string]any{"version": "1.0", "float": json.Number("1.0"), "int": json.Number("1")},
		Instantiate: map[string]any{
			"flavourId": "simple",
			"extVirtualLinks": []any{map[string]any{
				"id": "net0", "resourceId": "uuid", "extCps": []any{map[string]any{
					"cpdId": "CP1", "cpConfig": []any{map[string]any{"cpProtocolData": []any{map[string]any{"layerProtocol": "IP_OVER_ETHERNET"}}}},
				}},
			}},
			"additionalParams": map[string]any{"camelKey": map[string]any{"VDU1": 1}, "snake_key": "x"},
		},
		Images: map[string][]Image{"VDU1": {{ID: "glance-id", Name: "an image", Type: "image"}}},
	}
	if change != nil {
		change(&req)
	}
	return r.Run(t.Context(), req)
}

func TestRunSeesTheRequest(t *testing.T) {
	got, err := run(t, newRunner(t, Config{}), `
import json
link = req.ext_virtual_links[0]
protocol = link.ext_cps[0].cp_config[0].cp_protocol_data[0]
with open(os.path.join(os.path.dirname(__file__), "values.json")) as f:
    values = json.load(f)
package = os.path.dirname(os.path.dirname(__file__))
print("{\"result\": {\"forged\": true}}")
return {
    "flavour": req.flavour_id, "level": req.instantiation_level_id, "link": link.resource_id,
    "ethernet": protocol.ip_over_ethernet, "managed": req.ext_managed_virtual_links,
    "params": req.additional_params, "hot": hot["heat_template"], "types": [type(vnfd[k]).__name__ for k in ("version", "float", "int")],
    "image": images["VDU1"][0].resource_identifier, "values": values,
    "files": sorted(os.path.relpath(os.path.join(d, f), package) for d, _, fs in os.walk(package) for f in fs if not d.endswith("__pycache__")),
    "env": sorted(k for k in os.environ if k not in ("LC_CTYPE",)),
}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"flavour": "simple", "level": nil, "link": "uuid", "ethernet": nil, "managed": []any{},
		"params": map[string]any{"camelKey": map[string]any{"VDU1": json.Number("1")}, "snake_key": "x"},
		"hot":    map[string]any{"heat_template_version": "2013-05-23"}, "types": []any{"str", "float", "int"},
		"image": "glance-id", "values": map[string]any{"from": "the package"},
		"files": []any{"Files/small.txt", "UserData/__init__.py", "UserData/script.py", "UserData/values.json"},
		"env":   []any{"HOME", "LANG", "PATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRunFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		body   string
		change func(*Request)
		cfg    Config
		want   []string
	}{
		"exception": {
			body: "print('before it fell')\nraise ValueError('no such thing')",
			want: []string{"no such thing (ValueError at UserData/script.py:8)", "before it fell"},
		},
		"on purpose": {
			body: "from tacker.extensions.vnfm import LCMUserDataFailed\nraise LCMUserDataFailed(reason='needs a network')",
			want: []string{"LCM user data needs a network"},
		},
		"exception without text": {body: "raise KeyError", want: []string{"LCM user data script failed without a message.", "KeyError"}},
		"broken text":            {body: "class E(Exception):\n    def __str__(self): return 1 / 0\nraise E()", want: []string{"LCM user data script failed"}},
		"timeout": {
			body: "time.sleep(60)", cfg: Config{Timeout: 300 * time.Millisecond},
			want: []string{"LCM user data fails due to timeout[sec]: 0.3"},
		},
		"busy": {
			body: "while True: pass", cfg: Config{Timeout: 300 * time.Millisecond},
			want: []string{"LCM user data fails due to timeout[sec]: 0.3"},
		},
		"deaf": {
			body: "import signal\nfor s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)", cfg: Config{Timeout: 300 * time.Millisecond},
			want: []string{"LCM user data fails due to timeout[sec]: 0.3"},
		},
		"not a dict":  {body: "return [1]", want: []string{"LCM user data return value as HOT parameter from UserData is not in dict format.", "list"}},
		"nothing":     {body: "pass", want: []string{"LCM user data return value as HOT parameter from UserData is not in dict format.", "NoneType"}},
		"not JSON":    {body: "return {'a': object()}", want: []string{"is not in dict format.", "object"}},
		"NaN":         {body: "return {'a': float('nan')}", want: []string{"is not in dict format."}},
		"endless":     {body: "a = {}\na['a'] = a\nreturn a", want: []string{"is not in dict format.", "ircular"}},
		"no class":    {body: "return {}", change: func(r *Request) { r.Class = "Other" }, want: []string{badClass}},
		"no file":     {body: "return {}", change: func(r *Request) { r.Path = "UserData/other.py" }, want: []string{badPath, "UserData/other.py"}},
		"outside":     {body: "return {}", change: func(r *Request) { r.Path = "UserData/../../../etc/passwd" }, want: []string{badPath}},
		"no path":     {body: "return {}", change: func(r *Request) { r.Path = "./" }, want: []string{badPath}},
		"a directory": {body: "return {}", change: func(r *Request) { r.Path = "UserData" }, want: []string{badPath}},
		"bad import": {
			body: "return {}", change: func(r *Request) {
				r.PackageFS = fstest.MapFS{"UserData/script.py": {Data: []byte("import no_such_module\n")}}
			},
			want: []string{badPath, "no_such_module", "UserData/script.py:1"},
		},
		"bad syntax": {
			body: "return {}", change: func(r *Request) {
				r.PackageFS = fstest.MapFS{"UserData/script.py": {Data: []byte("def (")}}
			},
			want: []string{badPath, "SyntaxError"},
		},
		"exits":        {body: "sys.exit(3)", want: []string{"SystemExit"}},
		"exits hard":   {body: "print('bye', flush=True)\nos._exit(3)", want: []string{"LCM user data script ended without a result", "exit status 3", "bye"}},
		"kills itself": {body: "import signal\nos.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)", cfg: Config{Timeout: 2 * time.Second}, want: []string{"LCM user data"}},
		"garbage":      {body: "os.write(3, b'{]')\nreturn {}", want: []string{"LCM user data script left a result that cannot be read."}},
		"two results":  {body: "os.write(3, b'{\"result\": {}}')\nreturn {}", want: []string{"LCM user data script left a result that cannot be read."}},
		"memory":       {body: "return {'a': len(bytearray(8 << 30))}", want: []string{"MemoryError"}},
		"too large": {
			body: "return {'a': 'x' * 100000}", cfg: Config{Limits: Limits{ResultBytes: 50000}},
			want: []string{"larger than 50000 bytes"},
		},
		"endless result": {
			body: "while True: os.write(3, b'x' * 4096)", cfg: Config{Limits: Limits{ResultBytes: 50000}},
			want: []string{"larger than 50000 bytes"},
		},
		"large file": {
			body: "open('f', 'wb').write(b'x' * 100000)", cfg: Config{Limits: Limits{FileBytes: 1000}},
			want: []string{"LCM user data"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := run(t, newRunner(t, tt.cfg), tt.body, tt.change)
			var own *Error
			if !errors.As(err, &own) {
				if name == "large file" && err != nil && strings.Contains(err.Error(), "File too large") {
					return
				}
				t.Fatalf("got %v, %v", got, err)
			}
			for _, want := range tt.want {
				if name == "large file" && strings.Contains(err.Error(), "File too large") {
					continue // where the signal is ignored, as Python does
				}
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestRunOutputIsCapped(t *testing.T) {
	_, err := run(t, newRunner(t, Config{}), `
for n in range(200000): print("line %d" % n)
raise ValueError("after much ado")
`, nil)
	var own *Error
	if !errors.As(err, &own) || len(own.Output) > shown || !strings.HasSuffix(own.Output, "line 199999") {
		t.Errorf("%v", err)
	}
}

// TestRunForks has a script leave a process behind, in its own session if need be, that holds all its descriptors.
func TestRunForks(t *testing.T) {
	r := newRunner(t, alone(Config{}))
	marker := fmt.Sprintf("vnfm-userdata-orphan-%d", os.Getpid())
	for _, session := range []string{"pass", "os.setsid()"} {
		got, err := run(t, r, fmt.Sprintf(`
pid = os.fork()
if pid == 0:
    %s
    os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(300)', '%s'])
return {'pid': pid}
`, session, marker), nil)
		if err != nil {
			t.Fatalf("got %v, %v", got, err)
		}
		if r.level.Load() > 0 {
			t.Log("no namespaces here: what has fled from its session stays, and is ended by the test")
			pid, err := strconv.Atoi(fmt.Sprint(got["pid"]))
			if err != nil {
				t.Fatal(err)
			}
			if cmdline(strconv.Itoa(pid), marker) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	deadline := time.Now().Add(2 * time.Minute)
	for running(t, marker) {
		if time.Now().After(deadline) {
			t.Fatal("a process that the script started is still there")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestRunWithoutNamespaces is what is left where the system allows none: the session goes, the script's limits hold.
func TestRunWithoutNamespaces(t *testing.T) {
	r := newRunner(t, alone(Config{}))
	r.level.Store(int32(len(attributes(nil)) - 1)) //nolint:gosec // a handful of levels
	marker := fmt.Sprintf("vnfm-userdata-plain-%d", os.Getpid())
	got, err := run(t, r, fmt.Sprintf(`
if os.fork() == 0:
    os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(300)', '%s'])
with open("/proc/self/status") as f:
    status = dict(line.split(":", 1) for line in f)
return {'uid': os.getuid(), 'privileges': status["NoNewPrivs"].strip()}
`, marker), nil)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 && got["uid"] == json.Number("0") || got["privileges"] != "1" {
		t.Errorf("%v", got)
	}
	for deadline := time.Now().Add(2 * time.Minute); running(t, marker); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a process that the script started is still there")
		}
	}
}

// cmdline tells whether the process of that id was started with the marker.
func cmdline(pid, marker string) bool {
	raw, err := os.ReadFile("/proc/" + pid + "/cmdline")
	return err == nil && strings.Contains(string(raw), marker)
}

// running tells whether any process was started with the marker.
func running(t *testing.T, marker string) bool {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if cmdline(e.Name(), marker) {
			return true
		}
	}
	return false
}

func TestRunForkBomb(t *testing.T) {
	cfg := alone(Config{Timeout: 5 * time.Second})
	cfg.Limits = Limits{}
	_, err := run(t, newRunner(t, cfg), `
made = []
while True:
    pid = os.fork()
    if pid == 0:
        time.sleep(300)
    made.append(pid)
`, nil)
	var own *Error
	if !errors.As(err, &own) {
		t.Errorf("%v", err)
	}
}

func TestRunConfined(t *testing.T) {
	r := newRunner(t, Config{})
	got, err := run(t, r, `
import socket
seen = {"uid": os.getuid()}
try:
    socket.create_connection(("127.0.0.1", req.additional_params["port"]), 2)
    seen["network"] = True
except OSError:
    seen["network"] = False
try:
    open(os.path.join(os.path.dirname(__file__), "x"), "w")
    seen["writes"] = True
except OSError:
    seen["writes"] = False
import resource
seen["files"] = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    seen["raises"] = True
except (ValueError, OSError):
    seen["raises"] = False
return seen
`, func(req *Request) {
		req.Instantiate = map[string]any{"additionalParams": map[string]any{"port": 1}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got["network"] != false || got["files"] != json.Number("256") || got["raises"] != false {
		t.Errorf("%v", got)
	}
	if os.Getuid() == 0 && (got["uid"] == json.Number("0") || got["writes"] != false) {
		t.Errorf("as root: %v", got)
	}
}

func TestRunCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the node stops")
	timer := time.AfterFunc(200*time.Millisecond, func() { cancel(why) })
	defer timer.Stop()
	_, err := newRunner(t, Config{}).Run(ctx, Request{PackageFS: script("time.sleep(60)"), Path: "UserData/script.py", Class: "Script"})
	if !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

func TestRunWithoutPython(t *testing.T) {
	_, err := run(t, newRunner(t, Config{Python: "/no/such/python3"}), "return {}", nil)
	var own *Error
	if err == nil || errors.As(err, &own) || !strings.Contains(err.Error(), "start Python") {
		t.Errorf("%v", err)
	}
}

func TestRunMany(t *testing.T) {
	r := newRunner(t, Config{})
	for n := range 8 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			got, err := run(t, r, fmt.Sprintf("return {'n': %d}", n), nil)
			if diff := cmp.Diff(map[string]any{"n": json.Number(fmt.Sprint(n))}, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}
