package main

import "time"

// intent creates a payment intent that waits for a payment method. cus is nil
// for a guest.
func (w *world) intent(cus *object, amount int, currency string) *object {
	pi := w.make("payment_intent", "pi", "amount", amount, "currency", currency)
	pi.set("client_secret", pi.id()+"_secret_"+base62(pi.id(), 25))
	if cus != nil {
		pi.set("customer", cus.id())
	}
	return pi
}

// charge is an attempt to collect a payment intent from a card.
func (w *world) charge(pi, pm *object) *object {
	amount := pi.num("amount")
	ch := w.make("charge", "ch", "amount", amount, "currency", pi.str("currency"), "customer", *pi.slot("customer"),
		"description", *pi.slot("description"), "payment_intent", pi.id(), "payment_method", pm.id(),
		"billing_details", (*pm.slot("billing_details")).(*object).clone())
	if pm.str("type") == "card" {
		ch.set("payment_method_details.card.amount_authorized", amount,
			"payment_method_details.card.overcapture.maximum_amount_capturable", amount)
	} else {
		ch.set("payment_method_details", newObject("type", "us_bank_account", "us_bank_account", newObject("account_holder_type", "individual",
			"account_type", "checking", "bank_name", "SAMPLE TEST BANK", "expected_debit_date", nil, "fingerprint", "b7QmLx0dRz41TfWe",
			"last4", "6789", "mandate", nil, "payment_reference", nil, "routing_number", "110000000")))
		ch.set("calculated_statement_descriptor", nil, "outcome.network_status", "approved_by_network", "outcome.risk_level", "not_assessed",
			"outcome.risk_score", nil)
	}
	pi.set("latest_charge", ch.id())
	return ch
}

// succeed collects a payment intent.
func (w *world) succeed(pi, pm *object) *object {
	ch := w.charge(pi, pm)
	amount := pi.num("amount")
	ch.set("amount_captured", amount, "balance_transaction", w.mint("txn"),
		"receipt_url", "https://pay.stripe.com/receipts/payment/"+base62(ch.id(), 60))
	pi.set("status", "succeeded", "amount_received", amount, "payment_method", pm.id(), "last_payment_error", nil, "next_action", nil)
	return ch
}

// hold authorizes a payment intent for capture later.
func (w *world) hold(pi, pm *object) *object {
	ch := w.charge(pi, pm)
	ch.set("captured", false)
	pi.set("status", "requires_capture", "amount_capturable", pi.num("amount"), "payment_method", pm.id(), "capture_method", "manual")
	return ch
}

// capture collects what hold authorized.
func (w *world) capture(pi, ch *object) {
	ch.set("captured", true, "amount_captured", ch.num("amount"), "balance_transaction", w.mint("txn"),
		"receipt_url", "https://pay.stripe.com/receipts/payment/"+base62(ch.id(), 60))
	pi.set("status", "succeeded", "amount_capturable", 0, "amount_received", pi.num("amount"))
}

// decline lets the card's bank refuse a payment intent.
func (w *world) decline(pi, pm *object) *object {
	const message = "Your card has insufficient funds."
	ch := w.charge(pi, pm)
	ch.set("status", "failed", "paid", false, "captured", false, "failure_code", "card_declined", "failure_message", message,
		"outcome", newObject("advice_code", "try_again_later", "network_advice_code", "02", "network_decline_code", "51",
			"network_status", "declined_by_network", "reason", "insufficient_funds", "risk_level", "normal", "risk_score", 31,
			"seller_message", "The bank returned the decline code `insufficient_funds`.", "type", "issuer_declined"))
	pi.set("status", "requires_payment_method", "payment_method", nil,
		"last_payment_error", newObject("advice_code", "try_again_later", "charge", ch.id(), "code", "card_declined",
			"decline_code", "insufficient_funds", "doc_url", "https://stripe.com/docs/error-codes/card-declined",
			"message", message, "network_advice_code", "02", "network_decline_code", "51", "payment_method", pm.clone(),
			"type", "card_error"))
	return ch
}

// challenge asks the cardholder to authenticate.
func (w *world) challenge(pi, pm *object) {
	pi.set("status", "requires_action", "payment_method", pm.id(),
		"next_action", newObject("type", "use_stripe_sdk", "use_stripe_sdk", newObject(
			"type", "three_d_secure_redirect", "stripe_js", "https://hooks.stripe.com/redirect/authenticate/"+w.mint("src"),
			"source", w.mint("payatt"))))
}

// giveBack makes a refund and books it on its charge, which the caller tells
// about: a refund event and charge.refunded carry one fact.
func (w *world) giveBack(ch *object, amount int, reason any) *object {
	re := w.make("refund", "re", "amount", amount, "charge", ch.id(), "currency", ch.str("currency"), "reason", reason,
		"payment_intent", ch.str("payment_intent"), "balance_transaction", w.mint("txn"), "status", "succeeded")
	refunded := ch.num("amount_refunded") + amount
	ch.set("amount_refunded", refunded, "refunded", refunded == ch.num("amount"))
	return re
}

// dispute opens a dispute of a charge in full.
func (w *world) dispute(ch *object) *object {
	du := w.make("dispute", "du", "amount", ch.num("amount"), "charge", ch.id(), "currency", ch.str("currency"),
		"payment_intent", ch.str("payment_intent"), "evidence.customer_email_address", *ch.slot("billing_details.email"),
		"evidence.customer_name", *ch.slot("billing_details.name"), "evidence_details.due_by", w.now+int(9*day/time.Second))
	ch.set("disputed", true, "dispute", du.id())
	return du
}

// book moves the disputed amount between the account's balance and the bank:
// back (sign +1) or away (sign -1); taking it away costs a fee.
func (w *world) book(du *object, sign int) {
	const disputeFee = 1500 // what the invented account pays a dispute, in minor units
	amount, fee, fees := sign*du.num("amount"), 0, []*object{}
	about := "Chargeback reversal for " + du.str("charge")
	category := "dispute_reversal"
	if sign < 0 {
		fee, about, category = disputeFee, "Chargeback withdrawal for "+du.str("charge"), "dispute"
		fees = append(fees, newObject("amount", fee, "application", nil, "currency", du.str("currency"), "description", "Dispute fee", "type", "stripe_fee"))
	}
	txn := shape("balance_transaction").set("id", w.mint("txn"), "amount", amount, "available_on", w.now, "created", w.now,
		"currency", du.str("currency"), "description", about, "fee", fee, "fee_details", fees, "net", amount-fee,
		"reporting_category", category, "source", du.id())
	list := (*du.slot("balance_transactions")).([]any)
	du.set("balance_transactions", append(list, txn))
	if len(list) == 0 {
		du.set("balance_transaction", txn.id())
	}
}

// session opens a checkout session; cus is nil for a guest.
func (w *world) session(cus *object, mode string, amount int, currency string) *object {
	cs := w.make("checkout_session", "cs_test", "mode", mode, "amount_subtotal", amount, "amount_total", amount, "currency", currency,
		"expires_at", w.now+int(day/second))
	cs.set("url", "https://checkout.stripe.com/c/pay/"+cs.id())
	if cus != nil {
		cs.set("customer", cus.id(), "customer_creation", nil)
	}
	return cs
}

// complete ends a session as the buyer leaves it; the payment may still be
// under way (status "unpaid").
func complete(cs *object, name, email, paymentStatus string) {
	address := newObject("city", nil, "country", "US", "line1", nil, "line2", nil, "postal_code", "00000", "state", nil)
	cs.set("status", "complete", "payment_status", paymentStatus, "url", nil, "customer_details",
		newObject("address", address, "email", email, "name", name, "phone", nil, "tax_exempt", "none", "tax_ids", []string{}))
}
