package receive_test

import (
	"context"
	"testing"
	"time"

	"backstop/internal/awslocal"
	"backstop/internal/ledger"
	"backstop/internal/receive"
	"backstop/internal/signature"
)

// Faults at the wire, where they really happen: before a call is applied, and after it, with the reply lost. Whatever
// the fault, an acknowledged delivery has a durable entry and a message; and Stripe coming again heals the others.
func TestNoFaultAtTheWireAcknowledgesWhatIsNotDurable(t *testing.T) {
	t.Parallel()
	const always = 1000
	for name, test := range map[string]struct {
		action string
		times  int
		fault  awslocal.Fault
		status int
		body   string
		reason any
	}{
		"RecordUnavailableOnce":   {"PutItem", 1, awslocal.Fault{Kind: awslocal.Unavailable}, 200, received, nil},
		"RecordThrottledOnce":     {"PutItem", 1, awslocal.Fault{Kind: awslocal.Throttle}, 200, received, nil},
		"RecordResetOnce":         {"PutItem", 1, awslocal.Fault{Kind: awslocal.Reset}, 200, received, nil},
		"RecordReplyLostOnce":     {"PutItem", 1, awslocal.Fault{Kind: awslocal.ReplyLost}, 200, received, nil},
		"RecordReplyLostThrice":   {"PutItem", 3, awslocal.Fault{Kind: awslocal.ReplyLost}, 200, received, nil},
		"RecordReplyNeverComes":   {"PutItem", 1, awslocal.Fault{ReplyDelay: time.Hour}, 200, received, nil},
		"RecordHangsOnce":         {"PutItem", 1, awslocal.Fault{Delay: time.Hour}, 200, received, nil},
		"RecordUnavailable":       {"PutItem", always, awslocal.Fault{Kind: awslocal.Unavailable}, 500, failed, "record_failed"},
		"RecordThrottled":         {"PutItem", always, awslocal.Fault{Kind: awslocal.Throttle}, 500, failed, "record_failed"},
		"RecordReset":             {"PutItem", always, awslocal.Fault{Kind: awslocal.Reset}, 500, failed, "record_failed"},
		"RecordReplyLost":         {"PutItem", always, awslocal.Fault{Kind: awslocal.ReplyLost}, 500, failed, "record_failed"},
		"RecordDenied":            {"PutItem", always, awslocal.Fault{Kind: awslocal.Refuse, Code: "AccessDeniedException"}, 500, failed, "record_failed"},
		"RecordHangs":             {"PutItem", always, awslocal.Fault{Delay: time.Hour}, 500, failed, "out_of_time"},
		"RecordRepliesNeverCome":  {"PutItem", always, awslocal.Fault{ReplyDelay: time.Hour}, 500, failed, "out_of_time"},
		"EnqueueUnavailableOnce":  {"SendMessage", 1, awslocal.Fault{Kind: awslocal.Unavailable}, 200, received, nil},
		"EnqueueThrottledOnce":    {"SendMessage", 1, awslocal.Fault{Kind: awslocal.Throttle}, 200, received, nil},
		"EnqueueReplyLostOnce":    {"SendMessage", 1, awslocal.Fault{Kind: awslocal.ReplyLost}, 200, received, nil},
		"EnqueueHangsOnce":        {"SendMessage", 1, awslocal.Fault{Delay: time.Hour}, 200, received, nil},
		"EnqueueUnavailable":      {"SendMessage", always, awslocal.Fault{Kind: awslocal.Unavailable}, 500, failed, "enqueue_failed"},
		"EnqueueThrottled":        {"SendMessage", always, awslocal.Fault{Kind: awslocal.Throttle}, 500, failed, "enqueue_failed"},
		"EnqueueReset":            {"SendMessage", always, awslocal.Fault{Kind: awslocal.Reset}, 500, failed, "enqueue_failed"},
		"EnqueueReplyLost":        {"SendMessage", always, awslocal.Fault{Kind: awslocal.ReplyLost}, 500, failed, "enqueue_failed"},
		"EnqueueDenied":           {"SendMessage", always, awslocal.Fault{Kind: awslocal.Refuse, Code: "AccessDenied", Status: 403}, 500, failed, "enqueue_failed"},
		"EnqueueHangs":            {"SendMessage", always, awslocal.Fault{Delay: time.Hour}, 500, failed, "out_of_time"},
		"EnqueueRepliesNeverCome": {"SendMessage", always, awslocal.Fault{ReplyDelay: time.Hour}, 500, failed, "out_of_time"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				b.inject(test.action, test.times, test.fault)
				start := time.Now()
				got := b.deliver(t, invoice)
				if took := time.Since(start); took > 8500*time.Millisecond {
					t.Errorf("answered after %v", took)
				}
				b.wantAnswer(t, got, test.status, test.body)
				b.wantLine(t, map[string]any{"reason": test.reason})
				if test.times != always && b.calls[test.action] != test.times+1 {
					t.Errorf("%d tries: the fault did not happen", b.calls[test.action])
				}
				if got.StatusCode == 200 {
					b.wantDurable(t)
					b.wantMessages(t, pointer)
					return
				}
				// Stripe comes again, after SQS has forgotten what it may have taken. What the first delivery recorded
				// makes the second a duplicate, which must enqueue all the same.
				b.drain(t)
				b.inject("", 0, awslocal.Fault{})
				time.Sleep(time.Hour)
				if again := b.deliver(t, invoice); again.StatusCode != 200 {
					t.Errorf("the second delivery: %d", again.StatusCode)
				}
				b.wantDurable(t)
				b.wantMessages(t, pointer)
			})
		})
	}
}

func (b *bundle) wantDurable(t *testing.T) {
	t.Helper()
	entry, err := b.ledger.Get(t.Context(), key)
	if err != nil || entry.Status != ledger.Recorded || string(entry.Body) != invoice {
		t.Errorf("entry %s, %v", entry.Status, err)
	}
}

// The replay of a parked entry is applied, its reply lost: the retry meets its own write and does not replay twice.
func TestResendOfAParkedEventReplaysItOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.deliver(t, invoice)
		b.drain(t)
		claim, err := b.ledger.Claim(t.Context(), ledger.Claiming{Key: key, Token: "m1#1", Until: time.Now().Add(time.Minute)})
		if err == nil {
			err = b.ledger.Settle(t.Context(), claim, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassError, Error: "x"})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.inject("UpdateItem", 1, awslocal.Fault{Kind: awslocal.ReplyLost})
		b.wantAnswer(t, b.deliver(t, invoice), 200, duplicate)
		entry, err := b.ledger.Get(t.Context(), key)
		if err != nil || entry.Replay != 1 || entry.Status != ledger.Recorded || len(entry.Replays) != 1 || entry.Replays[0].By != "stripe" {
			t.Errorf("entry %+v, %v", entry, err)
		}
		b.wantMessages(t, replayed)
	})
}

// moving is a ledger whose parked entry somebody else replays first.
type moving struct {
	receive.Ledger
	forever bool
	found   int
}

func (m *moving) Record(context.Context, ledger.Recording) (ledger.RecordResult, error) {
	if m.found++; m.found > 1 && !m.forever {
		return ledger.RecordResult{Entry: ledger.Entry{Key: key, Status: ledger.Recorded, Replay: 1, Type: "invoice.paid", CreatedS: 1790000000, Group: "cus_1"}}, nil
	}
	return ledger.RecordResult{Entry: ledger.Entry{Key: key, Status: ledger.Parked}}, nil
}

func (m *moving) Replay(context.Context, ledger.Replaying) (ledger.Entry, error) {
	return ledger.Entry{}, ledger.ErrConflict
}

func TestEntryThatMovedOnIsLookedAtAnew(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.config.Ledger = &moving{}
		b.Receiver = receive.New(b.config)
		b.wantAnswer(t, b.deliver(t, invoice), 200, duplicate)
		b.wantMessages(t, replayed)
		endless := &moving{forever: true}
		b.config.Ledger = endless
		b.Receiver = receive.New(b.config)
		b.wantAnswer(t, b.deliver(t, invoice), 500, failed)
		b.wantLine(t, map[string]any{"reason": "replay_failed"})
		if endless.found != 3 {
			t.Errorf("looked %d times", endless.found)
		}
	})
}

// A frozen function may thaw with little time left: the answer still comes, at once and with room.
func TestDeadlineAlreadyNearIsAFailureNotAnAcknowledgement(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		got := b.invoke(t, ctx, call("POST", "/webhooks/stripe", signature.Sign(signing, []byte(invoice), start), invoice))
		b.wantAnswer(t, got, 500, failed)
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v", took)
		}
		b.wantLine(t, map[string]any{"reason": "out_of_time"})
		b.wantNothing(t)
	})
}
