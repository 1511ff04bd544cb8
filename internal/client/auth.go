package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Auth says where the API is and who we are, as the OS_* environment and the --os-* options do.
type Auth struct {
	// Type is none, admin_token, http_basic or password (also v3password). Empty: password when AuthURL is set, and
	// none otherwise.
	Type string
	// Endpoint is the API's base URL; DefaultEndpoint when empty with none. With password it overrides the catalog.
	Endpoint string
	// Token is sent by admin_token.
	Token string
	// AuthURL is Keystone's, with or without /v3.
	AuthURL string
	// Username and Password go to http_basic and password.
	Username, Password string
	// UserID may stand in place of Username and its domain.
	UserID string
	// UserDomainName or UserDomainID is the domain of the user.
	UserDomainName, UserDomainID string
	// ProjectName with its domain, or ProjectID, is the project to work in.
	ProjectName, ProjectID             string
	ProjectDomainName, ProjectDomainID string
	// DefaultDomain is used where no domain is given.
	DefaultDomain string
	// Region and Interface (public, internal, admin) pick the endpoint from the catalog.
	Region, Interface string
	// CACert, Cert and Key are PEM files. Insecure skips the check of the server's certificate, by the user's own word.
	CACert, Cert, Key string
	Insecure          bool
	// APIVersion is the major version of the vnflcm API: 1 or 2; 1 when empty.
	APIVersion string
}

// DefaultEndpoint is where `vnfm serve` listens by default.
const DefaultEndpoint = "http://127.0.0.1:9890"

// serviceType is what a VNF manager is called in Keystone's catalog.
const serviceType = "nfv-orchestration"

func (a Auth) kind() string {
	switch {
	case a.Type == "v3password":
		return "password"
	case a.Type != "":
		return a.Type
	case a.AuthURL != "":
		return "password"
	}
	return "none"
}

func (a Auth) check() error {
	missing := func(what string) error { return fmt.Errorf("auth type %s needs %s", a.kind(), what) }
	switch a.kind() {
	case "none":
	case "admin_token":
		if a.Endpoint == "" || a.Token == "" {
			return missing("--os-endpoint and --os-token")
		}
	case "http_basic":
		if a.Endpoint == "" || a.Username == "" {
			return missing("--os-endpoint and --os-username")
		}
	case "password":
		if a.AuthURL == "" || a.Username == "" && a.UserID == "" {
			return missing("--os-auth-url and --os-username")
		}
	default:
		return fmt.Errorf("auth type %q is none of none, password, http_basic, admin_token", a.Type)
	}
	if a.APIVersion != "" && a.APIVersion != "1" && a.APIVersion != "2" {
		return fmt.Errorf("API version %q is neither 1 nor 2", a.APIVersion)
	}
	return nil
}

// httpClient makes the transport with the TLS files.
func (a Auth) httpClient() (*http.Client, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CACert != "" {
		pem, err := os.ReadFile(a.CACert)
		if err != nil {
			return nil, fmt.Errorf("read the CA certificate: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no PEM certificate", a.CACert)
		}
	}
	if a.Cert != "" {
		key := a.Key
		if key == "" {
			key = a.Cert // both in one file
		}
		pair, err := tls.LoadX509KeyPair(a.Cert, key)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	conf.InsecureSkipVerify = a.Insecure // --insecure: the user's explicit choice
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default HTTP transport is not the standard one")
	}
	transport = transport.Clone()
	transport.TLSClientConfig = conf
	transport.ResponseHeaderTimeout = 5 * time.Minute
	return &http.Client{Transport: transport}, nil
}

// login gets a token from Keystone (API v3) and picks the endpoint from its catalog.
func (c *Client) login(ctx context.Context) error {
	base, err := c.keystoneV3(ctx)
	if err != nil {
		return err
	}
	raw := pyJSON(c.auth.tokenRequest(), 0)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/auth/tokens", strings.NewReader(raw))
	if err != nil {
		return fmt.Errorf("ask Keystone for a token: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	status, header, body, err := c.roundTrip(req)
	if err != nil {
		return err
	}
	if status != http.StatusCreated || header.Get("X-Subject-Token") == "" {
		return keystoneError(status, body)
	}
	c.token = header.Get("X-Subject-Token")
	if c.auth.Endpoint != "" {
		c.endpoint = strings.TrimRight(c.auth.Endpoint, "/")
		return nil
	}
	v, err := ParseJSON(body)
	if err != nil {
		return fmt.Errorf("answer of Keystone: %w", err)
	}
	c.endpoint, err = c.auth.fromCatalog(v)
	return err
}

func keystoneError(status int, body []byte) error {
	if v, err := ParseJSON(body); err == nil {
		if o, ok := v.(*Object); ok {
			if e, ok := o.Values["error"].(*Object); ok && e.Text("message") != "" {
				return &Error{Status: status, Message: fmt.Sprintf("%s (HTTP %d)", e.Text("message"), status)}
			}
		}
	}
	return &Error{Status: status, Message: fmt.Sprintf("Keystone did not give a token (HTTP %d)", status)}
}

// keystoneV3 finds the v3 API below the auth URL by version discovery. The host stays the one the user named.
func (c *Client) keystoneV3(ctx context.Context) (string, error) {
	base := strings.TrimRight(c.auth.AuthURL, "/")
	if strings.HasSuffix(base, "/v3") {
		return base, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("the auth URL %q is no URL", c.auth.AuthURL)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base, nil)
	if err != nil {
		return "", fmt.Errorf("ask Keystone for its versions: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	status, _, body, err := c.roundTrip(req)
	if err != nil {
		return "", err
	}
	if status == http.StatusOK || status == http.StatusMultipleChoices {
		if v, err := ParseJSON(body); err == nil {
			if path := v3Path(v); path != "" {
				u.Path = strings.TrimRight(path, "/")
				return u.String(), nil
			}
		}
	}
	return base + "/v3", nil
}

// v3Path finds the path of the v3 link in a discovery document.
func v3Path(v any) string {
	o, _ := v.(*Object)
	if o == nil {
		return ""
	}
	versions, _ := o.Values["versions"].(*Object)
	if versions == nil {
		return ""
	}
	list, _ := versions.Values["values"].([]any)
	for _, e := range list {
		ver, _ := e.(*Object)
		if ver == nil || !strings.HasPrefix(ver.Text("id"), "v3") {
			continue
		}
		links, _ := ver.Values["links"].([]any)
		for _, l := range links {
			if link, _ := l.(*Object); link != nil && link.Text("rel") == "self" {
				if u, err := url.Parse(link.Text("href")); err == nil {
					return u.Path
				}
			}
		}
	}
	return ""
}

func (a Auth) tokenRequest() *Object {
	domain := func(name, id string) *Object {
		switch {
		case id != "":
			return NewObject().Set("id", id)
		case name != "":
			return NewObject().Set("name", name)
		case a.DefaultDomain != "":
			return NewObject().Set("id", a.DefaultDomain)
		}
		return NewObject().Set("id", "default")
	}
	user := NewObject()
	if a.UserID != "" {
		user.Set("id", a.UserID)
	} else {
		user.Set("name", a.Username).Set("domain", domain(a.UserDomainName, a.UserDomainID))
	}
	user.Set("password", a.Password)
	identity := NewObject().Set("methods", []any{"password"}).Set("password", NewObject().Set("user", user))
	auth := NewObject().Set("identity", identity)
	switch {
	case a.ProjectID != "":
		auth.Set("scope", NewObject().Set("project", NewObject().Set("id", a.ProjectID)))
	case a.ProjectName != "":
		auth.Set("scope", NewObject().Set("project",
			NewObject().Set("name", a.ProjectName).Set("domain", domain(a.ProjectDomainName, a.ProjectDomainID))))
	}
	return NewObject().Set("auth", auth)
}

// fromCatalog picks the endpoint from the catalog in a token.
func (a Auth) fromCatalog(v any) (string, error) {
	iface := a.Interface
	if iface == "" {
		iface = "public"
	}
	iface = strings.TrimSuffix(iface, "URL")
	o, _ := v.(*Object)
	if o != nil {
		o, _ = o.Values["token"].(*Object)
	}
	if o != nil {
		catalog, _ := o.Values["catalog"].([]any)
		for _, s := range catalog {
			service, _ := s.(*Object)
			if service == nil || service.Text("type") != serviceType {
				continue
			}
			endpoints, _ := service.Values["endpoints"].([]any)
			for _, e := range endpoints {
				ep, _ := e.(*Object)
				if ep == nil || ep.Text("interface") != iface {
					continue
				}
				if a.Region != "" && ep.Text("region") != a.Region && ep.Text("region_id") != a.Region {
					continue
				}
				return strings.TrimRight(ep.Text("url"), "/"), nil
			}
		}
	}
	where := ""
	if a.Region != "" {
		where = " in " + a.Region + " region"
	}
	return "", fmt.Errorf("%s endpoint for %s service%s not found", iface, serviceType, where)
}

// maxAnswer bounds what is read of an answer into memory.
const maxAnswer = 256 << 20

// roundTrip sends a request and reads the whole answer.
func (c *Client) roundTrip(req *http.Request) (int, http.Header, []byte, error) {
	resp, err := c.send(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var buf bytes.Buffer
	if _, err := io.Copy(&buf, io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return 0, nil, nil, fmt.Errorf("read the answer of %s: %w", req.URL.Redacted(), err)
	}
	return resp.StatusCode, resp.Header, buf.Bytes(), nil
}

// ConnectError is a server that could not be reached or broke the connection.
type ConnectError struct {
	URL string
	Err error
}

// Error implements error.
func (e *ConnectError) Error() string {
	return fmt.Sprintf("Unable to establish connection to %s: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

func (c *Client) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err == nil {
		return resp, nil
	}
	if ctxErr := req.Context().Err(); ctxErr != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.URL.Redacted(), context.Cause(req.Context()))
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return nil, &ConnectError{URL: req.URL.Redacted(), Err: err}
}
