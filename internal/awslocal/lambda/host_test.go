package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	golambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awslocal/lambda"
)

// TestMain lets the test binary be the function too: the host starts it with
// this variable, and it then runs aws-lambda-go like any deployed function.
func TestMain(m *testing.M) {
	switch os.Getenv("TEST_FUNCTION") {
	case "":
		if os.Getenv("TEST_HOST") != "" {
			hostUntilKilled()
		}
		os.Exit(m.Run())
	case "exit":
		fmt.Println("no luck")
		os.Exit(7)
	default:
		if _, err := os.Stat(os.Getenv("TEST_BROKEN_IF")); err == nil {
			os.Exit(7)
		}
		golambda.Start(handle)
	}
}

type order struct {
	Do   string `json:"do"`
	Size int    `json:"size"`
}

func handle(ctx context.Context, in order) (any, error) {
	lc, _ := lambdacontext.FromContext(ctx)
	switch in.Do {
	case "describe":
		deadline, _ := ctx.Deadline()
		return map[string]any{
			"env": os.Environ(), "pid": os.Getpid(), "arn": lc.InvokedFunctionArn,
			"left_ms": time.Until(deadline).Milliseconds(), "request": lc.AwsRequestID,
		}, nil
	case "log":
		fmt.Println("first line")
		fmt.Fprintln(os.Stderr, "second line")
		return "ok", nil
	case "fail":
		return nil, errors.New("it broke")
	case "panic":
		panic("very bad")
	case "exit":
		os.Exit(3)
	case "sleep":
		time.Sleep(time.Minute)
	case "nap":
		time.Sleep(300 * time.Millisecond)
		return os.Getpid(), nil
	case "aws":
		config, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, err
		}
		out, err := sqs.NewFromConfig(config).ListQueues(ctx, &sqs.ListQueuesInput{})
		if err != nil {
			return nil, err
		}
		return len(out.QueueUrls), nil
	case "big":
		return strings.Repeat("x", in.Size), nil
	}
	return "ok", nil
}

type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) add(function, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, function+"|"+line)
}

func (l *logLines) has(want string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if line == want {
			return true
		}
	}
	return false
}

func startHost(t *testing.T, change func(*lambda.Function)) (*lambda.Host, *logLines) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fn := lambda.Function{
		Name: "worker", Binary: binary, Timeout: 20 * time.Second, MemoryMB: 256,
		Env: map[string]string{"TEST_FUNCTION": "run", "TABLE": "ledger", "AWS_REGION": "not-yours"},
	}
	if change != nil {
		change(&fn)
	}
	logs := &logLines{}
	host, err := lambda.NewHost(lambda.HostOptions{
		Functions: []lambda.Function{fn}, Endpoint: "http://127.0.0.1:4566", Log: logs.add,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := host.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	return host, logs
}

func invoke(t *testing.T, host *lambda.Host, payload string) lambda.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	resp, err := host.Invoke(ctx, "worker", []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

type failed struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func functionError(t *testing.T, resp lambda.Response) failed {
	t.Helper()
	if resp.FunctionError != "Unhandled" {
		t.Fatalf("function error = %q, payload %s", resp.FunctionError, resp.Payload)
	}
	var f failed
	if err := json.Unmarshal(resp.Payload, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFunctionSeesLambdasEnvironmentAndNothingOfTheShell(t *testing.T) {
	t.Setenv("SHELL_SECRET", "must not be inherited")
	host, _ := startHost(t, nil)
	var got struct {
		Env     []string
		PID     int
		ARN     string
		LeftMS  int64 `json:"left_ms"`
		Request string
	}
	resp := invoke(t, host, `{"do":"describe"}`)
	if err := json.Unmarshal(resp.Payload, &got); err != nil {
		t.Fatalf("%v in %s", err, resp.Payload)
	}
	env := map[string]string{}
	for _, kv := range got.Env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	for k, want := range map[string]string{
		"TABLE": "ledger", "AWS_REGION": "us-east-1", "AWS_LAMBDA_FUNCTION_NAME": "worker",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
		"AWS_ACCESS_KEY_ID": "worker", "AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "TZ": ":UTC",
	} {
		if env[k] != want {
			t.Errorf("%s = %q, want %q", k, env[k], want)
		}
	}
	if v, ok := env["SHELL_SECRET"]; ok {
		t.Errorf("SHELL_SECRET was inherited: %q", v)
	}
	if got.ARN != "arn:aws:lambda:us-east-1:000000000000:function:worker" {
		t.Errorf("arn = %q", got.ARN)
	}
	if got.LeftMS < 15_000 || got.LeftMS > 20_000 {
		t.Errorf("time left at start = %d ms, want just under 20 s", got.LeftMS)
	}
	if len(got.Request) != 36 {
		t.Errorf("request id = %q, want a UUID", got.Request)
	}
	if pids := host.PIDs("worker"); len(pids) != 1 || pids[0] != got.PID {
		t.Errorf("PIDs = %v, the function says %d", pids, got.PID)
	}
}

func TestErrorsAndPanicsAreFunctionErrors(t *testing.T) {
	t.Parallel()
	host, logs := startHost(t, nil)
	if f := functionError(t, invoke(t, host, `{"do":"fail"}`)); f != (failed{"errorString", "it broke"}) {
		t.Errorf("error = %+v", f)
	}
	if f := functionError(t, invoke(t, host, `{"do":"panic"}`)); f.Message != "very bad" {
		t.Errorf("panic = %+v", f)
	}
	// The panic ended the process; another one takes over.
	if resp := invoke(t, host, `{"do":"log"}`); string(resp.Payload) != `"ok"` {
		t.Errorf("after a panic = %s", resp.Payload)
	}
	for _, want := range []string{"worker|first line", "worker|second line"} {
		if !eventually(func() bool { return logs.has(want) }) {
			t.Errorf("log has no %q", want)
		}
	}
}

func eventually(ok func() bool) bool {
	for range 200 {
		if ok() {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

func TestDyingProcessFailsItsInvocationAndIsReplaced(t *testing.T) {
	t.Parallel()
	host, _ := startHost(t, nil)
	f := functionError(t, invoke(t, host, `{"do":"exit"}`))
	if f.Type != "Runtime.ExitError" || !strings.HasSuffix(f.Message, "Error: Runtime exited with error: exit status 3") {
		t.Errorf("exit = %+v", f)
	}
	invoke(t, host, `{}`)
	before := host.PIDs("worker")
	result := make(chan lambda.Response, 1)
	go func() {
		resp, _ := host.Invoke(context.Background(), "worker", []byte(`{"do":"sleep"}`))
		result <- resp
	}()
	time.Sleep(200 * time.Millisecond) // let the invocation reach the process
	if err := syscall.Kill(before[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f = functionError(t, <-result)
	if f.Type != "Runtime.ExitError" || !strings.HasSuffix(f.Message, "Error: Runtime exited with error: signal: killed") {
		t.Errorf("kill = %+v", f)
	}
	if resp := invoke(t, host, `{}`); string(resp.Payload) != `"ok"` {
		t.Errorf("after the kill = %s", resp.Payload)
	}
	if after := host.PIDs("worker"); len(after) != 1 || after[0] == before[0] {
		t.Errorf("pids before %v, after %v", before, after)
	}
}

func TestBusyProcessIsKilledAtTheTimeout(t *testing.T) {
	t.Parallel()
	host, _ := startHost(t, func(f *lambda.Function) { f.Timeout = time.Second })
	pid := host.PIDs("worker")[0]
	start := time.Now()
	f := functionError(t, invoke(t, host, `{"do":"sleep"}`))
	if f.Type != "Sandbox.Timedout" || !strings.HasSuffix(f.Message, "Error: Task timed out after 1.00 seconds") {
		t.Errorf("time-out = %+v", f)
	}
	if took := time.Since(start); took < time.Second || took > 10*time.Second {
		t.Errorf("took %s, want about 1 s", took)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
	if resp := invoke(t, host, `{}`); string(resp.Payload) != `"ok"` {
		t.Errorf("after the time-out = %s", resp.Payload)
	}
}

func TestConcurrencyIsTheNumberOfProcesses(t *testing.T) {
	t.Parallel()
	host, _ := startHost(t, func(f *lambda.Function) { f.Concurrency = 2 })
	start := time.Now()
	pids := make(chan string, 4)
	for range 4 {
		go func() {
			resp, _ := host.Invoke(context.Background(), "worker", []byte(`{"do":"nap"}`))
			pids <- string(resp.Payload)
		}()
	}
	seen := map[string]int{}
	for range 4 {
		seen[<-pids]++
	}
	if len(seen) != 2 {
		t.Errorf("answers by process = %v, want two processes", seen)
	}
	if took := time.Since(start); took < 600*time.Millisecond {
		t.Errorf("four naps of 300 ms on two processes took %s", took)
	}
}

func TestPayloadLimitsAreLambdas(t *testing.T) {
	t.Parallel()
	host, _ := startHost(t, nil)
	payload := []byte(`{"do":"` + strings.Repeat("x", 6291456-len(`{"do":""}`)) + `"}`)
	if resp, err := host.Invoke(t.Context(), "worker", payload); err != nil || resp.FunctionError != "" {
		t.Errorf("request of exactly the limit: %v, %q", err, resp.FunctionError)
	}
	_, err := host.Invoke(t.Context(), "worker", append(payload, ' '))
	var refused *lambda.Error
	if !errors.As(err, &refused) || refused.Status != 413 || refused.Code != "RequestEntityTooLargeException" {
		t.Errorf("one byte more: %v", err)
	}
	if resp := invoke(t, host, `{"do":"big","size":6291554}`); resp.FunctionError != "" || len(resp.Payload) != 6291556 {
		t.Errorf("answer of exactly the limit: %q, %d bytes", resp.FunctionError, len(resp.Payload))
	}
	if f := functionError(t, invoke(t, host, `{"do":"big","size":6291555}`)); f.Type != "Function.ResponseSizeTooLarge" {
		t.Errorf("one byte more: %+v", f)
	}
}

func TestFunctionThatCannotStartIsAnErrorOfStart(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	logs := &logLines{}
	host, err := lambda.NewHost(lambda.HostOptions{Log: logs.add, Functions: []lambda.Function{
		{Name: "broken", Binary: binary, Env: map[string]string{"TEST_FUNCTION": "exit"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = host.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "function broken ended before it asked for work: exit status 7") {
		t.Errorf("Start = %v", err)
	}
	if !logs.has("broken|no luck") {
		t.Error("what the function said is not in the log")
	}
}

func TestCloseEndsChildrenAndInvocations(t *testing.T) {
	t.Parallel()
	host, _ := startHost(t, func(f *lambda.Function) { f.Concurrency = 2 })
	pids := host.PIDs("worker")
	result := make(chan lambda.Response, 1)
	go func() {
		resp, _ := host.Invoke(context.Background(), "worker", []byte(`{"do":"sleep"}`))
		result <- resp
	}()
	time.Sleep(200 * time.Millisecond) // let the invocation reach a process
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	if f := functionError(t, <-result); f.Type != "Runtime.ExitError" {
		t.Errorf("invocation in progress = %+v", f)
	}
	if len(pids) != 2 {
		t.Fatalf("pids = %v", pids)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", pid, err)
		}
	}
	if _, err := host.Invoke(t.Context(), "worker", nil); !errors.Is(err, lambda.ErrClosed) {
		t.Errorf("Invoke after Close = %v", err)
	}
}

func TestFunctionThatCannotStartAgainFailsItsInvocations(t *testing.T) {
	t.Parallel()
	marker := t.TempDir() + "/broken"
	host, _ := startHost(t, func(f *lambda.Function) { f.Env["TEST_BROKEN_IF"] = marker })
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pid := host.PIDs("worker")[0]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return !slices.Contains(host.PIDs("worker"), pid) }) {
		t.Fatal("the host does not see the process die")
	}
	// Waits until the third start has failed, then hears why.
	f := functionError(t, invoke(t, host, `{}`))
	if f.Type != "Runtime.ExitError" || !strings.HasSuffix(f.Message, "Error: Runtime exited with error: exit status 7") {
		t.Errorf("broken = %+v", f)
	}
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return string(invoke(t, host, `{}`).Payload) == `"ok"` }) {
		t.Error("the function does not come back once it can start")
	}
}
