package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/lambda"
)

// hostUntilKilled is the test binary as a host: it keeps its functions busy,
// so that they do not see the Runtime API go away, prints their process ids
// and stays.
func hostUntilKilled() {
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	host, err := lambda.NewHost(lambda.HostOptions{Functions: []lambda.Function{
		{Name: "worker", Binary: binary, Concurrency: 2, Timeout: time.Minute, Env: map[string]string{"TEST_FUNCTION": "run"}},
	}})
	if err != nil {
		panic(err)
	}
	if err := host.Start(context.Background()); err != nil {
		panic(err)
	}
	for range 2 {
		go host.Invoke(context.Background(), "worker", []byte(`{"do":"sleep"}`))
	}
	time.Sleep(500 * time.Millisecond) // let both reach their process
	fmt.Println(strings.Trim(fmt.Sprint(host.PIDs("worker")), "[]"))
	select {}
}

func TestFunctionReachesTheLocalAWSUnderItsOwnName(t *testing.T) {
	t.Parallel()
	recorder := &awslocal.Recorder{}
	server := httptest.NewServer(awslocal.New(awslocal.Options{Recorder: recorder}))
	defer server.Close()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, err := lambda.NewHost(lambda.HostOptions{Endpoint: server.URL, Functions: []lambda.Function{
		{Name: "reconciler", Binary: binary, Timeout: 20 * time.Second, Env: map[string]string{"TEST_FUNCTION": "run"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	if err := host.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp, err := host.Invoke(t.Context(), "reconciler", []byte(`{"do":"aws"}`))
	if err != nil || string(resp.Payload) != "0" {
		t.Fatalf("answer = %s, %v", resp.Payload, err)
	}
	want := []awslocal.Use{{
		Caller: "reconciler", Permission: awslocal.Permission{Action: "sqs:ListQueues", Resource: "*"}, Count: 1,
	}}
	if diff := cmp.Diff(want, recorder.Uses()); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}

// queue makes a FIFO queue on an in-process SQS and sends it messages of
// groups, named group/number.
func queue(t *testing.T, messages ...string) (*sqs.Client, string) {
	t.Helper()
	server := awslocal.New(awslocal.Options{})
	client := sqs.NewFromConfig(awslocal.Config(&awslocal.Transport{Server: server}))
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("events.fifo"), Attributes: map[string]string{"FifoQueue": "true", "VisibilityTimeout": "60"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		group, _, _ := strings.Cut(m, "/")
		_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: out.QueueUrl, MessageBody: &m, MessageGroupId: &group, MessageDeduplicationId: &m,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return client, *out.QueueUrl
}

// worker is a function that fails the messages it is told to, each once, with
// the rest of their group, and keeps what it finished and when.
type worker struct {
	mu    sync.Mutex
	start time.Time
	fail  map[string]bool
	done  []string
}

func (w *worker) handle(_ context.Context, payload []byte) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var event events.SQSEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	var answer events.SQSEventResponse
	stopped := map[string]bool{}
	for _, m := range event.Records {
		if group := m.Attributes["MessageGroupId"]; w.fail[m.Body] || stopped[group] {
			delete(w.fail, m.Body)
			stopped[group] = true
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			continue
		}
		w.done = append(w.done, fmt.Sprintf("%s at %s, receive %s", m.Body, time.Since(w.start), m.Attributes["ApproximateReceiveCount"]))
	}
	return json.Marshal(answer)
}

func TestFailedMessageHoldsItsGroupUntilItsVisibilityEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, url := queue(t, "a/1", "a/2", "b/1", "b/2")
		w := &worker{start: time.Now(), fail: map[string]bool{"a/1": true}}
		p, err := lambda.NewPoller(lambda.PollerOptions{
			SQS: client, Invoker: lambda.Func(w.handle), Function: "processor", QueueURL: url,
			QueueARN: "arn:aws:sqs:us-east-1:000000000000:events.fifo",
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		p.Run(ctx)
		slices.Sort(w.done)
		want := []string{
			"a/1 at 1m0s, receive 2", "a/2 at 1m0s, receive 2",
			"b/1 at 0s, receive 1", "b/2 at 0s, receive 1",
		}
		if diff := cmp.Diff(want, w.done); diff != "" {
			t.Errorf("done (-want +got):\n%s", diff)
		}
	})
}

func TestFunctionErrorBringsTheWholeBatchBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, url := queue(t, "a/1", "b/1")
		w := &worker{start: time.Now()}
		calls := 0
		p, err := lambda.NewPoller(lambda.PollerOptions{
			SQS: client, Function: "processor", QueueURL: url, QueueARN: "arn:aws:sqs:us-east-1:000000000000:events.fifo",
			Invoker: lambda.Func(func(ctx context.Context, payload []byte) ([]byte, error) {
				if calls++; calls == 1 {
					return nil, errors.New("it broke")
				}
				return w.handle(ctx, payload)
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		p.Run(ctx)
		slices.Sort(w.done)
		want := []string{"a/1 at 1m0s, receive 2", "b/1 at 1m0s, receive 2"}
		if diff := cmp.Diff(want, w.done); diff != "" {
			t.Errorf("done (-want +got):\n%s", diff)
		}
	})
}
