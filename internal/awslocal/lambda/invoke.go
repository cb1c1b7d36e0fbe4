package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
)

// Payload limits of a synchronous invocation, in bytes ("Lambda quotas" says
// 6 MB for both; the service's own messages name these two numbers).
const (
	// MaxRequestBytes is the largest event a function can be invoked with.
	MaxRequestBytes = 6291456
	// MaxResponseBytes is the largest answer a function can give.
	MaxResponseBytes = 6291556
)

// Unhandled is the value of X-Amz-Function-Error, and so of
// [Response.FunctionError], for every failed invocation of a custom runtime.
const Unhandled = "Unhandled"

// Response is what a synchronous invocation gives back.
type Response struct {
	// Payload is the function's answer, or the error object when
	// FunctionError is set.
	Payload []byte
	// FunctionError is empty for success, [Unhandled] when the function
	// returned an error, panicked, timed out or its process died.
	FunctionError string
}

// An Invoker calls a function synchronously. The error is about the call
// itself (no such function, event too large, context ended), often an
// [*Error]; what went wrong inside the function is in the Response.
type Invoker interface {
	Invoke(ctx context.Context, function string, payload []byte) (Response, error)
}

// Error is a refusal by the Lambda service, with the HTTP status and error
// code that the Invoke API answers with.
type Error struct {
	Status  int
	Code    string
	Message string
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

func errTooLarge() *Error {
	return &Error{413, "RequestEntityTooLargeException",
		fmt.Sprintf("Request must be smaller than %d bytes for the InvokeFunction operation", MaxRequestBytes)}
}

func errNoFunction(arn string) *Error {
	return &Error{404, "ResourceNotFoundException", "Function not found: " + arn}
}

// functionError is the error object Lambda reports for a failed invocation.
type functionError struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func failure(errorType, message string) Response {
	payload, err := json.Marshal(functionError{errorType, message})
	if err != nil {
		payload = []byte(`{"errorType":"Runtime.Unknown"}`)
	}
	return Response{Payload: payload, FunctionError: Unhandled}
}

// Func is a function in this process. As an [Invoker] it answers to every
// name. A returned error, a panic or an answer over [MaxResponseBytes] becomes
// a function error of the shape aws-lambda-go reports.
type Func func(ctx context.Context, payload []byte) ([]byte, error)

// Invoke calls the function on the caller's goroutine.
func (f Func) Invoke(ctx context.Context, _ string, payload []byte) (resp Response, err error) {
	if len(payload) > MaxRequestBytes {
		return Response{}, errTooLarge()
	}
	defer func() {
		if v := recover(); v != nil {
			resp, err = failure(typeName(v), fmt.Sprint(v)), nil
		}
	}()
	out, ferr := f(ctx, payload)
	if ferr != nil {
		return failure(typeName(ferr), ferr.Error()), nil
	}
	if len(out) > MaxResponseBytes {
		return responseTooLarge(), nil
	}
	return Response{Payload: out}, nil
}

func responseTooLarge() Response {
	return failure("Function.ResponseSizeTooLarge",
		fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", MaxResponseBytes))
}

func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// Functions are several functions in this process by name.
type Functions map[string]Func

// Invoke calls the named function, or refuses as Lambda does when there is
// none of that name.
func (fs Functions) Invoke(ctx context.Context, function string, payload []byte) (Response, error) {
	f, ok := fs[function]
	if !ok {
		return Response{}, errNoFunction(function)
	}
	return f.Invoke(ctx, function, payload)
}
