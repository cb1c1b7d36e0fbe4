package sqs

import (
	"errors"
	"regexp"
)

// maxBatch is how many entries a batch may have.
const maxBatch = 10

var batchID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

type entry interface{ id() string }

// checkBatch checks what makes a whole batch fail.
func checkBatch[E entry](entries []E) error {
	if len(entries) == 0 {
		return queueError("EmptyBatchRequest", "There should be at least one entry in the request.")
	}
	if len(entries) > maxBatch {
		return queueError("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have sent %d.", maxBatch, len(entries))
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if !batchID.MatchString(e.id()) {
			return queueError("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if seen[e.id()] {
			return queueError("BatchEntryIdsNotDistinct", "Id %s repeated.", e.id())
		}
		seen[e.id()] = true
	}
	return nil
}

type batchFailure struct {
	Id, Code, Message string
	SenderFault       bool
}

type batchResult struct {
	Successful []any
	Failed     []batchFailure
}

// runBatch does each entry, in order; one that fails does not stop the rest.
func runBatch[E entry](entries []E, do func(E) (any, error)) batchResult {
	out := batchResult{Successful: []any{}, Failed: []batchFailure{}}
	for _, e := range entries {
		success, err := do(e)
		if err == nil {
			out.Successful = append(out.Successful, success)
			continue
		}
		failure := batchFailure{Id: e.id(), Code: "InternalError", Message: err.Error()}
		var api *apiError
		if errors.As(err, &api) {
			failure.Code, failure.Message, failure.SenderFault = api.code, api.message, true
		}
		out.Failed = append(out.Failed, failure)
	}
	return out
}

type idResult struct{ Id string }
