package openstack

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/infra/infratest"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
)

// TestPatienceWithGlance has Glance fail when the images have been in the making for longer than a stack is given: that it does
// so once is waited for, that it does so for ever is not, and is told apart from the time before.
func TestPatienceWithGlance(t *testing.T) {
	const before = 20 * time.Minute
	for name, times := range map[string]int{"once": 1, "for ever": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, vimsim.Config{}, Config{PollMin: time.Second, PollMax: 20 * time.Second})
			l.clock = infratest.NewClock(time.Now())
			begun := l.clock.Now()
			fsys, f := testPackage(t, "cluster", "complex")
			x := l.instantiate(newInstance(), f, fsys, clusterRequest(""))
			r, first := l.runner(), true
			r.Before = func(step string) {
				if step == "images" && first {
					first = false
					l.clock.Advance(before)
					l.sim.Cloud.AddFault(vimsim.Fault{
						ResourceType: "glance", Effect: vimsim.EffectHTTP, Status: http.StatusServiceUnavailable, Times: times,
					})
				}
			}
			err := r.Run(t.Context(), x)
			if times > 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !lcm.Is(err, lcm.KindTerminal) || !strings.Contains(err.Error(), "failed during pre-instantiation due to error: ") {
				t.Errorf("%v", err)
			}
			given := l.driver.cfg.StackTimeout
			if took := l.clock.Now().Sub(begun) - before; took < given || took > given+time.Minute {
				t.Errorf("it has been waited for %s", took)
			}
		})
	}
}

// TestPatience counts the failures between which nothing came nearer to its end.
func TestPatience(t *testing.T) {
	l := newLab(t, vimsim.Config{}, Config{PollMin: time.Second, PollMax: 20 * time.Second})
	clock := infratest.NewClock(time.Now())
	fsys, f := testPackage(t, "cluster", "complex")
	x := l.instantiate(newInstance(), f, fsys, clusterRequest(""))
	x.Now, x.Begun = clock.Now, clock.Now()
	w := new(work)
	for _, step := range []struct {
		after, took time.Duration
		images      int
		again, want time.Duration // 0: it is over
		retry       bool          // the operation is retried first
	}{
		{after: 30 * time.Minute, want: time.Second},
		{after: 9 * time.Minute, want: time.Second},
		{after: 0, again: 5 * time.Minute, want: time.Minute},
		{after: 0, images: 1, again: 5 * time.Minute, want: 5 * time.Minute},
		{after: 9 * time.Minute, want: time.Second},
		{after: time.Minute, want: 0},
		{after: time.Hour, images: 1, want: time.Second, retry: true},
		{after: 10 * time.Minute, images: 1, want: 0},
		{after: 11 * time.Minute, took: 11 * time.Minute, images: 1, want: time.Second},
	} {
		clock.Advance(step.after)
		if step.retry {
			x.Begun = clock.Now()
		}
		w.Images = make([]nodeImage, step.images)
		p, err := l.driver.patience(x, w, clock.Now().Add(-step.took), &lcm.Error{Kind: lcm.KindRetryable, Detail: "away", Again: step.again})
		if (err == nil) != (step.want > 0) || err != nil && !lcm.Is(err, lcm.KindTerminal) || p.After() != step.want {
			t.Errorf("%+v: waits %s, %v", step, p.After(), err)
		}
	}
}
