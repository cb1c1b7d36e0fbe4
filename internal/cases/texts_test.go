package cases

import (
	"encoding/json"
	"slices"
	"strings"
)

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
