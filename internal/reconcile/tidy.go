package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"backstop/internal/deadletter"
	"backstop/internal/ledger"
	"backstop/internal/queue"
)

const (
	// hold is how long a tidying keeps the messages it looks at: longer than a run of the reconciler may take, so that
	// none shows again while it is being judged.
	hold = 2 * time.Minute

	// mostTidied bounds a run: as many looks at the queue as fit in a few seconds.
	mostTidied = 1000
)

// DeadLetters is the dead-letter queue; *deadletter.Queue is one.
type DeadLetters interface {
	Take(ctx context.Context, d time.Duration) ([]deadletter.Message, error)
	Delete(ctx context.Context, messages []deadletter.Message) error
	GiveBack(ctx context.Context, messages []deadletter.Message) error
}

// Entries is what a tidying needs of the ledger.
type Entries interface {
	BatchGet(ctx context.Context, keys []ledger.Key) (map[ledger.Key]ledger.Entry, error)
	Get(ctx context.Context, key ledger.Key) (ledger.Entry, error)
}

// Tidier deletes the ghosts of the dead-letter queue: messages of entries that are not parked at the message's
// generation any more. Everything else it gives back.
type Tidier struct {
	Queue  DeadLetters
	Ledger Entries
	Now    func() time.Time
}

// Tidied is what a tidying did.
type Tidied struct {
	Looked  int      `json:"looked"`
	Deleted int      `json:"deleted"`
	Kept    int      `json:"kept"`
	Ghosts  []string `json:"ghosts,omitempty"` // the entries' keys, once a message
}

// Run takes what the queue shows, deletes the ghosts unless dry, and gives the others back. In a group, ten messages
// can be looked at behind each other; ghosts further back wait until those before them are gone.
//
// What is taken is given back whatever happens; what cannot be shows again by itself after two minutes.
func (t *Tidier) Run(ctx context.Context, dry bool) (done Tidied, err error) {
	var keep []deadletter.Message
	defer func() {
		// Also when ctx has ended: a message that stays taken makes the queue look empty.
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), reserve)
		defer cancel()
		err = errors.Join(err, t.Queue.GiveBack(back, keep))
	}()
	for done.Looked < mostTidied && !t.late(ctx) {
		messages, err := t.Queue.Take(ctx, hold)
		if err != nil {
			return done, err
		}
		if len(messages) == 0 {
			break
		}
		done.Looked += len(messages)
		ghosts, others, err := t.judge(ctx, messages)
		if err != nil {
			keep = append(keep, messages...)
			return done, err
		}
		keep = append(keep, others...)
		done.Kept += len(others)
		for _, ghost := range ghosts {
			pointer, _ := queue.Decode(ghost.Body) // judge has decoded it before
			done.Ghosts = append(done.Ghosts, pointer.Key)
		}
		if dry {
			keep = append(keep, ghosts...)
			continue
		}
		if err := t.Queue.Delete(ctx, ghosts); err != nil {
			return done, err
		}
		done.Deleted += len(ghosts)
	}
	return done, nil
}

func (t *Tidier) late(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && deadline.Sub(t.Now()) < reserve
}

// judge tells ghosts from the others. What is no pointer, and what names an entry that does not exist, stays: the
// message is all there is of it.
func (t *Tidier) judge(ctx context.Context, messages []deadletter.Message) (ghosts, others []deadletter.Message, err error) {
	pointers := make(map[string]queue.Pointer, len(messages))
	var keys []ledger.Key
	for _, m := range messages {
		if p, err := queue.Decode(m.Body); err == nil {
			pointers[m.ID] = p
			keys = append(keys, ledger.Key(p.Key))
		}
	}
	entries, err := t.Ledger.BatchGet(ctx, keys)
	if err != nil {
		return nil, nil, fmt.Errorf("tidy the dead-letter queue: %w", err)
	}
	for _, m := range messages {
		p, understood := pointers[m.ID]
		entry, found := entries[ledger.Key(p.Key)]
		if !understood || !found || !ghost(entry, p) {
			others = append(others, m)
			continue
		}
		// The batch may be a second behind; nothing is deleted on what it said alone.
		entry, err := t.Ledger.Get(ctx, entry.Key)
		switch {
		case err != nil && !errors.Is(err, ledger.ErrNotFound) && !errors.Is(err, ledger.ErrCodec):
			return nil, nil, fmt.Errorf("tidy the dead-letter queue: %w", err)
		case errors.Is(err, ledger.ErrNotFound) || !ghost(entry, p):
			others = append(others, m)
		default:
			ghosts = append(ghosts, m)
		}
	}
	return ghosts, others, nil
}

// ghost reports whether a dead-letter message has outlived what it tells of: its entry has been replayed, discarded or
// claimed again since, or was never parked at that generation, its processor having died between the two.
//
// A message is sent before its entry is parked, so one of an entry still processing at that generation is no ghost. A
// message without a generation came by SQS's own redrive or was not understood; it stays until its entry is settled.
func ghost(entry ledger.Entry, p queue.Pointer) bool {
	switch entry.Status {
	case ledger.Done, ledger.Skipped:
		return true
	case ledger.Parked, ledger.Processing:
		return p.Generation > 0 && entry.Generation > p.Generation
	default:
		return p.Generation > 0 && entry.Generation >= p.Generation
	}
}
