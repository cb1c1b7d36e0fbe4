package lambda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"
)

// A process that never asked for work is not started again at once: its next
// one will most likely fail as well. One that did is, as Lambda does it.
const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
	// From this many failures in a row on a function counts as broken. One or
	// two may be a process that was killed while it started.
	brokenAfter = 3
)

// maxLogLine cuts an endless line; Lambda's own limit is 256 KB.
const maxLogLine = 256 << 10

// sandbox keeps one process of a function alive until the host is closed.
type sandbox struct {
	fn    *function
	first chan error // told once how the first process started
}

func (s *sandbox) run() {
	// The kernel sends the parent-death signal when the thread that started
	// the child ends, not the process. Keep that thread for as long as the
	// child lives (go.dev/issue/27505).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	failures := 0
	for s.fn.host.ctx.Err() == nil {
		p, err := startProcess(s.fn)
		if err != nil {
			s.tell(err)
			failures++
			s.rest(failures, failure("Runtime.InvalidEntrypoint", err.Error()))
			continue
		}
		if p.run(func() { s.tell(nil) }) {
			s.tell(nil)
			failures = 0
			if s.fn.host.ctx.Err() == nil {
				s.fn.host.opts.Log(s.fn.Name, "died ("+p.exitReason()+"): started again")
			}
			continue
		}
		s.tell(fmt.Errorf("function %s ended before it asked for work: %s", s.fn.Name, p.exitReason()))
		failures++
		s.rest(failures, p.exitResponse("init"))
	}
}

func (s *sandbox) tell(err error) {
	if s.first != nil {
		s.first <- err
		s.first = nil
	}
}

// rest waits before the next start, longer after each failure. When the
// function is broken and no process of it is up, invocations are answered with
// the reason instead of waiting for ever.
func (s *sandbox) rest(failures int, reason Response) {
	timer := time.NewTimer(min(backoffMin<<min(failures-1, 10), backoffMax))
	defer timer.Stop()
	var queue chan *invocation
	if failures >= brokenAfter && s.fn.healthy.Load() == 0 {
		queue = s.fn.queue
	}
	for {
		select {
		case <-timer.C:
			return
		case <-s.fn.host.ctx.Done():
			return
		case inv := <-queue:
			inv.done <- reason
		}
	}
}

// process is one run of a bootstrap binary and its Runtime API.
type process struct {
	fn     *function
	cmd    *exec.Cmd
	server *http.Server
	ctx    context.Context // ends when the process does
	cancel context.CancelFunc
	ready  chan struct{} // closed at the first request for work

	mu       sync.Mutex
	inv      *invocation // in progress
	timer    *time.Timer // of inv
	timedOut bool
	dead     bool
	polled   bool
	initErr  []byte // what the function reported to init/error
	waitErr  error
}

func startProcess(fn *function) (*process, error) {
	binary, err := filepath.Abs(fn.Binary)
	if err != nil {
		return nil, fmt.Errorf("finding the binary of %s: %w", fn.Name, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the runtime API of %s: %w", fn.Name, err)
	}
	p := &process{fn: fn, ready: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(fn.host.ctx)
	p.server = &http.Server{Handler: p.routes(), ReadHeaderTimeout: time.Minute}

	log := func(line string) { fn.host.opts.Log(fn.Name, line) }
	p.cmd = exec.Command(binary)
	p.cmd.Dir = filepath.Dir(binary)
	p.cmd.Env = fn.environment(listener.Addr().String(), filepath.Dir(binary))
	stdout, stderr := &lineWriter{log: log}, &lineWriter{log: log}
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.WaitDelay = 2 * time.Second // a grandchild may hold the pipes open
	if err := p.cmd.Start(); err != nil {
		p.cancel()
		return nil, errors.Join(fmt.Errorf("starting %s: %w", fn.Name, err), listener.Close())
	}
	fn.mu.Lock()
	fn.pids = append(fn.pids, p.cmd.Process.Pid)
	fn.mu.Unlock()
	fn.host.wg.Go(func() {
		// Serve ends when run closes the server.
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log("runtime API: " + err.Error())
		}
	})
	return p, nil
}

// run waits for the process to end and settles what it left behind. It
// reports whether the process ever asked for work.
func (p *process) run(onReady func()) bool {
	exited := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-p.ready:
			onReady()
		case <-exited:
			return
		case <-p.fn.host.ctx.Done():
		}
		select {
		case <-p.fn.host.ctx.Done():
			p.kill()
		case <-exited:
		}
	}()
	err := p.cmd.Wait()
	close(exited)
	<-watched
	for _, w := range []any{p.cmd.Stdout, p.cmd.Stderr} {
		w.(*lineWriter).flush()
	}

	p.fn.mu.Lock()
	p.fn.pids = slices.DeleteFunc(p.fn.pids, func(pid int) bool { return pid == p.cmd.Process.Pid })
	p.fn.mu.Unlock()

	p.mu.Lock()
	p.dead, p.waitErr = true, err
	inv := p.inv
	p.inv = nil
	wasReady := p.polled
	p.mu.Unlock()
	if wasReady {
		p.fn.healthy.Add(-1)
	}
	if inv != nil {
		p.stopTimer()
		inv.done <- p.exitResponse(inv.id)
	}
	p.cancel()
	p.server.Close() // the peer is gone; nothing to drain
	return wasReady
}

// kill cannot hit a stranger: os.Process does nothing once the child was
// waited for.
func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.fn.host.opts.Log(p.fn.Name, "killing the process: "+err.Error())
	}
}

func (p *process) stopTimer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

func (p *process) exitReason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waitErr != nil {
		return p.waitErr.Error()
	}
	return "exit status 0"
}

// exitResponse is what the caller gets whose process died: Lambda's error
// types Sandbox.Timedout and Runtime.ExitError, or what init reported.
func (p *process) exitResponse(requestID string) Response {
	p.mu.Lock()
	timedOut, initErr, waitErr := p.timedOut, p.initErr, p.waitErr
	p.mu.Unlock()
	switch {
	case timedOut:
		return failure("Sandbox.Timedout", fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds",
			requestID, p.fn.Timeout.Seconds()))
	case initErr != nil:
		return Response{Payload: initErr, FunctionError: Unhandled}
	case waitErr != nil:
		return failure("Runtime.ExitError", fmt.Sprintf("RequestId: %s Error: Runtime exited with error: %v", requestID, waitErr))
	}
	return failure("Runtime.ExitError", fmt.Sprintf("RequestId: %s Error: Runtime exited without providing a reason", requestID))
}

// environment is what a function finds in AWS ("Defined runtime environment
// variables"), and nothing of this process but the search path. The access
// key id is the function's name, which is how a recorder tells callers apart.
func (fn *function) environment(runtimeAPI, taskRoot string) []string {
	env := map[string]string{}
	for k, v := range fn.Env {
		env[k] = v
	}
	opts := fn.host.opts
	if opts.Endpoint != "" {
		env["AWS_ENDPOINT_URL"] = opts.Endpoint
	}
	for k, v := range map[string]string{
		"_HANDLER":                        "bootstrap",
		"AWS_ACCESS_KEY_ID":               fn.Name,
		"AWS_DEFAULT_REGION":              opts.Region,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(fn.MemoryMB),
		"AWS_LAMBDA_FUNCTION_NAME":        fn.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + fn.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      "local",
		"AWS_LAMBDA_RUNTIME_API":          runtimeAPI,
		"AWS_REGION":                      opts.Region,
		"AWS_SECRET_ACCESS_KEY":           "local",
		"AWS_SESSION_TOKEN":               "local",
		"LAMBDA_RUNTIME_DIR":              "/var/runtime",
		"LAMBDA_TASK_ROOT":                taskRoot,
		"LANG":                            "en_US.UTF-8",
		"PATH":                            os.Getenv("PATH"),
		"TZ":                              ":UTC",
	} {
		env[k] = v
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	sort.Strings(list)
	return list
}

// lineWriter hands complete lines on. exec writes to it from one goroutine.
type lineWriter struct {
	log func(string)
	buf []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		w.log(string(append(w.buf, b[:i]...)))
		w.buf, b = w.buf[:0], b[i+1:]
	}
	w.buf = append(w.buf, b...)
	if len(w.buf) > maxLogLine {
		w.flush()
	}
	return n, nil
}

func (w *lineWriter) flush() {
	if len(w.buf) > 0 {
		w.log(string(w.buf))
		w.buf = w.buf[:0]
	}
}
