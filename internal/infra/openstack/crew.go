package openstack

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// crew shares the workers of this process out among the VIMs, so that one that answers slowly or not at all does not hold
// them all: a VIM is given no more than half of those that the others leave.
type crew struct {
	workers int

	mu    sync.Mutex
	held  map[string]int // by VIM
	total int
	queue map[string][]chan struct{} // who waits in place, by VIM; the first first
	heard map[string]time.Time       // a VIM's last answer
}

func newCrew(workers int) *crew {
	return &crew{workers: workers, held: map[string]int{}, queue: map[string][]chan struct{}{}, heard: map[string]time.Time{}}
}

// may tells whether the VIM may have one more; c.mu is held.
func (c *crew) may(vim string) bool {
	return c.held[vim] < max(1, (c.workers-(c.total-c.held[vim]))/2)
}

func (c *crew) take(vim string) {
	c.held[vim]++
	c.total++
}

// How long a step waits in place for its turn with a VIM that has answered lately, unless a quarter of the workers do so
// already. For a VIM that has not, none does.
const (
	inPlace = 250 * time.Millisecond
	lately  = 2 * time.Second
)

// answers tells whether the VIM has answered lately; c.mu is held.
func (c *crew) answers(vim string) bool { return time.Since(c.heard[vim]) <= lately }

// join waits for a worker's turn with the VIM, not for long; ok tells whether it has come, and leave ends it.
func (c *crew) join(ctx context.Context, vim string) (leave func(), ok bool) {
	c.mu.Lock()
	if len(c.queue[vim]) == 0 && c.may(vim) {
		c.take(vim)
		c.mu.Unlock()
		return func() { c.leave(vim) }, true
	}
	waiting := 0
	for _, q := range c.queue {
		waiting += len(q)
	}
	if !c.answers(vim) || waiting >= c.workers/4 {
		c.mu.Unlock()
		return nil, false
	}
	turn := make(chan struct{})
	c.queue[vim] = append(c.queue[vim], turn)
	c.mu.Unlock()
	timer := time.NewTimer(inPlace)
	defer timer.Stop()
	select {
	case <-turn:
		return func() { c.leave(vim) }, true
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, t := range c.queue[vim] {
		if t == turn {
			c.queue[vim] = append(c.queue[vim][:n:n], c.queue[vim][n+1:]...)
			return nil, false
		}
	}
	return func() { c.leave(vim) }, true // it has come at the last moment
}

// leave gives a worker back, to whom it is due.
func (c *crew) leave(vim string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.held[vim]--; c.held[vim] == 0 {
		delete(c.held, vim)
	}
	for v, q := range c.queue {
		for len(q) > 0 && c.may(v) {
			c.take(v)
			close(q[0])
			q = q[1:]
		}
		if c.queue[v] = q; len(q) == 0 {
			delete(c.queue, v)
		}
	}
}

// answered takes note that a VIM has answered a call.
func (c *crew) answered(vim string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard[vim] = time.Now()
}

// mostPaused bounds how long a step that has not got its turn is left alone.
const mostPaused = 10 * time.Second

// pause is how long to leave a step alone that has waited for its turn for a while: not for long, if the VIM answers.
func (c *crew) pause(vim string, waited time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	least, most := time.Second, mostPaused
	if c.answers(vim) {
		least, most = inPlace, time.Second
	}
	p := min(max(waited, least), most)
	return p/2 + rand.N(p)
}

// shared has the steps take their turns with the VIM, in the region that the instance is in. One whose turn does not come
// waits without a worker: the longer, the longer it has waited.
func (d *Driver) shared(steps []lcm.Step) []lcm.Step {
	for n := range steps {
		run := steps[n].Run
		steps[n].Run = func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
			leave, ok := d.crew.join(ctx, x.Target.ID)
			if !ok {
				pause := d.crew.pause(x.Target.ID, x.Now().Sub(x.Begun))
				return lcm.Wait(pause, "VIM %s has all the workers that it may have", nameOf(x.Target)), ctx.Err()
			}
			defer leave()
			target, err := settled(x.Instance, x.Target)
			if err != nil {
				return lcm.Progress{}, err
			}
			x.Target = target
			return run(ctx, x)
		}
	}
	return steps
}

// settled is the target of an instance that has been made in a region: that one, even if the VIM's first one is another by
// now.
func settled(i *lcm.Instance, t *lcm.VimTarget) (*lcm.VimTarget, error) {
	if t.Region != "" {
		return t, nil
	}
	s, err := loadInfra(i)
	if err != nil || s.Region == "" || s.Region == regionOf(t) {
		return t, err
	}
	in := *t
	in.Region = s.Region
	return &in, nil
}
