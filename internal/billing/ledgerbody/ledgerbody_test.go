package ledgerbody_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"backstop/internal/awslocal"
	"backstop/internal/awslocal/stack"
	"backstop/internal/billing"
	"backstop/internal/billing/ledgerbody"
	"backstop/internal/ledger"
)

func TestBodyIsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	cfg := awslocal.Config(&awslocal.Transport{Server: awslocal.New(awslocal.Options{})})
	names, err := stack.Create(t.Context(), cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	entries := ledger.New(dynamodb.NewFromConfig(cfg), names.LedgerTable, time.Now)
	const sent = `{"id": "evt_1",  "type":"x"}`
	if _, err := entries.Record(t.Context(), ledger.Recording{
		Key: "stripe#-#evt_1", Type: "x", Group: "g", Origin: ledger.Webhook, Body: []byte(sent), Token: "d1",
	}); err != nil {
		t.Fatal(err)
	}
	bodies := ledgerbody.New(entries)
	if got, err := bodies.Body(t.Context(), "stripe#-#evt_1"); err != nil || string(got) != sent {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := bodies.Body(t.Context(), "stripe#-#evt_2"); !errors.Is(err, billing.ErrNoBody) {
		t.Errorf("got %v, want that there is none", err)
	}
}

type broken struct{ err error }

func (b broken) Get(context.Context, ledger.Key) (ledger.Entry, error) { return ledger.Entry{}, b.err }

func TestErrorsOfTheLedgerAreTold(t *testing.T) {
	t.Parallel()
	if _, err := ledgerbody.New(broken{ledger.ErrCodec}).Body(t.Context(), "stripe#-#evt_1"); !errors.Is(err, billing.ErrNoBody) {
		t.Errorf("got %v, want that there is none", err)
	}
	away := errors.New("away")
	if _, err := ledgerbody.New(broken{away}).Body(t.Context(), "stripe#-#evt_1"); !errors.Is(err, away) || errors.Is(err, billing.ErrNoBody) {
		t.Errorf("got %v", err)
	}
}
