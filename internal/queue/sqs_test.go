package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/queue"
)

type bundle struct {
	*testing.T
	queue  *queue.SQS
	client *awssqs.Client
	names  stack.Names
	fault  func(*awslocal.Call) awslocal.Fault
}

func inBubble(t *testing.T, test func(b *bundle)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{T: t}
		server := awslocal.New(awslocal.Options{})
		direct := awslocal.Config(&awslocal.Transport{Server: server})
		var err error
		if b.names, err = stack.Create(t.Context(), direct, "test"); err != nil {
			t.Fatal(err)
		}
		b.client = awssqs.NewFromConfig(direct)
		b.queue = queue.New(awssqs.NewFromConfig(awslocal.Config(&awslocal.Transport{Server: server, Intercept: func(c *awslocal.Call) awslocal.Fault {
			if b.fault == nil {
				return awslocal.Fault{}
			}
			return b.fault(c)
		}})), b.names.QueueURL, b.names.DeadLetterURL)
		test(b)
	})
}

func (b *bundle) receive(url string) []types.Message {
	b.Helper()
	out, err := b.client.ReceiveMessage(b.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	if err != nil {
		b.Fatal(err)
	}
	return out.Messages
}

func pointer(id string, replay int) queue.Pointer {
	return queue.Pointer{Key: "stripe#-#" + id, Type: "invoice.paid", CreatedS: 1, Replay: replay}
}

func TestReplayAndSweepAreNotSwallowedWithinFiveMinutes(t *testing.T) {
	inBubble(t, func(b *bundle) {
		for _, s := range []queue.Send{
			{Pointer: pointer("evt_1", 0), Group: "cus_1"},
			{Pointer: pointer("evt_1", 0), Group: "cus_1"}, // a duplicate
			{Pointer: pointer("evt_1", 0), Group: "cus_1", Sweep: 1},
			{Pointer: pointer("evt_1", 1), Group: "cus_1"},
		} {
			if err := b.queue.Send(b.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(b.receive(b.names.QueueURL)); got != 3 {
			t.Errorf("%d messages, want 3: the first, the sweep's and the replay's", got)
		}
	})
}

func TestGroupSQSWouldRefuseIsRefusedBefore(t *testing.T) {
	inBubble(t, func(b *bundle) {
		if err := b.queue.Send(b.Context(), queue.Send{Pointer: pointer("evt_1", 0), Group: strings.Repeat("g", 129)}); err == nil {
			t.Error("Send took it")
		}
		errs := b.queue.SendBatch(b.Context(), []queue.Send{{Pointer: pointer("evt_1", 0)}, {Pointer: pointer("evt_2", 0), Group: "cus_1"}})
		if errs[0] == nil || errs[1] != nil {
			t.Errorf("got %v", errs)
		}
		if got := len(b.receive(b.names.QueueURL)); got != 1 {
			t.Errorf("%d messages, want the good one", got)
		}
	})
}

func TestBatchOfManyIsSentInTensAndFailuresAreNamed(t *testing.T) {
	inBubble(t, func(b *bundle) {
		calls := 0
		b.fault = func(c *awslocal.Call) awslocal.Fault {
			if calls++; calls == 2 {
				return awslocal.Fault{Kind: awslocal.Refuse, Code: "InvalidAddress", Status: 400}
			}
			return awslocal.Fault{}
		}
		var sends []queue.Send
		for i := range 23 {
			sends = append(sends, queue.Send{Pointer: pointer(fmt.Sprintf("evt_%02d", i), 0), Group: "cus_1"})
		}
		for i, err := range b.queue.SendBatch(b.Context(), sends) {
			if failed := i >= 10 && i < 20; failed != (err != nil) {
				t.Errorf("send %d: %v", i, err)
			}
		}
		if calls != 3 {
			t.Errorf("%d calls, want 3", calls)
		}
	})
}

func TestDeadLetterKeepsBodyGroupAndReason(t *testing.T) {
	inBubble(t, func(b *bundle) {
		err := b.queue.SendDeadLetter(b.Context(), queue.DeadLetter{Body: "not a pointer", Group: "cus_1", DeduplicationID: "evt_1#g3",
			Reason: "because\x00 of\ufffe this", Class: "pointer", Attempts: 8})
		if err != nil {
			t.Fatal(err)
		}
		got := b.receive(b.names.DeadLetterURL)
		if len(got) != 1 || *got[0].Body != "not a pointer" || got[0].Attributes["MessageGroupId"] != "cus_1" || got[0].Attributes["MessageDeduplicationId"] != "evt_1#g3" {
			t.Fatalf("got %+v", got)
		}
		for name, want := range map[string]string{"reason": "because of this", "class": "pointer", "attempts": "8"} {
			if a := got[0].MessageAttributes[name]; a.StringValue == nil || *a.StringValue != want {
				t.Errorf("attribute %s is %v, want %q", name, a.StringValue, want)
			}
		}
	})
}

func TestDeadLetterWithoutClassOrWithAHugeBodyIsStillSent(t *testing.T) {
	inBubble(t, func(b *bundle) {
		if err := b.queue.SendDeadLetter(b.Context(), queue.DeadLetter{Body: strings.Repeat("x", 1<<20), Group: strings.Repeat("g", 200), DeduplicationID: "m1"}); err != nil {
			t.Fatal(err)
		}
		if got := b.receive(b.names.DeadLetterURL); len(got) != 1 || len(*got[0].Body) != 1<<20-4<<10 {
			t.Errorf("got %d messages", len(got))
		}
	})
}

func TestMessagesComeBackTogetherWhenTheirVisibilityEnds(t *testing.T) {
	inBubble(t, func(b *bundle) {
		for _, id := range []string{"evt_1", "evt_2"} {
			if err := b.queue.Send(b.Context(), queue.Send{Pointer: pointer(id, 0), Group: "cus_1"}); err != nil {
				t.Fatal(err)
			}
		}
		var changes []queue.Visibility
		for _, m := range b.receive(b.names.QueueURL) {
			changes = append(changes, queue.Visibility{Receipt: *m.ReceiptHandle, After: 1500 * time.Millisecond})
		}
		if err := b.queue.ChangeVisibility(b.Context(), changes); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Second - time.Millisecond) // rounded up to 2 s
		if got := len(b.receive(b.names.QueueURL)); got != 0 {
			t.Errorf("%d are back early", got)
		}
		time.Sleep(time.Millisecond)
		if got := len(b.receive(b.names.QueueURL)); got != 2 {
			t.Errorf("%d are back, want 2", got)
		}
	})
}

func TestReceiptThatIsNoneIsAnErrorAndTheOthersAreChanged(t *testing.T) {
	inBubble(t, func(b *bundle) {
		if err := b.queue.Send(b.Context(), queue.Send{Pointer: pointer("evt_1", 0), Group: "cus_1"}); err != nil {
			t.Fatal(err)
		}
		m := b.receive(b.names.QueueURL)[0]
		err := b.queue.ChangeVisibility(b.Context(), []queue.Visibility{{Receipt: "none"}, {Receipt: *m.ReceiptHandle}})
		if err == nil {
			t.Error("no error")
		}
		if got := len(b.receive(b.names.QueueURL)); got != 1 {
			t.Error("the good receipt was not changed")
		}
	})
}
