package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	serverPackage = "github.com/seed-f1a0ccf1/vnfm/cmd/vnfm"
	startTimeout  = 30 * time.Second
	stopTimeout   = 20 * time.Second
)

// build compiles the server as it is shipped and returns the binary's path.
func build(ctx context.Context, dir string) (string, error) {
	bin := filepath.Join(dir, "vnfm")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", bin, serverPackage)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", serverPackage, err, bytes.TrimSpace(out))
	}
	return bin, nil
}

// server is a running vnfm serve.
type server struct {
	addr  string // of the API
	debug string // of /debug/pprof
	ready time.Duration
	cmd   *exec.Cmd
	log   *tail
	done  chan struct{} // closed when the process has ended
	err   error         // set before
}

// serverOptions say how to start one.
type serverOptions struct {
	bin, databaseURL, keyFile string
	maxConns                  int
}

// startServer starts the binary and returns once it says that it is ready, with how long that took from exec.
func startServer(ctx context.Context, o serverOptions) (*server, error) {
	addr, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	debug, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &server{addr: addr, debug: debug, log: &tail{}, done: make(chan struct{})}
	s.cmd = exec.Command(o.bin, "serve")
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = childAttr()
	s.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"VNFM_LISTEN=" + addr, "VNFM_DEBUG_LISTEN=" + debug, "VNFM_DATABASE_URL=" + o.databaseURL,
		"VNFM_DATABASE_MAX_CONNS=" + strconv.Itoa(o.maxConns), "VNFM_SECRETS_KEY_FILE=" + o.keyFile,
		"VNFM_LOG_LEVEL=error", "VNFM_VIM_ALLOW_FAKE=true", "VNFM_NOTIFY_ALLOW=127.0.0.0/8",
	}
	begin := time.Now()
	started := make(chan error, 1)
	go func() {
		// The kernel ends the child with the thread that started it, so that thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.done)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.err = s.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", o.bin, err)
	}
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.ready = time.Since(begin)
	return s, nil
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// awaitReady asks until the server answers that it is ready.
func (s *server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	c := newConn(s.addr)
	defer c.close()
	for {
		if a, err := c.do("GET", "/readyz", "", nil); err == nil && a.status == http.StatusOK {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("vnfm serve ended at once (%w); it said: %s", orExit(s.err), s.log)
		case <-ctx.Done():
			return fmt.Errorf("vnfm serve is not ready (%w); it said: %s", context.Cause(ctx), s.log)
		case <-tick.C:
		}
	}
}

func orExit(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// stop asks the server to end, makes it when it doesn't, and waits.
func (s *server) stop() error {
	select {
	case <-s.done:
		return nil
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop vnfm serve: %w", err)
	}
	select {
	case <-s.done:
		return nil
	case <-time.After(stopTimeout):
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	return fmt.Errorf("vnfm serve did not end within %s and was killed; it said: %s", stopTimeout, s.log)
}

// profile takes a profile (profile, heap, …) into a file while load, if there is one, runs again and again.
func (s *server) profile(ctx context.Context, kind, file string, seconds int, load func(context.Context) error) error {
	url := "http://" + s.debug + "/debug/pprof/" + kind
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var loadErr error
	var wg sync.WaitGroup
	if load != nil {
		url += "?seconds=" + strconv.Itoa(seconds)
		wg.Go(func() {
			for loadErr == nil && ctx.Err() == nil {
				loadErr = load(ctx)
			}
			cancel() // without its load a profile shows nothing
		})
	}
	err := fetch(ctx, url, file)
	cancel() // the load ends with the profile
	wg.Wait()
	if loadErr != nil && !errors.Is(loadErr, context.Canceled) {
		err = loadErr
	}
	if err != nil {
		return fmt.Errorf("profile the server: %w", err)
	}
	return nil
}

// plumbing are the functions that every request or job passes through, which say nothing about any.
const plumbing = `^net/http|go-chi|MiddlewareChain|jobexecutor|riverplugin|wrapperWorkUnit|httpapi\.(New|\(\*server\)|versioned)|StrictHandler|ServerInterfaceWrapper|strictHandler|^runtime\.(goexit|main|mcall|systemstack)`

// printProfile writes the top of a profile, flat and cumulative, as `go tool pprof` tells it.
func printProfile(ctx context.Context, w io.Writer, file string) error {
	for _, order := range []string{"flat", "cum"} {
		args := []string{"tool", "pprof", "-top", "-" + order, "-nodecount=12"}
		if order == "cum" {
			args = append(args, "-hide="+plumbing)
		}
		text, err := exec.CommandContext(ctx, "go", append(args, file)...).Output()
		if err != nil {
			return fmt.Errorf("read the profile with go tool pprof: %w", err)
		}
		_, _ = fmt.Fprintf(w, "    by %s\n", order)
		_, rows, ok := strings.Cut(string(text), "flat%")
		if !ok {
			return fmt.Errorf("read the profile with go tool pprof: it says %q", text)
		}
		rows = strings.ReplaceAll("      flat  flat%"+rows, "github.com/seed-f1a0ccf1/vnfm/", "")
		for line := range strings.Lines(rows) {
			if runes := []rune(strings.TrimRight(line, "\n")); len(runes) > lineWidth {
				line = string(runes[:lineWidth]) + "…\n"
			}
			_, _ = io.WriteString(w, line)
		}
	}
	return nil
}

// lineWidth cuts lines that generic functions make too long to read.
const lineWidth = 140

func fetch(ctx context.Context, url, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s answers %s", url, resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return ln.Addr().String(), ln.Close()
}

// writeKeyFile makes a key for the sealing of credentials.
func writeKeyFile(dir string) (string, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	path := filepath.Join(dir, "secrets.key")
	if err := os.WriteFile(path, []byte("1:"+base64.StdEncoding.EncodeToString(key)+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the key file: %w", err)
	}
	return path, nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(string(t.text)); text != "" {
		return text
	}
	return "nothing"
}
