package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/schema"
)

// processBatch hands records to the processor as the event source would. A record that has an event is made one by
// recording it first, as the receiver does; its message is the pointer.
func (w *world) processBatch(label string, records []map[string]json.RawMessage, s step) error {
	faults, err := w.faultsOf(s.Faults)
	if err != nil {
		return err
	}
	out := make([]map[string]any, len(records))
	for i, record := range records {
		out[i] = map[string]any{"eventSourceARN": w.names.QueueARN, "awsRegion": "us-east-1", "messageAttributes": map[string]any{}}
		for name, raw := range record {
			out[i][name] = raw
		}
		if record["event"] != nil {
			delete(out[i], "event")
			pointer, err := w.record(record["event"])
			if err != nil {
				return err
			}
			out[i]["body"] = queue.Encode(pointer)
		}
	}
	payload, err := json.Marshal(map[string]any{"Records": out})
	if err != nil {
		return fmt.Errorf("write the batch: %w", err)
	}
	p, err := w.current()
	if err != nil {
		return err
	}
	if s.HandlerMS > 0 {
		faults = append([]*fault{{Point: "before_effect", Kind: "stall_until", Seconds: float64(s.HandlerMS) / 1000, Times: 1 << 30}}, faults...)
	}
	timeout := schema.ProcessorTimeout
	if s.RemainingMS > 0 {
		timeout = time.Duration(s.RemainingMS) * time.Millisecond
	}
	w.mu.Lock()
	p.faults, p.batch = faults, label
	w.mu.Unlock()
	answer, err := p.invoke(payload, timeout)
	w.mu.Lock()
	p.faults, p.batch = nil, ""
	result := &batchResult{answer: answer, err: err, label: label, records: records}
	w.batches[label] = result
	w.mu.Unlock()
	var read struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if err == nil && json.Unmarshal(answer, &read) == nil {
		for _, item := range read.BatchItemFailures {
			result.failed = append(result.failed, item.ItemIdentifier)
		}
	}
	return w.watch()
}

// record records an event, unless it is there, and returns its pointer.
func (w *world) record(raw json.RawMessage) (queue.Pointer, error) {
	e, err := event.Parse(raw)
	if err != nil {
		return queue.Pointer{}, fmt.Errorf("read a record's event: %w", err)
	}
	w.serial++
	found, err := w.ledger.Record(w.ctx, ledger.Recording{
		Key: ledger.Key(e.Key("")), Type: e.Type, CreatedS: e.CreatedS, Account: e.Account, Livemode: e.Livemode,
		APIVersion: e.APIVersion, ObjectID: e.ObjectID, Group: e.Group, Origin: ledger.Webhook, Body: raw,
		Token: fmt.Sprintf("harness-%d", w.serial),
	})
	if err != nil {
		return queue.Pointer{}, err
	}
	return pointerTo(found.Entry), nil
}

func pointerTo(e ledger.Entry) queue.Pointer {
	return queue.Pointer{V: queue.Version, Key: string(e.Key), Type: e.Type, CreatedS: e.CreatedS, Replay: e.Replay}
}

func (w *world) redeliver(s step) error {
	var of *batchResult
	for _, name := range s.texts() {
		if w.batches[name] != nil {
			of = w.batches[name]
		}
	}
	if of == nil {
		return errors.New("the step does not say which batch's failures are meant")
	}
	failed := of.failed
	var again []map[string]json.RawMessage
	for _, record := range of.records {
		var id string
		if json.Unmarshal(record["messageId"], &id) == nil && (of.err != nil || slices.Contains(failed, id)) {
			again = append(again, received(record))
		}
	}
	label := s.As
	if label == "" {
		label = of.label + " again"
	}
	return w.processBatch(label, again, s)
}

// received is the record at its next receive.
func received(record map[string]json.RawMessage) map[string]json.RawMessage {
	next := map[string]json.RawMessage{}
	for name, raw := range record {
		next[name] = raw
	}
	var attributes map[string]string
	if json.Unmarshal(record["attributes"], &attributes) == nil && attributes != nil {
		count := 0
		_, _ = fmt.Sscan(attributes["ApproximateReceiveCount"], &count) // absent: the second receive is the first counted
		attributes["ApproximateReceiveCount"] = fmt.Sprint(count + 1)
		if raw, err := json.Marshal(attributes); err == nil {
			next["attributes"] = raw
		}
	}
	return next
}

// process lets a worker of that name take one event, past the queue. It returns when the worker has ended or stalls.
func (w *world) process(s step) error {
	faults, err := w.faultsOf(s.Faults)
	if err != nil {
		return err
	}
	key := w.keys(s.Event)[0]
	entry, found, err := w.entry(key)
	if err == nil && !found { // the case begins with it in the queue
		if _, err = w.record(w.bodyOf(s.Event)); err == nil {
			entry, _, err = w.entry(key)
		}
	}
	if err != nil {
		return err
	}
	if s.Worker == "" {
		s.Worker = s.As
	}
	p := w.workers[s.Worker]
	if p == nil || p.isDead() {
		if p, err = w.newProcessor(); err != nil {
			return err
		}
		w.workers[s.Worker] = p
	}
	w.mu.Lock()
	p.faults = faults
	p.stalled = make(chan struct{})
	stalled := p.stalled
	w.serial++
	serial := w.serial
	w.mu.Unlock()
	payload, err := json.Marshal(map[string]any{"Records": []any{map[string]any{
		"messageId": fmt.Sprintf("%s-%d", s.Worker, serial), "receiptHandle": fmt.Sprintf("rh-%d", serial),
		"body": queue.Encode(pointerTo(entry)), "eventSource": "aws:sqs", "eventSourceARN": w.names.QueueARN,
		"attributes": map[string]string{"MessageGroupId": entry.Group, "ApproximateReceiveCount": "1"},
	}}})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	w.going.Go(func() {
		defer close(done)
		answer, err := p.invoke(payload, schema.ProcessorTimeout)
		w.mu.Lock()
		w.batches[s.As] = &batchResult{answer: answer, err: err, label: s.As}
		w.mu.Unlock()
	})
	select {
	case <-done:
	case <-stalled:
	}
	return w.watch()
}

// resumeWorkers lets what stalls go on. A worker that reached its deadline meanwhile was ended, as Lambda does.
func (w *world) resumeWorkers() error {
	w.mu.Lock()
	close(w.resume)
	w.resume = make(chan struct{})
	w.mu.Unlock()
	time.Sleep(schema.ProcessorTimeout) // what goes on ends by then
	return w.watch()
}
