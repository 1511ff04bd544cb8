package helm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// Major is the major version of helm that is supported.
const Major = 4

// Config says which helm runs, and how. Its zero value is good.
type Config struct {
	// Binary is the program: a path, or a name that is looked for in PATH. Default helm.
	Binary string
	// Timeout is the longest that a run may take, the hooks of a chart included. Default 2 min.
	Timeout time.Duration
	// MaxConcurrent limits the runs under way; others wait. Default 4.
	MaxConcurrent int
	// MaxOutput limits what a run may print, in bytes, and so how much a chart may render. Default 32 MiB.
	MaxOutput int
	// TempDir is where runs get their directories; "" means the system's.
	TempDir string
}

// Runner runs helm.
type Runner struct {
	cfg   Config
	log   *slog.Logger
	turns chan struct{}

	mu    sync.Mutex
	known program   // the last that was asked for its version
	swept time.Time // when what killed runs have left was looked for last
}

// program is a file, and the version that it says it has.
type program struct {
	path    string
	size    int64
	changed time.Time
	version string
}

// New returns a runner; zero fields of cfg take their defaults. What runs have left that were killed with another server is
// removed, and looked for again now and then.
func New(cfg Config, log *slog.Logger) *Runner {
	if cfg.Binary == "" {
		cfg.Binary = "helm"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Minute
	}
	if cfg.MaxConcurrent == 0 {
		cfg.MaxConcurrent = 4
	}
	if cfg.MaxOutput == 0 {
		cfg.MaxOutput = 32 << 20
	}
	r := &Runner{cfg: cfg, log: log, turns: make(chan struct{}, cfg.MaxConcurrent)}
	r.sweep()
	return r
}

// Timeout returns the longest that a run may take.
func (r *Runner) Timeout() time.Duration { return r.cfg.Timeout }

var versionText = regexp.MustCompile(`^v(\d+)\.\d+`)

// Version returns the path of the helm that is used and its version. Terminal, with what to do: there is none, or one of a major
// version that is not supported.
func (r *Runner) Version(ctx context.Context) (path, version string, err error) {
	path, err = exec.LookPath(r.cfg.Binary)
	if err == nil { // a run has a directory of its own
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", "", &lcm.Error{
			Kind: lcm.KindTerminal, Err: err,
			Detail: fmt.Sprintf("Helm charts cannot be deployed: there is no program %s; install helm %d on the VNF manager's machine, or set kubernetes.helm.binary to where it is", r.cfg.Binary, Major),
		}
	}
	st, err := os.Stat(path)
	if err != nil {
		return "", "", fmt.Errorf("look at %s: %w", path, err)
	}
	now := program{path: path, size: st.Size(), changed: st.ModTime()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.version = r.known.version; now == r.known {
		return path, now.version, nil
	}
	ask, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ask, path, "version", "--template", "{{.Version}}") //nolint:gosec // the operator's program
	cmd.Env = environment(os.TempDir())
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", "", fmt.Errorf("ask helm for its version: %w", context.Cause(ctx))
	}
	now.version = strings.TrimSpace(string(out))
	major := versionText.FindStringSubmatch(now.version)
	if err != nil || major == nil {
		return "", "", lcm.Errorf(lcm.KindTerminal, "Helm charts cannot be deployed: %s does not say which version of helm it is; set kubernetes.helm.binary to a helm %d", path, Major)
	}
	if n, err := strconv.Atoi(major[1]); err != nil || n != Major {
		return "", "", lcm.Errorf(lcm.KindTerminal, "Helm charts cannot be deployed: %s is helm %s, and only helm %d is supported; install one and set kubernetes.helm.binary to it", path, now.version, Major)
	}
	r.known = now
	return path, now.version, nil
}

// environment is all that helm finds in its environment: its private folders, and how the server itself reaches others.
func environment(dir string) []string {
	out := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "NO_COLOR=1", "HOME=" + dir, "TMPDIR=" + dir,
		"HELM_CACHE_HOME=" + filepath.Join(dir, "cache"), "HELM_CONFIG_HOME=" + filepath.Join(dir, "config"),
		"HELM_DATA_HOME=" + filepath.Join(dir, "data"), "HELM_PLUGINS=" + filepath.Join(dir, "plugins"),
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if v, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// files are the names of a run's files, in its directory.
const (
	kubeconfigFile = "kubeconfig"
	chartFile      = "chart.tgz"
	valuesFile     = "values.yaml"
)

// Turn takes one of the turns that there are, until leave; not ok: all are taken. Runs with a context of [InTurn] take none.
func (r *Runner) Turn() (leave func(), ok bool) {
	select {
	case r.turns <- struct{}{}:
		return func() { <-r.turns }, true
	default:
		return nil, false
	}
}

type inTurn struct{}

// InTurn returns the context of runs, one at a time, whose turn has been taken: they do not wait for another.
func InTurn(ctx context.Context) context.Context { return context.WithValue(ctx, inTurn{}, true) }

// job is one run.
type job struct {
	doing  string // for messages
	args   []string
	access *Access // nil: helm calls nobody
	chart  []byte
	set    []string
}

// run runs helm and returns what it has printed. It has ended when run returns, and nothing is left of it.
func (r *Runner) run(ctx context.Context, j job) (out []byte, err error) {
	binary, _, err := r.Version(ctx)
	if err != nil {
		return nil, err
	}
	if ctx.Value(inTurn{}) == nil {
		select {
		case r.turns <- struct{}{}:
			defer func() { <-r.turns }()
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a turn to %s: %w", j.doing, context.Cause(ctx))
		}
	}
	r.sweep()
	dir, leave, err := r.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	args := slices.Clone(j.args)
	if j.access != nil {
		content, err := j.access.kubeconfig()
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, kubeconfigFile), content, 0o600); err != nil {
			return nil, fmt.Errorf("write helm's kubeconfig: %w", err)
		}
		args = append(args, "--kubeconfig="+filepath.Join(dir, kubeconfigFile))
		if j.access.RequestsPerSecond > 0 {
			args = append(args, fmt.Sprintf("--qps=%g", j.access.RequestsPerSecond), fmt.Sprintf("--burst-limit=%d", max(1, int(2*j.access.RequestsPerSecond))))
		}
	}
	set, err := parse(j.set)
	if err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "cannot %s: %s", j.doing, err)
	}
	given, err := values(dir, set)
	if err != nil {
		return nil, err
	}
	args = append(args, given...)
	if j.chart != nil {
		if err := os.WriteFile(filepath.Join(dir, chartFile), j.chart, 0o600); err != nil {
			return nil, fmt.Errorf("write the chart for helm: %w", err)
		}
	}
	return r.execute(ctx, binary, dir, args, j)
}

// lastWords is how much of what helm says at its end is kept, endGrace how long it has to end once it is asked to.
const (
	lastWords = 64 << 10
	endGrace  = 5 * time.Second
)

// execute starts helm and collects what it says.
func (r *Runner) execute(ctx context.Context, binary, dir string, args []string, j job) ([]byte, error) {
	// The kernel ends the child when the thread that started it ends, so this one is kept until the child has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, binary, args...) //nolint:gosec // the operator's program; no shell
	cmd.Dir, cmd.Env = dir, environment(dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it says then that its release has failed
	cmd.WaitDelay = endGrace
	stdout, stderr := &head{most: r.cfg.MaxOutput}, &tail{most: lastWords}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	begun := time.Now()
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whatever it may have started
	}
	r.log.Debug("helm has run", "doing", j.doing, "took", time.Since(begun).Round(time.Millisecond), "error", err)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", j.doing, context.Cause(ctx))
	case limited.Err() != nil:
		return nil, lcm.Errorf(lcm.KindRetryable, "cannot %s: helm has not come to an end within %s and was stopped", j.doing, r.cfg.Timeout)
	case stdout.over:
		return nil, lcm.Errorf(lcm.KindTerminal, "cannot %s: it renders to more than %d MiB", j.doing, r.cfg.MaxOutput>>20)
	case err == nil:
		return stdout.content, nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return nil, fmt.Errorf("run helm: %w", err)
	}
	said := complaint(string(stderr.content))
	if said == "" {
		said = "helm ended with " + exit.String()
	}
	said = j.scrubbed(said)
	return nil, lcm.Errorf(j.kindOf(said), "cannot %s: %s", j.doing, said)
}

// head keeps the first bytes written to it, and tells whether there were more than that.
type head struct {
	most    int
	content []byte
	over    bool
}

// Write implements io.Writer. More than is kept is an error, which ends who writes.
func (h *head) Write(p []byte) (int, error) {
	if len(h.content)+len(p) > h.most {
		h.over = true
		return 0, errors.New("too much")
	}
	h.content = append(h.content, p...)
	return len(p), nil
}

// tail keeps the last bytes written to it.
type tail struct {
	most    int
	content []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.content = append(t.content, p...)
	if over := len(t.content) - t.most; over > 0 {
		t.content = append(t.content[:0], t.content[over:]...)
	}
	return len(p), nil
}
