package process_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"backstop/internal/awsclient"
	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/event"
	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/process"
	"backstop/internal/projection"
	"backstop/internal/queue"
	"backstop/internal/schema"
	"backstop/internal/sqsbatch"
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

// world is a processor with the real adapters over the local AWS, on virtual time.
type world struct {
	*testing.T
	ctx      context.Context
	names    stack.Names
	db       *dynamodb.Client // past the faults
	sqs      *awssqs.Client   // past the faults
	ledger   *ledger.Store    // past the faults
	queue    *queue.SQS       // past the faults
	registry handler.Registry
	config   process.Config
	log      *syncBuffer
	exits    int

	mu    sync.Mutex
	fault func(*awslocal.Call) awslocal.Fault
	calls []string // service/action of the processor's calls
}

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// inWorld runs a test in parallel with others, in a bubble of virtual time.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	shared := codec() // outside the bubble: it is shared
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, ctx: t.Context(), log: &syncBuffer{}}
		server := awslocal.New(awslocal.Options{})
		direct := awslocal.Config(&awslocal.Transport{Server: server})
		var err error
		if w.names, err = stack.Create(w.ctx, direct, "test"); err != nil {
			t.Fatal(err)
		}
		w.db, w.sqs = dynamodb.NewFromConfig(direct), awssqs.NewFromConfig(direct)
		w.ledger = ledger.New(w.db, w.names.LedgerTable, time.Now, ledger.WithCodec(shared))
		w.queue = queue.New(w.sqs, w.names.QueueURL, w.names.DeadLetterURL)
		faulty := awslocal.Config(&awslocal.Transport{Server: server, Intercept: w.intercept})
		faulty.Retryer = awsclient.Retryer(func() float64 { return 0.5 })
		db := dynamodb.NewFromConfig(faulty)
		w.config = process.Config{
			Ledger:    ledger.New(db, w.names.LedgerTable, time.Now, ledger.WithCodec(shared)),
			Queue:     queue.New(awssqs.NewFromConfig(faulty), w.names.QueueURL, w.names.DeadLetterURL),
			Projector: projection.New(db),
			Registry:  &w.registry,
			Breakers:  handler.NewBreakers(time.Now),
			Log:       telemetry.New(w.log, "test", time.Now),
			Now:       time.Now,
			Random:    func() float64 { return 0.5 },
			Exit:      func() { w.exits++ },
		}
		test(w)
	})
}

func (w *world) intercept(c *awslocal.Call) awslocal.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c.Action)
	if w.fault == nil {
		return awslocal.Fault{}
	}
	return w.fault(c)
}

// on injects a fault into the calls of an action: the n first ones.
func (w *world) on(action string, n int, f awslocal.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.fault
	w.fault = func(c *awslocal.Call) awslocal.Fault {
		if c.Action == action && n > 0 {
			n--
			return f
		}
		if before != nil {
			return before(c)
		}
		return awslocal.Fault{}
	}
}

func (w *world) count(action string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.calls {
		if c == action {
			n++
		}
	}
	return n
}

func (w *world) processor() *process.Processor {
	w.Helper()
	p, err := process.New(w.config)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// body is an event about an object of a customer.
func body(id, typ, customer string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","type":%q,"created":%d,"livemode":false,`+
		`"data":{"object":{"id":"in_%s","object":"invoice","customer":%q,"amount_paid":5}}}`,
		id, typ, time.Now().Unix(), id, customer)
}

func key(id string) ledger.Key { return ledger.Key("stripe#-#" + id) }

// accept records an event and enqueues its pointer, as the receiver does.
func (w *world) accept(id, typ, customer string) {
	w.Helper()
	w.record(id, body(id, typ, customer))
	w.enqueue(id, typ, customer)
}

func (w *world) record(id, body string) {
	w.Helper()
	e, err := event.Parse([]byte(body))
	if err != nil {
		w.Fatal(err)
	}
	r := ledger.Recording{Key: key(id), Type: e.Type, CreatedS: e.CreatedS, Livemode: e.Livemode, ObjectID: e.ObjectID,
		Group: e.Group, Origin: ledger.Webhook, Body: []byte(body), Token: "delivery-" + id}
	if _, err := w.ledger.Record(w.ctx, r); err != nil {
		w.Fatal(err)
	}
}

func (w *world) enqueue(id, typ, group string) {
	w.Helper()
	w.sendRaw(queue.Encode(queue.Pointer{Key: string(key(id)), Type: typ, CreatedS: time.Now().Unix()}), group)
}

// sendRaw puts any text on the queue.
func (w *world) sendRaw(text, group string) {
	w.Helper()
	w.mu.Lock()
	w.calls = append(w.calls, "raw")
	n := len(w.calls)
	w.mu.Unlock()
	_, err := w.sqs.SendMessage(w.ctx, &awssqs.SendMessageInput{
		QueueUrl: &w.names.QueueURL, MessageBody: &text, MessageGroupId: &group,
		MessageDeduplicationId: aws.String("raw-" + strconv.Itoa(n) + "-" + strconv.FormatInt(time.Now().UnixNano(), 10)),
	})
	if err != nil {
		w.Fatal(err)
	}
}

// receive takes a batch as the event source does.
func (w *world) receive() []sqsbatch.Message {
	w.Helper()
	out, err := w.sqs.ReceiveMessage(w.ctx, &awssqs.ReceiveMessageInput{
		QueueUrl: &w.names.QueueURL, MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	})
	if err != nil {
		w.Fatal(err)
	}
	messages := make([]sqsbatch.Message, len(out.Messages))
	for i, m := range out.Messages {
		count, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		sent, _ := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
		messages[i] = sqsbatch.Message{ID: *m.MessageId, Receipt: *m.ReceiptHandle, Body: *m.Body,
			Group: m.Attributes["MessageGroupId"], ReceiveCount: count, SentMS: sent}
	}
	return messages
}

// handle gives messages to the processor and deletes what it does not report, as the event source does.
func (w *world) handle(p *process.Processor, messages []sqsbatch.Message) []string {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, schema.ProcessorTimeout)
	defer cancel()
	failed, err := p.Batch(ctx, messages)
	if err != nil {
		return nil
	}
	kept := make(map[string]bool)
	for _, id := range failed {
		kept[id] = true
	}
	for _, m := range messages {
		if !kept[m.ID] {
			if _, err := w.sqs.DeleteMessage(w.ctx, &awssqs.DeleteMessageInput{QueueUrl: &w.names.QueueURL, ReceiptHandle: &m.Receipt}); err != nil {
				w.Fatal(err)
			}
		}
	}
	return failed
}

// drain processes until nothing is left in the queue, or for at most the given time.
func (w *world) drain(p *process.Processor, limit time.Duration) {
	w.Helper()
	end := time.Now().Add(limit)
	for time.Now().Before(end) {
		if messages := w.receive(); len(messages) > 0 {
			w.handle(p, messages)
			continue
		}
		if w.visible() == 0 {
			return
		}
		time.Sleep(max(time.Second, limit/1000))
	}
}

// visible counts the messages of the queue, hidden ones included.
func (w *world) visible() int {
	w.Helper()
	out, err := w.sqs.GetQueueAttributes(w.ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &w.names.QueueURL,
		AttributeNames: []sqstypes.QueueAttributeName{"All"}})
	if err != nil {
		w.Fatal(err)
	}
	waiting, _ := strconv.Atoi(out.Attributes["ApproximateNumberOfMessages"])
	hidden, _ := strconv.Atoi(out.Attributes["ApproximateNumberOfMessagesNotVisible"])
	return waiting + hidden
}

// dead takes what is in the dead-letter queue: body and attributes.
func (w *world) dead() []sqstypes.Message {
	w.Helper()
	out, err := w.sqs.ReceiveMessage(w.ctx, &awssqs.ReceiveMessageInput{
		QueueUrl: &w.names.DeadLetterURL, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	})
	if err != nil {
		w.Fatal(err)
	}
	return out.Messages
}

func (w *world) entry(id string) ledger.Entry {
	w.Helper()
	e, err := w.ledger.Get(w.ctx, key(id))
	if err != nil {
		w.Fatal(err)
	}
	return e
}

func (w *world) wantStatus(id string, want ledger.Status, attempts int) {
	w.Helper()
	if e := w.entry(id); e.Status != want || e.Attempts != attempts {
		w.Errorf("%s is %s after %d charged attempts (%s: %s), want %s after %d", id, e.Status, e.Attempts, e.Class, e.LastError, want, attempts)
	}
}

// ids names the events of messages.
func ids(messages []sqsbatch.Message, kept []string) []string {
	in := make(map[string]bool)
	for _, id := range kept {
		in[id] = true
	}
	names := []string{}
	for _, m := range messages {
		if in[m.ID] {
			p, _ := queue.Decode(m.Body)
			names = append(names, p.EventID())
		}
	}
	return names
}

func fine(context.Context, handler.Event) ([]handler.Effect, error) { return nil, nil }

// tally is a Once effect that counts applications of an event.
func (w *world) tally(id string) handler.Effect {
	return handler.Once{Table: w.names.BillingTable, Key: map[string]string{"pk": "tally#" + id, "sk": "-"}, Add: map[string]int64{"n": 1}}
}

func (w *world) tallied(id string) int64 {
	w.Helper()
	row, err := projection.New(w.db).Get(w.ctx, w.names.BillingTable, map[string]string{"pk": "tally#" + id, "sk": "-"})
	if err != nil {
		w.Fatal(err)
	}
	n, _ := row["n"].(int64)
	return n
}
