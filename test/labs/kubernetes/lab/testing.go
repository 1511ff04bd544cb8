package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTime bounds a start, the building of the program included.
const startTime = 2 * time.Hour

// shared is the control plane that the tests of one binary have in common.
var shared struct {
	mu    sync.Mutex
	plane *Plane
	err   error
}

// Main runs a test binary's tests, ends the control plane that they shared, and exits.
func Main(m *testing.M) {
	code := m.Run()
	if err := Cleanup(); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Cleanup ends the control plane that [Start] has started, if it has, for those whose TestMain is not [Main].
func Cleanup() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	p := shared.plane
	shared.plane, shared.err = nil, nil
	if p == nil || p.joined {
		return nil
	}
	return errors.Join(p.Close(), os.RemoveAll(p.Dir))
}

// Start returns the control plane that all tests of this binary share. It joins the one that runs in [Home], as `make
// lab-kubernetes` leaves it, when that is of the same sources, and else starts one.
func Start(t testing.TB) *Plane {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.plane == nil && shared.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startTime)
		defer cancel()
		shared.plane, shared.err = joinOrStart(ctx, testLog(t))
	}
	if shared.err != nil {
		t.Fatalf("start the Kubernetes lab: %v", shared.err)
	}
	return shared.plane
}

// StartOwn starts a control plane for one test, which may disturb it as it likes and with whose end it ends. Dir is
// filled in when it is empty. When the test has failed, the ends of the daemons' logs are shown.
func StartOwn(t testing.TB, o Options) *Plane {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "lab")
	}
	if o.Log == nil {
		o.Log = testLog(t)
	}
	p, err := Up(ctx, o)
	if err != nil {
		t.Fatalf("start a Kubernetes lab: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range order {
				t.Logf("the end of the log of %s:\n%s", name, p.ds[name].tail(15))
			}
		}
		if err := p.Close(); err != nil {
			t.Errorf("end the Kubernetes lab: %v", err)
		}
	})
	return p
}

// Namespace makes a namespace for one test, which is deleted when the test ends; nobody waits for that.
func (p *Plane) Namespace(t testing.TB, prefix string) string {
	t.Helper()
	name, err := p.CreateNamespace(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.dropNamespace(ctx, name); err != nil {
			t.Logf("the namespace %s stays: %v", name, err)
		}
	})
	return name
}

func joinOrStart(ctx context.Context, log *slog.Logger) (*Plane, error) {
	binary, err := Binary(ctx, log)
	if err != nil {
		return nil, err
	}
	home, err := Home()
	if err != nil {
		return nil, err
	}
	p, err := Join(ctx, filepath.Join(home, Running))
	switch {
	case err == nil && p.state.Binary == binary:
		log.Info("joined the running Kubernetes lab", "url", p.URL)
		return p, nil
	case err != nil && !errors.Is(err, ErrNotUp):
		return nil, err
	}
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	return Up(ctx, Options{Dir: dir, Log: log})
}

const dirPrefix = "vnfm-lab-kubernetes-"

// folder makes a temporary folder. Those of earlier processes that did not come to remove theirs are removed.
func folder() (string, error) {
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
	return os.MkdirTemp("", dirPrefix+strconv.Itoa(os.Getpid())+"-")
}

func testLog(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
