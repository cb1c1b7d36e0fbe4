package queue

// Version is the schema version of the pointers this code writes. A pointer of a newer version is handed back: a
// deployment is under way.
const Version = 1

// Pointer is the message: where the entry is and what wants it, never the payload.
type Pointer struct {
	V        int    `json:"v"`
	Key      string `json:"key"` // the entry's key in the ledger
	Type     string `json:"type"`
	CreatedS int64  `json:"created"`
	Replay   int    `json:"replay"`

	// Generation is set on a parked entry's dead-letter message only: redriven from the console, the pointer asks
	// for a replay of the entry if that is still parked at this generation.
	Generation int64 `json:"generation,omitempty"`
}
