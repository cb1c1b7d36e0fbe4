package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"backstop/internal/awslocal/sqs"
)

// inProcess carries requests to a handler without a socket.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	p.handler.ServeHTTP(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// bundle is AWS's own client in front of a server, in a bubble of virtual time.
type bundle struct {
	*testing.T
	ctx    context.Context
	server *sqs.Server
	client *awssqs.Client
}

// inBubble runs test in parallel with others, on virtual time.
func inBubble(t *testing.T, test func(b *bundle)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ids := 0
		server := sqs.New(sqs.Options{BaseURL: "http://local.test", NewID: func() string {
			ids++
			return fmt.Sprintf("id-%d", ids)
		}})
		client := awssqs.New(awssqs.Options{
			Region:           "us-east-1",
			BaseEndpoint:     aws.String("http://local.test"),
			Credentials:      credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "example", ""),
			HTTPClient:       &http.Client{Transport: inProcess{server}},
			RetryMaxAttempts: 1,
		})
		test(&bundle{T: t, ctx: t.Context(), server: server, client: client})
	})
}

// queue creates a FIFO queue, with pairs of attributes, and returns its URL.
func (b *bundle) queue(name string, attributes ...string) string {
	b.Helper()
	out, err := b.create(name, append([]string{"FifoQueue", "true"}, attributes...)...)
	if err != nil {
		b.Fatalf("creating queue %s: %v", name, err)
	}
	return aws.ToString(out.QueueUrl)
}

func (b *bundle) create(name string, attributes ...string) (*awssqs.CreateQueueOutput, error) {
	in := &awssqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{}}
	for i := 0; i < len(attributes); i += 2 {
		in.Attributes[attributes[i]] = attributes[i+1]
	}
	return b.client.CreateQueue(b.ctx, in)
}

// pair creates a queue "work.fifo" whose messages go to "dead.fifo" after max receives.
func (b *bundle) pair(max int) (work, dead string) {
	b.Helper()
	dead = b.queue("dead.fifo")
	work = b.queue("work.fifo", "RedrivePolicy",
		fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo","maxReceiveCount":%d}`, max))
	return work, dead
}

func (b *bundle) set(queue, name, value string) {
	b.Helper()
	_, err := b.client.SetQueueAttributes(b.ctx, &awssqs.SetQueueAttributesInput{QueueUrl: &queue, Attributes: map[string]string{name: value}})
	if err != nil {
		b.Fatalf("setting %s: %v", name, err)
	}
}

// send sends body to group with body as its deduplication id.
func (b *bundle) send(queue, group string, bodies ...string) {
	b.Helper()
	for _, body := range bodies {
		b.sendAs(queue, group, body, body)
	}
}

func (b *bundle) sendAs(queue, group, dedup, body string) *awssqs.SendMessageOutput {
	b.Helper()
	out, err := b.client.SendMessage(b.ctx, &awssqs.SendMessageInput{
		QueueUrl: &queue, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &dedup})
	if err != nil {
		b.Fatalf("sending %s: %v", body, err)
	}
	return out
}

// receive receives up to max messages; visibility 0 means the queue's.
func (b *bundle) receive(queue string, max, visibility int32) []types.Message {
	b.Helper()
	return b.receiveWith(&awssqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: max, VisibilityTimeout: visibility})
}

func (b *bundle) receiveWith(in *awssqs.ReceiveMessageInput) []types.Message {
	b.Helper()
	if in.MessageSystemAttributeNames == nil {
		in.MessageSystemAttributeNames = []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}
	}
	out, err := b.client.ReceiveMessage(b.ctx, in)
	if err != nil {
		b.Fatalf("receiving: %v", err)
	}
	return out.Messages
}

// expect receives up to ten messages and checks their bodies.
func (b *bundle) expect(queue, want string) []types.Message {
	b.Helper()
	got := b.receive(queue, 10, 0)
	if bodies(got) != want {
		b.Fatalf("received %q, want %q", bodies(got), want)
	}
	return got
}

func (b *bundle) delete(queue string, m types.Message) error {
	_, err := b.client.DeleteMessage(b.ctx, &awssqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle})
	return err
}

func (b *bundle) mustDelete(queue string, messages ...types.Message) {
	b.Helper()
	for _, m := range messages {
		if err := b.delete(queue, m); err != nil {
			b.Fatalf("deleting %s: %v", aws.ToString(m.Body), err)
		}
	}
}

func (b *bundle) changeVisibility(queue string, m types.Message, seconds int32) error {
	_, err := b.client.ChangeMessageVisibility(b.ctx, &awssqs.ChangeMessageVisibilityInput{
		QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
	return err
}

// expectCounts checks visible/in flight/delayed.
func (b *bundle) expectCounts(queue, want string) {
	b.Helper()
	a := b.attributes(queue)
	got := a["ApproximateNumberOfMessages"] + "/" + a["ApproximateNumberOfMessagesNotVisible"] + "/" + a["ApproximateNumberOfMessagesDelayed"]
	if got != want {
		b.Fatalf("counts are %s, want %s", got, want)
	}
}

func (b *bundle) attributes(queue string) map[string]string {
	b.Helper()
	out, err := b.client.GetQueueAttributes(b.ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		b.Fatalf("getting attributes: %v", err)
	}
	return out.Attributes
}

func bodies(messages []types.Message) string {
	var all []string
	for _, m := range messages {
		all = append(all, aws.ToString(m.Body))
	}
	return strings.Join(all, ",")
}

// expectError checks the code of an API error.
func expectError(t testing.TB, err error, code string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code {
		t.Fatalf("got error %v, want code %s", err, code)
	}
}
