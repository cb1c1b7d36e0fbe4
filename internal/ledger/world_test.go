package ledger_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	local "backstop/internal/awslocal/dynamodb"
	"backstop/internal/ledger"
	"backstop/internal/schema"
)

const (
	ledgerTable = "ledger"
	rowsTable   = "rows"
)

// start is the time every world begins at: 2026-01-01T00:00:00Z.
var start = time.UnixMilli(1767225600000)

// A world is a store over a local DynamoDB, with a clock that is moved by hand and a wire that can be broken.
type world struct {
	store  *ledger.Store
	wire   *wire
	direct *dynamodb.Client // past the wire's faults

	mu  sync.Mutex
	now time.Time
}

var shared = sync.OnceValue(ledger.NewCodec)

func newWorld(t testing.TB, options ...ledger.Option) *world {
	t.Helper()
	w := &world{now: start}
	server := local.New(local.Options{Now: w.Now})
	w.wire = &wire{handler: server}
	w.direct = client(&wire{handler: server})
	w.store = ledger.New(client(w.wire), ledgerTable, w.Now, append([]ledger.Option{ledger.WithCodec(shared())}, options...)...)
	for _, input := range []*dynamodb.CreateTableInput{
		{
			TableName:   aws.String(ledgerTable),
			BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String(schema.PK), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String(schema.Open), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String(schema.RecordedMS), AttributeType: types.ScalarAttributeTypeN},
			},
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String(schema.PK), KeyType: types.KeyTypeHash}},
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
				IndexName: aws.String(schema.OpenIndex),
				KeySchema: []types.KeySchemaElement{
					{AttributeName: aws.String(schema.Open), KeyType: types.KeyTypeHash},
					{AttributeName: aws.String(schema.RecordedMS), KeyType: types.KeyTypeRange},
				},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			}},
		},
		{
			TableName:   aws.String(rowsTable),
			BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String(schema.PK), AttributeType: types.ScalarAttributeTypeS},
			},
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String(schema.PK), KeyType: types.KeyTypeHash}},
		},
	} {
		if _, err := w.direct.CreateTable(t.Context(), input); err != nil {
			t.Fatalf("creating a table: %v", err)
		}
	}
	return w
}

func client(transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "eu-central-1",
		BaseEndpoint: aws.String("http://dynamodb.test"),
		Credentials:  credentials.NewStaticCredentialsProvider("key", "secret", ""),
		HTTPClient:   &http.Client{Transport: transport},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = 3
			o.RateLimiter = ratelimit.None
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		}),
	})
}

func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) at(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = t
}

func (w *world) put(t testing.TB, it map[string]types.AttributeValue) {
	t.Helper()
	if _, err := w.direct.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(ledgerTable), Item: it}); err != nil {
		t.Fatalf("putting an item: %v", err)
	}
}

// row reads an item as it is stored; nil if there is none.
func (w *world) row(t testing.TB, table, pk string) map[string]types.AttributeValue {
	t.Helper()
	out, err := w.direct.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{schema.PK: &types.AttributeValueMemberS{Value: pk}},
	})
	if err != nil {
		t.Fatalf("reading an item: %v", err)
	}
	return out.Item
}

// A fault is what the wire does with one request.
type fault int

const (
	none      fault = iota
	refuse          // 500 without applying it
	loseReply       // apply it, then break the connection
)

// A wire carries requests to the local DynamoDB on the caller's goroutine. Its faults are used up one a request; the
// last one stays when always is set.
type wire struct {
	handler http.Handler

	mu       sync.Mutex
	faults   []fault
	always   bool
	answer   func(operation, request string) (status int, reply string) // instead of the handler's, for what it never says
	requests []string                                                   // operations seen
}

func (w *wire) script(always bool, faults ...fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults, w.always = faults, always
}

func (w *wire) next(operation string) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, operation)
	if len(w.faults) == 0 {
		return none
	}
	f := w.faults[0]
	if !w.always || len(w.faults) > 1 {
		w.faults = w.faults[1:]
	}
	return f
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

var errReset = errors.New("connection reset by peer")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	f := w.next(operation)
	if f == refuse {
		return response(r, http.StatusInternalServerError, `{"__type":"com.amazon.coral.service#InternalServerError"}`), nil
	}
	if w.answer != nil {
		request, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		status, reply := w.answer(operation, string(request))
		return response(r, status, reply), nil
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	if f == loseReply {
		return nil, errReset
	}
	reply := recorder.Result()
	reply.Request = r
	return reply, nil
}

func response(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}
