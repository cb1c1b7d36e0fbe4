package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"backstop/internal/ledger"
	"backstop/internal/telemetry"
)

// Counter counts what is open.
type Counter interface {
	OpenCounts(ctx context.Context) (ledger.Counts, error)
}

// Reconciler answers the schedule. Tidier and Auditor may be nil: then the dead-letter queue is left alone, and an
// audit is refused.
type Reconciler struct {
	Sweeper *Sweeper
	Counter Counter
	Tidier  *Tidier
	Auditor *Auditor
	Log     *telemetry.Log
}

// request is what the schedule sends.
type request struct {
	Task string `json:"task"`
}

// Invoke runs the task the schedule asks for: {"task":"sweep"} or {"task":"audit"}. An error makes the run a failed
// one; the next one repeats it, or goes on where it stopped.
func (r *Reconciler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var q request
	if err := json.Unmarshal(payload, &q); err != nil {
		return nil, fmt.Errorf("read the schedule's request: %w", err)
	}
	switch {
	case q.Task == "sweep":
		return []byte("null"), r.sweep(ctx)
	case q.Task == "audit" && r.Auditor != nil:
		return []byte("null"), r.audit(ctx)
	default:
		return nil, fmt.Errorf("the schedule asks for %q, which this release does not know", q.Task)
	}
}

// run is the line of one run while it is gathered.
type run struct {
	attrs    []slog.Attr
	metrics  []telemetry.Metric
	problems []error
}

func (l *run) metric(name string, unit telemetry.Unit, value float64) {
	l.metrics = append(l.metrics, telemetry.Metric{Name: name, Unit: unit, Value: value})
}

// failed keeps an error for the line and the run's result.
func (l *run) failed(err error) {
	if err != nil {
		l.problems = append(l.problems, err)
	}
}

// write writes the line at level, or as an error if there was one, and returns the run's result.
func (l *run) write(ctx context.Context, log *telemetry.Log, level slog.Level, task string) error {
	err := errors.Join(l.problems...)
	if err != nil {
		level = slog.LevelError
		l.attrs = append(l.attrs, slog.String("error", err.Error()))
	}
	log.Line(ctx, level, task, l.attrs, l.metrics...)
	return err
}

// mostDependencies bounds the metrics that have a name of their own each: $0.30 a month.
const mostDependencies = 10

// sweep runs a sweep, publishes the counts the alarms read, also when the sweep failed, and tidies.
func (r *Reconciler) sweep(ctx context.Context) error {
	var l run
	swept, err := r.Sweeper.Run(ctx)
	l.failed(err)
	l.attrs = append(l.attrs,
		slog.Int("looked", swept.Looked), slog.Int("enqueued", swept.Enqueued),
		slog.Bool("paused", swept.Paused), slog.Bool("complete", swept.Complete))
	l.metric(telemetry.Swept, telemetry.Count, float64(swept.Enqueued))
	counts, err := r.Counter.OpenCounts(ctx)
	l.failed(err)
	if err == nil {
		oldest := 0.0
		if counts.OldestTodoMS > 0 {
			oldest = max(0, float64(r.Sweeper.Now().UnixMilli()-counts.OldestTodoMS)/1000)
		}
		l.metric(telemetry.TodoOpen, telemetry.Count, float64(counts.Todo))
		l.metric(telemetry.ParkedOpen, telemetry.Count, float64(counts.Parked))
		l.metric(telemetry.OldestTodoS, telemetry.Seconds, oldest)
		if !swept.Paused {
			l.metric(telemetry.LargestGroup, telemetry.Count, float64(backlog(swept, counts)))
		}
	}
	if swept.Group != "" {
		l.attrs = append(l.attrs, slog.String("largest_group", swept.Group))
	}
	for _, dependency := range byCount(swept.Waiting) {
		if strings.ContainsRune(dependency, ' ') {
			continue // a handler that asked to come again: no dependency, and each name would be one more metric
		}
		l.metric(telemetry.WaitingOn(dependency), telemetry.Count, float64(swept.Waiting[dependency]))
	}
	if r.Tidier != nil {
		tidied, err := r.Tidier.Run(ctx, false)
		l.failed(err)
		l.attrs = append(l.attrs, slog.Int("dead_letters", tidied.Looked), slog.Int("ghosts_deleted", tidied.Deleted))
	}
	return l.write(ctx, r.Log, slog.LevelInfo, "sweep")
}

// backlog is how many open entries the largest group has: counted where the sweep saw every entry older than two
// minutes, else its share of those seen, of all there are.
func backlog(swept Swept, counts ledger.Counts) int {
	if swept.Whole || swept.Looked == 0 {
		return swept.GroupOpen
	}
	return max(swept.GroupOpen, int(float64(counts.Todo)*float64(swept.GroupOpen)/float64(swept.Looked)))
}

// byCount returns the names with the highest counts.
func byCount(counts map[string]int) []string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return names[:min(len(names), mostDependencies)]
}

// audit runs an audit and publishes what it found, also of one that failed half-way.
func (r *Reconciler) audit(ctx context.Context) error {
	var l run
	report, err := r.Auditor.Run(ctx)
	l.failed(err)
	l.attrs = append(l.attrs,
		slog.String("from", stamp(report.FromS)), slog.String("to", stamp(report.ToS)), slog.Bool("complete", report.Complete),
		slog.Int("listed", report.Listed), slog.Int("missing", report.Missing), slog.Int("healed", report.Healed),
		slog.Int("unhealed", report.Unhealed), slog.Int("unfinished", report.Unfinished), slog.Int("parked", report.Parked))
	level := slog.LevelInfo
	if report.Missing > 0 || report.Gap {
		level = slog.LevelWarn
	}
	if len(report.Notes) > 0 {
		l.attrs = append(l.attrs, slog.String("notes", strings.Join(report.Notes, "; ")))
	}
	if keys := report.keys("healed"); keys != "" {
		l.attrs = append(l.attrs, slog.String("healed_events", keys))
	}
	if keys := report.keys("unhealed"); keys != "" {
		l.attrs = append(l.attrs, slog.String("unhealed_events", keys))
	}
	ran := 0.0
	if err == nil && (report.Complete || report.Nearer) {
		ran = 1
	}
	l.metric(telemetry.AuditMissing, telemetry.Count, float64(report.Missing))
	l.metric(telemetry.AuditUnhealed, telemetry.Count, float64(report.Unhealed))
	l.metric(telemetry.AuditRan, telemetry.Count, ran)
	return l.write(ctx, r.Log, level, "audit")
}

// logged is how many events a line names.
const logged = 20

// keys names the first events of a kind of finding, with the reason where there is one.
func (a Audited) keys(what string) string {
	var list []string
	for _, f := range a.Findings {
		if f.What != what || len(list) == logged {
			continue
		}
		text := string(f.Key)
		if f.Why != "" {
			text += " (" + f.Why + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}
