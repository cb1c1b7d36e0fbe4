package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"backstop/internal/ledger"
)

// fill records n entries, one a second.
func fill(t *testing.T, w *world, n int) []ledger.Key {
	t.Helper()
	var keys []ledger.Key
	for i := range n {
		w.at(start.Add(time.Duration(i) * time.Second))
		k := ledger.Key(fmt.Sprintf("stripe#acct_1#evt_%04d", i))
		if _, err := w.store.Record(t.Context(), ledger.Recording{Key: k, Account: "acct_1", Type: "invoice.paid", Body: []byte(body), Token: "d"}); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	return keys
}

func TestOpenPagesOldestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := fill(t, w, 60)
	todo, parked := ledger.Partitions()
	if !slices.Equal(todo, []string{"todo#0", "todo#1", "todo#2", "todo#3"}) || !slices.Equal(parked, []string{"parked#0", "parked#1", "parked#2", "parked#3"}) {
		t.Fatalf("partitions %v %v", todo, parked)
	}
	var found []ledger.Key
	for _, partition := range todo {
		var cursor ledger.Cursor
		last := int64(0)
		for pages := 0; ; pages++ {
			list, next, err := w.store.Open(t.Context(), partition, cursor, 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range list {
				if o.RecordedMS <= last {
					t.Errorf("%s: %d after %d", partition, o.RecordedMS, last)
				}
				last = o.RecordedMS
				found = append(found, o.Key)
			}
			if cursor = next; cursor == "" {
				if pages == 0 {
					t.Errorf("%s fits one page: the entries are not spread", partition)
				}
				break
			}
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, keys) {
		t.Errorf("found %d entries of %d", len(found), len(keys))
	}
	if _, _, err := w.store.Open(t.Context(), "todo#0", "nonsense", 4); err == nil {
		t.Error("took nonsense for a cursor")
	}
}

func TestOpenCountsWhatIsNotSettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if counts, err := w.store.OpenCounts(t.Context()); err != nil || counts != (ledger.Counts{}) {
		t.Errorf("empty: %+v, %v", counts, err)
	}
	keys := fill(t, w, 20)
	for i, status := range []ledger.Status{ledger.Done, ledger.Skipped, ledger.Parked, ledger.Parked, ledger.Parked} {
		c, err := w.store.Claim(t.Context(), ledger.Claiming{Key: keys[i], Token: "m", Until: start.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: status}); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := w.store.OpenCounts(t.Context())
	if want := (ledger.Counts{Todo: 15, Parked: 3, OldestTodoMS: 1767225605000}); err != nil || counts != want {
		t.Errorf("%+v, %v; want %+v", counts, err, want)
	}
}

func TestBatchGetReadsAllWithoutBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger.WithRetention(time.Second))
	keys := fill(t, w, 230)
	c, err := w.store.Claim(t.Context(), ledger.Claiming{Key: keys[7], Token: "m", Until: start.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.Settle(t.Context(), c, ledger.Settlement{Status: ledger.Done}); err != nil {
		t.Fatal(err)
	}
	w.at(w.Now().Add(2 * time.Second)) // past its time to live
	found, err := w.store.BatchGet(t.Context(), append(slices.Clone(keys), keys[0], "stripe#-#evt_absent"))
	if err != nil {
		t.Fatal(err)
	}
	if _, there := found[keys[7]]; there || len(found) != 229 {
		t.Errorf("found %d, the expired one %t; want 229 and false", len(found), there)
	}
	if e := found[keys[3]]; e.Body != nil || e.Type != "invoice.paid" || e.EventID != "evt_0003" || e.Account != "acct_1" || e.Status != ledger.Recorded {
		t.Errorf("found %+v", e)
	}
}

func TestBatchGetAsksAgainForWhatWasNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replies := []string{
		`{"Responses":{"ledger":[{"pk":{"S":"a"},"status":{"S":"done"}}]},"UnprocessedKeys":{"ledger":{"Keys":[{"pk":{"S":"b"}}]}}}`,
		`{"Responses":{"ledger":[{"pk":{"S":"b"},"status":{"S":"parked"}}]},"UnprocessedKeys":{}}`,
		`{"Responses":{"ledger":[]},"UnprocessedKeys":{"ledger":{"Keys":[{"pk":{"S":"c"}}]}}}`,
	}
	w.wire.answer = func(_, _ string) (int, string) {
		reply := replies[0]
		replies = replies[1:]
		return 200, reply
	}
	found, err := w.store.BatchGet(t.Context(), []ledger.Key{"a", "b"})
	if err != nil || len(found) != 2 || found["b"].Status != ledger.Parked {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := w.store.BatchGet(t.Context(), []ledger.Key{"c"}); err == nil || !strings.Contains(err.Error(), "throttled") {
		t.Errorf("%v, want it throttled", err)
	}
}

func TestOpenCountsReadsEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	more := false
	w.wire.answer = func(_, request string) (int, string) {
		if !strings.Contains(request, "parked#") {
			return 200, `{"Count":0,"Items":[]}`
		}
		if more = !more; more {
			return 200, `{"Count":1000,"Items":[],"LastEvaluatedKey":{"pk":{"S":"a"},"open":{"S":"todo#0"},"recorded_ms":{"N":"1"}}}`
		}
		return 200, `{"Count":0,"Items":[]}`
	}
	counts, err := w.store.OpenCounts(t.Context())
	if err != nil || counts.Parked != 4000 { // of four partitions, two pages each
		t.Errorf("%+v, %v; want 4000 parked", counts, err)
	}
}

func TestListPagesThroughTheTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := fill(t, w, 25)
	w.put(t, states()["expired"])
	w.at(start)
	var found []ledger.Key
	var cursor ledger.Cursor
	keep := func(e ledger.Entry) bool { return e.Key != keys[3] }
	for {
		entries, next, err := w.store.List(t.Context(), keep, cursor, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			found = append(found, e.Key)
			if e.Body != nil {
				t.Errorf("%s came with its body", e.Key)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff(slices.Concat(keys[:3], keys[4:]), found); diff != "" {
		t.Error(diff)
	}
}

func TestAbsentEntryIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.store.Get(t.Context(), key); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}
