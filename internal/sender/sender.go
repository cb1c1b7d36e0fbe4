// Package sender plays Stripe towards an endpoint: it signs events afresh for each delivery, posts them, and comes
// again after everything that is not 2xx, as Stripe does. It serves the send command and the tests that kill
// processes under load; it is linked into nothing that is deployed.
package sender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"backstop/internal/signature"
)

// Event is one event to deliver.
type Event struct {
	ID   string
	Type string
	Key  string // of the ledger, for those who look there afterwards
	Body []byte

	Customer string // whom it is about, for those who look there afterwards; may be empty
}

// Options say how to deliver. Endpoint and Secret are required.
type Options struct {
	Endpoint string
	Secret   string
	Client   *http.Client // nil: one with keep-alive connections for each worker

	Workers int           // deliveries under way at once; 0: 16
	Rate    float64       // first deliveries a second; 0: as fast as the endpoint answers
	Retries int           // deliveries after the first that was not 2xx
	Backoff time.Duration // before the first retry, doubled for each, at most 32 times it; 0: 200 ms

	Now func() time.Time // signs the deliveries

	// Progress, when set, is called after each delivery that ended, from one goroutine at a time.
	Progress func(Answer)
	// Retrying, when set, is called before a delivery is made again, from one goroutine at a time.
	Retrying func(Answer)
}

// Answer is what became of one delivery, its retries included.
type Answer struct {
	Event    Event
	Status   int // of the last attempt; 0: no answer
	Attempts int
	Began    time.Time     // the first attempt
	Took     time.Duration // of the last attempt
	Err      error         // why there was no answer
}

// Acknowledged reports whether the endpoint took the event over.
func (a Answer) Acknowledged() bool { return a.Status >= 200 && a.Status < 300 }

// Report sums up a run.
type Report struct {
	Deliveries   int // attempts made, retries included
	Acknowledged map[string]bool
	Statuses     map[int]int     // attempts by status; 0: no answer
	Refused      []Answer        // deliveries never acknowledged
	Took         []time.Duration // of acknowledged attempts, ascending
}

// Duplicate returns events with share of them (0 to 1) standing twice, the copy a few places after the original.
func Duplicate(events []Event, share float64, random *rand.Rand) []Event {
	out := make([]Event, 0, len(events)+int(share*float64(len(events)))+1)
	type copied struct {
		event Event
		at    int
	}
	var copies []copied
	for i, event := range events {
		for len(copies) > 0 && copies[0].at <= i {
			out, copies = append(out, copies[0].event), copies[1:]
		}
		out = append(out, event)
		if random.Float64() < share {
			copies = append(copies, copied{event, i + 1 + random.IntN(3)})
			slices.SortStableFunc(copies, func(a, b copied) int { return a.at - b.at })
		}
	}
	for _, c := range copies {
		out = append(out, c.event)
	}
	return out
}

// Send delivers the events in order, several at once, and returns when each has been acknowledged or given up. The
// error is that of ctx or of Options; what the endpoint answered is in the report.
func Send(ctx context.Context, events []Event, opts Options) (Report, error) {
	if opts.Endpoint == "" || opts.Secret == "" {
		return Report{}, errors.New("send: an endpoint and a signing secret are needed")
	}
	if opts.Workers == 0 {
		opts.Workers = 16
	}
	if opts.Backoff == 0 {
		opts.Backoff = 200 * time.Millisecond
	}
	if opts.Client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = opts.Workers
		defer transport.CloseIdleConnections()
		// Stripe takes a redirect for a failure and never follows one.
		opts.Client = &http.Client{
			Transport:     transport,
			Timeout:       30 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	limiter := rate.NewLimiter(rate.Inf, 1)
	if opts.Rate > 0 {
		limiter = rate.NewLimiter(rate.Limit(opts.Rate), max(1, int(opts.Rate/20)))
	}

	run := &run{opts: opts, report: Report{Acknowledged: map[string]bool{}, Statuses: map[int]int{}}}
	var group errgroup.Group
	group.SetLimit(opts.Workers)
	for _, event := range events {
		if err := limiter.Wait(ctx); err != nil {
			break
		}
		group.Go(func() error { return run.deliver(ctx, event) })
	}
	err := group.Wait()
	if err == nil {
		err = ctx.Err()
	}
	slices.Sort(run.report.Took)
	return run.report, err
}

type run struct {
	opts   Options
	mu     sync.Mutex
	report Report
}

func (r *run) deliver(ctx context.Context, event Event) error {
	answer := Answer{Event: event, Began: r.opts.Now()}
	for answer.Attempts = 1; ; answer.Attempts++ {
		r.attempt(ctx, &answer)
		if answer.Acknowledged() || answer.Attempts > r.opts.Retries {
			break
		}
		if r.opts.Retrying != nil && ctx.Err() == nil {
			r.mu.Lock()
			r.opts.Retrying(answer)
			r.mu.Unlock()
		}
		wait := r.opts.Backoff << min(answer.Attempts-1, 5)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer.Acknowledged() {
		r.report.Acknowledged[event.ID] = true
	} else {
		r.report.Refused = append(r.report.Refused, answer)
	}
	if r.opts.Progress != nil {
		r.opts.Progress(answer)
	}
	return nil
}

func (r *run) attempt(ctx context.Context, answer *Answer) {
	start := r.opts.Now()
	answer.Status, answer.Err = r.post(ctx, answer.Event.Body, start)
	answer.Took = r.opts.Now().Sub(start)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Deliveries++
	r.report.Statuses[answer.Status]++
	if answer.Acknowledged() {
		r.report.Took = append(r.report.Took, answer.Took)
	}
}

func (r *run) post(ctx context.Context, body []byte, now time.Time) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.opts.Endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	request.Header.Set("Stripe-Signature", signature.Sign(r.opts.Secret, body, now))
	response, err := r.opts.Client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("post to %s: %w", r.opts.Endpoint, err)
	}
	defer response.Body.Close()
	// Read to the end, so that the connection is used again; what the answer says is for people only.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	return response.StatusCode, nil
}

// Percentile returns the p-th percentile (0 to 100) of ascending durations, 0 for none.
func Percentile(ascending []time.Duration, p float64) time.Duration {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[min(len(ascending)-1, int(p/100*float64(len(ascending))))]
}

// Codes returns the statuses seen, ascending.
func (r Report) Codes() []int { return slices.Sorted(maps.Keys(r.Statuses)) }
