package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/control"
	"backstop/internal/ledger"
	"backstop/internal/projection"
	"backstop/internal/queue"
	"backstop/internal/reconcile"
)

func (p *proc) projector() *projection.Store { return projection.New(p.db) }

func (p *proc) control() *control.Store { return control.New(p.db, p.w.names.ControlTable) }

// pagedLedger has pages small enough for the sweep to turn some.
type pagedLedger struct{ *ledger.Store }

func (l pagedLedger) Open(ctx context.Context, partition string, after ledger.Cursor, limit int) ([]ledger.Open, ledger.Cursor, error) {
	return l.Store.Open(ctx, partition, after, min(limit, sweepPage))
}

// swept checks what a sweep that began then has left.
func (w *world) swept(began time.Time, s reconcile.Swept, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Swept += s.Enqueued
	if w.paused && s.Enqueued > 0 {
		w.violate("paused", "", "the sweep enqueues while the pipeline is paused")
	}
	if err != nil {
		w.traceLocked("sweep", "", "fails: "+err.Error())
	}
	if err != nil || !s.Whole {
		return
	}
	for _, e := range w.plan {
		wit := w.events[e.key]
		if wit.status == ledger.Recorded && wit.sweeps == 0 && began.Sub(wit.recordedAt) >= firstSweep && !w.hasPointer(wit) {
			w.violate("unswept", e.id, fmt.Sprintf("recorded %s ago, not in the queue, and the sweep passed it by", began.Sub(wit.recordedAt).Round(time.Second)))
		}
	}
}

// firstSweep is the age at which an entry is swept for the first time.
const firstSweep = 2 * time.Minute

// act is what people do in the course of a history.
func (w *world) act(ctx context.Context) {
	d := w.dice.about("people")
	type deed struct {
		at time.Duration
		do func(context.Context) error
	}
	var deeds []deed
	if w.profile.pause {
		from := d.about("pause from").between(0, w.profile.span)
		deeds = append(deeds, deed{from, w.pause},
			deed{from + d.about("pause for").between(time.Minute, 8*time.Minute), w.resume})
	}
	if w.profile.purge {
		deeds = append(deeds, deed{d.about("purge").between(0, w.profile.span), w.purge})
	}
	if w.profile.people {
		for n := range 3 {
			deeds = append(deeds, deed{d.about("redrive").number(n).between(w.profile.span/4, w.profile.span+10*time.Minute), w.redrive})
		}
		deeds = append(deeds,
			deed{d.about("replay").between(w.profile.span/2, w.profile.span+10*time.Minute), w.replayParked},
			deed{d.about("again").between(w.profile.span/2, w.profile.span+5*time.Minute), w.runAgain},
			deed{w.profile.span + 12*time.Minute, w.discard})
	}
	for len(deeds) > 0 {
		next := 0
		for i := range deeds {
			if deeds[i].at < deeds[next].at {
				next = i
			}
		}
		do := deeds[next]
		deeds = append(deeds[:next], deeds[next+1:]...)
		w.mu.Lock()
		w.people = len(deeds) + 1
		w.mu.Unlock()
		select {
		case <-time.After(time.Until(w.start.Add(do.at.Truncate(time.Millisecond) + thePeople*slice))):
		case <-ctx.Done():
			return
		}
		if err := do.do(ctx); err != nil && ctx.Err() == nil {
			w.breach("people", "", err.Error())
		}
	}
	w.mu.Lock()
	w.people = 0
	w.mu.Unlock()
}

func (w *world) pause(ctx context.Context) error {
	w.note("people", "", "pause")
	w.mu.Lock()
	w.paused = true
	w.mu.Unlock()
	return w.setPaused(ctx, "for an hour's rest")
}

func (w *world) resume(ctx context.Context) error {
	w.note("people", "", "resume")
	w.mu.Lock()
	w.paused = false
	w.mu.Unlock()
	return w.setPaused(ctx, "")
}

func (w *world) setPaused(ctx context.Context, why string) error {
	seen, err := w.control.Get(ctx, reconcile.Paused)
	if err != nil {
		return err
	}
	_, err = w.control.Put(ctx, reconcile.Paused, why, seen)
	return err
}

func (w *world) purge(ctx context.Context) error {
	w.note("people", "", "purge the queue")
	w.mu.Lock()
	for _, g := range w.groups { // a message in flight is what keeps a group to one worker
		for p, live := range g.live {
			g.live[p] = liveHandler{event: live.event, unguarded: true}
		}
	}
	w.mu.Unlock()
	_, err := w.sqs.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &w.names.QueueURL})
	return err
}

// redrive presses "Start DLQ redrive" in the console.
func (w *world) redrive(ctx context.Context) error {
	w.note("people", "", "redrive the dead-letter queue")
	w.mu.Lock()
	taken := make(map[string]bool) // groups a tidying looks at, which do not move
	for _, m := range w.dead {
		if m.hidden.After(time.Now()) {
			taken[w.events[m.key].group] = true
		}
	}
	for id, m := range w.dead {
		if wit := w.events[m.key]; !taken[wit.group] {
			wit.moved = true
			delete(w.dead, id)
		}
	}
	w.mu.Unlock()
	_, err := w.sqs.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{
		SourceArn: &w.names.DeadLetterARN, DestinationArn: &w.names.QueueARN,
	})
	return err
}

// replayParked replays everything that is parked, as `backstop replay` does.
func (w *world) replayParked(ctx context.Context) error { return w.replay(ctx, ledger.Parked, 1000) }

// runAgain replays a few events that are done.
func (w *world) runAgain(ctx context.Context) error { return w.replay(ctx, ledger.Done, 2) }

func (w *world) replay(ctx context.Context, from ledger.Status, most int) error {
	for _, e := range w.plan {
		entry, err := w.ledger.Get(ctx, e.key)
		if errors.Is(err, ledger.ErrNotFound) || err == nil && entry.Status != from || most == 0 {
			continue
		}
		if err != nil {
			return err
		}
		most--
		w.note("people", string(e.key), "replay "+e.id+", which is "+string(from))
		entry, err = w.ledger.Replay(ctx, ledger.Replaying{Key: e.key, From: from, Replay: entry.Replay,
			Token: "people-" + e.id + time.Now().Format(time.RFC3339Nano), By: "people", Why: "the handler is mended"})
		if err != nil {
			return err
		}
		err = w.queue.Send(ctx, queue.Send{Group: entry.Group, Pointer: queue.Pointer{
			Key: string(entry.Key), Type: entry.Type, CreatedS: entry.CreatedS, Replay: entry.Replay}})
		if err != nil {
			return err
		}
	}
	return nil
}

// discard settles one parked event as skipped.
func (w *world) discard(ctx context.Context) error {
	for _, e := range w.plan {
		entry, err := w.ledger.Get(ctx, e.key)
		if errors.Is(err, ledger.ErrNotFound) || err == nil && entry.Status != ledger.Parked {
			continue
		}
		if err != nil {
			return err
		}
		w.note("people", string(e.key), "discard "+e.id)
		w.mu.Lock()
		w.events[e.key].discarded = true
		w.mu.Unlock()
		return w.ledger.Discard(ctx, e.key, entry.Replay, "people", "not needed")
	}
	return nil
}
