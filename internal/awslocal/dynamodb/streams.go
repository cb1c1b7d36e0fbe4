package dynamodb

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shardID is the only shard of every stream. A stream keeps every change until its table is deleted.
const shardID = "shardId-00000000000000000000-00000000"

// timeToLive is who deletes expired items, as stream records name it.
var timeToLive = map[string]string{"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}

// change is one record of a table's stream.
type change struct {
	event    string // INSERT, MODIFY or REMOVE
	old, new *record
	at       time.Time
	by       map[string]string
}

// notice puts a write on the table's stream, if it has one and the write changed anything. The caller holds the lock.
func (s *Server) notice(t *table, old, new *record, by map[string]string) {
	c := change{event: "MODIFY", old: old, new: new, at: s.now(), by: by}
	switch {
	case t.streamView == "" || old == nil && new == nil || old != nil && new != nil && old.item.equal(new.item):
		return
	case old == nil:
		c.event = "INSERT"
	case new == nil:
		c.event = "REMOVE"
	}
	t.changes = append(t.changes, c)
}

func (t *table) streamLabel() string { return t.created.UTC().Format("2006-01-02T15:04:05.000") }

func (t *table) streamArn() string { return t.arn + "/stream/" + t.streamLabel() }

// tableOfStream finds the table a stream ARN belongs to. The caller holds the lock.
func (s *Server) tableOfStream(arn string) (*table, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(arn, s.arnPrefix), "/")
	if t := s.tables[name]; t != nil && t.streamView != "" && t.streamArn() == arn {
		return t, nil
	}
	return nil, errorf("ResourceNotFoundException", "Requested resource not found: Stream: %s not found", arn)
}

func (s *Server) listStreams(in struct{ TableName string }) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := []map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		if t := s.tables[name]; t.streamView != "" && (in.TableName == "" || in.TableName == name) {
			streams = append(streams, map[string]string{"StreamArn": t.streamArn(), "StreamLabel": t.streamLabel(), "TableName": name})
		}
	}
	return map[string]any{"Streams": streams}, nil
}

func (s *Server) describeStream(in struct{ StreamArn string }) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.tableOfStream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	shard := map[string]any{"ShardId": shardID, "SequenceNumberRange": map[string]string{"StartingSequenceNumber": sequence(0)}}
	return map[string]any{"StreamDescription": map[string]any{
		"StreamArn": in.StreamArn, "StreamLabel": t.streamLabel(), "StreamStatus": "ENABLED", "StreamViewType": t.streamView,
		"TableName": t.name, "KeySchema": t.schema.elements(), "Shards": []any{shard}, "CreationRequestDateTime": epoch(t.created),
	}}, nil
}

func sequence(i int) string { return fmt.Sprintf("%021d", i+1) }

// epoch is a time as the JSON protocol writes it.
func epoch(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func (s *Server) getShardIterator(in struct{ StreamArn, ShardId, ShardIteratorType string }) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.tableOfStream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	if in.ShardId != shardID {
		return nil, errorf("ResourceNotFoundException", "Requested resource not found: Shard does not exist")
	}
	at := 0
	switch in.ShardIteratorType {
	case "TRIM_HORIZON":
	case "LATEST":
		at = len(t.changes)
	default:
		return nil, validationf("This endpoint reads streams from TRIM_HORIZON or LATEST only")
	}
	return map[string]string{"ShardIterator": iterator(in.StreamArn, at)}, nil
}

func iterator(arn string, at int) string { return fmt.Sprintf("%s|%d", arn, at) }

func (s *Server) getRecords(in struct {
	ShardIterator string
	Limit         int
}) (any, error) {
	arn, place, _ := strings.Cut(in.ShardIterator, "|")
	at, err := strconv.Atoi(place)
	if err != nil || at < 0 {
		return nil, validationf("Invalid ShardIterator")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.tableOfStream(arn)
	if err != nil {
		return nil, err
	}
	if in.Limit < 1 || in.Limit > 1000 { // "GetRecords"
		in.Limit = 1000
	}
	at = min(at, len(t.changes))
	end := min(at+in.Limit, len(t.changes))
	records := []any{}
	for i, c := range t.changes[at:end] {
		records = append(records, t.streamRecord(c, at+i))
	}
	return map[string]any{"Records": records, "NextShardIterator": iterator(arn, end)}, nil
}

func (t *table) streamRecord(c change, i int) any {
	data := map[string]any{"SequenceNumber": sequence(i), "StreamViewType": t.streamView, "ApproximateCreationDateTime": c.at.Unix()}
	keys := item{}
	for _, part := range t.schema {
		for _, rec := range []*record{c.old, c.new} {
			if rec != nil {
				keys[part.name] = rec.item[part.name]
			}
		}
	}
	data["Keys"] = keys
	if c.new != nil && strings.Contains(t.streamView, "NEW") {
		data["NewImage"] = c.new.item
	}
	if c.old != nil && strings.Contains(t.streamView, "OLD") {
		data["OldImage"] = c.old.item
	}
	out := map[string]any{"eventID": sequence(i), "eventName": c.event, "eventVersion": "1.1", "eventSource": "aws:dynamodb", "dynamodb": data}
	if c.by != nil {
		out["userIdentity"] = c.by
	}
	return out
}
