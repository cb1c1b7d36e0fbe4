package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// maxID is the longest group or deduplication id (Amazon SQS API Reference, "SendMessage").
const maxID = 128

// DeduplicationID names one sending of a pointer. A replay and a sweep need ids of their own: SQS would accept the
// message within five minutes of the last one and drop it silently.
func DeduplicationID(eventID string, replay, sweep int) string {
	id := fmt.Sprintf("%s#%d", eventID, replay)
	if sweep > 0 {
		id = fmt.Sprintf("%s#s%d", id, sweep)
	}
	return bounded(id)
}

// DeadLetterID names the dead-letter message of an entry parked at a generation: a crash between sending it and
// parking the entry sends another at the next generation, so that the earlier one can be told from it.
func DeadLetterID(eventID string, generation int64) string {
	return bounded(fmt.Sprintf("%s#g%d", eventID, generation))
}

// bounded returns id as SQS takes it: up to 128 letters, digits and ASCII punctuation. What is longer or holds
// anything else is hashed, since cutting or replacing could make two ids one.
func bounded(id string) string {
	if ValidID(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// ValidID reports whether SQS takes id as a message group or deduplication id.
func ValidID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}
