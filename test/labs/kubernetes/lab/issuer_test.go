package lab

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ask logs in at the issuer; a token is there when the status is 200.
func ask(t *testing.T, i *Issuer, form url.Values) (status int, token string) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(i.CA)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	resp, err := client.PostForm(i.TokenURL, form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct {
		IDToken string `json:"id_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body.IDToken
}

func TestIssuerKnowsItsOwn(t *testing.T) {
	t.Parallel()
	i := NewIssuer(t)
	for name, c := range map[string]struct {
		form url.Values
		want int
	}{
		"password":           {url.Values{"grant_type": {"password"}, "username": {i.User}, "password": {i.Password}}, 200},
		"client credentials": {url.Values{"grant_type": {"client_credentials"}}, 200},
		"wrong password":     {url.Values{"grant_type": {"password"}, "username": {i.User}, "password": {"x"}}, 400},
		"unknown grant":      {url.Values{"grant_type": {"magic"}}, 400},
		"wrong secret":       {url.Values{"grant_type": {"client_credentials"}, "client_secret": {"x"}}, 401},
	} {
		c.form.Set("client_id", i.ClientID)
		if !c.form.Has("client_secret") {
			c.form.Set("client_secret", i.ClientSecret)
		}
		if got, token := ask(t, i, c.form); got != c.want || (token != "") != (c.want == 200) {
			t.Errorf("%s: status %d, want %d; token %q", name, got, c.want, token)
		}
	}
	if got := i.Granted.Load(); got != 2 {
		t.Errorf("it counts %d tokens", got)
	}
}

// testBelieved is part of TestDisturbed: an API server with the issuer's flags is a control plane of its own.
func testBelieved(t *testing.T, p *Plane, i *Issuer) {
	ctx := within(t)
	ns := p.Namespace(t, "oidc")
	_, err := p.Client.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "oidc:" + i.User}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}, create)
	if err != nil {
		t.Fatal(err)
	}
	login := func() *kubernetes.Clientset {
		t.Helper()
		_, token := ask(t, i, url.Values{
			"grant_type": {"password"}, "username": {i.User}, "password": {i.Password},
			"client_id": {i.ClientID}, "client_secret": {i.ClientSecret},
		})
		client, err := kubernetes.NewForConfig(p.ConfigOf(Credential{Token: token}))
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	client := login()
	err = await(ctx, "the API server to believe the issuer", func() (bool, error) {
		_, err := client.CoreV1().Pods(ns).List(ctx, listed)
		if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) { // it reads the issuer's keys, and bindings, in its own time
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().List(ctx, listed); !apierrors.IsForbidden(err) {
		t.Errorf("what it is not bound to: %v", err)
	}
	i.Life.Store(int64(-time.Second))
	if _, err := login().CoreV1().Pods(ns).List(ctx, listed); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token that has ended: %v", err)
	}
}
