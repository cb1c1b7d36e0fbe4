// Package receive takes deliveries: it verifies, records, enqueues and only then acknowledges.
//
// A delivery goes through these steps, and the order is the promise: whatever dies between two of them leaves behind
// what heals.
//
//	verify    the bytes are Stripe's. Nothing has been parsed, nothing is stored.     dies: Stripe comes again
//	parse     the envelope says what event it is.                                     dies: Stripe comes again
//	record    one conditional put; the event is durable.                              dies: the sweep, or Stripe, enqueues it
//	enqueue   the pointer is in the queue.                                            dies: Stripe comes again, a duplicate
//	200       {"received":true}
//
// A delivery of an event that is in the ledger already is decided by what it finds there:
//
//	recorded, or processing with its lease passed   enqueue again: the first delivery may have died before it did
//	processing, done, skipped                       nothing to do
//	parked                                          a person pressed Resend in Stripe: replay, and enqueue
//	a status this version does not know             5xx: it cannot be vouched for
//
// and is answered 200 {"received":true,"duplicate":true}. Meeting its own write, whose reply had been lost, is not a
// duplicate.
//
// What Stripe cannot mend by coming again is a 4xx: broken headers, a signature that does not match, a body that is no
// event, one that is too large. What may be over when it comes again is a 5xx, which says nothing to the outside and
// everything to the log: storage, queue, time, and a deployment without a usable signing secret, which refuses every
// delivery. An event of the other mode, of another api_version or of an unknown type is recorded like any other.
package receive

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"backstop/internal/apigw"
	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/signature"
	"backstop/internal/telemetry"
)

// The paths served.
const (
	WebhookPath = "/webhooks/stripe"
	HealthPath  = "/health"
)

const (
	// MaxBody is the largest body taken, 4 MiB. In base64 it is 5.6 MB, which with its envelope fits the 6 MB a
	// synchronous invocation may have (AWS Lambda Developer Guide, "Lambda quotas").
	MaxBody = 4 << 20

	// margin is kept of the function's time for the answer and the log line. Two tries of one call that hang, and one
	// that does not, fit in what is left of 10 s.
	margin = 1500 * time.Millisecond

	// rounds bounds how often an entry that moves on under a delivery is looked at anew.
	rounds = 3
)

// Ledger is where events are recorded; *ledger.Store is one.
type Ledger interface {
	Record(ctx context.Context, recording ledger.Recording) (ledger.RecordResult, error)
	Replay(ctx context.Context, replaying ledger.Replaying) (ledger.Entry, error)
}

// Queue is where pointers are enqueued; *queue.SQS is one.
type Queue interface {
	Send(ctx context.Context, send queue.Send) error
}

// Secrets provides the signing secrets; *secret.Provider is one.
type Secrets interface {
	Values(ctx context.Context) ([]string, error)
	Refresh(ctx context.Context) ([]string, bool)
}

// Config is what a Receiver needs. All fields but APIVersion are required.
type Config struct {
	Ledger     Ledger
	Queue      Queue
	Secrets    Secrets
	Log        *telemetry.Log
	Now        func() time.Time
	Token      func() string // a new unique text for each delivery
	Release    string        // GET /health says it
	APIVersion string        // others are counted; empty: none is expected
}

// Receiver takes deliveries. It is safe for concurrent use.
type Receiver struct{ Config }

// New returns a receiver.
func New(config Config) *Receiver { return &Receiver{config} }

// Invoke takes one call of the function, in any gateway's shape, and answers in the same. It implements aws-lambda-go's
// Handler, so that the payload is decoded once. It has no error of its own: an answer that cannot be encoded would be.
func (r *Receiver) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	start := r.Now()
	request, err := apigw.Decode(payload)
	if err != nil {
		d := r.begin(request, start)
		d.refuse(400, err)
		return request.Encode(d.finish(ctx))
	}
	return request.Encode(r.handle(ctx, request, start))
}

// Handle takes one request. It answers before ctx's deadline, with room left, and contains panics.
func (r *Receiver) Handle(ctx context.Context, request apigw.Request) apigw.Response {
	return r.handle(ctx, request, r.Now())
}

func (r *Receiver) handle(ctx context.Context, request apigw.Request, start time.Time) apigw.Response {
	switch path := strings.TrimSuffix(request.Path, "/"); {
	case path == HealthPath && (request.Method == "GET" || request.Method == "HEAD"):
		return apigw.Response{Status: 200, Body: fmt.Appendf(nil, `{"status":"ok","version":%q}`, r.Release)}
	case path == HealthPath:
		return r.unserved(ctx, request, start, 405, "GET")
	case path != WebhookPath:
		return r.unserved(ctx, request, start, 404, "")
	case request.Method != "POST":
		return r.unserved(ctx, request, start, 405, "POST")
	}
	d := r.begin(request, start)
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-margin))
		defer cancel()
	}
	d.deliver(ctx)
	return d.finish(ctx)
}

// unserved answers a request that is no delivery at all.
func (r *Receiver) unserved(ctx context.Context, request apigw.Request, start time.Time, status int, allow string) apigw.Response {
	d := r.begin(request, start)
	reason := notFound
	if status == 405 {
		reason = badMethod
	}
	d.refuse(status, reason)
	response := d.finish(ctx)
	if allow != "" {
		response.Header = map[string]string{"allow": allow}
	}
	return response
}

// deliver takes the delivery through its steps and leaves its outcome in d.
func (d *delivery) deliver(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			d.panicked(ctx, p, debug.Stack())
		}
	}()
	if len(d.request.Body) > MaxBody {
		d.refuse(413, bodyTooLarge)
		return
	}
	if err := d.verify(ctx); err != nil {
		if errors.Is(err, signature.NoUsableSecret) {
			d.fail(ctx, outcomeMisconfigured, signature.NoUsableSecret, err)
			return
		}
		d.refuse(400, err)
		return
	}
	d.verified = true
	ev, err := event.Parse(d.request.Body)
	if err != nil {
		d.refuse(400, err)
		return
	}
	d.event = ev
	d.keep(ctx)
}

// verify checks the signature with the secrets in use and, where none matches, once more with fresh ones.
func (d *delivery) verify(ctx context.Context) error {
	secrets, unknown := d.receiver.Secrets.Values(ctx)
	header, body, now := d.request.Get(signature.Header), d.request.Body, d.receiver.Now()
	matched, err := signature.Verify(secrets, header, body, now)
	if errors.Is(err, signature.NoMatch) {
		if secrets, changed := d.receiver.Secrets.Refresh(ctx); changed {
			matched, err = signature.Verify(secrets, header, body, now)
		}
	}
	if errors.Is(err, signature.NoUsableSecret) && unknown != nil {
		err = fmt.Errorf("%w: %w", signature.NoUsableSecret, unknown)
	}
	d.secret = matched
	return err
}

// keep records and enqueues the event, and decides what a duplicate means.
func (d *delivery) keep(ctx context.Context) {
	ev := d.event
	token := d.receiver.Token()
	recording := ledger.Recording{
		Key:        ledger.Key(ev.Key("")),
		Type:       ev.Type,
		CreatedS:   ev.CreatedS,
		Account:    ev.Account,
		Livemode:   ev.Livemode,
		APIVersion: ev.APIVersion,
		ObjectID:   ev.ObjectID,
		Group:      ev.Group,
		Origin:     ledger.Webhook,
		Body:       d.request.Body,
		Token:      token,
	}
	for range rounds {
		found, err := d.receiver.Ledger.Record(ctx, recording)
		switch {
		case errors.Is(err, ledger.ErrTooLarge):
			d.tooLarge(err)
			return
		case err != nil:
			d.fail(ctx, outcomeFailed, recordFailed, err)
			return
		}
		entry := found.Entry
		if found.New {
			d.enqueue(ctx, entry, outcomeReceived)
			return
		}
		switch {
		case entry.Status == ledger.Recorded,
			entry.Status == ledger.Processing && entry.LeaseUntilMS <= d.receiver.Now().UnixMilli():
			d.enqueue(ctx, entry, outcomeReenqueued)
			return
		case !entry.Status.Known(): // whoever wrote it will settle it, or Stripe comes again until somebody looks
			d.fail(ctx, outcomeFailed, recordFailed, ledger.ErrStatus)
			return
		case entry.Status != ledger.Parked:
			d.done(outcomeDuplicate)
			return
		}
		entry, err = d.receiver.Ledger.Replay(ctx, ledger.Replaying{
			Key: entry.Key, From: ledger.Parked, Replay: entry.Replay, Token: token,
			By: "stripe", Why: "delivered again while parked",
		})
		switch {
		case err == nil:
			d.enqueue(ctx, entry, outcomeReplayed)
			return
		case errors.Is(err, ledger.ErrConflict), errors.Is(err, ledger.ErrNotFound):
			// Somebody was faster: what they made of the entry decides.
		default:
			d.fail(ctx, outcomeFailed, replayFailed, err)
			return
		}
	}
	d.fail(ctx, outcomeFailed, replayFailed, errors.New("the entry moved on under every look at it"))
}

// enqueue sends the entry's pointer, with its stored group, and acknowledges.
func (d *delivery) enqueue(ctx context.Context, entry ledger.Entry, done outcome) {
	err := d.receiver.Queue.Send(ctx, queue.Send{
		Pointer: queue.Pointer{
			V: queue.Version, Key: string(entry.Key), Type: entry.Type, CreatedS: entry.CreatedS, Replay: entry.Replay,
		},
		Group: entry.Group,
	})
	if err != nil {
		d.fail(ctx, outcomeFailed, enqueueFailed, err)
		return
	}
	d.enqueued = true
	d.done(done)
}
