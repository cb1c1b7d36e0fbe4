package billing

import (
	"context"
	"fmt"

	"backstop/internal/handler"
)

const (
	// maxLines is how many lines a row holds: with 100 it is some 15 KB, and every event of the invoice writes them.
	maxLines = 100

	// maxDescription is how much of a line's description is kept.
	maxDescription = 80
)

type wireInvoice struct {
	ID                 string         `json:"id"`
	Number             string         `json:"number"`
	Status             string         `json:"status"`
	Customer           ref            `json:"customer"`
	Currency           string         `json:"currency"`
	Total              *int64         `json:"total"`
	Subtotal           *int64         `json:"subtotal"`
	AmountDue          *int64         `json:"amount_due"`
	AmountPaid         *int64         `json:"amount_paid"`
	AmountRemaining    *int64         `json:"amount_remaining"`
	AttemptCount       *int64         `json:"attempt_count"`
	NextPaymentAttempt *int64         `json:"next_payment_attempt"`
	DueDate            *int64         `json:"due_date"`
	BillingReason      string         `json:"billing_reason"`
	Created            *int64         `json:"created"`
	Lines              list[wireLine] `json:"lines"`
	StatusTransitions  struct {
		PaidAt *int64 `json:"paid_at"`
	} `json:"status_transitions"`

	Subscription  ref `json:"subscription"`   // before 2025-03-31.basil
	PaymentIntent ref `json:"payment_intent"` // before 2025-03-31.basil
	Parent        *struct {
		SubscriptionDetails *struct {
			Subscription ref `json:"subscription"`
		} `json:"subscription_details"`
	} `json:"parent"` // since 2025-03-31.basil
}

type wireLine struct {
	ID          string     `json:"id"`
	Amount      *int64     `json:"amount"`
	Description string     `json:"description"`
	Quantity    *int64     `json:"quantity"`
	Proration   bool       `json:"proration"` // before 2025-03-31.basil
	Price       *wirePrice `json:"price"`     // before 2025-03-31.basil
	Plan        *wirePrice `json:"plan"`      // all there was before prices
	Pricing     *struct {
		PriceDetails *struct {
			Price ref `json:"price"`
		} `json:"price_details"`
	} `json:"pricing"` // since 2025-03-31.basil
	Parent *struct {
		SubscriptionItem *prorated `json:"subscription_item_details"`
		InvoiceItem      *prorated `json:"invoice_item_details"`
	} `json:"parent"` // since 2025-03-31.basil
}

type prorated struct {
	Proration bool `json:"proration"`
}

var invoices = snapshot[wireInvoice]{read: readInvoice, complete: completeInvoice}

func readInvoice(src source, i *wireInvoice) (fact, error) {
	if !usable(i.ID) {
		return fact{}, errNoID
	}
	subscription := i.Subscription
	if subscription == "" && i.Parent != nil && i.Parent.SubscriptionDetails != nil {
		subscription = i.Parent.SubscriptionDetails.Subscription
	}
	lines := make([]any, 0, min(len(i.Lines.Data), maxLines))
	for _, line := range i.Lines.Data[:min(len(i.Lines.Data), maxLines)] {
		lines = append(lines, line.row())
	}
	f := fact{object: "invoice", id: i.ID, row: i.ID, kind: kindInvoice, rank: invoiceRank(src.eventType, i.Status)}
	f.set = handler.Row{
		"number":               text(i.Number),
		"customer":             text(i.Customer),
		"subscription":         text(subscription),
		"payment_intent":       text(i.PaymentIntent),
		"status":               text(i.Status),
		"currency":             text(i.Currency),
		"total":                number(i.Total),
		"subtotal":             number(i.Subtotal),
		"amount_due":           number(i.AmountDue),
		"amount_paid":          number(i.AmountPaid),
		"amount_remaining":     number(i.AmountRemaining),
		"attempt_count":        number(i.AttemptCount),
		"next_payment_attempt": number(i.NextPaymentAttempt),
		"due_date":             number(i.DueDate),
		"paid_at":              number(i.StatusTransitions.PaidAt),
		"billing_reason":       text(i.BillingReason),
		"created_s":            number(i.Created),
		"lines":                lines,
		"line_count":           int64(len(i.Lines.Data)),
		"lines_complete":       !i.Lines.HasMore && len(i.Lines.Data) <= maxLines,
	}
	index(f.set, src.account, i.Customer, kindInvoice, i.ID)
	return f, nil
}

func (l wireLine) row() map[string]any {
	price := ""
	switch {
	case l.Pricing != nil && l.Pricing.PriceDetails != nil:
		price = string(l.Pricing.PriceDetails.Price)
	case l.Price != nil:
		price = l.Price.ID
	case l.Plan != nil:
		price = l.Plan.ID
	}
	proration := l.Proration
	if l.Parent != nil {
		for _, parent := range []*prorated{l.Parent.SubscriptionItem, l.Parent.InvoiceItem} {
			proration = proration || parent != nil && parent.Proration
		}
	}
	return fields(map[string]any{
		"id":          text(l.ID),
		"amount":      number(l.Amount),
		"description": text(short(l.Description, maxDescription)),
		"price":       text(price),
		"quantity":    number(l.Quantity),
		"proration":   flag(proration),
	})
}

func completeInvoice(ctx context.Context, api Stripe, account string, i *wireInvoice) (bool, error) {
	if !i.Lines.HasMore {
		return false, nil
	}
	raw, complete, err := api.InvoiceLines(ctx, account, i.ID)
	if err != nil {
		return false, err
	}
	lines, err := decodeAll[wireLine](raw)
	if err != nil {
		return false, fmt.Errorf("decode the lines of %s: %w", i.ID, err)
	}
	i.Lines = list[wireLine]{Data: lines, HasMore: !complete}
	return true, nil
}

// invoiceRank follows what an invoice cannot go back on: a draft is finalized once, and neither a paid nor a voided one
// opens again (Stripe documentation, "Status transitions and finalization").
func invoiceRank(eventType, status string) int {
	switch {
	case eventType == "invoice.created":
		return rankFirst
	case status == "draft":
		return rankEarly
	case status == "paid", status == "void":
		return rankEnd
	case status == "uncollectible":
		return rankLate
	case eventType == "invoice.finalized":
		return rankEarly + 1
	}
	return rankUpdate
}
