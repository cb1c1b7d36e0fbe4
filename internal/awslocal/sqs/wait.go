package sqs

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// waiter is a receive in line for messages. All but kick is guarded by the
// server's lock.
type waiter struct {
	*receiver
	deadline time.Time
	armed    time.Time     // when its timer fires
	kick     chan struct{} // look again: served, the queue is gone, or armed is too late
	served   bool
	got      []held
	out      receiveResult
	err      error
}

func newWaiter(r *receiver, now time.Time) *waiter {
	deadline := now.Add(r.wait)
	return &waiter{receiver: r, deadline: deadline, armed: deadline, kick: make(chan struct{}, 1)}
}

func (w *waiter) wake() {
	select {
	case w.kick <- struct{}{}:
	default: // it has not looked since the last one
	}
}

// serveWaiters hands visible messages to the line of waiting receives, in order.
func (s *Server) serveWaiters(q *queue, now time.Time) {
	for len(q.waiters) > 0 && q.deliverable() {
		w := q.waiters[0]
		got := s.receive(q, w.receiver, now)
		if len(got) == 0 {
			break // only dead letters were left
		}
		w.got, w.served = got, true
		w.out = render(q, w.receiver, got)
		q.waiters = slices.Delete(q.waiters, 0, 1)
		w.wake()
	}
	if len(q.waiters) > 0 {
		if next, ok := q.nextChange(); ok && next.Before(q.waiters[0].armed) {
			q.waiters[0].wake()
		}
	}
}

// await waits until w is served, its time is up, or ctx ends.
func (s *Server) await(ctx context.Context, q *queue, w *waiter) (any, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now, done := s.look(q, w)
		if ctx.Err() != nil {
			s.abandon(q, w)
			return nil, fmt.Errorf("waiting for messages: %w", ctx.Err())
		}
		if done {
			return w.out, w.err
		}
		timer.Reset(w.armed.Sub(now))
		select {
		case <-w.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// look serves the line and says whether w has its answer. If not, it sets when w
// has to look again: the first in line looks after the queue's next moment, too.
func (s *Server) look(q *queue, w *waiter) (now time.Time, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.opts.Now()
	s.touch(q)
	s.settle(now)
	switch {
	case w.served:
		return now, true
	case q.gone:
		w.err = noSuchQueue()
		return now, true
	case !now.Before(w.deadline):
		s.leave(q, w)
		return now, true
	}
	w.armed = w.deadline
	if next, ok := q.nextChange(); ok && q.waiters[0] == w && next.Before(w.armed) {
		w.armed = next
	}
	return now, false
}

// leave takes w out of the line; the new first in line must set its timer.
func (s *Server) leave(q *queue, w *waiter) {
	q.waiters = slices.DeleteFunc(q.waiters, func(x *waiter) bool { return x == w })
	s.touch(q)
	s.settle(s.opts.Now())
}

// abandon ends a wait nobody waits for any more. Messages it was handed in the
// same moment go back, uncounted.
func (s *Server) abandon(q *queue, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.served {
		s.giveBack(q, w.got)
	}
	s.leave(q, w)
}
