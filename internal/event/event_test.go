package event

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSnapshotEnvelopeIsRead(t *testing.T) {
	t.Parallel()
	body := []byte(`{"id":"evt_1","object":"event","account":"acct_9","api_version":"2025-08-27.basil","created":1790000000,
		"data":{"object":{"id":"in_1","object":"invoice","customer":"cus_1"},"previous_attributes":{"status":"open"}},
		"livemode":true,"pending_webhooks":1,"request":{"id":null,"idempotency_key":null},"type":"invoice.paid"}`)
	got, err := Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	want := Event{
		ID: "evt_1", Type: "invoice.paid", APIVersion: "2025-08-27.basil", Account: "acct_9", CreatedS: 1790000000,
		Livemode: true, ObjectID: "in_1", ObjectKind: "invoice", CustomerRef: "cus_1", Ref: "cus_1", Group: "acct_9/cus_1",
		Object: []byte(`{"id":"in_1","object":"invoice","customer":"cus_1"}`), Previous: []byte(`{"status":"open"}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if key := got.Key(""); key != "stripe#acct_9#evt_1" {
		t.Errorf("key %s", key)
	}
}

func TestThinNotificationIsRecognised(t *testing.T) {
	t.Parallel()
	got, err := Parse([]byte(`{"id":"evt_test_65","object":"v2.core.event","type":"v2.core.account[requirements].updated",
		"created":"2026-09-21T14:13:18.250Z","livemode":false,"context":"org_1/acct_7","reason":null,
		"related_object":{"id":"acct_2","type":"v2.core.account","url":"/v2/core/accounts/acct_2"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Event{
		ID: "evt_test_65", Type: "v2.core.account[requirements].updated", Account: "acct_7", CreatedS: 1789999998,
		Thin: true, ObjectID: "acct_2", ObjectKind: "v2.core.account", Ref: "acct_2", Group: "acct_7/acct_2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestVaryingFieldsAreTolerated(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"RequestNull":          `{"id":"evt_1","object":"event","type":"a.b","request":null}`,
		"RequestString":        `{"id":"evt_1","object":"event","type":"a.b","request":"req_1"}`,
		"RequestObject":        `{"id":"evt_1","object":"event","type":"a.b","request":{"id":"req_1","idempotency_key":"k"}}`,
		"OnlyIDAndType":        `{"type":"a.b","id":"evt_1"}`,
		"EverythingNull":       `{"id":"evt_1","type":"a.b","object":null,"account":null,"api_version":null,"created":null,"livemode":null,"data":null,"related_object":null,"context":null}`,
		"WrongKinds":           `{"id":"evt_1","type":"a.b","account":7,"api_version":{},"created":"soon","livemode":"yes","data":[1],"related_object":"x","context":[]}`,
		"DataObjectNull":       `{"id":"evt_1","type":"a.b","data":{"object":null,"previous_attributes":null}}`,
		"DataObjectText":       `{"id":"evt_1","type":"a.b","data":{"object":"in_1","previous_attributes":3}}`,
		"UnknownFields":        `{"id":"evt_1","type":"a.b","new":{"deep":[{"id":"evt_2","type":"c.d"}]},"data":{"id":"evt_3","more":1}}`,
		"EscapedSpelling":      `{"\u0069d":"evt\u005f1","ty\u0070e":"a.b","object":"\u0065vent"}`,
		"LastDuplicate":        `{"id":"evt_0","type":"x","data":{"object":{"id":"in_0","customer":"cus_0"}},"id":"evt_1","type":"a.b","data":{"object":null}}`,
		"LastDuplicateIsWhole": `{"id":"evt_1","type":"a.b","data":{"object":{"id":"in_0","customer":"cus_0"},"previous_attributes":{}},"data":{}}`,
		"CreatedFraction":      `{"id":"evt_1","type":"a.b","created":1.5}`,
		"CreatedEnormous":      `{"id":"evt_1","type":"a.b","created":99999999999999999999999}`,
		"CreatedAfterAllTime":  `{"id":"evt_1","type":"a.b","created":253402300800}`,
		"CreatedNegative":      `{"id":"evt_1","type":"a.b","created":-5}`,
		"SurroundingSpace":     "\r\n\t {\"id\":\"evt_1\",\"type\":\"a.b\"} \n",
	} {
		got, err := Parse([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(Event{ID: "evt_1", Type: "a.b", Group: "-"}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhatIsNoEventIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	for body, want := range map[string]Reason{
		``:                            NotJSON,
		`{`:                           NotJSON,
		`{"id":"evt_1","type":"a.b"`:  NotJSON,
		`{"id":"evt_1","type":"a"} 1`: NotJSON,
		`{"id":"evt_1","type":"a","data":{"object":{"a":01}}}`: NotJSON,
		`id=evt_1&type=a.b`:                    NotJSON,
		strings.Repeat(`{"a":`, 4000):          NotJSON,
		`null`:                                 NotObject,
		`[]`:                                   NotObject,
		`"evt_1"`:                              NotObject,
		`42`:                                   NotObject,
		`{}`:                                   NoID,
		`{"object":"event","type":"a.b"}`:      NoID,
		`{"id":null,"type":"a.b"}`:             NoID,
		`{"id":17,"type":"a.b"}`:               NoID,
		`{"id":"","type":"a.b"}`:               NoID,
		`{"id":"evt_1#2","type":"a.b"}`:        BadID,
		`{"id":"evt 1","type":"a.b"}`:          BadID,
		`{"id":"evt_\n1","type":"a.b"}`:        BadID,
		`{"id":"evt_é","type":"a.b"}`:          BadID,
		`{"id":"\ud800","type":"a.b"}`:         BadID,
		`{"id":"` + long + `","type":"a.b"}`:   BadID,
		`{"id":"evt_1"}`:                       NoType,
		`{"id":"evt_1","type":null}`:           NoType,
		`{"id":"evt_1","type":["a.b"]}`:        NoType,
		`{"id":"evt_1","type":"a b"}`:          BadType,
		`{"id":"evt_1","type":"` + long + `"}`: BadType,
		`{"id":"evt_1","type":"a.b","account":"acct#1"}`:         BadAccount,
		`{"id":"evt_1","type":"a.b","account":"acct 1"}`:         BadAccount,
		`{"id":"evt_1","type":"a.b","account":"-"}`:              BadAccount, // the key of no account
		`{"id":"cus_1","object":"customer","type":"individual"}`: NotEvent,
		`{"id":"evt_1","object":{},"type":"a.b"}`:                NotEvent,
		`{"id":"evt_1","object":"","type":"a.b"}`:                NotEvent,
	} {
		got, err := Parse([]byte(body))
		var reason Reason
		if !errors.As(err, &reason) || reason != want {
			t.Errorf("%.60s: got %v, want %s", body, err, want)
		}
		if got.ID != "" {
			t.Errorf("%.60s: an event beside the error", body)
		}
	}
}

func TestGroupFollowsTheCustomerFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ object, previous, want string }{
		"CustomerByID":              {`{"id":"in_1","object":"invoice","customer":"cus_1","payment_intent":"pi_1"}`, ``, "cus_1"},
		"CustomerExpanded":          {`{"id":"in_1","object":"invoice","customer":{"object":"customer","id":"cus_1","metadata":{"id":"no"}}}`, ``, "cus_1"},
		"CustomerItself":            {`{"id":"cus_1","object":"customer"}`, ``, "cus_1"},
		"CustomerDeleted":           {`{"id":"cus_1","object":"customer","deleted":true}`, ``, "cus_1"},
		"CustomerBefore":            {`{"id":"pm_1","object":"payment_method","customer":null}`, `{"customer":"cus_1"}`, "cus_1"},
		"CustomerBeforeExpanded":    {`{"id":"pm_1","object":"payment_method"}`, `{"customer":{"id":"cus_1"}}`, "cus_1"},
		"CustomerNowBeatsBefore":    {`{"id":"pm_1","object":"payment_method","customer":"cus_2"}`, `{"customer":"cus_1"}`, "cus_2"},
		"EntitlementSummary":        {`{"object":"entitlements.active_entitlement_summary","customer":"cus_1"}`, ``, "cus_1"},
		"IntentItself":              {`{"id":"pi_1","object":"payment_intent","customer":null,"invoice":"in_1"}`, ``, "pi_1"},
		"ChargeOfIntent":            {`{"id":"ch_1","object":"charge","payment_intent":"pi_1","invoice":"in_1"}`, ``, "pi_1"},
		"ChargeOfExpandedIntent":    {`{"id":"ch_1","object":"charge","payment_intent":{"id":"pi_1"}}`, ``, "pi_1"},
		"ChargeAlone":               {`{"id":"ch_1","object":"charge","payment_intent":null,"invoice":"in_1"}`, ``, "ch_1"},
		"RefundOfIntent":            {`{"id":"re_1","object":"refund","charge":"ch_1","payment_intent":"pi_1"}`, ``, "pi_1"},
		"RefundOfCharge":            {`{"id":"re_1","object":"refund","charge":{"id":"ch_1"},"payment_intent":null}`, ``, "ch_1"},
		"DisputeOfIntent":           {`{"id":"du_1","object":"dispute","charge":"ch_1","payment_intent":"pi_1"}`, ``, "pi_1"},
		"GuestCheckout":             {`{"id":"cs_1","object":"checkout.session","customer":null,"payment_intent":"pi_1"}`, ``, "pi_1"},
		"InvoicePaymentOfIntent":    {`{"id":"inpay_1","object":"invoice_payment","invoice":"in_1","payment":{"type":"payment_intent","payment_intent":"pi_1"}}`, ``, "pi_1"},
		"InvoicePaymentOfCharge":    {`{"id":"inpay_1","object":"invoice_payment","invoice":"in_1","payment":{"type":"charge","charge":"ch_1"}}`, ``, "ch_1"},
		"InvoiceItself":             {`{"id":"in_1","object":"invoice","customer":null,"subscription":"sub_1"}`, ``, "in_1"},
		"OfAnInvoice":               {`{"id":"x_1","object":"x","invoice":{"id":"in_1","subscription":"sub_1"}}`, ``, "in_1"},
		"OfASubscription":           {`{"id":"si_1","object":"subscription_item","subscription":"sub_1"}`, ``, "sub_1"},
		"OfASubscriptionSinceBasil": {`{"id":"x_1","object":"x","parent":{"type":"subscription_details","subscription_details":{"metadata":{},"subscription":"sub_1"}}}`, ``, "sub_1"},
		"OfAnExpandedSubscription":  {`{"id":"x_1","object":"x","parent":{"subscription_details":{"subscription":{"id":"sub_1"}}}}`, ``, "sub_1"},
		"ParentNull":                {`{"id":"x_1","object":"x","parent":null,"payment":"p"}`, ``, "x_1"},
		"Object":                    {`{"id":"price_1","object":"price"}`, ``, "price_1"},
		"NothingToNameIt":           {`{"object":"balance"}`, ``, "-"},
		"CustomerNotAnIdentifier":   {`{"id":"x_1","object":"x","customer":"a b"}`, ``, "x_1"},
		"LastCustomerCounts":        {`{"id":"x_1","customer":"cus_0","customer":"cus_1"}`, ``, "cus_1"},
		"LongReferenceIsHashed":     {`{"id":"` + strings.Repeat("x", 129) + `"}`, ``, "sha256:0ec9eb33e74510bcdd1f2ea55206e82f21649c5c2becbf2b433eb475b34c01bd"},
		"LongestPlainReference":     {`{"id":"` + strings.Repeat("x", 128) + `"}`, ``, strings.Repeat("x", 128)},
	} {
		data := `"object":` + test.object
		if test.previous != "" {
			data += `,"previous_attributes":` + test.previous
		}
		got, err := Parse([]byte(`{"id":"evt_1","object":"event","type":"a.b","data":{` + data + `}}`))
		if err != nil || got.Group != test.want {
			t.Errorf("%s: got %q, %v, want %q", name, got.Group, err, test.want)
		}
	}
}

func TestGroupKeepsAccountsApart(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"id":"evt_1","type":"a.b","data":{"object":{"id":"cus_1","object":"customer"}}}`:                                 "cus_1",
		`{"id":"evt_1","type":"a.b","account":"acct_1","data":{"object":{"id":"cus_1","object":"customer"}}}`:              "acct_1/cus_1",
		`{"id":"evt_1","type":"a.b","context":"acct_1","data":{"object":{"id":"cus_1","object":"customer"}}}`:              "cus_1",
		`{"id":"evt_1","object":"v2.core.event","type":"a.b","context":"acct_1","related_object":{"id":"x_1","type":"x"}}`: "acct_1/x_1",
		`{"id":"evt_1","type":"a.b","account":"acct_2","context":"acct_1","data":{"object":{"object":"balance"}}}`:         "acct_2",
	} {
		got, err := Parse([]byte(body))
		if err != nil || got.Group != want {
			t.Errorf("%s: got %q, %v, want %q", body, got.Group, err, want)
		}
	}
}

func TestKeyNamesSourceAccountAndID(t *testing.T) {
	t.Parallel()
	if got := Key("stripe", "", "evt_1"); got != "stripe#-#evt_1" {
		t.Error(got)
	}
	if got := Key("stripe", "acct_1", "evt_1"); got != "stripe#acct_1#evt_1" {
		t.Error(got)
	}
	if got := (Event{ID: "evt_1"}).Key("acct_1"); got != "stripe#acct_1#evt_1" {
		t.Errorf("listed with an account: %s", got)
	}
	if got := (Event{ID: "evt_1", Account: "acct_2"}).Key("acct_1"); got != "stripe#acct_2#evt_1" {
		t.Errorf("the envelope's account counts first: %s", got)
	}
}

func TestListedEventBelongsWhereItsDeliveryDoes(t *testing.T) {
	t.Parallel()
	parse := func(body string) Event {
		ev, err := Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return ev
	}
	long := strings.Repeat("x", 200)
	for _, rest := range []string{`"data":{"object":{"id":"cus_1","object":"customer"}}`, `"data":{"object":{"object":"balance"}}`, `"data":{"object":{"id":"` + long + `"}}`} {
		delivered := parse(`{"id":"evt_1","type":"a.b","account":"acct_1",` + rest + `}`)
		listed := parse(`{"id":"evt_1","type":"a.b",` + rest + `}`).Within("acct_1")
		if diff := cmp.Diff(delivered, listed); diff != "" {
			t.Error(diff)
		}
	}
	own := parse(`{"id":"evt_1","type":"a.b","account":"acct_1"}`)
	if diff := cmp.Diff(own, own.Within("acct_2")); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"id":"evt_1","object":"event","type":"a.b","created":1,"data":{"object":{"id":"x","customer":{"id":"c"}},"previous_attributes":{"customer":"d"}}}`))
	f.Add([]byte(`{"id":"evt_1","object":"v2.core.event","type":"v2.x","created":"2026-01-01T00:00:00Z","related_object":{"id":"a","type":"b"}}`))
	f.Add([]byte(`{"id":"a","id":"b","type":"c","parent":{"subscription_details":{"subscription":"s"}}}`))
	f.Add([]byte(`[1]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		ev, err := Parse(body)
		var reason Reason
		if err != nil {
			if !errors.As(err, &reason) {
				t.Fatalf("an error without a reason: %v", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("accepted what is not JSON: %q", body)
		}
		for _, s := range []string{ev.ID, ev.Type, ev.Group} {
			if !plausible(s) {
				t.Fatalf("not an identifier: %q", s)
			}
		}
		if len(ev.Group) > 128 || strings.Count(ev.Key(""), "#") != 2 || ev.CreatedS < 0 {
			t.Fatalf("group %q, key %q, created %d", ev.Group, ev.Key(""), ev.CreatedS)
		}
		if ev.Object != nil && !json.Valid(ev.Object) || ev.Previous != nil && !json.Valid(ev.Previous) {
			t.Fatalf("object %q, previous %q", ev.Object, ev.Previous)
		}
	})
}
