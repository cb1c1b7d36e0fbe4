package lambda

import "syscall"

// childAttributes puts a function in a process group of its own, so that a
// Ctrl-C meant for the host does not reach it first, and has the kernel kill
// it when the host dies without closing.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
