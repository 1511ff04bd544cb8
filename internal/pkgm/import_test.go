package pkgm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

const imported = "11111111-ebca-4fa7-95ed-4840d70a1177"

// opens gives a zip and counts how often.
func opens(zip []byte) (func(context.Context) (io.ReadCloser, error), *atomic.Int64) {
	var n atomic.Int64
	return func(context.Context) (io.ReadCloser, error) {
		n.Add(1)
		return io.NopCloser(bytes.NewReader(zip)), nil
	}, &n
}

// works runs what triggers the package has, over and over, as workers do, until the test ends.
func (w *world) works(t *testing.T, id string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, fence := range w.triggers(t, id) {
				if err := w.Run(ctx, id, fence); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestImport(t *testing.T) {
	zip := csar(t, vnfd1)
	s256, s384, s512 := sha256.Sum256(zip), sha512.Sum384(zip), sha512.Sum512(zip)
	for name, c := range map[string]struct {
		want *sol003.Checksum
		says string
	}{
		"no checksum": {},
		"SHA-256":     {want: &sol003.Checksum{Algorithm: "SHA-256", Hash: strings.ToUpper(hex.EncodeToString(s256[:]))}},
		"sha384":      {want: &sol003.Checksum{Algorithm: "sha384", Hash: hex.EncodeToString(s384[:])}},
		"sha_512":     {want: &sol003.Checksum{Algorithm: "sha_512", Hash: hex.EncodeToString(s512[:])}},
		"no hash":     {want: &sol003.Checksum{Algorithm: "sha512"}},
		"another":     {want: &sol003.Checksum{Algorithm: "sha512", Hash: "abcd"}, says: "not abcd as it should"},
		"unknown":     {want: &sol003.Checksum{Algorithm: "md5", Hash: "abcd"}, says: `"md5", which is not known here`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pkgm.Config{})
			w.works(t, imported)
			open, opened := opens(zip)
			err := w.Import(context.Background(), user, imported, c.want, open)
			if c.says != "" {
				var e *lcm.Error
				if !errors.As(err, &e) || e.Status != 422 || !strings.Contains(e.Detail, c.says) {
					t.Fatalf("%v; want %q", err, c.says)
				}
				if s := w.shown(t, imported); s.OnboardingState != "CREATED" || w.contents(t) != 0 {
					t.Errorf("%+v", s)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := w.shown(t, imported); s.OnboardingState != "ONBOARDED" || s.OperationalState != "ENABLED" || s.VnfdId != vnfd1 {
				t.Errorf("%+v", s)
			}
			// Once it is there it is not opened again.
			if err := w.Import(context.Background(), user, imported, c.want, open); err != nil || opened.Load() != 1 {
				t.Errorf("%v, opened %d times", err, opened.Load())
			}
		})
	}
}

func TestImportFails(t *testing.T) {
	ctx := context.Background()
	zip := csar(t, vnfd1)
	w := newWorld(t, pkgm.Config{SizeCap: 1 << 20})
	w.works(t, imported)
	open := func(body io.Reader, err error) func(context.Context) (io.ReadCloser, error) {
		return func(context.Context) (io.ReadCloser, error) {
			if err != nil {
				return nil, err
			}
			return io.NopCloser(body), nil
		}
	}
	broken := io.MultiReader(bytes.NewReader(zip[:len(zip)/2]), &failing{errors.New("gone away")})
	refused(t, w.Import(ctx, user, imported, nil, open(nil, lcm.Errorf(lcm.KindRetryable, "not now"))), lcm.KindRetryable, "not now")
	refused(t, w.Import(ctx, user, imported, nil, open(nil, lcm.Errorf(lcm.KindConflict, "not so"))), lcm.KindConflict, "not so")
	refused(t, w.Import(ctx, user, imported, nil, open(broken, nil)), lcm.KindRetryable, "The transfer of the VNF package's content broke off: gone away")
	refused(t, w.Import(ctx, user, imported, nil, open(&failing{lcm.Errorf(lcm.KindTerminal, "forbidden")}, nil)), lcm.KindTerminal, "forbidden")
	refused(t, w.Import(ctx, user, imported, nil, open(bytes.NewReader(make([]byte, 2<<20)), nil)), lcm.KindTooLarge, "")
	refused(t, w.Import(ctx, user, imported, nil, open(strings.NewReader("no zip"), nil)), lcm.KindInvalid, "")
	refused(t, w.Import(ctx, other, imported, nil, open(bytes.NewReader(zip), nil)), lcm.KindConflict, "VNF package "+imported+" is another project's.")
	if err := w.Import(ctx, user, "no uuid", nil, open(bytes.NewReader(zip), nil)); err == nil {
		t.Error("an id that is none passes")
	}
	stopped, cancel := context.WithCancelCause(ctx)
	cancel(lcm.ErrShutdown)
	if err := w.Import(stopped, user, imported, nil, open(bytes.NewReader(zip), nil)); err == nil {
		t.Error("it goes on after the end")
	}
	if s := w.shown(t, imported); s.OnboardingState != "CREATED" || w.contents(t) != 0 {
		t.Errorf("%+v, %d contents", s, w.contents(t))
	}
	// The VNFD is another package's already.
	w.onboard(t, vnfd1)
	refused(t, w.Import(ctx, user, imported, nil, open(bytes.NewReader(zip), nil)), lcm.KindInvalid,
		"VNF package "+imported+" could not be onboarded: Vnf package with vnfd id "+vnfd1+" already exists.")

	lonely := pkgm.New(pkgm.Config{Node: func() string { return "" }}, w.st, storetest.Log())
	refused(t, lonely.Import(ctx, user, imported, nil, open(bytes.NewReader(zip), nil)), lcm.KindUnavailable, "This node has not joined the others yet. Try again.")
}

// TestImporterDies: who waits for another's import goes on when the other has died.
func TestImporterDies(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	a := newWorld(t, pkgm.Config{})
	b := join(t, a.st, pkgm.Config{}, "node-2")
	b.works(t, imported)
	begun, end := make(chan struct{}), make(chan struct{})
	dead := make(chan error)
	go func() {
		dead <- a.Import(ctx, user, imported, nil, func(context.Context) (io.ReadCloser, error) {
			close(begun)
			<-end
			return nil, lcm.Errorf(lcm.KindTerminal, "from the grave")
		})
	}()
	<-begun
	open, opened := opens(csar(t, vnfd1))
	done := make(chan error)
	go func() { done <- b.Import(ctx, user, imported, nil, open) }()
	a.node.Kill()
	if n := b.takeOver(t); n != 1 {
		t.Errorf("took over %d packages", n)
	}
	if err := <-done; err != nil || opened.Load() != 1 {
		t.Fatalf("%v, opened %d times", err, opened.Load())
	}
	close(end)
	if err := <-dead; err == nil {
		t.Error("the dead one succeeded")
	}
	if s := b.shown(t, imported); s.OnboardingState != "ONBOARDED" {
		t.Errorf("%+v", s)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }
