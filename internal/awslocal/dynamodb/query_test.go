package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// dueNow asks the sparse index for everything of partition g.
func dueNow() *sdk.QueryInput {
	return &sdk.QueryInput{TableName: aws.String(name), IndexName: aws.String("due"), KeyConditionExpression: aws.String("gpk = :g"), ExpressionAttributeValues: attrs{":g": str("g")}}
}

// pages runs a query to its end and returns the named attribute of the items and the number of pages.
func pages(t *testing.T, s *Server, q *sdk.QueryInput, attribute string) (got []string, count int) {
	t.Helper()
	for {
		out, err := client(s).Query(context.Background(), q)
		ok(t, err)
		count++
		for _, it := range out.Items {
			got = append(got, text(it[attribute]))
		}
		if out.LastEvaluatedKey == nil {
			return got, count
		}
		q.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func TestIndexQueryPagesThroughEqualKeysInNumericOrder(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	for i, due := range []string{"7", "100", "7", "-5", "7", "20", "7"} {
		store(t, s, attrs{"pk": str(fmt.Sprint("p", i)), "sk": str("e"), "gpk": str("g"), "due": num(due), "payload": str("zzz")})
	}
	store(t, s, attrs{"pk": str("sparse"), "sk": str("e"), "due": num("1")})
	for _, forward := range []bool{true, false} {
		q := dueNow()
		q.Limit, q.ScanIndexForward = aws.Int32(2), aws.Bool(forward)
		dues, _ := pages(t, s, q, "due")
		want := []string{"-5", "7", "7", "7", "7", "20", "100"}
		if !forward {
			slices.Reverse(want)
		}
		if !slices.Equal(dues, want) {
			t.Errorf("forward %t: %v, want %v", forward, dues, want)
		}
	}
	q := dueNow()
	q.Limit = aws.Int32(1)
	keys, _ := pages(t, s, q, "pk")
	slices.Sort(keys)
	if want := []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6"}; !slices.Equal(keys, want) {
		t.Errorf("%v, want each once", keys)
	}
	out, err := client(s).Query(context.Background(), &sdk.QueryInput{TableName: q.TableName, IndexName: q.IndexName, Limit: aws.Int32(1), KeyConditionExpression: q.KeyConditionExpression, ExpressionAttributeValues: q.ExpressionAttributeValues})
	ok(t, err)
	if len(out.Items[0]) != 4 || len(out.LastEvaluatedKey) != 4 {
		t.Errorf("a KEYS_ONLY index gave %v and %v, want the four keys", out.Items[0], out.LastEvaluatedKey)
	}
}

func TestIndexFollowsTheItem(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	count := func() int32 {
		q := dueNow()
		q.Select = types.SelectCount
		out, err := client(s).Query(context.Background(), q)
		ok(t, err)
		if len(out.Items) != 0 {
			t.Errorf("COUNT returned items: %v", out.Items)
		}
		return out.Count
	}
	store(t, s, attrs{"pk": str("a"), "sk": str("e"), "gpk": str("g"), "due": num("1")})
	if count() != 1 {
		t.Fatal("not in the index after the put")
	}
	for _, step := range []struct {
		update string
		want   int32
	}{{"REMOVE due", 0}, {"SET due = :v", 1}, {"SET gpk = :other", 0}, {"SET gpk = :g", 1}} {
		values := attrs{}
		for k, v := range (attrs{":v": num("2"), ":other": str("h"), ":g": str("g")}) {
			if strings.HasSuffix(step.update, k) {
				values[k] = v
			}
		}
		if len(values) == 0 {
			values = nil
		}
		_, err := client(s).UpdateItem(context.Background(), &sdk.UpdateItemInput{TableName: aws.String(name), Key: attrs{"pk": str("a"), "sk": str("e")}, UpdateExpression: aws.String(step.update), ExpressionAttributeValues: values})
		ok(t, err)
		if got := count(); got != step.want {
			t.Errorf("after %s the index has %d, want %d", step.update, got, step.want)
		}
	}
	_, err := client(s).DeleteItem(context.Background(), &sdk.DeleteItemInput{TableName: aws.String(name), Key: attrs{"pk": str("a"), "sk": str("e")}})
	ok(t, err)
	if count() != 0 {
		t.Error("in the index after the delete")
	}
}

func TestPageEndsBeforeOneMegabyte(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	for i := range 6 {
		store(t, s, attrs{"pk": str("a"), "sk": str(fmt.Sprint("e", i)), "big": str(strings.Repeat("x", 300<<10)), "k": num(fmt.Sprint(i % 2))})
	}
	q := &sdk.QueryInput{TableName: aws.String(name), KeyConditionExpression: aws.String("pk = :p"), FilterExpression: aws.String("k = :k"),
		ProjectionExpression: aws.String("sk"), ExpressionAttributeValues: attrs{":p": str("a"), ":k": num("1")}}
	got, count := pages(t, s, q, "sk")
	if want := []string{"e1", "e3", "e5"}; !slices.Equal(got, want) || count != 2 {
		t.Errorf("%v in %d pages, want %v in 2", got, count, want)
	}
}

func TestKeyConditionsSelectRanges(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	for _, sk := range []string{"a", "ab", "abc", "b", "ba", "é"} {
		store(t, s, attrs{"pk": str("p"), "sk": str(sk), "n": num(fmt.Sprint(len(sk)))})
		store(t, s, attrs{"pk": str("other"), "sk": str(sk)})
	}
	for _, c := range []struct{ condition, rest, want string }{
		{"pk = :p", ``, "a ab abc b ba é"},
		{":p = pk", ``, "a ab abc b ba é"},
		{"pk = :p AND sk > :a", `":a":{"S":"ab"}`, "abc b ba é"},
		{"(sk > :a) AND (pk = :p)", `":a":{"S":"ab"}`, "abc b ba é"},
		{"pk = :p AND :a < sk", `":a":{"S":"ab"}`, "abc b ba é"},
		{"pk = :p AND sk >= :a", `":a":{"S":"ab"}`, "ab abc b ba é"},
		{"pk = :p AND sk < :a", `":a":{"S":"ab"}`, "a"},
		{"pk = :p AND sk <= :a", `":a":{"S":"ab"}`, "a ab"},
		{"pk = :p AND sk = :a", `":a":{"S":"ab"}`, "ab"},
		{"pk = :p AND sk BETWEEN :a AND :b", `":a":{"S":"ab"},":b":{"S":"b"}`, "ab abc b"},
		{"pk = :p AND begins_with(sk, :a)", `":a":{"S":"ab"}`, "ab abc"},

		{"pk = :p OR sk = :p", ``, "Invalid operator used in KeyConditionExpression: OR"},
		{"NOT pk = :p", ``, "Invalid operator used in KeyConditionExpression: NOT"},
		{"pk = :p AND sk <> :p", ``, "Invalid operator used in KeyConditionExpression: <>"},
		{"pk = :p AND sk IN (:p)", ``, "Invalid operator used in KeyConditionExpression: IN"},
		{"pk = :p AND contains(sk, :p)", ``, "Invalid operator used in KeyConditionExpression: contains"},
		{"pk > :p", ``, "Query key condition not supported"},
		{"sk = :p", ``, "Query condition missed key schema element: pk"},
		{"pk = :p AND n = :p", ``, "Query condition missed key schema element: sk"},
		{"pk = :p AND sk = :p AND n = :p", ``, "Query key condition not supported"},
		{"pk = :p AND sk > :p AND sk < :p", ``, "KeyConditionExpressions must only contain one condition per key"},
		{"pk = :p AND sk = :a", `":a":{"N":"1"}`, "Condition parameter type does not match schema type"},
		{"pk = :p AND sk = :a", `":a":{"S":""}`, "cannot contain an empty string value. Key: sk"},
		{"pk = :p AND sk = :a AND size(sk) = :b", `":a":{"S":"a"},":b":{"N":"1"}`, "ValidationException"},
		{"pk = sk", ``, "ValidationException"},
		{"pk.a = :p", ``, "ValidationException"},
		{"", ``, "The expression can not be empty"},
	} {
		values := `":p":{"S":"p"}`
		if c.rest != "" {
			values += "," + c.rest
		}
		body := fmt.Sprintf(`{"TableName":"orders","KeyConditionExpression":%q,"ExpressionAttributeValues":{%s}`, c.condition, values)
		got := call(s, "Query", body+`}`)
		if strings.Contains(got, "__type") {
			contains(t, c.condition, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(got), c.want)
			continue
		}
		for _, direction := range []bool{true, false} {
			got := call(s, "Query", fmt.Sprintf(`%s,"ScanIndexForward":%t,"ProjectionExpression":"sk"}`, body, direction))
			want := strings.Fields(c.want)
			if !direction {
				slices.Reverse(want)
			}
			items := ""
			for i, sk := range want {
				if i > 0 {
					items += ","
				}
				items += `{"sk":{"S":"` + sk + `"}}`
			}
			contains(t, fmt.Sprint(c.condition, direction), got, fmt.Sprintf(`{"Items":[%s],"Count":%d,`, items, len(want)))
		}
	}
}

func TestReadParametersAreChecked(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	store(t, s, attrs{"pk": str("p"), "sk": str("a"), "gpk": str("g"), "due": num("1"), "x": str("shown"), "y": str("hidden")})
	const g = `"KeyConditionExpression":"gpk = :g","ExpressionAttributeValues":{":g":{"S":"g"}},"IndexName":"due"`
	const p = `"KeyConditionExpression":"pk = :g","ExpressionAttributeValues":{":g":{"S":"p"}}`
	for _, c := range []struct{ op, params, want string }{
		{"Query", g + `,"ConsistentRead":true`, "Consistent reads are not supported on global secondary indexes"},
		{"Query", g + `,"Select":"ALL_ATTRIBUTES"`, "Select type ALL_ATTRIBUTES is not supported for global secondary index due because its projection type is not ALL"},
		{"Query", g + `,"ProjectionExpression":"x"`, "Global secondary index due does not project [x]"},
		{"Query", g + `,"FilterExpression":"attribute_exists(x)"`, "does not project one or more filter attributes: [x]"},
		{"Query", g + `,"FilterExpression":"attribute_exists(due)"`, "Filter Expression can only contain non-primary key attributes: Primary key attribute: due"},
		{"Query", g + `,"FilterExpression":"attribute_exists(pk)"`, `"Count":1`},
		{"Query", g + `,"Select":"COUNT","ProjectionExpression":"pk"`, "Cannot specify the ProjectionExpression when choosing to get only the Count"},
		{"Query", g + `,"Select":"SPECIFIC_ATTRIBUTES"`, "Must specify the AttributesToGet or ProjectionExpression"},
		{"Query", g + `,"Limit":0`, "Member must have value greater than or equal to 1"},
		{"Query", strings.Replace(g, `"due"`, `"inc"`, 1), `{"Items":[{"gpk":{"S":"g"},"pk":{"S":"p"},"sk":{"S":"a"},"x":{"S":"shown"}}],"Count":1,"ScannedCount":1}`},
		{"Query", strings.Replace(g, `"due"`, `"none"`, 1), "The table does not have the specified index: none"},
		{"Query", p + `,"Select":"ALL_PROJECTED_ATTRIBUTES"`, "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"},
		{"Query", p + `,"Select":"SOME"`, "Member must satisfy enum value set"},
		{"Query", p + `,"ExclusiveStartKey":{"pk":{"S":"p"}}`, "The provided starting key is invalid"},
		{"Query", p + `,"ExclusiveStartKey":{"pk":{"S":"p"},"sk":{"N":"1"}}`, "The provided starting key is invalid"},
		{"Query", p + `,"ExclusiveStartKey":{"pk":{"S":"q"},"sk":{"S":"1"}}`, "The provided starting key is outside query boundaries"},
		{"Query", p + `,"ExclusiveStartKey":{"pk":{"S":"p"},"sk":{"S":"0"}}`, `"Count":1`},
		{"Query", p + `,"ExclusiveStartKey":{"pk":{"S":"p"},"sk":{"S":"a"}}`, `{"Items":[],"Count":0,"ScannedCount":0}`},
		{"Query", p + `,"KeyConditions":{}`, `The parameter \"KeyConditions\" is not supported by this endpoint`},
		{"Query", ``, "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
		{"Scan", `"Segment":0`, "The TotalSegments parameter is required"},
		{"Scan", `"TotalSegments":2`, "The Segment parameter is required"},
		{"Scan", `"Segment":2,"TotalSegments":2`, "The Segment parameter is zero-based and must be less than parameter TotalSegments"},
		{"Scan", `"IndexName":"due","ConsistentRead":true`, "Consistent reads are not supported"},
		{"Scan", `"FilterExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}},"Select":"COUNT"`, `{"Count":1,"ScannedCount":1}`},
		{"Scan", `"ExpressionAttributeNames":{"#p":"p"}`, "ExpressionAttributeNames can only be specified when using expressions"},
		{"Scan", `"FilterExpression":"x = x.y","ExpressionAttributeNames":{}`, "ExpressionAttributeNames must not be empty"},
		{"Scan", `"FilterExpression":"x = x.y","ExpressionAttributeNames":{"p":"p"}`, "ExpressionAttributeNames contains invalid key"},
		{"Scan", `"FilterExpression":"x = x.y","ExpressionAttributeNames":{"#p":"p"}`, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#p}"},
	} {
		body := `{"TableName":"orders"`
		if c.params != "" {
			body += "," + c.params
		}
		contains(t, c.op+" "+c.params, call(s, c.op, body+"}"), c.want)
	}
}

func TestSegmentsOfAScanShareTheTable(t *testing.T) {
	t.Parallel()
	s := orders(t, Options{})
	for i := range 60 {
		store(t, s, attrs{"pk": str(fmt.Sprint("e", i)), "sk": str("e"), "k": num(fmt.Sprint(i % 3))})
	}
	seen := map[string]int{}
	for segment := range int32(4) {
		in := &sdk.ScanInput{TableName: aws.String(name), Segment: &segment, TotalSegments: aws.Int32(4), Limit: aws.Int32(7),
			FilterExpression: aws.String("k = :k"), ExpressionAttributeValues: attrs{":k": num("1")}}
		for {
			out, err := client(s).Scan(context.Background(), in)
			ok(t, err)
			if out.ScannedCount > 7 {
				t.Fatalf("looked at %d items, limit 7", out.ScannedCount)
			}
			for _, it := range out.Items {
				seen[text(it["pk"])]++
			}
			if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
				break
			}
		}
	}
	if len(seen) != 20 {
		t.Errorf("saw %d items, want 20", len(seen))
	}
	for pk, n := range seen {
		if n != 1 {
			t.Errorf("saw %s %d times", pk, n)
		}
	}
}

func TestMissingTableIsATypedError(t *testing.T) {
	t.Parallel()
	_, err := client(New(Options{})).Query(context.Background(), dueNow())
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		t.Errorf("got %v, want a ResourceNotFoundException", err)
	}
}
