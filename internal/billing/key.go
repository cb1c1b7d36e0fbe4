package billing

import (
	"strings"

	"backstop/internal/handler"
	"backstop/internal/schema"
)

// The kinds of rows, which are their sort keys.
const (
	kindCustomer     = "customer"
	kindSubscription = "subscription"
	kindInvoice      = "invoice"
	kindPayment      = "payment"
	kindSession      = "checkout_session"
	kindEntitlements = "entitlements"
	kindPointer      = "pointer"

	// entitlementPrefix begins the sort keys of the rows that say who has an entitlement.
	entitlementPrefix = "entitlement#"
)

// partition is the partition key of what has this id in this account. No account's id holds a #, so that no two
// accounts, nor two ids, ever share one.
func partition(account, id string) string {
	if account == "" {
		account = "-"
	}
	return account + "#" + id
}

// split is the other way round.
func split(partition string) (account, id string) {
	account, id, _ = strings.Cut(partition, "#")
	if account == "-" {
		account = ""
	}
	return account, id
}

func key(account, id, kind string) map[string]string {
	return map[string]string{schema.PK: partition(account, id), schema.SK: kind}
}

// index puts a row into its customer's index partition, or leaves it where it is when the object names no customer:
// another part of the row may know, and an index key is never empty.
func index(set handler.Row, account string, customer ref, kind, id string) {
	if usable(string(customer)) {
		set[schema.BillingPK1] = partition(account, string(customer))
		set[schema.BillingSK1] = kind + "#" + id
	}
}
