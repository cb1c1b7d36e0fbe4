// Package schema names what the infrastructure creates and the functions use: the keys, indexes and attributes of
// the tables and the attributes of the queues. The CDK app, the local AWS and the adapters all read these
// constants, so that a table in the cloud, one on a laptop and the code cannot disagree.
package schema

import "time"

// The key attributes every table shares. The ledger and the control table have PK only.
const (
	PK = "pk"
	SK = "sk"
)

// The ledger's sparse index of entries that are not settled: Open is its partition key, RecordedMS its sort key,
// its projection is KEYS_ONLY.
const (
	OpenIndex  = "open"
	Open       = "open"
	RecordedMS = "recorded_ms"
)

// DeleteAfterS is the TTL attribute of the ledger, in seconds since the epoch.
// The billing and control tables have no TTL.
const DeleteAfterS = "delete_after_s"

// OpenPartitions is how many partitions the open index is spread over, for todo and for parked each: one partition
// of an index takes 1,000 write units a second (Amazon DynamoDB Developer Guide, "Best practices for designing and
// using partition keys"); 4 carry 2,000 events a second, each entering and leaving the index once.
const OpenPartitions = 4

// The second key of the billing table's index, which answers questions across customers, such as who has an
// entitlement.
const (
	BillingIndex = "gsi1"
	BillingPK1   = "gsi1pk"
	BillingSK1   = "gsi1sk"
)

// Queue numbers. The infrastructure and the local AWS create queues with these; each has its reason.
const (
	// MaxReceiveCount is the highest SQS takes: receives are not attempts, since messages handed back unrun behind
	// a failed one burn them too. The budget of attempts is the ledger's.
	MaxReceiveCount = 1000

	// BatchSize is the highest a FIFO event source takes.
	BatchSize = 10

	// ProcessorTimeout is the longest one batch may take. An attempt with several refetches is seconds; a
	// killed one stalls its customers until its lease ends, so longer is not better.
	ProcessorTimeout = 30 * time.Second

	// VisibilityTimeout is six times the processor's time-out, the least AWS advises for an event source (AWS Lambda
	// Developer Guide, "Creating and configuring an Amazon SQS event source mapping").
	VisibilityTimeout = 6 * ProcessorTimeout

	// ReceiverTimeout is under the 30 s an HTTP API waits, and Stripe's own patience.
	ReceiverTimeout = 10 * time.Second

	// ReconcilerTimeout lets a run page for most of the minute until the next one.
	ReconcilerTimeout = 50 * time.Second

	// MessageRetention is the longest SQS keeps a message: 14 days.
	MessageRetention = 14 * 24 * time.Hour
)
