package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/secret"
)

// Named are signing secrets by the id of their endpoint, the newest first. Their text form is the JSON object that
// package secret reads.
type Named []struct{ Name, Value string }

// plainName is the name of a secret that was stored without one.
const plainName = "unnamed-"

func unnamed(name string) bool { return strings.HasPrefix(name, plainName) }

func (n Named) has(name string) bool { return n.Value(name) != "" }

// Value returns the secret of a name; empty: there is none.
func (n Named) Value(name string) string {
	for _, s := range n {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// Names returns the names, without the secrets.
func (n Named) Names() []string {
	var names []string
	for _, s := range n {
		names = append(names, s.Name)
	}
	return names
}

// with returns the secrets with one more, in front.
func (n Named) with(name, value string) Named {
	return append(Named{{name, value}}, n.without(func(other string) bool { return other == name })...)
}

func (n Named) without(drop func(name string) bool) Named {
	return slices.DeleteFunc(slices.Clone(n), func(s struct{ Name, Value string }) bool { return drop(s.Name) })
}

// Parse reads what a store holds, in any form package secret knows.
func Parse(text string) (Named, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var named Named
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		for i, value := range secret.Parse(text) {
			named = append(named, struct{ Name, Value string }{fmt.Sprintf("%s%d", plainName, i+1), value})
		}
		if named == nil {
			return nil, errors.New("the stored signing secrets cannot be read")
		}
		return named, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, errors.New("the stored signing secrets cannot be read")
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	_, err := decoder.Token() // the brace
	for err == nil && decoder.More() {
		var name json.Token
		var value any
		if name, err = decoder.Token(); err != nil {
			break
		}
		if err = decoder.Decode(&value); err != nil {
			break
		}
		if text, ok := value.(string); ok && strings.TrimSpace(text) != "" {
			named = append(named, struct{ Name, Value string }{name.(string), text})
		}
	}
	if err != nil {
		return nil, errors.New("the stored signing secrets cannot be read") // the error may quote them
	}
	return named, nil
}

// Text is what a store is to hold.
func (n Named) Text() string {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, s := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(s.Name) // strings always marshal
		value, _ := json.Marshal(s.Value)
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.String()
}
