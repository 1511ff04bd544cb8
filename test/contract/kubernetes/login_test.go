package kubernetes_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// TestLogins: CNFs are made by accounts that log in by an OpenID Connect issuer, with a password or as a client, whose tokens end
// while an operation goes on, and by a client certificate; credentials that are refused are told as such.
func TestLogins(t *testing.T) {
	t.Parallel()
	shared := newWorld(t, longWait)
	issuer := lab.NewIssuer(t)
	plane := lab.StartOwn(t, lab.Options{APIServer: issuer.Flags()})
	w := &world{Plane: plane, api: shared.api, cluster: shared.cluster, objects: shared.objects}
	life := 14 * time.Second
	issuer.Life.Store(int64(life))
	certificate, err := plane.Certificate("certified")
	must(t, err)
	id := w.ourPackage(t, map[string]string{"Files/a.yaml": with(lab.ReadyAfter, "20s", workload("Deployment"))})
	oidc := func(more doc) doc {
		out := doc{
			"oidc_token_url": issuer.TokenURL, "client_id": issuer.ClientID, "client_secret": issuer.ClientSecret,
			"ssl_ca_cert": string(plane.CA) + string(issuer.CA),
		}
		for key, v := range more {
			out[key] = v
		}
		return out
	}
	for _, tt := range []struct {
		name, user  string
		credentials doc
		renewed     bool
	}{
		{name: "password", user: "oidc:" + issuer.User, credentials: oidc(doc{"username": issuer.User, "password": issuer.Password}), renewed: true},
		{name: "client", user: "oidc:" + issuer.ClientID, credentials: oidc(nil), renewed: true},
		{
			name: "certificate", user: "certified",
			credentials: doc{"client_cert": string(certificate.Certificate), "client_key": string(certificate.Key), "ssl_ca_cert": string(plane.CA)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ns, err := plane.CreateNamespace(t.Context(), "login")
			must(t, err)
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}
			_, err = plane.Client.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{})
			must(t, err)
			binding := &rbacv1.RoleBinding{
				ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "all"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: tt.user}},
			}
			_, err = plane.Client.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{})
			must(t, err)
			var vim string
			must(t, eventually(t, func(ctx context.Context) (bool, error) { // the API server reads the issuer's keys in its own time
				vim, err = w.registering(ctx, plane.URL, ns, tt.credentials)
				return err == nil, nil
			}))
			v := w.create(t, id, vim, ns)
			granted := issuer.Granted.Load()
			mark, err := plane.Mark()
			must(t, err)
			op := v.start("simple", doc{"lcm-kubernetes-def-files": []any{"Files/a.yaml"}, "namespace": ns})
			v.completes(op)
			v.consistsOf("VDU1", 1)
			v.terminates("FORCEFUL")
			requests, err := plane.RequestsOf(tt.user, mark)
			must(t, err)
			if len(requests) == 0 {
				t.Errorf("nothing was asked for by %s", tt.user)
			}
			if n := issuer.Granted.Load() - granted; tt.renewed && n < 2 {
				t.Errorf("%d tokens were granted in more than %s", n, life)
			}
		})
	}
	ns, err := plane.CreateNamespace(t.Context(), "login")
	must(t, err)
	_, err = w.api.Call(t.Context(), http.MethodPost, "/v1.0/vims", doc{"vim": doc{
		"auth_url": plane.URL, "type": "kubernetes", "name": "refused", "vim_project": doc{"name": ns},
		"auth_cred": oidc(doc{"username": issuer.User, "password": "not-the-password"}),
	}}, nil)
	if err == nil || !strings.Contains(err.Error(), "Authentication to VIM 'refused'") || strings.Contains(err.Error(), "not-the-password") {
		t.Errorf("a VIM with credentials that its issuer refuses: %v", err)
	}
}
