package process

import (
	"context"
	"slices"
	"time"

	"backstop/internal/event"
	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/queue"
)

// attempt is the work on one claimed entry.
type attempt struct {
	*batch
	line  line
	claim ledger.Claim
	event handler.Event

	steps   map[string]ledger.Step // as they stand, by handler
	touched map[string]ledger.Step // those of this attempt that no Commit has marked
	charged bool
	lost    bool // the lease is not ours any more: write nothing
	late    bool // the time was over before every handler had its turn

	// Of the step that failed last.
	class ledger.Class
	text  string

	skipReason string
	waits      []wait
	delay      time.Duration // the longest RetryAfter
}

// wait is one step that waits on something.
type wait struct {
	on    string
	class ledger.Class
	text  string
}

func newAttempt(b *batch, l line, claim ledger.Claim) *attempt {
	l.entry, l.claimed = claim.Entry, b.Now()
	a := &attempt{
		batch: b, line: l, claim: claim,
		steps:   make(map[string]ledger.Step, len(claim.Entry.Steps)),
		touched: make(map[string]ledger.Step),
	}
	for name, step := range claim.Entry.Steps {
		a.steps[name] = step
	}
	return a
}

// attempt works on a claimed entry until it is settled, released, parked, or not ours any more.
func (b *batch) attempt(l line, claim ledger.Claim) verdict {
	a := newAttempt(b, l, claim)
	entry := claim.Entry
	if b.Mode != "" && entry.Livemode != (b.Mode == "live") {
		a.line.wrongMode = true
		return a.skip("the event is of the other mode")
	}
	handlers := a.wanted(b.Registry.For(entry.Type))
	if len(handlers) == 0 {
		return a.skip("no handler listens to the type")
	}
	envelope, err := event.Parse(entry.Body)
	if err != nil {
		// The receiver read it once; an entry that got here otherwise is for a person.
		a.class, a.text, a.charged = ledger.ClassDecode, handler.Text(err), true
		return a.park()
	}
	a.event = a.view(envelope)
	lost := a.leasesLost()
	for _, h := range inTurn(handlers, claim.Generation) {
		step := a.steps[h.Name]
		if step.Outcome != "" {
			continue
		}
		if lost > 0 && step.Attempts+lost >= a.Budget {
			a.set(h.Name, ledger.Step{Outcome: ledger.Parked, Attempts: step.Attempts + lost, Class: ledger.ClassLease,
				Error: "the process died or stalled at every attempt"})
			continue
		}
		if a.batch.handler.Err() != nil {
			a.late = true // it would fail for the time that those before it took
			break
		}
		a.step(h, lost)
		if lost > 0 && !a.lost {
			a.mark(h.Name)
		}
		if a.lost {
			return a.line.lost(b.backoff(l.message.ReceiveCount - 1))
		}
	}
	return a.finish(handlers)
}

// inTurn is the order the handlers run in: that of their registration, beginning with another one at each attempt. One
// that ends its process, or takes all the time there is, must not keep those behind it from ever having their turn.
func inTurn(handlers []handler.Handler, generation int64) []handler.Handler {
	first := int(max(generation-1, 0) % int64(len(handlers)))
	return slices.Concat(handlers[first:], handlers[:first])
}

// mark writes at once what a step came to that is done, instead of with the settling: the next handler may be what ends
// the process, and must not take this one along. What cannot be written now is written then.
func (a *attempt) mark(name string) {
	step, noted := a.touched[name]
	if !noted || step.Outcome != ledger.Done && step.Outcome != ledger.Skipped {
		return
	}
	if !a.holds() {
		a.lost = true
		return
	}
	switch err := a.Ledger.Commit(a.write, a.claim, ledger.Commit{Handler: name, Step: step}); {
	case err == nil:
		delete(a.touched, name)
	case isLost(err):
		a.lost = true
	}
}

// wanted leaves out handlers that a replay of one handler only did not ask for.
func (a *attempt) wanted(handlers []handler.Handler) []handler.Handler {
	replays := a.claim.Entry.Replays
	if len(replays) == 0 || replays[len(replays)-1].Handler == "" {
		return handlers
	}
	var wanted []handler.Handler
	for _, h := range handlers {
		_, known := a.steps[h.Name]
		if known || h.Name == replays[len(replays)-1].Handler {
			wanted = append(wanted, h)
		}
	}
	return wanted
}

// leasesLost is how many charged attempts no step accounts for: those that ended with their process. With several
// handlers, whose charges can fall into one attempt, it is the least there can have been.
func (a *attempt) leasesLost() int {
	lost := a.claim.Entry.Attempts
	for _, step := range a.steps {
		lost -= step.Attempts
	}
	return max(lost, 0)
}

func (a *attempt) view(envelope event.Event) handler.Event {
	entry := a.claim.Entry
	return handler.Event{
		Key:        string(entry.Key),
		ID:         envelope.ID,
		Type:       entry.Type,
		Account:    entry.Account,
		APIVersion: envelope.APIVersion,
		CreatedS:   entry.CreatedS,
		Livemode:   entry.Livemode,
		Backfill:   entry.Origin == ledger.Backfill,
		Thin:       envelope.Thin,
		Object:     envelope.Object,
		Previous:   envelope.Previous,
		Body:       entry.Body,
		Replay:     entry.Replay,
		Attempt:    entry.Attempts,
		Run:        entry.Run,
	}
}

// set notes a step's outcome that no Commit has marked.
func (a *attempt) set(name string, step ledger.Step) {
	a.steps[name], a.touched[name] = step, step
	if step.Outcome != ledger.Done && step.Outcome != ledger.Skipped {
		a.class, a.text = step.Class, step.Error
	}
}

// finish ends the attempt by what its steps have come to.
func (a *attempt) finish(handlers []handler.Handler) verdict {
	open, parked, skipped := 0, 0, 0
	for _, h := range handlers {
		switch a.steps[h.Name].Outcome {
		case "":
			open++
		case ledger.Parked:
			parked++
		case ledger.Skipped:
			skipped++
		}
	}
	switch {
	case open > 0:
		return a.release()
	case parked > 0:
		a.failure(handlers)
		return a.park()
	case skipped == len(handlers):
		return a.skip(a.skipReason)
	}
	return a.settle(ledger.Settlement{Status: ledger.Done, Steps: a.touched, Charge: a.charged})
}

// failure takes the class and text of the parked step, should this attempt not have come across it.
func (a *attempt) failure(handlers []handler.Handler) {
	for _, h := range handlers {
		if step := a.steps[h.Name]; step.Outcome == ledger.Parked && a.class == "" {
			a.class, a.text = step.Class, step.Error
		}
	}
}

func (a *attempt) skip(reason string) verdict {
	a.text = reason
	return a.settle(ledger.Settlement{Status: ledger.Skipped, Steps: a.touched, Error: reason})
}

// park sends the doorbell before it settles: a crash between the two rings it for nothing, never the other way round.
func (a *attempt) park() verdict {
	if !a.holds() {
		return a.line.lost(a.backoff(a.line.message.ReceiveCount - 1))
	}
	entry := a.claim.Entry
	attempts := entry.Attempts
	if a.charged {
		attempts++
	}
	err := a.persist(a.write, func(ctx context.Context) error {
		return a.Queue.SendDeadLetter(ctx, queue.DeadLetter{
			Body: queue.Encode(queue.Pointer{
				Key: string(entry.Key), Type: entry.Type, CreatedS: entry.CreatedS, Replay: entry.Replay,
				Generation: a.claim.Generation,
			}),
			Group:           entry.Group,
			DeduplicationID: queue.DeadLetterID(entry.EventID, a.claim.Generation),
			Reason:          a.text,
			Class:           string(a.class),
			Attempts:        attempts,
		})
	})
	if err != nil {
		return a.giveBack("dead_letter", err)
	}
	return a.settle(ledger.Settlement{
		Status: ledger.Parked, Steps: a.touched, Class: a.class, Error: a.text, Charge: a.charged,
	})
}

func (a *attempt) settle(s ledger.Settlement) verdict {
	if !a.holds() {
		return a.line.lost(a.backoff(a.line.message.ReceiveCount - 1))
	}
	err := a.persist(a.write, func(ctx context.Context) error { return a.Ledger.Settle(ctx, a.claim, s) })
	switch {
	case err == nil:
		return a.line.settled(a, s.Status)
	case isLost(err):
		return a.line.lost(a.backoff(a.line.message.ReceiveCount - 1))
	}
	return a.giveBack("settle", err)
}

// release hands the entry back for a later attempt.
func (a *attempt) release() verdict {
	entry := a.claim.Entry
	r := ledger.Releasing{Steps: a.touched, Charge: a.charged, Class: a.class, Error: a.text}
	if len(a.waits) > 0 {
		w := a.waits[0]
		for _, other := range a.waits { // the wait that is counted already goes on being counted
			if other.on == entry.WaitsOn {
				w = other
			}
		}
		r.WaitsOn, r.Class, r.Error = w.on, w.class, w.text
	}
	if a.late && r.Class == "" {
		r.Class, r.Error = ledger.ClassRetry, "no time was left for all handlers"
	}
	delay := a.delay
	switch {
	case delay > 0:
	case a.charged:
		delay = a.backoff(entry.Attempts)
	default:
		delay = a.waitBackoff(a.waited(r.WaitsOn))
	}
	a.class, a.text, a.line.dependency = r.Class, r.Error, r.WaitsOn
	if !a.holds() {
		return a.line.lost(delay)
	}
	err := a.persist(a.write, func(ctx context.Context) error { return a.Ledger.Release(ctx, a.claim, r) })
	switch {
	case err == nil:
		return a.line.released(a, delay)
	case isLost(err):
		return a.line.lost(delay)
	}
	return a.line.stuck(a, "release", err, a.untilFree())
}

// giveBack releases an entry whose last write failed, uncharged: our own tables or queues are in trouble.
func (a *attempt) giveBack(doing string, cause error) verdict {
	if !a.holds() {
		return a.line.lost(a.untilFree())
	}
	r := ledger.Releasing{Steps: a.touched, Charge: a.charged, Class: ledger.ClassOutage, Error: handler.Text(cause), WaitsOn: aws}
	err := a.persist(a.write, func(ctx context.Context) error { return a.Ledger.Release(ctx, a.claim, r) })
	if isLost(err) {
		return a.line.lost(a.untilFree())
	}
	if err != nil {
		return a.line.stuck(a, doing, cause, a.untilFree())
	}
	return a.line.stuck(a, doing, cause, a.waitBackoff(a.waited(aws)))
}

// aws names our own tables and queues as what an entry waits on.
const aws = "aws"

// waited is how long the entry has waited on this already.
func (a *attempt) waited(on string) time.Duration {
	entry := a.claim.Entry
	if entry.WaitsOn != on || entry.FirstWaitMS == 0 {
		return 0
	}
	return a.Now().Sub(time.UnixMilli(entry.FirstWaitMS))
}

// untilFree is when somebody else can claim an entry that could not be released.
func (a *attempt) untilFree() time.Duration { return a.claim.Until.Sub(a.Now()) + time.Second }

// leaseGuard is how long before its end the worker stops believing in its lease: a write under way takes a while, and
// clocks differ.
const leaseGuard = 2 * time.Second

// holds reports whether the lease is still believed in. The wall clock decides: the runtime's own stands still while
// a function is frozen.
func (a *attempt) holds() bool {
	return !a.lost && a.Now().Round(0).Before(a.claim.Until.Add(-leaseGuard))
}
