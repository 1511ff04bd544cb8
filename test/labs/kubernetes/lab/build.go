package lab

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
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"
	"time"
)

// HomeVariable names the environment variable with the lab's folder.
const HomeVariable = "VNFM_LAB_KUBERNETES_DIR"

// source is where the control plane's module stands, below the root of ours.
const source = "test/labs/kubernetes/plane"

// Running is the folder, below [Home], of the control plane that the command line starts and that [Start] joins.
const Running = "running"

// Home is the folder that programs are kept in, and the control plane that stays ([Running]): the value of [HomeVariable], or vnfm/lab-kubernetes in the user's cache folder.
func Home() (string, error) {
	if dir := os.Getenv(HomeVariable); dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; set %s", err, HomeVariable)
	}
	return filepath.Join(cache, "vnfm", "lab-kubernetes"), nil
}

// Binary returns the path of the program that is the whole control plane. It is built when there is none that was built
// from the same sources by the same Go: minutes on a fresh machine, seconds while Go's caches are warm. Several
// processes may call it at once: one builds, the others wait.
func Binary(ctx context.Context, log *slog.Logger) (string, error) {
	return kept(ctx, source, "plane-", func(dir, path string) error { return build(ctx, log, dir, path) })
}

// kept returns the path of the program that is made of the sources in a folder below the root of our module. It is made when there
// is none of them and of this Go.
func kept(ctx context.Context, sources, prefix string, build func(dir, path string) error) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, filepath.FromSlash(sources))
	goVersion, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOARCH").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for its version: %w", err)
	}
	stamp, err := stampOf(os.DirFS(dir), goVersion)
	if err != nil {
		return "", fmt.Errorf("read the sources in %s: %w", dir, err)
	}
	home, err := Home()
	if err != nil {
		return "", err
	}
	path := filepath.Join(home, "bin", prefix+stamp)
	if executable(path) {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // nothing secret
		return "", err
	}
	unlock, err := lockFile(ctx, filepath.Join(home, "bin", "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if executable(path) { // somebody else has built it meanwhile
		return path, nil
	}
	if err := build(dir, path); err != nil {
		return "", err
	}
	return path, dropOlder(filepath.Dir(path), prefix, filepath.Base(path))
}

// build links the program under another name first: a build that is broken off leaves nothing that looks whole.
func build(ctx context.Context, log *slog.Logger, dir, path string) error {
	version, err := kubernetesVersion(dir)
	if err != nil {
		return err
	}
	log.Info("building the Kubernetes control plane; the first time this takes minutes", "version", version, "file", path)
	begun := time.Now()
	part := path + ".part"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", linkerFlags(version), "-o", part, ".") //nolint:gosec // ours
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the control plane in %s: %w\n%s", dir, err, tail(out, 40))
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	log.Info("built the Kubernetes control plane", "took", time.Since(begun).Round(time.Second))
	return nil
}

// linkerFlags tells the daemons which Kubernetes they are, which they learn at link time alone, and leaves out what
// debuggers want, which halves the link.
func linkerFlags(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const base, client = "k8s.io/component-base/version", "k8s.io/client-go/pkg/version"
	return strings.Join([]string{
		"-s -w",
		"-X " + base + ".gitVersion=" + version,
		"-X " + base + ".gitMajor=" + major,
		"-X " + base + ".gitMinor=" + minor,
		"-X " + base + ".gitTreeState=archive",
		"-X " + client + ".gitVersion=" + version,
	}, " ")
}

var requirement = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`)

func kubernetesVersion(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	m := requirement.FindSubmatch(raw)
	if m == nil {
		return "", fmt.Errorf("%s/go.mod requires no k8s.io/kubernetes", dir)
	}
	return string(m[1]), nil
}

// stampOf digests what the program is built from.
func stampOf(sources fs.FS, goVersion []byte) (string, error) {
	h := sha256.New()
	_, _ = h.Write(goVersion)
	err := fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := sources.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, _ = fmt.Fprintf(h, "\n%s\n", name)
		_, err = io.Copy(h, f)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// dropOlder removes programs that were built from other sources, but for the newest of them, which a lab may still run.
func dropOlder(dir, prefix, keep string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	type old struct {
		path string
		at   time.Time
	}
	var olds []old
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || e.Name() == keep {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		olds = append(olds, old{filepath.Join(dir, e.Name()), info.ModTime()})
	}
	sort.Slice(olds, func(i, j int) bool { return olds[i].at.After(olds[j].at) })
	var errs []error
	for _, o := range olds[min(1, len(olds)):] {
		errs = append(errs, os.Remove(o.path))
	}
	return errors.Join(errs...)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// lockFile waits for a file's lock, which ends with this process at the latest.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = await(ctx, "the lock "+path, func() (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a descriptor fits
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
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

func tail(text []byte, lines int) string {
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// await asks again and again, at short intervals, until done says yes or fails, or ctx ends.
func await(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
