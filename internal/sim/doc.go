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
// Then the faults end, the history comes to rest, and Check compares it with a plain model of what Stripe sent.
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
