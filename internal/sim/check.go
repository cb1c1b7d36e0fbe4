package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/projection"
	"backstop/internal/queue"
)

// started is what was so when a delivery set out.
type started struct{ absent bool }

func (w *world) deliveryStarts(d delivery) started {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traceLocked("stripe", string(d.event.key), fmt.Sprintf("delivers %s, %s, which %s (forged %t, resend %t, try %d)",
		d.event.id, d.event.typ, d.event.conduct, d.forged, d.resend, d.try+1))
	return started{w.events[d.event.key].status == ""}
}

// answered checks an answer at the moment Stripe gets it.
func (w *world) answered(d delivery, p *proc, status int, body string, before started) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wit := w.events[d.event.key]
	w.traceLocked("stripe", string(d.event.key), fmt.Sprintf("is answered %d %s by %s", status, body, p.name))
	if d.forged {
		switch {
		case status/100 == 2:
			w.violate("unverified", wit.id, "a delivery nobody signed was taken")
		case status != 400 && status != 0:
			w.violate("unverified", wit.id, fmt.Sprintf("a delivery nobody signed was answered %d", status))
		}
		return
	}
	if status/100 != 2 {
		return
	}
	wit.acked = true
	switch {
	case wit.status == "":
		w.violate("acknowledged", wit.id, "acknowledged, and not in the ledger")
	case wit.status == ledger.Recorded && !w.hasPointer(wit) && !wit.lost:
		w.violate("acknowledged", wit.id, "acknowledged, and neither decided nor in the queue")
	case wit.status == ledger.Processing && wit.leaseMS <= time.Now().UnixMilli() && !w.hasPointer(wit) && !wit.lost:
		w.violate("acknowledged", wit.id, "acknowledged, abandoned by its worker, and not in the queue")
	}
	duplicate := strings.Contains(body, `"duplicate":true`)
	if wit.lives == 1 && duplicate && before.absent && w.deliveries(wit) == 1 {
		w.violate("own write", wit.id, "the delivery that recorded it was told it is a duplicate")
	}
}

// deliveries is how many deliveries recorded the event.
func (w *world) deliveries(wit *witness) int {
	n := 0
	for _, d := range wit.planned.deliveries {
		if !d.forged {
			n++
		}
	}
	return n
}

// check compares the history with what Stripe sent.
func (w *world) check(ctx context.Context) {
	keys := make([]ledger.Key, len(w.plan))
	for i, e := range w.plan {
		keys[i] = e.key
	}
	entries, err := w.ledger.BatchGet(ctx, keys)
	if err != nil {
		w.breach("sim", "", err.Error())
		return
	}
	for _, e := range w.plan {
		entry, found := entries[e.key]
		w.checkEvent(ctx, w.events[e.key], entry, found)
	}
	w.measure(entries)
	w.checkOrder()
	w.checkRows(ctx, entries)
	w.checkDead(ctx, entries)
}

func (w *world) checkEvent(ctx context.Context, wit *witness, entry ledger.Entry, found bool) {
	row, err := w.rows.Get(ctx, w.names.BillingTable, countRow(string(wit.key)))
	if err != nil {
		w.breach("sim", wit.id, err.Error())
		return
	}
	applied, _ := row["n"].(int64)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !found {
		if wit.acked {
			w.violate("lost", wit.id, "acknowledged, and not in the ledger")
		}
		if applied > 0 {
			w.violate("stored", wit.id, "it had effects, and is not in the ledger")
		}
		return
	}
	switch entry.Status {
	case ledger.Done:
		w.report.Done++
	case ledger.Skipped:
		w.report.Skipped++
	case ledger.Parked:
		w.report.Parked++
	default:
		w.violate("lost", wit.id, "it is "+string(entry.Status)+" and nothing is left to do")
	}
	if entry.Status != wit.status {
		w.violate("sim", wit.id, fmt.Sprintf("it is %s, and the wire said %s", entry.Status, wit.status))
	}
	// One that dies while it parks an event whose budget is used up leaves a lease that runs out, too; nothing runs.
	if entry.Attempts-wit.idle > budget {
		w.violate("budget", wit.id, fmt.Sprintf("%d attempts were charged", entry.Attempts))
	}
	want := map[ledger.Status]bool{ledger.Done: true}
	switch {
	case wit.conduct == skips && wit.typ != typeTwo, wit.conduct == unheard:
		want = map[ledger.Status]bool{ledger.Skipped: true}
	case wit.conduct.mayPark():
		want = map[ledger.Status]bool{ledger.Parked: true, ledger.Done: wit.fixed > 0, ledger.Skipped: wit.discarded}
	}
	if !want[entry.Status] {
		w.violate("outcome", wit.id, fmt.Sprintf("it is %s, and %s", entry.Status, wit.conduct))
	}
	w.checkEffects(wit, entry, int(applied))
}

// measure hands the figures of all events to who asked for them.
func (w *world) measure(entries map[ledger.Key]ledger.Entry) {
	if w.Options.figures == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]figures, len(w.plan))
	for i, e := range w.plan {
		wit := w.events[e.key]
		all[i] = figures{planned: e, enqueued: wit.enqueuedAt.Sub(w.start), settled: wit.settledAt.Sub(w.start),
			status: wit.status, charged: entries[e.key].Attempts}
		for _, n := range wit.runs {
			all[i].runs = max(all[i].runs, n)
		}
	}
	w.Options.figures(all)
}

// budget is how many attempts an event has.
const budget = 8

func (w *world) checkEffects(wit *witness, entry ledger.Entry, applied int) {
	runs := wit.lives + wit.again
	counts := wit.typ == typeOnce || wit.typ == typeBoth || wit.typ == typeTwo
	switch {
	case applied > runs:
		w.violate("doubled", wit.id, fmt.Sprintf("its effect was applied %d times in %d runs", applied, runs))
	case counts && entry.Status == ledger.Done && applied < runs:
		w.violate("lost", wit.id, fmt.Sprintf("it is done, and its effect was applied %d times in %d runs", applied, runs))
	}
	calls := w.outside.calls[wit.key]
	if len(calls) > runs {
		w.violate("idempotency", wit.id, fmt.Sprintf("the outside was called under %d keys in %d runs", len(calls), runs))
	}
	if wit.typ == typeTwo && entry.Status == ledger.Done && wit.conduct != skips && len(calls) == 0 {
		w.violate("lost", wit.id, "it is done, and the outside was never called")
	}
}

// checkOrder compares the order of each group's transactional effects with that of the first sequence numbers.
func (w *world) checkOrder() {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := make(map[string]*witness)
	byEffect := make([]*witness, w.effects+1)
	for _, wit := range w.events {
		if len(wit.applied) > 0 {
			byEffect[wit.applied[0]] = wit
		}
	}
	for _, wit := range byEffect {
		// An event that was parked, replayed, or lost to a purge had its turn at another time.
		if wit == nil || wit.parkings > 0 || wit.again > 0 || wit.lives > 1 || w.profile.purge {
			continue
		}
		if before := last[wit.group]; before != nil && before.firstSequence > wit.firstSequence {
			w.violate("order", wit.id, fmt.Sprintf("it was applied after %s, and enqueued before", before.id))
		}
		last[wit.group] = wit
	}
}

// checkRows compares each projected row with the newest fact among the events that are done.
func (w *world) checkRows(ctx context.Context, entries map[ledger.Key]ledger.Entry) {
	type newest struct {
		created int64
		states  []int64
	}
	rows := make(map[string]*newest)
	for _, e := range w.plan {
		if e.typ != typeProject && e.typ != typeBoth || entries[e.key].Status != ledger.Done {
			continue
		}
		n := rows[e.group]
		if n == nil {
			n = &newest{}
			rows[e.group] = n
		}
		if e.created > n.created {
			*n = newest{created: e.created}
		}
		if e.created == n.created {
			n.states = append(n.states, int64(e.state))
		}
	}
	for _, group := range sortedKeys(rows) {
		n := rows[group]
		row, err := w.rows.Get(ctx, w.names.BillingTable, projectRow(group))
		if err != nil {
			w.breach("sim", "", err.Error())
			continue
		}
		state, _ := row["state"].(int64)
		latest, known := n.states[0], false
		for _, s := range n.states {
			latest = max(latest, s)
			known = known || s == state
		}
		// Of two that follow each other the later must stand. Of others nobody can say, and the row must say that.
		decidable := len(n.states) == 1 || len(n.states) == 2 && n.states[0]-n.states[1] == 1 || len(n.states) == 2 && n.states[1]-n.states[0] == 1
		switch {
		case !known && w.parkedFact(entries, group, state, n.created):
		case !known:
			w.breach("stale", "", fmt.Sprintf("the row of %s is at state %d, and the newest event is of %v", group, state, n.states))
		case decidable && state != latest:
			w.breach("stale", "", fmt.Sprintf("the row of %s is at state %d, and the newest is %d", group, state, latest))
		case !decidable && !projection.Unsure(handler.Row(row)):
			w.breach("stale", "", fmt.Sprintf("the row of %s does not say that its order is unsure", group))
		}
	}
}

// parkedFact reports whether a state is that of an event which is not done and no older than the newest that is: its
// attempt wrote the row, which is a fact whatever became of the event, and died before it could settle.
func (w *world) parkedFact(entries map[ledger.Key]ledger.Entry, group string, state, created int64) bool {
	for _, e := range w.plan {
		if e.group == group && int64(e.state) == state && e.created >= created && entries[e.key].Status != ledger.Done {
			return true
		}
	}
	return false
}

// checkDead tidies the dead-letter queue and compares what it then holds with what is parked.
func (w *world) checkDead(ctx context.Context, entries map[ledger.Key]ledger.Entry) {
	w.wait(3 * time.Minute) // what a tidying that died had taken shows again
	tidier := w.tidier(w.sqs, w.ledger)
	for {
		tidied, err := tidier.Run(ctx, false)
		if err != nil {
			w.breach("sim", "", err.Error())
			return
		}
		if tidied.Deleted == 0 {
			break
		}
	}
	held, err := w.takeDead(ctx)
	if err != nil {
		w.breach("sim", "", err.Error())
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = held
	for _, id := range sortedKeys(w.dead) {
		m := w.dead[id]
		if e := entries[m.key]; e.Status != ledger.Parked || e.Generation != m.generation {
			w.violate("tidy", e.EventID, fmt.Sprintf("the dead-letter queue holds its %s, of generation %d, and it is %s at generation %d", id, m.generation, e.Status, e.Generation))
		}
	}
	for _, e := range w.plan {
		if entries[e.key].Status == ledger.Parked && !w.isDead(w.events[e.key]) {
			w.violate("unheard of", e.id, "it is parked, and nothing in the dead-letter queue says so")
		}
	}
}

// takeDead empties the dead-letter queue and returns what it held. What the witness believes to be there will not do:
// a redrive moves the groups nobody looks at in that moment, which cannot be told from outside.
func (w *world) takeDead(ctx context.Context) (map[string]pointerMessage, error) {
	held := make(map[string]pointerMessage)
	for {
		out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &w.names.DeadLetterURL, MaxNumberOfMessages: 10})
		if err != nil || len(out.Messages) == 0 {
			return held, err
		}
		for _, m := range out.Messages {
			if pointer, err := queue.Decode(*m.Body); err == nil {
				held[*m.MessageId] = pointerMessage{key: ledger.Key(pointer.Key), generation: pointer.Generation}
			}
			if _, err := w.sqs.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &w.names.DeadLetterURL, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return nil, err
			}
		}
	}
}
