package openstack

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// cloud is a client of one VIM in one region.
type cloud struct {
	driver  *Driver
	account *account
	name    string // of the VIM, for messages
	options gophercloud.EndpointOpts

	mu       sync.Mutex
	services map[string]*gophercloud.ServiceClient
	login    int // that the services are of
}

// connect returns the client for the operation's VIM and region, logging in when there is no token yet. Errors: terminal
// when Keystone refuses, retryable when it cannot be reached.
func (d *Driver) connect(ctx context.Context, t *lcm.VimTarget) (*cloud, error) {
	a, err := d.accountOf(t)
	if err != nil {
		return nil, err
	}
	if _, err := a.token(ctx); err != nil {
		return nil, err
	}
	return a.cloud(regionOf(t)), nil
}

// regionOf is the region that a target means: its own, else the VIM's first.
func regionOf(t *lcm.VimTarget) string {
	if t.Region == "" && len(t.Regions) > 0 {
		return t.Regions[0]
	}
	return t.Region
}

// accountOf returns the account of a VIM as it is now, the same for all. Terminal: its registration is of no use.
func (d *Driver) accountOf(t *lcm.VimTarget) (*account, error) {
	key := accountKey{t.ID, t.Version}
	d.mu.Lock()
	a := d.accounts[key]
	d.mu.Unlock()
	if a != nil {
		return a, nil
	}
	made, err := d.newAccount(t)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	if a = d.accounts[key]; a == nil {
		a = made
		d.accounts[key] = a
	}
	var old []*account
	for k, o := range d.accounts { // older versions of the VIM are of no use any more
		if k.vim == key.vim && k.version < key.version {
			old = append(old, o)
			delete(d.accounts, k)
		}
	}
	d.mu.Unlock()
	for _, o := range old {
		o.close()
	}
	return a, nil
}

// identityURL is the v3 endpoint that an auth_url means.
func identityURL(authURL string) string {
	u := strings.TrimRight(authURL, "/")
	last := u[strings.LastIndexByte(u, '/')+1:]
	if len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		u = strings.TrimSuffix(u, "/"+last)
	}
	return u + "/v3/"
}

// credentials reads a VIM's auth_cred and vim_project. An application credential has its project with it.
func credentials(t *lcm.VimTarget) *gophercloud.AuthOptions {
	o := &gophercloud.AuthOptions{
		Username: text(t.Auth, "username"), UserID: text(t.Auth, "user_id"), Password: text(t.Auth, "password"),
	}
	if secret := text(t.Auth, "application_credential_secret"); secret != "" {
		o.ApplicationCredentialSecret, o.Password = secret, ""
		if o.ApplicationCredentialID = text(t.Auth, "application_credential_id"); o.ApplicationCredentialID != "" {
			o.Username, o.UserID = "", "" // the id says whose it is
			return o
		}
		o.ApplicationCredentialName = text(t.Auth, "application_credential_name")
	}
	if o.UserID != "" {
		o.Username = "" // Keystone takes one of them
	} else if o.DomainID = text(t.Auth, "user_domain_id"); o.DomainID == "" {
		o.DomainName = cmp.Or(text(t.Auth, "user_domain_name"), "Default")
	}
	if o.ApplicationCredentialSecret != "" {
		return o
	}
	scope := &gophercloud.AuthScope{ProjectID: cmp.Or(text(t.Project, "id"), text(t.Auth, "project_id"))}
	if scope.ProjectID == "" {
		scope.ProjectName = cmp.Or(text(t.Project, "name"), text(t.Auth, "project_name"))
		if scope.DomainID = cmp.Or(text(t.Project, "project_domain_id"), text(t.Auth, "project_domain_id")); scope.DomainID == "" {
			scope.DomainName = cmp.Or(text(t.Project, "project_domain_name"), text(t.Auth, "project_domain_name"), "Default")
		}
	}
	o.Scope = scope
	return o
}

// text returns a string of a free-form map; "" when it is absent or something else.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// service returns the client of a service of the VIM. Terminal when the catalogue has no endpoint for the region.
func (c *cloud) service(kind string, open func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)) (*gophercloud.ServiceClient, error) {
	catalog, login := c.account.services()
	c.mu.Lock()
	if c.login != login { // another login may bring other endpoints
		c.login, c.services = login, map[string]*gophercloud.ServiceClient{}
	}
	s := c.services[kind]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	provider := &gophercloud.ProviderClient{HTTPClient: clientOf(authorized{c.account, c.account.guard(c.options.Region, kind)})}
	provider.UserAgent.Prepend("vnfm")
	provider.EndpointLocator = func(o gophercloud.EndpointOpts) (string, error) {
		// The endpoint is asked for its versions; nobody waits for that with the lock held.
		ctx, cancel := context.WithTimeout(context.Background(), c.driver.cfg.CallTimeout)
		defer cancel()
		return openstack.V3Endpoint(ctx, provider, catalog, o)
	}
	s, err := open(provider, c.options)
	if err != nil {
		if isMissingEndpoint(err) {
			return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s has no %s endpoint of the %s service in region %q", c.name, c.options.Availability, kind, c.options.Region)
		}
		return nil, c.wrap("find the "+kind+" service", unwrapped(err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.login == login {
		c.services[kind] = s
	}
	return s, nil
}

func isMissingEndpoint(err error) bool {
	var missing *gophercloud.ErrEndpointNotFound
	var value gophercloud.ErrEndpointNotFound
	return errors.As(err, &missing) || errors.As(err, &value)
}

func (c *cloud) heat() (*gophercloud.ServiceClient, error) {
	return c.service("orchestration", openstack.NewOrchestrationV1)
}

func (c *cloud) glance() (*gophercloud.ServiceClient, error) {
	return c.service("image", openstack.NewImageV2)
}

func (c *cloud) nova() (*gophercloud.ServiceClient, error) {
	return c.service("compute", openstack.NewComputeV2)
}

// exchange makes one call to a service. A status that is not in ok is an error, classed.
func (c *cloud) exchange(ctx context.Context, to *gophercloud.ServiceClient, doing, method string, body, answer any, ok []int, path []string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.driver.cfg.CallTimeout)
	defer cancel()
	options := &gophercloud.RequestOpts{OkCodes: ok, JSONBody: body, JSONResponse: answer}
	resp, err := to.Request(ctx, method, to.ServiceURL(path...), options)
	if err != nil {
		return statusOf(err), c.wrap(doing, unwrapped(err))
	}
	if answer == nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	return resp.StatusCode, nil
}

// unwrapped is an error of ours without what the HTTP client has put around it; others stay as they are.
func unwrapped(err error) error {
	var around *url.Error
	var own *lcm.Error
	var uncalled *uncalledError
	switch {
	case !errors.As(err, &around):
		return err
	case errors.As(around.Err, &own):
		return own
	case errors.As(around.Err, &uncalled):
		return uncalled
	default:
		return err
	}
}
