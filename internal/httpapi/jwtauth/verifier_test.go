package jwtauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// issuer is an issuer of tokens with its metadata and its keys.
type issuer struct {
	*httptest.Server
	mu    sync.Mutex
	keys  jose.JSONWebKeySet
	asked int // for keys
	down  bool
	junk  json.RawMessage // one more key
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.asked++; i.down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		all := []any{i.junk}
		for _, k := range i.keys.Keys {
			all = append(all, k)
		}
		if i.junk == nil {
			all = all[1:]
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": all})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) publish(keys ...jose.JSONWebKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys.Keys = keys
}

func (i *issuer) fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	opts := (&jose.SignerOptions{}).WithType("at+jwt")
	if id != "" {
		opts = opts.WithHeader("kid", id)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func public(id string, key crypto.PublicKey) jose.JSONWebKey {
	return jose.JSONWebKey{KeyID: id, Key: key, Use: "sig"}
}

func TestVerify(t *testing.T) {
	i := newIssuer(t)
	now := time.Unix(1_800_000_000, 0)
	first, other := rsaKey(t, 2048), rsaKey(t, 2048)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.junk = json.RawMessage(`{"kty":"future","kid":"x"}`)
	forEncryption := public("enc", other.Public())
	forEncryption.Use = "enc"
	i.publish(public("r", first.Public()), public("e", ec.Public()), public("d", edPublic), forEncryption)
	v, err := New(Config{Issuer: i.URL, Audience: "vnfm", Skew: 30 * time.Second, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	with := func(change map[string]any) map[string]any {
		claims := map[string]any{"iss": i.URL, "aud": []string{"other", "vnfm"}, "sub": "u", "iat": now.Unix(), "exp": now.Unix() + 60,
			"scope": "a b", "scp": []string{"c"}, "project": map[string]any{"id": "p"}, "https://x.y/z": "q"}
		for name, value := range change {
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
		}
		return claims
	}
	good := sign(t, jose.RS256, first, "r", with(nil))
	parts := strings.Split(good, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	forged := parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+i.URL+`","aud":"vnfm","sub":"root","exp":9999999999}`)) + "." + parts[2]
	modulus := first.N.Bytes() // the public key as a shared one, the classic confusion
	shared := sign(t, jose.HS256, modulus, "r", with(nil))
	for name, c := range map[string]struct {
		token string
		ok    bool
	}{
		"RSA":                 {good, true},
		"PSS":                 {sign(t, jose.PS256, first, "r", with(nil)), true},
		"EC":                  {sign(t, jose.ES256, ec, "e", with(nil)), true},
		"Ed25519":             {sign(t, jose.EdDSA, ed, "d", with(nil)), true},
		"no key id":           {sign(t, jose.RS256, first, "", with(nil)), true},
		"one audience":        {sign(t, jose.RS256, first, "r", with(map[string]any{"aud": "vnfm"})), true},
		"just expired":        {sign(t, jose.RS256, first, "r", with(map[string]any{"exp": now.Unix() - 29})), true},
		"expired":             {sign(t, jose.RS256, first, "r", with(map[string]any{"exp": now.Unix() - 31})), false},
		"never expires":       {sign(t, jose.RS256, first, "r", with(map[string]any{"exp": nil})), false},
		"not yet":             {sign(t, jose.RS256, first, "r", with(map[string]any{"nbf": now.Unix() + 31})), false},
		"issued in future":    {sign(t, jose.RS256, first, "r", with(map[string]any{"iat": now.Unix() + 31})), false},
		"another issuer":      {sign(t, jose.RS256, first, "r", with(map[string]any{"iss": "http://else"})), false},
		"no issuer":           {sign(t, jose.RS256, first, "r", with(map[string]any{"iss": nil})), false},
		"another audience":    {sign(t, jose.RS256, first, "r", with(map[string]any{"aud": "else"})), false},
		"no audience":         {sign(t, jose.RS256, first, "r", with(map[string]any{"aud": nil})), false},
		"another key":         {sign(t, jose.RS256, other, "r", with(nil)), false},
		"a key of encryption": {sign(t, jose.RS256, other, "enc", with(nil)), false},
		"an unknown key":      {sign(t, jose.RS256, other, "n", with(nil)), false},
		"another kind of key": {sign(t, jose.RS256, first, "e", with(nil)), false},
		"a shared key":        {shared, false},
		"not signed":          {unsigned, false},
		"changed":             {forged, false},
		"no token":            {"x", false},
		"empty":               {"", false},
		"too long":            {strings.Repeat("x", maxToken+1), false},
	} {
		got, err := v.Verify(t.Context(), c.token)
		if (err == nil) != c.ok || err != nil && !lcm.Is(err, lcm.KindUnauthorized) {
			t.Errorf("%s: %v", name, err)
		}
		if c.ok && (got.Subject != "u" || cmp.Diff([]string{"a", "b", "c"}, got.Scopes) != "") {
			t.Errorf("%s: %+v", name, got)
		}
		if c.ok && (got.Text("project.id") != "p" || got.Text("https://x.y/z") != "q" || got.Text("project") != "" || got.Text("a.b") != "") {
			t.Errorf("%s: claims %v", name, got.All)
		}
	}
}

// An issuer changes its keys, goes away and comes back; it is asked seldom, however many tokens come.
func TestKeysRotate(t *testing.T) {
	i := newIssuer(t)
	now := time.Unix(1_800_000_000, 0)
	v, err := New(Config{Issuer: i.URL, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	first, second := rsaKey(t, 2048), rsaKey(t, 2048)
	claims := func() map[string]any { return map[string]any{"iss": i.URL, "sub": "u", "exp": now.Unix() + 60} }
	check := func(what string, key *rsa.PrivateKey, id string, kind lcm.Kind, fetches int) {
		t.Helper()
		_, err := v.Verify(context.Background(), sign(t, jose.RS256, key, id, claims()))
		if (kind == "") != (err == nil) || err != nil && lcm.KindOf(err) != kind || i.fetches() != fetches {
			t.Errorf("%s: %v after %d fetches, want %q after %d", what, err, i.fetches(), kind, fetches)
		}
	}
	i.down = true
	check("the issuer is away from the first", first, "1", lcm.KindUnavailable, 1)
	check("it is not asked again at once", first, "1", lcm.KindUnavailable, 1)
	i.down = false
	i.publish(public("1", first.Public()))
	now = now.Add(keysGap)
	check("it is there", first, "1", "", 2)
	check("its keys are kept", first, "1", "", 2)
	i.publish(public("1", first.Public()), public("2", second.Public()))
	check("a new key, too soon", second, "2", lcm.KindUnauthorized, 2)
	now = now.Add(keysGap)
	check("a new key", second, "2", "", 3)
	for n := range 20 {
		check("keys that there are none of", second, "no"+string(rune('a'+n)), lcm.KindUnauthorized, 3)
	}
	i.publish(public("2", second.Public()))
	now = now.Add(keysFor)
	check("a key that has been withdrawn", first, "1", lcm.KindUnauthorized, 4)
	i.down = true
	now = now.Add(keysFor)
	check("the issuer is away: the keys are as good as before", second, "2", "", 5)
	check("and it is not asked all the time", second, "2", "", 5)
}

func TestIssuersAnswers(t *testing.T) {
	small := rsaKey(t, 1024)
	for name, c := range map[string]struct {
		metadata, keys string
		kind           lcm.Kind
	}{
		"metadata of another":  {`{"issuer":"http://else","jwks_uri":"KEYS"}`, `{"keys":[]}`, lcm.KindUnavailable},
		"no metadata":          {`<html>`, `{"keys":[]}`, lcm.KindUnavailable},
		"no place of the keys": {`{"issuer":"SELF"}`, `{"keys":[]}`, lcm.KindUnavailable},
		"garbage for keys":     {`{"issuer":"SELF","jwks_uri":"KEYS"}`, `{"keys":7}`, lcm.KindUnavailable},
		"too many keys":        {`{"issuer":"SELF","jwks_uri":"KEYS"}`, `{"keys":["` + strings.Repeat("x", maxKeys) + `"]}`, lcm.KindUnavailable},
		"no keys":              {`{"issuer":"SELF","jwks_uri":"KEYS"}`, `{"keys":[]}`, lcm.KindUnauthorized},
		"a weak key":           {`{"issuer":"SELF","jwks_uri":"KEYS"}`, weak(t, small), lcm.KindUnauthorized},
	} {
		var srv *httptest.Server
		srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := c.keys
			if r.URL.Path != "/keys" {
				answer = strings.NewReplacer("SELF", srv.URL, "KEYS", srv.URL+"/keys").Replace(c.metadata)
			}
			_, _ = w.Write([]byte(answer))
		}))
		v, err := New(Config{Issuer: srv.URL})
		if err != nil {
			t.Fatal(err)
		}
		token := sign(t, jose.RS256, small, "w", map[string]any{"iss": srv.URL, "exp": time.Now().Add(time.Hour).Unix()})
		if _, err := v.Verify(t.Context(), token); lcm.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
		srv.Close()
	}
	if _, err := New(Config{Algorithms: []string{"RS256", "HS256"}}); err == nil {
		t.Error("an algorithm of a shared key is taken")
	}
}

func weak(t *testing.T, key *rsa.PrivateKey) string {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public("w", key.Public())}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
