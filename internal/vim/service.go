package vim

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Store is what the service needs of the database. Errors are classed: not found, conflict, precondition.
type Store interface {
	// CreateVIM inserts a VIM: v has the credentials in clear, shown.Auth and shown.Extra what the API shows of them.
	// Conflict: a second default, or a name that is taken.
	CreateVIM(ctx context.Context, v, shown *lcm.VIM) error
	// VIM reads a VIM as the API shows it or, with clear, with its credentials. Not found.
	VIM(ctx context.Context, s lcm.Scope, id string, clear bool) (*lcm.VIM, error)
	// DefaultVIM reads a project's default VIM with its credentials. Not found.
	DefaultVIM(ctx context.Context, projectID string) (*lcm.VIM, error)
	// VIMs lists the VIMs that the scope sees, oldest first.
	VIMs(ctx context.Context, s lcm.Scope, clear bool) ([]lcm.VIM, error)
	// UpdateVIM writes a VIM whose version is still v.Version. Precondition: it is not; conflict; not found.
	UpdateVIM(ctx context.Context, v, shown *lcm.VIM) error
	// SetVIMStatus changes the status from one to another if neither it nor the version has changed meanwhile.
	SetVIMStatus(ctx context.Context, id string, version int64, from, to string) (bool, error)
	// DeleteVIM deletes a VIM that no instance refers to. Conflict, not found.
	DeleteVIM(ctx context.Context, s lcm.Scope, id string) error
}

// ProbeResult is what logging in to a VIM told.
type ProbeResult struct {
	Regions   []string // Keystone's regions, or a cluster's namespaces
	ProjectID string   // of Keystone; empty on others
}

// Prober logs in to VIMs of one type.
type Prober interface {
	// Probe logs in with the VIM's credentials. Invalid: they are wrong or not enough; unavailable: the VIM cannot be
	// reached or does not answer as it should. The message names the VIM, its URL and the cause, and no secret.
	Probe(ctx context.Context, v lcm.VIM) (ProbeResult, error)
}

// Config is what an operator or a test may set; zero values mean the defaults.
type Config struct {
	AllowFake       bool          // VIMs of the type "fake" may be registered
	ProbeTimeout    time.Duration // how long a login may take; default 20 s
	MonitorInterval time.Duration // how often VIMs are probed; default 30 s
	MonitorParallel int           // how many are probed at once; default 8

	Now   func() time.Time // default time.Now
	NewID func() string    // default UUIDs version 7
}

// Service manages registered VIMs. Its methods are safe for concurrent use.
type Service struct {
	cfg     Config
	store   Store
	probers map[string]Prober
	log     *slog.Logger
	recent  recently
	shy     refusals
}

// New makes a Service over a store. probers are by VIM type; nil means OpenStack and Kubernetes.
func New(cfg Config, store Store, probers map[string]Prober, log *slog.Logger) *Service {
	if cfg.ProbeTimeout <= 0 {
		cfg.ProbeTimeout = 20 * time.Second
	}
	if cfg.MonitorInterval <= 0 {
		cfg.MonitorInterval = 30 * time.Second
	}
	if cfg.MonitorParallel <= 0 {
		cfg.MonitorParallel = 8
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if probers == nil {
		probers = map[string]Prober{lcm.VimOpenStack: OpenStack{}, lcm.VimKubernetes: Kubernetes{}}
	}
	all := maps.Clone(probers)
	if _, ok := all[lcm.VimFake]; !ok && cfg.AllowFake {
		all[lcm.VimFake] = nothing{}
	}
	return &Service{cfg: cfg, store: store, probers: all, log: log}
}

// nothing is the Prober of fake VIMs, which are always there.
type nothing struct{}

func (nothing) Probe(context.Context, lcm.VIM) (ProbeResult, error) {
	return ProbeResult{Regions: []string{"RegionOne"}}, nil
}

// Register logs in to a VIM and stores it (tacker's POST /v1.0/vims). Of v, Name, Desc, Type, AuthURL, Auth, Project,
// Extra, Default and, for an administrator, ProjectID are read. The answer is as the API shows it: PENDING, secrets
// masked; it becomes REACHABLE right after. Invalid: an unknown type, a limit in extra that is none, or the VIM refuses the
// credentials; unavailable: it cannot be reached; conflict: a second default or a name that is taken. Nothing is stored then.
func (s *Service) Register(ctx context.Context, sc lcm.Scope, v lcm.VIM) (*lcm.VIM, error) {
	prober, err := s.prober(v.Type)
	if err != nil {
		return nil, err
	}
	v.ID = s.cfg.NewID()
	if v.ProjectID == "" || !sc.Admin {
		v.ProjectID = sc.ProjectID
	}
	if v.AuthURL, err = authURL(v.Type, v.AuthURL); err != nil {
		return nil, err
	}
	if v.Type == lcm.VimKubernetes {
		v.Auth, v.Extra = withCertificate(v.Auth, v.Extra)
	}
	v.Status, v.Version = lcm.VimPending, 1
	v.Created, v.Updated = s.cfg.Now().UTC().Truncate(time.Microsecond), time.Time{}
	if err := storable(v); err != nil {
		return nil, err
	}
	if _, err := v.Limits(); err != nil {
		return nil, err
	}
	found, err := s.probe(ctx, prober, v)
	if err != nil {
		return nil, err
	}
	v.Regions = found.Regions
	shown := masked(v, found.ProjectID)
	if err := s.store.CreateVIM(ctx, &v, shown); err != nil {
		return nil, err
	}
	// It has just been reached. Should this be lost, the monitor makes up for it.
	if _, err := s.store.SetVIMStatus(ctx, v.ID, v.Version, lcm.VimPending, lcm.VimReachable); err != nil {
		s.log.WarnContext(ctx, "the status of a new VIM is left to the monitor", "vim", v.ID, "error", err)
	}
	shown.Version = v.Version
	return shown, nil
}

// storable refuses what the database cannot hold in a text of its own.
func storable(v lcm.VIM) error {
	for name, text := range map[string]string{"name": v.Name, "auth_url": v.AuthURL, "tenant_id": v.ProjectID} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return lcm.Errorf(lcm.KindInvalid, "Invalid input for %s. Reason: it is not text without NUL characters.", name)
		}
	}
	return nil
}

func (s *Service) prober(kind string) (Prober, error) {
	p, ok := s.probers[kind]
	if !ok || kind == lcm.VimFake && !s.cfg.AllowFake {
		return nil, lcm.Errorf(lcm.KindInvalid, "Invalid input for type. Reason: there is no VIM driver for the type '%s'.", kind)
	}
	return p, nil
}

func (s *Service) probe(ctx context.Context, p Prober, v lcm.VIM) (ProbeResult, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ProbeTimeout)
	defer cancel()
	return p.Probe(ctx, v)
}

var versioned = regexp.MustCompile(`/v\d+(\.\d+)?$`)

// authURL checks an auth_url and, for Keystone, appends /v3 unless it ends with a version.
func authURL(kind, raw string) (string, error) {
	u, err := url.Parse(raw)
	if kind != lcm.VimFake && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil) {
		return "", lcm.Errorf(lcm.KindInvalid, "Invalid input for auth_url. Reason: it is not the http or https URL of a VIM, without user name and password.")
	}
	raw = strings.TrimRight(raw, "/")
	if kind == lcm.VimOpenStack && !versioned.MatchString(raw) {
		raw += "/v3"
	}
	return raw, nil
}

// List lists the VIMs that the scope sees, oldest first, secrets masked.
func (s *Service) List(ctx context.Context, sc lcm.Scope) ([]lcm.VIM, error) {
	return s.store.VIMs(ctx, sc, false)
}

// Get returns a VIM, secrets masked. Not found.
func (s *Service) Get(ctx context.Context, sc lcm.Scope, id string) (*lcm.VIM, error) {
	return s.store.VIM(ctx, sc, id, false)
}

// updateTries is how often an update is made again when another one was faster.
const updateTries = 5

// Update changes a VIM (tacker's PUT /v1.0/vims/{id}): what is nil stays, maps are merged key by key, a masked secret
// that comes back stays as it is. Changed credentials are logged in with first. The answer is as the API shows it.
// Errors as of Register; not found.
func (s *Service) Update(ctx context.Context, sc lcm.Scope, id string, c lcm.VIMChange) (*lcm.VIM, error) {
	for try := 1; ; try++ {
		shown, err := s.update(ctx, sc, id, c)
		if lcm.Is(err, lcm.KindPrecondition) && try < updateTries {
			continue
		}
		return shown, err
	}
}

func (s *Service) update(ctx context.Context, sc lcm.Scope, id string, c lcm.VIMChange) (*lcm.VIM, error) {
	v, err := s.store.VIM(ctx, sc, id, true)
	if err != nil {
		return nil, err
	}
	before, err := s.store.VIM(ctx, sc, id, false)
	if err != nil {
		return nil, err
	}
	if before.Version != v.Version {
		return nil, lcm.Errorf(lcm.KindPrecondition, "VIM %s has been changed meanwhile", id)
	}
	if c.Name != nil {
		v.Name = *c.Name
	}
	if c.Desc != nil {
		v.Desc = *c.Desc
	}
	if c.Default != nil {
		v.Default = *c.Default
	}
	if err := storable(*v); err != nil {
		return nil, err
	}
	if v.Type == lcm.VimKubernetes {
		c.Auth, c.Extra = withCertificate(c.Auth, c.Extra)
	}
	v.Extra = merge(v.Extra, c.Extra)
	if _, err := v.Limits(); err != nil {
		return nil, err
	}
	keystoneProject := text(before.Auth, "project_id")
	if len(c.Auth) > 0 || len(c.Project) > 0 {
		if v.Type == lcm.VimKubernetes {
			v.Auth, c.Auth = replaced(v.Auth, c.Auth)
		}
		v.Auth, v.Project = merge(v.Auth, c.Auth), merge(v.Project, c.Project)
		maps.DeleteFunc(v.Auth, func(_ string, value any) bool { return value == nil }) // null takes away
		prober, err := s.prober(v.Type)
		if err != nil {
			return nil, err
		}
		found, err := s.probe(ctx, prober, *v)
		if err != nil {
			return nil, err
		}
		v.Regions, keystoneProject = found.Regions, found.ProjectID
	}
	v.Updated = s.cfg.Now().UTC().Truncate(time.Microsecond)
	shown := masked(*v, keystoneProject)
	err = s.store.UpdateVIM(ctx, v, shown)
	s.recent.forget()
	if err != nil {
		return nil, err
	}
	shown.Version = v.Version
	return shown, nil
}

// merge returns stored with the keys of change laid over it, masked values left out.
func merge(stored, change map[string]any) map[string]any {
	if len(change) == 0 {
		return stored
	}
	out := maps.Clone(stored)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range change {
		if _, had := stored[k]; had && v == Mask {
			continue
		}
		inner, isMap := v.(map[string]any)
		if old, wasMap := stored[k].(map[string]any); isMap && wasMap {
			out[k] = restore(old, inner)
			continue
		}
		out[k] = v
	}
	return out
}

// restore returns a nested map of a change with the masks in it replaced by the stored secrets.
func restore(stored, change map[string]any) map[string]any {
	out := maps.Clone(change)
	for k, v := range change {
		if v == Mask {
			if old, ok := stored[k]; ok {
				out[k] = old
			}
		}
		inner, isMap := v.(map[string]any)
		if old, wasMap := stored[k].(map[string]any); isMap && wasMap {
			out[k] = restore(old, inner)
		}
	}
	return out
}

// Delete deletes a VIM. Not found; conflict while an instance refers to it.
func (s *Service) Delete(ctx context.Context, sc lcm.Scope, id string) error {
	err := s.store.DeleteVIM(ctx, sc, id)
	s.recent.forget()
	return err
}

// Mask stands where a secret is in what the vims API shows.
const Mask = "***"

// secret tells whether a key of auth_cred or extra names a secret.
func secret(key string) bool {
	return lcm.SecretKey(key) || key == "secret_uuid"
}

// maskMap returns a deep copy of a JSON-shaped map without its secrets.
func maskMap(in map[string]any) map[string]any {
	if in == nil {
		return nil
	}
	out := make(map[string]any, len(in))
	for k, v := range in {
		if secret(k) && v != nil && v != "" {
			out[k] = Mask
			continue
		}
		out[k] = maskValue(v)
	}
	return out
}

func maskValue(v any) any {
	switch t := v.(type) {
	case map[string]any:
		return maskMap(t)
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = maskValue(e)
		}
		return out
	default:
		return v
	}
}

// masked returns a VIM as the API shows it: auth_cred with the keys that tacker puts into it and without secrets.
func masked(v lcm.VIM, keystoneProject string) *lcm.VIM {
	auth := maskMap(v.Auth)
	if auth == nil {
		auth = map[string]any{}
	}
	auth["auth_url"] = v.AuthURL
	switch v.Type {
	case lcm.VimKubernetes:
		auth["key_type"], auth["secret_uuid"] = "barbican_key", Mask
	default:
		auth["key_type"] = "fernet_key"
		if name := text(v.Project, "name"); name != "" {
			auth["project_name"] = name
		}
		if domain := text(v.Project, "project_domain_name"); domain != "" {
			auth["project_domain_name"] = domain
		}
		if keystoneProject != "" {
			auth["project_id"] = keystoneProject
		}
	}
	v.Auth, v.Extra = auth, maskMap(v.Extra)
	return &v
}

// text returns a text attribute, "" when it is absent, not a text, or the "None" that clients send for nothing.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	if s == "None" {
		return ""
	}
	return s
}

// no tells whether an attribute says no: "False" as tacker's clients send it, or a JSON false.
func no(m map[string]any, key string) bool {
	switch v := m[key].(type) {
	case bool:
		return !v
	case string:
		return strings.EqualFold(v, "false")
	default:
		return false
	}
}

// yes tells whether an attribute says yes.
func yes(m map[string]any, key string) bool {
	switch v := m[key].(type) {
	case bool:
		return v
	case string:
		return strings.EqualFold(v, "true")
	default:
		return false
	}
}

// unreachable is the error of a VIM that does not answer, refused that of one that refuses the login.
func unreachable(v lcm.VIM, cause error) error {
	return lcm.Titled(lcm.KindUnavailable, "VimConnectionException", "Connection to VIM %s at %s failed: %w", label(v), v.AuthURL, cause)
}

func refused(v lcm.VIM, cause error) error {
	return lcm.Titled(lcm.KindInvalid, "VimUnauthorizedException", "Authentication to VIM %s at %s failed: %w", label(v), v.AuthURL, cause)
}

func label(v lcm.VIM) string {
	if v.Name != "" {
		return fmt.Sprintf("'%s'", v.Name)
	}
	return v.ID
}
