package receive_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"backstop/internal/apigw"
	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/receive"
	"backstop/internal/secret"
	"backstop/internal/signature"
	"backstop/internal/telemetry"
)

// sized is an event of about so many bytes, laid out as Stripe does, with lines inside its object.
func sized(size int) string {
	const head = "{\n  \"id\": \"evt_1QBenchmark0001\",\n  \"object\": \"event\",\n  \"api_version\": \"2025-08-27.basil\",\n  \"created\": 1790000000,\n" +
		"  \"data\": {\n    \"object\": {\n      \"id\": \"in_1QBenchmark0001\",\n      \"object\": \"invoice\",\n      \"customer\": \"cus_QBenchmark01\",\n" +
		"      \"lines\": {\n        \"object\": \"list\",\n        \"data\": [\n"
	const line = "          {\n            \"id\": \"il_1QBenchmark%04d\",\n            \"object\": \"line_item\",\n            \"amount\": 1500,\n" +
		"            \"description\": \"1 × Plan (at €15.00 / month)\",\n            \"discountable\": true,\n            \"metadata\": {}\n          }"
	const tail = "\n        ]\n      }\n    }\n  },\n  \"livemode\": false,\n  \"pending_webhooks\": 1,\n  \"request\": {\n    \"id\": null\n  },\n  \"type\": \"invoice.paid\"\n}"
	var lines []string
	for n := len(head) + len(tail); n < size; n += len(line) + 1 {
		lines = append(lines, fmt.Sprintf(line, len(lines)))
	}
	return head + strings.Join(lines, ",\n") + tail
}

// BenchmarkVerifyAndParse is what is done to a delivery's bytes, beside one HMAC pass over them: verifying and parsing
// should stay within three of those, and with packing under 60 us at 3 KB.
func BenchmarkVerifyAndParse(b *testing.B) {
	now := time.Unix(1790000000, 0)
	secrets := []string{signing}
	for _, kb := range []int{1, 3, 12, 120} {
		body := []byte(sized(kb << 10))
		header := signature.Sign(signing, body, now)
		b.Run(fmt.Sprintf("%dKB/hmac", kb), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				mac := hmac.New(sha256.New, []byte(signing))
				mac.Write(body)
				mac.Sum(nil)
			}
		})
		for name, pack := range map[string]bool{"": false, "/packed": true} {
			b.Run(fmt.Sprintf("%dKB%s", kb, name), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := signature.Verify(secrets, header, body, now); err != nil {
						b.Fatal(err)
					}
					if _, err := event.Parse(body); err != nil {
						b.Fatal(err)
					}
					if pack {
						codec.Pack(body, 700) // what an ordinary item leaves of 1 KB
					}
				}
			})
		}
	}
}

// swift is a ledger and a queue that take no time.
type swift struct{}

func (swift) Record(_ context.Context, r ledger.Recording) (ledger.RecordResult, error) {
	return ledger.RecordResult{New: true, Entry: ledger.Entry{Key: r.Key, Group: r.Group, Type: r.Type}}, nil
}

func (swift) Replay(context.Context, ledger.Replaying) (ledger.Entry, error) {
	return ledger.Entry{}, ledger.ErrNotFound
}

func (swift) Send(context.Context, queue.Send) error { return nil }

// BenchmarkInvoke is everything of a delivery that is not DynamoDB, SQS or packing: decoding the gateway's event,
// verifying, parsing, the log line and the answer.
func BenchmarkInvoke(b *testing.B) {
	now := func() time.Time { return time.Unix(1790000000, 0) }
	r := receive.New(receive.Config{
		Ledger: swift{}, Queue: swift{}, Secrets: secret.Fixed([]string{signing}), Log: telemetry.New(io.Discard, "bench", now),
		Now: now, Token: func() string { return "token" }, Release: "0",
	})
	for _, kb := range []int{1, 3, 12, 120} {
		body := sized(kb << 10)
		payload := call("POST", "/webhooks/stripe", signature.Sign(signing, []byte(body), now()), body)
		if request, err := apigw.Decode(payload); err != nil || string(request.Body) != body {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%dKB", kb), func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				answer, err := r.Invoke(b.Context(), payload)
				if err != nil || !strings.Contains(string(answer), `"statusCode":200`) {
					b.Fatal(string(answer), err)
				}
			}
		})
	}
}

const bare = `package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

type echo struct{}

func (echo) Invoke(_ context.Context, payload []byte) ([]byte, error) { return payload, nil }

func main() { lambda.Start(echo{}) }
`

// BenchmarkBinary reports the receiver's size as it is deployed, and the time from starting the process to its first
// poll for work, beside a program of aws-lambda-go and nothing else.
func BenchmarkBinary(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(bare), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, source := range map[string]string{"receiver": "./functions/receiver", "bare": filepath.Join(dir, "main.go")} {
		b.Run(name, func(b *testing.B) {
			deployed := build(b, filepath.Join(dir, name), source, "GOOS=linux", "GOARCH=arm64")
			local := build(b, filepath.Join(dir, name+"-local"), source)
			info, err := os.Stat(deployed)
			if err != nil {
				b.Fatal(err)
			}
			var total time.Duration
			for b.Loop() {
				total += untilFirstPoll(b, local)
			}
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms/start")
		})
	}
}

func build(b *testing.B, output, source string, env ...string) string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "go", "build", "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid=", "-o", output, source)
	cmd.Dir = "../.."
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build %s: %v\n%s", source, err, out)
	}
	return output
}

// untilFirstPoll starts a function against a Lambda runtime API and an AWS of this process.
func untilFirstPoll(b *testing.B, binary string) time.Duration {
	b.Helper()
	polled := make(chan struct{}, 1)
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/invocation/next") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		polled <- struct{}{}
		<-done
	}))
	defer server.Close()
	defer close(done)
	address := server.Listener.Addr().(*net.TCPAddr).String()
	cmd := exec.CommandContext(b.Context(), binary)
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + address, "AWS_ENDPOINT_URL=http://" + address, "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=receiver", "AWS_SECRET_ACCESS_KEY=local", "BACKSTOP_STAGE=bench", "BACKSTOP_LEDGER_TABLE=ledger",
		"BACKSTOP_QUEUE_URL=http://" + address + "/0/q.fifo", "BACKSTOP_SIGNING_SECRETS=" + signing,
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	select {
	case <-polled:
		return time.Since(start)
	case <-time.After(10 * time.Second):
		b.Fatal("the function never polled for work")
		return 0
	}
}

// TestPayloadOfTheBenchmarksIsAnEvent keeps the benchmarks honest.
func TestPayloadOfTheBenchmarksIsAnEvent(t *testing.T) {
	t.Parallel()
	for _, kb := range []int{1, 3, 12, 120} {
		body := sized(kb << 10)
		if ev, err := event.Parse([]byte(body)); err != nil || ev.Group != "cus_QBenchmark01" || !json.Valid([]byte(body)) || len(body) < kb<<10 || len(body) > kb*1024*5/4 {
			t.Errorf("%d KB: %d bytes, group %s, %v", kb, len(body), ev.Group, err)
		}
	}
}
