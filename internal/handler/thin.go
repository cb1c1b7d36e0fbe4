package handler

import "encoding/json"

// RelatedObject is what a thin event is about (Stripe API Reference, "The Event object" of v2).
type RelatedObject struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	URL  string `json:"url"` // path of Stripe's API where it is read
}

// RelatedObject returns what a thin event is about; it is empty for other events, and for thin ones about nothing.
func (e Event) RelatedObject() RelatedObject {
	var body struct {
		Related RelatedObject `json:"related_object"`
	}
	if !e.Thin || json.Unmarshal(e.Body, &body) != nil {
		return RelatedObject{}
	}
	return body.Related
}
