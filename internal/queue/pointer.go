package queue

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Version is the schema version of the pointers this code writes. A pointer of a newer version is handed back: a
// deployment is under way.
const Version = 1

// Pointer is the message: where the entry is and what wants it, never the payload.
type Pointer struct {
	V        int    `json:"v"`
	Key      string `json:"key"` // the entry's key in the ledger
	Type     string `json:"type"`
	CreatedS int64  `json:"created"`
	Replay   int    `json:"replay"`

	// Generation is set on a parked entry's dead-letter message only: redriven from the console, the pointer asks
	// for a replay of the entry if that is still parked at this generation.
	Generation int64 `json:"generation,omitempty"`
}

// NewerError says that a pointer was written by a later version of this code.
type NewerError struct{ V int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the pointer has schema version %d; this code knows %d", e.V, Version)
}

// MalformedError says that a message is no pointer, and why.
type MalformedError struct{ Reason string }

func (e *MalformedError) Error() string { return "the message is no pointer: " + e.Reason }

// maxKey is the longest key DynamoDB takes for a partition key (Amazon DynamoDB Developer Guide, "Quotas in Amazon
// DynamoDB").
const maxKey = 2048

// maxType is the longest type an event is taken with. The pointer's is logged, so it is not taken longer.
const maxType = 255

// Encode returns the message body of p, at the version this code writes.
func Encode(p Pointer) string {
	p.V = Version
	// Strings and integers always encode.
	body, _ := json.Marshal(p)
	return string(body)
}

// Decode reads a message body. Unknown fields are ignored, so that a later version may add some without changing V.
// The error is a *NewerError or a *MalformedError; with the latter, Key is still set if it could be read, so that
// its entry can be parked.
func Decode(body string) (Pointer, error) {
	// Each field is read alone: one that is odd must not hide the key, nor the version that explains it.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil || fields == nil {
		return Pointer{}, &MalformedError{"not a JSON object"}
	}
	var p Pointer
	var odd []string
	read := func(name string, into any) {
		raw, present := fields[name]
		if !present || string(raw) == "null" || json.Unmarshal(raw, into) != nil {
			odd = append(odd, name)
		}
	}
	read("v", &p.V)
	if p.V > Version {
		return Pointer{}, &NewerError{p.V}
	}
	read("key", &p.Key)
	if p.Key != "" && !wellFormed(p.Key) {
		p.Key = ""
	}
	read("type", &p.Type)
	read("created", &p.CreatedS)
	read("replay", &p.Replay)
	if _, present := fields["generation"]; present {
		read("generation", &p.Generation)
	}
	switch {
	case len(odd) > 0:
		return Pointer{Key: p.Key}, &MalformedError{"missing or odd: " + strings.Join(odd, ", ")}
	case p.V < 1:
		return Pointer{Key: p.Key}, &MalformedError{"no schema version"}
	case p.Key == "":
		return Pointer{}, &MalformedError{"the key is no ledger key"}
	case p.Type == "":
		return Pointer{Key: p.Key}, &MalformedError{"no event type"}
	case len(p.Type) > maxType:
		return Pointer{Key: p.Key}, &MalformedError{"the event type is too long to be one"}
	case p.Replay < 0, p.Generation < 0, p.CreatedS < 0:
		return Pointer{Key: p.Key}, &MalformedError{"a negative number"}
	}
	return p, nil
}

// wellFormed reports whether key is <source>#<account or ->#<event id>.
func wellFormed(key string) bool {
	parts := strings.Split(key, "#")
	return len(key) <= maxKey && len(parts) == 3 && parts[0] != "" && parts[1] != "" && parts[2] != ""
}

// EventID is the last part of the key.
func (p Pointer) EventID() string { return p.Key[strings.LastIndexByte(p.Key, '#')+1:] }
