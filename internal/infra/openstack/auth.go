package openstack

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// cloud is a client of one VIM in one region.
type cloud struct {
	driver  *Driver
	account *account
	name    string // of the VIM, for messages
	options gophercloud.EndpointOpts

	mu       sync.Mutex
	services map[string]*found
	edition  int // of the catalogue that the services are of
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

// accountOf returns the account of a VIM as it is now, the same for all. Terminal: its registration is of no use; retryable:
// it has been changed since it was read.
func (d *Driver) accountOf(t *lcm.VimTarget) (*account, error) {
	key := accountKey{t.ID, t.Version}
	d.mu.Lock()
	a, err := d.known(t)
	d.mu.Unlock()
	if a != nil || err != nil {
		return a, err
	}
	made, err := d.newAccount(t)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a, err = d.known(t); a != nil || err != nil {
		return a, err
	}
	made.used = time.Now()
	d.accounts[key] = made
	return made, nil
}

// known is the account of a VIM if there is one, after what is not used any more has been let go. A version that has not been
// seen before may be that of another cloud: what is known of the older ones' services goes. d.mu is held.
func (d *Driver) known(t *lcm.VimTarget) (*account, error) {
	newest, seen := d.newest[t.ID]
	switch {
	case seen && t.Version < newest:
		return nil, lcm.Errorf(lcm.KindRetryable, "VIM %s: its registration has just been changed", nameOf(t))
	case !seen || t.Version > newest:
		d.newest[t.ID] = t.Version
		d.retire(t.ID)
		d.drop(func(a *account) bool { return a.key.vim == t.ID })
	}
	now := time.Now()
	a := d.accounts[accountKey{t.ID, t.Version}]
	if a != nil {
		a.used = now
	}
	d.sweep(now)
	return a, nil
}

// drop lets go of accounts; d.mu is held, and nobody waits for those whose login is under way.
func (d *Driver) drop(which func(a *account) bool) {
	for key, a := range d.accounts {
		if which(a) {
			delete(d.accounts, key)
			d.closing.Go(a.close)
		}
	}
}

// unused is how long a VIM has not been called when nothing of it is kept any more.
const unused = time.Hour

// sweep forgets the VIMs that have not been used for long, looking once in a while; d.mu is held.
func (d *Driver) sweep(now time.Time) {
	if now.Sub(d.swept) < unused/10 {
		return
	}
	d.swept = now
	d.drop(func(a *account) bool { return now.Sub(a.used) >= unused })
	kept := map[string]bool{}
	for key := range d.accounts {
		kept[key.vim] = true
	}
	for vim := range d.newest {
		if kept[vim] {
			continue
		}
		delete(d.newest, vim)
		delete(d.throats, vim)
		d.retire(vim)
		if f, ok := d.cfg.Observer.(Forgetter); ok {
			f.Forget(vim)
		}
	}
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

// found is a client of a service, or why there is none, once done is closed.
type found struct {
	done   chan struct{}
	client *gophercloud.ServiceClient
	err    error
	left   bool // who looked for it went away
}

// opening makes a service's client of gophercloud.
type opening func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)

// service returns the client of a service of the VIM, which one looks for and the others wait for. Terminal when the
// catalogue has no endpoint for the region.
func (c *cloud) service(ctx context.Context, kind string, open opening) (*gophercloud.ServiceClient, error) {
	for {
		catalog, edition := c.account.services()
		c.mu.Lock()
		if c.edition != edition { // another catalogue may have other endpoints
			c.edition, c.services = edition, map[string]*found{}
		}
		f, ok := c.services[kind]
		if !ok {
			f = &found{done: make(chan struct{})}
			c.services[kind] = f
		}
		c.mu.Unlock()
		if !ok {
			f.client, f.err = c.discover(ctx, kind, open, catalog)
			f.left = ctx.Err() != nil
			if f.err != nil {
				c.mu.Lock()
				if c.services[kind] == f {
					delete(c.services, kind)
				}
				c.mu.Unlock()
			}
			close(f.done)
			return f.client, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if f.err == nil || !f.left {
			return f.client, f.err
		}
	}
}

// discover makes the client of a service: its endpoint is asked for its versions.
func (c *cloud) discover(ctx context.Context, kind string, open opening, catalog *tokens.ServiceCatalog) (*gophercloud.ServiceClient, error) {
	provider := &gophercloud.ProviderClient{HTTPClient: clientOf(authorized{c.account, c.account.guard(c.options.Region, kind)})}
	provider.UserAgent.Prepend("vnfm")
	provider.EndpointLocator = func(o gophercloud.EndpointOpts) (string, error) {
		return openstack.V3Endpoint(ctx, provider, catalog, o)
	}
	s, err := open(provider, c.options)
	switch {
	case err == nil:
		return s, nil
	case isMissingEndpoint(err):
		return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s has no %s endpoint of the %s service in region %q", c.name, c.options.Availability, kind, c.options.Region)
	default:
		return nil, c.wrap("find the "+kind+" service", unwrapped(err))
	}
}

func isMissingEndpoint(err error) bool {
	var missing *gophercloud.ErrEndpointNotFound
	var value gophercloud.ErrEndpointNotFound
	return errors.As(err, &missing) || errors.As(err, &value)
}

func (c *cloud) heat(ctx context.Context) (*gophercloud.ServiceClient, error) {
	return c.service(ctx, "orchestration", openstack.NewOrchestrationV1)
}

func (c *cloud) glance(ctx context.Context) (*gophercloud.ServiceClient, error) {
	return c.service(ctx, "image", openstack.NewImageV2)
}

func (c *cloud) nova(ctx context.Context) (*gophercloud.ServiceClient, error) {
	return c.service(ctx, "compute", openstack.NewComputeV2)
}

// exchange makes one call to a service. A status that is not in ok is an error, classed.
func (c *cloud) exchange(ctx context.Context, to *gophercloud.ServiceClient, doing, method string, body, answer any, ok []int, path []string) (int, error) {
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
