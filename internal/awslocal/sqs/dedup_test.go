package sqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestDuplicateOfWaitingMessageNamesTheOriginal(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		first, second := b.sendAs(q, "A", "d", "one"), b.sendAs(q, "A", "d", "one")
		if aws.ToString(first.MessageId) != "id-1" || aws.ToString(second.MessageId) != "id-1" {
			t.Errorf("message ids %s, %s, want id-1 twice", *first.MessageId, *second.MessageId)
		}
		if *first.SequenceNumber != *second.SequenceNumber || len(*first.SequenceNumber) != 20 {
			t.Errorf("sequence numbers %s, %s, want the same 20 digits", *first.SequenceNumber, *second.SequenceNumber)
		}
		b.expect(q, "one")
	})
}

func TestDuplicateWithAnotherBodyIsNotStored(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.sendAs(q, "A", "d", "one")
		// The client compares the digest in the answer with this body.
		second := b.sendAs(q, "A", "d", "other")
		if *second.MessageId != "id-1" || *second.MD5OfMessageBody != "795f3202b17cb6bc3d4b771d8c6c9eaf" {
			t.Errorf("answer %s %s, want id-1 and the digest of what was sent", *second.MessageId, *second.MD5OfMessageBody)
		}
		b.expect(q, "one")
	})
}

func TestDuplicateOfDeletedMessageIsNotStoredForFiveMinutes(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.sendAs(q, "A", "d", "one")
		got := b.expect(q, "one")
		b.sendAs(q, "A", "d", "one") // while in flight
		b.mustDelete(q, got...)
		b.sendAs(q, "A", "d", "one")
		time.Sleep(5*time.Minute - time.Nanosecond)
		b.sendAs(q, "A", "d", "one")
		b.expect(q, "")
		time.Sleep(time.Nanosecond)
		b.sendAs(q, "A", "d", "again")
		b.expect(q, "again")
	})
}

func TestDuplicateDoesNotExtendTheInterval(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.sendAs(q, "A", "d", "one")
		time.Sleep(4 * time.Minute)
		b.sendAs(q, "A", "d", "two")
		time.Sleep(time.Minute)
		b.sendAs(q, "A", "d", "three")
		b.expect(q, "one,three")
	})
}

func TestDeduplicationScopeDecidesOverGroups(t *testing.T) {
	inBubble(t, func(b *bundle) {
		queueWide := b.queue("queue.fifo")
		perGroup := b.queue("group.fifo", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
		for _, q := range []string{queueWide, perGroup} {
			b.sendAs(q, "A", "d", "a")
			b.sendAs(q, "B", "d", "b")
			b.sendAs(q, "A", "d", "a again")
		}
		b.expect(queueWide, "a")
		b.expect(perGroup, "a,b")
	})
}

func TestContentBasedDeduplicationUsesTheBody(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "ContentBasedDeduplication", "true")
		for _, body := range []string{"x", "x", "y"} {
			_, err := b.client.SendMessage(b.ctx, &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: &body, MessageGroupId: aws.String("A")})
			if err != nil {
				t.Fatal(err)
			}
		}
		got := b.expect(q, "x,y")
		if id := got[0].Attributes["MessageDeduplicationId"]; id != "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" {
			t.Errorf("deduplication id %s, want the SHA-256 of x", id)
		}
	})
}

func TestPurgeForgetsMessagesButNotDeduplicationIDs(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.send(q, "A", "one", "two")
		b.receive(q, 1, 0)
		purge := func() error {
			_, err := b.client.PurgeQueue(b.ctx, &awssqs.PurgeQueueInput{QueueUrl: &q})
			return err
		}
		if err := purge(); err != nil {
			t.Fatal(err)
		}
		b.expectCounts(q, "0/0/0")
		expectError(t, purge(), "AWS.SimpleQueueService.PurgeQueueInProgress")
		b.send(q, "A", "one", "three")
		b.expect(q, "three")
		time.Sleep(time.Minute)
		if err := purge(); err != nil {
			t.Errorf("purging a minute later: %v", err)
		}
	})
}
