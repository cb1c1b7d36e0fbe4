package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"backstop/internal/ledger"
)

// expire lets 36 days pass, in which nothing happens, and has Stripe deliver some events once more: those that were
// settled are new, those that are parked are still there.
func (w *world) expire(ctx context.Context) error {
	w.note("people", "", "36 days pass")
	w.wait(36 * 24 * time.Hour)
	w.mu.Lock()
	clear(w.messages) // SQS keeps messages for 14 days
	clear(w.dead)
	for _, g := range w.groups {
		g.ready = time.Time{}
	}
	now := time.Since(w.start)
	var deliveries []delivery
	for _, e := range w.plan {
		wit := w.events[e.key]
		if !wit.status.Settled() || !w.dice.about("after all", e.id).chance(0.3) {
			continue
		}
		deliveries = append(deliveries, delivery{
			at: now + time.Duration(len(deliveries)+1)*time.Second, event: e, line: e.n % w.profile.receivers, expired: wit.status != ledger.Parked,
		})
	}
	w.mu.Unlock()
	if w.profile.swept {
		w.server.DynamoDB.SweepExpired()
	}
	act, stop := context.WithCancel(ctx)
	defer stop()
	if err := w.startPollers(act); err != nil {
		return err
	}
	w.startSweeps(act)
	w.startLines(deliveries)
	if w.settle(", and 36 days") {
		w.checkExpired(ctx, deliveries)
	}
	return nil
}

// checkExpired checks that each of those events had its effects once more.
func (w *world) checkExpired(ctx context.Context, deliveries []delivery) {
	for _, d := range deliveries {
		wit := w.events[d.event.key]
		if d.expired && wit.lives < 2 {
			w.breach("expired", wit.id, "it was delivered again 36 days after it was settled, and not recorded as new")
		}
		entry, err := w.ledger.Get(ctx, wit.key)
		w.checkEvent(ctx, wit, entry, err == nil)
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
