package subscribed

import (
	"slices"
	"testing"

	"backstop/events"
)

func TestSubscribedIsTheCatalogWithAHandler(t *testing.T) {
	t.Parallel()
	types := Types(nil)
	if !slices.Contains(types, "invoice.paid") || slices.Contains(types, "payout.paid") {
		t.Errorf("want invoice.paid, which billing handles, and not payout.paid, which nobody does: %q", types)
	}
	catalog := make(map[string]bool)
	for _, typ := range events.Types() {
		catalog[typ.Name] = true
	}
	for name := range Handled() {
		if !catalog[name] {
			t.Errorf("%s has a handler and no place in events/: nobody would subscribe to it", name)
		}
	}
}

func TestGivenTypesTakeTheirPlace(t *testing.T) {
	t.Parallel()
	given := []string{"payout.paid", "v1.billing.meter.error_report_triggered"}
	if got := Types(given); !slices.Equal(got, given) {
		t.Errorf("got %q", got)
	}
	if got := Thin(given); !slices.Equal(got, given[1:]) {
		t.Errorf("got %q", got)
	}
}
