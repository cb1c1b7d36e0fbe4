// Package stripefake answers the parts of Stripe's API that the pipeline and its operators use, from memory: the list
// of events with its paging and filters, webhook endpoints, and the objects that the events tell of. Stripe's own
// stripe-mock answers every path but remembers nothing, so it cannot know which events happened.
//
// The development command starts it and `backstop send` tells it what happened; tests plant faults in it. It answers as
// the Stripe API Reference describes ("List all events", "Webhook Endpoints", "Pagination", "Errors"), and refuses
// what it does not know.
package stripefake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// RegisterPath is where events are told to the fake: POST a JSON array of event bodies. It is not part of Stripe's API.
const RegisterPath = "/fake/events"

// DeliveredPath is where the fake is told which events have been delivered: POST a JSON array of event ids.
const DeliveredPath = "/fake/delivered"

// maxRegistered bounds one POST of events.
const maxRegistered = 256 << 20

// Options configure a Server; all are optional.
type Options struct {
	Now func() time.Time // default time.Now

	// Fault is asked about each request before anything happens; a status other than 0 is answered instead.
	Fault func(*http.Request) Fault
}

// Fault is an answer in the place of the right one.
type Fault struct {
	Status     int
	RetryAfter int // seconds; 0: no header
}

// Server is the fake. Make it with New. It is safe for concurrent use.
type Server struct {
	opts Options
	mux  *http.ServeMux

	mu        sync.Mutex
	accounts  map[string][]happened // by account, oldest first
	known     map[string]bool       // by account and id
	objects   map[string]object     // by account and id
	endpoints []*Endpoint
	numbers   int // of what was made
	calls     map[string]int
}

// happened is one event.
type happened struct {
	id, kind string
	created  int64
	pending  int             // endpoints it is still to be delivered to
	told     int             // the same, as the body says
	body     json.RawMessage // as the list shows it
}

// shown is the event as Stripe shows it: with what is still to be delivered, and otherwise as it came.
func (h happened) shown() json.RawMessage {
	if h.pending == h.told {
		return h.body
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(h.body, &fields) != nil {
		return h.body
	}
	fields["pending_webhooks"] = json.RawMessage(strconv.Itoa(h.pending))
	body, err := json.Marshal(fields)
	if err != nil {
		return h.body
	}
	return body
}

// object is the newest snapshot of an object.
type object struct {
	created int64 // of the event it is from
	body    json.RawMessage
}

// New returns a fake to which nothing has happened.
func New(opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{opts: opts, mux: http.NewServeMux(), accounts: map[string][]happened{}, known: map[string]bool{}, objects: map[string]object{}, calls: map[string]int{}}
	s.mux.HandleFunc("POST "+RegisterPath, s.register)
	s.mux.HandleFunc("POST "+DeliveredPath, s.delivered)
	s.mux.HandleFunc("GET /v1/events", s.listEvents)
	s.mux.HandleFunc("GET /v1/events/{id}", s.getEvent)
	s.mux.HandleFunc("GET /v1/webhook_endpoints", s.listEndpoints)
	s.mux.HandleFunc("POST /v1/webhook_endpoints", s.createEndpoint)
	s.mux.HandleFunc("GET /v1/webhook_endpoints/{id}", s.getEndpoint)
	s.mux.HandleFunc("POST /v1/webhook_endpoints/{id}", s.updateEndpoint)
	s.mux.HandleFunc("DELETE /v1/webhook_endpoints/{id}", s.deleteEndpoint)
	s.mux.HandleFunc("GET /v1/invoices/{id}/lines", s.listLines)
	s.mux.HandleFunc("GET /v1/subscription_items", s.listItems)
	s.mux.HandleFunc("GET /v1/entitlements/active_entitlements", s.listEntitlements)
	s.mux.HandleFunc("GET /v1/checkout/sessions/{id}", s.getObject)
	s.mux.HandleFunc("GET /v1/{collection}/{id}", s.getObject)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "invalid_request_error", "", "Unrecognized request URL")
	})
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.opts.Now().UTC().Format(http.TimeFormat))
	if r.URL.Path != RegisterPath && r.URL.Path != DeliveredPath {
		s.mu.Lock()
		s.numbers++
		w.Header().Set("Request-Id", fmt.Sprintf("req_fake%d", s.numbers))
		s.calls[r.Method+" "+r.URL.Path]++
		s.mu.Unlock()
		if s.opts.Fault != nil {
			if f := s.opts.Fault(r); f.Status != 0 {
				if f.RetryAfter > 0 {
					w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
				}
				refuse(w, f.Status, "api_error", "", "planted")
				return
			}
		}
		if key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); !strings.HasPrefix(key, "sk_") && !strings.HasPrefix(key, "rk_") {
			refuse(w, http.StatusUnauthorized, "invalid_request_error", "", "Invalid API Key provided")
			return
		}
	}
	s.mux.ServeHTTP(w, r)
}

// Calls is how often a method and path were asked for, such as "GET /v1/events".
func (s *Server) Calls(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[request]
}

// Register makes events happen. An event with an account happens in that account's list, which does not name it.
func (s *Server) Register(bodies ...json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range bodies {
		if err := s.add(body); err != nil {
			return err
		}
	}
	for account := range s.accounts {
		slices.SortStableFunc(s.accounts[account], func(a, b happened) int { return int(a.created - b.created) })
	}
	return nil
}

func (s *Server) add(body json.RawMessage) error {
	var envelope struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Type    string          `json:"type"`
		Account string          `json:"account"`
		Created json.RawMessage `json:"created"`
		Pending int             `json:"pending_webhooks"`
		Data    struct {
			Object json.RawMessage `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	if envelope.Object != "event" {
		return nil // a notification of API v2 is not in the list
	}
	created, err := strconv.ParseInt(string(envelope.Created), 10, 64)
	if err != nil || envelope.ID == "" {
		return fmt.Errorf("event %q has no id or no time", envelope.ID)
	}
	listed := slices.Clone(body)
	if envelope.Account != "" {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			return err
		}
		delete(fields, "account")
		if listed, err = json.Marshal(fields); err != nil {
			return err
		}
	}
	if s.known[envelope.Account+"/"+envelope.ID] {
		return nil
	}
	s.known[envelope.Account+"/"+envelope.ID] = true
	s.accounts[envelope.Account] = append(s.accounts[envelope.Account], happened{envelope.ID, envelope.Type, created, envelope.Pending, envelope.Pending, listed})

	var about struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(envelope.Data.Object, &about) == nil && about.ID != "" {
		key := envelope.Account + "/" + about.ID
		if known, ok := s.objects[key]; !ok || known.created <= created {
			s.objects[key] = object{created, slices.Clone(envelope.Data.Object)}
		}
	}
	return nil
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRegistered))
	var bodies []json.RawMessage
	if err == nil {
		err = json.Unmarshal(body, &bodies)
	}
	if err == nil {
		err = s.Register(bodies...)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "", err.Error())
		return
	}
	answer(w, map[string]any{"registered": len(bodies)})
}

// Delivered says that events have been delivered to every endpoint.
func (s *Server) Delivered(ids ...string) {
	done := make(map[string]bool, len(ids))
	for _, id := range ids {
		done[id] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.accounts {
		for i := range list {
			if done[list[i].id] {
				list[i].pending = 0
			}
		}
	}
}

func (s *Server) delivered(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRegistered))
	var ids []string
	if err == nil {
		err = json.Unmarshal(body, &ids)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "", err.Error())
		return
	}
	s.Delivered(ids...)
	answer(w, map[string]any{"delivered": len(ids)})
}

// listEvents pages through an account's events, the newest first.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	list := slices.Clone(s.accounts[r.Header.Get("Stripe-Account")])
	s.mu.Unlock()
	slices.Reverse(list)
	q := r.URL.Query()
	oldest := s.opts.Now().Add(-30 * 24 * time.Hour).Unix()
	types := append(slices.Clone(q["types[]"]), q["type"]...)
	keep := func(h happened) bool {
		return h.created >= oldest &&
			(len(types) == 0 || slices.Contains(types, h.kind)) &&
			(q.Get("delivery_success") == "" || (q.Get("delivery_success") == "true") == (h.pending == 0)) &&
			bound(q.Get("created[gte]"), func(n int64) bool { return h.created >= n }) &&
			bound(q.Get("created[gt]"), func(n int64) bool { return h.created > n }) &&
			bound(q.Get("created[lte]"), func(n int64) bool { return h.created <= n }) &&
			bound(q.Get("created[lt]"), func(n int64) bool { return h.created < n })
	}
	for name := range q {
		if !slices.Contains([]string{"limit", "starting_after", "types[]", "type", "delivery_success", "created[gte]", "created[gt]", "created[lte]", "created[lt]"}, name) {
			refuse(w, http.StatusBadRequest, "invalid_request_error", "parameter_unknown", "Received unknown parameter: "+name)
			return
		}
	}
	limit := 10
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			refuse(w, http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "limit: want 1 to 100")
			return
		}
		limit = n
	}
	start := 0
	if after := q.Get("starting_after"); after != "" {
		at := slices.IndexFunc(list, func(h happened) bool { return h.id == after })
		if at < 0 {
			refuse(w, http.StatusBadRequest, "invalid_request_error", "resource_missing", "No such notification: '"+after+"'")
			return
		}
		start = at + 1
	}
	data, more := []json.RawMessage{}, false
	for _, h := range list[start:] {
		if !keep(h) {
			continue
		}
		if len(data) == limit {
			more = true
			break
		}
		data = append(data, h.shown())
	}
	answer(w, map[string]any{"object": "list", "url": "/v1/events", "has_more": more, "data": data})
}

func bound(text string, holds func(int64) bool) bool {
	if text == "" {
		return true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && holds(n)
}

func (s *Server) getEvent(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.accounts[r.Header.Get("Stripe-Account")] {
		if h.id == r.PathValue("id") {
			answer(w, h.shown())
			return
		}
	}
	refuse(w, http.StatusNotFound, "invalid_request_error", "resource_missing", "No such notification: '"+r.PathValue("id")+"'")
}

// answer writes a value as Stripe does.
func answer(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "api_error", "", "the answer cannot be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.Copy(w, bytes.NewReader(body)) // nothing is left to tell a client that went away
}

func refuse(w http.ResponseWriter, status int, kind, code, message string) {
	fields := map[string]string{"type": kind, "message": message}
	if code != "" {
		fields["code"] = code
	}
	body, _ := json.Marshal(map[string]any{"error": fields}) // strings always marshal
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // nothing is left to tell a client that went away
}
