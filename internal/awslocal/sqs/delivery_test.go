package sqs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func TestGroupIsDeliveredInOrderOverSeveralReceives(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		for i := range 24 {
			b.send(q, "A", fmt.Sprintf("%02d", i))
		}
		for _, want := range []string{"00,01,02,03,04,05,06,07,08,09", "10,11,12,13,14,15,16,17,18,19", "20,21,22,23"} {
			b.mustDelete(q, b.expect(q, want)...)
		}
	})
}

func TestGroupWaitsWhileAnyOfItsMessagesIsInFlight(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.send(q, "A", "a1", "a2", "a3")
		b.send(q, "B", "b1")
		first := b.receive(q, 1, 0)
		b.expect(q, "b1")
		b.expect(q, "")
		b.mustDelete(q, first...)
		b.expect(q, "a2,a3")
	})
}

func TestOldestDeliverableGroupComesFirst(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.send(q, "A", "a1")
		b.send(q, "B", "b1")
		b.send(q, "A", "a2")
		b.send(q, "C", "c1")
		b.expect(q, "a1,a2,b1,c1")
		b.expectCounts(q, "0/4/0")
	})
}

func TestMessageHandedBackComesBeforeItsFollowers(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.send(q, "A", "a1", "a2", "a3", "a4")
		got := b.receive(q, 3, 0)
		b.mustDelete(q, got[0])
		if err := b.changeVisibility(q, got[1], 0); err != nil {
			t.Fatal(err)
		}
		b.expect(q, "") // a3 is still in flight
		b.mustDelete(q, got[2])
		b.expect(q, "a2,a4")
	})
}

func TestOrderIsKeptAfterVisibilityTimeout(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "VisibilityTimeout", "5")
		b.send(q, "A", "a1", "a2", "a3")
		b.expect(q, "a1,a2,a3")
		time.Sleep(5*time.Second - time.Nanosecond)
		b.expect(q, "")
		b.expectCounts(q, "0/3/0")
		time.Sleep(time.Nanosecond)
		b.expect(q, "a1,a2,a3")
	})
}

func TestExpiredReceiptHandleDeletesNothing(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.send(q, "A", "a1")
		old := b.receive(q, 1, 2)[0]
		time.Sleep(2 * time.Second)
		expectError(t, b.delete(q, old), "InvalidParameterValue")
		expectError(t, b.changeVisibility(q, old, 9), "AWS.SimpleQueueService.MessageNotInflight")
		current := b.expect(q, "a1")[0]
		expectError(t, b.delete(q, old), "InvalidParameterValue")
		expectError(t, b.changeVisibility(q, old, 9), "InvalidParameterValue")
		b.expectCounts(q, "0/1/0")
		b.mustDelete(q, current)
		b.expectCounts(q, "0/0/0")
		if err := b.delete(q, current); err != nil {
			t.Errorf("deleting once more, as a retry does: %v", err)
		}
		expectError(t, b.changeVisibility(q, current, 9), "InvalidParameterValue")
	})
}

func TestForeignReceiptHandleIsInvalid(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q, other := b.queue("q.fifo"), b.queue("other.fifo")
		b.send(q, "A", "a1")
		m := b.receive(q, 1, 0)[0]
		expectError(t, b.delete(other, m), "ReceiptHandleIsInvalid")
		expectError(t, b.delete(q, types.Message{ReceiptHandle: aws.String("junk")}), "ReceiptHandleIsInvalid")
		b.mustDelete(q, m)
	})
}

func TestVisibilityIsExtendedUpToTwelveHoursFromTheReceive(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.send(q, "A", "a1", "a2")
		got := b.receive(q, 2, 10)
		if err := b.changeVisibility(q, got[0], 60); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second) // a2 is visible for long, but its group is not free
		b.expectCounts(q, "1/1/0")
		b.expect(q, "")
		expectError(t, b.changeVisibility(q, got[0], 43_200-58), "InvalidParameterValue")
		if err := b.changeVisibility(q, got[0], 43_200-59); err != nil {
			t.Fatal(err)
		}
		expectError(t, b.changeVisibility(q, got[0], 43_201), "InvalidParameterValue")
		expectError(t, b.changeVisibility(q, got[0], -1), "InvalidParameterValue")
		time.Sleep(12*time.Hour - 59*time.Second - time.Nanosecond)
		b.expect(q, "")
		time.Sleep(time.Nanosecond)
		b.expect(q, "a1,a2")
	})
}

func TestQueueDelayHidesMessagesAndIsRetroactive(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "DelaySeconds", "10")
		b.send(q, "A", "a1")
		b.expectCounts(q, "0/0/1")
		time.Sleep(9 * time.Second)
		b.expect(q, "")
		time.Sleep(time.Second)
		b.expectCounts(q, "1/0/0")
		b.set(q, "DelaySeconds", "15")
		b.expectCounts(q, "0/0/1")
		b.set(q, "DelaySeconds", "0")
		b.expect(q, "a1")
		b.set(q, "DelaySeconds", "900") // a1 is in flight and stays so
		b.expectCounts(q, "0/1/0")
	})
}

func TestRetentionEndsMessagesInFlightToo(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "MessageRetentionPeriod", "60", "VisibilityTimeout", "600")
		b.send(q, "A", "a1")
		time.Sleep(time.Second)
		b.send(q, "A", "a2")
		b.receive(q, 1, 0)
		time.Sleep(59*time.Second - time.Nanosecond)
		b.expectCounts(q, "1/1/0")
		b.expect(q, "")
		time.Sleep(time.Nanosecond) // a1 goes, which frees its group
		b.expect(q, "a2")
	})
}

func TestSystemAttributesTellOfSendAndReceives(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		time.Sleep(time.Second) // bubbles start at 2000-01-01 00:00:00 UTC
		sent := b.sendAs(q, "A", "d", "a1")
		time.Sleep(time.Second)
		first := b.receive(q, 1, 1)[0].Attributes
		time.Sleep(time.Second)
		second := b.receive(q, 1, 1)[0].Attributes
		for name, want := range map[string][2]string{
			"SentTimestamp":                    {"946684801000", "946684801000"},
			"ApproximateFirstReceiveTimestamp": {"946684802000", "946684802000"},
			"ApproximateReceiveCount":          {"1", "2"},
			"MessageGroupId":                   {"A", "A"},
			"MessageDeduplicationId":           {"d", "d"},
			"SequenceNumber":                   {*sent.SequenceNumber, *sent.SequenceNumber},
		} {
			if first[name] != want[0] || second[name] != want[1] {
				t.Errorf("%s is %q then %q, want %q", name, first[name], second[name], want)
			}
		}
		if len(first) != 7 || first["SenderId"] == "" {
			t.Errorf("attributes %v, want the six above and SenderId", first)
		}
	})
}

func TestOnlyTheAttributesAskedForAreReturned(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "VisibilityTimeout", "1")
		text := func(s string) types.MessageAttributeValue {
			return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
		}
		sent, err := b.client.SendMessage(b.ctx, &awssqs.SendMessageInput{
			QueueUrl: &q, MessageBody: aws.String("a1"), MessageGroupId: aws.String("A"), MessageDeduplicationId: aws.String("d"),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"why.class": text("outage"), "why.text": text("gone"), "whyever": text("x"),
				"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
			},
			MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
				"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		// Computed by hand from the Developer Guide's recipe, with another program.
		if got := aws.ToString(sent.MD5OfMessageAttributes); got != "8d390fc79b2bf0088f76167bde210cdc" {
			t.Errorf("digest of the attributes is %s", got)
		}
		for _, c := range []struct {
			names []string
			want  int
		}{{nil, 0}, {[]string{"All"}, 4}, {[]string{".*"}, 4}, {[]string{"why.*"}, 2}, {[]string{"whyever", "none"}, 1}} {
			m := b.receiveWith(&awssqs.ReceiveMessageInput{QueueUrl: &q, MessageAttributeNames: c.names,
				MessageSystemAttributeNames: []types.MessageSystemAttributeName{"AWSTraceHeader", "MessageGroupId"}})[0]
			if len(m.MessageAttributes) != c.want || (m.MD5OfMessageAttributes != nil) != (c.want > 0) {
				t.Errorf("%q gives %d attributes, want %d", c.names, len(m.MessageAttributes), c.want)
			}
			if len(m.Attributes) != 2 || m.Attributes["MessageGroupId"] != "A" || m.Attributes["AWSTraceHeader"] != "Root=1-5759e988-bd862e3fe1be46a994272793" {
				t.Errorf("system attributes %v, want the two asked for", m.Attributes)
			}
			if bytes := m.MessageAttributes["bytes"].BinaryValue; c.want == 4 && string(bytes) != "\x00\xff" {
				t.Errorf("bytes are %x", bytes)
			}
			time.Sleep(time.Second)
		}
		_, err = b.client.ReceiveMessage(b.ctx, &awssqs.ReceiveMessageInput{QueueUrl: &q, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"Nope"}})
		expectError(t, err, "InvalidAttributeName")
	})
}

func TestReceiveAttemptCanBeRepeated(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "VisibilityTimeout", "30")
		b.send(q, "A", "a1", "a2")
		try := func(id string) []types.Message {
			return b.receiveWith(&awssqs.ReceiveMessageInput{QueueUrl: &q, MaxNumberOfMessages: 10, ReceiveRequestAttemptId: &id})
		}
		first := try("one")
		time.Sleep(20 * time.Second)
		if got := try("two"); len(got) != 0 {
			t.Errorf("another attempt received %s", bodies(got))
		}
		again := try("one")
		if bodies(again) != "a1,a2" || *again[1].ReceiptHandle != *first[1].ReceiptHandle {
			t.Fatalf("repeated attempt received %q, want the same messages and handles", bodies(again))
		}
		time.Sleep(20 * time.Second) // 40 s after the receive, 20 s after its repetition
		b.mustDelete(q, first[0])
		if got := try("one"); len(got) != 0 {
			t.Errorf("repeated after a delete: received %s", bodies(got))
		}
	})
}
