package dynamodb

import (
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTablesAreMadeListedAndDeleted(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{Region: "eu-central-1", Account: "123456789012", Now: func() time.Time { return time.UnixMilli(1700000000500) }})
	const small = `{"TableName":"%","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"B"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`
	for _, n := range []string{"aaa", "zzz"} {
		contains(t, n, call(s, "CreateTable", strings.Replace(small, "%", n, 1)), `"TableStatus":"ACTIVE"`)
	}
	contains(t, "again", call(s, "CreateTable", ordersTable), "ResourceInUseException")
	contains(t, "list", call(s, "ListTables", `{}`), `{"TableNames":["aaa","orders","zzz"]}`)
	contains(t, "list two", call(s, "ListTables", `{"Limit":2}`), `{"TableNames":["aaa","orders"],"LastEvaluatedTableName":"orders"}`)
	contains(t, "list rest", call(s, "ListTables", `{"ExclusiveStartTableName":"orders"}`), `{"TableNames":["zzz"]}`)
	call(s, "PutItem", `{"TableName":"arn:aws:dynamodb:eu-central-1:123456789012:table/orders","Item":{"pk":{"S":"a"},"sk":{"S":"b"},"gpk":{"S":"g"}}}`)
	got := call(s, "DescribeTable", `{"TableName":"orders"}`)
	for _, part := range []string{
		`"TableArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/orders"`, `"CreationDateTime":1700000000.5`, `"ItemCount":1`, `"TableSizeBytes":10`, `"BillingMode":"PAY_PER_REQUEST"`,
		`"IndexName":"due","IndexArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/orders/index/due","IndexStatus":"ACTIVE"`, `"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x"]},"ItemCount":1,"IndexSizeBytes":10`,
		`"LatestStreamArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/orders/stream/2023-11-14T22:13:20.500"`,
	} {
		contains(t, "describe", got, part)
	}
	contains(t, "delete", call(s, "DeleteTable", `{"TableName":"orders"}`), `"TableStatus":"DELETING"`)
	for _, op := range []string{"DescribeTable", "DeleteTable", "DescribeTimeToLive", "Scan"} {
		contains(t, op, call(s, op, `{"TableName":"orders"}`), "ResourceNotFoundException")
	}
}

func TestTableDefinitionsAreChecked(t *testing.T) {
	t.Parallel()
	const (
		pk   = `{"AttributeName":"pk","AttributeType":"S"}`
		hash = `{"AttributeName":"pk","KeyType":"HASH"}`
	)
	table := func(name, definitions, keys, more string) string {
		return `{"TableName":"` + name + `","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[` + definitions + `],"KeySchema":[` + keys + `]` + more + `}`
	}
	index := func(keys, projection string) string {
		return `,"GlobalSecondaryIndexes":[{"IndexName":"ggg","KeySchema":[` + keys + `],"Projection":` + projection + `}]`
	}
	for what, c := range map[string][2]string{
		"name":            {table("b", pk, hash, ""), "Table/index names must be between 3 and 255 characters long"},
		"undefined key":   {table("bad", "", hash, ""), "not defined in AttributeDefinitions"},
		"unused":          {table("bad", pk+`,{"AttributeName":"x","AttributeType":"S"}`, hash, ""), "does not exactly match number of attributes defined"},
		"type":            {table("bad", `{"AttributeName":"pk","AttributeType":"M"}`, hash, ""), "must be of type B, N or S"},
		"no key":          {table("bad", pk, "", ""), "keySchema"},
		"no hash":         {table("bad", pk, `{"AttributeName":"pk","KeyType":"RANGE"}`, ""), "Invalid KeySchema"},
		"same twice":      {table("bad", pk, hash+`,{"AttributeName":"pk","KeyType":"RANGE"}`, ""), "have the same name"},
		"no indexes":      {table("bad", pk, hash, `,"GlobalSecondaryIndexes":[]`), "List of GlobalSecondaryIndexes is empty"},
		"keys and more":   {table("bad", pk, hash, index(hash, `{"ProjectionType":"KEYS_ONLY","NonKeyAttributes":["x"]}`)), "NonKeyAttributes has 1 members"},
		"include nothing": {table("bad", pk, hash, index(hash, `{"ProjectionType":"INCLUDE"}`)), "NonKeyAttributes has 0 members"},
		"no projection":   {table("bad", pk, hash, index(hash, `null`)), "Indexes must have a projection specified"},
		"index key":       {table("bad", pk, hash, index(`{"AttributeName":"x","KeyType":"HASH"}`, `{"ProjectionType":"ALL"}`)), "not defined in AttributeDefinitions"},
		"local index":     {table("bad", pk, hash, `,"LocalSecondaryIndexes":[]`), `The parameter \"LocalSecondaryIndexes\" is not supported`},
		"provisioned":     {strings.Replace(table("bad", pk, hash, ""), "PAY_PER_REQUEST", "PROVISIONED", 1), "BillingMode must be PAY_PER_REQUEST"},
		"stream":          {table("bad", pk, hash, `,"StreamSpecification":{"StreamEnabled":true}`), "StreamViewType is required"},
	} {
		contains(t, what, call(New(Options{}), "CreateTable", c[0]), c[1])
	}
}

func TestStreamTellsEveryChangeOnce(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{Now: func() time.Time { return time.UnixMilli(1700000000500) }})
	put := func(v string) {
		call(s, "PutItem", `{"TableName":"orders","Item":{"pk":{"S":"a"},"sk":{"S":"e"},"v":{"N":"`+v+`"}}}`)
	}
	put("1")
	put("2")
	put("2")
	call(s, "DeleteItem", `{"TableName":"orders","Key":{"pk":{"S":"a"},"sk":{"S":"e"}}}`)
	call(s, "DeleteItem", `{"TableName":"orders","Key":{"pk":{"S":"a"},"sk":{"S":"e"}}}`)
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/2023-11-14T22:13:20.500"
	contains(t, "list", call(s, "DynamoDBStreams_20120810.ListStreams", `{"TableName":"orders"}`), arn)
	contains(t, "describe", call(s, "DynamoDBStreams_20120810.DescribeStream", `{"StreamArn":"`+arn+`"}`), `"ShardId":"shardId-00000000000000000000-00000000"`)
	contains(t, "iterator", call(s, "DynamoDBStreams_20120810.GetShardIterator", `{"StreamArn":"`+arn+`","ShardId":"shardId-00000000000000000000-00000000","ShardIteratorType":"TRIM_HORIZON"}`), arn+"|0")
	got := call(s, "DynamoDBStreams_20120810.GetRecords", `{"ShardIterator":"`+arn+`|0"}`)
	var events []string
	for _, part := range strings.Split(got, `"eventName":"`)[1:] {
		event, _, _ := strings.Cut(part, `"`)
		events = append(events, event)
	}
	if e := strings.Join(events, ","); e != "INSERT,MODIFY,REMOVE" {
		t.Errorf("events %s", e)
	}
	contains(t, "images", got, `"NewImage":{"pk":{"S":"a"},"sk":{"S":"e"},"v":{"N":"2"}},"OldImage":{"pk":{"S":"a"},"sk":{"S":"e"},"v":{"N":"1"}}`)
	contains(t, "the end", call(s, "DynamoDBStreams_20120810.GetRecords", `{"ShardIterator":"`+arn+`|3"}`), `"Records":[]`)
}

func TestRepliesCarryTheProtocolsHeaders(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	for op, status := range map[string]int{"ListTables": 200, "Frobnicate": 400} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		if rec.Code != status {
			t.Errorf("%s: status %d, want %d", op, rec.Code, status)
		}
		if got, want := rec.Header().Get("X-Amz-Crc32"), strconv.FormatUint(uint64(crc32.ChecksumIEEE(rec.Body.Bytes())), 10); got != want {
			t.Errorf("%s: checksum %s, want %s", op, got, want)
		}
		if got := rec.Header().Get("Content-Type"); got != "application/x-amz-json-1.0" {
			t.Errorf("%s: content type %s", op, got)
		}
	}
	contains(t, "not JSON", call(s, "ListTables", "nonsense"), "SerializationException")
}
