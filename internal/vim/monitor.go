package vim

import (
	"context"
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
	if !ok {
		return // a type that this node does not serve
	}
	status := lcm.VimReachable
	_, probeErr := s.probe(ctx, prober, v)
	if ctx.Err() != nil {
		return
	}
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
