package vim

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/regions"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// OpenStack logs in to Keystone v3 with a user name and password, scoped to the VIM's project, or with an application
// credential (auth_cred's application_credential_secret with application_credential_id, or with
// application_credential_name and the user), which has its project with it. It reads the regions: those that Keystone lists
// or, when the user may not list them, those of the service catalogue.
type OpenStack struct{}

// Probe implements Prober.
func (OpenStack) Probe(ctx context.Context, v lcm.VIM) (ProbeResult, error) {
	opts, err := loginOf(v)
	if err != nil {
		return ProbeResult{}, refused(v, err)
	}
	transport, err := transportFor(v, !no(v.Auth, "cert_verify"))
	if err != nil {
		return ProbeResult{}, refused(v, err)
	}
	defer transport.CloseIdleConnections()
	client, err := openstack.NewClient(v.AuthURL)
	if err != nil {
		return ProbeResult{}, refused(v, err)
	}
	client.HTTPClient = http.Client{Transport: transport, CheckRedirect: noRedirects}
	identity := &gophercloud.ServiceClient{ProviderClient: client, Endpoint: v.AuthURL + "/", Type: "identity"}
	created := tokens.Create(ctx, identity, opts)
	if created.Err != nil {
		return ProbeResult{}, keystoneError(v, created.Err)
	}
	id, err := created.ExtractTokenID()
	if err != nil {
		return ProbeResult{}, unreachable(v, err)
	}
	client.SetToken(id)
	var found ProbeResult
	if project, err := created.ExtractProject(); err == nil && project != nil {
		found.ProjectID = project.ID
	}
	if found.Regions, err = listRegions(ctx, identity); err != nil || len(found.Regions) == 0 {
		if ctx.Err() != nil {
			return ProbeResult{}, unreachable(v, ctx.Err())
		}
		catalog, err := created.ExtractServiceCatalog()
		if err != nil {
			return ProbeResult{}, unreachable(v, err)
		}
		found.Regions = catalogRegions(catalog)
	}
	return found, nil
}

// loginOf reads how to log in.
func loginOf(v lcm.VIM) (*tokens.AuthOptions, error) {
	opts := &tokens.AuthOptions{IdentityEndpoint: v.AuthURL}
	secret := text(v.Auth, "application_credential_secret")
	if secret != "" {
		opts.ApplicationCredentialSecret = secret
		if opts.ApplicationCredentialID = text(v.Auth, "application_credential_id"); opts.ApplicationCredentialID != "" {
			return opts, nil
		}
		if opts.ApplicationCredentialName = text(v.Auth, "application_credential_name"); opts.ApplicationCredentialName == "" {
			return nil, errors.New("auth_cred needs application_credential_id or application_credential_name with application_credential_secret")
		}
	} else if opts.Password = text(v.Auth, "password"); opts.Password == "" {
		return nil, errors.New("auth_cred needs username and password")
	}
	if opts.UserID = text(v.Auth, "user_id"); opts.UserID == "" {
		if opts.Username = text(v.Auth, "username"); opts.Username == "" {
			return nil, errors.New("auth_cred needs username and password")
		}
		if opts.DomainID = text(v.Auth, "user_domain_id"); opts.DomainID == "" {
			opts.DomainName = cmp.Or(text(v.Auth, "user_domain_name"), "Default")
		}
	}
	if secret == "" {
		opts.Scope = projectScope(v)
	}
	return opts, nil
}

func noRedirects(*http.Request, []*http.Request) error {
	return errors.New("the VIM answers with a redirect; register the address it redirects to")
}

func projectScope(v lcm.VIM) tokens.Scope {
	if id := text(v.Project, "id"); id != "" {
		return tokens.Scope{ProjectID: id}
	}
	scope := tokens.Scope{
		ProjectName: text(v.Project, "name"),
		DomainName:  text(v.Project, "project_domain_name"), DomainID: text(v.Project, "project_domain_id"),
	}
	if scope.DomainID != "" {
		scope.DomainName = ""
	} else if scope.DomainName == "" {
		scope.DomainName = "Default"
	}
	return scope
}

// keystoneError classes what Keystone answered to a login.
func keystoneError(v lcm.VIM, err error) error {
	for _, code := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden} {
		if gophercloud.ResponseCodeIs(err, code) {
			return refused(v, errors.New("Keystone answered "+http.StatusText(code)))
		}
	}
	var unexpected gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &unexpected) {
		return unreachable(v, errors.New("Keystone answered "+http.StatusText(unexpected.Actual)))
	}
	return unreachable(v, err)
}

func listRegions(ctx context.Context, identity *gophercloud.ServiceClient) ([]string, error) {
	pages, err := regions.List(identity, nil).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	list, err := regions.ExtractRegions(pages)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids, nil
}

func catalogRegions(catalog *tokens.ServiceCatalog) []string {
	var ids []string
	for _, entry := range catalog.Entries {
		for _, e := range entry.Endpoints {
			region := e.RegionID
			if region == "" {
				region = e.Region
			}
			if region != "" && !slices.Contains(ids, region) {
				ids = append(ids, region)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// transportFor makes the transport to one VIM: the system's authorities or those of ssl_ca_cert; not verifying is what
// the operator has chosen for this VIM.
func transportFor(v lcm.VIM, verify bool) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if pem := text(v.Auth, "ssl_ca_cert"); pem != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(normalPEM(pem))) {
			return nil, errors.New("ssl_ca_cert holds no PEM certificate")
		}
	}
	if !verify {
		config.InsecureSkipVerify = true //nolint:gosec // chosen by the operator for this VIM, in its registration
	}
	cert, key := text(v.Auth, "client_cert"), text(v.Auth, "client_key")
	if cert != "" || key != "" {
		pair, err := tls.X509KeyPair([]byte(normalPEM(cert)), []byte(normalPEM(key)))
		if err != nil {
			return nil, errors.New("client_cert and client_key are not a PEM certificate and its key")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 256 << 10,
	}, nil
}
