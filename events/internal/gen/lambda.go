package main

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// How the sample deliveries are signed; package events exports the same.
const (
	signingSecret = "whsec_fake_sample_secret"
	signedAt      = 1790068850 // 2026-09-22T09:20:50Z
	signedAtText  = "22/Sep/2026:09:20:50 +0000"
)

const (
	webhookPath = "/webhooks/stripe"
	apiHost     = "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"
	sender      = "203.0.113.17" // of the range for documentation, not Stripe's
	stripeAgent = "Stripe/1.0 (+https://stripe.com/docs/webhooks)"
	traceID     = "Root=1-6ab10432-5f0c2b7e91d84a3360e7c1aa"
	queueARN    = "arn:aws:sqs:us-east-1:123456789012:backstop-dev-events.fifo"
)

// invocations are what AWS hands to the functions, by file name.
func invocations() map[string]*object {
	byType := samples()
	invoice := string(body(byType["invoice.paid"]))
	customer := string(body(byType["customer.created"]))
	return map[string]*object{
		"httpapi-v2.json":         httpAPI("POST "+webhookPath, apiHost, invoice, false),
		"httpapi-v2-base64.json":  httpAPI("POST "+webhookPath, apiHost, customer, true),
		"function-url.json":       httpAPI("$default", "zx3kq7m2vexample5tyr8.lambda-url.us-east-1.on.aws", customer, false),
		"rest-v1.json":            restAPI(invoice, asSent),
		"rest-v1-multivalue.json": restAPI(customer, strings.ToLower).set("headers", nil),
		"alb.json":                loadBalancer(invoice, false),
		"alb-multivalue.json":     loadBalancer(customer, true),
		"sqs-batch.json":          sqsBatch(),
		"sqs-malformed.json":      sqsMalformed(),
	}
}

func sign(body string) string {
	mac := hmac.New(sha256.New, []byte(signingSecret))
	fmt.Fprintf(mac, "%d.%s", signedAt, body)
	return fmt.Sprintf("t=%d,v1=%x", signedAt, mac.Sum(nil))
}

// headers are those of a delivery behind an AWS front, as pairs of name and value.
func headers(host, body string) []string {
	return []string{
		"Accept", "*/*; q=0.5, application/xml",
		"Cache-Control", "no-cache",
		"Content-Length", strconv.Itoa(len(body)),
		"Content-Type", "application/json; charset=utf-8",
		"Host", host,
		"Stripe-Signature", sign(body),
		"User-Agent", stripeAgent,
		"X-Amzn-Trace-Id", traceID,
		"X-Forwarded-For", sender,
		"X-Forwarded-Port", "443",
		"X-Forwarded-Proto", "https",
	}
}

func single(pairs []string, spell func(string) string) *object {
	o := &object{}
	for i := 0; i < len(pairs); i += 2 {
		o.fields = append(o.fields, field{spell(pairs[i]), pairs[i+1]})
	}
	return o
}

func multi(pairs []string, spell func(string) string) *object {
	o := single(pairs, spell)
	for i := range o.fields {
		o.fields[i].value = []any{o.fields[i].value}
	}
	return o
}

// asSent leaves a header name as Stripe spells it.
func asSent(name string) string { return name }

// httpAPI is payload format 2.0, of an HTTP API and of a function URL.
func httpAPI(routeKey, host, body string, encoded bool) *object {
	path := webhookPath
	sent := body
	if encoded {
		sent = base64.StdEncoding.EncodeToString([]byte(body))
	}
	prefix, _, _ := strings.Cut(host, ".")
	return newObject(
		"version", "2.0", "routeKey", routeKey, "rawPath", path, "rawQueryString", "",
		"headers", single(headers(host, body), strings.ToLower),
		"requestContext", newObject(
			"accountId", "123456789012", "apiId", prefix, "domainName", host, "domainPrefix", prefix,
			"http", newObject("method", "POST", "path", path, "protocol", "HTTP/1.1", "sourceIp", sender, "userAgent", stripeAgent),
			"requestId", "kQ7rZhJ4oAMEPsg=", "routeKey", routeKey, "stage", "$default", "time", signedAtText, "timeEpoch", signedAt*1000),
		"body", sent, "isBase64Encoded", encoded)
}

// restAPI is payload format 1.0, which carries both header maps.
func restAPI(body string, spell func(string) string) *object {
	pairs := headers(apiHost, body)
	return newObject(
		"resource", webhookPath, "path", webhookPath, "httpMethod", "POST",
		"headers", single(pairs, spell), "multiValueHeaders", multi(pairs, spell),
		"queryStringParameters", nil, "multiValueQueryStringParameters", nil, "pathParameters", nil, "stageVariables", nil,
		"requestContext", newObject(
			"resourceId", "q8w2e4", "resourcePath", webhookPath, "httpMethod", "POST", "extendedRequestId", "kQ7rZhJ4oAMEPsg=",
			"requestTime", signedAtText, "path", "/dev"+webhookPath, "accountId", "123456789012", "protocol", "HTTP/1.1",
			"stage", "dev", "domainPrefix", "a1b2c3d4e5", "requestTimeEpoch", signedAt*1000,
			"requestId", "0d6c3b52-7e1f-4a48-9c0b-5f2a61e8d794",
			"identity", newObject("cognitoIdentityPoolId", nil, "accountId", nil, "cognitoIdentityId", nil, "caller", nil,
				"sourceIp", sender, "principalOrgId", nil, "accessKey", nil, "cognitoAuthenticationType", nil,
				"cognitoAuthenticationProvider", nil, "userArn", nil, "userAgent", stripeAgent, "user", nil),
			"domainName", apiHost, "apiId", "a1b2c3d4e5"),
		"body", body, "isBase64Encoded", false)
}

// loadBalancer is what a target group hands over; which header map it has is a
// setting of the target group.
func loadBalancer(body string, multiValue bool) *object {
	pairs := headers("hooks.example.com", body)
	o := newObject(
		"requestContext", newObject("elb", newObject("targetGroupArn",
			"arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/backstop-dev/73e2d6bc24d8a067")),
		"httpMethod", "POST", "path", webhookPath)
	if multiValue {
		o.fields = append(o.fields, newObject("multiValueQueryStringParameters", newObject(),
			"multiValueHeaders", multi(pairs, strings.ToLower)).fields...)
	} else {
		o.fields = append(o.fields, newObject("queryStringParameters", newObject(),
			"headers", single(pairs, strings.ToLower)).fields...)
	}
	o.fields = append(o.fields, newObject("body", body, "isBase64Encoded", false).fields...)
	return o
}

// sqsBatch is a batch of pointers: two of one customer in order, one of another
// customer on its third receive, one replayed.
func sqsBatch() *object {
	w := &world{now: signedAt, mint: realistic("sqs")}
	ada, ben, cleo := w.mint("cus"), w.mint("cus"), w.mint("cus")
	return newObject("Records", []*object{
		pointer(w, ada, "customer.subscription.updated", 0, 1),
		pointer(w, ada, "invoice.paid", 0, 1),
		pointer(w, ben, "invoice.payment_failed", 0, 3),
		pointer(w, cleo, "customer.updated", 1, 1),
	})
}

// sqsMalformed has every kind of body that is no pointer of this version, and a
// good pointer at its end.
func sqsMalformed() *object {
	w := &world{now: signedAt, mint: realistic("sqs malformed")}
	records := []*object{}
	for _, body := range []string{
		"not json",
		`{"v":1,"key":"stripe#-#evt_cut`,
		`["stripe#-#evt_1SlistNotObject"]`,
		`{"v":1,"type":"invoice.paid","created":1790068848,"replay":0}`,
		`{"v":1,"key":42,"type":"invoice.paid","created":1790068848,"replay":0}`,
		`{"v":99,"key":"stripe#-#evt_1SfromTheFuture00000001","type":"invoice.paid","created":1790068848,"replay":0}`,
	} {
		id := w.mint("evt")
		records = append(records, record(w, w.mint("cus"), id+"#0", body, 1))
	}
	return newObject("Records", append(records, pointer(w, w.mint("cus"), "invoice.paid", 0, 1)))
}

func pointer(w *world, group, typ string, replay, receives int) *object {
	id := w.mint("evt")
	body := fmt.Sprintf(`{"v":1,"key":"stripe#-#%s","type":%q,"created":%d,"replay":%d}`, id, typ, w.now-2, replay)
	return record(w, group, fmt.Sprintf("%s#%d", id, replay), body, receives)
}

// record is one FIFO message as the event source mapping delivers it.
func record(w *world, group, dedup, body string, receives int) *object {
	sum := md5.Sum([]byte(body))
	handle := base64.StdEncoding.EncodeToString([]byte(base62("receipt/"+dedup, 120)))
	h := hex.EncodeToString(sha256Of("message/" + dedup))
	sent := w.now*1000 + 100*len(dedup)
	return newObject(
		"messageId", strings.Join([]string{h[:8], h[8:12], "4" + h[13:16], "8" + h[17:20], h[20:32]}, "-"),
		"receiptHandle", handle, "body", body,
		"attributes", newObject(
			"ApproximateReceiveCount", strconv.Itoa(receives), "SentTimestamp", strconv.Itoa(sent),
			"SequenceNumber", w.sequence(), "MessageGroupId", group, "SenderId", "AROAEXAMPLE123456789:backstop-dev-receiver",
			"MessageDeduplicationId", dedup, "ApproximateFirstReceiveTimestamp", strconv.Itoa(sent+37)),
		"messageAttributes", newObject(), "md5OfBody", hex.EncodeToString(sum[:]),
		"eventSource", "aws:sqs", "eventSourceARN", queueARN, "awsRegion", "us-east-1")
}

func sha256Of(s string) []byte { sum := sha256.Sum256([]byte(s)); return sum[:] }

// sequence is the number SQS gives a FIFO message: 20 digits, growing.
func (w *world) sequence() string {
	w.sent++
	return fmt.Sprintf("188964%014d", 25837*1_000_000+w.sent*256)
}

// body is an event as it is posted: no newline at its end.
func body(e *object) []byte {
	t := text(e)
	return t[:len(t)-1]
}
