package telemetry

// Names of the metrics. Each costs $0.30 a month; alarms and the dashboard read them by these constants.
const (
	// The receiver's, one value a delivery.
	Received        = "Received"         // verified deliveries
	Duplicates      = "Duplicates"       // verified deliveries of an entry already there
	RefusedSig      = "RefusedSignature" // signature missing, wrong, or no secret matched
	RefusedAge      = "RefusedAge"       // outside the tolerance
	RefusedBad      = "RefusedBad"       // broken request: header, envelope, body, size
	RefusedConfig   = "RefusedConfig"    // no usable secret: every delivery is refused
	Failed          = "Failed"           // 5xx: storage or queue trouble; Stripe comes again
	Enqueued        = "Enqueued"
	AckMS           = "AckTime"         // Milliseconds from request to answer
	VersionMismatch = "VersionMismatch" // api_version other than expected
	TooLarge        = "TooLarge"        // a verified event that does not fit an entry

	// The processor's, one value an attempt.
	DoneCount     = "Done"
	SkippedCount  = "Skipped"
	ParkedCount   = "Parked"
	Retried       = "Retried"
	SettledMS     = "CreatedToSettled" // Milliseconds from Stripe's created to settled
	QueueWaitMS   = "QueueWait"        // Milliseconds from sent to claimed
	StaleEffects  = "StaleEffects"     // effects dropped, a newer fact being stored
	WaitingOutage = "WaitingOutage"    // attempts ended by a broken dependency
	WrongMode     = "WrongMode"        // events of the other mode, skipped
	OrderUnsure   = "OrderUnsure"      // rows of which nobody can say which fact is newer

	// The reconciler's, one value a run.
	ParkedOpen    = "ParkedOpen"          // entries parked: the alarm of record
	TodoOpen      = "TodoOpen"            // entries recorded or processing
	OldestTodoS   = "OldestTodoAge"       // Seconds
	Swept         = "Swept"               // pointers enqueued again
	LargestGroup  = "LargestGroupBacklog" // open entries of the group with most
	AuditMissing  = "AuditMissing"        // events Stripe has and the ledger had not
	AuditRan      = "AuditRan"            // 1 when an audit run ended well
	AuditUnhealed = "AuditUnhealed"       // missing events that could not be recorded
)
