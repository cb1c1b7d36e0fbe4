package billing

import (
	"backstop/internal/handler"
)

// A payment's row is fed by its intent, its charges, their refunds and disputes, and by what joins it to an invoice.
// Each is a part of the row with its own version, under an attribute of its own, so that no order of theirs matters
// and none overwrites another.
const (
	partIntent  = "intent"
	partInvoice = "invoice"

	prefixCharge  = "charge_"
	prefixRefund  = "refund_"
	prefixDispute = "dispute_"
)

// payment makes the fact of a part. A payment is keyed by its intent, and by its charge where it has none.
func payment(src source, object, id string, intent, charge, customer ref, part string, value any) (fact, error) {
	row := intent
	if row == "" {
		row = charge
	}
	switch {
	case !usable(id):
		return fact{}, errNoID
	case !usable(string(row)):
		return fact{}, handler.Skip("the object names no payment")
	}
	f := fact{object: object, id: id, row: string(row), kind: kindPayment, part: part, rank: rankUpdate}
	f.set = handler.Row{part: value}
	index(f.set, src.account, customer, kindPayment, f.row)
	return f, nil
}

type wireIntent struct {
	ID               string `json:"id"`
	Status           string `json:"status"`
	Customer         ref    `json:"customer"`
	Currency         string `json:"currency"`
	Amount           *int64 `json:"amount"`
	AmountReceived   *int64 `json:"amount_received"`
	Created          *int64 `json:"created"`
	LatestCharge     ref    `json:"latest_charge"`
	Invoice          ref    `json:"invoice"` // before 2025-03-31.basil
	LastPaymentError *struct {
		Code        string `json:"code"`
		DeclineCode string `json:"decline_code"`
	} `json:"last_payment_error"`
}

var intents = snapshot[wireIntent]{read: readIntent}

func readIntent(src source, i *wireIntent) (fact, error) {
	failure := ""
	if i.LastPaymentError != nil {
		if failure = i.LastPaymentError.DeclineCode; failure == "" {
			failure = i.LastPaymentError.Code
		}
	}
	f, err := payment(src, "payment_intent", i.ID, ref(i.ID), "", i.Customer, partIntent, fields(map[string]any{
		"status":          text(i.Status),
		"customer":        text(i.Customer),
		"currency":        text(i.Currency),
		"amount":          number(i.Amount),
		"amount_received": number(i.AmountReceived),
		"created_s":       number(i.Created),
		"invoice":         text(i.Invoice),
		"failure":         text(failure),
	}))
	switch {
	case src.eventType == "payment_intent.created":
		f.rank = rankFirst
	case i.Status == "succeeded", i.Status == "canceled":
		// An intent does not leave these (Stripe documentation, "How PaymentIntents work").
		f.rank = rankEnd
	}
	return f, err
}

type wireCharge struct {
	ID             string `json:"id"`
	Status         string `json:"status"`
	PaymentIntent  ref    `json:"payment_intent"`
	Customer       ref    `json:"customer"`
	Currency       string `json:"currency"`
	Amount         *int64 `json:"amount"`
	AmountCaptured *int64 `json:"amount_captured"`
	AmountRefunded *int64 `json:"amount_refunded"` // all refunds so far, not the last one
	Refunded       bool   `json:"refunded"`        // in full
	Disputed       bool   `json:"disputed"`
	Captured       bool   `json:"captured"`
	Created        *int64 `json:"created"`
	Invoice        ref    `json:"invoice"` // before 2025-03-31.basil
	FailureCode    string `json:"failure_code"`
}

var charges = snapshot[wireCharge]{read: readCharge}

func readCharge(src source, c *wireCharge) (fact, error) {
	f, err := payment(src, "charge", c.ID, c.PaymentIntent, ref(c.ID), c.Customer, prefixCharge+c.ID, fields(map[string]any{
		"status":          text(c.Status),
		"customer":        text(c.Customer),
		"currency":        text(c.Currency),
		"amount":          number(c.Amount),
		"amount_captured": number(c.AmountCaptured),
		"amount_refunded": number(c.AmountRefunded),
		"refunded":        flag(c.Refunded),
		"disputed":        flag(c.Disputed),
		"captured":        flag(c.Captured),
		"created_s":       number(c.Created),
		"invoice":         text(c.Invoice),
		"failure":         text(c.FailureCode),
	}))
	// A pending charge succeeds or fails once; what comes after that is an update of it.
	f.first = src.eventType == "charge.succeeded" || src.eventType == "charge.failed"
	switch {
	case c.Status == "pending":
		f.rank = rankFirst
	case f.first:
		f.rank = rankEarly
	}
	return f, err
}

type wireRefund struct {
	ID            string `json:"id"`
	Status        string `json:"status"`
	PaymentIntent ref    `json:"payment_intent"`
	Charge        ref    `json:"charge"`
	Amount        *int64 `json:"amount"`
	Reason        string `json:"reason"`
	Created       *int64 `json:"created"`
}

var refunds = snapshot[wireRefund]{read: readRefund}

func readRefund(src source, r *wireRefund) (fact, error) {
	f, err := payment(src, "refund", r.ID, r.PaymentIntent, r.Charge, "", prefixRefund+r.ID, fields(map[string]any{
		"status":    text(r.Status),
		"amount":    number(r.Amount),
		"reason":    text(short(r.Reason, maxDescription)),
		"created_s": number(r.Created),
	}))
	f.first = src.eventType == "refund.created"
	switch {
	case f.first:
		f.rank = rankFirst
	case r.Status == "failed", r.Status == "canceled":
		f.rank = rankEnd // also after it had succeeded, and for good
	}
	return f, err
}

type wireDispute struct {
	ID            string `json:"id"`
	Status        string `json:"status"`
	PaymentIntent ref    `json:"payment_intent"`
	Charge        ref    `json:"charge"`
	Amount        *int64 `json:"amount"`
	Reason        string `json:"reason"`
	Created       *int64 `json:"created"`
}

var disputes = snapshot[wireDispute]{read: readDispute}

func readDispute(src source, d *wireDispute) (fact, error) {
	f, err := payment(src, "dispute", d.ID, d.PaymentIntent, d.Charge, "", prefixDispute+d.ID, fields(map[string]any{
		"status":    text(d.Status),
		"amount":    number(d.Amount),
		"reason":    text(short(d.Reason, maxDescription)),
		"created_s": number(d.Created),
	}))
	f.first = src.eventType == "charge.dispute.created"
	switch {
	case f.first:
		f.rank = rankFirst
	case src.eventType == "charge.dispute.closed", d.Status == "won", d.Status == "lost", d.Status == "warning_closed":
		f.rank = rankLate // it may reopen, but not in the second it closed
	}
	return f, err
}

type wireInvoicePayment struct {
	ID      string `json:"id"`
	Invoice ref    `json:"invoice"`
	Payment struct {
		PaymentIntent ref `json:"payment_intent"`
		Charge        ref `json:"charge"`
	} `json:"payment"`
}

// invoicePayments join a payment to its invoice since API version 2025-03-31.basil (Stripe changelog, "Adds support
// for multiple payments on invoices"); before, the intent and the charge named it.
var invoicePayments = snapshot[wireInvoicePayment]{read: readInvoicePayment}

func readInvoicePayment(src source, p *wireInvoicePayment) (fact, error) {
	return payment(src, "invoice_payment", p.ID, p.Payment.PaymentIntent, p.Payment.Charge, "", partInvoice, text(p.Invoice))
}
