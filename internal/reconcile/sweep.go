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

	// lastDoubling is the number of sweeps after which the age is lastAge: 2, 4, 8, 16, 32, then 60 minutes.
	lastDoubling = 5

	// leastBudget is how many pointers a run may enqueue however short the queue is.
	leastBudget = 100

	// page is how many entries of the index one query returns: one batch read of entries.
	page = 100

	// sample is how many entries a run looks at for its figures although it may enqueue no more: a group with half of
	// the backlog is half of the sample within two per cent, and 2,000 reads cost a 10,000th of a dollar.
	sample = 2000

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

// Swept is what a run did, and what it saw on its way.
type Swept struct {
	Looked   int // entries looked at
	Enqueued int
	Paused   bool
	Complete bool // the walk reached the entries that are too young
	Whole    bool // and had started at the oldest: every entry old enough was looked at

	Waiting map[string]int // entries looked at that wait on a dependency, by its name

	// Group is the message group with most of the entries looked at, and GroupOpen how many those are.
	Group     string
	GroupOpen int
}

// nextAge is how old an entry must be for its next sweep.
func nextAge(sweeps int) time.Duration {
	return min(firstAge<<min(sweeps, lastDoubling), lastAge)
}

// due reports whether an entry is to be swept: it is to do, nobody works on it, and its next age has come. After the
// ages up to an hour, every further hour since the last sweep.
//
// An entry that nobody swept for long, because the pipeline was paused, has passed several ages at once. A third of its age
// must have passed since its last sweep all the same, or it would be enqueued every minute until it has caught up.
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
	age := nextAge(entry.Sweeps)
	if entry.Sweeps > lastDoubling {
		return now.Sub(time.UnixMilli(entry.SweptMS)) >= age
	}
	return now.Sub(time.UnixMilli(entry.RecordedMS)) >= age && now.Sub(time.UnixMilli(entry.SweptMS)) >= age/3
}

// Run sweeps until every entry old enough has been looked at, the budget is spent, or ctx is nearly at its deadline.
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
	todo, _ := ledger.Partitions()
	run := &sweep{
		Sweeper: s, done: &done, budget: max(leastBudget, visible/100), groups: make(map[string]int),
		walk: walk{ledger: s.Ledger, until: s.Now().Add(-firstAge).UnixMilli(), streams: streams(todo, cursors)},
	}
	places, err := run.run(ctx)
	done.Complete = run.walk.ended
	done.Whole = done.Complete && len(cursors) == 0
	for group, open := range run.groups {
		if open > done.GroupOpen || open == done.GroupOpen && group < done.Group {
			done.Group, done.GroupOpen = group, open
		}
	}
	return done, errors.Join(err, s.save(ctx, places, saved))
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

// sweep is one run.
type sweep struct {
	*Sweeper
	walk   walk
	done   *Swept
	budget int
	groups map[string]int
}

// run walks and enqueues, and returns where the next run goes on: nowhere in particular when the walk has ended.
func (s *sweep) run(ctx context.Context) (map[string]ledger.Cursor, error) {
	var stopped map[string]ledger.Cursor // where the budget was spent
	for !s.walk.ended {
		places := s.walk.places()
		if deadline, ok := ctx.Deadline(); ok && deadline.Sub(s.Now()) < reserve {
			return or(stopped, places), nil
		}
		if stopped != nil && s.done.Looked >= sample {
			return stopped, nil
		}
		keys, err := s.walk.batch(ctx)
		if err != nil {
			return or(stopped, places), err
		}
		spent, err := s.enqueue(ctx, keys)
		if err != nil {
			return or(stopped, places), err
		}
		if spent && stopped == nil {
			stopped = places
		}
	}
	if stopped == nil {
		return map[string]ledger.Cursor{}, nil
	}
	return stopped, nil
}

func or(first, second map[string]ledger.Cursor) map[string]ledger.Cursor {
	if first != nil {
		return first
	}
	return second
}

// enqueue counts a sweep in each entry that is due, then sends their pointers, oldest first. spent says that there was
// one more than the budget allows.
func (s *sweep) enqueue(ctx context.Context, keys []ledger.Key) (spent bool, err error) {
	if len(keys) == 0 {
		return false, nil
	}
	entries, err := s.Ledger.BatchGet(ctx, keys)
	if err != nil {
		return false, err
	}
	var sends []queue.Send
	var problems []error
	for _, key := range keys {
		entry, found := entries[key]
		if !found || entry.Status.Settled() {
			continue
		}
		s.count(entry)
		if !due(entry, s.Now()) || len(problems) > 0 {
			continue
		}
		if s.done.Enqueued+len(sends) >= s.budget {
			spent = true
			continue
		}
		entry, err := s.Ledger.Swept(ctx, entry)
		if errors.Is(err, ledger.ErrConflict) || errors.Is(err, ledger.ErrNotFound) {
			continue // it has moved on by itself
		}
		if err != nil {
			problems = append(problems, err)
			continue
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
		s.done.Enqueued++
	}
	if err := errors.Join(problems...); err != nil {
		return spent, fmt.Errorf("sweep: %w", err)
	}
	return spent, nil
}

// count takes an open entry into the figures.
func (s *sweep) count(entry ledger.Entry) {
	s.done.Looked++
	s.groups[entry.Group]++
	if entry.WaitsOn != "" {
		if s.done.Waiting == nil {
			s.done.Waiting = make(map[string]int)
		}
		s.done.Waiting[entry.WaitsOn]++
	}
}
