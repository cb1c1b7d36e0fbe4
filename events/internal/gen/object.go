package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// object is a JSON object that keeps the order of its keys, because a Stripe
// body has a fixed order that a Go map would lose. A value is one of: nil,
// bool, int64, json.Number, string, []any, *object.
type object struct {
	fields []field
}

type field struct {
	key   string
	value any
}

// parse reads one JSON text. It panics on broken JSON: all its callers pass
// texts that are part of this program.
func parse(text string) any {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	v, err := parseValue(dec)
	if err != nil {
		panic(fmt.Sprintf("parse %.60q: %v", text, err))
	}
	return v
}

func parseValue(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Number:
		if n, err := tok.Int64(); err == nil {
			return n, nil
		}
		return tok, nil
	case json.Delim:
		if tok == '[' {
			list := []any{}
			for dec.More() {
				v, err := parseValue(dec)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			_, err := dec.Token()
			return list, err
		}
		o := &object{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseValue(dec)
			if err != nil {
				return nil, err
			}
			o.fields = append(o.fields, field{key.(string), v})
		}
		_, err := dec.Token()
		return o, err
	default:
		return tok, nil
	}
}

// newObject makes an object of pairs: key, value, key, value.
func newObject(pairs ...any) *object {
	o := &object{}
	for i := 0; i < len(pairs); i += 2 {
		o.fields = append(o.fields, field{pairs[i].(string), normal(pairs[i+1])})
	}
	return o
}

// normal turns the Go values that are handy in templates into the value kinds
// of an object.
func normal(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list
	case []*object:
		list := make([]any, len(v))
		for i, o := range v {
			list[i] = o
		}
		return list
	default:
		return v
	}
}

func (o *object) find(key string) *field {
	for i := range o.fields {
		if o.fields[i].key == key {
			return &o.fields[i]
		}
	}
	return nil
}

// slot walks a dotted path ("items.data.0.quantity") to the place it names.
func (o *object) slot(path string) *any {
	parts := strings.Split(path, ".")
	var at any = o
	for i, part := range parts {
		var next *any
		switch in := at.(type) {
		case *object:
			if f := in.find(part); f != nil {
				next = &f.value
			}
		case []any:
			if n, err := strconv.Atoi(part); err == nil && n < len(in) {
				next = &in[n]
			}
		}
		if next == nil {
			panic(fmt.Sprintf("no %q in %s", strings.Join(parts[:i+1], "."), o.str("object")))
		}
		if i == len(parts)-1 {
			return next
		}
		at = *next
	}
	panic("empty path")
}

// set assigns pairs of path and value. A path that the object's shape does not
// have is a mistake in a template and panics; what Stripe sends only at times
// is added with add.
func (o *object) set(pairs ...any) *object {
	for i := 0; i < len(pairs); i += 2 {
		*o.slot(pairs[i].(string)) = normal(pairs[i+1])
	}
	return o
}

// add puts a new top-level key where Stripe's order wants it: by alphabet,
// after id and object.
func (o *object) add(key string, value any) *object {
	at := len(o.fields)
	for i, f := range o.fields {
		if f.key != "id" && f.key != "object" && f.key > key {
			at = i
			break
		}
	}
	o.fields = slices.Insert(o.fields, at, field{key, normal(value)})
	return o
}

func (o *object) drop(key string) *object {
	o.fields = slices.DeleteFunc(o.fields, func(f field) bool { return f.key == key })
	return o
}

func (o *object) str(path string) string {
	s, _ := (*o.slot(path)).(string)
	return s
}

func (o *object) num(path string) int {
	n, ok := (*o.slot(path)).(int64)
	if !ok {
		panic(fmt.Sprintf("%q of %s is no integer", path, o.str("object")))
	}
	return int(n)
}

func (o *object) id() string { return o.str("id") }

func (o *object) clone() *object { return clone(o).(*object) }

func clone(v any) any {
	switch v := v.(type) {
	case *object:
		c := &object{} // fields stay nil without any, as parse leaves them: DeepEqual tells nil from empty
		for _, f := range v.fields {
			c.fields = append(c.fields, field{f.key, clone(f.value)})
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = clone(v[i])
		}
		return c
	default:
		return v
	}
}

// previous is what Stripe puts into data.previous_attributes: of the keys that
// changed their old values; of a changed nested object only its changed keys;
// of a changed list the whole old list; null for a key that was not there.
func previous(before, after *object) *object {
	prev := &object{}
	for _, f := range after.fields {
		old := before.find(f.key)
		if old == nil {
			prev.fields = append(prev.fields, field{f.key, nil})
			continue
		}
		if reflect.DeepEqual(old.value, f.value) {
			continue
		}
		value := clone(old.value)
		if was, ok := old.value.(*object); ok {
			if is, ok := f.value.(*object); ok {
				value = previous(was, is)
			}
		}
		prev.fields = append(prev.fields, field{f.key, value})
	}
	return prev
}

// render writes a value as Stripe sends it: two spaces an indentation step, no
// HTML escapes, empty objects and lists on one line.
func render(buf *bytes.Buffer, v any, indent string) {
	inner := indent + "  "
	switch v := v.(type) {
	case *object:
		if len(v.fields) == 0 {
			buf.WriteString("{}")
			return
		}
		for i, f := range v.fields {
			separate(buf, i, '{', inner)
			renderScalar(buf, f.key)
			buf.WriteString(": ")
			render(buf, f.value, inner)
		}
		buf.WriteString("\n" + indent + "}")
	case []any:
		if len(v) == 0 {
			buf.WriteString("[]")
			return
		}
		for i := range v {
			separate(buf, i, '[', inner)
			render(buf, v[i], inner)
		}
		buf.WriteString("\n" + indent + "]")
	default:
		renderScalar(buf, v)
	}
}

func separate(buf *bytes.Buffer, i int, open byte, indent string) {
	if i == 0 {
		buf.WriteByte(open)
	} else {
		buf.WriteByte(',')
	}
	buf.WriteString("\n" + indent)
}

func renderScalar(buf *bytes.Buffer, v any) {
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("render %v: %v", v, err))
	}
	buf.Truncate(buf.Len() - 1) // Encode ends with a newline
}

// text is the rendered value with a final newline, as a file holds it.
func text(v any) []byte {
	var buf bytes.Buffer
	render(&buf, v, "")
	buf.WriteByte('\n')
	return buf.Bytes()
}
