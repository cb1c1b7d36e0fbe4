package projection_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"backstop/internal/awsclient"
	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/handler"
	"backstop/internal/projection"
)

// bundle is a store over the local DynamoDB.
type bundle struct {
	*testing.T
	store *projection.Store
	table string

	mu     sync.Mutex
	faults []awslocal.Fault
	writes int
}

var row = map[string]string{"pk": "cus_1", "sk": "sub_1"}

func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	b := &bundle{T: t}
	server := awslocal.New(awslocal.Options{})
	names, err := stack.Create(t.Context(), awslocal.Config(&awslocal.Transport{Server: server}), "test")
	if err != nil {
		t.Fatal(err)
	}
	cfg := awslocal.Config(&awslocal.Transport{Server: server, Intercept: func(c *awslocal.Call) awslocal.Fault {
		b.mu.Lock()
		defer b.mu.Unlock()
		if c.Action == "UpdateItem" {
			b.writes++
		}
		if len(b.faults) == 0 {
			return awslocal.Fault{}
		}
		f := b.faults[0]
		b.faults = b.faults[1:]
		return f
	}})
	cfg.Retryer = awsclient.Retryer(func() float64 { return 0 })
	b.store, b.table = projection.New(dynamodb.NewFromConfig(cfg)), names.BillingTable
	return b
}

// fact is a fact of event id that sets state to it.
func (b *bundle) fact(id string, created int64, rank int) handler.Project {
	return handler.Project{Table: b.table, Key: row, Set: handler.Row{"state": id},
		Version: handler.Version{CreatedS: created, Rank: rank, EventID: id}}
}

func (b *bundle) apply(id string, p handler.Project, want projection.Result) {
	b.Helper()
	got, err := b.store.Apply(b.Context(), "stripe#-#"+id, p)
	if err != nil || got != want {
		b.Fatalf("applying %s: result %d, %v; want %d", id, got, err, want)
	}
}

func (b *bundle) read() handler.Row {
	b.Helper()
	got, err := b.store.Get(b.Context(), b.table, row)
	if err != nil {
		b.Fatal(err)
	}
	return got
}

func (b *bundle) want(state string) {
	b.Helper()
	if got := b.read()["state"]; got != state {
		b.Errorf("the row holds %v, want %s", got, state)
	}
}

func TestNewerFactIsAppliedInOneWrite(t *testing.T) {
	b := setup(t)
	b.apply("evt_1", b.fact("evt_1", 100, 1), projection.Applied)
	b.apply("evt_2", b.fact("evt_2", 101, 0), projection.Applied)
	b.want("evt_2")
	if b.writes != 2 {
		t.Errorf("%d writes, want 2", b.writes)
	}
}

func TestOlderFactIsDropped(t *testing.T) {
	b := setup(t)
	b.apply("evt_2", b.fact("evt_2", 101, 0), projection.Applied)
	b.apply("evt_1", b.fact("evt_1", 100, 9), projection.Stale)
	b.want("evt_2")
}

func TestRankDecidesWithinASecond(t *testing.T) {
	b := setup(t)
	b.apply("evt_updated", b.fact("evt_updated", 100, 1), projection.Applied)
	b.apply("evt_created", b.fact("evt_created", 100, 0), projection.Stale)
	b.apply("evt_deleted", b.fact("evt_deleted", 100, 2), projection.Applied)
	b.want("evt_deleted")
	if _, tied := b.read()["ties"]; tied {
		t.Error("events of other ranks count as ties")
	}
}

func TestSameEventIsAppliedAgain(t *testing.T) {
	b := setup(t)
	b.apply("evt_1", b.fact("evt_1", 100, 1), projection.Applied)
	again := b.fact("evt_1", 100, 1)
	again.Set = handler.Row{"state": "mended"}
	b.apply("evt_1", again, projection.Applied)
	b.want("mended")
}

func TestLostReplyMeetsItsOwnFact(t *testing.T) {
	b := setup(t)
	b.faults = []awslocal.Fault{{Kind: awslocal.ReplyLost}}
	b.apply("evt_1", b.fact("evt_1", 100, 1), projection.Applied)
	b.want("evt_1")
}

func TestNothingButATerminalFactIsNewerThanATerminalOne(t *testing.T) {
	for _, order := range [][]string{{"live", "canceled", "later"}, {"later", "canceled", "live"}, {"canceled", "later", "live"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			b := setup(t)
			facts := map[string]handler.Project{"live": b.fact("live", 100, 1), "canceled": b.fact("canceled", 101, 1), "later": b.fact("later", 105, 1)}
			terminal := facts["canceled"]
			terminal.Terminal = true
			facts["canceled"] = terminal
			for _, id := range order {
				if _, err := b.store.Apply(t.Context(), "stripe#-#"+id, facts[id]); err != nil {
					t.Fatal(err)
				}
			}
			b.want("canceled")
			b.apply("canceled", facts["canceled"], projection.Applied) // a replay
		})
	}
}

func TestPartsOfARowHaveTheirOwnVersions(t *testing.T) {
	b := setup(t)
	intent := b.fact("evt_intent", 200, 1)
	intent.Part = "intent"
	charge := b.fact("evt_charge", 100, 1)
	charge.Part, charge.Set = "charge", handler.Row{"charge": "ch_1"}
	b.apply("evt_intent", intent, projection.Applied)
	b.apply("evt_charge", charge, projection.Applied)
	if got := b.read(); got["state"] != "evt_intent" || got["charge"] != "ch_1" {
		t.Errorf("the row is %v", got)
	}
}

func TestValuesComeBackAndNilRemoves(t *testing.T) {
	b := setup(t)
	p := b.fact("evt_1", 100, 1)
	p.Set = handler.Row{"text": "é", "yes": true, "cents": int64(9007199254740993), "gsi1pk": "x",
		"list": []any{"a", int64(1), nil}, "map": map[string]any{"k": int64(-2)}}
	b.apply("evt_1", p, projection.Applied)
	p = b.fact("evt_2", 101, 1)
	p.Set = handler.Row{"gsi1pk": nil}
	b.apply("evt_2", p, projection.Applied)
	want := handler.Row{"pk": "cus_1", "sk": "sub_1", "text": "é", "yes": true, "cents": int64(9007199254740993),
		"list": []any{"a", int64(1), nil}, "map": map[string]any{"k": int64(-2)}, "fact": "000000000010101#stripe#-#evt_2"}
	if diff := cmp.Diff(want, b.read()); diff != "" {
		t.Errorf("the row (-want +got):\n%s", diff)
	}
}

func TestFloatIsRefused(t *testing.T) {
	b := setup(t)
	p := b.fact("evt_1", 100, 1)
	p.Set = handler.Row{"cents": 1.5}
	if _, err := b.store.Apply(t.Context(), "stripe#-#evt_1", p); err == nil {
		t.Error("a float was stored")
	}
	if got := b.read(); got != nil {
		t.Errorf("the row is %v", got)
	}
}

// tie is a fact of second 100 whose order Decide knows: by the number in order, later is newer; 0 is unknown.
func (b *bundle) tie(id string, order map[string]int, asked *[]handler.Stored) handler.Project {
	p := b.fact(id, 100, 1)
	p.Decide = func(_ context.Context, s handler.Stored) (handler.Decision, error) {
		if asked != nil {
			*asked = append(*asked, s)
		}
		mine, theirs := order[id], order[s.Version.EventID]
		switch {
		case mine == 0 || theirs == 0 || len(s.Ties) > 0:
			return handler.Unsure, nil
		case mine > theirs:
			return handler.Newer, nil
		}
		return handler.Older, nil
	}
	return p
}

func TestTieIsDecidedTheSameInBothOrders(t *testing.T) {
	order := map[string]int{"evt_a": 1, "evt_b": 2}
	for _, ids := range [][]string{{"evt_a", "evt_b"}, {"evt_b", "evt_a"}} {
		t.Run(fmt.Sprint(ids), func(t *testing.T) {
			b := setup(t)
			for _, id := range ids {
				if _, err := b.store.Apply(t.Context(), "stripe#-#"+id, b.tie(id, order, nil)); err != nil {
					t.Fatal(err)
				}
			}
			b.want("evt_b")
			if projection.Unsure(b.read()) {
				t.Error("the row is marked although the tie was decided")
			}
			if diff := cmp.Diff([]any{"evt_a"}, b.read()["ties"]); diff != "" {
				t.Errorf("ties (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUndecidedTieKeepsTheLaterArrivalAndMarksTheRow(t *testing.T) {
	b := setup(t)
	b.apply("evt_a", b.fact("evt_a", 100, 1), projection.Applied)
	b.apply("evt_b", b.fact("evt_b", 100, 1), projection.AppliedUnsure) // no Decide
	b.want("evt_b")
	if got := b.read(); got["order_unsure"] != true || !projection.Unsure(got) {
		t.Errorf("the row is not marked: %v", got)
	}
	b.apply("evt_c", b.fact("evt_c", 101, 1), projection.Applied)
	if got := b.read(); projection.Unsure(got) || got["ties"] != nil {
		t.Errorf("a newer second did not clear the mark: %v", got)
	}
}

func TestThirdEventOfASecondIsSeenAsOneThoughTheSecondWasDropped(t *testing.T) {
	b := setup(t)
	order := map[string]int{"evt_a": 1, "evt_b": 2, "evt_c": 3}
	var asked []handler.Stored
	b.apply("evt_b", b.tie("evt_b", order, nil), projection.Applied)
	b.apply("evt_a", b.tie("evt_a", order, nil), projection.Stale)
	b.apply("evt_a", b.tie("evt_a", order, &asked), projection.Stale) // again: it is no third of itself
	b.apply("evt_c", b.tie("evt_c", order, &asked), projection.AppliedUnsure)
	if len(asked) != 2 || len(asked[0].Ties) != 0 || len(asked[1].Ties) != 1 || asked[1].Ties[0] != "evt_a" {
		t.Errorf("Decide saw %+v", asked)
	}
	if s := asked[1]; s.EventKey != "stripe#-#evt_b" || s.Version != (handler.Version{CreatedS: 100, Rank: 1, EventID: "evt_b"}) || s.Row["state"] != "evt_b" {
		t.Errorf("Decide saw the stored fact as %+v", s)
	}
}

func TestDecisionThatFailsIsAnErrorAndChangesNothing(t *testing.T) {
	b := setup(t)
	b.apply("evt_a", b.fact("evt_a", 100, 1), projection.Applied)
	p := b.fact("evt_b", 100, 1)
	down := errors.New("Stripe is down")
	p.Decide = func(context.Context, handler.Stored) (handler.Decision, error) { return 0, down }
	if _, err := b.store.Apply(t.Context(), "stripe#-#evt_b", p); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	b.want("evt_a")
}

func TestRowThatMovesBetweenDecisionAndWriteIsDecidedAgain(t *testing.T) {
	b := setup(t)
	b.apply("evt_a", b.fact("evt_a", 100, 1), projection.Applied)
	p := b.fact("evt_b", 100, 1)
	asked := 0
	p.Decide = func(context.Context, handler.Stored) (handler.Decision, error) {
		if asked++; asked == 1 {
			b.apply("evt_newer", b.fact("evt_newer", 101, 1), projection.Applied)
		}
		return handler.Newer, nil
	}
	b.apply("evt_b", p, projection.Stale)
	b.want("evt_newer")
}

func TestRowThatNeverStandsStillIsAnUnchargedError(t *testing.T) {
	b := setup(t)
	b.apply("evt_0", b.fact("evt_0", 100, 1), projection.Applied)
	p := b.fact("evt_b", 100, 1)
	n := 0
	p.Decide = func(context.Context, handler.Stored) (handler.Decision, error) {
		n++
		id := fmt.Sprintf("evt_%d", n)
		b.apply(id, b.fact(id, 100, 1), projection.AppliedUnsure)
		return handler.Newer, nil
	}
	_, err := b.store.Apply(t.Context(), "stripe#-#evt_b", p)
	if !errors.Is(err, projection.ErrContended) || handler.Classify(err).Charged {
		t.Errorf("got %v after %d decisions", err, n)
	}
}

func TestVersionOutOfRangeIsRefused(t *testing.T) {
	b := setup(t)
	for _, p := range []handler.Project{b.fact("evt_1", -1, 0), b.fact("evt_1", 1_000_000_000_000, 0), b.fact("evt_1", 1, 100)} {
		if _, err := b.store.Apply(t.Context(), "stripe#-#evt_1", p); err == nil {
			t.Errorf("version %+v was taken", p.Version)
		}
	}
}

// TestAnyOrderOfArrivalEndsInTheSameRow is the promise: facts that differ in second, rank or by being terminal.
func TestAnyOrderOfArrivalEndsInTheSameRow(t *testing.T) {
	b := setup(t)
	facts := []handler.Project{b.fact("e0", 100, 0), b.fact("e1", 100, 1), b.fact("e2", 101, 1), b.fact("e3", 102, 1), b.fact("e4", 103, 1)}
	facts[3].Terminal = true
	orders := 0
	permute(len(facts), func(order []int) {
		orders++
		key := map[string]string{"pk": "cus_1", "sk": fmt.Sprint(order)}
		for _, i := range append(order, order[0], order[2]) { // with duplicates
			p := facts[i]
			p.Key = key
			if _, err := b.store.Apply(t.Context(), fmt.Sprintf("stripe#-#e%d", i), p); err != nil {
				t.Fatal(err)
			}
		}
		got, err := b.store.Get(t.Context(), b.table, key)
		if err != nil || got["state"] != "e3" {
			t.Fatalf("order %v ends in %v (%v), want the terminal e3", order, got, err)
		}
	})
	if orders != 120 {
		t.Errorf("%d orders, want 120", orders)
	}
}

func permute(n int, visit func([]int)) {
	var walk func(chosen []int, used int)
	walk = func(chosen []int, used int) {
		if len(chosen) == n {
			visit(chosen)
			return
		}
		for i := range n {
			if used&(1<<i) == 0 {
				walk(append(chosen[:len(chosen):len(chosen)], i), used|1<<i)
			}
		}
	}
	walk(nil, 0)
}
