package pkgm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// The states, by their short names.
const (
	created    = sol003.PackageOnboardingStateTypeCreated
	onboarded  = sol003.PackageOnboardingStateTypeOnboarded
	processing = sol003.PackageOnboardingStateTypeProcessing
	uploading  = sol003.PackageOnboardingStateTypeUploading
	enabled    = sol003.PackageOperationalStateTypeEnabled
	disabled   = sol003.PackageOperationalStateTypeDisabled
	notInUse   = sol003.PackageUsageStateTypeNotInUse
)

// Store is what the service needs of the database. Every method is one transaction; errors are classed (not found,
// conflict, lcm.ErrStale).
type Store interface {
	// CreatePackage inserts a package in CREATED.
	CreatePackage(ctx context.Context, p *lcm.Package) error
	// PackageHead reads a package without its body and descriptor. Not found.
	PackageHead(ctx context.Context, s lcm.Scope, id string) (*lcm.Package, error)
	// PackageHeadByVnfd is PackageHead of the onboarded package that holds the VNFD. Not found.
	PackageHeadByVnfd(ctx context.Context, s lcm.Scope, vnfdID string) (*lcm.Package, error)
	// LoadPackage reads a whole package, whoever it belongs to. Not found.
	LoadPackage(ctx context.Context, id string) (*lcm.Package, error)
	// ChangePackage applies change to a package and writes its next version, in one transaction. Not found.
	ChangePackage(ctx context.Context, s lcm.Scope, id string, change func(*lcm.Package) error) (*lcm.Package, error)
	// DeletePackage deletes a package and returns the id of its content. Not found, conflict.
	DeletePackage(ctx context.Context, s lcm.Scope, id string) (contentID string, err error)

	// BeginUpload moves a package that admit lets pass to UPLOADING, owned by the node, and returns the fence.
	BeginUpload(ctx context.Context, s lcm.Scope, id, node string, admit func(*lcm.Package) error) (fence int64, err error)
	// BeginDownload moves a package that admit lets pass to UPLOADING from a URI and inserts the trigger.
	BeginDownload(ctx context.Context, s lcm.Scope, id string, source *lcm.PackageSource, admit func(*lcm.Package) error) error
	// ClaimPackage makes the node the owner of live work whose fence is given. ErrStale.
	ClaimPackage(ctx context.Context, id string, fence int64, node string) (*lcm.Package, error)
	// BeginContent starts a new content for a package in UPLOADING. ErrStale.
	BeginContent(ctx context.Context, packageID string, fence int64) (contentID string, err error)
	// AppendContent stores consecutive chunks, the first as number seq. ErrStale when the content has been dropped.
	AppendContent(ctx context.Context, contentID string, seq int, chunks [][]byte) error
	// CompleteContent names the content by its digest or refers to the same one that is there, and moves the package to
	// PROCESSING; with trigger, it inserts the trigger too. ErrStale.
	CompleteContent(ctx context.Context, packageID string, fence int64, sha256, sha512 []byte, size int64, trigger bool) error
	// FinishOnboarding makes the package ONBOARDED and ENABLED. ErrStale; conflict when another holds the VNFD.
	FinishOnboarding(ctx context.Context, p *lcm.Package) error
	// FailOnboarding puts the package back to CREATED with the reason and returns the id of the content it had. ErrStale.
	FailOnboarding(ctx context.Context, id string, fence int64, why *sol003.ProblemDetails) (contentID string, err error)

	// Content returns the size in bytes and the SHA-512 of a complete content. Not found.
	Content(ctx context.Context, contentID string) (size int64, sha512 []byte, err error)
	// ContentChunk returns one chunk of a content; all but the last have ChunkBytes.
	ContentChunk(ctx context.Context, contentID string, seq int) ([]byte, error)
	// DropContent deletes a content unless a package refers to it.
	DropContent(ctx context.Context, contentID string) error
	// CollectContents deletes the contents begun longer ago than age that no package refers to; it returns how many.
	CollectContents(ctx context.Context, age time.Duration) (int, error)
}

// Config is what an operator or a test may set; zero values mean the defaults.
type Config struct {
	Node            func() string // the id of this node, owner of the work it does; "" while it has none
	SizeCap         int64         // the largest zip in bytes; default 1024 GiB
	Limits          csar.Limits   // what a zip may hold; default csar.DefaultLimits
	Download        Download      // where and how packages may be downloaded
	CacheEntries    int           // how many onboarded packages are kept decoded; default 64
	CollectInterval time.Duration // how often orphan contents are looked for; default 10 minutes
	CollectAge      time.Duration // how old an orphan content must be to be deleted; default 10 minutes

	Now   func() time.Time // default time.Now
	NewID func() string    // default UUIDs version 7, whose order is that of creation
}

// Service manages VNF packages. Its methods are safe for concurrent use.
type Service struct {
	// Probe, when set before first use, is told of every step of onboarding: "onboard:<step>:before" and ":after", the
	// steps being download, open, verify, vnfd and onboard. For tests that kill.
	Probe func(point string)

	cfg    Config
	store  Store
	log    *slog.Logger
	cache  *lru[packageVersion, *lcm.Package]
	byVnfd *lru[string, *lcm.Package] // as last asked for
	byID   *lru[string, *lcm.Package] // as onboarded

	loading sync.Mutex // one decoding at a time: a burst after a start decodes a package once
}

type packageVersion struct {
	id      string
	version int64
}

// New makes a Service over a store.
func New(cfg Config, store Store, log *slog.Logger) *Service {
	if cfg.SizeCap <= 0 {
		cfg.SizeCap = 1024 << 30
	}
	if cfg.CacheEntries <= 0 {
		cfg.CacheEntries = 64
	}
	if cfg.CollectInterval <= 0 {
		cfg.CollectInterval = 10 * time.Minute
	}
	if cfg.CollectAge <= 0 {
		cfg.CollectAge = 10 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	cfg.Download = cfg.Download.withDefaults()
	return &Service{
		cfg: cfg, store: store, log: log, cache: newLRU[packageVersion, *lcm.Package](cfg.CacheEntries),
		byVnfd: newLRU[string, *lcm.Package](cfg.CacheEntries), byID: newLRU[string, *lcm.Package](cfg.CacheEntries),
	}
}

// Create makes a package resource in CREATED (SOL005 v2.6.1 §9.4.2.3.1). Invalid: userDefinedData that cannot be stored.
func (s *Service) Create(ctx context.Context, sc lcm.Scope, userDefinedData map[string]any) (*lcm.Package, error) {
	if err := storable(userDefinedData); err != nil {
		return nil, err
	}
	p := &lcm.Package{
		ID: s.cfg.NewID(), ProjectID: sc.ProjectID,
		OnboardingState: created, OperationalState: disabled, UsageState: notInUse,
		UserDefinedData: userDefinedData, Created: s.cfg.Now().UTC().Truncate(time.Microsecond),
	}
	if err := s.store.CreatePackage(ctx, p); err != nil {
		return nil, err
	}
	return p, nil
}

// storable refuses text with NUL characters, which a database cannot hold.
func storable(data map[string]any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return lcm.Errorf(lcm.KindInvalid, "Invalid input for field/attribute userDefinedData. It is not valid JSON: %w", err)
	}
	// An escaped backslash before u0000 would be text that merely looks so; dropping pairs of backslashes tells.
	if strings.Contains(strings.ReplaceAll(string(raw), `\\`, ``), `\u0000`) {
		return lcm.Errorf(lcm.KindInvalid, "Invalid input for field/attribute userDefinedData. It must not contain NUL characters.")
	}
	return nil
}

// Update changes a package's operationalState, its userDefinedData (merged key by key) or both, and returns what
// changed, userDefinedData in full (SOL005 v2.6.1 §9.4.3.3.4). hasUserData tells a userDefinedData that was given,
// though maybe empty. Invalid: neither given, or not ONBOARDED; conflict: nothing would change; not found.
func (s *Service) Update(ctx context.Context, sc lcm.Scope, id string, mods sol003.VnfPkgInfoModifications, hasUserData bool) (*sol003.VnfPkgInfoModifications, error) {
	if mods.OperationalState == "" && !hasUserData {
		return nil, lcm.Errorf(lcm.KindInvalid, "{} is not valid under any of the given schemas")
	}
	if mods.OperationalState != "" && !mods.OperationalState.Valid() {
		return nil, lcm.Errorf(lcm.KindInvalid, "Invalid input for field/attribute operationalState. Value: %s. '%s' is not one of ['ENABLED', 'DISABLED']",
			mods.OperationalState, mods.OperationalState)
	}
	if err := storable(mods.UserDefinedData); err != nil {
		return nil, err
	}
	changed := &sol003.VnfPkgInfoModifications{}
	_, err := s.store.ChangePackage(ctx, sc, id, func(p *lcm.Package) error {
		*changed = sol003.VnfPkgInfoModifications{}
		if to := mods.OperationalState; to != "" {
			switch {
			case p.OnboardingState != onboarded && (!hasUserData || to != p.OperationalState):
				// Together with user data the state it has may be repeated; a package without content is never ENABLED.
				return lcm.Errorf(lcm.KindInvalid, "Updating operational state is not allowed for VNF Package %s when onboarding state is not ONBOARDED", id)
			case p.OperationalState == to && !hasUserData:
				return lcm.Errorf(lcm.KindConflict, "VNF Package %s is already in %s operational state", id, to)
			}
			p.OperationalState, changed.OperationalState = to, to
		}
		if !hasUserData {
			return nil
		}
		merged := maps.Clone(p.UserDefinedData)
		if merged == nil {
			merged = map[string]any{}
		}
		maps.Copy(merged, mods.UserDefinedData)
		if mods.OperationalState == "" && sameJSON(merged, p.UserDefinedData) {
			return lcm.Errorf(lcm.KindConflict, "The userDefinedData provided in update request is as the existing userDefinedData of vnf package %s. Nothing to update.", id)
		}
		p.UserDefinedData, changed.UserDefinedData = merged, merged
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// sameJSON compares two maps as JSON, in which 1 and 1.0 of differing Go types are what they are written as.
func sameJSON(a, b map[string]any) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y) || reflect.DeepEqual(a, b)
}

// Delete deletes a package that is DISABLED, NOT_IN_USE and not being onboarded (SOL005 v2.6.1 §9.4.3.3.5). Not found,
// conflict.
func (s *Service) Delete(ctx context.Context, sc lcm.Scope, id string) error {
	content, err := s.store.DeletePackage(ctx, sc, id)
	if err != nil {
		return err
	}
	s.drop(ctx, content)
	return nil
}

// drop deletes a content that nobody refers to any more. What it fails to delete, Collect does later.
func (s *Service) drop(ctx context.Context, contentID string) {
	if contentID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := s.store.DropContent(ctx, contentID); err != nil {
		s.log.WarnContext(ctx, "an unused package content is left for the collector", "content", contentID, "error", err)
	}
}

// Collect deletes contents that no package refers to, from time to time until ctx is done. Any number of nodes may do so.
func (s *Service) Collect(ctx context.Context) {
	for {
		// Spread over half an interval, lest nodes that start together do it together.
		spread := time.Duration(rand.Int64N(int64(s.cfg.CollectInterval)/2 + 1)) //nolint:gosec // no secret
		timer := time.NewTimer(s.cfg.CollectInterval + spread)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		n, err := s.store.CollectContents(ctx, s.cfg.CollectAge)
		switch {
		case err != nil && ctx.Err() == nil:
			s.log.WarnContext(ctx, "collecting unused package contents failed; it is tried again", "error", err)
		case n > 0:
			s.log.InfoContext(ctx, "collected unused package contents", "count", n)
		}
	}
}

// Package returns a package by its id, with its Descriptor when ONBOARDED. The Descriptor, Images and Artifacts are
// shared: they must not be changed. Not found.
func (s *Service) Package(ctx context.Context, sc lcm.Scope, id string) (*lcm.Package, error) {
	head, err := s.store.PackageHead(ctx, sc, id)
	if err != nil {
		return nil, err
	}
	return s.whole(ctx, head)
}

// PackageByVnfd is Package of the onboarded package that holds the VNFD; with recent, possibly as it was when it was last
// asked for. Not found.
func (s *Service) PackageByVnfd(ctx context.Context, sc lcm.Scope, vnfdID string, recent bool) (*lcm.Package, error) {
	if p, ok := s.byVnfd.get(vnfdID); recent && ok && (sc.Admin || p.ProjectID == sc.ProjectID) {
		return p, nil
	}
	head, err := s.store.PackageHeadByVnfd(ctx, sc, vnfdID)
	if err != nil {
		return nil, err
	}
	p, err := s.whole(ctx, head)
	if err == nil {
		s.byVnfd.put(vnfdID, p)
	}
	return p, err
}

// Onboarded returns an onboarded package that an instance refers to, which therefore cannot go. What changes after
// onboarding (states, userDefinedData) is as it was when it was read first. Not found, conflict.
func (s *Service) Onboarded(ctx context.Context, id string) (*lcm.Package, error) {
	if p, ok := s.byID.get(id); ok {
		return p, nil
	}
	p, err := s.Package(ctx, lcm.Scope{Admin: true}, id)
	if err != nil {
		return nil, err
	}
	if p.OnboardingState != onboarded {
		return nil, lcm.Errorf(lcm.KindConflict, "VNF Package %s onboarding state is not ONBOARDED", id)
	}
	s.byID.put(id, p)
	return p, nil
}

// whole completes a head, from the cache when this version of the package is there.
func (s *Service) whole(ctx context.Context, head *lcm.Package) (*lcm.Package, error) {
	key := packageVersion{head.ID, head.Version}
	if p, ok := s.cache.get(key); ok {
		return withUsage(p, head), nil
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	if p, ok := s.cache.get(key); ok {
		return withUsage(p, head), nil
	}
	p, err := s.store.LoadPackage(ctx, head.ID)
	if err != nil {
		return nil, err
	}
	if p.OnboardingState == onboarded {
		s.cache.put(packageVersion{p.ID, p.Version}, p)
	}
	return withUsage(p, p), nil
}

// withUsage returns a copy of a cached package that the caller may change at its top level.
func withUsage(p, head *lcm.Package) *lcm.Package {
	out := *p
	out.UsageState = head.UsageState
	return &out
}

// ready reads an onboarded package; what names the resource in the refusal of others.
func (s *Service) ready(ctx context.Context, sc lcm.Scope, id, what string) (*lcm.Package, error) {
	p, err := s.Package(ctx, sc, id)
	if err != nil {
		return nil, err
	}
	if p.OnboardingState != onboarded {
		return nil, lcm.Errorf(lcm.KindConflict, "VNF Package %s %s is not ONBOARDED", id, what)
	}
	return p, nil
}

// Content opens the zip of an onboarded package and tells its size in bytes (SOL003 v2.6.1 §10.4.5.3.2). The caller
// closes it. Not found; conflict when not ONBOARDED.
func (s *Service) Content(ctx context.Context, sc lcm.Scope, id string) (io.ReadSeekCloser, int64, error) {
	p, err := s.ready(ctx, sc, id, "onboarding state")
	if err != nil {
		return nil, 0, err
	}
	r, err := s.reader(ctx, p.ContentID)
	if err != nil {
		return nil, 0, err
	}
	return nopCloser{io.NewSectionReader(r, 0, r.Size())}, r.Size(), nil
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }

// Open opens the content of an onboarded package. Reads end with ctx. The caller closes it. Not found; conflict when not
// ONBOARDED.
func (s *Service) Open(ctx context.Context, packageID string) (lcm.PackageFS, error) {
	p, err := s.ready(ctx, lcm.Scope{Admin: true}, packageID, "onboarding state")
	if err != nil {
		return nil, err
	}
	return s.open(ctx, p)
}

func (s *Service) open(ctx context.Context, p *lcm.Package) (*packageFS, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r, err := s.reader(ctx, p.ContentID)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	zip, err := csar.Open(r, r.Size(), s.cfg.Limits)
	if err != nil {
		if f := r.failure(); f != nil {
			err = f
		}
		cancel(nil)
		return nil, fmt.Errorf("open the content of vnf package %s: %w", p.ID, err)
	}
	return newPackageFS(zip, cancel), nil
}

// Vnfd opens the files of which the VNFD of an onboarded package consists (SOL003 v2.6.1 §10.4.4.3.2): their paths,
// TOSCA.meta first if there is one, then the entry definitions and what they import, to be read from the PackageFS,
// which the caller closes. Not found; conflict when not ONBOARDED.
func (s *Service) Vnfd(ctx context.Context, sc lcm.Scope, id string) (files []string, content lcm.PackageFS, err error) {
	p, err := s.ready(ctx, sc, id, "state")
	if err != nil {
		return nil, nil, err
	}
	fsys, err := s.open(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if p.MetaPath != "" {
		files = append(files, p.MetaPath)
	}
	for _, f := range p.Descriptor.Files {
		if !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	return files, fsys, nil
}

// Artifact opens one of a package's additional artifacts and tells its size in bytes (SOL003 v2.6.1 §10.4.6.3.2). The
// caller closes it. Not found: no such package or not listed in additionalArtifacts; conflict when not ONBOARDED;
// invalid when the artifact is a URL.
func (s *Service) Artifact(ctx context.Context, sc lcm.Scope, id, path string) (io.ReadSeekCloser, int64, error) {
	p, err := s.ready(ctx, sc, id, "state")
	if err != nil {
		return nil, 0, err
	}
	if !slices.ContainsFunc(p.Artifacts, func(a sol003.VnfPackageArtifactInfo) bool { return a.ArtifactPath == path }) {
		return nil, 0, lcm.Errorf(lcm.KindNotFound, "Not Found Artifact File.")
	}
	if isURL(path) {
		return nil, 0, lcm.Errorf(lcm.KindInvalid, "The artifact %s is not in the package but at that address.", path)
	}
	fsys, err := s.open(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	f, err := openSeeker(fsys, path)
	if err != nil {
		_ = fsys.Close()
		return nil, 0, fmt.Errorf("open artifact %s of vnf package %s: %w", path, id, err)
	}
	return f, f.size, nil
}

func isURL(path string) bool {
	lower := strings.ToLower(path)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}
