package client

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kubeconfig is a kubeconfig file: clusters, users, and contexts that bring one of each together.
type kubeconfig struct {
	path string
	doc  *Object
	now  func() time.Time
}

// readKubeconfig reads a kubeconfig file, in YAML or JSON.
func readKubeconfig(path string, now func() time.Time) (*kubeconfig, error) {
	doc, err := readYAMLFile(path)
	if err != nil {
		return nil, err
	}
	k := &kubeconfig{path: path, doc: doc, now: now}
	if kind, ok := doc.Get("kind"); ok && scalar(kind) != "Config" {
		return nil, k.bad("it is no kubeconfig: its kind is %s", scalar(kind))
	}
	return k, nil
}

// bad is the error of something in the file.
func (k *kubeconfig) bad(format string, args ...any) error {
	return &InputError{Reason: "kubeconfig " + k.path + ": " + fmt.Sprintf(format, args...)}
}

// imported says what a context of the file says, under the keys of a VIM's configuration file. own are the keys which that
// file has itself: they count, and what they stand for is not looked at here. With unverified the operator wants the API
// server not to be verified.
func (k *kubeconfig) imported(context string, own *Object, unverified bool) (*Object, error) {
	if context == "" {
		if context = scalar(k.doc.Values["current-context"]); context == "" {
			return nil, k.bad("it has no current context; choose one of its contexts by --context (context in a configuration file): %s", k.names("contexts"))
		}
	}
	of, err := k.entry("contexts", "context", context)
	if err != nil {
		return nil, err
	}
	out := NewObject().Set("type", "kubernetes")
	if err := k.cluster(of, own, unverified, out); err != nil {
		return nil, err
	}
	if ns := scalar(of.Values["namespace"]); ns != "" {
		out.Set("project_name", ns)
	}
	if givesLogin(own) {
		return out, nil
	}
	name := scalar(of.Values["user"])
	if name == "" {
		return nil, k.bad("context %q names no user", context)
	}
	user, err := k.entry("users", "user", name)
	if err != nil {
		return nil, err
	}
	return out, k.user(name, user, out)
}

// entry returns an entry of one of the lists of the file by its name.
func (k *kubeconfig) entry(list, inner, name string) (*Object, error) {
	var found *Object
	for _, e := range k.entries(list) {
		if scalar(e.Values["name"]) != name {
			continue
		}
		if found != nil {
			return nil, k.bad("it has two %s of the name %q", list, name)
		}
		if found, _ = e.Values[inner].(*Object); found == nil {
			return nil, k.bad("the %s %q is empty", inner, name)
		}
	}
	if found == nil {
		return nil, k.bad("it has no %s %q; it has: %s", inner, name, k.names(list))
	}
	return found, nil
}

func (k *kubeconfig) entries(list string) (out []*Object) {
	all, _ := k.doc.Values[list].([]any)
	for _, e := range all {
		if o, ok := e.(*Object); ok {
			out = append(out, o)
		}
	}
	return out
}

func (k *kubeconfig) names(list string) string {
	var names []string
	for _, e := range k.entries(list) {
		names = append(names, scalar(e.Values["name"]))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// cluster reads where the API server of a context is, and how it is verified.
func (k *kubeconfig) cluster(of, own *Object, unverified bool, out *Object) error {
	name := scalar(of.Values["cluster"])
	if name == "" {
		return k.bad("the context names no cluster")
	}
	c, err := k.entry("clusters", "cluster", name)
	if err != nil {
		return err
	}
	insecure := false
	for _, key := range c.Keys {
		v := c.Values[key]
		switch {
		case key == "server", key == "certificate-authority", key == "certificate-authority-data", key == "extensions", key == "disable-compression":
		case v == nil, v == "", v == false:
		case key == "insecure-skip-tls-verify":
			insecure = true
		case key == "proxy-url":
			return k.bad("cluster %q is reached through a proxy (proxy-url), which a VIM cannot have of its own: set HTTPS_PROXY (and NO_PROXY for what is reached directly) "+
				"in the environment of the VNF manager, and remove proxy-url", name)
		case key == "tls-server-name":
			return k.bad("the certificate of cluster %q is of another name (tls-server-name), which a VIM cannot say: make its server a name that is in the certificate", name)
		default:
			return k.bad("cluster %q has %s, which a VIM cannot say: remove it if the cluster can do without", name, key)
		}
	}
	server := scalar(c.Values["server"])
	if _, ok := own.Get("auth_url"); !ok {
		u, err := url.Parse(server)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return k.bad("the server of cluster %q is no http or https URL without user name and password", name)
		}
		out.Set("auth_url", strings.TrimRight(server, "/"))
	}
	ca, hasCA := own.Get("ssl_ca_cert")
	switch {
	case unverified, hasCA && (ca == nil || ca == "" || ca == "None"):
		out.Set("cert_verify", "False")
		return nil
	case insecure && !hasCA:
		return k.bad("the certificate of cluster %q is not to be verified (insecure-skip-tls-verify): give the cluster's authority (certificate-authority) instead "+
			"or, if you want everybody on the way to be able to read and change what is sent, say --insecure-skip-tls-verify (cert_verify: 'False' in a configuration file)", name)
	}
	out.Set("cert_verify", "True") // where the VIM said otherwise before
	if hasCA {
		return nil
	}
	pem, err := k.content(c, "certificate-authority")
	if err != nil || pem == nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return k.bad("the certificate-authority of cluster %q holds no PEM certificate", name)
	}
	out.Set("ssl_ca_cert", string(pem))
	return nil
}

// instead is what may be done when a user's way to log in is none that a VIM has.
const instead = "give a VIM an account of its own: a ServiceAccount, with bearer_token (kubectl create token NAME --duration 8760h) in a --config-file beside --kubeconfig"

// user reads how a context logs in.
func (k *kubeconfig) user(name string, u, out *Object) error {
	for _, key := range u.Keys {
		v := u.Values[key]
		switch {
		case slices.Contains([]string{
			"token", "tokenFile", "username", "password", "client-certificate", "client-certificate-data", "client-key", "client-key-data", "extensions",
		}, key):
		case v == nil, v == "":
		case key == "exec":
			return k.bad("user %q logs in by a program (exec), which is on your machine and not where the VNF manager runs; %s", name, instead)
		case key == "auth-provider":
			return k.bad("user %q logs in by a plugin (auth-provider), which a VIM has not; %s. "+
				"With OpenID Connect give oidc_token_url, client_id, client_secret, username and password there", name, instead)
		case key == "as", key == "as-uid", key == "as-groups", key == "as-user-extra":
			return k.bad("user %q acts as somebody else (%s), which a VIM cannot; %s", name, key, instead)
		default:
			return k.bad("user %q has %s, which a VIM cannot say; %s", name, key, instead)
		}
	}
	token, err := k.token(name, u)
	if err != nil {
		return err
	}
	password := scalar(u.Values["password"])
	if who := scalar(u.Values["username"]); who != "" || password != "" {
		switch {
		case who == "" || password == "":
			return k.bad("user %q has a username or a password without the other", name)
		case token != "":
			return k.bad("user %q has a token, and a username and password: remove one of both", name)
		}
		out.Set("username", who).Set("password", password)
	}
	if token != "" {
		if end := tokenEnd(token); !end.IsZero() && k.now().After(end) {
			return k.bad("the token of user %q has ended at %s: get another", name, end.UTC().Format(time.RFC3339))
		}
		out.Set("bearer_token", token)
	}
	if err := k.certificate(name, u, out); err != nil {
		return err
	}
	if !givesLogin(out) {
		return k.bad("user %q has nothing to log in with: no token, no client certificate, no username and password", name)
	}
	return nil
}

// token returns a user's token: that of its tokenFile, as it is now, else that in the kubeconfig.
func (k *kubeconfig) token(name string, u *Object) (string, error) {
	file := scalar(u.Values["tokenFile"])
	if file == "" {
		return scalar(u.Values["token"]), nil
	}
	raw, err := k.read("tokenFile", file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", k.bad("the tokenFile of user %q holds no token", name)
	}
	return token, nil
}

// tokenEnd returns when a token ends that is a JSON Web Token which says so; zero when it does not.
func tokenEnd(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Exp <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}

// certificate reads a user's client certificate and its key.
func (k *kubeconfig) certificate(name string, u, out *Object) error {
	cert, err := k.content(u, "client-certificate")
	if err != nil {
		return err
	}
	key, err := k.content(u, "client-key")
	switch {
	case err != nil:
		return err
	case cert == nil && key == nil:
		return nil
	case cert == nil || key == nil:
		return k.bad("user %q has a client-certificate or a client-key without the other", name)
	case bytes.Contains(key, []byte("ENCRYPTED")):
		return k.bad("the client-key of user %q is encrypted: give it without a passphrase", name)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return k.bad("the client-certificate and client-key of user %q are not a PEM certificate and its key", name)
	}
	if end := pair.Leaf.NotAfter; k.now().After(end) {
		return k.bad("the client-certificate of user %q has ended at %s: have it renewed", name, end.UTC().Format(time.RFC3339))
	}
	out.Set("client_cert", string(cert)).Set("client_key", string(key))
	return nil
}

// content returns what <key>-data holds in base64, else what the file that <key> names holds; nil when neither is there.
func (k *kubeconfig) content(o *Object, key string) ([]byte, error) {
	if data := scalar(o.Values[key+"-data"]); data != "" {
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(data), ""))
		if err != nil {
			return nil, k.bad("%s-data is not base64", key)
		}
		return raw, nil
	}
	if file := scalar(o.Values[key]); file != "" {
		return k.read(key, file)
	}
	return nil, nil
}

// read reads a file that the kubeconfig names, relative to its own folder.
func (k *kubeconfig) read(key, file string) ([]byte, error) {
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(k.path), file)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, k.bad("%s: File %s does not exist or user does not have read privileges to it", key, file)
	}
	return raw, nil
}

// givesLogin tells whether a configuration says how to log in to a cluster.
func givesLogin(conf *Object) bool {
	return slices.ContainsFunc([]string{"bearer_token", "username", "oidc_token_url", "client_cert"}, func(key string) bool {
		v, ok := conf.Get(key)
		return ok && v != nil && v != ""
	})
}

// scalar is a scalar of a YAML file as it is written there, "" for anything else.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}
