package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
	kubelab "github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// allow lets users of the cluster do what the ClusterRole edit allows, in the lab's namespace.
func (l *cnfLab) allow(t *testing.T, users ...string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "editors"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}
	for _, u := range users {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: u})
	}
	_, err := l.plane.Client.RbacV1().RoleBindings(l.namespace).Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
	l.there = l.objects(t, l.namespace)
}

// lives has the client instantiate our sample CNF on a VIM and terminate it, and returns which users the cluster has seen
// do so.
func (l *cnfLab) lives(ctx context.Context, t *testing.T, vim, vnfd string) []string {
	t.Helper()
	mark, err := l.plane.Mark()
	must(t, err)
	id := l.show(ctx, t, "vnflcm", "create", vnfd).values["ID"]
	l.ok(ctx, t, "vnflcm", "instantiate", id, l.jsonFile(t, "request.json", onNamespace(vim, l.namespace)))
	l.awaitOp(ctx, t, l.latest(ctx, t, id), sol003.LcmOperationStateCompleted)
	if n := len(l.vnfcs(ctx, t, id, "WEB")); n != 2 {
		t.Errorf("there are %d VNFCs of WEB", n)
	}
	l.removes(ctx, t, id)
	return l.writers(t, mark)
}

// removes has the client terminate and delete an instance.
func (l *cnfLab) removes(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	l.ok(ctx, t, "vnflcm", "terminate", id, "--termination-type", "FORCEFUL")
	l.awaitOp(ctx, t, l.latest(ctx, t, id), sol003.LcmOperationStateCompleted)
	l.ok(ctx, t, "vnflcm", "delete", id)
}

// writers are the users that have changed something in the lab's namespace since a mark, by the name of our program.
func (l *cnfLab) writers(t *testing.T, since kubelab.Mark) []string {
	t.Helper()
	requests, err := l.plane.Requests(since)
	must(t, err)
	var users []string
	for _, r := range requests {
		if r.UserAgent == "vnfm" && r.Namespace == l.namespace && slices.Contains([]string{"create", "patch", "update", "delete"}, r.Verb) {
			users = append(users, r.User)
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// gateway serves the API server's API to one user, known by a password, as clusters do that have something before them.
func gateway(t *testing.T, plane *kubelab.Plane, token, user, password string) *httptest.Server {
	t.Helper()
	target, err := url.Parse(plane.URL)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(plane.CA)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestCNFLogins has the real client register the cluster in every way that its configuration files can say, and a CNF
// live on each VIM: the cluster knows us as whom we were registered.
func TestCNFLogins(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	issuer := kubelab.NewIssuer(t)
	plane := kubelab.StartOwn(t, kubelab.Options{APIServer: issuer.Flags()})
	l := newCNFLab(t, plane, "600s")
	l.said.hide(issuer.ClientSecret)
	l.allow(t, "oidc:"+issuer.User, "oidc:"+issuer.ClientID, "somebody")
	cert, err := plane.Certificate("somebody")
	must(t, err)
	l.said.hide(strings.Split(string(cert.Key), "\n")[1])
	front := gateway(t, plane, l.token, "somebody", wrongSecret)
	authorities := string(plane.CA) + string(issuer.CA)
	raw, vnfd := variant(t, "web-cnf", nil)
	pkg, err := l.api.Onboard(ctx, raw)
	must(t, err)
	for _, c := range []struct {
		name string
		keys map[string]any
		user string
	}{
		{"bearer token", map[string]any{"bearer_token": l.token}, l.account.User()},
		{"user and password", map[string]any{
			"auth_url": front.URL, "username": "somebody", "password": wrongSecret,
			"ssl_ca_cert": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})),
		}, l.account.User()},
		{"OpenID Connect, by password", map[string]any{
			"oidc_token_url": issuer.TokenURL, "client_id": issuer.ClientID, "client_secret": issuer.ClientSecret,
			"username": issuer.User, "password": issuer.Password, "ssl_ca_cert": authorities,
		}, "oidc:" + issuer.User},
		{"OpenID Connect, of the client", map[string]any{
			"oidc_token_url": issuer.TokenURL, "client_id": issuer.ClientID, "client_secret": issuer.ClientSecret,
			"username": nil, "password": nil, "ssl_ca_cert": authorities,
		}, "oidc:" + issuer.ClientID},
		{"client certificate", map[string]any{
			"bearer_token": nil, "extra": map[string]any{"client_cert": string(cert.Certificate), "client_key": string(cert.Key)},
		}, "somebody"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := l.vimFile(t, c.keys)
			var vim string
			must(t, harness.Await(ctx, "the API server believes the issuer", func(ctx context.Context) (bool, error) {
				r := l.openstack(ctx, t, "vim", "register", "--config-file", file, c.name) // it reads the issuer's keys in its own time
				if r.code == 0 {
					vim = parseFields(t, r.out).values["id"]
				}
				return r.code == 0, nil
			}))
			if diff := cmp.Diff([]string{c.user}, l.lives(ctx, t, vim, vnfd)); diff != "" {
				t.Errorf("the cluster has seen (- want, + got):\n%s", diff)
			}
			l.both(ctx, t, "vim", "show", vim)
			l.ok(ctx, t, "vim", "delete", vim)
			l.checkCleared(t)
		})
	}
	must(t, l.api.DeletePackage(ctx, pkg.Id))
}

// TestCNFCredentialIsReplaced gives a VIM another account while a CNF lives on it: from the next call on the cluster knows us
// as that, and by a token after it by a certificate.
func TestCNFCredentialIsReplaced(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newCNFLab(t, kubelab.Start(t), "600s")
	l.allow(t, "e2e-somebody")
	next, token := l.tenant(t, "next")
	l.there = l.objects(t, l.namespace)
	cert, err := l.plane.Certificate("e2e-somebody")
	must(t, err)
	l.said.hide(strings.Split(string(cert.Key), "\n")[1])
	vim := l.show(ctx, t, "vim", "register", "--config-file", l.vimFile(t, map[string]any{"bearer_token": l.token}), "cluster").values["id"]
	raw, vnfd := variant(t, "web-cnf", nil)
	pkg, err := l.api.Onboard(ctx, raw)
	must(t, err)
	id := l.show(ctx, t, "vnflcm", "create", vnfd).values["ID"]
	l.ok(ctx, t, "vnflcm", "instantiate", id, l.jsonFile(t, "request.json", onNamespace(vim, l.namespace)))
	l.awaitOp(ctx, t, l.latest(ctx, t, id), sol003.LcmOperationStateCompleted)
	scale := func(kind string) []string {
		t.Helper()
		mark, err := l.plane.Mark()
		must(t, err)
		l.ok(ctx, t, "vnflcm", "scale", id, "--type", kind, "--aspect-id", "web")
		l.awaitOp(ctx, t, l.latest(ctx, t, id), sol003.LcmOperationStateCompleted)
		return l.writers(t, mark)
	}
	l.show(ctx, t, "vim", "set", "cluster", "--config-file", l.vimFile(t, map[string]any{"bearer_token": token}))
	if diff := cmp.Diff([]string{next.User()}, scale("SCALE_OUT")); diff != "" {
		t.Errorf("after another token the cluster has seen (- want, + got):\n%s", diff)
	}
	l.show(ctx, t, "vim", "set", "cluster", "--config-file", l.vimFile(t, map[string]any{
		"bearer_token": nil, "extra": map[string]any{"client_cert": string(cert.Certificate), "client_key": string(cert.Key)},
	}))
	if diff := cmp.Diff([]string{"e2e-somebody"}, scale("SCALE_IN")); diff != "" {
		t.Errorf("after a certificate the cluster has seen (- want, + got):\n%s", diff)
	}
	l.refused(ctx, t, []string{"Authentication to VIM 'cluster'", "401"}, "vim", "set", "cluster", "--config-file", l.vimFile(t, map[string]any{"bearer_token": wrongSecret}))
	if diff := cmp.Diff([]string{"e2e-somebody"}, scale("SCALE_OUT")); diff != "" {
		t.Errorf("after a change that was refused the cluster has seen (- want, + got):\n%s", diff)
	}
	l.removes(ctx, t, id)
	must(t, l.api.DeletePackage(ctx, pkg.Id))
	l.checkCleared(t)
}

// TestCNFKubeconfig has our client register the cluster by kubeconfigs as the cluster's administrators hand them out.
func TestCNFKubeconfig(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newCNFLab(t, kubelab.Start(t), "600s")
	user := "e2e-" + l.namespace
	l.allow(t, user)
	cert, err := l.plane.Certificate(user)
	must(t, err)
	l.said.hide(strings.Split(string(cert.Key), "\n")[1])
	theirs := l.lab
	l.lab = l.ours(ctx, t)
	raw, vnfd := variant(t, "web-cnf", nil)
	pkg, err := l.api.Onboard(ctx, raw)
	must(t, err)
	kubeconfig := func(c kubelab.Credential, ns string) string {
		t.Helper()
		raw, err := l.plane.KubeconfigOf(c, ns)
		must(t, err)
		return l.file(t, "kubeconfig", raw)
	}
	byToken, byCert := kubeconfig(kubelab.Credential{Token: l.token}, l.namespace), kubeconfig(cert, l.namespace)
	config := l.file(t, "vim.yaml", []byte("kubeconfig: "+byCert+"\nextra: {requests_per_second: 50}\n"))
	for _, c := range []struct {
		name, user, secret string
		args               []string
	}{
		{"token", l.account.User(), "bearer_token", []string{"--kubeconfig", byToken}},
		{"certificate", user, "client_key", []string{"--kubeconfig", byCert, "--context", "lab"}},
		{"file", user, "client_key", []string{"--config-file", config}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := l.show(ctx, t, append([]string{"vim", "register", c.name}, c.args...)...)
			vim := f.values["id"]
			var auth map[string]any
			f.json(t, "auth_cred", &auth)
			if auth[c.secret] != "***" || auth["cert_verify"] != "True" || f.values["auth_url"] != l.plane.URL || !strings.Contains(f.values["vim_project"], `"name": "`+l.namespace+`"`) {
				t.Errorf("the VIM is shown as %v", f.values)
			}
			if diff := cmp.Diff([]string{c.user}, l.lives(ctx, t, vim, vnfd)); diff != "" {
				t.Errorf("the cluster has seen (- want, + got):\n%s", diff)
			}
			if c.name == "token" { // and on it goes as somebody else
				l.show(ctx, t, "vim", "set", c.name, "--kubeconfig", byCert)
				if diff := cmp.Diff([]string{user}, l.lives(ctx, t, vim, vnfd)); diff != "" {
					t.Errorf("after vim set --kubeconfig the cluster has seen (- want, + got):\n%s", diff)
				}
			}
			if out := theirs.ok(ctx, t, "vim", "show", c.name); out != l.ok(ctx, t, "vim", "show", vim) {
				t.Errorf("the real client shows the VIM otherwise:\n%s", out)
			}
			l.ok(ctx, t, "vim", "delete", c.name)
		})
	}

	admin, err := l.plane.KubeconfigOf(kubelab.Credential{Token: l.token}, "")
	must(t, err)
	exec := strings.Replace(string(admin), "    token: "+l.token, "    exec: {apiVersion: client.authentication.k8s.io/v1, command: login}", 1)
	for says, args := range map[string][]string{
		"logs in by a program (exec), which is on your machine": {"--kubeconfig", l.file(t, "exec", []byte(exec))},
		`it has no context "none"; it has: lab`:                 {"--kubeconfig", byToken, "--context", "none"},
		"does not exist or user does not have read privileges":  {"--kubeconfig", filepath.Join(t.TempDir(), "none")},
		"go with --kubeconfig":                                  {"--config-file", l.vimFile(t, map[string]any{"bearer_token": l.token}), "--context", "lab"},
		"Authentication to VIM 'no' at " + l.plane.URL:          {"--kubeconfig", kubeconfig(kubelab.Credential{Token: wrongSecret}, "")},
	} {
		l.refused(ctx, t, []string{says}, append([]string{"vim", "register", "no"}, args...)...)
	}
	must(t, l.api.DeletePackage(ctx, pkg.Id))
	l.checkCleared(t)
}
