package billing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/handler"
	"backstop/internal/schema"
)

// Table reads the billing table; *projection.Store is one.
type Table interface {
	Rows
	Index(ctx context.Context, table, partition, prefix, after string, limit int) (rows []handler.Row, next string, err error)
	Rows(ctx context.Context, table string, keys []map[string]string) ([]handler.Row, error)
}

// indexPage is how many keys of the index are read at a time.
const indexPage = 500

// Reader answers what people ask about a customer. It is safe for concurrent use.
type Reader struct {
	rows  Table
	table string
}

// NewReader returns a reader of the table with this physical name.
func NewReader(rows Table, table string) *Reader { return &Reader{rows, table} }

// Account is everything of one customer. Customer is nil where no event of it came: others may name it all the same.
type Account struct {
	Customer      *Customer          `json:"customer"`
	Subscriptions []*Subscription    `json:"subscriptions"` // newest first, as are the others
	Entitlements  *Entitlements      `json:"entitlements"`  // nil: no summary came
	Invoices      []*Invoice         `json:"invoices"`
	Payments      []*Payment         `json:"payments"`
	Sessions      []*CheckoutSession `json:"checkout_sessions"`
}

// Empty reports whether nothing is known of the customer.
func (a Account) Empty() bool {
	return a.Customer == nil && a.Entitlements == nil &&
		len(a.Subscriptions)+len(a.Invoices)+len(a.Payments)+len(a.Sessions) == 0
}

// Customer reads everything of a customer. Which objects are the customer's may be a second behind; how they stand is
// as of now.
func (r *Reader) Customer(ctx context.Context, account, id string) (Account, error) {
	var a Account
	own, err := r.rows.Partition(ctx, r.table, partition(account, id), "")
	if err != nil {
		return a, fmt.Errorf("read the customer %s: %w", id, err)
	}
	var keys []map[string]string
	for after := ""; ; {
		page, next, err := r.rows.Index(ctx, r.table, partition(account, id), "", after, indexPage)
		if err != nil {
			return a, fmt.Errorf("read what the customer %s has: %w", id, err)
		}
		for _, row := range page {
			pk, _ := row[schema.PK].(string)
			sk, _ := row[schema.SK].(string)
			keys = append(keys, map[string]string{schema.PK: pk, schema.SK: sk})
		}
		if after = next; after == "" {
			break
		}
	}
	rows, err := r.rows.Rows(ctx, r.table, keys)
	if err != nil {
		return a, fmt.Errorf("read what the customer %s has: %w", id, err)
	}
	for _, row := range slices.Concat(own, rows) {
		a.add(Object(row))
	}
	slices.SortFunc(a.Subscriptions, func(x, y *Subscription) int { return byTime(y.CreatedS, x.CreatedS, y.ID, x.ID) })
	slices.SortFunc(a.Invoices, func(x, y *Invoice) int { return byTime(y.CreatedS, x.CreatedS, y.ID, x.ID) })
	slices.SortFunc(a.Payments, func(x, y *Payment) int { return byTime(y.CreatedS, x.CreatedS, y.ID, x.ID) })
	slices.SortFunc(a.Sessions, func(x, y *CheckoutSession) int { return byTime(y.CreatedS, x.CreatedS, y.ID, x.ID) })
	return a, nil
}

func (a *Account) add(object any) {
	switch object := object.(type) {
	case *Customer:
		a.Customer = object
	case *Entitlements:
		a.Entitlements = object
	case *Subscription:
		a.Subscriptions = append(a.Subscriptions, object)
	case *Invoice:
		a.Invoices = append(a.Invoices, object)
	case *Payment:
		a.Payments = append(a.Payments, object)
	case *CheckoutSession:
		a.Sessions = append(a.Sessions, object)
	}
}

// Object reads one object by its Stripe id: a customer, subscription, invoice, payment intent, checkout session, or
// the payment that a charge, refund or dispute belongs to. See the function Object for its types; nil without an
// error: not known.
func (r *Reader) Object(ctx context.Context, account, id string) (any, error) {
	for range 2 { // the object, or what points to it
		rows, err := r.rows.Partition(ctx, r.table, partition(account, id), "")
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", id, err)
		}
		pointed := ""
		for _, row := range rows {
			switch row[schema.SK] {
			case kindPointer:
				pointed, _ = row[attrRow].(string)
			case kindEntitlements: // stands beside its customer
			default:
				if object := Object(row); object != nil {
					return object, nil
				}
			}
		}
		if id = pointed; id == "" {
			break
		}
	}
	return nil, nil
}

// Entitled lists the customers that have an entitlement, by its lookup key, in the order of their ids. It may be a
// second behind. after is the cursor the page before returned, empty for the first; the one returned is empty after
// the last.
func (r *Reader) Entitled(ctx context.Context, account, entitlement, after string, limit int) (customers []string, next string, err error) {
	rows, next, err := r.rows.Index(ctx, r.table, partition(account, entitlementPrefix+entitlement), "", after, limit)
	if err != nil {
		return nil, "", fmt.Errorf("read who has the entitlement %s: %w", entitlement, err)
	}
	for _, row := range rows {
		if id, _ := row[schema.BillingSK1].(string); id != "" {
			customers = append(customers, id)
		}
	}
	return customers, next, nil
}

// Events are the ledger's keys of all events an account's rows stand on, oldest first.
func (a Account) Events() []string {
	type made struct {
		createdS int64
		key      string
	}
	var list []made
	collect := func(o Origin) {
		for _, f := range o.Facts {
			list = append(list, made{f.CreatedS, f.EventKey})
			within := f.EventKey[:strings.LastIndexByte(f.EventKey, '#')+1]
			for _, id := range f.TiedEvents {
				list = append(list, made{f.CreatedS, within + id})
			}
		}
	}
	if a.Customer != nil {
		collect(a.Customer.Origin)
	}
	if a.Entitlements != nil {
		collect(a.Entitlements.Origin)
	}
	for _, s := range a.Subscriptions {
		collect(s.Origin)
	}
	for _, i := range a.Invoices {
		collect(i.Origin)
	}
	for _, p := range a.Payments {
		collect(p.Origin)
	}
	for _, s := range a.Sessions {
		collect(s.Origin)
	}
	slices.SortFunc(list, func(x, y made) int { return cmp.Or(cmp.Compare(x.createdS, y.createdS), cmp.Compare(x.key, y.key)) })
	var keys []string
	for _, m := range slices.Compact(list) {
		keys = append(keys, m.key)
	}
	return keys
}
