// Command receiver takes Stripe's deliveries from the gateway. What it does is in package receive; here it is wired.
package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"backstop/internal/awsclient"
	"backstop/internal/config"
	"backstop/internal/ledger"
	"backstop/internal/queue"
	"backstop/internal/receive"
	"backstop/internal/secret"
	"backstop/internal/telemetry"
)

func main() {
	ctx := context.Background()
	log := telemetry.New(os.Stdout, os.Getenv(config.Stage), time.Now, slog.String("function", "receiver"), slog.String("release", config.Release))
	receiver, err := build(ctx, os.LookupEnv, log)
	if err != nil {
		log.Line(ctx, slog.LevelError, "the function cannot start", []slog.Attr{slog.String("error", err.Error())})
		os.Exit(1)
	}
	lambda.Start(receiver)
}

// build runs in the init phase, where time and CPU are free: connections, the codec and the secrets are made there, side
// by side. What fails to warm is tried again, and reported, by the delivery that needs it.
func build(ctx context.Context, vars config.Vars, log *telemetry.Log) (*receive.Receiver, error) {
	settings, err := config.Read(vars, config.Stage, config.LedgerTable, config.QueueURL)
	if err != nil {
		return nil, err
	}
	cfg, err := awsclient.New(vars)
	if err != nil {
		return nil, err
	}
	secrets := secret.From(cfg, settings.SigningSecrets, settings.SigningSecretID, time.Now)
	var warm sync.WaitGroup
	defer warm.Wait()
	warm.Go(func() { awsclient.Warm(ctx, cfg, "dynamodb", "sqs") })
	warm.Go(func() { _, _ = secrets.Values(ctx) })
	return receive.New(receive.Config{
		Ledger:     ledger.New(dynamodb.NewFromConfig(cfg), settings.LedgerTable, time.Now),
		Queue:      queue.New(sqs.NewFromConfig(cfg), settings.QueueURL, ""),
		Secrets:    secrets,
		Log:        log,
		Now:        time.Now,
		Token:      rand.Text,
		Release:    config.Release,
		APIVersion: settings.APIVersion,
	}), nil
}
