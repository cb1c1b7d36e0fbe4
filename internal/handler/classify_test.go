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
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"
)

type coded struct{ code string }

func (c coded) Error() string     { return "api error " + c.code }
func (c coded) ErrorCode() string { return c.code }

func TestErrorDecidesWhatHappensWithTheEvent(t *testing.T) {
	t.Parallel()
	wrap := func(err error) error { return fmt.Errorf("doing this: %w", err) }
	for name, c := range map[string]struct {
		err  error
		want Outcome // Text apart
	}{
		"Nil":                 {nil, Outcome{Verdict: Done}},
		"Skip":                {wrap(Skip("no")), Outcome{Verdict: Skips}},
		"Permanent":           {wrap(Permanent(errors.New("x"))), Outcome{Verdict: Never, Charged: true, Class: "permanent"}},
		"PermanentOutage":     {Permanent(&StatusError{Status: 503}), Outcome{Verdict: Never, Charged: true, Class: "permanent"}},
		"Decode":              {wrap(&DecodeError{Path: "a"}), Outcome{Verdict: Never, Charged: true, Class: "decode"}},
		"Retry":               {Retry(errors.New("x")), Outcome{Verdict: Again, Class: "retry"}},
		"RetryAfter":          {wrap(RetryAfter(time.Minute, nil)), Outcome{Verdict: Again, Class: "retry", Delay: time.Minute}},
		"Panic":               {&PanicError{Value: "x"}, Outcome{Verdict: Again, Charged: true, Class: "panic"}},
		"PlainError":          {errors.New("x"), Outcome{Verdict: Again, Charged: true, Class: "error"}},
		"Status500":           {wrap(&StatusError{Status: 500}), Outcome{Verdict: Again, Class: "outage"}},
		"Status429":           {&StatusError{Status: 429, After: 9 * time.Second}, Outcome{Verdict: Again, Class: "outage", Throttled: true, Delay: 9 * time.Second}},
		"Status401":           {&StatusError{Status: 401}, Outcome{Verdict: Again, Class: "outage"}},
		"Status404":           {&StatusError{Status: 404}, Outcome{Verdict: Again, Charged: true, Class: "error"}},
		"Stripe502":           {wrap(&stripe.Error{HTTPStatusCode: 502, Type: stripe.ErrorTypeAPI}), Outcome{Verdict: Again, Class: "outage"}},
		"StripeRateLimit":     {&stripe.Error{HTTPStatusCode: 429}, Outcome{Verdict: Again, Class: "outage", Throttled: true}},
		"StripeKeyInUse":      {&stripe.Error{HTTPStatusCode: 409, Code: stripe.ErrorCodeIdempotencyKeyInUse}, Outcome{Verdict: Again, Class: "outage", Throttled: true}},
		"StripeBadRequest":    {&stripe.Error{HTTPStatusCode: 400}, Outcome{Verdict: Again, Charged: true, Class: "error"}},
		"DeadlineExceeded":    {wrap(context.DeadlineExceeded), Outcome{Verdict: Again, Class: "outage"}},
		"Canceled":            {context.Canceled, Outcome{Verdict: Again, Class: "outage"}},
		"BreakerOpen":         {&DependencyError{"crm", ErrOpen}, Outcome{Verdict: Again, Class: "outage", Dependency: "crm"}},
		"DependencyRefuses":   {wrap(&DependencyError{"crm", &StatusError{Status: 422}}), Outcome{Verdict: Again, Charged: true, Class: "error", Dependency: "crm"}},
		"DialError":           {&url.Error{Op: "Get", URL: "https://a/b?c", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, Outcome{Verdict: Again, Class: "outage"}},
		"ConnectionReset":     {wrap(syscall.ECONNRESET), Outcome{Verdict: Again, Class: "outage"}},
		"BodyCutShort":        {wrap(io.ErrUnexpectedEOF), Outcome{Verdict: Again, Class: "outage"}},
		"URLThatDoesNotParse": {&url.Error{Op: "parse", URL: "::", Err: errors.New("x")}, Outcome{Verdict: Again, Charged: true, Class: "error"}},
		"DynamoDBThrottles":   {wrap(&types.ProvisionedThroughputExceededException{}), Outcome{Verdict: Again, Class: "outage", Throttled: true}},
		"DynamoDBConflict":    {&types.TransactionConflictException{}, Outcome{Verdict: Again, Class: "outage", Throttled: true}},
		"DynamoDBInternal":    {&types.InternalServerError{}, Outcome{Verdict: Again, Class: "outage"}},
		"AccessDenied":        {&smithy.GenericAPIError{Code: "AccessDeniedException"}, Outcome{Verdict: Again, Class: "outage"}},
		"Validation":          {&smithy.GenericAPIError{Code: "ValidationException"}, Outcome{Verdict: Again, Charged: true, Class: "error"}},
		"SQSThrottles":        {coded{"RequestThrottled"}, Outcome{Verdict: Again, Class: "outage", Throttled: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Classify(c.err)
			got.Text = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", c.err, diff)
			}
		})
	}
}

func TestTextQuotesNoAnswerAndNoQuery(t *testing.T) {
	t.Parallel()
	err := &DependencyError{"stripe", &stripe.Error{HTTPStatusCode: 402, Type: "card_error", Code: "card_declined", RequestID: "req_1",
		Msg: "ada@example.test was declined", Param: "ada"}}
	if got := Text(err); got != "call stripe: Stripe answered 402, type card_error, code card_declined, request req_1" {
		t.Errorf("got %q", got)
	}
	err2 := &url.Error{Op: "Get", URL: "https://api.example.test/v1?email=ada@example.test", Err: errors.New("refused")}
	if got := Text(err2); got != "Get api.example.test: refused" {
		t.Errorf("got %q", got)
	}
}

func TestTextIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	got := Text(errors.New("x" + strings.Repeat("é", 2000)))
	if len(got) != 1023 || !strings.HasSuffix(got, "é") {
		t.Errorf("%d bytes, ending %q", len(got), got[len(got)-4:])
	}
}

func TestRegistryRefusesTwoHandlersOfOneNameAndOddNames(t *testing.T) {
	t.Parallel()
	f := func(context.Context, Event, *stripe.Invoice) ([]Effect, error) { return nil, nil }
	for name, register := range map[string]func(r *Registry){
		"Twice":   func(r *Registry) { On(r, "a", "h", f); On(r, "a", "h", f) },
		"NoName":  func(r *Registry) { On(r, "a", "", f) },
		"OddName": func(r *Registry) { On(r, "a", "h#1", f) },
		"NoType":  func(r *Registry) { On(r, "", "h", f) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			register(new(Registry))
		})
	}
	var r Registry
	On(&r, "b", "h", f, Needs("stripe", "crm"))
	On(&r, "b", "g", f, Needs("crm"))
	On(&r, "a", "h", f)
	if diff := cmp.Diff([]string{"a", "b"}, r.Types()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"stripe", "crm"}, r.Needs("b")); diff != "" {
		t.Error(diff)
	}
	if got := r.For("b"); len(got) != 2 || got[0].Name != "h" || len(r.For("c")) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestIdempotencyKeyIsStableForARunAndBounded(t *testing.T) {
	t.Parallel()
	e := Event{Key: "stripe#-#evt_1", Handler: "grant", Attempt: 3}
	again := e
	again.Attempt = 4
	if got := e.IdempotencyKey("mail"); got != "stripe#-#evt_1/grant/mail/0" || again.IdempotencyKey("mail") != got {
		t.Errorf("got %s", got)
	}
	again.Run = 1
	distinct := map[string]bool{e.IdempotencyKey("mail"): true, e.NextIdempotencyKey("mail"): true, e.IdempotencyKey("crm"): true,
		again.IdempotencyKey("mail"): true, again.NextIdempotencyKey("mail"): true}
	if len(distinct) != 5 {
		t.Errorf("the keys do not tell steps, runs and second keys apart: %v", distinct)
	}
	long := strings.Repeat("s", 300)
	if got := e.IdempotencyKey(long); len(got) > 255 || got == again.IdempotencyKey(long) {
		t.Errorf("got %s", got)
	}
}

func TestStatusErrorNamesItsStatus(t *testing.T) {
	t.Parallel()
	if got := (&StatusError{Status: http.StatusTeapot}).Error(); got != "HTTP status 418" {
		t.Errorf("got %s", got)
	}
}
