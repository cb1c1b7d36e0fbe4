package sqs

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// recently is how long a deleted queue's name stays taken, and how long one purge
// keeps the next away (CreateQueue and PurgeQueue in the API Reference).
const recently = 60 * time.Second

// queueByURL finds a queue, advances it to now and has it settled afterwards.
func (s *Server) queueByURL(url string, now time.Time) (*queue, error) {
	if url == "" {
		return nil, missingParameter("QueueUrl")
	}
	name, ok := s.parseQueueURL(url)
	q := s.queues[name]
	if !ok || q == nil {
		return nil, noSuchQueue()
	}
	s.touch(q)
	s.settle(now) // time may have made messages visible that belong to those who wait
	s.touch(q)
	return q, nil
}

func (s *Server) arn(name string) string {
	return "arn:aws:sqs:" + s.opts.Region + ":" + s.opts.Account + ":" + name
}

func (s *Server) byARN(arn string) *queue {
	name := arn[strings.LastIndexByte(arn, ':')+1:]
	if q := s.queues[name]; q != nil && q.arn == arn {
		return q
	}
	return nil
}

func (s *Server) url(c *call, name string) string { return c.base + "/" + s.opts.Account + "/" + name }

type urlResult struct{ QueueUrl string }

type createQueueInput struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string `json:"tags"`
}

func (s *Server) createQueue(c *call, in *createQueueInput) (any, error) {
	if in.QueueName == "" {
		return nil, missingParameter("QueueName")
	}
	if len(in.Tags) > 0 {
		return nil, unsupported("Tagging queues")
	}
	fifo := in.Attributes["FifoQueue"] == "true"
	if !fifo && !strings.HasSuffix(in.QueueName, ".fifo") {
		return nil, unsupported("A standard queue")
	}
	if !fifo || !queueName.MatchString(in.QueueName) {
		return nil, invalidParameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
	}
	settings, err := s.changeSettings(initialSettings(), in.Attributes)
	if err != nil {
		return nil, err
	}
	if q := s.queues[in.QueueName]; q != nil {
		for _, name := range slices.Sorted(maps.Keys(in.Attributes)) {
			if q.settings.attributes[name] != in.Attributes[name] {
				return nil, newError("QueueNameExists", "QueueAlreadyExists",
					"A queue already exists with the same name and a different value for attribute %s", name)
			}
		}
		return urlResult{s.url(c, q.name)}, nil
	}
	if at, ok := s.deleted[in.QueueName]; ok && c.now.Before(at.Add(recently)) {
		return nil, queueError("QueueDeletedRecently",
			"You must wait 60 seconds after deleting a queue before you can create another with the same name.")
	}
	delete(s.deleted, in.QueueName)
	q := newQueue(in.QueueName, s.arn(in.QueueName), c.now)
	q.settings = settings
	s.queues[in.QueueName] = q
	return urlResult{s.url(c, q.name)}, nil
}

type getQueueURLInput struct{ QueueName, QueueOwnerAWSAccountId string }

func (s *Server) getQueueURL(c *call, in *getQueueURLInput) (any, error) {
	if in.QueueName == "" {
		return nil, missingParameter("QueueName")
	}
	owner := in.QueueOwnerAWSAccountId
	if s.queues[in.QueueName] == nil || owner != "" && owner != s.opts.Account {
		return nil, noSuchQueue()
	}
	return urlResult{s.url(c, in.QueueName)}, nil
}

type listInput struct {
	QueueNamePrefix, QueueUrl, NextToken string
	MaxResults                           *int
}

func (s *Server) listQueues(c *call, in *listInput) (any, error) {
	urls, next, err := s.list(c, in, func(q *queue) bool { return strings.HasPrefix(q.name, in.QueueNamePrefix) })
	return struct {
		QueueUrls []string `json:",omitempty"`
		NextToken string   `json:",omitempty"`
	}{urls, next}, err
}

func (s *Server) listSources(c *call, in *listInput) (any, error) {
	target, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	urls, next, err := s.list(c, in, func(q *queue) bool {
		return q.settings.redrive != nil && q.settings.redrive.targetARN == target.arn
	})
	return struct {
		QueueUrls []string `json:"queueUrls"` // not capitalised in the API either
		NextToken string   `json:",omitempty"`
	}{urls, next}, err
}

// list returns a page of the URLs of the queues that match, by name. The token
// of a page is the last name on the one before.
func (s *Server) list(c *call, in *listInput, match func(*queue) bool) (urls []string, next string, err error) {
	limit := 1000
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	if limit < 1 || limit > 1000 {
		return nil, "", invalidValue(limit, "MaxResults", "Must be an integer from 1 to 1000.")
	}
	after, err := base64.RawURLEncoding.DecodeString(in.NextToken)
	if err != nil {
		return nil, "", invalidValue(in.NextToken, "NextToken", "Invalid or expired next token.")
	}
	urls = []string{}
	last := ""
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if name <= string(after) || !match(s.queues[name]) {
			continue
		}
		if len(urls) == limit {
			if in.MaxResults != nil { // without it AWS answers no token
				next = base64.RawURLEncoding.EncodeToString([]byte(last))
			}
			break
		}
		urls = append(urls, s.url(c, name))
		last = name
	}
	return urls, next, nil
}

type queueInput struct{ QueueUrl string }

func (s *Server) deleteQueue(c *call, in *queueInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	delete(s.queues, q.name)
	s.deleted[q.name] = c.now
	q.purge()
	q.gone = true
	for _, w := range q.waiters {
		w.wake()
	}
	return nil, nil
}

func (s *Server) purgeQueue(c *call, in *queueInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	if !q.purged.IsZero() && c.now.Before(q.purged.Add(recently)) {
		return nil, queueError("PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.name)
	}
	q.purged = c.now
	q.purge()
	return nil, nil
}

type attributesInput struct {
	QueueUrl       string
	AttributeNames []string
}

func (s *Server) getQueueAttributes(c *call, in *attributesInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(q.settings.attributes)
	all["QueueArn"] = q.arn
	all["CreatedTimestamp"] = strconv.FormatInt(q.created.Unix(), 10)
	all["LastModifiedTimestamp"] = strconv.FormatInt(q.modified.Unix(), 10)
	for i, count := range []int{q.visible(), q.inFlight, q.delayed} {
		all[countAttributes[i]] = strconv.Itoa(count)
	}
	out := map[string]string{}
	for _, name := range in.AttributeNames {
		if name == "All" {
			out = all
			break
		}
		if value, ok := all[name]; ok {
			out[name] = value
		} else if !knownAttribute(name) {
			return nil, unknownAttribute(name)
		}
	}
	return struct {
		Attributes map[string]string `json:",omitempty"`
	}{out}, nil
}

// countAttributes are the counts of waiting, in-flight and delayed messages.
var countAttributes = []string{"ApproximateNumberOfMessages",
	"ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"}

// knownAttribute says whether a queue could have the attribute.
func knownAttribute(name string) bool {
	_, number := numbers[name]
	_, choice := choices[name]
	return number || choice || slices.Contains(unsupportedAttributes, name) || slices.Contains(countAttributes, name) ||
		slices.Contains([]string{"QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", "RedrivePolicy", "KmsMasterKeyId"}, name)
}

type setAttributesInput struct {
	QueueUrl   string
	Attributes map[string]string
}

func (s *Server) setQueueAttributes(c *call, in *setAttributesInput) (any, error) {
	q, err := s.queueByURL(in.QueueUrl, c.now)
	if err != nil {
		return nil, err
	}
	if len(in.Attributes) == 0 {
		return nil, missingParameter("Attributes")
	}
	changed, err := s.changeSettings(q.settings, in.Attributes)
	if err != nil {
		return nil, err
	}
	redelay := changed.delay != q.settings.delay
	q.settings = changed
	q.modified = c.now
	if redelay {
		q.redelay(c.now)
	}
	return nil, nil
}
