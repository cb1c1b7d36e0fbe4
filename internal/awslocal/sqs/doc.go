// Package sqs is a local Amazon SQS for FIFO queues: an http.Handler that speaks
// the service's AWS JSON protocol and keeps its queues in memory. It behaves like
// the real service where Backstop, a person with the AWS CLI, or a test would
// notice, and answers AWS's error for what it does not do, standard queues for one.
//
// # What a queue promises
//
//   - Order and exclusion. The messages of a group are delivered in the order
//     they were sent. Nothing of a group is delivered while any message of it is
//     in flight. One receive may return several consecutive messages of a group,
//     then messages of other groups. A message that comes back (visibility
//     time-out, ChangeMessageVisibility to 0) comes back to its old place.
//   - Deduplication. For five minutes after a message was accepted, another one
//     with its deduplication id is accepted and not stored; the answer names the
//     original message id and sequence number. This holds whatever became of the
//     original and whatever the body of the second. The scope is the queue or,
//     with DeduplicationScope=messageGroup, the group.
//   - Receipt handles. A handle is good for one receive, while its message is in
//     flight. Deleting with an expired handle is an error and deletes nothing;
//     deleting a message that is already gone succeeds, so that a retry whose
//     first answer was lost does.
//   - Dead letters. A message that was received maxReceiveCount times from this
//     queue moves when the next receive would return it. It keeps its message
//     id, group, attributes and receive count (ApproximateReceiveCount counts
//     across queues) and gets a new sequence number and SentTimestamp.
//   - Backlog. Only the first 120,000 messages of a FIFO queue, in flight ones
//     included, are looked at for groups that can be delivered. A backlog of one
//     group therefore starves the groups behind it.
//
// # Choices where the documents leave room
//
//   - "Learn how to configure a dead-letter queue redrive" says that SQS replaces
//     the deduplication id by the message id when it moves a message to a FIFO
//     dead-letter queue, so that two messages never collide there. Here a moved
//     message is never deduplicated, which has the same end, and still shows the
//     id its producer gave it.
//   - StartMessageMoveTask is finished when it is answered, whatever rate was
//     asked for. Moved messages are new: new id, time and receive count. One that
//     was sent to the dead-letter queue directly has no source; without
//     DestinationArn the task stops there as FAILED, CouldNotDetermineMessageSource.
//   - "Amazon SQS FIFO queue quotas" allows 120,000 messages in flight and says that
//     there is no error beyond. As many are looked at, so that a receive then
//     returns nothing by itself.
//   - PurgeQueue and SetQueueAttributes take effect at once, not within 60 seconds.
//     A purge forgets messages, not deduplication ids.
//   - Signatures are not checked and nothing is throttled. Tags, policies and
//     permissions are refused; encryption attributes are stored and returned.
//
// # How it works
//
// One mutex guards everything. Time is read once an operation from the injected
// clock and every queue touched is advanced to it: what has outlived its
// retention goes, what is due becomes visible. There are no goroutines. All
// structures are ordered, so that no operation walks the backlog:
//
//	queue.all      messages by sequence number, with a pointer to the last one in the window
//	group.members  messages of a group by sequence number
//	queue.ready    heap of deliverable groups, by their first message
//	queue.timers   heap of delayed and in-flight messages, by the moment they turn visible
//
// A receive that finds nothing may wait. Waiting receives form a line; whatever
// makes a message visible hands it to the first in line on the spot, inside the
// same critical section, so that who gets what does not depend on the scheduler.
// The first in line also keeps a timer for the queue's next moment.
//
// Sources: Amazon SQS API Reference; Amazon SQS Developer Guide, "Amazon SQS FIFO
// queue quotas", "Amazon SQS message quotas", "Avoid large message backlogs with
// the same message group ID", "Setting-up dead-letter queue retention", "Learn how
// to configure a dead-letter queue redrive".
package sqs
