package privatepg

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// owner is the user the server runs as; nil credentials mean ourselves.
type owner struct {
	name string
	cred *syscall.Credential
}

// findOwner picks the unprivileged user that a root process hands the server to. PostgreSQL refuses to run as root.
func findOwner(name string) (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	if name == "" {
		name = "nobody"
	}
	u, err := user.Lookup(name)
	if err != nil {
		return owner{}, fmt.Errorf("look up the user that PostgreSQL is to run as: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return owner{}, fmt.Errorf("user %s: uid %q: %w", name, u.Uid, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return owner{}, fmt.Errorf("user %s: gid %q: %w", name, u.Gid, err)
	}
	if uid == 0 {
		return owner{}, fmt.Errorf("PostgreSQL does not run as %s, who is root", name)
	}
	return owner{name: name, cred: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// folder makes a folder that belongs to the owner, with exactly this mode.
func (o owner) folder(path string, mode os.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return fmt.Errorf("make the folder %s: %w", path, err)
	}
	if o.cred != nil {
		if err := os.Chown(path, int(o.cred.Uid), int(o.cred.Gid)); err != nil {
			return fmt.Errorf("give the folder %s to %s: %w", path, o.name, err)
		}
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("set the mode of %s: %w", path, err)
	}
	return nil
}

// canReach tells whether the owner can enter every folder above and including dir, and names the one it cannot.
func (o owner) canReach(dir string) error {
	if o.cred == nil {
		return nil
	}
	for d := dir; ; d = filepath.Dir(d) {
		st, err := os.Stat(d)
		if err != nil {
			return fmt.Errorf("look at %s: %w", d, err)
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		need := os.FileMode(0o001)
		switch {
		case sys.Uid == o.cred.Uid:
			need = 0o100
		case sys.Gid == o.cred.Gid:
			need = 0o010
		}
		if st.Mode().Perm()&need == 0 {
			return fmt.Errorf("the user %s, whom PostgreSQL runs as because we are root, cannot enter %s; choose a folder elsewhere (database.private_dir), such as below /var/lib", o.name, d)
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}

// takeLock claims the folder for this process. The kernel lets go of it when the process ends in any way.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock %s: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s (by process %s)", ErrInUse, filepath.Dir(path), strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}
