package events_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v82"

	"backstop/events"
)

// stripeTypes are stripe-go's types for the objects the catalog names.
var stripeTypes = map[string]func() any{
	"charge":           func() any { return new(stripe.Charge) },
	"checkout.session": func() any { return new(stripe.CheckoutSession) },
	"customer":         func() any { return new(stripe.Customer) },
	"dispute":          func() any { return new(stripe.Dispute) },
	"entitlements.active_entitlement_summary": func() any { return new(stripe.EntitlementsActiveEntitlementSummary) },
	"invoice":         func() any { return new(stripe.Invoice) },
	"invoice_payment": func() any { return new(stripe.InvoicePayment) },
	"payment_intent":  func() any { return new(stripe.PaymentIntent) },
	"payment_method":  func() any { return new(stripe.PaymentMethod) },
	"payout":          func() any { return new(stripe.Payout) },
	"refund":          func() any { return new(stripe.Refund) },
	"setup_intent":    func() any { return new(stripe.SetupIntent) },
	"subscription":    func() any { return new(stripe.Subscription) },
	"tax_id":          func() any { return new(stripe.TaxID) },
}

func sample(t *testing.T, typ string) []byte {
	t.Helper()
	body, err := events.Sample(typ)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestCatalogIsSortedAndHasNoDoubles(t *testing.T) {
	t.Parallel()
	types := events.Types()
	if len(types) != 57 {
		t.Errorf("%d types in the catalog, want 57", len(types))
	}
	for i := 1; i < len(types); i++ {
		if types[i-1].Name >= types[i].Name {
			t.Errorf("%s stands before %s", types[i-1].Name, types[i].Name)
		}
	}
	types[0].Name = "changed by a caller"
	if got := events.Types()[0].Name; got != "charge.captured" {
		t.Errorf("first type is %q after a caller changed its copy, want charge.captured", got)
	}
}

func TestEverySampleFileIsInTheCatalogAndTheOtherWayRound(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var inFolder, inCatalog []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			inFolder = append(inFolder, name)
		}
	}
	for _, typ := range events.Types() {
		inCatalog = append(inCatalog, typ.Name)
	}
	if !slices.Equal(inFolder, inCatalog) {
		t.Errorf("files %q\ncatalog %q", inFolder, inCatalog)
	}
}

func TestUnknownTypeHasNoSample(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"invoice.unheard_of", "", "../events/invoice.paid", "lambda/alb"} {
		if _, err := events.Sample(typ); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Sample(%q): %v, want an error that matches fs.ErrNotExist", typ, err)
		}
	}
}

func TestSampleIsWhatTheCatalogSays(t *testing.T) {
	t.Parallel()
	for _, typ := range events.Types() {
		var e struct {
			Object, Type string
			APIVersion   string `json:"api_version"`
			Livemode     bool
			Data         struct{ Object struct{ Object string } }
			Related      struct{ Type string } `json:"related_object"`
		}
		if err := json.Unmarshal(sample(t, typ.Name), &e); err != nil {
			t.Errorf("%s: %v", typ.Name, err)
			continue
		}
		object, kind, version := "event", e.Data.Object.Object, "2025-08-27.basil"
		if typ.Thin {
			object, kind, version = "v2.core.event", e.Related.Type, ""
		}
		if e.Type != typ.Name || e.Object != object || kind != typ.Object || e.APIVersion != version || e.Livemode {
			t.Errorf("%s: sample says %+v", typ.Name, e)
		}
	}
}

func TestSampleDecodesIntoStripesType(t *testing.T) {
	t.Parallel()
	for _, typ := range events.Types() {
		if typ.Thin {
			var thin stripe.ThinEvent
			if err := json.Unmarshal(sample(t, typ.Name), &thin); err != nil || thin.RelatedObject == nil || thin.Created.IsZero() {
				t.Errorf("%s: %v, %+v", typ.Name, err, thin)
			}
			continue
		}
		var event stripe.Event
		if err := json.Unmarshal(sample(t, typ.Name), &event); err != nil {
			t.Errorf("%s: %v", typ.Name, err)
			continue
		}
		object := stripeTypes[typ.Object]()
		if err := json.Unmarshal(event.Data.Raw, object); err != nil {
			t.Errorf("%s: decode %s: %v", typ.Name, typ.Object, err)
		}
		var raw map[string]any
		if err := json.Unmarshal(event.Data.Raw, &raw); err != nil {
			t.Fatal(err)
		}
		for _, path := range unknown(reflect.TypeOf(object), raw, typ.Object) {
			if !slices.Contains(beyondStripeGo, path) {
				t.Errorf("%s: stripe-go knows no %s", typ.Name, path)
			}
		}
	}
}

// beyondStripeGo are fields that Stripe sends and stripe-go v82 leaves out:
// kept for old integrations, or added since.
var beyondStripeGo = []string{
	"subscription.items.object", "invoice.lines.object", "entitlements.active_entitlement_summary.entitlements.object",
	"charge.destination", "charge.dispute", "charge.order",
	"dispute.balance_transaction",
	"payment_intent.last_payment_error.advice_code", "payment_intent.last_payment_error.network_advice_code",
	"payment_intent.last_payment_error.network_decline_code",
	"payment_intent.next_action.use_stripe_sdk.source", "payment_intent.next_action.use_stripe_sdk.stripe_js",
	"payment_intent.next_action.use_stripe_sdk.type",
	"setup_intent.excluded_payment_method_types",
	"subscription.billing_mode.flexible", "subscription.plan", "subscription.quantity",
}

// unknown lists the paths in raw for which the struct type has no field: a
// misspelt key of a sample would be such a one.
func unknown(t reflect.Type, raw map[string]any, path string) (paths []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	known := map[string]reflect.Type{}
	collect(t, known)
	for key, value := range raw {
		field, ok := known[key]
		if !ok {
			paths = append(paths, path+"."+key)
			continue
		}
		if list, ok := value.([]any); ok && field.Kind() == reflect.Slice && len(list) > 0 {
			field, value = field.Elem(), list[0]
		}
		if nested, ok := value.(map[string]any); ok {
			paths = append(paths, unknown(field, nested, path+"."+key)...)
		}
	}
	return paths
}

func collect(t reflect.Type, known map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			collect(f.Type, known)
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			known[name] = f.Type
		}
	}
}

func TestUpdatedEventsSayWhatChanged(t *testing.T) {
	t.Parallel()
	for _, typ := range events.Types() {
		if !strings.HasSuffix(typ.Name, ".updated") {
			continue
		}
		var e struct {
			Data struct {
				Object   map[string]any
				Previous map[string]any `json:"previous_attributes"`
			}
		}
		if err := json.Unmarshal(sample(t, typ.Name), &e); err != nil {
			t.Fatal(err)
		}
		if len(e.Data.Previous) == 0 {
			t.Errorf("%s has no previous attributes", typ.Name)
		}
		for key, was := range e.Data.Previous {
			if is, ok := e.Data.Object[key]; !ok || reflect.DeepEqual(was, is) {
				t.Errorf("%s: previous %s is %v, now %v", typ.Name, key, was, is)
			}
		}
	}
}

func TestSampleHasTheCurrentShape(t *testing.T) {
	t.Parallel()
	var sub struct {
		Data struct{ Object map[string]any }
	}
	if err := json.Unmarshal(sample(t, "customer.subscription.created"), &sub); err != nil {
		t.Fatal(err)
	}
	if _, ok := sub.Data.Object["current_period_end"]; ok {
		t.Error("a subscription has a current_period_end of its own")
	}
	item := sub.Data.Object["items"].(map[string]any)["data"].([]any)[0].(map[string]any)
	if got := fmt.Sprintf("%.0f", item["current_period_end"]); got != "1792660845" { // 2026-10-22T09:20:45Z
		t.Errorf("current_period_end of the item is %s, want 1792660845", got)
	}
	var inv struct {
		Data struct {
			Object struct {
				Subscription *string
				Total        int64
				Parent       struct {
					Details struct{ Subscription string } `json:"subscription_details"`
				}
			}
		}
	}
	if err := json.Unmarshal(sample(t, "invoice.paid"), &inv); err != nil {
		t.Fatal(err)
	}
	o := inv.Data.Object
	if o.Subscription != nil || o.Total != 9800 || !strings.HasPrefix(o.Parent.Details.Subscription, "sub_") {
		t.Errorf("invoice.paid: %+v, want total 9800 and the subscription under parent", o)
	}
}

func TestSampleHoldsNobodysData(t *testing.T) {
	t.Parallel()
	mail := regexp.MustCompile(`[\w.]+@[\w.]+`)
	reserved := regexp.MustCompile(`@([\w-]+\.)*example\.(com|net|org)$`)
	seen := 0
	for _, typ := range events.Types() {
		for _, address := range mail.FindAllString(string(sample(t, typ.Name)), -1) {
			seen++
			if !reserved.MatchString(address) {
				t.Errorf("%s holds %s", typ.Name, address)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d mail addresses seen: is the pattern broken?", seen)
	}
}

func TestSamplesHaveStripesSize(t *testing.T) {
	t.Parallel()
	for _, typ := range events.Types() {
		least, most := 700, 4500
		switch {
		case typ.Thin:
			least, most = 300, 600
		case typ.Object == "subscription":
			least, most = 4000, 8500
		case typ.Object == "invoice":
			least, most = 4500, 8500
		}
		if n := len(sample(t, typ.Name)); n < least || n > most {
			t.Errorf("%s: %d bytes, want %d to %d", typ.Name, n, least, most)
		}
	}
}
