package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/projection"
	"backstop/internal/queue"
	"backstop/internal/schema"
	"backstop/internal/sqsbatch"
	"backstop/internal/telemetry"
)

const (
	// Budget is how many charged attempts a step has. With the backoff below the last is about two minutes after the
	// first: longer than a restart of whatever was in the way, short enough not to hold its customer for long.
	Budget = 8

	// MaxWait is how long an event waits uncharged before it is parked: an outage of a day needs a person anyway.
	MaxWait = 24 * time.Hour

	// The backoff: 2 s x 2^n with full jitter, at most 5 minutes, so that a recovered dependency is noticed soon and
	// a day's outage takes 600 of the 1,000 receives a message has.
	backoffBase = 2 * time.Second
	backoffMax  = 5 * time.Minute
)

// Claimer takes entries for work.
type Claimer interface {
	Claim(context.Context, ledger.Claiming) (ledger.Claim, error)
	Unclaim(context.Context, ledger.Key, string) error
}

// Worker writes under a claim.
type Worker interface {
	Commit(context.Context, ledger.Claim, ledger.Commit) error
	Settle(context.Context, ledger.Claim, ledger.Settlement) error
	Release(context.Context, ledger.Claim, ledger.Releasing) error
}

// Keeper changes entries without a claim.
type Keeper interface {
	Replay(context.Context, ledger.Replaying) (ledger.Entry, error)
	Park(context.Context, ledger.Key, ledger.Class, string) error
}

// Ledger is what the processor needs of the ledger; *ledger.Store is one.
type Ledger interface {
	Claimer
	Worker
	Keeper
}

// Queue is what it needs of the queue; *queue.SQS is one.
type Queue interface {
	SendDeadLetter(context.Context, queue.DeadLetter) error
	ChangeVisibility(context.Context, []queue.Visibility) error
}

// Projector applies facts; *projection.Store is one.
type Projector interface {
	Apply(ctx context.Context, eventKey string, p handler.Project) (projection.Result, error)
}

// Timing fits a batch before the function's deadline. All are distances from it.
type Timing struct {
	Start   time.Duration // before: nothing is started any more
	Handler time.Duration // before: the context of handlers ends
	Answer  time.Duration // before: the answer is due, and what still runs ends the process
	Lease   time.Duration // after: the lease of a claim ends
}

// DefaultTiming leaves 17 of the function's 30 seconds to start events in. An event started last has 7 s; 4 s are for
// settling what it left, 2 s for handing back and ending the process. The lease outlives the deadline by 5 s: Lambda
// ends a function at its deadline, and clocks differ by less.
func DefaultTiming() Timing {
	return Timing{Start: 13 * time.Second, Handler: 6 * time.Second, Answer: 2 * time.Second, Lease: 5 * time.Second}
}

// Config is what a Processor is made of. All of it is needed but Mode, Timing, Parallel and Budget.
type Config struct {
	Ledger    Ledger
	Queue     Queue
	Projector Projector
	Registry  *handler.Registry
	Breakers  *handler.Breakers
	Log       *telemetry.Log

	Mode     string         // live or test: events of the other mode are skipped; empty: both are taken
	Now      handler.Clock  // the wall clock
	Random   func() float64 // in [0, 1); safe for concurrent use
	Exit     func()         // ends the process
	Timing   Timing         // zero: DefaultTiming
	Parallel int            // groups at a time; 0: as many as a batch can hold
	Budget   int            // charged attempts of a step; 0: the constant Budget
}

// Processor handles batches. It is safe for concurrent use, though Lambda gives one batch at a time.
type Processor struct{ Config }

// New returns a Processor, or an error that names what is missing.
func New(c Config) (*Processor, error) {
	var problems []error
	for name, missing := range map[string]bool{
		"Ledger": c.Ledger == nil, "Queue": c.Queue == nil, "Projector": c.Projector == nil,
		"Registry": c.Registry == nil, "Breakers": c.Breakers == nil, "Log": c.Log == nil,
		"Now": c.Now == nil, "Random": c.Random == nil, "Exit": c.Exit == nil,
	} {
		if missing {
			problems = append(problems, fmt.Errorf("the processor has no %s", name))
		}
	}
	if c.Timing == (Timing{}) {
		c.Timing = DefaultTiming()
	}
	if t := c.Timing; t.Answer < 0 || t.Handler < t.Answer || t.Start < t.Handler || t.Lease <= 0 {
		problems = append(problems, errors.New("the processor's timing is out of order"))
	}
	if c.Parallel <= 0 {
		c.Parallel = schema.BatchSize
	}
	if c.Budget <= 0 {
		c.Budget = Budget
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &Processor{c}, nil
}

// ErrExited says that a handler was still running when the answer was due. Exit was called; nobody sees this error
// but a test whose Exit returns.
var ErrExited = errors.New("a handler was still running when the batch's answer was due")

// Invoke takes one invocation of the function and returns its answer, as the Lambda runtime calls it.
func (p *Processor) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	messages, err := sqsbatch.Decode(payload)
	if err != nil {
		return nil, err
	}
	failed, err := p.Batch(ctx, messages)
	if err != nil {
		return nil, err
	}
	return sqsbatch.Answer(failed), nil
}

// Batch handles messages and returns the ids of those that stay in the queue, in the batch's order.
func (p *Processor) Batch(ctx context.Context, messages []sqsbatch.Message) ([]string, error) {
	b := newBatch(ctx, p, messages)
	defer b.cancel()
	if b.write.Err() != nil { // too late for anything, the handing back included
		return b.failed(), nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.run()
	}()
	select {
	case <-done:
		return b.failed(), nil
	case <-b.due:
		b.exit(ctx)
		return nil, ErrExited
	}
}

// backoff is the n-th wait, n from 0.
func (p *Processor) backoff(n int) time.Duration {
	ceiling := backoffMax
	if n < 8 { // 2 s x 2^8 is over 5 minutes
		ceiling = min(backoffBase<<max(n, 0), backoffMax)
	}
	return time.Duration(p.Random() * float64(ceiling))
}

// waitBackoff is the next wait of what has waited this long already: doubling, as backoff does, without a count of
// its uncharged attempts.
func (p *Processor) waitBackoff(waited time.Duration) time.Duration {
	n := 0
	for total := backoffBase; total <= waited && n < 8; total += backoffBase << n {
		n++
	}
	return p.backoff(n)
}

// pause waits for about a fifth of a second, longer each try, or until ctx ends.
func (p *Processor) pause(ctx context.Context, try int) error {
	timer := time.NewTimer(time.Duration((0.5 + p.Random()) * float64(200*time.Millisecond) * float64(try+1)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
