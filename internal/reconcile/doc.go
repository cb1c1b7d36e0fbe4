// Package reconcile heals what no delivery and no message will: it sweeps what was recorded and never finished, audits
// the ledger against Stripe's own list, and tidies the dead-letter queue.
//
// # Sweep
//
// Every minute it walks the index of entries to do, oldest first over all its partitions, and enqueues again what was
// recorded and has waited for 2, 4, 8 ... 60 minutes, then every hour, and what is processing with its lease passed, at
// the same ages. The age counts from when the entry became to do, and the number of sweeps it has had says which age is
// next, so that an entry whose message was lost waits two minutes, and one whose customer has a long backlog is not
// enqueued every minute anew.
//
// A run enqueues at most the larger of 100 and one in a hundred of the messages the queue shows, so that a backlog is
// not multiplied, and nothing while the pipeline is paused. The sweep is counted in the entry before its message is
// sent: a crash between the two costs the time until the next age, never a second message under one number.
//
// Where a run stops, for its budget or its deadline, the next one goes on. The cursors are in the control table, and
// losing them costs nothing but a walk from the start. The walk also gathers what the alarms want to know of open
// entries, which the index, holding keys only, cannot say: on which dependency they wait, and which message group has
// most of them, since SQS looks for messages it may deliver among the first 120,000 only (Amazon SQS Developer Guide,
// "FIFO queue quotas").
//
// # Audit
//
// Every 15 minutes it compares Stripe's list of events with the ledger, from where the last audit stopped, less 15
// minutes, up to 15 minutes ago. What the ledger lacks it records, with the origin backfill, and enqueues, as a delivery
// would: the same key, the same group, the same conditional write, so that a delivery that comes at the same time
// changes nothing. The payload is what the list shows, in the account's API version.
//
// The window is compared in slices, the oldest first, of at most a thousand events: a slice is paged through to its
// end, compared by batch reads, healed in the order things happened, and only then the cursor in the control table
// moves past it. A crash or a time-out costs the slice under way. With a call in a fifth of a second this keeps up with
// about 20 events a second; beyond that audits do not end, and the alarm on audits that did not run says so.
//
// It cannot see more than Stripe lists: nothing older than 30 days, no notifications of API v2, no accounts it was not
// told of. Each is said in the report. What cannot be recorded (an event larger than an entry) is reported as unhealed
// and passed.
//
// # Tidy
//
// A message in the dead-letter queue is the doorbell of a parked entry. One whose entry has been replayed, discarded or
// claimed again since is a ghost, and is deleted. All others, also those that nobody understands, are given back at
// once; a run that dies gives them back by their visibility time-out.
package reconcile
