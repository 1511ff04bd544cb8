//go:build linux

package userdata

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is whom a script runs as.
type account struct{ uid, gid int }

// lookup finds the account for scripts: none (ourselves) unless we are root, else the named one, "nobody" by default.
func lookup(name string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if name == "" {
		name = "nobody"
	}
	if uid, err := strconv.Atoi(name); err == nil && uid > 0 {
		return &account{uid, uid}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("find the user for user data scripts: %w", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("read the ids of user %s: %w", name, err)
	}
	return &account{uid, gid}, nil
}

// threadsOf counts the threads of whom a script runs as: the system's limit is one of all that a user has.
func threadsOf(as *account) uint64 {
	uid := uint32(os.Getuid()) //nolint:gosec // an id
	if as != nil {
		uid = uint32(as.uid) //nolint:gosec // an id of a real account
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	n := 0
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		var st syscall.Stat_t
		if syscall.Stat("/proc/"+p.Name(), &st) != nil || st.Uid != uid {
			continue
		}
		tasks, _ := os.ReadDir("/proc/" + p.Name() + "/task") // none: it has just ended
		n += len(tasks)
	}
	return uint64(n)
}

// apart are the namespaces that a script gets for itself: without a network, and such that all it has started dies
// with it.
const apart = syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC

// attributes returns how to start a script, the most confined way first; the last is possible everywhere.
func attributes(as *account) []*syscall.SysProcAttr {
	plain := func() *syscall.SysProcAttr {
		a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if as != nil {
			a.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)} //nolint:gosec // ids of a real account
		}
		return a
	}
	confined := plain()
	confined.Cloneflags = apart
	if as == nil {
		confined.Cloneflags |= syscall.CLONE_NEWUSER
		confined.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		confined.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return []*syscall.SysProcAttr{confined, plain()}
}

// killAll ends a script and what it has started in its session's process group.
func killAll(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
