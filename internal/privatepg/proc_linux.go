package privatepg

import "syscall"

// procAttr puts the child into its own process group, so that a Ctrl-C at our terminal does not reach it before we
// had our say, and has the kernel stop it when the thread that started it ends.
func procAttr(cred *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT, Credential: cred}
}
