package lambda

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// SQS is what a [Poller] needs of a queue; *sqs.Client has it.
type SQS interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// PollerOptions configure a [Poller]. SQS, Invoker, Function, QueueURL and
// QueueARN are required.
type PollerOptions struct {
	SQS      SQS
	Invoker  Invoker
	Function string
	QueueURL string
	QueueARN string
	// Region is told to the function. Default us-east-1.
	Region string
	// BatchSize is how many messages one invocation gets. Default 10, which
	// is also the most for a FIFO queue.
	BatchSize int
	// MaximumConcurrency is how many batches are in flight at once, 2 to 1000
	// as in AWS. Default 2.
	MaximumConcurrency int
	// WaitTime is the long poll, in whole seconds up to 20. Default 20 s.
	// Disabling waits for a poll under way, so a shorter one pauses sooner.
	WaitTime time.Duration
	// Drain is how long batches in flight may go on after Run's context
	// ended. Default none: they are abandoned, their messages come back.
	Drain time.Duration
	// OnError hears what went wrong with a batch or a receive. It may be
	// called from several goroutines and must not hold up. Default: nothing.
	OnError func(error)
	// Now stamps changes of state. Default time.Now.
	Now func() time.Time
}

// Poller is an event source mapping: it reads one queue and invokes one
// function with batches, with ReportBatchItemFailures. It starts out enabled.
type Poller struct {
	opts PollerOptions
	uuid string

	mu       sync.Mutex
	enabled  bool
	busy     int           // receives and batches under way
	changed  chan struct{} // closed and replaced when enabled changes
	modified time.Time
}

// receivePause is the wait after a failed receive.
const receivePause = time.Second

// NewPoller checks the options; Run does the work.
func NewPoller(opts PollerOptions) (*Poller, error) {
	if opts.Region == "" {
		opts.Region = "us-east-1"
	}
	if opts.BatchSize == 0 {
		opts.BatchSize = 10
	}
	if opts.MaximumConcurrency == 0 {
		opts.MaximumConcurrency = 2
	}
	if opts.WaitTime == 0 {
		opts.WaitTime = 20 * time.Second
	}
	if opts.OnError == nil {
		opts.OnError = func(error) {}
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	var problems []error
	if opts.SQS == nil || opts.Invoker == nil || opts.Function == "" || opts.QueueURL == "" || opts.QueueARN == "" {
		problems = append(problems, errors.New("queue client, queue, invoker and function are required"))
	}
	if opts.BatchSize < 1 || opts.BatchSize > 10 {
		problems = append(problems, fmt.Errorf("batch size %d is not in 1..10", opts.BatchSize))
	}
	if opts.MaximumConcurrency < 2 || opts.MaximumConcurrency > 1000 {
		problems = append(problems, fmt.Errorf("maximum concurrency %d is not in 2..1000", opts.MaximumConcurrency))
	}
	if opts.WaitTime < 0 || opts.WaitTime > 20*time.Second || opts.WaitTime%time.Second != 0 {
		problems = append(problems, fmt.Errorf("wait time %s is not whole seconds up to 20 s", opts.WaitTime))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configuring the event source mapping: %w", err)
	}
	// The same mapping keeps its id over restarts, so that scripts may keep it.
	sum := sha256.Sum256([]byte(opts.Function + "\n" + opts.QueueARN))
	return &Poller{
		opts: opts, uuid: uuidString([16]byte(sum[:16])),
		enabled: true, changed: make(chan struct{}), modified: opts.Now(),
	}, nil
}

// UUID identifies the mapping in the control plane.
func (p *Poller) UUID() string { return p.uuid }

// SetEnabled resumes or pauses the mapping. A pause lets what is under way
// finish; until then State says Disabling.
func (p *Poller) SetEnabled(enabled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.enabled == enabled {
		return
	}
	p.enabled, p.modified = enabled, p.opts.Now()
	close(p.changed)
	p.changed = make(chan struct{})
}

// State is Enabled, Disabling or Disabled, as the Lambda API names them.
func (p *Poller) State() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.enabled:
		return "Enabled"
	case p.busy > 0:
		return "Disabling"
	}
	return "Disabled"
}

// begin waits until the mapping is enabled and counts a receive as under way.
func (p *Poller) begin(ctx context.Context) error {
	for {
		p.mu.Lock()
		enabled, changed := p.enabled, p.changed
		if enabled && ctx.Err() == nil {
			p.busy++
		}
		p.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return err
		}
		if enabled {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (p *Poller) end() {
	p.mu.Lock()
	p.busy--
	p.mu.Unlock()
}

// Run polls until ctx ends, and returns when nothing it started is left. One
// receive is under way at a time, begun only when a batch may start.
func (p *Poller) Run(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	slots := make(chan struct{}, p.opts.MaximumConcurrency)
	var batches sync.WaitGroup
	defer p.drain(&batches, cancel)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if p.begin(ctx) != nil {
			return
		}
		messages, err := p.receive(ctx)
		if err != nil || len(messages) == 0 {
			p.end()
			<-slots
			if err != nil && !p.pause(ctx, err) {
				return
			}
			continue
		}
		batches.Go(func() {
			defer func() { <-slots }()
			defer p.end()
			if err := p.deliver(work, messages); err != nil {
				p.opts.OnError(err)
			}
		})
	}
}

// drain lets batches in flight go on for a while, then abandons them.
func (p *Poller) drain(batches *sync.WaitGroup, abandon context.CancelFunc) {
	if p.opts.Drain > 0 {
		timer := time.AfterFunc(p.opts.Drain, abandon)
		defer timer.Stop()
	} else {
		abandon()
	}
	batches.Wait()
}

// pause waits after a failed receive; false means that ctx ended.
func (p *Poller) pause(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	p.opts.OnError(err)
	timer := time.NewTimer(receivePause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Once does one round: receive a batch, invoke, delete what succeeded. It
// returns how many messages it received, for callers that drive the rounds
// themselves; it takes no notice of SetEnabled.
func (p *Poller) Once(ctx context.Context) (int, error) {
	messages, err := p.receive(ctx)
	if err != nil || len(messages) == 0 {
		return 0, err
	}
	return len(messages), p.deliver(ctx, messages)
}

func (p *Poller) receive(ctx context.Context) ([]types.Message, error) {
	out, err := p.opts.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    &p.opts.QueueURL,
		MaxNumberOfMessages:         int32(p.opts.BatchSize),
		WaitTimeSeconds:             int32(p.opts.WaitTime / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		return nil, fmt.Errorf("receiving for %s: %w", p.opts.Function, err)
	}
	return out.Messages, nil
}

func (p *Poller) deliver(ctx context.Context, messages []types.Message) error {
	payload, err := newSQSEvent(messages, p.opts.QueueARN, p.opts.Region)
	if err != nil {
		return err
	}
	resp, err := p.opts.Invoker.Invoke(ctx, p.opts.Function, payload)
	if err != nil {
		return fmt.Errorf("invoking %s with a batch of %d: %w", p.opts.Function, len(messages), err)
	}
	done, failure := succeeded(messages, resp)
	if failure != nil {
		failure = fmt.Errorf("batch of %d for %s comes back: %w", len(messages), p.opts.Function, failure)
	}
	return errors.Join(failure, p.delete(ctx, done))
}

func (p *Poller) delete(ctx context.Context, messages []types.Message) error {
	if len(messages) == 0 {
		return nil
	}
	entries := make([]types.DeleteMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
	}
	out, err := p.opts.SQS.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &p.opts.QueueURL, Entries: entries})
	if err != nil {
		return fmt.Errorf("deleting a batch of %s: %w", p.opts.Function, err)
	}
	if n := len(out.Failed); n > 0 {
		return fmt.Errorf("deleting a batch of %s: %d of %d refused, first with %s",
			p.opts.Function, n, len(messages), aws.ToString(out.Failed[0].Code))
	}
	return nil
}
