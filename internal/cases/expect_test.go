package cases

import (
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
