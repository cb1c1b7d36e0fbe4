package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestCancelledTransactionChangesNothingAndSaysWhy(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	store(t, s, attrs{"pk": str("a"), "sk": str("e"), "state": str("DONE")})
	store(t, s, attrs{"pk": str("c"), "sk": str("e")})
	table := aws.String(name)
	try := func(want string) error {
		_, err := client(s).TransactWriteItems(context.Background(), &sdk.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: table, Item: attrs{"pk": str("new"), "sk": str("e")}, ConditionExpression: aws.String("attribute_not_exists(pk)")}},
			{Update: &types.Update{TableName: table, Key: attrs{"pk": str("a"), "sk": str("e")}, UpdateExpression: aws.String("SET #s = :n"), ConditionExpression: aws.String("#s = :w"),
				ExpressionAttributeNames: map[string]string{"#s": "state"}, ExpressionAttributeValues: attrs{":n": str("NEXT"), ":w": str(want)}, ReturnValuesOnConditionCheckFailure: "ALL_OLD"}},
			{ConditionCheck: &types.ConditionCheck{TableName: table, Key: attrs{"pk": str("c"), "sk": str("e")}, ConditionExpression: aws.String("attribute_exists(pk)")}},
			{Delete: &types.Delete{TableName: table, Key: attrs{"pk": str("absent"), "sk": str("e")}}},
		}})
		return err
	}
	var cancelled *types.TransactionCanceledException
	if err := try("QUEUED"); !errors.As(err, &cancelled) {
		t.Fatalf("got %v, want a cancelled transaction", err)
	}
	var codes []string
	for _, r := range cancelled.CancellationReasons {
		codes = append(codes, aws.ToString(r.Code))
	}
	if got := strings.Join(codes, ","); got != "None,ConditionalCheckFailed,None,None" {
		t.Fatalf("reasons %s", got)
	}
	if got := text(cancelled.CancellationReasons[1].Item["state"]); got != "DONE" {
		t.Errorf("the reason's item has state %s", got)
	}
	if got := cancelled.ErrorMessage(); got != "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed, None, None]" {
		t.Errorf("message %q", got)
	}
	if s.Items(name) != 2 || text(stored(t, s, "a", "e")["state"]) != "DONE" {
		t.Error("a cancelled transaction changed something")
	}
	ok(t, try("DONE"))
	if s.Items(name) != 3 || text(stored(t, s, "a", "e")["state"]) != "NEXT" {
		t.Error("the transaction was not applied")
	}
}

func TestTransactionTokenHoldsForTenMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := orders(t, Options{})
		try := func(by string) error {
			_, err := client(s).TransactWriteItems(context.Background(), &sdk.TransactWriteItemsInput{ClientRequestToken: aws.String("token"), TransactItems: []types.TransactWriteItem{
				{Update: &types.Update{TableName: aws.String(name), Key: attrs{"pk": str("a"), "sk": str("e")}, UpdateExpression: aws.String("ADD v :n SET w = :w, x = :x, y = :y"),
					ExpressionAttributeValues: attrs{":n": num(by), ":w": str("w"), ":x": str("x"), ":y": str("y")}}}}})
			return err
		}
		value := func() string { return text(stored(t, s, "a", "e")["v"]) }
		ok(t, try("1"))
		store(t, s, attrs{"pk": str("a"), "sk": str("e"), "v": num("5")})
		for range 20 { // the SDK writes maps in any order
			ok(t, try("1"))
		}
		if v := value(); v != "5" {
			t.Errorf("a replay was applied: v is %s", v)
		}
		if got := code(t, try("2")); got != "IdempotentParameterMismatchException" {
			t.Errorf("another request under the token: %q", got)
		}
		time.Sleep(10 * time.Minute)
		ok(t, try("1"))
		if v := value(); v != "5" {
			t.Errorf("a replay after ten minutes was applied: v is %s", v)
		}
		time.Sleep(time.Millisecond)
		ok(t, try("1"))
		if v := value(); v != "6" {
			t.Errorf("v is %s after the token ran out, want 6", v)
		}
	})
}

func TestCancelledTransactionDoesNotUseUpItsToken(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	try := func(condition string) string {
		return call(s, "TransactWriteItems", `{"ClientRequestToken":"token","TransactItems":[{"Put":{"TableName":"orders","Item":{"pk":{"S":"a"},"sk":{"S":"e"}},"ConditionExpression":"`+condition+`"}}]}`)
	}
	contains(t, "cancelled", try("attribute_exists(pk)"), "TransactionCanceledException")
	if got := try("attribute_not_exists(pk)"); got != "{}" {
		t.Error(got)
	}
}

func TestTransactionsAreChecked(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	store(t, s, attrs{"pk": str("a"), "sk": str("e"), "x": str("text")})
	put := func(pk, more string) string {
		return `{"Put":{"TableName":"orders","Item":{"pk":{"S":"` + pk + `"},"sk":{"S":"e"}` + more + `}}}`
	}
	update := func(expression string) string {
		return `{"Update":{"TableName":"orders","Key":{"pk":{"S":"a"},"sk":{"S":"e"}},"UpdateExpression":"` + expression + `","ExpressionAttributeValues":{":a":{"N":"1"}}}}`
	}
	const check = `{"ConditionCheck":{"TableName":"orders","Key":{"pk":{"S":"b"},"sk":{"S":"e"}},"ConditionExpression":"attribute_exists(pk)"}}`
	many := func(n int, more string) string {
		var out []string
		for i := range n {
			out = append(out, put(fmt.Sprint(i), more))
		}
		return strings.Join(out, ",")
	}
	big := `,"b":{"S":"` + strings.Repeat("x", 390<<10) + `"}`
	for _, c := range []struct{ items, want string }{
		{"", "failed to satisfy constraint"},
		{"{}", "TransactItems can only contain one of Check, Put, Update or Delete"},
		{`{"Put":{"TableName":"orders","Item":{"pk":{"S":"b"},"sk":{"S":"e"}}},` + check[1:], "TransactItems can only contain one of"},
		{put("b", "") + "," + check, "Transaction request cannot include multiple operations on one item"},
		{many(101, ""), "Member must have length less than or equal to 100"},
		{many(11, big), "Collection size of items in transaction cannot exceed limit of 4MB"},
		{put("c", "") + "," + check, `"CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"}]`},
		{put("c", "") + "," + update("SET n = x + :a"), `[{"Code":"None"},{"Code":"ValidationError","Message":"An operand in the update expression has an incorrect data type"}]`},
		{put("c", "") + "," + update("SET n = q + :a"), `{"Code":"ValidationError","Message":"The provided expression refers to an attribute that does not exist in the item"}`},
		{check + "," + update("SET n = q + :a"), `[{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"},{"Code":"ValidationError"`},
		{put("c", "") + "," + update("SET sk = :a"), `"Code":"ValidationError","Message":"One or more parameter values were invalid: Cannot update attribute sk.`},
		{put("c", "") + "," + update("SET n = = :a"), "com.amazon.coral.validate#ValidationException"},
		{put("c", `,"gpk":{"N":"1"}`), `"Code":"ValidationError","Message":"One or more parameter values were invalid: Type mismatch for Index Key gpk`},
		{put("c", big+`,"c":{"S":"`+strings.Repeat("x", 20<<10)+`"}`), "Item size has exceeded the maximum allowed size"},
		{`{"Put":{"TableName":"orders","Item":{"pk":{"S":"c"}}}}`, "Missing the key sk in the item"},
		{`{"Put":{"TableName":"none","Item":{"pk":{"S":"c"}}}}`, "ResourceNotFoundException"},
		{`{"ConditionCheck":{"TableName":"orders","Key":{"pk":{"S":"b"},"sk":{"S":"e"}}}}`, "conditionExpression"},
		{`{"Put":{"TableName":"orders","Item":{"pk":{"S":"c"},"sk":{"S":"e"}},"ReturnValues":"ALL_OLD"}}`, `The parameter \"ReturnValues\" is not supported`},
	} {
		contains(t, fmt.Sprintf("%.200s", c.items), call(s, "TransactWriteItems", `{"TransactItems":[`+c.items+`]}`), c.want)
	}
	if got := s.Items(name); got != 1 {
		t.Errorf("refused transactions left %d items, want 1", got)
	}
	if got := call(s, "TransactWriteItems", `{"TransactItems":[`+many(100, "")+`]}`); got != "{}" || s.Items(name) != 101 {
		t.Errorf("100 items: %s", got)
	}
}

func TestTransactGetReadsAllOrRefuses(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	store(t, s, attrs{"pk": str("a"), "sk": str("e"), "v": num("1")})
	const a, none = `{"Get":{"TableName":"orders","Key":{"pk":{"S":"a"},"sk":{"S":"e"}},"ProjectionExpression":"v"}}`, `{"Get":{"TableName":"orders","Key":{"pk":{"S":"none"},"sk":{"S":"e"}}}}`
	contains(t, "get", call(s, "TransactGetItems", `{"TransactItems":[`+a+`,`+none+`]}`), `{"Responses":[{"Item":{"v":{"N":"1"}}},{}]}`)
	contains(t, "twice", call(s, "TransactGetItems", `{"TransactItems":[`+a+`,`+a+`]}`), "multiple operations on one item")
}

func TestCapacityIsWhatDynamoDBBills(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	const want = `"ReturnConsumedCapacity":"INDEXES"`
	pad := func(n int) string { return `,"pad":{"S":"` + strings.Repeat("x", n) + `"}` }
	itemWith := func(more string) string {
		return `{"TableName":"orders","Item":{"pk":{"S":"a"},"sk":{"S":"e"}` + more + `},` + want + `}`
	}
	const indexed = `,"gpk":{"S":"g"},"due":{"N":"1"}`
	const key = `"TableName":"orders","Key":{"pk":{"S":"a"},"sk":{"S":"e"}},` + want
	for _, c := range []struct{ what, op, body, total, table, indexes string }{
		{"put 1 KB", "PutItem", itemWith(pad(1024 - 9)), "1", "1", ""},
		{"put one byte more", "PutItem", itemWith(pad(1024 - 8)), "2", "2", ""},
		{"put smaller over larger", "PutItem", itemWith(""), "2", "2", ""},
		{"put into three indexes", "PutItem", itemWith(indexed), "4", "1", `"all":{"CapacityUnits":1},"due":{"CapacityUnits":1},"inc":{"CapacityUnits":1}`},
		{"put the same again", "PutItem", itemWith(indexed), "1", "1", ""},
		{"large attribute only one index projects", "PutItem", itemWith(indexed + pad(2100)), "6", "3", `"all":{"CapacityUnits":3}`},
		{"new sort key of an index", "UpdateItem", `{` + key + `,"UpdateExpression":"SET due = :d","ExpressionAttributeValues":{":d":{"N":"2"}}}`, "11", "3", `"all":{"CapacityUnits":6},"due":{"CapacityUnits":2}`},
		{"read consistently", "GetItem", `{` + key + `,"ConsistentRead":true}`, "1", "1", ""},
		{"read", "GetItem", `{` + key + `}`, "0.5", "0.5", ""},
		{"out of the indexes", "UpdateItem", `{` + key + `,"UpdateExpression":"REMOVE gpk, due"}`, "8", "3", `"all":{"CapacityUnits":3},"due":{"CapacityUnits":1},"inc":{"CapacityUnits":1}`},
		{"delete", "DeleteItem", `{` + key + `}`, "3", "3", ""},
		{"delete nothing", "DeleteItem", `{` + key + `}`, "1", "1", ""},
		{"read nothing", "GetItem", `{` + key + `}`, "0.5", "0.5", ""},
	} {
		indexes := ""
		if c.indexes != "" {
			indexes = `,"GlobalSecondaryIndexes":{` + c.indexes + `}`
		}
		contains(t, c.what, call(s, c.op, c.body), `"ConsumedCapacity":{"TableName":"orders","CapacityUnits":`+c.total+`,"Table":{"CapacityUnits":`+c.table+`}`+indexes+`}`)
	}
	if got := s.Used(name); got != (Usage{Read: 2, Write: 39}) {
		t.Errorf("used %+v, want 2 and 39", got)
	}
}

func TestPagesAndTransactionsUseCapacity(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	store(t, s, attrs{"pk": str("a"), "sk": str("e"), "gpk": str("g"), "due": num("1"), "pad": str(strings.Repeat("x", 5000))})
	for _, c := range []struct{ what, op, body, want string }{
		{"query 5 KB", "Query", `"TableName":"orders","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}}`, `"CapacityUnits":1}`},
		{"query nothing", "Query", `"TableName":"orders","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"b"}}`, `"CapacityUnits":0.5}`},
		{"scan the keys", "Scan", `"TableName":"orders","IndexName":"due"`, `"CapacityUnits":0.5}`},
		{"batch", "BatchGetItem", `"RequestItems":{"orders":{"Keys":[{"pk":{"S":"a"},"sk":{"S":"e"}},{"pk":{"S":"b"},"sk":{"S":"e"}}]}}`, `"CapacityUnits":1.5}]`},
		{"get in a transaction", "TransactGetItems", `"TransactItems":[{"Get":{"TableName":"orders","Key":{"pk":{"S":"a"},"sk":{"S":"e"}}}}]`, `"CapacityUnits":4,"ReadCapacityUnits":4}]`},
		// Twice 5 for the table, 5, 1 and 1 for the indexes, and 1 for the check.
		{"transaction", "TransactWriteItems", `"TransactItems":[{"Put":{"TableName":"orders","Item":{"pk":{"S":"a"},"sk":{"S":"e"}}}},
			{"ConditionCheck":{"TableName":"orders","Key":{"pk":{"S":"b"},"sk":{"S":"e"}},"ConditionExpression":"attribute_not_exists(pk)"}}]`, `"CapacityUnits":26,"WriteCapacityUnits":26}]`},
	} {
		contains(t, c.what, call(s, c.op, `{`+c.body+`,"ReturnConsumedCapacity":"TOTAL"}`), c.want)
	}
}

func TestFailedConditionUsesCapacity(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	store(t, s, attrs{"pk": str("a"), "sk": str("e"), "pad": str(strings.Repeat("x", 1500))})
	before := s.Used(name).Write
	contains(t, "put", call(s, "PutItem", `{"TableName":"orders","Item":{"pk":{"S":"a"},"sk":{"S":"e"}},"ConditionExpression":"attribute_not_exists(pk)"}`), "ConditionalCheckFailed")
	if got := s.Used(name).Write - before; got != 2 {
		t.Errorf("used %v, want 2 for an item of 1.5 KB", got)
	}
}
