// Package control keeps the few values that outlive a run and belong to no event: where the sweep and the audit
// stopped, and whether somebody has paused the pipeline. Each is one item of the control table, written under the
// version it was read at, so that two runs at once do not undo each other.
package control

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/schema"
)

// ErrConflict says that the value has been changed since it was read.
var ErrConflict = errors.New("the control value has been changed by another")

// Value is one value as it was read. The zero Version is that of a value nobody has written yet.
type Value struct {
	Text    string
	Version int64
}

const (
	attrText    = "text"
	attrVersion = "version"
)

// Store is the control table.
type Store struct {
	client *dynamodb.Client
	table  string
}

// New returns the store over a table.
func New(client *dynamodb.Client, table string) *Store { return &Store{client, table} }

// Get reads a value as of now; one that does not exist is the zero Value.
func (s *Store) Get(ctx context.Context, name string) (Value, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.table,
		Key:            key(name),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Value{}, fmt.Errorf("read the control value %s: %w", name, err)
	}
	return valueOf(out.Item), nil
}

// Put writes a value over the one that was read, and returns it as the next Put must name it. ErrConflict: another
// was faster. A write whose reply was lost meets itself, which is success.
func (s *Store) Put(ctx context.Context, name, text string, seen Value) (Value, error) {
	next := Value{Text: text, Version: seen.Version + 1}
	condition := "attribute_not_exists(pk)"
	values := map[string]types.AttributeValue{}
	if seen.Version > 0 {
		condition = attrVersion + " = :seen"
		values[":seen"] = number(seen.Version)
	}
	if len(values) == 0 {
		values = nil
	}
	item := key(name)
	item[attrText] = &types.AttributeValueMemberS{Value: text}
	item[attrVersion] = number(next.Version)
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &s.table,
		Item:                                item,
		ConditionExpression:                 &condition,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		if valueOf(failed.Item) == next {
			return next, nil
		}
		return Value{}, fmt.Errorf("write the control value %s: %w", name, ErrConflict)
	}
	if err != nil {
		return Value{}, fmt.Errorf("write the control value %s: %w", name, err)
	}
	return next, nil
}

func key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{schema.PK: &types.AttributeValueMemberS{Value: name}}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func valueOf(item map[string]types.AttributeValue) Value {
	var v Value
	if text, ok := item[attrText].(*types.AttributeValueMemberS); ok {
		v.Text = text.Value
	}
	if version, ok := item[attrVersion].(*types.AttributeValueMemberN); ok {
		v.Version, _ = strconv.ParseInt(version.Value, 10, 64) // a number this package wrote
	}
	return v
}
