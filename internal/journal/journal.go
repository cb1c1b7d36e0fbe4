// Package journal is a handler for any type of event that does one thing: it counts, in a row of its own, how often
// the event took effect. It is how exactly-once is shown from outside: after any number of duplicates, retries and
// killed processes each row must be there with a count of one.
//
// The row is keyed journal#<ledger key> and the handler's name. Its count is a Once effect: added to, never set, so
// that a second application would show as 2 and not as the same row again.
package journal

import (
	"context"
	"encoding/json"
	"fmt"

	"backstop/internal/handler"
	"backstop/internal/schema"
)

// Name is the handler's name: its step in the ledger and the sort key of its rows.
const Name = "journal"

// The attributes of a row.
const (
	Count     = "count"
	EventID   = "event"
	Type      = "type"
	Account   = "account"
	ObjectID  = "object"
	CreatedS  = "created_s"
	AppliedMS = "applied_ms"
)

// Register makes the journal listen to the types. Its rows are in the billing table of this name.
func Register(r *handler.Registry, table string, now handler.Clock, types ...string) {
	for _, typ := range types {
		handler.On(r, typ, Name, New(table, now))
	}
}

// New returns the handler.
func New(table string, now handler.Clock) handler.Func[json.RawMessage] {
	return func(_ context.Context, e handler.Event, _ *json.RawMessage) ([]handler.Effect, error) {
		set := handler.Row{
			EventID: e.ID, Type: e.Type, CreatedS: e.CreatedS, AppliedMS: now().UnixMilli(),
		}
		if id := objectID(e.Object); id != "" {
			set[ObjectID] = id
		}
		if e.Account != "" {
			set[Account] = e.Account
		}
		return []handler.Effect{handler.Once{
			Table: table, Key: Key(e.Key), Set: set, Add: map[string]int64{Count: 1},
		}}, nil
	}
}

// objectID is the object's id, or empty: an upcoming invoice and a thin event have none.
func objectID(object json.RawMessage) string {
	var named struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(object, &named) != nil {
		return ""
	}
	return named.ID
}

// Key is the key of an event's row.
func Key(eventKey string) map[string]string {
	return map[string]string{schema.PK: "journal#" + eventKey, schema.SK: Name}
}

// Applied reads how often an event took effect: 0, 1, or a broken promise.
func Applied(ctx context.Context, rows handler.Table, table, eventKey string) (int64, error) {
	row, err := rows.Get(ctx, table, Key(eventKey))
	if err != nil {
		return 0, fmt.Errorf("read the journal of %s: %w", eventKey, err)
	}
	count, _ := row[Count].(int64)
	return count, nil
}
