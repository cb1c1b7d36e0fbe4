// The reconciler answers a schedule. What it does is in package reconcile; here it is wired.
package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awsclient"
	"backstop/internal/config"
	"backstop/internal/control"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/reconcile"
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
	db := dynamodb.NewFromConfig(cfg)
	store := ledger.New(db, settings.LedgerTable, time.Now)
	lambda.Start(&reconcile.Reconciler{
		Sweeper: &reconcile.Sweeper{
			Ledger:  store,
			Queue:   queue.New(sqs.NewFromConfig(cfg), settings.QueueURL, settings.DeadLetterURL),
			Control: control.New(db, settings.ControlTable),
			Now:     time.Now,
		},
		Counter: store,
		Log:     log,
	})
}

func stop(ctx context.Context, log *telemetry.Log, err error) {
	log.Line(ctx, slog.LevelError, "the function cannot start", []slog.Attr{slog.String("error", err.Error())})
	os.Exit(1)
}
