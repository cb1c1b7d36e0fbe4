package stripeapi_test

import (
	"encoding/json"
	"testing"

	"github.com/stripe/stripe-go/v82"

	"backstop/internal/handler"
	"backstop/internal/stripeapi"
)

func TestCurrentReadsTheEventsObjectInItsAccount(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{"id":"in_1","object":"invoice","amount_paid":1900}`))
	e := handler.Event{Account: "acct_1", Object: json.RawMessage(`{"id":"in_1","object":"invoice","amount_paid":0}`)}
	got, err := stripeapi.Current[stripe.Invoice](t.Context(), s.client(), e)
	if err != nil || got.AmountPaid != 1900 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if r := s.seen()[0]; r.URL.Path != "/v1/invoices/in_1" || r.Header.Get("Stripe-Account") != "acct_1" {
		t.Errorf("the request was %s %v", r.URL, r.Header)
	}
}

func TestCurrentReadsAThinEventsRelatedObject(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{"id":"mtr_1"}`))
	e := handler.Event{Thin: true, Body: json.RawMessage(`{"related_object":{"id":"mtr_1","url":"/v1/billing/meters/mtr_1"}}`)}
	got, err := stripeapi.Current[json.RawMessage](t.Context(), s.client(), e)
	if err != nil || string(*got) != `{"id":"mtr_1"}` || s.seen()[0].URL.Path != "/v1/billing/meters/mtr_1" {
		t.Fatalf("got %s, %v", *got, err)
	}
}

func TestCurrentOfWhatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{"amount_paid":"x"}`))
	for name, e := range map[string]handler.Event{
		"a preview":        {Object: json.RawMessage(`{"object":"invoice"}`)},
		"about nothing":    {Thin: true, Body: json.RawMessage(`{}`)},
		"another kind":     {Object: json.RawMessage(`{"id":"x","object":"balance"}`)},
		"an answer's type": {Object: json.RawMessage(`{"id":"in_1","object":"invoice"}`)},
	} {
		if _, err := stripeapi.Current[stripe.Invoice](t.Context(), s.client(), e); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
