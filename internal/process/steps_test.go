package process_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"backstop/internal/handler"
	"backstop/internal/ledger"
)

func TestFailedHandlerIsRetriedAloneAndTheOthersAreNotRunTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		failures := 3
		bad := w.listen("invoice.paid", "bad", func(context.Context, handler.Event) ([]handler.Effect, error) {
			if failures--; failures >= 0 {
				return nil, errOrdinary
			}
			return nil, nil
		})
		counted := w.listen("invoice.paid", "counted", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		plain := w.listen("invoice.paid", "plain", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.drain(w.processor(), time.Hour)
		w.wantStatus("evt_1", ledger.Done, 3)
		if bad.of("evt_1") != 4 || counted.of("evt_1") != 1 || plain.of("evt_1") != 1 || w.tallied("evt_1") != 1 {
			t.Errorf("bad ran %d times, counted %d, plain %d, tally %d; want 4, 1, 1, 1",
				bad.of("evt_1"), counted.of("evt_1"), plain.of("evt_1"), w.tallied("evt_1"))
		}
	})
}

func TestHandlerOutOfBudgetParksTheEntryAfterTheOthersHadTheirTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		broken := true
		bad := w.listen("invoice.paid", "bad", func(context.Context, handler.Event) ([]handler.Effect, error) {
			if broken {
				return nil, errOrdinary
			}
			return nil, nil
		})
		crm := &down{err: err503}
		waiting := w.listen("invoice.paid", "waiting", func(ctx context.Context, _ handler.Event) ([]handler.Effect, error) {
			return nil, crm.call(ctx)
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.drain(p, 3*time.Hour)
		e := w.entry("evt_1")
		if e.Status != ledger.Recorded || e.Steps["bad"].Outcome != ledger.Parked || bad.of("evt_1") != 8 {
			t.Fatalf("it is %s, step bad %+v after %d runs; want it to wait for the other handler", e.Status, e.Steps["bad"], bad.of("evt_1"))
		}
		crm.err = nil
		w.drain(p, time.Hour)
		e = w.entry("evt_1")
		if e.Status != ledger.Parked || e.Steps["waiting"].Outcome != ledger.Done {
			t.Fatalf("it is %s, step waiting %+v", e.Status, e.Steps["waiting"])
		}
		if e.Class != ledger.ClassError || e.LastError != "an ordinary error" {
			t.Errorf("parked as %s: %s, want the reason of the step that is out of budget", e.Class, e.LastError)
		}

		broken = false
		runs := waiting.of("evt_1")
		if _, err := w.ledger.Replay(w.ctx, ledger.Replaying{Key: key("evt_1"), From: ledger.Parked, Token: "r", By: "me"}); err != nil {
			t.Fatal(err)
		}
		w.enqueue("evt_1", "invoice.paid", "cus_1")
		w.drain(p, time.Hour)
		w.wantStatus("evt_1", ledger.Done, 0)
		if waiting.of("evt_1") != runs || bad.of("evt_1") != 9 {
			t.Errorf("after the replay bad ran %d times and the done handler %d more", bad.of("evt_1"), waiting.of("evt_1")-runs)
		}
	})
}

func TestHandlerThatKillsItsProcessParksWithoutTheOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		counted := w.listen("invoice.paid", "counted", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		killer := w.listen("invoice.paid", "killer", func(context.Context, handler.Event) ([]handler.Effect, error) {
			time.Sleep(61 * time.Second) // deaf to its context: the process ends
			return nil, nil
		})
		plain := w.listen("invoice.paid", "plain", fine)
		skips := w.listen("invoice.paid", "skips", func(context.Context, handler.Event) ([]handler.Effect, error) {
			return nil, handler.Skip("not ours")
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.drain(w.processor(), time.Hour)
		time.Sleep(time.Minute) // for the last killer to come to its end
		e := w.entry("evt_1")
		if e.Status != ledger.Parked || e.Class != ledger.ClassLease || e.Steps["killer"].Outcome != ledger.Parked {
			t.Errorf("it is %s of class %s, its killer %+v; want it parked for its leases", e.Status, e.Class, e.Steps["killer"])
		}
		for name, want := range map[string]ledger.Status{"counted": ledger.Done, "plain": ledger.Done, "skips": ledger.Skipped} {
			if got := e.Steps[name].Outcome; got != want {
				t.Errorf("step %s is %q, want %s", name, got, want)
			}
		}
		if killer.of("evt_1") != 8 || counted.of("evt_1") != 1 || plain.of("evt_1") != 1 || skips.of("evt_1") != 1 || w.tallied("evt_1") != 1 {
			t.Errorf("killer ran %d times, counted %d, plain %d, skips %d, tally %d; want 8, 1, 1, 1, 1",
				killer.of("evt_1"), counted.of("evt_1"), plain.of("evt_1"), skips.of("evt_1"), w.tallied("evt_1"))
		}
	})
}

func TestHandlerThatTakesAllTheTimeLeavesTheOthersTheirTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		slow := w.listen("invoice.paid", "slow", func(ctx context.Context, _ handler.Event) ([]handler.Effect, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		other := w.listen("invoice.paid", "other", func(ctx context.Context, e handler.Event) ([]handler.Effect, error) {
			if ctx.Err() != nil {
				return nil, errOrdinary // which would be charged
			}
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.drain(w.processor(), 10*time.Minute)
		w.wantStatus("evt_1", ledger.Recorded, 0)
		e := w.entry("evt_1")
		if e.Steps["other"].Outcome != ledger.Done || other.of("evt_1") != 1 || w.tallied("evt_1") != 1 {
			t.Errorf("the other is %q after %d runs, want done after 1", e.Steps["other"].Outcome, other.of("evt_1"))
		}
		if slow.of("evt_1") < 3 || e.WaitsOn != "handler slow" {
			t.Errorf("the slow one ran %d times and the entry waits on %q", slow.of("evt_1"), e.WaitsOn)
		}
	})
}

func TestHandlerForWhichNoTimeIsLeftRunsInTheNextAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		slow := w.listen("invoice.paid", "slow", func(ctx context.Context, _ handler.Event) ([]handler.Effect, error) {
			<-ctx.Done() // and is done all the same
			return nil, nil
		})
		other := w.listen("invoice.paid", "other", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.handle(p, w.receive())
		w.wantStatus("evt_1", ledger.Recorded, 0)
		if e := w.entry("evt_1"); other.of("evt_1") != 0 || e.Class != ledger.ClassRetry || e.LastError != "no time was left for all handlers" {
			t.Errorf("the other ran %d times; class %q, error %q", other.of("evt_1"), e.Class, e.LastError)
		}
		w.drain(p, time.Hour)
		w.wantStatus("evt_1", ledger.Done, 0)
		if slow.of("evt_1") != 1 || other.of("evt_1") != 1 {
			t.Errorf("slow ran %d times, the other %d; want 1 each", slow.of("evt_1"), other.of("evt_1"))
		}
	})
}

func TestReplayOfOneHandlerRunsThatOneOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.listen("invoice.paid", "a", fine)
		b := w.listen("invoice.paid", "b", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.handle(p, w.receive())
		c := w.listen("invoice.paid", "c", fine) // deployed since
		if _, err := w.ledger.Replay(w.ctx, ledger.Replaying{Key: key("evt_1"), From: ledger.Done, Token: "r", By: "me", Handler: "b"}); err != nil {
			t.Fatal(err)
		}
		w.enqueue("evt_1", "invoice.paid", "cus_1")
		w.handle(p, w.receive())
		w.wantStatus("evt_1", ledger.Done, 0)
		if a.of("evt_1") != 1 || b.of("evt_1") != 2 || c.of("evt_1") != 0 {
			t.Errorf("a ran %d times, b %d, c %d; want 1, 2, 0", a.of("evt_1"), b.of("evt_1"), c.of("evt_1"))
		}
	})
}

func TestReplayOfOneHandlerOfAParkedEntryLeavesTheOthersParked(t *testing.T) {
	inWorld(t, func(w *world) {
		broken := true
		w.listen("invoice.paid", "a", func(context.Context, handler.Event) ([]handler.Effect, error) {
			if broken {
				return nil, handler.Permanent(errOrdinary)
			}
			return nil, nil
		})
		b := w.listen("invoice.paid", "b", func(context.Context, handler.Event) ([]handler.Effect, error) {
			return nil, handler.Permanent(errOrdinary)
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.handle(p, w.receive())
		broken = false
		if _, err := w.ledger.Replay(w.ctx, ledger.Replaying{Key: key("evt_1"), From: ledger.Parked, Token: "r", By: "me", Handler: "a"}); err != nil {
			t.Fatal(err)
		}
		w.enqueue("evt_1", "invoice.paid", "cus_1")
		w.handle(p, w.receive())
		e := w.entry("evt_1")
		if e.Status != ledger.Parked || e.Steps["a"].Outcome != ledger.Done || b.of("evt_1") != 1 {
			t.Errorf("it is %s, steps %+v, b ran %d times; want a done and the entry parked for b", e.Status, e.Steps, b.of("evt_1"))
		}
	})
}

func TestSkipReasonIsStored(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			return nil, handler.Skip("not one of our plans")
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.handle(w.processor(), w.receive())
		if e := w.entry("evt_1"); e.Status != ledger.Skipped || e.LastError != "not one of our plans" {
			t.Errorf("it is %s: %s", e.Status, e.LastError)
		}
	})
}

func TestIdempotencyKeysAreStableOverRetriesAndNewAfterAReplayOfADoneEvent(t *testing.T) {
	inWorld(t, func(w *world) {
		var keys []string
		fail := true
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			keys = append(keys, e.IdempotencyKey("charge"))
			if fail {
				fail = false
				return nil, errors.New("after the call")
			}
			return nil, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.drain(p, time.Hour)
		if _, err := w.ledger.Replay(w.ctx, ledger.Replaying{Key: key("evt_1"), From: ledger.Done, Token: "r", By: "me"}); err != nil {
			t.Fatal(err)
		}
		w.enqueue("evt_1", "invoice.paid", "cus_1")
		w.drain(p, time.Hour)
		if len(keys) != 3 || keys[0] != "stripe#-#evt_1/h/charge/0" || keys[1] != keys[0] || keys[2] != "stripe#-#evt_1/h/charge/1" {
			t.Errorf("keys %v", keys)
		}
	})
}

func TestIdempotencyKeysStayOverAReplayOfAParkedEvent(t *testing.T) {
	inWorld(t, func(w *world) {
		var keys []string
		fail := true
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			keys = append(keys, e.IdempotencyKey("charge"))
			if fail {
				return nil, handler.Permanent(errors.New("after the call"))
			}
			return nil, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.drain(p, time.Hour)
		fail = false
		if _, err := w.ledger.Replay(w.ctx, ledger.Replaying{Key: key("evt_1"), From: ledger.Parked, Token: "r", By: "me"}); err != nil {
			t.Fatal(err)
		}
		w.enqueue("evt_1", "invoice.paid", "cus_1")
		w.drain(p, time.Hour)
		w.wantStatus("evt_1", ledger.Done, 0)
		if len(keys) != 2 || keys[0] != "stripe#-#evt_1/h/charge/0" || keys[1] != keys[0] {
			t.Errorf("keys %v", keys)
		}
	})
}
