package sim

import (
	"encoding/json"
	"fmt"
	"time"

	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/schema"
)

// handlerStarts checks who else is at work, and returns the number of this run of the handler.
func (w *world) handlerStarts(p *proc, key ledger.Key, e handler.Event) (*witness, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wit := w.events[key]
	g := w.group(wit.group)
	for other, live := range g.live {
		if !other.ended && !live.unguarded {
			w.violate("two at once", wit.id, fmt.Sprintf("its handler starts in %s while that of %s runs in %s", p.name, live.event, other.name))
		}
	}
	for name, other := range w.groups {
		live, busy := other.live[p]
		if name == wit.group || !busy {
			continue
		}
		if wit.suspect {
			w.violate("not alone", wit.id, "a suspect runs beside "+live.event)
		} else if w.events[ledger.Key("stripe#-#"+live.event)].suspect {
			w.violate("not alone", live.event, "a suspect runs beside "+wit.id)
		}
	}
	if wit.leaseMS <= time.Now().UnixMilli() && wit.holder == p {
		w.violate("without lease", wit.id, "its handler starts in "+p.name+" when the lease has passed")
	}
	g.live[p] = liveHandler{event: wit.id}
	g.ready = time.Time{}
	if wit.runs == nil {
		wit.runs = make(map[string]int)
	}
	run := wit.runs[e.Handler]
	wit.runs[e.Handler]++
	wit.ran = true
	w.traceLocked(p.name, string(key), fmt.Sprintf("handler %s starts, run %d", e.Handler, run+1))
	return wit, run
}

func (w *world) handlerEnds(p *proc, wit *witness, e handler.Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.group(wit.group).live, p)
	wit.suspect = false // it ended by itself
	if charged(err) {
		wit.owed = true
	}
	w.traceLocked(p.name, string(wit.key), fmt.Sprintf("handler %s ends: %v", e.Handler, err))
}

// charged is the model's own view of which errors are the event's fault.
func charged(err error) bool {
	switch err := err.(type) {
	case *handler.PermanentError:
		return true
	default:
		return err == errFails
	}
}

// died takes note of a process's end: what it ran does not run any more, and its groups wait for its messages.
func (w *world) died(p *proc, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if why == "" {
		return
	}
	if why != faultOOM { // counted by the handler
		name := why
		if why != faultDeath && why != faultDeath2 {
			name = faultDeadline
		}
		w.report.Faults[name]++
	}
	w.traceLocked(p.name, "", "dies: "+why)
	w.orphan(p)
}

// froze takes note of a process that freezes. The caller holds the lock.
func (w *world) froze(p *proc) {
	w.traceLocked(p.name, "", "freezes for "+p.freezeFor.String())
	for _, g := range w.groups {
		if live, busy := g.live[p]; busy {
			live.unguarded = true
			g.live[p] = live
		}
	}
	w.orphan(p)
}

// orphan forgets who a process worked for. What it held is a suspect.
func (w *world) orphan(p *proc) {
	for _, wit := range w.events {
		if wit.status == ledger.Processing && wit.holder == p {
			w.group(wit.group).ready = time.UnixMilli(wit.leaseMS)
		}
	}
	if p.ended {
		for _, g := range w.groups {
			delete(g.live, p)
		}
	}
}

// attempted takes a line the processor logged about a message: its group was looked at, and when it will be again.
func (w *world) attempted(p *proc, group, outcome string, took, again time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.abandoned {
		return // its messages are long another's
	}
	g := w.group(group)
	now := time.Now()
	if !g.ready.IsZero() && outcome != "handed_back" {
		if waited := now.Add(-took).Sub(g.ready); waited > w.patience() {
			w.violate("waited", "", fmt.Sprintf("group %s could go on for %s before it did", group, waited.Round(time.Second)))
		}
	}
	g.ready = time.Time{}
	if again > 0 {
		g.ready = now.Add(again)
		return
	}
	for _, wit := range g.events {
		if (wit.status == ledger.Recorded || wit.status == ledger.Processing) && w.hasPointer(wit) {
			g.ready = now
			return
		}
	}
}

// outcome counts what deliveries and attempts came to, by the words of their log lines.
func (w *world) outcome(message, outcome, reason string) {
	if outcome == "" {
		return
	}
	if outcome == "handed_back" || outcome == "dropped" {
		outcome += " (" + reason + ")"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Outcomes[message+" "+outcome]++
}

// patience is how long a group may wait although its head could be claimed.
func (w *world) patience() time.Duration {
	if w.profile.calm() && !w.profile.pause {
		// A slot is busy for a batch at most, which a hanging handler makes as long as the function may run; and there
		// may be as many of those as there are slots, twice running.
		return 3 * schema.ProcessorTimeout * time.Duration(1+3/w.profile.processors)
	}
	// A receive whose reply is lost hides its messages for the queue's own time-out, and so does a process that dies
	// before it could say otherwise; either can happen twice running.
	bound := 2*schema.VisibilityTimeout + time.Minute
	if w.profile.pause || w.profile.down {
		bound += 10 * time.Minute // a pause is 8 at most, an outage of AWS 3 and what it hid
	}
	if w.profile.parallel == 1 {
		bound += 5 * time.Minute // each hanging handler holds up its whole slot
	}
	return bound
}

// handedBack checks, at the end of a batch nothing went wrong with, that the messages that stay in the queue are not
// hidden for longer than their group has to wait.
func (w *world) handedBack(answer []byte) {
	var kept struct {
		Failures []struct {
			ID string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if json.Unmarshal(answer, &kept) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.profile.calm() {
		return
	}
	for _, f := range kept.Failures {
		m, known := w.messages[f.ID]
		if !known {
			continue
		}
		ready := w.group(w.events[m.key].group).ready
		if now := time.Now(); ready.Before(now) {
			ready = now
		}
		if late := m.hidden.Sub(ready); late > 2*time.Second { // SQS counts in whole seconds
			w.violate("waited", w.events[m.key].id, fmt.Sprintf("its message stays hidden for %s after its group can go on", late.Round(time.Second)))
		}
	}
}
