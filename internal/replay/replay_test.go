package replay_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/replay"
)

// codec is shared by all worlds. It makes its channels at first use, which must be outside of a bubble.
var codec = sync.OnceValue(func() *ledger.Codec {
	c := ledger.NewCodec()
	c.Warm()
	packed, name := c.Pack([]byte("{}"), 100)
	if _, err := c.Unpack(packed, name); err != nil {
		panic(err)
	}
	return c
})

// world is a ledger and a queue over the local AWS, on virtual time.
type world struct {
	*testing.T
	ctx      context.Context
	names    stack.Names
	sqs      *awssqs.Client
	ledger   *ledger.Store
	replayer *replay.Replayer
	fault    func(*awslocal.Call) awslocal.Fault
	tokens   int
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	shared := codec()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, ctx: t.Context()}
		server := awslocal.New(awslocal.Options{})
		direct := awslocal.Config(&awslocal.Transport{Server: server})
		var err error
		if w.names, err = stack.Create(w.ctx, direct, "test"); err != nil {
			t.Fatal(err)
		}
		w.sqs = awssqs.NewFromConfig(direct)
		w.ledger = ledger.New(dynamodb.NewFromConfig(direct), w.names.LedgerTable, time.Now, ledger.WithCodec(shared))
		faulty := awslocal.Config(&awslocal.Transport{Server: server, Intercept: func(c *awslocal.Call) awslocal.Fault {
			if w.fault == nil {
				return awslocal.Fault{}
			}
			return w.fault(c)
		}})
		w.replayer = &replay.Replayer{
			Ledger: ledger.New(dynamodb.NewFromConfig(faulty), w.names.LedgerTable, time.Now, ledger.WithCodec(shared)),
			Queue:  queue.New(awssqs.NewFromConfig(faulty), w.names.QueueURL, w.names.DeadLetterURL),
			Token:  w.token,
		}
		test(w)
	})
}

func (w *world) token() string {
	w.tokens++
	return fmt.Sprintf("token-%d", w.tokens)
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// settled records an event and settles it.
func (w *world) settled(id, group string, s ledger.Settlement) ledger.Entry {
	w.Helper()
	key := ledger.Key("stripe#-#" + id)
	_, err := w.ledger.Record(w.ctx, ledger.Recording{Key: key, Type: "invoice.paid", Group: group, Body: []byte("{}"), Token: w.token()})
	w.check(err)
	claim, err := w.ledger.Claim(w.ctx, ledger.Claiming{Key: key, Token: w.token(), Until: time.Now().Add(time.Minute)})
	w.check(err)
	w.check(w.ledger.Settle(w.ctx, claim, s))
	return w.get(key)
}

func (w *world) parked(id, group string) ledger.Entry {
	w.Helper()
	return w.settled(id, group, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassError, Error: "no"})
}

func (w *world) get(key ledger.Key) ledger.Entry {
	w.Helper()
	e, err := w.ledger.Get(w.ctx, key)
	w.check(err)
	return e
}

// enqueued takes all pointers off the queue.
func (w *world) enqueued() []string {
	w.Helper()
	var ids []string
	for {
		out, err := w.sqs.ReceiveMessage(w.ctx, &awssqs.ReceiveMessageInput{QueueUrl: &w.names.QueueURL, MaxNumberOfMessages: 10})
		w.check(err)
		if len(out.Messages) == 0 {
			return ids
		}
		for _, m := range out.Messages {
			p, err := queue.Decode(aws.ToString(m.Body))
			w.check(err)
			ids = append(ids, fmt.Sprintf("%s/%d", p.EventID(), p.Replay))
			_, err = w.sqs.DeleteMessage(w.ctx, &awssqs.DeleteMessageInput{QueueUrl: &w.names.QueueURL, ReceiptHandle: m.ReceiptHandle})
			w.check(err)
		}
	}
}

func (w *world) want(got []string, want ...string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("got %q, want %q", got, want)
	}
}

var order = replay.Order{By: "ada", Why: "the bug is fixed"}

func TestParkedRunsAgainAndKeepsWhoAndWhy(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.parked("evt_1", "cus_1")
		report, err := w.replayer.Replay(w.ctx, []ledger.Entry{seen}, order, nil)
		w.check(err)
		if len(report.Done) != 1 || len(report.Left) != 0 {
			t.Errorf("got %+v", report)
		}
		w.want(w.enqueued(), "evt_1/1")
		e := w.get(seen.Key)
		if e.Status != ledger.Recorded || e.Replay != 1 || e.Attempts != 0 || e.Replays[0].By != "ada" || e.Replays[0].Why != "the bug is fixed" {
			t.Errorf("got %+v", e)
		}
	})
}

func TestReplayWithinFiveMinutesIsNotSwallowed(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.parked("evt_1", "cus_1")
		for range 2 {
			_, err := w.replayer.Replay(w.ctx, []ledger.Entry{seen}, order, nil)
			w.check(err)
			claim, err := w.ledger.Claim(w.ctx, ledger.Claiming{Key: seen.Key, Token: w.token(), Until: time.Now().Add(time.Minute)})
			w.check(err)
			w.check(w.ledger.Settle(w.ctx, claim, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassError, Error: "no"}))
			seen = w.get(seen.Key)
			time.Sleep(30 * time.Second)
		}
		w.want(w.enqueued(), "evt_1/1", "evt_1/2")
	})
}

func TestSameListReplaysOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := []ledger.Entry{w.parked("evt_1", "cus_1")}
		for i, want := range []int{1, 0} {
			report, err := w.replayer.Replay(w.ctx, seen, order, nil)
			w.check(err)
			if len(report.Done) != want || len(report.Left) != 1-want {
				t.Errorf("run %d: got %+v", i, report)
			}
		}
		w.want(w.enqueued(), "evt_1/1")
	})
}

func TestLostReplyDoesNotReplayTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.parked("evt_1", "cus_1")
		lost := 0
		w.fault = func(c *awslocal.Call) awslocal.Fault {
			if first := strings.HasPrefix(c.Header.Get("Amz-Sdk-Request"), "attempt=1;"); first {
				lost++
				return awslocal.Fault{Kind: awslocal.ReplyLost}
			}
			return awslocal.Fault{}
		}
		report, err := w.replayer.Replay(w.ctx, []ledger.Entry{seen}, order, nil)
		w.check(err)
		if lost != 2 || len(report.Done) != 1 {
			t.Errorf("%d replies lost, %+v", lost, report)
		}
		w.want(w.enqueued(), "evt_1/1")
		if e := w.get(seen.Key); e.Replay != 1 {
			t.Errorf("replay %d, want 1", e.Replay)
		}
	})
}

func TestOldestOfAGroupComesFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		var entries []ledger.Entry
		for i := range 6 {
			entries = append(entries, w.parked(fmt.Sprintf("evt_%d", i), "cus_1"))
			time.Sleep(time.Second)
		}
		// Replayed and parked again: its age is still that of its first recording.
		_, err := w.replayer.Replay(w.ctx, entries[:1], order, nil)
		w.check(err)
		claim, err := w.ledger.Claim(w.ctx, ledger.Claiming{Key: entries[0].Key, Token: w.token(), Until: time.Now().Add(time.Minute)})
		w.check(err)
		w.check(w.ledger.Settle(w.ctx, claim, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassError, Error: "no"}))
		w.enqueued()
		entries[0] = w.get(entries[0].Key)
		slices.Reverse(entries)
		todo, _ := replay.Plan(entries, order)
		_, err = w.replayer.Replay(w.ctx, todo, order, nil)
		w.check(err)
		w.want(w.enqueued(), "evt_0/2", "evt_1/1", "evt_2/1", "evt_3/1", "evt_4/1", "evt_5/1")
	})
}

func TestDoneNeedsAgainAndOpenIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		done := w.settled("evt_done", "cus_1", ledger.Settlement{Status: ledger.Done})
		open := ledger.Entry{Key: "stripe#-#evt_open", Status: ledger.Recorded}
		todo, left := replay.Plan([]ledger.Entry{done, open}, order)
		if len(todo) != 0 || len(left) != 2 || !strings.Contains(left[0].Why, "--again") || !strings.Contains(left[1].Why, "by itself") {
			t.Errorf("got %v, %v", todo, left)
		}
		again := order
		again.Again = true
		todo, left = replay.Plan([]ledger.Entry{done, open}, again)
		if len(todo) != 1 || len(left) != 1 {
			t.Fatalf("got %v, %v", todo, left)
		}
		_, err := w.replayer.Replay(w.ctx, todo, again, nil)
		w.check(err)
		w.want(w.enqueued(), "evt_done/1")
	})
}

func TestOneHandlerIsKeptInTheEntry(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.parked("evt_1", "cus_1")
		one := order
		one.Handler = "mail"
		_, err := w.replayer.Replay(w.ctx, []ledger.Entry{seen}, one, nil)
		w.check(err)
		if e := w.get(seen.Key); e.Replays[0].Handler != "mail" {
			t.Errorf("got %+v", e.Replays)
		}
	})
}

func TestRateIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		var entries []ledger.Entry
		for i := range 11 {
			entries = append(entries, w.parked(fmt.Sprintf("evt_%02d", i), fmt.Sprintf("cus_%d", i)))
		}
		w.replayer.Rate = 5
		start, heard := time.Now(), 0
		_, err := w.replayer.Replay(w.ctx, entries, order, func() { heard++ })
		w.check(err)
		if took := time.Since(start); took != 2*time.Second || heard != 11 {
			t.Errorf("11 at 5 a second took %s, want 2s; %d heard", took, heard)
		}
	})
}

func TestGroupStopsWhereOneCannotBeEnqueued(t *testing.T) {
	inWorld(t, func(w *world) {
		var entries []ledger.Entry
		for i := range 3 {
			entries = append(entries, w.parked(fmt.Sprintf("evt_a%d", i), "cus_a"))
			time.Sleep(time.Second)
		}
		entries = append(entries, w.parked("evt_b", "cus_b"))
		w.fault = func(c *awslocal.Call) awslocal.Fault {
			if c.Action == "SendMessage" && strings.Contains(string(c.Body), "evt_a1") {
				return awslocal.Fault{Kind: awslocal.Refuse, Status: http.StatusForbidden, Code: "AccessDeniedException"}
			}
			return awslocal.Fault{}
		}
		report, err := w.replayer.Replay(w.ctx, entries, order, nil)
		w.check(err)
		if len(report.Done) != 3 || len(report.Left) != 2 {
			t.Errorf("got %+v", report)
		}
		w.want(w.enqueued(), "evt_a0/1", "evt_b/1")
		if e := w.get("stripe#-#evt_a2"); e.Status != ledger.Parked {
			t.Errorf("the one behind it is %s, want parked", e.Status)
		}
	})
}

func TestDiscardedIsSkippedWithTheReason(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.parked("evt_1", "cus_1")
		done := w.settled("evt_2", "cus_1", ledger.Settlement{Status: ledger.Done})
		report, err := w.replayer.Discard(w.ctx, []ledger.Entry{seen, done}, order)
		w.check(err)
		if len(report.Done) != 1 || len(report.Left) != 1 {
			t.Errorf("got %+v", report)
		}
		if e := w.get(seen.Key); e.Status != ledger.Skipped || e.LastError != "discarded by ada: the bug is fixed" {
			t.Errorf("got %+v", e)
		}
		report, err = w.replayer.Discard(w.ctx, []ledger.Entry{{Key: "stripe#-#evt_none", Status: ledger.Parked}}, order)
		if err != nil || len(report.Left) != 1 {
			t.Errorf("got %+v, %v", report, err)
		}
	})
}

type away struct{ replay.Ledger }

var errAway = errors.New("the ledger is away")

func (away) Replay(context.Context, ledger.Replaying) (ledger.Entry, error) {
	return ledger.Entry{}, errAway
}

func TestTroubleOfTheLedgerEndsTheRun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.replayer.Ledger = away{}
		if _, err := w.replayer.Replay(w.ctx, []ledger.Entry{{Status: ledger.Parked}}, order, nil); !errors.Is(err, errAway) {
			t.Errorf("got %v", err)
		}
	})
}
