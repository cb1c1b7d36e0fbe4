package cases

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// A delivery of one event about a customer, and what the tests of the runner make of it.
const (
	testEvent = `{"id":"evt_1","object":"event","type":"customer.updated","api_version":"2025-08-27.basil","created":1790000000,` +
		`"livemode":false,"data":{"object":{"id":"cus_1","object":"customer","email":"a@example.test","balance":0}}}`
	testGiven = `"now":1790000000,"config":{"accepted_secrets":["current"],"secrets":{"current":"whsec_fake","stranger":"whsec_other"},` +
		`"tolerance_seconds":300,"mode":"test"},"bodies":{"e":{"utf8":%q}}`
)

// testCase is a case of one run, about testEvent.
func testCase(t *testing.T, steps, expect string) *caseFile {
	t.Helper()
	c, err := parse(fmt.Appendf(nil, `{"id":"T","kind":"pipeline","given":{%s,"steps":[%s]},"expect":{%s}}`,
		fmt.Sprintf(testGiven, testEvent), steps, expect))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// deliver is the step of a delivery, signed by the secret of a name.
func deliver(label, secret, faults string) string {
	return fmt.Sprintf(`{"op":"deliver","as":%q,"faults":[%s],"request":{"headers":{"Content-Type":"application/json",`+
		`"Stripe-Signature":"t={t},v1={v1:%s}"},"body":{"ref":"e"}}}`, label, faults, secret)
}

func runOne(t *testing.T, c *caseFile) result {
	t.Helper()
	codec()
	return run(t, c.variants()[0])
}

func TestRightExpectationsPass(t *testing.T) {
	t.Parallel()
	for name, expect := range map[string]string{
		"answer":       `"steps":{"d1":{"status":"2xx","max_seconds":1}}`,
		"record":       `"records":{"evt_1":["ignored","done"],"evt_2":"absent"}`,
		"effect":       `"effects":{"evt_1":{"min":1,"max":1,"same_dedup_key":true},"evt_2":0}`,
		"row":          `"projection":{"customers":{"cus_1":{"email":"a@example.test","name":null,"deleted":false}}}`,
		"rows":         `"counts":{"customers":1,"invoices":0},"sums":{"customers":{"balance":0},"customers.balance":0}`,
		"never":        `"projection_never":{"customers":{"cus_1":{"deleted":true}}},"no_row_keyed_by":["","null",null]`,
		"dead letters": `"dlq":[],"handler_calls_max":{"evt_1":1},"effect_order":{"g":["evt_1"]}`,
		"texts":        `"logs":{"must_not_contain":["a@example.test"],"must_contain":"evt_1"},"response":{"must_contain":"received"}`,
		"promise":      `"if_any_2xx":["d1"],"then":{"effects":{"evt_1":1}},"else":{"effects":{"evt_1":7}}`,
		"alternatives": `"any_of":[{"effects":{"evt_1":7}},{"note":"said"},{"effects":{"evt_1":1}}]`,
		"checkpoint":   `"checkpoints":{"after_d1":{"records":{"evt_1":"recorded"}},"after_first_drain":{"records":{"evt_1":"done"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := runOne(t, testCase(t, deliver("d1", "current", "")+`,{"op":"drain"}`, expect)); len(r.problems) > 0 || r.skipped != "" {
				t.Errorf("problems %q, skipped %q", r.problems, r.skipped)
			}
		})
	}
}

func TestEveryWrongExpectationFails(t *testing.T) {
	t.Parallel()
	for expect, problem := range map[string]string{
		`"steps":{"d1":{"status":"4xx"}}`:                                       "d1 was answered 200",
		`"steps":{"d1":{"status":[201,"5xx"]}}`:                                 "d1 was answered 200",
		`"steps":{"d1":{"status_never":["2xx"]}}`:                               "which it never should",
		`"steps":{"d1":{"max_seconds":-1}}`:                                     "want at most",
		`"steps":{"d7":{"status":"2xx"}}`:                                       "no delivery is called d7",
		`"status_never":["2xx"]`:                                                "which it never should",
		`"at_least_one_2xx_of":["d7"]`:                                          "none of [d7]",
		`"records":{"evt_1":"absent"}`:                                          "evt_1 is done",
		`"records":{"evt_2":"done"}`:                                            "evt_2 is absent",
		`"effects":{"evt_1":2}`:                                                 "took effect 1 times",
		`"effects":{"evt_1":{"min":2,"max":3}}`:                                 "took effect 1 times",
		`"effects":{"evt_1":{"max":0}}`:                                         "took effect 1 times",
		`"effect_order":{"g":["evt_1","evt_2"]}`:                                "in the order [evt_1]",
		`"handler_calls_max":{"evt_1":0}`:                                       "was run 1 times",
		`"batches":{"b1":{"failures":[]}}`:                                      "no batch is called b1",
		`"dlq":["evt_1"]`:                                                       "the dead-letter queue holds []",
		`"alarm_would_fire":"dead-letter queue not empty"`:                      "its alarm would not fire",
		`"any_of":[{"effects":{"evt_1":2}},{"note":"or this"}]`:                 "no alternative holds",
		`"if_any_2xx":["d1"],"then":{"effects":{"evt_1":2}}`:                    "took effect 1 times",
		`"if_any_2xx":["d7"],"else":{"effects":{"evt_1":2}}`:                    "took effect 1 times",
		`"logs":{"must_not_contain":["evt_1"]}`:                                 "which it must not",
		`"logs":{"must_contain":["evt_2"]}`:                                     "does not hold",
		`"logs":{"must_contain_when_parsed":["evt_2"]}`:                         "does not hold",
		`"logs":{"must_rhyme":["evt_2"]}`:                                       "does not know the rule",
		`"response":{"must_contain":"duplicate"}`:                               "does not hold",
		`"secret_store_reads_during_flood":{"min":1}`:                           "was read 0 times",
		`"projection":{"customers":{"cus_1":{"email":"b@example.test"}}}`:       "customers.cus_1.email",
		`"projection":{"customers":{"cus_1":{"deleted":true}}}`:                 "customers.cus_1.deleted",
		`"projection":{"customers":{"cus_2":{"deleted":false}}}`:                "customers.cus_2 is not there",
		`"projection":{"customers":{"cus_1":null}}`:                             "customers.cus_1 is there",
		`"projection":{"customers":[{"account":"acct_1","id":"cus_1"}]}`:        "customers.cus_1 is not there",
		`"projection":{"entitlements":{"cus_1":["a"]}}`:                         "entitlements.cus_1 is not there",
		`"projection":{"gnomes":{"cus_1":{}}}`:                                  "no rows are called gnomes",
		`"projection_if_tracked":{"customers":{"cus_1":{"deleted":true}}}`:      "customers.cus_1.deleted",
		`"projection_never":{"customers":{"cus_1":{"email":"a@example.test"}}}`: "as it never should be",
		`"projection_unchanged":true`:                                           "the projection changed",
		`"counts":{"customers":2}`:                                              "there are 1 customers",
		`"sums":{"customers":{"balance":5}}`:                                    "balance of all customers is 0",
		`"no_row_keyed_by":["cus_1"]`:                                           `keyed by "cus_1"`,
		`"decimal_text_if_derived":{"cus_1":"5"}`:                               "cus_1 has no amount",
		`"reconcile_report":{"missing_found":0}`:                                "nothing was reconciled",
		`"exit":"not plain success"`:                                            "nothing was reconciled",
		`"checkpoints":{"after_second_drain":{}}`:                               "never came",
		`"checkpoints":{"after_first_drain":{"effects":{"evt_1":0}}}`:           "after_first_drain: evt_1 took effect 1 times",
		`"invariants":["I9"]`:                                                   "does not know the invariant I9",
		`"sings":true`:                                                          `does not know the expectation "sings"`,
	} {
		t.Run(problem, func(t *testing.T) {
			t.Parallel()
			r := runOne(t, testCase(t, deliver("d1", "current", "")+`,{"op":"drain"}`, expect))
			if !strings.Contains(strings.Join(r.problems, "\n"), problem) {
				t.Errorf("%s: the problems are %q, want one that says %q", expect, r.problems, problem)
			}
		})
	}
}

func TestWhatCannotBePlayedIsNotPassed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ steps, problem, skipped string }{
		"unknown step":    {`{"op":"dance"}`, `no step is called "dance"`, ""},
		"unknown point":   {deliver("d1", "current", `{"point":"lunch","kind":"error"}`), "no fault is called error at lunch", ""},
		"unknown kind":    {deliver("d1", "current", `{"point":"record","kind":"sulk"}`), "no fault is called sulk at record", ""},
		"unknown secret":  {deliver("d1", "nobody's", ""), "which the case does not have", ""},
		"fault not met":   {deliver("d1", "current", `{"point":"stripe_api","kind":"error"}`), "", "was never reached"},
		"unknown body":    {strings.ReplaceAll(deliver("d1", "current", ""), `{"ref":"e"}`, `{"ref":"f"}`), `no body is named "f"`, ""},
		"wrong signature": {strings.ReplaceAll(deliver("d1", "current", ""), `"body"`, `"sign":{"rendered":"t=1"},"body"`), "the signer makes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runOne(t, testCase(t, c.steps, `"note":"nothing"`))
			if c.problem != "" && !strings.Contains(strings.Join(r.problems, "\n"), c.problem) {
				t.Errorf("the problems are %q, want one that says %q", r.problems, c.problem)
			}
			if c.skipped != "" && !strings.Contains(r.skipped, c.skipped) {
				t.Errorf("skipped because %q, want a reason that says %q", r.skipped, c.skipped)
			}
		})
	}
}

// TestBrokenInvariantIsFound plays a right variant and then breaks what it left behind.
func TestBrokenInvariantIsFound(t *testing.T) {
	t.Parallel()
	steps := deliver("d1", "current", "") + `,{"op":"drain"}`
	for name, c := range map[string]struct {
		steps string
		harm  func(w *world) error
	}{
		"I1": {steps, func(w *world) error {
			for _, d := range w.deliveries {
				d.key = "stripe#-#evt_2"
			}
			w.accounts["evt_2"] = map[string]bool{"stripe#-#evt_2": true}
			if _, err := w.record(json.RawMessage(strings.ReplaceAll(testEvent, "evt_1", "evt_2"))); err != nil {
				return err
			}
			return w.occupy("stripe#-#evt_2")
		}},
		"I2": {steps, func(w *world) error { return w.addEffect("stripe#-#evt_1") }},
		"I3": {deliver("d1", "stranger", ""), func(w *world) error { return w.addEffect("stripe#-#evt_1") }},
		"I4": {steps, func(w *world) error {
			for id := range w.facts {
				w.facts[id] = "9"
			}
			return w.watch()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codec()
			file := testCase(t, c.steps, `"note":"nothing"`)
			synctest.Test(t, func(t *testing.T) {
				w, err := newWorld(t.Context(), file.variants()[0])
				if err != nil {
					t.Fatal(err)
				}
				defer w.close()
				var r result
				w.play(&r)
				if len(r.problems) > 0 {
					t.Fatalf("before the harm there are the problems %q", r.problems)
				}
				if err := c.harm(w); err != nil {
					t.Fatal(err)
				}
				problems, err := w.invariants()
				if err != nil || len(problems) == 0 || !strings.HasPrefix(problems[0], name) {
					t.Errorf("the problems are %q (%v), want one of %s", problems, err, name)
				}
			})
		})
	}
}

// TestEveryFaultAtEveryPointHeals plays every kind of fault at every point once, and demands what is promised: Stripe's
// next deliveries and the queue bring the event through, once.
func TestEveryFaultAtEveryPointHeals(t *testing.T) {
	t.Parallel()
	type outcome struct{ reached, healed int }
	var all outcome
	t.Run("faults", func(t *testing.T) {
		results := make(chan bool, len(points)*len(kinds))
		t.Cleanup(func() {
			close(results)
			for reached := range results {
				all.healed++
				if reached {
					all.reached++
				}
			}
		})
		for _, point := range points {
			for _, kind := range kinds {
				t.Run(kind+" at "+point, func(t *testing.T) {
					t.Parallel()
					f := fmt.Sprintf(`{"point":%q,"kind":%q,"times":1,"seconds":%d}`, point, kind, map[string]int{"stall_until": 60}[kind])
					later := `,{"op":"advance","seconds":60},` + deliver("d2", "current", "") + `,{"op":"drain"}`
					steps := deliver("d1", "current", "") + `,{"op":"drain","faults":[` + f + `]}` + later
					if slices.Contains(points[:4], point) {
						steps = deliver("d1", "current", f) + later
					}
					r := runOne(t, testCase(t, steps, `"steps":{"d2":{"status":"2xx"}},"records":{"evt_1":"done"},"effects":{"evt_1":1},`+
						`"projection":{"customers":{"cus_1":{"email":"a@example.test"}}},"dlq":[]`))
					if len(r.problems) > 0 {
						t.Errorf("problems: %q", r.problems)
						return
					}
					results <- r.skipped == ""
				})
			}
		}
	})
	t.Logf("%d faults healed, of which %d were reached", all.healed, all.reached)
	if all.reached < 60 {
		t.Errorf("only %d of the faults were reached", all.reached)
	}
}
