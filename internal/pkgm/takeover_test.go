package pkgm_test

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
)

// TestKilledJobs kills the job before and after each step and lets another node take over.
func TestKilledJobs(t *testing.T) {
	ctx := context.Background()
	for _, step := range []string{"open", "verify", "vnfd", "onboard"} {
		for _, side := range []string{"before", "after"} {
			t.Run(step+" "+side, func(t *testing.T) {
				a := newWorld(t, pkgm.Config{})
				b := join(t, a.st, pkgm.Config{}, "node-2")
				id := a.create(t)
				if err := a.Upload(ctx, user, id, bytes.NewReader(csar(t, vnfd1))); err != nil {
					t.Fatal(err)
				}
				die(a, "onboard:"+step+":"+side, func() { _ = a.Run(ctx, id, a.triggers(t, id)[0]) })
				finished := step == "onboard" && side == "after"
				if taken := b.takeOver(t); (taken == 1) == finished {
					t.Errorf("took over %d packages", taken)
				}
				if s := b.shown(t, id); !finished && s.OnboardingState != "PROCESSING" {
					t.Errorf("%+v", s)
				}
				// The dead one comes back to life under its old fence.
				if err := a.Run(ctx, id, 2); err != nil {
					t.Error(err)
				}
				if s := b.shown(t, id); !finished && s.OnboardingState != "PROCESSING" {
					t.Errorf("a stale fence did work: %+v", s)
				}
				b.work(t, id)
				if s := b.shown(t, id); s.OnboardingState != "ONBOARDED" {
					t.Errorf("%+v", s)
				}
				if n := b.contents(t); n != 1 {
					t.Errorf("%d contents", n)
				}
			})
		}
	}
}

// takeOver waits until the server has noticed that a node's session is gone, and tells how many packages were taken over.
func (w *world) takeOver(t testing.TB) (packages int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for {
		a, err := w.st.Adopt(ctx)
		if err != nil {
			t.Fatal(err)
		}
		packages += a.Packages
		if len(a.Nodes) > 0 {
			return packages
		}
		runtime.Gosched()
	}
}

// die runs f until it comes to the point and ends it there, its node's session with it.
func die(w *world, point string, f func()) {
	w.Probe = func(at string) {
		if at == point {
			w.node.Kill()
			runtime.Goexit()
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
	w.Probe = nil
}

// TestKilledUpload: a node dies while it receives a PUT; what it goes on to do after the takeover has no effect.
func TestKilledUpload(t *testing.T) {
	ctx := context.Background()
	a := newWorld(t, pkgm.Config{})
	b := join(t, a.st, pkgm.Config{}, "node-2")
	id := a.create(t)
	half := bytes.Repeat([]byte("x"), 5<<20)
	body := io.MultiReader(bytes.NewReader(half), readerFunc(func([]byte) (int, error) {
		a.node.Kill()
		if taken := b.takeOver(t); taken != 1 {
			t.Errorf("took over %d packages", taken)
		}
		return 0, io.EOF
	}))
	err := a.Upload(ctx, user, id, body)
	refused(t, err, lcm.KindUnavailable, "")
	s := b.shown(t, id)
	if s.OnboardingState != "CREATED" || s.OnboardingFailureDetails == nil || !strings.Contains(s.OnboardingFailureDetails.Detail, "stopped before it was complete") {
		t.Errorf("%+v %+v", s, s.OnboardingFailureDetails)
	}
	if n := len(b.triggers(t, id)); n != 0 {
		t.Errorf("%d triggers", n)
	}
	if n := must[int](t)(b.st.CollectContents(ctx, 0)); n != 1 || b.contents(t) != 0 {
		t.Errorf("collected %d contents, %d are left", n, b.contents(t))
	}
	if err := b.Upload(ctx, user, id, bytes.NewReader(csar(t, vnfd1))); err != nil {
		t.Fatal(err)
	}
	b.work(t, id)
	if s := b.shown(t, id); s.OnboardingState != "ONBOARDED" {
		t.Errorf("%+v", s)
	}
}

// TestLostTrigger: a package whose trigger has vanished is triggered again; one whose trigger waits is left alone.
func TestLostTrigger(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, pkgm.Config{})
	id := w.create(t)
	if err := w.Upload(ctx, user, id, bytes.NewReader(csar(t, vnfd1))); err != nil {
		t.Fatal(err)
	}
	if taken := must[store.Adopted](t)(w.st.Adopt(ctx)); taken.Packages != 0 {
		t.Errorf("took over %+v", taken)
	}
	if _, err := w.st.Pool.Exec(ctx, `DELETE FROM river_job`); err != nil {
		t.Fatal(err)
	}
	if taken := must[store.Adopted](t)(w.st.Adopt(ctx)); taken.Packages != 1 {
		t.Errorf("took over %+v", taken)
	}
	w.work(t, id)
	if s := w.shown(t, id); s.OnboardingState != "ONBOARDED" {
		t.Errorf("%+v", s)
	}
}
