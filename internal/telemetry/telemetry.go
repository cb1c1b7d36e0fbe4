// Package telemetry writes the one wide log line of a delivery, an attempt or a run, with the metrics inside it.
//
// A line is one JSON object with fixed keys. Its numbers become CloudWatch metrics through the embedded metric
// format (Amazon CloudWatch User Guide, "Specification: Embedded metric format"): no PutMetricData call, which for
// one call an event would cost $10.00 a million. Dimensions are the stage only: each further one multiplies the
// $0.30 a month of a custom metric.
//
// Lines never hold payloads, secrets, signatures or personal data: only identifiers, types, states, classes of
// errors and numbers.
package telemetry

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// Namespace is the CloudWatch namespace of every metric.
const Namespace = "Backstop"

// Unit is a CloudWatch unit.
type Unit string

// The units in use (Amazon CloudWatch API Reference, "MetricDatum").
const (
	Count        Unit = "Count"
	Milliseconds Unit = "Milliseconds"
	Seconds      Unit = "Seconds"
	None         Unit = "None"
)

// Metric is one number of a line that becomes a CloudWatch metric.
type Metric struct {
	Name  string
	Unit  Unit
	Value float64
}

// Log writes lines for one stage. The zero value is not usable; see New.
type Log struct {
	stage string
	slog  *slog.Logger
	now   func() time.Time
}

// New returns a Log that writes JSON lines to w. attrs stand in every line (function, version).
func New(w io.Writer, stage string, now func() time.Time, attrs ...slog.Attr) *Log {
	handler := slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: timestamp}).WithAttrs(attrs)
	return &Log{stage: stage, slog: slog.New(handler), now: now}
}

// timestamp writes the line's time as CloudWatch Logs Insights shows it.
func timestamp(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Value = slog.StringValue(a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return a
}

// Line writes one line. Metrics with the same name are listed once, with the last value.
func (l *Log) Line(ctx context.Context, level slog.Level, message string, attrs []slog.Attr, metrics ...Metric) {
	now := l.now()
	record := slog.NewRecord(now, level, message, 0)
	record.AddAttrs(attrs...)
	if len(metrics) > 0 {
		l.embed(&record, now, metrics)
	}
	// A log line that cannot be written must not stop a delivery: standard output has no other reader to tell.
	_ = l.slog.Handler().Handle(ctx, record)
}

type definition struct {
	Name string `json:"Name"`
	Unit Unit   `json:"Unit"`
}

type directive struct {
	Namespace  string       `json:"Namespace"`
	Dimensions [][]string   `json:"Dimensions"`
	Metrics    []definition `json:"Metrics"`
}

func (l *Log) embed(record *slog.Record, now time.Time, metrics []Metric) {
	last := make(map[string]int, len(metrics))
	for i, m := range metrics {
		last[m.Name] = i
	}
	definitions := make([]definition, 0, len(last))
	for i, m := range metrics {
		if last[m.Name] != i {
			continue
		}
		definitions = append(definitions, definition{m.Name, m.Unit})
		record.AddAttrs(slog.Float64(m.Name, m.Value))
	}
	record.AddAttrs(
		slog.String("stage", l.stage),
		slog.Any("_aws", struct {
			Timestamp         int64       `json:"Timestamp"`
			CloudWatchMetrics []directive `json:"CloudWatchMetrics"`
		}{now.UnixMilli(), []directive{{Namespace, [][]string{{"stage"}}, definitions}}}),
	)
}
