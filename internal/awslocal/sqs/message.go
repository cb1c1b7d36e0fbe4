package sqs

import (
	"container/heap"
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
	delay             time.Duration // asked for by the sender, standard queues only

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

// readyHeap is the deliverable groups, the one with the oldest message first.
type readyHeap []*group

func (h readyHeap) Len() int { return len(h) }
func (h readyHeap) Less(i, j int) bool {
	return h[i].members.head.sequence < h[j].members.head.sequence
}
func (h readyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *readyHeap) Push(x any) {
	g := x.(*group)
	g.index = len(*h)
	*h = append(*h, g)
}
func (h *readyHeap) Pop() any {
	last := len(*h) - 1
	g := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	g.index = -1
	return g
}

// timerHeap is the messages that become visible by time, the next one first.
// Those of one moment go by sequence number, so that no map or heap order shows.
type timerHeap []*message

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].sequence < h[j].sequence
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timer, h[j].timer = i, j
}
func (h *timerHeap) Push(x any) {
	m := x.(*message)
	m.timer = len(*h)
	*h = append(*h, m)
}
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	m := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return m
}

var (
	_ heap.Interface = (*readyHeap)(nil)
	_ heap.Interface = (*timerHeap)(nil)
)
