package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/control"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/stripeevents"
)

// LastAudit is the control value that tells of the last scheduled audit: an Audited as JSON.
const LastAudit = "audit"

// auditCursor is the control value of one account's place, with the account or "-" behind it.
const auditCursor = "audit#"

const (
	// Young is the age below which an event is left alone: its delivery may be under way.
	Young = 15 * time.Minute

	// overlap is how much of the last window an audit looks at again, for events that Stripe listed late.
	overlap = 15 * time.Minute

	// firstLook is how far back the first audit of a deployment goes. What happened before the deployment was never
	// meant for it; a person who wants it asks with backstop audit --since.
	firstLook = time.Hour

	// slicePages is how many pages a slice of the window may have. A slice is healed as a whole, oldest event first,
	// and repeated as a whole after a crash: a thousand events are some seconds and some megabytes.
	slicePages = 10

	// sliceBytes bounds the missing bodies held at once, in a function of 256 MB.
	sliceBytes = 32 << 20

	// widest is the span of the first slice tried.
	widest = 6 * time.Hour

	// mostFindings is how many events a report names.
	mostFindings = 100
)

// Events lists Stripe's events; *stripeevents.Lister is one.
type Events interface {
	Page(ctx context.Context, q stripeevents.Query) (stripeevents.Page, error)
}

// AuditLedger is what the audit needs of the ledger.
type AuditLedger interface {
	BatchGet(ctx context.Context, keys []ledger.Key) (map[ledger.Key]ledger.Entry, error)
	Record(ctx context.Context, recording ledger.Recording) (ledger.RecordResult, error)
}

// Sender enqueues pointers; *queue.SQS is one.
type Sender interface {
	SendBatch(ctx context.Context, sends []queue.Send) []error
}

// Auditor compares Stripe's list with the ledger.
type Auditor struct {
	Events  Events
	Ledger  AuditLedger
	Queue   Sender
	Control Control // of Run only

	Accounts []string // connected accounts, besides the key's own
	Types    []string // subscribed to; others are not looked for
	Unlisted []string // of those, the ones Stripe's list does not hold
	Mode     string   // live or test: events of the other mode are not looked for; empty: both are

	Now   func() time.Time
	Token func() string // a new unique text for each recording

	// Seen, when set, hears of every event compared, by its key.
	Seen func(ledger.Key)
	// Progress, when set, hears how far an account's audit has come.
	Progress func(account string, at, end time.Time)
}

// Audited is what an audit found.
type Audited struct {
	RanMS int64 `json:"ran_ms"`
	FromS int64 `json:"from_s"` // the oldest second compared
	ToS   int64 `json:"to_s"`   // compared up to here, of the account that is furthest behind

	Listed     int `json:"listed"` // of the types and the mode that count
	Others     int `json:"others"` // of other types
	OtherMode  int `json:"other_mode"`
	Missing    int `json:"missing"` // Stripe has them and the ledger had not
	Healed     int `json:"healed"`
	Unhealed   int `json:"unhealed"` // could not be recorded, and will not be by trying again
	Unfinished int `json:"unfinished"`
	Parked     int `json:"parked"`

	Complete bool `json:"complete"` // every account was compared up to 15 minutes ago
	Nearer   bool `json:"nearer"`   // or came nearer to it
	Gap      bool `json:"gap"`      // something lies too far back to be compared

	Findings []Finding `json:"findings,omitempty"` // the first hundred
	Notes    []string  `json:"notes,omitempty"`
}

// Finding is one event that is not as it should be.
type Finding struct {
	Key      ledger.Key `json:"key"`
	Type     string     `json:"type"`
	CreatedS int64      `json:"created_s"`
	What     string     `json:"what"` // missing, healed, unhealed, unfinished, parked, unexpected
	Why      string     `json:"why,omitempty"`
}

func (a *Audited) find(f Finding) {
	if len(a.Findings) < mostFindings {
		a.Findings = append(a.Findings, f)
	}
}

func (a *Audited) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.Notes, text) {
		a.Notes = append(a.Notes, text)
	}
}

// place is how far an account has been audited.
type place struct {
	CheckedS int64 `json:"checked_s"`      // everything before has been compared
	AtS      int64 `json:"at_s,omitempty"` // and, of the pass under way, everything before this
}

// Run goes on where the last run stopped, for each account, and heals. What stopped it, a crash or a time-out, costs
// the slice it was at: the cursor is moved after a slice has been compared and healed, and never else.
//
// A report comes with the error: one account that cannot be read does not stop the others.
func (a *Auditor) Run(ctx context.Context) (Audited, error) {
	report := Audited{RanMS: a.Now().UnixMilli(), Complete: true}
	last, err := a.Control.Get(ctx, LastAudit)
	if err != nil {
		return Audited{}, err
	}
	type account struct {
		id    string
		place place
		value control.Value
	}
	var accounts []account
	for _, id := range append([]string{""}, a.Accounts...) {
		value, err := a.Control.Get(ctx, cursorOf(id))
		if err != nil {
			return Audited{}, err
		}
		var p place
		if value.Text != "" {
			if err := json.Unmarshal([]byte(value.Text), &p); err != nil {
				return Audited{}, fmt.Errorf("read the audit's cursor %s: %w", cursorOf(id), err)
			}
		}
		accounts = append(accounts, account{id, p, value})
	}
	// Who is furthest behind comes first, so that a busy account does not keep the others waiting for ever.
	slices.SortStableFunc(accounts, func(x, y account) int { return cmp.Compare(x.place.CheckedS, y.place.CheckedS) })
	end := a.Now().Add(-Young).Unix()
	var problems []error
	for _, account := range accounts {
		p, value := account.place, account.value
		keep := func(next place) error {
			text, err := json.Marshal(next)
			if err == nil {
				value, err = a.Control.Put(ctx, cursorOf(account.id), string(text), value)
			}
			return err
		}
		from := p.AtS
		switch {
		case p.CheckedS == 0 && p.AtS == 0:
			from = end - int64(firstLook/time.Second)
			report.note("first audit%s: events before %s are not compared; `backstop audit --since 30d` looks at them",
				ofAccount(account.id), stamp(from))
			// Kept at once: should this run come to nothing, the next one begins here and not an hour before itself.
			if err := keep(place{AtS: from}); err != nil && !errors.Is(err, control.ErrConflict) {
				return Audited{}, err
			}
		case p.AtS == 0:
			from = p.CheckedS - int64(overlap/time.Second)
		}
		started := from
		err := a.pass(ctx, account.id, from, end, true, &report, func(at int64) error {
			next := place{CheckedS: p.CheckedS, AtS: at}
			if at >= end {
				next = place{CheckedS: end}
			}
			report.Nearer = report.Nearer || at-started > int64(Young/time.Second)
			return keep(next)
		})
		if errors.Is(err, control.ErrConflict) {
			report.note("another audit is under way%s", ofAccount(account.id))
			report.Complete = false
		} else if err != nil {
			problems = append(problems, err)
			report.Complete = false
		}
	}
	a.conclude(&report)
	text, err := json.Marshal(report.brief())
	if err == nil {
		_, err = a.Control.Put(ctx, LastAudit, string(text), last)
	}
	if err != nil && !errors.Is(err, control.ErrConflict) {
		problems = append(problems, err)
	}
	return report, errors.Join(problems...)
}

// brief is the report as it is kept: without the events it names.
func (a Audited) brief() Audited {
	a.Findings = nil
	return a
}

// Since compares everything from a time on, for a person: with heal it records what is missing. It keeps no place.
func (a *Auditor) Since(ctx context.Context, since time.Time, heal bool) (Audited, error) {
	report := Audited{RanMS: a.Now().UnixMilli(), Complete: true}
	end := a.Now().Add(-Young).Unix()
	var problems []error
	for _, id := range append([]string{""}, a.Accounts...) {
		if err := a.pass(ctx, id, since.Unix(), end, heal, &report, func(int64) error { return nil }); err != nil {
			problems = append(problems, err)
			report.Complete = false
		}
	}
	a.conclude(&report)
	return report, errors.Join(problems...)
}

// conclude says what the figures mean.
func (a *Auditor) conclude(report *Audited) {
	if report.Missing > 0 {
		healed := ""
		switch report.Healed {
		case 0:
		case report.Missing:
			healed = ", and were healed"
		default:
			healed = fmt.Sprintf(", of which %d were healed", report.Healed)
		}
		report.note("%d never arrived%s: the endpoint may be disabled, or deliveries may fail; `backstop doctor` looks", report.Missing, healed)
	}
	if report.OtherMode > 0 {
		report.note("Stripe listed %d events of the other mode: the API key does not belong to this deployment's mode (%s)", report.OtherMode, a.Mode)
	}
	if len(a.Unlisted) > 0 && report.Listed+report.Others > 0 {
		report.note("Stripe's list does not hold notifications of API v2, so these types are not compared: %s", strings.Join(a.Unlisted, ", "))
	}
}

func cursorOf(account string) string { return auditCursor + cmp.Or(account, "-") }

func ofAccount(account string) string {
	if account == "" {
		return ""
	}
	return " of " + account
}

func stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
