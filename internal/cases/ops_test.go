package cases

import (
	"fmt"
	"strings"
	"testing"
)

// record is a record of a batch with testEvent under another id.
func record(message, event, group string) string {
	return fmt.Sprintf(`{"messageId":%q,"receiptHandle":"rh","attributes":{"MessageGroupId":%q,"ApproximateReceiveCount":"1"},"event":%s}`,
		message, group, strings.ReplaceAll(testEvent, "evt_1", event))
}

// TestStepsTheCasesHereDoNotUse plays the rest of the format.
func TestStepsTheCasesHereDoNotUse(t *testing.T) {
	t.Parallel()
	batch := `{"op":"process_batch","as":"b1","records":[` + record("m1", "evt_1", "g1") + `,` + record("m2", "evt_2", "g1") + `,` + record("m3", "evt_3", "g2") + `]%s}`
	stalled := `{"op":"process","as":"p1","worker":"w1","event":"evt_1","faults":[{"point":%q,"kind":"stall_until"}]},`
	for name, c := range map[string]struct{ steps, expect string }{
		"failures are handed over again": {
			fmt.Sprintf(batch, `,"faults":[{"point":"before_effect","kind":"error","event":"evt_1"}]`) +
				`,{"op":"redeliver_failures_of","of":"b1","as":"b2"}`,
			`"batches":{"b1":{"failures":["m1","m2"],"not_called":["evt_2"]},"b2":{"failures":[],"handler_calls":["evt_1","evt_2"]}},` +
				`"effects":{"evt_1":1,"evt_2":1,"evt_3":1},"effect_order":{"g1":["evt_1","evt_2"]}`,
		},
		"a batch without time runs nothing": {
			fmt.Sprintf(batch, `,"remaining_ms":3000`),
			`"batches":{"b1":{"failures":["m1","m2","m3"],"handler_calls":[]}},"effects":{"evt_1":0}`,
		},
		"slow handlers leave the rest to the next batch": {
			fmt.Sprintf(batch, `,"handler_ms":20000`),
			`"batches":{"b1":{"failures":["m2"]}},"effects":{"evt_1":1,"evt_2":0,"evt_3":1}`,
		},
		"a worker that stalls in its handler": {
			deliver("d1", "current", "") + `,` + fmt.Sprintf(stalled, "after_claim_before_effect") +
				`{"op":"advance_past_lease"},{"op":"process","as":"p2","worker":"w2","event":"evt_1"},{"op":"resume","worker":"w1"},{"op":"drain"}`,
			`"records":{"evt_1":"done"},"effects":{"evt_1":1}`,
		},
		"a worker that stalls before it settles": {
			deliver("d1", "current", "") + `,` + fmt.Sprintf(stalled, "after_effect_before_done") +
				`{"op":"advance_past_lease"},{"op":"process","as":"p2","worker":"w2","event":"evt_1"},{"op":"resume","worker":"w1"},{"op":"drain"}`,
			`"records":{"evt_1":"done"},"effects":{"evt_1":1}`,
		},
		"a worker that goes on within its lease": {
			deliver("d1", "current", "") + `,` + fmt.Sprintf(stalled, "before_effect") +
				`{"op":"advance","seconds":5},{"op":"resume","worker":"w1"},{"op":"drain"}`,
			`"records":{"evt_1":"done"},"effects":{"evt_1":1},"handler_calls_max":{"evt_1":1}`,
		},
		"the sweep finds what was never forwarded": {
			deliver("d1", "current", `{"point":"between_record_and_forward","kind":"crash"}`) + `,{"op":"sweep_or_reconcile"},{"op":"drain"}`,
			`"steps":{"d1":{"status":"5xx"}},"records":{"evt_1":"done"},"effects":{"evt_1":1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := runOne(t, testCase(t, c.steps, c.expect)); len(r.problems) > 0 || r.skipped != "" {
				t.Errorf("problems %q, skipped %q", r.problems, r.skipped)
			}
		})
	}
}

func TestStateBeforehand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ state, expect, skipped string }{
		"done already":      {`{"records":{"evt_1":"done"}}`, `"steps":{"d1":{"status":200}},"records":{"evt_1":"done"},"effects":{"evt_1":0}`, ""},
		"parked already":    {`{"records":{"evt_1":"failed"}}`, `"records":{"evt_1":"done"},"effects":{"evt_1":1}`, ""},
		"recorded, no more": {`{"records":{"evt_1":{"status":"recorded"}}}`, `"records":{"evt_1":"done"},"effects":{"evt_1":1}`, ""},
		"expired":           {`{"records":{"evt_1":{"status":"done","expires_at":1789999999}}}`, `"records":{"evt_1":"done"},"effects":{"evt_1":1}`, ""},
		"an older row": {`{"projection":{"customers":{"cus_1":{"email":"old@example.test"}}}}`,
			`"projection":{"customers":{"cus_1":{"email":"a@example.test"}}},"counts":{"customers":1}`, ""},
		"a newer row": {`{"projection":{"customers":{"cus_1":{"email":"new@example.test","as_of":1790000001}}}}`,
			`"projection":{"customers":{"cus_1":{"email":"new@example.test"}}},"effects":{"evt_1":1},"projection_unchanged":true`, ""},
		"something else": {`{"gnomes":1}`, `"note":""`, "given.state.gnomes is not described"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := testCase(t, deliver("d1", "current", "")+`,{"op":"drain"}`, c.expect)
			file.Given.State = []byte(c.state)
			if r := runOne(t, file); len(r.problems) > 0 || r.skipped != c.skipped {
				t.Errorf("problems %q, skipped %q, want %q", r.problems, r.skipped, c.skipped)
			}
		})
	}
}
