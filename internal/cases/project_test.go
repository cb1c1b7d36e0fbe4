package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/billing"
	"backstop/internal/handler"
	"backstop/internal/schema"
)

// rowKinds are the sort keys of the rows a case names in the plural.
var rowKinds = map[string]string{
	"customers": "customer", "subscriptions": "subscription", "invoices": "invoice", "payments": "payment",
	"checkout_sessions": "checkout_session", "entitlements": "entitlements",
}

// table reads the billing table, past the sink's rows.
func (w *world) table() ([]handler.Row, error) {
	var keys []map[string]string
	input := &dynamodb.ScanInput{TableName: &w.names.BillingTable}
	for {
		out, err := w.db.Scan(w.ctx, input)
		if err != nil {
			return nil, err
		}
		for _, item := range out.Items {
			pk, _ := item[schema.PK].(*types.AttributeValueMemberS)
			sk, _ := item[schema.SK].(*types.AttributeValueMemberS)
			if pk != nil && sk != nil && !strings.HasPrefix(pk.Value, "sink#") {
				keys = append(keys, map[string]string{schema.PK: pk.Value, schema.SK: sk.Value})
			}
		}
		if input.ExclusiveStartKey = out.LastEvaluatedKey; out.LastEvaluatedKey == nil {
			break
		}
	}
	return w.rows.Rows(w.ctx, w.names.BillingTable, keys)
}

// projected is what the rows stand for, by key.
func (w *world) projected() (map[string]string, error) {
	rows, err := w.table()
	if err != nil {
		return nil, err
	}
	objects := map[string]string{}
	for _, row := range rows {
		text, err := json.Marshal(billing.Object(row))
		if err != nil {
			return nil, err
		}
		objects[fmt.Sprint(row[schema.PK], " ", row[schema.SK])] = string(text)
	}
	return objects, nil
}

// watch looks at the rows after something has happened: no fact may go back in time (I4), and what a case says is
// never projected must not be.
func (w *world) watch() error {
	rows, err := w.table()
	if err != nil {
		if errors.Is(err, w.ctx.Err()) {
			return nil
		}
		return err
	}
	w.mu.Lock()
	for _, row := range rows {
		for name, value := range row {
			if name != "fact" && !strings.HasPrefix(name, "fact_") {
				continue
			}
			text, _ := value.(string)
			version := text[:min(len(text), 13)] // terminal and created
			id := fmt.Sprint(row[schema.PK], " ", row[schema.SK], " ", name)
			if version < w.facts[id] {
				w.violations = append(w.violations, fmt.Sprintf("I4: %s went back from %s to %s", id, w.facts[id], version))
			}
			w.facts[id] = version
		}
	}
	w.mu.Unlock()
	return w.watchNever()
}

func (w *world) watchNever() error {
	list, err := w.variant.file.expectations(w.variant.name)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e["projection_never"] == nil {
			continue
		}
		var v verdict
		if err := w.checkNever(e["projection_never"], &v); err != nil {
			return err
		}
		for _, problem := range v.problems {
			w.violate("%s", problem)
		}
	}
	return nil
}

// object reads the row of an object as a case names its fields; nil where there is none.
func (w *world) object(kind, account, id string) (map[string]any, error) {
	if rowKinds[kind] == "" {
		return nil, fmt.Errorf("no rows are called %s", kind)
	}
	found, err := w.reader.Object(w.ctx, account, id)
	if err != nil {
		return nil, err
	}
	var fits bool
	switch found.(type) {
	case *billing.Customer:
		fits = kind == "customers"
	case *billing.Subscription:
		fits = kind == "subscriptions"
	case *billing.Invoice:
		fits = kind == "invoices"
	case *billing.Payment:
		fits = kind == "payments"
	case *billing.CheckoutSession:
		fits = kind == "checkout_sessions"
	}
	if !fits {
		return nil, nil
	}
	text, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	fields, err := decoded(text)
	if err != nil {
		return nil, err
	}
	object := fields.(map[string]any)
	if list, ok := object["items"].([]any); ok {
		byID := map[string]any{}
		for _, item := range list {
			if fields, ok := item.(map[string]any); ok {
				byID[fmt.Sprint(fields["id"])] = fields
			}
		}
		object["items"] = byID
	}
	return object, nil
}

func decoded(raw []byte) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// differs says where got is not what a case wants, or nothing. Fields that are not named are free, and what is absent
// is the same as null, empty and false: rows hold neither.
func differs(path string, want, got any) string {
	switch want := want.(type) {
	case nil:
		if got != nil && got != "" && got != false {
			return fmt.Sprintf("%s is %v, want none", path, got)
		}
	case map[string]any:
		if _, bounds := want["min"]; bounds || want["max"] != nil {
			number, ok := got.(json.Number)
			raw, _ := json.Marshal(want) // it was JSON before
			if n, err := number.Int64(); !ok || err != nil || within(raw, n) != nil {
				return fmt.Sprintf("%s is %v, want %s", path, got, raw)
			}
			return ""
		}
		fields, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, want an object", path, got)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if text := differs(path+"."+name, want[name], fields[name]); text != "" {
				return text
			}
		}
	case []any:
		if list, ok := got.([]any); ok {
			if len(list) != len(want) {
				return fmt.Sprintf("%s has %d elements, want %d", path, len(list), len(want))
			}
			for i := range want {
				if text := differs(fmt.Sprintf("%s[%d]", path, i), want[i], list[i]); text != "" {
					return text
				}
			}
			return ""
		}
		for _, one := range want { // any of
			if differs(path, one, got) == "" {
				return ""
			}
		}
		return fmt.Sprintf("%s is %v, want one of %v", path, got, want)
	case bool:
		have, _ := got.(bool)
		if got != nil && got != have || have != want {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
	case string:
		have, _ := got.(string)
		if got != nil && got != have || have != want {
			return fmt.Sprintf("%s is %q, want %q", path, fmt.Sprint(got), want)
		}
	case json.Number:
		have, ok := got.(json.Number)
		if !ok || have.String() != want.String() {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
	}
	return ""
}

// fieldsKept are the fields cases name. One beyond them that a row does not hold is not applicable here.
var fieldsKept = map[string][]string{
	"customers": {"id", "email", "name", "deleted", "account", "livemode"},
	"subscriptions": {"id", "customer", "status", "cancel_at_period_end", "current_period_end", "ended_at", "pause_collection",
		"items", "account"},
	"invoices": {"id", "customer", "subscription", "status", "currency", "total", "amount_due", "amount_paid", "line_count",
		"lines_complete", "account"},
	"payments": {"id", "customer", "invoice", "status", "currency", "amount", "amount_received", "amount_refunded", "refunded",
		"account"},
}

// applicable leaves out the fields that are not kept, and names them.
func applicable(row wantedRow, got map[string]any) (fields any, left []string) {
	wanted, ok := row.fields.(map[string]any)
	kept := fieldsKept[row.kind]
	if !ok || kept == nil {
		return row.fields, nil
	}
	reduced := map[string]any{}
	for name, want := range wanted {
		if _, there := got[name]; there || slices.Contains(kept, name) {
			reduced[name] = want
		} else {
			left = append(left, row.kind+"."+name)
		}
	}
	slices.Sort(left)
	return reduced, left
}

// wantedRow is one row a case speaks about.
type wantedRow struct {
	kind, account, id string
	fields            any
}

func wantedRows(raw json.RawMessage) ([]wantedRow, error) {
	v, err := decoded(raw)
	if err != nil {
		return nil, err
	}
	kinds, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no projection", raw)
	}
	var rows []wantedRow
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		switch list := kinds[kind].(type) {
		case map[string]any:
			for _, id := range slices.Sorted(maps.Keys(list)) {
				row := wantedRow{kind: kind, id: id, fields: list[id]}
				if fields, ok := list[id].(map[string]any); ok {
					row.account, _ = fields["account"].(string)
				}
				rows = append(rows, row)
			}
		case []any:
			for _, one := range list {
				fields, ok := one.(map[string]any)
				if !ok {
					return nil, fmt.Errorf("an element of %s is no row", kind)
				}
				id, _ := fields["id"].(string)
				if id == "" {
					id, _ = fields["customer"].(string)
				}
				account, _ := fields["account"].(string)
				rows = append(rows, wantedRow{kind: kind, account: account, id: id, fields: fields})
			}
		default:
			return nil, fmt.Errorf("%s holds no rows", kind)
		}
	}
	return rows, nil
}

// compare says how a row differs from what a case wants.
func (w *world) compare(row wantedRow) (string, bool, error) {
	path := row.kind + "." + row.id
	if row.kind == "entitlements" {
		account, err := w.reader.Customer(w.ctx, row.account, row.id)
		if err != nil {
			return "", false, err
		}
		if account.Entitlements == nil {
			if row.fields == nil {
				return "", false, nil
			}
			return path + " is not there", false, nil
		}
		wanted, keys := row.fields, account.Entitlements.Keys
		if fields, ok := wanted.(map[string]any); ok {
			for _, name := range []string{"keys", "lookup_keys"} {
				if fields[name] != nil {
					wanted = fields[name]
				}
			}
		}
		var want []string
		list, _ := wanted.([]any)
		for _, one := range list {
			want = append(want, fmt.Sprint(one))
		}
		if !sameSet(keys, want) {
			return fmt.Sprintf("%s are %v, want %v", path, keys, want), true, nil
		}
		return "", true, nil
	}
	got, err := w.object(row.kind, row.account, row.id)
	if err != nil {
		return "", false, err
	}
	if row.fields == nil || row.fields == "absent" {
		if got != nil {
			return path + " is there", true, nil
		}
		return "", false, nil
	}
	if got == nil {
		return path + " is not there", false, nil
	}
	fields, left := applicable(row, got)
	w.foreign = append(w.foreign, left...)
	return differs(path, fields, got), true, nil
}

func (w *world) checkProjection(raw json.RawMessage, v *verdict) error {
	return w.eachRow(raw, func(difference string, _ bool) {
		if difference != "" {
			v.wrong("%s", difference)
		}
	})
}

func (w *world) checkTracked(raw json.RawMessage, v *verdict) error {
	return w.eachRow(raw, func(difference string, there bool) {
		switch {
		case !there:
			v.note("not tracked here: %s", difference)
		case difference != "":
			v.wrong("%s", difference)
		}
	})
}

func (w *world) checkNever(raw json.RawMessage, v *verdict) error {
	return w.eachRow(raw, func(difference string, there bool) {
		if difference == "" && there {
			v.wrong("a row is as it never should be: %s", raw)
		}
	})
}

func (w *world) eachRow(raw json.RawMessage, f func(difference string, there bool)) error {
	rows, err := wantedRows(raw)
	if err != nil {
		return err
	}
	for _, row := range rows {
		difference, there, err := w.compare(row)
		if err != nil {
			return err
		}
		f(difference, there)
	}
	return nil
}
