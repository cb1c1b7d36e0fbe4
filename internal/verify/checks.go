package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/queue"
)

const (
	// burst is how many requests go at once: more than the instances an idle deployment has warm, so that some find a
	// cold one. A new account runs ten at once.
	burst = 8
	// steady is how many go one after the other over a warm connection.
	steady = 40
	// deliveries is how many events the delivery check delivers.
	deliveries = 20

	// patience is how long a check waits for what takes seconds.
	patience = 2 * time.Minute
	// slowAck is the alarm's threshold for the slowest acknowledgement of a hundred.
	slowAck = 3 * time.Second
	// slowSwitch is what the runbook and `backstop pause` reckon with.
	slowSwitch = 2 * time.Minute
)

// Type is the type of the events the checks deliver: nobody handles it.
const Type = "backstop.verify"

// made is an event of ours.
type made struct {
	key  ledger.Key
	body []byte
	event.Event
}

// event makes one. object is the rest of data.object, after its id.
func (d *Deployment) event(eventType, object string) (made, error) {
	token := d.Token()
	body := fmt.Appendf(nil, `{"id":"evt_verify%s","object":"event","created":%d,"livemode":%t,"type":%q,"data":{"object":{"id":"verify_%s"%s}}}`,
		token, d.Now().Unix(), d.Live, eventType, token, object)
	envelope, err := event.Parse(body)
	if err != nil {
		return made{}, fmt.Errorf("make an event: %w", err)
	}
	return made{ledger.Key(envelope.Key("")), body, envelope}, nil
}

// deliver posts the event, which must be acknowledged.
func (d *Deployment) deliver(ctx context.Context, e made) (time.Duration, error) {
	began := d.Now()
	status, err := d.Endpoint.Deliver(ctx, e.body)
	if err != nil {
		return 0, fmt.Errorf("deliver: %w", err)
	}
	if status != 200 {
		return 0, fmt.Errorf("deliver: the endpoint answered %d; a 400 is another signing secret, a 500 is in the receiver's log", status)
	}
	return d.Now().Sub(began), nil
}

var noEndpoint = Finding{Verdict: NotChecked, Means: "no endpoint is known: name it with --url (the stack's output WebhookURL)"}

func (d *Deployment) latency(ctx context.Context) (Finding, error) {
	if d.Endpoint == nil {
		return noEndpoint, nil
	}
	health := func(took *time.Duration) error {
		began := d.Now()
		err := d.Endpoint.Health(ctx)
		*took = d.Now().Sub(began)
		return err
	}
	first := make([]time.Duration, burst)
	var together errgroup.Group
	for i := range first {
		together.Go(func() error { return health(&first[i]) })
	}
	if err := together.Wait(); err != nil {
		return Finding{}, err
	}
	warm := make([]time.Duration, steady)
	for i := range warm {
		if err := health(&warm[i]); err != nil {
			return Finding{}, err
		}
	}
	f := Finding{Verdict: AsAssumed, Means: "measured from here, network included; the slowest of the first ones is a cold start if the deployment was idle"}
	f.took("first requests, slowest", slices.Max(first))
	f.took("warm, median", median(warm))
	f.took("warm, slowest", slices.Max(warm))
	if slices.Max(first) > slowAck {
		f.Verdict = Otherwise
		f.Means = "a cold start takes longer than the 3 s the alarm on acknowledgements allows: give the receiver more memory (infra/pipeline/stage.go)"
	}
	return f, nil
}

func (d *Deployment) delivery(ctx context.Context) (Finding, error) {
	if d.Endpoint == nil {
		return noEndpoint, nil
	}
	var acks, settles []time.Duration
	for range deliveries {
		e, err := d.event(Type, "")
		if err != nil {
			return Finding{}, err
		}
		ack, err := d.deliver(ctx, e)
		if err != nil {
			return Finding{}, err
		}
		entry, _, err := d.await(ctx, e.key, patience, settled)
		if err != nil {
			return Finding{}, err
		}
		acks = append(acks, ack)
		settles = append(settles, time.Duration(entry.SettledMS-entry.RecordedMS)*time.Millisecond)
	}
	f := Finding{Verdict: AsAssumed, Means: "acknowledgements measured from here, network included; settling by the ledger's own times, without handlers"}
	f.took("acknowledged, median", median(acks))
	f.took("acknowledged, slowest", slices.Max(acks))
	f.took("recorded to settled, median", median(settles))
	f.took("recorded to settled, slowest", slices.Max(settles))
	if slices.Max(acks) > slowAck {
		f.Verdict, f.Means = Otherwise, "an acknowledgement took longer than the 3 s its alarm allows"
	}
	return f, nil
}

func (d *Deployment) pause(ctx context.Context) (f Finding, err error) {
	if d.Endpoint == nil {
		return noEndpoint, nil
	}
	enabled, err := d.Mapping.Enabled(ctx)
	if err != nil {
		return Finding{}, err
	}
	if !enabled {
		return Finding{Verdict: NotChecked, Means: "the mapping is not enabled: somebody has paused the deployment, or it is on its way"}, nil
	}
	began := d.Now()
	running := false
	defer func() {
		if running {
			return
		}
		// Also when ctx has ended: nobody must be left with a paused deployment.
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), slowSwitch)
		defer cancel()
		err = errors.Join(err, d.Mapping.Switch(back, true))
	}()
	if err := d.Mapping.Switch(ctx, false); err != nil {
		return Finding{}, err
	}
	off := d.Now().Sub(began)
	e, err := d.event(Type, "")
	if err != nil {
		return Finding{}, err
	}
	if _, err := d.deliver(ctx, e); err != nil {
		return Finding{}, err
	}
	if err := sleep(ctx, orElse(d.Quiet, 20*time.Second)); err != nil {
		return Finding{}, err
	}
	entry, err := d.Ledger.Get(ctx, e.key)
	if err != nil {
		return Finding{}, err
	}
	quiet := entry.Status == ledger.Recorded && entry.Generation == 0
	began = d.Now()
	if err := d.Mapping.Switch(ctx, true); err != nil {
		return Finding{}, err
	}
	running = true
	on := d.Now().Sub(began)
	_, again, err := d.await(ctx, e.key, patience, settled)
	if err != nil {
		return Finding{}, err
	}
	f = Finding{Verdict: AsAssumed, Means: "an event delivered while the mapping was disabled waited, and was processed afterwards"}
	f.took("disabling", off)
	f.took("enabling", on)
	f.took("enabled to settled", again)
	switch {
	case !quiet:
		f.Verdict = Otherwise
		f.Means = "an event was processed while the mapping said it was disabled: after `backstop pause`, wait until the dashboard's done line is flat"
	case max(off, on) > slowSwitch:
		f.Verdict = Otherwise
		f.Means = "switching takes longer than two minutes: give `backstop pause` a longer --timeout and say so in the runbook"
	}
	return f, nil
}

// visibility has the processor meet a live lease, ours: it hides the message until the lease ends and reports it as
// failed. Then we let go of the entry at once. When the message is seen again tells who had the last word.
func (d *Deployment) visibility(ctx context.Context) (Finding, error) {
	lease := orElse(d.Lease, 45*time.Second)
	e, err := d.event(Type, "")
	if err != nil {
		return Finding{}, err
	}
	token := "verify" + d.Token()
	if _, err := d.Ledger.Record(ctx, ledger.Recording{
		Key: e.key, Type: e.Type, CreatedS: e.CreatedS, Livemode: e.Livemode, ObjectID: e.ObjectID, Group: e.Group,
		Origin: ledger.Webhook, Body: e.body, Token: token,
	}); err != nil {
		return Finding{}, err
	}
	ends := d.Now().Add(lease)
	if _, err := d.Ledger.Claim(ctx, ledger.Claiming{Key: e.key, Token: token, Until: ends}); err != nil {
		return Finding{}, err
	}
	err = d.Queue.Send(ctx, queue.Send{Pointer: queue.Pointer{Key: string(e.key), Type: e.Type, CreatedS: e.CreatedS}, Group: e.Group})
	if err == nil {
		err = sleep(ctx, lease/3) // a message is received in a second or two
	}
	// Whatever happened: the entry must not stay ours.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := errors.Join(err, d.Ledger.Unclaim(back, e.key, token)); err != nil {
		return Finding{}, err
	}
	entry, _, err := d.await(ctx, e.key, 5*time.Minute, settled)
	if err != nil {
		return Finding{}, err
	}
	late := time.UnixMilli(entry.SettledMS).Sub(ends)
	f := Finding{Verdict: AsAssumed, Means: "the message came back when the processor had asked for: Lambda leaves it alone"}
	f.took("seen again after the time asked for", late)
	switch {
	case late < -lease/3:
		f.Verdict = Otherwise
		f.Means = "the message came back at once: Lambda has made it visible, so that back-off between attempts does not hold and the ledger's lease alone spaces them"
	case late > 20*time.Second:
		f.Verdict = Otherwise
		f.Means = "the message came back late: the queue's own time-out held, so that a failed event waits for three minutes instead of seconds"
	}
	return f, nil
}

// redrive parks an event, lets SQS move its message back, and sees it parked again under the next replay.
func (d *Deployment) redrive(ctx context.Context) (Finding, error) {
	if d.Endpoint == nil {
		return noEndpoint, nil
	}
	depth, err := d.DeadLetters.Depth(ctx)
	if err != nil {
		return Finding{}, err
	}
	if depth > 0 {
		return Finding{Verdict: NotChecked, Means: fmt.Sprintf("the dead-letter queue holds %d messages, and SQS would move all of them", depth)}, nil
	}
	e, err := d.event("invoice.paid", `,"object":"invoice","amount_due":"not an amount"`)
	if err != nil {
		return Finding{}, err
	}
	if _, err := d.deliver(ctx, e); err != nil {
		return Finding{}, err
	}
	parked, _, err := d.await(ctx, e.key, patience, settled)
	if err != nil {
		return Finding{}, err
	}
	if parked.Status != ledger.Parked {
		return Finding{Verdict: NotChecked, Means: "nobody handles invoice.paid here, so the event was not parked"}, nil
	}
	f, err := d.moveBack(ctx, e.key, parked)
	// The alarms ring until it is no longer parked; the reconciler then tidies its messages away.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	last, getErr := d.Ledger.Get(back, e.key)
	if getErr == nil && last.Status == ledger.Parked {
		getErr = d.Ledger.Discard(back, e.key, last.Replay, d.By, "made by backstop verify")
	}
	return f, errors.Join(err, getErr)
}

func (d *Deployment) moveBack(ctx context.Context, key ledger.Key, parked ledger.Entry) (Finding, error) {
	began := d.Now()
	for { // the message is sent before the entry is parked, and counts are approximate
		depth, err := d.DeadLetters.Depth(ctx)
		if err != nil {
			return Finding{}, err
		}
		if depth > 0 {
			break
		}
		if d.Now().Sub(began) > patience {
			return Finding{Verdict: Otherwise, Means: "the event is parked and its message does not show in the dead-letter queue"}, nil
		}
		if err := sleep(ctx, poll); err != nil {
			return Finding{}, err
		}
	}
	began = d.Now()
	if err := d.DeadLetters.Redrive(ctx); err != nil {
		return Finding{}, err
	}
	again, _, err := d.await(ctx, key, patience, func(e ledger.Entry) bool {
		return e.Status == ledger.Parked && e.Generation > parked.Generation
	})
	if errors.Is(err, errSlow) {
		return Finding{Verdict: Otherwise, Means: fmt.Sprintf("the pointer moved back did not run again (its entry is %s at replay %d): replay with `backstop replay`, not from the console",
			strings.ToLower(string(again.Status)), again.Replay)}, nil
	}
	if err != nil {
		return Finding{}, err
	}
	f := Finding{Verdict: AsAssumed, Means: "the pointer moved back ran again as a replay within five minutes of its first run: deduplication swallowed nothing"}
	f.took("moved and parked again", d.Now().Sub(began))
	if again.Replay != parked.Replay+1 {
		f.Verdict = Otherwise
		f.Means = fmt.Sprintf("it ran again, and counts as replay %d instead of %d", again.Replay, parked.Replay+1)
	}
	return f, nil
}
