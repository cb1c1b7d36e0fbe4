package handler_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stripe/stripe-go/v82"

	"backstop/events"
	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
)

// decodesAs decodes a sample as T and reports whether it kept its id.
func decodesAs[T any](t *testing.T, typ string, id func(*T) string) {
	t.Helper()
	body, err := events.Sample(typ)
	if err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Data struct{ Object struct{ ID string } }
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	got := handlertest.Run(t, func(_ context.Context, _ handler.Event, object *T) ([]handler.Effect, error) {
		if id(object) != sent.Data.Object.ID {
			t.Errorf("%s decoded with id %q, want %q", typ, id(object), sent.Data.Object.ID)
		}
		return nil, nil
	}, typ)
	if got.Err != nil {
		t.Errorf("%s: %v", typ, got.Err)
	}
}

func TestEverySampleDecodesIntoStripesType(t *testing.T) {
	t.Parallel()
	decoded := 0
	for _, typ := range events.Types() {
		decode := map[string]func(){
			"charge":           func() { decodesAs(t, typ.Name, func(o *stripe.Charge) string { return o.ID }) },
			"checkout.session": func() { decodesAs(t, typ.Name, func(o *stripe.CheckoutSession) string { return o.ID }) },
			"customer":         func() { decodesAs(t, typ.Name, func(o *stripe.Customer) string { return o.ID }) },
			"dispute":          func() { decodesAs(t, typ.Name, func(o *stripe.Dispute) string { return o.ID }) },
			"entitlements.active_entitlement_summary": func() {
				decodesAs(t, typ.Name, func(*stripe.EntitlementsActiveEntitlementSummary) string { return "" })
			},
			"invoice":         func() { decodesAs(t, typ.Name, func(o *stripe.Invoice) string { return o.ID }) },
			"invoice_payment": func() { decodesAs(t, typ.Name, func(o *stripe.InvoicePayment) string { return o.ID }) },
			"payment_intent":  func() { decodesAs(t, typ.Name, func(o *stripe.PaymentIntent) string { return o.ID }) },
			"payment_method":  func() { decodesAs(t, typ.Name, func(o *stripe.PaymentMethod) string { return o.ID }) },
			"payout":          func() { decodesAs(t, typ.Name, func(o *stripe.Payout) string { return o.ID }) },
			"refund":          func() { decodesAs(t, typ.Name, func(o *stripe.Refund) string { return o.ID }) },
			"setup_intent":    func() { decodesAs(t, typ.Name, func(o *stripe.SetupIntent) string { return o.ID }) },
			"subscription":    func() { decodesAs(t, typ.Name, func(o *stripe.Subscription) string { return o.ID }) },
			"tax_id":          func() { decodesAs(t, typ.Name, func(o *stripe.TaxID) string { return o.ID }) },
		}[typ.Object]
		switch {
		case decode != nil:
			decode()
			decoded++
		case !typ.Thin:
			t.Errorf("no type of stripe-go is named here for %s (%s)", typ.Name, typ.Object)
		}
	}
	if decoded < 50 {
		t.Errorf("%d samples decoded, want at least 50", decoded)
	}
}

// BenchmarkDispatch is what the handler's frame costs for one event: the decoding into stripe-go's type and the call.
func BenchmarkDispatch(b *testing.B) {
	for _, typ := range []string{"customer.updated", "invoice.paid", "customer.subscription.updated"} {
		body, err := events.Sample(typ)
		if err != nil {
			b.Fatal(err)
		}
		event := handlertest.Event(b, body)
		var typed handler.Handler
		switch typ {
		case "customer.updated":
			typed = handler.New(typ, "h", func(context.Context, handler.Event, *stripe.Customer) ([]handler.Effect, error) { return nil, nil })
		case "invoice.paid":
			typed = handler.New(typ, "h", func(context.Context, handler.Event, *stripe.Invoice) ([]handler.Effect, error) { return nil, nil })
		default:
			typed = handler.New(typ, "h", func(context.Context, handler.Event, *stripe.Subscription) ([]handler.Effect, error) { return nil, nil })
		}
		raw := handler.New(typ, "h", func(context.Context, handler.Event, *json.RawMessage) ([]handler.Effect, error) { return nil, nil })
		for name, h := range map[string]handler.Handler{"typed": typed, "raw": raw} {
			b.Run(typ+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(event.Object)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := h.Run(b.Context(), event); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
