package awslocal

import "time"

// FaultKind says what becomes of a call.
type FaultKind int

const (
	// None lets the call through, with the fault's delays if it has any.
	None FaultKind = iota
	// Refuse answers with the fault's Status, Code and Message; the call is
	// not applied.
	Refuse
	// Throttle answers as the service does when it throttles; the call is not
	// applied.
	Throttle
	// Unavailable answers with the service's 5xx; the call is not applied.
	Unavailable
	// Reset breaks the connection; the call is not applied.
	Reset
	// ReplyLost applies the call and then breaks the connection.
	ReplyLost
)

// Fault is what happens to one call. The zero Fault is none.
type Fault struct {
	Kind FaultKind
	// Code, Status and Message are the answer of a Refuse. Status defaults to
	// 400.
	Code    string
	Status  int
	Message string
	// Delay passes before anything else happens, ReplyDelay after the call was
	// applied and before the reply or its loss. A caller whose context ends
	// meanwhile gets the context's error: with a Delay the call is then not
	// applied, with a ReplyDelay it is.
	Delay, ReplyDelay time.Duration
}

// busy is how each service says that it throttles, and that it is broken.
// The codes are those the SDK's retryer knows, from each API's reference.
var busy = map[string]struct{ throttle, unavailable Fault }{
	DynamoDB: {
		Fault{Code: "ProvisionedThroughputExceededException", Status: 400},
		Fault{Code: "InternalServerError", Status: 500},
	},
	SQS: {
		Fault{Code: "RequestThrottled", Status: 400},
		Fault{Code: "ServiceUnavailable", Status: 503},
	},
	SecretsManager: {
		Fault{Code: "ThrottlingException", Status: 400},
		Fault{Code: "InternalServiceError", Status: 500},
	},
	Lambda: {
		Fault{Code: "TooManyRequestsException", Status: 429},
		Fault{Code: "ServiceException", Status: 500},
	},
}

// refusal returns the Refuse that a fault amounts to, if any.
func (f Fault) refusal(service string) (Fault, bool) {
	switch f.Kind {
	case Refuse:
	case Throttle:
		f = busy[service].throttle
	case Unavailable:
		f = busy[service].unavailable
	default:
		return Fault{}, false
	}
	if f.Status == 0 {
		f.Status = 400
	}
	if f.Message == "" {
		f.Message = "an injected fault"
	}
	return f, true
}
