package process_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"backstop/internal/awslocal"
	"backstop/internal/handler"
	"backstop/internal/ledger"
	"backstop/internal/process"
)

// lines decodes the log.
func (w *world) lines() []map[string]any {
	w.Helper()
	var lines []map[string]any
	for _, text := range strings.Split(strings.TrimSpace(w.log.text()), "\n") {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			w.Fatalf("%q: %v", text, err)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestAttemptIsOneLineWithItsNumbersAndWithoutPayload(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) {
			time.Sleep(250 * time.Millisecond)
			return nil, nil
		})
		w.accept("evt_1", "invoice.paid", "cus_1")
		time.Sleep(2 * time.Second)
		w.handle(w.processor(), w.receive())
		lines := w.lines()
		if len(lines) != 1 {
			t.Fatalf("%d lines, want 1", len(lines))
		}
		for name, want := range map[string]any{
			"msg": "attempt", "outcome": "done", "event": "stripe#-#evt_1", "type": "invoice.paid", "group": "cus_1",
			"receive": 1.0, "replay": 0.0, "generation": 1.0, "attempts": 0.0, "took_ms": 250.0, "handlers": "h=done/250ms",
			"Done": 1.0, "QueueWait": 2000.0, "CreatedToSettled": 2250.0, "suspect": false,
		} {
			if got := lines[0][name]; got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if strings.Contains(w.log.text(), "amount_paid") {
			t.Error("the log holds the payload")
		}
	})
}

func TestRetryIsCountedWithItsReasonAndFollowers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) { return nil, errOrdinary })
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.accept("evt_2", "invoice.paid", "cus_1")
		w.handle(w.processor(), w.receive())
		line := w.lines()[0]
		for name, want := range map[string]any{"outcome": "retry", "class": "error", "reason": "an ordinary error",
			"again_in_ms": 1000.0, "followers": 1.0, "Retried": 1.0, "level": "WARN"} {
			if got := line[name]; got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
}

func TestReplaysAndBackfillsDoNotCountInTheTimeToSettle(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", fine)
		w.accept("evt_1", "invoice.paid", "cus_1")
		p := w.processor()
		w.handle(p, w.receive())
		if _, err := w.ledger.Replay(w.ctx, ledger.Replaying{Key: key("evt_1"), From: ledger.Done, Token: "r", By: "me"}); err != nil {
			t.Fatal(err)
		}
		w.enqueue("evt_1", "invoice.paid", "cus_1")
		w.handle(p, w.receive())
		lines := w.lines()
		if _, first := lines[0]["CreatedToSettled"]; !first {
			t.Error("the delivery does not count")
		}
		if _, second := lines[1]["CreatedToSettled"]; second || lines[1]["Done"] != 1.0 {
			t.Errorf("the replay counts: %v", lines[1])
		}
	})
}

func TestEventThatDoesNotSayWhenItWasCreatedDoesNotCountInTheTimeToSettle(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", fine)
		w.record("evt_1", `{"id":"evt_1","object":"event","type":"invoice.paid","data":{"object":{"id":"in_1","customer":"cus_1"}}}`)
		w.enqueue("evt_1", "invoice.paid", "cus_1")
		w.handle(w.processor(), w.receive())
		line := w.lines()[0]
		if took, counts := line["CreatedToSettled"]; counts || line["Done"] != 1.0 {
			t.Errorf("it counts with %v ms", took)
		}
	})
}

func TestVisibilityThatCannotBeChangedIsLoggedAndTheMessageStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", func(context.Context, handler.Event) ([]handler.Effect, error) { return nil, errOrdinary })
		w.accept("evt_1", "invoice.paid", "cus_1")
		w.on("ChangeMessageVisibilityBatch", 100, awslocal.Fault{Kind: awslocal.Unavailable})
		if failed := w.handle(w.processor(), w.receive()); len(failed) != 1 {
			t.Errorf("%d messages stay, want 1", len(failed))
		}
		if !strings.Contains(w.log.text(), `"msg":"visibility"`) {
			t.Error("it is not logged")
		}
	})
}

func TestProcessorNamesAllThatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := process.New(process.Config{Timing: process.Timing{Start: 1, Handler: 2, Answer: 3}})
	if err == nil {
		t.Fatal("it was made of nothing")
	}
	for _, name := range []string{"Ledger", "Queue", "Projector", "Registry", "Breakers", "Log", "Now", "Random", "Exit", "timing"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}

func TestInvocationIsAnsweredInLambdasForm(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listen("invoice.paid", "h", fine)
		w.record("evt_1", body("evt_1", "invoice.paid", "cus_1"))
		ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
		defer cancel()
		p := w.processor()
		payload := `{"Records":[{"messageId":"m1","receiptHandle":"r1","body":"{\"v\":1,\"key\":\"stripe#-#evt_1\",\"type\":\"invoice.paid\",\"created\":1,\"replay\":0}","attributes":{"MessageGroupId":"cus_1","ApproximateReceiveCount":"1"}},` +
			`{"messageId":"m2","receiptHandle":"r2","body":"{\"v\":2}","attributes":{"MessageGroupId":"cus_2","ApproximateReceiveCount":"1"}}]}`
		answer, err := p.Invoke(ctx, []byte(payload))
		if err != nil || string(answer) != `{"batchItemFailures":[{"itemIdentifier":"m2"}]}` {
			t.Errorf("answered %s, %v", answer, err)
		}
		w.wantStatus("evt_1", ledger.Done, 0)
		if _, err := p.Invoke(ctx, []byte(`{}`)); err == nil {
			t.Error("an invocation without records was answered")
		}
	})
}
