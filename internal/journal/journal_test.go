package journal_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"backstop/internal/handler"
	"backstop/internal/handler/handlertest"
	"backstop/internal/journal"
)

func at() time.Time { return time.UnixMilli(1790000000123) }

func TestEventIsCountedInARowOfItsOwn(t *testing.T) {
	t.Parallel()
	got := handlertest.Run(t, journal.New("billing", at), "invoice.paid",
		handlertest.Body(`{"id":"evt_1","type":"invoice.paid","created":1789999999,"data":{"object":{"id":"in_1","object":"invoice"}}}`))
	want := []handler.Effect{handler.Once{
		Table: "billing",
		Key:   map[string]string{"pk": "journal#stripe#-#evt_1", "sk": "journal"},
		Set:   handler.Row{"event": "evt_1", "type": "invoice.paid", "object": "in_1", "created_s": int64(1789999999), "applied_ms": int64(1790000000123)},
		Add:   map[string]int64{"count": 1},
	}}
	if diff := cmp.Diff(want, got.Effects); got.Err != nil || diff != "" {
		t.Fatalf("err %v, effects (-want +got):\n%s", got.Err, diff)
	}
}

func TestEventWithoutObjectIDIsCounted(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"invoice.upcoming", "v1.billing.meter.error_report_triggered"} {
		got := handlertest.Run(t, journal.New("billing", at), typ)
		if got.Err != nil || len(got.Effects) != 1 {
			t.Fatalf("%s: got %+v", typ, got)
		}
	}
}

func TestAppliedReadsTheCount(t *testing.T) {
	t.Parallel()
	rows := handlertest.Rows{}
	rows.Put("billing", journal.Key("stripe#-#evt_1"), handler.Row{"count": int64(2)})
	for key, want := range map[string]int64{"stripe#-#evt_1": 2, "stripe#-#evt_2": 0} {
		if got, err := journal.Applied(t.Context(), rows, "billing", key); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", key, got, err, want)
		}
	}
}

func TestRegisterListensToEachType(t *testing.T) {
	t.Parallel()
	var r handler.Registry
	journal.Register(&r, "billing", at, "invoice.paid", "customer.deleted")
	if diff := cmp.Diff([]string{"customer.deleted", "invoice.paid"}, r.Types()); diff != "" {
		t.Fatal(diff)
	}
}
