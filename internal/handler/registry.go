package handler

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Registry knows which handlers listen to which type of event. It is filled at start-up and read afterwards.
// The zero value is empty and ready.
type Registry struct {
	byType map[string][]Handler
}

// Option changes how a handler is run.
type Option func(*Handler)

// Needs names the dependencies the handler calls with Call. While the breaker of one is open, its events are handed
// back to the queue unclaimed, so that an outage costs neither attempts nor lease.
func Needs(dependencies ...string) Option {
	return func(h *Handler) { h.Needs = append(h.Needs, dependencies...) }
}

// On registers f for an event type: one line a type. name is unique for the type and stays as it is for ever: it
// names the step in the ledger and in idempotency keys.
//
// It panics on a second handler of the same name for the type and on an empty or odd name, as a duplicate route of
// net/http does: both are mistakes of the program, seen at its first start.
func On[T any](r *Registry, eventType, name string, f Func[T], options ...Option) {
	r.add(New(eventType, name, f, options...))
}

// New makes a handler without registering it.
func New[T any](eventType, name string, f Func[T], options ...Option) Handler {
	h := Handler{
		Name: name,
		Type: eventType,
		Run: func(ctx context.Context, event Event) ([]Effect, error) {
			var object *T
			if !event.Thin {
				object = new(T)
				if err := decode(event.Object, object); err != nil {
					return nil, err
				}
			}
			event.Handler = name
			return f(ctx, event, object)
		},
	}
	for _, option := range options {
		option(&h)
	}
	return h
}

func (r *Registry) add(h Handler) {
	switch {
	case h.Type == "":
		panic("handler: the event type is empty")
	case h.Name == "" || strings.ContainsAny(h.Name, "#/ \t\n"):
		panic(fmt.Sprintf("handler: %q is no name for a handler of %s", h.Name, h.Type))
	}
	for _, other := range r.byType[h.Type] {
		if other.Name == h.Name {
			panic(fmt.Sprintf("handler: %s has two handlers named %q", h.Type, h.Name))
		}
	}
	if r.byType == nil {
		r.byType = make(map[string][]Handler)
	}
	r.byType[h.Type] = append(r.byType[h.Type], h)
}

// For returns the handlers of an event type in the order they were registered; none means that nobody listens.
func (r *Registry) For(eventType string) []Handler { return r.byType[eventType] }

// Types returns the event types somebody listens to, sorted.
func (r *Registry) Types() []string {
	types := make([]string, 0, len(r.byType))
	for t := range r.byType {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

// Needs returns the dependencies the handlers of an event type call, each once.
func (r *Registry) Needs(eventType string) []string {
	var needs []string
	for _, h := range r.byType[eventType] {
		for _, need := range h.Needs {
			if !slices.Contains(needs, need) {
				needs = append(needs, need)
			}
		}
	}
	return needs
}
