package openstack

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"golang.org/x/time/rate"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// accountKey is what a login is good for: a changed VIM has another version.
type accountKey struct {
	vim     string
	version int64
}

// account is a login to a VIM: one token for all its services and regions and for all who use it. Whoever needs a token
// waits for the one login that is under way; it is renewed before it expires.
type account struct {
	driver   *Driver
	key      accountKey
	name     string // of the VIM, for messages
	options  *gophercloud.AuthOptions
	throttle *throttle
	wire     http.RoundTripper
	identity *gophercloud.ServiceClient

	rejections *rate.Limiter // how often a refused token is a reason to log in again

	mu       sync.Mutex
	id       string // the token, "" when there is none
	renewAt  time.Time
	until    time.Time
	catalog  *tokens.ServiceCatalog
	edition  int // of the catalogue
	logins   int // how many have come off
	attempt  *attempt
	tried    time.Time // when the last login was begun
	used     time.Time // when it was last asked for; the driver's lock is held
	refused  string    // why Keystone refuses the credentials
	doubt    time.Time // until when that may be since they have been changed, there and in the VIM's registration
	refusing time.Time // until when they are not tried again
	closed   bool
	clouds   map[string]*cloud // by region
}

// attempt is a login under way.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{}
	id     string // the token, once done is closed
	err    error  // or why there is none
}

// newAccount makes the account of a VIM; it logs in when a token is needed. Terminal: the VIM's registration is of no use.
func (d *Driver) newAccount(t *lcm.VimTarget) (*account, error) {
	a := &account{
		driver: d, key: accountKey{t.ID, t.Version}, name: nameOf(t), options: credentials(t), clouds: map[string]*cloud{},
		rejections: rate.NewLimiter(rate.Every(rejectionsEvery), rejectionsAtOnce),
	}
	var err error
	if a.throttle, err = d.throttleOf(t); err != nil {
		return nil, err
	}
	if a.wire, err = d.wire(t, a.throttle.limits.MaxConcurrent); err != nil {
		return nil, err
	}
	provider, err := openstack.NewClient(identityURL(t.AuthURL))
	if err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "VIM %s: auth_url: %w", a.name, err)
	}
	provider.HTTPClient = clientOf(a.guard("", "identity"))
	provider.UserAgent.Prepend("vnfm")
	a.identity = &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: provider.IdentityEndpoint, Type: "identity"}
	return a, nil
}

// guard is the transport to one service of the VIM.
func (a *account) guard(region, service string) http.RoundTripper {
	return guarded{
		throttle: a.throttle, circuit: a.driver.circuitOf(circuitKey{a.key.vim, region, service}),
		crew: a.driver.cfg.Crew, observer: a.driver.cfg.Observer, timeout: a.driver.cfg.CallTimeout, next: a.wire,
	}
}

// loginPatience is how long somebody waits for a login; who has waited for so long looks again later, and holds no worker
// meanwhile.
const loginPatience = 3 * time.Second

// token returns a token that is good for a while yet. Terminal when Keystone refuses the credentials, retryable when it
// does not answer; nobody waits for a new one while the one there is is still good.
func (a *account) token(ctx context.Context) (string, error) {
	a.mu.Lock()
	now := time.Now()
	id := a.id
	if id != "" && now.Before(a.renewAt) {
		a.mu.Unlock()
		return id, nil
	}
	if id != "" && !now.Before(a.until) {
		id = ""
	}
	if now.Before(a.refusing) {
		defer a.mu.Unlock()
		if id != "" {
			return id, nil
		}
		return "", a.refusal(now)
	}
	if id != "" {
		if now.Sub(a.tried) >= renewEvery {
			a.login()
		}
		a.mu.Unlock()
		return id, nil
	}
	at := a.login()
	a.mu.Unlock()
	timer := time.NewTimer(loginPatience)
	defer timer.Stop()
	select {
	case <-at.done:
		return at.id, at.err
	case <-timer.C:
		return "", lcm.Errorf(lcm.KindRetryable, "VIM %s: cannot log in: Keystone has not answered for %s", a.name, loginPatience)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// renewEvery is how often it is tried to replace a token that is still good.
const renewEvery = time.Second

// login begins to log in, unless somebody does already; a.mu is held. It goes on whoever of those who wait for it goes
// away.
func (a *account) login() *attempt {
	if a.attempt != nil {
		return a.attempt
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.driver.cfg.CallTimeout)
	at := &attempt{cancel: cancel, done: make(chan struct{})}
	if a.closed {
		cancel()
	}
	a.attempt, a.tried = at, time.Now()
	go func() {
		defer close(at.done)
		defer cancel()
		at.id, at.err = a.authenticate(ctx)
	}()
	return at
}

// authenticate logs in, keeps the outcome and returns the token.
func (a *account) authenticate(ctx context.Context) (string, error) {
	created := tokens.Create(ctx, a.identity, a.options)
	id, err := created.ExtractTokenID()
	var issued *tokens.Token
	var catalog *tokens.ServiceCatalog
	if err == nil {
		issued, err = created.ExtractToken()
	}
	if err == nil {
		catalog, err = created.ExtractServiceCatalog()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attempt = nil
	now := time.Now()
	if err == nil {
		a.id = id
		a.logins++
		if a.catalog == nil || !reflect.DeepEqual(a.catalog, catalog) {
			a.catalog = catalog
			a.edition++
		}
		// Keystone's clock need not be ours: what counts is for how long the token is good.
		life := lifetime(created, issued.ExpiresAt, now)
		a.until, a.renewAt = now.Add(life), now.Add(life-min(time.Minute, life/10))
		a.observe("ok")
		return id, nil
	}
	if !gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) && !gophercloud.ResponseCodeIs(err, http.StatusForbidden) {
		if a.closed { // and the login cut off
			return "", lcm.Errorf(lcm.KindRetryable, "VIM %s: cannot log in: its registration has just been changed", a.name)
		}
		a.observe("failed")
		return "", (&cloud{name: a.name}).wrap("log in", unwrapped(err))
	}
	// Who asks Keystone again and again with what it refuses locks the account.
	a.observe("refused")
	pause := a.driver.cfg.LoginPause
	a.refusing = now.Add(pause)
	a.refused = fmt.Sprintf("VIM %s: Keystone refuses the credentials of %s: %s (at %s; not tried again for %s after that, lest the account be locked)",
		a.name, a.who(), reason(err), now.UTC().Format(time.RFC3339), pause)
	if a.logins > 0 {
		a.doubt = now.Add(inDoubt)
	}
	return "", a.refusal(now)
}

// inDoubt is for how long credentials that were good and are refused now may have been changed: a step that is run again
// reads the VIM's registration anew.
const inDoubt = 3 * time.Second

// refusal is the error of refused credentials; a.mu is held.
func (a *account) refusal(now time.Time) error {
	kind := lcm.KindTerminal
	if now.Before(a.doubt) {
		kind = lcm.KindRetryable
	}
	return lcm.Errorf(kind, "%s", a.refused)
}

// lifetime is for how long a token is good that has been issued now: by Keystone's own clock, if it says when that was.
func lifetime(created tokens.CreateResult, expires, now time.Time) time.Duration {
	var answer struct {
		Issued time.Time `json:"issued_at"`
	}
	if err := created.ExtractIntoStructPtr(&answer, "token"); err == nil && !answer.Issued.IsZero() && answer.Issued.Before(expires) {
		return expires.Sub(answer.Issued)
	}
	return expires.Sub(now)
}

// who names who logs in.
func (a *account) who() string {
	if o := a.options; o.ApplicationCredentialSecret != "" {
		return "application credential " + cmp.Or(o.ApplicationCredentialName, o.ApplicationCredentialID)
	}
	return "user " + cmp.Or(a.options.Username, a.options.UserID)
}

func (a *account) observe(outcome string) {
	if a.driver.cfg.Observer != nil {
		a.driver.cfg.Observer.Login(a.key.vim, outcome)
	}
}

// A refused token is a reason to log in again, but not for as long as a service refuses all of them: so many times on end,
// and then one every so often.
const (
	rejectionsAtOnce = 10
	rejectionsEvery  = 5 * time.Second
)

// reject takes note that a service has refused a token; it tells whether another one is worth trying.
func (a *account) reject(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id == "" || a.id != id {
		return true
	}
	if !a.rejections.Allow() {
		return false
	}
	a.id = ""
	return true
}

// services returns the catalogue, and which edition it is.
func (a *account) services() (*tokens.ServiceCatalog, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.catalog, a.edition
}

// cloud returns the client of a region.
func (a *account) cloud(region string) *cloud {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.clouds[region]
	if c == nil {
		c = &cloud{
			driver: a.driver, account: a, name: a.name,
			options: gophercloud.EndpointOpts{Region: region, Availability: gophercloud.Availability(a.driver.cfg.Interface)},
		}
		a.clouds[region] = c
	}
	return c
}

// close ends the login under way and lets go of idle connections; calls under way go on.
func (a *account) close() {
	a.mu.Lock()
	a.closed = true
	at := a.attempt
	a.mu.Unlock()
	if at != nil {
		at.cancel()
		<-at.done
	}
	closeIdle(a.wire)
}

// nameOf is what messages call a VIM.
func nameOf(t *lcm.VimTarget) string { return cmp.Or(t.Name, t.ID) }
