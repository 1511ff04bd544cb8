package pkgm

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// cleanupTime is how long putting a package back to CREATED may take when the request that failed is gone already.
const cleanupTime = 30 * time.Second

func mustBeCreated(p *lcm.Package) error {
	if p.OnboardingState != created {
		return lcm.Errorf(lcm.KindConflict, "VNF Package %s onboarding state is not CREATED", p.ID)
	}
	return nil
}

// Upload stores the zip that body streams and has it onboarded (SOL005 v2.6.1 §9.4.5.3.3): when it returns nil the
// content is stored and the onboarding will be done or fail visibly, whatever happens to this node. Not found; conflict
// when the package is not in CREATED; too large; canceled when ctx ends. After every other failure, too, the package is
// back in CREATED with onboardingFailureDetails and nothing of the content is kept.
func (s *Service) Upload(ctx context.Context, sc lcm.Scope, id string, body io.Reader) error {
	node := s.cfg.Node()
	if node == "" { // nobody would find the upload orphaned if we died
		return lcm.Errorf(lcm.KindUnavailable, "This node has not joined the others yet. Try again.")
	}
	fence, err := s.store.BeginUpload(ctx, sc, id, node, mustBeCreated)
	if err != nil {
		return err
	}
	err = s.receive(ctx, id, fence, body, true)
	if err == nil {
		return nil
	}
	var source *errSource
	switch {
	case lcm.Is(err, lcm.KindStale):
		return lcm.Errorf(lcm.KindUnavailable, "The upload of VNF package %s has been given up: this node was taken for dead. Upload it again.", id)
	case errors.As(err, &source):
		err = lcm.Errorf(lcm.KindCanceled, "The upload of the VNF package's content broke off: %w", source.err)
	case ctx.Err() != nil:
		err = lcm.Errorf(lcm.KindCanceled, "The upload of the VNF package's content broke off: %w", context.Cause(ctx))
	}
	s.fail(ctx, id, fence, err)
	return err
}

// receive stores body as the content of a package in UPLOADING and moves it to PROCESSING.
func (s *Service) receive(ctx context.Context, id string, fence int64, body io.Reader, trigger bool) error {
	content, err := s.store.BeginContent(ctx, id, fence)
	if err != nil {
		return err
	}
	d, err := s.put(ctx, content, body)
	if err != nil {
		return err
	}
	return s.store.CompleteContent(ctx, id, fence, d.sha256, d.sha512, d.size, trigger)
}

// fail puts a package back to CREATED with the reason, also when ctx is done.
func (s *Service) fail(ctx context.Context, id string, fence int64, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	content, err := s.store.FailOnboarding(ctx, id, fence, problem(why))
	switch {
	case lcm.Is(err, lcm.KindStale):
		return // somebody else decides about the package now
	case err != nil:
		s.log.ErrorContext(ctx, "a vnf package could not be put back to CREATED", "package", id, "reason", why, "error", err)
		return
	}
	s.log.WarnContext(ctx, "onboarding of a vnf package failed", "package", id, "reason", why)
	s.drop(ctx, content)
}

// maxDiagnostics is how many findings about a VNFD onboardingFailureDetails names.
const maxDiagnostics = 20

// problem tells a package's owner why it was not onboarded. The texts of our own and the database's failures stay out.
func problem(err error) *sol003.ProblemDetails {
	var (
		diags   vnfd.Diagnostics
		archive *csar.Error
		classed *lcm.Error
	)
	switch {
	case errors.As(err, &diags):
		var b strings.Builder
		for i, d := range diags {
			if i == maxDiagnostics {
				fmt.Fprintf(&b, "\nand %d more", len(diags)-i)
				break
			}
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "%s (rule %s)", d, d.Rule)
		}
		return &sol003.ProblemDetails{Status: 400, Title: "Invalid VNFD", Detail: b.String()}
	case errors.As(err, &archive):
		detail := archive.Detail
		if archive.Path != "" && !strings.Contains(detail, archive.Path) {
			detail = archive.Path + ": " + detail
		}
		return &sol003.ProblemDetails{Status: 400, Title: "Invalid VNF package", Detail: fmt.Sprintf("%s (rule %s)", detail, archive.Rule)}
	case errors.As(err, &classed):
		p := &sol003.ProblemDetails{Status: 400, Title: "Onboarding failed", Detail: classed.Detail}
		switch classed.Kind {
		case lcm.KindConflict:
			p.Status = 409
		case lcm.KindTooLarge:
			p.Status = 413
		case lcm.KindUnavailable, lcm.KindRetryable, lcm.KindCanceled:
			p.Status = 503
		}
		return p
	default:
		return &sol003.ProblemDetails{Status: 500, Title: "Onboarding failed", Detail: "The VNF package could not be stored. Upload it again."}
	}
}

// UploadFromURI accepts the download and onboarding of a zip (SOL005 v2.6.1 §9.4.6.3.1). Not found; conflict when the
// package is not in CREATED; invalid when the URI is not one that packages may be downloaded from.
func (s *Service) UploadFromURI(ctx context.Context, sc lcm.Scope, id string, req sol003.UploadVnfPackageFromUriRequest) error {
	// The package's existence and state go before the URI: a URI that is refused says nothing about the package.
	head, err := s.store.PackageHead(ctx, sc, id)
	if err != nil {
		return err
	}
	if err := mustBeCreated(head); err != nil {
		return err
	}
	if _, err := s.cfg.Download.parse(req.AddressInformation); err != nil {
		return err
	}
	return s.store.BeginDownload(ctx, sc, id, &lcm.PackageSource{
		AddressInformation: req.AddressInformation, UserName: req.UserName, Password: lcm.Secret(req.Password),
	}, mustBeCreated)
}

// Run does the onboarding that a trigger names, from wherever it stands. nil: it is done, or the package was put back to
// CREATED, or somebody else owns it now. Any other error is ours, not the package's: run it again.
func (s *Service) Run(ctx context.Context, packageID string, fence int64) error {
	p, err := s.store.ClaimPackage(ctx, packageID, fence, s.cfg.Node())
	if lcm.Is(err, lcm.KindStale) {
		return nil
	}
	if err != nil {
		return err
	}
	log := s.log.With("package", packageID, "fence", fence)
	started := s.cfg.Now()
	err = s.onboard(ctx, p)
	var own *runError
	switch {
	case err == nil:
		log.InfoContext(ctx, "onboarded a vnf package", "vnfd", p.Descriptor.ID, "took", s.cfg.Now().Sub(started))
		return nil
	case lcm.Is(err, lcm.KindStale):
		log.InfoContext(ctx, "the onboarding has been taken over")
		return nil
	case errors.As(err, &own), ctx.Err() != nil:
		return fmt.Errorf("onboard vnf package %s: %w", packageID, err)
	default:
		s.fail(ctx, packageID, fence, err)
		return nil
	}
}

// runError is a failure of ours in the course of a job.
type runError struct{ err error }

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// ours marks err as a failure of ours; errors that blame the package or the takeover pass.
func ours(err error) error {
	var classed *lcm.Error
	if err == nil || errors.As(err, &classed) && classed.Kind != lcm.KindInternal {
		return err
	}
	return &runError{err}
}

// step runs one step between its probes.
func (s *Service) step(ctx context.Context, name string, run func() error) error {
	if err := context.Cause(ctx); err != nil {
		return &runError{err}
	}
	s.probe("onboard:" + name + ":before")
	if err := run(); err != nil {
		return err
	}
	s.probe("onboard:" + name + ":after")
	return nil
}

func (s *Service) probe(point string) {
	if s.Probe != nil {
		s.Probe(point)
	}
}

// onboard takes the steps and fills in p.
func (s *Service) onboard(ctx context.Context, p *lcm.Package) error {
	if p.OnboardingState == uploading {
		if err := s.step(ctx, "download", func() error { return s.download(ctx, p) }); err != nil {
			return err
		}
		whole, err := s.store.LoadPackage(ctx, p.ID)
		if err != nil {
			return ours(err)
		}
		if whole.Fence != p.Fence {
			return lcm.ErrStale
		}
		p.ContentID, p.OnboardingState = whole.ContentID, whole.OnboardingState
	}
	reader, err := s.reader(ctx, p.ContentID)
	if err != nil {
		return &runError{err}
	}
	_, sum, err := s.store.Content(ctx, p.ContentID)
	if err != nil {
		return &runError{err}
	}
	p.Checksum = &sol003.Checksum{Algorithm: "sha512", Hash: hex.EncodeToString(sum)}
	// blame tells whether a step's error is the package's or came from reading what we have stored.
	blame := func(err error) error {
		if err == nil {
			return nil
		}
		if f := reader.failure(); f != nil {
			return &runError{f}
		}
		return err
	}

	var zip *csar.Package
	if err := s.step(ctx, "open", func() (err error) {
		zip, err = csar.Open(reader, reader.Size(), s.cfg.Limits)
		return blame(err)
	}); err != nil {
		return err
	}
	if err := s.step(ctx, "verify", func() error { return blame(zip.Verify(ctx)) }); err != nil {
		return err
	}
	if err := s.step(ctx, "vnfd", func() (err error) {
		p.Descriptor, err = vnfd.Read(zip.FS(), zip.Entry())
		return blame(err)
	}); err != nil {
		return err
	}
	p.Entry, p.MetaPath = zip.Entry(), zip.MetaPath()
	p.Images = images(p.ID, p.Descriptor, s.cfg.Now().UTC())
	p.Artifacts = artifacts(zip)
	return s.step(ctx, "onboard", func() error { return ours(s.store.FinishOnboarding(ctx, p)) })
}

// images lists the software images of all flavours, each node once, as VnfPackageSoftwareImageInfo (SOL003 v2.6.1
// §10.5.3.2). imagePath is where the API has the image's file, or the image's own URL.
func images(packageID string, d *vnfd.Descriptor, now time.Time) []sol003.VnfPackageSoftwareImageInfo {
	var list []sol003.VnfPackageSoftwareImageInfo
	for _, f := range d.Flavours {
		for _, img := range f.SoftwareImages {
			info := sol003.VnfPackageSoftwareImageInfo{
				Id: img.ID, Name: img.Name, Provider: img.Provider, Version: img.Version,
				Checksum:        sol003.Checksum{Algorithm: img.Checksum.Algorithm, Hash: img.Checksum.Hash},
				ContainerFormat: img.ContainerFormat, DiskFormat: img.DiskFormat, CreatedAt: now,
				MinDisk: img.MinDisk, MinRam: img.MinRAM, Size: img.Size, UserMetadata: map[string]any{},
			}
			switch {
			case img.Remote:
				info.ImagePath = img.File
			case img.File != "":
				info.ImagePath = "/vnfpkgm/v1/vnf_packages/" + packageID + "/artifacts/" + (&url.URL{Path: img.File}).EscapedPath()
			}
			if !slices.ContainsFunc(list, func(o sol003.VnfPackageSoftwareImageInfo) bool { return o.Id == info.Id && o.Name == info.Name }) {
				list = append(list, info)
			}
		}
	}
	return list
}

// artifacts lists what TOSCA.meta and the manifest declare, as VnfPackageArtifactInfo (SOL003 v2.6.1 §10.5.3.3).
func artifacts(zip *csar.Package) []sol003.VnfPackageArtifactInfo {
	var list []sol003.VnfPackageArtifactInfo
	for _, a := range zip.Artifacts() {
		list = append(list, sol003.VnfPackageArtifactInfo{
			ArtifactPath: a.Path, Checksum: sol003.Checksum{Algorithm: a.Algorithm, Hash: a.Hash}, Metadata: map[string]any{},
		})
	}
	return list
}
