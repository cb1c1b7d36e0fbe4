package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"backstop/internal/deadletter"
	"backstop/internal/ledger"
	"backstop/internal/queue"
)

func (w *world) tidy() Tidied {
	w.Helper()
	done, err := w.tidier.Run(w.ctx, false)
	w.check(err)
	return done
}

func TestGhostsGoAndParkedStayVisible(t *testing.T) {
	inWorld(t, func(w *world) {
		w.park(w.recorded("evt_parked", "cus_1").Key)
		replayed := w.recorded("evt_replayed", "cus_2")
		w.park(replayed.Key)
		w.replay(w.get(replayed.Key))
		discarded := w.recorded("evt_discarded", "cus_3")
		w.park(discarded.Key)
		w.check(w.ledger.Discard(w.ctx, discarded.Key, 0, "test", "test"))
		again := w.recorded("evt_again", "cus_4")
		w.park(again.Key)
		w.replay(w.get(again.Key))
		w.done(again.Key)

		if done := w.tidy(); done.Looked != 4 || done.Deleted != 3 || done.Kept != 1 {
			t.Errorf("got %+v", done)
		}
		if got := w.visible(w.names.DeadLetterURL); got != "1" {
			t.Errorf("%s messages are visible at once, want 1", got)
		}
		w.want("left", w.take(w.names.DeadLetterURL), "evt_parked")
	})
}

func TestParkedAgainKeepsItsNewestMessageOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		entry := w.recorded("evt_1", "cus_1")
		w.park(entry.Key)
		w.replay(w.get(entry.Key))
		w.park(entry.Key)
		if done := w.tidy(); done.Deleted != 1 || done.Kept != 1 {
			t.Errorf("got %+v", done)
		}
	})
}

// The message is sent before its entry is parked: between the two it must not be taken for a ghost.
func TestMessageOfAnEntryAboutToBeParkedStays(t *testing.T) {
	inWorld(t, func(w *world) {
		claim := w.claim(w.recorded("evt_1", "cus_1").Key, time.Minute)
		w.deadLetter(claim)
		if done := w.tidy(); done.Deleted != 0 || done.Kept != 1 {
			t.Errorf("got %+v", done)
		}
		w.check(w.ledger.Settle(w.ctx, claim, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassError, Error: "no"}))
		w.tidy()
		w.want("left", w.take(w.names.DeadLetterURL), "evt_1")
	})
}

func TestMessageOfACrashBeforeParkingIsAGhostOnceClaimedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		entry := w.recorded("evt_1", "cus_1")
		w.deadLetter(w.claim(entry.Key, time.Minute))
		time.Sleep(2 * time.Minute)
		seen := w.get(entry.Key)
		claim, err := w.ledger.Claim(w.ctx, ledger.Claiming{Key: entry.Key, Token: w.token(), Until: time.Now().Add(time.Minute), Suspect: &seen})
		w.check(err)
		w.check(w.ledger.Release(w.ctx, claim, ledger.Releasing{}))
		if done := w.tidy(); done.Deleted != 1 {
			t.Errorf("got %+v", done)
		}
	})
}

func TestWhatNobodyUnderstandsStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.sendRaw(w.names.DeadLetterURL, "a", "1", "garbage")
		w.sendRaw(w.names.DeadLetterURL, "b", "2", `{"v":99,"key":"stripe#-#evt_1"}`)
		w.sendRaw(w.names.DeadLetterURL, "c", "3", queue.Encode(queue.Pointer{Key: "stripe#-#evt_nowhere", Type: "t", Generation: 1}))
		if done := w.tidy(); done.Looked != 3 || done.Deleted != 0 {
			t.Errorf("got %+v", done)
		}
		if got := w.visible(w.names.DeadLetterURL); got != "3" {
			t.Errorf("%s are visible, want 3", got)
		}
	})
}

// SQS itself moves a pointer, without a generation, after a thousand receives.
func TestRedrivenPointerStaysUntilItsEntryIsSettled(t *testing.T) {
	inWorld(t, func(w *world) {
		entry := w.recorded("evt_1", "cus_1")
		w.sendRaw(w.names.DeadLetterURL, "cus_1", "1", queue.Encode(queue.Pointer{Key: string(entry.Key), Type: entry.Type}))
		if done := w.tidy(); done.Deleted != 0 {
			t.Errorf("open: got %+v", done)
		}
		w.done(entry.Key)
		if done := w.tidy(); done.Deleted != 1 {
			t.Errorf("settled: got %+v", done)
		}
	})
}

func TestDryRunDeletesNothingAndNamesTheGhosts(t *testing.T) {
	inWorld(t, func(w *world) {
		entry := w.recorded("evt_1", "cus_1")
		w.park(entry.Key)
		w.replay(w.get(entry.Key))
		done, err := w.tidier.Run(w.ctx, true)
		w.check(err)
		w.want("ghosts", done.Ghosts, "stripe#-#evt_1")
		if got := w.visible(w.names.DeadLetterURL); got != "1" || done.Deleted != 0 {
			t.Errorf("%s visible, %+v", got, done)
		}
	})
}

func TestGhostsBehindManyParkedOfOtherGroupsAreFound(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 60 {
			w.park(w.recorded(fmt.Sprintf("evt_%02d", i), fmt.Sprintf("cus_%02d", i)).Key)
		}
		entry := w.recorded("evt_ghost", "cus_ghost")
		w.park(entry.Key)
		w.replay(w.get(entry.Key))
		if done := w.tidy(); done.Looked != 61 || done.Deleted != 1 || done.Kept != 60 {
			t.Errorf("got %+v", done)
		}
		if got := w.visible(w.names.DeadLetterURL); got != "60" {
			t.Errorf("%s are visible, want 60", got)
		}
	})
}

// blind cannot read the ledger.
type blind struct{ Entries }

func (blind) BatchGet(context.Context, []ledger.Key) (map[ledger.Key]ledger.Entry, error) {
	return nil, errors.New("the ledger is away")
}

func TestTroubleGivesEverythingBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.park(w.recorded("evt_1", "cus_1").Key)
		w.tidier.Ledger = blind{w.ledger}
		if _, err := w.tidier.Run(w.ctx, false); err == nil {
			t.Error("no error")
		}
		if got := w.visible(w.names.DeadLetterURL); got != "1" {
			t.Errorf("%s are visible, want 1", got)
		}
	})
}

// stale says of every entry that it is done.
type stale struct{ Entries }

func (s stale) BatchGet(ctx context.Context, keys []ledger.Key) (map[ledger.Key]ledger.Entry, error) {
	entries, err := s.Entries.BatchGet(ctx, keys)
	for key, e := range entries {
		e.Status = ledger.Done
		entries[key] = e
	}
	return entries, err
}

func TestNothingIsDeletedOnAStaleRead(t *testing.T) {
	inWorld(t, func(w *world) {
		w.park(w.recorded("evt_1", "cus_1").Key)
		w.tidier.Ledger = stale{w.ledger}
		if done := w.tidy(); done.Deleted != 0 || done.Kept != 1 {
			t.Errorf("got %+v", done)
		}
	})
}

// dying takes messages and gives none back.
type dying struct{ DeadLetters }

func (dying) GiveBack(context.Context, []deadletter.Message) error { return errors.New("dead") }

func TestMessagesOfADeadRunComeBackByThemselves(t *testing.T) {
	inWorld(t, func(w *world) {
		w.park(w.recorded("evt_1", "cus_1").Key)
		w.tidier.Queue = dying{w.tidier.Queue}
		if _, err := w.tidier.Run(w.ctx, false); err == nil {
			t.Error("no error")
		}
		time.Sleep(hold - time.Second)
		if got := w.visible(w.names.DeadLetterURL); got != "0" {
			t.Errorf("%s are visible while taken", got)
		}
		time.Sleep(time.Second)
		w.want("left", w.take(w.names.DeadLetterURL), "evt_1")
	})
}
