package events

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"
)

// FreshOptions say what a fresh event is to be; the zero value makes all ids
// new and leaves the times as they are.
type FreshOptions struct {
	// Now becomes the time the event was created, in whole seconds; every other
	// time in the payload moves with it. Zero leaves all times alone.
	Now time.Time
	// EventID is the new event id, minted if empty.
	EventID string
	// Customer takes the place of every customer id in the payload; minted if
	// empty. A payload without a customer stays without.
	Customer string
	// ObjectID is the new id of the object the event carries, minted if empty.
	// Of an event that carries a customer, it is the same as Customer. An object
	// without an id (an upcoming invoice, a summary) stays without.
	ObjectID string
	// Account makes the event one of this connected account. Empty leaves the
	// envelope as it is.
	Account string
	// Rand is where minted ids come from; the same source gives the same ids.
	// Nil seeds one by chance.
	Rand *rand.Rand
}

func (o FreshOptions) random() *rand.Rand {
	if o.Rand != nil {
		return o.Rand
	}
	return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
}

// plainID is what any id of Stripe's is made of; others could break the JSON text.
var plainID = regexp.MustCompile(`^[A-Za-z0-9_]*$`)

func (o FreshOptions) check() error {
	for _, id := range []string{o.EventID, o.Customer, o.ObjectID, o.Account} {
		if !plainID.MatchString(id) {
			return fmt.Errorf("%q cannot be a Stripe id: letters, digits and _ only", id)
		}
	}
	return nil
}

// Fresh makes a new event of a sample: another event id, other object ids, other
// times. An id keeps its prefix and its length, and the same id becomes the same
// new one wherever it stands, inside URLs and client secrets too. What belongs
// to the seller's set-up keeps its id: prices, products, features, the account.
// Only ids and times are replaced, byte for byte: order of keys, indentation and
// everything else stay as they are.
func Fresh(sample []byte, opts FreshOptions) ([]byte, error) {
	head, err := readHead(sample)
	if err != nil {
		return nil, fmt.Errorf("read sample event: %w", err)
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	r := newRewriter(opts)
	if !opts.Now.IsZero() {
		r.shift = opts.Now.Unix() - head.created.Unix()
	}
	r.become(head.id, opts.EventID)
	if head.kind == "customer" {
		if opts.Customer != "" && opts.ObjectID != "" && opts.Customer != opts.ObjectID {
			return nil, fmt.Errorf("the event's object is a customer: it cannot be both %s and %s", opts.Customer, opts.ObjectID)
		}
		r.customer = cmp.Or(opts.Customer, opts.ObjectID)
	} else {
		r.become(head.objectID, opts.ObjectID)
	}
	out, err := r.rewrite(sample)
	if err != nil {
		return nil, fmt.Errorf("rewrite sample event: %w", err)
	}
	if opts.Account != "" {
		if out, err = setAccount(out, opts.Account); err != nil {
			return nil, fmt.Errorf("set the event's account: %w", err)
		}
	}
	return out, nil
}

// head is what Fresh needs to know of an event.
type head struct {
	id, objectID, kind string
	created            time.Time
}

func readHead(event []byte) (head, error) {
	type object struct {
		ID     string `json:"id"`
		Object string `json:"object"`
		Type   string `json:"type"`
	}
	var env struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Created json.RawMessage `json:"created"`
		Data    struct {
			Object object `json:"object"`
		} `json:"data"`
		Related object `json:"related_object"`
	}
	if err := json.Unmarshal(event, &env); err != nil {
		return head{}, err
	}
	if env.ID == "" {
		return head{}, errors.New("it has no id")
	}
	h := head{id: env.ID, objectID: env.Data.Object.ID, kind: env.Data.Object.Object}
	if env.Object == ThinObject {
		h.objectID, h.kind = env.Related.ID, env.Related.Type
		if err := json.Unmarshal(env.Created, &h.created); err != nil {
			return head{}, fmt.Errorf("created: %w", err)
		}
		return h, nil
	}
	var seconds int64
	if err := json.Unmarshal(env.Created, &seconds); err != nil {
		return head{}, fmt.Errorf("created: %w", err)
	}
	h.created = time.Unix(seconds, 0)
	return h, nil
}

// setAccount writes the connected account into the envelope, where Stripe puts
// it: account after object, or the context of a thin notification. A new key
// repeats the white space around the key before it.
func setAccount(event []byte, account string) ([]byte, error) {
	tokens, err := scan(event)
	if err != nil {
		return nil, err
	}
	value := strconv.AppendQuote(nil, account)
	key := "account"
	for _, t := range tokens {
		if t.depth == 1 && t.key == "object" && !t.isKey && string(event[t.start:t.end]) == `"`+ThinObject+`"` {
			key = "context"
		}
	}
	at := -1
	for i, t := range tokens {
		switch {
		case t.depth != 1 || t.isKey:
		case t.key == key:
			return splice(event, t.start, t.end, value), nil
		case t.key == "object":
			at = i
		}
	}
	if at < 1 {
		return nil, errors.New("the envelope has no object")
	}
	objectKey, object := tokens[at-1], tokens[at]
	before := event[:objectKey.start]
	from := len(before)
	for from > 0 && (isSpace(before[from-1]) || before[from-1] == ',') {
		from--
	}
	entry := []byte(",")
	for _, c := range before[from:] {
		if isSpace(c) {
			entry = append(entry, c)
		}
	}
	entry = fmt.Appendf(entry, "%q%s%s", key, event[objectKey.end:object.start], value)
	return splice(event, object.end, object.end, entry), nil
}

func splice(text []byte, start, end int, with []byte) []byte {
	out := make([]byte, 0, len(text)+len(with))
	out = append(out, text[:start]...)
	out = append(out, with...)
	return append(out, text[end:]...)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
