package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awslocal"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/telemetry"
)

// proc is one process of a function, or of a service that calls AWS for us. It has its own wire, so that its death
// ends it between two calls: whoever of its goroutines calls after that does not come back.
type proc struct {
	w     *world
	kind  string
	name  string
	actor int // its share of each millisecond

	life   context.Context
	cancel context.CancelFunc

	db     *dynamodb.Client
	sqs    *sqs.Client
	ledger *ledger.Store
	queue  *queue.SQS
	log    *telemetry.Log

	// Guarded by the world's lock.
	ended      bool
	abandoned  bool // Lambda gave up on it, and it goes on
	freezeAt   int  // the call at which it freezes; 0: none
	freezeFor  time.Duration
	thaw       time.Time
	overtaken  chan struct{} // closed when another takes over what it works on
	calls      int
	dieAfter   map[*awslocal.Call]bool
	generation int
}

// Kinds of processes.
const (
	receiverKind   = "receiver"
	processorKind  = "processor"
	reconcilerKind = "reconciler"
	pollerKind     = "poller"
)

// actors are who may call in one millisecond; each has a slice of it.
const (
	actors = 50
	slice  = time.Millisecond / actors
)

// tryTimeout is what package awsclient gives one try.
const tryTimeout = 3 * time.Second

func (w *world) newProcess(kind string, actor, generation int) *proc {
	p := &proc{w: w, kind: kind, name: fmt.Sprintf("%s-%d.%d", kind, actor, generation), actor: actor, generation: generation}
	p.dieAfter = make(map[*awslocal.Call]bool)
	p.life, p.cancel = context.WithCancel(w.life)
	w.mu.Lock()
	w.processes[p.name] = p
	w.mu.Unlock()
	timeout := tryTimeout
	if kind == pollerKind {
		timeout = 0 // it waits 20 s for messages
	}
	p.connect(p.wire(timeout))
	return p
}

// wire is the configuration of the process's SDK clients.
func (p *proc) wire(timeout time.Duration) aws.Config {
	w := p.w
	transport := &awslocal.Transport{Server: w.server, Caller: p.name, Intercept: p.intercept}
	cfg := awslocal.Config(transport)
	cfg.Retryer = retryer(p.random)
	var wire http.RoundTripper = transport
	if w.Hooks.Wire != nil && p.kind != pollerKind {
		wire = w.Hooks.Wire(w.seam(p), wire)
	}
	cfg.HTTPClient = &http.Client{Transport: wire, Timeout: timeout}
	return cfg
}

func (p *proc) connect(cfg aws.Config) {
	w := p.w
	p.sqs = sqs.NewFromConfig(cfg)
	p.queue = queue.New(p.sqs, w.names.QueueURL, w.names.DeadLetterURL)
	if p.kind == pollerKind {
		return
	}
	p.db = dynamodb.NewFromConfig(cfg)
	p.ledger = ledger.New(p.db, w.names.LedgerTable, time.Now, ledger.WithCodec(w.Codec))
	p.log = telemetry.New(lineWriter{p}, "sim", time.Now, slog.String("process", p.name))
}

// random draws for the process. Two draws of one moment are the same, whoever draws first.
func (p *proc) random() float64 {
	return p.w.dice.about("random", p.name).at(time.Now()).share()
}

// spawn starts a goroutine of the process.
func (p *proc) spawn(f func()) { p.w.running.Go(f) }

// end is the process's death: nothing of it happens any more.
func (p *proc) end(why string) {
	w := p.w
	w.mu.Lock()
	first := !p.ended
	p.ended = true
	w.mu.Unlock()
	p.cancel()
	if first {
		w.died(p, why)
	}
}

// stop ends the calling goroutine if the process has died.
func (p *proc) stop() {
	w := p.w
	w.mu.Lock()
	ended := p.ended
	w.mu.Unlock()
	if ended {
		runtime.Goexit()
	}
}

func (p *proc) isAlive() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return !p.ended
}

// result is what an invocation came to.
type result struct {
	answer []byte
	err    error
	died   bool
}

// invoke runs one invocation as Lambda does: with a deadline, at which the process is ended, unless it is frozen then.
// One that is to freeze sees its deadline later by as much.
func (p *proc) invoke(payload []byte, timeout, freeze time.Duration, f func(context.Context, []byte) ([]byte, error)) result {
	ctx, cancel := context.WithTimeout(p.life, timeout+freeze)
	var r result
	done := make(chan struct{})
	p.spawn(func() {
		defer close(done)
		defer cancel()
		r.died = true // should f not return
		answer, err := f(ctx, payload)
		r = result{answer, err, false}
		if !p.isAlive() {
			r = result{died: true}
		}
	})
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		if r.died {
			p.end("a goroutine ended the process")
		}
		return r
	case <-p.life.Done():
		return result{died: true}
	case <-timer.C:
	}
	w := p.w
	w.mu.Lock()
	frozen := p.thaw.After(time.Now())
	p.abandoned = frozen
	w.mu.Unlock()
	if frozen {
		w.note(p.name, "", "Lambda gives up on the frozen process")
		p.spawn(func() {
			<-done
			p.end("thawed, and came to its end")
		})
	} else {
		p.end("it was still running at its deadline")
	}
	return result{died: true}
}

// align waits until a moment that is this call's alone.
func (p *proc) align(d dice) {
	now := time.Now()
	at := now.Truncate(time.Millisecond).
		Add(time.Duration(1+d.about("latency").below(6)) * time.Millisecond).
		Add(time.Duration(p.actor) * slice).
		Add(time.Duration(d.about("offset").below(int(slice))))
	time.Sleep(at.Sub(now))
}

// lineWriter takes the process's log lines.
type lineWriter struct{ p *proc }

func (l lineWriter) Write(line []byte) (int, error) {
	var fields struct {
		Msg, Outcome, Event, Group, Reason, Class string
		Again                                     int64  `json:"again_in_ms"`
		Took                                      int64  `json:"took_ms"`
		EventID                                   string `json:"event_id"`
	}
	if json.Unmarshal(line, &fields) != nil {
		return len(line), nil
	}
	w := l.p.w
	if w.Trace {
		about := fields.Event
		if fields.EventID != "" {
			about = "stripe#-#" + fields.EventID
		}
		w.note(l.p.name, about, "logs "+string(bytes.TrimSpace(line)))
	}
	w.outcome(fields.Msg, fields.Outcome, fields.Reason)
	if fields.Msg == "attempt" && fields.Group != "" {
		w.attempted(l.p, fields.Group, fields.Outcome, time.Duration(fields.Took)*time.Millisecond, time.Duration(fields.Again)*time.Millisecond)
	}
	return len(line), nil
}
