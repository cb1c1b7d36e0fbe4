package billing_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"backstop/events"
	"backstop/internal/billing"
	"backstop/internal/event"
	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
)

// projected are the kinds of objects this package keeps.
var projected = []string{
	"charge", "checkout.session", "customer", "dispute", "entitlements.active_entitlement_summary", "invoice",
	"invoice_payment", "payment_intent", "refund", "subscription",
}

func TestEveryTypeOfTheCatalogWithAProjectedObjectIsHandledAndNoOther(t *testing.T) {
	t.Parallel()
	var want []string
	for _, typ := range events.Types() {
		if !typ.Thin && slices.Contains(projected, typ.Object) {
			want = append(want, typ.Name)
		}
	}
	var r handler.Registry
	billing.Register(&r, billing.Config{})
	if diff := cmp.Diff(want, r.Types()); diff != "" {
		t.Errorf("types handled (-catalog +handled):\n%s", diff)
	}
	if needs := r.Needs("invoice.paid"); len(needs) != 0 {
		t.Errorf("an event waits for %v though it can do without", needs)
	}
}

func TestEverySampleMakesItsRow(t *testing.T) {
	t.Parallel()
	for _, typ := range events.Types() {
		sample, err := events.Sample(typ.Name)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, nil)
		w.send(string(sample))
		rows := len(w.scan())
		handled := slices.Contains(w.registry.Types(), typ.Name)
		if want := handled && typ.Name != "invoice.upcoming"; (rows > 0) != want {
			t.Errorf("%s made %d rows, want some: %v", typ.Name, rows, want)
		}
		e, err := event.Parse(sample)
		if err != nil {
			t.Fatal(err)
		}
		switch typ.Object {
		case "customer", "subscription", "invoice", "payment_intent", "checkout.session":
			if got := w.object(e.ObjectID); handled && rows > 0 && got["id"] != e.ObjectID {
				t.Errorf("%s: %s is %s", typ.Name, e.ObjectID, show(got))
			}
		case "charge", "refund", "dispute":
			if got := w.object(e.Ref); handled && e.CustomerRef == "" && got["id"] != e.Ref {
				t.Errorf("%s: %s is %s", typ.Name, e.Ref, show(got))
			}
		}
	}
}

func TestObjectThatIsNotKnownIsNil(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.send(summary("evt_1", 10, false, "-", "a")) // a summary alone is no customer
	for _, id := range []string{"cus_1", "in_0", ""} {
		if got := w.object(id); got != nil {
			t.Errorf("%q is %s", id, show(got))
		}
	}
}

func TestCustomerShowsEverythingNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, s := range stories(t) {
		if s.Name == "signup-trial" {
			for _, b := range s.Events {
				w.send(string(b))
			}
		}
	}
	w.send(body("evt_other", "invoice.paid", 10, `{"id":"in_other","customer":"cus_other","status":"paid"}`))
	a, err := w.reader.Customer(t.Context(), "", "cus_1Trial0000000001")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{a.Customer.Email, a.Subscriptions[0].ID, a.Invoices[0].ID, a.Invoices[1].ID, a.Payments[0].ID, strings.Join(a.Entitlements.Keys, " ")}
	want := []string{"ada.fairbairn@example.com", "sub_1Trial0000000001", "in_1Trial0000000002", "in_1Trial0000000001", "pi_1Trial0000000001", "exports reports"}
	if diff := cmp.Diff(want, got); diff != "" || len(a.Invoices) != 2 || len(a.Payments) != 1 || len(a.Sessions) != 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Six rows stand on eight facts: the payment has two.
	if keys := a.Events(); len(keys) != 7 || !strings.HasPrefix(keys[0], "stripe#-#evt_") {
		t.Errorf("made by %v", keys)
	}
	if empty, err := w.reader.Customer(t.Context(), "", "cus_none"); err != nil || !empty.Empty() {
		t.Errorf("an unknown customer has %s, %v", show(empty), err)
	}
}

func TestDeletedCustomerKeepsWhatWasKnown(t *testing.T) {
	t.Parallel()
	bodies := []string{
		body("evt_1", "customer.created", 10, `{"id":"cus_1","email":"a@example.com","created":10}`),
		changed("evt_2", "customer.updated", 11, `{"id":"cus_1","email":"b@example.com","created":10}`, `{"email":"a@example.com"}`),
		body("evt_3", "customer.deleted", 12, `{"id":"cus_1","object":"customer","deleted":true}`),
	}
	w := newWorld(t, nil)
	for _, b := range bodies {
		w.send(b)
	}
	w.wants("cus_1", `{"deleted":true,"email":"b@example.com"}`)
	inAllOrders(t, nil, bodies, func(w *world, _ []int) { w.wants("cus_1", `{"deleted":true}`) })
}

func TestThinEventIsNotProjected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	e := handlertest.Event(t, []byte(body("evt_1", "customer.updated", 10, `{"id":"cus_1"}`)))
	e.Thin, e.Object = true, nil
	if o := handler.Classify(w.deliver(e)); o.Verdict != handler.Skips {
		t.Errorf("got %+v", o)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, b := range []string{
		body("evt_1", "customer.created", 1, `{"id":"cus_1"}`),
		summary("evt_2", 1, false, "-", "a"),
		body("evt_3", "customer.subscription.created", 1, `{"id":"sub_1","customer":"cus_1"}`),
		body("evt_4", "invoice.created", 1, `{"id":"in_1","customer":"cus_1"}`),
		body("evt_5", "charge.succeeded", 1, `{"id":"ch_1","payment_intent":"pi_1","customer":"cus_1"}`),
		body("evt_6", "checkout.session.completed", 1, `{"id":"cs_1","customer":"cus_1"}`),
	} {
		e := handlertest.Event(t, []byte(b))
		for _, e := range []handler.Event{e, within(e, "acct_1")} {
			if err := w.deliver(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []string
	for _, row := range w.scan() {
		var keys []string
		for _, name := range []string{"pk", "sk", "gsi1pk", "gsi1sk"} {
			if value, _ := row[name].(string); value != "" {
				keys = append(keys, value)
			}
		}
		got = append(got, strings.Join(keys, " "))
	}
	slices.Sort(got)
	want := []string{
		"-#ch_1 pointer",
		"-#cs_1 checkout_session -#cus_1 checkout_session#cs_1",
		"-#cus_1 customer",
		"-#cus_1 entitlement#a -#entitlement#a cus_1",
		"-#cus_1 entitlements",
		"-#in_1 invoice -#cus_1 invoice#in_1",
		"-#pi_1 payment -#cus_1 payment#pi_1",
		"-#sub_1 subscription -#cus_1 subscription#sub_1",
		"acct_1#ch_1 pointer",
		"acct_1#cs_1 checkout_session acct_1#cus_1 checkout_session#cs_1",
		"acct_1#cus_1 customer",
		"acct_1#cus_1 entitlement#a acct_1#entitlement#a cus_1",
		"acct_1#cus_1 entitlements",
		"acct_1#in_1 invoice acct_1#cus_1 invoice#in_1",
		"acct_1#pi_1 payment acct_1#cus_1 payment#pi_1",
		"acct_1#sub_1 subscription acct_1#cus_1 subscription#sub_1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
