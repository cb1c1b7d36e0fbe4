// Command reconciler answers a schedule. What it does is in package reconcile; here it is wired.
package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	randv2 "math/rand/v2"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awsclient"
	"backstop/internal/config"
	"backstop/internal/control"
	"backstop/internal/deadletter"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/reconcile"
	"backstop/internal/secret"
	"backstop/internal/stripeapi"
	"backstop/internal/stripeevents"
	"backstop/internal/subscribed"
	"backstop/internal/telemetry"
)

func main() {
	ctx := context.Background()
	log := telemetry.New(os.Stdout, os.Getenv(config.Stage), time.Now, slog.String("function", "reconciler"), slog.String("release", config.Release))
	settings, err := config.Read(os.LookupEnv, config.Stage, config.LedgerTable, config.ControlTable, config.QueueURL, config.DeadLetterURL)
	if err != nil {
		stop(ctx, log, err)
	}
	cfg, err := awsclient.New(os.LookupEnv)
	if err != nil {
		stop(ctx, log, err)
	}
	lambda.Start(wire(settings, cfg, log))
}

func wire(settings config.Settings, cfg aws.Config, log *telemetry.Log) *reconcile.Reconciler {
	db, messages := dynamodb.NewFromConfig(cfg), sqs.NewFromConfig(cfg)
	entries, places := ledger.New(db, settings.LedgerTable, time.Now), control.New(db, settings.ControlTable)
	pointers := queue.New(messages, settings.QueueURL, settings.DeadLetterURL)
	key := secret.From(cfg, []string{settings.StripeKey}, settings.StripeKeyID, time.Now)
	stripe := stripeapi.New(stripeapi.Config{URL: settings.StripeURL, Key: key.Value})
	types := subscribed.Types(settings.EventTypes)
	return &reconcile.Reconciler{
		Sweeper: &reconcile.Sweeper{Ledger: entries, Queue: pointers, Control: places, Now: time.Now},
		Counter: entries,
		Tidier:  &reconcile.Tidier{Queue: deadletter.New(messages, settings.DeadLetterURL), Ledger: entries, Now: time.Now},
		Auditor: &reconcile.Auditor{
			Events: stripeevents.New(stripe, randv2.Float64), Ledger: entries, Queue: pointers, Control: places,
			Accounts: settings.Accounts, Types: types, Unlisted: subscribed.Thin(types), Mode: settings.Mode, Now: time.Now, Token: rand.Text,
		},
		Log: log,
	}
}

func stop(ctx context.Context, log *telemetry.Log, err error) {
	log.Line(ctx, slog.LevelError, "the function cannot start", []slog.Attr{slog.String("error", err.Error())})
	os.Exit(1)
}
