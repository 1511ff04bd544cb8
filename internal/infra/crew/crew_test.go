package crew

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// fill has a VIM take all that it is given, and returns how many that is.
func fill(ctx context.Context, c *Crew, vim string) int {
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
		c := New(tt.workers)
		c.Answered("a")
		if n := fill(t.Context(), c, "a"); n != tt.alone {
			t.Errorf("%d of %d workers for the only VIM", n, tt.workers)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := New(100)
		c.Answered("a")
		if n := fill(t.Context(), c, "dead"); n != 50 {
			t.Errorf("%d for one that does not answer", n)
		}
		if n := fill(t.Context(), c, "a"); n != 38 {
			t.Errorf("%d for one that does, beside it", n)
		}
		if n := fill(t.Context(), c, "b"); n != 6 {
			t.Errorf("%d for a third one", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := New(100)
		c.Answered("a")
		c.Answered("b")
		fill(t.Context(), c, "a")
		if n := fill(t.Context(), c, "b"); n != 19 {
			t.Errorf("%d for one that comes later", n)
		}
		for range 75 { // what one gives back goes to the other, until they have as many
			c.leave("a")
			fill(t.Context(), c, "b")
			fill(t.Context(), c, "a")
		}
		if a, b := c.held["a"], c.held["b"]; a < 40 || a > 46 || b < 40 || b > 46 {
			t.Errorf("%d and %d", a, b)
		}
		for c.held["b"] > 0 {
			c.leave("b")
		}
		time.Sleep(lately + 1)
		c.Answered("a")
		fill(t.Context(), c, "a")
		if n := c.held["a"]; n != 75 {
			t.Errorf("%d when the other one is done", n)
		}
		time.Sleep(unused + 1)
		c.pause("a", "instance")
		if len(c.heard)+len(c.short) > 0 || len(c.waits) != 1 {
			t.Errorf("%+v", c)
		}
		c.come("instance")
		if len(c.waits) > 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestAskedAnew has a VIM be asked again after a long time: what it is given depends on whether it answered last time.
func TestAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(100)
		c.Answered("a")
		for _, tt := range []struct {
			answers bool
			want    int
		}{{true, 75}, {false, 75}, {false, 50}, {true, 50}, {true, 75}} {
			time.Sleep(10 * time.Minute)
			if n := fill(t.Context(), c, "a"); n != tt.want {
				t.Errorf("%d instead of %d", n, tt.want)
			}
			time.Sleep(10 * time.Second)
			if tt.answers {
				c.Answered("a")
			}
			for c.held["a"] > 0 {
				c.leave("a")
			}
		}
	})
}

// TestShares has VIMs come one after another for all they can get.
func TestShares(t *testing.T) {
	c := New(100)
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
		c := New(workers)
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
		c := New(100)
		c.Answered("a")
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
		c.Answered("a")
		if _, ok := c.join(ctx, "a"); ok || len(c.queue["a"]) > 0 {
			t.Errorf("who went away has joined: %t", ok)
		}
	})
}

// TestStepsWaitWithoutWorkers has more steps than may run with a VIM that does not answer: the rest waits, ever longer.
func TestStepsWaitWithoutWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(4)
		turn := func(x *lcm.Execution) (func(), lcm.Progress) { return c.Turn(t.Context(), x, nil) }
		execution := func(id string) *lcm.Execution {
			return &lcm.Execution{Instance: &lcm.Instance{ID: id}, Target: &lcm.VimTarget{VIM: lcm.VIM{ID: "vim", Name: "VIM0"}}}
		}
		begun := time.Now()
		var leaves []func()
		for _, id := range []string{"one", "two"} {
			leave, wait := turn(execution(id))
			if leave == nil {
				t.Fatalf("%+v", wait)
			}
			leaves = append(leaves, leave)
		}
		x := execution("three")
		for _, tt := range []struct{ after, want time.Duration }{{0, time.Second}, {4 * time.Second, 4 * time.Second}, {time.Hour, mostPaused}} {
			time.Sleep(time.Until(begun.Add(tt.after)))
			leave, wait := turn(x)
			if leave != nil || wait.After() < tt.want/2 || wait.After() > tt.want*3/2 || !strings.Contains(wait.Note, "VIM0") {
				t.Errorf("after %s: %+v", tt.after, wait)
			}
		}
		for _, leave := range leaves {
			leave()
		}
		// What the step needs besides is not to be had: the worker is not kept.
		leave, wait := c.Turn(t.Context(), x, func() (func(), string) { return nil, "no slot" })
		if leave != nil || wait.Note != "no slot" || c.total != 0 || len(c.waits) != 1 {
			t.Errorf("%+v of %+v", wait, c)
		}
		given := false
		leave, _ = c.Turn(t.Context(), x, func() (func(), string) { return func() { given = true }, "" })
		if leave == nil {
			t.Fatal("it does not come")
		}
		leave()
		if !given {
			t.Error("what the step needed besides is not given back")
		}
		if len(c.waits) > 0 || c.total != 0 {
			t.Errorf("%+v", c)
		}
	})
}
