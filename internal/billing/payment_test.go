package billing_test

import (
	"strings"
	"testing"
)

const (
	intentFailed   = `{"id":"pi_1","customer":"cus_1","status":"requires_payment_method","currency":"usd","amount":2000,"amount_received":0,"created":5,"last_payment_error":{"code":"card_declined","decline_code":"insufficient_funds"}}`
	intentPaid     = `{"id":"pi_1","customer":"cus_1","status":"succeeded","currency":"usd","amount":2000,"amount_received":2000,"created":5,"last_payment_error":null}`
	chargeOf       = `{"id":"ch_1","customer":{"id":"cus_1"},"payment_intent":"pi_1","status":"succeeded","currency":"usd","amount":2000,"amount_captured":2000,"captured":true,"created":6,`
	chargeFailed   = `{"id":"ch_0","customer":"cus_1","payment_intent":"pi_1","status":"failed","currency":"usd","amount":2000,"amount_refunded":0,"created":5,"failure_code":"card_declined"}`
	chargePaid     = chargeOf + `"amount_refunded":0,"refunded":false}`
	chargeRefunded = chargeOf + `"amount_refunded":1500,"refunded":false}`
)

func TestPaymentIsOneRowInAnyOrderOfItsObjects(t *testing.T) {
	t.Parallel()
	bodies := []string{
		body("evt_1", "charge.failed", 5, chargeFailed),
		body("evt_2", "payment_intent.payment_failed", 5, intentFailed),
		body("evt_3", "charge.succeeded", 6, chargePaid),
		body("evt_4", "payment_intent.succeeded", 6, intentPaid),
		body("evt_5", "invoice_payment.paid", 6, `{"id":"inpay_1","invoice":"in_1","payment":{"type":"payment_intent","payment_intent":"pi_1"},"status":"paid"}`),
	}
	inAllOrders(t, nil, bodies, func(w *world, _ []int) {
		w.wants("pi_1", `{"id":"pi_1","customer":"cus_1","invoice":"in_1","status":"succeeded","failure":null,"currency":"usd","amount":2000,
			"amount_received":2000,"amount_refunded":0,"refunded":false,"disputed":false,"charges":[{"id":"ch_0","status":"failed"},{"id":"ch_1","status":"succeeded"}]}`)
		w.wants("ch_1", `{"id":"pi_1"}`) // by its charge
		a, err := w.reader.Customer(t.Context(), "", "cus_1")
		if err != nil || len(a.Payments) != 1 {
			t.Errorf("the customer has %s, %v", show(a), err)
		}
	})
}

func TestFailureAndSuccessOfOneSecondEndInSuccess(t *testing.T) {
	t.Parallel()
	bodies := []string{
		body("evt_2", "payment_intent.payment_failed", 6, intentFailed),
		body("evt_1", "payment_intent.succeeded", 6, intentPaid),
	}
	inAllOrders(t, nil, bodies, func(w *world, _ []int) {
		w.wants("pi_1", `{"status":"succeeded","amount_received":2000,"order_unsure":null}`)
	})
}

func TestChargesAloneSayThatThePaymentSucceeded(t *testing.T) {
	t.Parallel()
	const failed = `{"id":"ch_9","customer":"cus_1","payment_intent":"pi_1","status":"failed","currency":"usd","amount":2000,"created":6,"failure_code":"card_declined"}`
	bodies := []string{body("evt_1", "charge.failed", 6, failed), body("evt_2", "charge.succeeded", 6, chargePaid)}
	inAllOrders(t, nil, bodies, func(w *world, _ []int) {
		w.wants("pi_1", `{"status":"succeeded","failure":null,"customer":"cus_1","amount":2000,"amount_received":2000}`)
	})
}

func TestStateWithNoWayBackIsLastInItsSecond(t *testing.T) {
	t.Parallel()
	pending := strings.Replace(chargePaid, `"succeeded"`, `"pending"`, 1)
	for name, c := range map[string]struct {
		bodies []string
		want   string
	}{
		"a charge that was pending": {[]string{body("evt_2", "charge.updated", 6, pending), body("evt_1", "charge.succeeded", 6, chargePaid)},
			`{"charges":[{"status":"succeeded"}]}`},
		"a charge that changed": {[]string{body("evt_2", "charge.succeeded", 6, chargePaid), body("evt_1", "charge.updated", 6, chargeRefunded)},
			`{"amount_refunded":1500}`},
		"a refund that failed": {[]string{
			body("evt_3", "refund.created", 6, `{"id":"re_1","payment_intent":"pi_1","status":"pending","amount":5}`),
			body("evt_2", "refund.updated", 6, `{"id":"re_1","payment_intent":"pi_1","status":"succeeded","amount":5}`),
			body("evt_1", "refund.failed", 6, `{"id":"re_1","payment_intent":"pi_1","status":"failed","amount":5}`),
		}, `{"refunds":[{"status":"failed"}]}`},
		"a dispute that closed": {[]string{
			body("evt_3", "charge.dispute.created", 6, `{"id":"du_1","payment_intent":"pi_1","status":"needs_response"}`),
			body("evt_2", "charge.dispute.updated", 6, `{"id":"du_1","payment_intent":"pi_1","status":"under_review"}`),
			body("evt_1", "charge.dispute.closed", 6, `{"id":"du_1","payment_intent":"pi_1","status":"lost"}`),
		}, `{"disputes":[{"status":"lost"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inAllOrders(t, nil, c.bodies, func(w *world, _ []int) {
				w.wants("pi_1", c.want)
				w.wants("pi_1", `{"order_unsure":null}`)
			})
		})
	}
}

func TestRefundTotalIsTheChargesOwn(t *testing.T) {
	t.Parallel()
	bodies := []string{
		changed("evt_1", "charge.refunded", 10, chargeOf+`"amount_refunded":1000,"refunded":false}`, `{"amount_refunded":0}`),
		changed("evt_2", "charge.refunded", 20, chargeRefunded, `{"amount_refunded":1000}`),
		body("evt_3", "refund.created", 10, `{"id":"re_1","payment_intent":"pi_1","charge":"ch_1","amount":1000,"status":"succeeded","created":10}`),
		body("evt_4", "refund.created", 20, `{"id":"re_2","payment_intent":"pi_1","charge":"ch_1","amount":500,"status":"succeeded","created":20}`),
		changed("evt_2", "charge.refunded", 20, chargeRefunded, `{"amount_refunded":1000}`),
	}
	inAllOrders(t, nil, bodies, func(w *world, _ []int) {
		w.wants("pi_1", `{"amount":2000,"amount_received":2000,"amount_refunded":1500,"refunded":false,"refunds":[{"id":"re_1","amount":1000},{"id":"re_2","amount":500}]}`)
		w.wants("re_2", `{"id":"pi_1"}`)
	})
}

func TestRefundsAloneAreAddedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.send(body("evt_1", "payment_intent.succeeded", 5, intentPaid))
	w.send(body("evt_2", "refund.created", 10, `{"id":"re_1","payment_intent":"pi_1","amount":1500,"status":"pending"}`))
	w.send(body("evt_3", "refund.created", 11, `{"id":"re_2","payment_intent":"pi_1","amount":500,"status":"pending"}`))
	w.wants("pi_1", `{"amount_refunded":2000,"refunded":true}`)
	w.send(body("evt_4", "refund.failed", 12, `{"id":"re_2","payment_intent":"pi_1","amount":500,"status":"failed"}`))
	w.wants("pi_1", `{"amount_refunded":1500,"refunded":false}`)
}

func TestRefundThatFailedLaterIsTakenBack(t *testing.T) {
	t.Parallel()
	bodies := []string{
		changed("evt_1", "charge.refunded", 20, chargeOf+`"amount_refunded":2000,"refunded":true}`, `{"amount_refunded":1500}`),
		body("evt_2", "refund.created", 20, `{"id":"re_2","payment_intent":"pi_1","charge":"ch_1","amount":500,"status":"succeeded","created":20}`),
		body("evt_3", "refund.failed", 90, `{"id":"re_2","payment_intent":"pi_1","charge":"ch_1","amount":500,"status":"failed","created":20}`),
	}
	inAllOrders(t, nil, bodies, func(w *world, _ []int) {
		w.wants("pi_1", `{"amount_refunded":1500,"refunded":false,"refunds":[{"id":"re_2","status":"failed"}]}`)
	})
	// A snapshot of the charge that is as new as the failure has counted it already.
	inAllOrders(t, nil, append(bodies, body("evt_4", "charge.updated", 90, chargeRefunded)), func(w *world, _ []int) {
		w.wants("pi_1", `{"amount_refunded":1500,"refunded":false}`)
	})
}

func TestGuestsChargeWithoutIntentIsAPayment(t *testing.T) {
	t.Parallel()
	const charge = `{"id":"ch_1","customer":null,"payment_intent":null,"status":"succeeded","currency":"kwd","amount":5124,"amount_captured":5124,"captured":true,"disputed":true,`
	bodies := []string{
		body("evt_1", "charge.succeeded", 5, charge+`"amount_refunded":0}`),
		changed("evt_2", "charge.refunded", 9, charge+`"amount_refunded":124}`, `{"amount_refunded":0}`),
		body("evt_3", "refund.created", 9, `{"id":"re_1","payment_intent":null,"charge":"ch_1","amount":124,"status":"succeeded"}`),
		body("evt_4", "charge.dispute.created", 9, `{"id":"du_1","payment_intent":null,"charge":"ch_1","amount":5000,"status":"needs_response"}`),
	}
	inAllOrders(t, nil, bodies, func(w *world, _ []int) {
		w.wants("ch_1", `{"id":"ch_1","customer":null,"status":"succeeded","currency":"kwd","amount":5124,"amount_received":5124,"amount_refunded":124,"refunded":false,
			"disputed":true,"disputes":[{"id":"du_1","status":"needs_response"}]}`)
		w.wants("du_1", `{"id":"ch_1"}`)
	})
}

func TestChargeThatIsOnlyAuthorizedWasNotReceived(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.send(body("evt_1", "charge.succeeded", 5, `{"id":"ch_1","payment_intent":"pi_1","status":"succeeded","amount":2000,"amount_captured":0,"captured":false}`))
	w.wants("pi_1", `{"status":"succeeded","amount":2000,"amount_received":null}`)
	w.send(body("evt_2", "charge.captured", 6, `{"id":"ch_1","payment_intent":"pi_1","status":"succeeded","amount":2000,"amount_captured":1200,"captured":true}`))
	w.wants("pi_1", `{"amount_received":1200}`)
}

func TestInvoiceOfAPaymentIsFoundInBothShapes(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]string{
		"on the intent": body("evt_1", "payment_intent.succeeded", 5, `{"id":"pi_1","status":"succeeded","invoice":"in_1"}`),
		"on the charge": body("evt_1", "charge.succeeded", 5, `{"id":"ch_1","payment_intent":{"id":"pi_1"},"status":"succeeded","invoice":{"id":"in_1"}}`),
		"joined":        body("evt_1", "invoice_payment.paid", 5, `{"id":"inpay_1","invoice":"in_1","payment":{"payment_intent":"pi_1"}}`),
	} {
		w := newWorld(t, nil)
		w.send(b)
		if got := w.object("pi_1"); got["invoice"] != "in_1" {
			t.Errorf("%s: got %s", name, show(got))
		}
	}
}

func TestCompletedSessionIsNotPaidBeforeItsPaymentSucceeds(t *testing.T) {
	t.Parallel()
	const session = `{"id":"cs_1","status":"complete","customer":"cus_1","payment_intent":"pi_1","amount_total":2000,"currency":"usd","payment_status":`
	completed := body("evt_1", "checkout.session.completed", 5, session+`"unpaid"}`)
	for name, c := range map[string]struct{ last, want string }{
		"nothing yet": {completed, `{"status":"complete","payment_status":"unpaid","payment_failed":null}`},
		"succeeded":   {body("evt_2", "checkout.session.async_payment_succeeded", 9, session+`"paid"}`), `{"payment_status":"paid","payment_failed":null}`},
		"failed":      {body("evt_2", "checkout.session.async_payment_failed", 9, session+`"unpaid"}`), `{"payment_status":"unpaid","payment_failed":true}`},
		"one second":  {body("evt_0", "checkout.session.async_payment_succeeded", 5, session+`"paid"}`), `{"payment_status":"paid","order_unsure":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inAllOrders(t, nil, []string{completed, c.last}, func(w *world, _ []int) {
				w.wants("cs_1", c.want)
				if w.object("pi_1") != nil {
					t.Error("a session made a payment")
				}
			})
		})
	}
}
