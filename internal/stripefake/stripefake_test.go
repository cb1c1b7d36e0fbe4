package stripefake_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/stripefake"
)

func event(id, typ string, created int64, account string) json.RawMessage {
	if account != "" {
		account = fmt.Sprintf(`"account":%q,`, account)
	}
	return fmt.Appendf(nil, `{"id":%q,"object":"event",%s"type":%q,"created":%d,"pending_webhooks":1,"data":{"object":{"id":"in_%s","object":"invoice","lines":{"data":[{"id":"il_1"}]}}}}`,
		id, account, typ, created, id)
}

type fake struct {
	*testing.T
	*stripefake.Server
	url string
	now int64
}

func setup(t *testing.T, fault func(*http.Request) stripefake.Fault) *fake {
	t.Helper()
	t.Parallel()
	f := &fake{T: t, Server: stripefake.New(stripefake.Options{Fault: fault}), now: time.Now().Unix()}
	server := httptest.NewServer(f.Server)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fake) get(path, account string) (int, http.Header, string) {
	f.Helper()
	request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.url+path, nil)
	if err != nil {
		f.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer rk_test_1")
	if account != "" {
		request.Header.Set("Stripe-Account", account)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		f.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// ids lists events and returns their ids, and whether there are more.
func (f *fake) ids(query, account string) ([]string, bool) {
	f.Helper()
	status, _, text := f.get("/v1/events?"+query, account)
	var list struct {
		Data []struct{ ID string }
		More bool `json:"has_more"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != 200 {
		f.Fatalf("%s: %d %s", query, status, text)
	}
	var ids []string
	for _, e := range list.Data {
		ids = append(ids, e.ID)
	}
	return ids, list.More
}

func TestListIsPagedNewestFirst(t *testing.T) {
	f := setup(t, nil)
	for n := range 5 {
		if err := f.Register(event(fmt.Sprintf("evt_%d", n), "invoice.paid", f.now-int64(n), "")); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	query := "limit=2"
	for {
		ids, more := f.ids(query, "")
		all = append(all, ids...)
		if !more {
			break
		}
		query = "limit=2&starting_after=" + ids[len(ids)-1]
	}
	if want := []string{"evt_0", "evt_1", "evt_2", "evt_3", "evt_4"}; !slices.Equal(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
}

func TestFiltersAndAccountsAreKept(t *testing.T) {
	f := setup(t, nil)
	if err := f.Register(event("evt_old", "invoice.paid", f.now-31*86400, ""), event("evt_1", "invoice.paid", f.now-10, ""),
		event("evt_2", "charge.refunded", f.now-5, ""), event("evt_c", "invoice.paid", f.now-5, "acct_1")); err != nil {
		t.Fatal(err)
	}
	f.Delivered("evt_1")
	for query, want := range map[string][]string{
		"":                        {"evt_2", "evt_1"},
		"type=invoice.paid":       {"evt_1"},
		"types[]=charge.refunded": {"evt_2"},
		"delivery_success=false":  {"evt_2"},
		"delivery_success=true":   {"evt_1"},
		fmt.Sprintf("created[gte]=%d&created[lt]=%d", f.now-10, f.now-5): {"evt_1"},
		fmt.Sprintf("created[gt]=%d&created[lte]=%d", f.now-10, f.now-5): {"evt_2"},
	} {
		if got, _ := f.ids(query, ""); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
	if got, _ := f.ids("", "acct_1"); !slices.Equal(got, []string{"evt_c"}) {
		t.Errorf("of the account: got %q", got)
	}
	if _, _, text := f.get("/v1/events", "acct_1"); strings.Contains(text, "acct_1") {
		t.Errorf("the list names the account it was asked for: %s", text)
	}
	if _, _, text := f.get("/v1/events/evt_1", ""); !strings.Contains(text, `"pending_webhooks":0`) {
		t.Errorf("delivered and still pending: %s", text)
	}
}

func TestObjectsAreThoseOfTheEvents(t *testing.T) {
	f := setup(t, nil)
	if err := f.Register(event("evt_1", "invoice.paid", f.now, "")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/v1/invoices/in_evt_1":                                  `"id":"in_evt_1"`,
		"/v1/invoices/in_evt_1/lines":                            `"id":"il_1"`,
		"/v1/subscription_items?subscription=in_evt_1":           `"data":[]`,
		"/v1/entitlements/active_entitlements?customer=cus_none": `"data":[]`,
	} {
		if status, _, text := f.get(path, ""); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, path := range []string{"/v1/invoices/in_none", "/v1/events/evt_none", "/v1/webhook_endpoints/we_none", "/v2/core/events"} {
		if status, _, text := f.get(path, ""); status != 404 || !strings.Contains(text, `"type":"invalid_request_error"`) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestWhatStripeRefusesIsRefused(t *testing.T) {
	f := setup(t, nil)
	for _, query := range []string{"limit=0", "limit=101", "starting_after=evt_none", "colour=blue"} {
		if status, _, _ := f.get("/v1/events?"+query, ""); status != 400 {
			t.Errorf("%s: %d, want 400", query, status)
		}
	}
	response, err := http.Get(f.url + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 401 {
		t.Errorf("without a key: %d, want 401", response.StatusCode)
	}
}

func TestPlantedFaultsAreAnswered(t *testing.T) {
	f := setup(t, func(*http.Request) stripefake.Fault { return stripefake.Fault{Status: 429, RetryAfter: 3} })
	status, header, _ := f.get("/v1/events", "")
	if status != 429 || header.Get("Retry-After") != "3" || header.Get("Request-Id") == "" || header.Get("Date") == "" {
		t.Errorf("got %d %v", status, header)
	}
	if n := f.Calls("GET /v1/events"); n != 1 {
		t.Errorf("%d calls counted", n)
	}
}

func TestEventsAreToldOverHTTP(t *testing.T) {
	f := setup(t, nil)
	post := func(path string, body string) int {
		response, err := http.Post(f.url+path, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if status := post(stripefake.RegisterPath, "["+string(event("evt_1", "invoice.paid", f.now, ""))+`,{"object":"v2.core.event"}]`); status != 200 {
		t.Errorf("status %d", status)
	}
	if status := post(stripefake.DeliveredPath, `["evt_1"]`); status != 200 {
		t.Errorf("status %d", status)
	}
	if got, _ := f.ids("delivery_success=true", ""); !slices.Equal(got, []string{"evt_1"}) {
		t.Errorf("got %q", got)
	}
	for _, bad := range []string{"{", `[{"object":"event"}]`} {
		if status := post(stripefake.RegisterPath, bad); status != 400 {
			t.Errorf("%s: %d, want 400", bad, status)
		}
	}
}
