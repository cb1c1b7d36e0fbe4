package process

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/projection"
	"backstop/internal/queue"
	"backstop/internal/sqsbatch"
	"backstop/internal/telemetry"
)

// line is the one wide log line of a message, gathered while it is handled. Its methods that end an attempt write it
// and return what happens with the message.
type line struct {
	b         *batch
	message   sqsbatch.Message
	pointer   queue.Pointer
	entry     ledger.Entry
	followers int
	began     time.Time
	claimed   time.Time

	dependency    string
	wrongMode     bool
	handlers      []string // name=outcome
	stale, unsure int
	stack         []byte
}

// maxStack is how much of a stack is logged: the frames nearest to the panic come first.
const maxStack = 8 << 10

// step adds what one handler came to.
func (l *line) step(name string, step ledger.Step, outcome handler.Outcome, took time.Duration, err error) {
	came := string(step.Outcome)
	if came == "" {
		came = "retry"
	}
	l.handlers = append(l.handlers, name+"="+came+"/"+took.Round(time.Millisecond).String())
	if outcome.Dependency != "" {
		l.dependency = outcome.Dependency
	}
	var panicked *handler.PanicError
	if errors.As(err, &panicked) {
		l.stack = panicked.Stack[:min(len(panicked.Stack), maxStack)]
	}
}

func (l *line) project(result projection.Result) {
	switch result {
	case projection.Stale:
		l.stale++
	case projection.AppliedUnsure:
		l.unsure++
	}
}

// settled: the entry is done, skipped or parked, and the message goes.
func (l *line) settled(a *attempt, status ledger.Status) verdict {
	level, name := slog.LevelInfo, telemetry.DoneCount
	switch status {
	case ledger.Skipped:
		name = telemetry.SkippedCount
	case ledger.Parked:
		level, name = slog.LevelError, telemetry.ParkedCount
	}
	metrics := []telemetry.Metric{{Name: name, Unit: telemetry.Count, Value: 1}}
	// A backfilled or replayed event is as old as its story is long: that would hide how long the others take.
	// One that does not say when it was created would be as old as the epoch.
	if l.entry.Origin == ledger.Webhook && l.entry.Replay == 0 && l.entry.CreatedS > 0 {
		metrics = append(metrics, telemetry.Metric{Name: telemetry.SettledMS, Unit: telemetry.Milliseconds,
			Value: float64(a.Now().UnixMilli() - 1000*l.entry.CreatedS)})
	}
	if l.wrongMode {
		metrics = append(metrics, telemetry.Metric{Name: telemetry.WrongMode, Unit: telemetry.Count, Value: 1})
	}
	l.write(level, string(status), a.class, a.text, 0, metrics...)
	return verdict{kind: letGo}
}

// released: another attempt follows.
func (l *line) released(a *attempt, delay time.Duration) verdict {
	metrics := []telemetry.Metric{{Name: telemetry.Retried, Unit: telemetry.Count, Value: 1}}
	if !a.charged && a.class == ledger.ClassOutage {
		metrics = append(metrics, telemetry.Metric{Name: telemetry.WaitingOutage, Unit: telemetry.Count, Value: 1})
	}
	l.write(slog.LevelWarn, "retry", a.class, a.text, delay, metrics...)
	return back(delay)
}

// stuck: our own tables or queues are in trouble, and another attempt follows.
func (l *line) stuck(a *attempt, doing string, err error, delay time.Duration) verdict {
	l.write(slog.LevelError, "failed_to_"+doing, ledger.ClassOutage, handler.Text(err), delay,
		telemetry.Metric{Name: telemetry.WaitingOutage, Unit: telemetry.Count, Value: 1})
	return back(delay)
}

// lost: somebody else works on the entry now.
func (l *line) lost(delay time.Duration) verdict {
	l.write(slog.LevelWarn, "lease_lost", "", "", delay)
	return back(delay)
}

// failed: the message could not be handled before there was a claim.
func (l *line) failed(doing string, err error, delay time.Duration) verdict {
	l.write(slog.LevelError, "failed_to_"+doing, ledger.ClassOutage, handler.Text(err), delay,
		telemetry.Metric{Name: telemetry.WaitingOutage, Unit: telemetry.Count, Value: 1})
	return back(delay)
}

// handedBack: it was not its time.
func (l *line) handedBack(why string, delay time.Duration) verdict {
	var metrics []telemetry.Metric
	if l.dependency != "" {
		metrics = append(metrics, telemetry.Metric{Name: telemetry.WaitingOutage, Unit: telemetry.Count, Value: 1})
	}
	l.write(slog.LevelInfo, "handed_back", "", why, delay, metrics...)
	return back(delay)
}

// dropped: nothing wants the message any more.
func (l *line) dropped(why string) verdict {
	l.write(slog.LevelInfo, "dropped", "", why, 0)
	return verdict{kind: letGo}
}

// misunderstood: the message went to the dead-letter queue as it is.
func (l *line) misunderstood(why error) verdict {
	l.write(slog.LevelError, "misunderstood", ledger.ClassPointer, why.Error(), 0,
		telemetry.Metric{Name: telemetry.ParkedCount, Unit: telemetry.Count, Value: 1})
	return verdict{kind: letGo}
}

func (l *line) write(level slog.Level, outcome string, class ledger.Class, text string, delay time.Duration, metrics ...telemetry.Metric) {
	key, typ := l.pointer.Key, l.pointer.Type
	now := l.b.Now()
	attrs := []slog.Attr{
		slog.String("outcome", outcome),
		slog.String("event", key),
		slog.String("type", typ),
		slog.String("group", l.message.Group),
		slog.String("message", l.message.ID),
		slog.Int("receive", l.message.ReceiveCount),
		slog.Int("replay", l.pointer.Replay),
		slog.Int64("took_ms", now.Sub(l.began).Milliseconds()),
	}
	if !l.claimed.IsZero() {
		attrs = append(attrs,
			slog.Int64("generation", l.entry.Generation),
			slog.Int("attempts", l.entry.Attempts),
			slog.Bool("suspect", l.entry.Suspect))
		if l.message.SentMS > 0 {
			metrics = append(metrics, telemetry.Metric{Name: telemetry.QueueWaitMS, Unit: telemetry.Milliseconds,
				Value: float64(l.claimed.UnixMilli() - l.message.SentMS)})
		}
	}
	text2 := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	text2("handlers", strings.Join(l.handlers, " "))
	text2("class", string(class))
	text2("reason", text)
	text2("dependency", l.dependency)
	text2("stack", string(l.stack))
	if delay > 0 {
		attrs = append(attrs, slog.Int64("again_in_ms", delay.Milliseconds()), slog.Int("followers", l.followers))
	}
	for _, m := range []telemetry.Metric{
		{Name: telemetry.StaleEffects, Unit: telemetry.Count, Value: float64(l.stale)},
		{Name: telemetry.OrderUnsure, Unit: telemetry.Count, Value: float64(l.unsure)},
	} {
		if m.Value > 0 {
			metrics = append(metrics, m)
		}
	}
	l.b.Log.Line(context.Background(), level, "attempt", attrs, metrics...)
}

func (b *batch) logVisibility(head sqsbatch.Message, err error) {
	b.Log.Line(b.write, slog.LevelWarn, "visibility", []slog.Attr{
		slog.String("group", head.Group), slog.String("message", head.ID), slog.String("reason", handler.Text(err)),
	})
}

func (b *batch) logExit(ctx context.Context, stuck int, err error) {
	attrs := []slog.Attr{slog.Int("messages", len(b.messages)), slog.Int("stuck", stuck)}
	if err != nil {
		attrs = append(attrs, slog.String("reason", handler.Text(err)))
	}
	b.Log.Line(ctx, slog.LevelError, "a handler was still running when the answer was due; the process ends", attrs)
}
