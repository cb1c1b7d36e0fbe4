package receive_test

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"backstop/events"
	"backstop/internal/awslocal"
	"backstop/internal/ledger"
	"backstop/internal/receive"
	"backstop/internal/secret"
	"backstop/internal/signature"
)

// bubble runs a test with virtual time.
func bubble(t *testing.T, run func(t *testing.T, b *bundle)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { run(t, setup(t)) })
}

const (
	received  = `{"received":true}`
	duplicate = `{"received":true,"duplicate":true}`
	failed    = `{"error":""}`
)

func TestDeliveryIsRecordedEnqueuedAndAcknowledged(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.wantAnswer(t, b.deliver(t, invoice), 200, received)
		entry, err := b.ledger.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if string(entry.Body) != invoice {
			t.Errorf("stored %q", entry.Body)
		}
		if entry.Status != ledger.Recorded || entry.Type != "invoice.paid" || entry.CreatedS != 1790000000 || entry.Account != "" ||
			entry.Livemode || entry.APIVersion != "2025-08-27.basil" || entry.ObjectID != "in_1" || entry.Group != "cus_1" ||
			entry.Origin != ledger.Webhook || entry.Token != "delivery-1" {
			t.Errorf("entry %+v", entry)
		}
		b.wantMessages(t, pointer)
		b.wantLine(t, map[string]any{
			"msg": "delivery", "level": "INFO", "request_id": "req-1", "event_id": "evt_1", "type": "invoice.paid", "outcome": "received",
			"status": 200.0, "bytes": float64(len(invoice)), "ms": 0.0, "secret": 0.0, "livemode": false, "api_version": "2025-08-27.basil",
			"Received": 1.0, "Enqueued": 1.0, "AckTime": 0.0, "Duplicates": nil, "Failed": nil, "VersionMismatch": nil, "reason": nil, "error": nil,
		})
	})
}

func TestOtherVersionIsTakenAndCounted(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.wantAnswer(t, b.deliver(t, strings.Replace(invoice, "2025-08-27.basil", "2023-10-16", 1)), 200, received)
		b.wantLine(t, map[string]any{"VersionMismatch": 1.0, "api_version": "2023-10-16"})
		b.wantMessages(t, pointer)
	})
}

func TestThinNotificationIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.wantAnswer(t, b.deliver(t, `{"id":"evt_test_2","object":"v2.core.event","type":"v2.core.account[requirements].updated",
			"created":"2026-09-21T14:13:18.000Z","livemode":false,"related_object":{"id":"acct_2","type":"v2.core.account"}}`), 200, received)
		b.wantMessages(t, `acct_2 {"v":1,"key":"stripe#-#evt_test_2","type":"v2.core.account[requirements].updated","created":1789999998,"replay":0}`)
		b.wantLine(t, map[string]any{"VersionMismatch": nil})
	})
}

func TestAccountIsPartOfTheIdentity(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.wantAnswer(t, b.deliver(t, invoice), 200, received)
		connected := strings.Replace(invoice, `"object": "event"`, `"object": "event", "account": "acct_1"`, 1)
		b.wantAnswer(t, b.deliver(t, connected), 200, received)
		if n := b.entries(t); n != 2 {
			t.Errorf("%d entries", n)
		}
	})
}

// What a second delivery finds decides what it does. Ten minutes pass before it, so that SQS's own deduplication
// hides nothing.
func TestSecondDeliveryDoesWhatItsEntryNeeds(t *testing.T) {
	t.Parallel()
	claim := func(t *testing.T, b *bundle, lease time.Duration) ledger.Claim {
		c, err := b.ledger.Claim(t.Context(), ledger.Claiming{Key: key, Token: "m1#1", Until: time.Now().Add(lease)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	settle := func(t *testing.T, b *bundle, s ledger.Settlement) {
		if err := b.ledger.Settle(t.Context(), claim(t, b, time.Minute), s); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		prepare  func(t *testing.T, b *bundle)
		outcome  string
		messages []string
		status   ledger.Status
		replay   int
	}{
		"Recorded":       {func(*testing.T, *bundle) {}, "reenqueued", []string{pointer}, ledger.Recorded, 0},
		"Processing":     {func(t *testing.T, b *bundle) { claim(t, b, time.Hour) }, "duplicate", nil, ledger.Processing, 0},
		"LeasePassed":    {func(t *testing.T, b *bundle) { claim(t, b, time.Minute) }, "reenqueued", []string{pointer}, ledger.Processing, 0},
		"LeaseEndingNow": {func(t *testing.T, b *bundle) { claim(t, b, 10*time.Minute) }, "reenqueued", []string{pointer}, ledger.Processing, 0},
		"Done": {func(t *testing.T, b *bundle) { settle(t, b, ledger.Settlement{Status: ledger.Done}) },
			"duplicate", nil, ledger.Done, 0},
		"Skipped": {func(t *testing.T, b *bundle) {
			settle(t, b, ledger.Settlement{Status: ledger.Skipped, Error: "nobody handles it"})
		},
			"duplicate", nil, ledger.Skipped, 0},
		"Parked": {func(t *testing.T, b *bundle) {
			settle(t, b, ledger.Settlement{Status: ledger.Parked, Class: ledger.ClassError, Error: "x", Charge: true})
		}, "replayed", []string{replayed}, ledger.Recorded, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				b.wantAnswer(t, b.deliver(t, invoice), 200, received)
				b.wantMessages(t, pointer)
				test.prepare(t, b)
				time.Sleep(10 * time.Minute)
				// Its group is the stored one, whatever the envelope says by now.
				again := strings.Replace(invoice, `"customer": "cus_1"`, `"customer": "cus_2"`, 1)
				b.wantAnswer(t, b.deliver(t, again), 200, duplicate)
				b.wantMessages(t, test.messages...)
				b.wantLine(t, map[string]any{"outcome": test.outcome, "Duplicates": 1.0})
				entry, err := b.ledger.Get(t.Context(), key)
				if err != nil || entry.Status != test.status || entry.Replay != test.replay || string(entry.Body) != invoice {
					t.Errorf("entry %s at replay %d, %v, body %q", entry.Status, entry.Replay, err, entry.Body)
				}
				// A positive control: another event still comes through.
				b.wantAnswer(t, b.deliver(t, strings.Replace(invoice, "evt_1", "evt_9", 1)), 200, received)
				b.wantMessages(t, strings.Replace(pointer, "evt_1", "evt_9", 1))
			})
		})
	}
}

func TestEntryOfAnUnknownStatusIsNotVouchedFor(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.wantAnswer(t, b.deliver(t, invoice), 200, received)
		b.wantMessages(t, pointer)
		b.setStatus(t, "archived")
		b.wantAnswer(t, b.deliver(t, invoice), 500, `{"error":""}`)
		b.wantMessages(t)
		b.wantLine(t, map[string]any{"outcome": "failed", "reason": "record_failed", "error": "the entry's status is not known"})
		b.setStatus(t, "recorded")
		time.Sleep(6 * time.Minute)
		b.wantAnswer(t, b.deliver(t, invoice), 200, duplicate)
		b.wantMessages(t, pointer)
	})
}

func TestDeliveryAfterItsEntryExpiredIsNew(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.wantAnswer(t, b.deliver(t, invoice), 200, received)
		claim, err := b.ledger.Claim(t.Context(), ledger.Claiming{Key: key, Token: "m1#1", Until: time.Now().Add(time.Minute)})
		if err == nil {
			err = b.ledger.Settle(t.Context(), claim, ledger.Settlement{Status: ledger.Done})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(34 * 24 * time.Hour)
		b.wantAnswer(t, b.deliver(t, invoice), 200, duplicate)
		time.Sleep(2 * 24 * time.Hour)
		b.wantAnswer(t, b.deliver(t, invoice), 200, received)
	})
}

func TestSimultaneousDeliveriesMakeOneEntryAndOneMessage(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		var group sync.WaitGroup
		answers := make([]answer, 5)
		for i := range answers {
			group.Go(func() { answers[i] = b.deliver(t, invoice) })
		}
		group.Wait()
		news := 0
		for _, a := range answers {
			if a.StatusCode != 200 {
				t.Errorf("answered %d", a.StatusCode)
			}
			if a.Body == received {
				news++
			}
		}
		if news != 1 || b.entries(t) != 1 {
			t.Errorf("%d new, %d entries", news, b.entries(t))
		}
		b.wantMessages(t, pointer)
	})
}

func TestBadRequestsAreRefusedAndLeaveNothing(t *testing.T) {
	t.Parallel()
	signed := func(body string) (string, string) { return signature.Sign(signing, []byte(body), time.Now()), body }
	for name, test := range map[string]struct {
		request func() (header, body string)
		status  int
		reason  string
		metric  string
	}{
		"Unsigned": {func() (string, string) { return "", invoice }, 400, "signature_header_missing", "RefusedSignature"},
		"Stranger": {func() (string, string) {
			return signature.Sign("whsec_fake_someone_else", []byte(invoice), time.Now()), invoice
		}, 400, "no_accepted_secret_matched", "RefusedSignature"},
		"KeyedByNothing": {func() (string, string) { return signature.Sign("", []byte(invoice), time.Now()), invoice }, 400, "no_accepted_secret_matched", "RefusedSignature"},
		"Altered":        {func() (string, string) { h, b := signed(invoice); return h, b + " " }, 400, "no_accepted_secret_matched", "RefusedSignature"},
		"Malformed":      {func() (string, string) { return "t=soon,v1=x", invoice }, 400, "signature_header_malformed", "RefusedBad"},
		"TooOld": {func() (string, string) {
			return signature.Sign(signing, []byte(invoice), time.Now().Add(-301*time.Second)), invoice
		}, 400, "signature_too_old", "RefusedAge"},
		"TooNew": {func() (string, string) {
			return signature.Sign(signing, []byte(invoice), time.Now().Add(301*time.Second)), invoice
		}, 400, "signature_too_new", "RefusedAge"},
		"NotJSON":    {func() (string, string) { return signed(`{"id":"evt_1","email":"marker@example.test",`) }, 400, "not_json", "RefusedBad"},
		"NotAnEvent": {func() (string, string) { return signed(`{"hello":"marker@example.test"}`) }, 400, "no_event_id", "RefusedBad"},
		"Empty":      {func() (string, string) { return signed("") }, 400, "not_json", "RefusedBad"},
		"TooLarge":   {func() (string, string) { return signed(strings.Repeat("x", 4<<20+1)) }, 413, "body_too_large", "RefusedBad"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bundle) {
				header, body := test.request()
				b.wantAnswer(t, b.post(t, call("POST", "/webhooks/stripe", header, body)), test.status, `{"error":"`+test.reason+`"}`)
				b.wantNothing(t)
				b.wantLine(t, map[string]any{
					"msg": "delivery", "level": "WARN", "outcome": "refused", "reason": test.reason, "status": float64(test.status), test.metric: 1.0,
				})
				if n := strings.Count(b.logged(), "\n"); n != 1 {
					t.Errorf("%d lines", n)
				}
				b.wantAnswer(t, b.deliver(t, invoice), 200, received)
				b.wantMessages(t, pointer)
			})
		})
	}
}

func TestBrokenGatewayEventsAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		encoded := strings.Replace(string(call("POST", "/webhooks/stripe", "t=1,v1=x", "%%% not base64 %%%")), `"isBase64Encoded":false`, `"isBase64Encoded":true`, 1)
		b.wantAnswer(t, b.post(t, []byte(encoded)), 400, `{"error":"body_not_base64"}`)
		b.wantLine(t, map[string]any{"outcome": "refused", "reason": "body_not_base64", "RefusedBad": 1.0})
		for _, payload := range []string{``, `null`, `{}`, `{"source":"aws.events"}`, `[`} {
			b.wantAnswer(t, b.post(t, []byte(payload)), 400, `{"error":"bad_gateway_event"}`)
		}
		b.wantNothing(t)
	})
}

func TestLargestBodyIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		head, tail := `{"id":"evt_1","object":"event","type":"a.b","created":1790000000,"pad":"`, `"}`
		body := head + strings.Repeat("x", 4<<20-len(head)-len(tail)) + tail
		b.wantAnswer(t, b.deliver(t, body), 200, received)
		entry, err := b.ledger.Get(t.Context(), key)
		if err != nil || string(entry.Body) != body {
			t.Errorf("stored %d bytes, %v", len(entry.Body), err)
		}
	})
}

func TestEventThatFitsNoEntryIsRefusedLoudly(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		random := make([]byte, 1<<20)
		_, _ = rand.Read(random)
		body := `{"id":"evt_1","object":"event","type":"a.b","pad":"` + base64.StdEncoding.EncodeToString(random) + `"}`
		b.wantAnswer(t, b.deliver(t, body), 413, `{"error":"event_too_large"}`)
		b.wantLine(t, map[string]any{"level": "ERROR", "event_id": "evt_1", "reason": "event_too_large", "TooLarge": 1.0})
		b.wantNothing(t)
	})
}

func TestWithoutUsableSecretEveryDeliveryIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.config.Secrets = secret.Fixed([]string{"", " "})
		b.Receiver = receive.New(b.config)
		for _, header := range []string{"", signature.Sign("", []byte(invoice), time.Now()), signature.Sign(signing, []byte(invoice), time.Now())} {
			b.wantAnswer(t, b.post(t, call("POST", "/webhooks/stripe", header, invoice)), 500, failed)
			b.wantLine(t, map[string]any{"level": "ERROR", "outcome": "misconfigured", "reason": "no_usable_secret", "RefusedConfig": 1.0, "Failed": nil})
		}
		b.wantNothing(t)
	})
}

// The secret is changed in the store under a warm function; then forged requests come.
func TestRolledSecretWorksAtOnceAndForgeriesReadLittle(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		client := secretsmanager.NewFromConfig(b.direct)
		_, err := client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: aws.String("signing"), SecretString: aws.String("whsec_fake_previous")})
		if err != nil {
			t.Fatal(err)
		}
		cfg := awslocal.Config(&awslocal.Transport{Server: b.local, Intercept: b.intercept})
		b.config.Secrets = secret.New(secret.NewManager(secretsmanager.NewFromConfig(cfg), "signing"), time.Now)
		b.Receiver = receive.New(b.config)
		signedBy := func(secret, id string) answer {
			body := strings.Replace(invoice, "evt_1", id, 1)
			return b.post(t, call("POST", "/webhooks/stripe", signature.Sign(secret, []byte(body), time.Now()), body))
		}
		b.wantAnswer(t, signedBy("whsec_fake_previous", "evt_1"), 200, received)
		time.Sleep(time.Minute)
		_, err = client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: aws.String("signing"), SecretString: aws.String(`["` + signing + `"]`)})
		if err != nil {
			t.Fatal(err)
		}
		b.wantAnswer(t, signedBy(signing, "evt_2"), 200, received)
		b.wantAnswer(t, signedBy("whsec_fake_previous", "evt_3"), 400, `{"error":"no_accepted_secret_matched"}`)
		time.Sleep(time.Minute)
		before := b.calls["GetSecretValue"]
		for range 200 {
			b.wantAnswer(t, signedBy("whsec_fake_someone_else", "evt_4"), 400, `{"error":"no_accepted_secret_matched"}`)
		}
		if reads := b.calls["GetSecretValue"] - before; reads != 1 {
			t.Errorf("%d reads during the flood, want 1", reads)
		}
	})
}

func TestPathsAreServed(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		for _, test := range []struct {
			method, path string
			status       int
			body, allow  string
		}{
			{"GET", "/health", 200, `{"status":"ok","version":"1.2.3"}`, ""},
			{"HEAD", "/health", 200, `{"status":"ok","version":"1.2.3"}`, ""},
			{"POST", "/health", 405, `{"error":"method_not_allowed"}`, "GET"},
			{"GET", "/webhooks/stripe", 405, `{"error":"method_not_allowed"}`, "POST"},
			{"PUT", "/webhooks/stripe/", 405, `{"error":"method_not_allowed"}`, "POST"},
			{"POST", "/webhooks/stripe/x", 404, `{"error":"not_found"}`, ""},
			{"POST", "/", 404, `{"error":"not_found"}`, ""},
		} {
			got := b.post(t, call(test.method, test.path, "", ""))
			b.wantAnswer(t, got, test.status, test.body)
			if got.Headers["allow"] != test.allow {
				t.Errorf("%s %s: allow %q", test.method, test.path, got.Headers["allow"])
			}
		}
		if n := strings.Count(b.logged(), "\n"); n != 5 {
			t.Errorf("%d lines, want 5: health checks are no deliveries", n)
		}
		b.wantAnswer(t, b.post(t, call("POST", "/webhooks/stripe/", signature.Sign(signing, []byte(invoice), time.Now()), invoice)), 200, received)
	})
}

func TestSampleInvocationsOfEveryGatewayAreTaken(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		b.config.Now = func() time.Time { return time.Unix(events.SampleTime, 0) }
		b.config.Secrets = secret.Fixed([]string{events.SampleSecret})
		b.Receiver = receive.New(b.config)
		for _, name := range []string{"httpapi-v2", "httpapi-v2-base64", "rest-v1", "rest-v1-multivalue", "function-url", "alb", "alb-multivalue"} {
			payload, err := events.Invocation(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.post(t, payload); got.StatusCode != 200 {
				t.Errorf("%s: answered %d %s\n%s", name, got.StatusCode, got.Body, b.logged())
			}
		}
	})
}

func TestEverySampleEventIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		for _, typ := range events.Types() {
			body, err := events.Sample(typ.Name)
			if err != nil {
				t.Fatal(err)
			}
			b.wantAnswer(t, b.deliver(t, string(body)), 200, received)
		}
	})
}
