package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Replay makes a settled entry to do again, under the next replay number. A parked one goes on where it was: the
// steps that are done or skipped keep their marks, the others start afresh. One that is done or skipped runs anew, and
// its run becomes the replay number: outside calls then carry new idempotency keys.
// With Handler only that handler's step is reopened. Its age counts from now: recorded_ms is what the sweep and the
// alarm on the oldest entry to do go by; when it was first recorded is kept beside it. The mark of a suspect stays.
// Finding the replay of its own token among the entry's replays is success, whatever became of the entry since.
//
// The entry comes without its body. Errors: ErrConflict when the entry is in another state or at another replay
// number, ErrNotFound.
func (s *Store) Replay(ctx context.Context, r Replaying) (Entry, error) {
	if !r.From.Settled() {
		return Entry{}, fmt.Errorf("replaying %s: %w: %q is not settled", r.Key, ErrConflict, r.From)
	}
	now := s.now()
	next := r.Replay + 1
	x := newExpression()
	x.when(x.live(now.Unix()), x.is(r.From), x.equals(attrReplay, int64(r.Replay)))
	x.set(str(string(Recorded)), attrStatus)
	x.set(str(openPartition("todo", r.Key)), attrOpen)
	x.sets = append(x.sets, x.name(attrFirstRecorded)+" = if_not_exists("+x.name(attrFirstRecorded)+", "+
		x.name(attrRecordedMS)+")")
	x.set(number(now.UnixMilli()), attrRecordedMS)
	x.set(number(int64(next)), attrReplay)
	x.set(str(short(r.Token)), attrToken)
	x.remove(attrSettledMS, attrDeleteAfterS, attrAttempts, attrSweeps, attrSweptMS, attrFirstWaitMS, attrWaitsOn)
	record := replayValue(Replayed{By: r.By, Why: r.Why, AtMS: now.UnixMilli(), Handler: r.Handler, Token: r.Token})
	if r.Replay == 0 {
		x.set(&types.AttributeValueMemberL{Value: []types.AttributeValue{record}}, attrReplays)
	} else { // beyond the end of a list, a value is appended
		x.sets = append(x.sets, fmt.Sprintf("%s[%d] = %s", x.name(attrReplays), r.Replay%keptReplays, x.value(record)))
	}
	if r.From != Parked {
		x.set(number(int64(next)), attrRun)
	}
	switch {
	case r.Handler != "":
		// Both maps are there: a claim makes the one, parking the other, and settling otherwise removes it.
		x.removePath(attrSteps, r.Handler)
		if r.From == Parked {
			x.removePath(attrFailures, r.Handler)
		} else {
			x.remove(attrFailures)
		}
	case r.From == Parked:
		x.remove(attrFailures)
	default:
		x.set(emptyMap(), attrSteps)
		x.remove(attrFailures)
	}
	changed, err := s.update(ctx, r.Key, x, types.ReturnValueAllNew)
	if old, failed := conditionFailed(err); failed {
		changed, err = replayed(old, r, now)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("replaying %s: %w", r.Key, err)
	}
	return entryOf(changed), nil
}

// replayed decides a replay whose condition failed, from the item it met.
func replayed(old item, r Replaying, now time.Time) (item, error) {
	e := entryOf(old)
	if absent(e, now) {
		return nil, ErrNotFound
	}
	for _, earlier := range e.Replays {
		if earlier.Token == short(r.Token) {
			return old, nil
		}
	}
	return nil, fmt.Errorf("%w: it is %s at replay %d", ErrConflict, e.Status, e.Replay)
}

// Discard settles a parked entry as skipped, on somebody's word. Finding it discarded so is success.
//
// Errors: ErrConflict when it is not parked at that replay number, ErrNotFound.
func (s *Store) Discard(ctx context.Context, key Key, replay int, by, why string) error {
	now := s.now()
	reason := "discarded by " + cut(by, maxWho) + ": " + cut(why, maxWho)
	x := newExpression()
	x.when(x.live(now.Unix()), x.is(Parked), x.equals(attrReplay, int64(replay)))
	x.set(str(string(Skipped)), attrStatus)
	x.set(number(now.UnixMilli()), attrSettledMS)
	x.set(number(s.deleteAfter(now)), attrDeleteAfterS)
	x.reason(ClassDiscarded, reason)
	x.remove(attrOpen, attrSuspect, attrFailures)
	_, err := s.update(ctx, key, x, types.ReturnValueNone)
	if old, failed := conditionFailed(err); failed {
		switch e := entryOf(old); {
		case absent(e, now):
			err = ErrNotFound
		case e.Status == Skipped && e.Replay == replay && e.Class == ClassDiscarded && e.LastError == reason:
			return nil
		default:
			err = fmt.Errorf("%w: it is %s at replay %d", ErrConflict, e.Status, e.Replay)
		}
	}
	if err != nil {
		return fmt.Errorf("discarding %s: %w", key, err)
	}
	return nil
}

// Park parks a recorded entry whose message cannot be understood. Finding it parked is success.
//
// Errors: *HeldError while it is being processed, *SettledError, ErrNotFound, ErrStatus.
func (s *Store) Park(ctx context.Context, key Key, class Class, reason string) error {
	now := s.now()
	x := newExpression()
	x.when(x.live(now.Unix()), x.is(Recorded))
	x.set(str(string(Parked)), attrStatus)
	x.set(number(now.UnixMilli()), attrSettledMS)
	x.set(str(openPartition("parked", key)), attrOpen)
	x.setIfAbsent(emptyMap(), attrSteps)
	x.setIfAbsent(emptyMap(), attrFailures)
	x.reason(class, reason)
	x.remove(attrFirstWaitMS, attrWaitsOn)
	_, err := s.update(ctx, key, x, types.ReturnValueNone)
	if old, failed := conditionFailed(err); failed {
		switch e := entryOf(old); {
		case absent(e, now):
			err = ErrNotFound
		case e.Status == Parked:
			return nil
		case e.Status == Processing:
			err = &HeldError{time.UnixMilli(e.LeaseUntilMS)}
		case !e.Status.Known():
			err = ErrStatus
		default:
			err = &SettledError{e}
		}
	}
	if err != nil {
		return fmt.Errorf("parking %s: %w", key, err)
	}
	return nil
}

// Swept counts one sweep of an entry that is to do: recorded, or processing with its lease passed. It is a
// compare-and-set on the sweeps and the replay the caller saw, and returns the entry as it is then. Meeting the sweep
// of its own millisecond is success.
//
// Errors: ErrConflict, ErrNotFound.
func (s *Store) Swept(ctx context.Context, seen Entry) (Entry, error) {
	now := s.now()
	x := newExpression()
	x.when(x.live(now.Unix()), x.equals(attrSweeps, int64(seen.Sweeps)), x.equals(attrReplay, int64(seen.Replay)),
		"("+x.is(Recorded)+" OR "+x.is(Processing)+" AND "+x.lapsed(now.UnixMilli())+")")
	x.set(number(int64(seen.Sweeps+1)), attrSweeps)
	x.set(number(now.UnixMilli()), attrSweptMS)
	changed, err := s.update(ctx, seen.Key, x, types.ReturnValueAllNew)
	if old, failed := conditionFailed(err); failed {
		switch e := entryOf(old); {
		case absent(e, now):
			err = ErrNotFound
		case e.Sweeps == seen.Sweeps+1 && e.SweptMS == now.UnixMilli() && e.Replay == seen.Replay:
			return e, nil
		default:
			err = fmt.Errorf("%w: it is %s, swept %d times", ErrConflict, e.Status, e.Sweeps)
		}
	}
	if err != nil {
		return Entry{}, fmt.Errorf("counting a sweep of %s: %w", seen.Key, err)
	}
	return entryOf(changed), nil
}
