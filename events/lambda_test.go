package events_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	samples "backstop/events"
)

func invocation(t *testing.T, name string) []byte {
	t.Helper()
	body, err := samples.Invocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// strictly decodes into AWS's own type and refuses a field that it lacks.
func strictly(t *testing.T, body []byte, v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// verified checks a delivery against the documented secret and time, and that
// its body is the sample of a type.
func verified(t *testing.T, header, sent string, encoded bool, typ string) {
	t.Helper()
	body := []byte(sent)
	if encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(sent); err != nil {
			t.Fatal(err)
		}
	}
	signature, ok := strings.CutPrefix(header, "t=1790068850,v1=")
	if !ok {
		t.Fatalf("signature header %q", header)
	}
	mac := hmac.New(sha256.New, []byte("whsec_fake_sample_secret"))
	mac.Write([]byte("1790068850."))
	mac.Write(body)
	if want := hex.EncodeToString(mac.Sum(nil)); signature != want {
		t.Errorf("signature %s, want %s", signature, want)
	}
	if !bytes.Equal(body, sample(t, typ)) {
		t.Errorf("the body is not the sample of %s", typ)
	}
}

func TestHTTPAPIDeliveriesVerify(t *testing.T) {
	t.Parallel()
	for name, encoded := range map[string]bool{"httpapi-v2": false, "httpapi-v2-base64": true} {
		var req events.APIGatewayV2HTTPRequest
		strictly(t, invocation(t, name), &req)
		if req.Version != "2.0" || req.RequestContext.HTTP.Method != "POST" || req.RawPath != "/webhooks/stripe" || req.IsBase64Encoded != encoded {
			t.Errorf("%s: %+v", name, req)
		}
		typ := "invoice.paid"
		if encoded {
			typ = "customer.created"
		}
		verified(t, req.Headers["stripe-signature"], req.Body, encoded, typ)
	}
}

func TestFunctionURLDeliveryVerifies(t *testing.T) {
	t.Parallel()
	var req events.LambdaFunctionURLRequest
	if err := json.Unmarshal(invocation(t, "function-url"), &req); err != nil { // AWS's type lacks routeKey of the context
		t.Fatal(err)
	}
	if !strings.HasSuffix(req.RequestContext.DomainName, ".lambda-url.us-east-1.on.aws") {
		t.Errorf("domain %q", req.RequestContext.DomainName)
	}
	verified(t, req.Headers["stripe-signature"], req.Body, false, "customer.created")
}

func TestRESTAPIDeliveriesVerify(t *testing.T) {
	t.Parallel()
	var both, multi events.APIGatewayProxyRequest
	if err := json.Unmarshal(invocation(t, "rest-v1"), &both); err != nil { // AWS's type lacks identity.principalOrgId
		t.Fatal(err)
	}
	verified(t, both.Headers["Stripe-Signature"], both.Body, false, "invoice.paid")
	verified(t, both.MultiValueHeaders["Stripe-Signature"][0], both.Body, false, "invoice.paid")
	if err := json.Unmarshal(invocation(t, "rest-v1-multivalue"), &multi); err != nil {
		t.Fatal(err)
	}
	if multi.Headers != nil {
		t.Errorf("single headers %v, want none", multi.Headers)
	}
	verified(t, multi.MultiValueHeaders["stripe-signature"][0], multi.Body, false, "customer.created")
}

func TestLoadBalancerDeliveriesVerify(t *testing.T) {
	t.Parallel()
	var single, multi events.ALBTargetGroupRequest
	strictly(t, invocation(t, "alb"), &single)
	verified(t, single.Headers["stripe-signature"], single.Body, false, "invoice.paid")
	strictly(t, invocation(t, "alb-multivalue"), &multi)
	if multi.Headers != nil {
		t.Errorf("single headers %v, want none", multi.Headers)
	}
	verified(t, multi.MultiValueHeaders["stripe-signature"][0], multi.Body, false, "customer.created")
}

func batch(t *testing.T, name string) []events.SQSMessage {
	t.Helper()
	var e events.SQSEvent
	strictly(t, invocation(t, name), &e)
	for _, m := range e.Records {
		sum := md5.Sum([]byte(m.Body))
		if hex.EncodeToString(sum[:]) != m.Md5OfBody || len(m.Attributes["SequenceNumber"]) != 20 || len(m.MessageId) != 36 {
			t.Errorf("%s: record %+v", name, m)
		}
	}
	return e.Records
}

func TestBatchHoldsPointers(t *testing.T) {
	t.Parallel()
	records := batch(t, "sqs-batch")
	var got, receives []string
	groups := map[string]int{}
	for _, m := range records {
		var p struct {
			V, Created, Replay int
			Key, Type          string
		}
		strictly(t, []byte(m.Body), &p)
		id, ok := strings.CutPrefix(p.Key, "stripe#-#")
		if !ok || p.V != 1 || p.Created != 1790068848 || !strings.HasPrefix(m.Attributes["MessageDeduplicationId"], id+"#") {
			t.Errorf("pointer %s with %v", m.Body, m.Attributes)
		}
		got = append(got, p.Type)
		receives = append(receives, m.Attributes["ApproximateReceiveCount"])
		groups[m.Attributes["MessageGroupId"]]++
	}
	if want := []string{"customer.subscription.updated", "invoice.paid", "invoice.payment_failed", "customer.updated"}; !slices.Equal(got, want) {
		t.Errorf("types %q, want %q", got, want)
	}
	if want := []string{"1", "1", "3", "1"}; !slices.Equal(receives, want) {
		t.Errorf("receive counts %q, want %q", receives, want)
	}
	if len(groups) != 3 || groups[records[0].Attributes["MessageGroupId"]] != 2 {
		t.Errorf("groups %v, want 3 with 2 records in the first", groups)
	}
}

func TestMalformedBatchEndsWithAGoodPointer(t *testing.T) {
	t.Parallel()
	records := batch(t, "sqs-malformed")
	if len(records) != 7 {
		t.Fatalf("%d records, want 7", len(records))
	}
	for i, m := range records {
		var p struct {
			V   int
			Key string
		}
		err := json.Unmarshal([]byte(m.Body), &p)
		good := err == nil && p.V == 1 && strings.HasPrefix(p.Key, "stripe#-#evt_")
		if good != (i == 6) {
			t.Errorf("record %d: good is %v: %s", i, good, m.Body)
		}
	}
}

func TestUnknownInvocationIsNotThere(t *testing.T) {
	t.Parallel()
	if _, err := samples.Invocation("alb-v9"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want an error that matches fs.ErrNotExist", err)
	}
}
