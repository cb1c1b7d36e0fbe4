package billing

import (
	"cmp"
	"slices"
	"strings"
)

// Payment is a payment's row: its intent, else its charge, with what came of it.
type Payment struct {
	ID             string `json:"id"` // of the payment intent, else of the charge
	Customer       string `json:"customer,omitempty"`
	Invoice        string `json:"invoice,omitempty"`
	Status         string `json:"status"` // the intent's, else the charge's
	Failure        string `json:"failure,omitempty"`
	Currency       string `json:"currency"`
	Amount         *int64 `json:"amount"`
	AmountReceived *int64 `json:"amount_received"`
	AmountRefunded int64  `json:"amount_refunded"`
	Refunded       bool   `json:"refunded"` // in full
	Disputed       bool   `json:"disputed"`
	CreatedS       *int64 `json:"created_s,omitempty"`

	Charges  []Charge  `json:"charges,omitempty"` // by time, as are the others
	Refunds  []Refund  `json:"refunds,omitempty"`
	Disputes []Dispute `json:"disputes,omitempty"`
	Origin

	intent *paymentIntent
}

type paymentIntent struct {
	Status         string `json:"status"`
	Customer       string `json:"customer"`
	Invoice        string `json:"invoice"`
	Currency       string `json:"currency"`
	Amount         *int64 `json:"amount"`
	AmountReceived *int64 `json:"amount_received"`
	Failure        string `json:"failure"`
	CreatedS       *int64 `json:"created_s"`
}

// Charge is one attempt to collect a payment.
type Charge struct {
	ID             string `json:"id"`
	Status         string `json:"status"`
	Customer       string `json:"customer,omitempty"`
	Invoice        string `json:"invoice,omitempty"`
	Currency       string `json:"currency,omitempty"`
	Amount         *int64 `json:"amount"`
	AmountCaptured *int64 `json:"amount_captured,omitempty"`
	AmountRefunded *int64 `json:"amount_refunded,omitempty"` // all refunds so far
	Captured       bool   `json:"captured,omitempty"`
	Refunded       bool   `json:"refunded,omitempty"`
	Disputed       bool   `json:"disputed,omitempty"`
	Failure        string `json:"failure,omitempty"`
	CreatedS       *int64 `json:"created_s,omitempty"`
}

// Refund is one refund. A refund can fail after it succeeded.
type Refund struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Amount   *int64 `json:"amount"`
	Reason   string `json:"reason,omitempty"`
	CreatedS *int64 `json:"created_s,omitempty"`
}

// Dispute is one dispute of a charge.
type Dispute struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Amount   *int64 `json:"amount"`
	Reason   string `json:"reason,omitempty"`
	CreatedS *int64 `json:"created_s,omitempty"`
}

// sum fills what follows from the parts. The intent speaks for the payment; where it is not known a charge
// does. The refunded amount is the charge's own total, which grows with every refund, so nothing is added up but the
// refunds that came when no charge did.
func (p *Payment) sum() {
	p.Disputed = len(p.Disputes) > 0
	for _, c := range p.Charges {
		p.Invoice = cmp.Or(p.Invoice, c.Invoice)
		p.Disputed = p.Disputed || c.Disputed
		if c.AmountRefunded != nil {
			p.AmountRefunded += *c.AmountRefunded
		}
		p.Refunded = p.Refunded || c.Refunded
	}
	if len(p.Charges) == 0 {
		for _, r := range p.Refunds {
			if r.Amount != nil && r.Status != "failed" && r.Status != "canceled" {
				p.AmountRefunded += *r.Amount
			}
		}
	} else {
		c := p.speaking()
		p.Status, p.Currency, p.Failure, p.Customer = c.Status, c.Currency, c.Failure, c.Customer
		p.Amount, p.CreatedS = c.Amount, c.CreatedS
		if c.Captured && c.Status == "succeeded" {
			p.AmountReceived = c.AmountCaptured
		}
	}
	p.takeBackFailed()
	if i := p.intent; i != nil {
		p.Status, p.Currency, p.Failure = i.Status, i.Currency, i.Failure
		p.Amount, p.AmountReceived, p.CreatedS = i.Amount, i.AmountReceived, i.CreatedS
		p.Customer = cmp.Or(i.Customer, p.Customer)
		p.Invoice = cmp.Or(p.Invoice, i.Invoice)
	}
	if len(p.Charges) == 0 && p.Amount != nil && *p.Amount > 0 {
		p.Refunded = p.AmountRefunded >= *p.Amount
	}
}

// speaking is the charge that says how the payment stands: the one that succeeded, since no attempt follows it, else
// the last.
func (p *Payment) speaking() Charge {
	for _, c := range slices.Backward(p.Charges) {
		if c.Status == "succeeded" {
			return c
		}
	}
	return p.Charges[len(p.Charges)-1]
}

// takeBackFailed corrects the total of a charge whose last snapshot is older than the failure of a refund it counts:
// Stripe may tell of the refund only.
func (p *Payment) takeBackFailed() {
	if p.AmountRefunded == 0 || len(p.Charges) == 0 {
		return
	}
	told := make(map[string]int64, len(p.Facts)) // when, by part
	var charged int64
	for _, f := range p.Facts {
		told[f.Part] = f.CreatedS
		if strings.HasPrefix(f.Part, prefixCharge) {
			charged = max(charged, f.CreatedS)
		}
	}
	for _, r := range p.Refunds {
		failed := r.Status == "failed" || r.Status == "canceled"
		counted := r.CreatedS != nil && *r.CreatedS <= charged && told[prefixRefund+r.ID] > charged
		if failed && counted && r.Amount != nil {
			p.AmountRefunded = max(0, p.AmountRefunded-*r.Amount)
			p.Refunded = false
		}
	}
}

// byTime orders by creation, what has no time first.
func byTime(a, b *int64, aID, bID string) int {
	var at, bt int64
	if a != nil {
		at = *a
	}
	if b != nil {
		bt = *b
	}
	return cmp.Or(cmp.Compare(at, bt), cmp.Compare(aID, bID))
}
