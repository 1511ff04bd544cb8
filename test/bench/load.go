package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// errExhausted ends a client's loop without being a failure: there is nothing left to do the operation on.
var errExhausted = errors.New("nothing is left to work on")

// operation does one measured operation over a client's connection.
type operation func(c *conn, client int) error

// gauge reads the CPU times that a measurement is charged with.
type gauge func() cpuTimes

// closedLoop is a load of clients each of which sends its next request when it has the answer to its last.
type closedLoop struct {
	addr    string
	clients int
	warm    time.Duration // not measured
	length  time.Duration // measured
	total   int           // instead of length, if greater than 0: how many operations there are in all
	gauge   gauge
}

// Load is what a load gave.
type Load struct {
	Clients int           `json:"clients"`
	Rate    float64       `json:"perSecond"`
	Took    time.Duration `json:"tookNanos"`
	Latency Latency       `json:"latency"`
	CPU     CPU           `json:"cpuPerOperation"`
	// OfPgbench is Rate in terms of pgbench's commits a second with as many clients; 0 when that was not measured.
	OfPgbench float64 `json:"ofPgbench,omitempty"`
}

// run drives the load. The first failure of an operation ends it and is returned.
func (l closedLoop) run(ctx context.Context, do operation) (Load, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begin := time.Now()
	from, to := begin.Add(l.warm), begin.Add(l.warm+l.length)
	var left atomic.Int64
	left.Store(int64(l.total))

	took := make([][]time.Duration, l.clients)
	var wg sync.WaitGroup
	for n := range l.clients {
		took[n] = make([]time.Duration, 0, 1<<14)
		wg.Go(func() {
			c := newConn(l.addr)
			defer c.close()
			for ctx.Err() == nil {
				if l.total > 0 && left.Add(-1) < 0 {
					return
				}
				start := time.Now()
				if l.total == 0 && !start.Before(to) {
					return
				}
				err := do(c, n)
				if errors.Is(err, errExhausted) {
					return
				}
				if err != nil {
					cancel(err)
					return
				}
				end := time.Now()
				if l.total > 0 || !start.Before(from) && !end.After(to) {
					took[n] = append(took[n], end.Sub(start))
				}
			}
		})
	}
	before := l.gauge()
	if l.warm > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(from)):
		}
		before = l.gauge()
	}
	wg.Wait()
	after := l.gauge()
	if err := context.Cause(ctx); err != nil {
		return Load{}, err
	}
	all := slices.Concat(took...)
	window := l.length
	if l.total > 0 || time.Now().Before(to) { // ended by what there was to do, not by the clock
		window = after.at.Sub(from)
	}
	return Load{
		Clients: l.clients, Rate: float64(len(all)) / window.Seconds(), Took: window,
		CPU: after.per(before, len(all)), Latency: latencyOf(all),
	}, nil
}

// openLoop is a load that comes at a fixed rate, whether or not earlier requests have been answered: what users do who
// do not know of one another.
type openLoop struct {
	addr    string
	clients int     // connections; enough of them that one is nearly always free
	rate    float64 // requests a second in all
	length  time.Duration
	gauge   gauge
}

// run drives the load. A request that had to wait for its connection is counted from when it was due.
func (l openLoop) run(ctx context.Context, do operation) (Load, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	every := time.Duration(float64(l.clients) / l.rate * float64(time.Second))
	took := make([][]time.Duration, l.clients)
	before := l.gauge()
	begin := time.Now()
	var wg sync.WaitGroup
	for n := range l.clients {
		wg.Go(func() {
			c := newConn(l.addr)
			defer c.close()
			due := begin.Add(every * time.Duration(n) / time.Duration(l.clients))
			for ; due.Sub(begin) < l.length; due = due.Add(every) {
				start := due
				if wait := time.Until(due); wait > 0 {
					select {
					case <-ctx.Done():
						return
					case <-time.After(wait):
					}
					start = time.Now() // the timer's own lateness is not the server's
				}
				if ctx.Err() != nil {
					return
				}
				if err := do(c, n); err != nil {
					cancel(err)
					return
				}
				took[n] = append(took[n], time.Since(start))
			}
		})
	}
	wg.Wait()
	after := l.gauge()
	if err := context.Cause(ctx); err != nil {
		return Load{}, err
	}
	all := slices.Concat(took...)
	return Load{
		Clients: l.clients, Rate: float64(len(all)) / l.length.Seconds(), Took: l.length,
		CPU: after.per(before, len(all)), Latency: latencyOf(all),
	}, nil
}
