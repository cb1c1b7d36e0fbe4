package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"backstop/internal/receive"
	"backstop/internal/schema"
	"backstop/internal/secret"
	"backstop/internal/signature"
)

// retryDelays are Stripe's waits after an answer that is not 2xx, shortened: what counts is that it comes again, and
// that it stops some day.
var retryDelays = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, time.Hour, time.Hour,
}

// line is one of Stripe's connections: it makes its deliveries one after the other, through a receiver of its own.
type line struct {
	w         *world
	number    int
	process   *proc
	receiver  *receive.Receiver
	processes int
	todo      []delivery
	posts     int
}

func (w *world) startLines(deliveries []delivery) {
	for n := range w.profile.receivers {
		l := &line{w: w, number: n}
		for _, d := range deliveries {
			if d.line == n {
				l.todo = append(l.todo, d)
			}
		}
		w.mu.Lock()
		w.lines++
		w.mu.Unlock()
		w.running.Go(l.run)
	}
}

func (l *line) run() {
	w := l.w
	defer func() {
		w.mu.Lock()
		w.lines--
		w.mu.Unlock()
	}()
	for len(l.todo) > 0 {
		slices.SortStableFunc(l.todo, func(a, b delivery) int { return int(a.at - b.at) })
		d := l.todo[0]
		l.todo = l.todo[1:]
		if !w.sleepUntil(w.start.Add(d.at), l.number) {
			return
		}
		if ok := l.deliver(d); ok {
			continue
		}
		if d.try++; d.try == d.gives || d.try > len(retryDelays) || d.forged {
			continue
		}
		d.at = time.Since(w.start) + retryDelays[d.try-1]
		d.deaf = false
		l.todo = append(l.todo, d)
	}
}

// deliver posts the event and reports whether Stripe saw a 2xx.
func (l *line) deliver(d delivery) bool {
	w := l.w
	l.posts++
	if l.process == nil || !l.process.isAlive() {
		l.start()
	}
	p := l.process
	key := ourSecret
	if d.forged {
		key = otherSecret
		w.fault(faultForged)
	}
	payload := request(d.event.body, signature.Sign(key, d.event.body, time.Now()), fmt.Sprintf("req-%d-%d", l.number, l.posts))
	before := w.deliveryStarts(d)
	r := p.invoke(payload, schema.ReceiverTimeout, 0, l.receiver.Invoke)
	var answer struct {
		StatusCode int    `json:"statusCode"`
		Body       string `json:"body"`
	}
	if !r.died && r.err == nil {
		_ = json.Unmarshal(r.answer, &answer) // an answer that cannot be read is no 2xx
	}
	w.answered(d, p, answer.StatusCode, answer.Body, before)
	if d.deaf && answer.StatusCode == 200 {
		w.fault(faultDeaf)
		return false
	}
	return answer.StatusCode/100 == 2
}

// start starts another process of the receiver.
func (l *line) start() {
	w := l.w
	l.processes++
	p := w.newProcess(receiverKind, l.number, l.processes)
	l.process = p
	var store receive.Ledger = p.ledger
	if hook := w.Hooks.ReceiveLedger; hook != nil {
		store = hook(w.seam(p), store)
	}
	var doorbell receive.Queue = p.queue
	if hook := w.Hooks.ReceiveQueue; hook != nil {
		doorbell = hook(w.seam(p), doorbell)
	}
	var secrets receive.Secrets = secret.Fixed([]string{ourSecret})
	if hook := w.Hooks.Secrets; hook != nil {
		secrets = hook(w.seam(p), secrets)
	}
	tokens := 0
	l.receiver = receive.New(receive.Config{
		Ledger: store, Queue: doorbell, Secrets: secrets, Log: p.log, Now: time.Now,
		Token: func() string { tokens++; return fmt.Sprintf("%s-%d", p.name, tokens) },
	})
}

// request is what an HTTP API hands the function.
func request(body []byte, header, id string) []byte {
	payload, err := json.Marshal(map[string]any{
		"version": "2.0", "rawPath": receive.WebhookPath, "headers": map[string]string{"stripe-signature": header},
		"requestContext": map[string]any{"http": map[string]string{"method": "POST"}, "requestId": id, "stage": "$default"},
		"body":           string(body), "isBase64Encoded": false,
	})
	if err != nil {
		panic(err) // strings always encode
	}
	return payload
}

// sleepUntil waits for a moment of the actor's own, and reports whether the history goes on.
func (w *world) sleepUntil(t time.Time, actor int) bool {
	t = t.Truncate(time.Millisecond).Add(time.Duration(actor) * slice)
	select {
	case <-time.After(time.Until(t)):
		return w.life.Err() == nil
	case <-w.life.Done():
		return false
	}
}
