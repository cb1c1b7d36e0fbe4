package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

// Story is what one business episode makes Stripe send.
type Story struct {
	// Name is the file name without its ending, such as "dunning".
	Name string `json:"name"`
	// Title says in one sentence what happens.
	Title string `json:"title"`
	// Events are whole event bodies as Stripe posts them, in the order in which
	// things happened. Stripe promises no order of delivery.
	Events []json.RawMessage `json:"events"`
	// Final is the truth at the end, as rows by kind and id. Kinds: customers,
	// subscriptions, invoices, payments (by payment intent, else charge) and
	// entitlements (customer id to a list of lookup keys, in no order).
	Final map[string]map[string]json.RawMessage `json:"final"`
	// Stripe is the truth at the end as Stripe's API answers it.
	Stripe StripeState `json:"stripe"`

	text []byte
}

// StripeState is what Stripe's API answers after a story.
type StripeState struct {
	// Objects answer a retrieval by id. A deleted customer is the stub
	// {"id", "object", "deleted": true}.
	Objects map[string]json.RawMessage `json:"objects"`
	// ActiveEntitlements answer the list of a customer's active entitlements,
	// by customer id.
	ActiveEntitlements map[string]json.RawMessage `json:"active_entitlements"`
}

// Stories are all stories, sorted by name.
func Stories() ([]Story, error) {
	entries, err := files.ReadDir("stories")
	if err != nil {
		return nil, fmt.Errorf("list stories: %w", err)
	}
	stories := make([]Story, len(entries))
	for i, e := range entries {
		name, _ := strings.CutSuffix(e.Name(), ".json")
		if stories[i], err = FindStory(name); err != nil {
			return nil, err
		}
	}
	return stories, nil
}

// FindStory is one story by its name. An unknown name is an error that matches
// fs.ErrNotExist.
func FindStory(name string) (Story, error) {
	text, err := read(path.Join("stories", name+".json"))
	if err != nil {
		return Story{}, err
	}
	s, err := readStory(text)
	if err != nil {
		return Story{}, fmt.Errorf("read story %s: %w", name, err)
	}
	return s, nil
}

func readStory(text []byte) (Story, error) {
	s := Story{text: text}
	if err := json.Unmarshal(text, &s); err != nil {
		return Story{}, err
	}
	if len(s.Events) == 0 {
		return Story{}, errors.New("it has no events")
	}
	for i, e := range s.Events {
		// In the file the events are indented deeper than on the wire.
		var body bytes.Buffer
		if err := json.Indent(&body, e, "", "  "); err != nil {
			return Story{}, fmt.Errorf("event %d: %w", i, err)
		}
		s.Events[i] = body.Bytes()
	}
	return s, nil
}

// Fresh makes the same story happen to somebody else: new ids throughout events
// and final state, consistently, and times moved so that the last event is
// created at opts.Now. EventID and ObjectID have no meaning for a whole story
// and must be empty.
func (s Story) Fresh(opts FreshOptions) (Story, error) {
	if opts.EventID != "" || opts.ObjectID != "" {
		return Story{}, errors.New("a story has many events and objects: one id cannot be chosen")
	}
	if err := opts.check(); err != nil {
		return Story{}, err
	}
	r := newRewriter(opts)
	if !opts.Now.IsZero() {
		var last time.Time
		for _, e := range s.Events {
			h, err := readHead(e)
			if err != nil {
				return Story{}, fmt.Errorf("read event of story %s: %w", s.Name, err)
			}
			if h.created.After(last) {
				last = h.created
			}
		}
		r.shift = opts.Now.Unix() - last.Unix()
	}
	text, err := r.rewrite(s.text)
	if err != nil {
		return Story{}, fmt.Errorf("rewrite story %s: %w", s.Name, err)
	}
	fresh, err := readStory(text)
	if err != nil {
		return Story{}, fmt.Errorf("read fresh story %s: %w", s.Name, err)
	}
	for i, e := range fresh.Events {
		if opts.Account == "" {
			break
		}
		if fresh.Events[i], err = setAccount(e, opts.Account); err != nil {
			return Story{}, fmt.Errorf("set the account of story %s: %w", s.Name, err)
		}
	}
	return fresh, nil
}
