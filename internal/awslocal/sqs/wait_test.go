package sqs_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// poll waits up to 20 s for messages and returns them and the seconds it took.
func poll(b *bundle, queue string) ([]types.Message, float64) {
	b.Helper()
	began := time.Now()
	got := b.receiveWith(&awssqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: 20, MaxNumberOfMessages: 10})
	return got, time.Since(began).Seconds()
}

// after does something at a later moment.
func after(d time.Duration, do func()) {
	go func() {
		time.Sleep(d)
		do()
	}()
}

func expectPoll(b *bundle, queue, want string, seconds float64) []types.Message {
	b.Helper()
	got, took := poll(b, queue)
	if bodies(got) != want || took != seconds {
		b.Fatalf("poll gave %q after %v s, want %q after %v s", bodies(got), took, want, seconds)
	}
	return got
}

func TestLongPollWakesWhenSomethingBecomesVisible(t *testing.T) {
	inBubble(t, func(b *bundle) {
		work, dead := b.pair(1)
		after(3*time.Second, func() { b.send(work, "A", "a1") })
		got := expectPoll(b, work, "a1", 3)

		// A delete frees the group.
		b.send(work, "A", "a2")
		after(2*time.Second, func() { b.mustDelete(work, got...) })
		expectPoll(b, work, "a2", 2)

		// Handed back: it goes to the dead-letter queue, whose poll wakes.
		after(30*time.Second, func() { b.expect(work, "") })
		expectPoll(b, dead, "", 20)
		expectPoll(b, dead, "a2", 10)

		// A visibility time-out, set by the receive and shortened while polls wait.
		time.Sleep(time.Minute)
		got = b.receive(dead, 1, 15)
		after(time.Second, func() {
			if err := b.changeVisibility(dead, got[0], 4); err != nil {
				t.Error(err)
			}
		})
		expectPoll(b, dead, "a2", 5)
	})
}

func TestLongPollWakesWhenDelayEnds(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "DelaySeconds", "7")
		b.send(q, "A", "a1")
		expectPoll(b, q, "a1", 7)
	})
}

func TestQueueWaitTimeCountsWithoutOneInTheReceive(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "ReceiveMessageWaitTimeSeconds", "6")
		began := time.Now()
		b.expect(q, "")
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("waited %v, want 6s", took)
		}
	})
}

func TestWaitingReceivesAreServedInTheirOrder(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		var mu sync.Mutex
		var served []string
		for i := range 4 {
			go func() {
				time.Sleep(time.Duration(i) * time.Second)
				got := b.receiveWith(&awssqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20, MaxNumberOfMessages: 1, VisibilityTimeout: 3})
				mu.Lock()
				defer mu.Unlock()
				served = append(served, fmt.Sprintf("%d=%s@%d", i, bodies(got), time.Now().Unix()-946684800))
			}()
		}
		time.Sleep(5 * time.Second)
		b.send(q, "A", "a1")
		synctest.Wait()
		time.Sleep(time.Second)
		b.send(q, "B", "b1") // at 6 s; a1 comes back at 8, b1 at 9
		time.Sleep(30 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got, want := strings.Join(served, " "), "0=a1@5 1=b1@6 2=a1@8 3=b1@9"; got != want {
			t.Errorf("served %s, want %s", got, want)
		}
	})
}

func TestNewReceiveDoesNotOvertakeWaitingOne(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		b.send(q, "A", "a1")
		b.receive(q, 1, 5)
		waited := make(chan string)
		go func() {
			got, _ := poll(b, q)
			waited <- bodies(got)
		}()
		time.Sleep(5 * time.Second)
		b.expect(q, "") // in the very moment a1 becomes visible
		if got := <-waited; got != "a1" {
			t.Errorf("the waiting receive got %q, want a1", got)
		}
	})
}

func TestAbandonedLongPollTakesNothing(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		ctx, cancel := context.WithTimeout(b.ctx, 2*time.Second)
		defer cancel()
		began := time.Now()
		_, err := b.client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
		if err == nil || time.Since(began) != 2*time.Second {
			t.Fatalf("got error %v after %v, want one after 2s", err, time.Since(began))
		}
		b.send(q, "A", "a1")
		if got := b.expect(q, "a1"); got[0].Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("received %s times before", got[0].Attributes["ApproximateReceiveCount"])
		}
	})
}

func TestPollAbandonedInTheMomentItIsServedGivesBack(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := b.client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
			if err == nil {
				t.Error("the cancelled receive got an answer")
			}
		}()
		synctest.Wait()
		cancel()
		b.send(q, "A", "a1") // may be handed to the cancelled receive, or not
		<-done
		if got := b.expect(q, "a1"); got[0].Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("received %s times, want once", got[0].Attributes["ApproximateReceiveCount"])
		}
	})
}

func TestDeletedQueueEndsItsPolls(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		after(2*time.Second, func() {
			if _, err := b.client.DeleteQueue(b.ctx, &awssqs.DeleteQueueInput{QueueUrl: &q}); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		_, err := b.client.ReceiveMessage(b.ctx, &awssqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
		expectError(t, err, "AWS.SimpleQueueService.NonExistentQueue")
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the poll ended after %v, want 2s", took)
		}
		_, err = b.create("q.fifo", "FifoQueue", "true")
		expectError(t, err, "AWS.SimpleQueueService.QueueDeletedRecently")
		time.Sleep(time.Minute)
		if _, err := b.create("q.fifo", "FifoQueue", "true"); err != nil {
			t.Errorf("creating it a minute later: %v", err)
		}
	})
}

func TestManyPollsDrainAQueueOnceEach(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo")
		var mu sync.Mutex
		seen := map[string]int{}
		var polls sync.WaitGroup
		for range 8 {
			polls.Go(func() {
				for {
					got, _ := poll(b, q)
					if len(got) == 0 {
						return
					}
					mu.Lock()
					for _, m := range got {
						seen[aws.ToString(m.Body)]++
					}
					mu.Unlock()
					time.Sleep(100 * time.Millisecond)
					b.mustDelete(q, got...)
				}
			})
		}
		for i := range 200 {
			b.send(q, fmt.Sprint("g", i%7), fmt.Sprint(i))
			time.Sleep(time.Millisecond)
		}
		polls.Wait()
		if len(seen) != 200 {
			t.Errorf("%d messages received, want 200", len(seen))
		}
		for body, n := range seen {
			if n != 1 {
				t.Errorf("%s received %d times", body, n)
			}
		}
	})
}

func TestNextInLineWakesAfterTheFirstGaveUp(t *testing.T) {
	inBubble(t, func(b *bundle) {
		q := b.queue("q.fifo", "MessageRetentionPeriod", "60")
		b.send(q, "A", "a1")
		time.Sleep(30 * time.Second)
		b.send(q, "A", "a2")
		b.receive(q, 1, 600)
		// a1 stays in flight until its retention ends, at 60 s, which frees its group.
		time.Sleep(5 * time.Second)
		after(10*time.Second, func() { expectPoll(b, q, "a2", 15) })
		expectPoll(b, q, "", 20) // first in line, until 55 s
		time.Sleep(10 * time.Second)
	})
}
