package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"backstop/internal/control"
	"backstop/internal/ledger"
	"backstop/internal/queue"
)

// Names of the control values.
const (
	sweepCursors = "sweep"  // JSON: partition to ledger.Cursor
	Paused       = "paused" // any text: who paused and why; empty: not paused
)

const (
	// firstAge is when an entry is swept for the first time: well over the seconds a healthy event takes, and the
	// receiver's own chance to be delivered again.
	firstAge = 2 * time.Minute

	// lastAge is the longest wait between two sweeps of an entry.
	lastAge = time.Hour

	// leastBudget is how many pointers a run may enqueue however short the queue is.
	leastBudget = 100

	// page is how many entries of the index one query returns: one batch read of entries.
	page = 100

	// reserve is left of a run's time for reporting what it did.
	reserve = 5 * time.Second
)

// Ledger is what the sweep needs of it.
type Ledger interface {
	Open(ctx context.Context, partition string, after ledger.Cursor, limit int) ([]ledger.Open, ledger.Cursor, error)
	BatchGet(ctx context.Context, keys []ledger.Key) (map[ledger.Key]ledger.Entry, error)
	Swept(ctx context.Context, seen ledger.Entry) (ledger.Entry, error)
}

// Queue is what the sweep needs of it.
type Queue interface {
	SendBatch(ctx context.Context, sends []queue.Send) []error
	Visible(ctx context.Context) (int, error) // messages waiting, approximately
}

// Control is the control table.
type Control interface {
	Get(ctx context.Context, name string) (control.Value, error)
	Put(ctx context.Context, name, text string, seen control.Value) (control.Value, error)
}

// Sweeper enqueues again what was recorded or abandoned.
type Sweeper struct {
	Ledger  Ledger
	Queue   Queue
	Control Control
	Now     func() time.Time
}

// Swept is what a run did.
type Swept struct {
	Looked   int // entries looked at
	Enqueued int
	Paused   bool
	Complete bool // every partition was walked to its end
}

// nextAge is how old an entry must be for its next sweep.
func nextAge(sweeps int) time.Duration {
	return min(firstAge<<min(sweeps, 10), lastAge)
}

// due reports whether an entry is to be swept: it is to do, nobody works on it, and its next age has come. After the
// ages up to an hour, every further hour since the last sweep.
func due(entry ledger.Entry, now time.Time) bool {
	switch entry.Status {
	case ledger.Recorded:
	case ledger.Processing:
		if now.UnixMilli() <= entry.LeaseUntilMS {
			return false
		}
	default:
		return false
	}
	since := entry.RecordedMS
	age := nextAge(entry.Sweeps)
	if age == lastAge && entry.SweptMS > 0 {
		since = entry.SweptMS
	}
	return now.Sub(time.UnixMilli(since)) >= age
}

// Run sweeps until every partition has been walked, the budget is spent, or ctx is nearly at its deadline.
func (s *Sweeper) Run(ctx context.Context) (Swept, error) {
	var done Swept
	paused, err := s.Control.Get(ctx, Paused)
	if err != nil {
		return done, err
	}
	if done.Paused = paused.Text != ""; done.Paused {
		return done, nil
	}
	visible, err := s.Queue.Visible(ctx)
	if err != nil {
		return done, err
	}
	budget := max(leastBudget, visible/100)

	saved, err := s.Control.Get(ctx, sweepCursors)
	if err != nil {
		return done, err
	}
	cursors := map[string]ledger.Cursor{}
	if saved.Text != "" {
		if json.Unmarshal([]byte(saved.Text), &cursors) != nil {
			clear(cursors) // written by another version: walk from the start
		}
	}
	partitions, _ := ledger.Partitions()
	done.Complete = true
	for _, partition := range partitions {
		cursor, err := s.walk(ctx, partition, cursors[partition], budget, &done)
		delete(cursors, partition)
		if cursor != "" {
			cursors[partition], done.Complete = cursor, false
		}
		if err != nil {
			return done, errors.Join(err, s.save(ctx, cursors, saved))
		}
	}
	return done, s.save(ctx, cursors, saved)
}

func (s *Sweeper) save(ctx context.Context, cursors map[string]ledger.Cursor, saved control.Value) error {
	text, err := json.Marshal(cursors)
	if err != nil {
		return err
	}
	if string(text) == saved.Text || (len(cursors) == 0 && saved.Text == "") {
		return nil
	}
	_, err = s.Control.Put(ctx, sweepCursors, string(text), saved)
	if errors.Is(err, control.ErrConflict) {
		return nil // another run has saved its own: either is a place to go on from
	}
	return err
}

// walk sweeps one partition from a cursor on, and returns where to go on; empty: the end was reached.
func (s *Sweeper) walk(ctx context.Context, partition string, cursor ledger.Cursor, budget int, done *Swept) (ledger.Cursor, error) {
	for {
		if deadline, ok := ctx.Deadline(); done.Enqueued >= budget || (ok && deadline.Sub(s.Now()) < reserve) {
			return cursor, nil
		}
		open, next, err := s.Ledger.Open(ctx, partition, cursor, page)
		if err != nil {
			return cursor, err
		}
		keys := make([]ledger.Key, 0, len(open))
		for _, o := range open {
			if s.Now().Sub(time.UnixMilli(o.RecordedMS)) >= firstAge {
				keys = append(keys, o.Key)
			}
		}
		if err := s.enqueue(ctx, keys, budget, done); err != nil {
			return cursor, err
		}
		if len(keys) < len(open) || next == "" {
			return "", nil // the rest of the partition is younger
		}
		cursor = next
	}
}

// enqueue counts a sweep in each entry that is due, then sends their pointers, oldest first.
func (s *Sweeper) enqueue(ctx context.Context, keys []ledger.Key, budget int, done *Swept) error {
	if len(keys) == 0 {
		return nil
	}
	entries, err := s.Ledger.BatchGet(ctx, keys)
	if err != nil {
		return err
	}
	done.Looked += len(entries)
	var sends []queue.Send
	var problems []error
	for _, key := range keys {
		entry, found := entries[key]
		if !found || !due(entry, s.Now()) || done.Enqueued+len(sends) >= budget {
			continue
		}
		entry, err := s.Ledger.Swept(ctx, entry)
		if errors.Is(err, ledger.ErrConflict) || errors.Is(err, ledger.ErrNotFound) {
			continue // it has moved on by itself
		}
		if err != nil {
			problems = append(problems, err)
			break
		}
		sends = append(sends, queue.Send{
			Pointer: queue.Pointer{Key: string(entry.Key), Type: entry.Type, CreatedS: entry.CreatedS, Replay: entry.Replay},
			Group:   entry.Group,
			Sweep:   entry.Sweeps,
		})
	}
	for _, err := range s.Queue.SendBatch(ctx, sends) {
		if err != nil {
			problems = append(problems, err)
			continue
		}
		done.Enqueued++
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}
