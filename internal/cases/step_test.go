package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"backstop/internal/awslocal/httpapi"
	"backstop/internal/awslocal/lambda"
	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/receive"
	"backstop/internal/schema"
)

// errSkip is why a variant cannot be run here.
type errSkip string

func (e errSkip) Error() string { return string(e) }

// faultsOf takes a step's faults and remembers them, to see afterwards which were reached.
func (w *world) faultsOf(given []*fault) ([]*fault, error) {
	faults := copied(given)
	for _, f := range faults {
		if !slices.Contains(points, f.Point) || !slices.Contains(kinds, f.Kind) {
			return nil, fmt.Errorf("no fault is called %s at %s", f.Kind, f.Point)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reached = append(w.reached, faults...)
	return faults, nil
}

// do plays one step.
func (w *world) do(s step) error {
	switch s.Op {
	case "deliver":
		_, err := w.deliver(s.As, s.Instance, *s.Request, s.Faults)
		return err
	case "deliver_concurrently":
		return w.deliverConcurrently(s)
	case "deliver_many":
		before := w.reads()
		for range s.Count {
			if _, err := w.deliver(s.As, s.Instance, *s.Request, s.Faults); err != nil {
				return err
			}
		}
		w.floodReads += w.reads() - before
		return nil
	case "drain":
		return w.drain(s.Faults)
	case "process_batch":
		return w.processBatch(s.As, s.Records, s)
	case "redeliver_failures_of":
		return w.redeliver(s)
	case "process":
		return w.process(s)
	case "resume":
		return w.resumeWorkers()
	case "advance":
		time.Sleep(time.Duration(s.Seconds * float64(time.Second)))
		return nil
	case "advance_past_lease":
		time.Sleep(schema.ProcessorTimeout + 6*time.Second) // the lease ends 5 s after the deadline
		return nil
	case "ttl_sweep":
		w.server.DynamoDB.SweepExpired()
		return nil
	case "set_accepted_secrets":
		return w.storeSecrets(s.Names)
	case "replay":
		return w.replay(s)
	case "reconcile":
		return w.reconcile(s, false)
	case "sweep_or_reconcile":
		return w.reconcile(s, true)
	}
	return fmt.Errorf("no step is called %q", s.Op)
}

func (w *world) reads() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.secretReads
}

// deliver sends one request through the gateway it asks for.
func (w *world) deliver(label string, instance int, r request, given []*fault) (*delivery, error) {
	faults, err := w.faultsOf(given)
	if err != nil {
		return nil, err
	}
	p := w.newReceiver(instance, faults)
	invoke := invoker(func(_ context.Context, payload []byte) ([]byte, error) {
		return p.invoke(payload, schema.ReceiverTimeout)
	})
	d := &delivery{label: label}
	began := time.Now()
	var sent []byte
	if r.GatewayEvent != nil {
		payload, signed, err := w.gatewayEvent(&r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", label, err)
		}
		sent = signed
		answer, _ := invoke.Invoke(w.ctx, "receiver", payload) // it has no error of its own
		var out struct {
			StatusCode int
			Body       string
		}
		if answer.FunctionError != "" || json.Unmarshal(answer.Payload, &out) != nil {
			out.StatusCode = 502
		}
		d.status, d.response = out.StatusCode, out.Body
	} else {
		request, body, err := w.httpRequest(&r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", label, err)
		}
		sent = body
		gateway := httpapi.New(httpapi.Options{Invoker: lambda.Invoker(invoke), Now: time.Now, Routes: map[string]string{
			"POST " + receive.WebhookPath: "receiver", "GET " + receive.HealthPath: "receiver"}})
		recorder := httptest.NewRecorder()
		gateway.ServeHTTP(recorder, request.WithContext(w.ctx))
		gateway.Wait()
		d.status, d.response = recorder.Code, recorder.Body.String()
	}
	d.took, d.reason = time.Since(began), p.log.reason()
	if e, err := event.Parse(sent); err == nil {
		d.key = ledger.Key(e.Key(""))
	}
	w.mu.Lock()
	w.deliveries = append(w.deliveries, d)
	w.mu.Unlock()
	return d, w.watch()
}

func (w *world) deliverConcurrently(s step) error {
	var group sync.WaitGroup
	problems := make([]error, len(s.Requests))
	for i, r := range s.Requests {
		group.Go(func() {
			time.Sleep(time.Duration(r.StartMS) * time.Millisecond)
			_, problems[i] = w.deliver(r.As, r.Instance, r.Request, r.Faults)
		})
	}
	group.Wait()
	return errors.Join(problems...)
}

// maxDrain bounds a drain, in virtual time: what waits on an outage is parked after a day.
const maxDrain = 3 * 24 * time.Hour

// drain runs the event source until the queue is empty.
func (w *world) drain(given []*fault) error {
	faults, err := w.faultsOf(given)
	if err != nil {
		return err
	}
	p, err := w.current()
	if err != nil {
		return err
	}
	w.setFaults(p, faults)
	defer func() { w.setFaults(w.worker, nil) }()
	for end := time.Now().Add(maxDrain); time.Now().Before(end); {
		n, err := w.poller.Once(w.ctx)
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		if n > 0 || err != nil { // an error is a batch that comes back
			continue
		}
		stats, err := w.stats()
		if err != nil {
			return err
		}
		if stats == 0 {
			return w.watch()
		}
		time.Sleep(time.Second)
	}
	return errors.New("the queue was not empty after three days")
}

func (w *world) setFaults(p *proc, faults []*fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.faults = faults
}

// stats counts the messages of the queue, hidden ones included.
func (w *world) stats() (int, error) {
	name := w.names.QueueARN[lastColon(w.names.QueueARN)+1:]
	stats, known := w.server.SQS.Stats(name)
	if !known {
		return 0, fmt.Errorf("there is no queue %s", name)
	}
	return stats.Visible + stats.InFlight + stats.Delayed, nil
}

func lastColon(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == ':' {
			return i
		}
	}
	return -1
}

// replay is what an operator asks for.
func (w *world) replay(s step) error {
	w.replays++
	if s.From == "dlq" && w.replays%2 == 0 { // the second, fourth ... by SQS, the others by the ledger
		dead, err := w.deadLetters()
		if err != nil {
			return err
		}
		if len(dead) > 0 && sameSet(dead, s.Events) {
			_, err := w.sqs.StartMessageMoveTask(w.ctx, &awssqs.StartMessageMoveTaskInput{
				SourceArn: &w.names.DeadLetterARN, DestinationArn: &w.names.QueueARN})
			return err
		}
	}
	for _, id := range s.Events {
		for _, key := range w.keys(id) {
			entry, found, err := w.entry(key)
			if err != nil {
				return err
			}
			if !found || entry.Status != ledger.Parked && entry.Status != ledger.Skipped {
				continue // what is done is not run again unless somebody says again
			}
			w.serial++
			entry, err = w.ledger.Replay(w.ctx, ledger.Replaying{Key: key, From: entry.Status, Replay: entry.Replay,
				Token: fmt.Sprintf("operator-%d", w.serial), By: "operator", Why: "the case says so"})
			if err != nil {
				return err
			}
			if err := w.queue.Send(w.ctx, queue.Send{Pointer: pointerTo(entry), Group: entry.Group}); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameSet(a, b []string) bool {
	x, y := slices.Clone(a), slices.Clone(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(slices.Compact(x), slices.Compact(y))
}

// deadLetters are the event ids in the dead-letter queue. It is looked at, not taken from. The dead letter of an
// unreadable message is named by its message id.
func (w *world) deadLetters() ([]string, error) {
	var ids []string
	var taken []sqstypes.Message
	for {
		out, err := w.sqs.ReceiveMessage(w.ctx, &awssqs.ReceiveMessageInput{QueueUrl: &w.names.DeadLetterURL, MaxNumberOfMessages: 10,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"}})
		if err != nil {
			return nil, err
		}
		if len(out.Messages) == 0 {
			break
		}
		taken = append(taken, out.Messages...)
	}
	for _, m := range taken {
		id := m.Attributes["MessageDeduplicationId"]
		if p, err := queue.Decode(aws.ToString(m.Body)); err == nil {
			id = p.EventID()
		}
		ids = append(ids, id)
		if _, err := w.sqs.ChangeMessageVisibility(w.ctx, &awssqs.ChangeMessageVisibilityInput{
			QueueUrl: &w.names.DeadLetterURL, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}
