package awslocal_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/lambda"
)

func TestRecorderSpeaksIAM(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx := t.Context()
	table := aws.String("ledger")
	item := map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: "a"}}
	exists := aws.String("attribute_not_exists(nothing)")
	calls := []func() error{
		func() error { return b.add(ctx) },
		func() error { return b.add(ctx) },
		func() error {
			_, err := b.table.Query(ctx, &dynamodb.QueryInput{
				TableName: table, IndexName: aws.String("open"), KeyConditionExpression: aws.String("#o = :o"),
				ExpressionAttributeNames:  map[string]string{"#o": "open"},
				ExpressionAttributeValues: map[string]ddb.AttributeValue{":o": &ddb.AttributeValueMemberS{Value: "todo#1"}},
			})
			return err
		},
		func() error {
			_, err := b.table.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{
				{Put: &ddb.Put{TableName: table, Item: item}},
				{Update: &ddb.Update{TableName: table, Key: key("b"), UpdateExpression: aws.String("REMOVE x")}},
				{Delete: &ddb.Delete{TableName: table, Key: key("c")}},
				{ConditionCheck: &ddb.ConditionCheck{TableName: table, Key: key("d"), ConditionExpression: exists}},
			}})
			return err
		},
		func() error {
			_, err := b.table.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]ddb.KeysAndAttributes{
				"ledger": {Keys: []map[string]ddb.AttributeValue{key("a")}},
			}})
			return err
		},
		func() error { b.send(t, "m1"); return nil },
		func() error {
			out, err := b.queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &b.queueURL})
			if err == nil && len(out.Messages) == 1 {
				_, err = b.queue.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
					QueueUrl: &b.queueURL, ReceiptHandle: out.Messages[0].ReceiptHandle, VisibilityTimeout: 0,
				})
			}
			return err
		},
	}
	for i, call := range calls {
		if err := call(); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	var got []string
	for _, u := range b.recorder.Uses() {
		if u.Caller == "receiver" {
			got = append(got, strings.Repeat("+", u.Count)+" "+u.Action+" "+u.Resource)
		}
	}
	const ledger, queue = "arn:aws:dynamodb:us-east-1:000000000000:table/ledger", "arn:aws:sqs:us-east-1:000000000000:events.fifo"
	want := []string{
		"+ dynamodb:BatchGetItem " + ledger,
		"+ dynamodb:ConditionCheckItem " + ledger,
		"+ dynamodb:DeleteItem " + ledger,
		"+ dynamodb:PutItem " + ledger,
		"+ dynamodb:Query " + ledger + "/index/open",
		"+++ dynamodb:UpdateItem " + ledger,
		"+ sqs:ChangeMessageVisibility " + queue,
		"+ sqs:ReceiveMessage " + queue,
		"+ sqs:SendMessage " + queue,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}

func TestInterceptKnowsWhatTheCallIsAbout(t *testing.T) {
	t.Parallel()
	var seen []string
	b := setup(t, func(c *awslocal.Call) awslocal.Fault {
		seen = append(seen, strings.Join([]string{c.Caller, c.Service, c.Action, c.Resource()}, " "))
		return awslocal.Fault{}
	})
	if err := b.add(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.send(t, "m1")
	secrets := secretsmanager.NewFromConfig(awslocal.Config(&awslocal.Transport{
		Server: b.server, Caller: "receiver", Intercept: func(c *awslocal.Call) awslocal.Fault {
			seen = append(seen, strings.Join([]string{c.Caller, c.Service, c.Action, c.Resource()}, " "))
			return awslocal.Fault{}
		},
	}))
	if _, err := secrets.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("backstop/signing")}); code(err) != "ResourceNotFoundException" {
		t.Errorf("reading a secret that is not there: %v", err)
	}
	want := []string{
		"receiver dynamodb UpdateItem ledger", "receiver sqs SendMessage events.fifo",
		"receiver secretsmanager GetSecretValue backstop/signing",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Over a socket the caller is the access key id, and a broken connection is a
// broken connection.
func TestSocketAndTransportBehaveAlike(t *testing.T) {
	t.Parallel()
	recorder := &awslocal.Recorder{}
	intercept := once(awslocal.Fault{Kind: awslocal.ReplyLost})
	server := awslocal.New(awslocal.Options{Recorder: recorder, Intercept: intercept})
	server.SetLambda(lambda.NewControl(lambda.ControlOptions{}))
	listener := httptest.NewServer(server)
	defer listener.Close()
	config := aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(listener.URL),
		Credentials: credentials.NewStaticCredentialsProvider("processor", "local", ""),
	}
	queue := sqs.NewFromConfig(config)
	out, err := queue.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("events.fifo"), Attributes: map[string]string{"FifoQueue": "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := awslambda.NewFromConfig(config).ListEventSourceMappings(t.Context(), &awslambda.ListEventSourceMappingsInput{}); err != nil {
		t.Errorf("listing mappings: %v", err)
	}
	if _, err := secretsmanager.NewFromConfig(config).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: aws.String("s")}); err != nil {
		t.Errorf("creating a secret: %v", err)
	}
	if !strings.HasSuffix(*out.QueueUrl, "/000000000000/events.fifo") {
		t.Errorf("queue URL = %s", *out.QueueUrl)
	}
	var got []string
	for _, u := range recorder.Uses() {
		got = append(got, strings.Repeat("+", u.Count)+" "+u.Caller+" "+u.Action+" "+u.Resource)
	}
	want := []string{
		"+ processor lambda:ListEventSourceMappings *",
		"+ processor secretsmanager:CreateSecret arn:aws:secretsmanager:us-east-1:000000000000:secret:s-cmryaB",
		"++ processor sqs:CreateQueue arn:aws:sqs:us-east-1:000000000000:events.fifo",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}
