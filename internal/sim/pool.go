package sim

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awslocal/lambda"
	"backstop/internal/deadletter"
	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/process"
	"backstop/internal/reconcile"
	"backstop/internal/schema"
)

// Actors, by who they are.
const (
	firstProcessor = 10
	firstPoller    = 20
	theReconciler  = 30
	thePeople      = 31
)

// slot is one processor at a time behind an event source poller of its own, as Lambda runs as many as it polls with.
type slot struct {
	w         *world
	number    int
	process   *proc
	processor *process.Processor
	processes int
	batches   int
}

func (w *world) startPollers(ctx context.Context) error {
	for n := range w.profile.processors {
		s := &slot{w: w, number: n}
		mapping := w.newProcess(pollerKind, firstPoller+n, 0)
		poller, err := lambda.NewPoller(lambda.PollerOptions{
			SQS: mapping.sqs, Invoker: s, Function: processorKind, QueueURL: w.names.QueueURL, QueueARN: w.names.QueueARN,
			BatchSize: schema.BatchSize, Now: time.Now,
		})
		if err != nil {
			return err
		}
		w.running.Go(func() { s.poll(ctx, poller, mapping) })
	}
	return nil
}

// poll does round after round until ctx ends.
func (s *slot) poll(ctx context.Context, poller *lambda.Poller, mapping *proc) {
	w := s.w
	defer mapping.cancel()
	for ctx.Err() == nil {
		w.mu.Lock()
		paused := w.paused
		w.mu.Unlock()
		if !paused {
			if _, err := poller.Once(ctx); err == nil {
				continue
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	if s.process != nil {
		s.process.end("")
	}
}

// Invoke runs a batch in the slot's process, a new one if the last has died.
func (s *slot) Invoke(_ context.Context, _ string, payload []byte) (lambda.Response, error) {
	w := s.w
	if s.process == nil || s.process.abandonedOrEnded() {
		if err := s.start(); err != nil {
			return lambda.Response{}, err
		}
	}
	p := s.process
	s.batches++
	d := w.dice.about("batch", p.name).number(s.batches)
	freeze := w.freezes(p, d)
	// A frozen process's timers stand still, and so its deadline is that much later by the bubble's clock. Its leases
	// are by the wall clock, and end when they would have.
	s.processor.Timing.Lease = process.DefaultTiming().Lease - freeze
	if hook := w.Hooks.Batch; hook != nil {
		payload = hook(payload)
	}
	r := p.invoke(payload, schema.ProcessorTimeout, freeze, s.processor.Invoke)
	switch {
	case r.died:
		return lambda.Response{FunctionError: lambda.Unhandled}, nil
	case r.err != nil:
		return lambda.Response{FunctionError: lambda.Unhandled}, nil
	case w.loses(d):
		return lambda.Response{}, errors.New("the batch answer is lost")
	}
	w.handedBack(r.answer)
	return lambda.Response{Payload: r.answer}, nil
}

func (p *proc) abandonedOrEnded() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.abandoned || p.ended
}

// freezes decides whether the process freezes in its next batch, and for how long.
func (w *world) freezes(p *proc, d dice) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.calls, p.freezeAt, p.freezeFor = 0, 0, 0
	if w.calmed || !d.about("freeze").chance(w.profile.freezes) {
		return 0
	}
	p.freezeAt = 1 + d.about("freeze at").below(12)
	p.freezeFor = d.about("freeze for").between(35*time.Second, 4*time.Minute)
	return p.freezeFor
}

// loses decides whether the batch's answer is lost.
func (w *world) loses(d dice) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calmed || !d.about("answer").chance(w.profile.answers) {
		return false
	}
	w.report.Faults[faultAnswer]++
	return true
}

func (s *slot) start() error {
	w := s.w
	s.processes++
	p := w.newProcess(processorKind, firstProcessor+s.number, s.processes)
	s.process = p
	var store process.Ledger = p.ledger
	if hook := w.Hooks.ProcessLedger; hook != nil {
		store = hook(w.seam(p), store)
	}
	var doorbell process.Queue = p.queue
	if hook := w.Hooks.ProcessQueue; hook != nil {
		doorbell = hook(w.seam(p), doorbell)
	}
	var err error
	s.processor, err = process.New(process.Config{
		Ledger: store, Queue: doorbell, Projector: p.projector(), Registry: w.handlers(p),
		Breakers: handler.NewBreakers(time.Now), Log: p.log, Now: time.Now, Random: p.random,
		Exit:     func() { p.end("a handler was still running when the answer was due"); p.stop() },
		Parallel: w.profile.parallel,
	})
	return err
}

// startSweeps starts the schedule of the sweep.
func (w *world) startSweeps(ctx context.Context) {
	w.running.Go(func() {
		var p *proc
		var whole *reconcile.Reconciler
		for n := 1; ; n++ {
			select {
			case <-time.After(time.Until(w.start.Add(time.Since(w.start).Truncate(time.Minute) + time.Minute).Add(theReconciler * slice))):
			case <-ctx.Done():
				if p != nil {
					p.end("")
				}
				return
			}
			if p == nil || !p.isAlive() {
				p = w.newProcess(reconcilerKind, theReconciler, n)
				whole = w.reconciler(p)
			}
			p.invoke(nil, schema.ReconcilerTimeout, 0, func(ctx context.Context, _ []byte) ([]byte, error) {
				if n%wholeRun == 0 {
					return whole.Invoke(ctx, []byte(`{"task":"sweep"}`))
				}
				began := time.Now()
				swept, err := whole.Sweeper.Run(ctx)
				w.swept(began, swept, err)
				return nil, err
			})
		}
	})
}

// sweepPage is how many entries a page of the sweep has here, so that a few dozen are several pages.
const sweepPage = 3

// wholeRun is every how many sweeps the figures are counted and the dead-letter queue is tidied, too: both are many
// calls, and change nothing for events.
const wholeRun = 5

func (w *world) reconciler(p *proc) *reconcile.Reconciler {
	var store reconcile.Ledger = pagedLedger{p.ledger}
	if hook := w.Hooks.SweepLedger; hook != nil {
		store = hook(w.seam(p), store)
	}
	var values reconcile.Control = p.control()
	if hook := w.Hooks.SweepControl; hook != nil {
		values = hook(w.seam(p), values)
	}
	return &reconcile.Reconciler{
		Sweeper: &reconcile.Sweeper{Ledger: store, Queue: p.queue, Control: values, Now: time.Now},
		Counter: p.ledger,
		Tidier:  w.tidier(p.sqs, p.ledger),
		Log:     p.log,
	}
}

func (w *world) tidier(client *sqs.Client, store *ledger.Store) *reconcile.Tidier {
	return &reconcile.Tidier{Queue: deadletter.New(client, w.names.DeadLetterURL), Ledger: store, Now: time.Now}
}
