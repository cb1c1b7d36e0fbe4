// Package replay runs settled events again, or settles parked ones for good, on a person's word.
//
// What may be replayed: a parked entry, which goes on where it was; and, asked for by name (Again), one that is done or
// skipped, which runs anew. What is recorded or processing runs by itself and is left alone.
//
// Each replay is a compare-and-set on the status and the replay number that were seen: whoever is slower changes
// nothing, and a reply that was lost does not replay twice. Then the entry is enqueued under its new number, since SQS
// would swallow the old one. A crash between the two leaves a recorded entry, which the sweep enqueues within minutes.
//
// Entries go oldest first, one at a time, so that those of one message group are enqueued in the order they were
// accepted. Where one of a group cannot be enqueued, the rest of that group is left for another time, in order.
//
// The dead-letter messages of what was replayed or discarded are ghosts from then on: package reconcile tidies them.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/time/rate"

	"backstop/internal/ledger"
	"backstop/internal/queue"
)

// Ledger is what this package needs of it.
type Ledger interface {
	Replay(ctx context.Context, r ledger.Replaying) (ledger.Entry, error)
	Discard(ctx context.Context, key ledger.Key, replay int, by, why string) error
}

// Queue enqueues pointers; *queue.SQS is one.
type Queue interface {
	Send(ctx context.Context, send queue.Send) error
}

// Order is what a person asked for.
type Order struct {
	By, Why string // kept in the entry
	Handler string // one handler only; empty: all that are not done, or all when asked again
	Again   bool   // also entries that are done or skipped
}

// Left is an entry that was left alone, and why.
type Left struct {
	Entry ledger.Entry
	Why   string
}

// Plan sorts entries into the order they are to be replayed in, and leaves out those that are not.
func Plan(entries []ledger.Entry, order Order) (todo []ledger.Entry, left []Left) {
	for _, e := range entries {
		switch {
		case e.Status == ledger.Parked, e.Status.Settled() && order.Again:
			todo = append(todo, e)
		case e.Status.Settled():
			left = append(left, Left{e, "it is " + string(e.Status) + ": --again runs it anew"})
		default:
			left = append(left, Left{e, "it is " + string(e.Status) + ", and runs by itself"})
		}
	}
	slices.SortStableFunc(todo, older)
	return todo, left
}

// older orders entries as they were accepted.
func older(a, b ledger.Entry) int {
	return cmp.Or(cmp.Compare(accepted(a), accepted(b)), cmp.Compare(a.CreatedS, b.CreatedS), cmp.Compare(a.Key, b.Key))
}

func accepted(e ledger.Entry) int64 { return cmp.Or(e.FirstRecordedMS, e.RecordedMS) }

// Replayer carries out orders.
type Replayer struct {
	Ledger Ledger
	Queue  Queue
	Token  func() string // a new unique text for each replay
	Rate   float64       // replays a second; 0: as fast as it goes
}

// Report is what came of an order.
type Report struct {
	Done []ledger.Entry // as they are now
	Left []Left
}

// Replay replays the entries in the order given, which is Plan's. progress, when set, hears of each. The error is that
// of ctx or of storage: what is not in the report's Done was not replayed.
func (r *Replayer) Replay(ctx context.Context, todo []ledger.Entry, order Order, progress func()) (Report, error) {
	var report Report
	limiter := rate.NewLimiter(rate.Inf, 1)
	if r.Rate > 0 {
		limiter = rate.NewLimiter(rate.Limit(r.Rate), 1)
	}
	stuck := make(map[string]bool) // groups one of which could not be enqueued
	for _, seen := range todo {
		if stuck[seen.Group] {
			report.Left = append(report.Left, Left{seen, "an older one of its group could not be enqueued"})
			continue
		}
		if err := limiter.Wait(ctx); err != nil {
			return report, fmt.Errorf("replay: %w", err)
		}
		now, err := r.Ledger.Replay(ctx, ledger.Replaying{
			Key: seen.Key, From: seen.Status, Replay: seen.Replay, Token: r.Token(), By: order.By, Why: order.Why, Handler: order.Handler,
		})
		switch {
		case errors.Is(err, ledger.ErrConflict), errors.Is(err, ledger.ErrNotFound):
			report.Left = append(report.Left, Left{seen, "it has moved on since it was listed"})
			continue
		case err != nil:
			return report, fmt.Errorf("replay: %w", err)
		}
		report.Done = append(report.Done, now)
		err = r.Queue.Send(ctx, queue.Send{
			Pointer: queue.Pointer{Key: string(now.Key), Type: now.Type, CreatedS: now.CreatedS, Replay: now.Replay},
			Group:   now.Group,
		})
		if err != nil {
			stuck[now.Group] = true
			report.Left = append(report.Left, Left{now, "recorded for replay, but not enqueued: the sweep does within minutes (" + err.Error() + ")"})
		}
		if progress != nil {
			progress()
		}
	}
	return report, nil
}

// Discard settles parked entries as skipped.
func (r *Replayer) Discard(ctx context.Context, entries []ledger.Entry, order Order) (Report, error) {
	var report Report
	for _, seen := range entries {
		if seen.Status != ledger.Parked {
			report.Left = append(report.Left, Left{seen, "it is " + string(seen.Status) + ": only what is parked can be discarded"})
			continue
		}
		err := r.Ledger.Discard(ctx, seen.Key, seen.Replay, order.By, order.Why)
		switch {
		case errors.Is(err, ledger.ErrConflict), errors.Is(err, ledger.ErrNotFound):
			report.Left = append(report.Left, Left{seen, "it has moved on since it was listed"})
		case err != nil:
			return report, fmt.Errorf("discard: %w", err)
		default:
			seen.Status = ledger.Skipped
			report.Done = append(report.Done, seen)
		}
	}
	return report, nil
}
