package config

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func write(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "vnfm.yaml")
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNothingGivesTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}\n", "log:\n", "null\n"} {
		cfg, err := Load(write(t, text), nil)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := Default()
		want.complete()
		if d := cmp.Diff(want, cfg); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
	cfg, err := Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[any]any{
		cfg.Listen: "127.0.0.1:9890", cfg.EndpointURL: "http://127.0.0.1:9890", cfg.Openstack.StackTimeout: 600 * time.Second,
		cfg.Openstack.UserDataTimeout: 60 * time.Second, cfg.Paging.PageSize: 100,
		cfg.Engine.FetchCooldown: 5 * time.Millisecond, cfg.Engine.FetchPoll: 200 * time.Millisecond,
		cfg.Engine.TakeoverInterval: 2 * time.Second,
		cfg.Secrets.KeyFile:         filepath.Join(cfg.Database.PrivateDir, "secrets.key"),
	} {
		if got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestFileAndEnvironment(t *testing.T) {
	path := write(t, `
listen: 0.0.0.0:443
auth:
  mode: keystone
  basic:
    users: {alice: s3cret, "bob": hunter2}
  keystone: &ks
    auth_url: https://ks/v3
    username: vnfm
    password: pw
openstack:
  stack_timeout: 15m
  requests_per_second: 2.5
limits: {body: 4MiB}
roles: api
mgmt: {drivers: {mine: noop}}
database: {migrate: off}
`)
	cfg, err := Load(path, []string{
		"VNFM_OPENSTACK_STACK_TIMEOUT=20s", "VNFM_ROLES=api, worker", "VNFM_LOG_LEVEL=debug", "OTHER=1",
		"VNFM_MGMT_DRIVERS=a=noop,b=kubecluster", "VNFM_SERVICE_HOST=10.0.0.1", "VNFM_AUTH_KEYSTONE_PASSWORD=from=env",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Listen, want.EndpointURL = "0.0.0.0:443", "http://127.0.0.1:443"
	want.Auth.Mode = "keystone"
	want.Auth.Basic.Users = map[string]Secret{"alice": "s3cret", "bob": "hunter2"}
	want.Auth.Keystone.AuthURL, want.Auth.Keystone.Username, want.Auth.Keystone.Password = "https://ks/v3", "vnfm", "from=env"
	want.Openstack.StackTimeout, want.Openstack.RequestsPerSecond = 20*time.Second, 2.5
	want.Limits.Body = 4 << 20
	want.Roles = []string{"api", "worker"}
	want.Log.Level = "debug"
	want.Mgmt.Drivers = map[string]string{"a": "noop", "b": "kubecluster"}
	want.Database.Migrate = false
	want.Secrets.KeyFile = filepath.Join(want.Database.PrivateDir, "secrets.key")
	if d := cmp.Diff(want, cfg); d != "" {
		t.Error(d)
	}
}

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		env  []string
		want []string
	}{
		"unknown key":              {"log:\n  level: info\n  formatt: json\n", nil, []string{"vnfm.yaml:3: log.formatt: unknown key; did you mean log.format?"}},
		"unknown section":          {"# c\nzzzzzzzzzzzz: 1\n", nil, []string{"vnfm.yaml:2: zzzzzzzzzzzz: unknown key; known at the top are audit, auth, "}},
		"duplicate":                {"listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", nil, []string{"vnfm.yaml"}},
		"bad yaml":                 {"log: [\n", nil, []string{"vnfm.yaml"}},
		"section is a value":       {"log: info\n", nil, []string{"vnfm.yaml:1: log: keys and values are wanted here, not a single value"}},
		"top is a list":            {"- a\n", nil, []string{"vnfm.yaml:1: keys and values are wanted here, not a list"}},
		"value is a map":           {"listen: {a: b}\n", nil, []string{"listen: a single value is wanted, not a map"}},
		"list of lists":            {"roles: [[api]]\n", nil, []string{"roles: a list of single values"}},
		"bad duration":             {"openstack:\n  stack_timeout: 600\n", nil, []string{"vnfm.yaml:2: openstack.stack_timeout: \"600\" is not a duration (such as 10s or 5m)"}},
		"bad duration in env":      {"", []string{"VNFM_OPENSTACK_STACK_TIMEOUT=soon"}, []string{"VNFM_OPENSTACK_STACK_TIMEOUT: openstack.stack_timeout: \"soon\" is not"}},
		"bad size":                 {"limits: {body: many}\n", nil, []string{"limits.body: \"many\" is not a size"}},
		"bad bool":                 {"database: {migrate: maybe}\n", nil, []string{"database.migrate: \"maybe\" is neither"}},
		"bad number":               {"paging: {page_size: x}\n", nil, []string{"paging.page_size: \"x\" is not a whole number"}},
		"too small":                {"paging: {page_size: 0}\n", nil, []string{"vnfm.yaml:1: paging.page_size: 0 is less than the least value, 1"}},
		"verified too often":       {"verify: {interval: 10ms}\n", nil, []string{"vnfm.yaml:1: verify.interval: 10ms is shorter than a second"}},
		"too slow":                 {"openstack: {requests_per_second: 0.5}\n", nil, []string{"vnfm.yaml:1: openstack.requests_per_second: 0.5 is less than one; 0 is no limit"}},
		"too large":                {"auth: {keystone: {timeout: 10m}}\n", nil, []string{"auth.keystone.timeout: 10m0s is more than the greatest value, 5m"}},
		"one of":                   {"log: {level: loud}\n", nil, []string{"log.level: \"loud\" is none of debug, info, warn, error"}},
		"none beyond loopback":     {"listen: 0.0.0.0:9890\n", nil, []string{"auth.mode: without authentication (none) the API listens on loopback only, and listen is 0.0.0.0:9890"}},
		"none on every address":    {"listen: \":9890\"\n", nil, []string{"auth.mode: without"}},
		"listen":                   {"listen: nowhere\n", nil, []string{"listen: \"nowhere\" is not host:port"}},
		"port":                     {"listen: 127.0.0.1:99999\n", nil, []string{"listen: \"99999\" is not a port"}},
		"role":                     {"roles: [cook]\n", nil, []string{"roles: \"cook\" is neither"}},
		"no role":                  {"roles: []\n", nil, []string{"roles: at least one"}},
		"unknown mode":             {"auth: {mode: magic}\n", nil, []string{"auth.mode: \"magic\" is none of"}},
		"two keys for ways":        {"auth: {mode: keystone, modes: [basic]}\n", nil, []string{"auth.mode: keystone is not among auth.modes", "auth.basic.users: mode basic needs"}},
		"unknown way":              {"auth: {modes: [basic, magic, none, basic]}\n", nil, []string{"auth.modes: \"magic\" is none of basic, bearer, keystone, mtls", "auth.modes: \"none\" is none", "auth.modes: basic is there twice"}},
		"ways beyond loopback":     {"listen: 0.0.0.0:1\nauth: {modes: [none]}\n", nil, []string{"auth.mode: without authentication"}},
		"roles of users":           {"auth: {roles: {a: king}, projects: {b: p}}\n", nil, []string{"auth.roles: \"a\": \"king\" is none of reader, operator, admin", "auth.roles: \"a\" is no user", "auth.projects: \"b\": \"p\" needs a user"}},
		"bearer":                   {"auth: {mode: bearer, bearer: {scopes: {}, algorithms: [HS256], jwks_url: x}}\n", nil, []string{"auth.bearer.issuer", "auth.bearer.jwks_url", "auth.bearer.scopes: mode bearer needs", "auth.bearer.algorithms: \"HS256\" is none"}},
		"bearer's roles":           {"auth: {mode: bearer, bearer: {issuer: \"https://i\", algorithms: [], scopes: {s: x}}}\n", nil, []string{"auth.bearer.scopes: \"s\": \"x\" is none of reader, operator, admin", "auth.bearer.algorithms: at least one"}},
		"keystone's roles":         {"auth: {mode: keystone, keystone: {auth_url: \"http://k\", username: u, password: p, roles: {member: member}}}\n", nil, []string{"auth.keystone.roles: \"member\": \"member\" is none of"}},
		"mtls":                     {"auth: {mode: mtls}\n", nil, []string{"tls.client_ca: mode mtls needs", "auth.mtls.users: mode mtls needs"}},
		"mtls users":               {"tls: {cert: c, key: k, client_ca: a}\nauth: {mode: mtls, mtls: {users: {nfvo: u, \"dns:\": u, \"dns:A.b\": u, \"ip:::0001\": u, \"cn:x\": \"\"}}}\n", nil, []string{"\"nfvo\": \"u\" needs", "\"dns:\": \"u\" needs", "\"dns:A.b\" is to be written in lower case", "\"ip:::0001\" is no address", "\"cn:x\": \"\" needs"}},
		"basic without users":      {"auth: {mode: basic}\n", nil, []string{"auth.basic.users: mode basic needs"}},
		"keystone":                 {"auth: {mode: keystone}\n", nil, []string{"auth.keystone.auth_url", "auth.keystone.username", "auth.keystone.password"}},
		"tls halves":               {"tls: {cert: a.pem}\n", nil, []string{"tls: cert and key go together"}},
		"client ca":                {"tls: {client_ca: a.pem}\n", nil, []string{"tls.client_ca: client certificates need"}},
		"endpoint":                 {"endpoint_url: ftp://x\n", nil, []string{"endpoint_url: \"ftp://x\" is not an http or https URL"}},
		"database":                 {"database: {url: \"mysql://root:topsecret@x\"}\n", nil, []string{"database.url: it must begin with postgres://", "secrets.key_file: with database.url"}},
		"poll":                     {"openstack: {poll_min: 20s}\n", nil, []string{"openstack.poll_min: 20s is longer than poll_max, 2s"}},
		"callbacks":                {"notify: {retry_min: 2h, allow: [x], networks: [y], hosts: [\"a/b\"], client_cert: c}\n", nil, []string{"notify.retry_min: 2h0m0s is longer", "notify.allow: \"x\" is neither", "notify.networks: \"y\" is neither", "notify.hosts: \"a/b\" is neither", "notify.client_key: a certificate"}},
		"nfvo":                     {"nfvo: {auth: {user: u, client_id: c}, tls: {key: k}, grant: {base_url: \"ftp://x\"}, packages: {base_url: nfvo}}\n", nil, []string{"nfvo.auth.client_id: there is a user", "nfvo.tls.key: a certificate", "nfvo.grant.base_url: \"ftp://x\"", "nfvo.packages.base_url: \"nfvo\""}},
		"nfvo login":               {"nfvo: {auth: {client_id: c}}\n", nil, []string{"nfvo.auth.token_endpoint: a client needs"}},
		"uri":                      {"vnf_package: {uri_allow: [x], uri_hosts: [\"http://x/\"]}\n", nil, []string{"vnf_package.uri_allow: \"x\" is neither", "vnf_package.uri_hosts: \"http://x/\" is neither"}},
		"mgmt":                     {"mgmt: {drivers: {x: \"\"}}\n", nil, []string{"mgmt.drivers: \"x\": \"\" needs"}},
		"map in env":               {"", []string{"VNFM_MGMT_DRIVERS=noop"}, []string{"VNFM_MGMT_DRIVERS: mgmt.drivers: a map is written"}},
		"value validated from env": {"", []string{"VNFM_LOG_LEVEL=loud"}, []string{"VNFM_LOG_LEVEL: log.level: \"loud\" is none of"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, c.text), c.env)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("want %q in:\n%v", w, err)
				}
			}
			if strings.Contains(err.Error(), "topsecret") {
				t.Errorf("shows a secret: %v", err)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, err := Load(write(t, "log: {level: loud}\nlisten: x\npaging: {page_size: -1}\n"), nil)
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 3 {
		t.Errorf("got %v", err)
	}
}

func TestEveryKeyIsDocumentedAndHasAVariable(t *testing.T) {
	seen := map[string]string{}
	cfg := Default()
	walk(reflect.ValueOf(cfg).Elem(), "", func(key string, f reflect.StructField, v reflect.Value) {
		if f.Tag.Get("doc") == "" {
			t.Errorf("%s has no doc", key)
		}
		env := EnvName(key)
		if other, dup := seen[env]; dup {
			t.Errorf("%s stands for %s and %s", env, key, other)
		}
		seen[env] = key
		// Each key can be set from the environment to what it is already.
		text := fmt.Sprint(v.Interface())
		switch v.Kind() {
		case reflect.Slice:
			text = strings.Join(v.Interface().([]string), ",")
		case reflect.Map:
			var parts []string
			for _, k := range v.MapKeys() {
				parts = append(parts, fmt.Sprintf("%v=%v", k, v.MapIndex(k)))
			}
			text = strings.Join(parts, ",")
		}
		got, err := Load("", []string{env + "=" + text})
		if err != nil {
			t.Errorf("%s=%s: %v", env, text, err)
			return
		}
		want := Default()
		want.complete()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s=%s: %s", env, text, d)
		}
	})
}

func TestPrintShowsEverythingAndReadsBack(t *testing.T) {
	cfg, err := Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := cfg.Print(&buf); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(buf.String(), "\n")
	walk(reflect.ValueOf(cfg).Elem(), "", func(key string, f reflect.StructField, _ reflect.Value) {
		name := f.Tag.Get("yaml") + ":"
		for i, l := range lines {
			if strings.HasPrefix(strings.TrimSpace(l), name) && i > 0 && strings.Contains(lines[i-1], "# "+f.Tag.Get("doc")) {
				return
			}
		}
		t.Errorf("%s is not printed with its comment", key)
	})
	again, err := Load(write(t, buf.String()), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, buf.String())
	}
	if d := cmp.Diff(cfg, again); d != "" {
		t.Error(d)
	}
}

func TestSecretsStayHidden(t *testing.T) {
	cfg, err := Load("", []string{
		"VNFM_DATABASE_URL=postgres://u:topsecret@h/d", "VNFM_SECRETS_KEY_FILE=/k", "VNFM_AUTH_MODE=basic",
		"VNFM_AUTH_BASIC_USERS=a=topsecret", "VNFM_AUTH_KEYSTONE_PASSWORD=topsecret",
	})
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := cfg.Print(&buf); err != nil {
		t.Fatal(err)
	}
	slog.New(slog.NewJSONHandler(&buf, nil)).Info("x", "cfg", cfg, "db", cfg.Database.URL)
	fmt.Fprintf(&buf, "%v %+v %#v", cfg, cfg.Auth, cfg.Database)
	if strings.Contains(buf.String(), "topsecret") {
		t.Error(buf.String())
	}
	if cfg.Auth.Basic.Users["a"].Reveal() != "topsecret" {
		t.Error("lost")
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "localhost": true, "LOCALHOST": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "example.org": false,
	} {
		if got := loopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "512": 512, "16MiB": 16 << 20, "16 mib": 16 << 20, "1GB": 1e9, "1.5kB": 1500, "1024GiB": 1 << 40, "7B": 7,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "-1kB", "1e30", "9999999TiB", "NaN", "MiB", "1.5.5"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Min(0).Draw(t, "b"))
		if got, err := ParseBytes(b.String()); err != nil || got != b {
			t.Fatalf("%d → %s → %d, %v", b, b, got, err)
		}
	})
}

func TestScalarReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Default()
		cfg.complete()
		s := rapid.StringMatching(`[ -~]{0,12}`).Draw(t, "s")
		cfg.Openstack.UserDataUser = s
		cfg.VNFPackage.URIHosts = []string{s, "x"}
		cfg.Mgmt.Drivers = map[string]string{"k" + s: s}
		var buf bytes.Buffer
		if err := cfg.Print(&buf); err != nil {
			t.Fatal(err)
		}
		got := Default()
		l := &loader{places: map[string]string{}}
		l.file("f", buf.Bytes(), got)
		if len(l.problems) > 0 {
			t.Fatalf("%q: %v\n%s", s, l.problems, buf.String())
		}
		if d := cmp.Diff(cfg, got); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add("listen: 127.0.0.1:1\n")
	f.Add("auth: {mode: [a, *x]}\n")
	f.Add("a: &a [*a]\n")
	f.Add("log: &l {level: info, <<: *l}\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := &loader{places: map[string]string{}}
		cfg := Default()
		l.file("f", []byte(text), cfg)
		cfg.complete()
		_ = cfg.problems(l.places)
	})
}

func TestKeyFile(t *testing.T) {
	cfg := Default()
	cfg.Secrets.KeyFile = filepath.Join(t.TempDir(), "d", "k")
	var wg sync.WaitGroup
	texts := make([]string, 8)
	for i := range texts {
		wg.Go(func() {
			var err error
			if texts[i], _, err = cfg.ReadKeys(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, x := range texts {
		if x != texts[0] || !strings.HasPrefix(x, "1:") {
			t.Errorf("keys differ: %q, %q", x, texts[0])
		}
	}
	st, err := os.Stat(cfg.Secrets.KeyFile)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if err := os.Chmod(cfg.Secrets.KeyFile, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := cfg.ReadKeys(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("open file: %v", err)
	}
	cfg.Database.URL, cfg.Secrets.KeyFile = "postgres://x", filepath.Join(t.TempDir(), "none")
	if _, _, err := cfg.ReadKeys(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	cfg.Secrets.KeyFile = ""
	if _, _, err := cfg.ReadKeys(); err == nil {
		t.Error("unset: no error")
	}
}

func TestWaysOfAuthentication(t *testing.T) {
	cfg, err := Load("", []string{"VNFM_AUTH_MODES=basic,mtls", "VNFM_AUTH_BASIC_USERS=a=x,b=$2b$10$h", "VNFM_AUTH_MTLS_USERS=dns:nfvo.example=n,cn:b=b",
		"VNFM_AUTH_ROLES=a=admin,n=operator", "VNFM_AUTH_PROJECTS=n=p", "VNFM_TLS_CERT=c", "VNFM_TLS_KEY=k", "VNFM_TLS_CLIENT_CA=ca", "VNFM_LISTEN=0.0.0.0:1"})
	if err != nil {
		t.Fatal(err)
	}
	a := cfg.Auth
	if d := cmp.Diff([]string{"basic", "mtls"}, a.Ways()); d != "" {
		t.Error(d)
	}
	if a.MTLS.Users["dns:nfvo.example"] != "n" || a.Basic.Users["b"].Reveal() != "$2b$10$h" {
		t.Errorf("users %v", a.MTLS.Users)
	}
	for user, want := range map[string][2]string{"a": {"admin", "default"}, "b": {"reader", "default"}, "n": {"operator", "p"}} {
		if got := [2]string{a.RoleOf(user), a.ProjectOf(user)}; got != want {
			t.Errorf("%s: %v, want %v", user, got, want)
		}
	}
	if ways := Default().Auth.Ways(); cmp.Diff([]string{"none"}, ways) != "" {
		t.Errorf("by default %v", ways)
	}
}
