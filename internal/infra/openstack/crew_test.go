package openstack

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// fill has a VIM take all that it is given, and returns how many that is.
func fill(ctx context.Context, c *crew, vim string) int {
	gone, cancel := context.WithCancel(ctx)
	cancel() // nobody waits in place
	n := 0
	for {
		if _, ok := c.join(gone, vim); !ok {
			return n
		}
		n++
	}
}

// TestSharesOfThoseThatAnswer has VIMs that answer, and one that does not, come for all they can get.
func TestSharesOfThoseThatAnswer(t *testing.T) {
	for _, tt := range []struct{ workers, alone int }{{1, 1}, {2, 1}, {4, 3}, {8, 6}, {100, 75}} {
		c := newCrew(tt.workers)
		c.answered("a")
		if n := fill(t.Context(), c, "a"); n != tt.alone {
			t.Errorf("%d of %d workers for the only VIM", n, tt.workers)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(100)
		c.answered("a")
		if n := fill(t.Context(), c, "dead"); n != 50 {
			t.Errorf("%d for one that does not answer", n)
		}
		if n := fill(t.Context(), c, "a"); n != 25 {
			t.Errorf("%d for one that does, beside it", n)
		}
		if n := fill(t.Context(), c, "b"); n != 12 {
			t.Errorf("%d for a third one", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(100)
		c.answered("a")
		c.answered("b")
		fill(t.Context(), c, "a")
		if n := fill(t.Context(), c, "b"); n != 12 {
			t.Errorf("%d for one that comes later", n)
		}
		for range 75 { // what one gives back goes to the other, until they have as many
			c.leave("a")
			fill(t.Context(), c, "b")
			fill(t.Context(), c, "a")
		}
		if a, b := c.held["a"], c.held["b"]; a < 30 || a > 36 || b < 30 || b > 36 {
			t.Errorf("%d and %d", a, b)
		}
		for c.held["b"] > 0 {
			c.leave("b")
		}
		time.Sleep(lately + 1)
		c.answered("a")
		fill(t.Context(), c, "a")
		if n := c.held["a"]; n != 75 {
			t.Errorf("%d when the other one is done", n)
		}
		time.Sleep(time.Hour)
		c.pause("a", "instance")
		c.forget(time.Now().Add(-time.Minute))
		if len(c.heard)+len(c.short) > 0 || len(c.waits) != 1 {
			t.Errorf("%+v", c)
		}
		c.come("instance")
		if len(c.waits) > 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestShares has VIMs come one after another for all they can get.
func TestShares(t *testing.T) {
	c := newCrew(100)
	for _, tt := range []struct {
		vim  string
		want int
	}{{"a", 50}, {"b", 25}, {"c", 13}, {"d", 6}, {"e", 3}, {"f", 2}, {"g", 1}, {"h", 1}} {
		n := 0
		for {
			if _, ok := c.join(t.Context(), tt.vim); !ok {
				break
			}
			n++
		}
		if n < tt.want-1 || n > tt.want+1 || n == 0 {
			t.Errorf("VIM %s is given %d", tt.vim, n)
		}
	}
}

// TestSharesHold draws who joins and leaves: no VIM is ever given more than its share at that time, each can have one, and
// nothing is lost.
func TestSharesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 40).Draw(t, "workers")
		c := newCrew(workers)
		held := map[string][]func(){}
		total := 0
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				vim := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "vim")
				leave, ok := c.join(context.Background(), vim)
				most := max(1, (workers-(total-len(held[vim])))/2)
				if ok != (len(held[vim]) < most) {
					t.Fatalf("%d of %d workers, %d with others: %t", len(held[vim]), workers, total-len(held[vim]), ok)
				}
				if ok {
					held[vim] = append(held[vim], leave)
					total++
				}
			},
			"leave": func(t *rapid.T) {
				vim := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "vim")
				if n := len(held[vim]); n > 0 {
					held[vim][n-1]()
					held[vim] = held[vim][:n-1]
					total--
				}
			},
			"": func(t *rapid.T) {
				if c.total != total || len(c.queue) > 0 {
					t.Fatalf("%d are held, %d counted; queue %v", total, c.total, c.queue)
				}
			},
		})
	})
}

// TestQueueInPlace has many more want a VIM that answers than may: they take turns, and none goes away.
func TestQueueInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(100)
		c.answered("a")
		var wg sync.WaitGroup
		var mu sync.Mutex
		now, most := 0, 0
		for range 100 {
			wg.Go(func() {
				leave, ok := c.join(t.Context(), "a")
				if !ok {
					t.Error("went away")
					return
				}
				defer leave()
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				now--
				mu.Unlock()
			})
		}
		wg.Wait()
		if most != 75 || c.total != 0 || len(c.held) != 0 || len(c.queue) != 0 {
			t.Errorf("%d at a time; left: %+v", most, c)
		}
		// A VIM that has stopped answering is not waited for; one that has only just, not for long and
		// not by all.
		for range 75 {
			_, _ = c.join(t.Context(), "a")
		}
		begun := time.Now()
		if _, ok := c.join(t.Context(), "a"); ok || time.Since(begun) != inPlace {
			t.Errorf("%t after %s", ok, time.Since(begun))
		}
		for range 25 {
			go func() { _, _ = c.join(t.Context(), "a") }()
		}
		synctest.Wait()
		begun = time.Now()
		if _, ok := c.join(t.Context(), "a"); ok || time.Since(begun) != 0 {
			t.Errorf("%t after %s", ok, time.Since(begun))
		}
		time.Sleep(lately + inPlace)
		begun = time.Now()
		if _, ok := c.join(t.Context(), "a"); ok || time.Since(begun) != 0 {
			t.Errorf("%t after %s", ok, time.Since(begun))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c.answered("a")
		if _, ok := c.join(ctx, "a"); ok || len(c.queue["a"]) > 0 {
			t.Errorf("who went away has joined: %t", ok)
		}
	})
}

// TestStepsWaitWithoutWorkers has more steps than may run with a VIM that does not answer: the rest waits, ever longer.
func TestStepsWaitWithoutWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Config{Workers: 4}, slog.New(slog.DiscardHandler))
		step := d.shared([]lcm.Step{{Name: "hang"}})[0]
		turn := func(x *lcm.Execution) (func(), lcm.Progress) { return step.Turn(t.Context(), x) }
		begun := time.Now()
		var leaves []func()
		for range 2 {
			leave, wait := turn(&lcm.Execution{Instance: newInstance(), Target: wired(), Now: time.Now})
			if leave == nil {
				t.Fatalf("%+v", wait)
			}
			leaves = append(leaves, leave)
		}
		x := &lcm.Execution{Instance: newInstance(), Target: wired(), Now: time.Now}
		for _, tt := range []struct{ after, want time.Duration }{{0, time.Second}, {4 * time.Second, 4 * time.Second}, {time.Hour, mostPaused}} {
			time.Sleep(time.Until(begun.Add(tt.after)))
			leave, wait := turn(x)
			if leave != nil || wait.After() < tt.want/2 || wait.After() > tt.want*3/2 {
				t.Errorf("after %s: %+v", tt.after, wait)
			}
		}
		for _, leave := range leaves {
			leave()
		}
		leave, _ := turn(x)
		if leave == nil {
			t.Fatal("it does not come")
		}
		leave()
		if len(d.crew.waits) > 0 || d.crew.total != 0 {
			t.Errorf("%+v", d.crew)
		}
	})
}

// TestUploadsTakeTurns has more steps with images to hand over than may do so at the same time: the rest waits without a
// worker, and the VIM's other steps go on.
func TestUploadsTakeTurns(t *testing.T) {
	d := New(Config{Workers: 100}, slog.New(slog.DiscardHandler))
	d.crew.answered("vim")
	steps := d.shared([]lcm.Step{{Name: imagesStep}, {Name: "other"}})
	execution := func(remote bool) *lcm.Execution {
		return &lcm.Execution{
			Op: &lcm.OpOcc{Operation: sol003.LcmOperationTypeInstantiate}, Instance: newInstance(), Target: wired(), Now: time.Now,
			Flavour: &vnfd.Flavour{SoftwareImages: []vnfd.SoftwareImage{{ID: "n", File: "f", Remote: remote}}},
		}
	}
	var leave func()
	for range mostUploads {
		if leave, _ = steps[0].Turn(t.Context(), execution(false)); leave == nil {
			t.Fatal("no turn")
		}
	}
	late := execution(false)
	if l, wait := steps[0].Turn(t.Context(), late); l != nil || wait.After() == 0 || !strings.Contains(wait.Note, "images") {
		t.Errorf("one too many: %+v", wait)
	}
	if d.crew.total != mostUploads {
		t.Errorf("%d workers are held", d.crew.total)
	}
	for name, turn := range map[string]func() (func(), lcm.Progress){
		"another step":       func() (func(), lcm.Progress) { return steps[1].Turn(t.Context(), execution(false)) },
		"Glance downloads":   func() (func(), lcm.Progress) { return steps[0].Turn(t.Context(), execution(true)) },
		"one has come about": func() (func(), lcm.Progress) { leave(); return steps[0].Turn(t.Context(), late) },
	} {
		if l, wait := turn(); l == nil {
			t.Errorf("%s: %+v", name, wait)
		}
	}
}
