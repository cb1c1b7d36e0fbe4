package projection

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/handler"
	"backstop/internal/schema"
)

// maxBatch is how many keys one BatchGetItem takes (Amazon DynamoDB API Reference, "BatchGetItem").
const maxBatch = 100

// Partition reads all rows of a partition whose sort keys begin with prefix, as of now, in the order of their sort
// keys.
func (s *Store) Partition(ctx context.Context, table, partition, prefix string) ([]handler.Row, error) {
	in := query(table, schema.PK, partition, schema.SK, prefix)
	in.ConsistentRead = aws.Bool(true)
	var rows []handler.Row
	for {
		out, err := s.client.Query(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("read a partition of %s: %w", table, err)
		}
		for _, item := range out.Items {
			rows = append(rows, decodeRow(item))
		}
		if len(out.LastEvaluatedKey) == 0 {
			return rows, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// Index reads one page of a partition of the billing index whose sort keys begin with prefix. The rows hold their
// keys, and what else the index projects: Rows reads them whole. It may be a second behind. after is the cursor that
// the page before returned, empty for the first; the cursor returned is empty after the last.
func (s *Store) Index(ctx context.Context, table, partition, prefix, after string, limit int) (rows []handler.Row, next string, err error) {
	in := query(table, schema.BillingPK1, partition, schema.BillingSK1, prefix)
	in.IndexName = aws.String(schema.BillingIndex)
	in.Limit = aws.Int32(int32(limit))
	if after != "" {
		var key map[string]string
		if err := json.Unmarshal([]byte(after), &key); err != nil {
			return nil, "", fmt.Errorf("read the index of %s: the cursor is not one", table)
		}
		in.ExclusiveStartKey = encodeKey(key)
	}
	out, err := s.client.Query(ctx, in)
	if err != nil {
		return nil, "", fmt.Errorf("read the index of %s: %w", table, err)
	}
	for _, item := range out.Items {
		rows = append(rows, decodeRow(item))
	}
	if len(out.LastEvaluatedKey) == 0 {
		return rows, "", nil
	}
	key := make(map[string]string, len(out.LastEvaluatedKey))
	for name, value := range decodeRow(out.LastEvaluatedKey) {
		key[name], _ = value.(string)
	}
	cursor, err := json.Marshal(key)
	if err != nil {
		return nil, "", fmt.Errorf("make a cursor of %s: %w", table, err)
	}
	return rows, string(cursor), nil
}

// Rows reads rows by their keys, as of now and in no order; those that do not exist are missing.
func (s *Store) Rows(ctx context.Context, table string, keys []map[string]string) ([]handler.Row, error) {
	var rows []handler.Row
	for batch := range slices.Chunk(keys, maxBatch) {
		request := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
		for _, key := range batch {
			request.Keys = append(request.Keys, encodeKey(key))
		}
		for len(request.Keys) > 0 {
			out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{table: request},
			})
			if err != nil {
				return nil, fmt.Errorf("read %d rows of %s: %w", len(batch), table, err)
			}
			for _, item := range out.Responses[table] {
				rows = append(rows, decodeRow(item))
			}
			rest := out.UnprocessedKeys[table].Keys
			if len(rest) == len(request.Keys) {
				return nil, fmt.Errorf("read %d rows of %s: throttled, not one was read", len(rest), table)
			}
			request.Keys = rest
		}
	}
	return rows, nil
}

func query(table, pkName, pk, skName, prefix string) *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{
		TableName:                 &table,
		KeyConditionExpression:    aws.String("#pk = :pk"),
		ExpressionAttributeNames:  map[string]string{"#pk": pkName},
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: pk}},
	}
	if prefix != "" {
		in.KeyConditionExpression = aws.String("#pk = :pk AND begins_with(#sk, :sk)")
		in.ExpressionAttributeNames["#sk"] = skName
		in.ExpressionAttributeValues[":sk"] = &types.AttributeValueMemberS{Value: prefix}
	}
	return in
}
