package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Issuer is an OpenID Connect issuer that an API server is told to believe by Options{APIServer: issuer.Flags()}. Its
// token endpoint knows the grants password and client_credentials, and answers with the same token as id_token and as
// access_token. The API server calls the one who logs in "oidc:" and the name, which a RoleBinding may allow things.
type Issuer struct {
	URL      string // https
	TokenURL string
	CA       []byte // the authority of its certificate, PEM

	ClientID, ClientSecret string // its one client
	User, Password         string // its one user

	// Life is how long tokens are good for (a time.Duration): an hour, unless it is set.
	Life atomic.Int64
	// Granted counts the tokens that were given out.
	Granted atomic.Int64

	caFile string
	key    *ecdsa.PrivateKey
	signer jose.Signer
}

// NewIssuer starts an issuer, which ends with the test.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{ClientID: "vnfm", ClientSecret: "client-secret", User: "operator", Password: "password"}
	i.Life.Store(int64(time.Hour))
	server := httptest.NewUnstartedServer(i.routes())
	err := i.prepare(filepath.Join(t.TempDir(), "issuer-ca.crt"), server)
	if err != nil {
		t.Fatalf("start an OpenID Connect issuer: %v", err)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	i.URL, i.TokenURL = server.URL, server.URL+"/token"
	return i
}

// Flags are kube-apiserver's, with which it believes the issuer.
func (i *Issuer) Flags() []string {
	return []string{
		"--oidc-issuer-url=" + i.URL, "--oidc-client-id=" + i.ClientID, "--oidc-ca-file=" + i.caFile,
		"--oidc-username-prefix=oidc:", "--oidc-signing-algs=ES256",
	}
}

func (i *Issuer) prepare(caFile string, server *httptest.Server) error {
	ca, err := newAuthority("lab-issuer")
	if err != nil {
		return err
	}
	cert, key, err := ca.issue(pkix.Name{CommonName: "lab-issuer"}, nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if i.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "one"}}, nil)
	if err != nil {
		return err
	}
	i.CA, i.caFile = ca.certPEM, caFile
	return os.WriteFile(caFile, ca.certPEM, 0o600)
}

func (i *Issuer) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{
			"issuer": i.URL, "token_endpoint": i.TokenURL, "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"},
			"response_types_supported":              []string{"id_token"}, "subject_types_supported": []string{"public"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
			{Key: i.key.Public(), KeyID: "one", Algorithm: "ES256", Use: "sig"},
		}})
	})
	mux.HandleFunc("POST /token", i.grant)
	return mux
}

func (i *Issuer) grant(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != i.ClientID || secret != i.ClientSecret {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	var who string
	switch r.PostFormValue("grant_type") {
	case "password":
		if r.PostFormValue("username") != i.User || r.PostFormValue("password") != i.Password {
			answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
			return
		}
		who = i.User
	case "client_credentials":
		who = i.ClientID
	default:
		answer(w, http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"})
		return
	}
	now, life := time.Now(), time.Duration(i.Life.Load())
	token, err := jwt.Signed(i.signer).Claims(jwt.Claims{
		Issuer: i.URL, Subject: who, Audience: jwt.Audience{i.ClientID},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(life)),
	}).Serialize()
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]any{"error": "server_error"})
		return
	}
	i.Granted.Add(1)
	answer(w, http.StatusOK, map[string]any{
		"token_type": "Bearer", "access_token": token, "id_token": token, "expires_in": int64(life / time.Second),
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever asked has gone, then
}
