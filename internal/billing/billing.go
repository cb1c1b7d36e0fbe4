package billing

import (
	"context"
	"encoding/json"
	"errors"

	"backstop/internal/handler"
)

// Name is the handlers' name: their step in the ledger.
const Name = "billing"

// The ranks of facts of one second. Among facts of one rank previous_attributes decide.
const (
	rankFirst  = 10 // the object was created
	rankEarly  = 30 // a state the object is in once, before all others
	rankUpdate = 50
	rankLate   = 60
	rankEnd    = 90 // deleted, or a state there is no way back from
)

// attributes that more than one file names.
const (
	attrKeys    = "keys"     // of a summary: lookup keys
	attrRow     = "row"      // of a pointer: the id of the row that holds the object
	attrRowKind = "row_kind" // of a pointer: that row's kind
)

// errNoID is what a preview is skipped with: an upcoming invoice is not there yet.
var errNoID = handler.Skip("the object has no id, so it has no row")

// ErrNoBody says that the ledger no longer has the event.
var ErrNoBody = errors.New("the ledger does not have the event's body")

// Bodies reads events that were accepted before, by the ledger's key: what decides ties of one second.
type Bodies interface {
	// Body returns the event as received, or ErrNoBody.
	Body(ctx context.Context, eventKey string) ([]byte, error)
}

// Rows reads the rows of a partition whose sort keys begin with prefix, as of now.
type Rows interface {
	Partition(ctx context.Context, table, partition, prefix string) ([]handler.Row, error)
}

// Stripe reads objects as they are now; *stripeapi.Client is one. Its errors are that package's.
type Stripe interface {
	Object(ctx context.Context, account, kind, id string) (json.RawMessage, error)
	InvoiceLines(ctx context.Context, account, invoice string) (lines []json.RawMessage, complete bool, err error)
	SubscriptionItems(ctx context.Context, account, subscription string) (items []json.RawMessage, complete bool, err error)
	ActiveEntitlements(ctx context.Context, account, customer string) (entitlements []json.RawMessage, complete bool, err error)
}

// Config is what the projection is made of. Table and Rows are needed.
type Config struct {
	Table  string // physical name of the billing table
	Rows   Rows
	Bodies Bodies // nil: ties of one second go to Stripe, or stay unsure
	Stripe Stripe // nil: nothing is refetched or completed
}

// Register makes the projection listen: one line a type.
func Register(r *handler.Registry, c Config) {
	p := &projector{c}

	on(r, p, "customer.created", customers)
	on(r, p, "customer.updated", customers)
	on(r, p, "customer.deleted", customers)

	on(r, p, "customer.subscription.created", subscriptions)
	on(r, p, "customer.subscription.updated", subscriptions)
	on(r, p, "customer.subscription.deleted", subscriptions)
	on(r, p, "customer.subscription.paused", subscriptions)
	on(r, p, "customer.subscription.resumed", subscriptions)
	on(r, p, "customer.subscription.trial_will_end", subscriptions)
	on(r, p, "customer.subscription.pending_update_applied", subscriptions)
	on(r, p, "customer.subscription.pending_update_expired", subscriptions)

	on(r, p, "invoice.created", invoices)
	on(r, p, "invoice.updated", invoices)
	on(r, p, "invoice.upcoming", invoices) // a preview: skipped for want of an id
	on(r, p, "invoice.finalized", invoices)
	on(r, p, "invoice.finalization_failed", invoices)
	on(r, p, "invoice.sent", invoices)
	on(r, p, "invoice.paid", invoices)
	on(r, p, "invoice.payment_succeeded", invoices)
	on(r, p, "invoice.payment_failed", invoices)
	on(r, p, "invoice.payment_action_required", invoices)
	on(r, p, "invoice.marked_uncollectible", invoices)
	on(r, p, "invoice.voided", invoices)

	on(r, p, "payment_intent.created", intents)
	on(r, p, "payment_intent.processing", intents)
	on(r, p, "payment_intent.requires_action", intents)
	on(r, p, "payment_intent.payment_failed", intents)
	on(r, p, "payment_intent.succeeded", intents)
	on(r, p, "payment_intent.canceled", intents)

	on(r, p, "charge.succeeded", charges)
	on(r, p, "charge.failed", charges)
	on(r, p, "charge.captured", charges)
	on(r, p, "charge.updated", charges)
	on(r, p, "charge.refunded", charges)

	on(r, p, "refund.created", refunds)
	on(r, p, "refund.updated", refunds)
	on(r, p, "refund.failed", refunds)

	on(r, p, "charge.dispute.created", disputes)
	on(r, p, "charge.dispute.updated", disputes)
	on(r, p, "charge.dispute.funds_withdrawn", disputes)
	on(r, p, "charge.dispute.funds_reinstated", disputes)
	on(r, p, "charge.dispute.closed", disputes)

	on(r, p, "invoice_payment.paid", invoicePayments)

	on(r, p, "checkout.session.completed", sessions)
	on(r, p, "checkout.session.async_payment_succeeded", sessions)
	on(r, p, "checkout.session.async_payment_failed", sessions)
	on(r, p, "checkout.session.expired", sessions)

	on(r, p, "entitlements.active_entitlement_summary.updated", summaries)
}
