package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"backstop/internal/config"
	"backstop/internal/ledger"
	"backstop/internal/projection"
	"backstop/internal/sender"
	"backstop/internal/tally"
)

// awaitEffects waits until the local stack has settled the events and counts what they did; nil: it is paused.
func (e *env) awaitEffects(ctx context.Context, list []sender.Event, patience time.Duration) (*tally.Tally, error) {
	t, err := e.target(ctx, config.LedgerTable, config.BillingTable)
	if err != nil {
		return nil, err
	}
	if paused, err := t.paused(ctx); err == nil && paused != nil {
		fmt.Fprintf(e.Err, "not waiting for effects: processing is paused by %s (%s); `backstop resume` goes on\n", paused.By, paused.Why)
		return nil, nil
	}
	db := dynamodb.NewFromConfig(t.AWS)
	counter := tally.Counter{Ledger: ledger.New(db, t.LedgerTable, e.now), Rows: projection.New(db), BillingTable: t.BillingTable}
	keys := make([]string, len(list))
	for i, event := range list {
		keys[i] = event.Key
	}
	bar := e.bar(len(list), "settling")
	found, err := counter.Await(ctx, keys, patience, func(settled int) { _ = bar.Set(settled) })
	_ = bar.Finish()
	return &found, err
}

func printTally(w io.Writer, t tally.Tally) {
	fmt.Fprintf(w, "settled: %d done, %d skipped, %d parked", t.Done, t.Skipped, t.Parked)
	if t.Open+t.Absent > 0 {
		fmt.Fprintf(w, "; %d still open, %d not in the ledger", t.Open, t.Absent)
	}
	fmt.Fprintf(w, "\neffects: %s took effect once, %d lost, %d doubled (counted from the rows the handlers wrote)\n",
		count(t.Once, "event"), len(t.Lost), len(t.Doubled))
	for _, list := range []struct {
		what string
		keys []string
	}{{"lost", t.Lost}, {"doubled", t.Doubled}} {
		for _, key := range list.keys[:min(5, len(list.keys))] {
			fmt.Fprintf(w, "  %s: %s\n", list.what, eventID(key))
		}
	}
}
