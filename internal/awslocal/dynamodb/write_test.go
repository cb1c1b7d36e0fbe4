package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestFailedConditionReturnsTheItemOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	store(t, s, attrs{"pk": str("a"), "sk": str("e"), "state": str("DONE"), "raw": &types.AttributeValueMemberB{Value: []byte{0, 1, 255}}})
	for _, asked := range []types.ReturnValuesOnConditionCheckFailure{"", "NONE", "ALL_OLD"} {
		_, err := client(s).PutItem(context.Background(), &sdk.PutItemInput{TableName: aws.String(name), Item: attrs{"pk": str("a"), "sk": str("e")},
			ConditionExpression: aws.String("attribute_not_exists(pk)"), ReturnValuesOnConditionCheckFailure: asked})
		var failed *types.ConditionalCheckFailedException
		if !errors.As(err, &failed) {
			t.Fatalf("%q: got %v, want a failed condition", asked, err)
		}
		if failed.ErrorMessage() != "The conditional request failed" {
			t.Errorf("message %q", failed.ErrorMessage())
		}
		if asked != "ALL_OLD" {
			if failed.Item != nil {
				t.Errorf("%q: unasked item %v", asked, failed.Item)
			}
			continue
		}
		raw, _ := failed.Item["raw"].(*types.AttributeValueMemberB)
		if text(failed.Item["state"]) != "DONE" || raw == nil || string(raw.Value) != "\x00\x01\xff" {
			t.Errorf("item %v", failed.Item)
		}
	}
}

func TestFailedConditionalUpdateMakesNoItem(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	update := func() error {
		_, err := client(s).UpdateItem(context.Background(), &sdk.UpdateItemInput{TableName: aws.String(name), Key: attrs{"pk": str("a"), "sk": str("e")},
			UpdateExpression: aws.String("SET x = :x"), ConditionExpression: aws.String("attribute_exists(pk)"), ExpressionAttributeValues: attrs{":x": str("1")}})
		return err
	}
	if got := code(t, update()); got != "ConditionalCheckFailedException" {
		t.Errorf("got %q", got)
	}
	if s.Items(name) != 0 {
		t.Error("the update made an item")
	}
	store(t, s, attrs{"pk": str("a"), "sk": str("e")})
	ok(t, update())
}

func TestSingleWritesAreChecked(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	long := func(n int) string { return strings.Repeat("k", n) }
	for _, c := range []struct{ op, params, want string }{
		{"PutItem", `"Item":{"pk":{"S":"a"}}`, "Missing the key sk in the item"},
		{"PutItem", `"Item":{"pk":{"N":"1"},"sk":{"S":"e"}}`, "Type mismatch for key pk expected: S actual: N"},
		{"PutItem", `"Item":{"pk":{"S":""},"sk":{"S":"e"}}`, "cannot contain an empty string value. Key: pk"},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"e"},"gpk":{"N":"1"}}`, "Type mismatch for Index Key gpk Expected: S Actual: N IndexName: due"},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"e"},"gpk":{"S":""}}`, "cannot contain an empty string value. IndexName: due, IndexKey: gpk"},
		{"PutItem", `"Item":{"pk":{"S":"` + long(2049) + `"},"sk":{"S":"e"}}`, "Size of hashkey has exceeded the maximum size limit"},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"` + long(1025) + `"}}`, "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"},
		{"PutItem", `"Item":{"pk":{"S":"` + long(2048) + `"},"sk":{"S":"` + long(1024) + `"}}`, `{}`},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"e"},"b":{"S":"` + long(400<<10-7) + `"}}`, `{}`},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"e"},"b":{"S":"` + long(400<<10-6) + `"}}`, "Item size has exceeded the maximum allowed size"},
		{"UpdateItem", `"Key":{"pk":{"S":"a"},"sk":{"S":"e"}},"UpdateExpression":"SET c = :c","ExpressionAttributeValues":{":c":{"S":"x"}}`, "Item size to update has exceeded the maximum allowed size"},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"e"}},"ReturnValues":"ALL_NEW"`, "Return values set to invalid value"},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"e"}},"ReturnConsumedCapacity":"SOME"`, "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"e"}},"Expected":{}`, `The parameter \"Expected\" is not supported by this endpoint`},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"e"}},"ExpressionAttributeValues":{":a":{"S":"x"}}`, "ExpressionAttributeValues can only be specified when using expressions"},
		{"PutItem", `"Item":{"pk":{"S":"a"},"sk":{"S":"e"}},"ReturnValues":"ALL_OLD"`, `{"Attributes":{"b":`},
		{"DeleteItem", `"Key":{"pk":{"S":"a"},"sk":{"S":"e"}},"ReturnValues":"ALL_OLD"`, `{"Attributes":{"pk":{"S":"a"},"sk":{"S":"e"}}}`},
		{"DeleteItem", `"Key":{"pk":{"S":"a"},"sk":{"S":"e"}},"ReturnValues":"ALL_OLD"`, `{}`},
		{"GetItem", `"Key":{"pk":{"S":"a"}}`, "The provided key element does not match the schema"},
		{"GetItem", `"Key":{"pk":{"S":"a"},"sk":{"N":"1"}}`, "The provided key element does not match the schema"},
		{"GetItem", `"Key":{"pk":{"S":"a"},"sk":{"S":"e"},"x":{"S":"e"}}`, "The provided key element does not match the schema"},
		{"GetItem", `"Key":{"pk":{"S":"a"},"sk":{"S":"e"}}`, `{}`},
		{"ExecuteStatement", `"Statement":"x"`, "com.amazon.coral.service#UnknownOperationException"},
	} {
		got := call(s, c.op, `{"TableName":"orders",`+c.params+`}`)
		if c.want == "{}" && got != "{}" || !strings.Contains(got, c.want) {
			t.Errorf("%s %.80s: got %.200s, want %s", c.op, c.params, got, c.want)
		}
	}
}

func TestBatchesRefuseDuplicatesAndTooMany(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	puts := func(keys ...string) string {
		for i, k := range keys {
			keys[i] = `{"PutRequest":{"Item":{"pk":{"S":"` + k + `"},"sk":{"S":"e"}}}}`
		}
		return `{"RequestItems":{"orders":[` + strings.Join(keys, ",") + `]}}`
	}
	gets := func(keys ...string) string {
		for i, k := range keys {
			keys[i] = `{"pk":{"S":"` + k + `"},"sk":{"S":"e"}}`
		}
		return `{"RequestItems":{"orders":{"Keys":[` + strings.Join(keys, ",") + `]}}}`
	}
	many := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(i))
		}
		return out
	}
	for _, c := range []struct{ op, body, want string }{
		{"BatchWriteItem", puts("a", "a"), "Provided list of item keys contains duplicates"},
		{"BatchWriteItem", puts(many(26)...), "Too many items requested for the BatchWriteItem call"},
		{"BatchWriteItem", puts(), "failed to satisfy constraint"},
		{"BatchWriteItem", `{"RequestItems":{}}`, "failed to satisfy constraint"},
		{"BatchWriteItem", `{"RequestItems":{"orders":[{}]}}`, "ValidationException"},
		{"BatchWriteItem", `{"RequestItems":{"none":[{"DeleteRequest":{"Key":{"pk":{"S":"a"}}}}]}}`, "ResourceNotFoundException"},
		{"BatchWriteItem", puts(many(25)...), `{"UnprocessedItems":{}}`},
		{"BatchWriteItem", `{"RequestItems":{"orders":[{"DeleteRequest":{"Key":{"pk":{"S":"7"},"sk":{"S":"e"}}}}]}}`, `{"UnprocessedItems":{}}`},
		{"BatchGetItem", gets("1", "1"), "Provided list of item keys contains duplicates"},
		{"BatchGetItem", gets(many(101)...), "Too many items requested for the BatchGetItem call"},
		{"BatchGetItem", gets(), "failed to satisfy constraint"},
		{"BatchGetItem", gets("1", "7", "24", "99"), `{"Responses":{"orders":[{"pk":{"S":"1"},"sk":{"S":"e"}},{"pk":{"S":"24"},"sk":{"S":"e"}}]},"UnprocessedKeys":{}}`},
	} {
		contains(t, fmt.Sprintf("%s %.60s", c.op, c.body), call(s, c.op, c.body), c.want)
	}
	if got := s.Items(name); got != 24 {
		t.Errorf("%d items, want 24", got)
	}
}

func TestBatchGetLeavesWhatIsOverSixteenMegabytes(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	keys := make([]map[string]types.AttributeValue, 45)
	for i := range keys {
		keys[i] = attrs{"pk": str(fmt.Sprint(i)), "sk": str("e")}
		store(t, s, attrs{"pk": keys[i]["pk"], "sk": str("e"), "big": str(strings.Repeat("x", 390<<10))})
	}
	ask := map[string]types.KeysAndAttributes{name: {Keys: keys, ProjectionExpression: aws.String("pk")}}
	seen, calls := 0, 0
	for ; len(ask) > 0; calls++ {
		out, err := client(s).BatchGetItem(context.Background(), &sdk.BatchGetItemInput{RequestItems: ask})
		ok(t, err)
		seen += len(out.Responses[name])
		ask = out.UnprocessedKeys
	}
	if seen != 45 || calls != 2 {
		t.Errorf("%d items in %d calls, want 45 in 2", seen, calls)
	}
}

func TestOneOfManyConditionalPutsWins(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	c := client(s)
	var wins, losses atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 10 {
				_, err := c.PutItem(context.Background(), &sdk.PutItemInput{TableName: aws.String(name), Item: attrs{"pk": str(fmt.Sprint(i)), "sk": str("e")}, ConditionExpression: aws.String("attribute_not_exists(pk)")})
				var failed *types.ConditionalCheckFailedException
				switch {
				case err == nil:
					wins.Add(1)
				case errors.As(err, &failed):
					losses.Add(1)
				}
				if _, err := c.UpdateItem(context.Background(), &sdk.UpdateItemInput{TableName: aws.String(name), Key: attrs{"pk": str("counter"), "sk": str("e")}, UpdateExpression: aws.String("ADD v :one"), ExpressionAttributeValues: attrs{":one": num("1")}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if wins.Load() != 10 || losses.Load() != 150 {
		t.Errorf("%d won, %d lost; want 10 and 150", wins.Load(), losses.Load())
	}
	if v := text(stored(t, s, "counter", "e")["v"]); v != "160" {
		t.Errorf("counted to %s, want 160", v)
	}
}

func TestExpiredItemsStayUntilSwept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := orders(t, Options{})
		contains(t, "enable", call(s, "UpdateTimeToLive", `{"TableName":"orders","TimeToLiveSpecification":{"AttributeName":"gone","Enabled":true}}`), `"Enabled":true`)
		contains(t, "describe", call(s, "DescribeTimeToLive", `{"TableName":"orders"}`), `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"gone"}}`)
		contains(t, "twice", call(s, "UpdateTimeToLive", `{"TableName":"orders","TimeToLiveSpecification":{"AttributeName":"gone","Enabled":true}}`), "TimeToLive is already enabled")
		now := time.Now().Unix()
		at := func(d int64) types.AttributeValue { return num(fmt.Sprint(now + d)) }
		for pk, gone := range map[string]types.AttributeValue{
			"soon": at(10), "late": at(3600), "text": str(fmt.Sprint(now)), "ancient": at(-6 * 365 * 86400), "milliseconds": num(fmt.Sprint(now * 1000)), "past": at(-4 * 365 * 86400),
		} {
			store(t, s, attrs{"pk": str(pk), "sk": str("e"), "gpk": str("g"), "due": num("1"), "gone": gone})
		}
		if got := s.SweepExpired(); got != 1 || s.Items(name) != 5 {
			t.Errorf("swept %d, want the one from four years ago", got)
		}
		time.Sleep(10 * time.Second)
		if got := s.SweepExpired(); got != 0 {
			t.Errorf("swept %d in the second it runs out", got)
		}
		time.Sleep(time.Second)
		if stored(t, s, "soon", "e") == nil {
			t.Error("gone before it was swept")
		}
		if got := s.SweepExpired(); got != 1 || stored(t, s, "soon", "e") != nil {
			t.Errorf("swept %d, want the one that ran out", got)
		}
		contains(t, "index", call(s, "Query", `{"TableName":"orders","IndexName":"due","Select":"COUNT","KeyConditionExpression":"gpk = :g","ExpressionAttributeValues":{":g":{"S":"g"}}}`), `"Count":4`)
		call(s, "UpdateTimeToLive", `{"TableName":"orders","TimeToLiveSpecification":{"AttributeName":"gone","Enabled":false}}`)
		time.Sleep(2 * time.Hour)
		if got := s.SweepExpired(); got != 0 {
			t.Errorf("swept %d while disabled", got)
		}
	})
}
