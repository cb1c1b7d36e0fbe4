package sim

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/control"
	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/process"
	"backstop/internal/queue"
	"backstop/internal/receive"
	"backstop/internal/reconcile"
	"backstop/internal/secret"
)

// plant is a wrong variant of one piece of the product's logic, the promises it may break, and the number of
// lifecycles within which the simulation must find it.
type plant struct {
	name     string
	promises []string
	within   int
	hooks    Hooks
	profile  func(*Profile)
}

// TestPlantedFaultsAreFound plays histories with one wrong variant each until a promise is broken. That the same
// histories keep every promise without it is what TestHistories shows.
func TestPlantedFaultsAreFound(t *testing.T) {
	if raced {
		t.Skip("thousands of lifecycles, which the race detector makes take ten minutes; it watches the same code in TestHistories")
	}
	for _, p := range plants {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			played := 0
			for s := uint64(1); played < p.within; s++ {
				report := play(t, Options{Seed: s, Hooks: p.hooks, Profile: p.profile})
				played += report.Lifecycles
				if len(report.Violations) == 0 {
					continue
				}
				v := report.Violations[0]
				if !slices.Contains(p.promises, v.Promise) {
					t.Errorf("found by an unexpected check: %v", v)
				}
				t.Logf("%s: found within %d lifecycles: %v", p.name, played, v)
				return
			}
			t.Errorf("%s: not found in %d lifecycles", p.name, played)
		})
	}
}

func ofReceiveQueue(f func(Seam, receive.Queue, context.Context, queue.Send) error) Hooks {
	return Hooks{ReceiveQueue: func(s Seam, q receive.Queue) receive.Queue {
		return sendFunc(func(ctx context.Context, send queue.Send) error { return f(s, q, ctx, send) })
	}}
}

type sendFunc func(context.Context, queue.Send) error

func (f sendFunc) Send(ctx context.Context, s queue.Send) error { return f(ctx, s) }

var plants = []plant{
	{
		name: "200 before enqueue", promises: []string{"acknowledged"}, within: 200,
		hooks: ofReceiveQueue(func(s Seam, q receive.Queue, ctx context.Context, send queue.Send) error {
			s.Go(func() { _ = q.Send(context.WithoutCancel(ctx), send) })
			return nil
		}),
	},
	{
		name: "enqueue error taken for success", promises: []string{"acknowledged"}, within: 4000,
		hooks: ofReceiveQueue(func(_ Seam, q receive.Queue, ctx context.Context, send queue.Send) error {
			_ = q.Send(ctx, send)
			return nil
		}),
	},
	{
		name: "replay with the old deduplication id", promises: []string{"acknowledged"}, within: 4000,
		hooks: ofReceiveQueue(func(_ Seam, q receive.Queue, ctx context.Context, send queue.Send) error {
			send.Pointer.Replay = 0
			return q.Send(ctx, send)
		}),
	},
	{
		name: "duplicate of a recorded entry not enqueued", promises: []string{"acknowledged"}, within: 4000,
		hooks: Hooks{ReceiveLedger: func(_ Seam, l receive.Ledger) receive.Ledger { return &settledAlready{l} }},
	},
	{
		name: "SDK's own retry of the record taken for a duplicate", promises: []string{"own write"}, within: 3000,
		hooks: Hooks{Wire: rewriteAnswers("PutItem", ownToken)},
	},
	{
		name: "SDK's own retry of the claim taken for another's", promises: []string{"charged", "waited"}, within: 6000,
		hooks: Hooks{Wire: rewriteAnswers("UpdateItem", ownToken)},
	},
	{
		name: "TTL condition left out", promises: []string{"expired"}, within: 2000,
		hooks: Hooks{Wire: rewrite("PutItem", func(body string) string {
			return strings.Replace(body, "#delete_after_s < :v0", "#delete_after_s < :v0 AND attribute_not_exists(#pk)", 1)
		})},
	},
	{
		name: "settle without generation", promises: []string{"fenced"}, within: 12000,
		hooks: Hooks{Wire: rewrite("UpdateItem", func(body string) string {
			return mineAlways.ReplaceAllString(body, "#status = $1 AND ($2 = $2 OR #generation = $2)")
		})},
	},
	{
		name: "effects without generation", promises: []string{"fenced"}, within: 12000,
		hooks: Hooks{Wire: rewrite("TransactWriteItems", func(body string) string {
			return mineAlways.ReplaceAllString(body, "#status = $1 AND ($2 = $2 OR #generation = $2)")
		})},
	},
	{
		name: "two live ledger generations", promises: []string{"fenced", "doubled"}, within: 12000,
		hooks: Hooks{ProcessLedger: func(s Seam, l process.Ledger) process.Ledger { return &newestGeneration{l, s} }},
	},
	{
		name: "claim ignoring the lease", promises: []string{"claimed", "two at once"}, within: 6000,
		hooks: Hooks{ProcessLedger: func(s Seam, l process.Ledger) process.Ledger {
			return &impatient{l, ledger.New(s.DB, s.Table, func() time.Time { return time.Now().Add(time.Hour) }, ledger.WithCodec(s.Codec))}
		}},
	},
	{
		name: "lease shorter than the deadline", promises: []string{"without lease", "two at once", "charged", "fenced"}, within: 6000,
		hooks: Hooks{ProcessLedger: func(_ Seam, l process.Ledger) process.Ledger { return &shortLease{l} }},
	},
	{
		name: "attempts counted at settle", promises: []string{"lost", "budget"}, within: 6000,
		hooks: Hooks{ProcessLedger: func(_ Seam, l process.Ledger) process.Ledger { return &forgetful{l} }},
	},
	{
		name: "no unclaim after a lost claim", promises: []string{"charged"}, within: 4000,
		profile: func(p *Profile) { p.down, p.deaths, p.freezes, p.wire = true, 0, 0, 0.01 },
		hooks:   Hooks{ProcessLedger: func(_ Seam, l process.Ledger) process.Ledger { return &noUnclaim{l} }},
	},
	{
		name: "effects beside the step's mark", promises: []string{"doubled"}, within: 6000,
		hooks: Hooks{ProcessLedger: func(s Seam, l process.Ledger) process.Ledger { return &looseEffects{l, s} }},
	},
	{
		name: "outage attempts charged", promises: []string{"charged"}, within: 2000,
		hooks: Hooks{ProcessLedger: func(_ Seam, l process.Ledger) process.Ledger { return &chargesAll{l} }},
	},
	{
		name: "suspect run beside others", promises: []string{"not alone"}, within: 4000,
		hooks: Hooks{ProcessLedger: func(_ Seam, l process.Ledger) process.Ledger { return &unsuspecting{l} }},
	},
	{
		name: "dead-letter send after the ack", promises: []string{"unheard of"}, within: 1000,
		hooks: Hooks{ProcessQueue: func(s Seam, q process.Queue) process.Queue { return &lateDeadLetter{q, s} }},
	},
	{
		name: "followers not handed back", promises: []string{"waited"}, within: 2000,
		hooks: Hooks{ProcessQueue: func(_ Seam, q process.Queue) process.Queue { return &headOnly{q} }},
	},
	{
		name: "visibility reset lost", promises: []string{"waited"}, within: 1000,
		hooks: Hooks{ProcessQueue: func(_ Seam, q process.Queue) process.Queue { return &noReset{q} }},
	},
	{
		name: "stale effect applied", promises: []string{"stale"}, within: 1000,
		hooks: Hooks{Wire: rewrite("UpdateItem", func(body string) string {
			return strings.Replace(body, "attribute_not_exists(#fact) OR #fact < :older", "attribute_not_exists(#fact) OR :older = :older", 1)
		})},
	},
	{
		name: "same-second rule tested one way only", promises: []string{"stale"}, within: 4000,
		hooks: Hooks{Decide: func(incoming, previous, storedState, storedPrevious int64) handler.Decision {
			if previous == storedState {
				return handler.Newer
			}
			return handler.Unsure
		}},
	},
	{
		name: "sweep reading only the first page", promises: []string{"unswept"}, within: 10000,
		hooks: Hooks{SweepLedger: func(_ Seam, l reconcile.Ledger) reconcile.Ledger { return &firstPage{l} }},
	},
	{
		name: "no sweep at all", promises: []string{"unswept"}, within: 2000,
		hooks: Hooks{SweepLedger: func(_ Seam, l reconcile.Ledger) reconcile.Ledger { return &nothingOpen{l} }},
	},
	{
		name: "sweep while paused", promises: []string{"paused"}, within: 6000,
		hooks: Hooks{SweepControl: func(_ Seam, c reconcile.Control) reconcile.Control { return &neverPaused{c} }},
	},
	{
		name: "each event a group of its own", promises: []string{"order", "two at once"}, within: 1000,
		hooks: ofReceiveQueue(func(_ Seam, q receive.Queue, ctx context.Context, send queue.Send) error {
			send.Group = send.Pointer.EventID()
			return q.Send(ctx, send)
		}),
	},
	{
		name: "secret of another endpoint accepted", promises: []string{"unverified"}, within: 500,
		hooks: Hooks{Secrets: func(Seam, receive.Secrets) receive.Secrets { return secret.Fixed([]string{ourSecret, otherSecret}) }},
	},
	{
		name: "redriven pointer dropped", promises: []string{"unheard of"}, within: 2000,
		hooks: Hooks{ProcessLedger: func(_ Seam, l process.Ledger) process.Ledger { return &noRedrive{l} }},
	},
	{
		name: "batch handled backwards", promises: []string{"order"}, within: 1000,
		hooks: Hooks{Batch: func(payload []byte) []byte {
			var batch struct{ Records []json.RawMessage }
			if err := json.Unmarshal(payload, &batch); err != nil {
				return payload
			}
			slices.Reverse(batch.Records)
			turned, err := json.Marshal(batch)
			if err != nil {
				return payload
			}
			return turned
		}},
	},
	{
		name: "new idempotency key at every attempt", promises: []string{"idempotency"}, within: 6000,
		hooks: Hooks{Handler: func(_ Seam, h handler.Handler) handler.Handler {
			run := h.Run
			h.Run = func(ctx context.Context, e handler.Event) ([]handler.Effect, error) {
				e.Run = int(time.Now().UnixMilli())
				return run(ctx, e)
			}
			return h
		}},
	},
}

type settledAlready struct{ receive.Ledger }

func (l *settledAlready) Record(ctx context.Context, r ledger.Recording) (ledger.RecordResult, error) {
	found, err := l.Ledger.Record(ctx, r)
	if !found.New && found.Entry.Status == ledger.Recorded {
		found.Entry.Status = ledger.Done
	}
	return found, err
}

// noRedrive takes a pointer that comes back from the dead-letter queue for one too many.
type noRedrive struct{ process.Ledger }

func (*noRedrive) Replay(context.Context, ledger.Replaying) (ledger.Entry, error) {
	return ledger.Entry{}, ledger.ErrConflict
}

type newestGeneration struct {
	process.Ledger
	s Seam
}

func (l *newestGeneration) again(ctx context.Context, c ledger.Claim, err error, write func(ledger.Claim) error) error {
	if !errors.Is(err, ledger.ErrLeaseLost) {
		return err
	}
	entry, failed := l.s.Ledger.Get(ctx, c.Entry.Key)
	if failed != nil {
		return failed
	}
	c.Generation, c.Entry.Generation = entry.Generation, entry.Generation
	return write(c)
}

func (l *newestGeneration) Settle(ctx context.Context, c ledger.Claim, s ledger.Settlement) error {
	write := func(c ledger.Claim) error { return l.Ledger.Settle(ctx, c, s) }
	return l.again(ctx, c, write(c), write)
}

func (l *newestGeneration) Release(ctx context.Context, c ledger.Claim, r ledger.Releasing) error {
	write := func(c ledger.Claim) error { return l.Ledger.Release(ctx, c, r) }
	return l.again(ctx, c, write(c), write)
}

func (l *newestGeneration) Commit(ctx context.Context, c ledger.Claim, commit ledger.Commit) error {
	write := func(c ledger.Claim) error { return l.Ledger.Commit(ctx, c, commit) }
	return l.again(ctx, c, write(c), write)
}

// impatient takes a held entry for one whose lease has passed, by a clock that is an hour fast.
type impatient struct {
	process.Ledger
	fast *ledger.Store
}

func (l *impatient) Claim(ctx context.Context, c ledger.Claiming) (ledger.Claim, error) {
	claim, err := l.Ledger.Claim(ctx, c)
	if held := (*ledger.HeldError)(nil); !errors.As(err, &held) {
		return claim, err
	}
	suspect := (*ledger.SuspectError)(nil)
	if _, err = l.fast.Claim(ctx, c); errors.As(err, &suspect) {
		c.Suspect = &suspect.Entry
		return l.fast.Claim(ctx, c)
	}
	return claim, err
}

type shortLease struct{ process.Ledger }

func (l *shortLease) Claim(ctx context.Context, c ledger.Claiming) (ledger.Claim, error) {
	until := c.Until
	c.Until = time.Now().Add(3 * time.Second)
	claim, err := l.Ledger.Claim(ctx, c)
	claim.Until = until
	return claim, err
}

// forgetful knows only the attempts that ended by themselves.
type forgetful struct{ process.Ledger }

func (l *forgetful) Claim(ctx context.Context, c ledger.Claiming) (ledger.Claim, error) {
	claim, err := l.Ledger.Claim(ctx, c)
	claim.Entry.Attempts = 0
	for _, step := range claim.Entry.Steps {
		claim.Entry.Attempts += step.Attempts
	}
	return claim, err
}

type noUnclaim struct{ process.Ledger }

func (*noUnclaim) Unclaim(context.Context, ledger.Key, string) error { return nil }

// looseEffects writes the effects first and marks the step after.
type looseEffects struct {
	process.Ledger
	s Seam
}

func (l *looseEffects) Commit(ctx context.Context, c ledger.Claim, commit ledger.Commit) error {
	for _, w := range commit.Writes {
		if err := add(ctx, l.s, w); err != nil {
			return err
		}
	}
	commit.Writes = nil
	return l.Ledger.Commit(ctx, c, commit)
}

type chargesAll struct{ process.Ledger }

func (l *chargesAll) Release(ctx context.Context, c ledger.Claim, r ledger.Releasing) error {
	r.Charge = true
	return l.Ledger.Release(ctx, c, r)
}

// unsuspecting claims a suspect wherever it stands.
type unsuspecting struct{ process.Ledger }

func (l *unsuspecting) Claim(ctx context.Context, c ledger.Claiming) (ledger.Claim, error) {
	claim, err := l.Ledger.Claim(ctx, c)
	if suspect := (*ledger.SuspectError)(nil); errors.As(err, &suspect) {
		c.Suspect = &suspect.Entry
		return l.Ledger.Claim(ctx, c)
	}
	return claim, err
}

type lateDeadLetter struct {
	process.Queue
	s Seam
}

func (q *lateDeadLetter) SendDeadLetter(ctx context.Context, d queue.DeadLetter) error {
	q.s.Go(func() {
		select {
		case <-time.After(time.Second):
			_ = q.Queue.SendDeadLetter(context.WithoutCancel(ctx), d)
		case <-q.s.Life.Done():
		}
	})
	return nil
}

type headOnly struct{ process.Queue }

func (q *headOnly) ChangeVisibility(ctx context.Context, changes []queue.Visibility) error {
	if len(changes) > 0 && changes[0].After < 30*time.Second {
		changes = changes[:1]
	}
	return q.Queue.ChangeVisibility(ctx, changes)
}

// noReset leaves messages to the queue's own time-out, or to what the batch was hidden for.
type noReset struct{ process.Queue }

func (q *noReset) ChangeVisibility(ctx context.Context, changes []queue.Visibility) error {
	if len(changes) > 0 && changes[0].After < 30*time.Second {
		return nil
	}
	return q.Queue.ChangeVisibility(ctx, changes)
}

type firstPage struct{ reconcile.Ledger }

func (l *firstPage) Open(ctx context.Context, partition string, _ ledger.Cursor, limit int) ([]ledger.Open, ledger.Cursor, error) {
	open, _, err := l.Ledger.Open(ctx, partition, "", limit)
	return open, "", err
}

type nothingOpen struct{ reconcile.Ledger }

func (*nothingOpen) Open(context.Context, string, ledger.Cursor, int) ([]ledger.Open, ledger.Cursor, error) {
	return nil, "", nil
}

type neverPaused struct{ reconcile.Control }

func (c *neverPaused) Get(ctx context.Context, name string) (control.Value, error) {
	v, err := c.Control.Get(ctx, name)
	if name == reconcile.Paused {
		v.Text = ""
	}
	return v, err
}
