package awslocal_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"backstop/internal/awslocal"
)

// bundle is a local AWS with one table and one queue, and clients of it.
type bundle struct {
	server   *awslocal.Server
	recorder *awslocal.Recorder
	table    *dynamodb.Client
	queue    *sqs.Client
	queueURL string
}

// setup makes the bundle; fault, when set, is asked about every call of the
// clients but none of the set-up.
func setup(t *testing.T, fault func(*awslocal.Call) awslocal.Fault) *bundle {
	t.Helper()
	b := &bundle{recorder: &awslocal.Recorder{}}
	b.server = awslocal.New(awslocal.Options{Recorder: b.recorder})
	b.connect(t, awslocal.Config(&awslocal.Transport{Server: b.server, Caller: "setup"}))
	_, err := b.table.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("ledger"), BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: ddb.ScalarAttributeTypeS},
			{AttributeName: aws.String("open"), AttributeType: ddb.ScalarAttributeTypeS},
		},
		KeySchema: []ddb.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: ddb.KeyTypeHash}},
		GlobalSecondaryIndexes: []ddb.GlobalSecondaryIndex{{
			IndexName: aws.String("open"), KeySchema: []ddb.KeySchemaElement{{AttributeName: aws.String("open"), KeyType: ddb.KeyTypeHash}},
			Projection: &ddb.Projection{ProjectionType: ddb.ProjectionTypeKeysOnly},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.queue.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("events.fifo"), Attributes: map[string]string{"FifoQueue": "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.queueURL = *out.QueueUrl
	b.connect(t, awslocal.Config(&awslocal.Transport{Server: b.server, Caller: "receiver", Intercept: fault}))
	return b
}

func (b *bundle) connect(t *testing.T, config aws.Config) {
	t.Helper()
	config.RetryMaxAttempts = 3
	b.table, b.queue = dynamodb.NewFromConfig(config), sqs.NewFromConfig(config)
}

func key(pk string) map[string]ddb.AttributeValue {
	return map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: pk}}
}

// add counts one up without a condition, so that a second application shows.
func (b *bundle) add(ctx context.Context) error {
	_, err := b.table.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("ledger"), Key: key("n"), UpdateExpression: aws.String("ADD n :one"),
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":one": &ddb.AttributeValueMemberN{Value: "1"}},
	})
	return err
}

// count reads what add counted, around all faults.
func (b *bundle) count(t *testing.T) string {
	t.Helper()
	client := dynamodb.NewFromConfig(awslocal.Config(&awslocal.Transport{
		Server: b.server, Caller: "count", Intercept: func(*awslocal.Call) awslocal.Fault { return awslocal.Fault{} },
	}))
	out, err := client.GetItem(context.WithoutCancel(t.Context()), &dynamodb.GetItemInput{TableName: aws.String("ledger"), Key: key("n")})
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := out.Item["n"].(*ddb.AttributeValueMemberN); ok {
		return n.Value
	}
	return "0"
}

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// once lets the first call through with the fault and all others without.
func once(f awslocal.Fault) func(*awslocal.Call) awslocal.Fault {
	done := false
	return func(*awslocal.Call) awslocal.Fault {
		if done {
			return awslocal.Fault{}
		}
		done = true
		return f
	}
}

func always(f awslocal.Fault) func(*awslocal.Call) awslocal.Fault {
	return func(*awslocal.Call) awslocal.Fault { return f }
}

func TestFaultOnceIsRetriedByTheSDK(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault awslocal.Fault
		count string
	}{
		"None":        {awslocal.Fault{}, "1"},
		"Throttle":    {awslocal.Fault{Kind: awslocal.Throttle}, "1"},
		"Unavailable": {awslocal.Fault{Kind: awslocal.Unavailable}, "1"},
		"Reset":       {awslocal.Fault{Kind: awslocal.Reset}, "1"},
		// The reply is lost, the SDK tries again, and the write is there twice.
		"ReplyLost": {awslocal.Fault{Kind: awslocal.ReplyLost}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, once(c.fault))
				if err := b.add(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := b.count(t); got != c.count {
					t.Errorf("count = %s, want %s", got, c.count)
				}
			})
		})
	}
}

func TestFaultForEverReachesTheCaller(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault awslocal.Fault
		code  string
		count string
	}{
		"Refuse":      {awslocal.Fault{Kind: awslocal.Refuse, Code: "ValidationException", Message: "no"}, "ValidationException", "0"},
		"Throttle":    {awslocal.Fault{Kind: awslocal.Throttle}, "ProvisionedThroughputExceededException", "0"},
		"Unavailable": {awslocal.Fault{Kind: awslocal.Unavailable}, "InternalServerError", "0"},
		"Reset":       {awslocal.Fault{Kind: awslocal.Reset}, "", "0"},
		"ReplyLost":   {awslocal.Fault{Kind: awslocal.ReplyLost}, "", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, always(c.fault))
				err := b.add(t.Context())
				if err == nil || code(err) != c.code {
					t.Errorf("error = %v, want code %q", err, c.code)
				}
				var broken *net.OpError
				if errors.As(err, &broken) != (c.code == "") {
					t.Errorf("error = %v, want a network error: %v", err, c.code == "")
				}
				if got := b.count(t); got != c.count {
					t.Errorf("count = %s, want %s", got, c.count)
				}
			})
		})
	}
}

func TestSlowCallObeysTheContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault awslocal.Fault
		count string
	}{
		"BeforeItIsApplied": {awslocal.Fault{Delay: time.Minute}, "0"},
		"AfterItWasApplied": {awslocal.Fault{ReplyDelay: time.Minute}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, always(c.fault))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				start := time.Now()
				if err := b.add(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error = %v", err)
				}
				if took := time.Since(start); took != 2*time.Second {
					t.Errorf("took %s", took)
				}
				if got := b.count(t); got != c.count {
					t.Errorf("count = %s, want %s", got, c.count)
				}
			})
		})
	}
}

func TestLongPollWaitsOnVirtualTimeAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, nil)
		receive := func(ctx context.Context) (int, error) {
			out, err := b.queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &b.queueURL, WaitTimeSeconds: 20})
			if err != nil {
				return 0, err
			}
			return len(out.Messages), nil
		}
		start := time.Now()
		if n, err := receive(t.Context()); n != 0 || err != nil || time.Since(start) != 20*time.Second {
			t.Errorf("empty poll: %d, %v after %s", n, err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		start = time.Now()
		if _, err := receive(ctx); !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second {
			t.Errorf("cancelled poll: %v after %s", err, time.Since(start))
		}
		b.send(t, "m1")
		if n, err := receive(t.Context()); n != 1 || err != nil {
			t.Errorf("poll with a message: %d, %v", n, err)
		}
	})
}

func (b *bundle) send(t *testing.T, id string) {
	t.Helper()
	_, err := b.queue.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &b.queueURL, MessageBody: &id, MessageGroupId: aws.String("cus_1"), MessageDeduplicationId: &id,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestObserveSeesRepliesThatAreLost(t *testing.T) {
	t.Parallel()
	var seen []string
	server := awslocal.New(awslocal.Options{
		Intercept: always(awslocal.Fault{Kind: awslocal.ReplyLost}),
		Observe: func(c *awslocal.Call, status int, body []byte) {
			seen = append(seen, c.Action+" "+http.StatusText(status)+" "+string(body))
		},
	})
	client := sqs.NewFromConfig(awslocal.Config(&awslocal.Transport{Server: server}), func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
	if _, err := client.ListQueues(t.Context(), &sqs.ListQueuesInput{}); err == nil {
		t.Error("the reply was not lost")
	}
	if len(seen) != 1 || !strings.HasPrefix(seen[0], "ListQueues OK {") {
		t.Errorf("observed %q", seen)
	}
}

func TestUnknownServicesAndOperationsAreRefused(t *testing.T) {
	t.Parallel()
	server := awslocal.New(awslocal.Options{})
	for name, r := range map[string]*http.Request{
		"Nothing":        httptest.NewRequest("GET", "/", nil),
		"QueryProtocol":  httptest.NewRequest("POST", "/", strings.NewReader("Action=ListQueues")),
		"NoLambdaYet":    httptest.NewRequest("GET", "/2015-03-31/event-source-mappings/", nil),
		"AnotherVersion": httptest.NewRequest("GET", "/2020-06-30/functions/f/code-signing-config", nil),
	} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != 404 || !strings.Contains(w.Body.String(), `"UnknownOperationException"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader("{}"))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ExecuteStatement")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	if w.Code < 400 {
		t.Errorf("an operation the service has not: %d %s", w.Code, w.Body)
	}
}

func TestStreamsAreReachedThroughTheOneEndpoint(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", "/", strings.NewReader("{}"))
	r.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810.ListStreams")
	w := httptest.NewRecorder()
	awslocal.New(awslocal.Options{}).ServeHTTP(w, r)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"Streams":[]`) {
		t.Errorf("list streams: %d %s", w.Code, w.Body)
	}
}
