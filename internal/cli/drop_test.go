package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/event"
	"backstop/internal/sender"
	"backstop/internal/stripefake"
)

func TestShareOfTheEventsIsDroppedAndTheRestKeepsItsOrder(t *testing.T) {
	t.Parallel()
	list := make([]sender.Event, 1000)
	for i := range list {
		list[i].ID = fmt.Sprintf("evt_%04d", i)
	}
	kept := drop(list, 0.05, rand.New(rand.NewPCG(1, 1)))
	if len(kept) != 950 {
		t.Fatalf("%d are kept, want 950", len(kept))
	}
	for i := 1; i < len(kept); i++ {
		if kept[i].ID <= kept[i-1].ID {
			t.Fatalf("%s comes after %s", kept[i].ID, kept[i-1].ID)
		}
	}
	if all := drop(list, 0, rand.New(rand.NewPCG(1, 1))); len(all) != 1000 {
		t.Errorf("nothing to be dropped, and %d are kept", len(all))
	}
}

// The whole way of `send --drop`: the fake Stripe knows all events, the endpoint sees most of them, and what it saw is
// not pending any more.
func TestDroppedEventsAreKnownToStripeOnly(t *testing.T) {
	var seen atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	t.Cleanup(endpoint.Close)
	stripe := httptest.NewServer(stripefake.New(stripefake.Options{}))
	t.Cleanup(stripe.Close)
	s := &stage{T: t}
	t.Chdir(t.TempDir())
	s.check(devTarget{Endpoint: endpoint.URL, StripeEndpoint: stripe.URL, Environment: map[string]string{}}.save())
	out := read[sent](s, 0, "send", "invoice.paid", "--count", "40", "--drop", "25%", "--secret", "whsec_test", "--no-wait")
	if out.Events != 30 || out.Dropped != 10 || seen.Load() != 30 {
		t.Errorf("got %+v, seen %d", out, seen.Load())
	}
	listed := func(query string) []json.RawMessage {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, stripe.URL+"/v1/events?limit=100&"+query, nil)
		s.check(err)
		request.Header.Set("Authorization", "Bearer rk_test_1")
		response, err := http.DefaultClient.Do(request)
		s.check(err)
		defer response.Body.Close()
		var list struct{ Data []json.RawMessage }
		s.check(json.NewDecoder(response.Body).Decode(&list))
		return list.Data
	}
	if all, pending := len(listed("")), len(listed("delivery_success=false")); all != 40 || pending != 10 {
		t.Errorf("Stripe knows %d events, %d of them pending; want 40 and 10", all, pending)
	}
	ev, err := event.Parse(listed("")[0])
	s.check(err)
	if age := time.Since(time.Unix(ev.CreatedS, 0)); age < 19*time.Minute || age > 21*time.Minute {
		t.Errorf("they happened %s ago: an audit leaves events younger than 15 minutes alone", age)
	}
	s.want(2, "send", "invoice.paid", "--drop", "200%")
	if _, _, errs := s.run("send", "invoice.paid", "--drop", "5%", "--endpoint", "https://example.test/", "--secret", "whsec_test"); !strings.Contains(errs, "fake Stripe") {
		t.Errorf("got %s", errs)
	}
}
