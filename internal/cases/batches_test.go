package cases

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"backstop/internal/ledger"
)

func (w *world) checkBatches(raw json.RawMessage, v *verdict) error {
	var batches map[string]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &batches); err != nil {
		return err
	}
	for _, label := range slices.Sorted(maps.Keys(batches)) {
		b := w.batches[label]
		if b == nil {
			v.wrong("no batch is called %s", label)
			continue
		}
		called := []string{}
		for _, c := range w.calls {
			if c.batch == label {
				called = append(called, c.event)
			}
		}
		for name, want := range batches[label] {
			var list []string
			_ = json.Unmarshal(want, &list) // the answer is no list
			switch name {
			case "answer":
				if !sameJSON(want, b.answer) {
					v.wrong("%s was answered %s (%v), want %s", label, b.answer, b.err, want)
				}
			case "failures":
				if b.err != nil || !sameSet(b.failed, list) {
					v.wrong("%s returned %v as failed (%v), want %v", label, b.failed, b.err, list)
				}
			case "handler_calls":
				if !sameSet(called, list) {
					v.wrong("%s ran %v, want %v", label, called, list)
				}
			case "not_called":
				for _, id := range list {
					if slices.Contains(called, id) {
						v.wrong("%s ran %s, which it should not", label, id)
					}
				}
			default:
				v.wrong("the runner does not know what %q of a batch is", name)
			}
		}
	}
	return nil
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, errP := json.Marshal(x)
	q, errQ := json.Marshal(y)
	return errP == nil && errQ == nil && bytes.Equal(p, q)
}

func (w *world) checkInvocationError(raw json.RawMessage, v *verdict) error {
	var want bool
	if err := json.Unmarshal(raw, &want); err != nil {
		return err
	}
	for label, b := range w.batches {
		if (b.err != nil) != want {
			v.wrong("%s: the invocation's error is %v", label, b.err)
		}
	}
	return nil
}

func (w *world) checkDeadLetters(raw json.RawMessage, v *verdict) error {
	var want []string
	if err := json.Unmarshal(raw, &want); err != nil {
		return err
	}
	if err := w.tidy(); err != nil {
		return err
	}
	got, err := w.deadLetters()
	if err != nil {
		return err
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		v.wrong("the dead-letter queue holds %v, want %v", got, want)
	}
	return nil
}

func (w *world) checkAlarm(raw json.RawMessage, v *verdict) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	if !strings.Contains(text, "dead-letter") {
		v.note("alarm_would_fire: %q is not about a queue", text)
		return nil
	}
	got, err := w.deadLetters()
	if err == nil && len(got) == 0 {
		v.wrong("the dead-letter queue is empty: its alarm would not fire")
	}
	return err
}

func (w *world) checkEffectOrder(raw json.RawMessage, v *verdict) error {
	var orders map[string][]string
	if err := json.Unmarshal(raw, &orders); err != nil {
		return err
	}
	for _, group := range slices.Sorted(maps.Keys(orders)) {
		var got []string
		for _, key := range w.committed {
			if id := ledger.Key(key).EventID(); slices.Contains(orders[group], id) {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, orders[group]) {
			v.wrong("the effects of %s came in the order %v, want %v", group, got, orders[group])
		}
	}
	return nil
}

func (w *world) checkCallsMax(raw json.RawMessage, v *verdict) error {
	var most map[string]int
	if err := json.Unmarshal(raw, &most); err != nil {
		return err
	}
	for id, limit := range most {
		n := 0
		for _, c := range w.calls {
			if c.event == id {
				n++
			}
		}
		if n > limit {
			v.wrong("%s was run %d times, want at most %d", id, n, limit)
		}
	}
	return nil
}
