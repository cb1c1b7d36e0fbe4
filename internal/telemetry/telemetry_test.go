package telemetry

import (
	"bytes"
	"log/slog"
	"testing"
	"time"
)

var at = time.Date(2026, 9, 22, 9, 20, 50, 123_000_000, time.FixedZone("", 7200))

func line(t *testing.T, level slog.Level, attrs []slog.Attr, metrics ...Metric) string {
	t.Helper()
	var out bytes.Buffer
	log := New(&out, "prod", func() time.Time { return at }, slog.String("function", "receiver"))
	log.Line(t.Context(), level, "delivery", attrs, metrics...)
	return out.String()
}

func TestLineWithoutMetricsIsPlain(t *testing.T) {
	t.Parallel()
	want := `{"time":"2026-09-22T07:20:50.123Z","level":"WARN","msg":"delivery","function":"receiver","status":400}` + "\n"
	if got := line(t, slog.LevelWarn, []slog.Attr{slog.Int("status", 400)}); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestMetricsAreEmbeddedByStage(t *testing.T) {
	t.Parallel()
	want := `{"time":"2026-09-22T07:20:50.123Z","level":"INFO","msg":"delivery","function":"receiver","status":200,` +
		`"Received":1,"AckTime":2.5,"stage":"prod","_aws":{"Timestamp":1790061650123,"CloudWatchMetrics":[` +
		`{"Namespace":"Backstop","Dimensions":[["stage"]],"Metrics":[{"Name":"Received","Unit":"Count"},{"Name":"AckTime","Unit":"Milliseconds"}]}]}}` + "\n"
	got := line(t, slog.LevelInfo, []slog.Attr{slog.Int("status", 200)}, Metric{"Received", Count, 1}, Metric{"AckTime", Milliseconds, 2.5})
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestMetricNamedTwiceIsListedOnce(t *testing.T) {
	t.Parallel()
	want := `{"time":"2026-09-22T07:20:50.123Z","level":"INFO","msg":"delivery","function":"receiver",` +
		`"Swept":3,"stage":"prod","_aws":{"Timestamp":1790061650123,"CloudWatchMetrics":[` +
		`{"Namespace":"Backstop","Dimensions":[["stage"]],"Metrics":[{"Name":"Swept","Unit":"Count"}]}]}}` + "\n"
	if got := line(t, slog.LevelInfo, nil, Metric{"Swept", Count, 1}, Metric{"Swept", Count, 3}); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestTextOfOthersCannotForgeALine(t *testing.T) {
	t.Parallel()
	want := `{"time":"2026-09-22T07:20:50.123Z","level":"INFO","msg":"delivery","function":"receiver","request_id":"a\"}\n{\"b\":1"}` + "\n"
	if got := line(t, slog.LevelInfo, []slog.Attr{slog.String("request_id", "a\"}\n{\"b\":1")}); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}
