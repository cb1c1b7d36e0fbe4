package projection_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"backstop/internal/awslocal"
	"backstop/internal/handler"
	"backstop/internal/projection"
)

// asking is a fact that refetches the object when nobody can tell.
func (b *bundle) asking(id string, answer handler.Fresh, err error) handler.Project {
	p := b.fact(id, 100, 1)
	p.Refetch = func(context.Context) (handler.Fresh, error) { return answer, err }
	return p
}

func TestUndecidedTieIsRefetched(t *testing.T) {
	b := setup(t)
	b.apply("evt_1", b.fact("evt_1", 100, 1), projection.Applied)
	b.apply("evt_2", b.asking("evt_2", handler.Fresh{Set: handler.Row{"state": "truth"}}, nil), projection.Applied)
	b.want("truth")
	got := b.read()
	if got["order_unsure"] != nil || got["refetched"] != true {
		t.Errorf("the row is marked %v", got)
	}
	// The first event again is none of a later arrival.
	b.apply("evt_1", b.asking("evt_1", handler.Fresh{Set: handler.Row{"state": "wrong"}}, nil), projection.Stale)
	b.want("truth")
	// The second again holds a snapshot that may be older: the object is read again.
	b.apply("evt_2", b.asking("evt_2", handler.Fresh{Set: handler.Row{"state": "newer truth"}}, nil), projection.Applied)
	b.want("newer truth")
	b.apply("evt_2", b.asking("evt_2", handler.Fresh{}, handler.ErrNoRefetch), projection.Stale)
	b.want("newer truth")
	// The next second clears the mark.
	b.apply("evt_3", b.fact("evt_3", 101, 1), projection.Applied)
	if got := b.read(); got["refetched"] != nil || got["ties"] != nil {
		t.Errorf("the row is marked %v", got)
	}
}

func TestRefetchThatCannotBeMadeLeavesTheRowUnsure(t *testing.T) {
	b := setup(t)
	b.apply("evt_1", b.fact("evt_1", 100, 1), projection.Applied)
	b.apply("evt_2", b.asking("evt_2", handler.Fresh{}, fmt.Errorf("no key: %w", handler.ErrNoRefetch)), projection.AppliedUnsure)
	b.want("evt_2")
	// The earlier arrival again changes nothing.
	b.apply("evt_1", b.fact("evt_1", 100, 1), projection.Stale)
	b.want("evt_2")
	if got := b.read(); got["order_unsure"] != true {
		t.Errorf("the row is marked %v", got)
	}
}

func TestRefetchThatFailsChangesNothing(t *testing.T) {
	b := setup(t)
	b.apply("evt_1", b.fact("evt_1", 100, 1), projection.Applied)
	down := errors.New("down")
	if _, err := b.store.Apply(t.Context(), "stripe#-#evt_2", b.asking("evt_2", handler.Fresh{}, down)); !errors.Is(err, down) {
		t.Fatalf("got %v", err)
	}
	b.want("evt_1")
}

func TestRefetchedEndIsTerminal(t *testing.T) {
	b := setup(t)
	b.apply("evt_1", b.fact("evt_1", 100, 1), projection.Applied)
	b.apply("evt_2", b.asking("evt_2", handler.Fresh{Set: handler.Row{"state": "over"}, Terminal: true}, nil), projection.Applied)
	b.apply("evt_3", b.fact("evt_3", 101, 1), projection.Stale)
	b.want("over")
	facts := projection.Facts(b.read())
	want := []projection.Standing{{EventKey: "stripe#-#evt_2", CreatedS: 100, Terminal: true, Refetched: true, TiedEvents: []string{"evt_1"}}}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

// leading is a fact that another follows from.
func (b *bundle) leading(id string, created int64) handler.Project {
	p := b.fact(id, created, 1)
	p.Then = func(_ context.Context, set handler.Row) ([]handler.Project, error) {
		follow := b.fact(id, created, 1)
		follow.Key = map[string]string{"pk": "cus_1", "sk": "follows"}
		follow.Set = handler.Row{"of": set["state"]}
		return []handler.Project{follow}, nil
	}
	return p
}

func (b *bundle) followed(want any) {
	b.Helper()
	got, err := b.store.Get(b.Context(), b.table, map[string]string{"pk": "cus_1", "sk": "follows"})
	if err != nil || got["of"] != want {
		b.Errorf("what follows says %v, %v; want %v", got["of"], err, want)
	}
}

func TestWhatFollowsIsWrittenOnlyAfterAFactThatStands(t *testing.T) {
	b := setup(t)
	b.apply("evt_2", b.leading("evt_2", 101), projection.Applied)
	b.followed("evt_2")
	b.apply("evt_1", b.leading("evt_1", 100), projection.Stale)
	b.followed("evt_2")
	older := b.leading("evt_0", 101)
	older.Decide = func(context.Context, handler.Stored) (handler.Decision, error) { return handler.Older, nil }
	b.apply("evt_0", older, projection.Stale)
	b.followed("evt_2")
	b.apply("evt_3", b.leading("evt_3", 102), projection.Applied)
	b.followed("evt_3")
}

func TestWhatFollowsIsWrittenByTheRetryAfterAFailureBetween(t *testing.T) {
	b := setup(t)
	b.faults = []awslocal.Fault{{}, {Kind: awslocal.Refuse, Code: "AccessDeniedException"}}
	if _, err := b.store.Apply(t.Context(), "stripe#-#evt_1", b.leading("evt_1", 100)); err == nil {
		t.Fatal("no error though what follows was not written")
	}
	b.want("evt_1")
	b.followed(nil)
	b.apply("evt_1", b.leading("evt_1", 100), projection.Applied)
	b.followed("evt_1")
}

func TestWhatFollowsSeesTheRefetchedObject(t *testing.T) {
	b := setup(t)
	b.apply("evt_1", b.fact("evt_1", 100, 1), projection.Applied)
	p := b.leading("evt_2", 100)
	p.Refetch = func(context.Context) (handler.Fresh, error) {
		return handler.Fresh{Set: handler.Row{"state": "truth"}}, nil
	}
	b.apply("evt_2", p, projection.Applied)
	b.followed("truth")
}

func TestRowsAreReadByPartitionIndexAndKey(t *testing.T) {
	b := setup(t)
	put := func(pk, sk string, set handler.Row) {
		p := b.fact("evt_1", 100, 1)
		p.Key, p.Set = map[string]string{"pk": pk, "sk": sk}, set
		b.apply("evt_1", p, projection.Applied)
	}
	put("a", "x#1", handler.Row{"n": int64(1), "gsi1pk": "g", "gsi1sk": "k#1"})
	put("a", "x#2", handler.Row{"n": int64(2), "gsi1pk": "g", "gsi1sk": "k#2"})
	put("a", "y#3", handler.Row{"n": int64(3), "gsi1pk": "g", "gsi1sk": "l#3"})
	put("b", "x#4", handler.Row{"n": int64(4)})
	numbers := func(rows []handler.Row, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var list []any
		for _, r := range rows {
			list = append(list, r["n"])
		}
		return fmt.Sprint(list)
	}
	if got := numbers(b.store.Partition(t.Context(), b.table, "a", "x#")); got != "[1 2]" {
		t.Errorf("the partition's prefix holds %s", got)
	}
	if got := numbers(b.store.Partition(t.Context(), b.table, "a", "")); got != "[1 2 3]" {
		t.Errorf("the partition holds %s", got)
	}
	var keys []string
	for after := ""; ; {
		rows, next, err := b.store.Index(t.Context(), b.table, "g", "k#", after, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			keys = append(keys, r["sk"].(string))
		}
		if after = next; after == "" {
			break
		}
	}
	if fmt.Sprint(keys) != "[x#1 x#2]" {
		t.Errorf("the index holds %v", keys)
	}
	rows, err := b.store.Rows(t.Context(), b.table, []map[string]string{{"pk": "b", "sk": "x#4"}, {"pk": "none", "sk": "x"}})
	if got := numbers(rows, err); got != "[4]" {
		t.Errorf("the rows are %s", got)
	}
}

func TestMoreRowsThanABatchTakesAreRead(t *testing.T) {
	b := setup(t)
	var keys []map[string]string
	for i := range 130 {
		key := map[string]string{"pk": fmt.Sprint(i), "sk": "x"}
		p := b.fact("evt_1", 100, 1)
		p.Key = key
		b.apply("evt_1", p, projection.Applied)
		keys = append(keys, key)
	}
	rows, err := b.store.Rows(t.Context(), b.table, keys)
	if err != nil || len(rows) != 130 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
