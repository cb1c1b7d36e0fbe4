package sqs_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the queue pair as one would explain it: slices, scanned whole.
type model struct {
	now        time.Time
	work, dead []*modelMessage
	accepted   map[string]time.Time
}

type modelMessage struct {
	body, group string
	sent        time.Time
	until       time.Time // in flight until
	receives    int
	handle      string
}

const (
	modelRetention   = 60 * time.Second
	modelVisibility  = 10 * time.Second
	modelMaxReceives = 2
)

func (m *model) expire() {
	gone := func(x *modelMessage) bool { return !m.now.Before(x.sent.Add(modelRetention)) }
	m.work, m.dead = slices.DeleteFunc(m.work, gone), slices.DeleteFunc(m.dead, gone)
}

func (m *model) send(group, dedup, body string) {
	if at, ok := m.accepted[dedup]; ok && m.now.Before(at.Add(5*time.Minute)) {
		return
	}
	m.accepted[dedup] = m.now
	m.work = append(m.work, &modelMessage{body: body, group: group, sent: m.now})
}

// receive takes from the work queue what one receive should.
func (m *model) receive(limit int) []*modelMessage {
	var got []*modelMessage
	for len(got) < limit {
		head := slices.IndexFunc(m.work, func(x *modelMessage) bool { return !m.busy(x.group) })
		if head < 0 {
			break
		}
		first := m.work[head]
		if first.receives >= modelMaxReceives {
			m.work = slices.Delete(m.work, head, head+1)
			m.dead = append(m.dead, &modelMessage{body: first.body, group: first.group, sent: m.now})
			continue
		}
		for _, x := range m.work {
			if x.group != first.group {
				continue
			}
			if len(got) == limit || x.receives >= modelMaxReceives {
				break
			}
			x.receives++
			x.until = m.now.Add(modelVisibility)
			got = append(got, x)
		}
	}
	return got
}

func (m *model) busy(group string) bool {
	return slices.ContainsFunc(m.work, func(x *modelMessage) bool { return x.group == group && m.inFlight(x) })
}

func (m *model) inFlight(x *modelMessage) bool { return x.until.After(m.now) }

func (m *model) counts() string {
	flying := 0
	for _, x := range m.work {
		if m.inFlight(x) {
			flying++
		}
	}
	return fmt.Sprintf("%d/%d and %d", len(m.work)-flying, flying, len(m.dead))
}

func TestQueueBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := newRaw(t)
		seconds := func(d time.Duration) string { return fmt.Sprint(int(d.Seconds())) }
		dead := r.create("dead.fifo", map[string]string{"MessageRetentionPeriod": seconds(modelRetention)})
		work := r.create("work.fifo", map[string]string{"MessageRetentionPeriod": seconds(modelRetention), "VisibilityTimeout": seconds(modelVisibility),
			"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":%d}`, deadARN, modelMaxReceives)})
		m := &model{now: r.now, accepted: map[string]time.Time{}}
		sent := 0

		rt.Repeat(map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				sent++
				group := rapid.SampledFrom([]string{"A", "B", "C"}).Draw(rt, "group")
				dedup := fmt.Sprint(rapid.IntRange(max(1, sent-3), sent).Draw(rt, "dedup"))
				body := fmt.Sprintf("%s%d", group, sent)
				m.send(group, dedup, body)
				r.call("SendMessage", map[string]any{"QueueUrl": work, "MessageBody": body, "MessageGroupId": group, "MessageDeduplicationId": dedup})
			},
			"receive": func(rt *rapid.T) {
				limit := rapid.IntRange(1, 5).Draw(rt, "limit")
				want, got := m.receive(limit), r.receive(work, limit)
				var bodies []string
				for i, x := range want {
					bodies = append(bodies, x.body)
					if i < len(got) {
						x.handle = got[i].ReceiptHandle
					}
				}
				if rawBodies(got) != strings.Join(bodies, ",") {
					rt.Fatalf("received %s, want %s", rawBodies(got), strings.Join(bodies, ","))
				}
			},
			"delete": func(rt *rapid.T) {
				x := m.pick(rt)
				out := r.call("DeleteMessage", map[string]any{"QueueUrl": work, "ReceiptHandle": x.handle})
				if (out.Code == "") != m.inFlight(x) {
					rt.Fatalf("deleting %s, in flight %v: %q", x.body, m.inFlight(x), out.Code)
				}
				if m.inFlight(x) {
					m.work = slices.DeleteFunc(m.work, func(y *modelMessage) bool { return x == y })
				}
			},
			"change visibility": func(rt *rapid.T) {
				x := m.pick(rt)
				timeout := rapid.IntRange(0, 20).Draw(rt, "timeout")
				out := r.call("ChangeMessageVisibility", map[string]any{"QueueUrl": work, "ReceiptHandle": x.handle, "VisibilityTimeout": timeout})
				if (out.Code == "") != m.inFlight(x) {
					rt.Fatalf("changing %s, in flight %v: %q", x.body, m.inFlight(x), out.Code)
				}
				if m.inFlight(x) {
					x.until = m.now.Add(time.Duration(timeout) * time.Second)
				}
			},
			"wait": func(rt *rapid.T) {
				r.now = r.now.Add(time.Duration(rapid.IntRange(1, 12).Draw(rt, "seconds")) * time.Second)
				m.now = r.now
				m.expire()
			},
			"": func(rt *rapid.T) {
				w, _ := r.server.Stats("work.fifo")
				d, _ := r.server.Stats("dead.fifo")
				if got := fmt.Sprintf("%d/%d and %d", w.Visible, w.InFlight, d.Visible); got != m.counts() {
					rt.Fatalf("counts are %s, want %s", got, m.counts())
				}
			},
		})
		// Drained, the dead-letter queue gives each group in the model's order.
		want, got := map[string]string{}, map[string]string{}
		for _, x := range m.dead {
			want[x.group] += " " + x.body
		}
		for batch := r.receive(dead, 10); len(batch) > 0; batch = r.receive(dead, 10) {
			for _, x := range batch {
				got[x.Attributes["MessageGroupId"]] += " " + x.Body
			}
			r.delete(dead, batch)
		}
		if !maps.Equal(got, want) {
			rt.Fatalf("dead letters are %v, want %v", got, want)
		}
	})
}

// pick draws a message that was received before and is still there.
func (m *model) pick(rt *rapid.T) *modelMessage {
	var received []*modelMessage
	for _, x := range m.work {
		if x.handle != "" {
			received = append(received, x)
		}
	}
	if len(received) == 0 {
		rt.Skip("nothing was received")
	}
	return rapid.SampledFrom(received).Draw(rt, "message")
}
