package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Attributes of a dead-letter message, for the person who looks at it in the console.
const (
	AttributeReason   = "reason"
	AttributeClass    = "class"
	AttributeAttempts = "attempts"
)

const (
	// batchLimit is how many entries one batch call takes (Amazon SQS API Reference, "SendMessageBatch").
	batchLimit = 10

	// maxVisibility is the longest visibility timeout: 12 hours from the receive (Amazon SQS API Reference,
	// "ChangeMessageVisibility"). An hour is left for what has passed since the receive.
	maxVisibility = 11 * time.Hour

	// maxBody leaves room for the attributes in the 1 MiB a message may have in all (Amazon SQS Developer Guide,
	// "Amazon SQS message quotas").
	maxBody = 1<<20 - 4<<10

	// maxReason keeps a reason readable in the console.
	maxReason = 1 << 10
)

// Send is one pointer to enqueue.
type Send struct {
	Pointer Pointer // Replay is part of the deduplication id
	Group   string  // the entry's stored group, never one computed anew
	Sweep   int     // number of the sweep that sends it again; 0: no sweep
}

// DeadLetter is one message for the dead-letter queue.
type DeadLetter struct {
	Body            string // Encode of a pointer with its Generation, or the body that was not understood, as it came
	Group           string
	DeduplicationID string
	Reason          string
	Class           string
	Attempts        int
}

// Visibility says when SQS shows a received message again.
type Visibility struct {
	Receipt string
	After   time.Duration // from now, rounded up to whole seconds, cut to 11 hours
}

// SQS sends pointers and gives received ones back. It is safe for concurrent use.
type SQS struct {
	client          *sqs.Client
	url, deadLetter string
}

// New returns the queue at url with its dead-letter queue. A program that only sends pointers leaves the latter out.
func New(client *sqs.Client, url, deadLetterURL string) *SQS {
	return &SQS{client, url, deadLetterURL}
}

// Send enqueues one pointer. When it returns nil the message is durable.
func (q *SQS) Send(ctx context.Context, s Send) error {
	if !ValidID(s.Group) {
		return fmt.Errorf("enqueue %s: its group is no message group id", s.Pointer.Key)
	}
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               &q.url,
		MessageBody:            aws.String(Encode(s.Pointer)),
		MessageGroupId:         &s.Group,
		MessageDeduplicationId: aws.String(DeduplicationID(s.Pointer.EventID(), s.Pointer.Replay, s.Sweep)),
	})
	if err != nil {
		return fmt.Errorf("enqueue %s: %w", s.Pointer.Key, err)
	}
	return nil
}

// SendBatch enqueues many pointers, ten a call, and returns one error for each: nil where the message is durable.
// Pointers of one group keep their order as long as all are accepted.
func (q *SQS) SendBatch(ctx context.Context, sends []Send) []error {
	errs := make([]error, len(sends))
	for start := 0; start < len(sends); start += batchLimit {
		end := min(start+batchLimit, len(sends))
		q.sendBatch(ctx, sends[start:end], errs[start:end])
	}
	return errs
}

func (q *SQS) sendBatch(ctx context.Context, sends []Send, errs []error) {
	var entries []types.SendMessageBatchRequestEntry
	for i, s := range sends {
		if !ValidID(s.Group) {
			errs[i] = fmt.Errorf("enqueue %s: its group is no message group id", s.Pointer.Key)
			continue
		}
		// Until SQS names it as successful, it is not.
		errs[i] = fmt.Errorf("enqueue %s: the answer does not name it", s.Pointer.Key)
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id:                     aws.String(strconv.Itoa(i)),
			MessageBody:            aws.String(Encode(s.Pointer)),
			MessageGroupId:         aws.String(s.Group),
			MessageDeduplicationId: aws.String(DeduplicationID(s.Pointer.EventID(), s.Pointer.Replay, s.Sweep)),
		})
	}
	if len(entries) == 0 {
		return
	}
	out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: entries})
	if err != nil {
		for _, e := range entries {
			i, _ := strconv.Atoi(*e.Id)
			errs[i] = fmt.Errorf("enqueue %s: %w", sends[i].Pointer.Key, err)
		}
		return
	}
	for _, ok := range out.Successful {
		if i, err := strconv.Atoi(aws.ToString(ok.Id)); err == nil && i >= 0 && i < len(errs) {
			errs[i] = nil
		}
	}
	for _, bad := range out.Failed {
		if i, err := strconv.Atoi(aws.ToString(bad.Id)); err == nil && i >= 0 && i < len(errs) {
			errs[i] = fmt.Errorf("enqueue %s: %w", sends[i].Pointer.Key, &EntryError{aws.ToString(bad.Code), bad.SenderFault})
		}
	}
}

// EntryError is why SQS refused one entry of a batch.
type EntryError struct {
	Code   string
	Sender bool // the entry itself is at fault, not the service
}

func (e *EntryError) Error() string { return "SQS refused the entry: " + e.Code }

// ErrorCode is the code, as AWS's own errors name it.
func (e *EntryError) ErrorCode() string { return e.Code }

// SendDeadLetter sends one message to the dead-letter queue. When it returns nil the message is durable.
func (q *SQS) SendDeadLetter(ctx context.Context, d DeadLetter) error {
	attributes := make(map[string]types.MessageAttributeValue)
	set := func(name, kind, value string) {
		if value = legal(value); value != "" {
			attributes[name] = types.MessageAttributeValue{DataType: aws.String(kind), StringValue: &value}
		}
	}
	set(AttributeReason, "String", cut(d.Reason, maxReason))
	set(AttributeClass, "String", d.Class)
	set(AttributeAttempts, "Number", strconv.Itoa(d.Attempts))
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               &q.deadLetter,
		MessageBody:            aws.String(cut(d.Body, maxBody)),
		MessageGroupId:         aws.String(bounded(d.Group)),
		MessageDeduplicationId: aws.String(bounded(d.DeduplicationID)),
		MessageAttributes:      attributes,
	})
	if err != nil {
		return fmt.Errorf("send to the dead-letter queue: %w", err)
	}
	return nil
}

// ChangeVisibility sets when SQS shows the messages again: all in one call up to ten, so that a message and its
// followers come back together. The error joins those of the messages that could not be changed, which come back by
// the queue's own timeout.
func (q *SQS) ChangeVisibility(ctx context.Context, changes []Visibility) error {
	var errs []error
	for start := 0; start < len(changes); start += batchLimit {
		chunk := changes[start:min(start+batchLimit, len(changes))]
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(chunk))
		for i := range chunk {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id:                aws.String(strconv.Itoa(i)),
				ReceiptHandle:     &chunk[i].Receipt,
				VisibilityTimeout: wholeSeconds(chunk[i].After),
			}
		}
		out, err := q.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: entries})
		if err != nil {
			errs = append(errs, fmt.Errorf("change the visibility of %d messages: %w", len(chunk), err))
			continue
		}
		for _, bad := range out.Failed {
			errs = append(errs, fmt.Errorf("change a message's visibility: %w", &EntryError{aws.ToString(bad.Code), bad.SenderFault}))
		}
	}
	return errors.Join(errs...)
}

func wholeSeconds(d time.Duration) int32 {
	d = min(max(d, 0), maxVisibility)
	return int32((d + time.Second - 1) / time.Second)
}

// legal drops the characters SQS refuses in attributes (Amazon SQS API Reference, "SendMessage").
func legal(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFC, r >= 0x10000 && r <= 0x10FFFF:
			return r
		}
		return -1
	}, text)
}

// cut shortens text to at most max bytes, between characters.
func cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max], "")
}
