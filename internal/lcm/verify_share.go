package lcm

import (
	"context"
	"sync"
)

// flights are the looks at instances that are under way, each of which any number may wait for.
type flights struct {
	mu sync.Mutex
	by map[string]*flight // by instance
}

// flight is one look.
type flight struct {
	waiting int // of those who share it
	end     context.CancelFunc
	done    chan struct{} // closed when v and err are there
	v       *Verification
	err     error
}

// share returns what comes of the look at an instance: of the one that is under way, or of a new one. It outlives the one who
// has begun it as long as others wait for it. The last to give up ends it, and waits until it has ended.
func (f *flights) share(ctx context.Context, id string, look func(ctx context.Context) (*Verification, error)) (*Verification, error) {
	f.mu.Lock()
	one := f.by[id]
	if one == nil {
		shared, end := context.WithCancel(context.WithoutCancel(ctx))
		one = &flight{end: end, done: make(chan struct{})}
		if f.by == nil {
			f.by = map[string]*flight{}
		}
		f.by[id] = one
		go func() {
			defer end()
			one.v, one.err = look(shared)
			f.leave(id, one)
			close(one.done)
		}()
	}
	one.waiting++
	f.mu.Unlock()
	select {
	case <-one.done:
		return one.v, one.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	one.waiting--
	last := one.waiting == 0
	if last && f.by[id] == one { // who comes now has a look of his own
		delete(f.by, id)
	}
	f.mu.Unlock()
	if last {
		one.end()
		<-one.done
	}
	return nil, ctx.Err()
}

// leave takes a look away that has ended.
func (f *flights) leave(id string, one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by[id] == one {
		delete(f.by, id)
	}
}
