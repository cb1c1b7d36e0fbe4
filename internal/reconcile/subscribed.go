package reconcile

import "backstop/events"

// Subscribed returns the types an audit looks for: those given, else the whole catalog; and of the catalog, the ones
// that Stripe's list does not hold, being notifications of API v2.
func Subscribed(given []string) (types, unlisted []string) {
	types = given
	for _, t := range events.Types() {
		if len(given) == 0 {
			types = append(types, t.Name)
		}
		if t.Thin {
			unlisted = append(unlisted, t.Name)
		}
	}
	return types, unlisted
}
