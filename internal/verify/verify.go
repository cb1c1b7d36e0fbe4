// Package verify answers, on a deployment, the questions that nobody could answer without an AWS account. Each check
// takes seconds to minutes and says what it found, what was assumed, and what to do when the two differ:
//
//   - latency: how long an acknowledgement takes, and a cold start
//   - delivery: how long until a delivered event is settled
//   - pause: how long disabling and enabling the event source mapping takes, and whether nothing is processed between
//   - visibility: whether Lambda leaves a message's visibility time-out alone after a batch reported it as failed
//   - redrive: whether a pointer moved back by SQS itself runs again, and deduplication swallows nothing
//
// Against the local AWS the checks run as well; what they find there is how the local AWS behaves, which proves the
// checks, not AWS.
//
// Only latency changes nothing. The others deliver events of a type nobody handles, which are skipped and forgotten
// after 35 days; redrive delivers one that cannot be decoded, parks it, and discards it in the end.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"backstop/internal/ledger"
	"backstop/internal/queue"
)

// Ledger is what the checks do with entries; *ledger.Store is one.
type Ledger interface {
	Get(ctx context.Context, key ledger.Key) (ledger.Entry, error)
	Record(ctx context.Context, recording ledger.Recording) (ledger.RecordResult, error)
	Claim(ctx context.Context, claiming ledger.Claiming) (ledger.Claim, error)
	Unclaim(ctx context.Context, key ledger.Key, token string) error
	Discard(ctx context.Context, key ledger.Key, replay int, by, why string) error
}

// Queue sends pointers; *queue.SQS is one.
type Queue interface {
	Send(ctx context.Context, s queue.Send) error
}

// Mapping is the event source mapping.
type Mapping interface {
	Enabled(ctx context.Context) (bool, error)
	Switch(ctx context.Context, on bool) error // returns when it is so
}

// DeadLetters is the dead-letter queue.
type DeadLetters interface {
	Depth(ctx context.Context) (int, error) // messages, taken ones too
	Redrive(ctx context.Context) error      // starts SQS's own move of all messages to the main queue
}

// Endpoint is the webhook.
type Endpoint interface {
	Health(ctx context.Context) error
	Deliver(ctx context.Context, body []byte) (status int, err error)
}

// Deployment is what is checked. All fields are required but Endpoint, without which the checks that deliver say so.
type Deployment struct {
	Ledger      Ledger
	Queue       Queue
	Mapping     Mapping
	DeadLetters DeadLetters
	Endpoint    Endpoint

	Live  bool // the mode of the events to deliver
	By    string
	Now   func() time.Time
	Token func() string // a new unique text of letters and digits

	// Lease is how long the visibility check hides its message; 0: 45 s, clear of both the seconds of a message that
	// comes back at once and the queue's own three minutes.
	Lease time.Duration
	// Quiet is how long nothing may happen while paused; 0: 20 s.
	Quiet time.Duration
}

// Verdict sums a finding up.
type Verdict string

// Verdicts.
const (
	AsAssumed  Verdict = "as assumed"
	Otherwise  Verdict = "otherwise"
	NotChecked Verdict = "not checked"
)

// Figure is one thing measured.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Finding is what a check came to.
type Finding struct {
	Check   string   `json:"check"`
	Verdict Verdict  `json:"verdict"`
	Figures []Figure `json:"figures,omitempty"`
	Means   string   `json:"means"`
}

func (f *Finding) took(name string, d time.Duration) {
	f.Figures = append(f.Figures, Figure{name, float64(d.Milliseconds()), "ms"})
}

// Check is one question.
type Check struct {
	Name     string
	Question string
	Does     string // to the deployment; empty: nothing
	run      func(d *Deployment, ctx context.Context) (Finding, error)
}

// Checks are all of them, in the order to run them in.
var Checks = []Check{
	{"latency", "how long does an acknowledgement take, and a cold start?", "", (*Deployment).latency},
	{"delivery", "how long until a delivered event is settled?",
		"delivers 20 events of a type nobody handles; they are skipped", (*Deployment).delivery},
	{"pause", "how long does disabling the event source mapping take, and enabling it?",
		"stops all processing for about a minute; deliveries are acknowledged meanwhile", (*Deployment).pause},
	{"visibility", "does Lambda leave the visibility time-out alone after a partial batch answer?",
		"records one event of a type nobody handles and holds its lease for a minute; it is skipped", (*Deployment).visibility},
	{"redrive", "does a pointer that SQS itself moves back run again, or does deduplication swallow it?",
		"parks one event that cannot be decoded, which rings the alarms of parked events; redrives it and discards it",
		(*Deployment).redrive},
}

// Run runs the check. A check that cannot be made is a finding; an error is trouble on the way.
func (c Check) Run(ctx context.Context, d *Deployment) (Finding, error) {
	f, err := c.run(d, ctx)
	f.Check = c.Name
	if err != nil {
		return f, fmt.Errorf("check %s: %w", c.Name, err)
	}
	return f, nil
}

// errSlow ends a wait.
var errSlow = errors.New("it took too long")

// poll is how often the checks look.
const poll = 250 * time.Millisecond

// await looks at the entry until it is as wanted, and returns it with the time it took.
func (d *Deployment) await(ctx context.Context, key ledger.Key, patience time.Duration, wanted func(ledger.Entry) bool) (ledger.Entry, time.Duration, error) {
	began := d.Now()
	for {
		entry, err := d.Ledger.Get(ctx, key)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return entry, 0, err
		}
		if took := d.Now().Sub(began); err == nil && wanted(entry) {
			return entry, took, nil
		} else if took > patience {
			return entry, took, fmt.Errorf("wait for %s, which is %q: %w", key, entry.Status, errSlow)
		}
		if err := sleep(ctx, poll); err != nil {
			return entry, 0, err
		}
	}
}

func settled(e ledger.Entry) bool { return e.Status.Settled() }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// median of durations, of which there must be some.
func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
