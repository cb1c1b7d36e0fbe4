package billing_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"backstop/internal/billing"
	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
	"backstop/internal/stripeapi"
)

func sub(status, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"id":"sub_1","customer":"cus_1","status":"` + status + `"` + more + `}`
}

// inAllOrders delivers bodies in every order, each in a world of its own.
func inAllOrders(t *testing.T, api func() billing.Stripe, bodies []string, check func(w *world, order []int)) {
	t.Helper()
	for _, order := range ordersOf(len(bodies)) {
		var asked billing.Stripe
		if api != nil {
			asked = api()
		}
		w := newWorld(t, asked)
		for _, n := range order {
			w.send(bodies[n])
		}
		check(w, order)
		if t.Failed() {
			t.Fatalf("the order was %v", order)
		}
	}
}

func TestTiesOfOneSecondAreDecidedByPreviousAttributes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bodies []string
		want   string
	}{
		"created and updated": {[]string{
			body("evt_1", "customer.subscription.created", 10, sub("incomplete", "")),
			changed("evt_2", "customer.subscription.updated", 10, sub("active", ""), `{"status":"incomplete"}`),
		}, `{"status":"active","order_unsure":null}`},
		"an update that says what the other was": {[]string{
			body("evt_2", "customer.subscription.trial_will_end", 10, sub("trialing", `"items":{"data":[{"id":"si_1","price":{"id":"old"}}]}`)),
			changed("evt_1", "customer.subscription.updated", 10, sub("active", `"items":{"data":[{"id":"si_1","price":{"id":"new"}}]}`),
				`{"status":"trialing","items":{"data":[{"id":"si_1","price":{"id":"old"}}]}}`),
		}, `{"status":"active","items":{"si_1":{"price":"new"}},"order_unsure":null}`},
		"two updates, one after the other": {[]string{
			changed("evt_2", "customer.subscription.updated", 10, sub("past_due", `"cancel_at_period_end":false`), `{"status":"active"}`),
			changed("evt_1", "customer.subscription.updated", 10, sub("past_due", `"cancel_at_period_end":true`), `{"cancel_at_period_end":false}`),
		}, `{"status":"past_due","cancel_at_period_end":true,"order_unsure":null}`},
		"a new key of metadata": {[]string{
			changed("evt_2", "customer.subscription.updated", 10, sub("active", `"trial_end":5,"metadata":{}`), `{"trial_end":null}`),
			changed("evt_1", "customer.subscription.updated", 10, sub("active", `"trial_end":6,"metadata":{"a":"b"}`), `{"trial_end":5,"metadata":{"a":null}}`),
		}, `{"trial_end":6,"order_unsure":null}`},
		"they say the same": {[]string{
			changed("evt_1", "customer.subscription.updated", 10, sub("paused", `"metadata":{"x":"1"}`), `{"status":"trialing"}`),
			body("evt_2", "customer.subscription.paused", 10, sub("paused", "")),
		}, `{"status":"paused","order_unsure":null}`},
		"three that say the same, for what is kept": {[]string{
			changed("evt_1", "customer.subscription.updated", 10, sub("active", `"metadata":{"x":"1"}`), `{"metadata":{"x":null}}`),
			changed("evt_2", "customer.subscription.updated", 10, sub("active", `"metadata":{"x":"2"}`), `{"metadata":{"x":"1"}}`),
			changed("evt_3", "customer.subscription.updated", 10, sub("active", `"metadata":{"x":"3"}`), `{"metadata":{"x":"2"}}`),
		}, `{"status":"active","order_unsure":null}`},
		"an end": {[]string{
			changed("evt_2", "customer.subscription.updated", 10, sub("active", ""), `{"status":"trialing"}`),
			body("evt_1", "customer.subscription.deleted", 10, sub("canceled", `"ended_at":10`)),
		}, `{"status":"canceled","ended_at":10,"order_unsure":null}`},
		"a list in another order": {[]string{
			body("evt_2", "customer.subscription.resumed", 10, sub("active", `"items":{"data":[{"id":"si_1","quantity":1},{"id":"si_2","quantity":1}]}`)),
			changed("evt_1", "customer.subscription.updated", 10, sub("active", `"items":{"data":[{"id":"si_1","quantity":1},{"id":"si_2","quantity":2}]}`),
				`{"items":{"data":[{"id":"si_2","quantity":1},{"id":"si_1","quantity":1}]}}`),
		}, `{"items":{"si_2":{"quantity":2}},"order_unsure":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inAllOrders(t, nil, c.bodies, func(w *world, _ []int) { w.wants("sub_1", c.want) })
		})
	}
}

func TestInvoiceOfOneSecondFollowsItsLife(t *testing.T) {
	t.Parallel()
	const fields = `{"id":"in_1","customer":"cus_1","currency":"usd","total":0,"status":`
	for name, c := range map[string]struct {
		bodies []string
		want   string
	}{
		"paid at once": {[]string{
			body("evt_4", "invoice.created", 10, fields+`"draft"}`),
			body("evt_3", "invoice.finalized", 10, fields+`"open","attempt_count":0}`),
			body("evt_2", "invoice.payment_succeeded", 10, fields+`"paid","attempt_count":1}`),
			body("evt_1", "invoice.paid", 10, fields+`"paid","attempt_count":1}`),
		}, `{"status":"paid","order_unsure":null}`},
		"failed at once": {[]string{
			body("evt_3", "invoice.created", 10, fields+`"open"}`),
			body("evt_2", "invoice.finalized", 10, fields+`"open","attempt_count":0}`),
			body("evt_1", "invoice.payment_failed", 10, fields+`"open","attempt_count":1}`),
		}, `{"status":"open","attempt_count":1,"order_unsure":null}`},
		"written off and voided": {[]string{
			body("evt_2", "invoice.marked_uncollectible", 10, fields+`"uncollectible"}`),
			body("evt_1", "invoice.voided", 10, fields+`"void"}`),
		}, `{"status":"void","order_unsure":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inAllOrders(t, nil, c.bodies, func(w *world, _ []int) { w.wants("in_1", c.want) })
		})
	}
}

func TestFactsThatSayTheSameStandOnTheSameEvent(t *testing.T) {
	t.Parallel()
	bodies := []string{
		body("evt_1", "invoice.paid", 10, `{"id":"in_1","status":"paid"}`),
		body("evt_2", "invoice.payment_succeeded", 10, `{"id":"in_1","status":"paid"}`),
	}
	inAllOrders(t, nil, bodies, func(w *world, _ []int) {
		object, err := w.reader.Object(t.Context(), "", "in_1")
		if err != nil {
			t.Fatal(err)
		}
		if got := object.(*billing.Invoice).Facts; len(got) != 1 || got[0].EventKey != "stripe#-#evt_2" || got[0].Unsure {
			t.Errorf("the row stands on %+v", got)
		}
	})
}

// Each pair cannot be told apart: neither says what the other was, or both do.
var undecidable = map[string][]string{
	"neither": {
		body("evt_1", "customer.subscription.updated", 10, sub("active", "")),
		body("evt_2", "customer.subscription.updated", 10, sub("past_due", "")),
	},
	"both": {
		changed("evt_1", "customer.subscription.updated", 10, sub("active", ""), `{"status":"past_due"}`),
		changed("evt_2", "customer.subscription.updated", 10, sub("past_due", ""), `{"status":"active"}`),
	},
	"empty": {
		changed("evt_1", "customer.subscription.updated", 10, sub("active", ""), `{}`),
		changed("evt_2", "customer.subscription.updated", 10, sub("past_due", ""), `{}`),
	},
	"one empty": {
		changed("evt_1", "customer.subscription.updated", 10, sub("active", ""), `{}`),
		body("evt_2", "customer.subscription.updated", 10, sub("past_due", "")),
	},
	"a third": {
		changed("evt_1", "customer.subscription.updated", 10, sub("active", ""), `{"status":"trialing"}`),
		changed("evt_2", "customer.subscription.updated", 10, sub("past_due", ""), `{"status":"active"}`),
		changed("evt_3", "customer.subscription.updated", 10, sub("unpaid", ""), `{"status":"past_due"}`),
	},
}

func TestUndecidableTieWithoutKeyKeepsTheLaterArrivalAndSaysSo(t *testing.T) {
	t.Parallel()
	for name, bodies := range undecidable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := []string{"active", "past_due", "unpaid"}
			inAllOrders(t, nil, bodies, func(w *world, order []int) {
				last := status[order[len(order)-1]]
				w.wants("sub_1", `{"status":"`+last+`","order_unsure":true}`)
				// A replay of the earlier arrival is none of a later one.
				w.send(bodies[order[0]])
				w.wants("sub_1", `{"status":"`+last+`","order_unsure":true}`)
				// The next second clears it.
				w.send(body("evt_9", "customer.subscription.updated", 11, sub("trialing", "")))
				w.wants("sub_1", `{"status":"trialing","order_unsure":null}`)
			})
		})
	}
}

func TestFactThatSaysTheSameDoesNotSettleWhatIsUnsure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.send(body("evt_1", "customer.subscription.updated", 10, sub("active", "")))
	w.send(body("evt_2", "customer.subscription.updated", 10, sub("past_due", "")))
	w.send(body("evt_3", "customer.subscription.updated", 10, sub("past_due", "")))
	w.wants("sub_1", `{"status":"past_due","order_unsure":true}`)
}

func TestUndecidableTieIsReadFromStripe(t *testing.T) {
	t.Parallel()
	for name, bodies := range undecidable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			truth := func() billing.Stripe {
				return &stub{objects: map[string]json.RawMessage{"sub_1": json.RawMessage(sub("trialing", `"trial_end":77`))}}
			}
			inAllOrders(t, truth, bodies, func(w *world, order []int) {
				w.wants("sub_1", `{"status":"trialing","trial_end":77,"order_unsure":null}`)
				// Replays of any of them do not bring a snapshot back.
				for _, n := range order {
					w.send(bodies[n])
					w.wants("sub_1", `{"status":"trialing","trial_end":77,"order_unsure":null}`)
				}
			})
		})
	}
}

func TestRefetchedEndIsTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &stub{objects: map[string]json.RawMessage{"sub_1": json.RawMessage(sub("canceled", `"ended_at":99`))}})
	for _, b := range undecidable["neither"] {
		w.send(b)
	}
	w.send(body("evt_3", "customer.subscription.updated", 50, sub("active", "")))
	w.wants("sub_1", `{"status":"canceled","ended_at":99}`)
	w.send(body("evt_4", "customer.subscription.deleted", 99, sub("canceled", `"ended_at":99,"canceled_at":98`)))
	w.wants("sub_1", `{"status":"canceled","canceled_at":98}`)
}

func TestWhatStripeAnswersARefetchDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err       error
		unsure    bool
		uncharged bool
	}{
		"no key":        {stripeapi.ErrNoKey, true, false},
		"no object":     {&stripeapi.Error{Status: 404}, true, false},
		"no permission": {&stripeapi.Error{Status: 403}, true, false},
		"down":          {&handler.DependencyError{Dependency: "stripe", Err: &stripeapi.Error{Status: 503}}, false, true},
		"busy":          {&handler.DependencyError{Dependency: "stripe", Err: &stripeapi.Error{Status: 429}}, false, true},
		"key refused":   {&handler.DependencyError{Dependency: "stripe", Err: &stripeapi.Error{Status: 401}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, &stub{err: c.err})
			w.send(undecidable["neither"][0])
			err := w.deliver(handlertest.Event(t, []byte(undecidable["neither"][1])))
			if c.unsure {
				if err != nil {
					t.Fatal(err)
				}
				w.wants("sub_1", `{"status":"past_due","order_unsure":true}`)
				return
			}
			if o := handler.Classify(err); o.Charged || o.Verdict != handler.Again || o.Dependency != "stripe" {
				t.Fatalf("got %+v of %v, want an uncharged retry", o, err)
			}
			w.wants("sub_1", `{"status":"active","order_unsure":null}`)
		})
	}
}

func TestTieAgainstAnEventTheLedgerNoLongerHasIsUnsure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.send(body("evt_1", "customer.subscription.trial_will_end", 10, sub("trialing", "")))
	delete(w.bodies.byID, "evt_1")
	w.send(changed("evt_2", "customer.subscription.updated", 10, sub("active", ""), `{"status":"trialing"}`))
	w.wants("sub_1", `{"status":"active","order_unsure":true}`)
}

var errLedger = errors.New("the ledger is away")

func TestTieWaitsForALedgerThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.send(body("evt_1", "customer.subscription.trial_will_end", 10, sub("trialing", "")))
	w.bodies.err = errLedger
	err := w.deliver(handlertest.Event(t, []byte(changed("evt_2", "customer.subscription.updated", 10, sub("active", ""), `{"status":"trialing"}`))))
	if !errors.Is(err, errLedger) {
		t.Fatalf("got %v", err)
	}
	w.wants("sub_1", `{"status":"trialing","order_unsure":null}`)
}

func TestOnlyEndsAreTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		eventType, object string
		id, want          string
		late, lateObject  string
	}{
		{"customer.subscription.deleted", sub("canceled", ""), "sub_1", `{"status":"canceled"}`, "customer.subscription.updated", sub("active", "")},
		{"customer.subscription.updated", sub("incomplete_expired", ""), "sub_1", `{"status":"incomplete_expired"}`, "customer.subscription.updated", sub("active", "")},
		{"customer.deleted", `{"id":"cus_1","email":"a@example.com","created":1}`, "cus_1", `{"deleted":true}`, "customer.updated", `{"id":"cus_1","email":"b@example.com","created":1}`},
		// These move on.
		{"customer.subscription.updated", sub("unpaid", ""), "sub_1", `{"status":"active"}`, "customer.subscription.updated", sub("active", "")},
		{"invoice.marked_uncollectible", `{"id":"in_1","status":"uncollectible"}`, "in_1", `{"status":"paid"}`, "invoice.paid", `{"id":"in_1","status":"paid"}`},
		{"refund.updated", `{"id":"re_1","payment_intent":"pi_1","status":"succeeded","amount":5}`, "re_1", `{"refunds":[{"status":"failed"}]}`,
			"refund.failed", `{"id":"re_1","payment_intent":"pi_1","status":"failed","amount":5}`},
		{"charge.dispute.closed", `{"id":"du_1","payment_intent":"pi_1","status":"won"}`, "pi_1", `{"disputes":[{"status":"needs_response"}]}`,
			"charge.dispute.updated", `{"id":"du_1","payment_intent":"pi_1","status":"needs_response"}`},
	} {
		w := newWorld(t, nil)
		if c.id == "re_1" {
			w.send(body("evt_0", "refund.created", 9, `{"id":"re_1","payment_intent":"pi_1","status":"pending","amount":5}`))
		}
		w.send(body("evt_1", c.eventType, 10, c.object))
		w.send(body("evt_2", c.late, 20, c.lateObject)) // of another second: no rank decides
		w.wants(c.id, c.want)
	}
}

func TestOlderSnapshotNeverOverwritesANewerOne(t *testing.T) {
	t.Parallel()
	var bodies []string
	for i := range 4 {
		bodies = append(bodies, body(fmt.Sprintf("evt_%d", 9-i), "customer.subscription.updated", 10+i, sub("active", fmt.Sprintf(`"trial_end":%d`, i))))
	}
	inAllOrders(t, nil, bodies, func(w *world, _ []int) { w.wants("sub_1", `{"trial_end":3,"order_unsure":null}`) })
}
