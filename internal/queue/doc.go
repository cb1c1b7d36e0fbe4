// Package queue is the doorbell: the pointer message, its group and deduplication ids, and the SQS side.
//
// A message says which entry of the ledger wants work, never what the event was: the ledger is the truth. The queue
// is FIFO in its high-throughput mode, so deduplication and order are per message group. Deduplication is an
// optimisation (SQS forgets after five minutes); the ledger decides.
//
// A crash after a send and before whatever was to follow leaves one pointer too many, which the ledger turns away.
// A pointer too few is what the sweep is for.
package queue
