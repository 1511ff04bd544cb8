package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Machine is what the figures were measured on.
type Machine struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`
	MemoryGiB  float64 `json:"memoryGiB"`
	Kernel     string  `json:"kernel"`
	Go         string  `json:"go"`
	Postgres   string  `json:"postgres"`
	FileSystem string  `json:"fileSystem"`
	LoadBefore string  `json:"loadBefore"`
	// Fsync is how long one fdatasync of 8 KiB takes where the database lies.
	Fsync *Latency `json:"fdatasync,omitempty"`
}

func describeMachine(dir string) Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Kernel: runtime.GOOS, Go: runtime.Version(), FileSystem: fileSystem(dir)}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb int64
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kb); err == nil {
			m.MemoryGiB = float64(kb) / (1 << 20)
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = runtime.GOOS + " " + strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(text)); len(f) > 0 {
			m.LoadBefore = f[0]
		}
	}
	return m
}

// fsyncBlock is what is written before each fdatasync: a page of WAL.
const fsyncBlock = 8 << 10

// measureFsync writes a page over and over into a file that is there already, as PostgreSQL does with its log, and
// times how long the disk takes to say that it has it.
func measureFsync(ctx context.Context, dir string, d time.Duration) (_ Latency, err error) {
	const pages = 512
	f, err := os.Create(filepath.Join(dir, "fdatasync"))
	if err != nil {
		return Latency{}, fmt.Errorf("measure fdatasync: %w", err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	block := make([]byte, fsyncBlock)
	for range pages {
		if _, err := f.Write(block); err != nil {
			return Latency{}, fmt.Errorf("measure fdatasync: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return Latency{}, fmt.Errorf("measure fdatasync: %w", err)
	}
	var took []time.Duration
	for begin, n := time.Now(), 0; time.Since(begin) < d && ctx.Err() == nil; n++ {
		if _, err := f.WriteAt(block, int64(n%pages)*fsyncBlock); err != nil {
			return Latency{}, fmt.Errorf("measure fdatasync: %w", err)
		}
		t := time.Now()
		if err := fdatasync(f); err != nil {
			return Latency{}, fmt.Errorf("measure fdatasync: %w", err)
		}
		took = append(took, time.Since(t))
	}
	if len(took) == 0 {
		return Latency{}, context.Cause(ctx)
	}
	return latencyOf(took), nil
}

// Latency sums up a set of durations.
type Latency struct {
	Count int           `json:"count"`
	Mean  time.Duration `json:"meanNanos"`
	P50   time.Duration `json:"p50Nanos"`
	P99   time.Duration `json:"p99Nanos"`
	Max   time.Duration `json:"maxNanos"`
}

// latencyOf sorts the durations and sums them up; none give zeros.
func latencyOf(d []time.Duration) Latency {
	if len(d) == 0 {
		return Latency{}
	}
	slices.Sort(d)
	var sum time.Duration
	for _, v := range d {
		sum += v
	}
	return Latency{Count: len(d), Mean: sum / time.Duration(len(d)), P50: percentile(d, 50), P99: percentile(d, 99), Max: d[len(d)-1]}
}

// percentile returns the least of the sorted durations that at least p percent of them do not exceed (nearest rank).
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}
