package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/ledger"
)

// verdict collects what is wrong with a variant, and what of its expectations says nothing here.
type verdict struct {
	problems []string
	notes    []string
}

func (v *verdict) wrong(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

func (v *verdict) note(format string, args ...any) {
	v.notes = append(v.notes, fmt.Sprintf(format, args...))
}

// prose are keys that explain, for people.
var prose = []string{"note", "notes", "alternative", "source", "sources", "comment"}

// check compares the world with an expectation.
func (w *world) check(e expectation) (v verdict) {
	for _, name := range slices.Sorted(maps.Keys(e)) {
		raw := e[name]
		checker, known := checkers[name]
		switch {
		case slices.Contains(prose, name), name == "then", name == "else", name == "checkpoints", name == "same_outcome_as":
			// the first are for people, the others are looked at elsewhere
		case known:
			if err := checker(w, raw, &v); err != nil {
				v.wrong("%s: %v", name, err)
			}
		case name == "if_any_2xx":
			w.checkIfAny(e, &v)
		default:
			v.wrong("the runner does not know the expectation %q", name)
		}
	}
	return v
}

var checkers map[string]func(*world, json.RawMessage, *verdict) error

func init() { // the checkers of alternatives refer to the list
	checkers = map[string]func(*world, json.RawMessage, *verdict) error{
		"steps":                           (*world).checkSteps,
		"status_never":                    (*world).checkStatusNever,
		"records":                         (*world).checkRecords,
		"effects":                         (*world).checkEffects,
		"effect_order":                    (*world).checkEffectOrder,
		"handler_calls_max":               (*world).checkCallsMax,
		"batches":                         (*world).checkBatches,
		"invocation_error":                (*world).checkInvocationError,
		"dlq":                             (*world).checkDeadLetters,
		"alarm_would_fire":                (*world).checkAlarm,
		"any_of":                          (*world).checkAnyOf,
		"at_least_one_2xx_of":             (*world).checkAtLeastOne,
		"logs":                            (*world).checkLogs,
		"response":                        (*world).checkResponse,
		"invariants":                      (*world).checkNamedInvariants,
		"secret_store_reads_during_flood": (*world).checkReads,
		"projection":                      (*world).checkProjection,
		"projection_if_tracked":           (*world).checkTracked,
		"projection_never":                (*world).checkNever,
		"projection_unchanged":            (*world).checkUnchanged,
		"counts":                          (*world).checkCounts,
		"sums":                            (*world).checkSums,
		"no_row_keyed_by":                 (*world).checkNoRow,
		"decimal_text_if_derived":         (*world).checkDecimals,
		"reconcile_report":                (*world).checkReport,
		"exit":                            (*world).checkExit,
	}
}

// isStatus reports whether a status is one of those allowed: a number, a class as 2xx, or a list of such.
func isStatus(raw json.RawMessage, status int) (bool, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, one := range list {
			if ok, err := isStatus(one, status); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
	var number int
	if json.Unmarshal(raw, &number) == nil {
		return number == status, nil
	}
	var class string
	if err := json.Unmarshal(raw, &class); err != nil || len(class) != 3 || class[1:] != "xx" {
		return false, fmt.Errorf("%s is no status", raw)
	}
	return status/100 == int(class[0]-'0'), nil
}

func (w *world) labelled(label string) []*delivery {
	var list []*delivery
	for _, d := range w.deliveries {
		if d.label == label {
			list = append(list, d)
		}
	}
	return list
}

func (w *world) checkSteps(raw json.RawMessage, v *verdict) error {
	var steps map[string]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &steps); err != nil {
		return err
	}
	for _, label := range slices.Sorted(maps.Keys(steps)) {
		answers := w.labelled(label)
		if len(answers) == 0 {
			v.wrong("no delivery is called %s", label)
		}
		for _, d := range answers {
			for name, want := range steps[label] {
				if err := w.checkAnswer(d, name, want, v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *world) checkAnswer(d *delivery, name string, want json.RawMessage, v *verdict) error {
	switch name {
	case "status":
		if ok, err := isStatus(want, d.status); err != nil {
			return err
		} else if !ok {
			v.wrong("%s was answered %d (%s), want %s", d.label, d.status, d.reason, want)
		}
	case "status_never":
		if ok, err := isStatus(want, d.status); err != nil {
			return err
		} else if ok {
			v.wrong("%s was answered %d, which it never should", d.label, d.status)
		}
	case "max_seconds":
		var most float64
		if err := json.Unmarshal(want, &most); err != nil {
			return err
		}
		if d.took.Seconds() > most {
			v.wrong("%s took %v, want at most %v s", d.label, d.took, most)
		}
	case "response":
		return checkTexts(d.response, want, v)
	default:
		if !slices.Contains(prose, name) {
			v.wrong("the runner does not know what %q of an answer is", name)
		}
	}
	return nil
}

func (w *world) checkStatusNever(raw json.RawMessage, v *verdict) error {
	for _, d := range w.deliveries {
		if err := w.checkAnswer(d, "status_never", raw, v); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) checkAtLeastOne(raw json.RawMessage, v *verdict) error {
	var labels []string
	if err := json.Unmarshal(raw, &labels); err != nil {
		return err
	}
	if !w.any2xx(labels) {
		v.wrong("none of %v was acknowledged", labels)
	}
	return nil
}

func (w *world) any2xx(labels []string) bool {
	return slices.ContainsFunc(w.deliveries, func(d *delivery) bool { return d.status/100 == 2 && slices.Contains(labels, d.label) })
}

func (w *world) checkIfAny(e expectation, v *verdict) {
	var labels []string
	if err := json.Unmarshal(e["if_any_2xx"], &labels); err != nil {
		v.wrong("if_any_2xx: %v", err)
		return
	}
	name := "else"
	if w.any2xx(labels) {
		name = "then"
	}
	if e[name] == nil {
		return
	}
	var promised expectation
	if err := json.Unmarshal(e[name], &promised); err != nil {
		v.wrong("%s: %v", name, err)
		return
	}
	inner := w.check(promised)
	v.problems, v.notes = append(v.problems, inner.problems...), append(v.notes, inner.notes...)
}

func (w *world) checkAnyOf(raw json.RawMessage, v *verdict) error {
	var alternatives []expectation
	if err := json.Unmarshal(raw, &alternatives); err != nil {
		return err
	}
	var why []string
	for _, alternative := range alternatives {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(alternative)), func(name string) bool { return !slices.Contains(prose, name) }) {
			continue // for people: it cannot be looked at
		}
		inner := w.check(alternative)
		if len(inner.problems) == 0 {
			return nil
		}
		why = append(why, strings.Join(inner.problems, "; "))
	}
	v.wrong("no alternative holds: %s", strings.Join(why, " / "))
	return nil
}

// status is what a case calls the state an event is in.
func (w *world) status(key ledger.Key) ([]string, error) {
	entry, found, err := w.entry(key)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return []string{"absent"}, nil
	case entry.Status == ledger.Skipped:
		return []string{"ignored"}, nil
	case entry.Status == ledger.Parked: // one state here
		return []string{"failed", "parked"}, nil
	}
	return []string{string(entry.Status)}, nil
}

func (w *world) checkRecords(raw json.RawMessage, v *verdict) error {
	var records map[string]json.RawMessage
	if err := json.Unmarshal(raw, &records); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(records)) {
		var want []string
		if json.Unmarshal(records[id], &want) != nil {
			var one string
			if err := json.Unmarshal(records[id], &one); err != nil {
				return err
			}
			want = []string{one}
		}
		for _, key := range w.keys(id) {
			got, err := w.status(key)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(got, func(s string) bool { return slices.Contains(want, s) }) {
				v.wrong("%s is %s, want %s", id, strings.Join(got, " or "), strings.Join(want, " or "))
			}
		}
	}
	return nil
}

// applied is how often an event of this key took effect.
func (w *world) applied(key ledger.Key) (int64, error) {
	row, err := w.rows.Get(w.ctx, w.names.BillingTable, sinkKey(string(key)))
	if err != nil {
		return 0, err
	}
	n, _ := row[sinkCount].(int64)
	return n, nil
}

func (w *world) checkEffects(raw json.RawMessage, v *verdict) error {
	var effects map[string]json.RawMessage
	if err := json.Unmarshal(raw, &effects); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(effects)) {
		got := int64(0)
		idem := map[string]bool{}
		for _, key := range w.keys(id) {
			n, err := w.applied(key)
			if err != nil {
				return err
			}
			got += n
			for _, c := range w.calls {
				if c.key == string(key) {
					idem[c.idem] = true
				}
			}
		}
		if err := within(effects[id], got); err != nil {
			v.wrong("%s took effect %d times, want %v", id, got, err)
		}
		var bounds struct {
			SameDedupKey bool `json:"same_dedup_key"`
		}
		if json.Unmarshal(effects[id], &bounds) == nil && bounds.SameDedupKey && len(idem) > 1 {
			v.wrong("%s was run under %d idempotency keys, want one", id, len(idem))
		}
	}
	return nil
}

// within checks a number against a number, or against {min, max}. The error is what it should have been.
func within(raw json.RawMessage, got int64) error {
	var exact int64
	if json.Unmarshal(raw, &exact) == nil {
		if got != exact {
			return fmt.Errorf("%d", exact)
		}
		return nil
	}
	var bounds struct{ Min, Max *int64 }
	if err := json.Unmarshal(raw, &bounds); err != nil || bounds.Min == nil && bounds.Max == nil {
		return fmt.Errorf("what %s says", raw)
	}
	if bounds.Min != nil && got < *bounds.Min || bounds.Max != nil && got > *bounds.Max {
		return fmt.Errorf("%s", raw)
	}
	return nil
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

func (w *world) checkLogs(raw json.RawMessage, v *verdict) error {
	return checkTexts(w.log.String(), raw, v, w.parsed())
}

// parsed reports whether some delivery was understood: its event is then named in the log.
func (w *world) parsed() bool {
	return slices.ContainsFunc(w.deliveries, func(d *delivery) bool { return d.status/100 == 2 })
}

func (w *world) checkResponse(raw json.RawMessage, v *verdict) error {
	all := ""
	for _, d := range w.deliveries {
		all += d.response + "\n"
	}
	return checkTexts(all, raw, v)
}

// checkTexts checks what a text must hold and must not. The reason of a refusal is compared over the variants of a
// case, since its name is ours.
func checkTexts(text string, raw json.RawMessage, v *verdict, parsed ...bool) error {
	var rules map[string]json.RawMessage
	if err := json.Unmarshal(raw, &rules); err != nil {
		return err
	}
	for name, rule := range rules {
		var list []string
		if json.Unmarshal(rule, &list) != nil {
			var one string
			if err := json.Unmarshal(rule, &one); err != nil {
				return err
			}
			list = []string{one}
		}
		for _, piece := range list {
			found := strings.Contains(text, piece)
			switch name {
			case "must_not_contain", "must_not_appear":
				if found {
					v.wrong("the text holds %q, which it must not", piece)
				}
			case "must_contain", "must_appear":
				if !found {
					v.wrong("the text does not hold %q", piece)
				}
			case "must_contain_when_parsed":
				if len(parsed) > 0 && parsed[0] && !found {
					v.wrong("the text does not hold %q", piece)
				}
			case "reason":
			default:
				v.wrong("the runner does not know the rule %q for texts", name)
			}
		}
	}
	return nil
}

func (w *world) checkReads(raw json.RawMessage, v *verdict) error {
	if err := within(raw, int64(w.floodReads)); err != nil {
		v.wrong("the secret store was read %d times during the flood, want %v", w.floodReads, err)
	}
	return nil
}

func (w *world) checkReport(raw json.RawMessage, v *verdict) error {
	var rules map[string]json.RawMessage
	if err := json.Unmarshal(raw, &rules); err != nil {
		return err
	}
	if len(w.reports) == 0 {
		v.wrong("nothing was reconciled")
		return nil
	}
	for name, rule := range rules {
		switch name {
		case "missing_found":
			if err := within(rule, int64(w.reports[0].missing)); err != nil {
				v.wrong("the first run found %d missing, want %v", w.reports[0].missing, err)
			}
		case "second_run_missing_found":
			if len(w.reports) < 2 {
				v.wrong("there was no second run")
			} else if err := within(rule, int64(w.reports[1].missing)); err != nil {
				v.wrong("the second run found %d missing, want %v", w.reports[1].missing, err)
			}
		case "warns":
			var text string
			if err := json.Unmarshal(rule, &text); err != nil {
				return err
			}
			if !warned(text, w.reports[len(w.reports)-1].notes) {
				v.wrong("no note warns that %q; there are %q", text, w.reports[len(w.reports)-1].notes)
			}
		default:
			v.wrong("the runner does not know what %q of a report is", name)
		}
	}
	return nil
}

// warned reports whether a note speaks about what the case wants said: one that holds most of its longer words. The
// wording is ours.
func warned(text string, notes []string) bool {
	for _, note := range notes {
		longer, held := 0, 0
		for word := range strings.FieldsSeq(text) {
			if len(word) > 5 || strings.ContainsAny(word, "0123456789") {
				longer++
				if strings.Contains(strings.ToLower(note), strings.ToLower(word)) {
					held++
				}
			}
		}
		if 2*held >= longer && held > 0 {
			return true
		}
	}
	return false
}

func (w *world) checkExit(raw json.RawMessage, v *verdict) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	if len(w.reports) == 0 {
		v.wrong("nothing was reconciled")
		return nil
	}
	clean := w.reports[len(w.reports)-1].clean
	if strings.Contains(text, "not") == clean {
		v.wrong("the run's end is plain success: %t, want %q", clean, text)
	}
	return nil
}

func (w *world) checkNamedInvariants(raw json.RawMessage, v *verdict) error {
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains([]string{"I1", "I2", "I3", "I4"}, name) {
			v.wrong("the runner does not know the invariant %s", name)
		}
	}
	return nil // they are checked for every variant
}
