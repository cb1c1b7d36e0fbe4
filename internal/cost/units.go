package cost

import "math"

// Units of one ordinary event: delivered once, done at the first attempt. A test in package proof compares each with
// what the local AWS counted while the real functions ran.
const (
	// EntryWrites are the write units of an entry of one unit: record and its index entry, claim, settle and the index
	// entry's removal.
	EntryWrites = 5
	// EntryIndexWrites of these are the index's, which stay one unit however large the entry is.
	EntryIndexWrites = 2
	// RowWrites are those of a projected row: a conditional write of one unit.
	RowWrites = 1
	// NewRowWrites come on top for a row that is new and belongs to a customer: it enters the billing index.
	NewRowWrites = 1
	// OnceWrites are those of one transactional row: itself twice, and of the entry the step's mark twice.
	OnceWrites = 4
	// Reads: handlers of billing read nothing unless there is a tie.
	Reads = 0

	// Sends is one message an event. A batch is received once, hidden once for as long as it can take, and deleted
	// once.
	Sends         = 1
	BatchRequests = 3

	// Log bytes of the receiver's and of the processor's line.
	ReceiverLine  = 640
	ProcessorLine = 710
	// AccessLine is the API's own.
	AccessLine = 240
)

// Units of one run of the reconciler's sweep with nothing to do, every minute.
const (
	SweepReads    = 8   // read units: pause flag and cursor, eight queries of the index and more
	SweepRequests = 2   // SQS: attributes of the queue, a receive of the dead-letter queue
	SweepLine     = 600 // log bytes
)

// EntrySize returns the bytes of an entry with a body of that size, in its item. Bodies are packed with a dictionary,
// thoroughly when the quick way does not fit one write unit.
func EntrySize(body float64) float64 {
	const fixed = 570 // attributes, and what of a body does not shrink
	if quick := fixed + 0.08*body; quick <= writeUnitBytes {
		return quick
	}
	return fixed + 0.062*body
}

// writeUnitBytes is what one write unit holds.
const writeUnitBytes = 1024

// entryUnits is how many units one write of the entry takes.
func entryUnits(body float64) float64 { return math.Ceil(EntrySize(body) / writeUnitBytes) }

// What only a real account can say. `backstop verify` measures it there; a tenth more or less is a cent a million.
const (
	receiverSeconds  = 0.015 // two calls in a row of a few milliseconds each
	batchSeconds     = 0.020 // a batch of one event: three calls in a row
	perEventSeconds  = 0.004 // each further one: groups run side by side, CPU does not
	sweepSeconds     = 0.200
	itemOverhead     = 100  // bytes an item takes beyond its own (Amazon DynamoDB Developer Guide, "Table size")
	ttlLagDays       = 2    // DynamoDB deletes within a few days of the TTL
	logCompression   = 0.15 // of CloudWatch Logs' archive, from its pricing page's example
	logMetadata      = 26   // bytes a stored line takes beyond its own, from the same page
	pollers          = 5    // long polls Lambda keeps open on an idle queue (AWS Lambda Developer Guide, "Using Lambda with Amazon SQS")
	pollSeconds      = 20.0
	busyInstances    = 3 // which read their secret every five minutes all month
	keyCallsPerTable = 12 * 24 * daysAMonth
)

func ceil(x float64) float64 { return math.Ceil(x) }
