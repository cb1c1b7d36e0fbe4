package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/reconcile"
	"backstop/internal/telemetry"
)

// SQS looks for groups it can deliver among a FIFO queue's first 120,000 messages only (Amazon SQS Developer Guide,
// "Avoid large message backlogs with the same message group ID"). So 150,000 waiting events of one customer starve
// all others whose events come after, and nobody but SQS can help that. What the system does is to say it: the sweep
// counts the open entries by group, its line names the largest, and its metric raises an alarm long before.
func TestBacklogOfOneCustomerStarvesOthersAndIsNamed(t *testing.T) {
	if raced {
		t.Skip("150,000 messages of one goroutine: there is nothing to race, and it takes a minute")
	}
	t.Parallel()
	const (
		backlog = 150_000
		entries = 3_000 // of them, in the ledger: more than a sweep looks at
		window  = 120_000
	)
	shared := codec()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w, err := newWorld(ctx, Options{Seed: 1, Codec: shared, Profile: calmly(1, 1, time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		pointer := func(customer string, n int) queue.Pointer {
			return queue.Pointer{Key: fmt.Sprintf("stripe#-#evt_%s_%d", customer, n), Type: typeOnce, CreatedS: time.Now().Unix()}
		}
		record := func(customer string, n int) {
			_, err := w.ledger.Record(ctx, ledger.Recording{Key: ledger.Key(pointer(customer, n).Key), Type: typeOnce,
				CreatedS: time.Now().Unix(), Group: customer, Origin: ledger.Webhook, Body: []byte("{}"), Token: fmt.Sprint(customer, n)})
			if err != nil {
				t.Fatal(err)
			}
		}
		for n := 0; n < backlog; n += 10 {
			batch := &sqs.SendMessageBatchInput{QueueUrl: &w.names.QueueURL}
			for i := range 10 {
				batch.Entries = append(batch.Entries, types.SendMessageBatchRequestEntry{
					Id: aws.String(strconv.Itoa(i)), MessageGroupId: aws.String("cus_big"),
					MessageBody:            aws.String(queue.Encode(pointer("cus_big", n+i))),
					MessageDeduplicationId: aws.String(strconv.Itoa(n + i)),
				})
			}
			if _, err := w.sqs.SendMessageBatch(ctx, batch); err != nil {
				t.Fatal(err)
			}
		}
		for n := range entries {
			record("cus_big", n)
		}
		record("cus_small", 0)
		if err := w.queue.Send(ctx, queue.Send{Group: "cus_small", Pointer: pointer("cus_small", 0)}); err != nil {
			t.Fatal(err)
		}

		// The head of the large group is under way, as that of a slow or failing customer always is.
		receive := func() []types.Message {
			out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &w.names.QueueURL, MaxNumberOfMessages: 1})
			if err != nil {
				t.Fatal(err)
			}
			return out.Messages
		}
		if head := receive(); len(head) != 1 {
			t.Fatal("the queue is empty")
		}
		if next := receive(); len(next) != 0 {
			t.Errorf("SQS shows %s although 120,000 messages stand before it", *next[0].Body)
		}

		// What the system says about it.
		time.Sleep(3 * time.Minute)
		var lines bytes.Buffer
		r := &reconcile.Reconciler{
			Sweeper: &reconcile.Sweeper{Ledger: w.ledger, Queue: w.queue, Control: w.control, Now: time.Now},
			Counter: w.ledger, Log: telemetry.New(&lines, "sim", time.Now),
		}
		if _, err := r.Invoke(ctx, []byte(`{"task":"sweep"}`)); err != nil {
			t.Fatal(err)
		}
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line["largest_group"] != "cus_big" {
			t.Errorf("the sweep's line names %v, want cus_big: %s", line["largest_group"], lines.String())
		}
		open, _ := line[telemetry.LargestGroup].(float64)
		if open < entries*9/10 || open > entries+1 {
			t.Errorf("the metric says %v open entries of the largest group, want about %d", open, entries)
		}

		// When the backlog is worked off to below the window, the others go on.
		time.Sleep(time.Hour) // the head's message is back
		left := backlog
		for ; left >= window; left -= 10 {
			out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &w.names.QueueURL, MaxNumberOfMessages: 10})
			if err != nil {
				t.Fatal(err)
			}
			drop := &sqs.DeleteMessageBatchInput{QueueUrl: &w.names.QueueURL}
			for i, m := range out.Messages {
				if strings.Contains(*m.Body, "cus_small") {
					t.Errorf("cus_small is shown while %d messages stand before it", left)
				}
				drop.Entries = append(drop.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
			}
			if _, err := w.sqs.DeleteMessageBatch(ctx, drop); err != nil {
				t.Fatal(err)
			}
		}
		receive() // the large group's head
		next := receive()
		if len(next) != 1 || !strings.Contains(*next[0].Body, "cus_small") {
			t.Errorf("with %d messages before it, cus_small is not shown", left)
		}
		t.Logf("150,000 events of one customer: the others starve until fewer than %d stand before them; the sweep's line names %v with %.0f open entries in the ledger",
			window, line["largest_group"], open)
	})
}
