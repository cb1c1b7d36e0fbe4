package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/event"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/schema"
)

// prepare makes what a case says was there beforehand: records by event id, with a state or an object that has one and
// perhaps the time it expires at, and rows of the projection. A row is made by an event that says what it holds.
func (w *world) prepare() error {
	if w.variant.State == nil {
		return nil
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(w.variant.State, &state); err != nil {
		return errSkip("given.state is in a form that is not described")
	}
	for _, name := range slices.Sorted(maps.Keys(state)) {
		var err error
		switch name {
		case "records":
			err = w.prepareRecords(state[name])
		case "projection":
			err = w.prepareRows(state[name])
		default:
			err = errSkip("given.state." + name + " is not described")
		}
		if err != nil {
			return err
		}
	}
	before, err := w.projected()
	w.before = before
	return err
}

func (w *world) prepareRecords(raw json.RawMessage) error {
	var records map[string]json.RawMessage
	if json.Unmarshal(raw, &records) != nil {
		return errSkip("given.state.records is in a form that is not described")
	}
	for _, id := range slices.Sorted(maps.Keys(records)) {
		var record struct {
			Status  string
			Expires int64 `json:"expires_at"`
		}
		if json.Unmarshal(records[id], &record.Status) != nil {
			if json.Unmarshal(records[id], &record) != nil || record.Status == "" {
				return errSkip("given.state.records." + id + " is in a form that is not described")
			}
		}
		if record.Status == "absent" {
			continue
		}
		pointer, err := w.record(w.bodyOf(id))
		if err != nil {
			return err
		}
		if err := w.settle(ledger.Key(pointer.Key), record.Status); err != nil {
			return err
		}
		if record.Expires == 0 {
			continue
		}
		if _, err := w.db.UpdateItem(w.ctx, &dynamodb.UpdateItemInput{TableName: &w.names.LedgerTable,
			Key:                       map[string]types.AttributeValue{schema.PK: &types.AttributeValueMemberS{Value: pointer.Key}},
			UpdateExpression:          aws.String("SET " + schema.DeleteAfterS + " = :t"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":t": &types.AttributeValueMemberN{Value: strconv.FormatInt(record.Expires, 10)}},
		}); err != nil {
			return err
		}
	}
	return nil
}

// settle brings a recorded entry into a state.
func (w *world) settle(key ledger.Key, status string) error {
	if status == "recorded" {
		return nil
	}
	claim, err := w.ledger.Claim(w.ctx, ledger.Claiming{Key: key, Token: "harness", Until: time.Now().Add(schema.ProcessorTimeout)})
	if err != nil {
		return err
	}
	settlement := ledger.Settlement{Error: "the case says so"}
	switch status {
	case "processing":
		return nil
	case "done":
		settlement = ledger.Settlement{Status: ledger.Done}
	case "ignored":
		settlement.Status = ledger.Skipped
	case "failed", "parked":
		settlement.Status, settlement.Class = ledger.Parked, ledger.ClassError
	default:
		return errSkip("no record is " + status + " here")
	}
	return w.ledger.Settle(w.ctx, claim, settlement)
}

// bodyOf is the event of this id, as the case has it or else a small one.
func (w *world) bodyOf(id string) json.RawMessage {
	for _, raw := range w.signedOver {
		if e, err := event.Parse(raw); err == nil && e.ID == id {
			return raw
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"object":"event","type":"customer.updated","created":%d,"livemode":false,`+
		`"data":{"object":{"id":"cus_before","object":"customer"}}}`, id, w.clock()))
}

func (w *world) prepareRows(raw json.RawMessage) error {
	rows, err := wantedRows(raw)
	if err != nil {
		return errSkip("given.state.projection is in a form that is not described")
	}
	for i, row := range rows {
		fields, ok := row.fields.(map[string]any)
		if !ok {
			return errSkip("given.state.projection." + row.kind + " is in a form that is not described")
		}
		typ := map[string]string{"customers": "customer.updated", "subscriptions": "customer.subscription.updated",
			"invoices": "invoice.updated", "payments": "payment_intent.created"}[row.kind]
		if typ == "" {
			return errSkip("given.state.projection." + row.kind + " is not described")
		}
		object := maps.Clone(fields)
		object["id"], object["object"] = row.id, strings.TrimSuffix(row.kind, "s")
		if row.kind == "payments" {
			object["object"] = "payment_intent"
		}
		delete(object, "account")
		created := w.clock() - 86400
		for _, name := range []string{"created", "snapshot_created", "as_of", "version"} {
			if n, ok := fields[name].(json.Number); ok {
				if at, err := n.Int64(); err == nil {
					created = at
				}
			}
		}
		body := map[string]any{"id": fmt.Sprintf("evt_before%d", i), "object": "event", "type": typ, "created": created,
			"livemode": w.mode() == "live", "data": map[string]any{"object": object}}
		if row.account != "" {
			body["account"] = row.account
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		pointer, err := w.record(text)
		if err != nil {
			return err
		}
		if err := w.queue.Send(w.ctx, queue.Send{Pointer: pointer, Group: row.id}); err != nil {
			return err
		}
	}
	w.mu.Lock()
	calls := len(w.calls)
	w.mu.Unlock()
	if err := w.drain(nil); err != nil {
		return err
	}
	w.mu.Lock()
	w.calls, w.committed = w.calls[:calls], nil
	w.mu.Unlock()
	return nil
}
