package billing

import (
	"backstop/internal/handler"
)

type wireCustomer struct {
	ID         string `json:"id"`
	Deleted    bool   `json:"deleted"`
	Livemode   bool   `json:"livemode"`
	Created    *int64 `json:"created"`
	Email      string `json:"email"`
	Name       string `json:"name"`
	Currency   string `json:"currency"`
	Balance    *int64 `json:"balance"`
	Delinquent bool   `json:"delinquent"`
}

var customers = snapshot[wireCustomer]{read: readCustomer}

func readCustomer(src source, c *wireCustomer) (fact, error) {
	if !usable(c.ID) {
		return fact{}, errNoID
	}
	f := fact{object: "customer", id: c.ID, row: c.ID, kind: kindCustomer, rank: rankUpdate}
	deleted := c.Deleted || src.eventType == "customer.deleted"
	if deleted {
		f.rank, f.terminal = rankEnd, true
	}
	if src.eventType == "customer.created" {
		f.rank = rankFirst
	}
	if deleted && c.Created == nil {
		// What the API answers for a deleted customer says nothing else: what was known stays.
		f.set = handler.Row{"deleted": true}
		return f, nil
	}
	f.set = handler.Row{
		"email":      text(short(c.Email, 512)),
		"name":       text(short(c.Name, 256)),
		"currency":   text(c.Currency),
		"balance":    number(c.Balance),
		"delinquent": flag(c.Delinquent),
		"deleted":    flag(deleted),
		"livemode":   flag(c.Livemode),
		"created_s":  number(c.Created),
	}
	return f, nil
}
