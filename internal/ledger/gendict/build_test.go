package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"backstop/events"
)

func sent(t *testing.T) []sample {
	t.Helper()
	var list []sample
	for _, typ := range events.Types() {
		body, err := events.Sample(typ.Name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, sample{typ.Name, body})
	}
	return list
}

// mean is the mean packed size of the samples, their ids being new, in bytes.
func mean(t *testing.T, dict []byte, samples []sample) int {
	t.Helper()
	options := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false)}
	if dict != nil {
		options = append(options, zstd.WithEncoderDict(dict))
	}
	encoder, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	total := 0
	for _, s := range samples {
		body, err := events.Fresh(s.body, events.FreshOptions{})
		if err != nil {
			t.Fatal(err)
		}
		total += len(encoder.EncodeAll(body, nil))
	}
	return total / len(samples)
}

// A dictionary that only knew its own samples would be of no use.
func TestEventsTheDictionaryNeverSawPackWell(t *testing.T) {
	t.Parallel()
	all := sent(t)
	var known, held []sample // every second type is held out
	var others, disputes []sample
	for i, s := range all {
		if i%2 == 0 {
			known = append(known, s)
		} else {
			held = append(held, s)
		}
		if strings.HasPrefix(s.name, "charge.dispute.") { // a kind of object held out as a whole
			disputes = append(disputes, s)
		} else {
			others = append(others, s)
		}
	}
	for _, test := range []struct {
		name           string
		from, measured []sample
		most           int // bytes, measured and a tenth
	}{
		{"every second type", known, held, 570},
		{"a kind of object", others, disputes, 940},
	} {
		dict, err := build(1, test.from, nil)
		if err != nil {
			t.Fatal(err)
		}
		without := mean(t, nil, test.measured)
		with := mean(t, dict, test.measured)
		t.Logf("%s held out: %d bytes without the dictionary, %d with it", test.name, without, with)
		if with > test.most {
			t.Errorf("%s held out: %d bytes packed, want at most %d", test.name, with, test.most)
		}
	}
}

func TestSameSamplesGiveTheSameDictionary(t *testing.T) {
	t.Parallel()
	samples := sent(t)[:12]
	first, err := build(1, samples, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := 0, len(samples)-1; i < j; i, j = i+1, j-1 {
		samples[i], samples[j] = samples[j], samples[i]
	}
	second, err := build(1, samples, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the order of the samples changed the dictionary")
	}
}

func TestWhatIsNewInEachEventIsNotInTheDictionary(t *testing.T) {
	t.Parallel()
	got := string(scrub([]byte(`{
  "id": "evt_1SqAn193ZBBxlTnrVoGWgm65",
  "created": 1790068848,
  "customer_email": "nora.quill@example.com",
  "customer_name": "Nora Quill",
  "amount": 9800,
  "status": "paid",
  "url": "https://invoice.stripe.com/i/acct_1S9zZzBxlTnrVo4w/test_LtVKbeAEd35TV76Hu3NElEycfzvgW1tUefUnRGj5?s=ap",
  "idempotency_key": "0b6f3a1c-6a2e-4f55-9a8e-1d2c3b4a5f60"
}`)))
	want := `{
  "id": "evt_",
  "created": 17,
  "customer_email": "",
  "customer_name": "",
  "amount": 9800,
  "status": "paid",
  "url": "https://invoice.stripe.com/i/acct_/test_?s=ap",
  "idempotency_key": ""
}`
	if got != want {
		t.Errorf("scrubbed to %s", got)
	}
}

func TestEventOfAnObjectIsWrittenAsStripeDoes(t *testing.T) {
	t.Parallel()
	s, err := eventOf("price", map[string]any{"active": true, "object": "price", "id": "price_1", "tiers": nil, "metadata": map[string]any{}, "list": []any{}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "id": "evt_",
  "object": "event",
  "api_version": "2025-08-27.basil",
  "created": 1790000000,
  "data": {
    "object": {
      "id": "price_1",
      "object": "price",
      "active": true,
      "list": [],
      "metadata": {},
      "tiers": null
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": "req_",
    "idempotency_key": null
  },
  "type": "price.updated"
}`
	if string(s.body) != want || s.name != "price.updated" {
		t.Errorf("%s: %s", s.name, s.body)
	}
}
