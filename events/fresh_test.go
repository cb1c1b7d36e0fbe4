package events_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/events"
)

var anyID = regexp.MustCompile(`\b(evt|cus|sub|si|in|il|ii|inpay|pi|ch|re|du|txn|pm|src|payatt|cs|txi|ent|po|ba|seti|setatt|req|mtr)(_test)?_\w*[0-9A-Z]\w*`)

// requestKey is an idempotency key.
var requestKey = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 7)) }

func fresh(t *testing.T, body []byte, opts events.FreshOptions) []byte {
	t.Helper()
	if opts.Rand == nil {
		opts.Rand = seeded(1)
	}
	out, err := events.Fresh(body, opts)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out) {
		t.Fatalf("no valid JSON:\n%s", out)
	}
	return out
}

func TestFreshEventSharesNoIDWithItsSample(t *testing.T) {
	t.Parallel()
	for _, typ := range events.Types() {
		body := sample(t, typ.Name)
		out := fresh(t, body, events.FreshOptions{})
		ids := append(anyID.FindAllString(string(body), -1), requestKey.FindAllString(string(body), -1)...)
		if len(ids) < 2 {
			t.Errorf("%s: ids %q: is the pattern broken?", typ.Name, ids)
		}
		for _, id := range ids {
			if bytes.Contains(out, []byte(id)) {
				t.Errorf("%s: fresh event still holds %s", typ.Name, id)
			}
		}
	}
}

// One id becomes one id, everywhere: replacing each id by the number of its
// first occurrence makes sample and fresh event the same text.
func TestFreshEventKeepsReferencesAndLayout(t *testing.T) {
	t.Parallel()
	for _, typ := range events.Types() {
		body := sample(t, typ.Name)
		out := fresh(t, body, events.FreshOptions{})
		if len(out) != len(body) {
			t.Errorf("%s: %d bytes became %d", typ.Name, len(body), len(out))
		}
		if was, is := numbered(body), numbered(out); was != is {
			t.Errorf("%s: structure changed:\n%s\n%s", typ.Name, was, is)
		}
	}
}

func numbered(body []byte) string {
	seen := map[string]int{}
	text := requestKey.ReplaceAllString(string(body), "key")
	return anyID.ReplaceAllStringFunc(text, func(id string) string {
		id, _, _ = strings.Cut(id, "_secret_")
		if _, ok := seen[id]; !ok {
			seen[id] = len(seen)
		}
		return fmt.Sprint("#", seen[id])
	})
}

func TestFreshEventBelongsToTheCustomerAskedFor(t *testing.T) {
	t.Parallel()
	cus := regexp.MustCompile(`cus_\w+`)
	with := 0
	for _, typ := range events.Types() {
		out := fresh(t, sample(t, typ.Name), events.FreshOptions{Customer: "cus_Asked00000For1"})
		found := cus.FindAllString(string(out), -1)
		if len(found) > 0 {
			with++
		}
		if slices.ContainsFunc(found, func(id string) bool { return id != "cus_Asked00000For1" }) {
			t.Errorf("%s: customers %q", typ.Name, found)
		}
	}
	if with < 35 {
		t.Errorf("%d samples have a customer, want at least 35", with)
	}
}

func TestFreshEventHasTheIDsAskedFor(t *testing.T) {
	t.Parallel()
	out := fresh(t, sample(t, "invoice.paid"), events.FreshOptions{EventID: "evt_Asked0001", ObjectID: "in_Asked0001", Account: "acct_Asked0001"})
	var e struct {
		ID, Account string
		Data        struct {
			Object struct {
				ID    string
				Lines struct {
					URL  string
					Data []struct{ Invoice string }
				}
			}
		}
	}
	if err := json.Unmarshal(out, &e); err != nil {
		t.Fatal(err)
	}
	o := e.Data.Object
	if e.ID != "evt_Asked0001" || e.Account != "acct_Asked0001" || o.ID != "in_Asked0001" ||
		o.Lines.URL != "/v1/invoices/in_Asked0001/lines" || o.Lines.Data[0].Invoice != "in_Asked0001" {
		t.Errorf("fresh event: %+v", e)
	}
	if want := "\n  \"object\": \"event\",\n  \"account\": \"acct_Asked0001\",\n  \"api_version\""; !bytes.Contains(out, []byte(want)) {
		t.Errorf("account is not where Stripe puts it:\n%.200s", out)
	}
	again := fresh(t, out, events.FreshOptions{Account: "acct_Other0002"})
	if n := bytes.Count(again, []byte(`"account"`)); n != 1 || !bytes.Contains(again, []byte(`"account": "acct_Other0002"`)) {
		t.Errorf("%d accounts in:\n%.200s", n, again)
	}
}

func TestFreshCustomerIsItsOwnObject(t *testing.T) {
	t.Parallel()
	body := sample(t, "customer.updated")
	for _, opts := range []events.FreshOptions{{Customer: "cus_Asked00000For1"}, {ObjectID: "cus_Asked00000For1"}} {
		if out := fresh(t, body, opts); !bytes.Contains(out, []byte(`"id": "cus_Asked00000For1"`)) {
			t.Errorf("%+v:\n%s", opts, out)
		}
	}
	if _, err := events.Fresh(body, events.FreshOptions{Customer: "cus_A000000000", ObjectID: "cus_B000000000"}); err == nil {
		t.Error("one customer with two ids, and no error")
	}
}

func TestFreshEventMovesAllTimesAlike(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 1, 12, 0, 0, 5e8, time.UTC)
	var e struct {
		Created int64
		Data    struct {
			Object struct {
				Created, Start int64
				Items          struct {
					Data []struct {
						Start int64 `json:"current_period_start"`
						End   int64 `json:"current_period_end"`
					}
				}
			}
			Previous struct {
				Items struct {
					Data []struct {
						End int64 `json:"current_period_end"`
					}
				}
			} `json:"previous_attributes"`
		}
	}
	if err := json.Unmarshal(fresh(t, sample(t, "customer.subscription.updated"), events.FreshOptions{Now: now}), &e); err != nil {
		t.Fatal(err)
	}
	item := e.Data.Object.Items.Data[0]
	// 1803902400 is now; the sample was created when its new period began.
	if e.Created != 1803902400 || item.Start != 1803902400 || e.Data.Previous.Items.Data[0].End != 1803902400 || item.End-item.Start != 30*86400 {
		t.Errorf("times: %+v", e)
	}
	thin := fresh(t, sample(t, "v1.billing.meter.error_report_triggered"), events.FreshOptions{Now: now, Account: "acct_Asked0001"})
	for _, want := range []string{`"created": "2027-03-01T12:00:00.412Z"`, `"context": "acct_Asked0001"`} {
		if !bytes.Contains(thin, []byte(want)) {
			t.Errorf("thin event has no %s:\n%s", want, thin)
		}
	}
}

func TestFreshTakesCompactEvents(t *testing.T) {
	t.Parallel()
	body := `{"id":"evt_1Aaaaaaaa","object":"event","created":1700000000,"data":{"object":{"id":"ch_1Aaaaaaaa","amount":1700000000,` +
		`"object":"charge","failure_code":"card_declined","range":{"start":0,"end":90},"metadata":{"order":"order_2024ABCDEFGH","note\"":"a \"} {,: ch_1Aaaaaaaa\\\\"}}},"type":"charge.failed"}`
	got := fresh(t, []byte(body), events.FreshOptions{
		Now: time.Unix(1800000000, 0), EventID: "evt_1Bbbbbbbb", ObjectID: "ch_1Bbbbbbbb", Account: "acct_1"})
	want := `{"id":"evt_1Bbbbbbbb","object":"event","account":"acct_1","created":1800000000,"data":{"object":{"id":"ch_1Bbbbbbbb","amount":1700000000,` +
		`"object":"charge","failure_code":"card_declined","range":{"start":0,"end":90},"metadata":{"order":"order_2024ABCDEFGH","note\"":"a \"} {,: ch_1Bbbbbbbb\\\\"}}},"type":"charge.failed"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Ids of a person's own files need not look like Stripe's.
func TestFreshEventNeverKeepsItsEventID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"evt_1", "evt_test_webhook", "order/5", "QA"} {
		body := fmt.Sprintf(`{"id": %q, "object": "event", "created": 1700000000, "data": {"object": {"id": "cus_QA0001", "object": "customer"}}}`, id)
		a, b := fresh(t, []byte(body), events.FreshOptions{Rand: seeded(1)}), fresh(t, []byte(body), events.FreshOptions{Rand: seeded(2)})
		var ea, eb struct{ ID string }
		if err := json.Unmarshal(a, &ea); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &eb); err != nil {
			t.Fatal(err)
		}
		if ea.ID == id || ea.ID == eb.ID || bytes.Contains(a, []byte("cus_QA0001")) {
			t.Errorf("%s became %s and %s:\n%s", id, ea.ID, eb.ID, a)
		}
	}
}

func TestFreshRefusesAnIDThatIsNone(t *testing.T) {
	t.Parallel()
	for _, opts := range []events.FreshOptions{{EventID: `evt_"`}, {Customer: "cus 1"}, {ObjectID: `in\`}, {Account: "acct_\n"}} {
		if _, err := events.Fresh(sample(t, "invoice.paid"), opts); err == nil {
			t.Errorf("%+v: no error", opts)
		}
	}
}

func TestSameSeedMakesTheSameEvent(t *testing.T) {
	t.Parallel()
	body := sample(t, "invoice.paid")
	a, b, c := fresh(t, body, events.FreshOptions{Rand: seeded(4)}), fresh(t, body, events.FreshOptions{Rand: seeded(4)}), fresh(t, body, events.FreshOptions{Rand: seeded(5)})
	if !bytes.Equal(a, b) {
		t.Error("the same seed made two events")
	}
	if bytes.Equal(a, c) {
		t.Error("two seeds made the same event")
	}
	first, err := events.Fresh(body, events.FreshOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := events.Fresh(body, events.FreshOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(first, second) {
		t.Error("without a random source two fresh events are the same")
	}
}

func TestBrokenSampleIsAnError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `{`, `[]`, `{"id":""}`, `{"id":"evt_1Aaaaaaaa","object":"event"}`,
		`{"id":"evt_1Aaaaaaaa","object":"v2.core.event","created":12}`, `{"id":"evt_1Aaaaaaaa","created":1} {`} {
		if out, err := events.Fresh([]byte(body), events.FreshOptions{Rand: seeded(1)}); err == nil {
			t.Errorf("%s: no error, but %s", body, out)
		}
	}
}

// Whatever event a person sends, it stays JSON of the same layout.
func FuzzFreshKeepsJSONValid(f *testing.F) {
	for _, typ := range []string{"refund.created", "customer.tax_id.created", "v1.billing.meter.error_report_triggered"} {
		body, err := events.Sample(typ)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"id":"evt_1\u0041","object":"event","created":1,"a":["x\\",-1e9,{"b_at":1790000000}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := events.Fresh(body, events.FreshOptions{Now: time.Unix(1800000000, 0), Customer: "cus_Asked00000For1", Account: "acct_1", Rand: seeded(1)})
		if err == nil && !json.Valid(out) {
			t.Errorf("%s became %s", body, out)
		}
	})
}
