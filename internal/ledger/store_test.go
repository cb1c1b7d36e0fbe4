package ledger_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/ledger"
)

func record(t testing.TB, w *world, token string) ledger.RecordResult {
	t.Helper()
	result, err := w.store.Record(t.Context(), ledger.Recording{
		Key: key, Type: "invoice.paid", Group: "cus_1", Origin: ledger.Webhook, Body: []byte(body), Token: token,
	})
	if err != nil {
		t.Fatalf("recording: %v", err)
	}
	return result
}

func claim(t testing.TB, w *world, token string, seen *ledger.Entry) ledger.Claim {
	t.Helper()
	c, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: token, Until: w.Now().Add(time.Minute), Suspect: seen})
	if err != nil {
		t.Fatalf("claiming: %v", err)
	}
	return c
}

func entry(t testing.TB, w *world) ledger.Entry {
	t.Helper()
	e, err := w.store.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("reading: %v", err)
	}
	return e
}

func TestSecondDeliveryFindsTheEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if first := record(t, w, "delivery-1"); !first.New || first.Entry.Status != ledger.Recorded {
		t.Errorf("first delivery: %+v, want a new entry", first)
	}
	second := record(t, w, "delivery-2")
	if second.New || second.Entry.Token != "delivery-1" || second.Entry.RecordedMS != 1767225600000 || second.Entry.Body != nil {
		t.Errorf("second delivery: %+v, want the first one's entry without body", second)
	}
}

func TestDeliveryPastTimeToLiveIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger.WithRetention(time.Hour))
	record(t, w, "delivery-1")
	if err := w.store.Settle(t.Context(), claim(t, w, mine, nil), ledger.Settlement{Status: ledger.Done}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		after time.Duration
		isNew bool
	}{{time.Hour - time.Second, false}, {time.Hour, false}, {time.Hour + time.Second, true}} {
		w.at(start.Add(test.after))
		if _, err := w.store.Get(t.Context(), key); errors.Is(err, ledger.ErrNotFound) != test.isNew {
			t.Errorf("after %s: Get says %v", test.after, err)
		}
		if got := record(t, w, "delivery-2"); got.New != test.isNew {
			t.Errorf("after %s: new is %t, want %t", test.after, got.New, test.isNew)
		}
	}
	if e := entry(t, w); e.Status != ledger.Recorded || e.Generation != 0 || e.DeleteAfterS != 0 {
		t.Errorf("the second life is %+v, want it to begin afresh", e)
	}
}

func TestLeaseEndsWithItsMillisecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record(t, w, "delivery-1")
	first := claim(t, w, "message-1:1", nil)
	for _, test := range []struct {
		at   time.Duration
		held bool
	}{{time.Minute - time.Millisecond, true}, {time.Minute, false}, {time.Minute + time.Millisecond, false}} {
		w.at(start.Add(test.at))
		_, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: "message-1:2", Until: start.Add(time.Hour)})
		var held *ledger.HeldError
		var suspect *ledger.SuspectError
		if test.held && (!errors.As(err, &held) || !held.Until.Equal(first.Until)) {
			t.Errorf("at %s: %v, want it held until %s", test.at, err, first.Until)
		}
		if !test.held && !errors.As(err, &suspect) {
			t.Errorf("at %s: %v, want a suspect", test.at, err)
		}
		// The claim of the suspect looks at the lease, too.
		if test.held {
			if _, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: "message-1:2", Suspect: &first.Entry}); !errors.As(err, &held) {
				t.Errorf("at %s alone: %v, want it held", test.at, err)
			}
		}
	}
}

func TestLeaseRunOutIsChargedOnceAndMarksASuspect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record(t, w, "delivery-1")
	first := claim(t, w, "message-1:1", nil)
	w.at(start.Add(time.Minute))
	_, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: "message-1:2"})
	var suspect *ledger.SuspectError
	if !errors.As(err, &suspect) {
		t.Fatalf("claiming: %v, want a suspect", err)
	}
	second := claim(t, w, "message-1:2", &suspect.Entry)
	if e := second.Entry; second.Generation != 2 || e.Attempts != 1 || !e.Suspect || e.Class != ledger.ClassLease || string(e.Body) != body {
		t.Errorf("claimed %+v, want generation 2, one attempt charged, the mark and the body", second)
	}
	if err := w.store.Settle(t.Context(), first, ledger.Settlement{Status: ledger.Done}); !errors.Is(err, ledger.ErrLeaseLost) {
		t.Errorf("settling under the first generation: %v, want ErrLeaseLost", err)
	}
	if err := w.store.Settle(t.Context(), second, ledger.Settlement{Status: ledger.Done}); err != nil {
		t.Errorf("settling under the second: %v", err)
	}
	if e := entry(t, w); e.Status != ledger.Done || e.Attempts != 1 || e.Suspect {
		t.Errorf("settled as %+v", e)
	}
}

// A suspect stays one until an attempt of it ends by itself.
func TestSuspectSurvivesWhatIsNotAnAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then func(t *testing.T, w *world, c ledger.Claim) error
		want bool
	}{
		"handed back unrun": {func(t *testing.T, w *world, c ledger.Claim) error {
			return w.store.Release(t.Context(), c, ledger.Releasing{Suspect: true})
		}, true},
		"unclaimed": {func(t *testing.T, w *world, c ledger.Claim) error {
			return w.store.Unclaim(t.Context(), key, c.Token)
		}, true},
		"parked by the lease and replayed": {func(t *testing.T, w *world, c ledger.Claim) error {
			err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassLease})
			return errors.Join(err, replay(t, w, ledger.Parked))
		}, true},
		"parked by an error and replayed": {func(t *testing.T, w *world, c ledger.Claim) error {
			err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassError})
			return errors.Join(err, replay(t, w, ledger.Parked))
		}, false},
		"released after an error": {func(t *testing.T, w *world, c ledger.Claim) error {
			return w.store.Release(t.Context(), c, ledger.Releasing{Class: ledger.ClassError, Charge: true})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			record(t, w, "delivery-1")
			seen := claim(t, w, "message-1:1", nil).Entry
			w.at(start.Add(time.Minute))
			if err := test.then(t, w, claim(t, w, "message-1:2", &seen)); err != nil {
				t.Fatal(err)
			}
			e := entry(t, w)
			if e.Status != ledger.Recorded || e.Suspect != test.want {
				t.Errorf("%s, suspect %t, want %t", e.Status, e.Suspect, test.want)
			}
			var suspect *ledger.SuspectError
			if _, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: "message-1:3"}); errors.As(err, &suspect) != test.want {
				t.Errorf("claiming among others: %v", err)
			}
		})
	}
}

func TestHandedBackUnrunKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record(t, w, "delivery-1")
	if err := w.store.Release(t.Context(), claim(t, w, "1", nil), ledger.Releasing{Class: ledger.ClassOutage, Error: "down", WaitsOn: "stripe"}); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Release(t.Context(), claim(t, w, "2", nil), ledger.Releasing{Suspect: true}); err != nil {
		t.Fatal(err)
	}
	if e := entry(t, w); e.WaitsOn != "stripe" || e.FirstWaitMS != 1767225600000 || e.LastError != "down" || e.Class != ledger.ClassOutage || e.Attempts != 0 {
		t.Errorf("%+v, want it to wait for stripe still", e)
	}
}

func TestWaitCountsFromTheFirstTimeOnTheSameDependency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record(t, w, "delivery-1")
	for i, step := range []struct {
		waitsOn string
		want    int64
	}{
		{"stripe", 1767225600000}, // 0 s
		{"stripe", 1767225600000}, // 1 s: since then
		{"mail", 1767225602000},   // 2 s: another one
		{"", 0},                   // 3 s: no wait
		{"mail", 1767225604000},   // 4 s: a new one
	} {
		w.at(start.Add(time.Duration(i) * time.Second))
		c := claim(t, w, string(rune('a'+i)), nil)
		if err := w.store.Release(t.Context(), c, ledger.Releasing{Class: ledger.ClassOutage, WaitsOn: step.waitsOn}); err != nil {
			t.Fatal(err)
		}
		if e := entry(t, w); e.FirstWaitMS != step.want || e.WaitsOn != step.waitsOn {
			t.Errorf("release %d: waits on %q since %d, want %q since %d", i, e.WaitsOn, e.FirstWaitMS, step.waitsOn, step.want)
		}
	}
}

func TestOneOfManyClaimsWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record(t, w, "delivery-1")
	var wg sync.WaitGroup
	var mu sync.Mutex
	won, held := 0, 0
	for i := range 16 {
		wg.Go(func() {
			_, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: string(rune('a' + i)), Until: start.Add(time.Minute)})
			var h *ledger.HeldError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.As(err, &h):
				held++
			}
		})
	}
	wg.Wait()
	if won != 1 || held != 15 {
		t.Errorf("%d claims won and %d met it held, want 1 and 15", won, held)
	}
}

func TestUnknownCodecIsClaimedWithoutABody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	it := states()["recorded"]
	it["codec"] = S("z9")
	w.put(t, it)
	c, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: mine, Until: start.Add(time.Minute)})
	if !errors.Is(err, ledger.ErrCodec) || c.Generation != 3 || c.Entry.Body != nil {
		t.Fatalf("claim %+v, %v; want the claim and ErrCodec", c, err)
	}
	if err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassCodec}); err != nil {
		t.Errorf("parking it: %v", err)
	}
	if e, err := w.store.Get(t.Context(), key); !errors.Is(err, ledger.ErrCodec) || e.Status != ledger.Parked {
		t.Errorf("reading it: %+v, %v", e, err)
	}
}

func TestBodyThatFitsNoItemIsRefusedUnsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.store.Record(t.Context(), ledger.Recording{Key: key, Body: noise(384 << 10), Token: "delivery-1"})
	if !errors.Is(err, ledger.ErrTooLarge) || w.wire.count() != 0 {
		t.Errorf("%v after %d requests, want ErrTooLarge after none", err, w.wire.count())
	}
	if _, err := w.store.Record(t.Context(), ledger.Recording{Key: key, Body: noise(383 << 10), Token: "delivery-1"}); err != nil {
		t.Errorf("a body of 383 KB that does not pack: %v", err)
	}
	// It must still have room for everything an entry gains later.
	c := claim(t, w, mine, nil)
	long := strings.Repeat("é", 4096)
	steps := map[string]ledger.Step{}
	for _, name := range strings.Fields("a b c d e f g h i j") {
		steps[strings.Repeat(name, 64)] = ledger.Step{Outcome: ledger.Parked, Attempts: 8, Class: ledger.ClassError, Error: long}
	}
	if err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassError, Error: long, Steps: steps}); err != nil {
		t.Errorf("parking it with long errors: %v", err)
	}
	if e := entry(t, w); len(e.LastError) != 1024 || len(e.Steps[strings.Repeat("a", 64)].Error) != 256 {
		t.Errorf("errors of %d and %d bytes, want 1024 and 256", len(e.LastError), len(e.Steps[strings.Repeat("a", 64)].Error))
	}
}

func TestConflictWithATransactionIsUncommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wire.answer = func(_, _ string) (int, string) {
		return 400, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"busy"}`
	}
	err := w.store.Settle(t.Context(), ledger.Claim{Entry: ledger.Entry{Key: key}, Generation: 1}, ledger.Settlement{Status: ledger.Done})
	if !errors.Is(err, ledger.ErrUncommitted) {
		t.Errorf("%v, want ErrUncommitted", err)
	}
}

func TestUnknownAttributesAreIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	it := states()["recorded"]
	it["of_a_later_version"], it["v"], it["attempts"] = M(item{"x": N(1)}), N(2), S("of another kind")
	w.put(t, it)
	if c := claim(t, w, mine, nil); c.Generation != 3 || c.Entry.Attempts != 0 {
		t.Errorf("claimed %+v", c)
	}
	if w.row(t, ledgerTable, string(key))["of_a_later_version"] == nil {
		t.Error("the claim removed an attribute it does not know")
	}
}

func TestProcessingWithoutALeaseIsTakenForOneThatHasPassed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record(t, w, "delivery-1")
	it := w.row(t, ledgerTable, string(key))
	it["status"], it["generation"] = S("processing"), N(7)
	w.put(t, it)
	_, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: mine, Until: start.Add(time.Minute)})
	var suspect *ledger.SuspectError
	if !errors.As(err, &suspect) {
		t.Fatalf("claiming: %v, want a suspect", err)
	}
	if c := claim(t, w, mine, &suspect.Entry); c.Generation != 8 || c.Entry.Attempts != 1 {
		t.Errorf("claimed at generation %d after %d attempts, want 8 after 1", c.Generation, c.Entry.Attempts)
	}
}
