package handlertest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stripe/stripe-go/v82"

	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
)

func paid(_ context.Context, _ handler.Event, invoice *stripe.Invoice) ([]handler.Effect, error) {
	if invoice.AmountPaid == 0 {
		return nil, handler.Skip("nothing was paid")
	}
	return []handler.Effect{handler.Once{Table: "paid", Add: map[string]int64{"cents": invoice.AmountPaid}}}, nil
}

func TestRunUsesTheCatalogsSample(t *testing.T) {
	t.Parallel()
	got := handlertest.Run(t, paid, "invoice.paid")
	if got.Err != nil || len(got.Effects) != 1 {
		t.Fatalf("got %+v, want one effect", got)
	}
}

func TestObjectReplacesTheSamples(t *testing.T) {
	t.Parallel()
	got := handlertest.Run(t, paid, "invoice.paid", handlertest.Object(`{"id":"in_1","amount_paid":0}`))
	if got.Outcome.Verdict != handler.Skips || got.Outcome.Text != "nothing was paid" {
		t.Fatalf("got %+v, want a skip with its reason", got.Outcome)
	}
}

func TestBodyAndPreviousReachTheHandler(t *testing.T) {
	t.Parallel()
	var seen handler.Event
	f := func(_ context.Context, e handler.Event, _ *stripe.Customer) ([]handler.Effect, error) {
		seen = e
		return nil, errors.New("no")
	}
	got := handlertest.Run(t, f, "customer.updated",
		handlertest.Body(`{"id":"evt_9","type":"customer.updated","created":7,"account":"acct_1","data":{"object":{"id":"cus_1"}}}`),
		handlertest.Previous(`{"name":"Old"}`),
		handlertest.With(func(e *handler.Event) { e.Replay = 3 }))
	if seen.Key != "stripe#acct_1#evt_9" || seen.CreatedS != 7 || string(seen.Previous) != `{"name":"Old"}` || seen.Replay != 3 {
		t.Fatalf("the handler saw %+v", seen)
	}
	if !got.Outcome.Charged || got.Outcome.Class != "error" {
		t.Fatalf("got %+v, want a charged error", got.Outcome)
	}
}

func TestRowsAreFoundByTableAndKey(t *testing.T) {
	t.Parallel()
	rows := handlertest.Rows{}
	rows.Put("billing", map[string]string{"pk": "a", "sk": "b"}, handler.Row{"n": int64(1)})
	row, err := rows.Get(t.Context(), "billing", map[string]string{"sk": "b", "pk": "a"})
	if err != nil || row["n"] != int64(1) {
		t.Fatalf("got %v, %v", row, err)
	}
	if row, _ := rows.Get(t.Context(), "billing", map[string]string{"pk": "b", "sk": "a"}); row != nil {
		t.Fatalf("another key found %v", row)
	}
}
