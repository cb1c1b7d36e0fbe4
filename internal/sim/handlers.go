package sim

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"time"

	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/schema"
)

// thing is the object of every event.
type thing struct {
	Customer string `json:"customer"`
	State    int64  `json:"state"`
}

const dependency = "outside"

// handlers is the registry of a process.
func (w *world) handlers(p *proc) *handler.Registry {
	var r handler.Registry
	h := &handlers{w, p}
	register := func(typ, name string, f handler.Func[thing], options ...handler.Option) {
		made := handler.New(typ, name, f, options...)
		if hook := w.Hooks.Handler; hook != nil {
			made = hook(w.seam(p), made)
		}
		handler.On(&r, typ, name, func(ctx context.Context, e handler.Event, _ *json.RawMessage) ([]handler.Effect, error) {
			return made.Run(ctx, e)
		}, options...)
	}
	register(typeOnce, "count", h.run(h.count))
	register(typeProject, "project", h.run(h.project))
	register(typeBoth, "both", h.run(func(ctx context.Context, e handler.Event, t *thing) ([]handler.Effect, error) {
		counted, _ := h.count(ctx, e, t)
		projected, _ := h.project(ctx, e, t)
		return append(counted, projected...), nil
	}))
	register(typeTwo, "count", h.run(h.count))
	register(typeTwo, "call", h.run(h.call), handler.Needs(dependency))
	return &r
}

type handlers struct {
	w *world
	p *proc
}

// run stands around each handler: it tells who watches, and does what the event's conduct says. Where a type has two
// handlers it is the second that misbehaves.
func (h *handlers) run(f handler.Func[thing]) handler.Func[thing] {
	return func(ctx context.Context, e handler.Event, t *thing) ([]handler.Effect, error) {
		wit, run := h.w.handlerStarts(h.p, ledger.Key(e.Key), e)
		effects, err := h.behave(ctx, wit, run, e, t, f)
		h.w.handlerEnds(h.p, wit, e, err)
		return effects, err
	}
}

var errFails = errors.New("the handler fails")

func (h *handlers) behave(ctx context.Context, wit *witness, run int, e handler.Event, t *thing, f handler.Func[thing]) ([]handler.Effect, error) {
	w, plan := h.w, wit.planned
	d := w.dice.about("handler", plan.id).number(run)
	pause := func(low, high time.Duration) {
		h.sleep(ctx, d.about("pause").between(low, high))
	}
	if plan.typ == typeTwo && e.Handler == "count" {
		return f(ctx, e, t)
	}
	mended := plan.fixed > 0 && time.Since(w.start) >= plan.fixed
	first := run < plan.times
	switch plan.conduct {
	case slow:
		pause(2*time.Second, 12*time.Second)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	case skips:
		return nil, handler.Skip("there is nothing to do")
	case fails:
		if first {
			pause(0, time.Second)
			return nil, errFails
		}
	case panics:
		if first {
			w.handlerEnds(h.p, wit, e, errFails)
			panic("the handler panics")
		}
	case retries:
		if first {
			return nil, handler.Retry(errors.New("not yet"))
		}
	case waits:
		if first {
			return nil, handler.RetryAfter(d.about("after").between(time.Second, 3*time.Minute), errors.New("not yet"))
		}
	case hangs:
		if first {
			h.hang()
		}
	case hangman:
		if !mended {
			h.hang()
		}
	case kills:
		if first {
			pause(0, 2*time.Second)
			h.kill()
		}
	case killer:
		if !mended {
			pause(0, 2*time.Second)
			h.kill()
		}
	case refuses:
		if !mended {
			return nil, handler.Permanent(errFails)
		}
	case poison:
		if !mended {
			return nil, errFails
		}
	}
	return f(ctx, e, t)
}

// sleep waits, and does not come back when the process has died.
func (h *handlers) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	h.p.stop()
}

// hang takes no notice of its context: only the end of the process ends it.
func (h *handlers) hang() {
	<-h.p.life.Done()
	runtime.Goexit()
}

// kill is what a handler does that eats all memory.
func (h *handlers) kill() {
	h.w.fault(faultOOM)
	h.p.end(faultOOM)
	runtime.Goexit()
}

// Names of rows in the billing table.
func countRow(key string) map[string]string {
	return map[string]string{schema.PK: "count#" + key, schema.SK: "-"}
}

func projectRow(group string) map[string]string {
	return map[string]string{schema.PK: "state#" + group, schema.SK: "-"}
}

func (h *handlers) count(_ context.Context, e handler.Event, _ *thing) ([]handler.Effect, error) {
	return []handler.Effect{handler.Once{
		Table: h.w.names.BillingTable, Key: countRow(e.Key), Set: handler.Row{"event": e.ID}, Add: map[string]int64{"n": 1},
	}}, nil
}

func (h *handlers) project(_ context.Context, e handler.Event, t *thing) ([]handler.Effect, error) {
	decide := h.w.Hooks.Decide
	if decide == nil {
		decide = bothWays
	}
	previous := t.State - 1
	return []handler.Effect{handler.Project{
		Table: h.w.names.BillingTable, Key: projectRow(t.Customer),
		Set:     handler.Row{"state": t.State, "previous": previous},
		Version: handler.Version{CreatedS: e.CreatedS, Rank: 10, EventID: e.ID},
		Decide: func(_ context.Context, stored handler.Stored) (handler.Decision, error) {
			if len(stored.Ties) > 0 {
				return handler.Unsure, nil
			}
			state, _ := stored.Row["state"].(int64)
			before, _ := stored.Row["previous"].(int64)
			return decide(t.State, previous, state, before), nil
		},
	}}, nil
}

// bothWays is the rule for two events of one second: what an event's previous values are is what was there before it.
func bothWays(incoming, previous, storedState, storedPrevious int64) handler.Decision {
	newer, older := previous == storedState, storedPrevious == incoming
	switch {
	case newer && !older:
		return handler.Newer
	case older && !newer:
		return handler.Older
	}
	return handler.Unsure
}

// call calls the outside, which may be down, or do what it was asked and not say so.
func (h *handlers) call(ctx context.Context, e handler.Event, _ *thing) ([]handler.Effect, error) {
	return nil, handler.Call(ctx, dependency, func(ctx context.Context) error {
		key := e.IdempotencyKey("call")
		d := h.w.dice.about("outside", e.Key).at(time.Now())
		h.sleep(ctx, d.about("took").between(20*time.Millisecond, 400*time.Millisecond))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return h.w.called(ledger.Key(e.Key), key)
	})
}

// called is the other side of call.
func (w *world) called(key ledger.Key, idempotency string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outside.isDown(time.Now()) && !w.calmed {
		w.report.Faults[faultOutside]++
		return &handler.StatusError{Status: http.StatusServiceUnavailable}
	}
	calls := w.outside.calls[key]
	if calls == nil {
		calls = make(map[string]int)
		w.outside.calls[key] = calls
	}
	calls[idempotency]++
	if w.profile.wire > 0 && !w.calmed && len(calls) == 1 && calls[idempotency] == 1 &&
		w.dice.about("outside reply", string(key)).chance(w.profile.wire) {
		w.report.Faults[faultOutside]++
		return &handler.StatusError{Status: http.StatusBadGateway}
	}
	return nil
}
