package stripefake

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxEndpoints is how many endpoints Stripe lets an account have (Stripe documentation, "Webhooks").
const maxEndpoints = 16

// Endpoint is a webhook endpoint. Secret is shown by the API only where it is created.
type Endpoint struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	APIVersion    string            `json:"api_version"`
	Created       int64             `json:"created"`
	Description   string            `json:"description"`
	EnabledEvents []string          `json:"enabled_events"`
	Livemode      bool              `json:"livemode"`
	Metadata      map[string]string `json:"metadata"`
	Status        string            `json:"status"`
	URL           string            `json:"url"`
	Secret        string            `json:"secret,omitempty"`
}

// Endpoints returns the endpoints there are, with their secrets, oldest first.
func (s *Server) Endpoints() []Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Endpoint, len(s.endpoints))
	for i, e := range s.endpoints {
		list[i] = e.copy()
	}
	return list
}

// Disable disables an endpoint, as Stripe does after days of failures.
func (s *Server) Disable(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		if e.ID == id {
			e.Status = "disabled"
		}
	}
}

func (e *Endpoint) copy() Endpoint {
	c := *e
	c.EnabledEvents, c.Metadata = slices.Clone(e.EnabledEvents), maps.Clone(e.Metadata)
	return c
}

// shown is the endpoint without its secret.
func (e *Endpoint) shown() Endpoint {
	c := e.copy()
	c.Secret = ""
	return c
}

func (s *Server) listEndpoints(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := []Endpoint{}
	for i := len(s.endpoints) - 1; i >= 0; i-- {
		data = append(data, s.endpoints[i].shown())
	}
	answer(w, map[string]any{"object": "list", "url": "/v1/webhook_endpoints", "has_more": false, "data": data})
}

func (s *Server) createEndpoint(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "", err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.endpoints) == maxEndpoints {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "", "You have reached the maximum of 16 webhook endpoints.")
		return
	}
	s.numbers++
	e := &Endpoint{
		ID: fmt.Sprintf("we_fake%d", s.numbers), Object: "webhook_endpoint", Created: s.opts.Now().Unix(), Status: "enabled",
		Metadata: map[string]string{}, Secret: "whsec_" + rand.Text(), APIVersion: r.PostForm.Get("api_version"),
	}
	e.change(r.PostForm)
	if e.URL == "" || len(e.EnabledEvents) == 0 {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "parameter_missing", "Missing required param: url or enabled_events.")
		return
	}
	s.endpoints = append(s.endpoints, e)
	answer(w, e.copy())
}

// change applies what a form names.
func (e *Endpoint) change(form url.Values) {
	var events []string
	for i := 0; form.Has(fmt.Sprintf("enabled_events[%d]", i)); i++ {
		events = append(events, form.Get(fmt.Sprintf("enabled_events[%d]", i)))
	}
	if events != nil {
		e.EnabledEvents = events
	}
	for name, values := range form {
		switch {
		case name == "url":
			e.URL = values[0]
		case name == "description":
			e.Description = values[0]
		case name == "disabled" && values[0] == "true":
			e.Status = "disabled"
		case name == "disabled":
			e.Status = "enabled"
		case strings.HasPrefix(name, "metadata["):
			if key := strings.TrimSuffix(strings.TrimPrefix(name, "metadata["), "]"); values[0] == "" {
				delete(e.Metadata, key)
			} else {
				e.Metadata[key] = values[0]
			}
		}
	}
}

// one finds the endpoint a request names; the caller holds mu.
func (s *Server) one(w http.ResponseWriter, r *http.Request) *Endpoint {
	id := r.PathValue("id")
	if at := slices.IndexFunc(s.endpoints, func(e *Endpoint) bool { return e.ID == id }); at >= 0 {
		return s.endpoints[at]
	}
	refuse(w, http.StatusNotFound, "invalid_request_error", "resource_missing", "No such webhook endpoint: '"+id+"'")
	return nil
}

func (s *Server) getEndpoint(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.one(w, r); e != nil {
		answer(w, e.shown())
	}
}

func (s *Server) updateEndpoint(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "", err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.PostForm.Has("api_version") {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "parameter_unknown", "Received unknown parameter: api_version")
		return
	}
	if e := s.one(w, r); e != nil {
		e.change(r.PostForm)
		answer(w, e.shown())
	}
}

func (s *Server) deleteEndpoint(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.one(w, r); e != nil {
		s.endpoints = slices.DeleteFunc(s.endpoints, func(other *Endpoint) bool { return other == e })
		answer(w, map[string]any{"id": e.ID, "object": "webhook_endpoint", "deleted": true})
	}
}
