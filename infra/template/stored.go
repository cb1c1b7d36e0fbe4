package template

import (
	"fmt"
	"strconv"
)

// Table is a DynamoDB table.
type Table struct {
	Keys    []Key
	Indexes []Index
	TTL     string // the attribute; empty without

	OnDemand            bool
	PointInTimeRecovery bool
	DeletionProtection  bool

	Encryption     string // KMS, or empty for DynamoDB's own
	Key            Part   // the key of the stack it is encrypted under; empty for AWS's
	Named          bool   // has a physical name of its own
	DeletionPolicy string
	ReplacePolicy  string
}

// Key is a key attribute: its name, HASH or RANGE, and S, N or B.
type Key struct{ Name, Role, Type string }

// Index is a global secondary index.
type Index struct {
	Name       string
	Keys       []Key
	Projection string
}

// Table reads a table.
func (t Template) Table(part Part) (Table, error) {
	resource, err := t.find(part)
	if err != nil {
		return Table{}, err
	}
	if resource.Type != "AWS::DynamoDB::GlobalTable" {
		return Table{}, fmt.Errorf("%s is a %s", part, resource.Type)
	}
	p := resource.Properties
	types := map[string]string{}
	for _, definition := range list(p["AttributeDefinitions"]) {
		types[str(definition, "AttributeName")] = str(definition, "AttributeType")
	}
	keys := func(schema any) []Key {
		var keys []Key
		for _, key := range list(schema) {
			name := str(key, "AttributeName")
			keys = append(keys, Key{name, str(key, "KeyType"), types[name]})
		}
		return keys
	}
	table := Table{
		Keys:           keys(p["KeySchema"]),
		OnDemand:       str(p, "BillingMode") == "PAY_PER_REQUEST",
		Encryption:     str(p, "SSESpecification", "SSEType"),
		Named:          p["TableName"] != nil,
		DeletionPolicy: resource.DeletionPolicy,
		ReplacePolicy:  resource.UpdateReplacePolicy,
	}
	if at(p, "TimeToLiveSpecification", "Enabled") == true {
		table.TTL = str(p, "TimeToLiveSpecification", "AttributeName")
	}
	for _, index := range list(p["GlobalSecondaryIndexes"]) {
		table.Indexes = append(table.Indexes, Index{
			Name: str(index, "IndexName"), Keys: keys(at(index, "KeySchema")), Projection: str(index, "Projection", "ProjectionType"),
		})
	}
	replicas := list(p["Replicas"])
	if len(replicas) != 1 {
		return Table{}, fmt.Errorf("%s has %d replicas", part, len(replicas))
	}
	if key := at(replicas[0], "SSESpecification", "KMSMasterKeyId"); key != nil {
		value, err := valueOf(key)
		if err != nil {
			return Table{}, fmt.Errorf("key of %s: %w", part, err)
		}
		table.Key = value.Part
	}
	table.DeletionProtection = at(replicas[0], "DeletionProtectionEnabled") == true
	table.PointInTimeRecovery = at(replicas[0], "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled") == true
	return table, nil
}

// QueueSettings are a queue's attributes by SQS's own names and in its own texts, as GetQueueAttributes returns them.
type QueueSettings struct {
	Attributes map[string]string

	DeadLetterQueue Part // of the redrive policy
	MaxReceiveCount int
	MayRedriveFrom  string // RedriveAllowPolicy's permission: byQueue, denyAll, allowAll
	Name            string // a name of its own; empty without
}

// Queue reads a queue.
func (t Template) Queue(part Part) (QueueSettings, error) {
	resource, err := t.find(part)
	if err != nil {
		return QueueSettings{}, err
	}
	if resource.Type != "AWS::SQS::Queue" {
		return QueueSettings{}, fmt.Errorf("%s is a %s", part, resource.Type)
	}
	p := resource.Properties
	q := QueueSettings{
		Attributes:      map[string]string{},
		MaxReceiveCount: integer(p, "RedrivePolicy", "maxReceiveCount"),
		MayRedriveFrom:  str(p, "RedriveAllowPolicy", "redrivePermission"),
		Name:            str(p, "QueueName"),
	}
	if target := at(p, "RedrivePolicy", "deadLetterTargetArn"); target != nil {
		value, err := valueOf(target)
		if err != nil {
			return QueueSettings{}, fmt.Errorf("redrive policy of %s: %w", part, err)
		}
		q.DeadLetterQueue = value.Part
	}
	for name, value := range p {
		switch value := value.(type) {
		case bool:
			q.Attributes[name] = strconv.FormatBool(value)
		case float64:
			q.Attributes[name] = strconv.Itoa(int(value))
		case string:
			if name != "QueueName" {
				q.Attributes[name] = value
			}
		}
	}
	return q, nil
}

// Mapping is the event source mapping between queue and processor.
type Mapping struct {
	Source, Target          Part
	BatchSize               int
	BatchingWindow          int // seconds
	MaximumConcurrency      int
	ReportBatchItemFailures bool
	SaysEnabled             bool // the template has a word on it, and so overrides a pause
}

// Mapping reads the one mapping.
func (t Template) Mapping() (Mapping, error) {
	ids := t.OfType("AWS::Lambda::EventSourceMapping")
	if len(ids) != 1 {
		return Mapping{}, fmt.Errorf("the template has %d event source mappings", len(ids))
	}
	p := t.Resources[ids[0]].Properties
	source, err := valueOf(p["EventSourceArn"])
	if err != nil {
		return Mapping{}, fmt.Errorf("source of the mapping: %w", err)
	}
	target, err := valueOf(p["FunctionName"])
	if err != nil {
		return Mapping{}, fmt.Errorf("target of the mapping: %w", err)
	}
	m := Mapping{
		Source: source.Part, Target: target.Part,
		BatchSize:          integer(p, "BatchSize"),
		BatchingWindow:     integer(p, "MaximumBatchingWindowInSeconds"),
		MaximumConcurrency: integer(p, "ScalingConfig", "MaximumConcurrency"),
		SaysEnabled:        p["Enabled"] != nil,
	}
	for _, kind := range list(p["FunctionResponseTypes"]) {
		m.ReportBatchItemFailures = m.ReportBatchItemFailures || kind == "ReportBatchItemFailures"
	}
	return m, nil
}
