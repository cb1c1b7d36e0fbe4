package lambda

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// sqsEvent and its parts are the event Lambda builds of a batch of messages
// ("Using Lambda with Amazon SQS", example event), fields in its order.
type sqsEvent struct {
	Records []sqsRecord `json:"Records"`
}

type sqsRecord struct {
	MessageID              string                  `json:"messageId"`
	ReceiptHandle          string                  `json:"receiptHandle"`
	Body                   string                  `json:"body"`
	Attributes             map[string]string       `json:"attributes"`
	MessageAttributes      map[string]sqsAttribute `json:"messageAttributes"`
	MD5OfMessageAttributes string                  `json:"md5OfMessageAttributes,omitempty"`
	MD5OfBody              string                  `json:"md5OfBody"`
	EventSource            string                  `json:"eventSource"`
	EventSourceARN         string                  `json:"eventSourceARN"`
	AWSRegion              string                  `json:"awsRegion"`
}

type sqsAttribute struct {
	StringValue      *string  `json:"stringValue,omitempty"`
	BinaryValue      string   `json:"binaryValue,omitempty"`
	StringListValues []string `json:"stringListValues"`
	BinaryListValues []string `json:"binaryListValues"`
	DataType         string   `json:"dataType"`
}

func newSQSEvent(messages []types.Message, queueARN, region string) ([]byte, error) {
	event := sqsEvent{Records: make([]sqsRecord, len(messages))}
	for i, m := range messages {
		r := sqsRecord{
			MessageID:              aws.ToString(m.MessageId),
			ReceiptHandle:          aws.ToString(m.ReceiptHandle),
			Body:                   aws.ToString(m.Body),
			Attributes:             m.Attributes,
			MessageAttributes:      make(map[string]sqsAttribute, len(m.MessageAttributes)),
			MD5OfMessageAttributes: aws.ToString(m.MD5OfMessageAttributes),
			MD5OfBody:              aws.ToString(m.MD5OfBody),
			EventSource:            "aws:sqs",
			EventSourceARN:         queueARN,
			AWSRegion:              region,
		}
		for name, a := range m.MessageAttributes {
			r.MessageAttributes[name] = sqsAttribute{
				StringValue: a.StringValue, BinaryValue: base64.StdEncoding.EncodeToString(a.BinaryValue),
				StringListValues: []string{}, BinaryListValues: []string{}, DataType: aws.ToString(a.DataType),
			}
		}
		event.Records[i] = r
	}
	payload, err := json.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("building the SQS event: %w", err)
	}
	return payload, nil
}

// succeeded picks the messages to delete from a function's answer, by the
// conditions in "Implementing partial batch responses": nothing reported, in
// any way of saying nothing, is complete success; an answer that is not JSON,
// or names an item that is empty, null, under another key, or not of this
// batch, is complete failure, which the error explains.
func succeeded(messages []types.Message, resp Response) ([]types.Message, error) {
	if resp.FunctionError != "" {
		return nil, fmt.Errorf("function error: %s", errorType(resp.Payload))
	}
	if len(resp.Payload) == 0 {
		return messages, nil
	}
	// Maps, because Lambda reads the names as they are spelled and a struct
	// would take them in any case.
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(resp.Payload, &answer); err != nil {
		return nil, fmt.Errorf("reading the batch answer: %w", err)
	}
	var items []map[string]json.RawMessage
	if list := answer["batchItemFailures"]; list != nil {
		if err := json.Unmarshal(list, &items); err != nil {
			return nil, fmt.Errorf("reading the batch answer's items: %w", err)
		}
	}
	inBatch := make(map[string]bool, len(messages))
	for _, m := range messages {
		inBatch[aws.ToString(m.MessageId)] = true
	}
	failed := map[string]bool{}
	for _, item := range items {
		var id string
		if raw := item["itemIdentifier"]; raw == nil || json.Unmarshal(raw, &id) != nil {
			return nil, errors.New("the batch answer has an item without itemIdentifier")
		}
		if !inBatch[id] {
			return nil, errors.New("the batch answer names an item that is not of this batch")
		}
		failed[id] = true
	}
	var done []types.Message
	for _, m := range messages {
		if !failed[aws.ToString(m.MessageId)] {
			done = append(done, m)
		}
	}
	return done, nil
}

// errorType is the part of an error object that is safe to log.
func errorType(payload []byte) string {
	var e functionError
	if json.Unmarshal(payload, &e) != nil || e.Type == "" {
		return "unknown"
	}
	return e.Type
}
