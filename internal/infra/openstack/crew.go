package openstack

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// crew shares the workers of this process out among the VIMs, so that one that answers slowly or not at all does not hold
// them all. A VIM that has answered lately is given all that the others leave but a quarter of the workers, which is kept
// for whom comes next; one that has not, or when another one that has waits for its turn, half of what the others leave.
// Everyone may have one.
type crew struct {
	workers int

	mu    sync.Mutex
	held  map[string]int // by VIM
	total int
	queue map[string][]chan struct{} // who waits in place, by VIM; the first first
	heard map[string]time.Time       // a VIM's last answer
	short map[string]time.Time       // when a VIM last did not get a worker at once
	waits map[string]waiting         // who has been sent away, by VNF instance
}

// waiting is since when somebody has waited for a turn, and when it was last asked for.
type waiting struct{ since, last time.Time }

func newCrew(workers int) *crew {
	return &crew{
		workers: workers, held: map[string]int{}, queue: map[string][]chan struct{}{},
		heard: map[string]time.Time{}, short: map[string]time.Time{}, waits: map[string]waiting{},
	}
}

// may tells whether the VIM may have one more; c.mu is held.
func (c *crew) may(vim string) bool {
	left := c.workers - (c.total - c.held[vim])
	most := max(1, left/2)
	if c.answers(vim) && !c.others(vim) {
		most = max(most, left-max(1, c.workers/4))
	}
	return c.held[vim] < most
}

// others tells whether another VIM, which answers, has wanted more workers lately than it was given; c.mu is held.
func (c *crew) others(vim string) bool {
	for v, at := range c.short {
		if v != vim && time.Since(at) <= lately && c.answers(v) {
			return true
		}
	}
	return false
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
	c.short[vim] = time.Now()
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

// pause is how long to leave the step of an instance alone whose turn has not come: the longer, the longer it has waited; not
// for long, if the VIM answers.
func (c *crew) pause(vim, instance string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	w, ok := c.waits[instance]
	if !ok {
		w.since = now
	}
	w.last = now
	c.waits[instance] = w
	waited := now.Sub(w.since)
	least, most := time.Second, mostPaused
	if c.answers(vim) {
		least, most = inPlace, time.Second
	}
	p := min(max(waited, least), most)
	return p/2 + rand.N(p)
}

// come takes note that an instance's turn has come.
func (c *crew) come(instance string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, instance)
}

// forget drops what is known of VIMs and of who has waited for a turn that nobody has asked for since then.
func (c *crew) forget(then time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := func(_ string, at time.Time) bool { return at.Before(then) }
	maps.DeleteFunc(c.heard, old)
	maps.DeleteFunc(c.short, old)
	maps.DeleteFunc(c.waits, func(_ string, w waiting) bool { return w.last.Before(then) })
}

// shared has the steps take their turns with the VIM, in the region that the instance is in. One whose turn does not come
// waits without a worker, and has not begun.
func (d *Driver) shared(steps []lcm.Step) []lcm.Step {
	for n := range steps {
		run, uploads := steps[n].Run, steps[n].Name == imagesStep
		steps[n].Turn = func(ctx context.Context, x *lcm.Execution) (func(), lcm.Progress) { return d.turn(ctx, x, uploads) }
		steps[n].Run = func(ctx context.Context, x *lcm.Execution) (lcm.Progress, error) {
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

// turn is a step's turn with the VIM: a worker, and with a step that uploads images one of the VIM's uploads.
func (d *Driver) turn(ctx context.Context, x *lcm.Execution, uploads bool) (leave func(), wait lcm.Progress) {
	vim, instance := x.Target.ID, x.Instance.ID
	leave, ok := d.crew.join(ctx, vim)
	if !ok {
		return nil, lcm.Wait(d.crew.pause(vim, instance), "VIM %s has all the workers that it may have", nameOf(x.Target))
	}
	if uploads && uploading(x) {
		if t, err := d.throttleOf(x.Target); err == nil { // the step itself says what is wrong with the VIM
			done, ok := t.upload()
			if !ok {
				leave()
				return nil, lcm.Wait(d.crew.pause(vim, instance), "VIM %s is given as many images as it may at the same time", nameOf(x.Target))
			}
			worker := leave
			leave = func() { done(); worker() }
		}
	}
	d.crew.come(instance)
	return leave, lcm.Progress{}
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
