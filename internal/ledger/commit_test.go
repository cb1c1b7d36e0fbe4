package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"backstop/internal/ledger"
)

func claimed(t *testing.T) (*world, ledger.Claim) {
	t.Helper()
	w := newWorld(t)
	record(t, w, "delivery-1")
	return w, claim(t, w, mine, nil)
}

func row(pk string) map[string]string { return map[string]string{"pk": pk} }

func commit(t *testing.T, w *world, c ledger.Claim, handler string, writes ...ledger.Write) error {
	t.Helper()
	return w.store.Commit(t.Context(), c, ledger.Commit{Handler: handler, Step: ledger.Step{Outcome: ledger.Done}, Writes: writes})
}

func TestCommitWritesEveryKindOfValue(t *testing.T) {
	t.Parallel()
	w, c := claimed(t)
	err := commit(t, w, c, "h", ledger.Write{Table: rowsTable, Key: row("a"), Add: map[string]int64{"count": 2}, Set: map[string]any{
		"s": "x", "empty": "", "b": true, "i": 7, "j": int64(-8), "bytes": []byte("raw"), "none": nil,
		"list": []any{"a", 1, nil}, "map": map[string]any{"deep": []any{map[string]any{"x": int64(1)}}}, "Odd-Name.1": "y",
	}})
	if err != nil {
		t.Fatal(err)
	}
	null := nullValue()
	want := item{
		"pk": S("a"), "count": N(2), "s": S("x"), "empty": S(""), "b": T(), "i": N(7), "j": N(-8), "bytes": B("raw"), "none": null,
		"list": L(S("a"), N(1), null), "map": M(item{"deep": L(M(item{"x": N(1)}))}), "Odd-Name.1": S("y"),
	}
	if diff := cmp.Diff(want, w.row(t, rowsTable, "a"), opaque()); diff != "" {
		t.Error(diff)
	}
}

func TestStepsOfOneClaimAreMarkedOneByOne(t *testing.T) {
	t.Parallel()
	w, c := claimed(t)
	for _, handler := range []string{"billing.invoicePaid", "mail-receipt", "crm/2"} {
		if err := commit(t, w, c, handler, ledger.Write{Table: rowsTable, Key: row("n"), Add: map[string]int64{"n": 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Done, Steps: map[string]ledger.Step{"4": {Outcome: ledger.Skipped}}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]ledger.Step{
		"billing.invoicePaid": {Outcome: ledger.Done}, "mail-receipt": {Outcome: ledger.Done}, "crm/2": {Outcome: ledger.Done},
		"4": {Outcome: ledger.Skipped},
	}
	if diff := cmp.Diff(want, entry(t, w).Steps); diff != "" {
		t.Error(diff)
	}
	if n := w.row(t, rowsTable, "n")["n"]; !same(n, N(3)) {
		t.Errorf("the counter is %v, want 3", n)
	}
}

func TestGuardsThatFailAreNamed(t *testing.T) {
	t.Parallel()
	w, c := claimed(t)
	if err := commit(t, w, c, "first",
		ledger.Write{Table: rowsTable, Key: row("balance"), Set: map[string]any{"cents": 500}},
		ledger.Write{Table: rowsTable, Key: row("sub"), Set: map[string]any{"version": "2026-02", "status": "active"}},
	); err != nil {
		t.Fatal(err)
	}
	writes := []ledger.Write{
		{Table: rowsTable, Key: row("new"), Set: map[string]any{"x": 1}, Expect: map[string]any{"x": nil}},
		{Table: rowsTable, Key: row("balance"), Set: map[string]any{"cents": 700}, Expect: map[string]any{"cents": 400}},
		{Table: rowsTable, Key: row("sub"), Set: map[string]any{"version": "2026-01"}, Newer: &ledger.Newer{Attribute: "version", Value: "2026-01"}},
	}
	err := commit(t, w, c, "second", writes...)
	var stale *ledger.StaleError
	if !errors.As(err, &stale) {
		t.Fatalf("%v, want a StaleError", err)
	}
	if diff := cmp.Diff(&ledger.StaleError{Writes: []int{1, 2}, Newer: []bool{false, true}}, stale); diff != "" {
		t.Error(diff)
	}
	if w.row(t, rowsTable, "new") != nil || entry(t, w).Steps["second"].Outcome != "" {
		t.Error("a part of a cancelled transaction was applied")
	}
	writes[1].Expect["cents"], writes[2].Newer.Value = 500, "2026-03"
	if err := commit(t, w, c, "second", writes...); err != nil {
		t.Errorf("decided again: %v", err)
	}
	if cents := w.row(t, rowsTable, "balance")["cents"]; !same(cents, N(700)) {
		t.Errorf("the balance is %v, want 700", cents)
	}
}

// With both guards on one row, the row that was met tells which one failed.
func TestBothGuardsOnOneRow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		version string
		cents   int
		newer   bool
	}{"older version": {"2026-01", 500, true}, "same version": {"2026-02", 500, true}, "other value": {"2026-03", 400, false}, "both": {"2026-01", 400, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := claimed(t)
			if err := commit(t, w, c, "first", ledger.Write{Table: rowsTable, Key: row("a"), Set: map[string]any{"version": "2026-02", "cents": 500}}); err != nil {
				t.Fatal(err)
			}
			err := commit(t, w, c, "second", ledger.Write{Table: rowsTable, Key: row("a"), Set: map[string]any{"cents": 1},
				Expect: map[string]any{"cents": test.cents}, Newer: &ledger.Newer{Attribute: "version", Value: test.version}})
			var stale *ledger.StaleError
			if !errors.As(err, &stale) || !cmp.Equal(stale.Newer, []bool{test.newer}) {
				t.Errorf("%v %+v, want newer %t", err, stale, test.newer)
			}
		})
	}
}

func TestDeleteAndCheckAreGuardedToo(t *testing.T) {
	t.Parallel()
	w, c := claimed(t)
	if err := commit(t, w, c, "first", ledger.Write{Table: rowsTable, Key: row("a"), Set: map[string]any{"x": 1}}); err != nil {
		t.Fatal(err)
	}
	var stale *ledger.StaleError
	if err := commit(t, w, c, "second", ledger.Write{Table: rowsTable, Key: row("a"), Delete: true, Expect: map[string]any{"x": 2}}); !errors.As(err, &stale) {
		t.Errorf("deleting a row that has moved on: %v, want a StaleError", err)
	}
	if err := commit(t, w, c, "second", ledger.Write{Table: rowsTable, Key: row("a"), Expect: map[string]any{"x": 2}}); !errors.As(err, &stale) {
		t.Errorf("checking a row that has moved on: %v, want a StaleError", err)
	}
	if err := commit(t, w, c, "second", ledger.Write{Table: rowsTable, Key: row("a"), Expect: map[string]any{"x": 1}}); err != nil {
		t.Errorf("checking: %v", err)
	}
	if err := commit(t, w, c, "third", ledger.Write{Table: rowsTable, Key: row("a"), Delete: true, Expect: map[string]any{"x": 1}}); err != nil {
		t.Errorf("deleting: %v", err)
	}
	if w.row(t, rowsTable, "a") != nil {
		t.Error("the row is still there")
	}
}

func TestCommitRefusesUnsentWhatCannotBeOneTransaction(t *testing.T) {
	t.Parallel()
	w, c := claimed(t)
	sent := w.wire.count()
	var hundred []ledger.Write
	for i := range 100 {
		hundred = append(hundred, ledger.Write{Table: rowsTable, Key: row(fmt.Sprint(i)), Add: map[string]int64{"n": 1}})
	}
	if err := commit(t, w, c, "h", hundred...); !errors.Is(err, ledger.ErrTooLarge) {
		t.Errorf("100 effects: %v, want ErrTooLarge", err)
	}
	var large []ledger.Write
	for i := range 12 {
		large = append(large, ledger.Write{Table: rowsTable, Key: row(fmt.Sprint(i)), Set: map[string]any{"x": strings.Repeat("x", 360<<10)}})
	}
	if err := commit(t, w, c, "h", large...); !errors.Is(err, ledger.ErrTooLarge) {
		t.Errorf("4.2 MB of effects: %v, want ErrTooLarge", err)
	}
	for name, writes := range map[string][]ledger.Write{
		"a row twice":  {hundred[0], hundred[0]},
		"no row":       {{Add: map[string]int64{"n": 1}}},
		"no change":    {{Table: rowsTable, Key: row("a")}},
		"a wrong type": {{Table: rowsTable, Key: row("a"), Set: map[string]any{"x": 1.5}}},
	} {
		if err := commit(t, w, c, "h", writes...); err == nil {
			t.Errorf("%s was committed", name)
		}
	}
	if n := w.wire.count(); n != sent {
		t.Errorf("%d requests were sent", n-sent)
	}
	if err := commit(t, w, c, "h", hundred[:99]...); err != nil {
		t.Errorf("99 effects: %v", err)
	}
}

func TestFateOfATransactionIsRead(t *testing.T) {
	t.Parallel()
	exception := func(name, more string) string {
		return `{"__type":"com.amazonaws.dynamodb.v20120810#` + name + `","message":"no"` + more + `}`
	}
	canceled := func(codes ...string) string {
		for i, code := range codes {
			codes[i] = `{"Code":"` + code + `","Message":"` + code + ` has exceeded the maximum allowed size"}`
		}
		return exception("TransactionCanceledException", `,"CancellationReasons":[`+strings.Join(codes, ",")+`]`)
	}
	for name, test := range map[string]struct {
		reply string
		want  error
	}{
		"conflict on the entry":      {canceled("TransactionConflict", "None"), ledger.ErrUncommitted},
		"conflict on a row":          {canceled("None", "TransactionConflict"), ledger.ErrUncommitted},
		"throttled":                  {canceled("None", "ThrottlingError"), ledger.ErrUncommitted},
		"throughput":                 {canceled("ProvisionedThroughputExceeded", "None"), ledger.ErrUncommitted},
		"effect not valid":           {strings.Replace(canceled("None", "ValidationError"), "has exceeded the maximum allowed size", "is an operand of an incorrect data type", -1), ledger.ErrInvalid},
		"row too large":              {canceled("None", "ValidationError"), ledger.ErrTooLarge},
		"entry gone and a conflict":  {canceled("ConditionalCheckFailed", "TransactionConflict"), ledger.ErrLeaseLost},
		"in progress":                {exception("TransactionInProgressException", ""), ledger.ErrUncommitted},
		"token used by other params": {exception("IdempotentParameterMismatchException", ""), ledger.ErrUncommitted},
		"row too large at once":      {`{"__type":"com.amazon.coral.validate#ValidationException","message":"Item size has exceeded the maximum allowed size"}`, ledger.ErrTooLarge},
		"request throttled":          {exception("ThrottlingException", ""), ledger.ErrUncommitted},
		"request limit":              {exception("RequestLimitExceeded", ""), ledger.ErrUncommitted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := claimed(t)
			w.wire.answer = func(_, _ string) (int, string) { return 400, test.reply }
			err := commit(t, w, c, "h", ledger.Write{Table: rowsTable, Key: row("a"), Add: map[string]int64{"n": 1}})
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}

func TestStepMarkedBeforeTheClaimIsNotCommittedAgain(t *testing.T) {
	t.Parallel()
	w, c := claimed(t)
	add := ledger.Write{Table: rowsTable, Key: row("n"), Add: map[string]int64{"n": 1}}
	if err := commit(t, w, c, "h", add); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Release(t.Context(), c, ledger.Releasing{}); err != nil {
		t.Fatal(err)
	}
	again := claim(t, w, "message-1:2", nil)
	if again.Entry.Steps["h"].Outcome != ledger.Done {
		t.Fatalf("the claim shows %+v, want the step done", again.Entry.Steps)
	}
	if err := commit(t, w, again, "h", add); err == nil {
		t.Error("committed again")
	}
	if err := commit(t, w, c, "other", add); !errors.Is(err, ledger.ErrLeaseLost) {
		t.Errorf("under the first generation: %v, want ErrLeaseLost", err)
	}
	if n := w.row(t, rowsTable, "n")["n"]; !same(n, N(1)) {
		t.Errorf("the counter is %v, want 1", n)
	}
}

// The token makes a transaction that is sent again meet itself; it must not outlive the composition it stands for.
func TestRequestTokenNamesTheComposition(t *testing.T) {
	t.Parallel()
	w, c := claimed(t)
	var token string
	w.wire.answer = func(_, request string) (int, string) {
		_, after, _ := strings.Cut(request, `"ClientRequestToken":"`)
		token, _, _ = strings.Cut(after, `"`)
		return 200, `{}`
	}
	send := func(c ledger.Claim, handler string, composition int) string {
		t.Helper()
		if err := w.store.Commit(t.Context(), c, ledger.Commit{
			Handler: handler, Composition: composition, Step: ledger.Step{Outcome: ledger.Done},
			Writes: []ledger.Write{{Table: rowsTable, Key: row("n"), Add: map[string]int64{"n": 1}}},
		}); err != nil {
			t.Fatal(err)
		}
		return token
	}
	first := send(c, "h", 0)
	if len(first) != 36 || send(c, "h", 0) != first {
		t.Errorf("token %q, want 36 characters, the same for the same composition", first)
	}
	later := c
	later.Generation++
	if send(c, "h", 1) == first || send(c, "g", 0) == first || send(later, "h", 0) == first {
		t.Error("another composition, handler or generation has the same token")
	}
}
