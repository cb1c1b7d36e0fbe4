package stripeapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/handler"
	"backstop/internal/secret"
	"backstop/internal/stripeapi"
)

// server answers with a function and keeps the requests.
type server struct {
	url string

	mu       sync.Mutex
	requests []*http.Request
}

func (s *server) seen() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

func (s *server) client() *stripeapi.Client {
	return stripeapi.New(stripeapi.Config{URL: s.url + "/", Key: func(context.Context) (string, error) { return "rk_fake_key", nil }})
}

func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func TestObjectIsReadAsItIs(t *testing.T) {
	t.Parallel()
	for kind, path := range map[string]string{
		"customer": "/v1/customers/x_1", "subscription": "/v1/subscriptions/x_1", "invoice": "/v1/invoices/x_1",
		"payment_intent": "/v1/payment_intents/x_1", "charge": "/v1/charges/x_1", "refund": "/v1/refunds/x_1",
		"dispute": "/v1/disputes/x_1", "checkout.session": "/v1/checkout/sessions/x_1", "invoice_payment": "/v1/invoice_payments/x_1",
	} {
		s := serve(t, say(200, `{"id":"x_1", "unknown":1}`))
		got, err := s.client().Object(t.Context(), "acct_1", kind, "x_1")
		if err != nil || string(got) != `{"id":"x_1", "unknown":1}` {
			t.Fatalf("%s: %s, %v", kind, got, err)
		}
		r := s.seen()[0]
		if r.Method != "GET" || r.URL.Path != path || r.Header.Get("Authorization") != "Bearer rk_fake_key" ||
			r.Header.Get("Stripe-Account") != "acct_1" || r.Header.Get("Stripe-Version") != "2025-08-27.basil" {
			t.Errorf("%s: the request was %s %s %v", kind, r.Method, r.URL, r.Header)
		}
	}
}

func TestPlatformsOwnObjectNamesNoAccount(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{}`))
	if _, err := s.client().Object(t.Context(), "", "invoice", "in_1/../../x?"); err != nil {
		t.Fatal(err)
	}
	r := s.seen()[0]
	if _, there := r.Header["Stripe-Account"]; there || r.URL.EscapedPath() != "/v1/invoices/in_1%2F..%2F..%2Fx%3F" {
		t.Errorf("the request was %s %v", r.URL, r.Header)
	}
}

func TestUnknownKindIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := stripeapi.New(stripeapi.Config{}).Object(t.Context(), "", "balance", "x"); err == nil {
		t.Error("no error")
	}
}

func TestWithoutKeyNothingIsAsked(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{}`))
	for name, key := range map[string]func(context.Context) (string, error){
		"none": nil, "blank": func(context.Context) (string, error) { return "", nil }, "empty": secret.Fixed(nil).Value,
	} {
		c := stripeapi.New(stripeapi.Config{URL: s.url, Key: key})
		if _, err := c.Object(t.Context(), "", "invoice", "in_1"); !errors.Is(err, stripeapi.ErrNoKey) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := len(s.seen()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestKeyThatCannotBeReadIsAnOutageOfItsStore(t *testing.T) {
	t.Parallel()
	c := stripeapi.New(stripeapi.Config{Key: func(context.Context) (string, error) { return "", context.DeadlineExceeded }})
	_, err := c.Object(t.Context(), "", "invoice", "in_1")
	if o := handler.Classify(err); o.Charged || o.Dependency != "secretsmanager" {
		t.Errorf("got %+v of %v", o, err)
	}
}

func TestAnswersAreClassified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status             int
		charged, throttled bool
		missing            bool
	}{
		{400, true, false, false}, {401, false, false, false}, {403, true, false, false}, {404, true, false, true},
		{429, false, true, false}, {500, false, false, false}, {503, false, false, false},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Request-Id", "req_1")
			w.WriteHeader(c.status)
			fmt.Fprint(w, `{"error":{"type":"invalid_request_error","code":"resource_missing","message":"No such card of a@example.com","param":"id"}}`)
		})
		_, err := s.client().Object(t.Context(), "", "invoice", "in_1")
		o := handler.Classify(err)
		if o.Charged != c.charged || o.Throttled != c.throttled || errors.Is(err, stripeapi.ErrMissing) != c.missing || o.Dependency != "stripe" {
			t.Errorf("%d: got %+v of %v", c.status, o, err)
		}
		if !c.charged && o.Delay != 7*time.Second {
			t.Errorf("%d: waits %v, want 7 s", c.status, o.Delay)
		}
		want := fmt.Sprintf("call stripe: Stripe answered %d, type invalid_request_error, code resource_missing, request req_1", c.status)
		if !strings.HasSuffix(o.Text, want) || strings.Contains(o.Text, "example.com") || strings.Contains(o.Text, "rk_fake") {
			t.Errorf("%d: the text is %q", c.status, o.Text)
		}
	}
}

func TestTextInPlaceOfACodeIsNotTold(t *testing.T) {
	t.Parallel()
	s := serve(t, say(402, `{"error":{"type":"card_error","code":"declined for a@example.com"}}`))
	_, err := s.client().Object(t.Context(), "", "charge", "ch_1")
	if want := "Stripe answered 402, type card_error, code ?, request "; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOddAnswersAreErrors(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"not JSON":  say(200, `<html>`),
		"too large": say(200, `"`+strings.Repeat("x", 9<<20)+`"`),
		"a text":    say(502, `bad gateway of a@example.com`),
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"id"`)
		},
	} {
		_, err := serve(t, answer).client().Object(t.Context(), "", "invoice", "in_1")
		if err == nil || strings.Contains(err.Error(), "example.com") || strings.Contains(err.Error(), "html") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestUnreachableStripeIsAnOutage(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(say(200, `{}`))
	s.Close()
	c := stripeapi.New(stripeapi.Config{URL: s.URL, Key: func(context.Context) (string, error) { return "rk_fake_key", nil }})
	_, err := c.Object(t.Context(), "", "invoice", "in_1")
	if o := handler.Classify(err); o.Charged || o.Dependency != "stripe" {
		t.Errorf("got %+v of %v", o, err)
	}
}

func TestListFollowsItsPages(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*stripeapi.Client) ([]json.RawMessage, bool, error){
		"/v1/invoices/in_1/lines": func(c *stripeapi.Client) ([]json.RawMessage, bool, error) {
			return c.InvoiceLines(t.Context(), "acct_1", "in_1")
		},
		"/v1/subscription_items?subscription=sub_1": func(c *stripeapi.Client) ([]json.RawMessage, bool, error) {
			return c.SubscriptionItems(t.Context(), "acct_1", "sub_1")
		},
		"/v1/entitlements/active_entitlements?customer=cus_1": func(c *stripeapi.Client) ([]json.RawMessage, bool, error) {
			return c.ActiveEntitlements(t.Context(), "acct_1", "cus_1")
		},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Query().Get("starting_after") {
			case "":
				fmt.Fprint(w, `{"data":[{"id":"a"},{"id":"b"}],"has_more":true}`)
			case "b":
				fmt.Fprint(w, `{"data":[{"id":"c"}],"has_more":false}`)
			default:
				w.WriteHeader(400)
			}
		})
		got, complete, err := read(s.client())
		if err != nil || !complete || len(got) != 3 || string(got[2]) != `{"id":"c"}` {
			t.Errorf("%s: %s, %v, %v", name, got, complete, err)
		}
		r := s.seen()[1]
		path, query, _ := strings.Cut(name, "?")
		if r.URL.Path != path || !strings.Contains(r.URL.RawQuery, query) || r.URL.Query().Get("limit") != "100" || r.Header.Get("Stripe-Account") != "acct_1" {
			t.Errorf("%s: the request was %s", name, r.URL)
		}
	}
}

func TestListThatDoesNotEndIsIncomplete(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page     string
		requests int
	}{
		"for ever":    {`{"data":[{"id":"a"}],"has_more":true}`, 100},
		"without ids": {`{"data":[{}],"has_more":true}`, 1},
		"empty":       {`{"data":[],"has_more":true}`, 1},
	} {
		s := serve(t, say(200, c.page))
		_, complete, err := s.client().InvoiceLines(t.Context(), "", "in_1")
		if err != nil || complete || len(s.seen()) != c.requests {
			t.Errorf("%s: complete %v, %v, %d requests", name, complete, err, len(s.seen()))
		}
	}
}

func TestListPassesErrorsOn(t *testing.T) {
	t.Parallel()
	for _, answer := range []http.HandlerFunc{say(500, ``), say(200, `[]`)} {
		if _, _, err := serve(t, answer).client().InvoiceLines(t.Context(), "", "in_1"); err == nil {
			t.Error("no error")
		}
	}
}

func TestRelatedObjectIsReadByItsPath(t *testing.T) {
	t.Parallel()
	s := serve(t, say(200, `{"id":"mtr_1"}`))
	got, err := s.client().Related(t.Context(), "", "/v2/core/accounts/acct_1?include=x")
	if err != nil || string(got) != `{"id":"mtr_1"}` || s.seen()[0].URL.String() != "/v2/core/accounts/acct_1?include=x" {
		t.Errorf("%s, %v", got, err)
	}
	for _, path := range []string{"", "https://example.com/v1/x", "//example.com/", "/v1", "@example.com/v1/"} {
		if _, err := s.client().Related(t.Context(), "", path); err == nil {
			t.Errorf("%q was asked for", path)
		}
	}
	if n := len(s.seen()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestOpenBreakerAsksNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, say(500, ``))
	ctx := handler.WithBreakers(t.Context(), handler.NewBreakers(time.Now), "evt_1")
	for range 15 {
		if _, err := s.client().Object(ctx, "", "invoice", "in_1"); err == nil {
			t.Fatal("no error")
		}
	}
	if n := len(s.seen()); n != 10 {
		t.Errorf("%d requests, want 10: then the breaker is open", n)
	}
	_, err := s.client().Object(ctx, "", "invoice", "in_1")
	if !errors.Is(err, handler.ErrOpen) || handler.Classify(err).Charged {
		t.Errorf("got %v", err)
	}
}
