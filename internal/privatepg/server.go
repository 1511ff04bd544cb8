package privatepg

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrInUse is in the chain of the error of [Start] when another live process owns the folder.
var ErrInUse = errors.New("the private PostgreSQL folder is in use")

const (
	superuser = "vnfm"
	// socketName is what PostgreSQL calls the socket of port 5432.
	socketName = ".s.PGSQL.5432"
	// maxSocketPath keeps us clear of the 107 bytes that a Unix socket's address can have.
	maxSocketPath = 99
	logLimit      = 8 << 20
)

// Options say how to run the server. Only Dir is needed.
type Options struct {
	// Dir is the folder to keep everything in; it is made when it does not exist.
	Dir string
	// Database is the database that URL names, made when it does not exist; "vnfm" when empty.
	Database string
	// MaxConnections is the server's limit; 100 when 0.
	MaxConnections int
	// Unsafe trades durability for speed (no fsync, no full page writes): for tests, whose data nobody misses.
	Unsafe bool
	// User is whom the server runs as when we are root; "nobody" when empty.
	User string
	// BinDir is the folder of initdb and postgres; looked for when empty.
	BinDir string
	// StartTimeout bounds how long the server may take until it answers; 60 s when 0 (crash recovery takes time).
	StartTimeout time.Duration
	// Log receives what is worth knowing; slog.Default() when nil.
	Log *slog.Logger
}

// Server is a running private PostgreSQL.
type Server struct {
	opts      Options
	bin       Binaries
	dataDir   string
	socketDir string
	logPath   string
	ownSocket bool // socketDir lies outside of Dir and is ours to remove

	lock *os.File
	proc *os.Process
	done chan struct{} // closed when the process has ended and was reaped
	exit error         // set before done is closed

	stopOnce sync.Once
	stopErr  error
	stopping chan struct{}
}

// Start runs a server on opts.Dir, makes the cluster first when there is none, and returns once the server answers and
// opts.Database exists. A server that an earlier, killed owner left in the folder is ended first. Errors: one that wraps
// [ErrNoBinaries] when nothing is installed, one that wraps [ErrInUse] when a live process owns the folder, and
// otherwise one that ends with the last lines of the server's log. The context bounds the start only.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Dir == "" {
		return nil, errors.New("private PostgreSQL: no folder given")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL folder %s: %w", opts.Dir, err)
	}
	opts.Dir = dir
	if opts.Database == "" {
		opts.Database = "vnfm"
	}
	if opts.MaxConnections == 0 {
		opts.MaxConnections = 100
	}
	if opts.StartTimeout == 0 {
		opts.StartTimeout = time.Minute
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.StartTimeout,
		fmt.Errorf("PostgreSQL did not answer within %s", opts.StartTimeout))
	defer cancel()

	s := &Server{
		opts:     opts,
		dataDir:  filepath.Join(dir, "data"),
		logPath:  filepath.Join(dir, "postgres.log"),
		stopping: make(chan struct{}),
	}
	if err := s.start(ctx); err != nil {
		s.cleanUp()
		return nil, fmt.Errorf("start the private PostgreSQL in %s: %w", dir, err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	own, err := findOwner(s.opts.User)
	if err != nil {
		return err
	}
	if err := s.layOut(own); err != nil {
		return err
	}
	if s.lock, err = takeLock(filepath.Join(s.opts.Dir, "lock")); err != nil {
		return err
	}
	major, err := clusterMajor(s.dataDir)
	if err != nil {
		return err
	}
	if s.opts.BinDir != "" {
		s.bin, err = findIn(ctx, []string{s.opts.BinDir}, major)
	} else {
		s.bin, err = Find(ctx, major)
	}
	if err != nil {
		return err
	}
	if major == 0 {
		if err := s.initCluster(ctx, own); err != nil {
			return err
		}
	} else if err := clearStale(ctx, s.dataDir, s.opts.Log); err != nil {
		return err
	}
	if err := s.runUntilReady(ctx, own); err != nil {
		return err
	}
	if _, err := s.NewDatabase(ctx, s.opts.Database); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(err, s.Stop(stopCtx))
	}
	return nil
}

// layOut makes the folders. A socket path that would be too long moves to a short folder of its own.
func (s *Server) layOut(own owner) error {
	mode := os.FileMode(0o700)
	if own.cred != nil {
		mode = 0o711 // the server's user must be able to pass through, not to look around
	}
	if _, err := os.Stat(s.opts.Dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(s.opts.Dir, mode); err != nil {
			return fmt.Errorf("make the folder: %w", err)
		}
		if err := os.Chmod(s.opts.Dir, mode); err != nil {
			return fmt.Errorf("set the folder's mode: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("look at the folder: %w", err)
	}
	if err := own.canReach(s.opts.Dir); err != nil {
		return err
	}
	s.socketDir = filepath.Join(s.opts.Dir, "run")
	if len(s.socketDir)+1+len(socketName) > maxSocketPath {
		sum := sha256.Sum256([]byte(s.opts.Dir))
		s.socketDir = filepath.Join(os.TempDir(), "vnfm-pg-"+hex.EncodeToString(sum[:8]))
		if len(s.socketDir)+1+len(socketName) > maxSocketPath {
			return fmt.Errorf("the folder's path is too long for a Unix socket, and so is %s", os.TempDir())
		}
		s.ownSocket = true
		if err := ownedByUs(s.socketDir, own); err != nil {
			return err
		}
	}
	return own.folder(s.socketDir, 0o700)
}

// ownedByUs refuses a folder in a shared place that somebody else has put there.
func ownedByUs(dir string, own owner) error {
	st, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the socket folder: %w", err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	mine := ok && (int(sys.Uid) == os.Geteuid() || own.cred != nil && sys.Uid == own.cred.Uid)
	if !st.IsDir() || !mine {
		return fmt.Errorf("the socket folder %s belongs to somebody else", dir)
	}
	return nil
}

// clusterMajor returns the major version of the cluster in a data folder, 0 when there is none yet.
func clusterMajor(dataDir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the cluster's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("the cluster's version %q is not a number", strings.TrimSpace(string(text)))
	}
	return major, nil
}

// initCluster makes the cluster beside its final place and moves it there, so that a half-made one is never used.
func (s *Server) initCluster(ctx context.Context, own owner) error {
	fresh := filepath.Join(s.opts.Dir, "data.new")
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an unfinished cluster: %w", err)
	}
	if err := own.folder(fresh, 0o700); err != nil {
		return err
	}
	args := []string{"-N", "-A", "trust", "-U", superuser, "--locale=C", "-E", "UTF8", "-D", fresh}
	cmd := exec.CommandContext(ctx, s.bin.initdb(), args...)
	cmd.Env = childEnv()
	cmd.Dir = fresh
	cmd.SysProcAttr = procAttr(own.cred)
	// The whole group, for initdb runs servers of its own.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := onOneThread(cmd.CombinedOutput)
	if err != nil {
		return fmt.Errorf("make the cluster with %s: %w: %s", s.bin.initdb(), err, lastLines(out, 5))
	}
	if !s.opts.Unsafe {
		// initdb was told not to sync each file (-N); one sync of the file system does for all.
		syscall.Sync()
	}
	if err := os.Rename(fresh, s.dataDir); err != nil {
		return fmt.Errorf("put the cluster in its place: %w", err)
	}
	return nil
}

// onOneThread runs f on a thread that lives as long as f does: the kernel's parent-death signal counts from the
// thread that started the child, not from the process.
func onOneThread(f func() ([]byte, error)) (out []byte, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f()
}

// runUntilReady starts the server and waits for it to answer. Backends of a killed server may hold its shared memory
// for a moment longer; then it is tried again.
func (s *Server) runUntilReady(ctx context.Context, own owner) error {
	for {
		mark, err := s.launch(own)
		if err != nil {
			return err
		}
		err = s.awaitReady(ctx)
		if err == nil {
			return nil
		}
		said := s.logSince(mark)
		if !strings.Contains(said, "pre-existing shared memory block") || ctx.Err() != nil {
			return fmt.Errorf("%w; the server said: %s", err, lastLines([]byte(said), 5))
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *Server) args() []string {
	set := []string{
		"listen_addresses=",
		"unix_socket_directories=" + s.socketDir,
		"unix_socket_permissions=0700",
		"port=5432",
		"max_connections=" + strconv.Itoa(s.opts.MaxConnections),
		"logging_collector=off",
		"log_destination=stderr",
		"log_timezone=UTC",
		"timezone=UTC",
	}
	if s.opts.Unsafe {
		set = append(set, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum_naptime=1h")
	} else {
		set = append(set, "fsync=on", "synchronous_commit=on", "full_page_writes=on")
	}
	args := []string{"-D", s.dataDir}
	for _, v := range set {
		args = append(args, "-c", v)
	}
	return args
}

// launch starts the process and a goroutine that waits for its end. It returns the length of the log before.
func (s *Server) launch(own owner) (int64, error) {
	logFile, err := os.OpenFile(s.logPath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open the server's log: %w", err)
	}
	defer func() { _ = logFile.Close() }()
	st, err := logFile.Stat()
	if err != nil {
		return 0, fmt.Errorf("look at the server's log: %w", err)
	}
	mark := st.Size()
	if mark > logLimit {
		if err := logFile.Truncate(0); err != nil {
			return 0, fmt.Errorf("cut the server's log: %w", err)
		}
		mark = 0
	}
	cmd := exec.Command(s.bin.postgres(), s.args()...) //nolint:noctx // it outlives the context of Start and is ended by Stop
	cmd.Env = childEnv()
	cmd.Dir = s.dataDir
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = procAttr(own.cred)

	started := make(chan error, 1)
	done := make(chan struct{})
	s.done, s.exit = done, nil
	go func() {
		// Bound to one thread from birth to end, see onOneThread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		s.exit = cmd.Wait()
	}()
	if err := <-started; err != nil {
		return mark, fmt.Errorf("run %s: %w", s.bin.postgres(), err)
	}
	s.proc = cmd.Process
	return mark, nil
}

// awaitReady connects until it works, the process ends or the context does; in the last case it ends the process.
func (s *Server) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.urlOf("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.done:
			return fmt.Errorf("PostgreSQL ended at once: %w", orEnded(s.exit))
		case <-ctx.Done():
			s.kill()
			return fmt.Errorf("wait for PostgreSQL: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("it exited without an error")
	}
	return err
}

// URL returns the address of the default database as libpq and pgx read it: postgres://vnfm@/vnfm?host=….
func (s *Server) URL() string { return s.urlOf(s.opts.Database) }

func (s *Server) urlOf(database string) string {
	q := url.Values{"host": {s.socketDir}, "port": {"5432"}, "sslmode": {"disable"}}
	return (&url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: q.Encode()}).String()
}

// Binaries returns the installation that runs.
func (s *Server) Binaries() Binaries { return s.bin }

// PID returns the process id of the server.
func (s *Server) PID() int { return s.proc.Pid }

// Done returns a channel that is closed when the server has ended, wanted or not; Err then says how.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns nil while the server runs and after a Stop, and otherwise how it ended and its last words.
func (s *Server) Err() error {
	select {
	case <-s.done:
	default:
		return nil
	}
	select {
	case <-s.stopping:
		return nil
	default:
	}
	return fmt.Errorf("the private PostgreSQL ended: %w; it said: %s", orEnded(s.exit), lastLines([]byte(s.logSince(0)), 5))
}

// NewDatabase makes the database name unless it exists and returns its URL.
func (s *Server) NewDatabase(ctx context.Context, name string) (string, error) {
	conn, err := pgx.Connect(ctx, s.urlOf("postgres"))
	if err != nil {
		return "", fmt.Errorf("connect to the private PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&there); err != nil {
		return "", fmt.Errorf("look for the database %s: %w", name, err)
	}
	if there {
		return s.urlOf(name), nil
	}
	// A name cannot be a parameter here; Sanitize quotes it.
	_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42P04" { // another caller was quicker
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("make the database %s: %w", name, err)
	}
	return s.urlOf(name), nil
}

// Stop ends the server with a fast shutdown (sessions are cut, data is written out) and waits for it. When the context
// ends first the server is made to end at once, which its next start recovers from. Further calls return what the
// first returned.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		close(s.stopping)
		s.stopErr = s.stop(ctx)
		s.cleanUp()
	})
	return s.stopErr
}

func (s *Server) stop(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	default:
	}
	if err := s.proc.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the private PostgreSQL: %w", err)
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		s.kill()
		return fmt.Errorf("stop the private PostgreSQL: it was cut off: %w", context.Cause(ctx))
	}
}

// kill ends the process without ceremony and waits for it.
func (s *Server) kill() {
	_ = s.proc.Signal(syscall.SIGQUIT)
	select {
	case <-s.done:
		return
	case <-time.After(5 * time.Second):
	}
	_ = syscall.Kill(-s.proc.Pid, syscall.SIGKILL)
	<-s.done
}

// cleanUp lets go of what is not the process.
func (s *Server) cleanUp() {
	if s.proc != nil {
		select {
		case <-s.done:
		default:
			s.kill()
		}
	}
	if s.ownSocket && s.lock != nil { // without the lock it is in somebody's use
		_ = os.RemoveAll(s.socketDir)
	}
	if s.lock != nil {
		_ = s.lock.Close()
		s.lock = nil
	}
}

// logSince returns what the server logged after a mark, its last 16 KiB at most.
func (s *Server) logSince(mark int64) string {
	f, err := os.Open(s.logPath)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err == nil && st.Size()-mark > 16<<10 {
		mark = st.Size() - 16<<10
	}
	if _, err := f.Seek(mark, io.SeekStart); err != nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, 16<<10))
	if err != nil {
		return ""
	}
	return string(text)
}

func lastLines(text []byte, n int) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return string(bytes.Join(lines, []byte(" / ")))
}
