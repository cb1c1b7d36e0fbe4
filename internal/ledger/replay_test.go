package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"backstop/internal/ledger"
)

// parkedWithSteps parks an entry after two attempts: "a" done, "b" out of budget, "c" permanent.
func parkedWithSteps(t *testing.T) *world {
	t.Helper()
	w, c := claimed(t)
	if err := w.store.Release(t.Context(), c, ledger.Releasing{Class: ledger.ClassError, Charge: true, Steps: map[string]ledger.Step{
		"a": {Outcome: ledger.Done}, "b": {Attempts: 1, Class: ledger.ClassError, Error: "no"},
	}}); err != nil {
		t.Fatal(err)
	}
	c = claim(t, w, "message-1:2", nil)
	if diff := cmp.Diff(map[string]ledger.Step{"a": {Outcome: ledger.Done}, "b": {Attempts: 1, Class: ledger.ClassError, Error: "no"}}, c.Entry.Steps); diff != "" {
		t.Fatal(diff)
	}
	if err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassPermanent, Charge: true, Steps: map[string]ledger.Step{
		"b": {Outcome: ledger.Parked, Attempts: 2, Class: ledger.ClassError}, "c": {Outcome: ledger.Parked, Attempts: 1, Class: ledger.ClassPermanent},
	}}); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestReplayReopensTheStepsThatFailed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler string
		want    map[string]ledger.Step
	}{
		"all": {"", map[string]ledger.Step{"a": {Outcome: ledger.Done}}},
		"one that failed": {"b", map[string]ledger.Step{
			"a": {Outcome: ledger.Done}, "c": {Outcome: ledger.Parked, Attempts: 1, Class: ledger.ClassPermanent},
		}},
		"one that is done": {"a", map[string]ledger.Step{
			"b": {Outcome: ledger.Parked, Attempts: 2, Class: ledger.ClassError}, "c": {Outcome: ledger.Parked, Attempts: 1, Class: ledger.ClassPermanent},
		}},
		"one never heard of": {"z", map[string]ledger.Step{
			"a": {Outcome: ledger.Done}, "b": {Outcome: ledger.Parked, Attempts: 2, Class: ledger.ClassError}, "c": {Outcome: ledger.Parked, Attempts: 1, Class: ledger.ClassPermanent},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := parkedWithSteps(t)
			w.at(start.Add(time.Hour))
			e, err := w.store.Replay(t.Context(), ledger.Replaying{Key: key, From: ledger.Parked, Token: "r", By: "kim", Why: "fixed", Handler: test.handler})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, e.Steps); diff != "" {
				t.Error(diff)
			}
			if e.Status != ledger.Recorded || e.Attempts != 0 || e.Replay != 1 || e.Generation != 2 || e.Open != "todo#2" ||
				e.RecordedMS != 1767229200000 || e.FirstRecordedMS != 1767225600000 || e.SettledMS != 0 {
				t.Errorf("replayed as %+v", e)
			}
			want := []ledger.Replayed{{By: "kim", Why: "fixed", AtMS: 1767229200000, Handler: test.handler, Token: "r"}}
			if diff := cmp.Diff(want, e.Replays); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReplayOfADoneEntryOpensItsSteps(t *testing.T) {
	t.Parallel()
	for _, handler := range []string{"", "a"} {
		w, c := claimed(t)
		if err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Done, Steps: map[string]ledger.Step{"a": {Outcome: ledger.Done}, "b": {Outcome: ledger.Done}}}); err != nil {
			t.Fatal(err)
		}
		e, err := w.store.Replay(t.Context(), ledger.Replaying{Key: key, From: ledger.Done, Token: "r", Handler: handler})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]ledger.Step(nil)
		if handler != "" {
			want = map[string]ledger.Step{"b": {Outcome: ledger.Done}}
		}
		if diff := cmp.Diff(want, e.Steps); diff != "" || e.DeleteAfterS != 0 {
			t.Errorf("handler %q: %s, deleted after %d", handler, diff, e.DeleteAfterS)
		}
		again := claim(t, w, "message-2:1", nil)
		if err := commit(t, w, again, "a"); err != nil {
			t.Errorf("handler %q: committing the step again: %v", handler, err)
		}
	}
}

func TestLastFiveReplaysAreKept(t *testing.T) {
	t.Parallel()
	w := parkedWithSteps(t)
	for n := range 12 {
		e, err := w.store.Replay(t.Context(), ledger.Replaying{Key: key, From: ledger.Parked, Replay: n, Token: fmt.Sprint("r", n+1)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range e.Replays {
			got = append(got, r.Token)
		}
		if want := [...][]string{{"r1"}, {"r1", "r2"}, {"r1", "r2", "r3"}, {"r1", "r2", "r3", "r4"}, {"r1", "r2", "r3", "r4", "r5"},
			{"r2", "r3", "r4", "r5", "r6"}, {"r3", "r4", "r5", "r6", "r7"}, {"r4", "r5", "r6", "r7", "r8"}, {"r5", "r6", "r7", "r8", "r9"},
			{"r6", "r7", "r8", "r9", "r10"}, {"r7", "r8", "r9", "r10", "r11"}, {"r8", "r9", "r10", "r11", "r12"}}[n]; !cmp.Equal(got, want) {
			t.Errorf("after replay %d: %v, want %v", n+1, got, want)
		}
		if _, err := w.store.Replay(t.Context(), ledger.Replaying{Key: key, From: ledger.Parked, Replay: n, Token: "other"}); !errors.Is(err, ledger.ErrConflict) {
			t.Errorf("replay %d by another while it is recorded: %v, want ErrConflict", n+1, err)
		}
		c := claim(t, w, fmt.Sprint("message-", n), nil)
		if err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Parked}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Replay(t.Context(), ledger.Replaying{Key: key, From: ledger.Parked, Replay: n, Token: "other"}); !errors.Is(err, ledger.ErrConflict) {
			t.Errorf("replay %d by another, parked again: %v, want ErrConflict", n+1, err)
		}
	}
}

// The reply of a replay is lost, and before the SDK comes again the entry is claimed, which overwrites its token.
func TestReplayIsFoundAmongTheEntrysReplays(t *testing.T) {
	t.Parallel()
	w := parkedWithSteps(t)
	r := ledger.Replaying{Key: key, From: ledger.Parked, Token: "replay-1"}
	if _, err := w.store.Replay(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	claim(t, w, "message-2:1", nil)
	if e, err := w.store.Replay(t.Context(), r); err != nil || e.Replay != 1 {
		t.Errorf("own replay: %+v, %v; want it found", e, err)
	}
	r.Token = "replay-2"
	if _, err := w.store.Replay(t.Context(), r); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("another's replay: %v, want ErrConflict", err)
	}
}

func TestDiscardIsForOneReplayNumber(t *testing.T) {
	t.Parallel()
	w := parkedWithSteps(t)
	if err := w.store.Discard(t.Context(), key, 1, "kim", "test data"); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("at another replay number: %v, want ErrConflict", err)
	}
	if err := w.store.Discard(t.Context(), key, 0, "kim", "test data"); err != nil {
		t.Fatal(err)
	}
	if e := entry(t, w); e.Status != ledger.Skipped || e.LastError != "discarded by kim: test data" || e.Class != ledger.ClassDiscarded || e.DeleteAfterS != 1770249600 {
		t.Errorf("discarded as %+v", e)
	}
	if err := w.store.Discard(t.Context(), key, 0, "lee", "test data"); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("by another: %v, want ErrConflict", err)
	}
}

func TestOneOfTwoSweepsCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record(t, w, "delivery-1")
	seen := entry(t, w)
	first, err := w.store.Swept(t.Context(), seen)
	if err != nil || first.Sweeps != 1 || first.SweptMS != 1767225600000 {
		t.Fatalf("first sweep: %+v, %v", first, err)
	}
	w.at(start.Add(time.Millisecond))
	if _, err := w.store.Swept(t.Context(), seen); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("second sweep of the same entry as seen: %v, want ErrConflict", err)
	}
	if e, err := w.store.Swept(t.Context(), first); err != nil || e.Sweeps != 2 {
		t.Errorf("next sweep: %+v, %v", e, err)
	}
}
