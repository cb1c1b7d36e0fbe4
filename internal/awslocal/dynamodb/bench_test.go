package dynamodb

import (
	"fmt"
	"testing"
)

// BenchmarkSparseIndexQuery asks a sparse index of a table with 100,000 items for the few that are due.
func BenchmarkSparseIndexQuery(b *testing.B) {
	s := orders(b, Options{})
	for i := range 100_000 {
		due := ""
		if i%10_000 == 0 {
			due = fmt.Sprintf(`,"gpk":{"S":"todo#0"},"due":{"N":"%d"}`, i)
		}
		call(s, "PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"pk":{"S":"evt_%d"},"sk":{"S":"e"}%s}}`, i, due))
	}
	for b.Loop() {
		call(s, "Query", `{"TableName":"orders","IndexName":"due","KeyConditionExpression":"gpk = :g AND due < :d","ExpressionAttributeValues":{":g":{"S":"todo#0"},":d":{"N":"50000"}}}`)
	}
}

// BenchmarkConditionalPut is the first write of an event, into a table that grows.
func BenchmarkConditionalPut(b *testing.B) {
	s := orders(b, Options{})
	i := 0
	for b.Loop() {
		i++
		call(s, "PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"pk":{"S":"evt_%d"},"sk":{"S":"e"},"gpk":{"S":"todo#0"},"due":{"N":"%d"},"body":{"B":"aGVsbG8gd29ybGQ="}},"ConditionExpression":"attribute_not_exists(pk) OR gone < :now","ExpressionAttributeValues":{":now":{"N":"1700000000"}},"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`, i, i))
	}
}
