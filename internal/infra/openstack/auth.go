package openstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// cloudKey is what a client is good for: a changed VIM has another version.
type cloudKey struct {
	vim     string
	version int64
	region  string
}

// cloud is an authenticated client of one VIM in one region.
type cloud struct {
	driver   *Driver
	name     string // of the VIM, for messages
	provider *gophercloud.ProviderClient
	options  gophercloud.EndpointOpts

	mu       sync.Mutex
	services map[string]*gophercloud.ServiceClient
}

// connect returns the client for the operation's VIM, logging in when there is none yet. Errors: terminal when Keystone
// refuses, retryable when it cannot be reached.
func (d *Driver) connect(ctx context.Context, t *lcm.VimTarget) (*cloud, error) {
	region := t.Region
	if region == "" && len(t.Regions) > 0 {
		region = t.Regions[0]
	}
	key := cloudKey{t.ID, t.Version, region}
	if c := d.cached(key); c != nil {
		return c, nil
	}
	// One login serves all who wait for it, whoever of them goes away.
	result := d.login.DoChan(fmt.Sprintf("%s %d %s", t.ID, t.Version, region), func() (any, error) {
		if c := d.cached(key); c != nil {
			return c, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.CallTimeout)
		defer cancel()
		c, err := d.authenticate(ctx, t, region)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for k, old := range d.clouds { // older versions of the VIM are of no use any more
			if k.vim == key.vim && k.version < key.version {
				old.provider.HTTPClient.CloseIdleConnections()
				delete(d.clouds, k)
			}
		}
		d.clouds[key] = c
		return c, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*cloud), nil
	}
}

func (d *Driver) cached(key cloudKey) *cloud {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clouds[key]
}

// authenticate logs in with the VIM's password credentials.
func (d *Driver) authenticate(ctx context.Context, t *lcm.VimTarget, region string) (*cloud, error) {
	c := &cloud{
		driver: d, name: cmp.Or(t.Name, t.ID), services: map[string]*gophercloud.ServiceClient{},
		options: gophercloud.EndpointOpts{Region: region, Availability: gophercloud.Availability(d.cfg.Interface)},
	}
	httpClient, err := d.httpClient(t)
	if err != nil {
		return nil, err
	}
	if c.provider, err = openstack.NewClient(identityURL(t.AuthURL)); err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s: auth_url: %w", c.name, err)
	}
	c.provider.HTTPClient = httpClient
	c.provider.UserAgent.Prepend("vnfm")
	options := credentials(t)
	options.IdentityEndpoint = c.provider.IdentityEndpoint
	if err := openstack.AuthenticateV3(ctx, c.provider, options, gophercloud.EndpointOpts{}); err != nil {
		if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
			return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s: Keystone refuses the credentials of user %s: %s", c.name, cmp.Or(options.Username, options.UserID), reason(err))
		}
		return nil, c.wrap("log in", err)
	}
	return c, nil
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

// credentials reads a VIM's auth_cred and vim_project.
func credentials(t *lcm.VimTarget) *gophercloud.AuthOptions {
	o := &gophercloud.AuthOptions{
		Username: text(t.Auth, "username"), UserID: text(t.Auth, "user_id"), Password: text(t.Auth, "password"),
		AllowReauth: true,
	}
	if o.UserID != "" {
		o.Username = "" // Keystone takes one of them
	} else if o.DomainID = text(t.Auth, "user_domain_id"); o.DomainID == "" {
		o.DomainName = cmp.Or(text(t.Auth, "user_domain_name"), "Default")
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.services[kind]; s != nil {
		return s, nil
	}
	s, err := open(c.provider, c.options)
	if err != nil {
		if isMissingEndpoint(err) {
			return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s has no %s endpoint of the %s service in region %q", c.name, c.options.Availability, kind, c.options.Region)
		}
		return nil, c.wrap("find the "+kind+" service", err)
	}
	c.services[kind] = s
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
		return statusOf(err), c.wrap(doing, err)
	}
	if answer == nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	return resp.StatusCode, nil
}
