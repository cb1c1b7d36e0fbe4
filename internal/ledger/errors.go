package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Errors of the store. Those with an entry are types: a failed condition returns the item it saw.
var (
	// ErrNotFound says that there is no such entry, or only one past its time to live.
	ErrNotFound = errors.New("no such entry")
	// ErrLeaseLost says that the entry is no longer under the caller's generation: stop, and write nothing more.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrTooLarge says that a body does not fit an item, or a step's effects not one transaction.
	ErrTooLarge = errors.New("too large for the ledger")
	// ErrCodec says that a stored body cannot be unpacked. A Claim or Entry that comes with it is good but for its body.
	ErrCodec = errors.New("the stored body cannot be unpacked")
	// ErrStatus says that the entry's status is none this version knows: another version, or a person, wrote it.
	ErrStatus = errors.New("the entry's status is not known")
	// ErrConflict says that a replay or discard met an entry in another state or at another replay number.
	ErrConflict = errors.New("the entry has moved on")
	// ErrInvalid says that DynamoDB refused an effect for what it is, such as a number added to a text: the same effect
	// is refused again.
	ErrInvalid = errors.New("an effect is not valid")
	// ErrUncommitted says that a transaction met a conflict or was throttled: again, with jitter, uncharged.
	ErrUncommitted = errors.New("the transaction met a conflict or was throttled")
)

// HeldError says that another claim's lease is live.
type HeldError struct{ Until time.Time }

func (e *HeldError) Error() string {
	return fmt.Sprintf("another claim holds the entry until %s", e.Until.UTC().Format(time.RFC3339))
}

// SuspectError says that the last attempt ended by its lease running out: claim it alone, when its turn comes.
type SuspectError struct{ Entry Entry }

func (e *SuspectError) Error() string {
	return "the entry's last attempt ended by its lease running out"
}

// SettledError says that the entry is settled already.
type SettledError struct{ Entry Entry }

func (e *SettledError) Error() string { return "the entry is already " + string(e.Entry.Status) }

// StaleError says that guarded writes of a Commit were decided from rows that have moved on. Writes are indexes into
// Commit.Writes; Newer tells for each whether its Newer guard failed (drop that effect) or its Expect (decide again).
type StaleError struct {
	Writes []int
	Newer  []bool
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%d effects were decided from rows that have moved on", len(e.Writes))
}
