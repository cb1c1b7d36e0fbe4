package billing

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// ref is the id of another object. Stripe sends the id, or the object where it was expanded, or null (Stripe API
// Reference, "Expanding responses").
type ref string

func (r *ref) UnmarshalJSON(value []byte) error {
	value = bytes.TrimSpace(value)
	switch {
	case bytes.Equal(value, []byte("null")):
		*r = ""
		return nil
	case len(value) > 0 && value[0] == '{':
		var expanded struct {
			ID string `json:"id"`
		}
		err := json.Unmarshal(value, &expanded)
		*r = ref(expanded.ID)
		return err
	case len(value) > 0 && value[0] == '"':
		return json.Unmarshal(value, (*string)(r))
	}
	return errors.New("neither an id nor an object nor null")
}

// list is an embedded list, of which Stripe sends the first elements only.
type list[T any] struct {
	Data    []T  `json:"data"`
	HasMore bool `json:"has_more"`
}

// maxID is the longest id of Stripe's (Stripe documentation, "Upgrades: Stripe object IDs").
const maxID = 255

// usable reports whether an id can be a key. Previews have none, or an empty one.
func usable(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// What is absent is nil, which removes the attribute: a zero that Stripe did not send is never stored as one.

func text[S ~string](s S) any {
	if s == "" {
		return nil
	}
	return string(s)
}

func number(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// flag keeps only true: a row reads the same either way, and most flags are false.
func flag(b bool) any {
	if !b {
		return nil
	}
	return true
}

// short cuts text a person wrote, between characters: rows are billed by the kilobyte.
func short(s string, limit int) string {
	s = string(bytes.ToValidUTF8([]byte(s), []byte("?")))
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// fields makes a nested map, leaving out what is absent.
func fields(pairs map[string]any) map[string]any {
	for name, value := range pairs {
		if value == nil {
			delete(pairs, name)
		}
	}
	return pairs
}
