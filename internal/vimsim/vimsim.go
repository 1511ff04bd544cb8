// Package vimsim is an OpenStack simulator on one loopback listener: the parts
// of Keystone v3, Glance v2, Heat v1, Nova, Neutron and Cinder that a VNF
// manager and its users touch. It keeps state, really executes Heat templates
// (package hot), passes through the same asynchronous states, answers with the
// same status codes, redirects and error bodies as the services of the Zed
// release, and can be told to fail, hang, stall or cut connections.
//
// Services live under path prefixes: /identity/v3, /image/v2,
// /orchestration/v1/{project}, /compute/v2.1, /network/v2.0,
// /volume/v3/{project}. The simulator's own controls are under /vimsim and on
// *Cloud.
package vimsim

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Clock is the time source; tests may replace it.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// After delivers once when d has passed.
	After(d time.Duration) <-chan time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now().UTC() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// User is an account of the simulated Keystone.
type User struct {
	Name, Password string
	// Domain is the domain's name; empty means Config.Domain.
	Domain string
	// Projects maps project names to the user's roles there; a project is
	// created when first named. The first in name order is the default one.
	Projects map[string][]string
}

// Quotas limit what a project may hold; zero means unlimited.
type Quotas struct {
	Instances, Volumes, Ports, Networks, Stacks int
}

// Config sets up a Cloud. The zero value is usable.
type Config struct {
	// Region, Project, User, Password and Domain are the account that always
	// exists: RegionOne, nfv, nfv_user, devstack and Default if empty.
	Region, Project, User, Password, Domain string
	// Regions are further regions of the catalogue; their endpoints lead to the services of Region.
	Regions []string
	// Users are further accounts.
	Users []User
	// NFVOrchestrationURL, if set, is put into the catalogue as the endpoint
	// of type nfv-orchestration.
	NFVOrchestrationURL string
	// Latency is how long one action on a resource of a type takes, by Heat
	// type name; "*" is the default, "glance" the time an image needs.
	Latency map[string]time.Duration
	// Faults are active from the start.
	Faults []Fault
	// Hosts are the hypervisors, "host" or "host@zone"; five in zone nova if empty.
	Hosts []string
	// TokenTTL is how long a token is valid; one hour if zero.
	TokenTTL time.Duration
	// Quotas of each project.
	Quotas Quotas
	// Clock is the time source; the system's if nil.
	Clock Clock
	// Minute is how long a minute of a stack's timeout lasts; a minute if zero.
	Minute time.Duration
	// Retries is how often Heat makes a server or volume again that has gone to
	// ERROR, before the stack fails: Heat's action_retry_limit, which is 5 there
	// if nobody says otherwise, and 0 here.
	Retries int
	// DeletedStacks is how many deleted top-level stacks stay visible by id;
	// 1000 if zero.
	DeletedStacks int
}

func (c Config) withDefaults() Config {
	def := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	def(&c.Region, "RegionOne")
	def(&c.Project, "nfv")
	def(&c.User, "nfv_user")
	def(&c.Password, "devstack")
	def(&c.Domain, "Default")
	if c.TokenTTL <= 0 {
		c.TokenTTL = time.Hour
	}
	if c.Minute <= 0 {
		c.Minute = time.Minute
	}
	if len(c.Hosts) == 0 {
		c.Hosts = []string{"compute1", "compute2", "compute3", "compute4", "compute5"}
	}
	if c.Clock == nil {
		c.Clock = systemClock{}
	}
	if c.DeletedStacks <= 0 {
		c.DeletedStacks = 1000
	}
	return c
}

// Cloud is one simulated OpenStack. All methods are safe for concurrent use.
type Cloud struct {
	cfg Config
	log *slog.Logger
	clk Clock

	ctx    context.Context //nolint:containedctx // the life of the cloud, ended by Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	// mu guards everything below. It is held for map work only, never while
	// waiting. Stored documents are immutable: a change stores a new one.
	mu      sync.Mutex
	closed  bool
	seq     int64
	keys    keystone
	images  *table
	blobs   map[string][]byte
	nova    nova
	net     neutron
	cinder  cinder
	heat    heat
	latency map[string]time.Duration
	quotas  map[string]Quotas // by project, where they are not the configuration's
	faults  faultList
	journal journal
}

// ErrClosed is the cause of everything that Close interrupts.
var ErrClosed = errors.New("vimsim: the cloud is closed")

// New makes a cloud with its predefined images, flavors and networks. Close
// must be called.
func New(cfg Config, log *slog.Logger) *Cloud {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Cloud{cfg: cfg.withDefaults(), log: log}
	c.clk = c.cfg.Clock
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.init()
	return c
}

// init fills an empty cloud; the caller holds mu or is the only user.
func (c *Cloud) init() {
	c.latency = map[string]time.Duration{}
	for k, v := range c.cfg.Latency {
		c.latency[k] = v
	}
	c.images, c.blobs = newTable(), map[string][]byte{}
	c.nova, c.net, c.cinder, c.heat = newNova(c.cfg.Hosts), newNeutron(), newCinder(), newHeat()
	c.faults.remove("")
	c.faults = faultList{}
	for _, f := range c.cfg.Faults {
		c.faults.add(f)
	}
	c.journal, c.quotas = journal{}, map[string]Quotas{}
	c.initKeystone()
	c.seed()
}

// Close stops every background action and waits for its end.
func (c *Cloud) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(ErrClosed)
	c.wg.Wait()
}

// goFunc runs f in the background unless the cloud is closed. Callers hold mu.
func (c *Cloud) goFunc(f func()) {
	if c.closed {
		return
	}
	c.wg.Go(f)
}

// sleep waits d on the cloud's clock, or for the end of ctx and returns its cause.
func (c *Cloud) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	select {
	case <-c.clk.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// SetLatency replaces the latencies by resource type ("*" is the default).
func (c *Cloud) SetLatency(l map[string]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latency = map[string]time.Duration{}
	for k, v := range l {
		c.latency[k] = v
	}
}

func newID() string { return uuid.NewString() }

// now is the time as most services show it.
func (c *Cloud) now() string { return c.clk.Now().UTC().Format("2006-01-02T15:04:05Z") }

// doc is one stored object; it is never changed after it has been stored.
type doc = map[string]any

func with(d doc, kv ...any) doc {
	n := make(doc, len(d)+len(kv)/2)
	for k, v := range d {
		n[k] = v
	}
	for i := 0; i+1 < len(kv); i += 2 {
		n[kv[i].(string)] = kv[i+1]
	}
	return n
}

func str(d doc, k string) string { s, _ := d[k].(string); return s }

// row is a document with its place in creation order.
type row struct {
	seq int64
	doc doc
}
