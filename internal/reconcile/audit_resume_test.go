package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/ledger"
	"backstop/internal/stripefake"
)

func TestCursorGoesOnWithAnOverlap(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.audit()
		if want := time.Now().Unix() - 900 - 3600; first.FromS != want || len(first.Notes) == 0 || !strings.Contains(first.Notes[0], "first audit") {
			t.Errorf("the first audit begins at %d, want %d, and says so: %q", first.FromS, want, first.Notes)
		}
		end := time.Now().Unix() - 900
		time.Sleep(15 * time.Minute)
		// Listed late: it happened before the place the first audit came to.
		w.happen(body("evt_late", "cus_1", 35*time.Minute))
		second := w.audit()
		if want := end - 900; second.FromS != want || second.ToS != end+900 {
			t.Errorf("from %d to %d, want %d to %d", second.FromS, second.ToS, want, end+900)
		}
		w.want("healed", w.take(w.names.QueueURL), "evt_late")
	})
}

func TestGapOverThirtyDaysIsSaidAloud(t *testing.T) {
	inWorld(t, func(w *world) {
		w.checked("", 40*24*time.Hour)
		w.happen(body("evt_too_old", "cus_1", 31*24*time.Hour), body("evt_old", "cus_1", 29*24*time.Hour))
		report := w.audit()
		if !report.Gap || !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "older than the 30 days") }) {
			t.Errorf("got %+v", report)
		}
		w.want("healed", w.take(w.names.QueueURL), "evt_old")
	})
}

type failing struct {
	AuditLedger
	n int
}

func (f *failing) Record(ctx context.Context, r ledger.Recording) (ledger.RecordResult, error) {
	if f.n--; f.n == 0 {
		return ledger.RecordResult{}, errors.New("the ledger is away")
	}
	return f.AuditLedger.Record(ctx, r)
}

func TestCursorDoesNotPassWhatWasNotHealed(t *testing.T) {
	inWorld(t, func(w *world) {
		for n := range 5 {
			w.happen(body(fmt.Sprintf("evt_%d", n), "cus_1", time.Hour-time.Duration(n)*time.Second))
		}
		w.auditor.Ledger = &failing{w.ledger, 3}
		report, err := w.auditor.Run(w.ctx)
		if err == nil || report.Complete {
			t.Errorf("got %+v, %v", report, err)
		}
		w.want("healed before the trouble", w.take(w.names.QueueURL), "evt_0", "evt_1")
		time.Sleep(2 * time.Hour) // well past any overlap
		w.auditor.Ledger = w.ledger
		w.audit()
		w.want("healed after it", w.take(w.names.QueueURL), "evt_2", "evt_3", "evt_4")
	})
}

func TestAccountThatCannotBeReadDoesNotStopTheOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.happen(body("evt_1", "cus_1", time.Hour))
		w.auditor.Accounts = []string{"acct_1"}
		w.fault = func(r *http.Request) stripefake.Fault {
			if r.Header.Get("Stripe-Account") == "acct_1" {
				return stripefake.Fault{Status: 403}
			}
			return stripefake.Fault{}
		}
		report, err := w.auditor.Run(w.ctx)
		if err == nil || !strings.Contains(err.Error(), "of acct_1") || report.Healed != 1 {
			t.Errorf("got %+v, %v", report, err)
		}
		if calls := w.stripe.Calls("GET /v1/events"); calls != 2 {
			t.Errorf("%d calls, want 2: a refusal is not asked for again", calls)
		}
	})
}

func TestRetryAfterIsRespected(t *testing.T) {
	inWorld(t, func(w *world) {
		w.happen(body("evt_1", "cus_1", time.Hour))
		var asked []time.Time
		w.fault = func(*http.Request) stripefake.Fault {
			asked = append(asked, time.Now())
			if len(asked) == 1 {
				return stripefake.Fault{Status: 429, RetryAfter: 7}
			}
			return stripefake.Fault{}
		}
		w.audit()
		w.want("healed", w.take(w.names.QueueURL), "evt_1")
		if pause := asked[1].Sub(asked[0]); pause < 7*time.Second || pause > 8*time.Second {
			t.Errorf("asked again after %s, want 7 s", pause)
		}
	})
}

func TestAuditOutOfTimeGoesOnWhereItStopped(t *testing.T) {
	inWorld(t, func(w *world) {
		var want []string
		var all []json.RawMessage
		for n := range 3000 {
			id := fmt.Sprintf("evt_%04d", n)
			want = append(want, id)
			all = append(all, body(id, "cus_1", time.Hour-time.Duration(n)*800*time.Millisecond))
		}
		w.happen(all...)
		w.fault = func(*http.Request) stripefake.Fault {
			time.Sleep(time.Second)
			return stripefake.Fault{}
		}
		var healed []string
		runs := 0
		for ; runs < 10; runs++ {
			ctx, cancel := context.WithTimeout(w.ctx, 50*time.Second)
			report, err := w.auditor.Run(ctx)
			cancel()
			w.check(err)
			healed = append(healed, w.take(w.names.QueueURL)...)
			if report.Complete {
				break
			}
			if !report.Nearer && report.Healed > 0 {
				t.Errorf("run %d healed %d and does not say that it came nearer", runs, report.Healed)
			}
		}
		if runs == 0 || runs == 10 {
			t.Errorf("it took %d runs, want some", runs+1)
		}
		if !slices.Equal(healed, want) {
			t.Errorf("%d events healed, want 3000, in order", len(healed))
		}
	})
}
