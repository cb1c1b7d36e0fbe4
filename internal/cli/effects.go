package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"backstop/internal/handler"
	"backstop/internal/journal"
	"backstop/internal/ledger"
	"backstop/internal/projection"
)

// effects is what became of a set of events, counted from the ledger and from the rows the handlers wrote.
type effects struct {
	Done     int      `json:"done"`
	Skipped  int      `json:"skipped"`
	Parked   int      `json:"parked"`
	Open     int      `json:"open"`
	Absent   int      `json:"absent"`
	Once     int      `json:"applied_once"`
	Lost     []string `json:"lost,omitempty"`    // done, but without an effect
	Doubled  []string `json:"doubled,omitempty"` // with an effect more than once
	WaitedMS float64  `json:"waited_ms"`
}

func (f *effects) trouble() bool {
	return f.Open > 0 || f.Absent > 0 || f.Parked > 0 || len(f.Lost) > 0 || len(f.Doubled) > 0
}

func (f *effects) print(w io.Writer) {
	fmt.Fprintf(w, "settled: %d done, %d skipped, %d parked", f.Done, f.Skipped, f.Parked)
	if f.Open+f.Absent > 0 {
		fmt.Fprintf(w, "; %d still open, %d not in the ledger", f.Open, f.Absent)
	}
	fmt.Fprintf(w, "\neffects: %d events took effect once, %d lost, %d doubled (counted from the rows the handlers wrote)\n",
		f.Once, len(f.Lost), len(f.Doubled))
	for _, list := range []struct {
		what string
		keys []string
	}{{"lost", f.Lost}, {"doubled", f.Doubled}} {
		for _, key := range list.keys[:min(5, len(list.keys))] {
			fmt.Fprintf(w, "  %s: %s\n", list.what, key)
		}
	}
}

// settlePoll is how often the ledger is asked while waiting: often enough for a person, seldom enough not to be the
// load it watches.
const settlePoll = 500 * time.Millisecond

// awaitEffects waits until all keys are settled, or for timeout, and counts.
func awaitEffects(ctx context.Context, t *target, keys []string, timeout time.Duration, progress func(settled int)) (*effects, error) {
	db := dynamodb.NewFromConfig(t.AWS)
	store := ledger.New(db, t.LedgerTable, time.Now)
	distinct := slices.Compact(slices.Sorted(slices.Values(keys)))
	open := make([]ledger.Key, len(distinct))
	for i, key := range distinct {
		open[i] = ledger.Key(key)
	}
	start := time.Now()
	f := &effects{}
	var done []ledger.Key
	for {
		entries, err := store.BatchGet(ctx, open)
		if err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
		var left []ledger.Key
		f.Open, f.Absent = 0, 0
		for _, key := range open {
			entry, found := entries[key]
			switch {
			case !found:
				f.Absent++
				left = append(left, key)
			case entry.Status == ledger.Done:
				f.Done++
				done = append(done, key)
			case entry.Status == ledger.Skipped:
				f.Skipped++
			case entry.Status == ledger.Parked:
				f.Parked++
			default:
				f.Open++
				left = append(left, key)
			}
		}
		open = left
		progress(len(distinct) - len(open))
		if len(open) == 0 || time.Since(start) > timeout {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(settlePoll):
		}
	}
	f.WaitedMS = milliseconds(time.Since(start))
	return f, f.count(ctx, projection.New(db), t.BillingTable, done)
}

// count reads how often each settled event took effect.
func (f *effects) count(ctx context.Context, rows handler.Table, table string, done []ledger.Key) error {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(8)
	for _, key := range done {
		group.Go(func() error {
			applied, err := journal.Applied(ctx, rows, table, string(key))
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case applied == 0:
				f.Lost = append(f.Lost, string(key))
			case applied > 1:
				f.Doubled = append(f.Doubled, string(key))
			default:
				f.Once++
			}
			return nil
		})
	}
	err := group.Wait()
	slices.Sort(f.Lost)
	slices.Sort(f.Doubled)
	return err
}
