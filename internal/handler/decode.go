package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// DecodeError says that a payload does not decode into the handler's type, and where. It never holds the value that
// failed: that may be personal data.
//
// It parks the event instead of losing it or handing on a zero: an amount sent as text, as a fraction or too large
// for its field is an error here, never 0. What is null stays the field's zero value, as stripe-go has it; a handler
// for which null and 0 differ reads Event.Object.
type DecodeError struct {
	Path string // of the value, such as lines.data[1].amount; * for a key of metadata; empty: the object as a whole
	Type string // the Go type the object is decoded to
	Kind string // what was found there: object, array, string, number, boolean, nothing
}

func (e *DecodeError) Error() string {
	path := e.Path
	if path == "" {
		path = "the object"
	}
	return fmt.Sprintf("decode the event's object as %s: %s does not fit, being a %s", e.Type, path, e.Kind)
}

// decode reads raw into object. stripe-go's types accept a string wherever they accept an object, taking it for the
// id of something not expanded; for the event's own object that would be an object of zeros, so it is refused here.
func decode[T any](raw json.RawMessage, object *T) error {
	raw = bytes.TrimSpace(raw)
	if kindOf(raw) != "object" {
		return &DecodeError{Type: fmt.Sprintf("%T", *object), Kind: kindOf(raw)}
	}
	if err := json.Unmarshal(raw, object); err == nil {
		return nil
	}
	fails := func(doc []byte) bool { return json.Unmarshal(doc, new(T)) != nil }
	path, value := narrow(raw, fails)
	return &DecodeError{Path: path, Type: fmt.Sprintf("%T", *object), Kind: kindOf(value)}
}

// maxNarrow is how deep narrow looks: Stripe's objects, expanded four levels, nest less. It is a bound for its time,
// since decoding what nests takes stripe-go's types a time that grows with the square of the depth.
const maxNarrow = 40

// narrow finds the smallest part of doc that alone makes fails true. encoding/json names the path only of some
// errors, never an array's index, and not through the UnmarshalJSON of stripe-go's types; trying the members, halved
// until one is left, works for every error. It costs a few decodings of each level, and only events that fail pay it.
func narrow(doc []byte, fails func([]byte) bool) (path string, value []byte) {
	value = doc
	outer := func(inner []byte) []byte { return inner }
	for range maxNarrow {
		wrap := outer
		m, found := culprit(members(value), func(some []member) bool { return fails(wrap(compose(some))) })
		if !found {
			break
		}
		path, value = join(path, m), m.value
		outer = func(inner []byte) []byte { return wrap(compose([]member{{m.name, m.index, inner}})) }
	}
	return path, value
}

// culprit is the first member that makes fails true without the others, if there is one.
func culprit(list []member, fails func([]member) bool) (member, bool) {
	if len(list) == 0 || !fails(list) {
		return member{}, false
	}
	for len(list) > 1 {
		first, second := list[:len(list)/2], list[len(list)/2:]
		switch {
		case fails(first):
			list = first
		case fails(second):
			list = second
		default: // it takes several
			return member{}, false
		}
	}
	return list[0], true
}

// member is one field of an object or one element of an array.
type member struct {
	name  string // empty for an element
	index int
	value []byte
}

// compose makes an object or array of the members, like the one they are of.
func compose(list []member) []byte {
	begin, end := byte('{'), byte('}')
	if list[0].name == "" {
		begin, end = '[', ']'
	}
	text := []byte{begin}
	for i, m := range list {
		if i > 0 {
			text = append(text, ',')
		}
		if m.name != "" {
			name, _ := json.Marshal(m.name) // a string always encodes
			text = append(append(text, name...), ':')
		}
		text = append(text, m.value...)
	}
	return append(text, end)
}

func join(path string, m member) string {
	name := m.name
	if !field(name) || path == "metadata" || strings.HasSuffix(path, ".metadata") {
		name = "*" // chosen by whoever filled it in, and as private as a value
	}
	switch {
	case m.name == "":
		return path + "[" + strconv.Itoa(m.index) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// field reports whether a name can be that of one of Stripe's own fields.
func field(name string) bool {
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(name) <= 64 // the longest of the API has 50
}

func members(value []byte) []member {
	var list []member
	switch kindOf(value) {
	case "object":
		var fields map[string]json.RawMessage
		if json.Unmarshal(value, &fields) != nil {
			return nil
		}
		for name, v := range fields {
			if name != "" {
				list = append(list, member{name: name, value: v})
			}
		}
		sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	case "array":
		var elements []json.RawMessage
		if json.Unmarshal(value, &elements) != nil {
			return nil
		}
		for i, v := range elements {
			list = append(list, member{index: i, value: v})
		}
	}
	return list
}

func kindOf(value []byte) string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
