package process

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/projection"
)

const (
	// maxCompositions is how often effects are composed in one attempt. A guarded row that moves more often than that
	// within seconds is written by something that does not stop soon.
	maxCompositions = 5

	// maxConflicts is how often a transaction that met a conflict is sent again within the attempt: about 5 s in all.
	maxConflicts = 6
)

// errMoved says that a row an effect was decided from has moved on: the handler decides again.
var errMoved = errors.New("a row the effects were decided from has moved on")

// isLost reports whether an error says that the entry is not ours any more.
func isLost(err error) bool { return errors.Is(err, ledger.ErrLeaseLost) }

// step runs one handler, applies its effects and notes the outcome. lost is how many attempts ended with their
// process: they count against the step's budget.
func (a *attempt) step(h handler.Handler, lost int) {
	// A process can freeze in its claim, or between two handlers, and thaw when the lease has passed.
	if !a.holds() {
		a.lost = true
		return
	}
	began := a.Now()
	step := a.steps[h.Name]
	committed, err := a.perform(h, step)
	if isLost(err) {
		a.lost = true
		return
	}
	outcome := handler.Classify(err)
	if errors.Is(err, ledger.ErrTooLarge) {
		outcome.Verdict, outcome.Class, outcome.Charged = handler.Never, string(ledger.ClassTooLarge), true
	}
	if errors.Is(err, errMoved) || errors.Is(err, ledger.ErrUncommitted) {
		outcome.Verdict, outcome.Class, outcome.Charged = handler.Again, string(ledger.ClassOutage), false
		outcome.Throttled, outcome.Dependency = true, aws
	}
	switch outcome.Verdict {
	case handler.Done:
		done := ledger.Step{Outcome: ledger.Done, Attempts: step.Attempts}
		if a.steps[h.Name] = done; !committed {
			a.touched[h.Name] = done
		}
	case handler.Skips:
		a.skipReason = outcome.Text
		a.set(h.Name, ledger.Step{Outcome: ledger.Skipped, Attempts: step.Attempts, Error: outcome.Text})
	default:
		a.fail(h, step, lost, outcome)
	}
	a.line.step(h.Name, a.steps[h.Name], outcome, a.Now().Sub(began), err)
}

// fail notes a step that is not done: parked if it cannot or may not run again, else open.
func (a *attempt) fail(h handler.Handler, step ledger.Step, lost int, outcome handler.Outcome) {
	failed := ledger.Step{Attempts: step.Attempts, Class: ledger.Class(outcome.Class), Error: outcome.Text}
	on := waitsOn(h, outcome)
	if !outcome.Charged && !outcome.Throttled && outcome.Dependency != "" && a.waited(on) > 0 &&
		a.Breakers.WorksForOthers(outcome.Dependency, string(a.claim.Entry.Key), a.Now().Add(-a.waited(on))) {
		outcome.Charged = true // the dependency is well: it is this event
		a.waits = append(a.waits, wait{on, failed.Class, failed.Error})
	}
	switch {
	case outcome.Charged:
		a.charged = true
		failed.Attempts++
		if outcome.Verdict == handler.Never || failed.Attempts+lost >= a.Budget {
			failed.Outcome = ledger.Parked
		}
	case a.waited(on) >= MaxWait:
		failed.Outcome, failed.Class = ledger.Parked, ledger.ClassOutage
	default:
		a.waits = append(a.waits, wait{on, failed.Class, failed.Error})
	}
	a.delay = max(a.delay, outcome.Delay)
	a.set(h.Name, failed)
}

// waitsOn names what an uncharged step waits on.
func waitsOn(h handler.Handler, outcome handler.Outcome) string {
	if outcome.Dependency != "" {
		return outcome.Dependency
	}
	return "handler " + h.Name
}

// ours marks an error of applying effects as one of our own tables, unless a decision asked somebody else.
func ours(err error) error {
	var dependency *handler.DependencyError
	if errors.As(err, &dependency) {
		return err
	}
	return &handler.DependencyError{Dependency: aws, Err: err}
}

// perform runs the handler and applies its effects. committed says that the step's mark is in the ledger already.
func (a *attempt) perform(h handler.Handler, step ledger.Step) (committed bool, err error) {
	composition := 0
	for range maxCompositions {
		committed, err = a.compose(h, step, &composition)
		if !errors.Is(err, errMoved) {
			return committed, err
		}
	}
	return false, err
}

// compose runs the handler once and applies what it returns. A panic of the handler, or of a decision it left to be
// made, is an error.
func (a *attempt) compose(h handler.Handler, step ledger.Step, composition *int) (committed bool, err error) {
	defer func() {
		if value := recover(); value != nil {
			committed, err = false, panicked(value)
		}
	}()
	ctx := handler.WithBreakers(a.handler, a.Breakers, string(a.claim.Entry.Key))
	effects, err := h.Run(ctx, a.event)
	if err != nil {
		return false, err
	}
	var writes []ledger.Write
	for _, effect := range effects {
		switch effect := effect.(type) {
		case handler.Project:
			if !a.holds() {
				return false, ledger.ErrLeaseLost
			}
			result, err := a.Projector.Apply(ctx, string(a.claim.Entry.Key), effect)
			if err != nil {
				return false, ours(err)
			}
			a.line.project(result)
		case handler.Once:
			writes = append(writes, ledger.Write{
				Table: effect.Table, Key: effect.Key, Set: effect.Set, Add: effect.Add, Expect: effect.Expect,
				Delete: effect.Delete,
			})
		default:
			return false, handler.Permanent(fmt.Errorf("the handler returned an effect of type %T", effect))
		}
	}
	if len(writes) == 0 {
		return false, nil
	}
	return a.commit(h, step, writes, composition)
}

// commit applies effects that are not idempotent, with the step's mark.
func (a *attempt) commit(h handler.Handler, step ledger.Step, writes []ledger.Write, composition *int) (bool, error) {
	for conflicts := 0; ; {
		if !a.holds() {
			return false, ledger.ErrLeaseLost
		}
		err := a.Ledger.Commit(a.batch.handler, a.claim, ledger.Commit{
			Handler:     h.Name,
			Step:        ledger.Step{Outcome: ledger.Done, Attempts: step.Attempts},
			Composition: *composition,
			Writes:      writes,
		})
		*composition++
		var stale *ledger.StaleError
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &stale):
			return false, errMoved
		case errors.Is(err, ledger.ErrUncommitted) && conflicts < maxConflicts:
			if a.pause(a.batch.handler, conflicts) != nil {
				return false, ours(err)
			}
			conflicts++
		default:
			return false, ours(err)
		}
	}
}

// panicked turns what a handler panicked with into an error. A value that is not the runtime's own may hold the
// payload: only its type is told.
func panicked(value any) error {
	text := fmt.Sprintf("a value of type %T", value)
	if own, ok := value.(runtime.Error); ok {
		text = own.Error()
	}
	return &handler.PanicError{Value: text, Stack: debug.Stack()}
}

var _ Projector = (*projection.Store)(nil)
