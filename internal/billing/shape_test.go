package billing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/billing"
	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
)

// body is an event of the platform's account.
func body(id, eventType string, created int, object string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","type":%q,"created":%d,"livemode":false,"data":{"object":%s}}`, id, eventType, created, object)
}

// changed is an event with previous_attributes.
func changed(id, eventType string, created int, object, previous string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","type":%q,"created":%d,"livemode":false,"data":{"object":%s,"previous_attributes":%s}}`,
		id, eventType, created, object, previous)
}

func TestSubscriptionIsReadInEveryShape(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{
		"period on the items": `{"id":"sub_1","object":"subscription","customer":"cus_1","status":"active","items":{"data":[
			{"id":"si_1","quantity":2,"current_period_end":200,"current_period_start":100,"price":{"id":"price_1","product":"prod_1","unit_amount":1900}}],"has_more":false}}`,
		"period on the subscription": `{"id":"sub_1","object":"subscription","customer":"cus_1","status":"active","current_period_end":200,
			"current_period_start":100,"items":{"data":[{"id":"si_1","quantity":2,"price":{"id":"price_1"}}]}}`,
		"both": `{"id":"sub_1","object":"subscription","customer":"cus_1","status":"active","current_period_end":200,
			"items":{"data":[{"id":"si_1","quantity":2,"current_period_end":200,"price":{"id":"price_1"}}]}}`,
		"customer and price expanded or not": `{"id":"sub_1","object":"subscription","customer":{"id":"cus_1","object":"customer","email":"a@example.com"},
			"status":"active","current_period_end":200,"default_payment_method":{"id":"pm_1"},"items":{"data":[{"id":"si_1","quantity":2,"price":"price_1"}]}}`,
		"plan instead of price": `{"id":"sub_1","object":"subscription","customer":"cus_1","status":"active","current_period_end":200,
			"items":{"data":[{"id":"si_1","quantity":2,"plan":{"id":"price_1","product":{"id":"prod_1"}}}]}}`,
		"several periods: the next to end": `{"id":"sub_1","object":"subscription","customer":"cus_1","status":"active","items":{"data":[
			{"id":"si_2","quantity":1,"current_period_end":900,"price":{"id":"price_2"}},
			{"id":"si_1","quantity":2,"current_period_end":200,"price":{"id":"price_1"}}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.send(body("evt_1", "customer.subscription.updated", 10, object))
			w.wants("sub_1", `{"id":"sub_1","customer":"cus_1","status":"active","current_period_end":200,"cancel_at_period_end":false,
				"pause_collection":null,"items":{"si_1":{"price":"price_1","quantity":2}},"items_complete":true}`)
			if w.object("cus_1") != nil {
				t.Error("an expanded customer made a row")
			}
		})
	}
}

func TestInvoiceFindsItsSubscriptionInEveryShape(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fields, want string }{
		"parent with an id":        {`"parent":{"type":"subscription_details","subscription_details":{"subscription":"sub_1"},"quote_details":null}`, `"sub_1"`},
		"parent with an object":    {`"parent":{"subscription_details":{"subscription":{"id":"sub_1","object":"subscription"}}}`, `"sub_1"`},
		"field of its own":         {`"subscription":"sub_1"`, `"sub_1"`},
		"field with an object":     {`"subscription":{"id":"sub_1"}`, `"sub_1"`},
		"parent is null":           {`"parent":null`, `null`},
		"parent is a quote":        {`"parent":{"type":"quote_details","quote_details":{"quote":"qt_1"},"subscription_details":null}`, `null`},
		"neither":                  {`"auto_advance":true`, `null`},
		"both null":                {`"parent":{"subscription_details":{"subscription":null}},"subscription":null`, `null`},
		"old field besides parent": {`"parent":null,"subscription":"sub_1"`, `"sub_1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.send(body("evt_1", "invoice.paid", 10, `{"id":"in_1","object":"invoice","status":"paid","customer":"cus_1","currency":"jpy","total":500,"amount_paid":500,`+c.fields+`}`))
			w.wants("in_1", `{"subscription":`+c.want+`,"total":500,"amount_paid":500,"amount_due":null,"currency":"jpy","line_count":0,"lines_complete":true}`)
		})
	}
}

func TestInvoiceLineNamesItsPriceInEveryShape(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"pricing":          `"pricing":{"price_details":{"price":"price_1","product":"prod_1"}},"parent":{"invoice_item_details":{"proration":true}}`,
		"pricing expanded": `"pricing":{"price_details":{"price":{"id":"price_1"}}},"parent":{"subscription_item_details":{"proration":true}}`,
		"price":            `"price":{"id":"price_1"},"proration":true`,
		"plan":             `"price":null,"plan":{"id":"price_1"},"proration":true`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.send(body("evt_1", "invoice.created", 10, `{"id":"in_1","status":"draft","lines":{"data":[{"id":"il_1","amount":-700,"quantity":1,`+line+`}],"has_more":false}}`))
			w.wants("in_1", `{"lines":[{"id":"il_1","amount":-700,"price":"price_1","quantity":1,"proration":true}],"line_count":1,"lines_complete":true}`)
		})
	}
}

func TestStatusIsKeptAsSent(t *testing.T) {
	t.Parallel()
	for status, active := range map[string]bool{
		"active": true, "trialing": true, "paused": false, "past_due": false, "unpaid": false, "incomplete": false,
		"incomplete_expired": false, "canceled": false, "quantum_superposed": false, "": false,
	} {
		w := newWorld(t, nil)
		w.send(body("evt_1", "customer.subscription.updated", 10,
			`{"id":"sub_1","status":"`+status+`","pause_collection":{"behavior":"void","resumes_at":null}}`))
		w.wants("sub_1", `{"status":"`+status+`","pause_collection":{"behavior":"void","resumes_at":null}}`)
		if billing.Active(status) != active {
			t.Errorf("Active(%q) is %v", status, !active)
		}
	}
}

func TestPreviewHasNoRow(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{
		"absent": `{"object":"invoice","customer":"cus_1"}`, "empty": `{"id":"","object":"invoice","customer":"cus_1"}`, "null": `{"id":null,"object":"invoice","customer":"cus_1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			err := w.deliver(handlertest.Event(t, []byte(body("evt_1", "invoice.upcoming", 10, object))))
			if o := handler.Classify(err); o.Verdict != handler.Skips || o.Text != "the object has no id, so it has no row" {
				t.Fatalf("got %+v", o)
			}
			w.send(body("evt_2", "invoice.created", 10, `{"id":"in_1","customer":"cus_1","status":"draft"}`))
			a, err := w.reader.Customer(t.Context(), "", "cus_1")
			if err != nil || len(a.Invoices) != 1 || a.Invoices[0].ID != "in_1" {
				t.Fatalf("the customer has %s, %v", show(a), err)
			}
		})
	}
}

func TestAbsentReferencesLeaveIndexKeysOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.send(body("evt_1", "customer.updated", 10, `{"id":"cus_1","email":null,"name":""}`))
	w.send(body("evt_2", "customer.updated", 10, `{"id":"cus_2","email":" ","customer":""}`))
	w.send(body("evt_3", "payment_intent.succeeded", 10, `{"id":"pi_1","customer":null,"status":"succeeded","amount":1,"currency":"usd"}`))
	w.send(body("evt_4", "invoice.paid", 10, `{"id":"in_1","customer":"","status":"paid"}`))
	w.send(body("evt_5", "checkout.session.completed", 10, `{"id":"cs_1","status":"complete","payment_status":"paid"}`))
	w.send(body("evt_6", "customer.subscription.created", 10, `{"id":"sub_1","customer":"   ","status":"active"}`))
	for id, want := range map[string]string{
		"cus_1": `{"email":null}`, "pi_1": `{"customer":null,"amount":1}`, "in_1": `{"customer":null}`, "cs_1": `{"customer":null}`, "sub_1": `{"status":"active"}`,
	} {
		w.wants(id, want)
	}
	for _, row := range w.scan() {
		for name, value := range row {
			if value == "" {
				t.Errorf("%s is empty in %v", name, row)
			}
		}
	}
}

func TestMoneyThatDoesNotDecodeIsNamedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	for eventType, c := range map[string]struct{ object, path string }{
		"invoice.paid":                  {`{"id":"x_1","lines":{"data":[{"amount":1},{"amount":"19.00"}]}}`, "lines.data[1].amount"},
		"charge.succeeded":              {`{"id":"x_1","amount":19.5}`, "amount"},
		"payment_intent.succeeded":      {`{"id":"x_1","amount_received":"1"}`, "amount_received"},
		"customer.subscription.updated": {`{"id":"x_1","customer":7}`, "customer"},
	} {
		w := newWorld(t, nil)
		err := w.deliver(handlertest.Event(t, []byte(body("evt_1", eventType, 10, c.object))))
		var failed *handler.DecodeError
		if !errors.As(err, &failed) || failed.Path != c.path {
			t.Errorf("%s: got %v, want the path %s", eventType, err, c.path)
		}
		if rows := w.scan(); len(rows) != 0 {
			t.Errorf("%s: %v was written", eventType, rows)
		}
	}
}

func TestMoneyThatWasNotSentIsNotZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.send(body("evt_1", "invoice.paid", 10, `{"id":"in_1","status":"paid","total":null}`))
	w.wants("in_1", `{"total":null,"amount_paid":null,"amount_due":null}`)
}

func TestTextAPersonWroteIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	long := strings.Repeat("ü", 100_000)
	w.send(body("evt_1", "invoice.paid", 10, `{"id":"in_1","status":"paid","lines":{"data":[{"id":"il_1","amount":1,"description":"`+long+`"}]}}`))
	w.wants("in_1", `{"status":"paid","lines":[{"description":"`+strings.Repeat("ü", 40)+`"}]}`)
}

func TestAccountsDoNotMeet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	one := handlertest.Event(t, []byte(body("evt_1", "customer.updated", 10, `{"id":"cus_1","email":"platform@example.com"}`)))
	for _, e := range []handler.Event{one, within(handlertest.Event(t, []byte(body("evt_2", "customer.updated", 5, `{"id":"cus_1","email":"connected@example.com"}`))), "acct_1")} {
		if err := w.deliver(e); err != nil {
			t.Fatal(err)
		}
	}
	for account, want := range map[string]string{"": "platform@example.com", "acct_1": "connected@example.com"} {
		if got := w.objectOf(account, "cus_1"); got["email"] != want {
			t.Errorf("%q has %s", account, show(got))
		}
	}
	if got := w.objectOf("acct_1", "cus_1"); got["account"] != "acct_1" {
		t.Errorf("the row says %s", show(got))
	}
	if w.objectOf("acct_2", "cus_1") != nil {
		t.Error("a third account has the customer")
	}
}
