// Package cases runs case files: descriptions, neutral of any implementation, of what public webhook systems got wrong,
// as HTTP requests, queue records, faults at named points and outcomes. testdata/README.md says what the files hold.
//
// There is no code here but the test. It plays each variant of each case in a bubble of virtual time, from a clean
// store, through what is deployed: receive.Receiver behind the local HTTP API, process.Processor behind the local event
// source, package reconcile, the AWS adapters, the AWS SDK and the local AWS. Beside the default billing handlers a sink
// listens to every type of the catalog. Its effect is a count that is added to, in one transaction with its step's mark;
// it does no deduplication of its own.
//
// # Words of the cases and what they are here
//
//	record                         the ledger's conditional put by the receiver
//	forward                        sending the pointer; between_record_and_forward is before it, after_forward_before_response after
//	after_claim_before_effect      the start of the handlers: nothing lies between the claim and them
//	before_effect                  the start of the handlers
//	after_effect_before_done       after the effects, before the settling is applied
//	done                           the settling
//	projection_read                the next call to the billing table: a row is read by the conditional write that may change it
//	projection_write               the next update of a row of the billing table
//	stripe_api                     the next request to the stub of Stripe's API
//	failed, parked                 an entry that is parked; ignored: one that is skipped
//	queue.max_receive_count        the budget of charged attempts: receives are no attempts here
//	replay from dlq                in turn the ledger's replay and SQS's own redrive, where all of the dead-letter queue is meant
//	replay from store              the ledger's replay of what is parked; what is done is refused, since nobody said again
//	drain                          the event source until the queue is empty, no sweep
//
// An error or a throttle at a call is one answer on the wire, which the SDK may try again; a crash ends the process
// between two calls. A variant is skipped, with the reason, when it needs what this design does not have, and when its
// fault was never reached: it would prove nothing.
package cases
