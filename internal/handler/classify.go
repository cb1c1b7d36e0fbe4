package handler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/stripe/stripe-go/v82"
)

// Verdict is what happens with the step.
type Verdict int

// The verdicts.
const (
	Done  Verdict = iota + 1
	Skips         // done, with a reason
	Again         // later
	Never         // parked
)

// Outcome is what an error of a handler, or of applying its effects, means.
type Outcome struct {
	Verdict    Verdict
	Charged    bool          // against the budget of attempts
	Class      string        // as package ledger names it; empty when done
	Dependency string        // that was called or is waited for; empty: none known
	Throttled  bool          // the dependency works but asked for patience: never charged
	Delay      time.Duration // the wait asked for; 0: by backoff
	Text       string        // for the log and the ledger, at most 1 KB, without what an answer of the outside may quote
}

// Classes of errors, by the names package ledger stores them under.
const (
	ClassError     = "error"
	ClassPanic     = "panic"
	ClassDecode    = "decode"
	ClassPermanent = "permanent"
	ClassRetry     = "retry"
	ClassOutage    = "outage"
)

// maxText is how much of an error's text is kept, so that the ledger item stays small.
const maxText = 1024

// Classify maps the error a step ended with to what happens with its event. It is the only place that decides.
// Unknown means: again, charged.
//
// An outage (network errors, time-outs, 429 and 5xx of an outside call, AWS throttling, credentials, conflicts) is
// not the event's fault, so it is not charged. A 401 counts as one: a revoked key fails every event alike, and
// parking them all would make a person replay them all.
func Classify(err error) Outcome {
	o := Outcome{Text: Text(err)}
	var dependency *DependencyError
	if errors.As(err, &dependency) {
		o.Dependency = dependency.Dependency
	}
	var (
		skip      *SkipError
		retry     *RetryError
		permanent *PermanentError
		decode    *DecodeError
		panicked  *PanicError
	)
	switch {
	case err == nil:
		o.Verdict, o.Text = Done, ""
	case errors.As(err, &skip):
		o.Verdict, o.Text = Skips, cut(skip.Reason)
	case errors.As(err, &permanent):
		o.Verdict, o.Charged, o.Class = Never, true, ClassPermanent
	case errors.As(err, &decode):
		o.Verdict, o.Charged, o.Class = Never, true, ClassDecode
	case errors.As(err, &retry):
		o.Verdict, o.Class, o.Delay = Again, ClassRetry, retry.After
	case errors.As(err, &panicked):
		o.Verdict, o.Charged, o.Class = Again, true, ClassPanic
	default:
		o.Verdict = Again
		outage, throttled := trouble(err)
		o.Charged, o.Throttled = !outage, throttled
		o.Class = ClassError
		if outage {
			o.Class, o.Delay = ClassOutage, patience(err)
		}
	}
	return o
}

// ErrOpen says that a call was not made because its dependency's breaker is open, or half open with its one probe
// under way.
var ErrOpen = errors.New("the breaker is open")

// trouble reports whether err is an outage of something outside the event, and whether it is one that only asks for
// patience.
func trouble(err error) (outage, throttled bool) {
	if status, ok := statusOf(err); ok {
		switch {
		case status == http.StatusTooManyRequests:
			return true, true
		case status >= 500, status == http.StatusRequestTimeout, status == http.StatusUnauthorized:
			return true, false
		}
	}
	var api interface{ ErrorCode() string }
	if errors.As(err, &api) {
		return awsTrouble(api.ErrorCode())
	}
	return errors.Is(err, ErrOpen) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		network(err), false
}

// statusOf finds the HTTP status of an outside answer: of stripe-go's error or of anything that names it as AWS's
// SDK does.
func statusOf(err error) (int, bool) {
	var s *stripe.Error
	if errors.As(err, &s) && s.HTTPStatusCode != 0 {
		if s.Code == stripe.ErrorCodeLockTimeout || s.Code == stripe.ErrorCodeIdempotencyKeyInUse {
			return http.StatusTooManyRequests, true
		}
		return s.HTTPStatusCode, true
	}
	var coded interface{ HTTPStatusCode() int }
	if errors.As(err, &coded) && coded.HTTPStatusCode() != 0 {
		return coded.HTTPStatusCode(), true
	}
	return 0, false
}

// awsTrouble judges the code of an AWS error (Amazon DynamoDB Developer Guide, "Error handling with DynamoDB";
// Amazon SQS API Reference, "Common Errors"). What an event can cause by itself, an item that is too large or not
// valid, is charged; everything else is the state of the account.
func awsTrouble(code string) (outage, throttled bool) {
	switch {
	case strings.HasPrefix(code, "Validation"), code == "ItemCollectionSizeLimitExceededException",
		code == "ConditionalCheckFailedException", code == "SerializationException":
		return false, false
	case strings.Contains(code, "Throttl"), strings.Contains(code, "Throughput"), strings.Contains(code, "RequestLimit"),
		strings.Contains(code, "Conflict"), code == "TransactionInProgressException":
		return true, true
	}
	return true, false
}

// network reports whether err comes from the way to the outside rather than from its answer.
func network(err error) bool {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Op != "parse"
	}
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE)
}

// patience is the time the other side asked to wait.
func patience(err error) time.Duration {
	var after interface{ RetryAfter() time.Duration }
	if errors.As(err, &after) {
		return max(0, after.RetryAfter())
	}
	return 0
}

// Text is err as the log and the ledger may hold it. stripe-go's error prints the whole answer, which may quote a
// payment method or a customer, and a url.Error prints the query: both are reduced to what helps.
func Text(err error) string {
	if err == nil {
		return ""
	}
	var d *DependencyError
	prefix := ""
	if errors.As(err, &d) {
		prefix = "call " + d.Dependency + ": "
	}
	var s *stripe.Error
	if errors.As(err, &s) {
		return cut(fmt.Sprintf("%sStripe answered %d, type %s, code %s, request %s", prefix, s.HTTPStatusCode, s.Type, s.Code, s.RequestID))
	}
	var u *url.Error
	if errors.As(err, &u) {
		host := "an address"
		if parsed, e := url.Parse(u.URL); e == nil && parsed.Host != "" {
			host = parsed.Host
		}
		return cut(fmt.Sprintf("%s%s %s: %v", prefix, u.Op, host, u.Err))
	}
	return cut(err.Error())
}

// cut shortens text to what is kept, between characters.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
