package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v82"
)

func TestFieldThatDoesNotDecodeIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, object, path, kind string }{
		{"MoneyAsText", `{"id":"in_1","amount_paid":"2000"}`, "amount_paid", "string"},
		{"MoneyAsFraction", `{"id":"in_1","amount_paid":20.5}`, "amount_paid", "number"},
		{"MoneyWithExponent", `{"id":"in_1","amount_paid":2e3}`, "amount_paid", "number"},
		{"MoneyTooLarge", `{"id":"in_1","amount_paid":9223372036854775808}`, "amount_paid", "number"},
		{"MoneyAsBoolean", `{"id":"in_1","total":true}`, "total", "boolean"},
		{"InAnArray", `{"id":"in_1","lines":{"object":"list","data":[{"id":"il_1","amount":1},{"id":"il_2","amount":"2"}]}}`, "lines.data[1].amount", "string"},
		{"ThroughExpanded", `{"id":"in_1","customer":{"id":"cus_1","balance":"10"}}`, "customer.balance", "string"},
		{"ListAsText", `{"id":"in_1","lines":"none"}`, "lines", "string"},
		{"DecimalText", `{"id":"in_1","lines":{"data":[{"pricing":{"unit_amount_decimal":true}}]}}`, "lines.data[0].pricing.unit_amount_decimal", "boolean"},
		{"KeyOfMetadata", `{"id":"in_1","metadata":{"ada":5}}`, "metadata.*", "number"},
		{"KeyOfMetadataWithin", `{"id":"in_1","customer":{"id":"cus_1","metadata":{"ada@example.test":{}}}}`, "customer.metadata.*", "object"},
		{"TheObjectIsAnID", `"in_1"`, "", "string"},
		{"TheObjectIsNull", `null`, "", "null"},
		{"TheObjectIsAbsent", ``, "", "nothing"},
		{"TheObjectIsAList", `[{"id":"in_1"}]`, "", "array"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := decode(json.RawMessage(c.object), new(stripe.Invoice))
			var decodeError *DecodeError
			if !errors.As(err, &decodeError) {
				t.Fatalf("got %v, want a DecodeError", err)
			}
			if decodeError.Path != c.path || decodeError.Kind != c.kind {
				t.Errorf("got path %q kind %q, want %q %q", decodeError.Path, decodeError.Kind, c.path, c.kind)
			}
		})
	}
}

func TestFieldIsFoundWithFewDecodings(t *testing.T) {
	t.Parallel()
	const elements, levels = 50_000, 500
	for _, c := range []struct {
		name, doc, path string
		most            int
	}{
		{"InAWideList", `{"list":[` + strings.Repeat(`1,`, elements-1) + `"x"]}`, "list[49999]", 50},
		{"InADeepOne", strings.Repeat(`[`, levels) + `"x"` + strings.Repeat(`]`, levels), strings.Repeat("[0]", 40), 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			decodings := 0
			path, _ := narrow([]byte(c.doc), func(doc []byte) bool {
				decodings++
				if !json.Valid(doc) {
					t.Fatalf("%.80s is not JSON", doc)
				}
				return bytes.Contains(doc, []byte(`"x"`))
			})
			if path != c.path || decodings > c.most {
				t.Errorf("found %.200s with %d decodings, want %s with %d at most", path, decodings, c.path, c.most)
			}
		})
	}
}

func TestDecodeErrorHoldsNoValue(t *testing.T) {
	t.Parallel()
	err := decode(json.RawMessage(`{"id":"in_1","amount_paid":"ada@example.test"}`), new(stripe.Invoice))
	if err == nil || strings.Contains(err.Error(), "ada@") {
		t.Fatalf("got %v, want an error that does not quote the value", err)
	}
}

func TestExpandableDecodesAsIDAndAsObject(t *testing.T) {
	t.Parallel()
	for _, object := range []string{
		`{"id":"in_1","customer":"cus_1","amount_paid":5}`,
		`{"id":"in_1","customer":{"id":"cus_1","object":"customer"},"amount_paid":5}`,
		`{"id":"in_1","customer":{"id":"cus_1","object":"customer","deleted":true},"amount_paid":5,"unheard_of":{"a":[1]}}`,
	} {
		var invoice stripe.Invoice
		if err := decode(json.RawMessage(object), &invoice); err != nil {
			t.Fatal(err)
		}
		if invoice.Customer == nil || invoice.Customer.ID != "cus_1" || invoice.AmountPaid != 5 {
			t.Errorf("%s decoded to customer %+v, paid %d", object, invoice.Customer, invoice.AmountPaid)
		}
	}
}

func TestNullsAndAbsentFieldsDecode(t *testing.T) {
	t.Parallel()
	var invoice stripe.Invoice
	if err := decode(json.RawMessage(` {"id":"in_1","customer":null,"lines":null,"due_date":null,"metadata":null} `), &invoice); err != nil {
		t.Fatal(err)
	}
	if invoice.ID != "in_1" || invoice.Customer != nil {
		t.Errorf("got %+v", invoice)
	}
}

func TestThinEventReachesItsHandlerWithoutObject(t *testing.T) {
	t.Parallel()
	called := false
	h := New("v1.billing.meter.error_report_triggered", "meter", func(_ context.Context, e Event, object *json.RawMessage) ([]Effect, error) {
		called = object == nil && e.Thin
		return nil, nil
	})
	if _, err := h.Run(t.Context(), Event{Thin: true}); err != nil || !called {
		t.Fatalf("called with nil object: %v, err %v", called, err)
	}
}

func TestRawHandlerTakesAnyObject(t *testing.T) {
	t.Parallel()
	h := New("x", "raw", func(_ context.Context, _ Event, object *json.RawMessage) ([]Effect, error) {
		if string(*object) != `{"amount":"text"}` {
			t.Errorf("got %s", *object)
		}
		return nil, nil
	})
	if _, err := h.Run(t.Context(), Event{Object: json.RawMessage(`{"amount":"text"}`)}); err != nil {
		t.Fatal(err)
	}
}
