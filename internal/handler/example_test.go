package handler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/stripe/stripe-go/v82"

	"backstop/internal/handler"
)

// table is the billing table. Another one needs a line in infra/pipeline/rights.go.
const table = "billing"

// welcome is a handler: it gets the decoded object and returns what it wants done.
func welcome(_ context.Context, e handler.Event, invoice *stripe.Invoice) ([]handler.Effect, error) {
	if invoice.AmountPaid == 0 {
		return nil, handler.Skip("nothing was paid")
	}
	if invoice.Customer == nil {
		return nil, handler.Permanent(fmt.Errorf("the invoice %s names no customer", invoice.ID))
	}
	return []handler.Effect{
		// Added once, whatever is delivered twice or dies half-way.
		handler.Once{
			Table: table,
			Key:   map[string]string{"pk": "points#" + invoice.Customer.ID, "sk": "points"},
			Add:   map[string]int64{"points": invoice.AmountPaid / 100},
		},
		// How the object stands: an older fact never overwrites a newer one.
		handler.Project{
			Table:   table,
			Key:     map[string]string{"pk": "paid#" + invoice.ID, "sk": "paid"},
			Set:     handler.Row{"paid": invoice.AmountPaid, "currency": string(invoice.Currency)},
			Version: handler.Version{CreatedS: e.CreatedS, EventID: e.ID},
		},
	}, nil
}

// announce is another handler of the same type, with its own attempts: it tells somebody outside. The key is the same
// over all retries, so that who keeps it hears once.
func announce(ctx context.Context, e handler.Event, invoice *stripe.Invoice) ([]handler.Effect, error) {
	return nil, handler.Call(ctx, "newsroom", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://newsroom.example.com/paid", strings.NewReader(invoice.ID))
		if err != nil {
			return err
		}
		request.Header.Set("Idempotency-Key", e.IdempotencyKey("announce"))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err // an outage: it waits, and is not charged
		}
		if err := response.Body.Close(); err != nil {
			return err
		}
		if response.StatusCode >= 300 {
			return &handler.StatusError{Status: response.StatusCode}
		}
		return nil
	})
}

// Write a function for the object's type, register it with one line, and test it with one line (package handlertest).
func Example() {
	var r handler.Registry
	handler.On(&r, "invoice.paid", "welcome", welcome)
	handler.On(&r, "invoice.paid", "announce", announce, handler.Needs("newsroom"))

	// What the processor does with an event, for the first of them:
	effects, err := r.For("invoice.paid")[0].Run(context.Background(), handler.Event{
		Key: "stripe#-#evt_1", ID: "evt_1", Type: "invoice.paid", CreatedS: 1790000000,
		Object: json.RawMessage(`{"id":"in_1","object":"invoice","customer":"cus_1","amount_paid":1900,"currency":"usd"}`),
	})
	fmt.Println(err)
	for _, effect := range effects {
		switch effect := effect.(type) {
		case handler.Once:
			fmt.Println("once:", effect.Key["pk"], effect.Add)
		case handler.Project:
			fmt.Println("project:", effect.Key["pk"], effect.Set)
		}
	}
	// Output:
	// <nil>
	// once: points#cus_1 map[points:19]
	// project: paid#in_1 map[currency:usd paid:1900]
}
