package openstack

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

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
		for range 75 {
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
		if most != 50 || c.total != 0 || len(c.held) != 0 || len(c.queue) != 0 {
			t.Errorf("%d at a time; left: %+v", most, c)
		}
		// A VIM that has stopped answering is not waited for; one that has only just, not for long and
		// not by all.
		for range 50 {
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
		release := make(chan struct{})
		steps := d.shared([]lcm.Step{{Name: "hang", Run: func(context.Context, *lcm.Execution) (lcm.Progress, error) {
			<-release
			return lcm.Done(), nil
		}}})
		var wg sync.WaitGroup
		begun := time.Now()
		run := func() (lcm.Progress, error) {
			return steps[0].Run(t.Context(), &lcm.Execution{Instance: newInstance(), Target: wired(), Begun: begun, Now: time.Now})
		}
		for range 2 {
			wg.Go(func() {
				if p, err := run(); err != nil || !p.Finished() {
					t.Errorf("%+v %v", p, err)
				}
			})
		}
		synctest.Wait()
		for after, want := range map[time.Duration]time.Duration{0: time.Second, 4 * time.Second: 4 * time.Second, time.Hour: mostPaused} {
			time.Sleep(time.Until(begun.Add(after)))
			p, err := run()
			if err != nil || p.Finished() || p.After() < want/2 || p.After() > 2*mostPaused {
				t.Errorf("after %s: %+v %v", after, p, err)
			}
		}
		close(release)
		wg.Wait()
		if p, err := run(); err != nil || !p.Finished() {
			t.Errorf("%+v %v", p, err)
		}
	})
}
