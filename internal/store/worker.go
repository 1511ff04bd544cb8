package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// rejoinAfter is how long to wait before becoming a node again after the database was lost.
const rejoinAfter = time.Second

// leaveWithin bounds how long leaving may take on top of the time that handing over is given.
const leaveWithin = 5 * time.Second

// Serve is this process's life as a node: it works on triggers (none without cfg.RunOperation) until ctx ends, then hands over what it runs and leaves. When the session that
// proves the node alive is lost, it stops everything, since others may have taken over, and joins anew under another
// id. ready, if not nil, is told each time whether the node works. It fails only when it cannot join the first time.
func (s *Store) Serve(ctx context.Context, cfg WorkConfig, ready func(bool)) error {
	if ready == nil {
		ready = func(bool) {}
	}
	for first := true; ; first = false {
		err := s.serveOnce(ctx, cfg, ready)
		switch {
		case ctx.Err() != nil:
			return err
		case first && err != nil:
			return err
		case err != nil:
			s.Log.Error("this node does not work; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rejoinAfter):
		}
	}
}

// serveOnce is one life as a node. It returns nil when the node's session was lost, so that it is to join again.
func (s *Store) serveOnce(ctx context.Context, cfg WorkConfig, ready func(bool)) error {
	node, err := s.Join(ctx, nodeID())
	if err != nil {
		return err
	}
	if cfg.Interrupt != nil {
		node.OnCancel(cfg.Interrupt)
	}
	var work *workers
	if cfg.RunOperation != nil {
		if work, err = s.startWorkers(ctx, node.ID, cfg); err != nil {
			return errors.Join(err, node.Leave(context.WithoutCancel(ctx)))
		}
	}
	s.node.Store(&node.ID)
	s.Log.Info("this node works", "node", node.ID)
	ready(true)
	loops, stopLoops := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.watch(loops, cfg.Watch) })
	for _, loop := range cfg.Background {
		wg.Go(func() { loop(loops, node.ID) })
	}
	select {
	case <-ctx.Done():
	case <-node.Lost():
	}
	ready(false)
	stopLoops()
	wg.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.StopTimeout+leaveWithin)
	defer cancel()
	var stopErr error
	if work != nil {
		stopErr = work.stop(end)
	}
	if err := node.Leave(end); err != nil && ctx.Err() != nil {
		return fmt.Errorf("leave as node %s: %w", node.ID, err)
	}
	return stopErr
}

// NodeID returns the id under which this process is a node now, or was last; "" before it has first joined.
func (s *Store) NodeID() string {
	if id := s.node.Load(); id != nil {
		return *id
	}
	return ""
}

// watch looks for dead nodes and orphaned work until ctx ends.
func (s *Store) watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		a, err := s.Adopt(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			s.Log.Warn("looking for orphaned work failed", "error", err)
		case len(a.Nodes) > 0 || a.Operations > 0 || a.Packages > 0:
			s.Log.Info("orphaned work is taken over", "deadNodes", a.Nodes, "operations", a.Operations, "packages", a.Packages)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// nodeID names this process: the host for people, the rest for uniqueness.
func nodeID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	host, _, _ = strings.Cut(host, ".")
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8])
}
