package stripefake

import (
	"encoding/json"
	"net/http"
	"strings"
)

// find returns the newest snapshot of an object the events told of.
func (s *Server) find(r *http.Request, id string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.objects[r.Header.Get("Stripe-Account")+"/"+id]
	return found.body, ok
}

func (s *Server) getObject(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	body, ok := s.find(r, id)
	if !ok {
		refuse(w, http.StatusNotFound, "invalid_request_error", "resource_missing", "No such object: '"+id+"'")
		return
	}
	answer(w, body)
}

// embedded answers a list that stands whole in an object under a field.
func (s *Server) embedded(w http.ResponseWriter, r *http.Request, id, field string) {
	body, ok := s.find(r, id)
	if !ok {
		refuse(w, http.StatusNotFound, "invalid_request_error", "resource_missing", "No such object: '"+id+"'")
		return
	}
	var fields map[string]json.RawMessage
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields[field], &list) != nil || list.Data == nil {
		list.Data = []json.RawMessage{}
	}
	answer(w, map[string]any{"object": "list", "url": r.URL.Path, "has_more": false, "data": list.Data})
}

func (s *Server) listLines(w http.ResponseWriter, r *http.Request) {
	s.embedded(w, r, r.PathValue("id"), "lines")
}

func (s *Server) listItems(w http.ResponseWriter, r *http.Request) {
	s.embedded(w, r, r.URL.Query().Get("subscription"), "items")
}

// listEntitlements takes them from the newest summary of the customer, which has no id of its own.
func (s *Server) listEntitlements(w http.ResponseWriter, r *http.Request) {
	customer := r.URL.Query().Get("customer")
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.accounts[r.Header.Get("Stripe-Account")]
	data := []json.RawMessage{}
	for i := len(list) - 1; i >= 0; i-- {
		if !strings.HasPrefix(list[i].kind, "entitlements.") {
			continue
		}
		var e struct {
			Data struct {
				Object struct {
					Customer     string `json:"customer"`
					Entitlements struct {
						Data []json.RawMessage `json:"data"`
					} `json:"entitlements"`
				} `json:"object"`
			} `json:"data"`
		}
		if json.Unmarshal(list[i].body, &e) == nil && e.Data.Object.Customer == customer {
			data = append(data, e.Data.Object.Entitlements.Data...)
			break
		}
	}
	answer(w, map[string]any{"object": "list", "url": r.URL.Path, "has_more": false, "data": data})
}
