package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/awslocal"
	"backstop/internal/schema"
)

// Report is what came of a history.
type Report struct {
	Lifecycles int
	Calls      int
	Virtual    time.Duration
	Faults     map[string]int // injected, by kind
	Outcomes   map[string]int // of deliveries and attempts, as the functions log them
	Done       int
	Skipped    int
	Parked     int
	Violations []Violation
	Swept      int
	History    func(event string) string // with Options.Trace
}

// Violation is a broken promise.
type Violation struct {
	Promise string // in one or two words
	Event   string // its id; empty: it is not one event's
	Text    string
	At      time.Duration
}

func (v Violation) String() string {
	about := v.Event
	if about != "" {
		about += ": "
	}
	return fmt.Sprintf("%s (%s): %s%s", v.At.Round(time.Millisecond), v.Promise, about, v.Text)
}

// violate takes note of a broken promise. The caller holds the lock.
func (w *world) violate(promise, event, text string) {
	v := Violation{promise, event, text, time.Since(w.start)}
	w.report.Violations = append(w.report.Violations, v)
	w.traceLocked("sim", "", "VIOLATION "+v.String())
}

func (w *world) breach(promise, event, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violate(promise, event, text)
}

// rest is how long a history may take to come to rest once nothing goes wrong any more: the longest waits are those
// of poison events, eight attempts with backoff, and Stripe's own.
const rest = 6 * time.Hour

// Run plays one history. It must be called in a bubble of testing/synctest, and returns when everything it started
// has ended.
func Run(ctx context.Context, o Options) (Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := newWorld(ctx, o)
	if err != nil {
		return Report{}, err
	}
	err = w.play(ctx)
	cancel()
	w.running.Wait()
	time.Sleep(2 * tryTimeout) // net/http's timers of calls that did not come back
	if err != nil {
		return Report{}, fmt.Errorf("play the history of seed %d: %w", o.Seed, err)
	}
	w.report.Virtual = time.Since(w.start)
	w.report.History = w.history
	return w.report, nil
}

func (w *world) play(ctx context.Context) error {
	w.report.Lifecycles = len(w.plan)
	var deliveries []delivery
	for _, e := range w.plan {
		deliveries = append(deliveries, e.deliveries...)
	}
	if w.profile.outages {
		d := w.dice.about("outage")
		from := w.start.Add(d.about("from").between(0, w.profile.span))
		w.outside.down = []window{{from, from.Add(d.about("for").between(time.Minute, 15*time.Minute))}}
		if o := w.profile.outage; o.to > 0 {
			w.outside.down = []window{{w.start.Add(o.from), w.start.Add(o.to)}}
		}
	}
	if w.profile.down {
		d := w.dice.about("service")
		from := w.start.Add(d.about("from").between(0, w.profile.span))
		w.down = window{from, from.Add(d.about("for").between(20*time.Second, 3*time.Minute))}
		w.service = []string{awslocal.DynamoDB, awslocal.SQS}[d.about("which").below(2)]
		w.deaf = d.about("deaf").chance(0.5)
	}
	act, stop := context.WithCancel(ctx)
	if err := w.startPollers(act); err != nil {
		stop()
		return err
	}
	w.startSweeps(act)
	w.startLines(deliveries)
	w.running.Go(func() { w.act(act) })
	w.wait(w.profile.span + 2*time.Minute)
	if err := w.calm(ctx); err != nil {
		stop()
		return err
	}
	came := w.settle("")
	stop()
	if came {
		w.check(ctx)
	}
	if came && w.profile.expiry && len(w.report.Violations) == 0 {
		return w.expire(ctx)
	}
	return nil
}

// calm ends the faults.
func (w *world) calm(ctx context.Context) error {
	w.mu.Lock()
	w.calmed = true
	w.mu.Unlock()
	w.note("people", "", "the faults end")
	if w.profile.visibility > 0 {
		return w.setVisibility(ctx, schema.VisibilityTimeout)
	}
	return nil
}

func (w *world) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.life.Done():
	}
}

// settle waits for the history to come to rest.
func (w *world) settle(when string) bool {
	for since := time.Now(); time.Since(since) < rest; {
		if w.quiet() {
			return true
		}
		w.wait(30*time.Second + thePeople*slice)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.plan {
		if wit := w.events[e.key]; wit.status != "" && !wit.status.Settled() {
			w.violate("lost", e.id, fmt.Sprintf("it is still %s %s after the faults ended%s, and %s", wit.status, rest, when, wit.conduct))
		}
	}
	if len(w.report.Violations) == 0 {
		w.violate("at rest", "", "the history does not come to rest"+when)
	}
	return false
}

// Add sums reports up.
func (r *Report) Add(other Report) {
	r.Lifecycles += other.Lifecycles
	r.Calls += other.Calls
	r.Virtual += other.Virtual
	r.Done += other.Done
	r.Skipped += other.Skipped
	r.Parked += other.Parked
	r.Swept += other.Swept
	r.Violations = append(r.Violations, other.Violations...)
	sum(&r.Faults, other.Faults)
	sum(&r.Outcomes, other.Outcomes)
}

func sum(into *map[string]int, counts map[string]int) {
	if *into == nil {
		*into = make(map[string]int)
	}
	for name, n := range counts {
		(*into)[name] += n
	}
}

// Count is how many violations are of the promise.
func (r *Report) Count(promises ...string) int {
	n := 0
	for _, v := range r.Violations {
		if slices.Contains(promises, v.Promise) {
			n++
		}
	}
	return n
}

// String is the report as CI prints it.
func (r *Report) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d lifecycles, %d AWS calls, %s of virtual time: %d done, %d skipped, %d parked; %d swept\n",
		r.Lifecycles, r.Calls, r.Virtual.Round(time.Hour), r.Done, r.Skipped, r.Parked, r.Swept)
	list := func(what string, counts map[string]int) {
		total := 0
		for _, n := range counts {
			total += n
		}
		fmt.Fprintf(&text, "%d %s\n", total, what)
		for _, name := range sortedKeys(counts) {
			fmt.Fprintf(&text, "%8d  %s\n", counts[name], name)
		}
	}
	list("faults injected", r.Faults)
	list("deliveries and attempts, by what they came to", r.Outcomes)
	lost, doubled, misordered := r.Count("lost", "acknowledged"), r.Count("doubled"), r.Count("order")
	fmt.Fprintf(&text, "%d lost, %d doubled, %d misordered, %d other promises broken\n", lost, doubled, misordered,
		len(r.Violations)-lost-doubled-misordered)
	return text.String()
}
