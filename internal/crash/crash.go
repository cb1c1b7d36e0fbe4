package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/time/rate"

	"backstop/events"
	"backstop/internal/event"
	"backstop/internal/laptop"
	"backstop/internal/ledger"
	"backstop/internal/projection"
	"backstop/internal/sender"
	"backstop/internal/tally"
)

// types are what customers' events are of: all have a customer, and each its own kind of row.
var types = []string{"invoice.paid", "customer.subscription.updated", "charge.refunded", "payment_intent.succeeded", "customer.updated"}

// Options say how hard it is. All are required but Log.
type Options struct {
	Binaries string // the folder laptop.Build wrote to

	Customers int
	Events    int           // of each customer
	Rate      float64       // first deliveries a second, of all customers
	Load      time.Duration // the longest the load may take; what was not sent by then is not
	Patience  time.Duration // the longest to wait for what is not settled

	Every     time.Duration // between two kills
	Kills     int           // of one process
	KillsAll  int           // of all processes at once, spread among the others
	Processes int           // of the receiver, and of the processor
	Hidden    time.Duration // the queue's visibility time-out; 0: as deployed

	Seed uint64
	Out  io.Writer         // progress
	Log  func(line string) // every line the functions write
}

// retries outlasts any outage of a run: the backoff ends at 3.2 s.
const retries = 60

// duplicates is the share of events that are delivered twice.
const duplicates = 0.05

// Run plays one run. The error says why it could not be played to its end; what went wrong with the events is in the
// Result.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	random := rand.New(rand.NewPCG(o.Seed, 1))
	chains, err := makeChains(o, random)
	if err != nil {
		return Result{}, err
	}
	witness := newWitness()
	l, err := laptop.Start(ctx, laptop.Options{
		Binaries: o.Binaries, Receivers: o.Processes, Processors: o.Processes, SweepEvery: 5 * time.Second,
		Observe: witness.observe, Log: func(function, line string) { o.Log(function + " " + line) },
	})
	if err != nil {
		return Result{}, fmt.Errorf("start the laptop: %w", err)
	}
	var r Result
	if err = hide(ctx, l, o.Hidden); err == nil {
		r, err = play(ctx, l, o, chains, random)
	}
	if err == nil {
		err = count(ctx, l, o, &r, chains, witness)
	}
	return r, errors.Join(err, l.Close())
}

// hide sets how long the queue hides a message whose processor was killed before its first call.
func hide(ctx context.Context, l *laptop.Laptop, d time.Duration) error {
	if d == 0 {
		return nil
	}
	_, err := sqs.NewFromConfig(l.AWS).SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl: &l.Names.QueueURL, Attributes: map[string]string{"VisibilityTimeout": strconv.Itoa(int(d.Seconds()))}})
	if err != nil {
		return fmt.Errorf("set the queue's visibility time-out: %w", err)
	}
	return nil
}

// makeChains makes each customer's events, in their order.
func makeChains(o Options, random *rand.Rand) ([][]sender.Event, error) {
	chains := make([][]sender.Event, o.Customers)
	now := time.Now()
	for i := range chains {
		for n := range o.Events {
			sample, err := events.Sample(types[(i+n)%len(types)])
			if err != nil {
				return nil, err
			}
			body, err := events.Fresh(sample, events.FreshOptions{Now: now, Customer: fmt.Sprintf("cus_Crash%05d", i), Rand: random})
			if err != nil {
				return nil, fmt.Errorf("make an event: %w", err)
			}
			envelope, err := event.Parse(body)
			if err != nil {
				return nil, fmt.Errorf("read an event: %w", err)
			}
			chains[i] = append(chains[i], sender.Event{ID: envelope.ID, Type: envelope.Type, Key: string(envelope.Key("")), Body: body})
		}
	}
	return chains, nil
}

// play sends the load and kills meanwhile. It returns when both have ended.
func play(ctx context.Context, l *laptop.Laptop, o Options, chains [][]sender.Event, random *rand.Rand) (Result, error) {
	r := Result{Seed: o.Seed, Asked: o.Rate, Customers: o.Customers, sent: map[string]bool{}, acknowledged: map[string]bool{}, answers: map[int]int{}}
	load, stop := context.WithTimeout(ctx, o.Load)
	defer stop()
	began := time.Now()

	killer := &killer{processes: l.Host, random: rand.New(rand.NewPCG(o.Seed, 2)), options: o}
	killed := make(chan error, 1)
	go func() { killed <- killer.run(ctx) }()

	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = o.Customers
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}

	progress := time.NewTicker(10 * time.Second)
	defer progress.Stop()
	var mu sync.Mutex
	var customers sync.WaitGroup
	var problems []error
	for _, chain := range chains {
		deliveries := sender.Duplicate(chain, duplicates, random)
		wait := time.Duration(random.Float64() * float64(time.Second) * float64(o.Customers) / o.Rate)
		customers.Go(func() {
			select { // customers do not all begin at once
			case <-time.After(wait):
			case <-load.Done():
				return
			}
			pace := rate.NewLimiter(rate.Limit(o.Rate/float64(o.Customers)), 1)
			for _, e := range deliveries {
				if pace.Wait(load) != nil {
					return // the load's time is over; what was begun has ended
				}
				report, err := sender.Send(ctx, []sender.Event{e}, sender.Options{
					Endpoint: l.Endpoint, Secret: l.Secrets[0], Client: client, Workers: 1,
					Retries: retries, Backoff: 100 * time.Millisecond, Now: time.Now,
				})
				mu.Lock()
				r.add(e, report, time.Since(began))
				if err != nil {
					problems = append(problems, err)
				}
				mu.Unlock()
				if !report.Acknowledged[e.ID] {
					return // what follows would be accepted out of order
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		customers.Wait()
		close(done)
	}()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-progress.C:
			mu.Lock()
			fmt.Fprintf(o.Out, "%3.0f s: %d events acknowledged\n", time.Since(began).Seconds(), len(r.acknowledged))
			mu.Unlock()
		}
	}
	if err := <-killed; err != nil {
		problems = append(problems, err)
	}
	r.Killed, r.KilledAll = killer.killed, killer.all
	r.Took = r.lastAck
	return r, errors.Join(problems...)
}

// count waits for what was acknowledged and counts it.
func count(ctx context.Context, l *laptop.Laptop, o Options, r *Result, chains [][]sender.Event, w *witness) error {
	began := time.Now()
	db := dynamodb.NewFromConfig(l.AWS)
	counter := tally.Counter{
		Ledger: ledger.New(db, l.Names.LedgerTable, time.Now), Rows: projection.New(db), BillingTable: l.Names.BillingTable,
	}
	var acknowledged, others []string
	for _, chain := range chains {
		for _, e := range chain {
			if r.acknowledged[e.Key] {
				acknowledged = append(acknowledged, e.Key)
			} else {
				others = append(others, e.Key)
			}
		}
	}
	last := time.Now()
	found, err := counter.Await(ctx, acknowledged, o.Patience, func(settled int) {
		if time.Since(last) >= 10*time.Second {
			last = time.Now()
			fmt.Fprintf(o.Out, "%d of %d events are settled\n", settled, len(acknowledged))
		}
	})
	if err != nil {
		return fmt.Errorf("count the effects: %w", err)
	}
	r.Settled = time.Since(began)
	rest, err := counter.Await(ctx, others, time.Millisecond, nil) // as they are: nobody promised anything but once
	if err != nil {
		return fmt.Errorf("count the effects of what was not acknowledged: %w", err)
	}
	r.judge(found, rest)
	r.Misordered = w.misordered(chains)
	return nil
}
