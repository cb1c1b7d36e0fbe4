// Command processor takes batches of pointers from the queue. What it does is in package process; here it is wired, and
// here handlers are registered: one line a type.
package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/events"
	"backstop/internal/awsclient"
	"backstop/internal/billing"
	"backstop/internal/billing/ledgerbody"
	"backstop/internal/config"
	"backstop/internal/handler"
	"backstop/internal/journal"
	"backstop/internal/ledger"
	"backstop/internal/process"
	"backstop/internal/projection"
	"backstop/internal/queue"
	"backstop/internal/secret"
	"backstop/internal/stripeapi"
	"backstop/internal/telemetry"
)

func main() {
	ctx := context.Background()
	log := telemetry.New(os.Stdout, os.Getenv(config.Stage), time.Now, slog.String("function", "processor"), slog.String("release", config.Release))
	settings, err := config.Read(os.LookupEnv, config.Stage, config.LedgerTable, config.BillingTable, config.QueueURL, config.DeadLetterURL)
	if err != nil {
		stop(ctx, log, err)
	}
	cfg, err := awsclient.New(os.LookupEnv)
	if err != nil {
		stop(ctx, log, err)
	}
	db := dynamodb.NewFromConfig(cfg)
	entries, rows := ledger.New(db, settings.LedgerTable, time.Now, ledger.WithCodec(ledger.NewCodec())), projection.New(db)
	processor, err := process.New(process.Config{
		Ledger: entries, Queue: queue.New(sqs.NewFromConfig(cfg), settings.QueueURL, settings.DeadLetterURL),
		Projector: rows, Registry: handlers(settings, cfg, entries, rows), Breakers: handler.NewBreakers(time.Now), Log: log,
		Mode: settings.Mode, Now: time.Now, Random: rand.Float64, Exit: func() { os.Exit(1) },
	})
	if err != nil {
		stop(ctx, log, err)
	}
	awsclient.Warm(ctx, cfg, "dynamodb", "sqs")
	lambda.Start(processor)
}

// handlers registers who listens to what.
func handlers(settings config.Settings, cfg aws.Config, entries *ledger.Store, rows *projection.Store) *handler.Registry {
	var r handler.Registry
	key := secret.From(cfg, []string{settings.StripeKey}, settings.StripeKeyID, time.Now)
	api := stripeapi.New(stripeapi.Config{URL: settings.StripeURL, Key: key.Value})
	billing.Register(&r, billing.Config{Table: settings.BillingTable, Rows: rows, Bodies: ledgerbody.New(entries), Stripe: api})
	if settings.Journal {
		for _, t := range events.Types() {
			journal.Register(&r, settings.BillingTable, time.Now, t.Name)
		}
	}
	return &r
}

func stop(ctx context.Context, log *telemetry.Log, err error) {
	log.Line(ctx, slog.LevelError, "the function cannot start", []slog.Attr{slog.String("error", err.Error())})
	os.Exit(1)
}
