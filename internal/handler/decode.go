package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
)

// DecodeError says that a payload does not decode into the handler's type, and where. It never holds the value that
// failed: that may be personal data.
//
// It parks the event instead of losing it or handing on a zero: an amount sent as text, as a fraction or too large
// for its field is an error here, never 0. What is null stays the field's zero value, as stripe-go has it; a handler
// for which null and 0 differ reads Event.Object.
type DecodeError struct {
	Path string // of the value, such as lines.data[1].amount; empty: the object as a whole
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

// narrow finds the smallest part of doc that alone makes fails true. encoding/json names the path only of some
// errors, never an array's index, and not through the UnmarshalJSON of stripe-go's types; trying the members one at
// a time works for every error. It costs one decoding of each level, and only events that fail pay it.
func narrow(doc []byte, fails func([]byte) bool) (path string, value []byte) {
	value = doc
	wrap := func(inner []byte) []byte { return inner }
	for {
		outer, found := wrap, false
		for _, m := range members(value) {
			inside := func(inner []byte) []byte { return outer(m.wrap(inner)) }
			if !fails(inside(m.value)) {
				continue
			}
			path, value, wrap, found = join(path, m), m.value, inside, true
			break
		}
		if !found {
			return path, value
		}
	}
}

// member is one field of an object or one element of an array.
type member struct {
	name  string // empty for an element
	index int
	value []byte
}

// wrap puts inner alone in an object or array like the one the member is of.
func (m member) wrap(inner []byte) []byte {
	if m.name == "" {
		return bytes.Join([][]byte{[]byte("["), inner, []byte("]")}, nil)
	}
	name, err := json.Marshal(m.name)
	if err != nil {
		return inner
	}
	return bytes.Join([][]byte{[]byte("{"), name, []byte(":"), inner, []byte("}")}, nil)
}

func join(path string, m member) string {
	switch {
	case m.name == "":
		return path + "[" + strconv.Itoa(m.index) + "]"
	case path == "":
		return m.name
	}
	return path + "." + m.name
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
