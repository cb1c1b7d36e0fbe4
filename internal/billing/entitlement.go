package billing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/handler"
	"backstop/internal/schema"
)

type wireSummary struct {
	Customer     ref                   `json:"customer"`
	Entitlements list[wireEntitlement] `json:"entitlements"`
}

type wireEntitlement struct {
	LookupKey string `json:"lookup_key"`
	Feature   ref    `json:"feature"`
}

// maxEntitlementKey is the longest lookup key that is kept: a sort key holds 1,024 bytes and Stripe's lookup keys are
// at most 80 characters (Stripe API Reference, "Features").
const maxEntitlementKey = 512

// summaries are all that a customer is entitled to, of which an event carries ten.
//
// The summary's row is the truth. The rows that answer "who has X" follow from it: they are written once it stands,
// from what then is in it, and only where they differ.
var summaries = snapshot[wireSummary]{
	read:     readSummary,
	complete: completeSummary,
	fetch: func(ctx context.Context, api Stripe, account string, f fact) (*wireSummary, error) {
		s := &wireSummary{Customer: ref(f.id)}
		s.Entitlements.HasMore = true
		_, err := completeSummary(ctx, api, account, s)
		return s, err
	},
	then: entitlementRows,
}

func readSummary(src source, s *wireSummary) (fact, error) {
	id := string(s.Customer)
	if !usable(id) {
		return fact{}, handler.Skip("the summary names no customer")
	}
	keys := make([]string, 0, len(s.Entitlements.Data))
	for _, e := range s.Entitlements.Data {
		if key := e.key(); key != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	values := make([]any, 0, len(keys))
	for _, key := range slices.Compact(keys) {
		values = append(values, key)
	}
	f := fact{object: "entitlements", id: id, row: id, kind: kindEntitlements, rank: rankUpdate}
	f.set = handler.Row{attrKeys: values, "entitlements_complete": !s.Entitlements.HasMore}
	return f, nil
}

// key is what the seller calls the entitlement: the lookup key, or the feature where there is none.
func (e wireEntitlement) key() string {
	key := e.LookupKey
	if strings.TrimSpace(key) == "" {
		key = string(e.Feature)
	}
	return short(key, maxEntitlementKey)
}

func completeSummary(ctx context.Context, api Stripe, account string, s *wireSummary) (bool, error) {
	if !s.Entitlements.HasMore {
		return false, nil
	}
	raw, complete, err := api.ActiveEntitlements(ctx, account, string(s.Customer))
	if err != nil {
		return false, err
	}
	data, err := decodeAll[wireEntitlement](raw)
	if err != nil {
		return false, fmt.Errorf("decode the entitlements of %s: %w", s.Customer, err)
	}
	s.Entitlements = list[wireEntitlement]{Data: data, HasMore: !complete}
	return true, nil
}

// entitlementRows returns what follows from a summary: a row in the index for each entitlement the customer has, and
// no longer in it for each one lost. It reads what rows there are, so that a cut or skipped summary leaves none
// behind; the group's turn keeps others from changing them meanwhile. A list that is cut takes nothing away.
func entitlementRows(p *projector, e handler.Event, f fact) func(context.Context, handler.Row) ([]handler.Project, error) {
	return func(ctx context.Context, set handler.Row) ([]handler.Project, error) {
		rows, err := p.Rows.Partition(ctx, p.Table, partition(e.Account, f.row), entitlementPrefix)
		if err != nil {
			return nil, fmt.Errorf("read the entitlements of %s: %w", f.row, err)
		}
		listed := make(map[string]bool, len(rows)) // by sort key: whether it is in the index
		for _, row := range rows {
			sk, _ := row[schema.SK].(string)
			_, listed[sk] = row[schema.BillingPK1].(string)
		}
		var follow []handler.Project
		put := func(sk string, set handler.Row) {
			follow = append(follow, handler.Project{
				Table:   p.Table,
				Key:     key(e.Account, f.row, sk),
				Set:     set,
				Version: handler.Version{CreatedS: e.CreatedS, Rank: f.rank, EventID: e.ID},
				Decide:  keepLater, // the summary's tie is decided
			})
		}
		has := make(map[string]bool)
		for _, value := range texts(set[attrKeys]) {
			sk := entitlementPrefix + value
			if has[sk] = true; !listed[sk] {
				put(sk, handler.Row{
					schema.BillingPK1: partition(e.Account, sk),
					schema.BillingSK1: f.row,
				})
			}
		}
		if complete, _ := set["entitlements_complete"].(bool); !complete {
			return follow, nil
		}
		for _, row := range rows {
			if sk, _ := row[schema.SK].(string); listed[sk] && !has[sk] {
				put(sk, handler.Row{schema.BillingPK1: nil, schema.BillingSK1: nil})
			}
		}
		return follow, nil
	}
}

// texts reads a list of strings out of a row.
func texts(value any) []string {
	elements, _ := value.([]any)
	list := make([]string, 0, len(elements))
	for _, element := range elements {
		if s, ok := element.(string); ok {
			list = append(list, s)
		}
	}
	return list
}
