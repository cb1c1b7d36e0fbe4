package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/stripeevents"
	"backstop/internal/stripefake"
)

func (w *world) happen(bodies ...json.RawMessage) {
	w.Helper()
	w.check(w.stripe.Register(bodies...))
}

func (w *world) audit() Audited {
	w.Helper()
	report, err := w.auditor.Run(w.ctx)
	w.check(err)
	return report
}

// checked sets the place up to which everything has been compared.
func (w *world) checked(account string, ago time.Duration) {
	w.Helper()
	value, err := w.control.Get(w.ctx, cursorOf(account))
	w.check(err)
	text, err := json.Marshal(place{CheckedS: time.Now().Add(-ago).Unix()})
	w.check(err)
	_, err = w.control.Put(w.ctx, cursorOf(account), string(text), value)
	w.check(err)
}

func (w *world) place(account string) place {
	w.Helper()
	value, err := w.control.Get(w.ctx, cursorOf(account))
	w.check(err)
	var p place
	w.check(json.Unmarshal([]byte(value.Text), &p))
	return p
}

// Seven events over three pages, two of them known, an error on the second page once.
func TestMissedEventsAreHealedOnceInTheOrderTheyHappened(t *testing.T) {
	inWorld(t, func(w *world) {
		for n := 1; n <= 7; n++ {
			raw := body(fmt.Sprintf("evt_%d", n), "cus_1", time.Hour-time.Duration(n)*time.Minute)
			w.happen(raw)
			if n == 2 || n == 5 {
				w.done(w.record(raw).Key)
			}
		}
		failed := false
		w.fault = func(r *http.Request) stripefake.Fault {
			if r.URL.Query().Get("starting_after") != "" && !failed {
				failed = true
				return stripefake.Fault{Status: 500}
			}
			return stripefake.Fault{}
		}
		w.pageSize = 3
		report := w.audit()
		if report.Missing != 5 || report.Healed != 5 || !report.Complete {
			t.Errorf("got %+v", report)
		}
		w.want("enqueued", w.take(w.names.QueueURL), "evt_1", "evt_3", "evt_4", "evt_6", "evt_7")
		if e := w.get("stripe#-#evt_7"); e.Origin != ledger.Backfill || e.Group != "cus_1" || e.APIVersion != "2020-08-27" {
			t.Errorf("got %+v", e)
		}
		w.done("stripe#-#evt_7")
		w.checked("", time.Hour)
		if report := w.audit(); report.Missing != 0 || report.Unfinished != 4 {
			t.Errorf("the second audit: %+v", report)
		}
		w.want("enqueued again", w.take(w.names.QueueURL))
	})
}

// unsorted lists an older event before a newer one, and two of one second.
type unsorted struct{ bodies []json.RawMessage }

func (u unsorted) Page(context.Context, stripeevents.Query) (stripeevents.Page, error) {
	return stripeevents.Page{Events: u.bodies}, nil
}

func TestHealingGoesByWhenThingsHappened(t *testing.T) {
	inWorld(t, func(w *world) {
		w.auditor.Events = unsorted{[]json.RawMessage{
			body("evt_1", "cus_1", 50*time.Minute), body("evt_4", "cus_1", 20*time.Minute),
			body("evt_3", "cus_1", 30*time.Minute), body("evt_2", "cus_1", 30*time.Minute),
		}}
		w.audit()
		// Of one second, the one listed last happened first.
		w.want("enqueued", w.take(w.names.QueueURL), "evt_1", "evt_2", "evt_3", "evt_4")
	})
}

func TestPayloadIsHealedAsListed(t *testing.T) {
	inWorld(t, func(w *world) {
		raw := body("evt_1", "cus_1", time.Hour)
		w.happen(raw)
		report := w.audit()
		if got := w.get("stripe#-#evt_1").Body; string(got) != string(raw) {
			t.Errorf("got %s", got)
		}
		if !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "account's API version (2020-08-27)") }) {
			t.Errorf("nothing says in whose version the payload is: %q", report.Notes)
		}
	})
}

func TestYoungEventsAreLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.happen(body("evt_old", "cus_1", 15*time.Minute+time.Second), body("evt_young", "cus_2", 15*time.Minute))
		w.audit()
		w.want("healed", w.take(w.names.QueueURL), "evt_old")
		time.Sleep(time.Minute)
		w.audit()
		w.want("healed later", w.take(w.names.QueueURL), "evt_young")
	})
}

func TestOnlySubscribedTypesOfTheRightModeCount(t *testing.T) {
	inWorld(t, func(w *world) {
		live := strings.Replace(string(body("evt_live", "cus_1", time.Hour)), `"livemode":false`, `"livemode":true`, 1)
		other := strings.Replace(string(body("evt_other", "cus_1", time.Hour)), "customer.updated", "product.created", 1)
		w.happen(json.RawMessage(live), json.RawMessage(other), body("evt_1", "cus_1", time.Hour-time.Second))
		report := w.audit()
		if report.Listed != 1 || report.OtherMode != 1 || report.Others != 1 || report.Healed != 1 {
			t.Errorf("got %+v", report)
		}
		w.want("healed", w.take(w.names.QueueURL), "evt_1")
	})
}

// A delivery names the account, the list does not: both must be one event.
func TestConnectedAccountsAreComparedByTheKeysOfTheirDeliveries(t *testing.T) {
	inWorld(t, func(w *world) {
		of := func(id string) json.RawMessage {
			return json.RawMessage(strings.Replace(string(body(id, "cus_1", 20*time.Minute)), `"object":"event"`, `"object":"event","account":"acct_1"`, 1))
		}
		w.happen(of("evt_known"), of("evt_lost"))
		w.done(w.record(of("evt_known")).Key)
		w.auditor.Accounts = []string{"acct_1"}
		if report := w.audit(); report.Listed != 2 || report.Healed != 1 {
			t.Errorf("got %+v", report)
		}
		e := w.get("stripe#acct_1#evt_lost")
		if e.Account != "acct_1" || e.Group != "acct_1/cus_1" {
			t.Errorf("got account %q, group %q", e.Account, e.Group)
		}
		if p := w.place("acct_1"); p.CheckedS == 0 {
			t.Error("the account has no place of its own")
		}
	})
}

func TestStateOfKnownEventsIsReported(t *testing.T) {
	inWorld(t, func(w *world) {
		for i, id := range []string{"evt_done", "evt_open", "evt_parked"} {
			raw := body(id, fmt.Sprintf("cus_%d", i), time.Hour)
			w.happen(raw)
			w.record(raw)
		}
		w.done("stripe#-#evt_done")
		w.park("stripe#-#evt_parked")
		report := w.audit()
		if report.Listed != 3 || report.Unfinished != 1 || report.Parked != 1 || report.Missing != 0 {
			t.Errorf("got %+v", report)
		}
	})
}

func TestMissingEventsAreSaidToPointAtTheEndpoint(t *testing.T) {
	inWorld(t, func(w *world) {
		w.happen(body("evt_1", "cus_1", time.Hour))
		if report := w.audit(); !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "the endpoint may be disabled") }) {
			t.Errorf("got %q", report.Notes)
		}
	})
}

// failing fails the n-th recording.
// A page is slow; the run has time for a few of them only.
func TestManyEventsOfOneSecondAreComparedAll(t *testing.T) {
	inWorld(t, func(w *world) {
		var all []json.RawMessage
		for n := range 1234 {
			all = append(all, body(fmt.Sprintf("evt_%04d", n), fmt.Sprintf("cus_%d", n), time.Hour))
		}
		w.happen(all...)
		if report := w.audit(); report.Healed != 1234 || !report.Complete {
			t.Errorf("got %+v", report.brief())
		}
	})
}

// meanwhile lets a delivery come in right before each recording.
type meanwhile struct {
	AuditLedger
	w *world
}

func (m meanwhile) Record(ctx context.Context, r ledger.Recording) (ledger.RecordResult, error) {
	m.w.record(r.Body)
	return m.AuditLedger.Record(ctx, r)
}

func TestDeliveryThatComesMeanwhileIsNotMissing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.happen(body("evt_1", "cus_1", time.Hour))
		w.auditor.Ledger = meanwhile{w.ledger, w}
		if report := w.audit(); report.Missing != 0 || report.Healed != 0 {
			t.Errorf("got %+v", report)
		}
		if e := w.get("stripe#-#evt_1"); e.Origin != ledger.Webhook {
			t.Errorf("origin %s", e.Origin)
		}
	})
}

func TestEventTooLargeIsReportedAndPassed(t *testing.T) {
	inWorld(t, func(w *world) {
		random := rand.New(rand.NewPCG(1, 1))
		noise := make([]byte, 560<<10)
		for i := range noise {
			noise[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[random.IntN(64)]
		}
		large := bytes.Replace(body("evt_large", "cus_1", time.Hour), []byte(`"object":"customer"`), []byte(`"object":"customer","x":"`+string(noise)+`"`), 1)
		w.happen(large, body("evt_1", "cus_1", time.Hour-time.Second))
		report := w.audit()
		if report.Missing != 2 || report.Healed != 1 || report.Unhealed != 1 || !report.Complete {
			t.Errorf("got %+v", report)
		}
		w.want("healed", w.take(w.names.QueueURL), "evt_1")
	})
}

func TestDryAuditForAPersonChangesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.happen(body("evt_1", "cus_1", 20*time.Hour))
		var seen []ledger.Key
		w.auditor.Seen = func(key ledger.Key) { seen = append(seen, key) }
		report, err := w.auditor.Since(w.ctx, time.Now().Add(-24*time.Hour), false)
		w.check(err)
		if report.Missing != 1 || report.Healed != 0 || len(report.Findings) != 1 || report.Findings[0].What != "missing" {
			t.Errorf("got %+v", report)
		}
		w.want("enqueued", w.take(w.names.QueueURL))
		if _, err := w.ledger.Get(w.ctx, "stripe#-#evt_1"); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("got %v, want no entry", err)
		}
		if len(seen) != 1 {
			t.Errorf("seen: %v", seen)
		}
		report, err = w.auditor.Since(w.ctx, time.Now().Add(-24*time.Hour), true)
		w.check(err)
		if report.Healed != 1 {
			t.Errorf("got %+v", report)
		}
		w.want("enqueued", w.take(w.names.QueueURL), "evt_1")
	})
}

func TestLineOfAnAuditHoldsItsMetricsAndNoPayload(t *testing.T) {
	inWorld(t, func(w *world) {
		w.happen(body("evt_1", "cus_secret", time.Hour))
		line := w.reconcile("audit")
		for name, want := range map[string]any{"AuditMissing": 1.0, "AuditUnhealed": 0.0, "AuditRan": 1.0, "level": "WARN", "healed_events": "stripe#-#evt_1"} {
			if line[name] != want {
				t.Errorf("%s is %v, want %v", name, line[name], want)
			}
		}
		if strings.Contains(w.log.String(), "cus_secret") {
			t.Errorf("the payload is in the line: %s", w.log.String())
		}
		w.fault = func(*http.Request) stripefake.Fault { return stripefake.Fault{Status: 401} }
		line = w.reconcile("audit")
		if line["AuditRan"] != 0.0 || line["level"] != "ERROR" {
			t.Errorf("got %v", line)
		}
		last, err := w.control.Get(w.ctx, LastAudit)
		w.check(err)
		var kept Audited
		w.check(json.Unmarshal([]byte(last.Text), &kept))
		if kept.RanMS == 0 || kept.Complete {
			t.Errorf("kept: %+v", kept)
		}
	})
}

func TestUnknownTaskIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := (&Reconciler{}).Invoke(t.Context(), []byte(`{"task":"audit"}`)); err == nil {
		t.Error("an audit without an auditor is no success")
	}
	if _, err := (&Reconciler{}).Invoke(t.Context(), []byte(`{"task":"dance"}`)); err == nil {
		t.Error("an unknown task is no success")
	}
}

func TestSampleBodyIsAnEvent(t *testing.T) {
	t.Parallel()
	ev, err := event.Parse(body("evt_1", "cus_1", time.Hour))
	if err != nil || ev.Group != "cus_1" {
		t.Errorf("got %+v, %v", ev, err)
	}
}
