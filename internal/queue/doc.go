// Package queue is the doorbell: the pointer message, its group and deduplication ids, and the SQS side.
package queue
