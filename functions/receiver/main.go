// The receiver takes Stripe's deliveries from the gateway. What it does is in package receive; here it is wired.
package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
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
	settings, err := config.Read(os.LookupEnv, config.Stage, config.LedgerTable, config.QueueURL)
	if err != nil {
		stop(ctx, log, err)
	}
	cfg, err := awsclient.New(os.LookupEnv)
	if err != nil {
		stop(ctx, log, err)
	}
	secrets := signingSecrets(settings, cfg)
	receiver := receive.New(receive.Config{
		Ledger:     ledger.New(dynamodb.NewFromConfig(cfg), settings.LedgerTable, time.Now),
		Queue:      queue.New(sqs.NewFromConfig(cfg), settings.QueueURL, ""),
		Secrets:    secrets,
		Log:        log,
		Now:        time.Now,
		Token:      rand.Text,
		Release:    config.Release,
		APIVersion: settings.APIVersion,
	})
	awsclient.Warm(ctx, cfg, "dynamodb", "sqs")
	// Before the first delivery, where time is free. Each delivery tries again and reports what is wrong.
	_, _ = secrets.Values(ctx)
	lambda.Start(receiver)
}

func signingSecrets(settings config.Settings, cfg aws.Config) *secret.Provider {
	if len(settings.SigningSecrets) > 0 || settings.SigningSecretID == "" {
		return secret.Fixed(settings.SigningSecrets)
	}
	return secret.New(secret.NewManager(secretsmanager.NewFromConfig(cfg), settings.SigningSecretID), time.Now)
}

func stop(ctx context.Context, log *telemetry.Log, err error) {
	log.Line(ctx, slog.LevelError, "the function cannot start", []slog.Attr{slog.String("error", err.Error())})
	os.Exit(1)
}
