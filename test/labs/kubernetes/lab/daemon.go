package lab

import (
	"context"
	"errors"
	"fmt"
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

// The daemons of a control plane.
const (
	Etcd        = "etcd"
	APIServer   = "kube-apiserver"
	Controllers = "kube-controller-manager"
	Scheduler   = "kube-scheduler"
	Nodes       = "kwok" // in the place of the nodes' kubelets
)

// order is that of starting; ending goes the other way round.
var order = []string{Etcd, APIServer, Controllers, Scheduler, Nodes}

// identity tells a process from a later one that was given the same number.
type identity struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // clock ticks between the machine's boot and the process' start
}

// readStat reads a stat file of a process or a thread: the letter of its state, and when it started.
func readStat(path string) (state string, ticks uint64, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", 0, err
	}
	// The name, in parentheses, may hold anything; what follows it are single words, the state first.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	const first, started = 0, 19
	if len(fields) <= started {
		return "", 0, fmt.Errorf("%s is cut short", path)
	}
	ticks, err = strconv.ParseUint(fields[started], 10, 64)
	return fields[first], ticks, err
}

// identify returns the identity of a process that is there and has not ended.
func identify(pid int) (identity, bool) {
	state, ticks, err := readStat(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil || state == "Z" || state == "X" {
		return identity{}, false
	}
	return identity{PID: pid, Started: ticks}, true
}

// still tells whether all threads of the process are stopped. A signal to stop comes to them a little after it is sent.
func (i identity) still() (bool, error) {
	if !i.alive() {
		return false, fmt.Errorf("process %d has ended", i.PID)
	}
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(i.PID), "task", "*", "stat"))
	if err != nil {
		return false, err
	}
	for _, path := range threads {
		if state, _, err := readStat(path); err == nil && state != "T" && state != "t" {
			return false, nil
		}
	}
	return true, nil
}

func (i identity) alive() bool {
	now, ok := identify(i.PID)
	return ok && i.PID != 0 && now == i
}

// signal reaches the process, and never another one that has its number now.
func (i identity) signal(sig syscall.Signal) error {
	if !i.alive() {
		return nil
	}
	if err := syscall.Kill(i.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process %d: %w", i.PID, err)
	}
	return nil
}

// end asks the process to end, and makes it when it does not within patience.
func (i identity) end(ctx context.Context, patience time.Duration) error {
	if err := errors.Join(i.signal(syscall.SIGCONT), i.signal(syscall.SIGTERM)); err != nil {
		return err
	}
	gentle, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := i.gone(gentle); err == nil {
		return nil
	}
	if err := i.signal(syscall.SIGKILL); err != nil {
		return err
	}
	return i.gone(ctx)
}

func (i identity) gone(ctx context.Context) error {
	return await(ctx, fmt.Sprintf("the end of process %d", i.PID), func() (bool, error) { return !i.alive(), nil })
}

// daemon is one program of a control plane, over all its lives.
type daemon struct {
	name string
	args []string
	dir  string // its working folder
	log  string // what it has written, over all its lives

	mu sync.Mutex
	id identity // of its latest life
}

// start starts it, which must not run. With a tie, it ends when this process does, however this process ends.
func (d *daemon) start(binary string, tied bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.id.alive() {
		return fmt.Errorf("%s runs already, as process %d", d.name, d.id.PID)
	}
	out, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(binary, append([]string{d.name}, d.args...)...) //nolint:gosec // our binary, ended by end and Kill
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.dir, out, out
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + d.dir, "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if tied {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the tie's signal when the thread that started the child ends, so the thread stays with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = out.Close() }()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", d.name, err)
	}
	id, ok := identify(cmd.Process.Pid)
	if !ok {
		return fmt.Errorf("%s ended at once:\n%s", d.name, d.tail(20))
	}
	d.id = id
	return nil
}

func (d *daemon) identity() identity {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.id
}

// failure is what there is to say when the daemon has ended though it should not have; nil while it runs.
func (d *daemon) failure() error {
	if d.identity().alive() {
		return nil
	}
	return fmt.Errorf("%s has ended; the end of %s:\n%s", d.name, d.log, d.tail(20))
}

func (d *daemon) tail(lines int) string {
	raw, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return tail(raw, lines)
}
