package lambda_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestKilledHostTakesItsFunctionsWithIt(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// CommandContext kills the host with SIGKILL: it gets no chance to close.
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	host := exec.CommandContext(ctx, binary)
	host.Env = append(os.Environ(), "TEST_HOST=yes")
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for field := range strings.FieldsSeq(line) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("process %d before the kill: %v", pid, err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 {
		t.Fatalf("pids = %v", pids)
	}
	kill()
	host.Wait() // says "signal: killed", as it should
	for _, pid := range pids {
		if !eventually(func() bool { return gone(pid) }) {
			t.Errorf("process %d outlived its host", pid)
		}
	}
}

// gone also takes a zombie for gone: whoever adopted it may not reap it.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}
