package ledger

import (
	"strings"
	"time"
)

// Key is an entry's primary key: <source>#<account or ->#<event id>.
type Key string

// EventID is the last part of the key.
func (k Key) EventID() string { return string(k[strings.LastIndexByte(string(k), '#')+1:]) }

// Status says where an entry is in its life; see the package documentation for the transitions.
type Status string

// The statuses.
const (
	Recorded   Status = "recorded"
	Processing Status = "processing"
	Done       Status = "done"
	Skipped    Status = "skipped"
	Parked     Status = "parked"
)

// Known reports whether the status is one of these. Another may be that of a later version.
func (s Status) Known() bool { return s == Recorded || s == Processing || s.Settled() }

// Settled reports whether nothing more happens to the entry by itself.
func (s Status) Settled() bool { return s == Done || s == Skipped || s == Parked }

// Origin says how an event came to us.
type Origin string

// The origins.
const (
	Webhook  Origin = "webhook"
	Backfill Origin = "backfill"
)

// Class says what kind of trouble ended an attempt. It is stored, logged and filtered by.
type Class string

// The classes.
const (
	ClassError     Class = "error"     // a plain error of a handler; charged
	ClassPanic     Class = "panic"     // charged
	ClassDecode    Class = "decode"    // the payload does not decode; permanent
	ClassLease     Class = "lease"     // the lease ran out: the process died or stalled; charged
	ClassPermanent Class = "permanent" // the handler said so
	ClassTooLarge  Class = "too_large" // more effects than one transaction takes; permanent
	ClassRetry     Class = "retry"     // the handler asked to come again; uncharged
	ClassOutage    Class = "outage"    // a dependency is down; uncharged, parks after 24 hours
	ClassPointer   Class = "pointer"   // the message could not be understood
	ClassCodec     Class = "codec"     // the stored body cannot be unpacked
	ClassDiscarded Class = "discarded" // a person settled a parked entry as skipped
)

// Step is one handler's outcome within an entry.
type Step struct {
	Outcome  Status // Done, Skipped or Parked; empty while open
	Attempts int    // charged attempts
	Class    Class  // of the last failure
	Error    string // of the last failure
}

// Replayed says who asked for a replay, when and why.
type Replayed struct {
	By, Why string
	AtMS    int64
	Handler string // one handler only; empty: all that are not settled, or all when asked again
	Token   string // of the replay's write
}

// Entry is one event in the ledger. Times are in the unit their name says.
type Entry struct {
	Key        Key
	EventID    string // the last part of Key
	Status     Status
	Type       string
	CreatedS   int64
	Account    string // empty: the platform's own
	Livemode   bool
	APIVersion string
	ObjectID   string
	Group      string
	Origin     Origin

	Body  []byte // the exact bytes received; nil where they were not asked for
	Codec string // how Body is packed in the table

	RecordedMS, SettledMS int64  // RecordedMS: when the entry became to do, by its first record or its last replay
	FirstRecordedMS       int64  // when it was accepted; equal to RecordedMS unless it was replayed
	Token                 string // of the last write that had one, shortened; none once done or skipped
	Generation            int64
	LeaseUntilMS          int64
	Attempts              int
	Steps                 map[string]Step
	Suspect               bool
	LastError             string
	Class                 Class
	FirstWaitMS           int64
	WaitsOn               string // the dependency FirstWaitMS is about
	Open                  string
	Sweeps                int
	SweptMS               int64
	Replay                int
	Run                   int // the replay number at which the event was last started over; 0: never
	Replays               []Replayed
	DeleteAfterS          int64
}

// Recording is what Record stores.
type Recording struct {
	Key        Key
	Type       string
	CreatedS   int64
	Account    string
	Livemode   bool
	APIVersion string
	ObjectID   string
	Group      string
	Origin     Origin
	Body       []byte
	Token      string // of this delivery; unique
}

// RecordResult says what Record found: New means the entry is this delivery's own (just written, or written before by
// the same token, its reply having been lost). Otherwise Entry is the one already there, without its body.
type RecordResult struct {
	New   bool
	Entry Entry
}

// Claiming asks for one entry.
type Claiming struct {
	Key   Key
	Token string // message id and receive count: unique for each receive
	Until time.Time

	// Suspect is set when the caller runs a suspect alone in its turn: the entry SuspectError returned. Without it,
	// a suspect is not claimed.
	Suspect *Entry
}

// Claim is the right to work on an entry until its lease ends. Every later write names Generation.
type Claim struct {
	Entry      Entry // with Body
	Generation int64
	Until      time.Time
	Token      string
}

// Write is one effect row in the transaction that marks a step: a plain conditional write, in terms no SDK owns.
// Values are string, bool, int, int64, []byte, []any, map[string]any or nil for NULL.
type Write struct {
	Table string            // physical name
	Key   map[string]string // key attributes
	Set   map[string]any    // attributes to set; the empty string in an index key must be left out by the caller
	Add   map[string]int64  // numbers to add
	// Expect holds attribute values that must be as given for the write to be applied; nil: the attribute is absent.
	Expect map[string]any
	// Newer, when set, applies the write only where the stored value of the attribute is absent or less.
	Newer *Newer
	// Delete removes the row instead of setting anything.
	Delete bool
}

// Newer guards a write by a version that sorts as text.
type Newer struct {
	Attribute string
	Value     string
}

// Commit is the transaction that applies a step's effects and marks it, once.
type Commit struct {
	Handler     string
	Step        Step
	Composition int // 0, 1, ... : which composition of this attempt's effects
	Writes      []Write
}

// Settlement ends an entry's life, or this part of it.
type Settlement struct {
	Status Status          // Done, Skipped or Parked
	Steps  map[string]Step // outcomes not yet marked by a Commit
	Class  Class           // for Parked (and the reason class of Skipped)
	Error  string          // for Parked; for Skipped the reason
	Charge bool            // whether this attempt is charged
}

// Releasing hands an entry back, to be claimed again later.
type Releasing struct {
	Steps   map[string]Step
	Charge  bool
	Class   Class
	Error   string
	WaitsOn string // dependency waited for; sets first_wait_ms when it is not set for it already
	Suspect bool   // keep the mark: the claim was handed back unrun
}

// Replaying asks for another run. It is a compare-and-set on (From, Replay), so that a lost reply does not replay
// twice.
type Replaying struct {
	Key     Key
	From    Status
	Replay  int // the number seen; it becomes Replay+1
	Token   string
	By, Why string
	Handler string // run one handler only
}

// Open is an entry in the sparse index of what is not settled: only its keys are projected.
type Open struct {
	Key        Key
	RecordedMS int64
}

// Cursor says where a listing goes on. It is text without a meaning of its own, safe to store; empty is the start
// when given and the end when returned.
type Cursor string

// Counts are what the alarms read.
type Counts struct {
	Todo, Parked int
	OldestTodoMS int64 // RecordedMS of the oldest entry to do; 0 without one
}
