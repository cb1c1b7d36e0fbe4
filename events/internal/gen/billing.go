package main

import (
	"fmt"
	"strconv"
	"time"
)

// price is something the invented account sells. Its ids and its lookup key are
// the account's set-up: they are the same in all worlds.
type price struct {
	id, product, name, lookupKey string
	amount                       int // minor units
	currency, interval           string
}

var (
	starter = price{"price_1SA0qkBxlTnrVo4wStarter1", "prod_T2mQv8ZkXw1cYd", "Lantern Starter", "starter", 1900, "usd", "month"}
	pro     = price{"price_1SA0rVBxlTnrVo4wProPlan1", "prod_T2mRf3HnLb7sKe", "Lantern Pro", "pro", 4900, "usd", "month"}
	studio  = price{"price_1SA0tGBxlTnrVo4wStudioY1", "prod_T2mSy6PcGj9tWa", "Lantern Studio", "studio", 49000, "eur", "year"}
)

func (p price) object() *object {
	return shape("price").set("id", p.id, "created", 1788212400, "currency", p.currency, "lookup_key", p.lookupKey, "nickname", p.name,
		"product", p.product, "recurring.interval", p.interval, "unit_amount", p.amount, "unit_amount_decimal", strconv.Itoa(p.amount))
}

func (p price) plan() *object {
	return shape("plan").set("id", p.id, "amount", p.amount, "amount_decimal", strconv.Itoa(p.amount), "created", 1788212400,
		"currency", p.currency, "interval", p.interval, "nickname", p.name, "product", p.product)
}

// after is the end of a billing period of p that starts at start.
func (p price) after(start int) int {
	t := time.Unix(int64(start), 0).UTC()
	if p.interval == "year" {
		return int(t.AddDate(1, 0, 0).Unix())
	}
	return int(t.AddDate(0, 1, 0).Unix())
}

// customer creates a customer with a mail address that belongs to nobody.
func (w *world) customer(name, email string) *object {
	return w.make("customer", "cus", "name", name, "email", email, "invoice_prefix", fmt.Sprintf("%08X", w.now%0xFFFFFFF),
		"address.country", "US", "address.postal_code", "00000", "address.city", "Exampleton", "address.line1", "1 Sample Street",
		"preferred_locales", []string{"en"})
}

// card attaches a test card to a customer, as the one invoices are paid with.
func (w *world) card(cus *object) *object {
	pm := w.make("payment_method", "pm", "customer", cus.id(), "billing_details.email", cus.str("email"),
		"billing_details.name", cus.str("name"), "billing_details.address.country", "US", "billing_details.address.postal_code", "00000")
	cus.set("invoice_settings.default_payment_method", pm.id())
	return pm
}

// bankAccount attaches a bank account, which pays with a delay of days.
func (w *world) bankAccount(cus *object) *object {
	pm := w.make("payment_method", "pm", "customer", cus.id(), "type", "us_bank_account",
		"billing_details.email", cus.str("email"), "billing_details.name", cus.str("name"))
	return pm.drop("card").add("us_bank_account", newObject("account_holder_type", "individual", "account_type", "checking",
		"bank_name", "SAMPLE TEST BANK", "financial_connections_account", nil, "fingerprint", "b7QmLx0dRz41TfWe", "last4", "6789",
		"networks", newObject("preferred", "ach", "supported", []string{"ach"}), "routing_number", "110000000", "status_details", newObject()))
}

// subscribe creates an incomplete subscription: nothing is paid yet.
func (w *world) subscribe(cus *object, p price, quantity int) *object {
	sub := w.make("subscription", "sub", "customer", cus.id(), "currency", p.currency, "start_date", w.now, "billing_cycle_anchor", w.now)
	item := shape("subscription_item").set("id", w.mint("si"), "created", w.now, "subscription", sub.id())
	sub.set("items.data", []*object{item}, "items.url", "/v1/subscription_items?subscription="+sub.id())
	setPrice(sub, p, quantity)
	setPeriod(sub, w.now, p.after(w.now))
	cus.set("currency", p.currency)
	return sub
}

func setPrice(sub *object, p price, quantity int) {
	sub.set("plan", p.plan(), "quantity", quantity,
		"items.data.0.plan", p.plan(), "items.data.0.price", p.object(), "items.data.0.quantity", quantity)
}

func setPeriod(sub *object, start, end int) {
	sub.set("items.data.0.current_period_start", start, "items.data.0.current_period_end", end)
}

// trial puts a subscription on trial for so many days.
func (w *world) trial(sub *object, days int) {
	end := w.now + days*86400
	sub.set("status", "trialing", "trial_start", w.now, "trial_end", end, "billing_cycle_anchor", end)
	setPeriod(sub, w.now, end)
}

// renew moves a subscription into its next period.
func (w *world) renew(sub *object, p price) {
	start := sub.num("items.data.0.current_period_end")
	setPeriod(sub, start, p.after(start))
}

// cancel ends a subscription now.
func (w *world) cancel(sub *object, reason string) {
	sub.set("status", "canceled", "canceled_at", w.now, "ended_at", w.now, "cancellation_details.reason", reason)
}

// line is what an invoice charges for: a period of a price, or a proration.
type line struct {
	price      price
	quantity   int
	amount     int // 0: price times quantity
	about      string
	start, end int
	proration  bool
}

// period is the ordinary line of a subscription's current period.
func period(sub *object, p price) line {
	quantity := sub.num("items.data.0.quantity")
	return line{price: p, quantity: quantity, amount: p.amount * quantity,
		about: fmt.Sprintf("%d × %s (at %s / %s)", quantity, p.name, money(p.amount, p.currency), p.interval),
		start: sub.num("items.data.0.current_period_start"), end: sub.num("items.data.0.current_period_end")}
}

func money(amount int, currency string) string {
	sign := map[string]string{"usd": "$", "eur": "€"}[currency]
	return fmt.Sprintf("%s%d.%02d", sign, amount/100, amount%100)
}

// invoice drafts an invoice of a subscription.
func (w *world) invoice(cus, sub *object, reason string, lines ...line) *object {
	meta := (*sub.slot("metadata")).(*object) // Stripe copies it onto the invoice and its lines
	inv := w.make("invoice", "in", "billing_reason", reason, "customer", cus.id(), "customer_email", cus.str("email"),
		"customer_name", cus.str("name"), "customer_address", (*cus.slot("address")).(*object).clone(),
		"currency", sub.str("currency"), "period_start", w.now, "period_end", w.now,
		"parent", newObject("quote_details", nil, "subscription_details",
			newObject("metadata", meta.clone(), "subscription", sub.id()), "type", "subscription_details"))
	items := []*object{}
	total := 0
	for _, l := range lines {
		item := shape("line_item").set("id", w.mint("il"), "amount", l.amount, "currency", l.price.currency, "description", l.about,
			"invoice", inv.id(), "metadata", meta.clone(), "parent.subscription_item_details.proration", l.proration,
			"parent.subscription_item_details.subscription", sub.id(),
			"parent.subscription_item_details.subscription_item", sub.str("items.data.0.id"),
			"period.start", l.start, "period.end", l.end, "pricing.price_details.price", l.price.id,
			"pricing.price_details.product", l.price.product, "pricing.unit_amount_decimal", strconv.Itoa(l.price.amount),
			"quantity", l.quantity)
		if l.proration {
			item.set("discountable", false, "parent.subscription_item_details.invoice_item", w.mint("ii"))
		}
		items = append(items, item)
		total += l.amount
	}
	inv.set("lines.data", items, "lines.total_count", len(items), "lines.url", "/v1/invoices/"+inv.id()+"/lines")
	for _, key := range []string{"amount_due", "amount_remaining", "subtotal", "subtotal_excluding_tax", "total", "total_excluding_tax"} {
		inv.set(key, total)
	}
	sub.set("latest_invoice", inv.id())
	return inv
}

// finalize opens a draft. One with something to pay gets a payment intent,
// joined to it by an invoice payment; a free one is paid at once.
func (w *world) finalize(cus, inv *object) (pi, pay *object) {
	n := cus.num("next_invoice_sequence")
	cus.set("next_invoice_sequence", n+1)
	secret := base62(inv.id(), 48)
	url := "https://invoice.stripe.com/i/acct_1S9zZzBxlTnrVo4w/test_" + secret
	inv.set("status", "open", "number", fmt.Sprintf("%s-%04d", cus.str("invoice_prefix"), n), "effective_at", w.now,
		"status_transitions.finalized_at", w.now, "ending_balance", 0, "hosted_invoice_url", url+"?s=ap",
		"invoice_pdf", "https://pay.stripe.com/invoice/acct_1S9zZzBxlTnrVo4w/test_"+secret+"/pdf?s=ap",
		"automatically_finalizes_at", nil, "webhooks_delivered_at", w.now)
	due := inv.num("amount_due")
	if due == 0 {
		w.markPaid(inv)
		return nil, nil
	}
	pi = w.intent(cus, due, inv.str("currency"))
	pi.set("description", "Subscription update", "setup_future_usage", "off_session")
	pay = w.make("invoice_payment", "inpay", "amount_requested", due, "currency", inv.str("currency"), "invoice", inv.id(),
		"payment.payment_intent", pi.id())
	return pi, pay
}

func (w *world) markPaid(inv *object) {
	inv.set("status", "paid", "amount_paid", inv.num("amount_due"), "amount_remaining", 0, "attempted", true,
		"auto_advance", false, "next_payment_attempt", nil, "status_transitions.paid_at", w.now)
}

// pay lets the payment of an open invoice succeed, and returns the charge.
func (w *world) pay(inv, pi, pay, pm *object) *object {
	ch := w.succeed(pi, pm)
	inv.set("attempt_count", inv.num("attempt_count")+1)
	w.markPaid(inv)
	pay.set("status", "paid", "amount_paid", inv.num("amount_paid"), "status_transitions.paid_at", w.now)
	return ch
}

// miss lets the payment of an open invoice fail; retry is when Stripe tries
// again, 0 for never.
func (w *world) miss(inv, pi, pm *object, retry time.Duration) *object {
	ch := w.decline(pi, pm)
	inv.set("attempt_count", inv.num("attempt_count")+1, "attempted", true, "next_payment_attempt", nil)
	if retry > 0 {
		inv.set("next_payment_attempt", w.now+int(retry/second))
	}
	return ch
}
