package lambda_test

import (
	"strings"
	"syscall"
	"testing"
)

func TestDeathOfAnIdleFunctionIsSaid(t *testing.T) {
	t.Parallel()
	host, logs := startHost(t, nil)
	if err := syscall.Kill(host.PIDs("worker")[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return logs.has("worker|died (signal: killed): started again") }) {
		t.Errorf("got %s", strings.Join(logs.lines, "\n"))
	}
}
