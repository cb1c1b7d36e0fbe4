package sqsbatch_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"backstop/internal/sqsbatch"
)

func TestMessageIsReadWithItsAttributes(t *testing.T) {
	t.Parallel()
	got, err := sqsbatch.Decode([]byte(`{"Records":[{"messageId":"m1","receiptHandle":"r1","body":"b\u00e9","attributes":{
		"ApproximateReceiveCount":"3","SentTimestamp":"1790000000123","SequenceNumber":"18849496460467696128",
		"MessageGroupId":"cus_1","MessageDeduplicationId":"evt_1#0","ApproximateFirstReceiveTimestamp":"1790000000456",
		"DeadLetterQueueSourceArn":"arn:aws:sqs:eu-central-1:1:src.fifo"},
		"messageAttributes":{},"md5OfBody":"x","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-central-1:1:q.fifo","awsRegion":"eu-central-1"}]}`))
	want := []sqsbatch.Message{{ID: "m1", Receipt: "r1", Body: "bé", Group: "cus_1", DedupID: "evt_1#0", ReceiveCount: 3,
		SequenceNumber: "18849496460467696128", SentMS: 1790000000123, FirstReceiveMS: 1790000000456,
		QueueARN: "arn:aws:sqs:eu-central-1:1:q.fifo", DeadLetterSourceARN: "arn:aws:sqs:eu-central-1:1:src.fifo"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("err %v (-want +got):\n%s", err, diff)
	}
}

func TestOddAttributesReadAsAbsent(t *testing.T) {
	t.Parallel()
	got, err := sqsbatch.Decode([]byte(`{"Records":[{"messageId":"m1","attributes":{"ApproximateReceiveCount":"many","SentTimestamp":5,"MessageGroupId":null}},{"messageId":"m2"}]}`))
	if diff := cmp.Diff([]sqsbatch.Message{{ID: "m1"}, {ID: "m2"}}, got); err != nil || diff != "" {
		t.Errorf("err %v (-want +got):\n%s", err, diff)
	}
}

func TestBatchThatCannotBeAnsweredForIsAnError(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{``, `null`, `{}`, `[]`, `{"Records":null}`, `{"Records":{}}`, `{"Records":[{"body":"x"}]}`} {
		if got, err := sqsbatch.Decode([]byte(payload)); err == nil {
			t.Errorf("%s gave %v", payload, got)
		}
	}
}

func TestAnswerIsExactlyWhatLambdaReads(t *testing.T) {
	t.Parallel()
	for want, failed := range map[string][]string{
		`{"batchItemFailures":[]}`:                                                  nil,
		`{"batchItemFailures":[{"itemIdentifier":"m1"}]}`:                           {"m1"},
		`{"batchItemFailures":[{"itemIdentifier":"m1"},{"itemIdentifier":"a\"b"}]}`: {"m1", `a"b`},
	} {
		if got := string(sqsbatch.Answer(failed)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func FuzzDecodeGivesMessagesThatCanBeAnsweredFor(f *testing.F) {
	f.Add([]byte(`{"Records":[{"messageId":"m1","attributes":{"SentTimestamp":"-1"}}]}`))
	f.Add([]byte(`{"Records":[]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		messages, err := sqsbatch.Decode(payload)
		if err != nil {
			return
		}
		var ids []string
		for _, m := range messages {
			if m.ID == "" || m.ReceiveCount < 0 || m.SentMS < 0 {
				t.Errorf("got %+v", m)
			}
			ids = append(ids, m.ID)
		}
		if !json.Valid(sqsbatch.Answer(ids)) {
			t.Errorf("the answer for %q is no JSON", ids)
		}
	})
}
