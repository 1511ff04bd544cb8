package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// today is when the tests of kubeconfigs are.
var today = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// certificate makes a self-signed certificate that ends a year after today, or a year before it.
func certificate(t *testing.T, ended bool) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(7), NotBefore: today.AddDate(-2, 0, 0), NotAfter: today.AddDate(1, 0, 0)}
	if ended {
		tmpl.NotAfter = today.AddDate(-1, 0, 0)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", raw)
}

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// jwt makes an unsigned token that ends then.
func jwt(end time.Time) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, end.Unix())) + ".c2ln"
}

// stub is a VNF manager that keeps the body of the last POST or PUT and knows one VIM.
type stub struct {
	*httptest.Server
	method, body string
}

func newStub(t *testing.T, authURL string) *stub {
	t.Helper()
	s := &stub{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodGet {
			s.method, s.body = r.Method, string(raw)
		}
		if r.URL.Path == vimsPath+".json" && r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"vims":[{"id":"x"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"vim":{"id":"x","auth_url":"`+authURL+`"}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// vim is what was sent last.
func (s *stub) vim(t *testing.T) map[string]any {
	t.Helper()
	var body struct{ Vim map[string]any }
	if err := json.Unmarshal([]byte(s.body), &body); err != nil {
		t.Fatalf("%v: %q", err, s.body)
	}
	return body.Vim
}

// files writes files into a folder and returns its path.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// config is a kubeconfig with one context.
func config(cluster, user, context string) string {
	if context == "" {
		context = "cluster: k, user: u"
	}
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster: {" + cluster + "}\n" +
		"users:\n- name: u\n  user: {" + user + "}\ncontexts:\n- name: c\n  context: {" + context + "}\n"
}

func TestKubeconfig(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t, false)
	oldCert, oldKey := certificate(t, true)
	ca := "certificate-authority-data: " + encoded(cert)
	at := "server: https://k:6443, " + ca
	type vim = map[string]any
	// want is a VIM of the namespace default that is verified by ca.
	want := func(auth vim) vim {
		auth["cert_verify"], auth["ssl_ca_cert"] = "True", cert
		return vim{"auth_url": "https://k:6443", "type": "kubernetes", "name": "n", "vim_project": vim{"name": "default"}, "auth_cred": auth}
	}
	token := func() vim { return want(vim{"bearer_token": "t"}) }
	with := func(v vim, keys ...any) vim {
		for n := 0; n < len(keys); n += 2 {
			v[keys[n].(string)] = keys[n+1] //nolint:forcetypeassert // it is so
		}
		return v
	}
	json := `{"kind": "Config", "current-context": "c", "clusters": [{"name": "k", "cluster": {"server": "https://k:6443", "certificate-authority-data": "` + encoded(cert) +
		`"}}], "users": [{"name": "u", "user": {"token": "t"}}], "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}`
	two := config(at, "token: t", "cluster: k, user: u, namespace: one") + "- {name: d, context: {cluster: k, user: u, namespace: two}}\n"
	for name, c := range map[string]struct {
		kubeconfig string
		files      map[string]string // beside it
		config     string            // a configuration file beside it
		change     VIMChange
		want       vim
		err        string
	}{
		"token":                {kubeconfig: config(at, "token: t", ""), want: token()},
		"JSON":                 {kubeconfig: json, want: token()},
		"a number for a token": {kubeconfig: config(at, "token: 0123e4", ""), want: want(vim{"bearer_token": "0123e4"})},
		"a trailing slash":     {kubeconfig: config("server: 'https://k:6443/', "+ca, "token: t", ""), want: token()},
		"below a path":         {kubeconfig: config("server: 'https://k/k8s/clusters/c-1', "+ca, "token: t", ""), want: with(token(), "auth_url", "https://k/k8s/clusters/c-1")},
		"base64 over lines":    {kubeconfig: config("server: https://k:6443, certificate-authority-data: '"+encoded(cert)[:40]+"\n\n    "+encoded(cert)[40:]+"'", "token: t", ""), want: token()},
		"a good token":         {kubeconfig: config(at, "token: "+jwt(today.Add(time.Hour)), ""), want: want(vim{"bearer_token": jwt(today.Add(time.Hour))})},
		"a token in a file, rather than the other": {
			kubeconfig: config(at, "token: old, tokenFile: secret/token", ""), files: map[string]string{"secret/token": "t\n"}, want: token(),
		},
		"user and password":       {kubeconfig: config(at, "username: me, password: p", ""), want: want(vim{"username": "me", "password": "p"})},
		"certificate":             {kubeconfig: config(at, "client-certificate-data: "+encoded(cert)+", client-key-data: "+encoded(key), ""), want: want(vim{"client_cert": cert, "client_key": key})},
		"certificate and token":   {kubeconfig: config(at, "token: t, client-certificate-data: "+encoded(cert)+", client-key-data: "+encoded(key), ""), want: want(vim{"bearer_token": "t", "client_cert": cert, "client_key": key})},
		"all in files":            {kubeconfig: config("server: https://k:6443, certificate-authority: pki/ca.crt", "client-certificate: pki/me.crt, client-key: ./pki/me.key", ""), files: map[string]string{"pki/ca.crt": cert, "pki/me.crt": cert, "pki/me.key": key}, want: want(vim{"client_cert": cert, "client_key": key})},
		"data rather than a file": {kubeconfig: config(at+", certificate-authority: none.crt", "token: t", ""), want: token()},
		"empty and harmless keys": {kubeconfig: config(at+", proxy-url: '', insecure-skip-tls-verify: false, disable-compression: true, extensions: [{name: a}]", "token: t, exec: null, as: ''", ""), want: token()},
		"the system's authorities": {
			kubeconfig: config("server: https://k:6443", "token: t", ""),
			want:       with(token(), "auth_cred", vim{"bearer_token": "t", "cert_verify": "True"}),
		},
		"not verified, as wanted": {
			kubeconfig: config("server: https://k:6443, insecure-skip-tls-verify: true", "token: t", ""), change: VIMChange{SkipVerify: true},
			want: with(token(), "auth_cred", vim{"bearer_token": "t", "cert_verify": "False"}),
		},
		"not verified, as the configuration file wants": {
			kubeconfig: config("server: https://k:6443, insecure-skip-tls-verify: true", "token: t", ""), config: "cert_verify: false\n",
			want: with(token(), "auth_cred", vim{"bearer_token": "t", "cert_verify": "False"}),
		},
		"the current context": {kubeconfig: two, want: with(token(), "vim_project", vim{"name": "one"})},
		"another context":     {kubeconfig: two, change: VIMChange{Context: "d"}, want: with(token(), "vim_project", vim{"name": "two"})},
		"another namespace":   {kubeconfig: two, change: VIMChange{Namespace: "three"}, want: with(token(), "vim_project", vim{"name": "three"})},
		"context and more of a configuration file": {
			kubeconfig: two, config: "kubeconfig: kubeconfig\ncontext: d\nextra: {requests_per_second: 5}\n",
			want: with(token(), "vim_project", vim{"name": "two"}, "extra", vim{"requests_per_second": 5.0}),
		},
		"what a configuration file says counts": {
			kubeconfig: config("server: https://127.0.0.1:6443, insecure-skip-tls-verify: true", "exec: {command: login}", "cluster: k, user: u, namespace: one"),
			config:     "kubeconfig: kubeconfig\nauth_url: https://k:6443\nproject_name: two\nbearer_token: t\nssl_ca_cert: \"" + strings.ReplaceAll(cert, "\n", "\\n") + "\"\n",
			want:       with(token(), "vim_project", vim{"name": "two"}),
		},
		"a configuration file has no authority": {
			kubeconfig: config(at, "token: t", ""), config: "ssl_ca_cert: None\n",
			want: with(token(), "auth_cred", vim{"bearer_token": "t", "cert_verify": "False", "ssl_ca_cert": "None"}),
		},
		"OpenID Connect by a configuration file": {
			kubeconfig: config(at, "auth-provider: {name: oidc}", ""), config: "oidc_token_url: https://i\nclient_id: a\nusername: me\npassword: p\n",
			want: want(vim{"oidc_token_url": "https://i", "client_id": "a", "username": "me", "password": "p"}),
		},

		"no file":                       {err: "does not exist"},
		"no YAML":                       {kubeconfig: "a: [", err: "line "},
		"empty":                         {kubeconfig: " ", err: "empty"},
		"something else":                {kubeconfig: "kind: Pod\n", err: "it is no kubeconfig: its kind is Pod"},
		"a context that there is not":   {kubeconfig: two, change: VIMChange{Context: "e"}, err: `it has no context "e"; it has: c, d`},
		"no current context":            {kubeconfig: strings.Replace(two, "current-context: c", "current-context: ''", 1), err: "choose one of its contexts by --context (context in a configuration file): c, d"},
		"two of a name":                 {kubeconfig: strings.Replace(two, "name: d", "name: c", 1), err: `it has two contexts of the name "c"`},
		"a cluster that there is not":   {kubeconfig: config(at, "token: t", "cluster: l, user: u"), err: `it has no cluster "l"; it has: k`},
		"a user that there is not":      {kubeconfig: config(at, "token: t", "cluster: k, user: v"), err: `it has no user "v"; it has: u`},
		"no user":                       {kubeconfig: config(at, "token: t", "cluster: k"), err: `context "c" names no user`},
		"no cluster":                    {kubeconfig: config(at, "token: t", "user: u"), err: "the context names no cluster"},
		"an empty user":                 {kubeconfig: strings.Replace(config(at, "", ""), "user: {}", "user: null", 1), err: `the user "u" is empty`},
		"no server":                     {kubeconfig: config(ca, "token: t", ""), err: "no http or https URL"},
		"a server of another kind":      {kubeconfig: config("server: 'unix:///run/k'", "token: t", ""), err: "no http or https URL"},
		"a password in the server":      {kubeconfig: config("server: 'https://me:hunter2@k'", "token: t", ""), err: "without user name and password"},
		"nothing to log in with":        {kubeconfig: config(at, "token: ''", ""), err: "nothing to log in with"},
		"exec":                          {kubeconfig: config(at, "exec: {command: aws}", ""), err: "logs in by a program (exec), which is on your machine and not where the VNF manager runs; give a VIM an account of its own: a ServiceAccount"},
		"exec beside a token":           {kubeconfig: config(at, "token: t, exec: {command: aws}", ""), err: "(exec)"},
		"auth-provider":                 {kubeconfig: config(at, "auth-provider: {name: oidc}", ""), err: "oidc_token_url, client_id, client_secret, username and password"},
		"impersonation":                 {kubeconfig: config(at, "token: t, as: root", ""), err: "acts as somebody else (as)"},
		"what is not known of a user":   {kubeconfig: config(at, "token: t, retina: scan", ""), err: `user "u" has retina`},
		"what is not known of a server": {kubeconfig: config(at+", carrier: pigeon", "token: t", ""), err: `cluster "k" has carrier`},
		"a proxy":                       {kubeconfig: config(at+", proxy-url: 'http://p'", "token: t", ""), err: "set HTTPS_PROXY"},
		"another name":                  {kubeconfig: config(at+", tls-server-name: o", "token: t", ""), err: "(tls-server-name)"},
		"not verified":                  {kubeconfig: config("server: https://k:6443, insecure-skip-tls-verify: true", "token: t", ""), err: "say --insecure-skip-tls-verify (cert_verify: 'False' in a configuration file)"},
		"a token and a password":        {kubeconfig: config(at, "token: t, username: me, password: p", ""), err: "has a token, and a username and password"},
		"a user without a password":     {kubeconfig: config(at, "username: me", ""), err: "a username or a password without the other"},
		"a certificate without its key": {kubeconfig: config(at, "client-certificate-data: "+encoded(cert), ""), err: "without the other"},
		"another's key":                 {kubeconfig: config(at, "client-certificate-data: "+encoded(cert)+", client-key-data: "+encoded(oldKey), ""), err: "are not a PEM certificate and its key"},
		"a key with a passphrase":       {kubeconfig: config(at, "client-certificate-data: "+encoded(cert)+", client-key-data: "+encoded("-----BEGIN ENCRYPTED PRIVATE KEY-----"), ""), err: "without a passphrase"},
		"a certificate that has ended":  {kubeconfig: config(at, "client-certificate-data: "+encoded(oldCert)+", client-key-data: "+encoded(oldKey), ""), err: "has ended at 2025-11-21T00:00:00Z: have it renewed"},
		"a token that has ended":        {kubeconfig: config(at, "token: "+jwt(today.Add(-time.Hour)), ""), err: "the token of user \"u\" has ended at 2026-11-20T23:00:00Z: get another"},
		"a token file that is missing":  {kubeconfig: config(at, "tokenFile: none", ""), err: "tokenFile: File "},
		"a token file with two lines":   {kubeconfig: config(at, "tokenFile: two", ""), files: map[string]string{"two": "a\nb\n"}, err: "holds no token"},
		"an authority that is missing":  {kubeconfig: config("server: https://k:6443, certificate-authority: none.crt", "token: t", ""), err: "certificate-authority: File "},
		"an authority that is none":     {kubeconfig: config("server: https://k:6443, certificate-authority-data: "+encoded("x"), "token: t", ""), err: "holds no PEM certificate"},
		"no base64":                     {kubeconfig: config("server: https://k:6443, certificate-authority-data: '!'", "token: t", ""), err: "certificate-authority-data is not base64"},
		"an OpenStack":                  {kubeconfig: two, config: "type: openstack\n", err: "a VIM of type openstack has no kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := map[string]string{}
			for n, text := range c.files {
				all[n] = text
			}
			if c.kubeconfig != "" {
				all["kubeconfig"] = c.kubeconfig
			}
			if c.config != "" {
				all["vim.yaml"] = c.config
			}
			dir := files(t, all)
			s := newStub(t, "")
			client := newTestClient(t, Auth{Endpoint: s.URL})
			client.now = func() time.Time { return today }
			ch := c.change
			ch.Name = "n"
			if c.config != "" {
				ch.ConfigFile = filepath.Join(dir, "vim.yaml")
			}
			if !strings.Contains(c.config, "kubeconfig:") {
				ch.Kubeconfig = filepath.Join(dir, "kubeconfig")
			}
			_, err := client.RegisterVIM(t.Context(), ch)
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), "Invalid input: ") || !strings.Contains(err.Error(), c.err) || s.body != "" {
					t.Errorf("says %v, want %q; sent %q", err, c.err, s.body)
				} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "PRIVATE") {
					t.Errorf("the error tells a secret: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.vim(t)); diff != "" {
				t.Errorf("sent (- want, + got):\n%s", diff)
			}
		})
	}
}

// TestKubeconfigChanges renews a VIM's credentials by a kubeconfig: only those of the same cluster.
func TestKubeconfigChanges(t *testing.T) {
	t.Parallel()
	s := newStub(t, "https://k:6443")
	client := newTestClient(t, Auth{Endpoint: s.URL})
	dir := files(t, map[string]string{
		"same": config("server: 'https://k:6443/'", "token: t2", ""), "other": config("server: https://l:6443", "token: t2", ""),
		"inner": config("server: https://127.0.0.1:6443", "token: t3", "cluster: k, user: u, namespace: one"), "vim.yaml": "kubeconfig: inner\nauth_url: https://k:6443\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	auth := func(token string) map[string]any { // and nothing of what the VIM had
		out := map[string]any{"cert_verify": "True"}
		for _, key := range clusterCredentials {
			out[key] = nil
		}
		out["bearer_token"] = token
		return out
	}
	if _, err := client.SetVIM(t.Context(), "n", VIMChange{Kubeconfig: at("same")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"auth_cred": auth("t2")}, s.vim(t)); diff != "" || s.method != http.MethodPut {
		t.Errorf("%s sends (- want, + got):\n%s", s.method, diff)
	}
	s.body = ""
	if _, err := client.SetVIM(t.Context(), "n", VIMChange{Kubeconfig: at("other")}); err == nil || s.body != "" ||
		!strings.Contains(err.Error(), "the kubeconfig is of the API server https://l:6443, the VIM is at https://k:6443. If they are the same, say auth_url: https://k:6443") {
		t.Errorf("%v, sent %q", err, s.body)
	}
	if _, err := client.SetVIM(t.Context(), "n", VIMChange{ConfigFile: at("vim.yaml"), Description: "d"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"auth_cred": auth("t3"), "vim_project": map[string]any{"name": "one"}, "description": "d"}
	if diff := cmp.Diff(want, s.vim(t)); diff != "" {
		t.Errorf("with the address in a configuration file: sent (- want, + got):\n%s", diff)
	}
	if _, err := client.SetVIM(t.Context(), "n", VIMChange{Context: "c"}); err == nil || !strings.Contains(err.Error(), "go with --kubeconfig") {
		t.Errorf("a context of nothing: %v", err)
	}
}

// FuzzKubeconfig: whatever a kubeconfig holds, it becomes a VIM's configuration or an error.
func FuzzKubeconfig(f *testing.F) {
	f.Add(config("server: https://k", "token: t", ""))
	f.Add(config("server: https://k, certificate-authority-data: YQ==", "client-certificate-data: YQ==, client-key-data: YQ==", ""))
	f.Add("{contexts: [{name: c, context: [1]}, 3], current-context: c}")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "k")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := readKubeconfig(path, time.Now)
		if err != nil {
			return
		}
		out, err := k.imported("", NewObject(), false)
		if err == nil && (out.Text("auth_url") == "" || !givesLogin(out)) {
			t.Errorf("imported as %v", out.Values)
		}
	})
}
