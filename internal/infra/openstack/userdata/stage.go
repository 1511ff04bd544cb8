package userdata

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

//go:embed all:py
var python embed.FS

// What of a package a script gets to see: its own tree up to treeBytes, and other files that are small.
const (
	fileBytes  = 1 << 20
	treeBytes  = 64 << 20
	totalBytes = 64 << 20
	totalFiles = 5000
)

// imageExts are the extensions of software images, which no script reads.
var imageExts = map[string]bool{
	".raw": true, ".vhd": true, ".vhdx": true, ".vmdk": true, ".vdi": true, ".iso": true, ".ploop": true,
	".qcow2": true, ".aki": true, ".ari": true, ".ami": true, ".img": true,
}

// place is the private directory of one run.
type place struct {
	base, pkg, shim, runner, work string
}

// placePrefix begins the names of all runs' directories.
const placePrefix = "vnfm-userdata-"

// sweep removes the directories of runs that were killed with their server: those older than any run may last.
func sweep(parent string, age time.Duration, log *slog.Logger) {
	if parent == "" {
		parent = os.TempDir()
	}
	left, err := filepath.Glob(filepath.Join(parent, placePrefix+"*"))
	if err != nil {
		return // the pattern is ours
	}
	for _, dir := range left {
		if st, err := os.Lstat(dir); err != nil || !st.IsDir() || time.Since(st.ModTime()) < age {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			log.Warn("what a killed run of a user data script has left cannot be removed", "dir", dir, "error", err)
		}
	}
}

// newPlace lays out a run's directory below parent ("" for the system's): readable for the owner's group only, and with
// a folder that the script may write to. script is the package path that must be there. On error nothing is left.
func newPlace(parent string, fsys fs.FS, script string, as *account) (_ *place, err error) {
	base, err := os.MkdirTemp(parent, placePrefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory for user data: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(base)
		}
	}()
	p := &place{
		base: base, pkg: filepath.Join(base, "package"), shim: filepath.Join(base, "shim", "py"),
		work: filepath.Join(base, "work"),
	}
	p.runner = filepath.Join(p.shim, "runner.py")
	for _, dir := range []string{p.pkg, filepath.Dir(p.shim), p.work} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make a directory for user data: %w", err)
		}
	}
	if err := os.CopyFS(filepath.Dir(p.shim), python); err != nil {
		return nil, fmt.Errorf("lay out the modules for user data: %w", err)
	}
	if err := extract(fsys, p.pkg, script); err != nil {
		return nil, fmt.Errorf("lay out the VNF package for user data: %w", err)
	}
	if as != nil {
		if err := errors.Join(os.Chown(p.work, as.uid, as.gid), os.Chmod(p.work, 0o700),
			os.Chown(base, -1, as.gid), os.Chmod(base, 0o750)); err != nil {
			return nil, fmt.Errorf("hand the directory for user data over: %w", err)
		}
	}
	return p, nil
}

// remove deletes the directory.
func (p *place) remove() error { return os.RemoveAll(p.base) }

// extract copies what a script may need from the package to dir.
func extract(fsys fs.FS, dir, script string) error {
	tree := strings.SplitN(script, "/", 2)[0]
	total, files := int64(0), 0
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		own := name == script || strings.HasPrefix(name, tree+"/") && tree != script
		switch {
		case !info.Mode().IsRegular(), imageExts[strings.ToLower(path.Ext(name))]:
			return nil
		case own && (info.Size() > treeBytes || total+info.Size() > treeBytes+totalBytes || files >= 2*totalFiles):
			return &Error{Message: fmt.Sprintf("%sdirectory %s of the VNF package is too large.", prefix, tree)}
		case !own && (info.Size() > fileBytes || total+info.Size() > totalBytes || files >= totalFiles):
			return nil
		}
		total, files = total+info.Size(), files+1
		if err := copyFile(fsys, name, filepath.Join(dir, filepath.FromSlash(name)), info.Size()); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		return nil
	})
}

func copyFile(fsys fs.FS, name, to string, size int64) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, io.LimitReader(in, size))
	return err
}
