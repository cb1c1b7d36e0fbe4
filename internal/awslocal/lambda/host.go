package lambda

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Function says how one function is run.
type Function struct {
	Name string
	// Binary is the path of the built bootstrap program; its folder becomes
	// LAMBDA_TASK_ROOT and the working directory.
	Binary string
	// Env is the function's own environment. It cannot change what Lambda
	// itself sets (AWS_REGION, the AWS_LAMBDA_* names, credentials).
	Env map[string]string
	// MemoryMB is only told to the function, not enforced. Default 128.
	MemoryMB int
	// Timeout is when a busy process is killed. Default 3 s.
	Timeout time.Duration
	// Concurrency is the number of processes. Default 1.
	Concurrency int
}

// HostOptions configure a [Host]. Functions is required.
type HostOptions struct {
	Functions []Function
	// Endpoint becomes AWS_ENDPOINT_URL of every function; empty leaves it out.
	Endpoint string
	Region   string // default us-east-1
	Account  string // default 000000000000
	// Log gets every line a function writes, without its newline. It is
	// called from several goroutines. Default: lines are dropped.
	Log func(function, line string)
	Now func() time.Time // default time.Now
}

// ErrClosed is returned by Invoke after Close.
var ErrClosed = errors.New("lambda host is closed")

// Host runs functions as processes. Start it once, and Close it: no child
// outlives Close, and on Linux none outlives a killed host either.
type Host struct {
	opts HostOptions
	fns  map[string]*function
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
}

type function struct {
	Function
	host    *Host
	arn     string
	queue   chan *invocation // unbuffered: who waits can still change their mind
	healthy atomic.Int32     // processes that have asked for work and live

	mu   sync.Mutex
	pids []int
}

// NewHost checks the options; no process is started yet.
func NewHost(opts HostOptions) (*Host, error) {
	if opts.Region == "" {
		opts.Region = "us-east-1"
	}
	if opts.Account == "" {
		opts.Account = "000000000000"
	}
	if opts.Log == nil {
		opts.Log = func(string, string) {}
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	h := &Host{opts: opts, fns: map[string]*function{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	var problems []error
	for _, f := range opts.Functions {
		if f.MemoryMB == 0 {
			f.MemoryMB = 128
		}
		if f.Timeout == 0 {
			f.Timeout = 3 * time.Second
		}
		if f.Concurrency == 0 {
			f.Concurrency = 1
		}
		switch {
		case f.Name == "" || f.Binary == "":
			problems = append(problems, fmt.Errorf("function %q: name and binary are required", f.Name))
		case h.fns[f.Name] != nil:
			problems = append(problems, fmt.Errorf("function %q is given twice", f.Name))
		default:
			h.fns[f.Name] = &function{
				Function: f, host: h, arn: functionARN(opts.Region, opts.Account, f.Name),
				queue: make(chan *invocation),
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configuring the lambda host: %w", err)
	}
	return h, nil
}

func functionARN(region, account, name string) string {
	return "arn:aws:lambda:" + region + ":" + account + ":function:" + name
}

// Start runs all processes and returns when each of them has asked for work.
// When one ends before that, or ctx ends, everything is stopped again and the
// error says which function failed and how. The processes outlive ctx.
func (h *Host) Start(ctx context.Context) error {
	count := 0
	for _, fn := range h.fns {
		count += fn.Concurrency
	}
	started := make(chan error, count)
	for _, fn := range h.fns {
		for range fn.Concurrency {
			h.wg.Go(func() { (&sandbox{fn: fn, first: started}).run() })
		}
	}
	for range count {
		select {
		case err := <-started:
			if err != nil {
				return errors.Join(fmt.Errorf("starting functions: %w", err), h.Close())
			}
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for functions to start: %w", ctx.Err()), h.Close())
		}
	}
	return nil
}

// Close kills all processes and waits until they are gone. Invocations in
// progress end with a function error.
func (h *Host) Close() error {
	h.stop()
	h.wg.Wait()
	return nil
}

// PIDs returns the process ids of a function's living processes, oldest
// first, for tests that kill them.
func (h *Host) PIDs(name string) []int {
	fn := h.fns[name]
	if fn == nil {
		return nil
	}
	fn.mu.Lock()
	defer fn.mu.Unlock()
	return slices.Clone(fn.pids)
}

// invocation is one event on its way through a process.
type invocation struct {
	id      string
	payload []byte
	done    chan Response // holds one, so that finishing never blocks
}

// Invoke hands the payload to a free process of the function, or waits for
// one, and returns its answer. When ctx ends the caller stops waiting; the
// process goes on until it answers or its time-out.
func (h *Host) Invoke(ctx context.Context, name string, payload []byte) (Response, error) {
	fn := h.fns[name]
	if fn == nil {
		return Response{}, errNoFunction(functionARN(h.opts.Region, h.opts.Account, name))
	}
	if len(payload) > MaxRequestBytes {
		return Response{}, errTooLarge()
	}
	inv := &invocation{id: newUUID(), payload: payload, done: make(chan Response, 1)}
	select {
	case fn.queue <- inv:
	case <-ctx.Done():
		return Response{}, fmt.Errorf("waiting for a free %s: %w", name, ctx.Err())
	case <-h.ctx.Done():
		return Response{}, ErrClosed
	}
	select {
	case resp := <-inv.done:
		return resp, nil
	case <-ctx.Done():
		return Response{}, fmt.Errorf("waiting for %s to answer: %w", name, ctx.Err())
	}
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return uuidString(b)
}

func uuidString(b [16]byte) string {
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
