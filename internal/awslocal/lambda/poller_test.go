package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"backstop/internal/awslocal/lambda"
)

// fakeSQS hands out the batches it is given, then waits as a long poll does.
type fakeSQS struct {
	mu       sync.Mutex
	batches  [][]types.Message
	inputs   []*sqs.ReceiveMessageInput
	deleted  []string
	failNext error
}

func (q *fakeSQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	q.mu.Lock()
	q.inputs = append(q.inputs, in)
	err := q.failNext
	q.failNext = nil
	var batch []types.Message
	if err == nil && len(q.batches) > 0 {
		batch, q.batches = q.batches[0], q.batches[1:]
	}
	q.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if batch == nil {
		select {
		case <-time.After(time.Duration(in.WaitTimeSeconds) * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &sqs.ReceiveMessageOutput{Messages: batch}, nil
}

func (q *fakeSQS) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range in.Entries {
		q.deleted = append(q.deleted, aws.ToString(e.ReceiptHandle))
	}
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func message(id string) types.Message {
	return types.Message{
		MessageId: aws.String(id), ReceiptHandle: aws.String("handle-" + id), Body: aws.String(`{"v":1}`),
		MD5OfBody: aws.String("md5-" + id), Attributes: map[string]string{"ApproximateReceiveCount": "1", "MessageGroupId": "cus_1"},
		MessageAttributes: map[string]types.MessageAttributeValue{
			"class": {DataType: aws.String("String"), StringValue: aws.String("poison")},
		},
	}
}

func newPoller(t *testing.T, q *fakeSQS, f lambda.Func, change func(*lambda.PollerOptions)) *lambda.Poller {
	t.Helper()
	opts := lambda.PollerOptions{
		SQS: q, Invoker: f, Function: "processor", QueueURL: "http://q/000000000000/events.fifo",
		QueueARN: "arn:aws:sqs:us-east-1:000000000000:events.fifo",
	}
	if change != nil {
		change(&opts)
	}
	p, err := lambda.NewPoller(opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEventIsTheOneLambdaBuilds(t *testing.T) {
	t.Parallel()
	q := &fakeSQS{batches: [][]types.Message{{message("m1")}}}
	var got []byte
	p := newPoller(t, q, func(_ context.Context, payload []byte) ([]byte, error) {
		got = payload
		return nil, nil
	}, nil)
	if n, err := p.Once(t.Context()); n != 1 || err != nil {
		t.Fatalf("Once = %d, %v", n, err)
	}
	const want = `{"Records":[{"messageId":"m1","receiptHandle":"handle-m1","body":"{\"v\":1}",` +
		`"attributes":{"ApproximateReceiveCount":"1","MessageGroupId":"cus_1"},` +
		`"messageAttributes":{"class":{"stringValue":"poison","stringListValues":[],"binaryListValues":[],"dataType":"String"}},` +
		`"md5OfBody":"md5-m1","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:events.fifo","awsRegion":"us-east-1"}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	in := q.inputs[0]
	if in.MaxNumberOfMessages != 10 || in.WaitTimeSeconds != 20 {
		t.Errorf("receive of %d messages for %d s", in.MaxNumberOfMessages, in.WaitTimeSeconds)
	}
}

func TestBatchAnswerDecidesWhatIsDeleted(t *testing.T) {
	t.Parallel()
	all, none := []string{"handle-m1", "handle-m2"}, []string(nil)
	for name, c := range map[string]struct {
		answer  string
		err     error
		deleted []string
		fails   bool
	}{
		"NothingIsSuccess":              {answer: "", deleted: all},
		"NullIsSuccess":                 {answer: "null", deleted: all},
		"EmptyObjectIsSuccess":          {answer: "{}", deleted: all},
		"NullListIsSuccess":             {answer: `{"batchItemFailures":null}`, deleted: all},
		"EmptyListIsSuccess":            {answer: `{"batchItemFailures":[]}`, deleted: all},
		"OneFailureKeepsThatOne":        {answer: `{"batchItemFailures":[{"itemIdentifier":"m2"}]}`, deleted: []string{"handle-m1"}},
		"AllFailuresKeepAll":            {answer: `{"batchItemFailures":[{"itemIdentifier":"m2"},{"itemIdentifier":"m1"}]}`, deleted: none},
		"InvalidJSONKeepsAll":           {answer: `{"batchItem`, deleted: none, fails: true},
		"StringKeepsAll":                {answer: `"ok"`, deleted: none, fails: true},
		"ListThatIsNoneKeepsAll":        {answer: `{"batchItemFailures":"m1"}`, deleted: none, fails: true},
		"EmptyIdentifierKeepsAll":       {answer: `{"batchItemFailures":[{"itemIdentifier":""}]}`, deleted: none, fails: true},
		"NullIdentifierKeepsAll":        {answer: `{"batchItemFailures":[{"itemIdentifier":null}]}`, deleted: none, fails: true},
		"NullItemKeepsAll":              {answer: `{"batchItemFailures":[null]}`, deleted: none, fails: true},
		"BadKeyKeepsAll":                {answer: `{"batchItemFailures":[{"ItemIdentifier":"m1"}]}`, deleted: none, fails: true},
		"UnknownMessageKeepsAll":        {answer: `{"batchItemFailures":[{"itemIdentifier":"m1"},{"itemIdentifier":"m9"}]}`, deleted: none, fails: true},
		"FunctionErrorKeepsAll":         {err: errors.New("it broke"), deleted: none, fails: true},
		"NumberAsIdentifierKeepsAll":    {answer: `{"batchItemFailures":[{"itemIdentifier":1}]}`, deleted: none, fails: true},
		"WrongCaseOfTheListIsNoFailure": {answer: `{"BatchItemFailures":[{"itemIdentifier":"m1"}]}`, deleted: all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &fakeSQS{batches: [][]types.Message{{message("m1"), message("m2")}}}
			p := newPoller(t, q, func(context.Context, []byte) ([]byte, error) { return []byte(c.answer), c.err }, nil)
			_, err := p.Once(t.Context())
			if (err != nil) != c.fails {
				t.Errorf("error = %v, want one: %v", err, c.fails)
			}
			if diff := cmp.Diff(c.deleted, q.deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoMoreBatchesInFlightThanTheMaximum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeSQS{}
		for i := range 12 {
			q.batches = append(q.batches, []types.Message{message(fmt.Sprint("m", i))})
		}
		var mu sync.Mutex
		now, most := 0, 0
		p := newPoller(t, q, func(context.Context, []byte) ([]byte, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return nil, nil
		}, func(o *lambda.PollerOptions) { o.MaximumConcurrency = 3 })
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		done := make(chan struct{})
		go func() { p.Run(ctx); close(done) }()
		time.Sleep(4*time.Second + time.Millisecond)
		synctest.Wait()
		if len(q.deleted) != 12 || most != 3 {
			t.Errorf("after 4 s: %d batches done, at most %d at once; want 12 and 3", len(q.deleted), most)
		}
		cancel()
		<-done
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("Run took %s to end, a long poll must not hold it up", took)
		}
	})
}

func TestPauseFinishesWhatIsUnderWayAndReceivesNothingMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeSQS{batches: [][]types.Message{{message("m1")}}}
		p := newPoller(t, q, func(context.Context, []byte) ([]byte, error) {
			time.Sleep(5 * time.Second)
			return nil, nil
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx)
		time.Sleep(time.Second)
		p.SetEnabled(false)
		if s := p.State(); s != "Disabling" {
			t.Errorf("state at 1 s = %s", s)
		}
		time.Sleep(19*time.Second + time.Millisecond) // the batch is done, the long poll ends at 20 s
		synctest.Wait()
		if s := p.State(); s != "Disabled" || len(q.deleted) != 1 {
			t.Errorf("state at 20 s = %s, deleted %v", s, q.deleted)
		}
		q.mu.Lock()
		q.batches = [][]types.Message{{message("m2")}}
		q.mu.Unlock()
		time.Sleep(time.Hour)
		if len(q.inputs) != 2 {
			t.Errorf("%d receives, want 2: none while disabled", len(q.inputs))
		}
		p.SetEnabled(true)
		if s := p.State(); s != "Enabled" {
			t.Errorf("state after resume = %s", s)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"handle-m1", "handle-m2"}, q.deleted); diff != "" {
			t.Errorf("deleted (-want +got):\n%s", diff)
		}
	})
}

func TestFailedReceiveIsReportedAndTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeSQS{failNext: errors.New("no route"), batches: [][]types.Message{{message("m1")}}}
		var heard []string
		p := newPoller(t, q, func(context.Context, []byte) ([]byte, error) { return nil, nil },
			func(o *lambda.PollerOptions) { o.OnError = func(err error) { heard = append(heard, err.Error()) } })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"receiving for processor: no route"}, heard); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
		if len(q.deleted) != 1 {
			t.Errorf("deleted %v, want the message that came after the failure", q.deleted)
		}
	})
}

func TestShutdownDrainsOnlyAsLongAsAllowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drain   time.Duration
		deleted int
	}{"Abandoned": {0, 0}, "Drained": {10 * time.Second, 1}, "DrainTooShort": {2 * time.Second, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := &fakeSQS{batches: [][]types.Message{{message("m1")}}}
				p := newPoller(t, q, func(ctx context.Context, _ []byte) ([]byte, error) {
					select {
					case <-time.After(5 * time.Second):
						return nil, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}, func(o *lambda.PollerOptions) { o.Drain = c.drain })
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				p.Run(ctx)
				if len(q.deleted) != c.deleted {
					t.Errorf("deleted %v, want %d", q.deleted, c.deleted)
				}
			})
		})
	}
}

func TestWrongPollerOptionsAreAllNamed(t *testing.T) {
	t.Parallel()
	_, err := lambda.NewPoller(lambda.PollerOptions{BatchSize: 11, MaximumConcurrency: 1, WaitTime: 21 * time.Second})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"are required", "batch size 11", "maximum concurrency 1", "wait time 21s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in: %v", want, err)
		}
	}
}

func TestScheduleRunsAtItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []string
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Second)
		defer cancel()
		lambda.Schedule{
			Every: time.Minute, Payload: []byte(`{"task":"sweep"}`),
			Invoker: lambda.Func(func(_ context.Context, payload []byte) ([]byte, error) {
				at = append(at, time.Since(start).String()+string(payload))
				return nil, nil
			}),
		}.Run(ctx)
		want := []string{`1m0s{"task":"sweep"}`, `2m0s{"task":"sweep"}`, `3m0s{"task":"sweep"}`}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

func TestFuncReportsPanicsAndLimits(t *testing.T) {
	t.Parallel()
	f := lambda.Func(func(_ context.Context, payload []byte) ([]byte, error) {
		switch string(payload) {
		case "panic":
			panic("very bad")
		case "big":
			return make([]byte, 6291557), nil
		}
		return payload, nil
	})
	resp, err := f.Invoke(t.Context(), "any", []byte("panic"))
	if err != nil || string(resp.Payload) != `{"errorType":"string","errorMessage":"very bad"}` {
		t.Errorf("panic = %s, %v", resp.Payload, err)
	}
	resp, err = f.Invoke(t.Context(), "any", []byte("big"))
	var e failed
	if uerr := json.Unmarshal(resp.Payload, &e); uerr != nil || err != nil || e.Type != "Function.ResponseSizeTooLarge" {
		t.Errorf("big = %+v, %v, %v", e, err, uerr)
	}
	var refused *lambda.Error
	if _, err := f.Invoke(t.Context(), "any", make([]byte, 6291457)); !errors.As(err, &refused) || refused.Status != 413 {
		t.Errorf("large request = %v", err)
	}
	if _, err := (lambda.Functions{}).Invoke(t.Context(), "none", nil); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("unknown function = %v", err)
	}
}
