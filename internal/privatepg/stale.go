package privatepg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clearStale ends a server that an earlier owner of the folder left behind, and removes a pid file whose number now
// belongs to some other program. The caller holds the folder's lock, so nobody else can be using it.
func clearStale(ctx context.Context, dataDir string, log *slog.Logger) error {
	pidFile := filepath.Join(dataDir, "postmaster.pid")
	pid, err := readPID(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !alive(pid) {
		return nil // the server itself clears this up, with more checks than we could make
	}
	if !serves(pid, dataDir) {
		log.Info("removing a stale pid file: the number belongs to another program", "file", pidFile, "pid", pid)
		if err := os.Remove(pidFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the stale %s: %w", pidFile, err)
		}
		return nil
	}
	log.Info("ending a PostgreSQL that an earlier run left behind", "pid", pid, "folder", dataDir)
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGINT, 5 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		if err := syscall.Kill(pid, step.sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end the PostgreSQL left behind (process %d): %w", pid, err)
		}
		gone, err := awaitGone(ctx, pid, dataDir, step.wait)
		if err != nil {
			return err
		}
		if gone {
			return nil
		}
	}
	return fmt.Errorf("the PostgreSQL left behind in %s (process %d) does not end", dataDir, pid)
}

func awaitGone(ctx context.Context, pid int, dataDir string, limit time.Duration) (bool, error) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if !alive(pid) || !serves(pid, dataDir) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("wait for the PostgreSQL left behind (process %d): %w", pid, context.Cause(ctx))
		case <-deadline.C:
			return false, nil
		case <-tick.C:
		}
	}
}

// readPID reads the first line of a postmaster.pid.
func readPID(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 {
		// A file cut short by a crash names nobody.
		return 0, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return pid, nil
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// serves tells whether a process is the server of the data folder: a postmaster's working folder is its data folder.
// A zombie has none and serves nothing.
func serves(pid int, dataDir string) bool {
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		return false
	}
	want, err := filepath.EvalSymlinks(dataDir)
	return err == nil && cwd == want
}
