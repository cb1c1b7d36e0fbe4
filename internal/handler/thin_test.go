package handler_test

import (
	"encoding/json"
	"testing"

	"backstop/internal/handler"
)

func TestThinEventSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	const thin = `{"id":"evt_1","object":"v2.core.event","related_object":{"id":"mtr_1","type":"billing.meter","url":"/v1/billing/meters/mtr_1"}}`
	about := handler.RelatedObject{ID: "mtr_1", Type: "billing.meter", URL: "/v1/billing/meters/mtr_1"}
	for name, c := range map[string]struct {
		event handler.Event
		want  handler.RelatedObject
	}{
		"thin":          {handler.Event{Thin: true, Body: json.RawMessage(thin)}, about},
		"about nothing": {handler.Event{Thin: true, Body: json.RawMessage(`{"id":"evt_1","related_object":null}`)}, handler.RelatedObject{}},
		"odd":           {handler.Event{Thin: true, Body: json.RawMessage(`{"related_object":7}`)}, handler.RelatedObject{}},
		"a snapshot":    {handler.Event{Body: json.RawMessage(thin)}, handler.RelatedObject{}},
	} {
		if got := c.event.RelatedObject(); got != c.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
