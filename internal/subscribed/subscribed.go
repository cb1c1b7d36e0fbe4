// Package subscribed says which event types a deployment subscribes to: those of the catalog in events/ that somebody
// handles. The endpoint is made with them and the audit looks for them, so that the two cannot disagree.
//
// A deployment with handlers of its own names its types in the setting BACKSTOP_EVENT_TYPES (-c eventTypes), which
// takes the place of these.
package subscribed

import (
	"backstop/events"
	"backstop/internal/billing"
	"backstop/internal/handler"
)

// Types returns the types, sorted: those given, else the catalog's with a handler in package billing.
func Types(given []string) []string {
	if len(given) > 0 {
		return given
	}
	handled := Handled()
	var types []string
	for _, t := range events.Types() {
		if handled[t.Name] {
			types = append(types, t.Name)
		}
	}
	return types
}

// Handled is the set of types with a handler in package billing.
func Handled() map[string]bool {
	var r handler.Registry
	billing.Register(&r, billing.Config{})
	handled := make(map[string]bool)
	for _, name := range r.Types() {
		handled[name] = true
	}
	return handled
}

// Thin returns those of types that are notifications of API v2: Stripe's list of events does not hold them, and a
// webhook endpoint of API v1 cannot subscribe to them.
func Thin(types []string) []string {
	thin := make(map[string]bool)
	for _, t := range events.Types() {
		thin[t.Name] = t.Thin
	}
	var list []string
	for _, name := range types {
		if thin[name] {
			list = append(list, name)
		}
	}
	return list
}
