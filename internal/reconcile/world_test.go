package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/control"
	"backstop/internal/deadletter"
	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/stripeapi"
	"backstop/internal/stripeevents"
	"backstop/internal/stripefake"
	"backstop/internal/telemetry"
)

// codec is shared by all worlds. It makes its channels at first use, which must be outside of a bubble.
var codec = sync.OnceValue(func() *ledger.Codec {
	c := ledger.NewCodec()
	c.Warm()
	packed, name := c.Pack([]byte("{}"), 100)
	if _, err := c.Unpack(packed, name); err != nil {
		panic(err)
	}
	return c
})

// world is a reconciler with the real adapters over the local AWS and a fake Stripe, on virtual time.
type world struct {
	*testing.T
	ctx     context.Context
	names   stack.Names
	sqs     *awssqs.Client
	ledger  *ledger.Store
	queue   *queue.SQS
	control *control.Store
	stripe  *stripefake.Server
	fault   func(*http.Request) stripefake.Fault

	pageSize int // of Stripe's lists, where it is to be smaller

	sweeper *Sweeper
	tidier  *Tidier
	auditor *Auditor
	log     bytes.Buffer
	tokens  int
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	shared := codec()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, ctx: t.Context()}
		cfg := awslocal.Config(&awslocal.Transport{Server: awslocal.New(awslocal.Options{})})
		var err error
		if w.names, err = stack.Create(w.ctx, cfg, "test"); err != nil {
			t.Fatal(err)
		}
		db := dynamodb.NewFromConfig(cfg)
		w.sqs = awssqs.NewFromConfig(cfg)
		w.ledger = ledger.New(db, w.names.LedgerTable, time.Now, ledger.WithCodec(shared))
		w.queue = queue.New(w.sqs, w.names.QueueURL, w.names.DeadLetterURL)
		w.control = control.New(db, w.names.ControlTable)
		w.stripe = stripefake.New(stripefake.Options{Fault: func(r *http.Request) stripefake.Fault {
			if w.fault == nil {
				return stripefake.Fault{}
			}
			return w.fault(r)
		}})
		w.sweeper = &Sweeper{Ledger: w.ledger, Queue: w.queue, Control: w.control, Now: time.Now}
		w.tidier = &Tidier{Queue: deadletter.New(w.sqs, w.names.DeadLetterURL), Ledger: w.ledger, Now: time.Now}
		api := stripeapi.New(stripeapi.Config{
			URL:  "http://stripe.local",
			Key:  func(context.Context) (string, error) { return "rk_test_fake", nil },
			HTTP: &http.Client{Transport: inProcess{w, w.stripe}},
		})
		w.auditor = &Auditor{
			Events: stripeevents.New(api, func() float64 { return 0.5 }), Ledger: w.ledger, Queue: w.queue, Control: w.control,
			Types: []string{"customer.updated", "invoice.paid"}, Mode: "test", Now: time.Now, Token: w.token,
		}
		test(w)
	})
}

// inProcess answers requests by a handler, without a socket: sockets know no virtual time.
type inProcess struct {
	w       *world
	handler http.Handler
}

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if q := r.URL.Query(); p.w.pageSize > 0 && q.Has("limit") {
		q.Set("limit", strconv.Itoa(p.w.pageSize))
		r.URL.RawQuery = q.Encode()
	}
	recorder := httptest.NewRecorder()
	p.handler.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

func (w *world) token() string {
	w.tokens++
	return fmt.Sprintf("token-%d", w.tokens)
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// body is an event of a customer, created some time ago.
func body(id, customer string, ago time.Duration) json.RawMessage {
	return fmt.Appendf(nil, `{"id":%q,"object":"event","api_version":"2020-08-27","created":%d,"livemode":false,"type":"customer.updated","data":{"object":{"id":%q,"object":"customer"}}}`,
		id, time.Now().Add(-ago).Unix(), customer)
}

// record records an event as a delivery does, and does not enqueue it.
func (w *world) record(raw []byte) ledger.Entry {
	w.Helper()
	ev, err := event.Parse(raw)
	w.check(err)
	found, err := w.ledger.Record(w.ctx, ledger.Recording{
		Key: ledger.Key(ev.Key("")), Type: ev.Type, CreatedS: ev.CreatedS, Account: ev.Account, Group: ev.Group,
		ObjectID: ev.ObjectID, APIVersion: ev.APIVersion, Origin: ledger.Webhook, Body: raw, Token: w.token(),
	})
	w.check(err)
	return found.Entry
}

func (w *world) recorded(id, customer string) ledger.Entry {
	w.Helper()
	return w.record(body(id, customer, 0))
}

func (w *world) claim(key ledger.Key, lease time.Duration) ledger.Claim {
	w.Helper()
	claim, err := w.ledger.Claim(w.ctx, ledger.Claiming{Key: key, Token: w.token(), Until: time.Now().Add(lease)})
	w.check(err)
	return claim
}

// park takes an entry to parked as the processor does, with its dead-letter message.
func (w *world) park(key ledger.Key) ledger.Claim {
	w.Helper()
	claim := w.claim(key, time.Minute)
	w.deadLetter(claim)
	w.check(w.ledger.Settle(w.ctx, claim, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassError, Error: "no"}))
	return claim
}

func (w *world) deadLetter(claim ledger.Claim) {
	w.Helper()
	e := claim.Entry
	w.check(w.queue.SendDeadLetter(w.ctx, queue.DeadLetter{
		Body:  queue.Encode(queue.Pointer{Key: string(e.Key), Type: e.Type, CreatedS: e.CreatedS, Replay: e.Replay, Generation: claim.Generation}),
		Group: e.Group, DeduplicationID: queue.DeadLetterID(e.EventID, claim.Generation), Reason: "no", Class: "error",
	}))
}

func (w *world) done(key ledger.Key) {
	w.Helper()
	w.check(w.ledger.Settle(w.ctx, w.claim(key, time.Minute), ledger.Settlement{Status: ledger.Done}))
}

func (w *world) replay(e ledger.Entry) ledger.Entry {
	w.Helper()
	e, err := w.ledger.Replay(w.ctx, ledger.Replaying{Key: e.Key, From: ledger.Parked, Replay: e.Replay, Token: w.token(), By: "test", Why: "test"})
	w.check(err)
	return e
}

func (w *world) get(key ledger.Key) ledger.Entry {
	w.Helper()
	e, err := w.ledger.Get(w.ctx, key)
	w.check(err)
	return e
}

// take takes every message off a queue and returns the event ids of the pointers, in order.
func (w *world) take(url string) []string {
	w.Helper()
	var ids []string
	for {
		out, err := w.sqs.ReceiveMessage(w.ctx, &awssqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
		w.check(err)
		if len(out.Messages) == 0 {
			return ids
		}
		for _, m := range out.Messages {
			id := *m.Body
			if p, err := queue.Decode(*m.Body); err == nil {
				id = p.EventID()
			}
			ids = append(ids, id)
			_, err := w.sqs.DeleteMessage(w.ctx, &awssqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
			w.check(err)
		}
	}
}

// visible is how many messages a queue shows.
func (w *world) visible(url string) string {
	w.Helper()
	name := sqstypes.QueueAttributeNameApproximateNumberOfMessages
	out, err := w.sqs.GetQueueAttributes(w.ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{name}})
	w.check(err)
	return out.Attributes[string(name)]
}

func (w *world) sweep() Swept {
	w.Helper()
	swept, err := w.sweeper.Run(w.ctx)
	w.check(err)
	return swept
}

func (w *world) want(what string, got []string, want ...string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// reconcile runs a task as the schedule does and returns its line.
func (w *world) reconcile(task string) map[string]any {
	w.Helper()
	w.log.Reset()
	r := &Reconciler{
		Sweeper: w.sweeper, Counter: w.ledger, Tidier: w.tidier, Auditor: w.auditor,
		Log: telemetry.New(&w.log, "test", time.Now),
	}
	if _, err := r.Invoke(w.ctx, []byte(`{"task":"`+task+`"}`)); err != nil && !strings.Contains(w.log.String(), `"error"`) {
		w.Errorf("the run failed and its line does not say so: %v", err)
	}
	var line map[string]any
	w.check(json.Unmarshal(w.log.Bytes(), &line))
	return line
}

func (w *world) sendRaw(url, group, id, body string) {
	w.Helper()
	_, err := w.sqs.SendMessage(w.ctx, &awssqs.SendMessageInput{
		QueueUrl: &url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String(id),
	})
	w.check(err)
}
