package crash

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"backstop/internal/awslocal"
	"backstop/internal/journal"
	"backstop/internal/laptop"
	"backstop/internal/sender"
	"backstop/internal/tally"
)

// Result is what a run has come to.
type Result struct {
	Seed      uint64
	Customers int

	Asked      float64       // first deliveries a second
	Took       time.Duration // from the first delivery to the last acknowledgement
	Deliveries int           // attempts, retries and duplicates included
	Killed     map[string]int
	KilledAll  int
	Settled    time.Duration // from the end of load and kills until all was settled, or patience was over

	Sent         int
	Acknowledged int
	Once         int // acknowledged, done, with one effect
	Lost         int // acknowledged, without an effect
	Doubled      int // with more than one
	Misordered   int // done behind a later event of their customer

	Unsettled, Parked, Absent int // of the lost

	sent, acknowledged map[string]bool
	answers            map[int]int
	lastAck            time.Duration
}

// Clean reports whether every promise was kept.
func (r Result) Clean() bool { return r.Lost == 0 && r.Doubled == 0 && r.Misordered == 0 }

// add takes the report of one delivery that ended at a time.
func (r *Result) add(e sender.Event, report sender.Report, at time.Duration) {
	r.sent[e.Key] = true
	r.Deliveries += report.Deliveries
	for status, n := range report.Statuses {
		r.answers[status] += n
	}
	if report.Acknowledged[e.ID] {
		r.acknowledged[e.Key] = true
		r.lastAck = at
	}
}

// judge takes the figures of what was acknowledged and of what was not.
func (r *Result) judge(acknowledged, rest tally.Tally) {
	r.Sent, r.Acknowledged = len(r.sent), len(r.acknowledged)
	r.Once = acknowledged.Once
	r.Doubled = len(acknowledged.Doubled) + len(rest.Doubled)
	r.Unsettled, r.Parked, r.Absent = acknowledged.Open, acknowledged.Parked, acknowledged.Absent
	// Skipped would be one as well: every type sent here has a handler.
	r.Lost = len(acknowledged.Lost) + acknowledged.Open + acknowledged.Parked + acknowledged.Absent + acknowledged.Skipped
}

// Print writes the result as a table.
func (r Result) Print(w io.Writer, now time.Time, cpus int) {
	carried := 0.0
	if r.Took > 0 {
		carried = float64(r.Acknowledged) / r.Took.Seconds()
	}
	single := 0
	var kills []string
	for _, function := range []string{laptop.Receiver, laptop.Processor, laptop.Reconciler} {
		single += r.Killed[function]
		kills = append(kills, fmt.Sprintf("%s %d", function, r.Killed[function]))
	}
	var answers []string
	for _, status := range slices.Sorted(maps.Keys(r.answers)) {
		name := fmt.Sprint(status)
		if status == 0 {
			name = "none"
		}
		answers = append(answers, fmt.Sprintf("%s x %d", name, r.answers[status]))
	}
	fmt.Fprintf(w, "%s, seed %d, %d CPUs for load, local AWS and functions\n", now.UTC().Format(time.DateOnly), r.Seed, cpus)
	for _, line := range []struct {
		name string
		text any
	}{
		{"load", fmt.Sprintf("%d customers, %.0f events/s asked, %.0f events/s acknowledged for %.0f s", r.Customers, r.Asked, carried, r.Took.Seconds())},
		{"deliveries", fmt.Sprintf("%d, answered %s", r.Deliveries, strings.Join(answers, ", "))},
		{"killed -9", fmt.Sprintf("%d processes (%s), and %d times all at once", single, strings.Join(kills, ", "), r.KilledAll)},
		{"settled", fmt.Sprintf("%.0f s after the last of them", r.Settled.Seconds())},
		{"sent", r.Sent}, {"acknowledged", r.Acknowledged}, {"done once", r.Once},
		{"lost", r.Lost}, {"doubled", r.Doubled}, {"out of order", r.Misordered},
	} {
		fmt.Fprintf(w, "  %-14s%v\n", line.name, line.text)
	}
	if r.Unsettled+r.Parked+r.Absent > 0 {
		fmt.Fprintf(w, "  of the lost %d are not settled, %d parked, %d not in the ledger\n", r.Unsettled, r.Parked, r.Absent)
	}
}

// witness notes in which order the local DynamoDB applied the journal's effects.
type witness struct {
	mu    sync.Mutex
	place map[string]int // by the ledger's key; the first time counts
}

func newWitness() *witness { return &witness{place: map[string]int{}} }

// mark begins the key of a journal's row in a call.
var mark = []byte(`"` + journal.Key("")["pk"])

// observe is asked about every answer of the local AWS. A transaction that is sent again answers again.
func (w *witness) observe(c *awslocal.Call, status int, _ []byte) {
	if c.Action != "TransactWriteItems" || status != http.StatusOK {
		return
	}
	_, rest, found := bytes.Cut(c.Body, mark)
	key, _, ended := bytes.Cut(rest, []byte(`"`))
	if !found || !ended {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.place[string(key)]; !known {
		w.place[string(key)] = len(w.place)
	}
}

// misordered counts the events that took effect behind a later one of their chain.
func (w *witness) misordered(chains [][]sender.Event) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, chain := range chains {
		earliest := len(w.place) // of those later in the chain
		for _, e := range slices.Backward(chain) {
			place, done := w.place[e.Key]
			if !done {
				continue
			}
			if place > earliest {
				n++
			}
			earliest = min(earliest, place)
		}
	}
	return n
}
