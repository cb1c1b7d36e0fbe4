package sqs

import (
	"encoding/base64"
	"time"
)

// deadLetterQueue is where m belongs instead of being received once more; nil
// when it may be received.
func (s *Server) deadLetterQueue(q *queue, m *message) *queue {
	p := q.settings.redrive
	if p == nil || m.receivesHere < p.maxReceives {
		return nil
	}
	return s.byARN(p.targetARN) // nil when it was deleted: then m goes on being received
}

// moveDeadLetter moves m to target as SQS does by itself.
func (s *Server) moveDeadLetter(q, target *queue, m *message, now time.Time) {
	q.remove(m)
	m.receivesHere = 0
	m.sourceARN = q.arn
	s.enqueue(target, m, now)
}

// moveTask is a finished StartMessageMoveTask.
type moveTask struct {
	id, destinationARN    string
	started               time.Time
	rate                  *int
	total, moved          int
	status, failureReason string
}

type startMoveTaskInput struct {
	SourceArn, DestinationArn    string
	MaxNumberOfMessagesPerSecond *int
}

func (s *Server) startMoveTask(c *call, in *startMoveTaskInput) (any, error) {
	source, err := s.moveSource(in.SourceArn)
	if err != nil {
		return nil, err
	}
	var destination *queue
	if in.DestinationArn != "" {
		if destination = s.byARN(in.DestinationArn); destination == nil {
			return nil, noSuchResource("DestinationArn")
		}
		if destination == source {
			return nil, invalidValue(in.DestinationArn, "DestinationArn", "The source and the destination must not be the same queue.")
		}
	}
	if rate := in.MaxNumberOfMessagesPerSecond; rate != nil && (*rate < 1 || *rate > 500) {
		return nil, invalidValue(*rate, "MaxNumberOfMessagesPerSecond", "You must enter a number that is between 1 and 500.")
	}
	s.touch(source)
	s.settle(c.now)
	t := moveTask{id: s.opts.NewID(), destinationARN: in.DestinationArn, started: c.now, rate: in.MaxNumberOfMessagesPerSecond}
	s.move(&t, source, destination, c.now)
	// AWS lists up to ten tasks of a queue.
	s.tasks[source.arn] = append([]moveTask{t}, s.tasks[source.arn]...)
	if len(s.tasks[source.arn]) > 10 {
		s.tasks[source.arn] = s.tasks[source.arn][:10]
	}
	handle := base64.StdEncoding.EncodeToString([]byte(`{"taskId":"` + t.id + `","sourceArn":"` + source.arn + `"}`))
	return struct{ TaskHandle string }{handle}, nil
}

// moveSource finds the dead-letter queue with that ARN.
func (s *Server) moveSource(arn string) (*queue, error) {
	if arn == "" {
		return nil, missingParameter("SourceArn")
	}
	source := s.byARN(arn)
	if source == nil {
		return nil, noSuchResource("SourceArn")
	}
	for _, q := range s.queues {
		if q.settings.redrive != nil && q.settings.redrive.targetARN == arn {
			return source, nil
		}
	}
	return nil, invalidParameter("Source queue must be configured as a Dead Letter Queue.")
}

// move moves what a receive could get from source, in order, until all is moved
// or one message has nowhere to go.
func (s *Server) move(t *moveTask, source, destination *queue, now time.Time) {
	var movable []*message
	for m := source.all.head; m != nil; m = source.all.next(m) {
		if m.state == waiting && m.group.busy == 0 {
			movable = append(movable, m)
		}
	}
	t.status, t.total = "COMPLETED", len(movable)
	for _, m := range movable {
		target := destination
		if target == nil {
			if m.sourceARN == "" {
				t.status, t.failureReason = "FAILED", "CouldNotDetermineMessageSource"
				return
			}
			if target = s.byARN(m.sourceARN); target == nil {
				t.status, t.failureReason = "FAILED", "AWS.SimpleQueueService.NonExistentQueue"
				return
			}
		}
		source.remove(m)
		s.enqueue(target, &message{
			id: s.opts.NewID(), body: m.body, bodyMD5: m.bodyMD5, attributes: m.attributes, trace: m.trace,
			groupID: m.groupID, dedupID: m.dedupID,
		}, now)
		t.moved++
	}
}

type listMoveTasksInput struct {
	SourceArn  string
	MaxResults *int
}

type moveTaskResult struct {
	Status                            string
	SourceArn                         string
	DestinationArn                    string `json:",omitempty"`
	MaxNumberOfMessagesPerSecond      *int   `json:",omitempty"`
	ApproximateNumberOfMessagesMoved  int
	ApproximateNumberOfMessagesToMove int
	FailureReason                     string `json:",omitempty"`
	StartedTimestamp                  int64  // milliseconds
}

func (s *Server) listMoveTasks(_ *call, in *listMoveTasksInput) (any, error) {
	source, err := s.moveSource(in.SourceArn)
	if err != nil {
		return nil, err
	}
	limit := 1
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	if limit < 1 || limit > 10 {
		return nil, invalidValue(limit, "MaxResults", "Must be an integer from 1 to 10.")
	}
	results := []moveTaskResult{}
	for _, t := range s.tasks[source.arn][:min(limit, len(s.tasks[source.arn]))] {
		results = append(results, moveTaskResult{
			Status: t.status, SourceArn: source.arn, DestinationArn: t.destinationARN, MaxNumberOfMessagesPerSecond: t.rate,
			ApproximateNumberOfMessagesMoved: t.moved, ApproximateNumberOfMessagesToMove: t.total,
			FailureReason: t.failureReason, StartedTimestamp: t.started.UnixMilli(),
		})
	}
	return struct{ Results []moveTaskResult }{results}, nil
}
