package sim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"path"
	"time"

	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/schema"
)

// lookAtQueue takes what an applied call changed in a queue. The caller holds the lock.
func (w *world) lookAtQueue(action string, in wireRequest, body []byte) {
	var out wireAnswer
	_ = json.Unmarshal(body, &out) // what is not there stays empty
	messages := w.messages
	dead := path.Base(in.QueueUrl) == path.Base(w.names.DeadLetterURL)
	if dead {
		messages = w.dead
	}
	switch action {
	case "SendMessage":
		w.sent(messages, !dead, out.MessageId, out.SequenceNumber, in.MessageBody)
	case "SendMessageBatch":
		for _, ok := range out.Successful {
			for _, e := range in.Entries {
				if e.Id == ok.Id {
					w.sent(messages, !dead, ok.MessageId, ok.SequenceNumber, e.MessageBody)
				}
			}
		}
	case "ReceiveMessage":
		for _, m := range out.Messages {
			// One that was moved here, or whose sender was gone before the answer, or is not there yet to hear it.
			w.sent(messages, !dead, m.MessageId, m.Attributes.SequenceNumber, m.Body)
			hide(messages, m.MessageId, schema.VisibilityTimeout)
		}
	case "ChangeMessageVisibilityBatch":
		for _, ok := range out.Successful {
			for _, e := range in.Entries {
				if e.Id == ok.Id {
					hide(messages, messageOf(e.ReceiptHandle), time.Duration(e.VisibilityTimeout)*time.Second)
				}
			}
		}
	case "DeleteMessage":
		delete(messages, messageOf(in.ReceiptHandle))
	case "DeleteMessageBatch":
		for _, ok := range out.Successful {
			for _, e := range in.Entries {
				if e.Id == ok.Id {
					delete(messages, messageOf(e.ReceiptHandle))
				}
			}
		}
	case "PurgeQueue":
		for _, m := range messages {
			if wit := w.events[m.key]; wit != nil {
				wit.lost = true
			}
		}
		clear(messages)
		for _, g := range w.groups {
			g.ready = time.Time{} // until the sweep has been
		}
	}
}

func (w *world) sent(messages map[string]pointerMessage, main bool, id, sequence, body string) {
	if id == "" { // it was sent, and the caller gone before the answer: a receive, or its retry, will tell the id
		if pointer, err := queue.Decode(body); err == nil && w.events[ledger.Key(pointer.Key)] != nil {
			w.events[ledger.Key(pointer.Key)].moved = true
		}
		return
	}
	if w.seen[id] {
		return // a duplicate by SQS's own rule: nothing was stored
	}
	w.seen[id] = true
	wit := w.enter(messages, id, body)
	if wit == nil {
		w.violate("stored", "", "a message nobody sent: "+body)
		return
	}
	wit.moved = false
	if main {
		wit.lost = false
		if wit.enqueuedAt.IsZero() {
			wit.enqueuedAt = time.Now()
		}
		if wit.firstSequence == "" {
			wit.firstSequence = sequence
		}
		if g := w.group(wit.group); g.ready.IsZero() {
			g.ready = time.Now()
		}
	}
}

func (w *world) enter(messages map[string]pointerMessage, id, body string) *witness {
	pointer, err := queue.Decode(body)
	if err != nil {
		return nil
	}
	messages[id] = pointerMessage{key: ledger.Key(pointer.Key), generation: pointer.Generation}
	return w.events[ledger.Key(pointer.Key)]
}

// messageOf is the id of the message a receipt handle of the local SQS is for.
func messageOf(receipt string) string {
	text, err := base64.StdEncoding.DecodeString(receipt)
	if parts := bytes.Fields(text); err == nil && len(parts) == 3 {
		return string(parts[1])
	}
	return ""
}

func hide(messages map[string]pointerMessage, id string, d time.Duration) {
	if m, known := messages[id]; known {
		m.hidden = time.Now().Add(d)
		messages[id] = m
	}
}

// hasPointer reports whether a message in the queue points to the event.
func (w *world) hasPointer(wit *witness) bool {
	if wit.moved {
		return true
	}
	for _, m := range w.messages {
		if m.key == wit.key {
			return true
		}
	}
	return false
}
