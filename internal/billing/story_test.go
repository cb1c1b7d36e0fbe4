package billing_test

import (
	"context"
	"encoding/json"
	"testing"

	"backstop/events"
	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
)

func stories(t testing.TB) []events.Story {
	t.Helper()
	list, err := events.Stories()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 10 {
		t.Fatalf("only %d stories", len(list))
	}
	return list
}

func TestStoriesInOrderEndInTheirFinalState(t *testing.T) {
	t.Parallel()
	for _, s := range stories(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			for _, body := range s.Events {
				w.send(string(body))
			}
			w.final(s, "")
		})
	}
}

// final checks that the rows of an account are the story's final state.
func (w *world) final(s events.Story, account string) {
	w.Helper()
	for kind, rows := range s.Final {
		for id, row := range rows {
			if kind == "entitlements" {
				w.entitled(account, id, row)
				continue
			}
			if got := w.objectOf(account, id); !holds(got, parse(w, string(row))) {
				w.Errorf("%s is %s\nwant %s", id, show(got), row)
			}
		}
	}
}

// entitled checks a customer's list, and that the index says the same of each entitlement of any story.
func (w *world) entitled(account, customer string, row json.RawMessage) {
	w.Helper()
	var want []string
	if err := json.Unmarshal(row, &want); err != nil {
		w.Fatal(err)
	}
	a, err := w.reader.Customer(context.Background(), account, customer)
	if err != nil {
		w.Fatal(err)
	}
	has := map[string]bool{}
	for _, key := range want {
		has[key] = true
	}
	if a.Entitlements == nil || len(a.Entitlements.Keys) != len(want) {
		w.Errorf("%s is entitled to %s, want %v", customer, show(a.Entitlements), want)
		return
	}
	for _, key := range []string{"reports", "exports", "priority_support"} {
		customers, _, err := w.reader.Entitled(context.Background(), account, key, "", 10)
		if err != nil {
			w.Fatal(err)
		}
		if (len(customers) == 1 && customers[0] == customer) != has[key] || len(customers) > 1 {
			w.Errorf("%s have %s, want it of %s: %v", customers, key, customer, has[key])
		}
	}
}

func storyEvents(t testing.TB, s events.Story) []handler.Event {
	t.Helper()
	list := make([]handler.Event, len(s.Events))
	for i, body := range s.Events {
		list[i] = handlertest.Event(t, body)
	}
	return list
}
