package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/control"
	"backstop/internal/ledger"
	"backstop/internal/queue"
)

func TestLostMessageIsSweptAtTwoMinutesAndNotBefore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recorded("evt_1", "cus_1")
		time.Sleep(2*time.Minute - time.Millisecond)
		w.sweep()
		w.want("before two minutes", w.take(w.names.QueueURL))
		time.Sleep(time.Millisecond)
		w.sweep()
		w.want("at two minutes", w.take(w.names.QueueURL), "evt_1")
	})
}

func TestAgesDoubleToAnHourAndStayThere(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recorded("evt_1", "cus_1")
		var minutes []int
		for minute := 1; minute <= 200; minute++ {
			time.Sleep(time.Minute)
			if w.sweep().Enqueued > 0 {
				minutes = append(minutes, minute)
			}
		}
		if want := []int{2, 4, 8, 16, 32, 60, 120, 180}; !slices.Equal(minutes, want) {
			t.Errorf("swept at minutes %v, want %v", minutes, want)
		}
		// Each under a number of its own: SQS drops none of the first two, which are two minutes apart.
		w.want("messages", w.take(w.names.QueueURL), slices.Repeat([]string{"evt_1"}, 8)...)
	})
}

func TestEntryOfAnEndedPauseIsNotSweptEveryMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recorded("evt_1", "cus_1")
		time.Sleep(3 * time.Hour)
		total := 0
		for range 10 {
			total += w.sweep().Enqueued
			time.Sleep(time.Minute)
		}
		if total > 4 {
			t.Errorf("swept %d times in ten minutes", total)
		}
		if total < 1 {
			t.Error("not swept at all")
		}
	})
}

func TestLeaseIsRespectedAndItsEndIsNoticed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.claim(w.recorded("evt_1", "cus_1").Key, 5*time.Minute)
		time.Sleep(5 * time.Minute)
		w.sweep()
		w.want("under a lease", w.take(w.names.QueueURL))
		time.Sleep(time.Millisecond)
		w.sweep()
		w.want("past it", w.take(w.names.QueueURL), "evt_1")
	})
}

func TestSettledIsNotSwept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.done(w.recorded("evt_done", "cus_1").Key)
		w.park(w.recorded("evt_parked", "cus_2").Key)
		w.recorded("evt_open", "cus_3")
		time.Sleep(time.Hour)
		w.sweep()
		w.want("swept", w.take(w.names.QueueURL), "evt_open")
	})
}

func TestNothingIsSweptWhilePaused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recorded("evt_1", "cus_1")
		time.Sleep(time.Hour)
		pause, err := w.control.Put(w.ctx, Paused, "an operator", control.Value{})
		w.check(err)
		if swept := w.sweep(); !swept.Paused {
			t.Error("the sweep does not see the pause")
		}
		w.want("paused", w.take(w.names.QueueURL))
		_, err = w.control.Put(w.ctx, Paused, "", pause)
		w.check(err)
		w.sweep()
		w.want("resumed", w.take(w.names.QueueURL), "evt_1")
	})
}

func TestOldestComeFirstOverAllPartitions(t *testing.T) {
	inWorld(t, func(w *world) {
		var ids []string
		for i := range 120 { // more than a page, over all four partitions
			id := fmt.Sprintf("evt_%03d", i)
			ids = append(ids, id)
			w.recorded(id, "cus_1")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Minute)
		for range 2 { // the budget is a hundred
			w.sweep()
			time.Sleep(time.Second)
		}
		w.want("order", w.take(w.names.QueueURL), ids...)
	})
}

func TestBudgetBoundsARunAndLeavesNothingOut(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 250 {
			w.recorded(fmt.Sprintf("evt_%03d", i), "cus_1")
		}
		time.Sleep(2 * time.Minute)
		var runs []int
		for range 4 {
			runs = append(runs, w.sweep().Enqueued)
		}
		if want := []int{100, 100, 50, 0}; !slices.Equal(runs, want) {
			t.Errorf("enqueued %v, want %v", runs, want)
		}
		ids := w.take(w.names.QueueURL)
		slices.Sort(ids)
		if distinct := len(slices.Compact(ids)); distinct != 250 {
			t.Errorf("%d distinct events were enqueued, want 250", distinct)
		}
	})
}

// deepQueue shows a long queue.
type deepQueue struct {
	Queue
	visible int
}

func (d deepQueue) Visible(context.Context) (int, error) { return d.visible, nil }

func TestBudgetIsOneInAHundredOfALongQueue(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 250 {
			w.recorded(fmt.Sprintf("evt_%03d", i), "cus_1")
		}
		time.Sleep(2 * time.Minute)
		w.sweeper.Queue = deepQueue{w.queue, 20_000}
		if got := w.sweep().Enqueued; got != 200 {
			t.Errorf("enqueued %d, want 200", got)
		}
	})
}

// slowLedger takes a second for each page.
type slowLedger struct{ Ledger }

func (s slowLedger) Open(ctx context.Context, partition string, after ledger.Cursor, limit int) ([]ledger.Open, ledger.Cursor, error) {
	time.Sleep(time.Second)
	return s.Ledger.Open(ctx, partition, after, limit)
}

func TestRunOutOfTimeGoesOnWhereItStopped(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 1500 {
			w.recorded(fmt.Sprintf("evt_%04d", i), fmt.Sprintf("cus_%d", i))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		w.sweeper.Ledger, w.sweeper.Queue = slowLedger{w.ledger}, deepQueue{w.queue, 1_000_000}
		runs, total := 0, 0
		for total < 1500 && runs < 20 {
			ctx, cancel := context.WithTimeout(w.ctx, 13*time.Second) // eight pages of the sixteen and more there are
			swept, err := w.sweeper.Run(ctx)
			cancel()
			w.check(err)
			runs++
			total += swept.Enqueued
			if runs == 1 && (swept.Complete || swept.Enqueued == 0) {
				t.Fatalf("the first run is to be cut short: %+v", swept)
			}
		}
		if total != 1500 || runs > 5 {
			t.Errorf("%d of 1500 in %d runs", total, runs)
		}
		saved, err := w.control.Get(w.ctx, sweepCursors)
		w.check(err)
		if saved.Text == "" {
			t.Error("no cursor was kept")
		}
	})
}

// racing claims each entry right after the sweep has read it.
type racing struct {
	Ledger
	w *world
}

func (r racing) BatchGet(ctx context.Context, keys []ledger.Key) (map[ledger.Key]ledger.Entry, error) {
	entries, err := r.Ledger.BatchGet(ctx, keys)
	for key := range entries {
		r.w.done(key)
	}
	return entries, err
}

func TestEntryThatMovedOnMeanwhileIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recorded("evt_1", "cus_1")
		time.Sleep(2 * time.Minute)
		w.sweeper.Ledger = racing{w.ledger, w}
		w.sweep()
		w.want("enqueued", w.take(w.names.QueueURL))
		if e := w.get("stripe#-#evt_1"); e.Status != ledger.Done || e.Sweeps != 0 {
			t.Errorf("the entry is %s, swept %d times", e.Status, e.Sweeps)
		}
	})
}

// brokenQueue refuses everything.
type brokenQueue struct{ Queue }

func (brokenQueue) SendBatch(_ context.Context, sends []queue.Send) []error {
	errs := make([]error, len(sends))
	for i := range errs {
		errs[i] = errors.New("the queue is away")
	}
	return errs
}

func TestQueueTroubleIsAnErrorAndHealsAtTheNextAge(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recorded("evt_1", "cus_1")
		time.Sleep(2 * time.Minute)
		w.sweeper.Queue = brokenQueue{w.queue}
		if _, err := w.sweeper.Run(w.ctx); err == nil {
			t.Error("a sweep that could not enqueue is no success")
		}
		w.sweeper.Queue = w.queue
		time.Sleep(2 * time.Minute)
		w.sweep()
		w.want("enqueued", w.take(w.names.QueueURL), "evt_1")
	})
}

func TestLineHoldsTheCountsTheAlarmsRead(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 5 {
			key := w.recorded(fmt.Sprintf("evt_a%d", i), "cus_big").Key
			if i < 3 {
				w.check(w.ledger.Release(w.ctx, w.claim(key, time.Minute), ledger.Releasing{WaitsOn: "stripe", Class: ledger.ClassOutage, Error: "down"}))
			}
		}
		small := w.recorded("evt_b", "cus_small").Key
		w.check(w.ledger.Release(w.ctx, w.claim(small, time.Minute), ledger.Releasing{WaitsOn: "handler mailer", Class: ledger.ClassRetry, Error: "not yet"}))
		w.park(w.recorded("evt_p", "cus_p").Key)
		time.Sleep(150 * time.Second)
		line := w.reconcile("sweep")
		for name := range line {
			if strings.Contains(name, "mailer") {
				t.Errorf("%s is a metric of its own", name)
			}
		}
		for name, want := range map[string]any{
			"TodoOpen": 6.0, "ParkedOpen": 1.0, "OldestTodoAge": 150.0, "Swept": 6.0, "LargestGroupBacklog": 5.0,
			"largest_group": "cus_big", "WaitingOn_stripe": 3.0, "dead_letters": 1.0, "ghosts_deleted": 0.0, "complete": true,
		} {
			if line[name] != want {
				t.Errorf("%s is %v, want %v", name, line[name], want)
			}
		}
	})
}

func TestBacklogOfALargeGroupIsEstimatedFromASample(t *testing.T) {
	t.Parallel()
	swept := Swept{Looked: 2000, GroupOpen: 1500, Group: "cus_big"}
	if got := backlog(swept, ledger.Counts{Todo: 100_000}); got != 75_000 {
		t.Errorf("three quarters of 100,000: got %d, want 75000", got)
	}
	swept.Whole = true
	if got := backlog(swept, ledger.Counts{Todo: 100_000}); got != 1500 {
		t.Errorf("counted as a whole: got %d, want 1500", got)
	}
}

func TestSpentBudgetStillTakesASample(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 400 {
			w.recorded(fmt.Sprintf("evt_%03d", i), fmt.Sprintf("cus_%d", i%2))
		}
		time.Sleep(2 * time.Minute)
		if swept := w.sweep(); swept.Enqueued != 100 || swept.Looked != 400 || swept.GroupOpen != 200 || !swept.Whole {
			t.Errorf("got %+v", swept)
		}
	})
}

func TestCursorsOfAnotherVersionAreForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		_, err := w.control.Put(w.ctx, sweepCursors, "[1]", control.Value{})
		w.check(err)
		w.recorded("evt_1", "cus_1")
		time.Sleep(2 * time.Minute)
		w.sweep()
		w.want("enqueued", w.take(w.names.QueueURL), "evt_1")
	})
}
