package sqs

import (
	"container/heap"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxVisibility is how long a message may be invisible, counted from its receive.
const maxVisibility = 12 * time.Hour

// formatReceipt makes the handle of m's last receive.
func formatReceipt(q *queue, m *message) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s %s %d", q.name, m.id, m.receipt))
}

// parseReceipt finds the message of a handle; nil when it is gone. current says
// whether no later receive has replaced the handle.
func (q *queue) parseReceipt(handle string) (m *message, current bool, err error) {
	if handle == "" {
		return nil, false, missingParameter("ReceiptHandle")
	}
	text, err := base64.StdEncoding.DecodeString(handle)
	parts := strings.Split(string(text), " ")
	if err != nil || len(parts) != 3 || parts[0] != q.name {
		return nil, false, invalidReceipt(handle)
	}
	receipt, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return nil, false, invalidReceipt(handle)
	}
	m = q.byID[parts[1]]
	return m, m != nil && m.receipt == receipt, nil
}

type receiptEntry struct{ Id, ReceiptHandle string }

func (e receiptEntry) id() string { return e.Id }

type deleteMessageInput struct{ QueueUrl, ReceiptHandle string }

func (s *Server) deleteMessage(c *call, in *deleteMessageInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	return nil, q.delete(in.ReceiptHandle)
}

type deleteMessageBatchInput struct {
	QueueUrl string
	Entries  []receiptEntry
}

func (s *Server) deleteMessageBatch(c *call, in *deleteMessageBatchInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(in.Entries); err != nil {
		return nil, err
	}
	return runBatch(in.Entries, func(e receiptEntry) (any, error) {
		return idResult{e.Id}, q.delete(e.ReceiptHandle)
	}), nil
}

// delete deletes the message of a handle, which must not have expired.
func (q *queue) delete(handle string) error {
	m, current, err := q.parseReceipt(handle)
	switch {
	case err != nil:
		return err
	case m == nil:
		return nil
	case !current || m.state != inFlight:
		return expiredReceipt(handle)
	}
	q.remove(m)
	return nil
}

type changeVisibilityInput struct {
	QueueUrl, ReceiptHandle string
	VisibilityTimeout       *int
}

func (s *Server) changeVisibility(c *call, in *changeVisibilityInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	return nil, q.changeVisibility(in.ReceiptHandle, in.VisibilityTimeout, c.now)
}

type visibilityEntry struct {
	receiptEntry
	VisibilityTimeout *int
}

type changeVisibilityBatchInput struct {
	QueueUrl string
	Entries  []visibilityEntry
}

func (s *Server) changeVisibilityBatch(c *call, in *changeVisibilityBatchInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(in.Entries); err != nil {
		return nil, err
	}
	return runBatch(in.Entries, func(e visibilityEntry) (any, error) {
		if e.VisibilityTimeout == nil {
			e.VisibilityTimeout = new(int) // optional in a batch, and 0 without it
		}
		return idResult{e.Id}, q.changeVisibility(e.ReceiptHandle, e.VisibilityTimeout, c.now)
	}), nil
}

func (q *queue) changeVisibility(handle string, timeout *int, now time.Time) error {
	if timeout == nil {
		return missingParameter("VisibilityTimeout")
	}
	d, err := visibilityTimeout(*timeout)
	if err != nil {
		return err
	}
	m, current, err := q.parseReceipt(handle)
	switch {
	case err != nil:
		return err
	case m == nil:
		return invalidValue(handle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	case m.state != inFlight:
		return queueError("MessageNotInflight", "The message referred to is not in flight.")
	case !current:
		return expiredReceipt(handle)
	}
	// In whole seconds, so that 43200 can be asked for right after the receive.
	if now.Sub(m.lastReceived).Truncate(time.Second)+d > maxVisibility {
		return invalidValue(*timeout, "VisibilityTimeout", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds].")
	}
	q.retime(m, now.Add(d))
	return nil
}

// retime changes when an in-flight message becomes visible. One that is due now
// does so when the queue is settled, or with the next operation of this batch.
func (q *queue) retime(m *message, until time.Time) {
	m.at = until
	heap.Fix(&q.timers, m.timer)
}

func visibilityTimeout(n int) (time.Duration, error) {
	d := time.Duration(n) * time.Second
	if n < 0 || d > maxVisibility {
		return 0, invalidValue(n, "VisibilityTimeout", "Must be between 0 and 43200 seconds.")
	}
	return d, nil
}
