package helm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// dirPrefix begins the names of runs' directories.
const dirPrefix = "vnfm-helm-"

// sweepEvery is the least time between two looks for what killed runs have left.
const sweepEvery = time.Minute

// errTaken is that somebody else has a directory: a run, or who removes what a run has left.
var errTaken = errors.New("it is in use")

// enter makes a directory for a run, which is the run's until leave removes it. It is locked meanwhile, and the lock ends with the
// server, however that does: so others know by it which directories are nobody's any more.
func (r *Runner) enter() (dir string, leave func(), err error) {
	for {
		dir, err = os.MkdirTemp(r.cfg.TempDir, dirPrefix)
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return "", nil, fmt.Errorf("make a directory for helm: %w", err)
		}
		held, err := take(dir)
		if errors.Is(err, errTaken) || errors.Is(err, os.ErrNotExist) {
			continue // somebody sweeps, and was faster
		}
		if err != nil {
			_ = os.RemoveAll(dir)
			return "", nil, fmt.Errorf("lock the directory %s of a run of helm: %w", dir, err)
		}
		return dir, func() {
			if err := os.RemoveAll(dir); err != nil {
				r.log.Warn("the directory of a run of helm cannot be removed", "dir", dir, "error", err)
			}
			_ = held.Close()
		}, nil
	}
}

// take locks a directory for as long as the file is open. errTaken: somebody else has it; os.ErrNotExist: it is gone.
func take(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0) //nolint:gosec // a run's
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errTaken
	}
	if err == nil { // whoever had it may have removed it
		_, err = os.Lstat(dir)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes the directories of runs that were killed with their server, once in a while.
func (r *Runner) sweep() {
	r.mu.Lock()
	due := time.Since(r.swept) >= sweepEvery
	if due {
		r.swept = time.Now()
	}
	r.mu.Unlock()
	if !due {
		return
	}
	parent := r.cfg.TempDir
	if parent == "" {
		parent = os.TempDir()
	}
	left, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return // no pattern: nothing of ours can be there
	}
	for _, dir := range left {
		held, err := take(dir)
		if err != nil {
			continue // a run's, somebody else's, or none any more
		}
		if err := os.RemoveAll(dir); err != nil {
			r.log.Warn("what a killed run of helm has left cannot be removed", "dir", dir, "error", err)
		}
		_ = held.Close()
	}
}
