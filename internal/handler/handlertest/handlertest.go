// Package handlertest runs a handler as the processor would, in one line and without AWS:
//
//	got := handlertest.Run(t, activate, "invoice.paid")
//
// The event is the catalog's sample of the type; options change what the test is about.
package handlertest

import (
	"context"
	"encoding/json"
	"testing"

	"backstop/events"
	"backstop/internal/event"
	"backstop/internal/handler"
)

// Result is what the handler returned, and what the processor would make of its error.
type Result struct {
	Effects []handler.Effect
	Err     error
	Outcome handler.Outcome
}

// Option changes the event before the handler runs.
type Option func(testing.TB, *handler.Event)

// Object replaces data.object by this JSON.
func Object(object string) Option {
	return func(_ testing.TB, e *handler.Event) { e.Object = json.RawMessage(object) }
}

// Previous sets data.previous_attributes.
func Previous(previous string) Option {
	return func(_ testing.TB, e *handler.Event) { e.Previous = json.RawMessage(previous) }
}

// Body replaces the whole event by this JSON, envelope included.
func Body(body string) Option {
	return func(t testing.TB, e *handler.Event) {
		t.Helper()
		*e = parse(t, []byte(body))
	}
}

// With changes anything else of the event: its account, time, replay number.
func With(change func(*handler.Event)) Option {
	return func(_ testing.TB, e *handler.Event) { change(e) }
}

// Run decodes the event and calls the handler. Without an option that says otherwise the event is the catalog's
// sample of the type. The context is the test's.
func Run[T any](t testing.TB, f handler.Func[T], eventType string, options ...Option) Result {
	t.Helper()
	var e handler.Event
	if body, err := events.Sample(eventType); err == nil {
		e = parse(t, body)
	} else {
		e = handler.Event{Key: "stripe#-#evt_test", ID: "evt_test", Type: eventType, CreatedS: 1790000000}
	}
	for _, option := range options {
		option(t, &e)
	}
	h := handler.New(eventType, "test", f)
	effects, err := h.Run(t.Context(), e)
	return Result{effects, err, handler.Classify(err)}
}

// Event returns the handler's view of an event body, as the processor makes it.
func Event(t testing.TB, body []byte) handler.Event {
	t.Helper()
	return parse(t, body)
}

func parse(t testing.TB, body []byte) handler.Event {
	t.Helper()
	envelope, err := event.Parse(body)
	if err != nil {
		t.Fatalf("parse the event: %v", err)
	}
	return handler.Event{
		Key:        envelope.Key(""),
		ID:         envelope.ID,
		Type:       envelope.Type,
		Account:    envelope.Account,
		APIVersion: envelope.APIVersion,
		CreatedS:   envelope.CreatedS,
		Livemode:   envelope.Livemode,
		Thin:       envelope.Thin,
		Object:     envelope.Object,
		Previous:   envelope.Previous,
		Body:       body,
	}
}

// Rows is a handler.Table of rows held in memory, by table and by key attributes joined in the order of their names.
type Rows map[string]handler.Row

// Put stores a row.
func (r Rows) Put(table string, key map[string]string, row handler.Row) { r[place(table, key)] = row }

// Get implements handler.Table.
func (r Rows) Get(_ context.Context, table string, key map[string]string) (handler.Row, error) {
	return r[place(table, key)], nil
}

// place is unambiguous: encoding/json sorts the names of a map.
func place(table string, key map[string]string) string {
	text, err := json.Marshal(key)
	if err != nil {
		panic("handlertest: a map of strings did not encode: " + err.Error())
	}
	return table + string(text)
}
