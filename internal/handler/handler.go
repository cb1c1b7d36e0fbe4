// Package handler is what a person writes: a Go function for an event type, registered by one line in
// functions/processor. It gets the event's object as stripe-go's own type and returns the effects it wants; it does
// not perform them. What it returns as error decides what happens next:
//
//	nil                 the step is done
//	Skip(reason)        nothing to do here; done with a reason
//	Retry, RetryAfter   again later, uncharged
//	Permanent(err)      never again: the entry is parked for a person
//	any other error     again later, charged against the budget of attempts
//
// Several handlers may listen to one type. Each is a step of the entry with its own outcome and budget.
package handler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Event is what a handler knows about the event besides its decoded object.
type Event struct {
	Key        string // the ledger's key: <source>#<account or ->#<event id>
	ID         string
	Type       string
	Account    string // the connected account, or empty for the platform's own
	APIVersion string
	CreatedS   int64 // Stripe's clock, one-second resolution
	Livemode   bool
	Backfill   bool // the payload came from the events list, in the account's API version
	Thin       bool // a v2 notification: Object is empty, RelatedObject says what it is about

	Object   json.RawMessage // data.object as sent: v82's types lack what other API versions carry
	Previous json.RawMessage // data.previous_attributes, or nil
	Body     json.RawMessage // the whole event as sent

	Replay  int // replay number
	Attempt int // charged attempts before this one

	// Run numbers the runs of the event that are meant to have their effects anew: a replay of an event that was done
	// begins one, a retry and a replay of a parked one do not. It is part of the idempotency keys.
	Run int

	// Handler is the name of the handler that runs; it is part of the idempotency keys.
	Handler string
}

// IdempotencyKey is the key the outside call named step carries. It is the same over all retries of the event, and
// over replays of a parked one, whose call may have gone through before it failed; it is new with the next Run.
//
// Stripe stores the first answer under a key, even a 500 (Stripe API Reference, "Idempotent requests"). After one,
// read the object and continue from what it says, or call again under NextIdempotencyKey.
func (e Event) IdempotencyKey(step string) string { return e.key(step, strconv.Itoa(e.Run)) }

// NextIdempotencyKey is the step's second key of the same Run, as stable as the first and the key of no other run: for
// a call whose stored answer is a 500 that, as the object shows, had no effect.
func (e Event) NextIdempotencyKey(step string) string { return e.key(step, strconv.Itoa(e.Run)+"b") }

// key is readable up to the step and hashed when it would be longer than the 255 characters Stripe takes.
func (e Event) key(step, run string) string {
	text := fmt.Sprintf("%s/%s/%s/%s", e.Key, e.Handler, step, run)
	if len(text) <= maxIdempotencyKey {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// maxIdempotencyKey is the longest key Stripe accepts (Stripe API Reference, "Idempotent requests").
const maxIdempotencyKey = 255

// Func handles one type of event, whose object decodes to T: stripe-go's type for it, or json.RawMessage for any. A
// thin event carries no object: object is then nil. It must return when ctx ends, which is before the lease does; one
// that is still running when the batch's answer is due ends the process. So does a panic in a goroutine it starts itself,
// which nobody else can contain: Go then prints what it panicked with, and that must not be the payload.
type Func[T any] func(ctx context.Context, event Event, object *T) ([]Effect, error)

// Handler is one registered function.
type Handler struct {
	Name  string   // unique for the type; it names the step in the ledger
	Type  string   // the event type
	Needs []string // dependencies it calls: while one's breaker is open the event is handed back unclaimed

	// Run decodes the event's object and calls the function. A payload that does not decode is a *DecodeError.
	Run func(ctx context.Context, event Event) ([]Effect, error)
}

// Effect is something a handler wants done, exactly once: a Project or a Once.
type Effect interface{ effect() }

// Row is a row of a table in terms no SDK owns. Values are string, bool, int64, []any, map[string]any or nil.
type Row map[string]any

// Version orders the facts about one object: by Stripe's second, then by rank within it, then by event id. See
// DESIGN's rule in package billing for the ties it cannot decide.
type Version struct {
	CreatedS int64
	Rank     int // created before updates before deleted and terminal states
	EventID  string
}

// Project writes one row of a projection: the state of an object as of Version. It is one plain conditional write,
// idempotent by its version, and cheap; what can be a projection is one.
type Project struct {
	Table   string            // physical name
	Key     map[string]string // key attributes
	Set     Row               // attributes to set; what is absent here is kept
	Version Version

	// Part names the fact within the row when one row is fed by several objects (a payment by its intent, charge,
	// refunds): each part has its own version. Empty: the row as a whole.
	Part string

	// Terminal marks a state nothing overwrites but the same event applied again.
	Terminal bool

	// Decide is asked when the stored fact is of the same second and Version cannot tell; nil keeps the later arrival.
	Decide func(ctx context.Context, stored Stored) (Decision, error)

	// Refetch reads the object itself when Decide is Unsure: what it says now takes the place of Set and Terminal. nil
	// and ErrNoRefetch leave the fact unsure.
	Refetch func(ctx context.Context) (Fresh, error)

	// Then names facts that follow from this one, such as rows of an index of its list. It is asked with the
	// attributes that were set, refetched or not, each time the fact was applied and never when it was stale.
	Then func(ctx context.Context, set Row) ([]Project, error)
}

// Fresh is an object as Stripe has it now.
type Fresh struct {
	Set      Row
	Terminal bool
}

// ErrNoRefetch says that the object cannot be read from Stripe: there is no key, or no such object for it.
var ErrNoRefetch = errors.New("the object cannot be read from Stripe")

// Stored is the fact a Project met in the row.
type Stored struct {
	Version  Version
	EventKey string // the ledger's key of the event that wrote it
	Terminal bool
	Ties     []string // ids of other events of the same second already met
	Row      Row
}

// Decision is what to do about a fact of the same second.
type Decision int

// The decisions.
const (
	Newer  Decision = iota + 1 // the incoming fact is newer: apply it
	Older                      // it is older: drop it
	Unsure                     // keep the later arrival and mark the row order_unsure
)

// Once is an effect that is not idempotent by itself: a counter, a balance, an outbox row. It is committed in one
// transaction with the step's mark, under the claim's generation.
type Once struct {
	Table  string
	Key    map[string]string
	Set    Row
	Add    map[string]int64
	Expect Row // values the row must still have for the effect to hold; nil value: absent. If not, the handler runs again.
	Delete bool
}

func (Project) effect() {}
func (Once) effect()    {}

// Table reads rows for handlers that decide from what is stored.
type Table interface {
	Get(ctx context.Context, table string, key map[string]string) (Row, error) // nil without error: no such row
}

// Clock is the time, injected.
type Clock func() time.Time
