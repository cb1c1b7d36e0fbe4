package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/schema"
)

// maxBatch is how many keys one BatchGetItem takes (Amazon DynamoDB API Reference, "BatchGetItem").
const maxBatch = 100

// Get reads one entry with its body, as of now.
//
// Errors: ErrNotFound; with ErrCodec the entry is good but for its body.
func (s *Store) Get(ctx context.Context, key Key) (Entry, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.table,
		Key:            primary(key),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Entry{}, fmt.Errorf("reading %s: %w", key, err)
	}
	if absent(entryOf(out.Item), s.now()) {
		return Entry{}, fmt.Errorf("reading %s: %w", key, ErrNotFound)
	}
	e, err := s.withBody(out.Item)
	if err != nil {
		return e, fmt.Errorf("reading %s: %w", key, err)
	}
	return e, nil
}

// BatchGet reads entries without their bodies; those that do not exist are missing from the map. It may be a second
// behind: who acts on what it says does so by a compare-and-set.
func (s *Store) BatchGet(ctx context.Context, keys []Key) (map[Key]Entry, error) {
	found := make(map[Key]Entry, len(keys))
	keys = slices.Clone(keys)
	slices.Sort(keys)
	for batch := range slices.Chunk(slices.Compact(keys), maxBatch) {
		if err := s.batchGet(ctx, batch, found); err != nil {
			return nil, fmt.Errorf("reading %d entries: %w", len(batch), err)
		}
	}
	return found, nil
}

func (s *Store) batchGet(ctx context.Context, keys []Key, found map[Key]Entry) error {
	now := s.now()
	x := newExpression()
	request := types.KeysAndAttributes{ProjectionExpression: x.projection()}
	request.ExpressionAttributeNames = x.names
	for _, key := range keys {
		request.Keys = append(request.Keys, primary(key))
	}
	for len(request.Keys) > 0 {
		out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{s.table: request},
		})
		if err != nil {
			return err
		}
		for _, it := range out.Responses[s.table] {
			if e := entryOf(it); !absent(e, now) {
				found[e.Key] = e
			}
		}
		rest := out.UnprocessedKeys[s.table].Keys
		if len(rest) == len(request.Keys) {
			return errors.New("throttled: not one of the keys was read")
		}
		request.Keys = rest
	}
	return nil
}

// Open lists a partition of the index of what is not settled, oldest first. The index may be a second behind.
func (s *Store) Open(ctx context.Context, partition string, after Cursor, limit int) ([]Open, Cursor, error) {
	x := newExpression()
	input := &dynamodb.QueryInput{
		TableName:              &s.table,
		IndexName:              aws.String(schema.OpenIndex),
		KeyConditionExpression: aws.String(x.name(attrOpen) + " = " + x.value(str(partition))),
		Limit:                  aws.Int32(int32(limit)),
	}
	input.ExpressionAttributeNames, input.ExpressionAttributeValues = x.names, x.values
	if after != "" {
		recorded, key, ok := strings.Cut(string(after), " ")
		ms, err := strconv.ParseInt(recorded, 10, 64)
		if !ok || err != nil {
			return nil, "", fmt.Errorf("listing %s: %q is no cursor", partition, after)
		}
		input.ExclusiveStartKey = item{schema.PK: str(key), attrOpen: str(partition), attrRecordedMS: number(ms)}
	}
	out, err := s.client.Query(ctx, input)
	if err != nil {
		return nil, "", fmt.Errorf("listing %s: %w", partition, err)
	}
	list := make([]Open, 0, len(out.Items))
	for _, it := range out.Items {
		list = append(list, Open{Key(getStr(it, schema.PK)), getNumber(it, attrRecordedMS)})
	}
	var next Cursor
	if last := out.LastEvaluatedKey; len(last) > 0 {
		next = Cursor(strconv.FormatInt(getNumber(last, attrRecordedMS), 10) + " " + getStr(last, schema.PK))
	}
	return list, next, nil
}

// OpenCounts counts what is to do and what is parked, over all partitions.
func (s *Store) OpenCounts(ctx context.Context) (Counts, error) {
	var counts Counts
	todo, parked := Partitions()
	for _, partition := range todo {
		n, err := s.count(ctx, partition)
		if err != nil {
			return Counts{}, err
		}
		counts.Todo += n
		if n == 0 {
			continue
		}
		oldest, _, err := s.Open(ctx, partition, "", 1)
		if err != nil {
			return Counts{}, err
		}
		for _, o := range oldest {
			if counts.OldestTodoMS == 0 || o.RecordedMS < counts.OldestTodoMS {
				counts.OldestTodoMS = o.RecordedMS
			}
		}
	}
	for _, partition := range parked {
		n, err := s.count(ctx, partition)
		if err != nil {
			return Counts{}, err
		}
		counts.Parked += n
	}
	return counts, nil
}

func (s *Store) count(ctx context.Context, partition string) (int, error) {
	x := newExpression()
	input := &dynamodb.QueryInput{
		TableName:              &s.table,
		IndexName:              aws.String(schema.OpenIndex),
		KeyConditionExpression: aws.String(x.name(attrOpen) + " = " + x.value(str(partition))),
		Select:                 types.SelectCount,
	}
	input.ExpressionAttributeNames, input.ExpressionAttributeValues = x.names, x.values
	total := 0
	for {
		out, err := s.client.Query(ctx, input)
		if err != nil {
			return 0, fmt.Errorf("counting %s: %w", partition, err)
		}
		total += int(out.Count)
		if len(out.LastEvaluatedKey) == 0 {
			return total, nil
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// List reads one page of the whole table, in no order, without bodies: up to limit entries are looked at, and those
// that keep says yes to are returned; nil keeps all. It is a scan, which reads the table once over: for people, not
// for the pipeline.
func (s *Store) List(ctx context.Context, keep func(Entry) bool, after Cursor, limit int) ([]Entry, Cursor, error) {
	now := s.now()
	x := newExpression()
	input := &dynamodb.ScanInput{
		TableName:            &s.table,
		ProjectionExpression: x.projection(),
		Limit:                aws.Int32(int32(limit)),
	}
	input.ExpressionAttributeNames = x.names
	if after != "" {
		input.ExclusiveStartKey = primary(Key(after))
	}
	out, err := s.client.Scan(ctx, input)
	if err != nil {
		return nil, "", fmt.Errorf("listing entries: %w", err)
	}
	var entries []Entry
	for _, it := range out.Items {
		if e := entryOf(it); !absent(e, now) && (keep == nil || keep(e)) {
			entries = append(entries, e)
		}
	}
	return entries, Cursor(getStr(out.LastEvaluatedKey, schema.PK)), nil
}

// projection asks for everything but the body.
func (x *expression) projection() *string {
	names := make([]string, len(withoutBody))
	for i, name := range withoutBody {
		names[i] = x.name(name)
	}
	return aws.String(strings.Join(names, ", "))
}
