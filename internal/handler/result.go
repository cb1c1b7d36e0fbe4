package handler

import (
	"errors"
	"fmt"
	"time"
)

// SkipError is the result of Skip.
type SkipError struct{ Reason string }

func (e *SkipError) Error() string { return "skipped: " + e.Reason }

// Skip says that there is nothing to do for this event here. The reason is stored and shown.
func Skip(reason string) error { return &SkipError{reason} }

// RetryError is the result of Retry and RetryAfter.
type RetryError struct {
	After time.Duration // 0: by the queue's own backoff
	Err   error         // why; may be nil
}

func (e *RetryError) Error() string {
	if e.Err == nil {
		return "the handler asked to run again"
	}
	return fmt.Sprintf("the handler asked to run again: %v", e.Err)
}

func (e *RetryError) Unwrap() error { return e.Err }

// Retry asks to run again later without a charge, for what is nobody's fault: a row that is not there yet, a lock
// somebody holds. why is stored and shown. After 24 hours of it the event is parked.
func Retry(why error) error { return &RetryError{Err: why} }

// RetryAfter is Retry with a time to wait. The events behind it in its group wait as well.
func RetryAfter(d time.Duration, why error) error { return &RetryError{After: d, Err: why} }

// PermanentError is the result of Permanent.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return fmt.Sprintf("permanent: %v", e.Err) }

func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent says that running again cannot help: the event is parked for a person.
func Permanent(err error) error {
	if err == nil {
		err = errors.New("no reason given")
	}
	return &PermanentError{err}
}

// PanicError is what a panicking handler is taken for. Value says what kind of panic it was without saying what a
// handler put into it, which may be the payload.
type PanicError struct {
	Value string
	Stack []byte
}

func (e *PanicError) Error() string { return "panic: " + e.Value }

// DependencyError is an error of a call to the outside.
type DependencyError struct {
	Dependency string
	Err        error
}

func (e *DependencyError) Error() string { return fmt.Sprintf("call %s: %v", e.Dependency, e.Err) }

func (e *DependencyError) Unwrap() error { return e.Err }

// StatusError is an HTTP answer that is no success, for handlers that use net/http themselves.
type StatusError struct {
	Status int
	After  time.Duration // of the Retry-After header; 0: none
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP status %d", e.Status) }

// HTTPStatusCode is the status, for Classify.
func (e *StatusError) HTTPStatusCode() int { return e.Status }

// RetryAfter is the time the other side asked to wait, for Classify.
func (e *StatusError) RetryAfter() time.Duration { return e.After }
