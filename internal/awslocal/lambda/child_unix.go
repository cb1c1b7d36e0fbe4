//go:build unix && !linux

package lambda

import "syscall"

// childAttributes puts a function in a process group of its own, so that a
// Ctrl-C meant for the host does not reach it first. When the host dies
// without closing, a function ends by itself: its Runtime API is gone.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
