package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/privatepg"
)

// shared is what all clusters of a process have in common: a folder, the binaries, the databases' servers.
var shared struct {
	mu       sync.Mutex
	dir      string
	binaries map[string]string // by build flags
	postgres map[bool]*privatepg.Server
	counter  atomic.Int64
}

const dirPrefix = "vnfm-harness-"

// Main runs a test binary's tests, removes all that the harness has made for them, and exits.
func Main(m *testing.M) {
	code := m.Run()
	if err := Cleanup(); err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Cleanup stops the databases' servers and removes the harness' folder. Clusters are to be closed before.
func Cleanup() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, s := range shared.postgres {
		errs = append(errs, s.Stop(ctx))
	}
	if shared.dir != "" {
		errs = append(errs, os.RemoveAll(shared.dir))
	}
	shared.dir, shared.binaries, shared.postgres = "", nil, nil
	return errors.Join(errs...)
}

// folder returns the harness' folder. Those of earlier processes that did not come to remove theirs are removed.
func folder() (string, error) {
	if shared.dir != "" {
		return shared.dir, nil
	}
	old, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range old {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		if pid, err := strconv.Atoi(text); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
	dir, err := os.MkdirTemp("", dirPrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", fmt.Errorf("make the harness' folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the database's user must pass through it
		return "", err
	}
	shared.dir = dir
	return dir, nil
}

// Binary builds ./cmd/vnfm, once a process for each set of build tags, and returns its path.
func Binary(ctx context.Context, tags ...string) (string, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	key := strings.Join(tags, ",")
	if path, ok := shared.binaries[key]; ok {
		return path, nil
	}
	dir, err := folder()
	if err != nil {
		return "", err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "vnfm-"+strconv.Itoa(len(shared.binaries)))
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", key, "-o", path, "./cmd/vnfm") //nolint:gosec // the test's own tags
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ./cmd/vnfm: %w\n%s", err, out)
	}
	if shared.binaries == nil {
		shared.binaries = map[string]string{}
	}
	shared.binaries[key] = path
	return path, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	mod := string(bytes.TrimSpace(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("find the module: not inside one")
	}
	return filepath.Dir(mod), nil
}

// database makes an empty database on the private PostgreSQL, durable (fsync on) or not.
func database(ctx context.Context, durable bool) (string, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	dir, err := folder()
	if err != nil {
		return "", err
	}
	if shared.postgres[durable] == nil {
		name := "pg"
		if durable {
			name = "pgd"
		}
		s, err := privatepg.Start(ctx, privatepg.Options{
			Dir: filepath.Join(dir, name), Unsafe: !durable, MaxConnections: 400, StartTimeout: 10 * time.Minute,
			Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		if err != nil {
			return "", err
		}
		if shared.postgres == nil {
			shared.postgres = map[bool]*privatepg.Server{}
		}
		shared.postgres[durable] = s
	}
	return shared.postgres[durable].NewDatabase(ctx, fmt.Sprintf("cluster_%d", shared.counter.Add(1)))
}
