package userdata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits bound what one script may use. The process sets them for itself, before it has seen anything of the package;
// without privileges they cannot be raised again.
type Limits struct {
	CPUSeconds  uint64 // default 60
	MemoryBytes uint64 // address space, default 1 GiB
	OpenFiles   uint64 // default 256
	Processes   uint64 // processes and threads of the script, beside those that its user has already, default 32
	FileBytes   uint64 // size of a file that it writes, default 16 MiB
	ResultBytes int64  // of the result as JSON, default 4 MiB
	OutputBytes int    // of what it prints that is kept, default 64 KiB
}

// Config says how scripts run. Its zero value is good.
type Config struct {
	// Python is the interpreter; "" means /usr/bin/python3 if there is one, else python3 of the PATH.
	Python string
	// User is the user (name or numeric id) that scripts run as when we are root; "" means nobody.
	User string
	// Timeout is the longest that a script may take, default 60 s.
	Timeout time.Duration
	// TempDir is where runs get their directories; "" means the system's.
	TempDir string
	Limits  Limits
}

// Runner runs user data scripts, any number at a time.
type Runner struct {
	cfg   Config
	log   *slog.Logger
	level atomic.Int32 // the first of attributes that this system allows
}

// New returns a Runner; zero fields of cfg take their defaults.
func New(cfg Config, log *slog.Logger) *Runner {
	if cfg.Python == "" {
		cfg.Python = "python3"
		if _, err := os.Stat("/usr/bin/python3"); err == nil {
			cfg.Python = "/usr/bin/python3"
		}
	}
	l := &cfg.Limits
	setDefault(&cfg.Timeout, 60*time.Second)
	setDefault(&l.CPUSeconds, 60)
	setDefault(&l.MemoryBytes, 1<<30)
	setDefault(&l.OpenFiles, 256)
	setDefault(&l.Processes, 32)
	setDefault(&l.FileBytes, 16<<20)
	setDefault(&l.ResultBytes, 4<<20)
	setDefault(&l.OutputBytes, 64<<10)
	sweep(cfg.TempDir, 2*cfg.Timeout, log)
	return &Runner{cfg: cfg, log: log}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Run runs the script and returns its result: the stack's parameters, numbers as json.Number. The error is an [*Error]
// when the script or the request is at fault, [ErrNoMethod] when the class does not have the method, the context's when it
// ends first, else one of the machine's. Whatever happens, neither a process nor a file is left.
func (r *Runner) Run(ctx context.Context, req Request) (params map[string]any, err error) {
	file, module, err := scriptPath(req.PackageFS, req.Path)
	if err != nil {
		return nil, err
	}
	as, err := lookup(r.cfg.User)
	if err != nil {
		return nil, err
	}
	dir, err := newPlace(r.cfg.TempDir, req.PackageFS, file, as)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := dir.remove(); e != nil {
			r.log.Warn("the directory of a user data script cannot be removed", "dir", dir.base, "error", e)
		}
	}()
	limits := r.cfg.Limits
	limits.Processes += threadsOf(as)
	input, err := req.encode(dir, module, limits)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	raw, output, err := r.execute(limited, dir, as, input)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("run user data %s: %w", file, context.Cause(ctx))
	case limited.Err() != nil:
		return nil, &Error{Message: fmt.Sprintf("%sfails due to timeout[sec]: %g", prefix, r.cfg.Timeout.Seconds()), Output: output}
	case err != nil:
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			var own *Error
			if errors.As(err, &own) {
				own.Output = output
			}
			return nil, fmt.Errorf("run user data %s: %w", file, err)
		}
		return nil, &Error{Message: fmt.Sprintf("%sscript ended without a result: %s.", prefix, exit), Output: output}
	}
	params, err = ParseResult(raw)
	var own *Error
	if errors.As(err, &own) {
		own.Output = output
	}
	return params, err
}

// errTooLarge is the fault of a result over its limit.
func (r *Runner) errTooLarge() error {
	return &Error{Message: fmt.Sprintf("%sreturn value as HOT parameter from UserData is larger than %d bytes.", prefix, r.cfg.Limits.ResultBytes)}
}

// execute starts the runner, feeds it and collects what it leaves: the result and the end of the output.
func (r *Runner) execute(ctx context.Context, dir *place, as *account, input []byte) (result []byte, output string, err error) {
	// The kernel ends the child when the thread that started it ends, so this one is kept until the child has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var pipes [3]struct{ r, w *os.File } // input, result, output
	defer func() {
		for _, p := range pipes {
			closeAll(p.r, p.w)
		}
	}()
	for n := range pipes {
		if pipes[n].r, pipes[n].w, err = os.Pipe(); err != nil {
			return nil, "", fmt.Errorf("open a pipe: %w", err)
		}
	}
	in, res, out := pipes[0], pipes[1], pipes[2]
	cmd, err := r.start(dir, as, in.r, res.w, out.w)
	closeAll(in.r, res.w, out.w)
	if err != nil {
		return nil, "", err
	}
	pid := cmd.Process.Pid
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	var readers sync.WaitGroup
	defer readers.Wait()
	tail := &tailBuffer{max: r.cfg.Limits.OutputBytes}
	tooLarge := make(chan struct{})
	readers.Go(func() { _, _ = io.Copy(tail, out.r) })
	readers.Go(func() {
		result, _ = io.ReadAll(io.LimitReader(res.r, r.cfg.Limits.ResultBytes+1))
		if int64(len(result)) > r.cfg.Limits.ResultBytes {
			close(tooLarge)
		}
	})
	readers.Go(func() {
		_, _ = in.w.Write(input) // a child that has died says so by its exit status
		closeAll(in.w)
	})

	select {
	case err = <-exited:
	case <-ctx.Done():
		killAll(pid)
		<-exited //nolint:errcheck // killed
		err = ctx.Err()
	case <-tooLarge:
		killAll(pid)
		<-exited //nolint:errcheck // killed
		err = r.errTooLarge()
	}
	// Whatever the script has left in its session goes; what has fled from it cannot hold us up by holding a pipe.
	killAll(pid)
	soon := time.Now().Add(time.Second)
	_ = in.w.SetWriteDeadline(time.Now())
	_ = res.r.SetReadDeadline(soon)
	_ = out.r.SetReadDeadline(soon)
	readers.Wait()
	if err == nil && int64(len(result)) > r.cfg.Limits.ResultBytes {
		err = r.errTooLarge()
	}
	return result, tail.text(), err
}

// start starts the runner in the most confined way that the system allows.
func (r *Runner) start(dir *place, as *account, stdin, result, output *os.File) (*exec.Cmd, error) {
	ways := attributes(as)
	for level := int(r.level.Load()); ; level++ {
		cmd := exec.Command(r.cfg.Python, "-I", "-B", "-X", "utf8", dir.runner) //nolint:gosec,noctx // the operator's interpreter, our script; its whole session is ended with the context
		cmd.Dir = dir.work
		cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "HOME=" + dir.work, "TMPDIR=" + dir.work}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, output, output
		cmd.ExtraFiles = []*os.File{result}
		cmd.SysProcAttr = ways[level]
		err := cmd.Start()
		if err == nil {
			return cmd, nil
		}
		refused := errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.ENOSYS)
		if !refused || level == len(ways)-1 {
			return nil, fmt.Errorf("start Python: %w", err)
		}
		if r.level.CompareAndSwap(int32(level), int32(level+1)) { //nolint:gosec // a handful of levels
			r.log.Warn("user data scripts run without namespaces of their own: the system does not allow them", "error", err)
		}
	}
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // closing twice is an error that means nothing
		}
	}
}

// tailBuffer keeps the last max bytes written to it.
type tailBuffer struct {
	max int
	buf []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	if len(p) >= t.max {
		t.buf = append(t.buf[:0], p[len(p)-t.max:]...)
		return len(p), nil
	}
	if over := len(t.buf) + len(p) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return len(p), nil
}

// shown is how much of a script's output an error message takes.
const shown = 1024

// text returns the end of the output, fit to be shown.
func (t *tailBuffer) text() string {
	b := t.buf
	if len(b) > shown {
		b = b[len(b)-shown:]
	}
	return strings.TrimSpace(clip(string(b), shown))
}
