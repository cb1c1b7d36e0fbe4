package process

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"backstop/internal/queue"
	"backstop/internal/schema"
	"backstop/internal/sqsbatch"
)

// batch is one invocation.
type batch struct {
	*Processor
	messages []sqsbatch.Message

	start   context.Context // ends when nothing is started any more
	handler context.Context // of handlers and their effects
	write   context.Context // of everything else; ends when the answer is due
	due     <-chan struct{}
	cancel  context.CancelFunc
	until   time.Time // of its leases, by the injected clock

	mu   sync.Mutex
	kept map[string]bool // message ids that stay in the queue
	open map[string]bool // message ids nothing is decided about yet
	busy map[string]bool // groups an event of which is under way
}

func newBatch(ctx context.Context, p *Processor, messages []sqsbatch.Message) *batch {
	// A context's deadline is on the runtime's clock, which need not be the injected one: only the distance is used.
	left := schema.ProcessorTimeout
	deadline, ok := ctx.Deadline()
	if ok {
		left = time.Until(deadline)
	}
	b := &batch{
		Processor: p,
		messages:  messages,
		until:     p.Now().Add(left + p.Timing.Lease),
		kept:      make(map[string]bool),
		open:      make(map[string]bool, len(messages)),
		busy:      make(map[string]bool),
	}
	var cancels []context.CancelFunc
	before := func(d time.Duration) context.Context {
		c, cancel := context.WithTimeout(ctx, left-d)
		cancels = append(cancels, cancel)
		return c
	}
	b.start, b.handler, b.write = before(p.Timing.Start), before(p.Timing.Handler), before(p.Timing.Answer)
	b.due = b.write.Done()
	b.cancel = func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
	for _, m := range messages {
		b.open[m.ID] = true
	}
	return b
}

// group is the messages of one group, in order.
type group []sqsbatch.Message

func (b *batch) groups() []group {
	index := make(map[string]int)
	var groups []group
	for _, m := range b.messages {
		i, known := index[m.Group]
		if !known {
			i = len(groups)
			index[m.Group] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

// holdTimeout bounds the one call of hold: a queue in trouble must not eat the batch's time.
const holdTimeout = time.Second

// hold shortens the time SQS hides the batch's messages to what this invocation can take. The queue's own time-out is
// six times that, for a function that is throttled and not yet running; left at it, the customers of a process that
// is killed would wait for its end, minutes after the leases have run out. Should the call fail, they do.
func (b *batch) hold() {
	ctx, cancel := context.WithTimeout(b.write, holdTimeout)
	defer cancel()
	changes := make([]queue.Visibility, len(b.messages))
	for i, m := range b.messages {
		changes[i] = queue.Visibility{Receipt: m.Receipt, After: b.until.Sub(b.Now()) + time.Second}
	}
	if err := b.Queue.ChangeVisibility(ctx, changes); err != nil && len(b.messages) > 0 {
		b.logVisibility(b.messages[0], err)
	}
}

func (b *batch) run() {
	b.hold() // first and not beside the work: it must not undo a handBack
	groups := b.groups()
	rests := make([]group, len(groups)) // of groups that came to a suspect
	var running errgroup.Group
	running.SetLimit(b.Parallel)
	for i, g := range groups {
		running.Go(func() error {
			rests[i] = b.walk(g, false)
			return nil
		})
	}
	_ = running.Wait() // walk reports into the batch, not by an error

	suspects := slices.DeleteFunc(rests, func(g group) bool { return len(g) == 0 })
	for len(suspects) > 0 {
		i := min(int(b.Random()*float64(len(suspects))), len(suspects)-1)
		b.walk(suspects[i], true)
		suspects = slices.Delete(suspects, i, i+1)
	}
}

// walk handles a group in order. It stops at the first event that is not settled and hands the rest back; at a
// suspect, unless alone, it stops and returns the rest for its own turn.
func (b *batch) walk(g group, alone bool) (suspect group) {
	b.setBusy(g[0].Group, true)
	defer b.setBusy(g[0].Group, false)
	for i, m := range g {
		switch v := b.message(m, len(g)-i-1, alone); v.kind {
		case letGo:
			b.decide(m.ID, false)
		case waitTurn:
			return g[i:]
		case handBack:
			b.handBack(g[i:], v.after)
			return nil
		}
	}
	return nil
}

// verdict is what happens with a message.
type verdict struct {
	kind  kind
	after time.Duration // of handBack
}

type kind int

const (
	letGo    kind = iota + 1 // SQS deletes it
	handBack                 // SQS shows it again, with its followers
	waitTurn                 // it is a suspect's
)

func back(after time.Duration) verdict { return verdict{handBack, after} }

// handBack keeps messages in the queue and says when SQS shows them again. Should that fail, they come back by the
// queue's own timeout.
func (b *batch) handBack(messages []sqsbatch.Message, after time.Duration) {
	changes := make([]queue.Visibility, len(messages))
	for i, m := range messages {
		changes[i] = queue.Visibility{Receipt: m.Receipt, After: max(after, time.Second)}
		b.decide(m.ID, true)
	}
	if err := b.Queue.ChangeVisibility(b.write, changes); err != nil {
		b.logVisibility(messages[0], err)
	}
}

func (b *batch) setBusy(group string, busy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy[group] = busy
}

func (b *batch) decide(id string, kept bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, id)
	if kept {
		b.kept[id] = true
	}
}

// failed returns the ids to report, in the batch's order. What nothing was decided about stays.
func (b *batch) failed() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := []string{}
	for _, m := range b.messages {
		if b.kept[m.ID] || b.open[m.ID] {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// exit ends the process. Without an answer SQS would keep every message of the batch for its full time-out, and
// their groups with them, so they are shown again first: at once where they are settled or untouched, after the
// lease where a handler hangs.
func (b *batch) exit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.Timing.Answer/2)
	defer cancel()
	b.mu.Lock()
	stuck := 0
	var changes []queue.Visibility
	for _, m := range b.messages {
		switch {
		case b.open[m.ID] && b.busy[m.Group]:
			stuck++
			changes = append(changes, queue.Visibility{Receipt: m.Receipt, After: b.until.Sub(b.Now()) + time.Second})
		case !b.kept[m.ID]: // settled or untouched; those kept have their visibility
			changes = append(changes, queue.Visibility{Receipt: m.Receipt})
		}
	}
	b.mu.Unlock()
	err := b.Queue.ChangeVisibility(ctx, changes)
	b.logExit(ctx, stuck, err)
	b.Exit()
}
