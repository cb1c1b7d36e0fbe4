// Package tally counts from outside what became of a set of events: their statuses from the ledger, and how often
// each took effect from the rows the journal handler wrote. It shares no code with what it counts but the two reads.
package tally

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"backstop/internal/handler"
	"backstop/internal/journal"
	"backstop/internal/ledger"
)

// Ledger reads entries.
type Ledger interface {
	BatchGet(ctx context.Context, keys []ledger.Key) (map[ledger.Key]ledger.Entry, error)
}

// Counter counts over one ledger and one billing table.
type Counter struct {
	Ledger       Ledger
	Rows         handler.Table
	BillingTable string
}

// Tally is what became of a set of events.
type Tally struct {
	Done    int      `json:"done"`
	Skipped int      `json:"skipped"`
	Parked  int      `json:"parked"`
	Open    int      `json:"open"`
	Absent  int      `json:"absent"` // not in the ledger
	Once    int      `json:"applied_once"`
	Lost    []string `json:"lost,omitempty"`    // done, but without an effect
	Doubled []string `json:"doubled,omitempty"` // with an effect more than once
}

// Clean reports whether every event is done or skipped, and none was lost or doubled.
func (t Tally) Clean() bool {
	return t.Open == 0 && t.Absent == 0 && t.Parked == 0 && len(t.Lost) == 0 && len(t.Doubled) == 0
}

// poll is how often the ledger is asked while waiting: often enough for a person, seldom enough not to be the load it
// watches.
const poll = 500 * time.Millisecond

// Await counts as soon as every event is settled, or when patience has passed. progress, when set, hears how many are
// settled. Keys may stand twice; they count once.
func (c Counter) Await(ctx context.Context, keys []string, patience time.Duration, progress func(settled int)) (Tally, error) {
	distinct := slices.Compact(slices.Sorted(slices.Values(keys)))
	open := make([]ledger.Key, len(distinct))
	for i, key := range distinct {
		open[i] = ledger.Key(key)
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var t Tally
	var done []ledger.Key
	for waiting := true; waiting; {
		entries, err := c.Ledger.BatchGet(ctx, open)
		if err != nil {
			return Tally{}, fmt.Errorf("read the ledger: %w", err)
		}
		open = t.sort(open, entries, &done)
		if progress != nil {
			progress(len(distinct) - len(open))
		}
		if len(open) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return Tally{}, ctx.Err()
		case <-over.C:
			waiting = false
		case <-ticker.C:
		}
	}
	if err := c.effects(ctx, &t, done); err != nil {
		return Tally{}, err
	}
	return t, nil
}

// sort counts the entries that are settled and returns the keys of the others.
func (t *Tally) sort(keys []ledger.Key, entries map[ledger.Key]ledger.Entry, done *[]ledger.Key) []ledger.Key {
	var left []ledger.Key
	t.Open, t.Absent = 0, 0
	for _, key := range keys {
		entry, found := entries[key]
		switch {
		case !found:
			t.Absent++
			left = append(left, key)
		case entry.Status == ledger.Done:
			t.Done++
			*done = append(*done, key)
		case entry.Status == ledger.Skipped:
			t.Skipped++
		case entry.Status == ledger.Parked:
			t.Parked++
		default:
			t.Open++
			left = append(left, key)
		}
	}
	return left
}

// readers is how many rows are read at once.
const readers = 8

// effects reads how often each event that is done took effect.
func (c Counter) effects(ctx context.Context, t *Tally, done []ledger.Key) error {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(readers)
	for _, key := range done {
		group.Go(func() error {
			applied, err := journal.Applied(ctx, c.Rows, c.BillingTable, string(key))
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case applied == 0:
				t.Lost = append(t.Lost, string(key))
			case applied > 1:
				t.Doubled = append(t.Doubled, string(key))
			default:
				t.Once++
			}
			return nil
		})
	}
	err := group.Wait()
	slices.Sort(t.Lost)
	slices.Sort(t.Doubled)
	return err
}
