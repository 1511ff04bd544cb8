//go:build crashpoint

package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// crashPoint kills the process, as kill -9 would, when it passes the point that VNFM_CRASH_AT names for the n-th time
// ("INSTANTIATE/infra:stack-create/after" or "…#2"). VNFM_CRASH_FILE names a file that holds such a point and may be
// written at any time: of all the processes that are given it, the first to pass the point removes it and dies. With
// VNFM_CRASH_POINTS every point passed is appended to that file. Built with the tag crashpoint, for the crash tests
// alone.
var crashPoint = func() func(string) {
	at, nth, numbered := strings.Cut(os.Getenv("VNFM_CRASH_AT"), "#")
	want := int64(1)
	if numbered {
		if n, err := strconv.ParseInt(nth, 10, 64); err == nil {
			want = n
		}
	}
	armed := os.Getenv("VNFM_CRASH_FILE")
	list := os.Getenv("VNFM_CRASH_POINTS")
	var passed atomic.Int64
	return func(point string) {
		if list != "" {
			if f, err := os.OpenFile(list, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				_, _ = f.WriteString(point + "\n")
				_ = f.Close()
			}
		}
		die := point == at && passed.Add(1) == want
		if armed != "" {
			if held, err := os.ReadFile(armed); err == nil && string(held) == point { //nolint:gosec // the test's own file
				die = os.Remove(armed) == nil || die // of several, one can remove it
			}
		}
		if die {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}()
