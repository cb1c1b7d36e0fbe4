package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/stripeevents"
)

// pass is one account's audit from one second to another.
type pass struct {
	*Auditor
	account string
	heal    bool
	report  *Audited
}

// missing is an event the ledger does not have.
type missing struct {
	event event.Event
	body  []byte
}

// pass compares [from, end) slice by slice, the oldest first, so that what is healed is enqueued in the order it
// happened, although Stripe lists the newest first. A slice with too many events is cut in two. advanced hears of each
// slice that has been compared and healed.
func (a *Auditor) pass(ctx context.Context, account string, from, end int64, heal bool, report *Audited, advanced func(at int64) error) error {
	p := &pass{Auditor: a, account: account, heal: heal, report: report}
	if oldest := a.Now().Add(-stripeevents.Retention).Unix(); from < oldest {
		report.Gap = true
		report.note("events created from %s to %s%s cannot be compared: they are older than the 30 days Stripe's list goes back",
			stamp(from), stamp(oldest), ofAccount(account))
		from = oldest
	}
	if report.FromS == 0 || from < report.FromS {
		report.FromS = from
	}
	at := from
	defer func() {
		if report.ToS == 0 || at < report.ToS {
			report.ToS = at
		}
	}()
	span := int64(widest / time.Second)
	for at < end {
		to := min(at+span, end)
		lost, count, fits, err := p.within(ctx, at, to)
		switch {
		case errors.Is(err, errLate):
			report.Complete = false
			return nil
		case err != nil:
			return fmt.Errorf("audit%s: %w", ofAccount(account), err)
		case !fits:
			// As dense as this slice was at its end, three quarters of a slice's worth.
			span = max(min((to-count.oldestS)*3/4, (to-at)/2), 1)
			continue
		}
		if err := p.mend(ctx, lost); err != nil {
			return fmt.Errorf("audit%s: %w", ofAccount(account), err)
		}
		p.add(count)
		at = to
		if err := advanced(at); err != nil {
			return fmt.Errorf("audit%s: keep the place: %w", ofAccount(account), err)
		}
		if a.Progress != nil {
			a.Progress(account, time.Unix(at, 0), time.Unix(end, 0))
		}
		if count.pages <= slicePages/4 {
			span = min(2*span, int64(widest/time.Second))
		}
	}
	return nil
}

// errLate says that the run's time is nearly over.
var errLate = errors.New("out of time")

// counted are the figures of one slice, which count when the slice does.
type counted struct {
	oldestS int64 // created, of the oldest event seen

	pages, listed, others, otherMode, unfinished, parked, unreadable int
	findings                                                         []Finding
}

func (p *pass) add(c counted) {
	p.report.Listed += c.listed
	p.report.Others += c.others
	p.report.OtherMode += c.otherMode
	p.report.Unfinished += c.unfinished
	p.report.Parked += c.parked
	p.report.Missing += c.unreadable
	p.report.Unhealed += c.unreadable
	for _, f := range c.findings {
		p.report.find(f)
	}
}

// within is compare in the time that the run has left; errLate says that there is not enough.
func (p *pass) within(ctx context.Context, from, to int64) ([]missing, counted, bool, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return p.compare(ctx, from, to)
	}
	work, cancel := context.WithDeadline(ctx, deadline.Add(-2*reserve)) // one for healing, one for reporting
	defer cancel()
	if work.Err() != nil {
		return nil, counted{}, false, errLate
	}
	lost, count, fits, err := p.compare(work, from, to)
	// A client that spreads its calls gives up a moment before the deadline comes.
	if err != nil && ctx.Err() == nil && deadline.Sub(p.Now()) < 2*reserve+time.Second {
		err = errLate
	}
	return lost, count, fits, err
}

// compare pages through one slice and returns what the ledger does not have, oldest first. fits is false when the
// slice holds more than a slice should and can be cut.
func (p *pass) compare(ctx context.Context, from, to int64) (lost []missing, count counted, fits bool, err error) {
	query := stripeevents.Query{Account: p.account, FromS: from, ToS: to}
	size := 0
	for {
		page, err := p.Events.Page(ctx, query)
		if err != nil {
			return nil, count, false, err
		}
		count.pages++
		var wanted []missing
		for _, body := range page.Events {
			ev, err := event.Parse(body)
			if err != nil {
				count.unreadable++
				count.findings = append(count.findings, Finding{What: "unhealed", Why: err.Error()})
				continue
			}
			query.After, count.oldestS = ev.ID, ev.CreatedS
			if p.counts(ev, &count) {
				wanted = append(wanted, missing{ev.Within(p.account), body})
			}
		}
		absent, err := p.absent(ctx, wanted, &count)
		if err != nil {
			return nil, count, false, err
		}
		for _, m := range absent {
			size += len(m.body)
		}
		lost = append(lost, absent...)
		if !page.More {
			break
		}
		if to-from > 1 && (count.pages >= slicePages || size > sliceBytes) {
			return nil, count, false, nil
		}
	}
	slices.Reverse(lost) // newest first as listed
	slices.SortStableFunc(lost, func(a, b missing) int { return cmp.Compare(a.event.CreatedS, b.event.CreatedS) })
	return lost, count, true, nil
}

// counts reports whether the ledger should have the event.
func (p *pass) counts(ev event.Event, count *counted) bool {
	switch {
	case !slices.Contains(p.Types, ev.Type):
		count.others++
	case p.Mode != "" && ev.Livemode != (p.Mode == "live"):
		count.otherMode++
	default:
		count.listed++
		return true
	}
	return false
}

// absent returns those the ledger does not have, and counts what it says of the others.
func (p *pass) absent(ctx context.Context, wanted []missing, count *counted) ([]missing, error) {
	keys := make([]ledger.Key, len(wanted))
	for i, m := range wanted {
		keys[i] = ledger.Key(m.event.Key(""))
	}
	entries, err := p.Ledger.BatchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	var list []missing
	for i, m := range wanted {
		if p.Seen != nil {
			p.Seen(keys[i])
		}
		finding := Finding{Key: keys[i], Type: m.event.Type, CreatedS: m.event.CreatedS}
		entry, found := entries[keys[i]]
		switch {
		case !found:
			list = append(list, m)
			continue
		case entry.Status == ledger.Parked:
			count.parked++
			finding.What, finding.Why = "parked", string(entry.Class)
		case !entry.Status.Settled():
			count.unfinished++
			finding.What = "unfinished"
		default:
			continue
		}
		count.findings = append(count.findings, finding)
	}
	return list, nil
}

// mend records what is missing, as a delivery would, and enqueues it, in order.
func (p *pass) mend(ctx context.Context, lost []missing) error {
	var sends []queue.Send
	var failed error
	for _, m := range lost {
		finding := Finding{Key: ledger.Key(m.event.Key("")), Type: m.event.Type, CreatedS: m.event.CreatedS, What: "missing"}
		if !p.heal {
			p.report.Missing++
			p.report.find(finding)
			continue
		}
		found, err := p.Ledger.Record(ctx, ledger.Recording{
			Key:        finding.Key,
			Type:       m.event.Type,
			CreatedS:   m.event.CreatedS,
			Account:    m.event.Account,
			Livemode:   m.event.Livemode,
			APIVersion: m.event.APIVersion,
			ObjectID:   m.event.ObjectID,
			Group:      m.event.Group,
			Origin:     ledger.Backfill,
			Body:       m.body,
			Token:      p.Token(),
		})
		switch {
		case errors.Is(err, ledger.ErrTooLarge): // nor will it fit the next time
			p.report.Missing++
			p.report.Unhealed++
			finding.What, finding.Why = "unhealed", "it does not fit the ledger"
		case err != nil:
			failed = err
		case !found.New:
			continue // it arrived meanwhile
		default:
			p.report.Missing++
			p.report.Healed++
			p.report.note("healed events hold the payload in the account's API version (%s), not the endpoint's", m.event.APIVersion)
			finding.What = "healed"
			entry := found.Entry
			sends = append(sends, queue.Send{
				Pointer: queue.Pointer{Key: string(entry.Key), Type: entry.Type, CreatedS: entry.CreatedS, Replay: entry.Replay},
				Group:   entry.Group,
			})
		}
		if failed != nil {
			break
		}
		p.report.find(finding)
	}
	unsent := 0
	for _, err := range p.Queue.SendBatch(ctx, sends) {
		if err != nil {
			unsent++
		}
	}
	if unsent > 0 { // recorded they are: nothing is lost
		p.report.note("%d healed events could not be enqueued; the sweep does within minutes", unsent)
	}
	return failed
}
