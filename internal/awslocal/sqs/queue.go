package sqs

import (
	"container/heap"
	"time"
)

const (
	// scanWindow is how many messages of a FIFO queue SQS looks at for deliverable
	// groups ("Avoid large message backlogs with the same message group ID").
	scanWindow = 120_000
	// dedupInterval is how long a deduplication id, and a receive request attempt id, is remembered.
	dedupInterval = 5 * time.Minute
)

// queue is one queue and everything in it. Its methods expect the server's lock
// to be held and the queue to be advanced to the present moment.
type queue struct {
	name, arn         string
	created, modified time.Time
	purged            time.Time
	settings          settings

	all      list
	window   *message // the last message of all that a receive looks at
	byID     map[string]*message
	groups   map[string]*group
	ready    indexed[*group]
	timers   indexed[*message]
	inFlight int
	delayed  int

	dedup    map[string]accepted
	dedupAge []accepted // oldest first
	attempts map[string]attempt
	waiters  []*waiter
	touched  bool
	gone     bool
}

// accepted is what is remembered of a message for deduplication.
type accepted struct {
	key, id  string
	sequence uint64
	until    time.Time
}

func newQueue(name, arn string, now time.Time) *queue {
	return &queue{
		name: name, arn: arn, created: now, modified: now,
		all: list{kind: inQueue}, byID: map[string]*message{}, groups: map[string]*group{},
		ready: newReady(), timers: newTimers(),
		dedup: map[string]accepted{}, attempts: map[string]attempt{},
	}
}

func (q *queue) visible() int { return q.all.len - q.inFlight - q.delayed }

// put appends m, whose sequence number is higher than any in the queue.
func (q *queue) put(m *message, now time.Time) {
	q.all.append(m)
	if q.all.len <= scanWindow {
		q.window = m
	}
	q.byID[m.id] = m
	g := q.groups[m.groupID]
	if g == nil {
		g = &group{members: list{kind: inGroup}, index: -1}
		q.groups[m.groupID] = g
	}
	m.group = g
	g.members.append(m)
	m.state = waiting
	if due := m.sent.Add(q.settings.delay); due.After(now) {
		q.hide(m, delayed, due)
	}
	q.refresh(g)
}

// remove takes m out of the queue, whatever its state.
func (q *queue) remove(m *message) {
	if q.all.len > scanWindow {
		if m.sequence <= q.window.sequence {
			q.window = q.all.next(q.window)
		}
	} else if m == q.window {
		q.window = q.all.prev(m)
	}
	q.all.remove(m)
	delete(q.byID, m.id)
	q.show(m)
	g := m.group
	g.members.remove(m)
	m.group = nil
	q.refresh(g)
	if g.members.len == 0 {
		delete(q.groups, m.groupID)
	}
}

// hide makes a waiting m delayed or in flight until at.
func (q *queue) hide(m *message, as state, at time.Time) {
	m.state, m.at = as, at
	heap.Push(&q.timers, m)
	if as == inFlight {
		m.group.busy++
		q.inFlight++
	} else {
		q.delayed++
	}
}

// show makes m waiting. The caller refreshes its group.
func (q *queue) show(m *message) {
	switch m.state {
	case waiting:
		return
	case inFlight:
		m.group.busy--
		q.inFlight--
	case delayed:
		q.delayed--
	}
	heap.Remove(&q.timers, m.timer)
	m.state = waiting
}

// refresh puts g where it belongs among the ready groups, after any change to it.
func (q *queue) refresh(g *group) {
	switch {
	case g.deliverable() && g.index < 0:
		heap.Push(&q.ready, g)
	case g.deliverable():
		heap.Fix(&q.ready, g.index)
	case g.index >= 0:
		heap.Remove(&q.ready, g.index)
	}
}

// advance applies what time did to the queue.
func (q *queue) advance(now time.Time) {
	for m := q.all.head; m != nil && !now.Before(m.sent.Add(q.settings.retention)); m = q.all.head {
		q.remove(m)
	}
	for q.timers.Len() > 0 && !q.timers.items[0].at.After(now) {
		m := q.timers.items[0]
		q.show(m)
		q.refresh(m.group)
	}
	expired := 0
	for ; expired < len(q.dedupAge) && !now.Before(q.dedupAge[expired].until); expired++ {
		delete(q.dedup, q.dedupAge[expired].key)
	}
	q.dedupAge = q.dedupAge[expired:]
}

// nextChange is when advance will next make a difference to a receive.
func (q *queue) nextChange() (time.Time, bool) {
	if q.all.head == nil {
		return time.Time{}, false
	}
	next := q.all.head.sent.Add(q.settings.retention)
	if q.timers.Len() > 0 && q.timers.items[0].at.Before(next) {
		next = q.timers.items[0].at
	}
	return next, true
}

// deliverable says whether a receive would look at any group now.
func (q *queue) deliverable() bool {
	return q.ready.Len() > 0 && q.inWindow(q.ready.items[0].members.head)
}

func (q *queue) inWindow(m *message) bool { return m.sequence <= q.window.sequence }

// redelay applies a changed DelaySeconds. On FIFO queues the change is retroactive:
// it counts for all that was never received.
func (q *queue) redelay(now time.Time) {
	for m := q.all.head; m != nil; m = q.all.next(m) {
		if m.state == inFlight || m.receivesHere > 0 {
			continue
		}
		q.show(m)
		if due := m.sent.Add(q.settings.delay); due.After(now) {
			q.hide(m, delayed, due)
		}
		q.refresh(m.group)
	}
}

// purge drops all messages.
func (q *queue) purge() {
	for q.all.head != nil {
		q.remove(q.all.head)
	}
	clear(q.attempts)
}

// touch notes that q must be settled before the lock is released.
func (s *Server) touch(q *queue) {
	if !q.touched {
		q.touched = true
		s.touched = append(s.touched, q)
	}
}

// settle hands what is visible in the touched queues to their waiting receives.
// That can move dead letters, which touches more queues; it ends because a move
// is preceded by at least one receive from the queue moved from.
func (s *Server) settle(now time.Time) {
	for len(s.touched) > 0 {
		q := s.touched[0]
		s.touched = s.touched[1:]
		q.touched = false
		q.advance(now)
		s.serveWaiters(q, now)
	}
}
