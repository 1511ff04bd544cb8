package vim

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Kubernetes logs in to an API server with a bearer token, a user name and password (HTTP basic, or OpenID Connect when
// oidc_token_url is there), a client certificate, or several of them, and lists the namespaces. When it may not list
// them, the VIM's own namespace (vim_project.name) stands for them. A cert_verify of "False", or an ssl_ca_cert of "None"
// without a cert_verify of "True", is the operator's choice not to verify the server; else the system's authorities count
// where there is no ssl_ca_cert.
type Kubernetes struct{}

// maxAnswer bounds what is read of one answer.
const maxAnswer = 16 << 20

// Probe implements Prober.
func (Kubernetes) Probe(ctx context.Context, v lcm.VIM) (ProbeResult, error) {
	unverified := no(v.Auth, "cert_verify")
	if given, ok := v.Auth["ssl_ca_cert"]; ok && (given == nil || given == "" || given == "None") {
		unverified = !yes(v.Auth, "cert_verify")
	}
	transport, err := transportFor(v, !unverified)
	if err != nil {
		return ProbeResult{}, refused(v, err)
	}
	defer transport.CloseIdleConnections()
	apart, err := issuerTransport(v)
	if err != nil {
		return ProbeResult{}, refused(v, err)
	}
	defer apart.CloseIdleConnections()
	c := &cluster{
		vim: v, http: http.Client{Transport: transport, CheckRedirect: noRedirects},
		issuer: http.Client{Transport: apart, CheckRedirect: noRedirects},
	}
	if err := c.login(ctx); err != nil {
		return ProbeResult{}, err
	}
	// /version is open to everybody in most clusters, so it would tell nothing about the credentials.
	if err := c.get(ctx, "/api/", nil); err != nil {
		return ProbeResult{}, err
	}
	names, err := c.namespaces(ctx)
	var forbidden *forbiddenError
	switch {
	case errors.As(err, &forbidden):
		names = nil
		if own := text(v.Project, "name"); own != "" {
			names = []string{own}
		}
	case err != nil:
		return ProbeResult{}, err
	}
	return ProbeResult{Regions: names}, nil
}

// issuerTransport makes the transport to an OpenID Connect issuer: it is always verified, by the system's authorities and those of
// ssl_ca_cert, and is not shown what the VIM knows us by.
func issuerTransport(v lcm.VIM) (*http.Transport, error) {
	plain := v
	plain.Auth = map[string]any{}
	if pem := text(v.Auth, "ssl_ca_cert"); pem != "" && pem != "None" {
		plain.Auth["ssl_ca_cert"] = pem
	}
	transport, err := transportFor(plain, true)
	if err != nil || transport.TLSClientConfig.RootCAs == nil {
		return transport, err
	}
	if pool, err := x509.SystemCertPool(); err == nil && pool.AppendCertsFromPEM([]byte(normalPEM(text(plain.Auth, "ssl_ca_cert")))) {
		transport.TLSClientConfig.RootCAs = pool
	}
	return transport, nil
}

// cluster is one API server with a way to log in.
type cluster struct {
	vim    lcm.VIM
	http   http.Client
	issuer http.Client
	token  string
}

// login settles which credentials requests carry.
func (c *cluster) login(ctx context.Context) error {
	c.token = text(c.vim.Auth, "bearer_token")
	issuer := text(c.vim.Auth, "oidc_token_url")
	if issuer == "" {
		return nil
	}
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"openid"}, "client_id": {text(c.vim.Auth, "client_id")}}
	if user := text(c.vim.Auth, "username"); user != "" {
		form.Set("grant_type", "password")
		form.Set("username", user)
		form.Set("password", text(c.vim.Auth, "password"))
	}
	if s := text(c.vim.Auth, "client_secret"); s != "" {
		form.Set("client_secret", s)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, issuer, strings.NewReader(form.Encode()))
	if err != nil {
		return refused(c.vim, errors.New("oidc_token_url is not a URL"))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		IDToken     string `json:"id_token"`
		AccessToken string `json:"access_token"`
	}
	if err := c.do(&c.issuer, req, &answer); err != nil {
		return err
	}
	if c.token = cmp.Or(answer.IDToken, answer.AccessToken); c.token == "" {
		return refused(c.vim, errors.New("the OpenID Connect issuer's answer has neither id_token nor access_token"))
	}
	return nil
}

func (c *cluster) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.vim.AuthURL+path, nil)
	if err != nil {
		return refused(c.vim, err)
	}
	req.Header.Set("Accept", "application/json")
	switch user, password := text(c.vim.Auth, "username"), text(c.vim.Auth, "password"); {
	case c.token != "":
		req.Header.Set("Authorization", "Bearer "+c.token)
	case user != "" && password != "":
		req.SetBasicAuth(user, password)
	}
	return c.do(&c.http, req, into)
}

// forbiddenError is the answer to somebody who is known but may not.
type forbiddenError struct{ error }

func (e *forbiddenError) Unwrap() error { return e.error }

func (c *cluster) do(client *http.Client, req *http.Request, into any) error {
	resp, err := client.Do(req)
	if err != nil {
		return unreachable(c.vim, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answered := fmt.Errorf("%s answered %s", req.URL.Path, resp.Status)
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden:
		return &forbiddenError{refused(c.vim, answered)}
	case http.StatusUnauthorized, http.StatusBadRequest:
		return refused(c.vim, answered)
	default:
		return unreachable(c.vim, answered)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return unreachable(c.vim, err)
	}
	if into == nil {
		into = new(map[string]any)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return unreachable(c.vim, fmt.Errorf("%s answered something that is not JSON", req.URL.Path))
	}
	return nil
}

func (c *cluster) namespaces(ctx context.Context) ([]string, error) {
	names, next := []string{}, ""
	for {
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []struct {
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			} `json:"items"`
		}
		query := url.Values{"limit": {"500"}}
		if next != "" {
			query.Set("continue", next)
		}
		if err := c.get(ctx, "/api/v1/namespaces?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		for _, n := range page.Items {
			names = append(names, n.Metadata.Name)
		}
		if next = page.Metadata.Continue; next == "" {
			return names, nil
		}
	}
}

var pemBlock = regexp.MustCompile(`-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END ([A-Z0-9 ]+)-----`)

// normalPEM puts the line ends back that a PEM text lost on its way through a YAML file: blanks within its base64 become
// line ends, those of its BEGIN and END lines stay.
func normalPEM(s string) string {
	blocks := pemBlock.FindAllStringSubmatch(s, -1)
	if blocks == nil {
		return s
	}
	var b strings.Builder
	for _, m := range blocks {
		if strings.Contains(m[2], ":") { // it has headers, whose line ends cannot be guessed
			return s
		}
		fmt.Fprintf(&b, "-----BEGIN %s-----\n%s\n-----END %s-----\n", m[1], strings.Join(strings.Fields(m[2]), "\n"), m[3])
	}
	return b.String()
}
