// Package crew shares the workers of a process out among the VIMs, whatever their type, so that one that answers slowly or not
// at all does not hold them all. Drivers have their steps take turns with it (lcm.Step.Turn) and tell it when a VIM has answered.
package crew

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Crew shares the workers of this process out among the VIMs. A VIM that has answered lately is given three quarters of what
// the others leave, the rest being kept for whom comes next; one that has not, or has more than another one that has and that
// waits for its turn, half of it. Everyone may have one. It may be used by any number of steps at a time.
type Crew struct {
	workers int

	mu    sync.Mutex
	held  map[string]int // by VIM
	total int
	queue map[string][]chan struct{} // who waits in place, by VIM; the first first
	heard map[string]time.Time       // a VIM's last answer
	short map[string]time.Time       // when a VIM last did not get a worker at once
	waits map[string]waiting         // who has been sent away, by VNF instance
	swept time.Time                  // when it was last looked what is old
}

// waiting is since when somebody has waited for a turn, and when it was last asked for.
type waiting struct{ since, last time.Time }

// New returns a crew of so many workers.
func New(workers int) *Crew {
	return &Crew{
		workers: workers, held: map[string]int{}, queue: map[string][]chan struct{}{},
		heard: map[string]time.Time{}, short: map[string]time.Time{}, waits: map[string]waiting{}, swept: time.Now(),
	}
}

// may tells whether the VIM may have one more; c.mu is held.
func (c *Crew) may(vim string) bool {
	left := c.workers - (c.total - c.held[vim])
	most := max(1, left/2)
	if c.answers(vim) && !c.others(vim) {
		most = max(most, left-max(1, left/4))
	}
	return c.held[vim] < most
}

// others tells whether another VIM, which answers and has fewer workers, has wanted more lately than it was given; c.mu is
// held.
func (c *Crew) others(vim string) bool {
	for v, at := range c.short {
		if v != vim && c.held[v] < c.held[vim] && time.Since(at) <= lately && c.answers(v) {
			return true
		}
	}
	return false
}

// take gives the VIM a worker. One that answered to the end when it was last asked is thought to do so when it is asked anew;
// c.mu is held.
func (c *Crew) take(vim string) {
	if _, ok := c.heard[vim]; ok && c.held[vim] == 0 {
		c.heard[vim] = time.Now()
	}
	c.held[vim]++
	c.total++
}

// How long a step waits in place for its turn with a VIM that has answered within as long, unless a quarter of the workers do
// so already, and what counts as lately.
const (
	inPlace = 250 * time.Millisecond
	lately  = 2 * time.Second
)

// answers tells whether the VIM has answered lately; c.mu is held.
func (c *Crew) answers(vim string) bool { return time.Since(c.heard[vim]) <= lately }

// join waits for a worker's turn with the VIM, not for long; ok tells whether it has come, and leave ends it.
func (c *Crew) join(ctx context.Context, vim string) (leave func(), ok bool) {
	c.mu.Lock()
	if len(c.queue[vim]) == 0 && c.may(vim) {
		c.take(vim)
		c.mu.Unlock()
		return func() { c.leave(vim) }, true
	}
	c.short[vim] = time.Now()
	waiting := 0
	for _, q := range c.queue {
		waiting += len(q)
	}
	if time.Since(c.heard[vim]) > inPlace || waiting >= c.workers/4 {
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
func (c *Crew) leave(vim string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.held[vim]--; c.held[vim] == 0 {
		delete(c.held, vim)
		if !c.answers(vim) {
			delete(c.heard, vim)
		}
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

// Answered takes note that a VIM has answered a call.
func (c *Crew) Answered(vim string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard[vim] = time.Now()
	c.sweep()
}

// mostPaused bounds how long a step that has not got its turn is left alone.
const mostPaused = 10 * time.Second

// pause is how long to leave the step of an instance alone whose turn has not come: the longer, the longer it has waited; not
// for long, if the VIM answers.
func (c *Crew) pause(vim, instance string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	w, ok := c.waits[instance]
	if !ok {
		w.since = now
	}
	w.last = now
	c.waits[instance] = w
	c.sweep()
	waited := now.Sub(w.since)
	least, most := time.Second, mostPaused
	if c.answers(vim) {
		least, most = inPlace, time.Second
	}
	p := min(max(waited, least), most)
	return p/2 + rand.N(p)
}

// Claim is what a step needs besides a worker: it is given back by leave. When it cannot be had, wait says what is short.
type Claim func() (leave func(), wait string)

// Turn is a step's turn with its VIM: a worker and, unless also is nil, what that claims. While leave is nil it has not come:
// the step has not begun, and waits without a worker.
func (c *Crew) Turn(ctx context.Context, x *lcm.Execution, also Claim) (leave func(), wait lcm.Progress) {
	vim, instance := x.Target.ID, x.Instance.ID
	worker, ok := c.join(ctx, vim)
	if !ok {
		return nil, lcm.Wait(c.pause(vim, instance), "VIM %s has all the workers that it may have", cmp.Or(x.Target.Name, vim))
	}
	leave = worker
	if also != nil {
		done, short := also()
		if done == nil {
			worker()
			return nil, lcm.Wait(c.pause(vim, instance), "%s", short)
		}
		leave = func() { done(); worker() }
	}
	c.come(instance)
	return leave, lcm.Progress{}
}

// come takes note that an instance's turn has come.
func (c *Crew) come(instance string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, instance)
}

// Workers is how many there are.
func (c *Crew) Workers() int { return c.workers }

// unused is how long nobody has asked for something when what is known of it is forgotten.
const unused = time.Hour

// sweep forgets VIMs, and who has waited for a turn, that nobody has asked for any more, looking once in a while; c.mu is held.
func (c *Crew) sweep() {
	now := time.Now()
	if now.Sub(c.swept) < unused/10 {
		return
	}
	c.swept = now
	then := now.Add(-unused)
	old := func(_ string, at time.Time) bool { return at.Before(then) }
	maps.DeleteFunc(c.heard, old)
	maps.DeleteFunc(c.short, old)
	maps.DeleteFunc(c.waits, func(_ string, w waiting) bool { return w.last.Before(then) })
}
