//go:build !unix

package lambda

import "syscall"

func childAttributes() *syscall.SysProcAttr { return nil }
