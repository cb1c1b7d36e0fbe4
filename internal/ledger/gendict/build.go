package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxDict bounds the dictionary's content: 64 KB are read and indexed at each cold start.
const maxDict = 64 * 1024

// novel is the packed size above which a body is worth its room: smaller, it is made of what is already there.
const novel = 180

// A sample is one whole event body, as Stripe posts it.
type sample struct {
	name string // event type
	body []byte
}

// commonest lists types of event in the order in which they get their room, one for each kind of object: what a
// dictionary ends with is the cheapest to refer to, and what comes last may find none. Invoices come first: they are
// the largest of the common events, and the ones nearest to the end of a write unit.
var commonest = []string{
	"invoice.updated", "invoice.paid", "invoice.payment_failed", "customer.subscription.updated",
	"checkout.session.completed", "charge.succeeded", "payment_intent.succeeded",
}

// build makes a dictionary of the bodies in frequent, in the order of commonest, then by name, and of those in rare
// while there is room. Both must be whole event bodies. The same input gives the same dictionary.
func build(id uint32, frequent, rare []sample) ([]byte, error) {
	frequent, rare = slices.Clone(frequent), slices.Clone(rare)
	slices.SortStableFunc(frequent, func(a, b sample) int {
		return cmp.Or(cmp.Compare(rank(a.name), rank(b.name)), strings.Compare(a.name, b.name))
	})
	slices.SortStableFunc(rare, func(a, b sample) int { return strings.Compare(a.name, b.name) })

	var content []byte
	for _, s := range slices.Concat(frequent, rare) {
		body := scrub(s.body)
		if len(content)+len(body) > maxDict {
			continue
		}
		size, err := packed(content, body)
		if err != nil {
			return nil, err
		}
		if size > novel {
			content = append(body, content...)
		}
	}
	contents := make([][]byte, 0, len(frequent)+len(rare))
	for _, s := range slices.Concat(frequent, rare) {
		contents = append(contents, s.body)
	}
	return zstd.BuildDict(zstd.BuildDictOptions{
		ID:       id,
		Contents: contents,
		History:  content,
		Offsets:  [3]int{1, 4, 8},
		Level:    zstd.SpeedBetterCompression,
	})
}

func rank(name string) int {
	if i := slices.Index(commonest, name); i >= 0 {
		return i
	}
	return len(commonest)
}

// packed is the size of the body compressed with the content as its past.
func packed(content, body []byte) (int, error) {
	options := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1)}
	if len(content) > 8 {
		options = append(options, zstd.WithEncoderDictRaw(1, content))
	}
	encoder, err := zstd.NewWriter(nil, options...)
	if err != nil {
		return 0, fmt.Errorf("making an encoder: %w", err)
	}
	defer encoder.Close()
	return len(encoder.EncodeAll(body, nil)), nil
}

// What differs from event to event is shortened to what the next event has in common with it: an id to its prefix, a
// time to its first digits, a name or an address to nothing. It would only take room, and would make the samples
// themselves pack better than any real event.
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`"((?:[a-z]+_)+)[A-Za-z0-9]{8,}"`), `"$1"`},
	{regexp.MustCompile(`_[A-Za-z0-9]{14,}`), `_`},
	{regexp.MustCompile(`: (1[678])\d{8}\b`), `: $1`},
	{regexp.MustCompile(`[A-Za-z0-9.+-]+@[A-Za-z0-9.-]+`), ``},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), ``},
	{regexp.MustCompile(`[A-Za-z0-9]{24,}`), ``},
	{regexp.MustCompile(`("(?:name|account_name|customer_name|line1|city|postal_code|description|workspace|fingerprint|number|statement_descriptor|calculated_statement_descriptor|phone)": ")[^"]*"`), `$1"`},
}

func scrub(body []byte) []byte {
	for _, v := range volatile {
		body = v.pattern.ReplaceAll(body, []byte(v.with))
	}
	return body
}

// eventOf wraps an object as the data of an event, in the way Stripe posts it: two spaces an indentation step, id
// and object first, the other keys by name.
func eventOf(kind string, object map[string]any) (sample, error) {
	name := kind + ".updated"
	var buf bytes.Buffer
	err := write(&buf, map[string]any{
		"id": "evt_", "object": "event", "api_version": "2025-08-27.basil", "created": json.Number("1790000000"),
		"data": map[string]any{"object": object}, "livemode": false, "pending_webhooks": json.Number("1"),
		"request": map[string]any{"id": "req_", "idempotency_key": nil}, "type": name,
	}, "\n")
	return sample{name, buf.Bytes()}, err
}

func write(buf *bytes.Buffer, v any, newline string) error {
	deeper := newline + "  "
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			buf.WriteString("{}")
			return nil
		}
		keys := slices.Collect(maps.Keys(v))
		slices.SortFunc(keys, func(a, b string) int {
			first := func(k string) int { return slices.Index([]string{"object", "id"}, k) }
			return cmp.Or(cmp.Compare(first(b), first(a)), strings.Compare(a, b))
		})
		for i, key := range keys {
			buf.WriteString(map[bool]string{true: "{", false: ","}[i == 0] + deeper)
			fmt.Fprintf(buf, "%q: ", key)
			if err := write(buf, v[key], deeper); err != nil {
				return err
			}
		}
		buf.WriteString(newline + "}")
	case []any:
		if len(v) == 0 {
			buf.WriteString("[]")
			return nil
		}
		for i, element := range v {
			buf.WriteString(map[bool]string{true: "[", false: ","}[i == 0] + deeper)
			if err := write(buf, element, deeper); err != nil {
				return err
			}
		}
		buf.WriteString(newline + "]")
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("writing a value: %w", err)
		}
		buf.Write(text)
	}
	return nil
}
