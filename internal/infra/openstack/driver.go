package openstack

import (
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/crew"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/openstack/userdata"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Config holds every wait and limit of the driver. Its zero value means the defaults, which are the reference's where
// the reference has one.
type Config struct {
	// StackTimeout is how long a stack may take to be created, updated or deleted; also Heat's timeout_mins, rounded up.
	// Default 600 s (60 retries of 10 s).
	StackTimeout time.Duration
	// ImageTimeout is how long an image may take to become active once it has been handed over. Default 100 s.
	ImageTimeout time.Duration
	// UploadTimeout is how long all images of an instance may take to be handed over. Default 1 h.
	UploadTimeout time.Duration
	// PollMin and PollMax bound the pause between two looks at something: as long as the wait has lasted so far, within
	// these. Defaults 200 ms and 2 s.
	PollMin, PollMax time.Duration
	// Settle is how long a state from before a request may still show after it, before it counts. Default 10 s.
	Settle time.Duration

	// CallTimeout limits one API call except uploads, DialTimeout making a connection. Defaults 60 s and 10 s.
	CallTimeout, DialTimeout time.Duration
	// MaxConcurrent limits the calls under way to one VIM, RequestsPerSecond and Burst their rate. Defaults 64, 100, those
	// of two seconds.
	// A VIM's registration may say otherwise (lcm.VIM.Limits).
	MaxConcurrent     int
	RequestsPerSecond float64
	Burst             int
	// BreakerFailures is how many calls of a service have to fail on end (no connection, a broken one, a status of 500 and
	// more) before no more are made, BreakerOpenFor how long it is until one is let through to see. Defaults 5, 10 s.
	BreakerFailures int
	BreakerOpenFor  time.Duration
	// LoginPause is how long credentials that Keystone has refused are not tried again. Default 30 s.
	LoginPause time.Duration
	// Crew shares the workers of the process out among the VIMs. Default: 100 of the driver's own.
	Crew *crew.Crew
	// Interface is which of the catalogue's endpoints are used: public (default), internal or admin.
	Interface string

	// UserData says how user data scripts run.
	UserData userdata.Config

	// Observer, when set, is told about the calls to VIMs.
	Observer Observer
	// Transport, when set, carries the calls instead of one made for each VIM; TLS is then its business.
	Transport http.RoundTripper
}

// Observer is told about calls to VIMs, for metrics.
type Observer interface {
	// Call reports one HTTP exchange: the VIM's id, the service's host, the method, the status (0 when there was no
	// answer), how long it waited for its turn and how long it took after that.
	Call(vimID, host, method string, status int, queued, took time.Duration)
	// Refused reports a call that was not made, since the service does not answer ("open circuit") or has asked to be left
	// alone ("busy").
	Refused(vimID, why string)
	// Circuit reports the new state of a service's circuit: "closed", "half-open" or "open". Region is "" for Keystone.
	Circuit(vimID, region, service, state string)
	// Login reports a login: "ok", "refused" or "failed".
	Login(vimID, outcome string)
}

// Forgetter is an Observer that wants to be told when a VIM has not been used for so long that nothing of it is kept.
type Forgetter interface {
	// Forget drops what has been observed of the VIM.
	Forget(vimID string)
}

func (c Config) withDefaults() Config {
	for field, value := range map[*time.Duration]time.Duration{
		&c.StackTimeout: 600 * time.Second, &c.ImageTimeout: 100 * time.Second, &c.UploadTimeout: time.Hour,
		&c.PollMin: 200 * time.Millisecond, &c.PollMax: 2 * time.Second, &c.Settle: 10 * time.Second,
		&c.CallTimeout: 60 * time.Second, &c.DialTimeout: 10 * time.Second,
		&c.BreakerOpenFor: 10 * time.Second, &c.LoginPause: 30 * time.Second,
	} {
		if *field == 0 {
			*field = value
		}
	}
	if c.MaxConcurrent == 0 {
		c.MaxConcurrent = 64
	}
	if c.RequestsPerSecond == 0 {
		c.RequestsPerSecond = 100
	}
	if c.Burst == 0 {
		c.Burst = int(min(max(2*c.RequestsPerSecond, 1), math.MaxInt32))
	}
	if c.BreakerFailures == 0 {
		c.BreakerFailures = 5
	}
	if c.Crew == nil {
		c.Crew = crew.New(100)
	}
	if c.Interface == "" {
		c.Interface = "public"
	}
	return c
}

// Driver is the InfraDriver for VIMs of type openstack. It may be used by any number of operations at a time.
type Driver struct {
	cfg    Config
	log    *slog.Logger
	script *userdata.Runner

	signals signals

	mu       sync.Mutex
	accounts map[accountKey]*account
	throats  map[string]*throttle // by VIM id
	circuits map[circuitKey]*circuit
	newest   map[string]int64 // the newest version of a VIM that has been seen, by VIM id
	closing  sync.WaitGroup   // the accounts that are being let go
	swept    time.Time        // when it was last looked what is not used any more
}

var _ lcm.InfraDriver = (*Driver)(nil)

// New returns a driver; zero fields of cfg take their defaults.
func New(cfg Config, log *slog.Logger) *Driver {
	cfg = cfg.withDefaults()
	return &Driver{
		cfg: cfg, log: log, script: userdata.New(cfg.UserData, log),
		accounts: map[accountKey]*account{}, throats: map[string]*throttle{}, circuits: map[circuitKey]*circuit{},
		newest: map[string]int64{}, swept: time.Now(),
	}
}

// Close forgets all logins, ends those under way and closes idle connections. The driver may be used again.
func (d *Driver) Close() {
	d.mu.Lock()
	all := d.accounts
	d.accounts = map[accountKey]*account{}
	d.mu.Unlock()
	for _, a := range all {
		a.close()
	}
	d.closing.Wait()
}

// Type returns "openstack".
func (d *Driver) Type() string { return lcm.VimOpenStack }

// Can implements lcm.InfraDriver: every operation is carried out. What has removed or remade something cannot be rolled
// back (SCALE in, HEAL, TERMINATE), the rest can.
func (d *Driver) Can(operation sol003.LcmOperationType, undo bool) bool {
	switch operation {
	case sol003.LcmOperationTypeInstantiate, sol003.LcmOperationTypeScale, sol003.LcmOperationTypeScaleToLevel,
		sol003.LcmOperationTypeChangeFlavour, sol003.LcmOperationTypeChangeExtConn, sol003.LcmOperationTypeOperate:
		return true
	case sol003.LcmOperationTypeHeal, sol003.LcmOperationTypeTerminate:
		return !undo
	}
	return false
}

// Leaving implements lcm.InfraDriver: the members that Heat would take are looked for.
func (d *Driver) Leaving(x *lcm.Execution) ([]lcm.Step, error) { return d.shared(d.leaving(x)), nil }

// Steps returns the steps of an operation in the VIM, or of its rollback (SOL003 v2.6.1 §5.4.4 to §5.4.11).
func (d *Driver) Steps(x *lcm.Execution) ([]lcm.Step, error) {
	steps, err := d.steps(x)
	return d.shared(steps), err
}

func (d *Driver) steps(x *lcm.Execution) ([]lcm.Step, error) {
	undo, err := x.Undertake(d)
	if err != nil {
		return nil, err
	}
	switch x.Op.Operation {
	case sol003.LcmOperationTypeInstantiate:
		if undo {
			return d.removal("rollback-"), nil
		}
		return d.instantiation(), nil
	case sol003.LcmOperationTypeTerminate:
		return d.removal(""), nil
	case sol003.LcmOperationTypeScale, sol003.LcmOperationTypeScaleToLevel:
		if undo {
			return d.unscaleSteps(x)
		}
		return d.scaleSteps(x), nil
	case sol003.LcmOperationTypeHeal:
		if whole(x) {
			return append(d.removal("respawn-"), d.instantiation()...), nil
		}
		return d.healSteps(), nil
	case sol003.LcmOperationTypeOperate:
		return d.operateSteps(x)
	}
	if undo { // CHANGE_FLAVOUR, CHANGE_EXT_CONN
		return d.back(), nil
	}
	if x.Op.Operation == sol003.LcmOperationTypeChangeFlavour {
		return d.flavourSteps(), nil
	}
	return d.extConnSteps(), nil
}

// slack is what a step may take beyond its own deadline before the engine ends it: the step's own error names more.
const slack = 30 * time.Second

// until bounds a wait by what is left of the step's own time.
func (d *Driver) until(x *lcm.Execution, wait time.Duration) time.Duration {
	return max(min(wait, d.cfg.StackTimeout-x.Now().Sub(x.Begun)), d.cfg.PollMin)
}

// pause is how long to wait before the next look at what has been waited for since begun.
func (d *Driver) pause(x *lcm.Execution) time.Duration {
	return min(max(x.Now().Sub(x.Begun), d.cfg.PollMin), d.cfg.PollMax)
}
