package kubernetes

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/crew"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes/helm"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Config holds every wait and limit of the driver. Its zero value means the defaults, which are the reference's where the
// reference has one.
type Config struct {
	// ReadyTimeout is how long the objects of a VNF may take to become ready after they have been applied, scaled or healed,
	// DeleteTimeout how long they may take to go. Default 500 s (100 retries of 5 s).
	ReadyTimeout, DeleteTimeout time.Duration
	// PollMin and PollMax bound the pause between two looks at what a watch has seen: as long as the wait has lasted so far,
	// within these. Defaults 200 ms and 2 s.
	PollMin, PollMax time.Duration
	// Settle is how long an object of a kind that has a status may be without any before it counts as ready. Default 5 s.
	Settle time.Duration

	// CallTimeout limits one API call, DialTimeout making a connection. Defaults 60 s and 10 s.
	CallTimeout, DialTimeout time.Duration
	// MaxConcurrent limits the calls under way to one VIM, watches not counted. Default 64.
	MaxConcurrent int
	// WatchIdle is how long a watch goes on after the last look. Default 1 min.
	WatchIdle time.Duration
	// LoginGrace is for how long a VIM may refuse the credentials before that counts: time for a token that is being replaced
	// to become known. Default 30 s.
	LoginGrace time.Duration

	// Crew shares the workers of the process out among the VIMs. Default: 100 of the driver's own.
	Crew *crew.Crew
	// Helm deploys charts; nil: none are.
	Helm *helm.Runner
	// Fetch reads manifests and charts at addresses; nil: none may be.
	Fetch Fetcher
	// Observer, when set, is told about every call to a VIM, the beginning of watches included.
	Observer Observer
	// Probe, when set, is called around every call that changes something in a VIM: "call:<method>:<resource>:<name>/before" and
	// "…/after", without the name for pods. Calls that ask what we may do are not among them.
	Probe func(point string)
}

// Fetcher reads manifests that additionalParams name by their URL.
type Fetcher interface {
	// Fetch returns what is at the address. Terminal: it may not be called, or there is nothing of the kind; retryable: it does
	// not answer.
	Fetch(ctx context.Context, address string) ([]byte, error)
}

// Observer is told about calls to VIMs, for metrics.
type Observer interface {
	// Call reports one HTTP exchange: the VIM's id, the API server's host, the method, the status (0 when there was no answer),
	// how long it waited for its turn and how long it took after that.
	Call(vimID, host, method string, status int, queued, took time.Duration)
}

func (c Config) withDefaults() Config {
	for field, value := range map[*time.Duration]time.Duration{
		&c.ReadyTimeout: 500 * time.Second, &c.DeleteTimeout: 500 * time.Second,
		&c.PollMin: 200 * time.Millisecond, &c.PollMax: 2 * time.Second, &c.Settle: 5 * time.Second,
		&c.CallTimeout: 60 * time.Second, &c.DialTimeout: 10 * time.Second,
		&c.WatchIdle: time.Minute, &c.LoginGrace: 30 * time.Second,
	} {
		if *field == 0 {
			*field = value
		}
	}
	if c.MaxConcurrent == 0 {
		c.MaxConcurrent = 64
	}
	if c.Crew == nil {
		c.Crew = crew.New(100)
	}
	return c
}

// Driver is the InfraDriver for VIMs of type kubernetes. It may be used by any number of operations at a time.
type Driver struct {
	cfg Config
	log *slog.Logger

	mu       sync.Mutex
	clusters map[string]*cluster // by VIM id
}

var _ lcm.InfraDriver = (*Driver)(nil)

// New returns a driver; zero fields of cfg take their defaults. It is to be closed.
func New(cfg Config, log *slog.Logger) *Driver {
	return &Driver{cfg: cfg.withDefaults(), log: log, clusters: map[string]*cluster{}}
}

// unused is how long a VIM's client is kept that nobody uses.
const unused = 10 * time.Minute

// idle takes out the clients that nobody has used for a while; d.mu is held. Whoever still has one may go on: it reads for
// itself.
func (d *Driver) idle(now time.Time) []*cluster {
	var out []*cluster
	for id, c := range d.clusters {
		if now.Sub(c.used) >= unused {
			delete(d.clusters, id)
			out = append(out, c)
		}
	}
	return out
}

// Close ends all watches, waits until they have ended, and closes idle connections. The driver may be used again.
func (d *Driver) Close() {
	d.mu.Lock()
	clusters := d.clusters
	d.clusters = map[string]*cluster{}
	d.mu.Unlock()
	for _, c := range clusters {
		c.close()
	}
}

// Type returns "kubernetes".
func (d *Driver) Type() string { return lcm.VimKubernetes }

// Can implements lcm.InfraDriver. What has removed or remade something cannot be rolled back (SCALE in, HEAL, TERMINATE); a
// cluster has no external connectivity to change, and no flavours.
func (d *Driver) Can(operation sol003.LcmOperationType, undo bool) bool {
	switch operation {
	case sol003.LcmOperationTypeInstantiate, sol003.LcmOperationTypeScale, sol003.LcmOperationTypeScaleToLevel, sol003.LcmOperationTypeOperate:
		return true
	case sol003.LcmOperationTypeHeal, sol003.LcmOperationTypeTerminate:
		return !undo
	default:
		return false
	}
}

// Leaving implements lcm.InfraDriver: those that came last are to go, and the cluster is told so.
func (d *Driver) Leaving(*lcm.Execution) ([]lcm.Step, error) { return nil, nil }

// Steps returns the steps of an operation in the VIM, or of its rollback (SOL003 v2.6.1 §5.4.4 to §5.4.10).
func (d *Driver) Steps(x *lcm.Execution) ([]lcm.Step, error) {
	undo, err := x.Undertake(d)
	if err != nil {
		return nil, err
	}
	steps, err := d.course(x, undo)
	return d.shared(d.patient(x, steps)), err
}

// course returns the steps of an operation, or of its rollback.
func (d *Driver) course(x *lcm.Execution, undo bool) ([]lcm.Step, error) {
	switch x.Op.Operation {
	case sol003.LcmOperationTypeInstantiate:
		if undo {
			return d.removal(x, "rollback-"), nil
		}
		left := lcm.Step{Name: "leftovers", Effect: true, Timeout: d.cfg.DeleteTimeout + slack, Run: d.leftovers}
		return append([]lcm.Step{left}, d.instantiation()...), nil
	case sol003.LcmOperationTypeTerminate:
		return d.removal(x, ""), nil
	case sol003.LcmOperationTypeHeal:
		if x.Plan.Whole {
			check := lcm.Step{Name: "respawn-check", Timeout: d.cfg.ReadyTimeout, Run: d.check}
			return slices.Concat([]lcm.Step{check}, d.removal(x, "respawn-"), d.instantiation()), nil
		}
		return d.healSteps(), nil
	case sol003.LcmOperationTypeOperate:
		return d.operateSteps(x)
	}
	if undo {
		return d.unscaleSteps(), nil
	}
	return d.scaleSteps(), nil
}

// slack is what a step may take beyond its own deadline before the engine ends it: the step's own error names more.
const slack = 30 * time.Second

// pause is how long to wait before the next look at what has been waited for since the step was begun.
func (d *Driver) pause(x *lcm.Execution) time.Duration {
	return min(max(x.Now().Sub(x.Begun), d.cfg.PollMin), d.cfg.PollMax)
}

type runFunc = func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error)
