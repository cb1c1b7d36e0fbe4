package main

var signupTrial = story{
	name: "signup-trial", tag: "Trial",
	title: "A customer signs up for a trial of fourteen days and is charged when it ends",
	play: func(w *world) {
		w.request()
		cus := w.customer("Ada Fairbairn", "ada.fairbairn@example.com")
		w.emit("customer.created", cus)
		w.wait(90 * second)
		w.request()
		pm := w.card(cus)
		sub := w.subscribe(cus, pro, 1)
		w.trial(sub, 14)
		sub.set("default_payment_method", pm.id())
		free := w.invoice(cus, sub, "subscription_create", line{price: pro, quantity: 1, about: "Trial period for Lantern Pro",
			start: w.now, end: sub.num("trial_end")})
		w.finalize(cus, free)
		w.emit("customer.subscription.created", sub)
		w.emit("invoice.paid", free)
		w.wait(second)
		sum := w.summary(cus)
		w.changeBy("entitlements.active_entitlement_summary.updated", sum, func() { w.grant(sum, reports, exports) })
		w.unprompted()
		w.wait(11*day - second)
		w.emit("customer.subscription.trial_will_end", sub)
		w.toRenewal(sub)
		var inv *object
		w.changeBy("customer.subscription.updated", sub, func() {
			w.renew(sub, pro)
			sub.set("status", "active")
			inv = w.invoice(cus, sub, "subscription_cycle", period(sub, pro))
		})
		w.emit("invoice.created", inv)
		w.wait(hour)
		pi, pay := w.finalize(cus, inv)
		w.wait(4 * second)
		w.pay(inv, pi, pay, pm)
		w.emit("payment_intent.succeeded", pi)
		w.emit("invoice_payment.paid", pay)
		w.emit("invoice.paid", inv)
	},
	final: `{
		"customers": {"cus_1Trial0000000001": {"id": "cus_1Trial0000000001", "email": "ada.fairbairn@example.com", "name": "Ada Fairbairn",
			"deleted": false, "livemode": false}},
		"subscriptions": {"sub_1Trial0000000001": {"id": "sub_1Trial0000000001", "customer": "cus_1Trial0000000001", "status": "active",
			"cancel_at_period_end": false, "current_period_end": 1792054890, "ended_at": null, "pause_collection": null,
			"items": {"si_1Trial0000000001": {"price": "price_1SA0rVBxlTnrVo4wProPlan1", "quantity": 1, "current_period_end": 1792054890}}}},
		"invoices": {
			"in_1Trial0000000001": {"id": "in_1Trial0000000001", "customer": "cus_1Trial0000000001", "subscription": "sub_1Trial0000000001",
				"status": "paid", "currency": "usd", "total": 0, "amount_due": 0, "amount_paid": 0, "line_count": 1, "lines_complete": true},
			"in_1Trial0000000002": {"id": "in_1Trial0000000002", "customer": "cus_1Trial0000000001", "subscription": "sub_1Trial0000000001",
				"status": "paid", "currency": "usd", "total": 4900, "amount_due": 4900, "amount_paid": 4900, "line_count": 1, "lines_complete": true}},
		"payments": {"pi_1Trial0000000001": {"id": "pi_1Trial0000000001", "customer": "cus_1Trial0000000001", "invoice": "in_1Trial0000000002",
			"status": "succeeded", "currency": "usd", "amount": 4900, "amount_received": 4900, "amount_refunded": 0, "refunded": false}},
		"entitlements": {"cus_1Trial0000000001": ["exports", "reports"]}
	}`,
}

var trialPaused = story{
	name: "trial-paused", tag: "Pause",
	title: "A trial without a card pauses when it ends; the customer adds a card and resumes",
	play: func(w *world) {
		w.request()
		cus := w.customer("Bo Ingram", "bo.ingram@example.org")
		sub := w.subscribe(cus, starter, 1)
		w.trial(sub, 7)
		sub.set("trial_settings.end_behavior.missing_payment_method", "pause")
		w.finalize(cus, w.invoice(cus, sub, "subscription_create", line{price: starter, quantity: 1,
			about: "Trial period for Lantern Starter", start: w.now, end: sub.num("trial_end")}))
		w.emit("customer.subscription.created", sub)
		w.unprompted()
		w.toRenewal(sub)
		w.change("customer.subscription.updated", sub, "status", "paused")
		w.emit("customer.subscription.paused", sub)
		w.wait(2*day + 3*hour)
		w.request()
		pm := w.card(cus)
		w.emit("payment_method.attached", pm)
		w.wait(40 * second)
		w.request()
		var inv *object
		w.changeBy("customer.subscription.updated", sub, func() {
			setPeriod(sub, w.now, starter.after(w.now))
			sub.set("status", "active", "billing_cycle_anchor", w.now, "default_payment_method", pm.id())
			inv = w.invoice(cus, sub, "subscription_update", period(sub, starter))
		})
		w.emit("customer.subscription.resumed", sub)
		pi, pay := w.finalize(cus, inv)
		w.wait(3 * second)
		w.pay(inv, pi, pay, pm)
		w.emit("invoice.paid", inv)
	},
	final: `{
		"customers": {},
		"subscriptions": {"sub_1Pause0000000001": {"id": "sub_1Pause0000000001", "customer": "cus_1Pause0000000001", "status": "active",
			"cancel_at_period_end": false, "current_period_end": 1791633640, "ended_at": null, "pause_collection": null,
			"items": {"si_1Pause0000000001": {"price": "price_1SA0qkBxlTnrVo4wStarter1", "quantity": 1, "current_period_end": 1791633640}}}},
		"invoices": {"in_1Pause0000000002": {"id": "in_1Pause0000000002", "customer": "cus_1Pause0000000001",
			"subscription": "sub_1Pause0000000001", "status": "paid", "currency": "usd", "total": 1900, "amount_due": 1900, "amount_paid": 1900,
			"line_count": 1, "lines_complete": true}},
		"payments": {},
		"entitlements": {}
	}`,
}

var upgradeProration = story{
	name: "upgrade-proration", tag: "Upgrade",
	title: "A customer moves to the larger plan halfway through the month and pays the difference at once",
	play: func(w *world) {
		cus, pm, sub := subscribed(w, "Edda Lindqvist", "edda@lindqvist.example.com", starter)
		sum := w.summary(cus)
		w.grant(sum, reports)
		w.wait(15 * day)
		w.request()
		var inv *object
		w.changeBy("customer.subscription.updated", sub, func() {
			end := sub.num("items.data.0.current_period_end")
			setPrice(sub, pro, 1)
			inv = w.invoice(cus, sub, "subscription_update",
				line{price: starter, quantity: 1, amount: -950, about: "Unused time on Lantern Starter after 16 Sep 2026", start: w.now, end: end, proration: true},
				line{price: pro, quantity: 1, amount: 2450, about: "Remaining time on Lantern Pro after 16 Sep 2026", start: w.now, end: end, proration: true})
		})
		w.emit("invoice.created", inv)
		pi, pay := w.finalize(cus, inv)
		w.emit("invoice.finalized", inv)
		w.wait(2 * second)
		w.pay(inv, pi, pay, pm)
		w.emit("payment_intent.succeeded", pi)
		w.emit("invoice_payment.paid", pay)
		w.emit("invoice.paid", inv)
		w.wait(second)
		w.changeBy("entitlements.active_entitlement_summary.updated", sum, func() { w.grant(sum, reports, exports, support) })
	},
	final: `{
		"customers": {},
		"subscriptions": {"sub_1Upgrade00000001": {"id": "sub_1Upgrade00000001", "customer": "cus_1Upgrade00000001", "status": "active",
			"cancel_at_period_end": false, "current_period_end": 1790845200, "ended_at": null, "pause_collection": null,
			"items": {"si_1Upgrade00000001": {"price": "price_1SA0rVBxlTnrVo4wProPlan1", "quantity": 1, "current_period_end": 1790845200}}}},
		"invoices": {"in_1Upgrade00000002": {"id": "in_1Upgrade00000002", "customer": "cus_1Upgrade00000001",
			"subscription": "sub_1Upgrade00000001", "status": "paid", "currency": "usd", "total": 1500, "amount_due": 1500, "amount_paid": 1500,
			"line_count": 2, "lines_complete": true}},
		"payments": {"pi_1Upgrade00000002": {"id": "pi_1Upgrade00000002", "customer": "cus_1Upgrade00000001", "invoice": "in_1Upgrade00000002",
			"status": "succeeded", "currency": "usd", "amount": 1500, "amount_received": 1500, "amount_refunded": 0, "refunded": false}},
		"entitlements": {"cus_1Upgrade00000001": ["exports", "priority_support", "reports"]}
	}`,
}

var pauseResume = story{
	name: "pause-resume", tag: "Hold",
	title: "Collection is paused over a renewal, whose invoice is voided, and taken up again",
	play: func(w *world) {
		cus, _, sub := subscribed(w, "Faro Medina", "faro.medina@example.net", pro)
		w.wait(20 * day)
		w.request()
		w.change("customer.subscription.updated", sub, "pause_collection", newObject("behavior", "void", "resumes_at", nil))
		w.unprompted()
		w.toRenewal(sub)
		var inv *object
		w.changeBy("customer.subscription.updated", sub, func() {
			w.renew(sub, pro)
			inv = w.invoice(cus, sub, "subscription_cycle", period(sub, pro))
		})
		w.emit("invoice.created", inv)
		inv.set("auto_advance", false, "status", "void", "status_transitions.voided_at", w.now)
		w.emit("invoice.voided", inv)
		w.wait(9 * day)
		w.request()
		w.change("customer.subscription.updated", sub, "pause_collection", nil)
		w.change("customer.subscription.updated", sub, "metadata", newObject("resumed_by", "support"))
	},
	final: `{
		"customers": {},
		"subscriptions": {"sub_1Hold00000000001": {"id": "sub_1Hold00000000001", "customer": "cus_1Hold00000000001", "status": "active",
			"cancel_at_period_end": false, "current_period_end": 1793523600, "ended_at": null, "pause_collection": null,
			"items": {"si_1Hold00000000001": {"price": "price_1SA0rVBxlTnrVo4wProPlan1", "quantity": 1, "current_period_end": 1793523600}}}},
		"invoices": {"in_1Hold00000000002": {"id": "in_1Hold00000000002", "customer": "cus_1Hold00000000001", "subscription": "sub_1Hold00000000001",
			"status": "void", "currency": "usd", "total": 4900, "amount_due": 4900, "amount_paid": 0, "line_count": 1, "lines_complete": true}},
		"payments": {},
		"entitlements": {}
	}`,
}

var resubscribe = story{
	name: "resubscribe", tag: "Again",
	title: "A customer cancels at the end of the period, and subscribes anew ten days later with another plan",
	play: func(w *world) {
		cus, pm, first := subscribed(w, "Ines Okafor", "ines.okafor@example.com", pro)
		sum := w.summary(cus)
		w.grant(sum, reports, exports)
		w.wait(12 * day)
		w.request()
		w.change("customer.subscription.updated", first, "cancel_at_period_end", true, "canceled_at", w.now,
			"cancel_at", first.num("items.data.0.current_period_end"), "cancellation_details.reason", "cancellation_requested",
			"cancellation_details.feedback", "too_expensive")
		w.unprompted()
		w.toRenewal(first)
		first.set("status", "canceled", "ended_at", w.now)
		w.emit("customer.subscription.deleted", first)
		w.changeBy("entitlements.active_entitlement_summary.updated", sum, func() { w.grant(sum) })
		w.wait(10 * day)
		w.request()
		anew := w.subscribe(cus, starter, 1)
		inv := w.invoice(cus, anew, "subscription_create", period(anew, starter))
		pi, pay := w.finalize(cus, inv)
		w.emit("customer.subscription.created", anew)
		w.wait(3 * second)
		w.pay(inv, pi, pay, pm)
		w.change("customer.subscription.updated", anew, "status", "active", "default_payment_method", pm.id())
		w.emit("invoice.paid", inv)
		w.changeBy("entitlements.active_entitlement_summary.updated", sum, func() { w.grant(sum, reports) })
	},
	final: `{
		"customers": {},
		"subscriptions": {
			"sub_1Again0000000001": {"id": "sub_1Again0000000001", "customer": "cus_1Again0000000001", "status": "canceled",
				"cancel_at_period_end": true, "current_period_end": 1790845200, "ended_at": 1790845200, "pause_collection": null,
				"items": {"si_1Again0000000001": {"price": "price_1SA0rVBxlTnrVo4wProPlan1", "quantity": 1, "current_period_end": 1790845200}}},
			"sub_1Again0000000002": {"id": "sub_1Again0000000002", "customer": "cus_1Again0000000001", "status": "active",
				"cancel_at_period_end": false, "current_period_end": 1794387600, "ended_at": null, "pause_collection": null,
				"items": {"si_1Again0000000002": {"price": "price_1SA0qkBxlTnrVo4wStarter1", "quantity": 1, "current_period_end": 1794387600}}}},
		"invoices": {"in_1Again0000000002": {"id": "in_1Again0000000002", "customer": "cus_1Again0000000001", "subscription": "sub_1Again0000000002",
			"status": "paid", "currency": "usd", "total": 1900, "amount_due": 1900, "amount_paid": 1900, "line_count": 1, "lines_complete": true}},
		"payments": {},
		"entitlements": {"cus_1Again0000000001": ["reports"]}
	}`,
}
