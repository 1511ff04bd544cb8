package vimsim

import (
	"sync"
	"time"
)

// stepClock moves only when told to.
type stepClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []stepTimer
}

type stepTimer struct {
	at time.Time
	ch chan time.Time
}

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := stepTimer{c.now.Add(d), make(chan time.Time, 1)}
	c.timers = append(c.timers, t)
	return t.ch
}

func (c *stepClock) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers) > 0
}

func (c *stepClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	left := c.timers[:0]
	for _, t := range c.timers {
		if t.at.After(c.now) {
			left = append(left, t)
			continue
		}
		t.ch <- c.now
	}
	c.timers = left
}
