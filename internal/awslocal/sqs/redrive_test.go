package sqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	workARN = "arn:aws:sqs:us-east-1:000000000000:work.fifo"
	deadARN = "arn:aws:sqs:us-east-1:000000000000:dead.fifo"
)

// exhaust receives everything in queue once, with max receives of 1, so that the
// next receive moves it.
func exhaust(b *bundle, queue string) {
	b.Helper()
	b.receive(queue, 10, 1)
	time.Sleep(time.Second)
	b.expect(queue, "")
}

func TestMessageReceivedTooOftenMovesToDeadLetterQueue(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(2)
		sent, err := b.client.SendMessage(b.ctx, &awssqs.SendMessageInput{
			QueueUrl: &work, MessageBody: aws.String("a1"), MessageGroupId: aws.String("A"), MessageDeduplicationId: aws.String("d"),
			MessageAttributes: map[string]types.MessageAttributeValue{"k": {DataType: aws.String("String"), StringValue: aws.String("v")}}})
		if err != nil {
			t.Fatal(err)
		}
		b.send(work, "A", "a2")
		for range 2 {
			if got := b.receive(work, 1, 1); bodies(got) != "a1" {
				t.Fatalf("received %q, want a1", bodies(got))
			}
			time.Sleep(time.Second)
		}
		b.expectCounts(work, "2/0/0") // it moves when it would be received
		b.expect(work, "a2")
		b.expectCounts(work, "0/1/0")

		got := b.receiveWith(&awssqs.ReceiveMessageInput{QueueUrl: &dead, MessageAttributeNames: []string{"All"}})
		if bodies(got) != "a1" || *got[0].MessageId != *sent.MessageId || aws.ToString(got[0].MessageAttributes["k"].StringValue) != "v" {
			t.Fatalf("dead-letter queue gives %q, want a1 with its id and attributes", bodies(got))
		}
		a := got[0].Attributes
		for name, want := range map[string]string{"MessageGroupId": "A", "MessageDeduplicationId": "d", "ApproximateReceiveCount": "3",
			"DeadLetterQueueSourceArn": workARN, "SentTimestamp": "946684802000", "ApproximateFirstReceiveTimestamp": "946684800000"} {
			if a[name] != want {
				t.Errorf("%s is %q, want %q", name, a[name], want)
			}
		}
		if a["SequenceNumber"] <= *sent.SequenceNumber {
			t.Errorf("sequence number %s is not a new one", a["SequenceNumber"])
		}
	})
}

func TestDeadLetterIsNeverDeduplicated(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(1)
		b.sendAs(dead, "A", "d", "parked by hand")
		b.sendAs(work, "A", "d", "a1")
		exhaust(b, work)
		b.expect(dead, "parked by hand,a1")
	})
}

func TestDeadLetterQueueBlocksGroupsToo(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(1)
		b.send(work, "A", "a1", "a2")
		exhaust(b, work)
		if got := b.receive(dead, 1, 0); bodies(got) != "a1" {
			t.Fatalf("received %q, want a1", bodies(got))
		}
		b.expect(dead, "")
	})
}

func TestReceivesElsewhereDoNotCountTowardsMaxReceiveCount(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(2)
		b.queue("grave.fifo")
		b.set(dead, "RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:grave.fifo","maxReceiveCount":2}`)
		b.send(work, "A", "a1")
		for _, queue := range []string{work, work, dead, dead} {
			if queue == dead {
				b.expect(work, "") // moves it the first time
			}
			if got := b.receive(queue, 1, 1); bodies(got) != "a1" {
				t.Fatalf("%s gives %q, want a1", queue, bodies(got))
			}
			time.Sleep(time.Second)
		}
		b.expect(dead, "")
		b.expect("http://local.test/000000000000/grave.fifo", "a1")
	})
}

func TestDeletedDeadLetterQueueTakesNothing(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(1)
		if _, err := b.client.DeleteQueue(b.ctx, &awssqs.DeleteQueueInput{QueueUrl: &dead}); err != nil {
			t.Fatal(err)
		}
		b.send(work, "A", "a1")
		b.receive(work, 1, 1)
		time.Sleep(time.Second)
		b.expect(work, "a1")
	})
}

func TestRedriveMovesDeadLettersBackAsNewMessages(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(1)
		b.send(work, "A", "a1", "a2")
		exhaust(b, work)
		task, err := b.client.StartMessageMoveTask(b.ctx, &awssqs.StartMessageMoveTaskInput{SourceArn: aws.String(deadARN)})
		if err != nil || aws.ToString(task.TaskHandle) == "" {
			t.Fatalf("starting: %v", err)
		}
		expectTask(b, "COMPLETED", "", 2, 2)
		b.expectCounts(dead, "0/0/0")
		got := b.expect(work, "a1,a2")
		a := got[0].Attributes
		if *got[0].MessageId == "id-1" || a["ApproximateReceiveCount"] != "1" || a["MessageGroupId"] != "A" || a["SentTimestamp"] != "946684801000" || a["DeadLetterQueueSourceArn"] != "" {
			t.Errorf("moved back as %s with %v, want a new message in group A", *got[0].MessageId, a)
		}
		_, err = b.client.StartMessageMoveTask(b.ctx, &awssqs.StartMessageMoveTaskInput{SourceArn: aws.String(workARN)})
		expectError(t, err, "InvalidParameterValue")
		_, err = b.client.StartMessageMoveTask(b.ctx, &awssqs.StartMessageMoveTaskInput{SourceArn: aws.String(workARN + "x")})
		expectError(t, err, "ResourceNotFoundException")
	})
}

func expectTask(b *bundle, status, reason string, moved, total int64) {
	b.Helper()
	list, err := b.client.ListMessageMoveTasks(b.ctx, &awssqs.ListMessageMoveTasksInput{SourceArn: aws.String(deadARN)})
	if err != nil || len(list.Results) != 1 {
		b.Fatalf("listing tasks: %v", err)
	}
	got := list.Results[0]
	if aws.ToString(got.Status) != status || aws.ToString(got.FailureReason) != reason ||
		got.ApproximateNumberOfMessagesMoved != moved || aws.ToInt64(got.ApproximateNumberOfMessagesToMove) != total {
		b.Fatalf("task is %s %s, %d of %d moved, want %s %s, %d of %d", aws.ToString(got.Status), aws.ToString(got.FailureReason),
			got.ApproximateNumberOfMessagesMoved, aws.ToInt64(got.ApproximateNumberOfMessagesToMove), status, reason, moved, total)
	}
}

func TestRedriveOfMessageWithoutSourceNeedsDestination(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(1)
		b.send(dead, "A", "parked")
		in := &awssqs.StartMessageMoveTaskInput{SourceArn: aws.String(deadARN)}
		if _, err := b.client.StartMessageMoveTask(b.ctx, in); err != nil {
			t.Fatal(err)
		}
		expectTask(b, "FAILED", "CouldNotDetermineMessageSource", 0, 1)
		b.expectCounts(dead, "1/0/0")
		in.DestinationArn = aws.String(workARN)
		if _, err := b.client.StartMessageMoveTask(b.ctx, in); err != nil {
			t.Fatal(err)
		}
		expectTask(b, "COMPLETED", "", 1, 1)
		b.expect(work, "parked")
	})
}

func TestRedriveLeavesGroupsInFlightAlone(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(1)
		b.send(work, "A", "a1", "a2")
		b.send(work, "B", "b1")
		exhaust(b, work)
		b.receive(dead, 1, 0)
		if _, err := b.client.StartMessageMoveTask(b.ctx, &awssqs.StartMessageMoveTaskInput{SourceArn: aws.String(deadARN)}); err != nil {
			t.Fatal(err)
		}
		b.expect(work, "b1")
		b.expectCounts(dead, "1/1/0")
	})
}

func TestSourcesOfDeadLetterQueueAreListed(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(1)
		out, err := b.client.ListDeadLetterSourceQueues(b.ctx, &awssqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead})
		if err != nil || len(out.QueueUrls) != 1 || out.QueueUrls[0] != work {
			t.Errorf("got %v, %v, want %s", out, err, work)
		}
	})
}
