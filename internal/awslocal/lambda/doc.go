// Package lambda is the part of AWS Lambda that stands around a function:
// the Runtime API that a built binary polls, the event source mapping that
// reads an SQS queue, a schedule, and the few control-plane calls the
// pipeline and its operators use.
//
// # Functions
//
// Everything that calls a function does so through [Invoker]. There are two:
//
//   - [Host] runs built bootstrap binaries, as many processes of a function
//     as its concurrency says. Each process has a Runtime API listener of its
//     own, as each execution environment has in AWS, and an environment that
//     holds nothing of the shell it was started from. A process that dies is
//     started again; the invocation it was working on fails the way it fails
//     in AWS. One that is still busy at the function's time-out is killed.
//   - [Func] and [Functions] are Go functions in this process, for tests and
//     the simulation, which drive the same [Poller] without processes.
//
// What differs from AWS on purpose: all processes of a function are started
// at once and kept, and an invocation that finds all of them busy waits
// instead of being throttled.
//
// # The event source
//
// [Poller] receives batches from one queue and hands them to one function
// with ReportBatchItemFailures. It deletes what succeeded and leaves what
// failed to its visibility time-out, which it never touches. Disabling it
// stops the next receive; a receive or a batch under way is finished, so that
// no message is left invisible by a pause.
//
// Sources: "Using the Lambda runtime API for custom runtimes", "Lambda
// quotas", "Handling errors for an SQS event source in Lambda" and the Lambda
// API reference, all of the AWS documentation.
package lambda
