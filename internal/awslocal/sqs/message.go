package sqs

import (
	"slices"
	"time"
)

type state int

const (
	waiting  state = iota // deliverable as far as it alone is concerned
	delayed               // not yet, see message.at
	inFlight              // received, until message.at
)

// message is one stored message. It is in its queue's list and its group's, and
// among the queue's timers while delayed or in flight.
type message struct {
	id, body, bodyMD5 string
	attributes        map[string]attribute
	trace             string // AWSTraceHeader
	groupID, dedupID  string
	sequence          uint64
	sent              time.Time

	receives      int // across all queues, what ApproximateReceiveCount says
	receivesHere  int // from this queue, what maxReceiveCount is held against
	firstReceived time.Time
	lastReceived  time.Time
	receipt       uint64 // of the last receive
	sourceARN     string // the queue SQS moved it here from

	state state
	at    time.Time
	timer int // index in queue.timers
	group *group
	links [2]link
}

type link struct{ prev, next *message }

// list is a doubly linked list through the links of its kind.
type list struct {
	kind       int
	head, tail *message
	len        int
}

const (
	inQueue = iota
	inGroup
)

func (l *list) append(m *message) {
	m.links[l.kind] = link{prev: l.tail}
	if l.tail == nil {
		l.head = m
	} else {
		l.tail.links[l.kind].next = m
	}
	l.tail = m
	l.len++
}

func (l *list) remove(m *message) {
	at := m.links[l.kind]
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.links[l.kind].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.links[l.kind].prev = at.prev
	}
	m.links[l.kind] = link{}
	l.len--
}

func (l *list) next(m *message) *message { return m.links[l.kind].next }
func (l *list) prev(m *message) *message { return m.links[l.kind].prev }

// group is the messages of one message group of a queue.
type group struct {
	members list
	busy    int // messages in flight
	index   int // in queue.ready, -1 while not deliverable
}

func (g *group) deliverable() bool {
	return g.members.head != nil && g.busy == 0 && g.members.head.state == waiting
}

// indexed is a heap whose items know their index in it, so that any of them can
// be moved or removed.
type indexed[T any] struct {
	items []T
	less  func(a, b T) bool
	index func(T) *int
}

func (h *indexed[T]) Len() int           { return len(h.items) }
func (h *indexed[T]) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }
func (h *indexed[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.index(h.items[i]), *h.index(h.items[j]) = i, j
}
func (h *indexed[T]) Push(x any) {
	*h.index(x.(T)) = len(h.items)
	h.items = append(h.items, x.(T))
}
func (h *indexed[T]) Pop() any {
	last := len(h.items) - 1
	x := h.items[last]
	*h.index(x) = -1
	h.items = slices.Delete(h.items, last, last+1)
	return x
}

// newReady makes a heap of deliverable groups, the one with the oldest message first.
func newReady() indexed[*group] {
	return indexed[*group]{
		less:  func(a, b *group) bool { return a.members.head.sequence < b.members.head.sequence },
		index: func(g *group) *int { return &g.index },
	}
}

// newTimers makes a heap of messages that become visible by time, the next one
// first. Those of one moment go by sequence number, so that their order is
// always the same.
func newTimers() indexed[*message] {
	return indexed[*message]{
		less: func(a, b *message) bool {
			return a.at.Before(b.at) || a.at.Equal(b.at) && a.sequence < b.sequence
		},
		index: func(m *message) *int { return &m.timer },
	}
}
