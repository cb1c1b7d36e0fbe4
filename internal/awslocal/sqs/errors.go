package sqs

import (
	"fmt"
	"net/http"
)

// apiError is an error as SQS answers it: shape is the name in the JSON
// protocol, code the one of the older query protocol, which SDKs still read
// from a header and which batch results carry.
type apiError struct {
	shape, code, message string
	status               int
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func newError(shape, code, format string, args ...any) *apiError {
	return &apiError{shape: shape, code: code, message: fmt.Sprintf(format, args...), status: http.StatusBadRequest}
}

// queueError makes an error whose query code is the shape with SQS's prefix.
func queueError(shape, format string, args ...any) *apiError {
	return newError(shape, "AWS.SimpleQueueService."+shape, format, args...)
}

func missingParameter(name string) *apiError {
	return newError("MissingParameter", "MissingParameter", "The request must contain the parameter %s.", name)
}

func invalidParameter(format string, args ...any) *apiError {
	return newError("InvalidParameterValue", "InvalidParameterValue", format, args...)
}

func invalidValue(value any, parameter, reason string) *apiError {
	return invalidParameter("Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

func noSuchQueue() *apiError {
	return newError("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
}

func noSuchResource(parameter string) *apiError {
	e := newError("ResourceNotFoundException", "ResourceNotFoundException",
		"The resource that you specified for the %s parameter doesn't exist.", parameter)
	e.status = http.StatusNotFound
	return e
}

func unsupported(what string) *apiError {
	return queueError("UnsupportedOperation", "%s is not supported.", what)
}

func invalidReceipt(handle string) *apiError {
	return newError("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", handle)
}

func expiredReceipt(handle string) *apiError {
	return invalidValue(handle, "ReceiptHandle", "The receipt handle has expired.")
}
