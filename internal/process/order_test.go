package process_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"backstop/internal/awslocal"
	"backstop/internal/handler"
	"backstop/internal/ledger"
)

var errOrdinary = errors.New("an ordinary error")

func TestFailureHandsBackTheRestOfItsGroupOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		broken := true
		seen := w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			if e.ID == "evt_2" && broken {
				return nil, errOrdinary
			}
			return nil, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.accept("evt_2", "invoice.paid", "cus_1")
		w.accept("evt_3", "invoice.paid", "cus_1")
		w.accept("evt_4", "invoice.paid", "cus_2")
		p := w.processor()
		batch := w.receive()
		failed := w.handle(p, batch)
		if diff := cmp.Diff([]string{"evt_2", "evt_3"}, ids(batch, failed)); diff != "" {
			t.Errorf("handed back (-want +got):\n%s", diff)
		}
		if seen.of("evt_3") != 0 {
			t.Error("evt_3 ran although evt_2 before it failed")
		}
		w.wantStatus("evt_1", ledger.Done, 0)
		w.wantStatus("evt_2", ledger.Recorded, 1)
		w.wantStatus("evt_3", ledger.Recorded, 0)
		w.wantStatus("evt_4", ledger.Done, 0)
		if n := w.count("ChangeMessageVisibilityBatch"); n != 2 {
			t.Errorf("visibility was changed by %d calls, want one for the batch, and head and follower in another", n)
		}

		broken = false
		time.Sleep(time.Second) // half of 2 s
		again := w.receive()
		if got := len(again); got != 2 {
			t.Fatalf("%d messages are back after the head's backoff, want head and follower", got)
		}
		w.handle(p, again)
		w.wantStatus("evt_3", ledger.Done, 0)
		if !slices.IsSorted(slices.DeleteFunc(seen.list, func(id string) bool { return id == "evt_4" })) {
			t.Errorf("the group ran in the order %v", seen.list)
		}
	})
}

func TestPoisonParksAfterItsBudgetAndItsCustomerGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			if e.ID == "evt_1" {
				panic("ada@example.test")
			}
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		for i, customer := range []string{"cus_1", "cus_1", "cus_1", "cus_2"} {
			w.accept("evt_"+string(rune('1'+i)), "invoice.paid", customer)
		}
		began := time.Now()
		p := w.processor()
		w.handle(p, w.receive())
		w.wantStatus("evt_4", ledger.Done, 0)
		w.drain(p, time.Hour)
		w.wantStatus("evt_1", ledger.Parked, 8)
		w.wantStatus("evt_2", ledger.Done, 0)
		w.wantStatus("evt_3", ledger.Done, 0)
		if took := time.Since(began); took > 3*time.Minute {
			t.Errorf("its customer waited %v", took)
		}
		if got := seen.of("evt_1"); got != 8 {
			t.Errorf("the poison ran %d times, want 8", got)
		}
		for _, id := range []string{"evt_2", "evt_3", "evt_4"} {
			if got := w.tallied(id); got != 1 {
				t.Errorf("%s took effect %d times", id, got)
			}
		}
		dead := w.dead()
		if len(dead) != 1 || dead[0].Attributes["MessageGroupId"] != "cus_1" || dead[0].Attributes["MessageDeduplicationId"] != "evt_1#g8" {
			t.Fatalf("the dead-letter queue holds %+v", dead)
		}
		for name, want := range map[string]string{"class": "panic", "attempts": "8", "reason": "panic: a value of type string"} {
			if got := *dead[0].MessageAttributes[name].StringValue; got != want {
				t.Errorf("attribute %s is %q, want %q", name, got, want)
			}
		}
		if log := w.log.text(); strings.Contains(log, "ada@") || !strings.Contains(log, "order_test.go") {
			t.Error("the log must hold the panic's stack and not its value")
		}
	})
}

func TestGroupsRunInParallel(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			time.Sleep(5 * time.Second)
			return nil, nil
		})
		for _, n := range []string{"1", "2", "3", "4"} {
			w.accept("evt_"+n, "invoice.paid", "cus_"+n)
		}
		began := time.Now()
		w.handle(w.processor(), w.receive())
		if took := time.Since(began); took >= 10*time.Second {
			t.Errorf("four groups of 5 s took %v", took)
		}
		w.wantStatus("evt_4", ledger.Done, 0)
	})
}

func TestNothingIsStartedNearTheDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			time.Sleep(18 * time.Second)
			return nil, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.accept("evt_2", "invoice.paid", "cus_1")
		batch := w.receive()
		failed := w.handle(w.processor(), batch)
		if diff := cmp.Diff([]string{"evt_2"}, ids(batch, failed)); diff != "" || seen.of("evt_2") != 0 {
			t.Errorf("handed back (-want +got):\n%s", diff)
		}
		w.wantStatus("evt_1", ledger.Done, 0)
		w.wantStatus("evt_2", ledger.Recorded, 0)
		time.Sleep(time.Second)
		if got := len(w.receive()); got != 1 {
			t.Errorf("%d messages are back for another instance after a second, want 1", got)
		}
	})
}

func TestMessagesOfAKilledProcessComeBackWithItsLease(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		held := false
		w.fault = func(c *awslocal.Call) awslocal.Fault {
			if !held {
				held = c.Action == "ChangeMessageVisibilityBatch"
				return awslocal.Fault{}
			}
			return awslocal.Fault{Kind: awslocal.Reset} // nothing a dead process does arrives
		}
		began := time.Now()
		w.handle(w.processor(), w.receive())
		if !held {
			t.Fatal("the batch was not held")
		}
		time.Sleep(35*time.Second - time.Since(began))
		if got := len(w.receive()); got != 0 {
			t.Errorf("%d messages are back while a lease could be live", got)
		}
		time.Sleep(2 * time.Second)
		if got := len(w.receive()); got != 1 {
			t.Errorf("%d messages are back when the lease has passed, want 1", got)
		}
	})
}

func TestSuspectRunsAfterAllOthersAndAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		var together gauge
		seen := w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			defer together.enter()()
			time.Sleep(time.Second)
			return nil, nil
		})
		for _, n := range []string{"1", "2", "3", "4"} {
			w.accept("evt_"+n, "invoice.paid", "cus_"+n)
		}
		w.abandon("evt_1")
		w.abandon("evt_3")
		time.Sleep(2 * time.Minute)
		p := w.processor()
		batch := w.receive()
		w.handle(p, batch)
		if len(seen.list) != 4 || seen.list[2] == "evt_2" || seen.list[2] == "evt_4" || seen.list[3] == "evt_2" || seen.list[3] == "evt_4" {
			t.Errorf("ran in the order %v, want the suspects evt_1 and evt_3 last", seen.list)
		}
		if got := together.highest(); got != 2 {
			t.Errorf("%d ran at once, want the two others together and each suspect alone", got)
		}
		w.wantStatus("evt_1", ledger.Done, 1)
		w.wantStatus("evt_2", ledger.Done, 0)
		w.wantStatus("evt_3", ledger.Done, 1)
	})
}

func TestSuspectsRunInRandomOrder(t *testing.T) {
	for name, c := range map[string]struct {
		random float64
		want   []string
	}{"Low": {0, []string{"evt_1", "evt_2", "evt_3"}}, "High": {0.99, []string{"evt_3", "evt_2", "evt_1"}}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.config.Random = func() float64 { return c.random }
				seen := w.listen("invoice.paid", "h", fine)
				for _, n := range []string{"1", "2", "3"} {
					w.accept("evt_"+n, "invoice.paid", "cus_"+n)
					w.abandon("evt_" + n)
				}
				time.Sleep(2 * time.Minute)
				w.handle(w.processor(), w.receive())
				if diff := cmp.Diff(c.want, seen.list); diff != "" {
					t.Errorf("order (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestCompanionsOfAKillerAreNotCharged(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config.Random = func() float64 { return 0 } // the killer first
		var kill atomic.Bool
		kill.Store(true)
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			if e.ID == "evt_1" && kill.Load() {
				time.Sleep(2 * time.Minute) // until the process is ended
			}
			return nil, nil
		})
		for _, n := range []string{"1", "2", "3"} {
			w.accept("evt_"+n, "invoice.paid", "cus_"+n)
			w.abandon("evt_" + n) // all were under way when the killer killed
		}
		time.Sleep(2 * time.Minute)
		p := w.processor()
		w.handle(p, w.receive())
		if w.exits != 1 {
			t.Fatalf("exited %d times, want 1", w.exits)
		}
		w.wantStatus("evt_1", ledger.Processing, 1)
		w.wantStatus("evt_2", ledger.Processing, 0) // unclaimed since
		w.wantStatus("evt_3", ledger.Processing, 0)
		kill.Store(false)
		time.Sleep(2 * time.Minute) // the bubble must not end before the killer
		w.drain(p, time.Hour)
		w.wantStatus("evt_1", ledger.Done, 2)
		w.wantStatus("evt_2", ledger.Done, 1)
		w.wantStatus("evt_3", ledger.Done, 1)
	})
}

// abandon claims an event as a process that then dies does.
func (w *world) abandon(id string) {
	w.Helper()
	ask := ledger.Claiming{Key: key(id), Token: "dead-" + time.Now().String(), Until: time.Now().Add(time.Minute)}
	claim, err := w.ledger.Claim(w.ctx, ask)
	var suspect *ledger.SuspectError
	if errors.As(err, &suspect) {
		ask.Suspect = &suspect.Entry
		claim, err = w.ledger.Claim(w.ctx, ask)
	}
	if err != nil {
		w.Fatalf("claim %s: %v", id, err)
	}
	if claim.Entry.Status != ledger.Processing {
		w.Fatalf("the claim of %s left it %s", id, claim.Entry.Status)
	}
}

func TestEventThatKillsItsProcessParksWithoutRunningAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.accept("evt_2", "invoice.paid", "cus_2")
		for range 8 {
			w.abandon("evt_1")
			time.Sleep(2 * time.Minute)
		}
		w.drain(w.processor(), time.Hour)
		e := w.entry("evt_1")
		if e.Status != ledger.Parked || e.Class != ledger.ClassLease || seen.of("evt_1") != 0 {
			t.Errorf("evt_1 is %s of class %s after %d more runs, want parked for its leases, unrun", e.Status, e.Class, seen.of("evt_1"))
		}
		w.wantStatus("evt_2", ledger.Done, 0)
	})
}

func TestHungHandlerEndsTheProcessAndWritesNothingMore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(_ context.Context, e handler.Event) ([]handler.Effect, error) {
			if e.ID == "evt_1" {
				time.Sleep(61 * time.Second) // past the deadline, deaf to its context
			}
			return []handler.Effect{w.tally(e.ID)}, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.accept("evt_2", "invoice.paid", "cus_2")
		batch := w.receive()
		w.handle(w.processor(), batch)
		if w.exits != 1 {
			t.Fatalf("exited %d times, want 1", w.exits)
		}
		time.Sleep(time.Second)
		if got := len(w.receive()); got != 1 {
			t.Errorf("%d messages are back at once, want the settled one's, whose group would be blocked else", got)
		}
		time.Sleep(time.Minute)
		if e := w.entry("evt_1"); e.Status != ledger.Processing || w.tallied("evt_1") != 0 {
			t.Errorf("the thawed handler left %s and %d effects", e.Status, w.tallied("evt_1"))
		}
		w.wantStatus("evt_2", ledger.Done, 0)
	})
}

func TestHandlersContextEndsBeforeTheLease(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(ctx context.Context, _ handler.Event) ([]handler.Effect, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		began := time.Now()
		w.handle(w.processor(), w.receive())
		if took := time.Since(began); took != 24*time.Second {
			t.Errorf("the handler's context ended after %v, want 24s", took)
		}
		if w.exits != 0 {
			t.Error("the process ended although the handler returned")
		}
		w.wantStatus("evt_1", ledger.Recorded, 0)
	})
}

func TestSmallerBudgetParksEarlier(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config.Budget = 3
		seen := w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			return nil, errors.New("no")
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.drain(w.processor(), time.Hour)
		w.wantStatus("evt_1", ledger.Parked, 3)
		if got := seen.of("evt_1"); got != 3 {
			t.Errorf("it ran %d times, want 3", got)
		}
	})
}
