package sqs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

type receiveMessageInput struct {
	QueueUrl                    string
	AttributeNames              []string // the older name of the next
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	ReceiveRequestAttemptId     *string
}

// receiver is what a checked ReceiveMessage asks for.
type receiver struct {
	limit      int
	visibility *time.Duration // nil: the queue's at the time of the receive
	wait       time.Duration
	system     []string
	attributes []string
	attemptID  string
}

type receivedMessage struct {
	MessageId, ReceiptHandle, MD5OfBody, Body string
	Attributes                                map[string]string    `json:",omitempty"`
	MessageAttributes                         map[string]attribute `json:",omitempty"`
	MD5OfMessageAttributes                    string               `json:",omitempty"`
}

type receiveResult struct {
	Messages []receivedMessage `json:",omitempty"`
}

// held is one receive of a message, to see later whether it still stands.
type held struct {
	m       *message
	receipt uint64
}

func (h held) stands() bool { return h.m.state == inFlight && h.m.receipt == h.receipt }

// attempt is what a ReceiveRequestAttemptId was answered with.
type attempt struct {
	messages []held
	until    time.Time
}

func (s *Server) receiveMessage(c *call, body []byte) (any, error) {
	in := new(receiveMessageInput)
	if err := decode(body, in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c.now = s.opts.Now()
	q, err := s.queueByURL(in.QueueUrl, c.now)
	var r *receiver
	if err == nil {
		r, err = q.checkReceive(in)
	}
	var got []held
	if err == nil {
		got = s.receive(q, r, c.now)
	}
	out := render(q, r, got)
	var w *waiter
	if err == nil && len(got) == 0 && r.wait > 0 {
		w = newWaiter(r, c.now)
		q.waiters = append(q.waiters, w)
	}
	s.settle(c.now)
	s.mu.Unlock()

	if w != nil {
		return s.await(c.ctx, q, w)
	}
	return out, err
}

func (q *queue) checkReceive(in *receiveMessageInput) (*receiver, error) {
	r := &receiver{limit: 1, wait: q.settings.wait, attributes: in.MessageAttributeNames}
	r.system = slices.Concat(in.MessageSystemAttributeNames, in.AttributeNames)
	for _, name := range r.system {
		if name != "All" && !slices.Contains(systemAttributes, name) && !knownAttribute(name) {
			return nil, unknownAttribute(name)
		}
	}
	if n := in.MaxNumberOfMessages; n != nil {
		if *n < 1 || *n > 10 {
			return nil, invalidValue(*n, "MaxNumberOfMessages", "Must be between 1 and 10, if provided.")
		}
		r.limit = *n
	}
	if n := in.WaitTimeSeconds; n != nil {
		if *n < 0 || *n > 20 {
			return nil, invalidValue(*n, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")
		}
		r.wait = time.Duration(*n) * time.Second
	}
	if n := in.VisibilityTimeout; n != nil {
		d, err := visibilityTimeout(*n)
		if err != nil {
			return nil, err
		}
		r.visibility = &d
	}
	if id := in.ReceiveRequestAttemptId; id != nil {
		if !validID(*id) {
			return nil, invalidValue(*id, "ReceiveRequestAttemptId", "ReceiveRequestAttemptId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}
		r.attemptID = *id
	}
	return r, nil
}

// receive takes up to r.limit messages for r, oldest deliverable group first,
// and moves those that were received too often to the dead-letter queue.
func (s *Server) receive(q *queue, r *receiver, now time.Time) []held {
	visibility := q.settings.visibility
	if r.visibility != nil {
		visibility = *r.visibility
	}
	if got := q.repeat(r, now.Add(visibility), now); got != nil {
		return got
	}
	var got []held
	for len(got) < r.limit && q.deliverable() {
		g := q.ready.items[0]
		if target := s.deadLetterQueue(q, g.members.head); target != nil {
			s.moveDeadLetter(q, target, g.members.head, now)
			continue
		}
		for m := g.members.head; m != nil && m.state == waiting && len(got) < r.limit && q.inWindow(m); m = g.members.next(m) {
			// m was received no more often than the head, so it is no dead letter either.
			s.take(q, m, visibility, now)
			got = append(got, held{m, m.receipt})
		}
		q.refresh(g)
	}
	if r.attemptID != "" && len(got) > 0 {
		q.attempts[r.attemptID] = attempt{got, now.Add(dedupInterval)}
	}
	return got
}

// take puts m in flight. The caller refreshes its group.
func (s *Server) take(q *queue, m *message, visibility time.Duration, now time.Time) {
	s.receipts++
	m.receipt = s.receipts
	m.receives++
	m.receivesHere++
	m.lastReceived = now
	if m.firstReceived.IsZero() {
		m.firstReceived = now
	}
	q.hide(m, inFlight, now.Add(visibility))
}

// giveBack undoes a receive whose caller has gone before the answer.
func (s *Server) giveBack(q *queue, got []held) {
	for _, h := range got {
		if !h.stands() {
			continue
		}
		h.m.receives--
		h.m.receivesHere--
		if h.m.receives == 0 {
			h.m.firstReceived = time.Time{}
		}
		q.show(h.m)
		q.refresh(h.m.group)
	}
	s.touch(q)
}

// repeat answers a receive that was made before under its attempt id: the same
// messages and handles with a new visibility time-out, as long as none of them
// was deleted or became visible meanwhile.
func (q *queue) repeat(r *receiver, until, now time.Time) []held {
	if r.attemptID == "" {
		return nil
	}
	maps.DeleteFunc(q.attempts, func(_ string, a attempt) bool { return !now.Before(a.until) })
	a, ok := q.attempts[r.attemptID]
	if !ok || slices.ContainsFunc(a.messages, func(h held) bool { return !h.stands() }) {
		return nil
	}
	for _, h := range a.messages {
		q.retime(h.m, until)
	}
	return a.messages
}

// systemAttributes are the names a receive may ask for.
var systemAttributes = []string{"SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp",
	"SequenceNumber", "MessageDeduplicationId", "MessageGroupId", "AWSTraceHeader", "DeadLetterQueueSourceArn"}

// render writes received messages as r wants to see them.
func render(q *queue, r *receiver, got []held) receiveResult {
	var out receiveResult
	for _, h := range got {
		m := h.m
		rm := receivedMessage{MessageId: m.id, ReceiptHandle: formatReceipt(q, m), MD5OfBody: m.bodyMD5, Body: m.body}
		system := map[string]string{
			"SenderId":                         "AIDALOCALAWSSQS000000",
			"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
			"ApproximateReceiveCount":          strconv.Itoa(m.receives),
			"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.firstReceived.UnixMilli(), 10),
			"SequenceNumber":                   formatSequence(m.sequence),
			"MessageGroupId":                   m.groupID,
			"MessageDeduplicationId":           m.dedupID,
			"AWSTraceHeader":                   m.trace,
			"DeadLetterQueueSourceArn":         m.sourceARN,
		}
		maps.DeleteFunc(system, func(name, value string) bool {
			return value == "" || !slices.Contains(r.system, name) && !slices.Contains(r.system, "All")
		})
		rm.Attributes = system
		for name, a := range m.attributes {
			if wanted(r.attributes, name) {
				if rm.MessageAttributes == nil {
					rm.MessageAttributes = map[string]attribute{}
				}
				rm.MessageAttributes[name] = a
			}
		}
		rm.MD5OfMessageAttributes = attributesMD5(rm.MessageAttributes)
		out.Messages = append(out.Messages, rm)
	}
	return out
}

// wanted says whether names, which may be All, .* or prefix.*, ask for name.
func wanted(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		prefix, isPrefix := strings.CutSuffix(n, ".*")
		return n == "All" || n == name || isPrefix && (prefix == "" || strings.HasPrefix(name, prefix+"."))
	})
}
