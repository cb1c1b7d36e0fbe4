package verify_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awslocal"
	"backstop/internal/laptop"
	"backstop/internal/laptop/laptoptest"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/signature"
	"backstop/internal/verify"
)

var binaries string

func TestMain(m *testing.M) { laptoptest.Main(m, &binaries) }

// local is the laptop as the checks see it.
type local struct {
	*laptop.Laptop
	verify.Deployment
}

func start(t *testing.T, observe func(*local, *awslocal.Call)) *local {
	t.Helper()
	l := &local{}
	started, err := laptop.Start(t.Context(), laptop.Options{
		Binaries: binaries, SweepEvery: time.Hour, AuditEvery: time.Hour, Log: func(string, string) {}, Secrets: []string{"whsec_fake_verify"},
		Observe: func(c *awslocal.Call, _ int, _ []byte) {
			if observe != nil && c.Caller == "processor" {
				observe(l, c)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Error(err)
		}
	})
	l.Laptop = started
	messages := sqs.NewFromConfig(started.AWS)
	l.Deployment = verify.Deployment{
		Ledger: ledger.New(dynamodb.NewFromConfig(started.AWS), started.Names.LedgerTable, time.Now),
		Queue:  queue.New(messages, started.Names.QueueURL, started.Names.DeadLetterURL),
		By:     "test", Now: time.Now, Token: rand.Text, Lease: 9 * time.Second, Quiet: time.Second,
	}
	l.Mapping, l.DeadLetters, l.Deployment.Endpoint = mapping{l}, deadLetters{l}, endpoint{l}
	return l
}

type mapping struct{ l *local }

func (m mapping) Enabled(context.Context) (bool, error) { return m.l.Poller.State() == "Enabled", nil }

func (m mapping) Switch(ctx context.Context, on bool) error {
	m.l.Poller.SetEnabled(on)
	for !strings.HasSuffix(m.l.Poller.State(), "abled") && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	return ctx.Err()
}

type deadLetters struct{ l *local }

func (d deadLetters) Depth(context.Context) (int, error) {
	stats, found := d.l.Local.SQS.Stats("backstop-dev-dead-letter.fifo")
	if !found {
		return 0, fmt.Errorf("there is no dead-letter queue")
	}
	return stats.Visible + stats.InFlight, nil
}

func (d deadLetters) Redrive(ctx context.Context) error {
	_, err := sqs.NewFromConfig(d.l.AWS).StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{
		SourceArn: &d.l.Names.DeadLetterARN, DestinationArn: &d.l.Names.QueueARN,
	})
	return err
}

type endpoint struct{ l *local }

func (e endpoint) Health(context.Context) error {
	answer, err := http.Get(strings.TrimSuffix(e.l.Laptop.Endpoint, "/webhooks/stripe") + "/health")
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func (e endpoint) Deliver(ctx context.Context, body []byte) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.l.Laptop.Endpoint, strings.NewReader(string(body)))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Stripe-Signature", signature.Sign("whsec_fake_verify", body, time.Now()))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// check runs one check by its name.
func (l *local) check(t *testing.T, name string) verify.Finding {
	t.Helper()
	for _, c := range verify.Checks {
		if c.Name == name {
			f, err := c.Run(t.Context(), &l.Deployment)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", f)
			return f
		}
	}
	t.Fatalf("there is no check %q", name)
	return verify.Finding{}
}

func TestEveryCheckFindsTheLocalAWSAsAssumed(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	if len(verify.Checks) != 5 {
		t.Fatalf("%d checks", len(verify.Checks))
	}
	for _, c := range verify.Checks {
		if f := l.check(t, c.Name); f.Verdict != verify.AsAssumed || len(f.Figures) == 0 {
			t.Errorf("%s: %+v", c.Name, f)
		}
	}
	counts, err := l.Ledger.(*ledger.Store).OpenCounts(t.Context())
	if err != nil || counts.Todo != 0 || counts.Parked != 0 {
		t.Errorf("the checks leave %+v open, %v", counts, err)
	}
	if enabled, _ := l.Mapping.Enabled(t.Context()); !enabled {
		t.Error("the checks leave the deployment paused")
	}
}

// TestLambdaThatTouchesVisibilityIsFoundOut has somebody make each message visible again right after the processor has
// hidden it, as Lambda would if it did.
func TestLambdaThatTouchesVisibilityIsFoundOut(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	hidden := map[string]int{}
	var touching sync.WaitGroup
	defer touching.Wait()
	l := start(t, func(l *local, c *awslocal.Call) {
		if c.Action != "ChangeMessageVisibilityBatch" {
			return
		}
		var in struct {
			Entries []struct{ ReceiptHandle string }
		}
		if json.Unmarshal(c.Body, &in) != nil {
			return
		}
		for _, entry := range in.Entries {
			mu.Lock()
			hidden[entry.ReceiptHandle]++
			second := hidden[entry.ReceiptHandle] == 2 // the first is the batch's own
			mu.Unlock()
			if second {
				touching.Go(func() {
					time.Sleep(200 * time.Millisecond)
					_, _ = sqs.NewFromConfig(l.AWS).ChangeMessageVisibility(context.Background(), &sqs.ChangeMessageVisibilityInput{
						QueueUrl: &l.Names.QueueURL, ReceiptHandle: aws.String(entry.ReceiptHandle), VisibilityTimeout: 0,
					})
				})
			}
		}
	})
	if f := l.check(t, "visibility"); f.Verdict != verify.Otherwise || !strings.Contains(f.Means, "at once") {
		t.Errorf("it is not found out: %+v", f)
	}
}

func TestPausedDeploymentIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	if err := l.Mapping.Switch(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if f := l.check(t, "pause"); f.Verdict != verify.NotChecked {
		t.Errorf("%+v", f)
	}
	if enabled, _ := l.Mapping.Enabled(t.Context()); enabled {
		t.Error("the check has resumed what somebody paused")
	}
}

func TestOthersDeadLettersAreNotMoved(t *testing.T) {
	t.Parallel()
	l := start(t, nil)
	if err := l.Queue.(*queue.SQS).SendDeadLetter(t.Context(), queue.DeadLetter{Body: "theirs", Group: "g", DeduplicationID: "d"}); err != nil {
		t.Fatal(err)
	}
	if f := l.check(t, "redrive"); f.Verdict != verify.NotChecked {
		t.Errorf("%+v", f)
	}
	if depth, err := l.DeadLetters.Depth(t.Context()); depth != 1 || err != nil {
		t.Errorf("the dead-letter queue holds %d, %v", depth, err)
	}
}

func TestCheckWithoutAnEndpointSaysSo(t *testing.T) {
	t.Parallel()
	for _, c := range verify.Checks {
		if c.Name == "visibility" {
			continue // which needs none
		}
		if f, err := c.Run(t.Context(), &verify.Deployment{}); err != nil || f.Verdict != verify.NotChecked || f.Check != c.Name {
			t.Errorf("%s: %+v, %v", c.Name, f, err)
		}
	}
}
