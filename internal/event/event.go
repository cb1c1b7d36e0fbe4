// Package event reads the envelope of a Stripe event: what is common to all of them and decides where an event goes,
// never the business object inside, which belongs to the handlers.
//
// It is tolerant where Stripe may vary and strict where we would be harmed. Absent, null and unknown fields are fine,
// the order of fields is free, of a field that stands twice the last counts, `request` may be an object, a string or
// null (it is not read), and api_version is reported and never judged. Two shapes are known (Stripe API Reference,
// "The Event object", v1 and v2):
//
//   - a snapshot: object "event", created in seconds, the object in data.object;
//   - a thin notification of API v2: object "v2.core.event", created in RFC 3339, a related_object and no snapshot.
//
// What is not JSON, is not an object, has no id or no type, or says it is another kind of object, is no event and is
// refused with a Reason. So is an id that could not be a part of the ledger's key.
//
// # Group
//
// Events that name the same customer share a message group and are handled one at a time in the order they were
// accepted. The group is the first of:
//
//  1. the object's customer, given as id or as expanded object;
//  2. the object itself, if it is a customer;
//  3. previous_attributes.customer: an object detached from its customer belongs to that customer's order;
//  4. the payment intent, then charge, invoice or subscription that the object is or belongs to, so that a guest's
//     payment, its charge, its refund and its dispute share a group although none of them names a customer;
//  5. the object;
//  6. the account.
//
// It begins with the account when there is one: objects of two accounts may have equal ids.
//
// The package is pure and reads a body in one pass without copying it.
package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"backstop/internal/jsonscan"
)

// Source is the first part of the ledger's key: whose events these are.
const Source = "stripe"

// MaxID is the longest id, type or account taken. Stripe's ids are at most 255 characters long (Stripe documentation,
// "API upgrades", backward-compatible changes).
const MaxID = 255

// maxGroup is the longest message group id SQS takes (Amazon SQS API Reference, "SendMessage").
const maxGroup = 128

// Reason says why a body is not an event. It is an error; errors.As finds it.
type Reason string

// The reasons.
const (
	NotJSON    Reason = "not_json"
	NotObject  Reason = "not_an_object"
	NotEvent   Reason = "not_an_event"
	NoID       Reason = "no_event_id"
	BadID      Reason = "bad_event_id"
	NoType     Reason = "no_event_type"
	BadType    Reason = "bad_event_type"
	BadAccount Reason = "bad_account"
)

func (r Reason) Error() string { return "the body is not an event: " + string(r) }

// Event is the envelope.
type Event struct {
	ID         string
	Type       string
	APIVersion string // empty when the envelope names none
	Account    string // the connected account, or empty for the platform's own
	CreatedS   int64  // Stripe's clock; 0 when the envelope does not say
	Livemode   bool
	Thin       bool // a notification of API v2, without a snapshot

	ObjectID    string // of data.object, or of a thin event's related_object; some objects have none
	ObjectKind  string // its `object`, or the related object's type
	CustomerRef string // the customer the event is about, by rules 1 to 3 of Group; may be empty
	Ref         string // what Group names within the account; may be empty
	Group       string // message group key; never empty

	// Object and Previous are data.object and data.previous_attributes as they stand in the body, without a copy:
	// they live and change with it. Nil when absent or null.
	Object, Previous []byte
}

// Key returns the ledger's key of the event with this id: <source>#<account or ->#<event id>. Deliveries and audit
// both ask this function, so that they cannot disagree about what one event is.
func Key(source, account, id string) string {
	if account == "" {
		account = none
	}
	return source + "#" + account + "#" + id
}

// Key returns the event's key in the ledger. The account is the envelope's, else the one the event was listed with;
// a delivery was not listed and passes none.
func (e Event) Key(listed string) string {
	if e.Account != "" {
		listed = e.Account
	}
	return Key(Source, listed, e.ID)
}

// Within returns the event as one of the account it was listed with, unless its envelope names one: Stripe's list of a
// connected account's events leaves out what it was asked for. Key and Group are then those of its delivery.
func (e Event) Within(listed string) Event {
	if e.Account == "" && listed != "" {
		e.Account = listed
		e.Group = group(listed, e.Ref)
	}
	return e
}

// envelope holds the raw values of the fields in use, as they stood last in the body.
type envelope struct {
	id, object, kind, apiVersion, account, context, created, livemode []byte
	data                                                              data
	related                                                           object
}

type data struct {
	object   object
	previous object
}

// Parse reads the envelope of body. Its errors are a Reason.
func Parse(body []byte) (Event, error) {
	scanner := jsonscan.New(body)
	if scanner.Next() != '{' {
		if _, err := scanner.Value(); err != nil || scanner.End() != nil {
			return Event{}, NotJSON
		}
		return Event{}, NotObject
	}
	var e envelope
	if err := e.read(&scanner); err != nil || scanner.End() != nil {
		return Event{}, NotJSON
	}
	return e.event()
}

func (e *envelope) read(s *jsonscan.Scanner) error {
	return s.Object(func(key []byte) (err error) {
		switch string(key) {
		case "id":
			e.id, err = s.Value()
		case "object":
			e.object, err = s.Value()
		case "type":
			e.kind, err = s.Value()
		case "api_version":
			e.apiVersion, err = s.Value()
		case "account":
			e.account, err = s.Value()
		case "context":
			e.context, err = s.Value()
		case "created":
			e.created, err = s.Value()
		case "livemode":
			e.livemode, err = s.Value()
		case "data":
			e.data = data{}
			err = e.data.read(s)
		case "related_object":
			e.related = object{}
			err = e.related.read(s)
		default:
			_, err = s.Value()
		}
		return err
	})
}

func (d *data) read(s *jsonscan.Scanner) error {
	if s.Next() != '{' {
		_, err := s.Value()
		return err
	}
	return s.Object(func(key []byte) (err error) {
		switch string(key) {
		case "object":
			d.object = object{}
			err = d.object.read(s)
		case "previous_attributes":
			d.previous = object{}
			err = d.previous.read(s)
		default:
			_, err = s.Value()
		}
		return err
	})
}

func (e *envelope) event() (Event, error) {
	var ev Event
	object := text(e.object)
	switch {
	case object == "event" || object == "" && (e.object == nil || jsonscan.IsNull(e.object)):
	case strings.HasPrefix(object, "v2."):
		ev.Thin = true
	default:
		return Event{}, NotEvent
	}
	if ev.ID = text(e.id); ev.ID == "" {
		return Event{}, NoID
	} else if !plausible(ev.ID) || strings.Contains(ev.ID, "#") {
		return Event{}, BadID
	}
	if ev.Type = text(e.kind); ev.Type == "" {
		return Event{}, NoType
	} else if !plausible(ev.Type) {
		return Event{}, BadType
	}
	if ev.Account = e.accountID(ev.Thin); ev.Account != "" && !accountable(ev.Account) {
		return Event{}, BadAccount
	}
	if version := text(e.apiVersion); plausible(version) {
		ev.APIVersion = version
	}
	ev.CreatedS = seconds(e.created)
	ev.Livemode = string(e.livemode) == "true"

	about := &e.data.object
	if ev.Thin {
		about = &e.related
		about.kind = about.relatedType
	}
	ev.ObjectID, ev.ObjectKind = plausibleText(about.id), plausibleText(about.kind)
	ev.CustomerRef = about.customerID(&e.data.previous)
	if ev.Ref = ev.CustomerRef; ev.Ref == "" {
		ev.Ref = about.reference()
	}
	ev.Group = group(ev.Account, ev.Ref)
	ev.Object, ev.Previous = e.data.object.raw, e.data.previous.raw
	return ev, nil
}

// accountID is the envelope's account. A thin event has it as the last part of its context, which may name an
// organisation before it (Stripe API Reference, "The Event object" of v2). Snapshots have a context, too, since API
// version 2025-04-30.basil, but it does not count: the same event is delivered in the endpoint's version and listed in
// the account's, and must have one key in both.
func (e *envelope) accountID(thin bool) string {
	if account := text(e.account); account != "" || !thin {
		return account
	}
	context := text(e.context)
	return context[strings.LastIndexByte(context, '/')+1:]
}

// maxCreated is the last second of the year 9999. A later one is no time, and in milliseconds or as a version that
// sorts as text it would not fit.
const maxCreated = 253402300799

// seconds reads a time as API v1 or as v2 writes it. What is neither counts as not said.
func seconds(value []byte) int64 {
	var n int64
	if jsonscan.IsString(value) {
		if t, err := time.Parse(time.RFC3339Nano, text(value)); err == nil {
			n = t.Unix()
		}
	} else if parsed, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		n = parsed
	}
	if n < 0 || n > maxCreated {
		return 0
	}
	return n
}

// text returns what a string value stands for, and "" for everything else.
func text(value []byte) string {
	if !jsonscan.IsString(value) {
		return ""
	}
	b, err := jsonscan.Bytes(value)
	if err != nil {
		return "\ufffd" // half a surrogate pair: present, and not plausible
	}
	return string(b)
}

// plausibleText is text where it is plausible as an identifier, else "".
func plausibleText(value []byte) string {
	if s := text(value); plausible(s) {
		return s
	}
	return ""
}

// plausible reports whether s can be an identifier of Stripe's: visible ASCII of a bounded length. That is also what
// SQS takes in group and deduplication ids, and what is safe in a log line.
func plausible(s string) bool {
	if s == "" || len(s) > MaxID {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// accountable reports whether s can be the account in a key, where none is "-" and "#" parts.
func accountable(s string) bool { return plausible(s) && s != none && !strings.Contains(s, "#") }

// none stands for no account in a key.
const none = "-"

// group makes the message group key of a reference within an account.
func group(account, ref string) string {
	switch {
	case ref == "" && account == "":
		return "-"
	case ref == "":
		ref = account
	case account != "":
		ref = account + "/" + ref
	}
	if len(ref) > maxGroup {
		sum := sha256.Sum256([]byte(ref))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return ref
}

// equalText reports whether a raw value is the string want, without a copy.
func equalText(value []byte, want string) bool {
	if !jsonscan.IsString(value) {
		return false
	}
	b, err := jsonscan.Bytes(value)
	return err == nil && bytes.Equal(b, []byte(want))
}
