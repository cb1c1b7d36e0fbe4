package receive_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"backstop/internal/awsclient"
	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/receive"
	"backstop/internal/secret"
	"backstop/internal/signature"
	"backstop/internal/telemetry"
)

const signing = "whsec_fake_current_for_tests"

// invoice is an ordinary event, with what must never be logged marked.
const invoice = `{
  "id": "evt_1", "object": "event", "api_version": "2025-08-27.basil", "created": 1790000000,
  "data": {"object": {"id": "in_1", "object": "invoice", "customer": "cus_1", "customer_email": "marker@example.test"}},
  "livemode": false, "request": null, "type": "invoice.paid"
}`

// bundle is a receiver over the real adapters, the SDK and the local AWS. It is made inside a synctest bubble, whose
// time is everybody's clock.
type bundle struct {
	*receive.Receiver
	config receive.Config
	local  *awslocal.Server
	ledger *ledger.Store
	names  stack.Names
	direct aws.Config // past the faults

	mu    sync.Mutex
	log   bytes.Buffer
	fault func(call *awslocal.Call) awslocal.Fault
	calls map[string]int // tries by action
}

func (b *bundle) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{calls: map[string]int{}, local: awslocal.New(awslocal.Options{})}
	b.direct = awslocal.Config(&awslocal.Transport{Server: b.local})
	names, err := stack.Create(t.Context(), b.direct, "test")
	if err != nil {
		t.Fatal(err)
	}
	b.names = names
	cfg := awslocal.Config(&awslocal.Transport{Server: b.local, Caller: "receiver", Intercept: b.intercept})
	cfg.HTTPClient = &http.Client{Transport: cfg.HTTPClient.(*http.Client).Transport, Timeout: 3 * time.Second}
	cfg.Retryer = awsclient.Retryer(func() float64 { return 0.5 })
	b.ledger = ledger.New(dynamodb.NewFromConfig(b.direct), names.LedgerTable, time.Now, ledger.WithCodec(codec))
	deliveries := 0
	b.config = receive.Config{
		Ledger:  ledger.New(dynamodb.NewFromConfig(cfg), names.LedgerTable, time.Now, ledger.WithCodec(codec)),
		Queue:   queue.New(sqs.NewFromConfig(cfg), names.QueueURL, ""),
		Secrets: secret.Fixed([]string{signing}),
		Log:     telemetry.New(b, "test", time.Now),
		Now:     time.Now,
		Token: func() string {
			b.mu.Lock()
			defer b.mu.Unlock()
			deliveries++
			return fmt.Sprintf("delivery-%d", deliveries)
		},
		Release:    "1.2.3",
		APIVersion: "2025-08-27.basil",
	}
	b.Receiver = receive.New(b.config)
	return b
}

// codec is shared: making one takes milliseconds. Its channels must be made outside of the bubbles.
var codec = func() *ledger.Codec {
	c := ledger.NewCodec()
	c.Warm()
	return c
}()

func (b *bundle) intercept(call *awslocal.Call) awslocal.Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[call.Action]++
	if b.fault == nil {
		return awslocal.Fault{}
	}
	return b.fault(call)
}

// inject sets the fault of the first n tries of an action.
func (b *bundle) inject(action string, n int, fault awslocal.Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = func(call *awslocal.Call) awslocal.Fault {
		if call.Action != action || n == 0 {
			return awslocal.Fault{}
		}
		n--
		return fault
	}
}

// call wraps a request as an HTTP API does.
func call(method, path, header, body string) []byte {
	payload, err := json.Marshal(map[string]any{
		"version": "2.0", "rawPath": path, "headers": map[string]string{"stripe-signature": header},
		"requestContext": map[string]any{"http": map[string]string{"method": method}, "requestId": "req-1", "stage": "$default"},
		"body":           body, "isBase64Encoded": false,
	})
	if err != nil {
		panic(err)
	}
	return payload
}

type answer struct {
	StatusCode int
	Headers    map[string]string
	Body       string
}

// post invokes the function as Lambda does, with its deadline.
func (b *bundle) post(t *testing.T, payload []byte) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return b.invoke(t, ctx, payload)
}

func (b *bundle) invoke(t *testing.T, ctx context.Context, payload []byte) answer {
	t.Helper()
	encoded, err := b.Invoke(ctx, payload)
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(encoded, &a); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Error("the answer came after the function's deadline")
	}
	return a
}

func (b *bundle) deliver(t *testing.T, body string) answer {
	t.Helper()
	return b.post(t, call("POST", "/webhooks/stripe", signature.Sign(signing, []byte(body), time.Now()), body))
}

func (b *bundle) wantAnswer(t *testing.T, got answer, status int, body string) {
	t.Helper()
	if got.StatusCode != status || got.Body != body {
		t.Errorf("answered %d %s, want %d %s\n%s", got.StatusCode, got.Body, status, body, b.logged())
	}
}

// entries returns how many entries the ledger holds.
func (b *bundle) entries(t *testing.T) int {
	t.Helper()
	out, err := dynamodb.NewFromConfig(b.direct).Scan(t.Context(), &dynamodb.ScanInput{TableName: &b.names.LedgerTable})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Items)
}

// setStatus changes the status of the entry past the ledger.
func (b *bundle) setStatus(t *testing.T, status string) {
	t.Helper()
	_, err := dynamodb.NewFromConfig(b.direct).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 &b.names.LedgerTable,
		Key:                       map[string]dynamodbtypes.AttributeValue{"pk": &dynamodbtypes.AttributeValueMemberS{Value: string(key)}},
		UpdateExpression:          aws.String("SET #s = :s"),
		ExpressionAttributeNames:  map[string]string{"#s": "status"},
		ExpressionAttributeValues: map[string]dynamodbtypes.AttributeValue{":s": &dynamodbtypes.AttributeValueMemberS{Value: status}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// drain takes and deletes every message: the pointer's text and the group of each.
func (b *bundle) drain(t *testing.T) []string {
	t.Helper()
	client := sqs.NewFromConfig(b.direct)
	var messages []string
	for {
		out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &b.names.QueueURL, MaxNumberOfMessages: 10,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return messages
		}
		for _, m := range out.Messages {
			messages = append(messages, m.Attributes["MessageGroupId"]+" "+*m.Body)
			if _, err := client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &b.names.QueueURL, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (b *bundle) wantMessages(t *testing.T, want ...string) {
	t.Helper()
	got := b.drain(t)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("messages %q, want %q", got, want)
	}
}

// wantNothing checks that a refused delivery left nothing behind.
func (b *bundle) wantNothing(t *testing.T) {
	t.Helper()
	if n := b.entries(t); n != 0 {
		t.Errorf("%d entries", n)
	}
	b.wantMessages(t)
}

func (b *bundle) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

// lastLine is the line of the last delivery.
func (b *bundle) lastLine(t *testing.T) map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(b.logged()), "\n")
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		t.Fatal(err)
	}
	return line
}

// wantLine checks some keys of the last line; a nil value must be absent.
func (b *bundle) wantLine(t *testing.T, want map[string]any) {
	t.Helper()
	line := b.lastLine(t)
	for key, value := range want {
		if line[key] != value {
			t.Errorf("logged %s=%v, want %v", key, line[key], value)
		}
	}
}

const (
	pointer  = `cus_1 {"v":1,"key":"stripe#-#evt_1","type":"invoice.paid","created":1790000000,"replay":0}`
	replayed = `cus_1 {"v":1,"key":"stripe#-#evt_1","type":"invoice.paid","created":1790000000,"replay":1}`
	key      = ledger.Key("stripe#-#evt_1")
)
