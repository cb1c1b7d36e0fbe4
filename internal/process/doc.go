// Package process is the use case of the processor: a batch of pointers in, the ids of those to keep in the queue out.
//
// # Order
//
// The messages of one group are handled one at a time in the order SQS gave them; groups run in parallel. The first
// event of a group that is not settled stops the rest of its group in this batch: they are handed back unrun, with
// the same visibility in the same call, because SQS returns nothing of a group while any of its messages is hidden.
//
// Suspects, whose last attempt ended by its lease running out, may have killed the process they ran in. They run
// after everything else, one at a time, in random order, each claimed only when its turn comes, so that a killer is
// charged alone.
//
// # One event
//
//	decode the pointer -> claim -> run each open step -> apply its effects -> settle, release or park
//
// The steps run in the order their handlers were registered, beginning with another one at each attempt, and none is
// begun when the time of handlers is over; a suspect's are marked one by one. So a handler that ends its process or
// takes all the time parks by itself, and those behind it have their turn.
//
// A crash before the claim leaves the message; after it, a lease that runs out and is charged. Effects that are facts
// are written again by the next attempt, with the same result. Effects that are counted stand in one transaction
// with their step's mark, so that the next attempt does not run the step. A crash after the settling leaves a message
// whose entry is settled: it is dropped.
//
// To park is to send the pointer to the dead-letter queue, then to settle, then to let the message go. A crash after
// the first leaves a message there whose entry is not parked, which the reconciler tidies. In any other order a crash
// would leave a parked entry nobody hears of.
//
// # Who is charged
//
// Package handler's Classify decides. What is charged counts against Budget for each step; what is not waits at most
// MaxWait. An outage of a dependency that meanwhile works for other events is charged: it is this event.
//
// # Time
//
// Everything is fitted before the function's deadline; see Timing. Past the lease's end nothing is written. A handler
// that still runs when the answer is due ends the process: the function would be frozen around it, and a thawed one
// must not go on.
package process
