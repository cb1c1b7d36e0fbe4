package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"backstop/internal/ledger"
	"backstop/internal/telemetry"
)

// Counter counts what is open.
type Counter interface {
	OpenCounts(ctx context.Context) (ledger.Counts, error)
}

// Reconciler answers the schedule.
type Reconciler struct {
	Sweeper *Sweeper
	Counter Counter
	Log     *telemetry.Log
}

// request is what the schedule sends.
type request struct {
	Task string `json:"task"`
}

// Invoke runs the task the schedule asks for: {"task":"sweep"}. An error makes the run a failed one; the next minute
// repeats it.
func (r *Reconciler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var q request
	if err := json.Unmarshal(payload, &q); err != nil {
		return nil, fmt.Errorf("read the schedule's request: %w", err)
	}
	switch q.Task {
	case "sweep":
		return []byte("null"), r.sweep(ctx)
	default:
		return nil, fmt.Errorf("the schedule asks for %q, which this release does not know", q.Task)
	}
}

// sweep runs a sweep, then publishes the counts the alarms read, also when the sweep failed.
func (r *Reconciler) sweep(ctx context.Context) error {
	swept, failed := r.Sweeper.Run(ctx)
	attrs := []slog.Attr{
		slog.Int("looked", swept.Looked), slog.Int("enqueued", swept.Enqueued),
		slog.Bool("paused", swept.Paused), slog.Bool("complete", swept.Complete),
	}
	metrics := []telemetry.Metric{{Name: telemetry.Swept, Unit: telemetry.Count, Value: float64(swept.Enqueued)}}
	counts, err := r.Counter.OpenCounts(ctx)
	if err == nil {
		oldest := 0.0
		if counts.OldestTodoMS > 0 {
			oldest = max(0, float64(r.Sweeper.Now().UnixMilli()-counts.OldestTodoMS)/1000)
		}
		metrics = append(metrics,
			telemetry.Metric{Name: telemetry.TodoOpen, Unit: telemetry.Count, Value: float64(counts.Todo)},
			telemetry.Metric{Name: telemetry.ParkedOpen, Unit: telemetry.Count, Value: float64(counts.Parked)},
			telemetry.Metric{Name: telemetry.OldestTodoS, Unit: telemetry.Seconds, Value: oldest})
	}
	level := slog.LevelInfo
	for _, problem := range []error{failed, err} {
		if problem != nil {
			level = slog.LevelError
			attrs = append(attrs, slog.String("reason", problem.Error()))
		}
	}
	r.Log.Line(ctx, level, "sweep", attrs, metrics...)
	if failed == nil {
		failed = err
	}
	return failed
}
