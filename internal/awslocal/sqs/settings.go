package sqs

import (
	"encoding/json"
	"fmt"
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
	"FifoQueue":                 {"true"},
	"ContentBasedDeduplication": {"true", "false"},
	"DeduplicationScope":        {"queue", "messageGroup"},
	"FifoThroughputLimit":       {"perQueue", "perMessageGroupId"},
	"SqsManagedSseEnabled":      {"true", "false"},
}

// unsupportedAttributes are those that would change who may do what.
var unsupportedAttributes = []string{"Policy", "RedriveAllowPolicy"}

func initialSettings() settings {
	attributes := map[string]string{
		"FifoQueue": "true", "ContentBasedDeduplication": "false", "DeduplicationScope": "queue",
		"FifoThroughputLimit": "perQueue", "SqsManagedSseEnabled": "true",
	}
	for name, n := range numbers {
		if name != "KmsDataKeyReusePeriodSeconds" { // only shown once set
			attributes[name] = strconv.Itoa(n.initial)
		}
	}
	return settings{attributes: attributes}
}

// changeSettings returns old with changes applied. It changes nothing else.
func (s *Server) changeSettings(old settings, changes map[string]string) (settings, error) {
	attributes := maps.Clone(old.attributes)
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		value := changes[name]
		if err := checkAttribute(name, value); err != nil {
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
	redrive, err := s.parseRedrivePolicy(attributes["RedrivePolicy"])
	if err != nil {
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

func checkAttribute(name, value string) error {
	valid := true
	if n, ok := numbers[name]; ok {
		got, err := strconv.Atoi(value)
		valid = err == nil && n.min <= got && got <= n.max
	} else if allowed, ok := choices[name]; ok {
		valid = slices.Contains(allowed, value)
	} else if slices.Contains(unsupportedAttributes, name) {
		return unsupported("The attribute " + name)
	} else if name != "RedrivePolicy" && name != "KmsMasterKeyId" {
		return unknownAttribute(name)
	}
	if !valid {
		return newError("InvalidAttributeValue", "InvalidAttributeValue", "Invalid value for the parameter %s.", name)
	}
	return nil
}

func unknownAttribute(name string) error {
	return newError("InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute %s.", name)
}

// parseRedrivePolicy reads a RedrivePolicy; nil for an empty one.
func (s *Server) parseRedrivePolicy(policy string) (*redrivePolicy, error) {
	if policy == "" {
		return nil, nil
	}
	invalid := func(reason string) error { return invalidValue(policy, "RedrivePolicy", reason) }
	var p struct {
		Target string `json:"deadLetterTargetArn"`
		Max    any    `json:"maxReceiveCount"` // a number or a string of one
	}
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return nil, invalid("Redrive policy is not a valid JSON map.")
	}
	if p.Target == "" || p.Max == nil {
		return nil, invalid("Redrive policy does not contain mandatory attributes: deadLetterTargetArn, maxReceiveCount.")
	}
	maxReceives, err := strconv.Atoi(fmt.Sprint(p.Max))
	if err != nil || maxReceives < 1 || maxReceives > 1000 {
		return nil, invalid("Invalid value for maxReceiveCount, valid values are from 1 to 1000 both inclusive.")
	}
	if s.byARN(p.Target) == nil {
		return nil, invalid("Dead letter target does not exist.")
	}
	return &redrivePolicy{targetARN: p.Target, maxReceives: maxReceives}, nil
}

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,75}\.fifo$`)

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
