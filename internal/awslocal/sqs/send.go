package sqs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// sequenceBase makes sequence numbers have 20 digits, as AWS's do.
const sequenceBase = 10_000_000_000_000_000_000

func formatSequence(n uint64) string { return fmt.Sprintf("%020d", sequenceBase+n) }

// sendInput is what SendMessage and an entry of SendMessageBatch have in common.
type sendInput struct {
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       map[string]attribute
	MessageSystemAttributes map[string]attribute
	MessageGroupId          *string
	MessageDeduplicationId  *string
}

type sendResult struct {
	MessageId                    string
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string `json:",omitempty"`
	MD5OfMessageSystemAttributes string `json:",omitempty"`
	SequenceNumber               string
}

type sendMessageInput struct {
	QueueUrl string
	sendInput
}

func (s *Server) sendMessage(c *call, in *sendMessageInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	return s.send(q, &in.sendInput, c.now)
}

type sendEntry struct {
	Id string
	sendInput
}

func (e sendEntry) id() string { return e.Id }

type sendMessageBatchInput struct {
	QueueUrl string
	Entries  []sendEntry
}

func (s *Server) sendMessageBatch(c *call, in *sendMessageBatchInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(in.Entries); err != nil {
		return nil, err
	}
	total := 0
	for _, e := range in.Entries {
		// An entry with an error of its own fails alone, below.
		size, err := checkContent(e.MessageBody, e.MessageAttributes)
		if err != nil {
			size = len(e.MessageBody)
		}
		total += size
	}
	if total > maxMessageBytes {
		return nil, queueError("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessageBytes, total)
	}
	type success struct {
		Id string
		*sendResult
	}
	return runBatch(in.Entries, func(e sendEntry) (any, error) {
		result, err := s.send(q, &e.sendInput, c.now)
		return success{e.Id, result}, err
	}), nil
}

// send stores one message, unless it is a duplicate.
func (s *Server) send(q *queue, in *sendInput, now time.Time) (*sendResult, error) {
	size, err := checkContent(in.MessageBody, in.MessageAttributes)
	if err != nil {
		return nil, err
	}
	if size > q.settings.maxBytes {
		return nil, invalidParameter("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", q.settings.maxBytes)
	}
	m := &message{body: in.MessageBody, bodyMD5: textMD5(in.MessageBody), attributes: in.MessageAttributes}
	if err := setTrace(m, in.MessageSystemAttributes); err != nil {
		return nil, err
	}
	if err := address(q, m, in); err != nil {
		return nil, err
	}
	// Digests are those of this request, also for a duplicate with another body:
	// SDKs compare them with what they sent.
	result := &sendResult{
		MD5OfMessageBody:             m.bodyMD5,
		MD5OfMessageAttributes:       attributesMD5(in.MessageAttributes),
		MD5OfMessageSystemAttributes: attributesMD5(in.MessageSystemAttributes),
	}
	key := m.dedupID
	if q.settings.groupDedup {
		key = m.groupID + " " + m.dedupID // ids have no spaces
	}
	if original, ok := q.dedup[key]; ok {
		result.MessageId, result.SequenceNumber = original.id, formatSequence(original.sequence)
		return result, nil
	}
	m.id = s.opts.NewID()
	s.enqueue(q, m, now)
	result.MessageId, result.SequenceNumber = m.id, formatSequence(m.sequence)
	a := accepted{key: key, id: m.id, sequence: m.sequence, until: now.Add(dedupInterval)}
	q.dedup[key] = a
	q.dedupAge = append(q.dedupAge, a)
	return result, nil
}

// enqueue gives m its number and time and puts it at the end of q.
func (s *Server) enqueue(q *queue, m *message, now time.Time) {
	s.sequence++
	m.sequence = s.sequence
	m.sent = now
	q.put(m, now)
	s.touch(q)
}

// setTrace takes AWSTraceHeader, the only system attribute a sender may set. It
// does not count towards the message's size.
func setTrace(m *message, system map[string]attribute) error {
	for name, a := range system {
		if name != "AWSTraceHeader" {
			return invalidParameter("Message system attribute name '%s' is invalid.", name)
		}
		if a.DataType != "String" || a.value() == "" {
			return invalidParameter("The message system attribute '%s' must be a non-empty String.", name)
		}
		m.trace = a.value()
	}
	return nil
}

// address sets m's group and deduplication id.
func address(q *queue, m *message, in *sendInput) error {
	for _, id := range []struct {
		name  string
		value *string
	}{{"MessageGroupId", in.MessageGroupId}, {"MessageDeduplicationId", in.MessageDeduplicationId}} {
		if id.value != nil && !validID(*id.value) {
			return invalidValue(*id.value, id.name, id.name+" can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}
	}
	if in.DelaySeconds != nil && *in.DelaySeconds != 0 {
		return invalidValue(*in.DelaySeconds, "DelaySeconds", "The request include parameter that is not valid for this queue type.")
	}
	if in.MessageGroupId == nil {
		return missingParameter("MessageGroupId")
	}
	m.groupID = *in.MessageGroupId
	switch {
	case in.MessageDeduplicationId != nil:
		m.dedupID = *in.MessageDeduplicationId
	case q.settings.contentDedup:
		sum := sha256.Sum256([]byte(in.MessageBody))
		m.dedupID = hex.EncodeToString(sum[:])
	default:
		return invalidParameter("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	return nil
}
