//go:build !linux

package privatepg

import "syscall"

// procAttr puts the child into its own process group. This system cannot tie a child's life to ours; the next start
// ends what a kill has left.
func procAttr(cred *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: cred}
}
