package harness

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Node is one server process. It keeps its address over its deaths.
type Node struct {
	Number  int
	URL     string // of its API
	LogPath string // what it has written to standard output and error, over all its lives

	binary string
	addr   string
	env    []string

	mu   sync.Mutex
	proc *process
}

// process is one life of a node.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was reaped
	err  error         // set before done is closed
}

func newNode(number int, binary, dir string) (*Node, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, fmt.Errorf("find a port for node %d: %w", number, err)
	}
	n := &Node{
		Number: number, URL: "http://" + addr, binary: binary, addr: addr,
		LogPath: filepath.Join(dir, fmt.Sprintf("node%d.log", number)),
	}
	for _, e := range os.Environ() { // what the tests' own environment says about a server is not for these
		if !strings.HasPrefix(e, "VNFM_") && !strings.HasPrefix(e, "OS_") {
			n.env = append(n.env, e)
		}
	}
	n.env = append(n.env, "VNFM_LISTEN="+addr, "VNFM_LOG_LEVEL=info")
	return n, nil
}

// given are the addresses that this process has found for nodes: each is found once.
var given sync.Map

// freeAddress finds a port that nobody listens on, below those that the kernel gives to outgoing connections: it is to
// be free still when a node that was killed comes back to it.
func freeAddress() (string, error) {
	const from, to = 15000, 32000
	var err error
	for range 100 {
		var n *big.Int
		if n, err = rand.Int(rand.Reader, big.NewInt(to-from)); err != nil {
			return "", err
		}
		addr := fmt.Sprintf("127.0.0.1:%d", from+n.Int64())
		if _, taken := given.LoadOrStore(addr, true); taken {
			continue
		}
		var ln net.Listener
		if ln, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr); err == nil {
			return addr, ln.Close()
		}
	}
	return "", err
}

// Start starts the node, which must not run, and waits until it is ready. env are variables for this life only.
func (n *Node) Start(ctx context.Context, env ...string) error {
	if err := n.Launch(env...); err != nil {
		return err
	}
	return n.AwaitReady(ctx)
}

// Launch starts the node, which must not run, and does not wait for it.
func (n *Node) Launch(env ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil && !ended(n.proc) {
		return fmt.Errorf("node %d runs already", n.Number)
	}
	log, err := os.OpenFile(n.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p := &process{cmd: exec.Command(n.binary, "serve"), done: make(chan struct{})} //nolint:gosec // our binary, ended by Kill and Stop
	p.cmd.Env = append(append([]string{}, n.env...), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child when the thread that started it ends, so the thread stays with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		defer func() { _ = log.Close() }()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start node %d: %w", n.Number, err)
	}
	n.proc = p
	return nil
}

// readyTime is how long a node may take from its start until it is ready, on a slow machine.
const readyTime = 5 * time.Minute

// AwaitReady waits until the node answers that it is ready. It fails when the process ends before.
func (n *Node) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("node %d was not ready within %s", n.Number, readyTime))
	defer cancel()
	err := Await(ctx, fmt.Sprintf("node %d is ready", n.Number), func(ctx context.Context) (bool, error) {
		if !n.Running() {
			return false, fmt.Errorf("the process has ended: %w", n.Err())
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL+"/readyz", nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, nil
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("%w\nthe end of its log:\n%s", err, n.LogTail(50))
	}
	return nil
}

// Running tells whether the process lives.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc != nil && !ended(n.proc)
}

// Err says how the process ended; nil while it lives, and when it ended with status 0.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil || !ended(n.proc) {
		return nil
	}
	return n.proc.err
}

// PID is the id of the node's last process, 0 when it was never started.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return 0
	}
	return n.proc.cmd.Process.Pid
}

// Done is closed when the node's last process has ended; nil when it was never started.
func (n *Node) Done() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return nil
	}
	return n.proc.done
}

// Kill ends the node and all that it has started, as kill -9 does, and waits for its end.
func (n *Node) Kill() {
	n.mu.Lock()
	p := n.proc
	n.mu.Unlock()
	if p == nil {
		return
	}
	if !ended(p) {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended meanwhile
	}
	<-p.done
}

// Stop asks the node to end, as systemd does, and waits for its end until ctx does.
func (n *Node) Stop(ctx context.Context) error {
	n.mu.Lock()
	p := n.proc
	n.mu.Unlock()
	if p == nil || ended(p) {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop node %d: %w", n.Number, err)
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("stop node %d: %w", n.Number, context.Cause(ctx))
	}
}

// Restart kills the node and starts it again.
func (n *Node) Restart(ctx context.Context) error {
	n.Kill()
	return n.Start(ctx)
}

// LogTail returns the last lines of the log.
func (n *Node) LogTail(lines int) string {
	raw, err := os.ReadFile(n.LogPath)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func ended(p *process) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
