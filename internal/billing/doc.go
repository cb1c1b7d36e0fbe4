// Package billing projects Stripe's events into rows that say what a customer has, owes and gets, right in whatever
// order the events arrive. It is a set of ordinary handlers, on by default and removed by deleting one line of
// functions/processor.
//
// # Questions and keys
//
// One table answers three questions:
//
//	everything of a customer     the partition of the customer, then its partition of the index, then those rows
//	an object by its Stripe id   the partition of the object
//	who has entitlement X        the entitlement's partition of the index
//
// with these rows (the account is the connected account's id, or - for the platform's own, and part of every key, so
// that equal ids of two accounts do not meet):
//
//	pk                 sk                    gsi1pk                     gsi1sk                     what
//	account#cus_1      customer                                                                    a customer
//	account#cus_1      entitlements                                                                all it may use
//	account#cus_1      entitlement#reports   account#entitlement#reports  cus_1                    it has this one
//	account#sub_1      subscription          account#cus_1              subscription#sub_1         with its items
//	account#in_1       invoice               account#cus_1              invoice#in_1               with its lines
//	account#pi_1       payment               account#cus_1              payment#pi_1               with refunds, disputes
//	account#cs_1       checkout_session      account#cus_1              checkout_session#cs_1
//	account#ch_1       pointer                                                                     which payment holds it
//
// A row is keyed by the object's own id, which every event that feeds it knows: a refund names no customer. The index
// keys are absent, never empty, where there is no customer (a guest's payment) or no longer the entitlement. Only the
// keys are read from the index, and the rows by them, so that an index that projects keys only is enough; such an
// index costs a write when a row is new and none when it changes. A row of ordinary size is one write unit.
//
// A payment is keyed by its payment intent, or by its charge where it has none. Intent, charges, refunds, disputes and
// the invoice are parts of the row, each with its own version.
//
// # Shapes
//
// The handlers decode into types of their own, not stripe-go's: v82's lack what API versions before 2025-03-31.basil
// carry (a subscription's current_period_end, an invoice's subscription and payment intent), and a type that names only
// what is projected cannot fail on a field nobody reads. So an event of any version is projected if what is needed is
// there in one of the shapes known: periods on the subscription or on its items, the invoice's subscription at the top
// or under parent, a line's price as price, plan or pricing, payments joined to invoices by their own field or by
// invoice_payment, references as id, object or null. A field that is needed and does not decode parks the event with
// the path (package handler); money that was not sent stays absent and is never 0. Statuses are kept as sent; Active
// says of which a subscription is alive, and what is not known never is. An object without id, such as an upcoming
// invoice, has no row. Amounts are int64 in minor units as Stripe sends them; FormatMoney is the one place that makes
// decimals of them.
//
// Lists that Stripe cuts (invoice lines, subscription items, entitlements) are read whole from the API when there is a
// key. Else, or when the API will not tell, lines_complete, items_complete or entitlements_complete is false. A row
// keeps 100 lines: of a longer invoice line_count says how many there are and lines_complete is false.
//
// # Order
//
// A fact's version is (created, rank, event id), and package projection keeps the newest. Within one second rank puts
// an object's creation first, and last its deletion and the states there is no way back from: an invoice paid or void,
// an intent succeeded or canceled, a refund failed. Only a canceled or incomplete_expired subscription and a deleted
// customer are terminal over all seconds; anything else may move on.
//
// Facts of one second and one rank are a tie. If the row says already what the incoming fact would set, the larger
// event id stands and nothing is at stake. Else the stored fact's event is read from the ledger, then:
//
//	incoming previous_attributes describe the stored object    the incoming fact is newer
//	stored previous_attributes describe the incoming object    it is older
//	both, neither, a third event of that second, no body left  the object is read from Stripe
//	and there is no key, or Stripe does not have it            the later arrival stands, order_unsure is true
//
// The first and second line hold only where the other does not. What was read from Stripe stands with the version of
// the event that made us ask: changes made later have events of their own, which follow.
//
// # Crashes
//
// Each row is one conditional write, idempotent by its version. The rows that say who has an entitlement follow from
// the customer's summary: they are written after it, from what then is in it. A crash between leaves them behind until
// the event's next attempt, which finds its own fact stored and writes them.
package billing
