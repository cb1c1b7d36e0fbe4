// Package deadletter reads the dead-letter queue: it takes messages for a while, deletes some, and gives the others
// back. What deserves to stay is decided by the ledger's entries, in package reconcile.
//
// The queue is FIFO: while a message is taken, SQS shows nothing of its group behind it. A reader that dies leaves its
// messages taken until the time it asked for is over; none of them is lost.
package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// batchLimit is how many messages one call takes or returns (Amazon SQS API Reference, "ReceiveMessage").
const batchLimit = 10

// Message is one message taken from the queue.
type Message struct {
	ID      string
	Receipt string // the right to delete it or give it back
	Body    string // a pointer, or what was not understood as one
}

// Queue is the dead-letter queue. It is safe for concurrent use.
type Queue struct {
	client *sqs.Client
	url    string
}

// New returns the queue at url.
func New(client *sqs.Client, url string) *Queue { return &Queue{client, url} }

// Take takes up to ten messages that nobody else has taken; none is returned when SQS shows none. They show again
// after d, in whole seconds, unless they are deleted or given back before.
func (q *Queue) Take(ctx context.Context, d time.Duration) ([]Message, error) {
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:            &q.url,
		MaxNumberOfMessages: batchLimit,
		VisibilityTimeout:   int32(d / time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("take from the dead-letter queue: %w", err)
	}
	list := make([]Message, len(out.Messages))
	for i, m := range out.Messages {
		list[i] = Message{aws.ToString(m.MessageId), aws.ToString(m.ReceiptHandle), aws.ToString(m.Body)}
	}
	return list, nil
}

// Delete removes the messages for good. The error joins what could not be deleted; that shows again by itself.
func (q *Queue) Delete(ctx context.Context, messages []Message) error {
	var problems []error
	for chunk := range slices.Chunk(messages, batchLimit) {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(chunk))
		for i := range chunk {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &chunk[i].Receipt}
		}
		out, err := q.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: entries})
		if err != nil {
			problems = append(problems, fmt.Errorf("delete from the dead-letter queue: %w", err))
			continue
		}
		problems = append(problems, refused("delete from the dead-letter queue", out.Failed)...)
	}
	return errors.Join(problems...)
}

// GiveBack shows the messages again at once, in their order. What could not be given back shows again by itself.
func (q *Queue) GiveBack(ctx context.Context, messages []Message) error {
	var problems []error
	for chunk := range slices.Chunk(messages, batchLimit) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(chunk))
		for i := range chunk {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &chunk[i].Receipt, VisibilityTimeout: 0,
			}
		}
		out, err := q.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: entries})
		if err != nil {
			problems = append(problems, fmt.Errorf("give back to the dead-letter queue: %w", err))
			continue
		}
		problems = append(problems, refused("give back to the dead-letter queue", out.Failed)...)
	}
	return errors.Join(problems...)
}

func refused(doing string, failed []types.BatchResultErrorEntry) []error {
	problems := make([]error, len(failed))
	for i, f := range failed {
		problems[i] = fmt.Errorf("%s: SQS refused a message: %s", doing, aws.ToString(f.Code))
	}
	return problems
}
