// Package sim tries the promises: whole lifecycles of events, through the real use cases, adapters and AWS SDK, over
// the in-process local AWS, on virtual time, with faults at the wire, from a seed.
//
// # A history
//
// Run plays one history inside a bubble of testing/synctest: an account with a few customers, some dozens of events
// over some minutes, and everybody who takes part:
//
//	stripe       delivers each event, comes again after everything that is not 2xx, and sometimes all the same: late
//	             answers, duplicates, same-second events, events out of order, Resend, deliveries nobody signed
//	receivers    processes of the receiver, each with one delivery at a time
//	processors   processes of the processor, each behind an event source poller
//	reconciler   the sweep, every minute
//	the outside  a dependency the handlers call, which is down at times
//	people       pause and resume, redrive from the console, replay, discard, purge the queue, set a time-out wrong
//
// Faults come at the wire, where they come from in AWS: refused before anything was applied, applied and the reply
// lost, throttled, slow, 5xx, reset, applied long after the caller gave up. A process dies between any two calls, at
// its function's deadline, by a handler that eats its memory; or it freezes for longer than its lease and goes on.
// Then the faults end and the history comes to rest.
//
// # What is checked
//
// The model is what Stripe sent, and what each handler was told to do. What must hold at every moment is checked at
// every moment: at the wire, where calls are applied, at the handlers, and where Stripe gets its answers. By the word a
// broken promise is reported under:
//
//	acknowledged  a 2xx finds the event settled, at work under a live lease, or pointed to from the queue
//	own write     the delivery that recorded an event is not told it is a duplicate
//	unverified    a delivery nobody signed is answered 400
//	stored        nothing is in ledger, queue or effects that Stripe did not send
//	claimed       nothing is claimed while another's lease is live
//	fenced        a write of who does not hold the claim is not applied
//	without lease no handler starts when its lease has passed
//	two at once   no two handlers are live in one group
//	not alone     nothing runs beside a suspect in its process
//	charged       an attempt is charged only when the handler failed, or the process ended or froze
//	parked        only what its handler makes unfit is parked, whatever else dies around it
//	unheard of    what is parked has its message in the dead-letter queue before it is parked, and as long
//	waited        a group's messages are not hidden longer than it has to wait, and it goes on within a bound
//	unswept       after a sweep, nothing recorded and old enough is without a message
//	paused        the sweep enqueues nothing while the pipeline is paused
//
// and when all is at rest:
//
//	lost          what was acknowledged, or recorded, is done, skipped or parked; what is done had its effects
//	doubled       a transactional effect was applied once in each life and each replay of a done event
//	order         in a group, first effects are in the order of first sequence numbers, but for what was parked
//	stale         a projected row is at the newest fact, by second and by previous_attributes, or says it is unsure
//	idempotency   calls to the outside carried one key in each life and each replay of a done event
//	outcome       each event ended as its handler means it to
//	budget        no more attempts were charged than there are
//	tidy          after tidying, the dead-letter queue holds the parked and nothing else
//	expired       36 days later, a delivery of a settled event is a new event
//
// A purge breaks a promise by itself: it takes the messages in flight that keep a group to one worker, and the order.
// Both are not checked for what it hits; that nothing is lost is.
//
// # The same seed is the same history
//
// Virtual time alone does not make that: goroutines that are runnable at one moment run in any order. So no two calls
// fall on one moment: every call waits for the next millisecond and a number of nanoseconds that is its process's and
// its own. There is no shared source of random numbers either: each decision is a hash of the seed, of who decides
// about what, and of the moment, so that it does not depend on who came first.
//
// # It can fail
//
// Hooks put a wrong variant in the place of a right one. The variants are in this package's tests, and the tests fail
// when the simulation does not find each of them within a bounded number of lifecycles.
package sim
