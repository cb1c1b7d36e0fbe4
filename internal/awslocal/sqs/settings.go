package sqs

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxMessageBytes is the most a message, or all messages of a batch, may hold
// ("Amazon SQS message quotas": 1 MiB since August 2025).
const maxMessageBytes = 1 << 20

// settings are a queue's attributes: as they were set, for GetQueueAttributes,
// and as the queue uses them.
type settings struct {
	attributes map[string]string

	visibility, delay, retention, wait time.Duration
	maxBytes                           int
	contentDedup, groupDedup           bool
	redrive                            *redrivePolicy
}

type redrivePolicy struct {
	targetARN   string
	maxReceives int
}

// numbers are the attributes with a range (CreateQueue in the API Reference).
var numbers = map[string]struct{ min, max, initial int }{
	"DelaySeconds":                  {0, 900, 0},
	"MaximumMessageSize":            {1024, maxMessageBytes, maxMessageBytes},
	"MessageRetentionPeriod":        {60, 1_209_600, 345_600},
	"ReceiveMessageWaitTimeSeconds": {0, 20, 0},
	"VisibilityTimeout":             {0, 43_200, 30},
	"KmsDataKeyReusePeriodSeconds":  {60, 86_400, 300},
}

// choices are the attributes with a fixed set of values.
var choices = map[string][]string{
	"ContentBasedDeduplication": {"true", "false"},
	"DeduplicationScope":        {"queue", "messageGroup"},
	"FifoThroughputLimit":       {"perQueue", "perMessageGroupId"},
	"SqsManagedSseEnabled":      {"true", "false"},
}

// texts are the attributes that are checked elsewhere or only stored.
var texts = []string{"RedrivePolicy", "RedriveAllowPolicy", "Policy", "KmsMasterKeyId", "FifoQueue"}

var fifoOnly = []string{"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"}

func initialSettings(fifo bool) settings {
	s := settings{attributes: map[string]string{"SqsManagedSseEnabled": "true"}}
	for name, n := range numbers {
		if name != "KmsDataKeyReusePeriodSeconds" { // only shown once set
			s.attributes[name] = strconv.Itoa(n.initial)
		}
	}
	if fifo {
		s.attributes["FifoQueue"] = "true"
		s.attributes["ContentBasedDeduplication"] = "false"
		s.attributes["DeduplicationScope"] = "queue"
		s.attributes["FifoThroughputLimit"] = "perQueue"
	}
	return s
}

// changeSettings returns old with changes applied, for the queue with that ARN.
// It changes nothing else.
func (s *Server) changeSettings(old settings, arn string, fifo bool, changes map[string]string) (settings, error) {
	attributes := maps.Clone(old.attributes)
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		value := changes[name]
		if err := checkAttribute(name, value, fifo); err != nil {
			return settings{}, err
		}
		if value == "" {
			delete(attributes, name)
			continue
		}
		attributes[name] = value
		if name == "KmsMasterKeyId" {
			delete(attributes, "SqsManagedSseEnabled")
		}
	}
	if attributes["FifoThroughputLimit"] == "perMessageGroupId" && attributes["DeduplicationScope"] != "messageGroup" {
		return settings{}, invalidValue("perMessageGroupId", "FifoThroughputLimit",
			"It is allowed only when the value of DeduplicationScope is messageGroup.")
	}
	redrive, err := s.parseRedrivePolicy(attributes["RedrivePolicy"], arn, fifo)
	if err != nil {
		return settings{}, err
	}
	if _, err := parseAllowPolicy(attributes["RedriveAllowPolicy"]); err != nil {
		return settings{}, err
	}
	return settings{
		attributes:   attributes,
		visibility:   seconds(attributes["VisibilityTimeout"]),
		delay:        seconds(attributes["DelaySeconds"]),
		retention:    seconds(attributes["MessageRetentionPeriod"]),
		wait:         seconds(attributes["ReceiveMessageWaitTimeSeconds"]),
		maxBytes:     number(attributes["MaximumMessageSize"]),
		contentDedup: attributes["ContentBasedDeduplication"] == "true",
		groupDedup:   attributes["DeduplicationScope"] == "messageGroup",
		redrive:      redrive,
	}, nil
}

// number reads a value that checkAttribute has accepted.
func number(value string) int {
	n, _ := strconv.Atoi(value)
	return n
}

func seconds(value string) time.Duration { return time.Duration(number(value)) * time.Second }

func checkAttribute(name, value string, fifo bool) error {
	unknown := newError("InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute %s.", name)
	invalid := newError("InvalidAttributeValue", "InvalidAttributeValue", "Invalid value for the parameter %s.", name)
	if slices.Contains(fifoOnly, name) && !fifo {
		return unknown
	}
	if name == "FifoQueue" && value != "true" {
		return invalid
	}
	if n, ok := numbers[name]; ok {
		got, err := strconv.Atoi(value)
		if err != nil || got < n.min || got > n.max {
			return invalid
		}
		return nil
	}
	if allowed, ok := choices[name]; ok {
		if !slices.Contains(allowed, value) {
			return invalid
		}
		return nil
	}
	if !slices.Contains(texts, name) {
		return unknown
	}
	return nil
}

// parseRedrivePolicy reads a RedrivePolicy of the queue with that ARN; nil for an empty one.
func (s *Server) parseRedrivePolicy(policy, arn string, fifo bool) (*redrivePolicy, error) {
	if policy == "" {
		return nil, nil
	}
	invalid := func(reason string) error { return invalidValue(policy, "RedrivePolicy", reason) }
	var p struct {
		Target string `json:"deadLetterTargetArn"`
		Max    any    `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return nil, invalid("Redrive policy is not a valid JSON map.")
	}
	maxReceives := 0
	switch n := p.Max.(type) {
	case float64:
		maxReceives = int(n)
		if float64(maxReceives) != n {
			maxReceives = 0
		}
	case string:
		maxReceives, _ = strconv.Atoi(n)
	}
	if p.Target == "" {
		return nil, invalid("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	}
	if maxReceives < 1 || maxReceives > 1000 {
		return nil, invalid("Invalid value for maxReceiveCount: " + strconv.Quote(toString(p.Max)) + ", valid values are from 1 to 1000 both inclusive.")
	}
	target := s.byARN(p.Target)
	if target == nil {
		return nil, invalid("Dead letter target does not exist.")
	}
	if target.fifo != fifo {
		return nil, invalid("Dead-letter queue must be same type of queue as the source.")
	}
	// parseAllowPolicy accepted it when it was set.
	allow, _ := parseAllowPolicy(target.settings.attributes["RedriveAllowPolicy"])
	if allow.permission == "denyAll" || allow.permission == "byQueue" && !slices.Contains(allow.sources, arn) {
		return nil, invalid("Queue can't be used as a Dead Letter Queue.")
	}
	return &redrivePolicy{targetARN: p.Target, maxReceives: maxReceives}, nil
}

func toString(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

type allowPolicy struct {
	permission string
	sources    []string
}

func parseAllowPolicy(policy string) (allowPolicy, error) {
	if policy == "" {
		return allowPolicy{permission: "allowAll"}, nil
	}
	var p struct {
		Permission string   `json:"redrivePermission"`
		Sources    []string `json:"sourceQueueArns"`
	}
	err := json.Unmarshal([]byte(policy), &p)
	known := slices.Contains([]string{"allowAll", "denyAll", "byQueue"}, p.Permission)
	// "up to 10 source queues", and only with byQueue (SetQueueAttributes).
	if err != nil || !known || len(p.Sources) > 10 || (p.Permission == "byQueue") != (len(p.Sources) > 0) {
		return allowPolicy{}, invalidValue(policy, "RedriveAllowPolicy", "Redrive allow policy is not valid.")
	}
	return allowPolicy{p.Permission, p.Sources}, nil
}

var (
	standardName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	fifoName     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,75}\.fifo$`)
)

func checkQueueName(name string, fifo bool) error {
	switch {
	case fifo && !fifoName.MatchString(name):
		return invalidParameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
	case !fifo && !standardName.MatchString(name):
		return invalidParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
	}
	return nil
}

// parseQueueURL returns the queue name a URL ends with; the host does not count,
// so that one server may be reached by several names.
func (s *Server) parseQueueURL(url string) (string, bool) {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	parts := strings.Split(strings.TrimSuffix(url, "/"), "/")
	if len(parts) < 2 || parts[len(parts)-2] != s.opts.Account {
		return "", false
	}
	return parts[len(parts)-1], true
}
