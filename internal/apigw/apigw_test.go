package apigw

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// envelope wraps a body, given as JSON value, as each service does. %s: body, flag, header name.
var envelopes = map[string]string{
	"HTTPAPI": `{"version":"2.0","routeKey":"POST /webhooks/stripe","rawPath":"/webhooks/stripe","rawQueryString":"a=b",
		"headers":{"content-type":"application/json","%[3]s":"t=1,v1=ab"},
		"requestContext":{"accountId":"1","http":{"method":"POST","path":"/webhooks/stripe"},"requestId":"req-1","stage":"$default"},
		"body":%[1]s,"isBase64Encoded":%[2]s}`,
	"HTTPAPINamedStage": `{"version":"2.0","rawPath":"/prod/webhooks/stripe","headers":{"%[3]s":"t=1,v1=ab"},
		"requestContext":{"http":{"method":"POST"},"requestId":"req-1","stage":"prod"},"body":%[1]s,"isBase64Encoded":%[2]s}`,
	"REST": `{"resource":"/webhooks/stripe","path":"/webhooks/stripe","httpMethod":"POST","headers":{"%[3]s":"last"},
		"multiValueHeaders":{"Accept":["a","b"],"%[3]s":["t=1,v1=ab"]},"queryStringParameters":null,
		"requestContext":{"requestId":"req-1","httpMethod":"POST","path":"/prod/webhooks/stripe","stage":"prod"},
		"body":%[1]s,"isBase64Encoded":%[2]s}`,
	"RESTWithoutMultiValues": `{"path":"/webhooks/stripe","httpMethod":"POST","headers":{"%[3]s":"t=1,v1=ab"},"multiValueHeaders":null,
		"requestContext":{"requestId":"req-1"},"body":%[1]s,"isBase64Encoded":%[2]s}`,
	"HTTPAPIInFormat1": `{"version":"1.0","path":"/prod/webhooks/stripe","httpMethod":"POST","headers":{"%[3]s":"t=1,v1=ab"},
		"multiValueHeaders":{"accept":["a"]},"requestContext":{"requestId":"req-1","stage":"prod"},"body":%[1]s,"isBase64Encoded":%[2]s}`,
	"LoadBalancer": `{"requestContext":{"elb":{"targetGroupArn":"arn"}},"httpMethod":"POST","path":"/webhooks/stripe",
		"queryStringParameters":{},"headers":{"x-amzn-trace-id":"req-1","%[3]s":"t=1,v1=ab"},"body":%[1]s,"isBase64Encoded":%[2]s}`,
	"LoadBalancerMultiValues": `{"requestContext":{"elb":{"targetGroupArn":"arn"}},"httpMethod":"POST","path":"/webhooks/stripe",
		"multiValueHeaders":{"x-amzn-trace-id":["req-1"],"%[3]s":["t=1,v1=ab"]},"body":%[1]s,"isBase64Encoded":%[2]s}`,
}

func TestEveryShapeGivesTheSameRequest(t *testing.T) {
	t.Parallel()
	const want = "{\n  \"name\": \"Zoë 漢 😀\",\"path\":\"a/b\"\n}"
	bodies := map[string][2]string{
		"Text":            {`"{\n  \"name\": \"Zoë 漢 😀\",\"path\":\"a/b\"\n}"`, "false"},
		"EscapedText":     {`"\u007b\n  \"name\": \"Zo\u00eb \u6f22 \ud83d\ude00\",\"path\":\"a\/b\"\n}"`, "false"},
		"Base64":          {`"` + base64.StdEncoding.EncodeToString([]byte(want)) + `"`, "true"},
		"Base64Escaped":   {`"` + strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(want)), "/", `\/`) + `"`, "true"},
		"FlagDecidesText": {`"{\n  \"name\": \"Zoë 漢 😀\",\"path\":\"a/b\"\n}"`, "null"},
	}
	for shape, envelope := range envelopes {
		for name, value := range bodies {
			for _, header := range []string{"stripe-signature", "Stripe-Signature", "STRIPE-SIGNATURE"} {
				got, err := Decode(fmt.Appendf(nil, envelope, value[0], value[1], header))
				if err != nil {
					t.Errorf("%s, %s: %v", shape, name, err)
					continue
				}
				if got.Method != "POST" || got.Path != "/webhooks/stripe" || got.RequestID != "req-1" || string(got.Body) != want {
					t.Errorf("%s, %s: got %s %s %s %q", shape, name, got.Method, got.Path, got.RequestID, got.Body)
				}
				if signature := got.Get("Stripe-Signature"); signature != "t=1,v1=ab" {
					t.Errorf("%s: header %s: got %q", shape, header, signature)
				}
				if got.Get("Stripe-Signatur") != "" {
					t.Errorf("%s: a header out of nowhere", shape)
				}
			}
		}
	}
}

func TestBodyIsTheExactBytes(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`null`:                       "",
		`""`:                         "",
		"\"\xff\xfe\"":               "\xff\xfe",
		`"\ufffd\uffff\ue000\u007f"`: "\ufffd\uffff\ue000\u007f",
		`"\u0000"`:                   "\x00",
	} {
		got, err := Decode(fmt.Appendf(nil, envelopes["HTTPAPI"], value, "false", "x"))
		if err != nil || string(got.Body) != want {
			t.Errorf("%s: got %q, %v, want %q", value, got.Body, err, want)
		}
	}
}

func TestWhatIsNoRequestIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]Reason{
		``:                         BadEnvelope,
		`null`:                     BadEnvelope,
		`[]`:                       BadEnvelope,
		`{}`:                       BadEnvelope,
		`{"version":"2.0"}`:        BadEnvelope,
		`{"source":"aws.events"}`:  BadEnvelope,
		`{"httpMethod":"POST"}`:    BadEnvelope,
		`{"requestContext":"elb"}`: BadEnvelope,
		fmt.Sprintf(envelopes["HTTPAPI"], `{"id":"evt_1"}`, "false", "x"):      BadEnvelope,
		fmt.Sprintf(envelopes["HTTPAPI"], `"%%% not base64 %%%"`, "true", "x"): BadBase64,
		fmt.Sprintf(envelopes["REST"], `"YQ"`, "true", "x"):                    BadBase64,
		fmt.Sprintf(envelopes["LoadBalancer"], `"\ud800"`, "false", "x"):       BadText,
		fmt.Sprintf(envelopes["LoadBalancer"], `"a\udc00b"`, "false", "x"):     BadText,
	} {
		_, err := Decode([]byte(payload))
		var reason Reason
		if !errors.As(err, &reason) || reason != want {
			t.Errorf("%.60s: got %v, want %s", payload, err, want)
		}
	}
}

func TestRepeatedHeadersAreJoined(t *testing.T) {
	t.Parallel()
	got, err := Decode([]byte(`{"path":"/","httpMethod":"GET","multiValueHeaders":{"A":["1","2"],"a":["3"],"B":[]},"headers":{"A":"2"}}`))
	if err != nil || got.Get("a") != "1,2,3" || got.Get("b") != "" {
		t.Errorf("got %q, %q, %v", got.Get("a"), got.Get("b"), err)
	}
}

func TestAnswersTakeTheShapeOfTheRequest(t *testing.T) {
	t.Parallel()
	response := Response{Status: 405, Header: map[string]string{"allow": "POST"}, Body: []byte(`{"error":"x"}`)}
	headers := map[string]any{"allow": "POST", "content-type": "application/json"}
	plain := map[string]any{"statusCode": 405.0, "headers": headers, "body": `{"error":"x"}`, "isBase64Encoded": false}
	balancer := map[string]any{"statusCode": 405.0, "statusDescription": "405 Method Not Allowed", "headers": headers, "body": `{"error":"x"}`, "isBase64Encoded": false}
	multi := map[string]any{"statusCode": 405.0, "statusDescription": "405 Method Not Allowed", "body": `{"error":"x"}`, "isBase64Encoded": false,
		"multiValueHeaders": map[string]any{"allow": []any{"POST"}, "content-type": []any{"application/json"}}}
	for shape, want := range map[string]map[string]any{
		"HTTPAPI": plain, "REST": plain, "LoadBalancer": balancer, "LoadBalancerMultiValues": multi,
	} {
		r, err := Decode(fmt.Appendf(nil, envelopes[shape], `""`, "false", "x"))
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := r.Encode(response)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", shape, diff)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, envelope := range envelopes {
		f.Add(fmt.Appendf(nil, envelope, `"{\"a\":\"\u00e9\"}"`, "false", "stripe-signature"))
		f.Add(fmt.Appendf(nil, envelope, `"eyJhIjoxfQ=="`, "true", "stripe-signature"))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := Decode(payload)
		var reason Reason
		if err != nil && !errors.As(err, &reason) {
			t.Fatalf("an error without a reason: %v", err)
		}
		r.Get("stripe-signature")
		encoded, encodeErr := r.Encode(Response{Status: 200, Body: []byte(`{}`)})
		if encodeErr != nil || !json.Valid(encoded) {
			t.Fatalf("answer %q, %v", encoded, encodeErr)
		}
		if err != nil {
			return
		}
		// Where the standard library replaced nothing, the body must be the same.
		var members map[string]json.RawMessage
		var body string
		if json.Unmarshal(payload, &members) != nil || string(members["isBase64Encoded"]) == "true" ||
			json.Unmarshal(members["body"], &body) != nil || strings.ContainsRune(body, '\ufffd') {
			return
		}
		if string(r.Body) != body {
			t.Fatalf("body %q, want %q", r.Body, body)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	body := strings.Repeat("{\n  \"id\": \"il_1QBenchmark0001\",\n  \"amount\": 1500\n},\n", 60)[:3<<10]
	text, err := json.Marshal(body)
	if err != nil {
		b.Fatal(err)
	}
	for name, payload := range map[string][]byte{
		"text":   fmt.Appendf(nil, envelopes["HTTPAPI"], text, "false", "stripe-signature"),
		"base64": fmt.Appendf(nil, envelopes["HTTPAPI"], `"`+base64.StdEncoding.EncodeToString([]byte(body))+`"`, "true", "stripe-signature"),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := Decode(payload)
				if err != nil || len(r.Body) != len(body) || r.Get("Stripe-Signature") == "" {
					b.Fatal(err)
				}
			}
		})
	}
}
