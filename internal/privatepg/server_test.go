package privatepg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const helperDir = "PRIVATEPG_TEST_HELPER_DIR"

// TestMain turns the test binary into the owner of a server when asked to: a process that tests can kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		s, err := Start(context.Background(), Options{Dir: dir, Unsafe: true})
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println("pid:", s.PID())
		select {} // until killed
	}
	os.Exit(m.Run())
}

// tempDir is a folder that the server's user can reach, as t.TempDir's may not be.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vnfm-pgtest-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, opts Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), opts)
	if errors.Is(err, ErrNoBinaries) {
		t.Fatalf("these tests need a PostgreSQL server: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

func queryText(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var out string
	if err := conn.QueryRow(t.Context(), sql).Scan(&out); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestStartUseStopStartAgain(t *testing.T) {
	dir := filepath.Join(tempDir(t), "pg")
	began := time.Now()
	s := start(t, Options{Dir: dir})
	t.Logf("from nothing to serving: %s, %+v", time.Since(began).Round(time.Millisecond), s.Binaries())

	for setting, want := range map[string]string{
		"fsync": "on", "listen_addresses": "", "server_encoding": "UTF8", "lc_collate": "C", "unix_socket_permissions": "0700",
	} {
		if got := queryText(t, s.URL(), "show "+setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	url, err := s.NewDatabase(t.Context(), `odd "name"`)
	if err != nil {
		t.Fatal(err)
	}
	if got := queryText(t, url, "select current_database()::text"); got != `odd "name"` {
		t.Errorf("connected to %q", got)
	}
	if again, err := s.NewDatabase(t.Context(), `odd "name"`); err != nil || again != url {
		t.Errorf("second NewDatabase: %q, %v", again, err)
	}
	exec1(t, s.URL(), "create table kept (v text)")
	exec1(t, s.URL(), "insert into kept values ('here')")
	if os.Geteuid() == 0 {
		if uid := statusUID(t, s.PID()); uid == "0" {
			t.Error("the server runs as root")
		}
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatalf("second stop: %v", err)
	}
	if s.Err() != nil {
		t.Errorf("a wanted end is no error: %v", s.Err())
	}
	began = time.Now()
	s2 := start(t, Options{Dir: dir})
	t.Logf("second start: %s", time.Since(began).Round(time.Millisecond))
	if got := queryText(t, s2.URL(), "select v from kept"); got != "here" {
		t.Errorf("after a restart: %q", got)
	}
}

func statusUID(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(l, "Uid:"); ok {
			return strings.Fields(rest)[0]
		}
	}
	return ""
}

func TestUnsafeAndOptions(t *testing.T) {
	s := start(t, Options{Dir: tempDir(t), Unsafe: true, MaxConnections: 37, Database: "other"})
	for setting, want := range map[string]string{"fsync": "off", "max_connections": "37"} {
		if got := queryText(t, s.URL(), "show "+setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if got := queryText(t, s.URL(), "select current_database()::text"); got != "other" {
		t.Errorf("database %q", got)
	}
}

func TestFolderHasOneOwner(t *testing.T) {
	dir := tempDir(t)
	s := start(t, Options{Dir: dir, Unsafe: true})
	_, err := Start(t.Context(), Options{Dir: dir, Unsafe: true})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("second owner: %v", err)
	}
	if got := queryText(t, s.URL(), "select 'alive'"); got != "alive" {
		t.Error("the first one's server was disturbed")
	}
}

func TestLongPathGetsShortSocket(t *testing.T) {
	dir := filepath.Join(tempDir(t), strings.Repeat("long", 30))
	s := start(t, Options{Dir: dir, Unsafe: true})
	if strings.HasPrefix(s.socketDir, dir) || len(s.socketDir) > 85 {
		t.Errorf("socket folder %s", s.socketDir)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("second owner: %v", err)
	}
	if got := queryText(t, s.URL(), "select 'alive'"); got != "alive" {
		t.Error("socket gone")
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.socketDir); !os.IsNotExist(err) {
		t.Errorf("the socket folder stays: %v", err)
	}
}

func TestUnexpectedEndIsSeen(t *testing.T) {
	s := start(t, Options{Dir: tempDir(t), Unsafe: true})
	if err := syscall.Kill(s.PID(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if s.Err() == nil {
		t.Error("no error after an unwanted end")
	}
}

// helper starts a process that owns a server in dir and returns it with the server's process id.
func helper(t *testing.T, dir string) (*exec.Cmd, int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("helper: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid:")))
	if err != nil {
		t.Fatalf("helper said %q", line)
	}
	return cmd, pid
}

func killNine(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// servers lists live processes whose working folder lies below dir.
func servers(dir string) []string {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var out []string
	for _, l := range links {
		if cwd, err := os.Readlink(l); err == nil && strings.HasPrefix(cwd, dir) {
			out = append(out, l)
		}
	}
	return out
}

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			t.Fatalf("never came: %s", what)
		case <-tick.C:
		}
	}
}

func TestKillNineOfOwnerLeavesNothing(t *testing.T) {
	dir := tempDir(t)
	cmd, _ := helper(t, dir)
	if len(servers(dir)) == 0 {
		t.Fatal("no server seen while its owner lives")
	}
	killNine(t, cmd)
	await(t, "the end of every server process", func() bool { return len(servers(dir)) == 0 })
	s := start(t, Options{Dir: dir, Unsafe: true})
	if got := queryText(t, s.URL(), "select 'back'"); got != "back" {
		t.Error("no answer")
	}
}

// TestLeftoverServerIsEnded has a server run on without an owner, as on a system without parent-death signals.
func TestLeftoverServerIsEnded(t *testing.T) {
	dir := tempDir(t)
	s := start(t, Options{Dir: dir, Unsafe: true})
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	own, err := findOwner("")
	if err != nil {
		t.Fatal(err)
	}
	if err := own.folder(s.socketDir, 0o700); err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command(s.bin.postgres(), s.args()...)
	orphan.Env = childEnv()
	orphan.Dir = s.dataDir
	orphan.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: own.cred}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = orphan.Wait(); close(ended) }()
	await(t, "the orphan's socket", func() bool {
		_, err := os.Stat(filepath.Join(s.socketDir, socketName))
		return err == nil
	})
	s2 := start(t, Options{Dir: dir, Unsafe: true})
	<-ended
	if s2.PID() == orphan.Process.Pid {
		t.Error("same process")
	}
	if got := queryText(t, s2.URL(), "select 'mine'"); got != "mine" {
		t.Error("no answer")
	}
}

func TestStalePidFileOfAnotherProgram(t *testing.T) {
	dir := tempDir(t)
	s := start(t, Options{Dir: dir, Unsafe: true})
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Our own process is alive and no server.
	stale := fmt.Sprintf("%d\n%s\n1\n5432\n\n\n", os.Getpid(), s.dataDir)
	if err := os.WriteFile(filepath.Join(s.dataDir, "postmaster.pid"), []byte(stale), 0o644); err != nil {
		t.Fatal(err)
	}
	s2 := start(t, Options{Dir: dir, Unsafe: true})
	if got := queryText(t, s2.URL(), "select 'ok'"); got != "ok" {
		t.Error("no answer")
	}
}

func TestUnfinishedClusterIsMadeAnew(t *testing.T) {
	dir := tempDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "data.new", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, Options{Dir: dir, Unsafe: true})
}

func TestPlainErrors(t *testing.T) {
	empty := tempDir(t)
	t.Run("no binaries", func(t *testing.T) {
		_, err := Start(t.Context(), Options{Dir: tempDir(t), BinDir: empty})
		if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "apt-get install postgresql") || !strings.Contains(err.Error(), "database.url") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		if _, err := Start(t.Context(), Options{}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("odd postgres is passed over", func(t *testing.T) {
		for _, n := range []string{"postgres", "initdb"} {
			if err := os.WriteFile(filepath.Join(empty, n), []byte("#!/bin/sh\necho something else\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if b, err := findIn(t.Context(), []string{empty}, 0); err == nil {
			t.Errorf("found %+v", b)
		}
	})
	t.Run("the newest wins", func(t *testing.T) {
		var dirs []string
		for _, v := range []string{"14.9", "16.2", "12.1", "16.1"} {
			d := tempDir(t)
			for _, n := range []string{"postgres", "initdb"} {
				if err := os.WriteFile(filepath.Join(d, n), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) "+v+" (Test)'\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			dirs = append(dirs, d)
		}
		b, err := findIn(t.Context(), dirs, 0)
		if err != nil || b.Major != 16 || b.Minor != 2 {
			t.Errorf("got %+v, %v", b, err)
		}
		if b, err = findIn(t.Context(), dirs, 14); err != nil || b.Major != 14 {
			t.Errorf("got %+v, %v", b, err)
		}
		if _, err = findIn(t.Context(), dirs, 15); !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "PostgreSQL 15") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("closed folder", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Log("only root hands the server to another user")
			return
		}
		closed := tempDir(t)
		if err := os.Chmod(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := Start(t.Context(), Options{Dir: filepath.Join(closed, "pg")})
		if err == nil || !strings.Contains(err.Error(), "cannot enter "+closed) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Start(ctx, Options{Dir: tempDir(t)}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
