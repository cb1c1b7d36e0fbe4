package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/sqsbatch"
)

// The waits of what is handed back unclaimed.
const (
	waitDeadline = time.Second      // for another instance, at once
	waitDeploy   = 30 * time.Second // for a deployment that knows the pointer's version
	claimTries   = 4                // a claim that meets what it did not expect: a suspect, a redrive, and one more each
)

// message handles one message. followers is how many of its group come after it in the batch.
func (b *batch) message(m sqsbatch.Message, followers int, alone bool) verdict {
	l := line{b: b, message: m, followers: followers, began: b.Now()}
	if b.start.Err() != nil {
		return l.handedBack("deadline", waitDeadline)
	}
	pointer, err := queue.Decode(m.Body)
	l.pointer = pointer
	var newer *queue.NewerError
	if errors.As(err, &newer) {
		return l.handedBack("newer_pointer", waitDeploy)
	}
	if err != nil && m.ReceiveCount <= 1 {
		// Once more, by an instance that may be of another version: it costs its group two seconds.
		return l.handedBack("not_understood", b.backoff(0))
	}
	if err != nil {
		return b.misunderstood(l, err)
	}
	leave, waitsOn, ok := b.Breakers.Admit(b.Registry.Needs(pointer.Type))
	if !ok {
		l.dependency = waitsOn
		return l.handedBack("breaker_open", b.backoff(m.ReceiveCount-1))
	}
	defer leave()
	claim, v, ok := b.claim(l, alone)
	if !ok {
		return v
	}
	return b.attempt(l, claim)
}

// token names one receive of one message: what is claimed under it is this worker's own.
func token(m sqsbatch.Message) string { return fmt.Sprintf("%s#%d", m.ID, m.ReceiveCount) }

// claim takes the pointer's entry. Not ok, the verdict says what happens with the message instead.
func (b *batch) claim(l line, alone bool) (ledger.Claim, verdict, bool) {
	none := func(v verdict) (ledger.Claim, verdict, bool) { return ledger.Claim{}, v, false }
	key := ledger.Key(l.pointer.Key)
	ask := ledger.Claiming{Key: key, Token: token(l.message), Until: b.until}
	for range claimTries {
		claim, err := b.Ledger.Claim(b.write, ask)
		var (
			held    *ledger.HeldError
			suspect *ledger.SuspectError
			settled *ledger.SettledError
		)
		switch {
		case err == nil:
			return claim, verdict{}, true
		case errors.Is(err, ledger.ErrCodec):
			l.entry = claim.Entry
			return none(b.unreadable(l, claim, err))
		case errors.As(err, &held):
			return none(l.handedBack("held", held.Until.Sub(b.Now())+time.Second))
		case errors.As(err, &suspect):
			if !alone {
				return none(verdict{kind: waitTurn})
			}
			ask.Suspect = &suspect.Entry
		case errors.As(err, &settled):
			l.entry = settled.Entry
			if !redriven(l.pointer, settled.Entry) {
				return none(l.dropped("already_" + string(settled.Entry.Status)))
			}
			if err := b.redrive(l); errors.Is(err, ledger.ErrConflict) {
				return none(l.dropped("replayed_meanwhile"))
			} else if err != nil {
				return none(l.failed("replay", err, b.backoff(l.message.ReceiveCount-1)))
			}
			ask.Suspect = nil
		case errors.Is(err, ledger.ErrNotFound):
			return none(b.misunderstood(l, errors.New("its entry does not exist")))
		case errors.Is(err, ledger.ErrStatus):
			return none(b.misunderstood(l, errors.New("its entry has a status this version does not know")))
		default:
			// The claim may have been applied though its reply was lost: give it back, or the event is charged for a
			// lease nobody worked under.
			if undo := b.Ledger.Unclaim(b.write, key, ask.Token); undo != nil {
				err = fmt.Errorf("%w; %w", err, undo)
			}
			return none(l.failed("claim", err, b.backoff(l.message.ReceiveCount-1)))
		}
	}
	return none(l.handedBack("contended", b.backoff(l.message.ReceiveCount-1)))
}

// redriven reports whether a pointer comes from the dead-letter message of the entry as it is parked now: a person
// pressed "Start DLQ redrive" in the console. Any other pointer to a parked entry is one too many.
func redriven(p queue.Pointer, e ledger.Entry) bool {
	return e.Status == ledger.Parked && p.Generation > 0 && p.Generation == e.Generation
}

func (b *batch) redrive(l line) error {
	_, err := b.Ledger.Replay(b.write, ledger.Replaying{
		Key:    ledger.Key(l.pointer.Key),
		From:   ledger.Parked,
		Replay: l.entry.Replay,
		Token:  token(l.message) + "#redrive",
		By:     "redrive",
		Why:    "the dead-letter message came back to the queue",
	})
	return err
}

// misunderstood sends a message that is no pointer, or points nowhere, to the dead-letter queue as it is, and parks
// its entry if there is one to be found.
func (b *batch) misunderstood(l line, why error) verdict {
	err := b.Queue.SendDeadLetter(b.write, queue.DeadLetter{
		Body:            l.message.Body,
		Group:           l.message.Group,
		DeduplicationID: l.message.ID, // the same for each receive of the message
		Reason:          why.Error(),
		Class:           string(ledger.ClassPointer),
	})
	if err != nil {
		return l.failed("dead_letter", err, b.backoff(l.message.ReceiveCount-1))
	}
	var malformed *queue.MalformedError
	if errors.As(why, &malformed) && l.pointer.Key != "" {
		err := b.Ledger.Park(b.write, ledger.Key(l.pointer.Key), ledger.ClassPointer, why.Error())
		var settled *ledger.SettledError
		var held *ledger.HeldError
		switch {
		case err == nil, errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrStatus), errors.As(err, &settled):
		case errors.As(err, &held): // somebody works on it: it does not need this message
		default:
			return l.failed("park", err, b.backoff(l.message.ReceiveCount-1))
		}
	}
	return l.misunderstood(why)
}

// unreadable parks an entry whose body cannot be unpacked.
func (b *batch) unreadable(l line, claim ledger.Claim, err error) verdict {
	a := newAttempt(b, l, claim)
	a.class, a.text = ledger.ClassCodec, handler.Text(err)
	return a.park()
}

// persist writes what ends a claim. It tries a little longer than the SDK does by itself: an entry left to its lease
// is charged for it.
func (b *batch) persist(ctx context.Context, write func(context.Context) error) error {
	var err error
	for try := range persistTries {
		if err = write(ctx); err == nil || errors.Is(err, ledger.ErrLeaseLost) {
			return err
		}
		if b.pause(ctx, try) != nil {
			return err
		}
	}
	return err
}

const persistTries = 3
