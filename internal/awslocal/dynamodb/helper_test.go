package dynamodb

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// wire hands requests to the server without a socket.
type wire struct{ s *Server }

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	w.s.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// client is the real SDK's client for the server. It does not retry.
func client(s *Server) *sdk.Client {
	return sdk.New(sdk.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://dynamodb.local"), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
		HTTPClient:  &http.Client{Transport: wire{s}},
	})
}

type attrs = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// text is the string or number an attribute holds.
func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return "?"
}

// code is the name of an API error, "" for success.
func code(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		t.Fatalf("not an error of the API: %v", err)
	}
	return api.ErrorCode()
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const name = "orders"

// ordersTable: key pk and sk; sparse indexes due (gpk, due; KEYS_ONLY), inc (gpk; INCLUDE x) and all (due, sk; ALL).
const ordersTable = `{"TableName":"orders","BillingMode":"PAY_PER_REQUEST",
	"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"},
		{"AttributeName":"gpk","AttributeType":"S"},{"AttributeName":"due","AttributeType":"N"}],
	"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
	"GlobalSecondaryIndexes":[
		{"IndexName":"due","KeySchema":[{"AttributeName":"gpk","KeyType":"HASH"},{"AttributeName":"due","KeyType":"RANGE"}],"Projection":{"ProjectionType":"KEYS_ONLY"}},
		{"IndexName":"inc","KeySchema":[{"AttributeName":"gpk","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x"]}},
		{"IndexName":"all","KeySchema":[{"AttributeName":"due","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}],
	"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`

// orders is a server with the orders table.
func orders(t testing.TB, o Options) *Server {
	t.Helper()
	s := New(o)
	if got := call(s, "CreateTable", ordersTable); strings.Contains(got, "__type") {
		t.Fatal(got)
	}
	return s
}

// call posts JSON and returns the reply's.
func call(s *Server, op, body string) string {
	target := "DynamoDB_20120810." + op
	if strings.Contains(op, ".") {
		target = op
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", target)
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	return rec.Body.String()
}

func store(t testing.TB, s *Server, it attrs) {
	t.Helper()
	if _, err := client(s).PutItem(context.Background(), &sdk.PutItemInput{TableName: aws.String(name), Item: it}); err != nil {
		t.Fatal(err)
	}
}

func stored(t testing.TB, s *Server, pk, sk string) attrs {
	t.Helper()
	out, err := client(s).GetItem(context.Background(), &sdk.GetItemInput{TableName: aws.String(name), Key: attrs{"pk": str(pk), "sk": str(sk)}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// contains fails the test unless the reply has the part.
func contains(t *testing.T, what, reply, part string) {
	t.Helper()
	if !strings.Contains(reply, part) {
		t.Errorf("%s:\n got %s\nwant %s", what, reply, part)
	}
}
