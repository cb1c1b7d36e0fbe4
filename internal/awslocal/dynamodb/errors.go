package dynamodb

import "fmt"

// apiError is an error as DynamoDB's JSON protocol words it ("Error handling with DynamoDB").
type apiError struct {
	code    string
	message string
	item    item     // ConditionalCheckFailedException, when ALL_OLD was asked for
	reasons []reason // TransactionCanceledException
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func errorf(code, format string, args ...any) *apiError {
	return &apiError{code: code, message: fmt.Sprintf(format, args...)}
}

func validationf(format string, args ...any) *apiError {
	return errorf("ValidationException", format, args...)
}

func invalidf(format string, args ...any) *apiError {
	return validationf("One or more parameter values were invalid: "+format, args...)
}

func conditionFailed(old item) *apiError {
	return &apiError{code: "ConditionalCheckFailedException", message: "The conditional request failed", item: old}
}

// fullName is the error's name with the namespace AWS sends it in.
func (e *apiError) fullName() string {
	switch e.code {
	case "ValidationException":
		return "com.amazon.coral.validate#" + e.code
	case "SerializationException", "UnknownOperationException":
		return "com.amazon.coral.service#" + e.code
	}
	return "com.amazonaws.dynamodb.v20120810#" + e.code
}
