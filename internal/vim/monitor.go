package vim

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Monitor probes all VIMs from time to time until ctx is done and keeps their status, REACHABLE or UNREACHABLE. Any
// number of nodes may do so: the status is changed by compare-and-swap, and only when it differs.
func (s *Service) Monitor(ctx context.Context) {
	for {
		s.probeAll(ctx)
		// A tenth more or less, lest nodes that start together probe together.
		interval := s.cfg.MonitorInterval
		interval += time.Duration((rand.Float64() - 0.5) / 5 * float64(interval)) //nolint:gosec // no secret
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// probeAll probes every VIM once, some at a time, and returns when all are done.
func (s *Service) probeAll(ctx context.Context) {
	list, err := s.store.VIMs(ctx, lcm.Scope{Admin: true}, true)
	if err != nil {
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "the VIMs cannot be probed now", "error", err)
		}
		return
	}
	s.shy.keep(list)
	var wait sync.WaitGroup
	slots := make(chan struct{}, s.cfg.MonitorParallel)
	for _, v := range list {
		select {
		case <-ctx.Done():
		case slots <- struct{}{}:
			wait.Go(func() {
				defer func() { <-slots }()
				s.probeOne(ctx, v)
			})
		}
	}
	wait.Wait()
}

func (s *Service) probeOne(ctx context.Context, v lcm.VIM) {
	prober, ok := s.probers[v.Type]
	if !ok || s.shy.wait(v, s.cfg.Now()) {
		return // a type that this node does not serve, or credentials that would be refused again
	}
	status := lcm.VimReachable
	_, probeErr := s.probe(ctx, prober, v)
	if ctx.Err() != nil {
		return
	}
	s.shy.note(v, lcm.Is(probeErr, lcm.KindInvalid), s.cfg.Now(), s.cfg.MonitorInterval)
	if probeErr != nil {
		status = lcm.VimUnreachable
	}
	if status == v.Status {
		return
	}
	changed, err := s.store.SetVIMStatus(ctx, v.ID, v.Version, v.Status, status)
	switch {
	case err != nil:
		s.log.WarnContext(ctx, "the status of a VIM cannot be stored now", "vim", v.ID, "error", err)
	case changed && probeErr != nil:
		s.log.WarnContext(ctx, "a VIM has become unreachable", "vim", v.ID, "error", probeErr)
	case changed:
		s.log.InfoContext(ctx, "a VIM has become reachable", "vim", v.ID)
	}
}

// refusals remembers the VIMs that have refused the credentials that they are registered with: every further login with
// them brings the account nearer to being locked, so they are probed ever more seldom until they change.
type refusals struct {
	mu   sync.Mutex
	vims map[string]refusal
}

type refusal struct {
	version int64
	pause   time.Duration
	until   time.Time
}

// mostShy bounds the pause between two probes with refused credentials.
const mostShy = 5 * time.Minute

// wait tells whether a VIM is not to be probed yet.
func (r *refusals) wait(v lcm.VIM, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, ok := r.vims[v.ID]
	return ok && was.version == v.Version && now.Before(was.until)
}

// keep forgets all but the VIMs that there are.
func (r *refusals) keep(list []lcm.VIM) {
	there := make(map[string]bool, len(list))
	for _, v := range list {
		there[v.ID] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.vims, func(id string, _ refusal) bool { return !there[id] })
}

// note takes note of a probe's outcome: the pause after a refusal is four intervals, and four times as long each time.
func (r *refusals) note(v lcm.VIM, refused bool, now time.Time, interval time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, ok := r.vims[v.ID]
	if !refused {
		delete(r.vims, v.ID)
		return
	}
	if !ok || was.version != v.Version {
		was = refusal{version: v.Version, pause: interval}
	}
	was.pause = min(4*was.pause, max(mostShy, interval))
	was.until = now.Add(was.pause)
	if r.vims == nil {
		r.vims = map[string]refusal{}
	}
	r.vims[v.ID] = was
}
