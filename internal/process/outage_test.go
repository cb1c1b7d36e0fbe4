package process_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/awslocal"
	"backstop/internal/handler"
	"backstop/internal/ledger"
)

// down is a dependency that fails as its error says; nil works.
type down struct {
	mu    sync.Mutex
	err   error
	calls int
}

func (d *down) call(ctx context.Context) error {
	return handler.Call(ctx, "crm", func(context.Context) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.calls++
		return d.err
	})
}

var err503 = &handler.StatusError{Status: 503}

func TestOutageIsNotChargedAndAllIsDoneAfterwards(t *testing.T) {
	inWorld(t, func(w *world) {
		crm := &down{err: err503}
		w.listen("invoice.paid", "h", func(ctx context.Context, e handler.Event) ([]handler.Effect, error) {
			return []handler.Effect{w.tally(e.ID)}, crm.call(ctx)
		}, handler.Needs("crm"))
		for i := range 8 {
			w.accept(fmt.Sprintf("evt_%d", i), "invoice.paid", fmt.Sprintf("cus_%d", i%4))
		}
		p := w.processor()
		w.drain(p, 10*time.Minute)
		for i := range 8 {
			w.wantStatus(fmt.Sprintf("evt_%d", i), ledger.Recorded, 0)
		}
		if e := w.entry("evt_0"); e.WaitsOn != "crm" || e.FirstWaitMS == 0 || e.Class != ledger.ClassOutage {
			t.Errorf("evt_0 waits on %q since %d, class %s", e.WaitsOn, e.FirstWaitMS, e.Class)
		}
		if !strings.Contains(w.log.text(), `"WaitingOutage":1`) {
			t.Error("waiting is not counted")
		}
		if crm.calls > 50 {
			t.Errorf("a dependency that is down was called %d times in 10 minutes", crm.calls)
		}
		crm.err = nil
		w.drain(p, time.Hour)
		for i := range 8 {
			id := fmt.Sprintf("evt_%d", i)
			w.wantStatus(id, ledger.Done, 0)
			if got := w.tallied(id); got != 1 {
				t.Errorf("%s took effect %d times", id, got)
			}
		}
	})
}

func TestOutageOfADayParks(t *testing.T) {
	inWorld(t, func(w *world) {
		crm := &down{err: err503}
		w.listen("invoice.paid", "h", func(ctx context.Context, _ handler.Event) ([]handler.Effect, error) { return nil, crm.call(ctx) })
		w.accept("evt_1", "invoice.paid", "cus_1")
		began := time.Now()
		w.drain(w.processor(), 23*time.Hour+50*time.Minute)
		w.wantStatus("evt_1", ledger.Recorded, 0)
		w.drain(w.processor(), 20*time.Minute)
		if e := w.entry("evt_1"); e.Status != ledger.Parked || e.Class != ledger.ClassOutage || e.Attempts != 0 {
			t.Errorf("after %v it is %s, class %s, %d charged; want parked for the outage, uncharged", time.Since(began), e.Status, e.Class, e.Attempts)
		}
	})
}

func TestOutageForOneEventWhileItWorksForOthersIsCharged(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(ctx context.Context, e handler.Event) ([]handler.Effect, error) {
			crm := &down{}
			if e.ID == "evt_poison" {
				crm.err = err503
			}
			return nil, crm.call(ctx)
		})
		p := w.processor()
		w.accept("evt_poison", "invoice.paid", "cus_poison")
		for i := range 400 {
			w.accept(fmt.Sprintf("evt_%d", i), "invoice.paid", "cus_1")
			w.handle(p, w.receive())
			time.Sleep(3 * time.Second)
		}
		if e := w.entry("evt_poison"); e.Status != ledger.Parked || e.Attempts != 8 {
			t.Errorf("it is %s after %d charged attempts, want parked after 8", e.Status, e.Attempts)
		}
	})
}

func TestThrottlingIsNeverChargedAlthoughItWorksForOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(ctx context.Context, e handler.Event) ([]handler.Effect, error) {
			crm := &down{}
			if e.ID == "evt_slow" {
				crm.err = &handler.StatusError{Status: 429}
			}
			return nil, crm.call(ctx)
		})
		p := w.processor()
		w.accept("evt_slow", "invoice.paid", "cus_slow")
		for i := range 300 {
			w.accept(fmt.Sprintf("evt_%d", i), "invoice.paid", "cus_1")
			w.handle(p, w.receive())
			time.Sleep(time.Second)
		}
		w.wantStatus("evt_slow", ledger.Recorded, 0)
	})
}

func TestOpenBreakerHandsBackUnclaimedAndProbesOneAtATime(t *testing.T) {
	inWorld(t, func(w *world) {
		crm := &down{err: err503}
		var together gauge
		w.listen("invoice.paid", "h", func(ctx context.Context, _ handler.Event) ([]handler.Effect, error) {
			defer together.enter()()
			time.Sleep(time.Second)
			return nil, crm.call(ctx)
		}, handler.Needs("crm"))
		p := w.processor()
		for i := range 10 {
			w.accept(fmt.Sprintf("evt_%d", i), "invoice.paid", fmt.Sprintf("cus_%d", i))
		}
		w.handle(p, w.receive()) // ten calls fail: open
		if crm.calls != 10 {
			t.Fatalf("%d calls, want 10", crm.calls)
		}
		time.Sleep(5 * time.Second)
		w.handle(p, w.receive())
		if e := w.entry("evt_0"); e.Generation != 1 || crm.calls != 10 {
			t.Errorf("generation %d and %d calls while open, want it unclaimed", e.Generation, crm.calls)
		}
		time.Sleep(31 * time.Second)
		together = gauge{}
		w.handle(p, w.receive())
		if got := together.highest(); got != 1 || crm.calls != 11 {
			t.Errorf("%d at once and %d calls when half open, want one probe", got, crm.calls)
		}
		crm.err = nil
		w.drain(p, time.Hour)
		for i := range 10 {
			w.wantStatus(fmt.Sprintf("evt_%d", i), ledger.Done, 0)
		}
	})
}

func TestEventsThatDoNotNeedTheDependencyGoOnWhileItsBreakerIsOpen(t *testing.T) {
	inWorld(t, func(w *world) {
		crm := &down{err: err503}
		w.listen("invoice.paid", "h", func(ctx context.Context, _ handler.Event) ([]handler.Effect, error) { return nil, crm.call(ctx) }, handler.Needs("crm"))
		w.listen("customer.updated", "h", fine)
		p := w.processor()
		for i := range 10 {
			w.accept(fmt.Sprintf("evt_%d", i), "invoice.paid", fmt.Sprintf("cus_%d", i))
		}
		w.handle(p, w.receive())
		w.accept("evt_other", "customer.updated", "cus_other")
		w.handle(p, w.receive())
		w.wantStatus("evt_other", ledger.Done, 0)
	})
}

func TestWaitThatIsCountedGoesOnThoughAnotherHandlerWaitsToo(t *testing.T) {
	inWorld(t, func(w *world) {
		first := true
		w.listen("invoice.paid", "a", func(context.Context, handler.Event) ([]handler.Effect, error) {
			if first {
				first = false
				return nil, errOrdinary
			}
			return nil, handler.Retry(errors.New("not yet"))
		})
		crm := &down{err: err503}
		w.listen("invoice.paid", "b", func(ctx context.Context, _ handler.Event) ([]handler.Effect, error) { return nil, crm.call(ctx) })
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.handle(p, w.receive())
		since := w.entry("evt_1").FirstWaitMS
		w.drain(p, 10*time.Minute)
		if e := w.entry("evt_1"); e.WaitsOn != "crm" || e.FirstWaitMS != since || since == 0 || e.Generation < 3 {
			t.Errorf("after %d attempts it waits on %q since %d, want crm since %d", e.Generation, e.WaitsOn, e.FirstWaitMS, since)
		}
	})
}

func TestRetryAfterIsWaitedForWithFollowersAndUncharged(t *testing.T) {
	inWorld(t, func(w *world) {
		asked := 0
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			if asked++; asked == 1 {
				return nil, handler.RetryAfter(7*time.Minute, errors.New("not yet"))
			}
			return nil, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.accept("evt_2", "invoice.paid", "cus_1")
		p := w.processor()
		w.handle(p, w.receive())
		w.wantStatus("evt_1", ledger.Recorded, 0)
		time.Sleep(7*time.Minute - time.Second)
		if got := len(w.receive()); got != 0 {
			t.Errorf("%d messages are back a second early", got)
		}
		time.Sleep(time.Second)
		w.handle(p, w.receive())
		w.wantStatus("evt_1", ledger.Done, 0)
		w.wantStatus("evt_2", ledger.Done, 0)
	})
}

func TestLostReplyOfAClaimCostsNoAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.on("UpdateItem", 1, awslocal.Fault{Kind: awslocal.ReplyLost})
		w.handle(w.processor(), w.receive())
		w.wantStatus("evt_1", ledger.Done, 0) // the SDK's retry met its own claim
	})
}

func TestClaimThatEndsInAnErrorIsGivenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.on("UpdateItem", 4, awslocal.Fault{Kind: awslocal.ReplyLost}) // all of the SDK's tries
		p := w.processor()
		if failed := w.handle(p, w.receive()); len(failed) != 1 {
			t.Error("the message went although its claim failed")
		}
		w.wantStatus("evt_1", ledger.Recorded, 0) // not processing until its lease ends
		w.drain(p, time.Minute)
		w.wantStatus("evt_1", ledger.Done, 0)
	})
}

func TestDynamoDBOutageChargesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.on("TransactWriteItems", 40, awslocal.Fault{Kind: awslocal.Unavailable})
		w.drain(p, time.Hour)
		w.wantStatus("evt_1", ledger.Done, 0)
		if got := w.tallied("evt_1"); got != 1 {
			t.Errorf("took effect %d times", got)
		}
	})
}

func TestHeldEntryIsHandedBackUntilTheLeasesEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.abandon("evt_1") // for a minute
		p := w.processor()
		if failed := w.handle(p, w.receive()); len(failed) != 1 || seen.of("evt_1") != 0 {
			t.Error("an entry under another's lease was touched")
		}
		time.Sleep(60 * time.Second)
		if got := len(w.receive()); got != 0 {
			t.Error("it is back before the lease's end")
		}
		time.Sleep(time.Second)
		if got := len(w.receive()); got != 1 {
			t.Error("it is not back after the lease's end")
		}
	})
}
