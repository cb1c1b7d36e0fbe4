package receive_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"backstop/internal/awslocal"
	"backstop/internal/queue"
	"backstop/internal/receive"
	"backstop/internal/signature"
)

type panicking struct{ value any }

func (p panicking) Send(context.Context, queue.Send) error {
	if p.value == nil {
		nothing := make([]int, 0)
		nothing[cap(nothing)] = 1
	}
	panic(p.value)
}

func TestPanicIsContained(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		honest := b.config.Queue
		for value, want := range map[any]string{
			nil:                           "panic: runtime error: index out of range [0] with length 0",
			"marker@example.test":         "panic of type string",
			errors.New("marker in error"): "panic of type *errors.errorString",
		} {
			b.config.Queue = panicking{value}
			b.Receiver = receive.New(b.config)
			b.wantAnswer(t, b.deliver(t, invoice), 500, failed)
			b.wantLine(t, map[string]any{"level": "ERROR", "outcome": "failed", "reason": "panic", "error": want, "Failed": 1.0})
			if stack, _ := b.lastLine(t)["stack"].(string); !strings.Contains(stack, "panicking") {
				t.Errorf("stack %q", stack)
			}
		}
		b.config.Queue = honest
		b.Receiver = receive.New(b.config)
		b.wantAnswer(t, b.deliver(t, invoice), 200, duplicate)
		b.wantMessages(t, pointer)
		b.wantClean(t)
	})
}

// wantClean checks that the log holds nothing that may not be there.
func (b *bundle) wantClean(t *testing.T) {
	t.Helper()
	for _, secret := range []string{"marker", signing, "whsec", "v1=", "cus_1"} {
		if strings.Contains(b.logged(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, b.logged())
		}
	}
}

func TestLogHoldsNoPayloadSecretOrSignature(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.deliver(t, invoice)
		b.deliver(t, invoice)
		b.deliver(t, `{"id":"evt_1","email":"marker@example.test",`)
		b.post(t, call("POST", "/webhooks/stripe", signature.Sign("whsec_fake_someone_else", []byte(invoice), time.Now()), invoice))
		b.inject("PutItem", 99, awslocal.Fault{Kind: awslocal.Unavailable})
		b.deliver(t, invoice)
		b.inject("SendMessage", 99, awslocal.Fault{Kind: awslocal.Refuse, Code: "AccessDenied", Status: 403})
		b.deliver(t, invoice)
		if n := strings.Count(b.logged(), "\n"); n != 6 {
			t.Errorf("%d lines, want 6", n)
		}
		b.wantClean(t)
	})
}

func TestLineIsEmbeddedMetricFormat(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.deliver(t, invoice)
		got, err := json.Marshal(b.lastLine(t)["_aws"])
		want := fmt.Sprintf(`{"CloudWatchMetrics":[{"Dimensions":[["stage"]],"Metrics":[{"Name":"Received","Unit":"Count"},{"Name":"Enqueued","Unit":"Count"},{"Name":"AckTime","Unit":"Milliseconds"}],"Namespace":"Backstop"}],"Timestamp":%d}`, time.Now().UnixMilli())
		if err != nil || string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
