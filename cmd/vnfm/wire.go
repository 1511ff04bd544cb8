package main

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"github.com/seed-f1a0ccf1/vnfm/internal/config"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar"
	"github.com/seed-f1a0ccf1/vnfm/internal/httpapi"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/crew"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/fake"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/openstack"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/openstack/userdata"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/metrics"
	"github.com/seed-f1a0ccf1/vnfm/internal/mgmt"
	"github.com/seed-f1a0ccf1/vnfm/internal/mgmt/noop"
	"github.com/seed-f1a0ccf1/vnfm/internal/nfvo"
	"github.com/seed-f1a0ccf1/vnfm/internal/notify"
	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
	"github.com/seed-f1a0ccf1/vnfm/internal/privatepg"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/vim"
)

// server is the whole program, wired.
type server struct {
	cfg      *config.Config
	log      *slog.Logger
	postgres *privatepg.Server // nil with a database of the operator's
	store    *store.Store
	packages *pkgm.Service
	vims     *vim.Service
	service  *lcm.Service
	engine   *lcm.Engine
	metrics  *metrics.Metrics
	fetched  *nfvo.Packages // nil without an NFVO that has packages
	clouds   *openstack.Driver
	clusters *kubernetes.Driver
	inspects *lcm.Inspector

	subscriptions *notify.Service
	dispatcher    *notify.Dispatcher

	requests *store.RequestLog
	marker   []byte
	grants   string // where the NFVO has its grants, "" when none is asked
	working  atomic.Bool
}

// pruneEvery is the pause between looks for records of requests that are too old.
const pruneEvery = 10 * time.Minute

// newServer connects everything. The server must be closed.
func newServer(ctx context.Context, cfg *config.Config, log *slog.Logger) (_ *server, err error) {
	s := &server{cfg: cfg, log: log}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	url, err := s.database(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Database.Migrate {
		if err := store.Migrate(ctx, url, log); err != nil {
			return nil, err
		}
	}
	keys, created, err := cfg.ReadKeys()
	if err != nil {
		return nil, err
	}
	if created {
		log.Warn("a key for sealing credentials has been made; keep it with your backups", "file", cfg.Secrets.KeyFile)
	}
	sealer, err := store.ParseKeys(keys)
	if err != nil {
		return nil, fmt.Errorf("secrets.key_file %s: %w", cfg.Secrets.KeyFile, err)
	}
	if s.marker, err = hkdf.Key(sha256.New, []byte(keys), nil, "vnfm paging markers", sha256.Size); err != nil {
		return nil, fmt.Errorf("derive the key of paging markers: %w", err)
	}
	if s.store, err = store.Open(ctx, store.Config{URL: url, MaxConns: int32(min(cfg.Database.MaxConns, 1<<15)), Sealer: sealer, Log: log}); err != nil { //nolint:gosec // bounded above
		return nil, err
	}
	return s, s.wire()
}

// database returns the URL of the operator's database, or of a private one that it starts.
func (s *server) database(ctx context.Context) (string, error) {
	if !s.cfg.Database.Private() {
		return s.cfg.Database.URL.Reveal(), nil
	}
	var err error
	s.postgres, err = privatepg.Start(ctx, privatepg.Options{Dir: s.cfg.Database.PrivateDir, MaxConnections: s.cfg.Database.MaxConns + 20, Log: s.log})
	if err != nil {
		return "", fmt.Errorf("no database.url is set, and a private PostgreSQL cannot be started: %w", err)
	}
	return s.postgres.URL(), nil
}

func (s *server) wire() error {
	cfg, log := s.cfg, s.log
	s.metrics = metrics.New(s.store.Pool)
	s.requests = s.store.NewRequestLog()
	s.packages = pkgm.New(pkgm.Config{
		Node: s.store.NodeID, SizeCap: int64(cfg.VNFPackage.SizeCap),
		Limits:   csar.Limits{MaxEntries: cfg.VNFPackage.MaxEntries, MaxEntryBytes: int64(cfg.VNFPackage.UnpackedCap), MaxTotalBytes: int64(cfg.VNFPackage.UnpackedCap), MaxRatio: csar.DefaultLimits.MaxRatio},
		Download: pkgm.Download{Hosts: cfg.VNFPackage.URIHosts, Allow: cfg.VNFPackage.AllowPrefixes()},
	}, s.store, log)
	s.packages.Probe = crashPoint
	s.vims = vim.New(vim.Config{AllowFake: cfg.VIM.AllowFake, ProbeTimeout: cfg.VIM.ProbeTimeout, MonitorInterval: cfg.VIM.ProbeInterval}, s.store, nil, log)

	workers := crew.New(cfg.Engine.MaxWorkers)
	s.clouds = openstack.New(openstack.Config{
		StackTimeout: cfg.Openstack.StackTimeout, ImageTimeout: cfg.Openstack.ImageTimeout,
		PollMin: cfg.Openstack.PollMin, PollMax: cfg.Openstack.PollMax,
		CallTimeout: cfg.Openstack.RequestTimeout, DialTimeout: cfg.Openstack.ConnectTimeout,
		MaxConcurrent: cfg.Openstack.MaxConcurrent, RequestsPerSecond: cmp.Or(cfg.Openstack.RequestsPerSecond, float64(rate.Inf)),
		BreakerFailures: cfg.Openstack.BreakerFailures, BreakerOpenFor: cfg.Openstack.BreakerOpenFor,
		LoginPause: cfg.Openstack.LoginPause, Crew: workers,
		UserData: userdata.Config{Python: cfg.Openstack.Python, User: cfg.Openstack.UserDataUser, Timeout: cfg.Openstack.UserDataTimeout},
		Observer: s.metrics,
	}, log)
	var err error
	if s.clusters, err = clusters(cfg.Kubernetes, workers, s.metrics, log); err != nil {
		return err
	}
	drivers, err := infra.NewRegistry(s.clouds, s.clusters, fake.New(fake.Config{}))
	if err != nil {
		return err
	}
	hooks, err := mgmt.Registry{"noop": noop.Driver{}}.Serve(cfg.Mgmt.Drivers)
	if err != nil {
		return err
	}
	newID := func() string { return uuid.Must(uuid.NewV7()).String() }
	if err := s.notifications(newID); err != nil {
		return err
	}
	grants, err := granter(cfg)
	if err != nil {
		return err
	}
	packages, there, err := fetching(cfg.NFVO, s.packages, log)
	if err != nil {
		return err
	}
	s.fetched = there
	if asked, ok := grants.(*nfvo.Granter); ok {
		s.grants = asked.URL()
	}
	s.service = &lcm.Service{Store: s.store, Packages: packages, VIMs: s.vims, Infra: drivers, Now: s.store.Now, NewID: newID, Probe: crashPoint}
	s.inspects = &lcm.Inspector{
		Instances: s.store, Packages: packages, VIMs: s.vims, Infra: drivers, Records: s.store, Timeout: cfg.Verify.Timeout, Parallel: cfg.Verify.Parallel,
		Now: s.store.Now, Log: log, Observe: s.metrics.Verified, ObserveDiffering: s.metrics.Differing,
	}
	s.engine = &lcm.Engine{
		Store: s.store, Packages: packages, VIMs: s.vims, Infra: drivers, Mgmt: hooks, Granter: grants,
		Now: s.store.Now, NewID: newID, Log: log, Probe: crashPoint, Observe: s.metrics.OpOcc,
	}
	return nil
}

// run serves until ctx ends. listening, if not nil, is told the address once the API answers.
func (s *server) run(ctx context.Context, listening func(net.Addr)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	part := func(name string, f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	joined := make(chan struct{})
	var once sync.Once
	part("node", func() error {
		return s.store.Serve(ctx, s.work(), func(works bool) {
			s.working.Store(works)
			if works {
				once.Do(func() { close(joined) })
			}
		})
	})
	if slices.Contains(s.cfg.Roles, "api") {
		part("API", func() error {
			select {
			case <-ctx.Done():
				return nil
			case <-joined: // uploads have an owner from the first on
				return s.recorded(ctx, func() error { return s.serveAPI(ctx, listening) })
			}
		})
	}
	if s.cfg.Debug.Listen != "" {
		part("profiler", func() error { return s.serveDebug(ctx) })
	}
	if s.postgres != nil {
		part("private PostgreSQL", func() error {
			select {
			case <-ctx.Done():
				return nil
			case <-s.postgres.Done():
				return s.postgres.Err()
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// work says what this process does as a node: without the role worker it is one only in name, so that uploads that it
// takes are taken over when it dies.
func (s *server) work() store.WorkConfig {
	w := store.WorkConfig{
		Watch:       s.cfg.Engine.TakeoverInterval,
		FetchPoll:   s.cfg.Engine.FetchPoll,
		StopTimeout: s.cfg.Engine.StopTimeout,
	}
	if !slices.Contains(s.cfg.Roles, "worker") {
		return w
	}
	w.RunOperation, w.RunOnboarding, w.Interrupt = s.engine.Run, s.packages.Run, s.engine.Interrupt
	w.Operations, w.Onboardings, w.FetchCooldown, w.Retention = s.cfg.Engine.MaxWorkers, 2, s.cfg.Engine.FetchCooldown, s.cfg.Engine.JobRetention
	w.Background = []func(context.Context, string){
		func(ctx context.Context, _ string) { s.vims.Monitor(ctx) },
		func(ctx context.Context, _ string) { s.packages.Collect(ctx) },
		func(ctx context.Context, _ string) { s.dispatcher.Run(ctx) },
		func(ctx context.Context, _ string) {
			s.store.KeepRequests(ctx, pruneEvery, s.cfg.Limits.IdempotencyRetention, s.cfg.Audit.Retention)
		},
	}
	if v := s.cfg.Verify; v.Interval > 0 {
		w.Background = append(w.Background, func(ctx context.Context, _ string) {
			s.inspects.Watch(ctx, lcm.Watch{Interval: v.Interval, Parallel: v.Parallel, PerSecond: v.PerSecond})
		})
	}
	return w
}

// recorded has refused requests recorded for as long as serve serves.
func (s *server) recorded(ctx context.Context, serve func() error) error {
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { s.requests.Run(run) })
	err := serve()
	stop()
	wg.Wait()
	return err
}

func (s *server) serveAPI(ctx context.Context, listening func(net.Addr)) error {
	auth, err := authenticator(s.cfg.Auth)
	if err != nil {
		return err
	}
	handler := httpapi.New(httpapi.Config{
		EndpointURL: s.cfg.EndpointURL, Auth: auth, PageSize: s.cfg.Paging.PageSize, MarkerKey: s.marker,
		MaxBody: int64(s.cfg.Limits.Body), MaxPackage: int64(s.cfg.VNFPackage.SizeCap), MaxInFlight: s.cfg.Limits.MaxConcurrent, Log: s.log,
		BodyTimeout: s.cfg.Limits.BodyTimeout, RequestsPerSecond: s.cfg.Limits.RequestsPerSecond, Burst: s.cfg.Limits.Burst, Proxies: s.cfg.Limits.ProxyPrefixes(),
		Requests: s.requests, GrantsURL: s.grants,
		Observe: func(o httpapi.Observation) { s.metrics.Request(o.Route, o.Method, o.Status, o.Duration) },
		Ready:   http.HandlerFunc(s.ready), Metrics: s.metrics.Handler(),
	}, httpapi.Deps{LCM: s.service, Reader: s.store, Packages: s.packages, VIMs: s.vims, Subscriptions: s.subscriptions,
		Verifier: s.inspects, Verifications: s.store})
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.cfg.Listen, err)
	}
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: s.cfg.Limits.HeaderTimeout, IdleTimeout: s.cfg.Limits.IdleTimeout,
		MaxHeaderBytes: int(s.cfg.Limits.Header),
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	files, err := tlsFiles(s.cfg, s.log)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	stopped := s.shutWith(ctx, srv)
	defer stopped()
	s.log.Info("the API answers", "address", ln.Addr().String(), "endpoint", s.cfg.EndpointURL)
	if listening != nil {
		listening(ln.Addr())
	}
	if files != nil {
		var watching sync.WaitGroup
		watch, stop := context.WithCancel(ctx)
		watching.Go(func() { files.Watch(watch, s.cfg.TLS.Reload) })
		srv.TLSConfig = files.TLS()
		err = srv.ServeTLS(ln, "", "")
		stop()
		watching.Wait()
	} else {
		err = srv.Serve(ln)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// shutWith shuts the listener when ctx ends; the function that it returns waits until requests under way are answered.
func (s *server) shutWith(ctx context.Context, srv *http.Server) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Engine.StopTimeout)
		defer cancel()
		if srv.Shutdown(end) != nil {
			_ = srv.Close()
		}
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// serveDebug serves Go's profiler on its own loopback listener.
func (s *server) serveDebug(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := &http.Server{Addr: s.cfg.Debug.Listen, Handler: mux, ReadHeaderTimeout: s.cfg.Limits.HeaderTimeout}
	stopped := s.shutWith(ctx, srv)
	defer stopped()
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ready answers whether this process can serve: the database answers, and the node is on the list of the living.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	w.Header().Set("Content-Type", "application/json")
	switch err := s.store.Pool.Ping(ctx); {
	case err != nil:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"status":"the database does not answer"}` + "\n"))
	case !s.working.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"status":"this node has not joined"}` + "\n"))
	default:
		_, _ = w.Write([]byte(`{"status":"ready"}` + "\n"))
	}
}

// close takes down what newServer set up.
func (s *server) close() {
	if s.fetched != nil {
		s.fetched.Close()
	}
	if s.clouds != nil {
		s.clouds.Close()
	}
	if s.clusters != nil {
		s.clusters.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
	if s.postgres != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.postgres.Stop(ctx); err != nil {
			s.log.Error("the private PostgreSQL does not stop", "error", err)
		}
	}
}
