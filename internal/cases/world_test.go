package cases

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/lambda"
	"backstop/internal/awslocal/stack"
	"backstop/internal/billing"
	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/projection"
	"backstop/internal/queue"
	"backstop/internal/schema"
	"backstop/internal/secret"
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

// signingSecret names the secret of the store.
const signingSecret = "signing"

// world is everything one variant happens in: the deployed parts over a local AWS, made inside a bubble.
type world struct {
	ctx     context.Context
	variant variant

	server *awslocal.Server
	names  stack.Names
	direct aws.Config // past the faults, for the harness
	db     *dynamodb.Client
	sqs    *awssqs.Client
	ledger *ledger.Store
	queue  *queue.SQS
	rows   *projection.Store
	reader *billing.Reader
	poller *lambda.Poller
	life   context.CancelFunc
	going  sync.WaitGroup // goroutines of processes

	signedOver map[string][]byte          // all bodies of the case by checksum
	accounts   map[string]map[string]bool // of the events of the case, by event id

	mu          sync.Mutex
	log         bytes.Buffer
	instances   map[int]*secret.Provider
	worker      *proc            // the processor of drains and batches
	workers     map[string]*proc // of op process
	dying       map[*awslocal.Call]*proc
	resume      chan struct{}
	deliveries  []*delivery
	calls       []call   // of the sink's handler
	committed   []string // events, in the order their effects were first committed
	secretReads int
	floodReads  int
	batches     map[string]*batchResult
	reports     []reconciled
	facts       map[string]string // the newest fact of each row and part
	before      map[string]string // rows at the start
	violations  []string
	reached     []*fault // all faults given, to see which never came
	crashed     bool
	serial      int
	replays     int
	foreign     []string // fields a case names that are not kept
}

// delivery is one answered request.
type delivery struct {
	label    string
	status   int
	response string
	took     time.Duration
	key      ledger.Key // of the event in the body, if it is one
	reason   string     // the log line's
}

// call is one call of the sink.
type call struct {
	key   string
	event string
	idem  string
	batch string
}

type batchResult struct {
	answer  []byte
	failed  []string
	err     error
	label   string
	records []map[string]json.RawMessage
}

// newWorld makes a world, on a clock that stands at the case's now.
func newWorld(ctx context.Context, v variant) (*world, error) {
	if wait := time.Until(time.Unix(v.Now, 0)); wait > 0 {
		time.Sleep(wait)
	}
	w := &world{variant: v, instances: map[int]*secret.Provider{}, workers: map[string]*proc{}, dying: map[*awslocal.Call]*proc{},
		resume: make(chan struct{}), batches: map[string]*batchResult{}, facts: map[string]string{},
		signedOver: map[string][]byte{}, accounts: map[string]map[string]bool{}}
	w.ctx, w.life = context.WithCancel(ctx)
	w.server = awslocal.New(awslocal.Options{Observe: w.observe})
	w.direct = awslocal.Config(&awslocal.Transport{Server: w.server, Caller: "harness"})
	names, err := stack.Create(w.ctx, w.direct, "test")
	if err != nil {
		return nil, err
	}
	w.names = names
	w.db, w.sqs = dynamodb.NewFromConfig(w.direct), awssqs.NewFromConfig(w.direct)
	w.ledger = ledger.New(w.db, names.LedgerTable, time.Now, ledger.WithCodec(codec()))
	w.queue = queue.New(w.sqs, names.QueueURL, names.DeadLetterURL)
	w.rows = projection.New(w.db)
	w.reader = billing.NewReader(w.rows, names.BillingTable)
	if w.poller, err = lambda.NewPoller(lambda.PollerOptions{
		SQS: w.sqs, Invoker: invoker(w.invokeProcessor), Function: "processor",
		QueueURL: names.QueueURL, QueueARN: names.QueueARN, Now: time.Now,
	}); err != nil {
		return nil, err
	}
	if err := w.storeSecrets(nil); err != nil {
		return nil, err
	}
	if err := w.collect(); err != nil {
		return nil, err
	}
	w.before, err = w.projected()
	return w, err
}

// close ends every process and waits for what they had under way.
func (w *world) close() {
	w.life()
	w.going.Wait()
}

func (w *world) clock() int64 { return time.Now().Unix() }

func (w *world) secrets() map[string]string {
	if w.variant.Config == nil {
		return nil
	}
	return w.variant.Config.Secrets
}

func (w *world) mode() string {
	if w.variant.Config == nil {
		return ""
	}
	return w.variant.Config.Mode
}

// storeSecrets writes the text of the secrets by these names, nil for those of the configuration, into the store. One
// secret is stored as it stands, several as a JSON array.
func (w *world) storeSecrets(names []string) error {
	config := w.variant.Config
	if config == nil {
		return nil
	}
	if names == nil {
		names = config.AcceptedSecrets
	}
	override := config.StoredSecretText
	if override == nil {
		override = w.variant.StoredSecretText
	}
	texts := []string{}
	odd := false
	for _, name := range names {
		text := config.Secrets[name]
		if name == "current" && override != nil {
			text, odd = *override, true
		}
		texts = append(texts, text)
	}
	text := strings.Join(texts, ",")
	if len(texts) != 1 && !odd {
		encoded, err := json.Marshal(texts)
		if err != nil {
			return fmt.Errorf("write the secrets: %w", err)
		}
		text = string(encoded)
	}
	client := secretsmanager.NewFromConfig(w.direct)
	w.serial++
	if w.serial == 1 {
		input := &secretsmanager.CreateSecretInput{Name: aws.String(signingSecret), ClientRequestToken: aws.String(strings.Repeat("0", 32))}
		if text != "" { // a secret without text has no version at all
			input.SecretString = &text
		}
		if _, err := client.CreateSecret(w.ctx, input); err != nil {
			return fmt.Errorf("create the secret: %w", err)
		}
		return nil
	}
	if text == "" {
		text = "[]"
	}
	if _, err := client.PutSecretValue(w.ctx, &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(signingSecret), SecretString: &text, ClientRequestToken: aws.String(fmt.Sprintf("%032d", w.serial)),
	}); err != nil {
		return fmt.Errorf("change the secret: %w", err)
	}
	return nil
}

// collect finds every body and event of the case: what signatures are over, and which accounts an event id has.
func (w *world) collect() error {
	shared := w.variant.file.Given.Bodies
	add := func(b *body) error {
		raw, err := b.bytes(shared)
		if err != nil || raw == nil {
			return err
		}
		w.signedOver[hexSum(raw)] = raw
		return nil
	}
	for _, b := range shared {
		if err := add(&b); err != nil {
			return err
		}
	}
	for _, v := range w.variant.file.variants() {
		for _, s := range v.Steps {
			requests := []*request{}
			if s.Request != nil {
				requests = append(requests, s.Request)
			}
			for i := range s.Requests {
				requests = append(requests, &s.Requests[i].Request)
			}
			for _, r := range requests {
				if r.Body != nil {
					if err := add(r.Body); err != nil {
						return err
					}
				}
				var wrapped struct{ Body string }
				if json.Unmarshal(r.GatewayEvent, &wrapped) == nil {
					w.signedOver[hexSum([]byte(wrapped.Body))] = []byte(wrapped.Body)
					if raw, err := base64.StdEncoding.DecodeString(wrapped.Body); err == nil {
						w.signedOver[hexSum(raw)] = raw
					}
				}
			}
			if v.name != w.variant.name {
				continue
			}
			for _, record := range s.Records {
				w.know(record["event"])
			}
			for _, page := range s.Pages {
				var list struct{ Data []json.RawMessage }
				if json.Unmarshal(page, &list) == nil {
					for _, e := range list.Data {
						w.know(e)
					}
				}
			}
		}
	}
	for _, raw := range w.signedOver {
		w.know(raw)
	}
	return nil
}

// know notes an event's account, if raw is an event.
func (w *world) know(raw []byte) {
	if len(raw) == 0 {
		return
	}
	if e, err := event.Parse(raw); err == nil {
		if w.accounts[e.ID] == nil {
			w.accounts[e.ID] = map[string]bool{}
		}
		w.accounts[e.ID][string(e.Key(""))] = true
	}
}

// keys are the ledger's keys an event id can have.
func (w *world) keys(id string) []ledger.Key {
	if strings.HasPrefix(id, "acct_") && strings.ContainsAny(id, "/:#") {
		at := strings.IndexAny(id, "/:#")
		return []ledger.Key{ledger.Key("stripe#" + id[:at] + "#" + id[at+1:])}
	}
	known := slices.Sorted(maps.Keys(w.accounts[id]))
	if len(known) == 0 {
		known = []string{"stripe#-#" + id}
	}
	keys := make([]ledger.Key, len(known))
	for i, k := range known {
		keys[i] = ledger.Key(k)
	}
	return keys
}

// entry reads an entry; one past its time is absent.
func (w *world) entry(key ledger.Key) (ledger.Entry, bool, error) {
	e, err := w.ledger.Get(w.ctx, key)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return e, false, nil
	case err != nil && !errors.Is(err, ledger.ErrCodec):
		return e, false, err
	}
	return e, true, nil
}

func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.violations, text) {
		w.violations = append(w.violations, text)
	}
}

// invoker makes an Invoker of a function.
type invoker func(ctx context.Context, payload []byte) ([]byte, error)

// Invoke implements lambda.Invoker.
func (f invoker) Invoke(ctx context.Context, _ string, payload []byte) (lambda.Response, error) {
	answer, err := f(ctx, payload)
	if err != nil {
		return lambda.Response{FunctionError: lambda.Unhandled, Payload: []byte(`{"errorType":"Unhandled"}`)}, nil
	}
	return lambda.Response{Payload: answer}, nil
}

// logWriter is where a process writes its lines; what it wrote last can be looked at.
type logWriter struct {
	w     *world
	lines bytes.Buffer
}

func (l *logWriter) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.lines.Write(p)
	return l.w.log.Write(p)
}

// reason is the last reason that was logged.
func (l *logWriter) reason() string {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	found := ""
	for line := range bytes.Lines(l.lines.Bytes()) {
		var fields struct{ Reason string }
		if json.Unmarshal(line, &fields) == nil && fields.Reason != "" {
			found = fields.Reason
		}
	}
	return found
}

// addEffect adds to the sink's count past everything.
func (w *world) addEffect(key string) error {
	_, err := w.db.UpdateItem(w.ctx, &dynamodb.UpdateItemInput{TableName: &w.names.BillingTable,
		Key: map[string]types.AttributeValue{schema.PK: &types.AttributeValueMemberS{Value: sinkKey(key)[schema.PK]},
			schema.SK: &types.AttributeValueMemberS{Value: sinkName}},
		UpdateExpression:          aws.String("ADD n :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
	})
	return err
}

// occupy claims an entry for a year: nobody else gets at it.
func (w *world) occupy(key ledger.Key) error {
	_, err := w.ledger.Claim(w.ctx, ledger.Claiming{Key: key, Token: "harness", Until: time.Now().Add(365 * 24 * time.Hour)})
	return err
}
