package receive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"backstop/internal/apigw"
	"backstop/internal/event"
	"backstop/internal/signature"
	"backstop/internal/telemetry"
)

// outcome is what became of a delivery. It is logged under this name.
type outcome string

const (
	outcomeReceived      outcome = "received"      // new, recorded and enqueued
	outcomeDuplicate     outcome = "duplicate"     // known and in good hands
	outcomeReenqueued    outcome = "reenqueued"    // known, and enqueued again
	outcomeReplayed      outcome = "replayed"      // known, parked, and now to be run again
	outcomeRefused       outcome = "refused"       // 4xx
	outcomeFailed        outcome = "failed"        // 5xx; Stripe comes again
	outcomeMisconfigured outcome = "misconfigured" // 5xx until a person puts a signing secret
)

// reason is why a delivery was not taken, where no other package names it.
type reason string

const (
	notFound      reason = "not_found"
	badMethod     reason = "method_not_allowed"
	bodyTooLarge  reason = "body_too_large"
	entryTooLarge reason = "event_too_large"
	recordFailed  reason = "record_failed"
	replayFailed  reason = "replay_failed"
	enqueueFailed reason = "enqueue_failed"
	timeIsUp      reason = "out_of_time"
	panicked      reason = "panic"
)

func (r reason) Error() string { return string(r) }

// maxRequestID bounds what a load balancer's trace id, part of which a client may send, takes of the log.
const maxRequestID = 128

// maxError is as much of an error as a log line holds.
const maxError = 1 << 10

// The bodies of the answers. What went wrong inside is not for the outside.
var (
	receivedBody  = []byte(`{"received":true}`)
	duplicateBody = []byte(`{"received":true,"duplicate":true}`)
	failedBody    = []byte(`{"error":""}`)
)

// delivery is one POST on its way through the steps, and what its log line will say.
type delivery struct {
	receiver *Receiver
	request  apigw.Request
	start    time.Time

	verified bool
	event    event.Event
	secret   int // position of the secret that signed; -1: none
	enqueued bool

	outcome  outcome
	reason   error
	err      error  // the full reason of a failure
	stack    string // of a panic
	response apigw.Response
}

func (r *Receiver) begin(request apigw.Request, start time.Time) *delivery {
	return &delivery{receiver: r, request: request, start: start, secret: -1}
}

// done acknowledges.
func (d *delivery) done(o outcome) {
	d.outcome = o
	d.response = apigw.Response{Status: 200, Body: duplicateBody}
	if o == outcomeReceived {
		d.response.Body = receivedBody
	}
}

// refuse answers a request that coming again does not mend. Its reason, a name, is told.
func (d *delivery) refuse(status int, why error) {
	d.outcome, d.reason = outcomeRefused, why
	d.response = apigw.Response{Status: status, Body: fmt.Appendf(nil, `{"error":%q}`, name(why))}
}

// tooLarge refuses a verified event that fits no entry. It is lost unless somebody acts, so it is an error in the log
// and has a metric with an alarm; Stripe's own retries and listing give three and thirty days.
func (d *delivery) tooLarge(err error) {
	d.refuse(413, entryTooLarge)
	d.err = err
}

// fail answers that Stripe should come again. When the time is up, that is the reason, whatever call it ended.
func (d *delivery) fail(ctx context.Context, o outcome, why, err error) {
	d.outcome, d.reason, d.err = o, why, err
	d.response = apigw.Response{Status: 500, Body: failedBody}
	if o == outcomeFailed && ctx.Err() != nil {
		d.reason = timeIsUp
	}
}

// panicked contains a panic. Its value may hold anything and is logged only where the runtime made it.
func (d *delivery) panicked(ctx context.Context, value any, stack []byte) {
	err := fmt.Errorf("panic of type %T", value)
	if own, ok := value.(runtime.Error); ok {
		err = fmt.Errorf("panic: %w", own)
	}
	d.fail(ctx, outcomeFailed, panicked, err)
	d.stack = string(stack[:min(len(stack), 4<<10)])
}

// name is the word for a reason that log, metrics and answers use.
func name(why error) string {
	var (
		own       reason
		gateway   apigw.Reason
		signing   signature.Reason
		enveloped event.Reason
	)
	switch {
	case errors.As(why, &own):
		return string(own)
	case errors.As(why, &gateway):
		return string(gateway)
	case errors.As(why, &signing):
		return string(signing)
	case errors.As(why, &enveloped):
		return string(enveloped)
	}
	return "unknown"
}

// finish writes the delivery's one line and returns its answer.
func (d *delivery) finish(ctx context.Context) apigw.Response {
	ms := float64(d.receiver.Now().Sub(d.start).Microseconds()) / 1000
	attrs := make([]slog.Attr, 0, 16)
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	text("request_id", d.request.RequestID[:min(len(d.request.RequestID), maxRequestID)])
	text("event_id", d.event.ID)
	text("type", d.event.Type)
	text("account", d.event.Account)
	text("api_version", d.event.APIVersion)
	text("outcome", string(d.outcome))
	if d.reason != nil {
		text("reason", name(d.reason))
	}
	if d.err != nil {
		message := d.err.Error()
		text("error", message[:min(len(message), maxError)])
	}
	text("stack", d.stack)
	if d.verified {
		attrs = append(attrs, slog.Bool("livemode", d.event.Livemode), slog.Int("secret", d.secret))
	}
	attrs = append(attrs, slog.Int("status", d.response.Status), slog.Int("bytes", len(d.request.Body)), slog.Float64("ms", ms))
	level := slog.LevelInfo
	switch {
	case d.err != nil:
		level = slog.LevelError
	case d.outcome == outcomeRefused:
		level = slog.LevelWarn
	}
	d.receiver.Log.Line(ctx, level, "delivery", attrs, d.metrics(ms)...)
	return d.response
}

// metrics are the delivery's numbers. A number that would be zero is left out: it costs bytes, and a sum is the same.
func (d *delivery) metrics(ms float64) []telemetry.Metric {
	var list []telemetry.Metric
	count := func(name string, when bool) {
		if when {
			list = append(list, telemetry.Metric{Name: name, Unit: telemetry.Count, Value: 1})
		}
	}
	count(telemetry.Received, d.verified)
	count(telemetry.Enqueued, d.enqueued)
	switch d.outcome {
	case outcomeDuplicate, outcomeReenqueued, outcomeReplayed:
		count(telemetry.Duplicates, true)
	case outcomeFailed:
		count(telemetry.Failed, true)
	case outcomeMisconfigured:
		count(telemetry.RefusedConfig, true)
	case outcomeRefused:
		metric := refusal(d.reason)
		count(metric, metric != "")
	}
	expected := d.receiver.APIVersion
	count(telemetry.VersionMismatch, expected != "" && d.event.ID != "" && !d.event.Thin && d.event.APIVersion != expected)
	if d.response.Status == 200 {
		list = append(list, telemetry.Metric{Name: telemetry.AckMS, Unit: telemetry.Milliseconds, Value: ms})
	}
	return list
}

// refusal is the metric a refused delivery counts in. Requests for what is not served are none: scanners send them to
// every public address.
func refusal(why error) string {
	switch name(why) {
	case string(signature.HeaderMissing), string(signature.NoMatch):
		return telemetry.RefusedSig
	case string(signature.TooOld), string(signature.TooNew):
		return telemetry.RefusedAge
	case string(entryTooLarge):
		return telemetry.TooLarge
	case string(notFound), string(badMethod):
		return ""
	}
	return telemetry.RefusedBad
}
