package cases

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/events"
	"backstop/internal/awsclient"
	"backstop/internal/awslocal"
	"backstop/internal/billing"
	"backstop/internal/billing/ledgerbody"
	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/process"
	"backstop/internal/projection"
	"backstop/internal/queue"
	"backstop/internal/receive"
	"backstop/internal/schema"
	"backstop/internal/secret"
	"backstop/internal/stripeapi"
	"backstop/internal/telemetry"
)

// Kinds of processes.
const (
	receiver   = "receiver"
	processor  = "processor"
	reconciler = "reconciler"
)

// tryTimeout is what package awsclient gives one try.
const tryTimeout = 3 * time.Second

var errDied = errors.New("the process died")

// proc is one process of a function. It has a wire of its own, so that its death ends it between two calls.
type proc struct {
	w      *world
	kind   string
	life   context.Context
	cancel context.CancelFunc
	cfg    aws.Config
	log    *logWriter
	run    func(context.Context, []byte) ([]byte, error)

	// Guarded by the world's lock.
	faults  []*fault
	dead    bool
	batch   string
	stalled chan struct{} // closed when it stalls
}

func (w *world) newProc(kind string) *proc {
	p := &proc{w: w, kind: kind, log: &logWriter{w: w}, stalled: make(chan struct{})}
	p.life, p.cancel = context.WithCancel(w.ctx)
	transport := &awslocal.Transport{Server: w.server, Caller: kind, Intercept: p.intercept}
	p.cfg = awslocal.Config(transport)
	p.cfg.HTTPClient = &http.Client{Transport: cancelling{p, transport}, Timeout: tryTimeout}
	p.cfg.Retryer = awsclient.Retryer(func() float64 { return 0.5 })
	return p
}

func (p *proc) newLog() *telemetry.Log { return telemetry.New(p.log, "test", time.Now) }

func (p *proc) newLedger() *ledger.Store {
	return ledger.New(dynamodb.NewFromConfig(p.cfg), p.w.names.LedgerTable, time.Now, ledger.WithCodec(codec()))
}

func (p *proc) newQueue() *queue.SQS {
	return queue.New(awssqs.NewFromConfig(p.cfg), p.w.names.QueueURL, p.w.names.DeadLetterURL)
}

// die ends the process and the goroutine that calls it.
func (p *proc) die() {
	p.end()
	runtime.Goexit()
}

func (p *proc) end() {
	p.w.mu.Lock()
	p.dead, p.w.crashed = true, true
	p.w.mu.Unlock()
	p.cancel()
}

func (p *proc) isDead() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.dead
}

// invoke runs one invocation with a deadline, at which the process is ended.
func (p *proc) invoke(payload []byte, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.life, timeout)
	var answer []byte
	err := errDied // should run not return
	done := make(chan struct{})
	p.w.going.Go(func() {
		defer close(done)
		defer cancel()
		answer, err = p.run(context.WithValue(ctx, invocationKey{}, &invocation{p: p, decided: map[string]*fault{}}), payload)
	})
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-p.life.Done():
		return nil, errDied
	case <-timer.C:
		p.end()
		return nil, errDied
	}
	if p.isDead() || errors.Is(err, errDied) {
		p.end()
		return nil, errDied
	}
	return answer, err
}

// invocation is what the handlers of one invocation know of each other.
type invocation struct {
	p       *proc
	decided map[string]*fault // at the start of an event's handlers, by its key; guarded by the world's lock
}

type invocationKey struct{}

// start is the point before an event's handlers. The first of them in an attempt, whichever that is, meets the fault;
// the others meet it again, unless it takes time.
func (w *world) start(ctx context.Context, e handler.Event) error {
	v, _ := ctx.Value(invocationKey{}).(*invocation)
	if v == nil {
		return errors.New("the handler's context does not come from its process")
	}
	w.mu.Lock()
	f, again := v.decided[e.Key]
	if !again {
		f = v.p.take(e.ID, func(f *fault) bool {
			return (f.Point == "before_effect" || f.Point == "after_claim_before_effect") && !onTransaction[f.Kind] && f.Kind != "timeout_after_commit"
		})
		v.decided[e.Key] = f
	}
	w.mu.Unlock()
	if f == nil || again && f.Kind != "error" && f.Kind != "throttle" && f.Kind != "panic" {
		return nil
	}
	return w.strike(v.p, f)
}

// newReceiver is one delivery's receiver. Instances share nothing but what a warm process keeps: the secrets.
func (w *world) newReceiver(instance int, faults []*fault) *proc {
	p := w.newProc(receiver)
	p.faults = faults
	w.mu.Lock()
	if w.instances[instance] == nil {
		keeper := w.newProc(receiver) // its wire counts the reads
		w.instances[instance] = secret.New(secret.NewManager(secretsmanager.NewFromConfig(keeper.cfg), signingSecret), time.Now)
	}
	secrets := w.instances[instance]
	w.mu.Unlock()
	r := receive.New(receive.Config{
		Ledger: p.newLedger(), Queue: p.newQueue(), Secrets: secrets, Log: p.newLog(), Now: time.Now, Token: rand.Text,
		Release: "test",
	})
	p.run = r.Invoke
	return p
}

func (w *world) newProcessor() (*proc, error) {
	p := w.newProc(processor)
	entries, rows := p.newLedger(), projection.New(dynamodb.NewFromConfig(p.cfg))
	registry := w.registry(billing.Config{
		Table: w.names.BillingTable, Rows: rows, Bodies: ledgerbody.New(entries),
		Stripe: stripeapi.New(stripeapi.Config{URL: "https://stripe.test", Key: w.stripeKey, HTTP: &http.Client{Transport: &stripeStub{p: p}}}),
	})
	worker, err := process.New(process.Config{
		Ledger: entries, Queue: p.newQueue(), Projector: rows, Registry: registry, Breakers: handler.NewBreakers(time.Now),
		Log: p.newLog(), Mode: w.mode(), Now: time.Now, Random: func() float64 { return 0.5 }, Exit: p.die,
		Budget: w.variant.Queue.MaxReceiveCount,
	})
	if err != nil {
		return nil, err
	}
	p.run = worker.Invoke
	return p, nil
}

// current is the processor that takes the next batch: the same as before unless it died.
func (w *world) current() (*proc, error) {
	if w.worker == nil || w.worker.isDead() {
		var faults []*fault
		if w.worker != nil {
			faults = w.worker.faults
		}
		p, err := w.newProcessor()
		if err != nil {
			return nil, err
		}
		p.faults = faults
		w.worker = p
	}
	return w.worker, nil
}

// invokeProcessor is what the event source calls.
func (w *world) invokeProcessor(_ context.Context, payload []byte) ([]byte, error) {
	p, err := w.current()
	if err != nil {
		return nil, err
	}
	answer, err := p.invoke(payload, schema.ProcessorTimeout)
	return answer, errors.Join(err, w.watch())
}

// registry holds the sink and the billing handlers, for every type.
func (w *world) registry(config billing.Config) *handler.Registry {
	var r, defaults handler.Registry
	billing.Register(&defaults, config)
	types := defaults.Types()
	for _, t := range events.Types() {
		if !t.Thin && len(defaults.For(t.Name)) == 0 {
			types = append(types, t.Name)
		}
	}
	for _, typ := range types {
		handler.On(&r, typ, sinkName, w.sink)
		for _, h := range defaults.For(typ) {
			handler.On(&r, typ, h.Name, func(ctx context.Context, e handler.Event, _ *json.RawMessage) ([]handler.Effect, error) {
				if err := w.start(ctx, e); err != nil {
					return nil, err
				}
				return h.Run(ctx, e)
			}, handler.Needs(h.Needs...))
		}
	}
	return &r
}

const (
	sinkName  = "sink"
	sinkCount = "n"
)

func sinkKey(eventKey string) map[string]string {
	return map[string]string{schema.PK: "sink#" + eventKey, schema.SK: sinkName}
}

// sink counts its effect, and notes that it was called.
func (w *world) sink(ctx context.Context, e handler.Event, _ *json.RawMessage) ([]handler.Effect, error) {
	w.mu.Lock()
	c := call{key: e.Key, event: e.ID, idem: e.IdempotencyKey("sink")}
	if v, ok := ctx.Value(invocationKey{}).(*invocation); ok {
		c.batch = v.p.batch
	}
	w.calls = append(w.calls, c)
	w.mu.Unlock()
	if err := w.start(ctx, e); err != nil {
		return nil, err
	}
	return []handler.Effect{handler.Once{Table: w.names.BillingTable, Key: sinkKey(e.Key), Add: map[string]int64{sinkCount: 1}}}, nil
}

// strike makes a fault at the start of a handler happen.
func (w *world) strike(p *proc, f *fault) error {
	switch f.Kind {
	case "error":
		return errors.New("an injected error")
	case "throttle":
		return &handler.StatusError{Status: http.StatusTooManyRequests}
	case "crash":
		p.die()
	case "panic":
		panic("an injected panic")
	case "hang":
		<-p.life.Done()
		runtime.Goexit()
	case "hang_then_error":
		time.Sleep(f.duration(3 * time.Second))
		return errors.New("an injected error, late")
	case "stall_until":
		p.stall(f)
	}
	return nil
}

// stall holds the goroutine until it is resumed, or for the time the fault says.
func (p *proc) stall(f *fault) {
	w := p.w
	w.mu.Lock()
	select {
	case <-p.stalled:
	default:
		close(p.stalled)
	}
	resume := w.resume
	w.mu.Unlock()
	var timeout <-chan time.Time
	if d := f.duration(0); d > 0 {
		timeout = time.After(d)
	}
	select {
	case <-resume:
	case <-timeout:
	case <-w.ctx.Done():
	}
	p.stopIfDead()
}

func (p *proc) stopIfDead() {
	if p.isDead() {
		runtime.Goexit()
	}
}

// duration is how long a fault lasts.
func (f *fault) duration(otherwise time.Duration) time.Duration {
	if f.Seconds > 0 {
		return time.Duration(f.Seconds * float64(time.Second))
	}
	var at int64
	if json.Unmarshal(f.Until, &at) == nil && at > 0 {
		return time.Until(time.Unix(at, 0))
	}
	return otherwise
}

func (w *world) stripeKey(context.Context) (string, error) {
	if w.variant.StripeAPI == nil {
		return "", nil
	}
	return "rk_test_fake", nil
}
