package lab

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childVariable makes the test binary a process that starts a tied daemon, tells its number, and waits to be killed.
const childVariable = "LAB_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		d := sleeper(dir)
		if err := d.start("/bin/sleep", true); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(d.identity().PID)
		select {}
	}
	Main(m)
}

func sleeper(dir string) *daemon {
	return &daemon{name: "600", dir: dir, log: filepath.Join(dir, "log")}
}

// within bounds what a test waits for. It is far more than an idle machine needs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestDaemonEndsWithItsParent(t *testing.T) {
	child := exec.CommandContext(within(t), os.Args[0], "-test.run=^$") //nolint:gosec // ourselves
	child.Env = append(os.Environ(), childVariable+"="+t.TempDir())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	id, ok := identify(pid)
	if !ok {
		t.Fatalf("the daemon, process %d, does not run", pid)
	}
	if err := child.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if err := id.gone(within(t)); err != nil {
		t.Error(err)
	}
}

func TestDaemonIsEndedThoughItIsStopped(t *testing.T) {
	d := sleeper(t.TempDir())
	if err := d.start("/bin/sleep", true); err != nil {
		t.Fatal(err)
	}
	if err := d.start("/bin/sleep", true); err == nil {
		t.Error("it was started twice")
	}
	id := d.identity()
	if err := id.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := id.end(within(t), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := d.failure(); err == nil {
		t.Error("a daemon that has ended is no failure")
	}
	if err := id.signal(syscall.SIGKILL); err != nil {
		t.Errorf("signal one that has ended: %v", err)
	}
}

func TestAnotherProcessWithTheNumberIsLeftAlone(t *testing.T) {
	d := sleeper(t.TempDir())
	if err := d.start("/bin/sleep", true); err != nil {
		t.Fatal(err)
	}
	id := d.identity()
	t.Cleanup(func() { _ = id.end(context.Background(), time.Second) })
	earlier := identity{PID: id.PID, Started: id.Started - 1}
	if earlier.alive() {
		t.Error("an earlier process counts as alive")
	}
	if err := earlier.end(within(t), time.Second); err != nil {
		t.Error(err)
	}
	if !id.alive() {
		t.Error("the later process was ended")
	}
}
