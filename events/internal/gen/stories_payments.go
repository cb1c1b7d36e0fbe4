package main

var renewal = story{
	name: "renewal", tag: "Renew",
	title: "A subscription renews and the card pays",
	play: func(w *world) {
		cus, pm, sub := subscribed(w, "Cyril Novak", "cyril.novak@example.com", starter)
		w.toRenewal(sub)
		var inv *object
		w.changeBy("customer.subscription.updated", sub, func() {
			w.renew(sub, starter)
			inv = w.invoice(cus, sub, "subscription_cycle", period(sub, starter))
		})
		w.emit("invoice.created", inv)
		w.wait(hour)
		pi, pay := w.finalize(cus, inv)
		w.emit("invoice.finalized", inv)
		w.wait(2 * second)
		w.pay(inv, pi, pay, pm)
		w.emit("payment_intent.succeeded", pi)
		w.emit("invoice_payment.paid", pay)
		w.emit("invoice.paid", inv)
		w.emit("invoice.payment_succeeded", inv)
	},
	final: `{
		"customers": {},
		"subscriptions": {"sub_1Renew0000000001": {"id": "sub_1Renew0000000001", "customer": "cus_1Renew0000000001", "status": "active",
			"cancel_at_period_end": false, "current_period_end": 1793523600, "ended_at": null, "pause_collection": null,
			"items": {"si_1Renew0000000001": {"price": "price_1SA0qkBxlTnrVo4wStarter1", "quantity": 1, "current_period_end": 1793523600}}}},
		"invoices": {"in_1Renew0000000002": {"id": "in_1Renew0000000002", "customer": "cus_1Renew0000000001", "subscription": "sub_1Renew0000000001",
			"status": "paid", "currency": "usd", "total": 1900, "amount_due": 1900, "amount_paid": 1900, "line_count": 1, "lines_complete": true}},
		"payments": {"pi_1Renew0000000002": {"id": "pi_1Renew0000000002", "customer": "cus_1Renew0000000001", "invoice": "in_1Renew0000000002",
			"status": "succeeded", "currency": "usd", "amount": 1900, "amount_received": 1900, "amount_refunded": 0, "refunded": false}},
		"entitlements": {}
	}`,
}

var paymentRecovered = story{
	name: "payment-recovered", tag: "Recover",
	title: "A renewal's payment fails and the second attempt, three days later, succeeds",
	play: func(w *world) {
		cus, pm, sub := subscribed(w, "Dilys Hart", "dilys.hart@example.com", pro)
		w.toRenewal(sub)
		var inv *object
		w.changeBy("customer.subscription.updated", sub, func() {
			w.renew(sub, pro)
			inv = w.invoice(cus, sub, "subscription_cycle", period(sub, pro))
		})
		w.emit("invoice.created", inv)
		w.wait(hour)
		pi, pay := w.finalize(cus, inv)
		w.wait(3 * second)
		w.miss(inv, pi, pm, 3*day)
		w.emit("payment_intent.payment_failed", pi)
		w.emit("invoice.payment_failed", inv)
		w.change("customer.subscription.updated", sub, "status", "past_due")
		w.wait(3 * day)
		w.pay(inv, pi, pay, pm)
		w.emit("payment_intent.succeeded", pi)
		w.emit("invoice_payment.paid", pay)
		w.emit("invoice.paid", inv)
		w.change("customer.subscription.updated", sub, "status", "active")
	},
	final: `{
		"customers": {},
		"subscriptions": {"sub_1Recover00000001": {"id": "sub_1Recover00000001", "customer": "cus_1Recover00000001", "status": "active",
			"cancel_at_period_end": false, "current_period_end": 1793523600, "ended_at": null, "pause_collection": null,
			"items": {"si_1Recover00000001": {"price": "price_1SA0rVBxlTnrVo4wProPlan1", "quantity": 1, "current_period_end": 1793523600}}}},
		"invoices": {"in_1Recover00000002": {"id": "in_1Recover00000002", "customer": "cus_1Recover00000001", "subscription": "sub_1Recover00000001",
			"status": "paid", "currency": "usd", "total": 4900, "amount_due": 4900, "amount_paid": 4900, "line_count": 1, "lines_complete": true}},
		"payments": {"pi_1Recover00000002": {"id": "pi_1Recover00000002", "customer": "cus_1Recover00000001", "invoice": "in_1Recover00000002",
			"status": "succeeded", "currency": "usd", "amount": 4900, "amount_received": 4900, "amount_refunded": 0, "refunded": false}},
		"entitlements": {}
	}`,
}

var dunning = story{
	name: "dunning", tag: "Dunning",
	title: "All attempts to collect a renewal fail, the subscription is cancelled and the access ends",
	play: func(w *world) {
		cus, pm, sub := subscribed(w, "Gwen Tarrant", "gwen.tarrant@example.com", pro)
		sum := w.summary(cus)
		w.grant(sum, reports, exports)
		w.toRenewal(sub)
		var inv *object
		w.changeBy("customer.subscription.updated", sub, func() {
			w.renew(sub, pro)
			inv = w.invoice(cus, sub, "subscription_cycle", period(sub, pro))
		})
		w.wait(hour)
		pi, _ := w.finalize(cus, inv)
		w.emit("invoice.finalized", inv)
		w.wait(3 * second)
		w.miss(inv, pi, pm, 3*day)
		w.emit("invoice.payment_failed", inv)
		w.change("customer.subscription.updated", sub, "status", "past_due")
		w.change("customer.updated", cus, "delinquent", true)
		w.wait(3 * day)
		w.miss(inv, pi, pm, 5*day)
		w.emit("invoice.payment_failed", inv)
		w.wait(5 * day)
		w.miss(inv, pi, pm, 0)
		w.emit("payment_intent.payment_failed", pi)
		w.emit("invoice.payment_failed", inv)
		w.cancel(sub, "payment_failed")
		w.emit("customer.subscription.deleted", sub)
		w.wait(second)
		w.changeBy("entitlements.active_entitlement_summary.updated", sum, func() { w.grant(sum) })
		w.wait(2 * day)
		w.request()
		inv.set("auto_advance", false, "status", "uncollectible", "status_transitions.marked_uncollectible_at", w.now)
		w.emit("invoice.marked_uncollectible", inv)
	},
	final: `{
		"customers": {"cus_1Dunning00000001": {"id": "cus_1Dunning00000001", "email": "gwen.tarrant@example.com", "name": "Gwen Tarrant",
			"deleted": false, "livemode": false}},
		"subscriptions": {"sub_1Dunning00000001": {"id": "sub_1Dunning00000001", "customer": "cus_1Dunning00000001", "status": "canceled",
			"cancel_at_period_end": false, "current_period_end": 1793523600, "ended_at": 1791540003, "pause_collection": null,
			"items": {"si_1Dunning00000001": {"price": "price_1SA0rVBxlTnrVo4wProPlan1", "quantity": 1, "current_period_end": 1793523600}}}},
		"invoices": {"in_1Dunning00000002": {"id": "in_1Dunning00000002", "customer": "cus_1Dunning00000001", "subscription": "sub_1Dunning00000001",
			"status": "uncollectible", "currency": "usd", "total": 4900, "amount_due": 4900, "amount_paid": 0, "line_count": 1, "lines_complete": true}},
		"payments": {"pi_1Dunning00000002": {"id": "pi_1Dunning00000002", "customer": "cus_1Dunning00000001",
			"status": "requires_payment_method", "currency": "usd", "amount": 4900, "amount_received": 0, "amount_refunded": 0, "refunded": false}},
		"entitlements": {"cus_1Dunning00000001": []}
	}`,
}

var refundParts = story{
	name: "refund-parts", tag: "Refund",
	title: "A payment is given back in three parts, the last two within one second",
	play: func(w *world) {
		cus := w.customer("Hollis Ward", "hollis.ward@example.com")
		pm := w.card(cus)
		w.request()
		pi := w.intent(cus, 12000, "usd")
		w.wait(2 * second)
		ch := w.succeed(pi, pm)
		w.emit("charge.succeeded", ch)
		w.emit("payment_intent.succeeded", pi)
		refund := func(amount int) {
			w.request()
			var re *object
			w.changeBy("charge.refunded", ch, func() { re = w.giveBack(ch, amount, "requested_by_customer") })
			w.emit("refund.created", re)
		}
		w.wait(4 * day)
		refund(3000)
		w.wait(6 * day)
		refund(4500)
		refund(4500)
	},
	final: `{
		"customers": {},
		"subscriptions": {},
		"invoices": {},
		"payments": {"pi_1Refund000000001": {"id": "pi_1Refund000000001", "customer": "cus_1Refund000000001", "invoice": null,
			"status": "succeeded", "currency": "usd", "amount": 12000, "amount_received": 12000, "amount_refunded": 12000, "refunded": true}},
		"entitlements": {}
	}`,
}

var disputeLost = story{
	name: "dispute-lost", tag: "Dispute",
	title: "A cardholder disputes a payment, evidence is handed in, and the dispute is lost",
	play: func(w *world) {
		cus := w.customer("Jonas Pell", "jonas.pell@example.com")
		pm := w.card(cus)
		w.request()
		pi := w.intent(cus, 8900, "eur")
		w.wait(2 * second)
		ch := w.succeed(pi, pm)
		w.emit("charge.succeeded", ch)
		w.emit("payment_intent.succeeded", pi)
		w.unprompted()
		w.wait(18 * day)
		du := w.dispute(ch)
		w.emit("charge.dispute.created", du)
		w.book(du, -1)
		w.emit("charge.dispute.funds_withdrawn", du)
		w.wait(3 * day)
		w.request()
		w.change("charge.dispute.updated", du, "status", "under_review", "evidence.product_description", "Access to a workspace for one year",
			"evidence_details.has_evidence", true, "evidence_details.submission_count", 1)
		w.unprompted()
		w.wait(40 * day)
		du.set("status", "lost")
		w.emit("charge.dispute.closed", du)
	},
	final: `{
		"customers": {},
		"subscriptions": {},
		"invoices": {},
		"payments": {"pi_1Dispute00000001": {"id": "pi_1Dispute00000001", "customer": "cus_1Dispute00000001", "invoice": null,
			"status": "succeeded", "currency": "eur", "amount": 8900, "amount_received": 8900, "amount_refunded": 0, "refunded": false}},
		"entitlements": {}
	}`,
}

var guestCheckout = story{
	name: "guest-checkout", tag: "Guest",
	title: "Somebody pays by a checkout session without becoming a customer",
	play: func(w *world) {
		w.request()
		cs := w.session(nil, "payment", 2600, "usd")
		cs.set("customer_creation", "if_required", "client_reference_id", "order-7001")
		w.wait(3 * minute)
		pi := w.intent(nil, 2600, "usd")
		pm := w.make("payment_method", "pm", "billing_details.email", "guest@example.com", "billing_details.name", "Kit Sorrel")
		w.emit("payment_intent.created", pi)
		w.wait(second)
		ch := w.succeed(pi, pm)
		w.emit("charge.succeeded", ch)
		w.emit("payment_intent.succeeded", pi)
		complete(cs, "Kit Sorrel", "guest@example.com", "paid")
		cs.set("payment_intent", pi.id())
		w.unprompted()
		w.emit("checkout.session.completed", cs)
	},
	final: `{
		"customers": {},
		"subscriptions": {},
		"invoices": {},
		"payments": {"pi_1Guest0000000001": {"id": "pi_1Guest0000000001", "customer": null, "invoice": null, "status": "succeeded",
			"currency": "usd", "amount": 2600, "amount_received": 2600, "amount_refunded": 0, "refunded": false}},
		"entitlements": {}
	}`,
}

var checkoutDelayed = story{
	name: "checkout-delayed", tag: "Delayed",
	title: "A session is completed with a bank debit, which is paid three days later",
	play: func(w *world) {
		w.request()
		cus := w.customer("Lior Kestrel", "lior.kestrel@example.com")
		cs := w.session(cus, "payment", 15900, "usd")
		cs.set("payment_method_types", []string{"us_bank_account"}, "payment_method_options",
			newObject("us_bank_account", newObject("verification_method", "automatic")))
		w.wait(4 * minute)
		w.request()
		pm := w.bankAccount(cus)
		pi := w.intent(cus, 15900, "usd")
		pi.set("status", "processing", "payment_method", pm.id(), "payment_method_types", []string{"us_bank_account"},
			"payment_method_options", newObject("us_bank_account", newObject("verification_method", "automatic")))
		w.emit("customer.created", cus)
		w.emit("payment_intent.processing", pi)
		complete(cs, "Lior Kestrel", "lior.kestrel@example.com", "unpaid")
		cs.set("payment_intent", pi.id())
		w.emit("checkout.session.completed", cs)
		w.unprompted()
		w.wait(3 * day)
		ch := w.succeed(pi, pm)
		w.emit("charge.succeeded", ch)
		w.emit("payment_intent.succeeded", pi)
		w.wait(second)
		cs.set("payment_status", "paid")
		w.emit("checkout.session.async_payment_succeeded", cs)
	},
	final: `{
		"customers": {"cus_1Delayed00000001": {"id": "cus_1Delayed00000001", "email": "lior.kestrel@example.com", "name": "Lior Kestrel",
			"deleted": false, "livemode": false}},
		"subscriptions": {},
		"invoices": {},
		"payments": {"pi_1Delayed00000001": {"id": "pi_1Delayed00000001", "customer": "cus_1Delayed00000001", "invoice": null,
			"status": "succeeded", "currency": "usd", "amount": 15900, "amount_received": 15900, "amount_refunded": 0, "refunded": false}},
		"entitlements": {}
	}`,
}
