package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awsclient"
	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/config"
	"backstop/internal/signature"
	"backstop/internal/telemetry"
)

// TestFunctionAsWiredTakesADelivery runs what main starts, over sockets, with its secret in the store.
func TestFunctionAsWiredTakesADelivery(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	url := "http://" + server.Listener.Addr().String()
	recorder := &awslocal.Recorder{}
	server.Config.Handler = awslocal.New(awslocal.Options{BaseURL: url, Recorder: recorder})
	server.Start()
	defer server.Close()
	env := map[string]string{
		"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "setup", "AWS_SECRET_ACCESS_KEY": "local",
		config.Stage: "test", config.SigningSecretID: "signing",
	}
	vars := func(name string) (string, bool) {
		value, found := env[name]
		return value, found
	}
	cfg, err := awsclient.New(vars)
	if err != nil {
		t.Fatal(err)
	}
	names, err := stack.Create(t.Context(), cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(env, names.Environment())
	_, err = secretsmanager.NewFromConfig(cfg).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String("signing"), SecretString: aws.String("whsec_fake_current"),
	})
	if err != nil {
		t.Fatal(err)
	}

	env["AWS_ACCESS_KEY_ID"] = "receiver"
	var lines bytes.Buffer
	receiver, err := build(t.Context(), vars, telemetry.New(&lines, "test", time.Now, slog.String("function", "receiver")))
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"id":"evt_1","object":"event","type":"invoice.paid","created":1790000000,"data":{"object":{"id":"in_1","customer":"cus_1"}}}`
	payload, err := json.Marshal(map[string]any{
		"version": "2.0", "rawPath": "/webhooks/stripe", "body": body,
		"headers":        map[string]string{"stripe-signature": signature.Sign("whsec_fake_current", []byte(body), time.Now())},
		"requestContext": map[string]any{"http": map[string]string{"method": "POST"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := receiver.Invoke(t.Context(), payload)
	if err != nil || !strings.Contains(string(answer), `"statusCode":200`) {
		t.Fatalf("answered %s, %v\n%s", answer, err, lines.String())
	}
	items, err := dynamodb.NewFromConfig(cfg).Scan(t.Context(), &dynamodb.ScanInput{TableName: &names.LedgerTable})
	if err != nil || len(items.Items) != 1 {
		t.Errorf("%d entries, %v", len(items.Items), err)
	}
	messages, err := sqs.NewFromConfig(cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &names.QueueURL})
	if err != nil || len(messages.Messages) != 1 {
		t.Errorf("%d messages, %v", len(messages.Messages), err)
	}

	// Least privilege: what a delivery takes of AWS.
	allowed := map[string]bool{"dynamodb:PutItem": true, "sqs:SendMessage": true, "secretsmanager:GetSecretValue": true}
	used := 0
	for _, use := range recorder.Uses() {
		if use.Caller != "receiver" {
			continue
		}
		if used++; !allowed[use.Action] {
			t.Errorf("it used %s", use.Action)
		}
	}
	if used != len(allowed) {
		t.Errorf("%d actions recorded: %v", used, recorder.Uses())
	}
}

func TestFunctionWithoutItsSettingsSaysWhichAreMissing(t *testing.T) {
	t.Parallel()
	_, err := build(t.Context(), func(string) (string, bool) { return "", false }, telemetry.New(&bytes.Buffer{}, "", time.Now))
	if err == nil || !strings.Contains(err.Error(), "BACKSTOP_LEDGER_TABLE is not set") || !strings.Contains(err.Error(), "BACKSTOP_QUEUE_URL is not set") {
		t.Errorf("got %v", err)
	}
}
