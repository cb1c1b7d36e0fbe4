package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"backstop/events"
)

func stories(t *testing.T) []events.Story {
	t.Helper()
	all, err := events.Stories()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// told is one event of a story, as far as the tests look.
type told struct {
	ID, Type string
	Created  int64
	Data     struct {
		Object   map[string]any
		Previous map[string]any `json:"previous_attributes"`
	}
}

func tell(t *testing.T, s events.Story) []told {
	t.Helper()
	out := make([]told, len(s.Events))
	for i, e := range s.Events {
		if err := json.Unmarshal(e, &out[i]); err != nil {
			t.Fatalf("%s, event %d: %v", s.Name, i, err)
		}
	}
	return out
}

func TestStoriesAreThere(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range stories(t) {
		names = append(names, s.Name)
		if s.Title == "" || len(s.Events) < 4 || len(s.Events) > 12 {
			t.Errorf("%s: title %q, %d events", s.Name, s.Title, len(s.Events))
		}
	}
	want := []string{"checkout-delayed", "dispute-lost", "dunning", "guest-checkout", "pause-resume", "payment-recovered",
		"refund-parts", "renewal", "resubscribe", "signup-trial", "trial-paused", "upgrade-proration"}
	if !slices.Equal(names, want) {
		t.Errorf("stories %q, want %q", names, want)
	}
}

func TestStoryEventsAreOfTheCatalogAndDecode(t *testing.T) {
	t.Parallel()
	objects := map[string]string{}
	for _, typ := range events.Types() {
		objects[typ.Name] = typ.Object
	}
	for _, s := range stories(t) {
		for _, body := range s.Events {
			var e stripe.Event
			if err := json.Unmarshal(body, &e); err != nil {
				t.Errorf("%s: %v", s.Name, err)
				continue
			}
			object, ok := stripeTypes[objects[string(e.Type)]]
			if !ok {
				t.Errorf("%s: %s is not in the catalog", s.Name, e.Type)
				continue
			}
			if err := json.Unmarshal(e.Data.Raw, object()); err != nil {
				t.Errorf("%s: %s: %v", s.Name, e.Type, err)
			}
			if e.APIVersion != events.APIVersion || bytes.HasPrefix(body, []byte("{ ")) || !bytes.HasPrefix(body, []byte("{\n  \"id\": \"evt_")) {
				t.Errorf("%s: %s is not laid out as Stripe posts it:\n%.120s", s.Name, e.Type, body)
			}
		}
		for id, body := range s.Stripe.Objects {
			var o struct{ ID, Object string }
			if err := json.Unmarshal(body, &o); err != nil || o.ID != id {
				t.Errorf("%s: object %s: %v, %+v", s.Name, id, err, o)
				continue
			}
			if err := json.Unmarshal(body, stripeTypes[o.Object]()); err != nil {
				t.Errorf("%s: object %s: %v", s.Name, id, err)
			}
		}
	}
}

func TestStoriesHappenInOrderWithPairsInOneSecond(t *testing.T) {
	t.Parallel()
	for _, s := range stories(t) {
		all := tell(t, s)
		pairs := 0
		for i := 1; i < len(all); i++ {
			if all[i].Created < all[i-1].Created {
				t.Errorf("%s: event %d is older than the one before it", s.Name, i)
			}
			if all[i].Created == all[i-1].Created {
				pairs++
			}
		}
		if pairs == 0 {
			t.Errorf("%s: no two events in one second", s.Name)
		}
		if slices.IsSortedFunc(all, func(a, b told) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("%s: event ids give the order away", s.Name)
		}
	}
}

// An updated event's previous attributes are what the event before it said.
func TestPreviousAttributesAreThoseOfTheEventBefore(t *testing.T) {
	t.Parallel()
	compared := 0
	for _, s := range stories(t) {
		last := map[string]map[string]any{}
		for _, e := range tell(t, s) {
			key := fmt.Sprint(e.Data.Object["object"], e.Data.Object["id"]) // an entitlement summary has no id, and each story one
			for attr, was := range e.Data.Previous {
				if before, ok := last[key]; ok {
					compared++
					if !reflect.DeepEqual(overlay(e.Data.Object[attr], was), before[attr]) {
						t.Errorf("%s: %s says %s was %v, the event before says %v", s.Name, e.Type, attr, was, before[attr])
					}
				}
				if reflect.DeepEqual(was, e.Data.Object[attr]) {
					t.Errorf("%s: %s: %s did not change", s.Name, e.Type, attr)
				}
			}
			last[key] = e.Data.Object
		}
	}
	if compared < 15 {
		t.Errorf("%d attributes compared, want at least 15", compared)
	}
}

// overlay puts previous values over current ones: in an object only what
// changed is named; null is also for a key that was not there.
func overlay(now, was any) any {
	current, ok := now.(map[string]any)
	previous, ok2 := was.(map[string]any)
	if !ok || !ok2 {
		return was
	}
	out := map[string]any{}
	for k, v := range current {
		out[k] = v
	}
	for k, v := range previous {
		if v == nil && k == "resumed_by" { // metadata has no null
			delete(out, k)
			continue
		}
		out[k] = overlay(current[k], v)
	}
	return out
}

// rowKinds are the kinds of final rows with the objects they stand for.
var rowKinds = map[string]string{"customer": "customers", "subscription": "subscriptions", "invoice": "invoices", "payment_intent": "payments"}

func TestFinalHasARowForEveryObjectThatEventsCarry(t *testing.T) {
	t.Parallel()
	for _, s := range stories(t) {
		want := map[string]bool{}
		for _, e := range tell(t, s) {
			o := e.Data.Object
			if kind, ok := rowKinds[o["object"].(string)]; ok {
				want[kind+" "+o["id"].(string)] = true
			}
			if o["object"] == "entitlements.active_entitlement_summary" {
				want["entitlements "+o["customer"].(string)] = true
			}
		}
		got := map[string]bool{}
		for kind, rows := range s.Final {
			for id := range rows {
				got[kind+" "+id] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: final rows (-carried +final):\n%s", s.Name, diff)
		}
	}
}

// The rows are written by hand, the objects come from the generator: both must
// tell the same.
func TestFinalRowsAgreeWithWhatStripeAnswers(t *testing.T) {
	t.Parallel()
	for _, s := range stories(t) {
		joined := map[string]any{} // payment intent to invoice
		paid := map[string]map[string]any{}
		objects := map[string]map[string]any{}
		for id, raw := range s.Stripe.Objects {
			o := map[string]any{}
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatal(err)
			}
			objects[id] = o
			switch o["object"] {
			case "invoice_payment":
				joined[o["payment"].(map[string]any)["payment_intent"].(string)] = o["invoice"]
			case "charge":
				if o["paid"] == true {
					paid[o["payment_intent"].(string)] = o
				}
			}
		}
		for kind, rows := range s.Final {
			for id, raw := range rows {
				if kind == "entitlements" {
					compareEntitlements(t, s, id, raw)
					continue
				}
				var row map[string]any
				if err := json.Unmarshal(raw, &row); err != nil {
					t.Fatal(err)
				}
				for name, value := range row {
					if want := truth(objects[id], paid[id], joined[id], name); !reflect.DeepEqual(value, want) {
						t.Errorf("%s: %s %s: %s is %v in final, %v at Stripe", s.Name, kind, id, name, value, want)
					}
				}
			}
		}
	}
}

// truth reads a row's field from Stripe's objects.
func truth(o, charge map[string]any, invoice any, name string) any {
	object := func(o map[string]any, key string) map[string]any {
		nested, _ := o[key].(map[string]any)
		return nested
	}
	switch name {
	case "deleted":
		return o["deleted"] == true
	case "subscription":
		return object(object(o, "parent"), "subscription_details")["subscription"]
	case "line_count":
		return float64(len(object(o, "lines")["data"].([]any)))
	case "lines_complete":
		return object(o, "lines")["has_more"] == false
	case "invoice":
		return invoice
	case "amount_refunded":
		if charge == nil {
			return float64(0)
		}
		return charge[name]
	case "refunded":
		return charge[name] == true
	case "current_period_end":
		return object(o, "items")["data"].([]any)[0].(map[string]any)[name]
	case "items":
		items := map[string]any{}
		for _, i := range object(o, "items")["data"].([]any) {
			item := i.(map[string]any)
			items[item["id"].(string)] = map[string]any{"price": object(item, "price")["id"],
				"quantity": item["quantity"], "current_period_end": item["current_period_end"]}
		}
		return items
	}
	return o[name]
}

func compareEntitlements(t *testing.T, s events.Story, customer string, row json.RawMessage) {
	t.Helper()
	var want []string
	var list struct {
		Data []struct {
			Key string `json:"lookup_key"`
		}
	}
	if err := json.Unmarshal(row, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(s.Stripe.ActiveEntitlements[customer], &list); err != nil {
		t.Fatalf("%s: entitlements of %s: %v", s.Name, customer, err)
	}
	var got []string
	for _, e := range list.Data {
		got = append(got, e.Key)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: entitlements of %s: final %q, Stripe %q", s.Name, customer, want, got)
	}
}

func TestFreshStoryHappensToSomebodyElse(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 5, 4, 3, 2, 1, 0, time.UTC)
	for _, s := range stories(t) {
		f, err := s.Fresh(events.FreshOptions{Now: now, Customer: "cus_Asked00000For1", Account: "acct_Asked0001", Rand: seeded(9)})
		if err != nil {
			t.Fatal(err)
		}
		was, is := whole(s), whole(f)
		is = strings.ReplaceAll(is, ",\"account\":\"acct_Asked0001\"", "")
		ids := anyID.FindAllString(was, -1)
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if strings.Contains(is, id) {
				t.Errorf("%s: fresh story still holds %s", s.Name, id)
			}
		}
		if a, b := strings.Count(numbered([]byte(was)), "#"), strings.Count(numbered([]byte(is)), "#"); a != b {
			t.Errorf("%s: %d references became %d", s.Name, a, b)
		}
		old, fresh := tell(t, s), tell(t, f)
		shift := fresh[0].Created - old[0].Created
		for i := range fresh {
			if fresh[i].Created-old[i].Created != shift || fresh[i].Type != old[i].Type {
				t.Errorf("%s: event %d: %d %s became %d %s", s.Name, i, old[i].Created, old[i].Type, fresh[i].Created, fresh[i].Type)
			}
		}
		if last := fresh[len(fresh)-1].Created; last != 1809399721 { // 2027-05-04T03:02:01Z
			t.Errorf("%s: last event at %d, want 1809399721", s.Name, last)
		}
		for id := range f.Final["customers"] {
			if id != "cus_Asked00000For1" {
				t.Errorf("%s: final row of %s", s.Name, id)
			}
		}
	}
}

// whole is all that a story says, compactly.
func whole(s events.Story) string {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(text)
}

func TestFreshStoryTellsTheSameTruth(t *testing.T) {
	t.Parallel()
	s, err := events.FindStory("dunning")
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Fresh(events.FreshOptions{Now: time.Unix(1800000000, 0), Customer: "cus_Asked00000For1", Rand: seeded(3)})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Final["subscriptions"]) != 1 {
		t.Fatalf("%d subscriptions, want 1", len(f.Final["subscriptions"]))
	}
	for id, raw := range f.Final["subscriptions"] {
		var row struct {
			ID, Customer string
			EndedAt      int64 `json:"ended_at"`
		}
		if err := json.Unmarshal(raw, &row); err != nil {
			t.Fatal(err)
		}
		// The last event comes 172801 s after the end of the subscription.
		if row.ID != id || f.Stripe.Objects[id] == nil || row.Customer != "cus_Asked00000For1" || row.EndedAt != 1799827199 {
			t.Errorf("row %s: %+v", id, row)
		}
	}
}

func TestUnknownStoryIsNotThere(t *testing.T) {
	t.Parallel()
	if _, err := events.FindStory("windfall"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want an error that matches fs.ErrNotExist", err)
	}
}

func TestStoryRefusesOneIDForAllAndWhatIsNone(t *testing.T) {
	t.Parallel()
	s := stories(t)[0]
	for _, opts := range []events.FreshOptions{{EventID: "evt_Asked0001"}, {ObjectID: "in_Asked0001"}, {Customer: "cus \""}} {
		if _, err := s.Fresh(opts); err == nil {
			t.Errorf("%+v: no error", opts)
		}
	}
}
