package handler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// The breaker's numbers. At half of at least ten calls failing it is cheaper to wait than to try; 30 s is long
// enough for a restart on the other side and short enough that one probe each is no load.
const (
	breakerCalls  = 10
	breakerWindow = time.Minute
	breakerOpen   = 30 * time.Second
	memory        = 64 // results remembered for each dependency
)

// Breakers holds one circuit breaker for each dependency of a process, and remembers which events' calls worked: a
// dependency that fails for one event while it works for others is not down, that event is poison. It is safe for
// concurrent use.
type Breakers struct {
	now  Clock
	mu   sync.Mutex
	each map[string]*dependency
}

type dependency struct {
	breaker *gobreaker.CircuitBreaker[struct{}]
	probing bool // an event that was let through while half open is under way
	results []callResult
}

type callResult struct {
	at    time.Time
	event string
	ok    bool
}

// NewBreakers returns breakers that are all closed.
func NewBreakers(now Clock) *Breakers {
	return &Breakers{now: now, each: make(map[string]*dependency)}
}

// dependency returns the named one, made at first use. The caller holds mu.
func (b *Breakers) dependency(name string) *dependency {
	if d := b.each[name]; d != nil {
		return d
	}
	d := &dependency{breaker: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:         name,
		MaxRequests:  1,
		Interval:     breakerWindow,
		BucketPeriod: breakerWindow / 6,
		Timeout:      breakerOpen,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= breakerCalls && 2*c.TotalFailures >= c.Requests
		},
		IsSuccessful: func(err error) bool {
			outage, throttled := trouble(err)
			return !outage || throttled
		},
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
	})}
	b.each[name] = d
	return d
}

// Admit reports whether an event that needs these dependencies may be started now. It may not while a breaker is
// open, nor while it is half open and another event is its probe. The caller calls leave when the event ends.
func (b *Breakers) Admit(needs []string) (leave func(), waitsOn string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var probes []*dependency
	for _, name := range needs {
		d := b.dependency(name)
		switch state := d.breaker.State(); {
		case state == gobreaker.StateOpen, state == gobreaker.StateHalfOpen && d.probing:
			return func() {}, name, false
		case state == gobreaker.StateHalfOpen:
			probes = append(probes, d)
		}
	}
	for _, d := range probes {
		d.probing = true
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, d := range probes {
			d.probing = false
		}
	}, "", true
}

// WorksForOthers reports whether the dependency has worked for other events than this one since the given time: at
// least ten of their calls, no more than half of them failed, as the breaker counts.
func (b *Breakers) WorksForOthers(name, event string, since time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.each[name]
	if d == nil {
		return false
	}
	calls, failed := 0, 0
	for _, r := range d.results {
		if r.event == event || r.at.Before(since) {
			continue
		}
		calls++
		if !r.ok {
			failed++
		}
	}
	return calls >= breakerCalls && 2*failed <= calls
}

func (b *Breakers) call(name, event string, fn func() error) error {
	b.mu.Lock()
	d := b.dependency(name)
	b.mu.Unlock()
	_, err := d.breaker.Execute(func() (struct{}, error) { return struct{}{}, fn() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return ErrOpen
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	outage, _ := trouble(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(d.results) == memory {
		d.results = append(d.results[:0], d.results[1:]...)
	}
	d.results = append(d.results, callResult{b.now(), event, !outage})
	return err
}

type callerKey struct{}

type caller struct {
	breakers *Breakers
	event    string
}

// WithBreakers returns a context in which Call uses these breakers, on behalf of the event with this ledger key. The
// processor makes one for each attempt.
func WithBreakers(ctx context.Context, b *Breakers, event string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{b, event})
}

// Call calls a dependency: anything outside our own tables. An error comes back as a *DependencyError, so that
// Classify can tell an outage from a refusal. Outages open the dependency's breaker; while it is open fn is not
// called and the error is ErrOpen. Without breakers in ctx, as in a test of a handler, fn is always called.
//
// A call that changes something carries Event.IdempotencyKey.
func Call(ctx context.Context, dependency string, fn func(ctx context.Context) error) error {
	var err error
	if c, ok := ctx.Value(callerKey{}).(caller); ok {
		err = c.breakers.call(dependency, c.event, func() error { return fn(ctx) })
	} else {
		err = fn(ctx)
	}
	if err != nil {
		return &DependencyError{dependency, err}
	}
	return nil
}
