package billing_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/billing"
	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
	"backstop/internal/stripeapi"
)

// lines are n lines of an invoice, as a list's data.
func lines(n int) []json.RawMessage {
	list := make([]json.RawMessage, n)
	for i := range list {
		list[i] = json.RawMessage(fmt.Sprintf(`{"id":"il_%d","amount":80,"quantity":1}`, i+1))
	}
	return list
}

func cutInvoice(t *testing.T, shown int) string {
	t.Helper()
	data, err := json.Marshal(lines(shown))
	if err != nil {
		t.Fatal(err)
	}
	return body("evt_1", "invoice.paid", 10, `{"id":"in_1","status":"paid","total":2000,"lines":{"data":`+string(data)+`,"has_more":true}}`)
}

func TestCutInvoiceLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		api  billing.Stripe
		want string
	}{
		"no key":        {nil, `{"line_count":10,"lines_complete":false,"total":2000}`},
		"key is empty":  {&stub{err: stripeapi.ErrNoKey}, `{"line_count":10,"lines_complete":false}`},
		"not permitted": {&stub{err: &stripeapi.Error{Status: 403}}, `{"line_count":10,"lines_complete":false}`},
		"read whole":    {&stub{lines: map[string][]json.RawMessage{"in_1": lines(25)}}, `{"line_count":25,"lines_complete":true,"total":2000}`},
		"too many":      {&stub{lines: map[string][]json.RawMessage{"in_1": lines(101)}}, `{"line_count":101,"lines_complete":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.api)
			w.send(cutInvoice(t, 10))
			w.wants("in_1", c.want)
			got := w.object("in_1")
			shown, _ := got["lines"].([]any)
			if want := map[string]int{"read whole": 25, "too many": 100}[name]; want > 0 && len(shown) != want {
				t.Errorf("%d lines are kept, want %d", len(shown), want)
			}
		})
	}
}

func TestRefetchedInvoiceIsReadWhole(t *testing.T) {
	t.Parallel()
	truth := `{"id":"in_1","status":"open","total":80,"lines":{"data":[{"id":"il_1","amount":80}],"has_more":true}}`
	w := newWorld(t, &stub{objects: map[string]json.RawMessage{"in_1": json.RawMessage(truth)}, lines: map[string][]json.RawMessage{"in_1": lines(25)}})
	w.send(body("evt_1", "invoice.updated", 10, `{"id":"in_1","status":"open","total":1}`))
	w.send(body("evt_2", "invoice.updated", 10, `{"id":"in_1","status":"open","total":2}`))
	w.wants("in_1", `{"total":80,"line_count":25,"lines_complete":true,"order_unsure":null}`)
}

func TestInvoiceWaitsForLinesWhileStripeIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &stub{err: &handler.DependencyError{Dependency: "stripe", Err: &stripeapi.Error{Status: 500}}})
	err := w.deliver(handlertest.Event(t, []byte(cutInvoice(t, 10))))
	if o := handler.Classify(err); o.Charged || o.Verdict != handler.Again {
		t.Fatalf("got %+v of %v, want an uncharged retry", o, err)
	}
	if w.object("in_1") != nil {
		t.Error("a row was written")
	}
}

func TestCutSubscriptionItems(t *testing.T) {
	t.Parallel()
	const cut = `{"id":"sub_1","status":"active","items":{"data":[{"id":"si_1","quantity":1}],"has_more":true}}`
	w := newWorld(t, nil)
	w.send(body("evt_1", "customer.subscription.updated", 10, cut))
	w.wants("sub_1", `{"items_complete":false}`)
	w = newWorld(t, &stub{lines: map[string][]json.RawMessage{"sub_1": {json.RawMessage(`{"id":"si_1","quantity":1}`), json.RawMessage(`{"id":"si_2","quantity":2,"current_period_end":9}`)}}})
	w.send(body("evt_1", "customer.subscription.updated", 10, cut))
	w.wants("sub_1", `{"items":{"si_2":{"quantity":2}},"items_complete":true,"current_period_end":9}`)
}

// summary is an event that says what cus_1 may use.
func summary(id string, created int, more bool, previous string, keys ...string) string {
	list := func(keys []string) string {
		var data []string
		for _, key := range keys {
			data = append(data, fmt.Sprintf(`{"id":"ent_%s","lookup_key":%q,"feature":"feat_%s"}`, key, key, key))
		}
		return strings.Join(data, ",")
	}
	object := fmt.Sprintf(`{"customer":"cus_1","entitlements":{"data":[%s],"has_more":%v}}`, list(keys), more)
	if previous == "-" {
		return body(id, "entitlements.active_entitlement_summary.updated", created, object)
	}
	return changed(id, "entitlements.active_entitlement_summary.updated", created, object,
		fmt.Sprintf(`{"entitlements":{"data":[%s]}}`, list(strings.Fields(previous))))
}

func (w *world) entitledTo(t *testing.T, key string) []string {
	t.Helper()
	customers, _, err := w.reader.Entitled(t.Context(), "", key, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	return customers
}

func TestWhoHasAnEntitlementFollowsTheNewestSummary(t *testing.T) {
	t.Parallel()
	for name, bodies := range map[string][]string{
		"three seconds": {
			summary("evt_1", 10, false, "-", "a", "b"), summary("evt_2", 20, false, "-", "b", "c"), summary("evt_3", 30, false, "-", "c"),
		},
		"one second": {summary("evt_9", 10, false, "", "a", "b"), summary("evt_1", 10, false, "b a", "c")},
		"taken away": {summary("evt_1", 10, false, "-", "a", "b", "c"), summary("evt_2", 20, false, "-", "c")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inAllOrders(t, nil, bodies, func(w *world, _ []int) {
				a, err := w.reader.Customer(t.Context(), "", "cus_1")
				if err != nil || a.Entitlements == nil || show(a.Entitlements.Keys) != `["c"]` || a.Entitlements.OrderUnsure {
					t.Fatalf("got %s, %v", show(a.Entitlements), err)
				}
				for key, want := range map[string]int{"a": 0, "b": 0, "c": 1} {
					if got := w.entitledTo(t, key); len(got) != want {
						t.Errorf("%v have %s, want %d", got, key, want)
					}
				}
			})
		})
	}
}

func TestCutSummaryTakesNothingAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.send(summary("evt_1", 10, false, "-", "a", "b"))
	w.send(summary("evt_2", 20, true, "-", "b", "c"))
	a, err := w.reader.Customer(t.Context(), "", "cus_1")
	if err != nil || a.Entitlements.Complete {
		t.Fatalf("got %s, %v: want it marked", show(a.Entitlements), err)
	}
	for _, key := range []string{"a", "b", "c"} {
		if got := w.entitledTo(t, key); len(got) != 1 {
			t.Errorf("%v have %s", got, key)
		}
	}
}

func TestCutSummaryIsReadWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &stub{entitlements: map[string]json.RawMessage{"cus_1": json.RawMessage(`{"data":[{"lookup_key":"b"},{"lookup_key":"z"},{"lookup_key":null,"feature":{"id":"feat_9"}}]}`)}})
	w.send(summary("evt_1", 10, false, "-", "a"))
	w.send(summary("evt_2", 20, true, "-", "b"))
	a, err := w.reader.Customer(t.Context(), "", "cus_1")
	if err != nil || !a.Entitlements.Complete || show(a.Entitlements.Keys) != `["b","feat_9","z"]` {
		t.Fatalf("got %s, %v", show(a.Entitlements), err)
	}
	for key, want := range map[string]int{"a": 0, "b": 1, "z": 1, "feat_9": 1} {
		if got := w.entitledTo(t, key); len(got) != want {
			t.Errorf("%v have %s, want %d", got, key, want)
		}
	}
}

func TestEntitledIsPagedAndOfOneAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 5 {
		w.send(strings.ReplaceAll(summary(fmt.Sprintf("evt_%d", i), 10, false, "-", "a"), "cus_1", fmt.Sprintf("cus_%d", i)))
	}
	e := handlertest.Event(t, []byte(summary("evt_9", 10, false, "-", "a")))
	if err := w.deliver(within(e, "acct_1")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for after := ""; ; {
		page, next, err := w.reader.Entitled(t.Context(), "", "a", after, 2)
		if err != nil || len(page) > 2 {
			t.Fatalf("%v, %v", page, err)
		}
		got = append(got, page...)
		if after = next; after == "" {
			break
		}
	}
	if show(got) != `["cus_0","cus_1","cus_2","cus_3","cus_4"]` {
		t.Errorf("got %v", got)
	}
	if _, _, err := w.reader.Entitled(t.Context(), "", "a", "nonsense", 2); err == nil {
		t.Error("a cursor that is none was taken")
	}
}
