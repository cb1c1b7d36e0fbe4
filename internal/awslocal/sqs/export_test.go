package sqs

import "fmt"

// Fill sends count messages, numbered from first in body and deduplication id,
// without a request for each: for tests of long backlogs.
func (s *Server) Fill(name string, count, first int, group func(n int) string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := first; n < first+count; n++ {
		id, g := fmt.Sprint(n), group(n)
		in := sendInput{MessageBody: id, MessageGroupId: &g, MessageDeduplicationId: &id}
		if _, err := s.send(s.queues[name], &in, s.opts.Now()); err != nil {
			return fmt.Errorf("sending message %d: %w", n, err)
		}
	}
	s.settle(s.opts.Now())
	return nil
}
