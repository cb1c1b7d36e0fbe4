package ledger_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"backstop/internal/ledger"
)

type item = map[string]types.AttributeValue

func S(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func N(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
func B(s string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(s)} }
func M(it item) types.AttributeValue  { return &types.AttributeValueMemberM{Value: it} }
func T() types.AttributeValue         { return &types.AttributeValueMemberBOOL{Value: true} }
func opaque() cmp.Option {
	return cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberBOOL{}, types.AttributeValueMemberNULL{})
}
func same(a, b types.AttributeValue) bool { return cmp.Equal(a, b, opaque()) }

func merge(its ...item) item {
	all := item{}
	for _, it := range its {
		for name, v := range it {
			all[name] = v
		}
	}
	return all
}

const (
	key  = ledger.Key("stripe#-#evt_1")
	body = `{"a":1}`
	mine = "message-1:1" // the token of the caller's claim
)

// states are the states of the table, as they stand in DynamoDB at the time start. Each has every attribute that
// can be there.
func states() map[string]item {
	base := item{
		"pk": S("stripe#-#evt_1"), "type": S("invoice.paid"), "created_s": N(1767225000), "group": S("cus_1"),
		"origin": S("webhook"), "codec": S("raw"), "body": B(body), "recorded_ms": N(1767225100000),
		"token": S("other"), "generation": N(2),
	}
	open := item{"open": S("todo#2")}
	trouble := item{
		"attempts": N(3), "suspect": T(), "last_error": S("it failed"), "error_class": S("outage"),
		"first_wait_ms": N(1767225200000), "waits_on": S("mail"), "sweeps": N(4), "swept_ms": N(1767225300000),
		"steps": M(item{"kept": M(item{"outcome": S("done")})}), "failures": M(item{"tried": M(item{"attempts": N(3)})}),
	}
	settled := item{"settled_ms": N(1767225400000), "steps": M(item{"kept": M(item{"outcome": S("done")})})}
	processing := merge(base, open, trouble, item{"status": S("processing"), "generation": N(3)})
	return map[string]item{
		"absent":   nil,
		"expired":  merge(base, settled, item{"status": S("done"), "delete_after_s": N(1767225599)}),
		"recorded": merge(base, open, item{"status": S("recorded"), "attempts": N(3), "first_wait_ms": N(1), "waits_on": S("mail")}),
		"suspect":  merge(base, open, trouble, item{"status": S("recorded")}),
		"mine":     merge(processing, item{"token": S(mine), "lease_until_ms": N(1767225600001)}),
		"held":     merge(processing, item{"generation": N(4), "lease_until_ms": N(1767225600001)}),
		"lapsed":   merge(processing, item{"token": S("message-0:1"), "lease_until_ms": N(1767225600000)}),
		"done":     merge(base, settled, item{"status": S("done"), "delete_after_s": N(1767225600)}),
		"skipped":  merge(base, settled, item{"status": S("skipped"), "delete_after_s": N(1767225600), "last_error": S("not ours")}),
		"parked":   merge(base, trouble, settled, item{"status": S("parked"), "open": S("parked#2")}),
		"foreign":  merge(base, open, item{"status": S("archived")}),
	}
}

// operations are the operations of the table. again says that the caller does the same another time, because the
// first call ended in an error.
var operations = map[string]func(t *testing.T, w *world, state string, again bool) error{
	"record": func(t *testing.T, w *world, _ string, _ bool) error {
		result, err := w.store.Record(t.Context(), ledger.Recording{
			Key: key, Type: "invoice.paid", CreatedS: 1767225000, Group: "cus_1", Origin: ledger.Webhook,
			Livemode: true, APIVersion: "2025-08-27.basil", ObjectID: "in_1", Body: []byte(body), Token: "delivery-1",
		})
		if err == nil && !result.New {
			return errFound
		}
		return err
	},
	"claim": func(t *testing.T, w *world, _ string, _ bool) error {
		claim, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: mine, Until: start.Add(time.Minute)})
		return checkClaim(t, claim, err)
	},
	"alone": func(t *testing.T, w *world, state string, _ bool) error {
		seen := ledger.Entry{Key: key, Status: ledger.Recorded, Suspect: true, Generation: 1}
		switch state {
		case "suspect":
			seen.Generation = 2
		case "lapsed":
			seen.Generation, seen.Status = 3, ledger.Processing
		}
		claim, err := w.store.Claim(t.Context(), ledger.Claiming{Key: key, Token: mine, Until: start.Add(time.Minute), Suspect: &seen})
		return checkClaim(t, claim, err)
	},
	"unclaim": func(t *testing.T, w *world, _ string, _ bool) error { return w.store.Unclaim(t.Context(), key, mine) },
	"step": func(t *testing.T, w *world, state string, again bool) error {
		composition := 0
		if again {
			composition = 1
		}
		return w.store.Commit(t.Context(), claimIn(state), ledger.Commit{
			Handler: "billing.Paid-2", Step: ledger.Step{Outcome: ledger.Done}, Composition: composition,
			Writes: []ledger.Write{{Table: rowsTable, Key: map[string]string{"pk": "counter"}, Add: map[string]int64{"n": 1}}},
		})
	},
	"done": func(t *testing.T, w *world, state string, _ bool) error {
		return w.store.Settle(t.Context(), claimIn(state), ledger.Settlement{Status: ledger.Done})
	},
	"skip": func(t *testing.T, w *world, state string, _ bool) error {
		return w.store.Settle(t.Context(), claimIn(state), ledger.Settlement{Status: ledger.Skipped, Error: "nobody handles it"})
	},
	"park": func(t *testing.T, w *world, state string, _ bool) error {
		return w.store.Settle(t.Context(), claimIn(state), ledger.Settlement{
			Status: ledger.Parked, Class: ledger.ClassPermanent, Error: "never", Charge: true,
			Steps: map[string]ledger.Step{"tried": {Outcome: ledger.Parked, Attempts: 4, Class: ledger.ClassPermanent}},
		})
	},
	"release": func(t *testing.T, w *world, state string, _ bool) error {
		return w.store.Release(t.Context(), claimIn(state), ledger.Releasing{
			Class: ledger.ClassError, Error: "it failed again", Charge: true,
			Steps: map[string]ledger.Step{"tried": {Attempts: 4, Class: ledger.ClassError}},
		})
	},
	"wait": func(t *testing.T, w *world, state string, _ bool) error {
		return w.store.Release(t.Context(), claimIn(state), ledger.Releasing{
			Class: ledger.ClassOutage, Error: "stripe is down", WaitsOn: "stripe",
		})
	},
	"replay": func(t *testing.T, w *world, _ string, _ bool) error { return replay(t, w, ledger.Parked) },
	"again":  func(t *testing.T, w *world, _ string, _ bool) error { return replay(t, w, ledger.Done) },
	"discard": func(t *testing.T, w *world, _ string, _ bool) error {
		return w.store.Discard(t.Context(), key, 0, "kim", "test data")
	},
	"shelve": func(t *testing.T, w *world, _ string, _ bool) error {
		return w.store.Park(t.Context(), key, ledger.ClassPointer, "the pointer cannot be read")
	},
	"sweep": func(t *testing.T, w *world, state string, _ bool) error {
		seen := ledger.Entry{Key: key, Sweeps: 4}
		if state == "recorded" {
			seen.Sweeps = 0
		}
		_, err := w.store.Swept(t.Context(), seen)
		return err
	},
}

func replay(t *testing.T, w *world, from ledger.Status) error {
	_, err := w.store.Replay(t.Context(), ledger.Replaying{Key: key, From: from, Token: "replay-1", By: "kim", Why: "a bug is fixed"})
	return err
}

// claimIn is the claim a caller holds who believes the entry to be his.
func claimIn(state string) ledger.Claim {
	claim := ledger.Claim{
		Entry:      ledger.Entry{Key: key, Attempts: 3, WaitsOn: "mail", FirstWaitMS: 1767225200000},
		Generation: 3, Token: mine,
	}
	if state == "lapsed" {
		claim.Token = "message-0:1"
	}
	return claim
}

func checkClaim(t *testing.T, claim ledger.Claim, err error) error {
	if err == nil && (string(claim.Entry.Body) != body || claim.Generation == 0 || claim.Generation != claim.Entry.Generation || claim.Token != mine) {
		t.Errorf("claim = %+v", claim)
	}
	return err
}

var errFound = errors.New("found")

// answer is the table's word for how a call ended.
func answer(operation string, err error) string {
	var (
		held    *ledger.HeldError
		suspect *ledger.SuspectError
		settled *ledger.SettledError
	)
	switch {
	case err == nil && operation == "record":
		return "new"
	case err == nil:
		return "ok"
	case errors.Is(err, errFound):
		return "found"
	case errors.As(err, &held):
		return "HeldError"
	case errors.As(err, &suspect):
		return "SuspectError"
	case errors.As(err, &settled):
		return "SettledError"
	case errors.Is(err, ledger.ErrNotFound):
		return "ErrNotFound"
	case errors.Is(err, ledger.ErrStatus):
		return "ErrStatus"
	case errors.Is(err, ledger.ErrLeaseLost):
		return "ErrLeaseLost"
	case errors.Is(err, ledger.ErrConflict):
		return "ErrConflict"
	default:
		return "error: " + err.Error()
	}
}

type line struct {
	state, operation, becomes, answer string
	writes                            []string
}

// readTable reads the table of the package documentation.
func readTable(t *testing.T) []line {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "//\tstate      operation  becomes     answer        writes\n")
	if !ok {
		t.Fatal("doc.go has no table")
	}
	table, _, _ = strings.Cut(table, "\n// ") // text again
	var lines []line
	for _, text := range strings.Split(table, "\n") {
		words := strings.Fields(strings.TrimPrefix(text, "//"))
		if len(words) == 0 {
			continue
		}
		if len(words) < 4 {
			t.Fatalf("doc.go: a line of the table is short: %q", text)
		}
		lines = append(lines, line{words[0], words[1], words[2], words[3], words[4:]})
	}
	return lines
}

func TestStoreDoesWhatTheTableSays(t *testing.T) {
	t.Parallel()
	lines := readTable(t)
	find := func(state, operation string) line {
		var rest *line
		for i, l := range lines {
			if l.operation == operation && l.state == state {
				return l
			}
			if l.operation == operation && l.state == "other" {
				rest = &lines[i]
			}
		}
		if rest == nil {
			t.Fatalf("the table says nothing of %s in state %s", operation, state)
		}
		return *rest
	}
	for _, l := range lines {
		if _, ok := states()[l.state]; !ok && l.state != "other" {
			t.Errorf("the table has an unknown state %s", l.state)
		}
		if operations[l.operation] == nil {
			t.Errorf("the table has an unknown operation %s", l.operation)
		}
	}
	tried := 0
	for operation := range operations {
		for state := range states() {
			for fate, faults := range map[string][]fault{
				"applied": nil, "reply lost": {loseReply}, "all replies lost": {loseReply, loseReply, loseReply},
				"not applied": {refuse, refuse, refuse},
			} {
				tried++
				t.Run(fmt.Sprintf("%s %s %s", state, operation, fate), func(t *testing.T) {
					t.Parallel()
					tryLine(t, find(state, operation), state, operation, faults)
				})
			}
		}
	}
	if tried != 660 { // 11 states, 15 operations, 4 fates
		t.Errorf("tried %d, want 660", tried)
	}
}

func tryLine(t *testing.T, l line, state, operation string, faults []fault) {
	w := newWorld(t)
	before := states()[state]
	if before != nil {
		w.put(t, before)
	}
	w.wire.script(false, faults...)
	err := operations[operation](t, w, state, false)
	if len(faults) == 3 { // the SDK gives up after three
		if !strings.HasPrefix(answer(operation, err), "error: ") {
			t.Errorf("with a broken wire: %v, want an error of the wire", err)
		}
		if faults[0] == refuse {
			if diff := cmp.Diff(before, w.row(t, ledgerTable, string(key)), opaque()); diff != "" {
				t.Errorf("not applied, but changed:\n%s", diff)
			}
		}
		err = operations[operation](t, w, state, true)
	}
	if got := answer(operation, err); got != l.answer {
		t.Errorf("answer %s, want %s", got, l.answer)
	}
	after := w.row(t, ledgerTable, string(key))
	checkWrites(t, l, before, after)

	counter := w.row(t, rowsTable, "counter")
	if operation == "step" && l.answer == "ok" {
		if !same(counter["n"], N(1)) {
			t.Errorf("the effect's row is %v, want it applied once", counter)
		}
	} else if counter != nil {
		t.Errorf("an effect was applied: %v", counter)
	}
}

func checkWrites(t *testing.T, l line, before, after item) {
	t.Helper()
	if len(l.writes) == 0 {
		if l.becomes != "=" {
			t.Fatalf("the table has a change of state without writes: %+v", l)
		}
		if diff := cmp.Diff(before, after, opaque()); diff != "" {
			t.Errorf("nothing may change:\n%s", diff)
		}
		return
	}
	want := l.becomes
	if status, ok := before["status"].(*types.AttributeValueMemberS); ok && want == "=" {
		want = status.Value
	}
	if !same(after["status"], S(want)) {
		t.Errorf("status %v, want %s", after["status"], want)
	}
	if slices.Equal(l.writes, []string{"all"}) {
		if diff := cmp.Diff(item{
			"pk": S("stripe#-#evt_1"), "status": S("recorded"), "type": S("invoice.paid"), "created_s": N(1767225000),
			"group": S("cus_1"), "origin": S("webhook"), "livemode": T(), "api_version": S("2025-08-27.basil"),
			"object_id": S("in_1"), "codec": S("raw"), "body": B(body), "recorded_ms": N(1767225600000),
			"open": S("todo#2"), "token": S("delivery-1"),
		}, after, opaque()); diff != "" {
			t.Errorf("the item is not as recorded:\n%s", diff)
		}
		return
	}
	listed := map[string]bool{}
	for _, name := range l.writes {
		switch {
		case strings.HasPrefix(name, "-"):
			name = name[1:]
			if after[name] != nil {
				t.Errorf("%s is still there", name)
			}
		case strings.HasSuffix(name, "+"):
			name = strings.TrimSuffix(name, "+")
			if got, was := numberOf(after[name]), numberOf(before[name]); got != was+1 {
				t.Errorf("%s went from %d to %d", name, was, got)
			}
		default:
			if after[name] == nil {
				t.Errorf("%s is not there", name)
			}
		}
		listed[name] = true
	}
	for name := range merge(before, after) {
		if !listed[name] && !same(before[name], after[name]) {
			t.Errorf("%s changed from %v to %v", name, before[name], after[name])
		}
	}
}

func numberOf(v types.AttributeValue) int64 {
	if v, ok := v.(*types.AttributeValueMemberN); ok {
		n, _ := strconv.ParseInt(v.Value, 10, 64)
		return n
	}
	return 0
}
