package events

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
)

//go:generate go run backstop/events/internal/gen -dir .

//go:embed *.json lambda/*.json stories/*.json
var files embed.FS

// APIVersion is the Stripe API version of all samples and stories.
const APIVersion = "2025-08-27.basil"

// ThinObject is the value of "object" in a thin notification, which names the
// object it is about and carries none of its state.
const ThinObject = "v2.core.event"

// What the deliveries in lambda/ are signed with, and when. The secret is no
// secret: no Stripe endpoint has it.
const (
	SampleSecret = "whsec_fake_sample_secret"
	SampleTime   = 1790068850 // unix seconds, 2026-09-22T09:20:50Z
)

// Type is one event type that Backstop subscribes to.
type Type struct {
	// Name is Stripe's name of the type, such as "invoice.paid".
	Name string
	// Object is the kind of object the event carries ("object" in data.object).
	// Of a thin notification it is the kind of its related object.
	Object string
	// Thin says that the event is a v2 notification without a payload.
	Thin bool
	// About says in one line when Stripe sends it.
	About string
}

// catalog is sorted by name.
var catalog = []Type{
	{Name: "charge.captured", Object: "charge", About: "an authorized charge was captured"},
	{Name: "charge.dispute.closed", Object: "dispute", About: "a dispute ended, won or lost"},
	{Name: "charge.dispute.created", Object: "dispute", About: "a cardholder disputes a charge"},
	{Name: "charge.dispute.funds_reinstated", Object: "dispute", About: "the disputed amount came back"},
	{Name: "charge.dispute.funds_withdrawn", Object: "dispute", About: "the disputed amount was taken"},
	{Name: "charge.dispute.updated", Object: "dispute", About: "a dispute changed, mostly by evidence"},
	{Name: "charge.failed", Object: "charge", About: "an attempt to charge failed"},
	{Name: "charge.refunded", Object: "charge", About: "a charge was refunded, also in part"},
	{Name: "charge.succeeded", Object: "charge", About: "a charge succeeded or was authorized"},
	{Name: "charge.updated", Object: "charge", About: "a charge's description, receipt or balance transaction changed"},
	{Name: "checkout.session.async_payment_failed", Object: "checkout.session", About: "a delayed payment of a session failed"},
	{Name: "checkout.session.async_payment_succeeded", Object: "checkout.session", About: "a delayed payment of a session succeeded"},
	{Name: "checkout.session.completed", Object: "checkout.session", About: "the buyer finished a session, paid or not yet"},
	{Name: "checkout.session.expired", Object: "checkout.session", About: "a session ran out unused"},
	{Name: "customer.created", Object: "customer", About: "a customer was created"},
	{Name: "customer.deleted", Object: "customer", About: "a customer was deleted"},
	{Name: "customer.subscription.created", Object: "subscription", About: "a subscription was created, paid or not yet"},
	{Name: "customer.subscription.deleted", Object: "subscription", About: "a subscription ended"},
	{Name: "customer.subscription.paused", Object: "subscription", About: "a trial ended without a payment method and paused"},
	{Name: "customer.subscription.pending_update_applied", Object: "subscription", About: "a change that waited for payment took effect"},
	{Name: "customer.subscription.pending_update_expired", Object: "subscription", About: "a change that waited for payment lapsed"},
	{Name: "customer.subscription.resumed", Object: "subscription", About: "a paused subscription became active"},
	{Name: "customer.subscription.trial_will_end", Object: "subscription", About: "a trial ends in three days"},
	{Name: "customer.subscription.updated", Object: "subscription", About: "a subscription changed: status, plan, period, cancellation"},
	{Name: "customer.tax_id.created", Object: "tax_id", About: "a tax id was added to a customer"},
	{Name: "customer.updated", Object: "customer", About: "a customer changed"},
	{Name: "entitlements.active_entitlement_summary.updated", Object: "entitlements.active_entitlement_summary", About: "what a customer may use changed"},
	{Name: "invoice.created", Object: "invoice", About: "an invoice was drafted"},
	{Name: "invoice.finalization_failed", Object: "invoice", About: "a draft could not be finalized"},
	{Name: "invoice.finalized", Object: "invoice", About: "a draft became open"},
	{Name: "invoice.marked_uncollectible", Object: "invoice", About: "an invoice was written off"},
	{Name: "invoice.paid", Object: "invoice", About: "an invoice was paid, or marked so"},
	{Name: "invoice.payment_action_required", Object: "invoice", About: "paying an invoice needs the cardholder"},
	{Name: "invoice.payment_failed", Object: "invoice", About: "an attempt to pay an invoice failed"},
	{Name: "invoice.payment_succeeded", Object: "invoice", About: "an attempt to pay an invoice succeeded"},
	{Name: "invoice.sent", Object: "invoice", About: "an invoice was mailed to its customer"},
	{Name: "invoice.upcoming", Object: "invoice", About: "a subscription renews in some days; the invoice has no id yet"},
	{Name: "invoice.updated", Object: "invoice", About: "an invoice changed"},
	{Name: "invoice.voided", Object: "invoice", About: "an invoice was voided"},
	{Name: "invoice_payment.paid", Object: "invoice_payment", About: "a payment was booked on an invoice"},
	{Name: "payment_intent.canceled", Object: "payment_intent", About: "a payment was given up"},
	{Name: "payment_intent.created", Object: "payment_intent", About: "a payment was begun"},
	{Name: "payment_intent.payment_failed", Object: "payment_intent", About: "an attempt to pay failed"},
	{Name: "payment_intent.processing", Object: "payment_intent", About: "a delayed payment is under way"},
	{Name: "payment_intent.requires_action", Object: "payment_intent", About: "a payment waits for the buyer"},
	{Name: "payment_intent.succeeded", Object: "payment_intent", About: "a payment succeeded"},
	{Name: "payment_method.attached", Object: "payment_method", About: "a payment method was attached to a customer"},
	{Name: "payment_method.automatically_updated", Object: "payment_method", About: "a card network renewed a card's details"},
	{Name: "payment_method.detached", Object: "payment_method", About: "a payment method was detached from its customer"},
	{Name: "payment_method.updated", Object: "payment_method", About: "a payment method was changed by request"},
	{Name: "payout.failed", Object: "payout", About: "a payout to the account's bank failed"},
	{Name: "payout.paid", Object: "payout", About: "a payout is due at the account's bank"},
	{Name: "refund.created", Object: "refund", About: "a refund was created"},
	{Name: "refund.failed", Object: "refund", About: "a refund failed, also after it had succeeded"},
	{Name: "refund.updated", Object: "refund", About: "a refund changed, such as by its reference number"},
	{Name: "setup_intent.succeeded", Object: "setup_intent", About: "a payment method was set up for later"},
	{Name: "v1.billing.meter.error_report_triggered", Object: "billing.meter", Thin: true, About: "a meter met invalid usage events"},
}

// Types is the catalog: all event types Backstop subscribes to, sorted by name.
// The slice is the caller's.
func Types() []Type { return slices.Clone(catalog) }

// Sample is the sample payload of an event type, as Stripe would post it. An
// unknown type is an error that matches fs.ErrNotExist.
func Sample(typ string) ([]byte, error) {
	if !slices.ContainsFunc(catalog, func(t Type) bool { return t.Name == typ }) {
		return nil, fmt.Errorf("event type %q is not in the catalog: %w", typ, fs.ErrNotExist)
	}
	return read(typ + ".json")
}

func read(name string) ([]byte, error) {
	body, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read embedded file: %w", err)
	}
	return body, nil
}
