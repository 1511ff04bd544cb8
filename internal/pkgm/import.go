package pkgm

import (
	"context"
	"crypto"
	_ "crypto/sha256" // the digests that checksums are made with
	_ "crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Between two looks at a package that somebody onboards.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = time.Second
)

// opener opens a zip from its beginning; who opens it closes it.
type opener = func(ctx context.Context) (io.ReadCloser, error)

// Import onboards a package that is managed elsewhere, under the id that it is to have here, for the project of sc: it is
// made if there is none, the zip that open opens is stored as if it were uploaded, and once it is onboarded, Import
// returns. want is the checksum that the zip must have, nil for any. Of those who import the same id at the same time, on
// whichever node, one stores it; the others wait for it, and if that fails try themselves. Invalid with status 422: it
// cannot be onboarded; conflict: the package is another project's; retryable: what open gave broke off; unavailable;
// else what open failed with.
func (s *Service) Import(ctx context.Context, sc lcm.Scope, id string, want *sol003.Checksum, open opener) error {
	ctx = lcm.WithRequest(ctx, nil) // what was asked for is another thing: its account is not the package's
	admin := lcm.Scope{Admin: true}
	stored := false // by us
	pause := firstLook
	for {
		head, err := s.store.PackageHead(ctx, admin, id)
		switch {
		case lcm.Is(err, lcm.KindNotFound):
			if err := s.announce(ctx, sc, id); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case head.ProjectID != sc.ProjectID && !sc.Admin:
			return lcm.Errorf(lcm.KindConflict, "VNF package %s is another project's.", id)
		case head.OnboardingState == onboarded:
			return nil
		case head.OnboardingState == created && stored:
			return s.whyNot(ctx, id)
		case head.OnboardingState == created:
			busy, err := s.importZip(ctx, sc, id, want, open)
			if err != nil {
				return err
			}
			if stored = !busy; stored {
				pause = firstLook
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for the onboarding of vnf package %s: %w", id, context.Cause(ctx))
		case <-timer.C:
		}
		pause = min(2*pause, lastLook)
	}
}

// announce makes the package resource, unless another has just made it.
func (s *Service) announce(ctx context.Context, sc lcm.Scope, id string) error {
	p := &lcm.Package{
		ID: id, ProjectID: sc.ProjectID, OnboardingState: created, OperationalState: disabled, UsageState: notInUse,
		Created: s.cfg.Now().UTC().Truncate(time.Microsecond),
	}
	err := s.store.CreatePackage(ctx, p)
	if err == nil {
		return nil
	}
	if _, there := s.store.PackageHead(ctx, lcm.Scope{Admin: true}, id); there == nil {
		return nil
	}
	return err
}

// importZip stores the zip and has it onboarded, unless another has begun to or has deleted the package: then it is busy.
func (s *Service) importZip(ctx context.Context, sc lcm.Scope, id string, want *sol003.Checksum, open opener) (busy bool, err error) {
	digest, err := digestOf(want)
	if err != nil {
		return false, err
	}
	node := s.cfg.Node()
	if node == "" {
		return false, lcm.Errorf(lcm.KindUnavailable, "This node has not joined the others yet. Try again.")
	}
	fence, err := s.store.BeginUpload(ctx, sc, id, node, mustBeCreated)
	switch {
	case lcm.Is(err, lcm.KindConflict), lcm.Is(err, lcm.KindNotFound):
		return true, nil
	case err != nil:
		return false, err
	}
	err = s.take(ctx, id, fence, want, digest, open)
	switch {
	case err == nil:
		return false, nil
	case lcm.Is(err, lcm.KindStale):
		return false, lcm.Errorf(lcm.KindUnavailable, "Fetching VNF package %s has been given up: this node was taken for dead. Try again.", id)
	}
	s.fail(ctx, id, fence, err)
	return false, err
}

// take stores what open opens, if it is what was wanted.
func (s *Service) take(ctx context.Context, id string, fence int64, want *sol003.Checksum, digest hash.Hash, open opener) error {
	body, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	var from io.Reader = body
	if digest != nil {
		from = &checked{body, digest, want}
	}
	err = s.receive(ctx, id, fence, from, true)
	var source *errSource
	var classed *lcm.Error
	switch {
	case !errors.As(err, &source):
		return err
	case ctx.Err() != nil:
		return lcm.Errorf(lcm.KindCanceled, "The transfer of the VNF package's content broke off: %w", context.Cause(ctx))
	case errors.As(source.err, &classed):
		return classed
	default:
		return lcm.Errorf(lcm.KindRetryable, "The transfer of the VNF package's content broke off: %w", source.err)
	}
}

// whyNot tells why an onboarding failed.
func (s *Service) whyNot(ctx context.Context, id string) error {
	p, err := s.store.LoadPackage(ctx, id)
	if err != nil {
		return err
	}
	detail := "it was given up"
	if p.Failure != nil {
		detail = p.Failure.Detail
	}
	return unfit("VNF package %s could not be onboarded: %s", id, detail)
}

// unfit says that a package cannot be used.
func unfit(format string, args ...any) error {
	e := lcm.Errorf(lcm.KindInvalid, format, args...)
	e.Status = http.StatusUnprocessableEntity
	return e
}

// digests that a checksum may be made with, by their names without what spellings differ in.
var digestNames = map[string]crypto.Hash{
	"sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512,
}

// digestOf returns the hash that a checksum is made with; nil for no checksum.
func digestOf(want *sol003.Checksum) (hash.Hash, error) {
	if want == nil || want.Hash == "" {
		return nil, nil //nolint:nilnil // nothing to check
	}
	h, ok := digestNames[strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(want.Algorithm))]
	if !ok {
		return nil, unfit("The VNF package's checksum is made with %q, which is not known here.", want.Algorithm)
	}
	return h.New(), nil
}

// checked is a body that ends with an error when it is not what was wanted.
type checked struct {
	io.Reader
	digest hash.Hash
	want   *sol003.Checksum
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	_, _ = c.digest.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if got := hex.EncodeToString(c.digest.Sum(nil)); !strings.EqualFold(got, c.want.Hash) {
			return n, unfit("The VNF package's content has the %s checksum %s, not %s as it should.", c.want.Algorithm, got, c.want.Hash)
		}
	}
	return n, err
}
