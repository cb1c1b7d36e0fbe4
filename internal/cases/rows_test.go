package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"backstop/internal/billing"
	"backstop/internal/schema"
)

func (w *world) checkUnchanged(raw json.RawMessage, v *verdict) error {
	var want bool
	if err := json.Unmarshal(raw, &want); err != nil {
		return err
	}
	after, err := w.projected()
	if err != nil {
		return err
	}
	if want && !maps.Equal(w.before, after) {
		v.wrong("the projection changed to %v", after)
	}
	return nil
}

// rowsOf are the rows of a kind, by how a case names it.
func (w *world) rowsOf(kind string) ([]map[string]any, error) {
	if rowKinds[kind] == "" {
		return nil, fmt.Errorf("no rows are called %s", kind)
	}
	objects, err := w.projected()
	if err != nil {
		return nil, err
	}
	var rows []map[string]any
	for id, text := range objects {
		if strings.HasSuffix(id, " "+rowKinds[kind]) {
			v, err := decoded([]byte(text))
			if err != nil {
				return nil, err
			}
			fields, _ := v.(map[string]any)
			rows = append(rows, fields)
		}
	}
	return rows, nil
}

func (w *world) checkCounts(raw json.RawMessage, v *verdict) error {
	var counts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &counts); err != nil {
		return err
	}
	for kind, want := range counts {
		rows, err := w.rowsOf(kind)
		if err != nil {
			return err
		}
		if err := within(want, int64(len(rows))); err != nil {
			v.wrong("there are %d %s, want %v", len(rows), kind, err)
		}
	}
	return nil
}

// checkSums adds up a field over the rows of a kind: {"payments": {"amount": 2000}} or {"payments.amount": 2000}.
func (w *world) checkSums(raw json.RawMessage, v *verdict) error {
	var sums map[string]json.RawMessage
	if err := json.Unmarshal(raw, &sums); err != nil {
		return err
	}
	for name, rule := range sums {
		kind, field, flat := strings.Cut(name, ".")
		fields := map[string]json.RawMessage{field: rule}
		if !flat {
			fields = nil
			if err := json.Unmarshal(rule, &fields); err != nil {
				return err
			}
		}
		rows, err := w.rowsOf(kind)
		if err != nil {
			return err
		}
		for field, want := range fields {
			sum := int64(0)
			for _, row := range rows {
				number, _ := row[field].(json.Number)
				n, _ := number.Int64() // absent counts as none
				sum += n
			}
			if err := within(want, sum); err != nil {
				v.wrong("%s of all %s is %d, want %v", field, kind, sum, err)
			}
		}
	}
	return nil
}

// checkNoRow looks for rows keyed by what is no id.
func (w *world) checkNoRow(raw json.RawMessage, v *verdict) error {
	var list []any
	if json.Unmarshal(raw, &list) != nil {
		var one any
		if err := json.Unmarshal(raw, &one); err != nil {
			return err
		}
		list = []any{one}
		if byKind, ok := one.(map[string]any); ok {
			list = nil
			for _, value := range byKind {
				if several, ok := value.([]any); ok {
					list = append(list, several...)
				} else {
					list = append(list, value)
				}
			}
		}
	}
	rows, err := w.table()
	if err != nil {
		return err
	}
	for _, row := range rows {
		pk, _ := row[schema.PK].(string)
		_, id, _ := strings.Cut(pk, "#")
		for _, one := range list {
			text := "null"
			if one != nil {
				text = fmt.Sprint(one)
			}
			if id == text || one == nil && id == "" {
				v.wrong("the row %s %v is keyed by %q", pk, row[schema.SK], text)
			}
		}
	}
	return nil
}

// checkDecimals compares the amount as the one function that formats would write it, without the currency.
func (w *world) checkDecimals(raw json.RawMessage, v *verdict) error {
	var texts map[string]string
	if err := json.Unmarshal(raw, &texts); err != nil {
		return err
	}
	for id, want := range texts {
		found, err := w.reader.Object(w.ctx, "", id)
		if err != nil {
			return err
		}
		var amount *int64
		var currency string
		switch object := found.(type) {
		case *billing.Invoice:
			amount, currency = object.Total, object.Currency
		case *billing.Payment:
			amount, currency = object.Amount, object.Currency
		}
		if amount == nil {
			v.wrong("%s has no amount", id)
			continue
		}
		if got, _, _ := strings.Cut(billing.FormatMoney(*amount, currency), " "); got != want {
			v.wrong("the amount of %s is written %q, want %q", id, got, want)
		}
	}
	return nil
}
