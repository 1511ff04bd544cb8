package nfvo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

// PackagesConfig says which NFVO packages are fetched from, and how. Zero durations mean the defaults.
type PackagesConfig struct {
	// BaseURL is the NFVO's package management, "https://nfvo.example.com/vnfpkgm/v1", or its packages,
	// "…/vnfpkgm/v1/vnf_packages".
	BaseURL string
	// Login is how we make ourselves known (Auth) and by which certificates (TLS). Redirects are never followed.
	Login     outbound.Config
	Version   string        // of the Version header (SOL013 v2.6.1 §9.2); "" sends none
	Timeout   time.Duration // of one request, and how long a transfer may stand still; default 20 s
	Retries   int           // how often what failed in a way that passes is tried again; 0: never
	RetryWait time.Duration // before it is tried again; default 2 s
	Wait      time.Duration // how long who asks for a VNFD waits for its package; default 60 s
	AtOnce    int           // how many packages are fetched at once; default 8
}

// Onboarder is the package management that fetched packages are brought into.
type Onboarder interface {
	lcm.Packages
	// Import onboards a package under the id given, from the zip that open opens, and returns when it is onboarded. Whoever
	// else imports the same id does it for all. want is what the zip must hash to, nil for anything.
	Import(ctx context.Context, s lcm.Scope, id string, want *sol003.Checksum, open func(context.Context) (io.ReadCloser, error)) error
}

// Packages are the packages onboarded here, and those that an NFVO has: a VNFD that is not known here is looked for there,
// and its package is fetched and onboarded for the project that asked (SOL003 v2.6.1 §10). It implements lcm.Packages.
//
// A package keeps the id that it has at the NFVO: the NFVO finds it again in what instances say of themselves, and nodes
// that fetch it at the same time meet in one row. What of a fetch is lost with a node is found by whoever asks next, who
// begins anew.
type Packages struct {
	Onboarder

	cfg  PackagesConfig
	nfvo catalogue
	log  *slog.Logger

	life context.Context // of all fetches
	end  context.CancelCauseFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	fetching map[string]*fetch // by VNFD
	closed   bool
}

// fetch is one that is under way.
type fetch struct {
	done chan struct{}
	err  error // once done
}

// NewPackages makes Packages over those that are onboarded here. Invalid: a URL that cannot be. They must be closed.
func NewPackages(cfg PackagesConfig, local Onboarder, log *slog.Logger) (*Packages, error) {
	cfg.RetryWait = cmp.Or(cfg.RetryWait, 2*time.Second)
	cfg.Wait = cmp.Or(cfg.Wait, time.Minute)
	cfg.AtOnce = cmp.Or(cfg.AtOnce, 8)
	nfvo, err := newPeer(cfg.BaseURL, "vnf_packages", cfg.Login, cfg.Version, cfg.Timeout)
	if err != nil {
		return nil, err
	}
	p := &Packages{Onboarder: local, cfg: cfg, nfvo: catalogue{nfvo}, log: log, fetching: map[string]*fetch{}}
	p.life, p.end = context.WithCancelCause(context.Background())
	return p, nil
}

// Close ends the fetches that are under way and waits for them. From then on nothing is fetched.
func (p *Packages) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end(lcm.ErrShutdown)
	p.wg.Wait()
}

// PackageByVnfd implements lcm.Packages. Invalid with status 422: the NFVO has no such package either, or its package could
// not be onboarded; unavailable: the NFVO cannot be asked, or the package does not come within the time that is waited
// for it (it goes on coming); terminal: the NFVO does not let us.
func (p *Packages) PackageByVnfd(ctx context.Context, s lcm.Scope, vnfdID string, recent bool) (*lcm.Package, error) {
	found, missing := p.Onboarder.PackageByVnfd(ctx, s, vnfdID, recent)
	if !lcm.Is(missing, lcm.KindNotFound) || vnfdID == "" {
		return found, missing
	}
	f, err := p.fetch(s, vnfdID)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(p.cfg.Wait)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
		return nil, lcm.Errorf(lcm.KindUnavailable, "The package of VNFD %s is being fetched from the NFVO. Try again.", vnfdID)
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the package of VNFD %s: %w", vnfdID, context.Cause(ctx))
	}
	if f.err != nil {
		return nil, f.err
	}
	// What was fetched for one project is not another's.
	return p.Onboarder.PackageByVnfd(ctx, s, vnfdID, false)
}

// fetch begins to fetch the VNFD's package, or joins who does.
func (p *Packages) fetch(s lcm.Scope, vnfdID string) (*fetch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.fetching[vnfdID]; ok {
		return f, nil
	}
	if p.closed || len(p.fetching) >= p.cfg.AtOnce {
		return nil, lcm.Errorf(lcm.KindUnavailable, "The package of VNFD %s cannot be fetched from the NFVO now. Try again.", vnfdID)
	}
	f := &fetch{done: make(chan struct{})}
	p.fetching[vnfdID] = f
	p.wg.Go(func() {
		f.err = p.bring(p.life, s, vnfdID)
		p.mu.Lock()
		delete(p.fetching, vnfdID)
		p.mu.Unlock()
		close(f.done)
	})
	return f, nil
}

// bring looks for the VNFD at the NFVO and onboards its package.
func (p *Packages) bring(ctx context.Context, s lcm.Scope, vnfdID string) error {
	_, err := p.Onboarder.PackageByVnfd(ctx, lcm.Scope{Admin: true}, vnfdID, false)
	switch {
	case err == nil: // another project has it, or it has just come
		return nil
	case !lcm.Is(err, lcm.KindNotFound):
		return err
	}
	log := p.log.With("vnfd", vnfdID)
	var info *sol003.VnfPkgInfo
	if err := p.insist(ctx, log, func() (err error) {
		info, err = p.nfvo.find(ctx, vnfdID)
		return err
	}); err != nil {
		log.Warn("the NFVO could not be asked for a VNF package", "error", err)
		return err
	}
	switch {
	case info == nil:
		return unusable("Can not find requested to NFVO, vnf package info: vnfdId=[%s]", vnfdID)
	case info.OperationalState == sol003.PackageOperationalStateTypeDisabled:
		return unusable("VNF package %s of VNFD %s is DISABLED at the NFVO.", info.Id, vnfdID)
	}
	id := p.nfvo.localID(info.Id)
	log = log.With("package", id)
	log.Info("a VNF package is fetched from the NFVO")
	content := func(ctx context.Context) (io.ReadCloser, error) { return p.nfvo.content(ctx, info.Id) }
	if err := p.insist(ctx, log, func() error { return p.Import(ctx, s, id, info.Checksum, content) }); err != nil {
		log.Warn("a VNF package could not be fetched from the NFVO", "error", err)
		return err
	}
	_, err = p.Onboarder.PackageByVnfd(ctx, lcm.Scope{Admin: true}, vnfdID, false)
	if lcm.Is(err, lcm.KindNotFound) {
		return unusable("VNF package %s, which the NFVO has for VNFD %s, holds another VNFD.", info.Id, vnfdID)
	}
	return err
}

// unusable says that a request names a VNFD of which there is no package to be had.
func unusable(format string, args ...any) error {
	e := lcm.Errorf(lcm.KindInvalid, format, args...)
	e.Status = http.StatusUnprocessableEntity
	return e
}

// insist does try again while its errors pass, as often as it may. What passes still at the end is unavailable: who asks
// may ask again.
func (p *Packages) insist(ctx context.Context, log *slog.Logger, try func() error) error {
	for failed := 0; ; {
		err := try()
		if err == nil || !lcm.Is(err, lcm.KindRetryable) {
			return err
		}
		if failed++; failed > p.cfg.Retries {
			var e *lcm.Error
			errors.As(err, &e)
			return lcm.Errorf(lcm.KindUnavailable, "%s", e.Detail)
		}
		log.Info("the NFVO is asked again", "failed", failed, "error", err)
		timer := time.NewTimer(p.cfg.RetryWait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("ask the NFVO again: %w", context.Cause(ctx))
		case <-timer.C:
		}
	}
}
