// Package sqsbatch reads the batch of messages that an SQS event source hands to a function and writes the answer
// that says which of them failed (AWS Lambda Developer Guide, "Using Lambda with Amazon SQS" and "Handling errors
// for an SQS event source in Lambda": ReportBatchItemFailures).
//
// The answer is all or nothing in its form: a wrong key, an empty id or one that is not of the batch makes Lambda
// take the whole batch for failed, so Answer writes the keys literally and the ids only as they came.
package sqsbatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Message is one received message. Times are those of SQS, in milliseconds; what is absent is zero.
type Message struct {
	ID, Receipt         string
	Body                string
	Group               string
	DedupID             string
	ReceiveCount        int
	SequenceNumber      string // decimal, as SQS writes it; grows within a group
	SentMS              int64
	FirstReceiveMS      int64
	QueueARN            string
	DeadLetterSourceARN string // where SQS itself moved it from to a dead-letter queue
}

// Decode reads an invocation. It is tolerant of unknown, absent and odd attributes; what cannot be answered for (no
// list of records, a record without its id) is an error, so that Lambda keeps the batch.
func Decode(payload []byte) ([]Message, error) {
	var event struct {
		Records []struct {
			ID         string         `json:"messageId"`
			Receipt    string         `json:"receiptHandle"`
			Body       string         `json:"body"`
			Attributes map[string]any `json:"attributes"`
			QueueARN   string         `json:"eventSourceARN"`
		} `json:"Records"`
	}
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, fmt.Errorf("decode the batch: %w", err)
	}
	if event.Records == nil {
		return nil, errors.New("decode the batch: it has no records")
	}
	messages := make([]Message, len(event.Records))
	for i, r := range event.Records {
		if r.ID == "" {
			return nil, fmt.Errorf("decode the batch: record %d has no message id", i)
		}
		messages[i] = Message{
			ID:                  r.ID,
			Receipt:             r.Receipt,
			Body:                r.Body,
			Group:               text(r.Attributes, "MessageGroupId"),
			DedupID:             text(r.Attributes, "MessageDeduplicationId"),
			ReceiveCount:        int(number(r.Attributes, "ApproximateReceiveCount")),
			SequenceNumber:      text(r.Attributes, "SequenceNumber"),
			SentMS:              number(r.Attributes, "SentTimestamp"),
			FirstReceiveMS:      number(r.Attributes, "ApproximateFirstReceiveTimestamp"),
			QueueARN:            r.QueueARN,
			DeadLetterSourceARN: text(r.Attributes, "DeadLetterQueueSourceArn"),
		}
	}
	return messages, nil
}

// text is an attribute; SQS writes all of them as strings.
func text(attributes map[string]any, name string) string {
	s, _ := attributes[name].(string)
	return s
}

func number(attributes map[string]any, name string) int64 {
	n, err := strconv.ParseInt(text(attributes, name), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Answer writes the answer that keeps the messages with these ids; none means that all are done.
func Answer(failed []string) []byte {
	type failure struct {
		ID string `json:"itemIdentifier"`
	}
	answer := struct {
		Failures []failure `json:"batchItemFailures"`
	}{make([]failure, len(failed))}
	for i, id := range failed {
		answer.Failures[i].ID = id
	}
	// Strings always encode.
	text, _ := json.Marshal(answer)
	return text
}
