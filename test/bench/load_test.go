package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func noGauge() cpuTimes { return cpuTimes{at: time.Now()} }

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for n := range hundred {
		hundred[n] = time.Duration(n + 1)
	}
	for _, tt := range []struct {
		d    []time.Duration
		p    int
		want time.Duration
	}{
		{nil, 50, 0}, {[]time.Duration{7}, 50, 7}, {[]time.Duration{7}, 99, 7}, {[]time.Duration{1, 2}, 50, 1}, {[]time.Duration{1, 2, 3}, 50, 2},
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred, 0, 1},
	} {
		if got := percentile(tt.d, tt.p); got != tt.want {
			t.Errorf("p%d of %d values: %d, want %d", tt.p, len(tt.d), got, tt.want)
		}
	}
}

func TestLatencyOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 1e10), func(n int64) time.Duration { return time.Duration(n) }), 1, 400).Draw(t, "durations")
		l := latencyOf(slices.Clone(d))
		if l.Count != len(d) || l.Max != slices.Max(d) || l.P50 > l.P99 || l.P99 > l.Max || l.Mean < slices.Min(d) || l.Mean > l.Max {
			t.Fatalf("%+v of %v", l, d)
		}
		for p, v := range map[int]time.Duration{50: l.P50, 99: l.P99} {
			below, to := 0, 0
			for _, x := range d {
				if x < v {
					below++
				}
				if x <= v {
					to++
				}
			}
			if to*100 < p*len(d) || below*100 >= p*len(d) {
				t.Fatalf("p%d = %d: %d of %d are below and %d do not exceed it", p, v, below, len(d), to)
			}
		}
	})
}

func TestClosedLoopCounts(t *testing.T) {
	var served atomic.Int64
	addr := testServer(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	l, err := closedLoop{addr: addr, clients: 3, total: 500, gauge: noGauge}.run(t.Context(), func(c *conn, client int) error {
		if client < 0 || client > 2 {
			t.Errorf("client %d of 3", client)
		}
		return c.get("/", nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.Latency.Count != 500 || served.Load() != 500 || l.Rate <= 0 || l.Clients != 3 {
		t.Errorf("%d served: %+v", served.Load(), l)
	}

	served.Store(0)
	l, err = closedLoop{addr: addr, clients: 2, warm: 500 * time.Millisecond, length: 2 * time.Second, gauge: noGauge}.run(t.Context(), func(c *conn, _ int) error {
		return c.get("/", nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.Latency.Count == 0 || int64(l.Latency.Count) >= served.Load() || l.Took != 2*time.Second {
		t.Errorf("%d served, the warm-up among them: %+v", served.Load(), l)
	}
}

func TestLoadsFailWithTheFirstFailure(t *testing.T) {
	var served atomic.Int64
	addr := testServer(t, func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1) > 10 {
			http.Error(w, "enough", http.StatusServiceUnavailable)
		}
	})
	show := func(c *conn, _ int) error { return c.get("/", nil) }
	_, err := closedLoop{addr: addr, clients: 4, length: time.Minute, gauge: noGauge}.run(t.Context(), show)
	if err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("the closed loop ends with %v", err)
	}
	_, err = openLoop{addr: addr, clients: 4, rate: 1000, length: time.Minute, gauge: noGauge}.run(t.Context(), show)
	if err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("the open loop ends with %v", err)
	}
}

func TestLoadsEndWithTheContext(t *testing.T) {
	addr := testServer(t, func(http.ResponseWriter, *http.Request) {})
	for name, run := range map[string]func(context.Context, operation) (Load, error){
		"closed": closedLoop{addr: addr, clients: 2, warm: time.Hour, length: time.Hour, gauge: noGauge}.run,
		"open":   openLoop{addr: addr, clients: 2, rate: 0.01, length: time.Hour, gauge: noGauge}.run,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := run(ctx, func(*conn, int) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the %s loop ends with %v", name, err)
		}
	}
}

func TestClosedLoopEndsWhenNothingIsLeft(t *testing.T) {
	var done atomic.Int64
	l, err := closedLoop{clients: 4, length: time.Hour, gauge: noGauge}.run(t.Context(), func(*conn, int) error {
		if done.Add(1) > 100 {
			return errExhausted
		}
		return nil
	})
	if err != nil || l.Latency.Count != 100 || l.Took >= time.Minute {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestOpenLoopKeepsItsRate(t *testing.T) {
	addr := testServer(t, func(http.ResponseWriter, *http.Request) {})
	l, err := openLoop{addr: addr, clients: 4, rate: 400, length: 250 * time.Millisecond, gauge: noGauge}.run(t.Context(), func(c *conn, _ int) error {
		return c.get("/", nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.Latency.Count != 100 || l.Rate != 400 {
		t.Errorf("%d requests in 250 ms at 400 /s: %+v", l.Latency.Count, l)
	}
}
