// Package laptop runs the whole pipeline on one machine: the built function binaries under the Lambda host, the
// local DynamoDB, SQS and Secrets Manager on a socket, the HTTP API in front, the event source and the schedules.
// The dev command starts it, and so do the end-to-end test, the crash test and the load benchmark.
//
// All state is in memory and gone with the process. Everything listens on 127.0.0.1 only.
package laptop
