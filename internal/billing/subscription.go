package billing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"backstop/internal/handler"
)

type wireSubscription struct {
	ID                 string                     `json:"id"`
	Status             string                     `json:"status"`
	Customer           ref                        `json:"customer"`
	Currency           string                     `json:"currency"`
	CancelAtPeriodEnd  bool                       `json:"cancel_at_period_end"`
	CancelAt           *int64                     `json:"cancel_at"`
	CanceledAt         *int64                     `json:"canceled_at"`
	EndedAt            *int64                     `json:"ended_at"`
	TrialEnd           *int64                     `json:"trial_end"`
	Created            *int64                     `json:"created"`
	CurrentPeriodStart *int64                     `json:"current_period_start"` // before 2025-03-31.basil
	CurrentPeriodEnd   *int64                     `json:"current_period_end"`   // before 2025-03-31.basil
	LatestInvoice      ref                        `json:"latest_invoice"`
	Items              list[wireSubscriptionItem] `json:"items"`
	PauseCollection    *struct {
		Behavior  string `json:"behavior"`
		ResumesAt *int64 `json:"resumes_at"`
	} `json:"pause_collection"`
}

type wireSubscriptionItem struct {
	ID                 string     `json:"id"`
	Quantity           *int64     `json:"quantity"`
	CurrentPeriodStart *int64     `json:"current_period_start"` // since 2025-03-31.basil
	CurrentPeriodEnd   *int64     `json:"current_period_end"`   // since 2025-03-31.basil
	Price              *wirePrice `json:"price"`
	Plan               *wirePrice `json:"plan"` // all there was before prices
}

type wirePrice struct {
	ID         string `json:"id"`
	LookupKey  string `json:"lookup_key"`
	Product    ref    `json:"product"`
	UnitAmount *int64 `json:"unit_amount"`
}

// UnmarshalJSON reads a price that was not expanded as well.
func (p *wirePrice) UnmarshalJSON(value []byte) error {
	if len(value) > 0 && value[0] == '"' {
		return json.Unmarshal(value, &p.ID)
	}
	type plain wirePrice
	return json.Unmarshal(value, (*plain)(p))
}

var subscriptions = snapshot[wireSubscription]{read: readSubscription, complete: completeSubscription}

func readSubscription(src source, s *wireSubscription) (fact, error) {
	if !usable(s.ID) {
		return fact{}, errNoID
	}
	f := fact{object: "subscription", id: s.ID, row: s.ID, kind: kindSubscription, rank: rankUpdate}
	f.terminal = s.Status == "canceled" || s.Status == "incomplete_expired" || src.eventType == "customer.subscription.deleted"
	switch {
	case f.terminal:
		f.rank = rankEnd
	case src.eventType == "customer.subscription.created":
		f.rank = rankFirst
	}
	start, end := s.period()
	items := make([]any, 0, len(s.Items.Data))
	for _, item := range s.Items.Data {
		items = append(items, item.row())
	}
	var paused any
	if s.PauseCollection != nil {
		paused = fields(map[string]any{
			"behavior":   text(s.PauseCollection.Behavior),
			"resumes_at": number(s.PauseCollection.ResumesAt),
		})
	}
	f.set = handler.Row{
		"customer":             text(s.Customer),
		"status":               text(s.Status),
		"currency":             text(s.Currency),
		"cancel_at_period_end": flag(s.CancelAtPeriodEnd),
		"cancel_at":            number(s.CancelAt),
		"canceled_at":          number(s.CanceledAt),
		"ended_at":             number(s.EndedAt),
		"trial_end":            number(s.TrialEnd),
		"created_s":            number(s.Created),
		"current_period_start": number(start),
		"current_period_end":   number(end),
		"latest_invoice":       text(s.LatestInvoice),
		"pause_collection":     paused,
		"items":                items,
		"items_complete":       !s.Items.HasMore,
	}
	index(f.set, src.account, s.Customer, kindSubscription, s.ID)
	return f, nil
}

// period is the subscription's own where it has one, else that of its items. Items of one interval share theirs; of
// several intervals it is the one that ends first, which is also what older API versions show at the top (Stripe
// changelog, "Adds support for mixed intervals on the same subscription") and when cancel_at_period_end takes effect.
func (s *wireSubscription) period() (start, end *int64) {
	if s.CurrentPeriodEnd != nil {
		return s.CurrentPeriodStart, s.CurrentPeriodEnd
	}
	for _, item := range s.Items.Data {
		if item.CurrentPeriodEnd != nil && (end == nil || *item.CurrentPeriodEnd < *end) {
			start, end = item.CurrentPeriodStart, item.CurrentPeriodEnd
		}
	}
	return start, end
}

func (i wireSubscriptionItem) row() map[string]any {
	price := i.Price
	if price == nil {
		price = i.Plan
	}
	if price == nil {
		price = &wirePrice{}
	}
	return fields(map[string]any{
		"id":                 text(i.ID),
		"price":              text(price.ID),
		"lookup_key":         text(price.LookupKey),
		"product":            text(price.Product),
		"unit_amount":        number(price.UnitAmount),
		"quantity":           number(i.Quantity),
		"current_period_end": number(i.CurrentPeriodEnd),
	})
}

func completeSubscription(ctx context.Context, api Stripe, account string, s *wireSubscription) (bool, error) {
	if !s.Items.HasMore {
		return false, nil
	}
	raw, complete, err := api.SubscriptionItems(ctx, account, s.ID)
	if err != nil {
		return false, err
	}
	items, err := decodeAll[wireSubscriptionItem](raw)
	if err != nil {
		return false, fmt.Errorf("decode the items of %s: %w", s.ID, err)
	}
	s.Items = list[wireSubscriptionItem]{Data: items, HasMore: !complete}
	return true, nil
}

// decodeAll decodes the elements of a list that was read from the API.
func decodeAll[T any](raw []json.RawMessage) ([]T, error) {
	elements := make([]T, len(raw))
	for i, element := range raw {
		if err := json.Unmarshal(element, &elements[i]); err != nil {
			return nil, fmt.Errorf("element %d is of a shape not known", i)
		}
	}
	return elements, nil
}

// Active reports whether a subscription of this status entitles to what it sells: while active and trialing. What is
// not known never counts. Whether a past_due one does is for the seller to say, and pause_collection stands beside the
// status: both are in Subscription.
func Active(status string) bool { return slices.Contains([]string{"active", "trialing"}, status) }
