package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"backstop/internal/laptop"
)

// processes names the living processes of a function; *lambda.Host does.
type processes interface{ PIDs(function string) []int }

// killer ends processes with SIGKILL, which none can prepare for.
type killer struct {
	processes processes
	random    *rand.Rand
	options   Options

	killed map[string]int // single kills, by function
	all    int            // kills of everything at once
}

// functions are killed in turn at random, the processor most: it has most to lose.
var functions = []string{laptop.Receiver, laptop.Processor, laptop.Receiver, laptop.Processor, laptop.Processor, laptop.Reconciler}

// run kills until the plan is fulfilled. The error is that of a kill that did not work, or of ctx.
func (k *killer) run(ctx context.Context) error {
	k.killed = map[string]int{}
	total := k.options.Kills + k.options.KillsAll
	ticker := time.NewTicker(k.options.Every)
	defer ticker.Stop()
	for n := 1; n <= total; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		// All at once comes at even distances, the last one at the end.
		if k.all < k.options.KillsAll && n*k.options.KillsAll >= (k.all+1)*total {
			if err := k.everything(); err != nil {
				return err
			}
			n++
			continue
		}
		done, err := k.one(functions[k.random.IntN(len(functions))])
		if err != nil {
			return err
		}
		if done {
			n++
		}
	}
	return nil
}

// one kills a random process of a function. There may be none: the last was killed a moment ago.
func (k *killer) one(function string) (bool, error) {
	pids := k.processes.PIDs(function)
	if len(pids) == 0 {
		return false, nil
	}
	done, err := kill(pids[k.random.IntN(len(pids))])
	if done {
		k.killed[function]++
	}
	return done, err
}

func (k *killer) everything() error {
	hit := 0
	for _, function := range []string{laptop.Receiver, laptop.Processor, laptop.Reconciler} {
		for _, pid := range k.processes.PIDs(function) {
			done, err := kill(pid)
			if err != nil {
				return err
			}
			if done {
				hit++
			}
		}
	}
	if hit > 0 {
		k.all++
	}
	return nil
}

// kill ends one process; it may have ended by itself.
func kill(pid int) (bool, error) {
	if pid <= 1 { // 0 and below are groups of processes
		return false, fmt.Errorf("%d is no process to kill", pid)
	}
	err := syscall.Kill(pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("kill process %d: %w", pid, err)
	}
	return true, nil
}
