// Package events is Backstop's contract with Stripe: the catalog of event types
// it subscribes to, one full sample payload each, sample invocations of the two
// functions, and stories.
//
// # Samples
//
// <type>.json is one event as Stripe posts it, byte for byte: two spaces an
// indentation step, Stripe's order of keys, every key that an object of that
// kind carries. The shapes are those of API version 2025-08-27.basil, the one
// stripe-go v82 is generated from and the one an endpoint provisioned through
// it delivers: billing periods on the items of a subscription, an invoice's
// subscription under parent.subscription_details, payments joined to invoices
// by invoice_payment. People and companies in them are invented, and mail
// addresses end in the reserved example domains. The one thin notification
// (Object [ThinObject]) has another envelope: no data, a created of RFC 3339.
//
// [Types] is the catalog, [Sample] one payload, and [Fresh] makes a new event
// of a payload: new ids, new times, the text around them untouched.
//
// Nothing deployed reads the payloads: a program that only calls [Types] does not
// carry the files, for the linker leaves them out.
//
// # Sample invocations
//
// lambda/ holds what AWS hands to the functions: HTTP API payload 2.0 plain and
// base64, REST API payload 1.0 with single and multi-value headers, a Function
// URL, a load balancer in both header styles; and SQS FIFO batches of pointers.
// All deliveries are signed with [SampleSecret] at [SampleTime], so a test with
// a fixed clock can verify them. [Invocation] returns one.
//
// # Stories
//
// stories/ holds sequences of events that one business episode causes, in the
// order they happened, with the truth at the end: as rows (final) and as the
// objects Stripe's API would answer (stripe). See [Story].
//
// # Where the files come from
//
// internal/gen writes every JSON file here from one set of object shapes and
// one model of what Stripe does to them, so payloads, previous attributes and
// final states agree. Change the generator, then run go generate; a test fails
// while files and generator differ. The rows under final are written by hand
// there, not computed: they are what the projections are tested against.
//
// Facts about payloads are from Stripe's "API reference", "Types of events",
// "Event notification (thin events)" and the "Basil" changelog; about
// invocations from AWS's "Working with AWS Lambda proxy integrations for HTTP
// APIs", "Lambda functions as targets" of Application Load Balancers, and
// "Using Lambda with Amazon SQS".
package events
