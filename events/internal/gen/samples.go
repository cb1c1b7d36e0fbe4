package main

import "fmt"

// sampleStart is 2026-09-22T09:20:00Z: near the fixed time of the sample invocations.
const sampleStart = 1790068800

// samples are one event a type. Each flow tells one everyday episode in a
// world of its own and records those types that no other flow records.
func samples() map[string]*object {
	flows := map[string]func(*world){
		"signup": sampleSignup, "renewal": sampleRenewal, "failed renewal": sampleFailedRenewal, "trial": sampleTrial,
		"lifecycle": sampleLifecycle, "pending update": samplePendingUpdate, "uncollected": sampleUncollected,
		"customer": sampleCustomer, "cards": sampleCards, "payments": samplePayments, "refunds": sampleRefunds,
		"dispute": sampleDispute, "checkout": sampleCheckout, "payouts": samplePayouts, "meter": sampleMeter,
	}
	byType := map[string]*object{}
	for name, flow := range flows {
		w := &world{now: sampleStart, mint: realistic("sample/" + name)}
		flow(w)
		for _, e := range w.events {
			typ := e.str("type")
			if byType[typ] != nil {
				panic(fmt.Sprintf("two samples of %s, one in %q", typ, name))
			}
			byType[typ] = e
		}
	}
	return byType
}

func sampleSignup(w *world) {
	w.request()
	cus := w.customer("Nora Quill", "nora.quill@example.com")
	w.emit("customer.created", cus)
	w.wait(40 * second)
	w.request()
	pm := w.card(cus)
	w.wait(5 * second)
	w.request()
	sub := w.subscribe(cus, pro, 2)
	sub.set("metadata", newObject("workspace", "ws_quill"))
	inv := w.invoice(cus, sub, "subscription_create", period(sub, pro))
	pi, pay := w.finalize(cus, inv)
	w.emit("customer.subscription.created", sub)
	w.emit("payment_intent.created", pi)
	w.wait(3 * second)
	ch := w.pay(inv, pi, pay, pm)
	w.emit("charge.succeeded", ch)
	w.emit("payment_intent.succeeded", pi)
	w.emit("invoice_payment.paid", pay)
	w.emit("invoice.paid", inv)
	w.wait(2 * second)
	sum := w.summary(cus)
	w.grant(sum, reports)
	w.changeBy("entitlements.active_entitlement_summary.updated", sum, func() { w.grant(sum, reports, exports, support) })
}

// subscribed is a customer with a paid subscription, without any event.
func subscribed(w *world, name, email string, p price) (cus, pm, sub *object) {
	cus = w.customer(name, email)
	pm = w.card(cus)
	sub = w.subscribe(cus, p, 1)
	inv := w.invoice(cus, sub, "subscription_create", period(sub, p))
	pi, pay := w.finalize(cus, inv)
	w.pay(inv, pi, pay, pm)
	sub.set("status", "active", "default_payment_method", pm.id())
	return cus, pm, sub
}

func sampleRenewal(w *world) {
	w.wait(-31 * day)
	cus, pm, sub := subscribed(w, "Otis Fennimore", "otis@fennimore.example.com", starter)
	w.toRenewal(sub)
	w.wait(-7 * day)
	w.unprompted()
	upcoming := w.invoice(cus, sub, "upcoming", period(sub, starter))
	upcoming.set("next_payment_attempt", w.now+int(7*day/second)).drop("id")
	w.emit("invoice.upcoming", upcoming)
	w.toRenewal(sub)
	var inv *object
	w.changeBy("customer.subscription.updated", sub, func() {
		w.renew(sub, starter)
		inv = w.invoice(cus, sub, "subscription_cycle", period(sub, starter))
	})
	inv.set("automatically_finalizes_at", w.now+3600, "next_payment_attempt", w.now+3600)
	w.emit("invoice.created", inv)
	w.wait(hour)
	var pi, pay *object
	w.changeBy("invoice.updated", inv, func() { pi, pay = w.finalize(cus, inv) })
	w.emit("invoice.finalized", inv)
	w.wait(2 * second)
	w.pay(inv, pi, pay, pm)
	w.emit("invoice.payment_succeeded", inv)
}

func sampleFailedRenewal(w *world) {
	w.wait(-31 * day)
	cus, pm, sub := subscribed(w, "Petra Holm", "petra.holm@example.com", pro)
	w.toRenewal(sub)
	w.wait(hour)
	w.unprompted()
	w.renew(sub, pro)
	inv := w.invoice(cus, sub, "subscription_cycle", period(sub, pro))
	pi, _ := w.finalize(cus, inv)
	w.wait(3 * second)
	ch := w.miss(inv, pi, pm, 3*day)
	w.emit("charge.failed", ch)
	w.emit("payment_intent.payment_failed", pi)
	w.emit("invoice.payment_failed", inv)
	w.wait(3 * day)
	w.challenge(pi, pm)
	inv.set("attempt_count", inv.num("attempt_count")+1)
	w.emit("payment_intent.requires_action", pi)
	w.emit("invoice.payment_action_required", inv)
}

func sampleTrial(w *world) {
	cus := w.customer("Quentin Abel", "quentin@example.org")
	pm := w.card(cus)
	sub := w.subscribe(cus, starter, 1)
	w.trial(sub, 14)
	sub.set("default_payment_method", pm.id())
	w.finalize(cus, w.invoice(cus, sub, "subscription_create",
		line{price: starter, quantity: 1, about: "Trial period for Lantern Starter", start: w.now, end: w.now + int(14*day/second)}))
	w.wait(11 * day)
	w.emit("customer.subscription.trial_will_end", sub)
}

func sampleLifecycle(w *world) {
	w.wait(-200 * day)
	cus, _, sub := subscribed(w, "Rosalind Egan", "r.egan@example.net", studio)
	sub.set("trial_settings.end_behavior.missing_payment_method", "pause")
	w.wait(170 * day)
	w.unprompted()
	sub.set("status", "paused")
	w.emit("customer.subscription.paused", sub)
	w.wait(20 * day)
	w.request()
	sub.set("status", "active", "billing_cycle_anchor", w.now)
	setPeriod(sub, w.now, studio.after(w.now))
	w.finalize(cus, w.invoice(cus, sub, "subscription_update", period(sub, studio)))
	w.emit("customer.subscription.resumed", sub)
	w.wait(10 * day)
	w.request()
	w.cancel(sub, "cancellation_requested")
	sub.set("cancellation_details.feedback", "unused", "cancellation_details.comment", "We only need it in winter.")
	w.emit("customer.subscription.deleted", sub)
}

func samplePendingUpdate(w *world) {
	w.wait(-12 * day)
	_, _, sub := subscribed(w, "Sibyl Marsh", "sibyl.marsh@example.com", starter)
	w.wait(12 * day)
	w.request()
	item := (*sub.slot("items.data.0")).(*object).clone().set("price", pro.object(), "plan", pro.plan())
	sub.set("pending_update", newObject("billing_cycle_anchor", nil, "expires_at", w.now+82800,
		"subscription_items", []*object{item}, "trial_end", nil, "trial_from_plan", nil))
	other := sub.clone()
	w.wait(50 * minute)
	w.request()
	setPrice(sub, pro, 1)
	sub.set("pending_update", nil)
	w.emit("customer.subscription.pending_update_applied", sub)
	w.wait(23*hour - 50*minute)
	w.unprompted()
	w.emit("customer.subscription.pending_update_expired", other)
}

func sampleUncollected(w *world) {
	w.wait(-40 * day)
	cus, _, sub := subscribed(w, "Tadeo Wray", "tadeo.wray@example.com", studio)
	sub.set("collection_method", "send_invoice", "days_until_due", 30)
	draft := func() *object {
		inv := w.invoice(cus, sub, "manual", period(sub, studio))
		return inv.set("collection_method", "send_invoice", "due_date", w.now+int(30*day/second), "auto_advance", false)
	}
	w.request()
	owed, mistaken := draft(), draft()
	w.finalize(cus, owed)
	w.wait(minute)
	w.emit("invoice.sent", owed)
	w.wait(5 * day)
	w.request()
	w.finalize(cus, mistaken)
	mistaken.set("status", "void", "status_transitions.voided_at", w.now)
	w.emit("invoice.voided", mistaken)
	w.wait(35 * day)
	w.request()
	owed.set("status", "uncollectible", "status_transitions.marked_uncollectible_at", w.now)
	w.emit("invoice.marked_uncollectible", owed)
	untaxed := draft()
	w.unprompted()
	untaxed.set("automatic_tax.enabled", true, "automatic_tax.status", "requires_location_inputs", "automatic_tax.provider", "stripe",
		"automatic_tax.liability", newObject("type", "self"),
		"last_finalization_error", newObject("code", "customer_tax_location_invalid",
			"doc_url", "https://stripe.com/docs/error-codes/customer-tax-location-invalid",
			"message", "The customer's location isn't recognized, so tax cannot be calculated.", "type", "invalid_request_error"))
	w.emit("invoice.finalization_failed", untaxed)
}

func sampleCustomer(w *world) {
	w.wait(-90 * day)
	cus := w.customer("Una Brandt", "una@example.com")
	w.wait(60 * day)
	w.request()
	w.change("customer.updated", cus, "email", "una.brandt@example.com", "name", "Una Brandt-Solis",
		"metadata", newObject("crm", "crm-20419"))
	w.wait(minute)
	w.request()
	tax := w.make("tax_id", "txi", "customer", cus.id(), "owner.customer", cus.id())
	w.emit("customer.tax_id.created", tax)
	w.wait(30 * day)
	w.request()
	w.emit("customer.deleted", cus)
}

func sampleCards(w *world) {
	w.wait(-20 * day)
	cus := w.customer("Viola Tamm", "viola.tamm@example.com")
	w.request()
	seti := w.make("setup_intent", "seti", "customer", cus.id())
	seti.set("client_secret", seti.id()+"_secret_"+base62(seti.id(), 25))
	w.wait(20 * second)
	pm := w.card(cus)
	seti.set("status", "succeeded", "payment_method", pm.id(), "latest_attempt", w.mint("setatt"))
	w.emit("payment_method.attached", pm)
	w.emit("setup_intent.succeeded", seti)
	w.wait(8 * day)
	w.request()
	w.change("payment_method.updated", pm, "billing_details.address.line1", "7 Sample Lane", "billing_details.address.city", "Exampleton")
	w.wait(9 * day)
	w.unprompted()
	w.change("payment_method.automatically_updated", pm, "card.exp_year", 2031, "card.last4", "1881")
	w.wait(3 * day)
	w.request()
	w.change("payment_method.detached", pm, "customer", nil)
}

func samplePayments(w *world) {
	cus := w.customer("Wendell Iris", "wendell@iris.example.com")
	pm := w.card(cus)
	w.request()
	late := w.intent(cus, 32050, "usd")
	late.set("payment_method_types", []string{"us_bank_account"}, "payment_method_options",
		newObject("us_bank_account", newObject("verification_method", "automatic")),
		"payment_method", w.mint("pm"), "status", "processing", "description", "Order 5512")
	w.emit("payment_intent.processing", late)
	w.wait(minute)
	w.request()
	given := w.intent(cus, 7400, "usd")
	w.wait(2 * hour)
	w.request()
	given.set("status", "canceled", "canceled_at", w.now, "cancellation_reason", "abandoned")
	w.emit("payment_intent.canceled", given)
	w.wait(minute)
	w.request()
	held := w.intent(cus, 12800, "usd")
	held.set("description", "Order 5513", "metadata", newObject("order", "5513"))
	ch := w.hold(held, pm)
	w.wait(day)
	w.request()
	w.capture(held, ch)
	w.emit("charge.captured", ch)
	w.wait(3 * second)
	w.unprompted()
	w.change("charge.updated", ch, "receipt_email", "wendell@iris.example.com", "receipt_number", "2291-4407")
}

func sampleRefunds(w *world) {
	w.wait(-6 * day)
	cus := w.customer("Xenia Vogt", "xenia.vogt@example.com")
	pi := w.intent(cus, 5600, "eur")
	ch := w.succeed(pi, w.card(cus))
	w.wait(3 * day)
	w.request()
	var re *object
	w.changeBy("charge.refunded", ch, func() { re = w.giveBack(ch, 2000, "requested_by_customer") })
	w.emit("refund.created", re)
	w.wait(6 * hour)
	w.unprompted()
	w.change("refund.updated", re, "destination_details.card", newObject("reference", "74820026265000103", "reference_status", "available",
		"reference_type", "acquirer_reference_number", "type", "refund"))
	w.wait(2 * day)
	re.set("status", "failed")
	re.add("failure_reason", "lost_or_stolen_card").add("failure_balance_transaction", w.mint("txn"))
	w.emit("refund.failed", re)
}

func sampleDispute(w *world) {
	w.wait(-35 * day)
	cus := w.customer("Yorick Lane", "yorick.lane@example.com")
	ch := w.succeed(w.intent(cus, 8900, "usd"), w.card(cus))
	w.wait(20 * day)
	w.unprompted()
	du := w.dispute(ch)
	w.emit("charge.dispute.created", du)
	w.book(du, -1)
	w.emit("charge.dispute.funds_withdrawn", du)
	w.wait(4 * day)
	w.request()
	w.change("charge.dispute.updated", du, "status", "under_review", "evidence.access_activity_log", "3 sign-ins after delivery (invented)",
		"evidence.service_date", "2026-08-19", "evidence_details.has_evidence", true, "evidence_details.submission_count", 1)
	w.wait(11 * day)
	w.unprompted()
	du.set("status", "won")
	w.emit("charge.dispute.closed", du)
	w.book(du, +1)
	w.emit("charge.dispute.funds_reinstated", du)
}

func sampleCheckout(w *world) {
	w.wait(-3 * day)
	w.request()
	left := w.session(nil, "payment", 2600, "usd")
	w.wait(5 * minute)
	cus := w.customer("Zelda Orme", "zelda.orme@example.com")
	pm := w.card(cus)
	w.request()
	sub := w.subscribe(cus, pro, 1)
	inv := w.invoice(cus, sub, "subscription_create", period(sub, pro))
	pi, pay := w.finalize(cus, inv)
	w.pay(inv, pi, pay, pm)
	bought := w.session(cus, "subscription", 4900, "usd")
	bought.set("subscription", sub.id(), "invoice", inv.id(), "client_reference_id", "signup-88213")
	complete(bought, "Zelda Orme", "zelda.orme@example.com", "paid")
	w.emit("checkout.session.completed", bought)

	async := func(reference string) *object {
		cs := w.session(cus, "payment", 15900, "usd")
		cs.set("payment_method_types", []string{"us_bank_account"}, "payment_method_options",
			newObject("us_bank_account", newObject("verification_method", "automatic")),
			"payment_intent", w.intent(cus, 15900, "usd").id(), "client_reference_id", reference)
		complete(cs, "Zelda Orme", "zelda.orme@example.com", "unpaid")
		return cs
	}
	good, bad := async("order-5520"), async("order-5521")
	w.wait(day)
	w.unprompted()
	left.set("status", "expired", "url", nil)
	w.emit("checkout.session.expired", left)
	w.wait(day)
	good.set("payment_status", "paid")
	w.emit("checkout.session.async_payment_succeeded", good)
	w.wait(20 * minute)
	w.emit("checkout.session.async_payment_failed", bad)
}

func samplePayouts(w *world) {
	payout := func(amount int) *object {
		return w.make("payout", "po", "amount", amount, "arrival_date", w.now+int(2*day/second), "balance_transaction", w.mint("txn"),
			"destination", w.mint("ba"))
	}
	w.unprompted()
	good, bad := payout(184220), payout(96015)
	w.wait(2 * day)
	good.set("status", "paid", "trace_id", newObject("status", "supported", "value", "091000019283746"))
	w.emit("payout.paid", good)
	w.wait(day)
	bad.set("status", "failed", "failure_code", "account_closed", "failure_message", "The bank account has been closed.",
		"failure_balance_transaction", w.mint("txn"), "trace_id", newObject("status", "unsupported", "value", nil))
	w.emit("payout.failed", bad)
}

// sampleMeter is a thin notification: it names its object and holds no state.
func sampleMeter(w *world) {
	meter := w.mint("mtr_test")
	w.events = append(w.events, shape("thin_event").set("id", w.mint("evt_test"), "type", "v1.billing.meter.error_report_triggered",
		"created", "2026-09-22T09:20:00.412Z", "related_object.id", meter, "related_object.type", "billing.meter",
		"related_object.url", "/v1/billing/meters/"+meter))
}
