package billing

import (
	"encoding/json"
	"slices"
	"strings"

	"backstop/internal/handler"
	"backstop/internal/projection"
	"backstop/internal/schema"
)

// Origin says which account an object is of, and which events its row stands on.
type Origin struct {
	Account string `json:"account,omitempty"` // connected account; empty: the platform's own

	// OrderUnsure is true while two changes of one second could not be told apart: the later arrival is shown.
	OrderUnsure bool                  `json:"order_unsure,omitempty"`
	Facts       []projection.Standing `json:"-"` // newest first
}

// What an amount or a time was not sent for is nil; times are unix seconds, amounts minor units.

// Customer is a customer's row.
type Customer struct {
	ID         string `json:"id"`
	Email      string `json:"email,omitempty"`
	Name       string `json:"name,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Balance    *int64 `json:"balance,omitempty"`
	Delinquent bool   `json:"delinquent"`
	Deleted    bool   `json:"deleted"`
	Livemode   bool   `json:"livemode"`
	CreatedS   *int64 `json:"created_s,omitempty"`
	Origin
}

// Subscription is a subscription's row. Active judges its status.
type Subscription struct {
	ID                 string             `json:"id"`
	Customer           string             `json:"customer,omitempty"`
	Status             string             `json:"status"` // as sent, known or not
	Currency           string             `json:"currency,omitempty"`
	CancelAtPeriodEnd  bool               `json:"cancel_at_period_end"`
	CancelAt           *int64             `json:"cancel_at,omitempty"`
	CanceledAt         *int64             `json:"canceled_at,omitempty"`
	EndedAt            *int64             `json:"ended_at"`
	TrialEnd           *int64             `json:"trial_end,omitempty"`
	CreatedS           *int64             `json:"created_s,omitempty"`
	CurrentPeriodStart *int64             `json:"current_period_start,omitempty"`
	CurrentPeriodEnd   *int64             `json:"current_period_end"`
	LatestInvoice      string             `json:"latest_invoice,omitempty"`
	PauseCollection    *PauseCollection   `json:"pause_collection"` // stands beside Status, which stays active
	Items              []SubscriptionItem `json:"items"`
	ItemsComplete      bool               `json:"items_complete"`
	Origin
}

// PauseCollection says how invoices are treated meanwhile, and until when.
type PauseCollection struct {
	Behavior  string `json:"behavior"`
	ResumesAt *int64 `json:"resumes_at"`
}

// SubscriptionItem is one thing a subscription sells.
type SubscriptionItem struct {
	ID               string `json:"id"`
	Price            string `json:"price,omitempty"`
	LookupKey        string `json:"lookup_key,omitempty"`
	Product          string `json:"product,omitempty"`
	UnitAmount       *int64 `json:"unit_amount,omitempty"`
	Quantity         *int64 `json:"quantity"`
	CurrentPeriodEnd *int64 `json:"current_period_end"`
}

// Invoice is an invoice's row.
type Invoice struct {
	ID                 string        `json:"id"`
	Number             string        `json:"number,omitempty"`
	Customer           string        `json:"customer,omitempty"`
	Subscription       string        `json:"subscription,omitempty"`
	PaymentIntent      string        `json:"payment_intent,omitempty"` // before API version 2025-03-31.basil only
	Status             string        `json:"status"`
	Currency           string        `json:"currency"`
	Total              *int64        `json:"total"`
	Subtotal           *int64        `json:"subtotal,omitempty"`
	AmountDue          *int64        `json:"amount_due"`
	AmountPaid         *int64        `json:"amount_paid"`
	AmountRemaining    *int64        `json:"amount_remaining,omitempty"`
	AttemptCount       *int64        `json:"attempt_count,omitempty"`
	NextPaymentAttempt *int64        `json:"next_payment_attempt,omitempty"`
	DueDate            *int64        `json:"due_date,omitempty"`
	PaidAt             *int64        `json:"paid_at,omitempty"`
	BillingReason      string        `json:"billing_reason,omitempty"`
	CreatedS           *int64        `json:"created_s,omitempty"`
	Lines              []InvoiceLine `json:"lines"`
	LineCount          int64         `json:"line_count"`     // known of, which may be more than Lines holds
	LinesComplete      bool          `json:"lines_complete"` // Lines are all the invoice has
	Origin
}

// InvoiceLine is one line of an invoice, in the invoice's currency.
type InvoiceLine struct {
	ID          string `json:"id"`
	Amount      *int64 `json:"amount"`
	Description string `json:"description,omitempty"` // cut to 80 bytes
	Price       string `json:"price,omitempty"`
	Quantity    *int64 `json:"quantity,omitempty"`
	Proration   bool   `json:"proration,omitempty"`
}

// CheckoutSession is a checkout session's row. Complete is not paid: PaymentStatus says that.
type CheckoutSession struct {
	ID                string `json:"id"`
	Status            string `json:"status"`
	PaymentStatus     string `json:"payment_status"`
	PaymentFailed     bool   `json:"payment_failed,omitempty"`
	Mode              string `json:"mode,omitempty"`
	Customer          string `json:"customer,omitempty"`
	Email             string `json:"email,omitempty"`
	Currency          string `json:"currency,omitempty"`
	AmountTotal       *int64 `json:"amount_total,omitempty"`
	ClientReferenceID string `json:"client_reference_id,omitempty"`
	PaymentIntent     string `json:"payment_intent,omitempty"`
	Subscription      string `json:"subscription,omitempty"`
	Invoice           string `json:"invoice,omitempty"`
	CreatedS          *int64 `json:"created_s,omitempty"`
	Origin
}

// Entitlements are what a customer may use.
type Entitlements struct {
	Customer string   `json:"customer"`
	Keys     []string `json:"keys"` // lookup keys, or feature ids where there is none; sorted
	Complete bool     `json:"entitlements_complete"`
	Origin
}

// Object makes what a row stands for of it: *Customer, *Subscription, *Invoice, *Payment, *CheckoutSession or
// *Entitlements. It is nil for rows that only point to others, and for rows that are not of this projection.
func Object(row handler.Row) any {
	pk, _ := row[schema.PK].(string)
	sk, _ := row[schema.SK].(string)
	account, id := split(pk)
	origin := Origin{Account: account, OrderUnsure: projection.Unsure(row), Facts: projection.Facts(row)}
	switch sk {
	case kindCustomer:
		return into(row, &Customer{ID: id, Origin: origin})
	case kindSubscription:
		return into(row, &Subscription{ID: id, Origin: origin})
	case kindInvoice:
		return into(row, &Invoice{ID: id, Origin: origin})
	case kindSession:
		return into(row, &CheckoutSession{ID: id, Origin: origin})
	case kindPayment:
		return paymentOf(row, id, origin)
	case kindEntitlements:
		complete, _ := row["entitlements_complete"].(bool)
		return &Entitlements{Customer: id, Keys: texts(row[attrKeys]), Complete: complete, Origin: origin}
	}
	return nil
}

// into fills object from a row by the names its fields have in JSON, which are those of the attributes. Parts, facts
// and keys have none there. What a row holds was put there by this package, so nothing fails to fit.
func into[T any](row map[string]any, object *T) *T {
	own := make(map[string]any, len(row))
	for name, value := range row {
		if name != "order_unsure" { // told by origin
			own[name] = value
		}
	}
	text, err := json.Marshal(own)
	if err == nil {
		err = json.Unmarshal(text, object)
	}
	if err != nil {
		return nil
	}
	return object
}

// paymentOf puts a payment together from the parts that are there.
func paymentOf(row handler.Row, id string, origin Origin) *Payment {
	p := &Payment{ID: id, Origin: origin}
	p.Invoice, _ = row[partInvoice].(string)
	for name, value := range row {
		part, isPart := value.(map[string]any)
		switch {
		case !isPart:
		case name == partIntent:
			p.intent = into(part, &paymentIntent{})
		case strings.HasPrefix(name, prefixCharge):
			p.Charges = append(p.Charges, *into(part, &Charge{ID: name[len(prefixCharge):]}))
		case strings.HasPrefix(name, prefixRefund):
			p.Refunds = append(p.Refunds, *into(part, &Refund{ID: name[len(prefixRefund):]}))
		case strings.HasPrefix(name, prefixDispute):
			p.Disputes = append(p.Disputes, *into(part, &Dispute{ID: name[len(prefixDispute):]}))
		}
	}
	slices.SortFunc(p.Charges, func(a, b Charge) int { return byTime(a.CreatedS, b.CreatedS, a.ID, b.ID) })
	slices.SortFunc(p.Refunds, func(a, b Refund) int { return byTime(a.CreatedS, b.CreatedS, a.ID, b.ID) })
	slices.SortFunc(p.Disputes, func(a, b Dispute) int { return byTime(a.CreatedS, b.CreatedS, a.ID, b.ID) })
	p.sum()
	return p
}
