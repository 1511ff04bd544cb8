package httpapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"

	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/jwtauth"
	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi/keystoneauth"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// issued are the tokens that an issuer has made, by text.
type issued map[string]jwtauth.Claims

func (i issued) Verify(_ context.Context, token string) (jwtauth.Claims, error) {
	c, ok := i[token]
	switch {
	case token == "away":
		return c, lcm.Errorf(lcm.KindUnavailable, "the issuer is away")
	case !ok:
		return c, lcm.Errorf(lcm.KindUnauthorized, "no such token")
	}
	return c, nil
}

func bearerOf(tokens issued) *Bearer {
	return NewBearer(tokens, BearerConfig{
		Scopes:       map[string]lcm.Role{"read": lcm.RoleReader, "write": lcm.RoleOperator, "admin": lcm.RoleAdmin},
		ProjectClaim: "project",
	})
}

func TestBearer(t *testing.T) {
	in := func(project string) map[string]any { return map[string]any{"sub": "u", "project": project} }
	tokens := issued{
		"reader": {Subject: "u", Scopes: []string{"read"}, All: in("p")}, "writer": {Subject: "u", Scopes: []string{"read", "write"}, All: in("p")},
		"nothing": {Subject: "u", Scopes: []string{"other"}, All: in("p")}, "homeless": {Subject: "u", Scopes: []string{"write"}},
		"root": {Subject: "r", Scopes: []string{"admin"}},
	}
	for _, c := range []struct {
		headers   []string
		method    string
		status    int
		challenge string // in WWW-Authenticate
	}{
		{nil, "GET", 401, `Bearer realm="vnfm"`},
		{[]string{"Authorization: Digest x"}, "GET", 401, `Bearer realm="vnfm"`},
		{[]string{"Authorization: Bearer reader"}, "GET", 200, ""},
		{[]string{"Authorization: bearer reader"}, "GET", 200, ""},
		{[]string{"Authorization: Bearer reader"}, "DELETE", 403, `error="insufficient_scope"`},
		{[]string{"Authorization: Bearer writer"}, "DELETE", 204, ""},
		{[]string{"Authorization: Bearer root"}, "DELETE", 204, ""},
		{[]string{"Authorization: Bearer nothing"}, "GET", 403, `error="insufficient_scope", error_description="The access token has no scope that gives a role here.", scope="admin read write"`},
		{[]string{"Authorization: Bearer homeless"}, "GET", 403, ""},
		{[]string{"Authorization: Bearer forged"}, "GET", 401, `error="invalid_token"`},
		{[]string{"Authorization: Bearer"}, "GET", 400, `error="invalid_request"`},
		{[]string{"Authorization: Bearer a b"}, "GET", 400, `error="invalid_request"`},
		{[]string{"Authorization: Bearer ä"}, "GET", 400, `error="invalid_request"`},
		{[]string{"Authorization: Bearer reader", "Authorization: Bearer writer"}, "GET", 400, `error="invalid_request"`},
		{[]string{"Authorization: Bearer away"}, "GET", 503, ""},
	} {
		res := ask(t, newFake().handler(Config{Auth: bearerOf(tokens)}), c.method, vi+"/"+known, "", c.headers...)
		got := res.Header.Get("WWW-Authenticate")
		if res.StatusCode != c.status || !strings.Contains(got, c.challenge) || (got == "") != (c.challenge == "") {
			t.Errorf("%s %v: %d, %q", c.method, c.headers, res.StatusCode, got)
		}
		if c.status >= 400 {
			detail(t, res)
		}
	}
}

// Every way that is on has its challenge in a 401, and the credentials that come decide which way is taken.
func TestSeveralWays(t *testing.T) {
	v := &validator{id: keystoneauth.Identity{UserName: "k", ProjectID: "kp", Roles: []string{"member"}}}
	f := newFake()
	h := f.handler(Config{Auth: Any{
		NewBasic(map[string]BasicUser{"b": {Password: "secret", ProjectID: "bp", Role: lcm.RoleOperator}}),
		bearerOf(issued{"t": {Subject: "o", Scopes: []string{"write"}, All: map[string]any{"sub": "o", "project": "op"}}}),
		NewKeystone(v, KeystoneConfig{AuthURL: "http://k"}),
		MutualTLS{},
	}})
	want := []string{basicChallenge, bearerChallenge, `Keystone uri="http://k"`}
	if res := ask(t, h, "GET", vi, ""); res.StatusCode != 401 || cmp.Diff(want, res.Header.Values("WWW-Authenticate")) != "" {
		t.Errorf("nobody: %d, %v", res.StatusCode, res.Header.Values("WWW-Authenticate"))
	}
	for user, headers := range map[string][]string{
		"k": {"X-Auth-Token: t"}, "o": {"Authorization: Bearer t"}, "b": {"Authorization: Basic YjpzZWNyZXQ="},
	} {
		if res := ask(t, h, "GET", vi+"/"+known, "", headers...); res.StatusCode != 200 || f.scope.User != user || f.scope.ProjectID != user+"p" {
			t.Errorf("%v: %d as %+v", headers, res.StatusCode, f.scope)
		}
	}
	if res := ask(t, h, "GET", vi, "", "Authorization: Basic YjpiYWQ="); res.StatusCode != 401 || len(res.Header.Values("WWW-Authenticate")) != 3 {
		t.Errorf("a wrong password: %d, %v", res.StatusCode, res.Header)
	}
	if res := ask(t, h, "GET", vi, "", "Authorization: Bearer"); res.StatusCode != 400 {
		t.Errorf("half a header: %d", res.StatusCode)
	}
}

func TestKeystoneTokenAsBearer(t *testing.T) {
	v := &validator{id: keystoneauth.Identity{UserName: "k", ProjectID: "kp", Roles: []string{"reader", "member"}}}
	f := newFake()
	h := f.handler(Config{Auth: NewKeystone(v, KeystoneConfig{AuthURL: "http://k", Bearer: true})})
	if res := ask(t, h, "GET", vi+"/"+known, "", "Authorization: Bearer t"); res.StatusCode != 200 || f.scope.Role != lcm.RoleOperator {
		t.Errorf("%d as %+v", res.StatusCode, f.scope)
	}
}

func TestBasicHash(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBasic(map[string]BasicUser{
		"h": {Password: lcm.Secret(hash), ProjectID: "p"}, "c": {Password: "clear", ProjectID: "p"}, "bad": {Password: "$2b$what"},
	})
	for _, c := range []struct {
		user, password string
		ok             bool
	}{
		{"h", "secret", true}, {"h", "secret", true}, {"h", "wrong", false}, {"h", string(hash), false}, {"c", "clear", true},
		{"c", "secret", false}, {"nobody", "secret", false}, {"nobody", "", false}, {"h", "secret", true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth(c.user, c.password)
		_, err := b.Authenticate(r)
		var u *Unauthorized
		if (err == nil) != c.ok || err != nil && !errors.As(err, &u) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.SetBasicAuth("bad", "x")
	if _, err := b.Authenticate(r); !lcm.Is(err, lcm.KindInternal) {
		t.Errorf("a hash that is none: %v", err)
	}
}

func TestCertificateUsers(t *testing.T) {
	uri, _ := url.Parse("spiffe://op/nfvo")
	leaf := &x509.Certificate{
		DNSNames: []string{"NFVO.example"}, URIs: []*url.URL{uri}, EmailAddresses: []string{"a@example"},
		Subject: pkix.Name{CommonName: "nfvo", Organization: []string{"Operator"}},
	}
	for name, known := range map[string]bool{
		"dns:nfvo.example": true, "uri:spiffe://op/nfvo": true, "email:a@example": true, "cn:nfvo": true,
		"subject:CN=nfvo,O=Operator": true, "cn:other": false, "dns:nfvo": false,
	} {
		m := MutualTLS{Users: map[string]CertificateUser{name: {Name: "u", ProjectID: "p", Role: lcm.RoleOperator}}}
		r := httptest.NewRequest("GET", "/", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
		if _, err := m.Authenticate(r); err == nil {
			t.Errorf("%s: a certificate that nobody has verified is taken", name)
		}
		r.TLS.VerifiedChains = [][]*x509.Certificate{{leaf}}
		s, err := m.Authenticate(r)
		if (err == nil) != known || known && (s.User != "u" || s.ProjectID != "p" || s.Role != lcm.RoleOperator || s.Admin) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// A refused password is not made good by the certificate of the connection; without a password the certificate counts.
func TestCertificateBesideRefusedCredentials(t *testing.T) {
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "nfvo"}}
	ways := Any{
		NewBasic(map[string]BasicUser{"b": {Password: "secret", ProjectID: "p"}}),
		MutualTLS{Users: map[string]CertificateUser{"cn:nfvo": {Name: "u", ProjectID: "p", Role: lcm.RoleAdmin}}},
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}
	if s, err := ways.Authenticate(r); err != nil || s.User != "u" {
		t.Errorf("the certificate alone: %+v, %v", s, err)
	}
	r.SetBasicAuth("b", "wrong")
	if s, err := ways.Authenticate(r); err == nil {
		t.Errorf("a wrong password beside it: %+v", s)
	}
}

// as is a caller who is known beforehand.
type as lcm.Scope

func (a as) Authenticate(*http.Request) (lcm.Scope, error) { return lcm.Scope(a), nil }

// The role decides by the method alone, whatever the resource.
func TestRoles(t *testing.T) {
	paths := map[string]string{
		"POST " + vi: `{"vnfdId":"` + vnfdID + `"}`, "GET " + vi: "", "GET " + vi + "/" + known: "", "DELETE " + vi + "/" + known: "",
		"POST " + vi + "/" + known + "/instantiate": `{"flavourId":"simple"}`, "POST " + oc + "/" + opOcc + "/retry": "",
		"GET " + oc: "", "GET " + oc + "/" + opOcc: "", "GET /vnflcm/api_versions": "",
		"POST " + pk: `{}`, "GET " + pk: "", "PATCH " + pk + "/" + known: `{"operationalState":"DISABLED"}`,
		"PUT " + pk + "/" + known + "/package_content": "zip", "DELETE " + pk + "/" + known: "",
		"POST " + vm: vimBody, "GET " + vm: "", "DELETE " + vm + "/" + known: "", "GET " + vm + "/" + known + ".json": "",
	}
	for _, role := range []lcm.Role{lcm.RoleReader, lcm.RoleOperator, lcm.RoleAdmin} {
		for request, body := range paths {
			method, path, _ := strings.Cut(request, " ")
			h := newFake().handler(Config{Auth: as(granted(lcm.Scope{ProjectID: "p", User: "u"}, role))})
			res := ask(t, h, method, path, body)
			refused := role == lcm.RoleReader && method != "GET"
			if refused != (res.StatusCode == 403) || !refused && res.StatusCode >= 300 {
				t.Errorf("%s as %s: %d", request, role, res.StatusCode)
			}
			if refused {
				if said := detail(t, res); !strings.Contains(said, "The role reader may not "+method+" /") || !strings.Contains(said, "operator") {
					t.Errorf("%s: %s", request, said)
				}
			}
		}
	}
}
