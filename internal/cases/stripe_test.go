package cases

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"
)

// stripeStub answers a process's requests to Stripe's API from what the case says: objects by their kind and id, or
// pages by request line.
type stripeStub struct {
	p    *proc
	list *eventList // of the events; nil: there is none
}

func (s *stripeStub) RoundTrip(r *http.Request) (*http.Response, error) {
	p, w := s.p, s.p.w
	p.stopIfDead()
	w.mu.Lock()
	f := p.take(r.URL.Path, func(f *fault) bool { return f.Point == "stripe_api" })
	w.mu.Unlock()
	if f != nil {
		switch f.Kind {
		case "error", "timeout_after_commit", "transaction_conflict", "transaction_cancelled", "idempotent_parameter_mismatch":
			return reply(r, http.StatusInternalServerError, `{"error":{"type":"api_error"}}`), nil
		case "throttle":
			return reply(r, http.StatusTooManyRequests, `{"error":{"type":"invalid_request_error","code":"rate_limit"}}`), nil
		case "crash":
			p.die()
		case "panic":
			panic("an injected panic")
		case "hang":
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-p.life.Done():
				runtime.Goexit()
			}
		case "hang_then_error":
			time.Sleep(f.duration(3 * time.Second))
			return reply(r, http.StatusInternalServerError, `{"error":{"type":"api_error"}}`), nil
		case "stall_until":
			p.stall(f)
		}
	}
	if s.list != nil && r.URL.Path == "/v1/events" {
		body, err := s.list.answer(r.URL.Query())
		return reply(r, http.StatusOK, body), err
	}
	status, body := w.stripe(r)
	return reply(r, status, body), nil
}

func reply(r *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: r}
}

func (w *world) stripe(r *http.Request) (int, string) {
	line := r.Method + " " + r.URL.Path
	after := r.URL.Query().Get("starting_after")
	for name, raw := range w.variant.StripeAPI {
		path, query, _ := strings.Cut(name, "?")
		if path != line || !strings.Contains(r.URL.RawQuery, query) {
			continue
		}
		var paged struct {
			Pages []json.RawMessage
		}
		if json.Unmarshal(raw, &paged) != nil || paged.Pages == nil {
			return http.StatusOK, string(raw)
		}
		for _, page := range paged.Pages {
			var at struct {
				StartingAfter *string `json:"starting_after"`
			}
			if json.Unmarshal(page, &at) == nil && (at.StartingAfter == nil && after == "" || at.StartingAfter != nil && *at.StartingAfter == after) {
				return http.StatusOK, string(page)
			}
		}
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	if r.Method == http.MethodGet && len(parts) >= 2 {
		kind, id := strings.Join(parts[:len(parts)-1], "/"), parts[len(parts)-1]
		for _, name := range []string{kind, strings.ReplaceAll(kind, "/", "."), strings.ReplaceAll(kind, "/", "_"), parts[len(parts)-2]} {
			var byID map[string]json.RawMessage
			if json.Unmarshal(w.variant.StripeAPI[name], &byID) == nil && byID[id] != nil {
				return http.StatusOK, string(byID[id])
			}
		}
	}
	return http.StatusNotFound, fmt.Sprintf(`{"error":{"type":"invalid_request_error","code":"resource_missing","message":%q}}`, "no such object")
}
